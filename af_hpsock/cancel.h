/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CANCEL_H
#define HPS_CANCEL_H

#include <linux/types.h>

struct hps_conn;
struct hps_link;

void hps_cancel(struct hps_conn *conn);
void hps_cancel_answer(struct hps_conn *conn, u32 done);
int hps_cancel_acked(struct hps_link *link, u32 done);
void hps_cancel_late(struct hps_link *link);

#endif /* HPS_CANCEL_H */
