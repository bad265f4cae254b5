// SPDX-License-Identifier: GPL-2.0
/*
 * What a send lends instead of copying it: pages that stay as they are until the
 * peer has read them. Either somebody promised that (MSG_ZEROCOPY, splice(2)), or
 * they are protected (protect.c), so that an ordinary send(2) may return at once, or
 * it does not return before that (wait.c).
 *
 * A program that writes to its buffer before the peer has read it makes the
 * kernel copy each page that it writes to, in a fault, which costs more than the
 * copy that was saved. So a connection watches what becomes of what it lends, and
 * with zcopy=auto copies for a while if that happens, each time for longer. It lends
 * the beginning of one send, to see how it goes, before it lends more at a time. And
 * it does not begin with that: receives grow by what is sent, not by what is offered,
 * and step up late where an offer is being read.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/user.h>
#include <linux/sizes.h>
#include <linux/skbuff.h>
#include <linux/uio.h>

#include <linux/hpsock.h>

#include "compat.h"
#include "conn.h"
#include "lent.h"
#include "net.h"
#include "param.h"
#include "protect.h"
#include "sock.h"
#include "work.h"

/*
 * With zcopy=auto a send is so many times the threshold: below that, what an offer costs at
 * both ends is more than what is saved.
 */
#define HPS_LENT_AUTO		2

/* Bytes that a connection copies before it lends any: the peer's receives grow by them. */
#define HPS_LENT_YOUNG		SZ_1M

/* A send was written to early if more than one of so many pages was. */
#define HPS_LENT_EARLY		64

/* With zcopy=wait the end of a send is copied: an eighth of what is left, at most so much. */
#define HPS_LENT_TAIL		32768

/*
 * Sends that are copied after an early write: the first time, by what factor more each
 * further time, and at most.
 */
#define HPS_LENT_PAUSE		16
#define HPS_LENT_PAUSE_FACTOR	4
#define HPS_LENT_PAUSE_MAX	1024

/*
 * A pause that is over is forgotten bit by bit, by so many a part with each send that goes
 * well: one that is written to early costs more than several others save.
 */
#define HPS_LENT_FORGET		8

/**
 * hps_lent_went - note how lending went, which says whether to go on with it
 * @conn: not locked
 * @well: the program left the pages alone until they were read
 *
 * Context: process.
 */
void hps_lent_went(struct hps_conn *conn, bool well)
{
	spin_lock_bh(&conn->lock);
	WRITE_ONCE(conn->lend_proven, well);
	WRITE_ONCE(conn->lend_trial, false);
	/* There is a pause already, because of another send that was lent before it. */
	if (READ_ONCE(conn->lend_skip))
		goto unlock;
	if (well) {
		conn->lend_pause -= DIV_ROUND_UP(conn->lend_pause, HPS_LENT_FORGET);
		goto unlock;
	}
	conn->lend_pause = clamp_t(u32, conn->lend_pause * HPS_LENT_PAUSE_FACTOR,
				   HPS_LENT_PAUSE, HPS_LENT_PAUSE_MAX);
	WRITE_ONCE(conn->lend_skip, conn->lend_pause);
	hps_stat_inc(conn->hn, HPS_STAT_LENT_PAUSE);
unlock:
	spin_unlock_bh(&conn->lock);
}

static void hps_lent_put_pages(struct page **pages, u32 nr)
{
	u32 i;

	for (i = 0; i < nr; i++)
		put_page(pages[i]);
}

static void hps_lent_free(struct hps_lent *lent)
{
	if (!lent->hold) {
		hps_lent_put_pages(lent->mem.pages, lent->mem.nr);
		kvfree(lent->mem.pages);
	}
	mm_unaccount_pinned_pages(&lent->locked);
	net_zcopy_put(lent->uarg);
	put_net(lent->conn->net);
	hps_conn_put(lent->conn);
	kfree(lent);
}

static void hps_lent_work(struct work_struct *work)
{
	struct hps_lent *lent = container_of(work, struct hps_lent, work);
	struct hps_released res;

	hps_protect_release(lent->hold, &res);
	if (lent->counted)
		atomic_dec(&lent->conn->holds);
	hps_stat_add(lent->conn->hn, HPS_STAT_LENT_EARLY, res.early);
	hps_stat_add(lent->conn->hn, HPS_STAT_LENT_RESTORED, res.restored);
	if (lent->vain)
		WRITE_ONCE(lent->conn->lend_trial, false);
	else
		hps_lent_went(lent->conn, res.early <= lent->mem.nr / HPS_LENT_EARLY);
	hps_lent_free(lent);
}

/**
 * hps_lent_put - the pages are not needed any more
 * @lent: no key for them is left; it is gone afterwards
 *
 * Context: any; hps_conn.lock may be held, if the caller has a reference.
 */
void hps_lent_put(struct hps_lent *lent)
{
	if (lent->hold)
		queue_work(hps_program_wq, &lent->work);
	else
		hps_lent_free(lent);
}

/**
 * hps_lent_drop - the pages could not be offered to the peer, which says nothing of the program
 * @lent: it is gone afterwards
 *
 * Context: process.
 */
void hps_lent_drop(struct hps_lent *lent)
{
	lent->vain = true;
	hps_lent_put(lent);
}

/* Is this one of the sends that are copied because an early one was written to? */
static bool hps_lent_pauses(struct hps_conn *conn, u32 mode)
{
	u32 skip = READ_ONCE(conn->lend_skip);

	if (mode == HPSOCK_ZCOPY_PROTECT || !skip)
		return false;
	WRITE_ONCE(conn->lend_skip, skip - 1);
	return true;
}

/* With zcopy=auto: how many of @len bytes, which have reached @threshold? */
static u32 hps_lent_dares(const struct hps_conn *conn, u32 len, u32 threshold)
{
	if (len < min(HPS_LENT_AUTO * threshold, READ_ONCE(conn->tx_lend_max)))
		return 0;
	if (READ_ONCE(conn->tx_bytes) < HPS_LENT_YOUNG)
		return 0;
	if (READ_ONCE(conn->lend_proven))
		return len;
	return READ_ONCE(conn->lend_trial) ? 0 : threshold;
}

/*
 * How many of @len bytes are worth it? As many as one SRCAVAIL offers. @refused is told how
 * many are not worth another look, if it is none.
 */
static u32 hps_lent_worth(struct sock *sk, struct hps_conn *conn,
			  const struct iov_iter *iter, size_t len,
			  bool promised, u32 mode, u32 *refused)
{
	const struct hps_tuning *tuning = &hps_sk(sk)->tuning;
	u32 threshold = hps_tuned(tuning, HPS_TUNE_ZCOPY_THRESHOLD);
	size_t left;

	if (mode == HPSOCK_ZCOPY_OFF)
		return 0;
	len = min_t(size_t, len, READ_ONCE(conn->tx_lend_max));
	if (len < threshold)
		return 0;
	if (promised)
		return len;
	if (mode == HPSOCK_ZCOPY_WAIT) {
		/* The end of a larger send is not worth it either. */
		if (len < 2 * HPS_LENT_TAIL)
			return 0;
		left = iov_iter_count(iter);
		len = min(len, left - min_t(size_t, left / 8, HPS_LENT_TAIL));
	}
	/* A kernel's own memory, as io_uring's, is not a program's to protect. */
	if (!user_backed_iter(iter))
		return 0;
	if (hps_lent_pauses(conn, mode)) {
		*refused = min_t(size_t, iov_iter_count(iter), U32_MAX);
		return 0;
	}
	return mode == HPSOCK_ZCOPY_AUTO ? hps_lent_dares(conn, len, threshold) : len;
}

/* Returns how many bytes can be protected from @addr on: @len or 0. */
static u32 hps_lent_protect(struct hps_lent *lent, unsigned long addr, u32 len)
{
	enum hps_refusal why;

	lent->hold = hps_protect(addr, len, &why);
	if (IS_ERR(lent->hold)) {
		lent->hold = NULL;
		hps_stat_refused(lent->conn->hn, why);
		return 0;
	}
	lent->mem.pages = hps_hold_pages(lent->hold, &lent->mem.nr);
	lent->mem.off = offset_in_page(addr);
	return len;
}

/* Takes as many of @len bytes as there are without a gap; returns how many. */
static u32 hps_lent_take(struct hps_lent *lent, struct iov_iter *iter, u32 len)
{
	u32 max = DIV_ROUND_UP(len, PAGE_SIZE) + 1, total = 0, nr;
	size_t off;
	ssize_t n;

	lent->mem.pages = kvmalloc_array(max, sizeof(*lent->mem.pages), GFP_KERNEL);
	if (!lent->mem.pages)
		return 0;
	while (total < len && lent->mem.nr < max) {
		n = iov_iter_get_pages2(iter, lent->mem.pages + lent->mem.nr, len - total,
					max - lent->mem.nr, &off);
		if (n <= 0)
			break;
		nr = DIV_ROUND_UP(off + n, PAGE_SIZE);
		if (!total)
			lent->mem.off = off;
		/* What the page allocator did not give out by the page cannot be held. */
		if (off != offset_in_page(lent->mem.off + total) ||
		    (total && off) || !sendpage_ok(lent->mem.pages[lent->mem.nr])) {
			hps_lent_put_pages(lent->mem.pages + lent->mem.nr, nr);
			iov_iter_revert(iter, n);
			break;
		}
		lent->mem.nr += nr;
		total += n;
	}
	return total;
}

/*
 * Count @len bytes against RLIMIT_MEMLOCK. One half of it is left to those who ask for theirs to
 * be counted, by MSG_ZEROCOPY: they fail where it does not suffice, and what nobody asked us to
 * lend is just copied.
 */
static bool hps_lent_account(struct hps_lent *lent, u32 len)
{
	/* As mm_account_pinned_pages() has it. */
	long pages = (len >> PAGE_SHIFT) + 2;

	if (atomic_long_read(&current_user()->locked_vm) + pages >
	    rlimit(RLIMIT_MEMLOCK) / 2 >> PAGE_SHIFT && !capable(CAP_IPC_LOCK))
		return false;
	return !mm_account_pinned_pages(&lent->locked, len);
}

/**
 * hps_lent_get - lend bytes to the peer, if that is worth it
 * @sk: the socket, locked
 * @conn: its connection
 * @iter: where the bytes are; it moves on by what is lent
 * @max: bytes that may be queued and are in one piece
 * @uarg: who is to be told, or NULL
 * @promised: nobody will write to them
 * @mode: enum hpsock_zcopy; WAIT only if the caller can wait until they are read
 * @refused: is told how many bytes are not worth another try, if it is NULL
 *
 * Context: process, may sleep.
 * Return: what was lent, or NULL: nothing, it is to be sent another way.
 */
struct hps_lent *hps_lent_get(struct sock *sk, struct hps_conn *conn,
			      struct iov_iter *iter, size_t max,
			      struct ubuf_info *uarg, bool promised, u32 mode,
			      u32 *refused)
{
	const struct hps_tuning *tuning = &hps_sk(sk)->tuning;
	struct hps_lent *lent;
	u32 len;

	*refused = 0;
	len = hps_lent_worth(sk, conn, iter, max, promised, mode, refused);
	if (!len)
		return NULL;
	lent = kzalloc(sizeof(*lent), GFP_KERNEL);
	if (!lent)
		return NULL;
	hps_conn_get(conn);
	get_net(conn->net);
	lent->conn = conn;
	INIT_WORK(&lent->work, hps_lent_work);
	if (uarg)
		net_zcopy_get(uarg);
	lent->uarg = uarg;
	lent->waited = !promised && mode == HPSOCK_ZCOPY_WAIT;
	if (!promised && !hps_lent_account(lent, len)) {
		hps_stat_inc(conn->hn, HPS_STAT_LEND_MEMLOCK);
	} else if (promised || lent->waited) {
		lent->mem.len = hps_lent_take(lent, iter, len);
	} else {
		lent->mem.len = hps_lent_protect(lent, hps_iter_addr(iter), len);
		iov_iter_advance(iter, lent->mem.len);
	}
	/* Is that less than was asked for, it is still lent if it reaches the threshold. */
	if (lent->mem.len >= min(len, hps_tuned(tuning, HPS_TUNE_ZCOPY_THRESHOLD))) {
		if (lent->hold) {
			WRITE_ONCE(conn->lend_trial, true);
			atomic_inc(&conn->holds);
			lent->counted = true;
		}
		return lent;
	}
	if (!lent->mem.len)
		*refused = len;
	iov_iter_revert(iter, lent->mem.len);
	hps_lent_put(lent);
	return NULL;
}
