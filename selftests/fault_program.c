// SPDX-License-Identifier: GPL-2.0
/*
 * Programs that keep a socket's lock: a send from memory whose pages somebody else has to
 * bring in (userfaultfd, FUSE), and does not. That holds up what needs the lock, and must
 * hold up nothing else.
 */
#include "hps_test.h"

#include <linux/userfaultfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define PAGE 4096
/* More than a workqueue runs at a time */
#define HELD 300

FIXTURE(program) {
	struct hps t;
	int uffd;
	char *missing;		/* a page that nobody brings in */
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
	ASSERT_EQ(0, hps_add_device(0));
}

FIXTURE_TEARDOWN(program)
{
	hps_add_device(0);
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
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	EXPECT_EQ(5000, hps_push(c, 5000, 5000, 1));
	EXPECT_EQ(5000, hps_pull(s, 5000, 5000, 1));
	close(c);
	EXPECT_EQ(0, hps_pull(s, 1, 1, 1));
	ASSERT_EQ(0, hps_remove_device(0));
	/* They get their page now; whether it still went anywhere is not known to them. */
	close(self->uffd);
	for (i = 0; i < HELD; i++) {
		ASSERT_TRUE(hps_done(&call[i]));
		EXPECT_EQ(0, hps_push(call[i].fd, 10, 10, 1));
	}
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
