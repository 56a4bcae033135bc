/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_service_fixture.h - a GSAS service and its clients in one process,
 * without a HAL, for tests of service/gsas_service.h
 *
 * Receive spaces are arrays, answers are appended to a list, and memory is
 * anonymous. The thread of the test makes all calls and polls the service. The
 * worker threads of the service call the memory functions only.
 */
#ifndef GSAS_SERVICE_FIXTURE_H
#define GSAS_SERVICE_FIXTURE_H

#include <pthread.h>
#include <stdatomic.h>

#include "service/gsas_service.h"

#define FIXTURE_SPACE	(GSAS_BULK_MAX + 8192)	/* bytes of a receive space */
#define FIXTURE_ANSWERS	4096			/* stored for one client */
#define FIXTURE_CLIENTS	64
#define FIXTURE_BLOCKS	4096
#define FIXTURE_BOARD	3
#define FIXTURE_BASE	(UINT64_C(4) << 48)	/* first address of the board */

/* A client of the service, and its connection. The fixture owns it until
 * fixture_free(). */
struct fixture_client {
	struct fixture *fixture;
	struct gsas_client *client;	/* NULL: the client has ended */
	uint64_t identity;
	uint8_t in[FIXTURE_SPACE];	/* receive space of the service, which
					 * the client writes */
	uint8_t out[FIXTURE_SPACE];	/* receive space of the client, which
					 * the service writes */
	struct gsas_answer answer[FIXTURE_ANSWERS];
	unsigned int answers;		/* answers since fixture_forget() */
	unsigned int refuse;		/* refuse that many answers with
					 * -FI_EAGAIN */
	uint8_t tag;			/* tag of the last fixture_ask() */
};

/* The arguments of the last SPAWN request. */
struct fixture_spawn {
	char path[GSAS_PATH_MAX];
	uint64_t argument, job[2];
	uint32_t uid;
};

/* The service, its clients and its memory, from fixture_new() to
 * fixture_free(). There is one instance at a time. */
struct fixture {
	struct gsas_service *service;
	struct fixture_client *client[FIXTURE_CLIENTS];
	unsigned int clients;		/* entries in client[] */
	pthread_mutex_t lock;		/* protects block[] and blocks */
	struct gsas_block block[FIXTURE_BLOCKS]; /* memory allocated now */
	_Atomic int blocks;		/* entries in block[] */
	_Atomic int fail_alloc;		/* let that many allocations fail */
	_Atomic int wakes;		/* calls of the service's wake() */
	struct fixture_spawn spawned;	/* written by fixture_spawn() */
	enum gsas_error spawn_error;	/* result of fixture_spawn() */
	unsigned int lines;		/* lines logged */
	char line[256];			/* last line logged */
};

/* The service's spawn(): stores its arguments in fixture->spawned, and starts
 * no process. */
enum gsas_error fixture_spawn(void *ctx, const struct gsas_spawn *spawn,
			      uint64_t *pid);

/* Create a service. attr: limits, threads and spawn() of the service; NULL: no
 * limits, and fixture_spawn(). */
struct fixture *fixture_new(const struct gsas_service_attr *attr);
/* End the clients and the service; the test fails if memory was not freed. */
void fixture_free(struct fixture *fixture);

/* Create a client of a user. The client of fixture_client() has joined a job,
 * as the first process of the job with this number. */
struct fixture_client *fixture_unjoined(struct fixture *fixture, uint32_t uid);
struct fixture_client *fixture_client(struct fixture *fixture, uint32_t uid,
				      uint64_t job);
/* Disconnect a client. */
void fixture_end(struct fixture_client *client);

/* Pass a request to the service. Returns false if the service refuses it for
 * the moment. */
bool fixture_send(struct fixture_client *client, uint8_t opcode, uint8_t tag,
		  uint64_t address, uint64_t arg1, uint64_t arg2);

/* Send a request with a new tag, and poll until its answer has arrived. */
struct gsas_answer fixture_ask(struct fixture_client *client, uint8_t opcode,
			       uint64_t address, uint64_t arg1, uint64_t arg2);
/* fixture_ask() that returns the error of the answer, or that returns the
 * result of an answer without an error. */
uint64_t fixture_error(struct fixture_client *client, uint8_t opcode,
		       uint64_t address, uint64_t arg1, uint64_t arg2);
uint64_t fixture_result(struct fixture_client *client, uint8_t opcode,
			uint64_t address, uint64_t arg1, uint64_t arg2);

/* Allocate pages; returns their address. */
uint64_t fixture_alloc(struct fixture_client *client, uint64_t pages,
		       uint64_t attr);

/* The answer with this tag; NULL: none has arrived. There may be one only. */
const struct gsas_answer *fixture_answer(const struct fixture_client *client,
					 uint8_t tag);
/* Discard the answers that have arrived. */
void fixture_forget(struct fixture_client *client);

/* A hash of all memory and of the receive spaces of all clients. */
uint64_t fixture_hash(struct fixture *fixture);

/* Poll the service until all its work is done. */
void fixture_settle(struct fixture *fixture);

#endif /* GSAS_SERVICE_FIXTURE_H */
