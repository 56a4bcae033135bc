/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_serve_work.c - what takes long: getting memory, giving it back, starting
 * processes. A worker does it, and the client is answered when that is over, if
 * it is still there.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#include "common/gsas_copy.h"
#include "service/gsas_serve.h"

#define WORKS_AT_ONCE	4		/* of a client in a worker's line: who
					 * wants much is not in the way of who
					 * wants little */

#define LEAVING_MS	10000		/* until memory has been given back */

/* A request that is answered later. */
struct later {
	struct gsas_work work;
	enum gsas_worker_kind kind;
	struct gsas_service *service;
	struct gsas_client *client;	/* NULL: it ended */
	struct unm_list list;		/* client->waits[], ->works or ->late */
	uint64_t address;		/* for the log */
	struct gsas_answer answer;
	enum gsas_error error;		/* what became of it */
	uint64_t result;
};

static struct later *later_of(struct gsas_work *work)
{
	return unm_container(work, struct later, work);
}

/* In the order of the requests. */
static void later_give(struct gsas_client *client, enum gsas_worker_kind kind)
{
	struct unm_list *pos;

	while (client->given[kind] < WORKS_AT_ONCE &&
	       (pos = unm_list_pop(&client->waits[kind])) != NULL) {
		struct later *later = unm_container(pos, struct later, list);

		unm_list_append(&client->works, &later->list);
		client->given[kind]++;
		gsas_worker_give(client->service->worker[kind], &later->work);
	}
}

/* GSAS_LATER, or an error and it was not begun. */
static enum gsas_error later_begin(struct later *later,
				   const struct gsas_call *call)
{
	struct gsas_client *client = call->client;

	if (gsas_worker_ready(client->service->worker[later->kind]) != 0)
		return GSAS_E_AGAIN;
	later->service = client->service;
	later->client = client;
	later->address = call->address;
	later->answer.opcode = call->opcode;
	later->answer.tag = call->tag;
	unm_list_append(&client->waits[later->kind], &later->list);
	client->work_count++;
	client->service->later++;
	later_give(client, later->kind);
	return GSAS_LATER;
}

static void later_free(struct later *later)
{
	unm_list_remove(&later->list);
	if (later->client != NULL)
		later->client->work_count--;
	free(later);
}

/* What it did is told, now or when its client takes answers again. */
static void later_tell(struct later *later)
{
	struct gsas_client *client = later->client;

	if (gsas_client_count(client, &later->answer, later->address)) {
		unm_list_remove(&later->list);
		unm_list_append(&client->late, &later->list);
		gsas_client_stuck(client);
	} else {
		later_free(later);
	}
}

/* It is over. */
static void later_end(struct later *later)
{
	struct gsas_client *client = later->client;
	enum gsas_worker_kind kind = later->kind;

	later->service->later--;
	later->answer.response.error = later->error;
	if (later->error == GSAS_OK)
		later->answer.response.result = later->result;
	if (client == NULL) {
		gsas_service_undo(later->service, &later->answer);
		later_free(later);
		return;
	}
	client->given[kind]--;
	later_tell(later);
	later_give(client, kind);
}

bool gsas_client_tell_late(struct gsas_client *client)
{
	while (!unm_list_empty(&client->late)) {
		struct later *later = unm_container(client->late.next,
						    struct later, list);

		if (!gsas_client_tell(client, &later->answer))
			return false;
		later_free(later);
	}
	return true;
}

/* Its client ended before it was begun. */
static void later_forget(struct later *later)
{
	later->client = NULL;
	later->error = GSAS_E_AGAIN;
	later->work.done(&later->work);
}

void gsas_client_drop_works(struct gsas_client *client)
{
	struct unm_list *pos;

	while ((pos = unm_list_pop(&client->works)) != NULL)
		unm_container(pos, struct later, list)->client = NULL;
	for (int i = 0; i < GSAS_WORKERS; i++)
		while ((pos = unm_list_pop(&client->waits[i])) != NULL)
			later_forget(unm_container(pos, struct later, list));
	while ((pos = unm_list_pop(&client->late)) != NULL) {
		struct later *later = unm_container(pos, struct later, list);

		gsas_service_undo(client->service, &later->answer);
		free(later);
	}
}

/* ---- Memory that is given back ------------------------------------------- */

struct trash {
	struct gsas_work work;
	struct gsas_service *service;
	struct gsas_block block;
};

static void block_free(struct gsas_service *service, struct gsas_block *block)
{
	const struct gsas_memory *memory = &service->attr.pages.memory;

	memory->free(memory->ctx, block);
}

static void trash_run(struct gsas_work *work)
{
	struct trash *trash = unm_container(work, struct trash, work);

	block_free(trash->service, &trash->block);
	/* pairs with the acquire in is_leaving() */
	atomic_fetch_sub_explicit(&trash->service->leaving, 1,
				  memory_order_release);
}

static void trash_done(struct gsas_work *work)
{
	struct trash *trash = unm_container(work, struct trash, work);

	trash->service->later--;
	free(trash);
}

/* By the worker, or here if there is none to be had. */
static void throw_away(struct gsas_service *service, struct gsas_block *block)
{
	struct gsas_worker *worker = service->worker[GSAS_WORK_TRASH];
	struct trash *trash = NULL;

	if (worker != NULL && gsas_worker_ready(worker) == 0)
		trash = malloc(sizeof(*trash));
	if (trash == NULL) {
		block_free(service, block);
		return;
	}
	*trash = (struct trash){
		.work = { .run = trash_run, .done = trash_done },
		.service = service,
		.block = *block,
	};
	service->later++;
	atomic_fetch_add_explicit(&service->leaving, 1, memory_order_relaxed);
	gsas_worker_give(worker, &trash->work);
}

void gsas_service_drop(struct gsas_service *service, struct gsas_region *region)
{
	struct gsas_block block = { .memory = NULL };

	if (region->queue != NULL)
		gsas_region_unqueue(region);
	gsas_region_free(service->pages, region, &block);
	if (block.memory != NULL)
		throw_away(service, &block);
}

void gsas_service_undo(struct gsas_service *service,
		       const struct gsas_answer *answer)
{
	struct gsas_region *region;

	if (answer->response.error != GSAS_OK ||
	    (answer->opcode != GSAS_ALLOC && answer->opcode != GSAS_QUEUE_NEW))
		return;
	/* NULL: somebody else of the job has freed it, by what a list said */
	region = gsas_region_at(service->pages, answer->response.result);
	if (region != NULL)
		gsas_service_drop(service, region);
}

/* Only its job; of a queue, too. */
enum gsas_error gsas_serve_free(struct gsas_call *call)
{
	if (call->region->job != call->client->job)
		return GSAS_E_ACCESS;
	if (call->region->address != call->address)
		return GSAS_E_ARGUMENT;
	gsas_service_drop(call->client->service, call->region);
	return GSAS_OK;
}

/* ---- Allocation ---------------------------------------------------------- */

struct alloc {
	struct later later;
	struct gsas_plan plan;
	uint32_t quota, buffer;		/* of a queue; 0: it is none */
};

/* Memory is there: make it reachable. */
static enum gsas_error region_add(struct gsas_service *service,
				  struct gsas_plan *plan, uint32_t quota,
				  uint32_t buffer, uint64_t *address)
{
	struct gsas_region *region = plan->region;
	enum gsas_error error = gsas_region_add(service->pages, plan);

	if (error != GSAS_OK) {
		gsas_region_drop(service->pages, plan);
		return error;
	}
	if (quota != 0)
		error = gsas_region_enqueue(service, region, quota, buffer);
	if (error != GSAS_OK)
		gsas_service_drop(service, region);
	else
		*address = region->address;
	return error;
}

/* Is memory on its way back to the system? */
static bool is_leaving(struct gsas_service *service)
{
	/* pairs with the release in trash_run() */
	return atomic_load_explicit(&service->leaving,
				    memory_order_acquire) != 0;
}

/* By the worker. What was freed before may be on its way back to the system: if
 * there is no memory, once more when it is there. */
static enum gsas_error fill_patiently(struct gsas_service *service,
				      struct gsas_plan *plan)
{
	bool again = is_leaving(service);
	enum gsas_error error = gsas_region_fill(service->pages, plan);

	if (error != GSAS_E_MEMORY || !again)
		return error;
	for (int ms = 0; ms < LEAVING_MS && is_leaving(service); ms++)
		poll(NULL, 0, 1);
	return gsas_region_fill(service->pages, plan);
}

static void alloc_run(struct gsas_work *work)
{
	struct later *later = later_of(work);
	struct alloc *alloc = unm_container(later, struct alloc, later);

	later->error = fill_patiently(later->service, &alloc->plan);
	if (later->error == GSAS_OK && alloc->quota != 0)
		gsas_region_hollow(alloc->plan.region);
}

static void alloc_done(struct gsas_work *work)
{
	struct later *later = later_of(work);
	struct alloc *alloc = unm_container(later, struct alloc, later);

	if (later->error == GSAS_OK)
		later->error = region_add(later->service, &alloc->plan,
					  alloc->quota, alloc->buffer,
					  &later->result);
	else
		gsas_region_drop(later->service->pages, &alloc->plan);
	later_end(later);
}

static enum gsas_error alloc_later(struct gsas_call *call,
				   const struct gsas_plan *plan,
				   uint32_t quota, uint32_t buffer)
{
	struct alloc *alloc = calloc(1, sizeof(*alloc));
	enum gsas_error error;

	if (alloc == NULL)
		return GSAS_E_MEMORY;
	alloc->later.work.run = alloc_run;
	alloc->later.work.done = alloc_done;
	alloc->later.kind = GSAS_WORK_MEMORY;
	alloc->plan = *plan;
	alloc->quota = quota;
	alloc->buffer = buffer;
	error = later_begin(&alloc->later, call);
	if (error != GSAS_LATER)
		free(alloc);
	return error;
}

/* Are these bits an allocation can have? *group: the one they name, or NULL. */
static enum gsas_error check_attr(const struct gsas_client *client,
				  uint64_t attr, struct gsas_group **group)
{
	uint64_t known = UINT64_C(0xff) | GSAS_ATTR_MAPPED;

	*group = NULL;
	if (GSAS_ATTR_MODE(attr) == GSAS_MODE_GROUP)
		known |= UINT64_MAX << 32;
	if (attr & ~known || GSAS_ATTR_MODE(attr) > GSAS_MODE_WORLD)
		return GSAS_E_ARGUMENT;
	if (GSAS_ATTR_MODE(attr) != GSAS_MODE_GROUP)
		return GSAS_OK;
	for (uint32_t i = 0; i < client->group_count; i++)
		if (client->group[i]->number == GSAS_ATTR_GROUP(attr))
			*group = client->group[i];
	return *group != NULL ? GSAS_OK : GSAS_E_ACCESS;
}

enum gsas_error gsas_call_alloc(struct gsas_call *call, uint64_t pages,
				uint64_t attr, uint32_t quota, uint32_t buffer)
{
	struct gsas_client *client = call->client;
	struct gsas_pages *p = client->service->pages;
	struct gsas_plan plan;
	struct gsas_group *group;
	enum gsas_error error = check_attr(client, attr, &group);

	if (error != GSAS_OK)
		return error;
	if (call->tag == GSAS_TAG_POSTED)
		return GSAS_E_ARGUMENT;	/* nobody would know the address */
	if (client->work_count >= GSAS_LATER_MAX)
		return GSAS_E_AGAIN;
	if (quota != 0)
		attr |= GSAS_ATTR_MAPPED | GSAS_ATTR_QUEUE;
	error = gsas_region_plan(p, client->job, group, pages, attr, &plan);
	if (error != GSAS_OK)
		return error;
	if (!plan.fill)
		return region_add(client->service, &plan, quota, buffer,
				  &call->result);
	error = alloc_later(call, &plan, quota, buffer);
	if (error != GSAS_LATER)
		gsas_region_drop(p, &plan);
	return error;
}

enum gsas_error gsas_serve_alloc(struct gsas_call *call)
{
	return gsas_call_alloc(call, call->arg[0], call->arg[1], 0, 0);
}

/* ---- Processes [D 2.2.8] ------------------------------------------------- */

struct process {
	struct later later;
	struct gsas_spawn spawn;
	char path[GSAS_PATH_MAX];
};

static void process_run(struct gsas_work *work)
{
	struct later *later = later_of(work);
	struct process *process = unm_container(later, struct process, later);
	const struct gsas_service_attr *attr = &later->service->attr;

	later->error = attr->spawn(attr->spawn_ctx, &process->spawn,
				   &later->result);
}

static void process_done(struct gsas_work *work)
{
	struct later *later = later_of(work);

	later->service->stat.forks += later->error == GSAS_OK;
	later_end(later);
}

/* What the page says, once: it may be written meanwhile. */
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
	if (client->work_count >= GSAS_LATER_MAX)
		return GSAS_E_AGAIN;
	process = calloc(1, sizeof(*process));
	if (process == NULL)
		return GSAS_E_MEMORY;
	process->later.work.run = process_run;
	process->later.work.done = process_done;
	process->later.kind = GSAS_WORK_PROCESS;
	process->spawn = (struct gsas_spawn){
		.path = process->path,
		.argument = call->arg[1],
		.job = { client->job->key[0], client->job->key[1] },
		.uid = client->uid,
	};
	if (copy_path(call, process->path))
		error = later_begin(&process->later, call);
	if (error != GSAS_LATER)
		free(process);
	return error;
}
