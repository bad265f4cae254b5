/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_ASKER_H
#define HPS_ASKER_H

#include <linux/types.h>

struct hps_link;

int hps_asker_begin(struct hps_link *link, int (*ask)(struct hps_link *link));
void hps_asker_heard(struct hps_link *link);
bool hps_asker_await(struct hps_link *link);
void hps_asker_end(struct hps_link *link, bool kill);

#endif /* HPS_ASKER_H */
