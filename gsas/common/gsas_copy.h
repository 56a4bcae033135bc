/* SPDX-License-Identifier: BSD-2-Clause */
/* gsas_copy.h - copy what others may access at the same time: each aligned word
 * of up to 8 bytes of the shared side at once, in no order. Pure. */
#ifndef GSAS_COPY_H
#define GSAS_COPY_H

#include <stdint.h>

void gsas_copy_from_shared(void *dst, const void *shared, uint64_t len);
void gsas_copy_to_shared(void *shared, const void *src, uint64_t len);

#endif /* GSAS_COPY_H */
