/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broken.h - backends that break one law of docs/hal.md each, to test the
 * conformance test
 *
 * A mutation is a decorator around a correct backend, as hal_fault.c is. Each
 * entry of the tables names the conformance test that must fail because of it;
 * the mutation "none" changes nothing, and all tests must pass with it.
 * test/broken/run runs them. A process has one mutation.
 */
#ifndef BROKEN_H
#define BROKEN_H

#include "hal/hal.h"

/* Put the mutation "name" around an open backend, until the backend is
 * closed. */
void broken_wrap(struct hal *hal, const char *name);
bool broken_exists(const char *name);
/* Return whether there is a mutation of this name; whether it breaks a law that
 * the backend can obey. */
bool broken_applies(const struct hal *hal, const char *name);
/* Print a line for each mutation: its name and the test that must fail. */
void broken_list(void);

/* ---- Between broken*.c ----------------------------------------------- */

struct packet {
	uint64_t head;
	const uint64_t *w;
	unsigned nw;
	const void *data;
	size_t len;
};

/* The decorator's state of a peer. Created when the peer appears, freed with
 * the peer; used by the thread that uses the interface. */
struct bpeer {
	struct bpeer *next;
	struct hal_peer *peer;
	struct hal_cell *cells;		/* the peer's ring; hidden in struct
					 * hal_peer, so that hal_pkt_send()
					 * calls the decorator */
	uint8_t *space;			/* receive space and back words; hidden
					 * by some mutations */
	struct hal_back *back;		/* see space */
	unsigned long sends;
	bool full;			/* the last packet was refused */
	bool met;			/* a packet of the peer was received */
	bool holds;			/* held[] is a delayed packet */
	uint64_t held_head;
	size_t held_len;
	uint8_t held[HAL_PKT_MAX];
	uint8_t *late;			/* delayed stores into the receive
					 * space */
	uint32_t late_off;
	size_t late_len;
	uint64_t last_done, since;	/* done counter, and the time in ms
					 * since when it is unchanged */
	uint64_t late_word;		/* delayed back word */
	unsigned word_late;
};

struct mutation {
	const char *name;
	const char *test;		/* conformance test that must fail */
	int (*send)(struct bpeer *bp, const struct packet *p);
	void (*event)(struct hal_event *ev);	/* may set the type to 0 to hide
						 * the event */
	void (*veil)(struct bpeer *bp);	/* hides more than the cells */
	void (*install)(struct hal_ops *ops);
	bool rings;			/* applies only to backends whose
					 * senders write into a ring */
};

extern const struct hal_ops *broken_base;
struct bpeer *broken_peer(struct hal_peer *peer);
/* Call a function for each peer of an interface. */
void broken_each(struct hal_if *hif, void (*fn)(struct bpeer *bp, void *arg),
		 void *arg);
/* Send a packet by the correct backend. */
int broken_forward(struct bpeer *bp, const struct packet *p);

/* Hide the peer's back words, so that stores call the decorator. */
void broken_veil_back(struct bpeer *bp);
/* Store a back word, or the done counter (word < 0), as the correct backend
 * does: where the peer's back words are not mapped, by its call. */
void broken_back_store(struct hal_peer *peer, int word, uint64_t val);

extern const struct mutation broken_pkt[], broken_dma[], broken_conn[],
	broken_shared[], broken_iface0[], broken_alias[];
extern const int broken_pkt_count, broken_dma_count, broken_conn_count,
	broken_shared_count, broken_iface0_count, broken_alias_count;

#endif /* BROKEN_H */
