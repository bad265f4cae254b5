/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_LINK_H
#define HPS_LINK_H

#include <linux/workqueue.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "conn.h"
#include "credit.h"
#include "dma.h"
#include "growth.h"
#include "param.h"
#include "receives.h"
#include "shrink.h"

struct hps_asker;
struct hps_device;
struct hps_rendezvous;
struct hps_targets;

/* Messages in flight at most. Their headers take 1 KiB. */
#define HPS_SQ_SIZE	32

/**
 * struct hps_slot - a place in the send queue
 * @cqe: completion of the send
 * @buf: what is delivered when it completes; NULL for a message without payload, and
 *	for what is only offered, which is delivered when its key is invalidated. So is
 *	what was written, though a slot has it, to know it by
 * @len: payload bytes
 * @index: in hps_link.slots
 */
struct hps_slot {
	struct ib_cqe cqe;
	struct hps_buf *buf;
	u32 len;
	u32 index;
};

/**
 * struct hps_link - a connection over a queue pair
 * @conn: what it carries; its lock guards everything below that changes
 * @dev: the device, from address resolution or request to teardown
 * @dev_node: in hps_device.links
 * @id: rdma_cm's; the handler's context is the link
 * @cq: from the core's pool, for sends and receives both
 * @nr_cqe: what the link takes up in @cq
 * @users: who is between hps_link_enter() and hps_link_leave()
 * @teardown: see rdma.c; runs once, after two runs at most that were too early, and once
 *	more for what comes late
 * @attempt: hps_cm_attempt_work(); cancelled by @teardown
 * @late: a queue pair that @teardown has to destroy a grace period later, when there is no
 *	@attempt any more
 * @asker: iWARP: who asks for @attempt, see asker.c; or NULL
 * @resolve_ms: time given to the last try to resolve the address
 * @tuning: the socket's values of tunables
 * @routed: address and route are resolved; set before @attempt is queued
 * @established: hello exchanged on both sides, messages are looked at
 * @receives: those that are posted, and the others
 * @growth: how they grow
 * @shrink: and shrink; NULL as long as they have not grown
 * @peer_reads: the peer wants to be offered bytes
 * @reads: we do, and have the resources
 * @peer_pads: the peer answers SHRINK
 * @peer_writes: the peer takes SINKAVAIL
 * @swaps: our device has what words take, as the peer was told
 * @peer_swaps: so has the peer's
 * @asks: both, and resources for what we ask
 * @is_asked: likewise for what the peer asks
 * @tx_size: bytes of the peer's receive buffers, to begin with or from @tx_from on
 * @tx_from: number of the first message that may be that long
 * @tx_resize: which is still to come
 * @tx_pads: PAD to be sent before any other bytes
 * @mrs: memory regions that are not in use, but for what is lent
 * @tx_mrs: likewise, for what is lent
 * @tx_regions: how many there are of these, in use or not; the senders'
 * @tx_lent: sources queued or offered
 * @tx_mr_pages: pages that each can cover
 * @tx_offers: sources offered and not read
 * @tx_offers_max: no more at a time
 * @tx_sources: these, in order
 * @tx_read: those that were read, whose keys are still to be invalidated
 * @tx_read_total: READDONE received
 * @rx_read_total: READDONE sent
 * @lends: there are receives for what is answered to an offer, see hps_target_expect()
 * @targets: memory for what comes next, either way; NULL until it may be shown
 * @rendezvous: words at which that is asked for; NULL until there may be one
 * @tx_cancel: offers that the peer is asked to give back, see cancel.c
 * @tx_cancelling: it was asked
 * @rx_cancelled: it is to be answered when it asked
 * @rx_cancel_done: bytes that were read of the first one
 * @rx_revoked: the key that the message invalidated that is looked at, or 0
 * @read_sges: elements that an RDMA Read can have
 * @reading: RDMA Reads posted and not completed
 * @tx_urgents: URGENT posted, modulo 2
 * @rx_urgents: URGENT received, modulo 2
 * @rx_heard: as many the peer was told of
 * @tx_waits: the peer was not heard to have the last URGENT
 * @credit: flow control
 * @credit_timer: has the peer wait no longer; holds a reference while pending
 * @ask_timer: asks for the completion of what is @unsignaled; holds a reference while
 *	pending
 * @tx_seq: messages posted
 * @rx_seq: messages received
 * @hdrs: a struct hps_head for each slot
 * @inline_max: bytes of a message, header included, that the device takes inline
 * @gather_max: pages that a message can be gathered of
 * @sq_next: index of the slot to be taken next
 * @sq_used: slots taken before it and not completed
 * @unsignaled: slots taken since one asked for a completion
 * @unsignaled_bytes: their payload
 * @timed: one more than the index of the slot whose completion is timed, or 0
 * @timed_from: when that was posted, by hps_post_clock()
 * @near: the peer is, until so many of them have taken long, see hps_msg_timed()
 * @iwarp: the device is, see post.c
 * @keys_alone: a key is made when all before it has completed, see hps_keys_repeated()
 * @stalled: there was data to send and no credit
 * @stalls: how often that began
 * @slots: the send queue, a ring; %HPS_CTRL_SLOTS of it are kept free of DATA
 */
struct hps_link {
	struct hps_conn conn;
	struct hps_device *dev;
	struct list_head dev_node;
	struct rdma_cm_id *id;
	struct ib_cq *cq;
	unsigned int nr_cqe;
	atomic_t users;
	struct work_struct teardown;
	union {
		struct work_struct attempt;
		struct {
			struct rcu_head rcu;
			struct ib_qp *qp;
		} late;
	};
	struct hps_asker *asker;
	unsigned int resolve_ms;
	struct hps_tuning tuning;
	bool routed;

	bool established;
	bool peer_reads;
	bool reads;
	bool peer_pads;
	bool peer_writes;
	bool swaps;
	bool peer_swaps;
	bool asks;
	bool is_asked;
	bool iwarp;
	bool keys_alone;
	bool stalled;
	bool tx_resize;
	bool tx_waits;
	bool tx_urgents;
	bool rx_urgents;
	bool rx_heard;
	bool tx_cancelling;
	bool lends;
	bool rx_cancelled;
	u8 near;
	u8 timed;
	u8 read_sges;
	u32 tx_cancel;
	u32 rx_cancel_done;
	u32 tx_size;
	u32 tx_from;
	u32 tx_pads;

	struct hps_targets *targets;
	struct hps_rendezvous *rendezvous;
	struct list_head mrs;
	struct list_head tx_mrs;
	struct list_head tx_sources;
	struct list_head tx_read;
	u32 tx_lent;
	u32 tx_mr_pages;
	u16 tx_regions;
	u16 tx_offers;
	u16 tx_offers_max;
	u16 inline_max;
	u32 tx_read_total;
	u32 rx_read_total;
	u32 rx_revoked;
	u32 reading;

	struct hps_receives receives;
	struct hps_growth growth;
	struct hps_shrink *shrink;
	struct hps_credit credit;
	u32 timed_from;			/* here it fills a hole */
	struct timer_list credit_timer;
	struct timer_list ask_timer;
	u32 tx_seq;
	u32 rx_seq;

	struct hps_dma *hdrs;
	u8 gather_max;
	u8 sq_next;
	u8 sq_used;
	u8 unsignaled;
	u32 unsignaled_bytes;
	u64 stalls;
	struct hps_slot slots[HPS_SQ_SIZE];
};

static inline struct hps_link *hps_link(struct hps_conn *conn)
{
	return container_of(conn, struct hps_link, conn);
}

/* Whose slot it is. */
static inline struct hps_link *hps_slot_link(struct hps_slot *slot)
{
	return container_of(slot, struct hps_link, slots[slot->index]);
}

/* Bytes that one key can cover, wherever in its first page they begin. */
static inline u32 hps_link_key_max(const struct hps_link *link)
{
	return link->tx_mr_pages ? (link->tx_mr_pages - 1) * PAGE_SIZE : 0;
}

int hps_link_init(void);
void hps_link_exit(void);
struct hps_link *hps_link_alloc(const struct sock *sk);
void hps_link_free(struct hps_conn *conn);
bool hps_link_enter(struct hps_link *link);
void hps_link_leave(struct hps_link *link);
bool hps_link_reads(const struct hps_link *link);
bool hps_link_swaps(const struct hps_link *link);

#endif /* HPS_LINK_H */
