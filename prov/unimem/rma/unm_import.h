/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_import.h - regions of a peer's dmable memory, imported once for all that
 * use them: routes to its memory regions (unm_rkey.c) and messages from
 * dmable buffers (unm_rendezvous.c).
 *
 * An import that nobody uses is kept for a second, as the next message most
 * likely comes from the same memory; then progress lets it go, so that memory
 * which its owner freed is given back. One that failed is kept as long, too: it
 * is not asked for again with every message.
 */
#ifndef UNM_IMPORT_H
#define UNM_IMPORT_H

#include "hal/hal.h"
#include "util/unm_list.h"

#define UNM_IMPORT_US	1000000		/* one that nobody uses is kept */
#define UNM_IMPORTS_MAX	1024		/* of a peer */

struct unm_peer;

struct unm_import {
	struct unm_list link;		/* peer's imports, last used first */
	struct hal_key key;
	struct hal_rmem *rmem;		/* NULL: there is none (any more) */
	int status;			/* why there never was */
	struct hal_window win;
	uint32_t refs;
	uint64_t idle;			/* us, when it was seen unused, or 0 */
};

/* The region a key opens: 0 and one more reference; -FI_EAGAIN: asked for, try
 * again; or why not. */
int unm_import_get(struct unm_peer *peer, const struct hal_key *key,
		   struct unm_import **imp);
void unm_import_put(struct unm_import *imp);

/* Is all of a range inside? Where there is no window the HAL looks itself. */
static inline bool unm_import_covers(const struct unm_import *imp,
				     uint64_t off, uint64_t len)
{
	return imp->win.addr == NULL ||
		(off <= imp->win.bytes && len <= imp->win.bytes - off);
}

/* By clock. */
void unm_import_tidy(struct unm_peer *peer, uint64_t now_us);
/* While the HAL still knows the peer; references outlive it. */
void unm_import_forget(struct unm_peer *peer);
/* The peer's object goes; the HAL knows it no more. */
void unm_import_clear(struct unm_peer *peer);

#endif /* UNM_IMPORT_H */
