// SPDX-License-Identifier: GPL-2.0
/*
 * Readers that wait with memory for many bytes, to which the peer then writes (SinkAvail),
 * and what disturbs them. Which way the bytes came no program can see, so TCP has to do the
 * same; where it is AF_HPSOCK the counters tell.
 */
#include "hps_test.h"

#include <sys/mman.h>

#define LEN (512 << 10)

FIXTURE(invite) {
	struct hps t;
	int c, s;
	long patience;
	uint64_t sent;		/* bytes of the stream so far */
	uint8_t *out;
};

FIXTURE_VARIANT(invite) {
	bool rdma;
	int af;
	bool cas;		/* the sender asks at a word, where that can be */
};

FIXTURE_VARIANT_ADD(invite, inet) { false, AF_INET, false };
FIXTURE_VARIANT_ADD(invite, inet6) { false, AF_INET6, false };
FIXTURE_VARIANT_ADD(invite, hpsock) { true, AF_INET, false };
FIXTURE_VARIANT_ADD(invite, hpsock6) { true, AF_INET6, false };
FIXTURE_VARIANT_ADD(invite, hpsock_cas) { true, AF_INET, true };

static _Alignas(4096) uint8_t in[2 * LEN], other[2 * LEN];

static long read_call(struct hps_call *call)
{
	return recv(call->fd, call->buf, call->len, call->arg);
}

/*
 * A reader in @call waits, and shows its memory if it is known to be worth it. The peer has
 * learnt of it then.
 */
static bool waits_with(const struct hps *t, struct hps_call *call, bool shows)
{
	long before = hps_stat("sink_shown");

	hps_block(call);
	return !t->rdma || !shows || (hps_until_stat("sink_shown", before + 1) && hps_settle());
}

/* The next @len bytes of the stream go, from memory that is left alone. */
static bool goes(struct _test_data_invite *self, size_t len)
{
	bool large = self->t.rdma && len >= LEN / 2;
	size_t done;
	ssize_t n;

	hps_fill(self->out, len, self->sent, 1);
	for (done = 0; done < len; done += n) {
		n = send(self->c, self->out + done, len - done, large ? MSG_ZEROCOPY : 0);
		if (n < 0)
			return false;
	}
	self->sent += len;
	/* Nothing of it is needed any more, as none of what TCP has copied. */
	return !self->t.rdma || hps_until_outq(self->c, 0);
}

static struct hps_call reader(struct _test_data_invite *self)
{
	return (struct hps_call){
		.fn = read_call, .fd = self->s, .buf = in, .len = LEN, .arg = MSG_WAITALL,
	};
}

/* Did the last @len bytes arrive in @call? */
static bool came(struct _test_data_invite *self, struct hps_call *call, size_t len)
{
	return hps_done(call) && call->ret == (long)len &&
	       hps_check(call->buf, len, self->sent - len, 1) == len;
}

FIXTURE_SETUP(invite)
{
	struct hps_call call;

	hps_init(&self->t, variant->rdma, variant->af);
	if (self->t.rdma) {
		ASSERT_TRUE(hps_set_zcopy("protect"));
		ASSERT_TRUE(hps_set_zcopy_sync(variant->cas ? "cas" : "msg"));
		/* A busy machine shall not make a reader give up. */
		self->patience = hps_number(HPS_ZCOPY_PATIENCE, 0);
		ASSERT_OK(hps_set_number(HPS_ZCOPY_PATIENCE, 60000));
	}
	ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));
	if (self->t.rdma) {
		ASSERT_TRUE(hps_set_zcopy("auto"));
		ASSERT_OK(hps_zerocopy(&self->t, self->c));
		/* Each trusts the other. */
		ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_SINK, 1));
		ASSERT_OK(hps_set(self->s, SOL_HPSOCK, HPSOCK_ZCOPY_SINK, 1));
	}
	self->out = hps_memory(2 * LEN);
	/* By the first it learns that large sends come. */
	call = reader(self);
	ASSERT_TRUE(waits_with(&self->t, &call, false));
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(came(self, &call, LEN));
}

FIXTURE_TEARDOWN(invite)
{
	if (self->t.rdma) {
		hps_set_number(HPS_ZCOPY_PATIENCE, self->patience);
		hps_set_zcopy_sync("msg");
	}
}

/* Each time that a reader is there first the peer writes to its memory. */
TEST_F(invite, written)
{
	enum { ROUNDS = 4 };
	long tx = hps_stat("tx_written"), rx = hps_stat("rx_written"), lent = hps_stat("tx_lent");
	long asked = hps_stat("sink_asked"), swapped = hps_stat("sink_swapped");
	int asks = variant->cas && hps_swaps() ? ROUNDS : 0;
	struct hps_call call;
	int i;

	for (i = 0; i < ROUNDS; i++) {
		call = reader(self);
		ASSERT_TRUE(waits_with(&self->t, &call, true));
		ASSERT_TRUE(goes(self, LEN));
		ASSERT_TRUE(came(self, &call, LEN));
	}
	if (self->t.rdma) {
		EXPECT_EQ(ROUNDS * LEN, hps_stat("tx_written") - tx);
		EXPECT_EQ(ROUNDS * LEN, hps_stat("rx_written") - rx);
		EXPECT_EQ(lent, hps_stat("tx_lent"));
		EXPECT_EQ(asks, hps_stat("sink_asked") - asked);
		EXPECT_EQ(asks, hps_stat("sink_swapped") - swapped);
	}
}

/* Nobody waits: a sender that asks learns it, and offers. */
TEST_F(invite, nobody_waits)
{
	struct hps_call call = reader(self);
	long lent, asked, swapped;

	/* Both have the word by then, if they have one. */
	ASSERT_TRUE(waits_with(&self->t, &call, true));
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(came(self, &call, LEN));
	lent = hps_stat("tx_lent");
	asked = hps_stat("sink_asked");
	swapped = hps_stat("sink_swapped");
	hps_fill(self->out, LEN, self->sent, 1);
	ASSERT_EQ(LEN, send(self->c, self->out, LEN, self->t.rdma ? MSG_ZEROCOPY : 0));
	self->sent += LEN;
	if (self->t.rdma) {
		ASSERT_TRUE(hps_until_stat("tx_lent", lent + LEN));
		EXPECT_EQ(variant->cas && hps_swaps(), hps_stat("sink_asked") - asked);
		EXPECT_EQ(swapped, hps_stat("sink_swapped"));
	}
	EXPECT_EQ(LEN, hps_pull_at(self->s, self->sent - LEN, LEN, LEN, 1));
}

/* Fewer bytes than it has room for: it has them, or waits for the rest. */
TEST_F(invite, written_in_part)
{
	struct hps_call call = reader(self);
	long rx = hps_stat("rx_written");

	call.arg = 0;
	call.len = 2 * LEN;
	ASSERT_TRUE(waits_with(&self->t, &call, true));
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_LT(0, call.ret);
	EXPECT_EQ(call.ret, hps_check(in, call.ret, self->sent - LEN, 1));
	EXPECT_EQ(LEN - call.ret, hps_pull_at(self->s, self->sent - LEN + call.ret,
					      LEN - call.ret, LEN, 1));
	if (self->t.rdma) {
		EXPECT_EQ(LEN, hps_stat("rx_written") - rx);
	}
	call = reader(self);
	call.len = 2 * LEN;
	ASSERT_TRUE(waits_with(&self->t, &call, true));
	ASSERT_TRUE(goes(self, LEN));
	EXPECT_FALSE(call.done);
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(came(self, &call, 2 * LEN));
}

/* A send that has no room there is read by the reader itself. */
TEST_F(invite, larger)
{
	struct hps_call call = reader(self);

	ASSERT_TRUE(waits_with(&self->t, &call, true));
	ASSERT_OK(hps_set(self->c, SOL_SOCKET, SO_SNDBUF, 4 * LEN));
	hps_fill(self->out, 2 * LEN, self->sent, 1);
	ASSERT_EQ(2 * LEN, hps_push(self->c, 0, 1, 1) +
			   send(self->c, self->out, 2 * LEN,
				self->t.rdma ? MSG_ZEROCOPY : 0));
	self->sent += 2 * LEN;
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LEN, call.ret);
	EXPECT_EQ(LEN, hps_check(in, LEN, self->sent - 2 * LEN, 1));
	EXPECT_EQ(LEN, hps_pull_at(self->s, self->sent - LEN, LEN, LEN, 1));
}

/* A small send comes as ever, and the memory is the reader's again. */
TEST_F(invite, small)
{
	struct hps_call call;
	long shown;
	int i;

	for (i = 0; i < 3; i++) {
		call = reader(self);
		call.arg = 0;
		ASSERT_TRUE(waits_with(&self->t, &call, !i));
		ASSERT_TRUE(goes(self, 1000));
		ASSERT_TRUE(came(self, &call, 1000));
	}
	/* It is not shown again in vain, until it has been seen to be worth it. */
	shown = hps_stat("sink_shown");
	for (i = 0; i < 3; i++) {
		call = reader(self);
		ASSERT_TRUE(waits_with(&self->t, &call, false));
		ASSERT_TRUE(goes(self, LEN));
		ASSERT_TRUE(came(self, &call, LEN));
	}
	if (self->t.rdma) {
		EXPECT_EQ(shown, hps_stat("sink_shown"));
	}
}

/* Small and large ones at once, in either order */
TEST_F(invite, mixed)
{
	struct hps_call call = reader(self);

	ASSERT_TRUE(waits_with(&self->t, &call, true));
	ASSERT_TRUE(goes(self, 1000));
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(LEN, call.ret);
	EXPECT_EQ(LEN, hps_check(in, LEN, self->sent - LEN - 1000, 1));
	EXPECT_EQ(1000, hps_pull_at(self->s, self->sent - 1000, 1000, 1000, 1));
}

/* A reader that is disturbed has its memory back, and what comes later is not lost. */
TEST_F(invite, interrupted)
{
	struct hps_call call = reader(self);

	hps_catch(SIGUSR1, 0);
	ASSERT_TRUE(waits_with(&self->t, &call, true));
	hps_interrupt(&call);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EINTR, call.err);
	memset(in, 0xee, LEN);
	ASSERT_TRUE(goes(self, LEN));
	EXPECT_EQ(0xee, in[0]);
	EXPECT_EQ(0xee, in[LEN - 1]);
	EXPECT_EQ(LEN, hps_pull_at(self->s, self->sent - LEN, LEN, LEN, 1));
}

/* Or that has no more time, for whatever it asked */
TEST_F(invite, timeout)
{
	/* It takes a moment until there is a word to ask at. */
	struct timeval tv = { .tv_sec = variant->cas ? 2 * hps_slow() : 0, .tv_usec = 200000 };
	struct hps_call call = reader(self);
	long shown = hps_stat("sink_shown");
	int64_t begin = hps_now();

	ASSERT_OK(setsockopt(self->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	/* On a busy machine it is over before one can see it wait. */
	hps_start(&call);
	ASSERT_TRUE(hps_done(&call));
	if (self->t.rdma) {
		EXPECT_EQ(shown + 1, hps_stat("sink_shown"));
	}
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EAGAIN, call.err);
	EXPECT_LE(190, hps_now() - begin);
	tv = (struct timeval){ 0 };
	ASSERT_OK(setsockopt(self->s, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)));
	ASSERT_TRUE(goes(self, LEN));
	EXPECT_EQ(LEN, hps_pull_at(self->s, self->sent - LEN, LEN, LEN, 1));
}

/* For long nobody writes: the reader goes on to wait, without its memory being pinned. */
TEST_F(invite, patient)
{
	struct hps_call call = reader(self);

	if (self->t.rdma) {
		ASSERT_OK(hps_set_number(HPS_ZCOPY_PATIENCE, 500));
	}
	ASSERT_TRUE(waits_with(&self->t, &call, true));
	EXPECT_GE(0, hps_pins_left(0));
	EXPECT_FALSE(call.done);
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(came(self, &call, LEN));
}

/* The end, of the stream or of the connection, is seen at once. */
TEST_F(invite, fin)
{
	struct hps_call call = reader(self);

	ASSERT_TRUE(waits_with(&self->t, &call, true));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(0, call.ret);
}

TEST_F(invite, reset)
{
	struct hps_call call = reader(self);

	ASSERT_TRUE(waits_with(&self->t, &call, true));
	ASSERT_OK(hps_reset(self->c));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(ECONNRESET, call.err);
}

TEST_F(invite, shut_down)
{
	struct hps_call call = reader(self);

	ASSERT_TRUE(waits_with(&self->t, &call, true));
	ASSERT_OK(shutdown(self->s, SHUT_RD));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(0, call.ret);
}

TEST_F(invite, disconnected)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct hps_call call = reader(self);

	ASSERT_TRUE(waits_with(&self->t, &call, true));
	ASSERT_OK(connect(self->s, &none, sizeof(none)));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_GE(0, call.ret);
}

/* What comes on the next connection is not the reader's that waited on the last. */
TEST_F(invite, connected_anew)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct hps_call call;
	struct hps_addr at;
	int l, peer;

	/* It is the one that had connected who reads. */
	peer = self->c;
	self->c = self->s;
	self->s = peer;
	self->sent = 0;
	if (self->t.rdma) {
		ASSERT_OK(hps_zerocopy(&self->t, self->c));
	}
	call = reader(self);
	ASSERT_TRUE(waits_with(&self->t, &call, false));
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(came(self, &call, LEN));
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	call = reader(self);
	ASSERT_TRUE(waits_with(&self->t, &call, true));
	ASSERT_OK(connect(self->s, &none, sizeof(none)));
	ASSERT_OK(hps_connect(self->s, at));
	peer = hps_accept(l);
	ASSERT_OK(peer);
	ASSERT_EQ(100, send(peer, self->out, 100, 0));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EPIPE, call.err);
	EXPECT_EQ(100, recv(self->s, in, LEN, 0));
}

/* A program that is killed while its memory is shown */
TEST_F(invite, killed)
{
	long before = hps_stat("sink_shown");
	pid_t pid = hps_fork();
	int status;

	if (!pid) {
		close(self->c);
		recv(self->s, in, LEN, MSG_WAITALL);
		_exit(0);
	}
	close(self->s);
	ASSERT_LT(0, pid);
	hps_until_blocked(pid);
	if (self->t.rdma) {
		ASSERT_TRUE(hps_until_stat("sink_shown", before + 1));
	}
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_TRUE(hps_wait_exactly(self->c, POLLIN) & POLLIN);
	EXPECT_EQ(0, recv(self->c, other, 1, 0));
}

/* Two readers: one has its memory shown. Each byte comes to one of them, in one piece. */
TEST_F(invite, two_readers)
{
	struct hps_call call[2] = { reader(self), reader(self) };
	uint64_t at = self->sent;
	int first;

	call[1].buf = other;
	ASSERT_TRUE(waits_with(&self->t, &call[0], true));
	ASSERT_TRUE(waits_with(&self->t, &call[1], false));
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(hps_done(&call[0]));
	ASSERT_TRUE(hps_done(&call[1]));
	EXPECT_EQ(LEN, call[0].ret);
	EXPECT_EQ(LEN, call[1].ret);
	if (self->t.rdma) {
		/* TCP may give some to the one and some to the other. */
		first = hps_check(in, LEN, at, 1) == LEN;
		EXPECT_EQ(LEN, hps_check(first ? other : in, LEN, at + LEN, 1));
		EXPECT_EQ(LEN, hps_check(first ? in : other, LEN, at, 1));
	}
}

/* Who does not wait, or looks only, does not have it shown, and is not in its way. */
TEST_F(invite, others)
{
	struct hps_call call = reader(self);

	EXPECT_ERRNO(EAGAIN, recv(self->s, other, LEN, MSG_DONTWAIT));
	ASSERT_TRUE(waits_with(&self->t, &call, true));
	EXPECT_ERRNO(EAGAIN, recv(self->s, other, LEN, MSG_DONTWAIT));
	EXPECT_ERRNO(EAGAIN, recv(self->s, other, LEN, MSG_DONTWAIT | MSG_PEEK));
	EXPECT_EQ(0, hps_inq(self->s));
	EXPECT_POLL(POLLOUT, self->s);
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(came(self, &call, LEN));
}

/* Both ways at once: a request, and an answer to where it is waited for. */
TEST_F(invite, both_ways)
{
	enum { ROUNDS = 20 };
	struct hps_call call[2] = { reader(self), reader(self) };
	int i;

	if (self->t.rdma) {
		ASSERT_OK(hps_zerocopy(&self->t, self->s));
	}
	call[1].fd = self->c;
	call[1].buf = other;
	for (i = 0; i < ROUNDS; i++) {
		hps_start(&call[0]);
		hps_start(&call[1]);
		hps_fill(self->out, LEN, self->sent, 1);
		ASSERT_EQ(LEN, send(self->c, self->out, LEN, self->t.rdma ? MSG_ZEROCOPY : 0));
		ASSERT_EQ(LEN, send(self->s, self->out, LEN, self->t.rdma ? MSG_ZEROCOPY : 0));
		self->sent += LEN;
		ASSERT_TRUE(came(self, &call[0], LEN));
		ASSERT_TRUE(came(self, &call[1], LEN));
		call[0].done = false;
		call[1].done = false;
		ASSERT_TRUE(hps_until_outq(self->c, 0));
		ASSERT_TRUE(hps_until_outq(self->s, 0));
	}
}

/* Nobody has it shown who has not said that the peer is trusted. */
TEST_F(invite, off)
{
	struct hps_call call = reader(self);
	long shown = hps_stat("sink_shown");

	if (!self->t.rdma)
		SKIP(return, "TCP has no such option");
	EXPECT_EQ(1, hps_opt(self->s, SOL_HPSOCK, HPSOCK_ZCOPY_SINK));
	EXPECT_ERRNO(EINVAL, hps_set(self->s, SOL_HPSOCK, HPSOCK_ZCOPY_SINK, 2));
	ASSERT_OK(hps_set(self->s, SOL_HPSOCK, HPSOCK_ZCOPY_SINK, 0));
	EXPECT_EQ(0, hps_opt(hps_socket(&self->t, 0), SOL_HPSOCK, HPSOCK_ZCOPY_SINK));
	ASSERT_TRUE(waits_with(&self->t, &call, false));
	ASSERT_TRUE(goes(self, LEN));
	ASSERT_TRUE(came(self, &call, LEN));
	EXPECT_EQ(shown, hps_stat("sink_shown"));
}

TEST_HARNESS_MAIN
