/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What hpsock_protect_test, a module for selftests/mm_protect alone, does on
 * /dev/hpsock_protect_test. A hold belongs to the open file and ends with it.
 */
#ifndef HPS_PROTECT_TEST_H
#define HPS_PROTECT_TEST_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define HPS_TEST_DEVICE		"hpsock_protect_test"
#define HPS_TEST_WORD		16	/* bytes for the name of a refusal */

struct hps_test_hold {
	__u64 addr;
	__u64 len;
	__u64 ns;			/* out: what it took */
	__u32 id;			/* out */
	__u32 pad;
	char why[HPS_TEST_WORD];	/* out, also with an error */
};

/* Bytes of the pages of a hold as they are now, from offset bytes after its address. */
struct hps_test_read {
	__u64 offset;
	__u64 len;
	__u64 buf;
	__u32 id;
	__u32 pad;
};

struct hps_test_release {
	__u32 id;
	__u32 elsewhere;		/* in: let a kernel thread do it */
	__u32 early;			/* out */
	__u32 restored;			/* out */
	__u32 copied;			/* out */
	__u32 pad;
	__u64 ns;			/* out: what it took */
};

struct hps_test_count {
	__s64 holds;
	__s64 bytes;
};

/* References like those of direct I/O on old kernels, or pins, of up to 512 pages. */
struct hps_test_grab {
	__u64 addr;
	__u64 len;
	__u64 ns;			/* out: what it took to get and to put them */
	__u32 pin;			/* in: FOLL_PIN */
	__u32 keep;			/* in: until the next grab or the file is closed */
};

/* How long it takes the kernel to copy the range, a page at a time. */
struct hps_test_copy {
	__u64 addr;
	__u64 len;
	__u64 ns;			/* out */
};

#define HPS_TEST_HOLD		_IOWR('H', 1, struct hps_test_hold)
#define HPS_TEST_READ		_IOW('H', 2, struct hps_test_read)
#define HPS_TEST_RELEASE	_IOWR('H', 3, struct hps_test_release)
#define HPS_TEST_COUNT		_IOR('H', 4, struct hps_test_count)
#define HPS_TEST_GRAB		_IOWR('H', 5, struct hps_test_grab)
#define HPS_TEST_COPY		_IOWR('H', 6, struct hps_test_copy)
#define HPS_TEST_NOTIFY		_IO('H', 7)	/* give the mm a notifier until close */

#endif /* HPS_PROTECT_TEST_H */
