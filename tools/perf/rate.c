// SPDX-License-Identifier: GPL-2.0
/*
 * rate: connect, a request, a response, close, one connection after the other.
 */
#include <err.h>
#include <unistd.h>

#include "perf.h"

#define RATE_REQUEST	16

static void rate_client(struct run *run)
{
	int fd;

	for (uint64_t i = 0; i < run->warm + run->count; i++) {
		if (i == run->warm)
			take_usage(&run->begin);
		fd = connect_to(run->to, run->from);
		if (fd < 0)
			err(1, "connect");
		send_all(fd, run->out, RATE_REQUEST);
		must_recv(fd, run->in[0], run->size);
		close(fd);
	}
	take_usage(&run->end);
}

static void rate_server(struct run *run)
{
	int fd;

	for (uint64_t i = 0; i < run->warm + run->count; i++) {
		if (i == run->warm)
			take_usage(&run->begin);
		fd = accept_from(run->listener);
		must_recv(fd, run->in[0], RATE_REQUEST);
		send_all(fd, run->out, run->size);
		must_end(fd);
		close(fd);
	}
	take_usage(&run->end);
}

static double rate_value(const struct run *run)
{
	return run->count / seconds(run);
}

const struct test test_rate = {
	.name = "rate", .unit = "conn/s", .what = "connections", .id = 3,
	.conns = 1, .max_conns = 1, .count = 1000, .accepts = true,
	.client = rate_client, .server = rate_server, .value = rate_value,
};
