/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_board.c - the emulated boards: number, sizes, and memory nodes.
 *
 * Entry points: emu_board_init(), emu_board_fini(), emu_board_place().
 *
 * A profile fixes sizes. If there are several boards and the machine
 * has several memory nodes, each board lies on one of these, and the pages of
 * its interfaces, links and regions are bound to that node. hwloc is loaded for
 * this purpose only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#ifdef HAVE_HWLOC
#include <hwloc.h>
#endif

#include "hal/emu/hal_emu_board.h"
#include "hal/emu/hal_emu_stamp.h"
#include "hal/hal_board.h"
#include "hal/hal_launcher.h"
#include "hal/hal_param.h"

/* Windows between boards are uncached and have no atomic operations, so exanode
 * lacks HAL_CAP_COHERENT [D 2.1]. */
static const struct emu_profile {
	const char *name;
	struct emu_geo geo;
	uint32_t wide;			/* pkt_wide of caps */
	uint32_t ifs, flags;		/* of caps */
} profiles[] = {
	{ "host", { 128, 56, 12288, 1048576, 1060864 }, HAL_PKT_WIDE, 65535,
	  HAL_CAP_COHERENT | HAL_CAP_EVENT | HAL_CAP_DMA_ANY |
	  HAL_CAP_ANY_BOARD | HAL_CAP_ALIAS | HAL_CAP_WIDE },
	{ "exanode", { 64, 24, 8192, 16384, 24576 }, 0, 63,
	  HAL_CAP_EVENT | HAL_CAP_ANY_BOARD },
};

/* ---- Boards and ranks ------------------------------------------------ */

static void find_ranks(struct hal_emu *emu)
{
	static const char *const any_rank[] = { "PMI_RANK", NULL };

	hal_launcher_ranks(&emu->rank, &emu->nranks);
	/* a rank in the whole job also spreads the first numbers to try */
	emu->start = emu->rank >= 0 ? emu->rank :
		     hal_param_first_number(any_rank);
	if (emu->start < 0 || emu->start > INT32_MAX)
		emu->start = 0;
}

/* Load the timing model that the parameters name, if any. Links get a page for
 * its stamps, so that a process without a model does not connect. */
static int set_model(struct hal_emu *emu, const char *profile)
{
	struct hal_caps *caps = &emu->hal.caps;
	int ret;

	if (emu->hal.params.model[0] == '\0')
		return 0;
	if (strcmp(profile, "exanode") != 0) {
		hal_log(0, "FI_UNIMEM_MODEL=%s: the timing model is for "
			"FI_UNIMEM_PROFILE=exanode", emu->hal.params.model);
		return -FI_EINVAL;
	}
	emu->model = calloc(1, sizeof(*emu->model));
	if (emu->model == NULL)
		return -FI_ENOMEM;
	ret = hal_model_load(emu->hal.params.model, &emu->model->figures);
	if (ret != 0) {
		free(emu->model);
		return ret;
	}
	emu->geo.depth = (uint32_t)emu->model->figures.fifo_depth;
	emu->geo.space_off += EMU_STAMP_BYTES;
	emu->geo.bytes += EMU_STAMP_BYTES;
	caps->profile = "exanode+model";
	hal_log(1, "timing model: the figures of %s",
		emu->model->figures.path);
	caps->pkt_depth = emu->geo.depth;
	return 0;
}

static int set_profile(struct hal_emu *emu)
{
	const char *name = emu->hal.params.profile;
	const struct emu_profile *pr = NULL;
	struct hal_caps *caps = &emu->hal.caps;

	if (*name == '\0')
		name = "host";
	for (unsigned i = 0; i < sizeof(profiles) / sizeof(profiles[0]); i++)
		if (strcmp(name, profiles[i].name) == 0)
			pr = &profiles[i];
	if (pr == NULL || emu->hal.params.boards < 0 ||
	    emu->hal.params.boards > UINT16_MAX) {
		hal_log(0, "the emulation has no profile %s with %d boards: "
			"use host or exanode, and at most 65535 boards", name,
			emu->hal.params.boards);
		return -FI_EINVAL;
	}
	emu->geo = pr->geo;
	caps->backend = "emu";
	caps->profile = pr->name;
	caps->flags = pr->flags;
	caps->boards = hal_board_count(&emu->hal.params);
	caps->ifs_per_board = pr->ifs;
	caps->pkt_payload = pr->geo.payload;
	caps->pkt_wide = pr->wide;
	caps->pkt_depth = pr->geo.depth;
	caps->space_bytes = pr->geo.space_bytes;
	caps->dma_depth = EMU_DMA_DEPTH;
	return set_model(emu, pr->name);
}

/* ---- Placement ------------------------------------------------------- */

#ifdef HAVE_HWLOC

/* From emu_board_init() to emu_board_fini(); constant. */
struct emu_place {
	void *lib;			/* from dlopen() */
	hwloc_topology_t topo;
	int depth;			/* of the memory nodes */
	unsigned nodes;			/* memory nodes, at least 2 */
	/* functions of hwloc */
	hwloc_obj_t (*obj)(hwloc_topology_t topo, int depth, unsigned i);
	int (*bind)(hwloc_topology_t topo, const void *addr, size_t len,
		    hwloc_const_bitmap_t set, hwloc_membind_policy_t policy,
		    int flags);
	void (*destroy)(hwloc_topology_t topo);
};

static bool one_node_only(void)
{
	char text[8] = "";
	int fd = open("/sys/devices/system/node/online",
		      O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return true;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n <= 0 || strcmp(text, "0\n") == 0;
}

static int load_topology(struct emu_place *pl)
{
	int (*init)(hwloc_topology_t *topo);
	int (*load)(hwloc_topology_t topo);
	unsigned (*count)(hwloc_topology_t topo, int depth);

	init = (int (*)(hwloc_topology_t *))dlsym(pl->lib,
						  "hwloc_topology_init");
	load = (int (*)(hwloc_topology_t))dlsym(pl->lib,
						"hwloc_topology_load");
	count = (unsigned (*)(hwloc_topology_t, int))
		dlsym(pl->lib, "hwloc_get_nbobjs_by_depth");
	pl->obj = (hwloc_obj_t (*)(hwloc_topology_t, int, unsigned))
		dlsym(pl->lib, "hwloc_get_obj_by_depth");
	pl->bind = (int (*)(hwloc_topology_t, const void *, size_t,
			    hwloc_const_bitmap_t, hwloc_membind_policy_t, int))
		dlsym(pl->lib, "hwloc_set_area_membind");
	pl->destroy = (void (*)(hwloc_topology_t))
		dlsym(pl->lib, "hwloc_topology_destroy");
	if (init == NULL || load == NULL || count == NULL ||
	    pl->obj == NULL || pl->bind == NULL || pl->destroy == NULL ||
	    init(&pl->topo) != 0)
		return -FI_ENOSYS;
	pl->depth = HWLOC_TYPE_DEPTH_NUMANODE;
	if (load(pl->topo) != 0 ||
	    (pl->nodes = count(pl->topo, pl->depth)) < 2) {
		pl->destroy(pl->topo);
		return -FI_ENODATA;
	}
	return 0;
}

/* Without placement everything works, only slower, so errors are not returned.
 */
static void place_init(struct hal_emu *emu)
{
	struct emu_place *pl;

	/* hwloc loads plug-ins from a folder that the environment names: not
	 * in a set-id program */
	if (emu->hal.caps.boards < 2 || one_node_only() ||
	    getauxval(AT_SECURE) != 0)
		return;
	pl = calloc(1, sizeof(*pl));
	if (pl == NULL)
		return;
	pl->lib = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
	if (pl->lib == NULL)
		goto err_free;
	if (load_topology(pl) != 0)
		goto err_lib;
	emu->place = pl;
	return;

err_lib:
	dlclose(pl->lib);
err_free:
	free(pl);
	hal_log(1, "boards are not bound to memory nodes: no libhwloc.so.15");
}

static void place_fini(struct hal_emu *emu)
{
	if (emu->place == NULL)
		return;
	emu->place->destroy(emu->place->topo);
	dlclose(emu->place->lib);
	free(emu->place);
}

void emu_board_place(struct hal_emu *emu, uint32_t board,
		     const struct hal_map *map)
{
	uint32_t boards = emu->hal.caps.boards - emu->hal.far_boards;
	struct emu_place *pl = emu->place;
	hwloc_obj_t node;

	if (pl == NULL)
		return;
	board -= emu->hal.first_board;
	node = pl->obj(pl->topo, pl->depth, (unsigned)
		       ((uint64_t)board * pl->nodes / boards));
	if (node != NULL)
		pl->bind(pl->topo, map->addr, map->len, node->nodeset,
			 HWLOC_MEMBIND_BIND, HWLOC_MEMBIND_BYNODESET |
			 HWLOC_MEMBIND_MIGRATE | HWLOC_MEMBIND_NOCPUBIND);
}

#else /* !HAVE_HWLOC */

static void place_init(struct hal_emu *emu)
{
	(void)emu;
}

static void place_fini(struct hal_emu *emu)
{
	(void)emu;
}

void emu_board_place(struct hal_emu *emu, uint32_t board,
		     const struct hal_map *map)
{
	(void)emu;
	(void)board;
	(void)map;
}

#endif

int emu_board_init(struct hal_emu *emu)
{
	int ret;

	find_ranks(emu);
	ret = set_profile(emu);
	if (ret != 0)
		return ret;
	ret = hal_board_own(emu->hal.params.board, (int)emu->hal.caps.boards,
			    emu->rank, emu->nranks);
	if (ret < 0) {
		free(emu->model);
		return ret;
	}
	emu->hal.own_board = ret;
	place_init(emu);
	return 0;
}

void emu_board_fini(struct hal_emu *emu)
{
	place_fini(emu);
	free(emu->model);
}
