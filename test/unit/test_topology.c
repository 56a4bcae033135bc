/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_topology.c - distances of boards by hwloc, on synthetic topologies, and
 * the file that unimem_info --topology writes.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#ifdef HAVE_HWLOC
#include <hwloc.h>
#include <hwloc/distances.h>
#include <hwloc/export.h>
#endif

#include "lib/unit.h"
#include "util/unm_topology.h"

#define MANY	16u

/* Check the first n neighbours of a board, and that there are no more. */
static void neighbours(const struct unm_topology *topo, uint32_t boards,
		       uint32_t board, unsigned n, ...)
{
	uint32_t order[MANY], count;
	va_list ap;

	count = unm_topology_near(topo, boards, board, order, MANY);
	assert_int_equal(count, n);
	va_start(ap, n);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(order[i], va_arg(ap, unsigned));
	va_end(ap);
}

static void by_number(void **state)
{
	uint32_t order[3];

	neighbours(NULL, 8, 3, 7, 2, 4, 1, 5, 0, 6, 7);
	neighbours(NULL, 3, 0, 2, 1, 2);
	neighbours(NULL, 1, 0, 0);
	assert_int_equal(unm_topology_near(NULL, 65535, 65534, order, 3), 3);
	assert_true(order[0] == 65533 && order[1] == 65532 &&
		    order[2] == 65531);
}

#ifdef HAVE_HWLOC

/* Open a topology of hwloc's description, or of a file if it is NULL. */
static struct unm_topology *synthetic(const char *text, uint32_t boards)
{
	struct unm_topology *topo = NULL;

	if (text != NULL)
		setenv("HWLOC_SYNTHETIC", text, 1);
	else
		unsetenv("HWLOC_SYNTHETIC");
	assert_false(unm_topology_flat());
	assert_int_equal(unm_topology_open(boards, text != NULL, &topo), 0);
	return topo;
}

/* Boards in blocks over four memory nodes, two of which have a common group. */
static void by_levels(void **state)
{
	struct unm_topology *topo = synthetic("group:2 numa:2 pu:1", 4);

	neighbours(topo, 4, 2, 3, 3, 1, 0);
	neighbours(topo, 4, 1, 3, 0, 2, 3);
	unm_topology_close(topo);
	topo = synthetic("group:2 numa:2 pu:1", 8);
	neighbours(topo, 8, 2, 7, 3, 1, 0, 4, 5, 6, 7);
	unm_topology_close(topo);
	topo = synthetic("numa:1 pu:2", 4);
	neighbours(topo, 4, 1, 3, 0, 2, 3);
	unm_topology_close(topo);
}

/* A file in the folder of the test; the caller removes it. */
static const char *file(void)
{
	static char name[64];

	snprintf(name, sizeof(name), "test_topology.%d.xml", (int)getpid());
	return name;
}

/* Boards are where their objects are, and not where their numbers say. */
static void by_objects(void **state)
{
	struct unm_topology *topo = synthetic("group:2 numa:2 pu:1", 8);

	assert_int_equal(unm_topology_write(topo, 1 << 20, 4096, file()), 0);
	unm_topology_close(topo);
	setenv("HWLOC_XMLFILE", file(), 1);
	topo = synthetic(NULL, 8);
	neighbours(topo, 8, 2, 7, 3, 1, 0, 4, 5, 6, 7);
	assert_int_equal(unm_topology_write(topo, 1, 1, "not-written.xml"),
			 -EEXIST);
	assert_int_not_equal(access("not-written.xml", F_OK), 0);
	unm_topology_close(topo);
	/* ten boards, of which the file has eight: 8 and 9 are the farthest */
	topo = synthetic(NULL, 10);
	neighbours(topo, 10, 4, 9, 5, 6, 7, 3, 2, 1, 0, 8, 9);
	unm_topology_close(topo);
	unsetenv("HWLOC_XMLFILE");
	unlink(file());
}

/* Later versions of hwloc than 2.0 have other calls for this one too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/* Write a file of three memory nodes with this matrix of latencies, of n of
 * them: all three, or the first and the last. */
static void write_matrix(unsigned n, hwloc_uint64_t *values)
{
	void *lib = dlopen("libhwloc.so.15", RTLD_NOW | RTLD_LOCAL);
	hwloc_topology_t topo;
	hwloc_obj_t node[3];
#define HWLOC(name)							\
	__typeof__(&hwloc_##name) name = dlsym(lib, "hwloc_" #name)

	assert_non_null(lib);
	HWLOC(topology_init);
	HWLOC(topology_set_synthetic);
	HWLOC(topology_load);
	HWLOC(get_obj_by_depth);
	HWLOC(distances_add);
	HWLOC(topology_export_xml);
	HWLOC(topology_destroy);
	assert_int_equal(topology_init(&topo), 0);
	assert_int_equal(topology_set_synthetic(topo, "numa:3 pu:1"), 0);
	assert_int_equal(topology_load(topo), 0);
	for (unsigned i = 0; i < n; i++)
		node[i] = get_obj_by_depth(topo, HWLOC_TYPE_DEPTH_NUMANODE,
					   n == 2 ? 2 * i : i);
	assert_int_equal(distances_add(topo, n, node, values,
				       HWLOC_DISTANCES_KIND_FROM_USER |
				       HWLOC_DISTANCES_KIND_MEANS_LATENCY, 0),
			 0);
	assert_int_equal(topology_export_xml(topo, file(), 0), 0);
	topology_destroy(topo);
	dlclose(lib);
}

/* The latencies that the machine reports count more than the levels. */
static void by_latency(void **state)
{
	hwloc_uint64_t values[9] = { 10, 40, 20, 40, 10, 30, 20, 30, 10 };
	struct unm_topology *topo = NULL;

	write_matrix(3, values);
	setenv("HWLOC_XMLFILE", file(), 1);
	assert_int_equal(unm_topology_open(3, true, &topo), 0);
	neighbours(topo, 3, 0, 2, 2, 1);
	neighbours(topo, 3, 1, 2, 2, 0);
	neighbours(topo, 3, 2, 2, 0, 1);
	unm_topology_close(topo);
	unsetenv("HWLOC_XMLFILE");
	unlink(file());
}

/* Latencies are not compared with levels: without those of all boards, levels
 * alone count. */
static void by_part_of_the_latencies(void **state)
{
	hwloc_uint64_t values[4] = { 0, 0, 0, 0 };
	struct unm_topology *topo = NULL;

	write_matrix(2, values);
	setenv("HWLOC_XMLFILE", file(), 1);
	assert_int_equal(unm_topology_open(3, true, &topo), 0);
	neighbours(topo, 3, 0, 2, 1, 2);
	neighbours(topo, 3, 2, 2, 1, 0);
	unm_topology_close(topo);
	unsetenv("HWLOC_XMLFILE");
	unlink(file());
}

/* A topology that is named and cannot be read is not the machine's. */
static void wrong_names_are_errors(void **state)
{
	struct unm_topology *topo = NULL;
	FILE *bad;

	setenv("HWLOC_SYNTHETIC", "numa:two pu", 1);
	assert_int_equal(unm_topology_open(2, true, &topo), -EINVAL);
	unsetenv("HWLOC_SYNTHETIC");
	setenv("HWLOC_XMLFILE", "no-such-file.xml", 1);
	assert_int_equal(unm_topology_open(2, true, &topo), -EINVAL);
	bad = fopen(file(), "w");
	assert_non_null(bad);
	fputs("no topology\n", bad);
	fclose(bad);
	setenv("HWLOC_XMLFILE", file(), 1);
	assert_int_equal(unm_topology_open(2, true, &topo), -EINVAL);
	unlink(file());
	setenv("HWLOC_XMLFILE", "", 1);
	assert_int_equal(unm_topology_open(2, true, &topo), 0);
	unm_topology_close(topo);
	unsetenv("HWLOC_XMLFILE");
}

static void refuses(void **state)
{
	struct unm_topology *topo = synthetic("numa:2 pu:1", 257);

	assert_int_equal(unm_topology_write(topo, 1, 1, file()), -E2BIG);
	unm_topology_close(topo);
	assert_int_equal(unm_topology_open(2, false, &topo), 0);
	assert_int_equal(unm_topology_write(topo, 1, 1, file()), -ENODEV);
	neighbours(topo, 2, 1, 1, 0);
	unm_topology_close(topo);
	topo = synthetic("numa:2 pu:1", 2);
	assert_int_equal(unm_topology_write(topo, 1, 1, "no-such-folder/x"),
			 -EIO);
	unm_topology_close(topo);
}

UNIT_MAIN(
	cmocka_unit_test(by_number),
	cmocka_unit_test(by_levels),
	cmocka_unit_test(by_objects),
	cmocka_unit_test(by_latency),
	cmocka_unit_test(by_part_of_the_latencies),
	cmocka_unit_test(wrong_names_are_errors),
	cmocka_unit_test(refuses),
)

#else

UNIT_MAIN(
	cmocka_unit_test(by_number),
)

#endif
