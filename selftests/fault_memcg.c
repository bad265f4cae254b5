// SPDX-License-Identifier: GPL-2.0
/* The memory of a socket is charged to the cgroup of the process that has it. */
#include "hps_test.h"

#include <limits.h>

#include <sys/stat.h>

#define CGROUP "/sys/fs/cgroup"
#define PAYLOAD 60000

HPS_FIXTURE(memcg)

static int put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY), ret;

	if (fd < 0)
		return -1;
	ret = write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	close(fd);
	return ret;
}

/* The "sock" line of a cgroup's memory.stat */
static long sock_bytes(const char *group)
{
	char path[128], key[64];
	long value;
	FILE *f;

	snprintf(path, sizeof(path), CGROUP "/%s/memory.stat", group);
	f = fopen(path, "r");
	if (!f)
		return -1;
	while (fscanf(f, "%63s %ld", key, &value) == 2)
		if (!strcmp(key, "sock")) {
			fclose(f);
			return value;
		}
	fclose(f);
	return -1;
}

/* The statistics are some seconds behind. */
static bool reaches(const char *group, long least, long most)
{
	int64_t end = hps_now() + hps_deadline();
	long bytes;

	do {
		bytes = sock_bytes(group);
		if (bytes >= least && bytes <= most)
			return true;
		usleep(100000);
	} while (hps_now() < end);
	fprintf(stderr, "# %s: sock is %ld, not from %ld to %ld\n", group, bytes, least, most);
	return false;
}

static int make(const char *group)
{
	char path[128];

	snprintf(path, sizeof(path), CGROUP "/%s", group);
	rmdir(path);
	return mkdir(path, 0755);
}

static int enter(const char *group)
{
	char path[128];

	snprintf(path, sizeof(path), CGROUP "/%s/cgroup.procs", group);
	return put(path, "0");
}

static bool leave(const char *group)
{
	int64_t end = hps_now() + hps_deadline();
	char path[128];

	snprintf(path, sizeof(path), CGROUP "/%s", group);
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
	put(CGROUP "/cgroup.subtree_control", "+memory");
	ASSERT_OK(make("hps_client"));
	ASSERT_OK(make("hps_server"));
	if (sock_bytes("hps_client") < 0) {
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
	ASSERT_OK(put(CGROUP "/cgroup.procs", "0"));
	EXPECT_TRUE(leave("hps_client"));
	EXPECT_TRUE(leave("hps_server"));
}

TEST_HARNESS_MAIN
