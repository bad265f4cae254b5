// SPDX-License-Identifier: GPL-2.0
/*
 * Connections that have been busy give back receives, and everything arrives before, while
 * and after they do. TCP has nothing to give back: the variant shows that the rest of the
 * test is right.
 */
#include "hps_test.h"

#define MEM_MAX "/sys/module/hpsock/parameters/mem_max_kb"
#define MEM_SHARE "/sys/module/hpsock/parameters/mem_share"
#define MIB (1 << 20)

FIXTURE(shrink)
{
	struct hps t;
	int c, s;
	long after, max, share;
	uint64_t at[2];		/* how much was sent by each end */
};

HPS_VARIANTS(shrink);

FIXTURE_SETUP(shrink)
{
	hps_init(&self->t, variant->rdma, variant->af);
	if (self->t.rdma) {
		self->after = hps_number(HPS_SHRINK_AFTER, 0);
		self->max = hps_number(MEM_MAX, 0);
		self->share = hps_number(MEM_SHARE, 0);
		/* Those of other tests */
		ASSERT_TRUE(hps_until_stat_is("memory_receives", 0));
	}
	ASSERT_OK(hps_pair(&self->t, &self->c, &self->s));
}

FIXTURE_TEARDOWN(shrink)
{
	close(self->c);
	close(self->s);
	if (self->t.rdma) {
		EXPECT_OK(hps_set_number(HPS_SHRINK_AFTER, self->after));
		EXPECT_OK(hps_set_number(MEM_SHARE, self->share));
		EXPECT_OK(hps_set_number(MEM_MAX, self->max));
	}
}

static bool after(const struct hps *t, int seconds)
{
	return !t->rdma || !hps_set_number(HPS_SHRINK_AFTER, seconds);
}

static struct hpsock_info info_of(int fd)
{
	struct hpsock_info info = { 0 };
	socklen_t len = sizeof(info);

	getsockopt(fd, SOL_HPSOCK, HPSOCK_INFO, &info, &len);
	return info;
}

/* Are its receives those that a connection begins with? */
static bool is_small(const struct hps *t, int fd)
{
	struct hpsock_info info = info_of(fd);

	return !t->rdma || (info.rx_msg_size == 1024 - 16 && info.rx_window == 3);
}

static bool until_small(const struct hps *t, int fd)
{
	int64_t end = hps_now() + hps_deadline();

	while (!is_small(t, fd)) {
		if (hps_now() > end)
			return false;
		usleep(1000);
	}
	return true;
}

/* So many bytes from one end to the other, behind what it has sent before. */
static bool carry(int from, int to, uint64_t *at, uint64_t len, int seed)
{
	uint8_t *buf = malloc(65536);
	uint64_t done, n;
	int64_t got;
	pid_t pid = hps_fork();

	if (!pid) {
		for (done = 0; done < len; done += n) {
			n = len - done < 65536 ? len - done : 65536;
			hps_fill(buf, n, *at + done, seed);
			for (uint64_t part = 0; part < n; part += got) {
				got = send(from, buf + part, n - part, 0);
				if (got <= 0)
					_exit(1);
			}
		}
		_exit(0);
	}
	free(buf);
	got = hps_pull_at(to, *at, len, 65536, seed);
	*at += len;
	return !hps_reap(pid) && got == (int64_t)len;
}

static bool carry_both(int c, int s, uint64_t *at, uint64_t len)
{
	return carry(c, s, &at[0], len, 1) && carry(s, c, &at[1], len, 2);
}

/* Both ends, and then they are as good as new. */
TEST_F(shrink, idle)
{
	long shrunk = 0, grown = 0, memory = 0;
	int round;

	ASSERT_TRUE(after(&self->t, 1));
	if (self->t.rdma) {
		shrunk = hps_stat("window_shrunk");
		grown = hps_stat("window_grown");
		memory = hps_stat("memory_receives");
	}
	for (round = 1; round <= 3; round++) {
		ASSERT_TRUE(carry_both(self->c, self->s, self->at, MIB));
		if (self->t.rdma) {
			EXPECT_LE(grown + 2 * round, hps_stat("window_grown"));
		}
		ASSERT_TRUE(until_small(&self->t, self->s));
		ASSERT_TRUE(until_small(&self->t, self->c));
		if (self->t.rdma) {
			EXPECT_TRUE(hps_until_stat("window_shrunk", shrunk + 2 * round));
			EXPECT_TRUE(hps_until_stat_is("memory_receives", memory));
		}
	}
	EXPECT_TRUE(carry_both(self->c, self->s, self->at, 1000));
}

/* What is not read is not lost, nor has a peer to send anything else meanwhile. */
TEST_F(shrink, unread)
{
	long shrunk = self->t.rdma ? hps_stat("window_shrunk") : 0;
	int other[2], len = 100000;

	ASSERT_TRUE(after(&self->t, 1));
	ASSERT_TRUE(carry(self->c, self->s, &self->at[0], MIB, 1));
	/* Of these, the same is known. */
	ASSERT_OK(hps_pair(&self->t, &other[0], &other[1]));
	EXPECT_EQ(len, hps_push(self->s, len, len, 2));
	ASSERT_TRUE(hps_until_inq(self->c, len));
	EXPECT_EQ(len, hps_push(other[0], len, len, 1));
	EXPECT_EQ(len, hps_pull(other[1], len, len, 1));
	ASSERT_TRUE(until_small(&self->t, other[1]));
	ASSERT_TRUE(until_small(&self->t, self->s));
	if (self->t.rdma)
		EXPECT_TRUE(hps_until_stat("window_shrunk", shrunk + 2));
	EXPECT_EQ(len, hps_pull(self->c, len, len, 2));
	self->at[1] = len;
	EXPECT_TRUE(until_small(&self->t, self->c));
	EXPECT_TRUE(carry_both(self->c, self->s, self->at, MIB));
	close(other[0]);
	close(other[1]);
}

/* The end that is asked has shut down the other half, or has had it shut down. */
TEST_F(shrink, half_closed)
{
	uint64_t to_c = 0;

	ASSERT_TRUE(after(&self->t, 1));
	ASSERT_TRUE(carry_both(self->c, self->s, self->at, MIB));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(until_small(&self->t, self->c));
	/* To this end nothing comes any more. */
	ASSERT_TRUE(until_small(&self->t, self->s));
	to_c = self->at[1];
	EXPECT_TRUE(carry(self->s, self->c, &to_c, MIB, 2));
	EXPECT_EQ(0, hps_pull(self->s, 1, 1, 1));
	ASSERT_OK(shutdown(self->s, SHUT_WR));
	EXPECT_EQ(0, recv(self->c, &to_c, 1, 0));
}

/* The stream has ended before it is read: who reads has no use for larger receives. */
TEST_F(shrink, ended)
{
	enum { LEN = 2500 };

	ASSERT_TRUE(after(&self->t, 1));
	ASSERT_EQ(LEN, hps_push(self->c, LEN, LEN, 1));
	ASSERT_OK(shutdown(self->c, SHUT_WR));
	ASSERT_TRUE(hps_wait(self->s, POLLRDHUP) & POLLRDHUP);
	EXPECT_EQ(LEN, hps_pull(self->s, LEN, LEN, 1));
	EXPECT_TRUE(until_small(&self->t, self->s));
	EXPECT_TRUE(carry(self->s, self->c, &self->at[1], MIB, 2));
}

/* Both send, now and then, about when the other end thinks that they do not. */
TEST_F_TIMEOUT(shrink, pulses, 120 * hps_slow())
{
	enum { CONNS = 4, ROUNDS = 5 };
	long shrunk = self->t.rdma ? hps_stat("window_shrunk") : 0;
	uint64_t state = 1, at[2] = { 0 };
	pid_t pid[CONNS];
	int c, s, i, n;

	ASSERT_TRUE(after(&self->t, 1));
	for (i = 0; i < CONNS; i++) {
		ASSERT_OK(hps_pair(&self->t, &c, &s));
		pid[i] = hps_fork();
		ASSERT_OK(pid[i]);
		if (!pid[i]) {
			state += i;
			for (n = 0; n < ROUNDS; n++) {
				if (!carry_both(c, s, at, 1 + hps_random(&state) % 300000))
					_exit(1);
				usleep(950000 + hps_random(&state) % 100000);
			}
			_exit(0);
		}
		close(c);
		close(s);
	}
	for (i = 0; i < CONNS; i++)
		EXPECT_EQ(0, hps_reap(pid[i]));
	if (self->t.rdma) {
		/* The first of its memory can be used before the last has come. */
		EXPECT_TRUE(hps_until_stat("window_shrunk", shrunk + 1));
	}
}

/* Large sends are offered and read before and after, with the receives that needs. */
TEST_F(shrink, offers)
{
	if (self->t.rdma) {
		ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_WAIT));
		ASSERT_OK(hps_set(self->s, SOL_HPSOCK, HPSOCK_ZCOPY, HPSOCK_ZCOPY_WAIT));
		ASSERT_OK(hps_set(self->c, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, 32768));
		ASSERT_OK(hps_set(self->s, SOL_HPSOCK, HPSOCK_ZCOPY_THRESHOLD, 32768));
	}
	ASSERT_TRUE(after(&self->t, 1));
	for (int round = 0; round < 2; round++) {
		ASSERT_TRUE(carry_both(self->c, self->s, self->at, MIB));
		/* Not by offers alone. */
		EXPECT_EQ(20000, hps_push(self->c, 20000, 1000, 3));
		EXPECT_EQ(20000, hps_pull(self->s, 20000, 20000, 3));
		ASSERT_TRUE(until_small(&self->t, self->s));
		ASSERT_TRUE(until_small(&self->t, self->c));
	}
	EXPECT_TRUE(carry_both(self->c, self->s, self->at, MIB));
}

/* Those that need no more of it have taken all memory: others get some soon. */
TEST_F(shrink, pressure)
{
	enum { CONNS = 8 };
	int c[CONNS], s[CONNS], i, one, other;
	long refused = 0, shrunk = 0;
	uint64_t at[2], last[2] = { 0 };
	int64_t end;

	ASSERT_TRUE(after(&self->t, 3600));
	if (self->t.rdma) {
		ASSERT_OK(hps_set_number(MEM_MAX, 1024));
		EXPECT_OK(hps_set_number(MEM_SHARE, 100));
		refused = hps_stat("mem_refused_all") + hps_stat("mem_refused_user");
		shrunk = hps_stat("window_shrunk");
	}
	for (i = 0; i < CONNS; i++) {
		ASSERT_OK(hps_pair(&self->t, &c[i], &s[i]));
		memset(at, 0, sizeof(at));
		ASSERT_TRUE(carry_both(c[i], s[i], at, MIB));
	}
	if (self->t.rdma) {
		EXPECT_LT(refused, hps_stat("mem_refused_all") + hps_stat("mem_refused_user"));
	}
	ASSERT_OK(hps_pair(&self->t, &one, &other));
	end = hps_now() + hps_deadline();
	do {
		ASSERT_TRUE(carry(one, other, &last[0], 100000, 1));
	} while (self->t.rdma && info_of(other).rx_msg_size < 4096 && hps_now() < end);
	if (self->t.rdma) {
		EXPECT_LE(4096 - 16, info_of(other).rx_msg_size);
		/* The first of its memory can be used before the last has come. */
		EXPECT_TRUE(hps_until_stat("window_shrunk", shrunk + 1));
	}
	for (i = 0; i < CONNS; i++) {
		close(c[i]);
		close(s[i]);
	}
	close(one);
	close(other);
}

TEST_HARNESS_MAIN
