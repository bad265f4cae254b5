// SPDX-License-Identifier: GPL-2.0
/*
 * Many connections at once and many one after the other. HPS_SEED decides the
 * sizes; HPS_STRESS_CONNS, HPS_STRESS_BYTES and HPS_STRESS_CYCLES scale it.
 */
#include "hps_test.h"

#include <sys/epoll.h>
#include <sys/resource.h>

HPS_FIXTURE(stress)

/* One end of a connection: so much to send and to receive, both known. */
struct end {
	int fd;
	bool shut, ended;
	uint32_t id;		/* the first four bytes each way: of the client */
	int64_t out, out_len, in, in_len;
	uint64_t out_seed, in_seed;
};

struct load {
	struct hps *t;
	struct __test_metadata *_metadata;
	int conns;
	uint64_t seed;
	int64_t most;
	int ep, listener;
	struct end *client, *server;
	int done;
	int64_t bytes;
};

static uint8_t buf[65536];

/* A kernel that is very slow does less. */
static long scaled(long n)
{
	return hps_slow() >= 10 ? n / 5 : n;
}

/* The sizes of connection id, from one byte to the most, small ones often. */
static int64_t size_of(const struct load *load, uint32_t id, int way)
{
	uint64_t state = load->seed * 1000003 + id * 2 + way;
	int bits = hps_random(&state) % 21;
	int64_t n = 1 + hps_random(&state) % (1 << bits);

	return n < load->most ? n : load->most;
}

static void plan(const struct load *load, struct end *end, uint32_t id, bool server)
{
	end->id = id;
	end->out_len = size_of(load, id, server);
	end->in_len = size_of(load, id, !server);
	end->out_seed = id * 2 + server;
	end->in_seed = id * 2 + !server;
}

static bool fail(struct load *load, struct end *end, const char *what)
{
	struct __test_metadata *_metadata = load->_metadata;

	TH_LOG("connection %u: %s: %s, sent %lld of %lld, received %lld of %lld", end->id, what,
	       strerror(errno), (long long)end->out, (long long)end->out_len,
	       (long long)end->in, (long long)end->in_len);
	return false;
}

static bool push(struct load *load, struct end *end)
{
	while (end->out < end->out_len) {
		int64_t len = end->out_len - end->out;
		ssize_t n;

		len = len < (int64_t)sizeof(buf) ? len : (int64_t)sizeof(buf);
		hps_fill(buf, len, end->out, end->out_seed);
		n = send(end->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return errno == EAGAIN || fail(load, end, "send");
		end->out += n;
	}
	if (!end->shut) {
		end->shut = true;
		if (shutdown(end->fd, SHUT_WR))
			return fail(load, end, "shutdown");
	}
	return true;
}

static bool pull(struct load *load, struct end *end)
{
	ssize_t n;

	while (!end->ended) {
		n = recv(end->fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n < 0)
			return errno == EAGAIN || fail(load, end, "recv");
		errno = 0;
		if (!n) {
			end->ended = true;
			if (end->in != end->in_len)
				return fail(load, end, "ended early");
			break;
		}
		if (end->in + n > end->in_len)
			return fail(load, end, "too much");
		if (hps_check(buf, n, end->in, end->in_seed) != (size_t)n)
			return fail(load, end, "wrong byte");
		end->in += n;
		load->bytes += n;
	}
	return true;
}

/* The client's first word tells the server which connection this is. */
static bool greet(struct load *load, struct end *end, bool server)
{
	uint32_t id = end->id;

	if (!server)
		return send(end->fd, &id, 4, MSG_NOSIGNAL) == 4 || fail(load, end, "greeting");
	if (recv(end->fd, &id, 4, MSG_WAITALL) != 4 || id >= (uint32_t)load->conns)
		return fail(load, end, "greeted");
	plan(load, end, id, true);
	return true;
}

static bool add(struct load *load, struct end *end)
{
	struct epoll_event event = {
		.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = end,
	};

	return !epoll_ctl(load->ep, EPOLL_CTL_ADD, end->fd, &event) || fail(load, end, "epoll");
}

static bool serve(struct load *load, struct end *end)
{
	if (!push(load, end) || !pull(load, end))
		return false;
	if (end->shut && end->ended) {
		if (hps_error(end->fd))
			return fail(load, end, "error at the end");
		close(end->fd);
		end->fd = -1;
		load->done++;
	}
	return true;
}

static bool run(struct load *load)
{
	struct epoll_event got[64];
	struct end *end;
	int n, i, accepted = 0;

	while (load->done < 2 * load->conns) {
		n = epoll_wait(load->ep, got, 64, hps_deadline());
		if (n <= 0)
			return fail(load, load->client, "nothing happens");
		for (i = 0; i < n; i++) {
			end = got[i].data.ptr;
			if (end) {
				if (end->fd >= 0 && !serve(load, end))
					return false;
				continue;
			}
			end = &load->server[accepted];
			end->fd = accept(load->listener, NULL, NULL);
			if (end->fd < 0)
				return fail(load, end, "accept");
			accepted++;
			if (!greet(load, end, true) || !add(load, end))
				return false;
		}
	}
	return true;
}

TEST_F_TIMEOUT(stress, concurrent, 600 * hps_slow())
{
	struct rlimit files = { 65536, 65536 };
	struct epoll_event event = { .events = EPOLLIN };
	struct load load = {
		.t = &self->t, ._metadata = _metadata,
		.conns = hps_env("HPS_STRESS_CONNS", 200),
		.most = hps_env("HPS_STRESS_BYTES", scaled(1 << 20)),
		.seed = hps_env("HPS_SEED", 1),
	};
	struct hps_addr at;
	int i;

	setrlimit(RLIMIT_NOFILE, &files);
	TH_LOG("HPS_SEED=%llu, %d connections", (unsigned long long)load.seed, load.conns);
	load.client = calloc(load.conns, sizeof(struct end));
	load.server = calloc(load.conns, sizeof(struct end));
	load.ep = epoll_create1(0);
	load.listener = hps_listen(&self->t, load.conns, &at);
	ASSERT_OK(load.listener);
	ASSERT_OK(epoll_ctl(load.ep, EPOLL_CTL_ADD, load.listener, &event));
	for (i = 0; i < load.conns; i++) {
		struct end *end = &load.client[i];

		plan(&load, end, i, false);
		end->fd = hps_dial(&self->t, at);
		ASSERT_OK(end->fd);
		ASSERT_TRUE(greet(&load, end, false));
		ASSERT_TRUE(add(&load, end));
	}
	ASSERT_TRUE(run(&load));
	TH_LOG("%lld bytes", (long long)load.bytes);
}

/* The same with all connections made at once. */
TEST_F_TIMEOUT(stress, connect_at_once, 300 * hps_slow())
{
	int conns = hps_env("HPS_STRESS_CONNS", 200) / 2, i, in = 0;
	struct rlimit files = { 65536, 65536 };
	int *c = calloc(conns, sizeof(int));
	struct hps_addr at;
	int l;

	setrlimit(RLIMIT_NOFILE, &files);
	l = hps_listen(&self->t, conns, &at);
	ASSERT_OK(l);
	for (i = 0; i < conns; i++) {
		c[i] = hps_dial_nb(&self->t, at);
		ASSERT_OK(c[i]);
	}
	for (i = 0; i < conns; i++) {
		EXPECT_WAIT(POLLOUT, c[i]);
		EXPECT_EQ(0, hps_error(c[i]));
	}
	for (; in < conns; in++)
		ASSERT_OK(hps_accept(l));
	for (i = 0; i < conns; i++) {
		EXPECT_POLL(POLLOUT, c[i]);
	}
}

TEST_F_TIMEOUT(stress, cycles, 600 * hps_slow())
{
	long cycles = hps_env("HPS_STRESS_CYCLES", scaled(1000)), i;
	uint64_t random = hps_env("HPS_SEED", 1);
	struct hps_addr at;
	int l = hps_listen(&self->t, 16, &at);

	ASSERT_OK(l);
	for (i = 0; i < cycles; i++) {
		int len = 1 + hps_random(&random) % 5000, s;
		int c = hps_dial(&self->t, at);

		ASSERT_OK(c);
		s = hps_accept(l);
		ASSERT_OK(s);
		ASSERT_EQ(len, hps_push(c, len, len, i));
		ASSERT_EQ(len, hps_pull(s, len, len, i));
		ASSERT_EQ(len, hps_push(s, len, len, i + 1));
		/* The server first: its end is the one that may linger on. */
		ASSERT_OK(close(s));
		ASSERT_EQ(len, hps_pull(c, len + 1, len, i + 1));
		ASSERT_OK(close(c));
	}
}

/* Connections come and go while others are busy. */
struct churn {
	struct hps_call call;
	struct hps *t;
	struct hps_addr at;
	uint64_t seed;
	long cycles;
};

static long churn_client(struct hps_call *call)
{
	struct churn *churn = (struct churn *)call;
	long i;

	for (i = 0; i < churn->cycles; i++) {
		int len = 1 + hps_random(&churn->seed) % 20000;
		int c = hps_dial(churn->t, churn->at);

		if (c < 0 || hps_push(c, len, 3000, 1) != len || shutdown(c, SHUT_WR) ||
		    hps_pull(c, len + 1, 3000, 1) != len || errno || close(c))
			return i;
	}
	return i;
}

static void *churn_echo(void *arg)
{
	int fd = (long)arg;
	char b[3000];
	ssize_t n;

	while ((n = recv(fd, b, sizeof(b), 0)) > 0)
		if (send(fd, b, n, MSG_NOSIGNAL) != n)
			break;
	close(fd);
	return NULL;
}

static void *churn_server(void *arg)
{
	int fd, l = (long)arg;
	pthread_t thread;

	while ((fd = accept(l, NULL, NULL)) >= 0)
		if (!pthread_create(&thread, NULL, churn_echo, (void *)(long)fd))
			pthread_detach(thread);
	return NULL;
}

TEST_F_TIMEOUT(stress, churn, 300 * hps_slow())
{
	struct churn churn[6] = { 0 };
	struct hps_addr at;
	pthread_t server;
	int l, i;

	l = hps_listen(&self->t, 16, &at);
	ASSERT_OK(l);
	ASSERT_EQ(0, pthread_create(&server, NULL, churn_server, (void *)(long)l));
	for (i = 0; i < 6; i++) {
		churn[i] = (struct churn){
			.call.fn = churn_client, .t = &self->t, .at = at, .seed = i,
			.cycles = hps_env("HPS_STRESS_CYCLES", scaled(1000)) / 20,
		};
		hps_start(&churn[i].call);
	}
	for (i = 0; i < 6; i++) {
		pthread_join(churn[i].call.thread, NULL);
		EXPECT_EQ(churn[i].cycles, churn[i].call.ret);
	}
	ASSERT_OK(shutdown(l, SHUT_RDWR));
	pthread_join(server, NULL);
}

TEST_HARNESS_MAIN
