/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * coll.pml - collectives of MPI through shared memory: two processes, and any
 * sequence of broadcasts, reductions and exchanges
 *
 * Models mpich-patches/coll-shared.patch: shared_begin(), shared_finish(),
 * shared_arrive(), shared_open_result(), shared_wait_result(), shared_met(), and
 * the order in which the collectives call them. Each collective is one round; in
 * the code a reduction may begin several rounds before it finishes them. Data
 * are plain memory: only the order of the accesses is modelled, not what they
 * read.
 *
 * Claims
 *   no_race   no cell is written before all have read it; nobody reads a cell
 *             before it is written
 *   counted   a process is counted in the round of its slot, not in an earlier
 *             or later one
 *   (no invalid end state) all rounds are finished
 *
 * Mutants, and what rejects them
 *   FREE_UNSEEN      no_race   a round does not wait until its slot is free
 *   FREE_EARLY       no_race   ... or for one round less
 *   FINISH_FIRST     no_race   a round is finished before its data were read
 *   FINISH_RELAXED   no_race   ... or without release
 *   FREE_RELAXED     no_race   what others have finished is loaded without
 *                              acquire
 *   MET_BEYOND       no_race   who met the others takes the round that they are
 *                              in as finished
 *   OPEN_RELAXED     no_race   a result is opened without release
 *   WAIT_RELAXED     no_race   ... or awaited without acquire
 *   OPEN_FIRST       no_race   ... or opened before it is written
 *   COUNT_ACQUIRE    no_race   a process is counted without release
 *   COUNT_RELEASE    no_race   ... or without acquire
 *   RESET_LATE       counted   the count is set back after the round is finished
 *   RESET_NEVER      counted   ... or not at all
 */
#define SLOTS		2
#define ROUNDS		5

#define PROCS		2
#define FINISHED(p)	(p)
#define COUNT(s)	(2 + (s))
#define OPENED(s)	(4 + (s))	/* the round of a result */
#define ATOMS		6
#define CELL(s, p)	(4 * (s) + (p))	/* read by the other process */
#define RESULT(s, p)	(4 * (s) + 2 + (p))	/* as process p reads it */
#define PLAIN		8
#define WINDOW		5

#include "memory.pml"

#ifdef FINISH_RELAXED
#define FINISH_STORE	RELAXED
#else
#define FINISH_STORE	RELEASE
#endif
#ifdef FREE_RELAXED
#define FREE_LOAD	RELAXED
#else
#define FREE_LOAD	ACQUIRE
#endif
#ifdef OPEN_RELAXED
#define OPEN_STORE	RELAXED
#else
#define OPEN_STORE	RELEASE
#endif
#ifdef WAIT_RELAXED
#define WAIT_LOAD	RELAXED
#else
#define WAIT_LOAD	ACQUIRE
#endif
#ifdef COUNT_RELEASE
#define COUNT_LOAD	RELAXED
#else
#define COUNT_LOAD	ACQUIRE
#endif
#ifdef COUNT_ACQUIRE
#define COUNT_STORE	RELAXED
#else
#define COUNT_STORE	RELEASE
#endif
#ifdef FREE_EARLY
#define FREE(round)	(round - SLOTS - 1)
#else
#define FREE(round)	(round - SLOTS)
#endif

#define BCAST		1		/* of process 0; 2: of process 1 */
#define REDUCE		3		/* to process 0; 4: to process 1 */
#define ALLREDUCE	5
#define EXCHANGE	6		/* also a barrier */

byte op[ROUNDS + 1];			/* what is called; 0: nobody knows yet */
bool counted = true;

inline shared_begin()
{
	atomic {
		round++;
		slot = round % SLOTS;
		if
		:: op[round] == 0 ->	/* this process is the first one */
			select (called : BCAST .. EXCHANGE);
			op[round] = called
		:: else ->
			called = op[round];
			op[round] = 0
		fi
	};
#ifndef FREE_UNSEEN
	do
	:: round <= all_finished + SLOTS ->
		break
	:: else ->
		if
		:: SEEN(p, FINISHED(1 - p)) < FREE(round) ->
			await(p, FINISHED(1 - p))
		:: else
		fi;
		load(p, FINISHED(1 - p), seen, FREE_LOAD);
		if
		:: seen >= FREE(round) ->
			all_finished = seen;
			seen = 0;
			break
		:: else
		fi
	od
#endif
}

inline shared_finish()
{
	store(p, FINISHED(p), round, FINISH_STORE)
}

/* last: this process is the last one */
inline shared_arrive()
{
	atomic {
		d_step {
			pick = last[COUNT(slot)];
			take_value(p, COUNT(slot), seen, COUNT_LOAD)
		};
		cas_store(p, COUNT(slot), seen + 1, COUNT_STORE);
		claim(counted, seen < PROCS);
		last_one = (seen + 1 == PROCS);
		seen = 0
	};
#ifndef RESET_NEVER
#ifndef RESET_LATE
	if
	:: last_one ->
		store(p, COUNT(slot), 0, RELAXED)
	:: else
	fi
#endif
#endif
}

inline shared_open_result()
{
	store(p, OPENED(slot), round, OPEN_STORE)
}

inline shared_wait_result()
{
	do
	:: SEEN(p, OPENED(slot)) < round ->
		await(p, OPENED(slot))
	:: else ->
		load(p, OPENED(slot), seen, WAIT_LOAD);
		if
		:: seen >= round ->
			seen = 0;
			break
		:: else
		fi
	od
}

inline shared_met()
{
#ifdef MET_BEYOND
	all_finished = round
#else
	all_finished = round - 1
#endif
}

inline write_result()
{
	plain_write(p, RESULT(slot, 0));
	plain_write(p, RESULT(slot, 1))
}

inline finish_early()
{
#ifdef FINISH_FIRST
	shared_finish()
#else
	skip
#endif
}

inline bcast()
{
	if
	:: called == BCAST + p ->
#ifdef OPEN_FIRST
		shared_open_result();
		write_result()
#else
		write_result();
		shared_open_result()
#endif
	:: else ->
		shared_wait_result();
		finish_early();
		plain_read(p, RESULT(slot, p))
	fi
}

inline reduce()
{
	plain_write(p, CELL(slot, p));
	shared_arrive();
	if
	:: last_one ->
		plain_read(p, CELL(slot, 1 - p));
		write_result();
		shared_open_result()
	:: else
	fi;
	if
	:: called == ALLREDUCE || called == REDUCE + p ->
		shared_wait_result();
		shared_met();
		finish_early();
		plain_read(p, RESULT(slot, p))
	:: else
	fi
}

inline exchange()
{
	plain_write(p, CELL(slot, p));
	shared_arrive();
	if
	:: last_one ->
		shared_open_result()
	:: else ->
		shared_wait_result()
	fi;
	shared_met();
	finish_early();
	plain_read(p, CELL(slot, 1 - p))
}

proctype process(bit p)
{
	byte called, round, slot, all_finished, seen;
	bool last_one;

	do
	:: round == ROUNDS ->
		break
	:: else ->
		shared_begin();
		if
		:: called < REDUCE ->
			bcast()
		:: called >= REDUCE && called <= ALLREDUCE ->
			reduce()
		:: called == EXCHANGE ->
			exchange()
		fi;
#ifndef FINISH_FIRST
		shared_finish();
#endif
#ifdef RESET_LATE
		if
		:: last_one ->
			store(p, COUNT(slot), 0, RELAXED)
		:: else
		fi;
#endif
		last_one = false;
		called = 0
	od
}

init
{
	atomic {
		run process(0);
		run process(1)
	}
}
