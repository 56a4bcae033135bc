/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_service_fixture.h - a service and its clients in one process, without a
 * HAL: the receive spaces are arrays, answers are kept in a list, memory is
 * anonymous.
 */
#ifndef GSAS_WORLD_H
#define GSAS_WORLD_H

#include <pthread.h>
#include <stdatomic.h>

#include "service/gsas_service.h"

#define WORLD_SPACE	(GSAS_BULK_MAX + 8192)	/* bytes of a receive space */
#define WORLD_ANSWERS	4096			/* kept for one client */
#define WORLD_CLIENTS	64
#define WORLD_BLOCKS	4096
#define WORLD_BOARD	3
#define WORLD_BASE	(UINT64_C(4) << 48)	/* of its partition */

struct world_client {
	struct world *world;
	struct gsas_client *client;	/* NULL: it ended */
	uint64_t identity;
	uint8_t in[WORLD_SPACE];	/* what it stored at the service's */
	uint8_t out[WORLD_SPACE];	/* what the service stored here */
	struct gsas_answer answer[WORLD_ANSWERS];
	unsigned int answers;		/* since world_forget() */
	unsigned int refuse;		/* that many answers: not now */
	uint8_t tag;			/* used last */
};

/* A process that was started. */
struct world_spawn {
	char path[GSAS_PATH_MAX];
	uint64_t argument, job[2];
	uint32_t uid;
};

struct world {
	struct gsas_service *service;
	struct world_client *client[WORLD_CLIENTS];
	unsigned int clients;
	pthread_mutex_t lock;		/* of the next two */
	struct gsas_block block[WORLD_BLOCKS];	/* all memory there is */
	_Atomic int blocks;
	_Atomic int fail_alloc;		/* that many times there is none */
	_Atomic int wakes;
	struct world_spawn spawned;
	enum gsas_error spawn_error;
	unsigned int lines;		/* logged */
	char line[256];			/* the last one */
};

/* Starts nothing: keeps what it was told in world->spawned. */
enum gsas_error world_spawn(void *ctx, const struct gsas_spawn *spawn,
			    uint64_t *pid);

/* attr: limits, threads, spawn; NULL: world_spawn() only. */
struct world *world_new(const struct gsas_service_attr *attr);
/* A world without a leak: all memory was given back. */
void world_free(struct world *world);

/* A new client; the second has joined, as the first process of that number. */
struct world_client *world_stranger(struct world *world, uint32_t uid);
struct world_client *world_client(struct world *world, uint32_t uid,
				  uint64_t job);
void world_end(struct world_client *client);

/* A request as it comes; false: not taken. */
bool world_send(struct world_client *client, uint8_t opcode, uint8_t tag,
		uint64_t address, uint64_t arg1, uint64_t arg2);

/* What a program does: ask under a new tag, and wait for the answer. */
struct gsas_answer world_ask(struct world_client *client, uint8_t opcode,
			     uint64_t address, uint64_t arg1, uint64_t arg2);
/* The same, of which only the error, or only the result is of interest: there
 * is no error then. */
uint64_t world_error(struct world_client *client, uint8_t opcode,
		     uint64_t address, uint64_t arg1, uint64_t arg2);
uint64_t world_result(struct world_client *client, uint8_t opcode,
		      uint64_t address, uint64_t arg1, uint64_t arg2);

uint64_t world_alloc(struct world_client *client, uint64_t pages,
		     uint64_t attr);

/* The answer to a tag, once; NULL: there was none. */
const struct gsas_answer *world_answer(const struct world_client *client,
				       uint8_t tag);
void world_forget(struct world_client *client);

/* Of all memory, and all that clients were sent to their spaces. */
uint64_t world_hash(struct world *world);

/* Progress until nothing is under way any more. */
void world_settle(struct world *world);

#endif /* GSAS_WORLD_H */
