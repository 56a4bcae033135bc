/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_io.h - what the service of a board exchanges with its caller,
 * gsas_board.c or a test: answers, access to clients, programs to start,
 * attributes. Structures only.
 */
#ifndef GSAS_IO_H
#define GSAS_IO_H

#include <stdbool.h>
#include <stdint.h>

#include "common/gsas_pkt.h"
#include "service/gsas_pages.h"

#define GSAS_BULK_MAX	(UINT64_C(64) << 10)	/* bytes of a GET or PUT; also
						 * bounded by the space */
#define GSAS_PATH_MAX	4000			/* bytes of a path of FORK, with
						 * the final 0 */

/* An answer: the payload of a packet with the tag and opcode of the request;
 * opcode 0: there is no such operation. */
struct gsas_answer {
	uint8_t opcode, tag;
	struct gsas_response response;
	uint64_t more;			/* third word */
};

/* The connection to a client. ctx is the io_ctx of gsas_client_new(). */
struct gsas_io {
	/* *at: the len bytes at off of the service's receive space, which the
	 * client stored there. 0; -FI_EINVAL: not in the space; -FI_ENOMEM: the
	 * client did not allocate them or they were swapped out, and there is
	 * no memory for them. */
	int (*in)(void *ctx, uint64_t off, uint64_t len, const void **at);
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

#endif /* GSAS_IO_H */
