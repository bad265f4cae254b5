// SPDX-License-Identifier: GPL-2.0
/*
 * Offers that are taken back (SDP's SrcAvailCancel): a send that waits until the
 * peer has read its bytes (wait.c) does not wait for ever.
 *
 *   sender                                 receiver
 *
 *   SRCCANCEL: the last n SRCAVAIL  --->   lets a read that is under way end, for
 *                                          which READDONE counts what it completes
 *                                          takes those that are left, and all behind
 *                                          them, off its queue
 *                                   <---   CANCELACK: so much of the first was read
 *   invalidates their keys; what was
 *   not read was never sent
 *
 * So it is the end of the stream that is taken back. From the first of these offers
 * on nobody else adds to it (hps_conn.tx_turn), and from SRCCANCEL to CANCELACK
 * nothing of it is posted (tx_hold).
 *
 * SRCCANCEL takes the receive that is there for FIN, which is not sent before the
 * answer, as it waits for tx_turn. CANCELACK has one of its own (target.c). Neither waits
 * for a credit, so it does not matter that nobody reads.
 */
#include "cancel.h"
#include "conn.h"
#include "conn_tx.h"
#include "lent.h"
#include "link.h"
#include "net.h"
#include "post.h"
#include "source.h"
#include "work.h"

/* Post what is due, when there is a slot: also after each completion. */
static void hps_cancel_push(struct hps_link *link)
{
	struct hps_srccancel cancel = { .count = cpu_to_be32(link->tx_cancel) };
	struct hps_cancelack ack = { .done = cpu_to_be32(link->rx_cancel_done) };
	struct hps_outgoing ask = {
		.type = HPS_MSG_SRCCANCEL, .payload = &cancel, .size = sizeof(cancel),
	};
	struct hps_outgoing answer = {
		.type = HPS_MSG_CANCELACK, .payload = &ack, .size = sizeof(ack),
	};

	if (link->tx_cancel && !link->tx_cancelling && !hps_post_control(link, &ask))
		link->tx_cancelling = true;
	/* Offers that were read completely are told of first, by READDONE. */
	if (link->rx_cancelled && list_empty(&link->receives.read) &&
	    !hps_post_control(link, &answer))
		link->rx_cancelled = false;
}

/**
 * hps_cancel_late - a slot is free: post what there was none for
 * @link: locked
 */
void hps_cancel_late(struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	if (unlikely(link->tx_cancel || link->rx_cancelled))
		hps_cancel_push(link);
}

/* An offer that was never posted: account for it as for one that was posted and is over. */
static void hps_cancel_source(struct hps_conn *conn, struct hps_buf *buf)
{
	WRITE_ONCE(conn->tx_unacked, conn->tx_unacked + buf->size);
	buf->start = buf->end;
	list_move_tail(&buf->list, &conn->tx_flight);
	hps_source_revoked(hps_link(conn), hps_source(buf));
	hps_conn_tx_done(conn, buf, buf->size);
}

/*
 * Take back what is queued and not posted, from the first offer of those on that the
 * send waits for, or @all. Returns how many bytes.
 */
static u32 hps_cancel_cut(struct hps_conn *conn, bool all)
{
	struct hps_buf *buf, *next;
	u32 bytes = 0, n;

	list_for_each_entry_safe(buf, next, &conn->txq, list) {
		n = buf->end - buf->start;
		all |= buf->lent && hps_source(buf)->lent->waited;
		if (!all || !n)
			continue;
		bytes += n;
		WRITE_ONCE(conn->tx_unsent, conn->tx_unsent - n);
		if (buf->lent)
			hps_cancel_source(conn, buf);
		else
			hps_conn_tx_cut(conn, buf);
	}
	return bytes;
}

/* Taking back is over, and has brought @bytes more: wake the send that waits for it. */
static void hps_cancel_end(struct hps_conn *conn, u32 bytes)
{
	conn->tx_back += bytes;
	hps_stat_add(conn->hn, HPS_STAT_TX_CANCELLED, bytes);
	WRITE_ONCE(conn->tx_hold, false);
	hps_wake(&conn->tx_hold);
}

/**
 * hps_cancel - hps_transport.cancel
 * @conn: locked, with tx_turn and tx_hold set
 *
 * Ends when tx_hold is cleared, perhaps later; tx_back then has the bytes that the peer
 * did not read.
 */
void hps_cancel(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);
	struct hps_source *source;
	u32 count = 0;

	lockdep_assert_held(&conn->lock);
	list_for_each_entry(source, &link->tx_sources, node)
		count += source->lent->waited;
	if (!count) {
		hps_cancel_end(conn, hps_cancel_cut(conn, false));
		return;
	}
	link->tx_cancel = count;
	hps_cancel_push(link);
}

/**
 * hps_cancel_acked - the peer does not read any more what it was to give back
 * @link: locked
 * @done: bytes that it has read of the first offer that it has not read completely
 *
 * Return: 0, or -EPROTO if it was not asked, or offered as many.
 */
int hps_cancel_acked(struct hps_link *link, u32 done)
{
	struct hps_conn *conn = &link->conn;
	struct hps_source *source, *next;
	bool some = false;
	u64 end = 0;
	u32 bytes;

	lockdep_assert_held(&link->conn.lock);
	if (!link->tx_cancelling)
		return -EPROTO;
	list_for_each_entry_safe(source, next, &link->tx_sources, node) {
		if (!source->lent->waited)
			continue;
		if (!some && done >= source->dma.buf.size)
			return -EPROTO;
		if (!some)
			end = source->at + done;
		some = true;
		link->tx_offers--;
		list_move_tail(&source->node, &link->tx_read);
	}
	if (!some && done)
		return -EPROTO;
	link->tx_cancel = 0;
	link->tx_cancelling = false;
	hps_source_revoke_all(link);
	bytes = hps_cancel_cut(conn, some);
	if (some) {
		bytes += conn->tx_bytes - end;
		WRITE_ONCE(conn->tx_bytes, end);
	}
	hps_cancel_end(conn, bytes);
	return 0;
}

/**
 * hps_cancel_answer - hps_transport.cancelled
 * @conn: locked
 * @done: bytes that were read of the first offer that is off the queue
 */
void hps_cancel_answer(struct hps_conn *conn, u32 done)
{
	struct hps_link *link = hps_link(conn);

	lockdep_assert_held(&conn->lock);
	link->rx_cancelled = true;
	link->rx_cancel_done = done;
	hps_cancel_push(link);
}
