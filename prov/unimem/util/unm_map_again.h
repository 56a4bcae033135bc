/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_map_again.h - a second mapping of shared memory, for pointers of a
 * program that last longer than the window of the HAL.
 */
#ifndef UNM_MAP_AGAIN_H
#define UNM_MAP_AGAIN_H

#include <stddef.h>
#include <sys/mman.h>

/* Map the memory of a shared mapping once more: mremap() of 0 bytes does that.
 * Forked children do not get the mapping. Returns where it is, for munmap();
 * NULL: no memory. */
static inline void *unm_map_again(void *memory, size_t bytes)
{
	void *at = mremap(memory, 0, bytes, MREMAP_MAYMOVE);

	if (at == MAP_FAILED)
		return NULL;
	if (madvise(at, bytes, MADV_DONTFORK) == 0)
		return at;
	munmap(at, bytes);
	return NULL;
}

#endif /* UNM_MAP_AGAIN_H */
