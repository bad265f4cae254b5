// SPDX-License-Identifier: GPL-2.0
/*
 * Socket addresses. A program may say AF_INET, AF_INET6 or, with the layout of
 * sockaddr_in, the family's own number (as programs written for SDP do); inside
 * there is only struct hps_addr. The family's own number stops here: rdma_cm
 * would take 27 for AF_IB.
 */
#include <linux/in.h>
#include <net/ipv6.h>

#include "addr.h"
#include "param.h"

/**
 * hps_addr_parse - read what a program passed
 * @addr: the result
 * @sa: in kernel memory
 * @len: its length
 *
 * Context: any.
 * Return: 0, -EINVAL if too short, -EAFNOSUPPORT, also for what is disabled
 * (ipv6.disable=1).
 */
int hps_addr_parse(struct hps_addr *addr, const struct sockaddr *sa, int len)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)sa;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)sa;

	if (len < offsetofend(struct sockaddr, sa_family))
		return -EINVAL;
	/* Without it there is nothing behind what would be asked of an address. */
	if (sa->sa_family == AF_INET6 && ipv6_mod_enabled()) {
		if (len < SIN6_LEN_RFC2133)
			return -EINVAL;
		addr->ip = sin6->sin6_addr;
		addr->port = ntohs(sin6->sin6_port);
		addr->scope = 0;
		if (len >= sizeof(*sin6) &&
		    (ipv6_addr_type(&addr->ip) & IPV6_ADDR_LINKLOCAL))
			addr->scope = sin6->sin6_scope_id;
		addr->v6 = true;
		return 0;
	}
	if (len < sizeof(*sin))
		return -EINVAL;
	if (sa->sa_family != AF_INET && sa->sa_family != hps_family)
		return -EAFNOSUPPORT;
	ipv6_addr_set_v4mapped(sin->sin_addr.s_addr, &addr->ip);
	addr->port = ntohs(sin->sin_port);
	addr->scope = 0;
	addr->v6 = false;
	return 0;
}

/**
 * hps_addr_format - answer a program in the form it used
 * @addr: the address
 * @sa: room for a struct sockaddr_in6
 *
 * Context: any.
 * Return: the length written.
 */
int hps_addr_format(const struct hps_addr *addr, struct sockaddr *sa)
{
	struct sockaddr_in6 *sin6 = (struct sockaddr_in6 *)sa;
	struct sockaddr_in *sin = (struct sockaddr_in *)sa;

	if (addr->v6) {
		memset(sin6, 0, sizeof(*sin6));
		sin6->sin6_family = AF_INET6;
		sin6->sin6_addr = addr->ip;
		sin6->sin6_port = htons(addr->port);
		sin6->sin6_scope_id = addr->scope;
		return sizeof(*sin6);
	}
	memset(sin, 0, sizeof(*sin));
	sin->sin_family = AF_INET;
	sin->sin_addr.s_addr = addr->ip.s6_addr32[3];
	sin->sin_port = htons(addr->port);
	return sizeof(*sin);
}

/**
 * hps_addr_to_rdma - the form that rdma_cm takes
 * @addr: the address; its own port is ours and stays out
 * @port: rdma_cm port, host byte order
 * @ss: the result
 *
 * Context: any.
 * Return: the length written.
 */
int hps_addr_to_rdma(const struct hps_addr *addr, u16 port,
		     struct sockaddr_storage *ss)
{
	struct hps_addr plain = *addr;

	plain.v6 = !ipv6_addr_v4mapped(&addr->ip);
	plain.port = port;
	return hps_addr_format(&plain, (struct sockaddr *)ss);
}

/**
 * hps_addr_from_rdma - read an address that rdma_cm reports
 * @addr: the result; port 0, v6 as the address is
 * @ss: from a cm_id's route
 *
 * Context: any.
 */
void hps_addr_from_rdma(struct hps_addr *addr,
			const struct sockaddr_storage *ss)
{
	const struct sockaddr_in6 *sin6 = (const struct sockaddr_in6 *)ss;
	const struct sockaddr_in *sin = (const struct sockaddr_in *)ss;

	memset(addr, 0, sizeof(*addr));
	if (ss->ss_family == AF_INET6) {
		addr->ip = sin6->sin6_addr;
		addr->scope = sin6->sin6_scope_id;
		addr->v6 = !ipv6_addr_v4mapped(&addr->ip);
	} else {
		ipv6_addr_set_v4mapped(sin->sin_addr.s_addr, &addr->ip);
	}
}

/**
 * hps_addr_on_link - an address that a request came from, or to
 * @addr: the address; rdma_cm tells no scope for those of a link
 * @dif: the interface that it came in at
 *
 * Context: any.
 */
void hps_addr_on_link(struct hps_addr *addr, int dif)
{
	if (ipv6_addr_type(&addr->ip) & IPV6_ADDR_LINKLOCAL)
		addr->scope = dif;
}

static bool hps_addr_any4(const struct in6_addr *ip)
{
	return ipv6_addr_v4mapped(ip) && !ip->s6_addr32[3];
}

/**
 * hps_addr_any - is this a wildcard, of either protocol?
 * @ip: the address
 *
 * Context: any.
 * Return: true for :: and for the v4-mapped 0.0.0.0.
 */
bool hps_addr_any(const struct in6_addr *ip)
{
	return ipv6_addr_any(ip) || hps_addr_any4(ip);
}

/**
 * hps_addr_covers - would a socket bound to @a get what is sent to @b?
 * @a: a local address or wildcard
 * @a_v6only: the socket of @a wants no IPv4
 * @b: an address or wildcard
 * @b_v6only: the socket of @b wants no IPv4
 *
 * The IPv6 wildcard covers IPv4 too unless IPV6_V6ONLY, as in inet6.
 *
 * Context: any.
 * Return: true if it would.
 */
bool hps_addr_covers(const struct in6_addr *a, bool a_v6only,
		     const struct in6_addr *b, bool b_v6only)
{
	if (ipv6_addr_any(a))
		return !ipv6_addr_v4mapped(b) || !a_v6only;
	if (hps_addr_any4(a))
		return ipv6_addr_v4mapped(b) ||
		       (ipv6_addr_any(b) && !b_v6only);
	return ipv6_addr_equal(a, b);
}
