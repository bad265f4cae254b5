// SPDX-License-Identifier: GPL-2.0
/*
 * How much memory the module uses for its connections: sockets, links, buffers
 * of both directions. What a device's driver needs for a queue pair is not its
 * own, and no part of this.
 */
#include "mem.h"

DEFINE_PER_CPU(long, hps_mem_bytes);

/**
 * hps_mem_read - what all sockets and connections take
 *
 * Context: any; a snapshot.
 * Return: bytes, of all namespaces.
 */
long hps_mem_read(void)
{
	long sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu(hps_mem_bytes, cpu));
	return sum;
}
