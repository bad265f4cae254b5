// SPDX-License-Identifier: GPL-2.0
/*
 * Network namespaces with sockets in them can be deleted. Each has one end of a
 * pair of network devices, which goes with it: so the other end tells when the
 * namespace is really gone.
 */
#include "hps_test.h"

#include <net/if.h>
#include <sched.h>

HPS_FIXTURE(netns)

/* In the child: a namespace of its own, with our addresses. */
static void enter(void)
{
	if (unshare(CLONE_NEWNET) ||
	    hps_run("ip link set lo up; ip link add n0 type veth peer name n1 && "
		"ip link set n0 up && ip link set n1 up && "
		"ip addr add 10.3.0.1/24 dev n0 && ip addr add 10.3.0.2/24 dev n1 && "
		"ip -6 addr add fd03::1/64 dev n0 nodad && "
		"ip -6 addr add fd03::2/64 dev n1 nodad") ||
	    hps_set_number("/proc/sys/net/hpsock/enabled", 1))
		_exit(101);
}

/* The device that a process moved out to us, there or not within the time. */
static bool device_is(const char *name, bool there)
{
	int64_t end = hps_now() + hps_deadline();

	while (!!if_nametoindex(name) != there) {
		if (hps_now() > end)
			return false;
		usleep(10000);
	}
	return true;
}

/*
 * Run fn in a namespace with nobody else, end as it says, and see that the
 * namespace goes.
 */
static void in_namespace(struct __test_metadata *_metadata, struct hps *t, bool killed,
			 void (*fn)(const struct hps *t))
{
	char byte;
	pid_t pid;
	int p[2];

	if (geteuid())
		SKIP(return, "needs root");
	hps_run("ip link del hpsns 2>/dev/null");
	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, p));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		close(p[0]);
		enter();
		/* One end here, the other where we came from */
		hps_run("ip link add in0 type veth peer name hpsns netns %d", getppid());
		fn(t);
		/* Then end when told to. */
		if (write(p[1], "g", 1) != 1 || read(p[1], &byte, 1) != 1)
			_exit(103);
		_exit(0);
	}
	close(p[1]);
	ASSERT_EQ(1, read(p[0], &byte, 1)) TH_LOG("status %d", hps_reap(pid));
	ASSERT_TRUE(device_is("hpsns", true));
	ASSERT_OK(killed ? kill(pid, SIGKILL) : write(p[0], "e", 1));
	close(p[0]);
	EXPECT_EQ(killed ? 128 + SIGKILL : 0, hps_reap(pid));
	EXPECT_TRUE(device_is("hpsns", false));
}

static void check(bool ok)
{
	if (!ok) {
		fprintf(stderr, "# in the namespace: %s\n", strerror(errno));
		_exit(104);
	}
}

static void make_sockets(const struct hps *t)
{
	struct hps_addr at;

	check(hps_socket(t, 0) >= 0);
	check(hps_bound(t, 0, t->b) >= 0);
	check(hps_bound(t, 0, hps_any(t->af, 0)) >= 0);
	check(hps_listen(t, 4, &at) >= 0);
	check(hps_listen(t, 4, &at) >= 0);
}

static void make_connecting(const struct hps *t)
{
	struct hps_addr to = t->b;
	int i;

	/* Nobody has this address. */
	if (t->af == AF_INET)
		to.in.sin_addr.s_addr ^= htonl(0x40);
	else
		to.in6.sin6_addr.s6_addr16[7] ^= htons(0x40);
	for (i = 0; i < 4; i++) {
		int fd = hps_client(t, SOCK_NONBLOCK);

		check(fd >= 0);
		/* There may be no RDMA device in the namespace. */
		check(hps_connect(fd, hps_at(to, 5000)) &&
		      (errno == EINPROGRESS || (t->rdma && errno == ENETUNREACH)));
	}
}

static void bind_and_close(const struct hps *t)
{
	struct hps_addr at;
	int i;

	for (i = 0; i < 50; i++)
		check(!close(hps_listen(t, 1, &at)));
}

TEST_F(netns, exit)
{
	in_namespace(_metadata, &self->t, false, make_sockets);
}

TEST_F(netns, killed)
{
	in_namespace(_metadata, &self->t, true, make_sockets);
}

TEST_F(netns, connecting)
{
	in_namespace(_metadata, &self->t, true, make_connecting);
}

TEST_F(netns, closed)
{
	in_namespace(_metadata, &self->t, false, bind_and_close);
}

/* The same port in two namespaces is not the same port. */
TEST_F(netns, ports_are_apart)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	pid_t pid;

	ASSERT_OK(l);
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		int fd;

		enter();
		fd = hps_bound(&self->t, 0, at);
		check(fd >= 0);
		check(!listen(fd, 1));
		check(hps_bound(&self->t, 0, at) < 0 && errno == EADDRINUSE);
		_exit(0);
	}
	EXPECT_EQ(0, hps_reap(pid));
	EXPECT_OK(hps_dial(&self->t, at));
}

/* A socket stays in the namespace in which it was made. */
TEST_F(netns, socket_stays)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	pid_t pid;

	ASSERT_OK(l);
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		int c = hps_client(&self->t, 0);

		check(c >= 0);
		enter();
		check(!hps_connect(c, at));
		check(hps_push(c, 5000, 500, 1) == 5000);
		_exit(0);
	}
	EXPECT_EQ(5000, hps_pull(hps_accept(l), 6000, 500, 1));
	EXPECT_EQ(0, errno);
	EXPECT_EQ(0, hps_reap(pid));
}

/* Connections inside a namespace. */
static void make_connections(const struct hps *t)
{
	int c, s, i;

	for (i = 0; i < 3; i++) {
		check(!hps_pair(t, &c, &s));
		check(hps_push(c, 5000, 500, 1) == 5000);
		check(hps_pull(s, 5000, 500, 1) == 5000);
		if (i)
			check(hps_stuff(c, 0, 2) > 0);
	}
	/* Two are left with data on the way. */
	close(s);
}

/*
 * Soft-RoCE sends through the initial namespace only, and so does Soft-iWARP for
 * callers in the kernel: it takes the namespace of the task that is running.
 */
static void make_refused(const struct hps *t)
{
	int c = hps_client(t, 0), l = hps_bound(t, 0, t->b);

	check(!hps_run("rdma link add hpsn0 type %s netdev n0 && "
		   "rdma link add hpsn1 type %s netdev n1", getenv("HPSOCK_DEV"),
		   getenv("HPSOCK_DEV")));
	/* Soft-iWARP takes devices of two namespaces with one index for the same. */
	check(!listen(l, 4) || errno == EADDRINUSE);
	check(c >= 0 && hps_connect(c, hps_name(l)));
}

TEST_F_TIMEOUT(netns, connected, 200 * hps_slow())
{
	in_namespace(_metadata, &self->t, true,
		     self->t.rdma ? make_refused : make_connections);
	if (self->t.rdma)
		hps_run("rdma link delete hpsn0 2>/dev/null; rdma link delete hpsn1 2>/dev/null");
}

TEST_HARNESS_MAIN
