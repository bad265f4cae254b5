// SPDX-License-Identifier: GPL-2.0
/*
 * All sockets together have as much memory as they may, and one of them nearly all of it:
 * another connection goes on, if slowly, and what poll() says is there can be had. TCP has
 * another limit, which is not reached here: its variants show that the rest is right.
 */
#include "hps_test.h"

#include <sys/mman.h>

#define MIB (1 << 20)

/* Beyond a limit the core lets no socket have more than its part; so it takes several. */
#define HOGS 16

FIXTURE(memory) {
	struct hps t;
	int c, s;
	int hog[HOGS], unread[HOGS];
};

HPS_VARIANTS(memory);

/* Queue what nobody reads, until no memory is to be had; returns how many bytes. */
static int64_t take_memory(int fd)
{
	uint8_t *some = hps_memory(MIB);
	int64_t queued = 0;
	ssize_t n;
	int part;

	/* What is left of the last buffer, too. */
	for (part = MIB; part; part /= 16)
		while ((n = send(fd, some, part, MSG_DONTWAIT)) > 0)
			queued += n;
	munmap(some, MIB);
	return errno == EAGAIN ? queued : -1;
}

static int give_back(int *hog)
{
	int i, err = 0;

	for (i = 0; i < HOGS; i++) {
		err |= hps_reset(hog[i]);
		hog[i] = -1;
	}
	return err;
}

FIXTURE_SETUP(memory)
{
	int i;

	hps_init(&self->t, variant->rdma, variant->af);
	if (geteuid())
		SKIP(return, "needs root");
	ASSERT_OK(hps_pair_lending(&self->t, &self->c, &self->s));
	if (!self->t.rdma)
		return;
	for (i = 0; i < HOGS; i++) {
		ASSERT_OK(hps_pair(&self->t, &self->hog[i], &self->unread[i]));
		ASSERT_OK(hps_set(self->hog[i], SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_OFF));
		ASSERT_OK(hps_set(self->hog[i], SOL_SOCKET, SO_SNDBUFFORCE, 1 << 30));
	}
}

FIXTURE_TEARDOWN(memory)
{
	int i;

	if (!self->t.rdma)
		return;
	if (self->hog[0] >= 0)
		EXPECT_OK(give_back(self->hog));
	for (i = 0; i < HOGS; i++)
		close(self->unread[i]);
	close(self->c);
	close(self->s);
	/* The next test is to find it free. */
	EXPECT_TRUE(hps_until_send_memory(0));
}

/*
 * Until the last one gets nothing, but for its first bytes, which everybody has. Meanwhile
 * others may give some back.
 */
static bool take_all(const struct hps *t, const int *hog)
{
	const int64_t end = hps_now() + hps_deadline();
	int64_t had = t->rdma;
	int i;

	while (had > 0 && hps_now() < end)
		for (i = 0; i < HOGS && had >= 0; i++)
			had = take_memory(hog[i]);
	return !had;
}

/* A little at a time, when poll() says that it can; what is much is had by force. */
static long push_polled(struct hps_call *call)
{
	const int64_t end = hps_now() + hps_deadline();
	uint8_t *buf = call->buf;
	size_t at = 0, part;
	ssize_t n;

	while (at < call->len && hps_now() < end) {
		if (!hps_wait(call->fd, POLLOUT))
			break;
		part = call->len - at < 1000 ? call->len - at : 1000;
		n = send(call->fd, buf + at, part, MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			break;
		at += n < 0 ? 0 : n;
	}
	shutdown(call->fd, SHUT_WR);
	return at;
}

/* Others can connect, and say something */
TEST_F(memory, connects)
{
	uint8_t byte = 1;
	int c, s;

	ASSERT_TRUE(take_all(&self->t, self->hog));
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	EXPECT_EQ(1, send(c, &byte, 1, 0));
	EXPECT_EQ(1, recv(s, &byte, 1, 0));
	EXPECT_EQ(1, send(s, &byte, 1, 0));
	EXPECT_EQ(1, recv(c, &byte, 1, 0));
	EXPECT_OK(close(c));
	EXPECT_OK(close(s));
}

/* An empty socket takes something, whenever it says so */
TEST_F(memory, sends)
{
	enum { LEN = 100000 };
	struct hps_call call = { .fn = push_polled, .fd = self->c, .len = LEN,
				 .buf = hps_memory(LEN) };

	hps_fill(call.buf, LEN, 0, 1);
	ASSERT_TRUE(take_all(&self->t, self->hog));
	EXPECT_EQ(POLLOUT, hps_poll(self->c, POLLOUT, 0));
	hps_start(&call);
	EXPECT_EQ(LEN, hps_pull(self->s, LEN, LEN, 1));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LEN, call.ret);
}

/* A reader of a few bytes has them, although there is memory for all at the peer alone */
TEST_F(memory, small_reads)
{
	enum { LEN = 256 << 10 };
	long lent = hps_stat("tx_lent");
	uint8_t *out = hps_memory(LEN), byte;

	if (self->t.rdma) {
		ASSERT_OK(hps_zerocopy(&self->t, self->c));
		/* Without a reader little of it is fetched. */
		ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 4096));
	}
	hps_fill(out, LEN, 0, 1);
	ASSERT_EQ(LEN, send(self->c, out, LEN, self->t.rdma ? MSG_ZEROCOPY : 0));
	if (self->t.rdma)
		ASSERT_TRUE(hps_until_stat("tx_lent", lent + LEN / 2));
	ASSERT_TRUE(take_all(&self->t, self->hog));
	ASSERT_TRUE(hps_wait(self->s, POLLIN) & POLLIN);
	EXPECT_EQ(1, recv(self->s, &byte, 1, MSG_DONTWAIT | MSG_PEEK));
	EXPECT_EQ(LEN, hps_pull(self->s, LEN, 1000, 1));
}

static long push_little(struct hps_call *call)
{
	return hps_push(call->fd, call->len, 600, 1);
}

/* What comes in when there is no memory for it waits at the peer, but not for ever */
TEST_F(memory, comes_back)
{
	enum { LEN = 48000 };
	struct hps_call call = { .fn = push_little, .fd = self->c, .len = LEN };

	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUF, 4096));
	ASSERT_TRUE(take_all(&self->t, self->hog));
	if (self->t.rdma) {
		hps_block(&call);
		EXPECT_GT(LEN, hps_inq(self->s));
		ASSERT_OK(give_back(self->hog));
	} else {
		hps_start(&call);
	}
	EXPECT_TRUE(hps_until_inq(self->s, LEN));
	EXPECT_EQ(LEN, hps_pull(self->s, LEN, LEN, 1));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LEN, call.ret);
}

TEST_HARNESS_MAIN
