/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * stamps.pml - back words under the timing model: snapshots that arrive later,
 * and a barrier that stores words itself
 *
 * The receiver of packets writes each value of the back words as a snapshot
 * with a time of arrival. The sender shows the newest one that has arrived, in
 * the words that hal_tx_back() reads. The barrier waits until all snapshots have
 * arrived, and then stores these words too, because hal_tx_back_sync() does not
 * call the backend. Models
 *   hal_emu_stamp.c  emu_stamp_back_store(), emu_stamp_back_barrier(),
 *                    store_word(), show_words(), show_newest(), take_words()
 * with two places for snapshots. A snapshot has two words, of which one is shown.
 *
 * Claims
 *   not_torn     the words of a snapshot that is shown were stored together
 *   not_early    a snapshot is shown once it has arrived, not before
 *   not_behind   when a barrier and a call of take_words() have both returned,
 *                the word is not older than the barrier's
 *   at_last      after the last snapshot has arrived, a call shows it
 *
 * Mutants, and what rejects them
 *   WORDS_RELAXED    not_torn     the words of a snapshot are stored without
 *                                 release
 *   LOADS_RELAXED    not_torn     ... are loaded without acquire
 *   DUE_RELAXED      not_torn     the time of arrival is stored without release
 *   NO_MARK          not_torn     a snapshot is not marked while it changes
 *   NO_SECOND_LOOK   not_torn     its time is not compared after its words were
 *                                 loaded
 *   COUNT_ONCE       not_behind   the barrier does not store the count again
 *   COUNT_ACQUIRE    not_behind   the count is loaded with acquire only
 *   ONE_SNAPSHOT     not_behind   take_words() does not look again after it has
 *                                 shown a snapshot
 *   OLD_CLOCK        not_behind   ... looks again without reading the clock
 *   NO_WAIT          not_early    the barrier does not wait for the arrival
 */
#define PLACES		2
#define VALUES		3
#define MARK		15

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

bool not_torn = true, not_early = true, not_behind = true, at_last = true;
byte clock;				/* snapshot n arrives at the time n */
byte barrier;				/* value that the last barrier stored */
bool done;				/* the receiver has ended */

/* the latest value, which a sequentially consistent load returns */
#define LATEST		atom[SHOWN].val[last[SHOWN]]

proctype time()
{
	do
	:: clock < VALUES -> clock++
	:: else -> break
	od
}

/* store_word(): a store only if the word changes */
inline store_word(p, value, shown)
{
	load_sync(p, SHOWN, shown);
	if
	:: shown != value ->
		store_sync(p, SHOWN, value)
	:: else
	fi
}

/* ---- The receiver of packets -------------------------------------------- */

/* emu_stamp_back_store(): over the oldest snapshot, or the newest */
inline back_store()
{
	value++;
	if
	:: clock < due[stamps % PLACES] ->
		place = (stamps + PLACES - 1) % PLACES
	:: else ->
		place = stamps % PLACES;
		stamps++
	fi;
	due[place] = value;
#ifndef NO_MARK
	store(RECEIVER, DUE(place), MARK, RELAXED);
#endif
	store(RECEIVER, WORD(place, 0), value, STORED);
	store(RECEIVER, WORD(place, 1), value, STORED);
	store(RECEIVER, DUE(place), value, DUE_STORED);
	store(RECEIVER, COUNT, stamps, RELEASE)
}

inline back_barrier()
{
#ifndef NO_WAIT
	clock >= value;			/* load_back() */
#endif
#ifndef COUNT_ONCE
	store_sync(RECEIVER, COUNT, stamps);
#endif
	store_word(RECEIVER, value, shown);
	d_step {
		claim(not_early, clock >= value);
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
#ifndef NO_SECOND_LOOK
	load(SENDER, DUE(place), again, RELAXED);
#else
	again = due;
#endif
	if
	:: again == due ->
		claim(not_torn, word[0] == due && word[1] == due);
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
		load(SENDER, DUE(place), due, ACQUIRE);
		if
		:: due <= words_due -> break
		:: due == MARK		/* it is being written */
		:: else ->
			now = (now == 0 -> clock : now);
			if
			:: due > now
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

/* take_words(); its bound on the number of snapshots is not reached here */
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
	claim(not_behind, LATEST >= barrier)
}

proctype sender()
{
	byte count, back, place, due, again, now, words_due, shown;
	byte word[2];
	bool found;

	do
	:: take_words()
	:: done && clock == VALUES ->
		learn_all(SENDER);
		break
	od;
	take_words();
	claim(at_last, LATEST == VALUES)
}

init
{
	atomic {
		run time();
		run receiver();
		run sender()
	}
}
