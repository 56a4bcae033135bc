/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_launcher.h - what the launcher of parallel programs (mpirun, srun) says
 * about this process: the job to which it belongs, its rank. Private to
 * libgsas. gsas_job.c stores the key.
 */
#ifndef GSAS_LAUNCHER_H
#define GSAS_LAUNCHER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Compute the key of a job from what the launcher gives to all processes that
 * it starts together and to no others. false: no launcher started this process,
 * or nothing that it gives is unique; *key is not changed. Reads the
 * environment: call it while the process has one thread.
 */
bool gsas_launcher_key(uint64_t key[2]);

/* Are variables set that a launcher gives to the processes that it starts? They
 * may be of another process that is an ancestor. */
bool gsas_launcher_evident(void);

/* Does Hydra run ranks of this job on other hosts as well, where the key is
 * another one? Not if it gives the name of the job. Reads the environment. */
bool gsas_launcher_split(void);

/* The rank of this process and the number of ranks, from the environment.
 * false: no launcher gives both. Reads the environment, as getenv() does. */
bool gsas_launcher_rank(uint32_t *rank, uint32_t *ranks);

#endif /* GSAS_LAUNCHER_H */
