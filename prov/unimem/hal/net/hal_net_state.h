/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_state.h - objects of peers on other hosts; private to hal/net. */
#ifndef HAL_NET_STATE_H
#define HAL_NET_STATE_H

#include "hal/net/hal_net_types.h"

#define NET_DRAIN_NS	UINT64_C(50000000)	/* frames of a peer that was
						 * killed may still come */
#define NET_BYE_NS	UINT64_C(1000000000)	/* and of one that said how many
						 * there are */

/* The live peer with an address, or a dead one, or NULL. */
struct net_peer *net_peer_find(struct net_if *nif, const struct hal_addr *addr);

/* Is this peer alive and at this board and interface, and is its nonce that of
 * the address, or either not known? */
bool net_peer_is_at(const struct net_peer *peer, const struct hal_addr *addr);

/* May a peer that was connected to by its number be on this host? With Slurm's
 * list a process of another host may name the same board. The peer was dialled
 * at the IP address that the list determines, which its name has too. */
bool net_peer_may_be_on(const struct net_peer *peer,
			const struct hal_host *host);

/* The first peer of which net_peer_is_at() is true; NULL: none. */
struct net_peer *net_peer_at(struct net_if *nif, const struct hal_addr *addr);

/* Has the user of the HAL not been given this peer? So it is with one to which
 * this side connects by board and interface, until that has succeeded. */
static inline bool net_peer_hidden(const struct net_peer *peer)
{
	return peer->by_key && !peer->p.tx.open && peer->p.rx.cells == NULL;
}

/* Does a dial to the peer use the key file? Else it uses the secret of the
 * session, or that of the address. */
static inline bool net_peer_by_key_file(const struct net_peer *peer)
{
	return !peer->met && !peer->secret_known;
}

/* Has this side anything to send to the peer that is in no frame yet, or in one
 * that waits for a connection? */
static inline bool net_peer_unsent(const struct net_peer *peer)
{
	return peer->cur != NULL || peer->back_dirty != 0 ||
		!unm_list_empty(&peer->queue);
}

/* Set what was not known of a peer that this side connected to by board and
 * interface. False: it is another one. */
bool net_peer_name(struct net_peer *peer, const struct hal_addr *addr,
		   const struct hal_host *host);

/* Make the object of a peer, in state NET_DIALLING and without a connection.
 * 0, -FI_ENOMEM. */
int net_peer_new(struct net_if *nif, const struct hal_addr *addr,
		 const struct hal_host *host, struct net_peer **peer);

/* Add an event. status is for HAL_EV_DEAD. */
void net_peer_event(struct net_peer *peer, enum hal_event_type type,
		    int status);

/* The peer has ended, or cannot be used any more. A later service, once the
 * frames under way have come, declares it dead. */
void net_peer_dying(struct net_peer *peer, int status);

#define NET_LINK_TEXT	"link of UCX"	/* for net_peer_lost() */

/* As net_peer_dying(), with -FI_ECONNRESET: what, a constant text for the log
 * that names a connection, has ended. status: a negative errno; 0: closed. The
 * log has no line for a peer to which no frame could ever be sent. */
void net_peer_lost(struct net_peer *peer, const char *what, int status);

/* The peer is in use: it is the last of net_if.active. */
void net_peer_used(struct net_peer *peer);

/* A suspended peer is to be connected again, soon. */
void net_peer_resume(struct net_peer *peer);

/* The peer has no connection: the next frame that is to be sent makes one, or
 * hal_peer_resume() after a pause. The pause is 0 without such calls since the
 * last data, and grows with them from 1 s to 64 s. */
void net_peer_pause(struct net_peer *peer);

/* The peer is to be connected although nothing waits to be sent: it gets a
 * place for FI_UNIMEM_NET_DIAL_MS, and after that until another peer wants
 * it. */
void net_peer_reach(struct net_peer *peer);

/* Give the place back, if the peer has one. */
void net_peer_yield(struct net_peer *peer);

/* The same because the peer is connected, has something to be sent, or ends:
 * from now on it may end for want of an answer. */
void net_peer_reached(struct net_peer *peer);

/* Is there a place for one more peer? False: one is wanted from now on. */
bool net_peers_reach(struct net_hal *net);

/* Is a place wanted, and there is none? */
bool net_peers_want(struct net_hal *net);

/* The 48 bits that name this peer to all receivers. */
uint64_t net_peer_identity(const struct net_peer *peer);

/* Store up to max events; returns their number. */
int net_events_take(struct net_if *nif, struct hal_event *ev, int max);

#endif /* HAL_NET_STATE_H */
