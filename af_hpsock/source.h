/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SOURCE_H
#define HPS_SOURCE_H

#include <linux/list.h>
#include <linux/scatterlist.h>

#include "dma.h"

struct hps_lent;
struct hps_link;
struct ib_mr;

/**
 * struct hps_source - a send buffer that the peer reads by RDMA
 * @dma: the buffer, first
 * @node: in hps_link.tx_sources from SRCAVAIL to READDONE; then, if that has not
 *	invalidated the key, in tx_read until this is being done
 * @lent: the pages; the source's
 * @sgt: as the device sees them
 * @at: where they begin in the stream, once they are offered
 * @mr: their key, hps_link.tx_mrs's when it is not needed any more
 */
struct hps_source {
	struct hps_dma dma;
	struct list_head node;
	struct hps_lent *lent;
	struct sg_table sgt;
	u64 at;
	struct ib_mr *mr;
};

static_assert(offsetof(struct hps_source, dma) == 0);

/* Of a send buffer that is lent. */
static inline struct hps_source *hps_source(struct hps_buf *buf)
{
	return container_of(buf, struct hps_source, dma.buf);
}

struct hps_source *hps_source_new(struct hps_link *link,
				  struct hps_lent *lent);
void hps_source_revoked(struct hps_link *link, struct hps_source *source);
void hps_source_end(struct hps_link *link);

#endif /* HPS_SOURCE_H */
