/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_BUF_H
#define HPS_BUF_H

#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/types.h>

struct iov_iter;
struct page;
struct ubuf_info;

/* Pages of one send buffer: 64 KiB that begin anywhere. */
#define HPS_GATHER_MAX	17

/**
 * struct hps_gather - pages that are sent from where they are
 * @uarg: who is told when they are not needed any more, referenced; or NULL
 * @nr: pages
 * @charged: bytes that the socket is charged for it
 * @frag: the pages, in order
 * @frag.page: referenced
 * @frag.off: offset of the first byte in it
 * @frag.len: bytes
 * @frag.dma: address of that byte for a device, the transport's
 */
struct hps_gather {
	struct ubuf_info *uarg;
	u32 nr;
	u32 charged;
	struct {
		struct page *page;
		u64 dma;
		u32 off;
		u32 len;
	} frag[];
};

/**
 * struct hps_pages - memory of a program, or of the kernel, that a device is to reach
 * @pages: where it is, one behind the other
 * @nr: how many pages
 * @off: of the first byte in the first page
 * @len: bytes
 */
struct hps_pages {
	struct page **pages;
	u32 nr;
	u32 off;
	u32 len;
};

/**
 * struct hps_buf - bytes of a stream: memory, pages of others, or bytes that are still at
 *	the peer
 * @list: in a queue of the connection, or nowhere
 * @release: what the transport does before it is freed, or NULL
 * @data: kernel address, NULL with @gather and @lent
 * @gather: send: the pages, which it then owns, or NULL
 * @size: bytes
 * @start: receive: first unread byte. Send: first byte not yet posted
 * @end: end of the bytes that count
 * @done: send: bytes whose send has completed
 * @stamp: receive: when the last of its messages came in
 * @from: @fetched, and not in a queue yet: the buffer with the bytes it is to get
 * @busy: send: a writer is filling behind @end, so the memory has to stay
 * @lent: send: the peer will read the bytes from where they are
 * @full: send: nothing is added any more, though there is room
 * @remote: receive: it holds SRCAVAIL, and from @start to @end offsets of what the
 *	peer has there
 * @fetched: receive: memory of the reader's own, with what was remote
 *
 * Receive buffers belong to their transport, send buffers to their connection;
 * @start, @end, @done, @full and @busy are guarded by hps_conn.lock.
 */
struct hps_buf {
	struct list_head list;
	void (*release)(struct hps_buf *buf);
	void *data;
	struct hps_gather *gather;
	u32 size;
	bool busy;
	bool lent;
	union {
		bool full;
		bool remote;
	};
	bool fetched;
	u32 start;
	u32 end;
	union {
		ktime_t stamp;
		u32 done;
		struct hps_buf *from;
	};
};

void *hps_buf_new(size_t object, u32 size, gfp_t gfp);
void *hps_buf_shell(size_t object, u32 len, gfp_t gfp);
struct hps_buf *hps_buf_local(u32 size);
void hps_gather_put(struct hps_gather *gather);
void hps_buf_free(struct hps_buf *buf);
int hps_buf_to_iter(void *from, size_t len, struct iov_iter *iter);
int hps_buf_from_iter(void *to, size_t len, struct iov_iter *iter);

/* Does it send what belongs to others? */
static inline bool hps_buf_borrows(const struct hps_buf *buf)
{
	return buf->gather || buf->lent;
}

/* Send: all was delivered, it may be filled from its beginning. */
static inline void hps_buf_empty(struct hps_buf *buf)
{
	buf->start = 0;
	buf->end = 0;
	buf->done = 0;
}

#endif /* HPS_BUF_H */
