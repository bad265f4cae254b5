// SPDX-License-Identifier: GPL-2.0
/*
 * From the receive queue, up to an urgent byte, to whoever reads: recvmsg(2) here,
 * splice(2) in splice.c. They differ in where the bytes go, which a struct
 * hps_reader says.
 *
 * Callers are serialised by the socket lock, and only they take bytes off the
 * queue, so what was found there stays while it is copied without
 * hps_conn.lock.
 */
#include <linux/errqueue.h>
#include <linux/mm.h>
#include <linux/uio.h>
#include <net/busy_poll.h>
#include <net/tcp.h>

#include "compat.h"
#include "conn.h"
#include "fetch.h"
#include "invite.h"
#include "net.h"
#include "read.h"
#include "recv.h"
#include "sock.h"
#include "stream.h"
#include "urgent.h"

#define HPS_SPIN_MISSES	4	/* after so many in a row that were in vain, reads do not spin */
#define HPS_SPIN_AGAIN	32	/* but for one in so many */

/*
 * How long a call begins to fetch what more it has room for, if it may not wait or a signal
 * has come; and the rest of a record.
 */
#define HPS_RECV_SLOW	(HZ / 10)
#define HPS_RECV_WHOLE	(30 * HZ)

/*
 * And how long it waits for what was sent together with what it has: more than the three
 * ticks of the peer's clock, of 10 ms each at most, until its ask_timer of two has run.
 * After that was in vain, so many that would do not.
 */
#define HPS_RECV_REST	max(HZ / 25, 4)
#define HPS_RECV_VAIN	32

/*
 * An offer was read in time, though that was known after hps_conn_lose() only: what follows
 * it, up to the next one, is not lost either. It is about to leave the queue.
 */
static void hps_recv_found(struct hps_conn *conn, const struct hps_buf *offer)
{
	const struct hps_buf *buf = offer;

	list_for_each_entry_continue(buf, &conn->rxq, list) {
		if (buf->remote)
			return;
		atomic_add(buf->end - buf->start, &conn->rx_avail);
	}
}

/**
 * hps_recv_take - bytes at the head of a buffer are not needed there any more
 * @conn: locked; the reader's socket is, too
 * @buf: in the receive queue; gone if that was all of it
 * @len: bytes
 */
void hps_recv_take(struct hps_conn *conn, struct hps_buf *buf, u32 len)
{
	bool remote = buf->remote;

	lockdep_assert_held(&conn->lock);
	buf->start += len;
	if (buf->start != buf->end)
		return;
	if (remote && conn->rx_lost)
		hps_recv_found(conn, buf);
	list_del_init(&buf->list);
	hps_fetch_consumed(conn, buf);
	if (!remote)
		return;
	WRITE_ONCE(conn->rx_remote, conn->rx_remote - 1);
	/* FINACK waits until nothing is left to be read at the peer. */
	if (!conn->rx_remote)
		hps_stream_push(conn);
}

/**
 * hps_recv_drop - take off the bytes at the head of the queue that nobody will read
 * @conn: locked; the reader's socket is, too
 */
void hps_recv_drop(struct hps_conn *conn)
{
	struct hps_buf *buf;
	u32 len;

	lockdep_assert_held(&conn->lock);
	/* What is left out is in the queue; should it not be, nothing else is touched. */
	while (conn->rx_drop && !list_empty(&conn->rxq)) {
		buf = list_first_entry(&conn->rxq, struct hps_buf, list);
		/* A buffer at a time: a peer may have superseded many urgent bytes. */
		len = min(conn->rx_drop, buf->end - buf->start);
		WRITE_ONCE(conn->rx_drop, conn->rx_drop - len);
		/* Pairs with hps_conn_read_pos(). */
		smp_wmb();
		WRITE_ONCE(conn->rx_read, conn->rx_read + len);
		hps_recv_take(conn, buf, len);
	}
}

/*
 * The buffer behind @prev, the first one for NULL; NULL at the end. Most calls find one or
 * none at all, which takes no lock.
 */
static struct hps_buf *hps_recv_next(struct hps_conn *conn,
				     struct hps_buf *prev)
{
	struct list_head *pos = prev ? &prev->list : &conn->rxq;
	struct hps_buf *buf = NULL;

	if (!prev && !READ_ONCE(conn->rx_drop)) {
		/* Pairs with hps_conn_rx_data(): what counts is in the queue. */
		if (atomic_read_acquire(&conn->rx_avail))
			return list_first_entry(&conn->rxq, struct hps_buf,
						list);
		/*
		 * What is there without counting is lost, or just being counted. Of a
		 * stream that comes too late for this call, but the end of a record is
		 * counted first, and who saw that one does not wait for its bytes.
		 */
		if (!conn->records && !READ_ONCE(conn->rx_lost))
			return NULL;
	}

	spin_lock_bh(&conn->lock);
	if (!prev)
		hps_recv_drop(conn);
	if (!list_is_last(pos, &conn->rxq))
		buf = list_entry(pos->next, struct hps_buf, list);
	/* An offer that is lost stays in the queue, and so does what follows it. */
	if (buf && buf->remote && conn->rx_lost)
		buf = NULL;
	spin_unlock_bh(&conn->lock);
	return buf;
}

static void hps_recv_count(struct hps_conn *conn, u32 len)
{
	atomic_sub(len, &conn->rx_avail);
	WRITE_ONCE(conn->rx_read, conn->rx_read + len);
}

/* As hps_recv_take(), of what counts; the connection is locked. */
static void hps_recv_advance(struct hps_conn *conn, struct hps_buf *buf,
			     u32 len)
{
	/* It was read, but hps_conn_lose() has taken it off the count meanwhile. */
	if (buf->remote && conn->rx_lost)
		atomic_add(len, &conn->rx_avail);
	hps_recv_count(conn, len);
	hps_urgent_read(conn);
	hps_recv_take(conn, buf, len);
}

/*
 * Take @len bytes off @buf. @all: that is what it had when it was looked at; a message
 * may have been joined to it since (hps_conn_join()).
 */
static void hps_recv_consume(struct hps_conn *conn, struct hps_buf *buf,
			     u32 len, bool all)
{
	/*
	 * The reader alone moves the start of a buffer, so a buffer that stays needs no
	 * lock, unless there is an urgent byte. One among the bytes that were read would
	 * be known, as it is noted before @buf->end moves; one that comes now is behind.
	 */
	if (!all && !buf->remote && !READ_ONCE(conn->rx_urgent)) {
		buf->start += len;
		hps_recv_count(conn, len);
		return;
	}
	spin_lock_bh(&conn->lock);
	hps_recv_advance(conn, buf, len);
	spin_unlock_bh(&conn->lock);
}

/* Leave out the urgent byte at the head of the queue, if it still is one. */
static void hps_recv_pass(struct hps_conn *conn, struct hps_buf *buf)
{
	spin_lock_bh(&conn->lock);
	if (hps_urgent_next(conn))
		hps_recv_advance(conn, buf, 1);
	spin_unlock_bh(&conn->lock);
}

/*
 * Shall a call fetch more than once? A peer may offer its bytes one by one, and take its time
 * to have each of them read. So one that may not wait leaves the rest to the next, and after
 * as long a signal ends any other. Returns 0, or an errno if nothing was read.
 */
static int hps_recv_again(struct hps_reader *r)
{
	if (!r->until) {
		r->until = jiffies + (r->whole ? HPS_RECV_WHOLE : HPS_RECV_SLOW);
		return 0;
	}
	if (fatal_signal_pending(current))
		return -EINTR;
	if (time_before(jiffies, r->until) || (r->timeo && !signal_pending(current)))
		return 0;
	return r->timeo ? sock_intr_errno(r->timeo) : -EAGAIN;
}

/*
 * A call ends where there is more to fetch. Who polls for edges would take fewer bytes than it
 * has room for to be all, and has to be told that they are not.
 */
static ssize_t hps_recv_stop(struct sock *sk, size_t total, int err)
{
	if (total || err == -EAGAIN)
		sk->sk_data_ready(sk);
	return total ?: err;
}

/*
 * How far behind the first unread byte the next one is. Bytes before that may have gone
 * meanwhile: others have read them, or an urgent one was superseded. MSG_PEEK goes on where
 * it was, or where they have read to.
 */
static u32 hps_recv_offset(const struct hps_conn *conn, struct hps_reader *r)
{
	u64 pos = hps_conn_read_pos(conn);

	if (r->flags & MSG_PEEK)
		r->off -= min_t(u64, r->off, pos - r->pos);
	r->pos = pos;
	return r->off;
}

/* Hand over what is there. Returns bytes, or the reader's errno if it took none. */
static ssize_t hps_recv_some(struct sock *sk, struct hps_conn *conn,
			     struct hps_reader *r, size_t len)
{
	struct hps_buf *buf = hps_recv_next(conn, NULL);
	bool peek = r->flags & MSG_PEEK;
	u32 skip = hps_recv_offset(conn, r);
	size_t total = 0;

	while (total < len && buf) {
		/* Small messages may be joined to the buffer meanwhile. */
		u32 there = smp_load_acquire(&buf->end) - buf->start, bound, n;
		ssize_t taken;

		/*
		 * MSG_PEEK beyond an offer: it has to be fetched first, as READDONE counts
		 * offers in the order of the stream.
		 */
		if (skip >= there && buf->remote && !r->blind) {
			taken = hps_recv_again(r) ?:
				hps_fetch(sk, conn, buf, skip, r, 0);
			if (taken < 0)
				return hps_recv_stop(sk, total, taken);
			buf = hps_recv_next(conn, NULL);
			skip = hps_recv_offset(conn, r);
			continue;
		}
		if (skip >= there) {
			skip -= there;
			buf = hps_recv_next(conn, buf);
			continue;
		}
		n = min_t(size_t, there - skip, len - total);
		bound = n;
		if (unlikely(READ_ONCE(conn->rx_urgent))) {
			bound = hps_urgent_bound(conn, r->off, n);
			/* The urgent byte was superseded since @buf was found. */
			if (READ_ONCE(conn->rx_drop)) {
				buf = hps_recv_next(conn, NULL);
				skip = hps_recv_offset(conn, r);
				continue;
			}
		}
		if (!bound && (total || r->copied))
			break;
		if (!bound && !sock_flag(sk, SOCK_URGINLINE)) {
			if (peek) {
				r->off++;
				skip++;
			} else {
				hps_recv_pass(conn, buf);
				buf = hps_recv_next(conn, NULL);
			}
			continue;
		}
		if (buf->remote && !r->blind) {
			taken = hps_recv_again(r) ?:
				hps_fetch(sk, conn, buf, skip, r, bound ?: n);
			if (taken < 0)
				return hps_recv_stop(sk, total, taken);
			/* It was not read to where @r wants it, but into the queue. */
			if (!taken) {
				buf = hps_recv_next(conn, NULL);
				skip = hps_recv_offset(conn, r);
				continue;
			}
		} else {
			taken = r->take(r, buf->data + buf->start + skip,
					bound ?: n);
			if (taken < 0)
				return total ?: taken;
		}
		total += taken;
		r->stamp = READ_ONCE(buf->stamp);
		if (peek) {
			r->off += taken;
			skip += taken;
			sk_peek_offset_fwd(sk, taken);
			continue;
		}
		sk_peek_offset_bwd(sk, taken);
		hps_recv_consume(conn, buf, taken, taken == there);
		buf = total < len ? hps_recv_next(conn, NULL) : NULL;
	}
	return total;
}

/* Is what would be read next the urgent byte? */
static bool hps_recv_at_mark(struct hps_conn *conn, struct hps_reader *r)
{
	return unlikely(READ_ONCE(conn->rx_urgent)) &&
	       !hps_urgent_bound(conn, hps_recv_offset(conn, r), 1);
}

/**
 * hps_recv_over - is there a reason not to wait for more?
 * @sk: the socket
 *
 * Context: any; a snapshot.
 * Return: true after an error, the end of the stream or of the connection.
 */
bool hps_recv_over(const struct sock *sk)
{
	return READ_ONCE(sk->sk_err) ||
	       (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) ||
	       READ_ONCE(sk->sk_state) == TCP_CLOSE;
}

/**
 * hps_recv_end - nothing was read and nothing will come
 * @sk: the socket, locked
 *
 * Return: 0 for the end, or the error that it was; once.
 */
int hps_recv_end(struct sock *sk)
{
	const struct hps_conn *conn = hps_sk_conn(sk);
	int err;

	if (conn && READ_ONCE(conn->fin_rcvd) && !READ_ONCE(conn->rx_lost))
		return 0;
	err = sock_error(sk);
	if (err)
		return err;
	/* It may be just ending, and SO_ERROR have been told why. */
	if (conn || READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		return 0;
	/* Never connected. */
	return -ENOTCONN;
}

static bool hps_recv_here(struct sock *sk, struct hps_conn *conn)
{
	return atomic_read(&conn->rx_avail);
}

/* Is there anything to read, or to be told? A snapshot, without the lock. */
static bool hps_recv_ready(struct sock *sk, hps_recv_look *look)
{
	struct hps_conn *conn;
	bool ready;

	rcu_read_lock();
	conn = rcu_dereference(hps_sk(sk)->conn);
	ready = !conn || look(sk, conn) || hps_recv_over(sk);
	rcu_read_unlock();
	return ready;
}

/**
 * hps_recv_spin - SO_BUSY_POLL: wait for data without going to sleep, for so many microseconds
 * @sk: the socket; most do not ask for that
 * @flags: of the call, which may not wait at all
 * @look: is there what it is for?
 *
 * The completion queue is polled by softirq and shared, so it is the socket that
 * is looked at. Where that was in vain a few times in a row it is left out, but for
 * one read in so many: the peer may have become faster.
 *
 * Context: process, without the socket's lock.
 */
void hps_recv_spin(struct sock *sk, int flags, hps_recv_look *look)
{
	struct hps_sock *hsk = hps_sk(sk);
	u8 missed = READ_ONCE(hsk->spin_missed);
	unsigned long start;

	if (!sk_can_busy_loop(sk) || READ_ONCE(sk->sk_state) != TCP_ESTABLISHED ||
	    flags & MSG_DONTWAIT || hps_recv_ready(sk, look))
		return;
	if (missed >= HPS_SPIN_MISSES && missed % HPS_SPIN_AGAIN) {
		WRITE_ONCE(hsk->spin_missed, missed + 1);
		return;
	}
	start = busy_loop_current_time();
	while (!hps_recv_ready(sk, look)) {
		if (sk_busy_loop_timeout(sk, start) || need_resched() ||
		    signal_pending(current)) {
			WRITE_ONCE(hsk->spin_missed, missed + 1);
			hps_stat_inc(hps_net(sock_net(sk)), HPS_STAT_SPIN_MISSED);
			return;
		}
		cpu_relax();
	}
	WRITE_ONCE(hsk->spin_missed, 0);
	hps_stat_inc(hps_net(sock_net(sk)), HPS_STAT_SPIN_HIT);
}

/**
 * hps_recv_wait - wait for more to read
 * @sk: the socket, locked
 * @conn: its connection
 * @timeo: jiffies to wait, which this takes from
 * @seen: bytes that were there to be read and are not waited for
 * @stuck: they cannot be had: wait for the end of the connection, which is to come
 *
 * Context: process, sleeps, without the lock; @sk may have another connection
 * afterwards.
 * Return: 0, also for no reason; or a negative errno.
 */
int hps_recv_wait(struct sock *sk, struct hps_conn *conn, long *timeo,
		  u32 seen, bool stuck)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int rc;

	/* Meanwhile it may be disconnected, or connect() begin anew. */
	hps_conn_get(conn);
	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	rc = sk_wait_event(sk, timeo,
			   rcu_access_pointer(hps_sk(sk)->conn) != conn ||
			   (stuck ? READ_ONCE(conn->reported) :
				    atomic_read(&conn->rx_avail) != seen || hps_recv_over(sk)),
			   &wait);
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	hps_conn_put(conn);
	return rc < 0 ? rc : 0;
}

/**
 * hps_recv_turn - as hps_fetch_turn(), for a call that is about one peer
 * @sk: the socket, locked
 *
 * Context: process, may sleep, without the lock.
 * Return: 0; -EINTR if it was killed; -EPIPE if the socket was disconnected meanwhile, and
 * may have another peer now, as from sk_wait_event().
 */
int hps_recv_turn(struct sock *sk)
{
	int disconnects = sk->sk_disconnects;
	int err = hps_fetch_turn(sk);

	return disconnects == sk->sk_disconnects ? err : -EPIPE;
}

/* Was all said about the end of the connection? */
static bool hps_recv_told(struct hps_conn *conn)
{
	bool told;

	spin_lock_bh(&conn->lock);
	told = conn->reported;
	spin_unlock_bh(&conn->lock);
	return told;
}

/*
 * A reader has enough, but no more only because what its peer's call has sent comes in
 * several messages. TCP's segments would have come at once, by and large; so wait for the
 * rest a little. A peer may say that it has more and not send all of it, for good reasons too:
 * after that it is not believed for a while. False if the reader is to do without.
 */
static bool hps_recv_rest(struct sock *sk, struct hps_conn *conn, struct hps_reader *r)
{
	struct hps_sock *hsk = hps_sk(sk);
	long patience, left;
	bool follows;

	/* What is less than SO_RCVLOWAT would wake nobody. */
	if (r->copied >= r->len || !r->patient || !r->timeo || r->flags & MSG_PEEK ||
	    r->stuck || sk->sk_rcvlowat > 1 || signal_pending(current))
		return false;
	/* Pairs with hps_msg_rx_stream(): what came last is counted. */
	if (likely(!smp_load_acquire(&conn->rx_follows)))
		return hps_conn_avail(conn);
	if (hsk->rest_skip) {
		hsk->rest_skip--;
		return false;
	}
	if (hps_invites(sk, conn))
		return false;
	/* What is just coming in has woken who was there to be woken: look behind it. */
	spin_lock_bh(&conn->lock);
	follows = conn->rx_follows && !hps_conn_avail(conn);
	spin_unlock_bh(&conn->lock);
	if (!follows)
		return hps_conn_avail(conn);
	if (!r->rest)
		r->rest = (jiffies + HPS_RECV_REST) | 1;
	patience = min_t(long, r->rest - jiffies, r->timeo);
	if (patience > 0) {
		left = patience;
		r->waited = true;
		if (hps_recv_wait(sk, conn, &left, 0, false))
			return false;
		if (r->timeo != MAX_SCHEDULE_TIMEOUT)
			r->timeo -= patience - left;
		if (left || hps_sk_conn(sk) != conn || hps_conn_avail(conn))
			return true;
	}
	/* Also where some of it came: a byte now and then is no reason to wait each time. */
	hsk->rest_skip = HPS_RECV_VAIN;
	return false;
}

/**
 * hps_recv - read from a stream
 * @sk: the socket, locked
 * @r: who reads, how much, and where to
 *
 * Context: process, may sleep, without the lock.
 * Return: bytes, 0 at the end of the stream, the reader's errno, or what
 * hps_recvmsg() returns.
 */
ssize_t hps_recv(struct sock *sk, struct hps_reader *r)
{
	bool peek = r->flags & MSG_PEEK, over;
	struct hps_conn *conn;
	u32 avail, seen;
	ssize_t n;
	int err;

	if (sk->sk_state == TCP_LISTEN)
		return -ENOTCONN;
	conn = hps_sk_conn(sk);
	if (conn)
		r->pos = hps_conn_read_pos(conn);
	for (;;) {
		err = hps_recv_turn(sk);
		if (err)
			return r->copied ?: err;
		over = hps_recv_over(sk);
		/* The queue is looked at after that: nothing follows an end. */
		smp_rmb();
		conn = hps_sk_conn(sk);
		if (!conn)
			return r->copied ?: hps_recv_end(sk);

		/* SIGURG comes first. */
		if (signal_pending(current) && !r->copied &&
		    hps_recv_at_mark(conn, r))
			return r->timeo ? sock_intr_errno(r->timeo) : -EAGAIN;
		avail = atomic_read(&conn->rx_avail);
		n = hps_recv_some(sk, conn, r, r->len - r->copied);
		if (n < 0 && n != -ECONNRESET)
			return r->copied ?: n;
		if (n > 0)
			r->copied += n;
		/* The connection may be gone. */
		if (r->parted)
			return r->copied ?: -ECONNRESET;
		/* What cannot be had is an error, also if FIN has come. */
		if (unlikely(r->stuck))
			over = hps_recv_told(conn);
		if (n > 0)
			hps_invite_learn(conn, r);
		if (n > 0 && !peek)
			conn->ops->grow(conn, sk);
		/* A read of nothing waits for data too, and so does TCP's. */
		if (!r->len && avail)
			return 0;
		if (r->copied && hps_recv_at_mark(conn, r))
			return r->copied;
		if (r->copied >= r->target) {
			if (over || !hps_recv_rest(sk, conn, r))
				return r->copied;
			continue;
		}
		if (over)
			return r->copied ?: hps_recv_end(sk);
		if (!r->timeo)
			return r->copied ?: -EAGAIN;
		if (signal_pending(current))
			return r->copied ?: sock_intr_errno(r->timeo);
		if (!r->stuck && hps_invite(sk, conn, r, &r->timeo)) {
			/* As hps_recv_wait() if there is another connection. */
			if (r->parted)
				return r->copied ?: -EPIPE;
			continue;
		}
		r->waited = true;
		/* If it has not looked at all of that, the reason is to be told. */
		seen = peek ? min(avail, r->off) : 0;
		err = hps_recv_wait(sk, conn, &r->timeo, seen, r->stuck);
		if (err)
			return r->copied ?: err;
	}
}

static ssize_t hps_recv_copy(struct hps_reader *reader, void *from, size_t len)
{
	struct hps_recv_msg *to = container_of(reader, struct hps_recv_msg,
					       reader);

	return hps_buf_to_iter(from, len, &to->msg->msg_iter) ?: len;
}

/* The program's memory, as far as it is in one piece. */
static u32 hps_recv_pin(struct hps_reader *reader, u32 len,
			struct hps_pages *sink)
{
	struct hps_recv_msg *to = container_of(reader, struct hps_recv_msg,
					       reader);
	struct iov_iter *iter = &to->msg->msg_iter;
	unsigned long addr;
	int nr;

	if (!user_backed_iter(iter))
		return 0;
	len = min_t(size_t, len, iov_iter_single_seg_count(iter));
	if (len < HPS_FETCH_DIRECT)
		return 0;
	addr = hps_iter_addr(iter);
	sink->off = offset_in_page(addr);
	nr = DIV_ROUND_UP(sink->off + len, PAGE_SIZE);
	sink->pages = kvmalloc_array(nr, sizeof(*sink->pages), GFP_KERNEL);
	if (!sink->pages)
		return 0;
	nr = pin_user_pages_fast(addr, nr, FOLL_WRITE, sink->pages);
	if (nr <= 0) {
		kvfree(sink->pages);
		return 0;
	}
	sink->nr = nr;
	sink->len = min_t(size_t, len, nr * PAGE_SIZE - sink->off);
	return sink->len;
}

static void hps_recv_unpin(struct hps_reader *reader, struct hps_pages *sink,
			   u32 done)
{
	struct hps_recv_msg *to = container_of(reader, struct hps_recv_msg,
					       reader);

	unpin_user_pages_dirty_lock(sink->pages, sink->nr, true);
	kvfree(sink->pages);
	iov_iter_advance(&to->msg->msg_iter, done);
}

/**
 * hps_recv_discard - hps_reader.take: unseen
 * @reader: the reader
 * @from: bytes that nobody wants
 * @len: how many
 *
 * Return: @len.
 */
ssize_t hps_recv_discard(struct hps_reader *reader, void *from, size_t len)
{
	return len;
}

/**
 * hps_recv_msg_init - read into a program's memory
 * @to: the reader
 * @msg: the memory
 * @len: bytes of it
 * @flags: MSG_PEEK, MSG_TRUNC to discard
 */
void hps_recv_msg_init(struct hps_recv_msg *to, struct msghdr *msg, size_t len,
		       int flags)
{
	*to = (struct hps_recv_msg){
		.reader.take = flags & MSG_TRUNC ? hps_recv_discard :
						   hps_recv_copy,
		.reader.pin = hps_recv_pin,
		.reader.unpin = hps_recv_unpin,
		.reader.blind = flags & MSG_TRUNC,
		.reader.len = len,
		.reader.flags = flags,
		.msg = msg,
	};
}

/**
 * hps_recv_errqueue - recvmsg(MSG_ERRQUEUE)
 * @sk: the socket
 * @msg: where to
 * @len: bytes
 *
 * In the form of ip_recv_error() and ipv6_recv_error(), with the address of an offender,
 * though there is none: sock_recv_errqueue() leaves it out.
 *
 * Context: process.
 * Return: bytes of what the notification is about, which is 0; -EAGAIN if there is none,
 * -EFAULT.
 */
int hps_recv_errqueue(struct sock *sk, struct msghdr *msg, size_t len)
{
	struct {
		struct sock_extended_err ee;
		struct sockaddr_in6 offender;
	} hdr = {};
	struct sk_buff *skb = sock_dequeue_err_skb(sk);
	int copied, err;

	if (!skb)
		return -EAGAIN;
	copied = min_t(size_t, len, skb->len);
	if (copied < skb->len)
		msg->msg_flags |= MSG_TRUNC;
	err = skb_copy_datagram_msg(skb, 0, msg, copied);
	if (err)
		goto out;
	sock_recv_timestamp(msg, sk, skb);
	hdr.ee = SKB_EXT_ERR(skb)->ee;
	if (hps_sock_v6(sk))
		put_cmsg(msg, SOL_IPV6, IPV6_RECVERR, sizeof(hdr), &hdr);
	else
		put_cmsg(msg, SOL_IP, IP_RECVERR,
			 sizeof(hdr.ee) + sizeof(struct sockaddr_in), &hdr);
	msg->msg_flags |= MSG_ERRQUEUE;
	err = copied;
out:
	kfree_skb(skb);
	return err;
}

static void hps_recv_tell_stamp(const struct sock *sk, struct msghdr *msg, ktime_t stamp)
{
	struct scm_timestamping_internal tss = {};
	bool wide = sock_flag(sk, SOCK_TSTAMP_NEW);
	u32 flags = READ_ONCE(sk->sk_tsflags);
	struct timespec64 ts = ktime_to_timespec64(stamp);

	if (sock_flag(sk, SOCK_RCVTSTAMPNS) && wide) {
		struct __kernel_timespec kts = { ts.tv_sec, ts.tv_nsec };

		put_cmsg(msg, SOL_SOCKET, SO_TIMESTAMPNS_NEW, sizeof(kts),
			 &kts);
	} else if (sock_flag(sk, SOCK_RCVTSTAMPNS)) {
		struct __kernel_old_timespec old = { ts.tv_sec, ts.tv_nsec };

		put_cmsg(msg, SOL_SOCKET, SO_TIMESTAMPNS_OLD, sizeof(old),
			 &old);
	} else if (sock_flag(sk, SOCK_RCVTSTAMP) && wide) {
		struct __kernel_sock_timeval tv = {
			ts.tv_sec, ts.tv_nsec / NSEC_PER_USEC
		};

		put_cmsg(msg, SOL_SOCKET, SO_TIMESTAMP_NEW, sizeof(tv), &tv);
	} else if (sock_flag(sk, SOCK_RCVTSTAMP)) {
		struct __kernel_old_timeval tv = {
			ts.tv_sec, ts.tv_nsec / NSEC_PER_USEC
		};

		put_cmsg(msg, SOL_SOCKET, SO_TIMESTAMP_OLD, sizeof(tv), &tv);
	}

	if (!(flags & SOF_TIMESTAMPING_SOFTWARE) ||
	    (flags & HPS_STAMP_FILTER &&
	     !(flags & SOF_TIMESTAMPING_RX_SOFTWARE)))
		return;
	tss.ts[0] = ts;
	if (wide)
		put_cmsg_scm_timestamping64(msg, &tss);
	else
		put_cmsg_scm_timestamping(msg, &tss);
}

/**
 * hps_recv_stamp - SO_TIMESTAMP and its relatives, as tcp_recv_timestamp() has them
 * @sk: the socket
 * @msg: to be told, if it asked for that; most programs do not
 * @stamp: when it was, 0 for unknown
 */
void hps_recv_stamp(const struct sock *sk, struct msghdr *msg, ktime_t stamp)
{
	if (stamp && (sock_flag(sk, SOCK_RCVTSTAMP) || READ_ONCE(sk->sk_tsflags)))
		hps_recv_tell_stamp(sk, msg, stamp);
}

/* How much is left, for TCP_INQ and io_uring; 1 if that is the end. */
static void hps_recv_inq(struct sock *sk, struct msghdr *msg)
{
	struct hps_conn *conn;

	msg->msg_inq = 0;
	rcu_read_lock();
	conn = rcu_dereference(hps_sk(sk)->conn);
	if (conn) {
		msg->msg_inq = hps_conn_avail(conn);
		if (!msg->msg_inq && READ_ONCE(conn->fin_rcvd))
			msg->msg_inq = 1;
	}
	rcu_read_unlock();
}

/**
 * hps_recvmsg - proto_ops.recvmsg
 * @sock: the socket
 * @msg: where to
 * @len: bytes
 * @flags: MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL, MSG_TRUNC (discard), MSG_OOB,
 *	MSG_ERRQUEUE (completions of MSG_ZEROCOPY)
 *
 * Context: process, may sleep.
 * Return: bytes, 0 at the end of the stream, -ENOTCONN, -EAGAIN, -ECONNRESET,
 * -ETIMEDOUT, -ENETDOWN, -EPROTO, -EINTR, -ERESTARTSYS, -EFAULT, -ENOMEM; for MSG_OOB as
 * hps_urgent_recv().
 */
int hps_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct hps_recv_msg to;
	struct sock *sk = sock->sk;
	bool inq;
	int ret;

	if (flags & MSG_ERRQUEUE)
		return hps_recv_errqueue(sk, msg, len);
	hps_recv_msg_init(&to, msg, len, flags);
	hps_recv_spin(sk, flags, hps_recv_here);
	lock_sock(sk);
	inq = hps_sk(sk)->inq;
	if (inq)
		msg->msg_get_inq = 1;
	if (flags & MSG_OOB && sk->sk_state != TCP_LISTEN) {
		ret = hps_urgent_recv(sk, msg, len, flags);
	} else {
		to.reader.timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
		to.reader.target = sock_rcvlowat(sk, flags & MSG_WAITALL, len);
		to.reader.patient = true;
		/* SO_PEEK_OFF, -1 if it is not set */
		if (flags & MSG_PEEK)
			to.reader.off = max(sk_peek_offset(sk, flags), 0);
		ret = hps_recv(sk, &to.reader);
	}
	release_sock(sk);
	if (ret < 0)
		return ret;
	hps_recv_stamp(sk, msg, to.reader.stamp);
	if (msg->msg_get_inq)
		hps_recv_inq(sk, msg);
	if (inq)
		put_cmsg(msg, SOL_TCP, TCP_CM_INQ, sizeof(msg->msg_inq),
			 &msg->msg_inq);
	return ret;
}
