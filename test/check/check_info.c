/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * check_info.c - an interface with counters 1, 2, 3, ... for check-info.sh.
 *
 *	check_info stop		of a process that is stopped
 *	check_info orphan	whose owner has ended; prints the pid of the
 *				child that still holds its page
 *	check_info serve	interface 0, without counters, of a process
 *				that is stopped; 77 if it belongs to another
 *				process already
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hal/hal.h"
#include "core/unm_stats.h"

static void fill(void *page)
{
	struct unm_stats *stats = (void *)((char *)page + UNM_STATS_OFFSET);
	uint64_t n = 0;

#define FILL(name, help)	stats->name = ++n;
	UNM_STATS_COUNTERS(FILL)
#undef FILL
	stats->version = UNM_STATS_VERSION;
	stats->count = n;
}

int main(int argc, char **argv)
{
	struct hal_if *hif;
	struct hal *hal;
	pid_t child;
	int ret;

	if (argc != 2)
		return 99;
	if (hal_get(NULL, &hal) != 0)
		return 1;
	if (strcmp(argv[1], "serve") == 0) {
		ret = hal_if_open_service(hal, -1, &hif);
		if (ret != 0)
			return ret == -FI_EBUSY ? 77 : 1;
		raise(SIGSTOP);
		return 0;
	}
	if (hal_if_open(hal, -1, &hif) != 0)
		return 1;
	fill(hif->page);
	if (strcmp(argv[1], "orphan") == 0) {
		child = fork();
		if (child != 0) {
			printf("%ld\n", (long)child);
			fflush(stdout);
			_exit(child < 0);
		}
		fclose(stdout);
		alarm(60);
		pause();
	}
	raise(SIGSTOP);
	return 0;
}
