/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_PARAM_H
#define HPS_PARAM_H

#include <linux/types.h>

extern unsigned int hps_family;
extern unsigned int hps_netns_enabled;
extern unsigned int hps_service_port;
extern unsigned int hps_service_backlog;
extern unsigned int hps_zcopy_patience;
extern unsigned int hps_mem_max_kb;
extern unsigned int hps_mem_share;
extern unsigned int hps_shrink_after;
extern unsigned int hps_fin_timeout;
extern unsigned int hps_orphan_timeout;
extern unsigned int hps_orphan_max;
extern unsigned int hps_zcopy_protect;
extern unsigned int hps_protect_max_kb;

/* Tunables of which a socket can have a value of its own. */
enum hps_tune {
	HPS_TUNE_BUF_FIRST,
	HPS_TUNE_BUF_SIZE,
	HPS_TUNE_WINDOW,
	HPS_TUNE_QUOTA,
	HPS_TUNE_INLINE_MAX,
	HPS_TUNE_GATHER_MIN,
	HPS_TUNE_SIGNAL_EVERY,
	HPS_TUNE_ZCOPY,
	HPS_TUNE_ZCOPY_THRESHOLD,
	HPS_TUNE_ZCOPY_OUTSTANDING,
	HPS_TUNE_ZCOPY_SINK,
	HPS_TUNE_ZCOPY_SYNC,
	HPS_TUNE_NUM
};

/**
 * struct hps_tuning - a socket's own values
 * @own: by enum hps_tune; -1 for the module's
 *
 * A connection has a copy, of the time when it is made.
 */
struct hps_tuning {
	int own[HPS_TUNE_NUM];
};

void hps_tune_init(struct hps_tuning *tuning);
void hps_tune_copy(struct hps_tuning *tuning, const struct hps_tuning *from);
int hps_tune_set(struct hps_tuning *tuning, enum hps_tune what, int val);
u32 hps_tuned(const struct hps_tuning *tuning, enum hps_tune what);

#endif /* HPS_PARAM_H */
