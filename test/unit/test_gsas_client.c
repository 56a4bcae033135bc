/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_client.c - gsas.h against services in threads of this process:
 * every call, by packets and on mapped pages, from one thread and from several
 * at once, with right and wrong arguments.
 */
#include "client/gsas_conn.h"
#include "lib/gsas_services.h"
#include "op/gsas_op.h"
#include "util/unm_clock.h"

#define ROUNDS	(UNIT_SLOW ? 2000 : 20000)
#define THREADS	4

/* Is memory of this service's board mapped? */
static bool windows(int host)
{
	struct gsas_thread *t;

	assert_int_equal(gsas_thread_get(&t), 0);
	return gsas_maps_board(t, g_first + host);
}

/* ---- Boards and memory --------------------------------------------------- */

static void test_boards(void **state)
{
	gsas_addr a = host_alloc(1, 1, 0);

	assert_true(gsas_boards() >= HOSTS);
	assert_int_equal(gsas_board(), g_first);
	assert_int_equal(gsas_board_of_address(a), g_first + 1);
	assert_int_equal(gsas_board_of_address(0), -EFAULT);
	assert_int_equal(gsas_board_of_address(UINT64_MAX), -EFAULT);
	assert_int_equal(gsas_free(a), 0);
}

static void test_memory(void **state)
{
	static uint8_t page[GSAS_PAGE], zero[GSAS_PAGE];
	gsas_addr a, b;

	for (unsigned flags = 0; flags <= GSAS_MAPPED; flags += GSAS_MAPPED) {
		a = host_alloc(3, 0, flags);
		assert_true(a % GSAS_PAGE == 0);
		for (int i = 0; i < 3; i++) {
			memset(page, 1, sizeof(page));
			assert_int_equal(gsas_get(page, a + i * GSAS_PAGE,
						  GSAS_PAGE), 0);
			assert_memory_equal(page, zero, GSAS_PAGE);
		}
		assert_int_equal(gsas_write64(a, 1), 0);
		b = host_alloc(1, 0, flags);
		assert_true(b != a);
		assert_int_equal(gsas_free(a + 4095), 0);	/* low bits are
								 * ignored */
		assert_int_equal(gsas_write64(a, 1), -ESTALE);
		assert_int_equal(gsas_free(a), -ESTALE);
		assert_int_equal(gsas_write64(b, 1), 0);
		assert_int_equal(gsas_free(b), 0);
	}
	/* more pages than the published call can request */
	a = host_alloc(70000, 1, 0);
	assert_int_equal(gsas_write64(a + 69999 * GSAS_PAGE, 7), 0);
	assert_int_equal(gsas_free(a), 0);
}

static void test_placement(void **state)
{
	gsas_addr a;
	int at;

	assert_int_equal(gsas_alloc(1, GSAS_HERE, 0, NULL, &a), 0);
	assert_int_equal(gsas_board_of_address(a), g_first);
	assert_int_equal(gsas_free(a), 0);
	if (gsas_boards() != HOSTS)
		return;		/* some boards have no service */
	for (int i = 0; i < 2 * HOSTS; i++) {
		int was = at = gsas_board_of_address(a);

		assert_int_equal(gsas_alloc(1, GSAS_SPREAD, 0, NULL, &a), 0);
		at = gsas_board_of_address(a);
		assert_true(i == 0 || at == (was + 1) % HOSTS);
		assert_int_equal(gsas_free(a), 0);
	}
}

/* No byte of a freed region is left to access, also if its segment is
 * mapped. */
static void test_left_of_what_is_freed(void **state)
{
	gsas_addr a = host_alloc(1, 0, GSAS_MAPPED);
	gsas_addr b = host_alloc(1, 0, GSAS_MAPPED);
	const struct gsas_segments *s;
	struct gsas_thread *t;

	unit_needs(windows(0));
	assert_true(a >> GSAS_SEGMENT_SHIFT == b >> GSAS_SEGMENT_SHIFT);
	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_write64(a, 1), 0);
	s = &t->segments;
	assert_int_equal(gsas_segments_left(s, a + 96, UINT64_MAX), 4000);
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_segments_left(s, a + 96, UINT64_MAX), 0);
	assert_int_equal(gsas_segments_left(s, b, UINT64_MAX), GSAS_PAGE);
	assert_int_equal(gsas_free(b), 0);
}

static void test_map(void **state)
{
	gsas_addr a = host_alloc(300, 0, GSAS_MAPPED);
	gsas_addr b = host_alloc(2, 0, GSAS_MAPPED);
	gsas_addr c = host_alloc(2, 0, 0);
	size_t bytes;
	void *p;

	assert_int_equal(gsas_map(0, &p, &bytes), -EFAULT);
	if (!windows(0)) {
		assert_int_equal(gsas_map(a, &p, &bytes), -EOPNOTSUPP);
		goto out;
	}
	assert_int_equal(gsas_map(a + 5000, &p, &bytes), 0);
	assert_int_equal(bytes, 300 * GSAS_PAGE - 5000);
	assert_int_equal(gsas_write64(a + 5000, 77), 0);
	assert_int_equal(*(uint64_t *)p, 77);
	atomic_store((_Atomic uint64_t *)p, 78);
	assert_int_equal(host_read(a + 5000), 78);
	assert_int_equal(gsas_map(b, &p, &bytes), 0);
	assert_int_equal(bytes, 2 * GSAS_PAGE);
	assert_int_equal(gsas_map(c, &p, &bytes), -EPERM);
	assert_int_equal(gsas_map(c, &p, &bytes), -EPERM);	/* known by
								 * now */
out:
	assert_int_equal(gsas_free(a), 0);
	if (windows(0))
		assert_int_equal(gsas_map(a, &p, &bytes), -ESTALE);
	assert_int_equal(gsas_free(b), 0);
	assert_int_equal(gsas_free(c), 0);
}

/* ---- Single operations --------------------------------------------------- */

static void every_operation(gsas_addr a, bool mapped)
{
	const uint64_t two[2] = { 0x1111111111111111, 0x2222222222222222 };
	static uint8_t page[GSAS_PAGE];
	uint64_t v64, was;
	uint32_t v32;
	uint8_t v8;
	int64_t i64;

	assert_int_equal(gsas_write64(a + 8, 0x8877665544332211), 0);
	assert_int_equal(gsas_read8(a + 9, &v8), 0);
	assert_int_equal(v8, 0x22);
	assert_int_equal(gsas_read32(a + 12, &v32), 0);
	assert_int_equal(v32, 0x88776655);
	/* low bits are ignored, except for bytes */
	assert_int_equal(gsas_read32(a + 15, &v32), 0);
	assert_int_equal(v32, 0x88776655);
	assert_true(host_read(a + 15) == 0x8877665544332211);
	assert_int_equal(gsas_write8(a + 15, 0xff), 0);
	assert_int_equal(gsas_write32(a + 9, 0xdddddddd), 0);
	assert_true(host_read(a + 8) == 0xff776655dddddddd);

	assert_int_equal(gsas_write64(a, 10), 0);
	assert_int_equal(gsas_fad64(a + 3, -3, &i64), 0);
	assert_int_equal(i64, 10);
	assert_int_equal(gsas_fad64(a, 5, NULL), 0);
	assert_int_equal(gsas_cas64(a, 12, 20, &was), 1);
	assert_int_equal(was, 12);
	assert_int_equal(gsas_cas64(a, 12, 30, &was), 0);
	assert_int_equal(was, 20);
	assert_int_equal(gsas_cas64(a, 20, 40, NULL), 1);
	assert_int_equal(gsas_swap64(a + 7, 50, &was), 0);
	assert_int_equal(was, 40);
	assert_int_equal(gsas_swap64(a, 60, NULL), 0);
	assert_int_equal(host_read(a), 60);

	assert_int_equal(gsas_write128(a + 32, two),
			 !mapped || gsas_op_direct(GSAS_TYPE_UINT128, 32) ?
			 0 : -EPERM);
	assert_int_equal(gsas_write128(a + 72 + 5, two), mapped ? -EPERM : 0);
	assert_true(host_read(a + 80) == (mapped ? 0 : two[1]));
	assert_int_equal(gsas_read4k(a + 100, page), mapped ? -EPERM : 0);
	if (mapped)
		return;
	memcpy(&v64, page, 8);
	assert_int_equal(v64, 60);
	memcpy(&v64, page + 72, 8);
	assert_true(v64 == two[0]);
}

static void test_every_operation(void **state)
{
	for (int i = 0; i < HOSTS; i++) {
		gsas_addr a = host_alloc(1, i, 0);
		gsas_addr m = host_alloc(1, i, GSAS_MAPPED);
		gsas_addr n = host_alloc(1, i, GSAS_MAPPED);

		every_operation(a, false);
		every_operation(m, true);
		host_packets(true);
		every_operation(n, true);
		host_packets(false);
		assert_int_equal(gsas_free(a), 0);
		assert_int_equal(gsas_free(m), 0);
		assert_int_equal(gsas_free(n), 0);
	}
}

/* Several threads add to the same words by every kind of operation, by packets
 * and directly in turn: no increment is lost. */
struct adder {
	pthread_t thread;
	gsas_addr a;
	int number;
};

static void add_one(gsas_addr a, int how)
{
	uint64_t seen, one = 1;
	int ret;

	switch (how) {
	case 0:
		HOLDS(gsas_fad64(a, 1, NULL) == 0);
		break;
	case 1:
		HOLDS(gsas_read64(a, &seen) == 0);
		while ((ret = gsas_cas64(a, seen, seen + 1, &seen)) == 0)
			;
		HOLDS(ret == 1);
		break;
	case 2:
		HOLDS(gsas_update64_post(a, GSAS_OP_SUM, 1) == 0);
		break;
	default:
		HOLDS(gsas_atomic(a, GSAS_OP_SUM, GSAS_TYPE_UINT64,
				  GSAS_FORM_UPDATE, 1, &one, NULL, NULL) == 0);
	}
}

static void *add(void *arg)
{
	struct adder *w = arg;

	for (int i = 0; i < ROUNDS / 4; i++) {
		host_packets((i >> 2) & 1);
		add_one(w->a + 8 * (i % 2), i % 4);
	}
	HOLDS(gsas_fence(-1) == 0);
	return NULL;
}

static void sums(unsigned flags)
{
	struct adder w[THREADS];
	gsas_addr a = host_alloc(1, 1, flags);
	uint64_t sum[2];

	for (int i = 0; i < THREADS; i++) {
		w[i] = (struct adder){ .a = a, .number = i };
		w[i].thread = unit_thread(add, &w[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(w[i].thread, NULL);
	assert_int_equal(gsas_get(sum, a, sizeof(sum)), 0);
	assert_int_equal(sum[0] + sum[1], THREADS * (ROUNDS / 4));
	assert_int_equal(sum[0], THREADS * (ROUNDS / 8));
	assert_int_equal(gsas_free(a), 0);
}

static void test_sums(void **state)
{
	sums(0);
	sums(GSAS_MAPPED);
}

/* ---- Many requests at a time --------------------------------------------- */

#define MANY	1000		/* more than there are tags */

static void many(unsigned flags)
{
	static struct gsas_req req[MANY];
	static int64_t was[MANY];
	static bool seen[MANY];
	gsas_addr a = host_alloc(1, 1, flags), b = host_alloc(1, 0, flags);
	uint64_t value, other;
	int done;

	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < MANY; i++)
		assert_int_equal(gsas_fad64_start(a, 1, &was[i], &req[i]), 0);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(gsas_wait(&req[(i * 7) % MANY]), 0);
	for (int i = 0; i < MANY; i++) {
		assert_true(was[i] >= 0 && was[i] < MANY && !seen[was[i]]);
		assert_int_equal(was[i], i);	/* executed in order */
		seen[was[i]] = true;
	}
	assert_int_equal(gsas_wait(&req[0]), 0);	/* again */

	/* a request sees the effects of all earlier requests */
	assert_int_equal(gsas_write64_start(a, 5, &req[0]), 0);
	assert_int_equal(gsas_swap64_start(a, 6, &value, &req[1]), 0);
	assert_int_equal(gsas_cas64_start(a, 6, 7, &other, &done, &req[2]), 0);
	assert_int_equal(gsas_read64_start(b, &value, &req[3]), 0);
	assert_int_equal(gsas_wait(&req[3]), 0);
	assert_int_equal(value, 0);
	assert_int_equal(gsas_read64_start(a, &value, &req[3]), 0);
	while (gsas_test(&req[3]) == -EINPROGRESS)
		;
	assert_int_equal(gsas_test(&req[3]), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(gsas_test(&req[i]), 0);
	assert_true(value == 7 && done == 1 && other == 6);
	assert_int_equal(gsas_cas64_start(a, 6, 9, &other, &done, &req[2]), 0);
	assert_int_equal(gsas_wait(&req[2]), 0);
	assert_true(done == 0 && other == 7);
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_free(b), 0);
}

static void test_many(void **state)
{
	many(0);
	many(GSAS_MAPPED);
}

/* A long put, then a request, which is executed after the last byte. */
static void test_order_behind_bulk(void **state)
{
	const size_t bytes = 256 * GSAS_PAGE;
	gsas_addr a = host_alloc(256, 1, 0);
	uint8_t *mem = malloc(bytes);
	struct gsas_req put, read;
	uint64_t value;

	for (int i = 0; i < 20; i++) {
		memset(mem, i + 1, bytes);
		value = 0;
		assert_int_equal(gsas_put_start(a, mem, bytes, &put), 0);
		assert_int_equal(gsas_read64_start(a + bytes - 8, &value,
						   &read), 0);
		assert_int_equal(gsas_wait(&read), 0);
		assert_true((value & 0xff) == (uint64_t)i + 1);
		assert_int_equal(gsas_wait(&put), 0);
	}
	assert_int_equal(gsas_free(a), 0);
	free(mem);
}

static void test_posted(void **state)
{
	gsas_addr a = host_alloc(1, 0, 0), b = host_alloc(1, 1, 0);

	for (int i = 0; i < MANY; i++) {
		assert_int_equal(gsas_write64_post(a, (uint64_t)i), 0);
		assert_int_equal(gsas_update64_post(b, GSAS_OP_SUM, 2), 0);
	}
	assert_int_equal(gsas_fence(-1), 0);
	assert_int_equal(host_read(a), MANY - 1);
	assert_int_equal(host_read(b + 7), 2 * MANY);
	assert_int_equal(gsas_update64_post(b, GSAS_OP_READ, 0), -ENOSYS);
	assert_int_equal(gsas_update64_post(b, 99, 0), -ENOSYS);
	assert_int_equal(gsas_update64_post(b, -1, 0), -ENOSYS);
	/* a failed posted write is reported once, by a fence of its board */
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_write64_post(a, 1), 0);
	assert_int_equal(gsas_write64_post(b, 5), 0);
	assert_int_equal(gsas_fence(g_first + 1), 0);
	assert_int_equal(gsas_fence(g_first), -ESTALE);
	assert_int_equal(gsas_fence(g_first), 0);
	assert_int_equal(gsas_fence(1 << 20), -ENXIO);
	assert_int_equal(gsas_fence(-2), -EINVAL);
	assert_int_equal(gsas_free(b), 0);
}

/* ---- Bulk ---------------------------------------------------------------- */

#define BULK	(300 * GSAS_PAGE)

static void bulk(unsigned flags)
{
	gsas_addr a = host_alloc(300, 1, flags), end;
	uint8_t *shadow = calloc(1, BULK), *mem = malloc(BULK);
	uint64_t rng = flags + 1;

	for (int i = 0; i < ROUNDS / 50; i++) {
		uint32_t max = i % 8 == 0 ? BULK : i % 2 ? 100 : 20000;
		uint32_t len = unit_below(&rng, max + 1);
		uint32_t off = unit_below(&rng, BULK - len + 1);

		host_packets(i % 3 == 0);
		for (uint32_t k = 0; k < len; k++)
			mem[k] = (uint8_t)unit_random(&rng);
		assert_int_equal(gsas_put(a + off, mem, len), 0);
		memcpy(shadow + off, mem, len);
		len = unit_below(&rng, max + 1);
		off = unit_below(&rng, BULK - len + 1);
		memset(mem, 0xA5, len + 1 < BULK ? len + 1 : BULK);
		assert_int_equal(gsas_get(mem, a + off, len), 0);
		assert_memory_equal(mem, shadow + off, len);
		assert_true(len >= BULK || mem[len] == 0xA5);
	}
	host_packets(false);
	/* beyond the end; no bytes at all */
	end = a + BULK;
	assert_true(gsas_get(mem, end - 8, 9) < 0);
	assert_true(gsas_put(end - 8, mem, 9) < 0);
	assert_true(gsas_put(end - BULK, mem, BULK + 1) < 0);
	assert_int_equal(gsas_get(mem, end - 8, 8), 0);
	assert_memory_equal(mem, shadow + BULK - 8, 8);
	assert_int_equal(gsas_get(NULL, a, 0), 0);
	assert_int_equal(gsas_put(a, NULL, 0), 0);
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_get(mem, a, BULK), -ESTALE);
	assert_int_equal(gsas_put(a + 1, mem, 1), -ESTALE);
	free(shadow);
	free(mem);
}

static void test_bulk(void **state)
{
	bulk(0);
	bulk(GSAS_MAPPED);
}

/* The last part of the longest transfer, at every alignment. */
static void test_bulk_of_all(void **state)
{
	for (uint64_t address = 0; address < GSAS_PART_ALIGN; address++) {
		struct gsas_part in = { .whole = GSAS_WHOLE_MAX }, out;
		uint64_t arg[2];

		in.begin = in.whole - (address == 0 ? GSAS_PART_ALIGN :
				       address);
		in.bytes = in.whole - in.begin;
		gsas_part_encode(&in, address, arg);
		assert_true(gsas_part_decode(&out, address, arg));
		assert_true(out.begin == in.begin && out.bytes == in.bytes);
		assert_true(out.whole == in.whole);
	}
	assert_int_equal(gsas_put(0, NULL, GSAS_WHOLE_MAX + 1), -EINVAL);
}

/* A transfer does not reach the next allocation of the segment. */
static void test_bulk_ends_with_its_allocation(void **state)
{
	uint8_t mem[2 * GSAS_PAGE];

	for (unsigned flags = 0; flags <= GSAS_MAPPED; flags += GSAS_MAPPED) {
		gsas_addr a = host_alloc(1, 0, flags);
		gsas_addr b = host_alloc(1, 0, flags);

		memset(mem, 1, sizeof(mem));
		assert_true(gsas_put(a, mem, 2 * GSAS_PAGE) < 0);
		assert_true(gsas_get(mem, a, 2 * GSAS_PAGE) < 0);
		assert_true(gsas_atomic(a, GSAS_OP_SUM, GSAS_TYPE_UINT64,
					GSAS_FORM_UPDATE, 1024, mem, NULL,
					NULL) < 0);
		assert_true(gsas_put(a + 4095, mem, 2) < 0);
		assert_int_equal(host_read(b), 0);
		assert_int_equal(host_read(a), 0);
		assert_int_equal(gsas_free(a), 0);
		assert_int_equal(gsas_free(b), 0);
	}
}

/* Words of 8 bytes are copied as a whole, however many bytes are copied. */
static _Atomic bool g_over;

static void *put_words(void *arg)
{
	gsas_addr a = *(gsas_addr *)arg;
	uint64_t word[500];

	for (int i = 0; i < ROUNDS / 20; i++) {
		for (int k = 0; k < 500; k++)
			word[k] = UINT64_C(0x0101010101010101) * (i & 0xff);
		host_packets(i & 1);
		HOLDS(gsas_put(a + 24, word, sizeof(word)) == 0);
	}
	atomic_store(&g_over, true);
	return NULL;
}

static void test_words_are_whole(void **state)
{
	for (unsigned flags = 0; flags <= GSAS_MAPPED; flags += GSAS_MAPPED) {
		gsas_addr a = host_alloc(2, 1, flags);
		uint64_t word[500];
		pthread_t thread;

		atomic_store(&g_over, false);
		thread = unit_thread(put_words, &a);
		for (int i = 0; !atomic_load(&g_over); i++) {
			host_packets(i & 1);
			assert_int_equal(gsas_get(word, a + 24, sizeof(word)),
					 0);
			for (int k = 0; k < 500; k++)
				assert_true(word[k] == (word[k] & 0xff) *
					    UINT64_C(0x0101010101010101));
		}
		host_packets(false);
		pthread_join(thread, NULL);
		assert_int_equal(gsas_free(a), 0);
	}
}

/* ---- The table of operations --------------------------------------------- */

#define ELEMENTS	700

static void one_atomic(gsas_addr a, enum gsas_op op, enum gsas_type type,
		       enum gsas_form form, size_t count, uint64_t *rng)
{
	static uint8_t mem[ELEMENTS * 32], operand[ELEMENTS * 32];
	static uint8_t compare[ELEMENTS * 32], result[ELEMENTS * 32];
	static uint8_t expected[ELEMENTS * 32];
	size_t bytes = count * gsas_type_size(type);

	/* small numbers, also as floating point */
	for (size_t i = 0; i < bytes; i++) {
		mem[i] = (uint8_t)unit_below(rng, 3);
		operand[i] = (uint8_t)unit_below(rng, 3);
		compare[i] = (uint8_t)unit_below(rng, 3);
	}
	memset(result, 0, sizeof(result));
	memset(expected, 0, sizeof(expected));
	assert_int_equal(gsas_put(a, mem, bytes), 0);
	assert_int_equal(gsas_atomic(a, op, type, form, count,
			op == GSAS_OP_READ ? NULL : operand,
			form == GSAS_FORM_COMPARE ? compare : NULL,
			form == GSAS_FORM_UPDATE ? NULL : result), 0);
	gsas_op_apply(op, type, count, mem, operand, compare,
		      form == GSAS_FORM_UPDATE ? NULL : expected);
	assert_memory_equal(result, expected, bytes);
	assert_int_equal(gsas_get(result, a, bytes), 0);
	assert_memory_equal(result, mem, bytes);
}

static void every_atomic(gsas_addr a, bool mapped)
{
	static const size_t counts[] = { 1, 2, 3, ELEMENTS };
	uint64_t rng = 5;

	for (int type = 0; type < GSAS_TYPES; type++) {
		if (type == GSAS_TYPE_LONG_DOUBLE ||
		    type == GSAS_TYPE_LONG_DOUBLE_COMPLEX)
			continue;	/* has padding of undefined value */
		if (mapped && !gsas_op_direct((enum gsas_type)type, 0))
			continue;
		for (int op = 0; op < GSAS_OPS; op++)
			for (int form = 0; form < 3; form++)
				for (int i = 0; i < 4; i++)
					if (gsas_op_valid(op, type, form))
						one_atomic(a, op, type, form,
							   counts[i], &rng);
	}
}

static void test_every_atomic(void **state)
{
	gsas_addr a = host_alloc(6, 1, 0), m = host_alloc(6, 1, GSAS_MAPPED);

	every_atomic(a, false);
	every_atomic(m, true);
	host_packets(true);
	every_atomic(m, true);
	host_packets(false);
	every_atomic(a + 3, false);	/* executed by the service: any
					 * address */
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_free(m), 0);
}

static void test_atomic_misuse(void **state)
{
	gsas_addr a = host_alloc(1, 0, 0), m = host_alloc(1, 0, GSAS_MAPPED);
	uint8_t mem[64] = { 0 };

#define REFUSED(error, ...) \
	assert_int_equal(gsas_atomic(__VA_ARGS__), error)
	REFUSED(-ENOSYS, a, 99, GSAS_TYPE_INT8, 0, 1, mem, NULL, NULL);
	REFUSED(-ENOSYS, a, -1, GSAS_TYPE_INT8, 0, 1, mem, NULL, NULL);
	REFUSED(-ENOSYS, a, GSAS_OP_SUM, 16, 0, 1, mem, NULL, NULL);
	REFUSED(-ENOSYS, a, GSAS_OP_SUM, -1, 0, 1, mem, NULL, NULL);
	REFUSED(-ENOSYS, a, GSAS_OP_SUM, 0, 3, 1, mem, NULL, NULL);
	REFUSED(-ENOSYS, a, GSAS_OP_SUM, 0, GSAS_FORM_COMPARE, 1, mem, mem,
		mem);
	REFUSED(-ENOSYS, a, GSAS_OP_BAND, GSAS_TYPE_FLOAT, 0, 1, mem, NULL,
		NULL);
	REFUSED(-EINVAL, a, GSAS_OP_SUM, 0, 0, 1, NULL, NULL, NULL);
	REFUSED(-EINVAL, a, GSAS_OP_SUM, 0, 1, 1, mem, NULL, NULL);
	REFUSED(-EINVAL, a, GSAS_OP_CSWAP, 0, 2, 1, mem, NULL, mem);
	REFUSED(-EINVAL, a, GSAS_OP_SUM, 0, 0, SIZE_MAX, mem, NULL, NULL);
	REFUSED(0, a, GSAS_OP_SUM, 0, 0, 0, NULL, NULL, NULL);
	/* only the service may execute these, but the memory can be mapped */
	REFUSED(-EPERM, m, GSAS_OP_SUM, GSAS_TYPE_DOUBLE_COMPLEX, 0, 1, mem,
		NULL, NULL);
	REFUSED(-EPERM, m + 1, GSAS_OP_SUM, GSAS_TYPE_UINT16, 0, 1, mem,
		NULL, NULL);
	assert_true(gsas_atomic(a + 4095, GSAS_OP_SUM, GSAS_TYPE_UINT16, 0, 1,
				mem, NULL, NULL) < 0);
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_free(m), 0);
	REFUSED(-ESTALE, a, GSAS_OP_SUM, 0, 0, 1, mem, NULL, NULL);
	REFUSED(-ESTALE, m, GSAS_OP_SUM, 0, 0, 1, mem, NULL, NULL);
#undef REFUSED
}

/* ---- Queues -------------------------------------------------------------- */

/* Until the queue is full; grants come a moment after words were taken. */
static int fill(struct gsas_queue_handle *q, uint64_t *next, int want)
{
	uint64_t end = unm_now_ns() + UINT64_C(20000000000);
	int n = 0, ret = 0;

	while (n < want && unm_now_ns() < end) {
		ret = gsas_enqueue(q, *next);
		HOLDS(ret == 0 || ret == -EAGAIN);
		n += ret == 0;
		*next += ret == 0;
	}
	return n;
}

static int drain(struct gsas_queue_handle *q, uint64_t *next)
{
	uint64_t word;
	int n = 0;

	assert_int_equal(gsas_fence(-1), 0);	/* all words have arrived */
	while (gsas_dequeue(q, &word) == 0) {
		assert_int_equal(word, *next);
		++*next;
		n++;
	}
	return n;
}

static void queue(uint64_t quota, bool packets)
{
	struct gsas_queue_handle *q, *same;
	struct gsas_thread *t;
	uint64_t in = 100, out = 100, word;
	gsas_addr a;
	size_t bytes;
	void *p;

	host_packets(packets);
	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_queue_create(quota, 8, g_first + 1, 0, NULL, &a),
			 0);
	assert_int_equal(gsas_queue_open(a, &q), 0);
	assert_int_equal(gsas_queue_open(a, &same), 0);
	assert_ptr_equal(q, same);
	gsas_queue_close(same);
	assert_int_equal(gsas_dequeue(q, &word), -EAGAIN);
	for (int i = 0; i < 5; i++) {
		/* exactly its quota */
		assert_int_equal(fill(q, &in, (int)quota), quota);
		assert_int_equal(gsas_fence(-1), 0);
		assert_int_equal(gsas_enqueue(q, in), -EAGAIN);
		assert_int_equal(drain(q, &out), quota);
		/* notifications to the service are not waited for by fences */
		assert_false(t->conn[g_first + 1]->posted);
	}
	assert_int_equal(fill(q, &in, 1), 1);
	/* no operations on it, and gsas_map() is refused */
	assert_int_equal(gsas_read64(a, &word), -EINVAL);
	assert_int_equal(gsas_write64(a + 8, word), -EINVAL);
	assert_true(gsas_map(a, &p, &bytes) ==
		    (windows(1) ? -EINVAL : -EOPNOTSUPP));
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_dequeue(q, &word), -ESTALE);
	gsas_queue_close(q);
	host_packets(false);
}

static void test_queue(void **state)
{
	queue(1, false);
	queue(100, false);
	queue(1, true);
	queue(200, true);
}

/* A consumer takes no quota from producers: two consumers and a producer on a
 * queue of one word. */
struct taker {
	pthread_t thread;
	gsas_addr a;
	_Atomic bool open;
	uint64_t word;
};

static void *take(void *arg)
{
	struct taker *w = arg;
	struct gsas_queue_handle *q;
	int ret;

	HOLDS(gsas_queue_open(w->a, &q) == 0);
	HOLDS(gsas_dequeue(q, &w->word) == -EAGAIN);
	atomic_store(&w->open, true);
	while ((ret = gsas_dequeue(q, &w->word)) == -EAGAIN)
		usleep(100);
	HOLDS(ret == 0);
	return NULL;
}

static void test_takers_hold_no_place(void **state)
{
	struct gsas_queue_handle *q;
	struct taker w[2] = { 0 };
	uint64_t next = 1;
	gsas_addr a;

	assert_int_equal(gsas_queue_create(1, 8, g_first, 0, NULL, &a), 0);
	for (int i = 0; i < 2; i++) {
		w[i].a = a;
		w[i].thread = unit_thread(take, &w[i]);
	}
	while (!atomic_load(&w[0].open) || !atomic_load(&w[1].open))
		usleep(100);
	assert_int_equal(gsas_queue_open(a, &q), 0);
	assert_int_equal(fill(q, &next, 2), 2);
	/* the fault decorator sends a delayed word at the next progress */
	assert_int_equal(gsas_fence(-1), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(w[i].thread, NULL);
	assert_int_equal(w[0].word + w[1].word, 3);
	gsas_queue_close(q);
	assert_int_equal(gsas_free(a), 0);
}

HOST_MAIN(
	cmocka_unit_test(test_boards),
	cmocka_unit_test(test_memory),
	cmocka_unit_test(test_placement),
	cmocka_unit_test(test_left_of_what_is_freed),
	cmocka_unit_test(test_map),
	cmocka_unit_test(test_every_operation),
	cmocka_unit_test(test_sums),
	cmocka_unit_test(test_many),
	cmocka_unit_test(test_order_behind_bulk),
	cmocka_unit_test(test_posted),
	cmocka_unit_test(test_bulk),
	cmocka_unit_test(test_bulk_of_all),
	cmocka_unit_test(test_bulk_ends_with_its_allocation),
	cmocka_unit_test(test_words_are_whole),
	cmocka_unit_test(test_every_atomic),
	cmocka_unit_test(test_atomic_misuse),
	cmocka_unit_test(test_queue),
	cmocka_unit_test(test_takers_hold_no_place),
)
