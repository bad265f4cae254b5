// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that keep a socket's lock: a send from memory whose pages somebody else has to
 * bring in (userfaultfd, FUSE), and does not. That holds up what needs the lock, and must
 * hold up nothing else.
 */
#include "hps_test.h"

#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PAGE 4096
/* More than a workqueue runs at a time */
#define HELD 300
/* So many are held at a time, each while it fetches what it was lent */
#define BATCH 10
#define LENT (1 << 20)

static uint8_t back[65536];

FIXTURE(program) {
	struct hps t;
	int uffd;
	char *missing;		/* a page that nobody brings in */
	int fuse;		/* /dev/fuse, or -1 */
	pthread_t daemon;
	uint8_t *lent;		/* LENT bytes of stream 1 */
};

FIXTURE_VARIANT(program) {
	int af;
};

FIXTURE_VARIANT_ADD(program, hpsock) { AF_INET };

FIXTURE_SETUP(program)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct rlimit files = { 4096, 4096 };

	hps_init(&self->t, true, variant->af);
	self->fuse = -1;
	self->uffd = syscall(SYS_userfaultfd, O_CLOEXEC);
	if (self->uffd < 0 && errno == ENOSYS)
		SKIP(return, "no userfaultfd in this kernel");
	ASSERT_OK(self->uffd);
	ASSERT_OK(ioctl(self->uffd, UFFDIO_API, &api));
	self->missing = hps_memory(PAGE);
	reg.range.start = (uintptr_t)self->missing;
	reg.range.len = PAGE;
	ASSERT_OK(ioctl(self->uffd, UFFDIO_REGISTER, &reg));
	ASSERT_OK(setrlimit(RLIMIT_NOFILE, &files));
	self->lent = hps_memory(LENT);
	hps_fill(self->lent, LENT, 0, 1);
	ASSERT_EQ(0, hps_add_device(0));
}

FIXTURE_TEARDOWN(program)
{
	hps_delay_no_packets();
	hps_add_device(0);
}

#define FILE_PATH "/tmp/hps_fuse"
#define FILE_LEN (256 << 10)

static ssize_t fuse_answer(int fuse, const struct fuse_in_header *in, const void *out, size_t len,
			   int err)
{
	struct fuse_out_header head = { sizeof(head) + len, err, in->unique };
	struct iovec iov[] = { { &head, sizeof(head) }, { (void *)out, len } };

	return writev(fuse, iov, 2);
}

/* A file system that is one file. It reads the first page of it, and no other, ever. */
static void fuse_serve(int fuse, const struct fuse_in_header *in)
{
	static const char page[PAGE];
	const struct fuse_read_in *what = (const void *)(in + 1);
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 31, .max_write = PAGE,
	};
	struct fuse_attr_out attr = {
		.attr_valid = 3600,
		.attr = { .ino = 1, .size = FILE_LEN, .mode = S_IFREG | 0600, .nlink = 1 },
	};
	struct fuse_open_out open = { .open_flags = FOPEN_KEEP_CACHE };

	if (in->opcode == FUSE_INIT)
		fuse_answer(fuse, in, &init, sizeof(init), 0);
	else if (in->opcode == FUSE_GETATTR)
		fuse_answer(fuse, in, &attr, sizeof(attr), 0);
	else if (in->opcode == FUSE_OPEN)
		fuse_answer(fuse, in, &open, sizeof(open), 0);
	else if (in->opcode != FUSE_READ)
		fuse_answer(fuse, in, NULL, 0, -ENOSYS);
	else if (!what->offset)
		fuse_answer(fuse, in, page, PAGE, 0);
}

static void *fuse_thread(void *arg)
{
	uint64_t buf[(FUSE_MIN_READ_BUFFER + PAGE) / 8];
	int fuse = (intptr_t)arg;

	/* Until the file system is forced away. */
	while (read(fuse, buf, sizeof(buf)) > 0)
		fuse_serve(fuse, (void *)buf);
	return NULL;
}

/* Mount it; returns a private mapping of the file, whose first page is the program's own. */
static char *fuse_map(struct _test_data_program *self)
{
	int file = open(FILE_PATH, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	char options[100], *map;
	struct stat st;

	close(file);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100000,user_id=0,group_id=0",
		 self->fuse);
	if (file < 0 || mount("hps", FILE_PATH, "fuse", 0, options) ||
	    pthread_create(&self->daemon, NULL, fuse_thread, (void *)(intptr_t)self->fuse))
		return MAP_FAILED;
	file = open(FILE_PATH, O_RDONLY | O_CLOEXEC);
	map = mmap(NULL, FILE_LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
	/* The kernel asks for the size. */
	if (map == MAP_FAILED || fstat(file, &st) || st.st_size != FILE_LEN)
		return MAP_FAILED;
	/* And now that it hears that there is no FUSE_FLUSH, also exit() does without. */
	close(file);
	map[0] = 1;
	return map;
}

/* Who waits for the file gets an error. */
static void fuse_unmount(struct _test_data_program *self)
{
	if (umount2(FILE_PATH, MNT_FORCE | MNT_DETACH))
		return;
	pthread_join(self->daemon, NULL);
	unlink(FILE_PATH);
}

/* @to fetches all that @from lends, though nobody reads. */
static int lending_pair(const struct hps *t, int *from, int *to)
{
	return hps_pair_lending(t, from, to) || hps_zerocopy(t, *from) ||
	       hps_set(*to, SOL_SOCKET, SO_RCVBUFFORCE, LENT) ? -1 : 0;
}

/* Others lend what nobody reads and what is fetched all the same, close, lose their device. */
static bool others_go_on(const struct hps *t, const uint8_t *lent)
{
	int c, s;

	return !lending_pair(t, &c, &s) && send(c, lent, LENT, MSG_ZEROCOPY) == LENT &&
	       hps_until_outq(c, 0) && hps_pull(s, LENT, LENT, 1) == LENT &&
	       !close(c) && hps_pull(s, 1, 1, 1) == 0 && !hps_remove_device(0);
}

/* Lend to each peer of a few, and wait until it is being fetched, though nobody reads. */
static bool fetched(const int *from, int nr, const uint8_t *lent)
{
	long before = hps_stat("rx_fetched");
	int i;

	for (i = 0; i < nr; i++)
		if (send(from[i], lent, LENT, MSG_ZEROCOPY) != LENT)
			return false;
	return hps_until_stat("rx_fetched", before + (nr << 16));
}

/*
 * Three hundred sockets are held, and each has a peer that has run dry: what would
 * let it have more waits for the lock. Others connect, close, and lose their device.
 */
TEST_F_TIMEOUT(program, holds_up_nobody, 120 * hps_slow())
{
	static struct hps_call call[HELD];
	int c, s, i;

	for (i = 0; i < HELD; i++) {
		ASSERT_OK(hps_pair(&self->t, &c, &s));
		call[i] = (struct hps_call){
			.fn = hps_send_call, .fd = s, .buf = self->missing, .len = 1000,
		};
		hps_block(&call[i]);
		/* All that it had credits for, and it wants more. */
		hps_nonblock(c, true);
		while (hps_push(c, 65536, 65536, 1) == 65536)
			;
	}
	ASSERT_TRUE(others_go_on(&self->t, self->lent));
	/* They get their page now; whether it still went anywhere is not known to them. */
	close(self->uffd);
	for (i = 0; i < HELD; i++) {
		ASSERT_TRUE(hps_done(&call[i]));
		EXPECT_EQ(0, hps_push(call[i].fd, 10, 10, 1));
	}
}

static long pull_call(struct hps_call *call)
{
	return hps_pull(call->fd, call->len, call->len, 1);
}

/*
 * Three hundred processes send from a file whose pages do not come, so as to have them
 * protected: some of the program's own are there. Another process sends as well.
 */
TEST_F_TIMEOUT(program, file_holds_up_nobody, 120 * hps_slow())
{
	struct hps_call out = { .fn = hps_send_call, .len = 1 << 20 }, in = { .fn = pull_call };
	long refused = hps_stat("lend_refused_file");
	int c[HELD], s, i;
	pid_t pid[HELD];
	bool sent;
	char *map;

	hps_run("modprobe -q fuse 2>/dev/null");
	self->fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (self->fuse < 0)
		SKIP(return, "no FUSE in this kernel");
	map = fuse_map(self);
	ASSERT_NE(MAP_FAILED, map);
	for (i = 0; i < HELD; i++) {
		ASSERT_OK(hps_pair_lending(&self->t, &c[i], &s));
		ASSERT_OK(hps_set(c[i], SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_PROTECT));
		pid[i] = hps_fork();
		if (!pid[i]) {
			close(self->fuse);
			_exit(send(c[i], map, FILE_LEN, 0) < 0 && errno != EFAULT);
		}
		hps_until_blocked(pid[i]);
	}
	ASSERT_OK(hps_pair_lending(&self->t, &out.fd, &in.fd));
	ASSERT_OK(hps_set(out.fd, SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_PROTECT));
	in.len = out.len;
	out.buf = hps_memory(out.len);
	hps_fill(out.buf, out.len, 0, 1);
	hps_start(&in);
	hps_start(&out);
	sent = hps_done(&out) && hps_done(&in);
	fuse_unmount(self);
	ASSERT_TRUE(sent);
	EXPECT_EQ(1 << 20, out.ret);
	EXPECT_EQ(1 << 20, in.ret);
	for (i = 0; i < HELD; i++)
		EXPECT_EQ(0, hps_reap(pid[i]));
	if (hps_stat("protect_works") == 1) {
		EXPECT_EQ(refused + HELD, hps_stat("lend_refused_file"));
	}
}

/*
 * The same with sockets that are held while they fetch: the lock is free while the device
 * reads, which takes a while when the peer is far away.
 */
TEST_F_TIMEOUT(program, fetch_holds_up_nobody, 120 * hps_slow())
{
	static struct hps_call call[HELD];
	static int from[HELD];
	int i, j;

	for (i = 0; i < HELD; i++) {
		call[i] = (struct hps_call){
			.fn = hps_send_call, .buf = self->missing, .len = 1000,
		};
		ASSERT_OK(lending_pair(&self->t, &from[i], &call[i].fd));
	}
	ASSERT_TRUE(hps_delay_packets());
	for (i = 0; i < HELD; i += BATCH) {
		ASSERT_TRUE(fetched(from + i, BATCH, self->lent));
		for (j = i; j < i + BATCH; j++)
			hps_block(&call[j]);
	}
	hps_hurry_packets();
	ASSERT_TRUE(others_go_on(&self->t, self->lent));
	close(self->uffd);
	for (i = 0; i < HELD; i++)
		ASSERT_TRUE(hps_done(&call[i]));
}

/* Packets that v1 has not sent, as they were to be lost. */
static long lost(void)
{
	long n = 0;
	FILE *tc = popen("tc -s qdisc show dev v1 | sed -n 's/.*(dropped //p'", "r");

	if (tc) {
		if (fscanf(tc, "%ld", &n) != 1)
			n = -1;
		pclose(tc);
	}
	return n;
}

/*
 * Three hundred sockets whose peers have lent what cannot be read, as no packet gets to them:
 * another that needs more receives gets them before the first of these has given up.
 */
TEST_F_TIMEOUT(program, silent_peers_hold_up_nobody, 120 * hps_slow())
{
	static int from[HELD], to[HELD];
	struct hps near = self->t;
	int c, s, i, first;

	if (hps_siw())
		SKIP(return, "of Soft-iWARP's TCP one cannot see what is lost");
	near.b = near.a;
	ASSERT_OK(lending_pair(&near, &c, &s));
	for (i = 0; i < HELD; i++) {
		ASSERT_OK(lending_pair(&self->t, &from[i], &to[i]));
		ASSERT_OK(hps_set(from[i], SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, PAGE));
	}
	/* On a debug kernel it may have given up before the last has lent. */
	first = hps_slow() == 1 ? to[0] : -1;
	ASSERT_TRUE(hps_settle());
	ASSERT_EQ(0, hps_run("tc qdisc replace dev v1 root netem loss 100%%"));
	for (i = 0; i < HELD; i++)
		ASSERT_EQ(2 * PAGE, send(from[i], self->lent, 2 * PAGE, MSG_ZEROCOPY));
	/* What was lent is not acknowledged, and not asked for. */
	while (lost() < 2 * HELD)
		ASSERT_EQ(0, hps_poll(first, POLLERR, 1));
	EXPECT_EQ(LENT, hps_push(c, LENT, 65536, 1));
	EXPECT_EQ(0, hps_poll(first, POLLERR, 0));
}

/* A send that was held while its socket fetched, and what came meanwhile. */
static bool held(struct hps_call *call, const struct hps *t, int *from, const char *missing,
		 const uint8_t *lent)
{
	*call = (struct hps_call){
		.fn = hps_send_call, .buf = (void *)missing, .len = 1000,
	};
	if (lending_pair(t, from, &call->fd) || !hps_delay_packets() || !fetched(from, 1, lent))
		return false;
	hps_block(call);
	hps_hurry_packets();
	return hps_settle();
}

/* What was fetched while the lock was taken is read when it is free, in its place. */
TEST_F(program, fetched_when_held)
{
	struct hps_call call, pull = { .fn = hps_recv_call, .buf = hps_memory(1000), .len = 1000 };
	int c;

	ASSERT_TRUE(held(&call, &self->t, &c, self->missing, self->lent));
	pull.fd = call.fd;
	hps_block(&pull);
	close(self->uffd);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(1000, call.ret);
	ASSERT_TRUE(hps_done(&pull));
	ASSERT_EQ(1000, pull.ret);
	EXPECT_EQ(1000, hps_check(pull.buf, 1000, 0, 1));
	EXPECT_EQ(LENT - 1000, hps_pull_at(call.fd, 1000, LENT - 1000, 65536, 1));
	EXPECT_TRUE(hps_until_outq(c, 0));
}

/* The same if nobody reads, and only the sender's end shows that all was fetched. */
TEST_F(program, fetched_after_held)
{
	struct hps_call call;
	int c;

	ASSERT_TRUE(held(&call, &self->t, &c, self->missing, self->lent));
	close(self->uffd);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_TRUE(hps_until_outq(c, 0));
	EXPECT_EQ(LENT, hps_pull(call.fd, LENT, LENT, 1));
}

/* The connection ends meanwhile: what was fetched is read, then its end. */
TEST_F(program, end_under_fetch)
{
	struct hps_call call;
	uint64_t got = 0;
	ssize_t n;
	int c;

	ASSERT_TRUE(held(&call, &self->t, &c, self->missing, self->lent));
	EXPECT_OK(hps_reset(c));
	ASSERT_TRUE(hps_settle());
	close(self->uffd);
	ASSERT_TRUE(hps_done(&call));
	while ((n = recv(call.fd, back, sizeof(back), 0)) > 0) {
		EXPECT_EQ(n, hps_check(back, n, got, 1));
		got += n;
	}
	EXPECT_LE(65536, got);
}

/* The program disconnects meanwhile, and has another connection with the same socket. */
TEST_F(program, reconnect_under_fetch)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct hps_call call;
	struct hps_addr at;
	int c, l, s;

	ASSERT_TRUE(held(&call, &self->t, &c, self->missing, self->lent));
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	close(self->uffd);
	ASSERT_OK(connect(call.fd, &none, sizeof(none)));
	ASSERT_TRUE(hps_done(&call));
	ASSERT_OK(hps_connect(call.fd, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	EXPECT_EQ(5000, hps_push(s, 5000, 5000, 1));
	EXPECT_EQ(5000, hps_pull(call.fd, 5000, 5000, 1));
}

/* A connection ends while a writer is still copying: its bytes are not kept for nobody. */
TEST_F(program, end_under_copy)
{
	struct hps_call call = { .fn = hps_send_call, .buf = self->missing, .len = 1000 };
	long before;
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_TRUE(hps_settle());
	before = hps_send_memory();
	call.fd = c;
	hps_block(&call);
	EXPECT_OK(hps_reset(s));
	ASSERT_TRUE(hps_settle());
	close(self->uffd);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_TRUE(hps_until_no_wmem(c));
	EXPECT_GE(before, hps_send_memory());
}

TEST_HARNESS_MAIN
