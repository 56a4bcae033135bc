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

void dev_ring_push(struct dev_peer *peer, const uint64_t w[HAL_PKT_WORDS])
{
	struct hal_rx *rx = &peer->p.rx;
	struct hal_cell *cell = &peer->cells[peer->came & rx->mask];

	if (peer->came - rx->next > rx->mask) {
		hal_log(0, "interface %u:%u sent more than was released to it: "
			"dropped", peer->p.addr.board, peer->p.addr.iface);
		dev_disconnect(peer);
		return;
	}
	memcpy(cell->payload, &w[1], 8 * (HAL_PKT_WORDS - 1));
	peer->came++;
	/* pairs with the acquire in hal_rx_peek() */
	atomic_store_explicit(&cell->head, (w[0] & ~HAL_HEAD_ID_MASK) |
			      (peer->came & HAL_HEAD_ID_MASK),
			      memory_order_release);
}
