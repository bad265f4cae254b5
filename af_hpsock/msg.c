// SPDX-License-Identifier: GPL-2.0
/*
 * Messages sent: posted, completed.
 *
 * Sends complete in order, so one completion retires every slot up to its own,
 * and most sends ask for none; hps_msg_ask() asks for them, late. What costs a credit
 * leaves HPS_CTRL_SLOTS of the send queue to the messages that need none.
 */
#include <net/tcp_states.h>

#include "cancel.h"
#include "compat.h"
#include "conn_life.h"
#include "conn_tx.h"
#include "device.h"
#include "dma.h"
#include "lent.h"
#include "link.h"
#include "msg.h"
#include "net.h"
#include "param.h"
#include "receives.h"
#include "source.h"

/* Payload of our messages at most, whatever the peer has buffers for. */
#define HPS_TX_MAX	65536

/* How long CREDIT is delayed for a peer that ran dry while there is something to read here. */
#define HPS_CREDIT_DELAY	1	/* jiffies */

/* How long it may take until a send that nothing follows is known to be delivered. */
#define HPS_ASK_DELAY		2	/* jiffies */

/**
 * hps_msg_error - a completion with an error: the queue pair is finished
 * @link: locked
 * @wc: the completion
 */
void hps_msg_error(struct hps_link *link, const struct ib_wc *wc)
{
	struct hps_conn *conn = &link->conn;
	int err = 0;

	lockdep_assert_held(&link->conn.lock);
	if (conn->shut)
		return;
	switch (wc->status) {
	case IB_WC_WR_FLUSH_ERR:
		/* Follows another error, a disconnect or, early, a rejection. */
		if (!link->established)
			return;
		if (conn->state != TCP_CLOSE)
			hps_stat_inc(conn->hn, HPS_STAT_RESET_RCVD);
		break;
	case IB_WC_RETRY_EXC_ERR:
		hps_stat_inc(conn->hn, HPS_STAT_RETRY_EXCEEDED);
		err = ETIMEDOUT;
		break;
	case IB_WC_RNR_RETRY_EXC_ERR:
		hps_stat_inc(conn->hn, HPS_STAT_RNR_EXCEEDED);
		break;
	default:
		hps_stat_inc(conn->hn, HPS_STAT_WC_ERROR);
		break;
	}
	hps_conn_shut(conn, err);
}

/* The slot that was taken first of those that have not completed. */
static struct hps_slot *hps_msg_oldest(struct hps_link *link)
{
	u32 index = link->sq_next + HPS_SQ_SIZE - link->sq_used;

	return &link->slots[index % HPS_SQ_SIZE];
}

static void hps_msg_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hps_slot *slot = container_of(wc->wr_cqe, struct hps_slot, cqe);
	struct hps_link *link = hps_slot_link(slot);
	struct hps_conn *conn = &link->conn;
	struct hps_slot *done;

	spin_lock_bh(&conn->lock);
	if (wc->status == IB_WC_SUCCESS)
		conn->heard = jiffies;
	else
		hps_msg_error(link, wc);
	do {
		if (WARN_ON_ONCE(!link->sq_used))	/* I6 */
			break;
		done = hps_msg_oldest(link);
		link->sq_used--;
		if (done->buf && done->buf->lent && !conn->shut)
			hps_source_revoked(link, hps_source(done->buf));
		if (done->buf)
			hps_conn_tx_done(conn, done->buf, done->len);
	} while (done != slot);
	if (unlikely(!list_empty(&link->tx_read)))
		hps_msg_revoke(link);
	hps_msg_pad(link);
	hps_conn_tx_advanced(conn);
	hps_msg_credit(link);
	spin_unlock_bh(&conn->lock);
}

static u32 hps_msg_slots_free(const struct hps_link *link)
{
	return HPS_SQ_SIZE - link->sq_used;
}

/*
 * May the last bytes that there are go without a completion? The device takes a request
 * more readily than it tells of its end, and a program that sends a little and waits for
 * an answer does not look. hps_msg_ask() finds out when somebody does, and in any case
 * soon. Pages of others are to be given back at once.
 */
static bool hps_msg_silent(struct hps_link *link, const struct hps_buf *buf)
{
	const struct hps_conn *conn = &link->conn;

	return !buf->gather && conn->confirmed && !conn->fin_queued &&
	       !conn->resetting;
}

/*
 * Must this send ask for a completion? What is no DATA does, so that FIN, which a
 * lingering close waits for, tells of all before it. Likewise what takes the last slot or
 * credit, as there may be no other for long. On iWARP each: Soft-iWARP sends what asks for
 * none from where it is, and says that it is done when TCP still has to send the page,
 * which would be filled anew meanwhile.
 */
static bool hps_msg_signal(struct hps_link *link, const struct hps_buf *buf,
			   u32 len)
{
	struct sock *sk = link->conn.sk;

	link->unsignaled++;
	link->unsignaled_bytes += len;
	if (len && sk && !link->iwarp &&
	    (len < link->conn.tx_unsent || hps_msg_silent(link, buf)) &&
	    hps_msg_slots_free(link) > HPS_CTRL_SLOTS + 1 &&
	    hps_credit_left(&link->credit) > 1 &&
	    link->unsignaled < hps_tuned(&link->tuning, HPS_TUNE_SIGNAL_EVERY) &&
	    link->unsignaled_bytes < READ_ONCE(sk->sk_sndbuf) / 4)
		return false;
	link->unsignaled = 0;
	link->unsignaled_bytes = 0;
	return true;
}

/* Post in the next slot, of which there is one; wr->send_flags are set. */
static int hps_msg_post_wr(struct hps_link *link, struct ib_send_wr *wr,
			   struct hps_buf *buf, u32 len)
{
	struct hps_slot *slot = &link->slots[link->sq_next];
	int err;

	slot->cqe.done = hps_msg_sent;
	slot->buf = buf;
	slot->len = len;
	wr->wr_cqe = &slot->cqe;
	err = ib_post_send(link->id->qp, wr, NULL);
	if (err) {
		hps_stat_inc(link->conn.hn, HPS_STAT_WC_ERROR);
		hps_conn_shut(&link->conn, 0);
		return err;
	}
	link->sq_next = (link->sq_next + 1) % HPS_SQ_SIZE;
	link->sq_used++;
	return 0;
}

/* As that, and ask for a completion if it is time to. */
static int hps_msg_post_slot(struct hps_link *link, struct ib_send_wr *wr,
			     struct hps_buf *buf, u32 len)
{
	if (hps_msg_signal(link, buf, len))
		wr->send_flags |= IB_SEND_SIGNALED;
	return hps_msg_post_wr(link, wr, buf, len);
}

/* The device takes the bytes along with the request: no DMA, no keys. */
static void hps_msg_sge_inline(struct ib_sge *sge, void *data, u32 len)
{
	sge->addr = (uintptr_t)data;
	sge->length = len;
	sge->lkey = 0;
}

static void hps_msg_sge(struct hps_link *link, struct ib_sge *sge, u64 addr, u32 len)
{
	sge->addr = addr;
	sge->length = len;
	sge->lkey = link->id->qp->pd->local_dma_lkey;
	ib_dma_sync_single_for_device(link->hdrs->ibdev, addr, len, DMA_TO_DEVICE);
}

/* Payload from buf->start on; returns how many elements that takes. */
static u32 hps_msg_sges(struct hps_link *link, struct ib_sge *sge,
			const struct hps_buf *buf, u32 len)
{
	const struct hps_gather *gather = buf->gather;
	u32 skip = buf->start, nr = 0, i;

	if (!gather) {
		hps_msg_sge(link, sge, hps_dma(buf)->addr + skip, len);
		return 1;
	}
	/* Mapped when they were queued, and not written since. */
	for (i = 0; len; i++) {
		u32 n = gather->frag[i].len;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		n = min(n - skip, len);
		sge[nr].addr = gather->frag[i].dma + skip;
		sge[nr].length = n;
		sge[nr].lkey = link->id->qp->pd->local_dma_lkey;
		nr++;
		len -= n;
		skip = 0;
	}
	return nr;
}

/* What the peer is told of receives of @size. */
static u32 hps_msg_longest(const struct hps_link *link, u32 size)
{
	return hps_receives_capacity(&link->receives, size);
}

/* What follows the header without being the program's; returns its length. */
static u32 hps_msg_payload(struct hps_link *link, u8 type,
			   struct hps_head *head)
{
	switch (type) {
	case HPS_MSG_BUFFERS:
		head->buffers.from = cpu_to_be32(link->receives.from);
		head->buffers.size = cpu_to_be32(hps_msg_longest(link, link->receives.size));
		return sizeof(head->buffers);
	case HPS_MSG_SHRINK:
		head->smaller.size = cpu_to_be32(hps_msg_longest(link, link->shrink->size));
		head->smaller.pads = cpu_to_be32(link->shrink->pads);
		return sizeof(head->smaller);
	case HPS_MSG_URGENT:
		head->urgent.ahead = cpu_to_be32(link->tx_ahead);
		return sizeof(head->urgent);
	case HPS_MSG_SRCAVAIL:
		head->source.addr = cpu_to_be64(link->tx_offer->key.mr->iova);
		head->source.rkey = cpu_to_be32(link->tx_offer->key.mr->rkey);
		head->source.len = cpu_to_be32(link->tx_offer->lent->mem.len);
		return sizeof(head->source);
	case HPS_MSG_READDONE:
		head->read.total = cpu_to_be32(link->rx_read_total);
		return sizeof(head->read);
	case HPS_MSG_SRCCANCEL:
		head->cancel.count = cpu_to_be32(link->tx_cancel);
		return sizeof(head->cancel);
	case HPS_MSG_CANCELACK:
		head->ack.done = cpu_to_be32(link->rx_cancel_done);
		return sizeof(head->ack);
	default:
		return 0;
	}
}

/* @urgent: offset of an urgent byte in the payload, or -1 */
static int hps_msg_post(struct hps_link *link, u8 type, struct hps_buf *buf,
			u32 len, int urgent)
{
	u32 index = link->sq_next, size;
	struct hps_head *head = (struct hps_head *)link->hdrs->buf.data + index;
	struct hps_hdr *hdr = &head->hdr;
	struct ib_send_wr wr = {};
	struct ib_sge sge[HPS_GATHER_MAX + 1];
	int err;

	size = hps_msg_payload(link, type, head);
	hdr->type = type;
	hdr->flags = link->rx_urgents ? HPS_FLAG_HEARD : 0;
	hdr->urgent = 0;
	if (urgent >= 0) {
		hdr->flags |= HPS_FLAG_URGENT;
		hdr->urgent = cpu_to_be16(urgent);
	}
	hdr->len = cpu_to_be32(size + len);
	hdr->seq = cpu_to_be32(link->tx_seq);
	hdr->credit = cpu_to_be32(hps_credit_tell(&link->credit));
	size += sizeof(*hdr);
	wr.num_sge = 1;
	if (size + len <= link->inline_max && !(len && buf->gather)) {
		wr.send_flags = IB_SEND_INLINE;
		hps_msg_sge_inline(&sge[0], head, size);
		if (len)
			hps_msg_sge_inline(&sge[wr.num_sge++],
					   buf->data + buf->start, len);
	} else {
		hps_msg_sge(link, &sge[0],
			    link->hdrs->addr + index * sizeof(*head), size);
		if (len)
			wr.num_sge += hps_msg_sges(link, &sge[1], buf, len);
	}

	wr.sg_list = sge;
	wr.opcode = IB_WR_SEND;
	/* Soft-iWARP ends the connection over it; the peer sees to it itself. */
	if (type == HPS_MSG_READDONE && !link->iwarp) {
		wr.opcode = IB_WR_SEND_WITH_INV;
		wr.ex.invalidate_rkey = link->rx_read_key;
	}
	err = hps_msg_post_slot(link, &wr, buf, len);
	if (err)
		return err;
	link->rx_heard = link->rx_urgents;
	if (++link->tx_seq == link->tx_from && link->tx_resize)
		hps_msg_resize(link);
	return 0;
}

/**
 * hps_msg_resize - the next message goes into a receive of tx_size
 * @link: locked
 */
void hps_msg_resize(struct hps_link *link)
{
	u32 max = min_t(u32, link->tx_size - sizeof(struct hps_hdr), HPS_TX_MAX);

	lockdep_assert_held(&link->conn.lock);
	link->tx_resize = false;
	if (link->conn.user_mss)
		max = min_t(u32, max, link->conn.user_mss);
	hps_conn_tx_resize(&link->conn, max);
}

/* A message without bytes of the program and without credit. */
static int hps_msg_control(struct hps_link *link, u8 type)
{
	if (link->conn.shut || !hps_msg_slots_free(link))
		return -EAGAIN;
	return hps_msg_post(link, type, NULL, 0, -1);
}

/* A message that costs a credit and is not of the stream. */
static int hps_msg_charged(struct hps_link *link, u8 type)
{
	int err;

	if (link->conn.shut || hps_msg_slots_free(link) <= HPS_CTRL_SLOTS ||
	    !hps_credit_left(&link->credit))
		return -EAGAIN;
	err = hps_msg_post(link, type, NULL, 0, -1);
	if (!err)
		hps_credit_use(&link->credit);
	return err;
}

/**
 * hps_msg_pad - send the PAD that the peer waits for
 * @link: locked, established
 *
 * As far as there are slots and credits: this comes by again with the next completion or
 * message.
 */
void hps_msg_pad(struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	while (unlikely(link->tx_pads) && !hps_msg_charged(link, HPS_MSG_PAD))
		link->tx_pads--;
}

/**
 * hps_msg_shrink - ask for PAD, as hps_link.shrink says
 * @link: locked, established
 *
 * Return: 0, -EAGAIN, or an error with the connection being shut.
 */
int hps_msg_shrink(struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	return hps_msg_charged(link, HPS_MSG_SHRINK);
}

/* Has the peer a receive for another message with bytes of the stream? */
static bool hps_msg_may_send(struct hps_link *link, u32 slots)
{
	if (link->conn.shut || link->tx_pads ||
	    hps_msg_slots_free(link) < HPS_CTRL_SLOTS + slots)
		return false;
	if (hps_credit_left(&link->credit))
		return true;
	if (!link->stalled) {
		link->stalled = true;
		link->stalls++;
		hps_stat_inc(link->conn.hn, HPS_STAT_CREDIT_STALL);
	}
	return false;
}

/**
 * hps_msg_ask_soon - see to it that somebody asks for the completions that nobody asked for
 * @link: locked, and its connection not shut
 */
void hps_msg_ask_soon(struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	if (link->unsignaled && !timer_pending(&link->ask_timer)) {
		mod_timer(&link->ask_timer, jiffies + HPS_ASK_DELAY);
		hps_conn_get(&link->conn);
	}
}

/* It was posted, with @len bytes. */
static void hps_msg_sending(struct hps_link *link, u32 len)
{
	link->stalled = false;
	hps_credit_use(&link->credit);
	hps_stat_inc(link->conn.hn, HPS_STAT_TX_MSGS);
	hps_stat_add(link->conn.hn, HPS_STAT_TX_BYTES, len);
	hps_msg_ask_soon(link);
}

/**
 * hps_msg_send - hps_transport.send
 * @conn: locked, established
 * @buf: the bytes, from start on
 * @len: how many, at most hps_conn.tx_msg_max
 * @urgent: which of them is urgent, or -1
 *
 * Return: 0, -EAGAIN, or what ib_post_send() says, the connection being shut.
 */
int hps_msg_send(struct hps_conn *conn, struct hps_buf *buf, u32 len,
		 int urgent)
{
	struct hps_link *link = hps_link(conn);
	int err;

	lockdep_assert_held(&conn->lock);
	if (!hps_msg_may_send(link, 1))
		return -EAGAIN;
	err = hps_msg_post(link, HPS_MSG_DATA, buf, len, urgent);
	if (err)
		return err;
	hps_msg_sending(link, len);
	if (buf->gather)
		hps_stat_add(conn->hn, HPS_STAT_TX_GATHERED, len);
	return 0;
}

/* A key for what is lent. What fails here shows in the completion of SRCAVAIL. */
static int hps_msg_register(struct hps_link *link, struct ib_mr *mr)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.mr = mr,
		.key = mr->rkey,
		.access = IB_ACCESS_REMOTE_READ,
	};

	if (link->iwarp || link->keys_alone)
		wr.wr.send_flags = IB_SEND_SIGNALED;
	return hps_msg_post_wr(link, &wr.wr, NULL, 0);
}

/*
 * Has all that was posted completed, so that the device can repeat nothing? If not, a
 * probe sees to it that a completion comes, and with it another try.
 */
static bool hps_msg_alone(struct hps_link *link)
{
	hps_msg_ask(&link->conn);
	return !link->sq_used && !link->reading;
}

/**
 * hps_msg_offer - hps_transport.offer
 * @conn: locked, established
 * @buf: what is lent
 *
 * Return: 0, -EAGAIN, or what ib_post_send() says, the connection being shut.
 */
int hps_msg_offer(struct hps_conn *conn, struct hps_buf *buf)
{
	struct hps_link *link = hps_link(conn);
	struct hps_source *source = hps_source(buf);
	int err;

	lockdep_assert_held(&conn->lock);
	if (link->tx_offers == link->tx_offers_max || !hps_msg_may_send(link, 2))
		return -EAGAIN;
	if (link->keys_alone && !hps_msg_alone(link))
		return -EAGAIN;
	err = hps_msg_register(link, source->key.mr);
	if (err)
		return err;
	link->tx_offer = source;
	err = hps_msg_post(link, HPS_MSG_SRCAVAIL, NULL, 0, -1);
	if (err)
		return err;
	source->at = conn->tx_bytes;
	list_add_tail(&source->node, &link->tx_sources);
	link->tx_offers++;
	hps_msg_sending(link, buf->size);
	hps_stat_add(conn->hn, HPS_STAT_TX_LENT, buf->size);
	return 0;
}

/**
 * hps_msg_revoke - invalidate keys that are not needed any more and were not by the peer
 * @link: locked
 *
 * As far as there are slots: when none is free this comes by again with the next
 * completion.
 */
void hps_msg_revoke(struct hps_link *link)
{
	struct hps_source *source, *next;

	lockdep_assert_held(&link->conn.lock);
	list_for_each_entry_safe(source, next, &link->tx_read, node) {
		struct ib_send_wr wr = {
			.opcode = IB_WR_LOCAL_INV,
			.ex.invalidate_rkey = source->key.mr->rkey,
			.send_flags = IB_SEND_SIGNALED,
		};

		if (link->conn.shut || !hps_msg_slots_free(link) ||
		    hps_msg_post_wr(link, &wr, &source->dma.buf,
				    source->dma.buf.size))
			return;
		list_del_init(&source->node);
	}
}

/**
 * hps_msg_urgent - hps_transport.urgent
 * @conn: locked, established
 * @ahead: bytes to come before the urgent one
 *
 * One at a time: the next has to wait until the peer says, in whatever it sends,
 * that it has received this one. So they take one of the receives that are not
 * granted.
 *
 * Return: 0, -EAGAIN, or an error with the connection being shut.
 */
int hps_msg_urgent(struct hps_conn *conn, u32 ahead)
{
	struct hps_link *link = hps_link(conn);
	int err;

	lockdep_assert_held(&conn->lock);
	if (link->tx_waits)
		return -EAGAIN;
	link->tx_ahead = ahead;
	err = hps_msg_control(link, HPS_MSG_URGENT);
	if (err)
		return err;
	link->tx_waits = true;
	link->tx_urgents = !link->tx_urgents;
	return 0;
}

/**
 * hps_msg_send_fin - hps_transport.send_fin
 * @conn: locked, established
 *
 * Return: 0, -EAGAIN, or an error with the connection being shut.
 */
int hps_msg_send_fin(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return hps_msg_control(hps_link(conn), HPS_MSG_FIN);
}

/**
 * hps_msg_send_finack - hps_transport.send_finack
 * @conn: locked, established
 *
 * Return: 0, -EAGAIN, or an error with the connection being shut.
 */
int hps_msg_send_finack(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	return hps_msg_control(hps_link(conn), HPS_MSG_FINACK);
}

/**
 * hps_msg_tx_idle - hps_transport.tx_idle
 * @conn: locked
 *
 * Return: true if nothing is posted that has not completed.
 */
bool hps_msg_tx_idle(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);

	lockdep_assert_held(&conn->lock);
	return !link->sq_used;
}

/**
 * hps_msg_probe - hps_transport.probe
 * @conn: locked, established
 *
 * An RDMA Write of no bytes needs no receive and no memory at the other end
 * (InfiniBand C9-88, RFC 5040 section 5.2), and is acknowledged all the same.
 * On iWARP only TCP knows of that, and ends the connection when its time is up. An RDMA
 * Read of no bytes would be answered by the peer, but Soft-iWARP answers one that comes
 * while it sends with what it sent before, and either end takes that for an error.
 *
 * None is posted while there are reads: they are answered as well. And a Soft-RoCE that is
 * asked once more for the beginning of a read whose answer got lost takes it for one of no
 * bytes if that is what a write behind it was, and refuses it.
 *
 * Return: true if it was posted.
 */
bool hps_msg_probe(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);
	struct ib_rdma_wr wr = { .wr.opcode = IB_WR_RDMA_WRITE };

	lockdep_assert_held(&conn->lock);
	return !link->reading && hps_msg_slots_free(link) &&
	       !hps_msg_post_slot(link, &wr.wr, NULL, 0);
}

/**
 * hps_msg_ask - hps_transport.ask
 * @conn: locked
 *
 * While there are reads nobody is: their end has hps_msg_ask_soon() called.
 */
void hps_msg_ask(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (hps_link(conn)->unsignaled && !conn->shut)
		hps_msg_probe(conn);
}

/* Not while sends go on: one of them asks. */
static void hps_msg_ask_late(struct timer_list *t)
{
	struct hps_link *link = from_timer(link, t, ask_timer);
	struct hps_conn *conn = &link->conn;

	spin_lock(&conn->lock);
	if (!link->unsignaled || conn->shut) {
		/* Somebody else did. */
	} else if (time_before(jiffies, conn->tx_last + HPS_ASK_DELAY)) {
		/* Somebody may have armed it while this waited for the lock. */
		if (!mod_timer(&link->ask_timer, conn->tx_last + HPS_ASK_DELAY))
			hps_conn_get(conn);
	} else {
		hps_msg_ask(conn);
	}
	spin_unlock(&conn->lock);
	hps_conn_put(conn);
}

/**
 * hps_msg_readdone - what the peer has offered was read
 * @link: locked, established
 * @rkey: the key that it told, which is invalidated there
 *
 * Return: 0, -EAGAIN, or an error with the connection being shut.
 */
int hps_msg_readdone(struct hps_link *link, u32 rkey)
{
	int err;

	lockdep_assert_held(&link->conn.lock);
	link->rx_read_total++;
	link->rx_read_key = rkey;
	err = hps_msg_control(link, HPS_MSG_READDONE);
	if (err)
		link->rx_read_total--;
	return err;
}

/**
 * hps_msg_srccancel - ask for the last hps_link.tx_cancel offers
 * @link: locked, established
 *
 * Return: 0, -EAGAIN, or an error with the connection being shut.
 */
int hps_msg_srccancel(struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	return hps_msg_control(link, HPS_MSG_SRCCANCEL);
}

/**
 * hps_msg_cancelack - say that what was asked for will not be read
 * @link: locked, established
 *
 * Return: 0, -EAGAIN, or an error with the connection being shut.
 */
int hps_msg_cancelack(struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	return hps_msg_control(link, HPS_MSG_CANCELACK);
}

static void hps_msg_send_credit(struct hps_link *link)
{
	bool urgent = hps_credit_dry(&link->credit);

	if (hps_msg_control(link, HPS_MSG_CREDIT))
		return;
	hps_stat_inc(link->conn.hn, HPS_STAT_CREDIT_TX);
	if (urgent)
		hps_stat_inc(link->conn.hn, HPS_STAT_CREDIT_URGENT);
}

/*
 * Who has sent FIN has no use for more, but for PAD; nor for larger ones, but is told of
 * those that there are, so that they may become smaller again.
 */
static bool hps_msg_grants(const struct hps_link *link)
{
	return link->established && !link->conn.shut &&
	       (!link->conn.fin_rcvd || link->receives.tell ||
		hps_shrinking(link->shrink));
}

static void hps_msg_credit_late(struct timer_list *t)
{
	struct hps_link *link = from_timer(link, t, credit_timer);

	spin_lock(&link->conn.lock);
	if (hps_msg_grants(link) && hps_credit_late(&link->credit))
		hps_msg_send_credit(link);
	spin_unlock(&link->conn.lock);
	hps_conn_put(&link->conn);
}

/**
 * hps_msg_init - prepare a link for messages
 * @link: new
 */
void hps_msg_init(struct hps_link *link)
{
	timer_setup(&link->credit_timer, hps_msg_credit_late, 0);
	timer_setup(&link->ask_timer, hps_msg_ask_late, 0);
}

/**
 * hps_msg_end - no message will be sent any more
 * @link: not locked, shut
 *
 * Context: process, or any that is no interrupt's.
 */
void hps_msg_end(struct hps_link *link)
{
	if (timer_delete_sync(&link->credit_timer))
		hps_conn_put(&link->conn);
	if (timer_delete_sync(&link->ask_timer))
		hps_conn_put(&link->conn);
}

/**
 * hps_msg_credit - tell the peer of receives if it is time to
 * @link: locked
 *
 * When no slot is free this comes by again with the next completion.
 */
void hps_msg_credit(struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	if (unlikely(!list_empty(&link->receives.read)))
		hps_receives_read(link);
	hps_cancel_late(link);
	if (!hps_msg_grants(link))
		return;
	if (link->receives.tell) {
		if (!hps_msg_control(link, HPS_MSG_BUFFERS))
			link->receives.tell = false;
		return;
	}
	if (hps_credit_due(&link->credit, link->receives.held)) {
		hps_msg_send_credit(link);
	} else if (hps_credit_late(&link->credit) &&
		   !timer_pending(&link->credit_timer)) {
		mod_timer(&link->credit_timer, jiffies + HPS_CREDIT_DELAY);
		hps_conn_get(&link->conn);
	}
}

/* An RDMA Read needs one key for all that it reads. */
static void hps_msg_lend(struct hps_link *link)
{
	const struct ib_device_attr *attrs = &link->dev->ibdev->attrs;

	link->tx_mr_pages = min_t(u32, attrs->max_fast_reg_page_list_len,
				  HPS_SOURCE_MAX / PAGE_SIZE + 1);
	/* It may begin anywhere in its first page. */
	if (link->tx_mr_pages > 1 && link->peer_reads)
		link->conn.tx_lend_max = (link->tx_mr_pages - 1) * PAGE_SIZE;
}

/**
 * hps_msg_established - both ends are ready, let messages through
 * @link: locked; tx_size and the peer's credits are set
 *
 * Once; not if the connection is ending.
 */
void hps_msg_established(struct hps_link *link)
{
	struct hps_conn *conn = &link->conn;
	bool initiator = conn->state == TCP_SYN_SENT;

	lockdep_assert_held(&link->conn.lock);
	if (conn->shut || link->established)
		return;
	hps_msg_resize(link);
	hps_msg_lend(link);
	conn->dif = link->id->route.addr.dev_addr.bound_dev_if;
	link->established = true;
	hps_conn_established(conn);
	/* The responder takes any message as the last step of the handshake. */
	if (initiator)
		hps_msg_control(link, HPS_MSG_CREDIT);
}
