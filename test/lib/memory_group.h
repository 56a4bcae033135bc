/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * memory_group.h - control groups with a memory limit (cgroup v1 and v2), for
 * tests that run as the superuser; uses procs.h
 */
#ifndef MEMORY_GROUP_H
#define MEMORY_GROUP_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/procs.h"

/* Write a text to a control file of a group. Returns false if that fails. */
static inline bool group_put(const char *dir, const char *file,
			     const char *text)
{
	char path[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text);
}

/* Move a process into a group. Returns false if that is not permitted. */
static inline bool group_enter(const char *dir, pid_t pid)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", (int)pid);
	return group_put(dir, "cgroup.procs", text);
}

/* Create a group with a limit in bytes, and store its path in dir (len bytes).
 * Returns false if that is not permitted or no cgroup file system is
 * mounted. */
static inline bool group_make(char *dir, size_t len, rlim_t bytes)
{
	static const char *const roots[][2] = {
		{ "/sys/fs/cgroup", "memory.max" },
		{ "/sys/fs/cgroup/memory", "memory.limit_in_bytes" },
	};
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)bytes);
	for (int i = 0; i < 2; i++) {
		snprintf(dir, len, "%s/unimem-test-%d", roots[i][0],
			 getpid());
		if (mkdir(dir, 0755) != 0)
			continue;
		if (group_put(dir, roots[i][1], text))
			return true;
		rmdir(dir);
	}
	return false;
}

/* Remove a group, waiting up to a second for its processes to end. */
static inline void group_end(const char *dir)
{
	for (int i = 0; i < 100 && rmdir(dir) != 0; i++)
		procs_nap(10000);
}

#endif /* MEMORY_GROUP_H */
