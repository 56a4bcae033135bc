/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * malloc_fork.c - large blocks in a forked child.
 *
 * The arena is a shared mapping, so a forked child has the same memory as its
 * parent, and not a copy as of the fork. Therefore the child replaces each
 * block by private memory with the same contents before its fork() returns, and
 * fork() does not return in the parent until the child has done so: what the
 * program does in the parent after fork() does not reach the child. Another
 * thread of the parent that writes during the fork is not ordered with it, as
 * without this library. The child also loses the arena: it gets large blocks
 * from the next allocator.
 *
 * If the machine has too little memory for the copies, the process has as many
 * mappings as the system allows, or no descriptor is free for the pipe by which
 * the parent waits, the child's blocks are inaccessible. A child that runs
 * another program does not notice it.
 *
 * A signal handler may fork while its thread is in the middle of malloc(), or
 * of a fork. The child then has no access to the blocks either.
 *
 * posix_spawn(3), system(3), popen(3) and vfork(2) call no handlers: their
 * child only runs another program.
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
#include "malloc_fork.h"

/* The fork that is under way; protected by g_arena.lock, which the forking
 * thread holds from prepare() to the end. */
static struct {
	struct arena_call call;		/* of the thread that forks */
	int pipe[2];			/* the child writes a byte when it has
					 * the copies; -1: no copies */
} g_fork;

/* Forks under way that signal handlers of this thread began while the thread
 * had the lock. Other threads may fork meanwhile. */
static __thread volatile int t_nested
	__attribute__((tls_model("initial-exec")));

/* Is there memory for copies of all pages that are allocated? */
static bool copies_affordable(void)
{
	struct stat st;
	uint64_t need = g_arena.size;

	if (arena_fd_valid() && fstat(g_arena.fd, &st) == 0)
		need = (uint64_t)st.st_blocks * 512;
	need += arena_reserve();
	return hal_memory_left(need) >= need;
}

/* Parent and child would run on the same stack until the child has copied it,
 * and overwrite each other's frames: end the program before that. */
static void refuse_shared_stack(void)
{
	static const char bad[] = "libunimem-malloc: fork() by a thread whose "
		"stack is a large heap block: allocate such stacks by mmap(), "
		"or raise UNIMEM_MALLOC_MIN\n";

	if (g_arena.forked || !arena_has(__builtin_frame_address(0)))
		return;
	if (write(STDERR_FILENO, bad, sizeof(bad) - 1) < 0)
		abort();
	abort();
}

static void prepare(void)
{
	struct arena_call call;
	size_t bytes;

	refuse_shared_stack();
	if (g_arena_inside) {
		t_nested++;
		return;
	}
	arena_enter(&call);
	arena_lock();
	g_fork.call = call;
	g_fork.pipe[0] = -1;
	g_fork.pipe[1] = -1;
	if (g_arena.size == 0 || g_arena.forked)
		return;
	arena_unkeep();
	if (arena_next(0, &bytes) == 0 || !copies_affordable())
		return;
	if (pipe2(g_fork.pipe, O_CLOEXEC) != 0) {
		g_fork.pipe[0] = g_fork.pipe[1] = -1;
		return;
	}
	g_fork.pipe[0] = arena_fd_high(g_fork.pipe[0]);
	g_fork.pipe[1] = arena_fd_high(g_fork.pipe[1]);
}

/* The pipe ends when the child has written or has died. */
static void parent(void)
{
	struct arena_call call;
	int saved = errno;
	ssize_t got;
	char done;

	if (t_nested > 0) {
		t_nested--;
		return;
	}
	if (g_fork.pipe[0] >= 0) {
		close(g_fork.pipe[1]);
		do
			got = read(g_fork.pipe[0], &done, 1);
		while (got < 0 && errno == EINTR);
		close(g_fork.pipe[0]);
	}
	call = g_fork.call;
	call.error = saved;
	arena_unlock();
	arena_leave(&call);
}

/* ---- The child --------------------------------------------------------- */

/* Read a part of the arena's file. */
static bool copy_part(uintptr_t to, off_t from, size_t bytes)
{
	ssize_t got;

	while (bytes > 0) {
		got = pread(g_arena.fd, (void *)to, bytes, from);
		if (got == 0 || (got < 0 && errno != EINTR))
			return false;
		if (got < 0)
			continue;
		to += (size_t)got;
		from += got;
		bytes -= (size_t)got;
	}
	return true;
}

/* Copy the parts of a block that are no holes from the file to the block's
 * addresses. The file has them also if the program has denied access to pages
 * of the block, or has excluded them from forked children. */
static bool copy_data(uintptr_t at, size_t bytes)
{
	off_t first = (off_t)(at - g_arena.base), end = first + (off_t)bytes;
	off_t data, hole;

	for (off_t pos = first; pos < end; pos = hole) {
		data = lseek(g_arena.fd, pos, SEEK_DATA);
		if (data < 0 || data >= end)
			return data >= 0 || errno == ENXIO;
		hole = lseek(g_arena.fd, data, SEEK_HOLE);
		if (hole < 0 || hole > end)
			hole = end;
		if (!copy_part(g_arena.base + (uintptr_t)data, data,
			       (size_t)(hole - data)))
			return false;
	}
	return true;
}

/* Replace memory by private memory; its addresses stay reserved. */
static bool make_private(uintptr_t at, size_t bytes, int prot)
{
	return bytes == 0 || mmap((void *)at, bytes, prot, MAP_PRIVATE |
				  MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
				  -1, 0) != MAP_FAILED;
}

/* Replace a block by a private copy. Without the file the copy is made from the
 * mapping, with its holes. */
static bool copy_block(uintptr_t at, size_t bytes, bool by_fd)
{
	void *to;

	if (by_fd)
		return make_private(at, bytes, PROT_READ | PROT_WRITE) &&
			copy_data(at, bytes);
	to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		  MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (to == MAP_FAILED)
		return false;
	memcpy(to, (void *)at, bytes);
	return mremap(to, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
		      (void *)at) != MAP_FAILED;
}

/* Replace all of the arena by nothing. It is unmapped first, because mmap(2)
 * fails while there are more mappings than the system allows, and munmap(2) of
 * whole mappings does not. A child that would keep the parent's memory ends. */
static void hide_all(void)
{
	static const char ends[] = "libunimem-malloc: a forked process cannot "
		"give up its parent's memory, and ends\n";

	if (munmap((void *)g_arena.base, g_arena.size) == 0 &&
	    make_private(g_arena.base, g_arena.size, PROT_NONE))
		return;
	if (write(STDERR_FILENO, ends, sizeof(ends) - 1) < 0)
		_exit(127);
	_exit(127);
}

/* Replace all of the arena: blocks by copies, the rest by nothing. False: the
 * child has no access to any block, because one could not be copied. */
static bool replace(bool copies)
{
	uintptr_t end = g_arena.base, at;
	bool by_fd = arena_fd_valid(), good = t_nested == 0;
	size_t bytes;

	for (at = good ? arena_next(0, &bytes) : 0; at != 0 && good;
	     at = arena_next(end, &bytes)) {
		good = copies && make_private(end, at - end, PROT_NONE) &&
			copy_block(at, bytes, by_fd);
		end = at + bytes;
	}
	good = good && make_private(end, g_arena.base + g_arena.size - end,
				    PROT_NONE);
	if (!good)
		hide_all();
	if (by_fd)
		close(g_arena.fd);
	g_arena.fd = -1;
	return good;
}

static void child(void)
{
	static const char lost[] = "libunimem-malloc: memory, descriptors or "
		"mappings are too few to copy the heap's large blocks for a "
		"forked process: it has no access to them\n";
	int saved = errno;

	if (g_arena.size != 0 && !g_arena.forked) {
		if (!replace(g_fork.pipe[1] >= 0) &&
		    write(STDERR_FILENO, lost, sizeof(lost) - 1) < 0)
			errno = saved;
		g_arena.forked = true;
	}
	if (g_fork.pipe[1] >= 0 && t_nested == 0) {
		if (write(g_fork.pipe[1], "", 1) < 0)
			errno = saved;	/* the parent has died */
		close(g_fork.pipe[0]);
		close(g_fork.pipe[1]);
	}
	/* pairs with the acquire in ready() */
	if (g_arena.size != 0 || g_arena.state == ARENA_MAKING)
		atomic_store_explicit(&g_arena.state, ARENA_OFF,
				      memory_order_release);
	if (t_nested == 0)
		pthread_setcancelstate(g_fork.call.cancel, NULL);
	pthread_mutex_init(&g_arena.lock, NULL);
	g_arena_inside = false;
	t_nested = 0;
	errno = saved;
}

void malloc_fork_register(void)
{
	pthread_atfork(prepare, parent, child);
}
