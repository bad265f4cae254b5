// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA devices, links and the module itself going away under sockets. Needs
 * root and the pair of network devices v0 (host A) and v1 (host B) with an RDMA
 * device of the kind HPSOCK_DEV on each.
 */
#include "hps_test.h"

FIXTURE(fault) {
	struct hps t;
	const char *dev;	/* rxe or siw */
};

FIXTURE_VARIANT(fault) {
	int af;
};

FIXTURE_VARIANT_ADD(fault, hpsock) { AF_INET };
FIXTURE_VARIANT_ADD(fault, hpsock6) { AF_INET6 };

static char buf[65536];

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

static int remove_device(const char *dev, int end)
{
	return run("rdma link delete %s%d", dev, end);
}

static int add_device(const char *dev, int end)
{
	return run("rdma link show | grep -q '^link %s%d/' || "
		   "rdma link add %s%d type %s netdev v%d", dev, end, dev, end, dev, end);
}

/* Setting a link down takes its routes away, and IPv6 addresses as well. */
static int save_routes(void)
{
	return run("ip -4 route save table all >/dev/shm/hps_routes4 && "
		   "ip -6 route save table all >/dev/shm/hps_routes6");
}

static void restore_link(int end)
{
	const char *addr = end ? "fd03::2" : "fd03::1";

	run("ip link set v%d up; echo 0 >/proc/sys/net/ipv6/conf/v%d/keep_addr_on_down", end, end);
	run("ip -6 addr show dev v%d | grep -q '%s/' || {"
	    " ip -6 addr add %s/64 dev v%d nodad;"
	    " ip -6 route del local %s dev v%d table local; }", end, addr, addr, end, addr, end);
	run("ip -4 route restore </dev/shm/hps_routes4 2>/dev/null");
	run("ip -6 route restore </dev/shm/hps_routes6 2>/dev/null");
}

/* A connection can be made again, which takes a moment after a device came. */
static bool works_again(const struct hps *t)
{
	int64_t end = hps_now() + hps_deadline();
	int c, s;

	while (hps_pair(t, &c, &s)) {
		if (hps_now() > end)
			return false;
		close(c);
		close(s);
		usleep(100000);
	}
	if (hps_push(c, 5000, 1000, 1) != 5000 || hps_pull(s, 5000, 1000, 1) != 5000)
		return false;
	close(c);
	close(s);
	return true;
}

/* Up to a minute: a queue pair tries again for a while. */
static bool ends(struct hps_call *call)
{
	int64_t end = hps_now() + 60000 + 10000 * hps_slow();

	while (!call->done && hps_now() < end)
		usleep(10000);
	return call->done && hps_done(call);
}

static long push_call(struct hps_call *call)
{
	long n = hps_push(call->fd, INT64_MAX, 5000, call->arg);

	return n;
}

static long pull_call(struct hps_call *call)
{
	return hps_pull(call->fd, INT64_MAX, 5000, call->arg);
}

FIXTURE_SETUP(fault)
{
	hps_init(&self->t, true, variant->af);
	self->dev = getenv("HPSOCK_DEV") ?: "rxe";
	if (access("/sys/class/net/v1", F_OK))
		SKIP(return, "there is no v1");
	ASSERT_EQ(0, save_routes());
	ASSERT_TRUE(works_again(&self->t));
}

FIXTURE_TEARDOWN(fault)
{
	int end;

	for (end = 0; end < 2; end++) {
		restore_link(end);
		add_device(self->dev, end);
	}
}

TEST_F_TIMEOUT(fault, link_down, 150 * hps_slow())
{
	struct hps_call push = { .fn = push_call, .arg = 1 };
	struct hps_call pull = { .fn = pull_call, .arg = 1 };

	if (!strcmp(self->dev, "siw"))
		SKIP(return, "iWARP is TCP below, which tries for a quarter of an hour");
	ASSERT_OK(hps_pair(&self->t, &push.fd, &pull.fd));
	hps_start(&push);
	ASSERT_EQ(200000, hps_pull(pull.fd, 200000, 5000, 1));
	hps_start(&pull);
	ASSERT_EQ(0, run("ip link set v1 down"));
	ASSERT_TRUE(ends(&push));
	EXPECT_EQ(ETIMEDOUT, push.err);
	EXPECT_ERRNO(EPIPE, send(push.fd, "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(0, recv(push.fd, buf, 1, 0));
	/* The other end may wait for ever, as with TCP, but not against its will. */
	ASSERT_OK(shutdown(pull.fd, SHUT_RDWR));
	ASSERT_TRUE(ends(&pull));
	close(pull.fd);
	restore_link(1);
	EXPECT_TRUE(works_again(&self->t));
}

/* A sender that only waits for its peer to read finds out, too. */
TEST_F_TIMEOUT(fault, link_down_while_full, 150 * hps_slow())
{
	struct hps_call push = { .fn = push_call, .arg = 1 };
	int s;

	if (!strcmp(self->dev, "siw"))
		SKIP(return, "iWARP is TCP below, which tries for a quarter of an hour");
	ASSERT_OK(hps_pair(&self->t, &push.fd, &s));
	ASSERT_LT(0, hps_stuff(push.fd, 0, 1));
	hps_block(&push);
	ASSERT_EQ(0, run("ip link set v1 down"));
	ASSERT_TRUE(ends(&push));
	EXPECT_EQ(ETIMEDOUT, push.err);
	restore_link(1);
	EXPECT_TRUE(works_again(&self->t));
}

/*
 * A moment without a link is none of a program's business. (An IPv6 address that
 * goes with it would be: RDMA's address is gone then, and the connection.)
 */
TEST_F_TIMEOUT(fault, link_flaps, 150 * hps_slow())
{
	struct hps_call push = { .fn = push_call, .arg = 1 };
	int s, i;

	ASSERT_OK(hps_pair(&self->t, &push.fd, &s));
	hps_start(&push);
	ASSERT_EQ(200000, hps_pull(s, 200000, 5000, 1));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, run("echo 1 >/proc/sys/net/ipv6/conf/v1/keep_addr_on_down && "
				 "ip link set v1 down"));
		restore_link(1);
	}
	/* Whatever the pattern says, bytes go on arriving. */
	for (i = 0; i < 1000000;) {
		ssize_t n = recv(s, buf, sizeof(buf), 0);

		ASSERT_LT(0, n);
		i += n;
	}
	EXPECT_FALSE(push.done);
	close(s);
	ASSERT_TRUE(ends(&push));
}

/* Host B's device: its sleepers learn the reason, those of A that it is over. */
TEST_F_TIMEOUT(fault, device_removed, 150 * hps_slow())
{
	enum { READ_B, READ_A, WRITE_B, WRITE_A, POLL_B, POLL_A, LINGER_A, CALLS };
	struct hps_call call[CALLS] = {
		[READ_B] = { .fn = hps_recv_call, .buf = buf, .len = 10 },
		[READ_A] = { .fn = hps_recv_call, .buf = buf, .len = 10 },
		[WRITE_B] = { .fn = hps_send_call, .buf = buf, .len = 10 },
		[WRITE_A] = { .fn = hps_send_call, .buf = buf, .len = 10 },
		[POLL_B] = { .fn = hps_poll_call, .arg = POLLIN },
		[POLL_A] = { .fn = hps_poll_call, .arg = POLLIN },
		[LINGER_A] = { .fn = push_call, .arg = 1 },
	};
	struct hps_call acc = { .fn = hps_accept_call };
	struct hps_addr at, pending_at;
	int l, c, i;

	for (i = 0; i < CALLS; i += 2) {
		ASSERT_OK(hps_pair(&self->t, &call[i + 1 < CALLS ? i + 1 : i].fd, &c));
		if (i + 1 < CALLS)
			call[i].fd = c;
	}
	ASSERT_LT(0, hps_stuff(call[WRITE_B].fd, 0, 1));
	ASSERT_LT(0, hps_stuff(call[WRITE_A].fd, 0, 1));
	for (i = 0; i < CALLS; i++)
		hps_block(&call[i]);
	acc.fd = hps_listen(&self->t, 4, &at);
	ASSERT_OK(acc.fd);
	hps_block(&acc);
	l = hps_listen(&self->t, 4, &pending_at);
	ASSERT_OK(l);
	c = hps_dial(&self->t, pending_at);
	ASSERT_OK(c);

	ASSERT_EQ(0, remove_device(self->dev, 1));
	for (i = 0; i < CALLS; i++) {
		ASSERT_TRUE(ends(&call[i])) TH_LOG("call %d", i);
	}
	EXPECT_EQ(-1, call[READ_B].ret);
	EXPECT_EQ(ENETDOWN, call[READ_B].err);
	EXPECT_EQ(-1, call[WRITE_B].ret);
	EXPECT_EQ(ENETDOWN, call[WRITE_B].err);
	EXPECT_EQ(POLLIN | POLLERR | POLLHUP, call[POLL_B].ret);
	EXPECT_EQ(ENETDOWN, hps_error(call[POLL_B].fd));
	EXPECT_EQ(-1, call[READ_A].ret);
	EXPECT_TRUE(call[READ_A].err == ECONNRESET || call[READ_A].err == ETIMEDOUT) {
		TH_LOG("%s", strerrorname_np(call[READ_A].err));
	}
	EXPECT_EQ(-1, call[WRITE_A].ret);
	EXPECT_TRUE(call[WRITE_A].err == ECONNRESET || call[WRITE_A].err == ETIMEDOUT) {
		TH_LOG("%s", strerrorname_np(call[WRITE_A].err));
	}
	EXPECT_EQ(POLLIN | POLLERR | POLLHUP, call[POLL_A].ret);
	/* One that nobody has accepted yet is over, too. */
	EXPECT_TRUE(hps_wait(c, POLLIN) & POLLERR);

	/* Listeners are of no device: they go on with the next. */
	hps_until_blocked(acc.tid);
	EXPECT_FALSE(acc.done);
	ASSERT_EQ(0, add_device(self->dev, 1));
	EXPECT_TRUE(works_again(&self->t));
	ASSERT_OK(hps_dial(&self->t, at));
	ASSERT_TRUE(hps_done(&acc));
	EXPECT_LE(0, acc.ret);
	ASSERT_OK(hps_dial(&self->t, pending_at));
	EXPECT_OK(hps_accept(l));
}

/* Removed while everything is busy, both ends in turn */
TEST_F_TIMEOUT(fault, device_removed_under_load, 300 * hps_slow())
{
	struct hps_call call[16];
	int end, i;

	for (end = 0; end < 2; end++) {
		for (i = 0; i < 16; i += 4) {
			int c, s;

			ASSERT_OK(hps_pair(&self->t, &c, &s));
			call[i] = (struct hps_call){ .fn = push_call, .fd = c, .arg = 1 };
			call[i + 1] = (struct hps_call){ .fn = pull_call, .fd = s, .arg = 1 };
			call[i + 2] = (struct hps_call){ .fn = push_call, .fd = s, .arg = 2 };
			call[i + 3] = (struct hps_call){ .fn = pull_call, .fd = c, .arg = 2 };
		}
		for (i = 0; i < 16; i++)
			hps_start(&call[i]);
		usleep(200000);
		ASSERT_EQ(0, remove_device(self->dev, end));
		for (i = 0; i < 16; i++) {
			ASSERT_TRUE(ends(&call[i])) TH_LOG("call %d", i);
			EXPECT_NE(EBADMSG, call[i].err);
			/* Either who sends or who receives at a socket is told why. */
			if (i % 2 == 0) {
				EXPECT_NE(0, call[i].err);
			}
		}
		for (i = 0; i < 16; i += 4) {
			close(call[i].fd);
			close(call[i + 1].fd);
		}
		ASSERT_EQ(0, add_device(self->dev, end));
		ASSERT_TRUE(works_again(&self->t));
	}
}

TEST_F_TIMEOUT(fault, device_removed_while_connecting, 150 * hps_slow())
{
	struct hps_addr silent = self->t.b, at;
	int l = hps_listen(&self->t, 0, &at), c[8], i;

	ASSERT_OK(l);
	if (self->t.af == AF_INET)
		silent.in.sin_addr.s_addr ^= htonl(0x40);
	else
		silent.in6.sin6_addr.s6_addr16[7] ^= htons(0x40);
	/* Some wait for an address, some for room in a backlog. */
	ASSERT_OK(hps_dial(&self->t, at));
	for (i = 0; i < 8; i++) {
		c[i] = hps_dial_nb(&self->t, i % 2 ? at : hps_at(silent, 5000));
		ASSERT_OK(c[i]);
	}
	ASSERT_EQ(0, remove_device(self->dev, 0));
	for (i = 0; i < 8; i++) {
		EXPECT_TRUE(hps_wait(c[i], POLLOUT) & POLLERR);
		EXPECT_NE(0, hps_error(c[i]));
		close(c[i]);
	}
	ASSERT_EQ(0, add_device(self->dev, 0));
	EXPECT_TRUE(works_again(&self->t));
}

/* Closed sockets that still had something to deliver do not hold a device. */
TEST_F_TIMEOUT(fault, device_removed_after_close, 150 * hps_slow())
{
	int c, s, i;

	for (i = 0; i < 4; i++) {
		ASSERT_OK(hps_pair(&self->t, &c, &s));
		ASSERT_LT(0, hps_stuff(c, 0, 1));
		ASSERT_LT(0, hps_stuff(s, 0, 2));
		if (i % 2) {
			ASSERT_OK(close(c));
		} else {
			ASSERT_OK(shutdown(c, SHUT_WR));
		}
	}
	ASSERT_EQ(0, remove_device(self->dev, 0));
	ASSERT_EQ(0, add_device(self->dev, 0));
	EXPECT_TRUE(works_again(&self->t));
}

TEST_F_TIMEOUT(fault, no_device, 150 * hps_slow())
{
	struct hps_addr at;
	int l, c, i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, remove_device(self->dev, i));
	}
	/* Ports and listeners need none. */
	l = hps_listen(&self->t, 4, &at);
	ASSERT_OK(l);
	c = hps_client(&self->t, 0);
	ASSERT_OK(c);
	EXPECT_ERRNO(ENETUNREACH, hps_connect(c, at));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, add_device(self->dev, i));
	}
	EXPECT_TRUE(works_again(&self->t));
	EXPECT_OK(hps_connect(c, at));
	EXPECT_OK(hps_accept(l));
}

/* Loaded again in the end, whatever happened */
static bool unload(void)
{
	int64_t end = hps_now() + hps_deadline();

	/* The last of a closed connection takes a moment. */
	while (run("rmmod hpsock 2>/dev/null")) {
		if (hps_now() > end)
			return false;
		usleep(50000);
	}
	return true;
}

static bool load(void)
{
	return !run("insmod $HPSOCK_KO $HPSOCK_PARAMS");
}

TEST_F_TIMEOUT(fault, unload, 150 * hps_slow())
{
	struct hps_addr at;
	int fd[5], i;

	if (!getenv("HPSOCK_KO"))
		SKIP(return, "HPSOCK_KO does not tell where the module is");
	fd[0] = hps_socket(&self->t, 0);
	fd[1] = hps_bound(&self->t, 0, self->t.b);
	fd[2] = hps_listen(&self->t, 1, &at);
	ASSERT_OK(hps_pair(&self->t, &fd[3], &fd[4]));
	/* Each of them by itself keeps the module. */
	for (i = 0; i < 5; i++) {
		ASSERT_OK(fd[i]);
		EXPECT_NE(0, run("rmmod hpsock 2>/dev/null"));
		ASSERT_OK(close(fd[i]));
	}
	ASSERT_TRUE(unload());
	EXPECT_ERRNO(EAFNOSUPPORT, hps_socket(&self->t, 0));
	for (i = 0; i < 3; i++) {
		ASSERT_TRUE(load());
		ASSERT_TRUE(unload());
	}
	ASSERT_TRUE(load());
	EXPECT_TRUE(works_again(&self->t));
}

/* A closed socket with data to deliver keeps the module until it is delivered. */
TEST_F_TIMEOUT(fault, unload_after_close, 150 * hps_slow())
{
	int64_t sent;
	int c, s;

	if (!getenv("HPSOCK_KO"))
		SKIP(return, "HPSOCK_KO does not tell where the module is");
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	sent = hps_stuff(c, 0, 1);
	ASSERT_LT(0, sent);
	ASSERT_OK(close(c));
	EXPECT_NE(0, run("rmmod hpsock 2>/dev/null"));
	EXPECT_EQ(sent, hps_pull(s, INT64_MAX, 65536, 1));
	EXPECT_EQ(0, errno);
	ASSERT_OK(close(s));
	ASSERT_TRUE(unload());
	ASSERT_TRUE(load());
	EXPECT_TRUE(works_again(&self->t));
}

TEST_HARNESS_MAIN
