// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/conn.c"

#include "fake.h"

/* A statement with the connection locked. */
#define LOCKED(fake, ...) do {						\
	spin_lock_bh(&(fake)->conn.lock);				\
	__VA_ARGS__;							\
	spin_unlock_bh(&(fake)->conn.lock);				\
} while (0)

static int rx(struct fake_conn *fake, struct hps_buf *buf, bool tight, int urgent)
{
	int err;

	LOCKED(fake, err = hps_conn_rx_data(&fake->conn, buf, tight, urgent));
	return err;
}

/* The timer's time is over. */
static void expire(struct fake_conn *fake)
{
	/* Of the pending one the reference, otherwise another. */
	if (!timer_delete(&fake->conn.timer))
		hps_conn_get(&fake->conn);
	local_bh_disable();
	hps_conn_timer(&fake->conn.timer);
	local_bh_enable();
}

static u64 counter(struct fake_conn *fake, enum hps_stat stat)
{
	return hps_stat_read(fake->conn.hn, stat);
}

static void hps_conn_timer__resetting(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->conn.resetting = true;
	fake->conn.err = ECONNRESET;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->conn.err, ECONNRESET);
}

static void hps_conn_timer__orphan(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);
	u64 before = counter(fake, HPS_STAT_ORPHAN_TIMEOUT);

	fake->conn.orphan = true;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->conn.err, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, counter(fake, HPS_STAT_ORPHAN_TIMEOUT), before + 1);
	/* It has ended already. */
	expire(fake);
	KUNIT_EXPECT_EQ(test, counter(fake, HPS_STAT_ORPHAN_TIMEOUT), before + 1);
}

static void hps_conn_timer__opening(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);

	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->conn.err, ETIMEDOUT);
}

static void hps_conn_timer__cork(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->credits = 9;
	fake->conn.corked = true;
	fake_tx(test, &fake->conn, 2000, 10);
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* Armed anew between its time and the lock. */
static void hps_conn_timer__armed_anew(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);

	LOCKED(fake, hps_conn_arm(&fake->conn, HZ));
	hps_conn_get(&fake->conn);
	local_bh_disable();
	hps_conn_timer(&fake->conn.timer);
	local_bh_enable();
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.timer));
}

static void hps_conn_open_time__as_tcp(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, hps_conn_open_time(0), 1 * HZ);
	KUNIT_EXPECT_EQ(test, hps_conn_open_time(1), 3 * HZ);
	KUNIT_EXPECT_EQ(test, hps_conn_open_time(6), 127 * HZ);
	/* From there on it waits for 120 s each time. */
	KUNIT_EXPECT_EQ(test, hps_conn_open_time(7), 247 * HZ);
}

static void hps_conn_limit_opening__only_then(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	hps_conn_limit_opening(&fake->conn, jiffies + HZ);
	KUNIT_EXPECT_FALSE(test, timer_pending(&fake->conn.timer));
	fake->conn.state = TCP_SYN_RECV;
	hps_conn_limit_opening(&fake->conn, jiffies + 1000 * HZ);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.timer));
}

/* The last thing that happens lets the transport go, and not before. */
static void hps_conn_check_finished__in_order(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);

	fake->conn.fin_queued = true;
	fake->conn.fin_sent = true;
	LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_fin(&fake->conn), 0));
	KUNIT_EXPECT_EQ(test, fake->conn.state, TCP_CLOSING);
	LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_finack(&fake->conn), 0));
	KUNIT_EXPECT_EQ(test, fake->conn.state, TCP_CLOSE);
	/* Our FINACK could not be sent. */
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake->credits = 1;
	fake->busy = true;
	LOCKED(fake, hps_conn_tx_advanced(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake->busy = false;
	LOCKED(fake, hps_conn_tx_advanced(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->conn.err, 0);
}

static void hps_conn_rx_fin__states(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);

	LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_fin(&fake->conn), 0));
	KUNIT_EXPECT_EQ(test, fake->conn.state, TCP_CLOSE_WAIT);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE_WAIT);
	KUNIT_EXPECT_EQ(test, sk->sk_shutdown, RCV_SHUTDOWN);
	LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_fin(&fake->conn), -EPROTO));
}

static void hps_conn_rx_finack__states(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);

	LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_finack(&fake->conn), -EPROTO));
	fake->conn.fin_sent = true;
	fake->conn.orphan = true;
	LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_finack(&fake->conn), 0));
	KUNIT_EXPECT_EQ(test, fake->conn.state, TCP_FIN_WAIT2);
	/* fin_timeout counts from now on. */
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.timer));
	LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_finack(&fake->conn), -EPROTO));
}

/* What was sent before goes first. */
static void hps_conn_drop__reset_waits(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_buf *buf = fake_tx(test, &fake->conn, 2000, 10);
	u64 before = counter(fake, HPS_STAT_RESET_SENT);

	hps_conn_drop(&fake->conn);
	KUNIT_EXPECT_TRUE(test, fake->conn.resetting);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.timer));
	fake->credits = 1;
	LOCKED(fake, hps_stream_push(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	LOCKED(fake, hps_conn_tx_done(&fake->conn, buf, 10);
		     hps_conn_tx_advanced(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, counter(fake, HPS_STAT_RESET_SENT), before + 1);
}

static void hps_conn_drop__at_once(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	hps_conn_drop(&fake->conn);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	/* Once is enough. */
	hps_conn_drop(&fake->conn);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

static void hps_conn_attach__no_memory(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_sock(test, SOCK_STREAM);
	long limit[3];

	memcpy(limit, hps_prot.sysctl_mem, sizeof(limit));
	memset(hps_prot.sysctl_mem, -1, sizeof(limit));
	lock_sock(sk);
	KUNIT_EXPECT_EQ(test, hps_conn_attach(&fake->conn, sk), -ENOBUFS);
	release_sock(sk);
	memcpy(hps_prot.sysctl_mem, limit, sizeof(limit));
	KUNIT_EXPECT_NULL(test, fake->conn.sk);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, 0);
}

/* accept() of one that has ended meanwhile. */
static void hps_conn_attach__ended(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk;

	fake_end(fake);
	sk = fake_attach(test, fake);
	KUNIT_EXPECT_NULL(test, fake->conn.sk);
	KUNIT_EXPECT_EQ(test, sk->sk_err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, sk->sk_shutdown, SHUTDOWN_MASK);
	sk->sk_err = 0;
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

static void hps_conn_orphan__too_many(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	unsigned int max = hps_orphan_max;
	u64 before = counter(fake, HPS_STAT_ORPHAN_OVERFLOW);

	hps_orphan_max = 0;
	hps_conn_orphan(&fake->conn);
	hps_orphan_max = max;
	KUNIT_EXPECT_EQ(test, fake->conn.err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, counter(fake, HPS_STAT_ORPHAN_OVERFLOW), before + 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.hn->orphans), 1);
	fake_end(fake);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.hn->orphans), 0);
}

static void hps_conn_established__initiator(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);
	struct sock *sk = fake_attach(test, fake);

	LOCKED(fake, hps_conn_arm(&fake->conn, HZ);
		     hps_conn_established(&fake->conn));
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_ESTABLISHED);
	KUNIT_EXPECT_FALSE(test, timer_pending(&fake->conn.timer));
}

static void hps_conn_established__shut(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);

	fake->conn.shut = true;
	LOCKED(fake, hps_conn_established(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->conn.state, TCP_SYN_SENT);
}

static void hps_conn_rx_data__queued(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	KUNIT_EXPECT_EQ(test, rx(fake, fake_rx(test, 1000, 400), false, -1), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.rx_avail), 400);
	KUNIT_EXPECT_EQ(test, fake->conn.rx_msgs, 1);
	KUNIT_EXPECT_EQ(test, fake->conn.rx_bytes, 400);
	KUNIT_EXPECT_EQ(test, fake->consumed, 0);
}

/* Small ones always, others when the peer is about to run out; if there is room. */
static void hps_conn_join__when(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	rx(fake, fake_rx(test, 2000, 400), false, -1);
	rx(fake, fake_rx(test, 2000, 256), false, -1);
	KUNIT_EXPECT_EQ(test, fake->consumed, 1);
	rx(fake, fake_rx(test, 2000, 257), false, -1);
	KUNIT_EXPECT_EQ(test, fake->consumed, 1);
	rx(fake, fake_rx(test, 2000, 257), true, -1);
	KUNIT_EXPECT_EQ(test, fake->consumed, 2);
	rx(fake, fake_rx(test, 2000, 2000 - 2 * 257 + 1), true, -1);
	KUNIT_EXPECT_EQ(test, fake->consumed, 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.rx_avail),
			400 + 256 + 257 + 257 + 2000 - 2 * 257 + 1);
}

static void hps_conn_rx_data__after_fin(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_CLOSE_WAIT);
	struct hps_buf *buf = fake_rx(test, 1000, 10);

	fake->conn.fin_rcvd = true;
	KUNIT_EXPECT_EQ(test, rx(fake, buf, false, -1), -EPROTO);
	LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_urgent(&fake->conn, 1), -EPROTO));
	hps_buf_free(buf);
}

/* Nobody will read it, and the peer learns of that. */
static void hps_conn_rx_data__orphan(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);
	u64 before = counter(fake, HPS_STAT_ABORT_ON_DATA);

	fake->conn.orphan = true;
	KUNIT_EXPECT_EQ(test, rx(fake, fake_rx(test, 1000, 10), false, -1), 0);
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
	KUNIT_EXPECT_EQ(test, rx(fake, fake_rx(test, 1000, 10), false, -1), 0);
	KUNIT_EXPECT_EQ(test, sk->sk_err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, fake->consumed, 1);
}

static void hps_conn_rx_data__resetting(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->conn.resetting = true;
	KUNIT_EXPECT_EQ(test, rx(fake, fake_rx(test, 1000, 10), false, -1), 0);
	KUNIT_EXPECT_EQ(test, fake->consumed, 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.rx_avail), 0);
}

static void hps_conn_rx_data__urgent(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	KUNIT_EXPECT_EQ(test, rx(fake, fake_rx(test, 1000, 10), false, 9), 0);
	KUNIT_EXPECT_EQ(test, fake->conn.rx_urgent, HPS_URGENT_HERE);
	KUNIT_EXPECT_EQ(test, fake->conn.rx_urgent_byte, 'x');
	KUNIT_EXPECT_EQ(test, fake->conn.rx_urgent_at, 9);
}

/* Delivered buffers are used again, those that got too small are not. */
static void hps_conn_tx_done__reuse(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *full = fake_tx(test, conn, 1000, 1000);
	struct hps_buf *room = fake_tx(test, conn, 3000, 10);

	fake->credits = 9;
	LOCKED(fake, hps_stream_push(conn);
		     hps_conn_tx_done(conn, full, 1000);
		     hps_conn_tx_done(conn, room, 10));
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&conn->tx_spare, struct hps_buf, list), full);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&conn->txq, struct hps_buf, list), room);
	KUNIT_EXPECT_EQ(test, full->end, 0);
	KUNIT_EXPECT_EQ(test, room->end, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_bytes), 1010);
	LOCKED(fake, hps_conn_set_msg_max(conn, 2000));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_spare));
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_mem), 1000);
	/* Nor is one that was under way. */
	full = fake_tx(test, conn, 1000, 1000);
	LOCKED(fake, hps_stream_push(conn);
		     hps_conn_tx_done(conn, full, 1000));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_spare));
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_mem), 2000);
}

static void hps_conn_tx_done__in_parts(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_buf *buf = fake_tx(test, &fake->conn, 1500, 1500);

	fake->credits = 9;
	LOCKED(fake, hps_stream_push(&fake->conn);
		     hps_conn_tx_done(&fake->conn, buf, 1000));
	KUNIT_EXPECT_EQ(test, buf->done, 1000);
	KUNIT_EXPECT_EQ(test, fake->conn.tx_unacked, 500);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->conn.tx_spare));
	LOCKED(fake, hps_conn_tx_done(&fake->conn, buf, 500));
	KUNIT_EXPECT_FALSE(test, list_empty(&fake->conn.tx_spare));
}

static void hps_conn_tx_cut__rest(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_buf *buf = fake_tx(test, &fake->conn, 1500, 1500);

	fake->credits = 1;
	LOCKED(fake, hps_stream_push(&fake->conn);
		     hps_conn_tx_cut(&fake->conn, buf));
	KUNIT_EXPECT_EQ(test, buf->end, 1000);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.done_bytes), 500);
	buf = fake_tx(test, &fake->conn, 1500, 1500);
	LOCKED(fake, hps_conn_tx_cut(&fake->conn, buf));
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.done_mem), 1500);
}

/* With nothing under way there is no use for large ones. */
static void hps_conn_tx_advanced__frees(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *large = fake_tx(test, conn, 2 * PAGE_SIZE, 1000);
	struct hps_buf *full = fake_tx(test, conn, 1000, 1000);

	fake->credits = 9;
	conn->confirmed = false;
	LOCKED(fake, hps_stream_push(conn);
		     hps_conn_tx_done(conn, large, 1000);
		     hps_conn_tx_advanced(conn));
	KUNIT_EXPECT_TRUE(test, conn->confirmed);
	KUNIT_EXPECT_FALSE(test, list_empty(&conn->txq));
	LOCKED(fake, hps_conn_tx_done(conn, full, 1000);
		     hps_conn_tx_advanced(conn));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->txq));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_spare));
}

static void hps_conn_why__each(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;

	KUNIT_EXPECT_EQ(test, hps_conn_why(conn), -ECONNRESET);
	conn->state = TCP_CLOSE_WAIT;
	KUNIT_EXPECT_EQ(test, hps_conn_why(conn), -EPIPE);
	conn->err = ETIMEDOUT;
	KUNIT_EXPECT_EQ(test, hps_conn_why(conn), -ETIMEDOUT);
	/* In good order. */
	conn->fin_rcvd = true;
	conn->fin_acked = true;
	KUNIT_EXPECT_EQ(test, hps_conn_why(conn), -EPIPE);
	/* But for what the peer had only offered. */
	conn->rx_lost = true;
	conn->err = 0;
	KUNIT_EXPECT_EQ(test, hps_conn_why(conn), -ECONNRESET);
}

static void hps_conn_mtu__none(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	KUNIT_EXPECT_EQ(test, hps_conn_mtu(&fake->conn), 0);
	fake->conn.dif = init_net.loopback_dev->ifindex;
	KUNIT_EXPECT_EQ(test, hps_conn_mtu(&fake->conn), init_net.loopback_dev->mtu);
}

static void hps_conn_end__reports(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);

	fake_end(fake);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, sk->sk_err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, sk->sk_shutdown, SHUTDOWN_MASK);
	KUNIT_EXPECT_FALSE(test, fake->freed);
}

/* What came in can be read; what was only offered cannot, nor what is behind it. */
static void hps_conn_end__loses_offers(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_buf *remote = fake_rx(test, 1000, 1000);

	remote->remote = true;
	rx(fake, fake_rx(test, 1000, 1000), false, -1);
	rx(fake, remote, false, -1);
	rx(fake, fake_rx(test, 1000, 1000), false, -1);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.rx_avail), 3000);
	fake_end(fake);
	KUNIT_EXPECT_TRUE(test, fake->conn.rx_lost);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.rx_avail), 1000);
}

static struct kunit_case conn_cases[] = {
	KUNIT_CASE(hps_conn_timer__resetting),
	KUNIT_CASE(hps_conn_timer__orphan),
	KUNIT_CASE(hps_conn_timer__opening),
	KUNIT_CASE(hps_conn_timer__cork),
	KUNIT_CASE(hps_conn_timer__armed_anew),
	KUNIT_CASE(hps_conn_open_time__as_tcp),
	KUNIT_CASE(hps_conn_limit_opening__only_then),
	KUNIT_CASE(hps_conn_check_finished__in_order),
	KUNIT_CASE(hps_conn_rx_fin__states),
	KUNIT_CASE(hps_conn_rx_finack__states),
	KUNIT_CASE(hps_conn_drop__reset_waits),
	KUNIT_CASE(hps_conn_drop__at_once),
	KUNIT_CASE(hps_conn_attach__no_memory),
	KUNIT_CASE(hps_conn_attach__ended),
	KUNIT_CASE(hps_conn_sock__reference),
	KUNIT_CASE(hps_conn_orphan__too_many),
	KUNIT_CASE(hps_conn_established__initiator),
	KUNIT_CASE(hps_conn_established__shut),
	KUNIT_CASE(hps_conn_rx_data__queued),
	KUNIT_CASE(hps_conn_join__when),
	KUNIT_CASE(hps_conn_rx_data__after_fin),
	KUNIT_CASE(hps_conn_rx_data__orphan),
	KUNIT_CASE(hps_conn_rx_data__shut_down),
	KUNIT_CASE(hps_conn_rx_data__resetting),
	KUNIT_CASE(hps_conn_rx_data__urgent),
	KUNIT_CASE(hps_conn_tx_done__reuse),
	KUNIT_CASE(hps_conn_tx_done__in_parts),
	KUNIT_CASE(hps_conn_tx_cut__rest),
	KUNIT_CASE(hps_conn_tx_advanced__frees),
	KUNIT_CASE(hps_conn_why__each),
	KUNIT_CASE(hps_conn_mtu__none),
	KUNIT_CASE(hps_conn_end__reports),
	KUNIT_CASE(hps_conn_end__loses_offers),
	{}
};

UNIT_SUITE(conn, conn_cases);
