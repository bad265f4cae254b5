// SPDX-License-Identifier: GPL-2.0
/*
 * The connections of a listening socket.
 *
 * A request takes its place in the backlog before anything is built for it
 * (hps_queue_reserve()), is moved from pending to ready when established, and
 * leaves by accept(), by failing on the way, or when the socket stops
 * listening. Whoever takes a connection off a queue has its reference.
 *
 * Peers that ask and then say nothing must not keep others out: where the backlog is
 * full, a request that has waited for its peer for a while makes room for a new one.
 */
#include <net/sock.h>
#include <net/tcp_states.h>

#include "conn.h"
#include "net.h"
#include "queue.h"
#include "sock.h"

/*
 * How long a request keeps its place whoever else comes: TCP would have answered it twice
 * by then. Who means well needs that long only on a busy computer.
 */
#define HPS_QUEUE_PATIENCE	(3 * HZ)

/**
 * hps_queue_reserve - a place in the backlog for a request
 * @listener: a listening socket; a reference is taken on success
 * @conn: the connection made for it, in TCP_SYN_RECV; on success the caller's
 *	reference is the queue's
 *
 * Context: any.
 * Return: 0, -EAGAIN when the backlog is full, -ECONNREFUSED when the socket does
 * not listen any more, or not at that port.
 */
int hps_queue_reserve(struct sock *listener, struct hps_conn *conn)
{
	struct hps_accept_queue *queue = &hps_sk(listener)->queue;
	int err = 0;

	spin_lock_bh(&queue->lock);
	/* It may listen anew, elsewhere, since it was found. */
	if (!queue->open || hps_sk(listener)->local.port != conn->local.port) {
		err = -ECONNREFUSED;
	} else if (sk_acceptq_is_full(listener)) {
		err = -EAGAIN;
	} else {
		sk_acceptq_added(listener);
		sock_hold(listener);
		conn->listener = listener;
		WRITE_ONCE(conn->heard, jiffies);
		list_add_tail(&conn->accept_node, &queue->pending);
	}
	spin_unlock_bh(&queue->lock);
	return err;
}

/**
 * hps_queue_ready - a request is established and may be accepted
 * @conn: locked, with a listener
 */
void hps_queue_ready(struct hps_conn *conn)
{
	struct sock *listener = conn->listener;
	struct hps_accept_queue *queue = &hps_sk(listener)->queue;

	lockdep_assert_held(&conn->lock);
	spin_lock(&queue->lock);
	/* Not in a queue: the listener is closing and about to drop it. */
	if (!list_empty(&conn->accept_node)) {
		list_move_tail(&conn->accept_node, &queue->ready);
		listener->sk_data_ready(listener);
	}
	spin_unlock(&queue->lock);
}

/**
 * hps_queue_remove - a request failed before it was established
 * @conn: locked, with a listener; not freed by this, the transport has another
 *	reference
 *
 * Return: true if it was in a queue.
 */
bool hps_queue_remove(struct hps_conn *conn)
{
	struct hps_accept_queue *queue = &hps_sk(conn->listener)->queue;
	bool queued;

	lockdep_assert_held(&conn->lock);
	spin_lock(&queue->lock);
	queued = !list_empty(&conn->accept_node);
	if (queued) {
		list_del_init(&conn->accept_node);
		sk_acceptq_removed(conn->listener);
	}
	spin_unlock(&queue->lock);
	if (queued)
		hps_conn_put(conn);
	return queued;
}

/*
 * The oldest request whose peer has not gone on for too long, referenced, or NULL. One that
 * TCP_DEFER_ACCEPT holds back is established.
 */
static struct hps_conn *hps_queue_stale(struct hps_accept_queue *queue)
{
	struct hps_conn *conn, *stale = NULL;

	spin_lock_bh(&queue->lock);
	list_for_each_entry(conn, &queue->pending, accept_node) {
		if (READ_ONCE(conn->state) != TCP_SYN_RECV)
			continue;
		if (time_after_eq(jiffies, READ_ONCE(conn->heard) + HPS_QUEUE_PATIENCE)) {
			hps_conn_get(conn);
			stale = conn;
		}
		break;
	}
	spin_unlock_bh(&queue->lock);
	return stale;
}

/**
 * hps_queue_make_room - the backlog is full: drop a request that does not go on
 * @listener: a listening socket
 *
 * Context: process.
 * Return: whether there was one, so that another may have its place.
 */
bool hps_queue_make_room(struct sock *listener)
{
	struct hps_conn *conn;
	bool dropped = false;

	while (!dropped && (conn = hps_queue_stale(&hps_sk(listener)->queue))) {
		spin_lock_bh(&conn->lock);
		/* Its peer may have spoken, or somebody else have taken it, meanwhile. */
		dropped = conn->state == TCP_SYN_RECV && conn->listener &&
			  hps_queue_remove(conn);
		if (dropped && !conn->shut)
			hps_stat_inc(conn->hn, HPS_STAT_HALF_OPEN_DROPPED);
		if (dropped)
			hps_conn_shut(conn, ETIMEDOUT);
		spin_unlock_bh(&conn->lock);
		hps_conn_put(conn);
	}
	return dropped;
}

/**
 * hps_queue_pop - take a connection off a queue
 * @sk: a socket that listens, or has until now
 * @pending: if none is ready, one that is on its way; in one hold of the lock, as it may
 *	get ready between two looks
 *
 * Context: any.
 * Return: the first one, and its reference, or NULL.
 */
struct hps_conn *hps_queue_pop(struct sock *sk, bool pending)
{
	struct hps_accept_queue *queue = &hps_sk(sk)->queue;
	struct hps_conn *conn;

	spin_lock_bh(&queue->lock);
	conn = list_first_entry_or_null(&queue->ready, struct hps_conn, accept_node);
	if (!conn && pending)
		conn = list_first_entry_or_null(&queue->pending, struct hps_conn,
						accept_node);
	if (conn) {
		list_del_init(&conn->accept_node);
		sk_acceptq_removed(sk);
	}
	spin_unlock_bh(&queue->lock);
	return conn;
}

/**
 * hps_queue_has_ready - can a connection be accepted at once?
 * @sk: a listening socket
 *
 * Context: any; a snapshot.
 * Return: whether one is ready.
 */
bool hps_queue_has_ready(struct sock *sk)
{
	return !list_empty(&hps_sk(sk)->queue.ready);
}

/**
 * hps_queue_count_ready - how many connections can be accepted at once?
 * @sk: a listening socket
 *
 * Those on their way have a place in the backlog as well, where with TCP none has that is not
 * established; so sk_ack_backlog is more.
 *
 * Context: any.
 * Return: a number, as in tcp_info of a socket of TCP that listens.
 */
u32 hps_queue_count_ready(struct sock *sk)
{
	struct hps_accept_queue *queue = &hps_sk(sk)->queue;
	struct hps_conn *conn;
	u32 count = 0;

	spin_lock_bh(&queue->lock);
	list_for_each_entry(conn, &queue->ready, accept_node)
		count++;
	spin_unlock_bh(&queue->lock);
	return count;
}
