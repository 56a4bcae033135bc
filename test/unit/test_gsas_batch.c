/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_batch.c - gather, scatter, strided copies and batched updates have
 * the same effect as a call for each element, on pages of both kinds, and where
 * only some elements are mapped or valid
 */
#include "lib/gsas_services.h"
#include "op/gsas_op.h"

#define PAGES		600		/* more than 2 MiB: several granules */
#define WORDS		(PAGES * GSAS_PAGE / 8)
#define COUNT		1000		/* elements of a call */

static uint64_t g_model[2][WORDS];	/* what the two boards have */
static gsas_addr g_part[2];

static uint64_t g_rng = 1;

/* ---- Calls for single elements, counted ---------------------------------- */

static _Atomic size_t g_single;		/* elements not in a block */

int __real_gsas_get_start(void *dst, gsas_addr src, size_t len,
			  struct gsas_req *req);
int __wrap_gsas_get_start(void *dst, gsas_addr src, size_t len,
			  struct gsas_req *req);
int __real_gsas_put_start(gsas_addr dst, const void *src, size_t len,
			  struct gsas_req *req);
int __wrap_gsas_put_start(gsas_addr dst, const void *src, size_t len,
			  struct gsas_req *req);
int __real_gsas_update64_post(gsas_addr addr, enum gsas_op op,
			      uint64_t operand);
int __wrap_gsas_update64_post(gsas_addr addr, enum gsas_op op,
			      uint64_t operand);

int __wrap_gsas_get_start(void *dst, gsas_addr src, size_t len,
			  struct gsas_req *req)
{
	g_single++;
	return __real_gsas_get_start(dst, src, len, req);
}

int __wrap_gsas_put_start(gsas_addr dst, const void *src, size_t len,
			  struct gsas_req *req)
{
	g_single++;
	return __real_gsas_put_start(dst, src, len, req);
}

int __wrap_gsas_update64_post(gsas_addr addr, enum gsas_op op,
			      uint64_t operand)
{
	g_single++;
	return __real_gsas_update64_post(addr, op, operand);
}

/* ---- Boards -------------------------------------------------------------- */

static void fill(unsigned flags0, unsigned flags1)
{
	g_part[0] = host_alloc(PAGES, 0, flags0);
	g_part[1] = host_alloc(PAGES, 1, flags1);
	for (int b = 0; b < 2; b++) {
		for (size_t i = 0; i < WORDS; i++)
			g_model[b][i] = unit_random(&g_rng);
		assert_int_equal(gsas_put(g_part[b], g_model[b],
					  sizeof(g_model[b])), 0);
	}
}

/* Compare both boards with the model, and free them. */
static void check_and_free(void)
{
	static uint64_t got[WORDS];

	for (int b = 0; b < 2; b++) {
		assert_int_equal(gsas_get(got, g_part[b], sizeof(got)), 0);
		assert_memory_equal(got, g_model[b], sizeof(got));
		assert_int_equal(gsas_free(g_part[b]), 0);
	}
}

/* ---- Updates ------------------------------------------------------------- */

static void update_model(uint64_t *word, enum gsas_op op, uint64_t operand)
{
	gsas_op_apply(op, GSAS_TYPE_UINT64, 1, word, &operand, NULL, NULL);
}

static void update(enum gsas_op op, size_t count)
{
	static gsas_addr addr[COUNT];
	static uint64_t operand[COUNT];

	for (size_t i = 0; i < count; i++) {
		uint32_t b = unit_below(&g_rng, 2);
		/* few words, so that several updates are of the same one */
		size_t w = i % 3 == 0 ? unit_below(&g_rng, 7) :
			unit_below(&g_rng, WORDS);

		operand[i] = unit_random(&g_rng);
		addr[i] = g_part[b] + w * 8 + i % 8;	/* bits ignored */
		update_model(&g_model[b][w], op, operand[i]);
	}
	assert_int_equal(gsas_update64_batch(addr, op, operand, count), 0);
}

static void updates(unsigned flags0, unsigned flags1, bool packets)
{
	static const enum gsas_op ops[] = {
		GSAS_OP_SUM, GSAS_OP_BXOR, GSAS_OP_BOR, GSAS_OP_BAND,
		GSAS_OP_MIN, GSAS_OP_MAX, GSAS_OP_PROD, GSAS_OP_WRITE,
		GSAS_OP_LOR,
	};
	static const size_t counts[] = { 0, 1, 31, 32, 33, COUNT };

	fill(flags0, flags1);
	host_packets(packets);
	for (size_t o = 0; o < sizeof(ops) / sizeof(ops[0]); o++)
		for (size_t n = 0; n < 6; n++)
			update(ops[o], counts[n]);
	assert_int_equal(gsas_fence(-1), 0);
	host_packets(false);
	check_and_free();
}

static void test_updates(void **state)
{
	updates(GSAS_MAPPED, GSAS_MAPPED, false);
	updates(0, 0, false);
	updates(GSAS_MAPPED, 0, false);	/* blocks of both kinds */
	updates(GSAS_MAPPED, GSAS_MAPPED, true);
}

static void test_update_errors(void **state)
{
	gsas_addr at = host_alloc(1, 0, GSAS_MAPPED);
	gsas_addr gone = host_alloc(1, 0, GSAS_MAPPED);
	gsas_addr addr[40];
	uint64_t operand[40];

	for (int i = 0; i < 40; i++) {
		addr[i] = i == 20 ? gone : at;
		operand[i] = 1;
	}
	assert_int_equal(gsas_update64_batch(addr, GSAS_OP_CSWAP, operand, 40),
			 -ENOSYS);
	assert_int_equal(gsas_update64_batch(addr, (enum gsas_op)-1, operand,
					     40), -ENOSYS);
	assert_int_equal(gsas_write64(gone, 5), 0);
	assert_int_equal(gsas_free(gone), 0);
	/* posted: the fence has the error, the other updates are executed */
	assert_int_equal(gsas_update64_batch(addr, GSAS_OP_SUM, operand, 40),
			 0);
	assert_int_equal(gsas_fence(-1), -ESTALE);
	assert_int_equal(host_read(at), 39);
	assert_int_equal(gsas_free(at), 0);
}

static void *add_run(void *arg)
{
	gsas_addr addr[COUNT];
	uint64_t operand[COUNT];

	for (size_t i = 0; i < COUNT; i++) {
		addr[i] = *(gsas_addr *)arg + i % 4 * 8;
		operand[i] = 1;
	}
	for (int n = 0; n < 100; n++)
		HOLDS(gsas_update64_batch(addr, GSAS_OP_SUM, operand, COUNT) ==
		      0);
	return NULL;
}

static void test_updates_are_atomic(void **state)
{
	gsas_addr at = host_alloc(1, 0, GSAS_MAPPED);
	pthread_t thread = unit_thread(add_run, &at);

	add_run(&at);
	pthread_join(thread, NULL);
	for (int i = 0; i < 4; i++)
		assert_int_equal(host_read(at + i * 8), 2 * 100 * COUNT / 4);
	assert_int_equal(gsas_free(at), 0);
}

/* ---- Copies -------------------------------------------------------------- */

/* Scatter random elements of len bytes to places that do not overlap, and
 * gather them. */
static void copies(size_t len)
{
	static uint8_t local[COUNT * 64], back[COUNT * 64];
	static gsas_addr addr[COUNT];

	for (size_t i = 0; i < COUNT; i++) {
		uint32_t b = unit_below(&g_rng, 2);
		size_t off = (i * 67 + unit_below(&g_rng, 3)) * 32;

		addr[i] = g_part[b] + off;
		for (size_t k = 0; k < len; k++)
			local[i * len + k] = (uint8_t)unit_random(&g_rng);
		memcpy((uint8_t *)g_model[b] + off, &local[i * len], len);
	}
	assert_int_equal(gsas_scatter(addr, local, len, COUNT), 0);
	memset(back, 0, sizeof(back));
	assert_int_equal(gsas_gather(back, addr, len, COUNT), 0);
	assert_memory_equal(back, local, COUNT * len);
}

/* A column of a matrix, and a block of whole rows that cross pages */
static void strided(size_t row, size_t first, size_t len, size_t count)
{
	static uint8_t local[2][64 * 6000];
	uint8_t *model = (uint8_t *)g_model[1];
	size_t local_row = len + 5;

	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < len; k++)
			local[0][i * local_row + k] =
				(uint8_t)unit_random(&g_rng);
		memcpy(model + first + i * row, &local[0][i * local_row], len);
	}
	assert_int_equal(gsas_put_strided(g_part[1] + first, row, local[0],
					  local_row, len, count), 0);
	memset(local[1], 0, sizeof(local[1]));
	assert_int_equal(gsas_get_strided(local[1], local_row,
					  g_part[1] + first, row, len, count),
			 0);
	for (size_t i = 0; i < count; i++)
		assert_memory_equal(&local[1][i * local_row],
				    model + first + i * row, len);
	/* no byte between the elements was written */
	for (size_t i = 0; i + 1 < count; i++)
		assert_int_equal(local[1][i * local_row + len], 0);
}

static void all_copies(unsigned flags0, unsigned flags1, bool packets)
{
	static const size_t lens[] = { 1, 2, 4, 8, 12, 16, 24, 31, 32 };

	fill(flags0, flags1);
	host_packets(packets);
	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++)
		copies(lens[i]);
	strided(1000, 16, 8, 64);
	strided(1001, 3, 13, 64);
	strided(6000, 4000, 5500, 60);
	strided(0, 64, 8, 1);
	host_packets(false);
	check_and_free();
}

static void test_copies(void **state)
{
	all_copies(GSAS_MAPPED, GSAS_MAPPED, false);
	all_copies(0, 0, false);
	all_copies(0, GSAS_MAPPED, false);
	all_copies(GSAS_MAPPED, GSAS_MAPPED, true);
}

static void test_copy_errors(void **state)
{
	for (int mapped = 0; mapped < 2; mapped++) {
		unsigned flags = mapped ? GSAS_MAPPED : 0;
		gsas_addr at = host_alloc(1, 0, flags), addr[100];
		gsas_addr gone = host_alloc(1, 0, flags);
		uint64_t word[100] = { 0 };

		assert_int_equal(gsas_free(gone), 0);
		for (int i = 0; i < 100; i++)
			addr[i] = i == 70 ? gone : at + i % 512 * 8;
		assert_int_equal(gsas_gather(word, addr, 8, 100), -ESTALE);
		assert_int_equal(gsas_scatter(addr, word, 8, 100), -ESTALE);
		/* the last element is half behind the allocation */
		addr[70] = at + GSAS_PAGE - 4;
		assert_int_equal(gsas_gather(word, addr, 8, 100), -EINVAL);
		assert_int_equal(gsas_get_strided(word, 8, at + 508, 512, 8,
						  8), -EINVAL);
		/* a length that overflows with the offset in the page */
		assert_int_equal(gsas_get_strided(word, 8, at + 16, 8,
						  (size_t)-8, 1), -EINVAL);
		assert_int_equal(gsas_put_strided(at + 16, 8, word, 8,
						  (size_t)-8, 1), -EINVAL);
		assert_int_equal(gsas_gather(word, addr, 0, 100), 0);
		assert_int_equal(gsas_gather(word, addr, 8, 0), 0);
		assert_int_equal(gsas_free(at), 0);
	}
}

/* Elements of mapped segments are accessed directly, also if the table of the
 * short path has lost them: it has entries for 1 GiB only. */
static void test_blocks_are_direct(void **state)
{
	gsas_addr at = host_alloc(PAGES, 0, GSAS_MAPPED), addr[COUNT];
	gsas_addr other = host_alloc(1, 0, 0);
	uint64_t word[COUNT] = { 0 };
	struct gsas_thread *t;

	for (size_t i = 0; i < COUNT; i++)
		addr[i] = at + unit_below(&g_rng, WORDS) * 8;
	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_write64(at, 0), 0);	/* maps the segment */
	if (t->segments.count == 0 || gsas_direct(at) == NULL)
		skip();			/* nothing can be mapped here */
	for (int lost = 0; lost < 2; lost++) {
		g_single = 0;
		if (lost)
			gsas_hot_clear(t->hot);
		assert_int_equal(gsas_update64_batch(addr, GSAS_OP_SUM, word,
						     COUNT), 0);
		if (lost)
			gsas_hot_clear(t->hot);
		assert_int_equal(gsas_gather(word, addr, 8, COUNT), 0);
		if (lost)
			gsas_hot_clear(t->hot);
		assert_int_equal(gsas_scatter(addr, word, 8, COUNT), 0);
		assert_int_equal(g_single, 0);
	}
	/* one element that is not mapped: its block is not direct */
	addr[40] = other;
	assert_int_equal(gsas_gather(word, addr, 8, COUNT), 0);
	assert_int_equal(g_single, 32);
	host_packets(true);
	assert_int_equal(gsas_gather(word, addr, 8, COUNT), 0);
	assert_int_equal(g_single, 32 + COUNT);
	host_packets(false);
	assert_int_equal(gsas_free(at), 0);
	assert_int_equal(gsas_free(other), 0);
}

HOST_MAIN(cmocka_unit_test(test_updates),
	  cmocka_unit_test(test_update_errors),
	  cmocka_unit_test(test_updates_are_atomic),
	  cmocka_unit_test(test_copies),
	  cmocka_unit_test(test_copy_errors),
	  cmocka_unit_test(test_blocks_are_direct))
