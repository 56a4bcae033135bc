/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_launcher.c - the local rank of this process, and the number of local
 * ranks, from the environment variables of the job launcher.
 *
 * Entry point: hal_launcher_ranks().
 */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>

#include "hal/hal_launcher.h"
#include "hal/hal_param.h"

static long number_in(const char *name)
{
	const char *const names[] = { name, NULL };

	return hal_param_first_number(names);
}

/* Read the decimal number at *text and move *text behind it. -1: there is none,
 * or it exceeds INT32_MAX. */
static long take_number(const char **text)
{
	char *end;
	long val;

	if (!isdigit((unsigned char)**text))
		return -1;
	val = strtol(*text, &end, 10);
	*text = end;
	return val <= INT32_MAX ? val : -1;
}

/* Tasks on a node, from the list of SLURM: "4(x2),3" means 4 tasks on each of
 * the nodes 0 and 1, and 3 on node 2. -1: the list is malformed or too short.
 */
static long tasks_on(const char *list, long node)
{
	while (node >= 0) {
		long tasks = take_number(&list), nodes = 1;

		if (tasks >= 0 && list[0] == '(' && list[1] == 'x') {
			list += 2;
			nodes = take_number(&list);
			if (*list++ != ')')
				return -1;
		}
		if (tasks < 0 || nodes < 1)
			return -1;
		if (node < nodes)
			return tasks;
		node -= nodes;
		if (*list++ != ',')
			return -1;
	}
	return -1;
}

static long slurm_tasks(void)
{
	const char *list = getenv("SLURM_STEP_TASKS_PER_NODE");

	return list != NULL ? tasks_on(list, number_in("SLURM_NODEID")) : -1;
}

void hal_launcher_ranks(long *rank, long *nranks)
{
	/* Rank and count must be of the same launcher: a launcher may have been
	 * started by another one, whose variables are set too. */
	*nranks = -1;
	*rank = number_in("MPI_LOCALRANKID");
	if (*rank >= 0) {
		*nranks = number_in("MPI_LOCALNRANKS");
	} else if ((*rank = number_in("OMPI_COMM_WORLD_LOCAL_RANK")) >= 0) {
		*nranks = number_in("OMPI_COMM_WORLD_LOCAL_SIZE");
	} else {
		*rank = number_in("SLURM_LOCALID");
		*nranks = slurm_tasks();
	}
	if (*rank > INT32_MAX)
		*rank = -1;
	if (*rank < 0 || *nranks > INT32_MAX || *nranks <= *rank)
		*nranks = -1;
}
