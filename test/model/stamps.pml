/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stamps.pml - back words under the timing model: snapshots that arrive later,
 * and a barrier that stores words itself
 *
 * Back words (struct hal_back, hal.h) are small values that the receiver of
 * packets returns to the sender. Under the timing model the receiver writes each
 * of their values as a snapshot with a time of arrival. The sender copies
 * ("shows") the newest snapshot that has arrived to struct hal_back, where
 * hal_tx_back() reads it. hal_tx_back_sync() does not do that, so it does not
 * see a snapshot that has arrived but is not shown yet. Therefore the barrier
 * waits until all snapshots have arrived, and then stores the words in struct
 * hal_back as well. Models
 *   hal_emu_stamp.c  emu_stamp_back_store(), emu_stamp_back_barrier(),
 *                    load_back(), store_word(), show_words(), show_newest(),
 *                    take_words()
 * with places for two snapshots. A snapshot has two words, of which the first is
 * shown. In the last snapshot it has the value 0 again, as before the first.
 *
 * Assumptions: both processes read one clock, and not before an earlier load;
 * each snapshot arrives later than the one before. take_words() shows until
 * nothing newer has arrived: its bound, EMU_STAMPS, is not in the model. (With
 * a bound of two, not_behind fails. docs/roadmap.md, "Known mistakes", has it.)
 *
 * Claims
 *   not_torn     the words of a snapshot that is shown were stored together
 *   not_early    a snapshot is shown once it has arrived, not before
 *   not_behind   when a barrier and a call of take_words() have both returned,
 *                the word is not older than that of the barrier
 *   at_last      when the last snapshot has arrived and its stores are visible,
 *                a call of take_words() shows it
 *
 * Mutants, and what rejects them
 *   WORDS_RELAXED    not_torn     the words of a snapshot are stored without
 *                                 release
 *   LOADS_RELAXED    not_torn     the words are loaded without acquire
 *   DUE_RELAXED      not_torn     the time of arrival is stored without release
 *   DUE_LOAD         not_torn     the time of arrival is loaded without acquire
 *   NO_MARK          not_torn     a snapshot is not marked while it changes
 *   NO_SECOND_LOAD   not_torn     the time of arrival is not loaded again after
 *                                 the words
 *   COUNT_RELAXED    not_behind   the number of snapshots (emu_stamps.count) is
 *                                 stored without release
 *   COUNT_ONCE       not_behind   the barrier does not store this number again
 *   COUNT_ACQUIRE    not_behind   this number is loaded with acquire only
 *   WORD_FIRST       not_behind   the barrier stores the word before the number
 *   SHOWN_RELAXED    not_behind   store_word() loads the word relaxed
 *   ONE_SNAPSHOT     not_behind   take_words() ends after it has shown a snapshot
 *   OLD_CLOCK        not_behind   take_words() does not read the clock again
 *   NO_WAIT          not_early    the barrier does not wait for the arrival
 *   NO_CLOCK         not_early    the sender does not compare times with the clock
 *   COUNT_LATE       at_last      only a barrier stores the number
 */
#define PLACES		2
#define VALUES		3
#define MARK		15
#define ARRIVED(n, now)	((now) > (n))		/* is snapshot n due? */
#define FACE(n)		((n) % VALUES)		/* its first word */

#define COUNT		0
#define DUE(place)	(1 + 3 * (place))
#define WORD(place, w)	(2 + 3 * (place) + (w))
#define SHOWN		(1 + 3 * PLACES)	/* what hal_tx_back() reads */
#define ATOMS		(2 + 3 * PLACES)
#define PLAIN		0
#define WINDOW		7

#include "memory.pml"

#define SENDER		0
#define RECEIVER	1

#ifdef WORDS_RELAXED
#define STORED		RELAXED
#else
#define STORED		RELEASE
#endif
#ifdef LOADS_RELAXED
#define LOADED		RELAXED
#else
#define LOADED		ACQUIRE
#endif
#ifdef DUE_RELAXED
#define DUE_STORED	RELAXED
#else
#define DUE_STORED	RELEASE
#endif
#ifdef DUE_LOAD
#define DUE_LOADED	RELAXED
#else
#define DUE_LOADED	ACQUIRE
#endif
#ifdef COUNT_RELAXED
#define COUNT_STORED	RELAXED
#else
#define COUNT_STORED	RELEASE
#endif

bool not_torn = true, not_early = true, not_behind = true, at_last = true;
byte clock = 1;
byte barrier;				/* snapshot that a barrier stored last */
bool done;				/* the receiver has ended */

/* the latest value, which a sequentially consistent load returns */
#define LATEST		atom[SHOWN].val[last[SHOWN]]

proctype time()
{
	do
	:: clock <= VALUES -> clock++
	:: else -> break
	od
}

/* store_word(): a store only if the word changes */
inline store_word(p, value, shown)
{
#ifdef SHOWN_RELAXED
	load(p, SHOWN, shown, RELAXED);
#else
	load_sync(p, SHOWN, shown);
#endif
	if
	:: shown != value ->
		store_sync(p, SHOWN, value)
	:: else
	fi
}

/* ---- The receiver of packets -------------------------------------------- */

/* emu_stamp_back_store(): over the oldest snapshot, or, if that has not arrived,
 * over the newest */
inline back_store()
{
	value++;
	if
	:: !ARRIVED(due[stamps % PLACES], clock) ->
		place = (stamps + PLACES - 1) % PLACES
	:: else ->
		place = stamps % PLACES;
		stamps++
	fi;
	due[place] = value;
#ifndef NO_MARK
	store(RECEIVER, DUE(place), MARK, RELAXED);
#endif
	store(RECEIVER, WORD(place, 0), FACE(value), STORED);
	store(RECEIVER, WORD(place, 1), value, STORED);
	store(RECEIVER, DUE(place), value, DUE_STORED);
#ifndef COUNT_LATE
	store(RECEIVER, COUNT, stamps, COUNT_STORED)
#endif
}

inline back_barrier()
{
#ifndef NO_WAIT
	ARRIVED(value, clock);		/* load_back() */
#endif
#ifdef WORD_FIRST
	store_word(RECEIVER, FACE(value), shown);
#endif
#ifndef COUNT_ONCE
	store_sync(RECEIVER, COUNT, stamps);
#endif
#ifndef WORD_FIRST
	store_word(RECEIVER, FACE(value), shown);
#endif
	d_step {
		claim(not_early, ARRIVED(value, clock));
		barrier = value
	}
}

proctype receiver()
{
	byte value, stamps, place, shown;
	byte due[PLACES];

	do
	:: value == VALUES -> break
	:: else ->
		back_store();
		if
		:: back_barrier()
		:: skip
		fi
	od;
	done = true
}

/* ---- The sender of packets ---------------------------------------------- */

/* show_words() */
inline show_words()
{
	load(SENDER, WORD(place, 0), word[0], LOADED);
	load(SENDER, WORD(place, 1), word[1], LOADED);
#ifndef NO_SECOND_LOAD
	load(SENDER, DUE(place), again, RELAXED);
#else
	again = due;
#endif
	if
	:: again == due ->
		claim(not_torn, word[0] == FACE(due) && word[1] == due);
		claim(not_early, ARRIVED(due, clock));
		words_due = due;
		store_word(SENDER, word[0], shown);
		found = true
	:: else
	fi
}

/* show_newest() */
inline show_newest()
{
	found = false;
#ifdef COUNT_ACQUIRE
	load(SENDER, COUNT, count, ACQUIRE);
#else
	load_sync(SENDER, COUNT, count);
#endif
	for (back : 1 .. PLACES) {
		place = (count + PLACES - back) % PLACES;
		load(SENDER, DUE(place), due, DUE_LOADED);
		if
		:: due <= words_due -> break
		:: due == MARK		/* it is being written */
		:: else ->
			now = (now == 0 -> clock : now);
			if
#ifndef NO_CLOCK
			:: !ARRIVED(due, now)
#endif
			:: else ->
				show_words();
				if
				:: found -> break
				:: else
				fi
			fi
		fi
	}
}

/* take_words(), of a caller that has not read the clock yet */
inline take_words()
{
	now = 0;
	do
	:: show_newest();
#ifdef ONE_SNAPSHOT
		break
#else
		if
		:: found ->
#ifndef OLD_CLOCK
			now = 0
#else
			skip
#endif
		:: else -> break
		fi
#endif
	od;
	claim(not_behind, LATEST == FACE(VALUES) ||
			  (barrier < VALUES && LATEST >= barrier))
}

proctype sender()
{
	byte count, back, place, due, again, now, words_due, shown;
	byte word[2];
	bool found;

	do
	:: take_words()
	:: done && ARRIVED(VALUES, clock) ->
		learn_all(SENDER);
		break
	od;
	take_words();
	claim(at_last, LATEST == FACE(VALUES))
}

init
{
	atomic {
		run time();
		run receiver();
		run sender()
	}
}
