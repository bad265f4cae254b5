// SPDX-License-Identifier: GPL-2.0
/* The ends of a connection: shutdown, close, reset, and what is left after. */
#include "hps_test.h"

HPS_PAIR_FIXTURE(close)

static char buf[1 << 20];

static void linger(int fd, int seconds)
{
	struct linger on = { .l_onoff = 1, .l_linger = seconds };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on));
}

static long close_call(struct hps_call *call)
{
	return close(call->fd);
}

TEST_F(close, half_closed)
{
	ASSERT_EQ(1000, hps_push(self->c, 1000, 1000, 1));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(1000, hps_pull(self->s, 2000, 2000, 1));
	EXPECT_EQ(0, errno);
	/* The other half lives on. */
	ASSERT_EQ(10000, hps_push(self->s, 10000, 1000, 2));
	EXPECT_EQ(10000, hps_pull(self->c, 10000, 1000, 2));
	ASSERT_EQ(10000, hps_push(self->s, 10000, 1000, 3));
	ASSERT_OK(close(self->s));
	EXPECT_EQ(10000, hps_pull(self->c, 20000, 1000, 3));
	EXPECT_EQ(0, errno);
}

TEST_F(close, half_closed_by_server)
{
	ASSERT_OK(shutdown(self->s, SHUT_WR));
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
	ASSERT_EQ(10000, hps_push(self->c, 10000, 1000, 2));
	EXPECT_EQ(10000, hps_pull(self->s, 10000, 1000, 2));
	ASSERT_OK(close(self->c));
	EXPECT_EQ(0, recv(self->s, buf, 1, 0));
}

TEST_F(close, end_stays)
{
	int i;

	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	ASSERT_OK(close(self->c));
	EXPECT_EQ(3, recv(self->s, buf, 10, MSG_WAITALL));
	for (i = 0; i < 5; i++) {
		EXPECT_EQ(0, recv(self->s, buf, 10, 0));
		EXPECT_EQ(0, recv(self->s, buf, 10, MSG_DONTWAIT));
		EXPECT_EQ(0, recv(self->s, buf, 10, MSG_PEEK));
		EXPECT_EQ(0, read(self->s, buf, 10));
	}
	EXPECT_EQ(0, hps_error(self->s));
	EXPECT_NE(0, hps_peer(self->s).len);
}

TEST_F(close, send_after_shutdown)
{
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	hps_catch(SIGPIPE, 0);
	EXPECT_ERRNO(EPIPE, send(self->c, "x", 1, 0));
	EXPECT_EQ(1, hps_caught());
	EXPECT_ERRNO(EPIPE, write(self->c, "x", 1));
	EXPECT_EQ(1, hps_caught());
	EXPECT_ERRNO(EPIPE, send(self->c, "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(0, hps_caught());
	EXPECT_ERRNO(EPIPE, send(self->c, "", 0, MSG_NOSIGNAL));
	EXPECT_ERRNO(EPIPE, send(self->c, "x", 1, MSG_DONTWAIT | MSG_NOSIGNAL));
	EXPECT_EQ(0, hps_error(self->c));
}

TEST_F(close, shutdown_arguments)
{
	EXPECT_ERRNO(EINVAL, shutdown(self->c, 3));
	EXPECT_ERRNO(EINVAL, shutdown(self->c, -1));
	EXPECT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_OK(shutdown(self->c, SHUT_RD));
	EXPECT_OK(shutdown(self->c, SHUT_RD));
	EXPECT_OK(shutdown(self->c, SHUT_RDWR));
}

TEST_F(close, both_shut)
{
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, recv(self->s, buf, 1, 0));
	ASSERT_OK(shutdown(self->s, SHUT_WR));
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
	EXPECT_TRUE(hps_wait_exactly(self->s, POLLHUP) & POLLHUP);
	/* c, which ended first, may still wait for stragglers, but is over too. */
	EXPECT_TRUE(hps_until_over(self->c));
	EXPECT_ERRNO(ENOTCONN, shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, hps_peer(self->c).len);
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
	EXPECT_EQ(0, recv(self->s, buf, 1, 0));
	EXPECT_ERRNO(EPIPE, send(self->c, "x", 1, MSG_NOSIGNAL));
	EXPECT_ERRNO(EPIPE, send(self->s, "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(0, hps_error(self->c));
	EXPECT_EQ(0, hps_error(self->s));
	EXPECT_ERRNO(EISCONN, hps_connect(self->c, self->t.b));
}

TEST_F(close, both_shut_at_once)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c, s, i;

	ASSERT_OK(l);
	for (i = 0; i < 30; i++) {
		c = hps_dial(&self->t, at);
		ASSERT_OK(c);
		s = hps_accept(l);
		ASSERT_OK(s);
		ASSERT_EQ(500, hps_push(c, 500, 500, i));
		ASSERT_EQ(600, hps_push(s, 600, 600, i + 100));
		ASSERT_OK(shutdown(s, SHUT_WR));
		ASSERT_OK(shutdown(c, SHUT_WR));
		EXPECT_EQ(600, hps_pull(c, 1000, 1000, i + 100));
		EXPECT_EQ(0, errno);
		EXPECT_EQ(500, hps_pull(s, 1000, 1000, i));
		EXPECT_EQ(0, errno);
		EXPECT_EQ(0, hps_error(c));
		EXPECT_EQ(0, hps_error(s));
		ASSERT_OK(close(i % 2 ? c : s));
		ASSERT_OK(close(i % 2 ? s : c));
	}
}

TEST_F(close, both_close_at_once)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int i;

	ASSERT_OK(l);
	for (i = 0; i < 30; i++) {
		struct hps_call call[2] = { { .fn = close_call }, { .fn = close_call } };

		call[0].fd = hps_dial(&self->t, at);
		ASSERT_OK(call[0].fd);
		call[1].fd = hps_accept(l);
		ASSERT_OK(call[1].fd);
		hps_start(&call[i % 2]);
		hps_start(&call[1 - i % 2]);
		ASSERT_TRUE(hps_done(&call[0]));
		ASSERT_TRUE(hps_done(&call[1]));
		EXPECT_EQ(0, call[0].ret);
		EXPECT_EQ(0, call[1].ret);
	}
}

TEST_F(close, shutdown_read)
{
	ASSERT_OK(shutdown(self->s, SHUT_RD));
	EXPECT_EQ(0, recv(self->s, buf, 1, 0));
	EXPECT_EQ(0, recv(self->s, buf, 1, MSG_DONTWAIT));
	/* The peer does not know. What it sends is there all the same. */
	EXPECT_EQ(3, send(self->c, "abc", 3, 0));
	EXPECT_TRUE(hps_until_inq(self->s, 3));
	EXPECT_EQ(3, recv(self->s, buf, 10, 0));
	EXPECT_EQ(0, recv(self->s, buf, 10, 0));
	EXPECT_EQ(3, send(self->s, "def", 3, 0));
	EXPECT_EQ(3, recv(self->c, buf, 10, 0));
}

TEST_F(close, shutdown_read_with_data)
{
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 3));
	ASSERT_OK(shutdown(self->s, SHUT_RD));
	EXPECT_EQ(3, recv(self->s, buf, 10, 0));
	EXPECT_EQ(0, recv(self->s, buf, 10, 0));
}

/* With both halves closed on this side, data is an error of the sender's. */
TEST_F(close, data_after_shutdown_both)
{
	ASSERT_OK(shutdown(self->s, SHUT_RDWR));
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
	EXPECT_EQ(3, send(self->c, "abc", 3, 0));
	EXPECT_TRUE(hps_wait(self->c, POLLERR) & POLLERR);
	EXPECT_ERRNO(EPIPE, send(self->c, "x", 1, MSG_NOSIGNAL));
	EXPECT_ERRNO(ECONNRESET, recv(self->s, buf, 1, 0));
	EXPECT_EQ(0, recv(self->s, buf, 1, 0));
}

TEST_F(close, unread_data_resets)
{
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 3));
	ASSERT_OK(close(self->s));
	EXPECT_TRUE(hps_wait(self->c, POLLERR) & POLLERR);
	EXPECT_ERRNO(ECONNRESET, recv(self->c, buf, 1, 0));
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
	EXPECT_ERRNO(EPIPE, send(self->c, "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(0, hps_error(self->c));
	EXPECT_EQ(0, hps_peer(self->c).len);
	EXPECT_ERRNO(ENOTCONN, shutdown(self->c, SHUT_RDWR));
}

/* What has arrived before a reset can still be read. */
TEST_F(close, unread_data_both_ways)
{
	ASSERT_EQ(5000, hps_push(self->s, 5000, 5000, 1));
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 3));
	ASSERT_TRUE(hps_until_inq(self->c, 5000));
	ASSERT_OK(close(self->s));
	EXPECT_TRUE(hps_wait(self->c, POLLERR) & POLLERR);
	EXPECT_EQ(5000, hps_pull(self->c, 6000, 6000, 1));
	EXPECT_EQ(ECONNRESET, errno);
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
}

TEST_F(close, linger_0)
{
	ASSERT_OK(hps_reset(self->c));
	EXPECT_TRUE(hps_wait(self->s, POLLERR) & POLLERR);
	EXPECT_ERRNO(ECONNRESET, recv(self->s, buf, 1, 0));
	EXPECT_EQ(0, recv(self->s, buf, 1, 0));
}

/* What was sent before a reset is there to be read before the error. */
static void arrives_first(struct __test_metadata *_metadata, struct hps *t, bool unread)
{
	/* What TCP has to send later, it drops. */
	int len = t->rdma ? 20000 : 5000, c, s, i;

	for (i = 0; i < 20; i++) {
		ASSERT_OK(hps_pair(t, &c, &s));
		if (unread) {
			ASSERT_EQ(1, send(c, "x", 1, 0));
			ASSERT_TRUE(hps_until_inq(s, 1));
		} else {
			linger(s, 0);
		}
		ASSERT_EQ(len, hps_push(s, len, len, 1));
		ASSERT_OK(close(s));
		ASSERT_EQ(len, hps_pull(c, len, len, 1)) TH_LOG("round %d", i);
		ASSERT_ERRNO(ECONNRESET, recv(c, buf, 1, 0));
		close(c);
	}
}

TEST_F(close, data_before_reset)
{
	arrives_first(_metadata, &self->t, false);
}

TEST_F(close, data_before_unread_data)
{
	arrives_first(_metadata, &self->t, true);
}

TEST_F(close, reset_told_by_send)
{
	ASSERT_OK(hps_reset(self->c));
	EXPECT_TRUE(hps_wait(self->s, POLLERR) & POLLERR);
	hps_catch(SIGPIPE, 0);
	EXPECT_ERRNO(ECONNRESET, send(self->s, "x", 1, 0));
	EXPECT_EQ(0, hps_caught());
	EXPECT_ERRNO(EPIPE, send(self->s, "x", 1, 0));
	EXPECT_EQ(1, hps_caught());
	EXPECT_EQ(0, recv(self->s, buf, 1, 0));
	EXPECT_EQ(0, hps_error(self->s));
}

TEST_F(close, reset_told_by_so_error)
{
	struct hps_addr name = hps_name(self->s), after;

	ASSERT_OK(hps_reset(self->c));
	EXPECT_TRUE(hps_wait(self->s, POLLERR) & POLLERR);
	EXPECT_EQ(ECONNRESET, hps_error(self->s));
	EXPECT_EQ(0, hps_error(self->s));
	EXPECT_EQ(0, recv(self->s, buf, 1, 0));
	EXPECT_ERRNO(EPIPE, send(self->s, "x", 1, MSG_NOSIGNAL));
	after = hps_name(self->s);
	EXPECT_TRUE(hps_same(&name, &after));
	EXPECT_EQ(0, hps_peer(self->s).len);
	EXPECT_ERRNO(EISCONN, hps_connect(self->s, self->t.a));
	EXPECT_OK(hps_set(self->s, SOL_SOCKET, SO_KEEPALIVE, 1));
}

/* A reset takes back what was lent to the peer, so the first bytes are not. */
TEST_F(close, reset_of_full)
{
	ASSERT_EQ(1000, hps_push(self->c, 1000, 1000, 1));
	ASSERT_LT(0, hps_stuff(self->c, 1000, 1));
	ASSERT_LT(0, hps_stuff(self->s, 0, 2));
	ASSERT_OK(hps_reset(self->c));
	EXPECT_TRUE(hps_wait(self->s, POLLERR) & POLLERR);
	EXPECT_LT(0, hps_pull(self->s, INT64_MAX, 65536, 1));
	EXPECT_EQ(ECONNRESET, errno);
}

/* After the end, the first byte brings the reset that the second one meets. */
TEST_F(close, send_after_peer_closed)
{
	ASSERT_OK(close(self->s));
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
	EXPECT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_TRUE(hps_wait(self->c, POLLERR) & POLLERR);
	hps_catch(SIGPIPE, 0);
	EXPECT_ERRNO(EPIPE, send(self->c, "x", 1, 0));
	EXPECT_EQ(1, hps_caught());
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
	EXPECT_EQ(0, hps_error(self->c));
}

TEST_F(close, so_error_after_peer_closed)
{
	ASSERT_OK(close(self->s));
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
	EXPECT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_TRUE(hps_wait(self->c, POLLERR) & POLLERR);
	EXPECT_EQ(EPIPE, hps_error(self->c));
	EXPECT_EQ(0, hps_error(self->c));
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
}

/* The data that nobody wants any more has not been read by the sender's end. */
TEST_F(close, data_on_its_way_to_closed)
{
	ASSERT_EQ(1000, hps_push(self->s, 1000, 1000, 1));
	ASSERT_OK(close(self->s));
	ASSERT_TRUE(hps_until_inq(self->c, 1000));
	EXPECT_TRUE(hps_wait(self->c, POLLRDHUP) & POLLRDHUP);
	EXPECT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_TRUE(hps_wait(self->c, POLLERR) & POLLERR);
	EXPECT_EQ(1000, hps_pull(self->c, 2000, 2000, 1));
}

TEST_F(close, unsent_data_arrives)
{
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	ASSERT_OK(close(self->c));
	EXPECT_EQ(sent, hps_pull(self->s, INT64_MAX, 65536, 1));
	EXPECT_EQ(0, errno);
}

TEST_F(close, unsent_data_arrives_late)
{
	int64_t sent = hps_stuff(self->c, 0, 1);
	int c2, s2;

	ASSERT_LT(0, sent);
	ASSERT_OK(close(self->c));
	/* The closed one does not stand in the way of others. */
	ASSERT_OK(hps_pair(&self->t, &c2, &s2));
	ASSERT_EQ(3000, hps_push(c2, 3000, 100, 2));
	ASSERT_EQ(3000, hps_pull(s2, 3000, 100, 2));
	EXPECT_EQ(sent, hps_pull(self->s, INT64_MAX, 1000, 1));
	EXPECT_EQ(0, errno);
}

TEST_F(close, shutdown_with_unsent_data)
{
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_ERRNO(EPIPE, send(self->c, "x", 1, MSG_NOSIGNAL));
	ASSERT_EQ(100, hps_push(self->s, 100, 100, 2));
	EXPECT_EQ(sent, hps_pull(self->s, INT64_MAX, 65536, 1));
	EXPECT_EQ(0, errno);
	EXPECT_EQ(100, hps_pull(self->c, 100, 100, 2));
}

TEST_F(close, does_not_wait)
{
	int64_t start;

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	start = hps_now();
	ASSERT_OK(close(self->c));
	EXPECT_GT(hps_deadline(), hps_now() - start);
}

TEST_F(close, linger_in_vain)
{
	int64_t sent = hps_stuff(self->c, 0, 1), start;

	ASSERT_LT(0, sent);
	linger(self->c, 1);
	start = hps_now();
	ASSERT_OK(close(self->c));
	EXPECT_LE(990, hps_now() - start);
	/* The time is over, the data is not lost. */
	EXPECT_EQ(sent, hps_pull(self->s, INT64_MAX, 65536, 1));
	EXPECT_EQ(0, errno);
}

TEST_F(close, linger_until_delivered)
{
	struct hps_call call = { .fn = close_call, .fd = self->c };
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	linger(self->c, 1000);
	hps_block(&call);
	EXPECT_FALSE(call.done);
	EXPECT_EQ(sent, hps_pull(self->s, INT64_MAX, 65536, 1));
	EXPECT_EQ(0, errno);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(0, call.ret);
}

TEST_F(close, linger_with_nothing)
{
	int64_t start = hps_now();

	linger(self->c, 1000);
	ASSERT_EQ(100, hps_push(self->c, 100, 100, 1));
	ASSERT_OK(close(self->c));
	EXPECT_GT(hps_deadline(), hps_now() - start);
	EXPECT_EQ(100, hps_pull(self->s, 200, 200, 1));
}

TEST_F(close, linger_nonblocking)
{
	int64_t start;

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	ASSERT_OK(hps_nonblock(self->c, true));
	linger(self->c, 1);
	start = hps_now();
	ASSERT_OK(close(self->c));
	/* O_NONBLOCK is of no account here. */
	EXPECT_LE(990, hps_now() - start);
}

TEST_F(close, linger_reset)
{
	struct hps_call call = { .fn = close_call, .fd = self->c };

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	linger(self->c, 1000);
	hps_block(&call);
	ASSERT_OK(close(self->s));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(0, call.ret);
}

/* Another thread sleeps in a call: close() by itself does not wake it. */
TEST_F(close, under_recv)
{
	struct hps_call call = { .fn = hps_recv_call, .fd = self->s, .buf = buf, .len = 10 };

	hps_block(&call);
	ASSERT_OK(close(self->s));
	hps_until_blocked(call.tid);
	EXPECT_FALSE(call.done);
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(3, call.ret);
	/* With that call the last use ends. */
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
}

TEST_F(close, under_accept)
{
	struct hps_call call = { .fn = hps_accept_call };
	struct hps_addr at;

	call.fd = hps_listen(&self->t, 1, &at);
	ASSERT_OK(call.fd);
	hps_block(&call);
	ASSERT_OK(close(call.fd));
	hps_until_blocked(call.tid);
	EXPECT_FALSE(call.done);
	ASSERT_OK(hps_dial(&self->t, at));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_LE(0, call.ret);
	EXPECT_ERRNO(ECONNREFUSED, hps_dial(&self->t, at));
}

TEST_F(close, under_poll)
{
	struct hps_call call = { .fn = hps_poll_call, .fd = self->s, .arg = POLLIN };

	hps_block(&call);
	ASSERT_OK(close(self->s));
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLNVAL, call.ret);
	/* Closed with unread data, once poll() let go of it. */
	EXPECT_ERRNO(ECONNRESET, recv(self->c, buf, 1, 0));
}

TEST_F(close, shutdown_under_recv)
{
	struct hps_call call = { .fn = hps_recv_call, .fd = self->s, .buf = buf, .len = 10 };

	hps_block(&call);
	ASSERT_OK(shutdown(self->s, SHUT_RD));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(0, call.ret);
}

TEST_F(close, shutdown_under_send)
{
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = buf, .len = 1000 };

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	hps_block(&call);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EPIPE, call.err);
}

TEST_F(close, end_under_recv)
{
	struct hps_call call = {
		.fn = hps_recv_call, .fd = self->s, .buf = buf, .len = 10, .arg = MSG_WAITALL,
	};

	hps_block(&call);
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	ASSERT_OK(close(self->c));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(3, call.ret);
}

TEST_F(close, reset_under_recv)
{
	struct hps_call call = { .fn = hps_recv_call, .fd = self->s, .buf = buf, .len = 10 };

	hps_block(&call);
	ASSERT_OK(hps_reset(self->c));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(ECONNRESET, call.err);
}

TEST_F(close, reset_under_send)
{
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = buf, .len = 1000 };

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	hps_block(&call);
	ASSERT_OK(hps_reset(self->s));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(ECONNRESET, call.err);
}

/* The peer closes and leaves unread what a sender waits to add to. */
TEST_F(close, peer_closes_under_send)
{
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = buf, .len = 1000 };

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	hps_block(&call);
	ASSERT_OK(close(self->s));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(ECONNRESET, call.err);
}

/* The last connection of these ports may not be quite over at the peer's. */
static int connect_again(int fd, struct hps_addr to)
{
	int64_t end = hps_now() + hps_deadline();
	int ret;

	while ((ret = hps_connect(fd, to)) && errno == EADDRNOTAVAIL && hps_now() < end)
		usleep(1000);
	return ret;
}

/* The same two ports again and again */
TEST_F(close, same_ports)
{
	struct hps_addr at, from;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_client(&self->t, 0), s, i;

	ASSERT_OK(l);
	ASSERT_OK(c);
	from = hps_name(c);
	close(c);
	for (i = 0; i < 50; i++) {
		c = hps_socket(&self->t, 0);
		ASSERT_OK(c);
		ASSERT_OK(hps_set(c, SOL_SOCKET, SO_REUSEADDR, 1));
		ASSERT_OK(hps_bind(c, from));
		ASSERT_OK(connect_again(c, at));
		s = hps_accept(l);
		ASSERT_OK(s);
		ASSERT_EQ(100, hps_push(s, 100, 100, i));
		ASSERT_OK(close(s));
		ASSERT_EQ(100, hps_pull(c, 200, 200, i));
		ASSERT_OK(close(c));
	}
}

/*
 * They are free for a socket that is bound to them as soon as the peer knows of the
 * close(), even if it does not close its end. Not yet after a shutdown().
 */
TEST_F(close, same_ports_half)
{
	struct hps_addr at, from;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_socket(&self->t, 0), s[2], next;
	int64_t closed;

	ASSERT_OK(l);
	ASSERT_OK(c);
	ASSERT_OK(hps_set(c, SOL_SOCKET, SO_REUSEADDR, 1));
	ASSERT_OK(hps_bind(c, self->t.a));
	ASSERT_OK(hps_connect(c, at));
	s[0] = hps_accept(l);
	ASSERT_OK(s[0]);
	from = hps_name(c);
	ASSERT_OK(shutdown(c, SHUT_WR));
	ASSERT_EQ(0, recv(s[0], buf, 1, 0));

	next = hps_socket(&self->t, 0);
	ASSERT_OK(next);
	ASSERT_OK(hps_set(next, SOL_SOCKET, SO_REUSEADDR, 1));
	ASSERT_OK(hps_bind(next, from));
	EXPECT_ERRNO(EADDRNOTAVAIL, hps_connect(next, at));
	ASSERT_OK(close(c));
	closed = hps_now();
	ASSERT_OK(connect_again(next, at));
	/* That is, before FIN_WAIT_2 has timed out. */
	EXPECT_GT(30000, hps_now() - closed);
	s[1] = hps_accept(l);
	ASSERT_OK(s[1]);
	ASSERT_EQ(100, hps_push(next, 100, 100, 1));
	ASSERT_EQ(100, hps_pull(s[1], 100, 100, 1));
	ASSERT_EQ(100, hps_push(s[1], 100, 100, 2));
	ASSERT_EQ(100, hps_pull(next, 100, 100, 2));
}

/* And no later than that, where the answer of TCP may be on its way. */
TEST_F(close, same_ports_at_once)
{
	struct hps_addr at, from = self->t.a;
	/* The old end makes TCP try a second time. */
	int l = hps_listen(&self->t, 1, &at), rounds = self->t.rdma ? 100 : 3, old = -1, c, s, i;

	ASSERT_OK(l);
	for (i = 0; i < rounds; i++) {
		c = hps_socket(&self->t, 0);
		ASSERT_OK(c);
		ASSERT_OK(hps_set(c, SOL_SOCKET, SO_REUSEADDR, 1));
		ASSERT_OK(hps_bind(c, from));
		ASSERT_OK(self->t.rdma ? hps_connect(c, at) : connect_again(c, at));
		s = hps_accept(l);
		ASSERT_OK(s);
		close(old);
		old = s;
		from = hps_name(c);
		close(c);
		ASSERT_TRUE(hps_wait(s, POLLRDHUP) & POLLRDHUP);
	}
	close(old);
}

TEST_F(close, many_cycles)
{
	long cycles = hps_env("HPS_STRESS_CYCLES", 1000) / (hps_slow() >= 10 ? 20 : 4);
	struct hps_addr at;
	int l = hps_listen(&self->t, 16, &at);
	int c, s, i;

	ASSERT_OK(l);
	for (i = 0; i < cycles; i++) {
		c = hps_dial(&self->t, at);
		ASSERT_OK(c);
		s = hps_accept(l);
		ASSERT_OK(s);
		/* The server first: its end is the one that may linger on. */
		switch (i % 3) {
		case 0:
			ASSERT_OK(close(s));
			ASSERT_EQ(0, recv(c, buf, 1, 0));
			ASSERT_OK(close(c));
			break;
		case 1:
			ASSERT_OK(hps_reset(s));
			ASSERT_OK(close(c));
			break;
		case 2:
			ASSERT_OK(hps_reset(c));
			ASSERT_OK(close(s));
			break;
		}
	}
}

/* Data both ways while one end goes away at some point: no byte is wrong. */
struct racer {
	pthread_t thread;
	int fd;
	uint64_t seed;
	bool wrong;
};

static void *race_send(void *arg)
{
	struct racer *racer = arg;

	hps_push(racer->fd, INT64_MAX, 3000, racer->seed);
	return NULL;
}

static void *race_recv(void *arg)
{
	struct racer *racer = arg;

	hps_pull(racer->fd, INT64_MAX, 5000, racer->seed);
	racer->wrong = errno == EBADMSG;
	return NULL;
}

TEST_F(close, races)
{
	uint64_t random = hps_env("HPS_SEED", 1);
	int round, i;

	for (round = 0; round < 12; round++) {
		struct racer r[4] = { 0 };
		int c, s;

		ASSERT_OK(hps_pair(&self->t, &c, &s));
		for (i = 0; i < 4; i++) {
			r[i].fd = i / 2 ? s : c;
			r[i].seed = i == 0 || i == 3 ? 1 : 2;
			ASSERT_EQ(0, pthread_create(&r[i].thread, NULL,
						    i % 2 ? race_recv : race_send, &r[i]));
		}
		usleep(hps_random(&random) % 20000);
		switch (round % 3) {
		case 0:
			ASSERT_OK(shutdown(s, SHUT_RDWR));
			break;
		case 1:
			linger(s, 0);
			ASSERT_OK(shutdown(s, SHUT_RD));
			ASSERT_OK(shutdown(c, SHUT_WR));
			ASSERT_OK(shutdown(s, SHUT_WR));
			break;
		case 2:
			/* A reset by disconnecting, which needs no last close(). */
			ASSERT_OK(connect(s, &(struct sockaddr){ .sa_family = AF_UNSPEC },
					  sizeof(struct sockaddr)));
			break;
		}
		for (i = 0; i < 4; i++) {
			struct hps_call call = { .thread = r[i].thread };

			ASSERT_TRUE(hps_done(&call)) TH_LOG("round %d thread %d", round, i);
			EXPECT_FALSE(r[i].wrong) TH_LOG("round %d thread %d", round, i);
		}
		close(c);
		close(s);
	}
}

#define ORPHAN_TIMEOUT	"/sys/module/hpsock/parameters/orphan_timeout"

/*
 * A closed socket has data for a peer that is there and does not read: it is not
 * kept for ever. TCP has timers of its own for that, of many minutes.
 */
TEST_F(close, orphan_gives_up)
{
	long before, timeout;
	int64_t end;

	if (!self->t.rdma)
		SKIP(return, "TCP has timers of its own for that, of many minutes");
	ASSERT_TRUE(hps_until_stat_is("orphans", 0));
	before = hps_stat("orphan_timeout");
	timeout = hps_number(ORPHAN_TIMEOUT, -1);
	ASSERT_LT(0, timeout);
	ASSERT_OK(hps_set_number(ORPHAN_TIMEOUT, 7));
	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	close(self->c);
	end = hps_now() + hps_deadline();
	while (hps_stat("orphan_timeout") == before && hps_now() < end)
		hps_poll(-1, 0, 100);
	EXPECT_EQ(before + 1, hps_stat("orphan_timeout"));
	EXPECT_OK(hps_set_number(ORPHAN_TIMEOUT, timeout));
	/* What came is there to be read, and then the peer learns of the loss. */
	EXPECT_TRUE(hps_wait(self->s, POLLERR) & POLLERR);
}

#define ORPHAN_MAX	"/sys/module/hpsock/parameters/orphan_max"

/* Nor are there any number of them: one too many is reset. TCP has tcp_max_orphans. */
TEST_F(close, orphans_are_limited)
{
	long before, limit;
	int c[4], s[4], i;

	if (!self->t.rdma)
		SKIP(return, "AF_HPSOCK's own limit");
	ASSERT_TRUE(hps_until_stat_is("orphans", 0));
	before = hps_stat("orphan_overflow");
	limit = hps_number(ORPHAN_MAX, -1);
	ASSERT_LT(0, limit);
	ASSERT_OK(hps_set_number(ORPHAN_MAX, 2));
	for (i = 0; i < 4; i++) {
		ASSERT_OK(hps_pair(&self->t, &c[i], &s[i]));
		ASSERT_LT(0, hps_stuff(c[i], 0, 1));
		close(c[i]);
	}
	EXPECT_OK(hps_set_number(ORPHAN_MAX, limit));
	EXPECT_EQ(before + 2, hps_stat("orphan_overflow"));
	for (i = 2; i < 4; i++)
		EXPECT_TRUE(hps_wait(s[i], POLLERR) & POLLERR);
	EXPECT_TRUE(hps_until_stat_is("orphans", 2));
	/* The others deliver what they have. */
	for (i = 0; i < 2; i++) {
		EXPECT_LT(0, hps_pull(s[i], INT64_MAX, 65536, 1));
		EXPECT_EQ(0, errno);
		close(s[i]);
	}
	EXPECT_TRUE(hps_until_stat_is("orphans", 0));
}

static bool until_fin_acked(int fd)
{
	int64_t end = hps_now() + hps_deadline();
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);

	while (getsockopt(fd, SOL_TCP, TCP_INFO, &info, &len) || info.tcpi_state != TCP_FIN_WAIT2) {
		if (hps_now() > end)
			return false;
		usleep(100);
	}
	return true;
}

/*
 * Peers that do not close have some wait for that. What these cost is limited, too, but
 * not at the cost of who has something to deliver: TCP has them in TIME_WAIT.
 */
TEST_F(close, waiting_orphans_are_limited)
{
	int c[3], s[3], last, peer, i;
	long before, limit;

	if (!self->t.rdma)
		SKIP(return, "AF_HPSOCK's own limit");
	ASSERT_TRUE(hps_until_stat_is("orphans", 0));
	before = hps_stat("orphan_overflow");
	limit = hps_number(ORPHAN_MAX, -1);
	ASSERT_LT(0, limit);
	ASSERT_OK(hps_set_number(ORPHAN_MAX, 2));
	for (i = 0; i < 3; i++) {
		ASSERT_OK(hps_pair(&self->t, &c[i], &s[i]));
		if (i < 2) {
			ASSERT_OK(shutdown(c[i], SHUT_WR));
			ASSERT_TRUE(until_fin_acked(c[i]));
		}
		close(c[i]);
		EXPECT_EQ(0, recv(s[i], &last, 1, 0));
	}
	/* The last one was about to wait, too. */
	EXPECT_TRUE(hps_until_stat_is("orphans", 2));
	EXPECT_EQ(before + 1, hps_stat("orphan_overflow"));
	ASSERT_OK(hps_pair(&self->t, &last, &peer));
	ASSERT_LT(0, hps_stuff(last, 0, 1));
	close(last);
	EXPECT_EQ(before + 1, hps_stat("orphan_overflow"));
	EXPECT_OK(hps_set_number(ORPHAN_MAX, limit));
	EXPECT_LT(0, hps_pull(peer, INT64_MAX, 65536, 1));
	EXPECT_EQ(0, errno);
	close(peer);
	for (i = 0; i < 3; i++)
		close(s[i]);
	EXPECT_TRUE(hps_until_stat_is("orphans", 0));
}

/* Nor has who goes on with the same socket more of them. */
TEST_F(close, dropped_are_limited)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	long before, limit;

	if (!self->t.rdma)
		SKIP(return, "AF_HPSOCK's own limit");
	ASSERT_TRUE(hps_until_stat_is("orphans", 0));
	before = hps_stat("orphan_overflow");
	limit = hps_number(ORPHAN_MAX, -1);
	ASSERT_LT(0, limit);
	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	ASSERT_OK(hps_set_number(ORPHAN_MAX, 0));
	EXPECT_OK(connect(self->c, &none, sizeof(none)));
	EXPECT_OK(hps_set_number(ORPHAN_MAX, limit));
	EXPECT_EQ(before + 1, hps_stat("orphan_overflow"));
	EXPECT_TRUE(hps_wait(self->s, POLLERR) & POLLERR);
	EXPECT_TRUE(hps_until_stat_is("orphans", 0));
}

/* Who cannot send any more has no use for send buffers, though it may not close for long. */
TEST_F(close, end_frees)
{
	long before;

	ASSERT_TRUE(hps_settle());
	before = hps_send_memory();
	ASSERT_TRUE(hps_burst(self->c, self->s));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	close(self->s);
	EXPECT_TRUE(hps_until_send_memory(before));
}

TEST_F(close, reset_frees)
{
	long before;

	ASSERT_TRUE(hps_settle());
	before = hps_send_memory();
	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	EXPECT_OK(hps_reset(self->s));
	EXPECT_TRUE(hps_until_send_memory(before));
}

/* Nor are bytes that will not be sent counted, wherever they are. */
TEST_F(close, reset_purges)
{
	static const struct {
		int flag;
		size_t len;
		bool all;
	} ways[] = {
		{ 0, sizeof(buf), true },
		{ MSG_ZEROCOPY, sizeof(buf), true },
		/* Far below SO_SNDBUF */
		{ MSG_ZEROCOPY, 131072, false },
	};
	size_t i;
	int c, s;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		ASSERT_OK(hps_pair(&self->t, &c, &s));
		ASSERT_OK(hps_zerocopy(&self->t, c));
		while (send(c, buf, ways[i].len, MSG_DONTWAIT | ways[i].flag) > 0 && ways[i].all)
			;
		EXPECT_OK(hps_reset(s));
		EXPECT_TRUE(hps_until_no_wmem(c)) TH_LOG("way %zu", i);
		close(c);
	}
}

#define FIN_TIMEOUT	"/sys/module/hpsock/parameters/fin_timeout"

/*
 * Nor has an orphan, which waits for its peer's end. Nothing more is sent, not even to
 * shrink receives, and the wait does not end first.
 */
TEST_F(close, orphan_frees)
{
	long before, shrink = hps_number(HPS_SHRINK_AFTER, 0), fin = hps_number(FIN_TIMEOUT, 0);

	EXPECT_TRUE(!self->t.rdma || !hps_set_number(HPS_SHRINK_AFTER, 3600));
	EXPECT_TRUE(!self->t.rdma || !hps_set_number(FIN_TIMEOUT, 3600));
	ASSERT_TRUE(hps_settle());
	before = hps_send_memory();
	ASSERT_TRUE(hps_burst(self->c, self->s));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_TRUE(until_fin_acked(self->c));
	close(self->c);
	EXPECT_TRUE(hps_until_send_memory(before));
	EXPECT_TRUE(!self->t.rdma || !hps_set_number(HPS_SHRINK_AFTER, shrink));
	EXPECT_TRUE(!self->t.rdma || !hps_set_number(FIN_TIMEOUT, fin));
	EXPECT_EQ(1, send(self->s, "x", 1, MSG_NOSIGNAL));
}

TEST_HARNESS_MAIN
