/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_serve_work.h - the operations ALLOC, QUEUE_NEW, FREE and FORK, and
 * requests that are answered later (gsas_serve_work.c).
 */
#ifndef GSAS_SERVE_WORK_H
#define GSAS_SERVE_WORK_H

#include "service/gsas_call.h"

enum gsas_error gsas_serve_alloc(struct gsas_call *call);
enum gsas_error gsas_serve_queue_new(struct gsas_call *call);
enum gsas_error gsas_serve_free(struct gsas_call *call);
enum gsas_error gsas_serve_fork(struct gsas_call *call);

/* Free a region, and its queue if it is one. */
void gsas_service_free_region(struct gsas_service *service,
			      struct gsas_region *region);

/* The client ends: the regions that it owns (GSAS_ATTR_OWNED) are abandoned. */
void gsas_client_abandon(struct gsas_client *client);
/* Free a bounded number of abandoned regions. Returns whether there are
 * more. */
bool gsas_service_free_abandoned(struct gsas_service *service);

/* Answer the deferred requests that are done. false: there were no credits for
 * all answers. */
bool gsas_client_answer_deferred(struct gsas_client *client);

/* The client ends: cancel its deferred requests; those that run are undone when
 * they are done. */
void gsas_client_cancel_works(struct gsas_client *client);

/* The client ended before it received an answer: free the memory that the
 * request allocated, because no process knows its address. */
void gsas_service_undo(struct gsas_service *service,
		       const struct gsas_answer *answer);

#endif /* GSAS_SERVE_WORK_H */
