/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_peer.c - allocates peers, lists them in hif->inbound[], reports their
 * events; for the backends.
 *
 * hal_peer.h declares the functions.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/hal_packet.h"
#include "hal/hal_peer.h"

#define INBOUND_FIRST	16	/* entries of inbound[] at first */

void *hal_peer_alloc(struct hal_if *hif, const struct hal_addr *addr,
		     size_t bytes)
{
	struct hal_peer *peer;

	/* starts on a cache line: the first fields are those of each packet */
	bytes = (bytes + HAL_LINE - 1) & ~(size_t)(HAL_LINE - 1);
	peer = aligned_alloc(HAL_LINE, bytes);
	if (peer == NULL)
		return NULL;
	memset(peer, 0, bytes);
	peer->hif = hif;
	peer->ops = hif->ops;
	peer->addr = *addr;
	peer->rx_slot = UINT32_MAX;
	return peer;
}

/* Allocate inbound[] for npeers peers. */
static int reserve(struct hal_if *hif, uint32_t npeers)
{
	uint32_t max = hif->inbound_max != 0 ? hif->inbound_max : INBOUND_FIRST;
	struct hal_peer **grown;

	if (npeers <= hif->inbound_max)
		return 0;
	while (max < npeers)
		max *= 2;
	grown = realloc(hif->inbound, max * sizeof(*grown));
	if (grown == NULL)
		return -FI_ENOMEM;
	hif->inbound = grown;
	hif->inbound_max = max;
	return 0;
}

int hal_inbound_reserve(struct hal_if *hif, uint32_t npeers)
{
	hif->nlocal = npeers;
	return reserve(hif, npeers + hif->nremote);
}

int hal_inbound_reserve_remote(struct hal_if *hif, uint32_t npeers)
{
	hif->nremote = npeers;
	return reserve(hif, hif->nlocal + npeers);
}

void hal_inbound_remove(struct hal_peer *peer)
{
	struct hal_if *hif = peer->hif;
	uint32_t slot = peer->rx_slot;
	struct hal_peer *last;

	if (slot == UINT32_MAX)
		return;
	last = hif->inbound[--hif->ninbound];
	hif->inbound[slot] = last;
	last->rx_slot = slot;
}

bool hal_inbound_pending(const struct hal_if *hif)
{
	uint64_t head;

	for (uint32_t i = 0; i < hif->ninbound; i++) {
		struct hal_peer *peer = hif->inbound[i];

		if (peer->rx.cells != NULL && !peer->rx.held &&
		    hal_rx_peek(peer, &head) != NULL)
			return true;
	}
	return false;
}

uint8_t hal_peer_event(struct hal_peer *peer, uint8_t pending, int status,
		       struct hal_event *ev)
{
	struct hal_if *hif = peer->hif;

	ev->type = (enum hal_event_type)__builtin_ctz(pending);
	ev->status = ev->type == HAL_EV_DEAD ? status : 0;
	ev->peer = peer;
	if (ev->type == HAL_EV_INBOUND) {
		peer->rx_slot = hif->ninbound;
		hif->inbound[hif->ninbound++] = peer;
	}
	return pending & (uint8_t)(pending - 1);
}
