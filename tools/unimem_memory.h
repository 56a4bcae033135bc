/* SPDX-License-Identifier: BSD-2-Clause */
/* unimem_memory.h - unimem_info --memory (unimem_memory.c). */
#ifndef UNIMEM_MEMORY_H
#define UNIMEM_MEMORY_H

#include <stdbool.h>

/*
 * Print the memory of each board that has a service, and of this user's owners
 * of memory there; board -1: of all boards. json: one JSON object. Exit code:
 * 0, 1 no board has a service, 2 error.
 */
int memory_show(int board, bool json);

#endif /* UNIMEM_MEMORY_H */
