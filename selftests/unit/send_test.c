// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/send.c"

#include "conn_tx.h"
#include "fake.h"

/* Its bytes were delivered while a writer had it, who then failed: it is as a new one. */
static void hps_send_tail__delivered_meanwhile(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, PAGE_SIZE, 500);

	fake->credits = 1;
	FAKE_LOCKED(fake, hps_stream_push(conn);
		     buf->busy = true;
		     hps_conn_tx_done(conn, buf, 500);
		     buf->busy = false);
	KUNIT_EXPECT_EQ(test, buf->end, 500);
	KUNIT_EXPECT_PTR_EQ(test, hps_send_tail(conn, PAGE_SIZE), buf);
	KUNIT_EXPECT_EQ(test, buf->end, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_flight));
	buf->busy = false;
}

/* But not while some are under way: what does not fit behind them goes to another. */
static void hps_send_tail__under_way(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 1200, 500);

	fake->credits = 1;
	FAKE_LOCKED(fake, hps_stream_push(conn));
	KUNIT_EXPECT_NULL(test, hps_send_tail(conn, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, buf->end, 500);
	KUNIT_EXPECT_FALSE(test, list_empty(&conn->tx_flight));
}

/* Short writes between pages of others: each has a page, not a message's worth. */
static void hps_send_alone__between_pages(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf;

	KUNIT_EXPECT_TRUE(test, hps_send_alone(conn));
	buf = fake_tx(test, conn, 1200, 500);
	KUNIT_EXPECT_FALSE(test, hps_send_alone(conn));
	buf->lent = true;
	KUNIT_EXPECT_TRUE(test, hps_send_alone(conn));
	buf->lent = false;
}

static struct kunit_case send_cases[] = {
	KUNIT_CASE(hps_send_tail__delivered_meanwhile),
	KUNIT_CASE(hps_send_tail__under_way),
	KUNIT_CASE(hps_send_alone__between_pages),
	{}
};

UNIT_SUITE(send, send_cases);
