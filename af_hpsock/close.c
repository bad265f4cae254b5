// SPDX-License-Identifier: GPL-2.0
/*
 * shutdown(2) and close(2): as TCP. Data not sent yet is delivered and FIN
 * follows it; data not read yet, or SO_LINGER with no time, means a reset.
 */
#include <net/tcp_states.h>

#include "close.h"
#include "conn.h"
#include "conn_life.h"
#include "connect.h"
#include "listen.h"
#include "net.h"
#include "port.h"
#include "retry.h"
#include "sock.h"
#include "stream.h"

/* Unless it is queued already, or there is no connection to end; locked. */
static void hps_shutdown_fin(struct hps_conn *conn)
{
	if ((1 << conn->state) & (TCPF_ESTABLISHED | TCPF_CLOSE_WAIT))
		hps_stream_fin(conn);
}

static void hps_shutdown_send(struct hps_conn *conn)
{
	spin_lock_bh(&conn->lock);
	hps_shutdown_fin(conn);
	spin_unlock_bh(&conn->lock);
}

/* Both ends write sk_shutdown, completions under hps_conn.lock. */
static void hps_shutdown_mark(struct sock *sk, struct hps_conn *conn, int mask)
{
	if (!conn) {
		WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | mask);
		return;
	}
	spin_lock_bh(&conn->lock);
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | mask);
	spin_unlock_bh(&conn->lock);
}

/**
 * hps_shutdown - proto_ops.shutdown
 * @sock: the socket
 * @how: SHUT_RD, SHUT_WR, SHUT_RDWR
 *
 * Context: process.
 * Return: 0, -EINVAL, -ENOTCONN.
 */
int hps_shutdown(struct socket *sock, int how)
{
	struct sock *sk = sock->sk;
	struct hps_conn *conn;
	int err = 0, state;

	/* From SHUT_* to the bits RCV_SHUTDOWN and SEND_SHUTDOWN. */
	how++;
	if ((how & ~SHUTDOWN_MASK) || !how)
		return -EINVAL;

	lock_sock(sk);
	/* Completions change it. */
	state = READ_ONCE(sk->sk_state);
	if (sock->state == SS_CONNECTING)
		sock->state = state == TCP_SYN_SENT || state == TCP_CLOSE ?
			      SS_DISCONNECTING : SS_CONNECTED;
	conn = hps_sk_conn(sk);
	switch (state) {
	case TCP_LISTEN:
		if (!(how & RCV_SHUTDOWN))
			break;
		fallthrough;
	case TCP_SYN_SENT:
		hps_disconnect(sk, O_NONBLOCK);
		sock->state = SS_UNCONNECTED;
		break;
	case TCP_CLOSE:
		err = -ENOTCONN;
		fallthrough;
	default:
		hps_shutdown_mark(sk, conn, how);
		if (conn && (how & SEND_SHUTDOWN))
			hps_shutdown_send(conn);
		break;
	}
	sk->sk_state_change(sk);
	release_sock(sk);
	return err;
}

/* The program is through with it. Completions look at SOCK_DEAD; locked. */
static void hps_close_orphan(struct sock *sk, struct hps_conn *conn)
{
	sock_orphan(sk);
	hps_conn_orphan(conn);
}

/*
 * Both halves end. Queue FIN, unless close() of this connection has to tell the peer that
 * data was lost: then return false. In one hold of the lock, because what comes in between
 * would neither be read nor, as what follows FIN, be answered by a reset: nor by one that
 * lets what was sent go before, which an orphan's is.
 */
static bool hps_close_fin(struct sock *sk, struct hps_conn *conn, bool linger)
{
	bool reset;

	spin_lock_bh(&conn->lock);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	reset = atomic_read(&conn->rx_avail) || sk->sk_state == TCP_SYN_SENT ||
		(sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime);
	if (!reset) {
		hps_shutdown_fin(conn);
		if (!linger)
			hps_close_orphan(sk, conn);
	}
	spin_unlock_bh(&conn->lock);
	return !reset;
}

/**
 * hps_close - proto.close: the last reference to the file is gone
 * @sk: the socket
 * @timeout: jiffies to linger
 *
 * Context: process, sleeps only to linger.
 */
void hps_close(struct sock *sk, long timeout)
{
	struct hps_conn *conn;

	lock_sock(sk);
	conn = hps_sk_conn(sk);
	if (!conn)
		hps_shutdown_mark(sk, NULL, SHUTDOWN_MASK);
	if (sk->sk_state == TCP_LISTEN)
		hps_unlisten(sk);
	if (conn) {
		if (hps_close_fin(sk, conn, timeout)) {
			sk_stream_wait_close(sk, timeout);
		} else {
			hps_conn_drop(conn);
			hps_port_close(sk);
		}
	}
	/* Not before: an attempt that ends with its socket plans the next one. */
	hps_retry_cancel(sk);
	if (!conn) {
		sock_orphan(sk);
	} else if (!sock_flag(sk, SOCK_DEAD)) {
		spin_lock_bh(&conn->lock);
		hps_close_orphan(sk, conn);
		spin_unlock_bh(&conn->lock);
	}
	/* From here on hps_port_close() does it, if the connection goes on. */
	if (sk->sk_state == TCP_CLOSE)
		hps_port_release(sk);
	release_sock(sk);
	sock_put(sk);
}
