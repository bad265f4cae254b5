// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/fetch.c"

#include "fake.h"
#include "fake_link.h"

/* The transport did not give it, and does not get it. */
static void hps_fetch_consumed__fetched(struct kunit *test)
{
	const u32 sizes[] = { 1024, 65536 };
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	struct hps_conn *conn = &fake->link->conn;
	struct hps_receives before = fake->link->receives;
	u32 charged = hps_sk(sk)->rx_charged;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct hps_buf *buf = hps_buf_local(sizes[i]);
		u32 mem = sizes[i] + sizeof(*buf);

		KUNIT_ASSERT_NOT_NULL(test, buf);
		buf->fetched = true;
		buf->end = sizes[i];
		lock_sock(sk);
		KUNIT_EXPECT_TRUE(test, hps_sock_charge(sk, mem, SK_MEM_RECV));
		hps_sk(sk)->rx_charged += mem;
		spin_lock_bh(&conn->lock);
		list_add_tail(&buf->list, &conn->rxq);
		atomic_add(sizes[i], &conn->rx_avail);
		spin_unlock_bh(&conn->lock);
		fake_read(fake);
		release_sock(sk);
		KUNIT_EXPECT_EQ(test, fake->link->receives.held, before.held);
		KUNIT_EXPECT_EQ(test, fake->link->receives.posted, before.posted);
		KUNIT_EXPECT_EQ(test, fake->link->receives.reserved, before.reserved);
		KUNIT_EXPECT_TRUE(test, list_empty(&fake->link->receives.spare));
		KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged);
	}
	FAKE_EXPECT_POSTED(test, fake);
}

/* What it gave goes back to it. */
static void hps_fetch_consumed__received(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u32 posted = fake->link->receives.posted;

	fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_EQ(test, fake->link->receives.held, 1);
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, fake->link->receives.held, 0);
	KUNIT_EXPECT_EQ(test, fake->link->receives.posted, posted + 1);
	FAKE_EXPECT_POSTED(test, fake);
}

/* A buffer of our own, at the end of the queue. */
static struct hps_buf *queued(struct kunit *test, struct sock *sk, u32 len, bool remote)
{
	struct hps_conn *conn = hps_sk_conn(sk);
	struct hps_buf *buf = hps_fetch_buf(sk, NULL, len, false);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	buf->end = len;
	buf->remote = remote;
	spin_lock_bh(&conn->lock);
	conn->rx_remote += remote;
	list_add_tail(&buf->list, &conn->rxq);
	spin_unlock_bh(&conn->lock);
	return buf;
}

/* An offer that was read when the connection has ended: what follows it is not lost. */
static void hps_fetch_insert__lost(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	struct hps_conn *conn = &fake->link->conn;
	struct hps_buf *offer, *local, *next;

	lock_sock(sk);
	offer = queued(test, sk, 100, true);
	queued(test, sk, 8, false);
	queued(test, sk, 50, true);
	queued(test, sk, 5, false);
	local = hps_fetch_buf(sk, offer, 100, false);
	KUNIT_ASSERT_NOT_NULL(test, local);
	local->end = 100;
	spin_lock_bh(&conn->lock);
	conn->rx_lost = true;
	hps_fetch_insert(conn, local);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->rx_avail), 108);
	conn->rx_lost = false;
	conn->rx_remote = 0;
	atomic_set(&conn->rx_avail, 0);
	list_for_each_entry_safe(local, next, &conn->rxq, list) {
		list_del(&local->list);
		hps_fetch_consumed(conn, local);
	}
	spin_unlock_bh(&conn->lock);
	release_sock(sk);
}

/* The connection was parted from its socket under a reader: an offer is given back after it. */
static void hps_fetch_work__parted(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_conn *conn = &fake->link->conn;
	struct hps_buf *offer = hps_buf_local(100);
	unsigned long end = jiffies + 10 * HZ;

	KUNIT_ASSERT_NOT_NULL(test, offer);
	offer->fetched = true;
	offer->remote = true;
	offer->end = 100;
	spin_lock_bh(&conn->lock);
	list_add_tail(&offer->list, &conn->rxq);
	conn->rx_remote = 1;
	atomic_set(&conn->rx_avail, 100);
	conn->fetching = HPS_FETCH_BUSY;
	conn->rx_cancel = 1;
	hps_fetch_back(conn);
	spin_unlock_bh(&conn->lock);
	flush_delayed_work(&conn->collect);
	KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_CANCELACK));
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->rx_avail), 100);
	hps_fetch_end(conn);
	/* It comes again by itself; the time before may not be over. */
	do
		flush_delayed_work(&conn->collect);
	while (READ_ONCE(conn->rx_cancel) && time_before(jiffies, end));
	flush_delayed_work(&conn->collect);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_CANCELACK));
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->rx_avail), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->rxq));
}

static struct kunit_case fetch_cases[] = {
	KUNIT_CASE(hps_fetch_consumed__fetched),
	KUNIT_CASE(hps_fetch_consumed__received),
	KUNIT_CASE(hps_fetch_insert__lost),
	KUNIT_CASE(hps_fetch_work__parted),
	{}
};

UNIT_SUITE(fetch, fetch_cases);
