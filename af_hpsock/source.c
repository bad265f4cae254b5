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
 *   revoked	nobody. The pages go back to where they are from, as bytes of a DATA
 *		that was delivered
 *
 * A connection that ends stops there and then: its keys are destroyed when its queue
 * pair is drained, the pages are given back after that.
 *
 * No more than hps_link.tx_offers_max are offered at a time, as for each a READDONE may
 * come, for which a receive is posted beyond those of receives.c's rule. These, and
 * the keys, are there from the first time on that something is lent; a connection that
 * never does so has none.
 */
#include <linux/random.h>
#include <rdma/mr_pool.h>

#include "conn.h"
#include "device.h"
#include "dma.h"
#include "lent.h"
#include "link.h"
#include "source.h"
#include "work.h"

/* A key of the pool, or another one; NULL if the device has no more. */
static struct ib_mr *hps_source_mr(struct hps_link *link)
{
	struct ib_qp *qp = link->id->qp;
	struct ib_mr *mr = ib_mr_pool_get(qp, &link->tx_mrs);
	LIST_HEAD(fresh);

	if (mr || ib_mr_pool_init(qp, &fresh, 1, IB_MR_TYPE_MEM_REG,
				  link->tx_mr_pages, 0))
		return mr;
	return ib_mr_pool_get(qp, &fresh);
}

/*
 * Addresses tell where a byte is in its page, and nothing of where the page is. A key is
 * good for the peers of all connections of the device, which cannot guess the address.
 */
static int hps_source_map(struct hps_link *link, struct hps_source *source)
{
	struct ib_mr *mr = source->mr;
	int nents = source->sgt.nents;

	if (ib_map_mr_sg(mr, source->sgt.sgl, nents, NULL, PAGE_SIZE) != nents)
		return -EINVAL;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	mr->iova = (u64)get_random_u32() << 32 | offset_in_page(mr->iova);
	return 0;
}

/* Returns 0 or a negative errno, with nothing left mapped. */
static int hps_source_register(struct hps_link *link, struct hps_source *source)
{
	struct ib_device *ibdev = link->dev->ibdev;
	struct hps_lent *lent = source->lent;
	int err;

	err = sg_alloc_table_from_pages(&source->sgt, lent->pages, lent->nr,
					lent->off, lent->len, GFP_KERNEL);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(ibdev, &source->sgt, DMA_TO_DEVICE, 0);
	if (err)
		goto free_table;
	err = -ENOMEM;
	source->mr = hps_source_mr(link);
	if (!source->mr)
		goto unmap;
	err = hps_source_map(link, source);
	if (!err)
		return 0;
	ib_mr_pool_put(link->id->qp, &link->tx_mrs, source->mr);
	source->mr = NULL;
unmap:
	ib_dma_unmap_sgtable_attrs(ibdev, &source->sgt, DMA_TO_DEVICE, 0);
free_table:
	sg_free_table(&source->sgt);
	return err;
}

static void hps_source_unmap(struct hps_dma *dma)
{
	struct hps_source *source = hps_source(&dma->buf);

	WARN_ON_ONCE(source->mr);	/* I7 */
	ib_dma_unmap_sgtable_attrs(dma->ibdev, &source->sgt, DMA_TO_DEVICE, 0);
}

/* hps_buf.release: also gives the pages back. */
static void hps_source_release(struct hps_buf *buf)
{
	struct hps_source *source = hps_source(buf);

	hps_dma_unmap(buf);
	sg_free_table(&source->sgt);
	hps_lent_put(source->lent);
}

/**
 * hps_source_new - a send buffer of pages that the peer reads
 * @link: entered
 * @lent: the pages; the buffer's, if there is one
 *
 * Context: process, may sleep.
 * Return: the buffer, with a key, or NULL.
 */
struct hps_source *hps_source_new(struct hps_link *link,
				  struct hps_lent *lent)
{
	struct hps_source *source = hps_buf_shell(sizeof(*source), lent->len,
						  GFP_KERNEL);

	if (!source)
		return NULL;
	INIT_LIST_HEAD(&source->node);
	source->lent = lent;
	if (hps_source_register(link, source)) {
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
 * hps_source_revoked - its key was invalidated
 * @link: locked
 * @source: the source; its pages are nobody's business any more
 */
void hps_source_revoked(struct hps_link *link, struct hps_source *source)
{
	struct hps_conn *conn = &link->conn;

	lockdep_assert_held(&link->conn.lock);
	ib_mr_pool_put(link->id->qp, &link->tx_mrs, source->mr);
	source->mr = NULL;
	if (!source->lent->waited)
		return;
	WRITE_ONCE(conn->tx_waited, conn->tx_waited - 1);
	hps_wake(&conn->tx_waited);
}

static void hps_source_end_list(struct hps_link *link, struct list_head *list)
{
	struct hps_buf *buf;

	list_for_each_entry(buf, list, list)
		if (buf->lent && hps_source(buf)->mr)
			hps_source_revoked(link, hps_source(buf));
}

/**
 * hps_source_end - destroy all keys
 * @link: whose queue pair is drained and about to go
 *
 * Context: process, may sleep.
 */
void hps_source_end(struct hps_link *link)
{
	spin_lock_bh(&link->conn.lock);
	hps_source_end_list(link, &link->conn.txq);
	hps_source_end_list(link, &link->conn.tx_flight);
	spin_unlock_bh(&link->conn.lock);
	ib_mr_pool_destroy(link->id->qp, &link->tx_mrs);
}
