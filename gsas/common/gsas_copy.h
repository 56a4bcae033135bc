/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_copy.h - copy from and to memory that other threads or processes access
 * at the same time. Part of gsasd and of libgsas. Pure.
 *
 * Each aligned word of up to 8 bytes on the shared side is accessed as a whole.
 * The words are accessed in no particular order.
 */
#ifndef GSAS_COPY_H
#define GSAS_COPY_H

#include <stdint.h>

/* Copy len bytes from shared memory to private memory; any alignment. */
void gsas_copy_from_shared(void *dst, const void *shared, uint64_t len);
/* Copy len bytes from private memory to shared memory; any alignment. */
void gsas_copy_to_shared(void *shared, const void *src, uint64_t len);

#endif /* GSAS_COPY_H */
