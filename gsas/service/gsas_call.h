/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_call.h - a request that is being served, its client and its answer
 * (gsas_call.c). Private to the service core and a test of it; each file calls
 * files further down only:
 *
 *	gsas_service.c		clients, dispatch, the paper's reads and writes
 *	gsas_extend.c		the other operations from 64 up
 *	gsas_serve_work.c	ALLOC, QUEUE_NEW and FORK, which may be answered
 *				later; FREE
 *	gsas_serve_queue.c	queues and grants
 *	gsas_call.c		checks of an address, answers
 */
#ifndef GSAS_CALL_H
#define GSAS_CALL_H

#include <stdatomic.h>

#include <rdma/fi_errno.h>

#include "op/gsas_op.h"
#include "service/gsas_io.h"
#include "service/gsas_queue.h"
#include "service/gsas_work.h"
#include "util/unm_list.h"

#define GSAS_GROUPS_MAX	64		/* groups of a client */
#define GSAS_DEFERRED_MAX 255		/* deferred requests of a client */
#define GSAS_OPENS_MAX	1024		/* queues a client has open */
#define GSAS_OPEN_BUCKETS 256		/* 2^n */

struct gsas_rule;
struct gsas_open;			/* a queue that a client has open */

/* Workers, that is threads, for work that takes long. There is one for each
 * resource on which work may block, so work for one resource never waits for
 * another. */
enum gsas_worker_kind {
	GSAS_WORK_MEMORY,		/* allocates memory */
	GSAS_WORK_RELEASE,		/* frees memory */
	GSAS_WORK_PROCESS,		/* opens files, starts programs */
	GSAS_WORKERS,
};

/* A service; gsas_service_new() makes it. Only its thread uses it, except that
 * workers read attr, change releasing and call gsas_region_fill(). */
struct gsas_service {
	struct gsas_service_attr attr;
	const struct gsas_rule *rules;	/* by opcode */
	/* gsas_service_undo(), for files further down */
	void (*undo)(struct gsas_service *service,
		     const struct gsas_answer *answer);
	struct gsas_pages *pages;
	struct gsas_worker *worker[GSAS_WORKERS];
	uint64_t deferred;		/* pieces of work not yet done */
	_Atomic uint32_t releasing;	/* of these: memory to be freed */
	struct unm_list clients;
	struct unm_list blocked;	/* clients with answers not yet sent */
	struct unm_list queues;		/* all queues: struct served_queue */
	struct unm_list to_check;	/* queues with a change to handle */
	struct unm_list waiting;	/* queues that wait until words are
					 * taken out */
	struct unm_list abandoned;	/* regions that ended clients owned */
	uint64_t numbers;		/* the next one of NUMBERS */
	uint64_t numbers_given;		/* how many NUMBERS has given */
	uint8_t *stage;			/* GSAS_BULK_MAX bytes, in use during
					 * one request */
	struct gsas_stat stat;
};

/* A client, from gsas_client_new() to gsas_client_free(). Only the thread of
 * the service uses it. */
struct gsas_client {
	struct gsas_service *service;
	void *io_ctx;			/* argument of struct gsas_io */
	struct gsas_job *job;		/* NULL: did not join yet */
	struct unm_list unanswered;	/* deferred requests that are done */
	struct gsas_open *recent;	/* last result of open_find() */
	struct gsas_open **opens;	/* hash by address, NULL: none yet */
	uint32_t open_count;
	bool keeps;			/* kept has not been sent yet */
	struct gsas_answer kept;

	/* deferred requests, in lists by their state; then unanswered */
	struct unm_list works;		/* given to a worker */
	struct unm_list waits[GSAS_WORKERS];	/* not yet given to a worker */
	uint32_t given[GSAS_WORKERS];	/* number in works, by worker */
	uint32_t work_count;		/* number in waits, works, unanswered */
	struct unm_list to_notify;	/* gsas_open with grants not yet sent */
	struct unm_list sleeps;		/* gsas_sleep: QUEUE_WAIT under way */
	struct unm_list woken;		/* gsas_sleep: ended, to be answered */
	uint32_t sleep_count;		/* number in both lists */
	struct unm_list blocked;	/* in service->blocked */
	struct unm_list owned;		/* its regions with GSAS_ATTR_OWNED */
	struct unm_list list;		/* in service->clients */

	uint64_t identity;
	uint32_t uid;
	uint32_t logged;		/* errors of which a refusal was logged,
					 * a bit each */
	uint64_t failed;		/* posted requests, since the last
					 * fence */
	uint64_t first_error;		/* of the first of these */
	uint32_t group_count;
	struct gsas_group *group[GSAS_GROUPS_MAX];
};

/* ---- A request being served ---------------------------------------------- */

/* On the stack of gsas_service_request(). */
struct gsas_call {
	struct gsas_client *client;
	const struct gsas_rule *rule;
	uint8_t opcode, tag;
	uint64_t address;		/* without the bits that are ignored */
	uint64_t arg[2];

	/* set by gsas_call_find() */
	uint8_t *memory;		/* of the byte at address */
	uint64_t left;			/* bytes to the end of the region */
	struct gsas_region *region;

	uint64_t result, more;		/* second and third word of the answer,
					 * if there is no error */
};

/* Not an error: the request is deferred and will be answered later. */
#define GSAS_DEFERRED	((enum gsas_error)GSAS_ERRORS)

typedef enum gsas_error (*gsas_serve_fn)(struct gsas_call *call);

/* Checked before gsas_rule.serve() is called */
enum gsas_rule_flag {
	GSAS_RULE_ARG1		= 1,	/* the address is in argument 1 */
	GSAS_RULE_FIND		= 2,	/* the client may access the address */
	GSAS_RULE_PLAIN		= 4,	/* the region is no queue and has
					 * gsas_rule.bytes there */
	GSAS_RULE_GIVES		= 8,	/* the result is the value before */
	GSAS_RULE_UNJOINED	= 16,	/* needs no job */
	GSAS_RULE_ORDERED	= 32,	/* waits until all deferred requests of
					 * the client are answered */
};

/* How the requests of an opcode are served. */
struct gsas_rule {
	const char *name;		/* NULL: there is no such operation */
	gsas_serve_fn serve;
	uint8_t flags;			/* enum gsas_rule_flag */
	uint8_t ignored;		/* low bits of the address */
	uint16_t bytes;			/* see GSAS_RULE_PLAIN */
	uint8_t op, type;		/* enum gsas_op, gsas_type */
};

/*
 * Find call->address, and check that the client may access its region. Requests
 * find regions by this function only, so none skips the check.
 */
enum gsas_error gsas_call_find(struct gsas_call *call);

/* Do len bytes from the address on lie in the region? */
static inline enum gsas_error gsas_call_span(const struct gsas_call *call,
					     uint64_t len)
{
	return len <= call->left ? GSAS_OK : GSAS_E_ARGUMENT;
}

static inline bool gsas_region_mapped(const struct gsas_region *region)
{
	return (region->attr & GSAS_ATTR_MAPPED) != 0;
}

/* May the service execute an operation on this type at the address? If clients
 * can map the region, only if they may execute it directly too. */
static inline enum gsas_error gsas_call_direct(const struct gsas_call *call,
					       enum gsas_type type)
{
	return !gsas_region_mapped(call->region) ||
	       gsas_op_direct(type, call->address) ? GSAS_OK : GSAS_E_MAPPED;
}

/* *at: len bytes at off of the service's space, which the client stored. */
enum gsas_error gsas_call_in(const struct gsas_call *call, uint64_t off,
			     uint64_t len, const void **at);

/* Check that len bytes of the answer fit at off in the client's space. */
enum gsas_error gsas_call_room(const struct gsas_call *call, uint64_t off,
			       uint64_t len);

/* Store len bytes there, after the check. */
static inline void gsas_call_out(const struct gsas_call *call, uint64_t off,
				 const void *src, uint64_t len)
{
	call->client->service->attr.io.out(call->client->io_ctx, off, src, len);
}

/* ---- Answers ------------------------------------------------------------- */

/* Send an answer. false: there are no credits, try again later. */
static inline bool gsas_client_answer(struct gsas_client *client,
				      const struct gsas_answer *answer)
{
	int ret = client->service->attr.io.answer(client->io_ctx, answer);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret != 0)			/* the client has ended */
		client->service->undo(client->service, answer);
	return true;
}

/* The client has answers or notifications to be sent: gsas_service_progress()
 * sends them. */
void gsas_client_block(struct gsas_client *client);

/* The client does not take its answers: its requests are not served. */
static inline bool gsas_client_stalled(const struct gsas_client *client)
{
	return client->keeps || !unm_list_empty(&client->unanswered);
}

/* Count an answer, and log it if it refuses access. Returns whether to send it:
 * a posted request is not answered, and its error is kept for the next
 * fence. */
bool gsas_client_count(struct gsas_client *client,
		       const struct gsas_answer *answer, uint64_t address);

#endif /* GSAS_CALL_H */
