// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/stream.c"

#include "fake.h"

static void push(struct hps_conn *conn)
{
	spin_lock_bh(&conn->lock);
	hps_stream_push(conn);
	spin_unlock_bh(&conn->lock);
}

/* What it sent, in the order of the calls. */
#define EXPECT_SENT(test, fake, i, what_, len_) do {			\
	KUNIT_EXPECT_GT(test, (fake)->nr, i);				\
	KUNIT_EXPECT_EQ(test, (fake)->sent[i].what, what_);		\
	KUNIT_EXPECT_EQ(test, (fake)->sent[i].len, len_);		\
} while (0)

static void hps_stream_corked__held_back(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	unsigned long expires;

	fake->credits = 9;
	fake->conn.tx_corked = 2000;
	fake_tx(test, &fake->conn, 2000, 999);
	push(&fake->conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.cork_timer));
	/* It is for the first byte that the time counts. */
	spin_lock_bh(&fake->conn.lock);
	mod_timer(&fake->conn.cork_timer, jiffies + HZ);
	spin_unlock_bh(&fake->conn.lock);
	expires = fake->conn.cork_timer.expires;
	push(&fake->conn);
	KUNIT_EXPECT_EQ(test, fake->conn.cork_timer.expires, expires);
}

static void hps_stream_corked__fills_a_message(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->credits = 9;
	fake->conn.tx_corked = 2000;
	fake_tx(test, &fake->conn, 2000, 1500);
	push(&fake->conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	EXPECT_SENT(test, fake, 0, FAKE_DATA, 1000);
}

static void hps_stream_corked__fin_follows(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->credits = 9;
	fake->conn.tx_corked = 2000;
	fake->conn.fin_queued = true;
	fake_tx(test, &fake->conn, 2000, 10);
	push(&fake->conn);
	EXPECT_SENT(test, fake, 0, FAKE_DATA, 10);
	EXPECT_SENT(test, fake, 1, FAKE_FIN, 0);
}

static void hps_stream_corked__urgent(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->credits = 9;
	fake->conn.tx_corked = 2000;
	fake->conn.tx_urgent = true;
	fake->conn.tx_urgent_at = 9;
	fake_tx(test, &fake->conn, 2000, 10);
	push(&fake->conn);
	EXPECT_SENT(test, fake, 0, FAKE_DATA, 10);
	KUNIT_EXPECT_EQ(test, fake->sent[0].urgent, 9);
	KUNIT_EXPECT_FALSE(test, fake->conn.tx_urgent);
}

static void hps_stream_send__pieces(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 2500, 2100);

	fake->credits = 9;
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 3);
	EXPECT_SENT(test, fake, 0, FAKE_DATA, 1000);
	EXPECT_SENT(test, fake, 1, FAKE_DATA, 1000);
	EXPECT_SENT(test, fake, 2, FAKE_DATA, 100);
	KUNIT_EXPECT_EQ(test, fake->sent[0].urgent, -1);
	KUNIT_EXPECT_EQ(test, buf->start, 2100);
	KUNIT_EXPECT_EQ(test, conn->tx_unsent, 0);
	KUNIT_EXPECT_EQ(test, conn->tx_unacked, 2100);
	KUNIT_EXPECT_EQ(test, conn->tx_msgs, 3);
	KUNIT_EXPECT_EQ(test, conn->tx_bytes, 2100);
	/* It has room, and is to be filled. */
	KUNIT_EXPECT_FALSE(test, list_empty(&conn->txq));
}

/* The urgent byte is told in the message that it is in. */
static void hps_stream_send__urgent_later(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->credits = 9;
	fake_tx(test, &fake->conn, 2500, 1500);
	fake->conn.tx_urgent = true;
	fake->conn.tx_urgent_at = 1200;
	push(&fake->conn);
	KUNIT_EXPECT_EQ(test, fake->sent[0].urgent, -1);
	KUNIT_EXPECT_EQ(test, fake->sent[1].urgent, 200);
	KUNIT_EXPECT_FALSE(test, fake->conn.tx_urgent);
}

static void hps_stream_send__lent(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_buf *buf = fake_tx(test, &fake->conn, 5000, 5000);

	fake->credits = 9;
	buf->lent = true;
	push(&fake->conn);
	buf->lent = false;
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	EXPECT_SENT(test, fake, 0, FAKE_OFFER, 5000);
}

static void hps_stream_push_data__hold(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->credits = 9;
	fake->conn.tx_hold = true;
	fake->conn.fin_queued = true;
	fake_tx(test, &fake->conn, 2000, 10);
	push(&fake->conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
}

/* @len bytes more are in a buffer. */
static void more(struct fake_conn *fake, struct hps_buf *buf, u32 len)
{
	struct hps_conn *conn = &fake->conn;

	FAKE_LOCKED(fake, buf->end += len;
		     hps_stream_queued(conn, len);
		     hps_stream_more(conn, len));
}

/* With much under way a short message waits for a completion, and becomes longer. */
static void hps_stream_combines__short(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 3000, 10);

	fake->credits = 9;
	fake->many = true;
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
	KUNIT_EXPECT_TRUE(test, conn->tx_blocked);
	/* Nothing completed, so it is not asked again. */
	fake->many = false;
	more(fake, buf, 20);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	EXPECT_SENT(test, fake, 0, FAKE_DATA, 30);
	KUNIT_EXPECT_FALSE(test, conn->tx_blocked);
}

static void hps_stream_combines__filled(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 3000, 10);

	fake->credits = 9;
	fake->many = true;
	push(conn);
	more(fake, buf, 900);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
	more(fake, buf, 100);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	EXPECT_SENT(test, fake, 0, FAKE_DATA, 1000);
	KUNIT_EXPECT_EQ(test, conn->tx_unsent, 10);
}

/* Others follow what waits. */
static void hps_stream_combines__followed(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf;

	fake->credits = 9;
	fake->many = true;
	fake_tx(test, conn, 3000, 10);
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
	buf = fake_tx(test, conn, 3000, 0);
	more(fake, buf, 20);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	EXPECT_SENT(test, fake, 0, FAKE_DATA, 10);
}

/* What is corked no more is not corked again after the completion that it waits for. */
static void hps_stream_combines__flush(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;

	fake->credits = 9;
	fake->many = true;
	conn->tx_corked = 10;
	fake_tx(test, conn, 3000, 10);
	FAKE_LOCKED(fake, hps_stream_flush(conn));
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
	fake->many = false;
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
}

/* What waits to be combined was not sent with MSG_MORE: it is not corked by what is. */
static void hps_stream_combines__then_more(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 3000, 10);

	fake->credits = 9;
	fake->many = true;
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
	/* As hps_send_queued() does it. */
	conn->tx_corked = 20;
	more(fake, buf, 20);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
	/* It has completed. */
	fake->many = false;
	push(conn);
	EXPECT_SENT(test, fake, 0, FAKE_DATA, 30);
	/* What comes now with MSG_MORE is. */
	fake_tx(test, conn, 3000, 20);
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
}

/* Nor does one wait that cannot become longer. */
static void hps_stream_combines__closed(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;

	fake->credits = 9;
	fake->many = true;
	fake_tx(test, conn, 700, 700);
	push(conn);
	EXPECT_SENT(test, fake, 0, FAKE_DATA, 700);
	fake_tx(test, conn, 700, 20);
	fake_tx(test, conn, 700, 30);
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 2);
	EXPECT_SENT(test, fake, 1, FAKE_DATA, 20);
	FAKE_LOCKED(fake, conn->fin_queued = true;
		     hps_stream_push(conn));
	EXPECT_SENT(test, fake, 2, FAKE_DATA, 30);
}

static void hps_stream_push_data__no_credit(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;

	fake->credits = 1;
	conn->fin_queued = true;
	fake_tx(test, conn, 2500, 1500);
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	KUNIT_EXPECT_TRUE(test, conn->tx_blocked);
	KUNIT_EXPECT_EQ(test, conn->tx_unsent, 500);
	/* What waits may wait for a peer that is gone. */
	KUNIT_EXPECT_TRUE(test, timer_pending(&conn->probe));
	fake->credits = 2;
	push(conn);
	KUNIT_EXPECT_FALSE(test, conn->tx_blocked);
	EXPECT_SENT(test, fake, 1, FAKE_DATA, 500);
	EXPECT_SENT(test, fake, 2, FAKE_FIN, 0);
}

static void hps_stream_push_data__fails(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 2500, 2000);

	fake->credits = 9;
	mock_fail(MOCK_POST_SEND, BIT(1));
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	KUNIT_EXPECT_EQ(test, buf->start, 1000);
	KUNIT_EXPECT_EQ(test, conn->tx_unsent, 1000);
	KUNIT_EXPECT_EQ(test, conn->tx_unacked, 1000);
}

static void hps_stream_push_data__urgent_waits(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;

	fake_tx(test, conn, 2500, 1500);
	conn->tx_urgent = true;
	conn->tx_urgent_at = 1499;
	push(conn);
	EXPECT_SENT(test, fake, 0, FAKE_URGENT, 0);
	KUNIT_EXPECT_EQ(test, fake->sent[0].urgent, 1499);
	/* Once is enough. */
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
}

static void hps_stream_push_data__full_buffers(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *full = fake_tx(test, conn, 1000, 1000);
	struct hps_buf *busy = fake_tx(test, conn, 1000, 1000);

	fake->credits = 9;
	/* A writer still has it. */
	busy->busy = true;
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 2);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&conn->tx_flight, struct hps_buf, list), full);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&conn->txq, struct hps_buf, list), busy);
}

/* Time without progress begins with the first byte that is under way. */
static void hps_stream_push_data__progress(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	unsigned long past = jiffies - HZ;

	fake->credits = 1;
	fake_tx(test, conn, 2500, 10);
	conn->progress = past;
	push(conn);
	KUNIT_EXPECT_NE(test, conn->progress, past);
	fake->credits = 1;
	fake_tx(test, conn, 2500, 10);
	conn->progress = past;
	push(conn);
	KUNIT_EXPECT_EQ(test, conn->progress, past);
}

static void hps_stream_queued__progress(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	unsigned long past = jiffies - HZ;

	conn->progress = past;
	fake_tx(test, conn, 2500, 10);
	KUNIT_EXPECT_NE(test, conn->progress, past);
	conn->progress = past;
	fake_tx(test, conn, 2500, 10);
	KUNIT_EXPECT_EQ(test, conn->progress, past);
	KUNIT_EXPECT_EQ(test, conn->tx_unsent, 20);
}

static void hps_stream_push__not_open(struct kunit *test)
{
	static const u8 states[] = { TCP_SYN_SENT, TCP_SYN_RECV };
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	int i;

	fake->credits = 9;
	fake_tx(test, &fake->conn, 2500, 10);
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		fake->conn.state = states[i];
		push(&fake->conn);
		KUNIT_EXPECT_EQ(test, fake->nr, 0);
	}
	fake->conn.state = TCP_ESTABLISHED;
	fake->conn.shut = true;
	push(&fake->conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
}

static void hps_stream_push__finack(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_CLOSE_WAIT);
	struct hps_conn *conn = &fake->conn;

	conn->finack_owed = true;
	push(conn);
	KUNIT_EXPECT_TRUE(test, conn->finack_owed);
	fake->credits = 9;
	/* The peer is still needed for what it has only offered. */
	conn->rx_remote = 1;
	push(conn);
	KUNIT_EXPECT_TRUE(test, conn->finack_owed);
	conn->rx_remote = 0;
	conn->resetting = true;
	push(conn);
	KUNIT_EXPECT_TRUE(test, conn->finack_owed);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
	conn->resetting = false;
	push(conn);
	KUNIT_EXPECT_FALSE(test, conn->finack_owed);
	EXPECT_SENT(test, fake, 0, FAKE_FINACK, 0);
}

static void hps_stream_push__user_timeout(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->credits = 9;
	fake_tx(test, &fake->conn, 2500, 10);
	push(&fake->conn);
	KUNIT_EXPECT_FALSE(test, timer_pending(&fake->conn.probe));
	fake->conn.user_timeout = HZ;
	push(&fake->conn);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.probe));
}

static void hps_stream_push__fin(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);
	struct hps_conn *conn = &fake->conn;

	conn->fin_queued = true;
	push(conn);
	KUNIT_EXPECT_FALSE(test, conn->fin_sent);
	fake->credits = 9;
	/* A send that waits for the peer has more. */
	conn->tx_turn = true;
	push(conn);
	KUNIT_EXPECT_FALSE(test, conn->fin_sent);
	conn->tx_turn = false;
	push(conn);
	KUNIT_EXPECT_TRUE(test, conn->fin_sent);
	push(conn);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	EXPECT_SENT(test, fake, 0, FAKE_FIN, 0);
}

static u32 writable;

static void count_writable(struct sock *sk)
{
	writable++;
}

/* Who waits until less is unsent is told when it is posted, not when it has completed. */
static void hps_stream_push__less_unsent(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);
	u32 round;

	sk->sk_write_space = count_writable;
	for (round = 0; round < 3; round++) {
		writable = 0;
		fake->credits = 0;
		fake_tx(test, &fake->conn, 1000, 10);
		hps_sk(sk)->notsent_lowat = round ? 10 : 0;
		if (round < 2)
			set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		else
			clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
		push(&fake->conn);
		KUNIT_EXPECT_EQ(test, writable, 0);
		fake->credits = 1;
		push(&fake->conn);
		KUNIT_EXPECT_EQ(test, fake->nr, round + 1);
		KUNIT_EXPECT_EQ(test, writable, round == 1);
	}
}

static void hps_stream_flush__corked(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;

	fake->credits = 9;
	conn->tx_corked = 10;
	fake_tx(test, conn, 2500, 10);
	spin_lock_bh(&conn->lock);
	hps_stream_flush(conn);
	spin_unlock_bh(&conn->lock);
	EXPECT_SENT(test, fake, 0, FAKE_DATA, 10);
}

static void hps_stream_fin__states(struct kunit *test)
{
	static const u8 states[][2] = {
		{ TCP_ESTABLISHED, TCP_FIN_WAIT1 },
		{ TCP_CLOSE_WAIT, TCP_LAST_ACK },
	};
	struct fake_conn *fake;
	int i;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		fake = fake_conn(test, states[i][0]);
		fake->credits = 9;
		fake_tx(test, &fake->conn, 2500, 10);
		spin_lock_bh(&fake->conn.lock);
		hps_stream_fin(&fake->conn);
		spin_unlock_bh(&fake->conn.lock);
		KUNIT_EXPECT_EQ(test, fake->conn.state, states[i][1]);
		EXPECT_SENT(test, fake, 0, FAKE_DATA, 10);
		EXPECT_SENT(test, fake, 1, FAKE_FIN, 0);
	}
}

static struct kunit_case stream_cases[] = {
	KUNIT_CASE(hps_stream_corked__held_back),
	KUNIT_CASE(hps_stream_corked__fills_a_message),
	KUNIT_CASE(hps_stream_corked__fin_follows),
	KUNIT_CASE(hps_stream_corked__urgent),
	KUNIT_CASE(hps_stream_send__pieces),
	KUNIT_CASE(hps_stream_send__urgent_later),
	KUNIT_CASE(hps_stream_send__lent),
	KUNIT_CASE(hps_stream_combines__short),
	KUNIT_CASE(hps_stream_combines__filled),
	KUNIT_CASE(hps_stream_combines__closed),
	KUNIT_CASE(hps_stream_combines__followed),
	KUNIT_CASE(hps_stream_combines__flush),
	KUNIT_CASE(hps_stream_combines__then_more),
	KUNIT_CASE(hps_stream_push_data__hold),
	KUNIT_CASE(hps_stream_push_data__no_credit),
	KUNIT_CASE(hps_stream_push_data__fails),
	KUNIT_CASE(hps_stream_push_data__urgent_waits),
	KUNIT_CASE(hps_stream_push_data__full_buffers),
	KUNIT_CASE(hps_stream_push_data__progress),
	KUNIT_CASE(hps_stream_queued__progress),
	KUNIT_CASE(hps_stream_push__not_open),
	KUNIT_CASE(hps_stream_push__finack),
	KUNIT_CASE(hps_stream_push__user_timeout),
	KUNIT_CASE(hps_stream_push__fin),
	KUNIT_CASE(hps_stream_push__less_unsent),
	KUNIT_CASE(hps_stream_flush__corked),
	KUNIT_CASE(hps_stream_fin__states),
	{}
};

UNIT_SUITE(stream, stream_cases);
