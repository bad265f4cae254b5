// SPDX-License-Identifier: GPL-2.0
/*
 * Page protection: a hold keeps the bytes of a range of user memory as they were
 * when it was taken. A write by the program meanwhile gets a page of its own,
 * from the kernel's copy on write, as after a fork(); the hold keeps the old one.
 *
 * A page in a hold is in this state, in every page table that maps it: read-only,
 * PageAnonExclusive clear, and one reference more than its mappings (as FOLL_GET
 * takes it, for a page that is pinned cannot be write-protected). In that state
 * do_wp_page() copies, also for those who ask GUP for write access, and fork()
 * shares the page on. Reclaim and MADV_FREE may unmap it, but neither they nor
 * migration and khugepaged can free or replace it, because of the reference. KSM looks at
 * that only if the PTE is writable or dirty, or the page exclusive. Where the PTE is clean,
 * as after swapping in, it may map an equal page to the program instead, or make the page one
 * of its own: neither changes the bytes, and nobody writes to a page of KSM's in its place.
 * Whatever would make it exclusive again, as do_wp_page() and do_swap_page(), wants
 * that nobody else refers to it. So it stays so until we let go.
 *
 * To take a hold, under mmap_lock for reading, the mappings are looked at, and then,
 * a page table at a time, under its lock (page_table.c, which has why that is enough):
 *   1. references are got and registered, both at once (page_run.c);
 *   2. the PTEs are cleared, all processors flushed, the references checked,
 *      PageAnonExclusive cleared, the PTEs set again without the write bit. This is
 *      what mm/ksm.c does.
 * Pages that another hold protects already need nothing of the second step. If some are
 * absent, or in a huge PMD, the hold is let go, GUP, without any lock of ours, faults in what
 * is the program's own and splits the PMDs, and we begin anew.
 *
 * To let go: the last hold of a page makes it exclusive and writable again if
 * it is still there and nobody else refers to it, so that the program's next
 * write takes no fault. Where that is not possible it simply puts the reference,
 * and the kernel decides on the next write whether to copy.
 *
 * This file has the hold as a whole, from the range that is asked for to its end: hold.h
 * says what the others have. How many bytes are held, and whether pages can be
 * protected on this machine, is known here.
 *
 * Locks: mmap_lock (read) -> page table lock -> folio lock (trylock only) -> lock of a
 * bucket. Of these only mmap_lock, which is the program's own, is held where we may sleep,
 * and then only for memory: a program whose pages do not come, because somebody else has to
 * bring them in, holds up itself, as with a copy.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/mmu_context.h>
#include <linux/mmu_notifier.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>

#include "compat.h"
#include "hold.h"
#include "param.h"
#include "protect.h"

/* The word for a refusal, and the error that a caller gets. */
static const struct {
	const char *name;
	int err;
} hps_refusals[HPS_PROTECT_REFUSALS] = {
	[HPS_PROTECT_OK] = { "ok", 0 },
	[HPS_PROTECT_OFF] = { "off", -EOPNOTSUPP },
	[HPS_PROTECT_ARCH] = { "architecture", -EOPNOTSUPP },
	[HPS_PROTECT_KERNEL] = { "kernel", -EOPNOTSUPP },
	[HPS_PROTECT_SELFTEST] = { "selftest", -EOPNOTSUPP },
	[HPS_PROTECT_BUDGET] = { "budget", -EOPNOTSUPP },
	[HPS_PROTECT_RANGE] = { "range", -EFAULT },
	[HPS_PROTECT_FAULT] = { "fault", -EFAULT },
	[HPS_PROTECT_NOMEM] = { "nomem", -ENOMEM },
	[HPS_PROTECT_KILLED] = { "killed", -EINTR },
	[HPS_PROTECT_NOTIFIER] = { "notifier", -EOPNOTSUPP },
	[HPS_PROTECT_SHARED] = { "shared", -EOPNOTSUPP },
	[HPS_PROTECT_FILE] = { "file", -EOPNOTSUPP },
	[HPS_PROTECT_HUGETLB] = { "hugetlb", -EOPNOTSUPP },
	[HPS_PROTECT_IO] = { "io", -EOPNOTSUPP },
	[HPS_PROTECT_UFFD] = { "uffd", -EOPNOTSUPP },
	[HPS_PROTECT_READONLY] = { "readonly", -EOPNOTSUPP },
	[HPS_PROTECT_PINNED] = { "pinned", -EOPNOTSUPP },
	[HPS_PROTECT_REFERENCED] = { "referenced", -EOPNOTSUPP },
	[HPS_PROTECT_KSM] = { "ksm", -EOPNOTSUPP },
	[HPS_PROTECT_RACE] = { "race", -EOPNOTSUPP },
};

/**
 * hps_refusal_name - a word for a refusal
 * @why: the refusal
 *
 * Context: any.
 * Return: a constant string.
 */
const char *hps_refusal_name(enum hps_refusal why)
{
	return hps_refusals[why].name;
}

static atomic_long_t hps_held_bytes;
static atomic_long_t hps_held_count;

/**
 * hps_protect_holds - how many holds there are
 *
 * Context: any; a snapshot.
 * Return: a number, of the whole module.
 */
long hps_protect_holds(void)
{
	return atomic_long_read(&hps_held_count);
}

/**
 * hps_protect_bytes - how much memory all holds keep
 *
 * A page counts once for each of its holds. Context: any; a snapshot.
 * Return: bytes.
 */
long hps_protect_bytes(void)
{
	return atomic_long_read(&hps_held_bytes);
}

#ifdef HPS_PROTECT_WORKS

#define HPS_ATTEMPTS	4

static enum hps_refusal hps_protect_state;

/*
 * May the thread read there, also by its protection keys? Pages that are mapped are got
 * without GUP, which would ask the same.
 */
static bool hps_vma_readable(struct vm_area_struct *vma)
{
	return vma->vm_flags & VM_READ && arch_vma_access_permitted(vma, false, false, false);
}

static enum hps_refusal hps_vma_check(struct vm_area_struct *vma)
{
	if (vma->vm_flags & VM_HUGETLB)
		return HPS_PROTECT_HUGETLB;
	if (vma->vm_flags & HPS_VM_SPECIAL)
		return HPS_PROTECT_IO;
	if (vma->vm_flags & (VM_SHARED | VM_MAYSHARE))
		return HPS_PROTECT_SHARED;
	if (!hps_vma_own(vma))
		return HPS_PROTECT_FILE;
	if (userfaultfd_armed(vma))
		return HPS_PROTECT_UFFD;
	if (!(vma->vm_flags & VM_WRITE))
		return HPS_PROTECT_READONLY;
	if (!hps_vma_readable(vma))
		return HPS_PROTECT_FAULT;
	return HPS_PROTECT_OK;
}

static enum hps_refusal hps_range_check(const struct hps_hold *hold)
{
	unsigned long addr = hold->start;
	unsigned long end = hps_hold_addr(hold, hold->nr_pages);
	struct vm_area_struct *vma;
	enum hps_refusal why;

	/* To register one takes mmap_lock for writing. */
	if (mm_has_notifiers(hold->mm))
		return HPS_PROTECT_NOTIFIER;
	for (; addr < end; addr = vma->vm_end) {
		vma = find_vma(hold->mm, addr);
		if (!vma || vma->vm_start > addr)
			return HPS_PROTECT_FAULT;
		why = hps_vma_check(vma);
		if (why)
			return why;
	}
	return HPS_PROTECT_OK;
}

/*
 * Have those pages brought in that the last attempt found absent, and huge mappings of them
 * split: hps_hold.pages still says which, while its other pages have no reference any more.
 * Only these, for to mark others as accessed may put them into lists that hold references.
 * That takes as long as it takes, and a fatal signal ends it: no lock of ours is held.
 */
static enum hps_refusal hps_fault_in(const struct hps_hold *hold)
{
	unsigned int i, end;
	long n;

	for (i = 0; i < hold->nr_pages; i = end) {
		end = i + 1;
		if (hold->pages[i])
			continue;
		while (end < hold->nr_pages && !hold->pages[end])
			end++;
		n = get_user_pages_unlocked(hps_hold_addr(hold, i), end - i, NULL,
					    FOLL_SPLIT_PMD);
		if (fatal_signal_pending(current))
			return HPS_PROTECT_KILLED;
		if (n <= 0)
			return n == -ENOMEM ? HPS_PROTECT_NOMEM : HPS_PROTECT_FAULT;
	}
	return HPS_PROTECT_RACE;
}

/* mmap_lock is held. After a refusal, everything is as before. */
static enum hps_refusal hps_attempt(struct hps_hold *hold)
{
	struct hps_released ignored = {};
	enum hps_refusal why;

	why = hps_range_check(hold);
	if (why)
		return why;
	why = hps_tables_take(hold) ?: hps_pages_copy(hold);
	if (!why)
		return HPS_PROTECT_OK;
	/* They may have been activated, and wait for that in a list. */
	if (why == HPS_PROTECT_REFERENCED)
		hps_lru_drain(hold->runs[0].folio);
	hps_put_loose(hold);
	hps_tables_release(hold, true, &ignored);
	return why;
}

static struct hps_hold *hps_hold_alloc(unsigned long addr, size_t len)
{
	unsigned long start = addr & PAGE_MASK;
	size_t nr = (PAGE_ALIGN(addr + len) - start) >> PAGE_SHIFT;
	struct hps_hold *hold;

	hold = kvmalloc(sizeof(*hold) + nr * (sizeof(*hold->runs) + sizeof(*hold->pages)) +
			min_t(size_t, nr, PTRS_PER_PTE) * sizeof(*hold->ptes),
			GFP_KERNEL_ACCOUNT);
	if (!hold)
		return NULL;
	hold->mm = current->mm;
	hold->start = start;
	hold->nr_pages = nr;
	hold->nr_runs = 0;
	hold->copied = 0;
	hold->runs = (void *)(hold + 1);
	hold->pages = (void *)(hold->runs + nr);
	hold->ptes = (void *)(hold->pages + nr);
	return hold;
}

/* Unless all holds together would then have more than @max bytes. */
static bool hps_charge(long bytes, u64 max)
{
	if (atomic_long_add_return(bytes, &hps_held_bytes) <= max) {
		atomic_long_inc(&hps_held_count);
		return true;
	}
	atomic_long_sub(bytes, &hps_held_bytes);
	return false;
}

static void hps_uncharge(long bytes)
{
	atomic_long_sub(bytes, &hps_held_bytes);
	atomic_long_dec(&hps_held_count);
}

static long hps_hold_bytes(const struct hps_hold *hold)
{
	return (long)hold->nr_pages << PAGE_SHIFT;
}

static enum hps_refusal hps_hold_take(struct hps_hold *hold)
{
	enum hps_refusal why;
	bool drained = false;
	int attempt = 0;

	do {
		if (mmap_read_lock_killable(hold->mm))
			return HPS_PROTECT_KILLED;
		why = hps_attempt(hold);
		mmap_read_unlock(hold->mm);
		if (why == HPS_PROTECT_RACE && hold->absent)
			why = hps_fault_in(hold);
		if (why == HPS_PROTECT_REFERENCED && drained)
			break;
		drained |= why == HPS_PROTECT_REFERENCED;
	} while ((why == HPS_PROTECT_RACE || why == HPS_PROTECT_REFERENCED) &&
		 ++attempt < HPS_ATTEMPTS);
	return why;
}

static enum hps_refusal hps_hold_try(unsigned long addr, size_t len, u64 max,
				     struct hps_hold **res)
{
	enum hps_refusal why = HPS_PROTECT_BUDGET;
	struct hps_hold *hold;

	if (!current->mm || !len || len > INT_MAX || addr + len + PAGE_SIZE < addr ||
	    !access_ok((void __user *)addr, len))
		return HPS_PROTECT_RANGE;
	hold = hps_hold_alloc(addr, len);
	if (!hold)
		return HPS_PROTECT_NOMEM;
	if (!hps_charge(hps_hold_bytes(hold), max))
		goto free;
	why = hps_hold_take(hold);
	if (why)
		goto uncharge;
	mmgrab(hold->mm);
	*res = hold;
	return HPS_PROTECT_OK;

uncharge:
	hps_uncharge(hps_hold_bytes(hold));
free:
	kvfree(hold);
	return why;
}

/**
 * hps_hold_get - take a hold, whatever hps_protect_why_not() and protect_max_kb say
 * @addr: as for hps_protect()
 * @len: as for hps_protect()
 * @why: as for hps_protect()
 *
 * Context: as for hps_protect().
 * Return: as hps_protect().
 */
struct hps_hold *hps_hold_get(unsigned long addr, size_t len, enum hps_refusal *why)
{
	struct hps_hold *hold = NULL;

	*why = hps_hold_try(addr, len, U64_MAX, &hold);
	return *why ? ERR_PTR(hps_refusals[*why].err) : hold;
}

/**
 * hps_protect_why_not - can pages be protected at all?
 *
 * Context: any.
 * Return: HPS_PROTECT_OK, or why not.
 */
enum hps_refusal hps_protect_why_not(void)
{
	return READ_ONCE(hps_zcopy_protect) ? hps_protect_state : HPS_PROTECT_OFF;
}

/**
 * hps_protect - keep the bytes of a range of the caller's memory as they are
 * @addr: where the range begins, a user address
 * @len: its length, bytes
 * @why: is told why it was refused, or HPS_PROTECT_OK
 *
 * Every page that the range touches is held, whole: a write beside the range in
 * its first or last page takes a fault as well. The range may have holds already.
 *
 * Context: process, may sleep; the caller has no lock that a page fault may want.
 * Return: a hold that hps_protect_release() ends; -EFAULT where no memory is,
 * -ENOMEM, -EINTR after a fatal signal, and otherwise -EOPNOTSUPP: the caller
 * has to take the bytes another way. After an error nothing is held.
 */
struct hps_hold *hps_protect(unsigned long addr, size_t len, enum hps_refusal *why)
{
	u64 max = (u64)READ_ONCE(hps_protect_max_kb) << 10;
	struct hps_hold *hold = NULL;

	*why = hps_protect_why_not() ?: hps_hold_try(addr, len, max, &hold);
	return *why ? ERR_PTR(hps_refusals[*why].err) : hold;
}

/**
 * hps_protect_release - end a hold
 * @hold: the hold, which is freed
 * @res: is told what became of the pages
 *
 * Pages of which it was the last hold are made writable again, if the address
 * space is still there, its mmap_lock is to be had at once and nobody else
 * refers to them. Any task may do it; nobody may use the pages any more.
 *
 * Context: process, may sleep; it does not wait for the end of the address space.
 */
void hps_protect_release(struct hps_hold *hold, struct hps_released *res)
{
	struct mm_struct *mm = hold->mm;
	bool look, alive;

	*res = (struct hps_released){ .copied = hold->copied };
	hps_put_loose(hold);
	alive = mmget_not_zero(mm);
	look = alive && mmap_read_trylock(mm);
	hps_tables_release(hold, look, res);
	if (look)
		mmap_read_unlock(mm);
	/* The task may be gone since: exit_mmap() is not for whoever ends the hold. */
	if (alive)
		mmput_async(mm);
	mmdrop(mm);
	hps_uncharge(hps_hold_bytes(hold));
	kvfree(hold);
}

/**
 * hps_hold_pages - the pages of a hold
 * @hold: the hold, to which they belong
 * @nr: is told how many they are
 *
 * The first byte of the range is in the first page, at the offset that the
 * address has in its page. Context: any.
 * Return: the pages in the order of their addresses; to be read only.
 */
struct page **hps_hold_pages(const struct hps_hold *hold, unsigned int *nr)
{
	*nr = hold->nr_pages;
	return hold->pages;
}

/**
 * hps_protect_init - find out whether pages can be protected here
 *
 * It may be that none can, which one line in the log tells and every later hps_protect().
 *
 * Context: process, when the module is loaded.
 */
void hps_protect_init(void)
{
	const char *what = NULL;

	hps_runs_init();
	/* The page tables of a guest of Xen are Xen's. */
	if (boot_cpu_has(X86_FEATURE_XENPV))
		hps_protect_state = HPS_PROTECT_ARCH;
	else
		what = hps_selftest();
	if (what)
		hps_protect_state = HPS_PROTECT_SELFTEST;
	if (hps_protect_state)
		pr_warn("pages cannot be protected (%s%s%s): sends are copied\n",
			hps_refusal_name(hps_protect_state), what ? ": " : "", what ?: "");
}

#else /* !HPS_PROTECT_WORKS: there are no holds */

#define HPS_PROTECT_STATE	(HPS_PROTECT_ARCH_OK ? HPS_PROTECT_KERNEL : HPS_PROTECT_ARCH)

enum hps_refusal hps_protect_why_not(void)
{
	return READ_ONCE(hps_zcopy_protect) ? HPS_PROTECT_STATE : HPS_PROTECT_OFF;
}

struct hps_hold *hps_protect(unsigned long addr, size_t len, enum hps_refusal *why)
{
	*why = hps_protect_why_not();
	return ERR_PTR(-EOPNOTSUPP);
}

void hps_protect_release(struct hps_hold *hold, struct hps_released *res)
{
}

struct page **hps_hold_pages(const struct hps_hold *hold, unsigned int *nr)
{
	*nr = 0;
	return NULL;
}

void hps_protect_init(void)
{
	pr_info("pages cannot be protected (%s): sends are copied\n",
		hps_refusal_name(HPS_PROTECT_STATE));
}

#endif /* HPS_PROTECT_WORKS */
