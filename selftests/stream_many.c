// SPDX-License-Identifier: GPL-2.0
/*
 * Many connections that do nothing: what they cost, and that they still work.
 * HPS_MANY_CONNS says how many.
 */
#include "hps_test.h"

#include <sys/resource.h>

/*
 * Bytes of the module's own memory for an end of a connection. Where the kernel looks for
 * deadlocks a lock alone is several times as large.
 */
#define IDLE_MAX		16384
#define IDLE_MAX_LOCKDEP	(IDLE_MAX + 2048)

HPS_FIXTURE(many)

static long own_memory(void)
{
	return hps_stat("memory");
}

static long free_memory(void)
{
	return hps_field("/proc/meminfo", "MemFree:") * 1024;
}

static bool until_own_memory(long bytes)
{
	int64_t end = hps_now() + hps_deadline();

	while (own_memory() > bytes) {
		if (hps_now() > end)
			return false;
		usleep(10000);
	}
	return true;
}

static void expect_byte(struct __test_metadata *_metadata, int fd, char expected)
{
	char byte[2];
	int len = recv(fd, byte, 2, 0);

	ASSERT_OK(len);
	EXPECT_EQ(1, len);
	EXPECT_EQ(expected, byte[0]);
}

TEST_F_TIMEOUT(many, idle, 600 * hps_slow())
{
	/* A slow kernel does less. */
	int conns = hps_env("HPS_MANY_CONNS", hps_slow() == 1 ? 2000 : 200), i;
	struct rlimit files = { 65536, 65536 };
	int *c = calloc(conns, sizeof(int)), *s = calloc(conns, sizeof(int));
	long own, all, begin = 0;
	struct hps_addr at;
	int64_t start;
	int l;

	setrlimit(RLIMIT_NOFILE, &files);
	l = hps_listen(&self->t, 16, &at);
	ASSERT_OK(l);
	if (self->t.rdma) {
		begin = own_memory();
		ASSERT_LE(0, begin);
	}
	all = free_memory();
	start = hps_now();
	for (i = 0; i < conns; i++) {
		c[i] = hps_dial(&self->t, at);
		ASSERT_OK(c[i]);
		s[i] = hps_accept(l);
		ASSERT_OK(s[i]);
	}
	start = hps_now() - start;
	all = (all - free_memory()) / (2 * conns);
	own = self->t.rdma ? (own_memory() - begin) / (2 * conns) : 0;
	TH_LOG("%d connections, %lld us each; bytes an end: %ld of the module, %ld of others",
	       conns, (long long)start * 1000 / conns, own, all - own);
	EXPECT_GE(access("/proc/lockdep", F_OK) ? IDLE_MAX : IDLE_MAX_LOCKDEP, own);

	for (i = 0; i < conns; i++) {
		ASSERT_EQ(1, send(c[i], "c", 1, 0));
		ASSERT_EQ(1, send(s[i], "s", 1, 0));
	}
	for (i = 0; i < conns; i++) {
		expect_byte(_metadata, c[i], 's');
		expect_byte(_metadata, s[i], 'c');
		ASSERT_OK(close(c[i]));
		ASSERT_OK(close(s[i]));
	}
	/* Nothing of them stays. */
	if (self->t.rdma)
		EXPECT_TRUE(until_own_memory(begin));
}

/* Receives that cannot grow as there is no more memory for them, and then can. */
TEST_F(many, little_memory)
{
	static const char path[] = "/sys/module/hpsock/parameters/mem_max_kb";
	const int conns = 8, len = 1000000;
	long most = hps_number(path, 0);
	int c[8], s[8], i, round;
	long begin = 0;
	pid_t pid;

	if (self->t.rdma) {
		begin = own_memory();
		ASSERT_OK(hps_set_number(path, 1024));
	}
	for (i = 0; i < conns; i++) {
		ASSERT_OK(hps_pair(&self->t, &c[i], &s[i]));
	}
	for (round = 0; round < 2; round++) {
		for (i = 0; i < conns; i++) {
			pid = hps_fork();
			ASSERT_OK(pid);
			if (!pid)
				_exit(hps_push(c[i], len, 65536, i) != len);
			EXPECT_EQ(len, hps_pull(s[i], len, 65536, i));
			EXPECT_EQ(0, hps_reap(pid));
		}
		if (self->t.rdma)
			ASSERT_OK(hps_set_number(path, most));
	}
	for (i = 0; i < conns; i++) {
		ASSERT_OK(close(c[i]));
		ASSERT_OK(close(s[i]));
	}
	if (self->t.rdma)
		EXPECT_TRUE(until_own_memory(begin));
}

#define MEM_MAX "/sys/module/hpsock/parameters/mem_max_kb"
#define MEM_SHARE "/sys/module/hpsock/parameters/mem_share"
#define NOBODY 65534

/*
 * Was there no memory for its receives, at either end? mem_refused_* counts what others do
 * not get to grow as well.
 */
static bool turned_away(int c, long rejected)
{
	return hps_stat("reject_nomem") > rejected || hps_poll(c, 0, 0) & POLLERR;
}

/* As many connections as there is memory for, at most so many; they stay. */
static int fill_memory(const struct hps *t, int most)
{
	const int64_t end = hps_now() + hps_deadline();
	struct hps_addr at;
	int l = hps_listen(t, most, &at), c, i;
	long rejected = hps_stat("reject_nomem");

	for (i = 0; i < most; i++) {
		c = hps_dial_nb(t, at);
		if (c < 0)
			break;
		while (!hps_poll(l, POLLIN, 10) && !turned_away(c, rejected) && hps_now() < end)
			;
		/* Who was refused would try again, and again, and be counted. */
		if (!hps_poll(l, POLLIN, 0)) {
			close(c);
			break;
		}
		if (hps_accept(l) < 0)
			break;
	}
	close(l);
	return i;
}

/* What the connections of the test before had is given back some time after their end. */
/* One user takes all that it gets; another still gets something. TCP has no such limit. */
TEST_F(many, another_user)
{
	const int most = 100;
	long max, refused = 0;
	int got[2];
	char byte;
	pid_t pid;

	if (geteuid())
		SKIP(return, "needs root");
	max = self->t.rdma ? hps_number(MEM_MAX, 0) : 0;
	if (self->t.rdma) {
		ASSERT_TRUE(hps_until_stat_is("memory_receives", 0));
		refused = hps_stat("mem_refused_user");
		ASSERT_OK(hps_set_number(MEM_MAX, 1024));
	}
	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, got));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		close(got[0]);
		if (setresuid(NOBODY, NOBODY, NOBODY))
			_exit(1);
		byte = fill_memory(&self->t, most);
		if (write(got[1], &byte, 1) != 1 || read(got[1], &byte, 1))
			_exit(2);
		_exit(0);
	}
	close(got[1]);
	EXPECT_EQ(1, read(got[0], &byte, 1));
	EXPECT_LT(10, byte);
	if (self->t.rdma) {
		EXPECT_GT(most, byte);
		EXPECT_LT(refused, hps_stat("mem_refused_user"));
	}
	EXPECT_EQ(1, fill_memory(&self->t, 1));
	close(got[0]);
	EXPECT_EQ(0, hps_reap(pid));
	if (self->t.rdma)
		EXPECT_OK(hps_set_number(MEM_MAX, max));
}

/* Connections that have grown as far as they may leave something for new ones. */
TEST_F(many, new_beside_grown)
{
	const int conns = 8, len = 1000000, more = 4;
	long max = 0, share = 0;
	int c, s, i;
	pid_t pid;

	if (self->t.rdma) {
		ASSERT_TRUE(hps_until_stat_is("memory_receives", 0));
		max = hps_number(MEM_MAX, 0);
		share = hps_number(MEM_SHARE, 0);
		ASSERT_OK(hps_set_number(MEM_MAX, 1024));
		EXPECT_OK(hps_set_number(MEM_SHARE, 100));
	}
	for (i = 0; i < conns; i++) {
		ASSERT_OK(hps_pair(&self->t, &c, &s));
		pid = hps_fork();
		ASSERT_OK(pid);
		if (!pid)
			_exit(hps_push(c, len, 65536, i) != len);
		EXPECT_EQ(len, hps_pull(s, len, 65536, i));
		EXPECT_EQ(0, hps_reap(pid));
	}
	/* While others shrink, which takes some besides, not at the first try. */
	for (i = 0; i < more; i++)
		EXPECT_OK(hps_pair(&self->t, &c, &s));
	if (self->t.rdma) {
		EXPECT_LT(hps_stat("memory_receives"), 1024 << 10);
		EXPECT_OK(hps_set_number(MEM_SHARE, share));
		EXPECT_OK(hps_set_number(MEM_MAX, max));
	}
}

TEST_HARNESS_MAIN
