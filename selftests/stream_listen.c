// SPDX-License-Identifier: GPL-2.0
/* listen() and accept(): the queue, its limit, and what comes out of it. */
#include "hps_test.h"

#define CLIENTS 12

HPS_FIXTURE(listen)

/*
 * A queue of n takes n + 1. Who comes next neither gets in nor is turned away,
 * and gets in once there is room.
 */
static void backlog(struct __test_metadata *_metadata, struct hps *t, int n)
{
	/* One late client: TCP forgets a second where there is no queue at all. */
	int late = n ? 2 : 1;
	struct hps_addr at;
	int l = hps_listen(t, n, &at);
	int c[CLIENTS], i;

	ASSERT_OK(l);
	for (i = 0; i <= n; i++) {
		c[i] = hps_dial(t, at);
		ASSERT_OK(c[i]);
	}
	for (; i <= n + late; i++) {
		c[i] = hps_dial_in_vain(t, at);
		ASSERT_OK(c[i]);
	}
	for (i = n + 1; i <= n + late; i++) {
		EXPECT_EQ(0, hps_poll(c[i], POLLIN | POLLOUT, 0));
		EXPECT_EQ(0, hps_error(c[i]));
	}
	for (i = 0; i <= n + late; i++)
		ASSERT_OK(hps_accept(l));
	for (i = n + 1; i <= n + late; i++) {
		EXPECT_WAIT(POLLOUT, c[i]);
		EXPECT_EQ(0, hps_error(c[i]));
	}
}

TEST_F(listen, backlog_0)
{
	backlog(_metadata, &self->t, 0);
}

TEST_F(listen, backlog_1)
{
	backlog(_metadata, &self->t, 1);
}

TEST_F(listen, backlog_5)
{
	backlog(_metadata, &self->t, 5);
}

TEST_F(listen, backlog_changed)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 0, &at);
	int c[3], i;

	ASSERT_OK(l);
	c[0] = hps_dial(&self->t, at);
	ASSERT_OK(c[0]);
	c[1] = hps_dial_in_vain(&self->t, at);
	ASSERT_OK(c[1]);
	EXPECT_EQ(0, hps_poll(c[1], POLLOUT, 0));
	ASSERT_OK(listen(l, 2));
	EXPECT_WAIT(POLLOUT, c[1]);
	c[2] = hps_dial(&self->t, at);
	ASSERT_OK(c[2]);
	/* Less than there are: those that are in stay. */
	ASSERT_OK(listen(l, 0));
	for (i = 0; i < 3; i++)
		EXPECT_OK(hps_accept(l));
	ASSERT_OK(hps_nonblock(l, true));
	EXPECT_ERRNO(EAGAIN, accept(l, NULL, NULL));
}

/* A client that gave up while it waited for room takes no place. */
TEST_F(listen, client_gives_up)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 0, &at);
	int c[2], s;

	ASSERT_OK(l);
	c[0] = hps_dial(&self->t, at);
	ASSERT_OK(c[0]);
	c[1] = hps_dial_in_vain(&self->t, at);
	ASSERT_OK(c[1]);
	EXPECT_EQ(0, hps_poll(c[1], POLLOUT, 0));
	close(c[1]);
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_OK(hps_nonblock(l, true));
	EXPECT_ERRNO(EAGAIN, accept(l, NULL, NULL));
	c[1] = hps_dial(&self->t, at);
	ASSERT_OK(c[1]);
	EXPECT_OK(hps_accept(l));
}

TEST_F(listen, order)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, CLIENTS, &at);
	int c[CLIENTS], i;

	ASSERT_OK(l);
	for (i = 0; i < CLIENTS; i++) {
		c[i] = hps_dial(&self->t, at);
		ASSERT_OK(c[i]);
		/* Another processor may be slower to see that than this to go on. */
		ASSERT_TRUE(hps_until_acceptable(l, i + 1));
	}
	for (i = 0; i < CLIENTS; i++) {
		struct hps_addr from, peer;
		int s = hps_accept(l);

		ASSERT_OK(s);
		from = hps_name(c[i]);
		peer = hps_peer(s);
		EXPECT_TRUE(hps_same(&from, &peer));
	}
}

TEST_F(listen, accept_flags)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 4, &at);
	int flags, i, s;

	ASSERT_OK(l);
	for (i = 0; i < 4; i++) {
		flags = (i & 1 ? SOCK_NONBLOCK : 0) | (i & 2 ? SOCK_CLOEXEC : 0);
		ASSERT_OK(hps_dial(&self->t, at));
		ASSERT_TRUE(hps_wait(l, POLLIN));
		s = accept4(l, NULL, NULL, flags);
		ASSERT_OK(s);
		EXPECT_EQ(i & 1 ? O_NONBLOCK : 0, fcntl(s, F_GETFL) & O_NONBLOCK);
		EXPECT_EQ(i & 2 ? FD_CLOEXEC : 0, fcntl(s, F_GETFD));
	}
	EXPECT_ERRNO(EINVAL, accept4(l, NULL, NULL, 0x40));
}

TEST_F(listen, accept_nonblocking)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int s;

	ASSERT_OK(l);
	ASSERT_OK(hps_nonblock(l, true));
	EXPECT_ERRNO(EAGAIN, accept(l, NULL, NULL));
	ASSERT_OK(hps_dial(&self->t, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(0, fcntl(s, F_GETFL) & O_NONBLOCK);
	EXPECT_ERRNO(EAGAIN, accept(l, NULL, NULL));
}

TEST_F(listen, accept_address)
{
	struct hps_addr at, want;
	int l = hps_listen(&self->t, 4, &at);
	char buf[sizeof(at.ss)];
	socklen_t len;
	int c, s;

	ASSERT_OK(l);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	memset(buf, 0x5a, sizeof(buf));
	len = 6;
	s = accept(l, (void *)buf, &len);
	ASSERT_OK(s);
	want = hps_name(c);
	EXPECT_EQ(want.len, len);
	EXPECT_EQ(0, memcmp(buf, &want.sa, 6));
	EXPECT_EQ(0x5a, buf[6]);
	len = 0;
	ASSERT_OK(hps_dial(&self->t, at));
	EXPECT_OK(accept(l, (void *)buf, &len));
	EXPECT_EQ(want.len, len);
	ASSERT_OK(hps_dial(&self->t, at));
	len = -1;
	EXPECT_ERRNO(EINVAL, accept(l, (void *)buf, &len));
}

TEST_F(listen, inherits)
{
	struct linger linger = { .l_onoff = 1, .l_linger = 7 };
	struct timeval tv = { .tv_sec = 9 };
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	socklen_t len = sizeof(linger);
	int sndbuf, rcvbuf, peek_off, s;

	ASSERT_OK(l);
	ASSERT_OK(hps_set(l, SOL_SOCKET, SO_KEEPALIVE, 1));
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_NODELAY, 1));
	ASSERT_OK(setsockopt(l, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)));
	ASSERT_OK(hps_set(l, SOL_SOCKET, SO_SNDBUF, 50000));
	ASSERT_OK(hps_set(l, SOL_SOCKET, SO_RCVBUF, 60000));
	ASSERT_OK(hps_set(l, SOL_SOCKET, SO_RCVLOWAT, 3));
	/* Not before Linux 6.9 */
	hps_set(l, SOL_SOCKET, SO_PEEK_OFF, 7);
	peek_off = hps_opt(l, SOL_SOCKET, SO_PEEK_OFF);
	ASSERT_OK(hps_set(l, SOL_SOCKET, SO_REUSEADDR, 1));
	/* Not before Linux 6.3 */
	hps_set(l, SOL_SOCKET, SO_REUSEPORT, 1);
	ASSERT_OK(setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	sndbuf = hps_opt(l, SOL_SOCKET, SO_SNDBUF);
	rcvbuf = hps_opt(l, SOL_SOCKET, SO_RCVBUF);
	ASSERT_OK(hps_dial(&self->t, at));
	s = hps_accept(l);
	ASSERT_OK(s);

	EXPECT_EQ(1, hps_opt(s, SOL_SOCKET, SO_KEEPALIVE));
	EXPECT_EQ(1, hps_opt(s, SOL_TCP, TCP_NODELAY));
	EXPECT_EQ(sndbuf, hps_opt(s, SOL_SOCKET, SO_SNDBUF));
	EXPECT_EQ(rcvbuf, hps_opt(s, SOL_SOCKET, SO_RCVBUF));
	EXPECT_EQ(3, hps_opt(s, SOL_SOCKET, SO_RCVLOWAT));
	EXPECT_EQ(peek_off, hps_opt(s, SOL_SOCKET, SO_PEEK_OFF));
	EXPECT_EQ(1, hps_opt(s, SOL_SOCKET, SO_REUSEADDR));
	EXPECT_EQ(hps_opt(l, SOL_SOCKET, SO_REUSEPORT), hps_opt(s, SOL_SOCKET, SO_REUSEPORT));
	memset(&linger, 0, sizeof(linger));
	ASSERT_OK(getsockopt(s, SOL_SOCKET, SO_LINGER, &linger, &len));
	EXPECT_EQ(1, linger.l_onoff);
	EXPECT_EQ(7, linger.l_linger);
	memset(&tv, 0, sizeof(tv));
	len = sizeof(tv);
	ASSERT_OK(getsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &tv, &len));
	EXPECT_EQ(9, tv.tv_sec);
}

/* Connected sockets do not start out with what their peers were set to. */
TEST_F(listen, inherits_nothing_unset)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int s;

	ASSERT_OK(l);
	ASSERT_OK(hps_nonblock(l, true));
	ASSERT_OK(hps_dial(&self->t, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(0, hps_opt(s, SOL_SOCKET, SO_KEEPALIVE));
	EXPECT_EQ(0, hps_opt(s, SOL_TCP, TCP_NODELAY));
	EXPECT_EQ(0, fcntl(s, F_GETFL) & O_NONBLOCK);
	EXPECT_EQ(1, hps_opt(s, SOL_SOCKET, SO_RCVLOWAT));
}

TEST_F(listen, closed_with_pending)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 4, &at);
	int c[3], i;
	char byte;

	ASSERT_OK(l);
	for (i = 0; i < 3; i++) {
		c[i] = hps_dial(&self->t, at);
		ASSERT_OK(c[i]);
		EXPECT_POLL(POLLOUT, c[i]);
	}
	EXPECT_EQ(1, send(c[1], "x", 1, 0));
	ASSERT_TRUE(hps_until_acceptable(l, 3));
	close(l);
	for (i = 0; i < 3; i++) {
		EXPECT_WAIT(POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP, c[i]);
		EXPECT_ERRNO(ECONNRESET, recv(c[i], &byte, 1, 0));
		EXPECT_EQ(0, recv(c[i], &byte, 1, 0));
	}
	EXPECT_ERRNO(ECONNREFUSED, hps_dial(&self->t, at));
}

/* Those who wait for room when the listener goes are refused. */
TEST_F(listen, closed_with_waiting)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 0, &at);
	int c;

	ASSERT_OK(l);
	ASSERT_OK(hps_dial(&self->t, at));
	c = hps_dial_in_vain(&self->t, at);
	ASSERT_OK(c);
	EXPECT_EQ(0, hps_poll(c, POLLOUT, 0));
	close(l);
	EXPECT_TRUE(hps_wait(c, POLLOUT) & POLLERR);
	EXPECT_EQ(ECONNREFUSED, hps_error(c));
}

TEST_F(listen, client_closed_before_accept)
{
	struct hps_addr at, from, peer;
	int l = hps_listen(&self->t, 1, &at);
	int c, s;

	ASSERT_OK(l);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	from = hps_name(c);
	EXPECT_EQ(5000, hps_push(c, 5000, 5000, 1));
	close(c);
	s = hps_accept(l);
	ASSERT_OK(s);
	peer = hps_peer(s);
	EXPECT_TRUE(hps_same(&from, &peer));
	EXPECT_EQ(5000, hps_pull(s, 6000, 6000, 1));
	EXPECT_EQ(0, errno);
}

TEST_F(listen, client_reset_before_accept)
{
	struct hps_addr at, from, peer = { .len = sizeof(peer.ss) };
	int l = hps_listen(&self->t, 1, &at);
	int c, s;
	char byte;

	ASSERT_OK(l);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	from = hps_name(c);
	ASSERT_TRUE(hps_until_acceptable(l, 1));
	ASSERT_OK(hps_reset(c));
	s = accept(l, &peer.sa, &peer.len);
	ASSERT_OK(s);
	EXPECT_TRUE(hps_same(&from, &peer));
	EXPECT_TRUE(hps_wait(s, POLLIN) & POLLERR);
	EXPECT_ERRNO(ECONNRESET, recv(s, &byte, 1, 0));
	EXPECT_EQ(0, recv(s, &byte, 1, 0));
	EXPECT_EQ(0, hps_peer(s).len);
}

TEST_F(listen, data_before_accept)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int64_t sent;
	int c, s;

	ASSERT_OK(l);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	sent = hps_stuff(c, 0, 1);
	EXPECT_GE(sent, 20000);
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(sent, hps_pull(s, sent, 65536, 1));
}

/* What came before accept() made the peer stop; a program may just look how much it is. */
TEST_F(listen, shown_after_accept)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int64_t sent;
	int c, s;

	ASSERT_OK(l);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	sent = hps_stuff(c, 0, 1);
	EXPECT_GE(sent, 20000);
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_TRUE(hps_until_inq(s, 20000)) TH_LOG("%d bytes", hps_inq(s));
	EXPECT_EQ(sent, hps_pull(s, sent, 65536, 1));
}

TEST_F(listen, poll)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 2, &at);

	ASSERT_OK(l);
	EXPECT_POLL(0, l);
	ASSERT_OK(hps_dial(&self->t, at));
	EXPECT_WAIT(POLLIN, l);
	ASSERT_OK(hps_dial(&self->t, at));
	EXPECT_OK(accept(l, NULL, NULL));
	EXPECT_WAIT(POLLIN, l);
	EXPECT_OK(accept(l, NULL, NULL));
	EXPECT_POLL(0, l);
}

TEST_F(listen, wakes_poll)
{
	struct hps_addr at;
	struct hps_call call = { .fn = hps_poll_call, .arg = POLLIN };

	call.fd = hps_listen(&self->t, 1, &at);
	ASSERT_OK(call.fd);
	hps_block(&call);
	ASSERT_OK(hps_dial(&self->t, at));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLIN, call.ret);
}

TEST_F(listen, other_calls)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c, s;
	char byte;

	ASSERT_OK(l);
	EXPECT_EQ(1, hps_opt(l, SOL_SOCKET, SO_ACCEPTCONN));
	EXPECT_EQ(0, hps_peer(l).len);
	EXPECT_EQ(ENOTCONN, errno);
	EXPECT_ERRNO(ENOTCONN, recv(l, &byte, 1, 0));
	EXPECT_ERRNO(EPIPE, send(l, "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(-1, hps_inq(l));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_OK(listen(l, 1));

	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_ERRNO(EINVAL, listen(c, 1));
	EXPECT_ERRNO(EINVAL, listen(s, 1));
	EXPECT_ERRNO(EINVAL, accept(s, NULL, NULL));
}

/* Who of @n listeners has a connection, or -1; it is accepted and closed. */
static int taker(struct pollfd *l, int n)
{
	int i, s;

	if (poll(l, n, hps_deadline()) != 1)
		return -1;
	for (i = 0; !l[i].revents; i++)
		;
	s = hps_accept(l[i].fd);
	return s < 0 || close(s) ? -1 : i;
}

/* Each of those that share a port gets some, and the others all once it is gone. */
TEST_F(listen, reuseport)
{
	enum { LISTENERS = 3, DIALS = 48 };
	struct pollfd l[LISTENERS];
	struct hps_addr at = self->t.b;
	int got[LISTENERS] = {}, i, who, c;

	if (!hps_shares_ports(&self->t))
		SKIP(return, "this kernel refuses SO_REUSEPORT off AF_INET");
	for (i = 0; i < LISTENERS; i++) {
		l[i].fd = hps_bound_with(&self->t, SOL_SOCKET, SO_REUSEPORT, at);
		l[i].events = POLLIN;
		ASSERT_OK(l[i].fd);
		ASSERT_OK(listen(l[i].fd, DIALS));
		at = hps_name(l[i].fd);
	}
	for (i = 0; i < DIALS; i++) {
		c = hps_dial(&self->t, at);
		ASSERT_OK(c);
		who = taker(l, LISTENERS);
		ASSERT_LE(0, who);
		got[who]++;
		close(c);
	}
	for (i = 0; i < LISTENERS; i++)
		EXPECT_LT(0, got[i]);
	close(l[0].fd);
	for (i = 0; i < DIALS / 4; i++) {
		c = hps_dial(&self->t, at);
		ASSERT_OK(c);
		ASSERT_LE(0, taker(l + 1, LISTENERS - 1));
		close(c);
	}
}

TEST_F(listen, shutdown_write)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);

	ASSERT_OK(l);
	EXPECT_OK(shutdown(l, SHUT_WR));
	EXPECT_EQ(1, hps_opt(l, SOL_SOCKET, SO_ACCEPTCONN));
	EXPECT_OK(hps_dial(&self->t, at));
	EXPECT_OK(hps_accept(l));
}

TEST_F(listen, shutdown_read)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c;
	char byte;

	ASSERT_OK(l);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	ASSERT_TRUE(hps_until_acceptable(l, 1));
	EXPECT_OK(shutdown(l, SHUT_RD));
	EXPECT_TRUE(hps_wait(c, POLLIN) & POLLERR);
	EXPECT_ERRNO(ECONNRESET, recv(c, &byte, 1, 0));
	EXPECT_EQ(0, hps_opt(l, SOL_SOCKET, SO_ACCEPTCONN));
	EXPECT_ERRNO(EINVAL, accept(l, NULL, NULL));
	EXPECT_POLL(POLLOUT | POLLHUP, l);
	EXPECT_ERRNO(ENOTCONN, shutdown(l, SHUT_RD));
	EXPECT_ERRNO(ECONNREFUSED, hps_dial(&self->t, at));
	EXPECT_OK(listen(l, 1));
	EXPECT_OK(hps_dial(&self->t, hps_name(l)));
}

TEST_F(listen, shutdown_wakes_accept)
{
	struct hps_call call = { .fn = hps_accept_call };
	struct hps_addr at;

	call.fd = hps_listen(&self->t, 1, &at);
	ASSERT_OK(call.fd);
	hps_block(&call);
	EXPECT_OK(shutdown(call.fd, SHUT_RDWR));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINVAL, call.err);
}

TEST_F(listen, accept_waits)
{
	struct hps_call call = { .fn = hps_accept_call };
	struct hps_addr at, from, peer;
	int c;

	call.fd = hps_listen(&self->t, 1, &at);
	ASSERT_OK(call.fd);
	hps_block(&call);
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	ASSERT_TRUE(hps_done(&call));
	ASSERT_GE(call.ret, 0);
	from = hps_name(c);
	peer = hps_peer(call.ret);
	EXPECT_TRUE(hps_same(&from, &peer));
}

TEST_F(listen, accept_interrupted)
{
	struct hps_call call = { .fn = hps_accept_call };
	struct hps_addr at;

	call.fd = hps_listen(&self->t, 1, &at);
	ASSERT_OK(call.fd);
	hps_catch(SIGUSR1, 0);
	hps_block(&call);
	pthread_kill(call.thread, SIGUSR1);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);

	/* With SA_RESTART it goes on. */
	hps_catch(SIGUSR1, SA_RESTART);
	hps_block(&call);
	hps_interrupt(&call);
	ASSERT_OK(hps_dial(&self->t, at));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_GE(call.ret, 0);
}

TEST_F(listen, accept_timeout)
{
	struct timeval tv = { .tv_usec = 150000 };
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int64_t start = hps_now();

	ASSERT_OK(l);
	ASSERT_OK(setsockopt(l, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	EXPECT_ERRNO(EAGAIN, accept(l, NULL, NULL));
	EXPECT_GE(hps_now() - start, 100);
	ASSERT_OK(hps_dial(&self->t, at));
	EXPECT_TRUE(hps_wait(l, POLLIN));
	EXPECT_OK(accept(l, NULL, NULL));
}

TEST_F(listen, two_accept)
{
	struct hps_call call[2] = {
		{ .fn = hps_accept_call }, { .fn = hps_accept_call },
	};
	struct hps_addr at;
	int i;

	call[0].fd = hps_listen(&self->t, 2, &at);
	call[1].fd = call[0].fd;
	ASSERT_OK(call[0].fd);
	for (i = 0; i < 2; i++)
		hps_block(&call[i]);
	ASSERT_OK(hps_dial(&self->t, at));
	ASSERT_OK(hps_dial(&self->t, at));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(hps_done(&call[i]));
		EXPECT_GE(call[i].ret, 0);
	}
	EXPECT_NE(call[0].ret, call[1].ret);
}

/* What can be accepted is established at the other end, whatever that end does next. */
TEST_F(listen, accepted_is_connected)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at), i;
	char byte;

	ASSERT_OK(l);
	for (i = 0; i < 100; i++) {
		struct tcp_info info = { 0 };
		socklen_t len = sizeof(info);
		int c = hps_dial_nb(&self->t, at), s;

		ASSERT_OK(c);
		s = hps_accept(l);
		ASSERT_OK(s);
		ASSERT_OK(getsockopt(c, SOL_TCP, TCP_INFO, &info, &len));
		ASSERT_EQ(TCP_ESTABLISHED, info.tcpi_state);
		ASSERT_OK(shutdown(c, SHUT_WR));
		ASSERT_EQ(0, recv(s, &byte, 1, 0));
		ASSERT_OK(close(s));
		ASSERT_OK(close(c));
	}
}

/* The server may speak, and leave, before the client has looked. */
TEST_F(listen, server_is_first)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at), i;
	char byte;

	ASSERT_OK(l);
	for (i = 0; i < 100; i++) {
		int c = hps_dial_nb(&self->t, at), s;

		ASSERT_OK(c);
		s = hps_accept(l);
		ASSERT_OK(s);
		ASSERT_EQ(1, send(s, "x", 1, 0));
		ASSERT_OK(shutdown(s, i & 1 ? SHUT_WR : SHUT_RDWR));
		EXPECT_WAIT(POLLIN | POLLOUT | POLLRDHUP, c);
		ASSERT_EQ(0, hps_error(c));
		ASSERT_EQ(1, recv(c, &byte, 1, 0));
		ASSERT_EQ(0, recv(c, &byte, 1, 0));
		ASSERT_OK(close(c));
		ASSERT_OK(close(s));
	}
}

/* More clients at once than the queue takes: all get in, none twice. */
TEST_F(listen, crowd)
{
	struct pollfd p[33];
	struct hps_addr at;
	int l = hps_listen(&self->t, 4, &at);
	int s[32], seen[32] = { 0 }, in = 0, out = 0, i;

	ASSERT_OK(l);
	p[32] = (struct pollfd){ .fd = l, .events = POLLIN };
	for (i = 0; i < 32; i++) {
		p[i] = (struct pollfd){ .fd = hps_dial_nb(&self->t, at), .events = POLLOUT };
		ASSERT_OK(p[i].fd);
	}
	while (in < 32 || out < 32) {
		ASSERT_LT(0, poll(p, 33, hps_deadline()));
		/* A client that speaks makes TCP remember it, too. */
		for (i = 0; i < 32; i++)
			if (p[i].revents & POLLOUT) {
				char byte = i;

				ASSERT_EQ(1, send(p[i].fd, &byte, 1, 0));
				p[i].events = 0;
				out++;
			}
		if (p[32].revents & POLLIN) {
			s[in] = accept(l, NULL, NULL);
			ASSERT_OK(s[in]);
			in++;
		}
	}
	for (i = 0; i < 32; i++) {
		char byte = -1;

		ASSERT_EQ(1, recv(s[i], &byte, 1, 0));
		ASSERT_LT((unsigned char)byte, 32);
		EXPECT_EQ(1, ++seen[(int)byte]);
	}
}

/* Binding is not yet listening. */
TEST_F(listen, bound_only)
{
	int fd = hps_bound(&self->t, 0, self->t.b);

	ASSERT_OK(fd);
	EXPECT_ERRNO(ECONNREFUSED, hps_dial(&self->t, hps_name(fd)));
	EXPECT_ERRNO(EINVAL, accept(fd, NULL, NULL));
}

TEST_HARNESS_MAIN
