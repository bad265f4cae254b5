// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of a reader that waits, to which the peer writes by RDMA what comes next in the
 * stream (SDP's SinkAvail). Where it can be had it takes fewer messages, and no way there and
 * back, compared with an offer that is read (source.c).
 *
 *   reader                                     sender
 *
 *   the queue is empty
 *   REG_MR, SINKAVAIL: here, after so     --->  has it sent something meanwhile? Then
 *   many messages of yours                      this is void
 *                                               a large send: RDMA Write, and in the
 *                                         <---  place of the bytes WRITTEN, which also
 *   the key is invalid, the bytes are           invalidates the key
 *   there
 *
 * Whatever else comes of the stream ends it as well: the sender writes nothing there after
 * that. So does SINKCANCEL, for a reader that waits no longer; it has the memory back when
 * SINKACK says that the peer has heard of that. A key that was not invalidated by WRITTEN
 * is by us (LOCAL_INV), before the reader goes on.
 *
 * With zcopy_sync=cas there is no SINKAVAIL; instead the peer looks at a word of ours, which
 * is set when REG_MR has completed (rendezvous.c). All else is the same.
 *
 * One at a time is shown, and the next only when the peer was heard to have this one
 * (HPS_FLAG_SINK, modulo 2), so that SINKAVAIL and SINKCANCEL take one receive each; WORD,
 * which tells of our word, is counted as the first. A peer has these from the first time on
 * that it has lent something, and none is shown before; we have one for SINKACK before we
 * show any. Documentation/formal/target.pml has it proved.
 *
 * Between records there is no such thing: the head of a record comes before its bytes, so
 * that these are never what comes next.
 *
 * That all bytes that WRITTEN tells of were written only the peer knows. One that lies makes
 * the reader take for received what its memory held before; hence zcopy_sink is off unless
 * the peers are trusted.
 */
#include <linux/slab.h>
#include <rdma/ib_verbs.h>

#include "conn.h"
#include "device.h"
#include "link.h"
#include "mem.h"
#include "net.h"
#include "post.h"
#include "receives.h"
#include "rendezvous.h"
#include "target.h"
#include "work.h"

/* How long SINKCANCEL may remain without an answer. */
#define HPS_TARGET_ANSWER	(30 * HZ)

/* hps_link.targets, if they are not there */
static int hps_target_alloc(struct hps_link *link)
{
	struct hps_targets *targets;

	if (likely(link->targets))
		return 0;
	targets = kzalloc(sizeof(*targets), GFP_KERNEL);
	if (!targets)
		return -ENOMEM;
	targets->slot = HPS_SQ_SIZE;
	targets->reg_slot = HPS_SQ_SIZE;
	hps_mem_add(targets);
	spin_lock_bh(&link->conn.lock);
	link->targets = targets;
	spin_unlock_bh(&link->conn.lock);
	return 0;
}

/**
 * hps_target_expect - what has to be there before anything is lent
 * @link: entered, its socket locked
 *
 * That is receives for all that may then come without a credit: a READDONE for each offer,
 * CANCELACK, SINKAVAIL or WORD, and SINKCANCEL; and what it takes to ask at a word.
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM, or as hps_receives_extra().
 */
int hps_target_expect(struct hps_link *link)
{
	struct hps_conn *conn = &link->conn;
	int err;

	if (likely(link->lends))
		return 0;
	err = hps_target_alloc(link) ?: hps_rendezvous_expect(link);
	if (err)
		return err;
	err = hps_receives_extra(link, conn->sk, link->tx_offers_max + 1 +
						 HPS_TARGET_RECEIVES);
	if (err)
		return err;
	spin_lock_bh(&conn->lock);
	link->lends = true;
	spin_unlock_bh(&conn->lock);
	return 0;
}

/* What has to be there before anything is shown. */
static int hps_target_prepare(struct hps_link *link)
{
	int err = hps_target_alloc(link) ?: hps_rendezvous_prepare(link);

	if (err || likely(link->targets->answer))
		return err;
	err = hps_receives_extra(link, link->conn.sk, 1);
	link->targets->answer = !err;
	return err;
}

static void hps_target_set(struct hps_link *link, u8 state)
{
	WRITE_ONCE(link->targets->state, state);
	hps_wake(&link->targets->state);
	/* The reader sleeps on its socket. */
	hps_conn_wake(&link->conn);
}

/* Nobody can reach the memory any more, and it has no key. */
static void hps_target_give_back(struct hps_link *link)
{
	struct hps_targets *targets = link->targets;

	hps_key_unmap(&targets->key, link->dev->ibdev, DMA_FROM_DEVICE);
	targets->cancel = false;
	hps_target_set(link, HPS_TARGET_DONE);
}

/* Its key is not valid. After an error all keys are seen to by hps_target_end(). */
static void hps_target_free(struct hps_link *link)
{
	if (link->conn.shut)
		return;
	hps_key_put(link, &link->targets->key);
	hps_target_give_back(link);
}

/* What the peer has to know of it to write there. */
static void hps_target_describe(struct hps_link *link, struct hps_sinkavail *sink)
{
	const struct hps_targets *targets = link->targets;
	const struct ib_mr *mr = targets->key.mr;

	sink->addr = cpu_to_be64(mr->iova);
	sink->rkey = cpu_to_be32(mr->rkey);
	sink->len = cpu_to_be32(targets->len);
}

/* Post a SINKAVAIL, or WORD, of which the peer says that it came. Returns as hps_post_message(). */
static int hps_target_announce(struct hps_link *link, const struct hps_outgoing *out)
{
	struct hps_targets *targets = link->targets;
	int err = hps_post_message(link, out);

	if (err)
		return err;
	targets->told = !targets->told;
	targets->waits = true;
	return 0;
}

/* Is there room for a key and a message, and does the device make a key now? */
static bool hps_target_may_register(struct hps_link *link)
{
	return hps_post_slots_free(link) >= HPS_CTRL_SLOTS + 2 &&
	       (!link->keys_alone || hps_post_alone(link));
}

/*
 * Make a key for it. It is valid then, or will be, whether the peer hears of it or not.
 * Returns as hps_post_register(), or -EAGAIN if the device cannot make one now.
 */
static int hps_target_register(struct hps_link *link, int flags)
{
	struct hps_targets *targets = link->targets;
	int err;

	if (!hps_target_may_register(link))
		return -EAGAIN;
	err = hps_post_register(link, &targets->key, IB_ACCESS_LOCAL_WRITE |
				IB_ACCESS_REMOTE_WRITE, flags);
	if (!err)
		WRITE_ONCE(targets->state, HPS_TARGET_SHOWN);
	return err;
}

/* The peer is to know our word. Returns as hps_target_register(). */
static int hps_target_tell_word(struct hps_link *link)
{
	struct hps_word word;

	if (likely(link->rendezvous->told))
		return 0;
	if (!hps_target_may_register(link) || !hps_rendezvous_reach(link, &word))
		return -EAGAIN;
	return hps_target_announce(link, &(struct hps_outgoing){
		.type = HPS_MSG_WORD, .payload = &word, .size = sizeof(word),
	});
}

/* By our word, once there is a key. */
static void hps_target_tell_by_word(struct hps_link *link)
{
	u32 slot;

	if (hps_target_tell_word(link))
		return;
	slot = link->sq_next;
	if (!hps_target_register(link, IB_SEND_SIGNALED))
		link->targets->reg_slot = slot;
}

/* By SINKAVAIL. */
static void hps_target_tell(struct hps_link *link)
{
	struct hps_sinkavail sink;
	int err;

	if (hps_target_register(link, 0))
		return;
	hps_target_describe(link, &sink);
	err = hps_target_announce(link, &(struct hps_outgoing){
		.type = HPS_MSG_SINKAVAIL, .payload = &sink, .size = sizeof(sink),
		.at = link->credit.rx_used,
	});
	if (!err)
		hps_stat_inc(link->conn.hn, HPS_STAT_SINK_SHOWN);
}

/* The peer does not write any more, or never could have. */
static void hps_target_revoke(struct hps_link *link)
{
	struct hps_targets *targets = link->targets;
	u32 slot = link->sq_next;

	if (targets->slot == HPS_SQ_SIZE &&
	    !hps_post_invalidate(link, &targets->key, NULL, 0))
		targets->slot = slot;
}

static int hps_target_plain(struct hps_link *link, u8 type)
{
	return hps_post_control(link, &(struct hps_outgoing){ .type = type });
}

/**
 * hps_target_push - post what is due
 * @link: locked, with targets
 *
 * As far as there are slots: this comes by again with the next completion or message. After
 * an error nothing is, and there may be no key any more.
 */
void hps_target_push(struct hps_link *link)
{
	struct hps_targets *targets = link->targets;

	lockdep_assert_held(&link->conn.lock);
	if (link->conn.shut)
		return;
	if (targets->state == HPS_TARGET_QUEUED && hps_rendezvous_used(link))
		hps_target_tell_by_word(link);
	if (targets->state == HPS_TARGET_QUEUED && !hps_rendezvous_used(link))
		hps_target_tell(link);
	if (targets->cancel && !hps_target_plain(link, HPS_MSG_SINKCANCEL)) {
		targets->cancel = false;
		targets->cancelling = true;
	}
	if (targets->state == HPS_TARGET_OVER)
		hps_target_revoke(link);
	if (targets->ack && !hps_target_plain(link, HPS_MSG_SINKACK))
		targets->ack = false;
}

/**
 * hps_target_show - hps_transport.show
 * @conn: not locked, its socket is
 * @mem: which waits, until hps_target_withdraw()
 *
 * Context: process, may sleep.
 * Return: false if it is not shown; hps_target_withdraw() is not to be called then.
 */
bool hps_target_show(struct hps_conn *conn, const struct hps_pages *mem)
{
	struct hps_link *link = hps_link(conn);
	struct hps_targets *targets;
	struct hps_key key = {};
	bool shown = false;

	if (!hps_link_enter(link))
		return false;
	if (hps_target_prepare(link) ||
	    hps_key_make(link, &key, mem, DMA_FROM_DEVICE))
		goto leave;
	spin_lock_bh(&conn->lock);
	targets = link->targets;
	shown = !conn->shut && targets->state == HPS_TARGET_NONE &&
		!targets->waits && !targets->cancelling && !conn->fin_rcvd &&
		!conn->rx_cancel && list_empty(&conn->rxq) &&
		!hps_rendezvous_spent(link);
	if (shown) {
		targets->key = key;
		targets->len = mem->len;
		targets->written = 0;
		targets->state = HPS_TARGET_QUEUED;
		hps_target_push(link);
	} else {
		hps_key_put(link, &key);
	}
	spin_unlock_bh(&conn->lock);
	if (!shown)
		hps_key_unmap(&key, link->dev->ibdev, DMA_FROM_DEVICE);
leave:
	hps_link_leave(link);
	return shown;
}

/**
 * hps_target_shown - hps_transport.shown
 * @conn: whose memory is shown
 *
 * Context: any; a snapshot.
 * Return: false once nothing will be written there any more.
 */
bool hps_target_shown(struct hps_conn *conn)
{
	u8 state = READ_ONCE(hps_link(conn)->targets->state);

	return state == HPS_TARGET_QUEUED || state == HPS_TARGET_SHOWN;
}

/**
 * hps_target_withdraw - hps_transport.withdraw
 * @conn: not locked, referenced
 *
 * It is the peer's kernel that answers, not its program: if it has not done so by
 * HPS_TARGET_ANSWER, something is wrong and the connection is ended.
 *
 * Context: process, sleeps; the socket is not locked.
 * Return: how many bytes came.
 */
u32 hps_target_withdraw(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);
	struct hps_targets *targets = link->targets;
	u32 written;

	spin_lock_bh(&conn->lock);
	/* The peer knows nothing of it yet. */
	if (targets->state == HPS_TARGET_QUEUED ||
	    targets->reg_slot != HPS_SQ_SIZE)
		hps_target_over(link);
	targets->cancel = targets->state == HPS_TARGET_SHOWN;
	hps_target_push(link);
	spin_unlock_bh(&conn->lock);
	if (!wait_var_event_timeout(&targets->state,
				    READ_ONCE(targets->state) == HPS_TARGET_DONE,
				    HPS_TARGET_ANSWER)) {
		spin_lock_bh(&conn->lock);
		hps_stat_inc(conn->hn, HPS_STAT_READ_STALLED);
		hps_conn_shut(conn, ETIMEDOUT);
		spin_unlock_bh(&conn->lock);
	}
	/* Also when the connection has ended. */
	wait_var_event(&targets->state,
		       READ_ONCE(targets->state) == HPS_TARGET_DONE);
	spin_lock_bh(&conn->lock);
	written = targets->written;
	targets->state = HPS_TARGET_NONE;
	spin_unlock_bh(&conn->lock);
	return written;
}

/**
 * hps_target_over - nothing will be written to ours any more
 * @link: locked
 */
void hps_target_over(struct hps_link *link)
{
	struct hps_targets *targets = link->targets;

	lockdep_assert_held(&link->conn.lock);
	if (likely(!targets))
		return;
	if (targets->state == HPS_TARGET_QUEUED) {
		hps_target_free(link);
	} else if (targets->state == HPS_TARGET_SHOWN) {
		targets->cancel = false;
		hps_rendezvous_hide(link);
		hps_target_set(link, HPS_TARGET_OVER);
		hps_target_push(link);
	}
}

/**
 * hps_target_written - the peer has written there
 * @link: locked
 * @len: bytes
 *
 * Return: 0, or -EPROTO if it could not have.
 */
int hps_target_written(struct hps_link *link, u32 len)
{
	struct hps_targets *targets = link->targets;

	lockdep_assert_held(&link->conn.lock);
	if (!targets || targets->state != HPS_TARGET_SHOWN ||
	    targets->reg_slot != HPS_SQ_SIZE || !len || len > targets->len)
		return -EPROTO;
	targets->written = len;
	hps_rendezvous_hide(link);
	/* One that keeps to the protocol has invalidated the key by the same message. */
	if (link->rx_revoked == targets->key.mr->rkey)
		hps_target_free(link);
	else
		hps_target_over(link);
	return 0;
}

/**
 * hps_target_acked - the peer has heard that it is not to write there
 * @link: locked
 *
 * Return: 0, or -EPROTO if it was not told.
 */
int hps_target_acked(struct hps_link *link)
{
	struct hps_targets *targets = link->targets;

	lockdep_assert_held(&link->conn.lock);
	if (!targets || !targets->cancelling)
		return -EPROTO;
	targets->cancelling = false;
	hps_target_over(link);
	return 0;
}

/* LOCAL_INV has completed. */
static void hps_target_revoked(struct hps_link *link)
{
	link->targets->slot = HPS_SQ_SIZE;
	hps_target_free(link);
}

/* REG_MR has: the peer may look at our word, if the reader still waits. */
static void hps_target_registered(struct hps_link *link)
{
	struct hps_targets *targets = link->targets;
	struct hps_sinkavail sink;

	targets->reg_slot = HPS_SQ_SIZE;
	if (link->conn.shut || targets->state != HPS_TARGET_SHOWN)
		return;
	hps_target_describe(link, &sink);
	hps_rendezvous_show(link, &sink);
	hps_stat_inc(link->conn.hn, HPS_STAT_SINK_SHOWN);
}

/**
 * hps_target_put_key - its key is to be destroyed
 * @link: whose queue pair is drained
 *
 * Context: process.
 */
void hps_target_put_key(struct hps_link *link)
{
	struct hps_targets *targets = link->targets;

	spin_lock_bh(&link->conn.lock);
	if (targets && targets->key.mr)
		hps_key_put(link, &targets->key);
	spin_unlock_bh(&link->conn.lock);
}

/**
 * hps_target_end - it was
 * @link: whose queue pair is drained
 *
 * Context: process.
 */
void hps_target_end(struct hps_link *link)
{
	struct hps_targets *targets = link->targets;

	spin_lock_bh(&link->conn.lock);
	if (targets && targets->state != HPS_TARGET_NONE &&
	    targets->state != HPS_TARGET_DONE)
		hps_target_give_back(link);
	spin_unlock_bh(&link->conn.lock);
}

/* SINKAVAIL or WORD came: one at a time, each counted before the next. */
static int hps_target_count(struct hps_link *link)
{
	struct hps_targets *targets = link->targets;

	if (!link->lends || link->conn.records ||
	    targets->seen != targets->seen_told || targets->ack ||
	    targets->peer_len)
		return -EPROTO;
	targets->seen = !targets->seen;
	return 0;
}

/* The peer waits for what we send next. Returns 0, or -EPROTO if there is no such memory. */
static int hps_target_take(struct hps_link *link, const struct hps_sinkavail *sink)
{
	struct hps_targets *targets = link->targets;
	u64 addr = be64_to_cpu(sink->addr);
	u32 len = be32_to_cpu(sink->len);

	if (!len || len > HPS_SOURCE_MAX || addr + len < addr)
		return -EPROTO;
	targets->peer_addr = addr;
	targets->peer_rkey = be32_to_cpu(sink->rkey);
	targets->peer_len = len;
	return 0;
}

/* The peer's word was asked. */
static void hps_target_answered(struct hps_link *link)
{
	struct hps_sinkavail sink;

	if (!hps_rendezvous_answered(link, &sink) || !hps_target_take(link, &sink))
		return;
	hps_stat_inc(link->conn.hn, HPS_STAT_VIOLATION_SINK);
	hps_conn_shut(&link->conn, EPROTO);
}

/**
 * hps_target_completed - was it one of these requests that has completed?
 * @link: locked, with targets
 * @slot: of the send queue, in which it was
 */
void hps_target_completed(struct hps_link *link, u32 slot)
{
	lockdep_assert_held(&link->conn.lock);
	if (link->targets->slot == slot)
		hps_target_revoked(link);
	else if (link->targets->reg_slot == slot)
		hps_target_registered(link);
	else if (hps_rendezvous_awaits(link, slot))
		hps_target_answered(link);
}

/**
 * hps_target_offered - SINKAVAIL came in
 * @link: locked
 * @at: how many messages that cost a credit the peer had received, modulo 2^16
 * @sink: where it waits for the next bytes
 *
 * Return: 0, or -EPROTO if the peer may not do so, or not yet.
 */
int hps_target_offered(struct hps_link *link, u16 at,
		       const struct hps_sinkavail *sink)
{
	struct hps_targets *targets = link->targets;

	lockdep_assert_held(&link->conn.lock);
	if (hps_target_count(link) || hps_target_take(link, sink))
		return -EPROTO;
	targets->peer_shows = true;
	/* Void if something of the stream is under way that it had not received. */
	if ((u16)link->credit.tx_used != at)
		targets->peer_len = 0;
	return 0;
}

/**
 * hps_target_word - WORD came in
 * @link: locked
 * @word: where the peer's is
 *
 * Return: 0, or -EPROTO if the peer may not do so, or not yet.
 */
int hps_target_word(struct hps_link *link, const struct hps_word *word)
{
	lockdep_assert_held(&link->conn.lock);
	return hps_target_count(link) ?:
	       hps_rendezvous_hear(link, be64_to_cpu(word->addr),
				   be32_to_cpu(word->rkey));
}

/**
 * hps_target_taken_back - SINKCANCEL came in
 * @link: locked
 *
 * Return: 0, or -EPROTO if there was nothing to be taken back.
 */
int hps_target_taken_back(struct hps_link *link)
{
	struct hps_targets *targets = link->targets;

	lockdep_assert_held(&link->conn.lock);
	/* One at a time, and not before the first SINKAVAIL or WORD. */
	if (!targets || targets->ack ||
	    (!targets->peer_shows && !hps_rendezvous_known(link)))
		return -EPROTO;
	hps_rendezvous_recalled(link);
	targets->peer_shows = false;
	targets->peer_len = 0;
	targets->ack = true;
	hps_target_push(link);
	return 0;
}
