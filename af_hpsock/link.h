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
 * @rx_size: bytes of our receive buffers
 * @tx_size: bytes of the peer's receive buffers
 * @credit: flow control
 * @tx_seq: messages posted
 * @rx_seq: messages received
 * @early: messages that came before @established
 * @rx_all: every receive buffer, wherever it is
 * @rx_reserved: bytes taken by hps_buf_reserve()
 * @slots: the send queue, a ring of @sq_size
 * @hdrs: headers of the messages, by slot
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
	unsigned int resolve_ms;
	bool routed;

	bool established;
	bool gated;
	bool stalled;
	u32 rx_size;
	u32 tx_size;
	struct hps_credit credit;
	u32 tx_seq;
	u32 rx_seq;
	struct list_head early;
	struct list_head rx_all;
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

static inline struct hps_link *hps_link(struct hps_conn *conn)
{
	return container_of(conn, struct hps_link, conn);
}

extern struct workqueue_struct *hps_wq;

/* link.c */
struct hps_conn *hps_link_create(struct net *net, int rcvbuf);
void hps_link_discard(struct hps_conn *conn);
int hps_link_setup(struct hps_link *link, struct rdma_cm_id *id);
void hps_link_established(struct hps_link *link);

/* cm.c */
int hps_cm_connect(struct hps_conn *conn);
void hps_cm_attempt_work(struct work_struct *work);

/* msg.c */
int hps_msg_post_receive(struct hps_link *link, struct hps_buf *buf);
int hps_msg_send(struct hps_conn *conn, struct hps_buf *buf, u32 len);
int hps_msg_send_fin(struct hps_conn *conn);
int hps_msg_send_finack(struct hps_conn *conn);
bool hps_msg_tx_idle(struct hps_conn *conn);
void hps_msg_probe(struct hps_conn *conn);
void hps_msg_consumed(struct hps_conn *conn, struct hps_buf *buf);
void hps_msg_credit(struct hps_link *link);
void hps_msg_first(struct hps_link *link);
void hps_msg_rx(struct hps_link *link, struct hps_buf *buf);

#endif /* HPS_LINK_H */
