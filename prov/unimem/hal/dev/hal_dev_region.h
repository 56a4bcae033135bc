/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_region.h - memory that the driver allocates or imports for an open
 * kernel device, and its mapping (hal_dev_region.c).
 */
#ifndef HAL_DEV_REGION_H
#define HAL_DEV_REGION_H

#include <stdint.h>

#include "hal/dev/hal_mmio.h"

/*
 * A region that an open kernel device holds and has mapped. It is a member of
 * the object that uses it; all zero means that there is no region. It is used
 * by one thread at a time, like its struct hal_mmio.
 */
struct dev_region {
	struct hal_mmio *mm;		/* device that holds it; NULL: not
					 * mapped */
	struct hal_mmio_map map;	/* valid while mm is set */
	uint64_t ref;			/* the driver's reference: global
					 * address and generation; 0: the driver
					 * has not finished the import */
	uint32_t hold;			/* number of the hold, for DROP. With mm
					 * NULL and not 0: an import that is not
					 * finished or not mapped */
};

/* Global physical address of the first byte of a reference. */
static inline uint64_t dev_ref_gaddr(uint64_t ref)
{
	return ref & HAL_GADDR_MASK;
}

/*
 * Allocate memory of a board and map it: bytes, rounded up to whole pages,
 * zeroed. Another process needs secret to import it. to is the identity of a
 * second holder (see HAL_KDEV_IO_ALLOC), or 0. *region must be all zero.
 * Returns 0, or a negative errno value of the driver, *region unchanged.
 */
int dev_region_alloc(struct hal_mmio *mm, uint32_t board, uint64_t bytes,
		     uint64_t secret, uint64_t to, struct dev_region *region);

/*
 * Import the region that ref and secret name, and map it. *imp receives the
 * driver's answer: the size of the region and who allocated it.
 *
 * Returns 0; -EAGAIN while the driver prepares the import; or another negative
 * errno value of HAL_KDEV_IO_IMPORT or of the mapping. After any error, call
 * again with the same *region and *imp, or give up by dev_region_abandon().
 * *region keeps its hold until then: the hold may be the one that ALLOC gave,
 * without which the memory ends with its allocator.
 */
int dev_region_import(struct hal_mmio *mm, uint64_t ref, uint64_t secret,
		      struct dev_region *region, struct hal_kdev_import *imp);

/* Give up a region whose import or mapping has not succeeded. No effect on a
 * region that is mapped or that has no hold. */
void dev_region_abandon(struct hal_mmio *mm, struct dev_region *region);

/*
 * Unmap a region and drop its hold; *region is all zero afterwards. No effect
 * on a region that is not mapped. Transfers that use the memory must be over.
 */
void dev_region_drop(struct dev_region *region);

/* Drop a hold that has no mapping. */
void dev_hold_drop(struct hal_mmio *mm, uint32_t hold);

#endif /* HAL_DEV_REGION_H */
