/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_limit.h - how much memory this process can still take: of the machine,
 * and within the limits of its memory control groups.
 *
 * Any thread may call these functions.
 */
#ifndef HAL_LIMIT_H
#define HAL_LIMIT_H

#include <stddef.h>
#include <stdint.h>

#include "hal/hal_export.h"

/* Can this process take so many bytes more? what names their purpose in the log
 * line. 0; -FI_ENOMEM after a log line. No bytes are reserved. */
int hal_limit_check(const char *what, size_t bytes);

/*
 * Bytes that this process can take before the kernel kills processes for lack
 * of memory: the least of what the machine has available and what is left to
 * each control group, from the process's own to the root, when 512 KiB of it
 * stay free for the stacks, heaps and page tables of its processes. Swap space
 * and cached files count as available; a group that has enough bytes without
 * them is not examined for them. UINT64_MAX: the system does not report it.
 * Other processes may take the same bytes meanwhile.
 */
HAL_EXPORT uint64_t hal_memory_left(uint64_t enough);

/* Bytes of memory that this process could take if no other process had any: the
 * machine's memory or the least limit of a control group, without swap space.
 * The value is at most 10 ms old; while the files of the system cannot be read
 * for want of descriptors or memory, it is the last value that was read. If no
 * value was read before, the limits in the files that cannot be read are left
 * out. UINT64_MAX: the system does not report it, or no file could be read. */
HAL_EXPORT uint64_t hal_memory_total(void);

/* For tests: read /proc and /sys below this folder; "": the real ones. */
HAL_EXPORT void hal_limit_root(const char *root);

#endif /* HAL_LIMIT_H */
