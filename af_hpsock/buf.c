// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that a device can reach: mapped once when allocated, so that a message
 * costs a cache synchronisation at most.
 *
 * Receive buffers are the module's own memory, lent to peers in the form of
 * credits. The tunable mem_max_kb caps the sum of them over all connections.
 */
#include <linux/atomic.h>
#include <linux/slab.h>

#include "buf.h"
#include "param.h"

static atomic64_t hps_buf_reserved = ATOMIC64_INIT(0);

/**
 * hps_buf_reserve - take from what all receive buffers together may use
 * @bytes: how much
 *
 * Context: any. Return: false if that is more than is left.
 */
bool hps_buf_reserve(u64 bytes)
{
	u64 max = (u64)READ_ONCE(hps_mem_max_kb) << 10;

	if (atomic64_add_return(bytes, &hps_buf_reserved) <= max)
		return true;
	atomic64_sub(bytes, &hps_buf_reserved);
	return false;
}

/**
 * hps_buf_unreserve - give back what hps_buf_reserve() took
 * @bytes: how much
 *
 * Context: any.
 */
void hps_buf_unreserve(u64 bytes)
{
	atomic64_sub(bytes, &hps_buf_reserved);
}

static void *hps_buf_data(const struct hps_buf *buf, gfp_t gfp)
{
	if (buf->size < PAGE_SIZE)
		return kmalloc(buf->size, gfp);
	return (void *)__get_free_pages(gfp | __GFP_COMP, get_order(buf->size));
}

static void hps_buf_free_data(struct hps_buf *buf)
{
	if (buf->size < PAGE_SIZE)
		kfree(buf->data);
	else
		free_pages((unsigned long)buf->data, get_order(buf->size));
}

/**
 * hps_buf_alloc - allocate a buffer and map it for a device
 * @ibdev: the device
 * @size: bytes
 * @dir: DMA_TO_DEVICE or DMA_FROM_DEVICE
 * @gfp: how to allocate
 *
 * Context: as @gfp says. Return: the buffer or NULL.
 */
struct hps_buf *hps_buf_alloc(struct ib_device *ibdev, u32 size, u8 dir,
			      gfp_t gfp)
{
	struct hps_buf *buf = kzalloc(sizeof(*buf), gfp);

	if (!buf)
		return NULL;
	buf->size = size;
	buf->data = hps_buf_data(buf, gfp | __GFP_NOWARN);
	if (!buf->data)
		goto free;
	buf->dma = ib_dma_map_single(ibdev, buf->data, size, dir);
	if (ib_dma_mapping_error(ibdev, buf->dma))
		goto free_data;
	buf->ibdev = ibdev;
	buf->dir = dir;
	INIT_LIST_HEAD(&buf->list);
	INIT_LIST_HEAD(&buf->all);
	return buf;

free_data:
	hps_buf_free_data(buf);
free:
	kfree(buf);
	return NULL;
}

/**
 * hps_buf_unmap - take a buffer from its device; the memory stays
 * @buf: the buffer; nothing may be posted on it
 *
 * Context: any. May be called again.
 */
void hps_buf_unmap(struct hps_buf *buf)
{
	if (!buf->ibdev)
		return;
	/*
	 * What was received has been synchronised, and messages joined to it
	 * since: a bounce buffer must not be copied over them.
	 */
	if (!ib_uses_virt_dma(buf->ibdev))
		dma_unmap_single_attrs(buf->ibdev->dma_device, buf->dma,
				       buf->size, buf->dir,
				       buf->dir == DMA_FROM_DEVICE ?
				       DMA_ATTR_SKIP_CPU_SYNC : 0);
	buf->ibdev = NULL;
}

/**
 * hps_buf_free - unmap and free a buffer
 * @buf: the buffer, in no list
 *
 * Context: any.
 */
void hps_buf_free(struct hps_buf *buf)
{
	hps_buf_unmap(buf);
	hps_buf_free_data(buf);
	kfree(buf);
}
