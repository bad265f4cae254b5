// SPDX-License-Identifier: GPL-2.0
/*
 * A word is asked by two requests of the device's, which a test answers by writing where
 * they were to put what they found. How readers set theirs is in target_test.c.
 */
#include "unit.h"

#include "af_hpsock/rendezvous.c"

#include "fake.h"
#include "fake_link.h"
#include "conn_tx.h"
#include "lent.h"
#include "source.h"
#include "stream.h"
#include "target.h"

/* What the peer told of its word, and what it says there. */
#define WORD_ADDR	0x8765432100000040ULL
#define WORD_RKEY	99
#define SINK_ADDR	0x1234567800000010ULL
#define SINK_RKEY	77

/* What is lent, and so much is shown. */
#define LEN	(2 * PAGE_SIZE)

static struct fake_link *attached(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	fake_link_attach(fake);
	fake->link->asks = true;
	return fake;
}

static int prepare(struct fake_link *fake)
{
	struct sock *sk = fake->link->conn.sk;
	int ret;

	lock_sock(sk);
	ret = hps_rendezvous_prepare(fake->link);
	release_sock(sk);
	return ret;
}

/* Readers are to wait at our word. */
static void wanted(struct fake_link *fake)
{
	fake->link->is_asked = true;
	fake->link->tuning.own[HPS_TUNE_ZCOPY_SYNC] = HPSOCK_ZCOPY_SYNC_CAS;
}

/* WORD comes in. */
static void word(struct fake_link *fake, u64 addr)
{
	struct hps_word word = { .addr = cpu_to_be64(addr), .rkey = cpu_to_be32(WORD_RKEY) };

	fake_message(fake, HPS_MSG_WORD, &word, sizeof(word));
}

/* One that has lent something, and knows the peer's word. */
static struct fake_link *knows(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	KUNIT_ASSERT_EQ(test, fake_expect(fake), 0);
	word(fake, WORD_ADDR);
	KUNIT_ASSERT_TRUE(test, fake->link->rendezvous->peer_told);
	KUNIT_ASSERT_EQ(test, fake->shut, 0);
	return fake;
}

static bool ask(struct fake_link *fake)
{
	return FAKE_LINK_LOCKED(fake, hps_rendezvous_ask(fake->link));
}

/* The device finds this where the word is. */
static void finds(struct fake_link *fake, u64 word, u32 len)
{
	struct hps_shown *answer = (void *)fake->link->rendezvous->answer->buf.data;

	answer->word = word;
	answer->sink = (struct hps_sinkavail){
		.addr = cpu_to_be64(SINK_ADDR), .rkey = cpu_to_be32(SINK_RKEY),
		.len = cpu_to_be32(len),
	};
	fake_sent(fake, IB_WC_SUCCESS);
}

/* What is queued goes, if it may. */
static void push(struct fake_link *fake)
{
	spin_lock_bh(&fake->link->conn.lock);
	hps_stream_push(&fake->link->conn);
	spin_unlock_bh(&fake->link->conn.lock);
}

/* One message that costs a credit. */
static void send_some(struct fake_link *fake)
{
	struct hps_buf *buf = fake_tx(fake->test, &fake->link->conn, 4096, 100);

	KUNIT_EXPECT_EQ(fake->test, fake_send(fake, buf, 100, -1), 0);
}

/* The device has taken all of it, though nobody asked for a completion. */
static void done(struct fake_link *fake)
{
	spin_lock_bh(&fake->link->conn.lock);
	hps_post_ask(fake->link);
	spin_unlock_bh(&fake->link->conn.lock);
	fake_sent_all(fake);
}

/* What it takes to ask is there before anything is lent, and no sooner. */
static void hps_rendezvous_expect__once(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	const struct hps_rendezvous *rv;

	KUNIT_EXPECT_NULL(test, fake->link->rendezvous);
	KUNIT_EXPECT_EQ(test, fake_expect(fake), 0);
	rv = fake->link->rendezvous;
	KUNIT_ASSERT_NOT_NULL(test, rv);
	KUNIT_EXPECT_NOT_NULL(test, rv->answer);
	KUNIT_EXPECT_NULL(test, rv->memory);
	KUNIT_EXPECT_EQ(test, fake_expect(fake), 0);
	KUNIT_EXPECT_PTR_EQ(test, fake->link->rendezvous, rv);
}

static void hps_rendezvous_expect__not_here(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	fake->link->asks = false;
	KUNIT_EXPECT_EQ(test, fake_expect(fake), 0);
	KUNIT_EXPECT_NULL(test, fake->link->rendezvous);
	/* Between records nothing is shown. */
	fake = attached(test);
	fake->link->conn.records = true;
	KUNIT_EXPECT_EQ(test, fake_expect(fake), 0);
	KUNIT_EXPECT_NULL(test, fake->link->rendezvous);
	fake->link->conn.records = false;
}

static void hps_rendezvous_expect__fails(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	int i;

	/* The first is hps_link.targets. */
	for (i = 1; i < 3; i++) {
		mock_fail(MOCK_ALLOC, BIT(fake->link->targets ? i - 1 : i));
		KUNIT_EXPECT_EQ(test, fake_expect(fake), -ENOMEM);
		KUNIT_EXPECT_FALSE(test, fake->link->lends);
	}
	mock_fail(MOCK_MAP, BIT(0));
	KUNIT_EXPECT_EQ(test, fake_expect(fake), -ENOMEM);
	mock_fail(MOCK_MAP, 0);
	KUNIT_EXPECT_EQ(test, fake_expect(fake), 0);
	KUNIT_EXPECT_TRUE(test, fake->link->lends);
}

/* The word is there before a reader shows memory, if that is where it waits. */
static void hps_rendezvous_prepare__once(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_shown *memory;

	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
	KUNIT_EXPECT_NULL(test, fake->link->rendezvous);
	KUNIT_EXPECT_FALSE(test, FAKE_LINK_LOCKED(fake, hps_rendezvous_used(fake->link)));
	wanted(fake);
	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
	KUNIT_EXPECT_TRUE(test, FAKE_LINK_LOCKED(fake, hps_rendezvous_used(fake->link)));
	memory = fake->link->rendezvous->memory;
	KUNIT_ASSERT_NOT_NULL(test, memory);
	KUNIT_EXPECT_EQ(test, memory->word, 0);
	/* An atomic has to have it so. */
	KUNIT_EXPECT_EQ(test, fake->link->rendezvous->key.mr->iova % sizeof(u64), 0);
	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
	KUNIT_EXPECT_PTR_EQ(test, fake->link->rendezvous->memory, memory);
}

/* A peer that cannot ask is not told. */
static void hps_rendezvous_prepare__not_asked(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	wanted(fake);
	fake->link->is_asked = false;
	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
	KUNIT_EXPECT_NULL(test, fake->link->rendezvous);
}

static void hps_rendezvous_prepare__fails(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	int i;

	wanted(fake);
	for (i = 0; i < 2; i++) {
		mock_fail(MOCK_ALLOC, BIT(fake->link->rendezvous ? i - 1 : i));
		KUNIT_EXPECT_EQ(test, prepare(fake), -ENOMEM);
		KUNIT_EXPECT_FALSE(test, FAKE_LINK_LOCKED(fake, hps_rendezvous_used(fake->link)));
	}
	mock_fail(MOCK_ALLOC, BIT(0));
	KUNIT_EXPECT_EQ(test, prepare(fake), -ENOMEM);
	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
}

static void hps_rendezvous_hear__bad(struct kunit *test)
{
	static const u64 addrs[] = { WORD_ADDR + 1, WORD_ADDR + 4, U64_MAX - 7, U64_MAX - 15 };
	struct fake_link *fake = attached(test);
	u64 before = fake_counter(fake, HPS_STAT_VIOLATION_SINK), n = 1;
	int i;

	/* Before anything was lent */
	word(fake, WORD_ADDR);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_VIOLATION_SINK), before + n++);
	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		fake = attached(test);
		KUNIT_ASSERT_EQ(test, fake_expect(fake), 0);
		word(fake, addrs[i]);
		KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_VIOLATION_SINK), before + n++);
		KUNIT_EXPECT_EQ(test, fake->shut, 1);
		KUNIT_EXPECT_FALSE(test, fake->link->rendezvous->peer_told);
	}
	/* Without resources to ask */
	fake = attached(test);
	fake->link->asks = false;
	KUNIT_ASSERT_EQ(test, fake_expect(fake), 0);
	word(fake, WORD_ADDR);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_VIOLATION_SINK), before + n++);
	/* Twice, though the first was counted */
	fake = knows(test);
	send_some(fake);
	KUNIT_EXPECT_EQ(test, fake->link->targets->seen, fake->link->targets->seen_told);
	word(fake, WORD_ADDR);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_VIOLATION_SINK), before + n++);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

/* It is one of those that are counted. */
static void hps_rendezvous_hear__counted(struct kunit *test)
{
	struct fake_link *fake = knows(test);

	KUNIT_EXPECT_TRUE(test, fake->link->targets->seen);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
	send_some(fake);
	KUNIT_EXPECT_TRUE(test, fake_head(fake, 0)->flags & HPS_FLAG_SINK);
	FAKE_EXPECT_POSTED(test, fake);
}

/* It is swapped only if it was set for what we send next, and read after that. */
static void hps_rendezvous_ask__swaps_and_reads(struct kunit *test)
{
	struct fake_link *fake = knows(test);
	u64 before = fake_counter(fake, HPS_STAT_SINK_ASKED);
	const struct fake_posted *post = fake->sends;
	u64 answer;

	send_some(fake);
	done(fake);
	answer = fake->link->rendezvous->answer->addr;
	KUNIT_EXPECT_TRUE(test, ask(fake));
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 2);
	KUNIT_EXPECT_EQ(test, post[0].opcode, IB_WR_ATOMIC_CMP_AND_SWP);
	KUNIT_EXPECT_FALSE(test, post[0].signaled);
	KUNIT_EXPECT_EQ(test, post[0].remote, WORD_ADDR);
	KUNIT_EXPECT_EQ(test, post[0].rkey, WORD_RKEY);
	KUNIT_EXPECT_EQ(test, post[0].compare, HPS_WORD_WAITS + 1);
	KUNIT_EXPECT_EQ(test, post[0].swap, 0);
	KUNIT_EXPECT_EQ(test, post[0].sge.addr, answer);
	KUNIT_EXPECT_EQ(test, post[0].sge.length, 8);
	KUNIT_EXPECT_EQ(test, post[1].opcode, IB_WR_RDMA_READ);
	KUNIT_EXPECT_TRUE(test, post[1].signaled);
	KUNIT_EXPECT_EQ(test, post[1].remote, WORD_ADDR + 8);
	KUNIT_EXPECT_EQ(test, post[1].rkey, WORD_RKEY);
	KUNIT_EXPECT_EQ(test, post[1].sge.addr, answer + 8);
	KUNIT_EXPECT_EQ(test, post[1].sge.length, sizeof(struct hps_sinkavail));
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_SINK_ASKED), before + 1);
	/* It is no message. */
	KUNIT_EXPECT_EQ(test, fake->link->tx_seq, 1);
	/* Nothing is to be repeated with it that is no read, see hps_post_probe(). */
	KUNIT_EXPECT_FALSE(test, FAKE_LINK_LOCKED(fake, hps_post_probe(fake->link)));
	/* The answer is awaited. */
	KUNIT_EXPECT_TRUE(test, ask(fake));
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 2);
	finds(fake, HPS_WORD_WAITS + 1, LEN);
	KUNIT_EXPECT_EQ(test, fake->link->reading, 0);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, LEN);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_addr, SINK_ADDR);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_rkey, SINK_RKEY);
	/* Once. */
	KUNIT_EXPECT_FALSE(test, ask(fake));
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
}

/* What is lent waits for the answer, and is then written or offered. */
static void hps_rendezvous_ask__before_an_offer(struct kunit *test)
{
	struct fake_link *fake = knows(test);
	u64 before = fake_counter(fake, HPS_STAT_SINK_SWAPPED);

	fake_lend(fake, LEN);
	push(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 2);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_posted(fake, IB_WR_ATOMIC_CMP_AND_SWP));
	finds(fake, HPS_WORD_WAITS, LEN);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_SINK_SWAPPED), before + 1);
	/* The completion has it go on. */
	KUNIT_EXPECT_NOT_NULL(test, fake_link_posted(fake, IB_WR_RDMA_WRITE));
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_WRITTEN));
	fake_sent_all(fake);
	/* Nobody waits. */
	fake_lend(fake, LEN);
	push(fake);
	finds(fake, 0, LEN);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_SINK_SWAPPED), before + 1);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SRCAVAIL));
	fake_sent_all(fake);
	/* Nor while that is not read: nobody is asked. */
	fake_lend(fake, LEN);
	push(fake);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SRCAVAIL));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

static void hps_rendezvous_ask__cannot_post(struct kunit *test)
{
	struct fake_link *fake;
	int i;

	for (i = 0; i < 2; i++) {
		fake = knows(test);
		mock_fail(MOCK_POST_SEND, BIT(i));
		KUNIT_EXPECT_TRUE(test, ask(fake));
		KUNIT_EXPECT_EQ(test, fake->shut, 1);
		KUNIT_EXPECT_EQ(test, fake->link->reading, 0);
		KUNIT_EXPECT_EQ(test, fake->link->rendezvous->slot, HPS_SQ_SIZE);
	}
}

/* What it says is void if we have sent something else since. */
static void hps_rendezvous_answered__sent_since(struct kunit *test)
{
	struct fake_link *fake = knows(test);

	KUNIT_EXPECT_TRUE(test, ask(fake));
	send_some(fake);
	finds(fake, HPS_WORD_WAITS, LEN);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
	/* The next question is another. */
	KUNIT_EXPECT_TRUE(test, ask(fake));
	fake_sent_all(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* Likewise if that was no message of the stream. */
static void hps_rendezvous_answered__padded_since(struct kunit *test)
{
	struct fake_link *fake = knows(test);

	KUNIT_EXPECT_TRUE(test, ask(fake));
	spin_lock_bh(&fake->link->conn.lock);
	fake->link->tx_pads = 1;
	hps_msg_pad(fake->link);
	spin_unlock_bh(&fake->link->conn.lock);
	KUNIT_EXPECT_EQ(test, fake->link->credit.tx_used, 1);
	finds(fake, HPS_WORD_WAITS, LEN);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
}

/* A result that never came is none: not that of the question before, for one. */
static void hps_rendezvous_answered__lost(struct kunit *test)
{
	struct fake_link *fake = knows(test);

	KUNIT_EXPECT_TRUE(test, ask(fake));
	finds(fake, HPS_WORD_WAITS, LEN);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, LEN);
	send_some(fake);
	done(fake);
	((struct hps_shown *)fake->link->rendezvous->answer->buf.data)->word = HPS_WORD_WAITS + 1;
	KUNIT_EXPECT_TRUE(test, ask(fake));
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* What was sent meanwhile is asked for later. */
static void hps_rendezvous_answered__completions(struct kunit *test)
{
	struct fake_link *fake = knows(test);
	struct timer_list *timer = &fake->link->ask_timer;

	KUNIT_EXPECT_TRUE(test, ask(fake));
	send_some(fake);
	KUNIT_EXPECT_FALSE(test, fake->sends[2].signaled);
	/* The time was over, and it could not be. */
	KUNIT_ASSERT_TRUE(test, timer_delete(timer));
	hps_conn_put(&fake->link->conn);
	FAKE_LINK_LOCKED(fake, hps_post_probe(fake->link));
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 3);
	finds(fake, 0, LEN);
	KUNIT_EXPECT_TRUE(test, timer_pending(timer));
}

/* Or if the reader does not wait any more, which is not asked again then. */
static void hps_rendezvous_answered__recalled(struct kunit *test)
{
	struct fake_link *fake = knows(test);

	KUNIT_EXPECT_TRUE(test, ask(fake));
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKACK));
	finds(fake, HPS_WORD_WAITS, LEN);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
	KUNIT_EXPECT_FALSE(test, ask(fake));
	send_some(fake);
	done(fake);
	KUNIT_EXPECT_TRUE(test, ask(fake));
	finds(fake, HPS_WORD_WAITS + 1, LEN);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, LEN);
}

/* That of an earlier question may still be under way. */
static void hps_rendezvous_recalled__another_asked(struct kunit *test)
{
	struct fake_link *fake = knows(test);

	KUNIT_EXPECT_TRUE(test, ask(fake));
	send_some(fake);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	finds(fake, 0, LEN);
	KUNIT_EXPECT_FALSE(test, ask(fake));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

static void hps_rendezvous_recalled__not_asked(struct kunit *test)
{
	struct fake_link *fake = knows(test);

	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_FALSE(test, ask(fake));
	/* Any number of times, one after the other */
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	send_some(fake);
	KUNIT_EXPECT_TRUE(test, ask(fake));
}

/* Swapped, but nothing can be written there */
static void hps_rendezvous_answered__bad(struct kunit *test)
{
	static const u32 lens[] = { 0, HPS_SOURCE_MAX + 1 };
	struct fake_link *fake;
	u64 before;
	int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		fake = knows(test);
		before = fake_counter(fake, HPS_STAT_VIOLATION_SINK);
		KUNIT_EXPECT_TRUE(test, ask(fake));
		finds(fake, HPS_WORD_WAITS, lens[i]);
		KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_VIOLATION_SINK), before + 1);
		KUNIT_EXPECT_EQ(test, fake->link->conn.err, EPROTO);
		KUNIT_EXPECT_EQ(test, fake->shut, 1);
	}
}

/* An error brings no answer. */
static void hps_rendezvous_answered__failed(struct kunit *test)
{
	struct fake_link *fake = knows(test);

	KUNIT_EXPECT_TRUE(test, ask(fake));
	fake_sent(fake, IB_WC_REM_ACCESS_ERR);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->link->reading, 0);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
}

/* All of it goes when its key is destroyed, and as much as there was. */
static void hps_rendezvous_end__all(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_link *link = fake->link;
	long before;

	wanted(fake);
	/* Links of earlier tests go when readers of theirs have. */
	rcu_barrier();
	before = hps_mem_read();
	lock_sock(link->conn.sk);
	KUNIT_EXPECT_EQ(test, hps_rendezvous_expect(link), 0);
	KUNIT_EXPECT_EQ(test, hps_rendezvous_prepare(link), 0);
	release_sock(link->conn.sk);
	KUNIT_EXPECT_GE(test, hps_mem_read(), before + sizeof(struct hps_rendezvous) +
			2 * sizeof(struct hps_shown));
	KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 1);
	hps_rendezvous_put_key(link);
	KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 0);
	hps_rendezvous_end(link);
	KUNIT_EXPECT_NULL(test, link->rendezvous);
	KUNIT_EXPECT_EQ(test, hps_mem_read(), before);
	/* Also where there is none. */
	hps_rendezvous_put_key(link);
	hps_rendezvous_end(link);
}

/* A send that waits for the peer takes back what it has lent, while the answer is awaited. */
static void taken_back(struct fake_link *fake)
{
	struct hps_conn *conn = &fake->link->conn;
	struct hps_source *source = hps_source(fake_lend(fake, LEN));
	struct kunit *test = fake->test;

	source->lent->waited = true;
	conn->tx_waited = 1;
	push(fake);
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 2);
	spin_lock_bh(&conn->lock);
	conn->tx_turn = true;
	conn->tx_hold = true;
	conn->ops->cancel(conn);
	spin_unlock_bh(&conn->lock);
	/* At once: the peer was offered nothing. */
	KUNIT_EXPECT_FALSE(test, conn->tx_hold);
	KUNIT_EXPECT_EQ(test, conn->tx_back, LEN);
	KUNIT_EXPECT_EQ(test, conn->tx_waited, 0);
	KUNIT_EXPECT_EQ(test, conn->tx_unacked, 0);
	KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 0);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 2);
	KUNIT_EXPECT_EQ(test, fake->link->reading, 1);
	conn->tx_back = 0;
	conn->tx_turn = false;
}

static void hps_cancel__while_asked(struct kunit *test)
{
	struct fake_link *fake = knows(test);

	taken_back(fake);
	/* The copy goes at once, so the answer is void. */
	send_some(fake);
	finds(fake, HPS_WORD_WAITS, LEN);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
	done(fake);
	fake_lend(fake, LEN);
	push(fake);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_posted(fake, IB_WR_ATOMIC_CMP_AND_SWP));
	finds(fake, HPS_WORD_WAITS + 1, LEN);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_WRITTEN));
	fake_sent_all(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	/* Nothing was sent instead: whoever lends next writes there. */
	fake = knows(test);
	taken_back(fake);
	finds(fake, HPS_WORD_WAITS, LEN);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, LEN);
	fake_lend(fake, LEN);
	push(fake);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_WRITTEN));
	fake_sent_all(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	/* Lent again before the answer. */
	fake = knows(test);
	taken_back(fake);
	fake_lend(fake, LEN);
	push(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 2);
	finds(fake, 0, LEN);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SRCAVAIL));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

static struct kunit_case rendezvous_cases[] = {
	KUNIT_CASE(hps_cancel__while_asked),
	KUNIT_CASE(hps_rendezvous_expect__once),
	KUNIT_CASE(hps_rendezvous_expect__not_here),
	KUNIT_CASE(hps_rendezvous_expect__fails),
	KUNIT_CASE(hps_rendezvous_prepare__once),
	KUNIT_CASE(hps_rendezvous_prepare__not_asked),
	KUNIT_CASE(hps_rendezvous_prepare__fails),
	KUNIT_CASE(hps_rendezvous_hear__bad),
	KUNIT_CASE(hps_rendezvous_hear__counted),
	KUNIT_CASE(hps_rendezvous_ask__swaps_and_reads),
	KUNIT_CASE(hps_rendezvous_ask__before_an_offer),
	KUNIT_CASE(hps_rendezvous_ask__cannot_post),
	KUNIT_CASE(hps_rendezvous_answered__sent_since),
	KUNIT_CASE(hps_rendezvous_answered__padded_since),
	KUNIT_CASE(hps_rendezvous_answered__lost),
	KUNIT_CASE(hps_rendezvous_answered__completions),
	KUNIT_CASE(hps_rendezvous_answered__recalled),
	KUNIT_CASE(hps_rendezvous_answered__bad),
	KUNIT_CASE(hps_rendezvous_answered__failed),
	KUNIT_CASE(hps_rendezvous_recalled__another_asked),
	KUNIT_CASE(hps_rendezvous_recalled__not_asked),
	KUNIT_CASE(hps_rendezvous_end__all),
	{}
};

UNIT_SUITE(rendezvous, rendezvous_cases);
