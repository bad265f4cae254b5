// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/link.c"

#include "fake.h"
#include "fake_link.h"

/* It takes atomics, and Reads that end, which iWARP's do, but for which it has none. */
static void hps_link_swaps__devices(struct kunit *test)
{
	static const struct {
		enum ib_atomic_cap cap;
		bool iwarp;
		bool swaps;
	} cases[] = {
		{ IB_ATOMIC_HCA, false, true },
		{ IB_ATOMIC_GLOB, false, true },
		{ IB_ATOMIC_NONE, false, false },
		{ IB_ATOMIC_HCA, true, false },
	};
	struct fake_link *fake = fake_link(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake->ibdev.attrs.atomic_cap = cases[i].cap;
		fake->link->iwarp = cases[i].iwarp;
		KUNIT_EXPECT_EQ(test, hps_link_swaps(fake->link), cases[i].swaps);
	}
	fake->link->iwarp = false;
	fake->ibdev.attrs.atomic_cap = IB_ATOMIC_HCA;
	fake->ibdev.ops.driver_id = RDMA_DRIVER_RXE;
	KUNIT_EXPECT_EQ(test, hps_link_swaps(fake->link),
			!hps_reads_lost(&fake->ibdev));
}

static struct kunit_case link_cases[] = {
	KUNIT_CASE(hps_link_swaps__devices),
	{}
};

UNIT_SUITE(link, link_cases);
