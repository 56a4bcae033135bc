/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_service.h - the atomic service of a board [D 2.2.4, 2.2.6]: decodes
 * requests, checks them, translates addresses, executes operations, answers. It
 * does not use the HAL: the caller, gsas_board.c or a test, receives requests
 * and sends answers.
 *
 * All of a request but its identity is untrusted. Each request is done or
 * answered with an error; none is dropped. Serving a request never takes long,
 * so that no client delays another: work that takes long is done by a worker
 * thread, and the request is answered later.
 *
 * One thread at a time, except where stated.
 */
#ifndef GSAS_SERVICE_H
#define GSAS_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "service/gsas_io.h"

struct gsas_client;
struct gsas_service;

/* 0; -FI_ENOMEM, -FI_EINVAL. */
int gsas_service_new(const struct gsas_service_attr *attr,
		     struct gsas_service **service);
/* Free the service and its clients. */
void gsas_service_free(struct gsas_service *service);

/* Add a client: an interface that has connected. The trusted side (the HAL)
 * vouches for identity and uid. 0, -FI_ENOMEM. */
int gsas_client_new(struct gsas_service *service, uint64_t identity,
		    uint32_t uid, void *io_ctx, struct gsas_client **client);

/* The interface or its process has ended. Deferred requests are undone when
 * they are done. The pages stay allocated, because they belong to the job. The
 * windows in queues are released. */
void gsas_client_free(struct gsas_client *client);

/*
 * Serve one request: head as received, and its three words, each read once.
 * false: the client does not take its answers, or the request is a fence and a
 * request before it is not done. Then keep the request, and call again after
 * gsas_service_progress(). Requests of other clients can be served meanwhile.
 */
bool gsas_service_request(struct gsas_client *client, uint64_t head,
			  const uint64_t w[GSAS_WORDS]);

/*
 * Send answers that are pending, finish deferred requests, grant words of
 * queues. Cheap if there is nothing to do. Call it after wake(), and when
 * answer() may have credits again. Returns whether to call it periodically,
 * because it waits for something that causes no event.
 */
bool gsas_service_progress(struct gsas_service *service);

/* Is no client connected, no request under way and no page allocated? */
bool gsas_service_empty(const struct gsas_service *service);

/* The counters. The caller counts sleeps and wakes. */
struct gsas_stat *gsas_service_stat(struct gsas_service *service);

#endif /* GSAS_SERVICE_H */
