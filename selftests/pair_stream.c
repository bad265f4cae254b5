// SPDX-License-Identifier: GPL-2.0
/*
 * Two hosts talk to each other. This runs on both, at once: see vm/pair. The
 * tests are the same in both, in the same order.
 */
#include "hps_test.h"

#define PORT 5000
#define BYTES 2000000

HPS_FIXTURE(pair)

static bool is_a(void)
{
	char name[64] = "";

	gethostname(name, sizeof(name) - 1);
	return !strcmp(name, "hpa");
}

/* Both have come here. */
static int meet(const struct hps *t, const char *where)
{
	char command[128];

	snprintf(command, sizeof(command), "hps-barrier %s-%d-%d", where, t->rdma, t->af);
	return system(command);
}

/* This host's end of a connection, made by A. */
static int join(struct __test_metadata *_metadata, const struct hps *t)
{
	int fd, l = -1;

	if (!is_a()) {
		struct hps_addr at = hps_at(t->b, PORT);
		int one = 1;

		l = hps_socket(t, 0);
		ASSERT_OK(setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
		ASSERT_OK(hps_bind(l, at));
		ASSERT_OK(listen(l, 1));
	}
	ASSERT_EQ(0, meet(t, _metadata->name));
	fd = is_a() ? hps_dial(t, hps_at(t->b, PORT)) : hps_accept(l);
	ASSERT_OK(fd);
	close(l);
	return fd;
}

static long push_call(struct hps_call *call)
{
	return hps_push(call->fd, BYTES, 30000, call->arg);
}

/* Each sends and receives as much as it can, and knows what is right. */
TEST_F_TIMEOUT(pair, both_ways, 120 * hps_slow())
{
	int fd = join(_metadata, &self->t);
	struct hps_call push = { .fn = push_call, .fd = fd, .arg = is_a() };

	hps_start(&push);
	EXPECT_EQ(BYTES, hps_pull(fd, BYTES, 30000, !is_a()));
	ASSERT_TRUE(hps_done(&push));
	EXPECT_EQ(BYTES, push.ret);
	ASSERT_OK(shutdown(fd, SHUT_WR));
	EXPECT_EQ(0, hps_pull(fd, 1, 1, 0));
	EXPECT_EQ(0, errno);
	EXPECT_EQ(0, hps_error(fd));
}

static void one_way(struct __test_metadata *_metadata, const struct hps *t, bool send)
{
	int fd = join(_metadata, t);

	if (send) {
		EXPECT_EQ(BYTES, hps_push(fd, BYTES, 5000, 1));
		ASSERT_OK(close(fd));
	} else {
		EXPECT_EQ(BYTES, hps_pull(fd, BYTES + 1, 5000, 1));
		EXPECT_EQ(0, errno);
	}
	/* Or what is closed with the host would be cut off. */
	ASSERT_EQ(0, meet(t, send == is_a() ? "a-done" : "b-done"));
}

TEST_F_TIMEOUT(pair, from_a, 120 * hps_slow())
{
	one_way(_metadata, &self->t, is_a());
}

TEST_F_TIMEOUT(pair, from_b, 120 * hps_slow())
{
	one_way(_metadata, &self->t, !is_a());
}

TEST_F_TIMEOUT(pair, reset, 120 * hps_slow())
{
	int fd = join(_metadata, &self->t);
	char byte;

	if (is_a()) {
		ASSERT_EQ(1, recv(fd, &byte, 1, 0));
		ASSERT_OK(hps_reset(fd));
	} else {
		ASSERT_EQ(1, send(fd, "x", 1, 0));
		EXPECT_ERRNO(ECONNRESET, recv(fd, &byte, 1, 0));
	}
}

TEST_HARNESS_MAIN
