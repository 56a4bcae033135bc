/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_memory.h - where a board's service has its memory from: gsas_memory.c.
 */
#ifndef GSAS_MEMORY_H
#define GSAS_MEMORY_H

#include "hal/hal.h"
#include "service/gsas_pages.h"

struct gsas_source;

/*
 * budget: bytes that the services of all boards of this host may have together,
 * 0: this one does not ask for the others. The memory is of hal's board number
 * board. 0, -FI_ENOMEM.
 */
int gsas_source_new(struct hal *hal, int board, uint64_t budget,
		    struct gsas_source **source);
/* After all its memory was given back. */
void gsas_source_free(struct gsas_source *source);

/* The functions for gsas_pages; by any thread. */
struct gsas_memory gsas_source_memory(struct gsas_source *source);

#endif /* GSAS_MEMORY_H */
