// SPDX-License-Identifier: GPL-2.0
/*
 * The page tables that map a hold: pages are got from them, protected in them and made
 * writable again, while mmap_lock is held for reading. There is no state here: a table is
 * locked from its first entry to its last, and what has to be kept meanwhile is in the hold.
 * Inside that lock are those of a folio, which is only tried, and of a bucket (page_run.c).
 *
 * Translations that are cached. From when the PTEs are cleared until the references are
 * checked no processor may be able to write through an old translation. __flush_tlb_all()
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
 *     read-only. A fault meanwhile waits for the lock and finds that it changed; in a
 *     private mapping of a file it reads the file's page before, as one does that meets
 *     try_to_unmap() there.
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
 * off for a lock that we hold. Those are mmap_lock and page table locks, neither of
 * which is ever taken with interrupts off; no bucket is locked across it.
 */
#include <linux/bitmap.h>
#include <linux/pagemap.h>
#include <linux/pgtable.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/userfaultfd_k.h>
#include <asm/tlbflush.h>

#include "compat.h"
#include "hold.h"

#ifdef HPS_PROTECT_WORKS

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

/*
 * A page is not mapped. What the program wrote can be brought in, and its memory that it never
 * touched; a file's page would be refused, and who has the file might never give it. @vma is
 * where the page before was, or NULL.
 */
static enum hps_refusal hps_absent(struct hps_hold *hold, unsigned int i, pte_t pte,
				   struct vm_area_struct **vma)
{
	unsigned long addr = hps_hold_addr(hold, i);

	if (!*vma || addr >= (*vma)->vm_end)
		*vma = find_vma(hold->mm, addr);
	if (pte_none(pte) && !vma_is_anonymous(*vma))
		return HPS_PROTECT_FILE;
	hold->absent = true;
	return HPS_PROTECT_OK;
}

static void hps_flush_local(void *unused)
{
	__flush_tlb_all();
}

/* The PTE of the page @i of a run, as it was put aside; none if it needs nothing. */
static pte_t *hps_saved(const struct hps_hold *hold, const struct hps_run *begin,
			const struct hps_run *run, unsigned int i)
{
	return &hold->ptes[run->index - begin->index + i];
}

/*
 * Put aside and clear the PTEs of the pages that need it, and remember in @exclusive which of
 * them the program had for itself. Returns how many they are; of the others none is put aside.
 */
static unsigned int hps_table_clear(const struct hps_hold *hold, const struct hps_run *begin,
				    const struct hps_run *end, pte_t *table,
				    unsigned long *exclusive)
{
	unsigned long addr = hps_run_addr(hold, begin);
	const struct hps_run *run;
	unsigned int i, at, need = 0;

	for (run = begin; run < end; run++)
		for (i = 0; i < run->nr; i++) {
			struct page *page = run->first + i;

			at = run->index - begin->index + i;
			hold->ptes[at] = __pte(0);
			if (!pte_write(ptep_get(table + at)) &&
			    hps_protected_elsewhere(run, page))
				continue;
			/* Read once more, for the dirty bit is the processor's. */
			hold->ptes[at] = ptep_get_and_clear(hold->mm, addr + at * PAGE_SIZE,
							    table + at);
			if (PageAnonExclusive(page))
				__set_bit(at, exclusive);
			need++;
		}
	return need;
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

/* Protect the pages of the runs; @table has the entry of the first, and is locked. */
static enum hps_refusal hps_table_protect(const struct hps_hold *hold, struct hps_run *begin,
					  struct hps_run *end, pte_t *table)
{
	DECLARE_BITMAP(exclusive, PTRS_PER_PTE) = {};
	unsigned int need = hps_table_clear(hold, begin, end, table, exclusive);
	enum hps_refusal why = HPS_PROTECT_OK;
	struct hps_run *run;

	if (need)
		on_each_cpu(hps_flush_local, NULL, 1);
	for (run = begin; need && !why && run < end; run++)
		why = hps_run_check(run) ?: hps_run_share(hold, begin, run);
	if (need)
		hps_table_set(hold, begin, end, table, exclusive, !why);
	for (run = begin; !why && run < end; run++)
		/* After the PTEs: pairs with hps_held_elsewhere(), under another lock. */
		smp_store_release(&run->protected, true);
	return why;
}

/* Get references to those pages of the range that a page table, which is locked, maps now. */
static enum hps_refusal hps_table_get(struct hps_hold *hold, unsigned int from, unsigned int to,
				      pte_t *table)
{
	struct vm_area_struct *vma = NULL;
	enum hps_refusal why = HPS_PROTECT_OK;

	for (; !why && from < to; from++) {
		pte_t pte = table ? ptep_get(table++) : __pte(0);

		/* What is special in an ordinary VMA is the zero page. */
		if (!pte_present(pte))
			why = hps_absent(hold, from, pte, &vma);
		else if (pte_special(pte) && !is_zero_pfn(pte_pfn(pte)))
			why = HPS_PROTECT_IO;
		else
			why = hps_page_get(hold, from, pte_page(pte));
	}
	return why;
}

/*
 * Get and protect the pages of the range, which are those of one page table; only get them if
 * it is in vain because some are absent. In between nobody can map others there.
 */
static enum hps_refusal hps_table_take(struct hps_hold *hold, unsigned int from, unsigned int to)
{
	unsigned int nr = hold->nr_runs;
	struct hps_run *begin = hold->runs + nr;
	enum hps_refusal why;
	spinlock_t *ptl;	/* of the page table */
	pte_t *table;

	table = hps_table_lock(hold->mm, hps_hold_addr(hold, from), &ptl);
	why = hps_table_get(hold, from, to, table);
	if (!why && !hold->absent && hold->nr_runs > nr)
		why = hps_table_protect(hold, begin, hold->runs + hold->nr_runs,
					table + (begin->index - from));
	hps_table_unlock(ptl);
	return why;
}

/**
 * hps_tables_take - get references to the pages of a hold, and protect them
 * @hold: whose range consists of VMAs with memory of the program's own; it has no pages yet
 *
 * hps_hold.pages gets those that are mapped now, and NULL in the place of the others.
 *
 * Context: process, may sleep; mmap_lock is held.
 * Return: HPS_PROTECT_OK, or why not: HPS_PROTECT_RACE and hps_hold.absent if some have to be
 * faulted in. What was got until then has references, and may be protected, until
 * hps_put_loose() and hps_tables_release().
 */
enum hps_refusal hps_tables_take(struct hps_hold *hold)
{
	enum hps_refusal why = HPS_PROTECT_OK;
	unsigned int i, end;

	hold->nr_runs = 0;
	hold->copied = 0;
	hold->absent = false;
	memset(hold->pages, 0, hold->nr_pages * sizeof(*hold->pages));
	for (i = 0; !why && i < hold->nr_pages; i = end) {
		unsigned long addr = hps_hold_addr(hold, i);
		unsigned long left = (pmd_addr_end(addr, ULONG_MAX) - addr) >> PAGE_SHIFT;

		end = min_t(unsigned long, hold->nr_pages, i + left);
		why = hps_table_take(hold, i, end);
		cond_resched();
	}
	return why ?: hold->absent ? HPS_PROTECT_RACE : HPS_PROTECT_OK;
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

/* Which pages of a run, whose folio and page table are locked, does nobody else map? */
static void hps_run_mapped_once(const struct hps_run *run, pte_t *table, unsigned long addr,
				unsigned long *once)
{
	unsigned int i;

	bitmap_zero(once, run->nr);
	for (i = 0; i < run->nr; i++, addr += PAGE_SIZE) {
		struct page *page = run->first + i;

		if (hps_maps(ptep_get(table + pte_index(addr)), page) &&
		    hps_mapped_once(run->folio, page))
			__set_bit(i, once);
	}
}

/*
 * Has nobody a reference to a folio who could come to see what is written to the pages of
 * @run that are in @once? The bucket is locked, and what hps_run_mapped_once() wants.
 */
static bool hps_run_sole(const struct hps_bucket *bucket, const struct hps_run *run,
			 pte_t *table, unsigned long addr, unsigned long *once)
{
	struct folio *folio = run->folio;

	/* Where it has to stay as it is, who else has it does not matter. */
	if (!folio_test_large(folio) && hps_held_elsewhere(bucket, run, run->first, false))
		return false;
	if (folio_test_swapcache(folio) || folio_test_ksm(folio))
		return false;
	hps_run_mapped_once(run, table, addr, once);
	/*
	 * Another process may get a reference by its mapping and then unmap: who finds it
	 * unmapped finds the reference, too. It is the program alone that could share these
	 * pages anew, and its page table is locked.
	 */
	smp_rmb();
	return hps_refs_known(bucket, folio);
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
	DECLARE_BITMAP(once, PTRS_PER_PTE);
	bool locked, sole = false;
	unsigned int i;

	locked = table && folio_trylock(folio);
	spin_lock(&bucket->lock);
	if (locked)
		sole = hps_run_sole(bucket, run, table, addr, once);
	for (i = 0; table && i < run->nr; i++, addr += PAGE_SIZE) {
		struct page *page = run->first + i;
		pte_t *ptep = table + pte_index(addr);
		pte_t pte = ptep_get(ptep);

		if (!hps_maps(pte, page)) {
			/* An entry of swap or migration is not the program's doing. */
			res->early += pte_present(pte) || pte_none(pte);
			continue;
		}
		if (!sole || !test_bit(i, once) || pte_write(pte) || PageAnonExclusive(page) ||
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
	if (locked)
		folio_unlock(folio);
	hps_run_put(bucket, run);
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

/**
 * hps_tables_release - let go of all runs of a hold
 * @hold: which has none afterwards
 * @look: see what became of the pages, and make them writable again where that is possible
 * @res: counts them
 *
 * Context: process, may sleep; with @look, mmap_lock is held.
 */
void hps_tables_release(struct hps_hold *hold, bool look, struct hps_released *res)
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

#endif /* HPS_PROTECT_WORKS */
