/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SOURCE_H
#define HPS_SOURCE_H

#include <linux/list.h>

#include "dma.h"
#include "key.h"

struct hps_lent;
struct hps_link;

/**
 * struct hps_source - a send buffer that the peer reads by RDMA
 * @dma: the buffer, first
 * @node: in hps_link.tx_sources from SRCAVAIL to READDONE; then, if that has not
 *	invalidated the key, or from the completion of WRITTEN on, in tx_read until this is
 *	being done
 * @lent: the pages; the source's
 * @at: where they begin in the stream, once they are offered
 * @key: for them
 * @written: they are being written to where the peer waits, and need no offer
 */
struct hps_source {
	struct hps_dma dma;
	struct list_head node;
	struct hps_lent *lent;
	u64 at;
	struct hps_key key;
	bool written;
};

static_assert(offsetof(struct hps_source, dma) == 0);

/* Of a send buffer that is lent. */
static inline struct hps_source *hps_source(struct hps_buf *buf)
{
	return container_of(buf, struct hps_source, dma.buf);
}

struct hps_source *hps_source_new(struct hps_link *link,
				  struct hps_lent *lent);
bool hps_source_completed(struct hps_link *link, struct hps_source *source);
void hps_source_revoke_all(struct hps_link *link);
void hps_source_revoked(struct hps_link *link, struct hps_source *source);
void hps_source_put_keys(struct hps_link *link);
void hps_source_end(struct hps_link *link);

#endif /* HPS_SOURCE_H */
