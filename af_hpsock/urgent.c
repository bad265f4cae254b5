// SPDX-License-Identifier: GPL-2.0
/*
 * Urgent data (MSG_OOB): one byte of the stream at a time is marked, as TCP's
 * urgent pointer does it; tcp_check_urg() and tcp_recv_urg() say what that means.
 *
 * The byte stays in its place. Its DATA marks it; if that waits for a credit,
 * URGENT tells that it comes. The receiver notes where it is and a copy of it, and
 * readers stop there: unless SO_OOBINLINE, they leave it out when they go on. It is
 * never one of the bytes that are lent: the peer could not mark it, nor leave it out.
 *
 * A byte that a newer one supersedes becomes an ordinary one, unless it is the
 * next to be read: then nobody reads it any more. Only readers take bytes off
 * the queue, so it is noted in rx_drop for the next of them.
 */
#include <linux/uio.h>
#include <net/sock.h>
#include <net/tcp_states.h>

#include "conn.h"
#include "sock.h"
#include "urgent.h"

/* How many of the last bytes to send are lent? No DATA has them, which alone can mark one. */
static u32 hps_urgent_lent(const struct hps_conn *conn)
{
	const struct hps_buf *buf;
	u32 len = 0;

	list_for_each_entry_reverse(buf, &conn->txq, list) {
		if (buf->start == buf->end)
			continue;
		if (!buf->lent)
			break;
		len += buf->end - buf->start;
	}
	return len;
}

/**
 * hps_urgent_mark - the last byte to send is urgent, of those that are not lent
 * @conn: locked
 *
 * An earlier urgent byte that was not sent yet becomes an ordinary one.
 */
void hps_urgent_mark(struct hps_conn *conn)
{
	u32 unsent = conn->tx_unsent - hps_urgent_lent(conn);

	lockdep_assert_held(&conn->lock);
	if (!unsent)
		return;
	conn->tx_urgent = true;
	conn->tx_urgent_told = false;
	conn->tx_urgent_at = conn->tx_bytes + unsent - 1;
}

/**
 * hps_urgent_offset - where in the next message is the urgent byte?
 * @conn: locked
 * @len: bytes of the message
 *
 * Return: an offset, or -1 if it is not in it.
 */
int hps_urgent_offset(const struct hps_conn *conn, u32 len)
{
	lockdep_assert_held(&conn->lock);
	if (!conn->tx_urgent || conn->tx_urgent_at - conn->tx_bytes >= len)
		return -1;
	return conn->tx_urgent_at - conn->tx_bytes;
}

/**
 * hps_urgent_tell - what is queued cannot be sent: tell that something urgent is
 * @conn: locked
 */
void hps_urgent_tell(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->tx_urgent && !conn->tx_urgent_told &&
	    !conn->ops->urgent(conn, conn->tx_urgent_at - conn->tx_bytes))
		conn->tx_urgent_told = true;
}

static bool hps_urgent_inline(const struct hps_conn *conn)
{
	const struct sock *sk = conn->sk ?: conn->listener;

	return sk && sock_flag(sk, SOCK_URGINLINE);
}

/* SIGURG for the owner. The file stays as long as sk_socket is set. */
static void hps_urgent_signal(struct sock *sk)
{
	read_lock(&sk->sk_callback_lock);
	sk_send_sigurg(sk);
	read_unlock(&sk->sk_callback_lock);
}

/**
 * hps_urgent_expect - an urgent byte comes
 * @conn: locked
 * @at: its place in the stream, not received yet
 */
void hps_urgent_expect(struct hps_conn *conn, u64 at)
{
	bool drop;

	lockdep_assert_held(&conn->lock);
	if (conn->rx_urgent && at <= conn->rx_urgent_at)
		return;
	if (conn->sk)
		hps_urgent_signal(conn->sk);
	drop = hps_urgent_next(conn) && atomic_read(&conn->rx_avail) &&
	       !hps_urgent_inline(conn);
	WRITE_ONCE(conn->rx_urgent_at, at);
	/* Pairs with hps_urgent_next(). */
	smp_wmb();
	if (drop) {
		WRITE_ONCE(conn->rx_drop, conn->rx_drop + 1);
		atomic_dec(&conn->rx_avail);
	}
	WRITE_ONCE(conn->rx_urgent, HPS_URGENT_AHEAD);
}

/**
 * hps_urgent_among - is a byte that was announced as urgent among those that come next?
 * @conn: locked
 * @len: bytes of the stream
 *
 * Return: whether it is.
 */
bool hps_urgent_among(const struct hps_conn *conn, u32 len)
{
	lockdep_assert_held(&conn->lock);
	return conn->rx_urgent && conn->rx_urgent_at - conn->rx_bytes < len;
}

/**
 * hps_urgent_arrive - is the urgent byte among what came in?
 * @conn: locked
 * @data: what came in
 * @at: its place in the stream
 * @len: bytes
 *
 * Return: whether it is.
 */
bool hps_urgent_arrive(struct hps_conn *conn, const u8 *data, u64 at, u32 len)
{
	lockdep_assert_held(&conn->lock);
	if (conn->rx_urgent != HPS_URGENT_AHEAD ||
	    conn->rx_urgent_at - at >= len)
		return false;
	conn->rx_urgent_byte = data[conn->rx_urgent_at - at];
	WRITE_ONCE(conn->rx_urgent, HPS_URGENT_HERE);
	return true;
}

/**
 * hps_urgent_read - a program has read on
 * @conn: locked
 *
 * Beyond the urgent byte there is none.
 */
void hps_urgent_read(struct hps_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->rx_urgent && hps_conn_read_pos(conn) > conn->rx_urgent_at)
		WRITE_ONCE(conn->rx_urgent, HPS_URGENT_NONE);
}

/**
 * hps_urgent_bound - how far can one read without meeting the urgent byte?
 * @conn: not locked
 * @off: from the first unread byte to where reading begins
 * @len: bytes that one would like to read
 *
 * Context: any.
 * Return: @len or less, 0 at the urgent byte.
 */
u32 hps_urgent_bound(struct hps_conn *conn, u32 off, u32 len)
{
	u64 at;

	spin_lock_bh(&conn->lock);
	at = hps_conn_read_pos(conn) + off;
	if (conn->rx_urgent && conn->rx_urgent_at >= at)
		len = min_t(u64, len, conn->rx_urgent_at - at);
	spin_unlock_bh(&conn->lock);
	return len;
}

/**
 * hps_urgent_inq - what FIONREAD says: what one call can read
 * @sk: the socket
 * @conn: its connection, locked
 *
 * Return: bytes.
 */
u32 hps_urgent_inq(const struct sock *sk, const struct hps_conn *conn)
{
	u64 ahead = conn->rx_urgent_at - hps_conn_read_pos(conn);
	u32 avail = atomic_read(&conn->rx_avail);

	lockdep_assert_held(&conn->lock);
	if (!conn->rx_urgent || sock_flag(sk, SOCK_URGINLINE))
		return avail;
	return min_t(u64, ahead, avail);
}

/* Returns enum hps_urgent as it was; unless it is a peek, the byte counts as read then. */
static u8 hps_urgent_take(struct hps_conn *conn, bool peek, u8 *byte)
{
	u8 state;

	spin_lock_bh(&conn->lock);
	state = conn->rx_urgent;
	*byte = conn->rx_urgent_byte;
	if (state == HPS_URGENT_HERE && !peek)
		WRITE_ONCE(conn->rx_urgent, HPS_URGENT_READ);
	spin_unlock_bh(&conn->lock);
	return state;
}

/**
 * hps_urgent_recv - recvmsg(2) with MSG_OOB
 * @sk: the socket, locked
 * @msg: where to
 * @len: bytes there
 * @flags: MSG_PEEK, MSG_TRUNC
 *
 * Context: process; never waits.
 * Return: 1; 0 if there is no room, or nothing will come; -EINVAL if there is none,
 * or it was read, or SO_OOBINLINE; -ENOTCONN; -EAGAIN when it was announced and is
 * not there; -EFAULT.
 */
int hps_urgent_recv(struct sock *sk, struct msghdr *msg, size_t len, int flags)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	bool closed = sk->sk_state == TCP_CLOSE, done;
	u8 state, byte;

	if (!conn || sock_flag(sk, SOCK_URGINLINE))
		return -EINVAL;
	done = READ_ONCE(conn->fin_rcvd);
	state = hps_urgent_take(conn, (flags & MSG_PEEK) ||
				(closed && !done), &byte);
	if (state == HPS_URGENT_NONE || state == HPS_URGENT_READ)
		return -EINVAL;
	if (closed && !done)
		return -ENOTCONN;
	if (state == HPS_URGENT_AHEAD)
		return closed || (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) ? 0 : -EAGAIN;
	msg->msg_flags |= MSG_OOB;
	if (!len) {
		msg->msg_flags |= MSG_TRUNC;
		return 0;
	}
	if (!(flags & MSG_TRUNC) && copy_to_iter(&byte, 1, &msg->msg_iter) != 1)
		return -EFAULT;
	return 1;
}
