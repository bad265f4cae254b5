// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/sock.c"

#include "fake.h"

static void reap(struct sock *sk)
{
	lock_sock(sk);
	/* By proto.release_cb */
	release_sock(sk);
}

static bool charge(struct sock *sk, u32 bytes, int kind)
{
	bool ok;

	lock_sock(sk);
	ok = hps_sock_charge(sk, bytes, kind);
	release_sock(sk);
	return ok;
}

static void hps_sock_reap__replaced_receives(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);
	struct hps_sock *hsk = hps_sk(sk);
	u32 rx = hsk->rx_charged;
	int forward;

	KUNIT_ASSERT_TRUE(test, charge(sk, 3000, SK_MEM_RECV));
	hsk->rx_charged += 3000;
	forward = sk->sk_forward_alloc;
	atomic_add(2000, &fake->conn.done_rx);
	reap(sk);
	KUNIT_EXPECT_EQ(test, hsk->rx_charged, rx + 1000);
	KUNIT_EXPECT_EQ(test, sk->sk_forward_alloc, forward + 2000);
	/* Once. */
	reap(sk);
	KUNIT_EXPECT_EQ(test, hsk->rx_charged, rx + 1000);
}

/* As sk_stream_moderate_sndbuf() leaves it where memory is refused. */
static void hps_sock_charge__sndbuf_again(struct kunit *test)
{
	struct sock *sk = fake_sock(test, SOCK_STREAM);
	int sndbuf = sk->sk_sndbuf;

	sk->sk_sndbuf = SOCK_MIN_SNDBUF;
	KUNIT_ASSERT_TRUE(test, charge(sk, 1000, SK_MEM_RECV));
	KUNIT_EXPECT_EQ(test, sk->sk_sndbuf, SOCK_MIN_SNDBUF);
	/* More than is left of what the core has given. */
	KUNIT_ASSERT_TRUE(test, charge(sk, 2 * PAGE_SIZE, SK_MEM_SEND));
	KUNIT_EXPECT_EQ(test, sk->sk_sndbuf, sndbuf);
	sk_mem_uncharge(sk, 1000 + 2 * PAGE_SIZE);
}

static void hps_sock_charge__sndbuf_chosen(struct kunit *test)
{
	struct sock *sk = fake_sock(test, SOCK_STREAM);

	sk->sk_sndbuf = SOCK_MIN_SNDBUF;
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
	KUNIT_ASSERT_TRUE(test, charge(sk, 1000, SK_MEM_SEND));
	KUNIT_EXPECT_EQ(test, sk->sk_sndbuf, SOCK_MIN_SNDBUF);
	sk_mem_uncharge(sk, 1000);
}

/* Memory is refused, but the charge is not: what the core makes of the limit stays so. */
static void hps_sock_charge__sndbuf_lowered(struct kunit *test)
{
	struct sock *sk = fake_sock(test, SOCK_STREAM);
	struct proto *prot = sk->sk_prot;
	int sndbuf = sk->sk_sndbuf;

	sk_wmem_queued_add(sk, sndbuf);
	sk->sk_prot = fake_no_memory(test);
	KUNIT_ASSERT_TRUE(test, charge(sk, 2 * PAGE_SIZE, SK_MEM_SEND));
	KUNIT_EXPECT_EQ(test, sk->sk_sndbuf, max_t(int, sndbuf / 2, SOCK_MIN_SNDBUF));
	/* But not once there is memory again. */
	sk->sk_prot = prot;
	KUNIT_ASSERT_TRUE(test, charge(sk, PAGE_SIZE, SK_MEM_SEND));
	KUNIT_EXPECT_EQ(test, sk->sk_sndbuf, sndbuf);
	sk_mem_uncharge(sk, 3 * PAGE_SIZE);
	sk_wmem_queued_add(sk, -sndbuf);
}

/* Neither above the limit from which on there may be pressure, nor under it. */
static void hps_sock_grow_sndbuf__short(struct kunit *test)
{
	struct sock *sk = fake_sock(test, SOCK_STREAM);
	struct proto *prot = sk->sk_prot, *tight = fake_no_memory(test);
	unsigned long pressure = 1;
	int sndbuf = sk->sk_sndbuf;

	lock_sock(sk);
	sk->sk_prot = tight;
	hps_sock_grow_sndbuf(sk);
	KUNIT_EXPECT_EQ(test, sk->sk_sndbuf, sndbuf);
	tight->sysctl_mem = prot->sysctl_mem;
	tight->memory_pressure = &pressure;
	hps_sock_grow_sndbuf(sk);
	KUNIT_EXPECT_EQ(test, sk->sk_sndbuf, sndbuf);
	sk->sk_prot = prot;
	hps_sock_grow_sndbuf(sk);
	KUNIT_EXPECT_EQ(test, sk->sk_sndbuf, prot->sysctl_wmem[2]);
	release_sock(sk);
}

static struct kunit_case sock_cases[] = {
	KUNIT_CASE(hps_sock_reap__replaced_receives),
	KUNIT_CASE(hps_sock_charge__sndbuf_again),
	KUNIT_CASE(hps_sock_charge__sndbuf_chosen),
	KUNIT_CASE(hps_sock_charge__sndbuf_lowered),
	KUNIT_CASE(hps_sock_grow_sndbuf__short),
	{}
};

UNIT_SUITE(sock, sock_cases);
