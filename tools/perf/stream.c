// SPDX-License-Identifier: GPL-2.0
/*
 * bw and bibw: as many bytes as go, in one direction or in both, over one
 * connection or, with a thread for each at either end, over several.
 */
#include <err.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "perf.h"

struct worker {
	struct run *run;
	void (*fn)(struct run *run, uint32_t i);
	uint32_t i;
	pthread_t thread;
};

static void *work(void *arg)
{
	struct worker *worker = arg;

	worker->fn(worker->run, worker->i);
	return NULL;
}

static void begin(struct worker *worker, struct run *run,
		  void (*fn)(struct run *run, uint32_t i), uint32_t i)
{
	worker->run = run;
	worker->fn = fn;
	worker->i = i;
	errno = pthread_create(&worker->thread, NULL, work, worker);
	if (errno)
		err(1, "a thread");
}

/* In a thread for each connection, if there is more than one. */
void each_conn(struct run *run, void (*fn)(struct run *run, uint32_t i))
{
	struct worker *workers;

	if (run->conns == 1) {
		fn(run, 0);
		return;
	}
	workers = calloc(run->conns, sizeof(*workers));
	if (!workers)
		err(1, "memory");
	for (uint32_t i = 0; i < run->conns; i++)
		begin(&workers[i], run, fn, i);
	for (uint32_t i = 0; i < run->conns; i++)
		pthread_join(workers[i].thread, NULL);
	free(workers);
}

void clocked(struct run *run, void (*fn)(struct run *run, uint32_t i))
{
	take_usage(&run->begin);
	each_conn(run, fn);
	take_usage(&run->end);
}

static void source(struct run *run, uint32_t i)
{
	struct feed *feed = feed_new(run->fds[i], run->out, run->size);

	for (uint64_t n = 0; n < run->count; n++)
		feed_send(feed);
	/* Nothing fills up the last message. */
	set_cork(run->fds[i], false);
	feed_free(feed);
}

static void sink(struct run *run, uint32_t i)
{
	drain(run->fds[i], run->in[i], run->size, run->count * run->size);
}

/* The clock stops when the peer has read everything and said so. */
void pour(struct run *run, uint32_t i)
{
	char done;

	source(run, i);
	must_recv(run->fds[i], &done, 1);
}

void drink(struct run *run, uint32_t i)
{
	sink(run, i);
	send_all(run->fds[i], "", 1);
}

static void bw_client(struct run *run)
{
	clocked(run, pour);
}

static void bw_server(struct run *run)
{
	clocked(run, drink);
}

double mbytes_per_sec(const struct run *run)
{
	return (double)run->size * run->count * run->conns / seconds(run) / 1e6;
}

/* Both at once; what has arrived here says nothing of what has there. */
static void both_ways(struct run *run, uint32_t i)
{
	struct worker sender;
	char done;

	begin(&sender, run, source, i);
	sink(run, i);
	pthread_join(sender.thread, NULL);
	send_all(run->fds[i], "", 1);
	must_recv(run->fds[i], &done, 1);
}

static void bibw_both(struct run *run)
{
	clocked(run, both_ways);
}

static double bibw_value(const struct run *run)
{
	return 2 * mbytes_per_sec(run);
}

const struct test test_bw = {
	.name = "bw", .unit = "MB/s", .what = "messages", .id = 2,
	.conns = 1, .max_conns = 1024, .bytes = 256 << 20,
	.client = bw_client, .server = bw_server, .value = mbytes_per_sec,
};

const struct test test_bibw = {
	.name = "bibw", .unit = "MB/s", .what = "messages each way", .id = 4,
	.conns = 1, .max_conns = 1024, .bytes = 256 << 20,
	.client = bibw_both, .server = bibw_both, .value = bibw_value,
};
