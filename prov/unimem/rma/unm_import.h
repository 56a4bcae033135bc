/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_import.h - cache of imported regions of a peer's dmable memory
 * (unm_import.c).
 *
 * Each region is imported into the HAL once, and shared by all users: cached
 * remote keys (unm_rkey.c) and rendezvous messages from dmable buffers
 * (unm_rendezvous.c). An import without users stays in the cache for one
 * second, because the next message most likely comes from the same memory.
 * Then progress releases it, so that memory which its owner freed returns to
 * the system. A failed import stays as long, so that not every message tries
 * again.
 *
 * The caller of each function holds the lock of the endpoint's domain.
 */
#ifndef UNM_IMPORT_H
#define UNM_IMPORT_H

#include "hal/hal.h"
#include "util/unm_list.h"

#define UNM_IMPORT_US	1000000		/* us, lifetime of an unused import */
#define UNM_IMPORTS_MAX	1024		/* most imports of one peer */

struct unm_peer;

/*
 * An imported region. It belongs to its peer's cache; if it has users when the
 * cache releases it, the last unm_import_put() frees it.
 */
struct unm_import {
	struct unm_list link;		/* in peer->imports, last used first */
	struct hal_key key;		/* key of the region, from its owner */
	struct hal_rmem *rmem;		/* the HAL's handle; NULL: the import
					 * failed, or the cache released it */
	int status;			/* 0, or the negative fi_errno with
					 * which the import failed */
	struct hal_window win;		/* the region's window; addr is NULL if
					 * the processor cannot access it */
	uint32_t refs;			/* users */
	uint64_t idle;			/* unm_now_us() when
					 * unm_import_evict_idle() first found
					 * no user; 0: in use */
};

/*
 * Find or import the region that a key opens. Returns 0 and a new reference in
 * *imp; -FI_EAGAIN if the import is in progress: call again; -FI_ENOMEM if
 * memory ran out or UNM_IMPORTS_MAX imports are in use; else the negative
 * fi_errno of a failed import.
 */
int unm_import_get(struct unm_peer *peer, const struct hal_key *key,
		   struct unm_import **imp);

/* Release a reference of unm_import_get(). */
void unm_import_put(struct unm_import *imp);

/* True if the region contains bytes [off, off + len). Without a window the size
 * is not known here, and the HAL checks each transfer. */
static inline bool unm_import_covers(const struct unm_import *imp,
				     uint64_t off, uint64_t len)
{
	return imp->win.addr == NULL ||
		(off <= imp->win.bytes && len <= imp->win.bytes - off);
}

/* Release imports that have been unused for UNM_IMPORT_US. now_us: the current
 * time. Called periodically by progress. */
void unm_import_evict_idle(struct unm_peer *peer, uint64_t now_us);

/* Release all imports of a dead peer, while peer->hp is still valid. References
 * to them remain valid. */
void unm_import_release_all(struct unm_peer *peer);

/* Free all imports together with the peer's object: the HAL has already
 * released its part. */
void unm_import_free_all(struct unm_peer *peer);

#endif /* UNM_IMPORT_H */
