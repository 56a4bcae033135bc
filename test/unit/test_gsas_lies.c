/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_lies.c - a service that sends an impossible description of a
 * segment: the client maps nothing, keeps what it knows of other segments, and
 * accesses the words by packets. libunimem-rdma finds no buffer there.
 */
#include "lib/gsas_services.h"
#include "unimem/unim_dma.h"

static struct gsas_map_info g_lie;	/* added to the true description */

enum gsas_error __real_gsas_region_map_info(const struct gsas_pages *p,
					    const struct gsas_region *region,
					    struct gsas_map_info *info);
enum gsas_error __wrap_gsas_region_map_info(const struct gsas_pages *p,
					    const struct gsas_region *region,
					    struct gsas_map_info *info);

enum gsas_error __wrap_gsas_region_map_info(const struct gsas_pages *p,
					    const struct gsas_region *region,
					    struct gsas_map_info *info)
{
	enum gsas_error error = __real_gsas_region_map_info(p, region, info);

	info->base += g_lie.base;
	info->bytes += g_lie.bytes;
	return error;
}

/* Each segment has 300 pages, in 2 MiB. */
#define MIB	(UINT64_C(1) << 20)
#define PART	(GSAS_OFFSET_MASK + 1)

static const struct {
	const char *what;
	struct gsas_map_info lie;
} lies[] = {
	{ "no bytes", { .bytes = -2 * MIB } },
	{ "a page too many", { .bytes = GSAS_PAGE } },
	{ "a page too early", { .base = -(uint64_t)GSAS_PAGE } },
	{ "before the address", { .base = -2 * MIB } },
	{ "behind the address", { .base = 2 * MIB } },
	{ "another board's", { .base = PART } },
	{ "to the next board", { .bytes = PART } },
	/* from the third MiB of the partition on */
	{ "beyond its board", { .bytes = PART - 3 * MIB } },
	{ "to boards that are not", { .bytes = UINT64_C(1) << 60 } },
	{ "around the world", { .bytes = -(PART + 4 * MIB) } },
	{ "nobody's", { .base = -PART, .bytes = PART } },
	/* entries from here on: a mapped segment, which has pages */
	{ "over one that is known", { .bytes = 4 * MIB } },
	{ "under one that is known", { .base = -4 * MIB, .bytes = 4 * MIB } },
};
#define OF_MAPPED	2	/* number of these, as only mapped segments can
				 * be gone */

static void lie_about(gsas_addr addr, size_t i, struct gsas_thread *t)
{
	uint32_t known = t->segments.count;
	size_t bytes;
	void *p;
	int ret;

	g_lie = lies[i].lie;
	ret = gsas_map(addr, &p, &bytes);
	if (ret != -EPROTO)
		unit_fail("%s: %d", lies[i].what, ret);
	assert_int_equal(host_read(addr), addr);
	g_lie = (struct gsas_map_info){ .base = 0 };
	assert_int_equal(t->segments.count, known);
}

/* The false descriptions are of a segment between two known ones. */
static void test_lies(void **state)
{
	struct gsas_thread *t;
	gsas_addr a[3];

	assert_int_equal(gsas_thread_get(&t), 0);
	unit_needs(gsas_maps_board(t, g_first));
	for (unsigned flags = 0; flags <= GSAS_MAPPED; flags += GSAS_MAPPED) {
		for (int i = 0; i < 3; i++)
			a[i] = host_alloc(300, 0, flags);
		g_lie.bytes = GSAS_PAGE;	/* accessed by packets, not
						 * known */
		assert_int_equal(gsas_write64(a[1], a[1]), 0);
		g_lie.bytes = 0;
		for (int i = 0; i < 3; i += 2)
			assert_int_equal(gsas_write64(a[i], a[i]), 0);
		for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]) -
		     (flags == 0 ? OF_MAPPED : 0); i++)
			lie_about(a[1], i, t);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(host_read(a[i]), a[i]);
			assert_int_equal(gsas_free(a[i]), 0);
		}
	}
}

/* libunimem-rdma refuses the same descriptions. It has mapped nothing, so those
 * that only overlap a known segment are right to it. The other board has no
 * window in the profile exanode and on the register model; the size of a window
 * is another check. */
static void test_lies_to_rdma(void **state)
{
	unim_dma_buffer_t *buf = NULL;
	gsas_addr a[2];

	assert_int_equal(unim_dma_init((unim_node_id_t)g_first), 0);
	/* the second segment is not at the beginning of the partition */
	for (int i = 0; i < 2; i++)
		a[i] = host_alloc(300, 1, GSAS_MAPPED);
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]) - OF_MAPPED;
	     i++) {
		int ret;

		g_lie = lies[i].lie;
		ret = unim_dma_get(a[1], &buf);
		if (ret != -EPROTO)
			unit_fail("%s: %d", lies[i].what, ret);
	}
	g_lie = (struct gsas_map_info){ .base = 0 };
	assert_int_equal(unim_dma_get(a[1], &buf), 0);
	unim_dma_cleanup();
	for (int i = 0; i < 2; i++)
		assert_int_equal(gsas_free(a[i]), 0);
}

HOST_MAIN(
	cmocka_unit_test(test_lies),
	cmocka_unit_test(test_lies_to_rdma),
)
