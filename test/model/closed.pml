/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * closed.pml - a process reads the memory of a peer that closes meanwhile
 *
 * The owner frees its peer object, and its application writes to the memory
 * again. The reader does not wait for the owner, nor the owner for the reader:
 * the transfer is cancelled, unless it had ended before. Models
 *   hal_emu_link.c  emu_peer_free()
 *   hal_emu_dma.c   emu_dma_poll() with dma_valid()
 * and of the application one store.
 *
 * Claims
 *   no_race    the reads of a transfer that succeeds are before the writes of
 *              the application. (Those of a transfer that is cancelled need not
 *              be.)
 *
 * Mutants, and what rejects them
 *   VALID_LOADS     no_race     dma_valid() loads the word with acquire
 *   VALID_RELAXED   no_race     ... adds without release
 *   VALID_FIRST     no_race     ... is called before the last byte is read
 *   FREE_RELAXED    no_race     emu_peer_free() exchanges without acquire
 *   FREE_LAST       no_race     ... exchanges after the application has written
 */
#define CLOSED		0		/* the word, see emu_link_closed() */
#define ATOMS		1
#define DATA		0
#define PLAIN		1
#define WINDOW		4

#include "memory.pml"

#define OWNER		0
#define READER		1

/* Read the latest value and store another one, as one step. */
#define FETCH(p, was, value, load_order, order)				\
	atomic {							\
		pick = last[CLOSED];					\
		take_value(p, CLOSED, was, load_order);			\
		cas_store(p, CLOSED, value, order)			\
	}

#ifdef VALID_LOADS
#define VALID		load(READER, CLOSED, closed, ACQUIRE)
#elif defined(VALID_RELAXED)
#define VALID		FETCH(READER, closed, closed, RELAXED, RELAXED)
#else
#define VALID		FETCH(READER, closed, closed, RELAXED, RELEASE)
#endif
#ifdef FREE_RELAXED
#define FREE		FETCH(OWNER, was, 1, RELAXED, RELAXED)
#else
#define FREE		FETCH(OWNER, was, 1, ACQUIRE, RELAXED)
#endif

bool raced;				/* the read of the data and the write */
bool succeeded;				/* the transfer */

/* ---- Owner -------------------------------------------------------------- */

inline write_data()
{
	d_step {
		raced = raced ||
			know[OWNER].to[READS(DATA)] != last[READS(DATA)];
		claim(no_race, !raced || !succeeded);
		last[WRITES(DATA)]++;
		know[OWNER].to[WRITES(DATA)] = last[WRITES(DATA)]
	}
}

active proctype owner()
{
	byte was;

#ifdef FREE_LAST
	write_data();
	FREE
#else
	FREE;
	write_data()
#endif
}

/* ---- Reader ------------------------------------------------------------- */

inline read_data()
{
	d_step {
		raced = know[READER].to[WRITES(DATA)] != last[WRITES(DATA)];
		last[READS(DATA)]++;
		know[READER].to[READS(DATA)] = last[READS(DATA)]
	}
}

active proctype reader()
{
	byte closed;

#ifdef VALID_FIRST
	VALID;
	read_data();
#else
	read_data();
	VALID;
#endif
	if
	:: closed == 0 ->
		d_step {
			succeeded = true;
			claim(no_race, !raced)
		}
	:: else
	fi
}
