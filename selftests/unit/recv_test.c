// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/recv.c"

#include "fake.h"

/* MSG_PEEK goes on where it was, or where others have read to. */
static void hps_recv_offset__others_read(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_reader peek = { .flags = MSG_PEEK, .off = 3 }, other = {};

	KUNIT_EXPECT_EQ(test, hps_recv_offset(&fake->conn, &peek), 3);
	fake->conn.rx_read += 2;
	KUNIT_EXPECT_EQ(test, hps_recv_offset(&fake->conn, &peek), 1);
	/* As when an urgent byte is superseded */
	fake->conn.rx_drop++;
	KUNIT_EXPECT_EQ(test, hps_recv_offset(&fake->conn, &peek), 0);
	fake->conn.rx_read += 5;
	KUNIT_EXPECT_EQ(test, hps_recv_offset(&fake->conn, &peek), 0);
	KUNIT_EXPECT_EQ(test, hps_recv_offset(&fake->conn, &other), 0);
	fake_end(fake);
}

/* What is read next is the urgent byte, also when that is another than a moment before. */
static void hps_recv_at_mark__moved(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_reader peek = { .flags = MSG_PEEK, .off = 1 };

	fake->conn.rx_urgent = HPS_URGENT_AHEAD;
	fake->conn.rx_urgent_at = 2;
	fake->conn.rx_drop = 1;
	KUNIT_EXPECT_FALSE(test, hps_recv_at_mark(&fake->conn, &peek));
	peek.off = 1;
	KUNIT_EXPECT_TRUE(test, hps_recv_at_mark(&fake->conn, &peek));
	fake_end(fake);
}

/* A peer that has more to send, and does not, is waited for once in a while. */
static void hps_recv_rest__vain(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);
	struct hps_reader r = { .patient = true, .len = 10, .copied = 1, .timeo = HZ };
	int i;

	lock_sock(sk);
	KUNIT_EXPECT_FALSE(test, hps_recv_rest(sk, &fake->conn, &r));
	KUNIT_EXPECT_EQ(test, r.timeo, HZ);
	fake->conn.rx_follows = true;
	KUNIT_EXPECT_FALSE(test, hps_recv_rest(sk, &fake->conn, &r));
	KUNIT_EXPECT_LT(test, r.timeo, HZ);
	KUNIT_EXPECT_GT(test, r.timeo, HZ / 2);
	r.rest = 0;
	r.timeo = HZ;
	for (i = 0; i < HPS_RECV_VAIN; i++)
		KUNIT_EXPECT_FALSE(test, hps_recv_rest(sk, &fake->conn, &r));
	KUNIT_EXPECT_EQ(test, r.timeo, HZ);
	KUNIT_EXPECT_FALSE(test, hps_recv_rest(sk, &fake->conn, &r));
	KUNIT_EXPECT_LT(test, r.timeo, HZ);
	/* That is so, too, if it sends a byte meanwhile, and says the same. */
	hps_sk(sk)->rest_skip = 0;
	r.rest = jiffies | 1;
	r.copied = 2;
	KUNIT_EXPECT_FALSE(test, hps_recv_rest(sk, &fake->conn, &r));
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rest_skip, HPS_RECV_VAIN);
	release_sock(sk);
	fake_end(fake);
}

/* Who may not wait for it, or not soon be woken by it. */
static void hps_recv_rest__not(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);
	struct hps_reader r[] = {
		{ .patient = true, .len = 10, .copied = 10, .timeo = HZ },
		{ .patient = true, .len = 10, .copied = 1 },
		{ .patient = true, .len = 10, .copied = 1, .timeo = HZ, .flags = MSG_PEEK },
		{ .len = 10, .copied = 1, .timeo = HZ },
		{ .patient = true, .len = 10, .copied = 1, .timeo = HZ },
	};
	int i;

	lock_sock(sk);
	fake->conn.rx_follows = true;
	for (i = 0; i < ARRAY_SIZE(r); i++) {
		/* The last one */
		sk->sk_rcvlowat = i == ARRAY_SIZE(r) - 1 ? 2 : 1;
		KUNIT_EXPECT_FALSE(test, hps_recv_rest(sk, &fake->conn, &r[i]));
		KUNIT_EXPECT_FALSE(test, r[i].waited);
	}
	release_sock(sk);
	fake_end(fake);
}

/* SO_ERROR told why before the end could be seen: it is one nevertheless. */
static void hps_recv_end__told(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);

	lock_sock(sk);
	sk->sk_err = ECONNRESET;
	KUNIT_EXPECT_EQ(test, hps_recv_end(sk), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, hps_recv_end(sk), 0);
	release_sock(sk);
	fake_end(fake);
}

static struct kunit_case recv_cases[] = {
	KUNIT_CASE(hps_recv_offset__others_read),
	KUNIT_CASE(hps_recv_at_mark__moved),
	KUNIT_CASE(hps_recv_rest__vain),
	KUNIT_CASE(hps_recv_rest__not),
	KUNIT_CASE(hps_recv_end__told),
	{}
};

UNIT_SUITE(recv, recv_cases);
