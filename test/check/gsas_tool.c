/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_tool.c - one call of gsas.h from a script. Prints its result; the exit
 * code is 0, or the errno it gave.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gsas.h"

static uint64_t number(const char *text)
{
	return text != NULL ? strtoull(text, NULL, 0) : 0;
}

/* So many processes, one after the other, read there: how many it was done
 * for. */
static int in_turn(uint64_t address, uint64_t processes, uint64_t *done)
{
	for (uint64_t i = 0; i < processes; i++) {
		pid_t pid = fork();
		uint64_t value;
		int status;

		if (pid == 0)
			_exit(gsas_read64(address, &value) != 0);
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return -errno;
		*done += status == 0;
	}
	return 0;
}

static int run(const char *what, char *const arg[])
{
	uint64_t value = 0;
	int ret;

	if (strcmp(what, "alloc") == 0)		/* BOARD PAGES FLAGS */
		ret = gsas_alloc(number(arg[1]), (int)number(arg[0]),
				 (unsigned)number(arg[2]), NULL, &value);
	else if (strcmp(what, "free") == 0)
		ret = gsas_free(number(arg[0]));
	else if (strcmp(what, "read") == 0)
		ret = gsas_read64(number(arg[0]), &value);
	else if (strcmp(what, "in-turn") == 0)	/* ADDRESS PROCESSES */
		ret = in_turn(number(arg[0]), number(arg[1]), &value);
	else if (strcmp(what, "write") == 0)
		ret = gsas_write64(number(arg[0]), number(arg[1]));
	else if (strcmp(what, "fork") == 0)	/* BOARD PATH ARGUMENT */
		ret = gsas_fork(arg[1], number(arg[2]), (int)number(arg[0]),
				&value);
	else
		return 99;
	if (ret == 0)
		printf("0x%" PRIx64 "\n", value);
	else
		fprintf(stderr, "%s: %s\n", what, strerror(-ret));
	fflush(stdout);
	return -ret;
}

/* The process ends, and leaves a child that calls nothing. Prints its pid. */
static void leave_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		pause();
	printf("%d\n", (int)pid);
}

/* gsas_tool CALL ARGUMENT... ["hold": stay until killed; "child": a child
 * does] */
int main(int argc, char *argv[])
{
	int ret;

	if (argc < 2)
		return 99;
	ret = run(argv[1], argv + 2);
	if (ret == 0 && strcmp(argv[argc - 1], "hold") == 0)
		pause();
	if (ret == 0 && strcmp(argv[argc - 1], "child") == 0)
		leave_child();
	return ret;
}
