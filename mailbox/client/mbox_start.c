/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_start.c - starts the mailbox daemon of an emulated node, in the process
 * that first needs it. util/unm_start.c runs the program.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/mbox_log.h"
#include "client/mbox_start.h"
#include "util/unm_start.h"

#define PROGRAM		"unimem-mailboxd"

/* Run the daemon, and wait for its report. */
static int run(int node)
{
	static const struct unm_start prog = {
		.name = PROGRAM, .installed = MBOX_BINDIR "/" PROGRAM,
		.variable = "UNIMEM_MAILBOXD",
	};
	char number[16], line[512];
	char *argv[] = { PROGRAM, "--auto", "--board", number, "--ready-fd",
			 UNM_START_READY_FD, NULL };
	int ret;

	snprintf(number, sizeof(number), "%d", node);
	ret = unm_start(&prog, argv, line, sizeof(line));
	if (ret < 0)
		return ret;
	if (ret != 0) {
		mbox_log("node %d has no mailbox daemon, and " PROGRAM
			 " cannot be started: %s; UNIMEM_MAILBOXD may name it",
			 node, strerror(ret));
		return -ECONNREFUSED;
	}
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

	if (!here || (!(hal->caps.flags & HAL_CAP_ANY_BOARD) &&
		      node != hal->own_board)) {
		mbox_log("node %d has no mailbox daemon%s: start " PROGRAM
			 " there", node, here ? "" : ", or its host does not "
			 "answer");
		return -ECONNREFUSED;
	}
	return run(node);
}
