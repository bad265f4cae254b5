// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/post.c"

#include "fake.h"
#include "fake_link.h"
#include "msg.h"

/* Every so many, and when slots or credits are about to run out. */
static void hps_post_signal__each_reason(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct sock *sk = fake_link_attach(fake);
	const struct hps_buf buf = {};

	link->conn.tx_unsent = 1000000;
	link->credit.tx_granted = 32;
	link->unsignaled = 6;
	KUNIT_EXPECT_FALSE(test, hps_post_signal(link, &buf, 10));
	link->unsignaled = 7;
	KUNIT_EXPECT_TRUE(test, hps_post_signal(link, &buf, 10));
	link->unsignaled = 0;
	/* A quarter of SO_SNDBUF. */
	link->unsignaled_bytes = 10;
	KUNIT_EXPECT_FALSE(test, hps_post_signal(link, &buf, sk->sk_sndbuf / 4 - 11));
	KUNIT_EXPECT_TRUE(test, hps_post_signal(link, &buf, sk->sk_sndbuf / 4 - 10));
	link->unsignaled_bytes = 0;
	/* No bytes. */
	KUNIT_EXPECT_TRUE(test, hps_post_signal(link, NULL, 0));
	/* The last credit. */
	link->credit.tx_used = 31;
	KUNIT_EXPECT_TRUE(test, hps_post_signal(link, &buf, 10));
	link->credit.tx_used = 0;
	/* The last slot for DATA. */
	link->sq_used = HPS_SQ_SIZE - HPS_CTRL_SLOTS - 1;
	KUNIT_EXPECT_TRUE(test, hps_post_signal(link, &buf, 10));
	link->sq_used = 0;
	link->iwarp = true;
	KUNIT_EXPECT_TRUE(test, hps_post_signal(link, &buf, 10));
	link->conn.tx_unsent = 0;
}

/* The last bytes that there are, with somebody who is to hear of them. */
static void hps_post_signal__last(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_conn *conn = &link->conn;
	struct hps_gather gather;
	struct hps_buf buf = {};

	fake_link_attach(fake);
	conn->tx_unsent = 10;
	KUNIT_EXPECT_FALSE(test, hps_post_signal(link, &buf, 10));
	buf.gather = &gather;
	KUNIT_EXPECT_TRUE(test, hps_post_signal(link, &buf, 10));
	buf.gather = NULL;
	conn->confirmed = false;
	KUNIT_EXPECT_TRUE(test, hps_post_signal(link, &buf, 10));
	conn->confirmed = true;
	conn->fin_queued = true;
	KUNIT_EXPECT_TRUE(test, hps_post_signal(link, &buf, 10));
	conn->fin_queued = false;
	conn->resetting = true;
	KUNIT_EXPECT_TRUE(test, hps_post_signal(link, &buf, 10));
	conn->resetting = false;
	conn->tx_unsent = 0;
}

/* Those since the last that asked are counted, whatever they are. */
static void hps_post_wr__counts(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct ib_send_wr quiet = { .opcode = IB_WR_SEND };
	struct ib_send_wr loud = { .opcode = IB_WR_SEND, .send_flags = IB_SEND_SIGNALED };

	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_post_wr(link, &quiet, NULL, 5)), 0);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_post_wr(link, &quiet, NULL, 6)), 0);
	KUNIT_EXPECT_EQ(test, link->unsignaled, 2);
	KUNIT_EXPECT_EQ(test, link->unsignaled_bytes, 11);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_post_wr(link, &loud, NULL, 7)), 0);
	KUNIT_EXPECT_EQ(test, link->unsignaled, 0);
	KUNIT_EXPECT_EQ(test, link->unsignaled_bytes, 0);
	fake_sent_all(fake);
}

static void hps_post_wr__fails(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_buf *buf = fake_tx(test, &link->conn, 4096, 100);
	u64 errors = fake_counter(fake, HPS_STAT_WC_ERROR);

	mock_fail(MOCK_POST_SEND, BIT(0));
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), -ENOMEM);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake_counter(fake, HPS_STAT_WC_ERROR), errors + 1);
	KUNIT_EXPECT_EQ(test, link->sq_used, 0);
	KUNIT_EXPECT_EQ(test, link->tx_seq, 0);
	KUNIT_EXPECT_EQ(test, link->credit.tx_used, 0);
}

/* Timed is what the peer's device answers, once it is posted. */
static void hps_post_time__peer_alone(struct kunit *test)
{
	static const u8 own[] = { IB_WR_REG_MR, IB_WR_LOCAL_INV };
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct ib_reg_wr reg = { .wr.send_flags = IB_SEND_SIGNALED, .mr = fake->mrs };
	u32 i;

	reg.wr.opcode = IB_WR_SEND;
	mock_fail(MOCK_POST_SEND, BIT(0));
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_post_try(link, &reg.wr, NULL, 0)),
			-ENOMEM);
	KUNIT_EXPECT_EQ(test, link->timed, 0);
	link->timed = 0;
	for (i = 0; i < ARRAY_SIZE(own); i++) {
		reg.wr.opcode = own[i];
		KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_post_try(link, &reg.wr, NULL, 0)),
				0);
		KUNIT_EXPECT_EQ(test, link->timed, 0);
		link->timed = 0;
	}
	reg.wr.opcode = IB_WR_SEND;
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_post_try(link, &reg.wr, NULL, 0)), 0);
	KUNIT_EXPECT_EQ(test, link->timed, i + 1);
	/* By the clock of another processor it is over before it began. */
	link->timed_from = hps_post_clock() + 1000000;
	link->near = 0;
	fake_sent_all(fake);
	KUNIT_EXPECT_NE(test, link->near, 0);
}

static void hps_post_message__header(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_link *link = fake->link;
	struct hps_buf *buf = fake_tx(test, &link->conn, 4096, 200);
	struct hps_hdr *hdr;

	link->credit.rx_ready = 9;
	link->conn.tx_call_len = 200;
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, 99), 0);
	hdr = fake_head(fake, 0);
	KUNIT_EXPECT_EQ(test, hdr->type, HPS_MSG_DATA);
	/* There is more of the same call. */
	KUNIT_EXPECT_EQ(test, hdr->flags, HPS_FLAG_MORE);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(hdr->len), 100);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(hdr->seq), 0);
	/* What is owed rides along. */
	KUNIT_EXPECT_EQ(test, be32_to_cpu(hdr->credit), 9);
	KUNIT_EXPECT_EQ(test, link->credit.rx_told, 9);
	hdr = fake_head(fake, 1);
	KUNIT_EXPECT_EQ(test, hdr->flags, HPS_FLAG_URGENT);
	KUNIT_EXPECT_EQ(test, be16_to_cpu(hdr->urgent), 99);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(hdr->seq), 1);
}

static void hps_post_message__inline(struct kunit *test)
{
	struct fake_link *fake = fake_link_start(test);
	struct hps_buf *buf = fake_tx(test, &fake->link->conn, 4096, 200);

	fake->link->inline_max = sizeof(struct hps_hdr) + 100;
	KUNIT_EXPECT_EQ(test, fake_send(fake, buf, 100, -1), 0);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake_head(fake, 0)->len), 100);
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_send_fin(&fake->link->conn)), 0);
	KUNIT_EXPECT_EQ(test, fake_head(fake, 1)->type, HPS_MSG_FIN);
}

/* Larger messages from the one on that goes into a larger receive. */
static void hps_post_resize__in_time(struct kunit *test)
{
	struct hps_buffers buffers = { .from = cpu_to_be32(2), .size = cpu_to_be32(8192) };
	struct fake_link *fake = fake_link_start(test);
	struct hps_conn *conn = &fake->link->conn;

	fake_message(fake, HPS_MSG_BUFFERS, &buffers, sizeof(buffers));
	KUNIT_EXPECT_EQ(test, conn->tx_msg_max, 1024 - sizeof(struct hps_hdr));
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_send_fin(conn)), 0);
	KUNIT_EXPECT_EQ(test, conn->tx_msg_max, 1024 - sizeof(struct hps_hdr));
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_msg_send_finack(conn)), 0);
	KUNIT_EXPECT_EQ(test, conn->tx_msg_max, 8192 - sizeof(struct hps_hdr));
	/* At once, if that one was sent already. */
	buffers.size = cpu_to_be32(HPS_BUF_MAX);
	fake_message(fake, HPS_MSG_BUFFERS, &buffers, sizeof(buffers));
	KUNIT_EXPECT_EQ(test, conn->tx_msg_max, 65536);
	conn->user_mss = 500;
	spin_lock_bh(&fake->link->conn.lock);
	hps_post_resize(fake->link);
	spin_unlock_bh(&fake->link->conn.lock);
	KUNIT_EXPECT_EQ(test, conn->tx_msg_max, 500);
}

/* What follows the header, and a key of the peer's that goes by the same message. */
static void hps_post_control__payload(struct kunit *test)
{
	struct hps_srccancel cancel = { .count = cpu_to_be32(3) };
	struct fake_link *fake = fake_link_start(test);
	struct hps_outgoing out = {
		.type = HPS_MSG_SRCCANCEL, .payload = &cancel, .size = sizeof(cancel),
	};

	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_post_control(fake->link, &out)), 0);
	KUNIT_EXPECT_EQ(test, fake->sends[0].opcode, IB_WR_SEND);
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake_head(fake, 0)->len), sizeof(cancel));
	KUNIT_EXPECT_EQ(test, be32_to_cpu(fake->sends[0].head.cancel.count), 3);
	out.revokes = 7;
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_post_control(fake->link, &out)), 0);
	KUNIT_EXPECT_EQ(test, fake->sends[1].opcode, IB_WR_SEND_WITH_INV);
	KUNIT_EXPECT_EQ(test, fake->sends[1].rkey, 7);
	fake->link->sq_used = HPS_SQ_SIZE;
	KUNIT_EXPECT_EQ(test, FAKE_LINK_LOCKED(fake, hps_post_control(fake->link, &out)),
			-EAGAIN);
	fake->link->sq_used = 2;
}

static struct kunit_case post_cases[] = {
	KUNIT_CASE(hps_post_signal__each_reason),
	KUNIT_CASE(hps_post_signal__last),
	KUNIT_CASE(hps_post_wr__counts),
	KUNIT_CASE(hps_post_wr__fails),
	KUNIT_CASE(hps_post_time__peer_alone),
	KUNIT_CASE(hps_post_message__header),
	KUNIT_CASE(hps_post_message__inline),
	KUNIT_CASE(hps_post_resize__in_time),
	KUNIT_CASE(hps_post_control__payload),
	{}
};

UNIT_SUITE(post, post_cases);
