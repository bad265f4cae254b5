// SPDX-License-Identifier: GPL-2.0
/* Bytes through a connection by every call there is. */
#include "hps_test.h"

#include <linux/sockios.h>
#include <sys/sendfile.h>

#define MIB (1 << 20)

HPS_PAIR_FIXTURE(io)

/* Around the sizes where buffers end. */
static const size_t sizes[] = {
	1, 2, 100, 1023, 1024, 1025, 4079, 4080, 4081, 4095, 4096, 4097, 8175, 8176, 8177,
	8192, 16367, 16368, 16369, 16383, 16384, 16385, 65519, 65520, 65521, 65535, 65536, 65537,
};

static uint8_t big[MIB + 16], back[MIB + 16];

/* A file with the first bytes of a stream. */
static int file_of(size_t len, uint64_t seed)
{
	int fd = memfd_create("stream", 0);

	hps_fill(big, len, 0, seed);
	if (fd < 0 || write(fd, big, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET))
		return -1;
	return fd;
}

struct pull {
	struct hps_call call;
	uint64_t seed;
};

static long pull_call(struct hps_call *call)
{
	struct pull *pull = (struct pull *)call;

	return hps_pull(call->fd, call->len, call->arg ?: 65536, pull->seed);
}

static long push_call(struct hps_call *call)
{
	struct pull *push = (struct pull *)call;

	return hps_push(call->fd, call->len, call->arg ?: 65536, push->seed);
}

TEST_F(io, sizes)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_EQ(sizes[i], hps_push(self->c, sizes[i], sizes[i], i));
		ASSERT_EQ(sizes[i], hps_pull(self->s, sizes[i], sizes[i], i));
		ASSERT_EQ(sizes[i], hps_push(self->s, sizes[i], sizes[i], i + 100));
		ASSERT_EQ(sizes[i], hps_pull(self->c, sizes[i], sizes[i], i + 100));
	}
}

TEST_F(io, megabyte)
{
	struct pull pull = { { .fn = pull_call, .fd = self->s, .len = MIB }, 1 };

	hps_start(&pull.call);
	EXPECT_EQ(MIB, hps_push(self->c, MIB, MIB, 1));
	ASSERT_TRUE(hps_done(&pull.call));
	EXPECT_EQ(MIB, pull.call.ret);
}

/* The chunks of the two ends have nothing to do with each other. */
TEST_F(io, odd_chunks)
{
	static const int chunks[][2] = {
		{ 1, 7 }, { 7, 1 }, { 1000, 333 }, { 4097, 16384 }, { 65536, 100 }, { 333, 65536 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(chunks); i++) {
		int len = chunks[i][0] < 100 ? 3000 : 200000;
		struct pull pull = {
			{ .fn = pull_call, .fd = self->s, .len = len, .arg = chunks[i][1] }, i,
		};

		hps_start(&pull.call);
		EXPECT_EQ(len, hps_push(self->c, len, chunks[i][0], i));
		ASSERT_TRUE(hps_done(&pull.call));
		EXPECT_EQ(len, pull.call.ret);
	}
}

TEST_F(io, read_write)
{
	char buf[16] = "";

	EXPECT_EQ(5, write(self->c, "hello", 5));
	EXPECT_EQ(5, read(self->s, buf, sizeof(buf)));
	EXPECT_STREQ("hello", buf);
	EXPECT_ERRNO(ESPIPE, pread(self->s, buf, 1, 0));
	EXPECT_ERRNO(ESPIPE, pwrite(self->s, buf, 1, 0));
}

TEST_F(io, readv_writev)
{
	struct iovec out[] = {
		{ "one", 3 }, { NULL, 0 }, { "two", 3 }, { "", 0 }, { "three", 5 },
	};
	char a[4], b[1], c[20] = "";
	struct iovec in[] = { { a, 4 }, { b, 0 }, { b, 1 }, { c, 20 } };

	ASSERT_EQ(11, writev(self->c, out, 5));
	ASSERT_TRUE(hps_until_inq(self->s, 11));
	ASSERT_EQ(11, readv(self->s, in, 4));
	EXPECT_EQ(0, memcmp(a, "onet", 4));
	EXPECT_EQ('w', b[0]);
	EXPECT_STREQ("othree", c);
}

TEST_F(io, long_vector)
{
	static struct iovec v[1025];
	struct msghdr msg = { .msg_iov = v, .msg_iovlen = 1024 };
	int i;

	for (i = 0; i < 1025; i++)
		v[i] = (struct iovec){ big + i * 3, 3 };
	hps_fill(big, 1024 * 3, 0, 1);
	ASSERT_EQ(3072, writev(self->c, v, 1024));
	ASSERT_EQ(3072, hps_pull(self->s, 3072, 4096, 1));
	ASSERT_EQ(3072, sendmsg(self->c, &msg, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 3072));
	for (i = 0; i < 1025; i++)
		v[i].iov_base = back + i * 3;
	ASSERT_EQ(3072, readv(self->s, v, 1024));
	EXPECT_EQ(3072, hps_check(back, 3072, 0, 1));

	EXPECT_ERRNO(EINVAL, writev(self->c, v, 1025));
	EXPECT_ERRNO(EINVAL, readv(self->c, v, 1025));
	msg.msg_iovlen = 1025;
	EXPECT_ERRNO(EMSGSIZE, sendmsg(self->c, &msg, 0));
	EXPECT_ERRNO(EMSGSIZE, recvmsg(self->c, &msg, 0));
	v[1].iov_len = -1;
	EXPECT_ERRNO(EINVAL, writev(self->c, v, 2));
	EXPECT_ERRNO(EINVAL, readv(self->c, v, 2));
	EXPECT_EQ(0, writev(self->c, v, 0));
	EXPECT_TRUE(hps_quiet(self->s, POLLIN));
}

/* Where a connection leads is settled: addresses are ignored. */
TEST_F(io, sendto_recvfrom)
{
	struct hps_addr from;
	char buf[8];

	EXPECT_EQ(3, sendto(self->c, "abc", 3, 0, &self->t.a.sa, self->t.a.len));
	memset(&from, 0x5a, sizeof(from));
	from.len = sizeof(from.ss);
	EXPECT_EQ(3, recvfrom(self->s, buf, sizeof(buf), 0, &from.sa, &from.len));
	EXPECT_EQ(0, from.len);
	EXPECT_EQ(0x5a5a, from.sa.sa_family);
}

TEST_F(io, sendmsg_recvmsg)
{
	struct hps_addr from;
	char buf[4], control[64];
	struct iovec v = { "abcdef", 6 };
	struct msghdr msg = { .msg_iov = &v, .msg_iovlen = 1 };

	EXPECT_EQ(6, sendmsg(self->c, &msg, 0));
	memset(&from, 0x5a, sizeof(from));
	v = (struct iovec){ buf, sizeof(buf) };
	msg = (struct msghdr){
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_name = &from.ss,
		.msg_namelen = sizeof(from.ss),
		.msg_control = control, .msg_controllen = sizeof(control), .msg_flags = -1,
	};
	EXPECT_EQ(4, recvmsg(self->s, &msg, 0));
	EXPECT_EQ(0, memcmp(buf, "abcd", 4));
	EXPECT_EQ(0, msg.msg_namelen);
	EXPECT_EQ(0x5a5a, from.sa.sa_family);
	EXPECT_EQ(0, msg.msg_controllen);
	EXPECT_EQ(0, msg.msg_flags);
	EXPECT_EQ(2, recvmsg(self->s, &msg, 0));
}

TEST_F(io, sendmmsg_recvmmsg)
{
	struct mmsghdr m[8];
	struct iovec v[8];
	char buf[8][16];
	int i, n, got = 0;

	memset(m, 0, sizeof(m));
	for (i = 0; i < 8; i++) {
		hps_fill(buf[i], 16, i * 16, 1);
		v[i] = (struct iovec){ buf[i], 16 };
		m[i].msg_hdr.msg_iov = &v[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	ASSERT_EQ(8, sendmmsg(self->c, m, 8, 0));
	for (i = 0; i < 8; i++) {
		EXPECT_EQ(16, m[i].msg_len);
	}
	ASSERT_TRUE(hps_until_inq(self->s, 128));
	memset(buf, 0, sizeof(buf));
	n = recvmmsg(self->s, m, 8, MSG_DONTWAIT, NULL);
	ASSERT_LT(0, n);
	for (i = 0; i < n; i++)
		got += m[i].msg_len;
	ASSERT_EQ(128, got);
	EXPECT_EQ(128, hps_check(buf, 128, 0, 1));
	EXPECT_ERRNO(EAGAIN, recvmmsg(self->s, m, 8, MSG_DONTWAIT, NULL));
}

TEST_F(io, nothing)
{
	char byte;

	EXPECT_EQ(0, send(self->c, "", 0, 0));
	EXPECT_EQ(0, write(self->c, "", 0));
	EXPECT_EQ(0, send(self->c, NULL, 0, 0));
	EXPECT_TRUE(hps_quiet(self->s, POLLIN));
	EXPECT_EQ(0, read(self->s, &byte, 0));
	EXPECT_ERRNO(EAGAIN, recv(self->s, &byte, 0, MSG_DONTWAIT));
	EXPECT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_TRUE(hps_wait(self->s, POLLIN));
	EXPECT_EQ(0, recv(self->s, &byte, 0, MSG_DONTWAIT));
	EXPECT_EQ(0, read(self->s, &byte, 0));
	EXPECT_EQ(1, recv(self->s, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ('x', byte);
}

TEST_F(io, partial_reads)
{
	int i;

	ASSERT_EQ(1000, hps_push(self->c, 1000, 1000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 1000));
	for (i = 0; i < 1000; i += 100) {
		EXPECT_EQ(1000 - i, hps_inq(self->s));
		ASSERT_EQ(100, recv(self->s, back, 100, 0));
		EXPECT_EQ(100, hps_check(back, 100, i, 1));
	}
	EXPECT_ERRNO(EAGAIN, recv(self->s, back, 1, MSG_DONTWAIT));
}

/* One read takes what several writes left. */
TEST_F(io, reads_join)
{
	ASSERT_EQ(30000, hps_push(self->c, 30000, 1000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 30000));
	ASSERT_EQ(30000, recv(self->s, back, sizeof(back), 0));
	EXPECT_EQ(30000, hps_check(back, 30000, 0, 1));
}

/*
 * What one call sends a reader that waits gets by one call, though it may come as several
 * messages: no program should count on that, and many do. A computer that is busy may be too
 * slow for it, but then the reader has waited.
 */
TEST_F(io, one_read_for_a_write)
{
	enum { LEN = 16384, ROUNDS = 20, MS = 8 };
	int c, s, i, whole = 0, waited = 0;
	int64_t start;

	for (i = 0; i < ROUNDS; i++) {
		ASSERT_OK(hps_pair(&self->t, &c, &s));
		ASSERT_EQ(LEN, hps_push(c, LEN, LEN, 1));
		start = hps_now();
		if (recv(s, back, sizeof(back), 0) == LEN)
			whole++;
		else
			waited += hps_now() - start >= MS;
		close(c);
		close(s);
	}
	TH_LOG("%d of %d, %d more have waited", whole, ROUNDS, waited);
	if (self->t.rdma)
		EXPECT_EQ(ROUNDS, whole + waited);
}

TEST_F(io, dontwait)
{
	char byte;

	EXPECT_ERRNO(EAGAIN, recv(self->s, &byte, 1, MSG_DONTWAIT));
	ASSERT_OK(hps_nonblock(self->s, true));
	EXPECT_ERRNO(EAGAIN, recv(self->s, &byte, 1, 0));
	EXPECT_ERRNO(EAGAIN, recv(self->s, &byte, 1, MSG_PEEK));
	EXPECT_ERRNO(EAGAIN, recv(self->s, &byte, 1, MSG_WAITALL));
	EXPECT_ERRNO(EAGAIN, read(self->s, &byte, 1));
	EXPECT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_TRUE(hps_wait(self->s, POLLIN));
	EXPECT_EQ(1, recv(self->s, &byte, 1, 0));
}

TEST_F(io, waitall)
{
	struct hps_call call = {
		.fn = hps_recv_call, .fd = self->s, .buf = back, .len = 3000, .arg = MSG_WAITALL,
	};

	hps_block(&call);
	hps_fill(big, 3000, 0, 1);
	ASSERT_EQ(1000, send(self->c, big, 1000, 0));
	ASSERT_EQ(1000, send(self->c, big + 1000, 1000, 0));
	hps_until_blocked(call.tid);
	EXPECT_FALSE(call.done);
	ASSERT_EQ(1000, send(self->c, big + 2000, 1000, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(3000, call.ret);
	EXPECT_EQ(3000, hps_check(back, 3000, 0, 1));
}

TEST_F(io, waitall_end)
{
	ASSERT_EQ(1000, hps_push(self->c, 1000, 1000, 1));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(1000, recv(self->s, back, 3000, MSG_WAITALL));
	EXPECT_EQ(0, recv(self->s, back, 3000, MSG_WAITALL));
}

TEST_F(io, waitall_timeout)
{
	struct timeval tv = { .tv_usec = 100000 };

	ASSERT_OK(setsockopt(self->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	ASSERT_EQ(1000, hps_push(self->c, 1000, 1000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 1000));
	EXPECT_EQ(1000, recv(self->s, back, 3000, MSG_WAITALL));
	EXPECT_ERRNO(EAGAIN, recv(self->s, back, 3000, MSG_WAITALL));
}

/* More at once than any buffer holds. */
TEST_F(io, waitall_big)
{
	struct hps_call call = {
		.fn = hps_recv_call, .fd = self->s, .buf = back, .len = MIB, .arg = MSG_WAITALL,
	};

	hps_start(&call);
	ASSERT_EQ(MIB, hps_push(self->c, MIB, 10000, 1));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(MIB, call.ret);
	EXPECT_EQ(MIB, hps_check(back, MIB, 0, 1));
}

TEST_F(io, peek)
{
	int i;

	ASSERT_EQ(20000, hps_push(self->c, 20000, 1000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 20000));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(20000, recv(self->s, back, sizeof(back), MSG_PEEK));
		ASSERT_EQ(20000, hps_check(back, 20000, 0, 1));
		ASSERT_EQ(10, recv(self->s, back, 10, MSG_PEEK));
		EXPECT_EQ(20000, hps_inq(self->s));
	}
	ASSERT_EQ(5000, recv(self->s, back, 5000, 0));
	ASSERT_EQ(5000, recv(self->s, back, 5000, MSG_PEEK | MSG_WAITALL));
	EXPECT_EQ(5000, hps_check(back, 5000, 5000, 1));
	ASSERT_EQ(15000, recv(self->s, back, sizeof(back), 0));
	EXPECT_EQ(15000, hps_check(back, 15000, 5000, 1));
}

TEST_F(io, peek_waits)
{
	struct hps_call call = {
		.fn = hps_recv_call, .fd = self->s, .buf = back, .len = 100, .arg = MSG_PEEK,
	};

	hps_block(&call);
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(5, call.ret);
	EXPECT_EQ(5, recv(self->s, back, 100, 0));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, recv(self->s, back, 100, MSG_PEEK));
	EXPECT_EQ(0, recv(self->s, back, 100, 0));
}

/* Where the next look begins: it moves on by what was seen, back by what was read. */
TEST_F(io, peek_off)
{
	struct hps_call call = {
		.fn = hps_recv_call, .fd = self->s, .buf = back, .len = 100, .arg = MSG_PEEK,
	};

	/* Before Linux 6.9 TCP has no such thing. */
	if (!self->t.rdma && hps_set(self->s, SOL_SOCKET, SO_PEEK_OFF, 0))
		SKIP(return, "this kernel has no SO_PEEK_OFF for TCP");
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_PEEK_OFF, 0));
	ASSERT_EQ(10000, hps_push(self->c, 10000, 1000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 10000));
	ASSERT_EQ(1500, recv(self->s, back, 1500, MSG_PEEK));
	EXPECT_EQ(1500, hps_check(back, 1500, 0, 1));
	EXPECT_EQ(1500, hps_opt(self->s, SOL_SOCKET, SO_PEEK_OFF));
	ASSERT_EQ(8500, recv(self->s, back, sizeof(back), MSG_PEEK));
	EXPECT_EQ(8500, hps_check(back, 8500, 1500, 1));
	EXPECT_ERRNO(EAGAIN, recv(self->s, back, 1, MSG_PEEK | MSG_DONTWAIT));
	ASSERT_EQ(3000, recv(self->s, back, 3000, 0));
	EXPECT_EQ(3000, hps_check(back, 3000, 0, 1));
	EXPECT_EQ(7000, hps_opt(self->s, SOL_SOCKET, SO_PEEK_OFF));
	EXPECT_ERRNO(EAGAIN, recv(self->s, back, 1, MSG_PEEK | MSG_DONTWAIT));
	/* It waits for what it has not seen. */
	hps_block(&call);
	EXPECT_FALSE(call.done);
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(1, call.ret);
	EXPECT_EQ('x', back[0]);
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_PEEK_OFF, 500));
	ASSERT_EQ(700, recv(self->s, back, 700, MSG_PEEK));
	EXPECT_EQ(700, hps_check(back, 700, 3500, 1));
	ASSERT_EQ(2000, recv(self->s, NULL, 2000, MSG_TRUNC));
	EXPECT_EQ(0, hps_opt(self->s, SOL_SOCKET, SO_PEEK_OFF));
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_PEEK_OFF, -1));
	ASSERT_EQ(700, recv(self->s, back, 700, MSG_PEEK));
	ASSERT_EQ(700, recv(self->s, back, 700, MSG_PEEK));
	EXPECT_EQ(700, hps_check(back, 700, 5000, 1));
	EXPECT_EQ(-1, hps_opt(self->s, SOL_SOCKET, SO_PEEK_OFF));
}

/* MSG_TRUNC takes bytes away unseen. */
TEST_F(io, trunc)
{
	ASSERT_EQ(20000, hps_push(self->c, 20000, 20000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 20000));
	memset(back, 0x5a, 100);
	ASSERT_EQ(7000, recv(self->s, NULL, 7000, MSG_TRUNC));
	ASSERT_EQ(100, recv(self->s, back, 100, MSG_TRUNC));
	EXPECT_EQ(0x5a, back[0]);
	EXPECT_EQ(12900, hps_inq(self->s));
	ASSERT_EQ(12900, recv(self->s, back, 20000, 0));
	EXPECT_EQ(12900, hps_check(back, 12900, 7100, 1));
}

TEST_F(io, error_queue)
{
	EXPECT_ERRNO(EAGAIN, recv(self->s, back, 100, MSG_ERRQUEUE));
	EXPECT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_EQ(1, recv(self->s, back, 100, 0));
}

TEST_F(io, more)
{
	struct hps_call call = {
		.fn = hps_recv_call, .fd = self->s, .buf = back, .len = 300, .arg = MSG_WAITALL,
	};

	hps_start(&call);
	hps_fill(big, 300, 0, 1);
	EXPECT_EQ(100, send(self->c, big, 100, MSG_MORE));
	EXPECT_EQ(100, send(self->c, big + 100, 100, MSG_MORE));
	EXPECT_EQ(100, send(self->c, big + 200, 100, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(300, call.ret);
	EXPECT_EQ(300, hps_check(back, 300, 0, 1));
}

/*
 * MSG_MORE is about the bytes that it comes with: those of calls before it, which had no
 * such flag, do not wait for what it waits for.
 */
TEST_F(io, more_behind_others)
{
	enum { COUNT = 14, SIZE = 64, ALL = COUNT * SIZE };
	int round, i, quick = 0;
	int64_t took;

	for (round = 0; round < 30; round++)
		ASSERT_TRUE(hps_burst(self->c, self->s));
	/* It waits 200 ms. One or the other may not be combined, or come late. */
	for (round = 0; quick < 6 && round < 50; round++) {
		if (round % 10 == 0)
			quick = 0;
		for (i = 0; i < COUNT; i++)
			ASSERT_EQ(SIZE, send(self->c, big, SIZE, 0));
		ASSERT_EQ(1, send(self->c, "x", 1, MSG_MORE));
		took = hps_now();
		ASSERT_EQ(ALL, recv(self->s, back, ALL, MSG_WAITALL));
		quick += hps_now() - took < 150;
		ASSERT_EQ(1, send(self->c, "y", 1, 0));
		ASSERT_EQ(2, recv(self->s, back, 2, MSG_WAITALL));
	}
	EXPECT_LT(5, quick);
}

static struct hpsock_info info_of(int fd)
{
	struct hpsock_info info = {};
	socklen_t len = sizeof(info);

	getsockopt(fd, SOL_HPSOCK, HPSOCK_INFO, &info, &len);
	return info;
}

/* Bytes that are not sent yet. */
static int unsent(int fd)
{
	int len = -1;

	ioctl(fd, SIOCOUTQNSD, &len);
	return len;
}

/* All that was sent has arrived, and messages may follow. */
static bool at_rest(const struct hps *t, int fd, unsigned int messages)
{
	const int64_t end = hps_now() + hps_deadline();
	int len;

	do {
		if (!ioctl(fd, SIOCOUTQ, &len) && !len &&
		    (!t->rdma || info_of(fd).tx_credits >= messages))
			return true;
		usleep(1000);
	} while (hps_now() < end);
	return false;
}

/* With TCP_NODELAY nothing waits for a host that is far away, whatever was sent before. */
TEST_F(io, far_away)
{
	/* Eight credits are what it may have at most, where SO_RCVBUF has not grown much. */
	enum { LENT = 256 << 10, FAR_MESSAGES = 6 };
	struct hps_call call = { .fn = hps_send_call, .fd = self->c,
				 .buf = hps_memory(LENT), .len = LENT };
	long lent = hps_stat("tx_lent");
	int i, sent, round;

	if (self->t.rdma) {
		ASSERT_OK(close(self->c));
		ASSERT_OK(close(self->s));
		ASSERT_OK(hps_pair_lending(&self->t, &self->c, &self->s));
		ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_PROTECT));
		call.fd = self->c;
	}
	ASSERT_OK(hps_set(self->c, SOL_TCP, TCP_NODELAY, 1));
	for (i = 0; i < 8; i++)
		ASSERT_TRUE(hps_burst(self->c, self->s));
	if (!hps_delay_packets()) {
		hps_delay_no_packets();
		SKIP(return, "this kernel has no netem");
	}
	/* One that is late may only have waited for a processor. */
	for (i = 0; i < 20; i++)
		EXPECT_TRUE(hps_burst(self->c, self->s));
	for (round = 0; round < 3; round++) {
		/* Has all credits with it: half of them may be too few for the peer to tell of. */
		EXPECT_EQ(1, send(self->s, "x", 1, 0));
		EXPECT_EQ(1, recv(self->c, back, 1, 0));
		EXPECT_TRUE(at_rest(&self->t, self->c, FAR_MESSAGES));
		for (i = sent = 0; i < FAR_MESSAGES; i++) {
			EXPECT_EQ(64, send(self->c, big, 64, 0));
			sent += !unsent(self->c);
		}
		EXPECT_EQ(FAR_MESSAGES, sent);
		EXPECT_EQ(FAR_MESSAGES * 64,
			  recv(self->s, back, FAR_MESSAGES * 64, MSG_WAITALL));
		/* Keys are made and invalidated without the peer. */
		hps_start(&call);
		EXPECT_EQ(LENT, recv(self->s, back, LENT, MSG_WAITALL));
		EXPECT_TRUE(hps_done(&call));
		EXPECT_EQ(LENT, call.ret);
	}
	if (self->t.rdma)
		EXPECT_LT(lent, hps_stat("tx_lent"));
	hps_delay_no_packets();
}

/* Nobody waits for ever for what was sent with MSG_MORE. */
TEST_F(io, more_alone)
{
	EXPECT_EQ(10, send(self->c, "0123456789", 10, MSG_MORE));
	EXPECT_EQ(10, recv(self->s, back, 100, 0));
}

/* There is no Fast Open. */
TEST_F(io, fastopen)
{
	if (!self->t.rdma)
		SKIP(return, "TCP has Fast Open");
	EXPECT_ERRNO(EOPNOTSUPP, send(self->c, "x", 1, MSG_FASTOPEN));
}

TEST_F(io, send_fault)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec v[2] = { { hps_unmapped(), 100 }, { big, 100 } };

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_OK(mprotect(page + 4096, 4096, PROT_NONE));
	EXPECT_ERRNO(EFAULT, send(self->c, hps_unmapped(), 100, 0));
	EXPECT_ERRNO(EFAULT, write(self->c, page + 4096, 100));
	EXPECT_ERRNO(EFAULT, writev(self->c, v, 2));
	EXPECT_ERRNO(EFAULT, writev(self->c, hps_unmapped(), 2));
	EXPECT_ERRNO(EFAULT, sendmsg(self->c, hps_unmapped(), 0));
	EXPECT_TRUE(hps_quiet(self->s, POLLIN));
	/* The stream goes on as if nothing had been. */
	ASSERT_EQ(5000, hps_push(self->c, 5000, 5000, 1));
	EXPECT_EQ(5000, hps_pull(self->s, 5000, 5000, 1));
}

TEST_F(io, recv_fault)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec v[2] = { { hps_unmapped(), 100 }, { back, 100 } };

	ASSERT_NE(MAP_FAILED, page);
	ASSERT_OK(mprotect(page + 4096, 4096, PROT_NONE));
	ASSERT_EQ(3000, hps_push(self->c, 3000, 3000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 3000));
	EXPECT_ERRNO(EFAULT, recv(self->s, hps_unmapped(), 3000, 0));
	EXPECT_ERRNO(EFAULT, recv(self->s, page + 4096, 3000, 0));
	EXPECT_ERRNO(EFAULT, recv(self->s, page + 4096, 3000, MSG_PEEK));
	EXPECT_ERRNO(EFAULT, recv(self->s, page + 4096 - 100, 3000, 0));
	EXPECT_ERRNO(EFAULT, readv(self->s, v, 2));
	EXPECT_ERRNO(EFAULT, recvmsg(self->s, hps_unmapped(), 0));
	/* Nothing of it is lost. */
	EXPECT_EQ(3000, hps_inq(self->s));
	EXPECT_EQ(3000, hps_pull(self->s, 3000, 3000, 1));
}

TEST_F(io, inq)
{
	EXPECT_EQ(0, hps_inq(self->s));
	ASSERT_EQ(12345, hps_push(self->c, 12345, 1000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 12345));
	EXPECT_EQ(12345, hps_inq(self->s));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_TRUE(hps_wait(self->s, POLLRDHUP));
	/* The end does not count. */
	EXPECT_EQ(12345, hps_inq(self->s));
	EXPECT_EQ(12345, hps_pull(self->s, 20000, 100, 1));
	EXPECT_EQ(0, hps_inq(self->s));
}

TEST_F(io, outq)
{
	int left = -1;

	ASSERT_OK(ioctl(self->c, TIOCOUTQ, &left));
	EXPECT_EQ(0, left);
	ASSERT_EQ(5000, hps_push(self->c, 5000, 5000, 1));
	ASSERT_EQ(5000, hps_pull(self->s, 5000, 5000, 1));
	EXPECT_TRUE(hps_until_outq(self->c, 0));
}

/* What is not read is bounded by bytes, however little comes at a time. */
TEST_F(io, unread)
{
	enum { SIZE = 600, COUNT = 80 };
	static uint8_t data[SIZE * COUNT], back[SIZE * COUNT];
	int i;

	hps_fill(data, sizeof(data), 0, 1);
	for (i = 0; i < COUNT; i++) {
		ASSERT_EQ(SIZE, send(self->c, data + i * SIZE, SIZE, 0));
		ASSERT_TRUE(hps_until_inq(self->s, (i + 1) * SIZE));
	}
	EXPECT_EQ(sizeof(back), recv(self->s, back, sizeof(back), MSG_PEEK | MSG_WAITALL));
	EXPECT_EQ(sizeof(back), hps_check(back, sizeof(back), 0, 1));
	EXPECT_EQ(sizeof(back), hps_pull(self->s, sizeof(back), 1000, 1));
}

/* One at a time, so that none is joined to another, until the peer takes no more. */
static int64_t trickle(int fd, int64_t at)
{
	int64_t begun = at;
	uint8_t data[600];
	int left = 0, i;

	while (!left) {
		hps_fill(data, sizeof(data), at, 1);
		if (send(fd, data, sizeof(data), 0) != sizeof(data))
			return -1;
		at += sizeof(data);
		for (i = 0; i < 100 && !ioctl(fd, SIOCOUTQ, &left) && left; i++)
			usleep(1000);
		if (left && (!hps_settle() || ioctl(fd, SIOCOUTQ, &left)))
			return -1;
	}
	return at - begun;
}

/* Where that bound is reached, there is room again when something is read, or it is raised. */
TEST_F(io, unread_bound)
{
	int64_t len, more;

	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 65536));
	len = trickle(self->c, 0);
	ASSERT_LT(50000, len);
	EXPECT_EQ(len / 2, hps_pull(self->s, len / 2, 1000, 1));
	EXPECT_TRUE(hps_until_outq(self->c, 0));
	more = trickle(self->c, len);
	EXPECT_LT(len / 4, more);
	EXPECT_GT(len, more);
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 131072));
	EXPECT_TRUE(hps_until_outq(self->c, 0));
	EXPECT_EQ(len + more - len / 2,
		  hps_pull_at(self->s, len / 2, len + more - len / 2, 1000, 1));
}

/* Nor is it more than SO_RCVBUF and a message for who sends much. */
TEST_F(io, unread_bulk)
{
	int64_t len;

	if (self->t.rdma)
		ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_OFF));
	len = hps_stuff(self->c, 0, 1);
	ASSERT_LT(0, len);
	EXPECT_GT(hps_opt(self->s, SOL_SOCKET, SO_RCVBUF) + 65536, hps_inq(self->s));
	EXPECT_EQ(len, hps_pull(self->s, len, 65536, 1));
}

/* The end counts as a byte, until the peer knows of it. */
TEST_F(io, outq_end)
{
	int64_t len = hps_stuff(self->c, 0, 1);
	int left, unsent, then;

	ASSERT_LT(0, len);
	ASSERT_OK(ioctl(self->c, SIOCOUTQ, &left));
	ASSERT_OK(ioctl(self->c, SIOCOUTQNSD, &unsent));
	EXPECT_LT(0, unsent);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_OK(ioctl(self->c, SIOCOUTQ, &then));
	EXPECT_EQ(left + 1, then);
	ASSERT_OK(ioctl(self->c, SIOCOUTQNSD, &then));
	EXPECT_EQ(unsent + 1, then);
	ASSERT_EQ(len, hps_pull(self->s, len, 100000, 1));
	EXPECT_TRUE(hps_until_outq(self->c, 0));
}

TEST_F(io, sendfile)
{
	struct pull pull = { { .fn = pull_call, .fd = self->s, .len = MIB }, 1 };
	int file = file_of(MIB, 1);
	size_t done = 0;
	off_t at = 0;

	ASSERT_OK(file);
	hps_start(&pull.call);
	while (done < MIB) {
		ssize_t n = sendfile(self->c, file, &at, MIB - done);

		ASSERT_LT(0, n);
		done += n;
		ASSERT_EQ(done, at);
	}
	EXPECT_EQ(0, sendfile(self->c, file, &at, 100));
	ASSERT_TRUE(hps_done(&pull.call));
	EXPECT_EQ(MIB, pull.call.ret);
}

TEST_F(io, sendfile_parts)
{
	int file = file_of(20000, 1);
	off_t at;
	int i;

	ASSERT_OK(file);
	for (i = 0; i < 20000; i += 1000) {
		at = i;
		ASSERT_EQ(1000, sendfile(self->c, file, &at, 1000));
		EXPECT_EQ(i + 1000, at);
	}
	EXPECT_EQ(20000, hps_pull(self->s, 20000, 20000, 1));
	EXPECT_EQ(500, sendfile(self->c, file, NULL, 500));
	EXPECT_EQ(500, lseek(file, 0, SEEK_CUR));
	EXPECT_EQ(500, hps_pull(self->s, 500, 500, 1));
}

/* Of a file that changes come the bytes of the time of the call, or later ones. */
TEST_F(io, sendfile_of_changing)
{
	enum { LEN = 20000, PART = 1000 };
	int file = file_of(LEN, 1), i;
	uint8_t *later = big + LEN;
	off_t at = 0;

	ASSERT_OK(file);
	hps_fill(later, LEN, 0, 2);
	while (at < LEN) {
		i = at;
		ASSERT_EQ(PART, sendfile(self->c, file, &at, PART));
		ASSERT_EQ(PART, pwrite(file, later + i, PART, i));
	}
	/* And of one that is not there any more, what was. */
	ASSERT_OK(ftruncate(file, 0));
	EXPECT_EQ(0, sendfile(self->c, file, &(off_t){ 0 }, PART));
	close(file);
	ASSERT_EQ(LEN, recv(self->s, back, LEN, MSG_WAITALL));
	for (i = 0; i < LEN; i++) {
		ASSERT_TRUE(back[i] == big[i] || back[i] == later[i]) TH_LOG("byte %d", i);
	}
	EXPECT_EQ(0, hps_inq(self->s));
}

TEST_F(io, splice_to_socket)
{
	int p[2], i;

	ASSERT_OK(pipe(p));
	for (i = 0; i < 5; i++) {
		hps_fill(big, 30000, 0, i);
		ASSERT_EQ(30000, write(p[1], big, 30000));
		ASSERT_EQ(30000, splice(p[0], NULL, self->c, NULL, 30000,
					i % 2 ? SPLICE_F_MORE : 0));
		ASSERT_EQ(30000, hps_pull(self->s, 30000, 65536, i));
	}
}

TEST_F(io, splice_from_socket)
{
	int p[2], got = 0;

	ASSERT_OK(pipe(p));
	ASSERT_OK(hps_nonblock(self->s, true));
	EXPECT_ERRNO(EAGAIN, splice(self->s, NULL, p[1], NULL, 100, 0));
	ASSERT_OK(hps_nonblock(self->s, false));
	ASSERT_EQ(30000, hps_push(self->c, 30000, 30000, 1));
	while (got < 30000) {
		ssize_t n = splice(self->s, NULL, p[1], NULL, 30000 - got, 0);

		ASSERT_LT(0, n);
		ASSERT_EQ(n, read(p[0], back + got, n));
		got += n;
	}
	EXPECT_EQ(30000, hps_check(back, 30000, 0, 1));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, splice(self->s, NULL, p[1], NULL, 100, 0));
}

/* What was spliced out stays what it was, whatever arrives after it. */
TEST_F(io, splice_holds)
{
	int p[2], i;

	ASSERT_OK(pipe(p));
	ASSERT_EQ(4000, hps_push(self->c, 4000, 4000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 4000));
	ASSERT_EQ(4000, splice(self->s, NULL, p[1], NULL, 4000, 0));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(4000, hps_push(self->c, 4000, 4000, i + 2));
		ASSERT_EQ(4000, hps_pull(self->s, 4000, 4000, i + 2));
	}
	close(self->s);
	close(self->c);
	ASSERT_EQ(4000, read(p[0], back, 4000));
	EXPECT_EQ(4000, hps_check(back, 4000, 0, 1));
}

TEST_F(io, recv_timeout)
{
	struct timeval tv = { .tv_usec = 150000 };
	int64_t start = hps_now();
	char byte;

	ASSERT_OK(setsockopt(self->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	EXPECT_ERRNO(EAGAIN, recv(self->s, &byte, 1, 0));
	EXPECT_GE(hps_now() - start, 100);
	EXPECT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_TRUE(hps_wait(self->s, POLLIN));
	EXPECT_EQ(1, recv(self->s, &byte, 1, 0));
}

TEST_F(io, send_timeout)
{
	struct timeval tv = { .tv_usec = 150000 };
	int64_t sent, start;

	sent = hps_stuff(self->c, 0, 1);
	ASSERT_LT(0, sent);
	ASSERT_OK(setsockopt(self->c, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	start = hps_now();
	EXPECT_ERRNO(EAGAIN, send(self->c, "x", 1, 0));
	EXPECT_GE(hps_now() - start, 100);
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	EXPECT_WAIT(POLLOUT, self->c);
	EXPECT_EQ(1, send(self->c, "x", 1, 0));
}

TEST_F(io, send_timeout_partial)
{
	struct timeval tv = { .tv_usec = 150000 };
	int64_t sent;

	hps_buffers(self->c, 65536);
	hps_buffers(self->s, 65536);
	ASSERT_OK(setsockopt(self->c, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)));
	hps_fill(big, MIB, 0, 1);
	sent = send(self->c, big, MIB, 0);
	ASSERT_LT(0, sent);
	ASSERT_GT(MIB, sent);
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
}

TEST_F(io, fill_and_drain)
{
	int64_t sent = hps_stuff(self->c, 0, 1);
	char byte = 0;

	ASSERT_LT(0, sent);
	EXPECT_POLL(0, self->c);
	EXPECT_ERRNO(EAGAIN, send(self->c, &byte, 1, MSG_DONTWAIT));
	EXPECT_EQ(sent, hps_pull(self->s, sent, 50000, 1));
	EXPECT_WAIT(POLLOUT, self->c);
	sent = hps_stuff(self->c, 0, 2);
	ASSERT_LT(0, sent);
	EXPECT_EQ(sent, hps_pull(self->s, sent, 50000, 2));
}

/* The sizes of the writes matter little for how much is taken. */
TEST_F(io, many_small_writes)
{
	int i;

	hps_fill(big, 20000, 0, 1);
	for (i = 0; i < 20000; i++) {
		ASSERT_EQ(1, send(self->c, big + i, 1, MSG_DONTWAIT));
	}
	EXPECT_EQ(20000, hps_pull(self->s, 20000, 20000, 1));
}

TEST_F(io, many_small_writes_nodelay)
{
	struct pull pull = { { .fn = pull_call, .fd = self->s, .len = 20000 }, 1 };

	ASSERT_OK(hps_set(self->c, SOL_TCP, TCP_NODELAY, 1));
	hps_start(&pull.call);
	EXPECT_EQ(20000, hps_push(self->c, 20000, 1, 1));
	ASSERT_TRUE(hps_done(&pull.call));
	EXPECT_EQ(20000, pull.call.ret);
}

TEST_F(io, ping_pong)
{
	char byte;
	int i;

	for (i = 0; i < 2000; i++) {
		byte = i;
		ASSERT_EQ(1, send(self->c, &byte, 1, 0));
		ASSERT_EQ(1, recv(self->s, &byte, 1, 0));
		ASSERT_EQ((char)i, byte);
		ASSERT_EQ(1, send(self->s, &byte, 1, 0));
		ASSERT_EQ(1, recv(self->c, &byte, 1, 0));
	}
}

TEST_F(io, one_way_bursts)
{
	int i, j;

	/* More messages one way than any window, none the other way. */
	for (i = 0; i < 50; i++) {
		for (j = 0; j < 100; j++) {
			ASSERT_EQ(3, send(self->c, "abc", 3, 0));
		}
		ASSERT_EQ(300, recv(self->s, back, 300, MSG_WAITALL));
	}
}

TEST_F(io, small_buffers)
{
	struct pull pull = { { .fn = pull_call, .fd = self->s, .len = MIB }, 1 };

	hps_buffers(self->c, 8192);
	hps_buffers(self->s, 8192);
	hps_start(&pull.call);
	EXPECT_EQ(MIB, hps_push(self->c, MIB, 65536, 1));
	ASSERT_TRUE(hps_done(&pull.call));
	EXPECT_EQ(MIB, pull.call.ret);
}

TEST_F(io, both_directions)
{
	struct pull t[4] = {
		{ { .fn = push_call, .fd = self->c, .len = MIB }, 1 },
		{ { .fn = pull_call, .fd = self->c, .len = MIB }, 2 },
		{ { .fn = push_call, .fd = self->s, .len = MIB }, 2 },
		{ { .fn = pull_call, .fd = self->s, .len = MIB }, 1 },
	};
	int i;

	for (i = 0; i < 4; i++)
		hps_start(&t[i].call);
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(hps_done(&t[i].call));
		EXPECT_EQ(MIB, t[i].call.ret);
	}
}

/* Both full in both directions; whoever reads then gets things going again. */
TEST_F(io, both_full)
{
	int64_t one, two, got;

	hps_buffers(self->c, 65536);
	hps_buffers(self->s, 65536);
	one = hps_stuff(self->c, 0, 1);
	two = hps_stuff(self->s, 0, 2);
	ASSERT_LT(0, one);
	ASSERT_LT(0, two);
	EXPECT_EQ(one, hps_pull(self->s, one, 10000, 1));
	EXPECT_WAIT(POLLIN | POLLOUT, self->c);
	got = hps_stuff(self->c, one, 1);
	ASSERT_LT(0, got);
	EXPECT_EQ(two, hps_pull(self->c, two, 10000, 2));
	EXPECT_WAIT(POLLIN | POLLOUT, self->s);
}

/* One thread that never waits but in poll() keeps both directions full. */
TEST_F(io, pump)
{
	struct { int fd; int64_t out, in; uint64_t seed; } end[2] = {
		{ self->c, 0, 0, 1 }, { self->s, 0, 0, 2 },
	};
	const int64_t total = 2 * MIB;
	static uint8_t buf[30000];
	struct pollfd p[2];
	int i;

	while (end[0].in < total || end[1].in < total) {
		for (i = 0; i < 2; i++)
			p[i] = (struct pollfd){
				end[i].fd, POLLIN | (end[i].out < total ? POLLOUT : 0), 0,
			};
		ASSERT_LT(0, poll(p, 2, hps_deadline()));
		for (i = 0; i < 2; i++) {
			uint64_t theirs = end[!i].seed;
			ssize_t n;

			if (p[i].revents & POLLOUT) {
				size_t len = total - end[i].out;

				len = len < sizeof(buf) ? len : sizeof(buf);
				hps_fill(buf, len, end[i].out, end[i].seed);
				n = send(end[i].fd, buf, len, MSG_DONTWAIT);
				ASSERT_LT(0, n);
				end[i].out += n;
			}
			if (p[i].revents & POLLIN) {
				/* Read less than is sent, so that it fills up. */
				n = recv(end[i].fd, buf, 20000, MSG_DONTWAIT);
				ASSERT_LT(0, n);
				ASSERT_EQ(n, hps_check(buf, n, end[i].in, theirs));
				end[i].in += n;
			}
		}
	}
}

TEST_F(io, recv_waits)
{
	struct hps_call call = { .fn = hps_recv_call, .fd = self->s, .buf = back, .len = 100 };

	hps_block(&call);
	EXPECT_FALSE(call.done);
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(5, call.ret);
}

TEST_F(io, send_waits)
{
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = big, .len = 100000 };
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	hps_fill(big, 100000, sent, 1);
	hps_block(&call);
	EXPECT_FALSE(call.done);
	EXPECT_EQ(sent + 100000, hps_pull(self->s, sent + 100000, 65536, 1));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(100000, call.ret);
}

TEST_F(io, recv_interrupted)
{
	struct hps_call call = { .fn = hps_recv_call, .fd = self->s, .buf = back, .len = 100 };
	struct timeval tv = { .tv_sec = 1000 };

	hps_catch(SIGUSR1, 0);
	hps_block(&call);
	pthread_kill(call.thread, SIGUSR1);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);

	/* With SA_RESTART it goes on, */
	hps_catch(SIGUSR1, SA_RESTART);
	hps_block(&call);
	hps_interrupt(&call);
	hps_until_blocked(call.tid);
	EXPECT_FALSE(call.done);
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(1, call.ret);

	/* but not with a timeout. */
	ASSERT_OK(setsockopt(self->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	hps_block(&call);
	pthread_kill(call.thread, SIGUSR1);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
}

TEST_F(io, waitall_interrupted)
{
	struct hps_call call = {
		.fn = hps_recv_call, .fd = self->s, .buf = back, .len = 100, .arg = MSG_WAITALL,
	};

	hps_catch(SIGUSR1, 0);
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 5));
	hps_block(&call);
	pthread_kill(call.thread, SIGUSR1);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(5, call.ret);
}

TEST_F(io, send_interrupted)
{
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = big, .len = MIB };
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	hps_catch(SIGUSR1, 0);
	hps_fill(big, MIB, sent, 1);
	hps_block(&call);
	pthread_kill(call.thread, SIGUSR1);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
	/* Room for some of it: then that is what the signal ends with. */
	hps_buffers(self->s, 65536);
	hps_buffers(self->c, 65536);
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	EXPECT_TRUE(hps_wait(self->c, POLLOUT));
}

TEST_F(io, lowat)
{
	struct hps_call call = { .fn = hps_recv_call, .fd = self->s, .buf = back, .len = 100 };

	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVLOWAT, 10));
	hps_block(&call);
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 5));
	EXPECT_TRUE(hps_quiet(self->s, POLLIN));
	hps_until_blocked(call.tid);
	EXPECT_FALSE(call.done);
	ASSERT_EQ(5, send(self->c, "world", 5, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(10, call.ret);
}

/* A page that changes right after send() returned: the old bytes arrive. */
TEST_F(io, buffer_is_free_after_send)
{
	int i;

	for (i = 0; i < 200; i++) {
		hps_fill(big, 3000, i * 3000, 1);
		ASSERT_EQ(3000, send(self->c, big, 3000, 0));
		memset(big, 0xff, 3000);
		if (i % 8 == 7) {
			ASSERT_EQ(24000, recv(self->s, back, 24000, MSG_WAITALL));
			ASSERT_EQ(24000, hps_check(back, 24000, (i - 7) * 3000, 1));
		}
	}
}

/* Sent before there was a socket to receive it, and only looked at. */
TEST_F(io, peek_what_came_early)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at), c, s;

	ASSERT_OK(l);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	ASSERT_EQ(40000, hps_push(c, 40000, 1000, 1));
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_EQ(40000, recv(s, back, 40000, MSG_PEEK | MSG_WAITALL));
	EXPECT_EQ(40000, hps_check(back, 40000, 0, 1));
}

/* A send buffer that is smaller than a message fills up, corked or not. */
TEST_F(io, cork_and_small_buffer)
{
	int64_t least[2] = { INT64_MAX, INT64_MAX }, begin, took;
	int corked, i;
	pid_t pid;

	hps_buffers(self->c, 16384);
	/*
	 * Each buffer full would wait for a timer of 200 ms: more than ten seconds, every
	 * time. A busy machine may take long for some of these.
	 */
	for (i = 0; i < 10 && (!i || least[1] >= least[0] + 6000); i++)
		for (corked = 0; corked < 2; corked++) {
			ASSERT_OK(hps_set(self->c, IPPROTO_TCP, TCP_CORK, corked));
			begin = hps_now();
			pid = hps_fork();
			if (!pid)
				_exit(hps_push(self->c, MIB, 65536, 1) != MIB);
			ASSERT_EQ(MIB, hps_pull(self->s, MIB, 65536, 1));
			ASSERT_EQ(0, hps_reap(pid));
			took = hps_now() - begin;
			least[corked] = took < least[corked] ? took : least[corked];
		}
	EXPECT_GT(least[0] + 6000, least[1]);
}

/* Everything was delivered, whatever the limit has become. */
TEST_F(io, smaller_send_buffer)
{
	ASSERT_EQ(200000, hps_push(self->c, 200000, 50000, 1));
	ASSERT_EQ(200000, hps_pull(self->s, 200000, 50000, 1));
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUF, 16384));
	EXPECT_WAIT(POLLOUT, self->c);
}

/* All zero for TCP. */
/* Bytes that one message may bring, a number that TCP does not have. */
static unsigned int message_size(int fd)
{
	return info_of(fd).rx_msg_size;
}

/* A reader that is behind all the time gets large buffers, and loses no byte. */
TEST_F(io, reader_behind)
{
	const int64_t end = hps_now() + hps_deadline();
	uint64_t sent = 0, got = 0;
	ssize_t n;

	do {
		do {
			hps_fill(big, 65536, sent, 1);
			n = send(self->c, big, 65536, MSG_DONTWAIT);
			if (n > 0)
				sent += n;
		} while (n > 0);
		ASSERT_EQ(EAGAIN, errno);
		n = 60000;
		ASSERT_EQ(n, hps_pull_at(self->s, got, n, 50000, 1));
		got += n;
	} while (self->t.rdma && message_size(self->s) < 60000 && hps_now() < end);
	if (self->t.rdma)
		EXPECT_LT(60000, message_size(self->s));
	n = sent - got;
	EXPECT_EQ(n, hps_pull_at(self->s, got, n, 65536, 1));
}

/* Write @count times 64 KiB and read them; the number of messages that they made. */
static long messages_of(struct __test_metadata *_metadata, struct _test_data_io *self, int count)
{
	struct pull push = { { .fn = push_call, .fd = self->c, .len = count * 65536 }, 1 };
	const uint64_t before = info_of(self->c).tx_msgs;

	hps_start(&push.call);
	ASSERT_EQ(push.call.len, hps_pull(self->s, push.call.len, 65536, 1));
	ASSERT_TRUE(hps_done(&push.call));
	return info_of(self->c).tx_msgs - before;
}

/*
 * For a reader that has had it grow, a write of 64 KiB is one message: none is cut in two
 * because a header has no room beside it, and no short write before has all others cut.
 */
TEST_F(io, write_is_message)
{
	enum { COUNT = 64 };
	const int64_t end = hps_now() + hps_deadline();

	do
		messages_of(_metadata, self, COUNT);
	while (self->t.rdma && info_of(self->c).tx_msg_size < 65536 && hps_now() < end);
	if (self->t.rdma)
		ASSERT_EQ(65536, info_of(self->c).tx_msg_size);
	ASSERT_EQ(1000, hps_push(self->c, 1000, 1000, 1));
	ASSERT_EQ(1000, hps_pull(self->s, 1000, 1000, 1));
	EXPECT_GE(COUNT + COUNT / 8, messages_of(_metadata, self, COUNT));
}

/* Short writes that do not wait are taken as a whole or not at all, up to the last. */
TEST_F(io, short_is_uncut)
{
	static const size_t sizes[] = { 10, 100, 128, 1000, 3000 };
	int64_t at = 0, from;
	int round, refused;
	ssize_t n;

	/* TCP cuts the one that begins its last segment. */
	if (!self->t.rdma)
		SKIP(return, "of AF_HPSOCK alone");
	/* Ten bytes at a time take long to fill what has grown. */
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUF, 16384));
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 16384));
	for (round = 0; round < 10; round++) {
		const size_t len = sizes[round % ARRAY_SIZE(sizes)];

		/* Not all that was read need be acknowledged. */
		ASSERT_TRUE(hps_wait(self->c, POLLOUT));
		for (from = at, refused = 0; refused < 2;) {
			hps_fill(big, len, at, 1);
			n = send(self->c, big, len, MSG_DONTWAIT);
			if (n < 0) {
				ASSERT_EQ(EAGAIN, errno);
				refused++;
				continue;
			}
			ASSERT_EQ(len, n);
			at += n;
		}
		ASSERT_LT(from, at);
		while (from < at) {
			n = recv(self->s, big, sizeof(big), 0);
			ASSERT_LT(0, n);
			ASSERT_EQ(n, hps_check(big, n, from, 1));
			from += n;
		}
	}
}

/* A child that sends without an end. */
static pid_t sends_on(int c, int s, uint64_t at, size_t chunk)
{
	pid_t pid = hps_fork();
	ssize_t sent;

	if (pid)
		return pid;
	close(s);
	signal(SIGPIPE, SIG_IGN);
	for (;; at += sent) {
		hps_fill(big, chunk, at, 1);
		sent = send(c, big, chunk, 0);
		if (sent < 0)
			_exit(0);
	}
}

/*
 * Messages that do not fill a buffer, and no two of which fit into one, have the number of
 * receives grow; then come those that do, for a reader that stops once in the middle.
 */
static void grows_after_small(struct __test_metadata *_metadata, struct _test_data_io *self,
			      size_t chunk)
{
	enum { SMALL = 900, COUNT = 40 };
	/* Each time that the reader is found slow it takes longer. */
	const uint64_t most = self->t.rdma ? 32 * MIB : 3 * MIB;
	uint64_t sent = 0, got = 0;
	pid_t pid;

	ASSERT_OK(hps_set(self->c, IPPROTO_TCP, TCP_NODELAY, 1));
	for (; sent < COUNT * SMALL; sent += SMALL) {
		hps_fill(big, SMALL, sent, 1);
		ASSERT_EQ(SMALL, send(self->c, big, SMALL, 0));
		if (sent == 30 * SMALL)
			ASSERT_TRUE(hps_until_inq(self->s, sent));
	}
	pid = sends_on(self->c, self->s, sent, chunk);
	ASSERT_OK(pid);
	for (; got < COUNT * SMALL; got += SMALL)
		ASSERT_EQ(SMALL, hps_pull_at(self->s, got, SMALL, SMALL, 1));
	ASSERT_EQ(chunk, hps_pull_at(self->s, got, chunk, chunk, 1));
	got += chunk;
	/* Nothing is waited for: this is what the reader does. */
	usleep(100000);
	while (got < most && (!self->t.rdma || message_size(self->s) < 60000)) {
		ASSERT_EQ(chunk, hps_pull_at(self->s, got, chunk, chunk, 1));
		got += chunk;
	}
	if (self->t.rdma)
		EXPECT_LT(60000, message_size(self->s));
	ASSERT_OK(hps_reset(self->s));
	EXPECT_EQ(0, hps_reap(pid));
}

TEST_F(io, grows_64k)
{
	grows_after_small(_metadata, self, 65536);
}

TEST_F(io, grows_32k)
{
	grows_after_small(_metadata, self, 32768);
}

/*
 * Streams until SO_RCVBUF is larger than that or @most is read. Over RDMA a reader begins when
 * the sender cannot go on and all that it has sent has arrived: one that keeps pace with a
 * sender, or with a device that takes its time, needs no more room. It goes on without a
 * pause, for which larger receives wait, and until nothing is left, for which the sender has
 * to stop: one that stays behind gets no more.
 */
static int rcvbuf_after(struct __test_metadata *_metadata, struct _test_data_io *self,
			int size, uint64_t most)
{
	int bytes, n = 65536;
	uint64_t got = 0;
	pid_t pid;

	pid = sends_on(self->c, self->s, 0, 65536);
	ASSERT_OK(pid);
	do {
		if (self->t.rdma) {
			ASSERT_EQ(POLLIN, hps_wait(self->s, POLLIN));
			hps_until_blocked(pid);
			ASSERT_TRUE(hps_settle());
			n = 16 * size;
		}
		ASSERT_EQ(n, hps_pull_at(self->s, got, n, 65536, 1));
		got += n;
		if (self->t.rdma) {
			ASSERT_OK(kill(pid, SIGSTOP));
			while ((n = hps_inq(self->s)) > 0) {
				ASSERT_EQ(n, hps_pull_at(self->s, got, n, 65536, 1));
				got += n;
			}
			ASSERT_OK(kill(pid, SIGCONT));
		}
		bytes = hps_opt(self->s, SOL_SOCKET, SO_RCVBUF);
	} while (bytes <= size && got < most);
	ASSERT_OK(hps_reset(self->s));
	EXPECT_EQ(0, hps_reap(pid));
	return bytes;
}

/* The receive buffer grows with what a program reads. */
TEST_F(io, rcvbuf_grows)
{
	int size = hps_opt(self->s, SOL_SOCKET, SO_RCVBUF);

	EXPECT_LT(size, rcvbuf_after(_metadata, self, size, 64 * MIB));
}

/* But not if it chose the size. */
TEST_F(io, rcvbuf_chosen)
{
	int size;

	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 100000));
	size = hps_opt(self->s, SOL_SOCKET, SO_RCVBUF);
	EXPECT_EQ(size, rcvbuf_after(_metadata, self, size, 2 * MIB));
}

/* One of SK_MEMINFO_*, without a call that would bring it up to date. */
/*
 * What was delivered is not charged any more, whether more is sent or not, nor if its
 * buffer is kept for the next send.
 */
TEST_F(io, delivered_is_free)
{
	static const int sizes[] = { 1, 3000, 60000 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_EQ(sizes[i], hps_push(self->c, sizes[i], sizes[i], 1));
		ASSERT_EQ(sizes[i], hps_pull(self->s, sizes[i], sizes[i], 1));
		EXPECT_TRUE(hps_until_no_wmem(self->c)) TH_LOG("%d bytes", sizes[i]);
	}
}

/* For which it is kept a moment. */
TEST_F(io, idle_is_freed)
{
	long before;

	ASSERT_TRUE(hps_settle());
	before = hps_send_memory();
	ASSERT_TRUE(hps_burst(self->c, self->s));
	EXPECT_TRUE(hps_until_send_memory(before));
	ASSERT_TRUE(hps_burst(self->c, self->s));
	EXPECT_TRUE(hps_until_send_memory(before));
}

/*
 * Nor is one kept for a writer that had no bytes for it after all, though nothing else is
 * sent, not even to shrink receives.
 */
TEST_F(io, fault_is_freed)
{
	long before, shrink = hps_number(HPS_SHRINK_AFTER, 0);
	int c[8], s[8], i;

	EXPECT_TRUE(!self->t.rdma || !hps_set_number(HPS_SHRINK_AFTER, 3600));
	ASSERT_TRUE(hps_settle());
	before = hps_send_memory();
	for (i = 0; i < 8; i++) {
		ASSERT_OK(hps_pair(&self->t, &c[i], &s[i]));
		ASSERT_TRUE(hps_burst(c[i], s[i]));
	}
	/* Their receives have become more meanwhile. */
	ASSERT_TRUE(hps_until_send_memory(before + 8 * 16384));
	EXPECT_TRUE(hps_settle());
	before = hps_send_memory();
	for (i = 0; i < 8; i++)
		EXPECT_ERRNO(EFAULT, send(c[i], hps_unmapped(), 65536, 0));
	EXPECT_TRUE(hps_until_send_memory(before));
	EXPECT_TRUE(!self->t.rdma || !hps_set_number(HPS_SHRINK_AFTER, shrink));
}

/* Receives take the memory that is charged for them, whatever SO_RCVBUF is. */
TEST_F(io, odd_rcvbuf)
{
	int64_t end = hps_now() + hps_deadline();
	uint64_t got = 0;
	long size = 0;
	pid_t pid;

	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 66000));
	pid = sends_on(self->c, self->s, 0, 65536);
	ASSERT_OK(pid);
	while (got < 2 * MIB ||
	       (self->t.rdma && message_size(self->s) < 10000 && hps_now() < end)) {
		ASSERT_EQ(65536, hps_pull_at(self->s, got, 65536, 65536, 1));
		got += 65536;
	}
	if (self->t.rdma) {
		size = message_size(self->s);
		EXPECT_LE(10000, size);
		EXPECT_EQ(0, size & (size - 1));
	}
	ASSERT_OK(hps_reset(self->s));
	EXPECT_EQ(0, hps_reap(pid));
}

TEST_HARNESS_MAIN
