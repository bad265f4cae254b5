// SPDX-License-Identifier: GPL-2.0
/* poll(), select() and epoll: what is reported in every state, and when. */
#include "hps_test.h"

#include <sys/epoll.h>
#include <sys/select.h>

#define CLIENTS 50
#define DEAD (POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP)
#define ENDED (POLLIN | POLLOUT | POLLHUP | POLLRDHUP)

HPS_PAIR_FIXTURE(poll)

static char buf[65536];

/* epoll events of one descriptor now, 0 where there are none. */
static int ready(int ep, int ms)
{
	struct epoll_event event;

	return epoll_wait(ep, &event, 1, ms) == 1 ? event.events : 0;
}

/* The next events, by the deadline. */
static int next(int ep)
{
	return ready(ep, hps_deadline());
}

static bool quiet(int ep)
{
	return !ready(ep, 100);
}

static int watch(int ep, int op, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	return epoll_ctl(ep, op, fd, &event);
}

static int watching(int fd, uint32_t events)
{
	int ep = epoll_create1(0);

	return ep < 0 || watch(ep, EPOLL_CTL_ADD, fd, events) ? -1 : ep;
}

TEST_F(poll, connected)
{
	EXPECT_POLL(POLLOUT, self->c);
	EXPECT_POLL(POLLOUT, self->s);
	EXPECT_EQ(POLLOUT | POLLWRNORM,
		  hps_poll(self->c, POLLOUT | POLLWRNORM | POLLRDNORM | POLLRDBAND | POLLPRI, 0));
}

TEST_F(poll, readable)
{
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	EXPECT_WAIT(POLLIN | POLLOUT, self->s);
	EXPECT_EQ(POLLIN | POLLRDNORM, hps_poll(self->s, POLLIN | POLLRDNORM, 0));
	EXPECT_EQ(2, recv(self->s, buf, 2, 0));
	EXPECT_POLL(POLLIN | POLLOUT, self->s);
	EXPECT_EQ(1, recv(self->s, buf, 2, 0));
	EXPECT_POLL(POLLOUT, self->s);
}

TEST_F(poll, full)
{
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	EXPECT_POLL(0, self->c);
	ASSERT_EQ(1, send(self->s, "x", 1, 0));
	EXPECT_WAIT(POLLIN, self->c);
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	EXPECT_WAIT(POLLIN | POLLOUT, self->c);
}

TEST_F(poll, half_closed)
{
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_POLL(POLLOUT, self->c);
	EXPECT_WAIT(POLLIN | POLLOUT | POLLRDHUP, self->s);
	EXPECT_EQ(0, recv(self->s, buf, 1, 0));
	EXPECT_POLL(POLLIN | POLLOUT | POLLRDHUP, self->s);
	ASSERT_EQ(1, send(self->s, "x", 1, 0));
	EXPECT_WAIT(POLLIN | POLLOUT, self->c);
	ASSERT_OK(shutdown(self->s, SHUT_WR));
	EXPECT_WAIT(ENDED, self->s);
	EXPECT_WAIT(ENDED, self->c);
	EXPECT_EQ(1, recv(self->c, buf, 2, 0));
	EXPECT_POLL(ENDED, self->c);
}

TEST_F(poll, shutdown_read)
{
	ASSERT_OK(shutdown(self->c, SHUT_RD));
	EXPECT_POLL(POLLIN | POLLOUT | POLLRDHUP, self->c);
	EXPECT_POLL(POLLOUT, self->s);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_POLL(ENDED, self->c);
	EXPECT_WAIT(POLLIN | POLLOUT | POLLRDHUP, self->s);
}

TEST_F(poll, shutdown_both)
{
	ASSERT_OK(shutdown(self->c, SHUT_RDWR));
	EXPECT_POLL(ENDED, self->c);
	EXPECT_WAIT(POLLIN | POLLOUT | POLLRDHUP, self->s);
}

TEST_F(poll, reset)
{
	ASSERT_OK(hps_reset(self->c));
	EXPECT_WAIT(DEAD, self->s);
	EXPECT_POLL(DEAD, self->s);
	EXPECT_EQ(ECONNRESET, hps_error(self->s));
	EXPECT_POLL(ENDED, self->s);
}

TEST_F(poll, reset_with_data)
{
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	EXPECT_TRUE(hps_until_inq(self->s, 3));
	ASSERT_OK(hps_reset(self->c));
	EXPECT_WAIT(DEAD, self->s);
	EXPECT_EQ(3, recv(self->s, buf, 10, 0));
	EXPECT_POLL(DEAD, self->s);
	EXPECT_ERRNO(ECONNRESET, recv(self->s, buf, 10, 0));
	EXPECT_POLL(ENDED, self->s);
	EXPECT_EQ(0, recv(self->s, buf, 10, 0));
}

/* What connecting and refused sockets report is in stream_connect. */
TEST_F(poll, connecting_ready)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_client(&self->t, SOCK_NONBLOCK);
	int ep = watching(c, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);

	ASSERT_OK(l);
	ASSERT_OK(c);
	ASSERT_OK(ep);
	EXPECT_EQ(EPOLLOUT | EPOLLHUP, next(ep));
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, at));
	EXPECT_EQ(EPOLLOUT, next(ep));
	EXPECT_TRUE(quiet(ep));
	EXPECT_EQ(0, hps_error(c));
}

TEST_F(poll, connecting_refused)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at);
	int c = hps_client(&self->t, SOCK_NONBLOCK), ep;

	ASSERT_OK(l);
	ASSERT_OK(c);
	close(l);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, at));
	ep = watching(c, EPOLLIN | EPOLLOUT | EPOLLRDHUP);
	ASSERT_OK(ep);
	EXPECT_EQ(DEAD, next(ep));
	EXPECT_EQ(ECONNREFUSED, hps_error(c));
	EXPECT_EQ(ENDED, next(ep));
}

TEST_F(poll, select)
{
	struct timeval tv = { .tv_sec = hps_deadline() / 1000 };
	struct timeval none = { 0 };
	int top = (self->c > self->s ? self->c : self->s) + 1;
	fd_set in, out, ex;
	int64_t sent;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&ex);
	FD_SET(self->c, &in);
	FD_SET(self->c, &out);
	FD_SET(self->c, &ex);
	FD_SET(self->s, &in);
	EXPECT_EQ(1, select(top, &in, &out, &ex, &none));
	EXPECT_TRUE(FD_ISSET(self->c, &out));

	sent = hps_stuff(self->c, 0, 1);
	ASSERT_LT(0, sent);
	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(self->c, &out);
	FD_SET(self->s, &in);
	EXPECT_EQ(1, select(top, &in, &out, NULL, &none));
	EXPECT_TRUE(FD_ISSET(self->s, &in));
	EXPECT_FALSE(FD_ISSET(self->c, &out));

	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	FD_ZERO(&out);
	FD_SET(self->c, &out);
	EXPECT_EQ(1, select(top, NULL, &out, NULL, &tv));

	ASSERT_OK(shutdown(self->c, SHUT_WR));
	FD_ZERO(&in);
	FD_SET(self->s, &in);
	EXPECT_EQ(1, select(top, &in, NULL, NULL, &tv));
	EXPECT_EQ(0, recv(self->s, buf, 1, 0));
}

TEST_F(poll, level)
{
	int ep = watching(self->s, EPOLLIN);

	ASSERT_OK(ep);
	EXPECT_EQ(0, ready(ep, 0));
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	EXPECT_EQ(EPOLLIN, next(ep));
	EXPECT_EQ(EPOLLIN, next(ep));
	EXPECT_EQ(2, recv(self->s, buf, 2, 0));
	EXPECT_EQ(EPOLLIN, next(ep));
	EXPECT_EQ(1, recv(self->s, buf, 2, 0));
	EXPECT_TRUE(quiet(ep));
}

/* An edge for every arrival, whether or not the last one was read. */
TEST_F(poll, edge)
{
	int ep = watching(self->s, EPOLLIN | EPOLLET), i;

	ASSERT_OK(ep);
	EXPECT_TRUE(quiet(ep));
	for (i = 0; i < 5; i++) {
		ASSERT_EQ(3, send(self->c, "abc", 3, 0));
		EXPECT_EQ(EPOLLIN, next(ep));
		EXPECT_TRUE(quiet(ep));
	}
	EXPECT_EQ(10, recv(self->s, buf, 10, 0));
	EXPECT_TRUE(quiet(ep));
	EXPECT_EQ(5, recv(self->s, buf, 10, 0));
	EXPECT_TRUE(quiet(ep));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(EPOLLIN, next(ep));
	EXPECT_TRUE(quiet(ep));
}

TEST_F(poll, edge_writable)
{
	int64_t sent;
	int ep;

	/* That it is connected is told once more to who was not there to hear it. */
	ASSERT_TRUE(hps_settle());
	ep = watching(self->c, EPOLLOUT | EPOLLET);
	ASSERT_OK(ep);
	EXPECT_EQ(EPOLLOUT, next(ep));
	EXPECT_TRUE(quiet(ep));
	sent = hps_stuff(self->c, 0, 1);
	ASSERT_LT(0, sent);
	/* Room that came and went while it was being filled */
	while (ready(ep, 0))
		;
	EXPECT_TRUE(quiet(ep));
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	EXPECT_EQ(EPOLLOUT, next(ep));
	EXPECT_WAIT(POLLOUT, self->c);
}

TEST_F(poll, edge_hangup)
{
	int ep = watching(self->s, EPOLLIN | EPOLLRDHUP | EPOLLET);

	ASSERT_OK(ep);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(EPOLLIN | EPOLLRDHUP, next(ep));
	EXPECT_TRUE(quiet(ep));
	ASSERT_OK(shutdown(self->s, SHUT_WR));
	EXPECT_EQ(EPOLLIN | EPOLLRDHUP | EPOLLHUP, next(ep));
}

TEST_F(poll, edge_reset)
{
	int ep = watching(self->s, EPOLLET), again;

	ASSERT_OK(ep);
	EXPECT_TRUE(quiet(ep));
	ASSERT_OK(hps_reset(self->c));
	/*
	 * ERR and HUP come unasked.  The kernel wakes once for the state and once for the
	 * error, and who is quick between the two sees both.
	 */
	EXPECT_EQ(EPOLLERR | EPOLLHUP, next(ep));
	again = ready(ep, 100);
	EXPECT_TRUE(!again || again == (EPOLLERR | EPOLLHUP));
	EXPECT_TRUE(quiet(ep));
}

TEST_F(poll, edge_listener)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 4, &at), i;
	int ep = watching(l, EPOLLIN | EPOLLET);

	ASSERT_OK(l);
	ASSERT_OK(ep);
	for (i = 0; i < 3; i++) {
		ASSERT_OK(hps_dial(&self->t, at));
		EXPECT_EQ(EPOLLIN, next(ep));
		EXPECT_TRUE(quiet(ep));
	}
	for (i = 0; i < 3; i++)
		EXPECT_OK(hps_accept(l));
	EXPECT_TRUE(quiet(ep));
}

TEST_F(poll, oneshot)
{
	int ep = watching(self->s, EPOLLIN | EPOLLONESHOT);

	ASSERT_OK(ep);
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	EXPECT_EQ(EPOLLIN, next(ep));
	EXPECT_TRUE(quiet(ep));
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	EXPECT_TRUE(quiet(ep));
	ASSERT_OK(watch(ep, EPOLL_CTL_MOD, self->s, EPOLLIN | EPOLLONESHOT));
	EXPECT_EQ(EPOLLIN, next(ep));
	ASSERT_TRUE(hps_until_inq(self->s, 6));
	EXPECT_EQ(6, recv(self->s, buf, 10, 0));
	ASSERT_OK(watch(ep, EPOLL_CTL_MOD, self->s, EPOLLIN | EPOLLONESHOT));
	EXPECT_TRUE(quiet(ep));
}

/* Two that wait for one listener: a connection wakes one of them at least. */
TEST_F(poll, exclusive)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 4, &at);
	int ep[2], i, woken = 0;

	ASSERT_OK(l);
	for (i = 0; i < 2; i++) {
		ep[i] = watching(l, EPOLLIN | EPOLLEXCLUSIVE);
		ASSERT_OK(ep[i]);
	}
	ASSERT_OK(hps_dial(&self->t, at));
	/* What it has to accept can be seen before they are woken. */
	EXPECT_TRUE(hps_wait_either(ep, POLLIN));
	for (i = 0; i < 2; i++)
		woken += ready(ep[i], 0) == EPOLLIN;
	EXPECT_LE(1, woken);
	EXPECT_OK(accept(l, NULL, NULL));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, ready(ep[i], 0));
	}
}

TEST_F(poll, modify)
{
	int ep = watching(self->s, EPOLLIN | EPOLLET);

	ASSERT_OK(ep);
	EXPECT_TRUE(quiet(ep));
	ASSERT_OK(watch(ep, EPOLL_CTL_MOD, self->s, EPOLLOUT | EPOLLET));
	EXPECT_EQ(EPOLLOUT, next(ep));
	ASSERT_EQ(3, send(self->c, "abc", 3, 0));
	/* The bytes can be seen before their edge comes. */
	EXPECT_TRUE(hps_until_inq(self->s, 3));
	ASSERT_TRUE(hps_settle());
	ASSERT_OK(watch(ep, EPOLL_CTL_MOD, self->s, EPOLLIN | EPOLLET));
	EXPECT_EQ(EPOLLIN, next(ep));
	EXPECT_TRUE(quiet(ep));
}

TEST_F(poll, closed_is_forgotten)
{
	int ep = watching(self->s, EPOLLIN | EPOLLOUT);

	ASSERT_OK(ep);
	EXPECT_EQ(EPOLLOUT, next(ep));
	close(self->s);
	EXPECT_EQ(0, ready(ep, 0));
}

/* One who waits is woken: by data, */
TEST_F(poll, wakes_data)
{
	struct hps_call call = { .fn = hps_poll_call, .fd = self->s, .arg = POLLIN };

	hps_block(&call);
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLIN, call.ret);
}

/* by the end, */
TEST_F(poll, wakes_end)
{
	struct hps_call call = { .fn = hps_poll_call, .fd = self->s, .arg = POLLIN | POLLRDHUP };

	hps_block(&call);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLIN | POLLRDHUP, call.ret);
}

/* by the end alone, */
TEST_F(poll, wakes_rdhup)
{
	struct hps_call call = { .fn = hps_poll_call, .fd = self->s, .arg = POLLRDHUP };

	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 1));
	hps_block(&call);
	close(self->c);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLRDHUP, call.ret);
}

/* by a reset, whatever it waits for, */
TEST_F(poll, wakes_reset)
{
	struct hps_call call = { .fn = hps_poll_call, .fd = self->s, .arg = 0 };

	hps_block(&call);
	ASSERT_OK(hps_reset(self->c));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLERR | POLLHUP, call.ret);
}

/* by its own shutdown, */
TEST_F(poll, wakes_shutdown)
{
	struct hps_call call = { .fn = hps_poll_call, .fd = self->s, .arg = POLLIN };

	hps_block(&call);
	ASSERT_OK(shutdown(self->s, SHUT_RD));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLIN, call.ret);
}

/* and by room to write. */
TEST_F(poll, wakes_room)
{
	struct hps_call call = { .fn = hps_poll_call, .fd = self->c, .arg = POLLOUT };
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	hps_block(&call);
	EXPECT_FALSE(call.done);
	EXPECT_EQ(sent, hps_pull(self->s, sent, 65536, 1));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLOUT, call.ret);
}

/* It waits for more than is there; then it wants less. */
TEST_F(poll, wakes_lowat)
{
	struct hps_call call = { .fn = hps_poll_call, .fd = self->s, .arg = POLLIN };

	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVLOWAT, 100));
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 5));
	hps_block(&call);
	EXPECT_FALSE(call.done);
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVLOWAT, 6));
	hps_until_blocked(call.tid);
	EXPECT_FALSE(call.done);
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVLOWAT, 5));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLIN, call.ret);
}

/* Every setting is an edge if there is enough then. */
TEST_F(poll, edge_lowat)
{
	int ep = watching(self->s, EPOLLIN | EPOLLET);

	ASSERT_OK(ep);
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVLOWAT, 10));
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 5));
	EXPECT_TRUE(quiet(ep));
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVLOWAT, 3));
	EXPECT_EQ(EPOLLIN, next(ep));
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVLOWAT, 10));
	EXPECT_TRUE(quiet(ep));
	ASSERT_EQ(5, send(self->c, "world", 5, 0));
	EXPECT_EQ(EPOLLIN, next(ep));
	/* The end is more than enough. */
	ASSERT_EQ(10, recv(self->s, buf, 10, 0));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(EPOLLIN, next(ep));
	EXPECT_TRUE(quiet(ep));
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVLOWAT, 5));
	EXPECT_EQ(EPOLLIN, next(ep));
}

TEST_F(poll, wakes_room_by_reset)
{
	struct hps_call call = { .fn = hps_poll_call, .fd = self->c, .arg = POLLOUT };

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	hps_block(&call);
	ASSERT_OK(hps_reset(self->s));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(POLLOUT | POLLERR | POLLHUP, call.ret);
}

/*
 * An edge-triggered server that never waits but in epoll_wait(), and clients
 * that send more than they have read.
 */
struct echo {
	int fd;
	size_t have, at;
	bool end;
	char buf[10000];
};

struct server {
	int listener;
	int served;
	const char *failed;
};

/* Until nothing more can be done; false once the connection is over. */
static bool echo(struct echo *e)
{
	ssize_t n;

	for (;;) {
		while (e->at < e->have) {
			n = send(e->fd, e->buf + e->at, e->have - e->at, MSG_NOSIGNAL);
			if (n < 0)
				return errno == EAGAIN;
			e->at += n;
		}
		if (e->end)
			return false;
		n = recv(e->fd, e->buf, sizeof(e->buf), 0);
		if (n < 0)
			return errno == EAGAIN;
		e->end = !n;
		e->have = n;
		e->at = 0;
	}
}

static void *serve(void *arg)
{
	struct epoll_event event, got[16];
	struct server *server = arg;
	int ep = epoll_create1(0), n, i;
	struct echo *e;

	event = (struct epoll_event){ .events = EPOLLIN | EPOLLET };
	epoll_ctl(ep, EPOLL_CTL_ADD, server->listener, &event);
	while (server->served < CLIENTS) {
		n = epoll_wait(ep, got, 16, hps_deadline());
		if (n <= 0) {
			server->failed = "no more events";
			break;
		}
		for (i = 0; i < n; i++) {
			e = got[i].data.ptr;
			if (e && !echo(e)) {
				if (!e->end)
					server->failed = "a connection failed";
				close(e->fd);
				free(e);
				server->served++;
			}
			while (!e) {
				int fd = accept4(server->listener, NULL, NULL, SOCK_NONBLOCK);

				if (fd < 0)
					break;
				event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
				event.data.ptr = calloc(1, sizeof(*e));
				((struct echo *)event.data.ptr)->fd = fd;
				epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event);
			}
		}
	}
	close(ep);
	return NULL;
}

TEST_F(poll, edge_server)
{
	struct { int fd; int64_t len, out, in; } c[CLIENTS];
	struct server server = { 0 };
	uint64_t random = hps_env("HPS_SEED", 1);
	int open = CLIENTS, i;
	struct pollfd p[CLIENTS];
	struct hps_addr at;
	pthread_t thread;

	server.listener = hps_listen(&self->t, CLIENTS, &at);
	ASSERT_OK(server.listener);
	ASSERT_OK(hps_nonblock(server.listener, true));
	ASSERT_EQ(0, pthread_create(&thread, NULL, serve, &server));
	for (i = 0; i < CLIENTS; i++) {
		c[i].fd = hps_dial_nb(&self->t, at);
		ASSERT_OK(c[i].fd);
		c[i].len = 1 + hps_random(&random) % (i % 10 ? 20000 : 200000);
		c[i].in = 0;
		c[i].out = 0;
		p[i] = (struct pollfd){ c[i].fd, POLLIN | POLLOUT, 0 };
	}
	while (open) {
		ASSERT_LT(0, poll(p, CLIENTS, hps_deadline()));
		for (i = 0; i < CLIENTS; i++) {
			int64_t len = c[i].len - c[i].out;
			ssize_t n;

			if (p[i].revents & POLLOUT) {
				len = len < (int64_t)sizeof(buf) ? len : (int64_t)sizeof(buf);
				hps_fill(buf, len, c[i].out, i);
				n = send(c[i].fd, buf, len, MSG_DONTWAIT);
				ASSERT_LT(0, n);
				c[i].out += n;
				if (c[i].out == c[i].len) {
					ASSERT_OK(shutdown(c[i].fd, SHUT_WR));
					p[i].events = POLLIN;
				}
			}
			if (p[i].revents & POLLIN) {
				n = recv(c[i].fd, buf, sizeof(buf), MSG_DONTWAIT);
				ASSERT_LE(0, n);
				ASSERT_EQ(n, hps_check(buf, n, c[i].in, i));
				c[i].in += n;
				if (!n) {
					EXPECT_EQ(c[i].len, c[i].in);
					close(c[i].fd);
					p[i].fd = -1;
					p[i].revents = 0;
					open--;
				}
			}
		}
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(CLIENTS, server.served);
	EXPECT_EQ(NULL, server.failed) TH_LOG("server: %s", server.failed);
}

TEST_HARNESS_MAIN
