/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_each.c - gsasd --all: starts and ends the services of all boards of this
 * host. A service is a process, so that the end of one is no end of another.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/gsas_each.h"
#include "util/unm_daemon.h"

#define EVENTS		2		/* of attend(): signals, reports */

struct each {
	unsigned first, boards;
	pid_t *child;			/* [boards]; 0: ended, or not started */
	unsigned live, serving;
	int report[2];			/* messages of children: [0] of this
					 * process, [1] of the children */
	bool failed;			/* some child ended with an error */
	bool ending;			/* they got SIGTERM */
	void (*ready)(void);
	void (*log)(const char *line);
};

static void end_all(struct each *e)
{
	e->ending = true;
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

/* The services of other boards go on, so only this line shows the end. */
static void log_end(const struct each *e, unsigned board, int status)
{
	char line[80];

	if (e->ending && is_good(status))
		return;
	if (WIFSIGNALED(status))
		snprintf(line, sizeof(line),
			 "board %u: its service was ended by signal %d", board,
			 WTERMSIG(status));
	else
		snprintf(line, sizeof(line),
			 "board %u: its service has ended with exit code %d",
			 board, WEXITSTATUS(status));
	e->log(line);
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
			log_end(e, e->first + i, status);
		}
}

/* A child serves, or has logged why it does not. Returns whether more may be
 * reported. */
static bool take_report(struct each *e)
{
	char text[16];
	ssize_t n = recv(e->report[0], text, sizeof(text), 0);

	if (n == 6 && memcmp(text, "ready\n", 6) == 0 &&
	    ++e->serving == e->boards)
		e->ready();
	return n > 0;
}

/* Until all children have ended. signals: a signalfd */
static void attend(struct each *e, int signals)
{
	struct pollfd fds[EVENTS] = {
		{ .fd = signals, .events = POLLIN },
		{ .fd = e->report[0], .events = POLLIN },
	};
	struct signalfd_siginfo info;

	while (e->live != 0) {
		if (poll(fds, EVENTS, -1) < 0)
			continue;
		if (fds[1].revents != 0 && !take_report(e))
			fds[1].fd = -1;
		if (fds[0].revents == 0 ||
		    read(signals, &info, sizeof(info)) != sizeof(info))
			continue;
		if (info.ssi_signo != SIGCHLD)
			end_all(e);
		reap(e);
	}
}

static void failed(struct each *e)
{
	char line[120];

	snprintf(line, sizeof(line), "no process for each board: %s",
		 strerror(errno));
	e->log(line);
	e->failed = true;
}

static void start(struct each *e, unsigned i)
{
	e->child[i] = fork();
	if (e->child[i] > 0) {
		e->live++;
	} else if (e->child[i] < 0) {
		failed(e);
		e->child[i] = 0;
	}
}

/* A child goes on from here: what was the parent's is given back. */
static void become(struct each *e, pid_t parent, int signals,
		   const sigset_t *was)
{
	sigprocmask(SIG_SETMASK, was, NULL);
	/* the parent may have ended before */
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)
		_exit(EXIT_FAILURE);
	close(signals);
	close(e->report[0]);
	unm_daemon.ready_fd = e->report[1];
	free(e->child);
}

unsigned gsas_each_board(unsigned first, unsigned boards, void (*ready)(void),
			 void (*log)(const char *line))
{
	struct each e = {
		.first = first, .boards = boards, .ready = ready, .log = log,
	};
	pid_t parent = getpid();
	sigset_t set, was;
	int signals;

	signal(SIGCHLD, SIG_DFL);	/* else nothing is to be waited for */
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, &was);
	e.child = calloc(boards, sizeof(e.child[0]));
	signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (e.child == NULL || signals < 0 ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0,
		       e.report) != 0) {
		failed(&e);
		exit(EXIT_FAILURE);
	}
	for (unsigned i = 0; i < boards && !e.failed; i++) {
		start(&e, i);
		if (getpid() == parent)
			continue;
		become(&e, parent, signals, &was);
		return first + i;
	}
	close(e.report[1]);
	if (e.failed)
		end_all(&e);
	attend(&e, signals);
	exit(e.failed ? EXIT_FAILURE : EXIT_SUCCESS);
}
