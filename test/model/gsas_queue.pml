/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue.pml - a queue into which its service puts words, and two consumers
 * that take them; one consumer may be killed at any step
 *
 * Models
 *   gsas_queue_take.c  gsas_queue_take(), is_wanted()
 *   gsas_queue.c       gsas_queue_put(), enter_buffer(), reclaim(),
 *                      accept_head(), want(), want_more(), gsas_queue_grant()
 * with buffers of one word, as few of them as hold the quota, and one producer
 * that is granted all free entries. The service uses any of the free buffers.
 *
 * A notification also orders memory, as a packet does. The service polls by a
 * timer only if a consumer was killed, so the model detects every other lost
 * wake-up.
 *
 * Claims
 *   right     a consumer takes the word that was put into the entry
 *   once      ... and each word is taken once
 *   no_race   a buffer is not written again before its word was read
 *   sound     correct use by members of the job is never reported as damage
 *   (no invalid end state) all words are taken, and no process waits for ever
 *
 * Mutants, and what rejects them ("seq_cst": sequentially consistent)
 *   HEAD_STORED     once      the head is stored, not swapped
 *   TAIL_FIRST      right     the tail is stored before the word
 *   ENTRY_LATE      right     ... before the directory entry
 *   TAIL_RELAXED    right     ... without release
 *   PEEK_RELAXED    right     ... or loaded without acquire
 *   HEAD_RELAXED    sound     the head is loaded without acquire
 *   SWAP_RELAXED    sound     the head is swapped without release
 *   LOOK_RELAXED    no_race   the service loads it without acquire
 *   BUFFER_EARLY    no_race   a buffer is used again before the head passed it
 *   QUOTA_BEYOND    no_race   one word more than the quota is put in
 *   STALE_IS_BAD    sound     the head is not loaded again before -FI_EIO
 *   WANTED_RELEASE  deadlock  the store of wanted is not seq_cst
 *   LOOK_ACQUIRE    deadlock  the load of the head after it is not
 *   SWAP_RELEASE    deadlock  the swap of the head is not
 *   TELL_ACQUIRE    deadlock  the load of wanted after it is not
 *   LOOK_FIRST      deadlock  the service loads the head, then stores wanted
 *   TELL_FIRST      deadlock  wanted is loaded before the swap
 *   WANTED_BEYOND   deadlock  more words are awaited than are in the queue
 */
#define WORDS	3
#define QUOTA	2
#define ENTRIES	2
#define BUFFERS	2

#define HEAD	0
#define TAIL	1
#define WANTED	2
#define ENTRY(n)	(3 + (n) % ENTRIES)
#define WORD(b)	(3 + ENTRIES + (b))
#define ATOMS	(3 + ENTRIES + BUFFERS)
#define PLAIN	BUFFERS			/* their words, as read and written */
#define WINDOW	5
#define PROCS	3

#include "memory.pml"

#define P	0			/* the service puts in */

#ifdef TAIL_RELAXED
#define TAIL_STORE	RELAXED
#else
#define TAIL_STORE	RELEASE
#endif
#ifdef PEEK_RELAXED
#define TAIL_LOAD	RELAXED
#else
#define TAIL_LOAD	ACQUIRE
#endif
#ifdef HEAD_RELAXED
#define HEAD_LOAD	RELAXED
#else
#define HEAD_LOAD	ACQUIRE
#endif
#ifdef SWAP_RELAXED
#define HEAD_SWAP	RELAXED
#else
#define HEAD_SWAP	RELEASE
#endif
#ifdef SWAP_RELEASE
#define HEAD_SYNC	false
#else
#define HEAD_SYNC	true
#endif
#ifdef LOOK_RELAXED
#define LOOK		RELAXED
#else
#define LOOK		ACQUIRE
#endif

bool right = true, once = true, sound = true;
bool got[WORDS];			/* for claims */
bool told;				/* a packet is there, or under way */
bool dead;				/* ... or somebody died before */
bool got_one;				/* that one had a word */

/* ---- Taking out ---------------------------------------------------------
 *
 * A load may give what it could have given before, until its process knows
 * better. So loads up to the next swap are one step with it, and nothing is
 * lost. And who is killed is so where it has just stored something: what it
 * loads or does not load nobody can tell.
 */

#define MORTAL(p)	((p) == 1)

/* The word was read before the head is swapped: what the swap releases. */
inline swap_head(p)
{
#ifdef HEAD_STORED
	store_sync(p, HEAD, at + 1);
	done = true;
#else
	if
	:: atom[HEAD].val[last[HEAD]] == at ->
		last[READS(entry)]++;
		know[p].to[READS(entry)] = last[READS(entry)]
	:: else
	fi;
	cas(p, HEAD, at, at + 1, done, HEAD_LOAD, HEAD_SWAP, HEAD_SYNC);
#endif
	if
	:: done ->
		claim(right, word == at + 1);
		claim(once, !got[at]);
		got[at] = true;
		got_one = got_one || MORTAL(p);
		at++
	:: else
	fi;
	word = 0;
	entry = 0
}

inline try_to_take(p)
{
	atomic {
		load(p, TAIL, tail, TAIL_LOAD);
		if
		:: tail == at		/* -FI_EAGAIN */
		:: tail < at || tail - at > QUOTA ->
			word = at;
#ifndef STALE_IS_BAD
			load(p, HEAD, at, HEAD_LOAD);
#endif
			claim(sound, at != word);
			word = 0
		:: else ->
			load(p, ENTRY(at), entry, RELAXED);
			load(p, WORD(entry), word, RELAXED);
			swap_head(p)
		fi;
		tail = 0
	}
}

inline load_wanted(p)
{
#ifdef TELL_ACQUIRE
	load(p, WANTED, want, ACQUIRE)
#else
	load_sync(p, WANTED, want)
#endif
}

/* By a packet: who reads it knows what the teller knew. (It does from now on,
 * as it looks for nothing else before it reads it.) */
inline tell(p)
{
	d_step {
		told = true;
		for (it : 0 .. THINGS - 1) {
			know[P].to[it] = (know[p].to[it] > know[P].to[it] ->
					  know[p].to[it] : know[P].to[it])
		};
		forget()
	}
}

inline is_wanted(p)
{
#ifndef TELL_FIRST
	load_wanted(p);
#endif
	if
	:: want != 0 && at >= want ->
		cas(p, WANTED, want, 0, done, ACQUIRE, RELEASE, true);
		if
		:: done ->
			tell(p)
		:: done && MORTAL(p) ->
			dead = true
		:: else
		fi
	:: else
	fi
}

/* Polling in vain changes nothing. */
#define MAY_TRY(p)	(NEWER(p, TAIL) || SEEN(p, TAIL) != at)

inline take(p)
{
#ifdef TELL_FIRST
	if
	:: !looked ->			/* once for all tries */
		load_wanted(p);
		looked = true
	:: else
	fi;
#endif
	try_to_take(p);
	if
	:: done ->
		is_wanted(p);
		done = false;
		want = 0;
		looked = false
	:: MORTAL(p) && done ->
		dead = true
	:: else
	fi
}

#define OVER(p)		(at == WORDS || MORTAL(p) && got_one)

/* The first one takes one word, if any, and dies or ends; or dies before. Who
 * waits here has taken out what there is. */
proctype taker(byte p)
{
	byte at, tail, entry, word, want;
	bool done, looked;

end:	do
	:: OVER(p) ->
		break
	:: !OVER(p) && MAY_TRY(p) ->
		take(p)
	od;
	atomic {
		at = 0;
		want = 0;
		done = false;
		looked = false;
		learn_all(p)
	}
}

/* ---- Putting in --------------------------------------------------------- */

#define INSIDE	(n - taken)
#ifdef QUOTA_BEYOND
#define ROOM	(INSIDE <= QUOTA)
#else
#define ROOM	(INSIDE < QUOTA)
#endif

/* enter_buffer(), of one that is free */
#ifdef BUFFER_EARLY
#define FREE(b)	true
#else
#define FREE(b)	(INSIDE == 0 || lies[(n - 1) % ENTRIES] != b)
#endif

inline accept_head()
{
	claim(sound, reg >= taken && reg <= n);
	taken = reg;
	reg = 0
}

inline update_taken()
{
	atomic {
		load(P, HEAD, reg, LOOK);
		accept_head()
	}
}

/*
 * All stores at once: a reader may have any older value of each, whenever it
 * looks, unless an acquire of the tail says otherwise.
 */
inline put()
{
	atomic {
		if
		:: FREE(0) ->
			buffer = 0
		:: FREE(1) && n > 0 ->		/* they are alike at first */
			buffer = 1
		fi;
#ifdef TAIL_FIRST
		store(P, ENTRY(n), buffer, RELAXED);
		store(P, TAIL, n + 1, TAIL_STORE);
		plain_write(P, buffer);
		store(P, WORD(buffer), n + 1, RELAXED);
#elif defined(ENTRY_LATE)
		plain_write(P, buffer);
		store(P, WORD(buffer), n + 1, RELAXED);
		store(P, TAIL, n + 1, TAIL_STORE);
		store(P, ENTRY(n), buffer, RELAXED);
#else
		store(P, ENTRY(n), buffer, RELAXED);
		plain_write(P, buffer);
		store(P, WORD(buffer), n + 1, RELAXED);
		store(P, TAIL, n + 1, TAIL_STORE);
#endif
		lies[n % ENTRIES] = buffer;
		buffer = 0;
		n++
	}
}

inline look_in_order()
{
	atomic {
#ifdef LOOK_ACQUIRE
		load(P, HEAD, reg, ACQUIRE);
#else
		load_sync(P, HEAD, reg);
#endif
		accept_head()
	}
}

inline store_wanted()
{
	atomic {
#ifdef WANTED_BEYOND
		wanted = taken + INSIDE + 1;
#else
		wanted = taken + INSIDE / 2;
#endif
#ifdef WANTED_RELEASE
		store(P, WANTED, wanted, RELEASE)
#else
		store_sync(P, WANTED, wanted)
#endif
	}
}

inline want_more()
{
	if
	:: wanted <= taken ->
#ifdef LOOK_FIRST
		look_in_order();
		store_wanted()
#else
		store_wanted();
		look_in_order()
#endif
	:: else				/* it is to come */
	fi
}

inline sleep()
{
	if
	:: told ->
		told = false
	:: dead ->				/* by clock */
		learn_all(P)
	:: !stirred ->				/* for somebody else's sake */
		stirred = true
	fi
}

proctype service()
{
	byte n, taken, wanted, buffer, reg;
	bool stirred;
	byte lies[ENTRIES];		/* buffer in use, by word */

	do
	:: n == WORDS ->
		break
	:: n < WORDS && ROOM ->
		put()
	:: n < WORDS && !ROOM ->
		update_taken();
		if
		:: ROOM
		:: else ->
			want_more();
			if
			:: ROOM
			:: else ->
				sleep()
			fi
		fi
	od;
	learn_all(P)
}

init {
	atomic {
		run service();
		run taker(1);
		run taker(2)
	}
}
