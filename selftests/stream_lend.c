// SPDX-License-Identifier: GPL-2.0
/*
 * Sends that the peer reads from where they are: by a promise (MSG_ZEROCOPY, where pages
 * cannot be protected, as in User Mode Linux), or with their pages protected, while
 * the program may do with its memory what it likes. What arrives is what was there when
 * send() returned; and a reader, whatever it asks for, sees what it would see of TCP.
 */
#include "hps_test.h"

#include <limits.h>
#include <linux/sockios.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/time.h>

#define MIB (1 << 20)
#define HUGE (2 * MIB)

/*
 * Some devices are asked to read only who insists on it when it connects. TCP gets room
 * for what is sent before anybody reads.
 */
static int insisting_pair(const struct hps *t, int *client, int *server)
{
	if (hps_pair_lending(t, client, server))
		return -1;
	if (t->rdma)
		return 0;
	return hps_set(*client, SOL_SOCKET, SO_SNDBUFFORCE, 2 * MIB) ||
	       hps_set(*server, SOL_SOCKET, SO_SNDBUFFORCE, 2 * MIB) ? -1 : 0;
}

FIXTURE(lend) {
	struct hps t;
	int c, s;
};

HPS_VARIANTS(lend);

FIXTURE_SETUP(lend)
{
	hps_init(&self->t, variant->rdma, variant->af);
	ASSERT_OK(insisting_pair(&self->t, &self->c, &self->s));
}

FIXTURE_TEARDOWN(lend) { }

static _Alignas(4096) uint8_t in[4 * MIB];

/* Can pages be protected here? Otherwise a send is copied, and no less right. */
static bool protects(const struct hps *t)
{
	return t->rdma && hps_stat("protect_works") == 1;
}

/* Protect, whatever becomes of the pages. */
static int protect(const struct hps *t, int fd)
{
	return t->rdma ? hps_set(fd, SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_PROTECT) : 0;
}

static int waits(const struct hps *t, int fd)
{
	return t->rdma ? hps_set(fd, SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_WAIT) : 0;
}

/* Without a reader. TCP would take for ever with such a window. */
static int fetches_little(const struct hps *t, int fd)
{
	return t->rdma ? hps_set(fd, SOL_SOCKET, SO_RCVBUF, 4096) : 0;
}

/* Promise, where that is what lends. Completions are not read. */
static int promise(const struct hps *t, int fd)
{
	if (!t->rdma)
		return 0;
	return hps_zerocopy(t, fd);
}

static int promised(const struct hps *t)
{
	return t->rdma ? MSG_ZEROCOPY : 0;
}

/* All of @len bytes, byte i being byte @at + i of the stream @seed. */
static bool send_all(int fd, const void *buf, size_t len, int flags)
{
	ssize_t n;

	for (; len; len -= n, buf = (const uint8_t *)buf + n) {
		n = send(fd, buf, len, flags);
		if (n < 0)
			return false;
	}
	return true;
}

/*
 * The @len bytes at @out, which are sent from @at of stream 1 on and written to at once,
 * arrive as they were
 */
static bool arrives(int from, int to, uint8_t *out, size_t len, uint64_t at)
{
	hps_fill(out, len, at, 1);
	if (!send_all(from, out, len, 0))
		return false;
	memset(out, 0xee, len);
	return hps_pull_at(to, at, len, len, 1) == (int64_t)len;
}

/*
 * Has it been as many bytes that were lent, since @before? They are counted when they are on
 * their way, which may be after they were read.
 */
static bool lent(const struct hps *t, long before, long bytes)
{
	return !t->rdma || (hps_until_stat("tx_lent", before + bytes) &&
			    hps_stat("tx_lent") - before == bytes);
}

/* Everything that was protected for anybody is given back. */
static bool nothing_held(const struct hps *t)
{
	int64_t end = hps_now() + hps_deadline();

	while (t->rdma && hps_stat("protect_holds") && hps_now() < end)
		hps_poll(-1, 0, 10);
	return !t->rdma || !hps_stat("protect_holds");
}

static long pull_call(struct hps_call *call)
{
	return hps_pull(call->fd, call->len, call->arg, 1);
}

static long push_call(struct hps_call *call)
{
	return send_all(call->fd, call->buf, call->len, call->arg);
}

TEST_F(lend, one)
{
	struct hps_call call = { .fn = pull_call, .fd = self->s, .len = MIB, .arg = MIB };
	long before = hps_stat("tx_lent"), placed = hps_stat("rx_placed");
	uint8_t *out = hps_memory(MIB);

	ASSERT_OK(promise(&self->t, self->c));
	hps_fill(out, MIB, 0, 1);
	hps_start(&call);
	ASSERT_TRUE(send_all(self->c, out, MIB, promised(&self->t)));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(MIB, call.ret);
	EXPECT_TRUE(lent(&self->t, before, MIB));
	/* The reader was there, with a large buffer. */
	if (self->t.rdma) {
		EXPECT_LT(0, hps_stat("rx_placed") - placed);
	}
}

/* send() returns, the buffer is written to at once, and then it is read. */
TEST_F(lend, scribble)
{
	enum { LEN = 256 << 10 };
	long before = hps_stat("tx_lent");
	uint8_t *out = hps_memory(LEN);
	int i;

	ASSERT_OK(protect(&self->t, self->c));
	for (i = 0; i < 8; i++) {
		ASSERT_TRUE(arrives(self->c, self->s, out, LEN, (uint64_t)i * LEN));
		/* And the program has what it wrote. */
		EXPECT_EQ(0xee, out[0]);
		EXPECT_EQ(0xee, out[LEN - 1]);
	}
	if (protects(&self->t)) {
		EXPECT_TRUE(lent(&self->t, before, 8 * LEN));
	}
	EXPECT_TRUE(nothing_held(&self->t));
}

struct scribbler {
	pthread_t thread;
	atomic_bool stop;
	uint8_t *at;
	size_t len;
};

static void *scribble_thread(void *arg)
{
	struct scribbler *s = arg;
	uint64_t state = 1;

	while (!s->stop)
		s->at[hps_random(&state) % s->len] = 0xee;
	return NULL;
}

/* Another thread writes to what was sent, all the time. */
TEST_F(lend, thread_scribbles)
{
	enum { LEN = 192 << 10, ROUNDS = 40 };
	struct hps_call call = { .fn = pull_call, .fd = self->s, .len = LEN * ROUNDS,
				 .arg = 100000 };
	struct scribbler s[2];
	uint8_t *out[2];
	int i;

	ASSERT_OK(protect(&self->t, self->c));
	hps_start(&call);
	for (i = 0; i < 2; i++)
		out[i] = hps_memory(LEN);
	for (i = 0; i < ROUNDS; i++) {
		struct scribbler *mine = &s[i % 2];

		if (i >= 2) {
			mine->stop = true;
			pthread_join(mine->thread, NULL);
		}
		hps_fill(out[i % 2], LEN, (uint64_t)i * LEN, 1);
		ASSERT_TRUE(send_all(self->c, out[i % 2], LEN, 0));
		*mine = (struct scribbler){ .at = out[i % 2], .len = LEN };
		ASSERT_EQ(0, pthread_create(&mine->thread, NULL, scribble_thread, mine));
	}
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LEN * ROUNDS, call.ret);
	for (i = 0; i < 2; i++) {
		s[i].stop = true;
		pthread_join(s[i].thread, NULL);
	}
	EXPECT_TRUE(nothing_held(&self->t));
}

/* Has this kernel huge pages for a program that asks for them? */
static bool has_huge_pages(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
	char how[64] = "";
	bool has;

	if (!f)
		return false;
	has = fgets(how, sizeof(how), f) && !strstr(how, "[never]");
	fclose(f);
	return has;
}

/* How much of the mapping that has @p is in huge pages, KiB */
static long huge_kb(const uint8_t *p)
{
	FILE *f = fopen("/proc/self/smaps", "r");
	unsigned long begin, end;
	bool here = false;
	char line[512];
	long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "%lx-%lx", &begin, &end) == 2)
			here = begin <= (uintptr_t)p && (uintptr_t)p < end;
		else if (here && sscanf(line, "AnonHugePages: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

/* Memory at a multiple of HUGE, of pages as @advice says, where all bytes are 0xee */
static uint8_t *huge_memory(size_t len, int advice)
{
	uintptr_t at = (uintptr_t)hps_memory(len + HUGE);
	uint8_t *p = (uint8_t *)((at + HUGE - 1) / HUGE * HUGE);

	madvise(p, len, advice);
	return memset(p, 0xee, len);
}

/* Are all bytes 0xee? */
static bool untouched(const uint8_t *p, size_t len)
{
	return *p == 0xee && !memcmp(p, p + 1, len - 1);
}

/*
 * The @len bytes at @out, of which the program writes to each @piece as soon as its send()
 * has returned, arrive at @into as they were.
 */
static bool moves(int from, int to, uint8_t *out, uint8_t *into, size_t len, size_t piece,
		  uint64_t at)
{
	size_t done, n;

	hps_fill(out, len, at, 1);
	for (done = 0; done < len; done += n) {
		n = len - done < piece ? len - done : piece;
		if (!send_all(from, out + done, n, 0))
			return false;
		memset(out + done, 0xee, n);
	}
	return recv(to, into, len, MSG_WAITALL) == (ssize_t)len &&
	       hps_check(into, len, at, 1) == len;
}

/*
 * From huge pages to huge pages, and back to where the bytes came from: pages that are
 * whole, and then what that has left of them. And the same with small pages.
 */
TEST_F_TIMEOUT(lend, huge_pages, 200 * hps_slow())
{
	/* The rest of a send is copied if it is less than the threshold. */
	enum { LEN = 3 * HUGE, ROUNDS = 2, THRESHOLD = 128 << 10 };
	static const int advice[] = { MADV_HUGEPAGE, MADV_NOHUGEPAGE };
	static const struct {
		size_t from, to, len, piece;
	} cases[] = {
		{ 0, 0, 2 * HUGE, HUGE },
		{ 0, HUGE, MIB, MIB / 4 },
		{ HUGE + 5 * 4096, 3 * 4096, MIB, MIB },
		{ 4095, HUGE + 1, HUGE + 300000, 500001 },
		{ HUGE - 200001, 2 * HUGE - 1000, 400001, 400001 },
	};
	long placed = hps_stat("rx_placed"), least = 0, sum = 0;
	uint64_t at = 0;
	unsigned int i;
	int k;

	if (!has_huge_pages())
		SKIP(return, "this kernel has no huge pages");
	/* Nobody reads while this sends: room for all of it, of which little is fetched. */
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUFFORCE, 2 * LEN));
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_SNDBUFFORCE, 2 * LEN));
	ASSERT_OK(fetches_little(&self->t, self->c));
	ASSERT_OK(fetches_little(&self->t, self->s));
	ASSERT_OK(protect(&self->t, self->c));
	ASSERT_OK(protect(&self->t, self->s));
	for (i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		size_t from = cases[i / 2].from, to = cases[i / 2].to;
		size_t len = cases[i / 2].len, piece = cases[i / 2].piece;
		uint8_t *out = huge_memory(LEN, advice[i % 2]);
		uint8_t *into = huge_memory(LEN, advice[i % 2]);
		long kb = huge_kb(out) + huge_kb(into), before;

		if (advice[i % 2] == MADV_NOHUGEPAGE) {
			EXPECT_EQ(0, kb);
		} else if (kb < 2 * LEN >> 10) {
			TH_LOG("only %ld KiB of huge pages were to be had", kb);
		}
		for (k = 0; k < ROUNDS; k++, at += 2 * len) {
			before = hps_stat("tx_lent");
			ASSERT_TRUE(moves(self->c, self->s, out + from, into + to, len, piece, at))
				TH_LOG("case %u, round %d, there", i, k);
			sum += hps_stat("tx_lent") - before;
			least += len - (len + piece - 1) / piece * THRESHOLD;
			/* What was read to there just now is lent in its turn. */
			ASSERT_TRUE(moves(self->s, self->c, into + to, out + from, len, piece,
					  at + len)) TH_LOG("case %u, round %d, back", i, k);
			/* The program has what it wrote, and nobody wrote beside it. */
			memset(out + from, 0xee, len);
			EXPECT_TRUE(untouched(out, LEN) && untouched(into, LEN))
				TH_LOG("case %u, round %d", i, k);
		}
		munmap(out, LEN);
		munmap(into, LEN);
	}
	if (protects(&self->t)) {
		EXPECT_LT(least, sum);
		EXPECT_LT(least, hps_stat("rx_placed") - placed);
	}
	EXPECT_TRUE(nothing_held(&self->t));
}

/* What a program may do to its memory before the peer reads. */
static void undo_unmap(uint8_t *out, size_t len)
{
	munmap(out, len);
}

static void undo_remap(uint8_t *out, size_t len)
{
	uint8_t *moved = mremap(out, len, len, MREMAP_MAYMOVE | MREMAP_FIXED,
				hps_memory(2 * len));

	memset(moved, 0xee, len);
}

static void undo_dontneed(uint8_t *out, size_t len)
{
	madvise(out, len, MADV_DONTNEED);
	memset(out, 0xee, len);
}

static void undo_readonly(uint8_t *out, size_t len)
{
	mprotect(out, len, PROT_READ);
}

static void undo_fork(uint8_t *out, size_t len)
{
	pid_t pid = hps_fork();

	if (!pid) {
		memset(out, 0xdd, len);
		_exit(0);
	}
	memset(out, 0xee, len);
	hps_reap(pid);
}

TEST_F(lend, memory_gone)
{
	static void (*const undo[])(uint8_t *out, size_t len) = {
		undo_unmap, undo_remap, undo_dontneed, undo_readonly, undo_fork,
	};
	enum { LEN = 128 << 10 };
	unsigned int i;

	ASSERT_OK(protect(&self->t, self->c));
	for (i = 0; i < sizeof(undo) / sizeof(*undo); i++) {
		uint8_t *out = hps_memory(LEN);

		hps_fill(out, LEN, (uint64_t)i * LEN, 1);
		ASSERT_TRUE(send_all(self->c, out, LEN, 0));
		undo[i](out, LEN);
		EXPECT_EQ(LEN, hps_pull_at(self->s, (uint64_t)i * LEN, LEN, LEN, 1))
			TH_LOG("case %u", i);
	}
	EXPECT_TRUE(nothing_held(&self->t));
}

/*
 * Memory that the thread's protection keys do not let it read is sent neither as a copy nor
 * from where it is; what it may not write to but read, is.
 */
TEST_F(lend, protection_key)
{
	enum { LEN = 256 << 10 };
	uint8_t *out = hps_memory(LEN);
	int key = pkey_alloc(0, 0);
	long before;

	if (key < 0)
		SKIP(return, "no protection keys here: %s", strerrorname_np(errno));
	ASSERT_OK(protect(&self->t, self->c));
	ASSERT_OK(pkey_mprotect(out, LEN, PROT_READ | PROT_WRITE, key));
	before = hps_stat("tx_lent");
	ASSERT_TRUE(arrives(self->c, self->s, out, LEN, 0));
	hps_fill(out, LEN, LEN, 1);
	ASSERT_OK(pkey_set(key, PKEY_DISABLE_ACCESS));
	EXPECT_ERRNO(EFAULT, send(self->c, out, LEN, 0));
	ASSERT_OK(pkey_set(key, PKEY_DISABLE_WRITE));
	ASSERT_EQ(LEN, send(self->c, out, LEN, 0));
	ASSERT_OK(pkey_set(key, 0));
	memset(out, 0xee, LEN);
	EXPECT_EQ(LEN, hps_pull_at(self->s, LEN, LEN, LEN, 1));
	if (protects(&self->t)) {
		EXPECT_TRUE(lent(&self->t, before, 2 * LEN));
	}
	ASSERT_OK(pkey_free(key));
	EXPECT_TRUE(nothing_held(&self->t));
}

/* The process is gone, by itself or not, before anything is read. */
TEST_F(lend, process_gone)
{
	enum { LEN = 512 << 10 };
	int i, c, s, ready[2];
	char byte;

	for (i = 0; i < 3; i++) {
		pid_t pid;

		ASSERT_OK(insisting_pair(&self->t, &c, &s));
		ASSERT_OK(protect(&self->t, c));
		ASSERT_OK(pipe(ready));
		pid = hps_fork();
		if (!pid) {
			uint8_t *out = hps_memory(LEN);

			hps_fill(out, LEN, 0, 1);
			byte = send_all(c, out, LEN, 0);
			if (write(ready[1], &byte, 1) != 1 || !i)
				_exit(0);
			if (i == 1)
				execl("/bin/true", "true", NULL);
			pause();
		}
		close(c);
		close(ready[1]);
		ASSERT_EQ(1, read(ready[0], &byte, 1));
		EXPECT_EQ(1, byte);
		close(ready[0]);
		if (i == 2) {
			kill(pid, SIGKILL);
		}
		waitpid(pid, NULL, 0);
		EXPECT_EQ(LEN, hps_pull(s, LEN, 65536, 1)) TH_LOG("case %d", i);
		EXPECT_EQ(0, recv(s, in, 1, 0)) TH_LOG("case %d", i);
		close(s);
	}
	EXPECT_TRUE(nothing_held(&self->t));
}

/* Any size, any place, read in any way. */
TEST_F(lend, random)
{
	enum { SENDS = 60, MAX = 700 << 10 };
	uint64_t state = 7, at = 0, got = 0;
	uint8_t *out[4];
	int i, how;

	/* Nobody reads while this sends: room for all of it. */
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUFFORCE, 2 * MAX));
	ASSERT_OK(protect(&self->t, self->c));
	ASSERT_OK(promise(&self->t, self->c));
	for (i = 0; i < 4; i++)
		out[i] = hps_memory(MAX + 8192);
	for (i = 0; i < SENDS; i++) {
		size_t len = 1 + hps_random(&state) % MAX, off = hps_random(&state) % 8192;
		uint8_t *from = out[i % 4] + off;

		if (i % 3 == 0)
			len = 1 + len % 3000;
		hps_fill(from, len, at, 1);
		/* A promise is kept: four sends later, this one was read. */
		ASSERT_TRUE(send_all(self->c, from, len,
				     hps_random(&state) % 2 ? promised(&self->t) : 0));
		at += len;
		while (got < at) {
			size_t want = 1 + hps_random(&state) % MAX;
			ssize_t n, seen;

			how = hps_random(&state) % 8;
			if (how == 0)
				want = 1 + want % 5000;
			if (how == 1) {
				want = 1 + want % 200000;
				seen = recv(self->s, in, want, MSG_PEEK);
				ASSERT_LT(0, seen);
				ASSERT_EQ(seen, hps_check(in, seen, got, 1));
			}
			if (how == 2) {
				n = recv(self->s, NULL, want, MSG_TRUNC);
				ASSERT_LT(0, n);
				got += n;
				continue;
			}
			if (how == 3 && want > at - got)
				want = at - got;
			off = hps_random(&state) % 4096;
			n = recv(self->s, in + off, want, how == 3 ? MSG_WAITALL : 0);
			ASSERT_LT(0, n);
			ASSERT_EQ(n, hps_check(in + off, n, got, 1));
			got += n;
		}
	}
	EXPECT_EQ(0, hps_inq(self->s));
}

/* Pieces in one call: of mappings that can be protected, and of others. */
TEST_F(lend, vectored)
{
	enum { PIECE = 80 << 10, PIECES = 6, LEN = PIECE * PIECES };
	struct hps_call call = { .fn = pull_call, .fd = self->s, .len = LEN, .arg = 300000 };
	struct iovec iov[PIECES];
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = PIECES };
	int i;

	ASSERT_OK(protect(&self->t, self->c));
	for (i = 0; i < PIECES; i++) {
		iov[i].iov_len = PIECE;
		iov[i].iov_base = i % 2 ? hps_memory(PIECE) :
				  mmap(NULL, PIECE, PROT_READ | PROT_WRITE,
				       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		hps_fill(iov[i].iov_base, PIECE, (uint64_t)i * PIECE, 1);
	}
	hps_start(&call);
	ASSERT_EQ(LEN, sendmsg(self->c, &msg, 0));
	for (i = 0; i < PIECES; i++)
		memset(iov[i].iov_base, 0xee, PIECE);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LEN, call.ret);
}

enum { PATCH = 112 << 10 };

/* Memory of @len bytes that consists of mappings of all kinds, filled with stream 1. */
static uint8_t *patchwork(size_t len)
{
	uint8_t *mem = hps_memory(len);
	int fd = memfd_create("patchwork", 0);
	size_t at;

	hps_fill(mem, len, 0, 1);
	if (fd < 0 || write(fd, mem, len) != (ssize_t)len)
		abort();
	/* Of the program's own is the first of four, and the third as far as it writes. */
	for (at = PATCH; at < len; at += PATCH) {
		int kind = at / PATCH % 4;

		if (kind && mmap(mem + at, len - at < PATCH ? len - at : PATCH,
				 kind == 3 ? PROT_READ : PROT_READ | PROT_WRITE,
				 MAP_FIXED | (kind == 1 ? MAP_SHARED : MAP_PRIVATE), fd,
				 at) == MAP_FAILED)
			abort();
		if (kind == 2)
			mem[at + PATCH / 2] = mem[at + PATCH / 2];
	}
	close(fd);
	return mem;
}

/* Cut into as many pieces as a call takes, at random. */
static void cut(struct iovec *iov, uint8_t *mem, size_t len, uint64_t *state)
{
	size_t mean = len / IOV_MAX, n;
	int i;

	for (i = 0; i < IOV_MAX; i++, mem += n, len -= n) {
		n = i == IOV_MAX - 1 ? len : 1 + hps_random(state) % (2 * mean);
		if (n > len - (IOV_MAX - 1 - i))
			n = len - (IOV_MAX - 1 - i);
		iov[i] = (struct iovec){ mem, n };
	}
}

static long sendmsg_call(struct hps_call *call)
{
	struct msghdr msg = { .msg_iov = call->buf, .msg_iovlen = IOV_MAX };

	return sendmsg(call->fd, &msg, 0);
}

TEST_F(lend, patchwork)
{
	enum { LEN = 4 * MIB };
	static struct iovec out[IOV_MAX], into[IOV_MAX];
	struct hps_call call = { .fn = sendmsg_call, .fd = self->c, .buf = out };
	struct msghdr msg = { .msg_iov = into, .msg_iovlen = IOV_MAX };
	uint8_t *mem = patchwork(LEN);
	long before;
	uint64_t state = 1;

	ASSERT_OK(protect(&self->t, self->c));
	if (self->t.rdma) {
		ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, 4096));
	}
	cut(out, mem, LEN, &state);
	cut(into, in, LEN, &state);
	hps_start(&call);
	ASSERT_EQ(LEN, recvmsg(self->s, &msg, MSG_WAITALL));
	EXPECT_EQ(LEN, hps_check(in, LEN, 0, 1));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LEN, call.ret);
	/* And all of it in one piece. */
	call = (struct hps_call){ .fn = push_call, .fd = self->c, .buf = mem, .len = LEN };
	hps_start(&call);
	ASSERT_EQ(LEN, hps_pull(self->s, LEN, LEN, 1));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_TRUE(call.ret);
	/* What of that was tried is chance; one patch, of the program's own, can be lent. */
	before = hps_stat("tx_lent");
	call = (struct hps_call){ .fn = push_call, .fd = self->c, .buf = mem, .len = PATCH };
	hps_start(&call);
	ASSERT_EQ(PATCH, hps_pull(self->s, PATCH, LEN, 1));
	ASSERT_TRUE(hps_done(&call));
	if (protects(&self->t)) {
		EXPECT_TRUE(lent(&self->t, before, PATCH));
	}
	EXPECT_TRUE(nothing_held(&self->t));
}

/* A reader with pieces of memory, large and small. */
TEST_F(lend, scattered)
{
	enum { LEN = MIB };
	struct iovec iov[] = {
		{ in, 100 }, { in + 5000, 70000 }, { in + 100001, 3 },
		{ in + 200001, 600000 }, { in + MIB, LEN },
	};
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 5 };
	uint8_t *out = hps_memory(LEN);
	struct hps_call call = { .fn = push_call, .fd = self->c, .buf = out, .len = LEN,
				 .arg = promised(&self->t) };
	uint64_t at = 0;
	int i;

	ASSERT_OK(protect(&self->t, self->c));
	ASSERT_OK(promise(&self->t, self->c));
	hps_fill(out, LEN, 0, 1);
	hps_start(&call);
	iov[4].iov_len = LEN - 100 - 70000 - 3 - 600000;
	ASSERT_EQ(LEN, recvmsg(self->s, &msg, MSG_WAITALL));
	for (i = 0; i < 5; at += iov[i++].iov_len)
		EXPECT_EQ(iov[i].iov_len, hps_check(iov[i].iov_base, iov[i].iov_len, at, 1))
			TH_LOG("piece %d", i);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_TRUE(call.ret);
}

/* Nobody reads: the bytes come all the same, as far as SO_RCVBUF goes, and the close. */
TEST_F(lend, nobody_reads)
{
	enum { LEN = 32 << 10 };
	long before = hps_stat("rx_fetched");
	uint8_t *out = hps_memory(LEN);

	if (self->t.rdma) {
		ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, LEN));
	}
	ASSERT_OK(promise(&self->t, self->c));
	hps_fill(out, LEN, 0, 1);
	ASSERT_TRUE(send_all(self->c, out, LEN, promised(&self->t)));
	ASSERT_TRUE(hps_until_inq(self->s, LEN));
	EXPECT_TRUE(hps_until_outq(self->c, 0));
	if (self->t.rdma) {
		EXPECT_EQ(LEN, hps_stat("rx_fetched") - before);
	}
	EXPECT_EQ(LEN, hps_inq(self->s));
	ASSERT_OK(close(self->c));
	EXPECT_EQ(LEN, hps_pull(self->s, INT64_MAX, MIB, 1));
	EXPECT_EQ(0, errno);
}

/* close() says nothing of what was lent, and all of it comes. */
TEST_F(lend, close_then_read)
{
	enum { LEN = 480 << 10 };
	uint8_t *out = hps_memory(LEN);

	ASSERT_OK(protect(&self->t, self->c));
	hps_fill(out, LEN, 0, 1);
	ASSERT_TRUE(send_all(self->c, out, LEN, 0));
	ASSERT_EQ(1000, hps_pull(self->s, 1000, 1000, 1));
	ASSERT_OK(close(self->c));
	munmap(out, LEN);
	EXPECT_EQ(LEN - 1000, hps_pull_at(self->s, 1000, INT64_MAX, 300000, 1));
	EXPECT_EQ(0, errno);
	EXPECT_TRUE(nothing_held(&self->t));
}

/* Both send, and only then read. */
TEST_F(lend, both_send)
{
	enum { LEN = 480 << 10 };
	uint8_t *out[2] = { hps_memory(LEN), hps_memory(LEN) };
	int fd[2] = { self->c, self->s }, i;

	for (i = 0; i < 2; i++) {
		ASSERT_OK(protect(&self->t, fd[i]));
		hps_fill(out[i], LEN, 0, i);
		ASSERT_TRUE(send_all(fd[i], out[i], LEN, 0));
		memset(out[i], 0xee, LEN);
	}
	for (i = 0; i < 2; i++)
		EXPECT_EQ(LEN, hps_pull(fd[i], LEN, LEN, !i));
}

/* The same with much more than a peer keeps for its reader, in each way there is. */
TEST_F_TIMEOUT(lend, both_send_much, 200 * hps_slow())
{
	/* An emulated computer takes a second for each. */
	const size_t len = hps_slow() < 10 ? 16 * MIB : 4 * MIB;
	int (*const way[])(const struct hps *, int) = { protect, waits, promise };
	uint8_t *out[2] = { hps_memory(len), hps_memory(len) };
	int fd[2] = { self->c, self->s }, i, k;

	for (k = 0; k < 3; k++) {
		for (i = 0; i < 2; i++) {
			ASSERT_OK(hps_set(fd[i], SOL_SOCKET, SO_SNDBUFFORCE, 64 * MIB));
			ASSERT_OK(way[k](&self->t, fd[i]));
			hps_fill(out[i], len, k * len, i);
			ASSERT_EQ(len, send(fd[i], out[i], len, k == 2 ? promised(&self->t) : 0));
			/* What was promised is left alone. */
			if (k < 2)
				memset(out[i], 0xee, len);
		}
		for (i = 0; i < 2; i++) {
			ASSERT_EQ(len, hps_pull_at(fd[i], k * len, len, MIB, !i));
		}
	}
	EXPECT_TRUE(nothing_held(&self->t));
}

/* The reader is gone with what it has not read. */
TEST_F(lend, reader_gone)
{
	enum { LEN = 512 << 10 };
	uint8_t *out = hps_memory(LEN);
	struct tcp_info info;
	socklen_t len = sizeof(info);

	ASSERT_OK(protect(&self->t, self->c));
	ASSERT_OK(promise(&self->t, self->c));
	hps_fill(out, LEN, 0, 1);
	ASSERT_TRUE(send_all(self->c, out, LEN / 2, promised(&self->t)));
	ASSERT_TRUE(send_all(self->c, out + LEN / 2, LEN / 2, 0));
	ASSERT_EQ(1, hps_pull(self->s, 1, 1, 1));
	ASSERT_OK(close(self->s));
	/* Completions are POLLERR, too. */
	EXPECT_TRUE(hps_wait_exactly(self->c, POLLHUP) & POLLHUP);
	EXPECT_EQ(ECONNRESET, hps_error(self->c));
	ASSERT_OK(getsockopt(self->c, SOL_TCP, TCP_INFO, &info, &len));
	EXPECT_EQ(0, info.tcpi_unacked);
	EXPECT_TRUE(nothing_held(&self->t));
	memset(out, 0xee, LEN);
}

/* The sender is gone: what was not read is not to be had, however one asks. */
TEST_F(lend, sender_gone)
{
	enum { LEN = 300000, FIRST = 1000 };
	uint8_t *out = hps_memory(LEN);
	int left;

	/* TCP would have received it, and forgets all of it. */
	if (!self->t.rdma)
		SKIP(return, "TCP would have received it");
	ASSERT_OK(promise(&self->t, self->c));
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 4096));
	hps_fill(out, LEN, 0, 1);
	ASSERT_TRUE(send_all(self->c, out, FIRST, 0));
	ASSERT_TRUE(send_all(self->c, out + FIRST, LEN - FIRST, promised(&self->t)));
	ASSERT_TRUE(hps_until_inq(self->s, LEN));
	ASSERT_OK(hps_reset(self->c));
	ASSERT_TRUE(hps_wait(self->s, POLLERR) & POLLERR);
	/* Before the reset goes, the kernel here may come for some of it. */
	left = hps_inq(self->s);
	EXPECT_LE(FIRST, left);
	EXPECT_GT(LEN, left);
	EXPECT_EQ(left, recv(self->s, in, LEN, MSG_PEEK));
	EXPECT_EQ(left, recv(self->s, NULL, 2 * LEN, MSG_TRUNC));
	EXPECT_ERRNO(ECONNRESET, recv(self->s, NULL, 2 * LEN, MSG_TRUNC));
	EXPECT_EQ(0, recv(self->s, NULL, 2 * LEN, MSG_TRUNC));
	EXPECT_EQ(0, hps_inq(self->s));
}

/* Who looks far ahead has what is before that fetched as well. */
TEST_F(lend, peek_off)
{
	/* TCP has less room. */
	size_t len = self->t.rdma ? 60000 : 10000, at = len * 3 / 2;
	uint8_t *out = hps_memory(3 * len);
	int i;

	if (hps_set(self->s, SOL_SOCKET, SO_PEEK_OFF, at))
		SKIP(return, "this kernel has no SO_PEEK_OFF for TCP");
	if (self->t.rdma) {
		ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, 32768));
	}
	ASSERT_OK(promise(&self->t, self->c));
	hps_fill(out, 3 * len, 0, 1);
	for (i = 0; i < 3; i++) {
		ASSERT_TRUE(send_all(self->c, out + i * len, len, promised(&self->t)));
	}
	ASSERT_TRUE(hps_until_inq(self->s, 3 * len));
	ASSERT_EQ(1000, recv(self->s, in, 1000, MSG_PEEK));
	EXPECT_EQ(1000, hps_check(in, 1000, at, 1));
	EXPECT_EQ(3 * len, hps_pull(self->s, 3 * len, len, 1));
	ASSERT_TRUE(send_all(self->c, out, len, promised(&self->t)));
	EXPECT_EQ(len, hps_pull(self->s, len, len, 1));
}

/*
 * Offers that take long to be read do not keep a reader: it may not wait and has got
 * something, which who waits for edges is told of, or a signal has come.
 */
static int64_t read_slowly(const struct hps *t, int c, int s, int signal)
{
	enum { LEN = 4096, SENDS = 8, ALL = LEN * SENDS };
	struct epoll_event edge = { .events = EPOLLIN | EPOLLET };
	struct itimerval soon = { .it_value.tv_usec = 150000 }, never = {};
	int64_t end = hps_now() + 2 * hps_deadline(), n;
	int epoll = epoll_create1(0);
	static uint8_t out[ALL];

	hps_fill(out, ALL, 0, 1);
	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, s, &edge))
		return -1;
	do {
		for (n = 0; n < SENDS; n++)
			if (!send_all(c, out + n * LEN, LEN, promised(t)))
				return -1;
		if (!hps_until_inq(s, ALL) ||
		    (signal && setitimer(ITIMER_REAL, &soon, NULL)))
			return -1;
		if (epoll_wait(epoll, &edge, 1, hps_deadline()) != 1)
			return -1;
		n = recv(s, in, ALL, signal ? 0 : MSG_DONTWAIT);
		setitimer(ITIMER_REAL, &never, NULL);
		if (n <= 0 || hps_check(in, n, 0, 1) != (size_t)n ||
		    (n < ALL && epoll_wait(epoll, &edge, 1, hps_deadline()) != 1) ||
		    hps_pull_at(s, n, ALL - n, ALL, 1) != ALL - n)
			return -1;
	} while (n == ALL && hps_now() < end);
	close(epoll);
	return ALL - n;
}

/* Small ones, not held back for more of them to come, over a long way. */
static bool offers_slowly(const struct hps *t, int c)
{
	return !hps_set(c, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, 4096) &&
	       !hps_set(c, IPPROTO_TCP, TCP_NODELAY, 1) && !promise(t, c) &&
	       hps_delay_packets();
}

TEST_F_TIMEOUT(lend, slow_offers, 300 * hps_slow())
{
	if (!self->t.rdma)
		SKIP(return, "TCP has what it says is there");
	if (!offers_slowly(&self->t, self->c)) {
		hps_delay_no_packets();
		SKIP(return, "this kernel has no netem");
	}
	EXPECT_LT(0, read_slowly(&self->t, self->c, self->s, 0));
	hps_catch(SIGALRM, 0);
	EXPECT_LT(0, read_slowly(&self->t, self->c, self->s, SIGALRM));
	hps_delay_no_packets();
}

/*
 * Nor do they if they are being fetched without a reader, one after the other: it is let in
 * between two of them. Returns how many bytes were left to fetch then; all of it takes two
 * seconds.
 */
static int64_t read_between(const struct hps *t, int c, int s)
{
	enum { LEN = 4096, SENDS = 20, ALL = LEN * SENDS };
	long before = hps_stat("rx_fetched"), left;
	static uint8_t out[ALL];
	int n;

	hps_fill(out, ALL, 0, 1);
	for (n = 0; n < SENDS; n++)
		if (!send_all(c, out + n * LEN, LEN, promised(t)))
			return -1;
	if (!hps_until_stat("rx_fetched", before + LEN) || recv(s, in, 1, MSG_DONTWAIT) != 1)
		return -1;
	left = before + ALL - hps_stat("rx_fetched");
	return hps_pull_at(s, 1, ALL - 1, ALL, 1) == ALL - 1 ? left : -1;
}

TEST_F_TIMEOUT(lend, slow_offers_unread, 300 * hps_slow())
{
	int64_t end = hps_now() + hps_deadline(), left;

	if (!self->t.rdma)
		SKIP(return, "TCP has what it says is there");
	if (!offers_slowly(&self->t, self->c)) {
		hps_delay_no_packets();
		SKIP(return, "this kernel has no netem");
	}
	do
		left = read_between(&self->t, self->c, self->s);
	while (!left && hps_now() < end);
	EXPECT_LT(0, left);
	hps_delay_no_packets();
}

/*
 * Who waits while another reader fetches one offer after the other can be killed. Returns how
 * many bytes were left to fetch then.
 */
static int64_t kill_between(const struct hps *t, int c, int s)
{
	/* Of more than about 30, not all would have room for a completion, before 6.7. */
	enum { LEN = 4096, SENDS = 20, ALL = LEN * SENDS };
	struct hps_call whole = { .fn = hps_recv_call, .fd = s, .buf = in, .len = ALL,
				  .arg = MSG_WAITALL };
	long before = hps_stat("rx_fetched"), left;
	static uint8_t out[ALL];
	pid_t pid;
	int n;

	hps_fill(out, ALL, 0, 1);
	for (n = 0; n < SENDS; n++)
		if (!send_all(c, out + n * LEN, LEN, promised(t)))
			return -1;
	hps_start(&whole);
	if (!hps_until_stat("rx_fetched", before + LEN))
		return -1;
	pid = hps_fork();
	if (!pid) {
		recv(s, in, 1, MSG_DONTWAIT);
		_exit(0);
	}
	if (pid < 0)
		return -1;
	hps_until_blocked(pid);
	kill(pid, SIGKILL);
	if (hps_reap(pid) != 128 + SIGKILL)
		return -1;
	left = before + ALL - hps_stat("rx_fetched");
	return hps_done(&whole) && whole.ret == ALL && hps_check(in, ALL, 0, 1) == ALL ? left : -1;
}

TEST_F_TIMEOUT(lend, slow_offers_killed, 300 * hps_slow())
{
	int64_t end = hps_now() + hps_deadline(), left;

	if (!self->t.rdma)
		SKIP(return, "TCP has what it says is there");
	if (!offers_slowly(&self->t, self->c)) {
		hps_delay_no_packets();
		SKIP(return, "this kernel has no netem");
	}
	do
		left = kill_between(&self->t, self->c, self->s);
	while (!left && hps_now() < end);
	EXPECT_LT(0, left);
	hps_delay_no_packets();
}

/* Two readers have all of it between them, each byte once. */
static long count_call(struct hps_call *call)
{
	uint8_t *buf = call->buf;
	long sum = 0;
	ssize_t n, i;

	while ((n = recv(call->fd, buf, call->len, 0)) > 0)
		for (i = 0; i < n; i++)
			sum += buf[i];
	return n < 0 ? n : sum;
}

TEST_F(lend, two_readers)
{
	enum { LEN = 200 << 10, SENDS = 20 };
	struct hps_call call[2];
	uint8_t *out = hps_memory(LEN);
	int i;

	ASSERT_OK(protect(&self->t, self->c));
	for (i = 0; i < 2; i++) {
		call[i] = (struct hps_call){ .fn = count_call, .fd = self->s,
					     .buf = in + i * MIB, .len = 90000 };
		hps_start(&call[i]);
	}
	for (i = 0; i < SENDS; i++) {
		memset(out, i + 1, LEN);
		ASSERT_TRUE(send_all(self->c, out, LEN, 0));
	}
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(hps_done(&call[0]));
	ASSERT_TRUE(hps_done(&call[1]));
	EXPECT_EQ((long)LEN * SENDS * (SENDS + 1) / 2, call[0].ret + call[1].ret);
}

/* Sender and reader of one socket do not wait for each other. */
TEST_F(lend, echo)
{
	enum { LEN = 4 * MIB };
	uint8_t *out = hps_memory(LEN), *back = hps_memory(MIB);
	struct hps_call push = { .fn = push_call, .fd = self->c, .buf = out, .len = LEN };
	struct hps_call pull = { .fn = pull_call, .fd = self->c, .len = LEN, .arg = 150000 };
	ssize_t n;
	int got;

	ASSERT_OK(protect(&self->t, self->c));
	ASSERT_OK(protect(&self->t, self->s));
	hps_fill(out, LEN, 0, 1);
	hps_start(&push);
	hps_start(&pull);
	for (got = 0; got < LEN; got += n) {
		n = recv(self->s, back, MIB, 0);
		ASSERT_LT(0, n);
		ASSERT_TRUE(send_all(self->s, back, n, 0));
	}
	ASSERT_TRUE(hps_done(&push));
	EXPECT_TRUE(push.ret);
	ASSERT_TRUE(hps_done(&pull));
	EXPECT_EQ(LEN, pull.ret);
}

/*
 * One end that never waits but for events, which it hears of once each: it does all that
 * one allows it to.
 */
struct loop {
	pthread_t thread;
	int fd;
	int seed;		/* of what it sends; the other end has the other one of two */
	uint64_t len;		/* to be sent, and received */
	uint64_t sent, got;
	uint8_t *out, *in;	/* a MiB each */
	bool shut, ended;
	int events;		/* that there have been */
	const char *failed;
};

static void loop_send(struct loop *l)
{
	size_t want;
	ssize_t n;

	while (l->sent < l->len) {
		want = l->len - l->sent < MIB ? l->len - l->sent : MIB;
		hps_fill(l->out, want, l->sent, l->seed);
		n = send(l->fd, l->out, want, 0);
		if (n < 0) {
			if (errno != EAGAIN)
				l->failed = "send";
			return;
		}
		memset(l->out, 0xee, want);
		l->sent += n;
	}
	if (!l->shut && shutdown(l->fd, SHUT_WR))
		l->failed = "shutdown";
	l->shut = true;
}

static void loop_recv(struct loop *l)
{
	ssize_t n;

	while (!l->ended) {
		n = recv(l->fd, l->in, MIB, 0);
		if (n < 0) {
			if (errno != EAGAIN)
				l->failed = "recv";
			return;
		}
		if (hps_check(l->in, n, l->got, !l->seed) != (size_t)n) {
			l->failed = "wrong byte";
			return;
		}
		l->got += n;
		l->ended = !n;
	}
}

static void *loop_thread(void *arg)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET };
	int ep = epoll_create1(0);
	struct loop *l = arg;

	if (epoll_ctl(ep, EPOLL_CTL_ADD, l->fd, &event))
		l->failed = "epoll_ctl";
	while (!l->failed && !(l->shut && l->ended && l->events & EPOLLRDHUP)) {
		if (epoll_wait(ep, &event, 1, hps_deadline()) != 1) {
			l->failed = "no more events";
			break;
		}
		l->events |= event.events;
		if (event.events & EPOLLOUT)
			loop_send(l);
		if (event.events & EPOLLIN && !l->failed)
			loop_recv(l);
	}
	close(ep);
	return NULL;
}

TEST_F_TIMEOUT(lend, edge_triggered, 200 * hps_slow())
{
	const uint64_t len = hps_slow() < 10 ? 16 * MIB : 4 * MIB;
	long before = hps_stat("tx_lent"), placed = hps_stat("rx_placed");
	int fd[2] = { self->c, self->s }, i;
	struct loop loop[2];

	for (i = 0; i < 2; i++) {
		ASSERT_OK(protect(&self->t, fd[i]));
		ASSERT_OK(hps_nonblock(fd[i], true));
		/* A fault in one part of a huge page keeps others from being lent meanwhile. */
		loop[i] = (struct loop){ .fd = fd[i], .seed = i, .len = len, .in = in + i * MIB,
					 .out = huge_memory(MIB, MADV_NOHUGEPAGE) };
	}
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&loop[i].thread, NULL, loop_thread, &loop[i]));
	/* The wait for each event has an end, and so has this. */
	for (i = 0; i < 2; i++)
		pthread_join(loop[i].thread, NULL);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(NULL, loop[i].failed) TH_LOG("end %d: %s", i, loop[i].failed);
		EXPECT_EQ(len, loop[i].sent);
		EXPECT_EQ(len, loop[i].got);
		EXPECT_TRUE(loop[i].ended);
		EXPECT_EQ(EPOLLRDHUP, loop[i].events & (EPOLLRDHUP | EPOLLERR));
		EXPECT_EQ(0, hps_error(fd[i]));
	}
	if (protects(&self->t)) {
		EXPECT_LT(len, hps_stat("tx_lent") - before);
		EXPECT_LT(0, hps_stat("rx_placed") - placed);
	}
	EXPECT_TRUE(nothing_held(&self->t));
}

/* A program that always writes too early is not lent for any more, for a while. */
TEST_F(lend, auto_copies)
{
	enum { LEN = 256 << 10, SENDS = 40 };
	long before = hps_stat("tx_lent"), bytes;
	uint8_t *out = hps_memory(LEN);
	int i;

	for (i = 0; i < SENDS; i++) {
		ASSERT_TRUE(arrives(self->c, self->s, out, LEN, (uint64_t)i * LEN));
		ASSERT_TRUE(nothing_held(&self->t));
	}
	bytes = hps_stat("tx_lent") - before;
	if (protects(&self->t)) {
		EXPECT_LT(0, bytes);
		EXPECT_GT(LEN * SENDS / 4, bytes);
	}
}

/* So is one that does so every other time that it is lent for: what it costs is more. */
TEST_F(lend, auto_doubts)
{
	enum { LEN = 256 << 10, SENDS = 300 };
	long before = hps_stat("tx_lent"), bytes = 0, was;
	uint8_t *out = hps_memory(LEN);
	bool early = false;
	int i;

	for (i = 0; i < SENDS; i++) {
		was = bytes;
		hps_fill(out, LEN, (uint64_t)i * LEN, 1);
		ASSERT_TRUE(send_all(self->c, out, LEN, 0));
		bytes = hps_stat("tx_lent") - before;
		if (bytes > was) {
			if (early)
				memset(out, 0xee, LEN);
			early = !early;
		}
		ASSERT_EQ(LEN, hps_pull_at(self->s, (uint64_t)i * LEN, LEN, LEN, 1));
		ASSERT_TRUE(nothing_held(&self->t));
	}
	if (protects(&self->t)) {
		EXPECT_LT(0, bytes);
		EXPECT_GT(LEN * SENDS / 20, bytes);
	}
}

/* Send and read it, and say how much of it was lent. */
static long send_lent(struct __test_metadata *_metadata, int c, int s, const uint8_t *out,
		      size_t len)
{
	long before = hps_stat("tx_lent");

	ASSERT_TRUE(send_all(c, out, len, 0));
	ASSERT_EQ(len, hps_pull(s, len, len, 1));
	/* Then all of it is counted. */
	ASSERT_TRUE(hps_until_outq(c, 0));
	return hps_stat("tx_lent") - before;
}

/*
 * And one that leaves its buffer alone always is, once it has sent a MiB: of the first send
 * that is lent half, as much as is large, and all of the others when it is seen how that went.
 */
TEST_F(lend, auto_lends)
{
	enum { LEN = 256 << 10, SENDS = 40, YOUNG = MIB / LEN };
	int64_t end = hps_now() + hps_deadline();
	uint8_t *out = hps_memory(LEN);
	int i;

	if (!protects(&self->t))
		SKIP(return, "nothing can be protected");
	hps_fill(out, LEN, 0, 1);
	for (i = 0; i < YOUNG; i++)
		EXPECT_EQ(0, send_lent(_metadata, self->c, self->s, out, LEN));
	/* There has to be room for all of it. */
	ASSERT_TRUE(hps_until_outq(self->c, 0));
	EXPECT_EQ(LEN / 2, send_lent(_metadata, self->c, self->s, out, LEN));
	while (send_lent(_metadata, self->c, self->s, out, LEN) != LEN)
		ASSERT_LT(hps_now(), end);
	for (i = 0; i < SENDS; i++)
		EXPECT_EQ(LEN, send_lent(_metadata, self->c, self->s, out, LEN));
	EXPECT_TRUE(nothing_held(&self->t));
}

/* One whose sends are large, but not twice that, is not. */
TEST_F(lend, auto_leaves)
{
	enum { LEN = (256 << 10) - 1, SENDS = 10 };
	long before = hps_stat("tx_lent");
	uint8_t *out = hps_memory(LEN);
	int i;

	for (i = 0; i < SENDS; i++)
		ASSERT_TRUE(arrives(self->c, self->s, out, LEN, (uint64_t)i * LEN));
	EXPECT_EQ(before, hps_stat("tx_lent"));
}

/* A send that waits for the peer to read it, and what disturbs it. TCP's just goes. */

/* Has the peer been offered so many bytes since? TCP cannot tell. */
static bool offered(const struct hps *t, long before, long bytes)
{
	int64_t end = hps_now() + hps_deadline();

	while (t->rdma && hps_stat("tx_lent") - before < bytes && hps_now() < end)
		hps_poll(-1, 0, 10);
	return !t->rdma || hps_stat("tx_lent") - before >= bytes;
}

/* Of any memory, which the program may write to as soon as it has it back. */
TEST_F(lend, wait)
{
	enum { LEN = 4 * MIB, ROUNDS = 3 };
	struct hps_call call = { .fn = pull_call, .fd = self->s, .len = LEN * ROUNDS,
				 .arg = 300000 };
	long before = hps_stat("tx_lent");
	uint8_t *out = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int i;

	ASSERT_OK(waits(&self->t, self->c));
	hps_start(&call);
	for (i = 0; i < ROUNDS; i++) {
		hps_fill(out, LEN, (uint64_t)i * LEN, 1);
		ASSERT_EQ(LEN, send(self->c, out, LEN, 0));
		memset(out, 0xee, LEN);
	}
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LEN * ROUNDS, call.ret);
	if (self->t.rdma) {
		/* How much, is a matter of who is faster. */
		EXPECT_LT(before, hps_stat("tx_lent"));
	}
}

/* Nobody reads: a send goes on as if there were nothing to be read. */
TEST_F(lend, wait_in_vain)
{
	enum { LEN = 480 << 10 };
	struct hps_call call = { .fn = pull_call, .fd = self->s, .len = LEN, .arg = 70000 };
	long before = hps_stat("tx_lent"), back = hps_stat("tx_cancelled");
	uint8_t *out = hps_memory(LEN);

	ASSERT_OK(waits(&self->t, self->c));
	ASSERT_OK(fetches_little(&self->t, self->s));
	hps_fill(out, LEN, 0, 1);
	ASSERT_TRUE(send_all(self->c, out, LEN, 0));
	EXPECT_TRUE(offered(&self->t, before, LEN / 2));
	if (self->t.rdma) {
		EXPECT_LT(LEN / 4, hps_stat("tx_cancelled") - back);
	}
	memset(out, 0xee, LEN);
	hps_start(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LEN, call.ret);
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	ASSERT_EQ(1, recv(self->s, in, 1, 0));
	EXPECT_EQ('x', in[0]);
}

static void nothing(int sig)
{
	(void)sig;
}

/*
 * As much of it as send(2) says is in the stream, whatever disturbed it at which moment,
 * and nothing more; then what the next one sends.
 */
TEST_F(lend, wait_disturbed)
{
	enum { LEN = 8 * MIB, ROUNDS = 12 };
	struct sigaction act = { .sa_handler = nothing };
	struct timeval no = {}, some = { .tv_usec = 100000 };
	long before = hps_stat("tx_lent"), back = hps_stat("tx_cancelled");
	uint8_t *out = hps_memory(LEN);
	uint64_t at = 0;
	int i;

	ASSERT_OK(waits(&self->t, self->c));
	sigaction(SIGUSR1, &act, NULL);
	for (i = 0; i < ROUNDS; i++) {
		struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = out,
					 .len = LEN };
		long most = i * 20000, read = 0;

		hps_fill(out, LEN, at, 1);
		ASSERT_OK(setsockopt(self->c, SOL_SOCKET, SO_SNDTIMEO, i % 2 ? &some : &no,
				     sizeof(no)));
		/* TCP may have room for all of it. */
		if (i % 2 || !self->t.rdma)
			hps_start(&call);
		else
			hps_block(&call);
		/* On a busy machine its time may be over before so much was read. */
		ASSERT_OK(hps_nonblock(self->s, true));
		while (read < most) {
			read += hps_pull_at(self->s, at + read, most - read, 70000, 1);
			if (read == most)
				break;
			ASSERT_EQ(EAGAIN, errno);
			if (call.done && !hps_inq(self->s))
				break;
			hps_poll(self->s, POLLIN, 20);
		}
		ASSERT_OK(hps_nonblock(self->s, false));
		/* Until it hears of it: a signal may come before it sleeps. */
		while (!call.done) {
			if (i % 2 == 0)
				pthread_kill(call.thread, SIGUSR1);
			hps_poll(-1, 0, 20);
		}
		ASSERT_TRUE(hps_done(&call));
		memset(out, 0xee, LEN);
		if (call.ret < 0) {
			/* Nothing had been taken. */
			EXPECT_EQ(0, read);
			EXPECT_EQ(i % 2 ? EAGAIN : EINTR, call.err);
			continue;
		}
		EXPECT_EQ(call.ret - read, hps_pull_at(self->s, at + read, call.ret - read,
						       300000, 1)) TH_LOG("round %d", i);
		at += call.ret;
	}
	EXPECT_TRUE(hps_quiet(self->s, POLLIN));
	if (self->t.rdma) {
		EXPECT_LT(0, hps_stat("tx_lent") - before);
		EXPECT_LT(0, hps_stat("tx_cancelled") - back);
	}
}

/*
 * A signal while the peer reads nothing, and there is no room for a copy: that is why the send
 * ends, and not its time, of which there is plenty.
 */
TEST_F(lend, wait_interrupted)
{
	enum { LEN = 256 << 10, PATIENCE = 60000 };
	struct timeval most = { .tv_sec = PATIENCE / 2000 };
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .buf = hps_memory(LEN),
				 .len = LEN };
	long back = hps_stat("tx_cancelled"), patience = hps_number(HPS_ZCOPY_PATIENCE, 0);
	int64_t full;

	ASSERT_OK(waits(&self->t, self->c));
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUF, 65536));
	full = hps_stuff(self->c, 0, 1);
	ASSERT_LT(0, full);
	if (self->t.rdma) {
		ASSERT_OK(hps_set_number(HPS_ZCOPY_PATIENCE, PATIENCE));
		ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUFFORCE, MIB));
	}
	ASSERT_OK(setsockopt(self->c, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)));
	hps_catch(SIGUSR1, 0);
	hps_block(&call);
	/* What waits has read it. */
	EXPECT_TRUE(!self->t.rdma || !hps_set_number(HPS_ZCOPY_PATIENCE, patience));
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUF, 1));
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_TRUE(!self->t.rdma || hps_stat("tx_cancelled") > back);
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
	EXPECT_EQ(full, hps_pull(self->s, full, 65536, 1));
	EXPECT_TRUE(hps_quiet(self->s, POLLIN));
}

/* Both wait for the other one. */
TEST_F(lend, wait_both)
{
	enum { LEN = 480 << 10 };
	uint8_t *out[2] = { hps_memory(LEN), hps_memory(LEN) };
	int fd[2] = { self->c, self->s }, i;
	struct hps_call call[2];

	for (i = 0; i < 2; i++) {
		ASSERT_OK(waits(&self->t, fd[i]));
		hps_fill(out[i], LEN, 0, i);
		call[i] = (struct hps_call){ .fn = hps_send_call, .fd = fd[i], .buf = out[i],
					     .len = LEN };
		hps_start(&call[i]);
	}
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(hps_done(&call[i]));
		EXPECT_EQ(LEN, call[i].ret);
		memset(out[i], 0xee, LEN);
	}
	for (i = 0; i < 2; i++)
		EXPECT_EQ(LEN, hps_pull(fd[i], LEN, LEN, !i));
}

/* Several threads send at once: nothing is lost, nothing comes twice. */
TEST_F(lend, wait_threads)
{
	enum { LEN = 700000, THREADS = 3, ROUNDS = 8 };
	struct hps_call call[THREADS], reader;
	long sum = 0;
	int i, k;

	ASSERT_OK(waits(&self->t, self->c));
	reader = (struct hps_call){ .fn = count_call, .fd = self->s, .buf = in, .len = 200000 };
	hps_start(&reader);
	for (k = 0; k < ROUNDS; k++) {
		for (i = 0; i < THREADS; i++) {
			uint8_t *out = hps_memory(LEN);

			memset(out, 1 + i, LEN);
			call[i] = (struct hps_call){ .fn = push_call, .fd = self->c, .buf = out,
						     .len = LEN };
			hps_start(&call[i]);
		}
		for (i = 0; i < THREADS; i++) {
			ASSERT_TRUE(hps_done(&call[i]));
			ASSERT_TRUE(call[i].ret);
			munmap(call[i].buf, LEN);
			sum += (long)(1 + i) * LEN;
		}
	}
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(hps_done(&reader));
	EXPECT_EQ(sum, reader.ret);
}

/* The end of the stream is behind what is waited for; a reset ends it. */
TEST_F(lend, wait_shutdown)
{
	enum { LEN = 8 * MIB };
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .len = LEN };
	long before = hps_stat("tx_lent");

	ASSERT_OK(waits(&self->t, self->c));
	call.buf = hps_memory(LEN);
	hps_fill(call.buf, LEN, 0, 1);
	ASSERT_OK(fetches_little(&self->t, self->s));
	hps_block(&call);
	ASSERT_TRUE(offered(&self->t, before, 1));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(hps_done(&call));
	ASSERT_LT(0, call.ret);
	memset(call.buf, 0xee, LEN);
	EXPECT_EQ(call.ret, hps_pull(self->s, INT64_MAX, 300000, 1));
	EXPECT_EQ(0, errno);
}

/* What a send has in the queue goes, also if shutdown() comes before it takes that back. */
TEST_F(lend, wait_shutdown_in_vain)
{
	enum { LEN = 480 << 10, PATIENCE = 60000 };
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .len = LEN };
	long before = hps_stat("tx_lent"), patience = hps_number(HPS_ZCOPY_PATIENCE, 0);

	ASSERT_OK(waits(&self->t, self->c));
	ASSERT_OK(fetches_little(&self->t, self->s));
	hps_catch(SIGUSR1, 0);
	call.buf = hps_memory(LEN);
	hps_fill(call.buf, LEN, 0, 1);
	EXPECT_TRUE(!self->t.rdma || !hps_set_number(HPS_ZCOPY_PATIENCE, PATIENCE));
	if (self->t.rdma) {
		hps_block(&call);
		EXPECT_TRUE(offered(&self->t, before, LEN / 2));
	} else {
		hps_start(&call);
		ASSERT_TRUE(hps_done(&call));
	}
	EXPECT_TRUE(!self->t.rdma || !hps_set_number(HPS_ZCOPY_PATIENCE, patience));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	if (self->t.rdma) {
		EXPECT_FALSE(call.done);
		hps_interrupt(&call);
		ASSERT_TRUE(hps_done(&call));
	}
	EXPECT_EQ(LEN, call.ret);
	memset(call.buf, 0xee, LEN);
	EXPECT_EQ(LEN, hps_pull(self->s, INT64_MAX, 300000, 1));
	EXPECT_EQ(0, errno);
}

TEST_F(lend, wait_reset)
{
	enum { LEN = 8 * MIB };
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .len = LEN };
	long before = hps_stat("tx_lent");

	ASSERT_OK(waits(&self->t, self->c));
	call.buf = hps_memory(LEN);
	hps_block(&call);
	ASSERT_TRUE(offered(&self->t, before, 1));
	ASSERT_OK(hps_reset(self->s));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_TRUE(call.ret > 0 || call.err == ECONNRESET);
	EXPECT_TRUE(hps_wait_exactly(self->c, POLLHUP) & POLLHUP);
}

/*
 * One send waits for the peer, another for its turn, and the socket gets another peer: that
 * one gets the bytes of neither.
 */
TEST_F(lend, wait_reconnected)
{
	char secret[] = "secret";
	struct hps_call call[2] = {
		{ .fn = hps_send_call, .fd = self->c, .len = 8 * MIB },
		{ .fn = hps_send_call, .fd = self->c, .buf = secret, .len = sizeof(secret) },
	};
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	long before = hps_stat("tx_lent");
	struct hps_addr at;
	int l = hps_listen(&self->t, 1, &at), s, i;

	ASSERT_OK(l);
	ASSERT_OK(waits(&self->t, self->c));
	ASSERT_OK(fetches_little(&self->t, self->s));
	call[0].buf = hps_memory(call[0].len);
	hps_block(&call[0]);
	ASSERT_TRUE(offered(&self->t, before, 1));
	hps_block(&call[1]);
	ASSERT_OK(connect(self->c, &none, sizeof(none)));
	ASSERT_OK(hps_connect(self->c, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	for (i = 0; i < 2; i++)
		ASSERT_TRUE(hps_done(&call[i]));
	EXPECT_EQ(-1, call[1].ret);
	/* Who is woken before there is another connection may still be told why. */
	if (call[1].err != ECONNRESET) {
		EXPECT_EQ(EPIPE, call[1].err);
	}
	EXPECT_TRUE(hps_quiet(s, POLLIN));
	ASSERT_EQ(1, send(self->c, "x", 1, 0));
	EXPECT_EQ(1, recv(s, in, sizeof(in), 0));
}

TEST_F(lend, off)
{
	enum { LEN = 256 << 10 };
	struct hps_call call = { .fn = pull_call, .fd = self->s, .len = LEN, .arg = LEN };
	long before = hps_stat("tx_lent");
	uint8_t *out = hps_memory(LEN);

	if (!self->t.rdma)
		SKIP(return, "of AF_HPSOCK alone");
	ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_OFF));
	ASSERT_OK(promise(&self->t, self->c));
	hps_fill(out, LEN, 0, 1);
	hps_start(&call);
	ASSERT_TRUE(send_all(self->c, out, LEN / 2, 0));
	ASSERT_TRUE(send_all(self->c, out + LEN / 2, LEN / 2, MSG_ZEROCOPY));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LEN, call.ret);
	EXPECT_TRUE(lent(&self->t, before, 0));
}

TEST_F(lend, threshold)
{
	enum { LEN = 100000 };
	long before = hps_stat("tx_lent");
	uint8_t *out = hps_memory(LEN);

	if (!self->t.rdma)
		SKIP(return, "of AF_HPSOCK alone");
	ASSERT_OK(promise(&self->t, self->c));
	ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, LEN + 1));
	EXPECT_EQ(LEN + 1, hps_opt(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD));
	hps_fill(out, LEN, 0, 1);
	ASSERT_TRUE(send_all(self->c, out, LEN, MSG_ZEROCOPY));
	ASSERT_EQ(LEN, hps_pull(self->s, LEN, LEN, 1));
	EXPECT_TRUE(lent(&self->t, before, 0));
	ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, LEN));
	ASSERT_TRUE(send_all(self->c, out, LEN, MSG_ZEROCOPY));
	ASSERT_EQ(LEN, hps_pull(self->s, LEN, LEN, 1));
	EXPECT_TRUE(lent(&self->t, before, LEN));
}

/* Memory that cannot be protected is copied, and the reason is counted. */
TEST_F(lend, refused)
{
	enum { LEN = 256 << 10 };
	/* Where nothing can be protected, that is the reason. */
	const char *why = protects(&self->t) ? "lend_refused_shared" : "lend_refused";
	long before = hps_stat("tx_lent"), refused = hps_stat(why), all = hps_stat("lend_refused");
	uint8_t *out = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	ASSERT_NE(MAP_FAILED, out);
	ASSERT_OK(protect(&self->t, self->c));
	ASSERT_TRUE(arrives(self->c, self->s, out, LEN, 0));
	EXPECT_TRUE(lent(&self->t, before, 0));
	if (self->t.rdma) {
		EXPECT_LT(refused, hps_stat(why));
		EXPECT_EQ(hps_stat("lend_refused") - all, hps_stat(why) - refused);
		/* Nor is each message of it tried again. */
		EXPECT_GT(8, hps_stat(why) - refused);
	}
}

/* Memory that may not be locked is copied instead. */
TEST_F(lend, memlock)
{
	enum { LEN = 256 << 10 };
	struct rlimit none = { 0, 0 };
	long before = hps_stat("tx_lent"), refused = hps_stat("lend_memlock");
	uint8_t *out = hps_memory(LEN);

	ASSERT_OK(protect(&self->t, self->c));
	ASSERT_OK(setrlimit(RLIMIT_MEMLOCK, &none));
	ASSERT_OK(setresuid(65534, 65534, 65534));
	ASSERT_TRUE(arrives(self->c, self->s, out, LEN, 0));
	EXPECT_TRUE(lent(&self->t, before, 0));
	if (self->t.rdma) {
		EXPECT_LT(refused, hps_stat("lend_memlock"));
	}
}

/* What is lent without a promise leaves some to who asks for it. */
TEST_F(lend, memlock_shared)
{
	enum { LEN = 256 << 10, SENDS = 12, PROMISED = 512 << 10 };
	struct rlimit most = { 2 * MIB, 2 * MIB };
	uint8_t *out = hps_memory(SENDS * LEN), *more = hps_memory(PROMISED);
	long before = hps_stat("tx_lent"), refused = hps_stat("lend_memlock");
	int i;

	ASSERT_OK(protect(&self->t, self->c));
	ASSERT_OK(hps_zerocopy(&self->t, self->c));
	ASSERT_OK(fetches_little(&self->t, self->s));
	ASSERT_OK(setrlimit(RLIMIT_MEMLOCK, &most));
	ASSERT_OK(setresuid(65534, 65534, 65534));
	hps_fill(out, SENDS * LEN, 0, 1);
	hps_fill(more, PROMISED, 0, 2);
	for (i = 0; protects(&self->t) && hps_stat("lend_memlock") == refused; i++) {
		ASSERT_GT(SENDS, i);
		ASSERT_EQ(LEN, send(self->c, out + i * LEN, LEN, MSG_DONTWAIT));
	}
	if (protects(&self->t)) {
		EXPECT_LT(LEN, hps_stat("tx_lent") - before);
	}
	ASSERT_EQ(PROMISED, send(self->c, more, PROMISED, MSG_ZEROCOPY));
	EXPECT_EQ(i * LEN, hps_pull(self->s, i * LEN, LEN, 1));
	EXPECT_EQ(PROMISED, hps_pull(self->s, PROMISED, LEN, 2));
}

/* Into a pipe, which has no memory to show. */
TEST_F(lend, splice)
{
	enum { LEN = 300000 };
	uint8_t *out = hps_memory(LEN);
	size_t got = 0;
	int p[2];
	ssize_t n, m;

	ASSERT_OK(promise(&self->t, self->c));
	ASSERT_OK(pipe(p));
	hps_fill(out, LEN, 0, 1);
	ASSERT_TRUE(send_all(self->c, out, LEN, promised(&self->t)));
	while (got < LEN) {
		n = splice(self->s, NULL, p[1], NULL, 65536, 0);
		ASSERT_LT(0, n);
		for (; n; n -= m) {
			m = read(p[0], in + got, n);
			ASSERT_LT(0, m);
			got += m;
		}
	}
	EXPECT_EQ(LEN, hps_check(in, LEN, 0, 1));
}

/* An urgent byte behind what was lent, and one at the end of a large send. */
TEST_F(lend, urgent)
{
	enum { LEN = 200000 };
	uint8_t *out = hps_memory(LEN), byte;

	ASSERT_OK(promise(&self->t, self->c));
	hps_fill(out, LEN, 0, 1);
	ASSERT_TRUE(send_all(self->c, out, LEN, promised(&self->t)));
	ASSERT_EQ(1, send(self->c, "!", 1, MSG_OOB));
	ASSERT_EQ(LEN, hps_pull(self->s, LEN, MIB, 1));
	ASSERT_TRUE(hps_wait(self->s, POLLPRI) & POLLPRI);
	EXPECT_EQ(1, ioctl(self->s, SIOCATMARK, &(int){ 0 }) + 1);
	ASSERT_EQ(1, recv(self->s, &byte, 1, MSG_OOB));
	EXPECT_EQ('!', byte);
}

/* Memory regions of all devices; a connection may have one from the beginning, as on iWARP. */
static long regions(void)
{
	FILE *out = popen("rdma resource show mr | wc -l", "r");
	long n = -1;

	if (!out)
		return -1;
	if (fscanf(out, "%ld", &n) != 1)
		n = -1;
	pclose(out);
	return n;
}

/* However many offers are queued, the device has a memory region only for those that are open. */
TEST_F(lend, regions)
{
	enum { PIECE = 4096, LEN = 2 * MIB };
	long before = hps_stat("tx_lent"), regs;
	int fd = memfd_create("pieces", 0), outstanding;
	ssize_t sent = 0, n;

	if (!self->t.rdma)
		SKIP(return, "of AF_HPSOCK alone");
	if (hps_kernel() < 605)
		SKIP(return, "before Linux 6.5 splice() into a socket copies");
	ASSERT_OK(fd);
	hps_fill(in, LEN, 0, 1);
	ASSERT_EQ(LEN, write(fd, in, LEN));
	outstanding = hps_opt(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_OUTSTANDING);
	ASSERT_LT(0, outstanding);
	ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, PIECE));
	ASSERT_OK(hps_nonblock(self->c, true));
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 4096));
	regs = regions();
	ASSERT_LE(0, regs);
	while (sent < LEN) {
		n = sendfile(self->c, fd, &(off_t){ sent }, PIECE);
		if (n <= 0)
			break;
		sent += n;
	}
	/* Many more than are offered; besides these there may be one for the word. */
	EXPECT_LT(10 * outstanding * PIECE, sent);
	EXPECT_GE(regs + outstanding + 1, regions());
	EXPECT_EQ(sent, hps_pull(self->s, sent, MIB, 1));
	EXPECT_TRUE(lent(&self->t, before, sent));
	EXPECT_GE(regs + outstanding + 1, regions());
}

/*
 * Reads to the end of a stream of which a byte may be urgent, and adds up the bytes; those
 * that are read apart are told in @apart.
 */
static long sum_with_urgent(int fd, int *apart)
{
	long sum = 0;
	uint8_t byte;
	ssize_t n, i;
	int mark;

	*apart = 0;
	while ((n = recv(fd, in, 100000, 0)) > 0) {
		for (i = 0; i < n; i++)
			sum += in[i];
		if (ioctl(fd, SIOCATMARK, &mark))
			return -1;
		if (!mark)
			continue;
		/* It was sent before what follows, so it comes. */
		if (!(hps_wait(fd, POLLPRI) & POLLPRI) || recv(fd, &byte, 1, MSG_OOB) != 1)
			return -1;
		sum += byte;
		++*apart;
	}
	return n ? -1 : sum;
}

/*
 * A signal ends an urgent send that waits, while what follows some of its bytes is lent. One
 * of those that were sent is urgent nevertheless, and none is lost.
 */
TEST_F(lend, urgent_cut)
{
	enum { LEN = 4 * MIB, BEHIND = 192 << 10, READ = 300000 };
	struct hps_call call = { .fn = hps_send_call, .fd = self->c, .len = LEN, .arg = MSG_OOB };
	long before = hps_stat("tx_lent"), sum;
	uint8_t *out = hps_memory(BEHIND);
	ssize_t n;
	int apart;

	hps_catch(SIGUSR1, 0);
	ASSERT_OK(promise(&self->t, self->c));
	ASSERT_OK(hps_set(self->s, SOL_SOCKET, SO_RCVBUF, 32768));
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUFFORCE, MIB));
	call.buf = hps_memory(LEN);
	memset(call.buf, 1, LEN);
	memset(out, 2, BEHIND);
	hps_block(&call);
	/* There is room, but less than who waits for that is woken for. */
	ASSERT_EQ(READ, recv(self->s, in, READ, MSG_WAITALL));
	ASSERT_TRUE(hps_settle());
	n = send(self->c, out, BEHIND, MSG_DONTWAIT | promised(&self->t));
	if (self->t.rdma) {
		ASSERT_EQ(BEHIND, n);
	}
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	ASSERT_LT(0, call.ret);
	ASSERT_GT(LEN, call.ret);
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	sum = sum_with_urgent(self->s, &apart);
	EXPECT_EQ(call.ret - READ + 2 * (n > 0 ? n : 0), sum);
	EXPECT_EQ(1, apart);
	EXPECT_TRUE(lent(&self->t, before, BEHIND));
}

TEST_HARNESS_MAIN
