// SPDX-License-Identifier: GPL-2.0
/*
 * SOCK_SEQPACKET: messages that keep their bounds, over a stream that knows of none.
 *
 * In the stream each piece of a message has a head (struct hps_record, wire.h). How a
 * message is cut into pieces is its sender's affair: send.c takes what goes into one
 * buffer, or what is lent at a time. A sender that cannot go on in the middle of a
 * message takes back all of it with a piece that says so.
 *
 * A message is read when it is there completely, so that it can be read by one call.
 * rx_records counts the ends of messages in the receive queue as they come in. Those of
 * messages that were taken back count in rx_aborted: nobody is woken for them, and who
 * comes to one takes it off the queue, also who only looks (MSG_PEEK). A message that
 * is too much for the transport's receives is first moved into memory of our own
 * (hps_fetch_aside()), as far as SO_RCVBUF goes. Beyond that, and always when the rest
 * is at the peer to be read there, a call that may sleep takes it as it comes, straight
 * to where the program wants it; one that may not, or is interrupted, returns a part
 * with MSG_MORE, and the next call goes on from there.
 *
 * The socket lock is let go while bytes are fetched or waited for. hps_sock.reading
 * keeps other readers away in the middle of a message.
 */
#include <linux/sizes.h>
#include <linux/tcp.h>
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp_states.h>

#include "conn.h"
#include "fetch.h"
#include "poll.h"
#include "record.h"
#include "recv.h"
#include "sock.h"
#include "wait.h"
#include "work.h"

/* Who drops bytes sees once in so many whether it is to go on. */
#define HPS_RECORD_STEP	SZ_1M

/* How long a call that may not wait makes room for the rest of a message. */
#define HPS_RECORD_SLOW	(HZ / 10)

/**
 * hps_record_init - is the stream of a new connection one of records?
 * @conn: nobody else knows it
 * @type: of its socket
 */
void hps_record_init(struct hps_conn *conn, int type)
{
	conn->records = type == SOCK_SEQPACKET;
	/* A head and one byte */
	if (conn->records)
		conn->tx_least = sizeof(struct hps_record) + 1;
}

/**
 * hps_record_fill - make the head of a piece
 * @at: where to, of any alignment
 * @len: bytes of the piece
 * @flags: HPS_RECORD_*
 */
void hps_record_fill(void *at, u32 len, u8 flags)
{
	struct hps_record head = {
		.flags = flags | HPS_RECORD_PIECE,
		.len = cpu_to_be32(len),
	};

	memcpy(at, &head, sizeof(head));
}

/* The head is complete; its piece begins. Returns 0 or -EPROTO. */
static int hps_framing_begin(struct hps_framing *f)
{
	bool abort = f->head.flags & HPS_RECORD_ABORT;

	f->left = be32_to_cpu(f->head.len);
	if (!(f->head.flags & HPS_RECORD_PIECE) || (abort && f->left))
		return -EPROTO;
	/* No head is there for nothing: hps_record_goes_on() */
	if (!f->left && !abort && !(f->head.flags & HPS_RECORD_END))
		return -EPROTO;
	return 0;
}

/* Up to @len bytes of the piece have gone by; does its message end with that? */
static bool hps_framing_pass(struct hps_framing *f, u32 len)
{
	f->left -= len;
	if (f->left)
		return false;
	WRITE_ONCE(f->have, 0);
	return f->head.flags & (HPS_RECORD_END | HPS_RECORD_ABORT);
}

/*
 * The head of a piece that @buf has from *@at on goes by, or as many bytes as it has of the
 * piece; *@len grows by the latter. Returns 1 if a message ends there, 0, or -EPROTO.
 */
static int hps_framing_step(struct hps_framing *f, const struct hps_buf *buf,
			    u32 *at, u32 *len)
{
	u32 n;

	if (f->have < sizeof(f->head)) {
		if (buf->remote)
			return -EPROTO;
		n = min_t(u32, buf->end - *at, sizeof(f->head) - f->have);
		memcpy(f->bytes + f->have, buf->data + *at, n);
		WRITE_ONCE(f->have, f->have + n);
		*at += n;
		if (f->have < sizeof(f->head))
			return 0;
		if (hps_framing_begin(f))
			return -EPROTO;
	}
	n = min(buf->end - *at, f->left);
	*at += n;
	*len += n;
	return hps_framing_pass(f, n);
}

/* Did the sender give up the message that has ended here, or whose last piece this is? */
static bool hps_framing_aborted(const struct hps_framing *f)
{
	return f->head.flags & HPS_RECORD_ABORT;
}

/* What counts messages like the one that has ended. */
static atomic_t *hps_record_count(struct hps_conn *conn,
				  const struct hps_framing *f)
{
	return hps_framing_aborted(f) ? &conn->rx_aborted : &conn->rx_records;
}

/**
 * hps_record_arrive - bytes of a stream of records come in
 * @conn: locked
 * @buf: has them
 *
 * Return: 0, or -EPROTO for what is no record.
 */
int hps_record_arrive(struct hps_conn *conn, const struct hps_buf *buf)
{
	struct hps_framing *f = &conn->rx_framing;
	u32 at = buf->start, len = 0;
	int ended;

	lockdep_assert_held(&conn->lock);
	while (at != buf->end) {
		ended = hps_framing_step(f, buf, &at, &len);
		if (ended < 0)
			return ended;
		if (ended)
			atomic_inc(hps_record_count(conn, f));
	}
	return 0;
}

/**
 * hps_record_goes_on - is there more of a message of which a part was read, or its end?
 * @conn: the connection
 * @avail: bytes in its queue
 *
 * Context: any; a snapshot.
 * Return: true if there is more than a head, which who only looks would leave there.
 */
bool hps_record_goes_on(const struct hps_conn *conn, u32 avail)
{
	u32 head = sizeof(struct hps_record) - READ_ONCE(conn->rx_record.have);

	return READ_ONCE(conn->rx_parted) && avail &&
	       (avail > head || atomic_read(&conn->rx_aborted));
}

/**
 * hps_record_stuck - may a message never be complete, if nobody reads of it?
 * @conn: with no complete one
 *
 * Context: any; a snapshot.
 * Return: true if a reader has to take a part of it.
 */
bool hps_record_stuck(struct hps_conn *conn)
{
	return READ_ONCE(conn->rx_remote) || conn->ops->rx_full(conn);
}

/* One call of recvmsg(2). */
struct hps_record_call {
	struct hps_recv_msg to;
	struct hps_conn *conn;		/* referenced */
	struct hps_framing *f;		/* conn->rx_record; of a peek, a copy */
	struct hps_framing copy;
	long timeo;			/* jiffies to wait */
	long patience;			/* the same in the middle of a message */
	bool whole;			/* all of it is there, at the peer perhaps */
	u32 off;			/* MSG_PEEK: bytes looked at */
	size_t room;			/* of the program's memory */
	size_t copied;
	size_t len;			/* of the message, as far as it is known */
	size_t budget;			/* bytes of the stream that may be read */
	bool drops;			/* and that nobody will have */
	bool more;			/* it goes on */
	bool aborted;			/* nobody will have it, or the rest of it */
	bool eor;			/* it was sent with MSG_EOR */
	bool over;			/* nor does the stream */
};

static bool hps_record_peeks(const struct hps_record_call *call)
{
	return call->to.reader.flags & MSG_PEEK;
}

/* A reader whose bytes are the head of a piece. */
struct hps_record_head {
	struct hps_reader reader;
	struct hps_framing *f;
};

static ssize_t hps_record_take_head(struct hps_reader *reader, void *from,
				    size_t len)
{
	struct hps_record_head *to = container_of(reader,
						  struct hps_record_head,
						  reader);

	memcpy(to->f->bytes + to->f->have, from, len);
	WRITE_ONCE(to->f->have, to->f->have + len);
	return len;
}

/* @timeo jiffies are left. Without any it reads no more than what there is. */
static void hps_record_waited(struct hps_record_call *call, long timeo)
{
	call->timeo = timeo;
	call->patience = timeo;
	if (!timeo && !call->whole)
		call->budget = hps_conn_avail(call->conn);
}

/*
 * Read @len bytes; a message may end, and the connection, before they are there. What a
 * call takes while it comes is as long as the peer likes, so the peer must not be able to
 * keep it here: it is interrupted, and one that may not wait gets what there was before.
 */
static ssize_t hps_record_take(struct sock *sk, struct hps_record_call *call,
			       struct hps_reader *r, size_t len)
{
	ssize_t n;

	cond_resched();
	/*
	 * Who looks at many small pieces goes past those before them each time. Who takes them
	 * is soon done, and must not leave others a part of what was there as a whole.
	 */
	if (hps_record_peeks(call) && fatal_signal_pending(current))
		return -EINTR;
	if (!call->budget)
		return -EAGAIN;
	if (!call->whole && call->patience && signal_pending(current))
		return sock_intr_errno(call->patience);
	len = min(len, call->budget);
	r->len = len;
	r->target = len;
	r->copied = 0;
	r->timeo = call->patience;
	r->whole = call->whole;
	r->flags = call->to.reader.flags & MSG_PEEK;
	r->off = call->off;
	n = hps_recv(sk, r);
	/* What is left out of a message, and all there is of an empty one, came in as well. */
	if (n > 0)
		call->to.reader.stamp = r->stamp;
	if (n > 0 && r->flags)
		call->off += n;
	else if (n > 0)
		call->budget -= n;
	if (hps_sk_conn(sk) != call->conn)
		return -ECONNRESET;
	if (call->patience)
		hps_record_waited(call, r->timeo);
	return n;
}

/* Go to the next piece. Returns 1, 0 at the end of the stream, or a negative errno. */
static int hps_record_next(struct sock *sk, struct hps_record_call *call)
{
	struct hps_record_head to = {
		.reader.take = hps_record_take_head,
		/* A head is never in an offer, so MSG_PEEK need not fetch those before it. */
		.reader.blind = true,
		.f = call->f,
	};
	ssize_t n;

	while (call->f->have < sizeof(call->f->head)) {
		n = hps_record_take(sk, call, &to.reader,
				    sizeof(call->f->head) - call->f->have);
		if (n <= 0)
			return n;
	}
	return hps_framing_begin(call->f) ?: 1;
}

/* Have the program, or nobody, take what it can of the piece. */
static ssize_t hps_record_piece(struct sock *sk, struct hps_record_call *call)
{
	size_t room = call->room - call->copied;
	bool fits = room && !call->drops;
	struct hps_reader nobody = { .take = hps_recv_discard, .blind = true };
	ssize_t n;

	if (!call->f->left)
		return 0;
	n = hps_record_take(sk, call, fits ? &call->to.reader : &nobody,
			    min_t(size_t, call->f->left,
				  fits ? room : HPS_RECORD_STEP));
	if (n > 0 && fits)
		call->copied += n;
	if (n > 0)
		call->len += n;
	return n;
}

/* Nothing follows what is in the queue. A program that will not read on has ended nothing. */
static bool hps_record_ended(const struct hps_conn *conn)
{
	return READ_ONCE(conn->fin_rcvd) || READ_ONCE(conn->reported);
}

/*
 * Reading ended with @n: was that the end of the connection, or will it be? A part of a
 * message is for who can have the rest. Nobody can have that of this one, and who is told so
 * needs no part.
 */
static bool hps_record_cut_off(struct sock *sk,
			       const struct hps_record_call *call, ssize_t n)
{
	if (hps_sk_conn(sk) != call->conn || call->to.reader.stuck ||
	    READ_ONCE(call->conn->rx_lost))
		return true;
	/* Whoever took the error can see that it was reported (hps_conn_report()). */
	return (!n || n == -READ_ONCE(call->conn->err)) && hps_record_ended(call->conn);
}

/*
 * Read a message, or as much of it as can be had. Returns 0, or an errno: what was read of
 * the message is gone then, and what is left of it is still to be read.
 */
static int hps_record_read(struct sock *sk, struct hps_record_call *call)
{
	bool split = hps_sk(sk)->split, ended = false, some;
	ssize_t n;

	call->more = false;
	while (!ended) {
		/* Not if it was left in the middle of a piece. */
		if (call->f->have < sizeof(call->f->head)) {
			n = hps_record_next(sk, call);
			if (n <= 0)
				goto out;
		}
		if (split && call->f->left && call->copied == call->room &&
		    !call->drops) {
			call->more = true;
			return 0;
		}
		n = hps_record_piece(sk, call);
		if (n < 0 || (!n && call->f->left))
			goto out;
		ended = hps_framing_pass(call->f, n);
	}
	call->aborted = hps_framing_aborted(call->f) || call->drops;
	call->eor = call->f->head.flags & HPS_RECORD_EOR;
	return 0;
out:
	/* The rest may come: what was read, or has been passed over, is a success. */
	some = (call->copied || (call->len && !call->drops)) &&
	       !hps_record_cut_off(sk, call, n);
	call->more = true;
	call->over = !n && !some;
	return some && n != -EFAULT ? 0 : n;
}

/* All of a message is off the queue. */
static void hps_record_done(struct hps_conn *conn)
{
	WRITE_ONCE(conn->rx_parted, false);
	conn->rx_faulted = false;
	atomic_dec(hps_record_count(conn, &conn->rx_record));
}

/* What there is of a message goes, with nobody to read it; not what comes meanwhile. */
static void hps_record_drop(struct sock *sk, struct hps_conn *conn)
{
	struct hps_record_call call = {
		.conn = conn,
		.f = &conn->rx_record,
		.budget = hps_conn_avail(conn),
		.drops = true,
	};

	if (!hps_record_read(sk, &call) && !call.more)
		hps_record_done(conn);
}

/*
 * Make room for the rest of a message in the queue. Returns 0; -ECONNRESET if the connection
 * ends; or another errno: the message has to be read while it comes.
 */
static int hps_record_room(struct sock *sk, struct hps_conn *conn,
			   struct hps_record_call *call)
{
	unsigned long begun = jiffies;
	int err;

	if (call->timeo && !hps_record_peeks(call) && READ_ONCE(conn->rx_remote))
		return -ENOBUFS;
	/* Meanwhile the socket may be disconnected, or connect anew. */
	hps_conn_get(conn);
	err = hps_fetch_aside(sk, conn);
	if (hps_sk_conn(sk) != conn)
		err = 0;
	hps_conn_put(conn);
	/* An RDMA Read takes the time that the peer does. */
	if (call->timeo != MAX_SCHEDULE_TIMEOUT)
		call->timeo -= min_t(unsigned long, call->timeo, jiffies - begun);
	return err;
}

/* May the call make more room? The peer may offer byte by byte, and take its time for each. */
static bool hps_record_patient(struct sock *sk, const struct hps_record_call *call,
			       unsigned long until)
{
	if (call->timeo)
		return !signal_pending(current);
	if (time_before(jiffies, until))
		return true;
	/* The next call goes on, for which who polls for edges has to be woken. */
	sk->sk_data_ready(sk);
	return false;
}

/* A message is there that nobody will have; is it for this call to take off the queue? */
static bool hps_record_clears(struct hps_conn *conn,
			      const struct hps_record_call *call, bool over)
{
	if (!atomic_read(&conn->rx_aborted))
		return false;
	/* One that may not wait could go on like that for as long as the peer does. */
	return over || (call->timeo && !signal_pending(current));
}

/* Wait for a message. Returns 1, 0 at the end of the stream, or a negative errno. */
static int hps_record_wait(struct sock *sk, struct hps_record_call *call)
{
	unsigned long until = jiffies + HPS_RECORD_SLOW;
	int disconnects = sk->sk_disconnects, err;
	struct hps_conn *conn;
	bool over, stuck;
	u32 avail;

	for (;;) {
		if (disconnects != sk->sk_disconnects)
			return -EPIPE;
		err = hps_recv_turn(sk);
		if (err)
			return err;
		if (unlikely(hps_sk(sk)->reading)) {
			err = hps_wait_clear(sk, &hps_sk(sk)->reading,
					     &call->timeo);
			/* Its time is up, but it is its turn. */
			if (err == -EAGAIN && !hps_sk(sk)->reading)
				continue;
			/* The reader has the socket's lock as it leaves, and sees this. */
			if (err == -EAGAIN)
				hps_sk(sk)->refused = true;
			if (err)
				return err;
			continue;
		}
		over = hps_recv_over(sk);
		/* The queue is looked at after that: nothing follows an end. */
		smp_rmb();
		conn = hps_sk_conn(sk);
		if (!conn)
			return hps_recv_end(sk);
		/*
		 * Pairs with hps_conn_rx_data(), which counts the end of a message before
		 * its bytes: a message that is not seen here makes them more than @avail.
		 */
		avail = atomic_read_acquire(&conn->rx_avail);
		/* A message that is there is waited for only if it cannot be had: until the end. */
		call->patience = call->timeo;
		call->budget = SIZE_MAX;
		call->whole = atomic_read(&conn->rx_records) ||
			      hps_record_clears(conn, call, over);
		if (call->whole)
			return 1;
		if (hps_record_peeks(call))
			call->patience = 0;
		if (!call->patience && !hps_record_ended(conn))
			call->budget = hps_conn_avail(conn);
		if (hps_record_goes_on(conn, avail))
			return 1;
		stuck = false;
		if (avail && !over && hps_record_stuck(conn)) {
			err = hps_record_room(sk, conn, call);
			if (!err && hps_record_patient(sk, call, until))
				continue;
			stuck = err == -ECONNRESET;
			if (err && !stuck)
				return 1;
		}
		if (over)
			return hps_recv_end(sk);
		if (!call->timeo)
			return -EAGAIN;
		if (signal_pending(current))
			return sock_intr_errno(call->timeo);
		err = hps_recv_wait(sk, conn, &call->timeo, avail, stuck);
		if (err)
			return err;
	}
}

/*
 * Will the program never see what it has read, since its memory is bad or it is killed? Then
 * the rest is for nobody else either: who shares the socket would take it for a message.
 */
static bool hps_record_lost(const struct hps_record_call *call, int err)
{
	return err == -EFAULT ||
	       (call->more && call->len && fatal_signal_pending(current));
}

/* Read one message, while hps_sock.reading keeps other readers away. */
static int hps_record_recv_one(struct sock *sk, struct hps_record_call *call)
{
	struct hps_conn *conn = call->conn;
	bool peek = hps_record_peeks(call);
	int err;

	call->drops = conn->rx_faulted;
	call->f = &conn->rx_record;
	if (peek) {
		call->copy = conn->rx_record;
		call->f = &call->copy;
	}
	err = hps_record_read(sk, call);
	if (hps_sk_conn(sk) != conn)
		return err;
	if (peek) {
		if (!err && call->aborted && !conn->rx_parted)
			hps_record_drop(sk, conn);
		return err;
	}
	if (hps_record_lost(call, err)) {
		WRITE_ONCE(conn->rx_parted, false);
		conn->rx_faulted = true;
		hps_record_drop(sk, conn);
		return err;
	}
	if (!call->more)
		hps_record_done(conn);
	else if (call->len && !call->drops)
		WRITE_ONCE(conn->rx_parted, true);
	return err;
}

/*
 * Others may read now. One that would not wait was told that there is nothing; who polls for
 * edges then waits for one, and the next message, or the end, may have come before this was
 * over.
 */
static void hps_record_leave(struct sock *sk)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	struct hps_sock *hsk = hps_sk(sk);

	WRITE_ONCE(hsk->reading, false);
	hps_wake(&hsk->reading);
	if (!hsk->refused)
		return;
	hsk->refused = false;
	if (hps_recv_over(sk) || (conn && hps_readable(sk, conn)))
		sk->sk_data_ready(sk);
}

static int hps_record_recv(struct sock *sk, struct hps_record_call *call)
{
	struct hps_sock *hsk = hps_sk(sk);
	bool parted;
	int ret;

	for (;;) {
		ret = hps_record_wait(sk, call);
		if (ret <= 0)
			return ret;
		call->conn = hps_sk_conn(sk);
		hps_conn_get(call->conn);
		WRITE_ONCE(hsk->reading, true);
		parted = call->conn->rx_parted;
		ret = hps_record_recv_one(sk, call);
		hps_record_leave(sk);
		hps_conn_put(call->conn);
		if (call->over)
			return hps_recv_end(sk);
		if (ret || !call->aborted)
			return ret ?: 1;
		/* A program that has some of it learns that there is no more. */
		if (parted)
			return -EBADMSG;
		iov_iter_revert(&call->to.msg->msg_iter, call->copied);
		call->copied = 0;
		call->len = 0;
		call->off = 0;
		call->aborted = false;
		cond_resched();
	}
}

/* Bytes that are left of the first message that is there completely, 0 if none. */
static u32 hps_record_first(struct hps_conn *conn)
{
	struct hps_framing f = conn->rx_record;
	bool faulted = conn->rx_faulted;
	struct hps_buf *buf;
	u32 len = 0, at;
	int ended;

	list_for_each_entry(buf, &conn->rxq, list) {
		/* It cannot be fetched any more. */
		if (buf->remote && conn->rx_lost)
			return 0;
		for (at = buf->start; at != buf->end;) {
			ended = hps_framing_step(&f, buf, &at, &len);
			if (ended < 0)
				return 0;
			if (!ended)
				continue;
			if (!faulted && !hps_framing_aborted(&f))
				return len;
			/* The next call says so, and reads nothing. */
			if (conn->rx_parted)
				return 0;
			faulted = false;
			len = 0;
		}
	}
	return 0;
}

/**
 * hps_record_inq - FIONREAD: how long is the next message?
 * @sk: the socket, locked
 *
 * Context: process.
 * Return: as many bytes as are left of it, 0 if it is not there completely.
 */
int hps_record_inq(struct sock *sk)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	u32 len;

	if (!conn || hps_sk(sk)->reading || !atomic_read(&conn->rx_records))
		return 0;
	spin_lock_bh(&conn->lock);
	len = hps_record_first(conn);
	spin_unlock_bh(&conn->lock);
	return min_t(u32, len, INT_MAX);
}

/*
 * What TCP_INQ tells after a read: the same, but 0 only if another one would wait. Who polls
 * for edges relies on that, also where the next message is empty, or cannot be there as a
 * whole, or the end is next.
 */
static int hps_record_left(struct sock *sk)
{
	struct hps_conn *conn = hps_sk_conn(sk);

	return hps_record_inq(sk) ?:
	       conn && (READ_ONCE(conn->fin_rcvd) || hps_readable(sk, conn));
}

/**
 * hps_record_recvmsg - proto_ops.recvmsg of SOCK_SEQPACKET
 * @sock: the socket
 * @msg: where to
 * @len: bytes
 * @flags: MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC (return the message's length), MSG_ERRQUEUE
 *
 * In msg_flags: MSG_TRUNC if bytes of the message were left out, MSG_EOR if it was sent
 * with that, MSG_MORE if this was a part of it. With TCP_INQ, how long the next one is.
 *
 * Context: process, may sleep.
 * Return: bytes, 0 for an empty message and at the end, -EBADMSG in the middle of a
 * message that its sender did not finish, -EOPNOTSUPP for MSG_OOB, otherwise as
 * hps_recvmsg().
 */
int hps_record_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
		       int flags)
{
	struct hps_record_call call = { .room = len };
	struct sock *sk = sock->sk;
	int ret, inq = -1;

	if (flags & MSG_ERRQUEUE)
		return hps_recv_errqueue(sk, msg, len);
	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	hps_recv_msg_init(&call.to, msg, len, flags & ~MSG_TRUNC);
	hps_recv_spin(sk, flags, hps_readable);
	lock_sock(sk);
	call.timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	ret = sk->sk_state == TCP_LISTEN ? -ENOTCONN :
					   hps_record_recv(sk, &call);
	if (hps_sk(sk)->inq)
		inq = hps_record_left(sk);
	release_sock(sk);
	if (ret > 0)
		hps_recv_stamp(sk, msg, call.to.reader.stamp);
	if (ret >= 0 && inq >= 0)
		put_cmsg(msg, SOL_TCP, TCP_CM_INQ, sizeof(inq), &inq);
	if (ret <= 0)
		return ret;
	if (call.more)
		msg->msg_flags |= MSG_MORE;
	else if (call.eor)
		msg->msg_flags |= MSG_EOR;
	if (call.len > call.copied)
		msg->msg_flags |= MSG_TRUNC;
	return flags & MSG_TRUNC ? min_t(size_t, call.len, INT_MAX) :
				   call.copied;
}
