/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_serve.h - inside the service core: what its files share, and nobody else
 * includes.
 *
 *	gsas_service.c		clients, dispatch, answers, the paper's reads
 *				and writes
 *	gsas_serve_work.c	what may be answered later: ALLOC, FORK, FREE
 *	gsas_serve_queue.c	queues and grants
 *	gsas_extend.c		the other operations from 64 up
 */
#ifndef GSAS_SERVE_H
#define GSAS_SERVE_H

#include <stdatomic.h>

#include <rdma/fi_errno.h>

#include "op/gsas_op.h"
#include "service/gsas_queue.h"
#include "service/gsas_service.h"
#include "service/gsas_work.h"
#include "util/unm_list.h"

#define GSAS_GROUPS_MAX	64		/* of a client */
#define GSAS_DEFERRED_MAX 255		/* deferred requests of a client */
#define GSAS_OPENS_MAX	1024		/* queues a client has open */
#define GSAS_OPEN_BUCKETS 256		/* 2^n */

struct gsas_open;			/* a queue and one that enqueues */

/* What takes long, by what it may hang on: none waits for another. */
enum gsas_worker_kind {
	GSAS_WORK_MEMORY,		/* the system's memory, to be had ... */
	GSAS_WORK_TRASH,		/* ... and given back */
	GSAS_WORK_PROCESS,		/* files of programs */
	GSAS_WORKERS,
};

struct gsas_service {
	struct gsas_service_attr attr;
	struct gsas_pages *pages;
	struct gsas_worker *worker[GSAS_WORKERS];
	uint64_t deferred;			/* works under way */
	_Atomic uint32_t leaving;	/* of these, memory to be given back */
	struct unm_list clients;
	struct unm_list blocked;	/* clients with answers not yet sent */
	struct unm_list queues;		/* all of them */
	struct unm_list to_check;	/* queues with a change to handle */
	struct unm_list waiting;	/* those that wait for words taken */
	uint8_t *stage;			/* GSAS_BULK_MAX bytes */
	struct gsas_stat stat;
};

struct gsas_client {
	struct gsas_service *service;
	void *io_ctx;
	struct gsas_job *job;		/* NULL: did not join yet */
	struct unm_list unanswered;	/* deferred requests that are done */
	struct gsas_open *recent;	/* the one that was found last */
	struct gsas_open **opens;	/* hash by address, NULL: none yet */
	uint32_t open_count;
	bool keeps;			/* kept was not taken yet */
	struct gsas_answer kept;

	struct unm_list works;		/* given to a worker */
	struct unm_list waits[GSAS_WORKERS];	/* to be given after those */
	uint32_t given[GSAS_WORKERS];	/* works */
	uint32_t work_count;		/* those, waiting and late ones */
	struct unm_list to_notify;	/* gsas_open with grants not yet sent */
	struct unm_list sleeps;		/* gsas_sleep: for words to be put in */
	struct unm_list woken;		/* ... that ended, not yet answered */
	uint32_t sleep_count;		/* of both lists */
	struct unm_list blocked;		/* of the service's list */
	struct unm_list list;

	uint64_t identity;
	uint32_t uid;
	uint32_t logged;		/* bit per error */
	uint64_t failed;		/* posted, since the last fence */
	uint64_t first_error;		/* of those */
	uint32_t group_count;
	struct gsas_group *group[GSAS_GROUPS_MAX];
};

/* ---- A request being served ---------------------------------------------- */

struct gsas_call {
	struct gsas_client *client;
	const struct gsas_rule *rule;
	uint8_t opcode, tag;
	uint64_t address;		/* without the bits that are ignored */
	uint64_t arg[2];

	/* by gsas_call_find(): where that is, and how much from there on */
	uint8_t *memory;
	uint64_t left;
	struct gsas_region *region;

	uint64_t result, more;		/* the answer, if there is no error */
};

/* Not an error: a work will answer. */
#define GSAS_DEFERRED	((enum gsas_error)GSAS_ERRORS)

typedef enum gsas_error (*gsas_serve_fn)(struct gsas_call *call);

enum gsas_rule_flag {
	GSAS_RULE_ARG1		= 1,	/* the address is in argument 1 */
	GSAS_RULE_FIND		= 2,	/* it is one that the client may use */
	GSAS_RULE_PLAIN		= 4,	/* and no queue's: has "bytes" there */
	GSAS_RULE_GIVES		= 8,	/* the result is the value before */
	GSAS_RULE_UNJOINED	= 16,	/* needs no job */
	GSAS_RULE_ORDERED	= 32,	/* waits for all works before it */
};

/* What the service knows of an opcode. */
struct gsas_rule {
	const char *name;		/* NULL: there is no such operation */
	gsas_serve_fn serve;
	uint8_t flags;
	uint8_t ignored;		/* low bits of the address */
	uint16_t bytes;
	uint8_t op, type;		/* enum gsas_op, gsas_type */
};

/*
 * Find call->address, and check that the client may access its region. All
 * regions are looked up here, so nothing is done without that check.
 */
enum gsas_error gsas_call_find(struct gsas_call *call);

/* Is len in the region? */
static inline enum gsas_error gsas_call_span(const struct gsas_call *call,
					     uint64_t len)
{
	return len <= call->left ? GSAS_OK : GSAS_E_ARGUMENT;
}

static inline bool gsas_region_mapped(const struct gsas_region *region)
{
	return (region->attr & GSAS_ATTR_MAPPED) != 0;
}

/* May the service do this at the address, beside those that have it mapped? */
static inline enum gsas_error gsas_call_direct(const struct gsas_call *call,
					       enum gsas_type type)
{
	return !gsas_region_mapped(call->region) ||
	       gsas_op_direct(type, call->address) ? GSAS_OK : GSAS_E_MAPPED;
}

/* Is there room for len bytes of the answer at off in the client's space? */
enum gsas_error gsas_call_room(const struct gsas_call *call, uint64_t off,
			       uint64_t len);

static inline void gsas_call_out(const struct gsas_call *call, uint64_t off,
				 const void *src, uint64_t len)
{
	call->client->service->attr.io.out(call->client->io_ctx, off, src, len);
}

/* ---- Answers ------------------------------------------------------------- */

/* An answer that its client never got: what it alone knew of is freed. (In
 * gsas_serve_work.c) */
void gsas_service_undo(struct gsas_service *service,
		       const struct gsas_answer *answer);

/* false: not now; try again later. */
static inline bool gsas_client_answer(struct gsas_client *client,
				      const struct gsas_answer *answer)
{
	int ret = client->service->attr.io.answer(client->io_ctx, answer);

	if (ret == -FI_EAGAIN)
		return false;
	if (ret != 0)			/* it has gone */
		gsas_service_undo(client->service, answer);
	return true;
}

/* It has something to be told: gsas_service_progress() does it. */
void gsas_client_block(struct gsas_client *client);

/* It has answers that it does not take: nothing more is done for it. */
static inline bool gsas_client_stalled(const struct gsas_client *client)
{
	return client->keeps || !unm_list_empty(&client->unanswered);
}

/* Count an answer, and log it if it refuses access. Whether it is to be told:
 * of a posted request only the error is, to the next fence. */
bool gsas_client_count(struct gsas_client *client,
		       const struct gsas_answer *answer, uint64_t address);

/* ---- gsas_serve_work.c --------------------------------------------------- */

enum gsas_error gsas_serve_alloc(struct gsas_call *call);
enum gsas_error gsas_serve_free(struct gsas_call *call);
enum gsas_error gsas_serve_fork(struct gsas_call *call);

/* Memory as requested for the caller, of so many pages; quota not 0: becomes a
 * queue. GSAS_DEFERRED, or call->result is its address. */
enum gsas_error gsas_call_alloc(struct gsas_call *call, uint64_t pages,
				uint64_t attr, uint32_t quota, uint32_t buffer);

/* Free a region, and its queue if it is one. */
void gsas_service_free_region(struct gsas_service *service,
			      struct gsas_region *region);

/* Deliver what its works have answered: false, not all was taken. */
bool gsas_client_answer_deferred(struct gsas_client *client);

/* The client ends: nobody is told what its works come to. */
void gsas_client_cancel_works(struct gsas_client *client);

/* ---- gsas_serve_queue.c -------------------------------------------------- */

enum gsas_error gsas_serve_queue_new(struct gsas_call *call);
enum gsas_error gsas_serve_queue_open(struct gsas_call *call);
enum gsas_error gsas_serve_queue_close(struct gsas_call *call);
enum gsas_error gsas_serve_enqueue(struct gsas_call *call);
enum gsas_error gsas_serve_dequeue(struct gsas_call *call);
enum gsas_error gsas_serve_queue_wait(struct gsas_call *call);

/* A new region becomes a queue. */
enum gsas_error gsas_region_make_queue(struct gsas_service *service,
				       struct gsas_region *region,
				       uint32_t quota, uint32_t buffer);
/* It is one no more; who has it open finds it gone. */
void gsas_region_end_queue(struct gsas_region *region);

/* The memory of a region that will be a queue goes back until it is used. By
 * any thread, before the region is added. */
void gsas_region_hollow(const struct gsas_region *region);

bool gsas_client_notify_grants(struct gsas_client *client);
/* Answer those that waited for words: false, not all was taken. */
bool gsas_client_answer_woken(struct gsas_client *client);
void gsas_client_close_queues(struct gsas_client *client);

/* Grant what there is. Whether some wait for more. */
bool gsas_service_grant(struct gsas_service *service);
uint64_t gsas_service_words(const struct gsas_service *service);

/* ---- gsas_extend.c ------------------------------------------------------- */

enum gsas_error gsas_serve_join(struct gsas_call *call);
enum gsas_error gsas_serve_group(struct gsas_call *call);
enum gsas_error gsas_serve_fence(struct gsas_call *call);
enum gsas_error gsas_serve_update(struct gsas_call *call);
enum gsas_error gsas_serve_atomic(struct gsas_call *call);
enum gsas_error gsas_serve_get(struct gsas_call *call);
enum gsas_error gsas_serve_put(struct gsas_call *call);
enum gsas_error gsas_serve_map(struct gsas_call *call);
enum gsas_error gsas_serve_stat(struct gsas_call *call);
enum gsas_error gsas_serve_list(struct gsas_call *call);
enum gsas_error gsas_serve_reclaim(struct gsas_call *call);

#endif /* GSAS_SERVE_H */
