/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_way.h - chooses the faster of two ways to move bytes from or to a peer's
 * memory: with its help (messages are streamed, puts and gets are requests), or
 * by this process alone (cross-memory attach).
 *
 * No constant can decide. Where two processors share a cache, a stream is up to
 * four times as fast; where a cache-line transfer between them takes long,
 * attach is faster; and hypervisors move virtual processors while a program
 * runs. Transfers are therefore measured, and the way that took less time is
 * used. The slower way is tried from time to time, and more rarely the longer
 * it has been slower. A peer that computes makes its help slow, so its memory
 * is accessed by this process alone.
 *
 * Transfers that are under way at once are a burst. All of a burst go the same
 * way and are measured together: several transfers of an engine end at once, so
 * that the last of them seem to take no time, and transfers that go different
 * ways at once wait for each other.
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
#define UNM_WAY_RUN	256	/* most transfers of a burst */
#define UNM_WAY_GUESS	128000	/* ps a KiB by attach: 8 GB/s */

/* Measurements of one peer and one range of lengths. Protected by the lock of
 * the endpoint's domain. */
struct unm_way {
	uint32_t cost[2];	/* ps a KiB, moving average; [0] with the peer's
				 * help, [1] alone; 0: never measured */
	uint16_t gap;		/* bursts until the slower way is tried; below
				 * UNM_WAY_GAP_MIN: the first transfers ... */
	uint16_t since;		/* ... and bursts since it was tried */
	uint16_t run;		/* transfers of the burst so far */
	bool alone;		/* its way */
	uint64_t bytes, ns;	/* those of it that were measured */
};

/* The knowledge of an endpoint about the transfers that are measured now, with
 * all peers. */
struct unm_way_clock {
	uint32_t count[2];	/* under way: [0] with help, [1] alone */
	bool alone;		/* the way of the last that has ended ... */
	uint64_t ended_ns;	/* ... and when, unm_now_ns() */
};

/* The range of lengths, 0 to UNM_WAY_CLASSES - 1, that len bytes are in. */
static inline unsigned unm_way_class(uint64_t len)
{
	return len < 64 << 10 ? 0 : len < 256 << 10 ? 1 : len < 1 << 20 ? 2 : 3;
}

/* The same for puts and gets, of which more are short. */
static inline unsigned unm_way_os_class(uint64_t len)
{
	return len <= 4 << 10 ? 0 : len <= 16 << 10 ? 1 : len <= 64 << 10 ? 2 :
		3;
}

/* True if attach was measured and is faster. */
static inline bool unm_way_alone_wins(const struct unm_way *w)
{
	return w->cost[1] != 0 && w->cost[1] < w->cost[0];
}

/* The way of the next burst: true if this process is to go alone. The first
 * bursts alternate between the ways, because the first transfer is slow in
 * either way. */
static inline bool unm_way_next(struct unm_way *w)
{
	bool wins = unm_way_alone_wins(w);

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
	uint32_t *cost = &w->cost[w->alone];
	bool won = unm_way_alone_wins(w);
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
	if (unm_way_alone_wins(w) != won) {
		w->gap = UNM_WAY_GAP_MIN;
		w->since = 0;
	}
}

/* Choose the way of the next transfer: true if this process is to go alone.
 * busy: another transfer with the peer is under way, so this one is of its
 * burst. */
static inline bool unm_way_choose(struct unm_way *w, bool busy)
{
	if (!busy || w->run == 0 || w->run >= UNM_WAY_RUN) {
		unm_way_average(w);
		w->alone = unm_way_next(w);
		w->run = 0;
	}
	w->run++;
	return w->alone;
}

/* Record that a transfer of len bytes took ns nanoseconds. The last transfers
 * of a burst that went the other way are not counted. */
static inline void unm_way_measured(struct unm_way *w, bool alone, uint64_t len,
				    uint64_t ns)
{
	if (alone != w->alone)
		return;
	w->bytes += len < UINT64_MAX - w->bytes ? len : UINT64_MAX - w->bytes;
	w->ns += ns < UINT64_MAX - w->ns ? ns : UINT64_MAX - w->ns;
}

/*
 * A transfer that began at begun, and was counted in clock->count, ends now. If
 * several were under way at once, each took the time since the end of the one
 * before it. If one of them went the other way, the time is of both ways and
 * does not count.
 */
static inline void unm_way_end(struct unm_way_clock *clock, struct unm_way *w,
			       bool alone, uint64_t len, uint64_t begun,
			       uint64_t now)
{
	bool pure = clock->count[!alone] == 0;

	if (begun < clock->ended_ns) {
		begun = clock->ended_ns;
		pure = pure && clock->alone == alone;
	}
	if (pure)
		unm_way_measured(w, alone, len, now - begun);
	clock->count[alone]--;
	clock->alone = alone;
	clock->ended_ns = now;
}

/* Nanoseconds that len bytes take by attach, by UNM_WAY_GUESS before the first
 * measurement. */
static inline uint64_t unm_way_alone_ns(const struct unm_way *w, uint64_t len)
{
	uint64_t ps = w->cost[1] != 0 ? w->cost[1] : UNM_WAY_GUESS;

	return len > UINT64_MAX / ps ? UINT64_MAX : len * ps / 1024000;
}

#endif /* UNM_WAY_H */
