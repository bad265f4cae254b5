// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of the messages that stream.c gave to the transport: their bytes are
 * delivered, and the buffers are free.
 */
#include <net/sock.h>

#include "compat.h"
#include "conn.h"
#include "conn_life.h"
#include "conn_tx.h"
#include "sock.h"
#include "stream.h"
#include "zerocopy.h"

/* How long spare buffers are kept when there is nothing under way */
#define HPS_SPARE_KEEP	(HZ / 4)

/* A send buffer is not needed any more; its charge is dropped by and by. */
static void hps_conn_free_buf(struct hps_conn *conn, struct hps_buf *buf)
{
	list_del(&buf->list);
	atomic_add(buf->size, &conn->done_mem);
	hps_buf_free(buf);
}

/* The connection has ended: what is in a send buffer, or on its way from there, never arrives. */
static void hps_conn_purge(struct hps_conn *conn, struct hps_buf *buf)
{
	atomic_add(buf->end - buf->done, &conn->done_bytes);
	hps_conn_free_buf(conn, buf);
}

/*
 * One with room in the queue that is too large to be kept for a program that is quiet, of
 * which nothing is under way.
 */
static bool hps_conn_spares(const struct hps_buf *buf)
{
	return !buf->busy && buf->start == buf->end && buf->done == buf->end &&
	       buf->size > PAGE_SIZE;
}

static void hps_conn_free_spares(struct hps_conn *conn)
{
	struct hps_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &conn->tx_spare, list)
		hps_conn_free_buf(conn, buf);
	list_for_each_entry_safe(buf, next, &conn->txq, list)
		if (hps_conn_spares(buf))
			hps_conn_free_buf(conn, buf);
}

/*
 * Nothing is under way. A program that sends in bursts has use for the memory at once: to
 * allocate it anew, and have it cleared, takes as long as to fill it. But it may be long
 * until the next send, and then it is kept for nobody.
 */
static void hps_conn_quiet(struct hps_conn *conn)
{
	if (conn->orphan || (conn->sk && sk_under_memory_pressure(conn->sk)))
		hps_conn_free_spares(conn);
	else if (!timer_pending(&conn->idle_timer) &&
		 (!list_empty(&conn->tx_spare) ||
		  (!list_empty(&conn->txq) &&
		   hps_conn_spares(list_last_entry(&conn->txq, struct hps_buf, list)))))
		hps_conn_arm(conn, &conn->idle_timer, HPS_SPARE_KEEP);
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
	WRITE_ONCE(conn->tx_unacked, conn->tx_unacked - len);
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
		buf->full = false;
		list_move(&buf->list, &conn->tx_spare);
	}
	hps_buf_empty(buf);
}

/**
 * hps_conn_tx_append - bytes of others follow those that are queued
 * @conn: locked
 * @buf: the bytes, as a buffer
 *
 * The last buffer with room cannot be filled further. If it is empty they pass it, so that
 * there is never more than one of these.
 */
void hps_conn_tx_append(struct hps_conn *conn, struct hps_buf *buf)
{
	struct hps_buf *last = NULL;

	lockdep_assert_held(&conn->lock);
	if (!list_empty(&conn->txq))
		last = list_last_entry(&conn->txq, struct hps_buf, list);
	if (last && last->done == last->end && !hps_buf_borrows(last)) {
		list_add_tail(&buf->list, &last->list);
		return;
	}
	if (last)
		last->full = true;
	list_add_tail(&buf->list, &conn->txq);
}

/**
 * hps_conn_tx_release - a writer lets go of a buffer
 * @conn: locked
 * @buf: busy, in a queue of @conn, with its end behind what was written; it may be gone
 *	afterwards
 */
void hps_conn_tx_release(struct hps_conn *conn, struct hps_buf *buf)
{
	lockdep_assert_held(&conn->lock);
	buf->busy = false;
	if (unlikely(conn->ended))
		hps_conn_purge(conn, buf);
	/* Nothing was written, and no completion will see to it. */
	else if (buf->start == buf->end && !conn->shut && !conn->tx_unacked)
		hps_conn_quiet(conn);
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
	/* The first part may be under way still, and others follow. */
	if (buf->done == buf->end)
		hps_conn_free_buf(conn, buf);
	else
		buf->full = true;
}

/**
 * hps_conn_tx_resize - from now on a message has up to @max bytes
 * @conn: locked
 * @max: payload bytes
 */
void hps_conn_tx_resize(struct hps_conn *conn, u32 max)
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

/**
 * hps_conn_tx_idle - was it quiet for long enough? Then spare buffers are freed
 * @conn: locked, not shut, no orphan; its idle_timer has expired
 */
void hps_conn_tx_idle(struct hps_conn *conn)
{
	long left = (long)(conn->progress + HPS_SPARE_KEEP - jiffies);

	lockdep_assert_held(&conn->lock);
	/* While something is under way its completion will see to it. */
	if (conn->tx_unacked)
		return;
	if (left > 0) {
		hps_conn_arm(conn, &conn->idle_timer, left);
		return;
	}
	hps_conn_free_spares(conn);
	if (conn->sk)
		hps_sock_reap_soon(conn->sk, conn);
}

/**
 * hps_conn_tx_orphan - nobody will send any more, large spare buffers are freed
 * @conn: locked, an orphan
 *
 * Those of what is under way follow when it has completed.
 */
void hps_conn_tx_orphan(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	hps_conn_free_spares(conn);
	if (conn->sk)
		hps_sock_reap_soon(conn->sk, conn);
}

/**
 * hps_conn_tx_end - nothing will be sent any more, send buffers are freed
 * @conn: locked, ended
 *
 * The socket may stay open for long. A buffer that a writer is filling just now is freed
 * when the writer lets go of it.
 */
void hps_conn_tx_end(struct hps_conn *conn)
{
	struct list_head *lists[] = { &conn->txq, &conn->tx_flight, &conn->tx_spare };
	struct hps_buf *buf, *next;
	int i;

	lockdep_assert_held(&conn->lock);
	for (i = 0; i < ARRAY_SIZE(lists); i++) {
		list_for_each_entry_safe(buf, next, lists[i], list) {
			if (!buf->busy)
				hps_conn_purge(conn, buf);
		}
	}
	if (conn->sk)
		hps_sock_reap_soon(conn->sk, conn);
}

/*
 * The peer has received our first message, so the connection is established there, too:
 * connect() may return. A connection that the program makes after that comes later at
 * the peer, in the order that TCP keeps between hosts that are near each other.
 */
static void hps_conn_confirm(struct hps_conn *conn)
{
	WRITE_ONCE(conn->confirmed, true);
	hps_conn_wake(conn);
	if (conn->sk)
		sk_wake_async(conn->sk, SOCK_WAKE_IO, POLL_OUT);
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
		hps_conn_quiet(conn);
	hps_conn_check_finished(conn);
	if (conn->sk)
		hps_sock_reap_soon(conn->sk, conn);
}
