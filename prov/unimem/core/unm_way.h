/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_way.h - which of two ways to bring a long message is the faster one with
 * a peer: streamed by both sides, or read by the receiver alone.
 *
 * No constant decides: where two processors share a cache, a stream is up to
 * four times as fast; where a line takes long from one to the other, a read is
 * faster; and virtual machines move processors while a program runs. So each
 * message that is received is measured, and the way that took less time is
 * used. The other way is tried now and then, more seldom the longer it has been
 * the slower one. A peer that computes makes streams slow, and so is read.
 *
 * Pure: no clock, no HAL. A way belongs to one peer and one range of lengths
 * and is used under the lock of its endpoint's domain.
 */
#ifndef UNM_WAY_H
#define UNM_WAY_H

#include <stdbool.h>
#include <stdint.h>

#define UNM_WAY_CLASSES	4	/* ranges of lengths */
#define UNM_WAY_GAP_MIN	16	/* messages between trials of the slower way */
#define UNM_WAY_GAP_MAX	256
#define UNM_WAY_GUESS	128000	/* ps a KiB of a read: 8 GB/s */

struct unm_way {
	uint32_t cost[2];	/* ps a KiB, moving average; [0] streamed,
				 * [1] read; 0: never measured */
	uint16_t gap;		/* messages until the slower way is tried; below
				 * UNM_WAY_GAP_MIN: messages so far ... */
	uint16_t since;		/* ... and since it was tried */
};

/* The range of lengths that len bytes are in. */
static inline unsigned unm_way_class(uint64_t len)
{
	return len < 64 << 10 ? 0 : len < 256 << 10 ? 1 : len < 1 << 20 ? 2 : 3;
}

static inline bool unm_way_read_wins(const struct unm_way *w)
{
	return w->cost[1] != 0 && w->cost[1] < w->cost[0];
}

/* The way for the next message: true, it is to be read. The first ones go both
 * ways in turn: what comes first is slow, whichever way it goes. */
static inline bool unm_way_choose(struct unm_way *w)
{
	bool wins = unm_way_read_wins(w);

	w->since++;
	if (w->gap < UNM_WAY_GAP_MIN) {
		w->gap++;
		return !(w->since & 1);
	}
	if (w->since < w->gap)
		return wins;
	w->since = 0;
	if (w->gap < UNM_WAY_GAP_MAX)
		w->gap *= 2;
	return !wins;
}

/*
 * A message of len bytes took so many ns, one way or the other. The average
 * follows a slower message slowly, as that may be an exception (its process
 * lost the processor, its memory was touched for the first time), and a faster
 * one quickly, as the slower way is tried seldom.
 */
static inline void unm_way_measured(struct unm_way *w, bool read, uint64_t len,
				    uint64_t ns)
{
	uint32_t *cost = &w->cost[read];
	uint64_t ps = ns > UINT64_MAX >> 20 ? UINT64_MAX : ns * 1024000 / len;
	bool won = unm_way_read_wins(w);

	if (ps > UINT32_MAX / 8)
		ps = UINT32_MAX / 8;
	if (*cost == 0) {
		*cost = (uint32_t)ps + 1;
		return;			/* (never 0 again) */
	}
	if (ps > 2 * (uint64_t)*cost)
		ps = 2 * (uint64_t)*cost;
	*cost = 1 + (uint32_t)(ps < *cost ? (*cost + ps) / 2 :
			       (7 * (uint64_t)*cost + ps) / 8);
	if (unm_way_read_wins(w) != won) {
		w->gap = UNM_WAY_GAP_MIN;
		w->since = 0;
	}
}

/* How long a read of len bytes takes, ns; by guess if none was measured. */
static inline uint64_t unm_way_read_ns(const struct unm_way *w, uint64_t len)
{
	uint64_t ps = w->cost[1] != 0 ? w->cost[1] : UNM_WAY_GUESS;

	return len > UINT64_MAX / ps ? UINT64_MAX : len * ps / 1024000;
}

#endif /* UNM_WAY_H */
