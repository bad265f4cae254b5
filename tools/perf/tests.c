// SPDX-License-Identifier: GPL-2.0
/*
 * The tests there are.
 */
#include <string.h>

#include "perf.h"

static const struct test *const tests[] = {
	&test_lat, &test_bw, &test_bibw, &test_rate,
	&test_hotspot, &test_fanin, &test_fanout, &test_mem,
	NULL
};

const struct test *test_named(const char *name)
{
	const struct test *const *test = tests;

	while (*test && strcmp((*test)->name, name))
		test++;
	return *test;
}

const struct test *test_numbered(uint32_t id)
{
	const struct test *const *test = tests;

	while (*test && (*test)->id != id)
		test++;
	return *test;
}
