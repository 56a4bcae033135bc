/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_av_table.h - table of an address vector, by index and by address
 * (unm_av_table.c). api/unm_av.c has the calls of fi_av(3).
 *
 * A fi_addr_t is an index of the table, also in a vector that was opened with
 * FI_AV_MAP. An insertion takes the lowest free index. A removed index is free
 * at once, because unm_av_remove() releases or renames everything that the
 * provider holds under the index before it returns: peers, posted receives,
 * triggered operations, unread completions.
 *
 * An address that is inserted twice has two indices; completions name the peer
 * by the index that was inserted first. An entry for any incarnation of an
 * endpoint (HAL_ADDR_ANY) names only peers without an earlier entry.
 *
 * All of it is protected by the lock of the domain.
 */
#ifndef UNM_AV_TABLE_H
#define UNM_AV_TABLE_H

#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "core/unm_obj.h"
#include "hal/hal.h"
#include "util/unm_list.h"

#define UNM_AV_MIN	64	/* entries of the smallest table, 2^n */

/* An entry of the table. If it is not valid, next and first mean nothing. A
 * removed entry keeps its address until its index is taken again. */
struct unm_av_entry {
	struct hal_addr addr;
	uint32_t next;			/* next entry of the hash chain, its
					 * index plus 1; 0: none */
	uint32_t first;			/* index at which the same address was
					 * inserted first */
	bool valid;			/* inserted and not removed */
};

/* An address vector, from fi_av_open() to fi_close(). */
struct unm_av {
	struct fid_av fid;
	struct unm_domain *domain;
	struct unm_ref ref;		/* endpoints bound to the vector */
	struct unm_list eps;		/* these endpoints (unm_ep.in_av), to
					 * notify them of insertions */
	uint32_t number;		/* number of the vector in its domain,
					 * from 1 */
	struct unm_av_entry *entry;
	struct hal_host *host;		/* of each entry, if FI_UNIMEM_NET is
					 * set; else NULL */
	uint64_t *taken;		/* bitmap of valid entries */
	uint32_t count;			/* highest index ever in use, plus 1 */
	uint32_t valid;			/* entries in use */
	uint32_t lowest;		/* all indices below are in use */
	uint32_t size;			/* entries allocated, 2^n >= 64 */
	uint32_t *hash;			/* buckets by address: first entry's
					 * index plus 1, 0: empty; chains are in
					 * the order of insertion */
	uint32_t hash_mask;		/* buckets minus 1 */
};

static inline struct unm_av *unm_av(struct fid_av *fid)
{
	return (struct unm_av *)fid;
}

/* The index at which an address was inserted first, or FI_ADDR_NOTAVAIL. An
 * entry with HAL_ADDR_ANY is found for every incarnation. */
fi_addr_t unm_av_find(const struct unm_av *av, const struct hal_addr *addr);

/* The same, but an entry with HAL_ADDR_ANY is not found. */
fi_addr_t unm_av_find_exact(const struct unm_av *av,
			    const struct hal_addr *addr);

/* Make the table large enough for need entries. Returns 0, -FI_EINVAL (more
 * than the table can hold) or -FI_ENOMEM; the table is unchanged on failure. */
int unm_av_grow(struct unm_av *av, size_t need);

/* Insert an address and return its index. unm_av_grow() has made the space.
 * host: NULL or all 0 is the local host. */
fi_addr_t unm_av_add(struct unm_av *av, const struct hal_addr *addr,
		     const struct hal_host *host);

/* The host of an entry, for hal_connect_host(). */
static inline const struct hal_host *unm_av_host(const struct unm_av *av,
						 fi_addr_t index)
{
	return av->host == NULL || av->host[index].port == 0 ? NULL :
		&av->host[index];
}

/* Remove the entry at an index. Entries that had this index in first, all in
 * the same chain, get the index of the oldest remaining entry of their address.
 */
void unm_av_drop(struct unm_av *av, uint32_t gone);

#endif /* UNM_AV_TABLE_H */
