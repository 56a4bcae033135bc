/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_ext_unimem.h - what the unimem provider offers beyond libfabric's calls;
 * installed as <rdma/fi_ext_unimem.h>. For C and C++. Manual: fi_unimem_mem(3).
 *
 * dmable memory: memory that peers reach directly, by remote stores and loads
 * and by the cDMA engine. Any buffer may be used in any call; transfers between
 * buffers from here take the shortest way.
 */
#ifndef FI_EXT_UNIMEM_H
#define FI_EXT_UNIMEM_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Name for fi_open_ops() on a domain; gives a struct fi_unimem_mem_ops. */
#define FI_UNIMEM_MEM		"unimem_mem"

#define FI_UNIMEM_MEM_ALIGN	((size_t)64)		/* the least there is */
#define FI_UNIMEM_MEM_ALIGN_MAX	((size_t)1 << 21)	/* the most, bytes */

/* What an address lies in. */
struct fi_unimem_mem_attr {
	void *addr;			/* where its block begins */
	size_t bytes;			/* usable from there: what was asked
					 * for, rounded up to 64 */
	void *segment;			/* shared memory the block is part of */
	size_t segment_bytes;
	uint64_t reserved[4];		/* 0 */
};

/*
 * Valid until the domain is closed, for that domain. Thread-safe; none of the
 * calls waits for the network.
 */
struct fi_unimem_mem_ops {
	size_t size;			/* of this structure, bytes */

	/*
	 * bytes: 1 or more. align: a power of two up to
	 * FI_UNIMEM_MEM_ALIGN_MAX; 0: FI_UNIMEM_MEM_ALIGN. flags: 0.
	 * 0, -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM, -FI_EPERM (in a forked
	 * child); *addr is set on success only. A line says what was refused.
	 */
	int (*alloc)(struct fid_domain *domain, size_t bytes, size_t align,
		     uint64_t flags, void **addr);

	/*
	 * addr: from alloc, in no region and in no operation under way.
	 * 0, or -FI_EINVAL: no block in use begins there.
	 */
	int (*free)(struct fid_domain *domain, void *addr);

	/*
	 * addr: any. 0, or -FI_ENOENT: it is in no block of this domain.
	 */
	int (*query)(struct fid_domain *domain, const void *addr,
		     struct fi_unimem_mem_attr *attr);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_UNIMEM_H */
