/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_work.h - a work queue with one worker thread: it runs work that takes
 * long in the order in which it was queued, while the service goes on.
 *
 * All functions are called by the thread that owns the worker.
 */
#ifndef GSAS_WORK_H
#define GSAS_WORK_H

#include <stdbool.h>

/* A piece of work, embedded in a structure of the caller. The worker owns it
 * from gsas_worker_give() until it calls done(), which may free it. */
struct gsas_work {
	struct gsas_work *next;
	void (*run)(struct gsas_work *work);	/* called by the worker thread;
						 * uses nothing but the data to
						 * which the work refers */
	void (*done)(struct gsas_work *work);	/* called by the owner, in
						 * gsas_worker_collect() */
};

struct gsas_worker;

/*
 * Make a worker. wake(ctx) is called by the worker thread after each piece of
 * work, to end a sleep of the owner; NULL: no call. threaded false, for tests:
 * gsas_worker_give() calls run() itself. The thread is started by the first
 * gsas_worker_ready(). 0, -FI_ENOMEM.
 */
int gsas_worker_new(bool threaded, void (*wake)(void *ctx), void *ctx,
		    struct gsas_worker **worker);

/* Run and collect all queued work, also what done() queues meanwhile; then end
 * the thread and free the worker. */
void gsas_worker_free(struct gsas_worker *worker);

/* Call it before each gsas_worker_give(): starts the thread if there is none.
 * 0; -FI_EAGAIN: the system has no thread. */
int gsas_worker_ready(struct gsas_worker *worker);

/* Queue work. Only after gsas_worker_ready() has returned 0 once. */
void gsas_worker_give(struct gsas_worker *worker, struct gsas_work *work);

/* Call done() of all finished work, in the order in which it was queued.
 * Returns whether work is still queued or running. */
bool gsas_worker_collect(struct gsas_worker *worker);

#endif /* GSAS_WORK_H */
