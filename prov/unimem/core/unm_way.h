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
 * it has been slower: a trial loses the difference of the two ways' times, and
 * the pause after it is so long that the loss is a small part of it. A pause is
 * counted in bytes, and bounded by the time that these bytes take: nothing but
 * a trial notices that the slower way has become the faster one. A peer that
 * computes helps late, so its memory is accessed by attach.
 *
 * Transfers that are under way at once are a burst. All transfers of a burst
 * for which there is a choice go the same way, and are measured together:
 * several transfers of an engine end at once, so that the last of them seem to
 * take no time, and transfers that go different ways at once wait for each
 * other. The end of a transfer is when this process notices it, so time in
 * which the application makes no progress counts.
 *
 * A burst in which a put or get used receive space for the first time says
 * nothing about later ones: there were page faults, on virtual machines even in
 * both processes. Such a burst is discarded, and the next one repeats it. Each
 * of them uses at least one more page of the receive space of one side, so the
 * repetitions end. Messages are not examined for it: a stream uses the same
 * space many times.
 *
 * The code calls neither the clock nor the HAL.
 */
#ifndef UNM_WAY_H
#define UNM_WAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNM_WAY_CLASSES	4	/* ranges of lengths of messages */
#define UNM_WAY_OS_CLASSES 4	/* and of puts and gets */
#define UNM_WAY_GAP_MIN	16	/* a pause between trials of the slower way
				 * takes so many times the time that the trial
				 * has lost */
#define UNM_WAY_GAP_MAX	256
#define UNM_WAY_WAIT_NS	500000000	/* longest pause, unless UNM_WAY_GAP_MIN
					 * times the loss are longer */
#define UNM_WAY_SUM_MAX	(UINT64_C(1) << 40)	/* most bytes that count for
						 * a pause */
#define UNM_WAY_LOSS	16	/* unit of unm_way_loss() */
#define UNM_WAY_RUN	256	/* most transfers of a burst */
#define UNM_WAY_MISSED	16	/* bursts in a row of which none was measured:
				 * times of both ways count too */
#define UNM_WAY_GUESS	128000	/* ps a KiB by attach: 8 GB/s */

enum unm_way_how {
	UNM_WAY_ASSISTED,		/* streamed, or by requests */
	UNM_WAY_ATTACH,
	UNM_WAY_NONE,			/* there is no choice */
};

/* Measurements of one peer and one range of lengths. Protected by the lock of
 * the endpoint's domain. All 0 at first. */
struct unm_way {
	uint32_t cost[2];	/* ps a KiB by enum unm_way_how, moving average;
				 * 0: never measured */
	uint32_t base;		/* cost of the faster way after the last trial;
				 * 0: there was none */
	uint64_t wait;		/* bytes until the next trial */
	uint64_t sum;		/* bytes of the burst so far, and of the
				 * discarded ones just before it */
	uint16_t gap;		/* see UNM_WAY_GAP_MIN; smaller: how many of the
				 * first transfers there were */
	uint16_t run;		/* transfers of the burst so far */
	uint8_t how;		/* way of the burst */
	uint8_t missed;		/* bursts before it, see UNM_WAY_MISSED */
	bool trial;		/* it goes the slower way */
	bool first_use;		/* it is to be discarded */
	uint64_t bytes, ns;	/* of its measured transfers */
};

/* All measurements of a peer. */
struct unm_ways {
	struct unm_way msg[UNM_WAY_CLASSES];
	struct unm_way os[2][UNM_WAY_OS_CLASSES];	/* [0] puts, [1] gets */
};

/* The transfers of an endpoint with all peers. */
struct unm_way_clock {
	uint32_t count[2];	/* under way, by enum unm_way_how */
	uint8_t how;		/* way of the last that has ended ... */
	uint64_t ended_ns;	/* ... and when, unm_now_ns() */
};

/* The range of lengths of a message of len bytes. */
static inline unsigned unm_way_class(uint64_t len)
{
	return len < 64 << 10 ? 0 : len < 256 << 10 ? 1 : len < 1 << 20 ? 2 : 3;
}

/* The range of lengths of a put or get. */
static inline unsigned unm_way_os_class(uint64_t len)
{
	return len <= 4 << 10 ? 0 : len <= 8 << 10 ? 1 :
		len <= 16 << 10 ? 2 : 3;
}

/* True if attach was measured and is faster. */
static inline bool unm_way_attach_wins(const struct unm_way *w)
{
	return w->cost[UNM_WAY_ATTACH] != 0 &&
		w->cost[UNM_WAY_ATTACH] < w->cost[UNM_WAY_ASSISTED];
}

/* True if the present burst is assisted because that is the faster way, and not
 * as a trial. */
static inline bool unm_way_streams(const struct unm_way *w)
{
	return w->how == UNM_WAY_ASSISTED && !w->trial &&
		w->gap >= UNM_WAY_GAP_MIN && w->run < UNM_WAY_RUN;
}

/* The time that a transfer by the slower way takes longer, as a part of the
 * time by the faster way, in units of 1 / UNM_WAY_LOSS. From a quarter to 16
 * times: costs that are nearly equal vary more than they differ. */
static inline uint32_t unm_way_loss(const struct unm_way *w)
{
	uint64_t fast = w->cost[0] < w->cost[1] ? w->cost[0] : w->cost[1];
	uint64_t slow = w->cost[0] < w->cost[1] ? w->cost[1] : w->cost[0];
	uint64_t loss;

	if (fast == 0)			/* only one way was measured */
		return UNM_WAY_LOSS;
	loss = (slow - fast) * UNM_WAY_LOSS / fast;
	if (loss < UNM_WAY_LOSS / 4)
		return UNM_WAY_LOSS / 4;
	return loss < 16 * UNM_WAY_LOSS ? loss : 16 * UNM_WAY_LOSS;
}

/* Bytes until the next trial, after a trial of sum bytes. */
static inline uint64_t unm_way_pause(const struct unm_way *w)
{
	uint64_t fast = w->cost[0] < w->cost[1] ? w->cost[0] : w->cost[1];
	uint64_t loss = w->sum * unm_way_loss(w) / UNM_WAY_LOSS;
	uint64_t most = UNM_WAY_WAIT_NS * UINT64_C(1024000) / (fast + 1);

	if (most < loss * UNM_WAY_GAP_MIN)
		most = loss * UNM_WAY_GAP_MIN;
	return loss * w->gap < most ? loss * w->gap : most;
}

/* True if the faster way takes half as much time again as after the last trial:
 * the processes may have moved, and the other way may be the faster one now. */
static inline bool unm_way_changed(const struct unm_way *w)
{
	return w->base != 0 && w->cost[w->how] > w->base + w->base / 2;
}

/* The way of the burst that follows the present one. The first bursts
 * alternate between the ways, because the first transfer is slow in either
 * way. */
static inline enum unm_way_how unm_way_next(struct unm_way *w)
{
	bool wins = unm_way_attach_wins(w);

	if (w->run == 0 && w->gap == 0)	/* there was none yet */
		return UNM_WAY_ASSISTED;
	if (w->gap < UNM_WAY_GAP_MIN) {
		w->gap += w->run < UNM_WAY_GAP_MIN / 4 ? w->run :
			UNM_WAY_GAP_MIN / 4;
		if (w->gap < UNM_WAY_GAP_MIN)
			return !w->how;
		w->gap = UNM_WAY_GAP_MIN;
	} else if (w->trial) {
		w->wait = unm_way_pause(w);
		w->base = w->cost[wins];
		if (w->gap < UNM_WAY_GAP_MAX)
			w->gap *= 4;
	} else if (unm_way_changed(w)) {
		w->wait = 0;
		w->gap = UNM_WAY_GAP_MIN;
	} else {
		w->wait -= w->sum < w->wait ? w->sum : w->wait;
	}
	w->trial = w->wait == 0;
	return wins != w->trial;
}

/*
 * Add the burst's measurements to the average of its way. The average follows a
 * slower burst slowly, because it may be an exception (the process lost its
 * processor, or its memory was touched for the first time), and a faster burst
 * quickly, because the slower way is rarely tried. A trial that is faster
 * replaces the average: what was measured before is old, and a peer's first
 * streams are slow, because their receive space is small and fresh. So do the
 * first bursts, of which the fastest counts.
 */
static inline void unm_way_average(struct unm_way *w)
{
	uint32_t *cost = &w->cost[w->how];
	bool won = unm_way_attach_wins(w);
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
	if (ps < *cost && (w->trial || w->gap < UNM_WAY_GAP_MIN))
		*cost = (uint32_t)ps;
	*cost = 1 + (uint32_t)(ps < *cost ? (*cost + ps) / 2 :
			       (7 * (uint64_t)*cost + ps) / 8);
	if (unm_way_attach_wins(w) != won && w->gap > UNM_WAY_GAP_MIN) {
		w->gap = UNM_WAY_GAP_MIN;
		w->wait = 0;
	}
}

/* A transfer of len bytes belongs to the burst. */
static inline void unm_way_add(struct unm_way *w, uint64_t len)
{
	w->run++;
	w->sum += len < UNM_WAY_SUM_MAX - w->sum ? len :
		UNM_WAY_SUM_MAX - w->sum;
}

/* A put or get that went this way used receive space for the first time. If the
 * present burst goes the other way, it is a late one of a burst before, and
 * says nothing about this one. */
static inline void unm_way_first_use(struct unm_way *w, enum unm_way_how how)
{
	if (how == w->how)
		w->first_use = true;
}

/* Forget the burst's measurements: the next one goes the same way. The bytes
 * still count, so that the pause after a trial pays for all its bursts. */
static inline void unm_way_discard(struct unm_way *w)
{
	w->bytes = 0;
	w->ns = 0;
	w->first_use = false;
}

/* Take the burst's measurements into account, and choose the way of the next
 * one. */
static inline void unm_way_conclude(struct unm_way *w)
{
	if (w->bytes != 0)
		w->missed = 0;
	else if (w->missed < UNM_WAY_MISSED)
		w->missed++;
	unm_way_average(w);
	w->how = unm_way_next(w);
	w->sum = 0;
}

/* Choose the way of the next transfer, of len bytes. busy: another transfer
 * with the peer is under way, so this one is of its burst. */
static inline enum unm_way_how unm_way_choose(struct unm_way *w, uint64_t len,
					      bool busy)
{
	if (!busy || w->run == 0 || w->run >= UNM_WAY_RUN) {
		if (w->first_use)
			unm_way_discard(w);
		else
			unm_way_conclude(w);
		w->run = 0;
	}
	unm_way_add(w, len);
	return w->how;
}

/* Record that a transfer of len bytes took ns nanoseconds. The last transfers
 * of a burst that went the other way are not counted. */
static inline void unm_way_measured(struct unm_way *w, enum unm_way_how how,
				    uint64_t len, uint64_t ns)
{
	if (how != w->how)
		return;
	w->bytes += len < UINT64_MAX - w->bytes ? len : UINT64_MAX - w->bytes;
	w->ns += ns < UINT64_MAX - w->ns ? ns : UINT64_MAX - w->ns;
}

/*
 * A transfer that is counted in clock->count ends now. w NULL: its time does
 * not count, else it began at begun. If several were under way at once, each
 * took the time since the end of the one before it. If one of them went the
 * other way, the time is of both ways and does not count either, unless this
 * is always so.
 */
static inline void unm_way_end(struct unm_way_clock *clock, struct unm_way *w,
			       enum unm_way_how how, uint64_t len,
			       uint64_t begun, uint64_t now)
{
	bool pure = clock->count[!how] == 0;

	if (begun < clock->ended_ns) {
		begun = clock->ended_ns;
		pure = pure && clock->how == how;
	}
	if (w != NULL && (pure || w->missed == UNM_WAY_MISSED))
		unm_way_measured(w, how, len, now - begun);
	clock->count[how]--;
	clock->how = how;
	clock->ended_ns = now;
}

/* Nanoseconds that len bytes take by attach, by UNM_WAY_GUESS before the first
 * measurement; w NULL: there is none. */
static inline uint64_t unm_way_attach_ns(const struct unm_way *w, uint64_t len)
{
	uint64_t ps = w != NULL && w->cost[UNM_WAY_ATTACH] != 0 ?
		w->cost[UNM_WAY_ATTACH] : UNM_WAY_GUESS;

	return len > UINT64_MAX / ps ? UINT64_MAX : len * ps / 1024000;
}

#endif /* UNM_WAY_H */
