/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_presence.c - the processes of a job that joined it on this board and
 * still live. A connection ends with its thread, but the pages of a job become
 * orphans only when no process of the job lives. A job has a descriptor for
 * each process, which becomes readable when the process ends. Whether processes
 * elsewhere on the host hold a job is checked for a bounded time per request.
 */
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "service/gsas_presence.h"

#define PRUNE_MIN	16		/* processes before the first prune */
#define CENSUS_NS	1000000		/* of processor time for the checks by
					 * one request; a check takes a
					 * microsecond, or with locks over many
					 * jobs a thousand */

/* A process that joined a job; in the list job->process. */
struct gsas_process {
	struct gsas_process *next;
	uint64_t id;			/* hal_peer_process() */
	int fd;				/* readable: the process has ended */
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

/* Remove all processes that have ended. */
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
	/* when their number has doubled, so that ended ones do not pile up */
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

/* Processor time of this thread in ns. Unlike the clock it does not advance
 * while other processes run, so they do not change what a request finds. */
static uint64_t thread_ns(void)
{
	struct timespec ts = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void gsas_census_begin(struct gsas_census *census)
{
	census->request++;
	census->spent = 0;
}

/* Check whether no process on the host holds the job. false as well if there is
 * no time left for this. */
static bool job_unheld(struct gsas_census *census, const struct gsas_job *job)
{
	uint64_t begin;
	bool held;

	if (census->held == NULL)
		return true;
	if (census->spent >= CENSUS_NS)
		return false;
	begin = thread_ns();
	held = census->held(census->held_ctx, job->user->uid, job->key);
	census->spent += thread_ns() - begin;
	return !held;
}

bool gsas_job_lives(struct gsas_census *census, struct gsas_job *job)
{
	if (gsas_job_present(job))
		return true;
	if (job->checked != census->request) {
		job->checked = census->request;
		job->unheld = job_unheld(census, job);
	}
	return !job->unheld;
}

void gsas_job_end_processes(struct gsas_job *job)
{
	while (job->process != NULL)
		process_drop(job, &job->process);
}
