/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_start.c - what unm_start() does with a daemon that reports, that ends
 * without a report, and that stays in the foreground. Shell scripts are the
 * daemons.
 */
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "lib/unit.h"
#include "util/unm_start.h"

#define VARIABLE	"TEST_START"

/* Start a daemon that executes this line of the shell. Returns the line that it
 * wrote. No child is left. */
static const char *start(const char *shell)
{
	static const struct unm_start prog = { "none", "/none", VARIABLE };
	char *argv[] = { "none", "--ready-fd", UNM_START_READY_FD, NULL };
	static char line[64];
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "./test_start.%d.sh", (int)getpid());
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\n%s\n", shell);
	fclose(f);
	assert_int_equal(chmod(path, 0755), 0);
	setenv(VARIABLE, path, 1);
	assert_int_equal(unm_start(&prog, argv, line, sizeof(line)), 0);
	unlink(path);
	assert_int_equal(waitpid(-1, NULL, 0), -1);
	assert_int_equal(errno, ECHILD);
	return line;
}

static void reports_are_read(void **state)
{
	assert_string_equal(start("echo ready >&$2"), "ready");
	assert_string_equal(start("echo no board >&3; exit 1"), "no board");
	assert_string_equal(start("exit 1"), "");
	assert_string_equal(start("exec 3>&-; exec sleep 600"), "");
}

/* It is not waited for without end. */
static void foreground_is_killed(void **state)
{
	assert_string_equal(start("echo ready >&3; exec sleep 600"), "ready");
}

/* In the shell: wait until the process that was started is gone. */
#define GONE	"while kill -0 $$; do sleep 0.1; done"

static int g_kills;

/* In the place of the C library's. */
int kill(pid_t pid, int sig)
{
	g_kills++;
	return (int)syscall(SYS_kill, pid, sig);
}

/* The number of a process that has ended may be another process's, and the
 * process may end just before a kill(). */
static void no_number_is_killed(void **state)
{
	int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);

	unit_needs(fd >= 0);		/* else there is only the number */
	close(fd);
	g_kills = 0;
	signal(SIGCHLD, SIG_IGN);
	assert_string_equal(start("(" GONE "; echo ready >&3) & exit 0"),
			    "ready");
	assert_string_equal(start("(" GONE ") & exit 1"), "");
	assert_string_equal(start("echo ready >&3; exec sleep 600"), "ready");
	assert_int_equal(g_kills, 0);
	signal(SIGCHLD, SIG_DFL);
}

static void not_found(void **state)
{
	static const struct unm_start prog = { "/none", "/none", VARIABLE };
	char *argv[] = { "none", NULL };
	char line[8];

	setenv(VARIABLE, "./no-such-file", 1);
	assert_int_equal(unm_start(&prog, argv, line, sizeof(line)), ENOENT);
	unsetenv(VARIABLE);
	assert_int_equal(unm_start(&prog, argv, line, sizeof(line)), ENOENT);
}

UNIT_MAIN(
	cmocka_unit_test(reports_are_read),
	cmocka_unit_test(foreground_is_killed),
	cmocka_unit_test(no_number_is_killed),
	cmocka_unit_test(not_found),
)
