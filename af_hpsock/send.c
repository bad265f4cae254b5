// SPDX-License-Identifier: GPL-2.0
/*
 * sendmsg(2): from the program's memory into the send queue.
 *
 * Callers are serialised by the socket lock. The last buffer of the queue is
 * filled without hps_conn.lock, behind its end, marked busy so that completions
 * leave it alone; the bytes count once end is moved under the lock.
 */
#include <linux/uio.h>
#include <net/tcp_states.h>

#include "conn.h"
#include "param.h"
#include "sock.h"

/* The last buffer of the queue if it has room, marked busy. */
static struct hps_buf *hps_send_tail(struct hps_conn *conn)
{
	struct hps_buf *buf = NULL;

	spin_lock_bh(&conn->lock);
	if (!conn->shut && !list_empty(&conn->txq)) {
		buf = list_last_entry(&conn->txq, struct hps_buf, list);
		if (buf->end < buf->size)
			buf->busy = true;
		else
			buf = NULL;
	}
	spin_unlock_bh(&conn->lock);
	return buf;
}

/*
 * A buffer with room, marked busy; NULL to wait, for memory or, on a connection
 * that is ending, for the error it ends with.
 */
static struct hps_buf *hps_send_buf(struct sock *sk, struct hps_conn *conn,
				    size_t left)
{
	struct hps_buf *buf = hps_send_tail(conn);
	u32 size = READ_ONCE(conn->tx_msg_max);

	if (buf)
		return buf;
	/* A message does not span buffers: a page has room for some. */
	if (size < PAGE_SIZE)
		size *= PAGE_SIZE / size;
	/* So what may combine gets room to. */
	else if (left < PAGE_SIZE && !READ_ONCE(conn->tx_unsent))
		size = PAGE_SIZE;
	if (!hps_sock_charge(sk, size, SK_MEM_SEND))
		return NULL;
	buf = conn->ops->tx_buf(conn, size);
	/* Where memory is in pieces, a page is better than to wait. */
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

/* Copy once; returns the bytes taken, -ENOMEM to wait, or -EFAULT. */
static ssize_t hps_send_some(struct sock *sk, struct hps_conn *conn,
			     struct msghdr *msg, bool more)
{
	size_t room = sk->sk_sndbuf - sk->sk_wmem_queued, len;
	struct hps_buf *buf;
	bool ok;

	buf = hps_send_buf(sk, conn, msg_data_left(msg));
	if (!buf)
		return -ENOMEM;
	/* As TCP's last segment, a small write is not cut at the limit. */
	room = max(room, PAGE_SIZE);
	len = min3(msg_data_left(msg), room, (size_t)(buf->size - buf->end));
	ok = copy_from_iter_full(buf->data + buf->end, len, &msg->msg_iter);

	spin_lock_bh(&conn->lock);
	buf->busy = false;
	if (ok) {
		buf->end += len;
		conn->tx_unsent += len;
		sk_wmem_queued_add(sk, len);
		conn->corked = hps_sk(sk)->cork || more;
		hps_stream_push(conn);
	}
	spin_unlock_bh(&conn->lock);
	return ok ? len : -EFAULT;
}

static int hps_send_wait(struct sock *sk, long *timeo)
{
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	/* What completed before the bit was set would wake nobody. */
	smp_mb__after_atomic();
	hps_sock_reap(sk);
	return sk_stream_wait_memory(sk, timeo);
}

static int hps_send_locked(struct sock *sk, struct msghdr *msg)
{
	long timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	bool more = msg->msg_flags & MSG_MORE;
	struct hps_conn *conn;
	int copied = 0, err;
	ssize_t n;

	err = -EOPNOTSUPP;
	if (msg->msg_flags & (MSG_OOB | MSG_FASTOPEN))
		goto out;
	if ((1 << sk->sk_state) & ~(TCPF_ESTABLISHED | TCPF_CLOSE_WAIT)) {
		err = sk_stream_wait_connect(sk, &timeo);
		if (err)
			goto out;
	}
	sk_clear_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	err = -EPIPE;
	if (sk->sk_err || (sk->sk_shutdown & SEND_SHUTDOWN))
		goto out;

	while (msg_data_left(msg)) {
		conn = hps_sk_conn(sk);
		err = -EPIPE;
		if (!conn)
			goto out;
		hps_sock_reap(sk);
		n = -ENOMEM;
		if (sk_stream_memory_free(sk))
			n = hps_send_some(sk, conn, msg, more);
		if (n > 0) {
			copied += n;
			continue;
		}
		err = n;
		if (err != -ENOMEM)
			goto out;
		/* Who does not wait hears of an end that is on its way. */
		if (!timeo && READ_ONCE(conn->shut)) {
			err = hps_conn_why(conn);
			goto out;
		}
		err = hps_send_wait(sk, &timeo);
		if (err)
			goto out;
		err = -EPIPE;
		if (sk->sk_err || (sk->sk_shutdown & SEND_SHUTDOWN))
			goto out;
	}
	return copied;
out:
	if (copied)
		return copied;
	err = sk_stream_error(sk, msg->msg_flags, err);
	/* Edge triggered pollers learn of the room that comes. */
	if (err == -EAGAIN)
		sk->sk_write_space(sk);
	return err;
}

/**
 * hps_sendmsg - proto_ops.sendmsg
 * @sock: the socket
 * @msg: what to send; the address is ignored, as on TCP
 * @len: bytes
 *
 * Context: process, may sleep. Return: bytes taken, or -EPIPE (and SIGPIPE),
 * -ECONNRESET, -ETIMEDOUT, -ENETDOWN, -EAGAIN, -EINTR, -ERESTARTSYS, -EFAULT,
 * -EOPNOTSUPP for MSG_OOB and MSG_FASTOPEN.
 */
int hps_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	int ret;

	lock_sock(sock->sk);
	ret = hps_send_locked(sock->sk, msg);
	release_sock(sock->sk);
	return ret;
}
