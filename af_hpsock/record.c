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
 * rx_records counts the ends of messages in the receive queue as they come in. One that
 * is too much for the transport's receives is first moved into memory of our own
 * (hps_fetch_aside()), as far as SO_RCVBUF goes. Beyond that, and always when the rest
 * is at the peer to be read there, a call that may sleep takes it as it comes, straight
 * to where the program wants it; one that may not, or is interrupted, returns a part
 * with MSG_MORE, and the next call goes on from there.
 *
 * The socket lock is let go while bytes are fetched or waited for. hps_sock.reading
 * keeps other readers away in the middle of a message.
 */
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp_states.h>

#include "conn.h"
#include "fetch.h"
#include "record.h"
#include "recv.h"
#include "sock.h"
#include "wait.h"
#include "work.h"

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
	f->left = be32_to_cpu(f->head.len);
	if (!(f->head.flags & HPS_RECORD_PIECE) ||
	    (f->head.flags & HPS_RECORD_ABORT && f->left))
		return -EPROTO;
	return 0;
}

/* Up to @len bytes of the piece have gone by; does its message end with that? */
static bool hps_framing_pass(struct hps_framing *f, u32 len)
{
	f->left -= len;
	if (f->left)
		return false;
	f->have = 0;
	return f->head.flags & (HPS_RECORD_END | HPS_RECORD_ABORT);
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
	u32 at = buf->start, n;

	lockdep_assert_held(&conn->lock);
	while (at != buf->end) {
		n = buf->end - at;
		if (f->have < sizeof(f->head)) {
			if (buf->remote)
				return -EPROTO;
			n = min_t(u32, n, sizeof(f->head) - f->have);
			memcpy(f->bytes + f->have, buf->data + at, n);
			f->have += n;
			at += n;
			if (f->have < sizeof(f->head))
				break;
			if (hps_framing_begin(f))
				return -EPROTO;
			n = 0;
		}
		n = min(n, f->left);
		at += n;
		if (hps_framing_pass(f, n))
			atomic_inc(&conn->rx_records);
	}
	return 0;
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
	u32 off;			/* MSG_PEEK: bytes looked at */
	size_t room;			/* of the program's memory */
	size_t copied;
	size_t len;			/* of the message, as far as it is known */
	bool more;			/* it goes on */
	bool aborted;			/* it will not */
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
	to->f->have += len;
	return len;
}

/* Read @len bytes; a message may end, and the connection, before they are there. */
static ssize_t hps_record_take(struct sock *sk, struct hps_record_call *call,
			       struct hps_reader *r, size_t len)
{
	ssize_t n;

	r->len = len;
	r->target = len;
	r->copied = 0;
	r->timeo = call->patience;
	r->flags = call->to.reader.flags & MSG_PEEK;
	r->off = call->off;
	n = hps_recv(sk, r);
	if (n > 0 && r->flags)
		call->off += n;
	if (hps_sk_conn(sk) != call->conn)
		return -ECONNRESET;
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
	bool fits = room && !call->to.reader.blind;
	struct hps_reader nobody = { .take = hps_recv_discard, .blind = true };
	ssize_t n;

	if (!call->f->left)
		return 0;
	n = hps_record_take(sk, call, fits ? &call->to.reader : &nobody,
			    fits ? min_t(size_t, room, call->f->left) :
				   call->f->left);
	if (n > 0 && fits)
		call->copied += n;
	if (n > 0)
		call->len += n;
	return n;
}

/*
 * Read a message, or as much of it as can be had. Returns 0, or an errno with nothing
 * copied. What is left of it then is still to be read.
 */
static int hps_record_read(struct sock *sk, struct hps_record_call *call)
{
	bool split = hps_sk(sk)->split, ended = false;
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
		    !call->to.reader.blind) {
			call->more = true;
			return 0;
		}
		n = hps_record_piece(sk, call);
		if (n < 0 || (!n && call->f->left))
			goto out;
		ended = hps_framing_pass(call->f, n);
	}
	call->aborted = call->f->head.flags & HPS_RECORD_ABORT;
	call->eor = call->f->head.flags & HPS_RECORD_EOR;
	return 0;
out:
	/* What was read comes first; the error is the next call's. */
	if (call->copied && call->conn->reported && n == -call->conn->err)
		WRITE_ONCE(sk->sk_err, -n);
	call->more = true;
	call->over = !n && !call->copied;
	return call->copied && n != -EFAULT ? 0 : n;
}

/* The program's memory is bad (EFAULT): the rest of the message is dropped. */
static void hps_record_skip(struct sock *sk, struct hps_record_call *call)
{
	call->to.reader.blind = true;
	call->patience = 0;
	call->room = 0;
	call->copied = 0;
	if (!hps_record_read(sk, call) && !call->more)
		atomic_dec(&call->conn->rx_records);
}

/*
 * Make room for the rest of a message in the queue. Returns true if that cannot be, so
 * that the message has to be read while it comes.
 */
static bool hps_record_as_it_comes(struct sock *sk,
				   struct hps_record_call *call)
{
	struct hps_conn *conn = hps_sk_conn(sk);

	if (!hps_record_stuck(conn))
		return false;
	if (call->timeo && !hps_record_peeks(call) && conn->rx_remote)
		return true;
	return hps_fetch_aside(sk, conn) != 0;
}

/* Wait for a message. Returns 1, 0 at the end of the stream, or a negative errno. */
static int hps_record_wait(struct sock *sk, struct hps_record_call *call)
{
	struct hps_conn *conn;
	u32 avail;
	bool over;
	int err;

	for (;;) {
		hps_fetch_turn(sk);
		if (unlikely(hps_sk(sk)->reading)) {
			err = hps_wait_clear(sk, &hps_sk(sk)->reading,
					     &call->timeo);
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
		if (atomic_read(&conn->rx_records)) {
			call->patience = 0;
			return 1;
		}
		call->patience = hps_record_peeks(call) ? 0 : call->timeo;
		if (avail && conn->rx_parted)
			return 1;
		if (avail && !over) {
			if (hps_record_as_it_comes(sk, call))
				return 1;
			if (hps_record_stuck(conn))
				continue;
		}
		if (over)
			return hps_recv_end(sk);
		if (!call->timeo)
			return -EAGAIN;
		if (signal_pending(current))
			return sock_intr_errno(call->timeo);
		err = hps_recv_wait(sk, conn, &call->timeo, avail);
		if (err)
			return err;
	}
}

/* Read one message, while hps_sock.reading keeps other readers away. */
static int hps_record_recv_one(struct sock *sk, struct hps_record_call *call)
{
	struct hps_conn *conn = call->conn;
	bool peek = hps_record_peeks(call);
	int err;

	call->f = &conn->rx_record;
	if (peek) {
		call->copy = conn->rx_record;
		call->f = &call->copy;
	}
	err = hps_record_read(sk, call);
	if (peek || hps_sk_conn(sk) != conn)
		return err;
	if (err == -EFAULT) {
		hps_record_skip(sk, call);
		return err;
	}
	conn->rx_parted = call->more &&
			  (call->copied || conn->rx_parted);
	if (!call->more)
		atomic_dec(&conn->rx_records);
	return err;
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
		WRITE_ONCE(hsk->reading, false);
		hps_wake(&hsk->reading);
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
	}
}

/**
 * hps_record_recvmsg - proto_ops.recvmsg of SOCK_SEQPACKET
 * @sock: the socket
 * @msg: where to
 * @len: bytes
 * @flags: MSG_DONTWAIT, MSG_PEEK, MSG_TRUNC (return the message's length), MSG_ERRQUEUE
 *
 * In msg_flags: MSG_TRUNC if bytes of the message were left out, MSG_EOR if it was sent
 * with that, MSG_MORE if this was a part of it.
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
	int ret;

	if (flags & MSG_ERRQUEUE)
		return hps_recv_errqueue(sk, msg, len);
	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	hps_recv_msg_init(&call.to, msg, len, flags & ~MSG_TRUNC);
	lock_sock(sk);
	call.timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	ret = sk->sk_state == TCP_LISTEN ? -ENOTCONN :
					   hps_record_recv(sk, &call);
	release_sock(sk);
	if (ret <= 0)
		return ret;
	hps_recv_stamp(sk, msg, call.to.reader.stamp);
	if (call.more)
		msg->msg_flags |= MSG_MORE;
	else if (call.eor)
		msg->msg_flags |= MSG_EOR;
	if (call.len > call.copied)
		msg->msg_flags |= MSG_TRUNC;
	return flags & MSG_TRUNC ? call.len : call.copied;
}

/**
 * hps_record_inq - FIONREAD: how long is the next message?
 * @sk: the socket, locked
 *
 * Context: process, may sleep.
 * Return: as many bytes as are left of it, 0 if it is not there completely.
 */
int hps_record_inq(struct sock *sk)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	struct hps_record_call call = {
		.to.reader.flags = MSG_PEEK,
		.to.reader.blind = true,
		.conn = conn,
	};

	if (!conn || hps_sk(sk)->reading || hps_sk(sk)->fetching ||
	    !atomic_read(&conn->rx_records))
		return 0;
	call.copy = conn->rx_record;
	call.f = &call.copy;
	hps_conn_get(conn);
	hps_record_read(sk, &call);
	hps_conn_put(conn);
	return call.len;
}
