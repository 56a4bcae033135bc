/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_rank.c - what the launcher says of this process.
 */
#include <stdint.h>

#include "hal_map.h"
#include "hal_param.h"

void hal_ranks(long *rank, long *nranks)
{
	static const char *const ranks[] = {
		"MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK",
		"SLURM_LOCALID", NULL,
	};
	static const char *const sizes[] = {
		"MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", NULL,
	};

	*rank = hal_param_first_number(ranks);
	*nranks = hal_param_first_number(sizes);
	if (*rank > INT32_MAX)
		*rank = -1;
	if (*nranks > INT32_MAX || *nranks <= *rank)
		*nranks = -1;
}
