/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unimem_topology.c - unimem_info --topology: the boards as objects of hwloc.
 *
 * The memory of an emulated board is that of this host, within the limits of
 * this process's control groups. All boards share it, so each object has the
 * same figures. util/unm_topology.c has the objects.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "hal/hal.h"
#include "hal/hal_limit.h"
#include "unimem_topology.h"
#include "util/unm_topology.h"

static const char *reason(int err)
{
	switch (err) {
	case -ENOSYS:
		return "this needs hwloc: libhwloc.so.15, and a program that "
		       "was built with hwloc (Debian: libhwloc-dev)";
	case -E2BIG:
		return "there are more than 256 boards";
	case -EEXIST:
		return "HWLOC_XMLFILE names a topology that has boards already";
	case -ENODEV:
		return "these boards are not memory nodes of this host";
	case -EINVAL:
		return "hwloc refuses the topology that the environment names";
	}
	return strerror(-err);
}

int topology_write(const char *path)
{
	struct unm_topology *topo;
	struct hal *hal;
	int ret;

	if (hal_get(NULL, &hal) != 0)
		return 2;		/* the HAL has logged why */
	ret = unm_topology_open(hal->caps.boards - hal->far_boards,
				(hal->caps.flags & HAL_CAP_ANY_BOARD) != 0,
				&topo);
	if (ret == 0) {
		ret = unm_topology_write(topo, hal_memory_total(),
					 hal_memory_left(UINT64_MAX), path);
		unm_topology_close(topo);
	}
	hal_put(hal);
	if (ret == 0)
		return 0;
	fprintf(stderr, "unimem_info: --topology %s: %s\n", path, reason(ret));
	return 2;
}
