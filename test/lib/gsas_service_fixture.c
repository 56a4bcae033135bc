/* SPDX-License-Identifier: BSD-2-Clause */
/* gsas_service_fixture.c - see gsas_service_fixture.h. */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <rdma/fi_errno.h>

#include "lib/unit.h"
#include "lib/gsas_service_fixture.h"

/* the log has no context: one world at a time */
static struct world *g_world;

/* ---- Memory -------------------------------------------------------------- */

static int memory_alloc(void *ctx, uint64_t bytes, bool mapped,
			struct gsas_block *block)
{
	struct world *world = ctx;

	(void)mapped;
	if (world->fail_alloc > 0) {
		world->fail_alloc--;
		return -FI_ENOMEM;
	}
	block->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED |
			     MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (block->memory == MAP_FAILED)
		return -FI_ENOMEM;
	block->bytes = bytes;
	block->cookie = block->memory;
	pthread_mutex_lock(&world->lock);
	if (world->blocks == WORLD_BLOCKS)
		abort();	/* no assertion: this may be the worker */
	world->block[world->blocks++] = *block;
	pthread_mutex_unlock(&world->lock);
	return 0;
}

static void memory_free(void *ctx, struct gsas_block *block)
{
	struct world *world = ctx;

	int i = 0;

	pthread_mutex_lock(&world->lock);
	while (i < world->blocks && world->block[i].memory != block->memory)
		i++;
	if (i == world->blocks)
		abort();
	world->block[i] = world->block[--world->blocks];
	pthread_mutex_unlock(&world->lock);
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

/* ---- What comes and goes ------------------------------------------------- */

static bool in_space(uint64_t off, uint64_t len)
{
	return off <= WORLD_SPACE && len <= WORLD_SPACE - off;
}

static const void *io_in(void *ctx, uint64_t off, uint64_t len)
{
	struct world_client *client = ctx;

	return in_space(off, len) ? client->in + off : NULL;
}

static int io_room(void *ctx, uint64_t off, uint64_t len)
{
	(void)ctx;
	return in_space(off, len) ? 0 : -FI_EINVAL;
}

static void io_out(void *ctx, uint64_t off, const void *src, uint64_t len)
{
	struct world_client *client = ctx;

	assert_true(in_space(off, len));
	memcpy(client->out + off, src, len);
}

static int io_answer(void *ctx, const struct gsas_answer *answer)
{
	struct world_client *client = ctx;

	if (client->refuse > 0) {
		client->refuse--;
		return -FI_EAGAIN;
	}
	assert_true(client->answers < WORLD_ANSWERS);
	client->answer[client->answers++] = *answer;
	return 0;
}

static void wake(void *ctx)
{
	struct world *world = ctx;

	world->wakes++;
}

static void keep_line(const char *line)
{
	g_world->lines++;
	snprintf(g_world->line, sizeof(g_world->line), "%s", line);
}

enum gsas_error world_spawn(void *ctx, const struct gsas_spawn *spawn,
			    uint64_t *pid)
{
	struct world *world = ctx;

	if (world->spawn_error != GSAS_OK)
		return world->spawn_error;
	snprintf(world->spawned.path, sizeof(world->spawned.path), "%s",
		 spawn->path);
	world->spawned.argument = spawn->argument;
	world->spawned.job[0] = spawn->job[0];
	world->spawned.job[1] = spawn->job[1];
	world->spawned.uid = spawn->uid;
	*pid = 4711;
	return GSAS_OK;
}

/* ---- World and clients --------------------------------------------------- */

struct world *world_new(const struct gsas_service_attr *attr)
{
	struct gsas_service_attr a = { .spawn = world_spawn };
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	if (attr != NULL)
		a = *attr;
	a.pages.board = WORLD_BOARD;
	a.pages.memory = (struct gsas_memory){
		.alloc = memory_alloc, .free = memory_free,
		.key = memory_key, .ctx = world,
	};
	a.io = (struct gsas_io){ .in = io_in, .room = io_room,
					 .out = io_out, .answer = io_answer };
	a.spawn_ctx = world;
	a.log = keep_line;
	a.wake = wake;
	a.wake_ctx = world;
	assert_int_equal(gsas_service_new(&a, &world->service), 0);
	pthread_mutex_init(&world->lock, NULL);
	g_world = world;
	return world;
}

void world_free(struct world *world)
{
	for (unsigned int i = 0; i < world->clients; i++)
		if (i % 2 == 0)		/* the service ends the others */
			world_end(world->client[i]);
	gsas_service_free(world->service);
	assert_int_equal(world->blocks, 0);
	for (unsigned int i = 0; i < world->clients; i++)
		free(world->client[i]);
	pthread_mutex_destroy(&world->lock);
	free(world);
}

struct world_client *world_stranger(struct world *world, uint32_t uid)
{
	struct world_client *client = calloc(1, sizeof(*client));

	assert_non_null(client);
	assert_true(world->clients < WORLD_CLIENTS);
	client->world = world;
	client->identity = UINT64_C(1) << 32 | world->clients;
	assert_int_equal(gsas_client_new(world->service, client->identity, uid,
					 client, &client->client), 0);
	world->client[world->clients++] = client;
	return client;
}

struct world_client *world_client(struct world *world, uint32_t uid,
				  uint64_t job)
{
	struct world_client *client = world_stranger(world, uid);

	world_result(client, GSAS_JOIN, job, ~job, 0);
	world_forget(client);
	return client;
}

void world_end(struct world_client *client)
{
	if (client->client != NULL)
		gsas_client_free(client->client);
	client->client = NULL;
}

/* ---- Requests ------------------------------------------------------------ */

bool world_send(struct world_client *client, uint8_t opcode, uint8_t tag,
		uint64_t address, uint64_t arg1, uint64_t arg2)
{
	const uint64_t w[GSAS_WORDS] = { address, arg1, arg2 };

	return gsas_service_request(client->client, (uint64_t)opcode << 56 |
				    (uint64_t)tag << 48 | client->identity, w);
}

const struct gsas_answer *world_answer(const struct world_client *client,
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

void world_forget(struct world_client *client)
{
	client->answers = 0;
}

struct gsas_answer world_ask(struct world_client *client, uint8_t opcode,
			     uint64_t address, uint64_t arg1, uint64_t arg2)
{
	const struct gsas_answer *answer = NULL;

	client->tag = client->tag % GSAS_TAGS + 1;
	if (client->answers > WORLD_ANSWERS / 2 || client->tag == 1)
		world_forget(client);
	while (!world_send(client, opcode, client->tag, address, arg1, arg2))
		gsas_service_progress(client->world->service);
	while ((answer = world_answer(client, client->tag)) == NULL) {
		gsas_service_progress(client->world->service);
		sched_yield();
	}
	return *answer;
}

uint64_t world_error(struct world_client *client, uint8_t opcode,
		     uint64_t address, uint64_t arg1, uint64_t arg2)
{
	struct gsas_answer answer = world_ask(client, opcode, address, arg1,
					      arg2);

	if (answer.response.error != GSAS_OK)
		assert_int_equal(answer.response.result, 0);
	return answer.response.error;
}

uint64_t world_result(struct world_client *client, uint8_t opcode,
		      uint64_t address, uint64_t arg1, uint64_t arg2)
{
	struct gsas_answer answer = world_ask(client, opcode, address, arg1,
					      arg2);

	assert_int_equal(answer.response.error, GSAS_OK);
	assert_int_equal(answer.opcode, opcode);
	return answer.response.result;
}

uint64_t world_alloc(struct world_client *client, uint64_t pages, uint64_t attr)
{
	return world_result(client, GSAS_ALLOC, 0, pages, attr);
}

void world_settle(struct world *world)
{
	for (int i = 0; i < 100; i++)	/* works go a few at a time */
		gsas_service_progress(world->service);
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

uint64_t world_hash(struct world *world)
{
	uint64_t hash = 1;

	for (int i = 0; i < world->blocks; i++)
		hash = mix(hash, world->block[i].memory,
			   world->block[i].bytes);
	for (unsigned int i = 0; i < world->clients; i++)
		hash = mix(hash, world->client[i]->out, WORLD_SPACE);
	return hash;
}
