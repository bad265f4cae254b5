// SPDX-License-Identifier: GPL-2.0
/*
 * The receives of a link: how many are posted, and how large.
 *
 * A connection starts with a few small ones, so that an idle one costs little,
 * and gets more and larger ones as its peer makes use of them. One rule keeps
 * the credits honest whatever is posted and whatever is being read:
 *
 *   receives posted = credits granted or about to be + HPS_CTRL_SLOTS
 *
 * and as many more, once something is lent to the peer, as READDONE may come, and one for
 * CANCELACK.
 *
 * Receives are used in the order they were posted, and messages are numbered. So
 * message n goes into receive n, and the peer can be told "from n on they have
 * this size" (BUFFERS) while smaller ones are still posted. Nothing is taken
 * back from the queue pair: a small one leaves when a message has used it.
 *
 * All memory of the new size is there before the peer is told, in rx_spare: for
 * the window and HPS_CTRL_SLOTS. A step is taken only when no more credits than
 * the new window are granted or being read, so that is what can be needed in
 * place of small ones, whatever the peer sends next. Where SO_RCVBUF allows fewer
 * of the new size, one first waits for that (rx_wait), by posting less for DATA:
 * with nothing unread, as then the peer has credits left and more to come; and for
 * a reader that is behind, as long as it reads on: it may have read all it wants. As
 * no more are granted meanwhile, what it reads brings the step closer, however many
 * there were before.
 * Documentation/formal/receives.pml has it checked.
 */
#include <linux/log2.h>

#include "conn.h"
#include "device.h"
#include "dma.h"
#include "link.h"
#include "msg.h"
#include "net.h"
#include "param.h"
#include "receives.h"
#include "share.h"
#include "sock.h"
#include "work.h"

/* A step in size is by this factor: three from the smallest to the largest. */
#define HPS_RECEIVE_STEP	8

/* A reader that larger ones wait for is looked at so often: did it read anything? */
#define HPS_RECEIVE_WAIT	msecs_to_jiffies(20)

/* Buffers that a window takes, control messages included. */
static u32 hps_receives_count(const struct hps_link *link, u32 window)
{
	return window + HPS_CTRL_SLOTS + link->rx_extra;
}

/* The buffer is not the link's any more, but still reserved. */
static void hps_receives_drop(struct hps_link *link, struct hps_buf *buf)
{
	list_del_init(&hps_receive(buf)->all);
	link->rx_reserved -= buf->size;
}

/* A larger one has come in its place, and is charged to the socket. */
static void hps_receives_free(struct hps_link *link, struct hps_buf *buf)
{
	hps_receives_drop(link, buf);
	atomic_add(buf->size, &link->conn.done_rx);
	hps_share_give(link->share, buf->size);
	hps_buf_free(buf);
}

static int hps_receives_post(struct hps_link *link, struct hps_buf *buf)
{
	int err = hps_msg_rx_post(link, buf);

	if (!err) {
		link->rx_posted++;
	} else {
		hps_stat_inc(link->conn.hn, WC_ERROR);
		hps_conn_shut(&link->conn, 0);
	}
	return err;
}

/* A buffer of the present size in place of @buf, which is of that size or goes. */
static struct hps_buf *hps_receives_swap(struct hps_link *link,
					 struct hps_buf *buf)
{
	struct hps_buf *spare;

	if (buf && buf->size == link->rx_size)
		return buf;
	if (buf)
		hps_receives_free(link, buf);
	spare = list_first_entry_or_null(&link->rx_spare, struct hps_buf, list);
	if (!WARN_ON_ONCE(!spare))
		list_del_init(&spare->list);
	return spare;
}

/* Credits granted or about to be, and buffers being read. */
static u32 hps_receives_used(const struct hps_link *link)
{
	return link->credit.rx_ready - link->credit.rx_used + link->rx_held;
}

/* Room for another credit? */
static bool hps_receives_short(const struct hps_link *link)
{
	const struct hps_credit *credit = &link->credit;

	return hps_receives_used(link) <
	       (link->rx_wait ? min(link->rx_wait, credit->window) :
				credit->window);
}

/*
 * Post what the window has room for, @buf first, and tell the peer if it is time
 * to; what is left is a spare.
 */
static void hps_receives_fill(struct hps_link *link, struct hps_buf *buf)
{
	if (link->conn.shut)
		return;
	while (hps_receives_short(link)) {
		buf = hps_receives_swap(link, buf);
		if (!buf || hps_receives_post(link, buf))
			return;
		buf = NULL;
		link->credit.rx_ready++;
	}
	if (buf && buf->size == link->rx_size)
		list_add(&buf->list, &link->rx_spare);
	else if (buf)
		hps_receives_free(link, buf);
	hps_msg_credit(link);
}

/**
 * hps_receives_again - a buffer that held no DATA is free
 * @link: locked
 * @buf: the buffer, in no queue
 */
void hps_receives_again(struct hps_link *link, struct hps_buf *buf)
{
	lockdep_assert_held(&link->conn.lock);
	if (link->conn.shut)
		return;
	buf = hps_receives_swap(link, buf);
	if (buf)
		hps_receives_post(link, buf);
}

/* Unless it is planned already, which may be for sooner or later. */
static void hps_receives_plan_work(struct hps_link *link)
{
	if (queue_delayed_work(hps_program_wq, &link->grow,
			       link->rx_wait ? HPS_RECEIVE_WAIT : 0))
		hps_conn_get(&link->conn);
}

/**
 * hps_receives_hold - a buffer holds DATA until hps_receives_consumed()
 * @link: locked
 * @buf: the buffer
 */
void hps_receives_hold(struct hps_link *link, const struct hps_buf *buf)
{
	lockdep_assert_held(&link->conn.lock);
	link->rx_held++;
	if (buf->end == buf->size && buf->size == link->rx_size &&
	    buf->size < hps_tuned(&link->tuning, HPS_TUNE_BUF_SIZE))
		link->rx_full = true;
	/* A reader would see to it, but there may be none for long. */
	if (link->credit.dry && (!link->rx_settled || link->rx_wait) &&
	    link->conn.sk && !link->conn.shut)
		hps_receives_plan_work(link);
}

/**
 * hps_receives_consumed - hps_transport.consumed
 * @conn: locked
 * @buf: a buffer that held DATA, in no queue any more
 */
void hps_receives_consumed(struct hps_conn *conn, struct hps_buf *buf)
{
	struct hps_link *link = hps_link(conn);

	lockdep_assert_held(&conn->lock);
	/* Teardown has come by: the link does not know the buffer any more. */
	if (list_empty(&hps_receive(buf)->all)) {
		hps_buf_free(buf);
		return;
	}
	if (buf->remote) {
		list_add_tail(&buf->list, &link->rx_read);
		hps_receives_read(link);
		return;
	}
	link->rx_held--;
	hps_receives_fill(link, buf);
}

/**
 * hps_receives_read - tell the peer of what it offered and was read
 * @link: locked
 *
 * As far as there are slots: when none is free this comes by again with the next
 * completion.
 */
void hps_receives_read(struct hps_link *link)
{
	const struct hps_srcavail *src;
	struct hps_buf *buf, *next;

	lockdep_assert_held(&link->conn.lock);
	if (link->rx_telling)
		return;
	link->rx_telling = true;
	list_for_each_entry_safe(buf, next, &link->rx_read, list) {
		src = buf->data + sizeof(struct hps_hdr);
		if (hps_msg_readdone(link, be32_to_cpu(src->rkey)))
			break;
		list_del_init(&buf->list);
		buf->remote = false;
		link->rx_held--;
		hps_receives_fill(link, buf);
	}
	link->rx_telling = false;
}

static void hps_receives_free_list(struct hps_link *link,
				   struct list_head *list)
{
	struct hps_receive *rx, *next;

	list_for_each_entry_safe(rx, next, list, all) {
		list_del(&rx->all);
		hps_share_give(link->share, rx->dma.buf.size);
		hps_buf_free(&rx->dma.buf);
	}
}

static struct hps_receive *hps_receives_new(struct hps_link *link,
					    struct ib_device *ibdev, u32 size)
{
	struct hps_receive *rx = hps_dma_new(sizeof(*rx), ibdev, size,
					     DMA_FROM_DEVICE,
					     GFP_KERNEL | __GFP_NOWARN);

	if (rx)
		rx->link = link;
	return rx;
}

/* All of @count buffers, or none; @first are those that the connection begins with. */
static int hps_receives_alloc(struct hps_link *link, struct ib_device *ibdev,
			      u32 size, u32 count, bool first,
			      struct list_head *list)
{
	struct hps_receive *rx;
	u32 i;

	if (!hps_share_take(link->share, link->conn.hn, (u64)size * count, first))
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		rx = hps_receives_new(link, ibdev, size);
		if (!rx) {
			hps_share_give(link->share, (u64)size * (count - i));
			hps_receives_free_list(link, list);
			return -ENOMEM;
		}
		list_add_tail(&rx->all, list);
	}
	return 0;
}

/* The buffers become the link's, to be posted as there is need. */
static void hps_receives_take(struct hps_link *link, struct list_head *list)
{
	struct hps_receive *rx;

	list_for_each_entry(rx, list, all) {
		list_add_tail(&rx->dma.buf.list, &link->rx_spare);
		link->rx_reserved += rx->dma.buf.size;
	}
	list_splice_tail_init(list, &link->rx_all);
}

/* Of the present size, all of @list; returns 0 or what posting said. */
static int hps_receives_post_all(struct hps_link *link, struct list_head *list)
{
	struct hps_receive *rx;
	int err = 0;

	list_for_each_entry(rx, list, all) {
		link->rx_reserved += rx->dma.buf.size;
		if (!err)
			err = hps_receives_post(link, &rx->dma.buf);
	}
	list_splice_tail_init(list, &link->rx_all);
	return err;
}

/**
 * hps_receives_setup - what a connection starts with
 * @link: with a queue pair
 * @ibdev: its device
 *
 * Context: process, may sleep.
 * Return: 0 or -ENOMEM; what was posted is left to the teardown.
 */
int hps_receives_setup(struct hps_link *link, struct ib_device *ibdev)
{
	u32 count = hps_receives_count(link, link->credit.window);
	LIST_HEAD(list);
	int err;

	err = hps_receives_alloc(link, ibdev, link->rx_size, count, true,
				 &list);
	if (err)
		return err;
	spin_lock_bh(&link->conn.lock);
	err = hps_receives_post_all(link, &list);
	spin_unlock_bh(&link->conn.lock);
	return err;
}

/**
 * hps_receives_extra - post receives for READDONE and CANCELACK, if that was not done yet
 * @link: established, entered
 * @sk: its socket, locked
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM, or -ECONNRESET if the connection is ending.
 */
int hps_receives_extra(struct hps_link *link, struct sock *sk)
{
	u32 count = link->tx_offers_max + 1, size = link->rx_size;
	LIST_HEAD(list);
	int err;

	if (link->rx_extra)
		return 0;
	if (!hps_sock_charge(sk, count * size, SK_MEM_RECV))
		return -ENOMEM;
	err = hps_receives_alloc(link, link->dev->ibdev, size, count, false,
				 &list);
	if (!err) {
		spin_lock_bh(&link->conn.lock);
		err = link->conn.shut ? -ECONNRESET :
					hps_receives_post_all(link, &list);
		if (!err)
			link->rx_extra = count;
		spin_unlock_bh(&link->conn.lock);
	}
	hps_receives_free_list(link, &list);
	if (err)
		sk_mem_uncharge(sk, count * size);
	else
		hps_sk(sk)->rx_charged += count * size;
	return err;
}

/*
 * The plan, if it still holds: only the socket lock was held since. Takes the
 * buffers of @list and leaves what they replace there, to be freed without the lock.
 */
static bool hps_receives_apply(struct hps_link *link, u32 size, u32 window,
			       struct list_head *list)
{
	struct hps_credit *credit = &link->credit;
	struct hps_buf *buf, *next;
	LIST_HEAD(old);

	if (link->conn.shut)
		return false;
	if (size != link->rx_size) {
		if (hps_receives_used(link) > window)
			return false;
		list_for_each_entry_safe(buf, next, &link->rx_spare, list) {
			list_del_init(&buf->list);
			hps_receives_drop(link, buf);
			list_add(&hps_receive(buf)->all, &old);
		}
		link->rx_size = size;
		link->rx_from = link->rx_posted;
		link->rx_full = false;
		link->rx_tell = true;
	}
	credit->window = window;
	credit->dry = false;
	link->rx_wait = 0;
	hps_receives_take(link, list);
	list_splice(&old, list);
	hps_stat_inc(link->conn.hn, WINDOW_GROWN);
	hps_receives_fill(link, NULL);
	return true;
}

/*
 * Larger buffers, if the peer fills those it has. As it has filled one of the last
 * step, it has heard of that. Memory comes in powers of two, and what is beyond the
 * size would be charged to nobody.
 */
static u32 hps_receives_next_size(const struct hps_link *link, u32 rcvbuf)
{
	u32 most = max_t(u32, rcvbuf / (2 * HPS_WINDOW_MIN), 1);
	u32 max = min_t(u32, hps_tuned(&link->tuning, HPS_TUNE_BUF_SIZE),
			rounddown_pow_of_two(most));

	if (!link->rx_full || link->rx_size >= max)
		return link->rx_size;
	return min(link->rx_size * HPS_RECEIVE_STEP, max);
}

static u32 hps_receives_max(const struct hps_link *link, u32 size, u32 rcvbuf)
{
	return clamp_t(u32, rcvbuf / size, HPS_WINDOW_MIN,
		       link->credit.window_max);
}

/*
 * Hold credits back for a step in size? A program that has just read may go on to. The
 * work item, which may come by at any time, looks whether it did since the last look; if
 * not, it is waited for again when it has read as much as SO_RCVBUF holds.
 */
static bool hps_receives_waits(struct hps_link *link, u32 rcvbuf, bool reading)
{
	u64 pos = hps_conn_read_pos(&link->conn);
	bool lately = link->rx_lately;

	link->rx_lately = reading;
	if (!link->rx_held)
		return true;
	if (reading)
		return link->rx_wait || pos >= link->rx_retry;
	if (link->rx_wait && !lately)
		link->rx_retry = pos + rcvbuf;
	return link->rx_wait && lately;
}

/*
 * What to grow to, as far as SO_RCVBUF goes: larger buffers; where that has to
 * wait or is not asked for, more of them if the peer ran out. Returns false if
 * that is what there is, or later.
 */
static bool hps_receives_plan(struct hps_link *link, u32 rcvbuf, bool reading,
			      u32 *size, u32 *window)
{
	struct hps_credit *credit = &link->credit;
	u32 used = hps_receives_used(link), max, room;

	*size = hps_receives_next_size(link, rcvbuf);
	max = hps_receives_max(link, *size, rcvbuf);
	/* What is being read has no end to wait for, so leave room beside it. */
	room = min_t(u32, HPS_WINDOW_MIN, max - 1);
	if (*size != link->rx_size && used + room <= max) {
		*window = min(max, used + hps_tuned(&link->tuning, HPS_TUNE_QUOTA));
		return true;
	}
	link->rx_wait = *size != link->rx_size &&
			hps_receives_waits(link, rcvbuf, reading) ? max - room : 0;
	if (link->rx_wait && link->rx_held && !link->conn.shut)
		hps_receives_plan_work(link);
	*size = link->rx_size;
	*window = min(hps_receives_max(link, link->rx_size, rcvbuf),
		      credit->window * 2);
	link->rx_settled = *window <= credit->window;
	if (credit->dry && !link->rx_wait && !link->rx_settled)
		return true;
	/* Not again before there is another reason, which a reader looks for. */
	if (!link->rx_wait) {
		link->rx_cramped |= credit->dry && link->rx_settled;
		link->rx_full = false;
		credit->dry = false;
	}
	/* If it had waited before. */
	hps_receives_fill(link, NULL);
	return false;
}

/*
 * Allocate and charge what is planned, and do it; false without memory. What is replaced
 * is charged until it goes, as messages use it.
 */
static bool hps_receives_enlarge(struct hps_link *link, struct sock *sk,
				 u32 size, u32 window)
{
	struct hps_credit *credit = &link->credit;
	struct hps_conn *conn = &link->conn;
	LIST_HEAD(list);
	bool done = false;
	u32 count, bytes;

	count = size == link->rx_size ? window - credit->window :
					hps_receives_count(link, window);
	bytes = count * size;
	if (!hps_sock_charge(sk, bytes, SK_MEM_RECV))
		return false;
	if (hps_link_enter(link)) {
		if (!hps_receives_alloc(link, link->dev->ibdev, size, count,
					false, &list)) {
			spin_lock_bh(&conn->lock);
			done = hps_receives_apply(link, size, window, &list);
			spin_unlock_bh(&conn->lock);
		}
		hps_receives_free_list(link, &list);
		hps_link_leave(link);
	}
	if (done)
		hps_sk(sk)->rx_charged += bytes;
	else
		sk_mem_uncharge(sk, bytes);
	return done;
}

/*
 * Is it time for a larger SO_RCVBUF? The peer ran dry when there was no more to grow to,
 * and what it had sent by then has been read for the most part. So a program that stays
 * behind gets no more, whose data would only wait here instead of there. A snapshot,
 * where the connection is not locked.
 */
static bool hps_receives_cramped(const struct hps_link *link)
{
	const struct hps_credit *credit = &link->credit;

	return READ_ONCE(link->rx_cramped) &&
	       READ_ONCE(link->rx_held) <= READ_ONCE(credit->window) / 2;
}

/* Growth then begins anew; the socket and the connection are locked. */
static void hps_receives_widen(struct hps_link *link, struct sock *sk)
{
	link->rx_cramped = false;
	if (link->credit.window < link->credit.window_max &&
	    hps_sock_grow_rcvbuf(sk))
		link->credit.dry = true;
}

static void hps_receives_more(struct hps_link *link, struct sock *sk, bool reading)
{
	struct hps_conn *conn = &link->conn;
	u32 size, window;
	bool grow;

	spin_lock_bh(&conn->lock);
	if (reading && hps_receives_cramped(link))
		hps_receives_widen(link, sk);
	grow = hps_receives_plan(link, hps_sock_rcv_limit(sk), reading, &size,
				 &window);
	spin_unlock_bh(&conn->lock);
	if (!grow || hps_receives_enlarge(link, sk, size, window))
		return;
	/* No memory: not again before there is another reason. */
	spin_lock_bh(&conn->lock);
	link->rx_full = false;
	link->credit.dry = false;
	link->rx_wait = 0;
	hps_receives_fill(link, NULL);
	spin_unlock_bh(&conn->lock);
}

/**
 * hps_receives_grow - hps_transport.grow
 * @conn: the connection
 * @sk: its socket, locked, from which something was read
 *
 * Context: process, may sleep.
 */
void hps_receives_grow(struct hps_conn *conn, struct sock *sk)
{
	struct hps_link *link = hps_link(conn);

	if (READ_ONCE(link->rx_full) || READ_ONCE(link->credit.dry) ||
	    READ_ONCE(link->rx_wait) || hps_receives_cramped(link))
		hps_receives_more(link, sk, true);
}

/**
 * hps_receives_work - grow without a reader
 * @work: hps_link.grow
 *
 * The peer ran dry and its data is not being read. A program that waits for more
 * of it, by FIONREAD or MSG_PEEK, may have it, as far as SO_RCVBUF allows; and what
 * a reader was waited for is given up.
 *
 * Context: process, may sleep. Has a reference on the connection, as the teardown
 * does not wait for it.
 */
void hps_receives_work(struct work_struct *work)
{
	struct hps_link *link = container_of(work, struct hps_link,
					     grow.work);
	struct hps_conn *conn = &link->conn;
	struct sock *sk = hps_conn_sock(conn);

	if (sk && hps_sock_own(sk, HPS_LATER_GROW)) {
		if (hps_sk_conn(sk) == conn)
			hps_receives_more(link, sk, false);
		release_sock(sk);
	}
	if (sk)
		sock_put(sk);
	hps_conn_put(conn);
}

/**
 * hps_receives_later - hps_transport.grow_later
 * @conn: the connection
 */
void hps_receives_later(struct hps_conn *conn)
{
	hps_conn_get(conn);
	if (!queue_delayed_work(hps_program_wq, &hps_link(conn)->grow, 0))
		hps_conn_put(conn);
}

/**
 * hps_receives_mem - hps_transport.rx_mem
 * @conn: the connection, before it has grown
 *
 * Context: any.
 * Return: bytes.
 */
u32 hps_receives_mem(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);

	return hps_receives_count(link, link->credit.window) * link->rx_size;
}

/**
 * hps_receives_full - hps_transport.rx_full
 * @conn: the connection
 *
 * Context: any; a snapshot.
 * Return: true if the peer can send no more before something is read.
 */
bool hps_receives_full(struct hps_conn *conn)
{
	const struct hps_credit *credit = &hps_link(conn)->credit;

	return hps_credit_dry(credit) && credit->rx_ready == credit->rx_told;
}

/**
 * hps_receives_unmap - take all receives from the device
 * @link: locked; nothing is posted any more
 *
 * What was received and not read keeps its memory.
 */
void hps_receives_unmap(struct hps_link *link)
{
	struct hps_receive *rx, *more;
	struct hps_buf *buf, *next;

	lockdep_assert_held(&link->conn.lock);
	list_for_each_entry_safe(buf, next, &link->rx_spare, list)
		list_del_init(&buf->list);
	list_for_each_entry_safe(buf, next, &link->rx_read, list)
		list_del_init(&buf->list);
	list_for_each_entry_safe(rx, more, &link->rx_all, all) {
		list_del_init(&rx->all);
		if (list_empty(&rx->dma.buf.list))
			hps_buf_free(&rx->dma.buf);
		else
			hps_dma_unmap(&rx->dma.buf);
	}
	hps_share_give(link->share, link->rx_reserved);
	link->rx_reserved = 0;
}
