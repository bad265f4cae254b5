// SPDX-License-Identifier: GPL-2.0
/*
 * What a run costs: time, processor time, memory.
 *
 * The work of a socket over RDMA is done by the kernel's workers and softirqs as
 * well, which no process is charged with. So there is also the time that all
 * processors of the host were not idle, which counts whatever else they did.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

uint64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static uint64_t own_cpu(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static uint64_t idle_ns(void)
{
	FILE *f = fopen("/proc/stat", "re");
	unsigned long long idle = 0, wait = 0;

	if (!f)
		return 0;
	if (fscanf(f, "cpu %*u %*u %*u %llu %llu", &idle, &wait) < 1)
		idle = 0;
	fclose(f);
	return (idle + wait) * (NSEC_PER_SEC / sysconf(_SC_CLK_TCK));
}

/* The numbers behind these names in a file of lines "name number", added up. */
static uint64_t sum_of(const char *path, const char *const *names)
{
	FILE *f = fopen(path, "re");
	unsigned long long value;
	char line[128], name[64];
	uint64_t sum = 0;

	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %llu", name, &value) != 2)
			continue;
		for (int i = 0; names[i]; i++)
			if (!strcmp(name, names[i]))
				sum += value;
	}
	fclose(f);
	return sum;
}

/* Cache is as good as free, and files that are read meanwhile are not our cost. */
static uint64_t free_memory(void)
{
	static const char *const names[] = { "MemFree:", "Buffers:", "Cached:", NULL };

	return sum_of("/proc/meminfo", names) * 1024;
}

static uint64_t module_memory(void)
{
	static const char *const names[] = { "memory", NULL };

	return sum_of("/proc/net/hpsock_stat", names);
}

void take_usage(struct usage *usage)
{
	usage->memory = free_memory();
	usage->module = module_memory();
	usage->idle = idle_ns();
	usage->cpu = own_cpu();
	usage->time = now();
}

/* 0 where that is less than the 10 ms that /proc/stat counts in can tell. */
uint64_t busy_ns(const struct usage *begin, const struct usage *end)
{
	uint64_t all = (end->time - begin->time) * sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t idle = end->idle - begin->idle;

	return all > idle ? all - idle : 0;
}

double seconds(const struct run *run)
{
	return (run->end.time - run->begin.time) / 1e9;
}
