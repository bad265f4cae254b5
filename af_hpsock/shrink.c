// SPDX-License-Identifier: GPL-2.0
/*
 * Shrink: when a link gives back what its receives have grown by.
 *
 * A receive that is posted cannot be had back from the queue pair, nor a credit from the
 * peer; a message has to use them up. So the peer is asked for as many empty ones (PAD) as
 * receives may be posted:
 *
 *   REST     the receives are as many and as large as growth.c made them
 *   ASKED    SHRINK was sent. What the peer sends may still be as long as before, and go
 *            into receives that are posted only now: they keep their size
 *   PADDED   the first PAD came, and no message behind it is longer than the new receives:
 *            what it leaves is replaced by them, and by no more than there will be
 *   REST     the last came. All that were posted before the first are used
 *
 * The peer has all its credits until it uses them, so there is memory of the new size for
 * as many. Nothing grows meanwhile. PAD and SHRINK cost a credit, so that they need no
 * receives besides the window's. There is one more nonetheless: data that crossed SHRINK and
 * is not read must not keep the peer from sending PAD. Documentation/formal/shrink.pml has
 * it checked.
 *
 * A link that has grown looks now and then whether it has had no data for shrink_after
 * seconds; or for one, after memory for receives was refused, see hps_share_refused().
 * What it has been sent and nobody has read is not taken away: that is as much as
 * SO_RCVBUF allows. A burst after a pause begins with few and small messages again, as
 * TCP's does (tcp_slow_start_after_idle).
 */
#include <linux/jiffies.h>
#include <linux/slab.h>

#include "conn.h"
#include "growth.h"
#include "link.h"
#include "mem.h"
#include "param.h"
#include "receives.h"
#include "share.h"
#include "shrink.h"
#include "sock.h"

/* How long a link has had no data that has to shrink where memory is short. */
#define HPS_SHRINK_PRESSED	HZ

/* What was not possible, or is not over, is looked at again then; and what never is idle. */
#define HPS_SHRINK_AGAIN	HZ
#define HPS_SHRINK_LOOK		(10 * HZ)

/* It has nothing to give back any more, until it has grown. */
#define HPS_SHRINK_NEVER	ULONG_MAX

/* Where memory was refused, it is short for so long. */
#define HPS_SHRINK_SHORT	(10 * HZ)

/* After a refusal those who might give back are not told more often than this. */
#define HPS_SHRINK_APART	(HZ / 4)

static LIST_HEAD(hps_shrink_links);
static DEFINE_SPINLOCK(hps_shrink_lock);	/* the list; bottom halves off */

/*
 * Of the receives that there will be: those that a new link has; or as large as now, if
 * smaller ones would take more than a quarter of the memory before they give any back.
 */
static u32 hps_shrink_size(const struct hps_link *link)
{
	u32 size = hps_receives_first_size(link);

	return size <= link->receives.size / 4 ? size : link->receives.size;
}

/* Is there something to give back, or about to be, and a peer that helps? */
static bool hps_shrink_can(const struct hps_link *link, const struct sock *sk)
{
	const struct hps_conn *conn = &link->conn;

	if (conn->shut || !link->peer_pads)
		return false;
	return hps_shrinking(link->shrink) ||
	       link->receives.size > hps_shrink_size(link) ||
	       link->credit.window > hps_receives_first_window(link, sk);
}

/* Memory was refused a while ago: is it to give back as soon as it is idle for a moment? */
static bool hps_shrink_is_pressed(const struct hps_shrink *shrink)
{
	return time_before(jiffies, READ_ONCE(shrink->pressed_until));
}

/* Jiffies until it may be time to, 0 for now. The link is locked. */
static unsigned long hps_shrink_wait(const struct hps_link *link)
{
	unsigned long idle = jiffies - link->conn.rx_last;
	unsigned long need = READ_ONCE(hps_shrink_after) * HZ;

	if (hps_shrink_is_pressed(link->shrink))
		need = min_t(unsigned long, need, HPS_SHRINK_PRESSED);
	/* shrink_after may become less meanwhile. */
	if (idle < need)
		return min_t(unsigned long, need - idle, HPS_SHRINK_LOOK);
	/*
	 * The link shrinks already, or the peer was not told yet that it has grown; not all
	 * is read; the peer cannot be asked. A step that growth waits for is given up.
	 */
	if (hps_shrinking(link->shrink) || link->receives.tell ||
	    link->receives.held || link->tx_pads || !hps_credit_left(&link->credit))
		return min_t(unsigned long, need, HPS_SHRINK_LOOK);
	return 0;
}

/* The socket is locked. Returns jiffies until it is to be looked at again. */
static unsigned long hps_shrink_look(struct hps_link *link, struct sock *sk)
{
	u32 size, window = hps_receives_first_window(link, sk);
	struct hps_conn *conn = &link->conn;
	unsigned long wait = 0;
	bool can;

	spin_lock_bh(&conn->lock);
	can = hps_shrink_can(link, sk);
	if (can)
		wait = hps_shrink_wait(link);
	size = hps_shrink_size(link);
	window = min(window, link->credit.window);
	spin_unlock_bh(&conn->lock);
	if (!can)
		return HPS_SHRINK_NEVER;
	if (wait)
		return wait;
	if (!hps_link_enter(link))
		return HPS_SHRINK_NEVER;
	hps_receives_shrink(link, size, window);
	hps_link_leave(link);
	return HPS_SHRINK_AGAIN;
}

/* Look at it after @delay jiffies, if it is not ending. */
static void hps_shrink_later(struct hps_link *link, unsigned long delay)
{
	struct hps_shrink *shrink = link->shrink;

	spin_lock_bh(&hps_shrink_lock);
	/* It was shut before hps_shrink_end(). And it may have been planned anew meanwhile. */
	if (READ_ONCE(link->conn.shut) ||
	    (delay == HPS_SHRINK_NEVER && !delayed_work_pending(&shrink->work)))
		list_del_init(&shrink->node);
	else if (list_empty(&shrink->node))
		list_add_tail(&shrink->node, &hps_shrink_links);
	if (!list_empty(&shrink->node) && delay != HPS_SHRINK_NEVER &&
	    queue_delayed_work(hps_program_wq, &shrink->work, delay))
		hps_conn_get(&link->conn);
	spin_unlock_bh(&hps_shrink_lock);
}

/* The teardown does not wait for it. */
static void hps_shrink_work(struct work_struct *work)
{
	struct hps_shrink *shrink = container_of(work, struct hps_shrink,
						 work.work);
	struct hps_link *link = shrink->link;
	struct hps_conn *conn = &link->conn;
	struct sock *sk = hps_conn_sock(conn);
	unsigned long wait = HPS_SHRINK_NEVER;

	if (sk && hps_sock_own(sk, 0)) {
		if (hps_sk_conn(sk) == conn)
			wait = hps_shrink_look(link, sk);
		release_sock(sk);
	} else if (sk) {
		wait = HPS_SHRINK_AGAIN;
	}
	hps_shrink_later(link, wait);
	if (sk)
		sock_put(sk);
	hps_conn_put(conn);
}

/*
 * Those of users who were refused memory are to give back as soon as they are idle for a
 * moment; or where others have too much, those of whoever has more than he could get now.
 * It is never looked for more often, whatever is refused: what is refused while this sleeps
 * has it run once more. Those that were found lately look by themselves.
 */
static void hps_shrink_pressed(struct work_struct *work)
{
	static u64 looked = 1;	/* 0 would be as old as what was never refused */
	u64 since = looked;
	struct hps_shrink *shrink;

	looked = get_jiffies_64();
	spin_lock_bh(&hps_shrink_lock);
	list_for_each_entry(shrink, &hps_shrink_links, node) {
		if (hps_shrink_is_pressed(shrink) ||
		    !hps_share_refused(shrink->link->receives.share, since))
			continue;
		WRITE_ONCE(shrink->pressed_until, jiffies + HPS_SHRINK_SHORT);
		if (!mod_delayed_work(hps_program_wq, &shrink->work, 0))
			hps_conn_get(&shrink->link->conn);
	}
	spin_unlock_bh(&hps_shrink_lock);
	schedule_timeout_idle(HPS_SHRINK_APART);
}

DECLARE_WORK(hps_shrink_pressure, hps_shrink_pressed);

static bool hps_shrink_new(struct hps_link *link)
{
	struct hps_shrink *shrink = kzalloc(sizeof(*shrink), GFP_KERNEL);

	if (!shrink)
		return false;
	hps_mem_add(shrink);
	shrink->link = link;
	shrink->pressed_until = jiffies;
	INIT_LIST_HEAD(&shrink->list);
	INIT_LIST_HEAD(&shrink->node);
	INIT_DELAYED_WORK(&shrink->work, hps_shrink_work);
	spin_lock_bh(&link->conn.lock);
	/* Pairs with hps_receives_full(), which reads without the lock. */
	smp_store_release(&link->shrink, shrink);
	spin_unlock_bh(&link->conn.lock);
	return true;
}

/**
 * hps_shrink_plan - the receives of a link have grown: see whether they are used
 * @link: not locked, its socket is
 *
 * Without memory it is not seen to before they grow once more.
 *
 * Context: process, may sleep.
 */
void hps_shrink_plan(struct hps_link *link)
{
	if (link->peer_pads && (link->shrink || hps_shrink_new(link)))
		hps_shrink_later(link, min_t(unsigned long,
					     READ_ONCE(hps_shrink_after) * HZ,
					     HPS_SHRINK_LOOK));
}

/**
 * hps_shrink_end - of a link that is ending
 * @link: not locked, shut
 *
 * Work that runs finds it shut.
 *
 * Context: process.
 */
void hps_shrink_end(struct hps_link *link)
{
	struct hps_shrink *shrink = READ_ONCE(link->shrink);

	if (!shrink)
		return;
	spin_lock_bh(&hps_shrink_lock);
	list_del_init(&shrink->node);
	spin_unlock_bh(&hps_shrink_lock);
	if (cancel_delayed_work(&shrink->work))
		hps_conn_put(&link->conn);
}
