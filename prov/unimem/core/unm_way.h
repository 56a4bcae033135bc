/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_way.h - chooses the faster of two ways to transfer a rendezvous message
 * from a peer: streamed by both sides, or read by the receiver alone.
 *
 * No constant can decide. Where two processors share a cache, a stream is up to
 * four times as fast; where a cache-line transfer between them takes long, a
 * read is faster; and hypervisors move virtual processors while a program runs.
 * Received messages are therefore measured, and the way that took less time is
 * used. The slower way is tried from time to time, and more rarely the longer
 * it has been slower. A peer that computes makes streams slow, so its messages
 * are read.
 *
 * Messages that are in transfer at once are a burst. All of a burst go the same
 * way and are measured together: several transfers of an engine end at once, so
 * that the last message of them seems to take no time, and messages that go
 * different ways at once wait for each other.
 *
 * The code calls neither the clock nor the HAL.
 */
#ifndef UNM_WAY_H
#define UNM_WAY_H

#include <stdbool.h>
#include <stdint.h>

#define UNM_WAY_CLASSES	4	/* ranges of lengths */
#define UNM_WAY_GAP_MIN	16	/* bursts between trials of the slower way */
#define UNM_WAY_GAP_MAX	256
#define UNM_WAY_RUN	256	/* most messages of a burst */
#define UNM_WAY_GUESS	128000	/* ps a KiB of a read: 8 GB/s */

/* Measurements of one peer and one range of lengths. Protected by the lock of
 * the endpoint's domain. */
struct unm_way {
	uint32_t cost[2];	/* ps a KiB, moving average; [0] streamed,
				 * [1] read; 0: never measured */
	uint16_t gap;		/* bursts until the slower way is tried; below
				 * UNM_WAY_GAP_MIN: the first messages ... */
	uint16_t since;		/* ... and bursts since it was tried */
	uint16_t run;		/* messages of the burst so far */
	bool read;		/* its messages are read */
	uint64_t bytes, ns;	/* those of it that were measured */
};

/* The range of lengths, 0 to UNM_WAY_CLASSES - 1, that len bytes are in. */
static inline unsigned unm_way_class(uint64_t len)
{
	return len < 64 << 10 ? 0 : len < 256 << 10 ? 1 : len < 1 << 20 ? 2 : 3;
}

/* True if reading was measured and is faster. */
static inline bool unm_way_read_wins(const struct unm_way *w)
{
	return w->cost[1] != 0 && w->cost[1] < w->cost[0];
}

/* The way of the next burst: true if its messages are to be read. The first
 * bursts alternate between the ways, because the first message is slow in
 * either way. */
static inline bool unm_way_next(struct unm_way *w)
{
	bool wins = unm_way_read_wins(w);

	w->since++;
	if (w->gap < UNM_WAY_GAP_MIN) {
		w->gap += w->run < UNM_WAY_GAP_MIN / 4 ? w->run :
			UNM_WAY_GAP_MIN / 4;
		if (w->gap < UNM_WAY_GAP_MIN)
			return !(w->since & 1);
		w->gap = UNM_WAY_GAP_MIN;
	}
	if (w->since < w->gap)
		return wins;
	w->since = 0;
	if (w->gap < UNM_WAY_GAP_MAX)
		w->gap *= 4;
	return !wins;
}

/*
 * Add what was measured of the last burst to the average of its way. The
 * average follows a slower burst slowly, because it may be an exception (the
 * process lost its processor, or its memory was touched for the first time),
 * and a faster burst quickly, because the slower way is rarely tried.
 */
static inline void unm_way_average(struct unm_way *w)
{
	uint32_t *cost = &w->cost[w->read];
	bool won = unm_way_read_wins(w);
	uint64_t ps;

	if (w->bytes == 0)
		return;
	ps = w->ns > UINT64_MAX >> 20 ? UINT64_MAX : w->ns * 1024000 / w->bytes;
	w->bytes = 0;
	w->ns = 0;
	if (ps > UINT32_MAX / 8)
		ps = UINT32_MAX / 8;
	if (*cost == 0) {
		*cost = (uint32_t)ps + 1;
		return;			/* a measured cost is never 0 */
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

/* Choose the way for the next message: true if the message is to be read. busy:
 * another message of the peer is in transfer, so this one is of its burst. */
static inline bool unm_way_choose(struct unm_way *w, bool busy)
{
	if (!busy || w->run == 0 || w->run >= UNM_WAY_RUN) {
		unm_way_average(w);
		w->read = unm_way_next(w);
		w->run = 0;
	}
	w->run++;
	return w->read;
}

/* Record that a message of len bytes took ns nanoseconds; read: it was read.
 * The last messages of a burst that went the other way are not counted. */
static inline void unm_way_measured(struct unm_way *w, bool read, uint64_t len,
				    uint64_t ns)
{
	if (read != w->read)
		return;
	w->bytes += len < UINT64_MAX - w->bytes ? len : UINT64_MAX - w->bytes;
	w->ns += ns < UINT64_MAX - w->ns ? ns : UINT64_MAX - w->ns;
}

/* Nanoseconds that a read of len bytes takes, by UNM_WAY_GUESS before the first
 * measurement. */
static inline uint64_t unm_way_read_ns(const struct unm_way *w, uint64_t len)
{
	uint64_t ps = w->cost[1] != 0 ? w->cost[1] : UNM_WAY_GUESS;

	return len > UINT64_MAX / ps ? UINT64_MAX : len * ps / 1024000;
}

#endif /* UNM_WAY_H */
