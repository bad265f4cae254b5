// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options of SOL_IP and SOL_IPV6, both of which any socket has, as a
 * socket of AF_INET6; the table in sockopt.c says what each does.
 */
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/route.h>
#include <net/tcp_states.h>

#include "compat.h"
#include "conn.h"
#include "options.h"
#include "port.h"
#include "sock.h"

static u8 hps_ip_class(u8 old, int val)
{
	return (val & ~INET_ECN_MASK) | (old & INET_ECN_MASK);
}

/* Read when the socket connects, see hps_cm_apply_options(). */
static int hps_ip_set_tos(struct sock *sk, const struct hps_opt *opt, int val)
{
	struct inet_sock *inet = inet_sk(sk);
	u8 tos = hps_ip_class(inet->tos, val);

	/* A priority that was chosen since stays. */
	if (tos == inet->tos)
		return 0;
	WRITE_ONCE(inet->tos, tos);
	WRITE_ONCE(sk->sk_priority, rt_tos2priority(inet->tos));
	return 0;
}

static int hps_ip_get_tos(struct sock *sk, const struct hps_opt *opt, void *buf)
{
	return hps_opt_int(buf, inet_sk(sk)->tos);
}

const struct hps_opt_ops hps_ip_tos = {
	.set = hps_ip_set_tos,
	.get = hps_ip_get_tos,
};

static int hps_ip_set_tclass(struct sock *sk, const struct hps_opt *opt,
			     int val)
{
	struct ipv6_pinfo *np = &hps_sk(sk)->inet6;

	if (val < -1 || val > 0xff)
		return -EINVAL;
	np->tclass = hps_ip_class(np->tclass, val == -1 ? 0 : val);
	return 0;
}

static int hps_ip_get_tclass(struct sock *sk, const struct hps_opt *opt,
			     void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->inet6.tclass);
}

const struct hps_opt_ops hps_ip_tclass = {
	.set = hps_ip_set_tclass,
	.get = hps_ip_get_tclass,
};

static int hps_ip_set_ttl(struct sock *sk, const struct hps_opt *opt, int val)
{
	if (val != -1 && (val < 1 || val > 255))
		return -EINVAL;
	hps_sk(sk)->kept[opt->kept] = val;
	return 0;
}

static int hps_ip_get_ttl(struct sock *sk, const struct hps_opt *opt, void *buf)
{
	int val = hps_sk(sk)->kept[opt->kept];

	if (val < 0)
		val = READ_ONCE(sock_net(sk)->ipv4.sysctl_ip_default_ttl);
	return hps_opt_int(buf, val);
}

const struct hps_opt_ops hps_ip_ttl = {
	.set = hps_ip_set_ttl,
	.get = hps_ip_get_ttl,
};

static int hps_ip_set_hops(struct sock *sk, const struct hps_opt *opt, int val)
{
	if (val < -1 || val > 255)
		return -EINVAL;
	hps_sk(sk)->kept[opt->kept] = val;
	return 0;
}

static int hps_ip_get_hops(struct sock *sk, const struct hps_opt *opt,
			   void *buf)
{
	int val = hps_sk(sk)->kept[opt->kept];

	if (val < 0)
		val = READ_ONCE(sock_net(sk)->ipv6.devconf_all->hop_limit);
	return hps_opt_int(buf, val);
}

const struct hps_opt_ops hps_ip_hops = {
	.set = hps_ip_set_hops,
	.get = hps_ip_get_hops,
};

static int hps_ip_get_mtu(struct sock *sk, const struct hps_opt *opt, void *buf)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	u32 mtu = conn ? hps_conn_mtu(conn) : 0;

	return mtu ? hps_opt_int(buf, mtu) : -ENOTCONN;
}

const struct hps_opt_ops hps_ip_mtu = {
	.get = hps_ip_get_mtu,
};

/* The size of fragments, which only datagrams have; what it says is the path's. */
static int hps_ip_set_mtu6(struct sock *sk, const struct hps_opt *opt, int val)
{
	return val && val < IPV6_MIN_MTU ? -EINVAL : 0;
}

const struct hps_opt_ops hps_ip_mtu6 = {
	.set = hps_ip_set_mtu6,
	.get = hps_ip_get_mtu,
};

/* Both levels have it, for one bit. */
static int hps_ip_read_freebind(int level, sockptr_t optval,
				unsigned int optlen, int *val)
{
	return optlen ? hps_opt_read_int(level, optval, optlen, val) : -EINVAL;
}

static int hps_ip_set_freebind(struct sock *sk, const struct hps_opt *opt,
			       int val)
{
	hps_set_freebind(sk, val);
	return 0;
}

static int hps_ip_get_freebind(struct sock *sk, const struct hps_opt *opt,
			       void *buf)
{
	return hps_opt_int(buf, hps_freebind(sk));
}

const struct hps_opt_ops hps_ip_freebind = {
	.read = hps_ip_read_freebind,
	.set = hps_ip_set_freebind,
	.get = hps_ip_get_freebind,
};

static int hps_ip_set_no_port(struct sock *sk, const struct hps_opt *opt,
			      int val)
{
	hps_sk(sk)->bind_no_port = !!val;
	return 0;
}

static int hps_ip_get_no_port(struct sock *sk, const struct hps_opt *opt,
			      void *buf)
{
	return hps_opt_int(buf, hps_sk(sk)->bind_no_port);
}

const struct hps_opt_ops hps_ip_no_port = {
	.set = hps_ip_set_no_port,
	.get = hps_ip_get_no_port,
};

static int hps_ip_read_port_range(int level, sockptr_t optval,
				  unsigned int optlen, int *val)
{
	int err = hps_opt_read_int(level, optval, optlen, val);

	if (err)
		return err;
	return optlen == sizeof(int) ? 0 : -EINVAL;
}

/* inet_sk_get_local_port_range() reads it. */
static int hps_ip_set_port_range(struct sock *sk, const struct hps_opt *opt,
				 int val)
{
	u16 low = val, high = val >> 16;

	if (low && high && low > high)
		return -EINVAL;
	hps_set_port_range(sk, low, high);
	return 0;
}

static int hps_ip_get_port_range(struct sock *sk, const struct hps_opt *opt,
				 void *buf)
{
	return hps_opt_int(buf, hps_port_range(sk));
}

const struct hps_opt_ops hps_ip_port_range = {
	.read = hps_ip_read_port_range,
	.set = hps_ip_set_port_range,
	.get = hps_ip_get_port_range,
};

static int hps_ip_set_v6only(struct sock *sk, const struct hps_opt *opt,
			     int val)
{
	if (READ_ONCE(inet_sk(sk)->inet_num))
		return -EINVAL;
	sk->sk_ipv6only = !!val;
	return 0;
}

static int hps_ip_get_v6only(struct sock *sk, const struct hps_opt *opt,
			     void *buf)
{
	return hps_opt_int(buf, sk->sk_ipv6only);
}

const struct hps_opt_ops hps_ip_v6only = {
	.set = hps_ip_set_v6only,
	.get = hps_ip_get_v6only,
};

/* As a socket that was opened for IPv6: what hpsock_run(1) makes of one. */
static int hps_ip_begin_v6(struct sock *sk)
{
	static const struct hps_addr any = { .ip = IN6ADDR_ANY_INIT, .v6 = true };

	if (sk->sk_state != TCP_CLOSE || READ_ONCE(inet_sk(sk)->inet_num) ||
	    hps_sk(sk)->peer.port || !hps_addr_any(&hps_sk(sk)->local.ip))
		return -EINVAL;
	hps_port_rename(sk, &any);
	return 0;
}

/* From now on the addresses are told as those of IPv4 that they are. */
static int hps_ip_set_addrform(struct sock *sk, const struct hps_opt *opt,
			       int val)
{
	struct hps_sock *hsk = hps_sk(sk);

	if (val == AF_INET6)
		return hps_ip_begin_v6(sk);
	if (val != AF_INET)
		return -EINVAL;
	if (sk->sk_state != TCP_ESTABLISHED)
		return -ENOTCONN;
	if (ipv6_only_sock(sk) || !ipv6_addr_v4mapped(&hsk->peer.ip))
		return -EADDRNOTAVAIL;
	hsk->local.v6 = false;
	hsk->peer.v6 = false;
	return 0;
}

static int hps_ip_get_addrform(struct sock *sk, const struct hps_opt *opt,
			       void *buf)
{
	if (sk->sk_state != TCP_ESTABLISHED)
		return -ENOTCONN;
	return hps_opt_int(buf, hps_sk(sk)->local.v6 ? AF_INET6 : AF_INET);
}

const struct hps_opt_ops hps_ip_addrform = {
	.set = hps_ip_set_addrform,
	.get = hps_ip_get_addrform,
};
