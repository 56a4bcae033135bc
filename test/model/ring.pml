/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.pml - packets of one sender to one receiver; the sender may be killed
 *
 * Models, by link.pml, hal_pkt_send() with hal_pkt_publish(), hal_rx_peek(),
 * hal_rx_release() and hal_rx_flush() (hal_packet.h), cells_guard()
 * (hal_emu_link.c), and the burst of unm_progress_packets() (unm_progress.c): it
 * receives packets while there are any, then stores their number as the done
 * counter. The death of a peer is unm_peer_event() (unm_progress.c): the kernel
 * reports it, and the packets that the peer had published are received.
 *
 * Claims
 *   no_race    a payload is read whole before its slot is written again
 *   in_order   each packet is received once and in order, and no other packet,
 *              also where the number in the head wraps to the value of a fresh
 *              slot
 *   drained    if the sender is killed at any instruction, exactly the packets
 *              that it had published are received
 *   (no invalid end state) no process waits for ever
 *
 * Mutants, and what rejects them
 *   HEAD_RELAXED   no_race   hal_pkt_publish() stores the head without release
 *   PEEK_RELAXED   no_race   hal_rx_peek() loads it without acquire
 *   DONE_RELAXED   no_race   hal_rx_flush() stores done without release
 *   LIMIT_RELAXED  no_race   hal_pkt_send() loads done without acquire
 *   HEAD_FIRST     no_race   the head is stored before the payload
 *   FLUSH_EARLY    no_race   done is stored before the payload was read
 *   LIMIT_BEYOND   no_race   the sender takes one slot too many
 *   NO_NUMBER      in_order  a head has a full flag instead of a number
 *   NO_GUARD       in_order  a fresh slot looks like the packet that wraps
 */
#define DEPTH	4
#define PACKETS	10
#define FIRST	13			/* the third packet wraps to 0 */
#define NUMBERS	16
#define MORE	0
#define PLAIN	DEPTH
#define WINDOW	(DEPTH + 1)

#include "link.pml"

byte payload[DEPTH];
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

#define END	(FIRST + PACKETS)

proctype sender()
{
	{
		do
		:: tx_next == END ->
			break
		:: else ->
			tx_refresh();
			if
			:: TX_ROOM ->
				tx_send()
			:: else ->		/* -FI_EAGAIN: try again */
				await(S, DONE)
			fi
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
		rx_take(found);
		if
		:: rx_next != END && RX_MAYBE	/* the burst goes on */
		:: rx_flush()
		fi
	:: dead ->
		learn_all(R);
		do
		:: rx_next != END && RX_MAYBE ->
			rx_take(found)
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
