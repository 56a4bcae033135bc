/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fi_ext_unimem.h - extensions of the unimem provider to libfabric's interface;
 * installed as <rdma/fi_ext_unimem.h>. For C and C++. Manual: fi_unimem_mem(3).
 *
 * The calls allocate dmable memory: memory that peers access directly, by
 * remote stores and loads and by the cDMA engine. A buffer in ordinary memory
 * can be used in any libfabric call as well, but transfers between buffers in
 * dmable memory are the fastest.
 */
#ifndef FI_EXT_UNIMEM_H
#define FI_EXT_UNIMEM_H

#include <stddef.h>
#include <stdint.h>

#include <rdma/fi_domain.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The name for fi_open_ops() on a domain, which returns a struct
 * fi_unimem_mem_ops. */
#define FI_UNIMEM_MEM		"unimem_mem"

#define FI_UNIMEM_MEM_ALIGN	((size_t)64)		/* smallest alignment */
#define FI_UNIMEM_MEM_ALIGN_MAX	((size_t)1 << 21)	/* largest, bytes */

/* The block of memory that holds an address. */
struct fi_unimem_mem_attr {
	void *addr;			/* begin of the block */
	size_t bytes;			/* usable bytes of the block: the size
					 * asked for, rounded up to 64 */
	void *segment;			/* begin of the shared memory segment
					 * that holds the block */
	size_t segment_bytes;		/* size of the segment */
	uint64_t reserved[4];		/* 0 */
};

/*
 * The calls for memory of one domain. The structure belongs to the provider and
 * is valid until the domain is closed. The calls are thread-safe and do not
 * wait for the network.
 */
struct fi_unimem_mem_ops {
	size_t size;			/* size of this structure, bytes */

	/*
	 * Allocate a block. bytes: 1 or more. align: a power of two up to
	 * FI_UNIMEM_MEM_ALIGN_MAX; 0: FI_UNIMEM_MEM_ALIGN. flags: 0. Returns
	 * 0, -FI_EINVAL, -FI_EBADFLAGS, -FI_ENOMEM, or -FI_EPERM (in a forked
	 * child); *addr is set on success only. A line in the log says why a
	 * call failed.
	 */
	int (*alloc)(struct fid_domain *domain, size_t bytes, size_t align,
		     uint64_t flags, void **addr);

	/*
	 * Free a block. addr: returned by alloc; no memory region and no
	 * operation in progress may use the block. Returns 0, or -FI_EINVAL:
	 * no allocated block begins at addr.
	 */
	int (*free)(struct fid_domain *domain, void *addr);

	/*
	 * Find the block that holds addr, which may be any address. Returns 0,
	 * or -FI_ENOENT: addr is in no block of this domain.
	 */
	int (*query)(struct fid_domain *domain, const void *addr,
		     struct fi_unimem_mem_attr *attr);
};

#ifdef __cplusplus
}
#endif

#endif /* FI_EXT_UNIMEM_H */
