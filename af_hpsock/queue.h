/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_QUEUE_H
#define HPS_QUEUE_H

#include <linux/types.h>

struct hps_conn;
struct sock;

int hps_queue_reserve(struct sock *listener, struct hps_conn *conn);
bool hps_queue_make_room(struct sock *listener);
void hps_queue_ready(struct hps_conn *conn);
bool hps_queue_remove(struct hps_conn *conn);
struct hps_conn *hps_queue_pop(struct sock *sk, bool pending);
bool hps_queue_has_ready(struct sock *sk);
u32 hps_queue_count_ready(struct sock *sk);

#endif /* HPS_QUEUE_H */
