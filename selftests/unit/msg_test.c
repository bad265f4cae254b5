// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/msg.c"

#include "fake.h"
#include "fake_link.h"
#include "stream.h"

/* One that a responder has before the initiator has spoken. */
static struct fake_link *opening(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	fake->link->established = false;
	fake->link->conn.state = TCP_SYN_RECV;
	return fake;
}

static int control(struct fake_link *fake)
{
	return FAKE_LINK_LOCKED(fake, hps_msg_plain(fake->link, HPS_MSG_CREDIT));
}

/* Completions that are errors. */
static void errs(struct fake_link *fake, enum ib_wc_status status)
{
	struct ib_wc wc = { .status = status };

	spin_lock_bh(&fake->link->conn.lock);
	hps_msg_error(fake->link, &wc);
	spin_unlock_bh(&fake->link->conn.lock);
}

static void hps_msg_error__each(struct kunit *test)
{
	static const struct {
		enum ib_wc_status status;
		enum hps_stat stat;
		int err;
	} cases[] = {
		{ IB_WC_WR_FLUSH_ERR, HPS_STAT_RESET_RCVD, 0 },
		{ IB_WC_RETRY_EXC_ERR, HPS_STAT_RETRY_EXCEEDED, ETIMEDOUT },
		{ IB_WC_RNR_RETRY_EXC_ERR, HPS_STAT_RNR_EXCEEDED, 0 },
		{ IB_WC_LOC_LEN_ERR, HPS_STAT_WC_ERROR, 0 },
	};
	struct fake_link *fake;
	u64 before;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake = fake_link(test);
		before = fake_counter(fake, cases[i].stat);
		errs(fake, cases[i].status);
		KUNIT_EXPECT_EQ(test, fake->shut, 1);
		KUNIT_EXPECT_EQ(test, fake->link->conn.err, cases[i].err);
		/* What follows is its consequence. */
		errs(fake, cases[i].status);
		KUNIT_EXPECT_EQ(test, fake_counter(fake, cases[i].stat), before + 1);
	}
}

static void hps_msg_error__flushed_early(struct kunit *test)
{
	struct fake_link *fake = opening(test);

	errs(fake, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

static void hps_msg_error__flushed_at_the_end(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	u64 before = fake_counter(fake, HPS_STAT_RESET_RCVD);

	fake->link->conn.state = TCP_CLOSE;
	errs(fake, IB_WC_WR_FLUSH_ERR);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_RESET_RCVD), before);
}

/* One completion is for all that were posted before it. */
static void hps_msg_sent__several(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_conn *conn = &fake->link->conn;
	struct hps_buf *buf;

	fake_link_attach(fake);
	buf = fake_tx(test, conn, 4096, 300);
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	KUNIT_EXPECT_FALSE(test, fake->sends[0].signaled);
	KUNIT_EXPECT_FALSE(test, fake->sends[1].signaled);
	KUNIT_EXPECT_FALSE(test, fake->sends[2].signaled);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->link->ask_timer));
	/* Somebody asks. */
	spin_lock_bh(&conn->lock);
	hps_msg_ask(conn);
	hps_msg_ask(conn);
	spin_unlock_bh(&conn->lock);
	KUNIT_EXPECT_EQ(test, fake->link->sq_used, 4);
	KUNIT_EXPECT_TRUE(test, fake->sends[3].signaled);
	KUNIT_EXPECT_FALSE(test, FAKE_LINK_LOCKED(fake, hps_msg_tx_idle(conn)));
	/* The device seemed to have forgotten them. */
	KUNIT_EXPECT_TRUE(test, timer_pending(&conn->probe));
	conn->tx_late = true;
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_FALSE(test, conn->tx_late);
	KUNIT_EXPECT_EQ(test, conn->tx_unacked, 0);
	KUNIT_EXPECT_TRUE(test, FAKE_LINK_LOCKED(fake, hps_msg_tx_idle(conn)));
}

static void hps_msg_sent__error(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_buf *buf = fake_tx(test, &fake->link->conn, 4096, 100);

	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	fake->link->conn.tx_late = true;
	fake_sent(fake, IB_WC_RETRY_EXC_ERR);
	KUNIT_EXPECT_TRUE(test, fake->link->conn.tx_late);
	KUNIT_EXPECT_EQ(test, fake->link->conn.err, ETIMEDOUT);
	KUNIT_EXPECT_TRUE(test, FAKE_LINK_LOCKED(fake, hps_msg_tx_idle(&fake->link->conn)));
}

static void hps_msg_send__no_credit(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_buf *buf = fake_tx(test, &link->conn, 4096, 500);
	int i;

	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), -EAGAIN);
	/* It is one stall. */
	KUNIT_EXPECT_EQ(test, link->stalls, 1);
	KUNIT_EXPECT_EQ(test, link->credit.tx_used, 4);
	link->credit.tx_granted++;
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	KUNIT_EXPECT_FALSE(test, link->stalled);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* DATA leaves slots to what needs no credit, which takes them all. */
static void hps_msg_send__no_slot(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_buf *buf = fake_tx(test, &link->conn, 4096, 4000);
	int i;

	link->credit.tx_granted = 32;
	for (i = 0; i < HPS_SQ_SIZE - HPS_CTRL_SLOTS; i++)
		KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 10, -1), 0);
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 10, -1), -EAGAIN);
	for (i = 0; i < HPS_CTRL_SLOTS; i++)
		KUNIT_EXPECT_EQ(test, control(fake), 0);
	KUNIT_EXPECT_EQ(test, control(fake), -EAGAIN);
	/* And no probe, where all are under way. */
	i = fake->nr_sends;
	KUNIT_EXPECT_FALSE(test, FAKE_LINK_LOCKED(fake, hps_msg_probe(&link->conn)));
	KUNIT_EXPECT_EQ(test, fake->nr_sends, i);
}

/* PAD and SHRINK leave them as well; and they come before anything of the stream. */
static void hps_msg_pad__no_slot(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_buf *buf = fake_tx(test, &link->conn, 4096, 100);
	int i;

	link->credit.tx_granted = 64;
	link->tx_pads = HPS_SQ_SIZE - HPS_CTRL_SLOTS + 2;
	spin_lock_bh(&link->conn.lock);
	hps_msg_pad(link);
	spin_unlock_bh(&link->conn.lock);
	KUNIT_EXPECT_EQ(test, link->tx_pads, 2);
	link->peer_pads = true;
	hps_shrink_plan(link);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_shrink(link)), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), -EAGAIN);
	for (i = 0; i < HPS_CTRL_SLOTS; i++)
		KUNIT_EXPECT_EQ(test, control(fake), 0);
	fake_sent_all(fake);
	KUNIT_EXPECT_EQ(test, link->tx_pads, 0);
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
}

static void hps_msg_shrink__payload(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;

	link->peer_pads = true;
	hps_shrink_plan(link);
	link->shrink->size = 2048;
	link->shrink->pads = 77;
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_shrink(link)), 0);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 0)->type, HPS_MSG_SHRINK);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake->sends[0].head.smaller.size), 2048);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake->sends[0].head.smaller.pads), 77);
	KUNIT_EXPECT_EQ(test, link->credit.tx_used, 1);
	link->credit.tx_used = link->credit.tx_granted;
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_shrink(link)), -EAGAIN);
	link->credit.tx_used--;
	link->conn.shut = true;
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_shrink(link)), -EAGAIN);
}

static void hps_msg_send__shut(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_conn *conn = &fake->link->conn;
	struct hps_buf *buf = fake_tx(test, conn, 4096, 100);

	conn->shut = true;
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), -EAGAIN);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_send_fin(conn)), -EAGAIN);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
}

/* What a large send has, and where a reader of the peer waits for as much. */
#define LENT		(4 * PAGE_SIZE)
#define PEER_ADDR	0x1234567800000010ULL
#define PEER_RKEY	77

/* SINKAVAIL comes in, behind all that was sent or behind @before of that. */
static void sinkavail(struct fake_link *fake, u32 len, u16 before)
{
	struct hps_sinkavail sink = {
		.addr = cpu_to_be64(PEER_ADDR), .rkey = cpu_to_be32(PEER_RKEY),
		.len = cpu_to_be32(len),
	};
	struct hps_hdr *hdr = fake_arriving(fake, HPS_MSG_SINKAVAIL, &sink, sizeof(sink));

	hdr->urgent = cpu_to_be16(fake->link->credit.tx_used - before);
	fake_arrive(fake, sizeof(*hdr) + sizeof(sink));
}

/* One that has lent something before, so that its peer may show memory. */
static struct fake_link *lending(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct sock *sk = fake_link_attach(fake);
	int err;

	lock_sock(sk);
	err = hps_target_expect(fake->link);
	release_sock(sk);
	KUNIT_ASSERT_EQ(test, err, 0);
	return fake;
}

/* And whose peer has shown enough of it. */
static struct fake_link *invited(struct kunit *test)
{
	struct fake_link *fake = lending(test);

	sinkavail(fake, LENT, 0);
	return fake;
}

static void push(struct fake_link *fake)
{
	spin_lock_bh(&fake->link->conn.lock);
	hps_stream_push(&fake->link->conn);
	spin_unlock_bh(&fake->link->conn.lock);
}

/* A large send goes, as far as it can. */
static struct hps_source *lend(struct fake_link *fake)
{
	struct hps_source *source = hps_source(fake_lend(fake, LENT));

	push(fake);
	return source;
}

/* It is offered, and was not written. */
static void expect_offered(struct fake_link *fake)
{
	KUNIT_EXPECT_NOT_NULL(fake->test, fake_link_sent(fake, HPS_MSG_SRCAVAIL));
	KUNIT_EXPECT_NULL(fake->test, fake_link_sent(fake, HPS_MSG_WRITTEN));
	KUNIT_EXPECT_EQ(fake->test, fake->link->tx_offers, 1);
	KUNIT_EXPECT_EQ(fake->test, fake->shut, 0);
}

/* It waits for a memory region, as it does for a credit. */
static void hps_msg_offer__regions_in_use(struct kunit *test)
{
	struct fake_link *fake = invited(test);
	struct hps_link *link = fake->link;
	struct hps_source *source;
	LIST_HEAD(used);

	list_splice_init(&link->tx_mrs, &used);
	source = lend(fake);
	KUNIT_EXPECT_NULL(test, source->key.mr);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	KUNIT_EXPECT_EQ(test, link->tx_lent, 1);
	list_splice(&used, &link->tx_mrs);
	push(fake);
	KUNIT_EXPECT_NOT_NULL(test, source->key.mr);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 3);
	fake_sent_all(fake);
	KUNIT_EXPECT_EQ(test, link->tx_lent, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* It says whether more of the same call is to follow. */
static void hps_msg_offer__more(struct kunit *test)
{
	struct fake_link *fake = lending(test);
	struct hps_conn *conn = &fake->link->conn;

	conn->tx_call_len = 2 * LENT;
	lend(fake);
	lend(fake);
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 4);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 1)->type, HPS_MSG_SRCAVAIL);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 1)->flags, HPS_FLAG_MORE);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 3)->type, HPS_MSG_SRCAVAIL);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 3)->flags, 0);
}

/* A key for us alone, the bytes, and a message in their place that invalidates the peer's. */
static void hps_msg_write__posted(struct kunit *test)
{
	struct fake_link *fake = invited(test);
	struct hps_link *link = fake->link;
	u64 written = fake_counter(fake, HPS_STAT_TX_WRITTEN);
	u64 lent = fake_counter(fake, HPS_STAT_TX_LENT);
	u64 bytes = fake_counter(fake, HPS_STAT_TX_BYTES);
	u64 msgs = fake_counter(fake, HPS_STAT_TX_MSGS);
	struct ib_mr *mr = lend(fake)->key.mr;
	struct fake_posted *post = fake->sends;

	KUNIT_ASSERT_EQ(test, fake->nr_sends, 3);
	KUNIT_EXPECT_EQ(test, post[0].opcode, IB_WR_REG_MR);
	KUNIT_EXPECT_EQ(test, post[0].rkey, mr->rkey);
	KUNIT_EXPECT_EQ(test, post[0].access, 0);
	KUNIT_EXPECT_EQ(test, post[1].opcode, IB_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, post[1].sge.addr, mr->iova);
	KUNIT_EXPECT_EQ(test, post[1].sge.length, LENT);
	KUNIT_EXPECT_EQ(test, post[1].sge.lkey, mr->lkey);
	KUNIT_EXPECT_EQ(test, post[1].remote, PEER_ADDR);
	KUNIT_EXPECT_EQ(test, post[1].rkey, PEER_RKEY);
	KUNIT_EXPECT_EQ(test, post[2].opcode, IB_WR_SEND_WITH_INV);
	KUNIT_EXPECT_EQ(test, post[2].rkey, PEER_RKEY);
	KUNIT_EXPECT_TRUE(test, post[2].signaled);
	KUNIT_EXPECT_EQ(test, post[2].head.hdr.type, HPS_MSG_WRITTEN);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(post[2].head.hdr.len), sizeof(struct hps_written));
	KUNIT_EXPECT_EQ(test, be32_to_cpu(post[2].head.written.len), LENT);
	/* It costs a credit, and is no offer. */
	KUNIT_EXPECT_EQ(test, link->credit.tx_used, 1);
	KUNIT_EXPECT_EQ(test, link->tx_offers, 0);
	KUNIT_EXPECT_EQ(test, link->conn.tx_bytes, LENT);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_TX_WRITTEN), written + LENT);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_TX_LENT), lent);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_TX_BYTES), bytes + LENT);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_TX_MSGS), msgs + 1);
}

/* Its key is invalid before the pages are given back, and who waits for that goes on. */
static void hps_msg_write__delivered(struct kunit *test)
{
	struct fake_link *fake = invited(test);
	struct hps_conn *conn = &fake->link->conn;
	struct hps_source *source = hps_source(fake_lend(fake, LENT));
	u32 key;

	source->lent->waited = true;
	conn->tx_waited = 1;
	push(fake);
	KUNIT_ASSERT_NOT_NULL(test, source->key.mr);
	key = source->key.mr->rkey;
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 1);
	KUNIT_EXPECT_EQ(test, fake->sends[0].opcode, IB_WR_LOCAL_INV);
	KUNIT_EXPECT_EQ(test, fake->sends[0].rkey, key);
	KUNIT_EXPECT_EQ(test, conn->tx_waited, 1);
	KUNIT_EXPECT_EQ(test, conn->tx_unacked, LENT);
	KUNIT_EXPECT_EQ(test, conn->tx_gathers_done, 0);
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, conn->tx_waited, 0);
	KUNIT_EXPECT_EQ(test, conn->tx_unacked, 0);
	KUNIT_EXPECT_EQ(test, conn->tx_gathers_done, 1);
	KUNIT_EXPECT_EQ(test, fake->valid, 0);
	KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* For each SINKAVAIL once. */
static void hps_msg_write__once(struct kunit *test)
{
	struct fake_link *fake = invited(test);

	lend(fake);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_WRITTEN));
	fake_sent_all(fake);
	lend(fake);
	expect_offered(fake);
	/* And the next, though the offer is not read yet. */
	sinkavail(fake, LENT, 0);
	lend(fake);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_WRITTEN));
	KUNIT_EXPECT_EQ(test, fake->link->tx_offers, 1);
}

/* There a message invalidates no key, and each request asks for its completion. */
static void hps_msg_write__iwarp(struct kunit *test)
{
	struct fake_link *fake = invited(test);
	struct hps_conn *conn = &fake->link->conn;
	int i;

	fake->link->iwarp = true;
	lend(fake);
	KUNIT_ASSERT_EQ(test, fake->nr_sends, 3);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_TRUE(test, fake->sends[i].signaled);
	KUNIT_EXPECT_EQ(test, fake->sends[2].opcode, IB_WR_SEND);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 2)->type, HPS_MSG_WRITTEN);
	/* Until the last has completed the key is needed. */
	fake_sent(fake, IB_WC_SUCCESS);
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_LOCAL_INV));
	KUNIT_EXPECT_EQ(test, conn->tx_unacked, LENT);
	fake_sent_all(fake);
	KUNIT_EXPECT_EQ(test, conn->tx_unacked, 0);
	KUNIT_EXPECT_EQ(test, conn->tx_gathers_done, 1);
	KUNIT_EXPECT_EQ(test, fake->valid, 0);
}

/* It does not fit, and what is sent another way ends it. */
static void hps_msg_write__too_large(struct kunit *test)
{
	struct fake_link *fake = lending(test);

	sinkavail(fake, LENT - 1, 0);
	lend(fake);
	expect_offered(fake);
	KUNIT_EXPECT_EQ(test, fake->link->targets->peer_len, 0);
}

/* Something of the stream was sent that the peer had not received, or later. */
static void hps_msg_write__void(struct kunit *test)
{
	struct fake_link *fake = lending(test);
	struct hps_conn *conn = &fake->link->conn;

	KUNIT_EXPECT_EQ(test, fake_send(fake, fake_tx(test, conn, 4096, 100), 100, -1), 0);
	sinkavail(fake, LENT, 1);
	lend(fake);
	expect_offered(fake);

	fake = invited(test);
	conn = &fake->link->conn;
	KUNIT_EXPECT_EQ(test, fake_send(fake, fake_tx(test, conn, 4096, 100), 100, -1), 0);
	lend(fake);
	expect_offered(fake);

	/* The peer does not wait any longer. */
	fake = invited(test);
	fake_message(fake, HPS_MSG_SINKCANCEL, NULL, 0);
	lend(fake);
	expect_offered(fake);
}

/* SINKAVAIL finds a send that had to wait. */
static void hps_msg_write__waits(struct kunit *test)
{
	struct fake_link *fake = invited(test);
	struct hps_link *link = fake->link;

	/* For slots, of which it takes three. */
	link->sq_used = HPS_SQ_SIZE - HPS_CTRL_SLOTS - 2;
	lend(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	KUNIT_EXPECT_EQ(test, link->targets->peer_len, LENT);
	link->sq_used--;
	push(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 3);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_WRITTEN));
	link->sq_used = 3;

	/* For a credit */
	fake = lending(test);
	link = fake->link;
	link->credit.tx_used = link->credit.tx_granted;
	sinkavail(fake, LENT, 0);
	lend(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	link->credit.tx_granted++;
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_WRITTEN));

	/* For all that was posted, with a device that could repeat it */
	fake = invited(test);
	link = fake->link;
	link->keys_alone = true;
	KUNIT_EXPECT_EQ(test, control(fake), 0);
	lend(fake);
	KUNIT_EXPECT_NULL(test, fake_link_posted(fake, IB_WR_REG_MR));
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_ASSERT_NOT_NULL(test, fake_link_posted(fake, IB_WR_REG_MR));
	KUNIT_EXPECT_TRUE(test, fake_link_posted(fake, IB_WR_REG_MR)->signaled);
	KUNIT_EXPECT_NOT_NULL(test, fake_link_sent(fake, HPS_MSG_WRITTEN));
}

/* The first, the second or the third: the pages are kept until there is no key any more. */
static void hps_msg_write__cannot_post(struct kunit *test)
{
	struct fake_link *fake;
	struct hps_conn *conn;
	u64 written, errors;
	int i;

	for (i = 0; i < 3; i++) {
		fake = invited(test);
		conn = &fake->link->conn;
		written = fake_counter(fake, HPS_STAT_TX_WRITTEN);
		errors = fake_counter(fake, HPS_STAT_WC_ERROR);
		mock_fail(MOCK_POST_SEND, BIT(i));
		lend(fake);
		KUNIT_EXPECT_EQ(test, fake->nr_sends, i);
		KUNIT_EXPECT_EQ(test, fake->shut, 1);
		KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_WC_ERROR), errors + 1);
		KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_TX_WRITTEN), written);
		KUNIT_EXPECT_EQ(test, fake->link->credit.tx_used, 0);
		KUNIT_EXPECT_EQ(test, conn->tx_bytes, 0);
		KUNIT_EXPECT_EQ(test, conn->tx_gathers_done, 0);
		KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 1);
		fake_link_end(fake);
		KUNIT_EXPECT_EQ(test, conn->tx_gathers_done, 1);
	}
}

/* WRITTEN has not arrived, or its key could not be invalidated: likewise. */
static void hps_msg_write__fails(struct kunit *test)
{
	struct fake_link *fake;
	struct hps_conn *conn;
	int i;

	for (i = 0; i < 2; i++) {
		fake = invited(test);
		conn = &fake->link->conn;
		lend(fake);
		if (i)
			fake_sent(fake, IB_WC_SUCCESS);
		fake_sent(fake, IB_WC_REM_ACCESS_ERR);
		KUNIT_EXPECT_EQ(test, fake->shut, 1);
		KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
		KUNIT_EXPECT_EQ(test, conn->tx_gathers_done, 0);
		KUNIT_EXPECT_EQ(test, fake->qp.mrs_used, 1);
		fake_link_end(fake);
		KUNIT_EXPECT_EQ(test, conn->tx_gathers_done, 1);
	}
}

/* What is offered takes two. */
static void hps_msg_offer__no_slot(struct kunit *test)
{
	struct fake_link *fake = lending(test);
	struct hps_link *link = fake->link;

	link->sq_used = HPS_SQ_SIZE - HPS_CTRL_SLOTS - 1;
	lend(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	link->sq_used--;
	push(fake);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 2);
	expect_offered(fake);
	link->sq_used = 2;
}

/* One at a time, until the peer says that it has it. */
static void hps_msg_urgent__one_at_a_time(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_hdr *hdr;

	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_urgent(&link->conn, 77)), 0);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 0)->type, HPS_MSG_URGENT);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake->sends[0].head.urgent.ahead), 77);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_urgent(&link->conn, 78)), -EAGAIN);
	/* It has not heard of it. */
	hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	hdr->flags = 0;
	fake_arrive(fake, sizeof(*hdr));
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_urgent(&link->conn, 78)), -EAGAIN);
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_urgent(&link->conn, 78)), 0);
}

static void hps_msg_urgent__no_slot(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	fake->link->sq_used = HPS_SQ_SIZE;
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_urgent(&fake->link->conn, 77)),
			-EAGAIN);
	KUNIT_EXPECT_FALSE(test, fake->link->tx_waits);
	fake->link->sq_used = 0;
}

/* So many under way of which a completion will tell; what nobody asked about is not counted. */
static void hps_msg_busy__signaled(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_buf *buf;
	u32 i;

	fake_link_attach(fake);
	link->near = HPS_NEAR_TIMES;
	link->credit.tx_granted = link->credit.tx_max;
	buf = fake_tx(test, &link->conn, 4096, 20 * HPS_BUSY_SLOTS);
	for (i = 0; i < 2 * HPS_BUSY_SLOTS; i++) {
		KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_busy(&link->conn)),
				link->sq_used - link->unsignaled >= HPS_BUSY_SLOTS);
		KUNIT_ASSERT_EQ(test, fake_send(fake, buf, 10, -1), 0);
		KUNIT_EXPECT_EQ(test, fake->sends[i].signaled, !link->unsignaled);
	}
	KUNIT_EXPECT_TRUE(test, FAKE_LINK_LOCKED(fake, hps_msg_busy(&link->conn)));
	fake_sent_all(fake);
	KUNIT_EXPECT_FALSE(test, FAKE_LINK_LOCKED(fake, hps_msg_busy(&link->conn)));
}

/* As many messages as keep a device busy, and the first completion @late by hps_post_clock(). */
static void fake_busy(struct kunit *test, struct fake_link *fake, bool busy, u32 late)
{
	struct hps_link *link = fake->link;
	struct hps_buf *buf;
	u32 i;

	link->credit.tx_granted = link->credit.tx_used + link->credit.tx_max;
	buf = fake_tx(test, &link->conn, 4096, 20 * HPS_BUSY_SLOTS);
	for (i = 0; i < 2 * HPS_BUSY_SLOTS; i++)
		KUNIT_ASSERT_EQ(test, fake_send(fake, buf, 10, -1), 0);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_busy(&link->conn)), busy);
	KUNIT_EXPECT_NE(test, link->timed, 0);
	link->timed_from = hps_post_clock() - late;
	fake_sent_all(fake);
	KUNIT_EXPECT_EQ(test, link->timed, 0);
}

/* A far peer's completions are not waited for. It is near if one comes soon, for a while. */
static void hps_msg_busy__far(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	fake_link_attach(fake);
	fake_busy(test, fake, false, 2 * HPS_NEAR);
	KUNIT_EXPECT_EQ(test, fake->link->near, 0);
	fake_busy(test, fake, false, 0);
	KUNIT_EXPECT_EQ(test, fake->link->near, HPS_NEAR_TIMES);
	fake_busy(test, fake, true, 2 * HPS_NEAR);
	KUNIT_EXPECT_EQ(test, fake->link->near, HPS_NEAR_TIMES - 1);
}

/* So many to read there, if the device is yet to say that something has arrived. */
static void hps_msg_busy__behind(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_buf *buf;

	fake_link_attach(fake);
	link->near = HPS_NEAR_TIMES;
	link->credit.tx_granted = link->credit.tx_max;
	link->credit.tx_fresh = link->credit.tx_max;
	link->credit.tx_used = link->credit.tx_max / 2;
	KUNIT_EXPECT_FALSE(test, FAKE_LINK_LOCKED(fake, hps_msg_busy(&link->conn)));
	buf = fake_tx(test, &link->conn, 4096, 10);
	KUNIT_ASSERT_EQ(test, fake_send(fake, buf, 10, -1), 0);
	KUNIT_EXPECT_TRUE(test, timer_pending(&link->ask_timer));
	/* The peer may wait for its credits to be used, to have larger receives. */
	KUNIT_EXPECT_FALSE(test, FAKE_LINK_LOCKED(fake, hps_msg_busy(&link->conn)));
	link->tx_size = HPS_TX_MAX;
	KUNIT_EXPECT_TRUE(test, FAKE_LINK_LOCKED(fake, hps_msg_busy(&link->conn)));
	/* Nobody can ask then. */
	link->reading = 1;
	KUNIT_EXPECT_FALSE(test, FAKE_LINK_LOCKED(fake, hps_msg_busy(&link->conn)));
	link->reading = 0;
	spin_lock_bh(&link->conn.lock);
	hps_msg_ask(&link->conn);
	spin_unlock_bh(&link->conn.lock);
	fake_sent_all(fake);
	KUNIT_EXPECT_FALSE(test, FAKE_LINK_LOCKED(fake, hps_msg_busy(&link->conn)));
}

static void hps_msg_probe__write_of_nothing(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);

	KUNIT_EXPECT_TRUE(test, FAKE_LINK_LOCKED(fake, hps_msg_probe(&fake->link->conn)));
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 1);
	KUNIT_EXPECT_EQ(test, fake->sends[0].opcode, IB_WR_RDMA_WRITE);
	KUNIT_EXPECT_TRUE(test, fake->sends[0].signaled);
	/* It is no message. */
	KUNIT_EXPECT_EQ(test, fake->link->tx_seq, 0);
}

/* Soft-RoCE would refuse to repeat the answer to a read before it. */
static void hps_msg_probe__not_behind_reads(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_buf *buf;

	fake_link_attach(fake);
	buf = fake_tx(test, &link->conn, 4096, 300);
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	KUNIT_EXPECT_EQ(test, link->unsignaled, 1);
	link->reading = 1;
	spin_lock_bh(&link->conn.lock);
	KUNIT_EXPECT_FALSE(test, hps_msg_probe(&link->conn));
	hps_msg_ask(&link->conn);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 1);
	link->reading = 0;
	hps_msg_ask(&link->conn);
	spin_unlock_bh(&link->conn.lock);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 2);
	KUNIT_EXPECT_EQ(test, fake->sends[1].opcode, IB_WR_RDMA_WRITE);
}

static void hps_msg_readdone__invalidates(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;

	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_readdone(link, 5)), 0);
	KUNIT_EXPECT_EQ(test, fake->sends[0].opcode, IB_WR_SEND_WITH_INV);
	KUNIT_EXPECT_EQ(test, fake->sends[0].rkey, 5);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake->sends[0].head.read.total), 1);
	/* On iWARP the peer sees to it itself. */
	link->iwarp = true;
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_readdone(link, 5)), 0);
	KUNIT_EXPECT_EQ(test, fake->sends[1].opcode, IB_WR_SEND);
	link->sq_used = HPS_SQ_SIZE;
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_readdone(link, 5)), -EAGAIN);
	link->sq_used = 2;
	KUNIT_EXPECT_EQ(test, link->rx_read_total, 2);
}

/* A peer that ran dry, with something to read here: it hears of more after a moment. */
static void hps_msg_credit__late(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	u64 urgent = fake_counter(fake, HPS_STAT_CREDIT_URGENT);

	link->credit.window = 32;
	link->credit.rx_ready++;
	link->credit.rx_used = link->credit.rx_told;
	link->receives.held = 1;
	spin_lock_bh(&link->conn.lock);
	hps_msg_credit(link);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
	KUNIT_EXPECT_TRUE(test, timer_pending(&link->credit_timer));
	hps_msg_credit(link);
	spin_unlock_bh(&link->conn.lock);
	/* That it runs is what is waited for. */
	while (timer_pending(&link->credit_timer) || !READ_ONCE(fake->nr_sends))
		schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_CREDIT_URGENT), urgent + 1);
	link->receives.held = 0;
}

static void hps_msg_credit__half_a_window(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;

	link->credit.rx_ready += 2;
	spin_lock_bh(&link->conn.lock);
	hps_msg_credit(link);
	spin_unlock_bh(&link->conn.lock);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 0)->type, HPS_MSG_CREDIT);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake_head(fake, 0)->credit), link->credit.rx_ready);
}

/* One that has sent FIN has no use for it. */
static void hps_msg_credit__after_fin(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;

	link->credit.rx_ready += 2;
	link->conn.fin_rcvd = true;
	spin_lock_bh(&link->conn.lock);
	hps_msg_credit(link);
	spin_unlock_bh(&link->conn.lock);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 0);
}

/* It comes by again when a slot is free. */
static void hps_msg_credit__no_slot(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	u64 counted = fake_counter(fake, HPS_STAT_CREDIT_TX);

	link->credit.rx_ready += 2;
	link->receives.tell = true;
	link->sq_used = HPS_SQ_SIZE;
	spin_lock_bh(&link->conn.lock);
	hps_msg_credit(link);
	KUNIT_EXPECT_TRUE(test, link->receives.tell);
	link->receives.tell = false;
	hps_msg_credit(link);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_CREDIT_TX), counted);
	link->sq_used = 0;
	link->receives.tell = true;
	hps_msg_credit(link);
	spin_unlock_bh(&link->conn.lock);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 0)->type, HPS_MSG_BUFFERS);
	KUNIT_EXPECT_FALSE(test, link->receives.tell);
}

/* Who has sent FIN meanwhile is told of larger ones, so that it knows what shrinks. */
static void hps_msg_credit__buffers_after_fin(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	u64 counted = fake_counter(fake, HPS_STAT_CREDIT_TX);

	link->receives.tell = true;
	spin_lock_bh(&link->conn.lock);
	link->conn.fin_rcvd = true;
	hps_msg_credit(link);
	link->credit.rx_ready += 2;
	hps_msg_credit(link);
	link->conn.fin_rcvd = false;
	spin_unlock_bh(&link->conn.lock);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 0)->type, HPS_MSG_BUFFERS);
	KUNIT_EXPECT_FALSE(test, link->receives.tell);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_CREDIT_TX), counted);
}

/* The initiator speaks first, and once. */
static void hps_msg_established__initiator(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;

	link->established = false;
	link->conn.state = TCP_SYN_SENT;
	spin_lock_bh(&link->conn.lock);
	hps_msg_established(link);
	hps_msg_established(link);
	spin_unlock_bh(&link->conn.lock);
	KUNIT_EXPECT_TRUE(test, link->established);
	KUNIT_EXPECT_EQ(test, link->conn.state, TCP_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 1);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 0)->type, HPS_MSG_CREDIT);
}

static struct kunit_case msg_cases[] = {
	KUNIT_CASE(hps_msg_error__each),
	KUNIT_CASE(hps_msg_error__flushed_early),
	KUNIT_CASE(hps_msg_error__flushed_at_the_end),
	KUNIT_CASE(hps_msg_sent__several),
	KUNIT_CASE(hps_msg_sent__error),
	KUNIT_CASE(hps_msg_send__no_credit),
	KUNIT_CASE(hps_msg_send__no_slot),
	KUNIT_CASE(hps_msg_pad__no_slot),
	KUNIT_CASE(hps_msg_shrink__payload),
	KUNIT_CASE(hps_msg_send__shut),
	KUNIT_CASE(hps_msg_offer__regions_in_use),
	KUNIT_CASE(hps_msg_offer__more),
	KUNIT_CASE(hps_msg_write__posted),
	KUNIT_CASE(hps_msg_write__delivered),
	KUNIT_CASE(hps_msg_write__once),
	KUNIT_CASE(hps_msg_write__iwarp),
	KUNIT_CASE(hps_msg_write__too_large),
	KUNIT_CASE(hps_msg_write__void),
	KUNIT_CASE(hps_msg_write__waits),
	KUNIT_CASE(hps_msg_write__cannot_post),
	KUNIT_CASE(hps_msg_write__fails),
	KUNIT_CASE(hps_msg_offer__no_slot),
	KUNIT_CASE(hps_msg_urgent__one_at_a_time),
	KUNIT_CASE(hps_msg_urgent__no_slot),
	KUNIT_CASE(hps_msg_busy__signaled),
	KUNIT_CASE(hps_msg_busy__far),
	KUNIT_CASE(hps_msg_busy__behind),
	KUNIT_CASE(hps_msg_probe__write_of_nothing),
	KUNIT_CASE(hps_msg_probe__not_behind_reads),
	KUNIT_CASE(hps_msg_readdone__invalidates),
	KUNIT_CASE(hps_msg_credit__late),
	KUNIT_CASE(hps_msg_credit__half_a_window),
	KUNIT_CASE(hps_msg_credit__after_fin),
	KUNIT_CASE(hps_msg_credit__no_slot),
	KUNIT_CASE(hps_msg_credit__buffers_after_fin),
	KUNIT_CASE(hps_msg_established__initiator),
	{}
};

UNIT_SUITE(msg, msg_cases);
