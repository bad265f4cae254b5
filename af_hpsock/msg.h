/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_MSG_H
#define HPS_MSG_H

#include <linux/types.h>

struct hps_buf;
struct hps_conn;
struct hps_link;
struct ib_wc;

void hps_msg_init(struct hps_link *link);
void hps_msg_end(struct hps_link *link);
void hps_msg_established(struct hps_link *link);
bool hps_msg_busy(struct hps_conn *conn);
int hps_msg_send(struct hps_conn *conn, struct hps_buf *buf, u32 len,
		 int urgent);
int hps_msg_offer(struct hps_conn *conn, struct hps_buf *buf);
int hps_msg_readdone(struct hps_link *link, u32 rkey);
int hps_msg_urgent(struct hps_conn *conn, u32 ahead);
int hps_msg_send_fin(struct hps_conn *conn);
int hps_msg_send_finack(struct hps_conn *conn);
bool hps_msg_tx_idle(struct hps_conn *conn);
bool hps_msg_probe(struct hps_conn *conn);
void hps_msg_ask(struct hps_conn *conn);
void hps_msg_ask_soon(struct hps_link *link);
void hps_msg_pad(struct hps_link *link);
int hps_msg_shrink(struct hps_link *link);
void hps_msg_credit(struct hps_link *link);
void hps_msg_error(struct hps_link *link, const struct ib_wc *wc);

#endif /* HPS_MSG_H */
