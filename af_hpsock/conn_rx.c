// SPDX-License-Identifier: GPL-2.0
/*
 * What comes in for a connection: into the receive queue, where recv.c finds it.
 */
#include <net/tcp_states.h>

#include "conn.h"
#include "conn_life.h"
#include "conn_rx.h"
#include "fetch.h"
#include "net.h"
#include "poll.h"
#include "record.h"
#include "sock.h"
#include "stream.h"
#include "urgent.h"

/* A message of up to so many bytes is always copied behind the one before, to free its buffer. */
#define HPS_JOIN_ALWAYS	256

/* Will nobody read what comes in? The socket is closed, or both its halves are shut down. */
static bool hps_conn_deaf(const struct hps_conn *conn)
{
	if (conn->orphan)
		return true;
	return conn->sk && (conn->sk->sk_shutdown & RCV_SHUTDOWN) &&
	       ((1 << conn->state) & (TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2));
}

/*
 * Copy a message behind the one before if there is room, and free its buffer. A peer
 * that writes little at a time would otherwise use up its credits on a few bytes, and a
 * reader that waits for more (SO_RCVLOWAT, MSG_WAITALL) would wait for ever.
 */
static bool hps_conn_join(struct hps_conn *conn, struct hps_buf *buf, u32 len,
			  bool tight)
{
	struct hps_buf *last;

	if (list_empty(&conn->rxq) || (len > HPS_JOIN_ALWAYS && !tight))
		return false;
	last = list_last_entry(&conn->rxq, struct hps_buf, list);
	if (buf->remote || last->remote || last->size - last->end < len)
		return false;
	memcpy(last->data + last->end, buf->data + buf->start, len);
	WRITE_ONCE(last->stamp, buf->stamp);
	/* Pairs with hps_recv_some(), which reads without the lock. */
	smp_store_release(&last->end, last->end + len);
	return true;
}

/**
 * hps_conn_rx_data - bytes of the stream came in
 * @conn: locked, established
 * @buf: holds them from start to end; it comes back by ops->consumed(), perhaps
 *	before this returns
 * @tight: the peer is about to run out of credits
 * @urgent: where the urgent byte is among them, or -1
 *
 * Return: 0, or -EPROTO if the peer had said that there would be no more; the
 * buffer then stays with the caller.
 */
int hps_conn_rx_data(struct hps_conn *conn, struct hps_buf *buf, bool tight,
		     int urgent)
{
	u32 len = buf->end - buf->start;
	struct sock *sk = conn->sk;
	u64 at = conn->rx_bytes;
	bool here;

	lockdep_assert_held(&conn->lock);
	if (conn->fin_rcvd)
		return -EPROTO;
	if (conn->records && (urgent >= 0 || hps_record_arrive(conn, buf)))
		return -EPROTO;
	conn->rx_msgs++;
	conn->rx_bytes += len;
	/*
	 * A connection that will be reset discards what comes in. Not so behind an offer
	 * that was not read yet: the stream is read in order, so it is queued.
	 */
	if (conn->resetting && !conn->rx_remote) {
		conn->ops->consumed(conn, buf);
		return 0;
	}
	if (hps_conn_deaf(conn) && !conn->resetting) {
		/* Nobody will read this, and the peer should know: as TCP. */
		hps_stat_inc(conn->hn, HPS_STAT_ABORT_ON_DATA);
		if (conn->orphan) {
			hps_conn_reset(conn, ECONNRESET);
		} else {
			hps_conn_shut(conn, ECONNRESET);
			if (!conn->reported)
				hps_conn_report(conn);
		}
		conn->ops->consumed(conn, buf);
		return 0;
	}
	if (urgent >= 0)
		hps_urgent_expect(conn, at + urgent);
	here = !buf->remote &&
	       hps_urgent_arrive(conn, buf->data + buf->start, at, len);
	if (buf->remote) {
		WRITE_ONCE(conn->rx_remote, conn->rx_remote + 1);
		if (conn->rx_remote == 1)
			hps_fetch_expect(conn);
	}
	if (hps_conn_join(conn, buf, len, tight))
		conn->ops->consumed(conn, buf);
	else
		list_add_tail(&buf->list, &conn->rxq);
	/* Pairs with hps_recv_next(). */
	atomic_add_return_release(len, &conn->rx_avail);
	conn->rx_last = jiffies;
	if (conn->deferred)
		hps_conn_undefer(conn);
	if (sk)
		sk_incoming_cpu_update(sk);
	else if (conn->listener)
		conn->rx_cpu = raw_smp_processor_id();
	if (sk && (here || hps_readable(sk, conn)))
		sk->sk_data_ready(sk);
	return 0;
}

/**
 * hps_conn_rx_written - bytes of the stream are where a reader waits for them
 * @conn: locked, with nothing in the receive queue
 * @len: how many
 */
void hps_conn_rx_written(struct hps_conn *conn, u32 len)
{
	lockdep_assert_held(&conn->lock);
	WARN_ON_ONCE(!list_empty(&conn->rxq));
	conn->rx_msgs++;
	conn->rx_bytes += len;
	/* No reader counts now: the queue is empty. */
	WRITE_ONCE(conn->rx_read, conn->rx_read + len);
	hps_urgent_read(conn);
	conn->rx_last = jiffies;
	if (conn->sk)
		sk_incoming_cpu_update(conn->sk);
}

/**
 * hps_conn_rx_urgent - an urgent byte waits at the peer
 * @conn: locked, established
 * @ahead: bytes of the stream before it that have not come yet
 *
 * Return: 0, or -EPROTO if the peer had said that there would be no more.
 */
int hps_conn_rx_urgent(struct hps_conn *conn, u32 ahead)
{
	lockdep_assert_held(&conn->lock);
	if (conn->fin_rcvd || conn->records)
		return -EPROTO;
	if (!hps_conn_deaf(conn))
		hps_urgent_expect(conn, conn->rx_bytes + ahead);
	return 0;
}

/**
 * hps_conn_rx_fin - the peer will send no more data
 * @conn: locked, established
 *
 * Return: 0, or -EPROTO if it had said so already.
 */
int hps_conn_rx_fin(struct hps_conn *conn)
{
	struct sock *sk = conn->sk;

	lockdep_assert_held(&conn->lock);
	if (conn->fin_rcvd)
		return -EPROTO;
	WRITE_ONCE(conn->fin_rcvd, true);
	conn->finack_owed = true;
	if (conn->deferred)
		hps_conn_undefer(conn);
	if (conn->state == TCP_ESTABLISHED)
		hps_conn_set_state(conn, TCPF_ESTABLISHED, TCP_CLOSE_WAIT);
	else if (conn->state == TCP_FIN_WAIT1)
		hps_conn_set_state(conn, TCPF_FIN_WAIT1, TCP_CLOSING);
	/* As the ACK of TCP, the answer is on its way before the program can act. */
	hps_stream_push(conn);
	if (sk) {
		WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | RCV_SHUTDOWN);
		hps_conn_wake(conn);
		if (!sock_flag(sk, SOCK_DEAD))
			sk_wake_async(sk, SOCK_WAKE_WAITD,
				      sk->sk_shutdown == SHUTDOWN_MASK ?
				      POLL_HUP : POLL_IN);
	}
	hps_conn_check_finished(conn);
	return 0;
}

/**
 * hps_conn_rx_finack - the peer has all our data and knows there is no more
 * @conn: locked, established
 *
 * Return: 0, or -EPROTO if that was not to be answered.
 */
int hps_conn_rx_finack(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->fin_sent || conn->fin_acked)
		return -EPROTO;
	WRITE_ONCE(conn->fin_acked, true);
	if (conn->state == TCP_FIN_WAIT1) {
		hps_conn_set_state(conn, TCPF_FIN_WAIT1, TCP_FIN_WAIT2);
		if (conn->orphan) {
			hps_conn_arm_orphan(conn);
			hps_conn_limit_orphans(conn);
		}
		hps_conn_wake(conn);
	}
	hps_conn_check_finished(conn);
	return 0;
}
