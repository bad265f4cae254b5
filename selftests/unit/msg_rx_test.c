// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/msg_rx.c"

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

static struct hps_hdr *sent(struct fake_link *fake, u32 i)
{
	KUNIT_ASSERT_GT(fake->test, fake->nr_sends, i);
	return &fake->sends[i].head.hdr;
}

/* The connection ends, and for this reason. */
#define EXPECT_VIOLATION(test, fake, what, before) do {			\
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_VIOLATION_##what), (before) + 1); \
	KUNIT_EXPECT_EQ(test, (fake)->link->conn.err, EPROTO);		\
	KUNIT_EXPECT_EQ(test, (fake)->shut, 1);				\
} while (0)

#define VIOLATIONS(fake, what)	fake_counter(fake, HPS_STAT_VIOLATION_##what)

static void hps_msg_rx_done__establishes(struct kunit *test)
{
	struct fake_link *fake = opening(test);

	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_TRUE(test, fake->link->established);
	KUNIT_EXPECT_EQ(test, fake->link->conn.state, TCP_ESTABLISHED);
}

static void hps_msg_rx_done__too_early(struct kunit *test)
{
	struct fake_link *fake = opening(test);
	u64 before = VIOLATIONS(fake, STATE);

	fake->link->conn.state = TCP_SYN_SENT;
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	EXPECT_VIOLATION(test, fake, STATE, before);
}

/* What is in the receive looks like a message, and did not come now. */
static void hps_msg_rx_done__written(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, TYPE);

	fake_arriving(fake, HPS_MSG_DATA, NULL, 10);
	fake_arrive_written(fake, sizeof(struct hps_hdr) + 10);
	EXPECT_VIOLATION(test, fake, TYPE, before);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->link->conn.rxq));
	/* What else it has written meanwhile makes that no worse. */
	fake_arrive_written(fake, sizeof(struct hps_hdr) + 10);
	EXPECT_VIOLATION(test, fake, TYPE, before);
}

/* No device says so of a message; hdr->len says the same, so nothing else is wrong. */
static void hps_msg_rx_done__too_long(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	const struct hps_receives *receives = &fake->link->receives;
	u32 len = hps_receives_capacity(receives, receives->size) + 1;
	u64 before = VIOLATIONS(fake, LENGTH);
	struct hps_hdr *hdr = fake_arriving(fake, HPS_MSG_DATA, NULL, 10);

	hdr->len = cpu_to_be32(len - sizeof(*hdr));
	fake_arrive(fake, len);
	EXPECT_VIOLATION(test, fake, LENGTH, before);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->link->conn.rxq));
}

static void hps_msg_rx_data__no_credit(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, OVERRUN);

	fake->link->credit.rx_used = fake->link->credit.rx_told;
	fake_data(fake, 10);
	EXPECT_VIOLATION(test, fake, OVERRUN, before);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->link->conn.rxq));
}

static void hps_msg_rx_data__urgent(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, URGENT);
	struct hps_hdr *hdr;

	hdr = fake_arriving(fake, HPS_MSG_DATA, NULL, 10);
	hdr->flags |= HPS_FLAG_URGENT;
	hdr->urgent = cpu_to_be16(9);
	fake_arrive(fake, sizeof(*hdr) + 10);
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_urgent, HPS_URGENT_HERE);
	hdr = fake_arriving(fake, HPS_MSG_DATA, NULL, 10);
	hdr->flags |= HPS_FLAG_URGENT;
	hdr->urgent = cpu_to_be16(10);
	fake_arrive(fake, sizeof(*hdr) + 10);
	EXPECT_VIOLATION(test, fake, URGENT, before);
}

static void hps_msg_rx_data__more(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_hdr *hdr;

	hdr = fake_arriving(fake, HPS_MSG_DATA, NULL, 10);
	hdr->flags |= HPS_FLAG_MORE;
	fake_arrive(fake, sizeof(*hdr) + 10);
	KUNIT_EXPECT_TRUE(test, fake->link->conn.rx_follows);
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_TRUE(test, fake->link->conn.rx_follows);
	fake_data(fake, 10);
	KUNIT_EXPECT_FALSE(test, fake->link->conn.rx_follows);
}

static void hps_msg_rx_data__after_fin(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, STATE);

	fake->link->conn.fin_rcvd = true;
	fake_data(fake, 10);
	EXPECT_VIOLATION(test, fake, STATE, before);
	KUNIT_EXPECT_EQ(test, fake->link->receives.held, 0);
}

static void hps_msg_rx_data__while_cancelling(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, SOURCE);

	fake->link->rx_cancelled = true;
	fake->link->sq_used = HPS_SQ_SIZE;
	fake_data(fake, 10);
	fake->link->sq_used = 0;
	EXPECT_VIOLATION(test, fake, SOURCE, before);
}

static void hps_msg_rx_srcavail__bad(struct kunit *test)
{
	static const struct {
		bool reads;
		u64 addr;
		u32 len;
	} cases[] = {
		{ false, 0, 1 },
		{ true, 0, 0 },
		{ true, 0, HPS_SOURCE_MAX + 1 },
		{ true, U64_MAX, 2 },
	};
	struct hps_srcavail src = {};
	struct fake_link *fake;
	u64 before;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake = fake_link_start(test);
		before = VIOLATIONS(fake, SOURCE);
		fake->link->reads = cases[i].reads;
		src.addr = cpu_to_be64(cases[i].addr);
		src.len = cpu_to_be32(cases[i].len);
		fake_message(fake, HPS_MSG_SRCAVAIL, &src, sizeof(src));
		EXPECT_VIOLATION(test, fake, SOURCE, before);
	}
}

static void hps_msg_rx_srcavail__queued(struct kunit *test)
{
	struct hps_srcavail src = { .len = cpu_to_be32(HPS_SOURCE_MAX) };
	struct fake_link *fake = fake_link_start(test);

	fake->link->reads = true;
	fake_message(fake, HPS_MSG_SRCAVAIL, &src, sizeof(src));
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->link->conn.rx_avail), HPS_SOURCE_MAX);
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_remote, 1);
	KUNIT_EXPECT_EQ(test, fake->link->credit.rx_used, 1);
}

/* Of what was never offered. */
static void hps_msg_rx_readdone__not_offered(struct kunit *test)
{
	struct hps_readdone read = { .total = cpu_to_be32(1) };
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, SOURCE);

	fake_message(fake, HPS_MSG_READDONE, &read, sizeof(read));
	EXPECT_VIOLATION(test, fake, SOURCE, before);
}

static void hps_msg_rx_srccancel__bad(struct kunit *test)
{
	struct hps_srccancel cancel = { .count = cpu_to_be32(1) };
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, STATE);

	fake->link->conn.fin_rcvd = true;
	fake_message(fake, HPS_MSG_SRCCANCEL, &cancel, sizeof(cancel));
	EXPECT_VIOLATION(test, fake, STATE, before);
	fake = fake_link_start(test);
	before = VIOLATIONS(fake, SOURCE);
	fake_message(fake, HPS_MSG_SRCCANCEL, &cancel, sizeof(cancel));
	EXPECT_VIOLATION(test, fake, SOURCE, before);
	fake = fake_link_start(test);
	fake->link->reads = true;
	before = VIOLATIONS(fake, SOURCE);
	cancel.count = 0;
	fake_message(fake, HPS_MSG_SRCCANCEL, &cancel, sizeof(cancel));
	EXPECT_VIOLATION(test, fake, SOURCE, before);
}

static void hps_msg_rx_cancelack__not_asked(struct kunit *test)
{
	struct hps_cancelack ack = {};
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, SOURCE);

	fake_message(fake, HPS_MSG_CANCELACK, &ack, sizeof(ack));
	EXPECT_VIOLATION(test, fake, SOURCE, before);
}

static void hps_msg_rx_cancelack__asked(struct kunit *test)
{
	struct hps_cancelack ack = {};
	struct fake_link *fake = fake_link_start(test);

	fake->link->tx_cancelling = true;
	fake_message(fake, HPS_MSG_CANCELACK, &ack, sizeof(ack));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_FALSE(test, fake->link->tx_cancelling);
}

static void hps_msg_rx_fin__twice(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, STATE);

	fake_message(fake, HPS_MSG_FIN, NULL, 0);
	KUNIT_EXPECT_EQ(test, fake->link->conn.state, TCP_CLOSE_WAIT);
	KUNIT_EXPECT_EQ(test, sent(fake, 0)->type, HPS_MSG_FINACK);
	fake_message(fake, HPS_MSG_FIN, NULL, 0);
	EXPECT_VIOLATION(test, fake, STATE, before);
}

static void hps_msg_rx_finack__of_nothing(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, STATE);

	fake_message(fake, HPS_MSG_FINACK, NULL, 0);
	EXPECT_VIOLATION(test, fake, STATE, before);
}

static void hps_msg_rx_buffers__bad(struct kunit *test)
{
	static const u32 sizes[] = { HPS_BUF_MIN - 1, HPS_BUF_MAX + 1 };
	struct hps_buffers buffers = { .from = cpu_to_be32(9) };
	struct fake_link *fake;
	u64 before;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		fake = fake_link_start(test);
		before = VIOLATIONS(fake, BUFFERS);
		buffers.size = cpu_to_be32(sizes[i]);
		fake_message(fake, HPS_MSG_BUFFERS, &buffers, sizeof(buffers));
		EXPECT_VIOLATION(test, fake, BUFFERS, before);
	}
	/* One step at a time. */
	fake = fake_link_start(test);
	before = VIOLATIONS(fake, BUFFERS);
	buffers.size = cpu_to_be32(8192);
	fake_message(fake, HPS_MSG_BUFFERS, &buffers, sizeof(buffers));
	fake_message(fake, HPS_MSG_BUFFERS, &buffers, sizeof(buffers));
	EXPECT_VIOLATION(test, fake, BUFFERS, before);
}

static void hps_msg_rx_urgent__expected(struct kunit *test)
{
	struct hps_urgent_ahead urgent = { .ahead = cpu_to_be32(10) };
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, URGENT);

	fake_message(fake, HPS_MSG_URGENT, &urgent, sizeof(urgent));
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_urgent, HPS_URGENT_AHEAD);
	KUNIT_EXPECT_EQ(test, fake->link->conn.rx_urgent_at, 10);
	/* Before it heard that we have the first. */
	fake_message(fake, HPS_MSG_URGENT, &urgent, sizeof(urgent));
	EXPECT_VIOLATION(test, fake, URGENT, before);
}

static void hps_msg_rx_urgent__bad(struct kunit *test)
{
	struct hps_urgent_ahead urgent = { .ahead = cpu_to_be32(1U << 31) };
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, URGENT);

	fake_message(fake, HPS_MSG_URGENT, &urgent, sizeof(urgent));
	EXPECT_VIOLATION(test, fake, URGENT, before);
	fake = fake_link_start(test);
	before = VIOLATIONS(fake, STATE);
	fake->link->conn.fin_rcvd = true;
	urgent.ahead = 0;
	fake_message(fake, HPS_MSG_URGENT, &urgent, sizeof(urgent));
	EXPECT_VIOLATION(test, fake, STATE, before);
}

static void shrink(struct fake_link *fake, u32 size, u32 pads)
{
	struct hps_smaller smaller = {
		.size = cpu_to_be32(size), .pads = cpu_to_be32(pads),
	};

	fake_message(fake, HPS_MSG_SHRINK, &smaller, sizeof(smaller));
}

static void hps_msg_rx_shrink__bad(struct kunit *test)
{
	static const struct {
		u32 size;
		u32 pads;
	} cases[] = {
		{ HPS_BUF_MIN - 1, 1 },
		{ 4097, 1 },
		{ HPS_BUF_MIN, 0 },
		{ HPS_BUF_MIN, HPS_PADS_MAX + 1 },
	};
	struct fake_link *fake;
	u64 before;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake = fake_link_start(test);
		fake->link->tx_size = 4096;
		before = VIOLATIONS(fake, BUFFERS);
		shrink(fake, cases[i].size, cases[i].pads);
		EXPECT_VIOLATION(test, fake, BUFFERS, before);
		KUNIT_EXPECT_EQ(test, fake->link->tx_size, 4096);
	}
	/* A second one before the first is answered. */
	fake = fake_link_start(test);
	before = VIOLATIONS(fake, BUFFERS);
	shrink(fake, HPS_BUF_MIN, 100);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	shrink(fake, HPS_BUF_MIN, 1);
	EXPECT_VIOLATION(test, fake, BUFFERS, before);
}

/* As many PAD as there are credits for, and the others as more come; DATA waits. */
static void hps_msg_rx_shrink__answered(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	u32 i;

	link->tx_size = 4096;
	shrink(fake, HPS_BUF_MIN, 6);
	KUNIT_EXPECT_EQ(test, link->tx_size, HPS_BUF_MIN);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 4);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, sent(fake, i)->type, HPS_MSG_PAD);
	KUNIT_EXPECT_EQ(test, link->tx_pads, 2);
	KUNIT_EXPECT_EQ(test, hps_credit_left(&link->credit), 0);
	FAKE_EXPECT_POSTED(test, fake);
	/* One that comes in has them go on. */
	link->credit.tx_granted += 3;
	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	KUNIT_EXPECT_EQ(test, link->tx_pads, 0);
	KUNIT_EXPECT_EQ(test, sent(fake, 5)->type, HPS_MSG_PAD);
	KUNIT_EXPECT_EQ(test, hps_credit_left(&link->credit), 1);
}

static void hps_msg_rx_shrink__no_credit(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, OVERRUN);

	fake->link->credit.rx_used = fake->link->credit.rx_told;
	shrink(fake, HPS_BUF_MIN, 1);
	EXPECT_VIOLATION(test, fake, OVERRUN, before);
	KUNIT_EXPECT_EQ(test, fake->link->tx_pads, 0);
}

static void hps_msg_rx_pad__bad(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, BUFFERS);

	fake_message(fake, HPS_MSG_PAD, NULL, 0);
	EXPECT_VIOLATION(test, fake, BUFFERS, before);
	fake = fake_link_start(test);
	before = VIOLATIONS(fake, OVERRUN);
	fake->link->peer_pads = true;
	hps_shrink_plan(fake->link);
	fake->link->shrink->state = HPS_SHRINK_ASKED;
	fake->link->shrink->pads = 2;
	fake->link->credit.rx_used = fake->link->credit.rx_told;
	fake_message(fake, HPS_MSG_PAD, NULL, 0);
	EXPECT_VIOLATION(test, fake, OVERRUN, before);
	KUNIT_EXPECT_EQ(test, fake->link->shrink->pads, 2);
}

/* A header that is not there, of no type, of another length. */
static void hps_msg_check__length_and_type(struct kunit *test)
{
	static const struct {
		u8 type;
		u32 said;
		u32 came;
		enum hps_stat stat;
	} cases[] = {
		{ HPS_MSG_CREDIT, 0, -1, HPS_STAT_VIOLATION_LENGTH },
		{ 0, 0, 0, HPS_STAT_VIOLATION_TYPE },
		{ HPS_MSG_WORD + 1, 0, 0, HPS_STAT_VIOLATION_TYPE },
		{ HPS_MSG_DATA, 0, 0, HPS_STAT_VIOLATION_LENGTH },
		{ HPS_MSG_DATA, 2, 1, HPS_STAT_VIOLATION_LENGTH },
		{ HPS_MSG_CREDIT, 1, 1, HPS_STAT_VIOLATION_LENGTH },
		{ HPS_MSG_BUFFERS, 7, 7, HPS_STAT_VIOLATION_LENGTH },
		{ HPS_MSG_BUFFERS, 9, 9, HPS_STAT_VIOLATION_LENGTH },
		{ HPS_MSG_SHRINK, 7, 7, HPS_STAT_VIOLATION_LENGTH },
		{ HPS_MSG_PAD, 1, 1, HPS_STAT_VIOLATION_LENGTH },
	};
	struct fake_link *fake;
	struct hps_hdr *hdr;
	u64 before;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake = fake_link_start(test);
		before = fake_counter(fake, cases[i].stat);
		hdr = fake_arriving(fake, cases[i].type, NULL, cases[i].said);
		fake_arrive(fake, sizeof(*hdr) + cases[i].came);
		KUNIT_EXPECT_EQ(test, fake_counter(fake, cases[i].stat), before + 1);
		KUNIT_EXPECT_EQ(test, fake->link->conn.err, EPROTO);
	}
}

static void hps_msg_check__seq(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, SEQ);
	struct hps_hdr *hdr;

	fake_message(fake, HPS_MSG_CREDIT, NULL, 0);
	hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	hdr->seq = 0;
	fake_arrive(fake, sizeof(*hdr));
	EXPECT_VIOLATION(test, fake, SEQ, before);
}

static void hps_msg_check__credit(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, CREDIT);
	struct hps_hdr *hdr;

	hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	hdr->credit = cpu_to_be32(32);
	fake_arrive(fake, sizeof(*hdr));
	KUNIT_EXPECT_EQ(test, hps_credit_left(&fake->link->credit), 32);
	hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);
	hdr->credit = cpu_to_be32(33);
	fake_arrive(fake, sizeof(*hdr));
	EXPECT_VIOLATION(test, fake, CREDIT, before);
}

static void hps_msg_check__heard_of_none(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	u64 before = VIOLATIONS(fake, URGENT);
	struct hps_hdr *hdr = fake_arriving(fake, HPS_MSG_CREDIT, NULL, 0);

	hdr->flags = HPS_FLAG_HEARD;
	fake_arrive(fake, sizeof(*hdr));
	EXPECT_VIOLATION(test, fake, URGENT, before);
}

/* After an end of ours what came before still counts, but not behind a violation. */
static void hps_msg_rx__after_the_end(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_conn *conn = &fake->link->conn;

	conn->shut = true;
	fake_data(fake, 10);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->rx_avail), 10);
	conn->err = EPROTO;
	fake_data(fake, 10);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->rx_avail), 10);
	conn->err = 0;
	conn->reported = true;
	fake_data(fake, 10);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->rx_avail), 10);
}

/* What follows the header fills a receive of a page or more, from its beginning. */
static void hps_msg_rx__header_apart(struct kunit *test)
{
	static const u8 bytes[] = { 1, 2, 3 };
	struct fake_link *fake = fake_link(test);
	struct hps_conn *conn = &fake->link->conn;
	struct hps_buf *buf;

	fake->link->receives.size = PAGE_SIZE;
	KUNIT_ASSERT_EQ(test, hps_receives_setup(fake->link, &fake->ibdev), 0);
	KUNIT_EXPECT_EQ(test, fake->receives[0].room, PAGE_SIZE);
	fake_message(fake, HPS_MSG_DATA, bytes, sizeof(bytes));
	buf = list_first_entry_or_null(&conn->rxq, struct hps_buf, list);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_EQ(test, buf->start, 0);
	KUNIT_EXPECT_EQ(test, buf->end, sizeof(bytes));
	KUNIT_EXPECT_EQ(test, memcmp(buf->data, bytes, sizeof(bytes)), 0);
	fake_data(fake, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->rx_avail), sizeof(bytes) + PAGE_SIZE);
	fake_read(fake);
	fake_read(fake);
	FAKE_EXPECT_POSTED(test, fake);
}

/* A device with one element to a receive has both in a row. */
static void hps_msg_rx__header_within(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);

	fake->link->receives.apart = false;
	fake->link->receives.size = PAGE_SIZE;
	KUNIT_ASSERT_EQ(test, hps_receives_setup(fake->link, &fake->ibdev), 0);
	KUNIT_EXPECT_EQ(test, fake->receives[0].room, PAGE_SIZE - sizeof(struct hps_hdr));
	fake_data(fake, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->link->conn.rx_avail),
			PAGE_SIZE - sizeof(struct hps_hdr));
}

/* Neither the header's memory nor the buffer's is left. */
static void hps_msg_rx__no_memory_apart(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	u32 i;

	fake->link->receives.size = PAGE_SIZE;
	for (i = 0; i < 6; i++) {
		mock_fail(MOCK_ALLOC, BIT(i));
		KUNIT_EXPECT_EQ(test, hps_receives_setup(fake->link, &fake->ibdev), -ENOMEM);
	}
	mock_fail(MOCK_ALLOC, 0);
	KUNIT_EXPECT_EQ(test, fake->nr_receives, 0);
	KUNIT_EXPECT_EQ(test, hps_receives_setup(fake->link, &fake->ibdev), 0);
}

static struct kunit_case msg_rx_cases[] = {
	KUNIT_CASE(hps_msg_rx_done__establishes),
	KUNIT_CASE(hps_msg_rx_done__too_early),
	KUNIT_CASE(hps_msg_rx_done__written),
	KUNIT_CASE(hps_msg_rx_done__too_long),
	KUNIT_CASE(hps_msg_rx_data__no_credit),
	KUNIT_CASE(hps_msg_rx_data__urgent),
	KUNIT_CASE(hps_msg_rx_data__more),
	KUNIT_CASE(hps_msg_rx_data__after_fin),
	KUNIT_CASE(hps_msg_rx_data__while_cancelling),
	KUNIT_CASE(hps_msg_rx_srcavail__bad),
	KUNIT_CASE(hps_msg_rx_srcavail__queued),
	KUNIT_CASE(hps_msg_rx_readdone__not_offered),
	KUNIT_CASE(hps_msg_rx_srccancel__bad),
	KUNIT_CASE(hps_msg_rx_cancelack__not_asked),
	KUNIT_CASE(hps_msg_rx_cancelack__asked),
	KUNIT_CASE(hps_msg_rx_fin__twice),
	KUNIT_CASE(hps_msg_rx_finack__of_nothing),
	KUNIT_CASE(hps_msg_rx_buffers__bad),
	KUNIT_CASE(hps_msg_rx_urgent__expected),
	KUNIT_CASE(hps_msg_rx_urgent__bad),
	KUNIT_CASE(hps_msg_rx_shrink__bad),
	KUNIT_CASE(hps_msg_rx_shrink__answered),
	KUNIT_CASE(hps_msg_rx_shrink__no_credit),
	KUNIT_CASE(hps_msg_rx_pad__bad),
	KUNIT_CASE(hps_msg_check__length_and_type),
	KUNIT_CASE(hps_msg_check__seq),
	KUNIT_CASE(hps_msg_check__credit),
	KUNIT_CASE(hps_msg_check__heard_of_none),
	KUNIT_CASE(hps_msg_rx__after_the_end),
	KUNIT_CASE(hps_msg_rx__header_apart),
	KUNIT_CASE(hps_msg_rx__header_within),
	KUNIT_CASE(hps_msg_rx__no_memory_apart),
	{}
};

UNIT_SUITE(msg_rx, msg_rx_cases);
