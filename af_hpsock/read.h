/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_READ_H
#define HPS_READ_H

#include <linux/types.h>

struct hps_buf;
struct hps_conn;
struct hps_pages;

/* Requests of one reader that are under way at a time. */
#define HPS_READS	4

/* Elements of one: 64 KiB that begin anywhere, or more where pages are adjacent. */
#define HPS_READ_SGES	17

int hps_read(struct hps_conn *conn, struct hps_buf *buf, struct hps_pages *sink);

#endif /* HPS_READ_H */
