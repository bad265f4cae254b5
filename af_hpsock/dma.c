// SPDX-License-Identifier: GPL-2.0
/*
 * Buffers that a device can reach: mapped once when allocated, so that a message costs a
 * cache synchronisation at most.
 */
#include <rdma/ib_verbs.h>

#include "dma.h"
#include "mem.h"

/**
 * hps_dma_unmap_memory - hps_dma.unmap of a buffer with memory
 * @dma: the buffer, mapped
 *
 * Context: any.
 */
void hps_dma_unmap_memory(struct hps_dma *dma)
{
	/*
	 * What was received has been synchronised, and messages joined to it
	 * since: a bounce buffer must not be copied over them.
	 */
	if (!ib_uses_virt_dma(dma->ibdev))
		dma_unmap_single_attrs(dma->ibdev->dma_device, dma->addr,
				       dma->buf.size, dma->dir,
				       dma->dir == DMA_FROM_DEVICE ?
				       DMA_ATTR_SKIP_CPU_SYNC : 0);
}

/**
 * hps_dma_new - allocate a buffer with memory and map it for a device
 * @object: size of the structure that begins with struct hps_dma, bytes
 * @ibdev: the device
 * @size: bytes
 * @dir: DMA_TO_DEVICE or DMA_FROM_DEVICE
 * @gfp: how to allocate
 *
 * Context: as @gfp says.
 * Return: that structure, zeroed behind it, or NULL.
 */
void *hps_dma_new(size_t object, struct ib_device *ibdev, u32 size, u8 dir,
		  gfp_t gfp)
{
	struct hps_dma *dma = hps_buf_new(object, size, gfp);

	if (!dma)
		return NULL;
	dma->addr = ib_dma_map_single(ibdev, dma->buf.data, size, dir);
	if (ib_dma_mapping_error(ibdev, dma->addr)) {
		hps_buf_free(&dma->buf);
		return NULL;
	}
	dma->buf.release = hps_dma_unmap;
	dma->unmap = hps_dma_unmap_memory;
	dma->ibdev = ibdev;
	dma->dir = dir;
	return dma;
}

static void hps_dma_unmap_frags(struct ib_device *ibdev,
				struct hps_gather *gather, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		ib_dma_unmap_page(ibdev, gather->frag[i].dma,
				  gather->frag[i].len, DMA_TO_DEVICE);
}

static void hps_dma_unmap_gather(struct hps_dma *dma)
{
	hps_dma_unmap_frags(dma->ibdev, dma->buf.gather, dma->buf.gather->nr);
}

static int hps_dma_map_gather(struct ib_device *ibdev,
			      struct hps_gather *gather)
{
	u32 i;

	for (i = 0; i < gather->nr; i++) {
		gather->frag[i].dma =
			ib_dma_map_page(ibdev, gather->frag[i].page,
					gather->frag[i].off,
					gather->frag[i].len, DMA_TO_DEVICE);
		if (!ib_dma_mapping_error(ibdev, gather->frag[i].dma))
			continue;
		hps_dma_unmap_frags(ibdev, gather, i);
		return -ENOMEM;
	}
	return 0;
}

/**
 * hps_dma_gather - a send buffer of pages that are there already
 * @ibdev: the device
 * @gather: the pages; the buffer's, if there is one
 *
 * Context: process, may sleep.
 * Return: the buffer, all of it to be sent, or NULL.
 */
struct hps_dma *hps_dma_gather(struct ib_device *ibdev,
			       struct hps_gather *gather)
{
	struct hps_dma *dma;
	u32 len = 0, i;

	for (i = 0; i < gather->nr; i++)
		len += gather->frag[i].len;
	dma = hps_buf_shell(sizeof(*dma), len, GFP_KERNEL);
	if (!dma)
		return NULL;
	if (hps_dma_map_gather(ibdev, gather)) {
		hps_buf_free(&dma->buf);
		return NULL;
	}
	dma->buf.gather = gather;
	dma->buf.release = hps_dma_unmap;
	dma->unmap = hps_dma_unmap_gather;
	dma->ibdev = ibdev;
	hps_mem_add(gather);
	return dma;
}

/**
 * hps_dma_ungather - undo hps_dma_gather()
 * @dma: the buffer; its pages are the caller's again
 *
 * Context: any.
 */
void hps_dma_ungather(struct hps_dma *dma)
{
	hps_dma_unmap(&dma->buf);
	hps_mem_sub(dma->buf.gather);
	dma->buf.gather = NULL;
	hps_buf_free(&dma->buf);
}

/**
 * hps_dma_unmap - take a buffer from its device; the memory stays
 * @buf: the buffer of a struct hps_dma; nothing may be posted on it
 *
 * Context: any. May be called again.
 */
void hps_dma_unmap(struct hps_buf *buf)
{
	struct hps_dma *dma = hps_dma(buf);

	if (!dma->ibdev)
		return;
	dma->unmap(dma);
	dma->ibdev = NULL;
}
