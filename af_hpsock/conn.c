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
 * References
 *
 *   One for the transport until hps_conn_end() returns; one for the queue entry
 *   that becomes the socket's (hps_sock.conn); one for each pending timer, for
 *   hps_link.grow and hps_conn.collect; one for each struct hps_lent.
 *   The connection holds its socket from attach until it is both orphaned and
 *   ended, or dropped. That is a cycle, and those are the only ways out of it. The
 *   other one is a listening socket's queue and hps_conn.listener: accept(), the
 *   end of a connection that was not ready, and the end of listening, which drops
 *   all, are the ways out.
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
#include <linux/slab.h>
#include <net/tcp.h>

#include "compat.h"
#include "conn.h"
#include "net.h"
#include "param.h"
#include "sock.h"
#include "work.h"

/*
 * How long a reset waits until the peer has what the program sent before it: more than
 * twice the time after which the peer's kernel reads what it is offered
 * (HPS_FETCH_PATIENCE in fetch.c).
 */
#define HPS_RESET_PATIENCE	(HZ / 2)

/* A message of up to so many bytes is always copied behind the one before, to free its buffer. */
#define HPS_JOIN_ALWAYS	256

/* TCP_DEFER_ACCEPT need not wait any longer; the connection is locked. */
static void hps_conn_undefer(struct hps_conn *conn)
{
	conn->deferred = false;
	if (timer_delete(&conn->timer))
		hps_conn_put(conn);
	/* Not if it is dropped, with its listener. */
	if (conn->listener)
		hps_queue_ready(conn);
}

static void hps_conn_timer(struct timer_list *t)
{
	struct hps_conn *conn = from_timer(conn, t, timer);

	spin_lock(&conn->lock);
	if (timer_pending(&conn->timer)) {
		/* Armed anew while this waited, perhaps for the other purpose. */
	} else if (conn->deferred) {
		hps_conn_undefer(conn);
	} else if (conn->resetting) {
		hps_conn_shut(conn, conn->err);
	} else if (conn->orphan) {
		if (!conn->shut)
			hps_stat_inc(conn->hn, ORPHAN_TIMEOUT);
		hps_conn_shut(conn, ETIMEDOUT);
	} else if (hps_conn_opening(conn)) {
		hps_conn_shut(conn, ETIMEDOUT);
	} else {
		hps_stream_flush(conn);
	}
	spin_unlock(&conn->lock);
	hps_conn_put(conn);
}

/**
 * hps_conn_init - make a connection, for the transport that embeds it
 * @conn: zeroed memory
 * @ops: the transport
 * @net: the namespace
 *
 * Context: any. The caller has the first reference.
 */
void hps_conn_init(struct hps_conn *conn, const struct hps_transport *ops,
		   struct net *net)
{
	spin_lock_init(&conn->lock);
	kref_init(&conn->ref);
	conn->ops = ops;
	conn->net = net;
	conn->hn = hps_net(net);
	conn->state = TCP_CLOSE;
	conn->tx_least = 1;
	INIT_LIST_HEAD(&conn->accept_node);
	INIT_LIST_HEAD(&conn->rxq);
	INIT_LIST_HEAD(&conn->txq);
	INIT_LIST_HEAD(&conn->tx_flight);
	INIT_LIST_HEAD(&conn->tx_spare);
	INIT_LIST_HEAD(&conn->tx_notes);
	timer_setup(&conn->timer, hps_conn_timer, 0);
	hps_probe_init(conn);
	hps_fetch_init(conn);
}

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

	WARN_ON_ONCE(conn->sk || conn->listener);
	hps_conn_free_list(&conn->rxq);
	hps_conn_free_list(&conn->txq);
	hps_conn_free_list(&conn->tx_flight);
	hps_conn_free_list(&conn->tx_spare);
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
 * hps_conn_arm - start the handshake, cork or orphan timer anew
 * @conn: locked
 * @delay: jiffies
 */
void hps_conn_arm(struct hps_conn *conn, unsigned long delay)
{
	lockdep_assert_held(&conn->lock);
	if (!mod_timer(&conn->timer, jiffies + delay))
		hps_conn_get(conn);
}

/**
 * hps_conn_open_time - how long TCP would try to open a connection
 * @retries: tcp_syn_retries or tcp_synack_retries
 *
 * Return: jiffies.
 */
unsigned long hps_conn_open_time(u8 retries)
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
		hps_conn_arm(conn, max(left, 0L));
	spin_unlock_bh(&conn->lock);
}

/**
 * hps_conn_set_state - the one way to change the state
 * @conn: locked
 * @expected: TCPF_* of the states in which this may happen
 * @state: TCP_*
 *
 * The socket, where there is one, shows the same state.
 */
void hps_conn_set_state(struct hps_conn *conn, int expected, u8 state)
{
	lockdep_assert_held(&conn->lock);
	WARN_ONCE(!((1 << conn->state) & expected),
		  "state %u to %u not expected\n", conn->state, state);
	conn->state = state;
	if (conn->sk)
		hps_sock_set_state(conn->sk, state);
}

static void hps_conn_wake(struct hps_conn *conn)
{
	if (conn->sk && !sock_flag(conn->sk, SOCK_DEAD))
		conn->sk->sk_state_change(conn->sk);
}

static bool hps_conn_finished(const struct hps_conn *conn)
{
	return conn->fin_rcvd && conn->fin_acked;
}

/* Orphans wait for the peer, but not for ever, or not at all: TCP_LINGER2. */
static void hps_conn_arm_orphan(struct hps_conn *conn)
{
	int secs = hps_orphan_timeout;

	if (conn->resetting)
		return;
	if (conn->state == TCP_FIN_WAIT2) {
		secs = conn->sk ? hps_sk(conn->sk)->linger2 : 0;
		secs = secs ? max(secs, 0) : hps_fin_timeout;
	}
	hps_conn_arm(conn, secs * HZ);
}

/* Nothing that the program sent, nor its end, waits here or is under way. */
static bool hps_conn_delivered(struct hps_conn *conn)
{
	if (conn->tx_unsent || conn->tx_unacked)
		return false;
	return !conn->fin_queued ||
	       (conn->fin_sent && conn->ops->tx_idle(conn));
}

/* Let the transport go once nothing of the connection is under way. */
static void hps_conn_check_finished(struct hps_conn *conn)
{
	if (conn->resetting) {
		if (hps_conn_delivered(conn))
			hps_conn_shut(conn, conn->err);
		return;
	}
	if (!hps_conn_finished(conn))
		return;
	if (conn->state != TCP_CLOSE) {
		hps_conn_set_state(conn, TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2 |
				   TCPF_CLOSING | TCPF_LAST_ACK, TCP_CLOSE);
		hps_conn_wake(conn);
	}
	if (!conn->finack_owed && conn->ops->tx_idle(conn))
		hps_conn_shut(conn, 0);
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
	conn->shut = true;
	conn->err = err;
	conn->ops->shut(conn);
}

/*
 * An orphan resets the connection, once the peer has what was sent before. A program
 * may answer and close without having read all of the question: TCP has given the
 * answer to the network before the reset, so that the peer reads it first. Here it
 * may still wait for a credit, or be offered.
 */
static void hps_conn_reset(struct hps_conn *conn, int err)
{
	if (conn->shut || conn->resetting)
		return;
	if (hps_conn_delivered(conn)) {
		hps_conn_shut(conn, err);
		return;
	}
	conn->resetting = true;
	conn->err = err;
	hps_conn_arm(conn, HPS_RESET_PATIENCE);
	conn->corked = false;
	hps_stream_push(conn);
	conn->ops->ask(conn);
}

/**
 * hps_conn_attach - give a connection to a socket
 * @conn: the connection; the caller's reference becomes the socket's
 * @sk: a socket without one, locked or not yet visible
 *
 * Context: process.
 * Return: 0, or -ENOBUFS when the socket's memory limits do not allow the receive
 * buffers; the reference then stays with the caller.
 */
int hps_conn_attach(struct hps_conn *conn, struct sock *sk)
{
	struct hps_sock *hsk = hps_sk(sk);
	u32 bytes = conn->ops->rx_mem(conn);

	if (!hps_sock_charge(sk, bytes, SK_MEM_RECV))
		return -ENOBUFS;
	hsk->rx_charged += bytes;

	spin_lock_bh(&conn->lock);
	rcu_assign_pointer(hsk->conn, conn);
	if (!conn->ended) {
		sock_hold(sk);
		conn->sk = sk;
	}
	hps_sock_set_state(sk, conn->state);
	if (conn->fin_rcvd)
		sk->sk_shutdown |= RCV_SHUTDOWN;
	if (conn->ended) {
		sk->sk_shutdown = SHUTDOWN_MASK;
		sk->sk_err = conn->err;
	}
	conn->user_timeout = msecs_to_jiffies(hsk->user_timeout);
	hps_probe_watch(conn);
	hps_probe_arm(conn);
	spin_unlock_bh(&conn->lock);
	return 0;
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

/*
 * One orphan more, which holds a queue pair and memory that no limit of its program's
 * counts any more. As with tcp_max_orphans, one too many is reset.
 */
static void hps_conn_count_orphan(struct hps_conn *conn)
{
	conn->counted = true;
	if (atomic_inc_return(&conn->hn->orphans) <=
	    READ_ONCE(hps_orphan_max)) {
		hps_conn_arm_orphan(conn);
		return;
	}
	if (!conn->shut)
		hps_stat_inc(conn->hn, ORPHAN_OVERFLOW);
	hps_conn_shut(conn, ECONNRESET);
}

/**
 * hps_conn_orphan - the program is through with the connection
 * @conn: the connection
 *
 * What is queued is still delivered and the close negotiated.
 *
 * Context: process, socket lock held.
 */
void hps_conn_orphan(struct hps_conn *conn)
{
	struct sock *sk = NULL;

	spin_lock_bh(&conn->lock);
	conn->orphan = true;
	if (conn->ended) {
		sk = conn->sk;
		conn->sk = NULL;
	} else {
		hps_conn_count_orphan(conn);
	}
	spin_unlock_bh(&conn->lock);
	if (sk)
		__sock_put(sk);
}

/**
 * hps_conn_drop - reset a connection and part it from its socket or queue
 * @conn: the connection; the caller has a reference and keeps it
 *
 * What was sent goes before the reset, see hps_conn_reset().
 *
 * Context: process.
 */
void hps_conn_drop(struct hps_conn *conn)
{
	struct sock *sk, *listener;

	spin_lock_bh(&conn->lock);
	sk = conn->sk;
	conn->sk = NULL;
	listener = conn->listener;
	conn->listener = NULL;
	conn->orphan = true;
	if (!conn->shut)
		hps_stat_inc(conn->hn, RESET_SENT);
	hps_conn_reset(conn, 0);
	spin_unlock_bh(&conn->lock);
	if (sk)
		sock_put(sk);
	if (listener)
		sock_put(listener);
}

/**
 * hps_conn_established - both ends are ready to send and receive
 * @conn: locked; local, peer and tx_msg_max are set
 *
 * An initiator's transport then sends something, the completion of which wakes who
 * waits in connect().
 */
void hps_conn_established(struct hps_conn *conn)
{
	struct sock *sk = conn->sk;
	u8 defer;

	lockdep_assert_held(&conn->lock);
	if (conn->shut)
		return;
	hps_conn_set_state(conn, TCPF_SYN_SENT | TCPF_SYN_RECV,
			   TCP_ESTABLISHED);
	conn->heard = jiffies;
	conn->tx_last = jiffies;
	conn->rx_last = jiffies;
	/* It has other purposes now; the transport has a reference. */
	if (timer_delete(&conn->timer))
		hps_conn_put(conn);
	if (conn->listener) {
		hps_stat_inc(conn->hn, ACCEPT);
		conn->confirmed = true;
		defer = READ_ONCE(hps_sk(conn->listener)->defer_accept);
		conn->deferred = defer;
		if (defer)
			hps_conn_arm(conn, hps_conn_open_time(defer - 1));
		else
			hps_queue_ready(conn);
	} else if (sk) {
		hps_stat_inc(conn->hn, CONNECT);
		hps_port_rename(sk, &conn->local);
		hps_probe_arm(conn);
	}
}

/*
 * The peer has received our first message, so the connection is established there, too:
 * connect() may return. A connection that the program makes after that comes later at
 * the peer, in the order that TCP keeps between hosts that are near each other.
 */
static void hps_conn_confirm(struct hps_conn *conn)
{
	conn->confirmed = true;
	hps_conn_wake(conn);
	if (conn->sk)
		sk_wake_async(conn->sk, SOCK_WAKE_IO, POLL_OUT);
}

/* Tell the program that the connection is over; once. */
static void hps_conn_report(struct hps_conn *conn)
{
	struct sock *sk = conn->sk;

	conn->reported = true;
	if (conn->state == TCP_SYN_SENT)
		hps_stat_inc(conn->hn, CONNECT_FAILED);
	if (conn->err)
		WRITE_ONCE(sk->sk_err, conn->err);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	hps_conn_set_state(conn, ~0, TCP_CLOSE);
	sk->sk_state_change(sk);
	if (conn->err)
		sk_error_report(sk);
}

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
	last->stamp = buf->stamp;
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
		hps_stat_inc(conn->hn, ABORT_ON_DATA);
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
	if (buf->remote && !conn->rx_remote++)
		hps_fetch_expect(conn);
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
	if (sk && (here || hps_readable(sk, conn)))
		sk->sk_data_ready(sk);
	return 0;
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
	conn->fin_rcvd = true;
	conn->finack_owed = true;
	if (conn->deferred)
		hps_conn_undefer(conn);
	if (conn->state == TCP_ESTABLISHED)
		hps_conn_set_state(conn, TCPF_ESTABLISHED, TCP_CLOSE_WAIT);
	else if (conn->state == TCP_FIN_WAIT1)
		hps_conn_set_state(conn, TCPF_FIN_WAIT1, TCP_CLOSING);
	if (sk) {
		WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | RCV_SHUTDOWN);
		hps_conn_wake(conn);
		if (!sock_flag(sk, SOCK_DEAD))
			sk_wake_async(sk, SOCK_WAKE_WAITD,
				      sk->sk_shutdown == SHUTDOWN_MASK ?
				      POLL_HUP : POLL_IN);
	}
	hps_stream_push(conn);
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
	conn->fin_acked = true;
	if (conn->state == TCP_FIN_WAIT1) {
		hps_conn_set_state(conn, TCPF_FIN_WAIT1, TCP_FIN_WAIT2);
		if (conn->orphan)
			hps_conn_arm_orphan(conn);
		hps_conn_wake(conn);
	}
	hps_conn_check_finished(conn);
	return 0;
}

/* A send buffer is not needed any more; its charge is dropped by and by. */
static void hps_conn_free_buf(struct hps_conn *conn, struct hps_buf *buf)
{
	list_del(&buf->list);
	atomic_add(buf->size, &conn->done_mem);
	hps_buf_free(buf);
}

/**
 * hps_conn_tx_done - a message with data has been delivered, or never will be
 * @conn: locked
 * @buf: where its payload is
 * @len: payload bytes
 *
 * The buffer may be gone afterwards.
 */
void hps_conn_tx_done(struct hps_conn *conn, struct hps_buf *buf, u32 len)
{
	lockdep_assert_held(&conn->lock);
	buf->done += len;
	conn->tx_unacked -= len;
	conn->progress = jiffies;
	atomic_add(len, &conn->done_bytes);
	/* An orphan gets more time when data is delivered, not when a probe is answered. */
	if (conn->orphan && !conn->shut)
		hps_conn_arm_orphan(conn);
	if (buf->done != buf->end || buf->busy || buf->start != buf->end)
		return;
	if (hps_buf_borrows(buf)) {
		/*
		 * Is the connection ending, its keys may be valid still. The teardown
		 * destroys them, and the buffer is freed after that.
		 */
		if (!conn->shut)
			hps_zerocopy_advance(conn);
		return;
	}
	/* One with room is still in txq, to be filled from its beginning again. */
	if (hps_conn_filled(conn, buf)) {
		/* It was made for shorter messages than there are by now. */
		if (buf->size < conn->tx_msg_max) {
			hps_conn_free_buf(conn, buf);
			return;
		}
		list_move(&buf->list, &conn->tx_spare);
	}
	buf->start = 0;
	buf->end = 0;
	buf->done = 0;
}

/**
 * hps_conn_tx_cut - bytes that are queued will not be sent
 * @conn: locked
 * @buf: a buffer of ours in txq, not busy, of which nothing is posted any more; it may
 *	be gone afterwards
 */
void hps_conn_tx_cut(struct hps_conn *conn, struct hps_buf *buf)
{
	lockdep_assert_held(&conn->lock);
	atomic_add(buf->end - buf->start, &conn->done_bytes);
	buf->end = buf->start;
	/* The first part may be under way still. */
	if (buf->done == buf->end)
		hps_conn_free_buf(conn, buf);
}

/**
 * hps_conn_set_msg_max - from now on a message has up to @max bytes
 * @conn: locked
 * @max: payload bytes
 */
void hps_conn_set_msg_max(struct hps_conn *conn, u32 max)
{
	struct hps_buf *buf, *next;

	lockdep_assert_held(&conn->lock);
	/* A writer looks at it without the lock. */
	WRITE_ONCE(conn->tx_msg_max, max);
	/* No message spans two buffers, so those of the old size would cut messages short. */
	list_for_each_entry_safe(buf, next, &conn->tx_spare, list)
		if (buf->size < max)
			hps_conn_free_buf(conn, buf);
}

/* Nothing is under way, and it may be long until the next send: keep no memory for it. */
static void hps_conn_free_spares(struct hps_conn *conn)
{
	struct hps_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &conn->tx_spare, list)
		hps_conn_free_buf(conn, buf);
	list_for_each_entry_safe(buf, next, &conn->txq, list)
		if (!buf->busy && buf->start == buf->end &&
		    buf->size > PAGE_SIZE)
			hps_conn_free_buf(conn, buf);
}

/**
 * hps_conn_tx_advanced - some messages have completed, perhaps all
 * @conn: locked
 *
 * Follows a run of hps_conn_tx_done().
 */
void hps_conn_tx_advanced(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->shut)
		return;
	if (unlikely(!conn->confirmed))
		hps_conn_confirm(conn);
	hps_stream_push(conn);
	if (!conn->tx_unacked)
		hps_conn_free_spares(conn);
	hps_conn_check_finished(conn);
	if (conn->sk && !conn->orphan)
		hps_sock_reap_soon(conn->sk, conn);
}

/*
 * The transport is gone, and with it what the peer has offered but not sent. That, and
 * what follows it in the stream, stays in the queue, does not count as readable any
 * more, and readers stop before it.
 */
static void hps_conn_lose(struct hps_conn *conn)
{
	struct hps_buf *buf;
	u32 lost = 0;

	list_for_each_entry(buf, &conn->rxq, list) {
		conn->rx_lost |= buf->remote;
		if (conn->rx_lost)
			lost += buf->end - buf->start;
	}
	/*
	 * rx_avail has no bytes that are in rx_drop. In an offer they are only if the peer
	 * breaks the rules: it must not make the count negative.
	 */
	lost = min_t(u32, lost, atomic_read(&conn->rx_avail));
	atomic_sub(lost, &conn->rx_avail);
	/* Nor can the peer take anything back. */
	conn->rx_cancel = 0;
}

/* What a program is told about a connection that ended. */
static int hps_conn_final_error(const struct hps_conn *conn)
{
	if (hps_conn_finished(conn) && !conn->rx_lost)
		return 0;
	if (conn->err)
		return conn->err;
	/* As tcp_reset(): the program knows already that the peer has closed. */
	return conn->state == TCP_CLOSE_WAIT && !conn->rx_lost ? EPIPE :
								 ECONNRESET;
}

/**
 * hps_conn_why - what will a writer be told?
 * @conn: not locked, shut
 *
 * Context: any.
 * Return: negative errno.
 */
int hps_conn_why(struct hps_conn *conn)
{
	int err;

	spin_lock_bh(&conn->lock);
	err = hps_conn_final_error(conn);
	spin_unlock_bh(&conn->lock);
	return -(err ?: EPIPE);
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
	dev = dev_get_by_index_rcu(conn->net, conn->dif);
	if (dev)
		mtu = READ_ONCE(dev->mtu);
	rcu_read_unlock();
	return mtu;
}

/**
 * hps_conn_end - the transport is gone, nothing more will come or go
 * @conn: not locked
 *
 * To be called once. Send and receive buffers are unmapped by then.
 *
 * Context: process, may sleep.
 */
void hps_conn_end(struct hps_conn *conn)
{
	struct sock *sk = NULL, *listener = NULL;
	bool unarmed;

	spin_lock_bh(&conn->lock);
	conn->shut = true;
	conn->ended = true;
	if (conn->counted)
		atomic_dec(&conn->hn->orphans);
	WRITE_ONCE(conn->tx_hold, false);
	hps_conn_lose(conn);
	conn->err = hps_conn_final_error(conn);
	if (conn->listener &&
	    (conn->state == TCP_SYN_RECV || conn->deferred)) {
		/* Never got ready; a ready one stays for accept() to see. */
		conn->deferred = false;
		hps_queue_remove(conn);
		swap(listener, conn->listener);
	}
	if (conn->state == TCP_SYN_SENT && conn->sk &&
	    hps_connect_again(conn->sk, conn->tries)) {
		swap(sk, conn->sk);
	} else if (conn->sk && !conn->orphan) {
		if (!conn->reported)
			hps_conn_report(conn);
	} else {
		hps_conn_set_state(conn, ~0, TCP_CLOSE);
		swap(sk, conn->sk);
	}
	spin_unlock_bh(&conn->lock);

	hps_wake(&conn->tx_hold);
	hps_probe_cancel(conn);
	hps_fetch_cancel(conn);
	unarmed = timer_delete_sync(&conn->timer);
	if (unarmed)
		hps_conn_put(conn);
	if (sk)
		sock_put(sk);
	if (listener)
		sock_put(listener);
}
