/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of the kernel that a test can have fail. Every file of the unit tests' module is
 * compiled with this before its first line; the product's module knows nothing of it.
 */
#ifndef MOCK_H
#define MOCK_H

#include <linux/slab.h>
#include <linux/types.h>
#include <rdma/ib_verbs.h>

struct kunit;

/**
 * enum mock_call - what can fail
 * @MOCK_ALLOC: kmalloc(), kzalloc() and kmem_cache_zalloc()
 * @MOCK_MAP: what ib_dma_mapping_error() says of ib_dma_map_single() before it
 * @MOCK_POST_SEND: ib_post_send() of the fake device
 * @MOCK_POST_RECV: ib_post_recv(), likewise
 * @MOCK_CALLS: how many there are
 */
enum mock_call {
	MOCK_ALLOC,
	MOCK_MAP,
	MOCK_POST_SEND,
	MOCK_POST_RECV,
	MOCK_CALLS
};

void mock_fail(enum mock_call call, u64 mask);
bool mock_fails(enum mock_call call);
int mock_init(struct kunit *test);

static inline void *mock_kmalloc(size_t size, gfp_t gfp)
{
	return mock_fails(MOCK_ALLOC) ? NULL : kmalloc(size, gfp);
}

static inline void *mock_kzalloc(size_t size, gfp_t gfp)
{
	return mock_fails(MOCK_ALLOC) ? NULL : kzalloc(size, gfp);
}

static inline void *mock_kmem_cache_zalloc(struct kmem_cache *cache, gfp_t gfp)
{
	return mock_fails(MOCK_ALLOC) ? NULL : kmem_cache_zalloc(cache, gfp);
}

static inline int mock_dma_mapping_error(struct ib_device *ibdev, u64 addr)
{
	return mock_fails(MOCK_MAP) ? -ENOMEM : ib_dma_mapping_error(ibdev, addr);
}

#undef kmalloc
#define kmalloc		mock_kmalloc
#undef kzalloc
#define kzalloc		mock_kzalloc
#undef kmem_cache_zalloc
#define kmem_cache_zalloc	mock_kmem_cache_zalloc
#define ib_dma_mapping_error	mock_dma_mapping_error

#endif /* MOCK_H */
