/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_mbox.c - the mailbox of an interface: reads packets and hands each to
 * the ring of its sender, to the connection setup (HELLO) or to the check of
 * the packetizer (ECHO).
 *
 * The paper spells the pattern that an empty mailbox returns in two ways, so it
 * is learnt when the interface is claimed (dev_mbox_learn()). The first word of
 * a packet begins with an identity that the packetizer stamped; a word without
 * a possible identity is the pattern, or nonsense. More nonsense in a row than
 * the mailbox can hold means that it never reads as empty.
 */
#define _GNU_SOURCE
#include <string.h>

#include "hal/dev/hal_dev_mbox.h"
#include "hal/dev/hal_dev_conn.h"
#include "hal/dev/hal_dev_peer.h"
#include "hal/dev/hal_dev_ring.h"
#include "hal/dev/hal_dev_table.h"

#define LEARN_SAME	3u		/* reads in a row of one pattern */
#define STRANGE_MAX	(UINT64_C(1) << 18) /* 64 packets of each interface of
					     * 64 boards: all that can be on the
					     * way to the holder before us */

/* ---- Packets ----------------------------------------------------------- */

/* A packet of type ECHO was read; w as in dev_mbox_run(). */
static void echo_came(struct dev_if *dif, const uint64_t w[HAL_PKT_WORDS])
{
	if ((w[0] & HAL_HEAD_ID_MASK) != dif->identity ||
	    w[1] != dif->echo_number)
		return;
	dif->echo = DEV_ECHO_NONE;
	dif->echo_at = 0;
}

static void take_packet(struct dev_if *dif, const uint64_t w[HAL_PKT_WORDS])
{
	uint8_t type = hal_head_type(w[0]);
	struct dev_peer *peer;

	if (type == DEV_PKT_HELLO) {
		dev_hello_came(dif, w);
		return;
	}
	if (type == DEV_PKT_ECHO) {
		echo_came(dif, w);
		return;
	}
	if (type >= HAL_PKT_RESERVED && type <= HAL_PKT_EMPTY)
		return;			/* WAKE, or of a later version */
	peer = dev_peer_of(dif, w[0] & HAL_HEAD_ID_MASK);
	/* of one that is gone: what the mailbox took while it lived counts */
	if (peer == NULL || peer->cells == NULL || peer->p.dead || peer->cut) {
		dif->stats.strange++;	/* sent to one before us */
		return;
	}
	/* stores that it names may be the first into the receive space */
	if (peer->rspace.mm == NULL && !dev_space_map(peer))
		return;
	dev_ring_push(peer, w);
}

/* Words 0 and 1 of a packet were read: read the others and take it. */
static void mbox_take(struct dev_if *dif, uint64_t w[HAL_PKT_WORDS])
{
	dif->io->read128(&dif->mif, HAL_MIF_DATA, &w[2]);
	/* what the packet names is read after it */
	dif->io->status_before_memory(dif->mm);
	take_packet(dif, w);
}

/* ---- Reading ----------------------------------------------------------- */

/*
 * A word was read that begins no packet and is not that pattern. False: do not
 * read on now.
 */
static bool nonsense(struct dev_if *dif, const uint64_t w[2])
{
	if (++dif->nonsense <= dif->info.fifo_words)
		return true;
	if (!dif->mbox_told)
		hal_log(0, "mailbox of interface %u:%u reads as 0x%016llx "
			"without end, which is no packet, and was 0x%016llx "
			"when it was empty: docs/porting.md, section 5, says "
			"where to look", dif->i.addr.board, dif->i.addr.iface,
			(unsigned long long)w[0],
			(unsigned long long)dif->empty);
	dif->mbox_told = true;
	dev_cut_all(dif);
	return false;
}

/* n packets were read, and nothing else, that are of no peer. */
static void strangers(struct dev_if *dif, unsigned n)
{
	dif->strange_run += n;
	if (dif->strange_run < STRANGE_MAX || dif->mbox_told)
		return;
	dif->mbox_told = true;
	hal_log(0, "mailbox of interface %u:%u: %llu packets in a row of "
		"interfaces that are not connected: does a read dequeue? "
		"docs/porting.md, section 5, says where to look",
		dif->i.addr.board, dif->i.addr.iface,
		(unsigned long long)dif->strange_run);
}

/* Empty the mailbox, up to so many packets; their number. What is neither a
 * packet nor the pattern of an empty mailbox counts as a packet. */
unsigned dev_mbox_run(struct dev_if *dif, unsigned max)
{
	uint64_t w[HAL_PKT_WORDS], strange = dif->stats.strange;
	unsigned n;

	for (n = 0; n < max; n++) {
		dif->io->read128(&dif->mif, HAL_MIF_DATA, &w[0]);
		/* no packet has that identity: not its type alone, which a
		 * liar may send, and then halves would pass for packets */
		if (w[0] == dif->empty)
			break;
		if (!hal_id_possible(w[0] & HAL_HEAD_ID_MASK)) {
			/* one word: a packet may begin at the next */
			dif->io->status_before_memory(dif->mm);
			if (!nonsense(dif, w))
				break;
			continue;
		}
		dif->nonsense = 0;
		mbox_take(dif, w);
	}
	dif->stats.came += n;
	if (n == max && dif->stats.strange - strange == n)
		strangers(dif, n);
	else
		dif->strange_run = 0;
	return n;
}

/* ---- The pattern of an empty mailbox ----------------------------------- */

/* Packets that come meanwhile are taken: the address is known already. */
int dev_mbox_learn(struct dev_if *dif)
{
	uint32_t tries = dif->info.fifo_words + LEARN_SAME, same = 0;
	uint64_t w[HAL_PKT_WORDS] = { 0 }, last = 0;

	/* no word of an empty mailbox: what is read there is no packet's */
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
