// SPDX-License-Identifier: GPL-2.0
/*
 * MSG_ZEROCOPY: what it says, when, and that the bytes are right. TCP copies after all
 * where a veth pair is between the ends, so the code that tells of a copy is compared
 * with nothing; AF_HPSOCK's counter tells what was not copied.
 */
#include "hps_test.h"

#include <linux/errqueue.h>
#include <linux/hpsock.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define MIB (1 << 20)

HPS_PAIR_FIXTURE(zerocopy)

static _Alignas(4096) uint8_t big[4 * MIB];

static long pull_call(struct hps_call *call)
{
	return hps_pull(call->fd, call->len, 65536, 1);
}

/* As a message of pages, or read by the peer. */
static long gathered(const struct hps *t)
{
	return t->rdma ? hps_stat("tx_gathered") + hps_stat("tx_lent") : 0;
}

TEST_F(zerocopy, option)
{
	int level = self->t.rdma && hps_kernel() < 603 ? SOL_HPSOCK : SOL_SOCKET;
	int opt = level == SOL_HPSOCK ? HPSOCK_ZEROCOPY : SO_ZEROCOPY;
	struct hps_addr at;
	int l, c;

	EXPECT_EQ(0, hps_opt(self->c, level, opt));
	EXPECT_ERRNO(EINVAL, hps_set(self->c, level, opt, 2));
	EXPECT_ERRNO(EINVAL, hps_set(self->c, level, opt, -1));
	EXPECT_OK(hps_zerocopy(&self->t, self->c));
	EXPECT_EQ(1, hps_opt(self->c, level, opt));
	EXPECT_OK(hps_set(self->c, level, opt, 0));
	EXPECT_EQ(0, hps_opt(self->c, level, opt));
	/* It is inherited. */
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	ASSERT_OK(hps_zerocopy(&self->t, l));
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	c = hps_accept(l);
	ASSERT_OK(c);
	EXPECT_EQ(1, hps_opt(c, level, opt));
}

/* Without the option the flag says nothing. */
TEST_F(zerocopy, not_enabled)
{
	long before = self->t.rdma ? hps_stat("tx_gathered") : 0;
	struct sock_extended_err ee;

	hps_fill(big, 65536, 0, 1);
	ASSERT_EQ(65536, send(self->c, big, 65536, MSG_ZEROCOPY));
	ASSERT_EQ(65536, hps_pull(self->s, 65536, 65536, 1));
	EXPECT_ERRNO(EAGAIN, hps_completion(&self->t, self->c, &ee));
	/* Its pages may have been protected, as those of any send. */
	EXPECT_EQ(before, self->t.rdma ? hps_stat("tx_gathered") : 0);
}

TEST_F(zerocopy, one)
{
	long before = gathered(&self->t);
	struct sock_extended_err ee;

	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	hps_fill(big, 65536, 0, 1);
	ASSERT_EQ(65536, send(self->c, big, 65536, MSG_ZEROCOPY));
	ASSERT_EQ(65536, hps_pull(self->s, 65536, 65536, 1));
	EXPECT_TRUE(hps_wait(self->c, POLLERR) & POLLERR);
	ASSERT_OK(hps_completion(&self->t, self->c, &ee));
	EXPECT_EQ(0, ee.ee_info);
	EXPECT_EQ(0, ee.ee_data);
	if (self->t.rdma)
		EXPECT_EQ(0, ee.ee_code);
	EXPECT_ERRNO(EAGAIN, hps_completion(&self->t, self->c, &ee));
	EXPECT_EQ(0, hps_error(self->c));
	EXPECT_POLL(POLLOUT, self->c);
	EXPECT_EQ(before + 65536 * self->t.rdma, gathered(&self->t));
}

/* What is not worth it is copied, and said to be. */
TEST_F(zerocopy, small)
{
	long before = gathered(&self->t);
	struct sock_extended_err ee;

	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	hps_fill(big, 100, 0, 1);
	ASSERT_EQ(100, send(self->c, big, 100, MSG_ZEROCOPY));
	/* It is the program's again. */
	if (self->t.rdma)
		memset(big, 0, 100);
	ASSERT_EQ(100, hps_pull(self->s, 100, 100, 1));
	EXPECT_TRUE(hps_wait(self->c, POLLERR) & POLLERR);
	ASSERT_OK(hps_completion(&self->t, self->c, &ee));
	if (self->t.rdma)
		EXPECT_EQ(SO_EE_CODE_ZEROCOPY_COPIED, ee.ee_code);
	EXPECT_EQ(before, gathered(&self->t));
	/* Nothing has no number. */
	EXPECT_EQ(0, send(self->c, big, 0, MSG_ZEROCOPY));
	EXPECT_ERRNO(EAGAIN, hps_completion(&self->t, self->c, &ee));
}

/* Any size at any offset, and what is sent in between in the other way. */
TEST_F(zerocopy, mixed)
{
	struct hps_call call = { .fn = pull_call, .fd = self->s };
	uint64_t seed = 7, at = 0;
	uint32_t sends = 0;
	int i;

	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	hps_fill(big, sizeof(big), 0, 1);
	call.len = sizeof(big);
	hps_start(&call);
	for (i = 0; at < sizeof(big); i++) {
		size_t len = 1 + hps_random(&seed) % (i % 3 ? 200000 : 5000);
		int flags = hps_random(&seed) % 4 ? MSG_ZEROCOPY : 0;
		ssize_t n;

		if (len > sizeof(big) - at)
			len = sizeof(big) - at;
		n = send(self->c, big + at, len, flags);
		ASSERT_EQ(len, n);
		at += n;
		sends += !!flags;
	}
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(sizeof(big), call.ret);
	EXPECT_TRUE(hps_completed(&self->t, self->c, 0, sends - 1));
}

/* Pieces of memory of all sizes in one call. */
TEST_F(zerocopy, vectored)
{
	struct hps_call call = { .fn = pull_call, .fd = self->s };
	struct iovec iov[64];
	struct msghdr msg = { .msg_iov = iov };
	uint64_t seed = 11, total = 0;
	int64_t n;
	size_t i;

	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	hps_fill(big, sizeof(big), 0, 1);
	for (i = 0; i < ARRAY_SIZE(iov); i++) {
		iov[i].iov_base = big + total;
		iov[i].iov_len = hps_random(&seed) % (i % 4 ? 100 : 150000);
		total += iov[i].iov_len;
	}
	msg.msg_iovlen = ARRAY_SIZE(iov);
	call.len = total;
	hps_start(&call);
	n = sendmsg(self->c, &msg, MSG_ZEROCOPY);
	ASSERT_EQ(total, n);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(total, call.ret);
	EXPECT_TRUE(hps_completed(&self->t, self->c, 0, 0));
}

/* Until it is told, the memory is being read: also after munmap(). */
TEST_F(zerocopy, unmapped)
{
	void *mem = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sock_extended_err ee;
	int64_t sent = 0, n;
	uint32_t sends = 0;

	ASSERT_NE(MAP_FAILED, mem);
	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	ASSERT_OK(hps_nonblock(self->c, true));
	hps_fill(mem, MIB, 0, 1);
	while (sent < MIB && (n = send(self->c, mem + sent, MIB - sent, MSG_ZEROCOPY)) > 0) {
		sent += n;
		sends++;
	}
	ASSERT_LT(0, sent);
	ASSERT_OK(munmap(mem, MIB));
	/* What goes there now is somebody else's. */
	memset(big, 0xee, sizeof(big));
	ASSERT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	EXPECT_TRUE(hps_completed(&self->t, self->c, 0, sends - 1));
	EXPECT_ERRNO(EAGAIN, hps_completion(&self->t, self->c, &ee));
}

/* A failed call has no number and no completion. */
TEST_F(zerocopy, failed_calls)
{
	struct sock_extended_err ee;

	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	EXPECT_ERRNO(EFAULT, send(self->c, hps_unmapped(), 65536, MSG_ZEROCOPY));
	EXPECT_ERRNO(EAGAIN, hps_completion(&self->t, self->c, &ee));
	hps_fill(big, 65536, 0, 1);
	ASSERT_EQ(65536, send(self->c, big, 65536, MSG_ZEROCOPY));
	ASSERT_EQ(65536, hps_pull(self->s, 65536, 65536, 1));
	EXPECT_TRUE(hps_completed(&self->t, self->c, 0, 0));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_ERRNO(EPIPE, send(self->c, big, 65536, MSG_ZEROCOPY | MSG_NOSIGNAL));
	EXPECT_ERRNO(EAGAIN, hps_completion(&self->t, self->c, &ee));
}

/* The end of a connection completes everything. */
TEST_F(zerocopy, reset)
{
	uint32_t sends = 0;

	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	ASSERT_OK(hps_nonblock(self->c, true));
	while (send(self->c, big, 65536, MSG_ZEROCOPY) > 0)
		sends++;
	ASSERT_LT(0, sends);
	ASSERT_OK(hps_reset(self->s));
	EXPECT_TRUE(hps_completed(&self->t, self->c, 0, sends - 1));
}

/* The port that bind() asked for is free, whatever of the socket is still under way. */
TEST_F(zerocopy, reset_leaves_port)
{
	struct hps_addr at, name;
	int l = hps_listen(&self->t, 1, &at), c;
	long sent;

	ASSERT_OK(l);
	c = hps_client(&self->t, 0);
	name = hps_name(c);
	close(c);
	c = hps_bound(&self->t, 0, name);
	ASSERT_OK(c);
	ASSERT_OK(hps_connect(c, at));
	ASSERT_OK(hps_zerocopy(&self->t, c));
	ASSERT_OK(hps_nonblock(c, true));
	do {
		sent = send(c, big, 65536, MSG_ZEROCOPY);
	} while (sent > 0);
	ASSERT_ERRNO(EAGAIN, sent);
	ASSERT_OK(hps_reset(c));
	EXPECT_OK(hps_bound(&self->t, 0, name));
}

/* Closed at once, the memory rewritten by nobody: every byte arrives. */
TEST_F(zerocopy, close)
{
	long left = 65536 * 4;

	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	hps_fill(big, left, 0, 1);
	ASSERT_EQ(left, send(self->c, big, left, MSG_ZEROCOPY));
	ASSERT_OK(close(self->c));
	EXPECT_EQ(left, hps_pull(self->s, left + 1, 65536, 1));
}

/* The process is gone, its memory is not. */
TEST_F(zerocopy, killed)
{
	pid_t pid = hps_fork();

	ASSERT_OK(pid);
	if (!pid) {
		hps_fill(big, MIB, 0, 1);
		if (hps_zerocopy(&self->t, self->c) || close(self->s) ||
		    send(self->c, big, 200000, MSG_ZEROCOPY) != 200000)
			_exit(1);
		kill(getpid(), SIGKILL);
	}
	close(self->c);
	EXPECT_EQ(128 + SIGKILL, hps_reap(pid));
	EXPECT_EQ(200000, hps_pull(self->s, 200000, 65536, 1));
}

/* RLIMIT_MEMLOCK, of who may not exceed it */
TEST_F(zerocopy, memlock)
{
	struct rlimit none = { 0, 0 };
	struct sock_extended_err ee;
	pid_t pid = hps_fork();

	ASSERT_OK(pid);
	if (!pid) {
		if (hps_zerocopy(&self->t, self->c) || setrlimit(RLIMIT_MEMLOCK, &none) ||
		    setresuid(65534, 65534, 65534))
			_exit(1);
		if (send(self->c, big, 65536, MSG_ZEROCOPY) != -1 || errno != ENOBUFS)
			_exit(2);
		_exit(send(self->c, big, 65536, 0) == 65536 ? 0 : 3);
	}
	EXPECT_EQ(0, hps_reap(pid));
	EXPECT_ERRNO(EAGAIN, hps_completion(&self->t, self->c, &ee));
}

/*
 * What is copied between pages keeps no more memory than SO_SNDBUF lets it have, whether
 * it waits or is read as fast as it comes.
 */
TEST_F(zerocopy, small_between)
{
	long most;
	pid_t pid;

	ASSERT_TRUE(hps_settle());
	most = hps_send_memory() + 2000000;
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUF, 500000));
	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	EXPECT_GT(most, hps_mix(&self->t, self->c, 200));
	pid = hps_fork();
	if (!pid) {
		close(self->c);
		while (recv(self->s, big, sizeof(big), 0) > 0)
			;
		_exit(0);
	}
	EXPECT_GT(most, hps_mix(&self->t, self->c, 2000));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, hps_reap(pid));
}

TEST_HARNESS_MAIN
