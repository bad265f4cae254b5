// SPDX-License-Identifier: GPL-2.0
/*
 * What allocates may find no memory, and what touches the program's may fault. Each
 * call here is made with the first allocation or access on its way failing, then with
 * the second, until there is none left to fail. It does its work all the same or
 * says why not; nothing that is sent is lost, and the socket is good for more.
 * Needs a kernel with fault injection, as the ones that look for bugs are.
 */
#include "hps_test.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/sendfile.h>

#define LARGE (256 << 10)

FIXTURE(nth) {
	struct hps t;
	int fail;	/* the thread's fail-nth */
	int n;		/* what failed last */
	int step;	/* to what fails next */
	int c, s;	/* a connection, if the test makes one */
};

HPS_VARIANTS(nth);

#define DEBUG "/sys/kernel/debug/"

/* All kinds of allocations and accesses fail, and without a word. */
static bool inject_all(void)
{
	return !hps_put(DEBUG "failslab/ignore-gfp-wait", "N") &&
	       !hps_put(DEBUG "fail_page_alloc/ignore-gfp-wait", "N") &&
	       !hps_put(DEBUG "fail_page_alloc/ignore-gfp-highmem", "N") &&
	       !hps_put(DEBUG "fail_page_alloc/min-order", "0") &&
	       !hps_put(DEBUG "failslab/verbose", "0") &&
	       !hps_put(DEBUG "fail_page_alloc/verbose", "0") &&
	       (!hps_put(DEBUG "fail_usercopy/verbose", "0") || errno == ENOENT);
}

FIXTURE_SETUP(nth)
{
	hps_init(&self->t, variant->rdma, variant->af);
	self->step = 1;
	self->fail = open("/proc/thread-self/fail-nth", O_RDWR);
	if (self->fail < 0)
		SKIP(return, "this kernel has no fault injection");
	ASSERT_TRUE(inject_all());
}

/* Shows that it was no matter of one or two. */
FIXTURE_TEARDOWN(nth)
{
	if (self->n)
		printf("# %d failures\n", self->n / self->step - 1);
}

/* The next call of this thread meets the next failure. */
static void arm(struct _test_data_nth *self)
{
	char text[16];
	int len;

	self->n += self->step;
	len = snprintf(text, sizeof(text), "%d", self->n);
	if (pwrite(self->fail, text, len, 0) != len)
		abort();
}

/* Did it? No other call does. errno stays. */
static bool fired(struct _test_data_nth *self)
{
	int err = errno;
	char left[16];
	bool yes;

	/* Where reading is what fails, the call did not. */
	yes = pread(self->fail, left, sizeof(left), 0) > 0 && left[0] == '0';
	/* Likewise: either way none is left. */
	if (pwrite(self->fail, "0", 1, 0) != 1 && errno != EFAULT)
		abort();
	errno = err;
	return yes;
}

/* May a call say this to that? */
static bool excused(const struct _test_data_nth *self, int err)
{
	if (err == ENOMEM || err == ENOBUFS || err == EFAULT || err == ENFILE)
		return true;
	/* TCP has no memory for the port, and says that another has it. */
	if (err == EADDRINUSE && (!self->t.rdma || hps_siw()))
		return true;
	fprintf(stderr, "# failure %d: %s\n", self->n, strerror(err));
	return false;
}

/* Something goes over the connection and back. */
static bool works(int c, int s)
{
	return hps_push(c, 3000, 1000, 5) == 3000 && hps_pull(s, 3000, 3000, 5) == 3000 &&
	       hps_push(s, 3000, 1000, 6) == 3000 && hps_pull(c, 3000, 3000, 6) == 3000;
}

TEST_F(nth, socket)
{
	bool more;
	int fd;

	do {
		arm(self);
		fd = hps_socket(&self->t, 0);
		more = fired(self);
		if (fd < 0) {
			EXPECT_TRUE(excused(self, errno));
		}
		close(fd);
	} while (more);
	EXPECT_LE(0, fd);
	EXPECT_LT(3, self->n);
}

TEST_F(nth, bind)
{
	bool more;
	int fd, err;

	do {
		fd = hps_socket(&self->t, 0);
		arm(self);
		err = hps_bind(fd, self->t.b);
		more = fired(self);
		if (err) {
			EXPECT_TRUE(excused(self, errno));
			EXPECT_OK(hps_bind(fd, self->t.b));
		}
		close(fd);
	} while (more);
}

TEST_F_TIMEOUT(nth, listen, 200 * hps_slow())
{
	bool more;
	int fd, c, s, err;

	/* Its connection manager allocates for each connection that might come. */
	if (self->t.rdma && hps_siw())
		self->step = 499;

	do {
		fd = hps_bound(&self->t, 0, self->t.b);
		ASSERT_OK(fd);
		arm(self);
		err = listen(fd, 5);
		more = fired(self);
		if (err) {
			EXPECT_TRUE(excused(self, errno));
			ASSERT_OK(listen(fd, 5));
		}
		c = hps_dial(&self->t, hps_name(fd));
		ASSERT_OK(c);
		s = hps_accept(fd);
		ASSERT_OK(s);
		EXPECT_TRUE(works(c, s));
		close(c);
		close(s);
		close(fd);
	} while (more);
}

/* A port that nobody asked for is not kept. */
TEST_F_TIMEOUT(nth, listen_unbound, 200 * hps_slow())
{
	struct hps_addr name;
	int fd, err;
	bool more;

	if (self->t.rdma && hps_siw())
		self->step = 499;
	do {
		fd = hps_socket(&self->t, 0);
		ASSERT_OK(fd);
		arm(self);
		err = listen(fd, 5);
		more = fired(self);
		if (err) {
			EXPECT_TRUE(excused(self, errno));
			name = hps_name(fd);
			EXPECT_EQ(0, hps_port(&name));
			ASSERT_OK(hps_bind(fd, self->t.b));
			ASSERT_OK(listen(fd, 5));
		}
		close(fd);
	} while (more);
	EXPECT_LT(1, self->n);
}

/* The one of the connections of a listener that @c has; others have ended. */
static int accept_of(int listener, int c)
{
	struct hps_addr name = hps_name(c), peer;
	char byte;
	int s;

	while (hps_wait(listener, POLLIN) == POLLIN) {
		s = hps_accept(listener);
		if (s < 0)
			return -1;
		peer = hps_peer(s);
		if (hps_same(&name, &peer))
			return s;
		if (hps_wait(s, POLLIN) <= 0 || recv(s, &byte, 1, MSG_DONTWAIT) > 0)
			return -1;
		close(s);
	}
	return -1;
}

TEST_F_TIMEOUT(nth, connect, 300 * hps_slow())
{
	struct hps_addr at;
	bool more;
	int l = hps_listen(&self->t, 8, &at), c, s, err;

	ASSERT_OK(l);
	do {
		c = hps_socket(&self->t, 0);
		ASSERT_OK(c);
		arm(self);
		err = hps_connect(c, at);
		more = fired(self);
		if (err) {
			EXPECT_TRUE(excused(self, errno));
			ASSERT_EQ(0, hps_connect(c, at)) TH_LOG("failure %d: %m", self->n);
		}
		s = accept_of(l, c);
		ASSERT_LE(0, s) TH_LOG("failure %d", self->n);
		EXPECT_TRUE(works(c, s)) TH_LOG("failure %d", self->n);
		close(c);
		close(s);
	} while (more);
	EXPECT_LT(3, self->n);
}

/* Who was not accepted is still there to be, or is told of its end. */
TEST_F_TIMEOUT(nth, accept, 300 * hps_slow())
{
	struct hps_addr at;
	bool more;
	int l = hps_listen(&self->t, 8, &at), c, s;
	char byte;

	ASSERT_OK(l);
	do {
		c = hps_dial(&self->t, at);
		ASSERT_OK(c);
		ASSERT_EQ(POLLIN, hps_wait(l, POLLIN));
		arm(self);
		s = accept(l, NULL, NULL);
		more = fired(self);
		if (s < 0) {
			EXPECT_TRUE(excused(self, errno));
			if (hps_poll(l, POLLIN, 0) == POLLIN)
				s = hps_accept(l);
		}
		if (s < 0) {
			EXPECT_LT(0, hps_wait(c, POLLIN)) TH_LOG("failure %d", self->n);
			EXPECT_GE(0, recv(c, &byte, 1, MSG_DONTWAIT));
		} else {
			EXPECT_TRUE(works(c, s)) TH_LOG("failure %d", self->n);
			close(s);
		}
		close(c);
	} while (more);
	EXPECT_LT(3, self->n);
}

/* Reads whatever comes, at once. */
struct reader {
	struct hps_call call;
	_Atomic uint64_t got;
};

static long reader_call(struct hps_call *call)
{
	struct reader *reader = (struct reader *)call;
	char *buf = hps_memory(LARGE);
	ssize_t n;

	while ((n = recv(call->fd, buf, LARGE, 0)) > 0) {
		if (hps_check(buf, n, reader->got, 1) != (size_t)n)
			break;
		reader->got += n;
	}
	return n;
}

static bool has_read(struct reader *reader, uint64_t at)
{
	int64_t end = hps_now() + hps_deadline();

	while (reader->got != at) {
		if (reader->call.done || hps_now() > end)
			return false;
		usleep(100);
	}
	return true;
}

struct sending {
	ssize_t (*call)(int fd, void *buf, size_t len, int flags);
	size_t len;
	int zcopy;	/* enum hpsock_zcopy */
	int flags;
};

static ssize_t send_memory(int fd, void *buf, size_t len, int flags)
{
	return send(fd, buf, len, flags);
}

static int file = -1;

static ssize_t send_file(int fd, void *buf, size_t len, int flags)
{
	off_t off = 0;

	(void)buf;
	(void)flags;
	return sendfile(fd, file, &off, len);
}

static void check_sending(struct __test_metadata *_metadata, struct _test_data_nth *self,
			  struct sending how)
{
	struct reader reader = { .call.fn = reader_call };
	uint8_t *buf = hps_memory(how.len);
	uint64_t at = 0;
	int sent = 0;
	bool more;
	ssize_t n;

	ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));
	if (self->t.rdma) {
		ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY, how.zcopy));
	}
	if (how.flags & MSG_ZEROCOPY) {
		ASSERT_OK(hps_zerocopy(&self->t, self->c));
	}
	reader.call.fd = self->s;
	hps_start(&reader.call);
	do {
		hps_fill(buf, how.len, at, 1);
		if (file >= 0) {
			ASSERT_EQ(how.len, pwrite(file, buf, how.len, 0));
		}
		arm(self);
		n = how.call(self->c, buf, how.len, how.flags);
		more = fired(self);
		if (n < 0) {
			EXPECT_TRUE(excused(self, errno));
		} else {
			EXPECT_LT(0, n);
			at += n;
			sent++;
		}
		ASSERT_TRUE(has_read(&reader, at))
			TH_LOG("failure %d: %zd, %ld of %ld read", self->n, n, (long)reader.got,
			       (long)at);
	} while (more);
	EXPECT_EQ(how.len, n);
	EXPECT_LT(1, self->n);
	if (how.flags & MSG_ZEROCOPY) {
		EXPECT_TRUE(hps_completed(&self->t, self->c, 0, sent - 1));
	}
	EXPECT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(hps_done(&reader.call));
	EXPECT_EQ(0, reader.call.ret);
}

TEST_F(nth, send)
{
	check_sending(_metadata, self,
		      (struct sending){ .call = send_memory, .len = 100 });
}

TEST_F(nth, send_copied)
{
	check_sending(_metadata, self,
		      (struct sending){ .call = send_memory, .len = LARGE,
					.zcopy = HPSOCK_ZCOPY_OFF });
}

TEST_F(nth, send_protected)
{
	check_sending(_metadata, self,
		      (struct sending){ .call = send_memory, .len = LARGE,
					.zcopy = HPSOCK_ZCOPY_PROTECT });
}

TEST_F(nth, send_waiting)
{
	check_sending(_metadata, self,
		      (struct sending){ .call = send_memory, .len = LARGE,
					.zcopy = HPSOCK_ZCOPY_WAIT });
}

TEST_F(nth, send_promised)
{
	check_sending(_metadata, self,
		      (struct sending){ .call = send_memory, .len = LARGE,
					.zcopy = HPSOCK_ZCOPY_AUTO, .flags = MSG_ZEROCOPY });
}

TEST_F(nth, send_file)
{
	file = memfd_create("fault_alloc", 0);
	ASSERT_OK(file);
	check_sending(_metadata, self,
		      (struct sending){ .call = send_file, .len = LARGE });
}

struct receiving {
	ssize_t (*call)(int fd, void *buf, size_t len, int flags);
	size_t len;
	int zcopy;	/* of the sender: enum hpsock_zcopy */
	int flags;
	bool promised;
};

static ssize_t recv_memory(int fd, void *buf, size_t len, int flags)
{
	return recv(fd, buf, len, flags);
}

static int pipes[2];

static ssize_t recv_pipe(int fd, void *buf, size_t len, int flags)
{
	(void)buf;
	(void)flags;
	return splice(fd, NULL, pipes[1], NULL, len, 0);
}

/* Into memory that nobody has touched: that, too, is allocated on the way. */
static void check_receiving(struct __test_metadata *_metadata, struct _test_data_nth *self,
			    struct receiving how)
{
	uint64_t at = 0, got = 0, missing;
	uint8_t *out, *in;
	bool more;
	ssize_t n;

	ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUFFORCE, 4 * LARGE));
	if (self->t.rdma) {
		ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY, how.zcopy));
	}
	if (how.promised) {
		ASSERT_OK(hps_zerocopy(&self->t, self->c));
	}
	do {
		/* As much as is asked for is there; a promise is kept by memory of its own. */
		missing = got + how.len - at;
		if (missing) {
			out = hps_memory(missing);
			hps_fill(out, missing, at, 1);
			ASSERT_EQ(missing, send(self->c, out, missing,
						how.promised ? MSG_ZEROCOPY : 0));
			munmap(out, missing);
			at += missing;
		}
		in = hps_memory(how.len);
		arm(self);
		n = how.call(self->s, in, how.len, how.flags);
		more = fired(self);
		if (n < 0) {
			EXPECT_TRUE(excused(self, errno));
		} else {
			if (how.call == recv_pipe) {
				ASSERT_EQ(n, read(pipes[0], in, n));
			}
			ASSERT_EQ(n, hps_check(in, n, got, 1)) TH_LOG("failure %d", self->n);
			if (!(how.flags & MSG_PEEK))
				got += n;
		}
		munmap(in, how.len);
	} while (more);
	EXPECT_LT(0, n);
	EXPECT_LT(1, self->n);
	EXPECT_OK(shutdown(self->c, SHUT_WR));
	EXPECT_EQ(at - got, hps_pull_at(self->s, got, INT64_MAX, LARGE, 1));
	EXPECT_EQ(0, errno);
}

TEST_F(nth, recv)
{
	check_receiving(_metadata, self,
			(struct receiving){ .call = recv_memory, .len = 100 });
}

TEST_F(nth, recv_copied)
{
	check_receiving(_metadata, self,
			(struct receiving){ .call = recv_memory, .len = LARGE,
					    .zcopy = HPSOCK_ZCOPY_OFF, .flags = MSG_WAITALL });
}

TEST_F(nth, recv_placed)
{
	check_receiving(_metadata, self,
			(struct receiving){ .call = recv_memory, .len = LARGE, .promised = true,
					    .flags = MSG_WAITALL });
}

TEST_F(nth, recv_protected)
{
	check_receiving(_metadata, self,
			(struct receiving){ .call = recv_memory, .len = LARGE,
					    .zcopy = HPSOCK_ZCOPY_PROTECT, .flags = MSG_WAITALL });
}

TEST_F(nth, peek)
{
	check_receiving(_metadata, self,
			(struct receiving){ .call = recv_memory, .len = LARGE, .promised = true,
					    .flags = MSG_PEEK });
}

TEST_F(nth, splice)
{
	ASSERT_OK(pipe(pipes));
	check_receiving(_metadata, self,
			(struct receiving){ .call = recv_pipe, .len = 60000, .promised = true });
}

/* Neither what was sent is lost with it, nor that it is the end. */
TEST_F(nth, close)
{
	bool more;

	if (!self->t.rdma)
		SKIP(return, "TCP forgets FIN when it finds no memory for it");
	do {
		ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));
		ASSERT_EQ(LARGE, hps_push(self->c, LARGE, LARGE, 1));
		arm(self);
		EXPECT_OK(close(self->c));
		more = fired(self);
		EXPECT_EQ(LARGE, hps_pull(self->s, INT64_MAX, 50000, 1));
		EXPECT_EQ(0, errno);
		close(self->s);
	} while (more);
}

/* Everything that kernel threads do for a connection, at random. */
FIXTURE(behind) {
	struct hps t;
};

HPS_VARIANTS(behind);

/* Kernel threads, and those they start, may meet failures. */
static bool inject_kernel_threads(const char *yes)
{
	char path[300], name[16];
	DIR *proc = opendir("/proc");
	struct dirent *d;
	FILE *f;

	if (!proc)
		return false;
	while ((d = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", d->d_name);
		f = fopen(path, "r");
		if (!f)
			continue;
		if (fscanf(f, "%15s", name) != 1)
			*name = 0;
		fclose(f);
		snprintf(path, sizeof(path), "/proc/%s/make-it-fail", d->d_name);
		if (!strncmp(name, "kworker", 7) || !strcmp(name, "kthreadd"))
			hps_put(path, yes);
	}
	closedir(proc);
	return true;
}

/* One in so many of their allocations does not succeed, or none for 0. */
static bool inject_percent(const char *percent)
{
	bool any = strcmp(percent, "0");

	return !hps_put(DEBUG "failslab/task-filter", "Y") &&
	       !hps_put(DEBUG "failslab/times", "-1") &&
	       !hps_put(DEBUG "failslab/probability", percent) &&
	       !hps_put(DEBUG "fail_page_alloc/task-filter", "Y") &&
	       !hps_put(DEBUG "fail_page_alloc/times", "-1") &&
	       !hps_put(DEBUG "fail_page_alloc/probability", percent) &&
	       inject_kernel_threads(any ? "1" : "0");
}

FIXTURE_SETUP(behind)
{
	hps_init(&self->t, variant->rdma, variant->af);
	if (access("/proc/self/make-it-fail", F_OK))
		SKIP(return, "this kernel has no fault injection");
	if (variant->rdma && !hps_siw())
		SKIP(return, "Soft-RoCE's QP 1 is in error for good when an skb is missing");
	ASSERT_TRUE(inject_all());
}

FIXTURE_TEARDOWN(behind)
{
	inject_percent("0");
}

static long push_call(struct hps_call *call)
{
	return hps_push(call->fd, call->len, LARGE, 1);
}

/*
 * While a connection carries something: it does so to its end, or both ends hear of
 * another one. That takes a device whose connection manager can still tell them.
 */
TEST_F_TIMEOUT(behind, transfers, 600 * hps_slow())
{
	enum { ROUNDS = 30, LEN = 3 * LARGE };
	int c, s, i, whole = 0, err;
	struct hps_call push;
	int64_t got;

	if (self->t.rdma) {
		ASSERT_TRUE(hps_set_zcopy("protect"));
	}
	for (i = 0; i < ROUNDS; i++) {
		ASSERT_OK(hps_pair(&self->t, &c, &s));
		ASSERT_TRUE(inject_percent(i % 2 ? "1" : "10"));
		push = (struct hps_call){ .fn = push_call, .fd = c, .len = LEN };
		hps_start(&push);
		got = hps_pull(s, LEN, 100000, 1);
		err = errno;
		EXPECT_NE(EBADMSG, err);
		if (got < LEN) {
			EXPECT_NE(0, err) TH_LOG("end of file after %ld", (long)got);
			shutdown(s, SHUT_RDWR);
		} else {
			whole++;
		}
		ASSERT_TRUE(hps_done(&push)) TH_LOG("round %d: %ld", i, (long)got);
		EXPECT_LE(got, push.ret);
		ASSERT_TRUE(inject_percent("0"));
		close(c);
		close(s);
	}
	printf("# %d of %d whole\n", whole, ROUNDS);
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	EXPECT_TRUE(works(c, s));
	if (self->t.rdma) {
		ASSERT_TRUE(hps_set_zcopy("auto"));
	}
}

TEST_HARNESS_MAIN
