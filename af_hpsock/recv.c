// SPDX-License-Identifier: GPL-2.0
/*
 * recvmsg(2): from the receive queue into the program's memory.
 *
 * Callers are serialised by the socket lock, and only they take bytes off the
 * queue, so what was found there stays while it is copied without
 * hps_conn.lock.
 */
#include <linux/errqueue.h>
#include <linux/uio.h>
#include <net/tcp_states.h>

#include "conn.h"
#include "sock.h"

/* The buffer behind @prev, the first one for NULL; NULL at the end. */
static struct hps_buf *hps_recv_next(struct hps_conn *conn,
				     struct hps_buf *prev)
{
	struct list_head *pos = prev ? &prev->list : &conn->rxq;
	struct hps_buf *buf = NULL;

	spin_lock_bh(&conn->lock);
	if (!list_is_last(pos, &conn->rxq))
		buf = list_entry(pos->next, struct hps_buf, list);
	spin_unlock_bh(&conn->lock);
	return buf;
}

static void hps_recv_consume(struct hps_conn *conn, struct hps_buf *buf,
			     u32 len)
{
	spin_lock_bh(&conn->lock);
	buf->start += len;
	WRITE_ONCE(conn->rx_avail, conn->rx_avail - len);
	if (buf->start == buf->end) {
		list_del_init(&buf->list);
		conn->ops->consumed(conn, buf);
	}
	spin_unlock_bh(&conn->lock);
}

/*
 * Copy what is there, up to @len bytes behind the first @skip; @skip is not 0
 * only for MSG_PEEK. Returns bytes, or -EFAULT if none could be copied.
 */
static ssize_t hps_recv_some(struct hps_conn *conn, struct msghdr *msg,
			     size_t len, size_t skip, int flags)
{
	struct hps_buf *buf = NULL;
	size_t total = 0;

	while (total < len && (buf = hps_recv_next(conn, buf))) {
		/* Small messages may be joined to the buffer meanwhile. */
		u32 n = smp_load_acquire(&buf->end) - buf->start;
		void *from = buf->data + buf->start;

		if (skip >= n) {
			skip -= n;
			continue;
		}
		from += skip;
		n = min_t(size_t, n - skip, len - total);
		skip = 0;
		if (!(flags & MSG_TRUNC)) {
			size_t done = copy_to_iter(from, n, &msg->msg_iter);

			if (done != n) {
				iov_iter_revert(&msg->msg_iter, done);
				return total ?: -EFAULT;
			}
		}
		total += n;
		if (flags & MSG_PEEK)
			continue;
		hps_recv_consume(conn, buf, n);
		buf = NULL;
	}
	return total;
}

/* Is there a reason not to wait for more? */
static bool hps_recv_over(const struct sock *sk)
{
	return READ_ONCE(sk->sk_err) ||
	       (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) ||
	       READ_ONCE(sk->sk_state) == TCP_CLOSE;
}

/* Nothing was read and nothing will come: the end, or an error. */
static int hps_recv_end(struct sock *sk)
{
	if (sock_flag(sk, SOCK_DONE))
		return 0;
	if (sk->sk_err)
		return sock_error(sk);
	if (sk->sk_shutdown & RCV_SHUTDOWN)
		return 0;
	/* Never connected. */
	return -ENOTCONN;
}

static int hps_recv_wait(struct sock *sk, struct hps_conn *conn, long *timeo,
			 u32 seen)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int rc;

	/* Meanwhile it may be disconnected, or connect() begin anew. */
	hps_conn_get(conn);
	add_wait_queue(sk_sleep(sk), &wait);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	rc = sk_wait_event(sk, timeo,
			   READ_ONCE(conn->rx_avail) != seen ||
			   rcu_access_pointer(hps_sk(sk)->conn) != conn ||
			   hps_recv_over(sk), &wait);
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	remove_wait_queue(sk_sleep(sk), &wait);
	hps_conn_put(conn);
	return rc < 0 ? rc : 0;
}

static int hps_recv_locked(struct sock *sk, struct msghdr *msg, size_t len,
			   int flags)
{
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	size_t target = sock_rcvlowat(sk, flags & MSG_WAITALL, len);
	bool peek = flags & MSG_PEEK, over;
	struct hps_conn *conn;
	size_t copied = 0;
	ssize_t n;
	u32 avail;
	int err;

	if (sk->sk_state == TCP_LISTEN)
		return -ENOTCONN;
	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	for (;;) {
		over = hps_recv_over(sk);
		/* The queue is looked at after that: nothing follows an end. */
		smp_rmb();
		conn = hps_sk_conn(sk);
		if (!conn)
			return copied ?: hps_recv_end(sk);

		avail = READ_ONCE(conn->rx_avail);
		n = hps_recv_some(conn, msg, len - copied, peek ? copied : 0,
				  flags);
		if (n < 0)
			return copied ?: n;
		copied += n;
		if (n && !peek)
			conn->ops->grow(conn, sk);
		/* A read of nothing waits for data too, and so does TCP's. */
		if (copied >= target || (!len && avail))
			return copied;

		if (over)
			return copied ?: hps_recv_end(sk);
		if (!timeo)
			return copied ?: -EAGAIN;
		if (signal_pending(current))
			return copied ?: sock_intr_errno(timeo);
		err = hps_recv_wait(sk, conn, &timeo, peek ? avail : 0);
		if (err)
			return copied ?: err;
	}
}

/**
 * hps_recvmsg - proto_ops.recvmsg
 * @sock: the socket
 * @msg: where to
 * @len: bytes
 * @flags: MSG_DONTWAIT, MSG_PEEK, MSG_WAITALL, MSG_TRUNC (discard),
 *	MSG_ERRQUEUE
 *
 * Context: process, may sleep. Return: bytes, 0 at the end of the stream,
 * -ENOTCONN, -EAGAIN, -ECONNRESET, -ETIMEDOUT, -ENETDOWN, -EINTR,
 * -ERESTARTSYS, -EFAULT, -EOPNOTSUPP for MSG_OOB.
 */
int hps_recvmsg(struct socket *sock, struct msghdr *msg, size_t len, int flags)
{
	struct sock *sk = sock->sk;
	int ret;

	if (flags & MSG_ERRQUEUE)
		return sock_recv_errqueue(sk, msg, len, SOL_IP, IP_RECVERR);
	lock_sock(sk);
	ret = hps_recv_locked(sk, msg, len, flags);
	release_sock(sk);
	return ret;
}
