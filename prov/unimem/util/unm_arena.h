/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_arena.h - the one function that libunimem-malloc.so has for the provider:
 * the memory from which it serves large blocks of the program's heap.
 *
 * malloc/malloc_arena.c defines the function. In a process without the preload
 * it is a weak symbol without a value.
 */
#ifndef UNM_ARENA_H
#define UNM_ARENA_H

#include <stddef.h>

/*
 * All of the arena: a memfd, sealed against shrinking and growing, mapped
 * shared and writable. Its address, size and descriptor are constant, and it is
 * there until the process ends. The descriptor belongs to the preload.
 */
struct unm_arena {
	void *addr;
	size_t bytes;
	int fd;
};

/* Fill *arena, after making the arena if there is none yet. Returns 0;
 * -FI_ENOSYS if this process has no arena: none is possible or wanted, or the
 * process is a forked child. Any thread. */
typedef int unm_arena_fn(struct unm_arena *arena);
extern unm_arena_fn unimem_malloc_arena
	__attribute__((weak, visibility("default")));

#endif /* UNM_ARENA_H */
