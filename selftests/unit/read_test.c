// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/read.c"

#include "fake_link.h"

/*
 * The program has parted the connection from its socket, whose reader was about to read, and
 * the peer has taken back what that would have read.
 */
static void hps_read__parted(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_receive *gone = kmalloc(sizeof(*gone), GFP_KERNEL);
	struct page *page = alloc_page(GFP_KERNEL);
	struct hps_pages sink = { .pages = &page, .nr = 1, .len = 1000 };

	KUNIT_ASSERT_NOT_NULL(test, gone);
	KUNIT_ASSERT_NOT_NULL(test, page);
	KUNIT_EXPECT_NULL(test, link->conn.sk);
	kfree(gone);
	KUNIT_EXPECT_EQ(test, hps_read(&link->conn, &gone->dma.buf, &sink), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, atomic_read(&link->users), 0);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	__free_page(page);
}

/* Also of what was sent before, as the device does all in turn. */
static void hps_read_done__moved(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_conn *conn = &fake->link->conn;
	struct hps_reads *reads = kunit_kzalloc(test, sizeof(*reads), GFP_KERNEL);
	struct ib_wc wc = { .status = IB_WC_LOC_PROT_ERR };

	KUNIT_ASSERT_NOT_NULL(test, reads);
	reads->link = fake->link;
	reads->want = 2;
	reads->read[0].all = reads;
	init_completion(&reads->some);
	wc.wr_cqe = &reads->read[0].cqe;
	fake->link->reading = 2;
	conn->tx_late = true;
	hps_read_done(NULL, &wc);
	KUNIT_EXPECT_TRUE(test, conn->tx_late);
	wc.status = IB_WC_SUCCESS;
	hps_read_done(NULL, &wc);
	KUNIT_EXPECT_FALSE(test, conn->tx_late);
	KUNIT_EXPECT_EQ(test, fake->link->reading, 0);
}

static struct kunit_case read_cases[] = {
	KUNIT_CASE(hps_read__parted),
	KUNIT_CASE(hps_read_done__moved),
	{}
};

UNIT_SUITE(read, read_cases);
