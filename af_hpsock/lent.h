/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_LENT_H
#define HPS_LENT_H

#include <linux/skbuff.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "buf.h"

struct hps_conn;
struct hps_hold;
struct iov_iter;
struct sock;

/* Fewer bytes never are: the least value of zcopy_threshold. */
#define HPS_LENT_MIN	4096

/* Bytes of memory that lead to what is lent. */
#define HPS_LENT_OVERHEAD	512

/**
 * struct hps_lent - pages that the peer may read where they are
 * @conn: the connection that they are lent on, referenced: it learns how it went
 * @mem: they hold the bytes without a gap
 * @waited: a send waits for the peer to read them, see wait.c
 * @vain: they were not offered after all
 * @hold: protects them, and has the references; or NULL: each is referenced
 * @counted: @hold is one of hps_conn.holds
 * @uarg: who is told when they are not needed any more, referenced; or NULL
 * @charged: bytes charged to the socket
 * @locked: what counts against RLIMIT_MEMLOCK
 * @work: ends @hold, which a completion cannot
 */
struct hps_lent {
	struct hps_conn *conn;
	struct hps_pages mem;
	bool waited;
	bool vain;
	struct hps_hold *hold;
	bool counted;
	struct ubuf_info *uarg;
	u32 charged;
	struct mmpin locked;
	struct work_struct work;
};

struct hps_lent *hps_lent_get(struct sock *sk, struct hps_conn *conn,
			      struct iov_iter *iter, size_t max,
			      struct ubuf_info *uarg, bool promised, u32 mode,
			      u32 *refused);
void hps_lent_put(struct hps_lent *lent);
void hps_lent_drop(struct hps_lent *lent);
void hps_lent_went(struct hps_conn *conn, bool well);

#endif /* HPS_LENT_H */
