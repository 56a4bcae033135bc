/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_service_fixture.c - a GSAS service and its clients in one process, see
 * gsas_service_fixture.h
 *
 * Owns the memory of the service (memory_*()), the connections of the clients
 * (io_*()), and the functions that tests send requests with.
 */
#include <rdma/fi_errno.h>

#include "lib/unit.h"
#include "lib/gsas_service_fixture.h"

/* The log function has no context argument: one fixture at a time. */
static struct fixture *g_fixture;

/* ---- Memory -------------------------------------------------------------- */

static int memory_alloc(void *ctx, uint64_t bytes, bool mapped,
			struct gsas_block *block)
{
	struct fixture *fixture = ctx;

	(void)mapped;
	if (fixture->fail_alloc > 0) {
		fixture->fail_alloc--;
		return -FI_ENOMEM;
	}
	block->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED |
			     MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (block->memory == MAP_FAILED)
		return -FI_ENOMEM;
	block->bytes = bytes;
	block->cookie = block->memory;
	pthread_mutex_lock(&fixture->lock);
	if (fixture->blocks == FIXTURE_BLOCKS)
		abort();	/* cmocka's asserts need the main thread */
	fixture->block[fixture->blocks++] = *block;
	pthread_mutex_unlock(&fixture->lock);
	return 0;
}

static void memory_free(void *ctx, struct gsas_block *block)
{
	struct fixture *fixture = ctx;

	int i = 0;

	pthread_mutex_lock(&fixture->lock);
	while (i < fixture->blocks && fixture->block[i].memory != block->memory)
		i++;
	if (i == fixture->blocks)
		abort();
	fixture->block[i] = fixture->block[--fixture->blocks];
	pthread_mutex_unlock(&fixture->lock);
	munmap(block->memory, block->bytes);
}

static int memory_key(void *ctx, const struct gsas_block *block,
		      uint64_t key[2])
{
	(void)ctx;
	key[0] = (uintptr_t)block->cookie;
	key[1] = block->bytes;
	return 0;
}

/* ---- Connection of a client ---------------------------------------------- */

static bool in_space(uint64_t off, uint64_t len)
{
	return off <= FIXTURE_SPACE && len <= FIXTURE_SPACE - off;
}

static int io_in(void *ctx, uint64_t off, uint64_t len, const void **at)
{
	struct fixture_client *client = ctx;

	if (!in_space(off, len))
		return -FI_EINVAL;
	*at = client->in + off;
	return 0;
}

static int io_room(void *ctx, uint64_t off, uint64_t len)
{
	(void)ctx;
	return in_space(off, len) ? 0 : -FI_EINVAL;
}

static void io_out(void *ctx, uint64_t off, const void *src, uint64_t len)
{
	struct fixture_client *client = ctx;

	assert_true(in_space(off, len));
	memcpy(client->out + off, src, len);
}

static int io_answer(void *ctx, const struct gsas_answer *answer)
{
	struct fixture_client *client = ctx;

	if (client->refuse > 0) {
		client->refuse--;
		return -FI_EAGAIN;
	}
	assert_true(client->answers < FIXTURE_ANSWERS);
	client->answer[client->answers++] = *answer;
	return 0;
}

static void wake(void *ctx)
{
	struct fixture *fixture = ctx;

	fixture->wakes++;
}

static void keep_line(const char *line)
{
	g_fixture->lines++;
	snprintf(g_fixture->line, sizeof(g_fixture->line), "%s", line);
}

enum gsas_error fixture_spawn(void *ctx, const struct gsas_spawn *spawn,
			      uint64_t *pid)
{
	struct fixture *fixture = ctx;

	if (fixture->spawn_error != GSAS_OK)
		return fixture->spawn_error;
	snprintf(fixture->spawned.path, sizeof(fixture->spawned.path), "%s",
		 spawn->path);
	fixture->spawned.argument = spawn->argument;
	fixture->spawned.job[0] = spawn->job[0];
	fixture->spawned.job[1] = spawn->job[1];
	fixture->spawned.uid = spawn->uid;
	*pid = 4711;
	return GSAS_OK;
}

/* ---- Service and clients ------------------------------------------------- */

struct fixture *fixture_new(const struct gsas_service_attr *attr)
{
	struct gsas_service_attr a = { .spawn = fixture_spawn };
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	if (attr != NULL)
		a = *attr;
	a.pages.board = FIXTURE_BOARD;
	a.pages.memory = (struct gsas_memory){
		.alloc = memory_alloc, .free = memory_free,
		.key = memory_key, .ctx = fixture,
	};
	a.io = (struct gsas_io){ .in = io_in, .room = io_room,
					 .out = io_out, .answer = io_answer };
	a.spawn_ctx = fixture;
	a.log = keep_line;
	a.wake = wake;
	a.wake_ctx = fixture;
	assert_int_equal(gsas_service_new(&a, &fixture->service), 0);
	pthread_mutex_init(&fixture->lock, NULL);
	g_fixture = fixture;
	return fixture;
}

void fixture_free(struct fixture *fixture)
{
	for (unsigned int i = 0; i < fixture->clients; i++)
		if (i % 2 == 0)		/* gsas_service_free() ends every second
					 * client */
			fixture_end(fixture->client[i]);
	gsas_service_free(fixture->service);
	assert_int_equal(fixture->blocks, 0);
	for (unsigned int i = 0; i < fixture->clients; i++)
		free(fixture->client[i]);
	pthread_mutex_destroy(&fixture->lock);
	free(fixture);
}

struct fixture_client *fixture_unjoined(struct fixture *fixture, uint32_t uid)
{
	struct fixture_client *client = calloc(1, sizeof(*client));

	assert_non_null(client);
	assert_true(fixture->clients < FIXTURE_CLIENTS);
	client->fixture = fixture;
	client->identity = UINT64_C(1) << 32 | fixture->clients;
	assert_int_equal(gsas_client_new(fixture->service, client->identity,
					 uid, client, &client->client),
			 0);
	fixture->client[fixture->clients++] = client;
	return client;
}

struct fixture_client *fixture_client(struct fixture *fixture, uint32_t uid,
				      uint64_t job)
{
	struct fixture_client *client = fixture_unjoined(fixture, uid);

	fixture_result(client, GSAS_JOIN, job, ~job, 0);
	fixture_forget(client);
	return client;
}

void fixture_end(struct fixture_client *client)
{
	if (client->client != NULL)
		gsas_client_free(client->client);
	client->client = NULL;
}

/* ---- Requests ------------------------------------------------------------ */

bool fixture_send(struct fixture_client *client, uint8_t opcode, uint8_t tag,
		  uint64_t address, uint64_t arg1, uint64_t arg2)
{
	const uint64_t w[GSAS_WORDS] = { address, arg1, arg2 };

	return gsas_service_request(client->client, (uint64_t)opcode << 56 |
				    (uint64_t)tag << 48 | client->identity, w);
}

const struct gsas_answer *fixture_answer(const struct fixture_client *client,
					 uint8_t tag)
{
	const struct gsas_answer *found = NULL;

	for (unsigned int i = 0; i < client->answers; i++) {
		if (client->answer[i].tag != tag)
			continue;
		assert_null(found);
		found = &client->answer[i];
	}
	return found;
}

void fixture_forget(struct fixture_client *client)
{
	client->answers = 0;
}

struct gsas_answer fixture_ask(struct fixture_client *client, uint8_t opcode,
			       uint64_t address, uint64_t arg1, uint64_t arg2)
{
	const struct gsas_answer *answer = NULL;

	client->tag = client->tag % GSAS_TAGS + 1;
	if (client->answers > FIXTURE_ANSWERS / 2 || client->tag == 1)
		fixture_forget(client);
	while (!fixture_send(client, opcode, client->tag, address, arg1, arg2))
		gsas_service_progress(client->fixture->service);
	while ((answer = fixture_answer(client, client->tag)) == NULL) {
		gsas_service_progress(client->fixture->service);
		sched_yield();
	}
	return *answer;
}

uint64_t fixture_error(struct fixture_client *client, uint8_t opcode,
		       uint64_t address, uint64_t arg1, uint64_t arg2)
{
	struct gsas_answer answer = fixture_ask(client, opcode, address, arg1,
						arg2);

	if (answer.response.error != GSAS_OK)
		assert_int_equal(answer.response.result, 0);
	return answer.response.error;
}

uint64_t fixture_result(struct fixture_client *client, uint8_t opcode,
			uint64_t address, uint64_t arg1, uint64_t arg2)
{
	struct gsas_answer answer = fixture_ask(client, opcode, address, arg1,
						arg2);

	assert_int_equal(answer.response.error, GSAS_OK);
	assert_int_equal(answer.opcode, opcode);
	return answer.response.result;
}

uint64_t fixture_alloc(struct fixture_client *client, uint64_t pages,
		       uint64_t attr)
{
	return fixture_result(client, GSAS_ALLOC, 0, pages, attr);
}

void fixture_settle(struct fixture *fixture)
{
	/* Each call executes a bounded part of the work queue. */
	for (int i = 0; i < 100; i++)
		gsas_service_progress(fixture->service);
}

static uint64_t mix(uint64_t hash, const void *from, uint64_t bytes)
{
	const uint8_t *at = from;
	uint64_t word;

	for (uint64_t i = 0; i + 8 <= bytes; i += 8) {
		memcpy(&word, at + i, 8);
		hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
		hash ^= hash >> 29;
	}
	return hash;
}

uint64_t fixture_hash(struct fixture *fixture)
{
	uint64_t hash = 1;

	for (int i = 0; i < fixture->blocks; i++)
		hash = mix(hash, fixture->block[i].memory,
			   fixture->block[i].bytes);
	for (unsigned int i = 0; i < fixture->clients; i++)
		hash = mix(hash, fixture->client[i]->out, FIXTURE_SPACE);
	return hash;
}
