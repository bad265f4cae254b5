// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/recv.c"

#include "fake.h"

/* MSG_PEEK goes on where it was, or where others have read to. */
static void hps_recv_offset__others_read(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_reader peek = { .flags = MSG_PEEK, .off = 3 }, other = {};

	KUNIT_EXPECT_EQ(test, hps_recv_offset(&fake->conn, &peek), 3);
	fake->conn.rx_read += 2;
	KUNIT_EXPECT_EQ(test, hps_recv_offset(&fake->conn, &peek), 1);
	/* As when an urgent byte is superseded */
	fake->conn.rx_drop++;
	KUNIT_EXPECT_EQ(test, hps_recv_offset(&fake->conn, &peek), 0);
	fake->conn.rx_read += 5;
	KUNIT_EXPECT_EQ(test, hps_recv_offset(&fake->conn, &peek), 0);
	KUNIT_EXPECT_EQ(test, hps_recv_offset(&fake->conn, &other), 0);
	fake_end(fake);
}

/* What is read next is the urgent byte, also when that is another than a moment before. */
static void hps_recv_at_mark__moved(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_reader peek = { .flags = MSG_PEEK, .off = 1 };

	fake->conn.rx_urgent = HPS_URGENT_AHEAD;
	fake->conn.rx_urgent_at = 2;
	fake->conn.rx_drop = 1;
	KUNIT_EXPECT_FALSE(test, hps_recv_at_mark(&fake->conn, &peek));
	peek.off = 1;
	KUNIT_EXPECT_TRUE(test, hps_recv_at_mark(&fake->conn, &peek));
	fake_end(fake);
}

static struct kunit_case recv_cases[] = {
	KUNIT_CASE(hps_recv_offset__others_read),
	KUNIT_CASE(hps_recv_at_mark__moved),
	{}
};

UNIT_SUITE(recv, recv_cases);
