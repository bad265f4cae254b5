// SPDX-License-Identifier: GPL-2.0
/*
 * Host B loses its power. Of what A has to do with it, each learns within a bound:
 * who sends, who would send if B had read, who waits and has set SO_KEEPALIVE.
 */
#include "hps_test.h"

#define PORT 5000

/* The connections of each family, in the order in which they are made. */
enum { SEND, FULL, READ, POLL, KINDS };

static char buf[1000];

static long push_call(struct hps_call *call)
{
	return hps_push(call->fd, INT64_MAX, 5000, 1);
}

static long pull_call(struct hps_call *call)
{
	return hps_pull(call->fd, INT64_MAX, 5000, 1);
}

/* A queue pair tries again for a while. */
static bool ends(struct hps_call *call)
{
	int64_t end = hps_now() + 60000 + 10000 * hps_slow();

	while (!call->done && hps_now() < end)
		usleep(10000);
	return call->done && hps_done(call);
}

/* Until the power goes. */
static void host_b(struct __test_metadata *_metadata, struct hps t[2])
{
	struct hps_call pull[2] = { { .fn = pull_call }, { .fn = pull_call } };
	int l[2], i, k;

	for (i = 0; i < 2; i++) {
		l[i] = hps_bound(&t[i], 0, hps_at(t[i].b, PORT));
		ASSERT_OK(l[i]);
		ASSERT_OK(listen(l[i], KINDS));
	}
	ASSERT_EQ(0, system("hps-barrier listening"));
	for (i = 0; i < 2; i++) {
		for (k = 0; k < KINDS; k++) {
			int fd = hps_accept(l[i]);

			ASSERT_OK(fd);
			if (k == SEND) {
				pull[i].fd = fd;
				hps_start(&pull[i]);
			}
		}
	}
	ASSERT_EQ(0, system("hps-barrier connected"));
	pause();
}

static void host_a(struct __test_metadata *_metadata, struct hps t[2])
{
	static const struct hps_call kinds[] = {
		[SEND] = { .fn = push_call },
		[FULL] = { .fn = push_call },
		[READ] = { .fn = hps_recv_call, .buf = buf, .len = 10 },
		[POLL] = { .fn = hps_poll_call, .arg = POLLIN },
	};
	struct hps_call call[2][KINDS];
	int i, k;

	ASSERT_EQ(0, system("hps-barrier listening"));
	for (i = 0; i < 2; i++)
		for (k = 0; k < KINDS; k++) {
			call[i][k] = kinds[k];
			call[i][k].fd = hps_dial(&t[i], hps_at(t[i].b, PORT));
			ASSERT_OK(call[i][k].fd);
			if (k == READ || k == POLL) {
				ASSERT_OK(hps_set(call[i][k].fd, IPPROTO_TCP, TCP_KEEPIDLE, 1));
				ASSERT_OK(hps_set(call[i][k].fd, SOL_SOCKET, SO_KEEPALIVE, 1));
			}
		}
	ASSERT_EQ(0, system("hps-barrier connected"));
	for (i = 0; i < 2; i++)
		for (k = 0; k < KINDS; k++) {
			if (k == FULL) {
				ASSERT_LT(0, hps_stuff(call[i][k].fd, 0, 1));
				hps_block(&call[i][k]);
			} else {
				hps_start(&call[i][k]);
			}
		}
	ASSERT_EQ(0, system("hps-kill hpb"));
	for (i = 0; i < 2; i++) {
		for (k = 0; k < KINDS; k++) {
			ASSERT_TRUE(ends(&call[i][k])) TH_LOG("family %d, call %d", i, k);
			if (k == POLL) {
				EXPECT_EQ(POLLIN | POLLERR | POLLHUP, call[i][k].ret);
				EXPECT_EQ(ETIMEDOUT, hps_error(call[i][k].fd));
			} else {
				EXPECT_EQ(ETIMEDOUT, call[i][k].err);
			}
		}
	}
}

FIXTURE(poweroff) {
	struct hps t[2];
};

FIXTURE_SETUP(poweroff)
{
	hps_init(&self->t[0], true, AF_INET);
	hps_init(&self->t[1], true, AF_INET6);
}

FIXTURE_TEARDOWN(poweroff) { }

TEST_F_TIMEOUT(poweroff, peer, 300 * hps_slow())
{
	char name[64] = "";

	gethostname(name, sizeof(name) - 1);
	if (!strcmp(name, "hpa"))
		host_a(_metadata, self->t);
	else
		host_b(_metadata, self->t);
}

TEST_HARNESS_MAIN
