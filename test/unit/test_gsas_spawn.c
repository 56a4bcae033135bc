/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_spawn.c - programs that clients started are counted although the
 * service has no descriptor to see their end by.
 *
 * Programs started by gsasd itself are in test/multi/test_gsas_fork.c.
 */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "daemon/gsas_spawn.h"
#include "lib/unit.h"

#define CHILDREN	2			/* limit of each user */
#define PROGRAMS	(CHILDREN + 2)

static bool g_no_pidfd;			/* pidfd_open() fails */
static unsigned g_lines;		/* logged */
static char g_dir[64], g_path[128];	/* of the program */
static struct gsas_spawner g_spawner;
static uint64_t g_pid[PROGRAMS];	/* that run; 0: none */

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

long __wrap_syscall(long number, ...)
{
	long arg[6];
	va_list args;

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number == SYS_pidfd_open && g_no_pidfd) {
		errno = EMFILE;
		return -1;
	}
	return __real_syscall(number, arg[0], arg[1], arg[2], arg[3], arg[4],
			      arg[5]);
}

static void count_line(const char *line)
{
	(void)line;
	g_lines++;
}

/* A folder with a program that ends after a while. */
static int begin(void **state)
{
	struct sigaction child = {
		.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT,
	};
	FILE *f;

	sigaction(SIGCHLD, &child, NULL);	/* as gsasd does */
	snprintf(g_dir, sizeof(g_dir), "/tmp/test_gsas_spawn.XXXXXX");
	assert_non_null(mkdtemp(g_dir));
	snprintf(g_path, sizeof(g_path), "%s/sleeper", g_dir);
	f = fopen(g_path, "w");
	assert_non_null(f);
	fputs("#!/bin/sh\nexec sleep 60\n", f);
	fclose(f);
	assert_int_equal(chmod(g_path, 0700), 0);
	assert_int_equal(gsas_spawner_init(&g_spawner, 0, 0, g_dir, count_line),
			 0);
	assert_int_equal(gsas_spawner_allow(&g_spawner, g_dir), 0);
	g_spawner.max_children = CHILDREN;
	return 0;
}

static void end_program(int i)
{
	if (g_pid[i] == 0)
		return;
	kill((pid_t)g_pid[i], SIGKILL);
	while (kill((pid_t)g_pid[i], 0) == 0)
		usleep(1000);
	g_pid[i] = 0;
}

static int end(void **state)
{
	char command[128];

	for (int i = 0; i < PROGRAMS; i++)
		end_program(i);
	gsas_spawner_fini(&g_spawner);
	sigaction(SIGCHLD, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
	snprintf(command, sizeof(command), "rm -r %s", g_dir);
	return system(command);
}

static enum gsas_error start(int i, uint32_t uid)
{
	struct gsas_spawn spawn = { .path = g_path, .uid = uid };

	return gsas_spawner_start(&g_spawner, &spawn, &g_pid[i]);
}

/* The limit holds for each user, and the end of a program makes room for
 * one. */
static void crowd(void)
{
	g_lines = 0;
	for (int i = 0; i < CHILDREN; i++)
		assert_int_equal(start(i, 7), GSAS_OK);
	assert_int_equal(start(CHILDREN, 7), GSAS_E_QUOTA);
	assert_int_equal(g_lines, 1);
	assert_int_equal(start(CHILDREN, 8), GSAS_OK);
	end_program(0);
	assert_int_equal(start(0, 7), GSAS_OK);
	assert_int_equal(start(CHILDREN + 1, 7), GSAS_E_QUOTA);
	for (int i = 0; i < PROGRAMS; i++)
		end_program(i);
}

static void test_counted(void **state)
{
	g_no_pidfd = false;
	crowd();
}

static void test_counted_without_pidfd(void **state)
{
	g_no_pidfd = true;
	crowd();
}

#define TEST(name)	cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_MAIN(
	TEST(test_counted),
	TEST(test_counted_without_pidfd),
)
