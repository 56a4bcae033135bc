/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_maps.h - what memory this process has mapped and how the memory is
 * protected, as the kernel says in /proc/self/maps.
 *
 * The memory itself is neither read nor written, and gets no pages. The answer
 * holds until the process maps, unmaps or protects memory. Thread-safe.
 */
#ifndef UNM_MAPS_H
#define UNM_MAPS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Is all of the range mapped, and do its mappings allow the access?
 *
 * at: first byte; len: bytes, the range does not wrap; prot: PROT_READ,
 * PROT_WRITE or both. 0; -FI_EFAULT: part of the range is not mapped;
 * -FI_EACCES: a mapping does not allow the access; -FI_ENOSYS: the kernel does
 * not say (no /proc, no descriptors left).
 * Takes 2 us. Before Linux 6.11 it takes 20 us and more, as the kernel writes
 * a line for each mapping below the range.
 */
int unm_maps_allow(const void *at, size_t len, int prot);

/* The way before Linux 6.11, by reading text from a file; for the test. */
int unm_maps_allow_text(int fd, const void *at, size_t len, int prot);

#endif /* UNM_MAPS_H */
