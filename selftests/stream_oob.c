// SPDX-License-Identifier: GPL-2.0
/* Urgent data: MSG_OOB, SO_OOBINLINE, SIOCATMARK, SIGURG, POLLPRI. */
#include "hps_test.h"

#include <linux/errqueue.h>
#include <linux/sockios.h>

HPS_PAIR_FIXTURE(oob)

static int urgent(int fd, char byte)
{
	return send(fd, &byte, 1, MSG_OOB);
}

static int at_mark(int fd)
{
	int val = -1;

	return ioctl(fd, SIOCATMARK, &val) ? -1 : val;
}

/* What recv() gets, as text */
static const char *text(int fd, size_t len, int flags)
{
	static char buf[4096];
	ssize_t n = recv(fd, buf, len, flags);

	if (n < 0)
		return strerrorname_np(errno);
	buf[n] = '\0';
	return buf;
}

/* An urgent byte is there to be read. */
static bool until_urgent(int fd)
{
	return hps_wait(fd, POLLPRI) & POLLPRI;
}

TEST_F(oob, apart)
{
	int c = self->c, s = self->s;

	EXPECT_STREQ("EINVAL", text(s, 1, MSG_OOB));
	EXPECT_EQ(0, at_mark(s));
	ASSERT_EQ(3, send(c, "abc", 3, MSG_OOB));
	ASSERT_TRUE(until_urgent(s));
	EXPECT_EQ(2, hps_inq(s));
	EXPECT_POLL(POLLIN | POLLPRI | POLLOUT, s);
	EXPECT_STREQ("c", text(s, 10, MSG_OOB));
	EXPECT_STREQ("EINVAL", text(s, 1, MSG_OOB));
	EXPECT_POLL(POLLIN | POLLOUT, s);
	EXPECT_EQ(0, at_mark(s));
	EXPECT_STREQ("ab", text(s, 10, 0));
	EXPECT_EQ(1, at_mark(s));
	EXPECT_EQ(0, hps_inq(s));
	EXPECT_POLL(POLLOUT, s);
	EXPECT_STREQ("EAGAIN", text(s, 10, MSG_DONTWAIT));
	EXPECT_EQ(0, at_mark(s));
	ASSERT_EQ(1, send(c, "d", 1, 0));
	EXPECT_STREQ("d", text(s, 10, 0));
}

/* Reading stops at the mark, whatever was asked for. */
TEST_F(oob, mark)
{
	int flags[] = { 0, MSG_WAITALL }, c = self->c, s = self->s;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		ASSERT_EQ(3, send(c, "abc", 3, 0));
		ASSERT_EQ(1, urgent(c, 'X'));
		ASSERT_EQ(3, send(c, "def", 3, 0));
		ASSERT_TRUE(until_urgent(s));
		EXPECT_EQ(3, hps_inq(s));
		EXPECT_STREQ("ab", text(s, 2, 0));
		EXPECT_EQ(0, at_mark(s));
		EXPECT_STREQ("c", text(s, 10, flags[i]));
		EXPECT_EQ(1, at_mark(s));
		ASSERT_TRUE(hps_wait(s, POLLIN) & POLLIN);
		EXPECT_STREQ("X", text(s, 1, MSG_OOB));
		EXPECT_EQ(1, at_mark(s));
		EXPECT_STREQ("def", text(s, 3, flags[i]));
		EXPECT_EQ(0, at_mark(s));
		EXPECT_STREQ("EINVAL", text(s, 1, MSG_OOB));
	}
}

/* Who reads past it without having read it has lost it. */
TEST_F(oob, passed)
{
	int c = self->c, s = self->s;

	ASSERT_EQ(1, urgent(c, 'X'));
	ASSERT_EQ(3, send(c, "abc", 3, 0));
	ASSERT_TRUE(until_urgent(s));
	ASSERT_TRUE(hps_wait(s, POLLIN) & POLLIN);
	EXPECT_EQ(1, at_mark(s));
	EXPECT_STREQ("abc", text(s, 10, 0));
	EXPECT_STREQ("EINVAL", text(s, 1, MSG_OOB));
	EXPECT_POLL(POLLOUT, s);
}

TEST_F(oob, inlined)
{
	int c = self->c, s = self->s;

	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_OOBINLINE, 1));
	ASSERT_EQ(3, send(c, "abc", 3, 0));
	ASSERT_EQ(1, urgent(c, 'X'));
	ASSERT_EQ(3, send(c, "def", 3, 0));
	ASSERT_TRUE(until_urgent(s));
	ASSERT_TRUE(hps_until_inq(s, 7));
	EXPECT_STREQ("EINVAL", text(s, 1, MSG_OOB));
	EXPECT_EQ(0, at_mark(s));
	EXPECT_STREQ("abc", text(s, 10, 0));
	EXPECT_EQ(1, at_mark(s));
	EXPECT_POLL(POLLIN | POLLPRI | POLLOUT, s);
	EXPECT_STREQ("Xdef", text(s, 10, 0));
	EXPECT_EQ(0, at_mark(s));
	EXPECT_POLL(POLLOUT, s);
	/* A byte by itself is there to be read as well. */
	ASSERT_EQ(1, urgent(c, 'Y'));
	ASSERT_TRUE(until_urgent(s));
	ASSERT_TRUE(hps_until_inq(s, 1));
	EXPECT_POLL(POLLIN | POLLPRI | POLLOUT, s);
	EXPECT_STREQ("Y", text(s, 10, 0));
}

TEST_F(oob, inherited)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c, s;

	ASSERT_OK(l);
	ASSERT_OK(hps_set(l, SOL_SOCKET, SO_OOBINLINE, 1));
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	ASSERT_EQ(1, urgent(c, 'X'));
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_TRUE(until_urgent(s));
	EXPECT_STREQ("X", text(s, 10, 0));
}

TEST_F(oob, before_accept)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c, s;

	ASSERT_OK(l);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	ASSERT_EQ(3, send(c, "abc", 3, MSG_OOB));
	ASSERT_TRUE(hps_wait(l, POLLIN) & POLLIN);
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_TRUE(until_urgent(s));
	EXPECT_STREQ("c", text(s, 1, MSG_OOB));
	EXPECT_STREQ("ab", text(s, 10, 0));
}

/* A newer one makes the older an ordinary byte, */
TEST_F(oob, superseded)
{
	int c = self->c, s = self->s;

	ASSERT_EQ(1, send(c, "x", 1, 0));
	ASSERT_EQ(1, urgent(c, 'A'));
	ASSERT_TRUE(until_urgent(s));
	ASSERT_EQ(1, send(c, "y", 1, 0));
	ASSERT_EQ(1, urgent(c, 'B'));
	/* Up to the newer one there are three. */
	ASSERT_TRUE(hps_until_inq(s, 3));
	ASSERT_TRUE(until_urgent(s));
	EXPECT_STREQ("B", text(s, 1, MSG_OOB));
	EXPECT_STREQ("xAy", text(s, 10, 0));
	EXPECT_EQ(1, at_mark(s));
}

/* unless it was the next to be read. */
TEST_F(oob, superseded_at_mark)
{
	int c = self->c, s = self->s;

	ASSERT_EQ(1, urgent(c, 'A'));
	ASSERT_TRUE(until_urgent(s));
	EXPECT_STREQ("A", text(s, 1, MSG_OOB));
	ASSERT_EQ(3, send(c, "abc", 3, MSG_OOB));
	ASSERT_TRUE(until_urgent(s));
	EXPECT_STREQ("ab", text(s, 10, 0));
	EXPECT_STREQ("c", text(s, 1, MSG_OOB));
	ASSERT_EQ(1, send(c, "d", 1, 0));
	EXPECT_STREQ("d", text(s, 10, 0));
	/* Nothing is left that a close would have to be sorry for. */
	ASSERT_OK(close(s));
	EXPECT_STREQ("", text(c, 10, 0));
}

/* Who peeks behind that one looks anew: it has taken no place since. */
TEST_F(oob, superseded_while_peeking)
{
	char got[10] = "";
	struct hps_call call = { .fn = hps_recv_call, .fd = self->s, .arg = MSG_PEEK,
				 .buf = got, .len = sizeof(got) };
	int c = self->c, s = self->s;

	ASSERT_EQ(1, urgent(c, 'A'));
	ASSERT_TRUE(until_urgent(s));
	EXPECT_STREQ("A", text(s, 1, MSG_OOB));
	hps_block(&call);
	ASSERT_EQ(3, send(c, "abc", 3, MSG_OOB));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(2, call.ret);
	EXPECT_STREQ("ab", got);
	EXPECT_STREQ("ab", text(s, 10, 0));
}

/* Another may have taken that place meanwhile, and as many bytes have come instead. */
TEST_F(oob, passed_while_peeking)
{
	char got[10] = "";
	struct hps_call call = { .fn = hps_recv_call, .fd = self->s, .arg = MSG_PEEK,
				 .buf = got, .len = sizeof(got) };
	int c = self->c, s = self->s;

	ASSERT_EQ(1, urgent(c, 'A'));
	ASSERT_TRUE(until_urgent(s));
	EXPECT_STREQ("A", text(s, 1, MSG_OOB));
	hps_block(&call);
	EXPECT_ERRNO(EAGAIN, recv(s, got, sizeof(got), MSG_DONTWAIT));
	ASSERT_EQ(1, send(c, "a", 1, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(1, call.ret);
	EXPECT_STREQ("a", got);
	EXPECT_STREQ("a", text(s, 10, 0));
}

TEST_F(oob, peek)
{
	int c = self->c, s = self->s;

	ASSERT_EQ(2, send(c, "ab", 2, 0));
	ASSERT_EQ(1, urgent(c, 'X'));
	ASSERT_EQ(2, send(c, "cd", 2, 0));
	ASSERT_TRUE(until_urgent(s));
	EXPECT_STREQ("X", text(s, 1, MSG_OOB | MSG_PEEK));
	EXPECT_STREQ("X", text(s, 1, MSG_OOB | MSG_PEEK));
	EXPECT_STREQ("ab", text(s, 10, MSG_PEEK));
	EXPECT_STREQ("ab", text(s, 10, 0));
	ASSERT_TRUE(hps_wait(s, POLLIN) & POLLIN);
	EXPECT_STREQ("cd", text(s, 10, MSG_PEEK));
	EXPECT_EQ(1, at_mark(s));
	EXPECT_STREQ("X", text(s, 1, MSG_OOB));
	EXPECT_STREQ("cd", text(s, 10, 0));
}

TEST_F(oob, message)
{
	int c = self->c, s = self->s;
	char byte = '-';
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	ASSERT_EQ(1, urgent(c, 'X'));
	ASSERT_TRUE(until_urgent(s));
	EXPECT_ERRNO(EFAULT, recv(s, hps_unmapped(), 1, MSG_OOB | MSG_PEEK));
	iov.iov_len = 0;
	EXPECT_EQ(0, recvmsg(s, &msg, MSG_OOB | MSG_PEEK));
	EXPECT_EQ(MSG_OOB | MSG_TRUNC, msg.msg_flags);
	iov.iov_len = 1;
	EXPECT_EQ(1, recvmsg(s, &msg, MSG_OOB | MSG_TRUNC | MSG_PEEK));
	EXPECT_EQ('-', byte);
	EXPECT_EQ(1, recvmsg(s, &msg, MSG_OOB));
	EXPECT_EQ(MSG_OOB, msg.msg_flags);
	EXPECT_EQ('X', byte);
	EXPECT_EQ(0, send(c, "", 0, MSG_OOB));
	EXPECT_TRUE(hps_quiet(s, POLLPRI));
}

/* SIGURG to whom the socket belongs, which may end a read */
TEST_F(oob, signal)
{
	char buf[8];
	struct hps_call call = { .fn = hps_recv_call, .fd = self->s, .buf = buf, .len = 8 };
	int64_t end = hps_now() + hps_deadline();
	int c = self->c, s = self->s;

	hps_catch(SIGURG, SA_RESTART);
	ASSERT_EQ(1, urgent(c, 'A'));
	ASSERT_TRUE(until_urgent(s));
	EXPECT_EQ(0, hps_caught());
	ASSERT_OK(fcntl(s, F_SETOWN, getpid()));
	ASSERT_EQ(2, send(c, "xB", 2, MSG_OOB));
	while (!hps_caught()) {
		ASSERT_GT(end, hps_now());
	}
	ASSERT_TRUE(until_urgent(s));
	EXPECT_STREQ("B", text(s, 1, MSG_OOB));
	EXPECT_STREQ("x", text(s, 10, 0));
	/* A reader that waits leaves the byte out and waits on. */
	hps_block(&call);
	ASSERT_EQ(1, urgent(c, 'C'));
	while (!hps_caught()) {
		ASSERT_GT(end, hps_now());
	}
	ASSERT_EQ(2, send(c, "de", 2, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(2, call.ret);
}

TEST_F(oob, wakes_poll)
{
	struct hps_call call = { .fn = hps_poll_call, .fd = self->s, .arg = POLLPRI };

	hps_block(&call);
	ASSERT_EQ(1, urgent(self->c, 'X'));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLPRI, call.ret);
}

TEST_F(oob, corked)
{
	int64_t least[2] = { INT64_MAX, INT64_MAX }, took;
	int c = self->c, s = self->s, corked, i;

	for (corked = 0; corked < 2; corked++) {
		ASSERT_OK(hps_set(c, SOL_TCP, TCP_CORK, corked));
		for (i = 0; i < 20; i++) {
			took = hps_now();
			ASSERT_EQ(2, send(c, "ab", 2, MSG_OOB | (corked ? MSG_MORE : 0)));
			ASSERT_TRUE(until_urgent(s));
			took = hps_now() - took;
			least[corked] = took < least[corked] ? took : least[corked];
			EXPECT_STREQ("b", text(s, 1, MSG_OOB));
			EXPECT_STREQ("a", text(s, 10, 0));
			EXPECT_STREQ("EAGAIN", text(s, 10, MSG_DONTWAIT));
		}
	}
	/* Each would wait for a timer of 200 ms, not only those that a busy machine delays. */
	EXPECT_GT(least[0] + 180, least[1]);
}

/* Of many bytes the last is urgent. */
TEST_F(oob, long_message)
{
	static uint8_t buf[300000];
	int c = self->c, s = self->s;

	hps_fill(buf, sizeof(buf), 0, 7);
	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_OOBINLINE, 1));
	hps_buffers(c, 1 << 20);
	ASSERT_EQ((ssize_t)sizeof(buf), send(c, buf, sizeof(buf), MSG_OOB));
	ASSERT_EQ((int64_t)sizeof(buf) - 1, hps_pull(s, sizeof(buf) - 1, 50000, 7));
	ASSERT_TRUE(until_urgent(s));
	EXPECT_EQ(1, at_mark(s));
	EXPECT_EQ(1, hps_pull_at(s, sizeof(buf) - 1, 1, 1, 7));
}

/*
 * It is marked also if what was sent before completes just then and takes it along, for
 * which these pages are copied.
 */
TEST_F(oob, zerocopy)
{
	static uint8_t buf[8192], back[sizeof(buf)];
	int c = self->c, s = self->s, i;
	struct sock_extended_err ee;
	char byte;

	ASSERT_OK(hps_zerocopy(&self->t, c));
	for (i = 0; i < 100; i++) {
		hps_fill(buf, sizeof(buf), 0, i);
		ASSERT_EQ(1, send(c, "x", 1, 0));
		ASSERT_EQ((ssize_t)sizeof(buf), send(c, buf, sizeof(buf), MSG_ZEROCOPY | MSG_OOB));
		ASSERT_TRUE(until_urgent(s));
		ASSERT_EQ(1, recv(s, &byte, 1, MSG_OOB));
		EXPECT_EQ((char)buf[sizeof(buf) - 1], byte);
		ASSERT_EQ((ssize_t)sizeof(back), recv(s, back, sizeof(back), MSG_WAITALL));
		EXPECT_EQ(1, at_mark(s));
		EXPECT_EQ('x', back[0]);
		EXPECT_EQ(0, memcmp(buf, back + 1, sizeof(buf) - 1));
		EXPECT_TRUE(hps_wait(c, POLLERR) & POLLERR);
		ASSERT_OK(hps_completion(&self->t, c, &ee));
		EXPECT_EQ(i, ee.ee_data);
		if (self->t.rdma)
			EXPECT_EQ(SO_EE_CODE_ZEROCOPY_COPIED, ee.ee_code);
	}
}

/* It is announced although the data that is before it cannot be sent yet. */
TEST_F(oob, announced)
{
	static char buf[50000];
	int64_t end = hps_now() + hps_deadline();
	struct hps_addr at;
	int l, c, s, got = 0, n;

	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	ASSERT_OK(hps_set(l, SOL_SOCKET, SO_RCVBUF, 2304));
	c = hps_client(&self->t, 0);
	ASSERT_OK(c);
	hps_buffers(c, 1 << 20);
	ASSERT_OK(hps_connect(c, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	hps_catch(SIGURG, SA_RESTART);
	ASSERT_OK(fcntl(s, F_SETOWN, getpid()));
	ASSERT_EQ((ssize_t)sizeof(buf), send(c, buf, sizeof(buf), MSG_DONTWAIT));
	ASSERT_EQ(1, send(c, "X", 1, MSG_OOB | MSG_DONTWAIT));
	while (!hps_caught()) {
		ASSERT_GT(end, hps_now());
	}
	EXPECT_STREQ("EAGAIN", text(s, 1, MSG_OOB));
	EXPECT_EQ(0, hps_poll(s, POLLPRI, 0) & POLLPRI);
	EXPECT_EQ(0, at_mark(s));
	while (got < (int)sizeof(buf)) {
		n = recv(s, buf, sizeof(buf), 0);
		ASSERT_LT(0, n);
		got += n;
	}
	EXPECT_EQ((int)sizeof(buf), got);
	ASSERT_TRUE(until_urgent(s));
	EXPECT_EQ(1, at_mark(s));
	EXPECT_STREQ("X", text(s, 1, MSG_OOB));
	ASSERT_OK(shutdown(c, SHUT_WR));
	EXPECT_STREQ("", text(s, 10, 0));
}

/* After the end of the stream it can still be read; then there is nothing to. */
TEST_F(oob, ended)
{
	int c = self->c, s = self->s;

	ASSERT_EQ(3, send(c, "abc", 3, MSG_OOB));
	ASSERT_OK(shutdown(c, SHUT_WR));
	ASSERT_TRUE(hps_wait(s, POLLRDHUP) & POLLRDHUP);
	EXPECT_STREQ("c", text(s, 1, MSG_OOB));
	EXPECT_STREQ("ab", text(s, 10, 0));
	EXPECT_STREQ("", text(s, 10, 0));
	EXPECT_STREQ("EINVAL", text(s, 1, MSG_OOB));
	EXPECT_ERRNO(EPIPE, send(c, "x", 1, MSG_OOB | MSG_NOSIGNAL));
}

TEST_F(oob, unconnected)
{
	int fd = hps_socket(&self->t, 0);
	char byte;

	ASSERT_OK(fd);
	EXPECT_EQ(0, at_mark(fd));
	EXPECT_ERRNO(EINVAL, recv(fd, &byte, 1, MSG_OOB));
	EXPECT_ERRNO(EPIPE, send(fd, "x", 1, MSG_OOB | MSG_NOSIGNAL));
	ASSERT_OK(listen(fd, 1));
	EXPECT_EQ(0, at_mark(fd));
	EXPECT_ERRNO(ENOTCONN, recv(fd, &byte, 1, MSG_OOB));
}

/* Many of them between more or less data: what comes is what was sent. */
struct crowd {
	int fd;
	uint64_t len;
	long urgents;
};

static void *send_crowd(void *arg)
{
	static uint8_t buf[9000];
	struct crowd *crowd = arg;
	uint64_t at = 0, state = 5;

	while (at < crowd->len) {
		size_t n = hps_random(&state) % (hps_random(&state) % 8 ? 60 : sizeof(buf)) + 1;
		int flags = hps_random(&state) % 3 ? 0 : MSG_OOB;

		if (n > crowd->len - at)
			n = crowd->len - at;
		hps_fill(buf, n, at, 9);
		if (send(crowd->fd, buf, n, flags) != (ssize_t)n)
			break;
		at += n;
		crowd->urgents += !!flags;
	}
	shutdown(crowd->fd, SHUT_WR);
	return NULL;
}

TEST_F(oob, crowd_inlined)
{
	struct crowd crowd = { self->c, 400000, 0 };
	pthread_t thread;

	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_OOBINLINE, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_crowd, &crowd));
	EXPECT_EQ(400000, hps_pull(self->s, INT64_MAX, 3000, 9));
	EXPECT_EQ(0, errno);
	pthread_join(thread, NULL);
}

/* Left out is no more than was urgent, and nothing comes out of order. */
TEST_F(oob, crowd_apart)
{
	struct crowd crowd = { self->c, 400000, 0 };
	static uint8_t buf[3000], want[1];
	uint64_t at = 0, missing = 0;
	pthread_t thread;
	ssize_t n, i;
	char byte;

	ASSERT_EQ(0, pthread_create(&thread, NULL, send_crowd, &crowd));
	while ((n = recv(self->s, buf, sizeof(buf), 0)) > 0) {
		for (i = 0; i < n; i++, at++) {
			hps_fill(want, 1, at, 9);
			for (; want[0] != buf[i] && at < crowd.len; missing++) {
				at++;
				hps_fill(want, 1, at, 9);
			}
		}
		recv(self->s, &byte, 1, MSG_OOB | MSG_DONTWAIT);
	}
	EXPECT_EQ(0, n);
	pthread_join(thread, NULL);
	EXPECT_LE(crowd.len - 1, at);
	EXPECT_GE(crowd.len, at);
	EXPECT_GE(crowd.urgents, (long)missing);
	EXPECT_LT(0, missing);
}

TEST_HARNESS_MAIN
