/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_service.h - the atomic service of a board [D 2.2.4, 2.2.6]: decode,
 * check, translate, apply, answer. Knows no HAL: what comes and goes is in the
 * hands of its caller, gsasd, or a test.
 *
 * Everything in a request was written by a stranger, but for its identity. A
 * request is answered with an error or done; it is never dropped, and none
 * takes long: what does is given to a worker and answered later, so that nobody
 * waits for somebody else's.
 *
 * One thread at a time, except as said.
 */
#ifndef GSAS_SERVICE_H
#define GSAS_SERVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "service/gsas_pages.h"
#include "common/gsas_pkt.h"

#define GSAS_BULK_MAX	(UINT64_C(64) << 10)	/* bytes of a GET or PUT; also
						 * bounded by the space */
#define GSAS_PATH_MAX	4000			/* of a fork, with its 0 */

struct gsas_service;
struct gsas_client;

/* An answer: a packet's payload under the tag and opcode of its request; under
 * opcode 0 if there is no such operation. */
struct gsas_answer {
	uint8_t opcode, tag;
	struct gsas_response response;
	uint64_t more;			/* third word */
};

/* How a client is reached. ctx is the client's (gsas_client_new). */
struct gsas_io {
	/* len bytes at off of what it stored here, or NULL: not in the space */
	const void *(*in)(void *ctx, uint64_t off, uint64_t len);
	/* May out() store len bytes at off of its receive space? Asked before
	 * anything is changed. 0; -FI_EINVAL: not in the space; -FI_ENOMEM. */
	int (*room)(void *ctx, uint64_t off, uint64_t len);
	/* Store what there is room() for, to be there before the next answer */
	void (*out)(void *ctx, uint64_t off, const void *src, uint64_t len);
	/* 0, or -FI_EAGAIN: not now; any other error: it has gone */
	int (*answer)(void *ctx, const struct gsas_answer *answer);
	/* NULL, or hal_peer_process() */
	int (*process)(void *ctx, uint64_t *id);
};

/* What to start for a GSAS_FORK; strings are the service's own copies. */
struct gsas_spawn {
	const char *path;
	uint64_t argument;
	uint64_t job[2];
	uint32_t uid;
};

struct gsas_service_attr {
	struct gsas_pages_attr pages;
	struct gsas_io io;
	/* By the worker thread. GSAS_OK, and the process's number; or
	 * GSAS_E_PATH, GSAS_E_EXEC, GSAS_E_MEMORY, GSAS_E_QUOTA. */
	enum gsas_error (*spawn)(void *ctx, const struct gsas_spawn *spawn,
				 uint64_t *pid);	/* NULL: no forks */
	void *spawn_ctx;
	/* one line about a refusal of access, once per client and kind */
	void (*log)(const char *line);
	void (*wake)(void *ctx);	/* a worker has finished something: by
					 * the worker; NULL: not wanted */
	void *wake_ctx;
	bool threaded;			/* a worker thread of its own */
};

/* 0; -FI_ENOMEM, -FI_EINVAL. */
int gsas_service_new(const struct gsas_service_attr *attr,
		     struct gsas_service **service);
void gsas_service_free(struct gsas_service *service);	/* with its clients */

/* An interface that opened a connection to us. identity and uid are the trusted
 * side's word. 0, -FI_ENOMEM. */
int gsas_client_new(struct gsas_service *service, uint64_t identity,
		    uint32_t uid, void *io_ctx, struct gsas_client **client);

/* It ended, or its process did. Its work under way is undone when it is over;
 * its pages stay, its grants go back. */
void gsas_client_free(struct gsas_client *client);

/*
 * Serve one request. head is as received, w its three words, each read once.
 * false: this client has answers that it does not take, or this is a fence and
 * something before it is not done: leave the request where it is, and come
 * again after gsas_service_progress(). Others go on.
 */
bool gsas_service_request(struct gsas_client *client, uint64_t head,
			  const uint64_t w[GSAS_WORDS]);

/*
 * Answers that wait, works that are over, grants of queues. Cheap if there is
 * nothing. Call it when a work's end was told or answer() has room again.
 * Returns whether to come again by clock, as nobody tells.
 */
bool gsas_service_progress(struct gsas_service *service);

/* Nobody is connected, nothing under way and no page is held. */
bool gsas_service_empty(const struct gsas_service *service);

/* Counters; sleeps and wakes are the caller's to count. */
struct gsas_stat *gsas_service_stat(struct gsas_service *service);

#endif /* GSAS_SERVICE_H */
