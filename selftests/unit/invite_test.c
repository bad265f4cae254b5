// SPDX-License-Identifier: GPL-2.0
#include <net/sock.h>

#include "unit.h"

#include "conn.h"
#include "net.h"
#include "recv.h"
#include "sock.h"

/* How long a reader shows its memory: never over before what a test has happen. */
static unsigned long patience = 60 * HZ;

#undef msecs_to_jiffies
#define msecs_to_jiffies(ms)	((void)(ms), patience)

#include "af_hpsock/invite.c"

#include "fake.h"
#include "stats.h"

/* Bytes that a reader has room for. */
#define LEN	524288

/**
 * struct inviting - a connection that can show memory, and a reader that waits with some
 * @reader: the reader
 * @ops: the transport
 * @fake: the connection
 * @sk: its socket
 * @timeo: the reader's
 * @piece: bytes of its memory in one piece
 * @asked: of pin(), for so many, or 0
 * @unpinned: of unpin(), how often, with @done bytes
 * @done: likewise
 * @shows: of show(), how often, with @len bytes
 * @len: likewise
 * @refuses: show() does nothing
 * @stays: it is shown until @work, or until it is taken back
 * @over: @work ends the stream, and not that alone
 * @parts: the socket has no connection any more when it is taken back
 * @shown: it is
 * @withdrawn: how often it was taken back, with @written bytes
 * @written: likewise
 * @work: what happens meanwhile
 */
struct inviting {
	struct hps_reader reader;
	struct hps_transport ops;
	struct fake_conn *fake;
	struct sock *sk;
	long timeo;
	u32 piece;
	u32 asked;
	int unpinned;
	u32 done;
	int shows;
	u32 len;
	bool refuses;
	bool stays;
	bool over;
	bool parts;
	bool shown;
	int withdrawn;
	u32 written;
	struct delayed_work work;
};

static struct inviting *inviting_of(struct hps_conn *conn)
{
	return container_of(conn->ops, struct inviting, ops);
}

static u32 inviting_pin(struct hps_reader *reader, u32 len, struct hps_pages *sink)
{
	struct inviting *in = container_of(reader, struct inviting, reader);

	in->asked = len;
	sink->len = min(len, in->piece);
	return sink->len;
}

static void inviting_unpin(struct hps_reader *reader, struct hps_pages *sink, u32 done)
{
	struct inviting *in = container_of(reader, struct inviting, reader);

	in->unpinned++;
	in->done = done;
}

static bool inviting_show(struct hps_conn *conn, const struct hps_pages *mem)
{
	struct inviting *in = inviting_of(conn);

	KUNIT_EXPECT_TRUE(in->fake->test, sock_owned_by_user_nocheck(in->sk));
	in->shows++;
	in->len = mem->len;
	in->shown = in->stays;
	return !in->refuses;
}

static bool inviting_shown(struct hps_conn *conn)
{
	return READ_ONCE(inviting_of(conn)->shown);
}

/* It sleeps, so others may have the socket meanwhile, and do with it what they like. */
static u32 inviting_withdraw(struct hps_conn *conn)
{
	struct inviting *in = inviting_of(conn);

	KUNIT_EXPECT_FALSE(in->fake->test, sock_owned_by_user_nocheck(in->sk));
	KUNIT_EXPECT_EQ(in->fake->test, in->unpinned, 0);
	in->withdrawn++;
	WRITE_ONCE(in->shown, false);
	if (in->parts)
		RCU_INIT_POINTER(hps_sk(in->sk)->conn, NULL);
	return in->written;
}

static void inviting_work(struct work_struct *work)
{
	struct inviting *in = container_of(work, struct inviting, work.work);

	if (in->over)
		WRITE_ONCE(in->sk->sk_shutdown, in->sk->sk_shutdown | RCV_SHUTDOWN);
	else
		WRITE_ONCE(in->shown, false);
	FAKE_LOCKED(in->fake, hps_conn_wake(&in->fake->conn));
}

/* One for which it is worth it. */
static struct inviting *inviting(struct kunit *test)
{
	struct inviting *in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);
	struct hps_conn *conn;

	KUNIT_ASSERT_NOT_NULL(test, in);
	in->fake = fake_conn(test, TCP_ESTABLISHED);
	in->sk = fake_attach(test, in->fake);
	conn = &in->fake->conn;
	in->ops = *conn->ops;
	in->ops.show = inviting_show;
	in->ops.shown = inviting_shown;
	in->ops.withdraw = inviting_withdraw;
	conn->ops = &in->ops;
	conn->invites = true;
	conn->rx_show_max = HPS_SOURCE_MAX;
	in->reader.pin = inviting_pin;
	in->reader.unpin = inviting_unpin;
	in->reader.len = LEN;
	in->piece = LEN;
	in->timeo = MAX_SCHEDULE_TIMEOUT;
	KUNIT_ASSERT_EQ(test, hps_tune_set(&hps_sk(in->sk)->tuning, HPS_TUNE_ZCOPY_SINK, 1), 0);
	INIT_DELAYED_WORK(&in->work, inviting_work);
	return in;
}

/* There is nothing to read. */
static bool invite(struct inviting *in)
{
	bool ret;

	in->unpinned = 0;
	lock_sock(in->sk);
	ret = hps_invite(in->sk, &in->fake->conn, &in->reader, &in->timeo);
	release_sock(in->sk);
	return ret;
}

/* The reader waits as others do, and nothing was done for it. */
static void expect_not(struct inviting *in)
{
	struct kunit *test = in->fake->test;
	int shows = in->shows;

	in->asked = 0;
	KUNIT_EXPECT_FALSE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->asked, 0);
	KUNIT_EXPECT_EQ(test, in->shows, shows);
	KUNIT_EXPECT_FALSE(test, in->reader.parted);
}

static void expect_shown(struct inviting *in)
{
	int shows = in->shows;

	invite(in);
	KUNIT_EXPECT_EQ(in->fake->test, in->shows, shows + 1);
}

/* As if the last time nothing had been in vain. */
static void forget(struct inviting *in)
{
	in->fake->conn.invites = true;
	in->fake->conn.invite_skip = 0;
	in->fake->conn.invite_pause = 0;
}

/* Each of these is a reason not to. */
static void hps_invite_worth__not(struct kunit *test)
{
	struct inviting *in = inviting(test);
	struct hps_conn *conn = &in->fake->conn;
	struct hps_reader *r = &in->reader;

	in->written = LEN;
	/* The last time, no large send had come. */
	conn->invites = false;
	expect_not(in);
	conn->invites = true;
	/* splice() */
	r->pin = NULL;
	expect_not(in);
	r->pin = inviting_pin;
	/* Nobody looks at the bytes. */
	r->blind = true;
	expect_not(in);
	r->blind = false;
	/* Or they stay. */
	r->flags = MSG_PEEK;
	expect_not(in);
	r->flags = 0;
	/* Reading stops at the mark. */
	conn->rx_urgent = HPS_URGENT_AHEAD;
	expect_not(in);
	conn->rx_urgent = HPS_URGENT_NONE;
	/* The memory may be protected, and would be copied. */
	atomic_set(&conn->holds, 1);
	expect_not(in);
	atomic_set(&conn->holds, 0);
	/* The peer is not to be shown anything, or cannot be shown so much in one piece. */
	conn->rx_show_max = 0;
	expect_not(in);
	conn->rx_show_max = 131071;
	expect_not(in);
	conn->rx_show_max = HPS_SOURCE_MAX;
	/* Too little is wanted. */
	r->len = 131071;
	expect_not(in);
	r->len = LEN;
	r->copied = LEN - 131071;
	expect_not(in);
	r->copied = 0;
	expect_shown(in);
}

static void hps_invite_worth__tunables(struct kunit *test)
{
	struct inviting *in = inviting(test);
	struct hps_tuning *tuning = &hps_sk(in->sk)->tuning;

	in->written = LEN;
	KUNIT_EXPECT_EQ(test, hps_tune_set(tuning, HPS_TUNE_ZCOPY_SINK, 0), 0);
	expect_not(in);
	/* Unless a program or the administrator trusts the peer. */
	KUNIT_EXPECT_EQ(test, hps_tune_set(tuning, HPS_TUNE_ZCOPY_SINK, -1), 0);
	expect_not(in);
	KUNIT_EXPECT_EQ(test, hps_tune_set(tuning, HPS_TUNE_ZCOPY_SINK, 1), 0);
	KUNIT_EXPECT_EQ(test, hps_tune_set(tuning, HPS_TUNE_ZCOPY, HPSOCK_ZCOPY_OFF), 0);
	expect_not(in);
	KUNIT_EXPECT_EQ(test, hps_tune_set(tuning, HPS_TUNE_ZCOPY, HPSOCK_ZCOPY_WAIT), 0);
	KUNIT_EXPECT_EQ(test, hps_tune_set(tuning, HPS_TUNE_ZCOPY_THRESHOLD, LEN + 1), 0);
	expect_not(in);
	KUNIT_EXPECT_EQ(test, hps_tune_set(tuning, HPS_TUNE_ZCOPY_THRESHOLD, LEN), 0);
	expect_shown(in);
}

/* So many bytes as are wanted still, and one key can be for. */
static void hps_invite_worth__length(struct kunit *test)
{
	struct inviting *in = inviting(test);
	struct hps_conn *conn = &in->fake->conn;

	in->reader.copied = 1000;
	invite(in);
	KUNIT_EXPECT_EQ(test, in->asked, LEN - 1000);
	KUNIT_EXPECT_EQ(test, in->len, LEN - 1000);
	forget(in);
	conn->rx_show_max = LEN / 2;
	invite(in);
	KUNIT_EXPECT_EQ(test, in->asked, LEN / 2);
	KUNIT_EXPECT_EQ(test, in->len, LEN / 2);
}

/* A reader that would have shown it only waits. Others do not count. */
static void hps_invite_worth__skips(struct kunit *test)
{
	struct inviting *in = inviting(test);
	struct hps_conn *conn = &in->fake->conn;

	in->written = LEN;
	conn->invite_skip = 2;
	expect_not(in);
	KUNIT_EXPECT_EQ(test, conn->invite_skip, 1);
	in->reader.flags = MSG_PEEK;
	expect_not(in);
	in->reader.flags = 0;
	KUNIT_EXPECT_EQ(test, conn->invite_skip, 1);
	expect_not(in);
	expect_shown(in);
}

/* How many readers only wait before one shows its memory. */
static u32 skipped(struct inviting *in)
{
	int shows = in->shows;
	u32 n;

	for (n = 0; n < 2000; n++) {
		invite(in);
		if (in->shows != shows)
			break;
	}
	return n;
}

/* It is what is in one piece that has to be enough. */
static void hps_invite__piece(struct kunit *test)
{
	struct inviting *in = inviting(test);

	in->written = 1000;
	in->piece = 0;
	KUNIT_EXPECT_FALSE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->shows, 0);
	KUNIT_EXPECT_EQ(test, in->unpinned, 0);
	forget(in);
	in->piece = 131071;
	KUNIT_EXPECT_FALSE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->shows, 0);
	KUNIT_EXPECT_EQ(test, in->unpinned, 1);
	KUNIT_EXPECT_EQ(test, in->done, 0);
	/* It was pinned in vain, and would be again. */
	in->asked = 0;
	KUNIT_EXPECT_FALSE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->asked, 0);
	forget(in);
	in->piece = 131072;
	KUNIT_EXPECT_TRUE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->shows, 1);
	KUNIT_EXPECT_EQ(test, in->len, 131072);
}

/* Another reader may have it shown, or there is no key: that is not to be tried each time. */
static void hps_invite__refused(struct kunit *test)
{
	struct inviting *in = inviting(test);

	in->refuses = true;
	in->stays = true;
	KUNIT_EXPECT_FALSE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->withdrawn, 0);
	KUNIT_EXPECT_EQ(test, in->unpinned, 1);
	KUNIT_EXPECT_EQ(test, in->done, 0);
	KUNIT_EXPECT_EQ(test, in->timeo, MAX_SCHEDULE_TIMEOUT);
	in->asked = 0;
	KUNIT_EXPECT_FALSE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->asked, 0);
	in->refuses = false;
	in->stays = false;
	KUNIT_EXPECT_EQ(test, skipped(in), 15);
}

static void hps_invite__written(struct kunit *test)
{
	struct inviting *in = inviting(test);
	struct hps_conn *conn = &in->fake->conn;
	u64 before = hps_stat_read(conn->hn, HPS_STAT_RX_WRITTEN);

	in->written = 200000;
	in->reader.copied = 1000;
	conn->invite_pause = 64;
	conn->rx_stamp = 4711;
	in->sk->sk_peek_off = 200100;
	KUNIT_EXPECT_TRUE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->withdrawn, 1);
	KUNIT_EXPECT_EQ(test, in->unpinned, 1);
	KUNIT_EXPECT_EQ(test, in->done, 200000);
	KUNIT_EXPECT_EQ(test, in->reader.copied, 201000);
	KUNIT_EXPECT_FALSE(test, in->reader.parted);
	KUNIT_EXPECT_EQ(test, in->reader.stamp, 4711);
	/* SO_PEEK_OFF counts from the first byte that was not read. */
	KUNIT_EXPECT_EQ(test, in->sk->sk_peek_off, 100);
	KUNIT_EXPECT_EQ(test, hps_stat_read(conn->hn, HPS_STAT_RX_WRITTEN), before + 200000);
	/* It goes on like that. */
	KUNIT_EXPECT_TRUE(test, conn->invites);
	KUNIT_EXPECT_EQ(test, conn->invite_pause, 0);
	in->written = 1000;
	KUNIT_EXPECT_TRUE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->reader.copied, 202000);
}

/* After a time in vain the next 16 only wait, and up to 1024; well, it begins anew. */
static void hps_invite_went__in_vain(struct kunit *test)
{
	static const struct {
		u32 skipped;
		u32 written;
	} cases[] = {
		{ 0, 0 }, { 16, 0 }, { 64, 0 }, { 256, 0 }, { 1024, 0 }, { 1024, 10 },
		{ 0, 0 }, { 16, 10 }, { 0, 10 },
	};
	struct inviting *in = inviting(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		in->written = cases[i].written;
		KUNIT_EXPECT_EQ(test, skipped(in), cases[i].skipped);
		KUNIT_EXPECT_EQ(test, in->done, cases[i].written);
		if (cases[i].written)
			continue;
		/* Until a large send has come to a reader that waited. */
		expect_not(in);
		in->reader.waited = true;
		in->reader.placed = true;
		hps_invite_learn(&in->fake->conn, &in->reader);
	}
	KUNIT_EXPECT_EQ(test, in->reader.copied, 30);
}

/* It ends when what was shown is over, and not later. */
static void hps_invite_wait__woken(struct kunit *test)
{
	struct inviting *in = inviting(test);
	unsigned long start = jiffies;

	in->stays = true;
	in->written = LEN;
	in->timeo = 100 * HZ;
	schedule_delayed_work(&in->work, HZ / 20);
	KUNIT_EXPECT_TRUE(test, invite(in));
	cancel_delayed_work_sync(&in->work);
	KUNIT_EXPECT_EQ(test, in->withdrawn, 1);
	/* As long as it took. */
	KUNIT_EXPECT_LE(test, in->timeo, 100 * HZ - HZ / 20 + 1);
	KUNIT_EXPECT_GE(test, in->timeo, 100 * HZ - (long)(jiffies - start));
	KUNIT_EXPECT_GT(test, in->timeo, 100 * HZ - (long)patience);
}

/* The end of the stream, before or meanwhile, is another reason. */
static void hps_invite_wait__over(struct kunit *test)
{
	struct inviting *in = inviting(test);
	unsigned long start = jiffies;

	in->stays = true;
	in->over = true;
	schedule_delayed_work(&in->work, HZ / 20);
	KUNIT_EXPECT_FALSE(test, invite(in));
	cancel_delayed_work_sync(&in->work);
	KUNIT_EXPECT_EQ(test, in->withdrawn, 1);
	forget(in);
	KUNIT_EXPECT_FALSE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->withdrawn, 2);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, start + patience));
	KUNIT_EXPECT_EQ(test, in->timeo, MAX_SCHEDULE_TIMEOUT);
}

static void hps_invite_wait__signal(struct kunit *test)
{
	struct inviting *in = inviting(test);
	unsigned long start = jiffies;

	in->stays = true;
	set_thread_flag(TIF_SIGPENDING);
	KUNIT_EXPECT_FALSE(test, invite(in));
	clear_thread_flag(TIF_SIGPENDING);
	KUNIT_EXPECT_EQ(test, in->withdrawn, 1);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, start + patience));
}

/* SO_RCVTIMEO is less than its patience. */
static void hps_invite_wait__timeo(struct kunit *test)
{
	struct inviting *in = inviting(test);
	unsigned long start = jiffies;

	in->stays = true;
	in->timeo = HZ / 20;
	KUNIT_EXPECT_FALSE(test, invite(in));
	KUNIT_EXPECT_EQ(test, in->timeo, 0);
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, start + HZ / 20));
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, start + patience));
	KUNIT_EXPECT_EQ(test, in->withdrawn, 1);
}

/* After a while it goes on to wait, without. */
static void hps_invite_wait__patience(struct kunit *test)
{
	struct inviting *in = inviting(test);
	unsigned long start = jiffies;

	in->stays = true;
	in->timeo = 10 * HZ;
	patience = HZ / 2;
	KUNIT_EXPECT_FALSE(test, invite(in));
	patience = 60 * HZ;
	KUNIT_EXPECT_TRUE(test, time_after_eq(jiffies, start + HZ / 2));
	KUNIT_EXPECT_EQ(test, in->timeo, 10 * HZ - HZ / 2);
	KUNIT_EXPECT_EQ(test, in->withdrawn, 1);
	KUNIT_EXPECT_EQ(test, in->unpinned, 1);
}

/* Another thread has disconnected the socket meanwhile; what had come is the reader's. */
static void hps_invite__parted(struct kunit *test)
{
	static const u32 written[] = { 0, 1000 };
	struct inviting *in;
	int i;

	for (i = 0; i < ARRAY_SIZE(written); i++) {
		in = inviting(test);
		in->parts = true;
		in->written = written[i];
		KUNIT_EXPECT_TRUE(test, invite(in));
		KUNIT_EXPECT_TRUE(test, in->reader.parted);
		KUNIT_EXPECT_EQ(test, in->reader.copied, written[i]);
		KUNIT_EXPECT_EQ(test, in->unpinned, 1);
		/* As it was, for who ends it. */
		rcu_assign_pointer(hps_sk(in->sk)->conn, &in->fake->conn);
	}
}

/* It is the readers that had to wait that tell, and only by what came then. */
static void hps_invite_learn__each(struct kunit *test)
{
	static const struct {
		bool waited;
		bool placed;
		bool before;
		bool after;
	} cases[] = {
		{ true, true, false, true },
		{ true, false, true, false },
		{ false, true, false, false },
		{ false, false, true, true },
	};
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_reader r = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		r.waited = cases[i].waited;
		r.placed = cases[i].placed;
		fake->conn.invites = cases[i].before;
		hps_invite_learn(&fake->conn, &r);
		KUNIT_EXPECT_EQ(test, fake->conn.invites, cases[i].after);
		/* What is read next is another matter. */
		KUNIT_EXPECT_FALSE(test, r.waited);
		KUNIT_EXPECT_FALSE(test, r.placed);
	}
}

static struct kunit_case invite_cases[] = {
	KUNIT_CASE(hps_invite_worth__not),
	KUNIT_CASE(hps_invite_worth__tunables),
	KUNIT_CASE(hps_invite_worth__length),
	KUNIT_CASE(hps_invite_worth__skips),
	KUNIT_CASE(hps_invite_wait__woken),
	KUNIT_CASE(hps_invite_wait__over),
	KUNIT_CASE(hps_invite_wait__signal),
	KUNIT_CASE(hps_invite_wait__timeo),
	KUNIT_CASE(hps_invite_wait__patience),
	KUNIT_CASE(hps_invite_went__in_vain),
	KUNIT_CASE(hps_invite__piece),
	KUNIT_CASE(hps_invite__refused),
	KUNIT_CASE(hps_invite__written),
	KUNIT_CASE(hps_invite__parted),
	KUNIT_CASE(hps_invite_learn__each),
	{}
};

UNIT_SUITE(invite, invite_cases);
