/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_start.c - starts the service of an emulated board, in the process that
 * first needs the service. util/unm_start.c runs the program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "client/gsas_log.h"
#include "client/gsas_start.h"
#include "util/unm_start.h"

#define ARGS_MAX	10

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

int gsas_start_service(unsigned board)
{
	static const struct unm_start prog = {
		.name = "gsasd", .installed = GSAS_BINDIR "/gsasd",
		.variable = "GSASD",
	};
	char number[16], dir[4096], line[512];
	char *argv[ARGS_MAX] = { "gsasd", "--auto", "--board", number,
				 "--ready-fd", UNM_START_READY_FD, NULL };
	int ret;

	snprintf(number, sizeof(number), "%u", board);
	program_dir(dir, sizeof(dir));
	if (secure_getenv("GSAS_EXEC_PATH") == NULL && *dir != '\0') {
		argv[6] = "--exec";
		argv[7] = dir;
	}
	ret = unm_start(&prog, argv, line, sizeof(line));
	if (ret < 0)
		return ret;
	if (ret != 0) {
		gsas_log("board %u has no service, and gsasd cannot be started:"
			 " %s; %s", board, strerror(ret), unm_start_secure() ?
			 "a set-id program starts " GSAS_BINDIR "/gsasd only" :
			 "set GSASD to its path");
		return -FI_ECONNREFUSED;
	}
	return ready_status(board, line);
}
