// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/send.c"

#include "conn_tx.h"
#include "fake.h"

/* Its bytes were delivered while a writer had it, who then failed: it is as a new one. */
static void hps_send_tail__delivered_meanwhile(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, PAGE_SIZE, 500);

	fake->credits = 1;
	FAKE_LOCKED(fake, hps_stream_push(conn);
		     buf->busy = true;
		     hps_conn_tx_done(conn, buf, 500);
		     buf->busy = false);
	KUNIT_EXPECT_EQ(test, buf->end, 500);
	KUNIT_EXPECT_PTR_EQ(test, hps_send_tail(conn, PAGE_SIZE), buf);
	KUNIT_EXPECT_EQ(test, buf->end, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_flight));
	buf->busy = false;
}

/* But not while some are under way: what does not fit behind them goes to another. */
static void hps_send_tail__under_way(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 1200, 500);

	fake->credits = 1;
	FAKE_LOCKED(fake, hps_stream_push(conn));
	KUNIT_EXPECT_NULL(test, hps_send_tail(conn, PAGE_SIZE));
	KUNIT_EXPECT_EQ(test, buf->end, 500);
	KUNIT_EXPECT_FALSE(test, list_empty(&conn->tx_flight));
}

/* Short writes between pages of others: each has a page, not a message's worth. */
static void hps_send_alone__between_pages(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf;

	KUNIT_EXPECT_TRUE(test, hps_send_alone(conn));
	buf = fake_tx(test, conn, 1200, 500);
	KUNIT_EXPECT_FALSE(test, hps_send_alone(conn));
	buf->lent = true;
	KUNIT_EXPECT_TRUE(test, hps_send_alone(conn));
	buf->lent = false;
}

static struct sock *woken;

static void wake(struct sock *sk)
{
	woken = sk;
}

/* So many bytes of a program of the kernel's. */
static void some_bytes(struct kunit *test, struct msghdr *msg, struct kvec *vec, size_t len)
{
	vec->iov_base = kunit_kzalloc(test, len, GFP_KERNEL);
	vec->iov_len = len;
	KUNIT_ASSERT_NOT_NULL(test, vec->iov_base);
	iov_iter_kvec(&msg->msg_iter, ITER_SOURCE, vec, 1, len);
}

/* As hps_sendmsg() does. */
static int send_locked(struct sock *sk, struct hps_send_call *call)
{
	int ret;

	lock_sock(sk);
	ret = hps_send_locked(sk, call);
	if (call->record)
		hps_send_end_turn(sk, call);
	release_sock(sk);
	return ret;
}

/*
 * No memory, and nothing is under way whose completion would say that there is room: who waits
 * for an edge has it at once, whether some bytes were taken before or not.
 */
static void hps_send_locked__no_memory(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);
	static const size_t sent[] = { 0, 500 };
	struct msghdr msg = {};
	struct kvec vec;
	int i;

	sk->sk_write_space = wake;
	for (i = 0; i < ARRAY_SIZE(sent); i++) {
		struct hps_send_call call = { .msg = &msg, .sent = sent[i], .begun = sent[i] };

		woken = NULL;
		some_bytes(test, &msg, &vec, 1000);
		mock_fail(MOCK_ALLOC, ~0);
		KUNIT_EXPECT_EQ(test, send_locked(sk, &call), sent[i] ?: -EAGAIN);
		mock_fail(MOCK_ALLOC, 0);
		KUNIT_EXPECT_PTR_EQ(test, woken, sk);
	}
}

static struct fake_conn *fake_records(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	hps_record_init(&fake->conn, SOCK_SEQPACKET);
	return fake;
}

/* A message that memory is missing for can be sent again, from its beginning. */
static void hps_send_locked__record_again(struct kunit *test)
{
	struct fake_conn *fake = fake_records(test);
	struct sock *sk = fake_attach(test, fake);
	struct msghdr msg = {};
	struct hps_send_call call = { .msg = &msg, .record = true, .whole = true };
	struct kvec vec;

	some_bytes(test, &msg, &vec, 2 * HPS_SEND_BUF);
	/* The second buffer, of either size; but not what tells the peer. */
	mock_fail(MOCK_ALLOC, 0x6);
	KUNIT_EXPECT_EQ(test, send_locked(sk, &call), -EAGAIN);
	KUNIT_EXPECT_FALSE(test, fake->conn.shut);
	KUNIT_EXPECT_LT(test, sizeof(struct hps_record), fake->conn.tx_unsent);
	KUNIT_EXPECT_EQ(test, msg_data_left(&msg), 2 * HPS_SEND_BUF);
}

/* To take back a message does not depend on a limit. */
static void hps_send_abort__limit(struct kunit *test)
{
	struct fake_conn *fake = fake_records(test);
	struct sock *sk = fake_attach(test, fake);
	struct hps_send_call call = { .record = true, .begun = true };
	struct proto *prot = sk->sk_prot;
	struct msghdr msg = {};
	struct hps_buf *buf;

	call.msg = &msg;
	sk->sk_prot = fake_no_memory(test);
	lock_sock(sk);
	while (hps_sock_charge(sk, 1, SK_MEM_SEND))
		hps_sk(sk)->tx_charged++;
	hps_send_abort(sk, &call);
	KUNIT_EXPECT_FALSE(test, fake->conn.shut);
	KUNIT_EXPECT_EQ(test, fake->conn.tx_unsent, sizeof(struct hps_record));
	/* What was left is made up for by what is charged next. */
	sk->sk_prot = prot;
	KUNIT_EXPECT_TRUE(test, hps_sock_charge(sk, 1, SK_MEM_SEND));
	hps_sk(sk)->tx_charged++;
	KUNIT_EXPECT_LE(test, 0, sk->sk_forward_alloc);
	release_sock(sk);
	buf = list_first_entry_or_null(&fake->conn.txq, struct hps_buf, list);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	KUNIT_EXPECT_FALSE(test, buf->busy);
	KUNIT_EXPECT_EQ(test, *(u8 *)buf->data, HPS_RECORD_PIECE | HPS_RECORD_ABORT);
}

/* What more a call has to send the peer is told, unless that is held back. */
static void hps_send_announce__ends(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);
	struct hps_conn *conn = &fake->conn;
	struct msghdr msg = {};
	struct hps_send_call call = { .msg = &msg, .timeo = HZ };

	spin_lock_bh(&conn->lock);
	/* Of no call */
	conn->tx_bytes = 1000;
	conn->tx_unsent = 50;
	KUNIT_EXPECT_FALSE(test, hps_conn_tx_follows(conn, 49));
	hps_send_announce(sk, conn, &call, 300);
	/* Of calls before that, which queued all they had; unless it is held back */
	KUNIT_EXPECT_TRUE(test, hps_conn_tx_follows(conn, 49));
	conn->tx_corked = 1;
	KUNIT_EXPECT_FALSE(test, hps_conn_tx_follows(conn, 49));
	conn->tx_corked = 0;
	KUNIT_EXPECT_FALSE(test, hps_conn_tx_follows(conn, 50));
	KUNIT_EXPECT_TRUE(test, hps_conn_tx_follows(conn, 51));
	KUNIT_EXPECT_TRUE(test, hps_conn_tx_follows(conn, 349));
	KUNIT_EXPECT_FALSE(test, hps_conn_tx_follows(conn, 350));
	/* It goes on. */
	call.sent = 200;
	conn->tx_unsent = 250;
	hps_send_announce(sk, conn, &call, 100);
	KUNIT_EXPECT_TRUE(test, hps_conn_tx_follows(conn, 349));
	spin_unlock_bh(&conn->lock);
	/* But not to its end. Another's is not meant. */
	hps_send_short(conn, &(struct hps_send_call){});
	KUNIT_EXPECT_EQ(test, conn->tx_call_len, 300);
	hps_send_short(conn, &call);
	spin_lock_bh(&conn->lock);
	KUNIT_EXPECT_TRUE(test, hps_conn_tx_follows(conn, 249));
	KUNIT_EXPECT_FALSE(test, hps_conn_tx_follows(conn, 250));
	call.sent = 0;
	msg.msg_flags = MSG_MORE;
	hps_send_announce(sk, conn, &call, 300);
	KUNIT_EXPECT_FALSE(test, hps_conn_tx_follows(conn, 300));
	/* It may not block, and there is not room for all of it. */
	msg.msg_flags = 0;
	call.timeo = 0;
	hps_send_announce(sk, conn, &call, 2 * sk->sk_sndbuf);
	KUNIT_EXPECT_EQ(test, conn->tx_call_len, sk->sk_sndbuf);
	hps_send_announce(sk, conn, &call, 300);
	KUNIT_EXPECT_EQ(test, conn->tx_call_len, 300);
	conn->tx_bytes = 0;
	conn->tx_unsent = 0;
	spin_unlock_bh(&conn->lock);
	fake_end(fake);
}

static struct kunit_case send_cases[] = {
	KUNIT_CASE(hps_send_tail__delivered_meanwhile),
	KUNIT_CASE(hps_send_tail__under_way),
	KUNIT_CASE(hps_send_alone__between_pages),
	KUNIT_CASE(hps_send_locked__no_memory),
	KUNIT_CASE(hps_send_locked__record_again),
	KUNIT_CASE(hps_send_abort__limit),
	KUNIT_CASE(hps_send_announce__ends),
	{}
};

UNIT_SUITE(send, send_cases);
