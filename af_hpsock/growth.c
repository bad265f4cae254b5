// SPDX-License-Identifier: GPL-2.0
/*
 * Growth: when a link gets more receives, or larger ones, or SO_RCVBUF.
 *
 * There are two reasons. The peer fills the receives that it has (hps_growth.full): those
 * of the next size take more at a time. It runs out of credits (hps_credit.dry): with more
 * of them it need not wait. Both are looked at when a program has read, and by a work item
 * when there is no reader but may be one that waits for more to be there; what there is
 * to grow to ends with SO_RCVBUF. Where that is by number and not by bytes, the work makes
 * room: hps_growth_relieve().
 *
 * A step in size is taken only when no more credits than the new window are granted or
 * being read, so that the memory of the new size, which is all there before the peer is
 * told, can take the place of small ones, whatever the peer sends next. Where SO_RCVBUF
 * allows fewer of the new size, one first waits for that (HPS_GROWTH_WAITING), by posting
 * less for DATA: with nothing unread, as then the peer has credits left and more to come;
 * and for a reader that is behind, as long as it reads on: it may have read all it wants.
 * As no more are granted meanwhile, what it reads brings the step closer, however many
 * there were before. Documentation/formal/receives.pml has it checked.
 *
 * A look at the reasons leads, from any state, to
 *
 *   OPEN      if a step was taken, or one in number could be
 *   WAITING   if one in size has to wait, and is waited for
 *   CRAMPED   if there is no more to grow to, and the peer ran dry, now or when it
 *             became CRAMPED: a reader that keeps pace then has SO_RCVBUF grow, as
 *             TCP's does, and growth begins anew
 *   DONE      if there is no more to grow to
 */
#include <linux/log2.h>

#include "conn.h"
#include "fetch.h"
#include "growth.h"
#include "link.h"
#include "param.h"
#include "receives.h"
#include "sock.h"
#include "work.h"

/* A step in size is by this factor: there are three sizes, from smallest to largest. */
#define HPS_GROWTH_STEP		8

/* What to grow to. */
struct hps_growth_step {
	u32 size;	/* of receives, bytes */
	u32 window;	/* credits */
};

static u32 hps_growth_max(const struct hps_link *link, u32 size, u32 rcvbuf)
{
	return clamp_t(u32, rcvbuf / size, HPS_WINDOW_MIN,
		       link->credit.window_max);
}

/*
 * Larger receives, if the peer fills those it has. As it has filled one of the last step,
 * it has heard of that. Memory comes in powers of two, and what is beyond the size would be
 * charged to nobody. Returns with how many credits and unread buffers the step can be
 * taken at most, 0 if there is none.
 */
static u32 hps_growth_size(const struct hps_link *link, u32 rcvbuf,
			   struct hps_growth_step *step)
{
	u32 most = max_t(u32, rcvbuf / (2 * HPS_WINDOW_MIN), 1), max;
	u32 size = min_t(u32, hps_tuned(&link->tuning, HPS_TUNE_BUF_SIZE),
			 rounddown_pow_of_two(most));

	if (!link->growth.full || link->receives.size >= size)
		return 0;
	step->size = min(link->receives.size * HPS_GROWTH_STEP, size);
	max = hps_growth_max(link, step->size, rcvbuf);
	step->window = min(max, hps_receives_used(link) +
				hps_tuned(&link->tuning, HPS_TUNE_QUOTA));
	/* What is being read has no end to wait for, so leave room beside it. */
	return max - min_t(u32, HPS_WINDOW_MIN, max - 1);
}

/* More receives of the present size. Returns false if there are none to grow to. */
static bool hps_growth_number(const struct hps_link *link, u32 rcvbuf,
			      struct hps_growth_step *step)
{
	step->size = link->receives.size;
	step->window = min(hps_growth_max(link, step->size, rcvbuf),
			   link->credit.window * 2);
	return step->window > link->credit.window;
}

/*
 * Hold credits back for a step in size? A program that has just read may go on to. The
 * work item, which may come by at any time, looks whether it did since the last look; if
 * not, it is waited for again when it has read as much as SO_RCVBUF holds. One that pauses
 * after each of its reads is waited for twice as long each time, and half as often: the
 * time that others lose by it, which wait for more to be there, stays in proportion to
 * what they have received.
 */
static bool hps_growth_worth(struct hps_link *link, u32 rcvbuf, bool reading)
{
	struct hps_growth *growth = &link->growth;
	bool waiting = growth->state == HPS_GROWTH_WAITING;
	u64 pos = hps_conn_read_pos(&link->conn);
	bool lately = growth->lately;

	growth->lately = reading;
	if (!link->receives.held)
		return true;
	if (reading)
		return waiting || pos >= growth->retry;
	if (waiting && !lately) {
		growth->retry = pos + ((u64)rcvbuf << growth->vain);
		growth->vain = min(growth->vain + 1, HPS_GROWTH_VAIN_MAX);
	}
	return waiting && lately;
}

static void hps_growth_wait(struct hps_link *link, u32 room)
{
	hps_growth_set(&link->growth, HPS_GROWTH_WAITING, room);
	if (link->receives.held)
		hps_receives_plan_growth(link);
}

/* No more now: not again before there is another reason, which a reader looks for. */
static void hps_growth_rest(struct hps_link *link, bool more)
{
	struct hps_growth *growth = &link->growth;
	u8 state = HPS_GROWTH_OPEN;

	if (!more)
		state = link->credit.dry || growth->state == HPS_GROWTH_CRAMPED ?
			HPS_GROWTH_CRAMPED : HPS_GROWTH_DONE;
	hps_growth_set(growth, state, U16_MAX);
	WRITE_ONCE(growth->full, false);
	hps_credit_set_dry(&link->credit, false);
}

/*
 * What to grow to, as far as SO_RCVBUF goes: larger receives; where that has to wait or is
 * not asked for, more of them if the peer ran out. Returns false if that is what there is,
 * or later.
 */
static bool hps_growth_decide(struct hps_link *link, u32 rcvbuf, bool reading,
			      struct hps_growth_step *step)
{
	u32 room = hps_growth_size(link, rcvbuf, step);
	bool more;

	if (room && hps_receives_used(link) <= room)
		return true;
	if (room && hps_growth_worth(link, rcvbuf, reading)) {
		hps_growth_wait(link, room);
		return false;
	}
	more = hps_growth_number(link, rcvbuf, step);
	if (more && link->credit.dry) {
		hps_growth_set(&link->growth, HPS_GROWTH_OPEN, U16_MAX);
		return true;
	}
	hps_growth_rest(link, more);
	return false;
}

/*
 * Is it time for a larger SO_RCVBUF? The peer ran dry when there was no more to grow to,
 * and what it had sent by then, also what was copied aside since, has been read for the
 * most part. So a program that stays behind gets no more, whose data would only wait here
 * instead of there. What the peer only offers needs no memory here, but counts among what
 * can be read, so beside that the rest is not known. A snapshot, where the connection is
 * not locked.
 */
static bool hps_growth_cramped(const struct hps_link *link)
{
	u32 half = READ_ONCE(link->credit.window) / 2;

	return READ_ONCE(link->growth.state) == HPS_GROWTH_CRAMPED &&
	       READ_ONCE(link->receives.held) <= half &&
	       (READ_ONCE(link->conn.rx_remote) ||
		hps_conn_avail(&link->conn) <= half * READ_ONCE(link->receives.size));
}

/* Growth then begins anew; the socket and the connection are locked. */
static void hps_growth_widen(struct hps_link *link, struct sock *sk)
{
	u8 state = HPS_GROWTH_DONE;

	if (link->credit.window < link->credit.window_max &&
	    hps_sock_grow_rcvbuf(sk)) {
		state = HPS_GROWTH_OPEN;
		hps_credit_set_dry(&link->credit, true);
	}
	hps_growth_set(&link->growth, state, U16_MAX);
}

/* The socket is locked; @reading: by somebody who has just read. */
static void hps_growth_look(struct hps_link *link, struct sock *sk, bool reading)
{
	struct hps_conn *conn = &link->conn;
	struct hps_growth_step step;
	bool grow;

	spin_lock_bh(&conn->lock);
	/* Nothing more comes, or the peer is not to be told of two things at a time. */
	if (conn->fin_rcvd || hps_shrinking(link->shrink)) {
		spin_unlock_bh(&conn->lock);
		return;
	}
	if (reading && hps_growth_cramped(link))
		hps_growth_widen(link, sk);
	grow = hps_growth_decide(link, hps_sock_rcv_limit(sk), reading, &step);
	/* If it had waited before. */
	if (!grow)
		hps_receives_resume(link);
	spin_unlock_bh(&conn->lock);
	if (!grow)
		return;
	if (hps_receives_enlarge(link, sk, step.size, step.window)) {
		hps_shrink_plan(link);
		return;
	}
	spin_lock_bh(&conn->lock);
	hps_growth_rest(link, hps_growth_number(link, hps_sock_rcv_limit(sk),
						&step));
	hps_receives_resume(link);
	spin_unlock_bh(&conn->lock);
}

/* Has the peer no credit, because of what is not read? A snapshot. */
static bool hps_growth_stuck(struct hps_link *link)
{
	return READ_ONCE(link->receives.held) && hps_receives_full(&link->conn);
}

/* Look again later, if nobody does before. The connection is locked. */
static void hps_growth_again(struct hps_link *link, unsigned long wait)
{
	if (!link->conn.shut &&
	    queue_delayed_work(hps_program_wq, &link->growth.work, wait))
		hps_conn_get(&link->conn);
}

/**
 * hps_growth_read - hps_transport.grow
 * @conn: the connection
 * @sk: its socket, locked, from which something was read
 *
 * Context: process, may sleep.
 */
void hps_growth_read(struct hps_conn *conn, struct sock *sk)
{
	struct hps_link *link = hps_link(conn);

	if (!link->growth.read)
		link->growth.read = true;
	if (READ_ONCE(link->growth.full) || READ_ONCE(link->credit.dry) ||
	    READ_ONCE(link->growth.state) == HPS_GROWTH_WAITING ||
	    hps_growth_cramped(link))
		hps_growth_look(link, sk, true);
	/* It may have read on what was copied aside, which leaves the peer as it was. */
	if (hps_growth_stuck(link) && !delayed_work_pending(&link->growth.work)) {
		spin_lock_bh(&conn->lock);
		hps_growth_again(link, HPS_GROWTH_WAIT);
		spin_unlock_bh(&conn->lock);
	}
}

/*
 * Has nobody read for a while, although the peer cannot go on before? When that is first
 * seen a reader gets the time until the next look.
 */
static bool hps_growth_unread(struct hps_link *link)
{
	struct hps_growth *growth = &link->growth;
	struct hps_conn *conn = &link->conn;
	bool unread = false;

	spin_lock_bh(&conn->lock);
	/* After close() there is no reader; when it has shrunk it is looked at again. */
	if (conn->sk && !conn->fin_rcvd && growth->state != HPS_GROWTH_WAITING &&
	    !hps_shrinking(link->shrink) && hps_growth_stuck(link)) {
		unread = !growth->read;
		growth->read = false;
		if (!unread)
			hps_growth_again(link, HPS_GROWTH_WAIT);
	}
	spin_unlock_bh(&conn->lock);
	return unread;
}

/*
 * The peer has no credit left, and a look at growth did not change that: perhaps it sent
 * little at a time, so that few bytes fill all receives. Where nobody reads, those bytes are
 * copied to memory of our own, as far as SO_RCVBUF goes, as TCP collapses its queue. From
 * there on a reader has it looked at again, or who makes SO_RCVBUF larger. It does not grow
 * by itself for a program that stays behind. Where memory was missing, there may be some
 * later.
 */
static void hps_growth_relieve(struct hps_link *link, struct sock *sk)
{
	struct hps_conn *conn = &link->conn;
	int err;

	if (!hps_growth_unread(link))
		return;
	err = hps_fetch_aside_all(sk, conn, READ_ONCE(link->receives.size));
	spin_lock_bh(&conn->lock);
	if (err)
		hps_growth_again(link, HZ);
	spin_unlock_bh(&conn->lock);
}

/*
 * Without a reader. A program that waits for more of what the peer has, by FIONREAD or
 * MSG_PEEK, may have it, as far as SO_RCVBUF allows; and what a reader was waited for is
 * given up. The work has a reference, as the teardown does not wait for it.
 */
static void hps_growth_work(struct work_struct *work)
{
	struct hps_link *link = container_of(work, struct hps_link,
					     growth.work.work);
	struct hps_conn *conn = &link->conn;
	struct sock *sk = hps_conn_sock(conn);

	if (sk && hps_sock_own(sk, HPS_LATER_GROW)) {
		if (hps_sk_conn(sk) == conn) {
			hps_growth_look(link, sk, false);
			hps_growth_relieve(link, sk);
		}
		release_sock(sk);
	}
	if (sk)
		sock_put(sk);
	hps_conn_put(conn);
}

/**
 * hps_growth_later - hps_transport.grow_later: now, also if that is planned for later
 * @conn: the connection
 *
 * Context: any.
 */
void hps_growth_later(struct hps_conn *conn)
{
	hps_conn_get(conn);
	if (mod_delayed_work(hps_program_wq, &hps_link(conn)->growth.work, 0))
		hps_conn_put(conn);
}

/**
 * hps_growth_init - of a new link
 * @growth: zeroed
 *
 * Context: any.
 */
void hps_growth_init(struct hps_growth *growth)
{
	hps_growth_set(growth, HPS_GROWTH_OPEN, U16_MAX);
	growth->read = true;
	INIT_DELAYED_WORK(&growth->work, hps_growth_work);
}
