/* SPDX-License-Identifier: BSD-2-Clause */
/* ep_mem.h - allocate dmable memory of a domain without an endpoint, for tests
 * of rma/unm_mem.h; uses ep_pair.h for fabrics */
#ifndef EP_MEM_H
#define EP_MEM_H

#include "lib/ep_pair.h"
#include "fi_ext_unimem.h"
#include "rma/unm_mem.h"

#define MIB		((size_t)1 << 20)

static struct fi_unimem_mem_ops *g_ops;	/* allocator, set by domain_open() */

/* Open another domain of e's fabric, without an endpoint, and its allocator. */
static inline struct fid_domain *domain_open(struct ep *e)
{
	struct fid_domain *domain;

	assert_int_equal(fi_domain(e->fabric, e->info, &domain, NULL), 0);
	assert_int_equal(fi_open_ops(&domain->fid, FI_UNIMEM_MEM, 0,
				     (void **)&g_ops, NULL), 0);
	return domain;
}

static inline struct unm_heap *heap_of(struct fid_domain *domain)
{
	return atomic_load(&unm_domain(domain)->heap);
}

/* The number of segments that the domain's heap consists of. */
static inline uint32_t segments(struct fid_domain *domain)
{
	return atomic_load(&heap_of(domain)->view[0].count);
}

/* Allocate; free with put(). */
static inline uint8_t *get(struct fid_domain *domain, size_t bytes,
			   size_t align)
{
	void *addr = NULL;

	assert_int_equal(g_ops->alloc(domain, bytes, align, 0, &addr), 0);
	assert_non_null(addr);
	return addr;
}

static inline void put(struct fid_domain *domain, void *addr)
{
	assert_int_equal(g_ops->free(domain, addr), 0);
}

/* Returns whether n bytes from p on all have this value. */
static inline bool all(const uint8_t *p, size_t n, uint8_t byte)
{
	return p[0] == byte && memcmp(p, p + 1, n - 1) == 0;
}

/* Returns whether the HAL is the emulation, decorated or not. */
static inline bool on_emu(const struct ep *e)
{
	return strstr(unm_domain(e->domain)->hal->caps.backend, "emu") != NULL;
}

#endif /* EP_MEM_H */
