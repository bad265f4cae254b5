// SPDX-License-Identifier: GPL-2.0
/* bind(): addresses, ports, who may share them and who may have them. */
#include "hps_test.h"

#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>

#define PORT_START "/proc/sys/net/ipv4/ip_unprivileged_port_start"
#define NETNS_ENABLED	"/sys/module/hpsock/parameters/netns_enabled"
#define NOBODY 65534

HPS_FIXTURE(bind)

/* A socket of the other IP version, with the same domain where there is one. */
static struct hps version(const struct hps *t, int af)
{
	struct hps other;

	hps_init(&other, t->rdma, af);
	return other;
}

static int reusing(const struct hps *t, struct hps_addr addr)
{
	return hps_bound_with(t, SOL_SOCKET, SO_REUSEADDR, addr);
}

static int sharing(const struct hps *t, struct hps_addr addr)
{
	return hps_bound_with(t, SOL_SOCKET, SO_REUSEPORT, addr);
}

static int v6only(const struct hps *t, struct hps_addr addr)
{
	return hps_bound_with(t, SOL_IPV6, IPV6_V6ONLY, addr);
}

/* A port that nobody has. */
static int free_port(const struct hps *t)
{
	int fd = hps_bound(t, 0, hps_any(t->af, 0));
	struct hps_addr name = hps_name(fd);

	close(fd);
	return hps_port(&name);
}

TEST_F(bind, chosen_port)
{
	int fd[64], port[64], i, j;

	for (i = 0; i < 64; i++) {
		struct hps_addr name;

		fd[i] = hps_bound(&self->t, 0, i % 2 ? self->t.a : self->t.b);
		ASSERT_OK(fd[i]);
		name = hps_name(fd[i]);
		port[i] = hps_port(&name);
		EXPECT_TRUE(hps_ephemeral(port[i]));
		EXPECT_TRUE(hps_same_host(&name, i % 2 ? &self->t.a : &self->t.b));
		for (j = i % 2; j < i; j += 2) {
			EXPECT_NE(port[j], port[i]);
		}
	}
}

TEST_F(bind, in_use)
{
	int port = free_port(&self->t);
	int fd = hps_bound(&self->t, 0, hps_at(self->t.b, port));
	int other = hps_socket(&self->t, 0);

	ASSERT_OK(fd);
	ASSERT_OK(other);
	EXPECT_ERRNO(EADDRINUSE, hps_bind(other, hps_at(self->t.b, port)));
	EXPECT_ERRNO(EADDRINUSE, hps_bind(other, hps_any(self->t.af, port)));
	/* The failures left no trace. */
	EXPECT_OK(hps_bind(other, hps_at(self->t.a, port)));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_at(self->t.a, port)));
}

TEST_F(bind, in_use_wildcard)
{
	int port = free_port(&self->t);
	int fd = hps_bound(&self->t, 0, hps_any(self->t.af, port));

	ASSERT_OK(fd);
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_any(self->t.af, port)));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_at(self->t.a, port)));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_at(self->t.b, port)));
}

TEST_F(bind, again_after_close)
{
	int port = free_port(&self->t), i;

	for (i = 0; i < 100; i++) {
		int fd = hps_bound(&self->t, 0, hps_at(self->t.b, port));

		ASSERT_OK(fd);
		if (i % 2)
			ASSERT_OK(listen(fd, 1));
		ASSERT_OK(close(fd));
	}
}

TEST_F(bind, twice)
{
	int fd = hps_bound(&self->t, 0, self->t.b);
	struct hps_addr before = hps_name(fd), after;

	ASSERT_OK(fd);
	EXPECT_ERRNO(EINVAL, hps_bind(fd, self->t.b));
	EXPECT_ERRNO(EINVAL, hps_bind(fd, self->t.a));
	EXPECT_ERRNO(EINVAL, hps_bind(fd, before));
	after = hps_name(fd);
	EXPECT_TRUE(hps_same(&before, &after));
	ASSERT_OK(listen(fd, 1));
	EXPECT_ERRNO(EINVAL, hps_bind(fd, self->t.b));
}

TEST_F(bind, connected)
{
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	EXPECT_ERRNO(EINVAL, hps_bind(c, self->t.a));
	EXPECT_ERRNO(EINVAL, hps_bind(s, self->t.b));
}

/* Both directions of a connection end, that of @fd first. */
static bool ends(int fd, int peer)
{
	return !shutdown(fd, SHUT_RDWR) && hps_wait(peer, POLLRDHUP) & POLLRDHUP &&
	       !shutdown(peer, SHUT_RDWR) && hps_until_over(fd) && hps_until_over(peer);
}

/* After a connection a socket has only the port that its program had asked for. */
TEST_F(bind, ended)
{
	struct hps_addr before, after;
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	before = hps_name(c);
	ASSERT_TRUE(ends(c, s));
	after = hps_name(c);
	EXPECT_TRUE(hps_same(&before, &after));
	ASSERT_OK(hps_bind(c, hps_any(self->t.af, 0)));
	after = hps_name(c);
	EXPECT_NE(0, hps_port(&after));
	/* Once, and it is of no use. */
	EXPECT_ERRNO(EINVAL, hps_bind(c, hps_any(self->t.af, 0)));
	EXPECT_ERRNO(EINVAL, listen(c, 1));
	EXPECT_ERRNO(EISCONN, hps_connect(c, before));
	ASSERT_OK(hps_bind(s, hps_any(self->t.af, 0)));
	EXPECT_ERRNO(EINVAL, hps_bind(s, hps_any(self->t.af, 0)));
}

TEST_F(bind, ended_with_port)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at), c, s;

	ASSERT_OK(l);
	c = hps_bound(&self->t, 0, hps_at(self->t.a, free_port(&self->t)));
	ASSERT_OK(c);
	ASSERT_OK(hps_connect(c, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_TRUE(ends(c, s));
	EXPECT_ERRNO(EINVAL, hps_bind(c, hps_any(self->t.af, 0)));
	/* To any is to none. */
	c = hps_bound(&self->t, 0, self->t.a);
	ASSERT_OK(c);
	ASSERT_OK(hps_connect(c, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_TRUE(ends(c, s));
	EXPECT_OK(hps_bind(c, hps_any(self->t.af, 0)));
}

/* Others may have it then; the socket's own name stays. */
TEST_F(bind, ended_leaves_port)
{
	struct hps_addr name, after;
	int c, s, other;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	name = hps_name(c);
	/* TCP's TIME_WAIT is the server's. */
	ASSERT_TRUE(ends(s, c));
	other = hps_bound(&self->t, 0, name);
	EXPECT_OK(other);
	after = hps_name(c);
	EXPECT_TRUE(hps_same(&name, &after));
	if (self->t.af == AF_INET6)
		EXPECT_OK(hps_set(c, SOL_IPV6, IPV6_V6ONLY, 1));
	EXPECT_ERRNO(EADDRINUSE, hps_bind(c, name));
	close(other);
	EXPECT_OK(hps_bind(c, name));
}

/* A bind() that finds no port does not spoil the next. */
TEST_F(bind, ended_no_port)
{
	int c, s, other;
	uint32_t port;

	if (hps_kernel() < 603 && !self->t.rdma)
		SKIP(return, "TCP has no IP_LOCAL_PORT_RANGE before 6.3");
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	other = hps_bound(&self->t, 0, hps_any(self->t.af, 0));
	ASSERT_OK(other);
	port = hps_port_of(other);
	ASSERT_TRUE(ends(c, s));
	ASSERT_OK(hps_set(c, SOL_IP, IP_LOCAL_PORT_RANGE, port << 16 | port));
	EXPECT_ERRNO(EADDRINUSE, hps_bind(c, hps_any(self->t.af, 0)));
	close(other);
	ASSERT_OK(hps_bind(c, hps_any(self->t.af, 0)));
	EXPECT_EQ(port, hps_port_of(c));
}

/* connect(AF_UNSPEC) takes what connect() took, not what bind() did. */
TEST_F(bind, unspec_leaves_port)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int fd = hps_bound(&self->t, 0, hps_any(self->t.af, 0)), c, s, port;

	ASSERT_OK(fd);
	port = hps_port_of(fd);
	ASSERT_OK(connect(fd, &none, sizeof(none)));
	EXPECT_EQ(port, hps_port_of(fd));
	ASSERT_OK(listen(fd, 1));
	EXPECT_EQ(port, hps_port_of(fd));

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_TRUE(ends(c, s));
	ASSERT_OK(hps_bind(c, hps_any(self->t.af, 0)));
	port = hps_port_of(c);
	ASSERT_OK(connect(c, &none, sizeof(none)));
	EXPECT_EQ(port, hps_port_of(c));
	ASSERT_OK(listen(c, 1));
	EXPECT_EQ(port, hps_port_of(c));
}

/* The name keeps the port that was connect()'s choice, as if it were the socket's still. */
TEST_F(bind, unspec_keeps_name)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int c, s, port, l = hps_bound(&self->t, 0, hps_any(self->t.af, 0));
	struct hps_addr at;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	port = hps_port_of(c);
	ASSERT_OK(connect(c, &none, sizeof(none)));
	EXPECT_EQ(port, hps_port_of(c));
	EXPECT_EQ(self->t.af, hps_name(c).sa.sa_family);

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	port = hps_port_of(c);
	ASSERT_TRUE(ends(s, c));
	ASSERT_OK(connect(c, &none, sizeof(none)));
	EXPECT_EQ(port, hps_port_of(c));

	/* Nobody listens there. */
	ASSERT_OK(l);
	at = hps_at(self->t.b, hps_port_of(l));
	c = hps_socket(&self->t, 0);
	EXPECT_ERRNO(ECONNREFUSED, hps_connect(c, at));
	EXPECT_NE(0, hps_port_of(c));
	close(l);
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	EXPECT_OK(hps_connect(c, at));

	port = hps_port_of(l);
	ASSERT_OK(shutdown(l, SHUT_RD));
	EXPECT_EQ(port, hps_port_of(l));
}

/* Nor does a listener that is shut down keep one that it did not ask for. */
TEST_F(bind, unlisten_leaves_port)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);

	ASSERT_OK(l);
	ASSERT_OK(shutdown(l, SHUT_RD));
	EXPECT_OK(hps_bound(&self->t, 0, at));
}

TEST_F(bind, not_ours)
{
	const char *text = self->t.af == AF_INET ? "198.51.100.1" : "2001:db8::1";
	int fd = hps_socket(&self->t, 0);

	ASSERT_OK(fd);
	EXPECT_ERRNO(EADDRNOTAVAIL, hps_bind(fd, hps_parse(text, 0)));
	EXPECT_ERRNO(EADDRNOTAVAIL, hps_bind(fd, hps_parse(text, 5000)));
	EXPECT_OK(hps_bind(fd, self->t.b));
}

TEST_F(bind, short_length)
{
	/* RFC 2133's sockaddr_in6 had no scope and is still taken. */
	socklen_t least = self->t.af == AF_INET ? sizeof(struct sockaddr_in) : 24;
	int fd = hps_socket(&self->t, 0);
	char buf[256] = { 0 };

	ASSERT_OK(fd);
	memcpy(buf, &self->t.b.sa, self->t.b.len);
	EXPECT_ERRNO(EINVAL, bind(fd, (void *)buf, 0));
	EXPECT_ERRNO(EINVAL, bind(fd, (void *)buf, 1));
	EXPECT_ERRNO(EINVAL, bind(fd, (void *)buf, 2));
	EXPECT_ERRNO(EINVAL, bind(fd, (void *)buf, least - 1));
	EXPECT_ERRNO(EINVAL, bind(fd, (void *)buf, -1));
	EXPECT_ERRNO(EINVAL, bind(fd, (void *)buf, sizeof(buf)));
	EXPECT_ERRNO(EFAULT, bind(fd, hps_unmapped(), self->t.b.len));
	EXPECT_OK(bind(fd, (void *)buf, least));
}

TEST_F(bind, long_length)
{
	int fd = hps_socket(&self->t, 0);
	struct hps_addr addr = self->t.b;

	ASSERT_OK(fd);
	addr.len = sizeof(addr.ss);
	EXPECT_OK(hps_bind(fd, addr));
}

TEST_F(bind, other_families)
{
	static const int families[] = { AF_UNIX, AF_PACKET, AF_NETLINK, 99 };
	struct hps_addr addr = self->t.b;
	int fd = hps_socket(&self->t, 0);
	size_t i;

	ASSERT_OK(fd);
	for (i = 0; i < ARRAY_SIZE(families); i++) {
		addr = self->t.b;
		addr.sa.sa_family = families[i];
		EXPECT_ERRNO(EAFNOSUPPORT, hps_bind(fd, addr));
		addr.len = sizeof(struct sockaddr_in) - 1;
		EXPECT_ERRNO(EINVAL, hps_bind(fd, addr));
	}
}

/* An old habit: no family at all means IPv4 if the address is the wildcard. */
TEST_F(bind, no_family)
{
	struct hps_addr addr = self->t.b;
	int fd;

	if (self->t.af == AF_INET6)
		SKIP(return, "of IPv4 alone");
	fd = hps_socket(&self->t, 0);
	ASSERT_OK(fd);
	addr.sa.sa_family = AF_UNSPEC;
	EXPECT_ERRNO(EAFNOSUPPORT, hps_bind(fd, addr));
	addr.len = sizeof(addr.sa.sa_family);
	EXPECT_ERRNO(EINVAL, hps_bind(fd, addr));
	addr = hps_any(AF_INET, 0);
	addr.sa.sa_family = AF_UNSPEC;
	EXPECT_OK(hps_bind(fd, addr));
	addr = hps_name(fd);
	EXPECT_EQ(AF_INET, addr.sa.sa_family);
}

/* AF_HPSOCK alone: its own number with sockaddr_in behind it. */
TEST_F(bind, own_family)
{
	struct hps_addr addr = self->t.b;
	int fd;

	if (!self->t.rdma || self->t.af == AF_INET6)
		SKIP(return, "of AF_HPSOCK with IPv4 alone");
	fd = hps_socket(&self->t, 0);
	ASSERT_OK(fd);
	addr.sa.sa_family = self->t.domain;
	EXPECT_OK(hps_bind(fd, addr));
	addr = hps_name(fd);
	EXPECT_EQ(AF_INET, addr.sa.sa_family);
	EXPECT_TRUE(hps_same_host(&addr, &self->t.b));
}

TEST_F(bind, v6_kinds)
{
	int fd;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	fd = hps_socket(&self->t, 0);
	ASSERT_OK(fd);
	/* Link-local without a link; multicast */
	EXPECT_ERRNO(EINVAL, hps_bind(fd, hps_parse("fe80::1", 0)));
	EXPECT_ERRNO(EINVAL, hps_bind(fd, hps_parse("ff02::1", 0)));
	EXPECT_OK(hps_bind(fd, self->t.b));
}

/* The IPv6 wildcard stands for all of IPv4 as well. */
TEST_F(bind, dual_stack)
{
	struct hps v4 = version(&self->t, AF_INET);
	int port = free_port(&self->t), fd;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	fd = hps_bound(&self->t, 0, hps_any(AF_INET6, port));
	ASSERT_OK(fd);
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&v4, 0, hps_any(AF_INET, port)));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&v4, 0, hps_at(v4.b, port)));
	close(fd);

	fd = hps_bound(&v4, 0, hps_any(AF_INET, port));
	ASSERT_OK(fd);
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_any(AF_INET6, port)));
	close(fd);

	fd = hps_bound(&v4, 0, hps_at(v4.b, port));
	ASSERT_OK(fd);
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_any(AF_INET6, port)));
	EXPECT_OK(hps_bound(&self->t, 0, hps_at(self->t.b, port)));
}

TEST_F(bind, v6only)
{
	struct hps v4 = version(&self->t, AF_INET);
	int port = free_port(&self->t), fd, other;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	fd = v6only(&self->t, hps_any(AF_INET6, port));
	ASSERT_OK(fd);
	other = hps_bound(&v4, 0, hps_any(AF_INET, port));
	EXPECT_OK(other);
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_any(AF_INET6, port)));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_at(self->t.b, port)));
	close(fd);

	fd = v6only(&self->t, hps_any(AF_INET6, port));
	EXPECT_OK(fd);
	/* It is settled once the socket has a port. */
	EXPECT_ERRNO(EINVAL, hps_set(fd, SOL_IPV6, IPV6_V6ONLY, 0));
	EXPECT_EQ(1, hps_opt(fd, SOL_IPV6, IPV6_V6ONLY));
}

TEST_F(bind, mapped)
{
	struct hps v4 = version(&self->t, AF_INET);
	struct hps_addr addr, name;
	int fd;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	addr = hps_mapped(v4.b);
	fd = hps_bound(&self->t, 0, addr);
	ASSERT_OK(fd);
	name = hps_name(fd);
	EXPECT_TRUE(hps_same_host(&addr, &name));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&v4, 0, hps_at(v4.b, hps_port(&name))));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&v4, 0, hps_any(AF_INET, hps_port(&name))));
	EXPECT_OK(hps_bound(&v4, 0, hps_at(v4.a, hps_port(&name))));
	EXPECT_OK(hps_bound(&self->t, 0, hps_at(self->t.b, hps_port(&name))));
	EXPECT_ERRNO(EINVAL, v6only(&self->t, addr));
}

/* The wildcard of IPv4 is not that of IPv6 after a connect() that failed. */
TEST_F(bind, mapped_and_refused)
{
	struct hps t = version(&self->t, AF_INET);
	struct hps_addr peer, name;
	int c, unheard;

	if (variant->af != AF_INET6)
		SKIP(return, "of IPv6 alone");
	unheard = hps_bound(&t, 0, t.b);
	ASSERT_OK(unheard);
	peer = hps_mapped(hps_name(unheard));
	c = hps_bound(&self->t, 0, hps_mapped(hps_any(AF_INET, 0)));
	ASSERT_OK(c);
	EXPECT_ERRNO(EAFNOSUPPORT, hps_connect(c, hps_at(self->t.b, 5000)));
	ASSERT_ERRNO(ECONNREFUSED, hps_connect(c, peer));
	name = hps_name(c);
	EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&name.in6.sin6_addr));
	EXPECT_ERRNO(EAFNOSUPPORT, hps_connect(c, hps_at(self->t.b, 5000)));
}

/* Nor is it an address: what the route says counts, not who else has what we send from. */
TEST_F(bind, mapped_follows_the_route)
{
	struct hps t = version(&self->t, AF_INET);
	struct hps_addr at;
	char text[INET_ADDRSTRLEN];
	int c, l, ret;

	if (variant->af != AF_INET6)
		SKIP(return, "of IPv6 alone");
	if (geteuid())
		SKIP(return, "needs root");
	l = hps_listen(&t, 1, &at);
	ASSERT_OK(l);
	c = hps_bound(&self->t, 0, hps_mapped(hps_any(AF_INET, 0)));
	ASSERT_OK(c);
	inet_ntop(AF_INET, &t.a.in.sin_addr, text, sizeof(text));
	ASSERT_EQ(0, hps_run("ip addr add %s/32 dev lo", text));
	ret = hps_connect(c, hps_mapped(at));
	EXPECT_OK(ret);
	hps_run("ip addr del %s/32 dev lo", text);
}

TEST_F(bind, reuse)
{
	int port = free_port(&self->t);
	int one, two;

	one = reusing(&self->t, hps_at(self->t.b, port));
	ASSERT_OK(one);
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_at(self->t.b, port)));
	two = reusing(&self->t, hps_at(self->t.b, port));
	ASSERT_OK(two);
	EXPECT_OK(reusing(&self->t, hps_any(self->t.af, port)));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_at(self->t.b, port)));
}

TEST_F(bind, reuse_needs_both)
{
	int port = free_port(&self->t);
	int one = hps_bound(&self->t, 0, hps_at(self->t.b, port));

	ASSERT_OK(one);
	EXPECT_ERRNO(EADDRINUSE, reusing(&self->t, hps_at(self->t.b, port)));
	EXPECT_ERRNO(EADDRINUSE, reusing(&self->t, hps_any(self->t.af, port)));
}

TEST_F(bind, reuse_not_of_listener)
{
	int port = free_port(&self->t);
	int one, two;

	one = reusing(&self->t, hps_at(self->t.b, port));
	ASSERT_OK(one);
	two = reusing(&self->t, hps_at(self->t.b, port));
	ASSERT_OK(two);
	ASSERT_OK(listen(one, 1));
	EXPECT_ERRNO(EADDRINUSE, listen(two, 1));
	EXPECT_ERRNO(EADDRINUSE, reusing(&self->t, hps_at(self->t.b, port)));
	EXPECT_ERRNO(EADDRINUSE, reusing(&self->t, hps_any(self->t.af, port)));
	EXPECT_OK(reusing(&self->t, hps_at(self->t.a, port)));
	close(two);
	close(one);
	one = reusing(&self->t, hps_at(self->t.b, port));
	ASSERT_OK(one);
	EXPECT_OK(listen(one, 1));
}

TEST_F(bind, reuseport)
{
	int port = free_port(&self->t);
	struct hps_addr at = hps_at(self->t.b, port);
	int fd[3], i;

	if (!hps_shares_ports(&self->t))
		SKIP(return, "this kernel refuses SO_REUSEPORT off AF_INET");
	fd[0] = sharing(&self->t, at);
	ASSERT_OK(fd[0]);
	fd[1] = sharing(&self->t, at);
	ASSERT_OK(fd[1]);
	fd[2] = sharing(&self->t, hps_any(self->t.af, port));
	ASSERT_OK(fd[2]);
	for (i = 0; i < 3; i++)
		EXPECT_OK(listen(fd[i], 1));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, at));
	EXPECT_ERRNO(EADDRINUSE, reusing(&self->t, at));
	EXPECT_OK(sharing(&self->t, at));
	close(fd[0]);
	EXPECT_OK(sharing(&self->t, at));
}

TEST_F(bind, reuseport_needs_both)
{
	int port = free_port(&self->t);
	struct hps_addr at = hps_at(self->t.b, port);
	int one;

	if (!hps_shares_ports(&self->t))
		SKIP(return, "this kernel refuses SO_REUSEPORT off AF_INET");
	one = reusing(&self->t, at);
	ASSERT_OK(one);
	EXPECT_ERRNO(EADDRINUSE, sharing(&self->t, at));
	close(one);
	one = hps_bound(&self->t, 0, at);
	ASSERT_OK(one);
	EXPECT_ERRNO(EADDRINUSE, sharing(&self->t, at));
	/* It may be said later. */
	ASSERT_OK(hps_set(one, SOL_SOCKET, SO_REUSEPORT, 1));
	EXPECT_OK(sharing(&self->t, at));
}

/* Nobody can have a share of what comes for somebody else. */
TEST_F(bind, reuseport_of_another)
{
	int port = free_port(&self->t);
	struct hps_addr at = hps_at(self->t.b, port);
	pid_t pid;

	if (!hps_shares_ports(&self->t))
		SKIP(return, "this kernel refuses SO_REUSEPORT off AF_INET");
	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_OK(sharing(&self->t, at));
	pid = fork();
	ASSERT_OK(pid);
	if (!pid) {
		if (setresuid(NOBODY, NOBODY, NOBODY))
			_exit(255);
		_exit(sharing(&self->t, at) < 0 ? errno : 0);
	}
	EXPECT_EQ(EADDRINUSE, hps_reap(pid));
}

/* What accept() gave keeps the port of the listener. */
TEST_F(bind, port_of_accepted)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c, s, fd;

	ASSERT_OK(l);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	s = hps_accept(l);
	ASSERT_OK(s);
	close(l);
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, at));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, hps_any(self->t.af, hps_port(&at))));
	EXPECT_ERRNO(EADDRINUSE, reusing(&self->t, at));
	fd = hps_bound(&self->t, 0, hps_at(self->t.a, hps_port(&at)));
	EXPECT_OK(fd);
}

/* The way servers are restarted. */
TEST_F(bind, restart_server)
{
	struct hps_addr at;
	int l, c[2], s[2], i;

	l = reusing(&self->t, self->t.b);
	ASSERT_OK(l);
	for (i = 0; i < 2; i++) {
		ASSERT_OK(listen(l, 1));
		at = hps_name(l);
		c[i] = hps_dial(&self->t, at);
		ASSERT_OK(c[i]);
		s[i] = hps_accept(l);
		ASSERT_OK(s[i]);
		close(l);
		l = reusing(&self->t, at);
		ASSERT_OK(l);
	}
	/* One left to itself, one closed by the server first. */
	close(s[0]);
	EXPECT_EQ(0, hps_pull(c[0], 1, 1, 0));
	close(c[0]);
	ASSERT_OK(listen(l, 1));
	c[0] = hps_dial(&self->t, at);
	ASSERT_OK(c[0]);
	EXPECT_OK(hps_accept(l));
	EXPECT_EQ(1, send(c[1], "x", 1, 0));
	EXPECT_EQ(1, recv(s[1], &(char){ 0 }, 1, 0));
}

/* Two connections may share the client's port, if they are different ones. */
TEST_F(bind, one_port_two_servers)
{
	struct hps_addr at[2], from;
	int l[2], c[3], i;

	for (i = 0; i < 2; i++) {
		l[i] = hps_listen(&self->t, 4, &at[i]);
		ASSERT_OK(l[i]);
	}
	c[0] = reusing(&self->t, self->t.a);
	ASSERT_OK(c[0]);
	from = hps_name(c[0]);
	for (i = 1; i < 3; i++) {
		c[i] = reusing(&self->t, from);
		ASSERT_OK(c[i]);
	}
	ASSERT_OK(hps_connect(c[0], at[0]));
	ASSERT_OK(hps_connect(c[1], at[1]));
	EXPECT_ERRNO(EADDRNOTAVAIL, hps_connect(c[2], at[0]));
}

/* Children whose status is the errno of a bind to a privileged port. */
static int bind_as_nobody(const struct hps *t, int port)
{
	pid_t pid = hps_fork();

	if (!pid) {
		if (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
		    setresuid(NOBODY, NOBODY, NOBODY))
			_exit(255);
		_exit(hps_bound(t, 0, hps_at(t->b, port)) < 0 ? errno : 0);
	}
	return hps_reap(pid);
}

static int bind_with_cap(const struct hps *t, int port, bool keep)
{
	pid_t pid = hps_fork();

	if (!pid) {
		struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
		struct __user_cap_data_struct data[2];

		if (syscall(SYS_capget, &head, data))
			_exit(255);
		if (keep)
			data[0].effective = 1 << CAP_NET_BIND_SERVICE;
		else
			data[0].effective &= ~(1 << CAP_NET_BIND_SERVICE);
		if (syscall(SYS_capset, &head, data))
			_exit(255);
		_exit(hps_bound(t, 0, hps_at(t->b, port)) < 0 ? errno : 0);
	}
	return hps_reap(pid);
}

static int bind_in_namespace(const struct hps *t, int port, int flags)
{
	pid_t pid = hps_fork();

	if (!pid) {
		if (unshare(flags))
			_exit(254);
		_exit(hps_bound(t, 0, hps_any(t->af, port)) < 0 ? errno : 0);
	}
	return hps_reap(pid);
}

static int set_port_start(int port)
{
	FILE *f = fopen(PORT_START, "r+");
	int old;

	if (!f || fscanf(f, "%d", &old) != 1)
		return -1;
	rewind(f);
	fprintf(f, "%d\n", port);
	fclose(f);
	return old;
}

TEST_F(bind, privileged_port)
{
	if (geteuid())
		SKIP(return, "needs root");
	EXPECT_OK(hps_bound(&self->t, 0, hps_at(self->t.b, 771)));
	EXPECT_EQ(EACCES, bind_as_nobody(&self->t, 772));
	EXPECT_EQ(EACCES, bind_as_nobody(&self->t, 1));
	EXPECT_EQ(EACCES, bind_as_nobody(&self->t, 1023));
	EXPECT_EQ(0, bind_as_nobody(&self->t, 1024));
	EXPECT_EQ(0, bind_as_nobody(&self->t, 0));
	EXPECT_EQ(EACCES, bind_with_cap(&self->t, 773, false));
	EXPECT_EQ(0, bind_with_cap(&self->t, 773, true));
	/* A port in use is no business of who may not have it. */
	EXPECT_EQ(EACCES, bind_as_nobody(&self->t, 771));
}

TEST_F(bind, unprivileged_port_start)
{
	int old, low, high;

	if (geteuid())
		SKIP(return, "needs root");
	old = set_port_start(700);
	if (old < 0)
		SKIP(return, "cannot write " PORT_START);
	low = bind_as_nobody(&self->t, 699);
	high = bind_as_nobody(&self->t, 700);
	set_port_start(old);
	EXPECT_EQ(EACCES, low);
	EXPECT_EQ(0, high);
}

/* Root of a user namespace is nobody in a network namespace not its own. */
TEST_F(bind, user_namespace)
{
	int status = bind_in_namespace(&self->t, 774, CLONE_NEWUSER);

	if (status == 254)
		SKIP(return, "no user namespaces");
	EXPECT_EQ(EACCES, status);
	EXPECT_EQ(0, bind_in_namespace(&self->t, 1774, CLONE_NEWUSER));
}

TEST_F(bind, user_and_network_namespace)
{
	int status;

	ASSERT_OK(hps_put(NETNS_ENABLED, "1"));
	status = bind_in_namespace(&self->t, 774, CLONE_NEWUSER | CLONE_NEWNET);
	EXPECT_OK(hps_put(NETNS_ENABLED, "0"));
	if (status == 254)
		SKIP(return, "no user namespaces");
	EXPECT_EQ(0, status);
}

/* Each VRF has all ports. */
TEST_F(bind, vrf)
{
	struct hps_addr any = hps_any(variant->af, 0);
	int in, out;

	/* What a test before left that failed. */
	hps_run("ip link del hpsvrf 2>/dev/null");
	if (geteuid() || hps_run("ip link add hpsvrf type vrf table 1027 2>/dev/null"))
		SKIP(return, "needs root and VRF");
	out = hps_bound(&self->t, 0, any);
	ASSERT_OK(out);
	ASSERT_OK(listen(out, 1));
	any = hps_name(out);
	in = hps_socket(&self->t, 0);
	ASSERT_OK(in);
	EXPECT_ERRNO(EADDRINUSE, hps_bind(in, any));
	EXPECT_OK(setsockopt(in, SOL_SOCKET, SO_BINDTODEVICE, "hpsvrf", 7));
	EXPECT_OK(hps_bind(in, any));
	EXPECT_OK(listen(in, 1));
	EXPECT_ERRNO(EADDRINUSE, hps_bound(&self->t, 0, any));
	close(in);
	close(out);
	hps_run("ip link del hpsvrf");
}

TEST_HARNESS_MAIN
