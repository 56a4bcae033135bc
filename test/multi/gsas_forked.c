/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_forked.c - the program that test_gsas_fork.c starts on boards by gsasd
 *
 * Its argument is the address of a shared page, see lib/gsas_forked.h: the page
 * holds what to do, and the program writes its report there.
 */
#include <dirent.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomic.h"
#include "lib/gsas_forked.h"

/* Returns whether a descriptor is the one by which libgsas marks this process
 * as alive (gsas_hold.h). */
static bool is_hold(DIR *dir, const char *name)
{
	char to[8] = "";

	return readlinkat(dirfd(dir), name, to, sizeof(to)) >= 5 &&
	       memcmp(to, "net:[", 5) == 0;
}

/* The number of open descriptors, without that of libgsas. */
static uint64_t descriptors(void)
{
	bool holds = false;
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	uint64_t n = 0;

	while (dir != NULL && (d = readdir(dir)) != NULL) {
		if (!holds && is_hold(dir, d->d_name))
			holds = true;
		else
			n += d->d_name[0] != '.' &&
			     atoi(d->d_name) != dirfd(dir);
	}
	if (dir != NULL)
		closedir(dir);
	return n;
}

/* Are variables set by which a launcher gives a process its rank? */
static bool has_rank(void)
{
	return getenv("PMI_FD") != NULL || getenv("PMI_RANK") != NULL ||
	       getenv("PMIX_NAMESPACE") != NULL ||
	       getenv("PMIX_RANK") != NULL || getenv("SLURM_PROCID") != NULL;
}

int main(void)
{
	const uint64_t files = descriptors();
	uint64_t *page = (uint64_t *)readThreadArgument();
	uint64_t *mine, what;

	if ((uint64_t)page == _EMPTY_THREAD_ARGUMENT_)
		return 2;
	what = READ64(page + FORKED_WHAT);
	mine = page + FORKED_TELLS + FORKED_WORDS *
		FAD64((int64_t *)(page + FORKED_COUNT), 1);
	WRITE64(mine + FORKED_BOARD, getBoardPid());
	WRITE64(mine + FORKED_PID, (uint64_t)getpid());
	WRITE64(mine + FORKED_FILES, files);
	WRITE64(mine + FORKED_RANK, has_rank());
	printf("out of %d\n", (int)getpid());
	fprintf(stderr, "err of %d\n", (int)getpid());
	fflush(NULL);
	if (what == FORKED_DIE)
		WRITE64(mine + FORKED_PAGES,
			(uint64_t)allocSharedPage(3, getBoardPid()));
	FAD64((int64_t *)(page + FORKED_TOLD), 1);
	if (what == FORKED_DIE)
		raise(SIGKILL);
	while (what == FORKED_STAY && READ64(page + FORKED_WHAT) == FORKED_STAY)
		usleep(1000);
	return 3;			/* gsasd must reap any exit code */
}
