// SPDX-License-Identifier: GPL-2.0
/*
 * A connection: the state that TCP would keep, the received data that nobody
 * has read, the data to send that is not delivered.
 *
 * Life cycle
 *
 *   A transport makes the connection, either for connect() or for a request
 *   that came in. It has a socket from hps_conn_attach() on: at once for
 *   connect(), in accept(2) otherwise, because a socket must be made by the
 *   process that it is charged to. Until then it is an entry of the listening
 *   socket's queue.
 *
 *   A connection ends in two steps, in either order: its transport is gone
 *   (hps_conn_end(), exactly once), and its program has closed the socket
 *   (hps_conn_orphan()). In between it goes on without the other: an orphan
 *   delivers what was sent, an ended connection can still be read.
 *
 * How it ends, in words
 *
 *   finished   both ends have sent FIN and heard that the other has it
 *   shut       hps_conn_shut(): nothing is sent, granted or offered any more, and the
 *              transport's teardown begins; a reset to a peer that has not finished
 *   reset      hps_conn_reset(): shut when what the program had sent is delivered
 *   reported   hps_conn_report(): the program knows, by state, error and wake-up
 *   orphan     hps_conn_orphan(): the program has closed its socket
 *   dropped    hps_conn_drop(): reset, and parted from its socket or queue at once
 *   ended      hps_conn_end(), by the teardown; nothing comes any more
 *
 * Invariants
 *
 *   Where one could break there is a WARN with its number.
 *
 *   I1  The state changes along TCP's edges, as each change names them.
 *   I2  What is in flight is completed before the end, and the end comes once.
 *   I3  Who frees a connection is the last that knew of it: no socket and no queue does.
 *   I4  A message that costs a credit has one (credit.c).
 *   I5  For each credit that was granted a receive is posted, and buffers of the present
 *       size are there for all that may have to be (receives.c).
 *   I6  A slot of the send queue is used by one message, until its completion (msg.c).
 *   I7  Pages that the peer may read or write are given back when their key is invalid,
 *       or destroyed (source.c, target.c).
 *
 * References
 *
 *   One for the transport until its teardown returns, after hps_conn_end(); one for the queue entry
 *   that becomes the socket's (hps_sock.conn); one for each pending timer, for
 *   hps_growth.work, hps_shrink.work and hps_conn.collect; one for each struct
 *   hps_lent.
 *   The connection holds its socket from attach until it is both orphaned and
 *   ended, or dropped. That is a cycle, and those are the only ways out of it. The
 *   other one is a listening socket's queue and hps_conn.listener: accept(), the
 *   end of a connection that was not ready, and the end of listening, which drops
 *   all, are the ways out.
 *
 * What completions do to the socket
 *
 *   TCP leaves a segment to the backlog of a socket that is owned, for the segment changes
 *   the queues that the owner is at work on. Here those are the connection's, under
 *   hps_conn.lock, which a call holds for moments and never while it sleeps or copies. So
 *   completions wait for nobody, and of struct sock they touch this alone:
 *
 *   sk_state, sk_err, sk_shutdown   written under hps_conn.lock, by calls too from attach
 *              to parting on, so no change is lost; a call looks again whenever it has slept
 *   callbacks  they wake, as TCP's do under the socket's spin lock
 *   memory     what was sent is counted in hps_conn.done_*; who owns the socket, or
 *              hps_sock_reap_soon() where nobody does, takes it from the socket's accounts.
 *              What is received was charged when the buffers were posted
 *
 * Lock order
 *
 *   socket lock (lock_sock)
 *     -> hps_net.service_lock -> locks of rdma_cm, the handler mutex of a cm_id
 *     -> hps_conn.lock, bottom halves off; also taken in rdma_cm's handlers
 *       -> hps_accept_queue.lock, hps_net.port_lock -> sk_callback_lock
 *       -> the spin lock inside the socket lock, only in hps_sock_reap_soon()
 *       -> a waiter's queue, through the socket's callbacks
 *       -> sk_callback_lock, for SIGURG
 *
 *   Completions and rdma_cm's handlers take hps_conn.lock, never a socket's
 *   lock. A socket's release_cb runs with the inner spin lock held and so may
 *   not take hps_conn.lock. Work items own the socket by hps_sock_own(), which
 *   does not wait.
 */
#include <linux/log2.h>
#include <net/tcp.h>

#include "conn.h"
#include "orphan.h"
#include "port.h"
#include "sock.h"

/**
 * hps_conn_get - take a reference
 * @conn: the connection
 *
 * Context: any.
 */
void hps_conn_get(struct hps_conn *conn)
{
	kref_get(&conn->ref);
}

static void hps_conn_free_list(struct list_head *list)
{
	struct hps_buf *buf, *next;

	list_for_each_entry_safe(buf, next, list, list) {
		list_del(&buf->list);
		hps_buf_free(buf);
	}
}

static void hps_conn_release(struct kref *ref)
{
	struct hps_conn *conn = container_of(ref, struct hps_conn, ref);

	WARN_ON_ONCE(conn->sk || conn->listener);	/* I3 */
	hps_conn_free_list(&conn->rxq);
	hps_conn_free_list(&conn->txq);
	hps_conn_free_list(&conn->tx_flight);
	hps_conn_free_list(&conn->tx_spare);
	/* The work has read it, and no reader came. */
	if (conn->fetched)
		hps_buf_free(conn->fetched);
	conn->ops->free(conn);
}

/**
 * hps_conn_put - drop a reference
 * @conn: the connection, without its lock if this may be the last one
 *
 * Context: any.
 */
void hps_conn_put(struct hps_conn *conn)
{
	kref_put(&conn->ref, hps_conn_release);
}

/**
 * hps_conn_arm - start one of the three timers of a connection anew
 * @conn: locked
 * @timer: which
 * @delay: jiffies
 */
void hps_conn_arm(struct hps_conn *conn, struct timer_list *timer,
		  unsigned long delay)
{
	lockdep_assert_held(&conn->lock);
	if (!mod_timer(timer, jiffies + delay))
		hps_conn_get(conn);
}

/**
 * hps_conn_disarm - stop one of them
 * @conn: locked; the caller has another reference
 * @timer: which; its handler may be about to run nevertheless
 */
void hps_conn_disarm(struct hps_conn *conn, struct timer_list *timer)
{
	lockdep_assert_held(&conn->lock);
	if (timer_delete(timer))
		hps_conn_put(conn);
}

/**
 * hps_conn_retry_time - how long TCP would try, a second for the first time
 * @retries: how often it repeats, as tcp_syn_retries says
 *
 * Return: jiffies.
 */
unsigned long hps_conn_retry_time(u8 retries)
{
	const u8 doubled = ilog2(TCP_RTO_MAX / TCP_TIMEOUT_INIT);
	unsigned long time = (2UL << min(retries, doubled)) - 1;

	time *= TCP_TIMEOUT_INIT;
	if (retries > doubled)
		time += (retries - doubled) * TCP_RTO_MAX;
	return time;
}

/**
 * hps_conn_limit_opening - end a handshake that takes too long
 * @conn: not locked; nothing happens if it has been opened already
 * @end: when that is, jiffies
 *
 * rdma_cm gives up by itself after a minute. But if its own queue pair went to the error
 * state with the request in it, it never reports anything more.
 *
 * Context: any.
 */
void hps_conn_limit_opening(struct hps_conn *conn, unsigned long end)
{
	long left = end - jiffies;

	spin_lock_bh(&conn->lock);
	if (!conn->shut && hps_conn_opening(conn))
		hps_conn_arm(conn, &conn->opening_timer, max(left, 0L));
	spin_unlock_bh(&conn->lock);
}

/**
 * hps_conn_set_state - the one way to change the state
 * @conn: locked
 * @expected: TCPF_* of the states in which this may happen
 * @state: TCP_*
 *
 * The socket, where there is one, shows the same state. Once in TCP_CLOSE it may have
 * another port, which stays.
 */
void hps_conn_set_state(struct hps_conn *conn, int expected, u8 state)
{
	lockdep_assert_held(&conn->lock);
	WARN_ONCE(!((1 << conn->state) & expected),	/* I1 */
		  "state %u to %u not expected\n", conn->state, state);
	if (conn->sk && state == TCP_CLOSE && conn->state != TCP_CLOSE)
		hps_port_close(conn->sk);
	else if (conn->sk)
		hps_sock_set_state(conn->sk, state);
	WRITE_ONCE(conn->state, state);
}

/**
 * hps_conn_wake - the state of the connection has changed, who waits has to look
 * @conn: locked
 */
void hps_conn_wake(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->sk && !sock_flag(conn->sk, SOCK_DEAD))
		conn->sk->sk_state_change(conn->sk);
}

/**
 * hps_conn_shut - end the connection without regard to what is in flight
 * @conn: locked
 * @err: why, positive errno; 0 lets hps_conn_end() tell from the state
 *
 * The peer sees a reset unless both directions were finished.
 */
void hps_conn_shut(struct hps_conn *conn, int err)
{
	lockdep_assert_held(&conn->lock);
	if (conn->shut)
		return;
	WRITE_ONCE(conn->shut, true);
	conn->err = err;
	hps_orphan_count(conn);
	conn->ops->shut(conn);
}

/**
 * hps_conn_sock - the socket of a connection
 * @conn: not locked
 *
 * Context: any.
 * Return: the socket, with a reference for sock_put(), or NULL.
 */
struct sock *hps_conn_sock(struct hps_conn *conn)
{
	struct sock *sk;

	spin_lock_bh(&conn->lock);
	sk = conn->sk;
	if (sk)
		sock_hold(sk);
	spin_unlock_bh(&conn->lock);
	return sk;
}

/**
 * hps_conn_mtu - of the interface that a connection goes over
 * @conn: the connection
 *
 * Context: any.
 * Return: bytes; 0 if there is none, or not yet.
 */
u32 hps_conn_mtu(const struct hps_conn *conn)
{
	struct net_device *dev;
	u32 mtu = 0;

	rcu_read_lock();
	dev = dev_get_by_index_rcu(conn->net, READ_ONCE(conn->dif));
	if (dev)
		mtu = READ_ONCE(dev->mtu);
	rcu_read_unlock();
	return mtu;
}
