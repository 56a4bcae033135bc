/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_job.h - the job of this process, its groups, and the lock of the
 * process. Private to libgsas. All functions: any thread.
 */
#ifndef GSAS_JOB_H
#define GSAS_JOB_H

#include <stdint.h>

#define GSAS_GROUPS	16	/* groups that a process can join */

/* The key of the job. 0; -FI_EINVAL: GSAS_JOB is not a key; -errno: no random
 * numbers for a new key. An error is logged. */
int gsas_job_key(uint64_t key[2]);

/* Before a connection to another host: log, once, if ranks that the launcher
 * has started there have another key. */
void gsas_job_leaves_host(void);

/*
 * Leave the job of GSAS_JOB for a new one of this process alone. For tools:
 * they allocate nothing, and must not keep the pages of a job from becoming
 * orphans. Before the first connection. 0, -errno.
 */
int gsas_job_own(void);

/* A spin lock of the process, for the names of groups, for gsas_map.c and for
 * gsas_watch.c, which may hold it to scan a segment or to start a thread. A
 * holder never waits for a service. A forked child may find it held by its
 * parent and then takes it over. */
void gsas_lock(void);
void gsas_unlock(void);

/*
 * Store the index of a group of this process at *index; add the group if it is
 * new. name: 1 to 16 bytes. 0; -FI_EINVAL; -EDQUOT: GSAS_GROUPS are joined
 * already. Each connection sends new groups to its service (gsas_conn_get()).
 */
int gsas_group_index(const char *name, uint32_t *index);
/* Number of groups; it only grows. */
uint32_t gsas_group_count(void);
/* The name of the group with an index below gsas_group_count(), filled up with
 * zeroes. */
void gsas_group_name(uint32_t index, uint64_t name[2]);

#endif /* GSAS_JOB_H */
