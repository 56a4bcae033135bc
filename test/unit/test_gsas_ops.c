/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_ops.c - the service's operations on memory: the published ones, the
 * table of atomics, and bulk data, each on pages that clients may map and on
 * pages that they may not.
 */
#include "lib/unit.h"
#include "op/gsas_op.h"
#include "lib/gsas_service_fixture.h"

#define PAGES	4

static const uint64_t attrs[] = { 0, GSAS_ATTR_MAPPED };

/* The memory as the service reads it. */
static void read_all(struct fixture_client *c, uint64_t addr, uint8_t *to)
{
	uint64_t len = PAGES * GSAS_PAGE_BYTES;

	assert_int_equal(fixture_result(c, GSAS_GET, addr, len, 0), len);
	memcpy(to, c->out, len);
}

static void write_random(struct fixture_client *c, uint64_t addr, uint64_t *rng,
			 uint8_t *copy)
{
	uint64_t len = PAGES * GSAS_PAGE_BYTES;

	for (uint64_t i = 0; i < len; i++)
		copy[i] = c->in[i] = (uint8_t)unit_random(rng);
	assert_int_equal(fixture_result(c, GSAS_PUT, addr, len, 0), len);
}

/*
 * Every published operation, at every offset of two lines, compared with a
 * model that ignores the low bits which table 1 of the paper names.
 */
static const struct {
	uint8_t opcode;
	uint8_t ignored, bytes;
	bool writes;
} published[] = {
	{ GSAS_READ8, 0, 1, false },	{ GSAS_READ32, 2, 4, false },
	{ GSAS_READ64, 3, 8, false },	{ GSAS_WRITE8, 0, 1, true },
	{ GSAS_WRITE32, 2, 4, true },	{ GSAS_WRITE64, 3, 8, true },
	{ GSAS_WRITE128, 3, 16, true },	{ GSAS_CAS64, 3, 8, true },
	{ GSAS_FAD64, 3, 8, true },	{ GSAS_SWAP64, 3, 8, true },
};

static void check_published(struct fixture_client *c, uint64_t addr,
			    uint8_t *mem, unsigned int row, uint64_t off,
			    const uint64_t arg[2])
{
	uint8_t opcode = published[row].opcode, bytes = published[row].bytes;
	uint8_t *at = mem + (off & ~((UINT64_C(1) << published[row].ignored) -
				     1));
	uint64_t was = 0, want;
	struct gsas_answer a;

	memcpy(&was, at, bytes < 8 ? bytes : 8);
	a = fixture_ask(c, opcode, addr + off, arg[0], arg[1]);
	assert_int_equal(a.response.error, GSAS_OK);
	switch (opcode) {
	case GSAS_CAS64:
		want = was == arg[0];
		assert_int_equal(a.more, was);
		if (want)
			memcpy(at, &arg[1], 8);
		break;
	case GSAS_FAD64:
		want = was;
		was += arg[0];
		memcpy(at, &was, 8);
		break;
	default:
		want = opcode == GSAS_SWAP64 || !published[row].writes ? was :
									 0;
		if (published[row].writes)
			memcpy(at, arg, bytes);
		break;
	}
	assert_int_equal(a.response.result, want);
}

static void test_published(void **state)
{
	static uint8_t mem[PAGES * GSAS_PAGE_BYTES], now[sizeof(mem)];
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t rng = 1;

	for (int m = 0; m < 2; m++) {
		uint64_t addr = fixture_alloc(c, PAGES, attrs[m]);

		write_random(c, addr, &rng, mem);
		for (int i = 0; i < 128 * 10; i++) {
			unsigned int row = (unsigned int)i % 10;
			uint64_t off = (uint64_t)i / 10 + GSAS_PAGE_BYTES - 64;
			uint64_t arg[2] = { unit_random(&rng),
					    unit_random(&rng) };

			/* a misaligned one is executed by the service only, so
			 * not on mapped pages */
			if (published[row].bytes == 16 && attrs[m] != 0)
				off &= ~UINT64_C(15);
			if (published[row].opcode == GSAS_CAS64 && i % 4 < 2)
				memcpy(arg, mem + (off & ~UINT64_C(7)), 8);
			check_published(c, addr, mem, row, off, arg);
		}
		read_all(c, addr, now);
		assert_memory_equal(mem, now, sizeof(mem));
	}
	fixture_free(w);
}

static void test_read4k(void **state)
{
	static uint8_t mem[PAGES * GSAS_PAGE_BYTES];
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t addr = fixture_alloc(c, PAGES, 0), rng = 2;

	write_random(c, addr, &rng, mem);
	memset(c->out, 0xee, sizeof(c->out));
	/* 12 low bits are ignored */
	assert_int_equal(fixture_result(c, GSAS_READ4K, addr + 2 * 4096 + 4095,
					77, 0), 4096);
	assert_memory_equal(c->out + 77, mem + 2 * 4096, 4096);
	assert_int_equal(c->out[76], 0xee);
	assert_int_equal(c->out[77 + 4096], 0xee);
	fixture_free(w);
}

/* ---- The table of atomic operations -------------------------------------- */

static void fill_random(uint8_t *to, size_t len, uint64_t *rng)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)unit_random(rng);
}

/* One ATOMIC, compared with gsas_op_apply() on a copy. test_op.c tests
 * gsas_op_apply(). */
static void check_atomic(struct fixture_client *c, uint64_t addr, uint8_t *mem,
			 uint64_t off, int op, int type, int form,
			 uint64_t *rng)
{
	static uint8_t want[4096], copy[2 * 4096];
	uint64_t count = 1 + unit_below(rng, 100);
	size_t bytes = count * gsas_type_size(type);
	size_t in = unit_below(rng, 1000), out = unit_below(rng, 1000);
	bool direct = gsas_op_direct(type, addr + off);
	uint64_t error;

	fill_random(c->in + in, 2 * bytes, rng);
	memcpy(copy, c->in + in, 2 * bytes);
	memset(c->out, 0xee, out + bytes + 64);
	error = fixture_error(c, GSAS_ATOMIC, addr + off, (uint64_t)op |
			      (uint64_t)type << 8 | (uint64_t)form << 16 |
			      count << 32, in | out << 32);
	if (mem == NULL) {		/* mapped; refused unless it can be
					 * executed directly */
		assert_int_equal(error, direct ? GSAS_OK : GSAS_E_MAPPED);
		return;
	}
	assert_int_equal(error, GSAS_OK);
	memset(want, 0xee, sizeof(want));
	gsas_op_apply(op, type, count, mem + off, copy, copy + bytes,
		      form == GSAS_FORM_UPDATE ? NULL : want);
	assert_memory_equal(c->out + out, want, bytes);
	assert_int_equal(c->out[out + bytes], 0xee);
}

static void test_atomic(void **state)
{
	static uint8_t mem[PAGES * GSAS_PAGE_BYTES], now[sizeof(mem)];
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t addr = fixture_alloc(c, PAGES, 0), rng = 3;
	uint64_t mapped = fixture_alloc(c, PAGES, GSAS_ATTR_MAPPED);

	write_random(c, addr, &rng, mem);
	for (int op = 0; op < GSAS_OPS; op++)
		for (int type = 0; type < GSAS_TYPES; type++)
			for (int form = 0; form < 3; form++) {
				uint64_t off = unit_below(&rng, 8192);

				if (!gsas_op_valid(op, type, form))
					continue;
				check_atomic(c, addr, mem, off, op, type, form,
					     &rng);
				check_atomic(c, addr, mem, off & ~15ULL, op,
					     type, form, &rng);
				check_atomic(c, mapped, NULL, off, op, type,
					     form, &rng);
				check_atomic(c, mapped, NULL, off & ~15ULL, op,
					     type, form, &rng);
			}
	read_all(c, addr, now);
	assert_memory_equal(mem, now, sizeof(mem));
	fixture_free(w);
}

/* One element, operand in the request; misaligned ones also across pages. */
static void test_update(void **state)
{
	static uint8_t mem[PAGES * GSAS_PAGE_BYTES], now[sizeof(mem)];
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t addr = fixture_alloc(c, PAGES, 0), rng = 4;
	uint64_t mapped = fixture_alloc(c, PAGES, GSAS_ATTR_MAPPED);

	write_random(c, addr, &rng, mem);
	for (int op = 0; op < GSAS_OPS; op++)
		for (int type = 0; type < GSAS_TYPES; type++) {
			uint64_t off = 4096 - 12 + unit_below(&rng, 24);
			uint64_t operand = unit_random(&rng), was = 0;
			uint64_t arg1 = (uint64_t)op | (uint64_t)type << 8;

			if (!gsas_op_valid(op, type, GSAS_FORM_FETCH) ||
			    gsas_type_size(type) > 8) {
				assert_int_equal(fixture_error(c, GSAS_UPDATE,
					addr, arg1, 0), GSAS_E_OPCODE);
				continue;
			}
			gsas_op_apply(op, type, 1, mem + off, &operand, NULL,
				      &was);
			assert_int_equal(fixture_result(c, GSAS_UPDATE,
				addr + off, arg1, operand), was);
			assert_int_equal(fixture_error(c, GSAS_UPDATE,
				mapped + off, arg1, operand),
				gsas_op_direct(type, off) ? GSAS_OK :
				GSAS_E_MAPPED);
			/* the same as a posted request */
			gsas_op_apply(op, type, 1, mem + off, &operand, NULL,
				      NULL);
			assert_true(fixture_send(c, GSAS_UPDATE, 0, addr + off,
						 arg1, operand));
		}
	assert_int_equal(fixture_result(c, GSAS_FENCE, 0, 0, 0), 0);
	read_all(c, addr, now);
	assert_memory_equal(mem, now, sizeof(mem));
	fixture_free(w);
}

/* ---- Bulk ---------------------------------------------------------------- */

static void test_bulk(void **state)
{
	static uint8_t mem[PAGES * GSAS_PAGE_BYTES], now[sizeof(mem)];
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t rng = 5;

	for (int m = 0; m < 2; m++) {
		uint64_t addr = fixture_alloc(c, PAGES, attrs[m]);

		write_random(c, addr, &rng, mem);
		for (uint64_t i = 0; i < 2000; i++) {
			/* all pairs of short lengths and alignments, too */
			uint64_t len = i < 640 ? i % 40 :
				       unit_below(&rng, 9000);
			uint64_t off = i < 640 ? i / 40 :
				       unit_below(&rng, 7000);
			uint64_t at = unit_below(&rng, 100);

			fill_random(c->in + at, len, &rng);
			memcpy(mem + off, c->in + at, len);
			assert_int_equal(fixture_result(c, GSAS_PUT, addr + off,
							len, at), len);
			off = unit_below(&rng, 7000);
			memset(c->out, 0xee, at + len + 1);
			assert_int_equal(fixture_result(c, GSAS_GET, addr + off,
							len, at), len);
			assert_memory_equal(c->out + at, mem + off, len);
			assert_int_equal(c->out[at + len], 0xee);
			assert_true(at == 0 || c->out[at - 1] == 0xee);
		}
		read_all(c, addr, now);
		assert_memory_equal(mem, now, sizeof(mem));
	}
	fixture_free(w);
}

/* ---- While clients access mapped memory ---------------------------------- */

#define TURNS	(UNIT_SLOW ? 2000 : 20000)

struct mapper {
	_Atomic uint64_t *words;	/* aligned ones */
	_Atomic uint32_t *halves;
	_Atomic bool stop;
	uint64_t added;
	bool torn;
};

/* A word is never half old and half new; no addition is lost. */
static void *mapper_run(void *arg)
{
	struct mapper *m = arg;

	for (uint64_t i = 0; !atomic_load(&m->stop); i = (i + 1) % 16) {
		uint64_t word = atomic_load_explicit(&m->words[i],
						     memory_order_relaxed);
		uint32_t half = atomic_load_explicit(&m->halves[i],
						     memory_order_relaxed);

		if ((uint32_t)word != word >> 32 ||
		    (half & 0xffff) != half >> 16)
			m->torn = true;
		atomic_store_explicit(&m->words[i], i * 0x0000000100000001,
				      memory_order_relaxed);
		atomic_store_explicit(&m->halves[i], (uint32_t)i * 0x10001,
				      memory_order_relaxed);
		atomic_fetch_add(&m->words[500], 1);
		m->added++;
	}
	return NULL;
}

static void same_halves(const uint8_t *at, size_t size)
{
	assert_memory_equal(at, at + size / 2, size / 2);
}

static void test_mapped(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t addr = fixture_alloc(c, 1, GSAS_ATTR_MAPPED);
	struct gsas_map_info info;
	struct mapper m = { .added = 0 };
	pthread_t thread;

	fixture_result(c, GSAS_MAP, addr + 9, 0, 64);
	memcpy(&info, c->out + 64, sizeof(info));
	assert_int_equal(info.base % GSAS_SEGMENT, 0);
	m.words = (void *)(uintptr_t)(info.key[0] + (addr - info.base));
	m.halves = (void *)((uint8_t *)m.words + 2048 + 4);
	assert_int_equal(*(_Atomic uint32_t *)(uintptr_t)(info.key[0] +
			 gsas_page_word(info.base, addr)), 1);
	thread = unit_thread(mapper_run, &m);
	for (uint64_t i = 1; i <= TURNS; i++) {
		uint64_t word = i * 0x0000000100000001;
		uint32_t half = (uint32_t)(i & 0xffff) * 0x10001;

		for (unsigned int k = 0; k < 16; k++) {
			memcpy(c->in + 1 + 8 * k, &word, 8);
			memcpy(c->in + 201 + 4 * k, &half, 4);
		}
		fixture_result(c, GSAS_PUT, addr, 128, 1);
		fixture_result(c, GSAS_PUT, addr + 2048 + 4, 64, 201);
		fixture_result(c, GSAS_GET, addr, 128, 3);
		for (unsigned int k = 0; k < 16; k++)
			same_halves(c->out + 3 + 8 * k, 8);
		fixture_result(c, GSAS_GET, addr + 2048 + 4, 64, 3);
		same_halves(c->out + 3, 4);
		same_halves(c->out + 3 + 60, 4);
		fixture_result(c, GSAS_FAD64, addr + 4000, 1, 0);
	}
	atomic_store(&m.stop, true);
	pthread_join(thread, NULL);
	assert_false(m.torn);
	assert_int_equal(fixture_result(c, GSAS_READ64, addr + 4000, 0, 0),
			 TURNS + m.added);
	fixture_free(w);
}

UNIT_MAIN(
	cmocka_unit_test(test_published),
	cmocka_unit_test(test_read4k),
	cmocka_unit_test(test_atomic),
	cmocka_unit_test(test_update),
	cmocka_unit_test(test_bulk),
	cmocka_unit_test(test_mapped),
)
