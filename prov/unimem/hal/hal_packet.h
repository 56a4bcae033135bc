/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_packet.h - packets, and the receive space of a peer. Part of hal.h, which
 * includes this file. docs/hal.md, sections 4 to 6.
 *
 * The calls of a message, inline: where the peer's memory can be accessed, they
 * do not call the backend.
 */
#ifndef HAL_PACKET_H
#define HAL_PACKET_H

#include "hal/hal_copy.h"
#include "hal/hal_fault_point.h"
#include "hal/hal_line.h"
#include "hal/hal_types.h"

/* Find out how many slots the peer has released. Returns the number of free
 * slots. */
static inline uint64_t hal_tx_refresh(struct hal_tx *tx)
{
	/* pairs with the release of done in hal_rx_store_done() */
	tx->limit = tx->mask + 1 +
		atomic_load_explicit(&tx->back->done, memory_order_acquire);
	/* done is the peer's: a wrong value must not let next run more than
	 * one ring ahead */
	if (tx->limit - tx->next > tx->mask + 1)
		tx->limit = tx->next;
	return tx->limit - tx->next;
}

/* Is there a free slot, as far as hal_tx_done() knows? With tx.cells,
 * hal_pkt_send() sends then, and else returns -FI_EAGAIN. A backend without
 * tx.cells may have other reasons to refuse a packet, and may notice releases
 * in hal_pkt_send() before the next call of progress shows them. */
static inline bool hal_tx_free(struct hal_peer *peer)
{
	struct hal_tx *tx = &peer->tx;

	if (tx->cells == NULL)		/* tx.limit is the backend's */
		return tx->next - atomic_load_explicit(&tx->back->done,
						       memory_order_acquire) <
			peer->hif->caps->pkt_depth;
	return tx->next != tx->limit || hal_tx_refresh(tx) != 0;
}

/* Number of slots that packets can take now: hal_pkt_send() accepts as many
 * packets. 0 where each packet may be refused for other reasons: by a backend,
 * but not by hal/net, or by a decorator. */
static inline uint64_t hal_tx_room(struct hal_peer *peer)
{
	struct hal_tx *tx = &peer->tx;
	uint64_t room;

	if (tx->cells == NULL &&
	    (peer->host == NULL || peer->decorator != NULL))
		return 0;
	room = hal_tx_refresh(tx);
	if (tx->cells == NULL)		/* see hal_pkt_send_wide() */
		tx->limit = tx->next;
	return room;
}

/* Publish a packet that is in the ring, and wake the peer if it sleeps. slot:
 * number of its first slot; tx.next has passed it already. */
static inline __attribute__((always_inline))
void hal_pkt_publish(struct hal_peer *peer, uint64_t head, uint64_t slot)
{
	struct hal_tx *tx = &peer->tx;

	/* publishes the payload; pairs with the acquire in hal_rx_peek() */
	atomic_store_explicit(&tx->cells[slot & tx->mask].head,
			      head | ((slot + 1) & HAL_HEAD_ID_MASK),
			      memory_order_release);
	HAL_FAULT_POINT(HAL_FAULT_POINT_PUBLISHED);
	/* the sleeper issues the processor's fence for both, see hal_if_arm();
	 * this is the compiler's */
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&tx->sleep->asleep,
						  memory_order_relaxed), 0))
		peer->ops->wake(peer);
}

/*
 * Send one packet: nw 8-byte words, then len bytes of data, 8 * nw + len <=
 * caps.pkt_payload. head is from hal_head(). Never blocks. 0: the packet is
 * accepted; the peer gets packets in the order of their acceptance, and all of
 * them unless it dies, which HAL_EV_DEAD reports. -FI_EAGAIN: nothing was sent,
 * because the peer has no free slot now.
 */
static inline __attribute__((always_inline))
int hal_pkt_send(struct hal_peer *peer, uint64_t head, const uint64_t *w,
		 unsigned nw, const void *data, size_t len)
{
	struct hal_tx *tx = &peer->tx;
	struct hal_cell *cell;

	if (__builtin_expect(tx->cells == NULL, 0))
		return peer->ops->pkt_send(peer, head, w, nw, data, len);
	if (__builtin_expect(tx->next == tx->limit, 0) &&
	    hal_tx_refresh(tx) == 0)
		return -FI_EAGAIN;
	HAL_FAULT_POINT(HAL_FAULT_POINT_CLAIMED);
	cell = &tx->cells[tx->next & tx->mask];
	for (unsigned i = 0; i < nw; i++)
		__builtin_memcpy(cell->payload + 8 * i, &w[i], 8);
	hal_copy_small(cell->payload + 8 * nw, data, len);
	HAL_FAULT_POINT(HAL_FAULT_POINT_COPIED);
	hal_pkt_publish(peer, head, tx->next++);
	return 0;
}

/*
 * Send a wide packet (only with HAL_CAP_WIDE): as hal_pkt_send(), but
 * 8 * nw + len is more than caps.pkt_payload and at most caps.pkt_wide. It
 * takes two slots: the head of the second one is not written, because the
 * receiver knows by the head of the first that the packet is wide, and skips
 * it. A peer without tx.cells shows no free slots (tx.limit is tx.next), so
 * tx.cells is read only where there seems to be no room.
 */
static inline int hal_pkt_send_wide(struct hal_peer *peer, uint64_t head,
				    const uint64_t *w, unsigned nw,
				    const void *data, size_t len)
{
	struct hal_tx *tx = &peer->tx;
	size_t first = HAL_PKT_MAX - 8 * nw;
	uint8_t *cell, *second;

	if (tx->limit - tx->next < 2) {
		if (tx->cells == NULL)
			return peer->ops->pkt_send(peer, head, w, nw, data,
						   len);
		if (hal_tx_refresh(tx) < 2)
			return -FI_EAGAIN;
	}
	HAL_FAULT_POINT(HAL_FAULT_POINT_CLAIMED);
	cell = tx->cells[tx->next & tx->mask].payload;
	second = tx->cells[(tx->next + 1) & tx->mask].payload;
	for (unsigned i = 0; i < nw; i++)
		__builtin_memcpy(cell + 8 * i, &w[i], 8);
	hal_copy_small(cell + 8 * nw, data, first);
	hal_copy_small(second, (const uint8_t *)data + first, len - first);
	HAL_FAULT_POINT(HAL_FAULT_POINT_COPIED);
	tx->next += 2;
	hal_pkt_publish(peer, head, tx->next - 2);
	return 0;
}

/* Number of slots that the peer has released; compare hal_tx_sent(). */
static inline uint64_t hal_tx_done(struct hal_peer *peer)
{
	/* pairs with the release in hal_rx_store_done() */
	return atomic_load_explicit(&peer->tx.back->done,
				    memory_order_acquire);
}

/* Number of slots filled so far, from the same start as hal_tx_done(): the last
 * packet is released when hal_tx_done() has this value. */
static inline uint64_t hal_tx_sent(const struct hal_peer *peer)
{
	return peer->tx.next;
}

/* Ask this peer for a wake-up when it releases packets or stores a word back
 * (on), or no longer. Call before hal_if_arm(); after hal_if_arm() check
 * hal_tx_done() and hal_tx_back() once more, and then sleep. */
static inline void hal_tx_sleep(struct hal_peer *peer, bool on)
{
	if (peer->tx.sleep != NULL)
		/* ordered by the barrier in hal_if_arm() */
		atomic_store_explicit(&peer->tx.sleep->tx_asleep, on,
				      memory_order_relaxed);
}

/* Does the peer sleep until a packet comes? The answer may be out of date. */
static inline bool hal_tx_wakes(const struct hal_peer *peer)
{
	return peer->tx.sleep == NULL ||
		/* a hint orders nothing */
		atomic_load_explicit(&peer->tx.sleep->asleep,
				     memory_order_relaxed) != 0;
}

/* Word 0 .. HAL_BACK_WORDS - 1 that the peer stored with hal_rx_back(). */
static inline uint64_t hal_tx_back(struct hal_peer *peer, int word)
{
	/* pairs with the release in hal_rx_back() */
	return atomic_load_explicit(&peer->tx.back->word[word],
				    memory_order_acquire);
}

/*
 * The next packet of an inbound half, or NULL if none has come. *head has the
 * sender's identity. A hostile peer may change the payload at any time: read
 * each word once, with hal_cell_word(), and check the copy.
 */
static inline const struct hal_cell *hal_rx_peek(struct hal_peer *peer,
						 uint64_t *head)
{
	struct hal_rx *rx = &peer->rx;
	struct hal_cell *cell = &rx->cells[rx->next & rx->mask];
	/* pairs with the release of head in hal_pkt_publish() */
	uint64_t h = atomic_load_explicit(&cell->head, memory_order_acquire);

	if ((h & HAL_HEAD_ID_MASK) != ((rx->next + 1) & HAL_HEAD_ID_MASK))
		return NULL;
	*head = (h & ~HAL_HEAD_ID_MASK) | rx->identity;
	return cell;
}

/* Has a packet come behind the one that hal_rx_peek() returned, if that is not
 * wide? A hint, which orders nothing. */
static inline bool hal_rx_more(const struct hal_peer *peer)
{
	const struct hal_rx *rx = &peer->rx;
	uint64_t next = rx->next + 1, h;

	if (rx->cells == NULL)
		return false;
	h = atomic_load_explicit(&rx->cells[next & rx->mask].head,
				 memory_order_relaxed);
	return (h & HAL_HEAD_ID_MASK) == ((next + 1) & HAL_HEAD_ID_MASK);
}

/* The second half of a wide packet, of which hal_rx_peek() returned the first:
 * HAL_PKT_MAX bytes. For a packet that is not wide, any bytes of the ring. */
static inline const uint8_t *hal_rx_second(const struct hal_peer *peer)
{
	const struct hal_rx *rx = &peer->rx;

	return rx->cells[(rx->next + 1) & rx->mask].payload;
}

/* Word i of a packet's payload, read exactly once. */
static inline uint64_t hal_cell_word(const struct hal_cell *cell, unsigned i)
{
	return ((const volatile uint64_t *)cell->payload)[i];
}

/* Release the packet that hal_rx_peek() returned, and the receive space that
 * the packet names; for a wide packet, call it twice. hal_rx_flush() notifies
 * the sender. */
static inline void hal_rx_release(struct hal_peer *peer)
{
	peer->rx.next++;
}

/* Throttle (on) or resume this peer. While throttled its packets stay in the
 * ring, wake no sleeper, and do not keep hal_if_arm() from succeeding. Call
 * this only while the interface is not armed. After resuming, poll the peer's
 * ring before arming. */
static inline void hal_rx_hold(struct hal_peer *peer, bool on)
{
	peer->rx.held = on;
}

/* Wake the peer if it sleeps until packets are released or a word is stored. */
static inline void hal_rx_wake(struct hal_peer *peer)
{
	struct hal_sleep *sleep = peer->rx.sleep;

	/* after the store of what wakes; the sleeper issues the processor's
	 * fence for both, see hal_if_arm() */
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(sleep != NULL &&
			     atomic_load_explicit(&sleep->tx_asleep,
						  memory_order_relaxed), 0))
		peer->ops->wake(peer);
}

/* Store the number of packets released so far for the sender, but do not wake
 * it: the caller calls hal_rx_wake() afterwards. False: nothing was released
 * since the last call. */
static inline bool hal_rx_store_done(struct hal_peer *peer)
{
	struct hal_rx *rx = &peer->rx;

	if (rx->flushed == rx->next)
		return false;
	rx->flushed = rx->next;
	HAL_FAULT_POINT(HAL_FAULT_POINT_CREDIT);
	if (rx->back != NULL)
		/* slots may be reused; pairs with hal_tx_refresh() and
		 * hal_tx_done() */
		atomic_store_explicit(&rx->back->done, rx->next,
				      memory_order_release);
	else
		peer->ops->back_store(peer, -1, rx->next);
	return true;
}

/* Notify the sender of all packets released so far. One call per burst of
 * packets saves cache-line transfers. */
static inline void hal_rx_flush(struct hal_peer *peer)
{
	if (hal_rx_store_done(peer))
		hal_rx_wake(peer);
}

/* Store word 0 .. HAL_BACK_WORDS - 1, which the sender reads with
 * hal_tx_back(), and wake a sleeping sender. */
static inline void hal_rx_back(struct hal_peer *peer, int word, uint64_t val)
{
	if (peer->rx.back != NULL)
		/* pairs with the acquire in hal_tx_back() */
		atomic_store_explicit(&peer->rx.back->word[word], val,
				      memory_order_release);
	else
		peer->ops->back_store(peer, word, val);
	hal_rx_wake(peer);
}

/*
 * Store a word in one total order with hal_tx_back_sync(): if two peers each
 * store a word and then read the word of the other, at least one of them reads
 * the new value. Wakes no sleeper. On a board this is a round trip: the word is
 * stored and read back. 0: stored; -FI_EAGAIN: not known whether it is stored,
 * so call again until 0 or HAL_EV_DEAD.
 */
static inline int hal_rx_back_sync(struct hal_peer *peer, int word,
				   uint64_t val)
{
	if (peer->rx.back == NULL) {
		peer->ops->back_store(peer, word, val);
		return peer->ops->back_barrier(peer);
	}
	/* seq_cst: one total order with the load in hal_tx_back_sync() */
	atomic_store_explicit(&peer->rx.back->word[word], val,
			      memory_order_seq_cst);
	return 0;
}

/* Read a word that the peer stored with hal_rx_back_sync(). */
static inline uint64_t hal_tx_back_sync(struct hal_peer *peer, int word)
{
	/* pairs with the store in hal_rx_back_sync() */
	return atomic_load_explicit(&peer->tx.back->word[word],
				    memory_order_seq_cst);
}

/* Fetch packets into the rings, where the hardware does not write them there.
 * Call before polling the peers of inbound[]. */
static inline void hal_if_pump(struct hal_if *hif)
{
	if (hif->ops->pump != NULL)
		hif->ops->pump(hif);
}

/* Exchange the places of two peers in hif->inbound[]. */
static inline void hal_if_promote(struct hal_if *hif, uint32_t a, uint32_t b)
{
	struct hal_peer *peer = hif->inbound[a];

	hif->inbound[a] = hif->inbound[b];
	hif->inbound[a]->rx_slot = a;
	hif->inbound[b] = peer;
	peer->rx_slot = b;
}

/* Wake the peer if it sleeps. */
static inline void hal_peer_wake(struct hal_peer *peer)
{
	peer->ops->wake(peer);
}

/* May the caller begin one more connection to a peer whose packets it awaits?
 * The number of such connections without an answer is bounded: their peers may
 * compute, or their hosts have vanished. False: one of them is closed once its
 * time is over, so the caller asks again, about once a second, while a peer has
 * no connection. */
static inline bool hal_if_may_resume(struct hal_if *hif)
{
	return hif->ops->may_resume == NULL || hif->ops->may_resume(hif);
}

/*
 * The caller awaits a packet of the peer, sends nothing to it, and has to be
 * notified of its end. Connect again to an idle peer whose connection was
 * closed (hal_if.peer_waits). After a former call since which no packet came or
 * went, the peer may stay without a connection for up to 64 seconds.
 * Until the caller sends to it, such a connection, or the first one that
 * hal_connect_host() began just before, does not end the peer because the peer
 * answers late or this process has no descriptor: the HAL dials again. If
 * hal_if_may_resume() is false meanwhile, it stops after FI_UNIMEM_NET_DIAL_MS,
 * and a call after the same pause goes on.
 * False: the peer needs a connection now, and hal_if_may_resume() is false.
 */
static inline bool hal_peer_resume(struct hal_peer *peer)
{
	return peer->ops->resume == NULL || peer->ops->resume(peer);
}

/* ---- Remote window: the receive space of a peer ----------------------- */

/* Allocate the first bytes of the peer's receive space, if they are not yet.
 * Call before a hal_space_write() beyond what was allocated. 0, -FI_ENOMEM. */
static inline int hal_space_ready(struct hal_peer *peer, uint32_t bytes)
{
	return peer->ops->space_ready(peer, bytes);
}

/* Give back the memory of the peer's receive space beyond the first bytes, if
 * the backend can. The peer has released every packet that names bytes there.
 * Call hal_space_ready() before the next store beyond the first bytes. */
static inline void hal_space_trim(struct hal_peer *peer, uint32_t bytes)
{
	if (peer->ops->space_trim != NULL)
		peer->ops->space_trim(peer, bytes);
}

/* Store len bytes at offset off of the peer's receive space, without waiting
 * for them to arrive; off + len <= caps.space_bytes. */
static inline void hal_space_write(struct hal_peer *peer, uint32_t off,
				   const void *src, size_t len)
{
	if (peer->tx.space != NULL)
		__builtin_memcpy(peer->tx.space + off, src, len);
	else
		peer->ops->space_write(peer, off, src, len);
}

/* May hal_space_claim() be called? */
static inline bool hal_space_claims(const struct hal_peer *peer)
{
	return peer->tx.claims;
}

/* The caller will write these bytes soon: begin to fetch their lines. off: a
 * multiple of HAL_LINE; off + len <= the bytes that hal_space_ready() has
 * allocated. Call it only if hal_space_claims(). */
static inline void hal_space_claim(struct hal_peer *peer, uint32_t off,
				   size_t len)
{
	hal_line_claim(peer->tx.space + off, len);
}

/* May hal_space_demote() be called? */
static inline bool hal_space_demotes(const struct hal_peer *peer)
{
	return peer->tx.demotes;
}

/* The peer, which waits, reads these bytes now: let it find them in the cache
 * of the package. It costs the caller some nanoseconds a line. off: a
 * multiple of HAL_LINE. Call it only if hal_space_demotes(). */
static inline void hal_space_demote(struct hal_peer *peer, uint32_t off,
				    size_t len)
{
	hal_line_demote(peer->tx.space + off, len);
}

/* Make the stores above visible to the peer before packets that are sent after
 * this call. In the emulation the release of the packet does that. */
static inline void hal_space_barrier(struct hal_peer *peer)
{
	if (peer->tx.space == NULL)
		peer->ops->space_barrier(peer);
}

/* Local receive space that the peer wrote; valid until the packet that names it
 * is released. */
static inline const void *hal_space(struct hal_peer *peer, uint32_t off)
{
	return peer->rx.space + off;
}

#endif /* HAL_PACKET_H */
