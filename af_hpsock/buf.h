/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_BUF_H
#define HPS_BUF_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

struct hps_link;

/**
 * struct hps_buf - physically contiguous memory that a device can reach
 * @list: in a queue of the connection, or nowhere
 * @all: in hps_link.rx_all, receive buffers only
 * @cqe: completion of the receive posted on it
 * @link: whose receive buffer it is
 * @ibdev: device it is mapped for, NULL once unmapped
 * @data: kernel address
 * @dma: address for the device, while @ibdev is set
 * @size: bytes
 * @dir: DMA direction
 * @start: receive: first unread byte. Send: first byte not yet posted
 * @end: end of the bytes that count
 * @done: send: bytes whose send has completed
 * @busy: send: a writer is filling behind @end, so the memory has to stay
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
	u64 dma;
	u32 size;
	u8 dir;
	bool busy;
	u32 start;
	u32 end;
	u32 done;
};

struct hps_buf *hps_buf_alloc(struct ib_device *ibdev, u32 size, u8 dir,
			      gfp_t gfp);
void hps_buf_unmap(struct hps_buf *buf);
void hps_buf_free(struct hps_buf *buf);
bool hps_buf_reserve(u64 bytes);
void hps_buf_unreserve(u64 bytes);

#endif /* HPS_BUF_H */
