// SPDX-License-Identifier: GPL-2.0
/*
 * Keys: with one the peer reads what a send has lent (source.c), or writes to where a
 * reader waits (target.c). A key is good for exactly these bytes, from REG_MR on until it is
 * invalidated, which has to be before they are anybody else's. With another it asks at a
 * word (rendezvous.c); that one is good until the connection ends.
 *
 * Memory regions are kept for the next key, those of a connection together, in two pools:
 * one is for what is lent, which may be much that is queued. There a source has a region
 * only while it is offered, so there are no more of these than offers at a time. The other
 * is for a reader's memory and for the word: as many as were in use at a time, two at most.
 * All are destroyed before the queue pair, when that is drained. Nobody is charged for them.
 *
 * The end of a queue pair does not make its keys invalid: they are of the device's protection
 * domain, and a peer that has another connection can use them there until they are
 * destroyed.
 */
#include <linux/random.h>
#include <rdma/mr_pool.h>

#include "buf.h"
#include "device.h"
#include "key.h"
#include "link.h"

/*
 * Addresses tell where a byte is in its page, and nothing of where the page is. A key is
 * good for the peers of all connections of the device, which cannot guess the address.
 */
static int hps_key_fill(struct hps_key *key)
{
	struct ib_mr *mr = key->mr;
	int nents = key->sgt.nents;

	if (ib_map_mr_sg(mr, key->sgt.sgl, nents, NULL, PAGE_SIZE) != nents)
		return -EINVAL;
	ib_update_fast_reg_key(mr, ib_inc_rkey(mr->rkey));
	mr->iova = (u64)get_random_u32() << 32 | offset_in_page(mr->iova);
	return 0;
}

/**
 * hps_key_add - another memory region for a pool
 * @link: entered
 * @pool: of the link
 *
 * Context: process, may sleep.
 * Return: 0, or a negative errno if the device has no more.
 */
int hps_key_add(struct hps_link *link, struct list_head *pool)
{
	struct ib_qp *qp = link->id->qp;
	LIST_HEAD(fresh);
	int err;

	/* When this fails all that are in the list are destroyed. */
	err = ib_mr_pool_init(qp, &fresh, 1, IB_MR_TYPE_MEM_REG, link->tx_mr_pages, 0);
	if (!err)
		ib_mr_pool_put(qp, pool, ib_mr_pool_get(qp, &fresh));
	return err;
}

/*
 * Can one key cover it? That is told of pages, so only its two ends may lie within one. An
 * IOMMU and a device that reaches all memory see to that; where it is copied to other pages
 * for the device (swiotlb), each piece may begin elsewhere in its page.
 */
static bool hps_key_fits(const struct sg_table *sgt)
{
	struct scatterlist *sg;
	int i;

	for_each_sgtable_dma_sg(sgt, sg, i) {
		if (i && !PAGE_ALIGNED(sg_dma_address(sg)))
			return false;
		if (i + 1 < sgt->nents && !PAGE_ALIGNED(sg_dma_address(sg) + sg_dma_len(sg)))
			return false;
	}
	return true;
}

/**
 * hps_key_map - map memory for the device
 * @link: entered
 * @key: zeroed
 * @mem: its pages; no more than hps_link.tx_mr_pages, which do not go before
 *	hps_key_unmap()
 * @dir: what the device will do with it
 *
 * Context: process, may sleep.
 * Return: 0; -EINVAL if no key can cover it as it was mapped; or another negative errno; then
 * nothing is left mapped.
 */
int hps_key_map(struct hps_link *link, struct hps_key *key,
		const struct hps_pages *mem, enum dma_data_direction dir)
{
	int err;

	err = sg_alloc_table_from_pages(&key->sgt, mem->pages, mem->nr,
					mem->off, mem->len, GFP_KERNEL);
	if (err)
		return err;
	err = ib_dma_map_sgtable_attrs(link->dev->ibdev, &key->sgt, dir, 0);
	if (err) {
		sg_free_table(&key->sgt);
		return err;
	}
	if (hps_key_fits(&key->sgt))
		return 0;
	hps_key_unmap(key, link->dev->ibdev, dir);
	return -EINVAL;
}

/**
 * hps_key_choose - choose a key for memory that is mapped
 * @link: with a queue pair
 * @key: mapped
 * @pool: of the link
 *
 * Context: any.
 * Return: 0, -EAGAIN if all of the pool are in use, or -EINVAL.
 */
int hps_key_choose(struct hps_link *link, struct hps_key *key, struct list_head *pool)
{
	int err;

	key->mr = ib_mr_pool_get(link->id->qp, pool);
	if (!key->mr)
		return -EAGAIN;
	key->pool = pool;
	err = hps_key_fill(key);
	if (err)
		hps_key_put(link, key);
	return err;
}

/**
 * hps_key_make - map memory for the device, and choose a key for it
 * @link: entered
 * @key: zeroed
 * @mem: its pages; no more than hps_link.tx_mr_pages, which do not go before
 *	hps_key_unmap()
 * @dir: what the device will do with it
 *
 * Context: process, may sleep.
 * Return: 0 or a negative errno, with nothing left mapped.
 */
int hps_key_make(struct hps_link *link, struct hps_key *key,
		 const struct hps_pages *mem, enum dma_data_direction dir)
{
	int err = hps_key_map(link, key, mem, dir);

	if (err)
		return err;
	err = hps_key_choose(link, key, &link->mrs);
	if (err == -EAGAIN)
		err = hps_key_add(link, &link->mrs) ?: hps_key_choose(link, key, &link->mrs);
	if (err)
		hps_key_unmap(key, link->dev->ibdev, dir);
	return err;
}

/**
 * hps_key_put - it is not valid, or not any more
 * @link: with a queue pair
 * @key: made
 *
 * Context: any.
 */
void hps_key_put(struct hps_link *link, struct hps_key *key)
{
	ib_mr_pool_put(link->id->qp, key->pool, key->mr);
	key->mr = NULL;
}

/**
 * hps_key_unmap - take the memory from the device
 * @key: which hps_key_put() was called for
 * @ibdev: the device
 * @dir: as it was made
 *
 * Context: any.
 */
void hps_key_unmap(struct hps_key *key, struct ib_device *ibdev,
		   enum dma_data_direction dir)
{
	WARN_ON_ONCE(key->mr);	/* I7 */
	ib_dma_unmap_sgtable_attrs(ibdev, &key->sgt, dir, 0);
	sg_free_table(&key->sgt);
}

/**
 * hps_key_destroy - destroy all memory regions
 * @link: whose queue pair is drained and about to go; hps_key_put() was called for each
 *	key
 *
 * Context: process, may sleep.
 */
void hps_key_destroy(struct hps_link *link)
{
	ib_mr_pool_destroy(link->id->qp, &link->tx_mrs);
	ib_mr_pool_destroy(link->id->qp, &link->mrs);
}
