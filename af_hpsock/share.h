/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_SHARE_H
#define HPS_SHARE_H

#include <linux/types.h>
#include <linux/uidgid.h>

struct hps_net;
struct hps_share;

struct hps_share *hps_share_get(kuid_t uid);
void hps_share_put(struct hps_share *share);
bool hps_share_take(struct hps_share *share, struct hps_net *hn, u64 bytes,
		    bool first);
void hps_share_give(struct hps_share *share, u64 bytes);
u64 hps_share_taken(void);

#endif /* HPS_SHARE_H */
