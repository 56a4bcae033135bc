/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * proc_files.c - count what /proc lists; see proc_files.h.
 *
 * Owns no object. A test that alone reads a file of /proc does so by itself.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/proc_files.h"

static void must_open(const void *opened, const char *path)
{
	if (opened != NULL)
		return;
	perror(path);
	abort();
}

int proc_names(const char *folder, const char *text)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	int n = 0;

	must_open(dir, folder);
	while ((entry = readdir(dir)) != NULL)
		n += strcmp(entry->d_name, ".") != 0 &&
		     strcmp(entry->d_name, "..") != 0 &&
		     strstr(entry->d_name, text) != NULL;
	closedir(dir);
	return n;
}

int proc_lines(const char *path, const char *text)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int n = 0;

	must_open(f, path);
	while (getline(&line, &size, f) >= 0)
		n += strstr(line, text) != NULL;
	free(line);
	fclose(f);
	return n;
}

int proc_self_fds(void)
{
	return proc_names("/proc/self/fd", "");
}

int proc_self_mappings(const char *text)
{
	return proc_lines("/proc/self/maps", text);
}

int proc_self_watched(int epfd)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", epfd);
	return proc_lines(path, "tfd:");
}

size_t proc_self_space(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	size_t pages = 0;

	must_open(f, "/proc/self/statm");
	if (fscanf(f, "%zu", &pages) != 1)
		abort();
	fclose(f);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}
