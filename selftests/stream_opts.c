// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options and ioctls. What an option is after it was set is compared
 * with a TCP socket that was told the same.
 */
#include "hps_test.h"

#include <asm/ioctls.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/errqueue.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <net/if.h>

/* The C library's headers are older than some of these, or in the way of others. */
#ifndef TCP_TX_DELAY
#define TCP_TX_DELAY		37
#endif

/* What the C library's structure does not have yet */
struct info {
	struct tcp_info old;
	uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
	uint32_t segs_out, segs_in, notsent_bytes, min_rtt, data_segs_in, data_segs_out;
	uint64_t delivery_rate, busy_time, rwnd_limited, sndbuf_limited;
	uint32_t delivered, delivered_ce;
	uint64_t bytes_sent, bytes_retrans;
	uint32_t dsack_dups, reord_seen, rcv_ooopack, snd_wnd;
};

FIXTURE(opts) {
	struct hps t;
	int fd, ref;
};

HPS_VARIANTS(opts);

FIXTURE_SETUP(opts)
{
	hps_init(&self->t, variant->rdma, variant->af);
	self->fd = hps_socket(&self->t, 0);
	ASSERT_OK(self->fd);
	self->ref = socket(variant->af, SOCK_STREAM, 0);
	ASSERT_OK(self->ref);
}

FIXTURE_TEARDOWN(opts) { }

/* Set an option of both; -1 and errno if the outcome differs. */
static int both(int fd, int ref, int level, int name, int value)
{
	int ret[2], err[2];

	ret[0] = hps_set(fd, level, name, value);
	err[0] = errno;
	ret[1] = hps_set(ref, level, name, value);
	err[1] = errno;
	if (ret[0] == ret[1] && (!ret[0] || err[0] == err[1]) &&
	    hps_opt(fd, level, name) == hps_opt(ref, level, name))
		return 0;
	fprintf(stderr, "# option %d.%d=%d: %d (%s), TCP: %d (%s)\n", level, name, value,
		hps_opt(fd, level, name), ret[0] ? strerrorname_np(err[0]) : "ok",
		hps_opt(ref, level, name), ret[1] ? strerrorname_np(err[1]) : "ok");
	errno = EUCLEAN;
	return -1;
}

static const int values[] = { 0, 1, 2, 5, 100, 1000, 5000, 65536, 1 << 20, 1 << 30, -1, INT32_MIN };

TEST_F(opts, flags)
{
	static const int names[] = {
		SO_KEEPALIVE, SO_REUSEADDR, SO_OOBINLINE, SO_BROADCAST, SO_DONTROUTE, SO_REUSEPORT,
	};
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (names[i] == SO_REUSEPORT && !hps_shares_ports(&self->t))
			continue;	/* see below */
		EXPECT_EQ(0, hps_opt(self->fd, SOL_SOCKET, names[i]));
		for (j = 0; j < ARRAY_SIZE(values); j++)
			EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, names[i], values[j]));
	}
}

TEST_F(opts, buffers)
{
	static const int names[] = { SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		for (j = 0; j < ARRAY_SIZE(values); j++)
			EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, names[i], values[j]));
	ASSERT_OK(hps_set(self->fd, SOL_SOCKET, SO_SNDBUF, 50000));
	EXPECT_EQ(100000, hps_opt(self->fd, SOL_SOCKET, SO_SNDBUF));
	ASSERT_OK(hps_set(self->fd, SOL_SOCKET, SO_RCVBUF, 60000));
	EXPECT_EQ(120000, hps_opt(self->fd, SOL_SOCKET, SO_RCVBUF));
}

TEST_F(opts, numbers)
{
	static const int priority[] = { 0, 3, 6 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(priority); i++)
		EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_PRIORITY, priority[i]));
	EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVLOWAT, 1));
	EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVLOWAT, 0));
	for (i = 0; i < ARRAY_SIZE(values); i++)
		EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVLOWAT, values[i]));
	EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVBUF, 60000));
	EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVLOWAT, 1 << 20));
}

/* Every int there is, with values good and bad. */
TEST_F(opts, tcp)
{
	static const int names[] = {
		TCP_MAXSEG, TCP_SYNCNT, TCP_LINGER2, TCP_DEFER_ACCEPT, TCP_WINDOW_CLAMP,
		TCP_QUICKACK, TCP_USER_TIMEOUT, TCP_THIN_LINEAR_TIMEOUTS, TCP_NOTSENT_LOWAT,
		TCP_INQ,
	};
	static const int more[] = { 3, 4, 7, 8, 60, 87, 88, 120, 121, 127, 128, 32767, 32768 };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_EQ(hps_opt(self->ref, SOL_TCP, names[i]),
			  hps_opt(self->fd, SOL_TCP, names[i]));
		for (j = 0; j < ARRAY_SIZE(values); j++)
			EXPECT_OK(both(self->fd, self->ref, SOL_TCP, names[i], values[j]));
		for (j = 0; j < ARRAY_SIZE(more); j++)
			EXPECT_OK(both(self->fd, self->ref, SOL_TCP, names[i], more[j]));
	}
}

static void ip_options(struct __test_metadata *_metadata, int fd, int ref, int level,
		       const int *names, size_t count)
{
	static const int more[] = { 3, 4, 6, 63, 64, 184, 255, 256 };
	size_t i, j;

	for (i = 0; i < count; i++) {
		EXPECT_EQ(hps_opt(ref, level, names[i]), hps_opt(fd, level, names[i]));
		for (j = 0; j < ARRAY_SIZE(values); j++)
			EXPECT_OK(both(fd, ref, level, names[i], values[j]));
		for (j = 0; j < ARRAY_SIZE(more); j++)
			EXPECT_OK(both(fd, ref, level, names[i], more[j]));
	}
}

TEST_F(opts, ip)
{
	static const int names[] = {
		IP_TOS, IP_TTL, IP_MTU_DISCOVER, IP_RECVERR, IP_PKTINFO, IP_RECVTTL, IP_RECVTOS,
		IP_FREEBIND, IP_BIND_ADDRESS_NO_PORT,
	};
	int fd = self->fd, ref = self->ref;
	unsigned char byte = 0x28;
	socklen_t len = 1;
	uint32_t got = 0;

	ip_options(_metadata, fd, ref, SOL_IP, names, ARRAY_SIZE(names));
	/* The class says how urgent it is. */
	EXPECT_OK(both(fd, ref, SOL_IP, IP_TOS, 0x10));
	EXPECT_EQ(hps_opt(ref, SOL_SOCKET, SO_PRIORITY), hps_opt(fd, SOL_SOCKET, SO_PRIORITY));
	EXPECT_EQ(6, hps_opt(fd, SOL_SOCKET, SO_PRIORITY));
	/* A priority that is chosen afterwards stays with the class as it is. */
	EXPECT_OK(both(fd, ref, SOL_SOCKET, SO_PRIORITY, 2));
	EXPECT_OK(both(fd, ref, SOL_IP, IP_TOS, 0x10));
	EXPECT_EQ(2, hps_opt(ref, SOL_SOCKET, SO_PRIORITY));
	EXPECT_EQ(2, hps_opt(fd, SOL_SOCKET, SO_PRIORITY));
	/* A byte does as well. */
	EXPECT_OK(setsockopt(fd, SOL_IP, IP_TOS, &byte, 1));
	EXPECT_EQ(0x28, hps_opt(fd, SOL_IP, IP_TOS));
	EXPECT_OK(getsockopt(fd, SOL_IP, IP_TOS, &got, &len));
	EXPECT_EQ(1, len);
	EXPECT_EQ(0x28, got & 0xff);
	EXPECT_ERRNO(ENOTCONN, hps_opt(fd, SOL_IP, IP_MTU));
	EXPECT_ERRNO(ENOTCONN, hps_opt(ref, SOL_IP, IP_MTU));
}

TEST_F(opts, ipv6)
{
	static const int names[] = {
		IPV6_TCLASS, IPV6_UNICAST_HOPS, IPV6_MTU_DISCOVER, IPV6_DONTFRAG, IPV6_RECVERR,
		IPV6_RECVPKTINFO, IPV6_RECVHOPLIMIT, IPV6_RECVTCLASS, IPV6_FREEBIND,
	};

	if (self->t.af == AF_INET)
		SKIP(return, "TCP has the level with IPv6 alone");
	ip_options(_metadata, self->fd, self->ref, SOL_IPV6, names, ARRAY_SIZE(names));
	EXPECT_ERRNO(ENOTCONN, hps_opt(self->fd, SOL_IPV6, IPV6_MTU));
	EXPECT_ERRNO(ENOTCONN, hps_opt(self->ref, SOL_IPV6, IPV6_MTU));
	EXPECT_ERRNO(ENOTCONN, hps_opt(self->fd, SOL_IPV6, IPV6_ADDRFORM));
	EXPECT_ERRNO(ENOTCONN, hps_set(self->fd, SOL_IPV6, IPV6_ADDRFORM, AF_INET));
	EXPECT_ERRNO(EINVAL, hps_set(self->fd, SOL_IPV6, IPV6_ADDRFORM, AF_UNSPEC));
}

static const struct {
	int level, name;
} refused[] = {
	{ SOL_TCP, TCP_MD5SIG }, { SOL_TCP, TCP_REPAIR }, { SOL_TCP, TCP_FASTOPEN },
	{ SOL_TCP, TCP_FASTOPEN_CONNECT }, { SOL_TCP, TCP_SAVE_SYN }, { SOL_TCP, TCP_TX_DELAY },
	{ SOL_TCP, TCP_INFO }, { SOL_TCP, TCP_CC_INFO },
	{ SOL_IP, IP_TRANSPARENT }, { SOL_IP, IP_MINTTL }, { SOL_IP, IP_OPTIONS },
	{ SOL_IP, IP_UNICAST_IF }, { SOL_IP, IP_MTU },
	{ SOL_IPV6, IPV6_TRANSPARENT }, { SOL_IPV6, IPV6_MINHOPCOUNT },
	{ SOL_IPV6, IPV6_ADDR_PREFERENCES },
};

/* AF_HPSOCK alone: what cannot work is not accepted. */
TEST_F(opts, refused)
{
	size_t i;

	if (!self->t.rdma)
		SKIP(return, "of AF_HPSOCK alone");
	for (i = 0; i < ARRAY_SIZE(refused); i++)
		EXPECT_ERRNO(ENOPROTOOPT,
			     hps_set(self->fd, refused[i].level, refused[i].name, 1));
	if (!hps_shares_ports(&self->t)) {
		EXPECT_ERRNO(EOPNOTSUPP, hps_set(self->fd, SOL_SOCKET, SO_REUSEPORT, 1));
	}
}

/* Likewise, where the kernel lets a family have a say; accepted sockets too. */
TEST_F(opts, refused_socket)
{
	static const int names[] = { SO_MARK, SO_MAX_PACING_RATE, SO_TXTIME, SO_ATTACH_BPF };
	int tx = SOF_TIMESTAMPING_TX_SOFTWARE | SOF_TIMESTAMPING_SOFTWARE;
	int fds[2], i, c;
	size_t j;

	if (!self->t.rdma)
		SKIP(return, "of AF_HPSOCK alone");
	if (hps_kernel() < 603)
		SKIP(return, "the core accepts it without asking");
	fds[0] = self->fd;
	ASSERT_OK(hps_pair(&self->t, &c, &fds[1]));
	for (i = 0; i < 2; i++) {
		for (j = 0; j < ARRAY_SIZE(names); j++)
			EXPECT_ERRNO(EOPNOTSUPP, hps_set(fds[i], SOL_SOCKET, names[j], 5000));
		EXPECT_ERRNO(EOPNOTSUPP, hps_set(fds[i], SOL_SOCKET, SO_TIMESTAMPING, tx));
		EXPECT_EQ(0, hps_opt(fds[i], SOL_SOCKET, SO_MARK));
	}
}

TEST_F(opts, congestion)
{
	char name[16] = "";
	socklen_t len = sizeof(name);

	ASSERT_OK(getsockopt(self->fd, SOL_TCP, TCP_CONGESTION, name, &len));
	EXPECT_EQ(16, len);
	EXPECT_NE(0, name[0]);
	EXPECT_OK(setsockopt(self->fd, SOL_TCP, TCP_CONGESTION, name, strlen(name)));
	EXPECT_ERRNO(ENOENT, setsockopt(self->fd, SOL_TCP, TCP_CONGESTION, "nosuch", 6));
	EXPECT_ERRNO(EINVAL, setsockopt(self->fd, SOL_TCP, TCP_CONGESTION, name, 0));
	EXPECT_ERRNO(EFAULT, setsockopt(self->fd, SOL_TCP, TCP_CONGESTION, hps_unmapped(), 5));
	len = 100;
	EXPECT_OK(getsockopt(self->fd, SOL_TCP, TCP_CC_INFO, name, &len));
	EXPECT_EQ(0, len);
}

TEST_F(opts, port_range)
{
	int fd = self->fd, i, port;

	if (hps_kernel() < 603 && !self->t.rdma)
		SKIP(return, "TCP has none before 6.3");
	EXPECT_EQ(0, hps_opt(fd, SOL_IP, IP_LOCAL_PORT_RANGE));
	EXPECT_ERRNO(EINVAL, hps_set(fd, SOL_IP, IP_LOCAL_PORT_RANGE, 40000 << 16 | 40001));
	for (i = 0; i < 3; i++) {
		fd = hps_socket(&self->t, 0);
		ASSERT_OK(fd);
		ASSERT_OK(hps_set(fd, SOL_IP, IP_LOCAL_PORT_RANGE, 40015u << 16 | 40000));
		EXPECT_EQ((int)(40015u << 16 | 40000), hps_opt(fd, SOL_IP, IP_LOCAL_PORT_RANGE));
		ASSERT_OK(hps_bind(fd, self->t.a));
		port = hps_port_of(fd);
		EXPECT_LE(40000, port);
		EXPECT_GE(40015, port);
	}
}

TEST_F(opts, no_port)
{
	struct hps_addr at, from;
	int l = hps_listen(&self->t, 1, &at);
	int fd = self->fd, s;

	ASSERT_OK(l);
	ASSERT_OK(hps_set(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1));
	ASSERT_OK(hps_bind(fd, self->t.a));
	EXPECT_EQ(0, hps_port_of(fd));
	from = hps_name(fd);
	EXPECT_TRUE(hps_same_host(&self->t.a, &from));
	ASSERT_OK(hps_connect(fd, at));
	EXPECT_TRUE(hps_ephemeral(hps_port_of(fd)));
	s = hps_accept(l);
	ASSERT_OK(s);
	from = hps_peer(s);
	EXPECT_TRUE(hps_same_host(&self->t.a, &from));
	EXPECT_EQ(hps_port_of(fd), hps_port(&from));
	/* A port that is asked for is taken. */
	fd = hps_socket(&self->t, 0);
	ASSERT_OK(fd);
	ASSERT_OK(hps_set(fd, SOL_IP, IP_BIND_ADDRESS_NO_PORT, 1));
	ASSERT_OK(hps_bind(fd, hps_at(self->t.a, 40123)));
	EXPECT_EQ(40123, hps_port_of(fd));
}

/* An address that is not there yet can be listened at. */
TEST_F(opts, freebind)
{
	struct hps_addr none = hps_parse(self->t.af == AF_INET ? "192.0.2.9" : "2001:db8::9", 0);
	int level = self->t.af == AF_INET ? SOL_IP : SOL_IPV6;
	int name = self->t.af == AF_INET ? IP_FREEBIND : IPV6_FREEBIND;

	EXPECT_ERRNO(EADDRNOTAVAIL, hps_bind(self->fd, none));
	ASSERT_OK(hps_set(self->fd, level, name, 1));
	EXPECT_OK(hps_bind(self->fd, none));
	if (self->t.af == AF_INET) {
		EXPECT_ERRNO(ENETUNREACH, hps_connect(self->fd, hps_at(self->t.b, 5000)));
	}
	EXPECT_OK(listen(self->fd, 1));
}

TEST_F(opts, connected_tcp)
{
	int level = self->t.af == AF_INET ? SOL_IP : SOL_IPV6;
	int name = self->t.af == AF_INET ? IP_MTU : IPV6_MTU;
	int64_t end = hps_now() + hps_deadline();
	struct info info = {};
	socklen_t len = sizeof(info);
	struct hps_addr at;
	int c, s, l, mtu;

	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_LINGER2, 5));
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_USER_TIMEOUT, 77000));
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_NOTSENT_LOWAT, 7777));
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_INQ, 1));
	ASSERT_OK(hps_set(l, SOL_IP, IP_TOS, 0x28));
	ASSERT_OK(hps_set(l, SOL_IP, IP_TTL, 9));
	ASSERT_OK(hps_set(self->fd, SOL_TCP, TCP_MAXSEG, 500));
	ASSERT_OK(hps_bind(self->fd, self->t.a));
	ASSERT_OK(hps_connect(self->fd, at));
	c = self->fd;
	s = hps_accept(l);
	ASSERT_OK(s);

	/* From the listening socket */
	EXPECT_EQ(5, hps_opt(s, SOL_TCP, TCP_LINGER2));
	EXPECT_EQ(77000, hps_opt(s, SOL_TCP, TCP_USER_TIMEOUT));
	EXPECT_EQ(7777, hps_opt(s, SOL_TCP, TCP_NOTSENT_LOWAT));
	EXPECT_EQ(1, hps_opt(s, SOL_TCP, TCP_INQ));
	EXPECT_EQ(0x28, hps_opt(s, SOL_IP, IP_TOS));
	EXPECT_EQ(9, hps_opt(s, SOL_IP, IP_TTL));

	/* Of the connection */
	mtu = hps_opt(c, level, name);
	EXPECT_EQ(hps_number("/sys/class/net/v0/mtu", 0), mtu);
	EXPECT_EQ(hps_number("/sys/class/net/v1/mtu", 0), hps_opt(s, level, name));
	EXPECT_GE(500, hps_opt(c, SOL_TCP, TCP_MAXSEG));
	EXPECT_LE(400, hps_opt(c, SOL_TCP, TCP_MAXSEG));
	EXPECT_ERRNO(EINVAL, hps_set(c, SOL_TCP, TCP_WINDOW_CLAMP, 0));
	EXPECT_OK(hps_set(c, SOL_TCP, TCP_WINDOW_CLAMP, 100000));
	ASSERT_EQ(100000, hps_push(c, 100000, 30000, 1));
	ASSERT_EQ(100000, hps_pull(s, 100000, 30000, 1));
	ASSERT_OK(getsockopt(c, SOL_TCP, TCP_INFO, &info, &len));
	EXPECT_EQ(TCP_ESTABLISHED, info.old.tcpi_state);
	EXPECT_GE(500, info.old.tcpi_snd_mss);
	EXPECT_EQ(mtu, (int)info.old.tcpi_pmtu);
	EXPECT_EQ(0, info.notsent_bytes);
	EXPECT_LE(100000, info.bytes_sent);
	EXPECT_LE(200, info.data_segs_out);
	EXPECT_GE(60000, info.old.tcpi_last_data_sent);
	/* What was read last may not have been given back yet. */
	while (!info.snd_wnd && hps_now() < end) {
		usleep(1000);
		ASSERT_OK(getsockopt(c, SOL_TCP, TCP_INFO, &info, &len));
	}
	EXPECT_LT(0, info.snd_wnd);
}

/* The program that opened a v6 socket gets to hear v4 addresses. */
TEST_F(opts, addrform)
{
	struct hps_addr at, to = hps_parse("10.3.0.2", 0), name;
	int l, s, fd = self->fd;

	if (self->t.af == AF_INET)
		SKIP(return, "TCP has the level with IPv6 alone");
	l = hps_bound(&self->t, 0, hps_any(AF_INET6, 0));
	ASSERT_OK(l);
	ASSERT_OK(listen(l, 1));
	at = hps_name(l);
	ASSERT_OK(hps_connect(fd, hps_mapped(hps_at(to, hps_port(&at)))));
	s = hps_accept(l);
	ASSERT_OK(s);
	name = hps_peer(fd);
	EXPECT_EQ(AF_INET6, name.sa.sa_family);
	EXPECT_EQ(AF_INET6, hps_opt(fd, SOL_IPV6, IPV6_ADDRFORM));
	ASSERT_OK(hps_set(fd, SOL_IPV6, IPV6_ADDRFORM, AF_INET));
	name = hps_peer(fd);
	EXPECT_EQ(AF_INET, name.sa.sa_family);
	EXPECT_TRUE(hps_same_host(&to, &name));
	name = hps_name(fd);
	EXPECT_EQ(AF_INET, name.sa.sa_family);
	ASSERT_EQ(1000, hps_push(fd, 1000, 1000, 1));
	EXPECT_EQ(1000, hps_pull(s, 1000, 1000, 1));
}

/* As a socket that was opened with AF_INET6, which is what hpsock_run(1) makes it for. */
static int speak_ipv6(const struct hps *t, int fd)
{
	return t->rdma ? hps_set(fd, SOL_IPV6, IPV6_ADDRFORM, AF_INET6) : 0;
}

static int reach(const struct hps *t, int l, struct hps_addr at, struct hps_addr *peer)
{
	int c = hps_socket(t, 0), s;

	if (c < 0 || hps_connect(c, at))
		return -1;
	s = hps_accept(l);
	*peer = s < 0 ? hps_any(AF_INET, 0) : hps_peer(s);
	return s;
}

TEST_F(opts, opened_for_ipv6)
{
	struct hps_addr name, peer, to = hps_parse("10.3.0.2", 0);
	struct hps v4 = self->t;
	int l = self->fd;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	if (!v4.rdma)
		v4.domain = AF_INET;
	ASSERT_OK(speak_ipv6(&self->t, l));
	name = hps_name(l);
	EXPECT_EQ(AF_INET6, name.sa.sa_family);
	EXPECT_EQ(0, hps_port(&name));
	EXPECT_ERRNO(ENOPROTOOPT, hps_opt(l, 9999, 9999));
	/* All of both versions, though nothing has bound it. */
	ASSERT_OK(listen(l, 2));
	name = hps_name(l);
	EXPECT_EQ(AF_INET6, name.sa.sa_family);
	EXPECT_OK(reach(&self->t, l, hps_at(self->t.b, hps_port(&name)), &peer));
	EXPECT_EQ(AF_INET6, peer.sa.sa_family);
	EXPECT_FALSE(IN6_IS_ADDR_V4MAPPED(&((struct sockaddr_in6 *)&peer.ss)->sin6_addr));
	EXPECT_OK(reach(&v4, l, hps_at(to, hps_port(&name)), &peer));
	EXPECT_EQ(AF_INET6, peer.sa.sa_family);
	EXPECT_TRUE(IN6_IS_ADDR_V4MAPPED(&((struct sockaddr_in6 *)&peer.ss)->sin6_addr));
	/* Not any more. */
	EXPECT_ERRNO(EINVAL, hps_set(l, SOL_IPV6, IPV6_ADDRFORM, AF_INET6));
}

TEST_F(opts, opened_for_ipv6_only)
{
	struct hps_addr name, peer, to = hps_parse("10.3.0.2", 0);
	struct hps v4 = self->t;
	int l = self->fd;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	if (!v4.rdma)
		v4.domain = AF_INET;
	ASSERT_OK(speak_ipv6(&self->t, l));
	ASSERT_OK(hps_set(l, SOL_IPV6, IPV6_V6ONLY, 1));
	ASSERT_OK(listen(l, 2));
	name = hps_name(l);
	EXPECT_OK(reach(&self->t, l, hps_at(self->t.b, hps_port(&name)), &peer));
	EXPECT_ERRNO(ECONNREFUSED, reach(&v4, l, hps_at(to, hps_port(&name)), &peer));
}

/* What it was opened for stays when it is not connected any more. */
TEST_F(opts, opened_for_ipv6_and_parted)
{
	struct hps_addr at, name;
	int l = hps_listen(&self->t, 1, &at), fd;

	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	ASSERT_OK(l);
	ASSERT_OK(speak_ipv6(&self->t, self->fd));
	ASSERT_OK(hps_connect(self->fd, at));
	at.sa.sa_family = AF_UNSPEC;
	ASSERT_OK(hps_connect(self->fd, at));
	name = hps_name(self->fd);
	EXPECT_EQ(AF_INET6, name.sa.sa_family);
	EXPECT_TRUE(IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)&name.ss)->sin6_addr));
	/* Nor when it never was. */
	fd = hps_socket(&self->t, 0);
	ASSERT_OK(speak_ipv6(&self->t, fd));
	ASSERT_OK(hps_connect(fd, at));
	name = hps_name(fd);
	EXPECT_EQ(AF_INET6, name.sa.sa_family);
}

/* Three go with the connection, or what was to be one. */
TEST_F(opts, parted)
{
	int c = hps_bound(&self->t, 0, self->t.b);
	bool peeks = !hps_set(self->ref, SOL_SOCKET, SO_PEEK_OFF, -1);
	struct hps_addr none = self->t.b;
	int i, fd[2] = { self->fd, self->ref };

	none.sa.sa_family = AF_UNSPEC;
	for (i = 0; i < 2; i++) {
		ASSERT_OK(hps_set(fd[i], SOL_TCP, TCP_MAXSEG, 1000));
		ASSERT_OK(hps_set(fd[i], SOL_TCP, TCP_WINDOW_CLAMP, 100000));
		ASSERT_OK(hps_set(fd[i], SOL_TCP, TCP_KEEPIDLE, 77));
		EXPECT_EQ(1000, hps_opt(fd[i], SOL_TCP, TCP_MAXSEG));
		EXPECT_EQ(100000, hps_opt(fd[i], SOL_TCP, TCP_WINDOW_CLAMP));
		ASSERT_OK(hps_connect(fd[i], none));
		EXPECT_NE(1000, hps_opt(fd[i], SOL_TCP, TCP_MAXSEG));
		EXPECT_EQ(0, hps_opt(fd[i], SOL_TCP, TCP_WINDOW_CLAMP));
		EXPECT_EQ(77, hps_opt(fd[i], SOL_TCP, TCP_KEEPIDLE));
	}
	for (i = 0; i < 2 && peeks; i++) {
		ASSERT_OK(hps_set(fd[i], SOL_SOCKET, SO_PEEK_OFF, 5));
		ASSERT_ERRNO(ECONNREFUSED, hps_connect(fd[i], hps_name(c)));
		EXPECT_EQ(-1, hps_opt(fd[i], SOL_SOCKET, SO_PEEK_OFF));
	}
}

/* What counts a connection's bytes needs one. */
TEST_F(opts, timestamping_id)
{
	int id = SOF_TIMESTAMPING_OPT_ID | SOF_TIMESTAMPING_SOFTWARE, c, s;

	if (self->t.rdma && hps_kernel() < 603)
		SKIP(return, "the core accepts it without asking");
	EXPECT_ERRNO(EINVAL, hps_set(self->fd, SOL_SOCKET, SO_TIMESTAMPING, id));
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	EXPECT_OK(hps_set(c, SOL_SOCKET, SO_TIMESTAMPING, id));
}

/* Known before there was data: programs choose who serves a connection by it. */
TEST_F(opts, incoming_cpu)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at), s;

	ASSERT_OK(l);
	EXPECT_EQ(-1, hps_opt(self->fd, SOL_SOCKET, SO_INCOMING_CPU));
	ASSERT_OK(hps_connect(self->fd, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_LE(0, hps_opt(s, SOL_SOCKET, SO_INCOMING_CPU));
	EXPECT_LE(0, hps_opt(self->fd, SOL_SOCKET, SO_INCOMING_CPU));
}

/* Only the interface that leads there will do. */
TEST_F(opts, device)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 2, &at);
	int fd = hps_client(&self->t, 0);

	ASSERT_OK(l);
	ASSERT_OK(fd);
	ASSERT_OK(setsockopt(self->fd, SOL_SOCKET, SO_BINDTODEVICE, "v0", 3));
	ASSERT_OK(hps_bind(self->fd, self->t.a));
	EXPECT_OK(hps_connect(self->fd, at));
	EXPECT_OK(hps_accept(l));
	if (setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "dummy0", 7) &&
	    (system("ip link add dummy0 type dummy") ||
	     setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "dummy0", 7)))
		SKIP(return, "no other interface");
	EXPECT_EQ(-1, hps_connect(fd, at));
}

/* Never more than half of the buffer, which grows for it if it may. */
TEST_F(opts, lowat)
{
	const int lowat[] = { 1000, 50000, 50001, 1 << 20, -1, 0 };
	size_t i;

	EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVLOWAT, 1 << 20));
	EXPECT_EQ(1 << 20, hps_opt(self->fd, SOL_SOCKET, SO_RCVLOWAT));
	EXPECT_LT(1 << 20, hps_opt(self->ref, SOL_SOCKET, SO_RCVBUF));
	EXPECT_LT(1 << 20, hps_opt(self->fd, SOL_SOCKET, SO_RCVBUF));
	EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVBUF, 50000));
	for (i = 0; i < ARRAY_SIZE(lowat); i++)
		EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVLOWAT, lowat[i]));
	EXPECT_EQ(100000, hps_opt(self->fd, SOL_SOCKET, SO_RCVBUF));
}

TEST_F(opts, keepalive)
{
	static const int names[] = { TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT };
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		EXPECT_EQ(hps_opt(self->ref, IPPROTO_TCP, names[i]),
			  hps_opt(self->fd, IPPROTO_TCP, names[i]));
		for (j = 0; j < ARRAY_SIZE(values); j++)
			EXPECT_OK(both(self->fd, self->ref, IPPROTO_TCP, names[i], values[j]));
	}
}

TEST_F(opts, linger)
{
	struct linger set[] = { { 1, 5 }, { 1, 0 }, { 0, 9 }, { 7, 3 } };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(set); i++) {
		struct linger got = { -1, -1 }, want = { -1, -1 };
		socklen_t len = sizeof(got);

		ASSERT_OK(setsockopt(self->fd, SOL_SOCKET, SO_LINGER, &set[i], sizeof(set[i])));
		ASSERT_OK(setsockopt(self->ref, SOL_SOCKET, SO_LINGER, &set[i], sizeof(set[i])));
		ASSERT_OK(getsockopt(self->fd, SOL_SOCKET, SO_LINGER, &got, &len));
		ASSERT_OK(getsockopt(self->ref, SOL_SOCKET, SO_LINGER, &want, &len));
		EXPECT_EQ(want.l_onoff, got.l_onoff);
		EXPECT_EQ(want.l_linger, got.l_linger);
	}
	EXPECT_ERRNO(EINVAL, setsockopt(self->fd, SOL_SOCKET, SO_LINGER, set, 4));
}

TEST_F(opts, timeouts)
{
	static const int names[] = { SO_RCVTIMEO, SO_SNDTIMEO };
	struct timeval set[] = { { 0, 0 }, { 5, 0 }, { 0, 1 }, { 1, 500000 }, { -1, 0 } };
	struct timeval bad = { 0, 1000000 };
	size_t i, j;

	for (i = 0; i < 2; i++) {
		for (j = 0; j < ARRAY_SIZE(set); j++) {
			struct timeval got = { -1, -1 }, want = { -1, -1 };
			socklen_t len = sizeof(got);

			ASSERT_OK(setsockopt(self->fd, SOL_SOCKET, names[i], &set[j], len));
			ASSERT_OK(setsockopt(self->ref, SOL_SOCKET, names[i], &set[j], len));
			ASSERT_OK(getsockopt(self->fd, SOL_SOCKET, names[i], &got, &len));
			ASSERT_OK(getsockopt(self->ref, SOL_SOCKET, names[i], &want, &len));
			EXPECT_EQ(want.tv_sec, got.tv_sec);
			EXPECT_EQ(want.tv_usec, got.tv_usec);
		}
		EXPECT_ERRNO(EDOM, setsockopt(self->fd, SOL_SOCKET, names[i], &bad, sizeof(bad)));
		EXPECT_ERRNO(EINVAL, setsockopt(self->fd, SOL_SOCKET, names[i], &bad, 4));
	}
}

TEST_F(opts, nodelay)
{
	size_t i;

	EXPECT_EQ(0, hps_opt(self->fd, SOL_TCP, TCP_NODELAY));
	for (i = 0; i < ARRAY_SIZE(values); i++)
		EXPECT_OK(both(self->fd, self->ref, SOL_TCP, TCP_NODELAY, values[i]));
	EXPECT_EQ(0, hps_opt(self->fd, SOL_TCP, TCP_CORK));
	EXPECT_OK(both(self->fd, self->ref, SOL_TCP, TCP_CORK, 1));
	EXPECT_OK(both(self->fd, self->ref, SOL_TCP, TCP_CORK, 0));
}

TEST_F(opts, v6only)
{
	if (self->t.af == AF_INET)
		SKIP(return, "of IPv6 alone");
	EXPECT_EQ(hps_opt(self->ref, SOL_IPV6, IPV6_V6ONLY),
		  hps_opt(self->fd, SOL_IPV6, IPV6_V6ONLY));
	EXPECT_OK(both(self->fd, self->ref, SOL_IPV6, IPV6_V6ONLY, 1));
	EXPECT_OK(both(self->fd, self->ref, SOL_IPV6, IPV6_V6ONLY, 0));
	EXPECT_OK(both(self->fd, self->ref, SOL_IPV6, IPV6_V6ONLY, 2));
}

/* As at the start, AF_HPSOCK also speaks IPv4. */
static int unknown_level(const struct hps *t)
{
	return t->domain == AF_INET6 ? ENOPROTOOPT : EOPNOTSUPP;
}

TEST_F(opts, unknown)
{
	static const int level[] = { SOL_SOCKET, SOL_TCP, IPPROTO_UDP, 9999 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(level); i++)
		EXPECT_ERRNO(ENOPROTOOPT, hps_set(self->fd, level[i], 9999, 1));
	EXPECT_ERRNO(ENOPROTOOPT, hps_opt(self->fd, SOL_SOCKET, 9999));
	EXPECT_ERRNO(ENOPROTOOPT, hps_opt(self->fd, SOL_TCP, 9999));
	/* TCP over IPv4 has another word for it than TCP over IPv6. */
	EXPECT_ERRNO(unknown_level(&self->t), hps_opt(self->fd, IPPROTO_UDP, 9999));
	EXPECT_ERRNO(unknown_level(&self->t), hps_opt(self->fd, 9999, 9999));
}

/* Without one, its name is empty; libraries ask before they offer kTLS. */
TEST_F(opts, no_ulp)
{
	char name[16] = "unchanged";
	socklen_t len = sizeof(name);

	ASSERT_OK(getsockopt(self->fd, IPPROTO_TCP, TCP_ULP, name, &len));
	EXPECT_EQ(0, len);
	EXPECT_STREQ("unchanged", name);
	EXPECT_ERRNO(ENOENT, setsockopt(self->fd, IPPROTO_TCP, TCP_ULP, "nosuch", 6));
	/* TCP of this kernel may have it. */
	if (self->t.rdma) {
		EXPECT_ERRNO(ENOENT, setsockopt(self->fd, IPPROTO_TCP, TCP_ULP, "tls", 3));
	}
}

TEST_F(opts, read_only)
{
	static const int names[] = { SO_TYPE, SO_DOMAIN, SO_PROTOCOL, SO_ERROR, SO_ACCEPTCONN };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++)
		EXPECT_ERRNO(ENOPROTOOPT, hps_set(self->fd, SOL_SOCKET, names[i], 1));
}

TEST_F(opts, lengths)
{
	int value = 1, got = 0x5a5a5a5a;
	int longer[4] = { 1 };
	socklen_t len;

	EXPECT_ERRNO(EINVAL, setsockopt(self->fd, SOL_SOCKET, SO_KEEPALIVE, &value, 3));
	EXPECT_ERRNO(EINVAL, setsockopt(self->fd, SOL_SOCKET, SO_KEEPALIVE, &value, 0));
	EXPECT_ERRNO(EINVAL, setsockopt(self->fd, SOL_SOCKET, SO_KEEPALIVE, &value, -1));
	EXPECT_ERRNO(EINVAL, setsockopt(self->fd, SOL_TCP, TCP_NODELAY, &value, 3));
	EXPECT_ERRNO(EINVAL, setsockopt(self->fd, SOL_TCP, TCP_NODELAY, &value, 0));
	EXPECT_ERRNO(EINVAL, setsockopt(self->fd, SOL_TCP, TCP_NODELAY, &value, -1));
	EXPECT_OK(setsockopt(self->fd, SOL_TCP, TCP_NODELAY, &value, 4));
	EXPECT_OK(setsockopt(self->fd, SOL_TCP, TCP_NODELAY, longer, sizeof(longer)));

	len = 1;
	EXPECT_OK(getsockopt(self->fd, SOL_TCP, TCP_NODELAY, &got, &len));
	EXPECT_EQ(1, len);
	EXPECT_EQ(0x5a5a5a01, got);
	len = 0;
	EXPECT_OK(getsockopt(self->fd, SOL_TCP, TCP_NODELAY, &got, &len));
	EXPECT_EQ(0, len);
	len = 100;
	EXPECT_OK(getsockopt(self->fd, SOL_TCP, TCP_NODELAY, &got, &len));
	EXPECT_EQ(4, len);
	EXPECT_EQ(1, got);
	len = -1;
	EXPECT_ERRNO(EINVAL, getsockopt(self->fd, SOL_TCP, TCP_NODELAY, &got, &len));
	len = -1;
	EXPECT_ERRNO(EINVAL, getsockopt(self->fd, SOL_SOCKET, SO_KEEPALIVE, &got, &len));
}

TEST_F(opts, faults)
{
	int value = 1;
	socklen_t len = 4;

	EXPECT_ERRNO(EFAULT, setsockopt(self->fd, SOL_SOCKET, SO_KEEPALIVE, hps_unmapped(), 4));
	EXPECT_ERRNO(EFAULT, setsockopt(self->fd, SOL_TCP, TCP_NODELAY, hps_unmapped(), 4));
	EXPECT_ERRNO(EFAULT, getsockopt(self->fd, SOL_TCP, TCP_NODELAY, hps_unmapped(), &len));
	len = 4;
	EXPECT_ERRNO(EFAULT, getsockopt(self->fd, SOL_SOCKET, SO_KEEPALIVE, hps_unmapped(), &len));
	EXPECT_ERRNO(EFAULT, getsockopt(self->fd, SOL_TCP, TCP_NODELAY, &value, hps_unmapped()));
	EXPECT_ERRNO(EFAULT, ioctl(self->fd, FIONREAD, hps_unmapped()));
}

TEST_F(opts, ioctls)
{
	int on = 1, value;

	EXPECT_OK(ioctl(self->fd, FIONBIO, &on));
	EXPECT_NE(0, fcntl(self->fd, F_GETFL) & O_NONBLOCK);
	on = 0;
	EXPECT_OK(ioctl(self->fd, FIONBIO, &on));
	EXPECT_EQ(0, fcntl(self->fd, F_GETFL) & O_NONBLOCK);
	EXPECT_OK(ioctl(self->fd, FIONREAD, &value));
	EXPECT_EQ(0, value);
	EXPECT_OK(ioctl(self->fd, TIOCOUTQ, &value));
	EXPECT_EQ(0, value);
	EXPECT_ERRNO(ENOTTY, ioctl(self->fd, 0x1234, &value));
	ASSERT_OK(listen(self->fd, 1));
	EXPECT_ERRNO(EINVAL, ioctl(self->fd, FIONREAD, &value));
	EXPECT_ERRNO(EINVAL, ioctl(self->fd, TIOCOUTQ, &value));
}

/* An interface's addresses, routes, and neighbours are asked for on any socket. */
TEST_F(opts, ioctls_of_ip)
{
	static const unsigned long cmds[] = {
		SIOCGIFADDR, SIOCGIFNETMASK, SIOCGIFBRDADDR, SIOCGIFDSTADDR, SIOCGIFFLAGS,
		SIOCGIFINDEX, SIOCGIFMTU, SIOCGIFHWADDR, SIOCGARP, SIOCRTMSG, SIOCADDRT,
		SIOCSIFADDR,
	};
	static const char * const names[] = { "v0", "lo", "none", "" };
	int tcp = socket(variant->rdma ? AF_INET : variant->af, SOCK_STREAM, 0);
	size_t i, k;

	ASSERT_OK(tcp);
	for (i = 0; i < ARRAY_SIZE(cmds); i++) {
		for (k = 0; k < ARRAY_SIZE(names); k++) {
			/* Some take more than that. */
			union {
				struct ifreq ifr;
				char room[256];
			} got = {}, want = {};
			int err = 0, wanted = 0;

			memcpy(got.ifr.ifr_name, names[k], strlen(names[k]));
			want = got;
			if (ioctl(tcp, cmds[i], &want))
				wanted = errno;
			if (ioctl(self->fd, cmds[i], &got))
				err = errno;
			EXPECT_EQ(wanted, err) TH_LOG("%#lx of \"%s\"", cmds[i], names[k]);
			EXPECT_EQ(0, memcmp(&want, &got, sizeof(got)));
		}
		EXPECT_EQ(-1, ioctl(tcp, cmds[i], hps_unmapped()));
		EXPECT_ERRNO(errno, ioctl(self->fd, cmds[i], hps_unmapped()));
	}
	close(tcp);
}

TEST_F(opts, peername)
{
	struct hps_addr got = { .len = sizeof(got.ss) }, want;
	int c, s;

	EXPECT_ERRNO(ENOTCONN, getsockopt(self->fd, SOL_SOCKET, SO_PEERNAME, &got.sa, &got.len));
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	want = hps_peer(c);
	got.len = want.len;
	EXPECT_OK(getsockopt(c, SOL_SOCKET, SO_PEERNAME, &got.sa, &got.len));
	EXPECT_TRUE(hps_same(&want, &got));
}

/* A connection in any state can be asked. */
TEST_F(opts, connected)
{
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	EXPECT_OK(hps_set(c, SOL_TCP, TCP_NODELAY, 1));
	EXPECT_EQ(1, hps_opt(c, SOL_TCP, TCP_NODELAY));
	EXPECT_EQ(0, hps_opt(s, SOL_TCP, TCP_NODELAY));
	EXPECT_OK(hps_set(s, SOL_SOCKET, SO_SNDBUF, 30000));
	EXPECT_EQ(60000, hps_opt(s, SOL_SOCKET, SO_SNDBUF));
	EXPECT_LT(0, hps_opt(c, SOL_TCP, TCP_MAXSEG));
	ASSERT_OK(hps_reset(c));
	EXPECT_TRUE(hps_wait(s, POLLERR) & POLLERR);
	EXPECT_EQ(1, hps_opt(s, SOL_SOCKET, SO_RCVLOWAT));
	EXPECT_OK(hps_set(s, SOL_TCP, TCP_NODELAY, 1));
	EXPECT_EQ(1, hps_opt(s, SOL_TCP, TCP_NODELAY));
}

TEST_F(opts, cork)
{
	char buf[64];
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_CORK, 1));
	EXPECT_EQ(5, send(c, "hello", 5, 0));
	EXPECT_EQ(5, send(c, "world", 5, 0));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_CORK, 0));
	EXPECT_EQ(10, recv(s, buf, 10, MSG_WAITALL));
	/* Nothing corked is lost at the end. */
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_CORK, 1));
	EXPECT_EQ(5, send(c, "hello", 5, 0));
	ASSERT_OK(close(c));
	EXPECT_EQ(5, recv(s, buf, 10, MSG_WAITALL));
}

/* TCP_NODELAY has what is corked sent, but what comes after it is held. */
TEST_F(opts, nodelay_over_cork)
{
	int64_t end = hps_now() + hps_deadline(), took;
	int c, s, quick = 0, rounds = 0, held = 0;
	char buf[64];

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_CORK, 1));
	for (; quick < 3 && hps_now() < end; rounds++) {
		took = hps_now();
		ASSERT_EQ(5, send(c, "hello", 5, 0));
		ASSERT_OK(hps_set(c, SOL_TCP, TCP_NODELAY, 1));
		ASSERT_EQ(5, recv(s, buf, 5, MSG_WAITALL));
		quick += hps_now() - took < 100;
		ASSERT_EQ(5, send(c, "world", 5, 0));
		ASSERT_EQ(5, recv(s, buf, 5, MSG_WAITALL));
		held += hps_now() - took > 150;
	}
	EXPECT_LT(2, quick);
	EXPECT_EQ(rounds, held);
	/* To cork sends nothing. */
	took = hps_now();
	ASSERT_EQ(5, send(c, "hello", 5, 0));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_CORK, 1));
	ASSERT_EQ(5, recv(s, buf, 5, MSG_WAITALL));
	EXPECT_LT(150, hps_now() - took);
}

/* What is corked is held for 200 ms, also if something before it was for some of them. */
TEST_F(opts, cork_anew)
{
	int64_t held;
	char buf[8];
	int c, s, i;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	for (i = 0; i < 2; i++) {
		ASSERT_OK(hps_set(c, SOL_TCP, TCP_CORK, 1));
		ASSERT_EQ(1, send(c, "a", 1, 0));
		usleep(100000);
		ASSERT_OK(hps_set(c, SOL_TCP, i ? TCP_NODELAY : TCP_CORK, i));
		ASSERT_EQ(1, recv(s, buf, 1, 0));
		usleep(50000);
		ASSERT_OK(hps_set(c, SOL_TCP, TCP_CORK, 1));
		held = hps_now();
		ASSERT_EQ(1, send(c, "b", 1, 0));
		ASSERT_EQ(1, recv(s, buf, 1, 0));
		EXPECT_LT(150, hps_now() - held);
	}
}

static int send_control(int fd, int level, int type, size_t len, uint32_t value)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(value))];
	} control = { .head = { len, level, type } };
	struct iovec iov = { "x", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
			      .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &value, sizeof(value));
	return sendmsg(fd, &msg, MSG_NOSIGNAL) < 0 ? errno : 0;
}

/* TCP's checks; AF_HPSOCK says so where it cannot do what it is asked for. */
TEST_F(opts, control_messages)
{
	size_t len = CMSG_LEN(sizeof(uint32_t));
	int cannot = self->t.rdma ? EOPNOTSUPP : 0, c, s;
	char buf[8];

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	EXPECT_EQ(EINVAL, send_control(c, SOL_SOCKET, 0x7777, len, 0));
	EXPECT_EQ(EINVAL, send_control(c, SOL_SOCKET, SCM_RIGHTS, 3, 0));
	EXPECT_EQ(EINVAL, send_control(c, SOL_SOCKET, SO_MARK, len + 1, 1));
	EXPECT_EQ(EINVAL, send_control(c, SOL_SOCKET, SCM_TXTIME, len, 1));
	EXPECT_EQ(EINVAL, send_control(c, SOL_SOCKET, SO_TIMESTAMPING, len,
				       SOF_TIMESTAMPING_RX_SOFTWARE));
	EXPECT_EQ(cannot, send_control(c, SOL_SOCKET, SO_TIMESTAMPING, len,
				       SOF_TIMESTAMPING_TX_SOFTWARE));
	EXPECT_EQ(cannot, send_control(c, SOL_SOCKET, SO_MARK, len, 1));
	EXPECT_EQ(0, send_control(c, SOL_SOCKET, SCM_RIGHTS, len, 1));
	EXPECT_EQ(0, send_control(c, SOL_IP, IP_TOS, len, 1));
	/* What was refused sent nothing. */
	ASSERT_OK(shutdown(c, SHUT_WR));
	EXPECT_EQ(EPIPE, send_control(c, SOL_SOCKET, 0x7777, len, 0));
	EXPECT_EQ(cannot ? 2 : 4, recv(s, buf, 8, MSG_WAITALL));
}

/* A cmsg of this type, or NULL. */
static void *cmsg_of(struct msghdr *msg, int level, int type)
{
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(msg); cmsg; cmsg = CMSG_NXTHDR(msg, cmsg))
		if (cmsg->cmsg_level == level && cmsg->cmsg_type == type)
			return CMSG_DATA(cmsg);
	return NULL;
}

static ssize_t receive(int fd, struct msghdr *msg, void *buf, size_t len, int flags)
{
	static char control[256];
	static struct iovec iov;

	iov = (struct iovec){ buf, len };
	*msg = (struct msghdr){ .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
				.msg_controllen = sizeof(control) };
	return recvmsg(fd, msg, flags);
}

/* What the peer has still to read here, in messages of its size. */
TEST_F(opts, unacked)
{
	int64_t end = hps_now() + hps_deadline();
	struct info info = { 0 };
	char *buf = hps_memory(1 << 20);
	socklen_t len = sizeof(info);
	int c, s;

	ASSERT_NE(NULL, buf);
	ASSERT_OK(hps_pair_lending(&self->t, &c, &s));
	hps_buffers(s, 4096);
	ASSERT_OK(hps_zerocopy(&self->t, c));
	ASSERT_LT(65536, send(c, buf, 1 << 20, MSG_ZEROCOPY | MSG_DONTWAIT));
	ASSERT_OK(getsockopt(c, SOL_TCP, TCP_INFO, &info, &len));
	if (self->t.rdma) {
		EXPECT_LT(0, info.old.tcpi_unacked);
		EXPECT_LE(info.bytes_sent - info.bytes_acked,
			  (uint64_t)info.old.tcpi_unacked * info.old.tcpi_snd_mss);
	}
	do {
		while (recv(s, buf, 1 << 20, MSG_DONTWAIT) > 0)
			;
		ASSERT_OK(getsockopt(c, SOL_TCP, TCP_INFO, &info, &len));
	} while ((info.old.tcpi_unacked || info.notsent_bytes) && hps_now() < end);
	EXPECT_EQ(0, info.old.tcpi_unacked);
}

TEST_F(opts, inq)
{
	struct msghdr msg;
	char buf[100];
	int c, s, *inq;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_EQ(100, send(c, buf, 100, 0));
	ASSERT_TRUE(hps_until_inq(s, 100));
	ASSERT_EQ(10, receive(s, &msg, buf, 10, 0));
	EXPECT_EQ(NULL, cmsg_of(&msg, SOL_TCP, TCP_CM_INQ));
	ASSERT_OK(hps_set(s, SOL_TCP, TCP_INQ, 1));
	ASSERT_EQ(10, receive(s, &msg, buf, 10, 0));
	inq = cmsg_of(&msg, SOL_TCP, TCP_CM_INQ);
	ASSERT_NE(NULL, inq);
	EXPECT_EQ(80, *inq);
	ASSERT_EQ(80, receive(s, &msg, buf, 80, 0));
	inq = cmsg_of(&msg, SOL_TCP, TCP_CM_INQ);
	ASSERT_NE(NULL, inq);
	EXPECT_EQ(0, *inq);
	/* There is something to be read then: the end. */
	ASSERT_OK(shutdown(c, SHUT_WR));
	ASSERT_EQ(0, receive(s, &msg, buf, 80, 0));
	inq = cmsg_of(&msg, SOL_TCP, TCP_CM_INQ);
	ASSERT_NE(NULL, inq);
	EXPECT_EQ(1, *inq);
}

static bool lately(int64_t sec, int64_t nsec)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return nsec >= 0 && nsec < 1000000000 && sec <= now.tv_sec && sec > now.tv_sec - 60;
}

/* A byte sent and received with its time. TCP begins to stamp a while after it is asked to. */
static void *stamped(int c, int s, struct msghdr *msg, int type)
{
	int64_t end = hps_now() + hps_deadline();
	void *stamp = NULL;
	char byte;

	while (!stamp && hps_now() < end) {
		if (send(c, "x", 1, 0) != 1 || receive(s, msg, &byte, 1, 0) != 1)
			return NULL;
		stamp = cmsg_of(msg, SOL_SOCKET, type);
	}
	return stamp;
}

/* When what was read came in */
TEST_F(opts, timestamps)
{
	struct msghdr msg;
	struct timespec *ts;
	struct timeval *tv;
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_TIMESTAMP, 1));
	tv = stamped(c, s, &msg, SO_TIMESTAMP);
	ASSERT_NE(NULL, tv);
	EXPECT_TRUE(lately(tv->tv_sec, tv->tv_usec * 1000));

	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_TIMESTAMPNS, 1));
	ts = stamped(c, s, &msg, SO_TIMESTAMPNS);
	ASSERT_NE(NULL, ts);
	EXPECT_TRUE(lately(ts->tv_sec, ts->tv_nsec));
	EXPECT_EQ(NULL, cmsg_of(&msg, SOL_SOCKET, SO_TIMESTAMP));

	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_TIMESTAMPNS_NEW, 1));
	EXPECT_NE(NULL, stamped(c, s, &msg, SO_TIMESTAMPNS_NEW));

	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_TIMESTAMPNS, 0));
	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_TIMESTAMPING,
			  SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_RX_SOFTWARE));
	ts = stamped(c, s, &msg, SO_TIMESTAMPING);
	ASSERT_NE(NULL, ts);
	EXPECT_EQ(NULL, cmsg_of(&msg, SOL_SOCKET, SO_TIMESTAMP));
	EXPECT_EQ(NULL, cmsg_of(&msg, SOL_SOCKET, SO_TIMESTAMPNS));
	EXPECT_TRUE(lately(ts[0].tv_sec, ts[0].tv_nsec));
	EXPECT_EQ(0, ts[1].tv_sec | ts[2].tv_sec);
}

/* Where MSG_PEEK begins, kept right by whatever is read */
TEST_F(opts, peek_off)
{
	char buf[16];
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	if (!self->t.rdma && hps_kernel() < 609)
		SKIP(return, "TCP has none before 6.9");
	EXPECT_EQ(-1, hps_opt(s, SOL_SOCKET, SO_PEEK_OFF));
	ASSERT_EQ(4, send(c, "abcd", 4, 0));
	ASSERT_TRUE(hps_until_inq(s, 4));
	ASSERT_EQ(6, send(c, "efghij", 6, 0));
	ASSERT_TRUE(hps_until_inq(s, 10));
	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_PEEK_OFF, 2));
	ASSERT_EQ(3, recv(s, buf, 3, MSG_PEEK));
	EXPECT_EQ(0, memcmp(buf, "cde", 3));
	EXPECT_EQ(5, hps_opt(s, SOL_SOCKET, SO_PEEK_OFF));
	ASSERT_EQ(2, recv(s, buf, 2, MSG_PEEK));
	EXPECT_EQ(0, memcmp(buf, "fg", 2));
	ASSERT_EQ(4, recv(s, buf, 4, 0));
	EXPECT_EQ(0, memcmp(buf, "abcd", 4));
	EXPECT_EQ(3, hps_opt(s, SOL_SOCKET, SO_PEEK_OFF));
	ASSERT_EQ(3, recv(s, buf, 16, MSG_PEEK));
	EXPECT_EQ(0, memcmp(buf, "hij", 3));
	EXPECT_ERRNO(EAGAIN, recv(s, buf, 16, MSG_PEEK | MSG_DONTWAIT));
	ASSERT_EQ(1, send(c, "k", 1, 0));
	ASSERT_EQ(1, recv(s, buf, 16, MSG_PEEK));
	EXPECT_EQ('k', buf[0]);
	ASSERT_EQ(2, recv(s, NULL, 2, MSG_TRUNC));
	EXPECT_EQ(5, hps_opt(s, SOL_SOCKET, SO_PEEK_OFF));
	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_PEEK_OFF, -1));
	ASSERT_EQ(5, recv(s, buf, 16, MSG_PEEK));
	EXPECT_EQ(0, memcmp(buf, "ghijk", 5));
	EXPECT_EQ(-1, hps_opt(s, SOL_SOCKET, SO_PEEK_OFF));
}

/* What is there is enough, once less is asked for. */
TEST_F(opts, rcvlowat)
{
	struct hps_call call = { .fn = hps_poll_call, .arg = POLLIN };
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_RCVLOWAT, 100));
	ASSERT_EQ(5, send(c, "abcde", 5, 0));
	ASSERT_TRUE(hps_until_inq(s, 5));
	EXPECT_EQ(0, hps_poll(s, POLLIN, 0));
	call.fd = s;
	hps_block(&call);
	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_RCVLOWAT, 5));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLIN, call.ret);
}

/* The class of the packets that go from a to b while data does, -1 if there are none. */
static int class_of(struct hps *t, int packets, int c, int s)
{
	int64_t end = hps_now() + hps_deadline();
	uint8_t ip[64];
	ssize_t n;

	if (hps_push(c, 20000, 20000, 1) != 20000 || hps_pull(s, 20000, 20000, 1) != 20000)
		return -1;
	while (hps_now() < end) {
		struct sockaddr_ll from;
		socklen_t len = sizeof(from);

		n = recvfrom(packets, ip, sizeof(ip), MSG_TRUNC, (struct sockaddr *)&from, &len);
		/* The data, not an answer, and not what belongs to no connection */
		if (n < 1000 || from.sll_pkttype != PACKET_OUTGOING)
			continue;
		if (t->af == AF_INET && ip[0] >> 4 == 4)
			return ip[1];
		if (t->af == AF_INET6 && ip[0] >> 4 == 6)
			return (ip[0] << 4 | ip[1] >> 4) & 0xff;
	}
	return -1;
}

/* What is sent carries the class that was asked for. */
TEST_F(opts, class)
{
	struct sockaddr_ll v0 = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };
	struct timeval tv = { .tv_usec = 100000 };
	struct hpsock_info info;
	socklen_t len = sizeof(info);
	struct hps_addr at;
	int l, s, fd = self->fd, packets;

	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	packets = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_ALL));
	ASSERT_OK(packets);
	v0.sll_ifindex = if_nametoindex("v0");
	ASSERT_OK(bind(packets, (struct sockaddr *)&v0, sizeof(v0)));
	ASSERT_OK(setsockopt(packets, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	if (self->t.af == AF_INET)
		ASSERT_OK(hps_set(fd, SOL_IP, IP_TOS, 0x48));
	else
		ASSERT_OK(hps_set(fd, SOL_IPV6, IPV6_TCLASS, 0x48));
	ASSERT_OK(hps_bind(fd, self->t.a));
	ASSERT_OK(hps_connect(fd, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	if (self->t.rdma) {
		ASSERT_OK(getsockopt(fd, SOL_HPSOCK, HPSOCK_INFO, &info, &len));
		if (!strncmp(info.device, "siw", 3))
			SKIP(return, "Soft-iWARP does not ask rdma_cm for it");
	}
	EXPECT_EQ(0x48, class_of(&self->t, packets, fd, s));
}

/* Flags that mean nothing to a stream */
TEST_F(opts, message_flags)
{
	struct msghdr msg;
	char buf[16];
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_EQ(3, send(c, "abc", 3, MSG_EOR));
	ASSERT_EQ(3, send(c, "def", 3, MSG_EOR | MSG_DONTROUTE | MSG_CONFIRM));
	ASSERT_TRUE(hps_until_inq(s, 6));
	ASSERT_EQ(6, receive(s, &msg, buf, 16, MSG_PEEK | MSG_CMSG_CLOEXEC));
	EXPECT_EQ(0, msg.msg_flags & ~MSG_CMSG_CLOEXEC);
	ASSERT_EQ(2, receive(s, &msg, buf, 2, MSG_PEEK | MSG_TRUNC));
	EXPECT_EQ(0, msg.msg_flags);
	ASSERT_EQ(6, receive(s, &msg, buf, 16, 0));
	EXPECT_EQ(0, memcmp(buf, "abcdef", 6));
	EXPECT_ERRNO(EAGAIN, receive(s, &msg, buf, 16, MSG_ERRQUEUE));
}

/* recvmmsg() waits for the first message alone */
TEST_F(opts, wait_for_one)
{
	struct mmsghdr msgs[3] = {};
	struct iovec iov[3];
	char buf[3][8];
	int c, s, i;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	for (i = 0; i < 3; i++) {
		iov[i] = (struct iovec){ buf[i], 8 };
		msgs[i].msg_hdr = (struct msghdr){ .msg_iov = &iov[i], .msg_iovlen = 1 };
	}
	ASSERT_EQ(1, send(c, "x", 1, 0));
	EXPECT_EQ(1, recvmmsg(s, msgs, 3, MSG_WAITFORONE, NULL));
	EXPECT_EQ(1, msgs[0].msg_len);
}

/* What does not fit is said to have been cut off, and the bytes come all the same. */
TEST_F(opts, control_cut_off)
{
	char buf[8], control[CMSG_LEN(0)];
	struct iovec iov = { buf, 8 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control };
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_OK(hps_set(s, SOL_TCP, TCP_INQ, 1));
	ASSERT_EQ(3, send(c, "abc", 3, 0));
	EXPECT_EQ(3, recvmsg(s, &msg, 0));
	EXPECT_EQ(MSG_CTRUNC, msg.msg_flags);
	EXPECT_EQ(0, msg.msg_controllen);
	ASSERT_EQ(3, send(c, "abc", 3, 0));
	msg.msg_controllen = sizeof(control);
	EXPECT_EQ(3, recvmsg(s, &msg, 0));
	EXPECT_EQ(MSG_CTRUNC, msg.msg_flags);
}

/* Each bit of send()'s flags says what it says to TCP, and the same bytes arrive. */
TEST_F(opts, send_flags)
{
	struct hps tcp, *ts[2] = { &self->t, &tcp };
	int bit, i, c, s;

	hps_init(&tcp, false, self->t.af);
	for (bit = 0; bit < 32; bit++) {
		ssize_t sent[2], came[2];
		char buf[2][8] = {};
		int err[2];

		if (1U << bit == MSG_FASTOPEN)
			continue;	/* there is none */
		for (i = 0; i < 2; i++) {
			ASSERT_OK(hps_pair(ts[i], &c, &s));
			sent[i] = send(c, "abc", 3, 1U << bit | MSG_NOSIGNAL);
			err[i] = sent[i] < 0 ? errno : 0;
			ASSERT_EQ(3, send(c, "def", 3, 0));
			ASSERT_OK(close(c));
			came[i] = recv(s, buf[i], 8, MSG_WAITALL);
			/* That of TCP stops at the urgent byte. */
			if (came[i] == 2)
				came[i] += recv(s, buf[i] + 2, 6, MSG_WAITALL);
			ASSERT_OK(close(s));
		}
		EXPECT_TRUE(sent[0] == sent[1] && err[0] == err[1] && came[0] == came[1] &&
			    !memcmp(buf[0], buf[1], 8))
			TH_LOG("flag %#x: %zd, %d, %zd; TCP %zd, %d, %zd", 1U << bit, sent[0],
			       err[0], came[0], sent[1], err[1], came[1]);
	}
}

TEST_F(opts, recv_flags)
{
	struct hps tcp, *ts[2] = { &self->t, &tcp };
	struct msghdr msg[2];
	int bit, i, c, s;

	hps_init(&tcp, false, self->t.af);
	for (bit = 0; bit < 32; bit++) {
		ssize_t got[2], more[2];
		char buf[2][16] = {};
		int err[2];

		for (i = 0; i < 2; i++) {
			ASSERT_OK(hps_pair(ts[i], &c, &s));
			ASSERT_EQ(6, send(c, "abcdef", 6, 0));
			ASSERT_TRUE(hps_until_inq(s, 6));
			got[i] = receive(s, &msg[i], buf[i], 4, 1U << bit | MSG_DONTWAIT);
			err[i] = got[i] < 0 ? errno : 0;
			more[i] = recv(s, buf[i] + 4, 8, MSG_DONTWAIT);
			ASSERT_OK(close(c));
			ASSERT_OK(close(s));
		}
		EXPECT_TRUE(got[0] == got[1] && err[0] == err[1] && more[0] == more[1] &&
			    !memcmp(buf[0], buf[1], 16) &&
			    (got[0] < 0 || msg[0].msg_flags == msg[1].msg_flags))
			TH_LOG("flag %#x: %zd, %d, %zd, %#x; TCP %zd, %d, %zd, %#x", 1U << bit,
			       got[0], err[0], more[0], msg[0].msg_flags, got[1], err[1],
			       more[1], msg[1].msg_flags);
	}
}

/*
 * Is no byte more taken? TCP may still send a little into a window that is almost shut,
 * when it has waited for long enough, and takes as much again.
 */
static bool takes_no_more(int fd)
{
	int i;

	for (i = 0; i < 100000; i++)
		if (send(fd, "x", 1, MSG_DONTWAIT) < 0)
			return errno == EAGAIN;
	return false;
}

/* A writer is asked for more only as long as little waits to be sent. */
TEST_F(opts, notsent_lowat)
{
	struct info info = {};
	socklen_t len = sizeof(info);
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	hps_buffers(c, 1 << 20);
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_NOTSENT_LOWAT, 20000));
	ASSERT_LT(0, hps_stuff(c, 0, 1));
	EXPECT_TRUE(hps_quiet(c, POLLOUT));
	ASSERT_OK(getsockopt(c, SOL_TCP, TCP_INFO, &info, &len));
	/* The last send began below the mark and may have been long. */
	EXPECT_LE(self->t.rdma ? 20000 : 10000, info.notsent_bytes);
	EXPECT_GE(20000 + 65536, info.notsent_bytes);
	EXPECT_TRUE(takes_no_more(c));
	/* Room in the buffer there is. */
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_NOTSENT_LOWAT, -1));
	EXPECT_TRUE(hps_wait(c, POLLOUT) & POLLOUT);
	ASSERT_EQ(1, send(c, "x", 1, MSG_DONTWAIT));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_NOTSENT_LOWAT, 20000));
	EXPECT_TRUE(hps_quiet(c, POLLOUT));
	ASSERT_LT(0, hps_pull(s, 400000, 100000, 1));
	while (!hps_poll(c, POLLOUT, 0)) {
		/* The last may have come before its sender says that there is room. */
		if (recv(s, NULL, 50000, MSG_TRUNC | MSG_DONTWAIT) <= 0)
			ASSERT_EQ(EAGAIN, errno);
	}
	ASSERT_EQ(1, send(c, "x", 1, MSG_DONTWAIT));
}

/* SIGIO for who asked for it */
TEST_F(opts, async)
{
	int64_t end = hps_now() + hps_deadline();
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	hps_catch(SIGIO, SA_RESTART);
	ASSERT_OK(fcntl(s, F_SETOWN, getpid()));
	ASSERT_OK(fcntl(s, F_SETFL, O_ASYNC));
	ASSERT_EQ(1, send(c, "x", 1, 0));
	while (!hps_caught()) {
		ASSERT_GT(end, hps_now());
	}
	EXPECT_TRUE(hps_wait(s, POLLIN) & POLLIN);
	EXPECT_EQ(1, hps_inq(s));
}

/* The older way to ask for it */
TEST_F(opts, fioasync)
{
	int64_t end = hps_now() + hps_deadline();
	int c, s, on = 1, pid = getpid(), got;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	hps_catch(SIGIO, SA_RESTART);
	ASSERT_OK(ioctl(s, FIOSETOWN, &pid));
	ASSERT_OK(ioctl(s, FIOGETOWN, &got));
	EXPECT_EQ(pid, got);
	EXPECT_EQ(pid, fcntl(s, F_GETOWN));
	ASSERT_OK(ioctl(s, FIOASYNC, &on));
	EXPECT_TRUE(fcntl(s, F_GETFL) & O_ASYNC);
	ASSERT_EQ(1, send(c, "x", 1, 0));
	while (!hps_caught()) {
		ASSERT_GT(end, hps_now());
	}
	on = 0;
	ASSERT_OK(ioctl(s, FIOASYNC, &on));
	EXPECT_FALSE(fcntl(s, F_GETFL) & O_ASYNC);
}

static long echo_call(struct hps_call *call)
{
	char byte;

	while (recv(call->fd, &byte, 1, 0) == 1)
		if (send(call->fd, &byte, 1, 0) != 1)
			return -1;
	return 0;
}

/* A reader that may not sleep at once; where there is a processor to spare, it pays. */
TEST_F(opts, busy_poll)
{
	struct hps_call call = { .fn = echo_call };
	const char *counter = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "spin_hit" : "spin_missed";
	long before = hps_stat(counter);
	int64_t end = hps_now() + hps_deadline();
	char byte;
	int c;

	ASSERT_OK(hps_pair(&self->t, &c, &call.fd));
	if (hps_set(c, SOL_SOCKET, SO_BUSY_POLL, 2000)) {
		ASSERT_EQ(ENOPROTOOPT, errno);
		SKIP(return, "the kernel has no busy polling");
	}
	EXPECT_EQ(2000, hps_opt(c, SOL_SOCKET, SO_BUSY_POLL));
	/* It does not wait for longer than it would. */
	EXPECT_ERRNO(EAGAIN, recv(c, &byte, 1, MSG_DONTWAIT));
	hps_start(&call);
	do {
		ASSERT_EQ(1, send(c, "x", 1, 0));
		ASSERT_EQ(1, recv(c, &byte, 1, 0));
	} while (self->t.rdma && hps_stat(counter) == before && hps_now() < end);
	EXPECT_GT(end, hps_now());
	ASSERT_OK(shutdown(c, SHUT_WR));
	EXPECT_TRUE(hps_done(&call));
}

/* AF_HPSOCK alone: what it tells about itself. TCP has no such level. */
/* That the peer has it all is known soon, without anything else being sent or asked. */
TEST_F(opts, acknowledged_unasked)
{
	int64_t end = hps_now() + hps_deadline();
	struct info info = { 0 };
	socklen_t len;
	int c, s, i;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	for (i = 1; i <= 5; i++) {
		ASSERT_EQ(64, hps_push(c, 64, 64, i));
		ASSERT_EQ(64, hps_pull(s, 64, 64, i));
	}
	do {
		len = sizeof(info);
		ASSERT_OK(getsockopt(c, SOL_TCP, TCP_INFO, &info, &len));
	} while (info.bytes_acked < 5 * 64 && hps_now() < end);
	EXPECT_LE(5 * 64, info.bytes_acked);
	close(c);
	close(s);
}

TEST_F(opts, info)
{
	struct hpsock_info info;
	socklen_t len = sizeof(info);
	int c, s;

	if (!self->t.rdma) {
		EXPECT_ERRNO(unknown_level(&self->t),
			     getsockopt(self->fd, SOL_HPSOCK, HPSOCK_INFO, &info, &len));
		return;
	}
	memset(&info, 0x5a, sizeof(info));
	ASSERT_OK(getsockopt(self->fd, SOL_HPSOCK, HPSOCK_INFO, &info, &len));
	EXPECT_EQ(sizeof(info), len);
	EXPECT_EQ(sizeof(info), info.size);
	EXPECT_EQ(HPSOCK_TRANSPORT_NONE, info.transport);
	EXPECT_EQ(TCP_CLOSE, info.state);
	EXPECT_ERRNO(ENOPROTOOPT, hps_set(self->fd, SOL_HPSOCK, HPSOCK_INFO, 1));
	EXPECT_ERRNO(ENOPROTOOPT, hps_opt(self->fd, SOL_HPSOCK, 9999));

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_EQ(1000, hps_push(c, 1000, 1000, 1));
	ASSERT_EQ(1000, hps_pull(s, 1000, 1000, 1));
	memset(&info, 0x5a, sizeof(info));
	ASSERT_OK(getsockopt(s, SOL_HPSOCK, HPSOCK_INFO, &info, &len));
	EXPECT_EQ(HPSOCK_TRANSPORT_RDMA, info.transport);
	EXPECT_EQ(TCP_ESTABLISHED, info.state);
	EXPECT_EQ(1000, info.rx_bytes);
	EXPECT_EQ(0, info.tx_bytes);
	EXPECT_LE(1, info.rx_msgs);
	EXPECT_LE(2, info.rx_window);
	EXPECT_NE(0, info.device[0]);
	/* An older program's structure was shorter. */
	len = 8;
	memset(&info, 0x5a, sizeof(info));
	ASSERT_OK(getsockopt(s, SOL_HPSOCK, HPSOCK_INFO, &info, &len));
	EXPECT_EQ(8, len);
	EXPECT_EQ(sizeof(info), info.size);
	EXPECT_EQ(0x5a5a5a5a, info.tx_credits);
}

static const struct {
	const char *name;
	int opt, min, max;
} tunes[] = {
	{ "buf_first", HPSOCK_BUF_FIRST, 1024, 65536 },
	{ "buf_size", HPSOCK_BUF_SIZE, 1024, 65536 },
	{ "window", HPSOCK_WINDOW, 2, 1024 },
	{ "quota", HPSOCK_QUOTA, 2, 1024 },
	{ "inline_max", HPSOCK_INLINE_MAX, 0, 256 },
	{ "gather_min", HPSOCK_GATHER_MIN, 512, 1048576 },
	{ "signal_every", HPSOCK_SIGNAL_EVERY, 1, 64 },
};

/* AF_HPSOCK alone: the module's tunables, for one socket. */
TEST_F(opts, tunes)
{
	char path[100];
	size_t i;
	int l, c;

	if (!self->t.rdma) {
		EXPECT_ERRNO(ENOPROTOOPT, hps_set(self->fd, SOL_HPSOCK, HPSOCK_WINDOW, 5));
		return;
	}
	for (i = 0; i < ARRAY_SIZE(tunes); i++) {
		int opt = tunes[i].opt, min = tunes[i].min, max = tunes[i].max, module;

		snprintf(path, sizeof(path), "/sys/module/hpsock/parameters/%s", tunes[i].name);
		module = hps_number(path, -1);
		ASSERT_LE(0, module);
		EXPECT_EQ(module, hps_opt(self->fd, SOL_HPSOCK, opt));
		/* -1 is no value, but not out of range. */
		EXPECT_ERRNO(EINVAL, hps_set(self->fd, SOL_HPSOCK, opt, min ? min - 1 : -2));
		EXPECT_ERRNO(EINVAL, hps_set(self->fd, SOL_HPSOCK, opt, max + 1));
		EXPECT_OK(hps_set(self->fd, SOL_HPSOCK, opt, min));
		EXPECT_EQ(min, hps_opt(self->fd, SOL_HPSOCK, opt));
		EXPECT_OK(hps_set(self->fd, SOL_HPSOCK, opt, max));
		EXPECT_EQ(max, hps_opt(self->fd, SOL_HPSOCK, opt));
		EXPECT_EQ(module, hps_number(path, -1));
		EXPECT_ERRNO(EINVAL, hps_put(path, "4294967296"));
		EXPECT_EQ(module, hps_number(path, -1));
		EXPECT_OK(hps_set(self->fd, SOL_HPSOCK, opt, -1));
		EXPECT_EQ(module, hps_opt(self->fd, SOL_HPSOCK, opt));
	}
	ASSERT_OK(hps_pair(&self->t, &c, &l));
	EXPECT_ERRNO(EISCONN, hps_set(c, SOL_HPSOCK, HPSOCK_WINDOW, 5));
}

static struct hpsock_info info_of(int fd)
{
	struct hpsock_info info = { 0 };
	socklen_t len = sizeof(info);

	getsockopt(fd, SOL_HPSOCK, HPSOCK_INFO, &info, &len);
	return info;
}

static long push_call(struct hps_call *call)
{
	return hps_push(call->fd, call->len, 65536, 1);
}

/* They count for connections that the socket makes, and that it accepts. */
TEST_F(opts, tunes_count)
{
	enum { MIB = 1 << 20 };
	struct hps_call call = { .fn = push_call, .len = MIB };
	struct hps_addr at;
	int c, s, i;

	if (!self->t.rdma)
		SKIP(return, "of AF_HPSOCK alone");
	ASSERT_OK(hps_set(self->fd, SOL_HPSOCK, HPSOCK_BUF_FIRST, 2048));
	ASSERT_OK(hps_set(self->fd, SOL_HPSOCK, HPSOCK_BUF_SIZE, 8192));
	ASSERT_OK(hps_set(self->fd, SOL_HPSOCK, HPSOCK_QUOTA, 4));
	ASSERT_OK(hps_set(self->fd, SOL_HPSOCK, HPSOCK_WINDOW, 5));
	ASSERT_OK(hps_set(self->fd, SOL_HPSOCK, HPSOCK_SIGNAL_EVERY, 1));
	ASSERT_OK(hps_bind(self->fd, hps_at(self->t.b, 0)));
	ASSERT_OK(listen(self->fd, 1));
	at = hps_name(self->fd);
	c = hps_client(&self->t, 0);
	ASSERT_OK(c);
	ASSERT_OK(hps_set(c, SOL_HPSOCK, HPSOCK_QUOTA, 7));
	ASSERT_OK(hps_set(c, SOL_HPSOCK, HPSOCK_INLINE_MAX, 0));
	ASSERT_OK(hps_connect(c, at));
	s = hps_accept(self->fd);
	ASSERT_OK(s);
	EXPECT_EQ(5, hps_opt(s, SOL_HPSOCK, HPSOCK_WINDOW));
	EXPECT_EQ(4, info_of(s).rx_window);
	EXPECT_EQ(2048 - 16, info_of(s).rx_msg_size);
	EXPECT_EQ(4, info_of(c).tx_credits);
	EXPECT_EQ(7, info_of(c).rx_window);
	/* An end grows by what the other sends, when its reader keeps up. */
	for (i = 0; i < 2 || (i < 128 && info_of(c).rx_msg_size <= 8192 - 16); i++) {
		call.fd = i ? s : c;
		hps_start(&call);
		ASSERT_EQ(MIB, hps_pull(i ? c : s, MIB, 65536, 1));
		ASSERT_TRUE(hps_done(&call));
	}
	EXPECT_LE(4, info_of(s).rx_window);
	EXPECT_GE(5, info_of(s).rx_window);
	EXPECT_LE(2048 - 16, info_of(s).rx_msg_size);
	EXPECT_GE(8192, info_of(s).rx_msg_size);
	EXPECT_LT(8192 - 16, info_of(c).rx_msg_size);
}

TEST_HARNESS_MAIN
