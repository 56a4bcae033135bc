/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_extend.c - operations of this project, opcodes from 64 up: JOIN, GROUP,
 * NAME and FENCE, the whole table of atomic operations, GET and PUT, MAP,
 * counters, lists and RECLAIM. Queues are in gsas_serve_queue.c.
 */
#include <string.h>

#include <rdma/fi_errno.h>

#include "common/gsas_copy.h"
#include "service/gsas_extend.h"
#include "service/gsas_label.h"
#include "service/gsas_presence.h"
#include "service/gsas_serve_queue.h"
#include "service/gsas_serve_work.h"

/* Limits of one LIST or RECLAIM, so that it does not take long. */
#define VISITS_MAX	256		/* regions visited */
#define RECLAIM_MAX	32		/* regions freed */
#define RECLAIM_PAGES	4096		/* pages after which it ends */

/* ---- Jobs, groups, fences ------------------------------------------------ */

/* Add the client's process to the job: while it lives the pages of the job are
 * no orphans. */
static enum gsas_error join_process(struct gsas_client *client)
{
	const struct gsas_io *io = &client->service->attr.io;
	uint64_t id;
	int fd = io->process != NULL ? io->process(client->io_ctx, &id) :
		-FI_ENOSYS;

	/* the platform does not know processes, or the process has ended */
	if (fd == -FI_ENOSYS || fd == -FI_ECONNRESET)
		return GSAS_OK;
	if (fd < 0)
		return GSAS_E_QUOTA;
	return gsas_job_process(gsas_pages_census(client->service->pages),
				client->job, id, fd) == 0 ?
		GSAS_OK : GSAS_E_QUOTA;
}

enum gsas_error gsas_serve_join(struct gsas_call *call)
{
	struct gsas_client *client = call->client;
	const uint64_t key[2] = { call->address, call->arg[0] };

	if (client->job != NULL)
		return GSAS_E_JOIN;
	client->job = gsas_job_get(client->service->pages, client->uid, key);
	if (client->job == NULL)
		return GSAS_E_QUOTA;
	if (join_process(client) != GSAS_OK) {
		gsas_job_put(client->service->pages, client->job);
		client->job = NULL;
		return GSAS_E_QUOTA;
	}
	call->result = client->job->number;
	return GSAS_OK;
}

enum gsas_error gsas_serve_group(struct gsas_call *call)
{
	struct gsas_client *client = call->client;
	struct gsas_pages *p = client->service->pages;
	const uint64_t name[2] = { call->address, call->arg[0] };
	struct gsas_group *group;

	if ((name[0] & 0xff) == 0)
		return GSAS_E_ARGUMENT;		/* the name is empty */
	group = gsas_group_get(p, client->uid, name);
	if (group == NULL)
		return GSAS_E_QUOTA;
	call->result = group->number;
	for (uint32_t i = 0; i < client->group_count; i++) {
		if (client->group[i] == group) {
			gsas_group_put(p, group);
			return GSAS_OK;
		}
	}
	if (client->group_count == GSAS_GROUPS_MAX) {
		gsas_group_put(p, group);
		return GSAS_E_QUOTA;
	}
	client->group[client->group_count++] = group;
	return GSAS_OK;
}

enum gsas_error gsas_serve_name(struct gsas_call *call)
{
	struct gsas_job *job = call->client->job;
	enum gsas_error error = GSAS_OK;

	if ((call->arg[0] & 0xff) == 0)
		return GSAS_E_ARGUMENT;		/* the name is empty */
	if (call->address != 0) {
		error = gsas_call_find(call);
		if (error == GSAS_OK && call->region->job != job)
			error = GSAS_E_ACCESS;
		else if (error == GSAS_OK &&
			 call->region->address != call->address)
			error = GSAS_E_ARGUMENT;
		if (error == GSAS_OK)
			error = gsas_label_set(job, call->arg, call->address);
	}
	if (error == GSAS_OK)
		call->result = gsas_label_find(job, call->arg);
	return error;
}

/* All requests before it are done: see GSAS_RULE_ORDERED. */
enum gsas_error gsas_serve_fence(struct gsas_call *call)
{
	struct gsas_client *client = call->client;

	if (call->tag == GSAS_TAG_POSTED)
		return GSAS_OK;		/* no answer to report errors in */
	call->result = client->failed;
	call->more = client->first_error;
	client->failed = 0;
	client->first_error = GSAS_OK;
	return GSAS_OK;
}

/* ---- The table of atomic operations -------------------------------------- */

enum gsas_error gsas_serve_update(struct gsas_call *call)
{
	enum gsas_op op = call->arg[0] & 0xff;
	enum gsas_type type = call->arg[0] >> 8 & 0xff;
	size_t size = gsas_type_size(type);
	enum gsas_error error;

	if (call->arg[0] >> 16 != 0)
		return GSAS_E_ARGUMENT;
	if (!gsas_op_valid(op, type, GSAS_FORM_FETCH) ||
	    size > sizeof(call->arg[1]))
		return GSAS_E_OPCODE;
	error = gsas_call_span(call, size);
	if (error == GSAS_OK)
		error = gsas_call_direct(call, type);
	if (error == GSAS_OK)
		gsas_op_apply(op, type, 1, call->memory, &call->arg[1], NULL,
			      call->tag != GSAS_TAG_POSTED ? &call->result :
			      NULL);
	return error;
}

struct atomic {
	enum gsas_op op;
	enum gsas_type type;
	enum gsas_form form;
	uint64_t count, bytes;
	const uint8_t *operand, *compare;	/* in the local space, or
						 * NULL */
	uint64_t out;			/* offset of the results in the
					 * client's space */
};

/* Decode and check the arguments of an ATOMIC, except its address. */
static enum gsas_error atomic_decode(const struct gsas_call *call,
				     struct atomic *a)
{
	uint64_t in = call->arg[1] & UINT32_MAX;
	enum gsas_error error;
	const void *operand;
	bool compares;

	a->op = call->arg[0] & 0xff;
	a->type = call->arg[0] >> 8 & 0xff;
	a->form = call->arg[0] >> 16 & 0xff;
	a->count = call->arg[0] >> 32;
	a->out = call->arg[1] >> 32;
	a->bytes = a->count * gsas_type_size(a->type);
	a->operand = a->compare = NULL;
	if (!gsas_op_valid(a->op, a->type, a->form))
		return GSAS_E_OPCODE;
	if (call->arg[0] >> 24 & 0xff || a->count == 0 ||
	    a->bytes > GSAS_BULK_MAX)
		return GSAS_E_ARGUMENT;
	if (a->op == GSAS_OP_READ)
		return GSAS_OK;
	compares = a->form == GSAS_FORM_COMPARE;
	error = gsas_call_in(call, in, compares ? 2 * a->bytes : a->bytes,
			     &operand);
	if (error != GSAS_OK)
		return error;
	a->operand = operand;
	if (compares)
		a->compare = a->operand + a->bytes;
	return GSAS_OK;
}

enum gsas_error gsas_serve_atomic(struct gsas_call *call)
{
	void *before = NULL;
	struct atomic a;
	enum gsas_error error = atomic_decode(call, &a);

	if (error == GSAS_OK)
		error = gsas_call_span(call, a.bytes);
	if (error == GSAS_OK)
		error = gsas_call_direct(call, a.type);
	if (error == GSAS_OK && a.form != GSAS_FORM_UPDATE) {
		before = call->client->service->stage;
		error = gsas_call_room(call, a.out, a.bytes);
	}
	if (error != GSAS_OK)
		return error;
	gsas_op_apply(a.op, a.type, a.count, call->memory, a.operand,
		      a.compare, before);
	if (before != NULL)
		gsas_call_out(call, a.out, before, a.bytes);
	return GSAS_OK;
}

/* ---- Bulk ---------------------------------------------------------------- */

static enum gsas_error bulk_part(const struct gsas_call *call,
				 struct gsas_part *part)
{
	if (!gsas_part_decode(part, call->address, call->arg) ||
	    part->bytes > GSAS_BULK_MAX)
		return GSAS_E_ARGUMENT;
	return gsas_call_span(call, part->whole);
}

/* On pages that are not mapped this thread is the only executor, so they are
 * copied directly. Words of mapped pages are read as gsas_copy.h says. */
enum gsas_error gsas_serve_get(struct gsas_call *call)
{
	void *stage = call->client->service->stage;
	struct gsas_part part;
	enum gsas_error error = bulk_part(call, &part);
	const uint8_t *from;

	if (error == GSAS_OK)
		error = gsas_call_room(call, part.off, part.bytes);
	if (error != GSAS_OK)
		return error;
	from = call->memory + part.begin;
	if (gsas_region_mapped(call->region)) {
		gsas_copy_from_shared(stage, from, part.bytes);
		from = stage;
	}
	gsas_call_out(call, part.off, from, part.bytes);
	call->result = part.bytes;
	return GSAS_OK;
}

enum gsas_error gsas_serve_put(struct gsas_call *call)
{
	struct gsas_part part;
	enum gsas_error error = bulk_part(call, &part);
	const void *src;

	if (error == GSAS_OK)
		error = gsas_call_in(call, part.off, part.bytes, &src);
	if (error != GSAS_OK)
		return error;
	/* on pages that are not mapped this thread is the only executor */
	if (gsas_region_mapped(call->region))
		gsas_copy_to_shared(call->memory + part.begin, src, part.bytes);
	else
		memcpy(call->memory + part.begin, src, part.bytes);
	call->result = part.bytes;
	return GSAS_OK;
}

/* Only the job of a queue may map it, even if other jobs may enqueue. */
enum gsas_error gsas_serve_map(struct gsas_call *call)
{
	const struct gsas_region *region = call->region;
	struct gsas_map_info info;
	enum gsas_error error;

	if (region->queue != NULL && region->job != call->client->job)
		return GSAS_E_ACCESS;
	error = gsas_call_room(call, call->arg[1], sizeof(info));
	if (error == GSAS_OK)
		error = gsas_region_map_info(call->client->service->pages,
					     region, &info);
	if (error == GSAS_OK)
		gsas_call_out(call, call->arg[1], &info, sizeof(info));
	call->result = region->attr;
	return error;
}

enum gsas_error gsas_serve_numbers(struct gsas_call *call)
{
	struct gsas_service *service = call->client->service;

	if (service->numbers_given > GSAS_OFFSET_MASK)
		return GSAS_E_MEMORY;	/* the next one was given first */
	call->result = gsas_base(service->attr.pages.board) |
		       (service->numbers & GSAS_OFFSET_MASK);
	service->numbers += GSAS_NUMBERS_GIVEN;
	service->numbers_given += GSAS_NUMBERS_GIVEN;
	return GSAS_OK;
}

struct gsas_stat *gsas_stat_read(struct gsas_service *service)
{
	gsas_pages_stat(service->pages, &service->stat);
	service->stat.words = gsas_service_words(service);
	return &service->stat;
}

/* ---- Counters, lists, orphans -------------------------------------------- */

enum gsas_error gsas_serve_stat(struct gsas_call *call)
{
	struct gsas_service *service = call->client->service;
	enum gsas_error error = gsas_call_room(call, call->arg[1],
					       sizeof(service->stat));

	if (error == GSAS_OK)
		gsas_call_out(call, call->arg[1], gsas_stat_read(service),
			      sizeof(service->stat));
	return error;
}

/* Number of interfaces of a job; if there are none, of processes that joined
 * it; if there are none, 1 if a process holds it (gsas_hold.h), or if that is
 * not known. 0: the regions of the job are orphans. */
static uint32_t living(struct gsas_pages *p, struct gsas_job *job)
{
	if (gsas_job_present(job))
		return job->clients > 0 ? job->clients : job->processes;
	return gsas_job_lives(gsas_pages_census(p), job);
}

enum gsas_error gsas_serve_list(struct gsas_call *call)
{
	struct gsas_service *service = call->client->service;
	struct gsas_list_entry *entry = (void *)service->stage;
	uint64_t max = call->arg[0], count = 0;
	const struct gsas_region *region;
	enum gsas_error error;

	if (max == 0 || max > GSAS_BULK_MAX / sizeof(*entry))
		return GSAS_E_ARGUMENT;
	error = gsas_call_room(call, call->arg[1], max * sizeof(*entry));
	if (error != GSAS_OK)
		return error;
	gsas_census_begin(gsas_pages_census(service->pages));
	region = gsas_region_from(service->pages, call->address);
	for (int i = 0; region != NULL && count < max && i < VISITS_MAX; i++) {
		if (region->job->user->uid == call->client->uid)
			entry[count++] = (struct gsas_list_entry){
				.address = region->address,
				.pages = region->pages,
				.attr = region->attr,
				.job = region->job->number,
				.clients = living(service->pages,
						  region->job),
			};
		region = gsas_region_from(service->pages, region->address + 1);
	}
	gsas_call_out(call, call->arg[1], entry, count * sizeof(*entry));
	call->result = count;
	call->more = region != NULL ? region->address : 0;
	return GSAS_OK;
}

/* Does the region belong to the caller's user, and no process of its job
 * live? */
static bool is_orphan(const struct gsas_call *call,
		      const struct gsas_region *region)
{
	struct gsas_pages *p = call->client->service->pages;

	return region->job->user->uid == call->client->uid &&
	       !gsas_job_lives(gsas_pages_census(p), region->job);
}

/* Free the orphan at the address. */
static enum gsas_error reclaim_one(struct gsas_call *call)
{
	struct gsas_service *service = call->client->service;
	enum gsas_error error = gsas_call_find(call);

	if (call->memory == NULL)
		return error;
	if (call->region->job->user->uid != call->client->uid)
		return GSAS_E_ACCESS;
	if (!is_orphan(call, call->region))
		return GSAS_E_STATE;
	if (call->region->address != call->address)
		return GSAS_E_ARGUMENT;
	call->result = call->region->pages;
	gsas_service_free_region(service, call->region);
	return GSAS_OK;
}

enum gsas_error gsas_serve_reclaim(struct gsas_call *call)
{
	struct gsas_service *service = call->client->service;
	struct gsas_region *region;
	int freed = 0;

	gsas_census_begin(gsas_pages_census(service->pages));
	if (call->address != 0)
		return reclaim_one(call);
	region = gsas_region_from(service->pages, call->arg[0]);
	for (int i = 0; region != NULL && freed < RECLAIM_MAX &&
	     call->result < RECLAIM_PAGES && i < VISITS_MAX; i++) {
		uint64_t address = region->address;

		if (is_orphan(call, region)) {
			call->result += region->pages;
			gsas_service_free_region(service, region);
			freed++;
		}
		region = gsas_region_from(service->pages, address + 1);
	}
	call->more = region != NULL ? region->address : 0;
	return GSAS_OK;
}
