/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_each.c - gsasd --all: starts and ends the services of all boards of this
 * host. A service is a process, so that the end of one is no end of another.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/gsas_each.h"

struct each {
	unsigned boards;
	pid_t *child;			/* [boards]; 0: ended, or not started */
	unsigned live;
	bool failed;			/* some child ended with an error */
};

static void end_all(const struct each *e)
{
	for (unsigned i = 0; i < e->boards; i++)
		if (e->child[i] != 0)
			kill(e->child[i], SIGTERM);
}

/* Ended by end_all(), maybe before it had a handler? */
static bool is_good(int status)
{
	return status == 0 ||
	       (WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void reap(struct each *e)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (unsigned i = 0; i < e->boards; i++) {
			if (e->child[i] != pid)
				continue;
			e->child[i] = 0;
			e->live--;
			e->failed |= !is_good(status);
		}
}

/* Until all children have ended. The signals of the set are blocked. */
static void attend(struct each *e, const sigset_t *set)
{
	while (e->live != 0) {
		int sig = sigwaitinfo(set, NULL);

		if (sig > 0 && sig != SIGCHLD)
			end_all(e);
		reap(e);
	}
}

static void start(struct each *e, unsigned i, void (*log)(const char *line))
{
	char line[120];

	e->child[i] = fork();
	if (e->child[i] < 0) {
		snprintf(line, sizeof(line), "no process for each board: %s",
			 strerror(errno));
		log(line);
		e->child[i] = 0;
		e->failed = true;
	} else if (e->child[i] > 0) {
		e->live++;
	}
}

unsigned gsas_each_board(unsigned first, unsigned boards,
			 void (*log)(const char *line))
{
	struct each e = { .boards = boards };
	pid_t parent = getpid();
	sigset_t set, was;

	signal(SIGCHLD, SIG_DFL);	/* else nothing is to be waited for */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &was);
	e.child = calloc(boards, sizeof(e.child[0]));
	e.failed = e.child == NULL;
	for (unsigned i = 0; i < boards && !e.failed; i++) {
		start(&e, i, log);
		if (getpid() == parent)
			continue;
		sigprocmask(SIG_SETMASK, &was, NULL);
		/* the parent may have ended before */
		if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 ||
		    getppid() != parent)
			_exit(EXIT_FAILURE);
		free(e.child);
		return first + i;
	}
	if (e.failed && e.child != NULL)
		end_all(&e);
	attend(&e, &set);
	exit(e.failed ? EXIT_FAILURE : EXIT_SUCCESS);
}
