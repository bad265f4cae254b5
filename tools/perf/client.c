// SPDX-License-Identifier: GPL-2.0
/*
 * The client: a run for each size that was asked for.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf.h"

/* Retries for -w seconds, so that a script need not know when we listen. */
static int connect_first(const char *host, struct addrinfo *ai,
			 const struct addrinfo *from)
{
	uint64_t end = now() + opt.wait_secs * NSEC_PER_SEC;
	int fd;

	for (;;) {
		fd = connect_to(ai, from);
		if (fd >= 0)
			return fd;
		if (errno != ECONNREFUSED || now() >= end)
			err(1, "connect to %s port %s", host, opt.port);
		usleep(10000);
	}
}

static void send_request(const struct run *run)
{
	struct request req = {
		.magic = htonl(PERF_MAGIC),
		.test = htonl(run->test->id),
		.size = htonl(run->size),
		.conns = htonl(run->conns),
		.count = htobe64(run->count),
		.warm = htobe64(run->warm),
		.again = run->again,
	};

	send_all(run->control, &req, sizeof(req));
}

static void set_port(struct addrinfo *ai, uint32_t port)
{
	/* At the same place in an IPv4 address. */
	((struct sockaddr_in6 *)ai->ai_addr)->sin6_port = htons(port);
}

static void open_conns(struct run *run, struct addrinfo *ai)
{
	struct ready ready;
	uint32_t port;

	must_recv(run->control, &ready, sizeof(ready));
	if (ntohl(ready.magic) != PERF_MAGIC)
		errx(1, "the server is of another version");
	port = ntohl(ready.port);
	if (!port) {
		run->fds[0] = run->control;
		set_cork(run->control, true);
		return;
	}
	set_port(ai, port);
	run->to = ai;
	for (uint32_t i = 0; i < run->conns && !run->test->accepts; i++) {
		run->fds[i] = connect_to(ai, run->from);
		if (run->fds[i] < 0)
			err(1, "connect");
		set_cork(run->fds[i], true);
	}
}

static void take_report(const struct run *run, struct cost *cost)
{
	struct report report;

	send_all(run->control, "", 1);
	must_recv(run->control, &report, sizeof(report));
	cost->cpu = be64toh(report.cpu);
	cost->busy = be64toh(report.busy);
	cost->memory = be64toh(report.memory);
}

/* The first hundredth, at most 100, warms up caches and credits. */
static void set_count(struct run *run)
{
	run->count = opt.count && !run->test->once ? opt.count :
		     run->test->count ? run->test->count :
		     run->test->bytes / run->size / run->conns + 1;
	if (run->test->count)
		run->warm = run->count / 100 < 100 ? run->count / 100 : 100;
}

static void run_once(const char *host, uint32_t size, bool again)
{
	struct addrinfo *from = opt.bind ? resolve(opt.bind, "0") : NULL;
	struct addrinfo *ai = resolve(host, opt.port);
	struct run run = {
		.test = opt.test, .size = size, .again = again, .from = from,
		.conns = opt.conns ? opt.conns : opt.test->conns,
	};
	struct cost peer;

	set_count(&run);
	run_alloc(&run);
	run.control = connect_first(host, ai, from);
	send_request(&run);
	open_conns(&run, ai);
	run.test->client(&run);
	take_report(&run, &peer);
	print_result(&run, &peer);
	run_free(&run);
	close(run.control);
	freeaddrinfo(ai);
	if (from)
		freeaddrinfo(from);
}

void run_client(const char *host)
{
	uint64_t size = opt.size_min;

	for (; size < opt.size_max; size *= 2)
		run_once(host, size, true);
	run_once(host, opt.size_max, false);
}
