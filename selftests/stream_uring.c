// SPDX-License-Identifier: GPL-2.0
/* Stream sockets below io_uring. */
#include "hps_test.h"

#include <liburing.h>

/* The library's headers are older. */
#ifndef IORING_SEND_ZC_REPORT_USAGE
#define IORING_SEND_ZC_REPORT_USAGE	(1U << 3)
#define IORING_NOTIF_USAGE_ZC_COPIED	(1U << 31)
#endif

#define MIB (1 << 20)
#define GROUP 7

/* Completions that no test has asked for yet */
#define SEEN 64

struct ring {
	struct io_uring uring;
	struct io_uring_cqe seen[SEEN];
	int n;
};

FIXTURE(uring) {
	struct hps t;
	int c, s;
	struct ring r;
};

HPS_VARIANTS(uring);

FIXTURE_SETUP(uring)
{
	hps_init(&self->t, variant->rdma, variant->af);
	ASSERT_EQ(0, io_uring_queue_init(32, &self->r.uring, 0));
	ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));
}

FIXTURE_TEARDOWN(uring) { }

static uint8_t big[MIB], back[MIB];

/* Some kernels have no io_uring: one line says so, and not one for each test. */
static void __attribute__((constructor)) skip(void)
{
	struct io_uring ring;
	int err = io_uring_queue_init(2, &ring, 0);

	if (!err) {
		io_uring_queue_exit(&ring);
	} else if (err == -ENOSYS) {
		ksft_print_header();
		ksft_set_plan(1);
		ksft_test_result_skip("this kernel has no io_uring\n");
		ksft_finished();
	}
}

static bool knows(struct io_uring *ring, int op)
{
	struct io_uring_probe *probe = io_uring_get_probe_ring(ring);
	bool known = probe && io_uring_opcode_supported(probe, op);

	io_uring_free_probe(probe);
	return known;
}

/*
 * The next completion of the requests with this tag, by the deadline: its result,
 * and its flags.
 */
static int result_flags(struct ring *r, uint64_t tag, unsigned int *flags)
{
	struct __kernel_timespec limit = { .tv_sec = hps_deadline() / 1000 };
	struct io_uring_cqe *cqe, got;
	int i;

	io_uring_submit(&r->uring);
	for (i = 0;; i++) {
		if (i == r->n) {
			if (i == SEEN || io_uring_wait_cqe_timeout(&r->uring, &cqe, &limit))
				return -ETIME;
			r->seen[r->n++] = *cqe;
			io_uring_cqe_seen(&r->uring, cqe);
		}
		got = r->seen[i];
		if (got.user_data == tag)
			break;
	}
	memmove(r->seen + i, r->seen + i + 1, (--r->n - i) * sizeof(got));
	*flags = got.flags;
	return got.res;
}

static int result(struct ring *r, uint64_t tag)
{
	unsigned int flags;

	return result_flags(r, tag, &flags);
}

/* Submit what is prepared, and see nothing of this tag once nothing happens any more. */
static bool waits(struct ring *r, uint64_t tag)
{
	struct __kernel_timespec none = { 0 };
	struct io_uring_cqe *cqe;
	int i;

	io_uring_submit(&r->uring);
	if (!hps_settle())
		return false;
	while (r->n < SEEN && !io_uring_wait_cqe_timeout(&r->uring, &cqe, &none)) {
		r->seen[r->n++] = *cqe;
		io_uring_cqe_seen(&r->uring, cqe);
	}
	for (i = 0; i < r->n; i++)
		if (r->seen[i].user_data == tag)
			return false;
	return true;
}

/* A new request, to be filled in: the tag last, later versions clear it. */
static struct io_uring_sqe *request(struct ring *r)
{
	return io_uring_get_sqe(&r->uring);
}

/* @sqe, request 1, has 100 ms: that is request 2. */
static void limit_request(struct ring *r, struct io_uring_sqe *sqe)
{
	/* Read when it is submitted. */
	static struct __kernel_timespec limit = { .tv_nsec = 100000000 };

	sqe->flags = IOSQE_IO_LINK;
	sqe->user_data = 1;
	sqe = request(r);
	io_uring_prep_link_timeout(sqe, &limit, 0);
	sqe->user_data = 2;
}

static void recv_request(struct ring *r, uint64_t tag, int fd, size_t len,
			 int flags)
{
	struct io_uring_sqe *sqe = request(r);

	io_uring_prep_recv(sqe, fd, back, len, flags);
	sqe->user_data = tag;
}

static void send_request(struct ring *r, uint64_t tag, int fd, size_t len,
			 int flags)
{
	struct io_uring_sqe *sqe = request(r);

	io_uring_prep_send(sqe, fd, big, len, flags | MSG_NOSIGNAL);
	sqe->user_data = tag;
}

static void accept_request(struct ring *r, uint64_t tag, int fd)
{
	struct io_uring_sqe *sqe = request(r);

	io_uring_prep_accept(sqe, fd, NULL, NULL, 0);
	sqe->user_data = tag;
}

static void connect_request(struct ring *r, uint64_t tag, int fd,
			    struct hps_addr *to)
{
	struct io_uring_sqe *sqe = request(r);

	io_uring_prep_connect(sqe, fd, &to->sa, to->len);
	sqe->user_data = tag;
}

static int cancel(struct ring *r, uint64_t tag)
{
	struct io_uring_sqe *sqe = request(r);

	io_uring_prep_cancel64(sqe, tag, 0);
	sqe->user_data = 1000;
	return result(r, 1000);
}

TEST_F(uring, recv_waits)
{
	recv_request(&self->r, 1, self->s, 100, 0);
	EXPECT_TRUE(waits(&self->r, 1));
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	EXPECT_EQ(5, result(&self->r, 1));
	EXPECT_EQ(0, memcmp(back, "hello", 5));
}

TEST_F(uring, recv_now)
{
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 5));
	recv_request(&self->r, 1, self->s, 100, MSG_PEEK);
	EXPECT_EQ(5, result(&self->r, 1));
	recv_request(&self->r, 2, self->s, 2, 0);
	EXPECT_EQ(2, result(&self->r, 2));
	recv_request(&self->r, 3, self->s, 100, 0);
	EXPECT_EQ(3, result(&self->r, 3));
	recv_request(&self->r, 4, self->s, 100, MSG_DONTWAIT);
	EXPECT_EQ(-EAGAIN, result(&self->r, 4));
	EXPECT_EQ(0, memcmp(back, "llo", 3));
}

TEST_F(uring, send)
{
	hps_fill(big, 10000, 0, 1);
	send_request(&self->r, 1, self->c, 10000, 0);
	EXPECT_EQ(10000, result(&self->r, 1));
	EXPECT_EQ(10000, hps_pull(self->s, 10000, 10000, 1));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	send_request(&self->r, 2, self->c, 10000, 0);
	EXPECT_EQ(-EPIPE, result(&self->r, 2));
}

TEST_F(uring, sendmsg_recvmsg)
{
	struct iovec out[2] = { { big, 3000 }, { big + 3000, 2000 } };
	struct iovec in[2] = { { back, 1000 }, { back + 1000, 9000 } };
	struct msghdr to = { .msg_iov = out, .msg_iovlen = 2 };
	struct msghdr from = { .msg_iov = in, .msg_iovlen = 2 };
	struct io_uring_sqe *sqe = request(&self->r);

	hps_fill(big, 5000, 0, 1);
	io_uring_prep_recvmsg(sqe, self->s, &from, MSG_WAITALL);
	sqe->user_data = 1;
	EXPECT_TRUE(waits(&self->r, 1));
	sqe = request(&self->r);
	io_uring_prep_sendmsg(sqe, self->c, &to, 0);
	sqe->user_data = 2;
	EXPECT_EQ(5000, result(&self->r, 2));
	EXPECT_TRUE(waits(&self->r, 1));
	sqe = request(&self->r);
	io_uring_prep_sendmsg(sqe, self->c, &to, 0);
	sqe->user_data = 3;
	EXPECT_EQ(5000, result(&self->r, 3));
	EXPECT_EQ(10000, result(&self->r, 1));
	EXPECT_EQ(5000, hps_check(back, 5000, 0, 1));
	EXPECT_EQ(5000, hps_check(back + 5000, 5000, 0, 1));
}

TEST_F(uring, read_write)
{
	struct iovec v[2] = { { back, 10 }, { back + 10, 1000 } };
	struct io_uring_sqe *sqe = request(&self->r);

	hps_fill(big, 1000, 0, 1);
	io_uring_prep_readv(sqe, self->s, v, 2, 0);
	sqe->user_data = 1;
	EXPECT_TRUE(waits(&self->r, 1));
	sqe = request(&self->r);
	io_uring_prep_write(sqe, self->c, big, 1000, 0);
	sqe->user_data = 2;
	EXPECT_EQ(1000, result(&self->r, 2));
	EXPECT_EQ(1000, result(&self->r, 1));
	EXPECT_EQ(1000, hps_check(back, 1000, 0, 1));
}

/* io_uring goes on where a transfer was short. */
TEST_F(uring, recv_waitall)
{
	int i;

	hps_fill(big, 3000, 0, 1);
	recv_request(&self->r, 1, self->s, 3000, MSG_WAITALL);
	for (i = 0; i < 3; i++) {
		EXPECT_TRUE(waits(&self->r, 1));
		ASSERT_EQ(1000, send(self->c, big + i * 1000, 1000, 0));
	}
	EXPECT_EQ(3000, result(&self->r, 1));
	EXPECT_EQ(3000, hps_check(back, 3000, 0, 1));
	recv_request(&self->r, 2, self->s, 3000, MSG_WAITALL);
	ASSERT_EQ(1000, send(self->c, big, 1000, 0));
	EXPECT_TRUE(waits(&self->r, 2));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(1000, result(&self->r, 2));
}

TEST_F(uring, send_waitall)
{
	hps_buffers(self->c, 65536);
	hps_buffers(self->s, 65536);
	hps_fill(big, MIB, 0, 1);
	send_request(&self->r, 1, self->c, MIB, MSG_WAITALL);
	EXPECT_TRUE(waits(&self->r, 1));
	EXPECT_EQ(MIB, hps_pull(self->s, MIB, 65536, 1));
	EXPECT_EQ(MIB, result(&self->r, 1));
}

TEST_F(uring, send_short)
{
	int sent;

	hps_buffers(self->c, 65536);
	hps_buffers(self->s, 65536);
	hps_fill(big, MIB, 0, 1);
	send_request(&self->r, 1, self->c, MIB, 0);
	sent = result(&self->r, 1);
	ASSERT_LT(0, sent);
	EXPECT_GT(MIB, sent);
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
}

/* It waits in poll() until there is room. */
TEST_F(uring, send_waits)
{
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	hps_fill(big, 1000, 0, 2);
	send_request(&self->r, 1, self->c, 1000, 0);
	EXPECT_TRUE(waits(&self->r, 1));
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	EXPECT_EQ(1000, result(&self->r, 1));
	EXPECT_EQ(1000, hps_pull(self->s, 1000, 1000, 2));
}

/* One after the other, though the first has to wait. */
TEST_F(uring, send_links)
{
	int64_t sent = hps_stuff(self->c, 0, 1);
	struct io_uring_sqe *sqe;
	int i;

	ASSERT_LT(0, sent);
	hps_fill(big, 5000, 0, 2);
	for (i = 0; i < 5; i++) {
		sqe = request(&self->r);
		io_uring_prep_send(sqe, self->c, big + i * 1000, 1000, MSG_WAITALL);
		sqe->flags = i < 4 ? IOSQE_IO_LINK : 0;
		sqe->user_data = i;
	}
	EXPECT_TRUE(waits(&self->r, 0));
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	EXPECT_EQ(5000, hps_pull(self->s, 5000, 5000, 2));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(1000, result(&self->r, i));
	}
}

TEST_F(uring, link_breaks)
{
	struct io_uring_sqe *sqe = request(&self->r);

	ASSERT_OK(shutdown(self->c, SHUT_WR));
	io_uring_prep_send(sqe, self->c, big, 10, MSG_NOSIGNAL);
	sqe->flags = IOSQE_IO_LINK;
	sqe->user_data = 1;
	recv_request(&self->r, 2, self->c, 10, 0);
	EXPECT_EQ(-EPIPE, result(&self->r, 1));
	EXPECT_EQ(-ECANCELED, result(&self->r, 2));
}

TEST_F(uring, recv_end)
{
	recv_request(&self->r, 1, self->s, 100, 0);
	EXPECT_TRUE(waits(&self->r, 1));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, result(&self->r, 1));
	recv_request(&self->r, 2, self->c, 100, 0);
	EXPECT_TRUE(waits(&self->r, 2));
	ASSERT_OK(shutdown(self->c, SHUT_RD));
	EXPECT_EQ(0, result(&self->r, 2));
}

TEST_F(uring, recv_reset)
{
	recv_request(&self->r, 1, self->s, 100, 0);
	EXPECT_TRUE(waits(&self->r, 1));
	ASSERT_OK(hps_reset(self->c));
	EXPECT_EQ(-ECONNRESET, result(&self->r, 1));
	recv_request(&self->r, 2, self->s, 100, 0);
	EXPECT_EQ(0, result(&self->r, 2));
}

TEST_F(uring, send_reset)
{
	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	send_request(&self->r, 1, self->c, 1000, MSG_WAITALL);
	EXPECT_TRUE(waits(&self->r, 1));
	ASSERT_OK(hps_reset(self->s));
	EXPECT_EQ(-ECONNRESET, result(&self->r, 1));
}

TEST_F(uring, recv_cancel)
{
	char byte;

	recv_request(&self->r, 1, self->s, 100, 0);
	EXPECT_TRUE(waits(&self->r, 1));
	EXPECT_EQ(0, cancel(&self->r, 1));
	EXPECT_EQ(-ECANCELED, result(&self->r, 1));
	EXPECT_EQ(-ENOENT, cancel(&self->r, 1));
	/* Nothing of the stream went with it. */
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_EQ(1, recv(self->s, &byte, 1, 0));
}

/* What a worker waits in is interrupted. */
TEST_F(uring, recv_cancel_async)
{
	struct io_uring_sqe *sqe = request(&self->r);
	char byte;
	int ret;

	io_uring_prep_recv(sqe, self->s, back, 100, 0);
	sqe->flags = IOSQE_ASYNC;
	sqe->user_data = 1;
	EXPECT_TRUE(waits(&self->r, 1));
	ret = cancel(&self->r, 1);
	EXPECT_TRUE(ret == 0 || ret == -EALREADY);
	ret = result(&self->r, 1);
	EXPECT_TRUE(ret == -ECANCELED || ret == -EINTR);
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_EQ(1, recv(self->s, &byte, 1, 0));
}

TEST_F(uring, send_cancel)
{
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	send_request(&self->r, 1, self->c, 1000, MSG_WAITALL);
	EXPECT_TRUE(waits(&self->r, 1));
	EXPECT_EQ(0, cancel(&self->r, 1));
	EXPECT_EQ(-ECANCELED, result(&self->r, 1));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(sent, hps_pull(self->s, sent + 1, 65536, 1));
}

TEST_F(uring, recv_timeout)
{
	struct io_uring_sqe *sqe = request(&self->r);

	io_uring_prep_recv(sqe, self->s, back, 100, 0);
	limit_request(&self->r, sqe);
	EXPECT_EQ(-ECANCELED, result(&self->r, 1));
	EXPECT_EQ(-ETIME, result(&self->r, 2));
}

TEST_F(uring, poll)
{
	struct io_uring_sqe *sqe = request(&self->r);

	io_uring_prep_poll_add(sqe, self->s, POLLIN);
	sqe->user_data = 1;
	EXPECT_TRUE(waits(&self->r, 1));
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_EQ(POLLIN, result(&self->r, 1));
	sqe = request(&self->r);
	io_uring_prep_poll_add(sqe, self->s, POLLIN | POLLOUT);
	sqe->user_data = 2;
	EXPECT_EQ(POLLIN | POLLOUT, result(&self->r, 2));
	sqe = request(&self->r);
	io_uring_prep_poll_add(sqe, self->s, POLLPRI);
	sqe->user_data = 3;
	EXPECT_TRUE(waits(&self->r, 3));
	ASSERT_OK(hps_reset(self->c));
	EXPECT_EQ(POLLERR | POLLHUP, result(&self->r, 3) & ~POLLRDHUP);
}

/* Room that there is because nothing more will be sent is not told alone. */
TEST_F(uring, poll_room_by_reset)
{
	struct io_uring_sqe *sqe;

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	sqe = request(&self->r);
	io_uring_prep_poll_add(sqe, self->c, POLLOUT);
	sqe->user_data = 1;
	EXPECT_TRUE(waits(&self->r, 1));
	ASSERT_OK(hps_reset(self->s));
	EXPECT_EQ(POLLERR, result(&self->r, 1) & ~(POLLOUT | POLLHUP | POLLRDHUP));
}

TEST_F(uring, poll_multishot)
{
	struct io_uring_sqe *sqe = request(&self->r);
	unsigned int flags;
	int i;

	io_uring_prep_poll_multishot(sqe, self->s, POLLIN | POLLRDHUP);
	sqe->user_data = 1;
	for (i = 0; i < 3; i++) {
		EXPECT_TRUE(waits(&self->r, 1));
		ASSERT_EQ(1, send(self->c, "x", 1, 0));
		EXPECT_EQ(POLLIN, result_flags(&self->r, 1, &flags));
		EXPECT_TRUE(flags & IORING_CQE_F_MORE);
		ASSERT_EQ(1, recv(self->s, back, 1, 0));
	}
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(POLLIN | POLLRDHUP, result_flags(&self->r, 1, &flags));
	EXPECT_TRUE(flags & IORING_CQE_F_MORE);
	EXPECT_EQ(0, cancel(&self->r, 1));
	EXPECT_EQ(-ECANCELED, result_flags(&self->r, 1, &flags));
	EXPECT_FALSE(flags & IORING_CQE_F_MORE);
}

TEST_F(uring, shutdown)
{
	struct io_uring_sqe *sqe = request(&self->r);
	char byte;

	io_uring_prep_shutdown(sqe, self->c, SHUT_WR);
	sqe->user_data = 1;
	EXPECT_EQ(0, result(&self->r, 1));
	EXPECT_EQ(0, recv(self->s, &byte, 1, 0));
	sqe = request(&self->r);
	io_uring_prep_shutdown(sqe, hps_socket(&self->t, 0), SHUT_WR);
	sqe->user_data = 2;
	EXPECT_EQ(-ENOTCONN, result(&self->r, 2));
}

/* A request has the socket, as a call in another thread has. */
TEST_F(uring, close)
{
	struct io_uring_sqe *sqe;
	char byte;

	recv_request(&self->r, 1, self->s, 100, 0);
	EXPECT_TRUE(waits(&self->r, 1));
	sqe = request(&self->r);
	io_uring_prep_close(sqe, self->s);
	sqe->user_data = 2;
	EXPECT_EQ(0, result(&self->r, 2));
	EXPECT_ERRNO(EBADF, recv(self->s, &byte, 1, 0));
	EXPECT_TRUE(hps_quiet(self->c, POLLIN | POLLRDHUP));
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_EQ(1, result(&self->r, 1));
	EXPECT_EQ(0, recv(self->c, &byte, 1, 0));
}

TEST_F(uring, exit)
{
	char byte;
	pid_t pid = hps_fork();

	ASSERT_OK(pid);
	if (!pid) {
		struct io_uring ring;

		if (io_uring_queue_init(4, &ring, 0))
			_exit(1);
		close(self->c);
		io_uring_prep_recv(io_uring_get_sqe(&ring), self->s, back, 100, 0);
		_exit(io_uring_submit(&ring) == 1 ? 0 : 1);
	}
	close(self->s);
	EXPECT_EQ(0, recv(self->c, &byte, 1, 0));
	EXPECT_EQ(0, hps_reap(pid));
}

TEST_F(uring, accept)
{
	struct hps_addr at, name, peer = { .len = sizeof(peer.ss) };
	int l = hps_listen(&self->t, 4, &at), c, s;
	struct io_uring_sqe *sqe = request(&self->r);

	ASSERT_OK(l);
	io_uring_prep_accept(sqe, l, &peer.sa, &peer.len, SOCK_NONBLOCK);
	sqe->user_data = 1;
	EXPECT_TRUE(waits(&self->r, 1));
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	s = result(&self->r, 1);
	ASSERT_LE(0, s);
	name = hps_name(c);
	EXPECT_TRUE(hps_same(&name, &peer));
	EXPECT_TRUE(fcntl(s, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(1, send(s, "x", 1, 0));
	EXPECT_EQ(1, recv(c, &(char){ 0 }, 1, 0));
	/* One that is there already. */
	ASSERT_OK(hps_dial(&self->t, at));
	EXPECT_TRUE(hps_wait(l, POLLIN));
	accept_request(&self->r, 2, l);
	EXPECT_LE(0, result(&self->r, 2));
	/* Listening no more */
	accept_request(&self->r, 3, l);
	EXPECT_TRUE(waits(&self->r, 3));
	ASSERT_OK(shutdown(l, SHUT_RD));
	EXPECT_EQ(-EINVAL, result(&self->r, 3));
	accept_request(&self->r, 4, self->c);
	EXPECT_EQ(-EINVAL, result(&self->r, 4));
}

TEST_F(uring, accept_cancel)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 4, &at);

	ASSERT_OK(l);
	accept_request(&self->r, 1, l);
	EXPECT_TRUE(waits(&self->r, 1));
	EXPECT_EQ(0, cancel(&self->r, 1));
	EXPECT_EQ(-ECANCELED, result(&self->r, 1));
	ASSERT_OK(hps_dial(&self->t, at));
	EXPECT_OK(hps_accept(l));
}

TEST_F(uring, accept_multishot)
{
	struct io_uring_sqe *sqe = request(&self->r);
	struct hps_addr at;
	int l = hps_listen(&self->t, 16, &at), c[8], i;
	unsigned int flags;

	ASSERT_OK(l);
	for (i = 0; i < 8; i++) {
		/* Some before it, some while it waits */
		if (i == 3) {
			io_uring_prep_multishot_accept(sqe, l, NULL, NULL, 0);
			sqe->user_data = 1;
			io_uring_submit(&self->r.uring);
		}
		c[i] = hps_dial(&self->t, at);
		ASSERT_OK(c[i]);
		ASSERT_EQ(1, send(c[i], "x", 1, 0));
	}
	for (i = 0; i < 8; i++) {
		int s = result_flags(&self->r, 1, &flags);

		ASSERT_LE(0, s);
		EXPECT_TRUE(flags & IORING_CQE_F_MORE);
		ASSERT_EQ(1, recv(s, &(char){ 0 }, 1, 0));
	}
	EXPECT_EQ(0, cancel(&self->r, 1));
	EXPECT_EQ(-ECANCELED, result_flags(&self->r, 1, &flags));
	EXPECT_FALSE(flags & IORING_CQE_F_MORE);
	ASSERT_OK(hps_dial(&self->t, at));
	EXPECT_OK(hps_accept(l));
}

TEST_F(uring, connect)
{
	struct hps_addr at, gone;
	int l = hps_listen(&self->t, 4, &at), c = hps_client(&self->t, 0);
	int once = hps_listen(&self->t, 4, &gone);

	ASSERT_OK(l);
	ASSERT_OK(once);
	close(once);
	connect_request(&self->r, 1, c, &at);
	EXPECT_EQ(0, result(&self->r, 1));
	EXPECT_EQ(1, send(c, "x", 1, 0));
	EXPECT_EQ(1, recv(hps_accept(l), &(char){ 0 }, 1, 0));
	connect_request(&self->r, 2, c, &at);
	EXPECT_EQ(-EISCONN, result(&self->r, 2));
	connect_request(&self->r, 3, hps_client(&self->t, 0), &gone);
	EXPECT_EQ(-ECONNREFUSED, result(&self->r, 3));
}

TEST_F(uring, connect_unreachable)
{
	struct hps_addr to = hps_silent(&self->t);

	connect_request(&self->r, 1, hps_client(&self->t, 0), &to);
	EXPECT_EQ(-EHOSTUNREACH, result(&self->r, 1));
}

TEST_F(uring, connect_cancel)
{
	struct hps_addr to;
	int l = hps_listen_full(&self->t, &to), c = hps_client(&self->t, 0);

	ASSERT_OK(l);
	ASSERT_OK(c);
	connect_request(&self->r, 1, c, &to);
	EXPECT_EQ(1, io_uring_submit(&self->r.uring));
	EXPECT_EQ(0, cancel(&self->r, 1));
	EXPECT_EQ(-ECANCELED, result(&self->r, 1));
	/* The connection is still on its way. */
	ASSERT_OK(hps_nonblock(c, true));
	EXPECT_ERRNO(EALREADY, hps_connect(c, to));
}

TEST_F(uring, connect_timeout)
{
	struct hps_addr to = hps_silent(&self->t);
	struct io_uring_sqe *sqe = request(&self->r);

	io_uring_prep_connect(sqe, hps_client(&self->t, 0), &to.sa, to.len);
	limit_request(&self->r, sqe);
	EXPECT_EQ(-ECANCELED, result(&self->r, 1));
	EXPECT_EQ(-ETIME, result(&self->r, 2));
}

/* Connect, ask and hear in one submission. */
TEST_F(uring, connect_send_recv)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 4, &at), c = hps_client(&self->t, 0), s;
	struct io_uring_sqe *sqe = request(&self->r);

	ASSERT_OK(l);
	ASSERT_OK(c);
	memcpy(big, "hello", 5);
	io_uring_prep_connect(sqe, c, &at.sa, at.len);
	sqe->flags = IOSQE_IO_LINK;
	sqe->user_data = 1;
	sqe = request(&self->r);
	io_uring_prep_send(sqe, c, big, 5, 0);
	sqe->flags = IOSQE_IO_LINK;
	sqe->user_data = 2;
	recv_request(&self->r, 3, c, 5, MSG_WAITALL);
	io_uring_submit(&self->r.uring);
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(5, recv(s, back, 5, MSG_WAITALL));
	EXPECT_EQ(5, send(s, "world", 5, 0));
	EXPECT_EQ(0, result(&self->r, 1));
	EXPECT_EQ(5, result(&self->r, 2));
	EXPECT_EQ(5, result(&self->r, 3));
	EXPECT_EQ(0, memcmp(back, "world", 5));
}

TEST_F(uring, provided_buffers)
{
	struct io_uring_sqe *sqe = request(&self->r);
	unsigned int flags;
	int i;

	io_uring_prep_provide_buffers(sqe, back, 1000, 4, GROUP, 0);
	sqe->user_data = 1;
	EXPECT_LE(0, result(&self->r, 1));
	for (i = 0; i < 5; i++) {
		sqe = request(&self->r);
		io_uring_prep_recv(sqe, self->s, NULL, 1000, 0);
		sqe->flags = IOSQE_BUFFER_SELECT;
		sqe->buf_group = GROUP;
		sqe->user_data = 2;
		hps_fill(big, 500, i * 500, 1);
		ASSERT_EQ(500, send(self->c, big, 500, 0));
		ASSERT_TRUE(hps_until_inq(self->s, 500));
		if (i == 4) {
			EXPECT_EQ(-ENOBUFS, result(&self->r, 2));
			break;
		}
		EXPECT_EQ(500, result_flags(&self->r, 2, &flags));
		ASSERT_TRUE(flags & IORING_CQE_F_BUFFER);
		EXPECT_EQ(500, hps_check(back + (flags >> IORING_CQE_BUFFER_SHIFT) * 1000,
					 500, i * 500, 1));
	}
	/* It stays for one who has a buffer. */
	EXPECT_EQ(500, hps_pull_at(self->s, 2000, 500, 500, 1));
}

#define BUFS 8
#define BUF_SIZE 1000

/* A ring of buffers, of which the i-th is back + i * BUF_SIZE. */
static struct io_uring_buf_ring *buffers(struct ring *r, int *err)
{
	struct io_uring_buf_reg reg = { .ring_entries = BUFS, .bgid = GROUP };
	struct io_uring_buf_ring *br = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
					    MAP_ANONYMOUS | MAP_PRIVATE, -1, 0);
	int i;

	io_uring_buf_ring_init(br);
	reg.ring_addr = (unsigned long)br;
	*err = io_uring_register_buf_ring(&r->uring, &reg, 0);
	for (i = 0; i < BUFS; i++)
		io_uring_buf_ring_add(br, back + i * BUF_SIZE, BUF_SIZE, i, BUFS - 1, i);
	io_uring_buf_ring_advance(br, BUFS);
	return br;
}

TEST_F(uring, recv_multishot)
{
	struct io_uring_buf_ring *br;
	struct io_uring_sqe *sqe;
	unsigned int flags, id;
	int at = 0, end, i, n, err;

	br = buffers(&self->r, &err);
	ASSERT_EQ(0, err);
	sqe = request(&self->r);
	io_uring_prep_recv_multishot(sqe, self->s, NULL, 0, 0);
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	sqe->user_data = 1;
	/* More than there are buffers, if they were not given back. */
	for (i = 0; i < 3 * BUFS; i++) {
		EXPECT_TRUE(i || waits(&self->r, 1));
		hps_fill(big, 700, at, 1);
		ASSERT_EQ(700, send(self->c, big, 700, 0));
		/* A stream may come in pieces. */
		for (end = at + 700; at < end; at += n) {
			n = result_flags(&self->r, 1, &flags);
			ASSERT_LT(0, n);
			ASSERT_TRUE(flags & IORING_CQE_F_BUFFER);
			EXPECT_TRUE(flags & IORING_CQE_F_MORE);
			id = flags >> IORING_CQE_BUFFER_SHIFT;
			ASSERT_EQ(n, hps_check(back + id * BUF_SIZE, n, at, 1));
			io_uring_buf_ring_add(br, back + id * BUF_SIZE, BUF_SIZE, id, BUFS - 1, 0);
			io_uring_buf_ring_advance(br, 1);
		}
	}
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, result_flags(&self->r, 1, &flags));
	EXPECT_FALSE(flags & IORING_CQE_F_MORE);
}

/* More than the buffers hold: they are filled, and then it ends. */
TEST_F(uring, recv_multishot_full)
{
	struct io_uring_sqe *sqe;
	unsigned int flags, id;
	int at = 0, n, err;

	buffers(&self->r, &err);
	ASSERT_EQ(0, err);
	ASSERT_EQ(10000, hps_push(self->c, 10000, 10000, 1));
	ASSERT_TRUE(hps_until_inq(self->s, 10000));
	sqe = request(&self->r);
	io_uring_prep_recv_multishot(sqe, self->s, NULL, 0, 0);
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	sqe->user_data = 1;
	while ((n = result_flags(&self->r, 1, &flags)) > 0) {
		EXPECT_TRUE(flags & IORING_CQE_F_MORE);
		id = flags >> IORING_CQE_BUFFER_SHIFT;
		ASSERT_EQ(n, hps_check(back + id * BUF_SIZE, n, at, 1));
		at += n;
	}
	EXPECT_EQ(-ENOBUFS, n);
	EXPECT_FALSE(flags & IORING_CQE_F_MORE);
	EXPECT_EQ(BUFS * BUF_SIZE, at);
	EXPECT_EQ(10000 - at, hps_pull_at(self->s, at, 10000 - at, 10000, 1));
}

TEST_F(uring, recv_multishot_cancel)
{
	struct io_uring_sqe *sqe;
	unsigned int flags;
	int err;

	buffers(&self->r, &err);
	ASSERT_EQ(0, err);
	sqe = request(&self->r);
	io_uring_prep_recv_multishot(sqe, self->s, NULL, 0, 0);
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	sqe->user_data = 1;
	EXPECT_TRUE(waits(&self->r, 1));
	EXPECT_EQ(0, cancel(&self->r, 1));
	EXPECT_EQ(-ECANCELED, result_flags(&self->r, 1, &flags));
	EXPECT_FALSE(flags & IORING_CQE_F_MORE);
}

TEST_F(uring, recvmsg_multishot)
{
	struct io_uring_recvmsg_out *head;
	struct msghdr msg = { 0 };
	struct io_uring_sqe *sqe;
	unsigned int flags, id;
	int at = 0, end, i, n, err;

	buffers(&self->r, &err);
	ASSERT_EQ(0, err);
	sqe = request(&self->r);
	io_uring_prep_recvmsg_multishot(sqe, self->s, &msg, 0);
	sqe->flags = IOSQE_BUFFER_SELECT;
	sqe->buf_group = GROUP;
	sqe->user_data = 1;
	for (i = 0; i < 3; i++) {
		EXPECT_TRUE(waits(&self->r, 1));
		hps_fill(big, 700, i * 700, 1);
		ASSERT_EQ(700, send(self->c, big, 700, 0));
		for (end = at + 700; at < end; at += head->payloadlen) {
			n = result_flags(&self->r, 1, &flags);
			ASSERT_TRUE(flags & IORING_CQE_F_MORE);
			id = flags >> IORING_CQE_BUFFER_SHIFT;
			head = io_uring_recvmsg_validate(back + id * BUF_SIZE, n, &msg);
			ASSERT_NE(NULL, head);
			ASSERT_LT(0, head->payloadlen);
			EXPECT_EQ(0, head->flags);
			EXPECT_EQ(head->payloadlen,
				  hps_check(io_uring_recvmsg_payload(head, &msg),
					    head->payloadlen, at, 1));
		}
	}
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	result_flags(&self->r, 1, &flags);
	EXPECT_FALSE(flags & IORING_CQE_F_MORE);
}

TEST_F(uring, splice)
{
	struct io_uring_sqe *sqe = request(&self->r);
	int p[2], ret;

	ASSERT_OK(pipe(p));
	io_uring_prep_splice(sqe, self->s, -1, p[1], -1, 1000, 0);
	sqe->user_data = 1;
	EXPECT_TRUE(waits(&self->r, 1));
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	EXPECT_EQ(5, result(&self->r, 1));
	sqe = request(&self->r);
	io_uring_prep_splice(sqe, p[0], -1, self->s, -1, 1000, 0);
	sqe->user_data = 2;
	EXPECT_EQ(5, result(&self->r, 2));
	EXPECT_EQ(5, recv(self->c, back, 5, MSG_WAITALL));
	EXPECT_EQ(0, memcmp(back, "hello", 5));
	/* A worker waits in it until it is interrupted. */
	sqe = request(&self->r);
	io_uring_prep_splice(sqe, self->s, -1, p[1], -1, 1000, 0);
	sqe->user_data = 3;
	EXPECT_TRUE(waits(&self->r, 3));
	ret = cancel(&self->r, 3);
	EXPECT_TRUE(ret == 0 || ret == -EALREADY);
	ret = result(&self->r, 3);
	EXPECT_TRUE(ret == -ECANCELED || ret == -EINTR);
}

/* The kernel's thread submits, with nobody's terminal or signals. */
TEST_F(uring, sqpoll)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQPOLL, .sq_thread_idle = 100 };

	io_uring_queue_exit(&self->r.uring);
	ASSERT_EQ(0, io_uring_queue_init_params(32, &self->r.uring, &params));
	hps_fill(big, 100000, 0, 1);
	recv_request(&self->r, 1, self->s, 100000, MSG_WAITALL);
	send_request(&self->r, 2, self->c, 100000, MSG_WAITALL);
	EXPECT_EQ(100000, result(&self->r, 2));
	EXPECT_EQ(100000, result(&self->r, 1));
	EXPECT_EQ(100000, hps_check(back, 100000, 0, 1));
}

/* A registered socket stays until it is unregistered. */
TEST_F(uring, registered)
{
	struct io_uring_sqe *sqe;
	char byte;

	ASSERT_EQ(0, io_uring_register_files(&self->r.uring, &self->s, 1));
	ASSERT_OK(close(self->s));
	EXPECT_TRUE(hps_quiet(self->c, POLLIN | POLLRDHUP));
	sqe = request(&self->r);
	io_uring_prep_recv(sqe, 0, back, 100, 0);
	sqe->flags = IOSQE_FIXED_FILE;
	sqe->user_data = 1;
	EXPECT_TRUE(waits(&self->r, 1));
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	EXPECT_EQ(5, result(&self->r, 1));
	ASSERT_EQ(0, io_uring_unregister_files(&self->r.uring));
	EXPECT_EQ(0, recv(self->c, &byte, 1, 0));
}

/* Was it copied? As IORING_SEND_ZC_REPORT_USAGE has it; TCP's devices copy what they like. */
static bool says(const struct hps *t, int res, bool copied)
{
	return !t->rdma || res == (copied ? (int)IORING_NOTIF_USAGE_ZC_COPIED : 0);
}

/* Without copying, what is too little for that, and one behind the other */
TEST_F(uring, zero_copy)
{
	static const struct {
		size_t large, small;
	} cases[] = { { 65536, 0 }, { 0, 1000 }, { 65536, 1000 } };
	long before = self->t.rdma ? (hps_stat("tx_gathered") + hps_stat("tx_lent")) : 0;
	struct io_uring_sqe *sqe;
	unsigned int flags;
	long sent = 0;
	int i;

	for (i = 0; i < 6; i++) {
		size_t large = cases[i / 2].large, small = cases[i / 2].small;
		struct iovec v[] = { { big, large }, { big + large, small } };
		struct msghdr msg = { .msg_iov = v, .msg_iovlen = 2 };

		/* That has one piece. */
		if (i % 2 == 0 && large && small)
			continue;
		if (!knows(&self->r.uring, i % 2 ? IORING_OP_SENDMSG_ZC : IORING_OP_SEND_ZC))
			continue;
		hps_fill(big, large + small, 0, i);
		sqe = request(&self->r);
		if (i % 2)
			io_uring_prep_sendmsg_zc(sqe, self->c, &msg, 0);
		else
			io_uring_prep_send_zc(sqe, self->c, big, large + small, 0, 0);
		sqe->ioprio |= IORING_SEND_ZC_REPORT_USAGE;
		sqe->user_data = i;
		EXPECT_EQ(large + small, result_flags(&self->r, i, &flags));
		EXPECT_TRUE(flags & IORING_CQE_F_MORE);
		EXPECT_EQ(large + small, hps_pull(self->s, large + small, 65536, i));
		EXPECT_TRUE(says(&self->t, result_flags(&self->r, i, &flags), small));
		EXPECT_TRUE(flags & IORING_CQE_F_NOTIF);
		sent += large;
	}
	if (self->t.rdma)
		EXPECT_EQ(before + sent, (hps_stat("tx_gathered") + hps_stat("tx_lent")));
}

TEST_HARNESS_MAIN
