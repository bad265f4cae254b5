// SPDX-License-Identifier: GPL-2.0
/*
 * A reader that waits with memory for many bytes lets the peer write there what it sends
 * next, if that is much (SDP's SinkAvail). Then it need not be offered, asked for and read.
 *
 * To show memory costs a message and a key, in vain if the peer then sends little. So a
 * reader does so only if last time, when it had waited, it was a large send that came; and
 * after one that was in vain it only waits, the next times. Nor does it have memory pinned
 * for long: soon it goes on to wait without.
 *
 * While pages of the program are protected that were sent on this connection, nothing is
 * shown: to pin such a page for writing copies it, and answers are often read into the
 * buffer that the request was sent from.
 */
#include <net/sock.h>

#include <linux/hpsock.h>

#include "conn.h"
#include "invite.h"
#include "net.h"
#include "param.h"
#include "recv.h"
#include "sock.h"

/* How many times a reader only waits after it was in vain: first, by what factor, at most. */
#define HPS_INVITE_PAUSE	16
#define HPS_INVITE_PAUSE_FACTOR	4
#define HPS_INVITE_PAUSE_MAX	1024

/**
 * hps_invites - would a reader that has nothing to read show its memory?
 * @sk: its socket, locked
 * @conn: the connection
 *
 * Return: whether it would, if it has enough.
 */
bool hps_invites(const struct sock *sk, const struct hps_conn *conn)
{
	return unlikely(conn->invites) &&
	       hps_tuned(&hps_sk(sk)->tuning, HPS_TUNE_ZCOPY_SINK);
}

/* Returns for how many bytes it is worth it, 0 for none. */
static u32 hps_invite_worth(struct sock *sk, struct hps_conn *conn,
			    const struct hps_reader *r)
{
	const struct hps_tuning *tuning = &hps_sk(sk)->tuning;
	size_t len = r->len - r->copied;

	if (!hps_invites(sk, conn) || !r->pin || r->blind ||
	    r->flags & MSG_PEEK || READ_ONCE(conn->rx_urgent) ||
	    atomic_read(&conn->holds))
		return 0;
	len = min_t(size_t, len, READ_ONCE(conn->rx_show_max));
	if (len < hps_tuned(tuning, HPS_TUNE_ZCOPY_THRESHOLD) ||
	    hps_tuned(tuning, HPS_TUNE_ZCOPY) == HPSOCK_ZCOPY_OFF)
		return 0;
	if (conn->invite_skip) {
		conn->invite_skip--;
		return 0;
	}
	return len;
}

/* Wait for the bytes, for a reason to wait no longer, or for the time to be over. */
static void hps_invite_wait(struct sock *sk, struct hps_conn *conn, long *timeo)
{
	long limit = msecs_to_jiffies(READ_ONCE(hps_zcopy_patience));
	long time = min_t(long, *timeo, limit), left = time;
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	while (left && conn->ops->shown(conn) && hps_sk_conn(sk) == conn &&
	       !hps_recv_over(sk) && !signal_pending(current)) {
		if (sk_wait_event(sk, &left, !conn->ops->shown(conn) ||
				  hps_recv_over(sk), &wait) < 0)
			break;
	}
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	if (*timeo != MAX_SCHEDULE_TIMEOUT)
		*timeo -= time - left;
}

/* Was it worth it? */
static void hps_invite_went(struct hps_conn *conn, bool well)
{
	if (well) {
		conn->invite_pause = 0;
		return;
	}
	conn->invites = false;
	conn->invite_pause = clamp_t(u32, conn->invite_pause *
				     HPS_INVITE_PAUSE_FACTOR, HPS_INVITE_PAUSE,
				     HPS_INVITE_PAUSE_MAX);
	conn->invite_skip = conn->invite_pause;
}

/**
 * hps_invite - wait for more to read, with memory that the peer may write to
 * @sk: the socket, locked
 * @conn: its connection, of which there was nothing to read
 * @r: who reads
 * @timeo: jiffies to wait, which this takes from
 *
 * Context: process, sleeps, without the lock; @sk may have another connection
 * afterwards, @r->parted says so.
 * Return: true if bytes came, or @sk has; false if the reader should wait as others do.
 */
bool hps_invite(struct sock *sk, struct hps_conn *conn, struct hps_reader *r,
		long *timeo)
{
	u32 len = hps_invite_worth(sk, conn, r), n;
	struct hps_pages sink = {};

	if (likely(!len) || !r->pin(r, len, &sink))
		return false;
	if (sink.len < hps_tuned(&hps_sk(sk)->tuning, HPS_TUNE_ZCOPY_THRESHOLD) ||
	    !conn->ops->show(conn, &sink)) {
		r->unpin(r, &sink, 0);
		/* It was not tried; but pages are not to be pinned for that each time. */
		conn->invite_skip = HPS_INVITE_PAUSE;
		return false;
	}
	hps_conn_get(conn);
	hps_invite_wait(sk, conn, timeo);
	release_sock(sk);
	n = conn->ops->withdraw(conn);
	lock_sock(sk);
	r->unpin(r, &sink, n);
	hps_invite_went(conn, n);
	r->parted = hps_sk_conn(sk) != conn;
	if (n) {
		r->copied += n;
		r->stamp = conn->rx_stamp;
		sk_peek_offset_bwd(sk, n);
		hps_stat_add(conn->hn, HPS_STAT_RX_WRITTEN, n);
	}
	hps_conn_put(conn);
	return n || r->parted;
}

/**
 * hps_invite_learn - a reader has read something
 * @conn: the connection; the socket is locked
 * @r: who read; whether it had waited, and whether that was a large send
 */
void hps_invite_learn(struct hps_conn *conn, struct hps_reader *r)
{
	if (r->waited)
		conn->invites = r->placed;
	r->waited = false;
	r->placed = false;
}
