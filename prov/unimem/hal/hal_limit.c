/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_limit.c - is there memory left, of the machine and in this process's
 * control group?
 *
 * Taking shared memory beyond that ends in a SIGKILL, of this process or of
 * another one, not in an error: whoever wants much looks here first. Groups
 * without a limit cost nothing after the first look. It is a look and no
 * promise; others take memory too.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal_emu.h"

#define MACHINE_MIN	(16u << 20)	/* bytes; less is not worth a look */
#define GROUPS_MAX	8		/* levels with a limit of their own */
#define NO_LIMIT	(UINT64_C(1) << 60)	/* version 1 has no "max" */

static const struct group_kind {
	const char *root;		/* where it is mounted */
	const char *mark;		/* before the path in /proc/self */
	const char *limit, *usage;
	const char *swap_limit, *swap_usage;	/* version 1: memory and swap */
	const char *cache[2];		/* of memory.stat: can be reclaimed */
} kinds[] = {
	{ "/sys/fs/cgroup", "0::", "memory.max", "memory.current",
	  "memory.swap.max", "memory.swap.current",
	  { "\nactive_file ", "\ninactive_file " } },
	{ "/sys/fs/cgroup/unified", "0::", "memory.max", "memory.current",
	  "memory.swap.max", "memory.swap.current",
	  { "\nactive_file ", "\ninactive_file " } },
	{ "/sys/fs/cgroup/memory", ":memory:", "memory.limit_in_bytes",
	  "memory.usage_in_bytes",
	  "memory.memsw.limit_in_bytes", "memory.memsw.usage_in_bytes",
	  { "\ntotal_active_file ", "\ntotal_inactive_file " } },
};

static struct {
	struct hal_lock lock;
	bool looked;
	int n;
	struct {
		const struct group_kind *kind;
		char dir[256];
		uint64_t limit;
	} group[GROUPS_MAX];
} g_limit;

static bool read_text(const char *dir, const char *name, char *text,
		      size_t size)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	text[0] = '\n';			/* every line has one before it */
	n = read(fd, text + 1, size - 2);
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
	return end != text + 1;		/* "max": no number */
}

/* Note the limits of one hierarchy, from the process's group upwards. */
static void look_at(const struct group_kind *kind, char *path)
{
	uint64_t limit;
	char *slash;

	for (;;) {
		char *dir = g_limit.group[g_limit.n].dir;
		size_t size = sizeof(g_limit.group[0].dir);

		if (snprintf(dir, size, "%s%s", kind->root, path) <
		    (int)size && read_number(dir, kind->limit, &limit) &&
		    limit < NO_LIMIT) {
			g_limit.group[g_limit.n].kind = kind;
			g_limit.group[g_limit.n].limit = limit;
			if (++g_limit.n == GROUPS_MAX)
				return;
		}
		slash = strrchr(path, '/');
		if (slash == NULL)
			return;
		*slash = '\0';
	}
}

static void look(void)
{
	char text[4096], path[256];

	g_limit.looked = true;
	if (!read_text("/proc/self", "cgroup", text, sizeof(text)))
		return;
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		const char *at = strstr(text, kinds[i].mark);
		size_t n;

		if (at == NULL || g_limit.n == GROUPS_MAX)
			continue;
		at += strlen(kinds[i].mark);
		n = strcspn(at, "\n");
		if (n >= sizeof(path))
			continue;
		memcpy(path, at, n);
		path[n] = '\0';
		if (strcmp(path, "/") == 0)
			path[0] = '\0';
		look_at(&kinds[i], path);
	}
}

/* Pages of files the kernel would give up before it kills. */
static uint64_t reclaimable(const char *dir, const struct group_kind *kind)
{
	uint64_t sum = 0;
	char text[8192];

	if (!read_text(dir, "memory.stat", text, sizeof(text)))
		return 0;
	for (int i = 0; i < 2; i++) {
		const char *at = strstr(text, kind->cache[i]);

		if (at != NULL)
			sum += strtoull(at + strlen(kind->cache[i]), NULL, 10);
	}
	return sum;
}

static bool swap_on(void)
{
	char text[512], *line;

	/* a heading and, per swap area, a line */
	if (!read_text("/proc", "swaps", text, sizeof(text)))
		return false;
	line = strchr(text + 1, '\n');
	return line != NULL && line[1] != '\0';
}

/* May this group put so much into swap? */
static bool swap_left(const char *dir, const struct group_kind *kind,
		      size_t bytes)
{
	uint64_t max, used;

	return swap_on() && (!read_number(dir, kind->swap_limit, &max) ||
			     !read_number(dir, kind->swap_usage, &used) ||
			     (used < max && max - used >= bytes));
}

/* A field of /proc/meminfo in bytes, 0: none. */
static uint64_t meminfo(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	return at == NULL ? 0 : strtoull(at + strlen(name), NULL, 10) * 1024;
}

/*
 * Has the machine so much? Shared memory that it has not ends in processes the
 * kernel picks, not in an error. Small amounts are not worth the look.
 */
static int machine_check(const char *what, size_t bytes)
{
	char text[4096];
	uint64_t left;

	if (bytes < MACHINE_MIN || !read_text("/proc", "meminfo", text,
					      sizeof(text)) ||
	    strstr(text, "MemAvailable:") == NULL)
		return 0;
	left = meminfo(text, "MemAvailable:") + meminfo(text, "SwapFree:");
	if (bytes <= left)
		return 0;
	hal_log(0, "%s needs %zu bytes, this machine has %llu left: ask for "
		"less or end other programs", what, bytes,
		(unsigned long long)left);
	return -FI_ENOMEM;
}

int hal_limit_check(const char *what, size_t bytes)
{
	uint64_t used, room = UINT64_MAX, limit = 0;
	int ret = machine_check(what, bytes);

	if (ret != 0)
		return ret;

	hal_lock(&g_limit.lock);
	if (!g_limit.looked)
		look();
	for (int i = 0; i < g_limit.n; i++) {
		const char *dir = g_limit.group[i].dir;
		const struct group_kind *kind = g_limit.group[i].kind;
		uint64_t max = g_limit.group[i].limit, left;

		if (!read_number(dir, kind->usage, &used))
			continue;
		left = used < max ? max - used : 0;
		if (left < bytes)
			left += reclaimable(dir, kind);
		if (left < bytes && swap_left(dir, kind, bytes))
			continue;
		if (left < room) {
			room = left;
			limit = max;
		}
	}
	hal_unlock(&g_limit.lock);
	if (bytes <= room)
		return 0;
	hal_log(0, "%s needs %zu bytes, the memory control group has %llu left "
		"of %llu: raise its limit or start fewer processes", what,
		bytes, (unsigned long long)room, (unsigned long long)limit);
	return -FI_ENOMEM;
}
