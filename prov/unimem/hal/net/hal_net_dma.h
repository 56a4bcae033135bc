/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_dma.h - dmable memory of peers on other hosts, and transfers; private
 * to hal/net. */
#ifndef HAL_NET_DMA_H
#define HAL_NET_DMA_H

#include "hal/net/hal_net_types.h"

/* Entries of the tables of functions. */
int net_mem_import(struct hal_peer *peer, const struct hal_key *key,
		   struct hal_rmem **rmem);
void net_mem_release(struct hal_rmem *rmem);
uint64_t net_mem_bytes(const struct hal_rmem *rmem);
int net_dma_post(struct hal_if *hif, const struct hal_dma *dma, uint64_t token);
int net_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp, int max);

int net_dma_open(struct net_if *nif);
void net_dma_close(struct net_if *nif);

/* Execute a record of a peer. -EPROTO: malformed. */
int net_dma_record(struct net_peer *peer, const struct net_rec *rec,
		   const uint8_t *data);

/* Does this side wait for answers of a peer? */
bool net_dma_busy(const struct net_peer *peer);

/* End all transfers with a peer: -FI_ECANCELED. */
void net_dma_cancel(struct net_peer *peer);

/* Free all imports of a peer. */
void net_rmems_free(struct net_peer *peer);

#endif /* HAL_NET_DMA_H */
