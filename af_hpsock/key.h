/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_KEY_H
#define HPS_KEY_H

#include <linux/dma-direction.h>
#include <linux/scatterlist.h>

struct hps_link;
struct hps_pages;
struct ib_device;
struct ib_mr;

/**
 * struct hps_key - what lets the peer reach some bytes of a program, and nothing else
 * @mr: the memory region (FRWR): REG_MR makes it valid, an invalidation ends that. NULL
 *	before it is chosen, and once it is back in its pool
 * @pool: of hps_link, where @mr is from
 * @sgt: the pages as the device sees them
 */
struct hps_key {
	struct ib_mr *mr;
	struct list_head *pool;
	struct sg_table sgt;
};

int hps_key_map(struct hps_link *link, struct hps_key *key,
		const struct hps_pages *mem, enum dma_data_direction dir);
int hps_key_choose(struct hps_link *link, struct hps_key *key, struct list_head *pool);
int hps_key_add(struct hps_link *link, struct list_head *pool);
int hps_key_make(struct hps_link *link, struct hps_key *key,
		 const struct hps_pages *mem, enum dma_data_direction dir);
void hps_key_put(struct hps_link *link, struct hps_key *key);
void hps_key_unmap(struct hps_key *key, struct ib_device *ibdev,
		   enum dma_data_direction dir);
void hps_key_destroy(struct hps_link *link);

#endif /* HPS_KEY_H */
