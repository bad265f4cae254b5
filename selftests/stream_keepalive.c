// SPDX-License-Identifier: GPL-2.0
/*
 * SO_KEEPALIVE and what asks after a peer that does not read. Here the peer is
 * alive: that a dead one is noticed needs a link that goes down.
 */
#include "hps_test.h"

HPS_PAIR_FIXTURE(keepalive)

/*
 * Wait for so many probes from now on. TCP counts those of a silent peer and those of one
 * that does not read apart.
 */
static bool until_probed(const struct hps *t, bool full, long count)
{
	const char *name = t->rdma ? "probe" : full ? "TCPWinProbe" : "TCPKeepAlive";
	long from = t->rdma ? hps_stat(name) : hps_netstat(name);

	return from >= 0 && hps_until_stat(name, from + count);
}

/* TCP's interval is that between two probes even of a peer that answers. */
static int keep(int fd)
{
	return hps_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1) ?:
	       hps_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, 1) ?:
	       hps_set(fd, IPPROTO_TCP, TCP_KEEPCNT, 100) ?:
	       hps_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

/* Neither end sees anything of it. */
static void alive(struct __test_metadata *_metadata, struct hps *t, int c, int s)
{
	char byte;

	EXPECT_TRUE(until_probed(t, false, 2));
	EXPECT_POLL(POLLOUT, c);
	EXPECT_POLL(POLLOUT, s);
	ASSERT_EQ(1, send(c, "x", 1, 0));
	ASSERT_EQ(1, recv(s, &byte, 1, 0));
	ASSERT_EQ(1, send(s, "y", 1, 0));
	ASSERT_EQ(1, recv(c, &byte, 1, 0));
	EXPECT_EQ('y', byte);
}

TEST_F(keepalive, client)
{
	ASSERT_OK(keep(self->c));
	alive(_metadata, &self->t, self->c, self->s);
}

TEST_F(keepalive, server)
{
	ASSERT_OK(keep(self->s));
	alive(_metadata, &self->t, self->c, self->s);
}

TEST_F(keepalive, before_connect)
{
	int c = hps_client(&self->t, 0), l, s;
	struct hps_addr at;

	ASSERT_OK(c);
	ASSERT_OK(keep(c));
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	ASSERT_OK(hps_connect(c, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	alive(_metadata, &self->t, c, s);
}

TEST_F(keepalive, inherited)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c, s;

	ASSERT_OK(l);
	ASSERT_OK(keep(l));
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(1, hps_opt(s, SOL_SOCKET, SO_KEEPALIVE));
	EXPECT_EQ(1, hps_opt(s, IPPROTO_TCP, TCP_KEEPIDLE));
	alive(_metadata, &self->t, c, s);
}

/* Who was silent before anybody cared has the time for an answer. */
TEST_F(keepalive, late)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 2, &at), c[2], s[2], i;

	ASSERT_OK(l);
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_KEEPIDLE, 1));
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_KEEPINTVL, 1));
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_KEEPCNT, 5));
	/* One waits for its option, the other in the queue. */
	c[0] = hps_dial(&self->t, at);
	ASSERT_OK(c[0]);
	s[0] = hps_accept(l);
	ASSERT_OK(s[0]);
	ASSERT_OK(hps_set(l, SOL_SOCKET, SO_KEEPALIVE, 1));
	c[1] = hps_dial(&self->t, at);
	ASSERT_OK(c[1]);
	hps_poll(-1, 0, 7000);
	s[1] = hps_accept(l);
	ASSERT_OK(s[1]);
	ASSERT_OK(hps_set(s[0], SOL_SOCKET, SO_KEEPALIVE, 1));
	EXPECT_TRUE(until_probed(&self->t, false, 4));
	for (i = 0; i < 2; i++) {
		/* The silence did not count. */
		EXPECT_POLL(POLLOUT, s[i]);
		EXPECT_EQ(0, hps_error(s[i]));
		ASSERT_EQ(1000, hps_push(c[i], 1000, 1000, 1));
		ASSERT_EQ(1000, hps_pull(s[i], 1000, 1000, 1));
	}
}

/* One end has said all it has to; the other may still come. */
TEST_F(keepalive, half_closed)
{
	int c = self->c, s = self->s;
	char byte;

	ASSERT_OK(shutdown(c, SHUT_WR));
	ASSERT_OK(keep(c));
	EXPECT_TRUE(until_probed(&self->t, false, 2));
	ASSERT_EQ(1, send(s, "y", 1, 0));
	ASSERT_EQ(1, recv(c, &byte, 1, 0));
	ASSERT_EQ(0, recv(s, &byte, 1, 0));
}

/* A peer that does not read is asked after, and still gets every byte. */
TEST_F(keepalive, reader_asleep)
{
	int c = self->c, s = self->s;
	int64_t sent;

	hps_buffers(c, 1 << 20);
	sent = hps_stuff(c, 0, 3);
	ASSERT_LT(0, sent);
	EXPECT_TRUE(until_probed(&self->t, true, 2));
	EXPECT_EQ(0, hps_error(c));
	ASSERT_OK(shutdown(c, SHUT_WR));
	EXPECT_EQ(sent, hps_pull(s, INT64_MAX, 100000, 3));
	EXPECT_EQ(0, errno);
}

/*
 * One that read a little and stopped: with more to send than there were credits,
 * the last message is not the last of the queue.
 */
TEST_F(keepalive, reader_dozes)
{
	int c = self->c, s = self->s;
	static char some[40000];
	int64_t sent;

	hps_buffers(c, 1 << 20);
	sent = hps_stuff(c, 0, 3);
	ASSERT_LT(0, sent);
	ASSERT_EQ((ssize_t)sizeof(some), recv(s, some, sizeof(some), MSG_WAITALL));
	EXPECT_TRUE(until_probed(&self->t, true, 2));
	EXPECT_EQ(0, hps_error(c));
}

TEST_HARNESS_MAIN
