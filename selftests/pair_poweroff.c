// SPDX-License-Identifier: GPL-2.0
/*
 * Host B loses its power. Of what A has to do with it, each learns within a bound:
 * who sends, who would send if B had read, who waits and has set SO_KEEPALIVE; whose
 * memory B was reading from, and who was reading from B's.
 */
#include "hps_test.h"

#include <limits.h>

#define PORT 5000

/* The connections of each family, in the order in which they are made. */
enum { SEND, FULL, READ, POLL, LEND, WAIT, PLACE, KINDS };

#define LARGE (256 << 10)

static char buf[1000];

static long push_call(struct hps_call *call)
{
	return hps_push(call->fd, INT64_MAX, call->len, 1);
}

static long pull_call(struct hps_call *call)
{
	return hps_pull(call->fd, INT64_MAX, call->len, 1);
}

/* What each end does on a connection; FULL is filled before. */
static const struct hps_call on_a[KINDS] = {
	[SEND] = { .fn = push_call, .len = 5000 },
	[FULL] = { .fn = push_call, .len = 5000 },
	[READ] = { .fn = hps_recv_call, .buf = buf, .len = 10 },
	[POLL] = { .fn = hps_poll_call, .arg = POLLIN },
	[LEND] = { .fn = push_call, .len = LARGE },
	[WAIT] = { .fn = push_call, .len = LARGE },
	[PLACE] = { .fn = pull_call, .len = LARGE },
};

static const struct hps_call on_b[KINDS] = {
	[SEND] = { .fn = pull_call, .len = 5000 },
	[LEND] = { .fn = pull_call, .len = LARGE },
	[WAIT] = { .fn = pull_call, .len = LARGE },
	[PLACE] = { .fn = push_call, .len = LARGE },
};

/* Who only waits for something to come. */
static bool waits(int kind)
{
	return kind == READ || kind == POLL || kind == PLACE;
}

/* A queue pair tries again for a while. */
static bool ends(struct hps_call *call)
{
	int64_t end = hps_now() + 60000 + 10000 * hps_slow();

	while (!call->done && hps_now() < end)
		usleep(10000);
	return call->done && hps_done(call);
}

static bool comes_to(const char *stat, long least, long most)
{
	int64_t end = hps_now() + hps_deadline();
	long n;

	while ((n = hps_stat(stat)) < least || n > most) {
		if (hps_now() > end)
			return false;
		usleep(10000);
	}
	return true;
}

/* Both hosts read from each other's memory: so much already, and do not stop. */
static bool carries(long bytes)
{
	return comes_to("rx_placed", bytes, LONG_MAX) && comes_to("tx_lent", bytes, LONG_MAX);
}

/* Which of the calls of both families has ended, if any? */
static struct hps_call *ended(struct hps_call call[2][KINDS])
{
	int i, k;

	for (i = 0; i < 2; i++)
		for (k = 0; k < KINDS; k++)
			if (call[i][k].fn && call[i][k].done)
				return &call[i][k];
	return NULL;
}

/* Until the power goes, and no call ends before. */
static void host_b(struct __test_metadata *_metadata, struct hps t[2])
{
	struct hps_call call[2][KINDS], *early;
	int l[2], i, k;

	for (i = 0; i < 2; i++) {
		l[i] = hps_bound(&t[i], 0, hps_at(t[i].b, PORT));
		ASSERT_OK(l[i]);
		ASSERT_OK(listen(l[i], KINDS));
	}
	ASSERT_EQ(0, system("hps-barrier listening"));
	for (i = 0; i < 2; i++) {
		for (k = 0; k < KINDS; k++) {
			call[i][k] = on_b[k];
			call[i][k].fd = hps_accept(l[i]);
			ASSERT_OK(call[i][k].fd);
			if (call[i][k].fn)
				hps_start(&call[i][k]);
		}
	}
	ASSERT_EQ(0, system("hps-barrier connected"));
	while (!(early = ended(call)))
		usleep(10000);
	i = early >= call[1];
	EXPECT_NULL(early) {
		TH_LOG("family %d, call %d: %ld, %s", i, (int)(early - call[i]), early->ret,
		       strerrorname_np(early->err));
		system("cat /proc/net/hpsock_stat >&2");
	}
}

static void host_a(struct __test_metadata *_metadata, struct hps t[2])
{
	struct hps_call call[2][KINDS];
	int i, k;

	ASSERT_EQ(0, system("hps-barrier listening"));
	for (i = 0; i < 2; i++)
		for (k = 0; k < KINDS; k++) {
			call[i][k] = on_a[k];
			call[i][k].fd = hps_dial(&t[i], hps_at(t[i].b, PORT));
			ASSERT_OK(call[i][k].fd);
			if (k == WAIT) {
				ASSERT_OK(hps_set(call[i][k].fd, SOL_HPSOCK, HPSOCK_ZCOPY,
						  HPSOCK_ZCOPY_WAIT));
			}
			if (waits(k)) {
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
	ASSERT_TRUE(carries(3 * LARGE));
	EXPECT_EQ(0, hps_stat("reset_rcvd"));
	ASSERT_EQ(0, system("hps-kill hpb"));
	for (i = 0; i < 2; i++) {
		for (k = 0; k < KINDS; k++) {
			ASSERT_TRUE(ends(&call[i][k])) TH_LOG("family %d, call %d", i, k);
			if (k == POLL) {
				EXPECT_EQ(POLLIN | POLLERR | POLLHUP, call[i][k].ret);
				EXPECT_EQ(ETIMEDOUT, hps_error(call[i][k].fd));
			} else {
				EXPECT_EQ(ETIMEDOUT, call[i][k].err)
					TH_LOG("family %d, call %d; %ld resets, %ld errors", i, k,
					       hps_stat("reset_rcvd"), hps_stat("wc_error"));
			}
		}
	}
	/* Nobody's memory is kept for a peer that is gone. */
	ASSERT_TRUE(comes_to("protect_holds", 0, 0));
}

FIXTURE(poweroff) {
	struct hps t[2];
};

FIXTURE_SETUP(poweroff)
{
	hps_init(&self->t[0], true, AF_INET);
	hps_init(&self->t[1], true, AF_INET6);
	/* Some devices are asked to read only who insists. */
	ASSERT_TRUE(hps_set_zcopy("protect"));
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
