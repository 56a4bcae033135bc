/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rkey.h - remote keys of peers' regions, and the guard of direct accesses
 * (unm_rkey.c; docs/protocol.md, sections 11 and 12). unm_cache.h has their
 * cache.
 *
 * The caller of each function holds the lock of the endpoint's domain.
 */
#ifndef UNM_RKEY_H
#define UNM_RKEY_H

#include <stdbool.h>
#include <stdint.h>

struct unm_cached;
struct unm_peer;
struct unm_wire_msg;

/* The cached remote key of a region, or NULL if the region has to be accessed
 * by requests. The next send, poll or unm_guard_enter() may free the key,
 * unless the caller has incremented refs. */
struct unm_cached *unm_rkey_find(struct unm_peer *peer, uint64_t key);

/* True if the next request to a region should ask for its remote key. Then the
 * cache has room for the key: another key may have been evicted. */
bool unm_rkey_wanted(struct unm_peer *peer, uint64_t key);

/* Note that a request which asks for the remote key was sent.
 * unm_rkey_wanted() returned true for the key. */
void unm_rkey_requested(struct unm_peer *peer, uint64_t key);

/* Note that a request to the region failed. If this request asked for the
 * remote key, no RKEY will come, and a later request has to ask again. */
void unm_rkey_request_failed(struct unm_peer *peer, uint64_t key);

/* Handle an RKEY message. Returns 0: an RKEY that was not requested or is
 * already revoked is ignored. */
int unm_rkey_received(struct unm_peer *peer, const struct unm_wire_msg *m);

/* Read the peer's REVOKED word and release the keys that it revokes. Does
 * nothing while this process is inside the peer's memory. */
void unm_rkey_poll_revoked(struct unm_peer *peer);

/*
 * Enter or leave the peer's memory: direct accesses are allowed only between
 * the two calls, which may nest. Returns false if the peer's memory must not be
 * accessed now, because the guard could not be set or the peer has revoked
 * keys; then keys without a reference may have been freed. A caller that got
 * false calls unm_guard_enter() again, or unm_guard_withdraw() if it accesses
 * the memory no more: until then the peer may wait for this process.
 */
bool unm_guard_enter(struct unm_peer *peer);
void unm_guard_withdraw(struct unm_peer *peer);
void unm_guard_leave(struct unm_peer *peer);

#endif /* UNM_RKEY_H */
