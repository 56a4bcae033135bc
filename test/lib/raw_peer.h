/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw_peer.h - a peer without a provider: a HAL interface that exchanges
 * hand-made packets with endpoints of the same process
 *
 * Tests use it to inspect the packets that the provider sends, and to violate
 * the protocol of docs/protocol.md. Needs the provider that is linked in, see
 * ep_inside(). Uses ep_pair.h for the endpoints.
 */
#ifndef RAW_PEER_H
#define RAW_PEER_H

#include "lib/ep_pair.h"
#include "hal/hal.h"
#include "core/unm_wire.h"

/* A raw peer, from raw_open() to raw_close() or the teardown; an entry of a
 * table of raw_peer.c. */
struct raw {
	struct hal *hal;
	struct hal_if *hif;
	struct hal_peer *peer;		/* the endpoint connected to; NULL: not
					 * connected */
	const uint8_t *second;		/* of the packet that came last, if it
					 * was wide: its second half */
	bool dead;			/* the endpoint has disconnected */
	bool open;			/* this entry of the table is in use */
};

/* Open an interface without a provider. */
struct raw *raw_open(void);
void raw_close(struct raw *r);
/* cmocka teardown: close the raw peers and the endpoints that a test left. */
int raw_teardown(void **state);
#define RAW_TEST(f)	cmocka_unit_test_teardown(f, raw_teardown)
/* As RAW_TEST(), for a test that reads the provider's structures. */
#define RAW_TEST_INSIDE(f)						\
	{ #f, ep_test_inside, NULL, raw_teardown, (void *)f }

/* Service the interfaces of all raw peers, and poll all endpoints. */
void raw_step(void);
/* Call raw_step() until a condition holds; a hang fails the test. */
#define RAW_UNTIL(cond)	do {						\
		uint64_t raw_end = ep_deadline();			\
		while (!(cond)) {					\
			raw_step();					\
			ep_in_time(raw_end, #cond);			\
		}							\
	} while (0)

/* Connect to an endpoint, without sending a packet. raw_connect() also reserves
 * the receive space that the endpoint provides, for raw_space(). */
void raw_reach(struct raw *r, struct ep *e);
void raw_connect(struct raw *r, struct ep *e);
/* Insert the address of a raw peer into the address vector of an endpoint. */
fi_addr_t raw_insert(struct ep *into, struct raw *r);

/* Send a packet of nw words and len bytes, waiting for credits. Returns false
 * if the endpoint has disconnected. */
bool raw_send(struct raw *r, uint64_t head, const uint64_t *w, unsigned nw,
	      const void *data, size_t len);
/* Send a message of nw words: in one packet if the words fit, otherwise at the
 * start of the receive space (UNM_WIRE_CARRIED). Returns false if the endpoint
 * has disconnected. */
bool raw_send_words(struct raw *r, uint8_t type, const uint64_t *w,
		    unsigned nw);
/* Send HELLO: of the present protocol version, or of the versions from least to
 * version. */
bool raw_hello(struct raw *r);
bool raw_hello_as(struct raw *r, uint16_t version, uint16_t least);
/* Write len bytes at offset off of the receive space that the endpoint provides
 * for this peer. */
void raw_space(struct raw *r, uint32_t off, const void *src, size_t len);

/* Wait for the next packet from the endpoint. Its slot has been released: it is
 * valid until the endpoint has filled the ring once more. */
const struct hal_cell *raw_next(struct raw *r, uint64_t *head);
/* Wait for the next message, which must be of this type, and copy its words to
 * w (UNM_WIRE_WORDS_MAX words), also those carried in the receive space.
 * Returns its head. */
uint64_t raw_expect(struct raw *r, uint8_t type, uint64_t *w);

#endif /* RAW_PEER_H */
