/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_READ_H
#define HPS_READ_H

#include <linux/types.h>

struct hps_buf;
struct hps_conn;
struct page;

/* Requests of one reader that are under way at a time. */
#define HPS_READS	4

/**
 * struct hps_sink - memory that is waiting for bytes
 * @pages: where to, one behind the other
 * @nr: how many pages
 * @off: of the first byte in the first page
 * @len: bytes
 */
struct hps_sink {
	struct page **pages;
	u32 nr;
	u32 off;
	u32 len;
};

int hps_read(struct hps_conn *conn, struct hps_buf *buf, struct hps_sink *sink);

#endif /* HPS_READ_H */
