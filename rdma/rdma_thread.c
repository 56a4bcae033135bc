/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_thread.c - the submitter thread [D 3.1.2]: advances transfers while
 * there are any, and makes call-backs, without the lock. It blocks the
 * signals that the program's own threads handle, but not those of mistakes in
 * a call-back.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "rdma_engine.h"
#include "rdma_lib.h"
#include "rdma_thread.h"

/* Make the first call-back. */
static void call_back(struct rdma *r)
{
	struct rdma_callback *callback =
		unm_container(unm_list_pop(&r->callbacks),
			      struct rdma_callback, list);

	pthread_mutex_unlock(r->lock);
	callback->comp_cb(callback->cb_arg);
	free(callback);
	pthread_mutex_lock(r->lock);
}

static void *submitter(void *arg)
{
	struct rdma *r = arg;
	unsigned int idle = 0;

	pthread_mutex_lock(r->lock);
	while (!r->stop) {
		idle = rdma_engine_progress(r) ? 0 : idle + 1;
		rdma_engine_signal(r);
		if (!unm_list_empty(&r->callbacks)) {
			call_back(r);
		} else if (r->live == 0) {
			pthread_cond_wait(&r->wake, r->lock);
			idle = 0;
		} else {
			pthread_mutex_unlock(r->lock);
			rdma_pause(idle);
			pthread_mutex_lock(r->lock);
		}
	}
	pthread_mutex_unlock(r->lock);
	return NULL;
}

int rdma_thread_begin(struct rdma *r)
{
	static const int mistakes[] = {
		SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP,
	};
	sigset_t blocked, old;
	int ret;

	if (r->threaded)
		return 0;
	sigfillset(&blocked);
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		sigdelset(&blocked, mistakes[i]);
	pthread_sigmask(SIG_BLOCK, &blocked, &old);
	ret = pthread_create(&r->thread, NULL, submitter, r);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	r->threaded = ret == 0;
	return ret == 0 ? 0 : -ENOMEM;
}

void rdma_thread_end(struct rdma *r)
{
	if (!r->threaded)
		return;
	r->stop = true;
	pthread_cond_signal(&r->wake);
	pthread_mutex_unlock(r->lock);
	pthread_join(r->thread, NULL);
	pthread_mutex_lock(r->lock);
}
