// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/record.c"

#include "conn_rx.h"
#include "fake.h"
#include "wait.h"

static int ready;

static void count_ready(struct sock *sk)
{
	ready++;
}

/* What recvmsg() says that may not wait. */
static int receive(struct sock *sk)
{
	char byte;
	struct kvec vec = { &byte, 1 };
	struct msghdr msg = {};

	return kernel_recvmsg(sk->sk_socket, &msg, &vec, 1, 1, MSG_DONTWAIT);
}

/* A message of one byte is there. */
static void arrive(struct kunit *test, struct fake_conn *fake)
{
	struct hps_buf *buf = fake_rx(test, 100, sizeof(struct hps_record) + 1);

	hps_record_fill(buf->data, 1, HPS_RECORD_END);
	KUNIT_ASSERT_EQ(test, fake_receive(fake, buf, false, -1), 0);
}

/* Another reads: it had all that is there, or not. */
static void hps_record_leave__refused(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_sock *hsk;
	struct sock *sk;
	int i;

	hps_record_init(&fake->conn, SOCK_SEQPACKET);
	sk = fake_attach(test, fake);
	hsk = hps_sk(sk);
	arrive(test, fake);
	sk->sk_data_ready = count_ready;
	for (i = 0; i < 2; i++) {
		hsk->reading = true;
		KUNIT_EXPECT_EQ(test, receive(sk), -EAGAIN);
		lock_sock(sk);
		ready = 0;
		hps_record_leave(sk);
		KUNIT_EXPECT_EQ(test, ready, !i);
		/* Once. */
		hps_record_leave(sk);
		KUNIT_EXPECT_EQ(test, ready, !i);
		release_sock(sk);
		/* It is not there any more the next time. */
		atomic_set(&fake->conn.rx_avail, 0);
		atomic_set(&fake->conn.rx_records, 0);
	}
	fake_end(fake);
}

/* And nothing will come: its edge has gone to one that was refused. */
static void hps_record_leave__over(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk;

	hps_record_init(&fake->conn, SOCK_SEQPACKET);
	sk = fake_attach(test, fake);
	sk->sk_data_ready = count_ready;
	hps_sk(sk)->reading = true;
	spin_lock_bh(&fake->conn.lock);
	KUNIT_EXPECT_EQ(test, hps_conn_rx_fin(&fake->conn), 0);
	spin_unlock_bh(&fake->conn.lock);
	KUNIT_EXPECT_EQ(test, receive(sk), -EAGAIN);
	lock_sock(sk);
	ready = 0;
	hps_record_leave(sk);
	KUNIT_EXPECT_EQ(test, ready, 1);
	release_sock(sk);
	KUNIT_EXPECT_EQ(test, receive(sk), 0);
	fake_end(fake);
}

static struct kunit_case record_cases[] = {
	KUNIT_CASE(hps_record_leave__refused),
	KUNIT_CASE(hps_record_leave__over),
	{}
};

UNIT_SUITE(record, record_cases);
