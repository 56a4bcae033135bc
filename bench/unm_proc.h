/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_proc.h - options and the second process of the bench programs without
 * MPI: which cores the two processes run on, how long a pass takes, fork and
 * end.
 */
#ifndef UNM_PROC_H
#define UNM_PROC_H

#include <sys/types.h>

/* Values of the options -p and -t. */
struct unm_pair {
	int core[2];
	double pass_s;			/* how long one pass may take */
};

#define UNM_PASSES	7		/* a figure is the median of these */

/* Options over the defaults in *pair; exits with a usage text. */
void unm_pair_options(struct unm_pair *pair, int argc, char **argv);

/* Fork; the child runs body(arg) on a core and dies with its parent. */
pid_t unm_child(void (*body)(void *), void *arg, int core);

/* Kill and reap a child of unm_child(). */
void unm_child_end(pid_t pid);

#endif
