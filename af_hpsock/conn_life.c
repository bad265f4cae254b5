// SPDX-License-Identifier: GPL-2.0
/*
 * How a connection begins and ends: conn.c has the rules.
 */
#include <net/tcp_states.h>

#include "compat.h"
#include "conn.h"
#include "conn_life.h"
#include "conn_tx.h"
#include "fetch.h"
#include "net.h"
#include "orphan.h"
#include "param.h"
#include "port.h"
#include "probe.h"
#include "queue.h"
#include "retry.h"
#include "sock.h"
#include "stream.h"
#include "work.h"

/*
 * How long a reset waits until the peer has what the program sent before it: more than
 * twice the time after which the peer's kernel reads what it is offered
 * (HPS_FETCH_PATIENCE in fetch.c).
 */
#define HPS_RESET_PATIENCE	(HZ / 2)

/* And how long until the peer has finished the handshake: see HPS_QUEUE_PATIENCE. */
#define HPS_OPEN_PATIENCE	(3 * HZ)

/* Have both directions come to their end? */
static bool hps_conn_finished(const struct hps_conn *conn)
{
	return conn->fin_rcvd && conn->fin_acked;
}

/**
 * hps_conn_undefer - TCP_DEFER_ACCEPT need not wait any longer
 * @conn: locked, deferred
 */
void hps_conn_undefer(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	conn->deferred = false;
	hps_conn_disarm(conn, &conn->opening_timer);
	/* Not if it is dropped, with its listener. */
	if (conn->listener)
		hps_queue_ready(conn);
}

static void hps_conn_opening_timer(struct timer_list *t)
{
	struct hps_conn *conn = from_timer(conn, t, opening_timer);

	spin_lock(&conn->lock);
	/* Armed anew while this waited: TCP_DEFER_ACCEPT follows the handshake. */
	if (timer_pending(&conn->opening_timer))
		goto unlock;
	if (conn->deferred)
		hps_conn_undefer(conn);
	else if (hps_conn_opening(conn))
		hps_conn_shut(conn, ETIMEDOUT);
unlock:
	spin_unlock(&conn->lock);
	hps_conn_put(conn);
}

static void hps_conn_cork_timer(struct timer_list *t)
{
	struct hps_conn *conn = from_timer(conn, t, cork_timer);

	spin_lock(&conn->lock);
	if (!timer_pending(&conn->cork_timer))
		hps_stream_flush(conn);
	spin_unlock(&conn->lock);
	hps_conn_put(conn);
}

static void hps_conn_idle_timer(struct timer_list *t)
{
	struct hps_conn *conn = from_timer(conn, t, idle_timer);

	spin_lock(&conn->lock);
	/* It got more time while this waited. */
	if (timer_pending(&conn->idle_timer) || conn->shut)
		goto unlock;
	if (!conn->orphan) {
		hps_conn_tx_idle(conn);
		goto unlock;
	}
	if (!conn->resetting)
		hps_stat_inc(conn->hn, HPS_STAT_ORPHAN_TIMEOUT);
	hps_conn_shut(conn, conn->resetting ? conn->err : ETIMEDOUT);
unlock:
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
	timer_setup(&conn->opening_timer, hps_conn_opening_timer, 0);
	timer_setup(&conn->cork_timer, hps_conn_cork_timer, 0);
	timer_setup(&conn->idle_timer, hps_conn_idle_timer, 0);
	hps_probe_init(conn);
	hps_fetch_init(conn);
}

/**
 * hps_conn_arm_orphan - how long an orphan waits for the peer begins anew
 * @conn: locked, an orphan
 *
 * Not for ever, or not at all: TCP_LINGER2.
 */
void hps_conn_arm_orphan(struct hps_conn *conn)
{
	int secs = READ_ONCE(hps_orphan_timeout);

	lockdep_assert_held(&conn->lock);
	if (conn->resetting)
		return;
	if (conn->state == TCP_FIN_WAIT2) {
		secs = conn->sk ? READ_ONCE(hps_sk(conn->sk)->linger2) : 0;
		secs = secs ? max(secs, 0) : READ_ONCE(hps_fin_timeout);
	}
	hps_conn_arm(conn, &conn->idle_timer, secs * HZ);
}

/* Nothing that the program sent, nor its end, waits here or is under way. */
static bool hps_conn_delivered(struct hps_conn *conn)
{
	if (conn->tx_unsent || conn->tx_unacked)
		return false;
	return !conn->fin_queued ||
	       (conn->fin_sent && conn->ops->tx_idle(conn));
}

/**
 * hps_conn_limit_orphans - an orphan is reset if it is one too many
 * @conn: locked; to be called when it has become an orphan, or comes to FIN_WAIT2
 */
void hps_conn_limit_orphans(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (hps_orphan_count(conn))
		return;
	hps_stat_inc(conn->hn, HPS_STAT_ORPHAN_OVERFLOW);
	hps_conn_shut(conn, ECONNRESET);
}

/**
 * hps_conn_check_finished - let the transport go if nothing more is under way
 * @conn: locked
 */
void hps_conn_check_finished(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
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
 * hps_conn_reset - reset the connection, once the peer has what was sent before
 * @conn: locked, an orphan
 * @err: why, positive errno or 0, as for hps_conn_shut()
 *
 * A program may answer and close without having read all of the question: TCP has given
 * the answer to the network before the reset, so that the peer reads it first. Here it
 * may still wait for a credit, or be offered.
 *
 * A request that was answered is established first. Before, the peer would be told by a
 * REJ, which its ib_cm ignores where it overtakes the REP: the peer would think that it is
 * connected until its device has given up, 15 s on Linux 6.1.
 */
void hps_conn_reset(struct hps_conn *conn, int err)
{
	bool opening = conn->state == TCP_SYN_RECV;

	lockdep_assert_held(&conn->lock);
	if (conn->shut || conn->resetting)
		return;
	if (!opening && hps_conn_delivered(conn)) {
		hps_conn_shut(conn, err);
		return;
	}
	conn->resetting = true;
	conn->err = err;
	hps_conn_arm(conn, &conn->idle_timer, opening ? HPS_OPEN_PATIENCE : HPS_RESET_PATIENCE);
	if (opening)
		return;
	hps_stream_flush(conn);
	conn->ops->ask(conn);
}

/* From the listening socket to one of its own, in one step: options count of either. Locked. */
static struct sock *hps_conn_leave_queue(struct hps_conn *conn, struct sock *sk)
{
	struct sock *listener = conn->listener;

	if (!listener)
		return NULL;
	conn->listener = NULL;
	WRITE_ONCE(sk->sk_incoming_cpu, conn->rx_cpu);
	conn->tx_call = 0;
	return listener;
}

/**
 * hps_conn_attach - give a connection to a socket
 * @conn: the connection; the caller's reference becomes the socket's
 * @sk: a socket without one, locked or not yet visible
 *
 * Context: process.
 */
void hps_conn_attach(struct hps_conn *conn, struct sock *sk)
{
	struct hps_sock *hsk = hps_sk(sk);
	u32 bytes = conn->ops->rx_mem(conn);
	struct sock *listener;

	/*
	 * It is little, and there already, and what others have is no reason to be without a
	 * connection: nor is TCP's memory limit.
	 */
	if (!hps_sock_charge(sk, bytes, SK_MEM_RECV))
		sk_mem_charge(sk, bytes);
	hsk->rx_charged += bytes;
	hsk->rcv_seen = hps_sock_rcv_limit(sk);

	spin_lock_bh(&conn->lock);
	listener = hps_conn_leave_queue(conn, sk);
	rcu_assign_pointer(hsk->conn, conn);
	if (!conn->ended) {
		sock_hold(sk);
		conn->sk = sk;
	}
	if (conn->state == TCP_CLOSE)
		hps_port_close(sk);
	else
		hps_sock_set_state(sk, conn->state);
	if (conn->fin_rcvd)
		sk->sk_shutdown |= RCV_SHUTDOWN;
	if (conn->ended) {
		conn->reported = true;
		sk->sk_shutdown = SHUTDOWN_MASK;
		sk->sk_err = conn->err;
	}
	conn->user_timeout = msecs_to_jiffies(hsk->user_timeout);
	hps_probe_watch(conn);
	hps_probe_arm(conn);
	spin_unlock_bh(&conn->lock);
	if (listener)
		sock_put(listener);
}

/**
 * hps_conn_orphan - the program is through with the connection
 * @conn: locked
 *
 * What is queued is still delivered and the close negotiated.
 *
 * Context: process, socket lock held.
 */
void hps_conn_orphan(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	conn->orphan = true;
	if (conn->ended) {
		/* Not the last: close() has the file's. */
		if (conn->sk)
			__sock_put(conn->sk);
		conn->sk = NULL;
	} else {
		hps_conn_tx_orphan(conn);
		hps_conn_arm_orphan(conn);
		hps_conn_limit_orphans(conn);
	}
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
		hps_stat_inc(conn->hn, HPS_STAT_RESET_SENT);
	hps_conn_reset(conn, 0);
	if (!conn->ended)
		hps_conn_limit_orphans(conn);
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
	/* Who sees that it is connected may ask for its name, or change how that is told. */
	if (sk)
		hps_port_rename(sk, &conn->local);
	hps_conn_set_state(conn, TCPF_SYN_SENT | TCPF_SYN_RECV,
			   TCP_ESTABLISHED);
	WRITE_ONCE(conn->heard, jiffies);
	conn->tx_last = jiffies;
	conn->rx_last = jiffies;
	hps_conn_disarm(conn, &conn->opening_timer);
	if (conn->listener) {
		hps_stat_inc(conn->hn, HPS_STAT_ACCEPT);
		WRITE_ONCE(conn->confirmed, true);
		conn->rx_cpu = raw_smp_processor_id();
		defer = READ_ONCE(hps_sk(conn->listener)->defer_accept);
		conn->deferred = defer;
		if (defer)
			hps_conn_arm(conn, &conn->opening_timer,
				     hps_conn_retry_time(defer - 1));
		else
			hps_queue_ready(conn);
	} else if (conn->resetting) {
		hps_conn_shut(conn, conn->err);
	} else if (sk) {
		hps_stat_inc(conn->hn, HPS_STAT_CONNECT);
		sk_incoming_cpu_update(sk);
		hps_probe_arm(conn);
	}
}

/**
 * hps_conn_report - tell the program that the connection is over
 * @conn: locked, with a socket; once
 */
void hps_conn_report(struct hps_conn *conn)
{
	bool tell = conn->err && !conn->told;
	struct sock *sk = conn->sk;

	lockdep_assert_held(&conn->lock);
	WRITE_ONCE(conn->reported, true);
	/* Pairs with sock_error() before hps_record_cut_off(), and with hps_poll(). */
	smp_wmb();
	if (conn->state == TCP_SYN_SENT)
		hps_stat_inc(conn->hn, HPS_STAT_CONNECT_FAILED);
	if (tell)
		WRITE_ONCE(sk->sk_err, conn->err);
	/* Pairs with hps_poll_look(). */
	smp_wmb();
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	hps_conn_set_state(conn, ~0, TCP_CLOSE);
	sk->sk_state_change(sk);
	/* Also if somebody was told meanwhile. */
	if (tell)
		sk_error_report(sk);
}

/*
 * The transport has come to its end, and with it what the peer has offered but not sent. That, and
 * what follows it in the stream, stays in the queue, does not count as readable any
 * more, and readers stop before it.
 */
static void hps_conn_lose(struct hps_conn *conn)
{
	struct hps_buf *buf;
	u32 lost = 0;

	list_for_each_entry(buf, &conn->rxq, list) {
		if (buf->remote)
			WRITE_ONCE(conn->rx_lost, true);
		if (conn->rx_lost)
			lost += buf->end - buf->start;
	}
	/*
	 * rx_avail has no bytes that are in rx_drop. No urgent byte is in an offer, nor so one
	 * of these; but nothing shall make the count negative.
	 */
	lost = min_t(u32, lost, atomic_read(&conn->rx_avail));
	/* Pairs with hps_recv_next(): who finds nothing to read sees why. */
	atomic_sub_return_release(lost, &conn->rx_avail);
	/* Nor can the peer take anything back. */
	WRITE_ONCE(conn->rx_cancel, 0);
}

/*
 * What a program is told about a connection that ended. What the peer has only offered is
 * lost with it.
 */
static int hps_conn_final_error(const struct hps_conn *conn)
{
	if (hps_conn_finished(conn) && !conn->rx_remote)
		return 0;
	if (conn->err)
		return conn->err;
	/* As tcp_reset(): the program knows already that the peer has closed. */
	return conn->state == TCP_CLOSE_WAIT && !conn->rx_remote ? EPIPE :
								   ECONNRESET;
}

/**
 * hps_conn_why - tell a writer why the connection ends, before the teardown is done
 * @conn: not locked, shut
 *
 * Then the program knows, and it is not reported any more; or it was by now, and the caller's
 * sk_stream_error() takes it.
 *
 * Context: any.
 * Return: negative errno.
 */
int hps_conn_why(struct hps_conn *conn)
{
	int err;

	spin_lock_bh(&conn->lock);
	err = conn->told || conn->reported ? 0 : hps_conn_final_error(conn);
	conn->told = true;
	spin_unlock_bh(&conn->lock);
	return -(err ?: EPIPE);
}

/* Not locked; the caller has a reference. */
static void hps_conn_stop_timers(struct hps_conn *conn)
{
	struct timer_list *timers[] = {
		&conn->opening_timer, &conn->cork_timer, &conn->idle_timer,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(timers); i++)
		if (timer_delete_sync(timers[i]))
			hps_conn_put(conn);
}

/**
 * hps_conn_end - the transport has come to its end, nothing more will come or go
 * @conn: not locked
 *
 * To be called once. Send and receive buffers are unmapped by then. The transport's
 * reference lasts beyond it.
 *
 * Context: process, may sleep.
 */
void hps_conn_end(struct hps_conn *conn)
{
	struct sock *sk = NULL, *listener = NULL;

	spin_lock_bh(&conn->lock);
	WARN_ON_ONCE(conn->ended);	/* I2 */
	WRITE_ONCE(conn->shut, true);
	conn->ended = true;
	hps_orphan_count(conn);
	WRITE_ONCE(conn->tx_hold, false);
	hps_conn_tx_end(conn);
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
	    hps_retry_again(conn->sk, conn->tries)) {
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
	hps_conn_stop_timers(conn);
	if (sk)
		sock_put(sk);
	if (listener)
		sock_put(listener);
}
