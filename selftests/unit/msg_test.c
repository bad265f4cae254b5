// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/msg.c"

#include "fake.h"
#include "fake_link.h"

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
	fake_sent(fake, IB_WC_SUCCESS);
	KUNIT_EXPECT_EQ(test, conn->tx_unacked, 0);
	KUNIT_EXPECT_TRUE(test, FAKE_LINK_LOCKED(fake, hps_msg_tx_idle(conn)));
}

static void hps_msg_sent__error(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_buf *buf = fake_tx(test, &fake->link->conn, 4096, 100);

	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	fake_sent(fake, IB_WC_RETRY_EXC_ERR);
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
	KUNIT_CASE(hps_msg_urgent__one_at_a_time),
	KUNIT_CASE(hps_msg_urgent__no_slot),
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
