/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_peer.h - another endpoint, as this endpoint sees it: its connection, its
 * credits, its receive space, and the operations in progress with it.
 *
 * Message credits: the receiver allows a number of messages, a free-running
 * count in back word 0. It gives no credits to peers with unexpected messages
 * while all unexpected messages take FI_UNIMEM_UNEXPECTED_MAX bytes or more,
 * and to no peer while its completion queue is full. Control packets need no
 * credit and are always processed, so no operation in progress waits for a
 * receive that is not posted.
 *
 * Except where a comment says otherwise, the domain is locked in all of these
 * calls.
 */
#ifndef UNM_PEER_H
#define UNM_PEER_H

#include <stdbool.h>
#include <stddef.h>

#include <rdma/fabric.h>

#include "core/unm_hint_way.h"
#include "core/unm_way.h"
#include "hal/hal.h"
#include "util/unm_list.h"

#define UNM_PEER_CREDITS	256	/* messages allowed at first */
/* Numbers of the back words, which one endpoint stores and its peer reads. */
#define UNM_PEER_BACK_LIMIT	0	/* messages allowed to the peer */
#define UNM_PEER_BACK_APPLIED	1	/* posted requests of the peer that were
					 * executed */
#define UNM_PEER_BACK_REVOKED	2	/* revocations of remote keys (upper 32
					 * bits), region of the last one */
#define UNM_PEER_BACK_GUARD	3	/* odd: an access to the memory of the
					 * peer is in progress */
#define UNM_PEER_BACK_LONG	4	/* bit c: the peer may send messages of
					 * unm_way_class() c as LONG ones */
/* Sends that are refused in a row, while the peer releases nothing, before a
 * send is put into the backlog. A peer that makes progress releases packets
 * sooner, and then a repeated call is faster than the backlog. */
#define UNM_PEER_REFUSALS	500

struct unm_ep;
struct unm_cached;
struct unm_msg;
struct unm_rx_op;

/*
 * The endpoint owns it, from unm_peer_new() until the HAL's peer is freed and
 * refs is 0. Protected by the lock of the endpoint's domain. Operations: tx_op
 * is a struct unm_tx_op, rx_op a struct unm_rx_op, os_op a struct
 * unm_os_op.
 */
struct unm_peer {
	/* each message sent */
	_Alignas(64) struct hal_peer *hp;	/* NULL: torn down */
	uint64_t msgs_sent;		/* messages sent to the peer */
	uint64_t msg_limit;		/* messages that may be sent; equal to
					 * msgs_sent, which disables the fast
					 * path, if hp is NULL or there is a
					 * backlog */
	/* each message received */
	struct unm_ep *ep;
	fi_addr_t fi_addr;		/* FI_ADDR_NOTAVAIL: not in the AV */
	uint64_t msgs_got;		/* messages received from the peer */
	uint64_t granted;		/* messages that the peer may send */
	uint64_t posted_got;		/* posted requests of the peer that were
					 * executed or refused */
	uint64_t posted_reported;	/* the count stored to back word 1 */
	bool hello_received;		/* HELLO received */
	bool failed;			/* to be disconnected by progress */
	bool closed;			/* the peer closed its endpoint: it did
					 * not die */
	/* each eager message, or send that was refused */
	bool refused;			/* a send was refused: notify the
					 * application when it may succeed */
	bool retry;			/* refused: it may succeed already */
	uint32_t refusals;		/* refused sends since the peer last
					 * released a packet */
	uint64_t got_at_eager;		/* msgs_got at the last eager message */
	struct unm_space *space;	/* allocator of the peer's receive
					 * space; NULL: not used yet */
	struct unm_hint_ways *hints;	/* of messages through the space; NULL:
					 * no hint is possible */
	struct unm_list await;		/* tx_ops, by packet */
	/* ---- end of the second line ---- */
	struct unm_list rts;		/* tx_ops that await CTS or FIN */
	struct unm_list streams;	/* tx_ops being streamed, in order */
	struct unm_list control;	/* rx_ops with CTS or FIN to send */
	struct unm_list recvs;		/* rx_ops in transfer from the peer */
	struct unm_list in_pending;	/* entry in ep->pending_peers */
	struct hal_addr addr;		/* copy of hp->addr, once hp is NULL */
	struct unm_list all;		/* entry in ep->peers */
	struct unm_list unresolved;	/* entry in ep->unresolved, while
					 * fi_addr is FI_ADDR_NOTAVAIL */
	struct unm_list throttled;	/* entry in ep->throttled, while the
					 * peer is to get credits later */
	struct unm_list msgs;		/* stored messages of the peer */
	struct unm_list backlog;	/* tx_ops not sent yet, in order */
	struct unm_list posted;		/* os_ops without a result, until they
					 * are executed */
	struct unm_list await_result;	/* os_ops that want results */
	struct unm_list unsent;		/* os_ops with requests to send */
	struct unm_list cached;		/* rma/unm_cache.h: entries, the one
					 * used last first */
	struct unm_cached **cached_hash;	/* the same by key, or NULL */
	uint64_t cached_bytes;		/* bytes that they map */
	struct unm_list imports;	/* those that are imported memory */
	struct unm_list answers;	/* answers to its requests, not sent */
	struct unm_list nacks;		/* REFUSED answers to posted requests,
					 * oldest first */
	uint64_t refused_at;		/* slots released when a send was last
					 * refused */
	uint64_t tried_at;		/* slots released, and ... */
	uint64_t tried_limit;		/* ... messages allowed when the backlog
					 * was last tried */
	uint64_t posted_sent;		/* posted requests sent to the peer */
	uint64_t applied;		/* back word 1 of the peer when last
					 * read: posted requests executed */
	uint64_t refused_packet;	/* hal_tx_sent() after REFUSED for the
					 * oldest nack; 0: not sent yet */
	/* unm_prompt.c: may a short operation use the last sample again? */
	uint64_t sample_ticks;		/* unm_ticks() at the sample */
	uint64_t sample_ticks_max;	/* ticks after which the sample is not
					 * used any more; 0: the rate of the
					 * counter is not known */
	uint32_t sample_uses_left;	/* short operations that may still use
					 * the sample */
	/* unm_prompt.c, times in ns, 0: none */
	uint64_t sampled_ns;		/* when the peer was last sampled */
	uint64_t sampled_done;		/* slots released by then */
	uint64_t prompt_ns;		/* the peer is known to have made
					 * progress after this time */
	/* remote keys: docs/protocol.md, section 12 */
	uint64_t revoked;		/* back word 2 of the peer that was last
					 * acted on */
	uint64_t guard;			/* back word 3 that was last stored */
	uint64_t guard_awaited;		/* guard of the peer that a revocation
					 * waits to change; 0: none */
	uint32_t accesses;		/* accesses in progress under guard */
	bool guard_entering;		/* guard + 1 is stored, but not known to
					 * have arrived */
	uint32_t due;			/* requests without a result yet */
	uint32_t due_bytes;		/* bytes of their results */
	uint32_t nanswers;		/* answers that are not sent yet */
	uint32_t answer_bytes;		/* bytes kept for these */
	uint32_t ncached;		/* entries of cached */
	uint32_t epoch;			/* count of revocations in back word 2
					 * for the peer */
	uint32_t revoking;		/* region of the last revocation */
	uint8_t cached_bits;		/* log2 of the lists of cached_hash */
	bool rkeys_sent;		/* was sent keys of local regions */
	bool revoke_pending;		/* the last revocation may not have
					 * reached the peer */
	bool revoked_all;		/* epoch was raised by 2, because the
					 * peer has failed */
	uint32_t refs;			/* entries of ep->peer_of[], and stored
					 * messages */
	bool hello_sent;		/* HELLO sent */
	uint64_t space_since;		/* us, when the first attempt found no
					 * memory for receive space, or no
					 * memory or descriptor to connect; 0:
					 * none */
	uint64_t space_retry;		/* us, when to try next */
	struct unm_list in_grown;	/* entry in ep->grown */
	uint32_t space_used;		/* bytes of receive space to use; short
					 * messages use less */
	uint32_t grown_mark;		/* space->mark_tail when it was last
					 * examined in this list and had
					 * changed, ... */
	uint64_t grown_us;		/* ... and when, unm_now_us() */
	bool piece_last;		/* a piece of a stream was sent after
					 * the last one-sided message */
	bool attach_off;		/* cross-memory attach is forbidden */
	uint32_t long_stored;		/* unexpected messages of more than
					 * UNM_WIRE_EAGER_LIMIT bytes of which
					 * a copy is stored */
	struct unm_ways *ways;		/* for long transfers; NULL before the
					 * first */
	uintptr_t results_end;		/* end of the last page of our receive
					 * space that a result has used */
	/* the LONG message of the peer of which pieces are still to come */
	uint64_t long_left;		/* bytes to come; 0: there is none */
	struct unm_rx_op *long_op;	/* rx_op that it matched, ... */
	struct unm_msg *long_msg;	/* or where it is stored; both NULL: it
					 * is ignored */
	uint64_t long_classes;		/* back word 4 that was last stored */
	uint64_t pieces;		/* pieces of streams received */
	uint64_t life;			/* pieces received, and packets that the
					 * peer released, when a stream was last
					 * checked */
	uint64_t life_ns;		/* unm_now_ns() of its last change */
};
_Static_assert(offsetof(struct unm_peer, rts) <= 128,
	       "two lines hold what small messages need");

/* Make the object of a peer of the HAL, not in the address vector yet. NULL: no
 * memory. */
struct unm_peer *unm_peer_new(struct unm_ep *ep, struct hal_peer *hp);

/* Free the object. No operation with the peer may be in progress; see
 * progress/unm_peer_life.c. */
void unm_peer_delete(struct unm_peer *peer);

/* Set peer->fi_addr to the index that the address vector has for its address
 * now, and match its stored messages by this index. */
void unm_peer_resolve(struct unm_peer *peer);

/* Make room for need indices in ep->peer_of[]. 0, -FI_ENOMEM. */
int unm_peer_slots(struct unm_ep *ep, uint32_t need);

/* Find the peer of index dest of the address vector; connect and send HELLO if
 * that was not done yet. 0; -FI_EAGAIN; -FI_ECONNRESET: the peer is dead;
 * -FI_EINVAL: no such index; -FI_EOPBADSTATE: the endpoint is not enabled;
 * -FI_ENOMEM; errors of hal_connect(). */
int unm_peer_open(struct unm_ep *ep, fi_addr_t dest, struct unm_peer **peer);

/* Find the peer of an index of the address vector, which the caller has
 * checked, and begin to connect to it if that was not done yet; HELLO follows
 * with the first operation. 0; -FI_ENOMEM; errors of hal_connect(). */
int unm_peer_find(struct unm_ep *ep, fi_addr_t index, struct unm_peer **peer);

/* To be called after addresses were inserted into the address vector: find the
 * indices of the peers that had none. */
void unm_peer_inserted(struct unm_ep *ep);

/* Mark the first index that has the address of a torn-down peer, with its
 * nonce, as dead: sends to this index fail, even if nothing was sent to it
 * before, and so do receives from it while it is the first index of the
 * address. No other process will ever have the same address; an address without
 * a nonce names no incarnation and is not marked. */
void unm_peer_mark_dead(struct unm_peer *peer);

/* To be called for each index that was removed, after unm_av_drop(): it does
 * not lead to its peer any more. If the peer is dead, the next index of its
 * address is marked. */
void unm_peer_removed(struct unm_ep *ep, fi_addr_t index);

/* To be called after the last of these: a peer whose index was removed gets the
 * index of a duplicate, or none. True: a peer got the index of a duplicate. */
bool unm_peer_resolve_removed(struct unm_ep *ep);

/* Note that a send was refused: progress notifies the application when a
 * repeated call may succeed. */
void unm_peer_note_refusal(struct unm_peer *peer);

/* Have progress disconnect the peer, without a log line. */
void unm_peer_disconnect(struct unm_peer *peer);

/* Have progress disconnect the peer, for example after a protocol error. Logs
 * what and head, unless the peer is to be disconnected already. */
void unm_peer_fail(struct unm_peer *peer, const char *what, uint64_t head);

/* Connect to the peer and send HELLO, if that was not done yet. 0; -FI_EAGAIN;
 * errors of hal_connect(). */
int unm_peer_connect(struct unm_peer *peer);

/* The number of messages that the peer allows, counted from the first one. */
uint64_t unm_peer_limit(const struct unm_peer *peer);

/* Raise msg_limit to that number. May one more message be sent? */
bool unm_peer_credit(struct unm_peer *peer);

/* The measurements of long transfers with the peer. NULL: no memory. */
struct unm_ways *unm_peer_ways(struct unm_peer *peer);

/* Give the peer credits, or put it into ep->throttled if credits are withheld.
 */
void unm_peer_grant(struct unm_peer *peer);

/* To be called when the reason to hold back credits may have ended: give the
 * peers in ep->throttled their credits. */
void unm_peer_grant_throttled(struct unm_ep *ep);

/* Put the peer into ep->pending_peers: progress continues its pending
 * operations. */
void unm_peer_schedule(struct unm_peer *peer);

/* Must the peer stay in ep->pending_peers? */
static inline bool unm_peer_has_pending(const struct unm_peer *peer)
{
	return peer->refused || !unm_list_empty(&peer->unsent) ||
		!unm_list_empty(&peer->backlog) ||
		!unm_list_empty(&peer->posted) ||
		!unm_list_empty(&peer->answers) ||
		!unm_list_empty(&peer->nacks) ||
		!unm_list_empty(&peer->await) ||
		!unm_list_empty(&peer->streams) ||
		!unm_list_empty(&peer->control);
}

/* The address of a live or dead peer. */
static inline const struct hal_addr *unm_peer_addr(const struct unm_peer *peer)
{
	return peer->hp != NULL ? &peer->hp->addr : &peer->addr;
}

/* Take or release a reference (refs). Releasing the last one deletes a peer
 * whose hp is NULL. */
void unm_peer_ref(struct unm_peer *peer);
void unm_peer_unref(struct unm_peer *peer);

#endif /* UNM_PEER_H */
