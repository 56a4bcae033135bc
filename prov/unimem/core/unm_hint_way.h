/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_hint_way.h - decides by measurement which hints on cache lines follow the
 * messages of a kind: of a range of lengths, to one peer, and either such that
 * the peer waits for the message or such that it does not.
 *
 * A hint makes the next message faster or slower. That depends on where the two
 * processors are, on the instructions by which the C library copies so many
 * bytes, and on the processor; and hypervisors move virtual processors while a
 * program runs. So the time of UNM_HINT_ROUND messages is measured in each way,
 * and that UNM_HINT_ROUNDS times. A hint that saved time in each of these
 * rounds is given to the next UNM_HINT_HOLD messages.
 */
#ifndef UNM_HINT_WAY_H
#define UNM_HINT_WAY_H

#include <stdbool.h>
#include <stdint.h>

#define UNM_HINT_CLASSES 5		/* ranges of lengths */
#define UNM_HINT_FIRST	1024		/* messages before the first
					 * measurement: peers that get few are
					 * not worth it */
#define UNM_HINT_SKIP	16		/* messages that are not timed before a
					 * round, because the lines are where
					 * the way before has left them */
#define UNM_HINT_ROUND	48		/* messages that are timed in a round */
#define UNM_HINT_ROUNDS	4		/* rounds of each way */
#define UNM_HINT_HOLD	65535		/* messages between measurements */
#define UNM_HINT_GAIN	32		/* a way that saves less than this part
					 * of the time is not worth its work */

enum unm_hint {
	UNM_HINT_NONE,
	UNM_HINT_CLAIM,			/* hal_space_claim() for the next
					 * message */
	UNM_HINT_DEMOTE,		/* the same, and hal_space_demote() for
					 * this message */
	UNM_HINT_WAYS,
};

/* Measurements of one kind of messages. */
struct unm_hint_way {
	uint64_t start;			/* time of the first message that is
					 * timed in this round */
	uint32_t least[UNM_HINT_WAYS];	/* shortest time of a round, by way */
	uint32_t none;			/* time of the last round of
					 * UNM_HINT_NONE */
	uint16_t held;			/* messages until the next measurement;
					 * 0: it is under way */
	uint8_t lost;			/* bit n: way n did not save time in one
					 * of the rounds */
	uint8_t way;			/* of the next message, enum unm_hint */
	uint8_t round;			/* rounds of this way so far */
	uint8_t count;			/* messages of this round so far, with
					 * those that are skipped */
};

/* Measurements of one peer: of messages for which it does not wait, and of
 * those for which it waits. Protected by the lock of the endpoint's domain. */
struct unm_hint_ways {
	struct unm_hint_way kind[2][UNM_HINT_CLASSES];
};

/* Give no hint now, and measure after a while. */
static inline void unm_hint_ways_start(struct unm_hint_ways *ways)
{
	for (int i = 0; i < 2 * UNM_HINT_CLASSES; i++)
		ways->kind[i / UNM_HINT_CLASSES][i % UNM_HINT_CLASSES] =
			(struct unm_hint_way){ .held = UNM_HINT_FIRST };
}

/* The range of lengths of a message of len bytes. 128: a header, and what
 * aligns the bytes behind it. */
static inline unsigned unm_hint_class(uint32_t len)
{
	unsigned n = 0;

	while (n < UNM_HINT_CLASSES - 1 && len > (1024u << n) + 128)
		n++;
	return n;
}

/* Of the first ways, the fastest of those that saved time in each round. */
static inline uint8_t unm_hint_way_best(const struct unm_hint_way *h,
					uint8_t ways)
{
	uint8_t best = UNM_HINT_NONE;

	for (uint8_t w = 1; w < ways; w++)
		if (!(h->lost >> w & 1) && (best == UNM_HINT_NONE ||
					    h->least[w] < h->least[best]))
			best = w;
	return best;
}

/* A round has ended that took so long: go on with the next way, or end the
 * measurement. */
static inline void unm_hint_way_round(struct unm_hint_way *h, uint8_t ways,
				      uint32_t took)
{
	if (h->round == 0 || took < h->least[h->way])
		h->least[h->way] = took;
	if (h->way == UNM_HINT_NONE)
		h->none = took;
	else if (took >= h->none - h->none / UNM_HINT_GAIN)
		h->lost |= (uint8_t)(1u << h->way);
	h->count = 0;
	if (++h->way < ways)
		return;
	h->way = UNM_HINT_NONE;
	if (++h->round < UNM_HINT_ROUNDS)
		return;
	h->way = unm_hint_way_best(h, ways);
	h->held = UNM_HINT_HOLD;
	h->round = 0;
	h->lost = 0;
}

/* Measure the first ways. Returns the way of this message. now: in any unit of
 * time. Call it only if h->held == 0. */
static inline uint8_t unm_hint_way_measure(struct unm_hint_way *h, uint8_t ways,
					   uint64_t now)
{
	uint64_t took = now - h->start;
	uint8_t way = h->way;

	if (h->count == UNM_HINT_SKIP)
		h->start = now;
	if (h->count++ == UNM_HINT_SKIP + UNM_HINT_ROUND)
		unm_hint_way_round(h, ways, took < UINT32_MAX ?
				   (uint32_t)took : UINT32_MAX);
	return way;
}

/* The way of a message while no measurement is under way: h->held != 0. */
static inline uint8_t unm_hint_way_held(struct unm_hint_way *h)
{
	uint8_t way = h->way;

	if (--h->held == 0)
		h->way = UNM_HINT_NONE;	/* the first to measure */
	return way;
}

#endif /* UNM_HINT_WAY_H */
