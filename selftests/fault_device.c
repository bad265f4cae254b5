// SPDX-License-Identifier: GPL-2.0
/*
 * RDMA devices, links and the module itself going away under sockets. Needs
 * root and the pair of network devices v0 (host A) and v1 (host B) with an RDMA
 * device of the kind HPSOCK_DEV on each.
 */
#include <linux/sockios.h>

#include "hps_test.h"

FIXTURE(fault) {
	struct hps t;
	int lost;		/* what a silent peer is reported as */
};

FIXTURE_VARIANT(fault) {
	int af;
};

FIXTURE_VARIANT_ADD(fault, hpsock) { AF_INET };
FIXTURE_VARIANT_ADD(fault, hpsock6) { AF_INET6 };

static char buf[65536];

/*
 * The wire and no more: RDMA need not even try on a link that is down. What comes
 * in finds no way, which needs nothing that a kernel may lack.
 */
static int cut_wire(void)
{
	return hps_run("ip -batch - <<END && ip -6 -batch - <<END6\n"
		   "rule add pref 0 iif v0 blackhole\n"
		   "rule add pref 0 iif v1 blackhole\n"
		   "END\n"
		   "route del local fd03::1 dev v0 table local\n"
		   "route del local fd03::2 dev v1 table local\n"
		   "END6\n");
}

/* What cut_wire() did, undone with as few programs. */
static int mend_wire(void)
{
	return hps_run("ip -batch - <<END && ip -6 -batch - <<END6\n"
		   "rule del pref 0 iif v0\n"
		   "rule del pref 0 iif v1\n"
		   "END\n"
		   "route append local fd03::2 dev v1 metric 1024 table local\n"
		   "route append local fd03::1 dev v0 metric 1024 table local\n"
		   "END6\n");
}

/*
 * Nothing gets to v1 that asks for a connection, though the host is there. No answer either,
 * of connections that there are, but what v1 sends does get out. IPv4; see restore_link().
 */
static int drop_requests(void)
{
	return hps_run("ip rule add pref 0 iif v1 ipproto %s blackhole",
		       hps_siw() ? "tcp dport 327" : "udp dport 4791");
}

/* TCP connections of Soft-iWARP that wait for an answer */
static int asking(void)
{
	FILE *f = fopen("/proc/net/tcp", "r");
	unsigned int port, state;
	char line[256];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += sscanf(line, "%*s %*s %*[^:]:%x %x", &port, &state) == 2 &&
		     port == 327 && state == TCP_SYN_SENT;
	if (f)
		fclose(f);
	return n;
}

static bool until_asking(int nr)
{
	int64_t end = hps_now() + hps_deadline();

	while (asking() < nr) {
		if (hps_now() > end) {
			fprintf(stderr, "# only %d are asking\n", asking());
			return false;
		}
		usleep(10000);
	}
	return true;
}

/* Nobody is refused when the wire is mended: that may be too fast for Soft-iWARP. */
static bool until_asking_no_more(void)
{
	int64_t end = hps_now() + hps_deadline();

	while (asking() && hps_now() < end)
		usleep(10000);
	return !asking();
}

/* Cut or down, once or, by a test that was killed, more than once */
static int restore_link(void)
{
	return hps_run("while ip rule del pref 0 iif v0; do :; done 2>/dev/null;"
		   "while ip rule del pref 0 iif v1; do :; done 2>/dev/null;"
		   "\"$HPSOCK_TOP\"/selftests/vm/net.sh up");
}

/*
 * A queue pair tries again for 3.8 seconds. On a busy machine a wire may stay cut for
 * longer, with which it is right that a connection ends: such a try proves nothing.
 */
#define MOMENT	1500
#define TRIES	20

/* Cut the wire for a moment: the milliseconds that it took, or -1. */
static int64_t blink(void)
{
	int64_t begin = hps_now();

	if (cut_wire() || mend_wire())
		return -1;
	return hps_now() - begin;
}

#define RETRIES "/proc/sys/net/ipv4/tcp_retries2"
#define SYN_RETRIES "/proc/sys/net/ipv4/tcp_syn_retries"

static int load(void)
{
	return hps_run("[ -d /sys/module/hpsock ] || insmod $HPSOCK_KO $HPSOCK_PARAMS");
}

/* The last of a closed connection takes a moment. */
static bool unload(void)
{
	int64_t end = hps_now() + hps_deadline();

	while (hps_run("rmmod hpsock 2>/dev/null")) {
		if (hps_now() > end)
			return false;
		usleep(50000);
	}
	return true;
}

/* A queue pair tries again for a while; one that does not end at all, RETRIES times. */
#define LONG_TIME (90000 + 10000 * hps_slow())

static bool ends(struct hps_call *call)
{
	int64_t end = hps_now() + LONG_TIME;

	while (!call->done && hps_now() < end)
		usleep(10000);
	return call->done && hps_done(call);
}

static long push_call(struct hps_call *call)
{
	return hps_push(call->fd, INT64_MAX, 5000, call->arg);
}

/* len: what was received before */
static long pull_call(struct hps_call *call)
{
	return hps_pull_at(call->fd, call->len, INT64_MAX, 5000, call->arg);
}

/* The same with what the peer reads itself, where pages can be protected. */
static long push_large_call(struct hps_call *call)
{
	return hps_push(call->fd, INT64_MAX, 256 << 10, call->arg);
}

static long pull_large_call(struct hps_call *call)
{
	return hps_pull_at(call->fd, call->len, INT64_MAX, 256 << 10, call->arg);
}

static long close_call(struct hps_call *call)
{
	return close(call->fd);
}

/* Data goes both ways on a connection; those who send begin. */
static void plan(struct hps_call call[4], int c, int s)
{
	call[0] = (struct hps_call){ .fn = push_call, .fd = c, .arg = 1 };
	call[1] = (struct hps_call){ .fn = push_call, .fd = s, .arg = 2 };
	call[2] = (struct hps_call){ .fn = pull_call, .fd = c, .arg = 2 };
	call[3] = (struct hps_call){ .fn = pull_call, .fd = s, .arg = 1 };
}

/* What one end was told, by whichever of its calls came first. */
static int told(const struct hps_call *push, const struct hps_call *pull)
{
	return push->err == EPIPE ? pull->err : push->err;
}

/* All that any of the tests takes away or sets, with the defaults of kernel and module. */
static void repair(void)
{
	int end;

	restore_link();
	hps_set_number(SYN_RETRIES, 6);
	hps_set_number(RETRIES, 15);
	for (end = 0; end < 2; end++)
		hps_add_device(end);
	load();
	hps_set_zcopy("auto");
	hps_set_zcopy_sync("msg");
	hps_set_number(HPS_ZCOPY_PATIENCE, 500);
}

/*
 * The test before has come as far as to repair, which takes seconds on a debug kernel. All
 * tests share it, as each is a process of its own.
 */
static volatile bool *repaired;

static void __attribute__((constructor)) share(void)
{
	repaired = mmap(NULL, sizeof(*repaired), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (repaired == MAP_FAILED)
		abort();
}

/*
 * Soft-RoCE leaves the queue pair of the connection manager in the error state when
 * something could not be sent by it, with the link down.
 */
static int renew_devices(void)
{
	int err = 0, i;

	for (i = 0; i < 2 && !hps_siw() && !err; i++)
		err = hps_remove_device(i) ?: hps_add_device(i);
	return err;
}

FIXTURE_SETUP(fault)
{
	hps_init(&self->t, true, variant->af);
	self->lost = ETIMEDOUT;
	if (access("/sys/class/net/v1", F_OK) || !getenv("HPSOCK_KO"))
		SKIP(return, "not in a guest of vm/run");
	/* The test before may have been killed. */
	if (!*repaired)
		repair();
	*repaired = false;
	/* TCP below Soft-iWARP does not say why it ended. */
	if (hps_siw())
		self->lost = ECONNRESET;
	/* Else, where a queue pair does not end, it takes 20 minutes. */
	ASSERT_EQ(0, hps_set_number(RETRIES, 5));
	/* Nor may it have come as far as to renew them. */
	if (!hps_works_again(&self->t)) {
		ASSERT_EQ(0, renew_devices());
		ASSERT_TRUE(hps_works_again(&self->t));
	}
}

/* Others run after this. */
FIXTURE_TEARDOWN(fault)
{
	repair();
	*repaired = true;
}

TEST_F_TIMEOUT(fault, wire_cut, 150 * hps_slow())
{
	struct hps_call call[4];
	int c, s, i;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	plan(call, c, s);
	hps_start(&call[0]);
	hps_start(&call[1]);
	for (i = 2; i < 4; i++) {
		ASSERT_EQ(200000, hps_pull(call[i].fd, 200000, 5000, call[i].arg));
		call[i].len = 200000;
		hps_start(&call[i]);
	}
	ASSERT_EQ(0, cut_wire());
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(ends(&call[i])) TH_LOG("call %d", i);
	}
	EXPECT_EQ(self->lost, told(&call[0], &call[2]));
	EXPECT_EQ(self->lost, told(&call[1], &call[3]));
	EXPECT_ERRNO(EPIPE, send(c, "x", 1, MSG_NOSIGNAL));
	EXPECT_EQ(0, recv(c, buf, 1, 0));
	ASSERT_EQ(0, restore_link());
	EXPECT_TRUE(hps_works_again(&self->t));
}

/* How long to ask for a connection is the program's to say. */
TEST_F_TIMEOUT(fault, request_lost, 150 * hps_slow())
{
	struct hps_addr at;
	int64_t start;
	int c, l;

	if (variant->af != AF_INET)
		SKIP(return, "rules are for IPv4");
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	ASSERT_EQ(0, drop_requests());
	c = hps_client(&self->t, 0);
	ASSERT_OK(c);
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_SYNCNT, 1));
	start = hps_now();
	EXPECT_ERRNO(ETIMEDOUT, hps_connect(c, at));
	EXPECT_LE(2900, hps_now() - start);
	EXPECT_GE(hps_deadline() / 2, hps_now() - start);
}

/* More requests of one user than may wait for an answer, which are MOST */
#define MANY 600
#define MOST 512

/* They wait for an answer that does not come. */
static bool ask_in_vain(const struct hps *t, struct hps_addr at, int *fds)
{
	enum { NOBODY = 65534 };
	bool ok = !drop_requests() && !seteuid(NOBODY);
	int i;

	for (i = 0; i < MANY; i++) {
		fds[i] = hps_dial_nb(t, at);
		ok = ok && fds[i] >= 0;
	}
	return !seteuid(0) && ok && until_asking(MOST);
}

/* Meanwhile others connect, the other way. */
TEST_F_TIMEOUT(fault, requests_lost, 300 * hps_slow())
{
	int many[MANY], c, l, other, i;
	struct hps_addr at;

	if (variant->af != AF_INET || !hps_siw())
		SKIP(return, "rules are for IPv4, and only Soft-iWARP waits for an answer");
	other = hps_bound(&self->t, 0, self->t.a);
	ASSERT_OK(other);
	ASSERT_OK(listen(other, 1));
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	ASSERT_TRUE(ask_in_vain(&self->t, at, many));
	c = hps_bound(&self->t, SOCK_NONBLOCK, self->t.b);
	ASSERT_OK(c);
	ASSERT_ERRNO(EINPROGRESS, hps_connect(c, hps_name(other)));
	EXPECT_OK(hps_accept(other));
	EXPECT_EQ(MOST, asking());
	/* The rest takes the place of those that are given up. */
	for (i = 0; i < MOST; i++)
		close(many[i]);
	ASSERT_TRUE(hps_settle());
	EXPECT_TRUE(until_asking(MANY - MOST));
	for (; i < MANY; i++) {
		EXPECT_EQ(0, hps_error(many[i]));
		close(many[i]);
	}
	EXPECT_TRUE(until_asking_no_more());
}

/* They are given up: others are told that their connections end, and the device can go. */
TEST_F_TIMEOUT(fault, requests_given_up, 300 * hps_slow())
{
	int many[MANY], c, s, l, i;
	struct hps_addr at;

	if (variant->af != AF_INET || !hps_siw())
		SKIP(return, "rules are for IPv4, and only Soft-iWARP waits for an answer");
	l = hps_listen(&self->t, 1, &at);
	ASSERT_OK(l);
	ASSERT_OK(hps_pair(&self->t, &c, &s));
	ASSERT_TRUE(ask_in_vain(&self->t, at, many));
	for (i = 0; i < MANY; i++)
		close(many[i]);
	EXPECT_OK(hps_reset(s));
	EXPECT_TRUE(hps_wait_exactly(c, POLLHUP) & POLLHUP);
	EXPECT_EQ(0, hps_remove_device(0));
	EXPECT_TRUE(until_asking_no_more());
}

/* A sender that only waits for its peer to read finds out, too. */
TEST_F_TIMEOUT(fault, wire_cut_while_full, 150 * hps_slow())
{
	struct hps_call push = { .fn = push_call, .arg = 1 };
	int s, i;

	ASSERT_OK(hps_pair(&self->t, &push.fd, &s));
	ASSERT_LT(0, hps_stuff(push.fd, 0, 1));
	/* What is read gives credits back, which a full queue uses up at once. */
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(40000, hps_pull_at(s, i * 40000, 40000, 5000, 1));
	}
	hps_block(&push);
	ASSERT_EQ(0, cut_wire());
	ASSERT_TRUE(ends(&push));
	EXPECT_EQ(self->lost, push.err);
	ASSERT_EQ(0, restore_link());
	EXPECT_TRUE(hps_works_again(&self->t));
}

/* And so does one that only waits, if it asked for that. */
TEST_F_TIMEOUT(fault, wire_cut_while_idle, 150 * hps_slow())
{
	struct hps_call call[4] = {
		{ .fn = hps_recv_call, .buf = buf, .len = 10 },
		{ .fn = hps_recv_call, .buf = buf, .len = 10 },
		{ .fn = hps_poll_call, .arg = POLLIN },
		{ .fn = hps_poll_call, .arg = POLLIN },
	};
	int i;

	for (i = 0; i < 4; i += 2)
		ASSERT_OK(hps_pair(&self->t, &call[i].fd, &call[i + 1].fd));
	for (i = 0; i < 4; i++) {
		ASSERT_OK(hps_set(call[i].fd, IPPROTO_TCP, TCP_KEEPIDLE, 1));
		ASSERT_OK(hps_set(call[i].fd, SOL_SOCKET, SO_KEEPALIVE, 1));
		hps_block(&call[i]);
	}
	ASSERT_EQ(0, cut_wire());
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(ends(&call[i])) TH_LOG("call %d", i);
	}
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-1, call[i].ret);
		EXPECT_EQ(self->lost, call[i].err);
		EXPECT_EQ(POLLIN | POLLERR | POLLHUP, call[i + 2].ret);
		EXPECT_EQ(self->lost, hps_error(call[i + 2].fd));
	}
}

/* The program's patience may be shorter than a queue pair's: false if it took too long. */
static bool loses_patience(struct __test_metadata *_metadata, const struct hps *t)
{
	struct hps_call idle = { .fn = hps_recv_call, .buf = buf, .len = 10 };
	struct hps_call waits = { .fn = hps_poll_call };
	long before = hps_stat("peer_timeout");
	int64_t begin, start, took;
	struct tcp_info info = {};
	socklen_t len = sizeof(info);
	int s[2], left;

	ASSERT_OK(hps_pair(t, &idle.fd, &s[0]));
	ASSERT_OK(hps_set(idle.fd, IPPROTO_TCP, TCP_KEEPIDLE, 1));
	ASSERT_OK(hps_set(idle.fd, IPPROTO_TCP, TCP_KEEPINTVL, 1));
	ASSERT_OK(hps_set(idle.fd, IPPROTO_TCP, TCP_KEEPCNT, 2));
	ASSERT_OK(hps_set(idle.fd, SOL_SOCKET, SO_KEEPALIVE, 1));
	ASSERT_OK(hps_pair(t, &waits.fd, &s[1]));
	ASSERT_OK(hps_set(waits.fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 2000));
	hps_block(&idle);
	hps_block(&waits);
	begin = hps_now();
	ASSERT_EQ(0, cut_wire());
	start = hps_now();
	/* It counts from the first byte that got lost.  A second send could take the error. */
	ASSERT_EQ(1, send(waits.fd, "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT));
	ASSERT_TRUE(hps_done(&waits));
	EXPECT_LE(1900, hps_now() - start);
	EXPECT_EQ(POLLERR | POLLHUP, waits.ret);
	EXPECT_EQ(ETIMEDOUT, hps_error(waits.fd));
	ASSERT_OK(ioctl(waits.fd, SIOCOUTQ, &left));
	EXPECT_EQ(1, left);
	ASSERT_OK(getsockopt(waits.fd, IPPROTO_TCP, TCP_INFO, &info, &len));
	EXPECT_EQ(0, info.tcpi_unacked);
	ASSERT_TRUE(hps_done(&idle));
	took = hps_now() - begin;
	EXPECT_EQ(-1, idle.ret);
	EXPECT_EQ(ETIMEDOUT, idle.err);
	close(idle.fd);
	close(waits.fd);
	close(s[0]);
	close(s[1]);
	ASSERT_EQ(0, mend_wire());
	/* The queue pair can have been the first from here on. */
	if (took > 3700 && hps_stat("peer_timeout") < before + 2)
		return false;
	EXPECT_EQ(before + 2, hps_stat("peer_timeout"));
	return true;
}

TEST_F_TIMEOUT(fault, wire_cut_patience, 300 * hps_slow())
{
	int i;

	if (hps_siw())
		SKIP(return, "a send is complete when TCP has it, which has a patience of its own");
	for (i = 0; i < TRIES && !loses_patience(_metadata, &self->t); i++)
		TH_LOG("too slow, once more");
	EXPECT_GT(TRIES, i);
}

/* What is closed does not stay for ever: with data to send, with its end unheard. */
TEST_F_TIMEOUT(fault, wire_cut_after_close, 150 * hps_slow())
{
	int64_t end = hps_now() + LONG_TIME;
	int c[2], s[2], i;

	for (i = 0; i < 2; i++)
		ASSERT_OK(hps_pair(&self->t, &c[i], &s[i]));
	ASSERT_LT(0, hps_stuff(c[0], 0, 1));
	ASSERT_OK(close(c[0]));
	ASSERT_EQ(0, cut_wire());
	ASSERT_OK(close(c[1]));
	ASSERT_OK(hps_reset(s[0]));
	ASSERT_OK(hps_reset(s[1]));
	while (hps_run("[ $(wc -l </proc/net/hpsock) -eq 1 ]") && hps_now() < end)
		usleep(100000);
	EXPECT_LT(hps_now(), end);
}

/* A moment without a wire is none of a program's business: nothing is lost. */
static bool lives_on(struct __test_metadata *_metadata, const struct hps *t)
{
	struct hps_call push = { .fn = push_call, .arg = 1 };
	int64_t at, longest = 0, took, got = 0;
	int s;

	ASSERT_OK(hps_pair(t, &push.fd, &s));
	hps_start(&push);
	ASSERT_EQ(200000, hps_pull(s, 200000, 5000, 1));
	for (at = 200000; at < 3500000; at += 1100000) {
		took = blink();
		ASSERT_LE(0, took);
		longest = took > longest ? took : longest;
		got = hps_pull_at(s, at, 1100000, 5000, 1);
		EXPECT_NE(EBADMSG, errno);
		if (got != 1100000)
			break;
	}
	if (longest <= MOMENT || got == 1100000) {
		EXPECT_EQ(1100000, got) TH_LOG("%s", strerror(errno));
		EXPECT_FALSE(push.done);
	}
	close(s);
	ASSERT_TRUE(ends(&push));
	close(push.fd);
	return longest <= MOMENT || got == 1100000;
}

TEST_F_TIMEOUT(fault, wire_mended, 300 * hps_slow())
{
	int i;

	for (i = 0; i < TRIES && !lives_on(_metadata, &self->t); i++)
		TH_LOG("too slow, once more");
	EXPECT_GT(TRIES, i);
}

/*
 * Nor while memory is lent: here when the offer waits behind bytes that are to be sent
 * again,
 */
static bool offers_late(struct __test_metadata *_metadata, const struct hps *t)
{
	const int large = 256 << 10;
	struct hps_call lend = { .fn = hps_send_call, .len = large };
	int64_t begin, took, got;
	int unread = 10, c, s;

	ASSERT_OK(hps_pair(t, &c, &s));
	begin = hps_now();
	ASSERT_EQ(0, cut_wire());
	hps_fill(buf, 10, 0, 1);
	ASSERT_EQ(10, send(c, buf, 10, 0));
	lend.fd = c;
	lend.buf = malloc(large);
	hps_fill(lend.buf, large, 10, 1);
	hps_start(&lend);
	while (!lend.done && !ioctl(c, SIOCOUTQ, &unread) && unread == 10)
		usleep(1000);
	ASSERT_EQ(0, mend_wire());
	took = hps_now() - begin;
	got = hps_pull(s, 10 + large, large, 1);
	EXPECT_NE(EBADMSG, errno);
	ASSERT_TRUE(ends(&lend));
	if (took <= MOMENT || got == 10 + large) {
		EXPECT_EQ(10 + large, got) TH_LOG("%s", strerror(errno));
		EXPECT_EQ(large, lend.ret);
	}
	free(lend.buf);
	close(c);
	close(s);
	return took <= MOMENT || got == 10 + large;
}

/* and in both directions under way. */
static bool lends_on(struct __test_metadata *_metadata, const struct hps *t)
{
	const int large = 256 << 10, round = 4 << 20;
	struct hps_call push = { .fn = push_large_call, .arg = 1 };
	struct hps_call back = { .fn = push_large_call, .arg = 2 };
	struct hps_call pull = { .fn = pull_large_call, .arg = 2 };
	int64_t at, longest = 0, took, got = 0;
	long lent = hps_stat("tx_lent");

	ASSERT_OK(hps_pair(t, &push.fd, &back.fd));
	pull.fd = push.fd;
	hps_start(&push);
	hps_start(&back);
	hps_start(&pull);
	for (at = 0; at < 3 * round; at += round) {
		took = blink();
		ASSERT_LE(0, took);
		longest = took > longest ? took : longest;
		got = hps_pull_at(back.fd, at, round, large, 1);
		EXPECT_NE(EBADMSG, errno);
		if (got != round)
			break;
	}
	if (longest <= MOMENT || got == round) {
		EXPECT_EQ(round, got) TH_LOG("%s", strerror(errno));
		EXPECT_FALSE(push.done || back.done || pull.done);
		EXPECT_LT(lent, hps_stat("tx_lent"));
	}
	shutdown(push.fd, SHUT_RDWR);
	ASSERT_OK(hps_reset(back.fd));
	ASSERT_TRUE(ends(&push));
	ASSERT_TRUE(ends(&back));
	ASSERT_TRUE(ends(&pull));
	close(push.fd);
	return longest <= MOMENT || got == round;
}

TEST_F_TIMEOUT(fault, wire_mended_while_lent, 300 * hps_slow())
{
	int i;

	ASSERT_TRUE(hps_set_zcopy(hps_stat("protect_works") ? "protect" : "wait"));
	for (i = 0; i < TRIES && !offers_late(_metadata, &self->t); i++)
		TH_LOG("too slow, once more");
	ASSERT_GT(TRIES, i);
	for (i = 0; i < TRIES && !lends_on(_metadata, &self->t); i++)
		TH_LOG("too slow, once more");
	EXPECT_GT(TRIES, i);
}

/*
 * What is left where it is, at the peer. What waits there for long is fetched without a
 * reader, as far as SO_RCVBUF goes: not behind anything here.
 */
static int leave_there(int fd)
{
	return hps_set(fd, SOL_SOCKET, SO_RCVBUF, 1);
}

#define HERE 4096

/* A message that was lost before it was fetched is an error, also for who asks how long it is. */
TEST_F_TIMEOUT(fault, wire_cut_before_reading, 150 * hps_slow())
{
	struct hps_call call = { .fn = hps_poll_call };
	const int len = 256 << 10;
	char *mem = hps_memory(len);
	int c;

	self->t.type = SOCK_SEQPACKET;
	ASSERT_OK(hps_pair_lending(&self->t, &c, &call.fd));
	ASSERT_OK(hps_zerocopy(&self->t, c));
	ASSERT_OK(hps_set(call.fd, IPPROTO_TCP, TCP_KEEPIDLE, 1));
	ASSERT_OK(hps_set(call.fd, SOL_SOCKET, SO_KEEPALIVE, 1));
	ASSERT_EQ(HERE, send(c, mem, HERE, 0));
	ASSERT_TRUE(hps_until_unread(call.fd, HERE));
	ASSERT_OK(leave_there(call.fd));
	ASSERT_EQ(len, send(c, mem, len, MSG_ZEROCOPY));
	ASSERT_TRUE(hps_until_unread(call.fd, HERE + len));
	ASSERT_EQ(0, cut_wire());
	hps_start(&call);
	ASSERT_TRUE(ends(&call));
	EXPECT_EQ(POLLHUP, call.ret & POLLHUP);
	ASSERT_EQ(0, restore_link());
	EXPECT_EQ(HERE, hps_inq(call.fd));
	EXPECT_EQ(HERE, recv(call.fd, mem, len, 0));
	EXPECT_EQ(0, hps_inq(call.fd));
	/* The read that fetches it has a patience of its own. */
	EXPECT_EQ(-1, recv(call.fd, mem, len, 0));
	EXPECT_TRUE(errno == self->lost || errno == ETIMEDOUT) TH_LOG("errno %d", errno);
	EXPECT_EQ(0, recv(call.fd, mem, len, 0));
}

/* All of a stream, or a message. */
static long read_all_call(struct hps_call *call)
{
	bool stream = hps_opt(call->fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM;
	long all = 0, n;

	do {
		n = recv(call->fd, call->buf + all, call->len - all, call->arg);
		all += n;
	} while (n > 0 && stream && all < (long)call->len);
	return n > 0 ? all : n;
}

/*
 * A read that waits for what is lost waits until that is known. False if it was not lost: it may
 * have been fetched before it could be left there, on a machine that did nothing else meanwhile.
 */
static bool lose_while_read(struct __test_metadata *_metadata, const struct hps *t, int lost,
			    int flags, bool fin)
{
	enum { LEN = 256 << 10, ALL = HERE + LEN };
	struct iovec iov[2] = { { hps_memory(HERE), HERE }, { hps_memory(LEN), LEN } };
	struct msghdr msg = { .msg_iov = iov, .msg_iovlen = 2 };
	struct hps_call call = {
		.fn = read_all_call, .buf = hps_memory(ALL), .len = ALL, .arg = flags,
	};
	int c;

	ASSERT_OK(hps_pair_lending(t, &c, &call.fd));
	ASSERT_OK(hps_zerocopy(t, c));
	ASSERT_OK(hps_set(call.fd, IPPROTO_TCP, TCP_KEEPIDLE, 1));
	ASSERT_OK(hps_set(call.fd, SOL_SOCKET, SO_KEEPALIVE, 1));
	ASSERT_EQ(ALL, sendmsg(c, &msg, MSG_ZEROCOPY));
	if (fin)
		ASSERT_OK(shutdown(c, SHUT_WR));
	ASSERT_TRUE(hps_until_inq(call.fd, ALL));
	ASSERT_OK(leave_there(call.fd));
	if (fin)
		ASSERT_TRUE(hps_wait(call.fd, POLLRDHUP));
	ASSERT_EQ(0, cut_wire());
	hps_start(&call);
	ASSERT_TRUE(ends(&call));
	ASSERT_EQ(0, restore_link());
	if (call.ret != ALL) {
		EXPECT_EQ(-1, call.ret);
		EXPECT_TRUE(call.err == lost || call.err == ETIMEDOUT) TH_LOG("errno %d", call.err);
		EXPECT_EQ(0, recv(call.fd, call.buf, LEN, 0));
	}
	close(c);
	close(call.fd);
	return call.ret != ALL;
}

static void insist_on_loss(struct __test_metadata *_metadata, const struct hps *t, int lost,
			   int flags, bool fin)
{
	int i;

	for (i = 0; i < TRIES && !lose_while_read(_metadata, t, lost, flags, fin); i++)
		TH_LOG("too slow, once more");
	EXPECT_GT(TRIES, i);
}

TEST_F_TIMEOUT(fault, wire_cut_while_reading, 300 * hps_slow())
{
	int i;

	for (i = 0; i < 2; i++)
		insist_on_loss(_metadata, &self->t, self->lost, 0, i);
	self->t.type = SOCK_SEQPACKET;
	for (i = 0; i < 2; i++) {
		insist_on_loss(_metadata, &self->t, self->lost, 0, i);
		insist_on_loss(_metadata, &self->t, self->lost, MSG_PEEK, i);
	}
}

/* That memory is not lent any more is told by POLLERR too, and before. */
static long hangup_call(struct hps_call *call)
{
	struct pollfd p = { .fd = call->fd };

	while (poll(&p, 1, -1) == 1 && !(p.revents & POLLHUP))
		usleep(10000);
	return p.revents;
}

/* Nor does a sender wait for a peer that is gone to read what it was offered. */
TEST_F_TIMEOUT(fault, wire_cut_unread, 300 * hps_slow())
{
	enum { LEN = 256 << 10, OFFERS = 6 };
	struct hps_call call = { .fn = hangup_call };
	char *mem = hps_memory(LEN);
	int s, i, unsent = 1;

	ASSERT_OK(hps_pair_lending(&self->t, &call.fd, &s));
	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_RCVBUF, 65536));
	ASSERT_OK(hps_zerocopy(&self->t, call.fd));
	for (i = 0; i < OFFERS; i++)
		ASSERT_EQ(LEN, send(call.fd, mem, LEN, MSG_ZEROCOPY));
	/* The peer's kernel reads for a while. */
	ASSERT_TRUE(hps_until_inq(s, OFFERS * LEN));
	ASSERT_TRUE(hps_settle());
	ASSERT_OK(ioctl(call.fd, SIOCOUTQNSD, &unsent));
	EXPECT_EQ(0, unsent);
	ASSERT_EQ(0, cut_wire());
	hps_start(&call);
	ASSERT_TRUE(ends(&call));
	EXPECT_EQ(POLLERR | POLLHUP, call.ret);
	ASSERT_EQ(0, restore_link());
	close(call.fd);
	close(s);
}

/* What is connected learns of it, and what connects is told no later than by TCP. */
TEST_F_TIMEOUT(fault, link_down, 300 * hps_slow())
{
	const int patience = 7000;	/* tcp_syn_retries 2 */
	struct hps_call call[4];
	struct hps_addr at;
	int c, s, l, i;
	int64_t begin;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	plan(call, c, s);
	for (i = 0; i < 4; i++)
		hps_start(&call[i]);
	ASSERT_EQ(0, hps_run("ip link set v1 down"));
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(ends(&call[i])) TH_LOG("call %d", i);
		EXPECT_NE(EBADMSG, call[i].err);
	}
	close(c);
	close(s);
	ASSERT_EQ(0, restore_link());

	ASSERT_EQ(0, hps_set_number(SYN_RETRIES, 2));
	l = hps_listen(&self->t, 4, &at);
	ASSERT_OK(l);
	c = hps_client(&self->t, 0);
	ASSERT_OK(c);
	/* In vain, see renew_devices(). If not, it works. */
	begin = hps_now();
	if (hps_connect(c, at)) {
		EXPECT_EQ(ETIMEDOUT, errno) TH_LOG("%s", strerror(errno));
		EXPECT_LE(patience, hps_now() - begin);
	} else {
		s = hps_accept(l);
		ASSERT_OK(s);
		ASSERT_EQ(1000, hps_push(c, 1000, 1000, 1));
		EXPECT_EQ(1000, hps_pull(s, 1000, 1000, 1));
		close(s);
	}
	EXPECT_GT(patience + hps_deadline(), hps_now() - begin);
	close(c);
	close(l);
	ASSERT_EQ(0, renew_devices());
	EXPECT_TRUE(hps_works_again(&self->t));
}

/*
 * What cannot be sent, while something is under way, ends the connection also where the
 * device does not say so: Soft-RoCE before 6.5.
 */
TEST_F_TIMEOUT(fault, link_down_unacked, 300 * hps_slow())
{
	struct hps_call call = { .fn = hps_recv_call, .buf = buf, .len = 10 };
	int c;

	ASSERT_OK(hps_pair(&self->t, &c, &call.fd));
	ASSERT_OK(hps_set(call.fd, SOL_TCP, TCP_NODELAY, 1));
	/* It would look in two hours. */
	ASSERT_OK(hps_set(call.fd, SOL_SOCKET, SO_KEEPALIVE, 1));
	ASSERT_EQ(0, cut_wire());
	ASSERT_EQ(1, send(call.fd, "x", 1, 0));
	ASSERT_EQ(0, hps_run("ip link set v1 down"));
	/* Where the computer is very busy the device has given up before. */
	if (send(call.fd, "y", 1, MSG_NOSIGNAL) != 1) {
		call.err = errno;
	} else {
		hps_start(&call);
		ASSERT_TRUE(ends(&call));
		EXPECT_EQ(-1, call.ret);
	}
	EXPECT_TRUE(call.err == ETIMEDOUT || call.err == ECONNRESET) TH_LOG("errno %d", call.err);
	EXPECT_EQ(0, recv(call.fd, buf, 1, 0));
	close(call.fd);
	close(c);
	ASSERT_EQ(0, restore_link());
	ASSERT_EQ(0, renew_devices());
	EXPECT_TRUE(hps_works_again(&self->t));
}

/* The same with nothing but FIN under way, and what returns credits behind it. */
TEST_F_TIMEOUT(fault, link_down_fin, 300 * hps_slow())
{
	struct hps_call call = { .fn = hps_recv_call, .buf = buf, .len = 10 };
	const int msgs = 20, size = 3000;
	int c, i;

	ASSERT_OK(hps_pair(&self->t, &c, &call.fd));
	ASSERT_OK(hps_set(c, SOL_TCP, TCP_NODELAY, 1));
	for (i = 0; i < msgs; i++)
		ASSERT_EQ(size, send(c, buf, size, 0));
	ASSERT_TRUE(hps_until_inq(call.fd, msgs * size));
	ASSERT_EQ(0, cut_wire());
	ASSERT_OK(shutdown(call.fd, SHUT_WR));
	ASSERT_EQ(0, hps_run("ip link set v1 down"));
	ASSERT_EQ(msgs * size, recv(call.fd, buf, msgs * size, MSG_WAITALL));
	hps_start(&call);
	ASSERT_TRUE(ends(&call));
	EXPECT_EQ(-1, call.ret);
	EXPECT_TRUE(call.err == ETIMEDOUT || call.err == ECONNRESET) TH_LOG("errno %d", call.err);
	close(call.fd);
	close(c);
	ASSERT_EQ(0, restore_link());
	ASSERT_EQ(0, renew_devices());
	EXPECT_TRUE(hps_works_again(&self->t));
}

/* With the wire cut the link is up, and nobody answers who connects. */
TEST_F_TIMEOUT(fault, wire_cut_before_connect, 150 * hps_slow())
{
	const int patience = 7000;	/* tcp_syn_retries 2 */
	struct hps_addr at;
	int64_t begin;
	int c, l;

	ASSERT_EQ(0, hps_set_number(SYN_RETRIES, 2));
	l = hps_listen(&self->t, 4, &at);
	ASSERT_OK(l);
	c = hps_client(&self->t, 0);
	ASSERT_OK(c);
	ASSERT_EQ(0, cut_wire());
	begin = hps_now();
	EXPECT_ERRNO(ETIMEDOUT, hps_connect(c, at));
	EXPECT_GT(patience + hps_deadline(), hps_now() - begin);
	ASSERT_EQ(0, mend_wire());
	EXPECT_OK(hps_connect(c, at));
	EXPECT_OK(hps_accept(l));
}

/* Host B's device: its sleepers learn the reason, those of A that it is over. */
TEST_F_TIMEOUT(fault, device_removed, 150 * hps_slow())
{
	enum { READ, WRITE, POLL, LINGER, KINDS };
	struct linger on = { .l_onoff = 1, .l_linger = 1000 };
	struct hps_call call[KINDS][2], acc = { .fn = hps_accept_call };
	struct hps_addr at, pending_at;
	int l, c, i, host;

	for (i = 0; i < KINDS; i++) {
		int fd[2];

		ASSERT_OK(hps_pair(&self->t, &fd[0], &fd[1]));
		/* To be closed with nothing unread, or it would reset. */
		if (i == LINGER)
			ASSERT_OK(hps_pair(&self->t, &c, &fd[1]));
		for (host = 0; host < 2; host++) {
			static long (* const fn[])(struct hps_call *call) = {
				hps_recv_call, hps_send_call, hps_poll_call, close_call,
			};

			call[i][host] = (struct hps_call){
				.fn = fn[i], .fd = fd[host], .buf = buf, .len = 10,
				.arg = i == POLL ? POLLIN : 0,
			};
			if (i == WRITE || i == LINGER)
				ASSERT_LT(0, hps_stuff(fd[host], 0, 1));
			if (i == LINGER)
				ASSERT_OK(setsockopt(fd[host], SOL_SOCKET, SO_LINGER, &on,
						     sizeof(on)));
		}
	}
	for (i = 0; i < KINDS; i++)
		for (host = 0; host < 2; host++)
			hps_block(&call[i][host]);
	acc.fd = hps_listen(&self->t, 4, &at);
	ASSERT_OK(acc.fd);
	hps_block(&acc);
	l = hps_listen(&self->t, 4, &pending_at);
	ASSERT_OK(l);
	c = hps_dial(&self->t, pending_at);
	ASSERT_OK(c);

	ASSERT_EQ(0, hps_remove_device(1));
	for (i = 0; i < KINDS; i++) {
		for (host = 0; host < 2; host++)
			ASSERT_TRUE(ends(&call[i][host])) TH_LOG("call %d, host %d", i, host);
	}
	for (host = 0; host < 2; host++) {
		int why = host ? ENETDOWN : ECONNRESET;

		EXPECT_EQ(-1, call[READ][host].ret);
		EXPECT_EQ(why, call[READ][host].err);
		EXPECT_EQ(-1, call[WRITE][host].ret);
		EXPECT_EQ(why, call[WRITE][host].err);
		EXPECT_EQ(POLLIN | POLLERR | POLLHUP, call[POLL][host].ret);
		EXPECT_EQ(why, hps_error(call[POLL][host].fd));
		EXPECT_EQ(0, call[LINGER][host].ret);
	}
	/* One that nobody has accepted yet is over, too. */
	EXPECT_TRUE(hps_wait(c, POLLIN) & POLLERR);

	/* Listeners are of no device: they go on with the next. */
	hps_until_blocked(acc.tid);
	EXPECT_FALSE(acc.done);
	ASSERT_EQ(0, hps_add_device(1));
	EXPECT_TRUE(hps_works_again(&self->t));
	ASSERT_OK(hps_dial(&self->t, at));
	ASSERT_TRUE(hps_done(&acc));
	EXPECT_LE(0, acc.ret);
	ASSERT_OK(hps_dial(&self->t, pending_at));
	EXPECT_OK(hps_accept(l));
}

/* Removed while everything is busy, both ends in turn */
TEST_F_TIMEOUT(fault, device_removed_under_load, 300 * hps_slow())
{
	struct hps_call call[16];
	long carried;
	int end, i;

	for (end = 0; end < 2; end++) {
		for (i = 0; i < 16; i += 4) {
			int how = i ? HPSOCK_ZCOPY_WAIT : HPSOCK_ZCOPY_PROTECT, c, s;

			ASSERT_OK(hps_pair(&self->t, &c, &s));
			plan(call + i, c, s);
			if (i >= 8)
				continue;
			ASSERT_OK(hps_set(c, SOL_HPSOCK, HPSOCK_ZCOPY, how));
			ASSERT_OK(hps_set(s, SOL_HPSOCK, HPSOCK_ZCOPY, how));
			call[i].fn = push_large_call;
			call[i + 1].fn = push_large_call;
			call[i + 2].fn = pull_large_call;
			call[i + 3].fn = pull_large_call;
		}
		carried = hps_stat("rx_msgs");
		for (i = 0; i < 16; i++)
			hps_start(&call[i]);
		ASSERT_TRUE(hps_until_stat("rx_msgs", carried + 200));
		ASSERT_EQ(0, hps_remove_device(end));
		for (i = 0; i < 16; i++) {
			ASSERT_TRUE(ends(&call[i])) TH_LOG("call %d", i);
			EXPECT_NE(EBADMSG, call[i].err);
		}
		for (i = 0; i < 16; i += 4) {
			EXPECT_EQ(end ? ECONNRESET : ENETDOWN, told(&call[i], &call[i + 2]));
			EXPECT_EQ(end ? ENETDOWN : ECONNRESET, told(&call[i + 1], &call[i + 3]));
			close(call[i].fd);
			close(call[i + 1].fd);
		}
		ASSERT_EQ(0, hps_add_device(end));
		ASSERT_TRUE(hps_works_again(&self->t));
	}
}

/* Nor is one held by a read of what the peer lends when no answer comes. */
TEST_F_TIMEOUT(fault, device_removed_while_reading, 150 * hps_slow())
{
	enum { LEN = 256 << 10 };
	struct hps_call pull = { .fn = pull_large_call, .arg = 1 };
	long before = hps_stat("rx_fetched");
	uint8_t *out = hps_memory(LEN);
	int c, s, there;

	ASSERT_OK(hps_pair_lending(&self->t, &c, &s));
	pull.fd = s;
	/* No more than that is fetched without a reader. */
	ASSERT_OK(hps_set(s, SOL_SOCKET, SO_RCVBUF, 4096));
	ASSERT_OK(hps_zerocopy(&self->t, c));
	hps_fill(out, LEN, 0, 1);
	ASSERT_EQ(LEN, send(c, out, LEN, MSG_ZEROCOPY));
	ASSERT_TRUE(hps_until_stat("rx_fetched", before + 1));
	ASSERT_TRUE(hps_settle());
	there = hps_stat("rx_fetched") - before;
	ASSERT_GT(LEN, there);
	ASSERT_EQ(0, cut_wire());
	hps_block(&pull);
	ASSERT_EQ(0, hps_remove_device(1));
	ASSERT_TRUE(ends(&pull));
	EXPECT_EQ(there, pull.ret);
	EXPECT_EQ(ENETDOWN, pull.err);
	close(c);
	close(s);
	ASSERT_EQ(0, restore_link());
	ASSERT_EQ(0, hps_add_device(1));
	EXPECT_TRUE(hps_works_again(&self->t));
}

/* A reader on @s shows memory: a large send on @c, which was read, tells it to. */
static bool shows(int c, int s, struct hps_call *pull, uint8_t *out, size_t len)
{
	long before = hps_stat("sink_shown");

	*pull = (struct hps_call){ .fn = pull_large_call, .fd = s, .arg = 1 };
	hps_block(pull);
	return send(c, out, len, MSG_ZEROCOPY) == (ssize_t)len &&
	       hps_until_stat("sink_shown", before + 1);
}

/*
 * Nor does one whose memory is shown, by a message or by a word, whether the peer was asked
 * to stop or not.
 */
TEST_F_TIMEOUT(fault, device_removed_while_shown, 300 * hps_slow())
{
	enum { LEN = 256 << 10 };
	uint8_t *out = hps_memory(LEN);
	struct hps_call pull;
	int c, s, i, stops;

	hps_catch(SIGUSR1, 0);
	hps_fill(out, LEN, 0, 1);
	/* It shows it until the wire is cut, however long that takes. */
	ASSERT_OK(hps_set_number(HPS_ZCOPY_PATIENCE, 60000));
	for (i = 0; i < 4; i++) {
		stops = i % 2;
		ASSERT_TRUE(hps_set_zcopy_sync(i / 2 ? "cas" : "msg"));
		ASSERT_OK(hps_pair_lending(&self->t, &c, &s));
		ASSERT_OK(hps_set(s, SOL_HPSOCK, HPSOCK_ZCOPY_SINK, 1));
		ASSERT_OK(hps_zerocopy(&self->t, c));
		ASSERT_TRUE(shows(c, s, &pull, out, LEN));
		ASSERT_EQ(0, cut_wire());
		if (stops)
			ASSERT_OK(pthread_kill(pull.thread, SIGUSR1));
		ASSERT_EQ(0, hps_remove_device(1));
		ASSERT_TRUE(ends(&pull));
		EXPECT_EQ(LEN, pull.ret);
		EXPECT_TRUE(pull.err == ENETDOWN || (stops && pull.err == EINTR));
		close(c);
		close(s);
		ASSERT_EQ(0, restore_link());
		ASSERT_EQ(0, hps_add_device(1));
		EXPECT_TRUE(hps_works_again(&self->t));
	}
}

/* Nor a sender that has asked at a word, or the reader whose word it is. */
TEST_F_TIMEOUT(fault, device_removed_while_asking, 300 * hps_slow())
{
	enum { LEN = 256 << 10 };
	uint8_t *out = hps_memory(LEN);
	struct hps_call pull;
	int c, s, end;
	long before;

	if (!hps_swaps())
		SKIP(return, "the device has no atomics, or loses RDMA Reads");
	hps_fill(out, LEN, 0, 1);
	ASSERT_TRUE(hps_set_zcopy_sync("cas"));
	ASSERT_OK(hps_set_number(HPS_ZCOPY_PATIENCE, 60000));
	for (end = 0; end < 2; end++) {
		ASSERT_OK(hps_pair_lending(&self->t, &c, &s));
		ASSERT_OK(hps_set(s, SOL_HPSOCK, HPSOCK_ZCOPY_SINK, 1));
		ASSERT_OK(hps_zerocopy(&self->t, c));
		ASSERT_TRUE(shows(c, s, &pull, out, LEN));
		before = hps_stat("sink_asked");
		ASSERT_EQ(0, cut_wire());
		ASSERT_EQ(LEN, send(c, out, LEN, MSG_ZEROCOPY));
		ASSERT_TRUE(hps_until_stat("sink_asked", before + 1));
		ASSERT_EQ(0, hps_remove_device(end));
		if (end) {
			ASSERT_TRUE(ends(&pull));
			EXPECT_EQ(ENETDOWN, pull.err);
		} else {
			EXPECT_TRUE(hps_wait_exactly(c, POLLHUP) & POLLHUP);
			EXPECT_EQ(ENETDOWN, hps_error(c));
		}
		ASSERT_EQ(0, restore_link());
		ASSERT_EQ(0, hps_add_device(end));
		/* The other end finds that out by what it asks, or takes back. */
		if (end) {
			EXPECT_TRUE(hps_wait_exactly(c, POLLHUP) & POLLHUP);
		} else {
			ASSERT_TRUE(ends(&pull));
		}
		EXPECT_EQ(LEN, pull.ret);
		close(c);
		close(s);
		EXPECT_TRUE(hps_works_again(&self->t));
	}
}

TEST_F_TIMEOUT(fault, device_removed_while_connecting, 150 * hps_slow())
{
	int l, c[8], i, all = POLLIN | POLLOUT | POLLERR | POLLHUP | POLLRDHUP;
	struct hps_addr silent = self->t.b, at;
	long failed;

	l = hps_listen(&self->t, 0, &at);
	ASSERT_OK(l);
	if (self->t.af == AF_INET)
		silent.in.sin_addr.s_addr ^= htonl(0x40);
	else
		silent.in6.sin6_addr.s6_addr16[7] ^= htons(0x40);
	/* Some wait for an address, which takes three seconds, some for room in a backlog. */
	ASSERT_OK(hps_dial(&self->t, at));
	failed = hps_stat("connect_failed");
	for (i = 0; i < 8; i++) {
		c[i] = hps_dial_nb(&self->t, i % 2 ? at : hps_at(silent, 5000));
		ASSERT_OK(c[i]);
	}
	ASSERT_EQ(0, hps_remove_device(0));
	for (i = 0; i < 8; i++) {
		ASSERT_EQ(all, hps_wait_exactly(c[i], all));
		EXPECT_NE(0, hps_error(c[i]));
		EXPECT_EQ(0, recv(c[i], buf, 1, 0));
		close(c[i]);
	}
	EXPECT_EQ(failed + 8, hps_stat("connect_failed"));
	ASSERT_EQ(0, hps_add_device(0));
	EXPECT_TRUE(hps_works_again(&self->t));
}

/* Closed sockets that still had something to deliver do not hold a device. */
TEST_F_TIMEOUT(fault, device_removed_after_close, 150 * hps_slow())
{
	int c, s, i;

	for (i = 0; i < 4; i++) {
		ASSERT_OK(hps_pair(&self->t, &c, &s));
		ASSERT_LT(0, hps_stuff(c, 0, 1));
		ASSERT_LT(0, hps_stuff(s, 0, 2));
		if (i % 2) {
			ASSERT_OK(close(c));
		} else {
			ASSERT_OK(shutdown(c, SHUT_WR));
		}
	}
	ASSERT_EQ(0, hps_remove_device(0));
	ASSERT_EQ(0, hps_add_device(0));
	EXPECT_TRUE(hps_works_again(&self->t));
}

TEST_F_TIMEOUT(fault, no_device, 150 * hps_slow())
{
	struct hps_addr at;
	int l, c, i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, hps_remove_device(i));
	}
	/* Ports and listeners need none. */
	l = hps_listen(&self->t, 4, &at);
	ASSERT_OK(l);
	c = hps_client(&self->t, 0);
	ASSERT_OK(c);
	EXPECT_ERRNO(ENETUNREACH, hps_connect(c, at));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, hps_add_device(i));
	}
	EXPECT_TRUE(hps_works_again(&self->t));
	EXPECT_OK(hps_connect(c, at));
	EXPECT_OK(hps_accept(l));
}

TEST_F_TIMEOUT(fault, driver_unloaded, 150 * hps_slow())
{
	const char *driver = hps_siw() ? "siw" : "rdma_rxe";
	struct hps_call call[2] = {
		{ .fn = hps_recv_call, .buf = buf, .len = 10 },
		{ .fn = push_call, .arg = 1 },
	};
	int i, other;

	if (hps_run("grep -q '^%s ' /proc/modules", driver))
		SKIP(return, "%s is built in", driver);
	ASSERT_OK(hps_pair(&self->t, &call[0].fd, &other));
	ASSERT_OK(hps_pair(&self->t, &other, &call[1].fd));
	for (i = 0; i < 2; i++)
		hps_block(&call[i]);
	ASSERT_EQ(0, hps_run("rmmod %s", driver));
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(ends(&call[i])) TH_LOG("call %d", i);
		/* As the other end's device may have been the first. */
		EXPECT_TRUE(call[i].err == ENETDOWN || call[i].err == ECONNRESET) {
			TH_LOG("%s", strerrorname_np(call[i].err));
		}
	}
	ASSERT_EQ(0, hps_run("modprobe %s", driver));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, hps_add_device(i));
	}
	EXPECT_TRUE(hps_works_again(&self->t));
}

TEST_F_TIMEOUT(fault, unload, 150 * hps_slow())
{
	struct hps_addr at;
	int fd[5], i;

	fd[0] = hps_socket(&self->t, 0);
	fd[1] = hps_bound(&self->t, 0, self->t.b);
	fd[2] = hps_listen(&self->t, 1, &at);
	ASSERT_OK(hps_pair(&self->t, &fd[3], &fd[4]));
	/* Each of them by itself keeps the module. */
	for (i = 0; i < 5; i++) {
		ASSERT_OK(fd[i]);
		EXPECT_NE(0, hps_run("rmmod hpsock 2>/dev/null"));
		ASSERT_OK(close(fd[i]));
	}
	ASSERT_TRUE(unload());
	EXPECT_ERRNO(EAFNOSUPPORT, hps_socket(&self->t, 0));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, load());
		ASSERT_TRUE(unload());
	}
	ASSERT_EQ(0, load());
	EXPECT_TRUE(hps_works_again(&self->t));
}

/* A closed socket with data to deliver keeps the module until it is delivered. */
TEST_F_TIMEOUT(fault, unload_after_close, 150 * hps_slow())
{
	int64_t sent;
	int c, s;

	ASSERT_OK(hps_pair(&self->t, &c, &s));
	sent = hps_stuff(c, 0, 1);
	ASSERT_LT(0, sent);
	ASSERT_OK(close(c));
	EXPECT_NE(0, hps_run("rmmod hpsock 2>/dev/null"));
	EXPECT_EQ(sent, hps_pull(s, INT64_MAX, 65536, 1));
	EXPECT_EQ(0, errno);
	ASSERT_OK(close(s));
	ASSERT_TRUE(unload());
	ASSERT_EQ(0, load());
	EXPECT_TRUE(hps_works_again(&self->t));
}

TEST_HARNESS_MAIN
