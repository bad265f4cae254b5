// SPDX-License-Identifier: GPL-2.0
/*
 * Who polls while a connection ends is told all of it at once, as by TCP, however long it
 * takes to tell: the windows are widened by selftests/delay. Needs root, kprobes and the
 * devices of vm/run.
 */
#include "hps_test.h"

#define END (POLLOUT | POLLERR | POLLHUP)

FIXTURE(end) {
	struct hps t;
	int c, s;
};

FIXTURE_VARIANT(end) {
	int af;
};

FIXTURE_VARIANT_ADD(end, hpsock) { AF_INET };
FIXTURE_VARIANT_ADD(end, hpsock6) { AF_INET6 };

FIXTURE_SETUP(end)
{
	hps_init(&self->t, true, variant->af);
	if (hps_cannot_delay())
		SKIP(return, "%s", hps_cannot_delay());
	ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));
	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
}

FIXTURE_TEARDOWN(end)
{
	hps_run("rmmod hpsock_delay 2>/dev/null");
}

/* The processor that tells the end is held up in a function: what does a poller see? */
static void seen_at_once(struct __test_metadata *_metadata, int c, int s, const char *held_up)
{
	int64_t end = hps_now() + hps_deadline();
	int now[2], got;

	ASSERT_EQ(0, hps_run("insmod $HPSOCK_DELAY_KO symbol=%s us=50000", held_up));
	ASSERT_OK(hps_reset(s));
	do
		got = hps_poll(c, POLLOUT, 0);
	while (!got && hps_now() < end);
	/* And then the connection is over. */
	EXPECT_EQ(0, hps_peer(c).len);
	EXPECT_EQ(END, got);
	hps_delayed(now);
	EXPECT_LT(0, now[0]);
}

/*
 * There is room because what was in the way will never be sent, and it has not said why
 * yet.
 */
TEST_F(end, room)
{
	seen_at_once(_metadata, self->c, self->s, "hps_conn_report");
}

/* It has said why, but the socket has not come to its last state. */
TEST_F(end, over)
{
	seen_at_once(_metadata, self->c, self->s, "hps_port_close");
}

static long look(struct hps_call *call)
{
	return hps_poll(call->fd, call->arg, 0);
}

/*
 * The poller is held up in the middle of its look. A run tells something if that is when the
 * end was told.
 */
TEST_F_TIMEOUT(end, halfway, 60 * hps_slow())
{
	int runs = hps_env("HPS_RUNS", 3), hits = 0, before[2], now[2];
	int64_t end = hps_now() + 50 * hps_slow() * 1000;

	ASSERT_EQ(0, hps_run("insmod $HPSOCK_DELAY_KO symbol=hps_readable us=50000"));
	while (hits < runs && hps_now() < end) {
		struct hps_call call = { .fn = look, .fd = self->c, .arg = POLLOUT };

		hps_delayed(before);
		ASSERT_LE(0, before[0]);
		hps_start(&call);
		do
			hps_delayed(now);
		while (now[0] == before[0] && hps_now() < end);
		ASSERT_OK(hps_reset(self->s));
		ASSERT_TRUE(hps_done(&call));
		if (call.ret)
			EXPECT_EQ(END, call.ret);
		hits += !!call.ret;
		close(self->c);
		ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));
		ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	}
	EXPECT_EQ(runs, hits);
}

TEST_HARNESS_MAIN
