/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_WAIT_H
#define HPS_WAIT_H

#include <linux/types.h>

struct hps_conn;
struct sock;

int hps_wait_clear(struct sock *sk, bool *flag, long *timeo);
void hps_wait_turn_over(struct sock *sk, struct hps_conn *conn);
int hps_wait_turn(struct sock *sk, struct hps_conn *conn, long *timeo);
u32 hps_wait_read(struct sock *sk, struct hps_conn *conn, long *timeo);

#endif /* HPS_WAIT_H */
