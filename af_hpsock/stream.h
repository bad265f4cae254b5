/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_STREAM_H
#define HPS_STREAM_H

#include <linux/types.h>

struct hps_conn;

void hps_stream_queued(struct hps_conn *conn, u32 len);
void hps_stream_more(struct hps_conn *conn, u32 len);
void hps_stream_push(struct hps_conn *conn);
void hps_stream_uncork(struct hps_conn *conn);
void hps_stream_flush(struct hps_conn *conn);
void hps_stream_fin(struct hps_conn *conn);

#endif /* HPS_STREAM_H */
