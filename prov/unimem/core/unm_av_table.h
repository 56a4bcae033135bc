/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_av_table.h - address vector: its table. A fi_addr_t is an index (a
 * FI_AV_MAP request gets the same), and an insertion takes the lowest free
 * index. A removed index is
 * free at once: whatever the provider holds under the index is given up or
 * renamed before unm_av_remove() returns (peers, posted receives, triggered
 * operations, unread completions). The same address inserted twice gets two
 * indices; completions name the peer by the index that was inserted first. An
 * entry for any incarnation (HAL_ADDR_ANY) is a name only of peers that have no
 * earlier one.
 */
#ifndef UNM_AV_TABLE_H
#define UNM_AV_TABLE_H

#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include "core/unm_obj.h"
#include "hal/hal.h"
#include "util/unm_list.h"

#define UNM_AV_MIN	64	/* entries of the smallest table */

struct unm_av_entry {
	struct hal_addr addr;
	uint32_t next;			/* hash chain, index + 1 */
	uint32_t first;			/* index of the same address that was
					 * inserted first */
	bool valid;			/* not removed */
};

struct unm_av {
	struct fid_av fid;
	struct unm_domain *domain;
	struct unm_ref ref;
	struct unm_list eps;		/* endpoints, told of insertions */
	uint32_t number;		/* of the vector in its domain, >= 1 */
	struct unm_av_entry *entry;
	uint64_t *taken;		/* bitmap of valid entries */
	uint32_t count;			/* highest index ever given out + 1 */
	uint32_t valid;			/* entries that are not removed */
	uint32_t lowest;		/* no index below is free */
	uint32_t size;			/* entries allocated, 2^n >= 64 */
	uint32_t *hash;			/* index + 1, by address: chains in the
					 * order of insertion */
	uint32_t hash_mask;
};

static inline struct unm_av *unm_av(struct fid_av *fid)
{
	return (struct unm_av *)fid;
}

/* Index of an address (first one inserted), or FI_ADDR_NOTAVAIL. An entry with
 * HAL_ADDR_ANY is found for every incarnation. */
fi_addr_t unm_av_find(const struct unm_av *av, const struct hal_addr *addr);

/* Room for so many entries. 0, -FI_EINVAL, -FI_ENOMEM. */
int unm_av_grow(struct unm_av *av, size_t need);

/* Insert an address, for which there is room. Returns its index. */
fi_addr_t unm_av_add(struct unm_av *av, const struct hal_addr *addr);

/* An entry leaves its chain. Later ones that had its name, all in the same
 * chain, get that of the oldest left. */
void unm_av_drop(struct unm_av *av, uint32_t gone);

#endif /* UNM_AV_TABLE_H */
