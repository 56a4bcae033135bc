/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wide.pml - packets of one and of two slots, of one sender to one receiver; the
 * sender may be killed
 *
 * Models, by link.pml, hal_pkt_send_wide() and hal_tx_refresh() beside
 * hal_pkt_send() (hal_packet.h), and unm_packet_wide() (unm_progress.c), which
 * reads both slots and releases both. The head of the second slot is not
 * written: it keeps the number of an earlier lap, or 0. The receiver knows by the
 * first head how many slots the packet has. ring.pml proves the rest of the
 * ring.
 *
 * Claims
 *   no_race    both halves are read whole before their slots are written again
 *   in_order   each slot is received once and in order, and no second slot is
 *              taken for a packet
 *   drained    if the sender is killed at any instruction, exactly the packets
 *              that it had published are received, each whole
 *   (no invalid end state) no process waits for ever
 *
 * Mutants, and what rejects them
 *   ONE_SLOT       no_race   two slots are written where one is free
 *   SECOND_LATE    no_race   the second half is written after the head
 *   NO_GUARD       in_order  a second slot of the first lap stays 0, and looks
 *                            like the packet that wraps
 *   ONE_RELEASED   deadlock  the receiver goes on at the second slot
 */
#define DEPTH	4
#define SLOTS	9
#define FIRST	9			/* the seventh slot wraps to 0 */
#define NUMBERS	16
#define MORE	0
#define PLAIN	DEPTH
#define WINDOW	(DEPTH + 1)

#include "link.pml"

#define END	(FIRST + SLOTS)

byte payload[DEPTH];
byte slots[END];			/* of the packet with this number, as
					 * its head says */
bool in_order = true, drained = true;
bool killed, dead;

inline put(n)
{
	plain_write(S, HEAD(n));
	payload[HEAD(n)] = n
}

inline take(n)
{
	plain_read(R, HEAD(n));
	claim(in_order, payload[HEAD(n)] == n && n < published)
}

#ifdef ONE_SLOT
#define ROOM		(tx_next != tx_limit)
#else
#define ROOM		(tx_limit - tx_next >= width)
#endif

inline send_slots(width)
{
	put(tx_next);
#ifndef SECOND_LATE
	if
	:: width == 2 -> put(tx_next + 1)
	:: else
	fi;
#endif
	atomic {
		slots[tx_next] = width;
		published = tx_next + width;
		store(S, HEAD(tx_next), NUMBER(tx_next), HEAD_STORE);
		tx_next = tx_next + width
	}
#ifdef SECOND_LATE
	;
	if
	:: width == 2 -> put(tx_next - 1)
	:: else
	fi
#endif
}

inline take_slots(found)
{
	atomic {
		load(R, HEAD(rx_next), reg, HEAD_LOAD);
		found = IS_NEXT(reg);
		reg = 0
	};
	if
	:: found ->
		take(rx_next);
		if
		:: slots[rx_next] == 2 ->
#ifndef ONE_RELEASED
			rx_next++;
			take(rx_next)
#endif
		:: else
		fi;
		rx_next++
	:: else
	fi
}

proctype sender()
{
	byte width;

	{
		do
		:: tx_next == END ->
			break
		:: else ->
			if
			:: width = 1
			:: tx_next + 2 <= END -> width = 2
			fi;
			do
			:: ROOM ->
				break
			:: else ->
				atomic {
					load(S, DONE, reg, DONE_LOAD);
					tx_limit = DEPTH + reg;
					reg = 0
				};
				if
				:: ROOM
				:: else ->	/* -FI_EAGAIN: try again */
					await(S, DONE)
				fi
			od;
			send_slots(width)
		od
	} unless {
		killed
	};
	reg = 0;
	dead = killed
}

proctype killer()
{
	if
	:: killed = true
	:: skip
	fi
}

proctype receiver()
{
	bool found;

	do
	:: rx_next == END ->
		break
	:: rx_next != END && RX_MAYBE ->
		take_slots(found);
		if
		:: rx_next != END && RX_MAYBE	/* the burst goes on */
		:: rx_flush()
		fi
	:: dead ->
		learn_all(R);
		do
		:: rx_next != END && RX_MAYBE ->
			take_slots(found)
		:: else ->
			break
		od;
		claim(drained, rx_next == published);
		rx_flush();
		break
	od;
	claim(drained, dead || rx_next == END)
}

init {
	atomic {
		link_make();
		run sender();
		run receiver();
		run killer()
	}
}
