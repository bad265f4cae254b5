// SPDX-License-Identifier: GPL-2.0
/* One socket, several threads, and signals. */
#include "hps_test.h"

#include <sched.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/stat.h>

#define MIB (1 << 20)
#define THREADS 3

HPS_PAIR_FIXTURE(threads)

static uint8_t big[2][MIB], back[2 * MIB];

static long connect_call(struct hps_call *call)
{
	return hps_connect(call->fd, *(struct hps_addr *)call->buf);
}

/* connect() that undoes one, from whatever state. */
static int disconnect(int fd)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };

	return connect(fd, &none, sizeof(none));
}

static int set_timeout(int fd, int name)
{
	struct timeval tv = { .tv_sec = 1000 };

	return setsockopt(fd, SOL_SOCKET, name, &tv, sizeof(tv));
}

/* Nothing was taken: the call is made anew, unless it had a time limit. */
TEST_F(threads, send_restarts)
{
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = big[0], .len = 1000 };
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	hps_fill(big[0], 1000, sent, 1);
	hps_catch(SIGUSR1, SA_RESTART);
	hps_block(&call);
	hps_interrupt(&call);
	hps_until_blocked(call.tid);
	EXPECT_FALSE(call.done);
	EXPECT_EQ(sent + 1000, hps_pull(self->s, sent + 1000, 65536, 1));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(1000, call.ret);
}

TEST_F(threads, send_timeout_interrupted)
{
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = big[0], .len = 1000 };

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	ASSERT_OK(set_timeout(self->c, SO_SNDTIMEO));
	hps_catch(SIGUSR1, SA_RESTART);
	hps_block(&call);
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
}

/* What was taken before the signal is what the call returns, and what arrives. */
TEST_F(threads, send_part_interrupted)
{
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = big[0], .len = MIB };

	hps_buffers(self->c, 65536);
	hps_buffers(self->s, 65536);
	hps_fill(big[0], MIB, 0, 1);
	hps_catch(SIGUSR1, SA_RESTART);
	hps_block(&call);
	EXPECT_FALSE(call.done);
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	ASSERT_LT(0, call.ret);
	ASSERT_GT(MIB, call.ret);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(call.ret, hps_pull(self->s, MIB, 65536, 1));
	EXPECT_EQ(0, errno);
}

TEST_F(threads, recv_part_interrupted)
{
	struct hps_call call = {
		.fn = hps_recv_call, .fd = self->s, .buf = back, .len = 100, .arg = MSG_WAITALL,
	};

	hps_catch(SIGUSR1, SA_RESTART);
	hps_block(&call);
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	/* It has them, and waits for more. */
	ASSERT_TRUE(hps_settle());
	hps_until_blocked(call.tid);
	EXPECT_FALSE(call.done);
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(5, call.ret);
}

TEST_F(threads, accept_timeout_interrupted)
{
	struct hps_call call = { .fn = hps_accept_call };
	struct hps_addr at;

	call.fd = hps_listen(&self->t, 1, &at);
	ASSERT_OK(call.fd);
	ASSERT_OK(set_timeout(call.fd, SO_RCVTIMEO));
	hps_catch(SIGUSR1, SA_RESTART);
	hps_block(&call);
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
}

/* The second time it waits for what the first has begun. */
TEST_F(threads, connect_restarts)
{
	struct hps_addr to = hps_silent(&self->t);
	struct hps_call call = { .fn = connect_call, .buf = &to };

	call.fd = hps_client(&self->t, 0);
	ASSERT_OK(call.fd);
	hps_catch(SIGUSR1, SA_RESTART);
	hps_block(&call);
	hps_interrupt(&call);
	hps_until_blocked(call.tid);
	EXPECT_FALSE(call.done);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EHOSTUNREACH, call.err);
}

TEST_F(threads, connect_timeout_interrupted)
{
	struct hps_addr to = hps_silent(&self->t);
	struct hps_call call = { .fn = connect_call, .buf = &to };

	call.fd = hps_client(&self->t, 0);
	ASSERT_OK(call.fd);
	ASSERT_OK(set_timeout(call.fd, SO_SNDTIMEO));
	hps_catch(SIGUSR1, SA_RESTART);
	hps_block(&call);
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
	ASSERT_OK(hps_nonblock(call.fd, true));
	EXPECT_ERRNO(EALREADY, hps_connect(call.fd, to));
}

/* A call on a socket that does not connect yet: it waits, and so is interrupted. */
TEST_F(threads, send_before_connected)
{
	struct hps_addr to = hps_silent(&self->t);
	struct hps_call call = { .fn = hps_send_call, .buf = big[0], .len = 1000 };

	call.fd = hps_client(&self->t, SOCK_NONBLOCK);
	ASSERT_OK(call.fd);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(call.fd, to));
	ASSERT_OK(hps_nonblock(call.fd, false));
	hps_catch(SIGUSR1, 0);
	hps_block(&call);
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
	hps_block(&call);
	EXPECT_FALSE(call.done);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EHOSTUNREACH, call.err);
}

static void block_all(struct hps_call *call, const struct hps_call *like)
{
	int i;

	for (i = 0; i < THREADS; i++) {
		call[i] = *like;
		hps_block(&call[i]);
	}
}

/* How many of the calls ended so, 0 for err meaning a result of 0 */
static int ended(struct hps_call *call, int err)
{
	int i, n = 0;

	for (i = 0; i < THREADS; i++)
		n += err ? call[i].ret == -1 && call[i].err == err : !call[i].ret;
	return n;
}

static bool all_done(struct hps_call *call)
{
	int i;

	for (i = 0; i < THREADS; i++)
		if (!hps_done(&call[i]))
			return false;
	return true;
}

/* Whatever ends a stream is for all who wait, */
TEST_F(threads, end_for_receivers)
{
	const struct hps_call like = { .fn = hps_recv_call, .fd = self->s, .buf = back, .len = 9 };
	struct hps_call call[THREADS];

	block_all(call, &like);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(all_done(call));
	EXPECT_EQ(THREADS, ended(call, 0));
}

TEST_F(threads, shutdown_for_receivers)
{
	const struct hps_call like = { .fn = hps_recv_call, .fd = self->s, .buf = back, .len = 9 };
	struct hps_call call[THREADS];

	block_all(call, &like);
	ASSERT_OK(shutdown(self->s, SHUT_RD));
	ASSERT_TRUE(all_done(call));
	EXPECT_EQ(THREADS, ended(call, 0));
}

TEST_F(threads, shutdown_for_senders)
{
	const struct hps_call like = {
		.fn = hps_send_call, .fd = self->c, .buf = big[0], .len = 1000,
	};
	struct hps_call call[THREADS];

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	block_all(call, &like);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(all_done(call));
	EXPECT_EQ(THREADS, ended(call, EPIPE));
}

TEST_F(threads, shutdown_for_acceptors)
{
	struct hps_call call[THREADS], like = { .fn = hps_accept_call };
	struct hps_addr at;

	like.fd = hps_listen(&self->t, 1, &at);
	ASSERT_OK(like.fd);
	block_all(call, &like);
	ASSERT_OK(shutdown(like.fd, SHUT_RD));
	ASSERT_TRUE(all_done(call));
	EXPECT_EQ(THREADS, ended(call, EINVAL));
}

/* but its error is told once. */
TEST_F(threads, reset_for_receivers)
{
	const struct hps_call like = { .fn = hps_recv_call, .fd = self->s, .buf = back, .len = 9 };
	struct hps_call call[THREADS];

	block_all(call, &like);
	ASSERT_OK(hps_reset(self->c));
	ASSERT_TRUE(all_done(call));
	EXPECT_EQ(1, ended(call, ECONNRESET));
	EXPECT_EQ(THREADS - 1, ended(call, 0));
}

TEST_F(threads, reset_for_senders)
{
	const struct hps_call like = {
		.fn = hps_send_call, .fd = self->c, .buf = big[0], .len = 1000,
	};
	struct hps_call call[THREADS];

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	block_all(call, &like);
	ASSERT_OK(hps_reset(self->s));
	ASSERT_TRUE(all_done(call));
	EXPECT_EQ(1, ended(call, ECONNRESET));
	EXPECT_EQ(THREADS - 1, ended(call, EPIPE));
}

/* A call has the socket as long as it lasts. */
TEST_F(threads, close_under_send)
{
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = big[0], .len = 100000 };
	int64_t sent = hps_stuff(self->c, 0, 1);

	ASSERT_LT(0, sent);
	hps_fill(big[0], 100000, sent, 1);
	hps_block(&call);
	ASSERT_OK(close(self->c));
	hps_until_blocked(call.tid);
	EXPECT_FALSE(call.done);
	EXPECT_EQ(sent + 100000, hps_pull(self->s, sent + 200000, 65536, 1));
	EXPECT_EQ(0, errno);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(100000, call.ret);
}

/* What connect() waits for is ended in some way. */
static void under_connect(struct __test_metadata *_metadata, const struct hps *t,
			  int (*end)(int fd), int err)
{
	struct hps_addr to = hps_silent(t);
	struct hps_call call = { .fn = connect_call, .buf = &to };

	call.fd = hps_client(t, 0);
	ASSERT_OK(call.fd);
	hps_block(&call);
	ASSERT_OK(end(call.fd));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(err, call.err);
}

TEST_F(threads, close_under_connect)
{
	under_connect(_metadata, &self->t, close, EHOSTUNREACH);
}

/* The socket is taken apart below those who wait. */
TEST_F(threads, disconnect_under_recv)
{
	struct hps_call call = { .fn = hps_recv_call, .fd = self->s, .buf = back, .len = 10 };

	hps_block(&call);
	ASSERT_OK(disconnect(self->s));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EPIPE, call.err);
	EXPECT_ERRNO(ECONNRESET, recv(self->c, back, 1, 0));
}

TEST_F(threads, disconnect_under_send)
{
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = big[0], .len = 1000 };

	ASSERT_LT(0, hps_stuff(self->c, 0, 1));
	hps_block(&call);
	ASSERT_OK(disconnect(self->c));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(ECONNRESET, call.err);
}

TEST_F(threads, disconnect_under_connect)
{
	under_connect(_metadata, &self->t, disconnect, EPIPE);
}

/* Two wait for one connection: one is told why there is none. */
TEST_F(threads, connect_fails_for_two)
{
	struct hps_call call[2], like = { .fn = connect_call };
	struct hps_addr to = hps_silent(&self->t);
	int i, told;

	like.fd = hps_client(&self->t, 0);
	like.buf = &to;
	ASSERT_OK(like.fd);
	for (i = 0; i < 2; i++) {
		call[i] = like;
		hps_block(&call[i]);
	}
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(hps_done(&call[i]));
		EXPECT_EQ(-1, call[i].ret);
	}
	told = call[1].err == EHOSTUNREACH;
	EXPECT_EQ(EHOSTUNREACH, call[told].err);
	EXPECT_EQ(EPIPE, call[!told].err);
}

static long (*idle_fn)(struct hps_call *call);

static void set_policy(int policy)
{
	struct sched_param param = { .sched_priority = policy == SCHED_FIFO };

	pthread_setschedparam(pthread_self(), policy, &param);
}

/* Only when nobody else wants the processor. */
static long idle_call(struct hps_call *call)
{
	set_policy(SCHED_IDLE);
	return idle_fn(call);
}

/*
 * A call waits, the connection ends, and the socket is on its way to another one before
 * the call gets to run. That is not the connection it was made for.
 */
static void reconnected(struct __test_metadata *_metadata, const struct hps *t,
			struct hps_call *call)
{
	struct hps_addr at, silent = hps_silent(t);
	int l = hps_listen(t, 1, &at), s, round, late = 0;
	cpu_set_t here;

	ASSERT_OK(l);
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	ASSERT_OK(sched_setaffinity(0, sizeof(here), &here));
	idle_fn = call->fn;
	call->fn = idle_call;
	/* It may still be quicker, so there are runs until it was late. */
	for (round = 0; round < 200 && !late; round++) {
		call->fd = hps_dial_nb(t, at);
		ASSERT_OK(call->fd);
		ASSERT_TRUE(hps_wait(call->fd, POLLOUT) & POLLOUT);
		s = hps_accept(l);
		ASSERT_OK(s);
		if (idle_fn == hps_send_call) {
			ASSERT_LT(0, hps_stuff(call->fd, 0, 1));
		}
		hps_nonblock(call->fd, false);
		hps_block(call);
		hps_nonblock(call->fd, true);
		/* Woken together this one comes first, whatever the scheduler owes the call. */
		set_policy(SCHED_FIFO);
		ASSERT_OK(hps_reset(s));
		EXPECT_TRUE(hps_wait_exactly(call->fd, POLLHUP) & POLLHUP);
		EXPECT_EQ(-1, hps_connect(call->fd, silent));
		EXPECT_ERRNO(EINPROGRESS, hps_connect(call->fd, silent));
		set_policy(SCHED_OTHER);
		ASSERT_TRUE(hps_done(call));
		EXPECT_EQ(-1, call->ret);
		/* Or it was quick, and had the error of the old one. */
		if (call->err != ECONNRESET) {
			EXPECT_EQ(EPIPE, call->err);
			late++;
		}
		close(call->fd);
	}
	EXPECT_EQ(1, late);
}

TEST_F_TIMEOUT(threads, reconnected_under_send, 120 * hps_slow())
{
	struct hps_call call = { .fn = hps_send_call, .buf = big[0], .len = 1000 };

	reconnected(_metadata, &self->t, &call);
}

TEST_F_TIMEOUT(threads, reconnected_under_recv, 120 * hps_slow())
{
	struct hps_call call = { .fn = hps_recv_call, .buf = back, .len = 10 };

	reconnected(_metadata, &self->t, &call);
}

TEST_F(threads, disconnect_under_accept)
{
	struct hps_call call = { .fn = hps_accept_call };
	struct hps_addr at;

	call.fd = hps_listen(&self->t, 1, &at);
	ASSERT_OK(call.fd);
	hps_block(&call);
	ASSERT_OK(disconnect(call.fd));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINVAL, call.err);
}

/* Each writer's bytes count up, whatever is between them. */
TEST_F(threads, writers_in_order)
{
	struct hps_call call[2];
	uint8_t next[2] = { 0 };
	int i, n;

	hps_buffers(self->c, 65536);
	hps_buffers(self->s, 65536);
	for (i = 0; i < 2; i++) {
		for (n = 0; n < MIB; n++)
			big[i][n] = i << 7 | (n & 0x7f);
		call[i] = (struct hps_call){
			.fn = hps_send_call, .fd = self->c, .buf = big[i], .len = MIB,
		};
		hps_start(&call[i]);
	}
	ASSERT_EQ(2 * MIB, recv(self->s, back, 2 * MIB, MSG_WAITALL));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(hps_done(&call[i]));
		EXPECT_EQ(MIB, call[i].ret);
	}
	for (n = 0; n < 2 * MIB; n++) {
		i = back[n] >> 7;
		ASSERT_EQ(next[i], back[n] & 0x7f);
		next[i] = (next[i] + 1) & 0x7f;
	}
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, recv(self->s, back, 1, 0));
}

/* Two that want as much as comes get it between them. */
TEST_F(threads, waitall_receivers)
{
	struct hps_call call[2];
	int i, n, sum = 0;

	for (i = 0; i < 2; i++) {
		call[i] = (struct hps_call){
			.fn = hps_recv_call, .fd = self->s, .buf = back + i * 5000, .len = 5000,
			.arg = MSG_WAITALL,
		};
		hps_block(&call[i]);
	}
	memset(big[0], 1, 10000);
	for (n = 0; n < 10000; n += 100)
		ASSERT_EQ(100, send(self->c, big[0], 100, 0));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(hps_done(&call[i]));
		EXPECT_EQ(5000, call[i].ret);
	}
	for (n = 0; n < 10000; n++)
		sum += back[n];
	EXPECT_EQ(10000, sum);
}

static long select_call(struct hps_call *call)
{
	struct timeval tv = { .tv_sec = hps_deadline() / 1000 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(call->fd, &in);
	return select(call->fd + 1, &in, NULL, NULL, &tv) == 1 ? POLLIN : -1;
}

static long epoll_call(struct hps_call *call)
{
	struct epoll_event event = { 0 };

	return epoll_wait(call->arg, &event, 1, hps_deadline()) == 1 ? (long)event.events : -1;
}

static int epoll_of(int fd, uint32_t events)
{
	struct epoll_event event = { .events = events };
	int ep = epoll_create1(0);

	return ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &event) ? -1 : ep;
}

/* Those who look and those who read: one arrival wakes them all. */
TEST_F(threads, all_watchers)
{
	struct hps_call call[5] = {
		{ .fn = hps_poll_call, .arg = POLLIN },
		{ .fn = hps_poll_call, .arg = POLLIN | POLLRDHUP },
		{ .fn = select_call },
		{ .fn = epoll_call, .arg = epoll_of(self->s, EPOLLIN) },
		{ .fn = epoll_call, .arg = epoll_of(self->s, EPOLLIN | EPOLLET) },
	};
	struct hps_call peek = {
		.fn = hps_recv_call, .fd = self->s, .buf = back, .len = 10, .arg = MSG_PEEK,
	};
	int i;

	for (i = 0; i < 5; i++) {
		call[i].fd = self->s;
		hps_block(&call[i]);
	}
	hps_block(&peek);
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	for (i = 0; i < 5; i++) {
		ASSERT_TRUE(hps_done(&call[i]));
		EXPECT_EQ(POLLIN, call[i].ret);
	}
	ASSERT_TRUE(hps_done(&peek));
	EXPECT_EQ(1, peek.ret);
}

/* One epoll, two threads: EPOLLONESHOT gives each arrival to one of them. */
TEST_F(threads, oneshot)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT };
	int ep = epoll_of(self->s, EPOLLIN | EPOLLONESHOT), i;
	struct hps_call call[2];

	ASSERT_OK(ep);
	for (i = 0; i < 2; i++) {
		call[i] = (struct hps_call){ .fn = epoll_call, .arg = ep };
		hps_block(&call[i]);
	}
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	while (!call[0].done && !call[1].done)
		usleep(1000);
	i = !call[0].done;
	ASSERT_TRUE(hps_done(&call[i]));
	EXPECT_EQ(EPOLLIN, call[i].ret);
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	ASSERT_TRUE(hps_until_inq(self->s, 2));
	hps_until_blocked(call[!i].tid);
	EXPECT_FALSE(call[!i].done);
	ASSERT_OK(epoll_ctl(ep, EPOLL_CTL_MOD, self->s, &event));
	ASSERT_TRUE(hps_done(&call[!i]));
	EXPECT_EQ(EPOLLIN, call[!i].ret);
}

/* Two who wait for one connection's bytes, of whom one at least is woken. */
TEST_F(threads, exclusive)
{
	int ep[2], i, woken = 0;

	for (i = 0; i < 2; i++) {
		ep[i] = epoll_of(self->s, EPOLLIN | EPOLLEXCLUSIVE);
		ASSERT_OK(ep[i]);
	}
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_TRUE(hps_wait_either(ep, POLLIN));
	for (i = 0; i < 2; i++) {
		struct epoll_event event;

		woken += epoll_wait(ep[i], &event, 1, 0) == 1;
	}
	EXPECT_LE(1, woken);
}

/* An error is none of the exceptions that select() looks for. */
TEST_F(threads, select_except)
{
	struct timeval none = { 0 };
	fd_set in, out, ex;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_ZERO(&ex);
	ASSERT_OK(hps_reset(self->c));
	EXPECT_TRUE(hps_wait(self->s, POLLERR));
	FD_SET(self->s, &in);
	FD_SET(self->s, &out);
	FD_SET(self->s, &ex);
	EXPECT_EQ(2, select(self->s + 1, &in, &out, &ex, &none));
	EXPECT_TRUE(FD_ISSET(self->s, &in));
	EXPECT_TRUE(FD_ISSET(self->s, &out));
	EXPECT_FALSE(FD_ISSET(self->s, &ex));
}

/* Is there a line with this inode in the table of this process's namespace? */
static bool in_table(const struct hps *t, ino_t inode)
{
	static const char *const names[] = { "tcp", "tcp6", "hpsock" };
	char path[64], line[512], *word, *save;
	bool found = false;
	FILE *f;
	int i;

	snprintf(path, sizeof(path), "/proc/self/net/%s",
		 names[t->rdma ? 2 : t->af == AF_INET6]);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		word = strtok_r(line, " ", &save);
		/* The column of the inode */
		for (i = t->rdma ? 8 : 9; word && i; i--)
			word = strtok_r(NULL, " ", &save);
		found |= word && strtoul(word, NULL, 10) == inode;
	}
	if (f)
		fclose(f);
	return found;
}

/* What is behind a word at the start of a line of /proc/self/fdinfo. */
static unsigned long fd_info(int fd, const char *word, int base)
{
	unsigned long value = -1;
	char path[64], line[128];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, word, strlen(word)))
			value = strtoul(line + strlen(word), NULL, base);
	if (f)
		fclose(f);
	return value;
}

/* What administrators look at: descriptor, inode and table tell of each other. */
TEST_F(threads, proc)
{
	char path[64], link[64] = "", want[64];
	struct stat st;

	ASSERT_OK(fstat(self->s, &st));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", self->s);
	ASSERT_LT(0, readlink(path, link, sizeof(link) - 1));
	snprintf(want, sizeof(want), "socket:[%lu]", (unsigned long)st.st_ino);
	EXPECT_STREQ(want, link);
	/* By that name it cannot be opened. */
	EXPECT_ERRNO(ENXIO, open(path, O_RDONLY));
	EXPECT_FALSE(fd_info(self->s, "flags:", 8) & O_NONBLOCK);
	ASSERT_OK(hps_nonblock(self->s, true));
	EXPECT_TRUE(fd_info(self->s, "flags:", 8) & O_NONBLOCK);
	EXPECT_EQ(st.st_ino, fd_info(self->s, "ino:", 10));
	EXPECT_TRUE(in_table(&self->t, st.st_ino));
	EXPECT_FALSE(in_table(&self->t, st.st_ino + 1000000));
}

TEST_HARNESS_MAIN
