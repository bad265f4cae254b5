// SPDX-License-Identifier: GPL-2.0
/*
 * Distribution of durations, in buckets that grow with what they count.
 */
#include <err.h>
#include <stdlib.h>

#include "perf.h"

struct hist *hist_new(void)
{
	struct hist *hist = calloc(1, sizeof(*hist));

	if (!hist)
		err(1, "memory");
	hist->min = UINT64_MAX;
	return hist;
}

/* Below HIST_SUB each number has its bucket, above each power of two has so many. */
static unsigned int bucket_of(uint64_t ns)
{
	unsigned int shift;

	if (ns < HIST_SUB)
		return ns;
	shift = 63 - __builtin_clzll(ns) - __builtin_ctz(HIST_SUB);
	return (shift + 1) * HIST_SUB + (ns >> shift) - HIST_SUB;
}

/* The middle of a bucket. */
static double bucket_ns(unsigned int i)
{
	unsigned int shift = i / HIST_SUB;

	if (!shift)
		return i;
	shift--;
	return ((double)(HIST_SUB + i % HIST_SUB) + 0.5) * (1ULL << shift);
}

void hist_add(struct hist *hist, uint64_t ns)
{
	hist->count[bucket_of(ns)]++;
	hist->total++;
	hist->sum += ns;
	if (ns < hist->min)
		hist->min = ns;
	if (ns > hist->max)
		hist->max = ns;
}

void hist_merge(struct hist *to, const struct hist *from)
{
	for (int i = 0; i < HIST_BUCKETS; i++)
		to->count[i] += from->count[i];
	to->total += from->total;
	to->sum += from->sum;
	if (from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
}

/* What @share of the durations, of 1, do not exceed. */
double hist_us(const struct hist *hist, double share)
{
	uint64_t rank = share * hist->total, seen = 0;

	for (int i = 0; i < HIST_BUCKETS; i++) {
		seen += hist->count[i];
		if (seen > rank)
			return bucket_ns(i) < hist->max ? bucket_ns(i) / 1e3 :
							  hist->max / 1e3;
	}
	return hist->max / 1e3;
}
