/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_launcher.h - what the job launcher says about this process; private to
 * the HAL.
 */
#ifndef HAL_LAUNCHER_H
#define HAL_LAUNCHER_H

/*
 * *rank: number of this process among the processes of its job on this host,
 * from 0. *nranks: how many there are. Both are read from the environment
 * variables of MPICH's Hydra and Intel MPI, Open MPI, or SLURM, in this order;
 * -1: the launcher does not say. If *nranks is not -1, *rank is less.
 */
void hal_launcher_ranks(long *rank, long *nranks);

#endif /* HAL_LAUNCHER_H */
