/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broken.h - backends that break one law each, to test the conformance test.
 *
 * A mutation is a decorator around a good backend (the same way as hal_fault.c
 * is one). The table in broken.c names the test that must fail because of it;
 * the mutation "none" changes nothing and must pass them all.
 */
#ifndef BROKEN_H
#define BROKEN_H

#include "hal/hal.h"

/* Put a mutation around an opened backend; it goes with the backend. */
void broken_wrap(struct hal *hal, const char *name);
bool broken_exists(const char *name);
/* Does it break a law of that backend? */
bool broken_applies(const struct hal *hal, const char *name);
/* One line each: the mutation, the test that must fail. */
void broken_list(void);

/* ---- Between broken*.c ----------------------------------------------- */

struct packet {
	uint64_t head;
	const uint64_t *w;
	unsigned nw;
	const void *data;
	size_t len;
};

/* What we know of a peer beside what the backend does. */
struct bpeer {
	struct bpeer *next;
	struct hal_peer *peer;
	struct hal_cell *cells;		/* hidden, so that sends come to us */
	uint8_t *space;			/* hidden by some */
	struct hal_back *back;		/* the same */
	unsigned long sends;
	bool full;			/* refused the last packet */
	bool met;			/* it has looked at us */
	bool holds;			/* held is a packet */
	uint64_t held_head;
	size_t held_len;
	uint8_t held[HAL_PKT_MAX];
	uint8_t *late;			/* stores kept back */
	uint32_t late_off;
	size_t late_len;
	uint64_t last_done, since;	/* how long nothing was released */
	uint64_t late_word;		/* stored back, and kept back */
	unsigned word_late;
};

struct mutation {
	const char *name;
	const char *test;		/* fails because of it */
	int (*send)(struct bpeer *bp, const struct packet *p);
	void (*event)(struct hal_event *ev);	/* type 0 afterwards: hide it */
	void (*veil)(struct bpeer *bp);	/* hide more than the cells */
	void (*install)(struct hal_ops *ops);
	bool rings;			/* breaks no law where there are no
					 * rings that the sender writes */
};

extern const struct hal_ops *broken_base;
struct bpeer *broken_peer(struct hal_peer *peer);
/* Call a function for each peer of an interface. */
void broken_each(struct hal_if *hif, void (*fn)(struct bpeer *bp, void *arg),
		 void *arg);
/* Hand a packet to the good backend. */
int broken_forward(struct bpeer *bp, const struct packet *p);

/* Hide where words are stored back to. */
void broken_veil_back(struct bpeer *bp);

extern const struct mutation broken_pkt[], broken_dma[], broken_conn[],
	broken_shared[], broken_iface0[], broken_alias[];
extern const int broken_pkt_count, broken_dma_count, broken_conn_count,
	broken_shared_count, broken_iface0_count, broken_alias_count;

#endif /* BROKEN_H */
