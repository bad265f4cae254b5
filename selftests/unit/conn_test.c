// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/conn.c"

#include "fake.h"

static void hps_conn_retry_time__as_tcp(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, hps_conn_retry_time(0), 1 * HZ);
	KUNIT_EXPECT_EQ(test, hps_conn_retry_time(1), 3 * HZ);
	KUNIT_EXPECT_EQ(test, hps_conn_retry_time(6), 127 * HZ);
	/* From there on it waits for 120 s each time. */
	KUNIT_EXPECT_EQ(test, hps_conn_retry_time(7), 247 * HZ);
}

static void hps_conn_limit_opening__only_then(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	hps_conn_limit_opening(&fake->conn, jiffies + HZ);
	KUNIT_EXPECT_FALSE(test, timer_pending(&fake->conn.opening_timer));
	fake->conn.state = TCP_SYN_RECV;
	hps_conn_limit_opening(&fake->conn, jiffies + 1000 * HZ);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.opening_timer));
}

static void hps_conn_sock__reference(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk;

	KUNIT_EXPECT_NULL(test, hps_conn_sock(&fake->conn));
	sk = fake_attach(test, fake);
	KUNIT_EXPECT_PTR_EQ(test, hps_conn_sock(&fake->conn), sk);
	sock_put(sk);
}

static void hps_conn_mtu__none(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	KUNIT_EXPECT_EQ(test, hps_conn_mtu(&fake->conn), 0);
	fake->conn.dif = init_net.loopback_dev->ifindex;
	KUNIT_EXPECT_EQ(test, hps_conn_mtu(&fake->conn), init_net.loopback_dev->mtu);
}

static struct kunit_case conn_cases[] = {
	KUNIT_CASE(hps_conn_retry_time__as_tcp),
	KUNIT_CASE(hps_conn_limit_opening__only_then),
	KUNIT_CASE(hps_conn_sock__reference),
	KUNIT_CASE(hps_conn_mtu__none),
	{}
};

UNIT_SUITE(conn, conn_cases);
