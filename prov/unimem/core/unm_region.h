/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_region.h - the table of a domain's memory regions, and the memory that an
 * access to a region means (unm_region.c). api/unm_mr.c has the calls of
 * fi_mr(3), which open and close regions; unm_target.c executes accesses.
 *
 * A region is a vector of the application's memory that peers may read or
 * write, and is found by its key. A peer's operation accesses only the memory
 * that unm_mr_reach() returns.
 *
 * The caller holds the lock of the domain, except in unm_mr_enter().
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

/* A memory region, from registration to fi_close(). */
struct unm_mr {
	struct fid_mr fid;		/* fid.key: the key, or FI_KEY_NOTAVAIL
					 * until the region is enabled */
	/* read by each remote access */
	uint64_t key;			/* key in the domain's table */
	uint64_t access;		/* rights: FI_REMOTE_READ,
					 * FI_REMOTE_WRITE */
	uint64_t base;			/* address that peers use for the first
					 * byte: iov[0].iov_base with
					 * FI_MR_VIRT_ADDR, else 0 */
	uint64_t len;			/* bytes of all pieces */
	size_t count;			/* pieces, 1 to UNM_IOV_MAX */
	struct iovec iov[UNM_IOV_MAX];	/* pieces */
	uint64_t nonce;			/* hal_addr.nonce of the only endpoint
					 * through which peers may access it
					 * (FI_MR_ENDPOINT); 0: any */
	bool enabled;			/* peers may access the region */
	bool holes;			/* some of the range was not memory with
					 * these rights, at registration or the
					 * last fi_mr_refresh() */
	/* state of remote accesses */
	bool rkey_sent;			/* a peer may have its remote key */
	bool closing;			/* in unm_mr_revoke() */
	bool identified;		/* hal_alias_key() was called ... */
	bool shared;			/* ... and has set share_key: peers may
					 * have mapped the memory as well */
	bool exported;			/* share_key was sent to a peer, which
					 * may still access the memory by it */
	struct hal_key share_key;	/* names the memory, if shared */
	uint32_t number;		/* number in the domain; a later region
					 * with the same key has another */
	struct unm_list users;		/* results of gets that are being sent
					 * (unm_target.c) */
	struct unm_cntr *remote_cntr;	/* counts remote writes, or NULL */

	struct unm_domain *domain;
	int mode;			/* FI_MR_* bits of the domain */
	pid_t owner;			/* process that registered the region,
					 * not a forked child */
};

/* Number a region and insert it into the table; draw: with a random key that a
 * peer cannot guess, else with mr->key. Takes the domain's lock. Returns 0;
 * -FI_ENOKEY if another open region has the key; -FI_ENOMEM; -FI_EIO without
 * random numbers, after a log line. */
int unm_mr_enter(struct unm_mr *mr, bool draw);

/* Remove a region from the table. */
void unm_mr_leave(struct unm_mr *mr);

/* Slow path of unm_mr_find(). */
int unm_mr_lookup(struct unm_domain *domain, uint64_t key, struct unm_mr **mr);

/*
 * Find the region with a key. Returns 0, or -FI_EKEYREJECTED if there is no
 * such region or it is not enabled: a peer cannot distinguish the two. The
 * pointer is valid while the domain is locked, because fi_close() takes the
 * lock; an operation that keeps the pointer for longer is in mr->users.
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

/* True if peers may access the region through the endpoint with this nonce
 * (ep->hif->addr.nonce): with FI_MR_ENDPOINT only through the endpoint to which
 * the region is bound. If false, the target answers as for an unknown key. */
static inline bool unm_mr_serves(const struct unm_mr *mr, uint64_t nonce)
{
	return mr->nonce == 0 || mr->nonce == nonce;
}

/* Slow path of unm_mr_reach(): regions of several pieces. */
void unm_mr_pieces(const struct unm_mr *mr, uint64_t off, uint64_t len,
		   struct iovec *pieces, size_t *count);

/*
 * Find the memory that an access means.
 *
 * addr: first address in the peer's request; len: bytes, and an access of 0
 * bytes at the region's end is inside; access: FI_REMOTE_READ, FI_REMOTE_WRITE
 * or both. pieces: space for UNM_IOV_MAX entries, of which *count are filled in
 * order. They have len bytes together, and no piece is empty, except the only
 * piece of an access of 0 bytes. Returns 0; -FI_EACCES if the region does not
 * allow the access; -FI_EINVAL if the range is not all inside the region.
 */
static inline int unm_mr_reach(const struct unm_mr *mr, uint64_t addr,
			       uint64_t len, uint64_t access,
			       struct iovec *pieces, size_t *count)
{
	/* for an address below the base, off wraps to a value beyond the end */
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
 * Check that all pieces are memory of this process that may be written
 * (FI_REMOTE_WRITE in access) or else read. Returns 0 or -FI_EFAULT. Called for
 * regions with holes, such as (NULL, SIZE_MAX), and where a transfer failed
 * with -FI_EFAULT. No byte is changed. Costs a system call a piece, or two a
 * page for memory that the kernel does not pin.
 */
int unm_mr_present(const struct iovec *pieces, size_t count, uint64_t access);

#endif /* UNM_REGION_H */
