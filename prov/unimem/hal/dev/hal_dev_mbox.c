/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_mbox.c - the mailbox of an interface: reads packets and passes each
 * to the ring of its sender or, if it is a HELLO, to the connection setup. An
 * ECHO is recorded for hal_dev_echo.c.
 *
 * The paper spells the pattern that an empty mailbox returns in two ways, so
 * dev_mbox_learn() learns it when the interface is claimed. The first word of a
 * packet begins with the identity of its sender, stamped by the packetizer. A
 * word that neither begins with a possible identity nor equals the pattern is
 * invalid. More invalid words in a row than the mailbox can hold mean that the
 * mailbox never reads as empty (docs/porting.md, section 5).
 */
#define _GNU_SOURCE
#include <string.h>

#include "hal/dev/hal_dev_mbox.h"
#include "hal/dev/hal_dev_conn.h"
#include "hal/dev/hal_dev_peer.h"
#include "hal/dev/hal_dev_ring.h"
#include "hal/dev/hal_dev_table.h"

#define LEARN_SAME	3u		/* equal reads in a row that make a
					 * pattern */
/*
 * Packets in a row that change nothing. 64 boards with 64 interfaces each may
 * have 64 packets each on the way to the previous holder.
 */
#define IDLE_MAX	(UINT64_C(1) << 18)

/* ---- Packets ----------------------------------------------------------- */

/* Record that the echo has arrived, if the packet is the current one. False: it
 * is not, or it came before. */
static bool echo_came(struct dev_if *dif, const uint64_t w[HAL_PKT_WORDS])
{
	bool first = dif->echo != DEV_ECHO_NONE || dif->echoes_stuck != 0;

	if ((w[0] & HAL_HEAD_ID_MASK) != dif->identity ||
	    w[1] != dif->echo_number)
		return false;
	dif->echo = DEV_ECHO_NONE;
	dif->echoes_stuck = 0;
	dif->echo_at = 0;
	return first;
}

/* Deliver a packet that was read. False: it changed nothing. */
static bool take_packet(struct dev_if *dif, const uint64_t w[HAL_PKT_WORDS])
{
	uint8_t type = hal_head_type(w[0]);
	struct dev_peer *peer;

	if (type == DEV_PKT_HELLO)
		return dev_hello_received(dif, w);
	if (type == DEV_PKT_ECHO)
		return echo_came(dif, w);
	if (type >= HAL_PKT_RESERVED && type <= HAL_PKT_EMPTY)
		return false;		/* WAKE, or a later version's */
	peer = dev_peer_of(dif, w[0] & HAL_HEAD_ID_MASK);
	/* Packets of a peer that is gone count if the mailbox took them while
	 * the peer was alive. */
	if (peer == NULL || peer->cells == NULL || peer->p.dead ||
	    peer->disconnected) {
		dif->stats.unknown++;	/* for a previous holder */
		return false;
	}
	/* The packet may be the first to name data in the receive space. */
	if (peer->rspace.mm == NULL && !dev_space_map(peer) &&
	    peer->space_retry.at == 0)
		return true;		/* the peer was disconnected */
	dev_ring_push(peer, w);
	return true;
}

/* Words 0 and 1 of a packet were read: read words 2 and 3 and deliver it.
 * Returns take_packet(). */
static bool mbox_take(struct dev_if *dif, uint64_t w[HAL_PKT_WORDS])
{
	dif->io->read128(&dif->mif, HAL_MIF_DATA, &w[2]);
	/* Memory that the packet names is read after the packet. */
	dif->io->status_before_memory(dif->mm);
	return take_packet(dif, w);
}

/* ---- Reading ----------------------------------------------------------- */

/* An invalid word was read. Returns false if it is one of too many: stop
 * reading. */
static bool invalid_word(struct dev_if *dif, const uint64_t w[2])
{
	if (++dif->invalid_run <= dif->info.fifo_words)
		return true;
	if (!dif->mbox_logged)
		hal_log(0, "mailbox of interface %u:%u reads as 0x%016llx "
			"without end, which is no packet, and was 0x%016llx "
			"when it was empty: docs/porting.md, section 5, says "
			"where to look", dif->i.addr.board, dif->i.addr.iface,
			(unsigned long long)w[0],
			(unsigned long long)dif->empty);
	dif->mbox_logged = true;
	dev_disconnect_all(dif);
	return false;
}

/* Only packets that change nothing were read, n of them. */
static void idle_packets(struct dev_if *dif, unsigned n)
{
	dif->idle_run += n;
	if (dif->idle_run < IDLE_MAX || dif->mbox_logged)
		return;
	dif->mbox_logged = true;
	hal_log(0, "mailbox of interface %u:%u: %llu packets in a row that "
		"change nothing: does a read dequeue? docs/porting.md, "
		"section 5, says where to look", dif->i.addr.board,
		dif->i.addr.iface, (unsigned long long)dif->idle_run);
}

unsigned dev_mbox_run(struct dev_if *dif, unsigned max)
{
	uint64_t w[HAL_PKT_WORDS];
	unsigned n, idle = 0;

	for (n = 0; n < max; n++) {
		dif->io->read128(&dif->mif, HAL_MIF_DATA, &w[0]);
		/* The pattern has no possible identity, so that no packet
		 * equals it. The type of a packet would not do: a peer
		 * chooses it, and a wrong end here would make the second
		 * half of a packet pass for the first of the next. */
		if (w[0] == dif->empty)
			break;
		if (!hal_id_possible(w[0] & HAL_HEAD_ID_MASK)) {
			/* Skip one word: a packet may begin at the next. */
			dif->io->status_before_memory(dif->mm);
			if (!invalid_word(dif, w))
				break;
			continue;
		}
		dif->invalid_run = 0;
		idle += !mbox_take(dif, w);
	}
	dif->stats.came += n;
	if (n == max && idle == n)
		idle_packets(dif, n);
	else
		dif->idle_run = 0;
	return n;
}

/* ---- The pattern of an empty mailbox ----------------------------------- */

/* Packets may arrive meanwhile: peers may know the address already. */
int dev_mbox_learn(struct dev_if *dif)
{
	uint32_t tries = dif->info.fifo_words + LEARN_SAME, same = 0;
	uint64_t w[HAL_PKT_WORDS] = { 0 }, last = 0;

	/* No packet begins with 0: until the pattern is known, no packet is
	 * mistaken for it. */
	dif->empty = 0;
	while (tries-- != 0 && same != LEARN_SAME) {
		dif->io->read128(&dif->mif, HAL_MIF_DATA, w);
		if (hal_id_possible(w[0] & HAL_HEAD_ID_MASK)) {
			mbox_take(dif, w);
			same = 0;
			continue;
		}
		same = w[0] == w[1] && (same == 0 || w[0] == last) ?
		       same + 1 : 0;
		last = w[0];
	}
	if (same != LEARN_SAME) {
		hal_log(0, "mailbox of interface %u:%u does not read as empty, "
			"the last word is 0x%016llx: docs/porting.md, section "
			"5, says where to look", dif->i.addr.board,
			dif->i.addr.iface, (unsigned long long)w[0]);
		return -FI_EIO;
	}
	dif->empty = last;
	if (last != HAL_MIF_EMPTY && last != HAL_MIF_EMPTY_BEEF)
		hal_log(1, "mailbox of interface %u:%u reads as 0x%016llx when "
			"it is empty", dif->i.addr.board, dif->i.addr.iface,
			(unsigned long long)last);
	return 0;
}
