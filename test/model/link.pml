/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * link.pml - one link of the emulation, built on memory.pml
 *
 * Models hal_pkt_send(), hal_rx_peek(), hal_rx_release() and hal_rx_flush() of
 * prov/unimem/hal/hal.h, and cells_guard() of hal_emu_link.c.
 *
 * The including model defines before:
 *   DEPTH     slots of the ring, a power of two
 *   FIRST     number of the first packet
 *   NUMBERS   numbers a head can hold (2^48 in the code)
 *   MORE      atomic locations in addition to those of the ring
 *   PLAIN, WINDOW   see memory.pml
 * and the inlines put(n) and take(n): the sender writes and the receiver reads
 * the bytes of packet n.
 */
#define ATOMS		(DEPTH + 1 + MORE)
#define HEAD(n)		((n) % DEPTH)
#define DONE		DEPTH
#define NUMBER(n)	(((n) + 1) % NUMBERS)

#include "memory.pml"

#define S		0		/* the sender */
#define R		1		/* the receiver */

#ifdef HEAD_RELAXED
#define HEAD_STORE	RELAXED
#else
#define HEAD_STORE	RELEASE
#endif
#ifdef PEEK_RELAXED
#define HEAD_LOAD	RELAXED
#else
#define HEAD_LOAD	ACQUIRE
#endif
#ifdef DONE_RELAXED
#define DONE_STORE	RELAXED
#else
#define DONE_STORE	RELEASE
#endif
#ifdef LIMIT_RELAXED
#define DONE_LOAD	RELAXED
#else
#define DONE_LOAD	ACQUIRE
#endif

byte tx_next = FIRST, tx_limit = FIRST + DEPTH;
byte rx_next = FIRST, rx_told = FIRST;
byte published = FIRST;			/* heads stored, for claims */
byte reg;				/* what a load gave, 0 between steps */

inline link_make()
{
	atom[DONE].val[0] = FIRST;
	/* a fresh slot holds 0: not so where 0 is the number it waits for */
#ifndef NO_GUARD
	if
	:: FIRST != 0 ->
		atom[HEAD(NUMBERS - 1)].val[0] = 1
	:: else
	fi
#endif
}

/* Is there a slot? If not, the sender is told -FI_EAGAIN. */
#define TX_ROOM		(tx_next != tx_limit)

inline tx_refresh()
{
	if
	:: atomic { !TX_ROOM ->
		load(S, DONE, reg, DONE_LOAD);
#ifdef LIMIT_BEYOND
		reg++;
#endif
		tx_limit = DEPTH + reg;
		reg = 0
	   }
	:: else
	fi
}

/* The rest of hal_pkt_send(), where there is room. */
inline tx_send()
{
#ifndef HEAD_FIRST
	put(tx_next);
#endif
	atomic {
		published = tx_next + 1;
		store(S, HEAD(tx_next), NUMBER(tx_next), HEAD_STORE);
		tx_next++
	}
#ifdef HEAD_FIRST
	;
	put(tx_next - 1)
#endif
}

#ifdef NO_NUMBER
#define IS_NEXT(head)	((head) != 0)
#else
#define IS_NEXT(head)	((head) == NUMBER(rx_next))
#endif

/* Could hal_rx_peek() find a packet now? Polling in vain changes nothing. */
#define RX_MAYBE	(NEWER(R, HEAD(rx_next)) || \
			 IS_NEXT(SEEN(R, HEAD(rx_next))))

/* hal_rx_peek(), what is done with the packet, hal_rx_release(). */
inline rx_take(found)
{
	atomic {
		load(R, HEAD(rx_next), reg, HEAD_LOAD);
		found = IS_NEXT(reg);
		reg = 0
	};
	if
	:: found ->
#ifdef FLUSH_EARLY
		store(R, DONE, rx_next + 1, DONE_STORE);
#endif
		take(rx_next);
		rx_next++
	:: else
	fi
}

inline rx_flush()
{
	if
	:: rx_told != rx_next ->
		rx_told = rx_next;
#ifndef FLUSH_EARLY
		store(R, DONE, rx_next, DONE_STORE)
#endif
	:: else
	fi
}
