/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_work.h - what takes long, out of the service's way: one thread that does
 * pieces of work in order, while who gave them goes on.
 */
#ifndef GSAS_WORK_H
#define GSAS_WORK_H

#include <stdbool.h>

struct gsas_work {
	struct gsas_work *next;
	void (*run)(struct gsas_work *work);	/* by the worker: touches only
						 * what the work names */
	void (*done)(struct gsas_work *work);	/* by who collects it */
};

struct gsas_worker;

/* wake(ctx): called by the worker after each piece, e.g. to end a sleep; NULL:
 * not wanted. threaded false: run() is called by gsas_worker_give(), for tests.
 * The thread is started before the first piece. 0, -FI_ENOMEM. */
int gsas_worker_new(bool threaded, void (*wake)(void *ctx), void *ctx,
		    struct gsas_worker **worker);

/* What was given is done to its end and collected; what done() gives, too. */
void gsas_worker_free(struct gsas_worker *worker);

/* Something is to be given: 0; -FI_EAGAIN: there is no thread to be had. */
int gsas_worker_ready(struct gsas_worker *worker);

/* After that one was ready, once. */
void gsas_worker_give(struct gsas_worker *worker, struct gsas_work *work);

/* Call done() of what is over, in the order it was given. Returns whether
 * something is still under way. */
bool gsas_worker_collect(struct gsas_worker *worker);

#endif /* GSAS_WORK_H */
