/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_maps.h - which memory this process has mapped, and with which protection,
 * as the kernel reports it in /proc/self/maps (unm_maps.c).
 *
 * The memory itself is neither read nor written, so no page is allocated. A
 * result is valid until the process maps, unmaps or protects memory.
 * Thread-safe.
 */
#ifndef UNM_MAPS_H
#define UNM_MAPS_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Check that a whole range is mapped and that its mappings allow an access.
 *
 * at: first byte; len: bytes, and at + len does not wrap; prot: PROT_READ,
 * PROT_WRITE or both. Returns 0 if the access is allowed; -FI_EFAULT if part of
 * the range is not mapped; -FI_EACCES if a mapping forbids the access;
 * -FI_ENOSYS if the kernel gives no answer (no /proc, no free descriptor).
 * A call takes 2 us. Before Linux 6.11 it takes 20 us or more, because the
 * kernel writes a line of text for each mapping below the range.
 */
int unm_maps_allow(const void *at, size_t len, int prot);

/* unm_maps_allow() as it works before Linux 6.11: fd is open for reading at the
 * start of a text in the format of /proc/self/maps. Called by the test, too. */
int unm_maps_allow_text(int fd, const void *at, size_t len, int prot);

#endif /* UNM_MAPS_H */
