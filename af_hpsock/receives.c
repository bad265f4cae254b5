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
 * Receives are used in the order they were posted, and messages are numbered. So
 * message n goes into receive n, and the peer can be told "from n on they have
 * this size" (BUFFERS) while smaller ones are still posted. Nothing is taken
 * back from the queue pair: a small one leaves when a message has used it.
 *
 * All memory of the new size is there before the peer is told, in rx_spare: for
 * the window and HPS_CTRL_SLOTS. A step is taken only when no more credits than
 * the new window are granted or being read, so that is what can be needed in
 * place of small ones, whatever the peer sends next. Where SO_RCVBUF allows fewer
 * of the new size, one first waits for that (rx_wait), by posting less for DATA;
 * only with nothing unread, so that the peer has credits left and more to come.
 * Documentation/formal/receives.pml has it checked.
 */
#include "conn.h"
#include "device.h"
#include "link.h"
#include "net.h"
#include "param.h"
#include "sock.h"

/* A step in size is by this factor: three from the smallest to the largest. */
#define HPS_RECEIVE_STEP	8

/* Buffers that a window takes, control messages included. */
static u32 hps_receives_count(u32 window)
{
	return window + HPS_CTRL_SLOTS;
}

static void hps_receives_free(struct hps_link *link, struct hps_buf *buf)
{
	list_del_init(&buf->all);
	link->rx_reserved -= buf->size;
	hps_buf_unreserve(buf->size);
	hps_buf_free(buf);
}

static int hps_receives_post(struct hps_link *link, struct hps_buf *buf)
{
	int err = hps_msg_post_receive(link, buf);

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

/* Post what the window has room for, @buf first; what is left is a spare. */
static void hps_receives_fill(struct hps_link *link, struct hps_buf *buf)
{
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
}

/**
 * hps_receives_again - a buffer that held no DATA is free
 * @link: locked
 * @buf: the buffer, in no queue
 */
void hps_receives_again(struct hps_link *link, struct hps_buf *buf)
{
	if (link->conn.shut)
		return;
	buf = hps_receives_swap(link, buf);
	if (buf)
		hps_receives_post(link, buf);
}

/**
 * hps_receives_hold - a buffer holds DATA until hps_receives_consumed()
 * @link: locked
 * @buf: the buffer
 */
void hps_receives_hold(struct hps_link *link, const struct hps_buf *buf)
{
	link->rx_held++;
	if (buf->end == buf->size && buf->size == link->rx_size)
		link->rx_full = true;
	/* A reader would see to it, but there may be none for long. */
	if (link->credit.dry && (!link->rx_settled || link->rx_wait) &&
	    link->conn.sk && !link->conn.shut &&
	    queue_work(hps_wq, &link->grow))
		hps_conn_get(&link->conn);
}

/**
 * hps_receives_consumed - hps_transport.consumed
 * @conn: locked
 * @buf: a buffer that held DATA, in no queue any more
 */
void hps_receives_consumed(struct hps_conn *conn, struct hps_buf *buf)
{
	struct hps_link *link = hps_link(conn);

	/* Teardown has come by: the link does not know the buffer any more. */
	if (list_empty(&buf->all)) {
		hps_buf_free(buf);
		return;
	}
	link->rx_held--;
	if (conn->shut)
		return;
	hps_receives_fill(link, buf);
	hps_msg_credit(link);
}

static void hps_receives_free_list(struct list_head *list)
{
	struct hps_buf *buf, *next;

	list_for_each_entry_safe(buf, next, list, all) {
		hps_buf_unreserve(buf->size);
		hps_buf_free(buf);
	}
}

/* All of @count buffers, or none. */
static int hps_receives_alloc(struct hps_link *link, struct ib_device *ibdev,
			      u32 size, u32 count, struct list_head *list)
{
	struct hps_buf *buf;

	for (; count; count--) {
		buf = NULL;
		if (hps_buf_reserve(size)) {
			buf = hps_buf_alloc(ibdev, size, DMA_FROM_DEVICE,
					    GFP_KERNEL | __GFP_NOWARN);
			if (!buf)
				hps_buf_unreserve(size);
		}
		if (!buf) {
			hps_receives_free_list(list);
			return -ENOMEM;
		}
		buf->link = link;
		list_add_tail(&buf->all, list);
	}
	return 0;
}

/* The buffers become the link's, to be posted as there is need. */
static void hps_receives_take(struct hps_link *link, struct list_head *list)
{
	struct hps_buf *buf;

	list_for_each_entry(buf, list, all) {
		list_add_tail(&buf->list, &link->rx_spare);
		link->rx_reserved += buf->size;
	}
	list_splice_tail_init(list, &link->rx_all);
}

/**
 * hps_receives_setup - what a connection starts with
 * @link: with a queue pair
 * @ibdev: its device
 *
 * Context: process, may sleep. Return: 0 or -ENOMEM; what was posted is left to
 * the teardown.
 */
int hps_receives_setup(struct hps_link *link, struct ib_device *ibdev)
{
	u32 count = hps_receives_count(link->credit.window);
	struct hps_buf *buf;
	LIST_HEAD(list);
	int err;

	err = hps_receives_alloc(link, ibdev, link->rx_size, count, &list);
	if (err)
		return err;
	spin_lock_bh(&link->conn.lock);
	hps_receives_take(link, &list);
	while (!err && (buf = list_first_entry_or_null(&link->rx_spare,
						       struct hps_buf, list))) {
		list_del_init(&buf->list);
		err = hps_receives_post(link, buf);
	}
	spin_unlock_bh(&link->conn.lock);
	return err;
}

/*
 * The plan, if it still holds: only the socket lock was held since. Takes the
 * buffers of @list.
 */
static bool hps_receives_apply(struct hps_link *link, u32 size, u32 window,
			       struct list_head *list)
{
	struct hps_credit *credit = &link->credit;
	struct hps_buf *buf, *next;

	if (link->conn.shut)
		return false;
	if (size != link->rx_size && hps_receives_used(link) > window)
		return false;
	if (size != link->rx_size) {
		list_for_each_entry_safe(buf, next, &link->rx_spare, list) {
			list_del(&buf->list);
			hps_receives_free(link, buf);
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
	hps_receives_fill(link, NULL);
	hps_stat_inc(link->conn.hn, WINDOW_GROWN);
	hps_msg_credit(link);
	return true;
}

/*
 * Larger buffers, if the peer fills those it has. As it has filled one of the last
 * step, it has heard of that.
 */
static u32 hps_receives_next_size(const struct hps_link *link, u32 rcvbuf)
{
	u32 max = min(READ_ONCE(hps_buf_size), rcvbuf / (2 * HPS_WINDOW_MIN));

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
 * What to grow to, as far as SO_RCVBUF goes: larger buffers; where that has to
 * wait or is not asked for, more of them if the peer ran out. Returns false if
 * that is what there is, or later.
 */
static bool hps_receives_plan(struct hps_link *link, u32 rcvbuf, u32 *size,
			      u32 *window)
{
	struct hps_credit *credit = &link->credit;
	u32 used = hps_receives_used(link), max, room;

	*size = hps_receives_next_size(link, rcvbuf);
	max = hps_receives_max(link, *size, rcvbuf);
	/* What is being read has no end to wait for, so leave room beside it. */
	room = min_t(u32, HPS_WINDOW_MIN, max - 1);
	if (*size != link->rx_size && used + room <= max) {
		*window = min(max, used + READ_ONCE(hps_quota));
		return true;
	}
	link->rx_wait = *size != link->rx_size && !link->rx_held ?
			max - room : 0;
	*size = link->rx_size;
	*window = min(hps_receives_max(link, link->rx_size, rcvbuf),
		      credit->window * 2);
	link->rx_settled = *window <= credit->window;
	if (credit->dry && !link->rx_wait && !link->rx_settled)
		return true;
	/* If it had waited before. */
	if (!link->conn.shut) {
		hps_receives_fill(link, NULL);
		hps_msg_credit(link);
	}
	return false;
}

/*
 * Allocate and charge what is planned, and do it; false without memory. The charge
 * for what is replaced stays: it leaves where the socket's lock is not to be had.
 */
static bool hps_receives_enlarge(struct hps_link *link, struct sock *sk,
				 u32 size, u32 window)
{
	struct hps_credit *credit = &link->credit;
	struct hps_conn *conn = &link->conn;
	struct hps_device *dev;
	LIST_HEAD(list);
	bool done = false;
	u32 count, bytes;

	count = size == link->rx_size ? window - credit->window :
					hps_receives_count(window);
	bytes = count * size;
	if (!hps_sock_charge(sk, bytes, SK_MEM_RECV))
		return false;
	dev = hps_link_hold_device(link);
	if (dev && !hps_receives_alloc(link, dev->ibdev, size, count, &list)) {
		spin_lock_bh(&conn->lock);
		done = hps_receives_apply(link, size, window, &list);
		spin_unlock_bh(&conn->lock);
	}
	hps_receives_free_list(&list);
	if (dev)
		hps_device_put(dev);
	if (done)
		hps_sk(sk)->rx_charged += bytes;
	else
		sk_mem_uncharge(sk, bytes);
	return done;
}

/**
 * hps_receives_grow - hps_transport.grow
 * @conn: the connection
 * @sk: its socket, locked
 *
 * Context: process, may sleep.
 */
void hps_receives_grow(struct hps_conn *conn, struct sock *sk)
{
	struct hps_link *link = hps_link(conn);
	u32 size, window;
	bool grow;

	if (!READ_ONCE(link->rx_full) && !READ_ONCE(link->credit.dry) &&
	    !READ_ONCE(link->rx_wait))
		return;
	spin_lock_bh(&conn->lock);
	grow = hps_receives_plan(link, sk->sk_rcvbuf, &size, &window);
	spin_unlock_bh(&conn->lock);
	if (!grow || hps_receives_enlarge(link, sk, size, window))
		return;
	/* No memory: not again before there is another reason. */
	spin_lock_bh(&conn->lock);
	link->rx_full = false;
	link->credit.dry = false;
	link->rx_wait = 0;
	if (!conn->shut) {
		hps_receives_fill(link, NULL);
		hps_msg_credit(link);
	}
	spin_unlock_bh(&conn->lock);
}

/**
 * hps_receives_work - grow without a reader
 * @work: hps_link.grow
 *
 * The peer ran dry and its data is not being read. A program that waits for more
 * of it, by FIONREAD or MSG_PEEK, may have it, as far as SO_RCVBUF allows.
 *
 * Context: process, may sleep. Has a reference on the connection, as the teardown
 * does not wait for it: a socket's lock may be held for long.
 */
void hps_receives_work(struct work_struct *work)
{
	struct hps_link *link = container_of(work, struct hps_link, grow);
	struct hps_conn *conn = &link->conn;
	struct sock *sk;

	spin_lock_bh(&conn->lock);
	sk = conn->sk;
	if (sk)
		sock_hold(sk);
	spin_unlock_bh(&conn->lock);
	if (sk) {
		lock_sock(sk);
		if (hps_sk_conn(sk) == conn)
			hps_receives_grow(conn, sk);
		release_sock(sk);
		sock_put(sk);
	}
	hps_conn_put(conn);
}

/**
 * hps_receives_mem - hps_transport.rx_mem
 * @conn: the connection, before it has grown
 *
 * Context: any.
 */
u32 hps_receives_mem(struct hps_conn *conn)
{
	struct hps_link *link = hps_link(conn);

	return hps_receives_count(link->credit.window) * link->rx_size;
}

/**
 * hps_receives_full - hps_transport.rx_full
 * @conn: the connection
 *
 * Context: any; a snapshot.
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
	struct hps_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &link->early, list)
		list_del_init(&buf->list);
	list_for_each_entry_safe(buf, next, &link->rx_spare, list)
		list_del_init(&buf->list);
	list_for_each_entry_safe(buf, next, &link->rx_all, all) {
		list_del_init(&buf->all);
		if (list_empty(&buf->list))
			hps_buf_free(buf);
		else
			hps_buf_unmap(buf);
	}
	hps_buf_unreserve(link->rx_reserved);
	link->rx_reserved = 0;
}
