/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_RECEIVES_H
#define HPS_RECEIVES_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

#include "dma.h"

struct hps_conn;
struct hps_link;
struct sock;
struct work_struct;

/**
 * struct hps_receive - a buffer for what comes in
 * @dma: the buffer, first
 * @cqe: completion of the receive posted on it
 * @link: whose it is
 * @all: in hps_link.rx_all; in no list once the link has let go of it
 */
struct hps_receive {
	struct hps_dma dma;
	struct ib_cqe cqe;
	struct hps_link *link;
	struct list_head all;
};

static inline struct hps_receive *hps_receive(const struct hps_buf *buf)
{
	return container_of(buf, struct hps_receive, dma.buf);
}

int hps_receives_setup(struct hps_link *link, struct ib_device *ibdev);
void hps_receives_again(struct hps_link *link, struct hps_buf *buf);
void hps_receives_hold(struct hps_link *link, const struct hps_buf *buf);
void hps_receives_consumed(struct hps_conn *conn, struct hps_buf *buf);
void hps_receives_grow(struct hps_conn *conn, struct sock *sk);
void hps_receives_work(struct work_struct *work);
void hps_receives_later(struct hps_conn *conn);
bool hps_receives_full(struct hps_conn *conn);
u32 hps_receives_mem(struct hps_conn *conn);
void hps_receives_read(struct hps_link *link);
int hps_receives_extra(struct hps_link *link, struct sock *sk);
void hps_receives_unmap(struct hps_link *link);

#endif /* HPS_RECEIVES_H */
