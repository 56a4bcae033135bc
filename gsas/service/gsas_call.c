/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_call.c - what requests have in common: the check of an address, the
 * count of answers, the log of refusals.
 */
#include <inttypes.h>
#include <stdio.h>

#include "service/gsas_call.h"

/* ---- Checks -------------------------------------------------------------- */

static bool may_access(const struct gsas_client *client,
		       const struct gsas_region *region)
{
	if (region->job == client->job)
		return true;
	if (GSAS_ATTR_MODE(region->attr) != GSAS_MODE_GROUP)
		return GSAS_ATTR_MODE(region->attr) == GSAS_MODE_WORLD;
	for (uint32_t i = 0; i < client->group_count; i++)
		if (client->group[i] == region->group)
			return true;
	return false;
}

enum gsas_error gsas_call_find(struct gsas_call *call)
{
	enum gsas_error error;

	call->memory = gsas_pages_find(call->client->service->pages,
				       call->address, &call->region,
				       &call->left, &error);
	if (call->memory == NULL)
		return error;
	return may_access(call->client, call->region) ? GSAS_OK : GSAS_E_ACCESS;
}

/* The error for a result of gsas_io.in() or gsas_io.room(). */
static enum gsas_error space_error(int ret)
{
	if (ret == 0)
		return GSAS_OK;
	return ret == -FI_ENOMEM ? GSAS_E_MEMORY : GSAS_E_ARGUMENT;
}

enum gsas_error gsas_call_in(const struct gsas_call *call, uint64_t off,
			     uint64_t len, const void **at)
{
	const struct gsas_client *client = call->client;

	return space_error(client->service->attr.io.in(client->io_ctx, off, len,
						       at));
}

enum gsas_error gsas_call_room(const struct gsas_call *call, uint64_t off,
			       uint64_t len)
{
	const struct gsas_client *client = call->client;

	return space_error(client->service->attr.io.room(client->io_ctx, off,
							 len));
}

/* ---- Answers ------------------------------------------------------------- */

/* The text of a log line for errors that refuse access; NULL: no log line. */
static const char *refusal(uint64_t error)
{
	switch (error) {
	case GSAS_E_ACCESS:
		return "belongs to another job";
	case GSAS_E_JOIN:
		return "needs a job, and one only";
	case GSAS_E_EXEC:
		return "names a program that is not allowed";
	default:
		return NULL;
	}
}

static void log_refusal(struct gsas_client *client,
			const struct gsas_answer *answer, uint64_t address)
{
	uint64_t error = answer->response.error;
	const char *why = refusal(error);
	char line[192];

	if (why == NULL || client->logged & UINT32_C(1) << error ||
	    client->service->attr.log == NULL)
		return;
	client->logged |= UINT32_C(1) << error;
	snprintf(line, sizeof(line), "refused: %s at 0x%016" PRIx64 " %s: "
		 "identity %u:%#x, user %u, job %u",
		 client->service->rules[answer->opcode].name, address, why,
		 (unsigned int)(client->identity >> 32),
		 (unsigned int)client->identity, client->uid,
		 client->job != NULL ? client->job->number : 0);
	client->service->attr.log(line);
}

bool gsas_client_count(struct gsas_client *client,
		       const struct gsas_answer *answer, uint64_t address)
{
	struct gsas_stat *stat = &client->service->stat;
	uint64_t error = answer->response.error;

	stat->error[error]++;
	if (error != GSAS_OK) {
		stat->refused++;
		log_refusal(client, answer, address);
	}
	if (answer->tag != GSAS_TAG_POSTED)
		return true;
	if (error != GSAS_OK && client->failed++ == 0)
		client->first_error = error;
	return false;
}

void gsas_client_block(struct gsas_client *client)
{
	if (unm_list_empty(&client->blocked))
		unm_list_append(&client->service->blocked, &client->blocked);
}
