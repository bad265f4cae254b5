/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_BUF_H
#define HPS_BUF_H

#include <linux/ktime.h>
#include <linux/list.h>
#include <rdma/ib_verbs.h>

struct hps_link;
struct hps_source;
struct iov_iter;

/* Pages of one send buffer: 64 KiB that begin anywhere. */
#define HPS_GATHER_MAX	17

/**
 * struct hps_gather - pages that are sent from where they are
 * @uarg: who is told when they are not needed any more, referenced; or NULL
 * @nr: pages
 * @frag: the pages, in order
 * @frag.page: referenced
 * @frag.off: offset of the first byte in it
 * @frag.len: bytes
 * @frag.dma: address for the device, of that byte
 */
struct hps_gather {
	struct ubuf_info *uarg;
	u32 nr;
	struct {
		struct page *page;
		u64 dma;
		u32 off;
		u32 len;
	} frag[];
};

/**
 * struct hps_buf - bytes of a stream: memory that a device can reach, pages of others,
 *	or bytes that are still at the peer
 * @list: in a queue of the connection, or nowhere
 * @all: in hps_link.rx_all, receive buffers only
 * @cqe: completion of the receive posted on it
 * @link: whose receive buffer it is
 * @ibdev: device it is mapped for, NULL once unmapped, and for what was fetched
 * @data: kernel address, NULL with @gather and @source
 * @gather: send: the pages, which it then owns, or NULL
 * @source: send: pages that the peer will read, which it then owns, or NULL
 * @dma: address for the device, while @ibdev is set
 * @size: bytes
 * @dir: DMA direction
 * @start: receive: first unread byte. Send: first byte not yet posted
 * @end: end of the bytes that count
 * @done: send: bytes whose send has completed
 * @stamp: receive: when the last of its messages came in
 * @busy: send: a writer is filling behind @end, so the memory has to stay
 * @remote: receive: it holds SRCAVAIL, and from @start to @end offsets of what the
 *	peer has there
 * @fetched: receive: memory of the reader's own, with what was remote
 *
 * Receive buffers belong to their link, send buffers to their connection;
 * @start, @end, @done and @busy are guarded by hps_conn.lock.
 */
struct hps_buf {
	struct list_head list;
	struct list_head all;
	struct ib_cqe cqe;
	struct hps_link *link;
	struct ib_device *ibdev;
	void *data;
	struct hps_gather *gather;
	struct hps_source *source;
	u64 dma;
	u32 size;
	u8 dir;
	bool busy;
	bool remote;
	bool fetched;
	u32 start;
	u32 end;
	union {
		ktime_t stamp;
		u32 done;
	};
};

struct hps_buf *hps_buf_alloc(struct ib_device *ibdev, u32 size, u8 dir,
			      gfp_t gfp);
struct hps_buf *hps_buf_local(u32 size);
struct hps_buf *hps_buf_shell(struct ib_device *ibdev, u32 len);
struct hps_buf *hps_buf_gather(struct ib_device *ibdev,
			       struct hps_gather *gather);
void hps_buf_ungather(struct hps_buf *buf);
void hps_gather_put(struct hps_gather *gather);
void hps_buf_unmap(struct hps_buf *buf);
void hps_buf_free(struct hps_buf *buf);
int hps_buf_to_iter(void *from, size_t len, struct iov_iter *iter);
int hps_buf_from_iter(void *to, size_t len, struct iov_iter *iter);

/* Does it send what belongs to others? */
static inline bool hps_buf_borrows(const struct hps_buf *buf)
{
	return buf->gather || buf->source;
}

#endif /* HPS_BUF_H */
