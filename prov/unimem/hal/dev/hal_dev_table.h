/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_table.h - who holds an interface, and marks for peers that are to end
 * (hal_dev_table.c). All calls belong to the thread that uses the interface.
 */
#ifndef HAL_DEV_TABLE_H
#define HAL_DEV_TABLE_H

#include "hal/dev/hal_dev_types.h"

/* ---- Marks: hal_dev_life.c acts upon them at the next service ----------- */

/* Mark a peer as dying; status (a negative fi_errno) is what HAL_EV_DEAD will
 * report. No effect on a peer that is marked already. */
void dev_mark_dying(struct dev_peer *peer, int status);

/* Disconnect a peer that broke the protocol, or whose packets may be lost: mark
 * it as dying with -FI_EIO, and discard what it still sends. */
void dev_disconnect(struct dev_peer *peer);
/* The same for a peer whose packets are lost: its status is -FI_EIO also if it
 * was marked before, for an end that may have been orderly. */
void dev_disconnect_lossy(struct dev_peer *peer);

/* Disconnect all peers: this interface can no longer send or receive. */
void dev_disconnect_all(struct dev_if *dif);

/* Mark a peer whose interface was released, or whose board is lost: none of its
 * memory is accessed any more. */
void dev_mark_gone(struct dev_peer *peer);

/* Has a dying peer had its time (500 ms) to deliver its last packets? */
bool dev_overdue(const struct dev_peer *peer);

/* ---- Tables ------------------------------------------------------------ */

/*
 * Read who holds an interface. Returns 0; -FI_ECONNREFUSED: nobody holds it;
 * -FI_EAGAIN: the entry is being changed; -FI_ENOMEM: the table cannot be
 * mapped. board and iface must be in range.
 */
int dev_holder(struct dev_if *dif, uint32_t board, uint32_t iface,
	       struct hal_kdev_entry *entry);

/* Does the peer still hold its interface? 1 or 0, by one load from the local
 * board; -FI_ENOMEM: the table cannot be mapped. */
int dev_holds(struct dev_peer *peer);

/* hal_ops.peer_process, as hal_peer_process(): for peers on the board of the
 * interface, whose processes belong to the same kernel. */
int dev_peer_process(struct hal_peer *hp, uint64_t *id);

/*
 * Wait until all earlier stores to the peer through map are visible there.
 * Returns 0, or -FI_ECONNRESET if the peer does not hold its interface any more
 * or its board does not answer; the peer is then marked as gone.
 *
 * This is the only access that waits for another board. The table is checked
 * first, so that a board that is known to be dead is not accessed.
 */
int dev_stored(struct dev_peer *peer, const struct hal_mmio_map *map);

#endif /* HAL_DEV_TABLE_H */
