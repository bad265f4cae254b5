// SPDX-License-Identifier: GPL-2.0
/*
 * By what is posted and what the peer is told; how far a step goes is left to it.
 */
#include "unit.h"

#include "af_hpsock/growth.c"

#include "fake.h"
#include "fake_link.h"

/* As a reader does between two reads. */
static void grow(struct fake_link *fake, struct sock *sk)
{
	lock_sock(sk);
	hps_growth_read(&fake->link->conn, sk);
	release_sock(sk);
}

/* With credits for as many small ones as fill SO_RCVBUF, which is 16 KiB; all are read. */
static struct fake_link *settled(struct kunit *test, struct sock **sk)
{
	struct fake_link *fake = fake_link_start(test);
	u32 window = 0, n;

	*sk = fake_link_attach(fake);
	(*sk)->sk_rcvbuf = 16 << 10;
	(*sk)->sk_userlocks |= SOCK_RCVBUF_LOCK;
	while (fake->link->credit.window != window) {
		window = fake->link->credit.window;
		/* The work that would grow is kept out until the peer has run dry. */
		lock_sock(*sk);
		for (n = 0; !hps_credit_dry(&fake->link->credit); n++)
			fake_data(fake, FAKE_SMALL);
		while (n--)
			fake_read(fake);
		release_sock(*sk);
		grow(fake, *sk);
		flush_delayed_work(&fake->link->growth.work);
		fake_sent_all(fake);
	}
	KUNIT_EXPECT_EQ(test, window, 16);
	/* As any message tells the peer of all of them; a CREDIT may have waited for more. */
	spin_lock_bh(&fake->link->conn.lock);
	hps_credit_tell(&fake->link->credit);
	spin_unlock_bh(&fake->link->conn.lock);
	FAKE_EXPECT_POSTED(test, fake);
	return fake;
}

/* And one large one of which fewer would find room is filled, which is not read. */
static struct fake_link *crowded(struct kunit *test, struct sock **sk)
{
	struct fake_link *fake = settled(test, sk);

	lock_sock(*sk);
	fake_data(fake, 0);
	release_sock(*sk);
	KUNIT_EXPECT_TRUE(test, fake->link->growth.full);
	return fake;
}

/* Small messages, and the peer runs out: more of them. */
static void hps_growth_read__window(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 before = fake->link->credit.window, n;

	lock_sock(sk);
	for (n = 0; n < before; n++)
		fake_data(fake, FAKE_SMALL);
	while (n--)
		fake_read(fake);
	release_sock(sk);
	grow(fake, sk);
	flush_delayed_work(&fake->link->growth.work);
	KUNIT_EXPECT_GT(test, fake->link->credit.window, before);
	KUNIT_EXPECT_EQ(test, fake->link->receives.size, 1024);
	KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_BUFFERS));
	FAKE_EXPECT_POSTED(test, fake);
}

/* It has enough, or sends little: nothing. */
static void hps_growth_read__no_reason(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);

	fake_data(fake, FAKE_SMALL);
	fake_read(fake);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, fake->link->credit.window, 3);
	FAKE_EXPECT_POSTED(test, fake);
}

/* It fills them: larger ones, of which it is told before it may use them. */
static void hps_growth_read__size(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	struct hps_link *link = fake->link;
	struct fake_posted *buffers;
	u32 small;

	fake_data(fake, 0);
	KUNIT_EXPECT_TRUE(test, link->growth.full);
	fake_read(fake);
	small = fake->nr_receives;
	grow(fake, sk);
	KUNIT_EXPECT_GT(test, link->receives.size, 1024);
	buffers = fake_link_sent(fake, HPS_MSG_BUFFERS);
	KUNIT_ASSERT_NOT_NULL(test, buffers);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(buffers->head.buffers.size),
			link->receives.size + sizeof(struct hps_hdr));
	/* Message n goes into receive n; those before are as small as they were. */
	KUNIT_EXPECT_EQ(test, be32_to_cpu(buffers->head.buffers.from), link->receives.from);
	KUNIT_EXPECT_EQ(test, fake_link_sized(fake, 1024), small);
	KUNIT_EXPECT_EQ(test, link->receives.posted - fake->nr_receives + small,
			link->receives.from);
	FAKE_EXPECT_POSTED(test, fake);
	/* They are there for all that may come: each small one that leaves is replaced. */
	while (fake_link_sized(fake, 1024)) {
		if (fake_link_sized(fake, 1024) <= 2)
			fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
		else
			fake_data(fake, FAKE_SMALL);
		if (!list_empty(&link->conn.rxq))
			fake_read(fake);
		fake_sent_all(fake);
		FAKE_EXPECT_POSTED(test, fake);
	}
	KUNIT_EXPECT_EQ(test, fake_link_sized(fake, link->receives.size), fake->nr_receives);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* No step without memory, nor is it asked for again before there is another reason. */
static void hps_growth_read__no_memory(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 charged = hps_sk(sk)->rx_charged, size;
	struct hps_link *link = fake->link;

	fake_data(fake, 0);
	fake_read(fake);
	mock_fail(MOCK_ALLOC, BIT(5));
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->receives.size, 1024);
	KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_BUFFERS));
	KUNIT_EXPECT_FALSE(test, link->growth.full);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->receives.size, 1024);
	size = link->receives.reserved;
	KUNIT_EXPECT_EQ(test, size, (3 + HPS_CTRL_SLOTS) * 1024);
	FAKE_EXPECT_POSTED(test, fake);
}

static void hps_growth_read__shut(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);

	fake_data(fake, 0);
	fake_read(fake);
	fake->link->conn.shut = true;
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, fake->link->receives.size, 1024);
	fake->link->conn.shut = false;
}

/* Nothing more comes. */
static void hps_growth_read__fin(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);

	fake_data(fake, 0);
	fake_message(fake, HPS_MSG_FIN, NULL, 0);
	fake_read(fake);
	KUNIT_EXPECT_TRUE(test, fake->link->growth.full);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, fake->link->receives.size, 1024);
	FAKE_EXPECT_POSTED(test, fake);
}

/* SO_RCVBUF is the limit of both. */
static void hps_growth_read__rcvbuf(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
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
	flush_delayed_work(&fake->link->growth.work);
	KUNIT_EXPECT_EQ(test, fake->link->receives.size, 1024);
	KUNIT_EXPECT_LE(test, fake->link->credit.window, 4);
	FAKE_EXPECT_POSTED(test, fake);
}

/* Whoever has read half of what the peer sent until it ran dry gets a larger SO_RCVBUF. */
static void hps_growth_read__widens(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = settled(test, &sk);

	sk->sk_userlocks &= ~SOCK_RCVBUF_LOCK;
	fake->link->growth.state = HPS_GROWTH_DONE;
	lock_sock(sk);
	while (!hps_credit_dry(&fake->link->credit))
		fake_data(fake, FAKE_SMALL);
	fake_read(fake);
	release_sock(sk);
	KUNIT_ASSERT_EQ(test, fake->link->receives.held, 15);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, sk->sk_rcvbuf, 16 << 10);
	while (fake->link->receives.held > 8)
		fake_read(fake);
	/* What was copied aside is not read either, */
	atomic_add(SZ_1M, &fake->link->conn.rx_avail);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, sk->sk_rcvbuf, 16 << 10);
	/* but what the peer offers is not here. */
	fake->link->conn.rx_remote++;
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, sk->sk_rcvbuf, 32 << 10);
	KUNIT_EXPECT_EQ(test, fake->link->credit.window, 32);
	FAKE_EXPECT_POSTED(test, fake);
	fake->link->conn.rx_remote--;
	atomic_sub(SZ_1M, &fake->link->conn.rx_avail);
}

/* Too many are granted for a step in size: no more are until the peer has used them. */
static void hps_growth_read__waits_for_credits(struct kunit *test)
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
	KUNIT_EXPECT_EQ(test, link->receives.size, 1024);
	KUNIT_EXPECT_EQ(test, link->growth.state, HPS_GROWTH_WAITING);
	fake_data(fake, 0);
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, link->credit.rx_ready, granted);
	KUNIT_EXPECT_FALSE(test, list_empty(&link->receives.spare));
	FAKE_EXPECT_POSTED(test, fake);
	for (n = 0; n < 16 && link->receives.size == 1024; n++) {
		fake_data(fake, 0);
		fake_read(fake);
		grow(fake, sk);
		FAKE_EXPECT_POSTED(test, fake);
	}
	KUNIT_EXPECT_GT(test, link->receives.size, 1024);
	KUNIT_EXPECT_NE(test, link->growth.state, HPS_GROWTH_WAITING);
	KUNIT_EXPECT_LE(test, link->credit.window * link->receives.size, 16 << 10);
	/* There is enough for all that was granted, whatever comes. */
	while (fake_link_sized(fake, 1024)) {
		fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
		FAKE_EXPECT_POSTED(test, fake);
	}
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/*
 * What the peer uses its last credit for while they are held back may be no data: then
 * nobody reads on, but they are not held back for ever.
 */
static void hps_receives_spent__last_while_waiting(struct kunit *test)
{
	struct hps_smaller smaller = { .size = cpu_to_be32(HPS_BUF_MIN), .pads = cpu_to_be32(1) };
	struct sock *sk;
	struct fake_link *fake = crowded(test, &sk);
	struct hps_link *link = fake->link;
	u32 granted;

	fake_read(fake);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->growth.state, HPS_GROWTH_WAITING);
	spin_lock_bh(&link->conn.lock);
	hps_credit_tell(&link->credit);
	spin_unlock_bh(&link->conn.lock);
	while (link->credit.rx_told - link->credit.rx_used > 1)
		fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&link->growth.work));
	granted = link->credit.rx_ready;
	fake_message(fake, HPS_MSG_SHRINK, &smaller, sizeof(smaller));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_EQ(test, link->credit.rx_ready, granted);
	KUNIT_EXPECT_EQ(test, link->growth.state, HPS_GROWTH_WAITING);
	flush_delayed_work(&link->growth.work);
	flush_delayed_work(&link->growth.work);
	KUNIT_EXPECT_NE(test, link->growth.state, HPS_GROWTH_WAITING);
	KUNIT_EXPECT_GT(test, link->credit.rx_ready, granted);
	FAKE_EXPECT_POSTED(test, fake);
}

/* There is room, but no memory: credits are held back no longer. */
static void hps_growth_read__waited_for_nothing(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = crowded(test, &sk);
	struct hps_link *link = fake->link;
	int n;

	fake_read(fake);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->growth.state, HPS_GROWTH_WAITING);
	mock_fail(MOCK_ALLOC, ~0ULL);
	for (n = 0; n < 16 && link->growth.state == HPS_GROWTH_WAITING; n++) {
		fake_data(fake, 0);
		fake_read(fake);
		grow(fake, sk);
	}
	mock_fail(MOCK_ALLOC, 0);
	KUNIT_EXPECT_EQ(test, link->receives.size, 1024);
	KUNIT_EXPECT_EQ(test, link->growth.state, HPS_GROWTH_DONE);
	KUNIT_EXPECT_FALSE(test, link->growth.full);
	KUNIT_EXPECT_EQ(test, hps_receives_used(link), link->credit.window);
	FAKE_EXPECT_POSTED(test, fake);
}

/* A program that reads so little is waited for, but not for long. */
static void hps_growth_read__waits_for_reader(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = crowded(test, &sk);
	struct hps_link *link = fake->link;

	lock_sock(sk);
	hps_growth_read(&link->conn, sk);
	KUNIT_EXPECT_EQ(test, link->growth.state, HPS_GROWTH_WAITING);
	release_sock(sk);
	/* It has just read. */
	flush_delayed_work(&link->growth.work);
	KUNIT_EXPECT_EQ(test, link->growth.state, HPS_GROWTH_WAITING);
	/* And has not since. */
	flush_delayed_work(&link->growth.work);
	KUNIT_EXPECT_NE(test, link->growth.state, HPS_GROWTH_WAITING);
	KUNIT_EXPECT_EQ(test, link->receives.size, 1024);
	FAKE_EXPECT_POSTED(test, fake);
	/* Nor again, before it has read much more. */
	link->growth.full = true;
	grow(fake, sk);
	KUNIT_EXPECT_NE(test, link->growth.state, HPS_GROWTH_WAITING);
	link->growth.full = true;
	link->growth.retry = 0;
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->growth.state, HPS_GROWTH_WAITING);
}

/* One that pauses after each read is, in the end, and others do not lose more by that. */
static void hps_growth_read__waits_for_longer(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = crowded(test, &sk);
	struct hps_link *link = fake->link;
	u64 pos = hps_conn_read_pos(&link->conn);
	int n;

	for (n = 0; n < HPS_GROWTH_VAIN_MAX + 2; n++) {
		u32 times = 1 << min(n, HPS_GROWTH_VAIN_MAX);

		link->growth.full = true;
		link->growth.retry = 0;
		grow(fake, sk);
		KUNIT_EXPECT_EQ(test, link->growth.state, HPS_GROWTH_WAITING);
		KUNIT_EXPECT_EQ(test, hps_growth_patience(&link->growth),
				HPS_GROWTH_WAIT * times);
		flush_delayed_work(&link->growth.work);
		flush_delayed_work(&link->growth.work);
		KUNIT_EXPECT_NE(test, link->growth.state, HPS_GROWTH_WAITING);
		KUNIT_EXPECT_EQ(test, link->growth.retry - pos,
				(u64)hps_sock_rcv_limit(sk) * times);
	}
}

/* Nobody reads, but may want to see more of it. */
static void hps_growth_work__without_reader(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 n;

	for (n = 0; n < 3; n++)
		fake_data(fake, FAKE_SMALL);
	flush_delayed_work(&fake->link->growth.work);
	KUNIT_EXPECT_GT(test, fake->link->credit.window, 3);
	KUNIT_EXPECT_GT(test, fake->link->credit.rx_ready, 3);
	FAKE_EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->later, 0);
}

/* The program has the socket: it is done when that lets go of it. */
static void hps_growth_work__locked(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	u32 n;

	lock_sock(sk);
	for (n = 0; n < 3; n++)
		fake_data(fake, FAKE_SMALL);
	flush_delayed_work(&fake->link->growth.work);
	KUNIT_EXPECT_EQ(test, fake->link->credit.window, 3);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->later, HPS_LATER_GROW);
	release_sock(sk);
	flush_delayed_work(&fake->link->growth.work);
	KUNIT_EXPECT_GT(test, fake->link->credit.window, 3);
	FAKE_EXPECT_POSTED(test, fake);
}

static void hps_growth_later__planned_already(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_conn *conn = &fake->link->conn;
	u32 refs;

	hps_conn_get(conn);
	queue_delayed_work(hps_program_wq, &fake->link->growth.work, HZ);
	refs = kref_read(&conn->ref);
	hps_growth_later(conn);
	KUNIT_EXPECT_FALSE(test, timer_pending(&fake->link->growth.work.timer));
	flush_work(&fake->link->growth.work.work);
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), refs - 1);
}

/* Small ones that come back when there are enough large ones are not needed any more. */
static void hps_receives_consumed__outgrown(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	struct hps_link *link = fake->link;
	u64 reserved;

	fake_data(fake, 0);
	fake_read(fake);
	fake_data(fake, FAKE_SMALL);
	grow(fake, sk);
	KUNIT_EXPECT_GT(test, link->receives.size, 1024);
	KUNIT_EXPECT_EQ(test, link->receives.held, 1);
	reserved = link->receives.reserved;
	/* The window is full: it was for this one that room was left. */
	link->credit.window = hps_receives_used(link) - 1;
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, link->receives.reserved, reserved - 1024);
	FAKE_EXPECT_POSTED(test, fake);
	/* Nor charged, when the socket's lock has been free. */
	lock_sock(sk);
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, link->receives.reserved);
}

/* Memory of receives that hold what nobody has read. */
static u32 unread(struct hps_link *link)
{
	struct hps_buf *buf;
	u32 mem = 0;

	list_for_each_entry(buf, &link->conn.rxq, list)
		mem += buf->size;
	return mem;
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
	KUNIT_EXPECT_FALSE(test, list_empty(&link->receives.spare));
	fake_message(fake, HPS_MSG_SRCAVAIL, &src, sizeof(src));
	fake_data(fake, FAKE_SMALL);
	used = link->sq_used;
	link->sq_used = HPS_SQ_SIZE;
	fake_read(fake);
	link->sq_used = used;
	KUNIT_EXPECT_FALSE(test, list_empty(&link->receives.read));
	fake_link_end(fake);
	KUNIT_EXPECT_TRUE(test, list_empty(&link->receives.all));
	KUNIT_EXPECT_TRUE(test, list_empty(&link->receives.spare));
	KUNIT_EXPECT_TRUE(test, list_empty(&link->receives.read));
	KUNIT_EXPECT_EQ(test, link->receives.reserved, 0);
	/* What was not read can still be. */
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, unread(link));
	fake_read(fake);
	/* The socket may stay open for long. */
	lock_sock(sk);
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, 0);
}

static struct kunit_case growth_cases[] = {
	KUNIT_CASE(hps_growth_read__window),
	KUNIT_CASE(hps_growth_read__no_reason),
	KUNIT_CASE(hps_growth_read__size),
	KUNIT_CASE(hps_growth_read__no_memory),
	KUNIT_CASE(hps_growth_read__shut),
	KUNIT_CASE(hps_growth_read__fin),
	KUNIT_CASE(hps_growth_read__rcvbuf),
	KUNIT_CASE(hps_growth_read__widens),
	KUNIT_CASE(hps_growth_read__waits_for_credits),
	KUNIT_CASE(hps_receives_spent__last_while_waiting),
	KUNIT_CASE(hps_growth_read__waited_for_nothing),
	KUNIT_CASE(hps_growth_read__waits_for_reader),
	KUNIT_CASE(hps_growth_read__waits_for_longer),
	KUNIT_CASE(hps_growth_work__without_reader),
	KUNIT_CASE(hps_growth_work__locked),
	KUNIT_CASE(hps_growth_later__planned_already),
	KUNIT_CASE(hps_receives_consumed__outgrown),
	KUNIT_CASE(hps_receives_unmap__all),
	{}
};

UNIT_SUITE(growth, growth_cases);
