// SPDX-License-Identifier: GPL-2.0
/*
 * The handshake as far as it is this module's own: the hello, and what it makes of
 * rdma_cm's words. That connections come about is for the programs to see.
 */
#include "unit.h"

#include "af_hpsock/cm.c"

#include "fake.h"
#include "fake_link.h"

#include <linux/hpsock.h>

/* A hello that nothing is wrong with. */
static struct hps_hello good(void)
{
	return (struct hps_hello){
		.magic = cpu_to_be32(HPS_MAGIC),
		.version = HPS_VERSION,
		.type = SOCK_STREAM,
		.src_port = cpu_to_be16(1),
		.credits = cpu_to_be16(2),
		.window = cpu_to_be16(2),
		.buf_size = cpu_to_be32(HPS_BUF_MIN),
		.ctrl_slots = cpu_to_be16(HPS_CTRL_SLOTS),
	};
}

/* What becomes of it with one field changed. */
#define CHECKED(field, value) ({					\
	struct hps_hello __hello = good();				\
									\
	__hello.field = value;						\
	hps_cm_check_hello(&__hello, sizeof(__hello));			\
})

static void hps_cm_fill_hello__is_good(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	struct hps_link *link = fake->link;
	struct hps_hello hello;

	link->conn.local.port = 1000;
	link->conn.peer.port = 2000;
	hps_cm_fill_hello(link, &hello);
	KUNIT_EXPECT_EQ(test, hps_cm_check_hello(&hello, sizeof(hello)), 0);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(hello.src_port), 1000);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(hello.dst_port), 2000);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(hello.credits), link->credit.rx_told);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(hello.window), link->credit.window_max);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(hello.buf_size), link->receives.size);
	KUNIT_EXPECT_EQ(test, hello.type, SOCK_STREAM);
	link->conn.records = true;
	hps_cm_fill_hello(link, &hello);
	KUNIT_EXPECT_EQ(test, hello.type, SOCK_SEQPACKET);
}

/* The peer is asked to offer what we would read. */
static void hps_cm_fill_hello__reads(struct kunit *test)
{
	static const struct {
		int zcopy;
		bool reads;
	} cases[] = {
		{ HPSOCK_ZCOPY_OFF, false },
		{ HPSOCK_ZCOPY_AUTO, true },
		{ HPSOCK_ZCOPY_PROTECT, true },
		{ HPSOCK_ZCOPY_WAIT, true },
	};
	struct fake_link *fake = fake_link(test);
	struct hps_hello hello;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		hps_tune_set(&fake->link->tuning, HPS_TUNE_ZCOPY, cases[i].zcopy);
		hps_cm_fill_hello(fake->link, &hello);
		KUNIT_EXPECT_EQ(test, fake->link->reads, cases[i].reads);
		KUNIT_EXPECT_EQ(test, !!(be64_to_cpu(hello.features) & HPS_FEATURE_READ),
				cases[i].reads);
	}
}

static void hps_cm_check_hello__none(struct kunit *test)
{
	struct hps_hello hello = good();

	KUNIT_EXPECT_EQ(test, hps_cm_check_hello(NULL, 0), HPS_REJ_VERSION);
	KUNIT_EXPECT_EQ(test, hps_cm_check_hello(&hello, sizeof(hello) - 1), HPS_REJ_VERSION);
	KUNIT_EXPECT_EQ(test, hps_cm_check_hello(&hello, sizeof(hello)), 0);
	/* On InfiniBand there is always room for more. */
	KUNIT_EXPECT_EQ(test, hps_cm_check_hello(&hello, U8_MAX), 0);
}

static void hps_cm_check_hello__version(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, CHECKED(magic, 0), HPS_REJ_VERSION);
	KUNIT_EXPECT_EQ(test, CHECKED(version, HPS_VERSION + 1), HPS_REJ_VERSION);
	KUNIT_EXPECT_EQ(test, CHECKED(version, HPS_VERSION - 1), HPS_REJ_VERSION);
}

static void hps_cm_check_hello__limits(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, CHECKED(type, SOCK_SEQPACKET), 0);
	KUNIT_EXPECT_EQ(test, CHECKED(type, SOCK_DGRAM), HPS_REJ_INVALID);
	KUNIT_EXPECT_EQ(test, CHECKED(window, cpu_to_be16(HPS_WINDOW_MAX)), 0);
	KUNIT_EXPECT_EQ(test, CHECKED(window, cpu_to_be16(HPS_WINDOW_MAX + 1)), HPS_REJ_INVALID);
	/* More credits than the window. */
	KUNIT_EXPECT_EQ(test, CHECKED(credits, cpu_to_be16(3)), HPS_REJ_INVALID);
	KUNIT_EXPECT_EQ(test, CHECKED(credits, 0), HPS_REJ_INVALID);
	KUNIT_EXPECT_EQ(test, CHECKED(credits, cpu_to_be16(1)), 0);
	KUNIT_EXPECT_EQ(test, CHECKED(src_port, 0), HPS_REJ_INVALID);
	KUNIT_EXPECT_EQ(test, CHECKED(buf_size, cpu_to_be32(HPS_BUF_MIN - 1)), HPS_REJ_INVALID);
	KUNIT_EXPECT_EQ(test, CHECKED(buf_size, cpu_to_be32(HPS_BUF_MAX)), 0);
	KUNIT_EXPECT_EQ(test, CHECKED(buf_size, cpu_to_be32(HPS_BUF_MAX + 1)), HPS_REJ_INVALID);
	KUNIT_EXPECT_EQ(test, CHECKED(ctrl_slots, cpu_to_be16(HPS_CTRL_SLOTS - 1)),
			HPS_REJ_INVALID);
	KUNIT_EXPECT_EQ(test, CHECKED(ctrl_slots, cpu_to_be16(U16_MAX)), 0);
}

static void hps_cm_check_hello__window_too_small(struct kunit *test)
{
	struct hps_hello hello = good();

	hello.credits = cpu_to_be16(1);
	hello.window = cpu_to_be16(HPS_WINDOW_MIN - 1);
	KUNIT_EXPECT_EQ(test, hps_cm_check_hello(&hello, sizeof(hello)), HPS_REJ_INVALID);
}

/* Bits that nobody knows yet are left alone. */
static void hps_cm_check_hello__unknown_bits(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, CHECKED(flags, cpu_to_be16(U16_MAX)), 0);
	KUNIT_EXPECT_EQ(test, CHECKED(features, cpu_to_be64(U64_MAX)), 0);
	KUNIT_EXPECT_EQ(test, CHECKED(pad, cpu_to_be16(U16_MAX)), 0);
}

static void hps_cm_take_hello__all(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	struct hps_hello hello = good();

	hello.features = cpu_to_be64(HPS_FEATURE_READ);
	hps_cm_take_hello(fake->link, &hello);
	KUNIT_EXPECT_EQ(test, fake->link->tx_size, HPS_BUF_MIN);
	KUNIT_EXPECT_EQ(test, fake->link->credit.tx_granted, 2);
	KUNIT_EXPECT_EQ(test, fake->link->credit.tx_max, 2);
	KUNIT_EXPECT_TRUE(test, fake->link->peer_reads);
	KUNIT_EXPECT_FALSE(test, fake->link->peer_swaps);
	hello.features = cpu_to_be64(~HPS_FEATURE_READ);
	hps_cm_take_hello(fake->link, &hello);
	KUNIT_EXPECT_FALSE(test, fake->link->peer_reads);
	KUNIT_EXPECT_TRUE(test, fake->link->peer_swaps);
}

static void hps_cm_limit__less_of_both(struct kunit *test)
{
	struct rdma_conn_param ours = { .responder_resources = 4, .initiator_depth = 1 };
	struct rdma_conn_param asked = { .responder_resources = 2, .initiator_depth = 3 };

	hps_cm_limit(&ours, &asked);
	KUNIT_EXPECT_EQ(test, ours.responder_resources, 2);
	KUNIT_EXPECT_EQ(test, ours.initiator_depth, 1);
}

/*
 * Nobody asks at a word, or reads, without resources for that; nor at one that cannot be
 * swapped.
 */
static void hps_cm_limited__each_way(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	struct hps_link *link = fake->link;
	u32 i;

	for (i = 0; i < 16; i++) {
		struct rdma_conn_param param = {
			.initiator_depth = i & 1, .responder_resources = i >> 1 & 1,
		};

		link->reads = true;
		link->peer_reads = true;
		link->swaps = i & 4;
		link->peer_swaps = i & 8;
		hps_cm_limited(link, &param);
		KUNIT_EXPECT_EQ(test, link->reads, i & 1);
		KUNIT_EXPECT_EQ(test, link->peer_reads, !!(i & 2));
		KUNIT_EXPECT_EQ(test, link->asks, (i & 13) == 13);
		KUNIT_EXPECT_EQ(test, link->is_asked, (i & 14) == 14);
	}
}

/* What an answer says of that counts, but not on iWARP. */
static void hps_cm_answered__devices(struct kunit *test)
{
	struct rdma_conn_param none = {}, some = {
		.initiator_depth = 1, .responder_resources = 1,
	};
	struct fake_link *fake = fake_link(test);
	struct hps_link *link = fake->link;
	int iwarp;

	fake->ibdev.attrs.max_qp_rd_atom = 16;
	fake->ibdev.attrs.max_qp_init_rd_atom = 16;
	for (iwarp = 0; iwarp < 2; iwarp++) {
		link->iwarp = iwarp;
		link->reads = true;
		link->peer_reads = true;
		hps_cm_answered(link, &some);
		KUNIT_EXPECT_TRUE(test, link->reads);
		KUNIT_EXPECT_TRUE(test, link->peer_reads);
		hps_cm_answered(link, &none);
		KUNIT_EXPECT_EQ(test, link->reads, iwarp);
		KUNIT_EXPECT_EQ(test, link->peer_reads, iwarp);
	}
}

static void hps_cm_errno__words(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, hps_cm_errno(-ENODEV), -ENETUNREACH);
	KUNIT_EXPECT_EQ(test, hps_cm_errno(-EADDRNOTAVAIL), -ENETUNREACH);
	KUNIT_EXPECT_EQ(test, hps_cm_errno(-ETIMEDOUT), -EHOSTUNREACH);
	KUNIT_EXPECT_EQ(test, hps_cm_errno(-ENETUNREACH), -ENETUNREACH);
	KUNIT_EXPECT_EQ(test, hps_cm_errno(IB_CM_REJ_NO_QP), -EHOSTUNREACH);
}

/* Of a port that TCP uses, or has not done with, there is another next time. */
static void hps_cm_fail_connect__another_port(struct kunit *test)
{
	static const struct {
		int err;
		u8 tries;
	} cases[] = {
		{ -EADDRINUSE, HPS_TRIES_FEW },
		{ -EADDRNOTAVAIL, HPS_TRIES_FEW },
		{ -ENOMEM, 0 },
		{ -ECONNRESET, 0 },
	};
	struct fake_link *fake;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake = fake_link(test);
		hps_cm_fail_connect(fake->link, cases[i].err);
		KUNIT_EXPECT_EQ(test, fake->link->conn.tries, cases[i].tries);
		KUNIT_EXPECT_EQ(test, fake->link->conn.err, -cases[i].err);
		KUNIT_EXPECT_EQ(test, fake->shut, 1);
	}
}

/* An initiator's, before it is established. */
static struct fake_link *opening(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);

	fake->link->established = false;
	fake->link->conn.state = TCP_SYN_SENT;
	return fake;
}

static void hps_cm_rejected__reasons(struct kunit *test)
{
	static const struct {
		u8 reason;
		int err;
		u8 tries;
	} cases[] = {
		{ HPS_REJ_REFUSED, ECONNREFUSED, 0 },
		{ HPS_REJ_BUSY, ETIMEDOUT, HPS_TRIES_ANY },
		{ HPS_REJ_VERSION, EPROTO, 0 },
		{ HPS_REJ_INVALID, EPROTO, 0 },
		{ HPS_REJ_NOMEM, ETIMEDOUT, HPS_TRIES_ANY },
	};
	struct hps_reject rej = { .magic = cpu_to_be32(HPS_MAGIC) };
	struct rdma_cm_event event = { .param.conn.private_data = &rej,
				       .param.conn.private_data_len = sizeof(rej) };
	struct fake_link *fake;
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		fake = opening(test);
		rej.reason = cases[i].reason;
		hps_cm_rejected(fake->link, &event);
		KUNIT_EXPECT_EQ(test, fake->link->conn.err, cases[i].err);
		KUNIT_EXPECT_EQ(test, fake->link->conn.tries, cases[i].tries);
	}
}

static void hps_cm_rejected__established(struct kunit *test)
{
	struct fake_link *fake = fake_link(test);
	struct rdma_cm_event event = {};

	hps_cm_rejected(fake->link, &event);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->link->conn.err, 0);
}

static void hps_cm_established__good(struct kunit *test)
{
	struct hps_hello hello = good();
	struct rdma_cm_event event = { .param.conn.private_data = &hello,
				       .param.conn.private_data_len = sizeof(hello) };
	struct fake_link *fake = opening(test);

	fake->link->reads = true;
	hps_cm_established(fake->link, &event);
	KUNIT_EXPECT_EQ(test, fake->link->conn.state, TCP_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, fake->link->credit.tx_granted, 2);
	/* The responder has no room for our reads. */
	KUNIT_EXPECT_FALSE(test, fake->link->reads);
	/* It waits for a message. */
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 1);
	/* What rdma_cm says twice counts once. */
	hps_cm_established(fake->link, &event);
	KUNIT_EXPECT_EQ(test, fake->nr_sends, 1);
}

/* Of what the peer can do counts what both have resources for. */
static void hps_cm_established__limits(struct kunit *test)
{
	struct hps_hello hello = good();
	struct rdma_cm_event event = { .param.conn.private_data = &hello,
				       .param.conn.private_data_len = sizeof(hello),
				       .param.conn.initiator_depth = 1 };
	struct fake_link *fake = opening(test);
	struct hps_link *link = fake->link;

	hello.features = cpu_to_be64(HPS_FEATURE_READ | HPS_FEATURE_SWAP);
	fake->ibdev.attrs.max_fast_reg_page_list_len = 9;
	link->swaps = true;
	hps_cm_established(link, &event);
	KUNIT_EXPECT_TRUE(test, link->asks);
	KUNIT_EXPECT_FALSE(test, link->is_asked);
	KUNIT_EXPECT_FALSE(test, link->peer_reads);
	KUNIT_EXPECT_EQ(test, link->conn.tx_lend_max, 0);

	fake = opening(test);
	link = fake->link;
	fake->ibdev.attrs.max_fast_reg_page_list_len = 9;
	link->swaps = true;
	event.param.conn.initiator_depth = 0;
	event.param.conn.responder_resources = 1;
	hps_cm_established(link, &event);
	KUNIT_EXPECT_FALSE(test, link->asks);
	KUNIT_EXPECT_TRUE(test, link->is_asked);
	KUNIT_EXPECT_TRUE(test, link->peer_reads);
	KUNIT_EXPECT_GT(test, link->conn.tx_lend_max, 0);
}

static void hps_cm_established__bad(struct kunit *test)
{
	struct hps_hello hello = good();
	struct rdma_cm_event event = { .param.conn.private_data = &hello,
				       .param.conn.private_data_len = sizeof(hello) };
	struct fake_link *fake = opening(test);
	u64 before = fake_counter(fake, HPS_STAT_VIOLATION_HELLO);

	hello.version++;
	hps_cm_established(fake->link, &event);
	KUNIT_EXPECT_EQ(test, fake->link->conn.err, EPROTO);
	/* A stream was asked for. */
	fake = opening(test);
	hello = good();
	hello.type = SOCK_SEQPACKET;
	hps_cm_established(fake->link, &event);
	KUNIT_EXPECT_EQ(test, fake->link->conn.err, EPROTO);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_VIOLATION_HELLO), before + 2);
}

static void hps_cm_answers__of_the_peer(struct kunit *test)
{
	static const struct {
		enum rdma_cm_event_type event;
		bool answers;
	} cases[] = {
		{ RDMA_CM_EVENT_ADDR_RESOLVED, false },
		{ RDMA_CM_EVENT_ROUTE_ERROR, false },
		{ RDMA_CM_EVENT_CONNECT_ERROR, true },
		{ RDMA_CM_EVENT_UNREACHABLE, true },
		{ RDMA_CM_EVENT_REJECTED, true },
		{ RDMA_CM_EVENT_ESTABLISHED, true },
		{ RDMA_CM_EVENT_DISCONNECTED, true },
		{ RDMA_CM_EVENT_DEVICE_REMOVAL, true },
		{ RDMA_CM_EVENT_ADDR_CHANGE, false },
		{ RDMA_CM_EVENT_TIMEWAIT_EXIT, false },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		KUNIT_EXPECT_EQ_MSG(test, hps_cm_answers(cases[i].event), cases[i].answers,
				    "event %d", cases[i].event);
}

static struct kunit_case cm_cases[] = {
	KUNIT_CASE(hps_cm_fill_hello__is_good),
	KUNIT_CASE(hps_cm_fill_hello__reads),
	KUNIT_CASE(hps_cm_check_hello__none),
	KUNIT_CASE(hps_cm_check_hello__version),
	KUNIT_CASE(hps_cm_check_hello__limits),
	KUNIT_CASE(hps_cm_check_hello__window_too_small),
	KUNIT_CASE(hps_cm_check_hello__unknown_bits),
	KUNIT_CASE(hps_cm_take_hello__all),
	KUNIT_CASE(hps_cm_limit__less_of_both),
	KUNIT_CASE(hps_cm_limited__each_way),
	KUNIT_CASE(hps_cm_answered__devices),
	KUNIT_CASE(hps_cm_errno__words),
	KUNIT_CASE(hps_cm_fail_connect__another_port),
	KUNIT_CASE(hps_cm_rejected__reasons),
	KUNIT_CASE(hps_cm_rejected__established),
	KUNIT_CASE(hps_cm_established__good),
	KUNIT_CASE(hps_cm_established__limits),
	KUNIT_CASE(hps_cm_established__bad),
	KUNIT_CASE(hps_cm_answers__of_the_peer),
	{}
};

UNIT_SUITE(cm, cm_cases);
