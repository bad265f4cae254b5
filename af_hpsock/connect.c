// SPDX-License-Identifier: GPL-2.0
/*
 * connect(2). The transport works on its own and tells the outcome by
 * hps_conn_established() or hps_conn_end(); retry.c says when there is another attempt.
 */
#include <net/ip.h>
#include <net/ipv6_stubs.h>
#include <net/route.h>
#include <net/tcp_states.h>

#include "conn.h"
#include "conn_life.h"
#include "connect.h"
#include "listen.h"
#include "net.h"
#include "port.h"
#include "record.h"
#include "retry.h"
#include "sock.h"
#include "transport.h"

/*
 * The address of an attempt, unless bind() has chosen it, is rdma_cm's to choose: it takes
 * the device of the route then, and not the one that has the address.
 */
static void hps_connect_local(const struct sock *sk, struct hps_addr *local)
{
	*local = hps_sk(sk)->local;
	if (sk->sk_userlocks & SOCK_BINDADDR_LOCK && !hps_sk(sk)->bound_any)
		return;
	local->ip = in6addr_any;
	local->scope = 0;
}

/* Make a connection for a socket and start it. */
static int hps_connect_attempt(struct sock *sk)
{
	struct hps_sock *hsk = hps_sk(sk);
	struct hps_conn *conn;
	int err;

	conn = hps_transport_of(sk)->create(sk);
	if (!conn)
		return -ENOBUFS;
	hps_record_init(conn, sk->sk_type);
	hps_connect_local(sk, &conn->local);
	conn->peer = hsk->peer;
	conn->state = TCP_SYN_SENT;
	conn->user_mss = hsk->user_mss;
	hps_conn_attach(conn, sk);
	err = conn->ops->connect(conn);
	/* Not before: what it makes is there for the teardown now. */
	if (!err)
		hps_conn_limit_opening(conn, hsk->connect_deadline);
	return err;
}

/* Part a socket from its connection, if it has one. */
static void hps_connect_forget(struct sock *sk)
{
	struct hps_sock *hsk = hps_sk(sk);
	struct hps_conn *conn = hps_sk_conn(sk);

	if (!conn)
		return;
	hps_conn_drop(conn);
	hps_sock_reap(sk);
	RCU_INIT_POINTER(hsk->conn, NULL);
	hps_conn_put(conn);
	sk_mem_uncharge(sk, hsk->rx_charged + hsk->tx_charged);
	hsk->rx_charged = 0;
	hsk->tx_charged = 0;
	sk_wmem_queued_add(sk, -sk->sk_wmem_queued);
}

/* As hps_conn_report(), of an attempt that failed before there was a connection. */
static void hps_connect_report(struct sock *sk, int err)
{
	hps_stat_inc(hps_net(sock_net(sk)), HPS_STAT_CONNECT_FAILED);
	WRITE_ONCE(sk->sk_err, -err);
	/* Pairs with hps_poll_look(). */
	smp_wmb();
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	hps_port_close(sk);
	sk->sk_state_change(sk);
	sk_error_report(sk);
}

/* Has an attempt failed, and planned another one? hps_conn_end() parted it from its socket. */
static bool hps_connect_planned(struct hps_conn *conn)
{
	bool planned;

	spin_lock_bh(&conn->lock);
	planned = conn->ended && !conn->sk;
	spin_unlock_bh(&conn->lock);
	return planned;
}

static void hps_connect_work(struct work_struct *work)
{
	struct hps_sock *hsk = container_of(work, struct hps_sock,
					    connect_work.work);
	struct sock *sk = &hsk->inet.sk;
	struct hps_conn *conn;
	int err;

	if (!hps_sock_own(sk, HPS_LATER_CONNECT))
		goto put;
	conn = hps_sk_conn(sk);
	/* Unless it is another attempt by now. */
	if (sk->sk_state == TCP_SYN_SENT && !sock_flag(sk, SOCK_DEAD) &&
	    conn && hps_connect_planned(conn)) {
		hps_connect_forget(sk);
		err = hps_net_enabled(sock_net(sk)) ? hps_connect_attempt(sk) : -ENETUNREACH;
		if (err) {
			hps_connect_forget(sk);
			/* The connection may have come to its end first, and said so. */
			if (sk->sk_state != TCP_CLOSE)
				hps_connect_report(sk, err);
		}
	}
	release_sock(sk);
put:
	sock_put(sk);
}

/**
 * hps_connect_init - prepare a new socket for connect()
 * @sk: the socket
 *
 * Context: any.
 */
void hps_connect_init(struct sock *sk)
{
	INIT_DELAYED_WORK(&hps_sk(sk)->connect_work, hps_connect_work);
}

/* Undo a connect() that failed, so that the socket can try again. */
static void hps_connect_undo(struct sock *sk)
{
	struct hps_sock *hsk = hps_sk(sk);
	struct hps_addr local;

	hps_connect_forget(sk);
	hps_retry_cancel(sk);
	/* A port that bind() chose since then stays. */
	if (sk->sk_state != TCP_CLOSE)
		hps_port_close(sk);
	hps_port_part(sk);
	sk->sk_shutdown = 0;
	/* Whether it has the port still or not, as tcp_disconnect() leaves the name. */
	local = hsk->local;
	if (!(sk->sk_userlocks & SOCK_BINDADDR_LOCK)) {
		if (local.v6)
			local.ip = in6addr_any;
		else
			ipv6_addr_set_v4mapped(htonl(INADDR_ANY), &local.ip);
		local.scope = 0;
	}
	hps_port_rename(sk, &local);
}

/* What there was of a connection is over, and three options go with it: tcp_disconnect(). */
static void hps_connect_part(struct sock *sk)
{
	hps_connect_undo(sk);
	WRITE_ONCE(sk->sk_peek_off, -1);
	WRITE_ONCE(hps_sk(sk)->user_mss, 0);
	WRITE_ONCE(hps_sk(sk)->window_clamp, 0);
}

static bool hps_connect_unicast(struct sock *sk, const struct in6_addr *ip)
{
	unsigned int type;

	if (!ipv6_addr_v4mapped(ip))
		return !ipv6_addr_is_multicast(ip);
	type = inet_addr_type(sock_net(sk), ip->s6_addr32[3]);
	return type != RTN_MULTICAST && type != RTN_BROADCAST;
}

/* An address of a link is of the interface that it names, or that the socket is bound to. */
static int hps_connect_scope(struct sock *sk, struct hps_addr *peer)
{
	if (!(ipv6_addr_type(&peer->ip) & IPV6_ADDR_LINKLOCAL))
		return 0;
	if (peer->scope) {
		if (!sk_dev_equal_l3scope(sk, peer->scope))
			return -EINVAL;
		WRITE_ONCE(sk->sk_bound_dev_if, peer->scope);
	}
	peer->scope = sk->sk_bound_dev_if;
	return peer->scope ? 0 : -EINVAL;
}

/* Jiffies that all attempts may take together. */
static unsigned long hps_connect_time(const struct sock *sk)
{
	const struct hps_sock *hsk = hps_sk(sk);
	unsigned long time;

	time = hps_conn_retry_time(hsk->syncnt ?:
		READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_syn_retries));
	return hsk->user_timeout ?
	       min(time, msecs_to_jiffies(hsk->user_timeout)) : time;
}

static int hps_connect_source4(struct sock *sk, const struct hps_addr *peer,
			       struct hps_addr *local)
{
	struct flowi4 fl4 = {
		.daddr = peer->ip.s6_addr32[3],
		.saddr = local->ip.s6_addr32[3],
		.flowi4_oif = sk->sk_bound_dev_if,
	};
	struct rtable *rt = ip_route_output_key(sock_net(sk), &fl4);

	if (IS_ERR(rt))
		return PTR_ERR(rt);
	ip_rt_put(rt);
	ipv6_addr_set_v4mapped(fl4.saddr, &local->ip);
	return 0;
}

static int hps_connect_source6(struct sock *sk, const struct hps_addr *peer,
			       struct hps_addr *local)
{
	struct flowi6 fl6 = {
		.daddr = peer->ip,
		.flowi6_oif = sk->sk_bound_dev_if,
	};
	struct dst_entry *dst;

	dst = ipv6_stub->ipv6_dst_lookup_flow(sock_net(sk), NULL, &fl6, NULL);
	if (IS_ERR(dst))
		return PTR_ERR(dst);
	dst_release(dst);
	local->ip = fl6.saddr;
	if (ipv6_addr_type(&local->ip) & IPV6_ADDR_LINKLOCAL)
		local->scope = fl6.flowi6_oif;
	return 0;
}

/*
 * Choose our address, unless bind() has: by the question that rdma_cm will ask for each
 * attempt. As on TCP it can be seen from now on. One that was chosen is asked about as well
 * if it is of IPv4, which has no route for what is not ours (any more).
 */
static int hps_connect_source(struct sock *sk, const struct hps_addr *peer)
{
	struct hps_addr local = hps_sk(sk)->local;
	bool chosen = !hps_addr_any(&local.ip);
	int err = 0;

	if (ipv6_addr_v4mapped(&peer->ip))
		err = hps_connect_source4(sk, peer, &local);
	else if (!chosen)
		err = hps_connect_source6(sk, peer, &local);
	if (!err && !chosen)
		hps_port_rename(sk, &local);
	return err;
}

/* What bind() chose is of one version of IP. */
static int hps_connect_version(const struct sock *sk, const struct hps_addr *peer)
{
	bool v4 = ipv6_addr_v4mapped(&hps_sk(sk)->local.ip);

	if (!(sk->sk_userlocks & SOCK_BINDADDR_LOCK) || v4 == ipv6_addr_v4mapped(&peer->ip))
		return 0;
	return v4 ? -EAFNOSUPPORT : -EINVAL;
}

static int hps_connect_start(struct sock *sk, struct sockaddr *uaddr, int len)
{
	struct hps_sock *hsk = hps_sk(sk);
	struct hps_addr before = hsk->local, peer;
	int err;

	err = hps_addr_parse(&peer, uaddr, len);
	if (err)
		return err;
	/* It was when the socket was made. */
	if (!hps_net_enabled(sock_net(sk)))
		return -ENETUNREACH;
	if (ipv6_addr_v4mapped(&peer.ip) && peer.v6 && ipv6_only_sock(sk))
		return -ENETUNREACH;
	err = hps_connect_version(sk, &peer);
	if (err)
		return err;
	if (!hps_connect_unicast(sk, &peer.ip))
		return -ENETUNREACH;
	err = hps_connect_scope(sk, &peer);
	if (err)
		return err;
	if (hps_addr_any(&peer.ip)) {
		/* The host itself, as for TCP. */
		if (ipv6_addr_v4mapped(&peer.ip))
			ipv6_addr_set_v4mapped(htonl(INADDR_LOOPBACK),
					       &peer.ip);
		else
			peer.ip = in6addr_loopback;
	}
	/* No RDMA device is there, though some would try to reach it by TCP. */
	if (ipv6_addr_loopback(&peer.ip) ||
	    (ipv6_addr_v4mapped(&peer.ip) &&
	     ipv4_is_loopback(peer.ip.s6_addr32[3])))
		return -ENETUNREACH;
	err = hps_connect_source(sk, &peer);
	if (err)
		return err;
	err = hps_port_connect(sk, &peer);
	if (err) {
		hps_port_rename(sk, &before);
		return err;
	}
	hsk->local.v6 = peer.v6;
	hps_retry_begin(sk, jiffies + hps_connect_time(sk));
	sk->sk_err = 0;
	err = hps_connect_attempt(sk);
	if (err) {
		hps_connect_undo(sk);
		/* The connection may have come to its end first, and said so: once is enough. */
		sk->sk_err = 0;
	}
	return err;
}

/* As tcp_need_reset(), and what else tcp_disconnect() takes for a loss. */
static bool hps_disconnect_resets(struct sock *sk)
{
	struct hps_conn *conn = hps_sk_conn(sk);

	switch (sk->sk_state) {
	case TCP_CLOSE:
	case TCP_LISTEN:
		return false;
	case TCP_CLOSING:
	case TCP_LAST_ACK:
		return conn && READ_ONCE(conn->tx_unsent);
	default:
		return true;
	}
}

/**
 * hps_disconnect - proto.disconnect: back to an unconnected socket
 * @sk: the socket, locked
 * @flags: unused
 *
 * The peer sees a reset.
 *
 * Context: process.
 * Return: 0.
 */
int hps_disconnect(struct sock *sk, int flags)
{
	int err = hps_disconnect_resets(sk) ? ECONNRESET : 0;

	if (sk->sk_state == TCP_LISTEN)
		hps_unlisten(sk);
	hps_connect_part(sk);
	/* tcp_disconnect() leaves word of what it broke off, and what there was before. */
	if (err)
		sk->sk_err = err;
	sk_error_report(sk);
	return 0;
}

/* Who waits also does until the peer knows, see hps_conn_confirm(). */
static bool hps_connect_pending(struct sock *sk)
{
	const struct hps_conn *conn = hps_sk_conn(sk);

	return sk->sk_state == TCP_SYN_SENT ||
	       (sk->sk_state == TCP_ESTABLISHED && conn &&
		!READ_ONCE(conn->confirmed));
}

static long hps_connect_wait(struct sock *sk, long timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	add_wait_queue(sk_sleep(sk), &wait);
	while (hps_connect_pending(sk)) {
		release_sock(sk);
		timeo = wait_woken(&wait, TASK_INTERRUPTIBLE, timeo);
		lock_sock(sk);
		if (signal_pending(current) || !timeo)
			break;
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return timeo;
}

static int hps_connect_locked(struct socket *sock, struct sockaddr *uaddr,
			      int len, int flags)
{
	struct sock *sk = sock->sk;
	int err, disconnects;
	long timeo;

	if (len < (int)sizeof(uaddr->sa_family))
		return -EINVAL;
	if (uaddr->sa_family == AF_UNSPEC) {
		sk->sk_disconnects++;
		hps_disconnect(sk, flags);
		sock->state = SS_UNCONNECTED;
		return 0;
	}

	switch (sock->state) {
	case SS_UNCONNECTED:
		if (sk->sk_state != TCP_CLOSE)
			return -EISCONN;
		err = hps_connect_start(sk, uaddr, len);
		if (err)
			return err;
		sock->state = SS_CONNECTING;
		err = -EINPROGRESS;
		/* Nobody who does not wait is told the outcome at once. */
		if (!sock_sndtimeo(sk, flags & O_NONBLOCK))
			return err;
		break;
	case SS_CONNECTING:
		err = -EALREADY;
		break;
	case SS_CONNECTED:
		return -EISCONN;
	default:
		return -EINVAL;
	}

	/* It may be established by now, before this had a chance to wait. */
	if (hps_connect_pending(sk)) {
		timeo = sock_sndtimeo(sk, flags & O_NONBLOCK);
		disconnects = sk->sk_disconnects;
		if (timeo)
			timeo = hps_connect_wait(sk, timeo);
		/* What became of it is told to another thread. */
		if (disconnects != sk->sk_disconnects)
			return -EPIPE;
		if (sk->sk_state == TCP_SYN_SENT)
			return timeo && signal_pending(current) ?
			       sock_intr_errno(timeo) : err;
	}

	/* Pairs with hps_sock_set_state(): the reason was there before. */
	if (smp_load_acquire(&sk->sk_state) == TCP_CLOSE) {
		err = sock_error(sk) ?: -ECONNABORTED;
		sk->sk_disconnects++;
		sock->state = SS_UNCONNECTED;
		hps_connect_part(sk);
		return err;
	}
	sock->state = SS_CONNECTED;
	return 0;
}

/**
 * hps_connect - proto_ops.connect
 * @sock: the socket
 * @uaddr: where to; AF_UNSPEC disconnects
 * @len: its length
 * @flags: O_NONBLOCK
 *
 * Context: process, may sleep.
 * Return: 0, -EINPROGRESS, -EALREADY, -EISCONN, -ECONNREFUSED, -ENETUNREACH,
 * -EHOSTUNREACH, -ETIMEDOUT, -EPROTO for a peer of another version, and what else
 * TCP's connect() gives.
 */
int hps_connect(struct socket *sock, struct sockaddr *uaddr, int len,
		int flags)
{
	int err;

	lock_sock(sock->sk);
	err = hps_connect_locked(sock, uaddr, len, flags);
	release_sock(sock->sk);
	return err;
}
