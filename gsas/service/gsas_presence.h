/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_presence.h - the processes of a job on this board (gsas_presence.c).
 */
#ifndef GSAS_PRESENCE_H
#define GSAS_PRESENCE_H

#include "service/gsas_region.h"

/*
 * Add a process to a job, until the process ends. fd becomes readable then; the
 * job owns fd, also if the call fails. id identifies the process: the same
 * process is added once. 0, -FI_ENOMEM.
 */
int gsas_job_process(struct gsas_job *job, uint64_t id, int fd);
/* Does the job have an interface, or a living process that joined it here? */
bool gsas_job_present(struct gsas_job *job);
/* Remove all processes of a job. */
void gsas_job_end_processes(struct gsas_job *job);

#endif /* GSAS_PRESENCE_H */
