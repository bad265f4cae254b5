// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/probe.c"

#include "fake.h"

/* With data that its peer has no room for. */
static struct fake_conn *unsent(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->conn.tx_unsent = 1;
	fake->conn.heard = jiffies;
	return fake;
}

/* The timer's time is over, for so many jiffies. */
static void expire_late(struct fake_conn *fake, unsigned long late)
{
	/* Of the pending one the reference, otherwise another. */
	if (!timer_delete(&fake->conn.probe))
		hps_conn_get(&fake->conn);
	fake->conn.probe.expires = jiffies - late;
	local_bh_disable();
	hps_probe_timer(&fake->conn.probe);
	local_bh_enable();
}

static void expire(struct fake_conn *fake)
{
	expire_late(fake, 0);
}

static u64 forgotten(struct fake_conn *fake)
{
	return hps_stat_read(fake->conn.hn, HPS_STAT_TX_FORGOTTEN);
}

/* How long it is given, in jiffies. */
static unsigned long limit(void)
{
	return max_t(unsigned long, HPS_PROBE_LOST,
		     hps_conn_retry_time(READ_ONCE(init_net.ipv4.sysctl_tcp_retries2)));
}

static void hps_probe_forgotten__ends(struct kunit *test)
{
	struct fake_conn *fake = unsent(test);
	u64 before = forgotten(fake);

	fake->busy = true;
	fake->conn.tx_moved = jiffies - limit() - HZ;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.probe));
	/* It gets some seconds. What the peer sends says nothing of what it was sent. */
	fake->conn.heard = jiffies;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake->conn.tx_moved -= HPS_PROBE_STALLED;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->conn.err, ETIMEDOUT);
	KUNIT_EXPECT_FALSE(test, timer_pending(&fake->conn.probe));
	KUNIT_EXPECT_EQ(test, forgotten(fake), before + 1);
}

static void hps_probe_forgotten__not_in_time(struct kunit *test)
{
	struct fake_conn *fake = unsent(test);
	int i;

	fake->busy = true;
	fake->conn.tx_moved = jiffies - limit() / 2;
	for (i = 0; i < 3; i++)
		expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* A peer that takes nothing is asked after, for ever. */
static void hps_probe_forgotten__nothing_under_way(struct kunit *test)
{
	struct fake_conn *fake = unsent(test);
	int i;

	fake->conn.tx_moved = jiffies - 2 * limit();
	fake->conn.heard = fake->conn.tx_moved;
	for (i = 0; i < 3; i++) {
		fake->busy = false;
		expire(fake);
	}
	KUNIT_EXPECT_EQ(test, fake->probes, 3);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* The clock has jumped: what completed meanwhile comes after the timer. */
static void hps_probe_forgotten__jump(struct kunit *test)
{
	struct fake_conn *fake = unsent(test);

	fake->busy = true;
	fake->conn.tx_moved = jiffies - 2 * limit();
	expire(fake);
	FAKE_LOCKED(fake, hps_probe_moved(&fake->conn));
	expire(fake);
	/* And again, much later. */
	fake->conn.tx_moved = jiffies - 2 * limit();
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

static void hps_probe_forgotten__a_minute(struct kunit *test)
{
	u8 retries = READ_ONCE(init_net.ipv4.sysctl_tcp_retries2);
	struct fake_conn *fake = unsent(test);
	int i;

	WRITE_ONCE(init_net.ipv4.sysctl_tcp_retries2, 1);
	fake->busy = true;
	fake->conn.tx_moved = jiffies - HPS_PROBE_LOST + 10 * HZ;
	for (i = 0; i < 2; i++)
		expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	for (i = 0; i < 2; i++) {
		fake->conn.tx_moved = jiffies - HPS_PROBE_LOST - HZ;
		expire(fake);
	}
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_retries2, retries);
}

/* Nothing but FIN, or a probe of SO_KEEPALIVE: the next look would be in two hours. */
static void hps_probe_forgotten__no_data(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	int i;

	fake->busy = true;
	fake->conn.heard = jiffies;
	for (i = 0; i < 2; i++) {
		fake->conn.tx_moved = jiffies - limit() - HZ;
		expire(fake);
	}
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->probes, 0);
}

static void hps_probe_under_way__looks(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct timer_list *probe = &fake->conn.probe;

	fake->conn.tx_late = true;
	FAKE_LOCKED(fake, hps_probe_under_way(&fake->conn));
	KUNIT_EXPECT_TRUE(test, timer_pending(probe));
	KUNIT_EXPECT_FALSE(test, fake->conn.tx_late);
	fake->busy = true;
	fake->conn.heard = jiffies;
	expire(fake);
	KUNIT_EXPECT_TRUE(test, timer_pending(probe));
	/* It has arrived. */
	fake->busy = false;
	expire(fake);
	KUNIT_EXPECT_FALSE(test, timer_pending(probe));
}

/* SO_KEEPALIVE looks later. */
static void hps_probe_under_way__sooner(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct timer_list *probe = &fake->conn.probe;

	FAKE_LOCKED(fake, hps_conn_arm(&fake->conn, probe, 7200 * HZ));
	FAKE_LOCKED(fake, hps_probe_under_way(&fake->conn));
	KUNIT_EXPECT_TRUE(test, time_before(probe->expires, jiffies + 2 * HPS_PROBE_STALLED));
}

/* So does what has sent a probe. */
static void hps_probe_act__looks(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);
	struct timer_list *probe = &fake->conn.probe;

	sock_set_flag(sk, SOCK_KEEPOPEN);
	fake->conn.watched = jiffies;
	fake->conn.heard = jiffies - hps_probe_idle(sk) - HZ;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->probes, 1);
	KUNIT_EXPECT_TRUE(test, timer_pending(probe));
	KUNIT_EXPECT_TRUE(test, time_before(probe->expires, jiffies + 2 * HPS_PROBE_STALLED));
}

/* Each of SO_KEEPALIVE's times, though it is shorter than that. */
static void hps_probe_act__in_time(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);
	struct timer_list *probe = &fake->conn.probe;
	int i;

	sock_set_flag(sk, SOCK_KEEPOPEN);
	hps_sk(sk)->keepidle = HZ;
	fake->conn.watched = jiffies - 60 * HZ;
	for (i = 1; i <= 3; i++) {
		fake->conn.heard = jiffies - HZ;
		expire(fake);
		KUNIT_EXPECT_EQ(test, fake->probes, i);
		KUNIT_EXPECT_TRUE(test, timer_pending(probe));
		KUNIT_EXPECT_TRUE(test, time_before(probe->expires, jiffies + 2 * HZ));
		/* It was answered. */
		fake->busy = false;
		fake->conn.heard = jiffies;
	}
	/* Nor is it late when the peer was heard of meanwhile. */
	fake->busy = true;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->probes, 3);
	KUNIT_EXPECT_TRUE(test, time_before(probe->expires, jiffies + 2 * HZ));
}

/* SO_KEEPALIVE of the least patience that there is. */
static struct fake_conn *kept(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);

	sock_set_flag(sk, SOCK_KEEPOPEN);
	hps_sk(sk)->keepidle = HZ;
	hps_sk(sk)->keepintvl = HZ;
	hps_sk(sk)->keepcnt = 2;
	fake->conn.watched = jiffies - 60 * HZ;
	fake->conn.heard = fake->conn.watched;
	fake->conn.tx_moved = fake->conn.watched;
	return fake;
}

/* It was time when the timer looked, but a sysctl has changed. */
static void hps_probe_act__not_yet(struct kunit *test)
{
	struct fake_conn *fake = kept(test);
	long wait;

	fake->conn.heard = jiffies;
	FAKE_LOCKED(fake, wait = hps_probe_act(&fake->conn));
	KUNIT_EXPECT_EQ(test, fake->probes, 0);
	KUNIT_EXPECT_GE(test, wait, 0);
	KUNIT_EXPECT_LE(test, wait, HZ);
}

/* Nor does what is under way wait for a timer that is of no hurry, though it is about to be due. */
static void hps_probe_under_way__due(struct kunit *test)
{
	static const long left[] = { -HZ, 0, HZ };
	int i;

	for (i = 0; i < ARRAY_SIZE(left); i++) {
		struct fake_conn *fake = kept(test);
		struct hps_conn *conn = &fake->conn;
		unsigned long before = jiffies;

		hps_sk(conn->sk)->keepidle = 7200 * HZ;
		conn->heard = before;
		FAKE_LOCKED(fake, hps_probe_arm(conn));
		KUNIT_EXPECT_TRUE(test, timer_pending(&conn->probe));
		conn->probe.expires = before + left[i];
		FAKE_LOCKED(fake, hps_probe_under_way(conn));
		KUNIT_EXPECT_TRUE(test, time_after_eq(conn->probe.expires,
						      before + HPS_PROBE_STALLED));
		/* From now on the timer is exact, and none is put off. */
		before = conn->probe.expires;
		FAKE_LOCKED(fake, hps_probe_under_way(conn));
		KUNIT_EXPECT_EQ(test, conn->probe.expires, before);
	}
}

/* The time for an answer begins when the probe is sent, however late that is. */
static void hps_probe_deadline__sent_late(struct kunit *test)
{
	struct fake_conn *fake = kept(test);

	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->probes, 1);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.probe));
	fake->conn.tx_moved -= 2 * HZ - HZ / 2;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake->conn.tx_moved -= HZ / 2;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
	KUNIT_EXPECT_EQ(test, fake->conn.err, ETIMEDOUT);
}

/* Nor is it over when both ends, or this one, stood still. */
static void hps_probe_timer__late(struct kunit *test)
{
	struct fake_conn *fake = kept(test);

	fake->busy = true;
	expire_late(fake, 59 * HZ);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.probe));
	/* But no time is given that did not go by yet. */
	expire_late(fake, 1000 * HZ);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake->conn.watched -= 3 * HZ;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

/* Only the time in which it stood still is given. */
static void hps_probe_timer__late_at_last(struct kunit *test)
{
	struct fake_conn *fake = kept(test);

	fake->busy = true;
	expire_late(fake, 50 * HZ);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

/* A timer that was armed for two hours is late by itself; the probe comes after that. */
static void hps_probe_timer__coarse(struct kunit *test)
{
	struct fake_conn *fake = kept(test);
	struct sock *sk = fake->conn.sk;

	hps_sk(sk)->keepidle = 7200 * HZ;
	fake->conn.probe_far = true;
	fake->conn.heard = jiffies - 8000 * HZ;
	fake->conn.tx_moved = fake->conn.heard;
	fake->conn.watched = fake->conn.heard;
	expire_late(fake, 800 * HZ);
	KUNIT_EXPECT_EQ(test, fake->probes, 1);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake->conn.tx_moved -= 3 * HZ;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

static void hps_probe_timer__late_with_data(struct kunit *test)
{
	struct fake_conn *fake = unsent(test);

	fake->conn.user_timeout = 3 * HZ;
	fake->conn.progress = jiffies - 60 * HZ;
	expire_late(fake, 59 * HZ);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	expire_late(fake, 1000 * HZ);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
	fake->conn.progress -= 3 * HZ;
	expire(fake);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

static void hps_probe_timer__late_at_last_with_data(struct kunit *test)
{
	struct fake_conn *fake = unsent(test);

	fake->conn.user_timeout = 3 * HZ;
	fake->conn.progress = jiffies - 60 * HZ;
	expire_late(fake, 50 * HZ);
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

/* When it was due, it had been the end; a second is given once, if it is late each time. */
static void hps_probe_timer__late_at_the_end(struct kunit *test)
{
	struct fake_conn *fake = kept(test);
	struct timer_list *probe = &fake->conn.probe;
	int i;

	fake->busy = true;
	for (i = 0; i < 2; i++) {
		expire_late(fake, 57 * HZ);
		KUNIT_EXPECT_EQ(test, fake->shut, 0);
		KUNIT_EXPECT_TRUE(test, timer_pending(probe));
		KUNIT_EXPECT_TRUE(test, time_before(probe->expires, jiffies + 2 * HZ));
		/* It was not late. */
		expire(fake);
		KUNIT_EXPECT_EQ(test, fake->shut, 0);
		fake->conn.watched = jiffies - 60 * HZ;
	}
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, fake->shut, 0);
		fake->conn.watched = jiffies - 60 * HZ;
		expire_late(fake, 57 * HZ);
	}
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

static void hps_probe_timer__late_at_the_end_with_data(struct kunit *test)
{
	struct fake_conn *fake = unsent(test);
	int i;

	fake->conn.user_timeout = 3 * HZ;
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, fake->shut, 0);
		fake->conn.progress = jiffies - 60 * HZ;
		expire_late(fake, 57 * HZ);
	}
	KUNIT_EXPECT_EQ(test, fake->shut, 1);
}

/* The time before, there was nobody to give a second to. */
static void hps_probe_timer__late_with_nothing_before(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake->conn.user_timeout = 3 * HZ;
	expire_late(fake, 57 * HZ);
	fake->conn.tx_unsent = 1;
	fake->conn.progress = jiffies - 60 * HZ;
	expire_late(fake, 57 * HZ);
	KUNIT_EXPECT_EQ(test, fake->shut, 0);
}

/* FINACK of who closed first. */
static void hps_probe_wait__closed(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_CLOSE);

	fake->busy = true;
	fake->conn.heard = jiffies;
	expire(fake);
	KUNIT_EXPECT_TRUE(test, timer_pending(&fake->conn.probe));
	fake->busy = false;
	expire(fake);
	KUNIT_EXPECT_FALSE(test, timer_pending(&fake->conn.probe));
}

static void hps_probe_under_way__ended(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	FAKE_LOCKED(fake, hps_conn_shut(&fake->conn, 0));
	FAKE_LOCKED(fake, hps_probe_under_way(&fake->conn));
	KUNIT_EXPECT_FALSE(test, timer_pending(&fake->conn.probe));
}

static struct kunit_case probe_cases[] = {
	KUNIT_CASE(hps_probe_forgotten__ends),
	KUNIT_CASE(hps_probe_forgotten__not_in_time),
	KUNIT_CASE(hps_probe_forgotten__nothing_under_way),
	KUNIT_CASE(hps_probe_forgotten__jump),
	KUNIT_CASE(hps_probe_forgotten__a_minute),
	KUNIT_CASE(hps_probe_forgotten__no_data),
	KUNIT_CASE(hps_probe_under_way__looks),
	KUNIT_CASE(hps_probe_under_way__sooner),
	KUNIT_CASE(hps_probe_under_way__ended),
	KUNIT_CASE(hps_probe_act__looks),
	KUNIT_CASE(hps_probe_act__in_time),
	KUNIT_CASE(hps_probe_act__not_yet),
	KUNIT_CASE(hps_probe_under_way__due),
	KUNIT_CASE(hps_probe_deadline__sent_late),
	KUNIT_CASE(hps_probe_timer__late),
	KUNIT_CASE(hps_probe_timer__late_at_last),
	KUNIT_CASE(hps_probe_timer__late_at_last_with_data),
	KUNIT_CASE(hps_probe_timer__coarse),
	KUNIT_CASE(hps_probe_timer__late_with_data),
	KUNIT_CASE(hps_probe_timer__late_at_the_end),
	KUNIT_CASE(hps_probe_timer__late_at_the_end_with_data),
	KUNIT_CASE(hps_probe_timer__late_with_nothing_before),
	KUNIT_CASE(hps_probe_wait__closed),
	{}
};

UNIT_SUITE(probe, probe_cases);
