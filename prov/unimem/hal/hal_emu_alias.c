/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_alias.c - a second mapping of memory that processes share
 * (hal_window.h): emu_alias_key(), emu_alias_open(), emu_alias_close().
 *
 * A key is a number made of device, inode and name of the mapped file, and an
 * offset in the file. Both sides read them from /proc/self/maps. While the
 * owner's mapping lasts no other file has its inode; the inode numbers of
 * memfds and of /dev/shm repeat after 2^32 files at the earliest, and then the
 * name has to be the same as well.
 *
 * Only files without a name are taken: memfds, unlinked files of /dev/shm, and
 * MAP_SHARED | MAP_ANONYMOUS memory. Only a process that still holds a
 * descriptor can truncate them. The memory of the HAL itself is never taken,
 * whatever a peer says: memfds whose name begins with "unimem".
 *
 * The alias is made by mremap() with an old length of 0, which maps the file of
 * a shared mapping once more and needs no descriptor. Other threads may change
 * the mappings meanwhile, so the alias is looked up itself before it is used.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "hal_emu.h"

#define READ_BYTES	8192		/* of the list of mappings, at once */

/* Shared mappings of one file that follow each other without a gap. */
struct run {
	uintptr_t start, end;
	uint64_t id;			/* of the file */
	uint64_t off;			/* in the file, of start */
	uint32_t access;		/* enum hal_alias_access */
};

/* The range that is looked for: by its address, or by its place in a file. */
struct want {
	bool by_address;
	uintptr_t addr;
	uint64_t id, off, len;
	uint32_t access;
};

/* ---- The list of mappings -------------------------------------------- */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* A file of memory that nobody can open by name, and not one of ours? */
static bool takes_file(const char *name)
{
	static const char gone[] = " (deleted)";
	size_t len = strlen(name), tail = sizeof(gone) - 1;

	if (len < tail || strcmp(name + len - tail, gone) != 0)
		return false;
	if (begins(name, "/memfd:"))
		return !begins(name, "/memfd:unimem");
	return begins(name, "/dev/shm/") || begins(name, "/dev/zero");
}

static uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
	x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
	return x ^ x >> 31;
}

static uint64_t file_id(uint64_t dev, uint64_t ino, const char *name)
{
	uint64_t id = mix(mix(dev) + ino);

	for (; *name != '\0'; name++)
		id = mix(id + (uint8_t)*name);
	return id;
}

/* "start-end rwxs offset major:minor inode    name" */
static bool parse(char *line, struct run *run)
{
	uint64_t dev, ino;
	char *at;

	at = strchr(line, ' ');
	if (at == NULL || strlen(at) < 6 || at[4] != 's')
		return false;
	run->access = (at[1] == 'r' ? HAL_ALIAS_READ : 0) |
		(at[2] == 'w' ? HAL_ALIAS_WRITE : 0);
	run->off = strtoull(at + 5, &at, 16);
	dev = strtoull(at, &at, 16) << 32;
	if (*at != ':')
		return false;
	dev |= strtoull(at + 1, &at, 16);
	ino = strtoull(at, &at, 10);
	at += strspn(at, " ");
	if (!takes_file(at))
		return false;
	run->id = file_id(dev, ino, at);
	run->start = strtoull(line, &at, 16);
	run->end = strtoull(at + 1, NULL, 16);
	return true;
}

/* A mapping that goes on where the run ends. */
static bool follows(const struct run *run, const struct run *next)
{
	return next->start == run->end && next->id == run->id &&
		next->access == run->access &&
		next->off == run->off + (run->end - run->start);
}

static bool fits(const struct run *run, const struct want *want)
{
	uint64_t bytes = run->end - run->start, at;

	if (want->access & ~run->access)
		return false;
	at = want->by_address ? want->addr - run->start :
		want->off - run->off;
	return at < bytes && want->len <= bytes - at &&
		(want->by_address || want->id == run->id);
}

/* One more line of the list: is the run before it the one? */
static bool take_line(char *line, struct run *run, const struct want *want)
{
	struct run next;

	if (!parse(line, &next))
		return false;
	if (follows(run, &next)) {
		run->end = next.end;
		return false;
	}
	if (fits(run, want))
		return true;
	*run = next;
	return false;
}

/* Lines longer than the buffer have names that nobody wants. */
static bool find_in(int fd, const struct want *want, struct run *run)
{
	char buf[READ_BYTES + 1], *line, *end;
	size_t have = 0;
	ssize_t n;

	*run = (struct run){ 0 };
	for (;;) {
		n = read(fd, buf + have, READ_BYTES - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fits(run, want);
		have += (size_t)n;
		buf[have] = '\0';
		for (line = buf; (end = strchr(line, '\n')) != NULL;
		     line = end + 1) {
			*end = '\0';
			if (take_line(line, run, want))
				return true;
		}
		have -= (size_t)(line - buf);
		if (have == READ_BYTES)
			have = 0;
		memmove(buf, line, have);
	}
}

static int find(const struct want *want, struct run *run)
{
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	bool found;

	if (fd < 0)
		return -FI_ENOENT;
	found = find_in(fd, want, run);
	close(fd);
	return found ? 0 : -FI_ENOENT;
}

/* ---- Keys ------------------------------------------------------------ */

int emu_alias_key(const void *addr, uint64_t len, uint32_t access,
		  struct hal_key *key)
{
	const struct want want = {
		.by_address = true, .addr = (uintptr_t)addr, .len = len,
		.access = access,
	};
	struct run run;
	int ret = find(&want, &run);

	if (ret != 0)
		return ret;
	key->word[0] = run.id;
	key->word[1] = run.off + (want.addr - run.start);
	return 0;
}

/* ---- Aliases --------------------------------------------------------- */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* What a window takes, in whole pages. */
static void *pages_of(const struct hal_window *win, size_t *bytes)
{
	uintptr_t mask = page_size() - 1, at = (uintptr_t)win->addr;

	*bytes = ((at & mask) + win->bytes + mask) & ~mask;
	return (void *)(at & ~mask);
}

static void unmap(const struct hal_window *win)
{
	size_t bytes;
	void *pages = pages_of(win, &bytes);

	munmap(pages, bytes);
}

/*
 * Does the file reach so far? The kernel looks at the last word and then
 * refuses the call: no signal, and nothing changes. (What reads there gives the
 * file a page, if it has none.)
 */
static bool reaches(const struct hal_window *win)
{
	uintptr_t last = (uintptr_t)win->addr + win->bytes - 1;

	return syscall(SYS_rt_sigprocmask, -1, last & ~(uintptr_t)7, NULL,
		       sizeof(uint64_t)) == 0 || errno != EFAULT;
}

/* The same bytes of the same file, and no others? */
static bool is_alias(const struct hal_window *win, const struct hal_key *key,
		     uint32_t access)
{
	struct hal_key mine;

	return emu_alias_key(win->addr, win->bytes, access, &mine) == 0 &&
		mine.word[0] == key->word[0] && mine.word[1] == key->word[1];
}

int emu_alias_open(const struct hal_key *key, uint64_t len, uint32_t access,
		   struct hal_window *out)
{
	const struct want want = {
		.id = key->word[0], .off = key->word[1], .len = len,
		.access = access,
	};
	struct hal_window win = { .bytes = len };
	struct run run;
	size_t bytes;
	void *pages, *got;
	int ret;

	ret = len == 0 ? -FI_ENOENT : find(&want, &run);
	if (ret != 0)
		return ret;
	win.addr = (uint8_t *)run.start + (want.off - run.off);
	pages = pages_of(&win, &bytes);
	got = mremap(pages, 0, bytes, MREMAP_MAYMOVE);
	if (got == MAP_FAILED)
		return errno == ENOMEM ? -FI_ENOMEM : -FI_ENOENT;
	win.addr = (uint8_t *)got + (win.addr - (uint8_t *)pages);
	if (!is_alias(&win, key, access) || !reaches(&win) ||
	    madvise(got, bytes, MADV_DONTFORK) != 0) {
		munmap(got, bytes);
		return -FI_ENOENT;
	}
	*out = win;
	return 0;
}

void emu_alias_close(struct hal *hal, const struct hal_window *win)
{
	/* a forked child does not have it, and may have others there */
	if (((struct hal_emu *)hal)->pid == getpid())
		unmap(win);
}
