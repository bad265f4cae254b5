// SPDX-License-Identifier: GPL-2.0
/*
 * Runs of pages: the references of the holds, which are registered so that they can be told
 * from a stranger's. Who else refers to a page may write to it, now or later, and then the
 * page can be neither protected nor given back.
 *
 * The runs of all holds are in buckets, by their folio. The lock of a bucket is the innermost
 * of page protection (protect.c has the order). References are got without it and registered
 * after; they are put with it held, together with the run: who counts under it may
 * take one of ours for a stranger's, but never the other way round.
 *
 * Not every page has a run. The zero page never changes, and one that is too new to be
 * protected is replaced by a copy, which nobody else knows.
 */
#include <linux/highmem.h>

#include "compat.h"
#include "hold.h"

#ifdef HPS_PROTECT_WORKS

struct hps_bucket hps_buckets[1 << HPS_BUCKET_BITS];

/**
 * hps_runs_init - prepare the buckets
 *
 * Context: before the first hold.
 */
void hps_runs_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(hps_buckets); i++) {
		spin_lock_init(&hps_buckets[i].lock);
		INIT_HLIST_HEAD(&hps_buckets[i].runs);
	}
}

/**
 * hps_protected_elsewhere - has another run protected a page?
 * @run: which has it
 * @page: the page
 *
 * If so, it is read-only in every page table: for pages that are writable in one this need
 * not be asked.
 *
 * Context: any; the bucket is not locked.
 * Return: whether one has.
 */
bool hps_protected_elsewhere(const struct hps_run *run, const struct page *page)
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

/**
 * hps_refs_known - are the kernel's and the holds' all references to a folio?
 * @bucket: that of the folio
 * @folio: which the caller has a reference to
 *
 * The kernel's may come and go meanwhile, by page tables that are not locked. It takes
 * a reference before it counts it as a mapping, and puts it after: if both counts of these are
 * the same, that of the references in between is not too low.
 *
 * Context: any; the bucket is locked.
 * Return: whether they are.
 */
bool hps_refs_known(const struct hps_bucket *bucket, struct folio *folio)
{
	const struct hps_run *run;
	int known = 0, before, refs;

	lockdep_assert_held(&bucket->lock);
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

/**
 * hps_run_check - has nobody but us and the page tables the pages of a run?
 * @run: registered, and unmapped where its pages are to be protected
 *
 * Context: any; the bucket is not locked.
 * Return: HPS_PROTECT_OK, or who has.
 */
enum hps_refusal hps_run_check(const struct hps_run *run)
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
	if (run && run->folio == folio && hold->pages[i] == run->first + run->nr &&
	    hps_hold_addr(hold, i) & ~PMD_MASK) {
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

/**
 * hps_runs_make - part the pages of a hold into runs
 * @hold: has its pages, each referenced
 *
 * Neither the zero page gets into one nor a copy.
 *
 * Context: process, may sleep.
 * Return: HPS_PROTECT_OK; or why a page cannot be protected, then there are no runs.
 */
enum hps_refusal hps_runs_make(struct hps_hold *hold)
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

/**
 * hps_runs_register - let the references of a hold be known
 * @hold: has its runs, none of them registered
 *
 * Context: process.
 */
void hps_runs_register(struct hps_hold *hold)
{
	struct hps_run *run;

	for (run = hold->runs; run < hold->runs + hold->nr_runs; run++) {
		struct hps_bucket *bucket = hps_bucket_of(run->folio);

		spin_lock(&bucket->lock);
		hlist_add_head(&run->node, &bucket->runs);
		spin_unlock(&bucket->lock);
	}
}

/**
 * hps_run_put - put the references of a run
 * @bucket: that of its folio
 * @run: registered until now, and as long as they are there
 *
 * Context: any; the bucket is locked.
 */
void hps_run_put(struct hps_bucket *bucket, struct hps_run *run)
{
	lockdep_assert_held(&bucket->lock);
	hlist_del(&run->node);
	folio_put_refs(run->folio, run->nr);
}

/**
 * hps_put_loose - put the references to pages that have no run
 * @hold: still has its runs
 *
 * Context: any.
 */
void hps_put_loose(struct hps_hold *hold)
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

#endif /* HPS_PROTECT_WORKS */
