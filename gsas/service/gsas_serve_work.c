/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_serve_work.c - requests with work that takes long: ALLOC and QUEUE_NEW
 * allocate memory, FREE returns it, FORK starts a program. A worker thread does
 * the work. ALLOC, QUEUE_NEW and FORK are answered when it is done, if the
 * client still exists.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "common/gsas_copy.h"
#include "service/gsas_serve_queue.h"
#include "service/gsas_serve_work.h"

#define WORKS_AT_ONCE	4		/* pieces of work of a client in a
					 * worker's queue, so that a client with
					 * many requests does not delay other
					 * clients */
#define ABANDONED_MAX	16		/* regions of ended clients freed in
					 * one go */
#define RELEASING_MS	10000		/* longest wait for memory that is
					 * being freed */

/* A request that is answered later. The thread of the service owns it; while
 * the work runs the worker thread sets error and result. */
struct deferred {
	struct gsas_work work;
	enum gsas_worker_kind kind;
	struct gsas_service *service;
	struct gsas_client *client;	/* NULL: the client has ended */
	struct unm_list list;		/* in client->waits, works or
					 * unanswered */
	uint64_t address;		/* for the log */
	struct gsas_answer answer;
	enum gsas_error error;		/* set by run() */
	uint64_t result;		/* set by run() or done() */
};

static struct deferred *deferred_of(struct gsas_work *work)
{
	return unm_container(work, struct deferred, work);
}

/* Give work of a client to a worker, in the order of the requests, until
 * WORKS_AT_ONCE pieces are in its queue. */
static void deferred_give(struct gsas_client *client,
			  enum gsas_worker_kind kind)
{
	struct unm_list *pos;

	while (client->given[kind] < WORKS_AT_ONCE &&
	       (pos = unm_list_pop(&client->waits[kind])) != NULL) {
		struct deferred *deferred =
			unm_container(pos, struct deferred, list);

		unm_list_append(&client->works, &deferred->list);
		client->given[kind]++;
		gsas_worker_give(client->service->worker[kind],
				 &deferred->work);
	}
}

/* Defer a request. GSAS_DEFERRED; or an error, and the caller frees it. */
static enum gsas_error deferred_begin(struct deferred *deferred,
				      const struct gsas_call *call)
{
	struct gsas_client *client = call->client;

	if (gsas_worker_ready(client->service->worker[deferred->kind]) != 0)
		return GSAS_E_AGAIN;
	deferred->service = client->service;
	deferred->client = client;
	deferred->address = call->address;
	deferred->answer.opcode = call->opcode;
	deferred->answer.tag = call->tag;
	unm_list_append(&client->waits[deferred->kind], &deferred->list);
	client->work_count++;
	client->service->deferred++;
	deferred_give(client, deferred->kind);
	return GSAS_DEFERRED;
}

static void deferred_free(struct deferred *deferred)
{
	unm_list_remove(&deferred->list);
	if (deferred->client != NULL)
		deferred->client->work_count--;
	free(deferred);
}

/* Queue the answer for gsas_service_progress(), or only count it if the request
 * was posted. */
static void deferred_answer(struct deferred *deferred)
{
	struct gsas_client *client = deferred->client;

	if (gsas_client_count(client, &deferred->answer, deferred->address)) {
		unm_list_remove(&deferred->list);
		unm_list_append(&client->unanswered, &deferred->list);
		gsas_client_block(client);
	} else {
		deferred_free(deferred);
	}
}

/* The work of a request is done. Called by the done() of the work. */
static void deferred_end(struct deferred *deferred)
{
	struct gsas_client *client = deferred->client;
	enum gsas_worker_kind kind = deferred->kind;

	deferred->service->deferred--;
	deferred->answer.response.error = deferred->error;
	if (deferred->error == GSAS_OK)
		deferred->answer.response.result = deferred->result;
	if (client == NULL) {
		gsas_service_undo(deferred->service, &deferred->answer);
		deferred_free(deferred);
		return;
	}
	client->given[kind]--;
	deferred_answer(deferred);
	deferred_give(client, kind);
}

bool gsas_client_answer_deferred(struct gsas_client *client)
{
	while (!unm_list_empty(&client->unanswered)) {
		struct deferred *deferred = unm_container(
			client->unanswered.next, struct deferred, list);

		if (!gsas_client_answer(client, &deferred->answer))
			return false;
		deferred_free(deferred);
	}
	return true;
}

/* The client of a request ended before the work was given to a worker. */
static void deferred_cancel(struct deferred *deferred)
{
	deferred->client = NULL;
	deferred->error = GSAS_E_AGAIN;
	deferred->work.done(&deferred->work);
}

void gsas_client_cancel_works(struct gsas_client *client)
{
	struct unm_list *pos;

	while ((pos = unm_list_pop(&client->works)) != NULL)
		unm_container(pos, struct deferred, list)->client = NULL;
	for (int i = 0; i < GSAS_WORKERS; i++)
		while ((pos = unm_list_pop(&client->waits[i])) != NULL)
			deferred_cancel(unm_container(pos, struct deferred,
						      list));
	while ((pos = unm_list_pop(&client->unanswered)) != NULL) {
		struct deferred *deferred =
			unm_container(pos, struct deferred, list);

		gsas_service_undo(client->service, &deferred->answer);
		free(deferred);
	}
}

/* ---- Memory that is freed ------------------------------------------------ */

/* The memory of a segment whose last region was freed. */
struct release {
	struct gsas_work work;
	struct gsas_service *service;
	struct gsas_block block;
};

static void block_free(struct gsas_service *service, struct gsas_block *block)
{
	const struct gsas_memory *memory = &service->attr.pages.memory;

	memory->free(memory->ctx, block);
}

static void release_run(struct gsas_work *work)
{
	struct release *release = unm_container(work, struct release, work);

	block_free(release->service, &release->block);
	/* pairs with the acquire in is_releasing() */
	atomic_fetch_sub_explicit(&release->service->releasing, 1,
				  memory_order_release);
}

static void release_done(struct gsas_work *work)
{
	struct release *release = unm_container(work, struct release, work);

	release->service->deferred--;
	free(release);
}

/* Free memory in the worker thread, or here if there is no thread. */
static void release_block(struct gsas_service *service,
			  struct gsas_block *block)
{
	struct gsas_worker *worker = service->worker[GSAS_WORK_RELEASE];
	struct release *release = NULL;

	if (worker != NULL && gsas_worker_ready(worker) == 0)
		release = malloc(sizeof(*release));
	if (release == NULL) {
		block_free(service, block);
		return;
	}
	*release = (struct release){
		.work = { .run = release_run, .done = release_done },
		.service = service,
		.block = *block,
	};
	service->deferred++;
	atomic_fetch_add_explicit(&service->releasing, 1, memory_order_relaxed);
	gsas_worker_give(worker, &release->work);
}

void gsas_service_free_region(struct gsas_service *service,
			      struct gsas_region *region)
{
	struct gsas_block block = { .memory = NULL };

	if (region->queue != NULL)
		gsas_region_end_queue(region);
	unm_list_remove(&region->owned);
	gsas_region_free(service->pages, region, &block);
	if (block.memory != NULL)
		release_block(service, &block);
}

void gsas_client_abandon(struct gsas_client *client)
{
	struct unm_list *pos;

	while ((pos = unm_list_pop(&client->owned)) != NULL)
		unm_list_append(&client->service->abandoned, pos);
}

bool gsas_service_free_abandoned(struct gsas_service *service)
{
	for (int i = 0; i < ABANDONED_MAX &&
	     !unm_list_empty(&service->abandoned); i++)
		gsas_service_free_region(service, unm_container(
			service->abandoned.next, struct gsas_region, owned));
	return !unm_list_empty(&service->abandoned);
}

void gsas_service_undo(struct gsas_service *service,
		       const struct gsas_answer *answer)
{
	struct gsas_region *region;

	if (answer->response.error != GSAS_OK ||
	    (answer->opcode != GSAS_ALLOC && answer->opcode != GSAS_QUEUE_NEW))
		return;
	/* NULL: another process of the job has found the address by LIST, and
	 * has freed the region */
	region = gsas_region_at(service->pages, answer->response.result);
	if (region != NULL)
		gsas_service_free_region(service, region);
}

/* Only the job of a region may free it, also if the region is a queue. */
enum gsas_error gsas_serve_free(struct gsas_call *call)
{
	if (call->region->job != call->client->job)
		return GSAS_E_ACCESS;
	if (call->region->address != call->address)
		return GSAS_E_ARGUMENT;
	gsas_service_free_region(call->client->service, call->region);
	return GSAS_OK;
}

/* ---- Allocation ---------------------------------------------------------- */

struct alloc {
	struct deferred deferred;
	struct gsas_plan plan;
	uint32_t quota, buffer;		/* of a queue; quota 0: no queue */
};

/* Add a region whose memory is filled, and make a queue of it if quota is not
 * 0. client: NULL: it has ended, and the caller frees the region. After an
 * error nothing of the plan is left. */
static enum gsas_error region_add(struct gsas_service *service,
				  struct gsas_client *client,
				  struct gsas_plan *plan, uint32_t quota,
				  uint32_t buffer, uint64_t *address)
{
	struct gsas_region *region = plan->region;
	enum gsas_error error = gsas_region_add(service->pages, plan);

	if (error != GSAS_OK) {
		gsas_region_cancel(service->pages, plan);
		return error;
	}
	if (quota != 0)
		error = gsas_region_make_queue(service, region, quota, buffer);
	if (error != GSAS_OK) {
		gsas_service_free_region(service, region);
		return error;
	}
	if (region->attr & GSAS_ATTR_OWNED && client != NULL)
		unm_list_append(&client->owned, &region->owned);
	*address = region->address;
	return GSAS_OK;
}

/* Is memory waiting to be freed by the worker? */
static bool is_releasing(struct gsas_service *service)
{
	/* pairs with the release in release_run() */
	return atomic_load_explicit(&service->releasing,
				    memory_order_acquire) != 0;
}

/* Fill a plan; called by the worker thread. If there is no memory, but memory
 * of freed regions is being returned to the system, wait for that and try
 * again. */
static enum gsas_error fill_plan(struct gsas_service *service,
				 struct gsas_plan *plan)
{
	bool again = is_releasing(service);
	enum gsas_error error = gsas_region_fill(service->pages, plan);

	if (error != GSAS_E_MEMORY || !again)
		return error;
	for (int ms = 0; ms < RELEASING_MS && is_releasing(service); ms++)
		poll(NULL, 0, 1);
	return gsas_region_fill(service->pages, plan);
}

static void alloc_run(struct gsas_work *work)
{
	struct deferred *deferred = deferred_of(work);
	struct alloc *alloc = unm_container(deferred, struct alloc, deferred);

	deferred->error = fill_plan(deferred->service, &alloc->plan);
	if (deferred->error == GSAS_OK && alloc->quota != 0)
		gsas_region_hollow(alloc->plan.region);
}

static void alloc_done(struct gsas_work *work)
{
	struct deferred *deferred = deferred_of(work);
	struct alloc *alloc = unm_container(deferred, struct alloc, deferred);

	if (deferred->error == GSAS_OK)
		deferred->error = region_add(deferred->service,
					     deferred->client, &alloc->plan,
					     alloc->quota, alloc->buffer,
					     &deferred->result);
	else
		gsas_region_cancel(deferred->service->pages, &alloc->plan);
	deferred_end(deferred);
}

static enum gsas_error alloc_deferred(struct gsas_call *call,
				      const struct gsas_plan *plan,
				      uint32_t quota, uint32_t buffer)
{
	struct alloc *alloc = calloc(1, sizeof(*alloc));
	enum gsas_error error;

	if (alloc == NULL)
		return GSAS_E_MEMORY;
	alloc->deferred.work.run = alloc_run;
	alloc->deferred.work.done = alloc_done;
	alloc->deferred.kind = GSAS_WORK_MEMORY;
	alloc->plan = *plan;
	alloc->quota = quota;
	alloc->buffer = buffer;
	error = deferred_begin(&alloc->deferred, call);
	if (error != GSAS_DEFERRED)
		free(alloc);
	return error;
}

/* Check the attributes of an allocation. *group: the group that they name, or
 * NULL. */
static enum gsas_error check_attr(const struct gsas_client *client,
				  uint64_t attr, struct gsas_group **group)
{
	uint64_t known = UINT64_C(0xff) | GSAS_ATTR_MAPPED;

	*group = NULL;
	if (GSAS_ATTR_MODE(attr) == GSAS_MODE_GROUP)
		known |= UINT64_MAX << 32;
	if (GSAS_ATTR_MODE(attr) == GSAS_MODE_JOB && attr & GSAS_ATTR_OWNED)
		known |= GSAS_ATTR_OWNED | UINT64_MAX << 32;
	if (attr & ~known || GSAS_ATTR_MODE(attr) > GSAS_MODE_WORLD)
		return GSAS_E_ARGUMENT;
	if (GSAS_ATTR_MODE(attr) != GSAS_MODE_GROUP)
		return GSAS_OK;
	for (uint32_t i = 0; i < client->group_count; i++)
		if (client->group[i]->number == GSAS_ATTR_GROUP(attr))
			*group = client->group[i];
	return *group != NULL ? GSAS_OK : GSAS_E_ACCESS;
}

/* Allocate pages for the caller; quota not 0: for a queue. GSAS_OK:
 * call->result is the address; GSAS_DEFERRED; or an error. */
static enum gsas_error call_alloc(struct gsas_call *call, uint64_t pages,
				  uint64_t attr, uint32_t quota,
				  uint32_t buffer)
{
	struct gsas_client *client = call->client;
	struct gsas_pages *p = client->service->pages;
	struct gsas_plan plan;
	struct gsas_group *group;
	enum gsas_error error = check_attr(client, attr, &group);

	if (error != GSAS_OK)
		return error;
	if (call->tag == GSAS_TAG_POSTED)
		return GSAS_E_ARGUMENT;	/* no answer with the address */
	if (client->work_count >= GSAS_DEFERRED_MAX)
		return GSAS_E_AGAIN;
	if (quota != 0)
		attr |= GSAS_ATTR_MAPPED | GSAS_ATTR_QUEUE;
	error = gsas_region_plan(p, client->job, group, pages, attr, &plan);
	if (error != GSAS_OK)
		return error;
	if (!plan.fill)
		return region_add(client->service, client, &plan, quota,
				  buffer, &call->result);
	error = alloc_deferred(call, &plan, quota, buffer);
	if (error != GSAS_DEFERRED)
		gsas_region_cancel(p, &plan);
	return error;
}

enum gsas_error gsas_serve_alloc(struct gsas_call *call)
{
	return call_alloc(call, call->arg[0], call->arg[1], 0, 0);
}

enum gsas_error gsas_serve_queue_new(struct gsas_call *call)
{
	uint32_t quota = (uint32_t)call->arg[0];
	uint32_t buffer = (uint32_t)(call->arg[0] >> 32);
	uint64_t bytes = gsas_queue_bytes(quota, buffer);

	if (bytes == 0 || call->arg[1] & GSAS_ATTR_OWNED)
		return GSAS_E_ARGUMENT;
	return call_alloc(call, (bytes + GSAS_PAGE_BYTES - 1) /
			  GSAS_PAGE_BYTES, call->arg[1], quota, buffer);
}

/* ---- Processes [D 2.2.8] ------------------------------------------------- */

struct process {
	struct deferred deferred;
	struct gsas_spawn spawn;
	char path[GSAS_PATH_MAX];
};

static void process_run(struct gsas_work *work)
{
	struct deferred *deferred = deferred_of(work);
	struct process *process =
		unm_container(deferred, struct process, deferred);
	const struct gsas_service_attr *attr = &deferred->service->attr;

	deferred->error = attr->spawn(attr->spawn_ctx, &process->spawn,
				   &deferred->result);
}

static void process_done(struct gsas_work *work)
{
	struct deferred *deferred = deferred_of(work);

	deferred->service->stat.forks += deferred->error == GSAS_OK;
	deferred_end(deferred);
}

/* Copy the path from the page, then check the copy: clients may write to the
 * page meanwhile. */
static bool copy_path(const struct gsas_call *call, char *path)
{
	uint64_t len = call->left < GSAS_PATH_MAX ? call->left : GSAS_PATH_MAX;

	gsas_copy_from_shared(path, call->memory, len);
	return path[0] != '\0' && memchr(path, '\0', len) != NULL;
}

enum gsas_error gsas_serve_fork(struct gsas_call *call)
{
	struct gsas_client *client = call->client;
	enum gsas_error error = GSAS_E_PATH;
	struct process *process;

	if (client->service->attr.spawn == NULL)
		return GSAS_E_EXEC;
	if (client->work_count >= GSAS_DEFERRED_MAX)
		return GSAS_E_AGAIN;
	process = calloc(1, sizeof(*process));
	if (process == NULL)
		return GSAS_E_MEMORY;
	process->deferred.work.run = process_run;
	process->deferred.work.done = process_done;
	process->deferred.kind = GSAS_WORK_PROCESS;
	process->spawn = (struct gsas_spawn){
		.path = process->path,
		.argument = call->arg[1],
		.job = { client->job->key[0], client->job->key[1] },
		.uid = client->uid,
	};
	if (copy_path(call, process->path))
		error = deferred_begin(&process->deferred, call);
	if (error != GSAS_DEFERRED)
		free(process);
	return error;
}
