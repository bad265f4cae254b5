// SPDX-License-Identifier: GPL-2.0
/* splice(), tee(), vmsplice() and sendfile(), out of a socket and into it. */
#include "hps_test.h"

#include <limits.h>
#include <linux/sockios.h>
#include <sys/sendfile.h>

#define MIB (1 << 20)
#define PAGE 4096

FIXTURE(splice) {
	struct hps t;
	int c, s;
	int p[2];
};

HPS_VARIANTS(splice);

FIXTURE_SETUP(splice)
{
	hps_init(&self->t, variant->rdma, variant->af);
	ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));
	ASSERT_OK(pipe(self->p));
}

FIXTURE_TEARDOWN(splice) { }

static uint8_t big[MIB], back[MIB];

/* From a socket to the pipe, and into a socket from it. */
static ssize_t out(int sock, int p[2], size_t len, int flags)
{
	return splice(sock, NULL, p[1], NULL, len, flags);
}

static ssize_t into(int sock, int p[2], size_t len, int flags)
{
	return splice(p[0], NULL, sock, NULL, len, flags);
}

static long out_call(struct hps_call *call)
{
	return out(call->fd, call->buf, call->len, call->arg);
}

static long into_call(struct hps_call *call)
{
	return into(call->fd, call->buf, call->len, call->arg);
}

static int in_pipe(int p[2])
{
	int bytes;

	return ioctl(p[0], FIONREAD, &bytes) ? -1 : bytes;
}

static int unsent(int sock)
{
	int bytes;

	return ioctl(sock, SIOCOUTQNSD, &bytes) ? -1 : bytes;
}

/* Put the first bytes of a stream into the pipe, which has room for them. */
static bool fill_pipe(int p[2], size_t len, uint64_t seed)
{
	hps_fill(big, len, 0, seed);
	return write(p[1], big, len) == (ssize_t)len;
}

static int file_of(size_t len, uint64_t seed)
{
	int fd = memfd_create("stream", 0);

	hps_fill(big, len, 0, seed);
	if (fd < 0 || write(fd, big, len) != (ssize_t)len)
		return -1;
	return fd;
}

TEST_F(splice, out_waits)
{
	struct hps_call call = { .fn = out_call, .fd = self->s, .buf = self->p, .len = 100 };

	hps_block(&call);
	EXPECT_FALSE(call.done);
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(5, call.ret);
	EXPECT_EQ(5, in_pipe(self->p));
}

/* The flag is about the pipe, O_NONBLOCK about the socket. */
TEST_F(splice, out_nonblocking)
{
	struct hps_call call = {
		.fn = out_call, .fd = self->s, .buf = self->p, .len = 100, .arg = SPLICE_F_NONBLOCK,
	};

	hps_block(&call);
	EXPECT_FALSE(call.done);
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(5, call.ret);
	ASSERT_OK(hps_nonblock(self->s, true));
	EXPECT_ERRNO(EAGAIN, out(self->s, self->p, 100, 0));
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	EXPECT_TRUE(hps_wait(self->s, POLLIN));
	EXPECT_EQ(5, out(self->s, self->p, 100, 0));
}

/* What is there is taken, whatever SO_RCVLOWAT says. */
TEST_F(splice, out_lowat)
{
	struct hps_call call = { .fn = out_call, .fd = self->s, .buf = self->p, .len = 1000 };

	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVLOWAT, 100));
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 5));
	hps_start(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(5, call.ret);
}

TEST_F(splice, out_timeout)
{
	struct timeval tv = { .tv_usec = 150000 };
	int64_t start = hps_now();

	ASSERT_OK(setsockopt(self->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	EXPECT_ERRNO(EAGAIN, out(self->s, self->p, 100, 0));
	EXPECT_GE(hps_now() - start, 100);
	EXPECT_EQ(0, in_pipe(self->p));
}

TEST_F(splice, out_interrupted)
{
	struct hps_call call = { .fn = out_call, .fd = self->s, .buf = self->p, .len = 100 };
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

TEST_F(splice, out_end)
{
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_TRUE(hps_wait(self->s, POLLRDHUP));
	EXPECT_EQ(5, out(self->s, self->p, 100, 0));
	EXPECT_EQ(0, out(self->s, self->p, 100, 0));
	EXPECT_EQ(0, out(self->s, self->p, 100, SPLICE_F_NONBLOCK));
}

TEST_F(splice, out_end_wakes)
{
	struct hps_call call = { .fn = out_call, .fd = self->s, .buf = self->p, .len = 100 };

	hps_block(&call);
	ASSERT_OK(shutdown(self->s, SHUT_RD));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(0, call.ret);
}

TEST_F(splice, out_reset)
{
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 5));
	ASSERT_OK(hps_reset(self->c));
	EXPECT_TRUE(hps_wait(self->s, POLLERR));
	EXPECT_EQ(5, out(self->s, self->p, 100, 0));
	EXPECT_ERRNO(ECONNRESET, out(self->s, self->p, 100, 0));
	EXPECT_EQ(0, out(self->s, self->p, 100, 0));
}

TEST_F(splice, out_unconnected)
{
	struct hps_addr at;

	EXPECT_ERRNO(ENOTCONN, out(hps_socket(&self->t, 0), self->p, 100, 0));
	EXPECT_ERRNO(ENOTCONN, out(hps_listen(&self->t, 1, &at), self->p, 100, 0));
}

TEST_F(splice, bad_arguments)
{
	loff_t at = 0;
	int ro = open("/proc/self/maps", O_RDONLY);

	EXPECT_ERRNO(EINVAL, splice(self->s, &at, self->p[1], NULL, 100, 0));
	EXPECT_ERRNO(EINVAL, splice(self->p[0], NULL, self->s, &at, 100, 0));
	EXPECT_ERRNO(EINVAL, splice(self->s, NULL, self->c, NULL, 100, 0));
	EXPECT_ERRNO(EINVAL, out(self->s, self->p, 100, 0x80));
	EXPECT_ERRNO(EBADF, splice(self->s, NULL, ro, NULL, 100, 0));
	EXPECT_EQ(0, out(self->s, self->p, 0, 0));
	/* Without a pipe there is no way out of a socket. */
	EXPECT_ERRNO(EINVAL, sendfile(self->c, self->s, NULL, 100));
}

TEST_F(splice, out_no_reader)
{
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 5));
	close(self->p[0]);
	hps_catch(SIGPIPE, 0);
	EXPECT_ERRNO(EPIPE, out(self->s, self->p, 100, 0));
	EXPECT_EQ(1, hps_caught());
	EXPECT_EQ(5, hps_inq(self->s));
}

/* A pipe that fills up: what does not fit stays in the socket. */
TEST_F(splice, out_full)
{
	int done = 0;

	ASSERT_EQ(PAGE, fcntl(self->p[1], F_SETPIPE_SZ, PAGE));
	ASSERT_EQ(30000, hps_push(self->c, 30000, 30000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 30000));
	while (done < 30000) {
		ssize_t n = out(self->s, self->p, 30000, SPLICE_F_NONBLOCK);

		ASSERT_LT(0, n);
		ASSERT_GE(PAGE, n);
		EXPECT_EQ(n, in_pipe(self->p));
		EXPECT_EQ(30000 - done - n, hps_inq(self->s));
		if (done + n < 30000)
			EXPECT_ERRNO(EAGAIN, out(self->s, self->p, 1, SPLICE_F_NONBLOCK));
		ASSERT_EQ(n, read(self->p[0], back + done, 30000));
		done += n;
	}
	EXPECT_EQ(30000, hps_check(back, 30000, 0, 1));
}

/* It asks for less than a message, and for less than a page of it. */
TEST_F(splice, out_parts)
{
	static const int parts[] = { 1, 100, 4095, 1, 4097, 5000, 8192, 1000, 7514 };
	size_t i, done = 0;

	ASSERT_EQ(30000, hps_push(self->c, 30000, 10000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 30000));
	for (i = 0; i < ARRAY_SIZE(parts); i++) {
		int left = parts[i];

		while (left) {
			ssize_t n = out(self->s, self->p, left, 0);

			ASSERT_LT(0, n);
			ASSERT_GE(left, n);
			ASSERT_EQ(n, read(self->p[0], back + done, n));
			left -= n;
			done += n;
		}
	}
	ASSERT_EQ(30000, done);
	EXPECT_EQ(30000, hps_check(back, 30000, 0, 1));
}

/* Many small messages, more than the pipe has pages. */
TEST_F(splice, out_small)
{
	int done = 0;

	ASSERT_EQ(1000, hps_push(self->c, 1000, 1, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 1000));
	while (done < 1000) {
		ssize_t n = out(self->s, self->p, 1000 - done, 0);

		ASSERT_LT(0, n);
		ASSERT_EQ(n, read(self->p[0], back + done, 1000));
		done += n;
	}
	EXPECT_EQ(1000, hps_check(back, 1000, 0, 1));
}

/* Both ends of a pipe have the page. */
TEST_F(splice, tee)
{
	int q[2];

	ASSERT_OK(pipe(q));
	ASSERT_EQ(3000, hps_push(self->c, 3000, 3000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 3000));
	ASSERT_EQ(3000, out(self->s, self->p, 3000, 0));
	ASSERT_EQ(3000, tee(self->p[0], q[1], 3000, 0));
	ASSERT_EQ(3000, hps_push(self->c, 3000, 3000, 2));
	ASSERT_TRUE(hps_until_inq(self->s, 3000));
	ASSERT_EQ(3000, out(self->s, self->p, 3000, 0));
	ASSERT_EQ(6000, read(self->p[0], back, sizeof(back)));
	EXPECT_EQ(3000, hps_check(back, 3000, 0, 1));
	EXPECT_EQ(3000, hps_check(back + 3000, 3000, 0, 2));
	ASSERT_EQ(3000, read(q[0], back, sizeof(back)));
	EXPECT_EQ(3000, hps_check(back, 3000, 0, 1));
}

static long pull_call(struct hps_call *call)
{
	return hps_pull(call->fd, call->len, 65536, 1);
}

static long push_call(struct hps_call *call)
{
	int64_t done = hps_push(call->fd, call->len, 50000, 1);

	shutdown(call->fd, SHUT_WR);
	return done;
}

/* As a proxy does it: from one connection to the other, and no byte read. */
TEST_F(splice, proxy)
{
	struct hps_call push = { .fn = push_call, .fd = self->c, .len = 4 * MIB };
	struct hps_call pull = { .fn = pull_call, .len = 5 * MIB };
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	pull.fd = s;
	hps_start(&push);
	hps_start(&pull);
	for (;;) {
		ssize_t n = out(self->s, self->p, MIB, SPLICE_F_MOVE | SPLICE_F_MORE);

		ASSERT_LE(0, n);
		if (!n)
			break;
		while (n) {
			ssize_t m = into(c, self->p, n, SPLICE_F_MOVE | SPLICE_F_MORE);

			ASSERT_LT(0, m);
			n -= m;
		}
	}
	ASSERT_OK(shutdown(c, SHUT_WR));
	ASSERT_TRUE(hps_done(&push));
	EXPECT_EQ(4 * MIB, push.ret);
	ASSERT_TRUE(hps_done(&pull));
	EXPECT_EQ(4 * MIB, pull.ret);
	EXPECT_EQ(0, pull.err);
}

/* The pages are the program's: it may change them once they are sent. */
TEST_F(splice, vmsplice)
{
	uint8_t *page = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec v[2] = { { page + 100, 5000 }, { page + 8000, 3000 } };
	ssize_t done = 0;

	ASSERT_NE(MAP_FAILED, page);
	hps_fill(page + 100, 5000, 0, 1);
	hps_fill(page + 8000, 3000, 5000, 1);
	ASSERT_EQ(8000, vmsplice(self->p[1], v, 2, 0));
	while (done < 8000) {
		ssize_t n = into(self->c, self->p, 8000 - done, 0);

		ASSERT_LT(0, n);
		done += n;
	}
	EXPECT_EQ(8000, hps_pull(self->s, 8000, 8000, 1));
	/* And those that are given away. */
	hps_fill(page, PAGE, 0, 2);
	v[0] = (struct iovec){ page, PAGE };
	ASSERT_EQ(PAGE, vmsplice(self->p[1], v, 1, SPLICE_F_GIFT));
	ASSERT_EQ(PAGE, into(self->c, self->p, PAGE, SPLICE_F_MOVE));
	EXPECT_EQ(PAGE, hps_pull(self->s, PAGE, PAGE, 2));
}

/* With more to come it waits to be joined, but not for ever: 200 ms. */
TEST_F(splice, into_more)
{
	int64_t begin = hps_now();
	int queued;

	ASSERT_TRUE(fill_pipe(self->p, 100, 1));
	ASSERT_EQ(50, into(self->c, self->p, 50, SPLICE_F_MORE));
	queued = unsent(self->c);
	if (hps_now() - begin < 150)
		EXPECT_EQ(50, queued);
	ASSERT_EQ(50, into(self->c, self->p, 50, 0));
	EXPECT_EQ(0, unsent(self->c));
	EXPECT_EQ(100, hps_pull(self->s, 100, 100, 1));
	ASSERT_TRUE(fill_pipe(self->p, 100, 2));
	ASSERT_EQ(100, into(self->c, self->p, 100, SPLICE_F_MORE));
	EXPECT_EQ(100, hps_pull(self->s, 100, 100, 2));
}

TEST_F(splice, into_nonblocking)
{
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	ASSERT_TRUE(fill_pipe(self->p, 10000, 2));
	ASSERT_OK(hps_nonblock(self->c, true));
	EXPECT_ERRNO(EAGAIN, into(self->c, self->p, 10000, 0));
	EXPECT_EQ(10000, in_pipe(self->p));
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	EXPECT_TRUE(hps_wait(self->c, POLLOUT));
	EXPECT_EQ(10000, into(self->c, self->p, 10000, 0));
	EXPECT_EQ(10000, hps_pull(self->s, 10000, 10000, 2));
	EXPECT_ERRNO(EAGAIN, into(self->c, self->p, 10000, SPLICE_F_NONBLOCK));
}

/* What was not taken before the signal stays in the pipe. */
TEST_F(splice, into_interrupted)
{
	struct hps_call call = { .fn = into_call, .fd = self->c, .buf = self->p, .len = 10000 };
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	ASSERT_TRUE(fill_pipe(self->p, 10000, 2));
	hps_catch(SIGUSR1, 0);
	hps_block(&call);
	EXPECT_FALSE(call.done);
	pthread_kill(call.thread, SIGUSR1);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
	EXPECT_EQ(10000, in_pipe(self->p));
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	EXPECT_EQ(10000, into(self->c, self->p, 10000, 0));
	EXPECT_EQ(10000, hps_pull(self->s, 10000, 10000, 2));
}

TEST_F(splice, into_waits)
{
	struct hps_call call = { .fn = into_call, .fd = self->c, .buf = self->p, .len = 10000 };
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	hps_fill(big, 10000, sent, 1);
	ASSERT_EQ(10000, write(self->p[1], big, 10000));
	hps_block(&call);
	EXPECT_FALSE(call.done);
	EXPECT_EQ(sent + 10000, hps_pull(self->s, sent + 10000, 65536, 1));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(10000, call.ret);
}

TEST_F(splice, into_closed)
{
	ASSERT_TRUE(fill_pipe(self->p, 100, 1));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	hps_catch(SIGPIPE, 0);
	EXPECT_ERRNO(EPIPE, into(self->c, self->p, 100, 0));
	EXPECT_EQ(1, hps_caught());
	EXPECT_EQ(100, in_pipe(self->p));
	EXPECT_ERRNO(EPIPE, into(hps_socket(&self->t, 0), self->p, 100, 0));
}

TEST_F(splice, into_reset)
{
	ASSERT_TRUE(fill_pipe(self->p, 100, 1));
	ASSERT_OK(hps_reset(self->c));
	EXPECT_TRUE(hps_wait(self->s, POLLERR));
	hps_catch(SIGPIPE, 0);
	EXPECT_ERRNO(ECONNRESET, into(self->s, self->p, 100, 0));
	EXPECT_EQ(0, hps_caught());
	EXPECT_ERRNO(EPIPE, into(self->s, self->p, 100, 0));
	EXPECT_EQ(1, hps_caught());
	EXPECT_EQ(100, in_pipe(self->p));
}

/*
 * A sendfile() that asks for more than the file has: what the file had is not
 * held back in the hope of more.
 */
TEST_F(splice, sendfile_beyond_end)
{
	int file = file_of(100, 1);
	off_t at = 0;

	ASSERT_OK(file);
	ASSERT_EQ(100, sendfile(self->c, file, &at, MIB));
	EXPECT_EQ(0, unsent(self->c));
	EXPECT_EQ(100, hps_pull(self->s, 100, 100, 1));
}

/* But TCP_CORK holds it. */
TEST_F(splice, sendfile_beyond_end_corked)
{
	int file = file_of(100, 1);
	int64_t begin;
	off_t at = 0;

	ASSERT_OK(file);
	ASSERT_OK(hps_set(self->c, SOL_TCP, TCP_CORK, 1));
	begin = hps_now();
	ASSERT_EQ(100, sendfile(self->c, file, &at, MIB));
	EXPECT_EQ(100, hps_pull(self->s, 100, 100, 1));
	EXPECT_LT(150, hps_now() - begin);
}

/* A header that waits for the file, as servers send it. */
TEST_F(splice, sendfile_header)
{
	int file = memfd_create("stream", 0), queued;
	int64_t begin;

	ASSERT_OK(file);
	hps_fill(big, 700, 0, 1);
	ASSERT_EQ(600, write(file, big + 100, 600));
	begin = hps_now();
	ASSERT_EQ(100, send(self->c, big, 100, MSG_MORE));
	queued = unsent(self->c);
	if (hps_now() - begin < 150)
		EXPECT_EQ(100, queued);
	ASSERT_EQ(600, sendfile(self->c, file, &(off_t){ 0 }, 600));
	EXPECT_EQ(0, unsent(self->c));
	EXPECT_EQ(700, hps_pull(self->s, 700, 700, 1));
}

/*
 * From 6.5 on splice() lends its pages; before, they are copied. So may be a rest,
 * which depends on how many pages a device takes at once.
 */
TEST_F(splice, sendfile_gathers)
{
	long before = self->t.rdma ? hps_stat("tx_gathered") : 0;
	int file = file_of(40000, 1);
	off_t at = 0;

	ASSERT_OK(file);
	ASSERT_EQ(40000, sendfile(self->c, file, &at, 40000));
	EXPECT_EQ(40000, hps_pull(self->s, 40000, 65536, 1));
	if (!self->t.rdma)
		return;
	if (hps_kernel() < 605) {
		EXPECT_EQ(before, hps_stat("tx_gathered"));
	} else {
		/* It is counted when it is on its way, which may be after it was read. */
		EXPECT_TRUE(hps_until_stat("tx_gathered", before + 40000 - 4095));
	}
}

/* Put pieces into a socket whose peer does not read, until it is full. */
static long stuff_pieces(int sock, int p[2], size_t len)
{
	long bytes = 0;
	ssize_t n;

	do {
		if (write(p[1], big, len) != (ssize_t)len)
			return -1;
		n = into(sock, p, len, SPLICE_F_NONBLOCK);
		bytes += n > 0 ? n : 0;
	} while (n == (ssize_t)len);
	return n < 0 && errno != EAGAIN ? -1 : bytes;
}

/* However small they are, what they take is in proportion to SO_SNDBUF. */
static void small_pieces(struct __test_metadata *_metadata, struct hps *t, int p[2], size_t len)
{
	int l, c = hps_socket(t, 0);
	struct hps_addr at;
	long before, limit;

	l = hps_listen(t, 1, &at);
	ASSERT_OK(l);
	/* So that little of it is at the peer. */
	ASSERT_OK(hps_set(l, SOL_SOCKET, SO_RCVBUF, 4096));
	/* The least that there is. */
	if (t->rdma && hps_set(c, SOL_HPSOCK, HPSOCK_GATHER_MIN, 1))
		ASSERT_OK(hps_set(c, SOL_HPSOCK, HPSOCK_GATHER_MIN, 512));
	ASSERT_OK(hps_set(c, SOL_SOCKET, SO_SNDBUF, 32768));
	limit = 3 * hps_opt(c, SOL_SOCKET, SO_SNDBUF);
	ASSERT_OK(hps_connect(c, at));
	ASSERT_OK(hps_accept(l));
	ASSERT_OK(hps_nonblock(c, true));
	ASSERT_TRUE(hps_settle());
	before = t->rdma ? hps_send_memory() : 0;
	EXPECT_LT(0, stuff_pieces(c, p, len));
	if (!t->rdma)
		return;
	EXPECT_GT(before + limit, hps_send_memory()) {
		TH_LOG("%ld bytes more", hps_send_memory() - before);
	}
}

TEST_F(splice, tiny_pieces)
{
	small_pieces(_metadata, &self->t, self->p, 1);
}

TEST_F(splice, small_pieces)
{
	small_pieces(_metadata, &self->t, self->p, 512);
}

static const char *protocol_name(const struct hps *t)
{
	return t->rdma ? "HPSOCK" : t->af == AF_INET6 ? "TCPv6" : "TCP";
}

/* Bytes that all sockets of a protocol are charged for; are these too many? */
static long protocol_memory(const struct hps *t, bool *press)
{
	FILE *f = fopen("/proc/net/protocols", "r");
	char key[64], pressed[8];
	long pages, found = -1;

	if (!f)
		return -1;
	/* protocol, size, sockets, memory, press */
	while (found < 0 && fscanf(f, "%63s", key) == 1) {
		if (fscanf(f, "%*s %*s %ld %7s", &pages, pressed) == 2 &&
		    !strcmp(key, protocol_name(t))) {
			found = pages * PAGE;
			*press = !strcmp(pressed, "yes");
		}
		if (fscanf(f, "%*[^\n]") < 0)
			break;
	}
	fclose(f);
	return found;
}

/* Pages that wait to be sent are charged as a copy would be, and no longer than they wait. */
static void sendfile_is_charged(struct __test_metadata *_metadata, const struct hps *t, int c,
				int s)
{
	/* Each processor has a MiB that is in no sum. */
	long spare = sysconf(_SC_NPROCESSORS_CONF) * MIB;
	int file = file_of(MIB, 1), i;
	long before, queued;
	bool press;

	ASSERT_OK(file);
	before = protocol_memory(t, &press);
	ASSERT_LE(0, before);
	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_RCVBUF, 65536));
	ASSERT_OK(hps_set(c, SOL_SOCKET, SO_SNDBUFFORCE, spare + 4 * MIB));
	ASSERT_OK(hps_nonblock(c, true));
	for (i = 0; i < 1000 && sendfile(c, file, &(off_t){ 0 }, MIB) > 0; i++)
		;
	ASSERT_OK(ioctl(c, SIOCOUTQ, &i));
	queued = i;
	EXPECT_LT(2 * spare + 4 * MIB, queued);
	EXPECT_LE(before + queued - 2 * spare, protocol_memory(t, &press));
	ASSERT_OK(hps_reset(c));
	ASSERT_TRUE(hps_settle());
	EXPECT_GE(before + 2 * spare, protocol_memory(t, &press));
}

TEST_F(splice, sendfile_charged)
{
	sendfile_is_charged(_metadata, &self->t, self->c, self->s);
}

/* Also where the peer is to read them. */
TEST_F(splice, sendfile_lent_charged)
{
	long lent = hps_stat("tx_lent");

	if (!self->t.rdma)
		SKIP(return, "an option of AF_HPSOCK");
	ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, 65536));
	sendfile_is_charged(_metadata, &self->t, self->c, self->s);
	/* Before Linux 6.5 a kernel's splice() into a socket copies. */
	if (hps_kernel() >= 605)
		EXPECT_LT(lent, hps_stat("tx_lent"));
}

/* All that a protocol has may be too much, and no longer than it has that. */
TEST_F(splice, memory_pressure)
{
	bool press = false;
	int file, i;

	/* Then the same page is charged any number of times, and there is but one. */
	if (hps_kernel() < 605)
		SKIP(return, "a splice() into a socket copies");
	file = file_of(MIB, 1);
	ASSERT_OK(file);
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUFFORCE, INT_MAX / 2));
	ASSERT_OK(hps_nonblock(self->c, true));
	for (i = 0; i < 4096 && !press; i++) {
		if (sendfile(self->c, file, &(off_t){ 0 }, MIB) < 0)
			break;
		ASSERT_LE(0, protocol_memory(&self->t, &press));
	}
	EXPECT_TRUE(press) TH_LOG("%d MiB", i);
	ASSERT_OK(hps_reset(self->c));
	ASSERT_TRUE(hps_settle());
	ASSERT_LE(0, protocol_memory(&self->t, &press));
	EXPECT_FALSE(press);
}

TEST_F(splice, sendfile_nonblocking)
{
	struct pollfd p[2] = { { self->c, POLLOUT, 0 }, { self->s, POLLIN, 0 } };
	int file = file_of(MIB, 1);
	int64_t in = 0;
	off_t at = 0;

	ASSERT_OK(file);
	hps_buffers(self->c, 65536);
	hps_buffers(self->s, 65536);
	ASSERT_OK(hps_nonblock(self->c, true));
	while (at < MIB) {
		off_t was = at;
		ssize_t n = sendfile(self->c, file, &at, MIB - at);

		if (n > 0) {
			ASSERT_EQ(was + n, at);
			continue;
		}
		ASSERT_ERRNO(EAGAIN, n);
		ASSERT_EQ(was, at);
		ASSERT_LT(0, poll(p, 2, hps_deadline()));
		if (!p[1].revents)
			continue;
		n = recv(self->s, back, sizeof(back), 0);
		ASSERT_LT(0, n);
		ASSERT_EQ(n, hps_check(back, n, in, 1));
		in += n;
	}
	EXPECT_EQ(MIB - in, hps_pull_at(self->s, in, MIB - in, 65536, 1));
}

TEST_HARNESS_MAIN
