/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_LINK_H
#define HPS_LINK_H

#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "conn.h"
#include "credit.h"
#include "wire.h"

struct hps_device;
struct hps_link;

/**
 * struct hps_slot - a place in the send queue
 * @cqe: completion of the send
 * @link: whose it is
 * @buf: where the payload is; NULL for a message without
 * @len: payload bytes
 */
struct hps_slot {
	struct ib_cqe cqe;
	struct hps_link *link;
	struct hps_buf *buf;
	u32 len;
};

/**
 * struct hps_link - a connection over a queue pair
 * @conn: what it carries; its lock guards everything below that changes
 * @dev: the device, from address resolution or request to teardown
 * @dev_node: in hps_device.links
 * @id: rdma_cm's; the handler's context is the link
 * @cq: from the core's pool, for sends and receives both
 * @nr_cqe: what the link takes up in @cq
 * @teardown: runs once, see link.c
 * @attempt: hps_cm_attempt_work(); cancelled by @teardown
 * @resolve_ms: time given to the last try to resolve the address
 * @routed: address and route are resolved; set before @attempt is queued
 * @established: hello exchanged on both sides, messages are looked at
 * @gated: iWARP's responder may not send before the initiator has
 * @rx_size: bytes of the receive buffers that are posted now
 * @rx_from: number of the first message that such a buffer is for
 * @rx_posted: receives posted since the beginning
 * @rx_held: buffers with DATA that nobody has read
 * @rx_full: the peer has filled a buffer of @rx_size
 * @rx_settled: there is no more to grow to
 * @rx_wait: with no more credits and unread buffers than so many, larger ones can
 *	be had; until then no more are granted. 0: not so
 * @rx_tell: the peer is to hear of @rx_from and @rx_size
 * @rx_spare: buffers of @rx_size to be posted
 * @grow: hps_receives_work(), holds a reference
 * @tx_size: bytes of the peer's receive buffers, to begin with or from @tx_from on
 * @tx_from: number of the first message that may be that long
 * @tx_resize: which is still to come
 * @credit: flow control
 * @tx_seq: messages posted
 * @rx_seq: messages received
 * @early: messages that came before @established
 * @rx_all: every receive buffer, wherever it is
 * @rx_reserved: bytes of @rx_all, taken by hps_buf_reserve()
 * @slots: the send queue, a ring of @sq_size
 * @hdrs: a struct hps_head for each slot
 * @sq_size: slots; those for control messages are kept free of DATA
 * @sq_head: slots taken since the beginning
 * @sq_tail: slots completed since the beginning
 * @unsignaled: sends posted since one asked for a completion
 * @unsignaled_bytes: their payload
 * @stalled: there was data to send and no credit
 * @stalls: how often that began
 */
struct hps_link {
	struct hps_conn conn;
	struct hps_device *dev;
	struct list_head dev_node;
	struct rdma_cm_id *id;
	struct ib_cq *cq;
	unsigned int nr_cqe;
	struct work_struct teardown;
	struct work_struct attempt;
	struct work_struct grow;
	unsigned int resolve_ms;
	bool routed;

	bool established;
	bool gated;
	bool stalled;
	bool rx_full;
	bool rx_settled;
	bool rx_tell;
	bool tx_resize;
	u32 rx_size;
	u32 rx_from;
	u32 rx_posted;
	u32 rx_held;
	u32 rx_wait;
	u32 tx_size;
	u32 tx_from;
	struct hps_credit credit;
	u32 tx_seq;
	u32 rx_seq;
	struct list_head early;
	struct list_head rx_all;
	struct list_head rx_spare;
	u64 rx_reserved;

	struct hps_slot *slots;
	struct hps_buf *hdrs;
	u32 sq_size;
	u32 sq_head;
	u32 sq_tail;
	u32 unsignaled;
	u32 unsignaled_bytes;
	u64 stalls;
};

/* What goes out with a message apart from payload of the program. */
struct hps_head {
	struct hps_hdr hdr;
	struct hps_buffers buffers;	/* in BUFFERS */
};

static inline struct hps_link *hps_link(struct hps_conn *conn)
{
	return container_of(conn, struct hps_link, conn);
}

extern struct workqueue_struct *hps_wq;

/* link.c */
struct hps_conn *hps_link_create(struct net *net, int rcvbuf);
struct hps_device *hps_link_hold_device(struct hps_link *link);
void hps_link_discard(struct hps_conn *conn);
int hps_link_setup(struct hps_link *link, struct rdma_cm_id *id);
void hps_link_established(struct hps_link *link);

/* cm.c */
int hps_cm_connect(struct hps_conn *conn);
void hps_cm_attempt_work(struct work_struct *work);

/* receives.c */
int hps_receives_setup(struct hps_link *link, struct ib_device *ibdev);
void hps_receives_again(struct hps_link *link, struct hps_buf *buf);
void hps_receives_hold(struct hps_link *link, const struct hps_buf *buf);
void hps_receives_consumed(struct hps_conn *conn, struct hps_buf *buf);
void hps_receives_grow(struct hps_conn *conn, struct sock *sk);
void hps_receives_work(struct work_struct *work);
bool hps_receives_full(struct hps_conn *conn);
u32 hps_receives_mem(struct hps_conn *conn);
void hps_receives_unmap(struct hps_link *link);

/* msg.c */
int hps_msg_post_receive(struct hps_link *link, struct hps_buf *buf);
int hps_msg_send(struct hps_conn *conn, struct hps_buf *buf, u32 len);
int hps_msg_send_fin(struct hps_conn *conn);
int hps_msg_send_finack(struct hps_conn *conn);
bool hps_msg_tx_idle(struct hps_conn *conn);
void hps_msg_probe(struct hps_conn *conn);
void hps_msg_resize(struct hps_link *link);
void hps_msg_credit(struct hps_link *link);
void hps_msg_first(struct hps_link *link);
void hps_msg_rx(struct hps_link *link, struct hps_buf *buf);

#endif /* HPS_LINK_H */
