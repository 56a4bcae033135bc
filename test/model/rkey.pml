/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rkey.pml - an initiator accesses memory directly while its owner closes
 * regions
 *
 * Two regions are closed and opened again. The initiator asks for the remote
 * key of a region, accesses the region at any time, or is killed at any step.
 * The owner's application uses the memory when fi_close() has returned. Models
 *   unm_rkey.c   unm_guard_enter(), unm_guard_leave(), unm_rkey_poll_revoked(),
 *                 unm_rkey_received()
 *   unm_target.c  unm_target_send_rkey()
 *   unm_revoke.c  unm_mr_revoke()
 *   hal.h         hal_rx_back_sync(), hal_tx_back_sync(), hal_rx_back()
 * and of a packet that it orders memory (ring.pml). A revocation is stored as
 * its number and the region, the guard as a number that is odd while the
 * initiator holds the guard.
 *
 * Claims
 *   no_race    no initiator accesses the memory while the application uses it,
 *              also by a key cached before or in flight meanwhile
 *   still_open no initiator accesses a region whose fi_close() has returned
 *   (no invalid end state) fi_close() returns, also if the initiator is killed
 *
 * Mutants, and what rejects them ("seq_cst": sequentially consistent)
 *   LOOK_FIRST      no_race     unm_guard_enter() loads the epoch, then sets
 *                               the guard
 *   LOOK_BEFORE     no_race     ... loads the epoch when the key is found
 *   GUARD_RELEASE   no_race     the store of the guard is not seq_cst
 *   LOOK_ACQUIRE    no_race     the load of the epoch is not seq_cst
 *   REVOKE_RELEASE  no_race     the store of the epoch is not seq_cst
 *   CLOSE_ACQUIRE   no_race     the load of the guard is not seq_cst
 *   CLOSE_LOOKS     no_race     fi_close() loads the guard, then revokes
 *   CLOSE_LEAVES    no_race     ... does not wait for the guard
 *   LEAVE_RELAXED   no_race     the guard is released without release order
 *   WAIT_RELAXED    no_race     ... or seen released without acquire
 *   OLD_EPOCH       no_race     an RKEY of an old epoch is accepted
 *   DROP_LAST       still_open  only the last revocation is applied
 *   LOOK_KEPT       no_race     unm_rkey_poll_revoked() removes no key
 *   GUARD_LEFT      deadlock    the guard is not released at the end
 *   DEAD_AWAITED    deadlock    fi_close() waits for the guard of a dead peer
 */
#define REVOKED		0		/* by the owner */
#define RKEY		1
#define GUARD		2		/* by the initiator */
#define ATOMS		3
#define REGIONS		2
#define PLAIN		REGIONS		/* their memory */
#define WINDOW		7

#include "memory.pml"

#define O		0
#define I		1
#define CLOSES		2
#define ACCESSES	2

#define WORD(n, r)	((n) * REGIONS + (r))
#define EPOCH(word)	((word) / REGIONS)
#define REGION(word)	((word) % REGIONS)

#ifdef GUARD_RELEASE
#define GUARD_STORE(g)	store(I, GUARD, g, RELEASE)
#else
#define GUARD_STORE(g)	store_sync(I, GUARD, g)
#endif
#ifdef LOOK_ACQUIRE
#define LOOK(word)	load(I, REVOKED, word, ACQUIRE)
#elif defined(REVOKE_RELEASE)
#define LOOK(word)	load_sync(I, REVOKED, word)
#else
#define LOOK(word)	load_last(I, REVOKED, word)
#endif
#ifdef REVOKE_RELEASE
#define REVOKE_STORE(w)	store(O, REVOKED, w, RELEASE)
#else
#define REVOKE_STORE(w)	store_sync(O, REVOKED, w)
#endif
#ifdef CLOSE_ACQUIRE
#define CLOSE_LOOK(g)	load(O, GUARD, g, ACQUIRE)
#else
#define CLOSE_LOOK(g)	load_sync(O, GUARD, g)
#endif
#ifdef WAIT_RELAXED
#define WAIT_LOOK(g)	load(O, GUARD, g, RELAXED)
#else
#define WAIT_LOOK(g)	load_sync(O, GUARD, g)
#endif
#ifdef LEAVE_RELAXED
#define LEAVE_STORE(g)	store(I, GUARD, g, RELAXED)
#else
#define LEAVE_STORE(g)	store(I, GUARD, g, RELEASE)
#endif

bool asks[REGIONS];			/* a request is on its way */
bool sent;				/* an RKEY is */
byte rkey_of;				/* ... to this region */
byte gen_sent;				/* ... that it is the how manieth of */
byte returned[REGIONS];			/* times fi_close() has, for claims */
bool still_open = true;
bool killed, dead, over;

/* ---- Initiator ---------------------------------------------------------- */

bool asked[REGIONS], told[REGIONS];
byte gen[REGIONS];			/* of the remote key */
byte revoked;				/* the word it acted upon */
byte guard;

/* unm_rkey_poll_revoked(), of a word that was loaded */
inline act_upon(w)
{
	d_step {
		if
		:: w != revoked ->
#ifndef LOOK_KEPT
#ifndef DROP_LAST
			if
			:: EPOCH(w) != EPOCH(revoked) + 1 ->
				told[0] = false;
				told[1] = false
			:: else
			fi;
#endif
			told[REGION(w)] = false;
#endif
			revoked = w
		:: else
		fi;
		w = 0
	}
}

inline rkey_received()
{
	LOOK(word);
	act_upon(word);
	load_last(I, RKEY, word);	/* a packet is whole */
	atomic {
		asked[rkey_of] = false;
#ifndef OLD_EPOCH
		if
		:: word == EPOCH(revoked) ->
			told[rkey_of] = true
		:: else			/* the next request asks again */
		fi;
#else
		told[rkey_of] = true;
#endif
		gen[rkey_of] = gen_sent;
		sent = false;
		word = 0
	}
}

inline leave()
{
#ifndef GUARD_LEFT
	atomic {
		guard = guard + 1;
		LEAVE_STORE(guard)
	}
#else
	skip
#endif
}

inline go_inside(r)
{
#ifdef LOOK_FIRST
	LOOK(word);
#endif
	atomic {
		guard = guard + 1 + guard % 2;
		GUARD_STORE(guard)
	};
#ifndef LOOK_FIRST
#ifndef LOOK_BEFORE
	LOOK(word);
#else
	word = revoked;
#endif
#endif
	if
	:: word == revoked ->
		word = 0;
		if
		:: plain_write(I, r)
		:: plain_read(I, r)
		fi;
		claim(still_open, returned[r] == gen[r]);
		leave()
	:: else ->
		leave();
		LOOK(word);
		act_upon(word)
	fi
}

proctype initiator()
{
	byte word, n;

	{
		do
		:: n < ACCESSES && told[0] ->
			n++;
			go_inside(0)
		:: n < ACCESSES && told[1] ->
			n++;
			go_inside(1)
		:: atomic { !told[0] && !asked[0] ->
			asked[0] = true;
			asks[0] = true }
		:: atomic { !told[1] && !asked[1] ->
			asked[1] = true;
			asks[1] = true }
		:: sent ->
			rkey_received()
		:: n == ACCESSES ->
			break
		:: atomic { over && !sent ->	/* nobody answers any more */
			break }
		od
	} unless {
		killed
	};
	dead = killed
}

proctype killer()
{
	if
	:: killed = true
	:: skip
	fi
}

/* ---- Owner -------------------------------------------------------------- */

#define ANSWERS(r)	(asks[r] && !sent)

/* unm_target_send_rkey() */
inline answer(r)
{
	asks[r] = false;
	rkey_of = r;
	gen_sent = returned[r];
	store_sync(O, RKEY, epoch);
	sent = true
}

/* unm_mr_revoke() */
inline close(r)
{
#ifdef CLOSE_LOOKS
	CLOSE_LOOK(waited);
#endif
	atomic {
		epoch++;
		REVOKE_STORE(WORD(epoch, r))
	};
#ifndef CLOSE_LOOKS
	CLOSE_LOOK(waited);
#endif
	is = waited;
#ifndef CLOSE_LEAVES
	do
	:: waited % 2 == 0 || is != waited ->
		break
	:: waited % 2 != 0 && is == waited && NEWER(O, GUARD) ->
		WAIT_LOOK(is)
#ifndef DEAD_AWAITED
	:: dead ->
		learn_all(O);
		break
#endif
	od;
#endif
	atomic {
		waited = 0;
		is = 0;
		returned[r] = returned[r] + 1
	};
	plain_write(O, r)		/* the application has it back */
}

proctype owner()
{
	byte epoch, waited, is, n;

	do
	:: atomic { ANSWERS(0) && n < CLOSES -> answer(0) }
	:: atomic { ANSWERS(1) && n < CLOSES -> answer(1) }
	:: n < CLOSES ->
		n++;
		close(0)
	:: n < CLOSES ->
		n++;
		close(1)
	:: n == CLOSES ->
		break
	od;
	over = true
}

init {
	atomic {
		run initiator();
		run owner();
		run killer()
	}
}
