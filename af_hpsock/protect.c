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
 * migration, KSM and khugepaged can free or replace it, because of the reference.
 * Whatever would make it exclusive again, as do_wp_page() and do_swap_page(), wants
 * that nobody else refers to it. So it stays so until we let go.
 *
 * To take a hold, under mmap_lock for reading:
 *   1. the mappings are looked at and references taken; GUP faults in what is
 *      absent and splits huge PMDs;
 *   2. the references are registered in a table of the module (struct hps_run);
 *   3. a page table at a time, under its lock: the PTEs are cleared, all
 *      processors flushed, the references checked, PageAnonExclusive cleared,
 *      the PTEs set again without the write bit. This is what mm/ksm.c does.
 * Pages that another hold protects already need nothing of the third step.
 *
 * To let go: the last hold of a page makes it exclusive and writable again if
 * it is still there and nobody else refers to it, so that the program's next
 * write takes no fault. Where that is not possible it simply puts the reference,
 * and the kernel decides on the next write whether to copy.
 *
 * Translations that are cached. Between step 3's clear and its check no
 * processor may be able to write through an old translation. __flush_tlb_all()
 * runs on every online processor, with the PTEs cleared and the page table locked.
 * arch/x86/mm/tlb.c of 6.1 and 6.12 agree in what matters here:
 *   - With PGE it is native_flush_tlb_global(): INVPCID of all contexts, or a
 *     change of CR4.PGE, either of which drops the entries of all PCIDs. Without
 *     PGE setup_pcid() does not use PCIDs and writing CR3 drops everything.
 *   - mm_cpumask() would not do: switch_mm_irqs_off() clears a processor's bit
 *     when it leaves an mm but keeps the entries tagged with its ASID, and
 *     choose_new_asid() takes them up again unless context.tlb_gen has moved. A
 *     module cannot move it, since inc_mm_tlb_gen() alone without a flush of those
 *     that run the mm is no flush. So those who have left are flushed as well.
 *   - A lazy processor (enter_lazy_tlb(), a kernel thread on a borrowed mm) is
 *     passed over by flush_tlb_mm_range(), but not by on_each_cpu(). tlb_gen is
 *     left alone, so what the kernel thinks of the age of the entries is an
 *     underestimate at worst, and costs it a flush that was not needed.
 *   - A processor that comes online begins with initialize_tlbstate_and_flush();
 *     one that goes has left user mode for good.
 *   - No entry comes into being afterwards: the PTE is none until it is set
 *     read-only. A fault meanwhile waits for the lock and finds that it changed.
 *   - The user half of the page tables (PTI) has the same PTE pages, and its
 *     PCIDs are dropped with the others.
 * Making a PTE writable again needs no flush: an old translation may fault once
 * for nothing, as after any upgrade.
 *
 * GUP-fast of others runs with interrupts disabled, so the flush, which is an IPI
 * that is waited for, has also waited for it: its reference is seen by the check,
 * or it has seen the cleared PTE and backed off.
 *
 * on_each_cpu() under a page table lock: the kernel does the same whenever it
 * flushes under that lock, as ptep_clear_flush() in wp_page_copy(). It needs
 * interrupts on here; it would hang only if a processor waited with interrupts
 * off for a lock that we hold. Those are mmap_lock, a mutex of our own and page
 * table locks, none of which is ever taken with interrupts off; the locks of our
 * table are not held across it.
 *
 * Locks: hps_mm_lock() of the mm -> mmap_lock (read) -> page table lock -> folio
 * lock (trylock only) -> lock of a bucket. The mutex keeps threads of one mm from
 * taking each other's references, got but not yet registered, for a stranger's.
 */
#include <linux/atomic.h>
#include <linux/err.h>
#include <linux/mm.h>

#include "compat.h"
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

#include <linux/highmem.h>
#include <linux/hash.h>
#include <linux/ksm.h>
#include <linux/list.h>
#include <linux/mman.h>
#include <linux/memremap.h>
#include <linux/mmu_notifier.h>
#include <linux/mutex.h>
#include <linux/pgtable.h>
#include <linux/rmap.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/userfaultfd_k.h>
#include <asm/tlbflush.h>

#define HPS_BUCKET_BITS	10
#define HPS_MM_BITS	6
#define HPS_ATTEMPTS	4

/* No VMA that has one of these is ordinary memory. */
#define HPS_VM_SPECIAL \
	(VM_IO | VM_PFNMAP | VM_MIXEDMAP | HPS_VM_NEWER)

/*
 * References of one hold to consecutive pages of one folio, mapped at consecutive
 * addresses by one page table; for a small page, this is the page. In a bucket
 * from before the page is protected until the references are put. The folio
 * cannot be split or freed meanwhile.
 */
struct hps_run {
	struct hlist_node node;
	struct folio *folio;
	struct page *first;
	unsigned int index;	/* of the first page in the hold */
	unsigned short nr;
	bool protected;		/* its pages are in the state of the head comment */
};

struct hps_bucket {
	spinlock_t lock;	/* the list and what is in the runs */
	struct hlist_head runs;
};

/*
 * A hold belongs to who took it. It keeps the mm_struct, but not the address
 * space, from going away.
 */
struct hps_hold {
	struct mm_struct *mm;
	unsigned long start;	/* of the first page */
	unsigned int nr_pages;
	unsigned int nr_runs;
	unsigned int copied;
	struct page **pages;
	struct hps_run *runs;
	pte_t *ptes;		/* of the table at hand, while the hold is taken */
};

static struct hps_bucket hps_buckets[1 << HPS_BUCKET_BITS];
static struct mutex hps_mm_locks[1 << HPS_MM_BITS];
static enum hps_refusal hps_protect_state;

static struct hps_bucket *hps_bucket_of(const struct folio *folio)
{
	return &hps_buckets[hash_ptr(folio, HPS_BUCKET_BITS)];
}

static struct mutex *hps_mm_lock(const struct mm_struct *mm)
{
	return &hps_mm_locks[hash_ptr(mm, HPS_MM_BITS)];
}

static unsigned long hps_run_addr(const struct hps_hold *hold, const struct hps_run *run)
{
	return hold->start + ((unsigned long)run->index << PAGE_SHIFT);
}

static bool hps_run_has(const struct hps_run *run, const struct page *page)
{
	return page >= run->first && page < run->first + run->nr;
}

/* Does a run other than @run have the page, protected if so @asked? Bucket locked. */
static bool hps_held_elsewhere(const struct hps_bucket *bucket, const struct hps_run *run,
			       const struct page *page, bool asked)
{
	const struct hps_run *other;

	hlist_for_each_entry(other, &bucket->runs, node)
		if (other != run && other->folio == run->folio && hps_run_has(other, page) &&
		    /* Pairs with hps_table_protect_locked(). */
		    (!asked || smp_load_acquire(&other->protected)))
			return true;
	return false;
}

/* A page that is, is read-only in every page table: for others this need not be asked. */
static bool hps_protected_elsewhere(const struct hps_run *run, const struct page *page)
{
	struct hps_bucket *bucket = hps_bucket_of(run->folio);
	bool protected;

	spin_lock(&bucket->lock);
	protected = hps_held_elsewhere(bucket, run, page, true);
	spin_unlock(&bucket->lock);
	return protected;
}

/* References to the folio that the kernel itself has for its mappings and the swap cache. */
static int hps_kernel_refs(struct folio *folio)
{
	int swap = folio_test_swapcache(folio) ? folio_nr_pages(folio) : 0;

	return hps_folio_mapcount(folio) + swap;
}

/*
 * Are the kernel's and the holds' all references to the folio? The kernel's may
 * come and go meanwhile, by page tables that are not locked. It takes a reference
 * before it counts it as a mapping, and puts it after: if both counts of these are the
 * same, that of the references in between is not too low. Bucket locked.
 */
static bool hps_refs_known(const struct hps_bucket *bucket, struct folio *folio)
{
	const struct hps_run *run;
	int known = 0, before, refs;

	hlist_for_each_entry(run, &bucket->runs, node)
		if (run->folio == folio)
			known += run->nr;
	before = hps_kernel_refs(folio);
	/* In this order, see above. */
	smp_rmb();
	refs = folio_ref_count(folio);
	/* And so is this. */
	smp_rmb();
	return refs == known + before && before == hps_kernel_refs(folio);
}

/*
 * May pages of this VMA be the program's own? They are anonymous, then; so are those of
 * a private mapping of a file that it has written to.
 */
static bool hps_vma_own(struct vm_area_struct *vma)
{
	return vma_is_anonymous(vma) || READ_ONCE(vma->anon_vma);
}

/*
 * The entry of the page table that maps an address, none if there is no table,
 * which includes a huge page. mmap_lock is held, and a VMA with pages of the
 * program's own lies in the table's range: without one munmap(), which goes on
 * with mmap_lock for reading, may be about to free what leads to it.
 */
static pmd_t hps_table_of(struct mm_struct *mm, unsigned long addr)
{
	pgd_t *pgd = pgd_offset(mm, addr);
	p4d_t *p4d;
	pud_t *pud;
	pmd_t pmd;

	if (pgd_none(*pgd) || pgd_bad(*pgd))
		return __pmd(0);
	p4d = p4d_offset(pgd, addr);
	if (p4d_none(*p4d) || p4d_bad(*p4d))
		return __pmd(0);
	pud = pud_offset(p4d, addr);
	if (pud_none(*pud) || pud_leaf(*pud) || pud_bad(*pud))
		return __pmd(0);
	pmd = READ_ONCE(*pmd_offset(pud, addr));
	if (!pmd_present(pmd) || pmd_leaf(pmd) || pmd_bad(pmd))
		return __pmd(0);
	return pmd;
}

/*
 * Lock the page table that maps an address, under the conditions of hps_table_of(), as
 * pte_offset_map_lock() does, which is not exported. Returns the entry of the address,
 * or NULL if there is none; it is to be unlocked all the same.
 *
 * What removes a table wants mmap_lock for writing, except for khugepaged on a file's
 * mapping, from 6.6 on: it passes over tables that have anonymous pages; others
 * it removes with the table locked, and RCU frees them.
 */
static pte_t *hps_table_lock(struct mm_struct *mm, unsigned long addr, spinlock_t **ptl)
	__acquires(RCU) __acquires(*ptl)
{
	pmd_t pmd;

	rcu_read_lock();
	pmd = hps_table_of(mm, addr);
	*ptl = pmd_none(pmd) ? &mm->page_table_lock : pte_lockptr(mm, &pmd);
	spin_lock(*ptl);
	if (pmd_none(pmd) || !pmd_same(pmd, hps_table_of(mm, addr)))
		return NULL;
	return pte_offset_kernel(&pmd, addr);
}

static void hps_table_unlock(spinlock_t *ptl)
	__releases(ptl) __releases(RCU)
{
	spin_unlock(ptl);
	rcu_read_unlock();
}

static bool hps_maps(pte_t pte, const struct page *page)
{
	return pte_present(pte) && pte_pfn(pte) == page_to_pfn(page);
}

static void hps_flush_local(void *unused)
{
	__flush_tlb_all();
}

/* That of the page @i of a run which was put aside; none if it needs nothing. */
static pte_t *hps_saved(const struct hps_hold *hold, const struct hps_run *begin,
			const struct hps_run *run, unsigned int i)
{
	return &hold->ptes[run->index - begin->index + i];
}

/*
 * Put aside and clear the PTEs of the pages that need it, and remember in @exclusive which of
 * them the program had for itself. Returns how many they are, or -1 if the table is not as
 * it was found; then those after that are none.
 */
static int hps_table_clear(const struct hps_hold *hold, const struct hps_run *begin,
			   const struct hps_run *end, pte_t *table, unsigned long *exclusive)
{
	unsigned int i, at, nr = end[-1].index + end[-1].nr - begin->index;
	unsigned long addr = hps_run_addr(hold, begin);
	const struct hps_run *run;
	int need = 0;

	for (run = begin; run < end; run++)
		for (i = 0; i < run->nr; i++) {
			struct page *page = run->first + i;
			pte_t pte;

			at = run->index - begin->index + i;
			pte = ptep_get(table + at);
			hold->ptes[at] = __pte(0);
			if (!hps_maps(pte, page)) {
				memset(hold->ptes + at, 0, (nr - at) * sizeof(pte));
				return -1;
			}
			if (!pte_write(pte) && hps_protected_elsewhere(run, page))
				continue;
			/* Once more, for the dirty bit is the processor's. */
			hold->ptes[at] = ptep_get_and_clear(hold->mm, addr + at * PAGE_SIZE,
							    table + at);
			if (PageAnonExclusive(page))
				__set_bit(at, exclusive);
			need++;
		}
	return need;
}

/* Nobody but us and the page tables has the pages that are now unmapped? */
static enum hps_refusal hps_run_check(const struct hps_run *run)
{
	struct hps_bucket *bucket = hps_bucket_of(run->folio);
	struct folio *folio = run->folio;
	bool known;

	if (folio_test_ksm(folio))
		return HPS_PROTECT_KSM;
	if (folio_maybe_dma_pinned(folio))
		return HPS_PROTECT_PINNED;
	spin_lock(&bucket->lock);
	known = hps_refs_known(bucket, folio);
	spin_unlock(&bucket->lock);
	return known ? HPS_PROTECT_OK : HPS_PROTECT_REFERENCED;
}

/* Make the pages shared of which the PTEs were put aside. */
static enum hps_refusal hps_run_share(const struct hps_hold *hold, const struct hps_run *begin,
				      const struct hps_run *run)
{
	unsigned int i;

	for (i = 0; i < run->nr; i++) {
		struct page *page = run->first + i;

		if (pte_none(*hps_saved(hold, begin, run, i)) || !PageAnonExclusive(page))
			continue;
		if (hps_try_share(run->folio, page))
			return HPS_PROTECT_PINNED;
	}
	return HPS_PROTECT_OK;
}

/* Set the PTEs again: read-only if all went well, as they were if it did not. */
static void hps_table_set(const struct hps_hold *hold, const struct hps_run *begin,
			  const struct hps_run *end, pte_t *table,
			  const unsigned long *exclusive, bool protect)
{
	unsigned long addr = hps_run_addr(hold, begin);
	const struct hps_run *run;
	unsigned int i, at;

	for (run = begin; run < end; run++)
		for (i = 0; i < run->nr; i++) {
			pte_t pte;

			at = run->index - begin->index + i;
			pte = hold->ptes[at];
			if (pte_none(pte))
				continue;
			if (protect)
				pte = pte_wrprotect(pte);
			else if (test_bit(at, exclusive))
				SetPageAnonExclusive(run->first + i);
			set_pte_at(hold->mm, addr + at * PAGE_SIZE, table + at, pte);
		}
}

/* The page table is locked. */
static enum hps_refusal hps_table_protect_locked(const struct hps_hold *hold,
						 struct hps_run *begin, struct hps_run *end,
						 pte_t *table)
{
	DECLARE_BITMAP(exclusive, PTRS_PER_PTE) = {};
	int need = hps_table_clear(hold, begin, end, table, exclusive);
	enum hps_refusal why = need < 0 ? HPS_PROTECT_RACE : HPS_PROTECT_OK;
	struct hps_run *run;

	if (need > 0)
		on_each_cpu(hps_flush_local, NULL, 1);
	for (run = begin; need > 0 && !why && run < end; run++)
		why = hps_run_check(run) ?: hps_run_share(hold, begin, run);
	if (need)
		hps_table_set(hold, begin, end, table, exclusive, !why);
	for (run = begin; !why && run < end; run++)
		/* After the PTEs: pairs with hps_held_elsewhere(), under another lock. */
		smp_store_release(&run->protected, true);
	return why;
}

/* Protect the pages of the runs, which are those of one page table. mmap_lock is held. */
static enum hps_refusal hps_table_protect(const struct hps_hold *hold, struct hps_run *begin,
					  struct hps_run *end)
{
	enum hps_refusal why = HPS_PROTECT_RACE;
	spinlock_t *ptl;	/* of the page table */
	pte_t *table;

	table = hps_table_lock(hold->mm, hps_run_addr(hold, begin), &ptl);
	if (table)
		why = hps_table_protect_locked(hold, begin, end, table);
	hps_table_unlock(ptl);
	return why;
}

/* The runs from @run on that are mapped by the same page table. */
static struct hps_run *hps_table_end(const struct hps_hold *hold, struct hps_run *run)
{
	unsigned int left = PTRS_PER_PTE - pte_index(hps_run_addr(hold, run));
	unsigned int stop = run->index + left;
	struct hps_run *end = hold->runs + hold->nr_runs;

	while (run < end && run->index < stop)
		run++;
	return run;
}

/* May a page of this VMA that is mapped so be writable without a fault that tells of it? */
static bool hps_may_restore(struct vm_area_struct *vma, pte_t pte)
{
	if ((vma->vm_flags & (VM_WRITE | VM_SHARED | VM_MAYSHARE)) != VM_WRITE ||
	    !hps_vma_own(vma) || vma->vm_flags & HPS_VM_SPECIAL ||
	    userfaultfd_armed(vma))
		return false;
	if (pte_protnone(pte) || pte_uffd_wp(pte))
		return false;
	/* The bit that tells of a first write is set by the fault. */
	return !IS_ENABLED(CONFIG_MEM_SOFT_DIRTY) || vma->vm_flags & VM_SOFTDIRTY ||
	       pte_soft_dirty(pte);
}

/*
 * Put the references of a run, and before that give back to the program what is
 * its alone again. @table is the first entry of the locked page table, or NULL; @vma
 * is where the page before was, or NULL.
 */
static void hps_run_release(struct hps_hold *hold, struct hps_run *run, pte_t *table,
			    struct vm_area_struct **vma, struct hps_released *res)
{
	struct hps_bucket *bucket = hps_bucket_of(run->folio);
	unsigned long addr = hps_run_addr(hold, run);
	struct folio *folio = run->folio;
	bool locked, sole = false;
	unsigned int i;

	locked = table && folio_trylock(folio);
	spin_lock(&bucket->lock);
	if (locked)
		sole = !folio_test_swapcache(folio) && !folio_test_ksm(folio) &&
		       hps_refs_known(bucket, folio);
	for (i = 0; table && i < run->nr; i++, addr += PAGE_SIZE) {
		struct page *page = run->first + i;
		pte_t *ptep = table + pte_index(addr);
		pte_t pte = ptep_get(ptep);

		if (!hps_maps(pte, page)) {
			/* An entry of swap or migration is not the program's doing. */
			res->early += pte_present(pte) || pte_none(pte);
			continue;
		}
		if (!sole || pte_write(pte) || PageAnonExclusive(page) ||
		    !hps_mapped_once(folio, page) ||
		    hps_held_elsewhere(bucket, run, page, false))
			continue;
		if (!*vma || addr >= (*vma)->vm_end)
			*vma = find_vma(hold->mm, addr);
		if (!*vma || addr < (*vma)->vm_start ||
		    !hps_may_restore(*vma, pte))
			continue;
		SetPageAnonExclusive(page);
		set_pte_at(hold->mm, addr, ptep, hps_pte_mkwrite(pte));
		res->restored++;
	}
	hlist_del(&run->node);
	if (locked)
		folio_unlock(folio);
	/* Registered as long as it is there: see hps_refs_known(). */
	folio_put_refs(folio, run->nr);
	spin_unlock(&bucket->lock);
}

/* Is there memory of the program's own in the range of the runs' page table? */
static bool hps_table_own(struct hps_hold *hold, struct hps_run *begin, struct hps_run *end)
{
	unsigned long addr = hps_run_addr(hold, begin);
	unsigned long stop = hps_run_addr(hold, end - 1) +
			     ((unsigned long)end[-1].nr << PAGE_SHIFT);
	struct vm_area_struct *vma;

	for (; addr < stop; addr = vma->vm_end) {
		vma = find_vma(hold->mm, addr);
		if (!vma || vma->vm_start >= stop)
			return false;
		if (hps_vma_own(vma))
			return true;
	}
	return false;
}

/* @table: all of it, locked; NULL if it is not there any more */
static void hps_table_release_locked(struct hps_hold *hold, struct hps_run *begin,
				     struct hps_run *end, pte_t *table,
				     struct hps_released *res)
{
	struct vm_area_struct *vma = NULL;
	struct hps_run *run;

	for (run = begin; run < end; run++) {
		if (!table)
			res->early += run->nr;
		hps_run_release(hold, run, table, &vma, res);
	}
}

/* Let go of the runs of one page table. mmap_lock is held. */
static void hps_table_release(struct hps_hold *hold, struct hps_run *begin, struct hps_run *end,
			      struct hps_released *res)
{
	unsigned long addr = hps_run_addr(hold, begin) & PMD_MASK;
	spinlock_t *ptl;	/* of the page table */
	pte_t *table;

	if (!hps_table_own(hold, begin, end)) {
		hps_table_release_locked(hold, begin, end, NULL, res);
		return;
	}
	table = hps_table_lock(hold->mm, addr, &ptl);
	hps_table_release_locked(hold, begin, end, table, res);
	hps_table_unlock(ptl);
}

/* Let go of all runs. With @look, mmap_lock is held. */
static void hps_runs_release(struct hps_hold *hold, bool look, struct hps_released *res)
{
	struct hps_run *run, *end, *stop = hold->runs + hold->nr_runs;

	for (run = hold->runs; run < stop; run = end) {
		end = look ? hps_table_end(hold, run) : run + 1;
		if (look)
			hps_table_release(hold, run, end, res);
		else
			hps_run_release(hold, run, NULL, NULL, res);
		cond_resched();
	}
	hold->nr_runs = 0;
}

/*
 * An anonymous page that is new waits in a list of the processor that made it, with a
 * reference, until there are a few. hps_lru_drain() empties this processor's
 * list; the others' are out of reach.
 */
static bool hps_is_waiting(struct folio *folio)
{
	return !folio_test_lru(folio) && !folio_test_large(folio);
}

/*
 * A page that waits on another processor is copied; they are few. A copy keeps the bytes as
 * well. On failure the page itself stays, and will be found to be referenced. Returns
 * whether it was copied.
 */
static bool hps_copy_waiting(struct hps_hold *hold, unsigned int i, struct folio *folio)
{
	struct page *copy;

	hps_lru_drain(folio);
	if (!hps_is_waiting(folio))
		return false;
	copy = alloc_page(GFP_KERNEL_ACCOUNT);
	if (!copy)
		return false;
	copy_highpage(copy, hold->pages[i]);
	put_page(hold->pages[i]);
	hold->pages[i] = copy;
	hold->copied++;
	return true;
}

/* The zero page, and copies, are nobody's and have no run. */
static void hps_put_loose(struct hps_hold *hold)
{
	const struct hps_run *run = hold->runs;
	const struct hps_run *end = run + hold->nr_runs;
	unsigned int i = 0;

	while (i < hold->nr_pages) {
		if (run < end && i == run->index) {
			i += run->nr;
			run++;
			continue;
		}
		put_page(hold->pages[i++]);
	}
}

/* What is in the range that is not the program's own? */
static enum hps_refusal hps_page_check(struct page *page, struct folio *folio)
{
	if (folio_is_zone_device(folio))
		return HPS_PROTECT_IO;
	/* A file's, which this private mapping has not written to. */
	if (!folio_test_anon(folio) && !is_zero_page(page))
		return HPS_PROTECT_FILE;
	return HPS_PROTECT_OK;
}

/* A page follows those of @run, or of the folio before if that is NULL; returns its run. */
static struct hps_run *hps_run_add(struct hps_hold *hold, struct hps_run *run, unsigned int i,
				   struct folio *folio)
{
	unsigned long addr = hold->start + ((unsigned long)i << PAGE_SHIFT);

	if (run && run->folio == folio && hold->pages[i] == run->first + run->nr &&
	    addr & ~PMD_MASK) {
		run->nr++;
		return run;
	}
	run = &hold->runs[hold->nr_runs++];
	run->folio = folio;
	run->first = hold->pages[i];
	run->index = i;
	run->nr = 1;
	run->protected = false;
	return run;
}

/* Part the pages into runs. The zero page never changes, nor does a copy. */
static enum hps_refusal hps_runs_make(struct hps_hold *hold)
{
	struct hps_run *run = NULL;
	enum hps_refusal why;
	unsigned int i;

	hold->nr_runs = 0;
	hold->copied = 0;
	for (i = 0; i < hold->nr_pages; i++) {
		struct folio *folio = page_folio(hold->pages[i]);

		why = hps_page_check(hold->pages[i], folio);
		if (why) {
			hold->nr_runs = 0;
			return why;
		}
		if (!folio_test_anon(folio) ||
		    (hps_is_waiting(folio) && hps_copy_waiting(hold, i, folio)))
			run = NULL;
		else
			run = hps_run_add(hold, run, i, folio);
	}
	return HPS_PROTECT_OK;
}

/* Tell the module of the references. */
static void hps_runs_register(struct hps_hold *hold)
{
	struct hps_run *run;

	for (run = hold->runs; run < hold->runs + hold->nr_runs; run++) {
		struct hps_bucket *bucket = hps_bucket_of(run->folio);

		spin_lock(&bucket->lock);
		hlist_add_head(&run->node, &bucket->runs);
		spin_unlock(&bucket->lock);
	}
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
	return HPS_PROTECT_OK;
}

static enum hps_refusal hps_range_check(const struct hps_hold *hold)
{
	unsigned long addr = hold->start;
	unsigned long end = addr + ((unsigned long)hold->nr_pages << PAGE_SHIFT);
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

/* Take references to those pages of the range that one page table maps now; are they all? */
static bool hps_get_mapped(struct hps_hold *hold, unsigned int from, unsigned int to)
{
	unsigned long addr = hold->start + ((unsigned long)from << PAGE_SHIFT);
	spinlock_t *ptl;	/* of the page table */
	bool all = true;
	pte_t *ptep;

	ptep = hps_table_lock(hold->mm, addr, &ptl);
	for (; from < to; from++) {
		pte_t pte = ptep ? ptep_get(ptep++) : __pte(0);

		hold->pages[from] = NULL;
		/* What is special in an ordinary VMA is the zero page. */
		if (!pte_present(pte) ||
		    (pte_special(pte) && !is_zero_pfn(pte_pfn(pte)))) {
			all = false;
			continue;
		}
		hold->pages[from] = pte_page(pte);
		get_page(hold->pages[from]);
	}
	hps_table_unlock(ptl);
	return all;
}

/*
 * Take a reference to each page. GUP does it only where it has to fault a page in or
 * to split a huge mapping: it takes longer, and its marking of what was accessed
 * may put pages into lists that hold references.
 */
static enum hps_refusal hps_get_pages(struct hps_hold *hold)
{
	unsigned int i, end;
	bool all = true;
	long n = 0;

	for (i = 0; i < hold->nr_pages; i = end) {
		unsigned long addr = hold->start + ((unsigned long)i << PAGE_SHIFT);
		unsigned long left = (pmd_addr_end(addr, ULONG_MAX) - addr) >> PAGE_SHIFT;

		end = min_t(unsigned long, hold->nr_pages, i + left);
		all &= hps_get_mapped(hold, i, end);
	}
	for (i = all ? hold->nr_pages : 0; i < hold->nr_pages; i += n) {
		n = 1;
		if (hold->pages[i])
			continue;
		for (end = i + 1; end < hold->nr_pages && !hold->pages[end]; end++)
			;
		n = hps_get_user_pages(hold->start + ((unsigned long)i << PAGE_SHIFT),
				       end - i, FOLL_SPLIT_PMD, hold->pages + i);
		if (n <= 0)
			break;
	}
	if (i == hold->nr_pages)
		return HPS_PROTECT_OK;
	for (i = 0; i < hold->nr_pages; i++)
		if (hold->pages[i])
			put_page(hold->pages[i]);
	if (fatal_signal_pending(current))
		return HPS_PROTECT_KILLED;
	return n == -ENOMEM ? HPS_PROTECT_NOMEM : HPS_PROTECT_FAULT;
}

/* mmap_lock is held. After a refusal, everything is as before. */
static enum hps_refusal hps_attempt(struct hps_hold *hold)
{
	struct hps_released ignored = {};
	struct hps_run *run, *end;
	enum hps_refusal why;

	why = hps_range_check(hold);
	if (!why)
		why = hps_get_pages(hold);
	if (why)
		return why;
	why = hps_runs_make(hold);
	if (why) {
		hps_put_loose(hold);
		return why;
	}
	hps_runs_register(hold);
	for (run = hold->runs; !why && run < hold->runs + hold->nr_runs; run = end) {
		end = hps_table_end(hold, run);
		why = hps_table_protect(hold, run, end);
		cond_resched();
	}
	if (!why)
		return HPS_PROTECT_OK;
	/* They may have been activated, and wait for that in a list. */
	if (why == HPS_PROTECT_REFERENCED)
		hps_lru_drain(hold->runs[0].folio);
	hps_put_loose(hold);
	hps_runs_release(hold, true, &ignored);
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

static bool hps_charge(long bytes)
{
	u64 max = (u64)READ_ONCE(hps_protect_max_kb) << 10;

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
	struct mutex *lock = hps_mm_lock(hold->mm);
	enum hps_refusal why;
	bool drained = false;
	int attempt = 0;

	do {
		if (mutex_lock_killable(lock))
			return HPS_PROTECT_KILLED;
		if (mmap_read_lock_killable(hold->mm)) {
			mutex_unlock(lock);
			return HPS_PROTECT_KILLED;
		}
		why = hps_attempt(hold);
		mmap_read_unlock(hold->mm);
		mutex_unlock(lock);
		if (why == HPS_PROTECT_REFERENCED && drained)
			break;
		drained |= why == HPS_PROTECT_REFERENCED;
	} while ((why == HPS_PROTECT_RACE || why == HPS_PROTECT_REFERENCED) &&
		 ++attempt < HPS_ATTEMPTS);
	return why;
}

static enum hps_refusal hps_hold_try(unsigned long addr, size_t len, struct hps_hold **res)
{
	enum hps_refusal why = HPS_PROTECT_BUDGET;
	struct hps_hold *hold;

	if (!current->mm || !len || len > INT_MAX || addr + len + PAGE_SIZE < addr ||
	    !access_ok((void __user *)addr, len))
		return HPS_PROTECT_RANGE;
	hold = hps_hold_alloc(addr, len);
	if (!hold)
		return HPS_PROTECT_NOMEM;
	if (!hps_charge(hps_hold_bytes(hold)))
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

static struct hps_hold *hps_hold_get(unsigned long addr, size_t len, enum hps_refusal *why)
{
	struct hps_hold *hold = NULL;

	*why = hps_hold_try(addr, len, &hold);
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
	*why = hps_protect_why_not();
	if (*why)
		return ERR_PTR(-EOPNOTSUPP);
	return hps_hold_get(addr, len, why);
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
 * Context: process, may sleep.
 */
void hps_protect_release(struct hps_hold *hold, struct hps_released *res)
{
	struct mm_struct *mm = hold->mm;
	bool look, alive;

	*res = (struct hps_released){ .copied = hold->copied };
	hps_put_loose(hold);
	alive = mmget_not_zero(mm);
	look = alive && mmap_read_trylock(mm);
	hps_runs_release(hold, look, res);
	if (look)
		mmap_read_unlock(mm);
	if (alive)
		mmput(mm);
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

/* In the address space of who loads the module. NULL if it works, or what went wrong. */
static const char *hps_selftest(void)
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
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(hps_buckets); i++) {
		spin_lock_init(&hps_buckets[i].lock);
		INIT_HLIST_HEAD(&hps_buckets[i].runs);
	}
	for (i = 0; i < ARRAY_SIZE(hps_mm_locks); i++)
		mutex_init(&hps_mm_locks[i]);
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
