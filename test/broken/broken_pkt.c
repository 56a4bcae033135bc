/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broken_pkt.c - mutations of packets, receive space and back words, see
 * broken.h
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "broken.h"

#define SELDOM	1000			/* apply a mutation to one packet in so
					 * many */

static bool seldom(const struct bpeer *bp)
{
	return bp->sends % SELDOM == 0;
}

static int lose(struct bpeer *bp, const struct packet *p)
{
	return seldom(bp) ? 0 : broken_forward(bp, p);
}

static int twice(struct bpeer *bp, const struct packet *p)
{
	int ret = broken_forward(bp, p);

	if (ret == 0 && seldom(bp))
		broken_forward(bp, p);
	return ret;
}

static size_t flatten(const struct packet *p, uint8_t *to)
{
	if (p->nw != 0)
		memcpy(to, p->w, 8 * p->nw);
	if (p->len != 0)
		memcpy(to + 8 * p->nw, p->data, p->len);
	return 8 * p->nw + p->len;
}

/* Send a packet after the next one. */
static int overtake(struct bpeer *bp, const struct packet *p)
{
	struct packet held = { bp->held_head, NULL, 0, bp->held,
			       bp->held_len };
	int ret;

	if (seldom(bp) && !bp->holds) {
		bp->held_head = p->head;
		bp->held_len = flatten(p, bp->held);
		bp->holds = true;
		return 0;
	}
	ret = broken_forward(bp, p);
	if (ret == 0 && bp->holds)
		bp->holds = broken_forward(bp, &held) != 0;
	return ret;
}

static int corrupt(struct bpeer *bp, const struct packet *p)
{
	uint8_t payload[HAL_PKT_MAX];
	struct packet bad = { p->head, NULL, 0, payload, flatten(p, payload) };

	if (seldom(bp) && bad.len != 0)
		payload[bad.len - 1] ^= 0x10;
	return broken_forward(bp, &bad);
}

static int wrong_head(struct bpeer *bp, const struct packet *p)
{
	struct packet bad = *p;

	bad.head &= ~hal_head(0, 0x80);
	return broken_forward(bp, &bad);
}

static int full_drops(struct bpeer *bp, const struct packet *p)
{
	int ret = broken_forward(bp, p);

	return ret == -FI_EAGAIN ? 0 : ret;
}

static int full_blocks(struct bpeer *bp, const struct packet *p)
{
	int ret;

	while ((ret = broken_forward(bp, p)) == -FI_EAGAIN)
		sched_yield();
	return ret;
}

static uint64_t unreleased(const struct hal_peer *peer)
{
	return peer->tx.next - hal_tx_done((struct hal_peer *)peer);
}

static void look_full(struct bpeer *bp, void *arg)
{
	bool *full = arg;

	if (bp->full && unreleased(bp->peer) >= bp->peer->hif->caps->pkt_depth)
		*full = true;
}

/* If one peer's ring is full, refuse packets to all peers. */
static int full_stops_all(struct bpeer *bp, const struct packet *p)
{
	bool full = false;
	int ret;

	broken_each(bp->peer->hif, look_full, &full);
	ret = full ? -FI_EAGAIN : broken_forward(bp, p);
	bp->full = ret == -FI_EAGAIN && !full ? true : bp->full;
	return ret;
}

static int shallow(struct bpeer *bp, const struct packet *p)
{
	if (unreleased(bp->peer) >= bp->peer->hif->caps->pkt_depth - 1)
		return -FI_EAGAIN;
	return broken_forward(bp, p);
}

/* Send a packet, and report that it was refused. */
static int refused_but_sent(struct bpeer *bp, const struct packet *p)
{
	int ret = broken_forward(bp, p);

	return ret == 0 && seldom(bp) ? -FI_EAGAIN : ret;
}

/* A refused packet changes the ring. */
static int refused_leaves_a_trace(struct bpeer *bp, const struct packet *p)
{
	int ret = broken_forward(bp, p);

	if (ret == -FI_EAGAIN)
		bp->peer->tx.next++;
	return ret;
}

static int early_done(struct bpeer *bp, const struct packet *p)
{
	int ret = broken_forward(bp, p);

	if (ret == 0)
		atomic_store(&bp->peer->tx.back->done, bp->peer->tx.next);
	return ret;
}

static int lost_before_the_first_step(struct bpeer *bp, const struct packet *p)
{
	return bp->met ? broken_forward(bp, p) : 0;
}

/* ---- Identity -------------------------------------------------------- */

static void same_identity(struct hal_event *ev)
{
	ev->peer->rx.identity = 1;
}

static void identity_by_receiver(struct hal_event *ev)
{
	ev->peer->rx.identity = ev->peer->rx.identity * 64 +
				ev->peer->hif->addr.iface;
}

/* ---- Receive space --------------------------------------------------- */

static void veil_space(struct bpeer *bp)
{
	if (bp->peer->tx.space != NULL) {
		bp->space = bp->peer->tx.space;
		bp->peer->tx.space = NULL;
		bp->peer->tx.claims = false;
		bp->peer->tx.demotes = false;
	}
}

/* A store as the correct backend does it: where senders do not have the space
 * mapped, by its call. */
static void space_store(struct bpeer *bp, uint32_t off, const void *src,
			size_t len)
{
	if (bp->space != NULL)
		memcpy(bp->space + off, src, len);
	else
		broken_base->space_write(bp->peer, off, src, len);
}

static void space_arrives(struct bpeer *bp)
{
	if (bp->space == NULL)
		broken_base->space_barrier(bp->peer);
}

static void write_late(struct bpeer *bp)
{
	if (bp->late != NULL)
		space_store(bp, bp->late_off, bp->late, bp->late_len);
	free(bp->late);
	bp->late = NULL;
}

/* Delay stores until the next stores, after their packet. */
static void late_space_write(struct hal_peer *peer, uint32_t off,
			     const void *src, size_t len)
{
	struct bpeer *bp = broken_peer(peer);

	write_late(bp);
	bp->late = malloc(len);
	if (bp->late == NULL)
		abort();
	memcpy(bp->late, src, len);
	bp->late_off = off;
	bp->late_len = len;
}

static void no_barrier(struct hal_peer *peer)
{
	(void)peer;
}

static void install_late_space(struct hal_ops *ops)
{
	ops->space_write = late_space_write;
	ops->space_barrier = no_barrier;
}

/* Store one byte too many. */
static void long_space_write(struct hal_peer *peer, uint32_t off,
			     const void *src, size_t len)
{
	static const uint8_t zero;
	struct bpeer *bp = broken_peer(peer);

	space_store(bp, off, src, len);
	if (off + len < peer->hif->caps->space_bytes)
		space_store(bp, (uint32_t)(off + len), &zero, 1);
	space_arrives(bp);
}

static void install_long_space(struct hal_ops *ops)
{
	ops->space_write = long_space_write;
	ops->space_barrier = no_barrier;
}

/* Let all senders store into the space of the first. */
static void shared_space_write(struct hal_peer *peer, uint32_t off,
			       const void *src, size_t len)
{
	static struct bpeer *first;

	if (first == NULL)
		first = broken_peer(peer);
	space_store(first, off, src, len);
	space_arrives(first);
}

static void install_shared_space(struct hal_ops *ops)
{
	ops->space_write = shared_space_write;
	ops->space_barrier = no_barrier;
}

/* Give back all of the space, not only the end of it: what was there is zero.
 * By stores as any others, as a sender does not have each backend's space
 * mapped. */
static void trim_all(struct hal_peer *peer, uint32_t bytes)
{
	static const uint8_t zero[64];

	(void)bytes;
	if (hal_space_ready(peer, UINT32_MAX) != 0)
		return;
	for (uint32_t at = 0; at + sizeof(zero) <= peer->hif->caps->space_bytes;
	     at += sizeof(zero))
		hal_space_write(peer, at, zero, sizeof(zero));
}

static void install_trim_all(struct hal_ops *ops)
{
	ops->space_trim = trim_all;
}

/* ---- Back words ------------------------------------------------------ */

void broken_veil_back(struct bpeer *bp)
{
	if (bp->peer->rx.back != NULL) {
		bp->back = bp->peer->rx.back;
		bp->peer->rx.back = NULL;
	}
}

void broken_back_store(struct hal_peer *peer, int word, uint64_t val)
{
	struct bpeer *bp = broken_peer(peer);

	if (bp->back == NULL)
		broken_base->back_store(peer, word, val);
	else if (word < 0)
		atomic_store(&bp->back->done, val);
	else
		atomic_store(&bp->back->word[word], val);
}

static void lossy_back_store(struct hal_peer *peer, int word, uint64_t val)
{
	static atomic_ulong stores;

	if (word < 0 || atomic_fetch_add(&stores, 1) % 300 != 299)
		broken_back_store(peer, word, val);
}

static void install_lossy_back(struct hal_ops *ops)
{
	ops->back_store = lossy_back_store;
}

static void lost_done_store(struct hal_peer *peer, int word, uint64_t val)
{
	static atomic_ulong stores;

	/* the test releases five times the depth of a queue, which may be 16 */
	if (word >= 0 || atomic_fetch_add(&stores, 1) % 50 != 49)
		broken_back_store(peer, word, val);
}

static void install_lost_done(struct hal_ops *ops)
{
	ops->back_store = lost_done_store;
}

const struct mutation broken_pkt[] = {
	{ "loses", "stream_by_turns", .send = lose },
	{ "loses-between-threads", "stream_between_threads", .send = lose },
	{ "doubles", "stream_by_turns", .send = twice },
	{ "reorders", "stream_by_turns", .send = overtake },
	{ "corrupts", "stream_by_turns", .send = corrupt },
	{ "corrupts-one-width", "pkt_every_width", .send = corrupt },
	{ "wrong-head", "pkt_every_head", .send = wrong_head },
	{ "full-drops", "pkt_depth_exact", .send = full_drops },
	{ "full-blocks", "pkt_depth_exact", .send = full_blocks },
	{ "full-stops-all", "pkt_full_peer_delays_nobody",
	  .send = full_stops_all },
	{ "shallow", "pkt_depth_exact", .send = shallow },
	{ "refused-but-sent", "stream_by_turns", .send = refused_but_sent },
	{ "refused-leaves-a-trace", "pkt_refused_leaves_nothing",
	  .send = refused_leaves_a_trace },
	{ "early-done", "pkt_done_counts_released", .send = early_done },
	{ "early-done-overwrites", "pkt_unreleased_stays",
	  .send = early_done },
	{ "lost-before-the-first-look", "conn_first_contact",
	  .send = lost_before_the_first_step },
	{ "same-identity", "pkt_identity_is_the_senders",
	  .event = same_identity },
	{ "identity-by-receiver", "pkt_identity_is_the_senders",
	  .event = identity_by_receiver },
	{ "space-late", "space_before_packet", .veil = veil_space,
	  .install = install_late_space },
	{ "space-late-by-turns", "space_every_range", .veil = veil_space,
	  .install = install_late_space },
	{ "space-long", "space_every_range", .veil = veil_space,
	  .install = install_long_space },
	{ "space-shared", "space_private_per_sender", .veil = veil_space,
	  .install = install_shared_space },
	{ "space-trim-all", "space_trimmed", .install = install_trim_all },
	{ "back-word-lost", "pkt_back_words", .veil = broken_veil_back,
	  .install = install_lossy_back },
	{ "done-lost", "pkt_done_counts_released", .veil = broken_veil_back,
	  .install = install_lost_done },
};
const int broken_pkt_count = sizeof(broken_pkt) / sizeof(broken_pkt[0]);
