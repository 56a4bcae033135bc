/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_region.c - regions: memory that the driver allocates or imports for
 * an open kernel device, and maps.
 *
 * A struct dev_region is one hold of the driver (ALLOC, IMPORT and DROP of
 * hal_kdev.h) and its mapping. The files that use regions own the structures:
 * hal_dev_conn.c for the pages of a connection, hal_dev_mem.c for dmable
 * memory, hal_dev_engine.c for the descriptors of the engine.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "hal/dev/hal_dev_region.h"

void dev_hold_drop(struct hal_mmio *mm, uint32_t hold)
{
	struct hal_kdev_hold h = { .hold = hold };

	mm->ops->ioctl(mm, HAL_KDEV_IO_DROP, &h);
}

/* Map a region that is held. On failure it stays held, for
 * dev_region_abandon(). */
static int region_map(struct hal_mmio *mm, uint64_t map_off, uint64_t bytes,
		      struct dev_region *region)
{
	int ret;

	ret = mm->ops->map(mm, map_off, bytes, &region->map);
	if (ret != 0) {
		memset(&region->map, 0, sizeof(region->map));
		return ret;
	}
	region->mm = mm;
	return 0;
}

int dev_region_alloc(struct hal_mmio *mm, uint32_t board, uint64_t bytes,
		     uint64_t secret, uint64_t to, struct dev_region *region)
{
	struct hal_kdev_alloc a = {
		.bytes = bytes, .secret = secret, .to = to, .board = board,
	};
	int ret;

	ret = mm->ops->ioctl(mm, HAL_KDEV_IO_ALLOC, &a);
	if (ret != 0)
		return ret;
	region->ref = a.ref;
	region->hold = a.hold;
	ret = region_map(mm, a.map_off, a.bytes, region);
	if (ret != 0)
		dev_region_abandon(mm, region);
	return ret;
}

int dev_region_import(struct hal_mmio *mm, uint64_t ref, uint64_t secret,
		      struct dev_region *region, struct hal_kdev_import *imp)
{
	int ret;

	if (region->ref == 0) {
		*imp = (struct hal_kdev_import) {
			.ref = ref, .secret = secret, .hold = region->hold,
		};
		ret = mm->ops->ioctl(mm, HAL_KDEV_IO_IMPORT, imp);
		if (ret == 0 || ret == -EAGAIN)
			region->hold = imp->hold;
		if (ret != 0)
			return ret;
		region->ref = ref;
	}
	return region_map(mm, imp->map_off, imp->bytes, region);
}

void dev_region_abandon(struct hal_mmio *mm, struct dev_region *region)
{
	if (region->mm != NULL || region->hold == 0)
		return;
	dev_hold_drop(mm, region->hold);
	memset(region, 0, sizeof(*region));
}

void dev_region_drop(struct dev_region *region)
{
	if (region->mm == NULL)
		return;
	region->mm->ops->unmap(&region->map);
	dev_hold_drop(region->mm, region->hold);
	memset(region, 0, sizeof(*region));
}
