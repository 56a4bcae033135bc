/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_limit.c - how much memory is left, of the machine and in the control
 * groups of this process.
 *
 * Entry points: hal_limit_check(), hal_memory_left(), hal_memory_total().
 *
 * When shared memory exceeds either, the kernel kills this process or another
 * one; the allocation itself does not fail. So the HAL calls hal_limit_check()
 * before it allocates. Nothing is reserved: other processes may take the memory
 * meanwhile.
 *
 * Control groups are nested, and the limit of a group holds for all groups
 * below it. All groups from that of the process to the root are examined, of
 * version 2 and of the memory controller of version 1.
 *
 * A process can be moved to another group, and a group can get a limit, at any
 * time. So the groups with a limit are listed again when the list is LIST_NS
 * old. A list costs some ten files of about 10 us each, and programs that start
 * make many checks. If the system has no descriptor or memory for reading the
 * files, the old list stays: a list without some of the groups would let this
 * process take more memory than they have.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "hal/hal_limit.h"
#include "hal/hal_lock.h"
#include "hal/hal_log.h"
#include "util/unm_clock.h"

#define MACHINE_MIN	(16u << 20)	/* bytes; for fewer /proc/meminfo is not
					 * read */
#define GROUPS_MAX	16		/* groups with a limit */
#define GROUP_SPARE	(512u << 10)	/* bytes of a group that stay free: for
					 * stacks, heaps and page tables, which
					 * grow without a check */
#define NO_LIMIT	(UINT64_C(1) << 60)	/* version 1 has no "max" */
#define LIST_NS		10000000	/* ns that a list of groups is valid */
#define DIR_MAX		1024		/* containers have long names */

static const struct group_kind {
	const char *root;		/* mount point of the hierarchy */
	const char *controller;		/* in /proc/self/cgroup; "": version
					 * 2 */
	const char *limit, *usage;	/* names of files, and so on */
	const char *swap_limit, *swap_usage;
	bool swap_is_all;		/* version 1: the swap files count
					 * memory and swap together */
	const char *cache[2];		/* lines of memory.stat with bytes that
					 * the kernel can reclaim */
} kinds[] = {
	{ "/sys/fs/cgroup", "", "memory.max", "memory.current",
	  "memory.swap.max", "memory.swap.current", false,
	  { "\nactive_file ", "\ninactive_file " } },
	{ "/sys/fs/cgroup/unified", "", "memory.max", "memory.current",
	  "memory.swap.max", "memory.swap.current", false,
	  { "\nactive_file ", "\ninactive_file " } },
	{ "/sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes",
	  "memory.usage_in_bytes",
	  "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes", true,
	  { "\ntotal_active_file ", "\ntotal_inactive_file " } },
};

/* A group that had a limit when the groups were listed. */
struct group {
	const struct group_kind *kind;
	char dir[DIR_MAX];
};

static struct {
	struct hal_lock lock;
	uint64_t list_again;		/* ns: when the list is too old; 0:
					 * there is no list */
	int n;				/* entries of group[] */
	struct group group[GROUPS_MAX];	/* of each kind the innermost first */
	struct group old[GROUPS_MAX];	/* group[] before list_groups() */
	uint64_t total;			/* bytes: last hal_memory_total(); 0:
					 * none yet */
	bool total_valid;		/* total was read since the last list */
	bool shortage;			/* set by read_text(): a file was not
					 * read, but may be soon */
	char root[256];			/* of hal_limit_root(), for tests */
	/* buffers of the holder of the lock: the stack of a caller of malloc()
	 * may be as small as PTHREAD_STACK_MIN */
	char name[PATH_MAX];		/* of the file that is read */
	char text[8192];		/* its contents */
	char path[DIR_MAX];		/* of list_groups() */
} g_limit;

/* Has the system no descriptor or memory for a file, or was the call
 * interrupted? All other errors last: there is no such file, for example. */
static bool passes(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM ||
	       error == EINTR;
}

/* Read the first size - 2 bytes of a file behind a line feed, so that each line
 * has a line feed before it. Here and below: g_limit is locked. */
static bool read_text(const char *dir, const char *name, char *text,
		      size_t size)
{
	ssize_t n;
	int fd;

	snprintf(g_limit.name, sizeof(g_limit.name), "%s%s/%s", g_limit.root,
		 dir, name);
	fd = open(g_limit.name, O_RDONLY | O_CLOEXEC);
	g_limit.shortage |= fd < 0 && passes(errno);
	if (fd < 0)
		return false;
	text[0] = '\n';
	n = read(fd, text + 1, size - 2);
	g_limit.shortage |= n < 0 && passes(errno);
	close(fd);
	if (n <= 0)
		return false;
	text[1 + n] = '\0';
	return true;
}

static bool read_number(const char *dir, const char *name, uint64_t *val)
{
	char text[64], *end;

	if (!read_text(dir, name, text, sizeof(text)))
		return false;
	*val = strtoull(text + 1, &end, 10);
	return end != text + 1;		/* no number: "max", no limit */
}

/* ---- The groups ------------------------------------------------------ */

static bool group_limit(const struct group *group, uint64_t *limit)
{
	return read_number(group->dir, group->kind->limit, limit) &&
	       *limit < NO_LIMIT;
}

/* List the groups of one hierarchy that have a limit, from that of the process,
 * which is at path, to the root. Shortens path. */
static void list_upwards(const struct group_kind *kind, char *path)
{
	uint64_t limit;
	char *slash;

	while (g_limit.n < GROUPS_MAX) {
		struct group *group = &g_limit.group[g_limit.n];
		int len = snprintf(group->dir, sizeof(group->dir), "%s%s",
				   kind->root, path);

		group->kind = kind;
		if (len < (int)sizeof(group->dir) &&
		    group_limit(group, &limit))
			g_limit.n++;
		slash = strrchr(path, '/');
		if (slash == NULL)
			return;
		*slash = '\0';
	}
}

/* The path of the process's group in the hierarchy of a controller ("": version
 * 2). The lines of text are "ID:CONTROLLER,CONTROLLER:PATH". */
static bool own_group(const char *text, const char *controller, char *path,
		      size_t size)
{
	size_t want = strlen(controller);

	for (const char *line = text; (line = strchr(line, '\n')) != NULL;) {
		const char *at = line + 1 + strcspn(line + 1, ":\n");
		bool found = want == 0 && strncmp(line, "\n0::", 4) == 0;
		size_t len;

		line++;
		while (*at == ':' || *at == ',') {
			len = strcspn(++at, ",:\n");
			found |= want != 0 && len == want &&
				strncmp(at, controller, len) == 0;
			at += len;
			if (*at == ':')
				break;
		}
		if (!found || *at != ':')
			continue;
		len = strcspn(++at, "\n");
		if (len >= size)
			return false;
		memcpy(path, at, len);
		path[len] = '\0';
		return true;
	}
	return false;
}

/* List the groups of all hierarchies that have a limit. */
static void list_all(void)
{
	char *text = g_limit.text, *path = g_limit.path;

	g_limit.n = 0;
	if (!read_text("/proc/self", "cgroup", text, sizeof(g_limit.text)))
		return;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (!own_group(text, kinds[i].controller, path, DIR_MAX))
			continue;
		if (strcmp(path, "/") == 0)
			path[0] = '\0';
		list_upwards(&kinds[i], path);
	}
}

/* Fill g_limit.group[] if there is no list or it is too old. After a shortage
 * the next call tries again. */
static void list_groups(void)
{
	uint64_t now = unm_now_ns();
	int old = g_limit.n;

	if (now < g_limit.list_again)
		return;
	memcpy(g_limit.old, g_limit.group, sizeof(g_limit.old));
	g_limit.shortage = false;
	list_all();
	if (!g_limit.shortage) {
		g_limit.list_again = now + LIST_NS;
		g_limit.total_valid = false;
	} else if (g_limit.list_again != 0) {
		memcpy(g_limit.group, g_limit.old, sizeof(g_limit.old));
		g_limit.n = old;
	}
}

/* Bytes of cached files, which the kernel frees before it kills a process. */
static uint64_t reclaimable(const struct group *group)
{
	char *text = g_limit.text;
	uint64_t sum = 0;

	if (!read_text(group->dir, "memory.stat", text, sizeof(g_limit.text)))
		return 0;
	for (int i = 0; i < 2; i++) {
		const char *cache = group->kind->cache[i];
		const char *at = strstr(text, cache);

		if (at != NULL)
			sum += strtoull(at + strlen(cache), NULL, 10);
	}
	return sum;
}

/* A field of /proc/meminfo in bytes; 0: there is no such field. */
static uint64_t field(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10) * 1024;
}

static uint64_t meminfo(const char *name)
{
	char *text = g_limit.text;

	return read_text("/proc", "meminfo", text, sizeof(g_limit.text)) ?
		field(text, name) : 0;
}

/* Bytes of swap space that this group may still use, if it also uses the left
 * bytes of memory that it has. */
static uint64_t swap_left(const struct group *group, uint64_t left)
{
	const struct group_kind *kind = group->kind;
	uint64_t max, used, unused = meminfo("\nSwapFree:");

	if (unused == 0 || !read_number(group->dir, kind->swap_limit, &max) ||
	    !read_number(group->dir, kind->swap_usage, &used))
		return unused;
	used += kind->swap_is_all ? left : 0;
	max = used < max ? max - used : 0;
	return max < unused ? max : unused;
}

static uint64_t without_spare(uint64_t left)
{
	return left > GROUP_SPARE ? left - GROUP_SPARE : 0;
}

/* Bytes that a group has left beside GROUP_SPARE; cached files and swap space
 * are read only if there are fewer than bytes without them. UINT64_MAX: the
 * group has no limit any more. */
static uint64_t group_left(const struct group *group, uint64_t bytes,
			   uint64_t *max)
{
	uint64_t used, left;

	if (!group_limit(group, max) ||
	    !read_number(group->dir, group->kind->usage, &used))
		return UINT64_MAX;
	left = used < *max ? *max - used : 0;
	if (without_spare(left) < bytes)
		left += reclaimable(group);
	if (without_spare(left) < bytes)
		left += swap_left(group, left);
	return without_spare(left);
}

/* The least of group_left() of all groups. *limit is the limit of that
 * group. */
static uint64_t groups_left(uint64_t bytes, uint64_t *limit)
{
	uint64_t least = UINT64_MAX, left, max;

	hal_lock(&g_limit.lock);
	list_groups();
	for (int i = 0; i < g_limit.n; i++) {
		left = group_left(&g_limit.group[i], bytes, &max);
		if (left < least) {
			least = left;
			*limit = max;
		}
	}
	hal_unlock(&g_limit.lock);
	return least;
}

/* ---- Entry points ---------------------------------------------------- */

/* Bytes of memory and swap space that the machine has left. UINT64_MAX: the
 * system does not report it. */
static uint64_t machine_left(void)
{
	uint64_t left;

	hal_lock(&g_limit.lock);
	left = meminfo("\nMemAvailable:");
	left = left == 0 ? UINT64_MAX : left +
		field(g_limit.text, "\nSwapFree:");
	hal_unlock(&g_limit.lock);
	return left;
}

int hal_limit_check(const char *what, size_t bytes)
{
	uint64_t left, limit = 0;

	left = bytes < MACHINE_MIN ? UINT64_MAX : machine_left();
	if (bytes > left) {
		hal_log(0, "%s needs %zu bytes, this machine has %llu left: "
			"ask for less or end other programs", what, bytes,
			(unsigned long long)left);
		return -FI_ENOMEM;
	}
	left = groups_left(bytes, &limit);
	if (bytes <= left)
		return 0;
	hal_log(0, "%s needs %zu bytes, the memory control group has %llu left "
		"of %llu: raise its limit or start fewer processes", what,
		bytes, (unsigned long long)left, (unsigned long long)limit);
	return -FI_ENOMEM;
}

uint64_t hal_memory_left(uint64_t enough)
{
	uint64_t limit, left = groups_left(enough, &limit);
	uint64_t machine = machine_left();

	return left < machine ? left : machine;
}

/* g_limit is locked, and the groups are listed. */
static uint64_t read_total(void)
{
	uint64_t total = meminfo("\nMemTotal:"), limit;

	if (total == 0)
		total = UINT64_MAX;
	for (int i = 0; i < g_limit.n; i++)
		if (group_limit(&g_limit.group[i], &limit) && limit < total)
			total = limit;
	return total;
}

/* gsasd calls this function at each check, so the total is as old as the list
 * of groups at most, and is not read again until then. Old totals are used
 * while the files cannot be read. */
uint64_t hal_memory_total(void)
{
	uint64_t total, last;

	hal_lock(&g_limit.lock);
	list_groups();
	total = last = g_limit.total;
	if (!g_limit.total_valid) {
		g_limit.shortage = false;
		total = read_total();
		if (!g_limit.shortage) {
			g_limit.total = total;
			g_limit.total_valid = true;
		} else if (last != 0) {
			total = last;
		}
	}
	hal_unlock(&g_limit.lock);
	return total;
}

void hal_limit_root(const char *root)
{
	hal_lock(&g_limit.lock);
	snprintf(g_limit.root, sizeof(g_limit.root), "%s", root);
	g_limit.list_again = 0;
	g_limit.total = 0;
	g_limit.total_valid = false;
	hal_unlock(&g_limit.lock);
}
