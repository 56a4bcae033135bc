/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_daemon.c - the beginning of a daemon and its log lines; gsasd(8) and
 * unimem-mailboxd(8) are compiled with it. Options, signals and the loop are
 * the programs' own. util/unm_start.c is the side that starts a daemon.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <syslog.h>
#include <unistd.h>

#include "util/unm_daemon.h"

#define LOG_MAX		512		/* bytes of a line of an error */

struct unm_daemon unm_daemon = { .name = "daemon", .ready_fd = -1 };

void unm_daemon_log(const char *line)
{
	if (unm_daemon.background)
		syslog(LOG_NOTICE, "%s", line);
	else
		fprintf(stderr, "%s: %s\n", unm_daemon.name, line);
}

void unm_daemon_notify(const char *line)
{
	if (unm_daemon.ready_fd < 0)
		return;
	if (dprintf(unm_daemon.ready_fd, "%s\n", line) < 0)
		unm_daemon_log("the process that started this one has ended");
	close(unm_daemon.ready_fd);
	unm_daemon.ready_fd = -1;
}

void unm_daemon_fail(const char *fmt, ...)
{
	char line[LOG_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	unm_daemon_log(line);
	unm_daemon_notify(line);
	exit(EXIT_FAILURE);
}

uint64_t unm_daemon_number(const char *name, const char *text, int base,
			   uint64_t max)
{
	uint64_t value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, base);
	if (!isdigit((unsigned char)text[0]) || *end != '\0' || errno != 0 ||
	    value > max)
		unm_daemon_fail("--%s %s: give a number from 0 to %llu", name,
				text, (unsigned long long)max);
	return value;
}

int unm_daemon_descriptors(void)
{
	struct rlimit limit;
	int spare;

	do {
		spare = open("/dev/null", O_RDWR | O_CLOEXEC);
	} while (spare >= 0 && spare < 3);
	for (int fd = 0; fd < 3; fd++)
		fcntl(fd, F_SETFD, 0);
	close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	    limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	return spare;
}

void unm_daemon_fork(void)
{
	pid_t pid = fork();
	int null;

	if (pid < 0)
		unm_daemon_fail("no process: %s", strerror(errno));
	if (pid > 0)
		_exit(EXIT_SUCCESS);
	if (setsid() < 0)
		unm_daemon_fail("no session: %s", strerror(errno));
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	openlog(unm_daemon.name, LOG_PID, LOG_DAEMON);
}
