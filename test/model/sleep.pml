/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * sleep.pml - both ends of a link sleep, and every sleeper is woken
 *
 * The receiver sleeps when it sees no packet. The sender sleeps when the ring
 * is full, and at the end until its last packet is released (a send with
 * FI_DELIVERY_COMPLETE). Models
 *   hal.h           hal_pkt_send() after the head, hal_tx_sleep(),
 *                   hal_rx_wake(), hal_rx_flush()
 *   hal_emu_sleep.c emu_arm(), emu_disarm()
 *   hal_emu_conn.c  emu_wake(): one message ends one sleep, by its number
 *   unm_progress.c  unm_arm(), unm_disarm(), unm_pending_want_wake(),
 *                   unm_wait()
 *   unm_peer.c      unm_peer_note_refusal()
 *   unm_send.c      unm_send_progress()
 * and by link.pml the ring. A wake-up message stays in the socket until it is
 * read, awake or asleep, and orders no memory. A stored back word wakes by the
 * same code as released packets do.
 *
 * The sender stores the head and loads the flag without a barrier between: the
 * sleeper's membarrier() alone prevents that both read old values.
 *
 * Claims
 *   in_order    packets arrive in order
 *   flags_down  no flag stays set while its process is awake, which would cost
 *               the peer system calls
 *   (no invalid end state) no wake-up is lost
 *
 * Mutants, and what rejects them
 *   NO_BARRIER     deadlock    no membarrier between the flags and the check
 *   FLAG_LATE      deadlock    the rings are checked before the flags are set
 *   TX_FLAG_LATE   deadlock    hal_tx_sleep() comes after hal_if_arm()
 *   TX_UNLOOKED    deadlock    unm_arm() does not check done once more
 *   FLAG_FIRST     deadlock    hal_pkt_send() loads the flag before its store
 *   TX_FLAG_FIRST  deadlock    hal_rx_flush() loads it before its store
 *   NO_RX_WAKE     deadlock    hal_rx_flush() does not wake the sender
 *   SLEEP_SAME     deadlock    sleeps have no numbers
 *   REFUSED_LATE   deadlock    done is read again after the refusal
 *   FLAG_LEFT      flags_down  tx_asleep stays set for a peer no longer busy
 */
#define DEPTH	2
#define PACKETS	3
#define FIRST	0
#define NUMBERS	32
#define MORE	3
#define PLAIN	0
#define WINDOW	3

#include "link.pml"

/* asleep of the link to R and of the one back; tx_asleep of the first */
#define ASLEEP(p)	(DEPTH + 1 + (p))
#define TX_ASLEEP	(DEPTH + 3)
#define END		(FIRST + PACKETS)

bool in_order = true, flags_down = true;
bool token[2];				/* a wake-up waits in the socket */
byte number;				/* of a sleep, 0 between steps */
byte woken[2];				/* by process: sleep it ended last */
byte flag[2];				/* by process: what it loaded */
byte refused_at;

inline put(n)
{
	skip
}

inline take(n)
{
	claim(in_order, n == taken);
	taken++
}

/* emu_wake(): p wakes the other */
inline wake(p)
{
	load(p, ASLEEP(1 - p), flag[p], RELAXED);
	if
	:: flag[p] != 0 && flag[p] == woken[p]
	:: else ->
		if
		:: !token[1 - p] ->
			d_step {
				token[1 - p] = true;
				woken[p] = flag[p]
			}
		:: token[1 - p] ->	/* it fits too */
			woken[p] = flag[p]
		:: token[1 - p]		/* it does not */
		fi
	fi;
	flag[p] = 0
}

/* What hal_pkt_send(), hal_rx_wake() do after (mutants: before) their store */
inline look_and_wake(p, a)
{
	load(p, a, flag[p], RELAXED);
	if
	:: flag[p] != 0 ->
		wake(p)
	:: else
	fi
}

/* hal_if_service() by clock: reads what waits */
inline service(p)
{
	if
	:: token[p] ->
		token[p] = false
	:: true
	fi
}

#define USED(i)		atom[ASLEEP(p)].val[i]

/* A number for this sleep that is not remembered anywhere: so few will do. */
inline fresh_number(p)
{
	d_step {
		number = 1;
#ifndef SLEEP_SAME
		if
		:: woken[1 - p] != flag[1 - p] && woken[1 - p] != USED(0) &&
		   woken[1 - p] != USED(1) && woken[1 - p] != USED(2) ->
			woken[1 - p] = 0
		:: else
		fi;
		do
		:: number == woken[1 - p] || number == flag[1 - p] ||
		   number == USED(0) || number == USED(1) ||
		   number == USED(2) ->
			number++
		:: else ->
			break
		od
#endif
	}
}

inline flags_up(p)
{
	atomic {
		fresh_number(p);
		store(p, ASLEEP(p), number, RELAXED);
		number = 0
	}
}

inline barrier()
{
#ifndef NO_BARRIER
	membarrier()
#else
	skip
#endif
}

/* ---- The sender ------------------------------------------------------- */

/* unm_send_progress(): is there what it waits for? */
inline tx_progress()
{
	atomic {
		load(S, DONE, reg, ACQUIRE);
		moved = (tx_next == END -> reg == END : reg != refused_at);
		reg = 0
	}
}

inline tx_disarm()
{
	store(S, ASLEEP(S), 0, RELAXED);
	store(S, TX_ASLEEP, 0, RELAXED)
}

inline tx_sleep()
{
	service(S);
#ifdef TX_FLAG_LATE
	flags_up(S);
	barrier();
	store(S, TX_ASLEEP, 1, RELAXED);
#else
	store(S, TX_ASLEEP, 1, RELAXED);
	flags_up(S);
	barrier();
#endif
#ifndef TX_UNLOOKED
	tx_progress();
#endif
	if
	:: moved ->
#ifdef FLAG_LEFT
		store(S, ASLEEP(S), 0, RELAXED)
#else
		tx_disarm()
#endif
	:: else ->
		token[S];		/* poll() */
		token[S] = false;
		tx_disarm()
	fi
}

proctype sender()
{
	bool moved;

	do
	:: tx_next == END && moved ->
		break
	:: tx_next != END ->
		moved = false;
		tx_refresh();
		if
		:: TX_ROOM ->
#ifdef FLAG_FIRST
			look_and_wake(S, ASLEEP(R));
			tx_send()
#else
			tx_send();
			look_and_wake(S, ASLEEP(R))
#endif
		:: else ->			/* unm_peer_note_refusal() */
#ifdef REFUSED_LATE
			atomic {
				load(S, DONE, reg, ACQUIRE);
				refused_at = reg;
				reg = 0
			};
#else
			refused_at = tx_limit - DEPTH;
#endif
			do
			:: !moved ->
				tx_progress();
				if
				:: !moved ->
					tx_sleep()
				:: else
				fi
			:: else ->
				break
			od
		fi
	:: else ->
		tx_progress();
		if
		:: !moved ->
			tx_sleep()
		:: else
		fi
	od;
	claim(flags_down, SEEN(S, ASLEEP(S)) == 0 && SEEN(S, TX_ASLEEP) == 0)
}

/* ---- The receiver ----------------------------------------------------- */

inline rx_look()
{
	atomic {
		load(R, HEAD(rx_next), reg, HEAD_LOAD);
		found = IS_NEXT(reg);
		reg = 0
	}
}

inline rx_sleep()
{
	service(R);
#ifdef FLAG_LATE
	rx_look();
	flags_up(R);
	barrier();
#else
	flags_up(R);
	barrier();
	rx_look();
#endif
	if
	:: !found ->
		token[R];		/* poll() */
		token[R] = false
	:: else
	fi;
	store(R, ASLEEP(R), 0, RELAXED)
}

inline rx_flush_and_wake()
{
	if
	:: rx_told != rx_next ->
		rx_tell()
	:: else
	fi
}

inline rx_tell()
{
#ifdef TX_FLAG_FIRST
	look_and_wake(R, TX_ASLEEP);
	rx_flush()
#else
	rx_flush();
#ifndef NO_RX_WAKE
	look_and_wake(R, TX_ASLEEP)
#endif
#endif
}

proctype receiver()
{
	byte taken = FIRST;
	bool found;

	do
	:: rx_next == END ->
		break
	:: else ->
		rx_take(found);
		if
		:: found ->
			if
			:: rx_next != END && RX_MAYBE	/* the burst goes on */
			:: rx_flush_and_wake()
			fi
		:: else ->
			rx_flush_and_wake();
			rx_sleep()
		fi
	od;
	claim(flags_down, SEEN(R, ASLEEP(R)) == 0)
}

init {
	atomic {
		link_make();
		run sender();
		run receiver()
	}
}
