/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_service_fixture.h - a service and its clients in one process, without a
 * HAL: the receive spaces are arrays, answers are kept in a list, memory is
 * anonymous.
 */
#ifndef GSAS_SERVICE_FIXTURE_H
#define GSAS_SERVICE_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>

#include "service/gsas_service.h"

#define FIXTURE_SPACE	(GSAS_BULK_MAX + 8192)	/* bytes of a receive space */
#define FIXTURE_ANSWERS	4096			/* kept for one client */
#define FIXTURE_CLIENTS	64
#define FIXTURE_BLOCKS	4096
#define FIXTURE_BOARD	3
#define FIXTURE_BASE	(UINT64_C(4) << 48)	/* of its partition */

struct fixture_client {
	struct fixture *fixture;
	struct gsas_client *client;	/* NULL: it ended */
	uint64_t identity;
	uint8_t in[FIXTURE_SPACE];	/* what it stored at the service's */
	uint8_t out[FIXTURE_SPACE];	/* what the service stored here */
	struct gsas_answer answer[FIXTURE_ANSWERS];
	unsigned int answers;		/* since fixture_forget() */
	unsigned int refuse;		/* that many answers: not now */
	uint8_t tag;			/* used last */
};

/* A process that was started. */
struct fixture_spawn {
	char path[GSAS_PATH_MAX];
	uint64_t argument, job[2];
	uint32_t uid;
};

struct fixture {
	struct gsas_service *service;
	struct fixture_client *client[FIXTURE_CLIENTS];
	unsigned int clients;
	pthread_mutex_t lock;		/* of the next two */
	struct gsas_block block[FIXTURE_BLOCKS]; /* all memory there is */
	_Atomic int blocks;
	_Atomic int fail_alloc;		/* that many times there is none */
	_Atomic int wakes;
	struct fixture_spawn spawned;
	enum gsas_error spawn_error;
	unsigned int lines;		/* logged */
	char line[256];			/* the last one */
};

/* Starts nothing: keeps what it was told in fixture->spawned. */
enum gsas_error fixture_spawn(void *ctx, const struct gsas_spawn *spawn,
			      uint64_t *pid);

/* attr: limits, threads, spawn; NULL: fixture_spawn() only. */
struct fixture *fixture_new(const struct gsas_service_attr *attr);
/* A fixture without a leak: all memory was given back. */
void fixture_free(struct fixture *fixture);

/* A new client; the second has joined, as the first process of that number. */
struct fixture_client *fixture_unjoined(struct fixture *fixture, uint32_t uid);
struct fixture_client *fixture_client(struct fixture *fixture, uint32_t uid,
				      uint64_t job);
void fixture_end(struct fixture_client *client);

/* A request as it comes; false: not taken. */
bool fixture_send(struct fixture_client *client, uint8_t opcode, uint8_t tag,
		  uint64_t address, uint64_t arg1, uint64_t arg2);

/* What a program does: ask under a new tag, and wait for the answer. */
struct gsas_answer fixture_ask(struct fixture_client *client, uint8_t opcode,
			       uint64_t address, uint64_t arg1, uint64_t arg2);
/* The same, of which only the error, or only the result is of interest: there
 * is no error then. */
uint64_t fixture_error(struct fixture_client *client, uint8_t opcode,
		       uint64_t address, uint64_t arg1, uint64_t arg2);
uint64_t fixture_result(struct fixture_client *client, uint8_t opcode,
			uint64_t address, uint64_t arg1, uint64_t arg2);

uint64_t fixture_alloc(struct fixture_client *client, uint64_t pages,
		       uint64_t attr);

/* The answer to a tag, once; NULL: there was none. */
const struct gsas_answer *fixture_answer(const struct fixture_client *client,
					 uint8_t tag);
void fixture_forget(struct fixture_client *client);

/* Of all memory, and all that clients were sent to their spaces. */
uint64_t fixture_hash(struct fixture *fixture);

/* Progress until nothing is under way any more. */
void fixture_settle(struct fixture *fixture);

#endif /* GSAS_SERVICE_FIXTURE_H */
