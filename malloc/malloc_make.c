/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * malloc_make.c - makes the arena of libunimem-malloc.so: parameters, limits,
 * the memfd, its mapping.
 *
 * Entry point: arena_make(), of malloc_arena.h. malloc_arena.c decides when the
 * arena is made, and uses it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hal/hal_limit.h"
#include "malloc_arena.h"

#define MIN_LEAST	((size_t)64 << 10)	/* UNIMEM_MALLOC_MIN */

/* A size of the environment, with suffix K, M or G; otherwise: if there is none
 * or it is no number. */
static size_t parameter(const char *name, size_t otherwise)
{
	static const char units[] = "KMG";
	const char *text = getenv(name), *unit;
	unsigned shift = 0;
	char *end;
	unsigned long long n;

	if (text == NULL || *text < '0' || *text > '9')
		return otherwise;
	n = strtoull(text, &end, 10);
	unit = *end != '\0' ? strchr(units, *end) : NULL;
	if (unit != NULL) {
		shift = 10 * (unsigned)(unit - units + 1);
		end++;
	}
	return *end != '\0' || n > SIZE_MAX >> shift ? otherwise :
		(size_t)n << shift;
}

static bool limited(int resource)
{
	struct rlimit lim;

	return getrlimit(resource, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY;
}

/* In this mode the kernel counts memory when it is mapped, but that of a memfd
 * when it is touched, and then with a signal that ends the program. */
static bool overcommit_never(void)
{
	int fd = open("/proc/sys/vm/overcommit_memory", O_RDONLY | O_CLOEXEC);
	char mode = '0';

	if (fd < 0)
		return false;
	if (read(fd, &mode, 1) < 0)
		mode = '0';
	close(fd);
	return mode == '2';
}

/* Map fd at a multiple of ARENA_ALIGN_MAX. Memory is reserved without access
 * first, so that an earlier mlockall(2) does not touch all of it. NULL: no
 * addresses. */
static void *map(int fd, size_t size)
{
	uintptr_t room, at;
	void *got;

	got = mmap(NULL, size + ARENA_ALIGN_MAX, PROT_NONE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (got == MAP_FAILED)
		return NULL;
	room = (uintptr_t)got;
	at = (room + ARENA_ALIGN_MAX - 1) & ~(ARENA_ALIGN_MAX - 1);
	if (at != room)
		munmap(got, at - room);
	if (at + size != room + size + ARENA_ALIGN_MAX)
		munmap((void *)(at + size), room + ARENA_ALIGN_MAX - at);
	got = mmap((void *)at, size, PROT_NONE, MAP_SHARED | MAP_FIXED |
		   MAP_NORESERVE, fd, 0);
	if (got != MAP_FAILED &&
	    mprotect(got, size, PROT_READ | PROT_WRITE) == 0) {
		madvise(got, size, MADV_HUGEPAGE);
		madvise(got, size, MADV_DONTDUMP);
		return got;
	}
	munmap((void *)at, size);
	return NULL;
}

int arena_fd_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, ARENA_FD_LEAST);

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

/* A sealed memfd of size bytes, or -1. */
static int file(size_t size)
{
	struct stat st;
	int fd = memfd_create("unimem-malloc", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -1;
	if (ftruncate(fd, (off_t)size) == 0 && fstat(fd, &st) == 0 &&
	    fcntl(fd, F_ADD_SEALS,
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
		g_arena.dev = st.st_dev;
		g_arena.ino = st.st_ino;
		return arena_fd_high(fd);
	}
	close(fd);
	return -1;
}

/* From now on arena_has() knows the arena. */
static void publish(void *base, size_t size)
{
	atomic_store_explicit(&g_arena.base, (uintptr_t)base,
			      memory_order_relaxed);
	/* pairs with the acquire in arena_has() */
	atomic_store_explicit(&g_arena.size, size, memory_order_release);
}

/* Half of the machine's memory, or of what the control groups allow. */
static size_t arena_size(void)
{
	uint64_t half = hal_memory_total() / 2;

	return (half < ARENA_SIZE_MOST ? half : ARENA_SIZE_MOST) &
		~(ARENA_ALIGN_MAX - 1);
}

/* A limit of the process's memory or of its files is meant for all that the
 * program allocates, and the arena's addresses would be most of that. */
bool arena_make(void)
{
	size_t size = arena_size();
	void *base = NULL;

	if (g_arena.min == 0 || size == 0 || limited(RLIMIT_AS) ||
	    limited(RLIMIT_DATA) || limited(RLIMIT_FSIZE) ||
	    overcommit_never())
		return false;
	g_arena.page = (size_t)sysconf(_SC_PAGESIZE);
	g_arena.fd = file(size);
	if (g_arena.fd >= 0)
		base = map(g_arena.fd, size);
	/* the bookkeeping comes from the next allocator, because this arena is
	 * not ready */
	if (base != NULL &&
	    unm_span_construct(&g_arena.span, ARENA_SPAN_BASE,
			       size / g_arena.page * UNM_SPAN_UNIT)) {
		publish(base, size);
		return true;
	}
	if (base != NULL)
		munmap(base, size);
	if (g_arena.fd >= 0)
		close(g_arena.fd);
	g_arena.fd = -1;
	return false;
}

/* Parameters are read before main() begins. Until then no block is large. */
__attribute__((constructor)) static void configure(void)
{
	size_t min = parameter("UNIMEM_MALLOC_MIN", (size_t)1 << 20);

	g_arena.min = min != 0 && min < MIN_LEAST ? MIN_LEAST : min;
	g_arena.keep = parameter("UNIMEM_MALLOC_KEEP", (size_t)64 << 20);
}
