/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_RECORD_H
#define HPS_RECORD_H

#include <linux/types.h>

#include "wire.h"

struct hps_buf;
struct hps_conn;
struct hps_send_call;
struct msghdr;
struct sock;
struct socket;

/**
 * struct hps_framing - a place in a stream of records
 * @head: of the piece
 * @bytes: of @head, as they come in
 * @have: bytes of @head that are known; all of them within a piece
 * @left: bytes of the piece that are still to come
 */
struct hps_framing {
	union {
		struct hps_record head;
		u8 bytes[sizeof(struct hps_record)];
	};
	u8 have;
	u32 left;
};

void hps_record_init(struct hps_conn *conn, int type);
void hps_record_fill(void *at, u32 len, u8 flags);
int hps_record_arrive(struct hps_conn *conn, const struct hps_buf *buf);
bool hps_record_goes_on(const struct hps_conn *conn, u32 avail);
bool hps_record_stuck(struct hps_conn *conn);
int hps_record_inq(struct sock *sk);
int hps_record_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
		       int flags);

#endif /* HPS_RECORD_H */
