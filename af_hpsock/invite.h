/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_INVITE_H
#define HPS_INVITE_H

#include <linux/types.h>

struct hps_conn;
struct hps_reader;
struct sock;

bool hps_invite(struct sock *sk, struct hps_conn *conn, struct hps_reader *r,
		long *timeo);
bool hps_invites(const struct sock *sk, const struct hps_conn *conn);
void hps_invite_learn(struct hps_conn *conn, struct hps_reader *r);

#endif /* HPS_INVITE_H */
