// SPDX-License-Identifier: GPL-2.0
/*
 * What is tested is the rules at the top of receives.c, by what is posted and what the
 * peer is told; how far a step goes is left to it.
 */
#include "unit.h"

#include "af_hpsock/receives.c"

#include "fake.h"
#include "fake_link.h"
#include "af_hpsock/mem.h"
#include "af_hpsock/proto.h"

static void hps_receives_setup__posts(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	FAKE_EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, 3 + HPS_CTRL_SLOTS);
	KUNIT_EXPECT_EQ(test, fake_link_sized(fake, 1024), fake->nr_receives);
	KUNIT_EXPECT_EQ(test, fake->link->receives.reserved, fake->nr_receives * 1024);
	KUNIT_EXPECT_EQ(test, hps_receives_mem(&fake->link->conn), fake->nr_receives * 1024);
}

/* All or nothing. */
static void hps_receives_setup__no_memory(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	long before;
	int i;

	/* Links of earlier tests go when readers of theirs have. */
	rcu_barrier();
	before = hps_mem_read();
	/* Each buffer takes two allocations. */
	for (i = 0; i < 2 * (3 + HPS_CTRL_SLOTS); i++) {
		mock_fail(MOCK_ALLOC, BIT(i));
		KUNIT_EXPECT_EQ(test, hps_receives_setup(fake->link, &fake->ibdev), -ENOMEM);
		KUNIT_EXPECT_EQ(test, fake->nr_receives, 0);
		KUNIT_EXPECT_EQ(test, fake->link->receives.reserved, 0);
		KUNIT_EXPECT_EQ(test, hps_mem_read(), before);
	}
}

/* Neither the memory nor that of the header. */
static void hps_receives_new__cannot_map(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	long before = hps_mem_read();
	int i;

	for (i = 0; i < 2; i++) {
		mock_fail(MOCK_MAP, BIT(i));
		KUNIT_EXPECT_NULL(test, hps_receives_new(fake->link, &fake->ibdev, PAGE_SIZE));
		KUNIT_EXPECT_EQ(test, hps_mem_read(), before);
	}
}

static void hps_receives_setup__mem_max_kb(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	unsigned int max = hps_mem_max_kb;

	/* A user has half of it. */
	hps_mem_max_kb = 19;
	KUNIT_EXPECT_EQ(test, hps_receives_setup(fake->link, &fake->ibdev), -ENOMEM);
	hps_mem_max_kb = 20;
	KUNIT_EXPECT_EQ(test, hps_receives_setup(fake->link, &fake->ibdev), 0);
	hps_mem_max_kb = max;
}

/* What was posted is the teardown's, and so are those that were not. */
static void hps_receives_setup__cannot_post(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	u64 errors = fake_counter(fake, HPS_STAT_WC_ERROR);

	mock_fail(MOCK_POST_RECV, BIT(4));
	KUNIT_EXPECT_EQ(test, hps_receives_setup(fake->link, &fake->ibdev), -ENOMEM);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, 4);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_WC_ERROR), errors + 1);
	KUNIT_EXPECT_EQ(test, fake->link->receives.reserved, (3 + HPS_CTRL_SLOTS) * 1024);
}

/* An attempt that fails before gives back what its socket was charged. */
static void hps_receives_unmap__never_made(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	struct sock *sk = fake_link_attach(fake);

	KUNIT_EXPECT_GT(test, hps_sk(sk)->rx_charged, 0);
	fake_link_end(fake);
	lock_sock(sk);
	hps_sock_reap(sk);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, 0);
	release_sock(sk);
}

static void hps_receives_again__posted(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	FAKE_EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, fake->link->receives.posted, 3 + HPS_CTRL_SLOTS + 1);
}

static void hps_receives_again__shut(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	fake->link->conn.shut = true;
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, 3 + HPS_CTRL_SLOTS - 1);
}

static void hps_receives_again__cannot_post(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	mock_fail(MOCK_POST_RECV, BIT(0));
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

/* A buffer that is being read is no credit; its credit comes when it was. */
static void hps_receives_consumed__comes_back(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_EQ(test, fake->link->receives.held, 1);
	KUNIT_EXPECT_EQ(test, fake->link->credit.rx_ready, 3);
	FAKE_EXPECT_POSTED(test, fake);
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, fake->link->receives.held, 0);
	KUNIT_EXPECT_EQ(test, fake->link->credit.rx_ready, 4);
	FAKE_EXPECT_POSTED(test, fake);
}

static void hps_receives_consumed__cannot_post(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	fake_data(fake, FAKE_SMALL);
	mock_fail(MOCK_POST_RECV, BIT(0));
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, fake->link->credit.rx_ready, 3);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

static void hps_receives_consumed__shut(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	fake_data(fake, FAKE_SMALL);
	fake->link->conn.shut = true;
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, fake->link->credit.rx_ready, 3);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, 2 + HPS_CTRL_SLOTS);
}

/* What was not read when the queue pair went keeps its memory until it is. */
static void hps_receives_consumed__after_teardown(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_buf *buf;

	fake_data(fake, FAKE_SMALL);
	buf = list_first_entry(&fake->link->conn.rxq, struct hps_buf, list);
	fake_link_end(fake);
	KUNIT_EXPECT_PTR_EQ(test, hps_dma(buf)->ibdev, NULL);
	KUNIT_EXPECT_NOT_NULL(test, buf->data);
	KUNIT_EXPECT_EQ(test, fake->link->receives.reserved, 0);
	fake_read(fake);
}

/* What the peer offered: it is told once that was read, as far as there are slots. */
static void hps_receives_read__waits_for_a_slot(struct kunit *test)
{
	struct hps_srcavail src = { .rkey = cpu_to_be32(7), .len = cpu_to_be32(100) };
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	u32 used = link->sq_used;

	link->reads = true;
	fake_message(fake, HPS_MSG_SRCAVAIL, &src, sizeof(src));
	KUNIT_EXPECT_EQ(test, link->receives.held, 1);
	/* No slot is free. */
	link->sq_used = HPS_SQ_SIZE;
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, link->receives.held, 1);
	KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_READDONE));
	link->sq_used = used;
	spin_lock_bh(&link->conn.lock);
	hps_receives_read(link);
	spin_unlock_bh(&link->conn.lock);
	KUNIT_EXPECT_EQ(test, link->receives.held, 0);
	KUNIT_ASSERT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_READDONE));
	KUNIT_EXPECT_EQ(test, fake_link_sent(fake, HPS_MSG_READDONE)->rkey, 7);
	FAKE_EXPECT_POSTED(test, fake);
}

static void hps_receives_extra__posts(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 charged = hps_sk(sk)->rx_charged, n;

	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, hps_receives_extra(fake->link, sk, 9), 0);
	FAKE_EXPECT_POSTED(test, fake);
	n = 9;
	KUNIT_EXPECT_EQ(test, fake->link->receives.extra, n);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged + n * 1024);
	/* More of them */
	KUNIT_EXPECT_EQ(test, hps_receives_extra(fake->link, sk, 2), 0);
	KUNIT_EXPECT_EQ(test, fake->link->receives.extra, n + 2);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged + (n + 2) * 1024);
	FAKE_EXPECT_POSTED(test, fake);
	release_sock(sk);
}

static void hps_receives_extra__fails(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 charged = hps_sk(sk)->rx_charged;
	long limit[3];

	lock_sock(sk);
	mock_fail(MOCK_ALLOC, BIT(3));
	KUNIT_EXPECT_EQ(test, hps_receives_extra(fake->link, sk, 9), -ENOMEM);
	/* As with tcp_mem, no memory for sockets; more than was charged before. */
	memcpy(limit, hps_prot.sysctl_mem, sizeof(limit));
	memset(hps_prot.sysctl_mem, -1, sizeof(limit));
	fake->link->tx_offers_max = 63;
	KUNIT_EXPECT_EQ(test, hps_receives_extra(fake->link, sk, 9), -ENOMEM);
	memcpy(hps_prot.sysctl_mem, limit, sizeof(limit));
	fake->link->conn.shut = true;
	KUNIT_EXPECT_EQ(test, hps_receives_extra(fake->link, sk, 9), -ECONNRESET);
	fake->link->conn.shut = false;
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged);
	KUNIT_EXPECT_EQ(test, fake->link->receives.extra, 0);
	release_sock(sk);
	FAKE_EXPECT_POSTED(test, fake);
}

/* The link has them all the same, and its teardown gives back what they were charged. */
static void hps_receives_extra__cannot_post(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 charged = hps_sk(sk)->rx_charged;

	lock_sock(sk);
	mock_fail(MOCK_POST_RECV, BIT(1));
	KUNIT_EXPECT_LT(test, hps_receives_extra(fake->link, sk, 9), 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->link->receives.extra, 0);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged + 9 * 1024);
	release_sock(sk);
	fake_link_end(fake);
	lock_sock(sk);
	hps_sock_reap(sk);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, 0);
	release_sock(sk);
}

static void hps_receives_full__cases(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u32 n;

	for (n = 0; n < 3; n++) {
		KUNIT_EXPECT_FALSE(test, hps_receives_full(&fake->link->conn));
		fake_data(fake, FAKE_SMALL);
	}
	KUNIT_EXPECT_TRUE(test, hps_receives_full(&fake->link->conn));
	fake_read(fake);
	KUNIT_EXPECT_FALSE(test, hps_receives_full(&fake->link->conn));
}

static struct kunit_case receives_cases[] = {
	KUNIT_CASE(hps_receives_setup__posts),
	KUNIT_CASE(hps_receives_setup__no_memory),
	KUNIT_CASE(hps_receives_new__cannot_map),
	KUNIT_CASE(hps_receives_setup__mem_max_kb),
	KUNIT_CASE(hps_receives_setup__cannot_post),
	KUNIT_CASE(hps_receives_unmap__never_made),
	KUNIT_CASE(hps_receives_again__posted),
	KUNIT_CASE(hps_receives_again__shut),
	KUNIT_CASE(hps_receives_again__cannot_post),
	KUNIT_CASE(hps_receives_consumed__comes_back),
	KUNIT_CASE(hps_receives_consumed__cannot_post),
	KUNIT_CASE(hps_receives_consumed__shut),
	KUNIT_CASE(hps_receives_consumed__after_teardown),
	KUNIT_CASE(hps_receives_read__waits_for_a_slot),
	KUNIT_CASE(hps_receives_extra__posts),
	KUNIT_CASE(hps_receives_extra__fails),
	KUNIT_CASE(hps_receives_extra__cannot_post),
	KUNIT_CASE(hps_receives_full__cases),
	{}
};

UNIT_SUITE(receives, receives_cases);
