// SPDX-License-Identifier: GPL-2.0
/*
 * The memory of a socket is charged to the cgroup of the process that has it, and that of
 * a program may be swapped out under it.
 */
#include "hps_test.h"

#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define CGROUP "/sys/fs/cgroup"
#define PAYLOAD 60000

HPS_FIXTURE(memcg)

/* A file of a cgroup */
static const char *path_in(const char *group, const char *file)
{
	static char path[128];

	snprintf(path, sizeof(path), CGROUP "/%s/%s", group, file);
	return path;
}

/* The statistics are some seconds behind. */
static bool reaches(const char *group, long least, long most)
{
	int64_t end = hps_now() + hps_deadline();
	long bytes;

	do {
		bytes = hps_field(path_in(group, "memory.stat"), "sock");
		if (bytes >= least && bytes <= most)
			return true;
		usleep(100000);
	} while (hps_now() < end);
	fprintf(stderr, "# %s: sock is %ld, not from %ld to %ld\n", group, bytes, least, most);
	return false;
}

static int make(const char *group)
{
	const char *path = path_in(group, "");

	rmdir(path);
	return mkdir(path, 0755);
}

static int enter(const char *group)
{
	return hps_put(path_in(group, "cgroup.procs"), "0");
}

static bool leave(const char *group)
{
	int64_t end = hps_now() + hps_deadline();
	const char *path = path_in(group, "");

	while (rmdir(path) && errno == EBUSY && hps_now() < end)
		usleep(10000);
	return access(path, F_OK);
}

/*
 * The server is in one cgroup, the client in another. Both fill up; then the
 * one that has much to send and the one that has much unread are charged.
 */
TEST_F(memcg, both_ends)
{
	int up[2], down[2], l, c, s;
	struct hps_addr at;
	char byte;
	pid_t pid;

	if (access(CGROUP "/cgroup.controllers", F_OK))
		SKIP(return, "no cgroup v2 at " CGROUP);
	hps_put(CGROUP "/cgroup.subtree_control", "+memory");
	ASSERT_OK(make("hps_client"));
	ASSERT_OK(make("hps_server"));
	if (hps_field(path_in("hps_client", "memory.stat"), "sock") < 0) {
		leave("hps_client");
		leave("hps_server");
		SKIP(return, "no memory controller");
	}
	ASSERT_OK(pipe(up));
	ASSERT_OK(pipe(down));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		if (enter("hps_client") || read(down[0], &at, sizeof(at)) != sizeof(at))
			_exit(1);
		c = hps_dial(&self->t, at);
		/* Full both ways: what is written here stays here or there. */
		if (c < 0 || hps_stuff(c, 0, 1) <= 0 || write(up[1], "f", 1) != 1)
			_exit(2);
		if (read(down[0], &byte, 1) != 1)
			_exit(3);
		close(c);
		if (write(up[1], "c", 1) != 1 || read(down[0], &byte, 1) != 1)
			_exit(4);
		_exit(0);
	}
	ASSERT_OK(enter("hps_server"));
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	ASSERT_EQ(sizeof(at), write(down[1], &at, sizeof(at)));
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_EQ(1, read(up[0], &byte, 1));
	EXPECT_TRUE(reaches("hps_client", PAYLOAD, LONG_MAX));
	EXPECT_TRUE(reaches("hps_server", PAYLOAD, LONG_MAX));
	/* Nothing of it stays behind. */
	ASSERT_OK(hps_reset(s));
	close(l);
	ASSERT_EQ(1, write(down[1], "g", 1));
	ASSERT_EQ(1, read(up[0], &byte, 1));
	EXPECT_TRUE(reaches("hps_client", 0, 0));
	EXPECT_TRUE(reaches("hps_server", 0, 0));
	ASSERT_EQ(1, write(down[1], "g", 1));
	EXPECT_EQ(0, hps_reap(pid));
	ASSERT_OK(hps_put(CGROUP "/cgroup.procs", "0"));
	EXPECT_TRUE(leave("hps_client"));
	EXPECT_TRUE(leave("hps_server"));
}

#define SWAP_MIB 160
#define MIB (1 << 20)

/* Compressed memory to swap to, where the kernel has that. */
static bool swap_on(void)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "modprobe -q zram && echo %dM >/sys/block/zram0/disksize &&"
		 "mkswap -q /dev/zram0 >/dev/null && swapon /dev/zram0", SWAP_MIB);
	return !system(command);
}

static int swap_off(void)
{
	return system("swapoff /dev/zram0 && echo 1 >/sys/block/zram0/reset");
}

/* Of the pages of this cgroup, has any been swapped out? */
static bool has_swapped(const char *group)
{
	return hps_field(path_in(group, "memory.stat"), "pswpout") > 0 ||
	       hps_field("/proc/vmstat", "pswpout") > 0;
}

/*
 * Both ends have 48 MiB of memory that is sent from and received to, and a cgroup
 * that allows for a third of it: the rest is in the swap. Pages that are lent, and
 * those that are read to, are held; before and after, they are swapped like any.
 */
TEST_F_TIMEOUT(memcg, swap, 300 * hps_slow())
{
	enum { LEN = 48 * MIB, ROUNDS = 2 };
	char *out, *in;
	int c, s, i;
	size_t at;
	pid_t pid;

	if (access(CGROUP "/cgroup.controllers", F_OK))
		SKIP(return, "no cgroup v2 at " CGROUP);
	hps_put(CGROUP "/cgroup.subtree_control", "+memory");
	ASSERT_OK(make("hps_swap"));
	if (hps_put(path_in("hps_swap", "memory.max"), "33554432") || !swap_on()) {
		leave("hps_swap");
		SKIP(return, "no memory controller, or nothing to swap to");
	}
	ASSERT_TRUE(!self->t.rdma || hps_set_zcopy("protect"));
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		if (enter("hps_swap"))
			_exit(1);
		out = hps_memory(LEN);
		for (i = 0; i < ROUNDS; i++) {
			hps_fill(out, LEN, (uint64_t)LEN * i, 1);
			for (at = 0; at < LEN; at += MIB)
				if (send(c, out + at, MIB, 0) != MIB)
					_exit(3);
			/* What send() has taken is not this any more. */
			memset(out, i, LEN);
		}
		_exit(0);
	}
	close(c);
	ASSERT_OK(enter("hps_swap"));
	in = hps_memory(LEN);
	for (i = 0; i < ROUNDS; i++) {
		for (at = 0; at < LEN; at += MIB) {
			ASSERT_EQ(MIB, recv(s, in + at, MIB, MSG_WAITALL));
		}
		EXPECT_EQ(LEN, hps_check(in, LEN, (uint64_t)LEN * i, 1)) TH_LOG("round %d", i);
	}
	EXPECT_EQ(0, recv(s, in, 1, 0));
	EXPECT_EQ(0, hps_reap(pid));
	EXPECT_TRUE(has_swapped("hps_swap"));
	munmap(in, LEN);
	close(s);
	ASSERT_OK(hps_put(CGROUP "/cgroup.procs", "0"));
	EXPECT_TRUE(leave("hps_swap"));
	EXPECT_EQ(0, swap_off());
	ASSERT_TRUE(!self->t.rdma || hps_set_zcopy("auto"));
}

TEST_HARNESS_MAIN
