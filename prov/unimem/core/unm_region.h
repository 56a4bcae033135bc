/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_region.h - memory regions: pieces of the application's memory that peers
 * may read or write, each found by its key. The domain has a table of them;
 * whoever executes a peer's operation looks its region up, asks what memory it
 * means, and touches nothing else.
 *
 * Not here: how bytes get there (unm_target.c), and memory that is not
 * registered. Which memory is dmable does not matter here either.
 *
 * All of it is called with the domain's lock, as what an endpoint owns is.
 */
#ifndef UNM_REGION_H
#define UNM_REGION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <rdma/fi_domain.h>

#include "core/unm_domain_state.h"
#include "hal/hal.h"
#include "unm_offer.h"
#include "util/unm_list.h"

struct unm_cntr;

struct unm_mr {
	struct fid_mr fid;		/* fid.key: as the application sees it,
					 * or FI_KEY_NOTAVAIL */
	/* what a remote access looks at */
	uint64_t key;
	uint64_t access;		/* FI_REMOTE_READ ... */
	uint64_t base;			/* address peers use for byte 0: 0, or
					 * with FI_MR_VIRT_ADDR iov[0]'s */
	uint64_t len;			/* bytes of all pieces */
	size_t count;			/* pieces, 1 to UNM_IOV_MAX */
	struct iovec iov[UNM_IOV_MAX];	/* byte 0 is the first one's first */
	uint64_t nonce;			/* of the only endpoint it serves, 0:
					 * all of the domain */
	bool enabled;
	bool holes;			/* not everywhere memory that its rights
					 * are good for, at registration or
					 * the last fi_mr_refresh() */
	/* the core's */
	bool routed;			/* peers may access it directly */
	bool closing;			/* in unm_mr_unroute() */
	bool identified;		/* share_key was looked for ... */
	bool shared;			/* ... and is there: peers may have the
					 * memory mapped themselves */
	bool exported;			/* a peer was sent share_key, and may
					 * access the memory by it still */
	struct hal_key share_key;
	uint32_t number;		/* of this region in its domain: the
					 * next one of its key has another */
	struct unm_list users;		/* operations that stream from it */
	struct unm_cntr *remote_cntr;	/* remote writes count here, or NULL */

	struct unm_domain *domain;
	int mode;			/* FI_MR_ bits of the domain */
	pid_t owner;			/* who registered it, not a child */
};

/* Give a region its number and put it into the table; draw: under a key that a
 * peer does not guess, else under mr->key. Takes the domain's lock.
 * 0, -FI_ENOKEY (another open region has its key), -FI_ENOMEM, -FI_EIO. */
int unm_mr_enter(struct unm_mr *mr, bool draw);

/* Take it out. With the domain's lock. */
void unm_mr_leave(struct unm_mr *mr);

/* Slow path of unm_mr_find(). */
int unm_mr_lookup(struct unm_domain *domain, uint64_t key, struct unm_mr **mr);

/*
 * The region with a key. It stays until fi_close(), which takes the domain's
 * lock: a pointer kept beyond that lock goes into mr->users.
 * -FI_EKEYREJECTED: none, or one that is not enabled; peers are not told which.
 * (-FI_ENOKEY is the answer to whoever registers a key twice, see fi_mr(3).)
 */
static inline int unm_mr_find(struct unm_domain *domain, uint64_t key,
			      struct unm_mr **mr)
{
	struct unm_mr *hit = domain->region_hit;

	if (hit == NULL || hit->key != key)
		return unm_mr_lookup(domain, key, mr);
	*mr = hit;
	return 0;
}

/* May it be reached through the endpoint whose interface has this nonce
 * (ep->hif->addr.nonce)? FI_MR_ENDPOINT: only through the one it is bound to. A
 * target answers "no" as it does an unknown key. */
static inline bool unm_mr_serves(const struct unm_mr *mr, uint64_t nonce)
{
	return mr->nonce == 0 || mr->nonce == nonce;
}

/* Slow path of unm_mr_reach(): regions of several pieces. */
void unm_mr_pieces(const struct unm_mr *mr, uint64_t off, uint64_t len,
		   struct iovec *pieces, size_t *count);

/*
 * The memory that an access means.
 *
 * addr: as the peer named it; len: bytes, 0 at the region's end is inside;
 * access: what it does, FI_REMOTE_READ, FI_REMOTE_WRITE or both. pieces: room
 * for UNM_IOV_MAX, filled in order; together they have len bytes, and none is
 * empty but the only one of an access of 0 bytes.
 * -FI_EACCES: not allowed to do that here. -FI_EINVAL: not all inside.
 */
static inline int unm_mr_reach(const struct unm_mr *mr, uint64_t addr,
			       uint64_t len, uint64_t access,
			       struct iovec *pieces, size_t *count)
{
	/* an address below the base wraps, to beyond the end */
	uint64_t off = addr - mr->base;

	if (access & ~mr->access)
		return -FI_EACCES;
	if (off > mr->len || len > mr->len - off)
		return -FI_EINVAL;
	if (mr->count != 1) {
		unm_mr_pieces(mr, off, len, pieces, count);
		return 0;
	}
	pieces->iov_base = (void *)((uintptr_t)mr->iov[0].iov_base + off);
	pieces->iov_len = len;
	*count = 1;
	return 0;
}

/*
 * Is there memory of this process behind all of these pieces, for that access
 * (FI_REMOTE_WRITE, or else to read)? Checked for regions with holes, such as
 * (NULL, SIZE_MAX), and where a transfer failed with -FI_EFAULT. No byte is
 * changed. A system call per piece; per page where the kernel does not pin the
 * memory. 0 or -FI_EFAULT.
 */
int unm_mr_present(const struct iovec *pieces, size_t count, uint64_t access);

#endif /* UNM_REGION_H */
