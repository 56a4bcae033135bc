/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * space.pml - receive space: bytes that packets name
 *
 * Models unm_space_find(), unm_space_take(), unm_space_reclaim() and
 * unm_space_restart() (unm_space.h), unm_peer_find_space() (unm_peer_tx.c),
 * unm_send_packet() and unm_send_eager() (unm_send.c) - find free space, store,
 * send the packet, take the space - and, by link.pml, the ring and its done
 * counter. A refused packet is sent again, and its bytes are stored again.
 * Packets themselves arrive, as ring.pml proves.
 *
 * Claims
 *   no_race    no byte is stored while a packet that names it is not released;
 *              bytes arrive before their packet
 *   in_order   the receiver reads the bytes that were sent, packet by packet
 *   (no invalid end state) no process waits for ever: released space is found
 *              again, for all sizes
 *
 * Mutants, and what rejects them
 *   SPACE_EARLY      no_race   space is free before its packet is released
 *   TAKE_FIRST       no_race   space is taken before its packet has a number
 *   TX_DONE_RELAXED  no_race   hal_tx_done() loads done without acquire
 *   DONE_RELAXED     no_race   hal_rx_flush() stores done without release
 *   HEAD_RELAXED     no_race   hal_pkt_publish() stores the head without release
 *   FLUSH_EARLY      no_race   done is stored before the bytes were read
 *   SKIP_LOST        no_race   the unused end of the ring is not counted
 *   NO_RESTART       deadlock  an empty ring does not restart at offset 0
 *   MARK_NEXT        deadlock  space waits for the packet after its own packet
 */
#define DEPTH	2
#define PACKETS	5
#define FIRST	1
#define NUMBERS	32
#define MORE	0
#define UNITS	4			/* of receive space */
#define LONGEST	UNITS			/* extent: all of it */
#define PLAIN	UNITS
#define WINDOW	(DEPTH + 1)

#include "link.pml"

#ifdef TX_DONE_RELAXED
#define TX_DONE_LOAD	RELAXED
#else
#define TX_DONE_LOAD	ACQUIRE
#endif

#define END	(FIRST + PACKETS)

byte bytes[UNITS];			/* which packet wrote it */
byte ext_off[END], ext_size[END];	/* what packets say; 0: no room */
bool in_order = true;

/* struct unm_space, in units */
byte head, tail, mark_head, mark_tail;
byte mark_packet[DEPTH], mark_end[DEPTH];
byte size, off, unit;			/* of the extent at hand */

#define NONE		255
#define AT		(tail % UNITS)
#define SKIP		(AT + size > UNITS -> UNITS - AT : 0)

inline space_find()
{
	d_step {
		if
		:: tail + SKIP + size - head > UNITS ||
		   mark_tail - mark_head > DEPTH - 1 ->
			off = NONE
		:: else ->
			off = (SKIP != 0 -> 0 : AT)
		fi
	}
}

inline space_take(packet)
{
	d_step {
		if
		:: size != 0 ->
			if
			:: off != AT ->
#ifndef SKIP_LOST
				tail = tail + UNITS - AT
#endif
			:: else
			fi;
			tail = tail + size;
			mark_packet[mark_tail % DEPTH] = packet;
			mark_end[mark_tail % DEPTH] = tail;
			mark_tail++
		:: else			/* it named no room */
		fi
	}
}

inline space_reclaim(done)
{
	d_step {
		do
		:: mark_head != mark_tail &&
#ifdef SPACE_EARLY
		   mark_packet[mark_head % DEPTH] <= done ->
#else
		   mark_packet[mark_head % DEPTH] < done ->
#endif
			head = mark_end[mark_head % DEPTH];
			mark_packet[mark_head % DEPTH] = 0;
			mark_end[mark_head % DEPTH] = 0;
			mark_head++
		:: else ->
			break
		od
	}
}

inline space_restart()
{
	d_step {
		if
#ifndef NO_RESTART
		:: mark_head == mark_tail && AT != 0 ->
			tail = tail + UNITS - AT;
			head = tail
#endif
		:: else
		fi
	}
}

/* unm_peer_find_space() */
inline room()
{
	space_find();
	if
	:: off == NONE ->
		atomic {
			load(S, DONE, reg, TX_DONE_LOAD);
			space_reclaim(reg);
			reg = 0
		};
		space_restart();
		space_find()
	:: else
	fi
}

inline put(n)
{
	skip			/* unm_space_find() came before */
}

inline space_put(n)
{
	unit = off;
	do
	:: unit < off + size ->
		atomic {
			plain_write(S, unit);
			bytes[unit] = n
		};
		unit++
	:: else ->
		break
	od;
	unit = 0
}

inline take(n)
{
	at = ext_off[n];
	do
	:: at < ext_off[n] + ext_size[n] ->
		atomic {
			plain_read(R, at);
			claim(in_order, bytes[at] == n)
		};
		at++
	:: else ->
		break
	od;
	at = 0;
	ext_off[n] = 0;
	ext_size[n] = 0
}

/* unm_send_short(); off is NONE afterwards if it was refused */
inline send_short()
{
	off = 0;
	if
	:: size != 0 ->
		room()
	:: else
	fi;
	if
	:: off != NONE ->
		space_put(tx_next);
		tx_refresh();
		if
		:: TX_ROOM ->
			ext_off[tx_next] = off;
			ext_size[tx_next] = size;
#ifdef TAKE_FIRST
			space_take(tx_next - 1);
#endif
			tx_send();
#ifdef MARK_NEXT
			space_take(tx_next)
#elif !defined(TAKE_FIRST)
			space_take(tx_next - 1)
#endif
		:: else ->
			off = NONE
		fi
	:: else
	fi
}

proctype sender()
{
	do
	:: tx_next == END ->
		break
	:: else ->
		select (size : 0 .. LONGEST);
		do
		:: send_short();
			if
			:: off == NONE ->	/* -FI_EAGAIN: try again */
				await(S, DONE)
			:: else ->
				break
			fi
		od;
		size = 0;
		off = 0
	od
}

proctype receiver()
{
	bool found;
	byte at;

	do
	:: rx_next == END ->
		break
	:: rx_next != END && RX_MAYBE ->
		rx_take(found);
		if
		:: rx_next != END && RX_MAYBE	/* the burst goes on */
		:: rx_flush()
		fi
	od
}

init {
	atomic {
		link_make();
		run sender();
		run receiver()
	}
}
