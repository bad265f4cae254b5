/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The inside of page protection, for its own files alone. The others have protect.h.
 *
 *   protect.c           a hold as a whole: which memory may have one, how much of it, why
 *                       not. It owns the words of the refusals, the budget, and whether
 *                       pages can be protected at all. The rules are there.
 *   page_table.c        the page tables that map a hold: what is done to their entries, and to
 *                       the translations that processors have of them. It owns nothing.
 *   page_run.c          the pages of a hold, in runs, and whose references to them are
 *                       known. It owns the buckets that have the runs of all holds.
 *   protect_selftest.c  finds out whether all that works on this machine. It owns nothing.
 *
 * protect.c calls the others, page_table.c calls page_run.c, and that calls none. Only the
 * self-test goes back: it takes and ends holds as others do. What is done for each page, and
 * is short, is in this file.
 */
#ifndef HPS_HOLD_H
#define HPS_HOLD_H

#include <linux/hash.h>
#include <linux/list.h>
#include <linux/mm.h>
#include <linux/spinlock.h>

#include "protect.h"

/* No VMA that has one of these is ordinary memory; compat.h has the newer ones. */
#define HPS_VM_SPECIAL \
	(VM_IO | VM_PFNMAP | VM_MIXEDMAP | HPS_VM_NEWER)

/**
 * struct hps_run - references of one hold to consecutive pages of one folio
 * @node: in hps_bucket.runs
 * @folio: can be neither split nor freed meanwhile
 * @first: the first page
 * @index: of that in hps_hold.pages
 * @nr: how many pages
 * @protected: they are in the state that protect.c describes
 *
 * The pages are mapped at consecutive addresses by one page table; of a small folio there
 * is one. A run is in a bucket as long as it has references.
 */
struct hps_run {
	struct hlist_node node;
	struct folio *folio;
	struct page *first;
	unsigned int index;
	unsigned short nr;
	bool protected;
};

/**
 * struct hps_bucket - runs of folios that have the same hash
 * @lock: guards the list and what is in the runs; their references are got and put under it
 * @runs: of all holds
 */
struct hps_bucket {
	spinlock_t lock;	/* runs */
	struct hlist_head runs;
};

/**
 * struct hps_hold - pages that keep their bytes
 * @mm: where they are mapped. The structure stays, the address space may go
 * @start: the address of the first page
 * @nr_pages: how many pages
 * @nr_runs: how many runs there are of them
 * @copied: pages that are copies, being too new to be protected
 * @absent: some pages were not mapped when it was to be taken
 * @pages: all of them, each referenced
 * @runs: of those that are neither copies nor the zero page, by their addresses
 * @ptes: the entries of the page table at hand, while the hold is taken
 *
 * It belongs to who took it, and has no lock.
 */
struct hps_hold {
	struct mm_struct *mm;
	unsigned long start;
	unsigned int nr_pages;
	unsigned int nr_runs;
	unsigned int copied;
	bool absent;
	struct page **pages;
	struct hps_run *runs;
	pte_t *ptes;
};

static inline unsigned long hps_hold_addr(const struct hps_hold *hold, unsigned int index)
{
	return hold->start + ((unsigned long)index << PAGE_SHIFT);
}

static inline unsigned long hps_run_addr(const struct hps_hold *hold, const struct hps_run *run)
{
	return hps_hold_addr(hold, run->index);
}

/*
 * May pages of this VMA be the program's own? They are anonymous, then; so are those of
 * a private mapping of a file that it has written to.
 */
static inline bool hps_vma_own(struct vm_area_struct *vma)
{
	return vma_is_anonymous(vma) || READ_ONCE(vma->anon_vma);
}

/* 8 runs each, if all of protect_max_kb, as it is by default, is in use by small folios. */
#define HPS_BUCKET_BITS	13

extern struct hps_bucket hps_buckets[1 << HPS_BUCKET_BITS];

/* Where the runs of a folio are, if it has any. */
static inline struct hps_bucket *hps_bucket_of(const struct folio *folio)
{
	return &hps_buckets[hash_ptr(folio, HPS_BUCKET_BITS)];
}

/*
 * Has another run a page that @run has, of the same hold or another? With @protected only one
 * counts whose pages are. The bucket of the folio is locked.
 */
static inline bool hps_held_elsewhere(const struct hps_bucket *bucket,
				      const struct hps_run *run,
				      const struct page *page, bool protected)
{
	const struct hps_run *other;

	lockdep_assert_held(&bucket->lock);
	hlist_for_each_entry(other, &bucket->runs, node)
		if (other != run && other->folio == run->folio &&
		    page >= other->first && page < other->first + other->nr &&
		    /* Pairs with hps_table_protect(). */
		    (!protected || smp_load_acquire(&other->protected)))
			return true;
	return false;
}

/* protect.c */
struct hps_hold *hps_hold_get(unsigned long addr, size_t len, enum hps_refusal *why);

/* page_table.c */
enum hps_refusal hps_tables_take(struct hps_hold *hold);
void hps_tables_release(struct hps_hold *hold, bool look, struct hps_released *res);

/* page_run.c */
void hps_runs_init(void);
enum hps_refusal hps_page_get(struct hps_hold *hold, unsigned int i, struct page *page);
enum hps_refusal hps_pages_copy(struct hps_hold *hold);
enum hps_refusal hps_run_check(const struct hps_run *run);
void hps_run_put(struct hps_bucket *bucket, struct hps_run *run);
void hps_put_loose(struct hps_hold *hold);
bool hps_protected_elsewhere(const struct hps_run *run, const struct page *page);
bool hps_refs_known(const struct hps_bucket *bucket, struct folio *folio);

/* protect_selftest.c */
const char *hps_selftest(void);

#endif /* HPS_HOLD_H */
