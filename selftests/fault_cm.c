// SPDX-License-Identifier: GPL-2.0
/*
 * Races with rdma_cm, their windows widened by selftests/delay: functions of the kernel
 * take longer while a device goes. Needs root, kprobes and the devices of vm/run.
 */
#include "hps_test.h"

/* enum rdma_cm_state is the core's own: an id that asks for a route */
#define RDMA_CM_ROUTE_QUERY "3"

#define COUNT "/sys/module/hpsock_delay/parameters/count"

#define CONNECTS 16

FIXTURE(cm) {
	struct hps t;
	const char *dev;
};

FIXTURE_VARIANT(cm) {
	int af;
};

FIXTURE_VARIANT_ADD(cm, hpsock) { AF_INET };
FIXTURE_VARIANT_ADD(cm, hpsock6) { AF_INET6 };

/* A shell command: 0 if it succeeds. */
static int run(const char *format, ...)
{
	char command[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	return system(command);
}

static int add_device(const char *dev)
{
	return run("rdma link show | grep -q '^link %s0/' || "
		   "rdma link add %s0 type %s netdev v0", dev, dev, dev);
}

/* How often the two functions were delayed. */
static void delayed(int count[2])
{
	FILE *f = fopen(COUNT, "r");

	count[0] = -1;
	count[1] = -1;
	if (!f)
		return;
	if (fscanf(f, "%d,%d", &count[0], &count[1]) != 2)
		count[1] = -1;
	fclose(f);
}

/* A connection can be made again, which takes a moment after a device came. */
static bool works_again(const struct hps *t)
{
	int64_t end = hps_now() + hps_deadline();
	int c, s;

	while (hps_pair(t, &c, &s)) {
		close(c);
		close(s);
		if (hps_now() > end)
			return false;
		usleep(50000);
	}
	close(c);
	close(s);
	return true;
}

FIXTURE_SETUP(cm)
{
	hps_init(&self->t, true, variant->af);
	self->dev = getenv("HPSOCK_DEV") ?: "rxe";
	if (access("/sys/class/net/v1", F_OK) || !getenv("HPSOCK_DELAY_KO"))
		SKIP(return, "not in a guest of vm/run");
	if (access("/sys/kernel/debug/kprobes", F_OK))
		SKIP(return, "no kprobes in this kernel");
	ASSERT_EQ(0, add_device(self->dev));
	/* Who resolves a route gets its answer late; who cancels that comes late, too. */
	ASSERT_EQ(0, run("insmod $HPSOCK_DELAY_KO symbol=cma_work_handler,cma_cancel_operation "
			 "us=30000,40000 arg=-1,1 value=0," RDMA_CM_ROUTE_QUERY));
	ASSERT_TRUE(works_again(&self->t));
}

FIXTURE_TEARDOWN(cm)
{
	add_device(self->dev);
	run("rmmod hpsock_delay 2>/dev/null");
}

/*
 * The device goes while connections ask for a route. A run tells something only if
 * one was asking, so there are runs until that was so often enough.
 */
TEST_F_TIMEOUT(cm, removed_while_routed, 300 * hps_slow())
{
	int runs = hps_env("HPS_RUNS", 3), c[CONNECTS], before[2], now[2], l, i, hits = 0;
	int64_t end = hps_now() + (runs + 10) * hps_deadline();
	struct hps_addr at;

	l = hps_listen(&self->t, CONNECTS, &at);
	ASSERT_OK(l);
	while (hits < runs && hps_now() < end) {
		delayed(before);
		ASSERT_LE(0, before[1]);
		for (i = 0; i < CONNECTS; i++) {
			c[i] = hps_dial_nb(&self->t, at);
			ASSERT_OK(c[i]);
		}
		do
			delayed(now);
		while (now[0] == before[0] && hps_now() < end);
		ASSERT_EQ(0, run("rdma link delete %s0", self->dev));
		for (i = 0; i < CONNECTS; i++) {
			EXPECT_TRUE(hps_wait(c[i], POLLOUT) & POLLERR);
			EXPECT_NE(0, hps_error(c[i]));
			close(c[i]);
		}
		delayed(now);
		hits += now[1] > before[1];
		ASSERT_EQ(0, add_device(self->dev));
		ASSERT_TRUE(works_again(&self->t));
	}
	EXPECT_EQ(runs, hits);
}

TEST_HARNESS_MAIN
