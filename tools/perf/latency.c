// SPDX-License-Identifier: GPL-2.0
/*
 * lat: a message there and back, one after the other.
 */
#include "perf.h"

static void lat_client(struct run *run)
{
	for (uint64_t i = 0; i < run->warm + run->count; i++) {
		if (i == run->warm)
			take_usage(&run->begin);
		send_all(run->control, run->out, run->size);
		must_recv(run->control, run->in[0], run->size);
	}
	take_usage(&run->end);
}

static void lat_server(struct run *run)
{
	for (uint64_t i = 0; i < run->warm + run->count; i++) {
		if (i == run->warm)
			take_usage(&run->begin);
		must_recv(run->control, run->in[0], run->size);
		send_all(run->control, run->out, run->size);
	}
	take_usage(&run->end);
}

static double lat_value(const struct run *run)
{
	return seconds(run) * 1e6 / run->count / 2;
}

const struct test test_lat = {
	.name = "lat", .unit = "us", .what = "round trips", .id = 1,
	.conns = 1, .max_conns = 1, .count = 10000,
	.client = lat_client, .server = lat_server, .value = lat_value,
};
