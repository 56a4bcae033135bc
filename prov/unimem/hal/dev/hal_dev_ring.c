/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_ring.c - the rings that received packets are sorted into, one per
 * sender. hal_dev_mbox.c fills them, hal_rx_peek() and hal_rx_release() of
 * hal_packet.h empty them. A ring is made when its sender connects
 * (hal_dev_conn.c).
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "hal/dev/hal_dev_ring.h"
#include "hal/dev/hal_dev_table.h"

/*
 * The cells are private memory. Each is marked with the packet number of the
 * lap before the first, so that hal_rx_peek() finds no packet in it.
 */
int dev_ring_new(struct dev_peer *peer, uint64_t first, uint32_t depth)
{
	struct hal_rx *rx = &peer->p.rx;
	struct hal_cell *cells = aligned_alloc(HAL_LINE,
					       depth * sizeof(*cells));

	if (cells == NULL)
		return -FI_ENOMEM;
	memset(cells, 0, depth * sizeof(*cells));
	for (uint64_t n = first; n < first + depth; n++)
		atomic_store_explicit(&cells[n & (depth - 1)].head,
				      (n + 1 - depth) & HAL_HEAD_ID_MASK,
				      memory_order_relaxed);
	rx->mask = depth - 1;
	rx->next = first;
	rx->flushed = first;
	rx->identity = peer->identity;
	peer->cells = cells;		/* the caller sees it once accepted */
	peer->came = first;
	return 0;
}

/* Store the head of a packet with the number that hal_rx_peek() expects. That
 * of the lap before hides the packet. */
static void set_head(struct hal_cell *cell, uint64_t head, uint64_t number)
{
	/* pairs with the acquire in hal_rx_peek() */
	atomic_store_explicit(&cell->head, (head & ~HAL_HEAD_ID_MASK) |
			      (number & HAL_HEAD_ID_MASK),
			      memory_order_release);
}

void dev_ring_push(struct dev_peer *peer, const uint64_t w[HAL_PKT_WORDS])
{
	struct hal_rx *rx = &peer->p.rx;
	struct hal_cell *cell = &peer->cells[peer->came & rx->mask];

	if (peer->came - rx->next > rx->mask) {
		hal_log(0, "interface %u:%u sent more than was released to it: "
			"dropped", peer->p.addr.board, peer->p.addr.iface);
		dev_disconnect_lossy(peer);
		return;
	}
	memcpy(cell->payload, &w[1], 8 * (HAL_PKT_WORDS - 1));
	peer->came++;
	if (peer->space_retry.at != 0)
		peer->hidden++;
	set_head(cell, w[0], peer->space_retry.at == 0 ? peer->came :
		 peer->came - 1 - rx->mask);
}

void dev_ring_show(struct dev_peer *peer)
{
	for (; peer->hidden != 0; peer->hidden--) {
		uint64_t n = peer->came - peer->hidden;
		struct hal_cell *cell = &peer->cells[n & peer->p.rx.mask];

		/* relaxed: this thread has stored it */
		set_head(cell, atomic_load_explicit(&cell->head,
						    memory_order_relaxed),
			 n + 1);
	}
}
