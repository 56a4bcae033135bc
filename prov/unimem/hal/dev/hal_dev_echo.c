/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_echo.c - proves that the packetizer of an interface transmits.
 *
 * The status register alone cannot show that a packet was transmitted: ACK and
 * NACK of a packet stay until the next transmission [D table 5], and a
 * packetizer whose bit in PID_CONF is 0 transmits nothing. A packet is
 * therefore unproven while the status reads as it did before the packet. There
 * are two proofs: a later status that differs, or an echo, which is a packet
 * that the interface sends to its own mailbox. The driver sets the bit in
 * PID_CONF once per holder, so the proof of one packet proves all earlier
 * packets.
 *
 * The service calls dev_echo_run(). hal_dev_pif.c records how each packet
 * ended, hal_dev_mbox.c that the echo arrived, both in struct dev_if.
 */
#define _GNU_SOURCE
#include "hal/dev/hal_dev_echo.h"
#include "hal/dev/hal_dev_mbox.h"
#include "hal/dev/hal_dev_pif.h"
#include "hal/dev/hal_dev_table.h"
#include "util/unm_clock.h"

#define ECHO_NS		UINT64_C(10000000)	/* after the unproven packet */

/* Receive until the mailbox is empty. False: packets arrive faster. */
static bool drained(struct dev_if *dif)
{
	return dev_mbox_run(dif, dif->info.fifo_words) < dif->info.fifo_words;
}

/* The packetizer transmits nothing: say so once, disconnect all peers. */
static void not_transmitting(struct dev_if *dif)
{
	dif->echo = DEV_ECHO_NONE;
	dif->echo_at = 0;
	dif->unproven = false;
	if (!dif->mute_logged)
		hal_log(0, "packetizer of interface %u:%u transmits nothing "
			"(%s): docs/porting.md, section 5, says where to look",
			dif->i.addr.board, dif->i.addr.iface,
			dif->echo_illegal ? "ILLEGAL: the driver's BASE_DEST "
			"does not match its base_dest" :
			"its bit of PID_CONF is off");
	dif->mute_logged = true;
	dev_disconnect_all(dif);
}

/* Send the echo once it is due. The mailbox is emptied first, so that refused()
 * can distinguish a real refusal from a NACK of an earlier packet. */
static void send_echo(struct dev_if *dif)
{
	uint64_t now = unm_now_ns();

	if (dif->echo_at == 0)
		dif->echo_at = now + ECHO_NS;
	if (now < dif->echo_at || !drained(dif) || !dev_pif_ready(dif) ||
	    !dif->unproven)
		return;
	dif->echo_came = dif->stats.came;
	dif->echo = DEV_ECHO_IN_PIF;
	/* hal_dev_pif.c sets it again for packets sent after the echo. */
	dif->unproven = false;
	dev_echo_put(dif, ++dif->echo_number);
}

/*
 * The status of the echo is NACK, as it was before. Either the mailbox refused
 * the echo, or nothing was transmitted and the NACK is that of an earlier
 * packet. A mailbox refuses only while it is full, and it was empty when the
 * echo was sent: if fewer packets have arrived since than fill it, nothing was
 * transmitted.
 */
static void refused(struct dev_if *dif)
{
	uint64_t full = dif->info.fifo_words / HAL_MIF_PKT_WORDS - 1;

	if (drained(dif) && dif->stats.came - dif->echo_came < full) {
		not_transmitting(dif);
		return;
	}
	dif->unproven = true;
	dif->echo = DEV_ECHO_NONE;
	dif->echo_at = 0;
}

void dev_echo_run(struct dev_if *dif)
{
	if (dif->echo == DEV_ECHO_NONE)
		send_echo(dif);
	if (dif->echo == DEV_ECHO_IN_PIF && !dev_pif_ready(dif))
		return;
	if (dif->echo == DEV_ECHO_REFUSED)
		refused(dif);
	else if (dif->echo == DEV_ECHO_TAKEN && drained(dif) &&
		 dif->echo == DEV_ECHO_TAKEN && unm_now_ns() > dif->echo_at)
		not_transmitting(dif);
}
