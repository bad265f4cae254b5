// SPDX-License-Identifier: GPL-2.0
/*
 * Races with rdma_cm and with devices, their windows widened by selftests/delay: functions of
 * the kernel take longer while a device goes, a listener or a connection. Needs root, kprobes
 * and the devices of vm/run.
 */
#include "hps_test.h"

/* enum rdma_cm_state is the core's own: an id that asks for a route */
#define RDMA_CM_ROUTE_QUERY "3"

/* Between a request's listener is found and its lock is taken, if it is switched on */
#define REQUEST_SYMBOL "trace_event_raw_event_cm_req_handler"
#define REQUEST_EVENT "/sys/kernel/debug/tracing/events/rdma_cma/cm_req_handler/enable"

#define CONNECTS 16

FIXTURE(cm) {
	struct hps t;
};

FIXTURE_VARIANT(cm) {
	int af;
};

FIXTURE_VARIANT_ADD(cm, hpsock) { AF_INET };
FIXTURE_VARIANT_ADD(cm, hpsock6) { AF_INET6 };

FIXTURE_SETUP(cm)
{
	hps_init(&self->t, true, variant->af);
	if (hps_cannot_delay())
		SKIP(return, "%s", hps_cannot_delay());
	ASSERT_EQ(0, hps_add_device(0));
}

FIXTURE_TEARDOWN(cm)
{
	hps_add_device(0);
	hps_run("echo 0 2>/dev/null >" REQUEST_EVENT);
	hps_run("rmmod hpsock_delay 2>/dev/null");
}

/*
 * The device goes while connections ask for a route. A run tells something only if
 * one was asking, so there are runs until that was so often enough.
 */
TEST_F_TIMEOUT(cm, removed_while_routed, 300 * hps_slow())
{
	int runs = hps_env("HPS_RUNS", 3), c[CONNECTS], before[2], now[2], l, i, hits = 0;
	int64_t end = hps_now() + 5 * hps_deadline();
	struct hps_addr at;

	/* Who resolves a route gets its answer late; who cancels that comes late, too. */
	ASSERT_EQ(0, hps_run("insmod $HPSOCK_DELAY_KO symbol=cma_work_handler,cma_cancel_operation "
			 "us=30000,40000 arg=-1,1 value=0," RDMA_CM_ROUTE_QUERY));
	ASSERT_TRUE(hps_works_again(&self->t));
	l = hps_listen(&self->t, CONNECTS, &at);
	ASSERT_OK(l);
	while (hits < runs && hps_now() < end) {
		hps_delayed(before);
		ASSERT_LE(0, before[1]);
		for (i = 0; i < CONNECTS; i++) {
			c[i] = hps_dial_nb(&self->t, at);
			ASSERT_OK(c[i]);
		}
		do
			hps_delayed(now);
		while (now[0] == before[0] && hps_now() < end);
		ASSERT_EQ(0, hps_remove_device(0));
		for (i = 0; i < CONNECTS; i++) {
			EXPECT_TRUE(hps_wait(c[i], POLLOUT) & POLLERR);
			EXPECT_NE(0, hps_error(c[i]));
			close(c[i]);
		}
		hps_delayed(now);
		hits += now[1] > before[1];
		ASSERT_EQ(0, hps_add_device(0));
		ASSERT_TRUE(hps_works_again(&self->t));
	}
	EXPECT_EQ(runs, hits);
}

/*
 * The device goes between a program's bind and its question for the address, if it has a
 * port that it must prove to the peer: rdma_cm's id has the device by then.
 */
TEST_F_TIMEOUT(cm, removed_while_proven, 300 * hps_slow())
{
	int64_t end = hps_now() + 2 * hps_deadline();
	int c, err = 0, now[2], us;
	struct hps_addr at;
	pid_t pid;

	ASSERT_OK(hps_listen(&self->t, 10, &at));
	/* A connection that was there before the device went proves nothing. */
	for (us = 200000; !err && us < 10000000; us *= 2) {
		ASSERT_EQ(0, hps_run("insmod $HPSOCK_DELAY_KO symbol=rdma_resolve_addr us=%d", us));
		c = hps_bound(&self->t, 0, hps_at(self->t.a, 1011));
		ASSERT_OK(c);
		/* No thread: who forks waits until processors have let go of its memory. */
		pid = hps_fork();
		if (!pid)
			_exit(hps_connect(c, at) ? errno : 0);
		do
			hps_delayed(now);
		while (!now[0] && hps_now() < end);
		ASSERT_EQ(0, hps_remove_device(0));
		err = hps_reap(pid);
		ASSERT_OK(hps_reset(c));
		ASSERT_EQ(0, hps_add_device(0));
		ASSERT_EQ(0, hps_run("rmmod hpsock_delay"));
	}
	/* Its id was told, or finds that there is no device to ask. */
	EXPECT_TRUE(err == ENETDOWN || err == ENETUNREACH);
	EXPECT_TRUE(hps_works_again(&self->t));
}

/*
 * The last socket that listens is closed while requests come in. rdma_cm holds no reference
 * to a listener that it has found. Only a kernel with KASAN tells of each use after free.
 */
TEST_F_TIMEOUT(cm, unlistened_while_requested, 300 * hps_slow())
{
	int runs = hps_env("HPS_RUNS", 10), c[CONNECTS], before[2], now[2], l, i, hits = 0;
	int64_t end = hps_now() + 5 * hps_deadline();
	struct hps_addr at;
	long lost;

	if (hps_siw())
		SKIP(return, "iw_cm waits for who has a listener");
	if (access(REQUEST_EVENT, F_OK))
		SKIP(return, "no events in this kernel");
	/* One whose device went has yet to find that out. */
	ASSERT_TRUE(hps_until_stat_is("orphans", 0));
	lost = hps_stat("retry_exceeded");
	ASSERT_EQ(0, hps_run("insmod $HPSOCK_DELAY_KO symbol=" REQUEST_SYMBOL " us=30000 && "
			 "echo 1 >" REQUEST_EVENT));
	while (hits < runs && hps_now() < end) {
		l = hps_listen(&self->t, CONNECTS, &at);
		ASSERT_OK(l);
		hps_delayed(before);
		ASSERT_LE(0, before[0]);
		for (i = 0; i < CONNECTS; i++) {
			c[i] = hps_dial_nb(&self->t, at);
			ASSERT_OK(c[i]);
		}
		do
			hps_delayed(now);
		while (now[0] == before[0] && hps_now() < end);
		close(l);
		hps_delayed(now);
		hits += now[0] > before[0];
		for (i = 0; i < CONNECTS; i++) {
			EXPECT_TRUE(hps_wait_exactly(c[i], POLLHUP) & POLLHUP);
			close(c[i]);
		}
	}
	EXPECT_EQ(runs, hits);
	/* Each was told, none had to find out by itself. */
	EXPECT_EQ(lost, hps_stat("retry_exceeded"));
	EXPECT_EQ(0, hps_run("echo 0 >" REQUEST_EVENT));
	EXPECT_TRUE(hps_works_again(&self->t));
}

/*
 * A listener is closed while a request is about to take its place in the backlog: close()
 * gives the port back, though the request still has the socket. A run tells something only
 * if the request came too late.
 */
TEST_F_TIMEOUT(cm, closed_while_requested, 300 * hps_slow())
{
	int runs = hps_env("HPS_RUNS", 3), before[2], now[2], l, c, other, hits = 0;
	int64_t end = hps_now() + 5 * hps_deadline();
	struct hps_addr at;

	/* The last one that listens would wait for the request. */
	ASSERT_OK(hps_listen(&self->t, 1, &at));
	ASSERT_EQ(0, hps_run("insmod $HPSOCK_DELAY_KO symbol=hps_queue_reserve us=50000"));
	other = hps_bound(&self->t, 0, self->t.b);
	ASSERT_OK(other);
	at = hps_name(other);
	close(other);
	while (hits < runs && hps_now() < end) {
		l = hps_bound(&self->t, 0, at);
		ASSERT_OK(l);
		ASSERT_OK(listen(l, 1));
		hps_delayed(before);
		ASSERT_LE(0, before[0]);
		c = hps_dial_nb(&self->t, at);
		ASSERT_OK(c);
		do
			hps_delayed(now);
		while (now[0] == before[0] && hps_now() < end);
		close(l);
		other = hps_bound(&self->t, 0, at);
		EXPECT_OK(other);
		EXPECT_TRUE(hps_wait(c, POLLOUT));
		hits += hps_error(c) == ECONNREFUSED;
		close(c);
		close(other);
	}
	EXPECT_EQ(runs, hits);
}

/*
 * A listener is closed while a request is being established: it is neither among those
 * that wait for accept() nor any longer among those on their way, unless close() looks at
 * both at once. One that close() overlooks has nobody who will ever read it or close it.
 */
TEST_F_TIMEOUT(cm, closed_while_established, 300 * hps_slow())
{
	int runs = hps_env("HPS_RUNS", 10), before[2], now[2], l, c, hits = 0;
	int64_t end = hps_now() + 5 * hps_deadline();
	struct hps_addr at;

	/* It gets there between the first and the second look. */
	ASSERT_EQ(0, hps_run("insmod $HPSOCK_DELAY_KO symbol=hps_queue_ready,hps_queue_pop "
			 "us=60000,40000"));
	while (hits < runs && hps_now() < end) {
		l = hps_listen(&self->t, 1, &at);
		ASSERT_OK(l);
		hps_delayed(before);
		ASSERT_LE(0, before[0]);
		c = hps_dial_nb(&self->t, at);
		ASSERT_OK(c);
		do
			hps_delayed(now);
		while (now[0] == before[0] && hps_now() < end);
		/* It may have been delayed on this processor. */
		hits += !hps_poll(l, POLLIN, 0);
		close(l);
		EXPECT_TRUE(hps_wait_exactly(c, POLLHUP) & POLLHUP);
		close(c);
	}
	EXPECT_EQ(runs, hits);
}

/*
 * Connections end while Soft-RoCE is about to have their queue pairs' tasks look at what came
 * in, which these, on the other processor, have done long since. If a queue pair goes that is
 * still to be touched the kernel dies, sooner or later.
 */
TEST_F_TIMEOUT(cm, closed_while_received, 300 * hps_slow())
{
	int runs = hps_env("HPS_RUNS", 10), c[CONNECTS], s[CONNECTS], before[2], now[2];
	int i, hits = 0;
	int64_t end = hps_now() + 5 * hps_deadline();

	if (hps_siw())
		SKIP(return, "Soft-RoCE's tasks");
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one processor");
	ASSERT_EQ(0, hps_run("insmod $HPSOCK_DELAY_KO symbol=rxe_sched_task,rxe_run_task "
			 "us=20000,20000 cpu=1"));
	while (hits < runs && hps_now() < end) {
		for (i = 0; i < CONNECTS; i++) {
			ASSERT_OK(hps_pair(&self->t, &c[i], &s[i]));
			ASSERT_EQ(1, send(c[i], "x", 1, 0));
		}
		hps_delayed(before);
		ASSERT_LE(0, before[0]);
		for (i = 0; i < CONNECTS; i++) {
			ASSERT_EQ(0, close(c[i]));
			ASSERT_EQ(0, close(s[i]));
		}
		hps_delayed(now);
		hits += now[0] + now[1] > before[0] + before[1];
	}
	EXPECT_EQ(runs, hits);
	EXPECT_EQ(0, hps_run("rmmod hpsock_delay"));
	EXPECT_TRUE(hps_works_again(&self->t));
}

/*
 * A client gives up before the server's Soft-iWARP has accepted its TCP connection, which until
 * then passes for the listener: the end of the one would be the end of the other.
 */
TEST_F_TIMEOUT(cm, given_up_unaccepted, 300 * hps_slow())
{
	int runs = hps_env("HPS_RUNS", 3), before[2], now[2], c, i;
	int64_t end = hps_now() + 2 * hps_deadline();
	struct hps_addr at;

	if (!hps_siw())
		SKIP(return, "Soft-iWARP's TCP");
	ASSERT_OK(hps_listen(&self->t, CONNECTS, &at));
	ASSERT_EQ(0, hps_run("insmod $HPSOCK_DELAY_KO symbol=kernel_accept us=50000"));
	for (i = 0; i < runs; i++) {
		hps_delayed(before);
		ASSERT_LE(0, before[0]);
		c = hps_dial_nb(&self->t, at);
		ASSERT_OK(c);
		do
			hps_delayed(now);
		while (now[0] == before[0] && hps_now() < end);
		EXPECT_LT(before[0], now[0]);
		close(c);
		EXPECT_TRUE(hps_works_again(&self->t));
	}
}

TEST_HARNESS_MAIN
