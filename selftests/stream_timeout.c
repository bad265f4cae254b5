// SPDX-License-Identifier: GPL-2.0
/* Options that say how long something may take. */
#include "hps_test.h"

HPS_FIXTURE(timeout)

/* Milliseconds that connect() takes to say ETIMEDOUT, -1 if it says something else. */
static int64_t tries(int c, struct hps_addr at)
{
	int64_t start = hps_now();
	int err = hps_connect(c, at);

	if (err && errno == ETIMEDOUT)
		return hps_now() - start;
	fprintf(stderr, "# not ETIMEDOUT: %s\n", err ? strerrorname_np(errno) : "connected");
	return -1;
}

TEST_F(timeout, syncnt)
{
	struct hps_addr at;
	int64_t took;
	int c = hps_client(&self->t, 0);

	ASSERT_OK(hps_listen_full(&self->t, &at));
	ASSERT_OK(c);
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_SYNCNT, 1));
	took = tries(c, at);
	/* 1 + 2 s; newer kernels repeat the first second four times. */
	EXPECT_LE(2900, took);
	EXPECT_GE(hps_deadline(), took);
}

TEST_F(timeout, connect)
{
	struct hps_addr at;
	int64_t took;
	int c = hps_client(&self->t, 0);

	ASSERT_OK(hps_listen_full(&self->t, &at));
	ASSERT_OK(c);
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_USER_TIMEOUT, 1500));
	took = tries(c, at);
	EXPECT_LE(1400, took);
	EXPECT_GE(hps_deadline(), took);
}

/* A peer that answers but takes nothing. */
TEST_F(timeout, stalled)
{
	int64_t sent, start;
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	hps_buffers(c, 1 << 20);
	/* The time counts from when the peer took something last. */
	start = hps_now();
	sent = hps_stuff(c, 0, 1);
	ASSERT_LT(0, sent);
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_USER_TIMEOUT, 2000));
	EXPECT_TRUE(hps_wait(c, POLLERR) & POLLERR);
	EXPECT_LE(1900, hps_now() - start);
	EXPECT_EQ(ETIMEDOUT, hps_error(c));
	EXPECT_ERRNO(EPIPE, send(c, "x", 1, MSG_NOSIGNAL));
}

/*
 * Read in parts with so many milliseconds in between; the longest time between two of
 * them, which on a busy machine may be another one.
 */
static int64_t read_slowly(int s, int64_t got, int64_t sent, int parts, int pause)
{
	int64_t begin = hps_now(), longest = 0, part = (sent - got) / parts, gap;

	while (got < sent) {
		int64_t len = got + 2 * part > sent ? sent - got : part;

		if (hps_pull_at(s, got, len, 100000, 1) != len)
			return INT64_MAX;
		got += len;
		gap = hps_now() - begin;
		longest = gap > longest ? gap : longest;
		begin = hps_now();
		hps_poll(-1, 0, pause);
	}
	return longest;
}

/* One that takes something now and then, or has nothing to take, has all the time. */
TEST_F(timeout, slow)
{
	enum { PATIENCE = 3000, PARTS = 8, PAUSE = 500, TRIES = 10 };
	int64_t sent, first, longest;
	int c, s, i, on_time = 0;

	for (i = 0; i < TRIES && !on_time; i++) {
		ASSERT_OK(hps_pair(&self->t, &c, &s));
		hps_buffers(c, 1 << 20);
		sent = hps_stuff(c, 0, 1);
		ASSERT_LT(0, sent);
		/* AF_HPSOCK counts from when something was taken last. */
		first = sent / PARTS;
		ASSERT_EQ(first, hps_pull(s, first, 100000, 1));
		/* What may have been read too late proves nothing. */
		ASSERT_OK(hps_set(c, SOL_TCP, TCP_USER_TIMEOUT, PATIENCE));
		longest = read_slowly(s, first, sent, PARTS, PAUSE);
		on_time = longest < PATIENCE / 2;
		if (!on_time) {
			TH_LOG("%ld ms between two reads, once more", (long)longest);
			close(c);
			close(s);
		}
	}
	ASSERT_TRUE(on_time);
	EXPECT_EQ(0, hps_error(c));
	/* Nothing is left to be taken, for longer than that. */
	hps_poll(-1, 0, PATIENCE + PAUSE);
	EXPECT_POLL(POLLOUT, c);
	EXPECT_EQ(0, hps_error(c));
	ASSERT_EQ(1, send(c, "x", 1, 0));
}

/* accept() only has clients that said something. */
TEST_F(timeout, defer_accept)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 4, &at);
	int c[3], s;
	char byte;

	ASSERT_OK(l);
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_DEFER_ACCEPT, 60));
	EXPECT_EQ(63, hps_opt(l, SOL_TCP, TCP_DEFER_ACCEPT));
	c[0] = hps_dial(&self->t, at);
	ASSERT_OK(c[0]);
	c[1] = hps_dial(&self->t, at);
	ASSERT_OK(c[1]);
	EXPECT_TRUE(hps_quiet(l, POLLIN));
	EXPECT_EQ(0, hps_acceptable(l));
	ASSERT_EQ(1, send(c[1], "x", 1, 0));
	ASSERT_TRUE(hps_wait(l, POLLIN));
	EXPECT_TRUE(hps_until_acceptable(l, 1));
	EXPECT_EQ(1, hps_acceptable(l));
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_EQ(1, recv(s, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ('x', byte);
	EXPECT_TRUE(hps_quiet(l, POLLIN));
	/* To say that there will be nothing is enough. */
	ASSERT_OK(shutdown(c[0], SHUT_WR));
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(0, recv(s, &byte, 1, 0));
	/* Who goes before that was never there. */
	c[2] = hps_dial(&self->t, at);
	ASSERT_OK(c[2]);
	ASSERT_OK(hps_reset(c[2]));
	EXPECT_TRUE(hps_quiet(l, POLLIN));
}

TEST_F(timeout, defer_accept_bounded)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 4, &at);
	int64_t start;
	int c, s;

	ASSERT_OK(l);
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_DEFER_ACCEPT, 1));
	start = hps_now();
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_LE(700, hps_now() - start);
	ASSERT_EQ(1000, hps_push(s, 1000, 1000, 1));
	EXPECT_EQ(1000, hps_pull(c, 1000, 1000, 1));
}

/* A listener that closes takes along those that said nothing yet. */
TEST_F(timeout, defer_accept_closed)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 4, &at);
	int c;

	ASSERT_OK(l);
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_DEFER_ACCEPT, 60));
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	EXPECT_TRUE(hps_quiet(l, POLLIN));
	ASSERT_OK(close(l));
	/* TCP's peer learns of it when it speaks. */
	if (!self->t.rdma)
		ASSERT_EQ(1, send(c, "x", 1, 0));
	EXPECT_TRUE(hps_wait_exactly(c, POLLHUP) & POLLHUP);
	EXPECT_EQ(ECONNRESET, hps_error(c));
}

/* Nobody waits for the FIN of a peer that does not close. */
TEST_F(timeout, linger2)
{
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_LINGER2, -1));
	EXPECT_EQ(-1, hps_opt(c, SOL_TCP, TCP_LINGER2));
	ASSERT_OK(close(c));
	/* TCP says so when the peer speaks. */
	EXPECT_TRUE(hps_wait(s, POLLIN) & POLLIN);
	if (!self->t.rdma)
		send(s, "x", 1, MSG_NOSIGNAL);
	EXPECT_TRUE(hps_wait_exactly(s, POLLHUP) & POLLHUP);
}

/* Milliseconds from close() until the peer, who does not close, is told that it is over. */
static int64_t fin_wait(const struct hps *t, int c, int s)
{
	int64_t start = hps_now();

	if (close(c) || !(hps_wait(s, POLLIN) & POLLIN))
		return -1;
	/* TCP says so when the peer speaks, whether the time is over or not. */
	if (!t->rdma)
		send(s, "x", 1, MSG_NOSIGNAL);
	if (!(hps_wait_exactly(s, POLLHUP) & POLLHUP))
		return -1;
	return t->rdma ? hps_now() - start : 2000;
}

/* Or not for long: as the socket says, and without that all of them. */
TEST_F(timeout, fin)
{
	const char *all = self->t.rdma ? "/sys/module/hpsock/parameters/fin_timeout" :
					 "/proc/sys/net/ipv4/tcp_fin_timeout";
	long before = hps_number(all, -1);
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_LINGER2, 2));
	EXPECT_EQ(2, hps_opt(c, SOL_TCP, TCP_LINGER2));
	EXPECT_LE(1900, fin_wait(&self->t, c, s));
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_EQ(0, hps_set_number(all, 2));
	EXPECT_EQ(2, hps_opt(c, SOL_TCP, TCP_LINGER2));
	EXPECT_LE(1900, fin_wait(&self->t, c, s));
	EXPECT_EQ(0, hps_set_number(all, before));
}

TEST_F(timeout, keepalive)
{
	const char *name = self->t.rdma ? "probe" : "TCPKeepAlive";
	int interval = 3 * hps_slow() + (self->t.rdma ? 5 : 0);
	int probes = self->t.rdma ? interval + 3 : 3, c, s;
	long before;
	char byte;

	/*
	 * A peer that answers outlives a short patience: there are more probes than that
	 * has seconds, one each second. TCP sends one each interval, and gives up at the
	 * second that has no answer.
	 */
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_KEEPIDLE, 1));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_KEEPINTVL, interval));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_KEEPCNT, 1));
	before = self->t.rdma ? hps_stat(name) : hps_netstat(name);
	ASSERT_OK(hps_set(c, SOL_SOCKET, SO_KEEPALIVE, 1));
	EXPECT_TRUE(hps_until_stat(name, before + probes));
	EXPECT_POLL(POLLOUT, c);
	EXPECT_EQ(0, hps_error(c));
	ASSERT_EQ(1, send(c, "x", 1, 0));
	ASSERT_EQ(1, recv(s, &byte, 1, 0));
}

TEST_HARNESS_MAIN
