// SPDX-License-Identifier: GPL-2.0
/*
 * Socket options and ioctls. What an option is after it was set is compared
 * with a TCP socket that was told the same.
 */
#include "hps_test.h"

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
		SO_KEEPALIVE, SO_REUSEADDR, SO_OOBINLINE, SO_BROADCAST, SO_DONTROUTE,
	};
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
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
	EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_MARK, 77));
	EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVLOWAT, 1));
	EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVLOWAT, 0));
	EXPECT_OK(both(self->fd, self->ref, SOL_SOCKET, SO_RCVLOWAT, 5));
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
		return;
	EXPECT_EQ(hps_opt(self->ref, SOL_IPV6, IPV6_V6ONLY),
		  hps_opt(self->fd, SOL_IPV6, IPV6_V6ONLY));
	EXPECT_OK(both(self->fd, self->ref, SOL_IPV6, IPV6_V6ONLY, 1));
	EXPECT_OK(both(self->fd, self->ref, SOL_IPV6, IPV6_V6ONLY, 0));
	EXPECT_OK(both(self->fd, self->ref, SOL_IPV6, IPV6_V6ONLY, 2));
}

static int unknown_level(const struct hps *t)
{
	return t->domain == AF_INET ? EOPNOTSUPP : ENOPROTOOPT;
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
	EXPECT_EQ(-1, setsockopt(self->fd, IPPROTO_TCP, TCP_ULP, "nosuch", 6));
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

/* AF_HPSOCK alone: what it tells about itself. TCP has no such level. */
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

TEST_HARNESS_MAIN
