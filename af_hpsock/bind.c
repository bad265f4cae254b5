// SPDX-License-Identifier: GPL-2.0
/*
 * bind(2), and the bind that connect() and listen() do where it is missing.
 */
#include <net/addrconf.h>
#include <net/inet_common.h>
#include <net/ip.h>
#include <net/l3mdev.h>
#include <net/route.h>
#include <net/tcp_states.h>

#include "bind.h"
#include "conn.h"
#include "net.h"
#include "port.h"
#include "sock.h"

/* The addresses of a VRF are in a table of its own. */
static int hps_bind_type4(struct sock *sk, __be32 ip)
{
	struct net *net = sock_net(sk);
	u32 table = 0;

	if (sk->sk_bound_dev_if)
		table = l3mdev_fib_table_by_index(net, sk->sk_bound_dev_if);
	return inet_addr_type_table(net, ip, table ?: RT_TABLE_LOCAL);
}

static int hps_bind_check4(struct sock *sk, const struct hps_addr *addr)
{
	__be32 ip = addr->ip.s6_addr32[3];

	if (ipv6_only_sock(sk) && addr->v6)
		return -EINVAL;
	if (!inet_addr_valid_or_nonlocal(sock_net(sk), inet_sk(sk), ip, hps_bind_type4(sk, ip)))
		return -EADDRNOTAVAIL;
	return 0;
}

/* One of a link is of the interface that it names, or else SO_BINDTODEVICE. */
static int hps_bind_scope(struct sock *sk, struct hps_addr *addr)
{
	if (!(ipv6_addr_type(&addr->ip) & IPV6_ADDR_LINKLOCAL))
		return 0;
	if (addr->scope)
		sk->sk_bound_dev_if = addr->scope;
	addr->scope = sk->sk_bound_dev_if;
	return addr->scope ? 0 : -EINVAL;
}

static int hps_bind_check6(struct sock *sk, struct hps_addr *addr)
{
	struct net *net = sock_net(sk);
	struct net_device *dev = NULL;
	int err;

	if (ipv6_addr_any(&addr->ip))
		return 0;
	err = hps_bind_scope(sk, addr);
	if (err)
		return err;
	rcu_read_lock();
	if (sk->sk_bound_dev_if)
		dev = dev_get_by_index_rcu(net, sk->sk_bound_dev_if);
	if (sk->sk_bound_dev_if && !dev)
		err = -ENODEV;
	else if (!ipv6_can_nonlocal_bind(net, inet_sk(sk)) &&
		 !ipv6_chk_addr(net, &addr->ip, dev, 0))
		err = -EADDRNOTAVAIL;
	rcu_read_unlock();
	return err;
}

/* The address may be one of ours? @addr gets its scope. */
static int hps_bind_check(struct sock *sk, struct hps_addr *addr)
{
	return ipv6_addr_v4mapped(&addr->ip) ? hps_bind_check4(sk, addr) :
					       hps_bind_check6(sk, addr);
}

/* May the socket have the port, and any at all? */
static int hps_bind_allowed(const struct sock *sk, const struct hps_addr *addr)
{
	struct net *net = sock_net(sk);

	if (ipv6_addr_is_multicast(&addr->ip))
		return -EINVAL;
	if (addr->port && inet_port_requires_bind_service(net, addr->port) &&
	    !ns_capable(net->user_ns, CAP_NET_BIND_SERVICE))
		return -EACCES;
	return sk->sk_state != TCP_CLOSE || inet_sk(sk)->inet_num ? -EINVAL : 0;
}

/**
 * hps_bind - proto_ops.bind
 * @sock: the socket
 * @uaddr: sockaddr_in or sockaddr_in6
 * @len: its length
 *
 * Context: process, may sleep.
 * Return: 0 or what inet gives: -EINVAL, -EAFNOSUPPORT, -EADDRNOTAVAIL, -ENODEV,
 * -EACCES, -EADDRINUSE.
 */
int hps_bind(struct socket *sock, struct sockaddr *uaddr, int len)
{
	struct sock *sk = sock->sk;
	struct hps_addr addr;
	int err;

	/* inet's old courtesy: AF_UNSPEC with the wildcard means AF_INET. */
	if (len >= (int)sizeof(struct sockaddr_in) &&
	    uaddr->sa_family == AF_UNSPEC &&
	    ((struct sockaddr_in *)uaddr)->sin_addr.s_addr == htonl(INADDR_ANY))
		uaddr->sa_family = AF_INET;
	err = hps_addr_parse(&addr, uaddr, len);
	if (err)
		return err;

	lock_sock(sk);
	/* Which of several errors it is: inet looks at the address first, inet6 last. */
	if (addr.v6)
		err = hps_bind_allowed(sk, &addr) ?: hps_bind_check(sk, &addr);
	else
		err = hps_bind_check(sk, &addr) ?: hps_bind_allowed(sk, &addr);
	if (err)
		goto out;
	/* That of a connection which has ended. */
	if (hps_sk(sk)->peer.port)
		hps_port_part(sk);
	/* connect() takes one; who listens gets one then. */
	if (!addr.port && hps_sk(sk)->bind_no_port)
		hps_port_rename(sk, &addr);
	else
		err = hps_port_bind(sk, &addr);
	if (err)
		goto out;
	hps_sk(sk)->bound_any = hps_addr_any(&addr.ip);
	/* ::ffff:0.0.0.0 stays one of IPv4, too. */
	if (!hps_addr_any(&addr.ip) || (addr.v6 && ipv6_addr_v4mapped(&addr.ip)))
		sk->sk_userlocks |= SOCK_BINDADDR_LOCK;
	if (!hps_addr_any(&addr.ip) && !ipv6_addr_v4mapped(&addr.ip))
		sk->sk_ipv6only = true;	/* it is; inet6 says so, too */
	if (addr.port)
		sk->sk_userlocks |= SOCK_BINDPORT_LOCK;
out:
	release_sock(sk);
	return err;
}

/**
 * hps_autobind - make sure that a socket has a port
 * @sk: the socket, locked
 *
 * Context: process.
 * Return: 0 or -EADDRINUSE if none is free.
 */
int hps_autobind(struct sock *sk)
{
	struct hps_addr addr = hps_sk(sk)->local;

	if (inet_sk(sk)->inet_num)
		return 0;
	addr.port = 0;
	return hps_port_bind(sk, &addr);
}
