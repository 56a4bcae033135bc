/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_alias.c - a second mapping of memory that processes share
 * (hal_window.h).
 *
 * Entry points: emu_alias_key(), emu_alias_open(), emu_alias_close().
 *
 * A key is a hash of device, inode and name of the mapped file, and an offset
 * in the file. Both processes read these from /proc/self/maps. As long as the
 * owner has the mapping, no other file has its inode. The inode numbers of
 * memfds and of /dev/shm repeat after 2^32 files at the earliest, and then the
 * name would have to be the same as well.
 *
 * Only files that cannot be opened by name are aliased: memfds, unlinked files
 * of /dev/shm, and MAP_SHARED | MAP_ANONYMOUS memory. Only a process that still
 * has a descriptor can truncate these. The memory of the HAL, which is in
 * memfds whose name begins with "unimem", is never aliased, whichever key a
 * peer sends.
 *
 * The alias is made by mremap() with an old length of 0, which maps the file of
 * a shared mapping a second time and needs no descriptor. Other threads may
 * change the mappings meanwhile, so the new mapping is compared with the key
 * before it is used.
 *
 * All aliases of the process are in one table. The file of a key is searched in
 * the mappings of the program only, not in aliases: an alias may exist although
 * the program has unmapped the file.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "hal/emu/hal_emu_alias.h"
#include "util/unm_random.h"

#define READ_BYTES	8192		/* of /proc/self/maps, per read() */
#define FILL_MAX	(UINT64_C(256) << 20)	/* bytes of an alias of a file
						 * in /dev/shm */
#define SHM		"/dev/shm/"

/* Shared mappings of one file that follow each other without a gap. */
struct run {
	uintptr_t start, end;
	uint64_t id;			/* file_id() */
	uint64_t off;			/* offset of start in the file */
	uint32_t access;		/* enum hal_alias_access */
	bool in_shm;			/* on the file system at SHM */
};

/* The range to be found: an address, or a file and an offset. */
struct want {
	bool by_address;
	uintptr_t addr;
	uint64_t id, off, len;
	uint32_t access;
};

/* ---- The table of aliases -------------------------------------------- */

/*
 * All aliases of this process. HAL_ALIASES_MAX bounds them because each is a
 * mapping, and the kernel allows a process about 65,000 of these. The lock is
 * held while an alias is made or unmapped, so that no thread finds an alias in
 * /proc/self/maps that is not in the table.
 */
static struct {
	struct hal_lock lock;
	pid_t pid;			/* process that has these aliases */
	uint32_t n;			/* entries of of[] */
	struct { uintptr_t start, end; } of[HAL_ALIASES_MAX];
} aliases;

static void aliases_lock(void)
{
	hal_lock(&aliases.lock);
	if (aliases.pid != getpid())
		aliases.n = 0;		/* a forked child has none */
	aliases.pid = getpid();
}

static void aliases_unlock(void)
{
	hal_unlock(&aliases.lock);
}

static void aliases_add(const void *pages, size_t bytes)
{
	aliases.of[aliases.n].start = (uintptr_t)pages;
	aliases.of[aliases.n++].end = (uintptr_t)pages + bytes;
}

static void aliases_remove(const void *pages)
{
	uint32_t i = 0;

	while (i < aliases.n && aliases.of[i].start != (uintptr_t)pages)
		i++;
	if (i < aliases.n)
		aliases.of[i] = aliases.of[--aliases.n];
}

/*
 * Find the first part of [*start, end) that is no alias. Sets *start to its
 * begin and returns its end; *start == end: there is none. An alias may be a
 * part of a mapping because the kernel may show adjacent mappings as one.
 */
static uintptr_t no_alias(uintptr_t *start, uintptr_t end)
{
	uintptr_t stop = end;

	for (uint32_t i = 0; i < aliases.n && *start < end; i++) {
		uintptr_t from = aliases.of[i].start, to = aliases.of[i].end;

		if (from <= *start && *start < to) {
			*start = to < end ? to : end;
			stop = end;
			i = UINT32_MAX;		/* once more, from 0 */
		} else if (from > *start && from < stop) {
			stop = from;
		}
	}
	return stop;
}

/* ---- The list of mappings -------------------------------------------- */

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/*
 * Does a file with exactly the listed name exist, so that " (deleted)" is a
 * part of its name? The list shows a line feed as \012; for such names the
 * answer is yes, so that they are not aliased.
 */
static bool is_there(const char *name, uint64_t dev, uint64_t ino)
{
	struct stat st;

	return strstr(name, "\\012") != NULL ||
		(stat(name, &st) == 0 && st.st_ino == ino &&
		 major(st.st_dev) == dev >> 32 &&
		 minor(st.st_dev) == (uint32_t)dev);
}

/* Is this a file in memory that no process can open by name, and not of the
 * HAL? */
static bool can_alias(const char *name, uint64_t dev, uint64_t ino)
{
	static const char gone[] = " (deleted)";
	size_t len = strlen(name), tail = sizeof(gone) - 1;

	if (len < tail || strcmp(name + len - tail, gone) != 0)
		return false;
	if (begins(name, "/memfd:"))
		return !begins(name, "/memfd:unimem");
	if (begins(name, SHM))
		return !is_there(name, dev, ino);
	return begins(name, "/dev/zero");
}

static uint64_t file_id(uint64_t dev, uint64_t ino, const char *name)
{
	uint64_t id = unm_mix(unm_mix(dev) + ino);

	for (; *name != '\0'; name++)
		id = unm_mix(id + (uint8_t)*name);
	return id;
}

/* Parse a line "start-end rwxs offset major:minor inode    name". False: it is
 * of no mapping that can be aliased. */
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
	if (!can_alias(at, dev, ino))
		return false;
	run->id = file_id(dev, ino, at);
	run->in_shm = begins(at, SHM);
	run->start = strtoull(line, &at, 16);
	run->end = strtoull(at + 1, NULL, 16);
	return true;
}

/* Does mapping next continue the run, at the next address and file offset? */
static bool follows(const struct run *run, const struct run *next)
{
	return next->start == run->end && next->id == run->id &&
		next->access == run->access &&
		next->off == run->off + (run->end - run->start);
}

/* Does the run contain the wanted range, with the wanted access? */
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

/* Add mapping next to the run, or begin a new run with it. True: the run that
 * ends here is the wanted one, and *run is left as it is. */
static bool take(const struct run *next, struct run *run,
		 const struct want *want)
{
	if (follows(run, next)) {
		run->end = next->end;
		return false;
	}
	if (fits(run, want))
		return true;
	*run = *next;
	return false;
}

/* take() the mapping of a line. If a file is wanted, only the parts that are no
 * aliases. */
static bool take_line(char *line, struct run *run, const struct want *want)
{
	struct run next, part;

	if (!parse(line, &next))
		return false;
	if (want->by_address)
		return take(&next, run, want);
	if (next.id != want->id)
		return false;
	for (part = next; part.start < next.end; part.start = part.end) {
		part.end = no_alias(&part.start, next.end);
		part.off = next.off + (part.start - next.start);
		if (part.start < part.end && take(&part, run, want))
			return true;
	}
	return false;
}

/* Lines longer than the buffer are skipped: files with such names cannot be
 * aliased. */
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

/* The pages that a window covers, and their size in bytes. */
static void *pages_of(const struct hal_window *win, size_t *bytes)
{
	uintptr_t mask = page_size() - 1, at = (uintptr_t)win->addr;

	*bytes = ((at & mask) + win->bytes + mask) & ~mask;
	return (void *)(at & ~mask);
}

/* Can the word at this address be read without a signal? The kernel reads the
 * word, and then refuses the call because of its other arguments. */
static bool can_read(uintptr_t at)
{
	return syscall(SYS_rt_sigprocmask, -1, at & ~(uintptr_t)7, NULL,
		       sizeof(uint64_t)) == 0 || errno != EFAULT;
}

/* Does the file contain the last byte of the window? */
static bool reaches(const struct hal_window *win)
{
	return can_read((uintptr_t)win->addr + win->bytes - 1);
}

/* Has /dev/shm free space for all pages that the file does not have yet? If
 * not, filling the file would use up the rest for all processes. */
static bool has_room(void *pages, size_t bytes)
{
	size_t page = page_size(), left = bytes / page, n;
	uint8_t there[1024], *at = pages;
	uint64_t missing = 0;
	struct statvfs fs;

	for (; left != 0; left -= n, at += n * page) {
		n = left < sizeof(there) ? left : sizeof(there);
		if (mincore(at, n * page, there) != 0)
			return false;
		for (size_t i = 0; i < n; i++)
			missing += !(there[i] & 1);
	}
	return missing == 0 || (statvfs(SHM, &fs) == 0 &&
		(fs.f_blocks == 0 || missing <= fs.f_bavail * fs.f_bsize /
		 page));
}

/*
 * Read each page, so that each hole of a file in /dev/shm gets a page: an
 * access to a hole while /dev/shm is full would end the process. False: there
 * is no free space, or bytes exceed FILL_MAX.
 */
static bool fill(void *pages, size_t bytes)
{
	uintptr_t at = (uintptr_t)pages, end = at + bytes;

	if (bytes > FILL_MAX || !has_room(pages, bytes))
		return false;
	while (at < end && can_read(at))
		at += page_size();
	return at == end;
}

/* Does the window show the bytes that the key names? */
static bool is_alias(const struct hal_window *win, const struct hal_key *key,
		     uint32_t access)
{
	struct hal_key mine;

	return emu_alias_key(win->addr, win->bytes, access, &mine) == 0 &&
		mine.word[0] == key->word[0] && mine.word[1] == key->word[1];
}

/* Make the alias of *win, which is a range of the program's mapping, and set
 * win->addr to it. The table is locked. */
static int make(const struct run *run, const struct hal_key *key,
		uint32_t access, struct hal_window *win)
{
	size_t bytes;
	void *pages = pages_of(win, &bytes), *got;

	if (aliases.n == HAL_ALIASES_MAX)
		return -FI_ENOMEM;
	got = mremap(pages, 0, bytes, MREMAP_MAYMOVE);
	if (got == MAP_FAILED)
		return errno == ENOMEM ? -FI_ENOMEM : -FI_ENOENT;
	win->addr = (uint8_t *)got + (win->addr - (uint8_t *)pages);
	/* before anything else, so that no forked child inherits it */
	if (madvise(got, bytes, MADV_DONTFORK) != 0 ||
	    madvise(got, bytes, MADV_DONTDUMP) != 0 ||
	    !is_alias(win, key, access) || !reaches(win) ||
	    (run->in_shm && !fill(got, bytes))) {
		munmap(got, bytes);
		return -FI_ENOENT;
	}
	aliases_add(got, bytes);
	return 0;
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
	int ret;

	if (len == 0)
		return -FI_ENOENT;
	aliases_lock();
	ret = find(&want, &run);
	if (ret == 0) {
		win.addr = (uint8_t *)run.start + (want.off - run.off);
		ret = make(&run, key, access, &win);
	}
	aliases_unlock();
	if (ret == 0)
		*out = win;
	return ret;
}

void emu_alias_close(struct hal *hal, const struct hal_window *win)
{
	size_t bytes;
	void *pages = pages_of(win, &bytes);

	/* a forked child does not have the alias, and may have mapped other
	 * memory there */
	if (((struct hal_emu *)hal)->pid != getpid())
		return;
	aliases_lock();
	munmap(pages, bytes);
	aliases_remove(pages);
	aliases_unlock();
}
