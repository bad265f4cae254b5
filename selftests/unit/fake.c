// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets are real ones, made as a program's are. Connections are real ones over a
 * transport that takes as many messages as the test has given it credits for.
 */
#include <net/sock.h>
#include <net/tcp_states.h>

#include "fake.h"
#include "unit.h"

#include "conn_life.h"
#include "conn_rx.h"
#include "net.h"
#include "param.h"
#include "port.h"
#include "probe.h"
#include "proto.h"
#include "sock.h"
#include "stream.h"

static void fake_sock_release(void *data)
{
	struct socket *sock = data;

	hps_port_unlisten(sock->sk);
	/* A test may have said that it listens, or has a peer. */
	if (!hps_sk(sock->sk)->queue.open && !rcu_access_pointer(hps_sk(sock->sk)->conn))
		hps_sock_set_state(sock->sk, TCP_CLOSE);
	sock_release(sock);
}

/**
 * fake_sock - a socket in TCP_CLOSE, until the end of the test
 * @test: which it is for
 * @type: SOCK_STREAM or SOCK_SEQPACKET
 */
struct sock *fake_sock(struct kunit *test, int type)
{
	struct socket *sock;

	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, hps_family, type, 0, &sock), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, fake_sock_release, sock), 0);
	return sock->sk;
}

/**
 * fake_no_memory - for hps_sock.sk_prot: all sockets together have reached the limit
 * @test: which it is for
 *
 * Nothing says that there is pressure, as where only a cgroup has reached its own.
 */
struct proto *fake_no_memory(struct kunit *test)
{
	struct proto *prot = kunit_kzalloc(test, sizeof(*prot), GFP_KERNEL);
	static long mem[] = { LONG_MIN, LONG_MIN, LONG_MIN };

	KUNIT_ASSERT_NOT_NULL(test, prot);
	*prot = hps_prot;
	prot->sysctl_mem = mem;
	prot->enter_memory_pressure = NULL;
	return prot;
}

static struct fake_conn *fake_of(struct hps_conn *conn)
{
	return container_of(conn, struct fake_conn, conn);
}

/* Returns 0, -EAGAIN without credit, or -EIO where the test wants it to fail. */
static int fake_take(struct hps_conn *conn, enum fake_sent what, u32 len, int urgent)
{
	struct fake_conn *fake = fake_of(conn);

	if (mock_fails(MOCK_POST_SEND))
		return -EIO;
	if (!fake->credits || fake->nr == ARRAY_SIZE(fake->sent))
		return -EAGAIN;
	fake->credits--;
	fake->sent[fake->nr].what = what;
	fake->sent[fake->nr].len = len;
	fake->sent[fake->nr].urgent = urgent;
	fake->nr++;
	return 0;
}

static struct hps_buf *fake_tx_buf(struct hps_conn *conn, u32 size)
{
	struct hps_buf *buf = hps_buf_local(size);

	if (!buf)
		return NULL;
	buf->busy = true;
	FAKE_LOCKED(fake_of(conn), list_add_tail(&buf->list, &conn->txq));
	return buf;
}

static int fake_send(struct hps_conn *conn, struct hps_buf *buf, u32 len, int urgent)
{
	return fake_take(conn, FAKE_DATA, len, urgent);
}

static int fake_offer(struct hps_conn *conn, struct hps_buf *buf)
{
	return fake_take(conn, FAKE_OFFER, buf->end - buf->start, -1);
}

static int fake_urgent(struct hps_conn *conn, u32 ahead)
{
	struct fake_conn *fake = fake_of(conn);

	/* It costs no credit. */
	fake->credits++;
	return fake_take(conn, FAKE_URGENT, 0, ahead);
}

static int fake_fin(struct hps_conn *conn)
{
	return fake_take(conn, FAKE_FIN, 0, -1);
}

static int fake_finack(struct hps_conn *conn)
{
	return fake_take(conn, FAKE_FINACK, 0, -1);
}

static bool fake_busy(struct hps_conn *conn)
{
	return fake_of(conn)->many;
}

static bool fake_idle(struct hps_conn *conn)
{
	return !fake_of(conn)->busy;
}

static void fake_ask(struct hps_conn *conn)
{
	fake_of(conn)->asked++;
}

static bool fake_probe(struct hps_conn *conn)
{
	fake_of(conn)->probes++;
	fake_of(conn)->busy = true;
	hps_probe_under_way(conn);
	return true;
}

static void fake_consumed(struct hps_conn *conn, struct hps_buf *buf)
{
	fake_of(conn)->consumed++;
	hps_buf_free(buf);
}

static u32 fake_rx_mem(struct hps_conn *conn)
{
	return PAGE_SIZE;
}

static bool fake_rx_full(struct hps_conn *conn)
{
	return fake_of(conn)->full;
}

static void fake_grow_later(struct hps_conn *conn)
{
}

static void fake_shut(struct hps_conn *conn)
{
	fake_of(conn)->shut++;
}

static void fake_free(struct hps_conn *conn)
{
	fake_of(conn)->freed = true;
}

static const struct hps_transport fake_transport = {
	.tx_buf		= fake_tx_buf,
	.tx_busy	= fake_busy,
	.send		= fake_send,
	.offer		= fake_offer,
	.urgent		= fake_urgent,
	.send_fin	= fake_fin,
	.send_finack	= fake_finack,
	.tx_idle	= fake_idle,
	.ask		= fake_ask,
	.probe		= fake_probe,
	.consumed	= fake_consumed,
	.rx_full	= fake_rx_full,
	.grow_later	= fake_grow_later,
	.rx_mem		= fake_rx_mem,
	.shut		= fake_shut,
	.free		= fake_free,
};

/**
 * fake_end - the transport is gone
 * @fake: the connection, where this was not called yet
 */
void fake_end(struct fake_conn *fake)
{
	hps_conn_end(&fake->conn);
	hps_conn_put(&fake->conn);
}

static void fake_conn_release(void *data)
{
	struct fake_conn *fake = data;

	if (!fake->conn.ended)
		fake_end(fake);
	if (!fake->attached)
		hps_conn_put(&fake->conn);
	KUNIT_EXPECT_TRUE_MSG(fake->test, fake->freed, "a reference is left");
}

/**
 * fake_conn - a connection without a socket, until the end of the test
 * @test: which it is for, and what then fails if a reference is left
 * @state: TCP_*
 *
 * A message has up to 1000 bytes.
 */
struct fake_conn *fake_conn(struct kunit *test, u8 state)
{
	struct fake_conn *fake = kunit_kzalloc(test, sizeof(*fake), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake->test = test;
	hps_conn_init(&fake->conn, &fake_transport, &init_net);
	hps_conn_get(&fake->conn);
	fake->conn.state = state;
	fake->conn.tx_msg_max = 1000;
	fake->conn.heard = jiffies;
	fake->conn.confirmed = true;
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, fake_conn_release, fake), 0);
	return fake;
}

/**
 * fake_attach - give it a socket
 * @test: which it is for
 * @fake: the connection, without one
 */
struct sock *fake_attach(struct kunit *test, struct fake_conn *fake)
{
	struct sock *sk = fake_sock(test, fake->conn.records ? SOCK_SEQPACKET : SOCK_STREAM);

	lock_sock(sk);
	hps_conn_attach(&fake->conn, sk);
	release_sock(sk);
	fake->attached = true;
	return sk;
}

/**
 * fake_tx - bytes to send, in a buffer of their own
 * @test: which it is for
 * @conn: the connection, not locked; its socket, if there is one, is charged
 * @size: of the buffer
 * @len: bytes in it
 */
struct hps_buf *fake_tx(struct kunit *test, struct hps_conn *conn, u32 size, u32 len)
{
	struct hps_buf *buf = conn->ops->tx_buf(conn, size);
	struct sock *sk = conn->sk;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	memset(buf->data, 0, size);
	if (sk) {
		lock_sock(sk);
		sk_mem_charge(sk, buf->size);
		hps_sk(sk)->tx_charged += buf->size;
		release_sock(sk);
	}
	spin_lock_bh(&conn->lock);
	buf->end = len;
	buf->busy = false;
	hps_stream_queued(conn, len);
	spin_unlock_bh(&conn->lock);
	return buf;
}

/**
 * fake_rx - bytes that came in, nowhere queued
 * @test: which it is for
 * @size: of the buffer
 * @len: bytes in it
 */
struct hps_buf *fake_rx(struct kunit *test, u32 size, u32 len)
{
	struct hps_buf *buf = hps_buf_local(size);

	KUNIT_ASSERT_NOT_NULL(test, buf);
	memset(buf->data, 'x', size);
	buf->end = len;
	return buf;
}

/**
 * fake_receive - they come in
 * @fake: the connection, not locked
 * @buf: the bytes
 * @tight: the peer is about to run out of credits
 * @urgent: where the urgent byte is among them, or -1
 *
 * Return: what hps_conn_rx_data() returns.
 */
int fake_receive(struct fake_conn *fake, struct hps_buf *buf, bool tight, int urgent)
{
	int err;

	FAKE_LOCKED(fake, err = hps_conn_rx_data(&fake->conn, buf, tight, urgent));
	return err;
}
