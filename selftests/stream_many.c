// SPDX-License-Identifier: GPL-2.0
/*
 * Many connections that do nothing: what they cost, and that they still work.
 * HPS_MANY_CONNS says how many.
 */
#include "hps_test.h"

#include <sys/resource.h>

/* Bytes of the module's own memory for an end of a connection */
#define IDLE_MAX	16384

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
	/* On kernels that look for bugs a lock alone is several times as large. */
	EXPECT_GE(hps_slow() > 1 ? IDLE_MAX + 2048 : IDLE_MAX, own);

	for (i = 0; i < conns; i++) {
		ASSERT_EQ(1, send(c[i], "c", 1, 0));
		ASSERT_EQ(1, send(s[i], "s", 1, 0));
	}
	for (i = 0; i < conns; i++) {
		char byte[2];

		ASSERT_EQ(1, recv(c[i], byte, 2, 0));
		EXPECT_EQ('s', byte[0]);
		ASSERT_EQ(1, recv(s[i], byte, 2, 0));
		EXPECT_EQ('c', byte[0]);
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

TEST_HARNESS_MAIN
