/* SPDX-License-Identifier: GPL-2.0 */
/* What stands in a test for what is around the code that it looks at. */
#ifndef FAKE_H
#define FAKE_H

#include <kunit/test.h>
#include <linux/net.h>

#include "conn.h"

struct proto;

struct sock *fake_sock(struct kunit *test, int type);
struct proto *fake_no_memory(struct kunit *test);

/* What a transport was asked to send. */
enum fake_sent {
	FAKE_DATA,
	FAKE_OFFER,
	FAKE_URGENT,
	FAKE_FIN,
	FAKE_FINACK,
};

/**
 * struct fake_conn - a connection over a transport that only writes down
 * @conn: the connection; the test is given the transport's reference and another one
 * @credits: how much more it takes; -EAGAIN when there is none
 * @nr: messages sent
 * @sent: which, and of how many bytes; in FAKE_DATA also where an urgent byte is, or -1,
 *	and in FAKE_URGENT how far ahead it is
 * @busy: tx_idle() is not true, as since a probe
 * @many: tx_busy() is true
 * @full: the peer can send no more before something is read
 * @shut: how often it was told to end
 * @asked: how often what was delivered
 * @probes: how often to send a probe
 * @consumed: buffers that came back
 * @freed: the last reference is gone
 * @attached: the other reference is a socket's
 * @test: which it is for
 */
struct fake_conn {
	struct hps_conn conn;
	struct kunit *test;
	int credits;
	int nr;
	struct {
		enum fake_sent what;
		u32 len;
		int urgent;
	} sent[16];
	bool busy;
	bool many;
	bool full;
	int shut;
	int asked;
	int probes;
	int consumed;
	bool freed;
	bool attached;
};

/* A statement with the connection locked. */
#define FAKE_LOCKED(fake, ...) do {					\
	spin_lock_bh(&(fake)->conn.lock);				\
	__VA_ARGS__;							\
	spin_unlock_bh(&(fake)->conn.lock);				\
} while (0)

struct fake_conn *fake_conn(struct kunit *test, u8 state);
struct sock *fake_attach(struct kunit *test, struct fake_conn *fake);
void fake_end(struct fake_conn *fake);
int fake_receive(struct fake_conn *fake, struct hps_buf *buf, bool tight, int urgent);
struct hps_buf *fake_rx(struct kunit *test, u32 size, u32 len);
struct hps_buf *fake_tx(struct kunit *test, struct hps_conn *conn, u32 size, u32 len);

#endif /* FAKE_H */
