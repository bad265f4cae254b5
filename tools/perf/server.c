// SPDX-License-Identifier: GPL-2.0
/*
 * The server: a child for each client, or none with -1.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf.h"

#define MAX_SIZE	0x40000000	/* 1 GiB */

/* False if the client has gone without a word. */
static bool take_request(struct run *run)
{
	struct request req;

	if (!recv_all(run->control, &req, sizeof(req)))
		return false;
	if (ntohl(req.magic) != PERF_MAGIC)
		errx(1, "the client is of another version");
	run->test = test_numbered(ntohl(req.test));
	if (!run->test)
		errx(1, "a request for another test");
	run->size = ntohl(req.size);
	run->conns = ntohl(req.conns);
	run->count = be64toh(req.count);
	run->warm = be64toh(req.warm);
	run->again = req.again;
	if (!run->size || run->size > MAX_SIZE || !run->count ||
	    !run->conns || run->conns > run->test->max_conns ||
	    (uint64_t)run->size * run->conns > MAX_SIZE ||
	    run->count > UINT32_MAX || run->warm > UINT32_MAX)
		errx(1, "a request out of range");
	return true;
}

static bool over_control(const struct run *run)
{
	return run->conns == 1 && !run->test->accepts && !run->test->shared;
}

static uint32_t port_of(int fd)
{
	struct sockaddr_in6 at = { 0 };
	socklen_t len = sizeof(at);

	if (getsockname(fd, (struct sockaddr *)&at, &len))
		err(1, "getsockname");
	/* At the same place in an IPv4 address. */
	return ntohs(at.sin6_port);
}

static void say_ready(struct run *run)
{
	struct ready ready = { .magic = htonl(PERF_MAGIC) };
	struct addrinfo *ai;

	if (!over_control(run)) {
		ai = resolve(opt.bind, "0");
		run->listener = listen_at(ai, run->conns < 128 ? 128 : run->conns);
		freeaddrinfo(ai);
		ready.port = htonl(port_of(run->listener));
	}
	send_all(run->control, &ready, sizeof(ready));
	if (over_control(run))
		run->fds[0] = run->control;
	else if (!run->test->accepts)
		for (uint32_t i = 0; i < run->conns; i++)
			run->fds[i] = accept_from(run->listener);
}

/* Not before the client is through with its own clock. */
static void send_report(struct run *run)
{
	struct report report;
	struct cost cost;
	char c;

	must_recv(run->control, &c, 1);
	cost_of(run, &cost);
	report.cpu = htobe64(cost.cpu);
	report.busy = htobe64(cost.busy);
	report.memory = htobe64(cost.memory);
	send_all(run->control, &report, sizeof(report));
}

/* Whether the client will connect again, for another run. */
static bool serve(int fd)
{
	struct run run = { .control = fd, .listener = -1 };

	if (!take_request(&run))
		return false;
	run_alloc(&run);
	say_ready(&run);
	run.test->server(&run);
	send_report(&run);
	run_free(&run);
	if (run.listener >= 0)
		close(run.listener);
	return run.again;
}

/* One that dies takes nobody along. */
static void serve_in_child(int lfd, int fd)
{
	if (fork())
		return;
	close(lfd);
	serve(fd);
	exit(0);
}

void serve_clients(void)
{
	struct addrinfo *ai = resolve(opt.bind, opt.port);
	int lfd = listen_at(ai, 16);
	bool again = false;
	int fd;

	freeaddrinfo(ai);
	signal(SIGCHLD, SIG_IGN);
	do {
		fd = accept_from(lfd);
		if (opt.once)
			again = serve(fd);
		else
			serve_in_child(lfd, fd);
		close(fd);
	} while (!opt.once || again);
	close(lfd);
}
