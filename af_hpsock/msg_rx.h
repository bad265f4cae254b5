/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_MSG_RX_H
#define HPS_MSG_RX_H

struct hps_buf;
struct hps_link;

int hps_msg_rx_post(struct hps_link *link, struct hps_buf *buf);

#endif /* HPS_MSG_RX_H */
