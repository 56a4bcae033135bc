/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_direct.c - makes, fills and frees a thread's table of the short path,
 * which gsas_direct.h reads.
 */
#include <string.h>
#include <sys/mman.h>

#include "client/gsas_direct.h"

static const struct gsas_hot none;	/* of a thread without a table */

/* Nothing is stored through it while it points to none. */
_Thread_local struct gsas_hot *gsas_hot = (struct gsas_hot *)&none;

struct gsas_hot *gsas_hot_new(bool *wiped)
{
	struct gsas_hot *hot = mmap(NULL, sizeof(*hot), PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (hot == MAP_FAILED)
		return NULL;
	hot->live = true;
	*wiped = madvise(hot, sizeof(*hot), MADV_WIPEONFORK) == 0;
	return hot;
}

void gsas_hot_free(struct gsas_hot *hot)
{
	if (hot != NULL)
		munmap(hot, sizeof(*hot));
}

void gsas_hot_fill(struct gsas_hot *hot, uint64_t address, uint64_t base,
		   const uint8_t *memory)
{
	uint64_t granule = address >> GSAS_SEGMENT_SHIFT;
	struct gsas_hot_segment *slot = gsas_hot_slot(hot, granule);

	slot->granule = granule + 1;
	slot->delta = (uintptr_t)memory - (uintptr_t)base;
	slot->words = (uintptr_t)memory -
		(uintptr_t)(base >> GSAS_PAGE_SHIFT) * sizeof(uint32_t);
}

void gsas_hot_clear(struct gsas_hot *hot)
{
	memset(hot->segment, 0, sizeof(hot->segment));
}

void gsas_hot_use(struct gsas_hot *hot)
{
	gsas_hot = hot != NULL ? hot : (struct gsas_hot *)&none;
}
