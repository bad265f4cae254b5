// SPDX-License-Identifier: GPL-2.0
/*
 * Every row of the table of socket options in af_hpsock(7): what can be set and asked, with
 * what errors and which values, is the same as on a TCP socket, or is listed here with
 * the reason. What the options do is tested where that belongs.
 */
#include "hps_test.h"

#include <linux/net_tstamp.h>

#include "option_names.h"

enum { WORKS, KEPT, GET, REFUSED };

struct row {
	int does, level, name;
	const char *title;
};

static const struct row rows[] = {
#define ROW(does, level, name) { does, level, name, #name },
#include "build/option_rows.h"
#undef ROW
};

enum { NEW, LISTENS, CONNECTED, STATES };

static const char * const states[] = { "new", "listens", "connected" };

/* Options whose values are not TCP's, from a state on: never, or until they are set. */
enum { FIRST = 1, NEVER };

static const struct {
	int level, name, when, from;
} own[] = {
	{ SOL_SOCKET, SO_COOKIE, NEVER, NEW },
	{ SOL_SOCKET, SO_DOMAIN, NEVER, NEW },
	{ SOL_SOCKET, SO_PEERNAME, NEVER, NEW },
	{ SOL_SOCKET, SO_MEMINFO, NEVER, NEW },	/* has the buffers' sizes */
	{ SOL_SOCKET, SO_SNDBUF, FIRST, NEW },
	{ SOL_SOCKET, SO_RCVBUF, FIRST, NEW },
	{ SOL_SOCKET, SO_INCOMING_CPU, FIRST, CONNECTED },	/* of another handler */
	{ SOL_TCP, TCP_CONGESTION, NEVER, NEW },
	{ SOL_TCP, TCP_INFO, NEVER, NEW },
	{ SOL_TCP, TCP_QUICKACK, FIRST, CONNECTED },	/* says what happens, too */
	{ SOL_TCP, TCP_MAXSEG, NEVER, CONNECTED },
	{ SOL_TCP, TCP_WINDOW_CLAMP, FIRST, CONNECTED },
};

static int owns(const struct row *row, int state)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(own); i++)
		if (own[i].level == row->level && own[i].name == row->name && state >= own[i].from)
			return own[i].when;
	return 0;
}

FIXTURE(options) {
	struct hps t;
};

HPS_VARIANTS(options);

FIXTURE_SETUP(options)
{
	hps_init(&self->t, variant->rdma, variant->af);
}

FIXTURE_TEARDOWN(options) { }

/* What getsockopt() says to a buffer of @room bytes. */
struct said {
	int err;
	socklen_t len;
	uint8_t value[512];
};

static struct said ask(int fd, const struct row *row, socklen_t room)
{
	struct said said = { .len = room };

	memset(said.value, 0xa5, sizeof(said.value));
	if (getsockopt(fd, row->level, row->name, said.value, &said.len))
		said.err = errno;
	return said;
}

static int set_to(int fd, const struct row *row, const void *value, socklen_t len)
{
	return setsockopt(fd, row->level, row->name, value, len) ? errno : 0;
}

static int set(int fd, const struct row *row, int val, socklen_t len)
{
	int value[4] = { val };

	return set_to(fd, row, value, len);
}

static bool same(const struct said *a, const struct said *b, bool value)
{
	return a->err == b->err && a->len == b->len &&
	       (!value || !memcmp(a->value, b->value, sizeof(a->value)));
}

static void tell(const char *who, int err, const struct said *said)
{
	int value;

	memcpy(&value, said->value, sizeof(value));
	printf("#   %s: set %s; get %s, %u bytes, %d\n", who, err ? strerrorname_np(err) : "ok",
	       said->err ? strerrorname_np(said->err) : "ok", said->len, value);
}

static bool absent(int err)
{
	return err == ENOPROTOOPT || err == EOPNOTSUPP;
}

/*
 * There is nothing to compare: TCP has no such option in this kernel, or the kernel does
 * not ask a family about SOL_SOCKET yet and has these for those that it knows.
 */
static bool unknown(struct hps *t, const struct row *row)
{
	bool is;
	int fd;

	if (t->rdma && row->level == SOL_SOCKET && hps_kernel() < 603 &&
	    (row->name == SO_REUSEPORT || row->name == SO_ZEROCOPY))
		return true;
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	is = absent(ask(fd, row, 16).err) && absent(set(fd, row, 1, sizeof(int)));
	close(fd);
	return is;
}

/* A socket in a state, and its peer. */
struct opened {
	int fd, peer;
};

static struct opened open_in(struct hps *t, int state)
{
	struct opened o = { .peer = -1 };
	struct hps_addr at;

	if (state == LISTENS)
		o.fd = hps_listen(t, 1, &at);
	else if (state == NEW)
		o.fd = hps_socket(t, 0);
	else if (hps_pair(t, &o.fd, &o.peer))
		o.fd = -1;
	return o;
}

/* A socket of AF_HPSOCK has the options of both levels, as one of AF_INET6. */
static void tcp_like(struct hps *tcp, const struct hps *t, int level)
{
	hps_init(tcp, false, t->rdma && level == SOL_IPV6 ? AF_INET6 : t->af);
}

static struct opened open_tcp(struct hps *t, int level, int state)
{
	struct hps tcp;

	tcp_like(&tcp, t, level);
	return open_in(&tcp, state);
}

static void shut(struct opened o)
{
	close(o.fd);
	if (o.peer >= 0)
		close(o.peer);
}

/* What cannot work is refused, however it is asked for, and nothing is kept of it. */
static bool refused(int fd, const struct row *row)
{
	static const socklen_t lens[] = { 4, 8, 16 };
	int refusal = row->level == SOL_SOCKET ? EOPNOTSUPP : ENOPROTOOPT;
	struct said before = ask(fd, row, 256), after;
	size_t i;
	int err;

	if (row->level == SOL_SOCKET && hps_kernel() < 603)
		return true;	/* the core accepts it without asking */
	if (row->level != SOL_SOCKET && before.err != ENOPROTOOPT)
		return false;
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		err = set(fd, row, 1, lens[i]);
		after = ask(fd, row, 256);
		if (err != refusal || !same(&before, &after, true)) {
			tell("got", err, &after);
			return false;
		}
	}
	return true;
}

static void ask_all(struct __test_metadata *_metadata, struct hps *t, int level, int state)
{
	static const socklen_t rooms[] = { 0, 1, 3, 4, 8, 16, 64, 256 };
	struct opened o = open_in(t, state), tcp = open_tcp(t, level, state);
	const struct row *row;
	struct said got, want;
	size_t j;

	ASSERT_OK(o.fd);
	ASSERT_OK(tcp.fd);
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		if (row->level != level || unknown(t, row) ||
		    (row->does == REFUSED && level != SOL_SOCKET))
			continue;
		for (j = 0; j < ARRAY_SIZE(rooms); j++) {
			got = ask(o.fd, row, rooms[j]);
			want = ask(tcp.fd, row, rooms[j]);
			EXPECT_TRUE(same(&got, &want, !owns(row, state))) {
				printf("# %s, room for %u\n", row->title, rooms[j]);
				tell("got", 0, &got);
				tell("want", 0, &want);
			}
		}
	}
	shut(o);
	shut(tcp);
}

/* When something was sent is not known; kernels before 6.3 accept it all the same. */
static bool unkept(const struct row *row, int value)
{
	return row->level == SOL_SOCKET && row->name == SO_TIMESTAMPING &&
	       value & SOF_TIMESTAMPING_TX_RECORD_MASK;
}

/* Setting it changes nothing in what is read, which is what the network says. */
static bool read_only(const struct row *row)
{
	return row->does == GET || (row->level == SOL_IPV6 && row->name == IPV6_MTU);
}

/* A kernel looks for a module for each name it does not know; see stream_opts. */
static bool named(const struct row *row)
{
	return row->level == SOL_TCP && (row->name == TCP_CONGESTION || row->name == TCP_ULP);
}

static void set_all(struct __test_metadata *_metadata, struct hps *t, int level, int state)
{
	static const int values[] = { 0, 1, 2, 3, 7, 100, 65536, INT32_MAX, -1, INT32_MIN };
	static const socklen_t lens[] = { 4, 0, 1, 3, 8, 16 };
	struct opened o = open_in(t, state), tcp = open_tcp(t, level, state);
	const struct row *row;
	struct said got, want;
	size_t j;

	ASSERT_OK(o.fd);
	ASSERT_OK(tcp.fd);
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		int own = owns(row, state);

		if (row->level != level || named(row) || unknown(t, row))
			continue;
		if (row->does == REFUSED) {
			if (t->rdma)
				EXPECT_TRUE(refused(o.fd, row))
					printf("# %s\n", row->title);
			continue;
		}
		for (j = 0; j < ARRAY_SIZE(lens) * ARRAY_SIZE(values); j++) {
			socklen_t len = lens[j / ARRAY_SIZE(values)];
			int value = values[j % ARRAY_SIZE(values)], err, wanted;

			if (t->rdma && unkept(row, value))
				continue;
			err = set(o.fd, row, value, len);
			wanted = set(tcp.fd, row, value, len);
			if (own == FIRST && !wanted)
				own = 0;
			got = ask(o.fd, row, 256);
			want = ask(tcp.fd, row, 256);
			EXPECT_TRUE(err == wanted &&
				    (read_only(row) || same(&got, &want, !own))) {
				printf("# %s=%d, %u bytes\n", row->title, value, len);
				tell("got", err, &got);
				tell("want", wanted, &want);
			}
		}
	}
	shut(o);
	shut(tcp);
}

/* At each level, in each state, where TCP has a socket like that. */
static void everywhere(struct __test_metadata *_metadata, struct hps *t,
		       void (*try)(struct __test_metadata *, struct hps *, int, int))
{
	static const int levels[] = { SOL_SOCKET, SOL_TCP, SOL_IP, SOL_IPV6 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(levels) * STATES; i++) {
		int level = levels[i / STATES], state = i % STATES;

		/* With an address of IPv4 it has no level of IPv6. */
		if (state != NEW && level == SOL_IPV6 && t->af == AF_INET)
			continue;
		printf("# level %d, %s\n", level, states[state]);
		try(_metadata, t, level, state);
	}
}

TEST_F(options, asked)
{
	everywhere(_metadata, &self->t, ask_all);
}

TEST_F(options, set)
{
	everywhere(_metadata, &self->t, set_all);
}

/* There is no value, only a length of it. */
static void set_none(struct __test_metadata *_metadata, struct hps *t, int level, int state)
{
	static const socklen_t lens[] = { 0, 1, 3, 4, 8, 16 };
	struct opened o = open_in(t, state), tcp = open_tcp(t, level, state);
	const struct row *row;
	struct said got, want;
	size_t i;

	ASSERT_OK(o.fd);
	ASSERT_OK(tcp.fd);
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
		if (row->level != level || row->does == REFUSED || unknown(t, row))
			continue;
		for (i = 0; i < ARRAY_SIZE(lens); i++) {
			int err = set_to(o.fd, row, NULL, lens[i]);
			int wanted = set_to(tcp.fd, row, NULL, lens[i]);

			got = ask(o.fd, row, 256);
			want = ask(tcp.fd, row, 256);
			EXPECT_TRUE(err == wanted &&
				    (read_only(row) || same(&got, &want, !owns(row, state)))) {
				printf("# %s=NULL, %u bytes\n", row->title, lens[i]);
				tell("got", err, &got);
				tell("want", wanted, &want);
			}
		}
	}
	shut(o);
	shut(tcp);
}

TEST_F(options, set_to_nothing)
{
	everywhere(_metadata, &self->t, set_none);
}

/* What would keep the peer from the listener. */
static bool apart(const struct row *row)
{
	return named(row) || (row->level == SOL_SOCKET && (row->name == SO_BINDTODEVICE ||
							   row->name == SO_BINDTOIFINDEX));
}

/* What a connection has of what was set on its listener; -1 where there is none. */
static struct opened accepted(struct __test_metadata *_metadata, struct hps *t, int level,
			      int value)
{
	struct opened o = { -1, -1 };
	const struct row *row;
	struct hps_addr at;
	int l;

	l = hps_listen(t, 1, &at);
	ASSERT_OK(l);
	for (row = rows; row < rows + ARRAY_SIZE(rows); row++)
		if (row->level == level && row->does != REFUSED && !apart(row) &&
		    !unkept(row, value))
			set(l, row, value, sizeof(int));
	o.peer = hps_dial(t, at);
	ASSERT_OK(o.peer);
	ASSERT_EQ(1, send(o.peer, "x", 1, 0));
	o.fd = hps_accept(l);
	ASSERT_OK(o.fd);
	close(l);
	return o;
}

static void inherit_all(struct __test_metadata *_metadata, struct hps *t, int level, int state)
{
	static const int values[] = { 0, 1, 2, 7, 40, 3000 };
	const struct row *row;
	struct said got, want;
	struct hps ref;
	size_t i;

	if (state != CONNECTED)
		return;
	tcp_like(&ref, t, level);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		struct opened o = accepted(_metadata, t, level, values[i]);
		struct opened want_of = accepted(_metadata, &ref, level, values[i]);

		for (row = rows; row < rows + ARRAY_SIZE(rows); row++) {
			if (row->level != level || row->does == REFUSED || unknown(t, row))
				continue;
			got = ask(o.fd, row, 256);
			want = ask(want_of.fd, row, 256);
			EXPECT_TRUE(same(&got, &want, !owns(row, CONNECTED))) {
				printf("# %s=%d before\n", row->title, values[i]);
				tell("got", 0, &got);
				tell("want", 0, &want);
			}
		}
		shut(o);
		shut(want_of);
	}
}

TEST_F(options, inherited)
{
	everywhere(_metadata, &self->t, inherit_all);
}

TEST_HARNESS_MAIN
