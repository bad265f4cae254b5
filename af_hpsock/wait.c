// SPDX-License-Identifier: GPL-2.0
/*
 * zcopy=wait: a send that returns when the peer has read its bytes from where they are.
 * So they need no protection, and the memory may be any. Its last bytes are copied:
 * while they are under way the program gets on with the next ones.
 *
 * TCP's send() would often have returned long before, with the bytes in its queue; that
 * nobody reads is no reason to block where it does not. So this one is patient only
 * as long as the peer goes on to read, and nobody disturbs it. Then it takes back what was
 * not read (cancel.c) and goes on with a copy of that, like any other.
 *
 * As only the end of the stream can be taken back, another send, and FIN, have to
 * wait for their turn (hps_conn.tx_turn). The socket's lock is not held meanwhile. So
 * shutdown() may come in between; what was in the queue by then goes, also as a copy.
 */
#include <linux/wait_bit.h>
#include <net/sock.h>

#include "conn.h"
#include "lent.h"
#include "net.h"
#include "param.h"
#include "sock.h"
#include "stream.h"
#include "wait.h"
#include "work.h"

/* How long SRCCANCEL may remain without an answer. */
#define HPS_WAIT_ANSWER		(30 * HZ)

/*
 * Sleep until the variable is what it should be, @timeo jiffies have passed or a
 * signal has come. Returns jiffies left, 0, or -ERESTARTSYS.
 */
#define hps_wait_event(var, condition, timeo)				\
	___wait_var_event(var, ___wait_cond_timeout(condition),		\
			  TASK_INTERRUPTIBLE, 0, timeo,			\
			  __ret = schedule_timeout(__ret))

/**
 * hps_wait_clear - wait until somebody else is through with what a flag says
 * @sk: the socket, locked
 * @flag: which is cleared with hps_wake()
 * @timeo: jiffies to wait, which this may take from
 *
 * Context: process, may sleep, without the lock.
 * Return: 0, -EAGAIN, -ERESTARTSYS or -EINTR; -EPIPE if the socket was disconnected
 * meanwhile, and may have another peer now, as from sk_wait_event().
 */
int hps_wait_clear(struct sock *sk, bool *flag, long *timeo)
{
	int disconnects = sk->sk_disconnects;
	long left = *timeo;

	if (!left)
		return -EAGAIN;
	release_sock(sk);
	left = hps_wait_event(flag, !READ_ONCE(*flag), left);
	lock_sock(sk);
	if (disconnects != sk->sk_disconnects)
		return -EPIPE;
	if (left < 0)
		return sock_intr_errno(*timeo);
	*timeo = left;
	return left ? 0 : -EAGAIN;
}

/**
 * hps_wait_turn - wait until no other send waits for the peer
 * @sk: the socket, locked
 * @conn: its connection
 * @timeo: jiffies to wait, which this may take from
 *
 * Context: process, may sleep, without the lock; @sk may have no connection afterwards.
 * Return: 0, or as hps_wait_clear().
 */
int hps_wait_turn(struct sock *sk, struct hps_conn *conn, long *timeo)
{
	int err;

	if (likely(!conn->tx_turn))
		return 0;
	hps_conn_get(conn);
	err = hps_wait_clear(sk, &conn->tx_turn, timeo);
	hps_conn_put(conn);
	/* The turn ends with the socket locked, so whoever ends it sees that. */
	if (err == -EAGAIN) {
		sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);
		set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	}
	return err;
}

/**
 * hps_wait_turn_over - let other sends go on, and FIN
 * @sk: the socket, locked
 * @conn: where it was our turn
 *
 * Context: process.
 */
void hps_wait_turn_over(struct sock *sk, struct hps_conn *conn)
{
	spin_lock_bh(&conn->lock);
	WRITE_ONCE(conn->tx_turn, false);
	hps_stream_push(conn);
	spin_unlock_bh(&conn->lock);
	hps_wake(&conn->tx_turn);
	sk->sk_write_space(sk);
}

/* Returns whether all of it was read. It is patient anew for each offer that was. */
static bool hps_wait_patiently(struct hps_conn *conn, long *timeo)
{
	for (;;) {
		u32 waited = READ_ONCE(conn->tx_waited);
		long limit = msecs_to_jiffies(READ_ONCE(hps_zcopy_patience));
		long time = min_t(long, *timeo, limit), left;
		unsigned long start = jiffies;

		if (!waited) {
			hps_lent_went(conn, true);
			return true;
		}
		left = hps_wait_event(&conn->tx_waited,
				      READ_ONCE(conn->tx_waited) != waited, time);
		/* After a signal there is no remainder that says how long it was. */
		if (*timeo != MAX_SCHEDULE_TIMEOUT)
			*timeo -= min_t(unsigned long, *timeo, jiffies - start);
		if (!left)
			hps_lent_went(conn, false);
		if (left <= 0)
			return false;
	}
}

/*
 * Take back what was not read. It is the peer's kernel that answers, as soon as no call of
 * its program has the socket's lock, which none keeps while it waits for the network: if
 * it has not done so by HPS_WAIT_ANSWER, something is wrong and the connection is ended.
 */
static void hps_wait_cancel(struct hps_conn *conn)
{
	spin_lock_bh(&conn->lock);
	if (!conn->shut) {
		WRITE_ONCE(conn->tx_hold, true);
		conn->ops->cancel(conn);
	}
	spin_unlock_bh(&conn->lock);
	if (!wait_var_event_timeout(&conn->tx_hold, !READ_ONCE(conn->tx_hold),
				    HPS_WAIT_ANSWER)) {
		spin_lock_bh(&conn->lock);
		hps_stat_inc(conn->hn, HPS_STAT_READ_STALLED);
		hps_conn_shut(conn, ETIMEDOUT);
		spin_unlock_bh(&conn->lock);
	}
	/* Also when the connection has ended. */
	wait_var_event(&conn->tx_waited, !READ_ONCE(conn->tx_waited));
}

/**
 * hps_wait_read - wait until the peer has read what a send has lent it; hps_wait_turn_over()
 * has to follow
 * @sk: the socket, locked
 * @conn: where it did, referenced
 * @timeo: jiffies to wait, which this takes from
 *
 * Context: process, sleeps, without the lock; @sk may have another connection
 * afterwards.
 * Return: how many bytes, the last ones, were taken back.
 */
u32 hps_wait_read(struct sock *sk, struct hps_conn *conn, long *timeo)
{
	u32 back;

	release_sock(sk);
	if (!hps_wait_patiently(conn, timeo))
		hps_wait_cancel(conn);
	lock_sock(sk);
	spin_lock_bh(&conn->lock);
	back = conn->tx_back;
	conn->tx_back = 0;
	spin_unlock_bh(&conn->lock);
	return back;
}
