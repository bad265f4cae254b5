// SPDX-License-Identifier: GPL-2.0
/*
 * The wire protocol against a peer in user space, well-behaved and not. What a
 * bad peer does must end its own connection, be counted, and harm nobody else.
 */
#include "hps_peer.h"

FIXTURE(wire) {
	struct hps t;
	struct hps_addr at;
	int l;
	struct peer peer;
	long shrink_after;
};

FIXTURE_VARIANT(wire) {
	int af;
};

FIXTURE_VARIANT_ADD(wire, hpsock) { AF_INET };
FIXTURE_VARIANT_ADD(wire, hpsock6) { AF_INET6 };

FIXTURE_SETUP(wire)
{
	hps_init(&self->t, true, variant->af);
	self->shrink_after = hps_number(HPS_SHRINK_AFTER, 0);
	self->l = hps_listen(&self->t, 4, &self->at);
	ASSERT_OK(self->l);
	peer_hello(&self->peer, 40000, hps_port(&self->at));
}

FIXTURE_TEARDOWN(wire)
{
	peer_free(&self->peer);
	EXPECT_OK(hps_set_number(HPS_SHRINK_AFTER, self->shrink_after));
}

static char buf[1 << 20];

/* The listener still serves others. */
static void still_works(struct __test_metadata *_metadata, const struct hps *t, int l,
			const struct hps_addr *at)
{
	int c = hps_dial(t, *at), s;

	ASSERT_OK(c);
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_EQ(3000, hps_push(c, 3000, 1000, 1));
	ASSERT_EQ(3000, hps_pull(s, 3000, 1000, 1));
	close(c);
	close(s);
}

TEST_F(wire, well_behaved)
{
	struct peer *p = &self->peer;
	struct hps_addr from;
	struct peer_msg msg;
	int s, got = 0;

	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	EXPECT_EQ(htonl(HPS_MAGIC), p->theirs.magic);
	EXPECT_EQ(HPS_VERSION, p->theirs.version);
	EXPECT_EQ(SOCK_STREAM, p->theirs.type);
	EXPECT_EQ(0, p->theirs.flags);
	EXPECT_EQ(hps_port(&self->at), ntohs(p->theirs.src_port));
	EXPECT_EQ(40000, ntohs(p->theirs.dst_port));
	EXPECT_LE(1, ntohs(p->theirs.credits));
	EXPECT_LE(ntohs(p->theirs.credits), ntohs(p->theirs.window));
	EXPECT_GE(HPS_WINDOW_MAX, ntohs(p->theirs.window));
	EXPECT_LE(HPS_BUF_MIN, ntohl(p->theirs.buf_size));
	EXPECT_GE(HPS_BUF_MAX, ntohl(p->theirs.buf_size));
	EXPECT_LE(HPS_CTRL_SLOTS, ntohs(p->theirs.ctrl_slots));
	/* Not of every device is asked to be read from. */
	EXPECT_EQ(htobe64(HPS_FEATURE_SHRINK | HPS_FEATURE_WRITE |
			  (hps_swaps() ? HPS_FEATURE_SWAP : 0)),
		  p->theirs.features & htobe64(~(uint64_t)HPS_FEATURE_READ));

	s = hps_accept(self->l);
	ASSERT_OK(s);
	from = hps_peer(s);
	EXPECT_TRUE(hps_same_host(&self->t.a, &from));
	EXPECT_EQ(40000, hps_port(&from));

	/* Data both ways */
	hps_fill(buf, 1000, 0, 1);
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, 1000));
	EXPECT_EQ(1000, hps_pull(s, 1000, 1000, 1));
	ASSERT_EQ(20000, hps_push(s, 20000, 5000, 2));
	while (got < 20000) {
		ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
		if (msg.hdr.type != HPS_MSG_DATA)
			continue;
		ASSERT_EQ(msg.len, hps_check(msg.data, msg.len, got, 2));
		got += msg.len;
	}

	/* And the end, ours first */
	ASSERT_OK(peer_send(p, HPS_MSG_FIN, NULL, 0));
	EXPECT_EQ(0, recv(s, buf, 1, 0));
	do {
		ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
	} while (msg.hdr.type == HPS_MSG_CREDIT);
	EXPECT_EQ(HPS_MSG_FINACK, msg.hdr.type);
	ASSERT_OK(shutdown(s, SHUT_WR));
	do {
		ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
	} while (msg.hdr.type == HPS_MSG_CREDIT);
	EXPECT_EQ(HPS_MSG_FIN, msg.hdr.type);
	ASSERT_OK(peer_send(p, HPS_MSG_FINACK, NULL, 0));
	EXPECT_TRUE(hps_wait_exactly(s, POLLHUP) & POLLHUP);
	EXPECT_EQ(0, hps_error(s));
	EXPECT_TRUE(peer_gone(p));
}

/* A window's worth and more, with credits coming back only as it is read */
TEST_F(wire, waits_for_credit)
{
	struct peer *p = &self->peer;
	struct peer_msg msg;
	int64_t sent, got = 0;
	int s;

	p->hello.credits = htons(2);
	p->hello.window = htons(4);
	p->hello.buf_size = htonl(HPS_BUF_MIN);
	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	sent = hps_stuff(s, 0, 1);
	ASSERT_LT(4 * HPS_BUF_MIN, sent);
	/* peer_receive() is strict about what has no credit and what is too long. */
	while (p->rx_data < 2) {
		ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
		ASSERT_EQ(HPS_MSG_DATA, msg.hdr.type);
		ASSERT_EQ(msg.len, hps_check(msg.data, msg.len, got, 1));
		got += msg.len;
	}
	ASSERT_TRUE(hps_settle());
	EXPECT_ERRNO(ETIME, peer_receive(p, &msg, 0));
	/* One more credit is one more message, */
	p->told++;
	ASSERT_OK(peer_send(p, HPS_MSG_CREDIT, NULL, 0));
	ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
	EXPECT_EQ(3, p->rx_data);
	got += msg.len;
	ASSERT_TRUE(hps_settle());
	EXPECT_ERRNO(ETIME, peer_receive(p, &msg, 0));
	/* and so on to the last byte. */
	while (got < sent) {
		if (p->told - p->rx_data < 2) {
			p->told += 2;
			ASSERT_OK(peer_send(p, HPS_MSG_CREDIT, NULL, 0));
		}
		ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
		ASSERT_EQ(msg.len, hps_check(msg.data, msg.len, got, 1));
		got += msg.len;
	}
	EXPECT_EQ(sent, got);
}

/* Every credit that it grants it can take, and reading grants more. */
TEST_F(wire, keeps_its_word)
{
	struct peer *p = &self->peer;
	uint32_t len, total = 0;
	struct peer_msg msg;
	int s, i;

	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	for (i = 0; i < 300; i++) {
		while (p->tx_used == p->granted) {
			/* Take half of it away to earn some more. */
			len = total > 1 ? total / 2 : total;
			ASSERT_LT(0, len);
			ASSERT_EQ(len, recv(s, buf, len, MSG_WAITALL));
			total -= len;
			while (!peer_receive(p, &msg, total ? 10 : hps_deadline())) {
				if (p->tx_used != p->granted)
					break;
			}
		}
		len = i % 3 ? peer_room(p) : 1;
		ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, len));
		total += len;
	}
	ASSERT_EQ(0, hps_error(s));
	/* Buffers became larger as they were filled. */
	EXPECT_LT(ntohl(p->theirs.buf_size), p->tx_size);
	for (; total; total -= len) {
		len = total < sizeof(buf) ? total : sizeof(buf);
		ASSERT_EQ(len, recv(s, buf, len, MSG_WAITALL));
	}
}

/* Our receives become larger at a certain message, and so do its messages. */
/* Announced, then there, twice */
TEST_F(wire, urgent_received)
{
	struct peer *p = &self->peer;
	struct peer_msg msg;
	char byte;
	int s, i;

	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	EXPECT_ERRNO(EINVAL, recv(s, &byte, 1, MSG_OOB));
	for (i = 0; i < 2; i++) {
		p->flags = 0;
		p->urgent = 0;
		ASSERT_OK(peer_urgent(p, 10));
		while (recv(s, &byte, 1, MSG_OOB) && errno == EINVAL)
			usleep(100);
		EXPECT_EQ(EAGAIN, errno);
		p->flags = HPS_FLAG_URGENT;
		p->urgent = 10;
		hps_fill(buf, 11, 0, 1);
		ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, 11));
		ASSERT_TRUE(hps_wait(s, POLLPRI) & POLLPRI);
		EXPECT_EQ(1, recv(s, &byte, 1, MSG_OOB));
		EXPECT_EQ((char)buf[10], byte);
		EXPECT_EQ(10, hps_pull(s, 10, 100, 1));
		/* Their next message says that they had it. */
		ASSERT_EQ(1, send(s, "x", 1, 0));
		do {
			ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
		} while (msg.hdr.type != HPS_MSG_DATA);
		EXPECT_EQ(p->urgents ? HPS_FLAG_HEARD : 0, msg.hdr.flags);
	}
	EXPECT_EQ(0, hps_error(s));
}

/* One waits for a credit: it is announced once, and marked when it comes. */
TEST_F(wire, urgent_sent)
{
	struct peer *p = &self->peer;
	struct peer_msg msg;
	uint32_t got = 0, ahead = 0, urgents = 0, marked = 0;
	int s;

	p->hello.credits = htons(2);
	p->hello.window = htons(4);
	p->hello.buf_size = htonl(HPS_BUF_MIN);
	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	ASSERT_EQ(5000, hps_push(s, 5000, 5000, 2));
	hps_fill(buf, 1, 5000, 2);
	ASSERT_EQ(1, send(s, buf, 1, MSG_OOB));
	hps_fill(buf, 1000, 5001, 2);
	ASSERT_EQ(1000, send(s, buf, 1000, 0));
	/* A newer one has to wait until this one was heard of. */
	hps_fill(buf, 1, 6001, 2);
	ASSERT_EQ(1, send(s, buf, 1, MSG_OOB));
	while (got < 6002) {
		ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
		if (msg.hdr.type == HPS_MSG_URGENT) {
			ahead = ntohl(((struct hps_urgent_ahead *)msg.data)->ahead);
			EXPECT_EQ(urgents++ ? 6001 : 5000, got + ahead);
			p->flags ^= HPS_FLAG_HEARD;
		}
		if (msg.hdr.type == HPS_MSG_DATA) {
			if (msg.hdr.flags & HPS_FLAG_URGENT)
				marked = got + msg.hdr.urgent;
			ASSERT_EQ(msg.len, hps_check(msg.data, msg.len, got, 2));
			got += msg.len;
		}
		if (p->rx_data == p->told && urgents) {
			p->told++;
			ASSERT_OK(peer_send(p, HPS_MSG_CREDIT, NULL, 0));
		}
	}
	EXPECT_EQ(2, urgents);
	EXPECT_EQ(6001, marked);
	EXPECT_EQ(0, hps_error(s));
}

TEST_F(wire, larger_buffers)
{
	struct peer *p = &self->peer;
	int64_t sent, got = 0;
	uint32_t longest = 0;
	struct peer_msg msg;
	int s;

	p->hello.credits = htons(2);
	p->hello.window = htons(32);
	p->hello.buf_size = htonl(HPS_BUF_MIN);
	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	sent = hps_stuff(s, 0, 1);
	ASSERT_LT(100000, sent);
	ASSERT_OK(peer_buffers(p, p->rx_seq + 5, 8 * HPS_BUF_MIN));
	while (got < sent) {
		if (p->told - p->rx_data < 1) {
			p->told++;
			ASSERT_OK(peer_send(p, HPS_MSG_CREDIT, NULL, 0));
		}
		/* It is strict about what is too long. */
		ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
		ASSERT_EQ(msg.len, hps_check(msg.data, msg.len, got, 1));
		got += msg.len;
		longest = msg.len > longest ? msg.len : longest;
	}
	/* What was queued before is in pieces of a page. */
	EXPECT_LT(2 * HPS_BUF_MIN, longest);
}

/* Said late, it counts from now on; and there may be another step. */
TEST_F(wire, larger_buffers_late)
{
	struct peer *p = &self->peer;
	uint32_t longest, left;
	struct peer_msg msg;
	int s, i;

	p->hello.buf_size = htonl(HPS_BUF_MIN);
	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	for (i = 1; i <= 3; i++) {
		ASSERT_OK(peer_buffers(p, 0, (i + 1) * HPS_BUF_MIN));
		/* An answer to show that it was heard. */
		ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, 1));
		ASSERT_EQ(1, recv(s, buf, 1, 0));
		ASSERT_EQ(60000, hps_push(s, 60000, 60000, 1));
		for (longest = 0, left = 60000; left;) {
			ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
			if (msg.hdr.type != HPS_MSG_DATA)
				continue;
			longest = msg.len > longest ? msg.len : longest;
			left -= msg.len;
			p->told++;
			ASSERT_OK(peer_send(p, HPS_MSG_CREDIT, NULL, 0));
		}
		EXPECT_EQ((i + 1) * HPS_BUF_MIN - sizeof(struct hps_hdr), longest);
	}
}

/* Hellos that are turned down, in which only one thing is wrong */
static void change(struct hps_hello *hello, int which)
{
	switch (which) {
	case 0:
		hello->magic = htonl(0x48505332);
		break;
	case 1:
		hello->version = 0;
		break;
	case 2:
		hello->version = HPS_VERSION + 1;
		break;
	case 3:
		hello->version = 255;
		break;
	case 4:
		hello->type = SOCK_DGRAM;
		break;
	case 5:
		hello->type = 0;
		break;
	case 6:
		hello->credits = 0;
		break;
	case 7:
		hello->credits = htons(ntohs(hello->window) + 1);
		break;
	case 8:
		hello->credits = htons(HPS_WINDOW_MIN - 1);
		hello->window = hello->credits;
		break;
	case 9:
		hello->window = htons(HPS_WINDOW_MAX + 1);
		break;
	case 10:
		hello->credits = htons(65535);
		hello->window = hello->credits;
		break;
	case 11:
		hello->buf_size = htonl(HPS_BUF_MIN - 1);
		break;
	case 12:
		hello->buf_size = htonl(HPS_BUF_MAX + 1);
		break;
	case 13:
		hello->buf_size = 0;
		break;
	case 14:
		hello->buf_size = htonl(0xffffffff);
		break;
	case 15:
		hello->ctrl_slots = htons(HPS_CTRL_SLOTS - 1);
		break;
	case 16:
		hello->ctrl_slots = 0;
		break;
	}
}

TEST_F(wire, bad_hello)
{
	long version = hps_stat("reject_version"), invalid = hps_stat("reject_invalid");
	int which;

	ASSERT_LE(0, version);
	ASSERT_LE(0, invalid);
	for (which = 0; which <= 16; which++) {
		struct peer peer = { 0 };

		peer_hello(&peer, 40000, hps_port(&self->at));
		change(&peer.hello, which);
		EXPECT_ERRNO(ECONNREFUSED, peer_dial(&peer, &self->t, &self->at));
		EXPECT_TRUE(peer_told(&peer, which < 4 ? HPS_REJ_VERSION : HPS_REJ_INVALID)) {
			TH_LOG("hello %d: reason %d", which, peer.reason);
		}
		EXPECT_TRUE(peer.reason < 0 || peer.version == HPS_VERSION);
		peer_free(&peer);
	}
	EXPECT_EQ(version + 4, hps_stat("reject_version"));
	EXPECT_EQ(invalid + 13, hps_stat("reject_invalid"));
	still_works(_metadata, &self->t, self->l, &self->at);
}

TEST_F(wire, short_hello)
{
	static const size_t lengths[] = { 0, 1, 4, 5, 8, 16 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		struct peer peer = { 0 };

		peer_hello(&peer, 40000, hps_port(&self->at));
		EXPECT_ERRNO(ECONNREFUSED,
			     peer_connect(&peer, self->t.a, peer_service_at(self->t.b),
					  &peer.hello, lengths[i]));
		/* RoCE fills up with zeroes: what is cut off then is out of range. */
		EXPECT_TRUE(peer_told(&peer, HPS_REJ_VERSION) ||
			    (lengths[i] >= 5 && peer_told(&peer, HPS_REJ_INVALID))) {
			TH_LOG("%zu bytes: reason %d", lengths[i], peer.reason);
		}
		peer_free(&peer);
	}
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* A key that is none: what came before is there, and then an error. */
TEST_F(wire, srcavail_bad_key)
{
	struct peer *p = &self->peer;
	int s;

	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	if (!(p->theirs.features & htobe64(HPS_FEATURE_READ)))
		SKIP(return, "this device is not asked to be read from");
	hps_fill(buf, 100, 0, 1);
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, 100));
	ASSERT_OK(peer_srcavail(p, 4096, 0x12345678, 1000));
	ASSERT_TRUE(hps_until_inq(s, 1100));
	EXPECT_EQ(100, hps_pull(s, 100, 100, 1));
	EXPECT_ERRNO(ECONNRESET, recv(s, buf, 1000, 0));
	EXPECT_EQ(0, recv(s, buf, 1000, 0));
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* What later versions may put there is no reason to refuse. */
TEST_F(wire, unknown_bits)
{
	self->peer.hello.flags = 0xffff;
	self->peer.hello.features = ~0;
	ASSERT_OK(peer_dial(&self->peer, &self->t, &self->at));
	EXPECT_OK(hps_accept(self->l));
}

TEST_F(wire, nobody_listens)
{
	long refused = hps_stat("reject_refused");
	struct hps_addr name = hps_name(hps_bound(&self->t, 0, self->t.b));
	int ports[] = { 0, 1, hps_port(&name) };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		struct peer peer = { 0 };

		peer_hello(&peer, 40000, ports[i]);
		EXPECT_ERRNO(ECONNREFUSED, peer_dial(&peer, &self->t, &self->at));
		EXPECT_TRUE(peer_told(&peer, HPS_REJ_REFUSED));
		peer_free(&peer);
	}
	EXPECT_EQ(refused + 3, hps_stat("reject_refused"));
}

/*
 * Somebody else has the port that all connections come in at, if only for one family of
 * addresses: he would have what is meant for us.
 */
TEST_F(wire, service_port_taken)
{
	int one = 1;
	struct peer *peer = &self->peer;
	struct hps_addr at;

	close(self->l);
	at = hps_any(self->t.af, peer_service_port(self->t.af));
	peer->events = rdma_create_event_channel();
	ASSERT_NE(NULL, peer->events);
	ASSERT_OK(rdma_create_id(peer->events, &peer->listen_id, NULL, RDMA_PS_TCP));
	ASSERT_OK(rdma_set_option(peer->listen_id, RDMA_OPTION_ID, RDMA_OPTION_ID_AFONLY,
				  &one, sizeof(one)));
	ASSERT_OK(rdma_bind_addr(peer->listen_id, &at.sa));
	ASSERT_OK(rdma_listen(peer->listen_id, 1));
	EXPECT_ERRNO(EADDRINUSE, hps_listen(&self->t, 1, &at));
	/* Nothing is left behind by that. */
	EXPECT_ERRNO(EADDRINUSE, hps_listen(&self->t, 1, &at));
	ASSERT_OK(rdma_destroy_id(peer->listen_id));
	peer->listen_id = NULL;
	EXPECT_OK(hps_listen(&self->t, 1, &at));
}

TEST_F(wire, backlog_full)
{
	long busy = hps_stat("reject_busy");
	struct peer peer[3] = { 0 };
	struct hps_addr at;
	int l = hps_listen(&self->t, 0, &at), i;

	ASSERT_OK(l);
	ASSERT_OK(peer_dial(&peer[0], &self->t, &at));
	for (i = 1; i < 3; i++) {
		EXPECT_ERRNO(ECONNREFUSED, peer_dial(&peer[i], &self->t, &at));
		EXPECT_TRUE(peer_told(&peer[i], HPS_REJ_BUSY));
		peer_free(&peer[i]);
	}
	EXPECT_EQ(busy + 2, hps_stat("reject_busy"));
	EXPECT_OK(hps_accept(l));
	ASSERT_OK(peer_dial(&peer[1], &self->t, &at));
	EXPECT_OK(hps_accept(l));
	for (i = 0; i < 2; i++)
		peer_free(&peer[i]);
}

static int dial_mute(struct peer *p, const struct hps *t, const struct hps_addr *at)
{
	peer_hello(p, 40000, hps_port(at));
	return peer_connect(p, t->a, peer_service_at(*at), &p->hello,
			    sizeof(p->hello));
}

/* Nothing can be accepted before its other end has spoken. */
TEST_F(wire, first_message)
{
	struct peer *p = &self->peer;
	struct peer_msg msg;
	int s;

	ASSERT_OK(dial_mute(p, &self->t, &self->at));
	EXPECT_TRUE(hps_quiet(self->l, POLLIN));
	ASSERT_OK(peer_send(p, HPS_MSG_CREDIT, NULL, 0));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	ASSERT_EQ(100, hps_push(s, 100, 100, 1));
	ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
	EXPECT_EQ(HPS_MSG_DATA, msg.hdr.type);
	EXPECT_EQ(100, hps_check(msg.data, msg.len, 0, 1));
}

/* It need not be a CREDIT. */
TEST_F(wire, first_is_data)
{
	int s;

	hps_fill(buf, 100, 0, 1);
	ASSERT_OK(dial_mute(&self->peer, &self->t, &self->at));
	ASSERT_OK(peer_send(&self->peer, HPS_MSG_DATA, buf, 100));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	EXPECT_EQ(100, hps_pull(s, 100, 100, 1));
}

/*
 * It was a connection, as one that TCP resets before accept() is. On iWARP one that gave
 * up waiting for the answer looks the same, and never was.
 */
TEST_F(wire, leaves_first)
{
	long before = hps_stat("reset_rcvd");
	char byte;
	int s;

	ASSERT_OK(dial_mute(&self->peer, &self->t, &self->at));
	peer_disconnect(&self->peer);
	if (hps_siw()) {
		EXPECT_TRUE(hps_until_stat("reset_rcvd", before + 1));
		EXPECT_TRUE(hps_quiet(self->l, POLLIN));
		still_works(_metadata, &self->t, self->l, &self->at);
		return;
	}
	s = hps_accept(self->l);
	ASSERT_OK(s);
	EXPECT_TRUE(hps_wait(s, POLLERR) & POLLERR);
	EXPECT_ERRNO(ECONNRESET, recv(s, &byte, 1, 0));
}

/* Who does not go on does not keep a place for longer than by TCP. */
TEST_F(wire, half_open)
{
	static const char path[] = "/proc/sys/net/ipv4/tcp_synack_retries";
	const int patience = 3000;	/* of one retry */
	long retries = hps_number(path, 5);
	struct hps_addr at;
	int64_t begin;
	int l, c;

	if (hps_siw())
		SKIP(return, "iWARP has no such step");
	l = hps_listen(&self->t, 0, &at);
	ASSERT_OK(l);
	ASSERT_OK(hps_set_number(path, 1));
	begin = hps_now();
	EXPECT_OK(peer_dial_half(&self->peer, &self->t, &at));
	ASSERT_OK(hps_set_number(path, retries));
	c = hps_dial(&self->t, at);
	EXPECT_OK(c);
	EXPECT_LE(patience, hps_now() - begin);
	EXPECT_GT(patience + hps_deadline(), hps_now() - begin);
	EXPECT_OK(hps_accept(l));
}

/* A client that tries for so many of TCP's SYNs. */
static int dial_for(const struct hps *t, struct hps_addr at, int syns)
{
	int fd = hps_socket(t, 0);

	if (fd < 0 || hps_set(fd, SOL_TCP, TCP_SYNCNT, syns))
		return -1;
	return hps_connect(fd, at) ? -1 : fd;
}

/* Nor does he keep others out where the backlog is full of his kind. */
TEST_F(wire, half_open_flood)
{
	long before = hps_stat("half_open_dropped");
	const int backlog = 5;
	struct peer mute[6] = { 0 };
	struct hps_addr at;
	int l = hps_listen(&self->t, backlog, &at), i, c;

	ASSERT_OK(l);
	for (i = 0; i <= backlog; i++)
		ASSERT_OK(dial_mute(&mute[i], &self->t, &at));
	for (i = 0; i < 2; i++) {
		/* 31 seconds: half as long as each of those could stay. */
		c = dial_for(&self->t, at, 4);
		ASSERT_OK(c);
		EXPECT_EQ(before + i + 1, hps_stat("half_open_dropped"));
	}
	/* The oldest went first, and who came late goes on. */
	EXPECT_TRUE(peer_gone(&mute[0]));
	EXPECT_TRUE(peer_gone(&mute[1]));
	ASSERT_OK(peer_send(&mute[backlog], HPS_MSG_CREDIT, NULL, 0));
	for (i = 0; i < 3; i++)
		EXPECT_OK(hps_accept(l));
	EXPECT_TRUE(hps_quiet(l, POLLIN));
	for (i = 0; i <= backlog; i++)
		peer_free(&mute[i]);
}

/* Who is only waited for by TCP_DEFER_ACCEPT is established, and keeps his place. */
TEST_F(wire, half_open_deferred)
{
	long before = hps_stat("half_open_dropped");
	struct hps_addr at;
	int l = hps_listen(&self->t, 0, &at), c;

	ASSERT_OK(l);
	ASSERT_OK(hps_set(l, SOL_TCP, TCP_DEFER_ACCEPT, 60));
	c = hps_dial(&self->t, at);
	ASSERT_OK(c);
	EXPECT_ERRNO(ETIMEDOUT, dial_for(&self->t, at, 2));
	EXPECT_EQ(before, hps_stat("half_open_dropped"));
	ASSERT_EQ(1, send(c, "x", 1, 0));
	EXPECT_OK(hps_accept(l));
}

/*
 * Messages that break the protocol: the function sends one, after 100 good
 * bytes, over a connection that was just accepted.
 */

static int raw(struct peer *p, int type, uint32_t len, uint32_t seq, uint32_t credit,
	       size_t payload)
{
	uint8_t msg[20000] = { 0 };
	struct hps_hdr *hdr = (struct hps_hdr *)msg;

	*hdr = (struct hps_hdr){
		.type = type, .len = htonl(len), .seq = htonl(seq), .credit = htonl(credit),
	};
	return peer_raw(p, msg, sizeof(*hdr) + payload);
}

static void violate(struct __test_metadata *_metadata, struct hps *t, int l,
		    struct hps_addr *at, struct peer *p, const char *reason,
		    int (*bad)(struct peer *p))
{
	long before = hps_stat(reason);
	int s, c2, s2;

	ASSERT_LE(0, before);
	/* A bystander */
	c2 = hps_dial(t, *at);
	ASSERT_OK(c2);
	s2 = hps_accept(l);
	ASSERT_OK(s2);

	ASSERT_OK(peer_dial(p, t, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	hps_fill(buf, 100, 0, 1);
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, 100));
	ASSERT_TRUE(hps_until_inq(s, 100));
	bad(p);

	EXPECT_TRUE(hps_wait(s, POLLERR) & POLLERR);
	EXPECT_EQ(before + 1, hps_stat(reason)) TH_LOG("%s", reason);
	/* What was right before it is still right. */
	EXPECT_EQ(100, hps_pull(s, 100, 100, 1));
	hps_pull(s, INT64_MAX, 1000, 99);
	EXPECT_EQ(EPROTO, hps_error(s) ?: errno);
	EXPECT_TRUE(peer_gone(p));

	ASSERT_EQ(3000, hps_push(c2, 3000, 1000, 1));
	ASSERT_EQ(3000, hps_pull(s2, 3000, 1000, 1));
	still_works(_metadata, t, l, at);
}

#define VIOLATION(name, reason)							\
	static int name(struct peer *p);					\
	TEST_F(wire, name)							\
	{									\
		violate(_metadata, &self->t, self->l, &self->at, &self->peer,	\
			"violation_" reason, name);				\
	}									\
	static int name(struct peer *p)

VIOLATION(len_too_big, "length")
{
	return raw(p, HPS_MSG_DATA, 101, p->tx_seq, p->told, 100);
}

VIOLATION(len_too_small, "length")
{
	return raw(p, HPS_MSG_DATA, 99, p->tx_seq, p->told, 100);
}

VIOLATION(len_huge, "length")
{
	return raw(p, HPS_MSG_DATA, 0xfffffff0, p->tx_seq, p->told, 100);
}

VIOLATION(data_of_nothing, "length")
{
	return raw(p, HPS_MSG_DATA, 0, p->tx_seq, p->told, 0);
}

VIOLATION(credit_with_payload, "length")
{
	return raw(p, HPS_MSG_CREDIT, 10, p->tx_seq, p->told, 10);
}

VIOLATION(fin_with_payload, "length")
{
	return raw(p, HPS_MSG_FIN, 10, p->tx_seq, p->told, 10);
}

VIOLATION(short_message, "length")
{
	return peer_raw(p, "\1\0\0\0", 4);
}

VIOLATION(one_byte_short, "length")
{
	return peer_raw(p, "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15);
}

VIOLATION(empty_message, "length")
{
	return peer_raw(p, "", 0);
}

VIOLATION(type_0, "type")
{
	return raw(p, 0, 0, p->tx_seq, p->told, 0);
}

VIOLATION(type_next, "type")
{
	return raw(p, HPS_MSG_WORD + 1, 0, p->tx_seq, p->told, 0);
}

VIOLATION(type_255, "type")
{
	return raw(p, 255, 100, p->tx_seq, p->told, 100);
}

VIOLATION(seq_repeated, "seq")
{
	return raw(p, HPS_MSG_DATA, 100, p->tx_seq - 1, p->told, 100);
}

VIOLATION(seq_skipped, "seq")
{
	return raw(p, HPS_MSG_DATA, 100, p->tx_seq + 1, p->told, 100);
}

VIOLATION(seq_of_another_order, "seq")
{
	return raw(p, HPS_MSG_CREDIT, 0, htonl(p->tx_seq), p->told, 0);
}

VIOLATION(credit_taken_back, "credit")
{
	return raw(p, HPS_MSG_CREDIT, 0, p->tx_seq, p->told - 1, 0);
}

VIOLATION(credit_beyond_window, "credit")
{
	return raw(p, HPS_MSG_CREDIT, 0, p->tx_seq, ntohs(p->hello.window) + 1, 0);
}

VIOLATION(credit_far_beyond, "credit")
{
	return raw(p, HPS_MSG_DATA, 100, p->tx_seq, p->told + 0x7fffffff, 100);
}

VIOLATION(credit_around, "credit")
{
	return raw(p, HPS_MSG_DATA, 100, p->tx_seq, p->told + 0x80000001, 100);
}

/* All data that is granted while nobody reads, and then one message more */
static int overrun_by(struct peer *p, int type, const void *data, uint32_t len)
{
	struct peer_msg msg;

	do {
		while (p->tx_used < p->granted)
			if (peer_send(p, HPS_MSG_DATA, buf, peer_room(p)))
				return -1;
		/* What it grants for that has come. */
		if (!hps_settle())
			return -1;
	} while (!peer_receive(p, &msg, 0));
	return peer_send(p, type, data, len);
}

VIOLATION(overrun, "overrun")
{
	return overrun_by(p, HPS_MSG_DATA, buf, 1);
}

VIOLATION(overrun_by_shrink, "overrun")
{
	struct hps_smaller smaller = { .size = htonl(HPS_BUF_MIN), .pads = htonl(1) };

	return overrun_by(p, HPS_MSG_SHRINK, &smaller, sizeof(smaller));
}

VIOLATION(overrun_by_pad, "overrun")
{
	return overrun_by(p, HPS_MSG_PAD, NULL, 0);
}

VIOLATION(buffers_small, "buffers")
{
	return peer_buffers(p, 100, HPS_BUF_MIN - 1);
}

VIOLATION(buffers_large, "buffers")
{
	return peer_buffers(p, 100, HPS_BUF_MAX + 1);
}

/* A second step before the first one was reached */
VIOLATION(buffers_twice, "buffers")
{
	return peer_buffers(p, 100, 2 * HPS_BUF_MIN) ?: peer_buffers(p, 200, 4 * HPS_BUF_MIN);
}

VIOLATION(buffers_short, "length")
{
	return raw(p, HPS_MSG_BUFFERS, 4, p->tx_seq, p->told, 4);
}

VIOLATION(shrink_small, "buffers")
{
	return peer_shrink(p, HPS_BUF_MIN - 1, 1);
}

/* That would be true only from some message on. */
VIOLATION(shrink_larger, "buffers")
{
	return peer_shrink(p, ntohl(p->hello.buf_size) + 1, 1);
}

VIOLATION(shrink_of_none, "buffers")
{
	return peer_shrink(p, HPS_BUF_MIN, 0);
}

VIOLATION(shrink_of_many, "buffers")
{
	return peer_shrink(p, HPS_BUF_MIN, HPS_PADS_MAX + 1);
}

/* They have not answered the first one, for want of credits. */
VIOLATION(shrink_twice, "buffers")
{
	return peer_shrink(p, HPS_BUF_MIN, HPS_PADS_MAX) ?: peer_shrink(p, HPS_BUF_MIN, 1);
}

VIOLATION(shrink_short, "length")
{
	p->tx_used++;
	return raw(p, HPS_MSG_SHRINK, 4, p->tx_seq, p->told, 4);
}

/* They did not ask for it. */
VIOLATION(pad_of_nothing, "buffers")
{
	return peer_send(p, HPS_MSG_PAD, NULL, 0);
}

VIOLATION(pad_with_payload, "length")
{
	return raw(p, HPS_MSG_PAD, 1, p->tx_seq, p->told, 1);
}

VIOLATION(urgent_behind, "urgent")
{
	p->flags = HPS_FLAG_URGENT;
	p->urgent = 100;
	return peer_send(p, HPS_MSG_DATA, buf, 100);
}

/* The first one could not have been heard of. */
VIOLATION(urgent_twice, "urgent")
{
	return peer_urgent(p, 50) ?: peer_urgent(p, 60);
}

VIOLATION(urgent_far, "urgent")
{
	return peer_urgent(p, 0x80000000);
}

VIOLATION(urgent_short, "length")
{
	return raw(p, HPS_MSG_URGENT, 2, p->tx_seq, p->told, 2);
}

/* Of theirs there was none. */
VIOLATION(urgent_heard, "urgent")
{
	p->flags = HPS_FLAG_HEARD;
	return peer_send(p, HPS_MSG_CREDIT, NULL, 0);
}

VIOLATION(urgent_after_fin, "state")
{
	return peer_send(p, HPS_MSG_FIN, NULL, 0) ?: peer_urgent(p, 0);
}

/* It could not be marked there. */
static int urgent_offered(struct peer *p)
{
	return peer_urgent(p, 99) ?: peer_srcavail(p, 0, 1, 100);
}

TEST_F(wire, urgent_offered)
{
	ASSERT_TRUE(hps_set_zcopy("protect"));
	violate(_metadata, &self->t, self->l, &self->at, &self->peer, "violation_urgent",
		urgent_offered);
	EXPECT_TRUE(hps_set_zcopy("auto"));
}

VIOLATION(srcavail_empty, "source")
{
	return peer_srcavail(p, 0, 1, 0);
}

VIOLATION(srcavail_long, "source")
{
	return peer_srcavail(p, 0, 1, HPS_SOURCE_MAX + 1);
}

VIOLATION(srcavail_wraps, "source")
{
	return peer_srcavail(p, -100, 1, 101);
}

VIOLATION(srcavail_short, "length")
{
	return raw(p, HPS_MSG_SRCAVAIL, 8, p->tx_seq, p->told, 8);
}

/* Nothing was offered. */
VIOLATION(readdone_of_nothing, "source")
{
	struct hps_readdone read = { .total = htonl(1) };

	return peer_send(p, HPS_MSG_READDONE, &read, sizeof(read));
}

VIOLATION(readdone_short, "length")
{
	return raw(p, HPS_MSG_READDONE, 2, p->tx_seq, p->told, 2);
}

VIOLATION(srccancel_of_none, "source")
{
	return peer_srcavail(p, 0, 1, 100) ?: peer_srccancel(p, 0);
}

VIOLATION(srccancel_short, "length")
{
	return raw(p, HPS_MSG_SRCCANCEL, 2, p->tx_seq, p->told, 2);
}

VIOLATION(srccancel_after_fin, "state")
{
	return peer_send(p, HPS_MSG_FIN, NULL, 0) ?: peer_srccancel(p, 1);
}

VIOLATION(cancelack_of_nothing, "source")
{
	return peer_cancelack(p, 0);
}

VIOLATION(cancelack_long, "length")
{
	return raw(p, HPS_MSG_CANCELACK, 8, p->tx_seq, p->told, 8);
}

VIOLATION(written_unasked, "sink")
{
	return peer_written(p, 100);
}

VIOLATION(written_short, "length")
{
	return raw(p, HPS_MSG_WRITTEN, 2, p->tx_seq, p->told, 2);
}

VIOLATION(written_without_credit, "overrun")
{
	struct hps_written written = { .len = htonl(100) };

	return overrun_by(p, HPS_MSG_WRITTEN, &written, sizeof(written));
}

/* Nothing was lent. */
VIOLATION(sinkavail_early, "sink")
{
	return peer_sinkavail(p, 0, 1, 100);
}

VIOLATION(sinkavail_short, "length")
{
	return raw(p, HPS_MSG_SINKAVAIL, 8, p->tx_seq, p->told, 8);
}

VIOLATION(word_short, "length")
{
	return raw(p, HPS_MSG_WORD, 8, p->tx_seq, p->told, 8);
}

VIOLATION(sinkcancel_of_nothing, "sink")
{
	return peer_send(p, HPS_MSG_SINKCANCEL, NULL, 0);
}

VIOLATION(sinkack_unasked, "sink")
{
	return peer_send(p, HPS_MSG_SINKACK, NULL, 0);
}

/* Of theirs there was none. */
VIOLATION(sink_heard, "sink")
{
	p->flags = HPS_FLAG_SINK;
	return peer_send(p, HPS_MSG_CREDIT, NULL, 0);
}

VIOLATION(data_after_fin, "state")
{
	if (peer_send(p, HPS_MSG_FIN, NULL, 0))
		return -1;
	return peer_send(p, HPS_MSG_DATA, buf, 10);
}

VIOLATION(second_fin, "state")
{
	if (peer_send(p, HPS_MSG_FIN, NULL, 0))
		return -1;
	return peer_send(p, HPS_MSG_FIN, NULL, 0);
}

VIOLATION(finack_of_nothing, "state")
{
	return peer_send(p, HPS_MSG_FINACK, NULL, 0);
}

/* The next message that is no CREDIT and no BUFFERS. */
static int peer_next(struct peer *p, struct peer_msg *msg)
{
	int err;

	do {
		err = peer_receive(p, msg, hps_deadline());
	} while (!err && (msg->hdr.type == HPS_MSG_CREDIT || msg->hdr.type == HPS_MSG_BUFFERS));
	return err;
}

/* An offer that nobody read is taken back, with what came behind it; whether or not... */
static void takes_back(struct __test_metadata *_metadata, struct hps *t, int l,
		       struct hps_addr *at, struct peer *p, bool accepted)
{
	const struct hps_cancelack *ack;
	struct peer_msg msg;
	int s = -1;

	ASSERT_TRUE(hps_set_zcopy("protect"));
	ASSERT_OK(peer_dial(p, t, at));
	ASSERT_TRUE(hps_set_zcopy("auto"));
	if (accepted) {
		s = hps_accept(l);
		ASSERT_OK(s);
	}
	hps_fill(buf, 100, 0, 1);
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, 50));
	ASSERT_OK(peer_srcavail(p, 0, 1, 1000));
	/* Those that it knows of are gone, the others it has not heard of. */
	ASSERT_OK(peer_srccancel(p, 2));
	ASSERT_OK(peer_next(p, &msg));
	ASSERT_EQ(HPS_MSG_CANCELACK, msg.hdr.type);
	ack = (const void *)msg.data;
	EXPECT_EQ(0, ack->done);
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf + 50, 50));
	if (!accepted) {
		s = hps_accept(l);
		ASSERT_OK(s);
	}
	ASSERT_TRUE(hps_until_inq(s, 100));
	ASSERT_OK(peer_send(p, HPS_MSG_FIN, NULL, 0));
	EXPECT_EQ(100, hps_pull(s, INT64_MAX, 1000, 1));
	EXPECT_EQ(0, errno);
	ASSERT_OK(peer_next(p, &msg));
	EXPECT_EQ(HPS_MSG_FINACK, msg.hdr.type);
}

TEST_F(wire, srccancel)
{
	takes_back(_metadata, &self->t, self->l, &self->at, &self->peer, true);
}

/* ... somebody could have. */
TEST_F(wire, srccancel_unaccepted)
{
	takes_back(_metadata, &self->t, self->l, &self->at, &self->peer, false);
}

/* Announced before an offer, or behind it, an urgent byte may follow that. */
static void urgent_behind_offer(struct __test_metadata *_metadata, const struct hps *t, int l,
				const struct hps_addr *at, struct peer *p, bool before)
{
	enum { LEN = 1000 };
	char byte;
	int s;

	ASSERT_TRUE(hps_set_zcopy("protect"));
	ASSERT_OK(peer_dial(p, t, at));
	ASSERT_TRUE(hps_set_zcopy("auto"));
	s = hps_accept(l);
	ASSERT_OK(s);
	hps_fill(peer_shared(p), LEN, 0, 1);
	if (before)
		ASSERT_OK(peer_urgent(p, LEN));
	ASSERT_OK(peer_lend(p, LEN));
	/* What was offered was sent, whether it was read or not. */
	if (!before)
		ASSERT_OK(peer_urgent(p, 0));
	p->flags = HPS_FLAG_URGENT;
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, "x", 1));
	ASSERT_TRUE(hps_wait(s, POLLPRI) & POLLPRI);
	EXPECT_EQ(LEN, hps_pull(s, LEN, 2 * LEN, 1));
	ASSERT_EQ(1, recv(s, &byte, 1, MSG_OOB));
	EXPECT_EQ('x', byte);
}

TEST_F(wire, urgent_before_offer)
{
	urgent_behind_offer(_metadata, &self->t, self->l, &self->at, &self->peer, true);
}

TEST_F(wire, urgent_after_offer)
{
	urgent_behind_offer(_metadata, &self->t, self->l, &self->at, &self->peer, false);
}

/* The bytes of the longest of @n messages of data, or -1 */
static int longest(struct peer *p, int n)
{
	struct peer_msg msg;
	int longest = 0;

	for (; n; n--) {
		if (peer_next(p, &msg) || msg.hdr.type != HPS_MSG_DATA)
			return -1;
		longest = (int)msg.len > longest ? (int)msg.len : longest;
	}
	return longest;
}

/* The next peer_dial() says so. */
static void peer_takes_offers(struct peer *p)
{
	p->hello.features = htobe64(HPS_FEATURE_READ);
	p->hello.window = htons(PEER_RECVS - HPS_CTRL_SLOTS);
	p->hello.credits = p->hello.window;
}

/*
 * With an offer that nobody accepts the sender is never through, and keeps the buffers
 * that it is through with; but not for messages that are longer than they.
 */
TEST_F(wire, larger_buffers_spares)
{
	enum { LENT = 200000 };
	int s, len = 3 * HPS_BUF_MIN - sizeof(struct hps_hdr);
	struct peer *p = &self->peer;
	struct peer_msg msg;
	char byte;

	peer_takes_offers(p);
	p->hello.buf_size = htonl(3 * HPS_BUF_MIN);
	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	ASSERT_OK(hps_zerocopy(&self->t, s));
	ASSERT_EQ(LENT, send(s, buf, LENT, MSG_ZEROCOPY));
	ASSERT_OK(peer_next(p, &msg));
	ASSERT_EQ(HPS_MSG_SRCAVAIL, msg.hdr.type);
	ASSERT_EQ(10 * len, hps_push(s, 10 * len, 10 * len, 1));
	ASSERT_EQ(len, longest(p, 10));
	ASSERT_TRUE(hps_until_outq(s, LENT));
	ASSERT_OK(peer_buffers(p, 0, 4 * HPS_BUF_MIN));
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, "x", 1));
	ASSERT_EQ(1, recv(s, &byte, 1, 0));
	ASSERT_EQ(5 * len, hps_push(s, 5 * len, 5 * len, 1));
	EXPECT_EQ(4 * HPS_BUF_MIN - sizeof(struct hps_hdr), longest(p, 3));
}

/* They use up what we have posted, before anything else, and then send nothing longer. */
TEST_F(wire, smaller_buffers)
{
	enum { PADS = 7, LEN = 5000 };
	struct peer *p = &self->peer;
	int s, round, i, got, len, fins = 0;
	struct peer_msg msg;
	char byte;

	p->hello.credits = htons(3);
	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(HPS_BUF_MIN, hps_push(s, HPS_BUF_MIN, HPS_BUF_MIN, 1));
		ASSERT_EQ(HPS_BUF_MIN, longest(p, 1));
		p->told++;
		ASSERT_OK(peer_shrink(p, HPS_BUF_MIN, PADS));
		ASSERT_OK(peer_send(p, HPS_MSG_DATA, "x", 1));
		ASSERT_EQ(1, recv(s, &byte, 1, 0));
		/* It was heard, and for some of them there is no credit yet. */
		ASSERT_EQ(LEN, hps_push(s, LEN, LEN, 2));
		for (i = 0; i < PADS; i++) {
			ASSERT_OK(peer_next(p, &msg));
			ASSERT_EQ(HPS_MSG_PAD, msg.hdr.type);
			p->told++;
			ASSERT_OK(peer_send(p, HPS_MSG_CREDIT, NULL, 0));
		}
		for (got = 0; got < LEN; got += msg.len) {
			ASSERT_OK(peer_next(p, &msg));
			ASSERT_EQ(HPS_MSG_DATA, msg.hdr.type);
			len = HPS_BUF_MIN - sizeof(struct hps_hdr);
			ASSERT_GE(len, (int)msg.len);
			ASSERT_EQ(msg.len, hps_check(msg.data, msg.len, got, 2));
			p->told++;
			ASSERT_OK(peer_send(p, HPS_MSG_CREDIT, NULL, 0));
		}
		/* And they may become larger again. */
		ASSERT_OK(peer_buffers(p, 0, 8 * HPS_BUF_MIN));
		ASSERT_OK(peer_send(p, HPS_MSG_DATA, "x", 1));
		ASSERT_EQ(1, recv(s, &byte, 1, 0));
	}
	/* The end of the stream, which costs no credit, need not wait. */
	ASSERT_OK(peer_shrink(p, HPS_BUF_MIN, PADS));
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, "x", 1));
	ASSERT_EQ(1, recv(s, &byte, 1, 0));
	ASSERT_OK(shutdown(s, SHUT_WR));
	for (i = 0; i < PADS + 1; i++) {
		ASSERT_OK(peer_next(p, &msg));
		if (msg.hdr.type == HPS_MSG_FIN) {
			EXPECT_LT(0, p->pads);
			fins++;
		}
		p->told++;
		ASSERT_OK(peer_send(p, HPS_MSG_CREDIT, NULL, 0));
	}
	EXPECT_EQ(1, fins);
	EXPECT_EQ(0, p->pads);
}

/* With a credit, for which it waits. */
static int send_granted(struct peer *p, int type, const void *data, uint32_t len)
{
	struct peer_msg msg;

	while (p->tx_used == p->granted)
		if (peer_receive(p, &msg, hps_deadline()) ||
		    (msg.hdr.type != HPS_MSG_CREDIT && msg.hdr.type != HPS_MSG_BUFFERS &&
		     msg.hdr.type != HPS_MSG_PAD))
			return -1;
	return peer_send(p, type, data, len);
}

/*
 * A connection that was busy until its receives became larger, and then idle until it asked
 * to have them smaller: what it asked for, and the memory it had before.
 */
static struct hps_smaller asked(struct __test_metadata *_metadata, struct hps *t, int l,
				struct hps_addr *at, struct peer *p, int *s, long *memory)
{
	long before = hps_number(HPS_SHRINK_AFTER, 0);
	const struct hps_smaller *smaller;
	struct peer_msg msg;
	uint32_t room;

	/* Those of other tests */
	EXPECT_TRUE(hps_until_stat_is("memory_receives", 0));
	EXPECT_OK(hps_set_number(HPS_SHRINK_AFTER, 1));
	p->hello.features = htobe64(HPS_FEATURE_SHRINK);
	EXPECT_OK(peer_dial(p, t, at));
	*s = hps_accept(l);
	EXPECT_OK(*s);
	*memory = hps_stat("memory_receives");
	room = peer_room(p);
	hps_fill(buf, sizeof(buf), 0, 1);
	while (peer_room(p) == room) {
		ASSERT_OK(send_granted(p, HPS_MSG_DATA, buf, room));
		ASSERT_EQ(room, hps_pull(*s, room, room, 1));
	}
	do {
		ASSERT_OK(peer_next(p, &msg));
	} while (msg.hdr.type != HPS_MSG_SHRINK);
	smaller = (const void *)msg.data;
	EXPECT_EQ(room, ntohl(smaller->size) - sizeof(struct hps_hdr));
	EXPECT_LT(*memory, hps_stat("memory_receives"));
	EXPECT_OK(hps_set_number(HPS_SHRINK_AFTER, before));
	return *smaller;
}

static int send_pads(struct peer *p, struct hps_smaller smaller)
{
	uint32_t pads = ntohl(smaller.pads);

	p->tx_from = p->tx_seq;
	p->tx_size = ntohl(smaller.size);
	while (pads--)
		if (send_granted(p, HPS_MSG_PAD, NULL, 0))
			return -1;
	return 0;
}

/* Until it has answered all is as it was. */
TEST_F(wire, gives_back)
{
	long shrunk = hps_stat("window_shrunk"), memory, grown;
	struct peer *p = &self->peer;
	struct hps_smaller smaller;
	uint32_t room;
	int s;

	smaller = asked(_metadata, &self->t, self->l, &self->at, p, &s, &memory);
	grown = hps_stat("memory_receives");
	EXPECT_EQ(shrunk, hps_stat("window_shrunk"));
	/* It crossed these. */
	room = peer_room(p);
	ASSERT_OK(send_granted(p, HPS_MSG_DATA, buf, room));
	ASSERT_OK(send_granted(p, HPS_MSG_DATA, buf + room, room));
	EXPECT_EQ(2 * room, hps_pull(s, 2 * room, room, 1));
	EXPECT_EQ(grown, hps_stat("memory_receives"));
	ASSERT_OK(send_pads(p, smaller));
	EXPECT_TRUE(hps_until_stat("window_shrunk", shrunk + 1));
	EXPECT_TRUE(hps_until_stat_is("memory_receives", memory));
	room = peer_room(p);
	ASSERT_OK(send_granted(p, HPS_MSG_DATA, buf, room));
	EXPECT_EQ(room, hps_pull(s, room, room, 1));
}

/*
 * It crossed as much data as there were credits for, which nobody reads, and a question of
 * the peer's own. There is a credit for each PAD nonetheless, and then the program sees as
 * much more as SO_RCVBUF allows.
 */
TEST_F(wire, gives_back_unread)
{
	long shrunk = hps_stat("window_shrunk"), memory;
	struct peer *p = &self->peer;
	struct hps_smaller smaller;
	uint32_t sent = 0, room;
	struct peer_msg msg;
	int s;

	smaller = asked(_metadata, &self->t, self->l, &self->at, p, &s, &memory);
	ASSERT_OK(peer_shrink(p, HPS_BUF_MIN, 5));
	room = peer_room(p);
	while (p->tx_used < p->granted) {
		ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf + sent, room));
		sent += room;
	}
	ASSERT_OK(send_pads(p, smaller));
	EXPECT_TRUE(hps_until_stat("window_shrunk", shrunk + 1));
	while (p->pads)
		ASSERT_OK(peer_receive(p, &msg, hps_deadline()));
	while (sent < 65536) {
		room = peer_room(p);
		ASSERT_OK(send_granted(p, HPS_MSG_DATA, buf + sent, room));
		sent += room;
	}
	ASSERT_TRUE(hps_until_inq(s, sent));
	EXPECT_EQ(sent, hps_pull(s, sent, sent, 1));
}

/* Between the messages that were asked for there is nothing of the stream. */
TEST_F(wire, gives_back_data_between)
{
	long before = hps_stat("violation_buffers"), memory;
	struct peer *p = &self->peer;
	struct hps_smaller smaller;
	int s;

	smaller = asked(_metadata, &self->t, self->l, &self->at, p, &s, &memory);
	ASSERT_LT(1, ntohl(smaller.pads));
	smaller.pads = htonl(1);
	ASSERT_OK(send_pads(p, smaller));
	ASSERT_OK(send_granted(p, HPS_MSG_DATA, buf, 100));
	EXPECT_TRUE(hps_wait(s, POLLERR) & POLLERR);
	EXPECT_EQ(EPROTO, hps_error(s));
	EXPECT_EQ(before + 1, hps_stat("violation_buffers"));
	EXPECT_TRUE(peer_gone(p));
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* Where the first offer of a new connection is, but for the place in the page */
static uint32_t offered_at(struct __test_metadata *_metadata, const struct hps *t, int l,
			   const struct hps_addr *at, struct peer *p)
{
	const struct hps_srcavail *src;
	struct peer_msg msg;
	int s;

	peer_hello(p, 40000, hps_port(at));
	peer_takes_offers(p);
	ASSERT_OK(peer_dial(p, t, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_OK(hps_zerocopy(t, s));
	ASSERT_EQ(200000, send(s, buf, 200000, MSG_ZEROCOPY));
	ASSERT_OK(peer_next(p, &msg));
	ASSERT_EQ(HPS_MSG_SRCAVAIL, msg.hdr.type);
	src = (const void *)msg.data;
	return be64toh(src->addr) >> 32;
}

/*
 * The device lets a peer read what another one is offered, if it knows the key and the
 * address. The address is not to be guessed.
 */
TEST_F(wire, offers_elsewhere)
{
	struct peer other = { 0 };
	uint32_t at[2];

	at[0] = offered_at(_metadata, &self->t, self->l, &self->at, &self->peer);
	at[1] = offered_at(_metadata, &self->t, self->l, &self->at, &other);
	EXPECT_NE(at[0], at[1]);
	EXPECT_NE(0, at[0]);
	EXPECT_NE(0, at[1]);
	peer_free(&other);
}

/* Who has said that it reads, but has no resources for that, is sent the bytes. */
TEST_F(wire, offers_shallow)
{
	struct peer *p = &self->peer;
	struct peer_msg msg;
	int s;

	if (hps_siw())
		SKIP(return, "iWARP devices see to that");
	p->shallow = PEER_ASKS_NOT;
	peer_hello(p, 40000, hps_port(&self->at));
	peer_takes_offers(p);
	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	ASSERT_OK(hps_zerocopy(&self->t, s));
	ASSERT_EQ(200000, send(s, buf, 200000, MSG_ZEROCOPY));
	ASSERT_OK(peer_next(p, &msg));
	EXPECT_EQ(HPS_MSG_DATA, msg.hdr.type);
}

/* Memory of a reader that waits, which we may write to */
#define SHOWN	(128 << 10)

static void shows(struct __test_metadata *_metadata, const struct hps *t, int l,
		  const struct hps_addr *at, struct peer *p, struct hps_call *call,
		  struct hps_sinkavail *sink)
{
	struct peer_msg msg;

	*call = (struct hps_call){
		.fn = hps_recv_call, .buf = buf, .len = SHOWN, .arg = MSG_WAITALL,
	};
	peer_hello(p, 40000, hps_port(at));
	p->hello.features = htobe64(HPS_FEATURE_WRITE | (p->shallow ? HPS_FEATURE_SWAP : 0));
	ASSERT_TRUE(hps_set_zcopy("protect"));
	ASSERT_OK(peer_dial(p, t, at));
	ASSERT_TRUE(hps_set_zcopy("auto"));
	call->fd = hps_accept(l);
	ASSERT_OK(call->fd);
	ASSERT_OK(hps_set(call->fd, SOL_HPSOCK, HPSOCK_ZCOPY_SINK, 1));
	/* It does so when it has seen that much comes. */
	hps_block(call);
	hps_fill(peer_shared(p), SHOWN, 0, 1);
	ASSERT_OK(peer_lend(p, SHOWN));
	ASSERT_TRUE(hps_done(call));
	ASSERT_EQ(SHOWN, call->ret);
	ASSERT_EQ(SHOWN, hps_check(buf, SHOWN, 0, 1));
	ASSERT_OK(peer_next(p, &msg));
	ASSERT_EQ(HPS_MSG_READDONE, msg.hdr.type);
	*call = (struct hps_call){
		.fn = hps_recv_call, .fd = call->fd, .buf = buf, .len = SHOWN, .arg = MSG_WAITALL,
	};
	hps_block(call);
	ASSERT_OK(peer_next(p, &msg));
	ASSERT_EQ(HPS_MSG_SINKAVAIL, msg.hdr.type);
	memcpy(sink, msg.data, sizeof(*sink));
	EXPECT_EQ(SHOWN, ntohl(sink->len));
	hps_fill(peer_shared(p), SHOWN, SHOWN, 1);
}

static int write_there(struct peer *p, const struct hps_sinkavail *sink, uint32_t len)
{
	return peer_write(p, len, be64toh(sink->addr), ntohl(sink->rkey));
}

TEST_F(wire, sink_written)
{
	struct peer *p = &self->peer;
	struct hps_sinkavail sink;
	struct hps_call call;

	shows(_metadata, &self->t, self->l, &self->at, p, &call, &sink);
	ASSERT_OK(write_there(p, &sink, SHOWN));
	EXPECT_FALSE(call.done);
	ASSERT_OK(peer_written(p, SHOWN));
	ASSERT_TRUE(hps_done(&call));
	ASSERT_EQ(SHOWN, call.ret);
	EXPECT_EQ(SHOWN, hps_check(buf, SHOWN, SHOWN, 1));
	/* The key was invalidated, though not by us. */
	memset(buf, 0xee, SHOWN);
	memset(peer_shared(p), 0, SHOWN);
	write_there(p, &sink, SHOWN);
	EXPECT_TRUE(hps_wait(call.fd, POLLERR) & POLLERR);
	EXPECT_EQ(0xee, (uint8_t)buf[0]);
	EXPECT_EQ(0xee, (uint8_t)buf[SHOWN - 1]);
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* What else comes of the stream is first, and ends it. */
TEST_F(wire, sink_void)
{
	struct peer *p = &self->peer;
	long before = hps_stat("violation_sink");
	struct hps_sinkavail sink;
	struct hps_call call;

	shows(_metadata, &self->t, self->l, &self->at, p, &call, &sink);
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, peer_shared(p), 1000));
	ASSERT_TRUE(hps_until_inq(call.fd, 0));
	peer_written(p, SHOWN);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(1000, call.ret);
	EXPECT_EQ(1000, hps_check(buf, 1000, SHOWN, 1));
	EXPECT_EQ(EPROTO, hps_error(call.fd));
	EXPECT_EQ(before + 1, hps_stat("violation_sink"));
	EXPECT_TRUE(peer_gone(p));
	still_works(_metadata, &self->t, self->l, &self->at);
}

static void written_wrong(struct __test_metadata *_metadata, struct hps *t, int l,
			  struct hps_addr *at, struct peer *p, uint32_t len)
{
	long before = hps_stat("violation_sink");
	struct hps_sinkavail sink;
	struct hps_call call;

	shows(_metadata, t, l, at, p, &call, &sink);
	ASSERT_OK(peer_written(p, len));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EPROTO, call.err);
	EXPECT_EQ(before + 1, hps_stat("violation_sink"));
	EXPECT_TRUE(peer_gone(p));
	still_works(_metadata, t, l, at);
}

TEST_F(wire, sink_written_too_much)
{
	written_wrong(_metadata, &self->t, self->l, &self->at, &self->peer, SHOWN + 1);
}

TEST_F(wire, sink_written_nothing)
{
	written_wrong(_metadata, &self->t, self->l, &self->at, &self->peer, 0);
}

/* It could not be marked there. */
TEST_F(wire, sink_written_urgent)
{
	long before = hps_stat("violation_urgent");
	struct peer *p = &self->peer;
	struct hps_sinkavail sink;
	struct hps_call call;

	shows(_metadata, &self->t, self->l, &self->at, p, &call, &sink);
	ASSERT_OK(peer_urgent(p, SHOWN - 1));
	ASSERT_OK(write_there(p, &sink, SHOWN));
	ASSERT_OK(peer_written(p, SHOWN));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EPROTO, call.err);
	EXPECT_EQ(before + 1, hps_stat("violation_urgent"));
	EXPECT_TRUE(peer_gone(p));
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* A write that takes a receive as a message does, and leaves nothing there. */
TEST_F(wire, sink_written_immediately)
{
	long before = hps_stat("violation_type");
	struct peer *p = &self->peer;
	struct hps_sinkavail sink;
	struct hps_call call;

	if (hps_siw())
		SKIP(return, "iWARP has no immediate data");
	shows(_metadata, &self->t, self->l, &self->at, p, &call, &sink);
	peer_write_imm(p, SHOWN, be64toh(sink.addr), ntohl(sink.rkey));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EPROTO, call.err);
	EXPECT_EQ(before + 1, hps_stat("violation_type"));
	EXPECT_TRUE(peer_gone(p));
	still_works(_metadata, &self->t, self->l, &self->at);
}

TEST_F(wire, sink_written_twice)
{
	struct peer *p = &self->peer;
	struct hps_sinkavail sink;
	struct hps_call call;

	shows(_metadata, &self->t, self->l, &self->at, p, &call, &sink);
	ASSERT_OK(write_there(p, &sink, SHOWN));
	ASSERT_OK(peer_written(p, SHOWN));
	ASSERT_TRUE(hps_done(&call));
	ASSERT_OK(peer_written(p, SHOWN));
	EXPECT_TRUE(hps_wait(call.fd, POLLERR) & POLLERR);
	EXPECT_EQ(EPROTO, hps_error(call.fd));
	EXPECT_TRUE(peer_gone(p));
}

/*
 * A reader that waits no longer is not given back its memory before we say so, and does not
 * run its handler either.
 */
static void cancels(struct __test_metadata *_metadata, struct peer *p, struct hps_call *call,
		    const struct hps_sinkavail *sink, bool written)
{
	struct peer_msg msg;

	ASSERT_OK(pthread_kill(call->thread, SIGUSR1));
	ASSERT_OK(peer_next(p, &msg));
	ASSERT_EQ(HPS_MSG_SINKCANCEL, msg.hdr.type);
	EXPECT_TRUE(hps_settle());
	EXPECT_FALSE(call->done);
	if (written) {
		ASSERT_OK(write_there(p, sink, SHOWN));
		ASSERT_OK(peer_written(p, SHOWN));
	}
	ASSERT_OK(peer_send(p, HPS_MSG_SINKACK, NULL, 0));
	ASSERT_TRUE(hps_done(call));
	if (written) {
		EXPECT_EQ(SHOWN, call->ret);
		EXPECT_EQ(SHOWN, hps_check(buf, SHOWN, SHOWN, 1));
	} else {
		EXPECT_EQ(-1, call->ret);
		EXPECT_EQ(EINTR, call->err);
	}
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, peer_shared(p), 1000));
	EXPECT_EQ(1000, recv(call->fd, buf, SHOWN, 0));
}

static void sink_cancelled(struct __test_metadata *_metadata, const struct hps *t, int l,
			   const struct hps_addr *at, struct peer *p, bool written)
{
	struct hps_sinkavail sink;
	struct hps_call call;

	hps_catch(SIGUSR1, 0);
	shows(_metadata, t, l, at, p, &call, &sink);
	cancels(_metadata, p, &call, &sink, written);
}

TEST_F(wire, sink_cancelled)
{
	sink_cancelled(_metadata, &self->t, self->l, &self->at, &self->peer, false);
}

TEST_F(wire, sink_cancelled_late)
{
	sink_cancelled(_metadata, &self->t, self->l, &self->at, &self->peer, true);
}

TEST_F(wire, sink_cancelled_and_gone)
{
	struct hps_sinkavail sink;
	struct peer_msg msg;
	struct hps_call call;

	hps_catch(SIGUSR1, 0);
	shows(_metadata, &self->t, self->l, &self->at, &self->peer, &call, &sink);
	ASSERT_OK(pthread_kill(call.thread, SIGUSR1));
	ASSERT_OK(peer_next(&self->peer, &msg));
	ASSERT_EQ(HPS_MSG_SINKCANCEL, msg.hdr.type);
	peer_disconnect(&self->peer);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
}

/*
 * The other way round: a socket that has lent something writes where we wait. POLLERR there
 * says that it has completions, POLLHUP that it is at its end.
 */
static int writes(struct __test_metadata *_metadata, const struct hps *t, int l,
		  const struct hps_addr *at, struct peer *p)
{
	struct hps_readdone read = { .total = htonl(1) };
	struct peer_msg msg;
	int s;

	peer_hello(p, 40000, hps_port(at));
	peer_takes_offers(p);
	p->hello.features |= htobe64(HPS_FEATURE_SWAP);
	ASSERT_OK(peer_dial(p, t, at));
	s = hps_accept(l);
	ASSERT_OK(s);
	ASSERT_OK(hps_zerocopy(t, s));
	ASSERT_EQ(SHOWN, send(s, buf, SHOWN, MSG_ZEROCOPY));
	ASSERT_OK(peer_next(p, &msg));
	ASSERT_EQ(HPS_MSG_SRCAVAIL, msg.hdr.type);
	ASSERT_OK(peer_send(p, HPS_MSG_READDONE, &read, sizeof(read)));
	ASSERT_TRUE(hps_until_outq(s, 0));
	return s;
}

/* What it sends next comes by what type of message? */
static int comes_by(struct __test_metadata *_metadata, struct peer *p, int s)
{
	const struct hps_written *written;
	struct peer_msg msg;

	hps_fill(buf, SHOWN, 0, 1);
	ASSERT_EQ(SHOWN, send(s, buf, SHOWN, MSG_ZEROCOPY));
	ASSERT_OK(peer_next(p, &msg));
	written = (const void *)msg.data;
	if (msg.hdr.type == HPS_MSG_WRITTEN) {
		EXPECT_EQ(SHOWN, ntohl(written->len));
		EXPECT_EQ(SHOWN, hps_check(peer_shared(p), SHOWN, 0, 1));
		EXPECT_TRUE(hps_until_outq(s, 0));
	}
	return msg.hdr.type;
}

TEST_F(wire, sinkavail)
{
	struct peer *p = &self->peer;
	int s = writes(_metadata, &self->t, self->l, &self->at, p);

	ASSERT_OK(peer_show(p, PEER_SHARED));
	ASSERT_TRUE(hps_settle());
	EXPECT_EQ(HPS_MSG_WRITTEN, comes_by(_metadata, p, s));
	/* Once */
	EXPECT_EQ(HPS_MSG_SRCAVAIL, comes_by(_metadata, p, s));
}

/* It has sent something meanwhile. */
TEST_F(wire, sinkavail_crossed)
{
	struct peer *p = &self->peer;
	int s = writes(_metadata, &self->t, self->l, &self->at, p);
	struct peer_msg msg;

	ASSERT_EQ(10, send(s, buf, 10, 0));
	ASSERT_OK(peer_show(p, PEER_SHARED));
	ASSERT_OK(peer_next(p, &msg));
	EXPECT_EQ(HPS_MSG_DATA, msg.hdr.type);
	EXPECT_EQ(HPS_MSG_SRCAVAIL, comes_by(_metadata, p, s));
}

/* There is no room for all of it. */
TEST_F(wire, sinkavail_small)
{
	struct peer *p = &self->peer;
	int s = writes(_metadata, &self->t, self->l, &self->at, p);

	ASSERT_OK(peer_show(p, SHOWN - 1));
	EXPECT_EQ(HPS_MSG_SRCAVAIL, comes_by(_metadata, p, s));
}

TEST_F(wire, sinkcancel)
{
	struct peer *p = &self->peer;
	int s = writes(_metadata, &self->t, self->l, &self->at, p);
	struct peer_msg msg;

	ASSERT_OK(peer_show(p, PEER_SHARED));
	ASSERT_OK(peer_send(p, HPS_MSG_SINKCANCEL, NULL, 0));
	ASSERT_OK(peer_next(p, &msg));
	EXPECT_EQ(HPS_MSG_SINKACK, msg.hdr.type);
	EXPECT_TRUE(msg.hdr.flags & HPS_FLAG_SINK);
	EXPECT_EQ(HPS_MSG_SRCAVAIL, comes_by(_metadata, p, s));
	/* Before the next one there is nothing to be taken back. */
	peer_send(p, HPS_MSG_SINKCANCEL, NULL, 0);
	EXPECT_TRUE(hps_wait_exactly(s, POLLHUP) & POLLHUP);
	EXPECT_EQ(EPROTO, hps_error(s));
}

/* A key that is none ends the connection, and no other. */
TEST_F(wire, sinkavail_bad_key)
{
	struct peer *p = &self->peer;
	int s = writes(_metadata, &self->t, self->l, &self->at, p);

	ASSERT_OK(peer_sinkavail(p, 4096, 0x12345678, PEER_SHARED));
	ASSERT_TRUE(hps_settle());
	ASSERT_EQ(SHOWN, send(s, buf, SHOWN, MSG_ZEROCOPY));
	EXPECT_TRUE(hps_wait_exactly(s, POLLHUP) & POLLHUP);
	EXPECT_NE(0, hps_error(s));
	still_works(_metadata, &self->t, self->l, &self->at);
}

static void sinkavail_wrong(struct __test_metadata *_metadata, const struct hps *t, int l,
			    const struct hps_addr *at, uint64_t addr, uint32_t len, int times)
{
	long before = hps_stat("violation_sink");
	struct peer peer = { 0 };
	int s = writes(_metadata, t, l, at, &peer);

	while (times--)
		peer_sinkavail(&peer, addr, 1, len);
	EXPECT_TRUE(hps_wait_exactly(s, POLLHUP) & POLLHUP);
	EXPECT_EQ(EPROTO, hps_error(s));
	EXPECT_EQ(before + 1, hps_stat("violation_sink"));
	EXPECT_TRUE(peer_gone(&peer));
	peer_free(&peer);
	close(s);
}

TEST_F(wire, sinkavail_wrong)
{
	sinkavail_wrong(_metadata, &self->t, self->l, &self->at, 0, 0, 1);
	sinkavail_wrong(_metadata, &self->t, self->l, &self->at, 0, HPS_SOURCE_MAX + 1, 1);
	sinkavail_wrong(_metadata, &self->t, self->l, &self->at, -100, 101, 1);
	/* Before it was heard of */
	sinkavail_wrong(_metadata, &self->t, self->l, &self->at, 0, 100, 2);
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* As shows(), by our asking at the word of a reader. */
static void shows_word(struct __test_metadata *_metadata, const struct hps *t, int l,
		       const struct hps_addr *at, struct peer *p, struct hps_call *call,
		       struct hps_word *word)
{
	long before;
	struct peer_msg msg;

	*call = (struct hps_call){
		.fn = hps_recv_call, .buf = buf, .len = SHOWN, .arg = MSG_WAITALL,
	};
	peer_hello(p, 40000, hps_port(at));
	p->hello.features = htobe64(HPS_FEATURE_WRITE | HPS_FEATURE_SWAP);
	ASSERT_OK(hps_set(l, SOL_HPSOCK, HPSOCK_ZCOPY_SYNC, HPSOCK_ZCOPY_SYNC_CAS));
	ASSERT_TRUE(hps_set_zcopy("protect"));
	ASSERT_OK(peer_dial(p, t, at));
	ASSERT_TRUE(hps_set_zcopy("auto"));
	call->fd = hps_accept(l);
	ASSERT_OK(call->fd);
	ASSERT_OK(hps_set(call->fd, SOL_HPSOCK, HPSOCK_ZCOPY_SINK, 1));
	hps_block(call);
	hps_fill(peer_shared(p), SHOWN, 0, 1);
	ASSERT_OK(peer_lend(p, SHOWN));
	ASSERT_TRUE(hps_done(call));
	ASSERT_EQ(SHOWN, call->ret);
	ASSERT_OK(peer_next(p, &msg));
	ASSERT_EQ(HPS_MSG_READDONE, msg.hdr.type);
	*call = (struct hps_call){
		.fn = hps_recv_call, .fd = call->fd, .buf = buf, .len = SHOWN, .arg = MSG_WAITALL,
	};
	before = hps_stat("sink_shown");
	hps_block(call);
	ASSERT_OK(peer_next(p, &msg));
	ASSERT_EQ(HPS_MSG_WORD, msg.hdr.type);
	memcpy(word, msg.data, sizeof(*word));
	EXPECT_EQ(0, be64toh(word->addr) % 8);
	ASSERT_TRUE(hps_until_stat("sink_shown", before + 1));
	hps_fill(peer_shared(p), SHOWN, SHOWN, 1);
}

/* Does the reader wait for what we send next? It does not wait for anybody else then. */
static bool asks(struct peer *p, const struct hps_word *word, uint32_t at)
{
	return peer_swaps(p, be64toh(word->addr), ntohl(word->rkey), HPS_WORD_WAITS | at);
}

/* And where? */
static void asks_where(struct __test_metadata *_metadata, struct peer *p,
		       const struct hps_word *word, struct hps_sinkavail *sink)
{
	const uint8_t *read = peer_read(p, sizeof(*sink), be64toh(word->addr) +
					offsetof(struct hps_shown, sink), ntohl(word->rkey));

	ASSERT_NE(NULL, read);
	memcpy(sink, read, sizeof(*sink));
	EXPECT_EQ(SHOWN, ntohl(sink->len));
}

TEST_F(wire, word)
{
	struct peer *p = &self->peer;
	struct hps_sinkavail sink;
	struct hps_word word;
	struct hps_call call;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	shows_word(_metadata, &self->t, self->l, &self->at, p, &call, &word);
	/* It was set for what we send next, and is swapped once. */
	EXPECT_FALSE(asks(p, &word, p->tx_used - 1));
	EXPECT_FALSE(asks(p, &word, p->tx_used + 1));
	EXPECT_TRUE(asks(p, &word, p->tx_used));
	EXPECT_FALSE(asks(p, &word, p->tx_used));
	asks_where(_metadata, p, &word, &sink);
	ASSERT_OK(write_there(p, &sink, SHOWN));
	EXPECT_FALSE(call.done);
	ASSERT_OK(peer_written(p, SHOWN));
	ASSERT_TRUE(hps_done(&call));
	ASSERT_EQ(SHOWN, call.ret);
	EXPECT_EQ(SHOWN, hps_check(buf, SHOWN, SHOWN, 1));
	/* With the key for its memory nothing can be done any more. */
	memset(buf, 0xee, SHOWN);
	write_there(p, &sink, SHOWN);
	EXPECT_TRUE(hps_wait(call.fd, POLLERR) & POLLERR);
	EXPECT_EQ(0xee, (uint8_t)buf[0]);
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* The word can be reached by its key, and what is beside it cannot. */
TEST_F(wire, word_only)
{
	struct peer *p = &self->peer;
	struct hps_word word;
	struct hps_call call;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	shows_word(_metadata, &self->t, self->l, &self->at, p, &call, &word);
	EXPECT_NE(NULL, peer_read(p, sizeof(struct hps_shown), be64toh(word.addr),
				  ntohl(word.rkey)));
	peer_read(p, sizeof(struct hps_shown), be64toh(word.addr) + 1, ntohl(word.rkey));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_TRUE(peer_gone(p));
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* Nothing can be written to it. */
TEST_F(wire, word_written)
{
	struct peer *p = &self->peer;
	struct hps_word word;
	struct hps_call call;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	shows_word(_metadata, &self->t, self->l, &self->at, p, &call, &word);
	peer_write(p, sizeof(uint64_t), be64toh(word.addr), ntohl(word.rkey));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_TRUE(peer_gone(p));
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* What else comes of the stream ends it, though the word was swapped. */
TEST_F(wire, word_void)
{
	long before = hps_stat("violation_sink");
	struct peer *p = &self->peer;
	struct hps_word word;
	struct hps_call call;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	shows_word(_metadata, &self->t, self->l, &self->at, p, &call, &word);
	EXPECT_TRUE(asks(p, &word, p->tx_used));
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, peer_shared(p), 1000));
	ASSERT_TRUE(hps_until_inq(call.fd, 0));
	peer_written(p, SHOWN);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(1000, call.ret);
	EXPECT_EQ(EPROTO, hps_error(call.fd));
	EXPECT_EQ(before + 1, hps_stat("violation_sink"));
}

/* Likewise, asked or not. */
static void word_cancelled(struct __test_metadata *_metadata, const struct hps *t, int l,
			   const struct hps_addr *at, struct peer *p, bool swapped)
{
	struct hps_sinkavail sink;
	struct hps_word word;
	struct hps_call call;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	hps_catch(SIGUSR1, 0);
	shows_word(_metadata, t, l, at, p, &call, &word);
	EXPECT_EQ(swapped, swapped && asks(p, &word, p->tx_used));
	asks_where(_metadata, p, &word, &sink);
	cancels(_metadata, p, &call, &sink, swapped);
}

TEST_F(wire, word_cancelled)
{
	word_cancelled(_metadata, &self->t, self->l, &self->at, &self->peer, false);
}

TEST_F(wire, word_cancelled_late)
{
	word_cancelled(_metadata, &self->t, self->l, &self->at, &self->peer, true);
}

/* We have no resources to ask, so a reader tells us of no word. */
TEST_F(wire, word_shallow)
{
	struct peer *p = &self->peer;
	struct hps_sinkavail sink;
	struct hps_call call;

	ASSERT_OK(hps_set(self->l, SOL_HPSOCK, HPSOCK_ZCOPY_SYNC, HPSOCK_ZCOPY_SYNC_CAS));
	p->shallow = PEER_ASKS_NOT;
	shows(_metadata, &self->t, self->l, &self->at, p, &call, &sink);
	ASSERT_OK(write_there(p, &sink, SHOWN));
	ASSERT_OK(peer_written(p, SHOWN));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(SHOWN, hps_check(buf, SHOWN, SHOWN, 1));
}

/* The other way round: it asks at ours before it offers something. */
TEST_F(wire, asked)
{
	long asked, swapped;
	struct peer *p = &self->peer;
	int s;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	s = writes(_metadata, &self->t, self->l, &self->at, p);
	ASSERT_OK(peer_word(p));
	asked = hps_stat("sink_asked");
	swapped = hps_stat("sink_swapped");
	ASSERT_OK(peer_waits(p, PEER_SHARED));
	ASSERT_TRUE(hps_settle());
	EXPECT_EQ(HPS_MSG_WRITTEN, comes_by(_metadata, p, s));
	EXPECT_EQ(0, peer_shown(p)->word);
	EXPECT_EQ(asked + 1, hps_stat("sink_asked"));
	EXPECT_EQ(swapped + 1, hps_stat("sink_swapped"));
	/* Nobody waits now. */
	EXPECT_EQ(HPS_MSG_SRCAVAIL, comes_by(_metadata, p, s));
	EXPECT_EQ(asked + 2, hps_stat("sink_asked"));
	EXPECT_EQ(swapped + 1, hps_stat("sink_swapped"));
	/* That was not read, so we do not wait either. */
	EXPECT_EQ(HPS_MSG_SRCAVAIL, comes_by(_metadata, p, s));
	EXPECT_EQ(asked + 2, hps_stat("sink_asked"));
}

/* What was set for another message is not swapped. */
TEST_F(wire, asked_crossed)
{
	struct peer *p = &self->peer;
	struct peer_msg msg;
	int s;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	s = writes(_metadata, &self->t, self->l, &self->at, p);
	ASSERT_OK(peer_word(p));
	ASSERT_OK(peer_waits(p, PEER_SHARED));
	ASSERT_EQ(10, send(s, buf, 10, 0));
	ASSERT_OK(peer_next(p, &msg));
	EXPECT_EQ(HPS_MSG_DATA, msg.hdr.type);
	EXPECT_EQ(HPS_MSG_SRCAVAIL, comes_by(_metadata, p, s));
	EXPECT_NE(0, peer_shown(p)->word);
}

/* There is no room for all of it. */
TEST_F(wire, asked_small)
{
	struct peer *p = &self->peer;
	int s;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	s = writes(_metadata, &self->t, self->l, &self->at, p);
	ASSERT_OK(peer_word(p));
	ASSERT_OK(peer_waits(p, SHOWN - 1));
	ASSERT_TRUE(hps_settle());
	EXPECT_EQ(HPS_MSG_SRCAVAIL, comes_by(_metadata, p, s));
	EXPECT_EQ(0, peer_shown(p)->word);
}

/* After SINKCANCEL it is not asked any more for what comes next, whatever the word says. */
TEST_F(wire, asked_no_more)
{
	struct peer *p = &self->peer;
	struct peer_msg msg;
	long asked;
	int s;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	s = writes(_metadata, &self->t, self->l, &self->at, p);
	ASSERT_OK(peer_word(p));
	ASSERT_OK(peer_waits(p, PEER_SHARED));
	asked = hps_stat("sink_asked");
	ASSERT_OK(peer_send(p, HPS_MSG_SINKCANCEL, NULL, 0));
	ASSERT_OK(peer_next(p, &msg));
	EXPECT_EQ(HPS_MSG_SINKACK, msg.hdr.type);
	EXPECT_EQ(HPS_MSG_SRCAVAIL, comes_by(_metadata, p, s));
	EXPECT_EQ(asked, hps_stat("sink_asked"));
	EXPECT_NE(0, peer_shown(p)->word);
}

static void asked_wrong(struct __test_metadata *_metadata, const struct hps *t, int l,
			const struct hps_addr *at, int which)
{
	long before = hps_stat("violation_sink");
	struct peer peer = { 0 };
	struct hps_shown *shown;
	int s = writes(_metadata, t, l, at, &peer);

	switch (which) {
	case 0:
		peer_word_at(&peer, 4097, 1);
		break;
	case 1:
		peer_word_at(&peer, -8, 1);
		break;
	case 2:
		/* Twice */
		ASSERT_OK(peer_word(&peer));
		ASSERT_EQ(10, send(s, buf, 10, 0));
		peer_word(&peer);
		break;
	case 3:
		/* It has no resources to ask. */
		peer_free(&peer);
		close(s);
		peer.shallow = PEER_NOT_ASKED;
		s = writes(_metadata, t, l, at, &peer);
		peer_word(&peer);
		break;
	default:
		/* What is said to be there cannot be. */
		ASSERT_OK(peer_word(&peer));
		shown = peer_shown(&peer);
		ASSERT_OK(peer_waits(&peer, which == 4 ? 0 : HPS_SOURCE_MAX + 1));
		ASSERT_NE(0, shown->word);
		ASSERT_TRUE(hps_settle());
		ASSERT_EQ(SHOWN, send(s, buf, SHOWN, MSG_ZEROCOPY));
	}
	EXPECT_TRUE(hps_wait_exactly(s, POLLHUP) & POLLHUP) TH_LOG("%d", which);
	EXPECT_EQ(EPROTO, hps_error(s)) TH_LOG("%d", which);
	EXPECT_EQ(before + 1, hps_stat("violation_sink")) TH_LOG("%d", which);
	EXPECT_TRUE(peer_gone(&peer));
	peer_free(&peer);
	close(s);
}

TEST_F(wire, asked_wrong)
{
	int which;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	for (which = 0; which < 6; which++)
		asked_wrong(_metadata, &self->t, self->l, &self->at, which);
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* A key that is none ends the connection, and no other. */
TEST_F(wire, asked_bad_key)
{
	struct peer *p = &self->peer;
	int s;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	s = writes(_metadata, &self->t, self->l, &self->at, p);
	ASSERT_OK(peer_word_at(p, 4096, 0x12345678));
	ASSERT_TRUE(hps_settle());
	ASSERT_EQ(SHOWN, send(s, buf, SHOWN, MSG_ZEROCOPY));
	EXPECT_TRUE(hps_wait_exactly(s, POLLHUP) & POLLHUP);
	EXPECT_NE(0, hps_error(s));
	still_works(_metadata, &self->t, self->l, &self->at);
}

/*
 * A key is good for all connections of a device, and until it is destroyed: no memory is
 * given back before, though the connection that it was for is at its end. The test makes it
 * take a second to destroy one, on another processor than its own.
 */
FIXTURE(others) {
	struct hps t;
	struct hps_addr at;
	int l;
	struct peer peer, other;
	cpu_set_t cpus;
};

FIXTURE_VARIANT(others) {
	int af;
};

FIXTURE_VARIANT_ADD(others, hpsock) { AF_INET };

FIXTURE_SETUP(others)
{
	cpu_set_t cpus;

	hps_init(&self->t, true, variant->af);
	if (!getenv("HPSOCK_DELAY_KO") || access("/sys/kernel/debug/kprobes", F_OK))
		SKIP(return, "no kprobes in this kernel");
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	ASSERT_OK(sched_getaffinity(0, sizeof(self->cpus), &self->cpus));
	if (CPU_COUNT(&self->cpus) < 2)
		SKIP(return, "one processor");
	ASSERT_OK(sched_setaffinity(0, sizeof(cpus), &cpus));
	self->l = hps_listen(&self->t, 4, &self->at);
	ASSERT_OK(self->l);
	ASSERT_EQ(0, hps_run("insmod $HPSOCK_DELAY_KO symbol=hps_key_destroy us=1000000 cpu=1"));
}

FIXTURE_TEARDOWN(others)
{
	peer_free(&self->peer);
	peer_free(&self->other);
	if (!access("/sys/module/hpsock_delay", F_OK))
		EXPECT_EQ(0, hps_run("rmmod hpsock_delay"));
	sched_setaffinity(0, sizeof(self->cpus), &self->cpus);
}

/* Was the other processor delayed since? */
static bool delayed(long *before)
{
	long now = hps_number("/sys/module/hpsock_delay/parameters/count", 0), was = *before;

	*before = now;
	return now > was;
}

TEST_F_TIMEOUT(others, lent, 120 * hps_slow())
{
	struct hps_srcavail src;
	struct hps_call call;
	struct peer_msg msg;
	int64_t end = hps_now() + hps_deadline();
	const uint8_t *read;
	long before = 0;
	bool hit;

	do {
		ASSERT_LT(hps_now(), end);
		call = (struct hps_call){ .fn = hps_send_call, .buf = buf, .len = SHOWN };
		peer_hello(&self->peer, 40000, hps_port(&self->at));
		peer_takes_offers(&self->peer);
		ASSERT_OK(peer_dial(&self->peer, &self->t, &self->at));
		call.fd = hps_accept(self->l);
		ASSERT_OK(call.fd);
		ASSERT_OK(hps_set(call.fd, SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_WAIT));
		peer_hello(&self->other, 40001, hps_port(&self->at));
		ASSERT_OK(peer_dial(&self->other, &self->t, &self->at));
		ASSERT_OK(hps_accept(self->l));
		memset(buf, 0x11, SHOWN);
		hps_block(&call);
		ASSERT_OK(peer_next(&self->peer, &msg));
		ASSERT_EQ(HPS_MSG_SRCAVAIL, msg.hdr.type);
		memcpy(&src, msg.data, sizeof(src));
		read = peer_read(&self->other, 4096, be64toh(src.addr), ntohl(src.rkey));
		ASSERT_NE(NULL, read);
		EXPECT_EQ(0x11, read[0]);
		/* Those of the run before are gone. */
		ASSERT_TRUE(hps_settle());
		delayed(&before);
		peer_disconnect(&self->peer);
		ASSERT_TRUE(hps_done(&call));
		hit = delayed(&before);
		memset(buf, 0xee, SHOWN);
		read = peer_read(&self->other, 4096, be64toh(src.addr), ntohl(src.rkey));
		EXPECT_TRUE(!read || read[0] != 0xee);
		close(call.fd);
		peer_free(&self->peer);
		peer_free(&self->other);
	} while (!hit);
}

/* Up to SRCCANCEL, with a send that waits for us. */
static void cancelled(struct __test_metadata *_metadata, const struct hps *t, int l,
		      const struct hps_addr *at, struct peer *p, struct hps_call *call)
{
	struct timeval some = { .tv_usec = 50000 };
	const struct hps_srccancel *cancel;
	struct peer_msg msg;

	peer_takes_offers(p);
	ASSERT_OK(peer_dial(p, t, at));
	call->fd = hps_accept(l);
	ASSERT_OK(call->fd);
	ASSERT_OK(hps_set(call->fd, SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_WAIT));
	ASSERT_OK(setsockopt(call->fd, SOL_SOCKET, SO_SNDTIMEO, &some, sizeof(some)));
	hps_start(call);
	ASSERT_OK(peer_next(p, &msg));
	ASSERT_EQ(HPS_MSG_SRCAVAIL, msg.hdr.type);
	do {
		ASSERT_OK(peer_next(p, &msg));
	} while (msg.hdr.type == HPS_MSG_DATA);
	ASSERT_EQ(HPS_MSG_SRCCANCEL, msg.hdr.type);
	cancel = (const void *)msg.data;
	EXPECT_EQ(htonl(1), cancel->count);
}

/* What we say that we have read is not sent again, and the rest is. */
TEST_F(wire, cancelack)
{
	enum { LEN = 300000, DONE = 1000 };
	struct hps_call call = { .fn = hps_send_call, .buf = buf, .len = LEN };
	struct peer *p = &self->peer;
	struct peer_msg msg;
	uint32_t got = DONE;

	hps_fill(buf, LEN, 0, 1);
	cancelled(_metadata, &self->t, self->l, &self->at, p, &call);
	ASSERT_OK(peer_cancelack(p, DONE));
	ASSERT_TRUE(hps_done(&call));
	ASSERT_LT(DONE, call.ret);
	while (got < call.ret) {
		ASSERT_OK(peer_next(p, &msg));
		ASSERT_EQ(HPS_MSG_DATA, msg.hdr.type);
		ASSERT_EQ(msg.len, hps_check(msg.data, msg.len, got, 1));
		got += msg.len;
	}
	EXPECT_EQ(got, call.ret);
}

/* More than it was offered. */
TEST_F(wire, cancelack_of_too_much)
{
	enum { LEN = 300000 };
	struct hps_call call = { .fn = hps_send_call, .buf = buf, .len = LEN };
	long before = hps_stat("violation_source");
	struct peer *p = &self->peer;

	cancelled(_metadata, &self->t, self->l, &self->at, p, &call);
	ASSERT_OK(peer_cancelack(p, LEN));
	ASSERT_TRUE(hps_done(&call));
	EXPECT_TRUE(hps_wait(call.fd, POLLERR) & POLLERR);
	EXPECT_EQ(before + 1, hps_stat("violation_source"));
	EXPECT_TRUE(peer_gone(p));
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* Gone instead of an answer. */
TEST_F(wire, cancelack_never)
{
	enum { LEN = 300000 };
	struct hps_call call = { .fn = hps_send_call, .buf = buf, .len = LEN };
	struct peer *p = &self->peer;

	cancelled(_metadata, &self->t, self->l, &self->at, p, &call);
	peer_disconnect(p);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_TRUE(hps_wait_exactly(call.fd, POLLHUP) & POLLHUP);
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* A message longer than any buffer: the device itself ends it. */
TEST_F(wire, too_long)
{
	struct peer *p = &self->peer;
	int s;

	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	if (ntohl(p->theirs.buf_size) >= PEER_SLOT)
		SKIP(return, "buffers are as long as we can send");
	memset(buf, 0, PEER_SLOT);
	peer_raw(p, buf, ntohl(p->theirs.buf_size) + 1);
	EXPECT_TRUE(hps_wait(s, POLLERR) & POLLERR);
	EXPECT_NE(0, hps_error(s));
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* Credits by the thousand cost nobody anything. */
TEST_F(wire, credit_flood)
{
	struct peer *p = &self->peer;
	int s, i;

	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	for (i = 0; i < 2000; i++) {
		ASSERT_OK(peer_send(p, HPS_MSG_CREDIT, NULL, 0));
	}
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, "x", 1));
	EXPECT_EQ(1, recv(s, buf, 1, 0));
	EXPECT_EQ('x', buf[0]);
}

/* Gone without a word: what arrived is there, then a reset. */
TEST_F(wire, disconnected)
{
	struct peer *p = &self->peer;
	int s;

	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	hps_fill(buf, 100, 0, 1);
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, 100));
	peer_disconnect(p);
	EXPECT_TRUE(hps_wait(s, POLLERR) & POLLERR);
	EXPECT_EQ(100, hps_pull(s, 200, 200, 1));
	EXPECT_EQ(ECONNRESET, errno);
	still_works(_metadata, &self->t, self->l, &self->at);
}

TEST_F(wire, disconnected_before_accept)
{
	struct peer *p = &self->peer;
	int s;

	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, 100));
	peer_disconnect(p);
	s = hps_accept(self->l);
	ASSERT_OK(s);
	EXPECT_TRUE(hps_wait(s, POLLERR) & POLLERR);
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* FIN, and then gone before its FINACK */
TEST_F(wire, disconnected_after_fin)
{
	struct peer *p = &self->peer;
	int s;

	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	s = hps_accept(self->l);
	ASSERT_OK(s);
	ASSERT_OK(peer_send(p, HPS_MSG_FIN, NULL, 0));
	peer_disconnect(p);
	EXPECT_TRUE(hps_wait_exactly(s, POLLHUP) & POLLHUP);
	EXPECT_EQ(EPIPE, hps_error(s));
	EXPECT_ERRNO(EPIPE, send(s, "x", 1, MSG_NOSIGNAL));
}

/* A peer that is killed */
TEST_F(wire, killed)
{
	pid_t pid = hps_fork();
	int s;

	ASSERT_OK(pid);
	if (!pid) {
		struct peer peer = { 0 };

		if (peer_dial(&peer, &self->t, &self->at) ||
		    peer_send(&peer, HPS_MSG_DATA, buf, 100))
			_exit(1);
		pause();
	}
	s = hps_accept(self->l);
	ASSERT_OK(s);
	ASSERT_TRUE(hps_until_inq(s, 100));
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, hps_reap(pid));
	EXPECT_EQ(100, recv(s, buf, 1000, 0));
	EXPECT_ERRNO(ECONNRESET, recv(s, buf, 1000, 0));
}

/* Requests left alone, by the dozen, while the listener goes */
TEST_F(wire, listener_goes)
{
	struct peer peer[8] = { 0 };
	struct hps_addr at;
	int l = hps_listen(&self->t, 8, &at), i;

	ASSERT_OK(l);
	for (i = 0; i < 8; i++) {
		ASSERT_OK(peer_dial(&peer[i], &self->t, &at));
	}
	close(l);
	for (i = 0; i < 8; i++) {
		EXPECT_TRUE(peer_gone(&peer[i]));
		peer_free(&peer[i]);
	}
	still_works(_metadata, &self->t, self->l, &self->at);
}

/* SOCK_SEQPACKET: a stream of records */
FIXTURE(records) {
	struct hps t;
	struct hps_addr at;
	int l, s;
	struct peer peer;
};

FIXTURE_VARIANT(records) {
	int af;
};

FIXTURE_VARIANT_ADD(records, hpsock) { AF_INET };
FIXTURE_VARIANT_ADD(records, hpsock6) { AF_INET6 };

static int accept_records(struct peer *p, const struct hps *t, int l, const struct hps_addr *at)
{
	memset(p, 0, sizeof(*p));
	peer_hello(p, 40000, hps_port(at));
	p->hello.type = SOCK_SEQPACKET;
	return peer_dial(p, t, at) ? -1 : hps_accept(l);
}

FIXTURE_SETUP(records)
{
	hps_init(&self->t, true, variant->af);
	self->t.type = SOCK_SEQPACKET;
	self->l = hps_listen(&self->t, 4, &self->at);
	ASSERT_OK(self->l);
	ASSERT_TRUE(hps_set_zcopy("protect"));
	self->s = accept_records(&self->peer, &self->t, self->l, &self->at);
	ASSERT_OK(self->s);
}

FIXTURE_TEARDOWN(records)
{
	hps_set_zcopy("auto");
	peer_free(&self->peer);
}

/* A record of @len bytes, all of them @byte, at the end of @buf; returns its new length. */
static int add_record(char *buf, int at, int flags, int byte, int len)
{
	struct hps_record head = { .flags = flags, .pad = { 1, 2, 3 }, .len = htonl(len) };

	memcpy(buf + at, &head, sizeof(head));
	memset(buf + at + sizeof(head), byte, len);
	return at + sizeof(head) + len;
}

#define PIECE	HPS_RECORD_PIECE
#define END	(HPS_RECORD_PIECE | HPS_RECORD_END)

TEST_F(records, well_behaved)
{
	struct peer *p = &self->peer;
	int len, i;

	EXPECT_EQ(SOCK_SEQPACKET, p->theirs.type);
	/* Two and a half in one message, and what is unknown is ignored. */
	len = add_record(buf, 0, END | 0x70, 'a', 10);
	len = add_record(buf, len, END, 'b', 0);
	len = add_record(buf, len, PIECE, 'c', 5);
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, len));
	EXPECT_EQ(10, recv(self->s, buf, 100, 0));
	EXPECT_EQ(0, recv(self->s, buf, 100, 0));
	EXPECT_ERRNO(EAGAIN, recv(self->s, buf, 100, MSG_DONTWAIT));
	EXPECT_EQ(0, hps_poll(self->s, POLLIN, 0));
	/* The other half, a byte each. */
	len = add_record(buf, 0, END, 'd', 3);
	for (i = 0; i < len; i++) {
		EXPECT_EQ(0, hps_poll(self->s, POLLIN, 0));
		ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf + i, 1));
	}
	EXPECT_EQ(8, recv(self->s, buf, 100, 0));
	EXPECT_EQ(0, memcmp(buf, "cccccddd", 8));
	/* One that is not finished, and one that is taken back. */
	len = add_record(buf, 0, PIECE, 'e', 5);
	len = add_record(buf, len, HPS_RECORD_PIECE | HPS_RECORD_ABORT, 'e', 0);
	len = add_record(buf, len, END, 'f', 2);
	len = add_record(buf, len, PIECE, 'g', 5);
	ASSERT_OK(peer_send(p, HPS_MSG_DATA, buf, len));
	ASSERT_OK(peer_send(p, HPS_MSG_FIN, NULL, 0));
	EXPECT_EQ(2, recv(self->s, buf, 100, 0));
	EXPECT_EQ(0, memcmp(buf, "ff", 2));
	EXPECT_EQ(0, recv(self->s, buf, 100, 0));
}

static int bad_record(struct peer *p, int which)
{
	int len;

	switch (which) {
	case 0:
		len = add_record(buf, 0, HPS_RECORD_END, 'a', 10);
		return peer_send(p, HPS_MSG_DATA, buf, len);
	case 1:
		len = add_record(buf, 0, PIECE | HPS_RECORD_ABORT, 'a', 10);
		return peer_send(p, HPS_MSG_DATA, buf, len);
	case 2:
		return peer_srcavail(p, 0, 1, 1000);
	case 3:
		return peer_urgent(p, 10);
	case 4:
		return peer_srccancel(p, 1);
	case 5:
		len = add_record(buf, 0, PIECE, 'a', 0);
		return peer_send(p, HPS_MSG_DATA, buf, len);
	case 6:
		/* More is offered than the piece has. */
		len = add_record(buf, 0, END, 'a', 999);
		return peer_send(p, HPS_MSG_DATA, buf, len - 999) ?: peer_srcavail(p, 0, 1, 1000);
	default:
		len = add_record(buf, 0, END, 'a', 10);
		p->flags = HPS_FLAG_URGENT;
		return peer_send(p, HPS_MSG_DATA, buf, len);
	}
}

TEST_F_TIMEOUT(records, bad, 200 * hps_slow())
{
	int which, c;

	for (which = 0; which < 8; which++) {
		long before = hps_stat("violation_state");

		ASSERT_OK(bad_record(&self->peer, which));
		EXPECT_TRUE(hps_wait(self->s, POLLERR) & POLLERR) TH_LOG("%d", which);
		EXPECT_EQ(before + 1, hps_stat("violation_state")) TH_LOG("%d", which);
		EXPECT_ERRNO(EPROTO, recv(self->s, buf, 100, 0));
		EXPECT_TRUE(peer_gone(&self->peer));
		peer_free(&self->peer);
		close(self->s);
		self->s = accept_records(&self->peer, &self->t, self->l, &self->at);
		ASSERT_OK(self->s);
	}
	c = hps_dial(&self->t, self->at);
	ASSERT_OK(c);
}

/* Each record has its head first, so no memory is shown for what comes next. */
TEST_F(records, shows_no_memory)
{
	long shown = hps_stat("sink_shown"), before = hps_stat("violation_sink");
	struct hps_call call = { .fn = hps_recv_call, .buf = buf, .len = SHOWN };
	struct peer *p = &self->peer;
	struct peer_msg msg;
	char head[16];
	int i, len;

	peer_free(p);
	close(self->s);
	peer_hello(p, 40000, hps_port(&self->at));
	p->hello.type = SOCK_SEQPACKET;
	p->hello.features = htobe64(HPS_FEATURE_WRITE);
	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	self->s = hps_accept(self->l);
	ASSERT_OK(self->s);
	ASSERT_OK(hps_set(self->s, SOL_HPSOCK, HPSOCK_ZCOPY_SINK, 1));
	call.fd = self->s;
	hps_fill(peer_shared(p), SHOWN, 0, 1);
	for (i = 0; i < 2; i++) {
		hps_block(&call);
		len = add_record(head, 0, END, 0, 0);
		((struct hps_record *)head)->len = htonl(SHOWN);
		ASSERT_OK(peer_send(p, HPS_MSG_DATA, head, len));
		/* Where that is to go it waits now. */
		ASSERT_TRUE(hps_settle());
		EXPECT_EQ(shown, hps_stat("sink_shown"));
		if (i)
			break;
		ASSERT_OK(peer_lend(p, SHOWN));
		ASSERT_TRUE(hps_done(&call));
		ASSERT_EQ(SHOWN, call.ret);
		EXPECT_EQ(SHOWN, hps_check(buf, SHOWN, 0, 1));
		do {
			ASSERT_OK(peer_next(p, &msg));
		} while (msg.hdr.type == HPS_MSG_CREDIT);
		EXPECT_EQ(HPS_MSG_READDONE, msg.hdr.type);
		call = (struct hps_call){
			.fn = hps_recv_call, .fd = self->s, .buf = buf, .len = SHOWN,
		};
	}
	peer_written(p, SHOWN);
	ASSERT_TRUE(hps_done(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_EQ(EPROTO, call.err);
	EXPECT_EQ(before + 1, hps_stat("violation_sink"));
	EXPECT_TRUE(peer_gone(p));
}

/* Nor is it accepted by who has lent some. */
TEST_F(records, shown_memory)
{
	long before = hps_stat("violation_sink");
	struct peer *p = &self->peer;
	struct peer_msg msg;

	peer_free(p);
	close(self->s);
	peer_hello(p, 40000, hps_port(&self->at));
	p->hello.type = SOCK_SEQPACKET;
	peer_takes_offers(p);
	ASSERT_OK(peer_dial(p, &self->t, &self->at));
	self->s = hps_accept(self->l);
	ASSERT_OK(self->s);
	ASSERT_OK(hps_zerocopy(&self->t, self->s));
	ASSERT_EQ(SHOWN, send(self->s, buf, SHOWN, MSG_ZEROCOPY));
	do {
		ASSERT_OK(peer_next(p, &msg));
	} while (msg.hdr.type != HPS_MSG_SRCAVAIL);
	ASSERT_OK(peer_sinkavail(p, 4096, 1, SHOWN));
	EXPECT_TRUE(hps_wait_exactly(self->s, POLLHUP) & POLLHUP);
	EXPECT_EQ(EPROTO, hps_error(self->s));
	EXPECT_EQ(before + 1, hps_stat("violation_sink"));
	EXPECT_TRUE(peer_gone(p));
}

/* A reader that waits for the peer's memory may find no connection when it is done. */
TEST_F_TIMEOUT(records, disconnected_while_fetching, 200 * hps_slow())
{
	static const int flags[] = { MSG_DONTWAIT, MSG_PEEK, 0 };
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct ibv_qp_attr silent = { .qp_state = IBV_QPS_ERR };
	struct peer *p = &self->peer;
	char head[8];
	int i;

	if (hps_siw())
		SKIP(return, "the connection of Soft-iWARP ends with the peer's queue pair");
	for (i = 0; i < 3; i++) {
		struct hps_call call = {
			.fn = hps_recv_call, .fd = self->s, .buf = buf, .len = SHOWN,
			.arg = flags[i],
		};

		add_record(head, 0, PIECE, 0, 0);
		((struct hps_record *)head)->len = htonl(SHOWN);
		ASSERT_OK(peer_send(p, HPS_MSG_DATA, head, sizeof(head)));
		ASSERT_OK(peer_lend(p, SHOWN));
		ASSERT_EQ(POLLIN, hps_wait(self->s, POLLIN));
		ASSERT_EQ(0, ibv_modify_qp(p->id->qp, &silent, IBV_QP_STATE));
		hps_block(&call);
		ASSERT_OK(connect(self->s, &none, sizeof(none)));
		ASSERT_TRUE(hps_done(&call));
		EXPECT_EQ(-1, call.ret);
		close(self->s);
		peer_free(p);
		self->s = accept_records(p, &self->t, self->l, &self->at);
		ASSERT_OK(self->s);
	}
}

/* Looks at the message again and again, after a byte that says so. */
static int look(int fd, int said)
{
	static struct mmsghdr msgs[1024];
	struct iovec iov = { buf, sizeof(buf) };
	int i;

	for (i = 0; i < 1024; i++) {
		msgs[i].msg_hdr.msg_iov = &iov;
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	if (write(said, "x", 1) != 1)
		return 1;
	return recvmmsg(fd, msgs, 1024, MSG_PEEK, NULL) != 1024;
}

/* Takes it, and is killed after @us microseconds. */
static int take(int fd, int us)
{
	struct sigevent kills = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL };
	struct itimerspec when = {
		.it_value = { .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000L },
	};
	timer_t timer;

	if (timer_create(CLOCK_MONOTONIC, &kills, &timer) || timer_settime(timer, 0, &when, NULL))
		return 1;
	return recv(fd, buf, sizeof(buf), MSG_TRUNC) < 0;
}

/* Send a message of as many small pieces as the peer takes. Returns how many. */
static int send_pieces(struct peer *p)
{
	uint32_t room = peer_room(p);
	int len, pieces = 0;

	while (p->tx_used != p->granted) {
		for (len = 0; len + 9 <= (int)room; pieces++)
			len = add_record(buf, len, PIECE, 'a', 1);
		if (p->tx_used + 1 == p->granted)
			((struct hps_record *)(buf + len - 9))->flags = END;
		if (peer_send(p, HPS_MSG_DATA, buf, len))
			return -1;
	}
	return pieces;
}

/*
 * To look at very many small pieces takes long, but not if who does is killed. Who takes them
 * is soon done, and leaves no part of them.
 */
TEST_F(records, killed_reading)
{
	struct peer *p = &self->peer;
	int pieces, got, said[2], us = 50;
	char byte;
	pid_t pid;

	peer_free(p);
	close(self->s);
	hps_buffers(self->l, 2 << 20);
	ASSERT_OK(hps_set(self->l, SOL_HPSOCK, HPSOCK_BUF_FIRST, 65536));
	ASSERT_OK(hps_set(self->l, SOL_HPSOCK, HPSOCK_QUOTA, 32));
	self->s = accept_records(p, &self->t, self->l, &self->at);
	ASSERT_OK(self->s);
	pieces = send_pieces(p);
	ASSERT_LT(0, pieces);
	ASSERT_EQ(POLLIN, hps_wait(self->s, POLLIN));
	EXPECT_EQ(pieces, recv(self->s, buf, 1, MSG_PEEK | MSG_TRUNC));
	ASSERT_OK(pipe(said));
	pid = hps_fork();
	ASSERT_OK(pid);
	if (!pid)
		_exit(look(self->s, said[1]));
	ASSERT_EQ(1, read(said[0], &byte, 1));
	ASSERT_OK(kill(pid, SIGKILL));
	/* It would go on for minutes. */
	EXPECT_EQ(128 + SIGKILL, hps_reap(pid));
	/* recvmmsg() may leave to others why it ended early. */
	hps_error(self->s);
	/* That may be before it has begun. */
	do {
		pid = hps_fork();
		ASSERT_OK(pid);
		if (!pid)
			_exit(take(self->s, us));
		ASSERT_NE(1, hps_reap(pid));
		got = recv(self->s, buf, 1, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT);
		us *= 2;
	} while (got == pieces && us < 500000000);
	EXPECT_EQ(-1, got);
	EXPECT_EQ(EAGAIN, errno);
}

/* Nobody listens for streams there. */
TEST_F(records, other_type)
{
	long refused = hps_stat("reject_refused");
	struct peer p = {};

	peer_hello(&p, 40001, hps_port(&self->at));
	EXPECT_ERRNO(ECONNREFUSED, peer_dial(&p, &self->t, &self->at));
	EXPECT_TRUE(peer_told(&p, HPS_REJ_REFUSED));
	EXPECT_EQ(refused + 1, hps_stat("reject_refused"));
	peer_free(&p);
}

/*
 * The other way round: AF_HPSOCK connects to a server in user space, at an
 * address of which the module has no listener.
 */
FIXTURE(server) {
	struct hps t;
	struct hps_addr at;
	int c;
	struct peer peer;
};

FIXTURE_VARIANT(server) {
	int af;
};

FIXTURE_VARIANT_ADD(server, hpsock) { AF_INET };
FIXTURE_VARIANT_ADD(server, hpsock6) { AF_INET6 };

FIXTURE_SETUP(server)
{
	hps_init(&self->t, true, variant->af);
	ASSERT_OK(peer_listen(&self->peer, self->t.b));
	self->at = hps_at(self->t.b, 5000);
	self->c = hps_dial_nb(&self->t, self->at);
	ASSERT_OK(self->c);
	ASSERT_OK(peer_request(&self->peer));
	/* What we answer if nobody changes it */
	peer_hello(&self->peer, 5000, ntohs(self->peer.theirs.src_port));
}

FIXTURE_TEARDOWN(server)
{
	peer_free(&self->peer);
}

TEST_F(server, well_behaved)
{
	struct hps_hello *theirs = &self->peer.theirs;
	struct hps_addr name = hps_name(self->c);
	struct peer_msg msg;

	EXPECT_EQ(htonl(HPS_MAGIC), theirs->magic);
	EXPECT_EQ(HPS_VERSION, theirs->version);
	EXPECT_EQ(SOCK_STREAM, theirs->type);
	EXPECT_EQ(5000, ntohs(theirs->dst_port));
	EXPECT_EQ(hps_port(&name), ntohs(theirs->src_port));
	ASSERT_OK(peer_accept(&self->peer, &self->peer.hello, sizeof(self->peer.hello)));
	EXPECT_WAIT(POLLOUT, self->c);
	EXPECT_EQ(0, hps_error(self->c));
	name = hps_peer(self->c);
	EXPECT_TRUE(hps_same(&name, &self->at));
	ASSERT_EQ(500, hps_push(self->c, 500, 500, 1));
	do {
		ASSERT_OK(peer_receive(&self->peer, &msg, hps_deadline()));
	} while (msg.hdr.type == HPS_MSG_CREDIT);
	ASSERT_EQ(500, msg.len);
	EXPECT_EQ(500, hps_check(msg.data, 500, 0, 1));
	ASSERT_OK(peer_send(&self->peer, HPS_MSG_DATA, msg.data, 500));
	ASSERT_OK(hps_nonblock(self->c, false));
	EXPECT_EQ(500, hps_pull(self->c, 500, 500, 1));
}

/* What a connection attempts where it may be worth it, as in cm.c */
#define TRIES	6

/* REPs that are no answer */
static void bad_answer(struct __test_metadata *_metadata, struct hps *t, int which, size_t len)
{
	long before = hps_stat("violation_hello");
	struct peer peer = { 0 };
	int c;

	ASSERT_OK(peer_listen(&peer, t->b));
	c = hps_dial_nb(t, hps_at(t->b, 5000));
	ASSERT_OK(c);
	ASSERT_OK(peer_request(&peer));
	peer_hello(&peer, 5000, ntohs(peer.theirs.src_port));
	change(&peer.hello, which);
	ASSERT_OK(peer_accept(&peer, &peer.hello, len));
	EXPECT_WAIT(POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP, c);
	EXPECT_EQ(EPROTO, hps_error(c)) TH_LOG("answer %d, %zu bytes", which, len);
	EXPECT_EQ(before + 1, hps_stat("violation_hello"));
	EXPECT_EQ(0, hps_peer(c).len);
	close(c);
	peer_free(&peer);
}

TEST_F(server, bad_answers)
{
	int which;

	/* Or it might go on trying. */
	close(self->c);
	peer_reject(&self->peer, NULL, 0);
	peer_free(&self->peer);
	for (which = 0; which <= 16; which++)
		bad_answer(_metadata, &self->t, which, sizeof(struct hps_hello));
	bad_answer(_metadata, &self->t, -1, 0);
	bad_answer(_metadata, &self->t, -1, 4);
	bad_answer(_metadata, &self->t, -1, 16);
}

/*
 * One answer is enough. After a rejection without words of ours another attempt is made, a
 * few times: it may be that of a responder which could not accept. On iWARP that is a reset
 * if the words got lost.
 */
static void reject(struct __test_metadata *_metadata, struct peer *p, int c, const void *data,
		   size_t len, int err, int tries)
{
	struct pollfd ends[2] = { { .fd = c }, { .fd = p->events->fd, .events = POLLIN } };
	int times = 0;

	do {
		if (times++)
			ASSERT_OK(peer_request(p));
		ASSERT_OK(peer_reject(p, data, len));
		ASSERT_LT(0, poll(ends, 2, hps_deadline()));
	} while (!ends[0].revents);
	EXPECT_WAIT(POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP, c);
	EXPECT_EQ(err, hps_error(c));
	if (hps_siw()) {
		EXPECT_GE(TRIES, times);
	} else {
		EXPECT_EQ(tries, times);
	}
}

static struct hps_reject rejection(int reason)
{
	return (struct hps_reject){
		.magic = htonl(HPS_MAGIC), .version = HPS_VERSION, .reason = reason,
	};
}

TEST_F(server, rejects)
{
	struct hps_reject rej = rejection(HPS_REJ_REFUSED);

	reject(_metadata, &self->peer, self->c, &rej, sizeof(rej), ECONNREFUSED, 1);
}

TEST_F(server, rejects_version)
{
	struct hps_reject rej = rejection(HPS_REJ_VERSION);

	rej.version = 77;
	reject(_metadata, &self->peer, self->c, &rej, sizeof(rej), EPROTO, 1);
}

TEST_F(server, rejects_hello)
{
	struct hps_reject rej = rejection(HPS_REJ_INVALID);

	reject(_metadata, &self->peer, self->c, &rej, sizeof(rej), EPROTO, 1);
}

/* A stranger's rejection has no reason of ours. */
TEST_F(server, rejects_without_reason)
{
	reject(_metadata, &self->peer, self->c, NULL, 0, ECONNREFUSED, TRIES);
}

TEST_F(server, rejects_with_garbage)
{
	memset(buf, 0xff, 100);
	reject(_metadata, &self->peer, self->c, buf, 100, ECONNREFUSED, TRIES);
}

TEST_F(server, rejects_with_unknown_reason)
{
	struct hps_reject rej = rejection(200);

	reject(_metadata, &self->peer, self->c, &rej, sizeof(rej), ECONNREFUSED, TRIES);
}

/* Who is busy is asked again. */
TEST_F(server, rejects_busy)
{
	struct hps_reject rej = rejection(HPS_REJ_BUSY);
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_OK(peer_reject(&self->peer, &rej, sizeof(rej)));
		EXPECT_TRUE(hps_quiet(self->c, POLLIN | POLLOUT));
		ASSERT_OK(peer_request(&self->peer));
		EXPECT_EQ(5000, ntohs(self->peer.theirs.dst_port));
		rej.reason = HPS_REJ_NOMEM;
	}
	peer_hello(&self->peer, 5000, ntohs(self->peer.theirs.src_port));
	ASSERT_OK(peer_accept(&self->peer, &self->peer.hello, sizeof(self->peer.hello)));
	EXPECT_WAIT(POLLOUT, self->c);
	EXPECT_EQ(0, hps_error(self->c));
}

/* Nor is it the last word of rdma_cm, which is all that it says for who could not accept. */
TEST_F(server, rejects_once)
{
	if (hps_siw())
		SKIP(return, "who cannot accept resets TCP's connection");
	ASSERT_OK(peer_reject(&self->peer, NULL, 0));
	EXPECT_TRUE(hps_quiet(self->c, POLLIN | POLLOUT));
	ASSERT_OK(peer_request(&self->peer));
	ASSERT_OK(peer_accept(&self->peer, &self->peer.hello, sizeof(self->peer.hello)));
	EXPECT_WAIT(POLLOUT, self->c);
	EXPECT_EQ(0, hps_error(self->c));
}

/* Who does not answer can be left. */
TEST_F(server, silent)
{
	EXPECT_TRUE(hps_quiet(self->c, POLLIN | POLLOUT));
	EXPECT_ERRNO(EALREADY, hps_connect(self->c, self->at));
	EXPECT_OK(close(self->c));
}

TEST_F(server, dies_silently)
{
	EXPECT_TRUE(hps_quiet(self->c, POLLIN | POLLOUT));
	/* The cm_id goes, which says so. */
	peer_free(&self->peer);
	EXPECT_TRUE(hps_wait(self->c, POLLOUT) & POLLERR);
	EXPECT_EQ(ECONNREFUSED, hps_error(self->c));
}

TEST_F(server, accepts_and_leaves)
{
	ASSERT_OK(peer_accept(&self->peer, &self->peer.hello, sizeof(self->peer.hello)));
	EXPECT_TRUE(hps_wait(self->c, POLLOUT) & POLLOUT);
	/* Before, rdma_cm has no way to tell. */
	ASSERT_OK(peer_established(&self->peer));
	peer_disconnect(&self->peer);
	EXPECT_TRUE(hps_wait(self->c, POLLERR) & POLLERR);
	EXPECT_EQ(ECONNRESET, hps_error(self->c));
}

/* One message before it is fully a connection at our end. */
TEST_F(server, speaks_first)
{
	ASSERT_OK(peer_accept(&self->peer, &self->peer.hello, sizeof(self->peer.hello)));
	EXPECT_WAIT(POLLOUT, self->c);
	hps_fill(buf, 100, 0, 1);
	ASSERT_OK(peer_send(&self->peer, HPS_MSG_DATA, buf, 100));
	ASSERT_OK(hps_nonblock(self->c, false));
	EXPECT_EQ(100, hps_pull(self->c, 100, 100, 1));
}

TEST_HARNESS_MAIN
