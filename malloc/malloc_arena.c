/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * malloc_arena.c - the memory of large blocks: one memfd, mapped once.
 *
 * One file for all blocks, because a peer then imports the memory at the first
 * message, whatever the program allocates and frees later; a peer releases an
 * import that was idle for about a second, and imports it again. The file has
 * half of the machine's memory, all of it holes: a page is allocated when the
 * program touches it, and is given back when its block is freed. Some freed
 * blocks are kept, because codes free and allocate the same sizes again.
 *
 * malloc_arena.h describes the functions. malloc_make.c makes the arena,
 * unm_malloc.c has the functions that programs call, malloc_fork.c what happens
 * in fork().
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/hal_limit.h"
#include "malloc_arena.h"
#include "util/unm_arena.h"


struct arena g_arena = {
	.fd = -1,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

__thread volatile bool g_arena_inside
	__attribute__((tls_model("initial-exec")));

void arena_enter(struct arena_call *call)
{
	call->error = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &call->cancel);
}

void arena_leave(const struct arena_call *call)
{
	pthread_setcancelstate(call->cancel, NULL);
	errno = call->error;
}

void arena_lock(void)
{
	g_arena_inside = true;
	pthread_mutex_lock(&g_arena.lock);
}

void arena_unlock(void)
{
	pthread_mutex_unlock(&g_arena.lock);
	g_arena_inside = false;
}

/* ---- Places in the span ------------------------------------------------ */

/* The span allocates units of 64 bytes. Here each unit stands for a page. */
static size_t scale(void)
{
	return g_arena.page / UNM_SPAN_UNIT;
}

static uintptr_t to_span(uintptr_t at)
{
	return ARENA_SPAN_BASE + (at - g_arena.base) / scale();
}

static uintptr_t from_span(uintptr_t at)
{
	return g_arena.base + (at - ARENA_SPAN_BASE) * scale();
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + g_arena.page - 1) & ~(g_arena.page - 1);
}

uintptr_t arena_next(uintptr_t after, size_t *bytes)
{
	uintptr_t at = unm_span_next(&g_arena.span, after == 0 ? 0 :
				     to_span(after), bytes);

	*bytes *= at != 0 ? scale() : 0;
	return at != 0 ? from_span(at) : 0;
}

/* ---- The arena --------------------------------------------------------- */

/* Is there an arena? The first caller makes it. A caller that comes while
 * another thread makes it, or the call that made it calls malloc(), has none
 * yet. */
static bool ready(void)
{
	/* pairs with the release below, also that in a forked child */
	int state = atomic_load_explicit(&g_arena.state, memory_order_acquire);
	int none = ARENA_NONE;

	if (state != ARENA_NONE)
		return state == ARENA_READY;
	if (!atomic_compare_exchange_strong_explicit(&g_arena.state, &none,
			ARENA_MAKING, memory_order_acquire,
			memory_order_acquire))
		return none == ARENA_READY;
	state = arena_make() ? ARENA_READY : ARENA_OFF;
	/* pairs with the acquires above */
	atomic_store_explicit(&g_arena.state, state, memory_order_release);
	return state == ARENA_READY;
}

int unimem_malloc_arena(struct unm_arena *arena)
{
	struct arena_call call;
	int ret = -ENOSYS;

	arena_enter(&call);
	if (ready() && arena_fd_valid()) {
		arena->addr = (void *)g_arena.base;
		arena->bytes = g_arena.size;
		arena->fd = g_arena.fd;
		ret = 0;
	}
	arena_leave(&call);
	return ret;
}

bool arena_fd_valid(void)
{
	struct stat st;

	return fstat(g_arena.fd, &st) == 0 && st.st_dev == g_arena.dev &&
		st.st_ino == g_arena.ino;
}

/* ---- Pages: lock held -------------------------------------------------- */

/* Free the pages; the memory reads as zero afterwards. madvise(2) refuses
 * memory that is locked (mlock(2), mlockall(2)), the file does not. In a forked
 * child the memory is private, and is never allocated again. */
static void give_back(uintptr_t at, size_t bytes)
{
	if (bytes == 0)
		return;
	if (g_arena.forked) {
		madvise((void *)at, bytes, MADV_DONTNEED);
		return;
	}
	if (madvise((void *)at, bytes, MADV_REMOVE) == 0)
		return;
	if (!arena_fd_valid() ||
	    fallocate(g_arena.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)(at - g_arena.base), (off_t)bytes) != 0)
		memset((void *)at, 0, bytes);
}

/* The program may have denied access to pages of the block by mprotect(2). */
static void allow_access(uintptr_t at, size_t bytes)
{
	mprotect((void *)at, bytes, PROT_READ | PROT_WRITE);
}

static void release(uintptr_t at, size_t bytes)
{
	give_back(at, bytes);
	madvise((void *)at, bytes, MADV_DONTDUMP);
	unm_span_free(&g_arena.span, to_span(at));
}

uint64_t arena_reserve(void)
{
	return hal_memory_total() / 16;
}

/* May the program touch so many bytes more? /proc is read again when a quarter
 * of what was left has been allocated. */
static bool affordable(size_t bytes)
{
	uint64_t need, left;

	if (bytes <= g_arena.credit) {
		g_arena.credit -= bytes;
		return true;
	}
	need = bytes + arena_reserve();
	left = hal_memory_left(need);
	g_arena.credit = left > need ? (left - need) / 4 : 0;
	return left >= need;
}

/* ---- Kept blocks: lock held -------------------------------------------- */

static void kept_remove(int i)
{
	g_arena.kept_bytes -= g_arena.kept[i].bytes;
	for (; i + 1 < ARENA_KEPT; i++)
		g_arena.kept[i] = g_arena.kept[i + 1];
	g_arena.kept[ARENA_KEPT - 1] = (struct arena_kept){ 0 };
}

static void kept_evict(void)
{
	struct arena_kept oldest = g_arena.kept[0];

	kept_remove(0);
	release(oldest.at, oldest.bytes);
}

void arena_unkeep(void)
{
	while (g_arena.kept[0].at != 0)
		kept_evict();
}

/* Keep a freed block, if it is not most of what may be kept. */
static bool kept_add(uintptr_t at, size_t bytes)
{
	int i = 0;

	if (bytes > g_arena.keep / 2 || g_arena.forked)
		return false;
	while (g_arena.kept[0].at != 0 &&
	       (g_arena.kept_bytes + bytes > g_arena.keep ||
		g_arena.kept[ARENA_KEPT - 1].at != 0))
		kept_evict();
	while (g_arena.kept[i].at != 0)
		i++;
	g_arena.kept[i] = (struct arena_kept){ at, bytes };
	g_arena.kept_bytes += bytes;
	return true;
}

/* A kept block of bytes, or of up to a quarter more; 0: none. */
static uintptr_t kept_take(size_t bytes, size_t align)
{
	for (int i = 0; i < ARENA_KEPT && g_arena.kept[i].at != 0; i++) {
		struct arena_kept k = g_arena.kept[i];

		if (k.bytes < bytes || k.bytes - bytes > bytes / 4 ||
		    (k.at & (align - 1)) != 0)
			continue;
		kept_remove(i);
		return k.at;
	}
	return 0;
}

/* ---- Blocks ------------------------------------------------------------ */

/* A block that never was in use, or whose pages were given back: all zero. */
static uintptr_t fresh(size_t want, size_t bytes, size_t align)
{
	uintptr_t at;

	if (!affordable(want)) {
		arena_unkeep();
		return 0;
	}
	at = unm_span_alloc(&g_arena.span, bytes / scale(), align / scale());
	if (at == 0)
		return 0;
	at = from_span(at);
	madvise((void *)at, bytes, MADV_DODUMP);
	return at;
}

void *arena_alloc(size_t want, size_t bytes, size_t align, bool zero)
{
	struct arena_call call;
	uintptr_t at = 0;
	bool used;

	if (want < g_arena.min || g_arena.min == 0 || bytes > ARENA_SIZE_MOST ||
	    align > ARENA_ALIGN_MAX)
		return NULL;
	arena_enter(&call);
	if (!ready()) {
		arena_leave(&call);
		return NULL;
	}
	if (align < g_arena.page)
		align = g_arena.page;
	/* one byte more, so that arrays of 2^n bytes do not all begin in the
	 * same sets of the caches */
	bytes = whole_pages(bytes + 1);
	arena_lock();
	at = kept_take(bytes, align);
	used = at != 0;
	if (at == 0)
		at = fresh(want, bytes, align);
	arena_unlock();
	if (used && zero)
		memset((void *)at, 0, want);
	arena_leave(&call);
	return (void *)at;
}

/* The bytes of the block at p. Lock held. */
static size_t block_bytes(uintptr_t p)
{
	static const char bad[] = "libunimem-malloc: no block begins at a "
		"pointer to be freed or resized\n";
	uintptr_t at = 0;
	size_t bytes = 0;

	for (int i = 0; i < ARENA_KEPT; i++)
		if (g_arena.kept[i].at == p)	/* freed already */
			p++;
	if ((p & (g_arena.page - 1)) == 0)
		at = unm_span_find(&g_arena.span, to_span(p), &bytes);
	if (at != 0 && from_span(at) == p)
		return bytes * scale();
	if (write(STDERR_FILENO, bad, sizeof(bad) - 1) < 0)
		abort();
	abort();
}

size_t arena_bytes(void *p)
{
	size_t bytes;

	arena_lock();
	bytes = block_bytes((uintptr_t)p);
	arena_unlock();
	return bytes;
}

/* Pages of large blocks are given back without the lock, because this may take
 * milliseconds. */
void arena_free(void *p)
{
	uintptr_t at = (uintptr_t)p;
	struct arena_call call;
	size_t bytes;
	bool kept;

	arena_enter(&call);
	bytes = arena_bytes(p);
	allow_access(at, bytes);
	arena_lock();
	kept = kept_add(at, bytes);
	arena_unlock();
	if (!kept) {
		give_back(at, bytes);
		arena_lock();
		release(at, bytes);
		arena_unlock();
	}
	arena_leave(&call);
}

void arena_trim(void *p, size_t bytes)
{
	struct arena_call call;
	size_t all = arena_bytes(p);

	arena_enter(&call);
	bytes = whole_pages(bytes);
	if (bytes < all) {
		allow_access((uintptr_t)p + bytes, all - bytes);
		give_back((uintptr_t)p + bytes, all - bytes);
	}
	arena_leave(&call);
}
