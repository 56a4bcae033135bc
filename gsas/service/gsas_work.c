/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_work.c - a work queue: a list of work to do, a list of finished work,
 * and a thread between them. Not a hot path.
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "service/gsas_work.h"

struct gsas_list {
	struct gsas_work *first, **end;
};

struct gsas_worker {
	pthread_mutex_t lock;
	pthread_cond_t given;		/* todo or stop has changed */
	struct gsas_list todo, over;	/* under the lock: to be run; run */
	bool stop;			/* under the lock: the thread ends when
					 * todo is empty */
	void (*wake)(void *ctx);
	void *ctx;
	/* only the owner uses these */
	unsigned long pending;		/* given and not collected */
	bool threaded, started;
	pthread_t thread;
};

static void gsas_list_clear(struct gsas_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

static void gsas_list_put(struct gsas_list *list, struct gsas_work *work)
{
	work->next = NULL;
	*list->end = work;
	list->end = &work->next;
}

static struct gsas_work *gsas_list_take(struct gsas_list *list)
{
	struct gsas_work *work = list->first;

	if (work == NULL)
		return NULL;
	list->first = work->next;
	if (list->first == NULL)
		list->end = &list->first;
	return work;
}

/* Run a piece of work. Called with the lock, which is released meanwhile. */
static void gsas_worker_do(struct gsas_worker *worker, struct gsas_work *work)
{
	pthread_mutex_unlock(&worker->lock);
	work->run(work);
	pthread_mutex_lock(&worker->lock);
	gsas_list_put(&worker->over, work);
	if (worker->wake == NULL)
		return;
	pthread_mutex_unlock(&worker->lock);
	worker->wake(worker->ctx);
	pthread_mutex_lock(&worker->lock);
}

static void *gsas_worker_main(void *arg)
{
	struct gsas_worker *worker = arg;
	struct gsas_work *work;

	pthread_mutex_lock(&worker->lock);
	for (;;) {
		work = gsas_list_take(&worker->todo);
		if (work != NULL)
			gsas_worker_do(worker, work);
		else if (worker->stop)
			break;
		else
			pthread_cond_wait(&worker->given, &worker->lock);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

/* Start the thread, with all signals blocked: the main thread handles them. */
static int gsas_worker_start(struct gsas_worker *worker)
{
	sigset_t all, was;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	ret = pthread_create(&worker->thread, NULL, gsas_worker_main, worker);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	worker->started = ret == 0;
	return ret ? -FI_EAGAIN : 0;
}

int gsas_worker_new(bool threaded, void (*wake)(void *ctx), void *ctx,
		    struct gsas_worker **worker)
{
	struct gsas_worker *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -FI_ENOMEM;
	if (pthread_mutex_init(&w->lock, NULL))
		goto free_worker;
	if (pthread_cond_init(&w->given, NULL))
		goto destroy_lock;
	gsas_list_clear(&w->todo);
	gsas_list_clear(&w->over);
	w->threaded = threaded;
	w->wake = wake;
	w->ctx = ctx;
	*worker = w;
	return 0;

destroy_lock:
	pthread_mutex_destroy(&w->lock);
free_worker:
	free(w);
	return -FI_ENOMEM;
}

void gsas_worker_free(struct gsas_worker *worker)
{
	if (worker == NULL)
		return;
	if (worker->started) {
		pthread_mutex_lock(&worker->lock);
		worker->stop = true;
		pthread_cond_signal(&worker->given);
		pthread_mutex_unlock(&worker->lock);
		pthread_join(worker->thread, NULL);
	}
	worker->threaded = false;	/* run what done() queues at once */
	while (gsas_worker_collect(worker))
		;
	pthread_cond_destroy(&worker->given);
	pthread_mutex_destroy(&worker->lock);
	free(worker);
}

int gsas_worker_ready(struct gsas_worker *worker)
{
	if (!worker->threaded || worker->started)
		return 0;
	return gsas_worker_start(worker);
}

void gsas_worker_give(struct gsas_worker *worker, struct gsas_work *work)
{
	worker->pending++;
	pthread_mutex_lock(&worker->lock);
	if (worker->threaded) {
		gsas_list_put(&worker->todo, work);
		pthread_cond_signal(&worker->given);
	} else {
		gsas_worker_do(worker, work);
	}
	pthread_mutex_unlock(&worker->lock);
}

bool gsas_worker_collect(struct gsas_worker *worker)
{
	struct gsas_work *work, *next;

	if (worker->pending == 0)
		return false;
	pthread_mutex_lock(&worker->lock);
	work = worker->over.first;
	gsas_list_clear(&worker->over);
	pthread_mutex_unlock(&worker->lock);
	for (; work != NULL; work = next) {
		next = work->next;	/* done() may free the work */
		worker->pending--;
		work->done(work);
	}
	return worker->pending > 0;
}
