/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_window.pml - windows and acknowledgements of a queue: two producers, the
 * service, and a thread that takes words out only when the producers cannot go
 * on: each has sent all its words, or was told that the queue is full.
 *
 * Models
 *   gsas_queue.c         gsas_queue_put(), use(), gsas_queue_grant(), full()
 *   gsas_queue_client.c  become_producer(), gsas_enqueue(), look_at_window(),
 *                        gsas_queue_told()
 * with messages that arrive in order, and words that are numbers only: that the
 * service finds out what was taken is gsas_queue.pml.
 *
 * Claims
 *   granted  the service puts in no word that it has not allowed
 *   quota    words inside, and those that may be sent, are at most the quota
 *   is_full  who is told that the queue is full has no word left to send, and
 *            there is no place
 *   (no invalid end state) all words come out: no producer waits for an answer
 *            that does not come, and none is full for ever
 *
 * Mutants, and what rejects them
 *   NO_PLACE       quota     a window is refilled without a look at the quota
 *   NOT_COUNTED    quota     words that may be sent do not count
 *   SENT_BEYOND    granted   the producer sends a word more than its window
 *   FULL_EARLY     is_full   "full" is said when half of the window is left
 *   FULL_ALWAYS    is_full   ... or without a look at the quota
 *   FULL_UNTOLD    deadlock  nothing is said when there is no place
 *   MORE_UNTOLD    deadlock  the producer is not told of its new window
 *   FULL_STAYS     deadlock  the producer does not see that it may send again
 *   ONE_SERVED     deadlock  only the first producer is served again
 */
#define PRODUCERS	2
#define WORDS		4		/* of each */
#define QUOTA		3
#define WINDOW		2		/* ... of the first, 1 of the second */
#define SIZE(p)		(WINDOW - p)

#define FULL	1
#define MORE	0

chan put[PRODUCERS] = [WINDOW + 1] of { bit };
chan told[PRODUCERS] = [4] of { bit, byte };	/* MORE or FULL, words so far */

/* of the producers */
byte sent[PRODUCERS], may[PRODUCERS];
bool stopped[PRODUCERS] = true;		/* full, as far as it knows: as when it
					 * opened the queue without a word */
/* of the service */
byte allowed[PRODUCERS], got[PRODUCERS];
bool silent[PRODUCERS];			/* full, and not told */
byte inside;
byte taken;				/* by the taker */

bool granted = true, quota = true, is_full = true;

inline claim(what, cond)
{
	what = what && (cond);
	assert(what)
}

#define UNUSED(p)	(allowed[p] - got[p])
#define OPEN		(UNUSED(0) + UNUSED(1))
#ifdef NOT_COUNTED
#define PLACE		(QUOTA - inside)
#else
#define PLACE		(QUOTA - inside - OPEN)
#endif

/* ---- A producer ---------------------------------------------------------- */

#ifdef SENT_BEYOND
#define LEFT(p)		(sent[p] < WORDS && sent[p] <= may[p])
#else
#define LEFT(p)		(sent[p] < WORDS && sent[p] < may[p])
#endif

proctype producer(byte p)
{
	bit what;
	byte words;

end:	do
	:: atomic { LEFT(p) -> put[p]!0; sent[p]++ }
	:: atomic {
		told[p]?what, words;
		if
		:: words > may[p] ->
			may[p] = words
		:: else
		fi;
#ifdef FULL_STAYS
		stopped[p] = stopped[p] || what == FULL;
		if
		:: stopped[p] ->
			may[p] = sent[p]
		:: else
		fi;
#else
		stopped[p] = what == FULL;
#endif
		what = 0;
		words = 0
	   }
	od
}

/* ---- The service --------------------------------------------------------- */

inline tell_more(p)
{
#ifndef MORE_UNTOLD
	told[p]!MORE, allowed[p];
#endif
	silent[p] = false
}

inline give(p)
{
#ifdef NO_PLACE
	allowed[p] = allowed[p] + SIZE(p) - UNUSED(p);
#else
	allowed[p] = allowed[p] + (PLACE < SIZE(p) - UNUSED(p) ->
				   PLACE : SIZE(p) - UNUSED(p));
#endif
	claim(quota, inside + OPEN <= QUOTA);
	tell_more(p)
}

inline tell_full(p)
{
	claim(is_full, UNUSED(p) == 0 && PLACE == 0);
#ifndef FULL_UNTOLD
	told[p]!FULL, allowed[p];
#endif
	silent[p] = false
}

#ifdef NO_PLACE
#define MAY_GIVE	true
#else
#define MAY_GIVE	(PLACE > 0)
#endif
#ifdef FULL_EARLY
#define SAYS_FULL(p)	(silent[p] && PLACE == 0)
#define FALLS_SILENT(p)	(UNUSED(p) <= SIZE(p) / 2)
#elif defined(FULL_ALWAYS)
#define SAYS_FULL(p)	(silent[p])
#define FALLS_SILENT(p)	(UNUSED(p) == 0)
#else
#define SAYS_FULL(p)	(silent[p] && !MAY_GIVE)
#define FALLS_SILENT(p)	(UNUSED(p) == 0)
#endif
#ifdef ONE_SERVED
#define SERVED(p)	(p == 0)
#else
#define SERVED(p)	true
#endif

/* A word of a producer: put in, and whether it may send more is looked at. */
inline take_in(p)
{
	put[p]?_;
	claim(granted, got[p] < allowed[p]);
	got[p]++;
	inside++;
	silent[p] = FALLS_SILENT(p)
}

proctype service()
{
end:	do
	:: atomic { nempty(put[0]) -> take_in(0) }
	:: atomic { nempty(put[1]) -> take_in(1) }
	:: atomic { UNUSED(0) == 0 && MAY_GIVE && nfull(told[0]) -> give(0) }
	:: atomic { UNUSED(1) == 0 && MAY_GIVE && nfull(told[1]) && SERVED(1) ->
		give(1) }
	:: atomic { SAYS_FULL(0) && nfull(told[0]) -> tell_full(0) }
	:: atomic { SAYS_FULL(1) && nfull(told[1]) -> tell_full(1) }
	od
}

/* ---- Who takes out ------------------------------------------------------- */

#define STANDS(p)	(sent[p] == WORDS || stopped[p])

proctype taker()
{
	do
	:: taken == PRODUCERS * WORDS ->
		break
	:: atomic { inside > 0 && STANDS(0) && STANDS(1) ->
		inside--;
		taken++ }
	od
}

init {
	atomic {
		run producer(0);
		run producer(1);
		run service();
		run taker()
	}
}
