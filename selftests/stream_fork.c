// SPDX-License-Identifier: GPL-2.0
/* One socket in several processes and threads. */
#include "hps_test.h"

#define RECORD 32
#define RECORDS 400

HPS_PAIR_FIXTURE(fork)

struct record {
	uint32_t writer;
	uint32_t number;
	uint8_t fill[RECORD - 8];
};

static void write_records(int fd, uint32_t writer)
{
	struct record r = { .writer = writer };

	memset(r.fill, writer * 37, sizeof(r.fill));
	for (r.number = 0; r.number < RECORDS; r.number++)
		if (send(fd, &r, sizeof(r), MSG_NOSIGNAL) != sizeof(r))
			_exit(1);
}

/* Each writer's records are whole and in order, whatever is between them. */
static int read_records(int fd, uint32_t writers)
{
	uint32_t next[8] = { 0 }, i;
	struct record r, want;
	size_t n;

	for (n = 0; n < (size_t)RECORDS * writers; n++) {
		if (recv(fd, &r, sizeof(r), MSG_WAITALL) != sizeof(r) || r.writer >= writers)
			return -1;
		want = (struct record){ .writer = r.writer, .number = next[r.writer]++ };
		memset(want.fill, r.writer * 37, sizeof(want.fill));
		if (memcmp(&r, &want, sizeof(r)))
			return -1;
	}
	for (i = 0; i < writers; i++)
		if (next[i] != RECORDS)
			return -1;
	return 0;
}

TEST_F(fork, writers)
{
	pid_t pid[4];
	uint32_t i;

	for (i = 0; i < 4; i++) {
		pid[i] = hps_fork();
		ASSERT_OK(pid[i]);
		if (!pid[i]) {
			write_records(self->c, i);
			_exit(0);
		}
	}
	EXPECT_EQ(0, read_records(self->s, 4));
	for (i = 0; i < 4; i++) {
		EXPECT_EQ(0, hps_reap(pid[i]));
	}
}

static void *writer_thread(void *arg)
{
	struct hps_call *call = arg;

	write_records(call->fd, call->arg);
	return NULL;
}

TEST_F(fork, writer_threads)
{
	struct hps_call call[4];
	int i;

	for (i = 0; i < 4; i++) {
		call[i].fd = self->c;
		call[i].arg = i;
		ASSERT_EQ(0, pthread_create(&call[i].thread, NULL, writer_thread, &call[i]));
	}
	EXPECT_EQ(0, read_records(self->s, 4));
	for (i = 0; i < 4; i++) {
		EXPECT_TRUE(hps_done(&call[i]));
	}
}

/* Big writes of two threads: all bytes arrive, each writer's in its order. */
TEST_F(fork, big_writers)
{
	static uint8_t buf[2][300000], in[600000];
	struct hps_call call[2];
	size_t at[2] = { 0 }, n;
	int i;

	for (i = 0; i < 2; i++) {
		memset(buf[i], i, sizeof(buf[i]));
		call[i] = (struct hps_call){
			.fn = hps_send_call, .fd = self->c, .buf = buf[i], .len = sizeof(buf[i]),
		};
		hps_start(&call[i]);
	}
	ASSERT_EQ(sizeof(in), recv(self->s, in, sizeof(in), MSG_WAITALL));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(hps_done(&call[i]));
		EXPECT_EQ(sizeof(buf[i]), call[i].ret);
	}
	for (n = 0; n < sizeof(in); n++) {
		ASSERT_LT(in[n], 2);
		at[in[n]]++;
	}
	EXPECT_EQ(at[0], at[1]);
}

/* Two processes read one stream: every byte goes to one of them. */
TEST_F(fork, readers)
{
	uint32_t *seen = mmap(NULL, 4096 * 4, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[2];
	int i, n;

	ASSERT_NE(MAP_FAILED, seen);
	for (i = 0; i < 2; i++) {
		pid[i] = hps_fork();
		ASSERT_OK(pid[i]);
		if (!pid[i]) {
			uint32_t word;

			while ((n = recv(self->s, &word, sizeof(word),
					 MSG_WAITALL)) == sizeof(word))
				if (word < 4096)
					__sync_fetch_and_add(&seen[word], 1);
			_exit(n ? 1 : 0);
		}
	}
	for (n = 0; n < 4096; n++) {
		ASSERT_EQ(4, send(self->c, &n, 4, 0));
	}
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, hps_reap(pid[i]));
	}
	for (n = 0; n < 4096; n++) {
		ASSERT_EQ(1, seen[n]);
	}
}

TEST_F(fork, reader_threads)
{
	static char buf[2][16];
	struct hps_call call[2];
	int i, total = 0;

	for (i = 0; i < 2; i++) {
		call[i] = (struct hps_call){
			.fn = hps_recv_call, .fd = self->s, .buf = buf[i], .len = 1,
		};
		hps_block(&call[i]);
	}
	ASSERT_EQ(2, send(self->c, "ab", 2, 0));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(hps_done(&call[i]));
		EXPECT_EQ(1, call[i].ret);
		total += buf[i][0];
	}
	EXPECT_EQ('a' + 'b', total);
}

/* One end stays while any process has it. */
TEST_F(fork, close_in_one)
{
	char byte;
	int p[2];
	pid_t pid;

	ASSERT_OK(pipe(p));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		close(p[1]);
		/* Until the parent has closed its own */
		if (read(p[0], &byte, 1) != 1 || send(self->c, "x", 1, 0) != 1)
			_exit(1);
		_exit(0);
	}
	ASSERT_OK(close(self->c));
	EXPECT_TRUE(hps_quiet(self->s, POLLIN | POLLRDHUP));
	ASSERT_EQ(1, write(p[1], "g", 1));
	EXPECT_EQ(1, recv(self->s, &byte, 1, 0));
	EXPECT_EQ(0, recv(self->s, &byte, 1, 0));
	EXPECT_EQ(0, hps_reap(pid));
}

/* shutdown() is for all of them. */
TEST_F(fork, shutdown_in_one)
{
	pid_t pid = hps_fork();
	char byte;

	ASSERT_OK(pid);
	if (!pid)
		_exit(shutdown(self->c, SHUT_WR) ? 1 : 0);
	EXPECT_EQ(0, hps_reap(pid));
	EXPECT_EQ(0, recv(self->s, &byte, 1, 0));
	EXPECT_ERRNO(EPIPE, send(self->c, "x", 1, MSG_NOSIGNAL));
}

TEST_F(fork, exit_closes)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at), s;
	pid_t pid;

	ASSERT_OK(l);
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		int c = hps_dial(&self->t, at);

		_exit(hps_push(c, 50000, 5000, 1) == 50000 ? 0 : 1);
	}
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(50000, hps_pull(s, 60000, 5000, 1));
	EXPECT_EQ(0, errno);
	EXPECT_EQ(0, hps_reap(pid));
}

TEST_F(fork, dup)
{
	int fd = dup(self->c);
	char byte;

	ASSERT_OK(fd);
	ASSERT_OK(close(self->c));
	EXPECT_EQ(1, send(fd, "x", 1, 0));
	EXPECT_EQ(1, recv(self->s, &byte, 1, 0));
	/* Status flags are of the socket, not of the number. */
	ASSERT_EQ(self->c, dup(fd));
	ASSERT_OK(hps_nonblock(fd, true));
	EXPECT_ERRNO(EAGAIN, recv(self->c, &byte, 1, 0));
	ASSERT_OK(close(fd));
	EXPECT_TRUE(hps_quiet(self->s, POLLIN | POLLRDHUP));
	ASSERT_OK(close(self->c));
	EXPECT_EQ(0, recv(self->s, &byte, 1, 0));
}

/* A server's workers share the listener. */
TEST_F(fork, accepting_children)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 16, &at), i, c;
	pid_t pid[3];
	char byte;

	ASSERT_OK(l);
	for (i = 0; i < 3; i++) {
		pid[i] = hps_fork();
		ASSERT_OK(pid[i]);
		if (!pid[i]) {
			/* Serve until one says "q". */
			do {
				c = accept(l, NULL, NULL);
				if (c < 0 || recv(c, &byte, 1, 0) != 1 || send(c, &byte, 1, 0) != 1)
					_exit(1);
				close(c);
			} while (byte != 'q');
			_exit(0);
		}
	}
	for (i = 0; i < 23; i++) {
		c = hps_dial(&self->t, at);
		ASSERT_OK(c);
		byte = i < 20 ? 'a' + i % 16 : 'q';
		ASSERT_EQ(1, send(c, &byte, 1, 0));
		ASSERT_EQ(1, recv(c, &byte, 1, 0));
		EXPECT_EQ(i < 20 ? 'a' + i % 16 : 'q', byte);
		close(c);
	}
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, hps_reap(pid[i]));
	}
}

/* As inetd does it: the socket is standard input and output of a program. */
TEST_F(fork, exec)
{
	pid_t pid = hps_fork();
	char buf[16] = "";

	ASSERT_OK(pid);
	if (!pid) {
		dup2(self->s, 0);
		dup2(self->s, 1);
		close(self->s);
		close(self->c);
		execlp("cat", "cat", NULL);
		_exit(127);
	}
	close(self->s);
	ASSERT_EQ(5, send(self->c, "hello", 5, 0));
	EXPECT_EQ(5, recv(self->c, buf, 5, MSG_WAITALL));
	EXPECT_STREQ("hello", buf);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, recv(self->c, buf, 1, 0));
	EXPECT_EQ(0, hps_reap(pid));
}

TEST_F(fork, exec_cloexec)
{
	char byte;
	pid_t pid;
	int p[2];

	ASSERT_OK(pipe(p));
	ASSERT_OK(fcntl(self->c, F_SETFD, FD_CLOEXEC));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		dup2(p[0], 0);
		close(p[1]);
		execlp("cat", "cat", NULL);
		_exit(127);
	}
	close(p[0]);
	ASSERT_OK(close(self->c));
	EXPECT_EQ(0, recv(self->s, &byte, 1, 0));
	close(p[1]);
	EXPECT_EQ(0, hps_reap(pid));
}

static int pass(int via, int fd)
{
	union { struct cmsghdr align; char buf[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	struct iovec v = { "x", 1 };
	struct msghdr msg = {
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

	cmsg->cmsg_level = SOL_SOCKET;
	cmsg->cmsg_type = SCM_RIGHTS;
	cmsg->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cmsg), &fd, sizeof(fd));
	return sendmsg(via, &msg, 0) == 1 ? 0 : -1;
}

static int passed(int via)
{
	union { struct cmsghdr align; char buf[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	char byte;
	struct iovec v = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &v, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	int fd;

	if (recvmsg(via, &msg, 0) != 1 || !CMSG_FIRSTHDR(&msg))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

/* A connection handed to a process that has no other way to it. */
TEST_F(fork, pass_connected)
{
	int u[2];
	pid_t pid;

	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, u));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		int fd;

		close(self->s);
		close(self->c);
		fd = passed(u[1]);
		_exit(hps_push(fd, 10000, 1000, 1) == 10000 &&
		      hps_pull(fd, 20000, 1000, 2) == 10000 && !errno ? 0 : 1);
	}
	ASSERT_OK(pass(u[0], self->s));
	ASSERT_OK(close(self->s));
	EXPECT_EQ(10000, hps_pull(self->c, 10000, 1000, 1));
	EXPECT_EQ(10000, hps_push(self->c, 10000, 1000, 2));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(0, hps_reap(pid));
	EXPECT_EQ(0, recv(self->c, &(char){ 0 }, 1, 0));
}

TEST_F(fork, pass_listener)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at), u[2], c;
	pid_t pid;

	ASSERT_OK(l);
	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, u));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		int s;

		close(l);
		s = hps_accept(passed(u[1]));
		_exit(s >= 0 && hps_push(s, 1000, 1000, 1) == 1000 ? 0 : 1);
	}
	ASSERT_OK(pass(u[0], l));
	ASSERT_OK(close(l));
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	EXPECT_EQ(1000, hps_pull(c, 2000, 1000, 1));
	EXPECT_EQ(0, errno);
	EXPECT_EQ(0, hps_reap(pid));
	EXPECT_ERRNO(ECONNREFUSED, hps_dial(&self->t, at));
}

/* A socket on its way in a message nobody reads dies with it. */
TEST_F(fork, pass_to_nobody)
{
	char byte;
	int u[2];

	ASSERT_OK(socketpair(AF_UNIX, SOCK_STREAM, 0, u));
	ASSERT_OK(pass(u[0], self->c));
	ASSERT_OK(close(self->c));
	EXPECT_TRUE(hps_quiet(self->s, POLLIN | POLLRDHUP));
	close(u[0]);
	close(u[1]);
	EXPECT_EQ(0, recv(self->s, &byte, 1, 0));
}

/* A sender killed on the way: what it had sent arrives, then the end. */
TEST_F(fork, killed_sender)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at), s;
	pid_t pid;

	ASSERT_OK(l);
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		hps_push(hps_dial(&self->t, at), INT64_MAX, 5000, 1);
		_exit(1);
	}
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(500000, hps_pull(s, 500000, 5000, 1));
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, hps_reap(pid));
	/* 500,000 is a multiple of 8, but the pattern goes on from there. */
	for (;;) {
		static uint8_t buf[8192], want[8192];
		static uint64_t at_byte = 500000;
		ssize_t n = recv(s, buf, sizeof(buf), 0);

		ASSERT_LE(0, n);
		if (!n)
			break;
		hps_fill(want, n, at_byte, 1);
		ASSERT_EQ(0, memcmp(buf, want, n));
		at_byte += n;
	}
}

/* A receiver killed with data unread resets the sender. */
TEST_F(fork, killed_receiver)
{
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at), s;
	struct hps_call call = { .fn = hps_send_call };
	static char buf[1000];
	pid_t pid;

	ASSERT_OK(l);
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		int c = hps_dial(&self->t, at);

		hps_pull(c, 1000, 1000, 1);
		pause();
		_exit(1);
	}
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_LT(0, hps_stuff(s, 0, 1));
	call.fd = s;
	call.buf = buf;
	call.len = sizeof(buf);
	hps_block(&call);
	EXPECT_FALSE(call.done);
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, hps_reap(pid));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(ECONNRESET, call.err);
}

/*
 * Either end killed at any moment of a transfer: the other sees nothing but
 * right bytes, and then an end if it receives, an error if it sends.
 */
TEST_F(fork, killed_anytime)
{
	uint64_t random = hps_env("HPS_SEED", 1);
	int i, c, s;

	for (i = 0; i < 8; i++) {
		pid_t sender, receiver;

		ASSERT_OK(hps_pair(&self->t, &c, &s));
		receiver = hps_fork();
		ASSERT_OK(receiver);
		if (!receiver) {
			close(c);
			hps_pull(s, INT64_MAX, 7000, 1);
			_exit(errno);
		}
		sender = hps_fork();
		ASSERT_OK(sender);
		if (!sender) {
			close(s);
			hps_push(c, INT64_MAX, 5000, 1);
			_exit(errno);
		}
		close(c);
		close(s);
		usleep(hps_random(&random) % 30000);
		if (i % 2) {
			kill(sender, SIGKILL);
			EXPECT_EQ(128 + SIGKILL, hps_reap(sender));
			EXPECT_EQ(0, hps_reap(receiver));
		} else {
			int status;

			kill(receiver, SIGKILL);
			EXPECT_EQ(128 + SIGKILL, hps_reap(receiver));
			status = hps_reap(sender);
			EXPECT_TRUE(status == ECONNRESET || status == EPIPE) {
				TH_LOG("status %d", status);
			}
		}
	}
}

/* One killed in the middle of a call leaves the socket to the others whole. */
TEST_F(fork, killed_in_call)
{
	char byte;
	pid_t pid;
	int i;

	for (i = 0; i < 3; i++) {
		pid = hps_fork();
		ASSERT_OK(pid);
		if (!pid) {
			recv(self->s, &byte, 1, 0);
			_exit(1);
		}
		hps_until_blocked(pid);
		kill(pid, SIGKILL);
		EXPECT_EQ(128 + SIGKILL, hps_reap(pid));
		ASSERT_EQ(1, send(self->c, "x", 1, 0));
		EXPECT_EQ(1, recv(self->s, &byte, 1, 0));
	}
}

/* Listeners go with their process, too, and their clients know at once. */
TEST_F(fork, killed_listener)
{
	int p[2], c;
	struct hps_addr at;
	pid_t pid;
	char byte = 0;

	ASSERT_OK(pipe(p));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid) {
		int l = hps_listen(&self->t, 4, &at);

		if (l < 0 || write(p[1], &at, sizeof(at)) != sizeof(at) ||
		    !hps_until_acceptable(l, 1) || write(p[1], &byte, 1) != 1)
			_exit(1);
		pause();
		_exit(1);
	}
	ASSERT_EQ(sizeof(at), read(p[0], &at, sizeof(at)));
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	ASSERT_EQ(1, read(p[0], &byte, 1));
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, hps_reap(pid));
	EXPECT_ERRNO(ECONNRESET, recv(c, &byte, 1, 0));
	EXPECT_ERRNO(ECONNREFUSED, hps_dial(&self->t, at));
}

TEST_HARNESS_MAIN
