/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CONN_RX_H
#define HPS_CONN_RX_H

#include <linux/types.h>

struct hps_buf;
struct hps_conn;

int hps_conn_rx_data(struct hps_conn *conn, struct hps_buf *buf, bool tight,
		     int urgent);
void hps_conn_rx_written(struct hps_conn *conn, u32 len);
int hps_conn_rx_urgent(struct hps_conn *conn, u32 ahead);
int hps_conn_rx_fin(struct hps_conn *conn);
int hps_conn_rx_finack(struct hps_conn *conn);

#endif /* HPS_CONN_RX_H */
