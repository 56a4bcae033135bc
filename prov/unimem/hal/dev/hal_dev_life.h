/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_life.h - polling of peers, and their ends (hal_dev_life.c). All calls
 * belong to the thread that uses the interface.
 */
#ifndef HAL_DEV_LIFE_H
#define HAL_DEV_LIFE_H

#include "hal/dev/hal_dev_types.h"

/* Called by each service: poll the pages of some peers in turn (accepted?
 * closed?), and every 50 us look one peer up in its table of holders. */
void dev_peers_poll(struct dev_if *dif);

/* Called by the service while dif->ndying is not 0: declare each dying peer
 * dead once all its packets have arrived, or cannot arrive any more. */
void dev_end_dying(struct dev_if *dif);

/* hal_ops.peer_free: end both halves, in a way that the peer notices, and free
 * the peer. No effect in a forked child. */
void dev_peer_free(struct hal_peer *hp);

#endif /* HAL_DEV_LIFE_H */
