// SPDX-License-Identifier: GPL-2.0
/*
 * Page protection: what a hold keeps stays as it was, whatever the program does to
 * its memory, and the program does not notice. The test module puts af_hpsock's
 * code behind a device (selftests/protect). Each test loads it, has memory of small or
 * of huge pages or of what it wrote to a private mapping of a file, and leaves neither a
 * hold nor a pin.
 */
#include "hps_test.h"

#include <sched.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#include "protect/protect_test.h"

#define PAGE 4096UL
#define HUGE (512 * PAGE)
#define PAGES 16
#define LEN (PAGES * PAGE)
#define PARAMETERS "/sys/module/hpsock_protect_test/parameters/"

#define KHUGEPAGED "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum memory { SMALL_PAGES, HUGE_PAGES, A_FILE };

FIXTURE(protect) {
	int fd;
	int file;		/* A_FILE: HUGE bytes of zeros, in memory */
	long pins;
	char why[HPS_TEST_WORD];
	struct hps_test_release res;
	uint8_t *mem;		/* HUGE bytes, aligned so, the first LEN have seed 1 */
	enum memory kind;
};

FIXTURE_VARIANT(protect) {
	enum memory kind;
};

FIXTURE_VARIANT_ADD(protect, small) { SMALL_PAGES };
FIXTURE_VARIANT_ADD(protect, huge) { HUGE_PAGES };
FIXTURE_VARIANT_ADD(protect, file) { A_FILE };

static uint8_t *map(size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* Helpers have FIXTURE_DATA(protect) by its name, or checkpatch sees a product in it. */

/* Memory of the kind that the test is about, at a multiple of HUGE */
static uint8_t *map_kind(const struct _test_data_protect *self, size_t len)
{
	uintptr_t at = (uintptr_t)map(len + HUGE);
	uint8_t *p = (uint8_t *)((at + HUGE - 1) / HUGE * HUGE);

	if (self->kind == A_FILE)
		return mmap(p, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
			    self->file, 0);
	madvise(p, len, self->kind == HUGE_PAGES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	return p;
}

/* As the module knows it, or -1 with errno and self->why. */
static int hold(struct _test_data_protect *self, const void *addr, size_t len)
{
	struct hps_test_hold in = { .addr = (uintptr_t)addr, .len = len };
	int err = ioctl(self->fd, HPS_TEST_HOLD, &in);

	memcpy(self->why, in.why, sizeof(in.why));
	return err ? -1 : (int)in.id;
}

static int release(struct _test_data_protect *self, int id)
{
	self->res = (struct hps_test_release){ .id = id };
	return ioctl(self->fd, HPS_TEST_RELEASE, &self->res);
}

static int held(struct _test_data_protect *self, int id, void *buf, size_t at, size_t len)
{
	struct hps_test_read in = { .offset = at, .len = len, .buf = (uintptr_t)buf, .id = id };

	return ioctl(self->fd, HPS_TEST_READ, &in);
}

/* Bytes of the hold that are as hps_fill() left them */
static size_t holds(struct _test_data_protect *self, int id, size_t len, uint64_t at, uint64_t seed)
{
	uint8_t *buf = malloc(len);
	size_t n = held(self, id, buf, 0, len) ? 0 : hps_check(buf, len, at, seed);

	free(buf);
	return n;
}

static struct hps_test_count count(struct _test_data_protect *self)
{
	struct hps_test_count c = { -1, -1 };

	ioctl(self->fd, HPS_TEST_COUNT, &c);
	return c;
}

static int grab(struct _test_data_protect *self, void *addr, size_t len, bool pin)
{
	struct hps_test_grab in = { .addr = (uintptr_t)addr, .len = len, .pin = pin, .keep = 1 };

	return ioctl(self->fd, HPS_TEST_GRAB, &in);
}

static long faults(void)
{
	struct rusage r;

	getrusage(RUSAGE_THREAD, &r);
	return r.ru_minflt;
}

/* Faults of a write to each page, which does not change it. */
static long write_faults(volatile uint8_t *p, size_t len)
{
	long before = faults();
	size_t i;

	for (i = 0; i < len; i += PAGE)
		p[i] = p[i];
	return faults() - before;
}

static int load(const char *params)
{
	const char *ko = getenv("HPSOCK_TEST_KO");
	int fd = open(ko ?: "", O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -1;
	err = syscall(SYS_finit_module, fd, params, 0);
	close(fd);
	return err && errno == EEXIST ? 0 : err;
}

/*
 * To which processors a thread may go. New pages wait in a list of the processor where
 * they were made, so what a test counts exactly happens on one.
 */
static void settle(bool here)
{
	int i, cpu = sched_getcpu();
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	for (i = 0; i < CPU_SETSIZE; i++)
		if (!here || i == cpu)
			CPU_SET(i, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

/*
 * Why this kernel can protect nothing, if so: what the first test found is true of all,
 * which need not load the module to hear it.
 */
static char *unable;

static void __attribute__((constructor)) share(void)
{
	unable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (unable == MAP_FAILED)
		abort();
}

/*
 * khugepaged makes a huge page again of the small ones that a hold has left. Meanwhile it has
 * references to them and the mmap_lock, so that pages are copied, or not counted when a
 * hold ends. It looks around once when it is told to sleep longer, or when there first is
 * something to look at; so it is told once.
 */
static long slept;
static pid_t sleeper;

static void wake_khugepaged(void)
{
	if (getpid() == sleeper)
		hps_set_number(KHUGEPAGED, slept);
}

static void __attribute__((constructor)) still_khugepaged(void)
{
	slept = hps_number(KHUGEPAGED, -1);
	if (slept < 0 || hps_set_number(KHUGEPAGED, 3600 * 1000))
		return;
	sleeper = getpid();
	atexit(wake_khugepaged);
}

FIXTURE_SETUP(protect)
{
	static const char huge[] = "AnonHugePages:";
	long before = hps_field("/proc/meminfo", huge);
	bool split;
	int id;

	self->kind = variant->kind;
	self->fd = -1;
	if (!getenv("HPSOCK_TEST_KO"))
		SKIP(return, "no test module");
	if (*unable)
		SKIP(return, "refused here: %s", unable);
	ASSERT_OK(load(""));
	self->fd = open("/dev/" HPS_TEST_DEVICE, O_RDWR);
	ASSERT_OK(self->fd);
	self->pins = hps_pins();
	settle(true);
	self->file = memfd_create("hps", MFD_CLOEXEC);
	ASSERT_OK(self->file);
	ASSERT_OK(ftruncate(self->file, 2 * HUGE));
	self->mem = map_kind(self, HUGE);
	hps_fill(self->mem, LEN, 0, 1);
	split = variant->kind == HUGE_PAGES && hps_field("/proc/meminfo", huge) <= before;
	id = hold(self, self->mem, PAGE);
	if (id < 0 && (!strcmp(self->why, "architecture") || !strcmp(self->why, "kernel"))) {
		close(self->fd);
		syscall(SYS_delete_module, HPS_TEST_DEVICE, O_NONBLOCK);
		memcpy(unable, self->why, sizeof(self->why));
		SKIP(return, "refused here: %s", unable);
	}
	ASSERT_OK(id);
	ASSERT_OK(release(self, id));
	if (split)
		TH_LOG("no huge page was to be had");
}

FIXTURE_TEARDOWN(protect)
{
	struct hps_test_count c = count(self);
	int err;

	EXPECT_EQ(0, c.holds);
	EXPECT_EQ(0, c.bytes);
	close(self->fd);
	EXPECT_GE(0, hps_pins_left(self->pins));
	err = syscall(SYS_delete_module, HPS_TEST_DEVICE, O_NONBLOCK);
	EXPECT_EQ(0, err);
}

TEST_F(protect, write_after_hold)
{
	int id = hold(self, self->mem, LEN);
	struct hps_test_count c;

	ASSERT_OK(id);
	EXPECT_STREQ("ok", self->why);
	c = count(self);
	EXPECT_EQ(1, c.holds);
	EXPECT_EQ(LEN, c.bytes);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	hps_fill(self->mem, LEN, 0, 2);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 2));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES, self->res.early);
	EXPECT_EQ(0, self->res.restored);
	EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 2));
}

/* A buffer that is left alone costs the program no fault afterwards. */
TEST_F(protect, restore)
{
	int id = hold(self, self->mem, LEN);

	ASSERT_OK(id);
	ASSERT_OK(release(self, id));
	EXPECT_EQ(0, self->res.early);
	EXPECT_EQ(PAGES, self->res.restored);
	EXPECT_EQ(0, write_faults(self->mem, LEN));
	/* And it was protected: each write takes one while it is held. */
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	self->mem[3 * PAGE]++;
	EXPECT_EQ(PAGES - 1, write_faults(self->mem, LEN));
	self->mem[3 * PAGE]--;
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES, self->res.early);
	EXPECT_EQ(0, write_faults(self->mem, LEN));
}

TEST_F(protect, restore_by_another_task)
{
	struct hps_test_release in = { .elsewhere = 1 };
	int id = hold(self, self->mem, LEN);

	ASSERT_OK(id);
	self->mem[0]++;
	in.id = id;
	ASSERT_OK(ioctl(self->fd, HPS_TEST_RELEASE, &in));
	EXPECT_EQ(1, in.early);
	EXPECT_EQ(PAGES - 1, in.restored);
	EXPECT_EQ(0, write_faults(self->mem, LEN));
}

/* Pages that a moment ago were not there, as after malloc(). */
TEST_F(protect, new_memory)
{
	uint8_t *p = map(LEN);
	int id, i;

	for (i = 0; i < 20; i++) {
		hps_fill(p, LEN, 0, 10 + i);
		id = hold(self, p, LEN);
		ASSERT_OK(id);
		hps_fill(p, LEN, 0, 9);
		EXPECT_EQ(LEN, holds(self, id, LEN, 0, 10 + i));
		ASSERT_OK(release(self, id));
		munmap(p, LEN);
		p = map(LEN);
	}
}

/* Memory that was never written is zero, and stays so; a file's is not to be had. */
TEST_F(protect, untouched_memory)
{
	uint8_t zero[PAGE] = {}, buf[PAGE];
	uint8_t *p = map_kind(self, HUGE);
	int id;

	/* The first half is read, the second was not even that. */
	EXPECT_EQ(0, p[0]);
	p[PAGE] = 1;
	id = hold(self, p, LEN);
	if (self->kind == A_FILE) {
		EXPECT_EQ(-1, id);
		EXPECT_STREQ("file", self->why);
		EXPECT_EQ(0, write_faults(p + PAGE, PAGE));
		return;
	}
	ASSERT_OK(id);
	memset(p, 0xff, LEN);
	ASSERT_OK(held(self, id, buf, 0, PAGE));
	EXPECT_EQ(0, memcmp(buf, zero, PAGE));
	ASSERT_OK(held(self, id, buf, PAGE, PAGE));
	EXPECT_EQ(1, buf[0]);
	ASSERT_OK(held(self, id, buf, LEN - PAGE, PAGE));
	EXPECT_EQ(0, memcmp(buf, zero, PAGE));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(0xff, p[0] & p[LEN - 1]);
}

TEST_F(protect, unaligned)
{
	size_t at = PAGE - 100, len = 3 * PAGE + 201;
	int id = hold(self, self->mem + at, len);
	struct hps_test_count c;

	ASSERT_OK(id);
	c = count(self);
	EXPECT_EQ(5 * PAGE, c.bytes);
	hps_fill(self->mem, LEN, 0, 2);
	EXPECT_EQ(len, holds(self, id, len, at, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(5, self->res.early);
	/* One byte */
	id = hold(self, self->mem + 5, 1);
	ASSERT_OK(id);
	hps_fill(self->mem, LEN, 0, 3);
	EXPECT_EQ(1, holds(self, id, 1, 5, 2));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(1, self->res.early);
}

/* From one page table into the next. */
TEST_F(protect, two_tables)
{
	uint8_t *at = map_kind(self, 2 * HUGE) + HUGE - 3 * PAGE;
	int id;

	hps_fill(at, 8 * PAGE, 0, 1);
	id = hold(self, at, 8 * PAGE);
	ASSERT_OK(id);
	hps_fill(at, 4 * PAGE, 0, 2);
	EXPECT_EQ(8 * PAGE, holds(self, id, 8 * PAGE, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(4, self->res.early);
	EXPECT_EQ(4, self->res.restored);
}

TEST_F(protect, large)
{
	size_t pages = HUGE / PAGE;
	int id;

	hps_fill(self->mem, HUGE, 0, 1);
	id = hold(self, self->mem, HUGE);
	ASSERT_OK(id);
	hps_fill(self->mem + HUGE / 2, HUGE / 2, 0, 2);
	EXPECT_EQ(HUGE, holds(self, id, HUGE, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(pages / 2, self->res.early);
	EXPECT_EQ(pages / 2, self->res.restored);
	EXPECT_EQ(0, write_faults(self->mem, HUGE));
}

/* Each keeps what was there when it began, and the last gives the page back. */
TEST_F(protect, several_holds)
{
	int a, b, c;

	a = hold(self, self->mem, LEN);
	b = hold(self, self->mem, LEN);
	ASSERT_OK(a);
	ASSERT_OK(b);
	ASSERT_OK(release(self, a));
	EXPECT_EQ(0, self->res.restored);
	EXPECT_EQ(PAGES, write_faults(self->mem, LEN));
	EXPECT_EQ(LEN, holds(self, b, LEN, 0, 1));
	ASSERT_OK(release(self, b));
	EXPECT_EQ(PAGES, self->res.early);

	a = hold(self, self->mem, LEN);
	hps_fill(self->mem, LEN, 0, 2);
	b = hold(self, self->mem, LEN);
	hps_fill(self->mem, LEN, 0, 3);
	c = hold(self, self->mem, LEN);
	ASSERT_OK(c);
	EXPECT_EQ(LEN, holds(self, a, LEN, 0, 1));
	EXPECT_EQ(LEN, holds(self, b, LEN, 0, 2));
	EXPECT_EQ(LEN, holds(self, c, LEN, 0, 3));
	ASSERT_OK(release(self, b));
	ASSERT_OK(release(self, a));
	EXPECT_EQ(PAGES, self->res.early);
	ASSERT_OK(release(self, c));
	EXPECT_EQ(0, self->res.early);
	EXPECT_EQ(PAGES, self->res.restored);
}

TEST_F(protect, many_holds)
{
	int id[100], i;

	for (i = 0; i < 100; i++) {
		id[i] = hold(self, self->mem, LEN);
		ASSERT_OK(id[i]);
	}
	hps_fill(self->mem, LEN, 0, 2);
	for (i = 0; i < 100; i++)
		ASSERT_OK(release(self, id[i]));
	for (i = 0; i < 100; i++) {
		id[i] = hold(self, self->mem, LEN);
		ASSERT_OK(id[i]);
	}
	for (i = 0; i < 100; i++) {
		ASSERT_OK(release(self, id[i]));
		EXPECT_EQ(i == 99 ? PAGES : 0, self->res.restored);
	}
}

TEST_F(protect, overlap)
{
	int a = hold(self, self->mem, 8 * PAGE);
	int b = hold(self, self->mem + 4 * PAGE, 8 * PAGE);

	ASSERT_OK(a);
	ASSERT_OK(b);
	ASSERT_OK(release(self, a));
	EXPECT_EQ(4, self->res.restored);
	EXPECT_EQ(0, write_faults(self->mem, 4 * PAGE));
	EXPECT_EQ(8, write_faults(self->mem + 4 * PAGE, 12 * PAGE));
	hps_fill(self->mem, LEN, 0, 2);
	EXPECT_EQ(8 * PAGE, holds(self, b, 8 * PAGE, 4 * PAGE, 1));
	ASSERT_OK(release(self, b));
	EXPECT_EQ(8, self->res.early);
}

struct writer {
	volatile uint64_t *mem;
	size_t words, pages;
	atomic_bool stop;
	atomic_long rounds;
	long lost;
};

/* Writes to each page in turn, and looks whether what it wrote last time is there. */
static void *write_loop(void *arg)
{
	struct writer *w = arg;
	uint64_t n;
	size_t i;

	settle(false);
	for (n = 1; !w->stop; n++, w->rounds++)
		for (i = 0; i < w->pages; i++) {
			volatile uint64_t *at = w->mem + i * (PAGE / 8);

			w->lost += *at != n - 1 || at[PAGE / 8 - 1] != n - 1;
			*at = n;
			at[PAGE / 8 - 1] = n;
		}
	return NULL;
}

/*
 * Of several threads. So many that most of what a writer got new is in the LRU, not in
 * a list of its processor, where it would be copied and not protected.
 */
#define MANY 128
#define MANY_LEN (MANY * PAGE)

static int thread_rounds(void)
{
	return hps_slow() >= 10 ? 40 : 200;
}

TEST_F(protect, thread_writes)
{
	struct writer w = { .mem = (void *)self->mem, .pages = MANY };
	static uint8_t first[MANY_LEN], again[MANY_LEN];
	int64_t end = hps_now() + 8000 * hps_slow();
	long changed = 0, early = 0, copied = 0, refusals = 0, before;
	pthread_t t;
	int id, i;

	memset(self->mem, 0, MANY_LEN);
	settle(false);
	ASSERT_EQ(0, pthread_create(&t, NULL, write_loop, &w));
	/* On a busy computer fewer rounds have to do. */
	for (i = 0; i < thread_rounds() && (i < 20 || hps_now() < end); i++) {
		id = hold(self, self->mem, MANY_LEN);
		if (id < 0) {
			/* It changed under its eyes, or the writer was just at it. */
			if (strcmp(self->why, "referenced"))
				EXPECT_STREQ("race", self->why);
			refusals++;
			continue;
		}
		ASSERT_OK(held(self, id, first, 0, MANY_LEN));
		/* Let it write a while. */
		before = w.rounds;
		while (w.rounds < before + 2)
			sched_yield();
		ASSERT_OK(held(self, id, again, 0, MANY_LEN));
		changed += !!memcmp(first, again, MANY_LEN);
		ASSERT_OK(release(self, id));
		early += self->res.early;
		copied += self->res.copied;
	}
	w.stop = true;
	pthread_join(t, NULL);
	EXPECT_EQ(0, changed);
	EXPECT_EQ(0, w.lost);
	/* It was protected, and written to. */
	EXPECT_LT(i * MANY / 4, early);
	EXPECT_GT(i / 2, refusals);
	TH_LOG("%d rounds: %ld early, %ld copied, %ld times refused", i, early, copied, refusals);
}

struct holder {
	struct _test_data_protect self;
	int rounds;
	long bad, held, refused;
};

static void *hold_loop(void *arg)
{
	struct holder *h = arg;
	uint8_t *first = malloc(MANY_LEN), *again = malloc(MANY_LEN);
	size_t at = 0;
	int id;

	settle(false);
	for (; h->rounds; h->rounds--, at = (at + PAGE) % (4 * PAGE)) {
		id = hold(&h->self, h->self.mem + at, MANY_LEN - 4 * PAGE);
		if (id < 0) {
			/* Another processor's lists, or a fork() at work. */
			h->refused++;
			h->bad += strcmp(h->self.why, "race") && strcmp(h->self.why, "referenced");
			continue;
		}
		h->held++;
		h->bad += held(&h->self, id, first, 0, MANY_LEN - 4 * PAGE);
		sched_yield();
		h->bad += held(&h->self, id, again, 0, MANY_LEN - 4 * PAGE);
		h->bad += !!memcmp(first, again, MANY_LEN - 4 * PAGE);
		h->bad += release(&h->self, id);
	}
	free(first);
	free(again);
	return NULL;
}

/* Two threads hold, one writes, and all the while children are forked. */
TEST_F(protect, threads_and_forks)
{
	struct writer w = { .mem = (void *)self->mem, .pages = MANY };
	struct holder h[2];
	pthread_t t[3];
	pid_t pid;
	int i;

	memset(self->mem, 0, MANY_LEN);
	ASSERT_EQ(0, pthread_create(&t[2], NULL, write_loop, &w));
	for (i = 0; i < 2; i++) {
		h[i] = (struct holder){ .self = *self, .rounds = thread_rounds() / 2 };
		ASSERT_EQ(0, pthread_create(&t[i], NULL, hold_loop, &h[i]));
	}
	for (i = 0; i < thread_rounds() / 20; i++) {
		pid = fork();
		if (!pid) {
			memset(self->mem, 0xff, MANY_LEN);
			_exit(0);
		}
		EXPECT_EQ(0, hps_reap(pid));
	}
	for (i = 0; i < 2; i++) {
		pthread_join(t[i], NULL);
		EXPECT_EQ(0, h[i].bad);
		EXPECT_NE(0, h[i].held);
		TH_LOG("%ld held, %ld refused", h[i].held, h[i].refused);
	}
	w.stop = true;
	pthread_join(t[2], NULL);
	EXPECT_EQ(0, w.lost);
}

/* The child shares the held pages. */
TEST_F(protect, fork_after)
{
	int id = hold(self, self->mem, LEN), go[2];
	char byte;
	pid_t pid;

	ASSERT_OK(id);
	ASSERT_OK(pipe(go));
	pid = hps_fork();
	if (!pid) {
		if (hps_check(self->mem, LEN, 0, 1) != LEN)
			_exit(1);
		hps_fill(self->mem, LEN / 2, 0, 2);
		if (holds(self, id, LEN, 0, 1) != LEN)
			_exit(2);
		close(go[1]);
		_exit(read(go[0], &byte, 1) == 0 && hps_check(self->mem, LEN / 2, 0, 2) == LEN / 2 ?
		      0 : 3);
	}
	hps_fill(self->mem, LEN, 0, 3);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	close(go[1]);
	EXPECT_EQ(0, hps_reap(pid));
	EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 3));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES, self->res.early);
}

/* Pages that a child has, too, are not made writable. */
TEST_F(protect, fork_before)
{
	int id, go[2], at[2];
	char byte;
	pid_t pid;

	ASSERT_OK(pipe(go));
	ASSERT_OK(pipe(at));
	pid = hps_fork();
	if (!pid) {
		close(go[1]);
		if (read(go[0], &byte, 1) != 1)
			_exit(1);
		hps_fill(self->mem, LEN / 2, 0, 2);
		if (write(at[1], "w", 1) != 1 || read(go[0], &byte, 1) != 0)
			_exit(2);
		_exit(hps_check(self->mem + LEN / 2, LEN / 2, LEN / 2, 1) == LEN / 2 ? 0 : 3);
	}
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	ASSERT_EQ(1, write(go[1], "g", 1));
	ASSERT_EQ(1, read(at[0], &byte, 1));
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(0, self->res.early);
	/* The other half is the child's as well. */
	EXPECT_GE(PAGES / 2, self->res.restored);
	hps_fill(self->mem, LEN, 0, 4);
	close(go[1]);
	EXPECT_EQ(0, hps_reap(pid));
}

/* How a process that holds pages may end; the parent looks at them then. */
static void end_by_exit(void) { _exit(0); }
static void end_by_kill(void) { kill(getpid(), SIGKILL); }
static void end_by_exec(void)
{
	execl("/bin/true", "true", (char *)NULL);
	_exit(1);
}

static const struct {
	void (*end)(void);
	int status;
} ends[] = { { end_by_exit, 0 }, { end_by_kill, 128 + SIGKILL }, { end_by_exec, 0 } };

TEST_F(protect, process_ends)
{
	int up[2], id, status;
	size_t i;
	pid_t pid;

	ASSERT_OK(pipe(up));
	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		pid = fork();
		ASSERT_OK(pid);
		if (!pid) {
			uint8_t *p = map_kind(self, HUGE);

			hps_fill(p, LEN, 0, 7);
			id = hold(self, p, LEN);
			if (write(up[1], &id, sizeof(id)) != sizeof(id))
				_exit(1);
			ends[i].end();
		}
		ASSERT_EQ(sizeof(id), read(up[0], &id, sizeof(id)));
		ASSERT_LT(0, id);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(ends[i].status, WIFEXITED(status) ? WEXITSTATUS(status) :
			  128 + WTERMSIG(status));
		EXPECT_EQ(LEN, holds(self, id, LEN, 0, 7));
		ASSERT_OK(release(self, id));
		EXPECT_EQ(0, self->res.early);
		EXPECT_EQ(0, self->res.restored);
	}
}

TEST_F(protect, descriptor_closed)
{
	int fd = self->fd;

	self->fd = open("/dev/" HPS_TEST_DEVICE, O_RDWR);
	ASSERT_OK(self->fd);
	ASSERT_OK(hold(self, self->mem, LEN));
	ASSERT_OK(hold(self, self->mem, LEN));
	close(self->fd);
	self->fd = fd;
	EXPECT_EQ(0, count(self).holds);
	EXPECT_EQ(0, write_faults(self->mem, LEN));
}

TEST_F(protect, munmap)
{
	int id = hold(self, self->mem, LEN);

	ASSERT_OK(id);
	ASSERT_OK(munmap(self->mem, LEN));
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	/* Something else may come there, even a huge page. */
	ASSERT_EQ(self->mem, mmap(self->mem, HUGE, PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	madvise(self->mem, HUGE, self->kind == HUGE_PAGES ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	hps_fill(self->mem, LEN, 0, 2);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES, self->res.early);
	EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 2));
	EXPECT_EQ(0, write_faults(self->mem, LEN));
}

TEST_F(protect, mremap)
{
	uint8_t *to = map(LEN);
	int id = hold(self, self->mem, LEN);

	ASSERT_OK(id);
	ASSERT_EQ(to, mremap(self->mem, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED, to));
	EXPECT_EQ(LEN, hps_check(to, LEN, 0, 1));
	hps_fill(to, LEN / 2, 0, 2);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES, self->res.early);
	EXPECT_EQ(0, self->res.restored);
	hps_fill(to, LEN, 0, 3);
	EXPECT_EQ(LEN, hps_check(to, LEN, 0, 3));
}

TEST_F(protect, mprotect)
{
	int id = hold(self, self->mem, LEN);

	ASSERT_OK(id);
	ASSERT_OK(mprotect(self->mem, LEN, PROT_READ));
	ASSERT_OK(mprotect(self->mem, LEN, PROT_READ | PROT_WRITE));
	hps_fill(self->mem, LEN / 2, 0, 2);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	/* A page that the program may not write to is not made writable. */
	ASSERT_OK(mprotect(self->mem, LEN, PROT_READ));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES / 2, self->res.early);
	EXPECT_EQ(0, self->res.restored);
	id = hps_fork();
	if (!id) {
		self->mem[LEN - 1] = 0;
		_exit(0);
	}
	EXPECT_EQ(128 + SIGSEGV, hps_reap(id));
	ASSERT_OK(mprotect(self->mem, LEN, PROT_READ | PROT_WRITE));
	hps_fill(self->mem, LEN, 0, 3);
	EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 3));
}

TEST_F(protect, madvise)
{
	int id = hold(self, self->mem, LEN);

	ASSERT_OK(id);
	ASSERT_OK(madvise(self->mem, LEN, MADV_DONTNEED));
	EXPECT_EQ(0, self->mem[1]);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES, self->res.early);

	/* The kernel has this for anonymous mappings only. */
	if (self->kind == A_FILE)
		return;
	hps_fill(self->mem, LEN, 0, 1);
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	ASSERT_OK(madvise(self->mem, LEN, MADV_FREE));
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	hps_fill(self->mem, LEN / 2, 0, 2);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_OK(release(self, id));
	hps_fill(self->mem, LEN, 0, 3);
	EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 3));
}

/* What moves pages about leaves alone what is held. */
TEST_F(protect, collapse_and_compaction)
{
	uint8_t *shared = map_kind(self, HUGE);
	int id, i;

	if (self->kind == A_FILE)
		mmap(shared, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, self->file, 0);
	hps_fill(self->mem, HUGE, 0, 1);
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	for (i = 0; i < 3; i++) {
		madvise(self->mem, HUGE, MADV_HUGEPAGE);
		madvise(self->mem, HUGE, MADV_COLLAPSE);
		/* The file's pages; it wants to remove the page tables of who else maps them. */
		hps_fill(shared, HUGE, 0, 2);
		madvise(shared, HUGE, MADV_COLLAPSE);
		hps_set_number("/proc/sys/vm/compact_memory", 1);
		self->mem[i * PAGE]++;
		EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
		self->mem[i * PAGE]--;
	}
	EXPECT_EQ(HUGE, hps_check(self->mem, HUGE, 0, 1));
	ASSERT_OK(release(self, id));
	/* And a hold of what was collapsed. */
	madvise(self->mem, HUGE, MADV_COLLAPSE);
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	hps_fill(self->mem, LEN, 0, 2);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_OK(release(self, id));
}

/* The kernel writes to the program's memory, too. */
TEST_F(protect, kernel_writes)
{
	struct iovec from, to = { self->mem + 2 * PAGE, 2 * PAGE };
	uint8_t *buf = malloc(LEN);
	int id, fds[2], fd;

	hps_fill(buf, LEN, 0, 2);
	from = (struct iovec){ buf + 2 * PAGE, 2 * PAGE };
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	ASSERT_OK(pipe(fds));
	ASSERT_EQ(2 * PAGE, write(fds[1], buf, 2 * PAGE));
	ASSERT_EQ(2 * PAGE, read(fds[0], self->mem, 2 * PAGE));
	ASSERT_EQ(2 * PAGE, process_vm_writev(getpid(), &from, 1, &to, 1, 0));
	fd = open("/proc/self/mem", O_RDWR);
	ASSERT_OK(fd);
	ASSERT_EQ(2 * PAGE, pwrite(fd, buf + 4 * PAGE, 2 * PAGE, (uintptr_t)self->mem + 4 * PAGE));
	close(fd);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	EXPECT_EQ(6 * PAGE, hps_check(self->mem, 6 * PAGE, 0, 2));
	EXPECT_EQ(LEN - 6 * PAGE, hps_check(self->mem + 6 * PAGE, LEN - 6 * PAGE, 6 * PAGE, 1));
	/* A pipe that got the pages by reference has what was there, and so has the hold. */
	to = (struct iovec){ self->mem + 8 * PAGE, 2 * PAGE };
	ASSERT_EQ(2 * PAGE, vmsplice(fds[1], &to, 1, 0));
	hps_fill(self->mem, LEN, 0, 3);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_EQ(2 * PAGE, read(fds[0], buf, 2 * PAGE));
	EXPECT_EQ(2 * PAGE, hps_check(buf, 2 * PAGE, 8 * PAGE, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES, self->res.early);
}

/* Who pins pages to write to them gets others. */
TEST_F(protect, pinned_while_held)
{
	int id = hold(self, self->mem, LEN);

	ASSERT_OK(id);
	ASSERT_OK(grab(self, self->mem, 4 * PAGE, true));
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(4, self->res.early);
	EXPECT_EQ(PAGES - 4, self->res.restored);
	ASSERT_OK(grab(self, self->mem, 0, true));
}

/* What the program pins or has referenced is not protected, and stays as it is. */
TEST_F(protect, refused_references)
{
	int pin;

	for (pin = 0; pin < 2; pin++) {
		ASSERT_OK(grab(self, self->mem + 2 * PAGE, PAGE, pin));
		EXPECT_ERRNO(EOPNOTSUPP, hold(self, self->mem, LEN));
		EXPECT_STREQ(pin ? "pinned" : "referenced", self->why);
		EXPECT_EQ(0, write_faults(self->mem, LEN));
		ASSERT_OK(grab(self, self->mem, 0, pin));
	}
	ASSERT_OK(release(self, hold(self, self->mem, LEN)));
	EXPECT_EQ(PAGES, self->res.restored);
}

/* What becomes of the file is nothing to what was written to a private mapping of it. */
TEST_F(protect, file_changes)
{
	uint8_t *p, zero[PAGE] = {};
	int id;

	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, self->file, 0);
	ASSERT_NE(MAP_FAILED, p);
	hps_fill(p, LEN, 0, 5);
	id = hold(self, p, LEN);
	ASSERT_OK(id);
	ASSERT_EQ(PAGE, pwrite(self->file, self->mem, PAGE, 2 * PAGE));
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 5));
	/* Except that its end takes away the mappings; the other half is given back. */
	ASSERT_OK(ftruncate(self->file, LEN / 2));
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 5));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES / 2, self->res.early);
	EXPECT_EQ(PAGES / 2, self->res.restored);
	EXPECT_EQ(LEN / 2, hps_check(p, LEN / 2, 0, 5));
	ASSERT_OK(ftruncate(self->file, LEN));
	EXPECT_EQ(0, memcmp(p + LEN / 2, zero, PAGE));
	munmap(p, LEN);
}

static int refused(struct _test_data_protect *self, void *p, size_t len, const char *why)
{
	int id = hold(self, p, len);

	if (id >= 0) {
		release(self, id);
		fprintf(stderr, "# it was held, not: %s\n", why);
		return 1;
	}
	if (!strcmp(self->why, why))
		return 0;
	fprintf(stderr, "# it said %s, not %s\n", self->why, why);
	return 1;
}

TEST_F(protect, refused_ranges)
{
	uint8_t *p = map(4 * PAGE);

	EXPECT_ERRNO(EFAULT, hold(self, p, 0));
	EXPECT_STREQ("range", self->why);
	EXPECT_ERRNO(EFAULT, hold(self, (void *)-PAGE, PAGE));
	EXPECT_ERRNO(EFAULT, hold(self, (void *)(1UL << 63), PAGE));
	EXPECT_ERRNO(EFAULT, hold(self, p, -1UL));
	EXPECT_STREQ("range", self->why);
	EXPECT_ERRNO(EFAULT, hold(self, NULL, PAGE));
	EXPECT_STREQ("fault", self->why);
	/* Two mappings are well, a hole between them is not. */
	ASSERT_OK(madvise(p + PAGE, PAGE, MADV_DONTFORK));
	hps_fill(p, 4 * PAGE, 0, 5);
	ASSERT_OK(release(self, hold(self, p, 4 * PAGE)));
	EXPECT_EQ(4, self->res.restored);
	ASSERT_OK(mprotect(p + PAGE, PAGE, PROT_READ));
	EXPECT_EQ(0, refused(self, p, 4 * PAGE, "readonly"));
	ASSERT_OK(mprotect(p + PAGE, PAGE, PROT_NONE));
	EXPECT_EQ(0, refused(self, p, 4 * PAGE, "readonly"));
	ASSERT_OK(mprotect(p + PAGE, PAGE, PROT_WRITE));
	EXPECT_EQ(0, refused(self, p, 4 * PAGE, "fault"));
	ASSERT_OK(munmap(p + PAGE, PAGE));
	EXPECT_EQ(0, refused(self, p, 4 * PAGE, "fault"));
	/* Of what was refused nothing is left. */
	EXPECT_EQ(0, write_faults(p, PAGE));
	EXPECT_EQ(0, write_faults(p + 2 * PAGE, 2 * PAGE));
}

TEST_F(protect, refused_mappings)
{
	int fd = memfd_create("hps", 0);
	unsigned long begin, end;
	char line[256];
	uint8_t *p;
	FILE *maps;
	bool seen = false;

	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	hps_fill(p, LEN, 0, 1);
	EXPECT_EQ(0, refused(self, p, LEN, "shared"));
	ASSERT_OK(ftruncate(fd, LEN));
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	EXPECT_EQ(0, refused(self, p, LEN, "shared"));
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	EXPECT_EQ(0, refused(self, p, LEN, "file"));
	/* All but one page are the program's own. */
	hps_fill(p, LEN, 0, 1);
	ASSERT_OK(madvise(p + 5 * PAGE, PAGE, MADV_DONTNEED));
	EXPECT_EQ(0, refused(self, p, LEN, "file"));
	EXPECT_EQ(0, write_faults(p, 5 * PAGE));
	maps = fopen("/proc/self/maps", "r");
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "[vvar]") && sscanf(line, "%lx-%lx", &begin, &end) == 2) {
			seen = true;
			EXPECT_EQ(0, refused(self, (void *)begin, PAGE, "io"));
		}
	fclose(maps);
	EXPECT_TRUE(seen);
}

TEST_F(protect, refused_hugetlb)
{
	static const char path[] = "/proc/sys/vm/nr_hugepages";
	long before = hps_number(path, -1);
	uint8_t *p;

	if (before < 0)
		SKIP(return, "no hugetlb");
	hps_set_number(path, before + 4);
	p = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	if (p == MAP_FAILED) {
		hps_set_number(path, before);
		SKIP(return, "no huge page to be had");
	}
	p[0] = 1;
	EXPECT_EQ(0, refused(self, p, LEN, "hugetlb"));
	munmap(p, HUGE);
	hps_set_number(path, before);
}

TEST_F(protect, refused_uffd)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = {
		.range = { (uintptr_t)self->mem, HUGE },
		.mode = UFFDIO_REGISTER_MODE_WP,
	};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC), id, err;

	if (fd < 0)
		SKIP(return, "no userfaultfd");
	ASSERT_OK(ioctl(fd, UFFDIO_API, &api));
	/* One that comes while the pages are held */
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	err = ioctl(fd, UFFDIO_REGISTER, &reg);
	if (err && self->kind == A_FILE) {
		ASSERT_OK(release(self, id));
		SKIP(return, "userfaultfd does not write-protect a file's mapping");
	}
	ASSERT_OK(err);
	hps_fill(self->mem, LEN / 2, 0, 2);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES / 2, self->res.early);
	EXPECT_EQ(0, self->res.restored);
	EXPECT_EQ(0, refused(self, self->mem, LEN, "uffd"));
	close(fd);
	hps_fill(self->mem, LEN, 0, 3);
	ASSERT_OK(release(self, hold(self, self->mem, LEN)));
	EXPECT_EQ(PAGES, self->res.restored);
}

TEST_F(protect, refused_notifier)
{
	int err = ioctl(self->fd, HPS_TEST_NOTIFY);

	if (err && errno == EOPNOTSUPP)
		SKIP(return, "no notifiers");
	ASSERT_OK(err);
	EXPECT_EQ(0, refused(self, self->mem, LEN, "notifier"));
}

TEST_F(protect, refused_ksm)
{
	static const char run[] = "/sys/kernel/mm/ksm/run";
	int64_t end = hps_now() + hps_deadline();
	uint8_t *p = map(LEN);
	int id;

	if (access(run, W_OK))
		SKIP(return, "no KSM");
	memset(p, 0x5a, LEN);
	ASSERT_OK(madvise(p, LEN, MADV_MERGEABLE));
	/* Pages that are held are not merged. */
	id = hold(self, p, LEN);
	ASSERT_OK(id);
	hps_set_number("/sys/kernel/mm/ksm/sleep_millisecs", 1);
	hps_set_number("/sys/kernel/mm/ksm/pages_to_scan", 1000);
	hps_set_number(run, 1);
	id = id + release(self, id);
	while (hps_number("/sys/kernel/mm/ksm/pages_sharing", 0) < PAGES - 2 && hps_now() < end)
		usleep(1000);
	EXPECT_EQ(0, refused(self, p, LEN, "ksm"));
	hps_set_number(run, 2);
	hps_set_number(run, 0);
	memset(p, 0x11, LEN);
	ASSERT_OK(release(self, hold(self, p, LEN)));
}

TEST_F(protect, budget_and_switch)
{
	static const char max[] = PARAMETERS "protect_max_kb", on[] = PARAMETERS "zcopy_protect";
	long before = hps_number(max, -1);
	int a, b;

	ASSERT_LT(0, before);
	ASSERT_OK(hps_set_number(max, LEN / 1024 + 4));
	a = hold(self, self->mem, LEN);
	ASSERT_OK(a);
	EXPECT_EQ(0, refused(self, self->mem, 2 * PAGE, "budget"));
	b = hold(self, self->mem, PAGE);
	EXPECT_OK(b);
	EXPECT_EQ(0, refused(self, self->mem, 1, "budget"));
	ASSERT_OK(release(self, b));
	ASSERT_OK(hps_set_number(max, before));
	ASSERT_OK(hps_set_number(on, 0));
	EXPECT_EQ(0, refused(self, self->mem, 1, "off"));
	/* What is held already stays held. */
	hps_fill(self->mem, LEN, 0, 2);
	EXPECT_EQ(LEN, holds(self, a, LEN, 0, 1));
	ASSERT_OK(release(self, a));
	ASSERT_OK(hps_set_number(on, 1));
	ASSERT_OK(release(self, hold(self, self->mem, 1)));
	EXPECT_ERRNO(EINVAL, hps_set_number(on, 2));
}

/* What the module tries when it is loaded needs more than this, and is no program's memory. */
TEST_F(protect, loaded_with_no_budget)
{
	close(self->fd);
	ASSERT_EQ(0, syscall(SYS_delete_module, HPS_TEST_DEVICE, O_NONBLOCK));
	ASSERT_OK(load("protect_max_kb=0"));
	self->fd = open("/dev/" HPS_TEST_DEVICE, O_RDWR);
	ASSERT_OK(self->fd);
	EXPECT_EQ(0, refused(self, self->mem, 1, "budget"));
	ASSERT_OK(hps_set_number(PARAMETERS "protect_max_kb", LEN / 1024));
	ASSERT_OK(release(self, hold(self, self->mem, LEN)));
}

static bool soft_dirty(const void *p)
{
	int fd = open("/proc/self/pagemap", O_RDONLY);
	uint64_t entry = 0;

	if (pread(fd, &entry, 8, (uintptr_t)p / PAGE * 8) != 8)
		entry = 0;
	close(fd);
	return entry >> 55 & 1;
}

/* Who watches for writes by soft-dirty bits sees those after a hold. */
TEST_F(protect, soft_dirty)
{
	int id;

	self->mem[0]++;
	if (!soft_dirty(self->mem))
		SKIP(return, "no soft-dirty bits");
	self->mem[0]--;
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	ASSERT_OK(hps_set_number("/proc/self/clear_refs", 4));
	EXPECT_FALSE(soft_dirty(self->mem + PAGE));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(0, self->res.restored);
	EXPECT_FALSE(soft_dirty(self->mem + PAGE));
	self->mem[PAGE] ^= 0;
	EXPECT_TRUE(soft_dirty(self->mem + PAGE));
}

/* A swap area on a compressed RAM disk, as large as needed. */
static bool swap_on(void)
{
	uint8_t head[PAGE] = {};
	uint32_t *info = (uint32_t *)(head + 1024);
	int fd;

	if (system("modprobe -q zram 2>/dev/null") ||
	    hps_set_number("/sys/block/zram0/disksize", 64 << 20))
		return false;
	info[0] = 1;
	info[1] = (64 << 20) / PAGE - 1;
	memcpy(head + PAGE - 10, "SWAPSPACE2", 10);
	fd = open("/dev/zram0", O_WRONLY);
	if (fd < 0 || write(fd, head, PAGE) != PAGE || fsync(fd))
		return false;
	close(fd);
	return !swapon("/dev/zram0", 0);
}

static void swap_off(void)
{
	swapoff("/dev/zram0");
	hps_set_number("/sys/block/zram0/reset", 1);
}

TEST_F(protect, swap)
{
	long before;
	int id, i;

	if (!swap_on())
		SKIP(return, "no zram to swap to");
	/* Swapped out before: the hold brings it in. */
	before = hps_field("/proc/vmstat", "pswpout");
	ASSERT_OK(madvise(self->mem, HUGE, MADV_PAGEOUT));
	EXPECT_LT(before, hps_field("/proc/vmstat", "pswpout"));
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	hps_fill(self->mem, LEN / 2, 0, 2);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES / 2, self->res.early);
	/* While it is held, over and over, read in between */
	hps_fill(self->mem, LEN, 0, 1);
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	for (i = 0; i < 5; i++) {
		ASSERT_OK(madvise(self->mem, HUGE, MADV_PAGEOUT));
		EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
		EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 1));
	}
	ASSERT_OK(madvise(self->mem, HUGE, MADV_PAGEOUT));
	hps_fill(self->mem, LEN, 0, 3);
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 3));
	/* Away when the hold ends */
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	ASSERT_OK(madvise(self->mem, HUGE, MADV_PAGEOUT));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 3));
	hps_fill(self->mem, LEN, 0, 4);
	EXPECT_EQ(LEN, hps_check(self->mem, LEN, 0, 4));
	swap_off();
}

/* Direct I/O reads from a device into a buffer that is held. */
TEST_F(protect, direct_io)
{
	uint8_t *buf;
	int fd, id;

	if (!swap_on())
		SKIP(return, "no zram to read from");
	swapoff("/dev/zram0");
	buf = map(LEN);
	hps_fill(buf, LEN, 0, 5);
	fd = open("/dev/zram0", O_RDWR | O_DIRECT);
	ASSERT_OK(fd);
	ASSERT_EQ(LEN, pwrite(fd, buf, LEN, 0));
	id = hold(self, self->mem, LEN);
	ASSERT_OK(id);
	ASSERT_EQ(LEN / 2, pread(fd, self->mem, LEN / 2, 0));
	EXPECT_EQ(LEN, holds(self, id, LEN, 0, 1));
	EXPECT_EQ(LEN / 2, hps_check(self->mem, LEN / 2, 0, 5));
	ASSERT_OK(release(self, id));
	EXPECT_EQ(PAGES / 2, self->res.early);
	close(fd);
	swap_off();
}

TEST_HARNESS_MAIN
