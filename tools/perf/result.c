// SPDX-License-Identifier: GPL-2.0
/*
 * A result: a line of a table, an object of JSON, or a number.
 */
#include <stdio.h>
#include <string.h>

#include "perf.h"

static const struct {
	const char *name;
	double share;
} percentiles[] = {
	{ "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "p999", 0.999 },
};

static uint64_t messages(const struct run *run)
{
	return run->count * run->conns;
}

void cost_of(const struct run *run, struct cost *cost)
{
	cost->cpu = run->end.cpu - run->begin.cpu;
	cost->busy = busy_ns(&run->begin, &run->end);
	cost->memory = run->begin.memory > run->end.memory ?
		       run->begin.memory - run->end.memory : 0;
}

/* us a message */
static double each_us(const struct run *run, uint64_t ns)
{
	return ns / 1e3 / messages(run);
}

static void print_json(const struct run *run, const struct cost *own,
		       const struct cost *peer)
{
	printf("{\"test\":\"%s\",\"family\":\"%s\",\"bytes\":%u,\"connections\":%u,"
	       "\"messages\":%llu,\"seconds\":%.6f,\"value\":%.3f,\"unit\":\"%s\"",
	       run->test->name, opt.family_name, run->size, run->conns,
	       (unsigned long long)messages(run), seconds(run),
	       run->test->value(run), run->test->unit);
	printf(",\"cpu_us\":%.4f,\"peer_cpu_us\":%.4f,\"busy_us\":%.4f,\"peer_busy_us\":%.4f",
	       each_us(run, own->cpu), each_us(run, peer->cpu),
	       each_us(run, own->busy), each_us(run, peer->busy));
	printf(",\"cpu_ns_per_byte\":%.4f,\"peer_cpu_ns_per_byte\":%.4f,\"busy_ns_per_byte\":%.4f",
	       each_us(run, own->cpu) * 1e3 / run->size,
	       each_us(run, peer->cpu) * 1e3 / run->size,
	       each_us(run, own->busy) * 1e3 / run->size);
	if (run->test == &test_mem)
		printf(",\"peer_memory\":%.0f,\"module_memory\":%.0f",
		       (double)peer->memory / run->conns,
		       ((double)run->end.module - run->begin.module) / run->conns);
	if (run->hist) {
		printf(",\"latency_us\":{\"min\":%.2f", run->hist->min / 1e3);
		for (size_t i = 0; i < sizeof(percentiles) / sizeof(*percentiles); i++)
			printf(",\"%s\":%.2f", percentiles[i].name,
			       hist_us(run->hist, percentiles[i].share));
		printf(",\"max\":%.2f}", run->hist->max / 1e3);
	}
	puts("}");
}

static void print_table(const struct run *run, const struct cost *own,
			const struct cost *peer)
{
	static bool headed;

	if (!headed)
		printf("%-8s %-8s %8s %6s %9s | %12s %-6s | %8s %8s %8s%s\n", "test",
		       "family", "bytes", "conns", run->test->count ? "count" : "messages",
		       "result", "", "cpu us", "peer us", "busy us", run->hist ?
		       " |      min      p50      p90      p99     p999      max" : "");
	headed = true;
	printf("%-8s %-8s %8u %6u %9llu | %12.2f %-6s | %8.2f %8.2f %8.2f",
	       run->test->name, opt.family_name, run->size, run->conns,
	       (unsigned long long)messages(run), run->test->value(run),
	       run->test->unit, each_us(run, own->cpu), each_us(run, peer->cpu),
	       each_us(run, own->busy));
	if (run->hist) {
		printf(" | %8.1f", run->hist->min / 1e3);
		for (size_t i = 0; i < sizeof(percentiles) / sizeof(*percentiles); i++)
			printf(" %8.1f", hist_us(run->hist, percentiles[i].share));
		printf(" %8.1f", run->hist->max / 1e3);
	}
	putchar('\n');
}

void print_result(const struct run *run, const struct cost *peer)
{
	struct cost own;

	cost_of(run, &own);
	if (opt.json)
		print_json(run, &own, peer);
	else if (opt.quiet)
		printf("%.2f\n", run->test->value(run));
	else
		print_table(run, &own, peer);
	fflush(stdout);
}
