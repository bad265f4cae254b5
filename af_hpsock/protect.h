/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Page protection: the bytes of a user's buffer stay what they were, although
 * the program may write to it again at once. It knows neither sockets nor verbs.
 * Documentation/zero-copy.rst has the idea, protect.c the rules, hold.h the files.
 */
#ifndef HPS_PROTECT_H
#define HPS_PROTECT_H

#include <linux/types.h>

struct page;
struct hps_hold;

/* Why a range was not protected. The order is that of the names in protect.c. */
enum hps_refusal {
	HPS_PROTECT_OK,
	HPS_PROTECT_OFF,	/* the tunable zcopy_protect is 0 */
	HPS_PROTECT_ARCH,	/* not x86-64, or not on its own page tables */
	HPS_PROTECT_KERNEL,	/* a kernel that the tests have not covered */
	HPS_PROTECT_SELFTEST,	/* it did not work when the module was loaded */
	HPS_PROTECT_BUDGET,	/* more than the tunable protect_max_kb */
	HPS_PROTECT_RANGE,	/* no such range of addresses, or it is empty */
	HPS_PROTECT_FAULT,	/* no memory there, or the thread may not read it */
	HPS_PROTECT_NOMEM,	/* no memory for the hold itself */
	HPS_PROTECT_KILLED,	/* the caller got a fatal signal meanwhile */
	HPS_PROTECT_NOTIFIER,	/* the mm has notifiers (KVM, ODP), none can be called */
	HPS_PROTECT_SHARED,	/* a shared mapping */
	HPS_PROTECT_FILE,	/* a file's pages, not the program's own copies */
	HPS_PROTECT_HUGETLB,	/* huge pages that are no THP */
	HPS_PROTECT_IO,		/* PFN maps, device memory, secret and other special maps */
	HPS_PROTECT_UFFD,	/* userfaultfd watches the mapping */
	HPS_PROTECT_READONLY,	/* the program itself may not write there */
	HPS_PROTECT_PINNED,	/* pinned for DMA */
	HPS_PROTECT_REFERENCED,	/* someone else holds a reference, perhaps to write */
	HPS_PROTECT_KSM,	/* merged by KSM */
	HPS_PROTECT_RACE,	/* the page tables kept changing */
	HPS_PROTECT_REFUSALS
};

/* What a release found and did; pages that were not looked at are in neither. */
struct hps_released {
	unsigned int early;	/* pages written, or unmapped, before the release */
	unsigned int restored;	/* pages made writable again without a fault */
	unsigned int copied;	/* pages that had been copied, being too new */
};

void hps_protect_init(void);
enum hps_refusal hps_protect_why_not(void);
const char *hps_refusal_name(enum hps_refusal why);

struct hps_hold *hps_protect(unsigned long addr, size_t len, enum hps_refusal *why);
void hps_protect_release(struct hps_hold *hold, struct hps_released *res);

struct page **hps_hold_pages(const struct hps_hold *hold, unsigned int *nr);

long hps_protect_holds(void);
long hps_protect_bytes(void);

#endif /* HPS_PROTECT_H */
