/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_URGENT_H
#define HPS_URGENT_H

#include <linux/types.h>

struct hps_conn;
struct msghdr;
struct sock;

void hps_urgent_mark(struct hps_conn *conn);
int hps_urgent_offset(const struct hps_conn *conn, u32 len);
void hps_urgent_tell(struct hps_conn *conn);
void hps_urgent_expect(struct hps_conn *conn, u64 at);
bool hps_urgent_among(const struct hps_conn *conn, u32 len);
bool hps_urgent_arrive(struct hps_conn *conn, const u8 *data, u64 at, u32 len);
void hps_urgent_read(struct hps_conn *conn);
u32 hps_urgent_bound(struct hps_conn *conn, u32 off, u32 len);
u32 hps_urgent_inq(const struct sock *sk, const struct hps_conn *conn);
int hps_urgent_recv(struct sock *sk, struct msghdr *msg, size_t len, int flags);

#endif /* HPS_URGENT_H */
