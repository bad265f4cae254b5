/* SPDX-License-Identifier: GPL-2.0 */
#ifndef HPS_MEM_H
#define HPS_MEM_H

#include <linux/percpu.h>
#include <linux/slab.h>

DECLARE_PER_CPU(long, hps_mem_bytes);

/*
 * Bytes that the module took from the kernel, or gave back if negative: what the
 * allocator set aside, not what was asked for. Context: any.
 */
static inline void hps_mem_count(long bytes)
{
	this_cpu_add(hps_mem_bytes, bytes);
}

/* A slab object was allocated. */
static inline void hps_mem_add(const void *obj)
{
	hps_mem_count(ksize(obj));
}

/* It is about to be freed. */
static inline void hps_mem_sub(const void *obj)
{
	hps_mem_count(-(long)ksize(obj));
}

long hps_mem_read(void);

#endif /* HPS_MEM_H */
