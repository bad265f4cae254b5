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

static struct kunit_case fetch_cases[] = {
	KUNIT_CASE(hps_fetch_consumed__fetched),
	KUNIT_CASE(hps_fetch_consumed__received),
	{}
};

UNIT_SUITE(fetch, fetch_cases);
