// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/key.c"

/* What the mapping for a device may have made of three pieces. */
struct hps_key_case {
	u64 addr[3];
	u32 len[3];
	bool fits;
};

/* A key covers pages, so that only the ends of what it covers may lie within one. */
static void hps_key__fits(struct kunit *test)
{
	static const struct hps_key_case cases[] = {
		{ { 0x1000, 0x5000, 0x9000 }, { 0x1000, 0x2000, 0x1000 }, true },
		{ { 0x1100, 0x5000, 0x9000 }, { 0xf00, 0x1000, 0x10 }, true },
		/* Copied, and none is where it was in its page. */
		{ { 0x1000, 0x5000, 0x9000 }, { 0xf00, 0x1000, 0x10 }, false },
		{ { 0x1100, 0x5000, 0x9800 }, { 0xf00, 0x1000, 0x10 }, false },
		{ { 0x1100, 0x5800, 0x9000 }, { 0xf00, 0x800, 0x10 }, false },
		{ { 0x1100, 0x5000, 0x9000 }, { 0xf00, 0x800, 0x10 }, false },
	};
	struct scatterlist sgl[3];
	struct sg_table sgt = { .sgl = sgl, .nents = 3, .orig_nents = 3 };
	int i, j;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		sg_init_table(sgl, 3);
		for (j = 0; j < 3; j++) {
			sg_dma_address(&sgl[j]) = cases[i].addr[j];
			sg_dma_len(&sgl[j]) = cases[i].len[j];
		}
		KUNIT_EXPECT_EQ_MSG(test, hps_key_fits(&sgt), cases[i].fits, "case %d", i);
	}
	sgt.nents = 1;
	sg_dma_address(&sgl[0]) = 0x1801;
	sg_dma_len(&sgl[0]) = 3;
	KUNIT_EXPECT_TRUE(test, hps_key_fits(&sgt));
}

static struct kunit_case key_cases[] = {
	KUNIT_CASE(hps_key__fits),
	{}
};

UNIT_SUITE(key, key_cases);
