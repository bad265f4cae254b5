/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_PROBE_H
#define HPS_PROBE_H

struct hps_conn;
struct sock;

void hps_probe_init(struct hps_conn *conn);
void hps_probe_watch(struct hps_conn *conn);
void hps_probe_arm(struct hps_conn *conn);
void hps_probe_cancel(struct hps_conn *conn);
unsigned int hps_probe_idle(const struct sock *sk);
unsigned int hps_probe_interval(const struct sock *sk);
unsigned int hps_probe_count(const struct sock *sk);
void hps_probe_changed(struct sock *sk);
void hps_keepalive(struct sock *sk, int val);

#endif /* HPS_PROBE_H */
