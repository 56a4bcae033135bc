/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_presence.c - which processes of a job live. A thread that ends takes its
 * connection with it, but pages are orphans only when no process lives that
 * belonged to their job. Each process is known by a descriptor that becomes
 * readable when the process ends. Part of gsas_pages.h.
 */
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "service/gsas_pages.h"

#define PRUNE_MIN	16		/* processes */

struct gsas_process {
	struct gsas_process *next;
	uint64_t id;
	int fd;
};

static bool process_ended(const struct gsas_process *process)
{
	struct pollfd pfd = { .fd = process->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) != 0;
}

static void process_drop(struct gsas_job *job, struct gsas_process **at)
{
	struct gsas_process *process = *at;

	*at = process->next;
	job->processes--;
	close(process->fd);
	free(process);
}

static void job_prune(struct gsas_job *job)
{
	struct gsas_process **at = &job->process;

	while (*at != NULL)
		if (process_ended(*at))
			process_drop(job, at);
		else
			at = &(*at)->next;
	job->prune_at = 2 * job->processes + PRUNE_MIN;
}

int gsas_job_process(struct gsas_job *job, uint64_t id, int fd)
{
	struct gsas_process *process;

	for (process = job->process; process != NULL; process = process->next)
		if (process->id == id && !process_ended(process)) {
			close(fd);
			return 0;
		}
	/* now and then, so that those that come and go do not add up */
	if (job->processes >= job->prune_at)
		job_prune(job);
	process = malloc(sizeof(*process));
	if (process == NULL) {
		close(fd);
		return -FI_ENOMEM;
	}
	*process = (struct gsas_process){
		.next = job->process, .id = id, .fd = fd,
	};
	job->process = process;
	job->processes++;
	return 0;
}

bool gsas_job_present(struct gsas_job *job)
{
	if (job->clients > 0)
		return true;
	while (job->process != NULL && process_ended(job->process))
		process_drop(job, &job->process);
	return job->process != NULL;
}

void gsas_job_end_processes(struct gsas_job *job)
{
	while (job->process != NULL)
		process_drop(job, &job->process);
}
