/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma.c - <unimem/unim_dma.h>: buffers of two boards, transfers between
 * them and memory, at any offset, and what is refused.
 */
#include "lib/rdma_nodes.h"
#include "rdma_lib.h"

#define BYTES	(3 * 256 * 1024 + 777)	/* more than a bounce cell */
#define BIG	(4 << 20)	/* more than one poll of the HAL moves */

/* ---- Beginning and end ------------------------------------------------- */

static void test_init(void **state)
{
	unim_dma_transfer_id_t id;
	unim_dma_buffer_t *buf;
	uint64_t global;

	(void)state;
	assert_null(unim_alloc_buf_l(PAGE));
	assert_int_equal(unim_dma_error(), -EINVAL);
	assert_null(unim_get_buf(UINT64_C(1) << 48));
	assert_null(unim_dma_get_node(0));
	assert_int_equal(unim_dma_status(5), DMA_FAILED);
	assert_int_equal(unim_dma_error(), -EINVAL);
	assert_int_equal(unim_dma_alloc(1, UNIM_DMA_LOCAL, 0, &buf), -EINVAL);
	assert_int_equal(unim_dma_wait(5, 0), -EINVAL);
	assert_int_equal(unim_dma_poll(&id, 1), -EINVAL);
	assert_int_equal(unim_dma_event_fd(), -EINVAL);
	assert_int_equal(unim_dma_free(NULL), 0);
	assert_int_equal(unim_dma_translate(&id, &global), -EINVAL);
	unim_dma_cleanup();
	assert_int_equal(unim_dma_init((unim_node_id_t)unim_dma_nodes()),
			 -ENXIO);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(unim_dma_init(node_of(0)), 0);
		assert_int_equal(unim_dma_init(node_of(0)), -EALREADY);
		assert_non_null(unim_alloc_buf_l(PAGE));
		unim_dma_cleanup();
	}
}

/* Several threads open the library at once: one of them does. */
static _Atomic int g_opened;

static void *opener(void *arg)
{
	int ret = unim_dma_init(node_of(0));

	(void)arg;
	HOLDS(ret == 0 || ret == -EALREADY);
	atomic_fetch_add(&g_opened, ret == 0);
	return NULL;
}

static void open_at_once(void)
{
	pthread_t thread[4];

	for (int i = 0; i < 4; i++)
		thread[i] = unit_thread(opener, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
}

static void test_concurrent_inits(void **state)
{
	unim_dma_buffer_t *buf = NULL;

	(void)state;
	for (int i = 1; i <= 20; i++) {
		open_at_once();
		assert_int_equal(atomic_load(&g_opened), i);
		assert_int_equal(unim_dma_alloc(PAGE, UNIM_DMA_LOCAL, 0, &buf),
				 0);
		unim_dma_cleanup();
	}
}

/* The structures of a port are those of one version. */
static void test_other_version(void **state)
{
	struct gsas_thread *port = NULL;

	(void)state;
	assert_int_equal(gsas_port_open("0.0.0-other", -1, &port), -ELIBBAD);
	assert_null(port);
}

/* ---- Buffers ----------------------------------------------------------- */

static void test_buffers(void **state)
{
	unim_dma_buffer_t *a = unim_alloc_buf_l(100000), *b, *same;
	uint64_t global;
	uint8_t *at;

	(void)state;
	assert_non_null(a);
	b = unim_alloc_buf_r(1, unim_dma_get_node(node_of(1)));
	assert_non_null(b);
	assert_int_equal(unim_dma_buf_size(a), 25 * PAGE);
	assert_int_equal(unim_dma_buf_size(b), PAGE);
	assert_int_equal(unim_dma_buf_node(a), node_of(0));
	assert_int_equal(unim_dma_buf_node(b), node_of(1));
	assert_true(unim_get_buf_id(a) != unim_get_buf_id(b));
	at = unim_buf_get_memory(a);
	assert_non_null(at);
	for (int i = 0; i < 25 * PAGE; i++)
		assert_int_equal(at[i], 0);
	at[5000] = 9;
	same = unim_get_buf(unim_get_buf_id(a));
	assert_non_null(same);
	assert_ptr_not_equal(same, a);
	assert_int_equal(unim_dma_buf_size(same), 25 * PAGE);
	assert_int_equal(((uint8_t *)unim_buf_get_memory(same))[5000], 9);
	assert_int_equal(unim_dma_translate(at + 5000, &global), 0);
	assert_int_equal(global, unim_get_buf_id(a) + 5000);
	assert_int_equal(unim_dma_translate(&global, &global), -EFAULT);
	/* the second object only refers to the buffer */
	unim_free_buf(same);
	assert_int_equal(at[5000], 9);
	unim_free_buf(a);
	unim_free_buf(b);
	unim_free_buf(NULL);
}

static void test_refused_buffers(void **state)
{
	unim_dma_buffer_t *a = buffer_on(0, 3 * PAGE), *b = NULL;
	unim_dma_buf_id_t id = unim_get_buf_id(a);

	(void)state;
	assert_null(unim_alloc_buf_l(0));
	assert_int_equal(unim_dma_error(), -EINVAL);
	assert_null(unim_dma_get_node((unim_node_id_t)unim_dma_nodes()));
	assert_null(unim_alloc_buf_r(PAGE, NULL));
	assert_int_equal(unim_dma_error(), -ENXIO);
	assert_int_equal(unim_dma_alloc(UINT64_MAX, UNIM_DMA_LOCAL, 0, &b),
			 -EINVAL);
	assert_int_equal(unim_dma_alloc(PAGE, UNIM_DMA_NODE, UINT32_MAX, &b),
			 -ENXIO);
	assert_int_equal(unim_dma_alloc(UINT64_C(1) << 44, UNIM_DMA_LOCAL, 0,
					&b), -ENOMEM);
	assert_int_equal(unim_dma_alloc(PAGE, 77, 0, &b), -EINVAL);
	assert_int_equal(unim_dma_alloc(PAGE, UNIM_DMA_LOCAL, 0, NULL),
			 -EINVAL);
	assert_int_equal(unim_dma_get(id, NULL), -EINVAL);
	assert_int_equal(unim_dma_translate(&id, NULL), -EINVAL);
	assert_int_equal(unim_dma_buf_size(NULL), 0);
	assert_int_equal(unim_dma_buf_node(NULL), UINT32_MAX);
	assert_int_equal(unim_dma_get(id + PAGE, &b), -EFAULT);
	assert_int_equal(unim_dma_get(id + 8, &b), -EFAULT);
	assert_int_equal(unim_dma_get(0, &b), -EFAULT);
	assert_int_equal(unim_dma_get(~UINT64_C(0), &b), -EFAULT);
	unim_free_buf(a);
	assert_null(unim_get_buf(id));
	assert_int_equal(unim_dma_error(), -ESTALE);
	assert_string_equal(unim_dma_strerror(-ESTALE),
			    "the buffer was freed");
	assert_null(b);
}

/* unim_dma_free() waits for the transfers of a buffer, and leaves the error of
 * the published calls as it is. An object of unim_dma_get() is released, and
 * the buffer stays. */
static void test_freeing(void **state)
{
	enum { TRANSFERS = 8 };
	unim_dma_buffer_t *a = buffer_on(0, BIG), *found = NULL;
	unim_dma_buffer_t *b = buffer_on(1, BIG);
	unim_dma_buf_id_t id_a = unim_get_buf_id(a), id_b = unim_get_buf_id(b);
	unim_dma_transfer_id_t id[TRANSFERS];
	unim_dma_status_t status;

	(void)state;
	assert_int_equal(unim_dma_get(id_b, &found), 0);
	for (int i = 0; i < TRANSFERS; i++) {
		id[i] = unim_dma_submit_transfer(a, i % 2 ? b : found, 0, 0,
						 BIG, NULL, NULL);
		assert_true(id[i] != 0);
	}
	assert_null(unim_alloc_buf_l(0));
	assert_int_equal(unim_dma_error(), -EINVAL);
	assert_int_equal(unim_dma_free(a), 0);
	for (int i = 0; i < TRANSFERS; i++) {
		assert_int_equal(unim_dma_test(id[i], &status), 0);
		assert_int_equal(status, DMA_COMPLETED);
	}
	assert_int_equal(unim_dma_get(id_a, &a), -ESTALE);
	assert_int_equal(unim_dma_free(found), 0);
	assert_int_equal(unim_dma_get(id_b, &found), 0);
	assert_int_equal(unim_dma_free(found), 0);
	assert_int_equal(unim_dma_free(b), 0);
	assert_int_equal(unim_dma_get(id_b, &found), -ESTALE);
	assert_int_equal(unim_dma_free(NULL), 0);
	assert_int_equal(unim_dma_error(), -EINVAL);
}

/* A buffer is memory of the global address space, and the reverse. */
static void test_global_addresses(void **state)
{
	unim_dma_buffer_t *a = buffer_on(1, PAGE), *b;
	gsas_addr plain = host_alloc(1, 1, 0);
	gsas_addr mapped = host_alloc(3, 1, GSAS_MAPPED);
	uint64_t word = 0;

	(void)state;
	assert_int_equal(gsas_write64(unim_get_buf_id(a) + 64, 12), 0);
	completes(unim_dma_submit_transfer_to_mem(a, &word, 64, 0, 8, NULL,
						  NULL));
	assert_int_equal(word, 12);
	b = unim_get_buf(mapped);
	assert_non_null(b);
	assert_int_equal(unim_dma_buf_size(b), 3 * PAGE);
	completes(unim_dma_submit_transfer(a, b, 64, 2 * PAGE, 8, NULL, NULL));
	assert_int_equal(host_read(mapped + 2 * PAGE), 12);
	/* memory that only the service may access */
	assert_null(unim_get_buf(plain));
	assert_int_equal(unim_dma_error(), -EPERM);
	unim_free_buf(b);
	unim_free_buf(a);
	assert_int_equal(host_read(mapped + 2 * PAGE), 12);
	assert_int_equal(gsas_free(mapped), 0);
	assert_int_equal(gsas_free(plain), 0);
}

/* Ids and contents of buffers on both boards are their own. */
static void test_many_buffers(void **state)
{
	enum { N = 300 };
	unim_dma_buffer_t *buf[N];
	uint64_t mark, back;

	(void)state;
	for (int i = 0; i < N; i++) {
		mark = (uint64_t)i % 255 + 1;
		buf[i] = buffer_on(i % 2, (uint64_t)(i % 7 * 1000 + 8));
		completes(unim_dma_submit_transfer_from_mem(&mark, buf[i], 0,
			i % 8, sizeof(mark) - i % 8, NULL, NULL));
		for (int k = 0; k < i; k++)
			assert_true(unim_get_buf_id(buf[i]) !=
				    unim_get_buf_id(buf[k]));
	}
	for (int i = 0; i < N; i++) {
		mark = (uint64_t)i % 255 + 1;
		back = 0;
		completes(unim_dma_submit_transfer_to_mem(buf[i], &back,
			i % 8, 0, sizeof(back) - i % 8, NULL, NULL));
		assert_int_equal(back, mark);
		unim_free_buf(buf[i]);
	}
}

static void test_beyond_256_mib(void **state)
{
	const uint32_t bytes = (256u << 20) + 3 * PAGE;
	unim_dma_buffer_t *buf;
	uint64_t word = 4711, back = 0;

	(void)state;
	/* the model has less memory than that */
	unit_needs(getenv("FI_UNIMEM_HAL") == NULL);
	buf = unim_alloc_buf_r(bytes, unim_dma_get_node(node_of(1)));
	if (buf == NULL && unim_dma_error() == -ENOMEM)
		skip();
	assert_non_null(buf);
	completes(unim_dma_submit_transfer_from_mem(&word, buf, 0, bytes - 11,
						    8, NULL, NULL));
	completes(unim_dma_submit_transfer_to_mem(buf, &back, bytes - 11, 0,
						  8, NULL, NULL));
	assert_int_equal(back, word);
	unim_free_buf(buf);
}

/* ---- Transfers --------------------------------------------------------- */

struct ends {
	unim_dma_buffer_t *src, *dst;	/* NULL: memory */
};

static uint8_t g_from[BYTES + 100], g_to[BYTES + 100];

/* Write to the source, transfer, and compare all of the destination. */
static void transfer(const struct ends *e, uint64_t src_off, uint64_t dst_off,
		     uint64_t size)
{
	static uint64_t seed;
	struct unim_dma_request q = {
		.src = e->src, .dst = e->dst, .src_mem = g_from,
		.dst_mem = g_to, .src_off = src_off, .dst_off = dst_off,
		.size = size,
	};
	unim_dma_transfer_id_t id;

	fill(g_from, sizeof(g_from), ++seed);
	if (e->src != NULL)
		completes(unim_dma_submit_transfer_from_mem(g_from, e->src, 0,
				0, sizeof(g_from), NULL, NULL));
	memset(g_to, 0xee, sizeof(g_to));
	if (e->dst != NULL)
		completes(unim_dma_submit_transfer_from_mem(g_to, e->dst, 0,
				0, sizeof(g_to), NULL, NULL));
	assert_int_equal(unim_dma_submit(&q, &id), 0);
	completes(id);
	if (e->dst != NULL)
		completes(unim_dma_submit_transfer_to_mem(e->dst, g_to, 0, 0,
				sizeof(g_to), NULL, NULL));
	for (uint64_t i = 0; i < sizeof(g_to); i++) {
		bool in = i >= dst_off && i - dst_off < size;

		assert_int_equal(g_to[i], in ? g_from[src_off + i - dst_off] :
				 0xee);
	}
}

/* An end of a transfer for test_no_copy() */
struct place {
	unim_dma_buffer_t *buf;		/* NULL: memory */
	uint8_t *mem;
	bool local;			/* the engine reaches it as local memory
					 * without coherent memory, too */
};

/* Is there no copy? The engine moves bytes between a buffer and local memory.
 * With coherent memory all memory of the process is local. */
static bool is_direct(const struct hal *hal, const struct place *src,
		      const struct place *dst)
{
	if (hal->caps.flags & HAL_CAP_COHERENT)
		return true;
	return (src->local && dst->buf != NULL) ||
		(dst->local && src->buf != NULL);
}

/* All transfers since the last call were direct, or all by cells. */
static void assert_way(const struct place *src, const struct place *dst)
{
	struct rdma *r = rdma_enter();
	uint64_t direct = r->direct, cells = r->by_cells;
	bool wanted = is_direct(r->hal, src, dst);

	r->direct = r->by_cells = 0;
	rdma_leave(r);
	assert_true(wanted ? direct > 0 : cells > 0);
	assert_int_equal(wanted ? cells : direct, 0);
}

/* Write a page to a place, or read it. The transfers for that do not count. */
static void page_put(const struct place *p, uint64_t seed)
{
	fill(g_from, PAGE, seed);
	if (p->buf == NULL)
		memcpy(p->mem, g_from, PAGE);
	else
		completes(unim_dma_submit_transfer_from_mem(g_from, p->buf, 0,
				0, PAGE, NULL, NULL));
}

static bool page_has(const struct place *p, uint64_t seed)
{
	if (p->buf == NULL)
		return filled(p->mem, PAGE, seed);
	memset(g_to, 0, PAGE);
	completes(unim_dma_submit_transfer_to_mem(p->buf, g_to, 0, 0, PAGE,
						  NULL, NULL));
	return filled(g_to, PAGE, seed);
}

static void forget_ways(void)
{
	struct rdma *r = rdma_enter();

	r->direct = r->by_cells = 0;
	rdma_leave(r);
}

static void no_copy(const struct place *src, const struct place *dst,
		    uint64_t seed)
{
	unim_dma_transfer_id_t id;

	page_put(src, seed);
	page_put(dst, seed + 1);
	forget_ways();
	if (src->buf == NULL)
		id = unim_dma_submit_transfer_from_mem(src->mem, dst->buf, 0,
				0, PAGE, NULL, NULL);
	else if (dst->buf == NULL)
		id = unim_dma_submit_transfer_to_mem(src->buf, dst->mem, 0, 0,
				PAGE, NULL, NULL);
	else
		id = unim_dma_submit_transfer(src->buf, dst->buf, 0, 0, PAGE,
					      NULL, NULL);
	completes(id);
	assert_way(src, dst);
	assert_true(page_has(dst, seed));
}

/* Buffers of both boards, and three kinds of memory: ordinary memory, dmable
 * memory of the process, and the pointer to a buffer of its board. */
static void test_no_copy(void **state)
{
	enum { PLACES = 7 };
	static uint8_t ordinary[PAGE];
	unim_dma_buffer_t *pointed = buffer_on(0, PAGE);
	struct hal_mem *mem;
	struct hal *hal;
	struct rdma *r;
	void *dmable;
	struct place p[PLACES] = {
		{ NULL, ordinary, false },
		{ NULL, NULL, true },
		{ NULL, unim_buf_get_memory(pointed), true },
		{ buffer_on(0, PAGE), NULL, true },
		{ buffer_on(0, PAGE), NULL, true },
		{ buffer_on(1, PAGE), NULL, false },
		{ buffer_on(1, PAGE), NULL, false },
	};

	(void)state;
	r = rdma_enter();
	hal = r->hal;
	rdma_leave(r);
	assert_int_equal(hal_mem_alloc(hal, -1, PAGE, &mem, &dmable), 0);
	p[1].mem = dmable;
	assert_non_null(p[2].mem);
	for (int i = 0; i < PLACES * PLACES; i++) {
		const struct place *src = &p[i / PLACES], *dst = &p[i % PLACES];

		if (src != dst && (src->buf != NULL || dst->buf != NULL))
			no_copy(src, dst, 2 * i);
	}
	hal_mem_free(hal, mem);
	unim_free_buf(pointed);
	for (int i = 3; i < PLACES; i++)
		unim_free_buf(p[i].buf);
}

/* Between buffers of each board and memory, of any size and alignment. */
static void test_transfers(void **state)
{
	static const uint64_t sizes[] = {
		0, 1, 7, 64, 4095, 4096, 262144, 262145, BYTES,
	};
	unim_dma_buffer_t *buf[] = {
		NULL, buffer_on(0, sizeof(g_to)), buffer_on(1, sizeof(g_to)),
		buffer_on(0, sizeof(g_to)), buffer_on(1, sizeof(g_to)),
	};
	static const int pair[][2] = {
		{ 0, 1 }, { 0, 2 }, { 1, 0 }, { 2, 0 }, { 1, 2 }, { 2, 1 },
		{ 1, 3 }, { 2, 4 },
	};

	(void)state;
	for (unsigned p = 0; p < sizeof(pair) / sizeof(pair[0]); p++) {
		struct ends e = { buf[pair[p][0]], buf[pair[p][1]] };

		for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
			transfer(&e, 13 * i % 100, (29 * i + p) % 100,
				 sizes[i]);
	}
	for (int i = 1; i < 5; i++)
		unim_free_buf(buf[i]);
}

static void test_refused_transfers(void **state)
{
	unim_dma_buffer_t *a = buffer_on(0, PAGE), *b = buffer_on(1, 2 * PAGE);
	static const uint64_t bad[][3] = {	/* offsets in a, in b, size */
		{ 1, 0, PAGE }, { 0, PAGE + 1, PAGE }, { PAGE + 1, 0, 0 },
		{ 0, UINT64_MAX, 8 }, { UINT64_MAX - 3, 0, 8 },
		{ 0, 0, UINT64_MAX }, { 8, 8, UINT64_MAX - 7 },
		{ 0, 0, PAGE + 1 },
	};
	struct unim_dma_request q = { .src = a, .dst = b, .size = 8 };
	unim_dma_transfer_id_t id = 77;
	uint8_t byte = 0;

	(void)state;
	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(unim_dma_submit_transfer(a, b, bad[i][0],
			bad[i][1], bad[i][2], NULL, NULL), 0);
		assert_int_equal(unim_dma_error(), -EINVAL);
	}
	assert_int_equal(unim_dma_submit_transfer(NULL, b, 0, 0, 1, NULL,
						  NULL), 0);
	assert_int_equal(unim_dma_submit_transfer(a, NULL, 0, 0, 1, NULL,
						  NULL), 0);
	assert_int_equal(unim_dma_submit_transfer_from_mem(NULL, b, 0, 0, 1,
							   NULL, NULL), 0);
	assert_int_equal(unim_dma_submit_transfer_from_mem(&byte, NULL, 0, 0,
							   1, NULL, NULL), 0);
	assert_int_equal(unim_dma_submit_transfer_to_mem(a, NULL, 0, 0, 1,
							 NULL, NULL), 0);
	for (q.notify = 1, q.notify_off = 4; q.notify_off < 3 * PAGE;
	     q.notify_off += 2 * PAGE - 4)
		assert_int_equal(unim_dma_submit(&q, &id), -EINVAL);
	assert_int_equal(id, 77);
	assert_int_equal(unim_dma_submit(NULL, &id), -EINVAL);
	assert_int_equal(unim_dma_submit(&q, NULL), -EINVAL);
	assert_int_equal(unim_dma_test(id, NULL), -EINVAL);
	assert_int_equal(unim_dma_poll(NULL, 1), -EINVAL);
	assert_int_equal(unim_dma_wait_notify(NULL, 0, 0, 0), -EINVAL);
	/* a published call of no bytes does no harm */
	completes(unim_dma_submit_transfer(a, b, PAGE, 2 * PAGE, 0, NULL,
					   NULL));
	unim_free_buf(a);
	unim_free_buf(b);
}

/* A transfer of which one buffer was freed by its owner does not complete. */
static void test_freed_buffer(void **state)
{
	unim_dma_buffer_t *a = buffer_on(0, PAGE), *b = buffer_on(0, PAGE);
	unim_dma_buffer_t *c = unim_get_buf(unim_get_buf_id(b));
	unim_dma_transfer_id_t id;

	(void)state;
	assert_non_null(c);
	unim_free_buf(b);
	id = unim_dma_submit_transfer(a, c, 0, 0, 8, NULL, NULL);
	assert_true(id != 0);
	assert_int_equal(unim_dma_wait(id, LONG_MS), -ESTALE);
	assert_int_equal(unim_dma_status(id), DMA_FAILED);
	assert_int_equal(unim_dma_error(), -ESTALE);
	assert_int_equal(unim_dma_wait_notify(c, 0, 1, LONG_MS), -ESTALE);
	unim_free_buf(c);
	unim_free_buf(a);
}

#define MANY	8		/* transfers at once */

/* Submit this transfer many times, again if all of them end too early. Returns
 * the index of one that is under way. */
static int submit_many(const struct unim_dma_request *q,
		       unim_dma_transfer_id_t id[MANY])
{
	unim_dma_status_t status;

	for (;;) {
		for (int i = 0; i < MANY; i++)
			assert_int_equal(unim_dma_submit(q, &id[i]), 0);
		for (int i = 0; i < MANY; i++) {
			assert_int_equal(unim_dma_test(id[i], &status), 0);
			if (status == DMA_STARTED)
				return i;
		}
		for (int i = 0; i < MANY; i++)
			assert_int_equal(unim_dma_wait(id[i], LONG_MS), 0);
	}
}

/* The owner frees one buffer of a transfer that is under way: what the transfer
 * has read or written since then may be nothing, so it fails. */
static void free_under_way(bool put, void *memory)
{
	unim_dma_buffer_t *freed = buffer_on(0, BIG);
	unim_dma_buffer_t *kept = buffer_on(0, BIG);
	unim_dma_buffer_t *found = unim_get_buf(unim_get_buf_id(freed));
	struct unim_dma_request q = {
		.src = kept, .dst = kept, .src_mem = memory,
		.dst_mem = memory, .size = BIG,
	};
	unim_dma_transfer_id_t id[MANY];
	int i;

	assert_non_null(found);
	if (memory != NULL)
		q.src = q.dst = NULL;
	if (put)
		q.dst = found;
	else
		q.src = found;
	i = submit_many(&q, id);
	unim_free_buf(freed);
	assert_int_equal(unim_dma_wait(id[i], LONG_MS), -ESTALE);
	for (i++; i < MANY; i++)
		assert_int_not_equal(unim_dma_wait(id[i], LONG_MS),
				     -ETIMEDOUT);
	unim_free_buf(found);
	unim_free_buf(kept);
}

static void test_freed_under_way(void **state)
{
	uint8_t *memory = malloc(BIG);

	(void)state;
	assert_non_null(memory);
	free_under_way(false, NULL);
	free_under_way(true, NULL);
	free_under_way(false, memory);
	free_under_way(true, memory);
	free(memory);
}

HOST_MAIN(
	cmocka_unit_test(test_init),
	cmocka_unit_test(test_concurrent_inits),
	cmocka_unit_test(test_other_version),
	RDMA_TEST(test_buffers),
	RDMA_TEST(test_refused_buffers),
	RDMA_TEST(test_freeing),
	RDMA_TEST(test_global_addresses),
	RDMA_TEST(test_many_buffers),
	RDMA_TEST(test_beyond_256_mib),
	RDMA_TEST(test_transfers),
	RDMA_TEST(test_no_copy),
	RDMA_TEST(test_refused_transfers),
	RDMA_TEST(test_freed_buffer),
	RDMA_TEST(test_freed_under_way),
)
