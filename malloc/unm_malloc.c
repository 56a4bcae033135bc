/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_malloc.c - the functions of malloc(3), which libunimem-malloc.so puts
 * before those of the C library or of another allocator.
 *
 * A block of UNIMEM_MALLOC_MIN bytes and more comes from the arena
 * (malloc_arena.c), if there is one and it has the memory. All other blocks
 * come from the next allocator in the order of libraries. An address in the
 * arena is a block of the arena; all other addresses go to the next allocator.
 * libunimem-malloc(7) describes the library for users.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "malloc_arena.h"
#include "malloc_fork.h"

#define EXPORT		__attribute__((visibility("default")))
#define EARLY_BYTES	8192

/* ---- The next allocator ------------------------------------------------ */

static struct {
	_Atomic bool found;
	bool searching;			/* in find_next(): of the first call of
					 * the process, which has one thread */
	void *(*malloc)(size_t bytes);
	void *(*calloc)(size_t n, size_t bytes);
	void *(*realloc)(void *p, size_t bytes);
	void (*free)(void *p);
	void *(*memalign)(size_t align, size_t bytes);
	void *(*aligned_alloc)(size_t align, size_t bytes);
	int (*posix_memalign)(void **p, size_t align, size_t bytes);
	void *(*valloc)(size_t bytes);
	void *(*pvalloc)(size_t bytes);
	size_t (*usable)(void *p);
} g_next;

/* Memory for the calls that dlsym(3) itself makes, which is never freed. */
static struct {
	alignas(16) unsigned char bytes[EARLY_BYTES];
	size_t used;
} g_early;

static void *early_alloc(size_t bytes)
{
	void *p = &g_early.bytes[g_early.used];

	if (bytes > EARLY_BYTES - g_early.used)
		abort();
	g_early.used += (bytes + 15) & ~(size_t)15;
	return p;
}

static bool is_early(const void *p)
{
	return (uintptr_t)p - (uintptr_t)g_early.bytes < EARLY_BYTES;
}

static void *next_symbol(const char *name)
{
	static const char none[] = "libunimem-malloc: no other allocator is "
		"linked\n";
	void *found = dlsym(RTLD_NEXT, name);

	if (found == NULL) {
		if (write(STDERR_FILENO, none, sizeof(none) - 1) < 0)
			abort();
		abort();
	}
	return found;
}

/* Find the next allocator. Threads that are first at once find the same. */
static void find_next(void)
{
	g_next.searching = true;
	*(void **)&g_next.malloc = next_symbol("malloc");
	*(void **)&g_next.calloc = next_symbol("calloc");
	*(void **)&g_next.realloc = next_symbol("realloc");
	*(void **)&g_next.free = next_symbol("free");
	*(void **)&g_next.memalign = next_symbol("memalign");
	*(void **)&g_next.aligned_alloc = next_symbol("aligned_alloc");
	*(void **)&g_next.posix_memalign = next_symbol("posix_memalign");
	*(void **)&g_next.valloc = next_symbol("valloc");
	*(void **)&g_next.pvalloc = next_symbol("pvalloc");
	*(void **)&g_next.usable = next_symbol("malloc_usable_size");
	/* pairs with the acquire in early() */
	atomic_store_explicit(&g_next.found, true, memory_order_release);
	g_next.searching = false;
	malloc_fork_register();
}

/* True in a call that the search for the next allocator makes. Starts the
 * search in the first call of the process. */
static inline bool early(void)
{
	/* pairs with the release in find_next() */
	if (__builtin_expect(atomic_load_explicit(&g_next.found,
						  memory_order_acquire), 1))
		return false;
	if (g_next.searching)
		return true;
	find_next();
	return false;
}

/* ---- Allocation -------------------------------------------------------- */

/* A large block of the arena, or NULL. */
static inline void *large(size_t bytes, size_t align, bool zero)
{
	if (__builtin_expect(bytes < g_arena.min, 1))
		return NULL;
	return arena_alloc(bytes, bytes, align, zero);
}

EXPORT void *malloc(size_t bytes)
{
	void *p;

	if (early())
		return early_alloc(bytes);
	p = large(bytes, 1, false);
	return p != NULL ? p : g_next.malloc(bytes);
}

EXPORT void *calloc(size_t n, size_t bytes)
{
	size_t all;
	void *p;

	if (early())
		return early_alloc(n * bytes);	/* never reused: zero */
	p = __builtin_mul_overflow(n, bytes, &all) ? NULL :
		large(all, 1, true);
	return p != NULL ? p : g_next.calloc(n, bytes);
}

EXPORT void *memalign(size_t align, size_t bytes)
{
	void *p = NULL;

	if (early())
		abort();
	if (align != 0 && (align & (align - 1)) == 0)
		p = large(bytes, align, false);
	return p != NULL ? p : g_next.memalign(align, bytes);
}

EXPORT void *aligned_alloc(size_t align, size_t bytes)
{
	void *p = NULL;

	if (early())
		abort();
	if (align != 0 && (align & (align - 1)) == 0)
		p = large(bytes, align, false);
	return p != NULL ? p : g_next.aligned_alloc(align, bytes);
}

EXPORT int posix_memalign(void **out, size_t align, size_t bytes)
{
	void *p = NULL;

	if (early())
		abort();
	if (align % sizeof(void *) == 0 && align != 0 &&
	    (align & (align - 1)) == 0)
		p = large(bytes, align, false);
	if (p == NULL)
		return g_next.posix_memalign(out, align, bytes);
	*out = p;
	return 0;
}

EXPORT void *valloc(size_t bytes)
{
	void *p;

	if (early())
		abort();
	p = large(bytes, 1, false);
	return p != NULL ? p : g_next.valloc(bytes);
}

EXPORT void *pvalloc(size_t bytes)
{
	void *p;

	if (early())
		abort();
	p = large(bytes, 1, false);
	return p != NULL ? p : g_next.pvalloc(bytes);
}

/* ---- Release and change ------------------------------------------------ */

EXPORT void free(void *p)
{
	if (__builtin_expect(arena_has(p), 0))
		arena_free(p);
	else if (!is_early(p) && !early())
		g_next.free(p);
}

EXPORT size_t malloc_usable_size(void *p)
{
	if (arena_has(p))
		return arena_bytes(p);
	return early() || is_early(p) ? 0 : g_next.usable(p);
}

/* Move a block of any kind of old bytes to a new place. */
static void *move(void *to, void *from, size_t old, size_t bytes)
{
	if (to != NULL) {
		memcpy(to, from, old < bytes ? old : bytes);
		free(from);
	}
	return to;
}

/* Resize a block of the arena. A block that grows may grow again, so the new
 * place has addresses for twice the bytes. */
static void *resize(void *p, size_t bytes)
{
	size_t old = arena_bytes(p);
	void *to;

	if (bytes <= old && bytes >= g_arena.min) {
		if (old - bytes >= g_arena.min)
			arena_trim(p, bytes);
		return p;
	}
	to = bytes > old && bytes <= SIZE_MAX / 2 ?
		arena_alloc(bytes, 2 * bytes, 1, false) : NULL;
	return move(to != NULL ? to : g_next.malloc(bytes), p, old, bytes);
}

EXPORT void *realloc(void *p, size_t bytes)
{
	void *to;

	if (p == NULL)
		return malloc(bytes);
	if (is_early(p))
		return move(malloc(bytes), p, (size_t)(g_early.bytes +
			    EARLY_BYTES - (unsigned char *)p), bytes);
	if (bytes == 0 && arena_has(p)) {
		free(p);
		return NULL;
	}
	if (arena_has(p))
		return resize(p, bytes);
	to = large(bytes, 1, false);
	return to != NULL ? move(to, p, g_next.usable(p), bytes) :
		g_next.realloc(p, bytes);
}
