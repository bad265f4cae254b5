// SPDX-License-Identifier: GPL-2.0
/*
 * The self-test of page protection, when the module is loaded: memory is mapped into
 * the address space of who loads it, held, written to and released. It knows of the rules
 * no more than what they are for: a hold has the old bytes, the program the new ones.
 *
 * It owns neither state nor locks, and is called before anybody else may have a hold.
 */
#include <linux/err.h>
#include <linux/highmem.h>
#include <linux/mman.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "compat.h"
#include "hold.h"

#ifdef HPS_PROTECT_WORKS

#define HPS_SELFTEST_PAGES	2
#define HPS_SELFTEST_BYTES	(HPS_SELFTEST_PAGES * PAGE_SIZE)

/* A page may be in others' hands for a moment: a batch of another processor, a scan. */
#define HPS_SELFTEST_TRIES	20

/* Do all pages of the hold have this byte, everywhere? */
static bool hps_selftest_holds(const struct hps_hold *hold, u8 byte)
{
	unsigned int i;
	bool same = true;

	for (i = 0; same && i < hold->nr_pages; i++) {
		void *p = kmap_local_page(hold->pages[i]);

		same = !memchr_inv(p, byte, PAGE_SIZE);
		kunmap_local(p);
	}
	return same;
}

/*
 * One hold of memory that has @old, during which the program writes @new to the
 * pages from @from on. @bytes is a buffer. Returns 0, -EAGAIN if it was disturbed, or
 * -EIO if a byte was wrong, which must not be, whoever disturbs; @what then says more.
 */
static int hps_selftest_round(unsigned long addr, u8 *bytes, u8 old, u8 new, unsigned int from,
			      const char **what)
{
	unsigned int written = HPS_SELFTEST_PAGES - from;
	size_t len = written * PAGE_SIZE;
	void __user *at = (void __user *)(addr + from * PAGE_SIZE);
	struct hps_released res;
	struct hps_hold *hold;
	enum hps_refusal why;
	bool ok;

	memset(bytes, old, HPS_SELFTEST_BYTES);
	*what = hps_refusal_name(HPS_PROTECT_FAULT);
	if (copy_to_user((void __user *)addr, bytes, HPS_SELFTEST_BYTES))
		return -EAGAIN;
	hold = hps_hold_get(addr, HPS_SELFTEST_BYTES, &why);
	*what = hps_refusal_name(why);
	if (IS_ERR(hold))
		return -EAGAIN;
	memset(bytes, new, len);
	ok = hps_selftest_holds(hold, old) && !copy_to_user(at, bytes, len) &&
	     hps_selftest_holds(hold, old);
	memset(bytes, old, len);
	ok = ok && !copy_from_user(bytes, at, len) && !memchr_inv(bytes, new, len);
	hps_protect_release(hold, &res);
	*what = "wrong bytes";
	if (!ok)
		return -EIO;
	*what = "not made writable again";
	return res.early == written && res.restored == from ? 0 : -EAGAIN;
}

/* All, one of two, and none of the pages written while they are held. */
static int hps_selftest_rounds(unsigned long addr, u8 *bytes, const char **what)
{
	return hps_selftest_round(addr, bytes, 0x11, 0x22, 0, what) ?:
	       hps_selftest_round(addr, bytes, 0x33, 0x44, 1, what) ?:
	       hps_selftest_round(addr, bytes, 0x55, 0x66, 2, what);
}

/**
 * hps_selftest - does page protection work here?
 *
 * Context: process, may sleep; in the address space of who loads the module.
 * Return: NULL if it works, or what went wrong.
 */
const char *hps_selftest(void)
{
	const char *what = "no memory";
	int err = -EAGAIN, tries;
	unsigned long addr;
	u8 *bytes;

	if (!current->mm)
		return "no address space";
	bytes = kmalloc(HPS_SELFTEST_BYTES, GFP_KERNEL);
	if (!bytes)
		return what;
	for (tries = 0; err == -EAGAIN && tries < HPS_SELFTEST_TRIES; tries++) {
		addr = vm_mmap(NULL, 0, HPS_SELFTEST_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, 0);
		if (IS_ERR_VALUE(addr))
			break;
		err = hps_selftest_rounds(addr, bytes, &what);
		vm_munmap(addr, HPS_SELFTEST_BYTES);
	}
	kfree(bytes);
	return err ? what : NULL;
}

#endif /* HPS_PROTECT_WORKS */
