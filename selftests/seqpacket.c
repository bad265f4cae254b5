// SPDX-License-Identifier: GPL-2.0
/*
 * SOCK_SEQPACKET: messages keep their bounds. Compared with AF_UNIX, as TCP has none.
 */
#include <linux/sockios.h>
#include <sys/mman.h>

#include "hps_test.h"

#define LARGE	(3 << 20)
#define SEED	7
#define CUTS	50	/* attempts to reset a connection in the middle of a message */

FIXTURE(seqpacket) {
	struct hps t;
	int c, s;
	char *buf;
};

FIXTURE_VARIANT(seqpacket) {
	bool rdma;
	int af;
};

FIXTURE_VARIANT_ADD(seqpacket, unix) { false, AF_UNIX };
FIXTURE_VARIANT_ADD(seqpacket, hpsock) { true, AF_INET };
FIXTURE_VARIANT_ADD(seqpacket, hpsock6) { true, AF_INET6 };

FIXTURE_SETUP(seqpacket)
{
	int sv[2];

	self->buf = hps_memory(LARGE);
	ASSERT_NE(NULL, self->buf);
	if (variant->rdma) {
		hps_init(&self->t, true, variant->af);
		self->t.type = SOCK_SEQPACKET;
		ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));
	} else {
		ASSERT_OK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv));
		self->c = sv[0];
		self->s = sv[1];
	}
}

FIXTURE_TEARDOWN(seqpacket)
{
	if (variant->rdma)
		hps_set_zcopy("auto");
}

/* A message whose bytes nobody else sends. */
static ssize_t put(int fd, char *buf, size_t len, uint64_t id, int flags)
{
	hps_fill(buf, len, id << 32, SEED);
	return send(fd, buf, len, flags | MSG_NOSIGNAL);
}

static bool is(const char *buf, size_t len, uint64_t id)
{
	return hps_check(buf, len, id << 32, SEED) == len;
}

/* Receive one; msg_flags come back. */
static ssize_t get(int fd, char *buf, size_t len, int flags, int *msg_flags)
{
	struct iovec iov = { buf, len };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	ssize_t n = recvmsg(fd, &msg, flags);

	*msg_flags = msg.msg_flags & ~MSG_CMSG_CLOEXEC;
	return n;
}

TEST_F(seqpacket, type)
{
	EXPECT_EQ(SOCK_SEQPACKET, hps_opt(self->c, SOL_SOCKET, SO_TYPE));
	EXPECT_EQ(SOCK_SEQPACKET, hps_opt(self->s, SOL_SOCKET, SO_TYPE));
	EXPECT_EQ(0, hps_opt(self->s, SOL_SOCKET, SO_PROTOCOL));
}

/* One call, one message: of all sizes, one after the other and queued. */
TEST_F(seqpacket, bounds)
{
	static const int size[] = {
		1, 2, 7, 8, 9, 100, 1000, 1008, 1009, 1024, 4079, 4080, 4081, 4087, 4088, 4089,
		4096, 5000, 16384, 65519, 65520, 65521, 65536, 70000, 100000,
	};
	int round, i, n = ARRAY_SIZE(size), flags;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < n; i++) {
			ASSERT_EQ(size[i], put(self->c, self->buf, size[i], i, 0));
			ASSERT_EQ(size[i], get(self->s, self->buf, LARGE, 0, &flags));
			ASSERT_TRUE(is(self->buf, size[i], i)) TH_LOG("size %d", size[i]);
			EXPECT_EQ(0, flags);
		}
	}
	/* Also while they come in: whose end is there is there completely. */
	for (round = 0; round < 200; round++) {
		for (i = 0; i < 16; i++) {
			ASSERT_EQ(size[i], put(self->c, self->buf, size[i], i, MSG_DONTWAIT));
		}
		for (i = 0; i < 16; i++) {
			ASSERT_EQ(size[i], get(self->s, self->buf, LARGE, 0, &flags));
			ASSERT_TRUE(is(self->buf, size[i], i)) TH_LOG("size %d", size[i]);
		}
	}
	EXPECT_ERRNO(EAGAIN, recv(self->s, self->buf, LARGE, MSG_DONTWAIT));
}

/* What was spliced out stays what it was, whatever arrives after it, or ends. */
TEST_F(seqpacket, splice_holds)
{
	int p[2], i, flags;

	ASSERT_OK(pipe(p));
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(1000, put(self->c, self->buf, 1000, i, 0));
		ASSERT_EQ(1000, splice(self->s, NULL, p[1], NULL, LARGE, 0));
	}
	for (; i < 100; i++) {
		ASSERT_EQ(1000, put(self->c, self->buf, 1000, i, 0));
		ASSERT_EQ(1000, get(self->s, self->buf, LARGE, 0, &flags));
	}
	close(self->s);
	close(self->c);
	for (i = 0; i < 4; i++) {
		ASSERT_EQ(1000, read(p[0], self->buf, 1000));
		EXPECT_TRUE(is(self->buf, 1000, i)) TH_LOG("message %d", i);
	}
}

/* A pipe that is almost full takes as much of a message as a short read would, and no more. */
TEST_F(seqpacket, splice_to_full_pipe)
{
	int p[2], size, flags;

	ASSERT_OK(pipe(p));
	size = fcntl(p[1], F_SETPIPE_SZ, 8192);
	ASSERT_LE(8192, size);
	ASSERT_EQ(100, put(self->c, self->buf, 100, 1, 0));
	ASSERT_EQ(5000, put(self->c, self->buf, 5000, 2, 0));
	ASSERT_EQ(6000, put(self->c, self->buf, 6000, 3, 0));
	ASSERT_EQ(7000, put(self->c, self->buf, 7000, 4, 0));
	memset(self->buf, 0, size - 4096);
	ASSERT_EQ(size - 4096, write(p[1], self->buf, size - 4096));
	ASSERT_EQ(100, splice(self->s, NULL, p[1], NULL, LARGE, 0));
	EXPECT_ERRNO(EAGAIN, splice(self->s, NULL, p[1], NULL, LARGE, SPLICE_F_NONBLOCK));
	ASSERT_EQ(size - 4096, read(p[0], self->buf, size - 4096));
	ASSERT_EQ(100, read(p[0], self->buf, LARGE));
	EXPECT_TRUE(is(self->buf, 100, 1));
	ASSERT_EQ(5000, splice(self->s, NULL, p[1], NULL, LARGE, 0));
	ASSERT_EQ(5000, read(p[0], self->buf, LARGE));
	EXPECT_TRUE(is(self->buf, 5000, 2));
	ASSERT_EQ(1000, splice(self->s, NULL, p[1], NULL, 1000, 0));
	ASSERT_EQ(1000, read(p[0], self->buf, LARGE));
	EXPECT_TRUE(is(self->buf, 1000, 3));
	ASSERT_EQ(7000, get(self->s, self->buf, LARGE, 0, &flags));
	EXPECT_TRUE(is(self->buf, 7000, 4));
}

static long send_many(struct hps_call *call)
{
	char *buf = malloc(70000);
	uint64_t state = 1;
	int i;

	for (i = 0; i < call->arg; i++) {
		int len = hps_random(&state) % (i % 50 ? 200 : 70000);

		if (put(call->fd, buf, len, i, 0) != len)
			return -i;
	}
	free(buf);
	return call->arg;
}

/* At full speed, in both directions. */
TEST_F(seqpacket, flood)
{
	const int count = 3000;
	struct hps_call call[2] = {
		{ .fn = send_many, .fd = self->c, .arg = count },
		{ .fn = send_many, .fd = self->s, .arg = count },
	};
	uint64_t state[2] = { 1, 1 };
	int i, k, flags;

	for (k = 0; k < 2; k++)
		hps_start(&call[k]);
	for (i = 0; i < count; i++) {
		for (k = 0; k < 2; k++) {
			int len = hps_random(&state[k]) % (i % 50 ? 200 : 70000);

			ASSERT_EQ(len, get(call[!k].fd, self->buf, LARGE, 0, &flags));
			ASSERT_TRUE(is(self->buf, len, i));
		}
	}
	for (k = 0; k < 2; k++) {
		ASSERT_TRUE(hps_done(&call[k]));
		EXPECT_EQ(count, call[k].ret);
	}
}

TEST_F(seqpacket, trunc)
{
	int flags;

	ASSERT_EQ(1000, put(self->c, self->buf, 1000, 1, 0));
	ASSERT_EQ(100000, put(self->c, self->buf, 100000, 2, 0));
	ASSERT_EQ(50, put(self->c, self->buf, 50, 3, 0));
	EXPECT_EQ(10, get(self->s, self->buf, 10, 0, &flags));
	EXPECT_TRUE(is(self->buf, 10, 1));
	EXPECT_EQ(MSG_TRUNC, flags);
	EXPECT_EQ(100000, get(self->s, self->buf, 70000, MSG_TRUNC, &flags));
	EXPECT_TRUE(is(self->buf, 70000, 2));
	EXPECT_EQ(MSG_TRUNC, flags & MSG_TRUNC);
	EXPECT_EQ(50, get(self->s, self->buf, 50, MSG_TRUNC, &flags));
	EXPECT_TRUE(is(self->buf, 50, 3));
	EXPECT_EQ(0, flags & MSG_TRUNC);
}

TEST_F(seqpacket, peek)
{
	int flags, i;

	ASSERT_EQ(70000, put(self->c, self->buf, 70000, 1, 0));
	ASSERT_EQ(50, put(self->c, self->buf, 50, 2, 0));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(70000, get(self->s, self->buf, LARGE, MSG_PEEK, &flags));
		EXPECT_TRUE(is(self->buf, 70000, 1));
		EXPECT_EQ(0, flags & MSG_TRUNC);
	}
	EXPECT_EQ(70000, get(self->s, self->buf, 10, MSG_PEEK | MSG_TRUNC, &flags));
	EXPECT_EQ(MSG_TRUNC, flags & MSG_TRUNC);
	EXPECT_EQ(70000, get(self->s, self->buf, LARGE, 0, &flags));
	EXPECT_TRUE(is(self->buf, 70000, 1));
	EXPECT_EQ(50, get(self->s, self->buf, LARGE, MSG_PEEK, &flags));
	EXPECT_EQ(50, get(self->s, self->buf, LARGE, 0, &flags));
	EXPECT_TRUE(is(self->buf, 50, 2));
}

/* Memory that ends too early is an error, also for who only looks. */
TEST_F(seqpacket, peek_fault)
{
	void *none = mmap(NULL, 40000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec iov[2] = { { self->buf, 35000 }, { none, 35000 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	int flags;

	if (variant->rdma)
		ASSERT_TRUE(hps_set_zcopy("off"));
	ASSERT_EQ(70000, put(self->c, self->buf, 70000, 1, 0));
	EXPECT_ERRNO(EFAULT, recvmsg(self->s, &msg, MSG_PEEK));
	EXPECT_EQ(70000, get(self->s, self->buf, LARGE, 0, &flags));
	EXPECT_TRUE(is(self->buf, 70000, 1));
}

TEST_F(seqpacket, empty)
{
	int flags;

	ASSERT_EQ(0, send(self->c, "", 0, 0));
	ASSERT_EQ(5, put(self->c, self->buf, 5, 1, 0));
	EXPECT_EQ(POLLIN, hps_wait(self->s, POLLIN));
	EXPECT_EQ(0, get(self->s, self->buf, 10, 0, &flags));
	EXPECT_EQ(5, get(self->s, self->buf, 10, 0, &flags));
	EXPECT_TRUE(is(self->buf, 5, 1));
}

/* When it came in is known also of a message that has no bytes, or of which none are wanted. */
TEST_F(seqpacket, timestamp)
{
	struct msghdr msg = { 0 };
	struct cmsghdr *stamp;
	char control[100];
	int i;

	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_TIMESTAMP, 1));
	ASSERT_EQ(0, send(self->c, "", 0, 0));
	ASSERT_EQ(5, put(self->c, self->buf, 5, 1, 0));
	for (i = 0; i < 2; i++) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		EXPECT_EQ(0, recvmsg(self->s, &msg, 0));
		stamp = CMSG_FIRSTHDR(&msg);
		ASSERT_NE(NULL, stamp) TH_LOG("message %d", i);
		EXPECT_EQ(SCM_TIMESTAMP, stamp->cmsg_type);
	}
}

/* MSG_EOR comes with the message that was sent with it; AF_UNIX has no such thing. */
TEST_F(seqpacket, eor)
{
	int flags, want = variant->rdma ? MSG_EOR : 0;

	ASSERT_EQ(5, put(self->c, self->buf, 5, 1, 0));
	ASSERT_EQ(70000, put(self->c, self->buf, 70000, 2, MSG_EOR));
	ASSERT_EQ(5, put(self->c, self->buf, 5, 3, MSG_MORE));
	EXPECT_EQ(5, get(self->s, self->buf, LARGE, 0, &flags));
	EXPECT_EQ(0, flags);
	EXPECT_EQ(70000, get(self->s, self->buf, LARGE, 0, &flags));
	EXPECT_EQ(want, flags);
	EXPECT_EQ(5, get(self->s, self->buf, LARGE, 0, &flags));
	EXPECT_EQ(0, flags);
}

TEST_F(seqpacket, vectors)
{
	struct iovec from[3] = { { "abc", 3 }, { "", 0 }, { "defgh", 5 } };
	struct iovec to[2] = { { self->buf, 2 }, { self->buf + 100, 100 } };
	struct msghdr msg = { .msg_iov = from, .msg_iovlen = 3 };

	ASSERT_EQ(8, sendmsg(self->c, &msg, 0));
	msg.msg_iov = to;
	msg.msg_iovlen = 2;
	EXPECT_EQ(8, recvmsg(self->s, &msg, MSG_WAITALL));
	EXPECT_EQ(0, memcmp("ab", self->buf, 2));
	EXPECT_EQ(0, memcmp("cdefgh", self->buf + 100, 6));
}

TEST_F(seqpacket, waiting)
{
	struct hps_call call = {
		.fn = hps_recv_call, .fd = self->s, .buf = self->buf, .len = LARGE,
	};
	struct timeval tv = { .tv_usec = 100000 };

	EXPECT_ERRNO(EAGAIN, recv(self->s, self->buf, 10, MSG_DONTWAIT));
	EXPECT_POLL(POLLOUT, self->s);
	hps_block(&call);
	ASSERT_EQ(70000, put(self->c, self->buf + LARGE / 2, 70000, 1, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(70000, call.ret);
	EXPECT_TRUE(is(self->buf, 70000, 1));
	EXPECT_POLL(POLLOUT, self->s);
	ASSERT_OK(setsockopt(self->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	EXPECT_ERRNO(EAGAIN, recv(self->s, self->buf, 10, 0));
}

TEST_F(seqpacket, ends)
{
	ASSERT_EQ(5, put(self->c, self->buf, 5, 1, 0));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_ERRNO(EPIPE, put(self->c, self->buf, 5, 1, 0));
	EXPECT_EQ(5, recv(self->s, self->buf, 10, 0));
	EXPECT_EQ(0, recv(self->s, self->buf, 10, 0));
	EXPECT_EQ(0, recv(self->s, self->buf, 10, 0));
	ASSERT_EQ(5, put(self->s, self->buf, 5, 2, 0));
	ASSERT_OK(close(self->s));
	EXPECT_EQ(5, recv(self->c, self->buf, 10, 0));
	EXPECT_TRUE(is(self->buf, 5, 2));
	EXPECT_EQ(0, recv(self->c, self->buf, 10, 0));
}

TEST_F(seqpacket, not_supported)
{
	EXPECT_ERRNO(EOPNOTSUPP, send(self->c, "x", 1, MSG_OOB));
	EXPECT_ERRNO(EOPNOTSUPP, recv(self->s, self->buf, 1, MSG_OOB));
	EXPECT_EQ(1, put(self->c, self->buf, 1, 1, 0));
	EXPECT_EQ(POLLIN, hps_wait(self->s, POLLIN));
}

/* A bad address costs the message that was to go there, and only that. */
TEST_F(seqpacket, fault)
{
	ASSERT_EQ(5, put(self->c, self->buf, 5, 1, 0));
	ASSERT_EQ(5, put(self->c, self->buf, 5, 2, 0));
	EXPECT_ERRNO(EFAULT, send(self->c, hps_unmapped(), 70000, 0));
	ASSERT_EQ(5, put(self->c, self->buf, 5, 3, 0));
	EXPECT_ERRNO(EFAULT, recv(self->s, hps_unmapped(), 5, 0));
	EXPECT_EQ(5, recv(self->s, self->buf, 10, 0));
	EXPECT_TRUE(is(self->buf, 5, 2));
	EXPECT_EQ(5, recv(self->s, self->buf, 10, 0)) TH_LOG("errno %d", errno);
	EXPECT_TRUE(is(self->buf, 5, 3));
	EXPECT_ERRNO(EAGAIN, recv(self->s, self->buf, 10, MSG_DONTWAIT));
	EXPECT_EQ(0, hps_poll(self->s, POLLIN, 0));
}

/* Half of a message that has gone out when its memory comes to an end is taken back. */
TEST_F(seqpacket, fault_in_the_middle)
{
	const size_t page = getpagesize(), good = 16 * page;
	char *mem = mmap(NULL, good + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	struct iovec iov[2] = { { mem, good }, { mem + good, page } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_OK(mprotect(mem + good, page, PROT_NONE));
	EXPECT_ERRNO(EFAULT, sendmsg(self->c, &msg, 0));
	EXPECT_ERRNO(EFAULT, sendmsg(self->c, &msg, MSG_DONTWAIT));
	EXPECT_ERRNO(EAGAIN, recv(self->s, self->buf, LARGE, MSG_DONTWAIT));
	ASSERT_EQ(5, put(self->c, self->buf, 5, 3, 0));
	EXPECT_EQ(5, recv(self->s, self->buf, LARGE, 0));
	EXPECT_TRUE(is(self->buf, 5, 3));
}

/* A message of which only the beginning has gone out; it is taken back. */
static int fail_to_send(int fd)
{
	const size_t page = getpagesize(), good = 16 * page;
	char *mem = mmap(NULL, good + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	struct iovec iov[2] = { { mem, good }, { mem + good, page } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	int err;

	if (mem == MAP_FAILED || mprotect(mem + good, page, PROT_NONE))
		return 0;
	err = sendmsg(fd, &msg, 0) < 0 ? errno : 0;
	munmap(mem, good + page);
	return err;
}

/* Who only looks for messages does not come to one that was taken back. */
TEST_F(seqpacket, taken_back_unseen)
{
	int flags;

	ASSERT_EQ(EFAULT, fail_to_send(self->c));
	ASSERT_TRUE(hps_settle());
	EXPECT_EQ(0, hps_poll(self->s, POLLIN, 0));
	EXPECT_EQ(0, hps_inq(self->s));
	EXPECT_ERRNO(EAGAIN, recv(self->s, self->buf, LARGE, MSG_DONTWAIT | MSG_PEEK));
	ASSERT_EQ(EFAULT, fail_to_send(self->c));
	ASSERT_EQ(5, put(self->c, self->buf, 5, 3, 0));
	/* Before the end of what was taken back is there, POLLIN asks for room for it. */
	ASSERT_TRUE(hps_until_inq(self->s, 5));
	EXPECT_EQ(POLLIN, hps_poll(self->s, POLLIN, 0));
	EXPECT_EQ(5, get(self->s, self->buf, LARGE, MSG_DONTWAIT | MSG_PEEK, &flags));
	EXPECT_EQ(5, hps_inq(self->s));
	EXPECT_EQ(5, get(self->s, self->buf, LARGE, 0, &flags));
	EXPECT_TRUE(is(self->buf, 5, 3));
	EXPECT_EQ(0, flags);
	ASSERT_EQ(EFAULT, fail_to_send(self->c));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, recv(self->s, self->buf, LARGE, MSG_PEEK));
	EXPECT_EQ(0, recv(self->s, self->buf, LARGE, 0));
}

TEST_F(seqpacket, how_much)
{
	ASSERT_EQ(1000, put(self->c, self->buf, 1000, 1, 0));
	ASSERT_EQ(5, put(self->c, self->buf, 5, 2, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 1000));
	EXPECT_EQ(1000, recv(self->s, self->buf, LARGE, 0));
	EXPECT_TRUE(hps_until_inq(self->s, 5));
}

/* What TCP_INQ says, or -1. */
static int next_len(int fd, void *buf, size_t len)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec iov = { buf, len };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg;

	if (recvmsg(fd, &msg, 0) < 0)
		return -1;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (!cmsg || cmsg->cmsg_level != SOL_TCP || cmsg->cmsg_type != TCP_CM_INQ)
		return -1;
	return *(int *)CMSG_DATA(cmsg);
}

TEST_F(seqpacket, how_much_is_told)
{
	if (!variant->rdma)
		SKIP(return, "AF_UNIX has no TCP_INQ");
	ASSERT_EQ(1000, put(self->c, self->buf, 1000, 1, 0));
	ASSERT_EQ(70, put(self->c, self->buf, 70, 2, 0));
	ASSERT_EQ(0, put(self->c, self->buf, 0, 3, 0));
	ASSERT_EQ(9, put(self->c, self->buf, 9, 4, 0));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(hps_wait(self->s, POLLRDHUP) & POLLRDHUP);
	EXPECT_EQ(-1, next_len(self->s, self->buf, LARGE));
	ASSERT_OK(hps_set(self->s, SOL_TCP, TCP_INQ, 1));
	/* An empty one is there to be read, too. */
	EXPECT_EQ(1, next_len(self->s, self->buf, LARGE));
	EXPECT_EQ(9, next_len(self->s, self->buf, LARGE));
	/* The end is to be read then. */
	EXPECT_EQ(1, next_len(self->s, self->buf, LARGE));
	EXPECT_EQ(1, next_len(self->s, self->buf, LARGE));
	ASSERT_EQ(5, put(self->s, self->buf, 5, 5, 0));
	ASSERT_OK(hps_set(self->c, SOL_TCP, TCP_INQ, 1));
	EXPECT_EQ(0, next_len(self->c, self->buf, LARGE));
}

static long echo_call(struct hps_call *call)
{
	char byte;

	while (recv(call->fd, &byte, 1, 0) == 1)
		if (send(call->fd, &byte, 1, 0) != 1)
			return -1;
	return 0;
}

/* As of a stream: opts.busy_poll */
TEST_F(seqpacket, busy_poll)
{
	struct hps_call call = { .fn = echo_call, .fd = self->s };
	const char *counter = sysconf(_SC_NPROCESSORS_ONLN) > 1 ? "spin_hit" : "spin_missed";
	int64_t end = hps_now() + hps_deadline();
	long before = hps_stat(counter);
	char byte;

	if (hps_set(self->c, SOL_SOCKET, SO_BUSY_POLL, 2000)) {
		ASSERT_EQ(ENOPROTOOPT, errno);
		SKIP(return, "the kernel has no busy polling");
	}
	hps_start(&call);
	do {
		ASSERT_EQ(1, send(self->c, "x", 1, 0));
		ASSERT_EQ(1, recv(self->c, &byte, 1, 0));
	} while (variant->rdma && hps_stat(counter) == before && hps_now() < end);
	EXPECT_GT(end, hps_now());
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_TRUE(hps_done(&call));
}

/* Until nobody takes any more; what was taken comes. */
TEST_F(seqpacket, full)
{
	int sent, got;

	for (sent = 0;; sent++) {
		if (put(self->c, self->buf, 20000, sent, MSG_DONTWAIT) < 0) {
			ASSERT_EQ(EAGAIN, errno);
			if (!hps_poll(self->c, POLLOUT, 100 * hps_slow()))
				break;
			sent--;
		}
	}
	EXPECT_LT(3, sent);
	for (got = 0; got < sent; got++) {
		ASSERT_EQ(20000, recv(self->s, self->buf, LARGE, 0));
		ASSERT_TRUE(is(self->buf, 20000, got));
	}
	EXPECT_EQ(POLLOUT, hps_wait(self->c, POLLOUT));
	EXPECT_ERRNO(EAGAIN, recv(self->s, self->buf, LARGE, MSG_DONTWAIT));
}

TEST_F(seqpacket, too_large)
{
	struct timeval never = { .tv_sec = -1 };

	hps_buffers(self->c, 65536);
	EXPECT_ERRNO(EMSGSIZE, put(self->c, self->buf, LARGE, 1, MSG_DONTWAIT));
	ASSERT_OK(setsockopt(self->c, SOL_SOCKET, SO_SNDTIMEO, &never, sizeof(never)));
	EXPECT_ERRNO(EMSGSIZE, put(self->c, self->buf, LARGE, 1, 0));
	EXPECT_EQ(10, put(self->c, self->buf, 10, 1, 0));
	EXPECT_EQ(10, recv(self->s, self->buf, LARGE, 0));
}

/* It is the socket that is at fault then, not the message. */
TEST_F(seqpacket, too_large_for_nobody)
{
	int fd = variant->rdma ? hps_socket(&self->t, 0) : socket(AF_UNIX, SOCK_SEQPACKET, 0);

	ASSERT_OK(fd);
	hps_buffers(fd, 65536);
	ASSERT_EQ(-1, put(fd, self->buf, 10, 1, MSG_DONTWAIT));
	EXPECT_ERRNO(errno, put(fd, self->buf, LARGE, 1, MSG_DONTWAIT));
	hps_buffers(self->c, 65536);
	ASSERT_EQ(10, put(self->c, self->buf, 10, 1, 0));
	ASSERT_EQ(POLLIN, hps_wait(self->s, POLLIN));
	ASSERT_OK(close(self->s));
	ASSERT_TRUE(hps_wait(self->c, POLLERR) & POLLERR);
	EXPECT_ERRNO(ECONNRESET, put(self->c, self->buf, LARGE, 1, MSG_DONTWAIT));
}

static long send_large(struct hps_call *call)
{
	char *buf = hps_memory(call->len);
	long n = put(call->fd, buf, call->len, call->arg, 0);

	munmap(buf, call->len);
	return n;
}

static const char * const how[] = { "off", "auto", "wait", "protect" };

/* Larger than all buffers, and to be read by one call. */
TEST_F(seqpacket, large)
{
	struct hps_call call = { .fn = send_large, .fd = self->c, .len = LARGE, .arg = 1 };
	int i, flags;

	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(hps_set_zcopy(how[i]));
		ASSERT_OK(hps_pair(&self->t, &call.fd, &self->s));
		hps_start(&call);
		ASSERT_EQ(LARGE, get(self->s, self->buf, LARGE, 0, &flags));
		EXPECT_EQ(0, flags);
		EXPECT_TRUE(is(self->buf, LARGE, 1));
		ASSERT_TRUE(hps_done(&call));
		EXPECT_EQ(LARGE, call.ret);

		hps_start(&call);
		EXPECT_EQ(LARGE, get(self->s, self->buf, LARGE / 3, MSG_TRUNC, &flags));
		EXPECT_EQ(MSG_TRUNC, flags);
		EXPECT_TRUE(is(self->buf, LARGE / 3, 1));
		ASSERT_TRUE(hps_done(&call));
		ASSERT_EQ(5, put(call.fd, self->buf, 5, 2, 0));
		EXPECT_EQ(5, recv(self->s, self->buf, LARGE, 0));
	}
}

/* Who may not wait gets one whole that SO_RCVBUF has room for, and is not told before. */
TEST_F(seqpacket, large_polled)
{
	const int size = 1 << 20;
	struct hps_call call = { .fn = send_large, .len = size, .arg = 1 };
	int i, s, n, flags;

	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	for (i = 0; i < 4; i++) {
		struct hps_addr at;
		int l = hps_listen(&self->t, 1, &at);

		ASSERT_TRUE(hps_set_zcopy(how[i]));
		ASSERT_OK(hps_set(l, SOL_SOCKET, SO_RCVBUFFORCE, 2 << 20));
		call.fd = hps_dial(&self->t, at);
		ASSERT_OK(call.fd);
		s = hps_accept(l);
		ASSERT_OK(s);
		hps_start(&call);
		do {
			ASSERT_EQ(POLLIN, hps_wait(s, POLLIN));
			n = get(s, self->buf, LARGE, MSG_DONTWAIT, &flags);
		} while (n < 0 && errno == EAGAIN);
		EXPECT_EQ(size, n) TH_LOG("zcopy %s", how[i]);
		EXPECT_EQ(0, flags);
		EXPECT_TRUE(is(self->buf, size, 1));
		ASSERT_TRUE(hps_done(&call));
		close(l);
		close(s);
		close(call.fd);
	}
}

/*
 * One that it has not is had in parts: nothing is lost, and nobody has to wait. All of it may
 * come at once if the sender keeps up with the reader, so that is tried until it does not.
 */
TEST_F(seqpacket, parts)
{
	struct hps_call call;
	int n, flags, parts, total;

	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	/* Otherwise it grows with what is read, until all of the message has room. */
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 131072));
	do {
		call = (struct hps_call){
			.fn = send_large, .fd = self->c, .len = LARGE, .arg = 1,
		};
		parts = 0;
		total = 0;
		hps_start(&call);
		do {
			ASSERT_EQ(POLLIN, hps_wait(self->s, POLLIN));
			n = get(self->s, self->buf + total, LARGE - total, MSG_DONTWAIT, &flags);
			if (n < 0) {
				ASSERT_EQ(EAGAIN, errno);
				flags = MSG_MORE;
				continue;
			}
			total += n;
			parts++;
		} while (flags & MSG_MORE);
		EXPECT_EQ(LARGE, total);
		EXPECT_TRUE(is(self->buf, LARGE, 1));
		ASSERT_TRUE(hps_done(&call));
		EXPECT_ERRNO(EAGAIN, recv(self->s, self->buf, LARGE, MSG_DONTWAIT));
	} while (parts == 1);
}

TEST_F(seqpacket, split)
{
	int flags;

	if (!variant->rdma)
		SKIP(return, "an option of AF_HPSOCK");
	EXPECT_ERRNO(EINVAL, hps_set(self->s, SOL_HPSOCK, HPSOCK_SPLIT, 2));
	ASSERT_OK(hps_set(self->s, SOL_HPSOCK, HPSOCK_SPLIT, 1));
	EXPECT_EQ(1, hps_opt(self->s, SOL_HPSOCK, HPSOCK_SPLIT));
	ASSERT_EQ(1000, put(self->c, self->buf, 1000, 1, MSG_EOR));
	ASSERT_EQ(10, put(self->c, self->buf, 10, 2, 0));
	EXPECT_EQ(400, get(self->s, self->buf, 400, 0, &flags));
	EXPECT_EQ(MSG_MORE, flags);
	EXPECT_POLL(POLLIN | POLLOUT, self->s);
	EXPECT_EQ(400, get(self->s, self->buf + 400, 400, 0, &flags));
	EXPECT_EQ(MSG_MORE, flags);
	EXPECT_EQ(200, get(self->s, self->buf + 800, 400, 0, &flags));
	EXPECT_EQ(MSG_EOR, flags);
	EXPECT_TRUE(is(self->buf, 1000, 1));
	EXPECT_EQ(10, get(self->s, self->buf, 10, 0, &flags));
	EXPECT_EQ(0, flags);
}

/* A bad address costs a message that is read while it comes, too, and all of it. */
TEST_F(seqpacket, fault_as_it_comes)
{
	struct hps_call call = { .fn = send_large, .fd = self->c, .len = LARGE, .arg = 1 };

	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 131072));
	hps_block(&call);
	EXPECT_ERRNO(EFAULT, recv(self->s, hps_unmapped(), LARGE, 0));
	while (recv(self->s, self->buf, 10, MSG_DONTWAIT) < 0 && errno == EAGAIN &&
	       !call.done)
		hps_wait(self->s, POLLIN);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LARGE, call.ret);
	ASSERT_EQ(5, put(self->c, self->buf, 5, 2, 0));
	EXPECT_EQ(5, recv(self->s, self->buf, LARGE, 0));
	EXPECT_TRUE(is(self->buf, 5, 2));
}

static long send_small(struct hps_call *call)
{
	return put(call->fd, call->buf, 1000, call->arg, 0);
}

/*
 * A sender that is interrupted in the middle has sent nothing. But what the peer has to
 * leave out may still fill the queue, so the next one waits for a reader.
 */
TEST_F(seqpacket, interrupted)
{
	struct hps_call call = { .fn = send_large, .fd = self->c, .len = LARGE, .arg = 1 };
	static char small[1000];
	struct hps_call next = { .fn = send_small, .fd = self->c, .buf = small, .arg = 2 };
	int flags;

	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	hps_catch(SIGUSR1, 0);
	hps_block(&call);
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
	hps_start(&next);
	EXPECT_EQ(1000, get(self->s, self->buf, LARGE, 0, &flags));
	EXPECT_TRUE(is(self->buf, 1000, 2));
	ASSERT_TRUE(hps_done(&next));
	EXPECT_EQ(1000, next.ret);
}

/* Who has read some of such a message is told that there is no more of it. */
TEST_F(seqpacket, interrupted_in_parts)
{
	struct hps_call call = { .fn = send_large, .fd = self->c, .len = LARGE, .arg = 1 };
	int n, flags;

	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	hps_catch(SIGUSR1, 0);
	/* Otherwise it grows with what is read, until all of the message has room. */
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 131072));
	hps_start(&call);
	do {
		ASSERT_EQ(POLLIN, hps_wait(self->s, POLLIN));
		n = get(self->s, self->buf, 100, MSG_DONTWAIT, &flags);
	} while (n < 0 && errno == EAGAIN);
	/* That was all that there was room for; the rest of it is lost. */
	if (!(flags & MSG_MORE))
		SKIP(return, "the message was complete");
	hps_until_blocked(call.tid);
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(EINTR, call.err);
	do {
		n = recv(self->s, self->buf, LARGE, 0);
	} while (n > 0);
	EXPECT_EQ(EBADMSG, errno);
	ASSERT_EQ(1000, put(self->c, self->buf, 1000, 2, 0));
	EXPECT_EQ(1000, get(self->s, self->buf, LARGE, 0, &flags));
	EXPECT_TRUE(is(self->buf, 1000, 2));
}

/* Several at either end: messages stay whole. */
TEST_F_TIMEOUT(seqpacket, threads, 200 * hps_slow())
{
	struct hps_call from[4] = {}, to[4] = {};
	int i, k, size;

	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	hps_buffers(self->c, 65536);
	for (k = 0; k < 6; k++) {
		size = k % 2 ? 30000 : 700000;
		for (i = 0; i < 4; i++) {
			to[i] = (struct hps_call){ .fn = hps_recv_call, .fd = self->s,
						   .buf = self->buf + i * (LARGE / 4),
						   .len = LARGE / 4 };
			from[i] = (struct hps_call){ .fn = send_large, .fd = self->c,
						     .len = size, .arg = i };
			hps_start(&to[i]);
			hps_start(&from[i]);
		}
		for (i = 0; i < 4; i++) {
			ASSERT_TRUE(hps_done(&from[i]));
			EXPECT_EQ(size, from[i].ret);
			ASSERT_TRUE(hps_done(&to[i]));
			ASSERT_EQ(size, to[i].ret) TH_LOG("errno %d", to[i].err);
			EXPECT_TRUE(is(to[i].buf, size, 0) || is(to[i].buf, size, 1) ||
				    is(to[i].buf, size, 2) || is(to[i].buf, size, 3));
		}
	}
}

/* Nor do the heads of pages keep more memory than SO_SNDBUF lets it have. */
TEST_F(seqpacket, heads_between)
{
	long most;
	pid_t pid;

	if (!variant->rdma)
		SKIP(return, "AF_UNIX has no MSG_ZEROCOPY");
	ASSERT_TRUE(hps_settle());
	most = hps_send_memory() + 2000000;
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUF, 500000));
	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	EXPECT_GT(most, hps_mix(&self->t, self->c, 200));
	pid = hps_fork();
	if (!pid) {
		close(self->c);
		while (recv(self->s, self->buf, LARGE, 0) > 0)
			;
		_exit(0);
	}
	EXPECT_GT(most, hps_mix(&self->t, self->c, 2000));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, hps_reap(pid));
}

/*
 * A message that fails after its beginning was queued has a number with MSG_ZEROCOPY, as the
 * peer still reads the memory: the program may not change it before it is told.
 */
TEST_F(seqpacket, zerocopy_failed)
{
	struct iovec iov[2] = { { self->buf, 200000 }, { hps_unmapped(), 5000 } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };

	if (!variant->rdma)
		SKIP(return, "AF_UNIX has no MSG_ZEROCOPY");
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUFFORCE, 500000));
	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	ASSERT_ERRNO(EFAULT, sendmsg(self->c, &msg, MSG_ZEROCOPY));
	iov[0].iov_base = hps_unmapped();
	ASSERT_ERRNO(EFAULT, sendmsg(self->c, &msg, MSG_ZEROCOPY));
	ASSERT_EQ(1000, send(self->c, self->buf, 1000, MSG_ZEROCOPY));
	ASSERT_EQ(1000, recv(self->s, self->buf, LARGE, 0));
	EXPECT_TRUE(hps_completed(&self->t, self->c, 0, 1));
}

/* A stream socket's ports are others. */
TEST_F(seqpacket, ports)
{
	struct hps t = self->t;
	struct hps_addr at;
	int l, fd;

	if (!variant->rdma)
		SKIP(return, "AF_UNIX has no ports");
	l = hps_listen(&self->t, 4, &at);
	ASSERT_OK(l);
	t.type = SOCK_STREAM;
	EXPECT_ERRNO(ECONNREFUSED, hps_dial(&t, at));
	fd = hps_bound(&t, 0, at);
	ASSERT_OK(fd);
	ASSERT_OK(listen(fd, 1));
	EXPECT_OK(hps_dial(&t, at));
	EXPECT_OK(hps_dial(&self->t, at));
	EXPECT_EQ(SOCK_STREAM, hps_opt(hps_accept(fd), SOL_SOCKET, SO_TYPE));
	EXPECT_EQ(SOCK_SEQPACKET, hps_opt(hps_accept(l), SOL_SOCKET, SO_TYPE));
	EXPECT_ERRNO(EPROTONOSUPPORT, socket(t.domain, SOCK_SEQPACKET, IPPROTO_TCP));
	EXPECT_ERRNO(EOPNOTSUPP, hps_set(fd, SOL_HPSOCK, HPSOCK_SPLIT, 1));
}

/* What a call without memory has passed over is missing, and whoever reads on is told. */
TEST_F(seqpacket, passed_over)
{
	struct hps_call call = { .fn = send_large, .fd = self->c, .len = LARGE, .arg = 1 };
	struct iovec iov = { .iov_base = self->buf };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int n;

	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	hps_start(&call);
	do {
		ASSERT_TRUE(hps_wait(self->s, POLLIN));
		n = recvmsg(self->s, &msg, MSG_DONTWAIT);
	} while (n < 0 && errno == EAGAIN);
	ASSERT_EQ(0, n);
	EXPECT_EQ(MSG_MORE | MSG_TRUNC, msg.msg_flags & (MSG_MORE | MSG_TRUNC));
	iov.iov_len = LARGE;
	do {
		ASSERT_LT(0, recvmsg(self->s, &msg, 0));
	} while (msg.msg_flags & MSG_MORE);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LARGE, call.ret);
}

/* Who will not read what is to come has a part nonetheless, and not the rest as a message. */
TEST_F(seqpacket, part_after_shutdown)
{
	struct hps_call call = { .fn = send_large, .fd = self->c, .len = LARGE, .arg = 1 };
	int flags, n;

	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	ASSERT_TRUE(hps_set_zcopy("off"));
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 131072));
	ASSERT_OK(hps_set(self->s, SOL_HPSOCK, HPSOCK_SPLIT, 1));
	hps_start(&call);
	do {
		ASSERT_TRUE(hps_wait(self->s, POLLIN));
		n = get(self->s, self->buf, 1000, MSG_DONTWAIT, &flags);
	} while (n < 0 && errno == EAGAIN);
	ASSERT_LT(0, n);
	ASSERT_EQ(MSG_MORE, flags & MSG_MORE);
	ASSERT_OK(shutdown(self->s, SHUT_RD));
	n = get(self->s, self->buf, LARGE, MSG_DONTWAIT, &flags);
	EXPECT_LT(0, n);
	EXPECT_EQ(MSG_MORE, flags & MSG_MORE);
	ASSERT_OK(hps_reset(self->s));
	ASSERT_TRUE(hps_done(&call));
}

/*
 * Kills readers until one is in the middle of a message. Its beginning is lost then, so nobody
 * gets the rest.
 */
static bool killed(struct __test_metadata *_metadata, const struct hps *t, const char *zcopy)
{
	struct hps_call call = { .fn = send_large, .len = LARGE, .arg = 1 };
	static char small[1000];
	struct hps_call next = { .fn = send_small, .buf = small, .arg = 2 };
	char *mem = hps_memory(LARGE);
	bool early = false;
	int i, s, flags;
	pid_t reader;
	long came;

	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(hps_set_zcopy(zcopy));
	for (i = 0; i < CUTS && !early; i++) {
		ASSERT_OK(hps_pair(t, &call.fd, &s));
		/* Otherwise all of it may have room before it is read. */
		ASSERT_OK(hps_set(s, SOL_SOCKET, SO_RCVBUF, 131072));
		came = hps_stat("rx_bytes") + hps_stat("rx_fetched");
		reader = hps_fork();
		ASSERT_LE(0, reader);
		if (!reader) {
			recv(s, mem, LARGE, 0);
			_exit(0);
		}
		hps_start(&call);
		while (hps_stat("rx_bytes") + hps_stat("rx_fetched") < came + LARGE / 4)
			;
		ASSERT_OK(kill(reader, SIGKILL));
		ASSERT_LE(0, hps_reap(reader));
		/* Its sender waits, so the reader did not have all of it. */
		early = !call.done;
		next.fd = call.fd;
		hps_start(&next);
		EXPECT_EQ(1000, get(s, mem, LARGE, 0, &flags));
		EXPECT_EQ(0, flags);
		EXPECT_TRUE(is(mem, 1000, 2));
		ASSERT_TRUE(hps_done(&call));
		EXPECT_EQ(LARGE, call.ret);
		ASSERT_TRUE(hps_done(&next));
		EXPECT_EQ(1000, next.ret);
		close(call.fd);
		close(s);
	}
	munmap(mem, LARGE);
	return early;
}

TEST_F(seqpacket, killed_in_the_middle)
{
	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	EXPECT_TRUE(killed(_metadata, &self->t, "off")) TH_LOG("too slow each time");
	/* Of one that waits to be fetched, by several RDMA Reads. */
	EXPECT_TRUE(killed(_metadata, &self->t, "wait")) TH_LOG("too slow each time");
}

/* The peer's end in the middle of a message is an end, and no message. */
TEST_F(seqpacket, peer_gone)
{
	struct hps_call call = { .fn = send_large, .fd = self->c, .len = LARGE, .arg = 1 };

	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	hps_block(&call);
	ASSERT_OK(hps_reset(self->s));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_TRUE(call.err == ECONNRESET || call.err == EPIPE) TH_LOG("error %d", call.err);
}

/* Ends connections in the middle of a message, until one was early enough. */
static bool cut(struct __test_metadata *_metadata, const struct hps *t, bool orderly)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	char *mem = hps_memory(LARGE);
	bool cut = false;
	int i;

	ASSERT_NE(NULL, mem);
	ASSERT_TRUE(hps_set_zcopy("off"));
	for (i = 0; i < CUTS && !cut; i++) {
		struct hps_call from = { .fn = send_large, .len = LARGE, .arg = 1 };
		struct hps_call to = { .fn = hps_recv_call, .buf = mem, .len = LARGE };
		long came = hps_stat("rx_bytes");

		ASSERT_OK(hps_pair(t, &from.fd, &to.fd));
		/* Otherwise all of it may have room before it is read. */
		ASSERT_OK(hps_set(to.fd, SOL_SOCKET, SO_RCVBUF, 131072));
		hps_start(&to);
		hps_start(&from);
		while (hps_stat("rx_bytes") < came + LARGE / 4)
			;
		if (orderly)
			ASSERT_OK(shutdown(from.fd, SHUT_WR));
		else
			ASSERT_OK(connect(from.fd, &none, sizeof(none)));
		ASSERT_TRUE(hps_done(&from));
		ASSERT_TRUE(hps_done(&to));
		cut = to.ret != LARGE;
		if (cut) {
			EXPECT_EQ(-1, from.ret);
			EXPECT_EQ(orderly ? 0 : -1, to.ret);
			EXPECT_TRUE(orderly || to.err == ECONNRESET) TH_LOG("error %d", to.err);
			EXPECT_EQ(0, recv(to.fd, mem, LARGE, 0));
		}
		close(from.fd);
		close(to.fd);
	}
	return cut;
}

/* One whose rest is lost with the connection is an error, also for who has read some of it. */
TEST_F(seqpacket, cut_off)
{
	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	EXPECT_TRUE(cut(_metadata, &self->t, false)) TH_LOG("too slow each time");
}

/* One that its sender could not finish after shutdown() was none. */
TEST_F(seqpacket, shut_off)
{
	if (!variant->rdma)
		SKIP(return, "AF_UNIX takes no message that is larger than SO_SNDBUF");
	EXPECT_TRUE(cut(_metadata, &self->t, true)) TH_LOG("too slow each time");
}

TEST_HARNESS_MAIN
