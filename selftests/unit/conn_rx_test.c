// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/conn_rx.c"

#include "fake.h"

static u64 counter(struct fake_conn *fake, enum hps_stat stat)
{
	return hps_stat_read(fake->conn.hn, stat);
}

static void hps_conn_rx_fin__states(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);

	FAKE_LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_fin(&fake->conn), 0));
	KUNIT_EXPECT_EQ(test, fake->conn.state, TCP_CLOSE_WAIT);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE_WAIT);
	KUNIT_EXPECT_EQ(test, sk->sk_shutdown, RCV_SHUTDOWN);
	FAKE_LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_fin(&fake->conn), -EPROTO));
}

static void hps_conn_rx_finack__states(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);

	FAKE_LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_finack(&fake->conn), -EPROTO));
	fake->conn.fin_sent = true;
	fake->conn.orphan = true;
	FAKE_LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_finack(&fake->conn), 0));
	KUNIT_EXPECT_EQ(test, fake->conn.state, TCP_FIN_WAIT2);
	/* fin_timeout counts from now on. */
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.idle_timer));
	FAKE_LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_finack(&fake->conn), -EPROTO));
}

static void hps_conn_rx_data__queued(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	KUNIT_EXPECT_EQ(test, fake_receive(fake, fake_rx(test, 1000, 400), false, -1), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.rx_avail), 400);
	KUNIT_EXPECT_EQ(test, fake->conn.rx_msgs, 1);
	KUNIT_EXPECT_EQ(test, fake->conn.rx_bytes, 400);
	KUNIT_EXPECT_EQ(test, fake->consumed, 0);
}

/* Kept for the socket that accept() makes: who had it last. */
static void hps_conn_rx_data__not_accepted(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *listener = fake_sock(test, SOCK_STREAM);

	fake->conn.listener = listener;
	fake->conn.rx_cpu = nr_cpu_ids;
	KUNIT_EXPECT_EQ(test, fake_receive(fake, fake_rx(test, 1000, 400), false, -1), 0);
	KUNIT_EXPECT_LT(test, fake->conn.rx_cpu, nr_cpu_ids);
	fake->conn.listener = NULL;
}

/* Small ones always, others when the peer is about to run out; if there is room. */
static void hps_conn_join__when(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake_receive(fake, fake_rx(test, 2000, 400), false, -1);
	fake_receive(fake, fake_rx(test, 2000, 256), false, -1);
	KUNIT_EXPECT_EQ(test, fake->consumed, 1);
	fake_receive(fake, fake_rx(test, 2000, 257), false, -1);
	KUNIT_EXPECT_EQ(test, fake->consumed, 1);
	fake_receive(fake, fake_rx(test, 2000, 257), true, -1);
	KUNIT_EXPECT_EQ(test, fake->consumed, 2);
	fake_receive(fake, fake_rx(test, 2000, 2000 - 2 * 257 + 1), true, -1);
	KUNIT_EXPECT_EQ(test, fake->consumed, 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.rx_avail),
			400 + 256 + 257 + 257 + 2000 - 2 * 257 + 1);
}

static void hps_conn_rx_data__after_fin(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_CLOSE_WAIT);
	struct hps_buf *buf = fake_rx(test, 1000, 10);

	fake->conn.fin_rcvd = true;
	KUNIT_EXPECT_EQ(test, fake_receive(fake, buf, false, -1), -EPROTO);
	FAKE_LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_urgent(&fake->conn, 1), -EPROTO));
	hps_buf_free(buf);
}

/* Nobody will read it, and the peer learns of that. */
static void hps_conn_rx_data__orphan(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);
	u64 before = counter(fake, HPS_STAT_ABORT_ON_DATA);

	fake->conn.orphan = true;
	KUNIT_EXPECT_EQ(test, fake_receive(fake, fake_rx(test, 1000, 10), false, -1), 0);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->conn.err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, fake->consumed, 1);
	KUNIT_EXPECT_EQ(test, counter(fake, HPS_STAT_ABORT_ON_DATA), before + 1);
}

static void hps_conn_rx_data__shut_down(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT2);
	struct sock *sk = fake_attach(test, fake);

	sk->sk_shutdown = SHUTDOWN_MASK;
	KUNIT_EXPECT_EQ(test, fake_receive(fake, fake_rx(test, 1000, 10), false, -1), 0);
	KUNIT_EXPECT_EQ(test, sk->sk_err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, fake->consumed, 1);
}

static void hps_conn_rx_data__resetting(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->conn.resetting = true;
	KUNIT_EXPECT_EQ(test, fake_receive(fake, fake_rx(test, 1000, 10), false, -1), 0);
	KUNIT_EXPECT_EQ(test, fake->consumed, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.rx_avail), 0);
}

static void hps_conn_rx_data__urgent(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	KUNIT_EXPECT_EQ(test, fake_receive(fake, fake_rx(test, 1000, 10), false, 9), 0);
	KUNIT_EXPECT_EQ(test, fake->conn.rx_urgent, HPS_URGENT_HERE);
	KUNIT_EXPECT_EQ(test, fake->conn.rx_urgent_byte, 'x');
	KUNIT_EXPECT_EQ(test, fake->conn.rx_urgent_at, 9);
}

/* They are where they belong, and were read by that. */
static void hps_conn_rx_written__read(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;

	fake_attach(test, fake);
	conn->rx_last = jiffies - HZ;
	FAKE_LOCKED(fake, hps_conn_rx_written(conn, 1000));
	FAKE_LOCKED(fake, hps_conn_rx_written(conn, 10));
	KUNIT_EXPECT_EQ(test, conn->rx_msgs, 2);
	KUNIT_EXPECT_EQ(test, conn->rx_bytes, 1010);
	KUNIT_EXPECT_EQ(test, hps_conn_read_pos(conn), 1010);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->rx_avail), 0);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, conn->rx_last + HZ / 2));
	KUNIT_EXPECT_EQ(test, fake->consumed, 0);
	/* What comes next has its place behind them. */
	fake_receive(fake, fake_rx(test, 1000, 10), false, 9);
	KUNIT_EXPECT_EQ(test, conn->rx_urgent_at, 1019);
}

/* Beyond the urgent byte there is none; one that is still to come stays. */
static void hps_conn_rx_written__urgent(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;

	conn->rx_urgent = HPS_URGENT_AHEAD;
	conn->rx_urgent_at = 1000;
	FAKE_LOCKED(fake, hps_conn_rx_written(conn, 1000));
	KUNIT_EXPECT_EQ(test, conn->rx_urgent, HPS_URGENT_AHEAD);
	conn->rx_urgent = HPS_URGENT_READ;
	FAKE_LOCKED(fake, hps_conn_rx_written(conn, 1));
	KUNIT_EXPECT_EQ(test, conn->rx_urgent, HPS_URGENT_NONE);
}

static struct kunit_case conn_rx_cases[] = {
	KUNIT_CASE(hps_conn_rx_fin__states),
	KUNIT_CASE(hps_conn_rx_finack__states),
	KUNIT_CASE(hps_conn_rx_data__queued),
	KUNIT_CASE(hps_conn_rx_data__not_accepted),
	KUNIT_CASE(hps_conn_join__when),
	KUNIT_CASE(hps_conn_rx_data__after_fin),
	KUNIT_CASE(hps_conn_rx_data__orphan),
	KUNIT_CASE(hps_conn_rx_data__shut_down),
	KUNIT_CASE(hps_conn_rx_data__resetting),
	KUNIT_CASE(hps_conn_rx_data__urgent),
	KUNIT_CASE(hps_conn_rx_written__read),
	KUNIT_CASE(hps_conn_rx_written__urgent),
	{}
};

UNIT_SUITE(conn_rx, conn_rx_cases);
