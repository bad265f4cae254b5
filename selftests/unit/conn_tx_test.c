// SPDX-License-Identifier: GPL-2.0
#include "unit.h"

#include "af_hpsock/conn_tx.c"

#include "fake.h"

/* Delivered buffers are used again, those that got too small are not. */
static void hps_conn_tx_done__reuse(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *full = fake_tx(test, conn, 1000, 1000);
	struct hps_buf *room = fake_tx(test, conn, 3000, 10);

	fake->credits = 9;
	FAKE_LOCKED(fake, hps_stream_push(conn);
		     hps_conn_tx_done(conn, full, 1000);
		     hps_conn_tx_done(conn, room, 10));
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&conn->tx_spare, struct hps_buf, list), full);
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&conn->txq, struct hps_buf, list), room);
	KUNIT_EXPECT_EQ(test, full->end, 0);
	KUNIT_EXPECT_EQ(test, room->end, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_bytes), 1010);
	FAKE_LOCKED(fake, hps_conn_tx_resize(conn, 2000));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_spare));
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_mem), 1000);
	/* Nor is one that was under way. */
	full = fake_tx(test, conn, 1000, 1000);
	FAKE_LOCKED(fake, hps_stream_push(conn);
		     hps_conn_tx_done(conn, full, 1000));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_spare));
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_mem), 2000);
}

static void hps_conn_tx_done__in_parts(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_buf *buf = fake_tx(test, &fake->conn, 1500, 1500);

	fake->credits = 9;
	FAKE_LOCKED(fake, hps_stream_push(&fake->conn);
		     hps_conn_tx_done(&fake->conn, buf, 1000));
	KUNIT_EXPECT_EQ(test, buf->done, 1000);
	KUNIT_EXPECT_EQ(test, fake->conn.tx_unacked, 500);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->conn.tx_spare));
	FAKE_LOCKED(fake, hps_conn_tx_done(&fake->conn, buf, 500));
	KUNIT_EXPECT_FALSE(test, list_empty(&fake->conn.tx_spare));
}

static void hps_conn_tx_cut__rest(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_buf *buf = fake_tx(test, &fake->conn, 1500, 1500);

	fake->credits = 1;
	FAKE_LOCKED(fake, hps_stream_push(&fake->conn);
		     hps_conn_tx_cut(&fake->conn, buf));
	KUNIT_EXPECT_EQ(test, buf->end, 1000);
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.done_bytes), 500);
	buf = fake_tx(test, &fake->conn, 1500, 1500);
	FAKE_LOCKED(fake, hps_conn_tx_cut(&fake->conn, buf));
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.done_mem), 1500);
}

/* As when its time has come */
static void spare_time(struct fake_conn *fake)
{
	fake->conn.progress = jiffies - HPS_SPARE_KEEP;
	FAKE_LOCKED(fake, hps_conn_tx_idle(&fake->conn));
}

/* With nothing under way for a while there is no use for large ones. */
static void hps_conn_tx_advanced__frees(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *large = fake_tx(test, conn, 2 * PAGE_SIZE, 1000);
	struct hps_buf *full = fake_tx(test, conn, 1000, 1000);

	fake->credits = 9;
	conn->confirmed = false;
	FAKE_LOCKED(fake, hps_stream_push(conn);
		     hps_conn_tx_done(conn, large, 1000);
		     hps_conn_tx_advanced(conn));
	KUNIT_EXPECT_TRUE(test, conn->confirmed);
	KUNIT_EXPECT_FALSE(test, list_empty(&conn->txq));
	KUNIT_EXPECT_FALSE(test, timer_pending(&conn->idle_timer));
	/* Not all has arrived. */
	spare_time(fake);
	KUNIT_EXPECT_FALSE(test, list_empty(&conn->txq));
	KUNIT_EXPECT_FALSE(test, timer_pending(&conn->idle_timer));
	/* The timer shall not have come before it is looked at. */
	FAKE_LOCKED(fake, hps_conn_tx_done(conn, full, 1000);
		     hps_conn_tx_advanced(conn);
		     KUNIT_EXPECT_FALSE(test, list_empty(&conn->txq));
		     KUNIT_EXPECT_FALSE(test, list_empty(&conn->tx_spare));
		     KUNIT_EXPECT_TRUE(test, timer_pending(&conn->idle_timer)));
	spare_time(fake);
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->txq));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_spare));
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_mem), 2 * PAGE_SIZE + 1000);
}

/* @len bytes went, and have arrived. */
static void went(struct fake_conn *fake, u32 size, u32 len)
{
	struct hps_buf *buf = fake_tx(fake->test, &fake->conn, size, len);

	fake->credits = 9;
	FAKE_LOCKED(fake, hps_stream_push(&fake->conn);
		     hps_conn_tx_done(&fake->conn, buf, len);
		     hps_conn_tx_advanced(&fake->conn));
}

static void hps_conn_tx_idle__used_since(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;

	went(fake, 1000, 1000);
	FAKE_LOCKED(fake, hps_conn_disarm(conn, &conn->idle_timer);
		     conn->progress = jiffies + HZ;
		     hps_conn_tx_idle(conn);
		     KUNIT_EXPECT_FALSE(test, list_empty(&conn->tx_spare));
		     KUNIT_EXPECT_TRUE(test, timer_pending(&conn->idle_timer)));
}

/* What is freed is not charged any more. */
static void hps_conn_tx_idle__reaps(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	fake_attach(test, fake);
	went(fake, 1000, 1000);
	spare_time(fake);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->conn.tx_spare));
	KUNIT_EXPECT_EQ(test, atomic_read(&fake->conn.done_mem), 0);
}

/* One that it waits for stays as it is. */
static void hps_conn_quiet__armed(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	unsigned long expires = jiffies + 100 * HZ;

	FAKE_LOCKED(fake, hps_conn_arm(conn, &conn->idle_timer, 100 * HZ));
	went(fake, 1000, 1000);
	KUNIT_EXPECT_TRUE(test, time_after_eq(conn->idle_timer.expires, expires));
}

static void hps_conn_quiet__pressure(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct sock *sk = fake_attach(test, fake);
	unsigned long pressure = *sk->sk_prot->memory_pressure;

	WRITE_ONCE(*sk->sk_prot->memory_pressure, 1);
	went(fake, 1000, 1000);
	WRITE_ONCE(*sk->sk_prot->memory_pressure, pressure);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->conn.tx_spare));
}

/* A page is kept: the next small write has a use for it. */
static void hps_conn_quiet__small(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);

	went(fake, PAGE_SIZE, 10);
	KUNIT_EXPECT_FALSE(test, list_empty(&fake->conn.txq));
	KUNIT_EXPECT_FALSE(test, timer_pending(&fake->conn.idle_timer));
}

/* Nobody will send any more. */
static void hps_conn_quiet__orphan(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);

	fake->conn.orphan = true;
	went(fake, 1000, 1000);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake->conn.tx_spare));
}

static void hps_conn_tx_orphan__spares(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT2);

	went(fake, 1000, 1000);
	fake->conn.orphan = true;
	FAKE_LOCKED(fake, hps_conn_tx_orphan(&fake->conn);
		     KUNIT_EXPECT_TRUE(test, list_empty(&fake->conn.tx_spare)));
}

/* What is under way with room behind it is not spare. */
static void hps_conn_tx_orphan__under_way(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_FIN_WAIT1);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 2 * PAGE_SIZE, 1000);

	fake->credits = 1;
	conn->orphan = true;
	FAKE_LOCKED(fake, hps_stream_push(conn);
		     hps_conn_tx_orphan(conn));
	KUNIT_ASSERT_FALSE(test, list_empty(&conn->txq));
	FAKE_LOCKED(fake, hps_conn_tx_done(conn, buf, 1000);
		     hps_conn_tx_advanced(conn));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->txq));
}

/* Sent in part, not at all, spare: all is freed, but not under a writer's hands. */
static void hps_conn_tx_end__all(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *part, *busy;

	went(fake, 1000, 1000);
	KUNIT_EXPECT_FALSE(test, list_empty(&conn->tx_spare));
	part = fake_tx(test, conn, 2000, 2000);
	fake_tx(test, conn, 3000, 30);
	busy = fake_tx(test, conn, 500, 5);
	fake->credits = 2;
	atomic_set(&conn->done_bytes, 0);
	atomic_set(&conn->done_mem, 0);
	FAKE_LOCKED(fake, hps_stream_push(conn);
		     hps_conn_tx_done(conn, part, 1000);
		     busy->busy = true;
		     hps_conn_tx_end(conn));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_spare));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->tx_flight));
	KUNIT_EXPECT_TRUE(test, list_is_singular(&conn->txq));
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&conn->txq, struct hps_buf, list), busy);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_bytes), 2030);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_mem), 1000 + 2000 + 3000);
}

/* A writer that was busy with one when the others were freed lets go of it. */
static void hps_conn_tx_release__ended(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 500, 5);

	buf->busy = true;
	fake_end(fake);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_bytes), 0);
	FAKE_LOCKED(fake, buf->end += 7;
		     hps_conn_tx_release(conn, buf));
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->txq));
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_bytes), 12);
	KUNIT_EXPECT_EQ(test, atomic_read(&conn->done_mem), 500);
}

/* It wrote nothing, and there is no completion to come that would free a large one. */
static void hps_conn_tx_release__unused(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 2 * PAGE_SIZE, 0);

	buf->busy = true;
	FAKE_LOCKED(fake, hps_conn_tx_release(conn, buf);
		     KUNIT_EXPECT_TRUE(test, timer_pending(&conn->idle_timer)));
	KUNIT_EXPECT_FALSE(test, buf->busy);
	spare_time(fake);
	KUNIT_EXPECT_TRUE(test, list_empty(&conn->txq));
}

static void hps_conn_tx_release__written(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *buf = fake_tx(test, conn, 2 * PAGE_SIZE, 10);

	buf->busy = true;
	FAKE_LOCKED(fake, hps_conn_tx_release(conn, buf);
		     KUNIT_EXPECT_FALSE(test, timer_pending(&conn->idle_timer)));
	KUNIT_EXPECT_FALSE(test, buf->busy);
}

/* What others own passes one that is empty, and closes one that is not. */
static void hps_conn_tx_append__order(struct kunit *test)
{
	struct fake_conn *fake = fake_conn(test, TCP_ESTABLISHED);
	struct hps_conn *conn = &fake->conn;
	struct hps_buf *empty = fake_tx(test, conn, PAGE_SIZE, 0);
	struct hps_buf *first = hps_buf_local(100), *second = hps_buf_local(100);

	KUNIT_ASSERT_NOT_NULL(test, first);
	KUNIT_ASSERT_NOT_NULL(test, second);
	FAKE_LOCKED(fake, hps_conn_tx_append(conn, first));
	KUNIT_EXPECT_PTR_EQ(test, list_first_entry(&conn->txq, struct hps_buf, list), first);
	KUNIT_EXPECT_PTR_EQ(test, list_last_entry(&conn->txq, struct hps_buf, list), empty);
	KUNIT_EXPECT_FALSE(test, empty->full);
	FAKE_LOCKED(fake, empty->end = 10;
		     hps_conn_tx_append(conn, second));
	KUNIT_EXPECT_PTR_EQ(test, list_last_entry(&conn->txq, struct hps_buf, list), second);
	KUNIT_EXPECT_TRUE(test, empty->full);
	empty->end = 0;
}

static struct kunit_case conn_tx_cases[] = {
	KUNIT_CASE(hps_conn_tx_done__reuse),
	KUNIT_CASE(hps_conn_tx_done__in_parts),
	KUNIT_CASE(hps_conn_tx_cut__rest),
	KUNIT_CASE(hps_conn_tx_advanced__frees),
	KUNIT_CASE(hps_conn_tx_idle__used_since),
	KUNIT_CASE(hps_conn_tx_idle__reaps),
	KUNIT_CASE(hps_conn_quiet__small),
	KUNIT_CASE(hps_conn_quiet__armed),
	KUNIT_CASE(hps_conn_quiet__pressure),
	KUNIT_CASE(hps_conn_quiet__orphan),
	KUNIT_CASE(hps_conn_tx_orphan__spares),
	KUNIT_CASE(hps_conn_tx_orphan__under_way),
	KUNIT_CASE(hps_conn_tx_end__all),
	KUNIT_CASE(hps_conn_tx_release__ended),
	KUNIT_CASE(hps_conn_tx_release__unused),
	KUNIT_CASE(hps_conn_tx_release__written),
	KUNIT_CASE(hps_conn_tx_append__order),
	{}
};

UNIT_SUITE(conn_tx, conn_tx_cases);
