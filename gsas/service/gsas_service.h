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

#include "service/gsas_pages.h"
#include "common/gsas_pkt.h"

#define GSAS_BULK_MAX	(UINT64_C(64) << 10)	/* bytes of a GET or PUT; also
						 * bounded by the space */
#define GSAS_PATH_MAX	4000			/* bytes of a path of FORK, with
						 * the final 0 */

struct gsas_service;
struct gsas_client;

/* An answer: the payload of a packet with the tag and opcode of the request;
 * opcode 0: there is no such operation. */
struct gsas_answer {
	uint8_t opcode, tag;
	struct gsas_response response;
	uint64_t more;			/* third word */
};

/* The connection to a client. ctx is the io_ctx of gsas_client_new(). */
struct gsas_io {
	/* The len bytes at off of the service's receive space, which the client
	 * stored there; NULL: not in the space */
	const void *(*in)(void *ctx, uint64_t off, uint64_t len);
	/* May out() store len bytes at off of the client's receive space? It is
	 * called before a request changes anything. 0; -FI_EINVAL: not in the
	 * space; -FI_ENOMEM. */
	int (*room)(void *ctx, uint64_t off, uint64_t len);
	/* Store len bytes, before the next answer. room() returned 0. */
	void (*out)(void *ctx, uint64_t off, const void *src, uint64_t len);
	/* Send an answer. 0; -FI_EAGAIN: no credits; any other error: the
	 * client has ended */
	int (*answer)(void *ctx, const struct gsas_answer *answer);
	/* hal_peer_process(), or NULL */
	int (*process)(void *ctx, uint64_t *id);
};

/* The program to start for a FORK. The service owns the copy of the path. */
struct gsas_spawn {
	const char *path;
	uint64_t argument;
	uint64_t job[2];		/* key of the client's job */
	uint32_t uid;			/* user of the client */
};

struct gsas_service_attr {
	struct gsas_pages_attr pages;
	struct gsas_io io;
	/* Start a program; called by a worker thread. GSAS_OK: *pid is the
	 * process id; or GSAS_E_PATH, GSAS_E_EXEC, GSAS_E_MEMORY,
	 * GSAS_E_QUOTA. NULL: FORK is refused. */
	enum gsas_error (*spawn)(void *ctx, const struct gsas_spawn *spawn,
				 uint64_t *pid);
	void *spawn_ctx;
	/* Log a line about refused access, once for each client and error */
	void (*log)(const char *line);
	void (*wake)(void *ctx);	/* a worker calls it when work is done;
					 * NULL: no call */
	void *wake_ctx;
	bool threaded;			/* false in tests: no worker threads */
};

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
