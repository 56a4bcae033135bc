/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_topology.c - boards as objects of hwloc: reads them, writes them, and
 * orders boards by distance.
 *
 * hwloc is loaded when a topology is opened, and not linked, because most
 * processes need none, and its start takes longer than theirs. Users are the
 * policy UNIM_DMA_NEAREST and unimem_info --topology. hal_emu_board.c, which
 * binds memory, loads hwloc for itself: it needs two functions and runs in
 * each process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>
#ifdef HAVE_HWLOC
#include <hwloc.h>
#include <hwloc/distances.h>
#include <hwloc/export.h>
#endif

#include "util/unm_topology.h"

#define SUBTYPE		"UnimemBoard"
#define NUMBER		"Number"

/* A variable of the environment; NULL: it is not set, or empty. */
static const char *variable(const char *name)
{
	const char *val = getenv(name);

	return val != NULL && *val != '\0' ? val : NULL;
}

bool unm_topology_flat(void)
{
	char text[8] = "";
	ssize_t n;
	int fd;

	if (variable("HWLOC_XMLFILE") != NULL ||
	    variable("HWLOC_SYNTHETIC") != NULL)
		return false;
	fd = open("/sys/devices/system/node/online", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	return n <= 0 || strcmp(text, "0\n") == 0;
}

#ifdef HAVE_HWLOC

/* The functions of hwloc that this file uses, without hwloc_. */
#define FUNCTIONS(f)							\
	f(topology_init) f(topology_load) f(topology_destroy)		\
	f(topology_set_xml) f(topology_set_synthetic)			\
	f(topology_set_type_filter) f(topology_get_depth)		\
	f(get_nbobjs_by_depth) f(get_obj_by_depth)			\
	f(topology_insert_misc_object) f(obj_add_info)			\
	f(topology_export_xml)						\
	f(distances_get_by_type) f(distances_release)
#define POINTER(name)	__typeof__(&hwloc_##name) name;
#define NAME(name)	"hwloc_" #name,

/* From unm_topology_open() to unm_topology_close(). */
struct unm_topology {
	void *lib;			/* from dlopen() */
	struct { FUNCTIONS(POINTER) } fn;
	hwloc_topology_t topo;
	uint32_t boards;
	bool marked;			/* it has objects of boards */
	hwloc_obj_t *node;		/* memory node by board; NULL: none */
	struct hwloc_distances_s *latency;	/* between memory nodes; NULL:
						 * not known */
};

/* ---- Opening ----------------------------------------------------------- */

static int load_functions(struct unm_topology *t)
{
	static const char *const names[] = { FUNCTIONS(NAME) };
	void **fn = (void **)&t->fn;

	_Static_assert(sizeof(t->fn) == sizeof(names), "one name each");
	t->lib = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
	if (t->lib == NULL)
		return -ENOSYS;
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		fn[i] = dlsym(t->lib, names[i]);
		if (fn[i] == NULL)
			return -ENOSYS;
	}
	return 0;
}

static unsigned nodes(const struct unm_topology *t)
{
	return t->fn.get_nbobjs_by_depth(t->topo, HWLOC_TYPE_DEPTH_NUMANODE);
}

static hwloc_obj_t node_at(const struct unm_topology *t, unsigned i)
{
	return t->fn.get_obj_by_depth(t->topo, HWLOC_TYPE_DEPTH_NUMANODE, i);
}

/* The board whose object this is; UINT32_MAX: none. */
static uint32_t board_of(const struct unm_topology *t, hwloc_obj_t obj)
{
	const char *text;
	unsigned long board;
	char *end;

	if (obj->subtype == NULL || strcmp(obj->subtype, SUBTYPE) != 0)
		return UINT32_MAX;
	text = hwloc_obj_get_info_by_name(obj, NUMBER);
	if (text == NULL || *text == '\0')
		return UINT32_MAX;
	board = strtoul(text, &end, 10);
	return *end == '\0' && board < t->boards ? (uint32_t)board :
						   UINT32_MAX;
}

/* Read the objects of the boards, which are below memory nodes. */
static void read_boards(struct unm_topology *t)
{
	unsigned n = t->fn.get_nbobjs_by_depth(t->topo, HWLOC_TYPE_DEPTH_MISC);

	for (unsigned i = 0; i < n; i++) {
		hwloc_obj_t obj = t->fn.get_obj_by_depth(t->topo,
						HWLOC_TYPE_DEPTH_MISC, i);
		uint32_t board = board_of(t, obj);

		if (board == UINT32_MAX ||
		    obj->parent->type != HWLOC_OBJ_NUMANODE)
			continue;
		t->node[board] = obj->parent;
		t->marked = true;
	}
}

/* The row of a memory node in the matrix of latencies; UINT32_MAX: none. */
static uint32_t row(const struct unm_topology *t, hwloc_obj_t node)
{
	for (unsigned i = 0; i < t->latency->nbobjs; i++)
		if (t->latency->objs[i] == node)
			return i;
	return UINT32_MAX;
}

/* Latencies that hwloc reports, as of the firmware. They are no levels, so a
 * matrix in which the node of a board is missing is of no use. */
static void read_latency(struct unm_topology *t)
{
	unsigned n = 1;

	if (t->fn.distances_get_by_type(t->topo, HWLOC_OBJ_NUMANODE, &n,
					&t->latency,
					HWLOC_DISTANCES_KIND_MEANS_LATENCY,
					0) != 0 || n == 0)
		t->latency = NULL;
	for (uint32_t b = 0; b < t->boards && t->latency != NULL; b++) {
		if (t->node[b] == NULL || row(t, t->node[b]) != UINT32_MAX)
			continue;
		t->fn.distances_release(t->topo, t->latency);
		t->latency = NULL;
	}
}

/* hwloc itself would take the machine's topology for one that the environment
 * names and that it cannot read. */
static int choose(struct unm_topology *t)
{
	const char *text = variable("HWLOC_SYNTHETIC");
	const char *path = variable("HWLOC_XMLFILE");

	if (text != NULL)
		return t->fn.topology_set_synthetic(t->topo, text);
	if (path != NULL)
		return t->fn.topology_set_xml(t->topo, path);
	return 0;
}

/* hwloc ignores Misc objects unless it is asked for them. Memory-side caches
 * would come between memory nodes and what the nodes belong to. */
static int set_filters(struct unm_topology *t)
{
	if (t->fn.topology_set_type_filter(t->topo, HWLOC_OBJ_MISC,
					   HWLOC_TYPE_FILTER_KEEP_ALL) != 0)
		return -1;
#if HWLOC_API_VERSION >= 0x00020100
	/* libhwloc 2.0 has none, and says that the type is wrong. */
	t->fn.topology_set_type_filter(t->topo, HWLOC_OBJ_MEMCACHE,
				       HWLOC_TYPE_FILTER_KEEP_NONE);
#endif
	return 0;
}

static int read_topology(struct unm_topology *t, bool emulated)
{
	if (t->fn.topology_init(&t->topo) != 0) {
		t->topo = NULL;
		return -ENOMEM;
	}
	if (choose(t) != 0 || set_filters(t) != 0 ||
	    t->fn.topology_load(t->topo) != 0 || nodes(t) == 0)
		return -EINVAL;
	read_boards(t);
	for (uint32_t b = 0; !t->marked && emulated && b < t->boards; b++)
		t->node[b] = node_at(t, (unsigned)((uint64_t)b * nodes(t) /
						   t->boards));
	read_latency(t);
	return 0;
}

int unm_topology_open(uint32_t boards, bool emulated,
		      struct unm_topology **topo)
{
	struct unm_topology *t;
	int ret;

	if (getauxval(AT_SECURE) != 0)
		return -ENOSYS;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return -ENOMEM;
	t->boards = boards;
	t->node = calloc(boards, sizeof(hwloc_obj_t));
	ret = t->node != NULL ? load_functions(t) : -ENOMEM;
	if (ret == 0)
		ret = read_topology(t, emulated);
	if (ret != 0)
		unm_topology_close(t);
	else
		*topo = t;
	return ret;
}

void unm_topology_close(struct unm_topology *t)
{
	if (t->latency != NULL)
		t->fn.distances_release(t->topo, t->latency);
	if (t->topo != NULL)
		t->fn.topology_destroy(t->topo);
	if (t->lib != NULL)
		dlclose(t->lib);
	free(t->node);
	free(t);
}

/* ---- Distances --------------------------------------------------------- */

/* The distance of two boards; boards without a memory node are the farthest. */
static uint64_t distance(const struct unm_topology *t, uint32_t a, uint32_t b)
{
	hwloc_obj_t one = t->node[a], other = t->node[b], above;

	if (one == NULL || other == NULL)
		return UINT64_MAX;
	if (t->latency != NULL)
		return t->latency->values[row(t, one) * t->latency->nbobjs +
					  row(t, other)];
	if (one == other)
		return 0;
	above = hwloc_get_common_ancestor_obj(t->topo, one, other);
	return (uint64_t)(t->fn.topology_get_depth(t->topo) - above->depth);
}

/* ---- Writing ----------------------------------------------------------- */

static int add_number(const struct unm_topology *t, hwloc_obj_t obj,
		      const char *name, uint64_t val)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, val);
	return t->fn.obj_add_info(obj, name, text) == 0 ? 0 : -ENOMEM;
}

static int add_board(struct unm_topology *t, uint32_t board, uint64_t memory,
		     uint64_t free_bytes)
{
	hwloc_obj_t obj;
	char name[24];

	snprintf(name, sizeof(name), "board %" PRIu32, board);
	obj = t->fn.topology_insert_misc_object(t->topo, t->node[board], name);
	if (obj == NULL)
		return -ENOMEM;
	obj->subtype = strdup(SUBTYPE);	/* hwloc frees it */
	if (obj->subtype == NULL || add_number(t, obj, NUMBER, board) != 0 ||
	    add_number(t, obj, "MemoryBytes", memory) != 0)
		return -ENOMEM;
	return add_number(t, obj, "FreeBytes", free_bytes);
}

int unm_topology_write(struct unm_topology *t, uint64_t memory,
		       uint64_t free_bytes, const char *path)
{
	int ret = 0;

	if (t->boards > UNM_TOPOLOGY_BOARDS)
		return -E2BIG;
	if (t->marked)
		return -EEXIST;
	for (uint32_t b = 0; b < t->boards; b++)
		if (t->node[b] == NULL)
			return -ENODEV;
	for (uint32_t b = 0; b < t->boards && ret == 0; b++)
		ret = add_board(t, b, memory, free_bytes);
	if (ret == 0 && t->fn.topology_export_xml(t->topo, path, 0) != 0)
		ret = -EIO;
	return ret;
}

#else /* !HAVE_HWLOC */

int unm_topology_open(uint32_t boards, bool emulated,
		      struct unm_topology **topo)
{
	(void)boards;
	(void)emulated;
	(void)topo;
	return -ENOSYS;
}

void unm_topology_close(struct unm_topology *topo)
{
	(void)topo;
}

static uint64_t distance(const struct unm_topology *t, uint32_t a, uint32_t b)
{
	(void)t;
	(void)a;
	(void)b;
	return 0;
}

int unm_topology_write(struct unm_topology *topo, uint64_t memory,
		       uint64_t free_bytes, const char *path)
{
	(void)topo;
	(void)memory;
	(void)free_bytes;
	(void)path;
	return -ENOSYS;
}

#endif

/* ---- Order ------------------------------------------------------------- */

/* A board, as seen from another one. */
struct neighbour {
	uint64_t distance;
	uint32_t apart, board;		/* difference of the numbers; number */
};

static bool nearer(const struct neighbour *a, const struct neighbour *b)
{
	if (a->distance != b->distance)
		return a->distance < b->distance;
	if (a->apart != b->apart)
		return a->apart < b->apart;
	return a->board < b->board;
}

uint32_t unm_topology_near(const struct unm_topology *topo, uint32_t boards,
			   uint32_t board, uint32_t *order, uint32_t max)
{
	struct neighbour *best = calloc(max + 1, sizeof(*best));
	uint32_t n = 0;

	for (uint32_t b = 0; b < boards && best != NULL; b++) {
		struct neighbour new = {
			.distance = topo != NULL ? distance(topo, board, b) : 0,
			.apart = b > board ? b - board : board - b, .board = b,
		};
		uint32_t i;

		if (b == board)
			continue;
		for (i = n; i != 0 && nearer(&new, &best[i - 1]); i--)
			best[i] = best[i - 1];
		best[i] = new;
		if (n < max)
			n++;
	}
	for (uint32_t i = 0; i < n; i++)
		order[i] = best[i].board;
	free(best);
	return n;
}
