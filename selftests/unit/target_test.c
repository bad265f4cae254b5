// SPDX-License-Identifier: GPL-2.0
/*
 * The reader's side of SINKAVAIL is looked at by what is posted, and by when the reader has
 * its memory again: not while there is a key for it. What comes in is handled by msg_rx.c,
 * so what that adds of its own is here, too.
 */
#include <linux/wait_bit.h>

#include <linux/hpsock.h>

#include "unit.h"

/* A peer that never answers is waited for, but not as long as the product does. */
static unsigned long answer_max = MAX_SCHEDULE_TIMEOUT;

#undef wait_var_event_timeout
#define wait_var_event_timeout(var, condition, timeout) ({		\
	long __ret = min_t(unsigned long, timeout, answer_max);		\
									\
	if (!___wait_cond_timeout(condition))				\
		__ret = __wait_var_event_timeout(var, condition, __ret); \
	__ret;								\
})

#include "af_hpsock/target.c"

#include "fake.h"
#include "fake_link.h"
#include "receives.h"
#include "record.h"
#include "rendezvous.h"
#include "source.h"

/* The memory of a reader: so much, and where it begins in its first page. */
#define LEN	(3 * PAGE_SIZE)
#define OFF	200

/* What the peer is told of its own. */
#define PEER_ADDR	0x1234567800000010ULL
#define PEER_RKEY	77

#define VIOLATIONS(fake, what)	fake_counter(fake, HPS_STAT_VIOLATION_##what)

/* The connection ends, and for this reason. */
#define EXPECT_VIOLATION(test, fake, what, before) do {			\
	KUNIT_EXPECT_EQ(test, VIOLATIONS(fake, what), (before) + 1);	\
	KUNIT_EXPECT_EQ(test, (fake)->link->conn.err, EPROTO);		\
	KUNIT_EXPECT_EQ(test, (fake)->shut, 1);				\
} while (0)

/* A reader comes, and finds nothing to read. */
static bool show(struct fake_link *fake)
{
	return fake_show(fake, OFF, LEN);
}

/* It has what it needs to show memory. */
static int prepare(struct fake_link *fake)
{
	struct sock *sk = fake->link->conn.sk;
	int ret;

	lock_sock(sk);
	ret = hps_target_prepare(fake->link);
	release_sock(sk);
	return ret;
}

static struct fake_link *attached(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	fake_link_attach(fake);
	return fake;
}

/* One for which all is there in either direction, and with nothing shown. */
static struct fake_link *prepared(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	KUNIT_ASSERT_EQ(test, prepare(fake), 0);
	KUNIT_ASSERT_EQ(test, fake_expect(fake), 0);
	return fake;
}

/* One that has shown memory. */
static struct fake_link *shown(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	KUNIT_ASSERT_TRUE(test, show(fake));
	fake_sent_all(fake);
	KUNIT_ASSERT_TRUE(test, hps_target_shown(&fake->link->conn));
	return fake;
}

/* So many slots are free, until the test says how many there are. */
static void leave_slots(struct fake_link *fake, u32 nr)
{
	fake->link->sq_used = HPS_SQ_SIZE - nr;
}

static void push(struct fake_link *fake)
{
	spin_lock_bh(&fake->link->conn.lock);
	hps_target_push(fake->link);
	spin_unlock_bh(&fake->link->conn.lock);
}

/* There is one for the reader's memory. */
static u32 rkey(struct fake_link *fake)
{
	KUNIT_ASSERT_NOT_NULL(fake->test, fake->link->targets->key.mr);
	return fake->link->targets->key.mr->rkey;
}

/* WRITTEN comes in; with @revoked it has invalidated that key. */
static void written(struct fake_link *fake, u32 len, u32 revoked)
{
	struct hps_written written = { .len = cpu_to_be32(len) };

	fake_arriving(fake, HPS_MSG_WRITTEN, &written, sizeof(written));
	fake_arrive_revoking(fake, sizeof(struct hps_hdr) + sizeof(written), revoked);
}

/* SINKAVAIL comes in. */
static void sinkavail(struct fake_link *fake, u16 at, u64 addr, u32 len)
{
	struct hps_sinkavail sink = {
		.addr = cpu_to_be64(addr), .rkey = cpu_to_be32(PEER_RKEY),
		.len = cpu_to_be32(len),
	};
	struct hps_hdr *hdr = fake_arriving(fake, HPS_MSG_SINKAVAIL, &sink, sizeof(sink));

	hdr->urgent = cpu_to_be16(at);
	fake_arrive(fake, sizeof(*hdr) + sizeof(sink));
}

/* From now on it shows memory by a word. */
static void by_word(struct fake_link *fake)
{
	fake->link->is_asked = true;
	fake->link->tuning.own[HPS_TUNE_ZCOPY_SYNC] = HPSOCK_ZCOPY_SYNC_CAS;
}

/**
 * struct reader - one that does not wait any longer, in a thread of its own as it sleeps
 * @work: that thread
 * @fake: the connection
 * @done: it has its memory again
 * @written: with so many bytes
 */
struct reader {
	struct work_struct work;
	struct fake_link *fake;
	struct completion done;
	u32 written;
};

static void reader_work(struct work_struct *work)
{
	struct reader *r = container_of(work, struct reader, work);

	r->written = hps_target_withdraw(&r->fake->link->conn);
	complete(&r->done);
}

/* It has to come back, also where the test has failed. */
static void reader_release(void *data)
{
	struct reader *r = data;

	if (!completion_done(&r->done) && !r->fake->ended) {
		hps_target_put_key(r->fake->link);
		hps_target_end(r->fake->link);
	}
	flush_work(&r->work);
}

/* It comes for its memory, and either has it or sleeps. */
static struct reader *withdraw(struct fake_link *fake)
{
	struct reader *r = kunit_kzalloc(fake->test, sizeof(*r), GFP_KERNEL);
	struct hps_targets *targets = fake->link->targets;
	int tries;

	KUNIT_ASSERT_NOT_NULL(fake->test, r);
	r->fake = fake;
	init_completion(&r->done);
	INIT_WORK(&r->work, reader_work);
	queue_work(system_unbound_wq, &r->work);
	KUNIT_ASSERT_EQ(fake->test, kunit_add_action_or_reset(fake->test, reader_release, r), 0);
	for (tries = 0; tries < 3; tries++) {
		if (READ_ONCE(targets->cancel) || READ_ONCE(targets->cancelling) ||
		    completion_done(&r->done))
			break;
		schedule_timeout_uninterruptible(1);
	}
	return r;
}

/* It still waits: the peer may reach its memory. So many keys are in use. */
static void expect_waiting_for(struct reader *r, int keys)
{
	struct kunit *test = r->fake->test;

	schedule_timeout_uninterruptible(2);
	KUNIT_EXPECT_FALSE(test, completion_done(&r->done));
	KUNIT_EXPECT_EQ(test, r->fake->qp.mrs_used, keys);
}

static void expect_waiting(struct reader *r)
{
	expect_waiting_for(r, 1);
}

/* It has its memory again, for which there is no key any more, and so many bytes. */
static void expect_back_with(struct reader *r, u32 len, int keys)
{
	struct fake_link *fake = r->fake;
	struct kunit *test = fake->test;

	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&r->done, 60 * HZ), 0);
	KUNIT_EXPECT_EQ(test, r->written, len);
	KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, keys);
	KUNIT_EXPECT_EQ(test, hweight32(fake->valid), keys);
	KUNIT_EXPECT_EQ(test, fake->link->targets->state, HPS_TARGET_NONE);
}

static void expect_back(struct reader *r, u32 len)
{
	expect_back_with(r, len, 0);
}

/* The next reader may show what it has. */
static void expect_next(struct fake_link *fake)
{
	KUNIT_EXPECT_TRUE(fake->test, show(fake));
	KUNIT_EXPECT_NOT_NULL(fake->test, fake_link_sent(fake, HPS_MSG_SINKAVAIL));
}

/* SINKACK has a receive, and once. */
static void hps_target_prepare__once(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_link *link = fake->link;
	struct hps_targets *targets;
	u32 n = fake->nr_receives;

	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
	targets = link->targets;
	KUNIT_ASSERT_NOT_NULL(test, targets);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, n + 1);
	FAKE_EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
	KUNIT_EXPECT_PTR_EQ(test, link->targets, targets);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, n + 1);
	FAKE_EXPECT_POSTED(test, fake);
	/* Nothing was shown by that, nor may the peer. */
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	KUNIT_EXPECT_FALSE(test, hps_target_shown(&link->conn));
	KUNIT_EXPECT_FALSE(test, link->lends);
}

/* Nothing is shown without; and what memory there is counts. */
static void hps_target_prepare__fails(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_link *link = fake->link;
	u32 n = fake->nr_receives, i;
	long before;

	/* Links of earlier tests go when readers of theirs have. */
	rcu_barrier();
	before = hps_mem_read();
	mock_fail(MOCK_ALLOC, BIT(0));
	KUNIT_EXPECT_EQ(test, prepare(fake), -ENOMEM);
	KUNIT_EXPECT_NULL(test, link->targets);
	KUNIT_EXPECT_EQ(test, hps_mem_read(), before);
	/* The receive takes two. */
	for (i = 0; i < 2; i++) {
		mock_fail(MOCK_ALLOC, link->targets ? BIT(i) : BIT(i + 1));
		KUNIT_EXPECT_EQ(test, prepare(fake), -ENOMEM);
		KUNIT_EXPECT_EQ(test, link->receives.extra, 0);
	}
	KUNIT_EXPECT_GE(test, hps_mem_read(), before + sizeof(struct hps_targets));
	link->conn.shut = true;
	KUNIT_EXPECT_EQ(test, prepare(fake), -ECONNRESET);
	link->conn.shut = false;
	KUNIT_EXPECT_EQ(test, fake->nr_receives, n);
	FAKE_EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, n + 1);
	FAKE_EXPECT_POSTED(test, fake);
}

/* Who lends has one for READDONE of each, and for CANCELACK, SINKAVAIL and SINKCANCEL. */
static void hps_target_expect__once(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_link *link = fake->link;
	u32 n = fake->nr_receives;

	KUNIT_EXPECT_EQ(test, fake_expect(fake), 0);
	KUNIT_EXPECT_TRUE(test, link->lends);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, n + link->tx_offers_max + 1 + 2);
	FAKE_EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, fake_expect(fake), 0);
	FAKE_EXPECT_POSTED(test, fake);
	/* That for SINKACK is another. */
	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, n + link->tx_offers_max + 1 + 3);
	FAKE_EXPECT_POSTED(test, fake);
}

/* Nothing is lent without. */
static void hps_target_expect__fails(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_link *link = fake->link;
	u32 n = fake->nr_receives;

	mock_fail(MOCK_ALLOC, BIT(0));
	KUNIT_EXPECT_EQ(test, fake_expect(fake), -ENOMEM);
	mock_fail(MOCK_ALLOC, BIT(4));
	KUNIT_EXPECT_EQ(test, fake_expect(fake), -ENOMEM);
	link->conn.shut = true;
	KUNIT_EXPECT_EQ(test, fake_expect(fake), -ECONNRESET);
	link->conn.shut = false;
	KUNIT_EXPECT_FALSE(test, link->lends);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, n);
	FAKE_EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_EQ(test, fake_expect(fake), 0);
	KUNIT_EXPECT_TRUE(test, link->lends);
	FAKE_EXPECT_POSTED(test, fake);
}

/* A key for this memory, which is valid before the peer hears of it. */
static void hps_target_tell__key_and_message(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_link *link = fake->link;
	u64 before = fake_counter(fake, HPS_STAT_SINK_SHOWN), addr;
	struct hps_sinkavail *sink;

	fake_data(fake, FAKE_SMALL);
	fake_read(fake);
	fake_data(fake, FAKE_SMALL);
	fake_read(fake);
	fake_sent_all(fake);
	KUNIT_EXPECT_TRUE(test, show(fake));
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 2);
	KUNIT_EXPECT_EQ(test, fake->sends[0].opcode, IB_WR_REG_MR);
	KUNIT_EXPECT_EQ(test, fake->sends[0].access,
			IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 1)->type, HPS_MSG_SINKAVAIL);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake_head(fake, 1)->len), sizeof(*sink));
	/* So many messages that cost a credit came before. */
	KUNIT_EXPECT_EQ(test, be16_to_cpu(fake_head(fake, 1)->urgent), 2);
	sink = &fake->sends[1].head.sink;
	KUNIT_EXPECT_EQ(test, be32_to_cpu(sink->rkey), fake->sends[0].rkey);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(sink->rkey), rkey(fake));
	KUNIT_EXPECT_EQ(test, be32_to_cpu(sink->len), LEN);
	/* Where the byte is in its page, and nothing else of where it is. */
	addr = be64_to_cpu(sink->addr);
	KUNIT_EXPECT_EQ(test, addr, link->targets->key.mr->iova);
	KUNIT_EXPECT_EQ(test, addr & U32_MAX, OFF);
	/* It costs none. */
	KUNIT_EXPECT_EQ(test, link->credit.tx_used, 0);
	KUNIT_EXPECT_TRUE(test, hps_target_shown(&link->conn));
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_SINK_SHOWN), before + 1);
}

/* The number is modulo 2^16. */
static void hps_target_tell__many_before(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_credit *credit = &fake->link->credit;

	credit->rx_used += 0x30007;
	credit->rx_told += 0x30007;
	credit->rx_ready += 0x30007;
	KUNIT_EXPECT_TRUE(test, show(fake));
	KUNIT_EXPECT_EQ(test, be16_to_cpu(fake_head(fake, 1)->urgent), 7);
}

/* The word is told of once, and set when the key is valid. */
static void hps_target_tell_by_word__key_first(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_link *link = fake->link;
	u64 before = fake_counter(fake, HPS_STAT_SINK_SHOWN);
	const struct hps_shown *memory;
	int i;

	by_word(fake);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, show(fake));
		KUNIT_ASSERT_EQ(test, fake->nr_sends, i ? 1 : 3);
		if (!i) {
			KUNIT_EXPECT_EQ(test, fake->sends[0].access, IB_ACCESS_LOCAL_WRITE |
					IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC);
			KUNIT_EXPECT_EQ(test, fake_head(fake, 1)->type, HPS_MSG_WORD);
			/* Behind it the other end may send SINKCANCEL at most. */
			KUNIT_EXPECT_TRUE(test, link->targets->waits);
			fake_sent(fake, IB_WC_SUCCESS);
		}
		memory = link->rendezvous->memory;
		KUNIT_EXPECT_EQ(test, fake->sends[0].opcode, IB_WR_REG_MR);
		KUNIT_EXPECT_TRUE(test, fake->sends[0].signaled);
		KUNIT_EXPECT_EQ(test, memory->word, 0);
		KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_SINK_SHOWN), before + i);
		fake_sent(fake, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, memory->word, HPS_WORD_WAITS + i);
		KUNIT_EXPECT_EQ(test, be32_to_cpu(memory->sink.rkey), rkey(fake));
		KUNIT_EXPECT_EQ(test, be32_to_cpu(memory->sink.len), LEN);
		KUNIT_EXPECT_EQ(test, be64_to_cpu(memory->sink.addr),
				link->targets->key.mr->iova);
		KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_SINK_SHOWN), before + i + 1);
		KUNIT_EXPECT_TRUE(test, hps_target_shown(&link->conn));
		written(fake, LEN, rkey(fake));
		KUNIT_EXPECT_EQ(test, memory->word, 0);
		KUNIT_EXPECT_EQ(test, hps_target_withdraw(&link->conn), LEN);
	}
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* A device that makes one key at a time */
static void hps_target_tell_by_word__keys_alone(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	by_word(fake);
	fake->link->keys_alone = true;
	KUNIT_EXPECT_TRUE(test, show(fake));
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 2);
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 1);
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 1);
	KUNIT_EXPECT_EQ(test, fake->sends[0].opcode, IB_WR_REG_MR);
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, fake->link->rendezvous->memory->word, HPS_WORD_WAITS);
}

/* Without a key for atomics there is no word: the peer is told as ever. */
static void hps_target_tell_by_word__refused(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	by_word(fake);
	mock_fail(MOCK_POST_SEND, BIT(0));
	KUNIT_EXPECT_TRUE(test, show(fake));
	KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_WORD));
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKAVAIL));
	/* That of the reader's memory */
	KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 1);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake_sent_all(fake);
	written(fake, LEN, rkey(fake));
	KUNIT_EXPECT_EQ(test, hps_target_withdraw(&fake->link->conn), LEN);
	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
	expect_next(fake);
}

static void hps_target_tell_by_word__cannot_post(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	by_word(fake);
	/* WORD */
	mock_fail(MOCK_POST_SEND, BIT(1));
	KUNIT_EXPECT_TRUE(test, show(fake));
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_FALSE(test, fake->link->targets->told);
	/* The key */
	fake = attached(test);
	by_word(fake);
	mock_fail(MOCK_POST_SEND, BIT(2));
	KUNIT_EXPECT_TRUE(test, show(fake));
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->link->targets->reg_slot, HPS_SQ_SIZE);
}

/* Neither for a key nor for a message is there room: it waits for its turn, and is shown. */
static void hps_target_tell__no_slot(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	u64 before = fake_counter(fake, HPS_STAT_SINK_SHOWN);

	leave_slots(fake, HPS_CTRL_SLOTS + 1);
	KUNIT_EXPECT_TRUE(test, show(fake));
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	KUNIT_EXPECT_TRUE(test, hps_target_shown(&fake->link->conn));
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_SINK_SHOWN), before);
	leave_slots(fake, HPS_CTRL_SLOTS + 2);
	push(fake);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKAVAIL));
	/* Once. */
	leave_slots(fake, HPS_SQ_SIZE);
	push(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 2);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_SINK_SHOWN), before + 1);
	fake->link->sq_used = 2;
}

/* With a device that could repeat what a key was made for, when all else has completed. */
static void hps_target_tell__keys_alone(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_link *link = fake->link;
	struct hps_buf *buf = fake_tx(test, &link->conn, 4096, 100);

	link->keys_alone = true;
	link->conn.tx_unsent += 900;
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	link->conn.tx_unsent -= 900;
	KUNIT_EXPECT_FALSE(test, fake->sends[0].signaled);
	KUNIT_EXPECT_TRUE(test, show(fake));
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_REG_MR));
	/* It sees to it that it is told. */
	KUNIT_EXPECT_TRUE(test, fake->sends[fake->nr_sends - 1].signaled);
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 2);
	KUNIT_EXPECT_EQ(test, fake->sends[0].opcode, IB_WR_REG_MR);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 1)->type, HPS_MSG_SINKAVAIL);
}

/* No key, and nobody heard of it. */
static void hps_target_tell__cannot_post_key(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct reader *r;

	mock_fail(MOCK_POST_SEND, BIT(0));
	KUNIT_EXPECT_TRUE(test, show(fake));
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	r = withdraw(fake);
	fake_link_end(fake);
	expect_back(r, 0);
}

/* The key is valid, although nobody was told of it, until the queue pair is drained. */
static void hps_target_tell__cannot_post_message(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct reader *r;

	mock_fail(MOCK_POST_SEND, BIT(1));
	KUNIT_EXPECT_TRUE(test, show(fake));
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_posted(fake, IB_WR_REG_MR));
	r = withdraw(fake);
	expect_waiting(r);
	fake_link_end(fake);
	expect_back(r, 0);
}

/* What comes, when it was shown, ends it; so it is not shown where that has come already. */
static void hps_target_show__not_then(struct kunit *test)
{
	struct fake_link *fake = prepared(test);
	struct hps_conn *conn = &fake->link->conn;

	/* There is something to read. */
	fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_FALSE(test, show(fake));
	fake_read(fake);
	conn->rx_cancel = 1;
	KUNIT_EXPECT_FALSE(test, show(fake));
	conn->rx_cancel = 0;
	conn->fin_rcvd = true;
	KUNIT_EXPECT_FALSE(test, show(fake));
	conn->fin_rcvd = false;
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_REG_MR));
	KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 0);
	KUNIT_EXPECT_FALSE(test, hps_target_shown(conn));
	expect_next(fake);
}

/* One at a time: the second reader only waits, and the first has what it had. */
static void hps_target_show__two_readers(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	u32 first = rkey(fake);

	KUNIT_EXPECT_FALSE(test, show(fake));
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 1);
	KUNIT_EXPECT_EQ(test, rkey(fake), first);
	KUNIT_EXPECT_TRUE(test, hps_target_shown(&fake->link->conn));
	/* Likewise until the first has come for it. */
	written(fake, LEN, first);
	KUNIT_EXPECT_FALSE(test, show(fake));
	expect_back(withdraw(fake), LEN);
	expect_next(fake);
}

/* The last one is over, but the peer was not heard to have it: it might come to two. */
static void hps_target_show__unheard(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	struct hps_link *link = fake->link;
	struct hps_hdr *hdr;

	hdr = fake_arriving(fake, HPS_MSG_DATA, NULL, FAKE_SMALL);
	hdr->flags &= ~HPS_FLAG_SINK;
	fake_arrive(fake, sizeof(*hdr) + FAKE_SMALL);
	fake_sent_all(fake);
	expect_back(withdraw(fake), 0);
	fake_read(fake);
	KUNIT_EXPECT_FALSE(test, show(fake));
	KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKAVAIL));
	/* Whatever says so. */
	hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_TRUE(test, hdr->flags & HPS_FLAG_SINK);
	fake_arrive(fake, sizeof(*hdr));
	expect_next(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	/* The number is even again; the peer has heard of one. */
	KUNIT_EXPECT_FALSE(test, link->targets->told);
}

static void hps_target_show__cannot(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_link *link = fake->link;
	struct hps_device *dev = link->dev;
	LIST_HEAD(keys);

	mock_fail(MOCK_ALLOC, BIT(0));
	KUNIT_EXPECT_FALSE(test, show(fake));
	/* The device has no key. */
	list_splice_init(&link->mrs, &keys);
	KUNIT_EXPECT_FALSE(test, show(fake));
	list_splice(&keys, &link->mrs);
	link->conn.shut = true;
	KUNIT_EXPECT_FALSE(test, show(fake));
	link->conn.shut = false;
	link->dev = NULL;
	KUNIT_EXPECT_FALSE(test, show(fake));
	link->dev = dev;
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 0);
	/* Nobody is left in there. */
	KUNIT_EXPECT_EQ(test, atomic_read(&link->users), 0);
	KUNIT_EXPECT_FALSE(test, hps_target_shown(&link->conn));
	expect_next(fake);
}

/* The peer knows nothing of it, and is told nothing. */
static void hps_target_withdraw__queued(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	leave_slots(fake, 0);
	KUNIT_EXPECT_TRUE(test, show(fake));
	expect_back(withdraw(fake), 0);
	fake->link->sq_used = 0;
	push(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	KUNIT_EXPECT_FALSE(test, hps_target_shown(&fake->link->conn));
	expect_next(fake);
}

/* The peer cannot know of it before its word was set, and is told nothing. */
static void hps_target_withdraw__no_word(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct reader *r;

	by_word(fake);
	KUNIT_EXPECT_TRUE(test, show(fake));
	fake_sent(fake, IB_WC_SUCCESS);
	r = withdraw(fake);
	KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKCANCEL));
	KUNIT_EXPECT_NOT_NULL(test, fake_link_posted(fake, IB_WR_LOCAL_INV));
	expect_waiting_for(r, 2);
	/* REG_MR, and then LOCAL_INV */
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, fake->link->rendezvous->memory->word, 0);
	fake_sent(fake, IB_WC_SUCCESS);
	expect_back_with(r, 0, 1);
	/* The peer has heard of the word, which was not set, so that it may show it again. */
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_TRUE(test, show(fake));
}

/* It is told by SINKCANCEL otherwise, and asks no more for what comes next. */
static void hps_target_withdraw__word(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct reader *r;

	by_word(fake);
	KUNIT_EXPECT_TRUE(test, show(fake));
	fake_sent_all(fake);
	r = withdraw(fake);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKCANCEL));
	fake_sent_all(fake);
	expect_waiting_for(r, 2);
	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	fake_sent_all(fake);
	expect_back_with(r, 0, 1);
	/* The number may come again, though not soon. */
	KUNIT_EXPECT_EQ(test, fake->link->rendezvous->memory->word, 0);
	KUNIT_EXPECT_FALSE(test, show(fake));
	fake_data(fake, FAKE_SMALL);
	fake_read(fake);
	KUNIT_EXPECT_TRUE(test, show(fake));
	fake_sent_all(fake);
	KUNIT_EXPECT_EQ(test, fake->link->rendezvous->memory->word, HPS_WORD_WAITS + 1);
	fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_EQ(test, fake->link->rendezvous->memory->word, 0);
}

/* SINKCANCEL, SINKACK, and we invalidate the key, as no WRITTEN has. */
static void hps_target_withdraw__answered(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	u32 key = rkey(fake);
	struct reader *r = withdraw(fake);

	KUNIT_ASSERT_EQ(test, fake->nr_sends, 1);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 0)->type, HPS_MSG_SINKCANCEL);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake_head(fake, 0)->len), 0);
	/* Once. */
	fake_sent_all(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	expect_waiting(r);
	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	KUNIT_EXPECT_FALSE(test, hps_target_shown(&fake->link->conn));
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 1);
	KUNIT_EXPECT_EQ(test, fake->sends[0].opcode, IB_WR_LOCAL_INV);
	KUNIT_EXPECT_EQ(test, fake->sends[0].rkey, key);
	KUNIT_EXPECT_TRUE(test, fake->sends[0].signaled);
	expect_waiting(r);
	fake_sent(fake, IB_WC_SUCCESS);
	expect_back(r, 0);
	expect_next(fake);
	FAKE_EXPECT_POSTED(test, fake);
}

/* SINKCANCEL waits for a slot. */
static void hps_target_withdraw__no_slot(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	struct reader *r;

	leave_slots(fake, 0);
	r = withdraw(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	expect_waiting(r);
	fake->link->sq_used = 0;
	push(fake);
	push(fake);
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 1);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 0)->type, HPS_MSG_SINKCANCEL);
	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	fake_sent_all(fake);
	expect_back(r, 0);
}

/* WRITTEN was under way: the reader has the bytes, and the answer is still to come. */
static void hps_target_withdraw__written_before(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	struct reader *r = withdraw(fake);

	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKCANCEL));
	fake_sent_all(fake);
	written(fake, 1000, rkey(fake));
	expect_back(r, 1000);
	/* One SINKCANCEL takes one receive. */
	KUNIT_EXPECT_FALSE(test, show(fake));
	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	/* There is nothing to invalidate. */
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_LOCAL_INV));
	expect_next(fake);
}

/* What is over is not taken back, though it could not be before. */
static void hps_target_withdraw__over_before(struct kunit *test)
{
	static const bool ways[] = { true, false };
	struct fake_link *fake;
	struct reader *r;
	int i;

	for (i = 0; i < ARRAY_SIZE(ways); i++) {
		fake = shown(test);
		leave_slots(fake, 0);
		r = withdraw(fake);
		KUNIT_EXPECT_TRUE(test, fake->link->targets->cancel);
		if (ways[i])
			written(fake, LEN, rkey(fake));
		else
			fake_data(fake, FAKE_SMALL);
		fake->link->sq_used = 0;
		push(fake);
		KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKCANCEL));
		fake_sent_all(fake);
		expect_back(r, ways[i] ? LEN : 0);
		KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKCANCEL));
	}
}

/* The device refuses: the connection ends, and the memory comes back then. */
static void hps_target_withdraw__cannot_post(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	struct reader *r;

	leave_slots(fake, 0);
	r = withdraw(fake);
	fake->link->sq_used = 0;
	mock_fail(MOCK_POST_SEND, BIT(0));
	push(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	expect_waiting(r);
	fake_link_end(fake);
	expect_back(r, 0);
}

/* A peer that does not answer loses its connection, and until then may write. */
static void hps_target_withdraw__not_answered(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	u64 before = fake_counter(fake, HPS_STAT_READ_STALLED);
	struct reader *r;
	int tries;

	answer_max = HZ / 20;
	r = withdraw(fake);
	for (tries = 0; !READ_ONCE(fake->shut) && tries < 60 * HZ; tries++)
		schedule_timeout_uninterruptible(1);
	answer_max = MAX_SCHEDULE_TIMEOUT;
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->link->conn.err, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_READ_STALLED), before + 1);
	expect_waiting(r);
	fake_link_end(fake);
	expect_back(r, 0);
}

/* Nor does one whose connection is over. */
static void hps_target_withdraw__ended(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	u64 before = fake_counter(fake, HPS_STAT_READ_STALLED);
	struct reader *r;

	spin_lock_bh(&fake->link->conn.lock);
	hps_conn_shut(&fake->link->conn, 0);
	spin_unlock_bh(&fake->link->conn.lock);
	r = withdraw(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	expect_waiting(r);
	fake_link_end(fake);
	expect_back(r, 0);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_READ_STALLED), before);
}

/* The end comes first. */
static void hps_target_withdraw__ended_before(struct kunit *test)
{
	struct fake_link *fake = shown(test);

	fake_link_end(fake);
	KUNIT_EXPECT_FALSE(test, hps_target_shown(&fake->link->conn));
	expect_back(withdraw(fake), 0);
}

/* Nothing is shown: what comes changes nothing. */
static void hps_target_over__nothing(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	fake_data(fake, FAKE_SMALL);
	fake_read(fake);
	KUNIT_EXPECT_EQ(test, prepare(fake), 0);
	fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_LOCAL_INV));
	KUNIT_EXPECT_EQ(test, fake->link->targets->state, HPS_TARGET_NONE);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* Before the peer was told: then it is not any more. */
static void hps_target_over__queued(struct kunit *test)
{
	struct fake_link *fake = attached(test);

	leave_slots(fake, 0);
	KUNIT_EXPECT_TRUE(test, show(fake));
	fake_data(fake, FAKE_SMALL);
	fake->link->sq_used = 0;
	push(fake);
	KUNIT_EXPECT_FALSE(test, hps_target_shown(&fake->link->conn));
	KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKAVAIL));
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_LOCAL_INV));
	expect_back(withdraw(fake), 0);
}

/* The rest of the stream, or its end, comes another way. */
static void hps_target_over__each(struct kunit *test)
{
	static const u8 types[] = { HPS_MSG_DATA, HPS_MSG_SRCAVAIL, HPS_MSG_FIN };
	struct hps_srcavail src = { .rkey = cpu_to_be32(7), .len = cpu_to_be32(100) };
	struct fake_link *fake;
	struct fake_posted *inv;
	struct reader *r;
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		fake = shown(test);
		fake->link->reads = true;
		fake_message(fake, types[i], types[i] == HPS_MSG_SRCAVAIL ? &src : NULL,
			     types[i] == HPS_MSG_SRCAVAIL ? sizeof(src) :
			     types[i] == HPS_MSG_DATA ? FAKE_SMALL : 0);
		KUNIT_EXPECT_FALSE(test, hps_target_shown(&fake->link->conn));
		inv = fake_link_posted(fake, IB_WR_LOCAL_INV);
		KUNIT_ASSERT_NOT_NULL(test, inv);
		KUNIT_EXPECT_EQ(test, inv->rkey, rkey(fake));
		r = withdraw(fake);
		expect_waiting(r);
		/* The peer has heard of it by what it sent, and it is not taken back. */
		KUNIT_EXPECT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKCANCEL));
		fake_sent_all(fake);
		expect_back(r, 0);
		KUNIT_EXPECT_EQ(test, fake->shut, 0);
	}
}

/* What is not of the stream leaves it as it is. */
static void hps_target_over__not_by_others(struct kunit *test)
{
	struct hps_urgent_ahead urgent = { .ahead = cpu_to_be32(10) };
	struct hps_buffers buffers = { .size = cpu_to_be32(8192) };
	struct fake_link *fake = shown(test);

	KUNIT_EXPECT_EQ(test, fake_expect(fake), 0);
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	fake_message(fake, HPS_MSG_URGENT, &urgent, sizeof(urgent));
	fake_message(fake, HPS_MSG_BUFFERS, &buffers, sizeof(buffers));
	sinkavail(fake, 0, PEER_ADDR, LEN);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_TRUE(test, hps_target_shown(&fake->link->conn));
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_LOCAL_INV));
}

/* LOCAL_INV is taken for what it is, and not for what completes before it. */
static void hps_target_over__in_order(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	struct hps_targets *targets;

	KUNIT_EXPECT_TRUE(test, show(fake));
	targets = fake->link->targets;
	fake_data(fake, FAKE_SMALL);
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 3);
	KUNIT_EXPECT_EQ(test, fake->sends[2].opcode, IB_WR_LOCAL_INV);
	/* REG_MR and SINKAVAIL */
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, targets->state, HPS_TARGET_OVER);
	/* It was posted once. */
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 1);
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, targets->state, HPS_TARGET_DONE);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	/* Nor does it come again for the next that has its slot. */
	expect_back(withdraw(fake), 0);
	fake_read(fake);
	expect_next(fake);
	fake_sent_all(fake);
	KUNIT_EXPECT_TRUE(test, hps_target_shown(&fake->link->conn));
}

static void hps_target_over__no_slot(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	struct reader *r;

	leave_slots(fake, 0);
	fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_LOCAL_INV));
	KUNIT_EXPECT_FALSE(test, hps_target_shown(&fake->link->conn));
	r = withdraw(fake);
	expect_waiting(r);
	fake->link->sq_used = 0;
	push(fake);
	push(fake);
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 1);
	KUNIT_EXPECT_EQ(test, fake->sends[0].opcode, IB_WR_LOCAL_INV);
	fake_sent_all(fake);
	expect_back(r, 0);
}

static void hps_target_over__cannot_post(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	struct reader *r;

	mock_fail(MOCK_POST_SEND, BIT(0));
	fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	r = withdraw(fake);
	expect_waiting(r);
	fake_link_end(fake);
	expect_back(r, 0);
}

/* Nobody could know of it before its word was set. */
static void hps_target_written__no_word(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	u64 before = VIOLATIONS(fake, SINK);

	by_word(fake);
	KUNIT_EXPECT_TRUE(test, show(fake));
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, fake->link->targets->reg_slot, HPS_SQ_SIZE);
	written(fake, LEN, rkey(fake));
	EXPECT_VIOLATION(test, fake, SINK, before);
}

/* The usual way: the message has invalidated the key. */
static void hps_target_written__key_invalid(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	struct hps_link *link = fake->link;
	struct hps_conn *conn = &link->conn;
	u64 msgs = fake_counter(fake, HPS_STAT_RX_MSGS);
	u64 bytes = fake_counter(fake, HPS_STAT_RX_BYTES);
	u32 ready = link->credit.rx_ready, held = link->receives.held;

	written(fake, LEN - 1, rkey(fake));
	KUNIT_EXPECT_FALSE(test, hps_target_shown(conn));
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_LOCAL_INV));
	expect_back(withdraw(fake), LEN - 1);
	/* It cost a credit, which comes back at once. */
	KUNIT_EXPECT_EQ(test, link->credit.rx_used, 1);
	KUNIT_EXPECT_EQ(test, link->credit.rx_ready, ready + 1);
	KUNIT_EXPECT_EQ(test, link->receives.held, held);
	FAKE_EXPECT_POSTED(test, fake);
	KUNIT_EXPECT_NE(test, conn->rx_stamp, 0);
	/* The bytes are of the stream, and nobody finds them in the queue. */
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_RX_MSGS), msgs + 1);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_RX_BYTES), bytes + LEN - 1);
	KUNIT_EXPECT_EQ(test, conn->rx_bytes, LEN - 1);
	KUNIT_EXPECT_EQ(test, conn->rx_read, LEN - 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->rx_avail), 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->rxq));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	expect_next(fake);
}

/* On iWARP it has not, and a peer may claim to have invalidated another. */
static void hps_target_written__key_valid(struct kunit *test)
{
	static const u32 others[] = { 0, PEER_RKEY };
	struct fake_link *fake;
	struct fake_posted *inv;
	struct reader *r;
	int i;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		fake = shown(test);
		written(fake, LEN, others[i]);
		KUNIT_EXPECT_FALSE(test, hps_target_shown(&fake->link->conn));
		inv = fake_link_posted(fake, IB_WR_LOCAL_INV);
		KUNIT_ASSERT_NOT_NULL(test, inv);
		KUNIT_EXPECT_EQ(test, inv->rkey, rkey(fake));
		r = withdraw(fake);
		expect_waiting(r);
		fake_sent_all(fake);
		expect_back(r, LEN);
	}
}

/* The key of a message before does not count for this one. */
static void hps_target_written__key_of_before(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	u32 key = rkey(fake);
	struct reader *r;

	fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	fake_arrive_revoking(fake, sizeof(struct hps_hdr), PEER_RKEY);
	KUNIT_EXPECT_EQ(test, fake->link->rx_revoked, PEER_RKEY);
	written(fake, LEN, 0);
	r = withdraw(fake);
	expect_waiting(r);
	KUNIT_ASSERT_NOT_NULL(test, fake_link_posted(fake, IB_WR_LOCAL_INV));
	KUNIT_EXPECT_EQ(test, fake_link_posted(fake, IB_WR_LOCAL_INV)->rkey, key);
	fake_sent_all(fake);
	expect_back(r, LEN);
}

/* What came before an end that was begun here counts. */
static void hps_target_written__shut(struct kunit *test)
{
	static const bool invalid[] = { true, false };
	struct fake_link *fake;
	struct reader *r;
	int i;

	for (i = 0; i < ARRAY_SIZE(invalid); i++) {
		fake = shown(test);
		fake->link->conn.shut = true;
		written(fake, LEN, invalid[i] ? rkey(fake) : 0);
		r = withdraw(fake);
		KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
		expect_waiting(r);
		fake_link_end(fake);
		expect_back(r, LEN);
	}
}

/* Nothing was shown, ever or any more, or not so much. */
static void hps_target_written__bad(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	u64 before = VIOLATIONS(fake, SINK);

	written(fake, 1, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	fake = prepared(test);
	before = VIOLATIONS(fake, SINK);
	written(fake, 1, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	/* It could not be shown yet. */
	fake = attached(test);
	before = VIOLATIONS(fake, SINK);
	leave_slots(fake, 0);
	KUNIT_EXPECT_TRUE(test, show(fake));
	written(fake, 1, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	fake->link->sq_used = 0;
	/* Once. */
	fake = shown(test);
	before = VIOLATIONS(fake, SINK);
	written(fake, 1, rkey(fake));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	written(fake, 1, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_bytes, 1);
	/* Other bytes of the stream came. */
	fake = shown(test);
	before = VIOLATIONS(fake, SINK);
	fake_data(fake, FAKE_SMALL);
	written(fake, 1, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	/* After FIN */
	fake = shown(test);
	before = VIOLATIONS(fake, SINK);
	fake_message(fake, HPS_MSG_FIN, NULL, 0);
	written(fake, 1, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
}

static void hps_target_written__length(struct kunit *test)
{
	static const u32 lens[] = { 0, LEN + 1, U32_MAX };
	struct fake_link *fake;
	u64 before;
	int i;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		fake = shown(test);
		before = VIOLATIONS(fake, SINK);
		written(fake, lens[i], rkey(fake));
		EXPECT_VIOLATION(test, fake, SINK, before);
		KUNIT_EXPECT_EQ(test, fake->link->conn.rx_bytes, 0);
	}
}

/* SINKACK of what was not asked. */
static void hps_target_acked__not_asked(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	u64 before = VIOLATIONS(fake, SINK);
	struct reader *r;

	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	/* It is shown, and not taken back. */
	fake = shown(test);
	before = VIOLATIONS(fake, SINK);
	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	/* SINKCANCEL has not been sent. */
	fake = shown(test);
	before = VIOLATIONS(fake, SINK);
	leave_slots(fake, 0);
	r = withdraw(fake);
	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	fake->link->sq_used = 0;
	fake_link_end(fake);
	expect_back(r, 0);
	/* Twice. */
	fake = shown(test);
	before = VIOLATIONS(fake, SINK);
	r = withdraw(fake);
	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	fake_link_end(fake);
	expect_back(r, 0);
}

/* Other bytes came between SINKCANCEL and its answer. */
static void hps_target_acked__over_before(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	struct reader *r = withdraw(fake);

	fake_sent_all(fake);
	fake_data(fake, FAKE_SMALL);
	fake_sent_all(fake);
	expect_back(r, 0);
	fake_read(fake);
	/* It would be a second SINKCANCEL that is not answered. */
	KUNIT_EXPECT_FALSE(test, show(fake));
	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_LOCAL_INV));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	expect_next(fake);
}

/* LOCAL_INV was flushed, or has completed when an error is known: it says nothing then. */
static void hps_target_revoked__shut(struct kunit *test)
{
	static const enum ib_wc_status status[] = { IB_WC_WR_FLUSH_ERR, IB_WC_SUCCESS };
	struct fake_link *fake;
	struct reader *r;
	int i;

	for (i = 0; i < ARRAY_SIZE(status); i++) {
		fake = shown(test);
		fake_data(fake, FAKE_SMALL);
		r = withdraw(fake);
		fake->link->conn.shut = status[i] == IB_WC_SUCCESS;
		fake_sent(fake, status[i]);
		expect_waiting(r);
		fake_link_end(fake);
		expect_back(r, 0);
	}
}

/*
 * That its queue pair is drained does not make a key void: those of other connections take
 * it until it is destroyed. Nobody has the memory before, nor is the key put twice.
 */
static void hps_target_put_key__not_yet(struct kunit *test)
{
	struct fake_link *fake;
	struct reader *r;
	int i;

	for (i = 0; i < 3; i++) {
		fake = attached(test);
		leave_slots(fake, i ? HPS_SQ_SIZE : 0);
		KUNIT_EXPECT_TRUE(test, show(fake));
		fake->link->sq_used = 0;
		if (i == 2)
			written(fake, 10, 0);
		fake->link->conn.shut = true;
		hps_target_put_key(fake->link);
		KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 0);
		r = withdraw(fake);
		schedule_timeout_uninterruptible(2);
		KUNIT_EXPECT_FALSE(test, completion_done(&r->done));
		push(fake);
		fake_link_end(fake);
		expect_back(r, i == 2 ? 10 : 0);
	}
}

/* Whatever became of it, the reader is told, once. */
static void hps_target_end__each_state(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_targets *targets;

	hps_target_end(fake->link);
	fake = prepared(test);
	hps_target_end(fake->link);
	KUNIT_EXPECT_EQ(test, fake->link->targets->state, HPS_TARGET_NONE);

	fake = attached(test);
	leave_slots(fake, 0);
	KUNIT_EXPECT_TRUE(test, show(fake));
	fake->link->sq_used = 0;
	fake_link_end(fake);
	KUNIT_EXPECT_EQ(test, fake->link->targets->state, HPS_TARGET_DONE);
	expect_back(withdraw(fake), 0);

	fake = shown(test);
	fake_link_end(fake);
	KUNIT_EXPECT_EQ(test, fake->link->targets->state, HPS_TARGET_DONE);
	expect_back(withdraw(fake), 0);

	fake = shown(test);
	written(fake, 10, 0);
	targets = fake->link->targets;
	KUNIT_EXPECT_EQ(test, targets->state, HPS_TARGET_OVER);
	fake_link_end(fake);
	KUNIT_EXPECT_EQ(test, targets->state, HPS_TARGET_DONE);
	expect_back(withdraw(fake), 10);

	fake = shown(test);
	written(fake, 10, rkey(fake));
	KUNIT_EXPECT_EQ(test, fake->link->targets->state, HPS_TARGET_DONE);
	fake_link_end(fake);
	expect_back(withdraw(fake), 10);
}

/* Of the peer's memory; it is void if something was under way. */
static void hps_target_offered__void_or_not(struct kunit *test)
{
	static const struct {
		u32 used;
		u16 at;
		u32 len;
	} cases[] = {
		{ 0, 0, LEN }, { 5, 5, LEN }, { 5, 4, 0 }, { 4, 5, 0 },
		{ 0x12345, 0x2345, LEN }, { 0x10000, 0, LEN }, { 0x1ffff, 0, 0 },
	};
	struct hps_targets *targets;
	struct fake_link *fake;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake = prepared(test);
		targets = fake->link->targets;
		fake->link->credit.tx_used = cases[i].used;
		fake->link->credit.tx_granted = cases[i].used + 4;
		sinkavail(fake, cases[i].at, PEER_ADDR, LEN);
		KUNIT_EXPECT_EQ(test, targets->peer_len, cases[i].len);
		if (cases[i].len) {
			KUNIT_EXPECT_EQ(test, targets->peer_addr, PEER_ADDR);
			KUNIT_EXPECT_EQ(test, targets->peer_rkey, PEER_RKEY);
		}
		/* It is counted in any case. */
		KUNIT_EXPECT_TRUE(test, targets->seen);
		KUNIT_EXPECT_EQ(test, fake->shut, 0);
		/* It cost no credit. */
		KUNIT_EXPECT_EQ(test, fake->link->credit.rx_used, 0);
		FAKE_EXPECT_POSTED(test, fake);
	}
}

/* What we send says how many came, modulo 2; then the next may come. */
static void hps_target_offered__counted(struct kunit *test)
{
	struct fake_link *fake = prepared(test);
	struct hps_conn *conn = &fake->link->conn;

	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_urgent(conn, 1)), 0);
	KUNIT_EXPECT_FALSE(test, fake_head(fake, 0)->flags & HPS_FLAG_SINK);
	sinkavail(fake, 0, PEER_ADDR, LEN);
	KUNIT_EXPECT_EQ(test, fake_send(fake, fake_tx(test, conn, 4096, 100), 100, -1), 0);
	KUNIT_EXPECT_TRUE(test, fake_head(fake, 1)->flags & HPS_FLAG_SINK);
	sinkavail(fake, 1, PEER_ADDR, LEN);
	KUNIT_EXPECT_EQ(test, fake_send(fake, fake_tx(test, conn, 4096, 100), 100, -1), 0);
	KUNIT_EXPECT_FALSE(test, fake_head(fake, 2)->flags & HPS_FLAG_SINK);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	/* One that was not told of does not count as such. */
	sinkavail(fake, 2, PEER_ADDR, LEN);
	mock_fail(MOCK_POST_SEND, BIT(0));
	KUNIT_EXPECT_NE(test, FAKE_LINK_LOCKED(fake, hps_msg_send_fin(conn)), 0);
	KUNIT_EXPECT_NE(test, fake->link->targets->seen, fake->link->targets->seen_told);
}

static void hps_target_offered__bad(struct kunit *test)
{
	static const struct {
		u64 addr;
		u32 len;
	} cases[] = {
		{ PEER_ADDR, 0 },
		{ PEER_ADDR, HPS_SOURCE_MAX + 1 },
		{ U64_MAX, 2 },
	};
	struct fake_link *fake = attached(test);
	u64 before = VIOLATIONS(fake, SINK);
	u32 used;
	int i;

	/* Before anything was lent. */
	sinkavail(fake, 0, PEER_ADDR, LEN);
	EXPECT_VIOLATION(test, fake, SINK, before);
	/* That we show memory does not change that. */
	fake = shown(test);
	before = VIOLATIONS(fake, SINK);
	sinkavail(fake, 0, PEER_ADDR, LEN);
	EXPECT_VIOLATION(test, fake, SINK, before);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake = prepared(test);
		before = VIOLATIONS(fake, SINK);
		sinkavail(fake, 0, cases[i].addr, cases[i].len);
		EXPECT_VIOLATION(test, fake, SINK, before);
		KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
	}
	/* Before the last was counted. */
	fake = prepared(test);
	before = VIOLATIONS(fake, SINK);
	sinkavail(fake, 0, PEER_ADDR, HPS_SOURCE_MAX);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, HPS_SOURCE_MAX);
	sinkavail(fake, 0, PEER_ADDR, LEN);
	EXPECT_VIOLATION(test, fake, SINK, before);
	/* Before it was over. */
	fake = prepared(test);
	before = VIOLATIONS(fake, SINK);
	sinkavail(fake, 0, PEER_ADDR, LEN);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_urgent(&fake->link->conn, 1)), 0);
	sinkavail(fake, 0, PEER_ADDR, LEN);
	EXPECT_VIOLATION(test, fake, SINK, before);
	/* Before SINKCANCEL was answered, for which there is no slot. */
	fake = prepared(test);
	before = VIOLATIONS(fake, SINK);
	sinkavail(fake, 0, PEER_ADDR, LEN);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_urgent(&fake->link->conn, 1)), 0);
	used = fake->link->sq_used;
	fake->link->sq_used = HPS_SQ_SIZE;
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	sinkavail(fake, 0, PEER_ADDR, LEN);
	fake->link->sq_used = used;
	EXPECT_VIOLATION(test, fake, SINK, before);
}

/* There is none of it between records. */
static void hps_target_offered__of_records(struct kunit *test)
{
	struct fake_link *fake = prepared(test);
	u64 before = VIOLATIONS(fake, SINK);

	fake->link->conn.records = true;
	sinkavail(fake, 0, PEER_ADDR, LEN);
	EXPECT_VIOLATION(test, fake, SINK, before);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
	fake->link->conn.records = false;
}

/* The peer's reader waits no longer. */
static void hps_target_taken_back__answered(struct kunit *test)
{
	struct fake_link *fake = prepared(test);
	u32 used = fake->link->credit.tx_used;

	sinkavail(fake, 0, PEER_ADDR, LEN);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 1);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 0)->type, HPS_MSG_SINKACK);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake_head(fake, 0)->len), 0);
	/* It says that SINKAVAIL came, and costs nothing. */
	KUNIT_EXPECT_TRUE(test, fake_head(fake, 0)->flags & HPS_FLAG_SINK);
	KUNIT_EXPECT_EQ(test, fake->link->credit.tx_used, used);
	/* Once. */
	push(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 1);
	/* And the next. */
	sinkavail(fake, 0, PEER_ADDR, LEN);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 2);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	FAKE_EXPECT_POSTED(test, fake);
}

/* Also one that is void: the peer does not know that. */
static void hps_target_taken_back__void(struct kunit *test)
{
	struct fake_link *fake = prepared(test);

	sinkavail(fake, 1, PEER_ADDR, LEN);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKACK));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

static void hps_target_taken_back__no_slot(struct kunit *test)
{
	struct fake_link *fake = prepared(test);

	sinkavail(fake, 0, PEER_ADDR, LEN);
	leave_slots(fake, 0);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
	fake->link->sq_used = 0;
	/* Whatever comes next. */
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKACK));
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 1);
}

static void hps_target_taken_back__cannot_post(struct kunit *test)
{
	struct fake_link *fake = prepared(test);

	sinkavail(fake, 0, PEER_ADDR, LEN);
	mock_fail(MOCK_POST_SEND, BIT(0));
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
}

/* SINKCANCEL of nothing. */
static void hps_target_taken_back__bad(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	u64 before = VIOLATIONS(fake, SINK);

	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	fake = prepared(test);
	before = VIOLATIONS(fake, SINK);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	/* Once for a SINKAVAIL. */
	fake = prepared(test);
	before = VIOLATIONS(fake, SINK);
	sinkavail(fake, 0, PEER_ADDR, LEN);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	/* Nor before it is answered, for another one or not. */
	fake = prepared(test);
	before = VIOLATIONS(fake, SINK);
	sinkavail(fake, 0, PEER_ADDR, LEN);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_send_fin(&fake->link->conn)), 0);
	leave_slots(fake, 0);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	sinkavail(fake, 0, PEER_ADDR, LEN);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	EXPECT_VIOLATION(test, fake, SINK, before);
	fake->link->sq_used = 1;
}

/* WRITTEN costs a credit, and comes when bytes of the stream may. */
static void hps_msg_rx_written__not_then(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	u64 before = VIOLATIONS(fake, OVERRUN);

	fake->link->credit.rx_used = fake->link->credit.rx_told;
	written(fake, LEN, rkey(fake));
	EXPECT_VIOLATION(test, fake, OVERRUN, before);
	/* Between SRCCANCEL and CANCELACK */
	fake = shown(test);
	before = VIOLATIONS(fake, SOURCE);
	fake->link->rx_cancelled = true;
	leave_slots(fake, 0);
	written(fake, LEN, rkey(fake));
	fake->link->sq_used = 0;
	EXPECT_VIOLATION(test, fake, SOURCE, before);
	/* Between the first PAD and the last */
	fake = shown(test);
	before = VIOLATIONS(fake, BUFFERS);
	fake->link->peer_pads = true;
	hps_shrink_plan(fake->link);
	KUNIT_ASSERT_NOT_NULL(test, fake->link->shrink);
	fake->link->shrink->state = HPS_SHRINK_PADDED;
	fake->link->shrink->pads = 2;
	written(fake, LEN, rkey(fake));
	EXPECT_VIOLATION(test, fake, BUFFERS, before);
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_bytes, 0);
}

/* Each has the length that its type has. */
static void hps_msg_check__length_of_sink(struct kunit *test)
{
	static const struct {
		u8 type;
		u32 len;
	} cases[] = {
		{ HPS_MSG_SINKAVAIL, sizeof(struct hps_sinkavail) - 1 },
		{ HPS_MSG_SINKAVAIL, sizeof(struct hps_sinkavail) + 1 },
		{ HPS_MSG_WRITTEN, sizeof(struct hps_written) - 1 },
		{ HPS_MSG_WRITTEN, sizeof(struct hps_written) + 1 },
		{ HPS_MSG_SINKCANCEL, 1 },
		{ HPS_MSG_SINKACK, 1 },
		{ HPS_MSG_WORD, sizeof(struct hps_word) - 1 },
		{ HPS_MSG_WORD, sizeof(struct hps_word) + 1 },
	};
	struct fake_link *fake;
	u64 before;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake = prepared(test);
		before = VIOLATIONS(fake, LENGTH);
		fake_message(fake, cases[i].type, NULL, cases[i].len);
		EXPECT_VIOLATION(test, fake, LENGTH, before);
	}
}

/* One counted that was not sent. */
static void hps_msg_heard_sink__of_none(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	u64 before = VIOLATIONS(fake, SINK);
	struct hps_hdr *hdr;

	hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	hdr->flags |= HPS_FLAG_SINK;
	fake_arrive(fake, sizeof(*hdr));
	EXPECT_VIOLATION(test, fake, SINK, before);
	fake = prepared(test);
	before = VIOLATIONS(fake, SINK);
	hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	hdr->flags |= HPS_FLAG_SINK;
	fake_arrive(fake, sizeof(*hdr));
	EXPECT_VIOLATION(test, fake, SINK, before);
	/* One that is queued was not sent either. */
	fake = attached(test);
	before = VIOLATIONS(fake, SINK);
	leave_slots(fake, 0);
	KUNIT_EXPECT_TRUE(test, show(fake));
	hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	hdr->flags |= HPS_FLAG_SINK;
	fake_arrive(fake, sizeof(*hdr));
	EXPECT_VIOLATION(test, fake, SINK, before);
	fake->link->sq_used = 0;
}

/* It need not have come yet, but once it has it cannot be gone. */
static void hps_msg_heard_sink__in_time(struct kunit *test)
{
	struct fake_link *fake = shown(test);
	u64 before = VIOLATIONS(fake, SINK);
	struct hps_hdr *hdr;

	hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	hdr->flags &= ~HPS_FLAG_SINK;
	fake_arrive(fake, sizeof(*hdr));
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	hdr->flags &= ~HPS_FLAG_SINK;
	fake_arrive(fake, sizeof(*hdr));
	EXPECT_VIOLATION(test, fake, SINK, before);
}

/* A peer that lends and takes SINKAVAIL may be shown as much as one key covers. */
static void hps_msg_rx_srcavail__show_max(struct kunit *test)
{
	struct hps_srcavail src = { .rkey = cpu_to_be32(7), .len = cpu_to_be32(100) };
	struct fake_link *fake = attached(test);

	fake->link->tx_mr_pages = 9;
	fake->link->reads = true;
	fake_message(fake, HPS_MSG_SRCAVAIL, &src, sizeof(src));
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_show_max, 0);
	fake->link->peer_writes = true;
	fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_show_max, 0);
	fake_message(fake, HPS_MSG_SRCAVAIL, &src, sizeof(src));
	/* It may begin anywhere in its first page. */
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_show_max, 8 * PAGE_SIZE);
	/* Nothing was lent by us, nor shown: there is nothing for it. */
	KUNIT_EXPECT_NULL(test, fake->link->targets);
}

/* What comes next between records is the head of one, and belongs into no program's memory. */
static void hps_msg_rx_srcavail__of_records(struct kunit *test)
{
	struct hps_srcavail src = { .rkey = cpu_to_be32(7), .len = cpu_to_be32(100) };
	struct fake_link *fake = attached(test);
	struct hps_record head;

	fake->link->tx_mr_pages = 9;
	fake->link->reads = true;
	fake->link->peer_writes = true;
	fake->link->conn.records = true;
	hps_record_fill(&head, 100, 0);
	fake_message(fake, HPS_MSG_DATA, &head, sizeof(head));
	fake_message(fake, HPS_MSG_SRCAVAIL, &src, sizeof(src));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_remote, 1);
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_show_max, 0);
	fake->link->conn.records = false;
}

/* PAD leaves the word as it is: nobody finds it then, until other bytes come or it is withdrawn. */
static void hps_target_pad__word(struct kunit *test)
{
	struct fake_link *fake = attached(test);
	const u64 *word;
	struct reader *r;

	by_word(fake);
	fake->link->peer_pads = true;
	hps_shrink_plan(fake->link);
	KUNIT_ASSERT_NOT_NULL(test, fake->link->shrink);
	KUNIT_EXPECT_TRUE(test, show(fake));
	fake_sent_all(fake);
	word = &fake->link->rendezvous->memory->word;
	KUNIT_EXPECT_EQ(test, *word, HPS_WORD_WAITS);
	fake->link->shrink->state = HPS_SHRINK_PADDED;
	fake->link->shrink->pads = 2;
	fake_message(fake, HPS_MSG_PAD, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_EQ(test, fake->link->credit.rx_used, 1);
	KUNIT_EXPECT_EQ(test, *word, HPS_WORD_WAITS);
	r = withdraw(fake);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_SINKCANCEL));
	fake_sent_all(fake);
	expect_waiting_for(r, 2);
	fake_message(fake, HPS_MSG_SINKACK, NULL, 0);
	fake_sent_all(fake);
	expect_back_with(r, 0, 1);
	KUNIT_EXPECT_EQ(test, *word, 0);
	/* What comes next has another number. */
	KUNIT_EXPECT_TRUE(test, show(fake));
	fake_sent_all(fake);
	KUNIT_EXPECT_EQ(test, *word, HPS_WORD_WAITS + 1);
	fake->link->shrink->state = HPS_SHRINK_REST;
	fake->link->shrink->pads = 0;
	fake_data(fake, FAKE_SMALL);
	KUNIT_EXPECT_EQ(test, *word, 0);
}

static struct kunit_case target_cases[] = {
	KUNIT_CASE(hps_target_pad__word),
	KUNIT_CASE(hps_target_prepare__once),
	KUNIT_CASE(hps_target_prepare__fails),
	KUNIT_CASE(hps_target_expect__once),
	KUNIT_CASE(hps_target_expect__fails),
	KUNIT_CASE(hps_target_tell__key_and_message),
	KUNIT_CASE(hps_target_tell__many_before),
	KUNIT_CASE(hps_target_tell_by_word__key_first),
	KUNIT_CASE(hps_target_tell_by_word__keys_alone),
	KUNIT_CASE(hps_target_tell_by_word__refused),
	KUNIT_CASE(hps_target_tell_by_word__cannot_post),
	KUNIT_CASE(hps_target_tell__no_slot),
	KUNIT_CASE(hps_target_tell__keys_alone),
	KUNIT_CASE(hps_target_tell__cannot_post_key),
	KUNIT_CASE(hps_target_tell__cannot_post_message),
	KUNIT_CASE(hps_target_show__not_then),
	KUNIT_CASE(hps_target_show__two_readers),
	KUNIT_CASE(hps_target_show__unheard),
	KUNIT_CASE(hps_target_show__cannot),
	KUNIT_CASE(hps_target_withdraw__queued),
	KUNIT_CASE(hps_target_withdraw__no_word),
	KUNIT_CASE(hps_target_withdraw__word),
	KUNIT_CASE(hps_target_withdraw__answered),
	KUNIT_CASE(hps_target_withdraw__no_slot),
	KUNIT_CASE(hps_target_withdraw__written_before),
	KUNIT_CASE(hps_target_withdraw__over_before),
	KUNIT_CASE(hps_target_withdraw__cannot_post),
	KUNIT_CASE(hps_target_withdraw__not_answered),
	KUNIT_CASE(hps_target_withdraw__ended),
	KUNIT_CASE(hps_target_withdraw__ended_before),
	KUNIT_CASE(hps_target_over__nothing),
	KUNIT_CASE(hps_target_over__queued),
	KUNIT_CASE(hps_target_over__each),
	KUNIT_CASE(hps_target_over__not_by_others),
	KUNIT_CASE(hps_target_over__in_order),
	KUNIT_CASE(hps_target_over__no_slot),
	KUNIT_CASE(hps_target_over__cannot_post),
	KUNIT_CASE(hps_target_written__no_word),
	KUNIT_CASE(hps_target_written__key_invalid),
	KUNIT_CASE(hps_target_written__key_valid),
	KUNIT_CASE(hps_target_written__key_of_before),
	KUNIT_CASE(hps_target_written__shut),
	KUNIT_CASE(hps_target_written__bad),
	KUNIT_CASE(hps_target_written__length),
	KUNIT_CASE(hps_target_acked__not_asked),
	KUNIT_CASE(hps_target_acked__over_before),
	KUNIT_CASE(hps_target_revoked__shut),
	KUNIT_CASE(hps_target_put_key__not_yet),
	KUNIT_CASE(hps_target_end__each_state),
	KUNIT_CASE(hps_target_offered__void_or_not),
	KUNIT_CASE(hps_target_offered__counted),
	KUNIT_CASE(hps_target_offered__bad),
	KUNIT_CASE(hps_target_offered__of_records),
	KUNIT_CASE(hps_target_taken_back__answered),
	KUNIT_CASE(hps_target_taken_back__void),
	KUNIT_CASE(hps_target_taken_back__no_slot),
	KUNIT_CASE(hps_target_taken_back__cannot_post),
	KUNIT_CASE(hps_target_taken_back__bad),
	KUNIT_CASE(hps_msg_rx_written__not_then),
	KUNIT_CASE(hps_msg_check__length_of_sink),
	KUNIT_CASE(hps_msg_heard_sink__of_none),
	KUNIT_CASE(hps_msg_heard_sink__in_time),
	KUNIT_CASE(hps_msg_rx_srcavail__show_max),
	KUNIT_CASE(hps_msg_rx_srcavail__of_records),
	{}
};

UNIT_SUITE(target, target_cases);
