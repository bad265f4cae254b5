// SPDX-License-Identifier: GPL-2.0
/*
 * Runs of pages: the references of the holds, which are registered so that they can be told
 * from a stranger's. Who else refers to a page may write to it, now or later, and then the
 * page can be neither protected nor given back.
 *
 * The runs of all holds are in buckets, by their folio. The lock of a bucket is the innermost
 * of page protection (protect.c has the order). References are got and put with it held,
 * together with the run: who counts under it sees both or none.
 *
 * Not every page has a run. The zero page never changes, and one that is too new to be
 * protected is replaced by a copy, which nobody else knows. Until it is, who counts takes
 * its reference for a stranger's, which is as well: it would not be protected either.
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
 * the same, that of the references in between is not too low. But while another process
 * splits its mapping of all of a large folio that is counted beside those of its pages, and one
 * reference more may be taken for the kernel's. Such a folio is shared, and so is written to by
 * nobody who did not get it before the fork; and who would make a page writable finds out
 * before that it is not shared.
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
 * On another processor, that is.
 */
static bool hps_waits_elsewhere(struct folio *folio)
{
	if (!hps_is_waiting(folio))
		return false;
	hps_lru_drain(folio);
	return hps_is_waiting(folio);
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

/* The last run, if a page goes on where it ends, or NULL. */
static struct hps_run *hps_run_before(const struct hps_hold *hold, unsigned int i,
				      const struct page *page, const struct folio *folio)
{
	struct hps_run *last;

	if (!hold->nr_runs || !(hps_hold_addr(hold, i) & ~PMD_MASK))
		return NULL;
	last = &hold->runs[hold->nr_runs - 1];
	return last->folio == folio && i == last->index + last->nr &&
	       page == last->first + last->nr ? last : NULL;
}

/* Get a reference to a page, which is in a run as soon as it can be counted. */
static void hps_run_get(struct hps_hold *hold, unsigned int i, struct page *page,
			struct folio *folio)
{
	struct hps_bucket *bucket = hps_bucket_of(folio);
	struct hps_run *run = hps_run_before(hold, i, page, folio);

	spin_lock(&bucket->lock);
	if (run) {
		run->nr++;
	} else {
		run = &hold->runs[hold->nr_runs++];
		run->folio = folio;
		run->first = page;
		run->index = i;
		run->nr = 1;
		run->protected = false;
		hlist_add_head(&run->node, &bucket->runs);
	}
	folio_get(folio);
	spin_unlock(&bucket->lock);
}

/**
 * hps_page_get - get a reference to a page for a hold
 * @hold: has the references to the pages before
 * @i: the number of the page in it
 * @page: mapped there
 *
 * Neither the zero page gets into a run, nor one that hps_pages_copy() has to replace.
 *
 * Context: process; the page table is locked.
 * Return: HPS_PROTECT_OK; or why the page cannot be protected, then it has no reference.
 */
enum hps_refusal hps_page_get(struct hps_hold *hold, unsigned int i, struct page *page)
{
	struct folio *folio = page_folio(page);
	enum hps_refusal why;

	why = hps_page_check(page, folio);
	if (why)
		return why;
	hold->pages[i] = page;
	if (!folio_test_anon(folio) || hps_waits_elsewhere(folio))
		get_page(page);
	else
		hps_run_get(hold, i, page, folio);
	return HPS_PROTECT_OK;
}

/* The next page from @i on that is in no run; @run is told which runs are before it. */
static unsigned int hps_next_loose(const struct hps_hold *hold, const struct hps_run **run,
				   unsigned int i)
{
	const struct hps_run *end = hold->runs + hold->nr_runs;

	for (; *run < end && i == (*run)->index; (*run)++)
		i += (*run)->nr;
	return i;
}

/**
 * hps_pages_copy - replace the pages that are too new to be protected
 * @hold: has references to all its pages
 *
 * They wait in lists of other processors, and are few. A copy keeps the bytes as well.
 *
 * Context: process, may sleep; mmap_lock may be held.
 * Return: HPS_PROTECT_OK or HPS_PROTECT_NOMEM.
 */
enum hps_refusal hps_pages_copy(struct hps_hold *hold)
{
	const struct hps_run *run = hold->runs;
	unsigned int i = 0;
	struct page *copy;

	while ((i = hps_next_loose(hold, &run, i)) < hold->nr_pages) {
		struct page *page = hold->pages[i];

		if (PageAnon(page)) {
			copy = alloc_page(GFP_KERNEL_ACCOUNT);
			if (!copy)
				return HPS_PROTECT_NOMEM;
			copy_highpage(copy, page);
			hold->pages[i] = copy;
			hold->copied++;
			put_page(page);
		}
		i++;
	}
	return HPS_PROTECT_OK;
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
 * @hold: still has its runs; it may lack pages
 *
 * Context: any.
 */
void hps_put_loose(struct hps_hold *hold)
{
	const struct hps_run *run = hold->runs;
	unsigned int i = 0;

	while ((i = hps_next_loose(hold, &run, i)) < hold->nr_pages) {
		if (hold->pages[i])
			put_page(hold->pages[i]);
		i++;
	}
}

#endif /* HPS_PROTECT_WORKS */
