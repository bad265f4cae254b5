// SPDX-License-Identifier: GPL-2.0
/*
 * mem: what a connection costs that has carried a message there and back.
 */
#include <err.h>

#include "perf.h"

static void mem_client(struct run *run)
{
	take_usage(&run->begin);
	for (uint32_t i = 0; i < run->conns; i++) {
		run->fds[i] = connect_to(run->to, run->from);
		if (run->fds[i] < 0)
			err(1, "connect");
		send_all(run->fds[i], run->out, run->size);
		must_recv(run->fds[i], run->in[0], run->size);
	}
	take_usage(&run->end);
}

static void mem_server(struct run *run)
{
	take_usage(&run->begin);
	for (uint32_t i = 0; i < run->conns; i++) {
		run->fds[i] = accept_from(run->listener);
		must_recv(run->fds[i], run->in[0], run->size);
		send_all(run->fds[i], run->out, run->size);
	}
	take_usage(&run->end);
}

/* Negative if something else gave more back meanwhile. */
static double mem_value(const struct run *run)
{
	return ((double)run->begin.memory - run->end.memory) / run->conns;
}

const struct test test_mem = {
	.name = "mem", .unit = "bytes", .what = "round trip each", .id = 8,
	.conns = 200, .max_conns = 20000, .count = 1,
	.once = true, .accepts = true,
	.client = mem_client, .server = mem_server, .value = mem_value,
};
