// SPDX-License-Identifier: GPL-2.0
/*
 * hotspot, fanin and fanout: many connections that one thread of the server
 * serves, with poll(2), which every family and the rsockets preload have.
 */
#include <err.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "perf.h"

/* A connection of the server: bytes it has to move, and what of a message it has. */
struct peer {
	uint64_t left;
	uint32_t have;
	void *in;
};

struct crowd {
	struct run *run;
	struct pollfd *polls;
	struct peer *peers;
};

static void crowd_init(struct crowd *crowd, struct run *run, short events,
		       uint64_t bytes)
{
	crowd->run = run;
	crowd->polls = calloc(run->conns, sizeof(*crowd->polls));
	crowd->peers = calloc(run->conns, sizeof(*crowd->peers));
	if (!crowd->polls || !crowd->peers)
		err(1, "memory");
	for (uint32_t i = 0; i < run->conns; i++) {
		crowd->polls[i].fd = run->fds[i];
		crowd->polls[i].events = events;
		crowd->peers[i].left = bytes;
		crowd->peers[i].in = run->in[i];
	}
}

static void crowd_free(struct crowd *crowd)
{
	free(crowd->polls);
	free(crowd->peers);
}

/*
 * @move is called for each that is ready, and returns the bytes it moved. The last one
 * takes the place of one that is through: rsockets' poll() does not know fd -1.
 */
static void crowd_serve(struct crowd *crowd,
			ssize_t (*move)(struct crowd *crowd, uint32_t i))
{
	uint32_t n = crowd->run->conns;
	ssize_t moved;

	while (n) {
		if (poll(crowd->polls, n, -1) < 0)
			err(1, "poll");
		/* From behind, so that what moves up has had its turn. */
		for (uint32_t i = n; i-- > 0;) {
			if (!crowd->polls[i].revents)
				continue;
			moved = move(crowd, i);
			if (moved < 0 && errno != EAGAIN)
				err(1, "a connection of many");
			if (moved <= 0)
				continue;
			crowd->peers[i].left -= moved;
			if (!crowd->peers[i].left) {
				n--;
				crowd->polls[i] = crowd->polls[n];
				crowd->peers[i] = crowd->peers[n];
			}
		}
	}
}

static ssize_t take_some(struct crowd *crowd, uint32_t i, uint32_t want)
{
	ssize_t n = recv(crowd->polls[i].fd, crowd->peers[i].in, want, MSG_DONTWAIT);

	if (n == 0)
		errx(1, "the peer closed early");
	return n;
}

static ssize_t take(struct crowd *crowd, uint32_t i)
{
	uint64_t left = crowd->peers[i].left;
	uint32_t size = crowd->run->size;
	ssize_t n = take_some(crowd, i, left < size ? left : size);

	/* As drink() does. */
	if (n > 0 && (uint64_t)n == left)
		send_all(crowd->polls[i].fd, "", 1);
	return n;
}

static ssize_t give(struct crowd *crowd, uint32_t i)
{
	uint64_t left = crowd->peers[i].left;
	uint32_t size = crowd->run->size;

	return send(crowd->polls[i].fd, crowd->run->out, left < size ? left : size,
		    MSG_DONTWAIT);
}

/* A whole message goes back. */
static ssize_t echo(struct crowd *crowd, uint32_t i)
{
	struct peer *peer = &crowd->peers[i];
	uint32_t size = crowd->run->size;
	ssize_t n = take_some(crowd, i, size - peer->have);

	if (n > 0) {
		peer->have += n;
		if (peer->have == size) {
			send_all(crowd->polls[i].fd, crowd->run->out, size);
			peer->have = 0;
		}
	}
	return n;
}

static void serve(struct run *run, short events, uint64_t count,
		  ssize_t (*move)(struct crowd *crowd, uint32_t i))
{
	struct crowd crowd;

	crowd_init(&crowd, run, events, count * run->size);
	take_usage(&run->begin);
	crowd_serve(&crowd, move);
	take_usage(&run->end);
	crowd_free(&crowd);
}

static void hotspot_server(struct run *run)
{
	serve(run, POLLIN, run->warm + run->count, echo);
}

static void fanin_server(struct run *run)
{
	serve(run, POLLIN, run->count, take);
}

static void fanout_server(struct run *run)
{
	char done;

	serve(run, POLLOUT, run->count, give);
	for (uint32_t i = 0; i < run->conns; i++)
		must_recv(run->fds[i], &done, 1);
	take_usage(&run->end);
}

/* All begin together, when each of them is warm. */
static pthread_barrier_t start_line;
static pthread_mutex_t hist_lock = PTHREAD_MUTEX_INITIALIZER;

static void ping(struct run *run, uint32_t c)
{
	struct hist *hist = hist_new();
	uint64_t t0;

	for (uint64_t i = 0; i < run->warm + run->count; i++) {
		if (i == run->warm) {
			if (pthread_barrier_wait(&start_line) < 0)
				take_usage(&run->begin);
			pthread_barrier_wait(&start_line);
		}
		t0 = now();
		send_all(run->fds[c], run->out, run->size);
		must_recv(run->fds[c], run->in[c], run->size);
		if (i >= run->warm)
			hist_add(hist, now() - t0);
	}
	pthread_mutex_lock(&hist_lock);
	hist_merge(run->hist, hist);
	pthread_mutex_unlock(&hist_lock);
	free(hist);
}

static void hotspot_client(struct run *run)
{
	run->hist = hist_new();
	pthread_barrier_init(&start_line, NULL, run->conns);
	each_conn(run, ping);
	take_usage(&run->end);
	pthread_barrier_destroy(&start_line);
}

/* The mean of both directions, as lat has it. */
static double hotspot_value(const struct run *run)
{
	return run->hist->sum / 1e3 / run->hist->total / 2;
}

static void fanin_client(struct run *run)
{
	clocked(run, pour);
}

static void fanout_client(struct run *run)
{
	clocked(run, drink);
}

const struct test test_hotspot = {
	.name = "hotspot", .unit = "us", .what = "round trips each", .id = 5,
	.conns = 8, .max_conns = 1024, .count = 1000, .shared = true,
	.client = hotspot_client, .server = hotspot_server, .value = hotspot_value,
};

const struct test test_fanin = {
	.name = "fanin", .unit = "MB/s", .what = "messages each", .id = 6,
	.conns = 8, .max_conns = 1024, .bytes = 256 << 20, .shared = true,
	.client = fanin_client, .server = fanin_server, .value = mbytes_per_sec,
};

const struct test test_fanout = {
	.name = "fanout", .unit = "MB/s", .what = "messages each", .id = 7,
	.conns = 8, .max_conns = 1024, .bytes = 256 << 20, .shared = true,
	.client = fanout_client, .server = fanout_server, .value = mbytes_per_sec,
};
