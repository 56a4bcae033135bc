/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_window.pml - windows and acknowledgements of a queue: two producers, the
 * service, a consumer, and memory that becomes scarce and available
 *
 * Consumer and memory act only when the producers cannot continue, as far as
 * the producers know: the consumer takes words when each producer has sent all
 * its words or was notified that it may send none, and not only for lack of
 * memory; memory becomes available when a producer was notified that there is
 * none.
 *
 * Models
 *   gsas_queue.c         gsas_queue_put(), use(), gsas_queue_grant(), full(),
 *                        update_why()
 *   gsas_queue_client.c  become_producer(), gsas_enqueue(), check_window()
 *   gsas_queue_handle.c  gsas_handle_notified()
 * with messages that arrive in order. A word is a number only; gsas_queue.pml
 * proves that the service learns which words were taken. Granted words have
 * memory.
 *
 * Claims
 *   granted  the service accepts no word that it has not granted
 *   stocked  it grants no word without memory
 *   quota    words in the queue and granted words are at most the quota
 *   is_full  a producer is notified that the queue is full, or that there is no
 *            memory, only if that is true and the producer has no granted word
 *   (no invalid end state) all words are delivered: no producer waits for an
 *            answer that does not come, and none finds the queue full for ever
 *
 * Mutants, and what rejects them
 *   NO_PLACE       quota     a window is refilled without checking the quota
 *   NOT_COUNTED    quota     words that may be sent do not count
 *   SENT_BEYOND    granted   the producer sends a word more than its window
 *   FULL_EARLY     is_full   "full" is sent when half of the window is left
 *   FULL_ALWAYS    is_full   ... or without checking the quota
 *   FULL_UNTOLD    deadlock  no "full" is sent when there is no free entry
 *   MORE_UNTOLD    deadlock  the producer is not notified of its new window
 *   FULL_STAYS     deadlock  the producer does not see that it may send again
 *   ONE_SERVED     deadlock  only the first producer is granted words again
 *   NO_MEMORY      stocked   a window is refilled without checking the memory
 *   REASON_STAYS   deadlock  a producer that was notified of one reason is not
 *                            notified of another
 *   WRONG_REASON   is_full   "full" is sent if memory is short, and vice versa
 */
#define PRODUCERS	2
#define WORDS		4		/* of each */
#define QUOTA		3
#define WINDOW		2		/* ... of the first, 1 of the second */
#define SIZE(p)		(WINDOW - p)

#define MORE	0
#define FULL	1
#define STARVED	2			/* there is a place, and no memory */
#define SHORTAGES	2		/* how often memory is used up */

chan put[PRODUCERS] = [WINDOW + 1] of { bit };
chan told[PRODUCERS] = [4] of { byte, byte };	/* MORE, FULL or STARVED; words
						 * so far */

/* of the producers */
byte sent[PRODUCERS], may[PRODUCERS];
byte stopped[PRODUCERS] = FULL;		/* or STARVED, as far as it knows: as
					 * when it opened the queue without a
					 * word; MORE: it may send */
/* of the service */
byte allowed[PRODUCERS], got[PRODUCERS];
bool silent[PRODUCERS];			/* it may send no word, and was not told
					 * why */
byte why = FULL;			/* as all of these were told that are
					 * not silent */
byte inside;
byte taken;				/* by the taker */
bool memory = true;

bool granted = true, stocked = true, quota = true, is_full = true;

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
	byte what, words;

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
		if
		:: what != MORE ->
			stopped[p] = what
		:: else
		fi;
		if
		:: stopped[p] != MORE ->
			may[p] = sent[p]
		:: else
		fi;
#else
		stopped[p] = what;
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
	claim(stocked, memory);
	tell_more(p)
}

#define REASON		(PLACE == 0 -> FULL : STARVED)

#ifdef WRONG_REASON
#define SAID		(FULL + STARVED - why)
#else
#define SAID		why
#endif

#define TRUE_REASON	(SAID == FULL && PLACE == 0 || \
			 SAID == STARVED && PLACE > 0 && !memory)

inline tell_full(p)
{
	claim(is_full, UNUSED(p) == 0 && TRUE_REASON);
#ifndef FULL_UNTOLD
	told[p]!SAID, allowed[p];
#endif
	silent[p] = false
}

inline change_why()
{
	why = REASON;
#ifndef REASON_STAYS
	silent[0] = silent[0] || UNUSED(0) == 0;
	silent[1] = silent[1] || UNUSED(1) == 0
#endif
}

#ifdef NO_PLACE
#define MAY_GIVE	memory
#elif defined(NO_MEMORY)
#define MAY_GIVE	(PLACE > 0)
#else
#define MAY_GIVE	(PLACE > 0 && memory)
#endif
#ifdef FULL_EARLY
#define SAYS_FULL(p)	(silent[p] && !MAY_GIVE && REASON == why)
#define FALLS_SILENT(p)	(UNUSED(p) <= SIZE(p) / 2)
#elif defined(FULL_ALWAYS)
#define SAYS_FULL(p)	(silent[p])
#define FALLS_SILENT(p)	(UNUSED(p) == 0)
#else
#define SAYS_FULL(p)	(silent[p] && !MAY_GIVE && REASON == why)
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
	:: atomic { !MAY_GIVE && REASON != why -> change_why() }
	od
}

/* ---- Who helps ----------------------------------------------------------- */

#define STANDS(p)	(sent[p] == WORDS || stopped[p] == FULL)

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

proctype system()
{
	byte shortages;

end:	do
	:: atomic { memory && shortages < SHORTAGES ->
		memory = false;
		shortages++ }
	:: atomic { !memory && (stopped[0] == STARVED ||
				stopped[1] == STARVED) ->
		memory = true }
	od
}

init {
	atomic {
		run producer(0);
		run producer(1);
		run service();
		run taker();
		run system()
	}
}
