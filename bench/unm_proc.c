// SPDX-License-Identifier: BSD-2-Clause
/*
 * unm_proc.c - options and the second process of the bench programs without
 * MPI; see unm_proc.h.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unm_proc.h"
#include "unm_stat.h"

static void usage(const char *prog, const struct unm_pair *preset)
{
	fprintf(stderr, "usage: %s [-p CORE,CORE] [-t SECONDS]\n"
		"  -p  cores of the two processes (%d,%d)\n"
		"  -t  time of one pass, of %d per figure (%g)\n",
		prog, preset->core[0], preset->core[1], UNM_PASSES,
		preset->pass_s);
	exit(2);
}

void unm_pair_options(struct unm_pair *pair, int argc, char **argv)
{
	struct unm_pair preset = *pair;
	int c;

	while ((c = getopt(argc, argv, "p:t:")) != -1) {
		if (c == 't')
			pair->pass_s = atof(optarg);
		else if (c != 'p' || sscanf(optarg, "%d,%d", &pair->core[0],
					    &pair->core[1]) != 2)
			usage(argv[0], &preset);
	}
	if (optind < argc || !(pair->pass_s > 0))
		usage(argv[0], &preset);
}

pid_t unm_child(void (*body)(void *), void *arg, int core)
{
	pid_t parent = getpid(), pid;

	fflush(stdout);
	pid = fork();
	if (pid < 0) {
		perror("fork");
		exit(1);
	}
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	unm_pin(core);
	body(arg);
	_exit(0);
}

void unm_child_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}
