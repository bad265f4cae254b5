// SPDX-License-Identifier: GPL-2.0
/*
 * Bytes of a stream, on their way: where they are, and what that takes.
 *
 * A transport embeds a buffer, as the first member, in what it has to know of it: see
 * dma.c. Nobody else looks behind it.
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uio.h>

#include "buf.h"
#include "mem.h"

/* What the allocator has set aside for it. */
static size_t hps_buf_memory(const struct hps_buf *buf)
{
	if (!buf->data)
		return ksize(buf);
	return ksize(buf) + (buf->size < PAGE_SIZE ? ksize(buf->data) :
			     PAGE_SIZE << get_order(buf->size));
}

static void *hps_buf_data(u32 size, gfp_t gfp)
{
	if (size < PAGE_SIZE)
		return kmalloc(size, gfp);
	return (void *)__get_free_pages(gfp | __GFP_COMP, get_order(size));
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

static struct hps_buf *hps_buf_alloc(size_t object, u32 size, void *data,
				     gfp_t gfp)
{
	struct hps_buf *buf = kzalloc(object, gfp);

	if (!buf)
		return NULL;
	buf->size = size;
	buf->data = data;
	INIT_LIST_HEAD(&buf->list);
	hps_mem_count(hps_buf_memory(buf));
	return buf;
}

/**
 * hps_buf_new - allocate a buffer with memory
 * @object: size of the structure that begins with it, bytes
 * @size: bytes
 * @gfp: how to allocate
 *
 * Context: as @gfp says.
 * Return: that structure, zeroed behind the buffer, or NULL.
 */
void *hps_buf_new(size_t object, u32 size, gfp_t gfp)
{
	void *data = hps_buf_data(size, gfp | __GFP_NOWARN);
	struct hps_buf *buf;

	if (!data)
		return NULL;
	buf = hps_buf_alloc(object, size, data, gfp);
	if (!buf && size < PAGE_SIZE)
		kfree(data);
	else if (!buf)
		free_pages((unsigned long)data, get_order(size));
	return buf;
}

/**
 * hps_buf_shell - allocate a send buffer of bytes that are elsewhere
 * @object: size of the structure that begins with it, bytes
 * @len: bytes, all of them to be sent
 * @gfp: how to allocate
 *
 * Context: as @gfp says.
 * Return: that structure, zeroed behind the buffer, or NULL.
 */
void *hps_buf_shell(size_t object, u32 len, gfp_t gfp)
{
	struct hps_buf *buf = hps_buf_alloc(object, len, NULL, gfp);

	if (buf)
		buf->end = len;
	return buf;
}

/**
 * hps_buf_local - allocate a buffer that no transport gets to know
 * @size: bytes
 *
 * Context: process, may sleep.
 * Return: the buffer or NULL.
 */
struct hps_buf *hps_buf_local(u32 size)
{
	return hps_buf_new(sizeof(struct hps_buf), size,
			   GFP_KERNEL | __GFP_NOWARN);
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

/*
 * What lies in one page needs no lookup of the object that it is in, which for 64
 * bytes takes as long as the copy. But only a program's memory is sure to get a copy: before
 * 6.5 a pipe, for splice(2) out of SOCK_SEQPACKET, would be given the page itself.
 */
static bool hps_buf_in_page(const void *data, size_t len, const struct iov_iter *iter)
{
	return offset_in_page(data) + len <= PAGE_SIZE && user_backed_iter(iter);
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

	if (hps_buf_in_page(from, len, iter))
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

	if (hps_buf_in_page(to, len, iter))
		done = copy_page_from_iter(virt_to_page(to),
					   offset_in_page(to), len, iter);
	else
		done = copy_from_iter(to, len, iter);
	return hps_buf_copied(iter, done, len);
}

/**
 * hps_buf_free - give back a buffer and what it has
 * @buf: the buffer, in no list
 *
 * Context: any.
 */
void hps_buf_free(struct hps_buf *buf)
{
	if (buf->release)
		buf->release(buf);
	hps_mem_count(-(long)hps_buf_memory(buf));
	if (buf->gather) {
		hps_mem_sub(buf->gather);
		hps_gather_put(buf->gather);
	}
	hps_buf_free_data(buf);
	kfree(buf);
}
