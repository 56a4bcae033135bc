/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_start.c - starts the mailbox daemon of an emulated node, in the process
 * that first needs it.
 *
 * "unimem-mailboxd --auto" forks the daemon and ends, so the child that is
 * started here ends at once and is waited for. posix_spawn() starts it, because
 * that is safe in programs with threads.
 *
 * A set-id program (AT_SECURE) runs the installed daemon only, with the
 * parameters of the HAL as its environment, because the caller of the program,
 * and not its owner, sets UNIMEM_MAILBOXD and PATH.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/mbox_log.h"
#include "client/mbox_start.h"
#include "util/unm_clock.h"

#define PROGRAM		"unimem-mailboxd"
#define READY_FD	3		/* descriptor in the daemon of
					 * --ready-fd */
#define HIGH_FD		10		/* above the descriptors of the
					 * daemon */
#define READY_NS	UINT64_C(10000000000)	/* for it to be ready */

extern char **environ;

/* Descriptors 0 to 2 are /dev/null, READY_FD is ready, no other is open; no
 * signal is blocked or ignored. 0, errno. */
static int spawn_attr(posix_spawnattr_t *attr,
		      posix_spawn_file_actions_t *actions, int ready)
{
	sigset_t all, none;
	int ret;

	sigfillset(&all);
	sigemptyset(&none);
	ret = posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGDEF |
				       POSIX_SPAWN_SETSIGMASK);
	if (ret == 0)
		ret = posix_spawnattr_setsigdefault(attr, &all);
	if (ret == 0)
		ret = posix_spawnattr_setsigmask(attr, &none);
	for (int fd = 0; fd < 3 && ret == 0; fd++)
		ret = posix_spawn_file_actions_addopen(actions, fd,
						       "/dev/null", O_RDWR, 0);
	if (ret == 0)
		ret = posix_spawn_file_actions_adddup2(actions, ready,
						       READY_FD);
	if (ret == 0)
		ret = posix_spawn_file_actions_addclosefrom_np(actions,
							       READY_FD + 1);
	return ret;
}

/* The environment of a daemon that a set-id program starts. NULL: no memory. */
static char **secure_environ(void)
{
	static const char prefix[] = HAL_PARAM_PREFIX;
	size_t n = 0, kept = 0;
	char **env;

	while (environ != NULL && environ[n] != NULL)
		n++;
	env = calloc(n + 1, sizeof(env[0]));
	for (size_t i = 0; env != NULL && i < n; i++)
		if (strncmp(environ[i], prefix, sizeof(prefix) - 1) == 0)
			env[kept++] = environ[i];
	return env;
}

/* Run the program UNIMEM_MAILBOXD if it is set, else the installed daemon, else
 * the first one in PATH. 0, errno. */
static int spawn_found(char *const argv[],
		       const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, pid_t *pid)
{
	static const char path[] = MBOX_BINDIR "/" PROGRAM;
	const char *named = getenv("UNIMEM_MAILBOXD");
	char **env;
	int ret;

	if (getauxval(AT_SECURE) != 0) {
		env = secure_environ();
		if (env == NULL)
			return ENOMEM;
		ret = posix_spawn(pid, path, actions, attr, argv, env);
		free(env);
		return ret;
	}
	if (named != NULL && *named != '\0')
		return posix_spawn(pid, named, actions, attr, argv, environ);
	ret = posix_spawn(pid, path, actions, attr, argv, environ);
	if (ret == ENOENT)
		ret = posix_spawnp(pid, PROGRAM, actions, attr, argv, environ);
	return ret;
}

/* ready: descriptor that the daemon gets as READY_FD. 0, errno. */
static int spawn(char *const argv[], int ready, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int ret = posix_spawnattr_init(&attr);

	if (ret != 0)
		return ret;
	ret = posix_spawn_file_actions_init(&actions);
	if (ret != 0)
		goto destroy_attr;
	ret = spawn_attr(&attr, &actions, ready);
	if (ret == 0)
		ret = spawn_found(argv, &actions, &attr, pid);
	posix_spawn_file_actions_destroy(&actions);
destroy_attr:
	posix_spawnattr_destroy(&attr);
	return ret;
}

/* Read the line that the daemon writes, without the newline; "": it wrote
 * nothing for READY_NS. */
static void read_ready(int fd, char *line, size_t max)
{
	uint64_t now, end = unm_now_ns() + READY_NS;
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	size_t len = 0;

	while (len < max - 1 && (now = unm_now_ns()) < end) {
		ssize_t n;

		if (poll(&pfd, 1, (int)((end - now) / 1000000) + 1) <= 0)
			continue;
		n = read(fd, line + len, 1);
		if (n == 0 || (n > 0 && line[len] == '\n') ||
		    (n < 0 && errno != EINTR))
			break;
		if (n > 0)
			len++;
	}
	line[len] = '\0';
}

/* Run the daemon. pipe_end: where its line is read; ready: where the daemon
 * writes it, closed here. */
static int run(int node, int pipe_end, int ready)
{
	char number[16], fd[16], line[512];
	char *argv[] = { PROGRAM, "--auto", "--board", number, "--ready-fd",
			 fd, NULL };
	pid_t pid;
	int ret;

	snprintf(number, sizeof(number), "%d", node);
	snprintf(fd, sizeof(fd), "%d", READY_FD);
	ret = spawn(argv, ready, &pid);
	close(ready);
	if (ret != 0) {
		mbox_log("node %d has no mailbox daemon, and " PROGRAM
			 " cannot be started: %s; UNIMEM_MAILBOXD may name it",
			 node, strerror(ret));
		return -ECONNREFUSED;
	}
	read_ready(pipe_end, line, sizeof(line));
	if (*line == '\0')
		kill(pid, SIGKILL);	/* it may never end by itself */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	if (strcmp(line, "ready") == 0 || strcmp(line, "busy") == 0)
		return 0;
	mbox_log("node %d has no mailbox daemon, and " PROGRAM " cannot serve "
		 "it: %s", node, *line != '\0' ? line :
		 "it ended or hangs, and gave no reason");
	return -ECONNREFUSED;
}

int mbox_start(const struct hal *hal, int node)
{
	bool here = hal_board_here(hal, (uint32_t)node);
	int fds[2], ready, ret;

	if (!here || (!(hal->caps.flags & HAL_CAP_ANY_BOARD) &&
		      node != hal->own_board)) {
		mbox_log("node %d has no mailbox daemon%s: start " PROGRAM
			 " there", node, here ? "" : ", or its host does not "
			 "answer");
		return -ECONNREFUSED;
	}
	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	ready = fcntl(fds[1], F_DUPFD_CLOEXEC, HIGH_FD);
	ret = -errno;
	close(fds[1]);
	if (ready >= 0)
		ret = run(node, fds[0], ready);
	close(fds[0]);
	return ret;
}
