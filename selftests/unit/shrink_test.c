// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/shrink.c"

#include "fake.h"
#include "fake_link.h"

/* As a reader does between two reads. */
static void grow(struct fake_link *fake, struct sock *sk)
{
	lock_sock(sk);
	hps_growth_read(&fake->link->conn, sk);
	release_sock(sk);
	fake_sent_all(fake);
}

/* With receives of 64 KiB, no other posted, all of it read; and credits of the peer's. */
static struct fake_link *grown(struct kunit *test, struct sock **sk)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;

	*sk = fake_link_attach(fake);
	(*sk)->sk_rcvbuf = 1 << 20;
	link->peer_pads = true;
	link->credit.tx_granted = 32;
	while (link->receives.size < 65536) {
		fake_data(fake, 0);
		fake_read(fake);
		grow(fake, *sk);
	}
	while (fake_link_sized(fake, 65536) < fake->nr_receives) {
		fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
		fake_sent_all(fake);
	}
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&link->shrink->work));
	return fake;
}

/* Nothing came for so long, and the work has looked. */
static void idle(struct fake_link *fake, unsigned long time)
{
	fake->link->conn.rx_last = jiffies - time;
	if (!mod_delayed_work(hps_program_wq, &fake->link->shrink->work, 0))
		hps_conn_get(&fake->link->conn);
	flush_delayed_work(&fake->link->shrink->work);
}

/* What the peer does then. */
static void pad(struct fake_link *fake, u32 pads)
{
	const struct hps_credit *credit = &fake->link->credit;
	int tries;

	while (pads--) {
		/* It may have to be told of its credits, and be so after a moment only. */
		for (tries = 0; credit->rx_told == credit->rx_used && tries < HZ; tries++) {
			fake_sent_all(fake);
			schedule_timeout_uninterruptible(1);
		}
		fake_sent_all(fake);
		fake_message(fake, HPS_MSG_PAD, NULL, 0);
		FAKE_EXPECT_POSTED(fake->test, fake);
	}
	fake_sent_all(fake);
}

static u32 asked(struct fake_link *fake)
{
	struct fake_posted *shrink = fake_link_sent(fake, HPS_MSG_SHRINK);

	KUNIT_ASSERT_NOT_NULL(fake->test, shrink);
	KUNIT_EXPECT_EQ(fake->test, be32_to_cpu(shrink->head.smaller.size), 1024);
	return be32_to_cpu(shrink->head.smaller.pads);
}

/* All that was taken is given back, and counted. */
static void expect_first(struct fake_link *fake, struct sock *sk)
{
	const u32 first = (3 + HPS_CTRL_SLOTS) * 1024;
	struct hps_link *link = fake->link;
	struct kunit *test = fake->test;

	KUNIT_EXPECT_EQ(test, link->shrink->state, HPS_SHRINK_REST);
	KUNIT_EXPECT_EQ(test, link->receives.size, 1024);
	KUNIT_EXPECT_EQ(test, link->credit.window, 3);
	KUNIT_EXPECT_EQ(test, fake_link_sized(fake, 1024), fake->nr_receives);
	KUNIT_EXPECT_EQ(test, link->receives.reserved, first);
	KUNIT_EXPECT_TRUE(test, list_empty(&link->shrink->list));
	/* Nobody calls. */
	flush_delayed_work(&link->growth.work);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, first);
	FAKE_EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

static void hps_shrink_work__gives_back(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	u64 before = fake_counter(fake, HPS_STAT_WINDOW_SHRUNK);
	struct hps_link *link = fake->link;
	u32 window = link->credit.window, pads;

	idle(fake, 3600 * HZ);
	pads = asked(fake);
	KUNIT_EXPECT_EQ(test, pads, window + HPS_CTRL_SLOTS);
	/* It may not have heard of that. */
	fake_data(fake, 0);
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, fake_link_sized(fake, 65536), fake->nr_receives);
	pad(fake, 1);
	KUNIT_EXPECT_EQ(test, link->receives.size, 1024);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_WINDOW_SHRUNK), before);
	pad(fake, pads - 1);
	expect_first(fake, sk);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_WINDOW_SHRUNK), before + 1);
	/* Nor is it looked at any more. */
	flush_delayed_work(&link->shrink->work);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&link->shrink->work));
	KUNIT_EXPECT_TRUE(test, list_empty(&link->shrink->node));
	/* And all begins anew. */
	fake_data(fake, 0);
	fake_read(fake);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->receives.size, 8192);
	KUNIT_EXPECT_TRUE(test, delayed_work_pending(&link->shrink->work));
	FAKE_EXPECT_POSTED(test, fake);
}

/* The peer has other things to say, and keeps its credits for long. */
static void hps_shrink_work__control_messages(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	u32 pads, n;

	idle(fake, 3600 * HZ);
	pads = asked(fake);
	pad(fake, 1);
	for (n = 0; n < 2 * pads; n++) {
		fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
		FAKE_EXPECT_POSTED(test, fake);
	}
	pad(fake, pads - 1);
	expect_first(fake, sk);
}

/* What came before the first of them is read late, and has the old size. */
static void hps_shrink_work__read_between(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;
	u32 pads;

	idle(fake, 3600 * HZ);
	pads = asked(fake);
	fake_data(fake, 0);
	pad(fake, 2);
	fake_read(fake);
	FAKE_EXPECT_POSTED(test, fake);
	pad(fake, pads - 2);
	/* It was not read when the window became smaller. */
	KUNIT_EXPECT_EQ(test, link->credit.window, 4);
	idle(fake, 3600 * HZ);
	pad(fake, asked(fake));
	expect_first(fake, sk);
}

/* There is nothing of the stream between them. */
static void hps_shrink_work__data_between(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);

	idle(fake, 3600 * HZ);
	asked(fake);
	pad(fake, 1);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->link->conn.err, EPROTO);
}

/* There are small ones posted still, for messages before the first large one. */
static void hps_shrink_work__two_sizes(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	struct hps_link *link = fake->link;

	link->peer_pads = true;
	link->credit.tx_granted = 32;
	fake_data(fake, 0);
	fake_read(fake);
	grow(fake, sk);
	KUNIT_EXPECT_EQ(test, link->receives.size, 8192);
	KUNIT_EXPECT_GT(test, fake_link_sized(fake, 1024), 0);
	idle(fake, 3600 * HZ);
	pad(fake, asked(fake));
	expect_first(fake, sk);
}

/* The window alone has grown. */
static void hps_shrink_work__number(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	struct hps_link *link = fake->link;
	u32 n;

	link->peer_pads = true;
	link->credit.tx_granted = 32;
	for (n = 0; n < 3; n++)
		fake_data(fake, FAKE_SMALL);
	while (n--)
		fake_read(fake);
	flush_delayed_work(&link->growth.work);
	grow(fake, sk);
	KUNIT_EXPECT_GT(test, link->credit.window, 3);
	KUNIT_EXPECT_EQ(test, link->receives.size, 1024);
	idle(fake, 3600 * HZ);
	KUNIT_EXPECT_TRUE(test, list_empty(&link->shrink->list));
	pad(fake, asked(fake));
	expect_first(fake, sk);
}

/* The next step in size waits for data, and none comes. */
static void hps_shrink_work__waiting(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;

	spin_lock_bh(&link->conn.lock);
	hps_growth_set(&link->growth, HPS_GROWTH_WAITING, 1);
	spin_unlock_bh(&link->conn.lock);
	fake_data(fake, FAKE_SMALL);
	fake_read(fake);
	idle(fake, 3600 * HZ);
	pad(fake, asked(fake));
	KUNIT_EXPECT_EQ(test, link->growth.state, HPS_GROWTH_OPEN);
	expect_first(fake, sk);
}

/* Nothing is asked, and the memory for it given back. */
static void expect_nothing(struct fake_link *fake, bool again)
{
	struct hps_link *link = fake->link;
	struct kunit *test = fake->test;

	KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_SHRINK));
	KUNIT_EXPECT_EQ(test, link->shrink->state, HPS_SHRINK_REST);
	KUNIT_EXPECT_TRUE(test, list_empty(&link->shrink->list));
	KUNIT_EXPECT_EQ(test, delayed_work_pending(&link->shrink->work), again);
	KUNIT_EXPECT_EQ(test, list_empty(&link->shrink->node), !again);
	KUNIT_EXPECT_EQ(test, link->receives.size, 65536);
}

static void hps_shrink_work__not_idle(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);

	idle(fake, 0);
	expect_nothing(fake, true);
	idle(fake, (hps_shrink_after - 1) * HZ);
	expect_nothing(fake, true);
	/* What nobody has read is not taken away. */
	fake_data(fake, FAKE_SMALL);
	idle(fake, 3600 * HZ);
	expect_nothing(fake, true);
	/* A program has the socket. */
	fake_read(fake);
	lock_sock(sk);
	idle(fake, 3600 * HZ);
	expect_nothing(fake, true);
	release_sock(sk);
	idle(fake, 3600 * HZ);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SHRINK));
}

static void hps_shrink_work__cannot(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;
	u64 reserved = link->receives.reserved;
	u32 charged;

	link->credit.tx_used = link->credit.tx_granted;
	idle(fake, 3600 * HZ);
	expect_nothing(fake, true);
	link->credit.tx_used = 0;
	lock_sock(sk);
	charged = hps_sk(sk)->rx_charged;
	mock_fail(MOCK_ALLOC, BIT(3));
	KUNIT_EXPECT_EQ(test, hps_shrink_look(link, sk), HPS_SHRINK_AGAIN);
	release_sock(sk);
	expect_nothing(fake, true);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged);
	KUNIT_EXPECT_EQ(test, link->receives.reserved, reserved);
	/* This does not pass. */
	link->peer_pads = false;
	idle(fake, 3600 * HZ);
	expect_nothing(fake, false);
	link->peer_pads = true;
}

/* Who has our FIN grants credits with what he still sends. */
static void hps_shrink_work__fin_sent(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;

	link->conn.fin_sent = true;
	link->credit.tx_used = link->credit.tx_granted;
	idle(fake, 3600 * HZ);
	expect_nothing(fake, true);
	link->credit.tx_used = 0;
	idle(fake, 3600 * HZ);
	pad(fake, asked(fake));
	expect_first(fake, sk);
	link->conn.fin_sent = false;
}

static void press(void)
{
	hps_shrink_press();
	flush_work(&hps_shrink_pressure);
}

/* Where memory is short those give back that have been idle for a moment. */
static void hps_shrink_pressed__idle(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;

	/* What was refused before is the first one's. */
	press();
	link->shrink->pressed_until = jiffies;
	link->conn.rx_last = jiffies - 2 * HZ;
	press();
	KUNIT_EXPECT_FALSE(test, hps_shrink_is_pressed(link->shrink));
	flush_delayed_work(&link->shrink->work);
	expect_nothing(fake, true);
	KUNIT_EXPECT_FALSE(test, hps_share_take(link->receives.share, link->conn.hn,
						(u64)hps_mem_max_kb << 10,
						HPS_SHARE_GROW));
	press();
	KUNIT_EXPECT_TRUE(test, hps_shrink_is_pressed(link->shrink));
	flush_delayed_work(&link->shrink->work);
	pad(fake, asked(fake));
	expect_first(fake, sk);
}

/* Not those of another user, who would have nothing of it. */
static void hps_shrink_pressed__another_user(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;
	struct hps_share *share = hps_share_get(KUIDT_INIT(12345), &init_net);

	KUNIT_ASSERT_NOT_NULL(test, share);
	press();
	link->shrink->pressed_until = jiffies;
	KUNIT_EXPECT_FALSE(test, hps_share_take(share, link->conn.hn,
						(u64)hps_mem_max_kb << 10,
						HPS_SHARE_GROW));
	press();
	KUNIT_EXPECT_FALSE(test, hps_shrink_is_pressed(link->shrink));
	hps_share_put(share);
}

/* Who is busy is not asked again and again, but looks by itself, and soon. */
static void hps_shrink_pressed__busy(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;
	int n;

	for (n = 0; n < 2; n++) {
		link->conn.rx_last = jiffies;
		KUNIT_EXPECT_FALSE(test, hps_share_take(link->receives.share, link->conn.hn,
							(u64)hps_mem_max_kb << 10,
							HPS_SHARE_GROW));
		press();
		KUNIT_EXPECT_TRUE(test, hps_shrink_is_pressed(link->shrink));
		KUNIT_EXPECT_TRUE(test, delayed_work_pending(&link->shrink->work));
		if (n)
			KUNIT_EXPECT_TRUE(test, timer_pending(&link->shrink->work.timer));
		else
			flush_delayed_work(&link->shrink->work);
		KUNIT_EXPECT_TRUE(test, time_before_eq(link->shrink->work.timer.expires,
						       jiffies + HPS_SHRINK_PRESSED));
		expect_nothing(fake, true);
	}
}

/* As many as it had credits for crossed SHRINK, and nobody reads them. */
static void unread(struct fake_link *fake)
{
	while (!hps_credit_dry(&fake->link->credit)) {
		fake_data(fake, 0);
		FAKE_EXPECT_POSTED(fake->test, fake);
	}
}

static void hps_shrink_work__unread(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;
	u32 window = link->credit.window, pads;

	idle(fake, 3600 * HZ);
	pads = asked(fake);
	lock_sock(sk);
	unread(fake);
	/* Who waits for more is not to. */
	KUNIT_EXPECT_EQ(test, link->receives.held, window);
	KUNIT_EXPECT_TRUE(test, hps_receives_full(&link->conn));
	pad(fake, pads);
	KUNIT_EXPECT_EQ(test, link->shrink->state, HPS_SHRINK_REST);
	KUNIT_EXPECT_EQ(test, link->credit.window, window);
	KUNIT_EXPECT_TRUE(test, link->credit.dry);
	while (!list_empty(&link->conn.rxq))
		fake_read(fake);
	FAKE_EXPECT_POSTED(test, fake);
	release_sock(sk);
	fake_sent_all(fake);
	idle(fake, 3600 * HZ);
	pad(fake, asked(fake));
	expect_first(fake, sk);
}

/* A program that only looks gets all that SO_RCVBUF allows, as it would without. */
static void hps_shrink_work__looks(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;
	u32 window = link->credit.window, pads;

	idle(fake, 3600 * HZ);
	pads = asked(fake);
	unread(fake);
	pad(fake, pads);
	flush_delayed_work(&link->growth.work);
	KUNIT_EXPECT_GT(test, link->credit.window, window);
	fake_sent_all(fake);
	KUNIT_EXPECT_FALSE(test, hps_credit_dry(&link->credit));
	KUNIT_EXPECT_FALSE(test, hps_receives_full(&link->conn));
	FAKE_EXPECT_POSTED(test, fake);
}

/* A few of them: the window stays as much larger, until they are read. */
static void hps_shrink_work__some_unread(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;
	u32 pads;

	idle(fake, 3600 * HZ);
	pads = asked(fake);
	/* Growth, which has a reason then, is to wait for the socket. */
	lock_sock(sk);
	fake_data(fake, FAKE_SMALL);
	fake_data(fake, FAKE_SMALL);
	pad(fake, pads);
	KUNIT_EXPECT_EQ(test, link->credit.window, 5);
	KUNIT_EXPECT_EQ(test, link->receives.size, 1024);
	KUNIT_EXPECT_FALSE(test, hps_receives_full(&link->conn));
	fake_read(fake);
	fake_read(fake);
	release_sock(sk);
	flush_delayed_work(&link->growth.work);
	idle(fake, 3600 * HZ);
	pad(fake, asked(fake));
	expect_first(fake, sk);
}

/* The peer has ended the stream: it is told of credits nonetheless. */
static void hps_shrink_work__fin(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	u32 pads;

	idle(fake, 3600 * HZ);
	pads = asked(fake);
	fake_message(fake, HPS_MSG_FIN, NULL, 0);
	pad(fake, pads);
	expect_first(fake, sk);
}

/* Data came between the look and the question. */
static void hps_receives_shrink__not_idle(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;
	u64 taken = hps_share_taken();

	fake_data(fake, 0);
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, hps_receives_shrink(link, 1024, 3), -EAGAIN);
	release_sock(sk);
	expect_nothing(fake, true);
	KUNIT_EXPECT_EQ(test, hps_share_taken(), taken);
	KUNIT_EXPECT_EQ(test, link->shrink->owed, 0);
}

/* Where no memory may be taken, be it of the share or of the socket's. */
static void hps_receives_shrink__all_taken(struct kunit *test)
{
	unsigned int max = hps_mem_max_kb;
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	u32 charged;

	lock_sock(sk);
	release_sock(sk);
	charged = hps_sk(sk)->rx_charged;
	hps_mem_max_kb = 1024;
	idle(fake, 3600 * HZ);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, charged);
	pad(fake, asked(fake));
	hps_mem_max_kb = max;
	expect_first(fake, sk);
	KUNIT_EXPECT_EQ(test, fake->link->shrink->owed, 0);
}

/* Smaller ones would take too much before they give anything: fewer, then. */
static void hps_shrink_work__as_large(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;
	struct fake_posted *shrink;
	u32 pads;

	hps_tune_set(&link->tuning, HPS_TUNE_BUF_FIRST, 32768);
	idle(fake, 3600 * HZ);
	KUNIT_EXPECT_TRUE(test, list_empty(&link->shrink->list));
	shrink = fake_link_sent(fake, HPS_MSG_SHRINK);
	KUNIT_ASSERT_NOT_NULL(test, shrink);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(shrink->head.smaller.size),
			65536 + sizeof(struct hps_hdr));
	pads = be32_to_cpu(shrink->head.smaller.pads);
	pad(fake, pads);
	KUNIT_EXPECT_EQ(test, link->shrink->state, HPS_SHRINK_REST);
	KUNIT_EXPECT_EQ(test, link->receives.size, 65536);
	KUNIT_EXPECT_EQ(test, link->credit.window, 3);
	KUNIT_EXPECT_EQ(test, link->receives.reserved, (3 + HPS_CTRL_SLOTS) * 65536);
	FAKE_EXPECT_POSTED(test, fake);
}

/* Receives for READDONE and SINKAVAIL are of one size, and not among those that are used up. */
static void hps_receives_extra__while_shrinking(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);
	struct hps_link *link = fake->link;
	u32 pads;

	idle(fake, 3600 * HZ);
	pads = asked(fake);
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, hps_receives_extra(link, sk, 9), -EAGAIN);
	release_sock(sk);
	pad(fake, pads);
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, hps_receives_extra(link, sk, 9), 0);
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, link->receives.extra, 9);
	FAKE_EXPECT_POSTED(test, fake);
	/* They are, if they were there before. */
	fake_data(fake, 0);
	fake_read(fake);
	grow(fake, sk);
	KUNIT_EXPECT_GT(test, link->receives.size, 1024);
	idle(fake, 3600 * HZ);
	pads = asked(fake);
	KUNIT_EXPECT_EQ(test, pads, link->credit.window + HPS_CTRL_SLOTS + 9);
	pad(fake, pads);
	KUNIT_EXPECT_EQ(test, fake_link_sized(fake, 1024), fake->nr_receives);
	KUNIT_EXPECT_EQ(test, link->receives.count, fake->nr_receives);
	FAKE_EXPECT_POSTED(test, fake);
}

/* It ends in the middle: no memory is left, nor a reference. */
static void hps_shrink_end__padded(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);

	idle(fake, 3600 * HZ);
	asked(fake);
	fake_data(fake, FAKE_SMALL);
	pad(fake, 2);
	KUNIT_EXPECT_EQ(test, fake->link->shrink->state, HPS_SHRINK_PADDED);
	fake_link_end(fake);
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&fake->link->shrink->work));
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
}

static void hps_shrink_end__asked(struct kunit *test)
{
	struct sock *sk;
	struct fake_link *fake = grown(test, &sk);

	idle(fake, 3600 * HZ);
	asked(fake);
	KUNIT_EXPECT_FALSE(test, list_empty(&fake->link->shrink->list));
	hps_shrink_plan(fake->link);
	fake_link_end(fake);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->link->shrink->list));
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->link->shrink->node));
	KUNIT_EXPECT_FALSE(test, delayed_work_pending(&fake->link->shrink->work));
	KUNIT_EXPECT_EQ(test, hps_share_taken(), 0);
}

static struct kunit_case shrink_cases[] = {
	KUNIT_CASE(hps_shrink_work__gives_back),
	KUNIT_CASE(hps_shrink_work__control_messages),
	KUNIT_CASE(hps_shrink_work__read_between),
	KUNIT_CASE(hps_shrink_work__data_between),
	KUNIT_CASE(hps_shrink_work__two_sizes),
	KUNIT_CASE(hps_shrink_work__number),
	KUNIT_CASE(hps_shrink_work__waiting),
	KUNIT_CASE(hps_shrink_work__not_idle),
	KUNIT_CASE(hps_shrink_work__cannot),
	KUNIT_CASE(hps_shrink_work__fin_sent),
	KUNIT_CASE(hps_shrink_pressed__idle),
	KUNIT_CASE(hps_shrink_pressed__another_user),
	KUNIT_CASE(hps_shrink_pressed__busy),
	KUNIT_CASE(hps_shrink_work__unread),
	KUNIT_CASE(hps_shrink_work__looks),
	KUNIT_CASE(hps_shrink_work__some_unread),
	KUNIT_CASE(hps_shrink_work__fin),
	KUNIT_CASE(hps_receives_shrink__not_idle),
	KUNIT_CASE(hps_receives_shrink__all_taken),
	KUNIT_CASE(hps_shrink_work__as_large),
	KUNIT_CASE(hps_receives_extra__while_shrinking),
	KUNIT_CASE(hps_shrink_end__padded),
	KUNIT_CASE(hps_shrink_end__asked),
	{}
};

UNIT_SUITE(shrink, shrink_cases);
