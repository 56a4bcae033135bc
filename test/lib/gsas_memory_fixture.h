/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_memory_fixture.h - struct gsas_memory without a HAL, for tests of
 * service/gsas_pages.h
 *
 * Counts the memory in use, and can let allocations fail. As with a HAL, a
 * mapped block can be mapped a second time by its key; other blocks are
 * private.
 */
#ifndef GSAS_MEM_H
#define GSAS_MEM_H

#include <rdma/fi_errno.h>

#include "service/gsas_pages.h"
#include "lib/unit.h"

/* The state of the memory; the test owns it. Any thread may allocate. */
struct gsas_mem {
	_Atomic uint64_t calls;		/* calls of alloc() */
	_Atomic uint64_t blocks, bytes;	/* allocated and not freed */
	_Atomic uint64_t fail_at;	/* number of the call that fails, from 1
					 * on; 0: none */
	_Atomic bool none;		/* each call fails */
};

static int gsas_mem_alloc(void *ctx, uint64_t bytes, bool mapped,
			  struct gsas_block *block)
{
	struct gsas_mem *mem = ctx;
	uint64_t call = atomic_fetch_add(&mem->calls, 1) + 1;
	int fd = -1;
	void *at;

	if (mem->none || call == mem->fail_at)
		return -FI_ENOMEM;
	if (mapped) {
		fd = memfd_create("gsas_mem", MFD_CLOEXEC);
		if (fd < 0 || ftruncate(fd, (off_t)bytes))
			goto fail;
	}
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		  mapped ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	if (at == MAP_FAILED)
		goto fail;
	block->memory = at;
	block->bytes = bytes;
	block->cookie = (void *)(intptr_t)fd;
	atomic_fetch_add(&mem->blocks, 1);
	atomic_fetch_add(&mem->bytes, bytes);
	return 0;
fail:
	if (fd >= 0)
		close(fd);
	return -FI_ENOMEM;
}

static void gsas_mem_free(void *ctx, struct gsas_block *block)
{
	struct gsas_mem *mem = ctx;
	int fd = (int)(intptr_t)block->cookie;

	munmap(block->memory, block->bytes);
	if (fd >= 0)
		close(fd);
	atomic_fetch_sub(&mem->blocks, 1);
	atomic_fetch_sub(&mem->bytes, block->bytes);
	*block = (struct gsas_block){ .memory = NULL };
}

/* The key is the descriptor. */
static int gsas_mem_key(void *ctx, const struct gsas_block *block,
			uint64_t key[2])
{
	(void)ctx;
	key[0] = (uint64_t)(intptr_t)block->cookie;
	key[1] = block->bytes;
	return 0;
}

/* The operations, for gsas_pages_new(). */
static inline struct gsas_memory gsas_mem(struct gsas_mem *mem)
{
	return (struct gsas_memory){
		.alloc = gsas_mem_alloc,
		.free = gsas_mem_free,
		.key = gsas_mem_key,
		.ctx = mem,
	};
}

#endif /* GSAS_MEM_H */
