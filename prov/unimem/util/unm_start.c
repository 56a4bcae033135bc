/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_start.c - starts a daemon and reads the line in which it reports that it
 * is ready. libgsas and libunimem-mailbox start their daemons with it.
 *
 * A daemon with --auto forks and ends, so the child that is started here ends
 * at once and is waited for, for a limited time. posix_spawn() starts it,
 * because that is safe and fast in programs with threads and much memory.
 *
 * A set-id program (AT_SECURE) runs the installed daemon only, because the
 * caller of the program, and not its owner, sets the environment.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util/unm_clock.h"
#include "util/unm_start.h"

#define HIGH_FD		10		/* above the descriptors of the
					 * daemon */
#define READY_NS	UINT64_C(10000000000)	/* for it to be ready */
#define END_MS		1000		/* for it to end, once it has written */

extern char **environ;

bool unm_start_secure(void)
{
	return getauxval(AT_SECURE) != 0;
}

/* Descriptors 0 to 2 are /dev/null, UNM_START_FD is ready, no other is open;
 * no signal is blocked or ignored. 0, errno. */
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
						       UNM_START_FD);
	if (ret == 0)
		ret = posix_spawn_file_actions_addclosefrom_np(actions,
							       UNM_START_FD + 1);
	return ret;
}

/*
 * The environment of a daemon that a set-id program starts: only the parameters
 * of the HAL, of which the daemon ignores those that name files. NULL: no
 * memory.
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

/* Run the program as unm_start.h says. 0, errno. */
static int spawn_found(const struct unm_start *prog, char *const argv[],
		       const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, pid_t *pid)
{
	const char *named = getenv(prog->variable);
	char **env;
	int ret;

	if (unm_start_secure()) {
		env = secure_environ();
		if (env == NULL)
			return ENOMEM;
		ret = posix_spawn(pid, prog->installed, actions, attr, argv,
				  env);
		free(env);
		return ret;
	}
	if (named != NULL && *named != '\0')
		return posix_spawn(pid, named, actions, attr, argv, environ);
	ret = posix_spawn(pid, prog->installed, actions, attr, argv, environ);
	if (ret == ENOENT)
		ret = posix_spawnp(pid, prog->name, actions, attr, argv,
				   environ);
	return ret;
}

/* ready: descriptor that the daemon gets as UNM_START_FD. 0, errno. */
static int spawn(const struct unm_start *prog, char *const argv[], int ready,
		 pid_t *pid)
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
		ret = spawn_found(prog, argv, &actions, &attr, pid);
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

/*
 * Wait for the end of a child, and kill it if it still runs after this time.
 *
 * If the program ignores SIGCHLD, or waits for all its children, nothing is
 * left of a child that has ended, and another process may have its number at
 * any time. So the signal is sent by the pidfd, which was opened directly after
 * the child was started. Only where there is none (-1), it is sent to the
 * number, which waitpid() has found to be a child that runs.
 */
static void reap(pid_t pid, int pidfd, int ms)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };
	pid_t ret;

	if (pidfd >= 0)
		(void)poll(&pfd, 1, ms);
	ret = waitpid(pid, NULL, WNOHANG);
	if (ret == 0 && pidfd >= 0)
		(void)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	else if (ret == 0)
		kill(pid, SIGKILL);
	while (ret == 0 || (ret < 0 && errno == EINTR))
		ret = waitpid(pid, NULL, 0);
}

int unm_start(const struct unm_start *prog, char *const argv[], char *line,
	      size_t max)
{
	int fds[2], ready, pidfd, ret;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	ready = fcntl(fds[1], F_DUPFD_CLOEXEC, HIGH_FD);
	ret = -errno;
	close(fds[1]);
	if (ready >= 0) {
		ret = spawn(prog, argv, ready, &pid);
		close(ready);
	}
	if (ret == 0) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		read_ready(fds[0], line, max);
		/* it may never end by itself */
		reap(pid, pidfd, *line == '\0' ? 0 : END_MS);
		if (pidfd >= 0)
			close(pidfd);
	}
	close(fds[0]);
	return ret;
}
