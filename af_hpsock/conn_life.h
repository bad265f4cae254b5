/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_CONN_LIFE_H
#define HPS_CONN_LIFE_H

struct hps_conn;
struct hps_transport;
struct net;
struct sock;

void hps_conn_init(struct hps_conn *conn, const struct hps_transport *ops,
		   struct net *net);
void hps_conn_attach(struct hps_conn *conn, struct sock *sk);
void hps_conn_established(struct hps_conn *conn);
void hps_conn_undefer(struct hps_conn *conn);
void hps_conn_orphan(struct hps_conn *conn);
void hps_conn_arm_orphan(struct hps_conn *conn);
void hps_conn_limit_orphans(struct hps_conn *conn);
void hps_conn_drop(struct hps_conn *conn);
void hps_conn_reset(struct hps_conn *conn, int err);
void hps_conn_report(struct hps_conn *conn);
void hps_conn_check_finished(struct hps_conn *conn);
int hps_conn_why(struct hps_conn *conn);
void hps_conn_end(struct hps_conn *conn);

#endif /* HPS_CONN_LIFE_H */
