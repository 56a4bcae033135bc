/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_service.c - the core of the service: clients, dispatch and answers; the
 * paper's reads, writes and atomic operations. gsas_call.h lists the files
 * with the other operations.
 */
#include <stdlib.h>
#include <sys/random.h>

#include <rdma/fi_errno.h>

#include "service/gsas_call.h"
#include "service/gsas_extend.h"
#include "service/gsas_serve_queue.h"
#include "service/gsas_serve_work.h"
#include "service/gsas_service.h"

/* ---- The published operations on memory [D 2.2.4] ------------------------ */

static enum gsas_error serve_op(struct gsas_call *call)
{
	const struct gsas_rule *rule = call->rule;
	enum gsas_error error = gsas_call_direct(call, rule->type);

	if (error == GSAS_OK)
		gsas_op_apply(rule->op, rule->type, 1, call->memory, call->arg,
			      NULL, rule->flags & GSAS_RULE_GIVES ?
			      &call->result : NULL);
	return error;
}

static enum gsas_error serve_cas(struct gsas_call *call)
{
	gsas_op_apply(GSAS_OP_CSWAP, GSAS_TYPE_UINT64, 1, call->memory,
		      &call->arg[1], &call->arg[0], &call->more);
	call->result = call->more == call->arg[0];
	return GSAS_OK;
}

/* The page is read as a whole: it is not mapped, so only this thread accesses
 * it. */
static enum gsas_error serve_read4k(struct gsas_call *call)
{
	enum gsas_error error;

	if (gsas_region_mapped(call->region))
		return GSAS_E_MAPPED;
	error = gsas_call_room(call, call->arg[0], GSAS_PAGE_BYTES);
	if (error != GSAS_OK)
		return error;
	gsas_call_out(call, call->arg[0], call->memory, GSAS_PAGE_BYTES);
	call->result = GSAS_PAGE_BYTES;
	return GSAS_OK;
}

/* ---- The opcodes --------------------------------------------------------- */

#define MEMORY	(GSAS_RULE_FIND | GSAS_RULE_PLAIN)
#define FIND	GSAS_RULE_FIND
#define GIVES	GSAS_RULE_GIVES

#define RULE(name, serve, flags, ignored, bytes)			\
	[GSAS_##name] = { #name, serve, flags, ignored, bytes, 0, 0 }
#define OP(name, flags, ignored, bytes, op, type)			\
	[GSAS_##name] = { #name, serve_op, MEMORY | (flags), ignored, bytes, \
			  GSAS_OP_##op, GSAS_TYPE_##type }

static const struct gsas_rule rules[128] = {
	RULE(ALLOC,	gsas_serve_alloc, 0, 0, 0),
	RULE(FREE,	gsas_serve_free, GSAS_RULE_ARG1 | FIND, 12, 0),
	RULE(FORK,	gsas_serve_fork, GSAS_RULE_ARG1 | MEMORY, 0, 0),
	OP(READ8,	GIVES, 0, 1, READ, UINT8),
	OP(READ32,	GIVES, 2, 4, READ, UINT32),
	OP(READ64,	GIVES, 3, 8, READ, UINT64),
	RULE(READ4K,	serve_read4k, MEMORY, 12, GSAS_PAGE_BYTES),
	OP(WRITE8,	0, 0, 1, WRITE, UINT8),
	OP(WRITE32,	0, 2, 4, WRITE, UINT32),
	OP(WRITE64,	0, 3, 8, WRITE, UINT64),
	OP(WRITE128,	0, 3, 16, WRITE, UINT128),
	RULE(CAS64,	serve_cas, MEMORY, 3, 8),
	OP(FAD64,	GIVES, 3, 8, SUM, UINT64),
	OP(SWAP64,	GIVES, 3, 8, WRITE, UINT64),

	RULE(JOIN,	gsas_serve_join, GSAS_RULE_UNJOINED, 0, 0),
	RULE(GROUP,	gsas_serve_group, 0, 0, 0),
	RULE(FENCE,	gsas_serve_fence, GSAS_RULE_ORDERED, 0, 0),
	RULE(UPDATE,	gsas_serve_update, MEMORY, 0, 0),
	RULE(ATOMIC,	gsas_serve_atomic, MEMORY, 0, 0),
	RULE(GET,	gsas_serve_get, MEMORY, 0, 0),
	RULE(PUT,	gsas_serve_put, MEMORY, 0, 0),
	RULE(MAP,	gsas_serve_map, FIND, 0, 0),
	RULE(QUEUE_NEW,	gsas_serve_queue_new, 0, 0, 0),
	RULE(QUEUE_OPEN, gsas_serve_queue_open, FIND, 0, 0),
	RULE(QUEUE_CLOSE, gsas_serve_queue_close, 0, 0, 0),
	RULE(ENQUEUE,	gsas_serve_enqueue, 0, 0, 0),
	RULE(DEQUEUE,	gsas_serve_dequeue, FIND, 0, 0),
	RULE(STAT,	gsas_serve_stat, 0, 0, 0),
	RULE(LIST,	gsas_serve_list, 0, 0, 0),
	RULE(RECLAIM,	gsas_serve_reclaim, 0, 0, 0),
	RULE(QUEUE_WAIT, gsas_serve_queue_wait, FIND, 0, 0),
	RULE(NAME,	gsas_serve_name, 0, 0, 0),
	RULE(NUMBERS,	gsas_serve_numbers, 0, 0, 0),
};

/* ---- Checks -------------------------------------------------------------- */

/* The checks that are the same for all operations. */
static enum gsas_error admit(struct gsas_call *call)
{
	const struct gsas_rule *rule = call->rule;
	enum gsas_error error;

	if (rule->name == NULL)
		return GSAS_E_OPCODE;
	if (call->client->job == NULL && !(rule->flags & GSAS_RULE_UNJOINED))
		return GSAS_E_JOIN;
	if (rule->flags & GSAS_RULE_ARG1)
		call->address = call->arg[0];
	call->address &= UINT64_MAX << rule->ignored;
	if (!(rule->flags & GSAS_RULE_FIND))
		return GSAS_OK;
	error = gsas_call_find(call);
	if (error != GSAS_OK || !(rule->flags & GSAS_RULE_PLAIN))
		return error;
	if (call->region->queue != NULL)
		return GSAS_E_STATE;
	return gsas_call_span(call, rule->bytes);
}

/* ---- Answers ------------------------------------------------------------- */

static void finish(const struct gsas_call *call, enum gsas_error error)
{
	struct gsas_client *client = call->client;
	struct gsas_answer answer = {
		.opcode = call->rule->name != NULL ? call->opcode : 0,
		.tag = call->tag,
		.response.error = error,
	};

	if (error == GSAS_OK) {
		answer.response.result = call->result;
		answer.more = call->more;
	}
	if (!gsas_client_count(client, &answer, call->address) ||
	    gsas_client_answer(client, &answer))
		return;
	client->kept = answer;
	client->keeps = true;
	gsas_client_block(client);
}

bool gsas_service_request(struct gsas_client *client, uint64_t head,
			  const uint64_t w[GSAS_WORDS])
{
	struct gsas_stat *stat = &client->service->stat;
	uint8_t opcode = head >> 63 == 0 ? (uint8_t)(head >> 56) : 0;
	struct gsas_call call = {
		.client = client,
		.rule = &rules[opcode],
		.opcode = opcode,
		.tag = (uint8_t)(head >> 48),
		.address = w[0],
		.arg = { w[1], w[2] },
	};
	enum gsas_error error;

	if (gsas_client_stalled(client) ||
	    (call.rule->flags & GSAS_RULE_ORDERED && client->work_count > 0))
		return false;
	stat->requests++;
	stat->op[opcode]++;
	error = admit(&call);
	if (error == GSAS_OK)
		error = call.rule->serve(&call);
	if (error != GSAS_DEFERRED)
		finish(&call, error);
	return true;
}

/* ---- Progress ------------------------------------------------------------ */

static void unblock(struct gsas_client *client)
{
	if (client->keeps && !gsas_client_answer(client, &client->kept))
		return;
	client->keeps = false;
	if (gsas_client_answer_deferred(client) &&
	    gsas_client_notify_grants(client) &&
	    gsas_client_answer_woken(client))
		unm_list_remove(&client->blocked);
}

bool gsas_service_progress(struct gsas_service *service)
{
	bool waits;

	for (int i = 0; service->deferred > 0 && i < GSAS_WORKERS; i++)
		gsas_worker_collect(service->worker[i]);
	unm_list_for_each_safe(pos, tmp, &service->blocked)
		unblock(unm_container(pos, struct gsas_client, blocked));
	waits = gsas_service_grant(service);
	waits |= gsas_service_free_abandoned(service);
	return waits || (service->deferred > 0 && service->attr.wake == NULL);
}

/* ---- Clients ------------------------------------------------------------- */

int gsas_client_new(struct gsas_service *service, uint64_t identity,
		    uint32_t uid, void *io_ctx, struct gsas_client **client)
{
	struct gsas_client *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return -FI_ENOMEM;
	c->service = service;
	c->io_ctx = io_ctx;
	c->identity = identity;
	c->uid = uid;
	unm_list_init(&c->unanswered);
	unm_list_init(&c->works);
	for (int i = 0; i < GSAS_WORKERS; i++)
		unm_list_init(&c->waits[i]);
	unm_list_init(&c->to_notify);
	unm_list_init(&c->sleeps);
	unm_list_init(&c->woken);
	unm_list_init(&c->blocked);
	unm_list_init(&c->owned);
	unm_list_append(&service->clients, &c->list);
	service->stat.clients++;
	*client = c;
	return 0;
}

void gsas_client_free(struct gsas_client *client)
{
	struct gsas_service *service = client->service;

	gsas_client_close_queues(client);
	if (client->keeps)
		gsas_service_undo(service, &client->kept);
	gsas_client_cancel_works(client);
	gsas_client_abandon(client);
	for (uint32_t i = 0; i < client->group_count; i++)
		gsas_group_put(service->pages, client->group[i]);
	if (client->job != NULL)
		gsas_job_put(service->pages, client->job);
	unm_list_remove(&client->blocked);
	unm_list_remove(&client->list);
	service->stat.clients--;
	free(client);
}

/* ---- The service --------------------------------------------------------- */

/* Where the numbers of NUMBERS begin: drawn by chance, so that the next service
 * of the board gives other numbers. Without entropy, early after boot: 0. */
static uint64_t first_number(void)
{
	uint64_t first = 0;

	(void)!getrandom(&first, sizeof(first), GRND_NONBLOCK);
	return first - first % GSAS_NUMBERS_GIVEN;
}

static bool io_complete(const struct gsas_io *io)
{
	return io->in != NULL && io->room != NULL && io->out != NULL &&
	       io->answer != NULL;
}

static void workers_free(struct gsas_service *service)
{
	for (int i = 0; i < GSAS_WORKERS; i++) {
		gsas_worker_free(service->worker[i]);
		service->worker[i] = NULL;
	}
}

int gsas_service_new(const struct gsas_service_attr *attr,
		     struct gsas_service **service)
{
	struct gsas_service *s;
	int ret;

	if (!io_complete(&attr->io))
		return -FI_EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -FI_ENOMEM;
	s->attr = *attr;
	s->rules = rules;
	s->undo = gsas_service_undo;
	unm_list_init(&s->clients);
	unm_list_init(&s->blocked);
	unm_list_init(&s->queues);
	unm_list_init(&s->to_check);
	unm_list_init(&s->waiting);
	unm_list_init(&s->abandoned);
	s->numbers = first_number();
	s->stage = aligned_alloc(64, GSAS_BULK_MAX);
	if (s->stage == NULL) {
		ret = -FI_ENOMEM;
		goto free_service;
	}
	ret = gsas_pages_new(&attr->pages, &s->pages);
	if (ret != 0)
		goto free_stage;
	for (int i = 0; ret == 0 && i < GSAS_WORKERS; i++)
		ret = gsas_worker_new(attr->threaded, attr->wake,
				      attr->wake_ctx, &s->worker[i]);
	if (ret != 0)
		goto free_workers;
	*service = s;
	return 0;

free_workers:
	workers_free(s);
	gsas_pages_free(s->pages);
free_stage:
	free(s->stage);
free_service:
	free(s);
	return ret;
}

void gsas_service_free(struct gsas_service *service)
{
	struct gsas_region *region;

	unm_list_for_each_safe(pos, tmp, &service->clients)
		gsas_client_free(unm_container(pos, struct gsas_client, list));
	workers_free(service);
	while ((region = gsas_region_from(service->pages, 0)) != NULL)
		gsas_service_free_region(service, region);
	gsas_pages_free(service->pages);
	free(service->stage);
	free(service);
}

struct gsas_stat *gsas_service_stat(struct gsas_service *service)
{
	return gsas_stat_read(service);
}

bool gsas_service_empty(const struct gsas_service *service)
{
	return unm_list_empty(&service->clients) && service->deferred == 0 &&
	       gsas_region_from(service->pages, 0) == NULL;
}
