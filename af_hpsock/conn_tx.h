/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CONN_TX_H
#define HPS_CONN_TX_H

#include <linux/types.h>

struct hps_buf;
struct hps_conn;

void hps_conn_tx_done(struct hps_conn *conn, struct hps_buf *buf, u32 len);
void hps_conn_tx_append(struct hps_conn *conn, struct hps_buf *buf);
void hps_conn_tx_release(struct hps_conn *conn, struct hps_buf *buf);
void hps_conn_tx_cut(struct hps_conn *conn, struct hps_buf *buf);
void hps_conn_tx_advanced(struct hps_conn *conn);
void hps_conn_tx_resize(struct hps_conn *conn, u32 max);
void hps_conn_tx_idle(struct hps_conn *conn);
void hps_conn_tx_orphan(struct hps_conn *conn);
void hps_conn_tx_end(struct hps_conn *conn);

#endif /* HPS_CONN_TX_H */
