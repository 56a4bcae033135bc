/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_process.h - the process that has a peer's interface. Only services of
 * GSAS and their clients ask; what a connection's end means is in hal.h.
 */
#ifndef HAL_PROCESS_H
#define HAL_PROCESS_H

#include "hal/hal.h"

/*
 * A descriptor of the caller's own that becomes readable when the peer's
 * process ends, whatever it does with the interface before. *id is the same for
 * all peers that are of this process while it lives, and of no other process.
 * Returns the descriptor; -FI_ENOSYS: this platform does not know processes;
 * -FI_ECONNRESET: the peer is dead; -FI_EMFILE.
 */
static inline int hal_peer_process(struct hal_peer *peer, uint64_t *id)
{
	return peer->ops->peer_process == NULL ? -FI_ENOSYS :
		peer->ops->peer_process(peer, id);
}

#endif /* HAL_PROCESS_H */
