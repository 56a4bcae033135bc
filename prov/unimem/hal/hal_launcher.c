/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_launcher.c - what the launcher says of this process.
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

/* A number up to INT32_MAX at *text, which moves behind it; or -1. */
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

/* Tasks on a node by SLURM's list: "4(x2),3" is 4 on nodes 0 and 1, 3 on node
 * 2. -1: it does not say. */
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
	/* the count is the launcher's that gave the rank: one may run below
	 * another */
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
