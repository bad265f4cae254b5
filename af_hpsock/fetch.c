// SPDX-License-Identifier: GPL-2.0
/*
 * A reader has come to bytes that are still at the peer, and has them fetched:
 * straight to where it wants them, if these are many; otherwise, and for who only
 * looks (MSG_PEEK) or has no memory to show (splice(2)), some more than it wants, into
 * a buffer that takes their place in the queue.
 *
 * A program may be long in coming to read. With TCP its kernel would have the bytes
 * by then, and the other end be rid of them; so what has waited for HPS_FETCH_PATIENCE is
 * fetched into the queue without a reader, as far as SO_RCVBUF goes.
 *
 * That takes as long as the transport takes, so the socket's lock is let go
 * meanwhile. hps_conn.fetching keeps other readers away from the queue. When the bytes
 * have come a reader waits for the lock. The work does not, for a program may have taken
 * it and keep it (hps_sock_own()): it leaves them in hps_conn.fetched, and who has the
 * lock next and wants to read, or the work when it comes again, puts them in the queue.
 */
#include <linux/mm.h>
#include <linux/wait_bit.h>

#include "conn.h"
#include "fetch.h"
#include "net.h"
#include "read.h"
#include "recv.h"
#include "sock.h"
#include "work.h"

/* Bytes that are fetched into the queue at a time. */
#define HPS_FETCH_BYTES	65536

/* How long an offer waits for a reader before it is fetched without one. */
#define HPS_FETCH_PATIENCE	msecs_to_jiffies(200)

/* What a buffer of our own is charged: many may be short. */
static u32 hps_fetch_mem(u32 size)
{
	return size + sizeof(struct hps_buf);
}

/*
 * Is that over which a reader waits for? Also if something else is being fetched by now: then
 * it has to say again that it waits. A snapshot for who has not the socket's lock.
 */
static bool hps_fetch_over(const struct hps_conn *conn)
{
	return READ_ONCE(conn->fetching) != HPS_FETCH_WANTED || READ_ONCE(conn->fetched);
}

/* The socket is locked, as it was when this began. */
static void hps_fetch_end(struct hps_conn *conn)
{
	WRITE_ONCE(conn->fetching, HPS_FETCH_IDLE);
	hps_wake(&conn->fetching);
}

/* As hps_transport.read, and unlocks the socket; hps_fetch_end() has to follow. */
static int hps_fetch_unlock(struct sock *sk, struct hps_conn *conn,
			    struct hps_buf *buf, struct hps_pages *sink)
{
	WRITE_ONCE(conn->fetching, HPS_FETCH_BUSY);
	release_sock(sk);
	return conn->ops->read(conn, buf, sink);
}

/* As hps_transport.read, with the socket unlocked meanwhile, in the time the reader has. */
static int hps_fetch_read(struct sock *sk, struct hps_conn *conn,
			  struct hps_buf *buf, struct hps_reader *r,
			  struct hps_pages *sink)
{
	unsigned long begun = jiffies;
	int n;

	hps_conn_get(conn);
	n = hps_fetch_unlock(sk, conn, buf, sink);
	lock_sock(sk);
	hps_fetch_end(conn);
	if (r->timeo && r->timeo != MAX_SCHEDULE_TIMEOUT)
		r->timeo -= min_t(unsigned long, r->timeo, jiffies - begun);
	if (hps_sk_conn(sk) != conn) {
		r->parted = true;
		n = -ECONNRESET;
	} else if (n == -ECONNRESET) {
		r->stuck = true;
	}
	hps_conn_put(conn);
	return n;
}

/**
 * hps_fetch_consumed - a buffer is off the receive queue, and not needed any more
 * @conn: locked; the reader's socket is, too
 * @buf: the buffer; the transport knows nothing of one with what was fetched
 */
void hps_fetch_consumed(struct hps_conn *conn, struct hps_buf *buf)
{
	lockdep_assert_held(&conn->lock);
	if (!buf->fetched) {
		conn->ops->consumed(conn, buf);
		return;
	}
	if (conn->sk) {
		hps_sk(conn->sk)->rx_charged -= hps_fetch_mem(buf->size);
		sk_mem_uncharge(conn->sk, hps_fetch_mem(buf->size));
	}
	hps_buf_free(buf);
}

/* The pages of a buffer of our own. */
static void hps_fetch_pages(struct hps_pages *sink, void *data, u32 len)
{
	u32 i;

	sink->off = offset_in_page(data);
	sink->len = len;
	sink->nr = DIV_ROUND_UP(sink->off + len, PAGE_SIZE);
	for (i = 0; i < sink->nr; i++)
		sink->pages[i] = virt_to_page(data + i * PAGE_SIZE);
}

/*
 * Memory of our own for the first @size bytes of another; charged, whatever the limits are if
 * it @must be; or NULL.
 */
static struct hps_buf *hps_fetch_try(struct sock *sk, struct hps_buf *from, u32 size, bool must)
{
	struct hps_buf *local;

	if (must)
		sk_mem_charge(sk, hps_fetch_mem(size));
	else if (!hps_sock_charge(sk, hps_fetch_mem(size), SK_MEM_RECV))
		return NULL;
	local = hps_buf_local(size);
	if (!local) {
		sk_mem_uncharge(sk, hps_fetch_mem(size));
		return NULL;
	}
	local->fetched = true;
	local->from = from;
	hps_sk(sk)->rx_charged += hps_fetch_mem(size);
	return local;
}

/*
 * As hps_fetch_try(), perhaps for fewer: where memory is in pieces, a page will do. That much
 * a reader has at any limit, who was told that the bytes are there and finds nothing in front
 * of them; the next charge makes up for it.
 */
static struct hps_buf *hps_fetch_buf(struct sock *sk, struct hps_buf *from, u32 size,
				     bool must)
{
	struct hps_buf *local = hps_fetch_try(sk, from, size, false);

	if (unlikely(!local && (must || size > PAGE_SIZE)))
		local = hps_fetch_try(sk, from, min_t(u32, size, PAGE_SIZE), must);
	return local;
}

/* The first bytes of an offer are to go to a buffer: which, and its pages; or NULL. */
static struct hps_buf *hps_fetch_room(struct sock *sk, struct hps_buf *buf,
				      struct hps_pages *sink, bool must)
{
	u32 size = min_t(u32, buf->end - buf->start, HPS_FETCH_BYTES);
	struct hps_buf *local = hps_fetch_buf(sk, buf, size, must);

	if (local)
		hps_fetch_pages(sink, local->data, local->size);
	return local;
}

/* What came is in the queue, in front of what it was fetched from; locked. */
static void hps_fetch_insert(struct hps_conn *conn, struct hps_buf *local)
{
	struct hps_buf *buf = local->from;
	u32 len = local->end;

	lockdep_assert_held(&conn->lock);
	local->stamp = READ_ONCE(buf->stamp);
	list_add_tail(&local->list, &buf->list);
	/* It was read, but hps_conn_lose() has taken it off the count meanwhile. */
	if (buf->remote && conn->rx_lost)
		atomic_add(len, &conn->rx_avail);
	hps_recv_take(conn, buf, len);
}

/* Bytes have come to @local, or, if it failed, none; the socket is locked. */
static void hps_fetch_came(struct hps_conn *conn, struct hps_buf *local)
{
	spin_lock_bh(&conn->lock);
	if (!local->end) {
		hps_fetch_consumed(conn, local);
	} else {
		hps_stat_add(conn->hn, HPS_STAT_RX_FETCHED, local->end);
		hps_fetch_insert(conn, local);
	}
	spin_unlock_bh(&conn->lock);
}

/* Into the queue; returns 0 or a negative errno. */
static int hps_fetch_local(struct sock *sk, struct hps_conn *conn,
			   struct hps_buf *buf, struct hps_reader *r)
{
	struct page *pages[HPS_FETCH_BYTES / PAGE_SIZE + 1];
	struct hps_pages sink = { .pages = pages };
	struct hps_buf *local;
	int n;

	local = hps_fetch_room(sk, buf, &sink, list_is_first(&buf->list, &conn->rxq));
	if (!local)
		return -ENOMEM;
	n = hps_fetch_read(sk, conn, buf, r, &sink);
	local->end = max(n, 0);
	/* Who parted them has taken all that it had from the socket's accounts. */
	if (r->parted)
		hps_buf_free(local);
	else
		hps_fetch_came(conn, local);
	return min(n, 0);
}

/* Put what the work has left in its place; locked. Returns true if nobody fetches then. */
static bool hps_fetch_settle(struct hps_conn *conn)
{
	/* Pairs with hps_fetch_leave(). */
	struct hps_buf *local = smp_load_acquire(&conn->fetched);

	if (unlikely(local)) {
		WRITE_ONCE(conn->fetched, NULL);
		hps_fetch_came(conn, local);
		hps_fetch_end(conn);
	}
	return likely(!conn->fetching);
}

/**
 * hps_fetch_turn - wait until nobody else fetches
 * @sk: the socket, locked
 *
 * A read of the peer's memory depends on no program and ends soon. So calls that must
 * not block wait here, too, instead of failing with EAGAIN. The work lets them in after
 * it; another reader that finds more at once goes on first, until it has what it wants. The
 * peer has a say in how long that takes, so a process that waits can be killed.
 *
 * Context: process, may sleep, without the lock; @sk may have another connection
 * afterwards.
 * Return: 0, or -EINTR if it was killed.
 */
int hps_fetch_turn(struct sock *sk)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	int err = 0;

	while (conn && !hps_fetch_settle(conn)) {
		/* There is no other signal that ends it. */
		if (err)
			return -EINTR;
		WRITE_ONCE(conn->fetching, HPS_FETCH_WANTED);
		hps_conn_get(conn);
		release_sock(sk);
		err = wait_var_event_killable(&conn->fetching, hps_fetch_over(conn));
		lock_sock(sk);
		hps_conn_put(conn);
		conn = hps_sk_conn(sk);
	}
	return 0;
}

/*
 * The peer takes back what it has offered last: all that is in the queue from there
 * on. The connection is locked, and nobody reads.
 */
static void hps_fetch_give_back(struct hps_conn *conn)
{
	u32 keep = conn->rx_remote - min(conn->rx_remote, conn->rx_cancel);
	u32 bytes = 0, done = 0;
	struct hps_buf *buf, *next;
	bool back = false;

	hps_recv_drop(conn);
	list_for_each_entry_safe(buf, next, &conn->rxq, list) {
		if (!back && !(buf->remote && !keep--))
			continue;
		if (!back)
			done = buf->start;
		back = true;
		bytes += buf->end - buf->start;
		WRITE_ONCE(conn->rx_remote, conn->rx_remote - buf->remote);
		buf->remote = false;
		list_del_init(&buf->list);
		hps_fetch_consumed(conn, buf);
	}
	atomic_sub(bytes, &conn->rx_avail);
	conn->rx_bytes -= bytes;
	WRITE_ONCE(conn->rx_cancel, 0);
	hps_stat_add(conn->hn, HPS_STAT_RX_CANCELLED, bytes);
	conn->ops->cancelled(conn, done);
	/* An urgent byte that was announced is always behind what is taken back. */
	if (conn->rx_urgent && conn->rx_urgent_at >= conn->rx_bytes)
		hps_conn_shut(conn, EPROTO);
}

/* As hps_fetch_give_back(), if the peer takes something back. */
static void hps_fetch_cancelled(struct hps_conn *conn)
{
	if (likely(!READ_ONCE(conn->rx_cancel)))
		return;
	spin_lock_bh(&conn->lock);
	if (conn->rx_cancel)
		hps_fetch_give_back(conn);
	spin_unlock_bh(&conn->lock);
}

/**
 * hps_fetch - bytes that are at the peer are to be read
 * @sk: the socket, locked
 * @conn: its connection
 * @buf: has them, in the receive queue
 * @skip: bytes of @buf to leave out
 * @r: who reads
 * @len: bytes that it would take
 *
 * Context: process, sleeps, without the socket's lock.
 * Return: how many bytes have come to where @r wants them; 0 if they are in the
 * queue now, in place of @buf or in front of it, or not there any more; -ENOMEM;
 * -ECONNRESET if they cannot be had any more, and @r->stuck or @r->parted says why.
 */
ssize_t hps_fetch(struct sock *sk, struct hps_conn *conn, struct hps_buf *buf,
		  u32 skip, struct hps_reader *r, size_t len)
{
	struct hps_pages sink = {};
	int n;

	if (unlikely(READ_ONCE(conn->rx_cancel))) {
		hps_fetch_cancelled(conn);
		return 0;
	}
	if (skip || r->flags & MSG_PEEK || !r->pin || !r->pin(r, len, &sink))
		return hps_fetch_local(sk, conn, buf, r);
	n = hps_fetch_read(sk, conn, buf, r, &sink);
	r->unpin(r, &sink, max(n, 0));
	if (n > 0) {
		r->placed = true;
		hps_stat_add(conn->hn, HPS_STAT_RX_PLACED, n);
	}
	return n;
}

/*
 * The first buffer behind @at in the queue that is not our own memory; NULL when that before
 * it, @here, is SO_RCVBUF, and without one. The socket is locked: nobody else takes any off.
 */
static struct hps_buf *hps_fetch_next(struct sock *sk, struct hps_conn *conn,
				      struct list_head *at, u32 *here)
{
	struct hps_buf *buf = list_entry(at, struct hps_buf, list), *found = NULL;

	spin_lock_bh(&conn->lock);
	list_for_each_entry_continue(buf, &conn->rxq, list) {
		if (!buf->fetched) {
			found = buf;
			break;
		}
		*here += hps_fetch_mem(buf->end - buf->start);
	}
	spin_unlock_bh(&conn->lock);
	return *here < hps_sock_rcv_limit(sk) ? found : NULL;
}

/*
 * What is in a receive, to memory of our own; NULL if there is none. If that was not @all of
 * it, the rest stays behind it.
 */
static struct hps_buf *hps_fetch_copy(struct sock *sk, struct hps_conn *conn,
				      struct hps_buf *buf, bool *all)
{
	/* Pairs with hps_conn_join(). */
	u32 size = smp_load_acquire(&buf->end) - buf->start;
	struct hps_buf *local = hps_fetch_buf(sk, buf, size, false);

	if (!local)
		return NULL;
	local->end = local->size;
	memcpy(local->data, buf->data + buf->start, local->end);
	spin_lock_bh(&conn->lock);
	*all = local->end == buf->end - buf->start;
	hps_fetch_insert(conn, local);
	spin_unlock_bh(&conn->lock);
	return local;
}

/**
 * hps_fetch_aside - the transport's receives are needed for more of the same message
 * @sk: the socket, locked
 * @conn: its connection
 *
 * Moves the first bytes that are in a receive, or at the peer, into memory of our own, as
 * far as SO_RCVBUF goes.
 *
 * Context: process, may sleep, without the lock.
 * Return: 0; -ENOBUFS at that limit; -ENOMEM; -ECONNRESET.
 */
int hps_fetch_aside(struct sock *sk, struct hps_conn *conn)
{
	struct hps_reader nobody = {};
	struct hps_buf *buf;
	u32 here = 0;
	bool all;

	buf = hps_fetch_next(sk, conn, &conn->rxq, &here);
	if (!buf)
		return -ENOBUFS;
	if (buf->remote)
		return hps_fetch(sk, conn, buf, 0, &nobody, 0);
	return hps_fetch_copy(sk, conn, buf, &all) ? 0 : -ENOMEM;
}

/**
 * hps_fetch_aside_all - the transport's receives are needed, and nobody reads
 * @sk: the socket, locked
 * @conn: its connection
 * @size: of a receive that takes the place of one that is freed, bytes
 *
 * As hps_fetch_aside(), of all that is in receives up to what is at the peer, as long as what
 * is there to be read is within SO_RCVBUF, with what may come in the receives that are freed.
 *
 * Context: process, without the lock.
 * Return: 0, or -ENOMEM.
 */
int hps_fetch_aside_all(struct sock *sk, struct hps_conn *conn, u32 size)
{
	u32 limit = hps_sock_rcv_limit(sk), here = 0, more = 0;
	struct list_head *at = &conn->rxq;
	struct hps_buf *buf;
	bool all;

	/* What is being read goes to where it was in the queue. */
	while (!conn->fetching && hps_conn_avail(conn) + more < limit) {
		buf = hps_fetch_next(sk, conn, at, &here);
		if (!buf || buf->remote)
			break;
		buf = hps_fetch_copy(sk, conn, buf, &all);
		if (!buf)
			return -ENOMEM;
		if (all)
			more += size;
		here += hps_fetch_mem(buf->size);
		at = &buf->list;
	}
	return 0;
}

/* The first buffer that has waited for long; NULL, and @wait is told when to look again. */
static struct hps_buf *hps_fetch_oldest(struct sock *sk, struct hps_conn *conn,
					long *wait)
{
	u64 limit = hps_sock_rcv_limit(sk), here = 0, mem = 0;
	struct hps_buf *buf, *found = NULL;

	*wait = -1;
	spin_lock_bh(&conn->lock);
	list_for_each_entry(buf, &conn->rxq, list) {
		if (buf->remote) {
			found = buf;
			break;
		}
		/* In bytes, as hps_readable() has it: who waits for so many has to see them. */
		here += buf->end - buf->start;
		mem += hps_fetch_mem(buf->end - buf->start);
	}
	/* No program offers so little at a time. */
	if (mem >= 4 * limit)
		here = limit;
	if (found && !conn->shut) {
		*wait = HPS_FETCH_PATIENCE -
			nsecs_to_jiffies(ktime_get_real() - found->stamp);
		if (*wait > 0 || here >= limit)
			found = NULL;
		*wait = clamp_t(long, *wait, HPS_FETCH_PATIENCE / 8,
				HPS_FETCH_PATIENCE);
	} else {
		found = NULL;
	}
	spin_unlock_bh(&conn->lock);
	return found;
}

/* As hps_fetch_oldest(). The socket is locked. */
static struct hps_buf *hps_fetch_look(struct sock *sk, struct hps_conn *conn,
				      long *wait)
{
	bool wanted = conn->fetching == HPS_FETCH_WANTED;

	*wait = -1;
	if (hps_sk_conn(sk) != conn)
		return NULL;
	/*
	 * Who reads may have to wait for the lock when he has, and this must not. Nor does it
	 * go on at once where somebody waits for the turn.
	 */
	*wait = HPS_FETCH_PATIENCE / 8;
	if (!hps_fetch_settle(conn) || wanted)
		return NULL;
	hps_fetch_cancelled(conn);
	return hps_fetch_oldest(sk, conn, wait);
}

/*
 * As hps_fetch_local(), but it unlocks the socket and leaves what came to who has the lock
 * next, which may be a program for as long as it likes.
 */
static int hps_fetch_leave(struct sock *sk, struct hps_conn *conn,
			   struct hps_buf *buf)
{
	struct page *pages[HPS_FETCH_BYTES / PAGE_SIZE + 1];
	struct hps_pages sink = { .pages = pages };
	struct hps_buf *local = hps_fetch_room(sk, buf, &sink, false);
	int n;

	if (!local) {
		release_sock(sk);
		return -ENOMEM;
	}
	n = hps_fetch_unlock(sk, conn, buf, &sink);
	local->end = max(n, 0);
	/* Pairs with hps_fetch_settle(). */
	smp_store_release(&conn->fetched, local);
	hps_wake(&conn->fetching);
	return n;
}

/* Returns when to come again, jiffies, or -1. */
static long hps_fetch_collect(struct sock *sk, struct hps_conn *conn)
{
	struct hps_buf *buf;
	long wait;
	int n = 0;

	while (hps_sock_own(sk, HPS_LATER_COLLECT)) {
		buf = hps_fetch_look(sk, conn, &wait);
		if (!buf || n < 0) {
			release_sock(sk);
			return wait;
		}
		n = hps_fetch_leave(sk, conn, buf);
	}
	return HPS_FETCH_PATIENCE;
}

static void hps_fetch_arm(struct hps_conn *conn, long wait)
{
	if (queue_delayed_work(hps_fetch_wq, &conn->collect, wait))
		hps_conn_get(conn);
}

static void hps_fetch_work(struct work_struct *work)
{
	struct hps_conn *conn = container_of(work, struct hps_conn,
					     collect.work);
	long wait = HPS_FETCH_PATIENCE;
	struct sock *sk = hps_conn_sock(conn);

	if (sk) {
		wait = hps_fetch_collect(sk, conn);
		sock_put(sk);
	}
	spin_lock_bh(&conn->lock);
	/* Without a socket no reader comes; one that was parted from it may still be here. */
	if (conn->rx_cancel && !conn->sk && !conn->shut &&
	    (!READ_ONCE(conn->fetching) || conn->fetched))
		hps_fetch_give_back(conn);
	if (wait >= 0 && (conn->rx_remote || conn->rx_cancel) && !conn->shut)
		hps_fetch_arm(conn, conn->rx_cancel ? 1 : wait);
	spin_unlock_bh(&conn->lock);
	hps_conn_put(conn);
}

/**
 * hps_fetch_init - for a new connection
 * @conn: the connection
 */
void hps_fetch_init(struct hps_conn *conn)
{
	INIT_DELAYED_WORK(&conn->collect, hps_fetch_work);
}

/**
 * hps_fetch_expect - there are bytes at the peer that a reader should come for
 * @conn: locked
 */
void hps_fetch_expect(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	hps_fetch_arm(conn, HPS_FETCH_PATIENCE);
}

/**
 * hps_fetch_back - the peer takes back some of what it has offered
 * @conn: locked, with rx_cancel set
 *
 * Readers do not expect the queue to become shorter under their eyes, so that is
 * left to who has the socket's lock.
 */
void hps_fetch_back(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (!mod_delayed_work(hps_fetch_wq, &conn->collect, 0))
		hps_conn_get(conn);
}

/**
 * hps_fetch_later - collect now: when it was time a program held the socket's lock
 * @conn: its connection
 *
 * Context: any.
 */
void hps_fetch_later(struct hps_conn *conn)
{
	hps_conn_get(conn);
	if (mod_delayed_work(hps_fetch_wq, &conn->collect, 0))
		hps_conn_put(conn);
}

/**
 * hps_fetch_cancel - there is nothing more to fetch: stop the work that does
 * @conn: not locked, shut
 *
 * Context: any that is no interrupt's. Work that runs has a reference.
 */
void hps_fetch_cancel(struct hps_conn *conn)
{
	if (cancel_delayed_work(&conn->collect))
		hps_conn_put(conn);
}
