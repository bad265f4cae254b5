/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_ZEROCOPY_H
#define HPS_ZEROCOPY_H

struct hps_buf;
struct hps_conn;
struct ubuf_info;

void hps_zerocopy_queue(struct hps_conn *conn, struct hps_buf *buf);
void hps_zerocopy_advance(struct hps_conn *conn);
void hps_zerocopy_copied(struct hps_conn *conn, struct ubuf_info *uarg);
void hps_zerocopy_report(struct ubuf_info *uarg, bool borrowed, bool copied);
void hps_zerocopy_end(struct hps_conn *conn);

#endif /* HPS_ZEROCOPY_H */
