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
 * and as many more, once something was lent, as READDONE may come, one for CANCELACK and
 * three for SINKAVAIL (or WORD), SINKCANCEL and SINKACK.
 *
 * Receives are used in the order they were posted, and messages are numbered. So
 * message n goes into receive n, and the peer can be told "from n on they have
 * this size" (BUFFERS) while smaller ones are still posted. Nothing is taken
 * back from the queue pair: a small one leaves when a message has used it.
 *
 * All memory of the new size is there before the peer is told, in hps_receives.spare:
 * growth.c says when. The way back is shrink.c's: there the peer is told before, and
 * asked to use up what is posted.
 */
#include "conn.h"
#include "device.h"
#include "dma.h"
#include "growth.h"
#include "link.h"
#include "mem.h"
#include "msg.h"
#include "msg_rx.h"
#include "net.h"
#include "param.h"
#include "receives.h"
#include "share.h"
#include "sock.h"
#include "target.h"
#include "work.h"

/**
 * hps_receives_init - of a new link
 * @receives: zeroed but for its share
 * @size: bytes of those that the connection begins with
 *
 * Context: any.
 */
void hps_receives_init(struct hps_receives *receives, u32 size)
{
	INIT_LIST_HEAD(&receives->all);
	INIT_LIST_HEAD(&receives->spare);
	INIT_LIST_HEAD(&receives->read);
	receives->size = size;
}

/**
 * hps_receives_first_size - of the receives that a connection begins with
 * @link: tuned
 *
 * Context: any.
 * Return: bytes.
 */
u32 hps_receives_first_size(const struct hps_link *link)
{
	return min(hps_tuned(&link->tuning, HPS_TUNE_BUF_FIRST),
		   hps_tuned(&link->tuning, HPS_TUNE_BUF_SIZE));
}

/**
 * hps_receives_first_window - how many of them there are
 * @link: tuned
 * @sk: the socket that it is made for, or a listening one
 *
 * Context: any.
 * Return: a number.
 */
u32 hps_receives_first_window(const struct hps_link *link, const struct sock *sk)
{
	u32 most = min(link->credit.window_max,
		       hps_tuned(&link->tuning, HPS_TUNE_QUOTA));

	return clamp_t(u32, hps_sock_rcv_limit(sk) / hps_receives_first_size(link),
		       HPS_WINDOW_MIN, most);
}

/* Buffers that a window takes, control messages included. */
static u32 hps_receives_count(const struct hps_link *link, u32 window)
{
	return window + HPS_CTRL_SLOTS + link->receives.extra;
}

/* The socket gets its charge back, for what it was charged for. */
static void hps_receives_uncharge(struct hps_link *link, u32 size)
{
	struct hps_shrink *shrink = link->shrink;
	u32 owed = shrink ? min(size, shrink->owed) : 0;

	if (owed)
		shrink->owed -= owed;
	if (size > owed)
		atomic_add(size - owed, &link->conn.done_rx);
}

/* The buffer is not needed any more. */
static void hps_receives_free(struct hps_link *link, struct hps_buf *buf)
{
	list_del_init(&hps_receive(buf)->all);
	link->receives.reserved -= buf->size;
	if (buf->size == link->receives.size)
		link->receives.count--;
	hps_receives_uncharge(link, buf->size);
	hps_share_give(link->receives.share, buf->size);
	hps_buf_free(buf);
}

static int hps_receives_post(struct hps_link *link, struct hps_buf *buf)
{
	int err = hps_msg_rx_post(link, buf);

	if (!err) {
		link->receives.posted++;
	} else {
		hps_stat_inc(link->conn.hn, HPS_STAT_WC_ERROR);
		hps_conn_shut(&link->conn, 0);
	}
	return err;
}

/* A buffer of the present size in place of @buf, which is of that size or goes. */
static struct hps_buf *hps_receives_swap(struct hps_link *link,
					 struct hps_buf *buf)
{
	struct hps_buf *spare;

	if (buf && buf->size == link->receives.size)
		return buf;
	if (buf)
		hps_receives_free(link, buf);
	spare = list_first_entry_or_null(&link->receives.spare, struct hps_buf, list);
	if (!WARN_ON_ONCE(!spare))	/* I5 */
		list_del_init(&spare->list);
	return spare;
}

/**
 * hps_receives_used - credits granted or about to be, and buffers being read
 * @link: locked
 *
 * Return: a number.
 */
u32 hps_receives_used(const struct hps_link *link)
{
	return link->credit.rx_ready - link->credit.rx_used + link->receives.held;
}

/* While they shrink there is one besides those that the window takes. */
static u32 hps_receives_one_more(const struct hps_link *link)
{
	return hps_shrinking(link->shrink);
}

/* Are there more of the present size than may be posted or read? */
static bool hps_receives_surplus(const struct hps_link *link)
{
	return link->receives.count >
	       hps_receives_count(link, link->credit.window) + hps_receives_one_more(link);
}

/*
 * Room for another credit, for which there may be @buf? While the receives shrink the peer
 * has one whatever was not read, or it could not send PAD.
 */
static bool hps_receives_short(const struct hps_link *link, const struct hps_buf *buf)
{
	const struct hps_receives *receives = &link->receives;
	const struct hps_credit *credit = &link->credit;

	if (hps_receives_used(link) < min_t(u32, credit->window, link->growth.room))
		return true;
	return hps_receives_one_more(link) && credit->rx_ready == credit->rx_used &&
	       ((buf && buf->size == receives->size) || !list_empty(&receives->spare));
}

/*
 * Post what the window has room for, @buf first, and tell the peer if it is time
 * to; what is left is a spare.
 */
static void hps_receives_fill(struct hps_link *link, struct hps_buf *buf)
{
	if (link->conn.shut)
		return;
	while (hps_receives_short(link, buf)) {
		buf = hps_receives_swap(link, buf);
		if (!buf || hps_receives_post(link, buf))
			return;
		buf = NULL;
		hps_credit_ready(&link->credit);
	}
	if (buf && buf->size == link->receives.size && !hps_receives_surplus(link))
		list_add(&buf->list, &link->receives.spare);
	else if (buf)
		hps_receives_free(link, buf);
	hps_msg_credit(link);
}

/*
 * The peer ran dry, and not all is read. A reader would see to growth, and to what is waited
 * for with it, but there may be none for long.
 */
static void hps_receives_lack(struct hps_link *link)
{
	if (link->conn.sk)
		hps_receives_plan_growth(link);
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

/* Nothing more can come but for free, nor is the peer about to hear of a credit. */
static bool hps_receives_dry(const struct hps_credit *credit)
{
	return hps_credit_dry(credit) &&
	       READ_ONCE(credit->rx_ready) == READ_ONCE(credit->rx_told);
}

/**
 * hps_receives_spent - likewise, of a message that cost a credit
 * @link: locked
 * @buf: the buffer, in no queue
 */
void hps_receives_spent(struct hps_link *link, struct hps_buf *buf)
{
	lockdep_assert_held(&link->conn.lock);
	hps_receives_fill(link, buf);
	/* It was the last, and while growth waits it need not come back. */
	if (unlikely(link->receives.held && hps_receives_dry(&link->credit))) {
		hps_credit_set_dry(&link->credit, true);
		hps_receives_lack(link);
	}
}

/**
 * hps_receives_resume - grant what was held back for growth
 * @link: locked
 */
void hps_receives_resume(struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	hps_receives_fill(link, NULL);
}

/**
 * hps_receives_plan_growth - look whether to grow when there is no reader to do it
 * @link: locked
 *
 * Not anew if that is planned already, for sooner or later.
 */
void hps_receives_plan_growth(struct hps_link *link)
{
	lockdep_assert_held(&link->conn.lock);
	if (!link->conn.shut &&
	    queue_delayed_work(hps_program_wq, &link->growth.work,
			       hps_growth_patience(&link->growth)))
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
	hps_receives_hold_more(&link->receives, 1);
	if (buf->end == buf->size && buf->size == link->receives.size &&
	    buf->size < hps_tuned(&link->tuning, HPS_TUNE_BUF_SIZE))
		WRITE_ONCE(link->growth.full, true);
	if (link->credit.dry)
		hps_receives_lack(link);
	/* It may have used its last credit before it heard of SHRINK. */
	if (unlikely(hps_receives_one_more(link)))
		hps_receives_fill(link, NULL);
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
		hps_receives_uncharge(link, buf->size);
		hps_buf_free(buf);
		return;
	}
	if (buf->remote) {
		list_add_tail(&buf->list, &link->receives.read);
		hps_receives_read(link);
		return;
	}
	hps_receives_hold_more(&link->receives, -1);
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
	if (link->receives.telling)
		return;
	link->receives.telling = true;
	list_for_each_entry_safe(buf, next, &link->receives.read, list) {
		src = hps_receive_payload(buf);
		if (hps_msg_readdone(link, be32_to_cpu(src->rkey)))
			break;
		list_del_init(&buf->list);
		buf->remote = false;
		hps_receives_hold_more(&link->receives, -1);
		hps_receives_fill(link, buf);
	}
	link->receives.telling = false;
}

static void hps_receives_free_list(struct hps_link *link,
				   struct list_head *list)
{
	struct hps_receive *rx, *next;

	list_for_each_entry_safe(rx, next, list, all) {
		list_del(&rx->all);
		hps_share_give(link->receives.share, rx->dma.buf.size);
		hps_buf_free(&rx->dma.buf);
	}
}

/* Likewise, with what the socket was charged for them. */
static void hps_receives_put_list(struct hps_link *link, struct list_head *list)
{
	struct hps_receive *rx;

	list_for_each_entry(rx, list, all)
		hps_receives_uncharge(link, rx->dma.buf.size);
	hps_receives_free_list(link, list);
}

static void hps_receives_unmap_apart(struct hps_dma *dma)
{
	struct hps_receive_apart *apart = hps_receive_apart(hps_receive(&dma->buf));

	ib_dma_unmap_single(dma->ibdev, apart->addr, sizeof(*apart->head),
			    DMA_FROM_DEVICE);
	hps_mem_sub(apart->head);
	kfree(apart->head);
	hps_dma_unmap_memory(dma);
}

/* Give a receive memory for the header; 0 or -ENOMEM. */
static int hps_receives_part(struct hps_receive_apart *apart)
{
	struct hps_dma *dma = &apart->receive.dma;
	struct hps_hdr *head = kmalloc(sizeof(*head), GFP_KERNEL | __GFP_NOWARN);

	if (!head)
		return -ENOMEM;
	apart->addr = ib_dma_map_single(dma->ibdev, head, sizeof(*head),
					DMA_FROM_DEVICE);
	if (ib_dma_mapping_error(dma->ibdev, apart->addr)) {
		kfree(head);
		return -ENOMEM;
	}
	hps_mem_add(head);
	apart->head = head;
	dma->apart = true;
	dma->unmap = hps_receives_unmap_apart;
	return 0;
}

static struct hps_receive *hps_receives_new(struct hps_link *link,
					    struct ib_device *ibdev, u32 size)
{
	bool apart = hps_receives_apart(&link->receives, size);
	size_t object = apart ? sizeof(struct hps_receive_apart) :
				sizeof(struct hps_receive);
	struct hps_receive *rx = hps_dma_new(object, ibdev, size, DMA_FROM_DEVICE,
					     GFP_KERNEL | __GFP_NOWARN);

	if (!rx)
		return NULL;
	rx->link = link;
	if (!apart || !hps_receives_part(hps_receive_apart(rx)))
		return rx;
	hps_buf_free(&rx->dma.buf);
	return NULL;
}

/* All of @count buffers, or none. */
static int hps_receives_alloc(struct hps_link *link, struct ib_device *ibdev,
			      u32 size, u32 count, enum hps_share_use use,
			      struct list_head *list)
{
	struct hps_receive *rx;
	u32 i;

	if (!hps_share_take(link->receives.share, link->conn.hn, (u64)size * count, use)) {
		hps_shrink_press();
		return -ENOMEM;
	}
	if (use == HPS_SHARE_FIRST)
		link->receives.first += (u64)size * count;
	for (i = 0; i < count; i++) {
		rx = hps_receives_new(link, ibdev, size);
		if (!rx) {
			hps_share_give(link->receives.share, (u64)size * (count - i));
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
		list_add_tail(&rx->dma.buf.list, &link->receives.spare);
		link->receives.reserved += rx->dma.buf.size;
		link->receives.count++;
	}
	list_splice_tail_init(list, &link->receives.all);
}

/* Of the present size, all of @list; returns 0 or what posting said. */
static int hps_receives_post_all(struct hps_link *link, struct list_head *list)
{
	struct hps_receive *rx;
	int err = 0;

	list_for_each_entry(rx, list, all) {
		link->receives.reserved += rx->dma.buf.size;
		link->receives.count++;
		if (!err)
			err = hps_receives_post(link, &rx->dma.buf);
	}
	list_splice_tail_init(list, &link->receives.all);
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

	err = hps_receives_alloc(link, ibdev, link->receives.size, count,
				 HPS_SHARE_FIRST, &list);
	if (err)
		return err;
	spin_lock_bh(&link->conn.lock);
	err = hps_receives_post_all(link, &list);
	spin_unlock_bh(&link->conn.lock);
	return err;
}

/**
 * hps_receives_extra - post receives for messages that come without a credit
 * @link: established, entered
 * @sk: its socket, locked
 * @count: how many more
 *
 * Context: process, may sleep.
 * Return: 0, -ENOMEM, -EAGAIN while the receives shrink, or -ECONNRESET if the connection
 * is ending.
 */
int hps_receives_extra(struct hps_link *link, struct sock *sk, u32 count)
{
	u32 size;
	LIST_HEAD(list);
	bool busy, ours = true;
	int err;

	/* The peer was asked to use up as many as there were. It is not asked from now on. */
	spin_lock_bh(&link->conn.lock);
	busy = hps_shrinking(link->shrink);
	size = link->receives.size;
	spin_unlock_bh(&link->conn.lock);
	if (busy)
		return -EAGAIN;
	if (!hps_sock_charge(sk, count * size, SK_MEM_RECV))
		return -ENOMEM;
	err = hps_receives_alloc(link, link->dev->ibdev, size, count, HPS_SHARE_GROW,
				 &list);
	if (!err) {
		spin_lock_bh(&link->conn.lock);
		if (link->conn.shut) {
			err = -ECONNRESET;
		} else {
			err = hps_receives_post_all(link, &list);
			/* Those that cannot be posted as well: they go with the link. */
			ours = false;
		}
		if (!err)
			link->receives.extra += count;
		spin_unlock_bh(&link->conn.lock);
	}
	hps_receives_free_list(link, &list);
	if (ours)
		sk_mem_uncharge(sk, count * size);
	else
		hps_sk(sk)->rx_charged += count * size;
	return err;
}

/*
 * From now on receives have @size, and growth begins anew. Of the old ones those stay that
 * are posted or being read; some may have that size from before.
 */
static void hps_receives_resize(struct hps_link *link, u32 size)
{
	struct hps_receives *receives = &link->receives;
	struct hps_buf *buf, *next;
	struct hps_receive *rx;

	list_for_each_entry_safe(buf, next, &receives->spare, list) {
		list_del_init(&buf->list);
		hps_receives_free(link, buf);
	}
	WRITE_ONCE(receives->size, size);
	receives->from = receives->posted;
	receives->count = 0;
	list_for_each_entry(rx, &receives->all, all)
		receives->count += rx->dma.buf.size == size;
	WRITE_ONCE(link->growth.full, false);
	link->growth.vain = 0;
}

static void hps_receives_set_window(struct hps_link *link, u32 window)
{
	hps_credit_set_window(&link->credit, window);
	hps_growth_set(&link->growth, HPS_GROWTH_OPEN, U16_MAX);
}

/* The plan, if it still holds: only the socket lock was held since. Takes the buffers. */
static bool hps_receives_apply(struct hps_link *link, u32 size, u32 window,
			       struct list_head *list)
{
	if (link->conn.shut)
		return false;
	if (size != link->receives.size) {
		if (hps_receives_used(link) > window)
			return false;
		hps_receives_resize(link, size);
		link->receives.tell = true;
	}
	hps_receives_set_window(link, window);
	hps_receives_take(link, list);
	hps_stat_inc(link->conn.hn, HPS_STAT_WINDOW_GROWN);
	hps_receives_fill(link, NULL);
	return true;
}

/**
 * hps_receives_enlarge - more receives, or larger ones
 * @link: established
 * @sk: its socket, locked
 * @size: bytes of those that are posted from now on
 * @window: how many the peer may have outstanding
 *
 * What is replaced is charged until it goes, as messages use it.
 *
 * Context: process, may sleep.
 * Return: false without memory, when the connection is ending, and when there is no room
 * for this any more.
 */
bool hps_receives_enlarge(struct hps_link *link, struct sock *sk,
			  u32 size, u32 window)
{
	struct hps_credit *credit = &link->credit;
	struct hps_conn *conn = &link->conn;
	LIST_HEAD(list);
	bool done = false;
	u32 count, bytes;

	count = size == link->receives.size ? window - credit->window :
					hps_receives_count(link, window);
	bytes = count * size;
	if (!hps_sock_charge(sk, bytes, SK_MEM_RECV))
		return false;
	if (hps_link_enter(link)) {
		if (!hps_receives_alloc(link, link->dev->ibdev, size, count,
					HPS_SHARE_GROW, &list)) {
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
 * No message is longer any more: take the smaller ones, as many as there may be use for.
 * What came before and is not read stays within the window.
 */
static void hps_receives_lessen(struct hps_link *link)
{
	struct hps_shrink *shrink = link->shrink;
	struct hps_receive *rx, *next;
	LIST_HEAD(list);
	u32 count;

	if (shrink->size != link->receives.size)
		hps_receives_resize(link, shrink->size);
	count = link->receives.count;
	list_for_each_entry_safe(rx, next, &shrink->list, all) {
		/* And one receive more, as long as it shrinks. */
		if (count <= shrink->pads) {
			list_move_tail(&rx->all, &list);
			count++;
		}
	}
	hps_receives_set_window(link, min(shrink->window + link->receives.held,
					  link->credit.window));
	hps_receives_take(link, &list);
	hps_receives_put_list(link, &shrink->list);
}

/* What was granted before is used: spares beyond what the window takes go. */
static void hps_receives_trim(struct hps_link *link)
{
	struct hps_buf *buf, *next;

	list_for_each_entry_safe(buf, next, &link->receives.spare, list) {
		if (!hps_receives_surplus(link))
			return;
		list_del_init(&buf->list);
		hps_receives_free(link, buf);
	}
}

/*
 * All that was posted before is used. What is not read may be a reason to grow again; and
 * who takes the socket's lock, as that work does, gives back its charge.
 */
static void hps_receives_shrunk(struct hps_link *link)
{
	hps_shrink_set(link->shrink, HPS_SHRINK_REST);
	hps_receives_trim(link);
	hps_stat_inc(link->conn.hn, HPS_STAT_WINDOW_SHRUNK);
	if (link->receives.held && !link->conn.fin_rcvd && hps_credit_dry(&link->credit))
		hps_credit_set_dry(&link->credit, true);
	hps_receives_plan_growth(link);
}

/**
 * hps_receives_padded - one of the messages came that were asked for
 * @link: locked; hps_receives_spent() follows
 *
 * By the first the peer says that it has heard of it, by the last all receives of the
 * old size are used.
 *
 * Return: 0, or -EPROTO if there was to be none.
 */
int hps_receives_padded(struct hps_link *link)
{
	struct hps_shrink *shrink = link->shrink;

	lockdep_assert_held(&link->conn.lock);
	if (!hps_shrinking(shrink))
		return -EPROTO;
	if (shrink->state == HPS_SHRINK_ASKED) {
		hps_receives_lessen(link);
		hps_shrink_set(shrink, HPS_SHRINK_PADDED);
	}
	if (!--shrink->pads)
		hps_receives_shrunk(link);
	return 0;
}

/* There is memory: ask the peer. */
static int hps_receives_ask(struct hps_link *link, u32 size, u32 window,
			    struct list_head *one, struct list_head *list)
{
	struct hps_shrink *shrink = link->shrink;
	struct hps_receive *rx;
	int err;

	if (link->conn.shut)
		return -ECONNRESET;
	/* It is not idle any more. */
	if (link->receives.held)
		return -EAGAIN;
	shrink->size = size;
	shrink->window = window;
	shrink->pads = hps_receives_count(link, link->credit.window);
	err = hps_msg_shrink(link);
	if (err)
		return err;
	list_for_each_entry(rx, one, all)
		shrink->owed += rx->dma.buf.size;
	list_for_each_entry(rx, list, all)
		shrink->owed += rx->dma.buf.size;
	list_splice_init(list, &shrink->list);
	hps_shrink_set(shrink, HPS_SHRINK_ASKED);
	hps_receives_take(link, one);
	/* The peer may have no credit by now. */
	hps_receives_fill(link, NULL);
	return 0;
}

/**
 * hps_receives_shrink - fewer receives, or smaller ones
 * @link: established, its receives at rest; entered, its socket locked
 * @size: bytes of those that are posted when the peer has heard of it
 * @window: how many the peer may have outstanding then
 *
 * The peer keeps all credits that it has until it uses them; so until then there has to be
 * memory for as many of the new size. And there is to be one receive more of the old size,
 * and of the new one, see hps_receives_short(). The socket is not charged for that, as it
 * has been for as much that goes before: it must be possible where nothing can be charged.
 *
 * Context: process, may sleep.
 * Return: 0, or a negative errno if it was not asked: -ENOMEM, -EAGAIN without a credit or
 * a slot or as it is not idle any more, -ECONNRESET when the connection is ending.
 */
int hps_receives_shrink(struct hps_link *link, u32 size, u32 window)
{
	u32 count = size == link->receives.size ? 0 :
		    hps_receives_count(link, link->credit.window) + 1;
	struct ib_device *ibdev = link->dev->ibdev;
	LIST_HEAD(list);
	LIST_HEAD(one);
	int err;

	err = hps_receives_alloc(link, ibdev, link->receives.size, 1, HPS_SHARE_SHRINK,
				 &one) ?:
	      hps_receives_alloc(link, ibdev, size, count, HPS_SHARE_SHRINK, &list);
	if (!err) {
		spin_lock_bh(&link->conn.lock);
		err = hps_receives_ask(link, size, window, &one, &list);
		spin_unlock_bh(&link->conn.lock);
	}
	hps_receives_free_list(link, &one);
	hps_receives_free_list(link, &list);
	return err;
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

	return hps_receives_count(link, link->credit.window) * link->receives.size;
}

/**
 * hps_receives_full - hps_transport.rx_full
 * @conn: the connection
 *
 * Context: any; a snapshot.
 * Return: true if the peer can send no more of the stream before something is read.
 */
bool hps_receives_full(struct hps_conn *conn)
{
	const struct hps_link *link = hps_link(conn);
	const struct hps_credit *credit = &link->credit;

	/* What it is granted then is for PAD. */
	if (hps_shrinking(READ_ONCE(link->shrink)) &&
	    READ_ONCE(link->receives.held) >= READ_ONCE(credit->window))
		return true;
	return hps_receives_dry(credit);
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
	/* The socket was charged for them before they are made. They never were. */
	if (list_empty(&link->receives.all))
		atomic_add(hps_receives_mem(&link->conn), &link->conn.done_rx);
	list_for_each_entry_safe(buf, next, &link->receives.spare, list)
		list_del_init(&buf->list);
	list_for_each_entry_safe(buf, next, &link->receives.read, list)
		list_del_init(&buf->list);
	if (link->shrink)
		hps_receives_put_list(link, &link->shrink->list);
	list_for_each_entry_safe(rx, more, &link->receives.all, all) {
		list_del_init(&rx->all);
		if (list_empty(&rx->dma.buf.list)) {
			hps_receives_uncharge(link, rx->dma.buf.size);
			hps_buf_free(&rx->dma.buf);
		} else {
			hps_dma_unmap(&rx->dma.buf);
		}
	}
	hps_share_give(link->receives.share, link->receives.reserved);
	hps_share_end(link->receives.share, link->receives.first);
	link->receives.reserved = 0;
	link->receives.first = 0;
	link->receives.count = 0;
}
