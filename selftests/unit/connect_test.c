// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/connect.c"

#include "conn_tx.h"
#include "fake.h"
#include "proto.h"

/* The peer takes the last message of the handshake, late. */
struct confirm {
	struct delayed_work work;
	struct fake_conn *fake;
};

static void confirm_work(struct work_struct *work)
{
	struct confirm *confirm = container_of(work, struct confirm, work.work);

	FAKE_LOCKED(confirm->fake, hps_conn_tx_advanced(&confirm->fake->conn));
}

/* What a connect() says that comes, or gets a processor, when it is established here. */
static int again(struct kunit *test, struct fake_conn *fake, int flags)
{
	struct sockaddr_in to = { .sin_family = AF_INET };
	struct confirm confirm = { .fake = fake };
	struct sock *sk = fake_attach(test, fake);
	int ret;

	fake->conn.confirmed = false;
	sk->sk_socket->state = SS_CONNECTING;
	INIT_DELAYED_WORK_ONSTACK(&confirm.work, confirm_work);
	schedule_delayed_work(&confirm.work, HZ / 20);
	ret = hps_connect(sk->sk_socket, (struct sockaddr *)&to, sizeof(to), flags);
	if (!(flags & O_NONBLOCK))
		KUNIT_EXPECT_TRUE(test, fake->conn.confirmed);
	cancel_delayed_work_sync(&confirm.work);
	destroy_delayed_work_on_stack(&confirm.work);
	return ret;
}

static void hps_connect__established_already(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, again(test, fake_conn(test, TCP_ESTABLISHED), 0), 0);
}

/* poll() has said so. */
static void hps_connect__established_nonblock(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	KUNIT_EXPECT_EQ(test, again(test, fake, O_NONBLOCK), 0);
}

static void hps_connect__pending_nonblock(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);

	KUNIT_EXPECT_EQ(test, again(test, fake, O_NONBLOCK), -EALREADY);
}

/* A socket whose attempt fails in a way that may pass. The next one would be much later. */
static struct sock *failing(struct kunit *test, struct fake_conn *fake)
{
	struct sock *sk = fake_attach(test, fake);

	hps_retry_begin(sk, jiffies + 1000 * HZ);
	hps_sk(sk)->connect_delay = 100 * HZ;
	fake->conn.tries = HPS_TRIES_ANY;
	return sk;
}

/* The work is run now, instead. */
static void work(struct sock *sk)
{
	sock_hold(sk);
	hps_connect_work(&hps_sk(sk)->connect_work.work);
}

static void cancel(struct sock *sk)
{
	lock_sock(sk);
	hps_retry_cancel(sk);
	release_sock(sk);
}

static void hps_connect_work__disabled(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);
	struct sock *sk = failing(test, fake);
	long limit[3];

	fake_end(fake);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_SYN_SENT);
	hps_net(&init_net)->enabled = 0;
	/* An attempt would fail, too, but otherwise. */
	memcpy(limit, hps_prot.sysctl_mem, sizeof(limit));
	memset(hps_prot.sysctl_mem, -1, sizeof(limit));
	work(sk);
	memcpy(hps_prot.sysctl_mem, limit, sizeof(limit));
	hps_net(&init_net)->enabled = 1;
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, sock_error(sk), -ENETUNREACH);
	cancel(sk);
}

/* It was queued for an earlier attempt; this one is about to be reported. */
static void hps_connect_work__stale(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);
	struct sock *sk = failing(test, fake);

	fake->conn.ended = true;
	work(sk);
	KUNIT_EXPECT_TRUE(test, rcu_access_pointer(hps_sk(sk)->conn) == &fake->conn);
	fake->conn.ended = false;
	fake->conn.tries = 0;
	fake_end(fake);
	KUNIT_EXPECT_EQ(test, sock_error(sk), -ECONNRESET);
}

/* It found the lock taken, and close() or connect() cancels it. */
static void hps_retry_cancel__later(struct kunit *test)
{
	struct sock *sk = fake_sock(test, SOCK_STREAM);

	lock_sock(sk);
	sock_hold(sk);
	hps_connect_work(&hps_sk(sk)->connect_work.work);
	KUNIT_EXPECT_TRUE(test, hps_sk(sk)->later & HPS_LATER_CONNECT);
	hps_retry_cancel(sk);
	KUNIT_EXPECT_FALSE(test, hps_sk(sk)->later & HPS_LATER_CONNECT);
	release_sock(sk);
}

/* A backlog that was full for long is no reason to give up at the first other failure. */
static void hps_retry_again__mixed(struct kunit *test)
{
	struct sock *sk = fake_sock(test, SOCK_STREAM);
	int i;

	hps_retry_begin(sk, jiffies + 1000 * HZ);
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_TRUE(test, hps_retry_again(sk, HPS_TRIES_ANY));
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->connect_delay, 2 * HZ);
	for (i = 0; i < 5; i++)
		KUNIT_EXPECT_TRUE(test, hps_retry_again(sk, 6));
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->connect_delay,
			32 * msecs_to_jiffies(50));
	KUNIT_EXPECT_FALSE(test, hps_retry_again(sk, 6));
	hps_retry_begin(sk, jiffies + 1000 * HZ);
	KUNIT_EXPECT_TRUE(test, hps_retry_again(sk, 2));
	KUNIT_EXPECT_TRUE(test, hps_retry_again(sk, HPS_TRIES_ANY));
	KUNIT_EXPECT_TRUE(test, hps_retry_again(sk, 2));
	KUNIT_EXPECT_FALSE(test, hps_retry_again(sk, 2));
	KUNIT_EXPECT_FALSE(test, hps_retry_again(sk, 0));
	cancel(sk);
}

static struct kunit_case connect_cases[] = {
	KUNIT_CASE(hps_connect__established_already),
	KUNIT_CASE(hps_connect__established_nonblock),
	KUNIT_CASE(hps_connect__pending_nonblock),
	KUNIT_CASE(hps_connect_work__disabled),
	KUNIT_CASE(hps_connect_work__stale),
	KUNIT_CASE(hps_retry_cancel__later),
	KUNIT_CASE(hps_retry_again__mixed),
	{}
};

UNIT_SUITE(connect, connect_cases);
