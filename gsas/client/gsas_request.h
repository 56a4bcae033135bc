/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_request.h - pending requests: begin, complete. Private to libgsas.
 *
 * gsas_conn.h sends the messages of a request and receives the answers,
 * gsas_bulk.h sends those of a bulk request, which takes several. gsas_wait.h
 * waits for requests.
 */
#ifndef GSAS_REQUEST_H
#define GSAS_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "gsas.h"

/*
 * A call of the program, pending or complete: the contents of a struct gsas_req
 * of gsas.h. The memory belongs to the program, or is on the stack of a call
 * that waits. Only the thread that began the request reads and writes it. While
 * status is -FI_EINPROGRESS, tags or conn->bulk refer to the request;
 * afterwards the library has no reference to it.
 */
struct gsas_request {
	int32_t status;		/* -FI_EINPROGRESS; when complete 0 or -errno */
	int32_t error;		/* bulk: first error of a message, 0: none */
	uint64_t owner;		/* gsas_thread.number of the thread */
	bool reported;		/* gsas_wait_any() or gsas_test_any() has
				 * returned its status */
	bool bulk;		/* several messages, sent by gsas_bulk.c */
	bool put;		/* bulk: true: PUT, false: GET */
	uint16_t parts;		/* bulk: messages that are not answered yet */
	uint32_t bytes;		/* bytes of the result to store at out */
	void *out;		/* program's memory for the result, or NULL */
	int *done;		/* program's flag of a CAS64, or NULL; if not
				 * NULL, out gets the third word */
	uint64_t result, more;	/* second and third word of the answer */
	uint64_t address;	/* bulk: global address of the first byte */
	uint64_t whole, left;	/* bulk: bytes of all; bytes not sent yet */
	uint8_t *at;		/* bulk: program's memory for the next byte */
};
_Static_assert(sizeof(struct gsas_request) <= sizeof(struct gsas_req),
	       "opaque to programs");

/* The negative errno for an enum gsas_error of an answer; -EPROTO for a number
 * that the protocol does not define. */
int gsas_errno(uint64_t error);

/* Clear a request and mark it as in progress. owner: gsas_thread.number of the
 * calling thread. */
void gsas_request_begin(struct gsas_request *request, uint64_t owner);

/* A message of the request is answered: complete the request, a bulk request if
 * it was the last message. error: 0 or -errno; result, more: second and third
 * word of the answer. */
void gsas_request_answer(struct gsas_request *request, int error,
			 uint64_t result, uint64_t more);

/* No further message of a bulk request will be sent. error: 0 or -errno. The
 * request completes when all messages under way are answered. */
void gsas_request_stop(struct gsas_request *request, int error);

#endif /* GSAS_REQUEST_H */
