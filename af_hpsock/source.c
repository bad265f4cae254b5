// SPDX-License-Identifier: GPL-2.0
/*
 * Bytes that the peer reads by RDMA instead of having them sent (SDP's SrcAvail).
 *
 * Life of a source, with who may reach the pages at that time:
 *
 *   queued	mapped for the device; in hps_conn.txq, in its place in the stream
 *   offered	REG_MR makes a key for these bytes alone, SRCAVAIL tells it: the peer
 *   read	READDONE counts it, and has invalidated the key; if it has not, we do
 *		(LOCAL_INV)
 *   written	in the place of the last two, if a reader at the peer shows memory for it:
 *		REG_MR, RDMA Write, WRITTEN. Nobody else reaches it; when WRITTEN has
 *		completed we invalidate the key
 *   revoked	nobody. The pages go back to where they are from, as bytes of a DATA
 *		that was delivered
 *
 * A connection that ends stops there and then: its keys are destroyed when its queue
 * pair is drained, the pages are given back after that.
 *
 * No more than hps_link.tx_offers_max are offered at a time, as for each a READDONE may
 * come, for which a receive is posted beyond those of receives.c's rule. These are there
 * from the first time on that something is lent; a connection that never does so has none.
 * Nor are there more memory regions: what is queued has none yet, however much that is.
 */
#include "conn.h"
#include "device.h"
#include "dma.h"
#include "lent.h"
#include "link.h"
#include "post.h"
#include "source.h"
#include "work.h"

static void hps_source_unmap(struct hps_dma *dma)
{
	hps_key_unmap(&hps_source(&dma->buf)->key, dma->ibdev, DMA_TO_DEVICE);
}

/* hps_buf.release: also gives the pages back, and what the socket was charged. */
static void hps_source_release(struct hps_buf *buf)
{
	struct hps_lent *lent = hps_source(buf)->lent;

	hps_dma_unmap(buf);
	atomic_add(lent->charged, &lent->conn->done_mem);
	hps_lent_put(lent);
}

/*
 * Is there a memory region for another source when it is its turn? There is one more as long
 * as so many could be offered at a time; if that cannot be had, the others go round.
 */
static bool hps_source_regions(struct hps_link *link)
{
	if (link->tx_regions < min(READ_ONCE(link->tx_lent) + 1, link->tx_offers_max) &&
	    !hps_key_add(link, &link->tx_mrs))
		link->tx_regions++;
	return link->tx_regions;
}

/**
 * hps_source_new - a send buffer of pages that the peer reads
 * @link: entered, its socket locked
 * @lent: the pages; the buffer's, if there is one
 *
 * Context: process, may sleep.
 * Return: the buffer, which gets a key when it is offered, or NULL.
 */
struct hps_source *hps_source_new(struct hps_link *link,
				  struct hps_lent *lent)
{
	struct hps_source *source;

	if (!hps_source_regions(link))
		return NULL;
	source = hps_buf_shell(sizeof(*source), lent->mem.len, GFP_KERNEL);
	if (!source)
		return NULL;
	INIT_LIST_HEAD(&source->node);
	source->lent = lent;
	if (hps_key_map(link, &source->key, &lent->mem, DMA_TO_DEVICE)) {
		hps_buf_free(&source->dma.buf);
		return NULL;
	}
	source->dma.buf.lent = true;
	source->dma.buf.release = hps_source_release;
	source->dma.unmap = hps_source_unmap;
	source->dma.ibdev = link->dev->ibdev;
	return source;
}

/**
 * hps_source_revoked - its key was invalidated, or it never was told
 * @link: locked
 * @source: the source; its pages are nobody's business any more
 */
void hps_source_revoked(struct hps_link *link, struct hps_source *source)
{
	struct hps_conn *conn = &link->conn;

	lockdep_assert_held(&link->conn.lock);
	if (source->key.mr)
		hps_key_put(link, &source->key);
	WRITE_ONCE(link->tx_lent, link->tx_lent - 1);
	if (!source->lent->waited)
		return;
	WRITE_ONCE(conn->tx_waited, conn->tx_waited - 1);
	hps_wake(&conn->tx_waited);
}

/**
 * hps_source_completed - WRITTEN or LOCAL_INV, which was posted last for a source
 * @link: locked
 * @source: the source
 *
 * After WRITTEN its key is one of those that hps_source_revoke_all() invalidates next.
 *
 * Return: true if it was WRITTEN, false if nothing is left to do.
 */
bool hps_source_completed(struct hps_link *link, struct hps_source *source)
{
	lockdep_assert_held(&link->conn.lock);
	if (!source->written)
		return false;
	source->written = false;
	list_add_tail(&source->node, &link->tx_read);
	return true;
}

/**
 * hps_source_revoke_all - invalidate keys that are not needed any more and were not by the
 *	peer
 * @link: locked
 *
 * As far as there are slots: when none is free this comes by again with the next
 * completion.
 */
void hps_source_revoke_all(struct hps_link *link)
{
	struct hps_source *source, *next;

	lockdep_assert_held(&link->conn.lock);
	list_for_each_entry_safe(source, next, &link->tx_read, node) {
		struct hps_buf *buf = &source->dma.buf;

		if (hps_post_invalidate(link, &source->key, buf, buf->size))
			return;
		list_del_init(&source->node);
	}
}

static void hps_source_put_list(struct hps_link *link, struct list_head *list)
{
	struct hps_buf *buf;

	list_for_each_entry(buf, list, list)
		if (buf->lent && hps_source(buf)->key.mr)
			hps_key_put(link, &hps_source(buf)->key);
}

/**
 * hps_source_put_keys - the keys are to be destroyed
 * @link: whose queue pair is drained
 *
 * Context: process.
 */
void hps_source_put_keys(struct hps_link *link)
{
	spin_lock_bh(&link->conn.lock);
	hps_source_put_list(link, &link->conn.txq);
	hps_source_put_list(link, &link->conn.tx_flight);
	spin_unlock_bh(&link->conn.lock);
}

/**
 * hps_source_end - they were: the pages are nobody's business any more
 * @link: whose queue pair is drained
 *
 * Context: process.
 */
void hps_source_end(struct hps_link *link)
{
	struct hps_conn *conn = &link->conn;

	spin_lock_bh(&conn->lock);
	WRITE_ONCE(conn->tx_waited, 0);
	spin_unlock_bh(&conn->lock);
	hps_wake(&conn->tx_waited);
}
