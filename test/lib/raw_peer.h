/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_peer.h - a bare interface that talks to endpoints of this process by
 * packets of the test's making: to see what the provider really sends, and to
 * be the peer that breaks every rule. Needs the provider inside (ep_inside()).
 */
#ifndef RAW_PEER_H
#define RAW_PEER_H

#include "lib/ep_pair.h"
#include "hal/hal.h"
#include "core/unm_wire.h"

struct raw {
	struct hal *hal;
	struct hal_if *hif;
	struct hal_peer *peer;		/* the endpoint, NULL: none yet */
	bool dead;			/* it dropped us */
	bool open;
};

/* Open a bare interface; raw_teardown() closes what a test left. */
struct raw *raw_open(void);
void raw_close(struct raw *r);
int raw_teardown(void **state);		/* closes endpoints as well */
#define RAW_TEST(f)	cmocka_unit_test_teardown(f, raw_teardown)

/* House-keeping of all bare interfaces and polls of all endpoints. */
void raw_step(void);
#define RAW_UNTIL(cond)	do {						\
		uint64_t raw_end = ep_deadline();			\
		while (!(cond)) {					\
			raw_step();					\
			ep_in_time(raw_end, #cond);			\
		}							\
	} while (0)

/* Connect to an endpoint, in silence: and announce receive space, or not. */
void raw_reach(struct raw *r, struct ep *e);
void raw_connect(struct raw *r, struct ep *e);
/* Its address into an endpoint's vector. */
fi_addr_t raw_insert(struct ep *into, struct raw *r);

/* Send, waiting for room. False: we were dropped. */
bool raw_send(struct raw *r, uint64_t head, const uint64_t *w, unsigned nw,
	      const void *data, size_t len);
/* A message of words, in a packet if it fits, else at the begin of the receive
 * space. False: we were dropped. */
bool raw_send_words(struct raw *r, uint8_t type, const uint64_t *w,
		    unsigned nw);
bool raw_hello(struct raw *r);
/* ... of versions from least to version */
bool raw_hello_as(struct raw *r, uint16_t version, uint16_t least);
/* Write into the receive space the endpoint keeps for us. */
void raw_space(struct raw *r, uint32_t off, const void *src, size_t len);

/* The next packet the endpoint sent, released when the next one is asked for.
 * */
const struct hal_cell *raw_next(struct raw *r, uint64_t *head);
/* Words of a message of that type; one carried in space is unpacked. */
uint64_t raw_expect(struct raw *r, uint8_t type, uint64_t *w);

#endif /* RAW_PEER_H */
