// SPDX-License-Identifier: GPL-2.0
/*
 * listen(2) and accept(2).
 */
#include <net/tcp_states.h>

#include "bind.h"
#include "compat.h"
#include "conn.h"
#include "conn_life.h"
#include "listen.h"
#include "port.h"
#include "queue.h"
#include "sock.h"
#include "transport.h"

static void hps_listen_close(struct sock *sk)
{
	struct hps_accept_queue *queue = &hps_sk(sk)->queue;
	struct hps_conn *conn;

	spin_lock_bh(&queue->lock);
	queue->open = false;
	spin_unlock_bh(&queue->lock);
	while ((conn = hps_queue_pop(sk, true))) {
		hps_conn_drop(conn);
		hps_conn_put(conn);
	}
}

/**
 * hps_listen - proto_ops.listen
 * @sock: the socket
 * @backlog: connections that may wait, established or on their way
 *
 * Context: process, may sleep.
 * Return: 0, -EINVAL, -EADDRINUSE (also when somebody else has a service port, or
 * no port is free).
 */
int hps_listen(struct socket *sock, int backlog)
{
	struct sock *sk = sock->sk;
	struct hps_accept_queue *queue = &hps_sk(sk)->queue;
	struct hps_addr before;
	int err = -EINVAL;
	bool bound;

	lock_sock(sk);
	if (sock->state != SS_UNCONNECTED)
		goto out;
	if (sk->sk_state != TCP_CLOSE && sk->sk_state != TCP_LISTEN)
		goto out;
	WRITE_ONCE(sk->sk_max_ack_backlog, backlog);
	err = 0;
	if (sk->sk_state == TCP_LISTEN)
		goto out;

	before = hps_sk(sk)->local;
	bound = inet_sk(sk)->inet_num;
	err = hps_autobind(sk);
	if (err)
		goto out;
	hps_sock_set_state(sk, TCP_LISTEN);
	err = hps_port_recheck(sk);
	if (!err)
		err = hps_transport_of(sk)->listen(sock_net(sk));
	if (err) {
		hps_sock_set_state(sk, TCP_CLOSE);
		if (!bound) {
			hps_port_release(sk);
			hps_port_rename(sk, &before);
		}
		goto out;
	}
	WRITE_ONCE(sk->sk_ack_backlog, 0);
	spin_lock_bh(&queue->lock);
	queue->open = true;
	spin_unlock_bh(&queue->lock);
	hps_port_listen(sk);
out:
	release_sock(sk);
	return err;
}

/**
 * hps_unlisten - stop listening and reset what waits
 * @sk: a listening socket, locked
 *
 * Context: process, may sleep.
 */
void hps_unlisten(struct sock *sk)
{
	hps_port_unlisten(sk);
	hps_port_close(sk);
	hps_listen_close(sk);
	hps_transport_of(sk)->unlisten(sock_net(sk));
}

/*
 * Take the next connection and its reference, waiting for one. The socket lock
 * is dropped meanwhile.
 */
static int hps_accept_wait(struct sock *sk, bool nonblock, struct hps_conn **connp)
{
	long timeo = sock_rcvtimeo(sk, nonblock);
	DEFINE_WAIT(wait);
	int err = 0;

	for (;;) {
		if (sk->sk_state != TCP_LISTEN) {
			err = -EINVAL;
			break;
		}
		*connp = hps_queue_pop(sk, false);
		if (*connp)
			break;
		if (!timeo) {
			err = -EAGAIN;
			break;
		}
		if (signal_pending(current)) {
			err = sock_intr_errno(timeo);
			break;
		}
		/*
		 * Exclusive: one connection wakes one of many acceptors. So only who has to
		 * sleep is among them, not who would take a wake-up along that is another's.
		 */
		prepare_to_wait_exclusive(sk_sleep(sk), &wait,
					  TASK_INTERRUPTIBLE);
		release_sock(sk);
		if (!hps_queue_has_ready(sk))
			timeo = schedule_timeout(timeo);
		sched_annotate_sleep();
		lock_sock(sk);
		finish_wait(sk_sleep(sk), &wait);
	}
	return err;
}

/*
 * What an accepted socket has from its listener, as TCP's has: nearly everything, but not
 * SO_PRIORITY and TCP_DEFER_ACCEPT.
 */
static void hps_accept_inherit(struct sock *sk, const struct sock *from)
{
	static const enum sock_flags flags[] = {
		SOCK_KEEPOPEN, SOCK_LINGER, SOCK_URGINLINE, SOCK_BROADCAST,
		SOCK_DBG, SOCK_LOCALROUTE, SOCK_RCVTSTAMP, SOCK_RCVTSTAMPNS,
		SOCK_TSTAMP_NEW, SOCK_ZEROCOPY, SOCK_RXQ_OVFL,
		SOCK_WIFI_STATUS, SOCK_NOFCS, SOCK_SELECT_ERR_QUEUE,
		SOCK_FILTER_LOCKED, SOCK_RCVMARK,
	};
	struct hps_sock *hsk = hps_sk(sk);
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++)
		sock_valbool_flag(sk, flags[i], sock_flag(from, flags[i]));
	sk->sk_reuse = from->sk_reuse;
	sk->sk_reuseport = from->sk_reuseport;
	sk->sk_uid = from->sk_uid;
	sk->sk_ipv6only = from->sk_ipv6only;
	sk->sk_bound_dev_if = from->sk_bound_dev_if;
	sk->sk_mark = from->sk_mark;
	sk->sk_sndbuf = from->sk_sndbuf;
	sk->sk_rcvbuf = from->sk_rcvbuf;
	sk->sk_rcvlowat = from->sk_rcvlowat;
	sk->sk_peek_off = from->sk_peek_off;
	sk->sk_rcvtimeo = from->sk_rcvtimeo;
	sk->sk_sndtimeo = from->sk_sndtimeo;
	sk->sk_lingertime = from->sk_lingertime;
	sk->sk_userlocks = from->sk_userlocks & ~SOCK_BINDPORT_LOCK;
	sk->sk_tsflags = from->sk_tsflags;
	sk->sk_txrehash = from->sk_txrehash;
	sk->sk_no_check_tx = from->sk_no_check_tx;
#ifdef CONFIG_NET_RX_BUSY_POLL
	sk->sk_ll_usec = from->sk_ll_usec;
	sk->sk_busy_poll_budget = from->sk_busy_poll_budget;
	sk->sk_prefer_busy_poll = from->sk_prefer_busy_poll;
#endif
	inet_sk(sk)->tos = inet_sk(from)->tos;
	hsk->inet6.tclass = hps_sk(from)->inet6.tclass;
	hps_set_freebind(sk, hps_freebind(from));
	hps_set_port_range(sk, hps_port_range(from),
			   hps_port_range(from) >> 16);
	hsk->nodelay = hps_sk(from)->nodelay;
	hsk->cork = hps_sk(from)->cork;
	hsk->keepidle = hps_sk(from)->keepidle;
	hsk->keepintvl = hps_sk(from)->keepintvl;
	hsk->keepcnt = hps_sk(from)->keepcnt;
	hsk->user_timeout = hps_sk(from)->user_timeout;
	hsk->user_mss = hps_sk(from)->user_mss;
	hsk->syncnt = hps_sk(from)->syncnt;
	hsk->linger2 = hps_sk(from)->linger2;
	hsk->window_clamp = hps_sk(from)->window_clamp;
	hsk->notsent_lowat = hps_sk(from)->notsent_lowat;
	hsk->inq = hps_sk(from)->inq;
	hsk->split = hps_sk(from)->split;
	hsk->bind_no_port = hps_sk(from)->bind_no_port;
	memcpy(hsk->kept, hps_sk(from)->kept, sizeof(hsk->kept));
	hsk->tuning = hps_sk(from)->tuning;
	security_sk_clone(from, sk);
}

/* A connection off the queue becomes a socket, charged to this process. */
static struct sock *hps_accept_sock(struct sock *listener,
				    struct hps_conn *conn, int kern)
{
	struct sock *sk;

	sk = hps_sock_alloc(sock_net(listener), NULL, listener->sk_type,
			    listener->sk_protocol, kern);
	if (!sk)
		return NULL;
	hps_accept_inherit(sk, listener);
	if (conn->peer.scope)
		sk->sk_bound_dev_if = conn->peer.scope;
	hps_sock_set_local(sk, &conn->local);
	hps_sock_set_peer(sk, &conn->peer);
	hps_port_share(sk, listener);

	hps_conn_attach(conn, sk);
	return sk;
}

/* Who ran dry before there was a socket waits for it, and it may just look. */
static void hps_accept_grow(struct sock *sk)
{
	struct hps_conn *conn;

	lock_sock(sk);
	conn = hps_sk_conn(sk);
	if (conn)
		conn->ops->grow(conn, sk);
	release_sock(sk);
}

/**
 * hps_accept - proto_ops.accept
 * @sock: the listening socket
 * @newsock: to be given a connection
 * @flags: O_NONBLOCK
 * @kern: for the kernel itself
 *
 * Context: process, may sleep.
 * Return: 0, -EINVAL when the socket does not listen, -EAGAIN, -EINTR,
 * -ERESTARTSYS, or -ENOBUFS, the connection being reset, when memory does not
 * suffice.
 */
int hps_accept(struct socket *sock, struct socket *newsock, int flags,
	       bool kern)
{
	struct sock *sk = sock->sk, *newsk;
	struct hps_conn *conn;
	int err;

	lock_sock(sk);
	err = hps_accept_wait(sk, flags & O_NONBLOCK, &conn);
	if (err)
		goto out;
	newsk = hps_accept_sock(sk, conn, kern);
	if (!newsk) {
		hps_conn_drop(conn);
		hps_conn_put(conn);
		err = -ENOBUFS;
		goto out;
	}
	sock_graft(newsk, newsock);
	hps_socket_flags(newsock);
	newsock->state = SS_CONNECTED;
out:
	release_sock(sk);
	if (!err)
		hps_accept_grow(newsk);
	return err;
}
