// SPDX-License-Identifier: GPL-2.0
/*
 * sendmsg(2): from the program's memory into the send queue, by a copy; as pages
 * that are lent to the peer, if there are many; or, with MSG_ZEROCOPY and splice(2), as
 * references to pages.
 *
 * SOCK_SEQPACKET differs in that each piece has a head in front of it (record.c), that
 * a message is queued as a whole once there is room for any of it, unless it is larger
 * than SO_SNDBUF, and that one which is not finished is taken back.
 *
 * Callers are serialised by the socket lock. The last buffer of the queue is
 * filled without hps_conn.lock, behind its end, marked busy so that completions
 * leave it alone; the bytes count once end is moved under the lock.
 */
#include <linux/uio.h>
#include <net/tcp_states.h>

#include <linux/hpsock.h>

#include "conn.h"
#include "conn_life.h"
#include "conn_tx.h"
#include "lent.h"
#include "param.h"
#include "record.h"
#include "send.h"
#include "sock.h"
#include "stream.h"
#include "urgent.h"
#include "wait.h"
#include "zerocopy.h"

/* Bytes of a buffer for a write that is longer than a message. */
#define HPS_SEND_BUF	65536

/*
 * Is the rest of a buffer too small for a write of @left bytes? With all before it sent,
 * what goes there would be a message of its own; and so would the rest of this write,
 * and of each that comes after. Two buffers in a row hold more than one of them can.
 */
static bool hps_send_cuts(const struct hps_conn *conn, const struct hps_buf *buf, size_t left)
{
	return buf->end && buf->start == buf->end &&
	       buf->size - buf->end < min_t(size_t, left, conn->tx_msg_max);
}

/*
 * The last buffer of the queue if it has room for more than a part of @left bytes, or a
 * spare one; marked busy.
 */
static struct hps_buf *hps_send_tail(struct hps_conn *conn, size_t left)
{
	struct hps_buf *buf = NULL;

	spin_lock_bh(&conn->lock);
	if (conn->shut)
		goto unlock;
	if (!list_empty(&conn->txq))
		buf = list_last_entry(&conn->txq, struct hps_buf, list);
	/* Also what was delivered while a writer filled it, who then failed. */
	if (buf && buf->done == buf->end && !hps_buf_borrows(buf))
		hps_buf_empty(buf);
	if (buf && !hps_buf_borrows(buf) && hps_send_cuts(conn, buf, left)) {
		buf->full = true;
		list_move_tail(&buf->list, &conn->tx_flight);
		buf = NULL;
	}
	if (!buf || hps_conn_filled(conn, buf)) {
		buf = list_first_entry_or_null(&conn->tx_spare, struct hps_buf,
					       list);
		if (buf)
			list_move_tail(&buf->list, &conn->txq);
	}
	if (buf)
		buf->busy = true;
unlock:
	spin_unlock_bh(&conn->lock);
	return buf;
}

/* Does a small write have a buffer of its own, as nothing before it can share one? */
static bool hps_send_alone(struct hps_conn *conn)
{
	bool alone;

	if (!READ_ONCE(conn->tx_unsent))
		return true;
	spin_lock_bh(&conn->lock);
	alone = list_empty(&conn->txq) ||
		hps_buf_borrows(list_last_entry(&conn->txq, struct hps_buf, list));
	spin_unlock_bh(&conn->lock);
	return alone;
}

/*
 * A buffer with room, marked busy; NULL to wait, for memory or, on a connection
 * that is ending, for the error it ends with.
 */
static struct hps_buf *hps_send_buf(struct sock *sk, struct hps_conn *conn,
				    size_t left)
{
	struct hps_buf *buf = hps_send_tail(conn, left);
	u32 size = READ_ONCE(conn->tx_msg_max);
	u32 room = clamp_t(size_t, left, PAGE_SIZE, HPS_SEND_BUF);

	if (buf)
		return buf;
	/*
	 * No message spans two buffers. Short ones share one, which holds as many as fit
	 * and leaves no rest; longer ones, if they may be by the time that it is their turn.
	 */
	if (size < room)
		size *= room / size;
	/*
	 * A page is room enough for it and for the writes that may follow and combine with
	 * it. Those between pages of others might keep much more memory than SO_SNDBUF.
	 */
	else if (left < PAGE_SIZE && hps_send_alone(conn))
		size = PAGE_SIZE;
	if (!hps_sock_charge(sk, size, SK_MEM_SEND)) {
		/*
		 * Where there is little, a page is better than to wait; and where nothing is
		 * queued the end of which could be waited for, it is had in any case: as TCP.
		 */
		if (size > PAGE_SIZE && hps_sock_charge(sk, PAGE_SIZE, SK_MEM_SEND)) {
			size = PAGE_SIZE;
		} else if (!sk->sk_wmem_queued) {
			size = min_t(u32, size, PAGE_SIZE);
			sk_mem_charge(sk, size);
		} else {
			return NULL;
		}
	}
	buf = conn->ops->tx_buf(conn, size);
	/* The same where it is in pieces. */
	if (!buf && size > PAGE_SIZE)
		buf = conn->ops->tx_buf(conn, PAGE_SIZE);
	if (buf) {
		hps_sk(sk)->tx_charged += buf->size;
		size -= buf->size;
	}
	if (size)
		sk_mem_uncharge(sk, size);
	return buf;
}

/* One call of sendmsg(2). */
struct hps_send_call {
	struct msghdr *msg;
	struct ubuf_info *uarg;	/* MSG_ZEROCOPY: to be told; or NULL */
	bool gather;		/* pages may be sent from where they are */
	bool lend;		/* the peer may read them there */
	size_t lend_from;	/* lending failed, not to be tried before so many are sent */
	bool copied;		/* some bytes were copied, not sent from where they are */
	bool borrowed;		/* some were not */
	bool announced;		/* the peer is told that more follows */
	bool record;		/* a message of SOCK_SEQPACKET */
	bool whole;		/* all of it fits in SO_SNDBUF */
	bool begun;		/* some of it is queued */
	bool turn;		/* hps_conn.tx_turn is ours until the message is queued */
	u32 mode;		/* enum hpsock_zcopy, the same for all of it */
	struct hps_conn *waited; /* whose tx_turn is ours, referenced; or NULL */
	long timeo;
	size_t sent;		/* bytes so far */
};

/* Bytes in front of a piece. */
static u32 hps_send_head_len(const struct hps_send_call *call)
{
	return call->record ? sizeof(struct hps_record) : 0;
}

/* The head of a piece of @len bytes, which were just taken from the program. */
static void hps_send_fill_head(const struct hps_send_call *call,
			       struct hps_buf *buf, u32 len)
{
	bool last = msg_data_left(call->msg) == 0;
	u8 flags = 0;

	if (last)
		flags = HPS_RECORD_END;
	if (last && call->msg->msg_flags & MSG_EOR)
		flags |= HPS_RECORD_EOR;
	hps_record_fill(buf->data + buf->end, len, flags);
}

/* A buffer with room for the head of what follows as pages; false without memory. */
static bool hps_send_head(struct sock *sk, struct hps_conn *conn,
			  const struct hps_send_call *call)
{
	if (call->record)
		conn->tx_head = hps_send_buf(sk, conn, 0);
	return !call->record || conn->tx_head;
}

/* Let go of the buffer that hps_send_head() chose; a head that was queued in it stays. */
static void hps_send_head_done(struct hps_conn *conn)
{
	if (!conn->tx_head)
		return;
	spin_lock_bh(&conn->lock);
	hps_conn_tx_release(conn, conn->tx_head);
	conn->tx_head = NULL;
	spin_unlock_bh(&conn->lock);
}

/* Memory whose pages can be had. */
static bool hps_send_has_pages(const struct iov_iter *iter)
{
	return user_backed_iter(iter) || iov_iter_is_bvec(iter);
}

/* How many bytes could go in one piece? */
static size_t hps_send_piece(const struct iov_iter *iter)
{
	return iov_iter_is_bvec(iter) ? iov_iter_count(iter) :
					iov_iter_single_seg_count(iter);
}

/*
 * A write of so many bytes is not cut at the limit, as TCP's last segment is not: neither a
 * small one, nor one that fills a message. Each would make two.
 */
static size_t hps_send_uncut(const struct sock *sk, const struct hps_conn *conn)
{
	return max_t(size_t, PAGE_SIZE,
		     min_t(u32, READ_ONCE(conn->tx_msg_max), sk->sk_sndbuf / 8));
}

/* How many bytes may be queued? */
static size_t hps_send_room(const struct sock *sk, const struct hps_conn *conn)
{
	ssize_t room = sk->sk_sndbuf - sk->sk_wmem_queued;

	return max_t(ssize_t, room, hps_send_uncut(sk, conn));
}

/* Take up to @max pages of @len bytes; returns the bytes taken, or -EFAULT for none. */
static ssize_t hps_send_take(struct hps_gather *gather, struct iov_iter *iter,
			     size_t len, u32 max)
{
	struct page *pages[HPS_GATHER_MAX];
	size_t total = 0, off;
	ssize_t n, i;

	while (total < len && gather->nr < max) {
		n = iov_iter_get_pages2(iter, pages, len - total,
					max - gather->nr, &off);
		if (n <= 0)
			return total ?: n;
		total += n;
		for (i = 0; n; i++, gather->nr++, off = 0) {
			u32 part = min_t(size_t, n, PAGE_SIZE - off);

			gather->frag[gather->nr].page = pages[i];
			gather->frag[gather->nr].off = off;
			gather->frag[gather->nr].len = part;
			n -= part;
		}
	}
	return total;
}

/* A reference holds no page of a slab, nor one that is not counted: see sendpage_ok(). */
static bool hps_send_holdable(const struct hps_gather *gather)
{
	u32 i;

	for (i = 0; i < gather->nr; i++)
		if (!sendpage_ok(gather->frag[i].page))
			return false;
	return true;
}

/*
 * How many bytes are worth it to be sent from where they are? As much as a message
 * holds (those of a young connection are shorter), of a program's memory what is in
 * one piece.
 */
static size_t hps_send_worth(struct sock *sk, const struct hps_conn *conn,
			     const struct iov_iter *iter)
{
	size_t min_len = hps_tuned(&hps_sk(sk)->tuning, HPS_TUNE_GATHER_MIN);
	size_t fit = READ_ONCE(conn->tx_msg_max);
	size_t len = hps_send_piece(iter);

	if (fit < min_len)
		fit = (HPS_GATHER_MAX - 1) * PAGE_SIZE;
	/* A rest below gather_min would have to be copied: take it along. */
	if (len > fit && len - fit < min_len)
		fit = len;
	len = min3(len, hps_send_room(sk, conn), fit);
	return len < min_len ? 0 : len;
}

/*
 * Queue @len bytes of pages, charged as a copy would be; but the pages of MSG_ZEROCOPY count
 * for the program's RLIMIT_MEMLOCK. False if they are to be copied, or memory is short.
 */
static bool hps_send_gather(struct sock *sk, struct hps_conn *conn,
			    struct hps_gather *gather, u32 len)
{
	u32 mem = ksize(gather) + (gather->uarg ? 0 : len);

	if (!hps_send_holdable(gather) || !hps_sock_charge(sk, mem, SK_MEM_SEND))
		return false;
	gather->charged = mem;
	hps_sk(sk)->tx_charged += mem;
	if (conn->ops->tx_gather(conn, gather))
		return true;
	hps_sk(sk)->tx_charged -= mem;
	sk_mem_uncharge(sk, mem);
	return false;
}

/*
 * Queue pages instead of a copy. Returns the bytes taken, -EFAULT, or 0 if they are
 * to be copied after all.
 */
static ssize_t hps_send_pages(struct sock *sk, struct hps_conn *conn,
			      struct hps_send_call *call)
{
	u32 max = min_t(u32, conn->ops->gather_max(conn), HPS_GATHER_MAX);
	struct iov_iter *iter = &call->msg->msg_iter;
	size_t len = hps_send_worth(sk, conn, iter);
	struct hps_gather *gather;
	ssize_t taken;

	if (!max || !len)
		return 0;
	gather = kmalloc(struct_size(gather, frag, max),
			 GFP_KERNEL | __GFP_NOWARN);
	if (!gather)
		return 0;
	gather->nr = 0;
	gather->uarg = call->uarg;
	if (gather->uarg)
		net_zcopy_get(gather->uarg);
	taken = hps_send_take(gather, iter, len, max);
	if (taken > 0 && conn->tx_head)
		hps_send_fill_head(call, conn->tx_head, taken);
	if (taken > 0 && hps_send_gather(sk, conn, gather, taken))
		return taken;
	hps_gather_put(gather);
	if (taken < 0)
		return taken;
	iov_iter_revert(iter, taken);
	return 0;
}

/* Will what a call queues be held back? */
static bool hps_send_corks(struct sock *sk, const struct hps_send_call *call)
{
	/* MSG_MORE is about these bytes, not about those before, and only about a stream's. */
	return hps_sk(sk)->cork || (call->msg->msg_flags & MSG_MORE && !call->record);
}

/*
 * A call begins to queue bytes, @len of them altogether, and tells the peer which are not the
 * last. One that may not block queues as many as there is room for: what was said cannot be
 * taken back once it is under way. The connection is locked.
 */
static void hps_send_announce(struct sock *sk, struct hps_conn *conn,
			      struct hps_send_call *call, size_t len)
{
	if (call->sent || call->record)
		return;
	if (!call->timeo)
		len = min(len, hps_send_room(sk, conn));
	call->announced = true;
	conn->tx_call = conn->tx_bytes + conn->tx_unsent;
	conn->tx_call_len = hps_send_corks(sk, call) ? 0 : len;
}

/* @len bytes more are in the queue; the connection is locked. */
static void hps_send_queued(struct sock *sk, struct hps_conn *conn,
			    const struct hps_send_call *call, u32 len)
{
	struct msghdr *msg = call->msg;

	sk_wmem_queued_add(sk, len);
	if (hps_send_corks(sk, call))
		conn->tx_corked = min(conn->tx_corked + len, conn->tx_unsent);
	else
		hps_stream_uncork(conn);
	if (msg->msg_flags & MSG_OOB && !msg_data_left(msg))
		hps_urgent_mark(conn);
	hps_stream_more(conn, len);
}

/* A call ends without having queued all that it was to. */
static void hps_send_short(struct hps_conn *conn, const struct hps_send_call *call)
{
	u32 end;

	if (!conn || !call->announced)
		return;
	spin_lock_bh(&conn->lock);
	end = conn->tx_bytes + conn->tx_unsent;
	conn->tx_call_len = min(conn->tx_call_len, end - conn->tx_call);
	spin_unlock_bh(&conn->lock);
}

/* Copy once; returns the bytes taken, -ENOMEM to wait, or -EFAULT. */
static ssize_t hps_send_copy(struct sock *sk, struct hps_conn *conn,
			     struct hps_send_call *call)
{
	struct msghdr *msg = call->msg;
	u32 head = hps_send_head_len(call);
	size_t len = min(msg_data_left(msg), hps_send_room(sk, conn));
	struct hps_buf *buf;
	int err;

	buf = hps_send_buf(sk, conn, len + head);
	if (!buf)
		return -ENOMEM;
	len = min_t(size_t, len, buf->size - buf->end - head);
	err = hps_buf_from_iter(buf->data + buf->end + head, len,
				&msg->msg_iter);
	if (head && !err)
		hps_send_fill_head(call, buf, len);

	spin_lock_bh(&conn->lock);
	if (!err)
		buf->end += head + len;
	hps_conn_tx_release(conn, buf);
	if (!err) {
		hps_send_announce(sk, conn, call, head + len + msg_data_left(msg));
		hps_stream_queued(conn, head + len);
		hps_send_queued(sk, conn, call, head + len);
	}
	spin_unlock_bh(&conn->lock);
	call->copied = true;
	return err ?: len;
}

/* Until hps_wait_turn_over() no other call queues anything, and no FIN is sent. */
static void hps_send_take_turn(struct hps_conn *conn,
			       struct hps_send_call *call)
{
	WRITE_ONCE(conn->tx_turn, true);
	hps_conn_get(conn);
	call->waited = conn;
}

/*
 * Queue what is lent. Whose RLIMIT_MEMLOCK pages do not count for is charged them, as
 * hps_send_gather() does. False if that is not to be, and @lent is the caller's still.
 */
static bool hps_send_lend(struct sock *sk, struct hps_conn *conn,
			  struct hps_send_call *call, struct hps_lent *lent)
{
	u32 mem = call->gather && !call->uarg ? lent->mem.len + HPS_LENT_OVERHEAD : 0;

	if (mem && !hps_sock_charge(sk, mem, SK_MEM_SEND))
		return false;
	lent->charged = mem;
	hps_sk(sk)->tx_charged += mem;
	/* This may free it. */
	if (conn->ops->tx_lend(conn, lent))
		return true;
	hps_sk(sk)->tx_charged -= mem;
	sk_mem_uncharge(sk, mem);
	return false;
}

/*
 * Lend bytes to the peer, if there are enough of them to be worth it. SO_SNDBUF grows
 * with what is sent, as TCP's does. Returns how many are lent, 0 to send them otherwise.
 */
static ssize_t hps_send_lent(struct sock *sk, struct hps_conn *conn,
			     struct hps_send_call *call)
{
	struct iov_iter *iter = &call->msg->msg_iter;
	struct hps_lent *lent;
	u32 len, refused;
	bool waited;

	/*
	 * With zcopy=wait only a call that may block lends anything, and on one connection
	 * alone: hps_send_waited() waits for no other.
	 */
	if (call->mode == HPSOCK_ZCOPY_WAIT && !call->gather &&
	    (!call->timeo || (call->waited && call->waited != conn)))
		return 0;
	lent = hps_lent_get(sk, conn, iter,
			    min(hps_send_room(sk, conn), hps_send_piece(iter)),
			    call->uarg, call->gather, call->mode, &refused);
	if (!lent) {
		call->lend_from = call->sent + refused;
		return 0;
	}
	len = lent->mem.len;
	waited = lent->waited;
	if (conn->tx_head)
		hps_send_fill_head(call, conn->tx_head, len);
	if (hps_send_lend(sk, conn, call, lent)) {
		if (waited && !call->waited)
			hps_send_take_turn(conn, call);
		hps_sock_grow_sndbuf(sk);
		return len;
	}
	iov_iter_revert(iter, len);
	hps_lent_drop(lent);
	call->lend_from = call->sent + len;
	return 0;
}

/*
 * Queue some of the bytes: lent to the peer, or as references to pages, or as a copy,
 * the first of these that can be had. Returns how many, -ENOMEM to wait, or -EFAULT.
 */
static ssize_t hps_send_some(struct sock *sk, struct hps_conn *conn,
			     struct hps_send_call *call)
{
	bool lend = call->lend && call->sent >= call->lend_from &&
		    msg_data_left(call->msg) >= HPS_LENT_MIN;
	ssize_t n = 0;

	if ((lend || call->gather) && !hps_send_head(sk, conn, call))
		return -ENOMEM;
	/* A completion may have it sent as soon as it is queued. */
	if ((lend || call->gather) && !call->sent) {
		spin_lock_bh(&conn->lock);
		hps_send_announce(sk, conn, call, msg_data_left(call->msg));
		spin_unlock_bh(&conn->lock);
	}
	if (lend)
		n = hps_send_lent(sk, conn, call);
	if (!n && call->gather)
		n = hps_send_pages(sk, conn, call);
	hps_send_head_done(conn);
	if (!n)
		return hps_send_copy(sk, conn, call);
	if (n < 0)
		return n;
	call->borrowed = true;
	spin_lock_bh(&conn->lock);
	hps_send_queued(sk, conn, call, n + hps_send_head_len(call));
	spin_unlock_bh(&conn->lock);
	return n;
}

/*
 * A send with MSG_OOB took fewer bytes than it had: the last of these is the urgent one. As
 * with TCP it is another's if one was queued behind it while this send waited, unless that
 * is lent.
 */
static void hps_send_cut(struct sock *sk, const struct msghdr *msg)
{
	struct hps_conn *conn = hps_sk_conn(sk);

	/* Who has the turn may take back the last bytes of the queue. */
	if (!(msg->msg_flags & MSG_OOB) || !conn || conn->tx_turn)
		return;
	spin_lock_bh(&conn->lock);
	hps_urgent_mark(conn);
	hps_stream_push(conn);
	spin_unlock_bh(&conn->lock);
}

/* @full: the socket's limit is reached; otherwise pages are missing. */
static int hps_send_wait(struct sock *sk, struct hps_conn *conn, bool full,
			 long *timeo)
{
	/* This call sleeps, so it adds nothing to a message that TCP_CORK holds back. */
	spin_lock_bh(&conn->lock);
	hps_stream_flush(conn);
	conn->ops->ask(conn);
	spin_unlock_bh(&conn->lock);

	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	/* What completed before the bit was set would wake nobody. */
	smp_mb__after_atomic();
	hps_sock_reap(sk);
	if (full && sk_stream_memory_free(sk))
		return 0;
	return sk_stream_wait_memory(sk, timeo);
}

static bool hps_send_may(const struct sock *sk)
{
	/* Pairs with hps_sock_set_state(): why it may not was there before. */
	return (1 << smp_load_acquire(&sk->sk_state)) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT);
}

/* A connection may have come to its end meanwhile, and a new one be made. */
static struct hps_conn *hps_send_conn(struct sock *sk)
{
	return hps_send_may(sk) ? hps_sk_conn(sk) : NULL;
}

static void hps_send_end_turn(struct sock *sk, struct hps_send_call *call)
{
	struct hps_conn *conn = call->waited;

	if (!call->turn)
		return;
	call->waited = NULL;
	hps_wait_turn_over(sk, conn);
	hps_conn_put(conn);
}

/*
 * Room for the head that takes back a message, without which the peer takes the next one for
 * its rest. So no limit is in the way of that little; the next charge makes up for it.
 */
static struct hps_buf *hps_send_last_head(struct sock *sk, struct hps_conn *conn)
{
	struct hps_buf *buf = hps_send_buf(sk, conn, sizeof(struct hps_record));

	if (buf)
		return buf;
	buf = conn->ops->tx_buf(conn, conn->tx_least);
	if (!buf)
		return NULL;
	sk_mem_charge(sk, buf->size);
	hps_sk(sk)->tx_charged += buf->size;
	return buf;
}

/* The message that was begun will not be finished. */
static void hps_send_abort(struct sock *sk, struct hps_send_call *call)
{
	struct hps_conn *conn = hps_send_conn(sk);
	struct hps_buf *buf;

	/* After shutdown() FIN waits until it is not our turn any more. */
	if (call->turn && (1 << sk->sk_state) & (TCPF_FIN_WAIT1 | TCPF_CLOSING | TCPF_LAST_ACK))
		conn = hps_sk_conn(sk);
	/* On a connection that was made meanwhile the peer has none of the message. */
	if (!call->begun || !conn || (call->turn && call->waited != conn))
		return;
	buf = hps_send_last_head(sk, conn);
	spin_lock_bh(&conn->lock);
	if (buf) {
		hps_record_fill(buf->data + buf->end, 0, HPS_RECORD_ABORT);
		buf->end += sizeof(struct hps_record);
		hps_conn_tx_release(conn, buf);
		hps_stream_queued(conn, sizeof(struct hps_record));
		hps_send_queued(sk, conn, call, sizeof(struct hps_record));
	} else {
		/*
		 * There is no memory to tell the peer, which would take the next message
		 * for the rest of this one.
		 */
		hps_conn_shut(conn, ENOBUFS);
	}
	spin_unlock_bh(&conn->lock);
}

/* Must the call wait, at its beginning or where a buffer has ended? */
static bool hps_send_full(const struct sock *sk, const struct hps_conn *conn,
			  const struct hps_send_call *call)
{
	if (call->begun && (call->whole || call->sent + msg_data_left(call->msg) <=
					   hps_send_uncut(sk, conn)))
		return false;
	/* As sk_stream_memory_free(), which does not know the connection. */
	return sk->sk_wmem_queued >= sk->sk_sndbuf ||
	       READ_ONCE(conn->tx_unsent) >= hps_sk_notsent_lowat(sk);
}

/* May nothing be sent any more? Completions write both, under hps_conn.lock. */
static bool hps_send_over(const struct sock *sk)
{
	return READ_ONCE(sk->sk_err) || (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN);
}

/* Control messages: what TCP takes, but for what setsockopt() refuses here. */
static int hps_send_control(struct sock *sk, struct msghdr *msg)
{
	struct sockcm_cookie sockc = {};

	if (likely(!msg->msg_controllen))
		return 0;
	if (sock_cmsg_send(sk, msg, &sockc))
		return -EINVAL;
	return sockc.mark || sockc.tsflags ? -EOPNOTSUPP : 0;
}

/*
 * Wait until there is a connection. It may be made while this looks, as who makes it does
 * not have the socket's lock: sk_stream_wait_connect() takes for granted that a state which
 * is not one of the handshake was there before, and that nothing can be sent in it.
 */
static int hps_send_connected(struct sock *sk, long *timeo)
{
	int disconnects = sk->sk_disconnects, err = 0;

	while (!err && !hps_send_may(sk)) {
		err = sk_stream_wait_connect(sk, timeo);
		if (err == -EPIPE && disconnects == sk->sk_disconnects && hps_send_may(sk))
			err = 0;
	}
	return err;
}

static int hps_send_locked(struct sock *sk, struct hps_send_call *call)
{
	struct msghdr *msg = call->msg;
	bool full, wait = call->timeo;
	struct hps_conn *conn;
	ssize_t n;
	int err;

	err = -EOPNOTSUPP;
	if (msg->msg_flags & MSG_FASTOPEN)
		goto out;
	err = hps_send_connected(sk, &call->timeo);
	if (err)
		goto out;
	err = hps_send_control(sk, msg);
	if (err)
		goto out;
	sk_clear_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	err = -EPIPE;
	if (hps_send_over(sk))
		goto out;
	err = -EMSGSIZE;
	if (call->record && !call->whole && !wait)
		goto out;

	while (msg_data_left(msg) || (call->record && !call->begun)) {
		conn = hps_send_conn(sk);
		err = -EPIPE;
		/* The rest of a message is for the peer that has its beginning. */
		if (!conn || (call->turn && conn != call->waited))
			goto out;
		if (unlikely(conn != call->waited && conn->tx_turn)) {
			err = hps_wait_turn(sk, conn, &call->timeo);
			if (err)
				goto out;
			err = -EPIPE;
			if (hps_send_over(sk))
				goto out;
			continue;
		}
		hps_sock_reap(sk);
		n = -ENOMEM;
		full = hps_send_full(sk, conn, call);
		if (!full)
			n = hps_send_some(sk, conn, call);
		if (n >= 0) {
			call->begun = true;
			call->sent += n;
			continue;
		}
		err = n;
		if (err != -ENOMEM)
			goto out;
		/* A call that may not block is told of an end before the teardown is done. */
		if (!call->timeo && READ_ONCE(conn->shut)) {
			if (!call->sent || call->record)
				err = hps_conn_why(conn);
			goto out;
		}
		/* The rest of a message follows its beginning: no other call comes between. */
		if (call->record && call->begun && !call->turn) {
			hps_send_take_turn(conn, call);
			call->turn = true;
		}
		/* What is held back goes now, also where nothing follows it. */
		if (!call->timeo || signal_pending(current))
			hps_send_short(conn, call);
		err = hps_send_wait(sk, conn, full, &call->timeo);
		if (err)
			goto out;
		err = -EPIPE;
		if (hps_send_over(sk))
			goto out;
	}
	return call->sent;
out:
	if (call->record) {
		hps_send_abort(sk, call);
		/* Who tries again with the same iterator, as io_uring, sends all of it. */
		iov_iter_revert(&msg->msg_iter, call->sent);
	}
	/*
	 * Edge triggered pollers learn of the room that comes. Was it memory that is missing and
	 * all was delivered, nothing else will tell them, also where some bytes were taken.
	 */
	conn = hps_sk_conn(sk);
	hps_send_short(conn, call);
	if (err == -EAGAIN && !sk->sk_wmem_queued && !(conn && conn->tx_turn))
		sk->sk_write_space(sk);
	if (call->record || !call->sent)
		return sk_stream_error(sk, msg->msg_flags, err);
	hps_send_cut(sk, msg);
	return call->sent;
}

/*
 * The last @back bytes are queued again, as a copy, before FIN and other calls may follow. After
 * shutdown() there is no other time for that, so then only memory is a limit, which they have
 * just given back.
 */
static void hps_send_again(struct sock *sk, struct hps_conn *conn,
			   struct hps_send_call *call, u32 back)
{
	struct iov_iter *iter = &call->msg->msg_iter;
	size_t rest = iov_iter_count(iter) - back, left;
	ssize_t n;

	for (left = back; left; left -= n) {
		hps_sock_reap(sk);
		iov_iter_truncate(iter, left);
		if (hps_send_may(sk) && hps_send_full(sk, conn, call))
			break;
		n = hps_send_copy(sk, conn, call);
		if (n < 0)
			break;
		call->sent += n;
	}
	iov_iter_reexpand(iter, rest + left);
}

/* Wait for what was lent to be read, and send what was not as any other bytes. */
static int hps_send_waited(struct sock *sk, struct hps_send_call *call)
{
	struct hps_conn *conn = call->waited;
	u32 back = hps_wait_read(sk, conn, &call->timeo);
	bool parted = hps_sk_conn(sk) != conn;

	iov_iter_revert(&call->msg->msg_iter, back);
	call->sent -= back;
	call->lend = false;
	if (!parted)
		hps_send_again(sk, conn, call, back);
	call->waited = NULL;
	hps_wait_turn_over(sk, conn);
	hps_conn_put(conn);
	if (!back || !msg_data_left(call->msg))
		return call->sent;
	if (parted)
		return call->sent ?: -EPIPE;
	return hps_send_locked(sk, call);
}

/**
 * hps_send_flush - what is held back goes, TCP_CORK or not
 * @sk: the socket, locked
 *
 * Context: process.
 */
void hps_send_flush(struct sock *sk)
{
	struct hps_conn *conn = hps_sk_conn(sk);

	if (!conn)
		return;
	spin_lock_bh(&conn->lock);
	hps_stream_flush(conn);
	spin_unlock_bh(&conn->lock);
}

/*
 * Choose how a call sends its bytes, and who is told when its pages are done with.
 * Returns 0, -EOPNOTSUPP or -ENOBUFS.
 */
static int hps_send_begin(struct sock *sk, struct hps_send_call *call,
			  size_t len)
{
	struct msghdr *msg = call->msg;
	bool borrow;

	if (call->record) {
		call->whole = len <= READ_ONCE(sk->sk_sndbuf);
		if (msg->msg_flags & MSG_OOB)
			return -EOPNOTSUPP;
	}
	if (!len)
		return 0;
	call->mode = hps_tuned(&hps_sk(sk)->tuning, HPS_TUNE_ZCOPY);
	/* Bytes that are taken back would leave the head of their piece in the stream. */
	if (call->record && call->mode == HPSOCK_ZCOPY_WAIT)
		call->mode = HPSOCK_ZCOPY_OFF;
	/*
	 * DATA can mark an urgent byte, SRCAVAIL cannot. And only a copy is queued and marked
	 * in one hold of the lock: a completion in between would have it sent unmarked.
	 */
	borrow = !(msg->msg_flags & MSG_OOB) && hps_send_has_pages(&msg->msg_iter);
	call->lend = borrow;
	if (msg->msg_flags & MSG_SPLICE_PAGES) {
		call->gather = borrow && iov_iter_is_bvec(&msg->msg_iter);
		return 0;
	}
	if (!(msg->msg_flags & MSG_ZEROCOPY))
		return 0;
	call->uarg = msg->msg_ubuf;
	if (!call->uarg && !sock_flag(sk, SOCK_ZEROCOPY))
		return 0;
	if (!call->uarg)
		call->uarg = msg_zerocopy_realloc(sk, len, NULL);
	if (!call->uarg)
		return -ENOBUFS;
	call->gather = borrow;
	return 0;
}

/*
 * Drop the call's reference to what tells the program of completion. If io_uring made that it
 * is io_uring's, which is told what is known now; if we did, an error takes it back, and its
 * number. But not that of a message that fails after its beginning was queued: the peer is
 * still to have that.
 */
static void hps_send_finish(struct sock *sk, struct hps_send_call *call,
			    int ret)
{
	struct hps_conn *conn = hps_sk_conn(sk);

	if (!call->uarg)
		return;
	if (call->msg->msg_ubuf) {
		hps_zerocopy_report(call->uarg, call->borrowed, call->copied);
		return;
	}
	if (ret <= 0 && !call->sent) {
		net_zcopy_put_abort(call->uarg, true);
		return;
	}
	if (call->copied) {
		uarg_to_msgzc(call->uarg)->zerocopy = 0;
		if (conn)
			hps_zerocopy_copied(conn, call->uarg);
	}
	net_zcopy_put(call->uarg);
}

/**
 * hps_sendmsg - proto_ops.sendmsg
 * @sock: the socket
 * @msg: what to send; the address is ignored, as on TCP
 * @len: bytes
 *
 * Pages that are spliced or, with MSG_ZEROCOPY, the program's own are sent from
 * where they are, if there are enough of them in one piece (gather_min).
 *
 * Context: process, may sleep.
 * Return: bytes taken, or -EPIPE (and SIGPIPE), -ECONNRESET, -ETIMEDOUT, -ENETDOWN,
 * -EPROTO, -EAGAIN, -EINTR, -ERESTARTSYS, -EFAULT, -EOPNOTSUPP for MSG_FASTOPEN, and of
 * SOCK_SEQPACKET for MSG_OOB, -EMSGSIZE for a message that is larger than SO_SNDBUF
 * and may not wait, -ENOBUFS for MSG_ZEROCOPY when too many completions were not
 * read or RLIMIT_MEMLOCK is reached.
 */
int hps_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct hps_send_call call = { .msg = msg };
	int ret;

	lock_sock(sock->sk);
	call.record = sock->sk->sk_type == SOCK_SEQPACKET;
	call.timeo = sock_sndtimeo(sock->sk, msg->msg_flags & MSG_DONTWAIT);
	ret = hps_send_begin(sock->sk, &call, len);
	if (!ret) {
		ret = hps_send_locked(sock->sk, &call);
		if (call.record)
			hps_send_end_turn(sock->sk, &call);
		if (unlikely(call.waited))
			ret = hps_send_waited(sock->sk, &call);
		hps_send_finish(sock->sk, &call, ret);
	}
	release_sock(sock->sk);
	return ret;
}
