// SPDX-License-Identifier: GPL-2.0
/*
 * Memory that a device can reach: mapped once when allocated, so that a message
 * costs a cache synchronisation at most.
 */
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "buf.h"
#include "mem.h"
#include "source.h"

/* What the allocator has set aside for it. */
static size_t hps_buf_memory(const struct hps_buf *buf)
{
	if (!buf->data)
		return ksize(buf);
	return ksize(buf) + (buf->size < PAGE_SIZE ? ksize(buf->data) :
			     PAGE_SIZE << get_order(buf->size));
}

static void *hps_buf_data(const struct hps_buf *buf, gfp_t gfp)
{
	if (buf->size < PAGE_SIZE)
		return kmalloc(buf->size, gfp);
	return (void *)__get_free_pages(gfp | __GFP_COMP, get_order(buf->size));
}

static void hps_buf_free_data(struct hps_buf *buf)
{
	if (!buf->data)
		return;
	if (buf->size < PAGE_SIZE)
		kfree(buf->data);
	else
		free_pages((unsigned long)buf->data, get_order(buf->size));
}

static struct hps_buf *hps_buf_new(u32 size, gfp_t gfp)
{
	struct hps_buf *buf = kzalloc(sizeof(*buf), gfp);

	if (!buf)
		return NULL;
	buf->size = size;
	INIT_LIST_HEAD(&buf->list);
	INIT_LIST_HEAD(&buf->all);
	return buf;
}

/* With memory. */
static struct hps_buf *hps_buf_new_data(u32 size, gfp_t gfp)
{
	struct hps_buf *buf = hps_buf_new(size, gfp);

	if (!buf)
		return NULL;
	buf->data = hps_buf_data(buf, gfp | __GFP_NOWARN);
	if (buf->data)
		return buf;
	kfree(buf);
	return NULL;
}

/**
 * hps_buf_alloc - allocate a buffer and map it for a device
 * @ibdev: the device
 * @size: bytes
 * @dir: DMA_TO_DEVICE or DMA_FROM_DEVICE
 * @gfp: how to allocate
 *
 * Context: as @gfp says.
 * Return: the buffer or NULL.
 */
struct hps_buf *hps_buf_alloc(struct ib_device *ibdev, u32 size, u8 dir,
			      gfp_t gfp)
{
	struct hps_buf *buf = hps_buf_new_data(size, gfp);

	if (!buf)
		return NULL;
	buf->dma = ib_dma_map_single(ibdev, buf->data, size, dir);
	if (ib_dma_mapping_error(ibdev, buf->dma)) {
		hps_buf_free_data(buf);
		kfree(buf);
		return NULL;
	}
	buf->ibdev = ibdev;
	buf->dir = dir;
	hps_mem_count(hps_buf_memory(buf));
	return buf;
}

/**
 * hps_buf_local - allocate a buffer that no device gets to know
 * @size: bytes
 *
 * Context: process, may sleep.
 * Return: the buffer or NULL.
 */
struct hps_buf *hps_buf_local(u32 size)
{
	struct hps_buf *buf = hps_buf_new_data(size, GFP_KERNEL | __GFP_NOWARN);

	if (buf)
		hps_mem_count(hps_buf_memory(buf));
	return buf;
}

/**
 * hps_buf_shell - a send buffer of bytes that are elsewhere
 * @ibdev: the device
 * @len: bytes, all of them to be sent
 *
 * Context: process, may sleep.
 * Return: the buffer, without memory of its own, or NULL.
 */
struct hps_buf *hps_buf_shell(struct ib_device *ibdev, u32 len)
{
	struct hps_buf *buf = hps_buf_new(len, GFP_KERNEL);

	if (!buf)
		return NULL;
	buf->end = len;
	buf->ibdev = ibdev;
	buf->dir = DMA_TO_DEVICE;
	hps_mem_count(hps_buf_memory(buf));
	return buf;
}

/**
 * hps_gather_put - give up pages and what leads to them
 * @gather: to be freed
 *
 * Context: any.
 */
void hps_gather_put(struct hps_gather *gather)
{
	u32 i;

	for (i = 0; i < gather->nr; i++)
		put_page(gather->frag[i].page);
	net_zcopy_put(gather->uarg);
	kfree(gather);
}

static void hps_gather_unmap(struct hps_gather *gather, u32 nr,
			     struct ib_device *ibdev)
{
	u32 i;

	for (i = 0; i < nr; i++)
		ib_dma_unmap_page(ibdev, gather->frag[i].dma,
				  gather->frag[i].len, DMA_TO_DEVICE);
}

static int hps_gather_map(struct hps_gather *gather, struct ib_device *ibdev)
{
	u32 i;

	for (i = 0; i < gather->nr; i++) {
		gather->frag[i].dma =
			ib_dma_map_page(ibdev, gather->frag[i].page,
					gather->frag[i].off,
					gather->frag[i].len, DMA_TO_DEVICE);
		if (!ib_dma_mapping_error(ibdev, gather->frag[i].dma))
			continue;
		hps_gather_unmap(gather, i, ibdev);
		return -ENOMEM;
	}
	return 0;
}

/**
 * hps_buf_gather - a send buffer of pages that are there already
 * @ibdev: the device
 * @gather: the pages; the buffer's, if there is one
 *
 * Context: process, may sleep.
 * Return: the buffer, all of it to be sent, or NULL.
 */
struct hps_buf *hps_buf_gather(struct ib_device *ibdev,
			       struct hps_gather *gather)
{
	struct hps_buf *buf;
	u32 len = 0, i;

	for (i = 0; i < gather->nr; i++)
		len += gather->frag[i].len;
	buf = hps_buf_shell(ibdev, len);
	if (!buf)
		return NULL;
	if (hps_gather_map(gather, ibdev)) {
		buf->ibdev = NULL;
		hps_buf_free(buf);
		return NULL;
	}
	buf->gather = gather;
	hps_mem_add(gather);
	return buf;
}

/**
 * hps_buf_ungather - undo hps_buf_gather()
 * @buf: the buffer; its pages are the caller's again
 *
 * Context: any.
 */
void hps_buf_ungather(struct hps_buf *buf)
{
	hps_buf_unmap(buf);
	hps_mem_sub(buf->gather);
	buf->gather = NULL;
	hps_buf_free(buf);
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
	if (buf->source)
		hps_source_unmap(buf->source, buf->ibdev);
	else if (buf->gather)
		hps_gather_unmap(buf->gather, buf->gather->nr, buf->ibdev);
	/*
	 * What was received has been synchronised, and messages joined to it
	 * since: a bounce buffer must not be copied over them.
	 */
	else if (!ib_uses_virt_dma(buf->ibdev))
		dma_unmap_single_attrs(buf->ibdev->dma_device, buf->dma,
				       buf->size, buf->dir,
				       buf->dir == DMA_FROM_DEVICE ?
				       DMA_ATTR_SKIP_CPU_SYNC : 0);
	buf->ibdev = NULL;
}

/*
 * What lies in one page needs no lookup of the object that it is in, which for 64
 * bytes takes as long as the copy.
 */
static bool hps_buf_in_page(const void *data, size_t len)
{
	return offset_in_page(data) + len <= PAGE_SIZE;
}

/* @done of @len bytes were copied: all of them or none. */
static int hps_buf_copied(struct iov_iter *iter, size_t done, size_t len)
{
	if (done == len)
		return 0;
	iov_iter_revert(iter, done);
	return -EFAULT;
}

/**
 * hps_buf_to_iter - copy to a program
 * @from: in a buffer
 * @len: bytes
 * @iter: where to; it moves on only if all is well
 *
 * Context: process, may sleep.
 * Return: 0 or -EFAULT.
 */
int hps_buf_to_iter(void *from, size_t len, struct iov_iter *iter)
{
	size_t done;

	if (hps_buf_in_page(from, len))
		done = copy_page_to_iter(virt_to_page(from),
					 offset_in_page(from), len, iter);
	else
		done = copy_to_iter(from, len, iter);
	return hps_buf_copied(iter, done, len);
}

/**
 * hps_buf_from_iter - copy from a program
 * @to: in a buffer
 * @len: bytes
 * @iter: where from; it moves on only if all is well
 *
 * Context: process, may sleep.
 * Return: 0 or -EFAULT.
 */
int hps_buf_from_iter(void *to, size_t len, struct iov_iter *iter)
{
	size_t done;

	if (hps_buf_in_page(to, len))
		done = copy_page_from_iter(virt_to_page(to),
					   offset_in_page(to), len, iter);
	else
		done = copy_from_iter(to, len, iter);
	return hps_buf_copied(iter, done, len);
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
	hps_mem_count(-(long)hps_buf_memory(buf));
	if (buf->source)
		hps_source_free(buf->source);
	if (buf->gather) {
		hps_mem_sub(buf->gather);
		hps_gather_put(buf->gather);
	}
	hps_buf_free_data(buf);
	kfree(buf);
}
