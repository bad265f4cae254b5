// SPDX-License-Identifier: GPL-2.0
/*
 * SO_KEEPALIVE and what asks after a peer that does not read. Here the peer is
 * alive: that a dead one is noticed needs a link that goes down.
 */
#include "hps_test.h"

FIXTURE(keepalive) {
	struct hps t;
	struct hps_addr at;
	int l;
};

HPS_VARIANTS(keepalive);

FIXTURE_SETUP(keepalive)
{
	hps_init(&self->t, variant->rdma, variant->af);
	self->l = hps_listen(&self->t, 4, &self->at);
	ASSERT_OK(self->l);
}

FIXTURE_TEARDOWN(keepalive) { }

/* Probes of all sockets so far; for TCP the segments sent, which have them too. */
static long probes(const struct hps *t)
{
	const char *command = t->rdma ?
		"awk '$1 == \"probe\" { print $2 }' /proc/net/hpsock_stat" :
		"awk '$1 == \"Tcp:\" { n = $12 } END { print n }' /proc/net/snmp";
	FILE *f = popen(command, "r");
	long n = -1;

	if (f) {
		if (fscanf(f, "%ld", &n) != 1)
			n = -1;
		pclose(f);
	}
	return n;
}

static bool until_probed(const struct hps *t, long count)
{
	int64_t end = hps_now() + hps_deadline();
	long from = probes(t);

	if (from < 0)
		return false;
	while (probes(t) < from + count) {
		if (hps_now() > end)
			return false;
		usleep(20000);
	}
	return true;
}

static int keep(int fd)
{
	return hps_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 1) ?:
	       hps_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

/* Neither end sees anything of it. */
static void alive(struct __test_metadata *_metadata, struct hps *t, int c, int s)
{
	char byte;

	EXPECT_TRUE(until_probed(t, 2));
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
	int c = hps_dial(&self->t, self->at), s = hps_accept(self->l);

	ASSERT_OK(c);
	ASSERT_OK(s);
	ASSERT_OK(keep(c));
	alive(_metadata, &self->t, c, s);
}

TEST_F(keepalive, server)
{
	int c = hps_dial(&self->t, self->at), s = hps_accept(self->l);

	ASSERT_OK(c);
	ASSERT_OK(s);
	ASSERT_OK(keep(s));
	alive(_metadata, &self->t, c, s);
}

TEST_F(keepalive, before_connect)
{
	int c = hps_client(&self->t, 0), s;

	ASSERT_OK(c);
	ASSERT_OK(keep(c));
	ASSERT_OK(hps_connect(c, self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	alive(_metadata, &self->t, c, s);
}

TEST_F(keepalive, inherited)
{
	int c, s;

	ASSERT_OK(keep(self->l));
	c = hps_dial(&self->t, self->at);
	ASSERT_OK(c);
	s = hps_accept(self->l);
	ASSERT_OK(s);
	EXPECT_EQ(1, hps_opt(s, SOL_SOCKET, SO_KEEPALIVE));
	EXPECT_EQ(1, hps_opt(s, IPPROTO_TCP, TCP_KEEPIDLE));
	alive(_metadata, &self->t, c, s);
}

/* One end has said all it has to; the other may still come. */
TEST_F(keepalive, half_closed)
{
	int c = hps_dial(&self->t, self->at), s = hps_accept(self->l);
	char byte;

	ASSERT_OK(c);
	ASSERT_OK(s);
	ASSERT_OK(shutdown(c, SHUT_WR));
	ASSERT_OK(keep(c));
	EXPECT_TRUE(until_probed(&self->t, 2));
	ASSERT_EQ(1, send(s, "y", 1, 0));
	ASSERT_EQ(1, recv(c, &byte, 1, 0));
	ASSERT_EQ(0, recv(s, &byte, 1, 0));
}

/* A peer that does not read is asked after, and still gets every byte. */
TEST_F(keepalive, reader_asleep)
{
	int c = hps_dial(&self->t, self->at), s = hps_accept(self->l);
	int64_t sent;

	ASSERT_OK(c);
	ASSERT_OK(s);
	hps_buffers(c, 1 << 20);
	sent = hps_stuff(c, 0, 3);
	ASSERT_LT(0, sent);
	EXPECT_TRUE(until_probed(&self->t, 2));
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
	int c = hps_dial(&self->t, self->at), s = hps_accept(self->l);
	static char some[40000];
	int64_t sent;

	ASSERT_OK(c);
	ASSERT_OK(s);
	hps_buffers(c, 1 << 20);
	sent = hps_stuff(c, 0, 3);
	ASSERT_LT(0, sent);
	ASSERT_EQ((ssize_t)sizeof(some), recv(s, some, sizeof(some), MSG_WAITALL));
	EXPECT_TRUE(until_probed(&self->t, 2));
	EXPECT_EQ(0, hps_error(c));
}

TEST_HARNESS_MAIN
