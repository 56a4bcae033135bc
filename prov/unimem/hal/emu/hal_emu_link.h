/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_link.h - peer objects and links; private to hal/emu.
 */
#ifndef HAL_EMU_LINK_H
#define HAL_EMU_LINK_H

#include "hal/emu/hal_emu_types.h"

/* The peer with this address, or NULL. A nonce of HAL_ADDR_ANY on either side
 * matches a live peer; a dead peer is found by its nonce only, and only if no
 * live one matches. */
struct emu_peer *emu_peer_find(struct emu_if *eif, const struct hal_addr *addr);

/* Make a peer without connections and links. 0, -FI_ENOMEM. */
int emu_peer_new(struct emu_if *eif, const struct hal_addr *addr,
		 struct emu_peer **peer);

/* Free a peer with its connections, links, imports and queued events; its
 * outstanding transfers are cancelled. The peer is not notified. */
void emu_peer_drop(struct emu_peer *peer);

/* As hal_peer_free(): emu_peer_drop(), whose closed connections notify the
 * peer. EMU_BYE is sent before if the interface closes. In a forked child this
 * does nothing. */
void emu_peer_free(struct hal_peer *hp);

/* Open the outbound half: make a link, map it, and set peer->p.tx. *fd is the
 * descriptor for the peer; the caller sends it and closes it. 0, or a negative
 * errno after a log line. emu_link_unmake() undoes this. */
int emu_link_make(struct emu_peer *peer, int *fd);
void emu_link_unmake(struct emu_peer *peer);

/* Open the inbound half: map the link that the peer sent as fd, which stays the
 * caller's, and set peer->p.rx; first is the number of its first packet. 0;
 * -FI_EINVAL: not such a link; -FI_ENOMEM; one log line per interface. */
int emu_link_take(struct emu_peer *peer, int fd, uint64_t first);

/* As hal_space_ready() and hal_space_trim(). */
int emu_space_ready(struct hal_peer *hp, uint32_t bytes);
void emu_space_trim(struct hal_peer *hp, uint32_t bytes);

#endif /* HAL_EMU_LINK_H */
