/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_presence.c - the processes of a job that joined it on this board and
 * still live. A connection ends with its thread, but the pages of a job become
 * orphans only when no process of the job lives. A job has a descriptor for
 * each process, which becomes readable when the process ends. A job that has
 * pages may outlast its processes, so each process that joins any job, and each
 * client that ends, lets a few processes be checked in turn: descriptors of
 * ended ones must not pile up, because the service accepts no client when it
 * has no descriptor left. Whether processes elsewhere on the host hold a job is
 * checked for a bounded time per request.
 */
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "service/gsas_presence.h"

#define SWEEP		4		/* processes of a sweep */
#define CENSUS_NS	1000000		/* of processor time for the checks by
					 * one request; a check takes a
					 * microsecond, or with locks over many
					 * jobs a thousand */

/* A process that joined a job. */
struct gsas_process {
	struct gsas_job *job;
	struct unm_list link;		/* in job->process */
	struct unm_list all;		/* in gsas_census.processes */
	uint64_t id;			/* hal_peer_process() */
	int fd;				/* readable: the process has ended */
};

static bool process_ended(const struct gsas_process *process)
{
	struct pollfd pfd = { .fd = process->fd, .events = POLLIN };

	return poll(&pfd, 1, 0) != 0;
}

static void process_drop(struct gsas_process *process)
{
	process->job->processes--;
	unm_list_remove(&process->link);
	unm_list_remove(&process->all);
	close(process->fd);
	free(process);
}

void gsas_census_sweep(struct gsas_census *census)
{
	struct unm_list *node;

	for (int i = 0; i < SWEEP &&
	     (node = unm_list_pop(&census->processes)) != NULL; i++) {
		struct gsas_process *process =
			unm_container(node, struct gsas_process, all);

		if (process_ended(process))
			process_drop(process);
		else
			unm_list_append(&census->processes, node);
	}
}

int gsas_job_process(struct gsas_census *census, struct gsas_job *job,
		     uint64_t id, int fd)
{
	struct gsas_process *process;

	unm_list_for_each(node, &job->process) {
		process = unm_container(node, struct gsas_process, link);
		if (process->id == id && !process_ended(process)) {
			close(fd);
			return 0;
		}
	}
	gsas_census_sweep(census);
	process = calloc(1, sizeof(*process));
	if (process == NULL) {
		close(fd);
		return -FI_ENOMEM;
	}
	process->job = job;
	process->id = id;
	process->fd = fd;
	job->processes++;
	unm_list_append(&job->process, &process->link);
	unm_list_append(&census->processes, &process->all);
	return 0;
}

bool gsas_job_present(struct gsas_job *job)
{
	if (job->clients > 0)
		return true;
	unm_list_for_each_safe(node, tmp, &job->process) {
		struct gsas_process *process =
			unm_container(node, struct gsas_process, link);

		if (!process_ended(process))
			return true;
		process_drop(process);
	}
	return false;
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
	while (!unm_list_empty(&job->process))
		process_drop(unm_container(job->process.next,
					   struct gsas_process, link));
}
