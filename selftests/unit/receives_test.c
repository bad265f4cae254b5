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

/* Bytes that do not fill a receive of 1 KiB, nor are joined to as many before them. */
#define SMALL	600

/* The one rule. */
#define EXPECT_POSTED(test, fake)					\
	KUNIT_EXPECT_EQ(test, (fake)->nr_receives,			\
			(fake)->link->credit.rx_ready -			\
			(fake)->link->credit.rx_used +			\
			HPS_CTRL_SLOTS + (fake)->link->rx_extra)

/* With the receives that it starts with: the quota of 3, of 1 KiB. */
static struct fake_link *start(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);

	KUNIT_ASSERT_EQ(test, hps_receives_setup(fake->link, &fake->ibdev), 0);
	return fake;
}

/* As a reader does between two reads. */
static void grow(struct fake_link *fake, struct sock *sk)
{
	lock_sock(sk);
	hps_receives_grow(&fake->link->conn, sk);
	release_sock(sk);
}

/* A message of a type that was sent and did not complete, or NULL. */
static struct fake_posted *sent(struct fake_link *fake, u8 type)
{
	u32 i;

	for (i = 0; i < fake->nr_sends; i++)
		if (fake->sends[i].head.hdr.type == type)
			return &fake->sends[i];
	return NULL;
}

/* So many are posted that have this size. */
static u32 sized(struct fake_link *fake, u32 size)
{
	u32 i, n = 0;

	for (i = 0; i < fake->nr_receives; i++)
		n += fake->receives[i].size == size;
	return n;
}

static void hps_receives_setup__posts(struct kunit *test)
{
	struct fake_link *fake = start(test);

	EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, 3 + HPS_CTRL_SLOTS);
	KUNIT_EXPECT_EQ(test, sized(fake, 1024), fake->nr_receives);
	KUNIT_EXPECT_EQ(test, fake->link->rx_reserved, fake->nr_receives * 1024);
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
		KUNIT_EXPECT_EQ(test, fake->link->rx_reserved, 0);
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
	KUNIT_EXPECT_EQ(test, fake->link->rx_reserved, (3 + HPS_CTRL_SLOTS) * 1024);
}

static void hps_receives_again__posted(struct kunit *test)
{
	struct fake_link *fake = start(test);

	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, fake->link->rx_posted, 3 + HPS_CTRL_SLOTS + 1);
}

static void hps_receives_again__shut(struct kunit *test)
{
	struct fake_link *fake = start(test);

	fake->link->conn.shut = true;
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, 3 + HPS_CTRL_SLOTS - 1);
}

static void hps_receives_again__cannot_post(struct kunit *test)
{
	struct fake_link *fake = start(test);

	mock_fail(MOCK_POST_RECV, BIT(0));
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

/* A buffer that is being read is no credit; its credit comes when it was. */
static void hps_receives_consumed__comes_back(struct kunit *test)
{
	struct fake_link *fake = start(test);

	fake_data(fake, SMALL);
	KUNIT_EXPECT_EQ(test, fake->link->rx_held, 1);
	KUNIT_EXPECT_EQ(test, fake->link->credit.rx_ready, 3);
	EXPECT_POSTED(test, fake);
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, fake->link->rx_held, 0);
	KUNIT_EXPECT_EQ(test, fake->link->credit.rx_ready, 4);
	EXPECT_POSTED(test, fake);
}

static void hps_receives_consumed__cannot_post(struct kunit *test)
{
	struct fake_link *fake = start(test);

	fake_data(fake, SMALL);
	mock_fail(MOCK_POST_RECV, BIT(0));
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, fake->link->credit.rx_ready, 3);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

static void hps_receives_consumed__shut(struct kunit *test)
{
	struct fake_link *fake = start(test);

	fake_data(fake, SMALL);
	fake->link->conn.shut = true;
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, fake->link->credit.rx_ready, 3);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, 2 + HPS_CTRL_SLOTS);
}

/* What was not read when the queue pair went keeps its memory until it is. */
static void hps_receives_consumed__after_teardown(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct hps_buf *buf;

	fake_data(fake, SMALL);
	buf = list_first_entry(&fake->link->conn.rxq, struct hps_buf, list);
	fake_link_end(fake);
	KUNIT_EXPECT_PTR_EQ(test, hps_dma(buf)->ibdev, NULL);
	KUNIT_EXPECT_NOT_NULL(test, buf->data);
	KUNIT_EXPECT_EQ(test, fake->link->rx_reserved, 0);
	fake_read(fake);
}

/* What the peer offered: it is told once that was read, as far as there are slots. */
static void hps_receives_read__waits_for_a_slot(struct kunit *test)
{
	struct hps_srcavail src = { .rkey = cpu_to_be32(7), .len = cpu_to_be32(100) };
	struct fake_link *fake = start(test);
	struct hps_link *link = fake->link;
	u32 used = link->sq_used;

	link->reads = true;
	fake_message(fake, HPS_MSG_SRCAVAIL, &src, sizeof(src));
	KUNIT_EXPECT_EQ(test, link->rx_held, 1);
	/* No slot is free. */
	link->sq_used = HPS_SQ_SIZE;
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, link->rx_held, 1);
	KUNIT_EXPECT_NULL(test, sent(fake, HPS_MSG_READDONE));
	link->sq_used = used;
	spin_lock_bh(&link->conn.lock);
	hps_receives_read(link);
	spin_unlock_bh(&link->conn.lock);
	KUNIT_EXPECT_EQ(test, link->rx_held, 0);
	KUNIT_ASSERT_NOT_NULL(test, sent(fake, HPS_MSG_READDONE));
	KUNIT_EXPECT_EQ(test, sent(fake, HPS_MSG_READDONE)->rkey, 7);
	EXPECT_POSTED(test, fake);
}

static void hps_receives_extra__posts(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 charged = hps_sk(sk)->rx_charged, n;

	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, hps_receives_extra(fake->link, sk), 0);
	EXPECT_POSTED(test, fake);
	n = fake->link->tx_offers_max + 1;
	KUNIT_EXPECT_EQ(test, fake->link->rx_extra, n);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged + n * 1024);
	/* Once. */
	KUNIT_EXPECT_EQ(test, hps_receives_extra(fake->link, sk), 0);
	EXPECT_POSTED(test, fake);
	release_sock(sk);
}

static void hps_receives_extra__fails(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 charged = hps_sk(sk)->rx_charged;
	long limit[3];

	lock_sock(sk);
	mock_fail(MOCK_ALLOC, BIT(3));
	KUNIT_EXPECT_EQ(test, hps_receives_extra(fake->link, sk), -ENOMEM);
	/* As with tcp_mem, no memory for sockets; more than was charged before. */
	memcpy(limit, hps_prot.sysctl_mem, sizeof(limit));
	memset(hps_prot.sysctl_mem, -1, sizeof(limit));
	fake->link->tx_offers_max = 63;
	KUNIT_EXPECT_EQ(test, hps_receives_extra(fake->link, sk), -ENOMEM);
	memcpy(hps_prot.sysctl_mem, limit, sizeof(limit));
	fake->link->conn.shut = true;
	KUNIT_EXPECT_EQ(test, hps_receives_extra(fake->link, sk), -ECONNRESET);
	fake->link->conn.shut = false;
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged);
	KUNIT_EXPECT_EQ(test, fake->link->rx_extra, 0);
	release_sock(sk);
	EXPECT_POSTED(test, fake);
}

/* Small messages, and the peer runs out: more of them. */
static void hps_receives_grow__window(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 before = fake->link->credit.window, n;

	lock_sock(sk);
	for (n = 0; n < before; n++)
		fake_data(fake, SMALL);
	while (n--)
		fake_read(fake);
	release_sock(sk);
	grow(fake, sk);
	flush_delayed_work(&fake->link->grow);
	KUNIT_EXPECT_GT(test, fake->link->credit.window, before);
	KUNIT_EXPECT_EQ(test, fake->link->rx_size, 1024);
	KUNIT_EXPECT_NULL(test, sent(fake, HPS_MSG_BUFFERS));
	EXPECT_POSTED(test, fake);
}

/* It has enough, or sends little: nothing. */
static void hps_receives_grow__no_reason(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);

	fake_data(fake, SMALL);
	fake_read(fake);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, fake->link->credit.window, 3);
	EXPECT_POSTED(test, fake);
}

/* It fills them: larger ones, of which it is told before it may use them. */
static void hps_receives_grow__size(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);
	struct hps_link *link = fake->link;
	struct fake_posted *buffers;
	u32 small;

	fake_data(fake, 0);
	KUNIT_EXPECT_TRUE(test, link->rx_full);
	fake_read(fake);
	small = fake->nr_receives;
	grow(fake, sk);
	KUNIT_EXPECT_GT(test, link->rx_size, 1024);
	buffers = sent(fake, HPS_MSG_BUFFERS);
	KUNIT_ASSERT_NOT_NULL(test, buffers);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(buffers->head.buffers.size), link->rx_size);
	/* Message n goes into receive n; those before are as small as they were. */
	KUNIT_EXPECT_EQ(test, be32_to_cpu(buffers->head.buffers.from), link->rx_from);
	KUNIT_EXPECT_EQ(test, sized(fake, 1024), small);
	KUNIT_EXPECT_EQ(test, link->rx_posted - fake->nr_receives + small, link->rx_from);
	EXPECT_POSTED(test, fake);
	/* They are there for all that may come: each small one that leaves is replaced. */
	while (sized(fake, 1024)) {
		if (sized(fake, 1024) <= 2)
			fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
		else
			fake_data(fake, SMALL);
		if (!list_empty(&link->conn.rxq))
			fake_read(fake);
		fake_sent_all(fake);
		EXPECT_POSTED(test, fake);
	}
	KUNIT_EXPECT_EQ(test, sized(fake, link->rx_size), fake->nr_receives);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* No step without memory, nor is it asked for again before there is another reason. */
static void hps_receives_grow__no_memory(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 charged = hps_sk(sk)->rx_charged, size;
	struct hps_link *link = fake->link;

	fake_data(fake, 0);
	fake_read(fake);
	mock_fail(MOCK_ALLOC, BIT(5));
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->rx_size, 1024);
	KUNIT_EXPECT_NULL(test, sent(fake, HPS_MSG_BUFFERS));
	KUNIT_EXPECT_FALSE(test, link->rx_full);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->rx_size, 1024);
	size = link->rx_reserved;
	KUNIT_EXPECT_EQ(test, size, (3 + HPS_CTRL_SLOTS) * 1024);
	EXPECT_POSTED(test, fake);
}

static void hps_receives_grow__shut(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);

	fake_data(fake, 0);
	fake_read(fake);
	fake->link->conn.shut = true;
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, fake->link->rx_size, 1024);
	fake->link->conn.shut = false;
}

/* SO_RCVBUF is the limit of both. */
static void hps_receives_grow__rcvbuf(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 n;

	sk->sk_rcvbuf = 4096;
	sk->sk_userlocks |= SOCK_RCVBUF_LOCK;
	lock_sock(sk);
	for (n = 0; n < 3; n++)
		fake_data(fake, 0);
	while (n--)
		fake_read(fake);
	release_sock(sk);
	grow(fake, sk);
	grow(fake, sk);
	flush_delayed_work(&fake->link->grow);
	KUNIT_EXPECT_EQ(test, fake->link->rx_size, 1024);
	KUNIT_EXPECT_LE(test, fake->link->credit.window, 4);
	EXPECT_POSTED(test, fake);
}

/* With credits for as many small ones as fill SO_RCVBUF, which is 16 KiB; all are read. */
static struct fake_link *settled(struct kunit *test, struct sock **sk)
{
	struct fake_link *fake = start(test);
	u32 window = 0, n;

	*sk = fake_link_attach(fake);
	(*sk)->sk_rcvbuf = 16 << 10;
	(*sk)->sk_userlocks |= SOCK_RCVBUF_LOCK;
	while (fake->link->credit.window != window) {
		window = fake->link->credit.window;
		/* The work that would grow is kept out until the peer has run dry. */
		lock_sock(*sk);
		for (n = 0; !hps_credit_dry(&fake->link->credit); n++)
			fake_data(fake, SMALL);
		while (n--)
			fake_read(fake);
		release_sock(*sk);
		grow(fake, *sk);
		flush_delayed_work(&fake->link->grow);
		fake_sent_all(fake);
	}
	KUNIT_EXPECT_EQ(test, window, 16);
	EXPECT_POSTED(test, fake);
	return fake;
}

/* Whoever has read half of what the peer sent until it ran dry gets a larger SO_RCVBUF. */
static void hps_receives_grow__widens(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = settled(test, &sk);

	sk->sk_userlocks &= ~SOCK_RCVBUF_LOCK;
	fake->link->rx_cramped = false;
	lock_sock(sk);
	while (!hps_credit_dry(&fake->link->credit))
		fake_data(fake, SMALL);
	fake_read(fake);
	release_sock(sk);
	KUNIT_ASSERT_EQ(test, fake->link->rx_held, 15);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, sk->sk_rcvbuf, 16 << 10);
	while (fake->link->rx_held > 8)
		fake_read(fake);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, sk->sk_rcvbuf, 32 << 10);
	KUNIT_EXPECT_EQ(test, fake->link->credit.window, 32);
	EXPECT_POSTED(test, fake);
}

/* And one large one of which fewer would find room is filled, which is not read. */
static struct fake_link *crowded(struct kunit *test, struct sock **sk)
{
	struct fake_link *fake = settled(test, sk);

	lock_sock(*sk);
	fake_data(fake, 0);
	release_sock(*sk);
	KUNIT_EXPECT_TRUE(test, fake->link->rx_full);
	return fake;
}

/* Too many are granted for a step in size: no more are until the peer has used them. */
static void hps_receives_grow__waits_for_credits(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = crowded(test, &sk);
	struct hps_link *link = fake->link;
	u32 granted = link->credit.rx_ready;
	int n;

	lock_sock(sk);
	fake_read(fake);
	granted = link->credit.rx_ready;
	release_sock(sk);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->rx_size, 1024);
	KUNIT_EXPECT_NE(test, link->rx_wait, 0);
	fake_data(fake, 0);
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, link->credit.rx_ready, granted);
	KUNIT_EXPECT_FALSE(test, list_empty(&link->rx_spare));
	EXPECT_POSTED(test, fake);
	for (n = 0; n < 16 && link->rx_size == 1024; n++) {
		fake_data(fake, 0);
		fake_read(fake);
		grow(fake, sk);
		EXPECT_POSTED(test, fake);
	}
	KUNIT_EXPECT_GT(test, link->rx_size, 1024);
	KUNIT_EXPECT_EQ(test, link->rx_wait, 0);
	KUNIT_EXPECT_LE(test, link->credit.window * link->rx_size, 16 << 10);
	/* There is enough for all that was granted, whatever comes. */
	while (sized(fake, 1024)) {
		fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
		EXPECT_POSTED(test, fake);
	}
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* A program that reads so little is waited for, but not for long. */
static void hps_receives_grow__waits_for_reader(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = crowded(test, &sk);
	struct hps_link *link = fake->link;

	lock_sock(sk);
	hps_receives_grow(&link->conn, sk);
	KUNIT_EXPECT_NE(test, link->rx_wait, 0);
	release_sock(sk);
	/* It has just read. */
	flush_delayed_work(&link->grow);
	KUNIT_EXPECT_NE(test, link->rx_wait, 0);
	/* And has not since. */
	flush_delayed_work(&link->grow);
	KUNIT_EXPECT_EQ(test, link->rx_wait, 0);
	KUNIT_EXPECT_EQ(test, link->rx_size, 1024);
	EXPECT_POSTED(test, fake);
	/* Nor again, before it has read much more. */
	link->rx_full = true;
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->rx_wait, 0);
	link->rx_full = true;
	link->rx_retry = 0;
	grow(fake, sk);
	KUNIT_EXPECT_NE(test, link->rx_wait, 0);
}

/* Small ones that come back when there are enough large ones are not needed any more. */
static void hps_receives_consumed__outgrown(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);
	struct hps_link *link = fake->link;
	u64 reserved;

	fake_data(fake, 0);
	fake_read(fake);
	fake_data(fake, SMALL);
	grow(fake, sk);
	KUNIT_EXPECT_GT(test, link->rx_size, 1024);
	KUNIT_EXPECT_EQ(test, link->rx_held, 1);
	reserved = link->rx_reserved;
	/* The window is full: it was for this one that room was left. */
	link->credit.window = hps_receives_used(link) - 1;
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, link->rx_reserved, reserved - 1024);
	EXPECT_POSTED(test, fake);
	/* Nor charged, when the socket's lock has been free. */
	lock_sock(sk);
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, link->rx_reserved);
}

/* Nobody reads, but may want to see more of it. */
static void hps_receives_work__without_reader(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 n;

	for (n = 0; n < 3; n++)
		fake_data(fake, SMALL);
	flush_delayed_work(&fake->link->grow);
	KUNIT_EXPECT_GT(test, fake->link->credit.window, 3);
	KUNIT_EXPECT_GT(test, fake->link->credit.rx_ready, 3);
	EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->later, 0);
}

/* The program has the socket: it is done when that lets go of it. */
static void hps_receives_work__locked(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 n;

	lock_sock(sk);
	for (n = 0; n < 3; n++)
		fake_data(fake, SMALL);
	flush_delayed_work(&fake->link->grow);
	KUNIT_EXPECT_EQ(test, fake->link->credit.window, 3);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->later, HPS_LATER_GROW);
	release_sock(sk);
	flush_delayed_work(&fake->link->grow);
	KUNIT_EXPECT_GT(test, fake->link->credit.window, 3);
	EXPECT_POSTED(test, fake);
}

static void hps_receives_later__planned_already(struct kunit *test)
{
	struct fake_link *fake = start(test);
	struct hps_conn *conn = &fake->link->conn;
	u32 refs;

	hps_conn_get(conn);
	queue_delayed_work(hps_program_wq, &fake->link->grow, HZ);
	refs = kref_read(&conn->ref);
	hps_receives_later(conn);
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), refs);
}

/* Wherever the buffers are. */
static void hps_receives_unmap__all(struct kunit *test)
{
	struct hps_srcavail src = { .len = cpu_to_be32(100) };
	struct sock *sk;
	struct fake_link *fake = crowded(test, &sk);
	struct hps_link *link = fake->link;
	u32 used;

	link->reads = true;
	fake_read(fake);
	grow(fake, sk);
	fake_data(fake, 0);
	fake_read(fake);
	KUNIT_EXPECT_FALSE(test, list_empty(&link->rx_spare));
	fake_message(fake, HPS_MSG_SRCAVAIL, &src, sizeof(src));
	fake_data(fake, SMALL);
	used = link->sq_used;
	link->sq_used = HPS_SQ_SIZE;
	fake_read(fake);
	link->sq_used = used;
	KUNIT_EXPECT_FALSE(test, list_empty(&link->rx_read));
	fake_link_end(fake);
	KUNIT_EXPECT_TRUE(test, list_empty(&link->rx_all));
	KUNIT_EXPECT_TRUE(test, list_empty(&link->rx_spare));
	KUNIT_EXPECT_TRUE(test, list_empty(&link->rx_read));
	KUNIT_EXPECT_EQ(test, link->rx_reserved, 0);
	/* What was not read can still be. */
	fake_read(fake);
}

static void hps_receives_full__cases(struct kunit *test)
{
	struct fake_link *fake = start(test);
	u32 n;

	for (n = 0; n < 3; n++) {
		KUNIT_EXPECT_FALSE(test, hps_receives_full(&fake->link->conn));
		fake_data(fake, SMALL);
	}
	KUNIT_EXPECT_TRUE(test, hps_receives_full(&fake->link->conn));
	fake_read(fake);
	KUNIT_EXPECT_FALSE(test, hps_receives_full(&fake->link->conn));
}

static struct kunit_case receives_cases[] = {
	KUNIT_CASE(hps_receives_setup__posts),
	KUNIT_CASE(hps_receives_setup__no_memory),
	KUNIT_CASE(hps_receives_setup__mem_max_kb),
	KUNIT_CASE(hps_receives_setup__cannot_post),
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
	KUNIT_CASE(hps_receives_grow__window),
	KUNIT_CASE(hps_receives_grow__no_reason),
	KUNIT_CASE(hps_receives_grow__size),
	KUNIT_CASE(hps_receives_grow__no_memory),
	KUNIT_CASE(hps_receives_grow__shut),
	KUNIT_CASE(hps_receives_grow__rcvbuf),
	KUNIT_CASE(hps_receives_grow__widens),
	KUNIT_CASE(hps_receives_grow__waits_for_credits),
	KUNIT_CASE(hps_receives_grow__waits_for_reader),
	KUNIT_CASE(hps_receives_consumed__outgrown),
	KUNIT_CASE(hps_receives_work__without_reader),
	KUNIT_CASE(hps_receives_work__locked),
	KUNIT_CASE(hps_receives_later__planned_already),
	KUNIT_CASE(hps_receives_unmap__all),
	KUNIT_CASE(hps_receives_full__cases),
	{}
};

UNIT_SUITE(receives, receives_cases);
