// SPDX-License-Identifier: GPL-2.0
/*
 * Messages sent: when each may be, and what it means that it was delivered.
 *
 * Sends complete in order, so one completion retires every slot (post.c) up to its own,
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
#include "post.h"
#include "probe.h"
#include "receives.h"
#include "rendezvous.h"
#include "source.h"
#include "stream.h"
#include "target.h"

/* How long CREDIT is delayed for a peer that ran dry while there is something to read here. */
#define HPS_CREDIT_DELAY	1	/* jiffies */

/*
 * With so many messages under way, or to be read at the other end, a short one that came
 * behind them would be waited for in any case.
 */
#define HPS_BUSY_SLOTS		8

/*
 * A completion that takes no longer is that of a peer that is near. It stays so until so many
 * in a row took longer: some only waited for a processor.
 */
#define HPS_NEAR		1000	/* of hps_post_clock(), a millisecond */
#define HPS_NEAR_TIMES		8

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

/* While an answer at a word was awaited nobody could ask for completions. */
static void hps_msg_ask_after(struct hps_link *link)
{
	if (unlikely(link->rendezvous) && !link->reading && !link->conn.shut)
		hps_msg_ask_soon(link);
}

/*
 * A send completes when the peer's device has acknowledged it. To wait for that is what
 * Nagle did, unless it takes but little time.
 */
static void hps_msg_timed(struct hps_link *link, const struct hps_slot *slot)
{
	if (link->timed != slot->index + 1)
		return;
	link->timed = 0;
	/* Clocks of two processors may differ a little: it may seem to be over before it began. */
	if ((s32)(hps_post_clock() - link->timed_from) <= HPS_NEAR)
		link->near = HPS_NEAR_TIMES;
	else if (link->near)
		link->near--;
}

static void hps_msg_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	struct hps_slot *slot = container_of(wc->wr_cqe, struct hps_slot, cqe);
	struct hps_link *link = hps_slot_link(slot);
	struct hps_conn *conn = &link->conn;
	struct hps_slot *done;

	spin_lock_bh(&conn->lock);
	if (wc->status == IB_WC_SUCCESS) {
		WRITE_ONCE(conn->heard, jiffies);
		hps_probe_moved(conn);
	} else {
		hps_msg_error(link, wc);
	}
	hps_msg_timed(link, slot);
	do {
		if (WARN_ON_ONCE(!link->sq_used))	/* I6 */
			break;
		done = hps_msg_oldest(link);
		link->sq_used--;
		if (unlikely(link->targets))
			hps_target_completed(link, done->index);
		/* It has been written, and its key is still to be invalidated. */
		if (done->buf && done->buf->lent &&
		    hps_source_completed(link, hps_source(done->buf)))
			continue;
		if (done->buf && done->buf->lent && !conn->shut)
			hps_source_revoked(link, hps_source(done->buf));
		/* What was lent has been read. */
		if (unlikely(wc->status != IB_WC_SUCCESS) && done->buf && !done->buf->lent)
			WRITE_ONCE(conn->tx_lost, conn->tx_lost + done->len);
		if (done->buf)
			hps_conn_tx_done(conn, done->buf, done->len);
	} while (done != slot);
	if (unlikely(!list_empty(&link->tx_read)))
		hps_source_revoke_all(link);
	hps_msg_ask_after(link);
	hps_msg_pad(link);
	hps_conn_tx_advanced(conn);
	hps_msg_credit(link);
	spin_unlock_bh(&conn->lock);
}

/* A message of nothing but a header, without credit. */
static int hps_msg_plain(struct hps_link *link, u8 type)
{
	return hps_post_control(link, &(struct hps_outgoing){ .type = type });
}

/* A message that costs a credit and is not of the stream. */
static int hps_msg_charged(struct hps_link *link, const struct hps_outgoing *out)
{
	int err;

	if (link->conn.shut || hps_post_slots_free(link) <= HPS_CTRL_SLOTS ||
	    !hps_credit_left(&link->credit))
		return -EAGAIN;
	err = hps_post_message(link, out);
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
	while (unlikely(link->tx_pads) &&
	       !hps_msg_charged(link, &(struct hps_outgoing){ .type = HPS_MSG_PAD }))
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
	const struct hps_receives *receives = &link->receives;
	struct hps_smaller smaller = {
		.size = cpu_to_be32(hps_receives_capacity(receives, link->shrink->size)),
		.pads = cpu_to_be32(link->shrink->pads),
	};

	lockdep_assert_held(&link->conn.lock);
	return hps_msg_charged(link, &(struct hps_outgoing){
		.type = HPS_MSG_SHRINK, .payload = &smaller, .size = sizeof(smaller),
	});
}

/* Has the peer a receive for another message with bytes of the stream? */
static bool hps_msg_may_send(struct hps_link *link, u32 slots)
{
	if (link->conn.shut || link->tx_pads ||
	    hps_post_slots_free(link) < HPS_CTRL_SLOTS + slots)
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
	if (link->targets)
		link->targets->peer_len = 0;
	hps_credit_use(&link->credit);
	hps_stat_inc(link->conn.hn, HPS_STAT_TX_MSGS);
	hps_stat_add(link->conn.hn, HPS_STAT_TX_BYTES, len);
	hps_msg_ask_soon(link);
}

/**
 * hps_msg_busy - hps_transport.tx_busy
 * @conn: locked
 *
 * So it is while there is much for the device to do of what was posted up to the last
 * message that asked for a completion; that one comes whatever the program at the other end
 * does. Or for that program: then it grants when it has read that, or, as it does not
 * read, hps_msg_ask_soon() has a completion come. But a peer whose receives may still become
 * larger grants nothing while it waits for us to use what we have (growth.c); what is
 * read of the peer delays all completions; and a peer that is far away has them take long.
 *
 * Return: true if it is.
 */
bool hps_msg_busy(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);

	lockdep_assert_held(&conn->lock);
	if (link->reading || !link->near)
		return false;
	return link->sq_used - link->unsignaled >= HPS_BUSY_SLOTS ||
	       (link->unsignaled && link->tx_size >= HPS_TX_MAX &&
		hps_credit_behind(&link->credit, HPS_BUSY_SLOTS));
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
	err = hps_post_message(link, &(struct hps_outgoing){
		.type = HPS_MSG_DATA, .buf = buf, .len = len, .urgent = urgent + 1,
		.more = hps_conn_tx_follows(conn, len),
	});
	if (err)
		return err;
	hps_msg_sending(link, len);
	if (buf->gather)
		hps_stat_add(conn->hn, HPS_STAT_TX_GATHERED, len);
	return 0;
}

/* Write all of a source where the peer waits for it. */
static int hps_msg_write(struct hps_link *link, struct hps_source *source)
{
	const struct hps_targets *targets = link->targets;
	struct hps_buf *buf = &source->dma.buf;
	struct ib_mr *mr = source->key.mr;
	struct hps_written written = { .len = cpu_to_be32(buf->size) };
	struct ib_sge sge = {
		.addr = mr->iova, .length = buf->size, .lkey = mr->lkey,
	};
	struct ib_rdma_wr wr = {
		.wr.opcode = IB_WR_RDMA_WRITE, .wr.sg_list = &sge, .wr.num_sge = 1,
		.remote_addr = targets->peer_addr, .rkey = targets->peer_rkey,
	};
	int err;

	/* As in hps_post_signal(). */
	if (link->iwarp)
		wr.wr.send_flags = IB_SEND_SIGNALED;
	err = hps_post_register(link, &source->key, 0, 0);
	if (err)
		return err;
	err = hps_post_wr(link, &wr.wr, NULL, 0);
	if (err)
		return err;
	err = hps_post_message(link, &(struct hps_outgoing){
		.type = HPS_MSG_WRITTEN, .payload = &written, .size = sizeof(written),
		.buf = buf, .revokes = targets->peer_rkey,
	});
	if (err)
		return err;
	source->written = true;
	hps_msg_sending(link, buf->size);
	hps_stat_add(link->conn.hn, HPS_STAT_TX_WRITTEN, buf->size);
	return 0;
}

/*
 * A source is about to be offered, and gets its key. Returns 0, -EAGAIN until one of another is
 * invalid, or an error with the connection being shut.
 */
static int hps_msg_offer_key(struct hps_link *link, struct hps_source *source)
{
	int err;

	if (source->key.mr)
		return 0;
	err = hps_key_choose(link, &source->key, &link->tx_mrs);
	if (err && err != -EAGAIN)
		hps_conn_shut(&link->conn, -err);
	return err;
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
	struct hps_srcavail src = { .len = cpu_to_be32(buf->size) };
	bool write;
	int err;

	lockdep_assert_held(&conn->lock);
	write = link->targets && link->targets->peer_len >= buf->size;
	if (link->tx_offers == link->tx_offers_max ||
	    !hps_msg_may_send(link, write ? 3 : 2))
		return -EAGAIN;
	err = hps_msg_offer_key(link, source);
	if (err)
		return err;
	if (!write && hps_rendezvous_ask(link))
		return -EAGAIN;
	if (link->keys_alone && !hps_post_alone(link))
		return -EAGAIN;
	if (write)
		return hps_msg_write(link, source);
	err = hps_post_register(link, &source->key, IB_ACCESS_REMOTE_READ, 0);
	if (err)
		return err;
	src.addr = cpu_to_be64(source->key.mr->iova);
	src.rkey = cpu_to_be32(source->key.mr->rkey);
	err = hps_post_message(link, &(struct hps_outgoing){
		.type = HPS_MSG_SRCAVAIL, .payload = &src, .size = sizeof(src),
		.more = hps_conn_tx_follows(conn, buf->size),
	});
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
	struct hps_urgent_ahead urgent = { .ahead = cpu_to_be32(ahead) };
	struct hps_link *link = hps_link(conn);
	int err;

	lockdep_assert_held(&conn->lock);
	if (link->tx_waits)
		return -EAGAIN;
	err = hps_post_control(link, &(struct hps_outgoing){
		.type = HPS_MSG_URGENT, .payload = &urgent, .size = sizeof(urgent),
	});
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
	return hps_msg_plain(hps_link(conn), HPS_MSG_FIN);
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
	return hps_msg_plain(hps_link(conn), HPS_MSG_FINACK);
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
 * Return: true if it was posted.
 */
bool hps_msg_probe(struct hps_conn *conn)
{
	return hps_post_probe(hps_link(conn));
}

/**
 * hps_msg_ask - hps_transport.ask
 * @conn: locked
 */
void hps_msg_ask(struct hps_conn *conn)
{
	hps_post_ask(hps_link(conn));
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
	} else if (link->reading) {
		/* Nobody can, so nothing waits for that either. */
		hps_stream_push(conn);
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
	struct hps_readdone read = { .total = cpu_to_be32(link->rx_read_total + 1) };
	int err;

	lockdep_assert_held(&link->conn.lock);
	err = hps_post_control(link, &(struct hps_outgoing){
		.type = HPS_MSG_READDONE, .payload = &read, .size = sizeof(read),
		.revokes = rkey,
	});
	if (!err)
		link->rx_read_total++;
	return err;
}

static void hps_msg_send_credit(struct hps_link *link)
{
	bool urgent = hps_credit_dry(&link->credit);

	if (hps_msg_plain(link, HPS_MSG_CREDIT))
		return;
	hps_stat_inc(link->conn.hn, HPS_STAT_CREDIT_TX);
	if (urgent)
		hps_stat_inc(link->conn.hn, HPS_STAT_CREDIT_URGENT);
}

static int hps_msg_buffers(struct hps_link *link)
{
	const struct hps_receives *receives = &link->receives;
	struct hps_buffers buffers = {
		.from = cpu_to_be32(receives->from),
		.size = cpu_to_be32(hps_receives_capacity(receives, receives->size)),
	};

	return hps_post_control(link, &(struct hps_outgoing){
		.type = HPS_MSG_BUFFERS, .payload = &buffers, .size = sizeof(buffers),
	});
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
	u32 i;

	for (i = 0; i < HPS_SQ_SIZE; i++) {
		link->slots[i].index = i;
		link->slots[i].cqe.done = hps_msg_sent;
	}
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
	if (unlikely(link->targets))
		hps_target_push(link);
	if (!hps_msg_grants(link))
		return;
	if (link->receives.tell) {
		if (!hps_msg_buffers(link))
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
	if (link->peer_reads)
		WRITE_ONCE(link->conn.tx_lend_max, hps_link_key_max(link));
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
	hps_post_resize(link);
	hps_msg_lend(link);
	WRITE_ONCE(conn->dif, link->id->route.addr.dev_addr.bound_dev_if);
	link->established = true;
	hps_conn_established(conn);
	/* The responder takes any message as the last step of the handshake. */
	if (initiator)
		hps_msg_plain(link, HPS_MSG_CREDIT);
}
