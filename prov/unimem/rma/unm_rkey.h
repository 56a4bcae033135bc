/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rkey.h - cached remote keys of peers' regions, and the guard of direct
 * accesses (unm_rkey.c; docs/protocol.md, sections 11 and 12).
 *
 * The caller of each function holds the lock of the endpoint's domain.
 */
#ifndef UNM_RKEY_H
#define UNM_RKEY_H

#include <stdbool.h>
#include <stdint.h>

#include "hal/hal.h"
#include "util/unm_list.h"

struct unm_peer;
struct unm_wire_msg;

/*
 * A cached remote key: a peer's region as its owner described it in RKEY. It
 * belongs to the peer's cache. If operations use it when the cache releases it,
 * it is stale, and the last unm_rkey_put() frees it.
 */
struct unm_rkey {
	struct unm_list link;		/* in peer->rkeys, last used first */
	struct unm_rkey *chain;		/* next entry of its hash bucket */
	uint64_t key;			/* fi_mr_key() of the region */
	uint64_t start, len;		/* first address in requests; bytes */
	uint64_t base;			/* where the byte at start is: address
					 * in the owner, or offset in win */
	uint32_t region;		/* number by which it is revoked */
	uint32_t refs;			/* operations that use it */
	uint8_t reach;			/* enum unm_wire_reach: way of access
					 * and rights */
	bool arrived;			/* RKEY has arrived; false: requested
					 * only, other fields are not set */
	bool stale;			/* released by the cache */
	struct hal_key mem_key;		/* DMABLE, SHARED: key of the memory */
	struct unm_import *mem;		/* DMABLE: import, one reference; NULL
					 * before the import */
	struct hal *alias;		/* SHARED: device that opened win as an
					 * alias, else NULL */
	struct hal_window win;		/* window of mem or alias; addr is NULL
					 * without one */
};

/* The cached remote key of a region, or NULL if the region has to be accessed
 * by requests. The next send, poll or unm_guard_enter() may free the key,
 * unless the caller has incremented refs. */
struct unm_rkey *unm_rkey_find(struct unm_peer *peer, uint64_t key);

/* True if the next request to a region should ask for its remote key. */
bool unm_rkey_wanted(const struct unm_peer *peer, uint64_t key);

/* Note that a request which asks for the remote key was sent.
 * unm_rkey_wanted() returned true for the key. */
void unm_rkey_requested(struct unm_peer *peer, uint64_t key);

/* Note that a request to the region failed. If this request asked for the
 * remote key, no RKEY will come, and a later request has to ask again. */
void unm_rkey_request_failed(struct unm_peer *peer, uint64_t key);

/* Handle an RKEY message. Returns 0: an RKEY that was not requested or is
 * already revoked is ignored. */
int unm_rkey_received(struct unm_peer *peer, const struct unm_wire_msg *m);

/* Release a reference (unm_rkey.refs). */
void unm_rkey_put(struct unm_rkey *rkey);

/* Release all cached remote keys of a dead peer, while peer->hp is valid. */
void unm_rkey_evict_all(struct unm_peer *peer);

/* Read the peer's REVOKED word and release the keys that it revokes. Does
 * nothing while this process is inside the peer's memory. */
void unm_rkey_poll_revoked(struct unm_peer *peer);

/* Free all cached remote keys together with the peer's object: the HAL has
 * already released its part. */
void unm_rkey_free_all(struct unm_peer *peer);

/*
 * Enter or leave the peer's memory: direct accesses are allowed only between
 * the two calls, which may nest. Returns false if the peer's memory must not be
 * accessed now, because the guard could not be set or the peer has revoked
 * keys; then keys without a reference may have been freed.
 */
bool unm_guard_enter(struct unm_peer *peer);
void unm_guard_leave(struct unm_peer *peer);

#endif /* UNM_RKEY_H */
