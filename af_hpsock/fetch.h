/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_FETCH_H
#define HPS_FETCH_H

#include <linux/types.h>

struct hps_buf;
struct hps_conn;
struct hps_reader;
struct sock;

/* Fewer bytes are not worth to be brought straight to where they belong. */
#define HPS_FETCH_DIRECT	16384

void hps_fetch_init(struct hps_conn *conn);
void hps_fetch_expect(struct hps_conn *conn);
void hps_fetch_back(struct hps_conn *conn);
void hps_fetch_later(struct hps_conn *conn);
void hps_fetch_cancel(struct hps_conn *conn);
int hps_fetch_aside(struct sock *sk, struct hps_conn *conn);
int hps_fetch_aside_all(struct sock *sk, struct hps_conn *conn, u32 size);
int hps_fetch_turn(struct sock *sk);
void hps_fetch_consumed(struct hps_conn *conn, struct hps_buf *buf);
ssize_t hps_fetch(struct sock *sk, struct hps_conn *conn, struct hps_buf *buf,
		  u32 skip, struct hps_reader *r, size_t len);

#endif /* HPS_FETCH_H */
