// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/credit.c"

/* Totals wrap around: near the end of their range all must hold as well. */
#define FAR	(U32_MAX - 1)

static void hps_credit_granted__more(struct kunit *test)
{
	struct hps_credit credit = { .tx_granted = 3, .tx_used = 2, .tx_max = 4 };

	KUNIT_EXPECT_EQ(test, hps_credit_granted(&credit, 6), 0);
	KUNIT_EXPECT_EQ(test, credit.tx_granted, 6);
	KUNIT_EXPECT_EQ(test, hps_credit_left(&credit), 4);
}

static void hps_credit_granted__said_again(struct kunit *test)
{
	struct hps_credit credit = { .tx_granted = 3, .tx_used = 2, .tx_max = 4 };

	KUNIT_EXPECT_EQ(test, hps_credit_granted(&credit, 3), 0);
	KUNIT_EXPECT_EQ(test, hps_credit_left(&credit), 1);
}

static void hps_credit_granted__taken_back(struct kunit *test)
{
	struct hps_credit credit = { .tx_granted = 3, .tx_used = 0, .tx_max = 4 };

	KUNIT_EXPECT_EQ(test, hps_credit_granted(&credit, 2), -EPROTO);
	KUNIT_EXPECT_EQ(test, credit.tx_granted, 3);
}

static void hps_credit_granted__beyond_window(struct kunit *test)
{
	struct hps_credit credit = { .tx_granted = 3, .tx_used = 2, .tx_max = 4 };

	KUNIT_EXPECT_EQ(test, hps_credit_granted(&credit, 7), -EPROTO);
	KUNIT_EXPECT_EQ(test, credit.tx_granted, 3);
}

static void hps_credit_granted__wraps(struct kunit *test)
{
	struct hps_credit credit = { .tx_granted = FAR, .tx_used = FAR, .tx_max = 4 };

	KUNIT_EXPECT_EQ(test, hps_credit_granted(&credit, 2), 0);
	KUNIT_EXPECT_EQ(test, hps_credit_left(&credit), 4);
	KUNIT_EXPECT_EQ(test, hps_credit_granted(&credit, FAR), -EPROTO);
	KUNIT_EXPECT_EQ(test, hps_credit_granted(&credit, 3), -EPROTO);
}

static void hps_credit_received__no_credit(struct kunit *test)
{
	struct hps_credit credit = { .rx_told = FAR, .rx_used = FAR };

	KUNIT_EXPECT_EQ(test, hps_credit_received(&credit), -EPROTO);
	KUNIT_EXPECT_EQ(test, credit.rx_used, FAR);
}

static void hps_credit_received__some_left(struct kunit *test)
{
	struct hps_credit credit = { .rx_told = 2 };

	KUNIT_EXPECT_EQ(test, hps_credit_received(&credit), 0);
	KUNIT_EXPECT_EQ(test, credit.rx_used, 1);
	KUNIT_EXPECT_FALSE(test, credit.dry);
}

static void hps_credit_received__last(struct kunit *test)
{
	struct hps_credit credit = { .rx_told = 0, .rx_used = U32_MAX };

	KUNIT_EXPECT_EQ(test, hps_credit_received(&credit), 0);
	KUNIT_EXPECT_EQ(test, credit.rx_used, 0);
	KUNIT_EXPECT_TRUE(test, credit.dry);
}

/* It is no reason to grow. */
static void hps_credit_spent__last(struct kunit *test)
{
	struct hps_credit credit = { .rx_told = 1 };

	KUNIT_EXPECT_EQ(test, hps_credit_spent(&credit), 0);
	KUNIT_EXPECT_EQ(test, credit.rx_used, 1);
	KUNIT_EXPECT_FALSE(test, credit.dry);
	KUNIT_EXPECT_EQ(test, hps_credit_spent(&credit), -EPROTO);
	KUNIT_EXPECT_EQ(test, credit.rx_used, 1);
}

static void hps_credit_dry__cases(struct kunit *test)
{
	struct hps_credit credit = { .rx_told = 3, .rx_used = 2 };

	KUNIT_EXPECT_FALSE(test, hps_credit_dry(&credit));
	credit.rx_used = 3;
	KUNIT_EXPECT_TRUE(test, hps_credit_dry(&credit));
	/* What it was not told of it cannot use. */
	credit.rx_ready = 9;
	KUNIT_EXPECT_TRUE(test, hps_credit_dry(&credit));
}

static void hps_credit_tight__half(struct kunit *test)
{
	struct hps_credit credit = { .window = 8, .rx_told = 2, .rx_used = -3 };

	KUNIT_EXPECT_FALSE(test, hps_credit_tight(&credit));
	credit.rx_used++;
	KUNIT_EXPECT_TRUE(test, hps_credit_tight(&credit));
}

static void hps_credit_due__nothing_owed(struct kunit *test)
{
	struct hps_credit credit = { .window = 4, .rx_ready = 4, .rx_told = 4,
				     .rx_used = 4 };

	KUNIT_EXPECT_FALSE(test, hps_credit_due(&credit, false));
}

static void hps_credit_due__half_owed(struct kunit *test)
{
	/* Of an odd window the larger half. */
	struct hps_credit credit = { .window = 5, .rx_ready = 2, .rx_told = 0 };

	KUNIT_EXPECT_FALSE(test, hps_credit_due(&credit, true));
	credit.rx_ready = 3;
	KUNIT_EXPECT_TRUE(test, hps_credit_due(&credit, true));
	credit.rx_told = FAR;
	credit.rx_ready = 0;
	KUNIT_EXPECT_FALSE(test, hps_credit_due(&credit, true));
	credit.rx_ready = 1;
	KUNIT_EXPECT_TRUE(test, hps_credit_due(&credit, true));
}

static void hps_credit_due__dry(struct kunit *test)
{
	struct hps_credit credit = { .window = 8, .rx_ready = 5, .rx_told = 4,
				     .rx_used = 4 };

	KUNIT_EXPECT_TRUE(test, hps_credit_due(&credit, false));
	KUNIT_EXPECT_FALSE(test, hps_credit_due(&credit, true));
	credit.rx_used = 3;
	KUNIT_EXPECT_FALSE(test, hps_credit_due(&credit, false));
}

static void hps_credit_late__cases(struct kunit *test)
{
	struct hps_credit credit = { .window = 8, .rx_ready = 5, .rx_told = 4,
				     .rx_used = 4 };

	KUNIT_EXPECT_TRUE(test, hps_credit_late(&credit));
	credit.rx_used = 3;
	KUNIT_EXPECT_FALSE(test, hps_credit_late(&credit));
	credit.rx_used = 4;
	credit.rx_ready = 4;
	KUNIT_EXPECT_FALSE(test, hps_credit_late(&credit));
}

static void hps_credit_tell__all(struct kunit *test)
{
	struct hps_credit credit = { .rx_ready = 5, .rx_told = 2 };

	KUNIT_EXPECT_EQ(test, hps_credit_tell(&credit), 5);
	KUNIT_EXPECT_EQ(test, credit.rx_told, 5);
	KUNIT_EXPECT_EQ(test, hps_credit_tell(&credit), 5);
}

/* Half of what there was after the last grant is used, and that was enough to matter. */
static void hps_credit_behind__half(struct kunit *test)
{
	struct hps_credit credit = {};

	hps_credit_hello(&credit, 4, 32);
	credit.tx_used = 4;
	KUNIT_EXPECT_FALSE(test, hps_credit_behind(&credit, 8));
	KUNIT_EXPECT_EQ(test, hps_credit_granted(&credit, 20), 0);
	credit.tx_used += 7;
	KUNIT_EXPECT_FALSE(test, hps_credit_behind(&credit, 8));
	credit.tx_used++;
	KUNIT_EXPECT_TRUE(test, hps_credit_behind(&credit, 8));
	/* It says so again. */
	KUNIT_EXPECT_EQ(test, hps_credit_granted(&credit, 20), 0);
	KUNIT_EXPECT_TRUE(test, hps_credit_behind(&credit, 8));
	KUNIT_EXPECT_EQ(test, hps_credit_granted(&credit, 28), 0);
	KUNIT_EXPECT_FALSE(test, hps_credit_behind(&credit, 8));
}

static struct kunit_case credit_cases[] = {
	KUNIT_CASE(hps_credit_behind__half),
	KUNIT_CASE(hps_credit_granted__more),
	KUNIT_CASE(hps_credit_granted__said_again),
	KUNIT_CASE(hps_credit_granted__taken_back),
	KUNIT_CASE(hps_credit_granted__beyond_window),
	KUNIT_CASE(hps_credit_granted__wraps),
	KUNIT_CASE(hps_credit_received__no_credit),
	KUNIT_CASE(hps_credit_received__some_left),
	KUNIT_CASE(hps_credit_received__last),
	KUNIT_CASE(hps_credit_spent__last),
	KUNIT_CASE(hps_credit_dry__cases),
	KUNIT_CASE(hps_credit_tight__half),
	KUNIT_CASE(hps_credit_due__nothing_owed),
	KUNIT_CASE(hps_credit_due__half_owed),
	KUNIT_CASE(hps_credit_due__dry),
	KUNIT_CASE(hps_credit_late__cases),
	KUNIT_CASE(hps_credit_tell__all),
	{}
};

UNIT_SUITE(credit, credit_cases);
