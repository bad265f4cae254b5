// SPDX-License-Identifier: GPL-2.0
/*
 * The connections of a listening socket.
 *
 * A request takes its place in the backlog before anything is built for it
 * (hps_queue_reserve()), is moved from pending to ready when established, and
 * leaves by accept(), by failing on the way, or when the socket stops
 * listening. Whoever takes a connection off a queue has its reference.
 */
#include <net/sock.h>

#include "conn.h"
#include "queue.h"
#include "sock.h"

/**
 * hps_queue_reserve - a place in the backlog for a request
 * @listener: a listening socket; a reference is taken on success
 * @conn: the connection made for it, in TCP_SYN_RECV; on success the caller's
 *	reference is the queue's
 *
 * Context: any.
 * Return: 0, -EAGAIN when the backlog is full, -ECONNREFUSED when the socket does
 * not listen any more.
 */
int hps_queue_reserve(struct sock *listener, struct hps_conn *conn)
{
	struct hps_accept_queue *queue = &hps_sk(listener)->queue;
	int err = 0;

	spin_lock_bh(&queue->lock);
	if (!queue->open) {
		err = -ECONNREFUSED;
	} else if (sk_acceptq_is_full(listener)) {
		err = -EAGAIN;
	} else {
		sk_acceptq_added(listener);
		sock_hold(listener);
		conn->listener = listener;
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
 */
void hps_queue_remove(struct hps_conn *conn)
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
}

/**
 * hps_queue_pop - take a connection off a queue
 * @sk: a socket that listens, or has until now
 * @list: of its queue, pending or ready
 *
 * Context: any.
 * Return: the first one, and its reference, or NULL.
 */
struct hps_conn *hps_queue_pop(struct sock *sk, struct list_head *list)
{
	struct hps_accept_queue *queue = &hps_sk(sk)->queue;
	struct hps_conn *conn;

	spin_lock_bh(&queue->lock);
	conn = list_first_entry_or_null(list, struct hps_conn, accept_node);
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
