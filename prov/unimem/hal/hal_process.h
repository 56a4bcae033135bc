/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_process.h - the process that holds a peer's interface, for GSAS services
 * and their clients.
 *
 * A process may close its interface and live on: HAL_EV_DEAD of hal.h reports
 * the end of the interface, the descriptor from here the end of the process.
 */
#ifndef HAL_PROCESS_H
#define HAL_PROCESS_H

#include "hal/hal_types.h"

/*
 * Returns a new descriptor, which becomes readable when the peer's process
 * ends; the caller closes it. *id is the same for all peers of that process,
 * and differs from that of every other process that lives. -FI_ENOSYS: the
 * platform does not know this process, because it is on another board, in
 * another pid namespace or hidden (proc(5), hidepid); -FI_ECONNRESET: the peer
 * is dead; -FI_EAGAIN: call again; -FI_EMFILE, -FI_ENOMEM.
 */
static inline int hal_peer_process(struct hal_peer *peer, uint64_t *id)
{
	return peer->ops->peer_process == NULL ? -FI_ENOSYS :
		peer->ops->peer_process(peer, id);
}

#endif /* HAL_PROCESS_H */
