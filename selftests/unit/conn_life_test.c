// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/conn_life.c"

#include "fake.h"

#include "conn_rx.h"
#include "conn_tx.h"
#include "proto.h"

/* A timer's time is over. */
static void expire(struct fake_conn *fake, struct timer_list *timer)
{
	/* Of the pending one the reference, otherwise another. */
	if (!timer_delete(timer))
		hps_conn_get(&fake->conn);
	local_bh_disable();
	timer->function(timer);
	local_bh_enable();
}

/* It was armed anew between its time and the lock. */
static void expire_late(struct fake_conn *fake, struct timer_list *timer)
{
	FAKE_LOCKED(fake, hps_conn_arm(&fake->conn, timer, HZ));
	hps_conn_get(&fake->conn);
	local_bh_disable();
	timer->function(timer);
	local_bh_enable();
}

static u64 counter(struct fake_conn *fake, enum hps_stat stat)
{
	return hps_stat_read(fake->conn.hn, stat);
}

static void hps_conn_idle_timer__resetting(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	u64 before = counter(fake, HPS_STAT_ORPHAN_TIMEOUT);

	fake->conn.orphan = true;
	fake->conn.resetting = true;
	fake->conn.err = ECONNRESET;
	expire(fake, &fake->conn.idle_timer);
	KUNIT_EXPECT_EQ(test, counter(fake, HPS_STAT_ORPHAN_TIMEOUT), before);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->conn.err, ECONNRESET);
}

/* One that has a socket goes on, without its spare buffers. */
static void hps_conn_idle_timer__no_orphan(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 1000, 1000);

	fake->credits = 1;
	FAKE_LOCKED(fake, hps_stream_push(conn);
		     hps_conn_tx_done(conn, buf, 1000);
		     KUNIT_EXPECT_FALSE(test, list_empty(&conn->tx_spare));
		     conn->progress = jiffies - HZ);
	expire(fake, &conn->idle_timer);
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_spare));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_EQ(test, fake->conn.err, 0);
}

static void hps_conn_idle_timer__once(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);
	u64 before = counter(fake, HPS_STAT_ORPHAN_TIMEOUT);

	fake->conn.orphan = true;
	expire(fake, &fake->conn.idle_timer);
	KUNIT_EXPECT_EQ(test, fake->conn.err, ETIMEDOUT);
	KUNIT_EXPECT_EQ(test, counter(fake, HPS_STAT_ORPHAN_TIMEOUT), before + 1);
	/* It has ended already. */
	expire(fake, &fake->conn.idle_timer);
	KUNIT_EXPECT_EQ(test, counter(fake, HPS_STAT_ORPHAN_TIMEOUT), before + 1);
}

static void hps_conn_opening_timer__ends(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);

	expire(fake, &fake->conn.opening_timer);
	KUNIT_EXPECT_EQ(test, fake->conn.err, ETIMEDOUT);
}

/* TCP_DEFER_ACCEPT has waited long enough: it is taken without data. */
static void hps_conn_opening_timer__deferred(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->conn.deferred = true;
	expire_late(fake, &fake->conn.opening_timer);
	KUNIT_EXPECT_TRUE(test, fake->conn.deferred);
	expire(fake, &fake->conn.opening_timer);
	KUNIT_EXPECT_FALSE(test, fake->conn.deferred);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

static void hps_conn_cork_timer__sends(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->credits = 9;
	fake->conn.tx_corked = 10;
	fake_tx(test, &fake->conn, 2000, 10);
	expire(fake, &fake->conn.cork_timer);
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

static void hps_conn_opening_timer__armed_anew(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);

	expire_late(fake, &fake->conn.opening_timer);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.opening_timer));
}

static void hps_conn_idle_timer__armed_anew(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);

	fake->conn.orphan = true;
	expire_late(fake, &fake->conn.idle_timer);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

static void hps_conn_cork_timer__armed_anew(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->credits = 9;
	fake->conn.tx_corked = 10;
	fake_tx(test, &fake->conn, 2000, 10);
	expire_late(fake, &fake->conn.cork_timer);
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
}

/* Established, and over already: it has nothing to say. */
static void hps_conn_opening_timer__too_late(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	expire(fake, &fake->conn.opening_timer);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* The last thing that happens lets the transport go, and not before. */
static void hps_conn_check_finished__in_order(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);

	fake->conn.fin_queued = true;
	fake->conn.fin_sent = true;
	FAKE_LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_fin(&fake->conn), 0));
	KUNIT_EXPECT_EQ(test, fake->conn.state, TCP_CLOSING);
	FAKE_LOCKED(fake, KUNIT_EXPECT_EQ(test, hps_conn_rx_finack(&fake->conn), 0));
	KUNIT_EXPECT_EQ(test, fake->conn.state, TCP_CLOSE);
	/* Our FINACK could not be sent. */
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake->credits = 1;
	fake->busy = true;
	FAKE_LOCKED(fake, hps_conn_tx_advanced(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake->busy = false;
	FAKE_LOCKED(fake, hps_conn_tx_advanced(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->conn.err, 0);
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
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.idle_timer));
	fake->credits = 1;
	FAKE_LOCKED(fake, hps_stream_push(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->nr, 1);
	FAKE_LOCKED(fake, hps_conn_tx_done(&fake->conn, buf, 10);
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

/* A request that was answered is established first. */
static void hps_conn_drop__answered(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_RECV);
	unsigned int max = hps_orphan_max;

	/* It has that time, however many orphans there are. */
	hps_orphan_max = 0;
	hps_conn_drop(&fake->conn);
	hps_orphan_max = max;
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.idle_timer));
	KUNIT_EXPECT_EQ(test, fake->nr, 0);
	FAKE_LOCKED(fake, hps_conn_established(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

/* What a connection begins with is had at any limit, and charged. */
static void hps_conn_attach__no_memory(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	u32 bytes = fake->conn.ops->rx_mem(&fake->conn);
	struct sock *sk;
	long limit[3];

	KUNIT_ASSERT_GT(test, bytes, 0);
	memcpy(limit, hps_prot.sysctl_mem, sizeof(limit));
	memset(hps_prot.sysctl_mem, -1, sizeof(limit));
	sk = fake_attach(test, fake);
	memcpy(hps_prot.sysctl_mem, limit, sizeof(limit));
	KUNIT_EXPECT_PTR_EQ(test, fake->conn.sk, sk);
	KUNIT_EXPECT_EQ(test, hps_sk(sk)->rx_charged, bytes);
	KUNIT_EXPECT_EQ(test, sk->sk_forward_alloc, -(int)bytes);
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
	KUNIT_EXPECT_TRUE(test, fake->conn.reported);
	sk->sk_err = 0;
}

static void hps_conn_orphan__too_many(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	unsigned int max = hps_orphan_max;
	u64 before = counter(fake, HPS_STAT_ORPHAN_OVERFLOW);

	hps_orphan_max = 0;
	FAKE_LOCKED(fake, hps_conn_orphan(&fake->conn));
	hps_orphan_max = max;
	KUNIT_EXPECT_EQ(test, fake->conn.err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, counter(fake, HPS_STAT_ORPHAN_OVERFLOW), before + 1);
	KUNIT_EXPECT_EQ(test, hps_orphan_read(fake->conn.hn), 0);
	fake_end(fake);
	KUNIT_EXPECT_EQ(test, hps_orphan_read(fake->conn.hn), 0);
}

/* Nobody will send any more. */
static void hps_conn_orphan__frees(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 1000, 1000);

	fake->credits = 1;
	FAKE_LOCKED(fake, hps_stream_push(conn);
		     hps_conn_tx_done(conn, buf, 1000));
	KUNIT_EXPECT_FALSE(test, list_empty(&conn->tx_spare));
	FAKE_LOCKED(fake, hps_conn_orphan(conn));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_spare));
	KUNIT_EXPECT_EQ(test, conn->err, 0);
	fake_end(fake);
}

static void hps_conn_established__initiator(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);
	struct sock *sk = fake_attach(test, fake);

	FAKE_LOCKED(fake, hps_conn_arm(&fake->conn, &fake->conn.opening_timer, HZ);
		     hps_conn_established(&fake->conn));
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_ESTABLISHED);
	KUNIT_EXPECT_FALSE(test, timer_pending(&fake->conn.opening_timer));
}

static void hps_conn_established__shut(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_SYN_SENT);

	fake->conn.shut = true;
	FAKE_LOCKED(fake, hps_conn_established(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->conn.state, TCP_SYN_SENT);
}

/* For who was not told yet. */
static int fake_why(struct hps_conn *conn)
{
	conn->told = false;
	return hps_conn_why(conn);
}

static void hps_conn_why__each(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;

	KUNIT_EXPECT_EQ(test, fake_why(conn), -ECONNRESET);
	conn->state = TCP_CLOSE_WAIT;
	KUNIT_EXPECT_EQ(test, fake_why(conn), -EPIPE);
	conn->err = ETIMEDOUT;
	KUNIT_EXPECT_EQ(test, fake_why(conn), -ETIMEDOUT);
	/* In good order. */
	conn->fin_rcvd = true;
	conn->fin_acked = true;
	KUNIT_EXPECT_EQ(test, fake_why(conn), -EPIPE);
	/* But for what the peer had only offered. */
	conn->rx_remote = 1;
	conn->err = 0;
	KUNIT_EXPECT_EQ(test, fake_why(conn), -ECONNRESET);
	conn->rx_remote = 0;
}

/* What cannot be read any more is told, though FIN has come: a reader would not see it. */
static void hps_conn_why__offered(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_CLOSE_WAIT);
	struct sock *sk = fake_attach(test, fake);
	struct hps_buf *remote = fake_rx(test, 1000, 1000);

	remote->remote = true;
	fake_receive(fake, remote, false, -1);
	fake->conn.fin_rcvd = true;
	KUNIT_EXPECT_EQ(test, hps_conn_why(&fake->conn), -ECONNRESET);
	fake_end(fake);
	KUNIT_EXPECT_TRUE(test, fake->conn.rx_lost);
	KUNIT_EXPECT_EQ(test, sk->sk_err, 0);
}

/* The teardown was done meanwhile: the caller takes sk_err, which says why. */
static void hps_conn_why__reported(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);

	hps_conn_get(&fake->conn);
	fake_end(fake);
	KUNIT_EXPECT_EQ(test, sk->sk_err, ECONNRESET);
	KUNIT_EXPECT_EQ(test, hps_conn_why(&fake->conn), -EPIPE);
	KUNIT_EXPECT_EQ(test, sk->sk_err, ECONNRESET);
	hps_conn_put(&fake->conn);
}

/* As TCP's: the next call is told that the connection is over, and nobody of the error. */
static void hps_conn_why__once(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);

	KUNIT_EXPECT_EQ(test, hps_conn_why(&fake->conn), -ECONNRESET);
	KUNIT_EXPECT_EQ(test, hps_conn_why(&fake->conn), -EPIPE);
	fake_end(fake);
	KUNIT_EXPECT_EQ(test, sk->sk_err, 0);
	KUNIT_EXPECT_EQ(test, sk->sk_state, TCP_CLOSE);
	KUNIT_EXPECT_EQ(test, sk->sk_shutdown, SHUTDOWN_MASK);
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

static int errors;

static void take_error(struct sock *sk)
{
	errors = 0;
	sock_error(sk);
}

static void note_error(struct sock *sk)
{
	errors++;
}

/* Who takes the error as soon as it can be seen does not hide it from others. */
static void hps_conn_report__taken(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);

	sk->sk_state_change = take_error;
	sk->sk_error_report = note_error;
	spin_lock_bh(&fake->conn.lock);
	fake->conn.err = ECONNRESET;
	hps_conn_report(&fake->conn);
	spin_unlock_bh(&fake->conn.lock);
	KUNIT_EXPECT_EQ(test, sk->sk_err, 0);
	KUNIT_EXPECT_EQ(test, errors, 1);
	fake_end(fake);
}

/* None of them holds a reference any longer. */
static void hps_conn_end__stops_timers(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	u32 refs = kref_read(&conn->ref);

	FAKE_LOCKED(fake, hps_conn_arm(conn, &conn->opening_timer, HZ);
		     hps_conn_arm(conn, &conn->cork_timer, HZ);
		     hps_conn_arm(conn, &conn->idle_timer, HZ));
	KUNIT_EXPECT_EQ(test, kref_read(&conn->ref), refs + 3);
	hps_conn_get(conn);
	fake_end(fake);
	KUNIT_EXPECT_FALSE(test, timer_pending(&conn->opening_timer));
	KUNIT_EXPECT_FALSE(test, timer_pending(&conn->cork_timer));
	KUNIT_EXPECT_FALSE(test, timer_pending(&conn->idle_timer));
	hps_conn_put(conn);
}

/* What came in can be read; what was only offered cannot, nor what is behind it. */
static void hps_conn_end__loses_offers(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_buf *remote = fake_rx(test, 1000, 1000);

	remote->remote = true;
	fake_receive(fake, fake_rx(test, 1000, 1000), false, -1);
	fake_receive(fake, remote, false, -1);
	fake_receive(fake, fake_rx(test, 1000, 1000), false, -1);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.rx_avail), 3000);
	fake_end(fake);
	KUNIT_EXPECT_TRUE(test, fake->conn.rx_lost);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.rx_avail), 1000);
}

static struct kunit_case conn_life_cases[] = {
	KUNIT_CASE(hps_conn_idle_timer__resetting),
	KUNIT_CASE(hps_conn_idle_timer__no_orphan),
	KUNIT_CASE(hps_conn_idle_timer__once),
	KUNIT_CASE(hps_conn_opening_timer__ends),
	KUNIT_CASE(hps_conn_opening_timer__deferred),
	KUNIT_CASE(hps_conn_cork_timer__sends),
	KUNIT_CASE(hps_conn_opening_timer__armed_anew),
	KUNIT_CASE(hps_conn_idle_timer__armed_anew),
	KUNIT_CASE(hps_conn_cork_timer__armed_anew),
	KUNIT_CASE(hps_conn_opening_timer__too_late),
	KUNIT_CASE(hps_conn_check_finished__in_order),
	KUNIT_CASE(hps_conn_drop__reset_waits),
	KUNIT_CASE(hps_conn_drop__at_once),
	KUNIT_CASE(hps_conn_drop__answered),
	KUNIT_CASE(hps_conn_attach__no_memory),
	KUNIT_CASE(hps_conn_attach__ended),
	KUNIT_CASE(hps_conn_orphan__too_many),
	KUNIT_CASE(hps_conn_orphan__frees),
	KUNIT_CASE(hps_conn_established__initiator),
	KUNIT_CASE(hps_conn_established__shut),
	KUNIT_CASE(hps_conn_why__each),
	KUNIT_CASE(hps_conn_why__once),
	KUNIT_CASE(hps_conn_why__offered),
	KUNIT_CASE(hps_conn_why__reported),
	KUNIT_CASE(hps_conn_end__reports),
	KUNIT_CASE(hps_conn_report__taken),
	KUNIT_CASE(hps_conn_end__stops_timers),
	KUNIT_CASE(hps_conn_end__loses_offers),
	{}
};

UNIT_SUITE(conn_life, conn_life_cases);
