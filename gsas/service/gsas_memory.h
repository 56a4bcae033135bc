/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_memory.h - the source of a board's memory: allocates it from the HAL and
 * from the system, within the budget of the host.
 */
#ifndef GSAS_MEMORY_H
#define GSAS_MEMORY_H

#include "hal/hal.h"
#include "service/gsas_pages.h"

struct gsas_source;

/*
 * Make a source of memory of a board. budget: bytes that the services of all
 * boards of this host may have together; 0: no common limit. log: for a line
 * that any thread may write; NULL: none. hal must outlive the source. 0,
 * -FI_ENOMEM.
 */
int gsas_source_new(struct hal *hal, int board, uint64_t budget,
		    void (*log)(const char *line), struct gsas_source **source);
/* Free the source. All its memory must have been freed before. */
void gsas_source_free(struct gsas_source *source);

/* The functions of the source for gsas_pages.h. Any thread may call them. */
struct gsas_memory gsas_source_memory(struct gsas_source *source);

#endif /* GSAS_MEMORY_H */
