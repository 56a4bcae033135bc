/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_peer.h - another endpoint: credits, receive space, what is under way with
 * it, its death.
 *
 * Message credits: the receiver allows a number of messages (word 0 of the back
 * words, free-running). It holds it back from peers of whose messages some wait
 * for receives, while all that wait take more memory than
 * FI_UNIMEM_UNEXPECTED_MAX; and from all peers while its completion queue is
 * full. Control packets need no credit and are always taken, so nothing waits
 * for a receive that is not posted.
 */
#ifndef UNM_PEER_H
#define UNM_PEER_H

#include <stdbool.h>

#include <rdma/fabric.h>

#include "core/unm_way.h"
#include "hal/hal.h"
#include "util/unm_list.h"

#define UNM_PEER_CREDITS	256	/* messages allowed at first */
#define UNM_PEER_SPACE		65536	/* receive space used at first */
/* back words, by their receiver for their sender */
#define UNM_PEER_BACK_LIMIT	0	/* messages allowed */
#define UNM_PEER_BACK_APPLIED	1	/* posted requests executed */
#define UNM_PEER_BACK_REVOKED	2	/* number of routes revoked, region of
					 * the last one */
#define UNM_PEER_BACK_GUARD	3	/* odd: inside the other's memory */
/* So many sends are refused in a row, with nothing released in between, before
 * one is put into the backlog: a peer that is there makes room sooner, and then
 * the application's next try is the shorter way. */
#define UNM_PEER_REFUSALS	500

struct unm_ep;
struct unm_route;

struct unm_peer {
	struct hal_peer *hp;		/* NULL: gone */
	uint64_t msgs_sent;
	uint64_t msg_limit;		/* msgs_sent: no fast path, as it is
					 * gone or others wait to be sent */
	struct unm_space *space;	/* towards it, at first use */
	struct unm_list await;		/* tx_ops, by packet */
	struct unm_list rts;		/* tx_ops that await CTS or FIN */
	struct unm_list streams;	/* tx_ops being streamed, in order */
	struct unm_list control;	/* rx_ops with a packet to send */
	struct unm_list recvs;		/* rx_ops in transfer from it */
	struct unm_list busy;		/* in the endpoint's busy list */
	fi_addr_t fi_addr;		/* FI_ADDR_NOTAVAIL: not in the AV */
	struct hal_addr addr;		/* when gone: hp's */
	uint64_t msgs_got;
	uint64_t allowed;		/* messages we allowed it */
	struct unm_ep *ep;
	struct unm_list all;		/* in the endpoint's list */
	struct unm_list stranger;	/* there, too, while without a name */
	struct unm_list held;		/* there, too, if credits are due */
	struct unm_list msgs;		/* its messages without a receive */
	struct unm_list backlog;	/* tx_ops not sent yet, in order */
	struct unm_list posted;		/* os_ops until they are executed */
	struct unm_list asked;		/* os_ops that want results */
	struct unm_list unsent;		/* of these, with requests to send */
	struct unm_list routes;		/* to its regions ... */
	struct unm_route **route_hash;	/* ... by key; NULL: there are none */
	struct unm_list imports;	/* of its dmable memory */
	struct unm_list answers;	/* to its requests */
	struct unm_list nacks;		/* of posted ones, oldest first */
	uint64_t refused_at;		/* wants: packets released by then */
	uint64_t tried_at;		/* backlog: the same when last tried */
	uint64_t tried_with;		/* ... and messages allowed */
	uint64_t posted_sent;		/* posted requests, ours */
	uint64_t applied;		/* of these, as we last looked */
	uint64_t posted_got;		/* its ... */
	uint64_t posted_told;		/* ... as it knows from us */
	uint64_t refused_packet;	/* told the oldest one; 0: not yet */
	/* unm_prompt.c: when it was last looked at, packets it had released
	 * then, and since when it is known to make progress; ns, 0: not */
	uint64_t looked_ns, looked_done, prompt_ns;
	uint64_t revoked;		/* its word as we last acted upon it */
	uint64_t guard;			/* our word to it */
	uint64_t waited;		/* its guard, while we wait for that */
	uint32_t inside;		/* accesses of ours, see guard */
	uint32_t due;			/* results it owes us ... */
	uint32_t due_bytes;		/* ... and what it keeps for them */
	uint32_t nanswers;		/* that we owe it ... */
	uint32_t answer_bytes;		/* ... and what we keep for them */
	uint32_t nroutes, nimports;
	uint32_t epoch;			/* routes we revoked */
	uint32_t revoking;		/* ... the last one, by region */
	uint8_t route_bits;		/* 2^n buckets in route_hash */
	bool routed;			/* it knows routes to our regions */
	bool untold;			/* not yet of the last revocation */
	uint32_t refusals;		/* since it last released one */
	uint32_t refs;			/* AV slots, unexpected messages */
	bool greeted;			/* HELLO sent */
	bool known;			/* HELLO came */
	bool wants;			/* refused a send, to be looked at */
	bool retry;			/* wants: worth another try at once */
	uint64_t space_since;		/* us: no memory for space since then,
					 * 0: there was */
	uint64_t space_retry;		/* us: not tried again before */
	bool space_fixed;		/* no memory for more of it */
	bool spoiled;			/* broke the protocol, to be dropped */
	bool attach_off;		/* cross-memory attach failed */
	struct unm_way way[UNM_WAY_CLASSES];	/* of its long messages */
	uint64_t pieces;		/* of streams, that it sent */
	uint64_t life;			/* pieces that it sent and packets that
					 * it released, when a stream was last
					 * checked */
	uint64_t life_ns;		/* clock when life last changed */
};

/* The object of a peer of the HAL, not in the address vector yet. NULL: no
 * memory. */
struct unm_peer *unm_peer_new(struct unm_ep *ep, struct hal_peer *hp);
/* Free the object of a peer with which nothing is under way any more:
 * progress/unm_peer_life.c. */
void unm_peer_delete(struct unm_peer *peer);

/* What the address vector calls it. */
void unm_peer_name(struct unm_peer *peer);
/* Room for so many indices. 0, -FI_ENOMEM. */
int unm_peer_slots(struct unm_ep *ep, uint32_t need);

/* Peer for an AV index, connected; 0, -FI_EAGAIN, -FI_ECONNRESET (it is dead),
 * -FI_EINVAL (no such index), limits. */
int unm_peer_open(struct unm_ep *ep, fi_addr_t dest, struct unm_peer **peer);

/* Addresses were inserted: peers that were strangers get their name. */
void unm_peer_inserted(struct unm_ep *ep);
/* One was removed: no way to it by that index. And when all were: */
void unm_peer_removed(struct unm_ep *ep, fi_addr_t index);
/* peers of that name get the one of a duplicate, or are strangers. */
void unm_peer_rename(struct unm_ep *ep);

/* A send was refused: when that changes, sleepers are to know. */
void unm_peer_refused(struct unm_peer *peer);

/* Progress shall drop it, without a word. */
void unm_peer_drop(struct unm_peer *peer);

/* It broke the protocol: say so once; progress drops it. */
void unm_peer_spoiled(struct unm_peer *peer, const char *what, uint64_t head);

/* Make sure the HELLO precedes what is sent next; 0 or -FI_EAGAIN. */
int unm_peer_greet(struct unm_peer *peer);

/* Messages it allows, from the first on; and is that one more than were sent?
 * Refreshes msg_limit. */
uint64_t unm_peer_limit(const struct unm_peer *peer);
bool unm_peer_credit(struct unm_peer *peer);

/* Room for len bytes in its receive space: offset, or UNM_SPACE_NONE. */
uint32_t unm_peer_room(struct unm_peer *peer, uint32_t len);

/* Copy len bytes of a vector, from skip on, into its receive space. */
void unm_peer_put(struct unm_peer *peer, uint32_t off, const struct iovec *iov,
		  size_t count, size_t skip, size_t len);

/* Bytes of a vector that a message takes along. */
struct unm_part {
	const struct iovec *iov;
	size_t count;
	uint64_t off;
	uint32_t len;
};

/* Send a message of words and bytes, in a packet if it fits, else through
 * receive space. 0, -FI_EAGAIN, or why there is no connection. */
int unm_peer_send(struct unm_peer *peer, uint64_t head, const uint64_t *w,
		  unsigned nw, const struct unm_part *part, unsigned nparts);

/* Allow more messages, if there is room for what they bring; else once there
 * is: then unm_peer_allow_held() is to be called. */
void unm_peer_allow(struct unm_peer *peer);
void unm_peer_allow_held(struct unm_ep *ep);

/* It has something to send or to await: progress looks at it. */
void unm_peer_busy(struct unm_peer *peer);

static inline bool unm_peer_waits(const struct unm_peer *peer)
{
	return peer->wants || !unm_list_empty(&peer->unsent) ||
		!unm_list_empty(&peer->backlog) ||
		!unm_list_empty(&peer->posted) ||
		!unm_list_empty(&peer->answers) ||
		!unm_list_empty(&peer->nacks) ||
		!unm_list_empty(&peer->await) ||
		!unm_list_empty(&peer->streams) ||
		!unm_list_empty(&peer->control);
}

/* Also of one that is gone. */
static inline const struct hal_addr *unm_peer_addr(const struct unm_peer *peer)
{
	return peer->hp != NULL ? &peer->hp->addr : &peer->addr;
}

void unm_peer_ref(struct unm_peer *peer);
void unm_peer_unref(struct unm_peer *peer);

#endif /* UNM_PEER_H */
