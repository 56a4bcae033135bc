/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_limit.h - how much memory is left: of the machine, and in the memory
 * control groups that this process is in. hal_limit.c.
 */
#ifndef HAL_LIMIT_H
#define HAL_LIMIT_H

#include "hal/hal.h"

/* Room for bytes in the machine and in the memory control group? -FI_ENOMEM
 * after one line. */
int hal_limit_check(const char *what, size_t bytes);

/*
 * Bytes that this process can still take before the kernel ends processes for
 * want of memory: what the machine has available, and each control group from
 * the process's own to the root, whichever is the least. Swap space and cached
 * files count as available; if there are enough bytes without these, they are
 * not looked at. UINT64_MAX: the system does not tell. Other processes may take
 * the same bytes meanwhile.
 */
HAL_EXPORT uint64_t hal_memory_left(uint64_t enough);

/* The same if nobody had taken any, and without swap space. */
HAL_EXPORT uint64_t hal_memory_total(void);

/* Tests: the folder in which /proc and /sys are; "": the root. */
HAL_EXPORT void hal_limit_root(const char *root);

#endif /* HAL_LIMIT_H */
