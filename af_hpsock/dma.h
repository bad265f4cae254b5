/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_DMA_H
#define HPS_DMA_H

#include <linux/build_bug.h>
#include <linux/stddef.h>

#include "buf.h"

struct ib_device;

/**
 * struct hps_dma - a buffer that a device can reach
 * @buf: the buffer, first
 * @unmap: takes what it has from the device
 * @ibdev: the device, NULL once unmapped
 * @addr: where its memory is for the device, while @ibdev is set
 * @dir: DMA direction of its memory
 * @apart: it is a &struct hps_receive_apart
 */
struct hps_dma {
	struct hps_buf buf;
	void (*unmap)(struct hps_dma *dma);
	struct ib_device *ibdev;
	u64 addr;
	u8 dir;
	bool apart;
};

/* hps_buf_free() frees the whole of it; likewise what embeds this. */
static_assert(offsetof(struct hps_dma, buf) == 0);

/* Of a send buffer of RDMA's, or a receive. */
static inline struct hps_dma *hps_dma(const struct hps_buf *buf)
{
	return container_of(buf, struct hps_dma, buf);
}

void *hps_dma_new(size_t object, struct ib_device *ibdev, u32 size, u8 dir,
		  gfp_t gfp);
struct hps_dma *hps_dma_gather(struct ib_device *ibdev,
			       struct hps_gather *gather);
void hps_dma_ungather(struct hps_dma *dma);
void hps_dma_unmap(struct hps_buf *buf);
void hps_dma_unmap_memory(struct hps_dma *dma);

#endif /* HPS_DMA_H */
