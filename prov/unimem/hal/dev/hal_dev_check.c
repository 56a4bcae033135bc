/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_check.c - checks that an interface's own packetizer transmits, and
 * that its own mailbox can be read.
 *
 * Packetizer. The status register alone cannot say that a packet was
 * transmitted: ACK and NACK of the packet before stay until the next
 * transmission [D table 5], and a packetizer whose bit of PID_CONF is off
 * transmits nothing. A packet whose status reads as before is therefore
 * unproven. Proof is a later status that differs, or an echo: a packet that the
 * interface sends to its own mailbox. The driver sets the bit of PID_CONF once
 * per holder, so proof of one packet is proof of all before it. dev_echo_run()
 * is called by the service; hal_dev_pkt.c reports what was settled
 * (dev_echo_settled()) and which echo arrived (dev_echo_came()).
 *
 * Mailbox. The paper spells the pattern that an empty mailbox returns in two
 * ways, so it is learnt when the interface is claimed (dev_mbox_learn()). The
 * first word of a packet begins with an identity that the packetizer stamped;
 * a word without a possible identity is the pattern, or nonsense. More nonsense
 * in a row than the mailbox can hold means that it never reads as empty.
 */
#define _GNU_SOURCE
#include "hal/dev/hal_dev.h"

#define ECHO_NS		UINT64_C(10000000)	/* from unproven to the echo */
#define ECHO_LATE_NS	UINT64_C(10000000)	/* acknowledged, not there */
#define LEARN_SAME	3u		/* reads in a row of one pattern */
#define STRANGE_MAX	(UINT64_C(1) << 18) /* 64 packets of each interface of
					     * 64 boards: all that can be on the
					     * way to the holder before us */

/* ---- Packetizer -------------------------------------------------------- */

/* Read the mailbox until it is empty; false: it does not get empty now. */
static bool drained(struct dev_if *dif)
{
	return dev_mbox_run(dif, dif->info.fifo_words) < dif->info.fifo_words;
}

/* Nothing that was sent lately has left this board. */
static void mute(struct dev_if *dif)
{
	dif->echo = DEV_ECHO_NONE;
	dif->echo_at = 0;
	dif->unproven = false;
	if (!dif->mute_told)
		hal_log(0, "packetizer of interface %u:%u transmits nothing "
			"(its bit of PID_CONF is off): docs/porting.md, "
			"section 5, says where to look", dif->i.addr.board,
			dif->i.addr.iface);
	dif->mute_told = true;
	dev_cut_all(dif);
}

/*
 * The packetizer is idle again; answer: ACK, NACK or neither; echo: the packet
 * was an echo. pif_answer is what the packet before left.
 */
void dev_echo_settled(struct dev_if *dif, uint64_t answer, bool echo)
{
	if (answer != 0 && answer != dif->pif_answer) {
		dif->unproven = false;
		dif->echo_at = 0;
		dif->echo = DEV_ECHO_NONE;
	} else if (echo) {
		dif->echo = answer == HAL_PIF_ACK ? DEV_ECHO_TAKEN :
			    DEV_ECHO_REFUSED;
		dif->echo_at = dev_now() + ECHO_LATE_NS;
	} else {
		dif->unproven = true;
	}
	dif->pif_answer = answer;
}

/* A packet of type ECHO was read; w as in dev_mbox_run(). */
void dev_echo_came(struct dev_if *dif, const uint64_t w[HAL_PKT_WORDS])
{
	if ((w[0] & HAL_HEAD_ID_MASK) != dif->identity ||
	    w[1] != dif->echo_number)
		return;
	dif->echo = DEV_ECHO_NONE;
	dif->echo_at = 0;
}

/* Send the echo, once it is due. The mailbox is empty then, so that a refusal
 * can be checked: see refused(). */
static void send_echo(struct dev_if *dif)
{
	uint64_t now = dev_now();

	if (dif->echo_at == 0)
		dif->echo_at = now + ECHO_NS;
	if (now < dif->echo_at || !drained(dif) || !dev_pif_ready(dif) ||
	    !dif->unproven)
		return;
	dif->echo_came = dif->stats.came;
	dif->echo = DEV_ECHO_IN_PIF;
	/* set again by what is sent after the echo */
	dif->unproven = false;
	dev_echo_put(dif, ++dif->echo_number);
}

/*
 * NACK as before: a refusal, or nothing was transmitted. A mailbox that refuses
 * is full, and all that filled it came after it was read as empty.
 */
static void refused(struct dev_if *dif)
{
	uint64_t full = dif->info.fifo_words / HAL_MIF_PKT_WORDS - 1;

	if (drained(dif) && dif->stats.came - dif->echo_came < full) {
		mute(dif);
		return;
	}
	dif->unproven = true;
	dif->echo = DEV_ECHO_NONE;
	dif->echo_at = 0;
}

/* Called by the service while a packet is unproven or an echo is under way. */
void dev_echo_run(struct dev_if *dif)
{
	if (dif->echo == DEV_ECHO_NONE)
		send_echo(dif);
	if (dif->echo == DEV_ECHO_IN_PIF && !dev_pif_ready(dif))
		return;
	if (dif->echo == DEV_ECHO_REFUSED)
		refused(dif);
	else if (dif->echo == DEV_ECHO_TAKEN && drained(dif) &&
		 dif->echo == DEV_ECHO_TAKEN && dev_now() > dif->echo_at)
		mute(dif);
}

/* ---- Mailbox ----------------------------------------------------------- */

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
			dev_mbox_take(dif, w);
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

bool dev_mbox_nonsense(struct dev_if *dif, const uint64_t w[2])
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

void dev_mbox_strange(struct dev_if *dif, unsigned n)
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
