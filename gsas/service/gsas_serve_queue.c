/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_serve_queue.c - requests to queues: the clients that have a queue open,
 * their notifications, and QUEUE_WAIT. gsas_queue.h manages the memory of a
 * queue and its windows.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/fi_errno.h>

#include "service/gsas_segment.h"
#include "service/gsas_serve_queue.h"

#define TAKE_MAX	512		/* most words that a DEQUEUE takes, so
					 * that it does not take long */

/* The queue of a region (region->queue); freed with the region. */
struct served_queue {
	struct gsas_service *service;
	struct gsas_queue *queue;
	struct gsas_queue_view view;	/* for DEQUEUE */
	struct unm_list list;		/* in service->queues */
	struct unm_list to_check;	/* in service->to_check or ->waiting */
	bool changed;			/* it is in service->to_check */
	struct unm_list opens;		/* struct gsas_open */
	struct unm_list sleeps;		/* struct gsas_sleep */
};

/* A QUEUE_WAIT, freed when it is answered. */
struct gsas_sleep {
	struct gsas_client *client;
	uint64_t address;
	uint8_t tag;
	enum gsas_error error;		/* of the answer */
	struct unm_list list;		/* in served_queue.sleeps, or in none */
	struct unm_list mine;		/* in client->sleeps or client->woken */
};

/* A queue that a client has open. If the queue is freed, it exists until the
 * client was notified. */
struct gsas_open {
	uint64_t address;
	struct gsas_producer *producer;	/* NULL: the queue was freed */
	struct gsas_client *client;
	struct served_queue *queue;
	struct gsas_open *next;		/* in its bucket of client->opens */
	struct unm_list list;		/* in served_queue.opens */
	struct unm_list to_notify;	/* in client->to_notify, or in none */
};

/* Let the next gsas_service_grant() check the queue. */
static void queue_changed(struct served_queue *q)
{
	if (q->changed)
		return;
	q->changed = true;
	unm_list_remove(&q->to_check);
	unm_list_append(&q->service->to_check, &q->to_check);
}

/* ---- QUEUE_WAIT ---------------------------------------------------------- */

static void sleep_free(struct gsas_sleep *sleep)
{
	sleep->client->sleep_count--;
	unm_list_remove(&sleep->list);
	unm_list_remove(&sleep->mine);
	free(sleep);
}

static bool sleep_answer(struct gsas_sleep *sleep)
{
	struct gsas_answer answer = {
		.opcode = GSAS_QUEUE_WAIT, .tag = sleep->tag,
		.response.error = sleep->error,
	};

	if (!gsas_client_answer(sleep->client, &answer))
		return false;
	sleep_free(sleep);
	return true;
}

/* End a QUEUE_WAIT: it is answered after those of the client that ended before
 * and were not answered yet. */
static void sleep_end(struct gsas_sleep *sleep, enum gsas_error error)
{
	struct gsas_client *client = sleep->client;
	struct gsas_answer answer = {
		.opcode = GSAS_QUEUE_WAIT, .tag = sleep->tag,
		.response.error = error,
	};

	(void)gsas_client_count(client, &answer, sleep->address);
	sleep->error = error;
	unm_list_remove(&sleep->list);
	unm_list_remove(&sleep->mine);
	unm_list_append(&client->woken, &sleep->mine);
	if (!gsas_client_answer_woken(client))
		gsas_client_block(client);
}

bool gsas_client_answer_woken(struct gsas_client *client)
{
	while (!unm_list_empty(&client->woken))
		if (!sleep_answer(unm_container(client->woken.next,
						struct gsas_sleep, mine)))
			return false;
	return true;
}

/* End all waits at a queue, not only the first, because the first client may
 * not take the word. */
static void wake_all(struct served_queue *q, enum gsas_error error)
{
	while (!unm_list_empty(&q->sleeps))
		sleep_end(unm_container(q->sleeps.next, struct gsas_sleep,
					list), error);
}

/* End all waits of a client at a queue. Returns their number. */
static uint32_t wake_own(struct gsas_client *client, uint64_t address)
{
	uint32_t n = 0;

	unm_list_for_each_safe(pos, tmp, &client->sleeps) {
		struct gsas_sleep *sleep = unm_container(pos, struct gsas_sleep,
							 mine);

		if (sleep->address != address)
			continue;
		sleep_end(sleep, GSAS_E_AGAIN);
		n++;
	}
	return n;
}

static void drop_sleeps(struct unm_list *sleeps)
{
	while (!unm_list_empty(sleeps))
		sleep_free(unm_container(sleeps->next, struct gsas_sleep,
					 mine));
}

/* ---- Open queues of a client, by address --------------------------------- */

static struct gsas_open **open_bucket(struct gsas_client *client,
				      uint64_t address)
{
	uint64_t hash = (address >> GSAS_PAGE_SHIFT) *
			UINT64_C(0x9E3779B97F4A7C15);

	return &client->opens[(hash >> 32) % GSAS_OPEN_BUCKETS];
}

static struct gsas_open *open_find(struct gsas_client *client, uint64_t address)
{
	struct gsas_open *open = client->recent;

	if (open != NULL && open->address == address)
		return open;
	if (client->opens == NULL)
		return NULL;
	open = *open_bucket(client, address);
	while (open != NULL && open->address != address)
		open = open->next;
	if (open != NULL)
		client->recent = open;
	return open;
}

/* Remove an open queue from its client's hash, and its producer. */
static void open_close(struct gsas_open *open)
{
	struct gsas_client *client = open->client;
	struct gsas_open **at = open_bucket(client, open->address);

	while (*at != open)
		at = &(*at)->next;
	*at = open->next;
	if (client->recent == open)
		client->recent = NULL;
	gsas_producer_close(open->producer);
	open->producer = NULL;
	unm_list_remove(&open->list);
}

static void open_free(struct gsas_open *open)
{
	open->client->open_count--;
	unm_list_remove(&open->to_notify);
	free(open);
}

static void open_end(struct gsas_open *open)
{
	open_close(open);
	open_free(open);
}

void gsas_client_close_queues(struct gsas_client *client)
{
	drop_sleeps(&client->sleeps);
	drop_sleeps(&client->woken);
	if (client->opens == NULL)
		return;
	while (!unm_list_empty(&client->to_notify)) {
		struct gsas_open *open = unm_container(
			client->to_notify.next, struct gsas_open, to_notify);

		if (open->producer == NULL)
			open_free(open);
		else
			unm_list_remove(&open->to_notify);
	}
	for (int i = 0; i < GSAS_OPEN_BUCKETS; i++) {
		while (client->opens[i] != NULL) {
			queue_changed(client->opens[i]->queue);
			open_end(client->opens[i]);
		}
	}
	free(client->opens);
}

/* ---- Memory of queues ---------------------------------------------------- */

/* Make a hole in shared memory. If the system cannot, the memory is kept. The
 * system's pages may be larger than 4 KiB; the first and the last of these may
 * have other buffers too, and are kept. */
static void give_back(void *memory, uint64_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *at = memory, *end = at + bytes;
	uint8_t *from = at + -(uintptr_t)at % page;
	uint8_t *to = end - (uintptr_t)end % page;

	if (from < to)
		(void)madvise(from, (size_t)(to - from), MADV_REMOVE);
}

static bool populate(void *ctx, void *at, uint64_t bytes)
{
	const struct gsas_memory *memory = ctx;

	return memory->refill == NULL ||
		memory->refill(memory->ctx, at, bytes);
}

void gsas_region_hollow(const struct gsas_region *region)
{
	const struct gsas_block *block = &region->segment->block;

	give_back(block->memory, block->bytes);
}

enum gsas_error gsas_region_make_queue(struct gsas_service *service,
				       struct gsas_region *region,
				       uint32_t quota, uint32_t buffer)
{
	struct gsas_queue_system system = {
		.give_back = give_back, .populate = populate,
		.ctx = &service->attr.pages.memory,
	};
	struct served_queue *q = calloc(1, sizeof(*q));
	enum gsas_error error;
	uint64_t left;
	void *memory;

	if (q == NULL)
		return GSAS_E_MEMORY;
	q->service = service;
	memory = gsas_pages_find(service->pages, region->address, &region,
				 &left, &error);
	if (gsas_queue_new(memory, quota, buffer, &system,
			   &q->queue) != 0)
		goto free_q;
	if (gsas_queue_view(memory, left, &q->view) != 0)
		goto free_queue;
	unm_list_init(&q->opens);
	unm_list_init(&q->sleeps);
	unm_list_init(&q->to_check);
	unm_list_append(&service->queues, &q->list);
	region->queue = q;
	return GSAS_OK;

free_queue:
	gsas_queue_free(q->queue);
free_q:
	free(q);
	return GSAS_E_MEMORY;
}

/* ---- Requests ------------------------------------------------------------ */

/* The queue at call->address, which has to be its first byte. */
static enum gsas_error queue_of(const struct gsas_call *call,
				struct served_queue **q)
{
	if (call->region->queue == NULL)
		return GSAS_E_STATE;
	if (call->region->address != call->address)
		return GSAS_E_ARGUMENT;
	*q = call->region->queue;
	return GSAS_OK;
}

static enum gsas_error open_begin(struct gsas_call *call,
				  struct served_queue *q)
{
	struct gsas_client *client = call->client;
	struct gsas_open *open, **bucket;
	enum gsas_error error;

	if (client->opens == NULL)
		client->opens = calloc(GSAS_OPEN_BUCKETS,
				       sizeof(*client->opens));
	open = calloc(1, sizeof(*open));
	if (client->opens == NULL || open == NULL)
		error = GSAS_E_MEMORY;
	else
		error = gsas_producer_open(q->queue, open, &open->producer);
	if (error != GSAS_OK) {
		free(open);
		return error;
	}
	open->address = call->address;
	open->client = client;
	open->queue = q;
	bucket = open_bucket(client, call->address);
	open->next = *bucket;
	*bucket = open;
	client->open_count++;
	unm_list_append(&q->opens, &open->list);
	unm_list_init(&open->to_notify);
	queue_changed(q);
	call->result = gsas_producer_granted(open->producer);
	return GSAS_OK;
}

enum gsas_error gsas_serve_queue_open(struct gsas_call *call)
{
	struct served_queue *q;
	enum gsas_error error = queue_of(call, &q);

	if (error != GSAS_OK)
		return error;
	if (open_find(call->client, call->address) != NULL)
		return GSAS_E_STATE;
	if (call->client->open_count >= GSAS_OPENS_MAX)
		return GSAS_E_QUOTA;
	return open_begin(call, q);
}

/* The error of a request to a queue that the client does not have open. */
static enum gsas_error not_open(struct gsas_call *call)
{
	enum gsas_error error = gsas_call_find(call);

	return error != GSAS_OK ? error : GSAS_E_STATE;
}

enum gsas_error gsas_serve_queue_close(struct gsas_call *call)
{
	struct gsas_open *open = open_find(call->client, call->address);
	uint32_t woken = wake_own(call->client, call->address);

	if (open == NULL)
		return woken != 0 ? GSAS_OK : not_open(call);
	queue_changed(open->queue);
	open_end(open);
	return GSAS_OK;
}

enum gsas_error gsas_serve_enqueue(struct gsas_call *call)
{
	struct gsas_open *open = open_find(call->client, call->address);
	enum gsas_error error;

	if (open == NULL)
		return not_open(call);
	error = gsas_queue_put(open->producer, call->arg[0]);
	queue_changed(open->queue);
	if (error == GSAS_OK)
		wake_all(open->queue, GSAS_OK);
	call->result = gsas_producer_granted(open->producer);
	call->more = call->address;
	return error;
}

/* Words are put in by requests only, that is by this thread, so none is missed
 * between the check and the insertion in the list. */
enum gsas_error gsas_serve_queue_wait(struct gsas_call *call)
{
	struct gsas_client *client = call->client;
	struct gsas_sleep *sleep;
	struct served_queue *q;
	enum gsas_error error;

	if (call->region->job != client->job)
		return GSAS_E_ACCESS;
	error = queue_of(call, &q);
	if (error == GSAS_OK && call->tag == GSAS_TAG_POSTED)
		error = GSAS_E_ARGUMENT;
	if (error != GSAS_OK || gsas_queue_words(q->queue) != 0)
		return error;
	if (client->sleep_count >= GSAS_DEFERRED_MAX)
		return GSAS_E_AGAIN;
	sleep = calloc(1, sizeof(*sleep));
	if (sleep == NULL)
		return GSAS_E_MEMORY;
	sleep->client = client;
	sleep->address = call->address;
	sleep->tag = call->tag;
	client->sleep_count++;
	unm_list_append(&q->sleeps, &sleep->list);
	unm_list_append(&client->sleeps, &sleep->mine);
	return GSAS_DEFERRED;
}

/* For clients that cannot map the queue. */
enum gsas_error gsas_serve_dequeue(struct gsas_call *call)
{
	uint32_t max = (uint32_t)call->arg[0], count = 0;
	uint64_t off = call->arg[0] >> 32;
	uint64_t *words = (uint64_t *)(void *)call->client->service->stage;
	struct served_queue *q;
	enum gsas_error error;
	bool notify = max == 0;
	int ret = 0;

	if (call->region->job != call->client->job)
		return GSAS_E_ACCESS;
	error = queue_of(call, &q);
	if (error == GSAS_OK && max > GSAS_BULK_MAX / sizeof(*words))
		error = GSAS_E_ARGUMENT;
	if (error == GSAS_OK)
		error = gsas_call_room(call, off, max * sizeof(*words));
	if (error != GSAS_OK)
		return error;
	while (count < max && count < TAKE_MAX) {
		bool wanted = false;

		ret = gsas_queue_take(&q->view, &words[count], &wanted);
		notify = notify || wanted;
		if (ret != 0)
			break;
		count++;
	}
	if (notify)
		queue_changed(q);
	if (count == 0 && ret == -FI_EIO)
		return GSAS_E_STATE;
	gsas_call_out(call, off, words, count * sizeof(*words));
	call->result = count;
	return GSAS_OK;
}

/* ---- Grants -------------------------------------------------------------- */

/* Notify a client of the words that it may send now, or that the queue was
 * freed. false: there are no credits. */
static bool open_notify(struct gsas_open *open)
{
	struct gsas_answer answer = {
		.opcode = GSAS_ENQUEUE, .more = open->address,
	};

	if (open->producer != NULL)
		answer.response.result = gsas_producer_granted(open->producer);
	else
		answer.response.error = GSAS_E_FREED;
	if (open->producer != NULL && gsas_producer_full(open->producer))
		answer.response.error = gsas_queue_starved(open->queue->queue) ?
			GSAS_E_MEMORY : GSAS_E_AGAIN;
	if (!gsas_client_answer(open->client, &answer))
		return false;
	unm_list_remove(&open->to_notify);
	if (open->producer == NULL)
		open_free(open);
	return true;
}

bool gsas_client_notify_grants(struct gsas_client *client)
{
	while (!unm_list_empty(&client->to_notify))
		if (!open_notify(unm_container(client->to_notify.next,
					       struct gsas_open, to_notify)))
			return false;
	return true;
}

/* Notify a client at once if it takes its answers. If not, it is notified when
 * it does, of the state at that time. */
static void notify_or_keep(struct gsas_open *open)
{
	struct gsas_client *client = open->client;

	if (!unm_list_empty(&open->to_notify) ||
	    (unm_list_empty(&client->blocked) && open_notify(open)))
		return;
	unm_list_append(&client->to_notify, &open->to_notify);
	gsas_client_block(client);
}

/* Grant words of a queue. Returns whether to check the queue again
 * periodically. */
static bool queue_grant(struct served_queue *q)
{
	struct gsas_producer *producer;
	bool waits;

	while ((producer = gsas_queue_grant(q->queue, &waits)) != NULL)
		notify_or_keep(gsas_producer_user(producer));
	return waits;
}

bool gsas_service_grant(struct gsas_service *service)
{
	struct unm_list *pos;

	/* A taker may be killed before it notifies the service. So check one
	 * of the waiting queues in each call. */
	if (!unm_list_empty(&service->waiting))
		queue_changed(unm_container(service->waiting.next,
					    struct served_queue, to_check));
	while ((pos = unm_list_pop(&service->to_check)) != NULL) {
		struct served_queue *q = unm_container(pos, struct served_queue,
						       to_check);

		q->changed = false;
		if (queue_grant(q))
			unm_list_append(&service->waiting, &q->to_check);
	}
	return !unm_list_empty(&service->waiting);
}

/* All clients that have the queue open or wait for words are notified, because
 * they would wait for ever. */
void gsas_region_end_queue(struct gsas_region *region)
{
	struct served_queue *q = region->queue;

	while (!unm_list_empty(&q->opens)) {
		struct gsas_open *open = unm_container(q->opens.next,
						       struct gsas_open, list);

		open_close(open);
		notify_or_keep(open);
	}
	wake_all(q, GSAS_E_FREED);
	unm_list_remove(&q->list);
	unm_list_remove(&q->to_check);
	gsas_queue_free(q->queue);
	free(q);
	region->queue = NULL;
}

uint64_t gsas_service_words(const struct gsas_service *service)
{
	uint64_t words = 0;

	unm_list_for_each(pos, &service->queues)
		words += gsas_queue_words(unm_container(pos,
				struct served_queue, list)->queue);
	return words;
}
