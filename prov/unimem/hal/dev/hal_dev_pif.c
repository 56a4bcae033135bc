/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_pif.c - the packetizer of an interface: sends packets, and keeps
 * those that were refused.
 *
 * The packetizer has one buffer [D 5.2.4]. The result of a packet is read from
 * the status before the next packet is written, so that a refused packet (NACK)
 * is known before another one could overtake it. A refused packet waits in the
 * queue of its destination, and later packets to that destination wait behind
 * it; it is sent again after pauses that double. Other destinations are not
 * held up. A peer has at most pkt_depth packets that are not released, with
 * those in the queue.
 *
 * Refusals never end a connection: a process that is stopped or computes may
 * leave its mailbox full for any time. Its end shows in the table of holders
 * (hal_dev_table.c).
 */
#define _GNU_SOURCE
#include <string.h>

#include "hal/dev/hal_dev_pif.h"
#include "hal/dev/hal_dev_conf.h"
#include "hal/dev/hal_dev_table.h"
#include "hal/hal_copy.h"
#include "util/unm_clock.h"

#define POLLS_SEND	100		/* status reads before a packet waits */
#define POLLS_END	100000		/* reads before a close gives up */
#define ECHOES_MAX	3		/* echoes in a row without an answer */
#define PEND_MAX	UINT64_C(20000000)	/* ns; answers take a
						 * few us */
#define RUN_PACKETS	16		/* to one peer in a row */
#define BACKOFF_MIN	2000u		/* ns */
#define BACKOFF_MAX	1000000u
#define REFUSED_LOG_NS	UINT64_C(5000000000)	/* ns of refusals until they
						 * are logged */
#define ECHO_LATE_NS	UINT64_C(10000000)	/* an echo that was
						 * acknowledged arrives */
#define REFUSED_GAP	UINT64_C(100000000)	/* ns between two tries: after
						 * more, refusals count from
						 * the start */

/* ---- Packetizer -------------------------------------------------------- */

/* The mailbox of the peer refused a packet: set the time of the next try. */
static void refused(struct dev_peer *peer)
{
	uint64_t now = unm_now_ns();

	dev_if(peer->p.hif)->stats.nacks++;
	/* This process may have made no call for long; the peer cannot be
	 * blamed for that time. */
	if (peer->backoff == 0 || now - peer->retry_at > REFUSED_GAP)
		peer->refused_at = now;
	peer->backoff = peer->backoff == 0 ? BACKOFF_MIN : peer->backoff * 2;
	if (peer->backoff > BACKOFF_MAX)
		peer->backoff = BACKOFF_MAX;
	peer->retry_at = now + peer->backoff;
	dev_backlog_add(peer);
	if (peer->refusal_logged || now - peer->refused_at < REFUSED_LOG_NS)
		return;
	peer->refusal_logged = true;
	hal_log(1, "interface %u:%u has taken no packet for %u s: its process "
		"is stopped or makes no calls, packets wait for it",
		peer->p.addr.board, peer->p.addr.iface,
		(unsigned)(REFUSED_LOG_NS / 1000000000));
}

/* Put the refused packet back to the head of its queue. */
static void queue_again(struct dev_if *dif, struct dev_peer *peer)
{
	uint32_t mask = dif->i.caps->pkt_depth - 1;

	peer->queue[--peer->q_first & mask] = dif->pif_pkt;
}

/* The status of a packet is neither ACK nor NACK: disconnect its peer. */
static void failed(struct dev_peer *peer, uint64_t status)
{
	hal_log(0, "packetizer of interface %u:%u: a packet to %u:%u ended "
		"with status 0x%llx%s: docs/porting.md, section 5, says where "
		"to look", peer->p.hif->addr.board, peer->p.hif->addr.iface,
		peer->p.addr.board, peer->p.addr.iface,
		(unsigned long long)status, status & HAL_PIF_ILLEGAL ?
		" (ILLEGAL): the driver's BASE_DEST does not match its "
		"base_dest" : "");
	dev_disconnect(peer);
}

/*
 * OVERWR_BUF is a debug bit [D 5.2.3]: the page was written to while a packet
 * was in it. ACK or NACK still are the result of the packet. This process never
 * writes then, so another process has the page mapped.
 */
static void overwritten(struct dev_if *dif)
{
	const struct hal_dev *dev = dif->dev;
	bool uio = dev->platform.pif.node[0] != '\0';

	if (dif->stats.overwritten++ != 0)
		return;
	hal_log(0, "packetizer of interface %u:%u: another process writes to "
		"it (OVERWR_BUF): %s%s", dif->i.addr.board, dif->i.addr.iface,
		uio ? "let the driver map it, without pif = in " :
		"docs/porting.md, section 5, says where to look",
		uio ? dev_platform_file(&dev->hal.params) : "");
}

/*
 * Record how the last packet ended, as hal_dev_echo.c needs it. answer is
 * HAL_PIF_ACK, HAL_PIF_NACK or 0; dif->pif_answer still holds the answer of the
 * packet before. echo: the packet was an echo.
 */
static void note_answer(struct dev_if *dif, uint64_t answer, bool echo)
{
	if (answer != 0 && answer != dif->pif_answer) {
		dif->unproven = false;
		dif->echo_at = 0;
		dif->echo = DEV_ECHO_NONE;
		dif->echoes_stuck = 0;
	} else if (!echo) {
		dif->unproven = true;
	} else if (dif->echo == DEV_ECHO_IN_PIF) {	/* not received yet */
		dif->echo = answer == HAL_PIF_ACK ? DEV_ECHO_TAKEN :
			    DEV_ECHO_REFUSED;
		dif->echo_at = unm_now_ns() + ECHO_LATE_NS;
	}
	dif->pif_answer = answer;
}

/*
 * The packetizer has finished its packet; act upon the status. ILLEGAL is
 * tested first: nothing was transmitted then, and ACK and NACK are those of an
 * earlier packet [D table 5]. hal_dev_echo.c detects other reasons why nothing
 * was transmitted.
 */
static void pif_settle(struct dev_if *dif, uint64_t status)
{
	struct dev_peer *peer = dif->pif_peer;
	enum dev_pif held = dif->pif_holds;
	bool illegal = (status & HAL_PIF_ILLEGAL) != 0;

	if (held == DEV_PIF_ECHO)
		dif->echo_illegal = illegal;
	dif->pif_holds = DEV_PIF_FREE;
	dif->pif_peer = NULL;
	if (status & HAL_PIF_OVERWR && status & (HAL_PIF_ACK | HAL_PIF_NACK))
		overwritten(dif);
	if (!illegal || held == DEV_PIF_ECHO)
		note_answer(dif, status & (HAL_PIF_ACK | HAL_PIF_NACK),
				 held == DEV_PIF_ECHO);
	if (peer == NULL || !dev_lives(peer))
		return;
	if (illegal) {
		failed(peer, status);
		return;
	}
	if (held == DEV_PIF_WAKE)
		return;		/* a mailbox that refuses wakes its reader */
	if (status & HAL_PIF_NACK) {
		if (held == DEV_PIF_HELLO)
			peer->hello = DEV_HELLO_UNSENT;
		else
			queue_again(dif, peer);
		refused(peer);
	} else if (status & HAL_PIF_ACK) {
		peer->backoff = 0;
		peer->refusal_logged = false;
		if (held == DEV_PIF_HELLO)
			peer->hello = DEV_HELLO_TAKEN;
	} else {
		failed(peer, status);
	}
}

/* The packetizer was cleared and gave no answer to an echo. The packets before
 * the echo need another one, but it may have no answer either, and packets to
 * peers have to wait for it: all peers end after a few. */
static void echo_stuck(struct dev_if *dif)
{
	dif->echo = DEV_ECHO_NONE;
	dif->echo_at = 0;
	dif->unproven = ++dif->echoes_stuck < ECHOES_MAX;
	if (dif->unproven)
		return;
	dif->echoes_stuck = 0;
	if (!dif->echoes_logged)
		hal_log(0, "packetizer of interface %u:%u: no answer to %u "
			"packets to itself: all connections end",
			dif->i.addr.board, dif->i.addr.iface, ECHOES_MAX);
	dif->echoes_logged = true;
	dev_disconnect_all(dif);
}

/* Log that the packetizer has no answer; ret is the status of the clear. A
 * packet to a peer is logged each time, because it ends the peer. */
static void log_stuck(struct dev_if *dif, const struct dev_peer *peer, int ret)
{
	bool echo = dif->pif_holds == DEV_PIF_ECHO;

	if (ret != 0 ? dif->stuck_logged : echo && dif->echo_logged)
		return;
	hal_log(0, "packetizer of interface %u:%u: no answer to a packet to "
		"%u:%u for %u ms: %s", dif->i.addr.board, dif->i.addr.iface,
		peer != NULL ? peer->p.addr.board : dif->i.addr.board,
		peer != NULL ? peer->p.addr.iface : dif->i.addr.iface,
		(unsigned)(PEND_MAX / 1000000), ret != 0 ?
		"and it cannot be cleared: the driver must know "
		"HAL_KDEV_IO_CLEAR" : echo ? "is this board alive?" :
		"is that board alive? Its connection ends");
	dif->stuck_logged |= ret != 0;
	dif->echo_logged |= echo;
}

/*
 * A packet has no answer for too long: the board of its peer does not answer.
 * Let the driver clear the packetizer, because packets to other peers need its
 * one buffer. The packet may or may not have been delivered, so its peer is
 * disconnected. If the packetizer cannot be cleared, nothing can be sent any
 * more: disconnect all peers.
 */
static void pif_stuck(struct dev_if *dif)
{
	struct dev_peer *peer = dif->pif_peer;
	int ret = dif->io->ioctl(dif->mm, HAL_KDEV_IO_CLEAR, NULL);
	uint64_t status[2];

	dif->pif_since = 0;
	log_stuck(dif, peer, ret);
	if (ret != 0) {
		dev_disconnect_all(dif);
		return;
	}
	dif->pif_holds = DEV_PIF_FREE;
	dif->pif_peer = NULL;
	/* These bits are left from before, not the answer to the next
	 * packet. */
	dif->io->read128(&dif->pif, HAL_PIF_STATUS, status);
	dif->pif_answer = status[0] & (HAL_PIF_ACK | HAL_PIF_NACK);
	if (dif->echo == DEV_ECHO_IN_PIF)
		echo_stuck(dif);
	if (peer != NULL && !peer->p.dead)
		dev_disconnect(peer);
}

/* PEND was read. False: the packet has no answer for too long. */
static bool pif_waits(struct dev_if *dif)
{
	uint64_t now = unm_now_ns();

	if (dif->pif_since == 0)
		dif->pif_since = now;
	return now - dif->pif_since <= PEND_MAX;
}

/* Is the packet that the packetizer holds not pending any more? Reads the
 * status up to polls times and records the packet's result. */
static bool pif_answered(struct dev_if *dif, unsigned polls)
{
	uint64_t status[2];

	while (polls-- != 0) {
		dif->io->read128(&dif->pif, HAL_PIF_STATUS, status);
		if (status[0] & HAL_PIF_PEND)
			continue;
		dif->pif_since = 0;
		pif_settle(dif, status[0] & HAL_PIF_STATUS_MASK);
		return true;
	}
	return false;
}

bool dev_pif_idle(struct dev_if *dif, unsigned polls)
{
	if (dif->pif_holds == DEV_PIF_FREE || pif_answered(dif, polls))
		return true;
	if (pif_waits(dif))
		return false;
	/* This thread may have been stopped after it read the status and
	 * before it read the clock, and the answer came meanwhile. */
	if (pif_answered(dif, 1))
		return true;
	pif_stuck(dif);
	return dif->pif_holds == DEV_PIF_FREE;
}

bool dev_pif_ready(struct dev_if *dif)
{
	return dev_pif_idle(dif, POLLS_SEND);
}

/* Write a packet to the packetizer, which must be idle; the third write sends.
 * peer is NULL for a packet to the interface itself. */
static void pif_put(struct dev_if *dif, enum dev_pif what,
		    struct dev_peer *peer, const struct dev_pkt *pkt)
{
	const uint64_t dest[2] = {
		peer != NULL ? peer->dest :
		hal_dest(hal_id_board(dif->identity), hal_id_if(dif->identity),
			 dif->info.base_dest), 0
	};

	HAL_FAULT_POINT(HAL_FAULT_POINT_CLAIMED);
	dif->pif_holds = what;
	dif->pif_peer = peer;
	dif->pif_pkt = *pkt;
	dif->stats.sent++;
	dif->io->write128(&dif->pif, HAL_PIF_PAYLOAD0, &pkt->w[0]);
	dif->io->write128(&dif->pif, HAL_PIF_PAYLOAD1, &pkt->w[2]);
	HAL_FAULT_POINT(HAL_FAULT_POINT_COPIED);
	/* The packet may name local memory, which the peer may then GET. */
	dif->io->memory_before_start(dif->mm);
	dif->io->write128(&dif->pif, HAL_PIF_DEST, dest);
	HAL_FAULT_POINT(HAL_FAULT_POINT_PUBLISHED);
}

static void put_hello(struct dev_peer *peer)
{
	struct hal_if *hif = peer->p.hif;
	uint8_t log2 = (uint8_t)__builtin_ctz(hif->caps->pkt_depth);
	struct dev_pkt pkt = { {
		hal_head(DEV_PKT_HELLO, (uint8_t)(DEV_WIRE << 4 | log2)),
		peer->p.addr.nonce, peer->back.ref, peer->link.ref,
	} };

	peer->hello = DEV_HELLO_IN_PIF;
	pif_put(dev_if(hif), DEV_PIF_HELLO, peer, &pkt);
	HAL_FAULT_POINT(HAL_FAULT_POINT_HELLO_SENT);
}

void dev_echo_put(struct dev_if *dif, uint64_t number)
{
	struct dev_pkt pkt = { {
		hal_head(DEV_PKT_ECHO, 0), number,
	} };

	pif_put(dif, DEV_PIF_ECHO, NULL, &pkt);
}

bool dev_hello_send(struct dev_peer *peer)
{
	struct dev_if *dif = dev_if(peer->p.hif);

	for (int i = 0; i < 2 && peer->hello != DEV_HELLO_TAKEN; i++) {
		if (!dev_pif_idle(dif, POLLS_SEND) || !dev_lives(peer))
			break;
		if (peer->hello == DEV_HELLO_UNSENT &&
		    (peer->backoff == 0 || unm_now_ns() >= peer->retry_at))
			put_hello(peer);
	}
	if (peer->hello == DEV_HELLO_IN_PIF)
		dev_pif_idle(dif, POLLS_SEND);
	return peer->hello == DEV_HELLO_TAKEN;
}

/* ---- Packets that wait ------------------------------------------------- */

/* Does anything wait for the packetizer? */
static bool has_backlog(const struct dev_peer *peer)
{
	return dev_lives(peer) && (peer->q_first != peer->q_last ||
				   peer->hello == DEV_HELLO_UNSENT ||
				   peer->wake);
}

void dev_backlog_add(struct dev_peer *peer)
{
	if (unm_list_empty(&peer->waiting))
		unm_list_append(&dev_if(peer->p.hif)->backlog, &peer->waiting);
}

/* Send the next waiting packet: the HELLO before data, data before a WAKE. */
static void put_next(struct dev_if *dif, struct dev_peer *peer)
{
	static const struct dev_pkt wake = { { (uint64_t)DEV_PKT_WAKE << 56 } };
	uint32_t mask = dif->i.caps->pkt_depth - 1;

	if (peer->hello == DEV_HELLO_UNSENT) {
		put_hello(peer);
	} else if (peer->q_first != peer->q_last) {
		dif->stats.resent++;
		pif_put(dif, DEV_PIF_DATA, peer,
			&peer->queue[peer->q_first++ & mask]);
	} else {
		peer->wake = false;
		pif_put(dif, DEV_PIF_WAKE, peer, &wake);
	}
}

/* Send the waiting packets of a peer until one is refused. False: the
 * packetizer is busy, so no other peer's packets can be sent either. */
static bool peer_run(struct dev_if *dif, struct dev_peer *peer, uint64_t now)
{
	for (int n = 0; n <= RUN_PACKETS; n++) {
		if (!dev_pif_idle(dif, POLLS_SEND))
			return false;
		if (n == RUN_PACKETS || !has_backlog(peer) ||
		    (peer->backoff != 0 && now < peer->retry_at))
			break;
		put_next(dif, peer);
	}
	return true;
}

void dev_backlog_run(struct dev_if *dif)
{
	struct unm_list *pos = dif->backlog.next;
	uint64_t now = unm_now_ns();

	while (pos != &dif->backlog) {
		struct dev_peer *peer = unm_container(pos, struct dev_peer,
						      waiting);

		if (!peer_run(dif, peer, now))
			return;
		pos = pos->next;
		if (!has_backlog(peer))
			unm_list_remove(&peer->waiting);
	}
}

static int enqueue(struct dev_peer *peer, const struct dev_pkt *pkt)
{
	struct dev_if *dif = dev_if(peer->p.hif);
	uint32_t depth = dif->i.caps->pkt_depth;
	bool in_pif = dif->pif_peer == peer;

	/* One entry is kept for the packet in the packetizer, which may be
	 * refused. The queue is full only if the peer reported releases of
	 * packets that it cannot have received. */
	if (peer->q_last - peer->q_first + in_pif >= depth)
		return -FI_EAGAIN;
	peer->queue[peer->q_last++ & (depth - 1)] = *pkt;
	dif->stats.queued++;
	dev_backlog_add(peer);
	return 0;
}

/* ---- Sending ----------------------------------------------------------- */

/* Are fewer than pkt_depth packets unreleased? */
static bool has_room(const struct hal_peer *hp)
{
	/* Pairs with the release of the packets by the peer, which its
	 * hal_ops.back_store stores here. If the peer stores a count beyond
	 * tx.next, the difference is huge and nothing is sent. */
	uint64_t done = atomic_load_explicit(&hp->tx.back->done,
					     memory_order_acquire);

	return hp->tx.next - done < hp->hif->caps->pkt_depth;
}

int dev_pkt_send(struct hal_peer *hp, uint64_t head, const uint64_t *w,
		 unsigned nw, const void *data, size_t len)
{
	struct dev_peer *peer = dev_peer(hp);
	struct dev_if *dif = dev_if(hp->hif);
	struct dev_pkt pkt = { { head } };
	uint8_t *payload = (uint8_t *)&pkt.w[1];
	int ret = 0;

	if (!has_room(hp))
		return -FI_EAGAIN;
	for (unsigned i = 0; i < nw; i++)
		memcpy(payload + 8 * i, &w[i], 8);
	hal_copy_small(payload + 8 * nw, data, len);
	/* Packets that wait are sent before this one. */
	if (peer->q_first != peer->q_last)
		dev_backlog_run(dif);
	if (peer->q_first != peer->q_last ||
	    !dev_pif_idle(dif, POLLS_SEND) ||
	    peer->q_first != peer->q_last)
		ret = enqueue(peer, &pkt);
	else if (dev_lives(peer))	/* else discard it */
		pif_put(dif, DEV_PIF_DATA, peer, &pkt);
	if (ret == 0)
		hp->tx.next++;
	return ret;
}

void dev_wake(struct hal_peer *hp)
{
	struct dev_peer *peer = dev_peer(hp);

	if (!dev_lives(peer))
		return;
	peer->wake = true;
	dev_backlog_add(peer);
	dev_backlog_run(dev_if(hp->hif));
}

/* ---- The end ----------------------------------------------------------- */

void dev_link_end(struct dev_peer *peer)
{
	struct dev_if *dif = dev_if(peer->p.hif);
	struct hal_mmio_map *map = &peer->link.map;
	uint32_t mask = dif->i.caps->pkt_depth - 1;
	uint64_t last, end = peer->p.tx.next + 1, orderly = dif->closing;
	uint32_t n;

	if (dif->pif_peer == peer)
		dev_pif_idle(dif, POLLS_END);
	n = peer->q_last - peer->q_first;
	last = peer->p.tx.next - n;
	for (uint32_t i = 0; i < n; i++)
		dif->io->store(map, offsetof(struct dev_link, words) +
			       i * sizeof(struct dev_pkt),
			       &peer->queue[(peer->q_first + i) & mask],
			       sizeof(struct dev_pkt));
	dif->stats.stored_at_end += n;
	dif->io->store(map, offsetof(struct dev_link, last), &last,
		       sizeof(last));
	dif->io->store(map, offsetof(struct dev_link, orderly), &orderly,
		       sizeof(orderly));
	if (dev_stored(peer, map) != 0)
		return;
	dif->io->store(map, offsetof(struct dev_link, end), &end, sizeof(end));
	dev_stored(peer, map);
}

void dev_wake_now(struct dev_peer *peer)
{
	static const struct dev_pkt wake = { { (uint64_t)DEV_PKT_WAKE << 56 } };
	struct dev_if *dif = dev_if(peer->p.hif);

	if (dev_pif_idle(dif, POLLS_SEND))
		pif_put(dif, DEV_PIF_WAKE, peer, &wake);
}
