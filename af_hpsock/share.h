/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SHARE_H
#define HPS_SHARE_H

#include <linux/types.h>
#include <linux/uidgid.h>

struct hps_net;
struct net;
struct hps_share;

/**
 * enum hps_share_use - what memory is taken for
 * @HPS_SHARE_FIRST: what a connection begins with; hps_share_end() when it ends
 * @HPS_SHARE_GROW: more than that; some is left for the first
 * @HPS_SHARE_SHRINK: to give back more: it is not refused
 */
enum hps_share_use {
	HPS_SHARE_FIRST,
	HPS_SHARE_GROW,
	HPS_SHARE_SHRINK,
};

struct hps_share *hps_share_get(kuid_t uid, const struct net *net);
void hps_share_put(struct hps_share *share);
bool hps_share_take(struct hps_share *share, struct hps_net *hn, u64 bytes,
		    enum hps_share_use use);
bool hps_share_refused(const struct hps_share *share, u64 since);
void hps_share_give(struct hps_share *share, u64 bytes);
void hps_share_end(struct hps_share *share, u64 first);
bool hps_share_ask(struct hps_share *share);
void hps_share_asked(struct hps_share *share);
u64 hps_share_taken(void);

#endif /* HPS_SHARE_H */
