// SPDX-License-Identifier: GPL-2.0
/*
 * A socket that a connection is given to, or that is closed, while data comes in: the windows
 * are widened by selftests/delay. Needs root, kprobes and the devices of vm/run.
 */
#include "hps_test.h"

FIXTURE(life) {
	struct hps t;
	int l;
	struct hps_addr at;
};

FIXTURE_VARIANT(life) {
	int af;
};

FIXTURE_VARIANT_ADD(life, hpsock) { AF_INET };
FIXTURE_VARIANT_ADD(life, hpsock6) { AF_INET6 };

FIXTURE_SETUP(life)
{
	hps_init(&self->t, true, variant->af);
	if (hps_cannot_delay())
		SKIP(return, "%s", hps_cannot_delay());
	self->l = hps_listen(&self->t, 1, &self->at);
	ASSERT_OK(self->l);
}

FIXTURE_TEARDOWN(life)
{
	hps_run("rmmod hpsock_delay 2>/dev/null");
}

/* Have one function take long, and see that this call is in it. */
static bool meet(struct hps_call *call, const char *symbol)
{
	int64_t end = hps_now() + hps_deadline();
	int now[2];

	if (hps_run("insmod $HPSOCK_DELAY_KO symbol=%s us=300000", symbol))
		return false;
	hps_start(call);
	do
		hps_delayed(now);
	while (!now[0] && hps_now() < end);
	return now[0] > 0;
}

/* The option of the listening socket counts until there is another that has it from there */
TEST_F(life, oobinline_accepted)
{
	struct hps_call call = { .fn = hps_accept_call, .fd = self->l };
	uint8_t buf[3];
	int c;

	ASSERT_OK(hps_set(self->l, SOL_SOCKET, SO_OOBINLINE, 1));
	c = hps_dial(&self->t, self->at);
	ASSERT_OK(c);
	ASSERT_EQ(1, send(c, "1", 1, MSG_OOB));
	ASSERT_TRUE(hps_wait(self->l, POLLIN));
	ASSERT_TRUE(meet(&call, "hps_conn_attach"));
	ASSERT_EQ(1, send(c, "2", 1, MSG_OOB));
	ASSERT_OK(shutdown(c, SHUT_WR));
	ASSERT_TRUE(hps_done(&call));
	ASSERT_LE(0, call.ret);
	ASSERT_EQ(1, recv(call.ret, buf, 1, 0));
	EXPECT_EQ('1', buf[0]);
	ASSERT_EQ(1, recv(call.ret, buf, 1, 0));
	EXPECT_EQ('2', buf[0]);
	EXPECT_EQ(0, recv(call.ret, buf, 1, 0));
}

static long close_call(struct hps_call *call)
{
	return close(call->fd);
}

static long pull_call(struct hps_call *call)
{
	return hps_pull(call->fd, call->len, call->len, 1);
}

/* How much arrives of what was sent before a close(), which data meets; @took for so many ms. */
static long closed_with_data(struct __test_metadata *_metadata, struct _test_data_life *self,
			     int len, int64_t *took)
{
	struct hps_call call = { .fn = close_call }, pull = { .fn = pull_call };
	uint8_t byte = 1;
	int c, s;

	c = hps_dial(&self->t, self->at);
	ASSERT_OK(c);
	s = hps_accept(self->l);
	ASSERT_OK(s);
	/* So not all of it can be sent at once. */
	ASSERT_OK(hps_set(c, SOL_SOCKET, SO_RCVBUF, 4096));
	ASSERT_EQ(len, hps_push(s, len, len, 1));
	call.fd = s;
	pull.fd = c;
	pull.len = len;
	ASSERT_TRUE(meet(&call, "hps_conn_orphan"));
	hps_start(&pull);
	*took = hps_now();
	ASSERT_EQ(1, send(c, &byte, 1, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_OK(call.ret);
	ASSERT_TRUE(hps_done(&pull));
	*took = hps_now() - *took;
	if (pull.ret == len)
		EXPECT_EQ(0, recv(c, &byte, 1, 0));
	EXPECT_TRUE(hps_wait_exactly(c, POLLHUP) & POLLHUP);
	close(c);
	ASSERT_EQ(0, hps_run("rmmod hpsock_delay"));
	return pull.ret;
}

/* That, and the FIN, arrive before the reset. */
TEST_F(life, data_while_closing)
{
	int64_t end = hps_now() + hps_deadline(), took;
	int len = 20000;
	long got;

	/* An orphan that is reset has half a second for it, which may be over. */
	do
		got = closed_with_data(_metadata, self, len, &took);
	while (got < len && took >= 450 && hps_now() < end);
	EXPECT_EQ(len, got);
}

static long dial_and_send(struct hps_call *call)
{
	/* By its name, or checkpatch sees a product in it. */
	const struct _test_data_life *self = call->buf;

	call->fd = hps_dial_nb(&self->t, self->at);
	return send(call->fd, "1", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A socket that is connected while send() looks whether it is */
TEST_F(life, connected_while_sending)
{
	int64_t end = hps_now() + hps_deadline();
	struct hps_call call = { .fn = dial_and_send, .buf = self };
	int before[2], now[2] = {}, s;
	uint8_t byte;

	ASSERT_OK(hps_run("insmod $HPSOCK_DELAY_KO symbol=sk_stream_wait_connect us=300000"));
	/* It may look when there is a connection already, or not yet after all that time. */
	do {
		memcpy(before, now, sizeof(before));
		hps_start(&call);
		ASSERT_TRUE(hps_done(&call));
		ASSERT_TRUE(call.ret == 1 || call.err == EAGAIN);
		s = hps_accept(self->l);
		ASSERT_OK(s);
		if (call.ret == 1)
			EXPECT_EQ(1, recv(s, &byte, 1, 0));
		close(s);
		close(call.fd);
		hps_delayed(now);
	} while ((now[0] == before[0] || call.ret < 0) && hps_now() < end);
	EXPECT_LT(before[0], now[0]);
	EXPECT_EQ(1, call.ret);
}

TEST_HARNESS_MAIN
