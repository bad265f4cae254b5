// SPDX-License-Identifier: GPL-2.0
/*
 * Send buffers that are pages of others, and who is told when they are done with:
 * splice(2) has nobody told, MSG_ZEROCOPY the program, by the error queue, where sends
 * have numbers. TCP completes them in order, and so do we: pages wait for those that
 * were queued before them, which the peer may not have read yet; a send that was copied,
 * and so is complete at once, waits as a note.
 */
#include <linux/skbuff.h>
#include <linux/slab.h>

#include "compat.h"
#include "conn.h"
#include "conn_tx.h"
#include "stream.h"
#include "zerocopy.h"

struct hps_note {
	struct list_head list;		/* in hps_conn.tx_notes */
	struct ubuf_info *uarg;		/* referenced */
	u32 after;			/* so many buffers of pages, modulo 2^32 */
};

/**
 * hps_zerocopy_queue - pages are to be sent behind what is queued
 * @conn: locked; its teardown has not begun, or waits for the caller
 * @buf: the pages
 */
void hps_zerocopy_queue(struct hps_conn *conn, struct hps_buf *buf)
{
	struct hps_buf *head = conn->tx_head;

	lockdep_assert_held(&conn->lock);
	/* From now on it may be sent, and freed. */
	if (head) {
		conn->tx_head = NULL;
		head->busy = false;
		head->end += sizeof(struct hps_record);
		hps_stream_queued(conn, sizeof(struct hps_record));
	}
	hps_conn_tx_append(conn, buf);
	conn->tx_gathers++;
	hps_stream_queued(conn, buf->size);
}

static void hps_zerocopy_tell(struct hps_conn *conn)
{
	struct hps_note *note, *next;

	list_for_each_entry_safe(note, next, &conn->tx_notes, list) {
		if ((s32)(note->after - conn->tx_gathers_done) > 0)
			return;
		list_del(&note->list);
		net_zcopy_put(note->uarg);
		kfree(note);
	}
}

/* What of it was not delivered never will be. */
static void hps_zerocopy_done(struct hps_conn *conn, struct hps_buf *buf)
{
	atomic_add(buf->end - buf->done, &conn->done_bytes);
	if (buf->gather)
		atomic_add(buf->gather->charged, &conn->done_mem);
	list_del(&buf->list);
	hps_buf_free(buf);
	conn->tx_gathers_done++;
	hps_zerocopy_tell(conn);
}

/**
 * hps_zerocopy_advance - some pages are not needed any more
 * @conn: locked, not shut
 *
 * Those are given back that have no others before them.
 */
void hps_zerocopy_advance(struct hps_conn *conn)
{
	struct hps_buf *buf, *next;

	lockdep_assert_held(&conn->lock);
	list_for_each_entry_safe(buf, next, &conn->tx_flight, list) {
		if (!hps_buf_borrows(buf))
			continue;
		if (buf->done != buf->end)
			return;
		hps_zerocopy_done(conn, buf);
	}
}

/**
 * hps_zerocopy_copied - a send with MSG_ZEROCOPY was copied, in part or all of it
 * @conn: not locked
 * @uarg: the caller's; it has another reference if it has to wait for its turn
 *
 * Without memory for that it is complete before its turn, which may happen on TCP
 * too.
 *
 * Context: process, may sleep.
 */
void hps_zerocopy_copied(struct hps_conn *conn, struct ubuf_info *uarg)
{
	struct hps_note *note = kmalloc(sizeof(*note), GFP_KERNEL);

	if (!note)
		return;
	spin_lock_bh(&conn->lock);
	if (!conn->shut && conn->tx_gathers != conn->tx_gathers_done) {
		net_zcopy_get(uarg);
		note->uarg = uarg;
		note->after = conn->tx_gathers;
		list_add_tail(&note->list, &conn->tx_notes);
		note = NULL;
	}
	spin_unlock_bh(&conn->lock);
	kfree(note);
}

/**
 * hps_zerocopy_report - tell who made a @uarg of their own what became of a call's bytes
 * @uarg: the caller's
 * @borrowed: some are sent from where they are
 * @copied: some are not
 *
 * That is io_uring, which takes all as copied (IORING_SEND_ZC_REPORT_USAGE) unless an skb is
 * shown to it once, whatever is in that. When the pages are not needed any more is told later,
 * by net_zcopy_put().
 *
 * Context: any.
 */
void hps_zerocopy_report(struct ubuf_info *uarg, bool borrowed, bool copied)
{
	static struct sk_buff shown;

	if (borrowed) {
		net_zcopy_get(uarg);
		hps_zcopy_complete(uarg, &shown, true);
	}
	if (copied) {
		net_zcopy_get(uarg);
		hps_zcopy_complete(uarg, NULL, false);
	}
}

/**
 * hps_zerocopy_end - nothing will be sent any more
 * @conn: locked, shut; nothing is posted
 *
 * Who waits for pages is told, in order: what was posted comes first.
 */
void hps_zerocopy_end(struct hps_conn *conn)
{
	struct hps_buf *buf, *next;

	lockdep_assert_held(&conn->lock);
	list_for_each_entry_safe(buf, next, &conn->tx_flight, list)
		if (hps_buf_borrows(buf))
			hps_zerocopy_done(conn, buf);
	list_for_each_entry_safe(buf, next, &conn->txq, list)
		if (hps_buf_borrows(buf))
			hps_zerocopy_done(conn, buf);
}
