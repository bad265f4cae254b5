// SPDX-License-Identifier: GPL-2.0
/*
 * What a run holds: connections and buffers, there before the clock starts.
 */
#include <err.h>
#include <stdlib.h>
#include <unistd.h>

#include "perf.h"

/* What the server sends in answer to a request may be smaller than that. */
#define SMALLEST	64

void run_alloc(struct run *run)
{
	uint32_t size = run->size < SMALLEST ? SMALLEST : run->size;

	run->fds = malloc(run->conns * sizeof(*run->fds));
	run->in = malloc(run->conns * sizeof(*run->in));
	if (!run->fds || !run->in)
		err(1, "memory");
	run->out = alloc_buf(size);
	for (uint32_t i = 0; i < run->conns; i++) {
		run->fds[i] = -1;
		/* Not all at once where the connections are made one by one. */
		run->in[i] = i && run->test->accepts ? NULL : alloc_buf(size);
	}
}

void run_free(struct run *run)
{
	for (uint32_t i = 0; i < run->conns; i++) {
		if (run->fds[i] >= 0 && run->fds[i] != run->control)
			close(run->fds[i]);
		free(run->in[i]);
	}
	free(run->fds);
	free(run->in);
	free(run->out);
	free(run->hist);
}
