// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/lent.c"

#include "fake_link.h"

/* The program lets the sends of a pause go by. */
static void pause_over(struct hps_conn *conn)
{
	while (hps_lent_pauses(conn, HPSOCK_ZCOPY_AUTO))
		;
}

static void hps_lent_went__early(struct kunit *test)
{
	struct hps_conn *conn = &fake_link_start(test)->link->conn;
	static const u32 pauses[] = { 16, 64, 256, 1024, 1024 };
	int i;

	for (i = 0; i < ARRAY_SIZE(pauses); i++) {
		conn->lend_trial = true;
		hps_lent_went(conn, false);
		KUNIT_EXPECT_FALSE(test, conn->lend_proven || conn->lend_trial);
		KUNIT_EXPECT_EQ(test, conn->lend_skip, pauses[i]);
		pause_over(conn);
	}
}

/* What was lent before a pause, and is told of during it, does not make it longer or shorter. */
static void hps_lent_went__pausing(struct kunit *test)
{
	struct hps_conn *conn = &fake_link_start(test)->link->conn;

	hps_lent_went(conn, false);
	hps_lent_went(conn, false);
	hps_lent_went(conn, true);
	KUNIT_EXPECT_EQ(test, conn->lend_skip, 16);
	KUNIT_EXPECT_EQ(test, conn->lend_pause, 16);
}

/* One that goes well makes up for a part of the pause, as long as there is any. */
static void hps_lent_went__well(struct kunit *test)
{
	struct hps_conn *conn = &fake_link_start(test)->link->conn;
	int i;

	for (i = 0; i < 4; i++) {
		hps_lent_went(conn, false);
		pause_over(conn);
	}
	KUNIT_EXPECT_EQ(test, conn->lend_pause, 1024);
	hps_lent_went(conn, true);
	KUNIT_EXPECT_TRUE(test, conn->lend_proven);
	KUNIT_EXPECT_EQ(test, conn->lend_pause, 896);
	for (i = 0; conn->lend_pause; i++)
		hps_lent_went(conn, true);
	KUNIT_EXPECT_LT(test, 30, i);
	KUNIT_EXPECT_LT(test, i, 50);
	KUNIT_EXPECT_EQ(test, conn->lend_skip, 0);
}

/*
 * Where one in thirteen is written to early, the others save more than it costs; where one in
 * seven is, less. What was before does not matter for long.
 */
static void hps_lent_went__share(struct kunit *test)
{
	static const struct {
		u32 of, before, least, most;	/* percent of what is sent is lent */
	} cases[] = {
		{ 20, 0, 50, 60 }, { 20, 4, 50, 60 }, { 13, 0, 25, 60 }, { 13, 4, 25, 60 },
		{ 7, 0, 0, 3 }, { 7, 4, 0, 3 }, { 2, 0, 0, 1 },
	};
	struct hps_conn *conn = &fake_link_start(test)->link->conn;
	u32 i, early, sends, lent;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		conn->lend_pause = 0;
		conn->lend_skip = 0;
		for (early = 0; early < cases[i].before; early++) {
			hps_lent_went(conn, false);
			pause_over(conn);
		}
		for (sends = lent = 0; sends < 10000; sends++)
			if (!hps_lent_pauses(conn, HPSOCK_ZCOPY_AUTO))
				hps_lent_went(conn, ++lent % cases[i].of);
		KUNIT_EXPECT_LE(test, cases[i].least, lent / 100);
		KUNIT_EXPECT_LE(test, lent / 100, cases[i].most);
	}
}

/* Of the first send as much as is worth it, then nothing until it is known how that went. */
static void hps_lent_dares__trial(struct kunit *test)
{
	struct hps_conn *conn = &fake_link_start(test)->link->conn;

	conn->tx_lend_max = 1 << 20;
	conn->tx_bytes = HPS_LENT_YOUNG - 1;
	KUNIT_EXPECT_EQ(test, hps_lent_dares(conn, 1 << 20, 65536), 0);
	conn->tx_bytes++;
	KUNIT_EXPECT_EQ(test, hps_lent_dares(conn, 1 << 20, 65536), 65536);
	conn->lend_trial = true;
	KUNIT_EXPECT_EQ(test, hps_lent_dares(conn, 1 << 20, 65536), 0);
	hps_lent_went(conn, true);
	KUNIT_EXPECT_EQ(test, hps_lent_dares(conn, 1 << 20, 65536), 1 << 20);
	hps_lent_went(conn, false);
	KUNIT_EXPECT_EQ(test, hps_lent_dares(conn, 1 << 20, 65536), 65536);
}

/* Twice the threshold, or all that can be offered at a time. */
static void hps_lent_dares__length(struct kunit *test)
{
	struct hps_conn *conn = &fake_link_start(test)->link->conn;

	conn->tx_lend_max = 1 << 20;
	conn->tx_bytes = HPS_LENT_YOUNG;
	conn->lend_proven = true;
	KUNIT_EXPECT_EQ(test, hps_lent_dares(conn, 131071, 65536), 0);
	KUNIT_EXPECT_EQ(test, hps_lent_dares(conn, 131072, 65536), 131072);
	KUNIT_EXPECT_EQ(test, hps_lent_dares(conn, (1 << 20) - 1, 1 << 20), 0);
	KUNIT_EXPECT_EQ(test, hps_lent_dares(conn, 1 << 20, 1 << 20), 1 << 20);
}

/* zcopy=protect does not pause. */
static void hps_lent_pauses__protect(struct kunit *test)
{
	struct hps_conn *conn = &fake_link_start(test)->link->conn;

	hps_lent_went(conn, false);
	KUNIT_EXPECT_FALSE(test, hps_lent_pauses(conn, HPSOCK_ZCOPY_PROTECT));
	KUNIT_EXPECT_EQ(test, conn->lend_skip, 16);
	KUNIT_EXPECT_TRUE(test, hps_lent_pauses(conn, HPSOCK_ZCOPY_AUTO));
	KUNIT_EXPECT_EQ(test, conn->lend_skip, 15);
}

static struct kunit_case lent_cases[] = {
	KUNIT_CASE(hps_lent_went__early),
	KUNIT_CASE(hps_lent_went__pausing),
	KUNIT_CASE(hps_lent_went__well),
	KUNIT_CASE(hps_lent_went__share),
	KUNIT_CASE(hps_lent_dares__trial),
	KUNIT_CASE(hps_lent_dares__length),
	KUNIT_CASE(hps_lent_pauses__protect),
	{}
};

UNIT_SUITE(lent, lent_cases);
