/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * malloc_arena.h - the memory of large blocks: one memfd, mapped once
 * (malloc_arena.c).
 *
 * The arena is made when the first large block is allocated, or when the
 * provider asks for it. It is mapped at one address until the process ends, so
 * that free() distinguishes a large block from a small one by two comparisons.
 * The bookkeeping is in private memory.
 *
 * All functions keep errno and may be called by any thread. NULL or 0 from an
 * allocation means that the arena steps aside: the caller takes memory from the
 * next allocator.
 */
#ifndef MALLOC_ARENA_H
#define MALLOC_ARENA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/unm_span.h"

#define ARENA_ALIGN_MAX	((size_t)1 << 21)	/* largest alignment */
#define ARENA_SIZE_MOST	((size_t)32 << 30)	/* bytes of the arena: half of
						 * what a peer maps
						 * (FI_UNIMEM_RKEY_BYTES) */
#define ARENA_SPAN_BASE	((uintptr_t)1 << 21)	/* place of the first page in
						 * the span: a multiple of
						 * ARENA_ALIGN_MAX */
#define ARENA_FD_LEAST	100		/* of the arena's descriptors, if there
					 * are so many */
#define ARENA_KEPT	16			/* most blocks that are kept */

enum arena_state {
	ARENA_NONE,			/* not made yet */
	ARENA_MAKING,			/* a thread makes it */
	ARENA_READY,
	ARENA_OFF,			/* cannot be made, or a forked child */
};

/* A block that the program has freed, and whose pages are kept for the next
 * block of about that size. span has it as used. */
struct arena_kept {
	uintptr_t at;			/* 0: no block */
	size_t bytes;
};

/* The arena of the process. lock protects all that is not constant once state
 * is ARENA_READY; base and size are read without it. */
struct arena {
	_Atomic int state;		/* enum arena_state */
	_Atomic uintptr_t base;		/* first address; constant since size */
	_Atomic size_t size;		/* bytes; 0: there is no arena */
	size_t page;			/* bytes of a page */
	size_t min;			/* UNIMEM_MALLOC_MIN: bytes of the
					 * smallest block */
	size_t keep;			/* UNIMEM_MALLOC_KEEP: most bytes that
					 * are kept */
	int fd;				/* memfd ... */
	dev_t dev;			/* ... and its identity, because the */
	ino_t ino;			/* program may close the descriptor */
	bool forked;			/* this is a child: the blocks are
					 * private memory now */
	pthread_mutex_t lock;
	struct unm_span span;		/* used and free pages, see
					 * malloc_arena.c */
	uint64_t credit;		/* bytes to allocate until the machine's
					 * free memory is read again */
	size_t kept_bytes;		/* of the blocks in kept */
	struct arena_kept kept[ARENA_KEPT];	/* the oldest first */
};

extern struct arena g_arena;

/* Has this thread the lock, or is it about to take or release it? For a signal
 * handler that forks. */
extern __thread volatile bool g_arena_inside
	__attribute__((tls_model("initial-exec")));

/* State of the calling thread that a call changes, and restores at its end. */
struct arena_call {
	int error;			/* errno of the program */
	int cancel;			/* pthread_setcancelstate(3) */
};

/* Begin and end a call that may read files: a thread that is canceled there
 * would keep the lock. */
void arena_enter(struct arena_call *call);
void arena_leave(const struct arena_call *call);

/* Take and release g_arena.lock. */
void arena_lock(void);
void arena_unlock(void);

/* Is this an address in the arena? Any thread, without a lock. */
static inline bool arena_has(const void *p)
{
	/* pairs with the release in publish() of malloc_make.c; base was
	 * stored before */
	size_t size = atomic_load_explicit(&g_arena.size,
					   memory_order_acquire);
	uintptr_t base = atomic_load_explicit(&g_arena.base,
					      memory_order_relaxed);

	return (uintptr_t)p - base < size;	/* size 0: no */
}

/* Make the arena: fill in g_arena. False: there can be none, or it is not
 * wanted. Only one thread ever calls this, once. */
bool arena_make(void);

/* Allocate bytes, of which the first want are needed now; the rest may be
 * needed if the block grows. align: a power of two up to ARENA_ALIGN_MAX. zero:
 * the block has to be zero. Returns NULL for fewer than UNIMEM_MALLOC_MIN bytes
 * too. */
void *arena_alloc(size_t want, size_t bytes, size_t align, bool zero);

/* Free a block. p: an address that arena_has(). Ends the program if no block
 * begins there. */
void arena_free(void *p);

/* The bytes of the block that begins at p, as for arena_free(). */
size_t arena_bytes(void *p);

/* Give the pages behind the first bytes of a block back to the system. */
void arena_trim(void *p, size_t bytes);

/* Give all kept pages back. Lock held. */
void arena_unkeep(void);

/* Move a descriptor that closes on exec() to a number that programs do not
 * expect to get next, if there is one. Returns its number. */
int arena_fd_high(int fd);

/* True if fd is still the arena's memfd. */
bool arena_fd_valid(void);

/* Bytes that the machine should have free for other uses. */
uint64_t arena_reserve(void);

/* The block that follows the address after, which is 0 or the end of a block,
 * and its bytes. Returns 0 if there is none. Lock held. */
uintptr_t arena_next(uintptr_t after, size_t *bytes);

#endif /* MALLOC_ARENA_H */
