/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_start.c - starts the service of an emulated board, in the process that
 * first needs the service.
 *
 * "gsasd --auto" forks the service and ends, so the child that is started here
 * ends at once and is waited for. posix_spawn() starts it, because that is safe
 * and fast in programs with threads and much memory.
 *
 * A set-id program (AT_SECURE) runs the installed gsasd only, because the
 * caller of the program, and not its owner, sets GSASD and PATH.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "client/gsas_log.h"
#include "client/gsas_start.h"
#include "util/unm_clock.h"

#define READY_FD	3		/* descriptor in gsasd of --ready-fd */
#define HIGH_FD		10		/* above the descriptors of gsasd */
#define READY_NS	UINT64_C(10000000000)	/* for gsasd to be ready */
#define ARGS_MAX	10

extern char **environ;

/* The directory of this program, from which gsas_fork() may start programs; "":
 * not known. */
static void program_dir(char *dir, size_t max)
{
	ssize_t len = readlink("/proc/self/exe", dir, max - 1);
	char *slash;

	dir[len < 0 ? 0 : len] = '\0';
	slash = strrchr(dir, '/');
	if (slash != NULL)
		*slash = '\0';
	if (access(dir, X_OK) != 0)
		*dir = '\0';		/* removed, or not accessible */
}

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

static bool is_secure(void)
{
	return getauxval(AT_SECURE) != 0;
}

/*
 * The environment of a gsasd that a set-id program starts: only the parameters
 * of the HAL. gsasd ignores the parameters that name files. NULL: no memory.
 */
static char **secure_environ(void)
{
	static const char prefix[] = "FI_UNIMEM_";
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

/* Run the program GSASD if it is set, else the installed gsasd, else the first
 * gsasd in PATH. A set-id program runs the installed gsasd only. 0, errno. */
static int spawn_found(char *const argv[],
		       const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, pid_t *pid)
{
	static const char path[] = GSAS_BINDIR "/gsasd";
	const char *named = getenv("GSASD");
	char **env;
	int ret;

	if (is_secure()) {
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
		ret = posix_spawnp(pid, "gsasd", actions, attr, argv, environ);
	return ret;
}

/* Run gsasd with these arguments. ready: descriptor that it gets as READY_FD.
 * 0, errno. */
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
	if (ret != 0)
		goto destroy_actions;
	ret = spawn_found(argv, &actions, &attr, pid);
destroy_actions:
	posix_spawn_file_actions_destroy(&actions);
destroy_attr:
	posix_spawnattr_destroy(&attr);
	return ret;
}

/* Read the line that gsasd writes to READY_FD, without the newline; "": it
 * wrote nothing for READY_NS. */
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

/* 0: gsasd serves, or another process started a service ("busy"). Else log the
 * reason. */
static int ready_status(unsigned board, const char *line)
{
	if (strcmp(line, "ready") == 0 || strcmp(line, "busy") == 0)
		return 0;
	gsas_log("board %u has no service, and gsasd cannot serve it: %s",
		 board, *line != '\0' ? line : "it ended or hangs, and gave no "
		 "reason");
	return -FI_ECONNREFUSED;
}

/* Run gsasd and wait until it is ready. pipe_end: where its line is read;
 * ready: where gsasd writes it, closed here. */
static int run_gsasd(unsigned board, int pipe_end, int ready)
{
	char number[16], fd[16], dir[4096], line[512];
	char *argv[ARGS_MAX] = { "gsasd", "--auto", "--board", number,
				 "--ready-fd", fd, NULL };
	pid_t pid;
	int ret;

	snprintf(number, sizeof(number), "%u", board);
	snprintf(fd, sizeof(fd), "%d", READY_FD);
	program_dir(dir, sizeof(dir));
	if (secure_getenv("GSAS_EXEC_PATH") == NULL && *dir != '\0') {
		argv[6] = "--exec";
		argv[7] = dir;
	}
	ret = spawn(argv, ready, &pid);
	close(ready);
	if (ret != 0) {
		gsas_log("board %u has no service, and gsasd cannot be started:"
			 " %s; %s", board, strerror(ret), is_secure() ?
			 "a set-id program starts " GSAS_BINDIR "/gsasd only" :
			 "set GSASD to its path");
		return -FI_ECONNREFUSED;
	}
	read_ready(pipe_end, line, sizeof(line));
	if (*line == '\0')
		kill(pid, SIGKILL);	/* it may never end by itself */
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return ready_status(board, line);
}

int gsas_start_service(unsigned board)
{
	int fds[2], ready, ret;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	ready = fcntl(fds[1], F_DUPFD_CLOEXEC, HIGH_FD);
	ret = -errno;
	close(fds[1]);
	if (ready >= 0)
		ret = run_gsasd(board, fds[0], ready);
	close(fds[0]);
	return ret;
}
