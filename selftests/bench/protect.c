// SPDX-License-Identifier: GPL-2.0
/*
 * What it costs to protect pages, next to copying them, nanoseconds a page. It
 * wants the test module of selftests/protect; see Documentation/zero-copy.rst.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "../protect/protect_test.h"

#define PAGE 4096UL
#define PAGES 256UL
#define LEN (PAGES * PAGE)
#define ROUNDS 20

enum {
	COPY, GUP, FIRST, AGAIN, RELEASE, WRITE, WRITE_RESTORED, WRITE_LEFT, WRITE_HELD,
	IGNORED, COSTS
};

static const char * const names[COSTS] = {
	[COPY] = "copy_from_user()",
	[GUP] = "get_user_pages_fast() and put",
	[FIRST] = "hold",
	[AGAIN] = "hold again while it is held",
	[RELEASE] = "release with restore",
	[WRITE] = "write of 8 bytes, never held",
	[WRITE_RESTORED] = "the same after a hold",
	[WRITE_LEFT] = "the same after a hold without restore",
	[WRITE_HELD] = "the same while it is held",
};

static uint64_t total[COSTS];
static int dev;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static uint64_t write_all(volatile uint8_t *p)
{
	uint64_t begin = now();
	size_t i;

	for (i = 0; i < LEN; i += PAGE)
		*(volatile uint64_t *)(p + i) = i;
	return now() - begin;
}

static int hold(void *p, int cost)
{
	struct hps_test_hold in = { .addr = (uintptr_t)p, .len = LEN };

	if (ioctl(dev, HPS_TEST_HOLD, &in)) {
		fprintf(stderr, "refused: %s\n", in.why);
		exit(1);
	}
	total[cost] += in.ns;
	return in.id;
}

static uint64_t let_go(int id)
{
	struct hps_test_release in = { .id = id };

	if (ioctl(dev, HPS_TEST_RELEASE, &in))
		die("release");
	return in.ns;
}

int main(void)
{
	struct hps_test_grab grab = { .len = LEN };
	struct hps_test_copy copy = { .len = LEN };
	static uint8_t sink[LEN];
	int ko, i, a, b, fds[2];
	struct iovec iov;
	void *p;

	ko = open(getenv("HPSOCK_TEST_KO") ?: "", O_RDONLY);
	if (ko < 0 || (syscall(SYS_finit_module, ko, "", 0) && errno != EEXIST))
		die("test module");
	close(ko);
	dev = open("/dev/" HPS_TEST_DEVICE, O_RDWR);
	if (dev < 0)
		die("device");
	p = mmap(NULL, LEN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise(p, LEN, MADV_NOHUGEPAGE);
	iov = (struct iovec){ p, LEN };
	if (pipe(fds) || fcntl(fds[1], F_SETPIPE_SZ, LEN) < 0)
		die("pipe");
	write_all(p);
	let_go(hold(p, FIRST));
	memset(total, 0, sizeof(total));
	grab.addr = (uintptr_t)p;
	copy.addr = (uintptr_t)p;
	for (i = 0; i < ROUNDS; i++) {
		total[WRITE] += write_all(p);
		if (ioctl(dev, HPS_TEST_COPY, &copy) || ioctl(dev, HPS_TEST_GRAB, &grab))
			die("copy");
		total[COPY] += copy.ns;
		total[GUP] += grab.ns;
		a = hold(p, FIRST);
		b = hold(p, AGAIN);
		let_go(b);
		total[RELEASE] += let_go(a);
		total[WRITE_RESTORED] += write_all(p);
		/* A pipe has references to the pages: they stay read-only. */
		a = hold(p, IGNORED);
		if (vmsplice(fds[1], &iov, 1, 0) != (ssize_t)LEN)
			die("vmsplice");
		let_go(a);
		if (read(fds[0], sink, LEN) != (ssize_t)LEN)
			die("read");
		total[WRITE_LEFT] += write_all(p);
		a = hold(p, IGNORED);
		total[WRITE_HELD] += write_all(p);
		let_go(a);
		/* What is new waits in a list, and would be copied. */
		let_go(hold(p, IGNORED));
	}
	for (i = 0; i < IGNORED; i++)
		printf("%-40s %6lu\n", names[i],
		       (unsigned long)(total[i] / (ROUNDS * PAGES)));
	return 0;
}
