/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_cache.h - cache of what this process knows and maps of a peer's memory:
 * the remote keys of its regions (unm_rkey.c), and its dmable memory, imported
 * into the HAL (unm_cache.c). docs/protocol.md, section 11.
 *
 * One cache per peer. An entry is found by a key that names one generation of a
 * region or of memory: memory that was freed and allocated again at the same
 * place has another key, and a revocation removes the remote key of a region
 * that was closed before a region with the same key can be used.
 *
 * The number of entries and the bytes that they map are bounded
 * (FI_UNIMEM_RKEY_MAX, FI_UNIMEM_RKEY_BYTES). For a new entry, the entries that
 * were used least recently are evicted. An entry in use is never evicted for
 * that, nor a remote key that is requested and has not arrived: if no other
 * entry is left, there is no new one, and the caller needs another way.
 *
 * The caller of each function holds the lock of the endpoint's domain.
 */
#ifndef UNM_CACHE_H
#define UNM_CACHE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/unm_peer.h"
#include "hal/hal.h"
#include "util/unm_list.h"

enum unm_cached_kind {
	UNM_CACHED_REGION,		/* remote key of a region */
	UNM_CACHED_MEMORY,		/* imported dmable memory */
};

/*
 * An entry. It belongs to the cache of its peer. If it is in use when it leaves
 * the cache, it is stale, and the last unm_cached_put() frees it.
 *
 * Memory is imported once, and used by the remote keys of all regions in it and
 * by rendezvous messages. It stays for one second without a user, because the
 * next message most likely comes from the same memory; then progress releases
 * it, so that memory which its owner freed returns to the system. A failed
 * import stays as long, so that not every operation tries again.
 */
struct unm_cached {
	struct unm_list link;		/* in peer->cached, last used first */
	struct unm_cached *chain;	/* next entry of its hash bucket */
	struct hal_key id;		/* REGION: fi_mr_key() and 0; MEMORY:
					 * key by which it is imported */
	uint8_t kind;			/* enum unm_cached_kind */
	uint8_t reach;			/* REGION: enum unm_wire_reach, way of
					 * access and rights */
	bool arrived;			/* REGION: RKEY has arrived; false:
					 * requested only, the fields from
					 * reach on are not set */
	bool stale;			/* has left the cache */
	uint32_t refs;			/* users: operations, and for MEMORY
					 * also entries of regions in it */
	struct hal_window win;		/* window of the memory or of alias;
					 * addr NULL: there is none */
	uint64_t bytes;			/* bytes of the memory or of alias, part
					 * of peer->cached_bytes */
	/* REGION */
	uint64_t start, len;		/* first address in requests; bytes */
	uint64_t base;			/* where the byte at start is: address
					 * in the owner, or offset in win */
	uint32_t region;		/* number by which it is revoked */
	struct hal_key mem_key;		/* DMABLE, SHARED: key of the memory */
	struct unm_cached *mem;		/* DMABLE: its memory, a user of it;
					 * NULL before the import */
	struct hal *alias;		/* SHARED: device that opened win as an
					 * alias, else NULL */
	/* MEMORY */
	struct unm_list import;		/* in peer->imports */
	struct hal_rmem *rmem;		/* the HAL's handle; NULL: not imported,
					 * or the peer is dead */
	int status;			/* 0, or the negative fi_errno with
					 * which the import failed */
	uint64_t idle;			/* unm_now_us() when the memory was
					 * first found without a user; 0: in
					 * use */
};

/* The list of the hash table for a key. The table has 2^cached_bits lists. */
static inline struct unm_cached **
unm_cache_bucket(const struct unm_peer *peer, uint64_t word0, uint64_t word1)
{
	/* applications use counters, shifted values or random numbers as keys,
	 * so mix all bits */
	uint64_t h = (word0 ^ word0 >> 32 ^ word1) *
		UINT64_C(0x9E3779B97F4A7C15);

	return &peer->cached_hash[h >> (64 - peer->cached_bits)];
}

static inline bool unm_cached_is(const struct unm_cached *c, uint64_t word0,
				 uint64_t word1, enum unm_cached_kind kind)
{
	return c->id.word[0] == word0 && c->id.word[1] == word1 &&
		c->kind == kind;
}

/* The entry of a key, its two words; or NULL. It may not have arrived. */
static inline struct unm_cached *
unm_cache_find(const struct unm_peer *peer, uint64_t word0, uint64_t word1,
	       enum unm_cached_kind kind)
{
	struct unm_cached *c = unm_container(peer->cached.next,
					     struct unm_cached, link);

	if (unm_list_empty(&peer->cached))
		return NULL;
	if (unm_cached_is(c, word0, word1, kind))
		return c;		/* used last, most likely again */
	c = *unm_cache_bucket(peer, word0, word1);
	while (c != NULL && !unm_cached_is(c, word0, word1, kind))
		c = c->chain;
	return c;
}

/* Note that an entry is used: it is evicted later than all others. */
static inline void unm_cache_used(struct unm_peer *peer, struct unm_cached *c)
{
	if (peer->cached.next == &c->link)
		return;
	unm_list_remove(&c->link);
	unm_list_append(peer->cached.next, &c->link);
}

/* Make room for one more entry, or for this many more bytes. False: the entries
 * that are in use leave no room. An entry that no operation uses may be freed:
 * increment the refs of one that is needed. */
bool unm_cache_room(struct unm_peer *peer);
bool unm_cache_space(struct unm_peer *peer, uint64_t bytes);

/* Add an entry with this key, whose other fields are 0. unm_cache_room() has
 * returned true. NULL: no memory. */
struct unm_cached *unm_cache_add(struct unm_peer *peer, uint64_t word0,
				 uint64_t word1, enum unm_cached_kind kind);

/* The entry maps this many bytes from now on. */
void unm_cache_mapped(struct unm_peer *peer, struct unm_cached *c,
		      uint64_t bytes);

/*
 * Find or import the memory that a key opens. Returns 0 and a new reference in
 * *mem; -FI_EAGAIN if the import is in progress, or if the entries in use leave
 * no room for one more: call again; -FI_ENOSPC if the entries in use leave no
 * space for this memory, so that it is not imported for a second; -FI_ENOMEM;
 * else the negative fi_errno of a failed import.
 */
int unm_cache_import(struct unm_peer *peer, const struct hal_key *key,
		     struct unm_cached **mem);

/* Release a reference (unm_cached.refs). */
void unm_cached_put(struct unm_cached *c);

/* As unm_cached_put(), when a message was read from imported memory: without
 * FI_UNIMEM_RKEY_KEEP, memory that is no longer in use leaves the cache. */
void unm_cache_read(struct unm_peer *peer, struct unm_cached *mem);

/* True if imported memory contains bytes [off, off + len). */
static inline bool unm_cached_covers(const struct unm_cached *mem,
				     uint64_t off, uint64_t len)
{
	return off <= mem->bytes && len <= mem->bytes - off;
}

/* Take an entry out of the cache. It is freed now, or when its last user
 * releases it. The peer is connected. */
void unm_cache_evict(struct unm_peer *peer, struct unm_cached *c);

/* Release memory that has been unused for a second. now_us: the current time.
 * Called periodically by progress. */
void unm_cache_evict_idle(struct unm_peer *peer, uint64_t now_us);

/* Take all entries of a dead peer out of the cache, while peer->hp is valid.
 * References to them remain valid. */
void unm_cache_evict_all(struct unm_peer *peer);

/* Free all entries together with the peer's object: the HAL has already
 * released its part. */
void unm_cache_free_all(struct unm_peer *peer);

#endif /* UNM_CACHE_H */
