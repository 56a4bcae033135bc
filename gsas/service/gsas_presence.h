/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_presence.h - the processes of a job on this board, and whether others
 * live elsewhere on the host (gsas_presence.c).
 */
#ifndef GSAS_PRESENCE_H
#define GSAS_PRESENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "service/gsas_region.h"
#include "util/unm_list.h"

/*
 * The checks by one request whether processes elsewhere on the host hold jobs
 * that have no process on this board (gsas_hold.h). Any user can set locks that
 * make these checks slow. So a request checks each job once, and no further job
 * when its checks have taken some time: it takes the remaining jobs for living
 * ones, whose regions are no orphans. It always checks one job. Part of struct
 * gsas_pages; used by the thread of the service.
 */
struct gsas_census {
	bool (*held)(void *ctx, uint32_t uid, const uint64_t key[2]);
					/* of struct gsas_pages_attr */
	void *held_ctx;
	uint64_t request;		/* number of the request, from 1 */
	uint64_t spent;			/* ns of processor time that its checks
					 * have taken */
	struct unm_list processes;	/* of all jobs, in the order in which
					 * they are checked for their ends */
};

/*
 * Add a process to a job, until the process ends. fd becomes readable then; the
 * job owns fd, also if the call fails. id identifies the process: the same
 * process is added once. 0, -FI_ENOMEM.
 */
int gsas_job_process(struct gsas_census *census, struct gsas_job *job,
		     uint64_t id, int fd);
/* Check the next few processes, of any jobs, and remove those that have
 * ended. */
void gsas_census_sweep(struct gsas_census *census);
/* Does the job have an interface, or a living process that joined it here? */
bool gsas_job_present(struct gsas_job *job);
/* A request begins, which checks each job anew. Call this before the request
 * calls gsas_job_lives(). */
void gsas_census_begin(struct gsas_census *census);
/* Does any process of the job live, also if it did not join here, or is that
 * not known? If not, the regions of the job are orphans. */
bool gsas_job_lives(struct gsas_census *census, struct gsas_job *job);
/* Remove all processes of a job. */
void gsas_job_end_processes(struct gsas_job *job);

#endif /* GSAS_PRESENCE_H */
