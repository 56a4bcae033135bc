/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_edges.c - corner cases of one-sided operations: several ranges of which
 * one is refused, regions with unmapped pages, more regions than cached remote
 * keys, an endpoint that closes meanwhile.
 */
#include <fcntl.h>

#include "api/unm_domain.h"
#include "api/unm_ep.h"
#include "api/unm_mr.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_region.h"
#include "lib/os_pair.h"
#include "lib/raw_peer.h"
#include "unm_env.h"
#include "util/unm_maps.h"

#define SECOND	77			/* key of another region */
#define LEN	4096

static ssize_t write_ranges(struct os_pair *p, const void *buf, size_t len,
			    const struct fi_rma_iov *to, size_t n,
			    uint64_t flags, void *context)
{
	struct iovec iov = { (void *)buf, len };
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .addr = p->ab,
		.rma_iov = to, .rma_iov_count = n, .context = context,
		.data = 0x1234,
	};

	return fi_writemsg(p->a->ep, &msg, flags | FI_COMPLETION);
}

/* If one range is refused, the target gets no remote CQ data. */
static void test_refused_range_brings_no_data(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, LEN);
	const struct fi_rma_iov bad[] = { { 0, 8, SECOND }, { 0, 8, p.key } };
	const struct fi_rma_iov good[] = { { 8, 8, p.key }, { 0, 8, p.key } };
	struct ep_comp c;
	char buf[16] = "the first, then";

	EP_OK(write_ranges(&p, buf, 16, bad, 2, FI_REMOTE_CQ_DATA, buf));
	assert_int_equal(ep_wait(p.a, buf).err, FI_EKEYREJECTED);
	ep_quiet(p.b);
	EP_OK(write_ranges(&p, buf, 16, good, 2, FI_REMOTE_CQ_DATA, buf));
	assert_int_equal(ep_wait(p.a, buf).err, 0);
	p.nwr++;
	c = ep_next(p.b);
	assert_int_equal(c.data, 0x1234);
	assert_memory_equal(p.mem, buf + 8, 8);
	assert_memory_equal(p.mem + 8, buf, 8);
	ep_quiet(p.b);
	os_close(&p);
}

/* A region's counter counts each range in the region, also a range that is not
 * the last of its operation. */
static void test_every_region_counts(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, LEN);
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *counts[2];
	uint8_t *other = ep_alloc(LEN), buf[64] = "anything";
	struct fid_mr *mr = os_reg(p.b, other, LEN, OS_ALL, SECOND);
	const struct fi_rma_iov to[] = {
		{ 0, 20, SECOND }, { 64, 20, p.key },
	};

	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_cntr_open(p.b->domain, &attr, &counts[i],
					      NULL), 0);
		assert_int_equal(fi_mr_bind(i == 0 ? mr : p.mr,
					    &counts[i]->fid, FI_REMOTE_WRITE),
				 0);
	}
	for (uint64_t n = 1; n < 5; n++) {
		EP_OK(write_ranges(&p, buf, 40, to, 2, 0, buf));
		assert_int_equal(ep_wait(p.a, buf).err, 0);
		assert_int_equal(fi_cntr_read(counts[0]), n);
		assert_int_equal(fi_cntr_read(counts[1]), n);
	}
	EP_CLOSE(&mr->fid, &p.mr->fid);
	for (int i = 0; i < 2; i++)
		assert_int_equal(fi_close(&counts[i]->fid), 0);
	p.mr = NULL;
	os_close(&p);
}

static void test_lengths_beyond_all(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, LEN);
	const struct fi_rma_iov to[] = {
		{ 0, UINT64_MAX - 7, p.key }, { 0, 16, p.key },
	};
	char buf[8] = "eight b";

	assert_int_equal(write_ranges(&p, buf, 8, to, 2, 0, buf), -FI_EINVAL);
	assert_true(*p.mem == 0);
	os_close(&p);
}

/* A region of all addresses: an access to unmapped memory is answered with an
 * error. */
static void test_holes(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = mmap(NULL, 3 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at = (uintptr_t)mem, one = 1, in = 0;
	struct fid_mr *mr;

	assert_true(mem != MAP_FAILED);
	assert_int_equal(mprotect(mem + page, page, PROT_READ), 0);
	assert_int_equal(munmap(mem + 2 * page, page), 0);
	mr = os_reg(p.b, NULL, SIZE_MAX, OS_ALL, SECOND);
	g_unm_env.direct = false;
	EP_OK(fi_write(p.a->ep, &one, 8, NULL, p.ab, at, SECOND, &in));
	assert_int_equal(ep_wait(p.a, &in).err, 0);
	EP_OK(fi_atomic(p.a->ep, &one, 1, NULL, p.ab, at, SECOND, FI_UINT64,
			FI_SUM, &in));
	assert_int_equal(ep_wait(p.a, &in).err, 0);
	assert_int_equal(*(uint64_t *)(void *)mem, 2);
	EP_OK(fi_read(p.a->ep, &in, 8, NULL, p.ab, at + page, SECOND, &in));
	assert_int_equal(ep_wait(p.a, &in).err, 0);
	/* unmapped, read-only, partly unmapped */
	for (int i = 0; i < 5; i++) {
		const uint64_t to[] = { 8, at + page, at + 2 * page,
					at + 2 * page - 4, at + 2 * page };

		if (i == 1 || i == 4)
			EP_OK(fi_atomic(p.a->ep, &one, 1, NULL, p.ab, to[i],
					SECOND, FI_UINT64, FI_SUM, &in));
		else if (i == 2)
			EP_OK(fi_read(p.a->ep, &in, 8, NULL, p.ab, to[i],
				      SECOND, &in));
		else
			EP_OK(fi_write(p.a->ep, &one, 8, NULL, p.ab, to[i],
				       SECOND, &in));
		assert_int_equal(ep_wait(p.a, &in).err, FI_EFAULT);
	}
	g_unm_env.direct = true;
	assert_int_equal(fi_close(&mr->fid), 0);
	munmap(mem, 2 * page);
}

/* Puts 8 bytes, adds a number and gets 8 bytes, each as a request. */
static void expect_all(struct ep_pair *p, uint64_t addr, uint64_t key, int err)
{
	uint64_t one = 1, in = 0;

	EP_OK(fi_write(p->a->ep, &one, 8, NULL, p->ab, addr, key, &in));
	assert_int_equal(ep_wait(p->a, &in).err, err);
	EP_OK(fi_atomic(p->a->ep, &one, 1, NULL, p->ab, addr, key, FI_UINT64,
			FI_SUM, &in));
	assert_int_equal(ep_wait(p->a, &in).err, err);
	if (err != 0)
		return;
	EP_OK(fi_read(p->a->ep, &in, 8, NULL, p->ab, addr, key, &in));
	assert_int_equal(ep_wait(p->a, &in).err, 0);
	assert_int_equal(in, 2);
}

/* Memory that does not have the region's rights on every page: accesses to such
 * pages fail, other pages can be accessed. Pages that are mapped later can be
 * accessed as well, and fi_mr_refresh() ends the checks. */
static void test_memory_without_the_rights(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const int all = PROT_READ | PROT_WRITE;
	char *mem = mmap(NULL, 3 * page, all, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			 0);
	struct iovec whole = { mem, 3 * page };
	struct fid_mr *mr[4];

	assert_true(mem != MAP_FAILED);
	assert_int_equal(mprotect(mem + page, page, PROT_READ), 0);
	assert_int_equal(munmap(mem + 2 * page, page), 0);
	for (uint64_t i = 0; i < 3; i++)
		mr[i] = os_reg(p.b, mem + i * page, page, OS_ALL, i);
	mr[3] = os_reg(p.b, mem, 3 * page, OS_ALL, 3);
	assert_false(((struct unm_mr *)mr[0])->holes);
	g_unm_env.direct = false;
	expect_all(&p, 0, 0, 0);
	expect_all(&p, 0, 1, FI_EFAULT);
	expect_all(&p, 0, 2, FI_EFAULT);
	memset(mem, 0, page);
	expect_all(&p, 8, 3, 0);
	expect_all(&p, page, 3, FI_EFAULT);
	expect_all(&p, 2 * page - 4, 3, FI_EFAULT);
	assert_int_equal(mprotect(mem + page, page, all), 0);
	assert_true(mmap(mem + 2 * page, page, all, MAP_PRIVATE |
			 MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
	expect_all(&p, 16, 1, 0);
	expect_all(&p, 16, 2, 0);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(fi_mr_refresh(mr[i], &whole, 1, 0), 0);
		assert_false(((struct unm_mr *)mr[i])->holes);
		assert_int_equal(fi_close(&mr[i]->fid), 0);
	}
	g_unm_env.direct = true;
	munmap(mem, 3 * page);
}

/* Whether memory is mapped with given rights, by both ways to ask the
 * kernel. */
static void test_mappings(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	char *mem = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct { size_t off, len; int prot, ret; } asked[] = {
		{ 0, page, PROT_READ | PROT_WRITE, 0 },
		{ page - 1, 1, PROT_WRITE, 0 },
		{ page - 1, 2, PROT_WRITE, -FI_EACCES },
		{ page - 1, 2, PROT_READ, 0 },
		{ 0, 2 * page, PROT_READ, 0 },
		{ 0, 2 * page + 1, PROT_READ, -FI_EFAULT },
		{ 2 * page, page, PROT_READ, -FI_EFAULT },
		{ 3 * page - 1, 2, PROT_READ, -FI_EFAULT },
		{ 3 * page, 1, PROT_READ, -FI_EACCES },
		{ 2 * page, 0, PROT_READ, 0 },
	};

	assert_true(mem != MAP_FAILED);
	assert_int_equal(mprotect(mem + page, page, PROT_READ), 0);
	assert_int_equal(munmap(mem + 2 * page, page), 0);
	assert_int_equal(mprotect(mem + 3 * page, page, PROT_NONE), 0);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

		assert_int_equal(unm_maps_allow(mem + asked[i].off,
						asked[i].len, asked[i].prot),
				 asked[i].ret);
		assert_int_equal(unm_maps_allow_text(fd, mem + asked[i].off,
						     asked[i].len,
						     asked[i].prot),
				 asked[i].ret);
		close(fd);
	}
	munmap(mem, 4 * page);
}

/* ---- Cached remote keys ------------------------------------------------ */

/* While a request waits for its target, puts and gets are executed directly. */
static void test_direct_beside_requests(void **state)
{
	for (int way = OS_ATTACH; way < OS_WAYS; way++) {
		struct os_pair p;
		char buf[8] = "passing", in[8];
		uint64_t end = ep_deadline();

		if (!os_runs(way))
			continue;
		p = os_open(way, LEN);
		EP_OK(fi_inject_writedata(p.a->ep, "x", 1, 5, p.ab, 100,
					  p.key));
		EP_OK(fi_write(p.a->ep, buf, 8, NULL, p.ab, 8, p.key, buf));
		EP_OK(fi_read(p.a->ep, in, 8, NULL, p.ab, 8, p.key, in));
		for (int done = 0; done < 2;) {	/* b does not poll */
			struct ep_comp c;

			ep_poll(p.a);
			done += ep_take(p.a, buf, &c) + ep_take(p.a, in, &c);
			ep_in_time(end, "what needs no target");
		}
		assert_memory_equal(p.mem + 8, buf, 8);
		assert_int_equal(p.mem[100], 0);
		EP_UNTIL(p.mem[100] == 'x');
		ep_next(p.b);
		os_close(&p);
	}
}

/* More regions than cached remote keys: those used last have one. */
static void test_many_regions(void **state)
{
	struct os_pair p;
	struct fid_mr **mr;
	enum { MANY = 1100 };
	uint64_t before;

	unit_needs(os_goes(OS_DMABLE));
	p = os_open(OS_DMABLE, LEN);
	mr = calloc(MANY, sizeof(*mr));
	for (uint64_t i = 0; i < MANY; i++)
		mr[i] = os_reg(p.b, p.mem, LEN, OS_ALL, 1000 + i);
	for (uint64_t i = 0; i < MANY; i++) {
		EP_OK(fi_inject_write(p.a->ep, "x", 1, p.ab, i, 1000 + i));
		ep_step();
		ep_step();
	}
	ep_settle();
	before = os_requests(&p);
	for (uint64_t i = MANY - 1000; i < MANY; i++) {
		EP_OK(fi_inject_write(p.a->ep, "y", 1, p.ab, i, 1000 + i));
		assert_int_equal(p.mem[i], 'y');
	}
	assert_int_equal(os_requests(&p), before);
	for (int i = 0; i < MANY; i++)
		assert_int_equal(fi_close(&mr[i]->fid), 0);
	free(mr);
	os_close(&p);
}

/* An injected write that waits for an earlier operation is executed before the
 * endpoint is closed. */
static void test_injected_steps_are_not_lost(void **state)
{
	struct os_pair p;
	uint8_t other[64];
	struct fid_mr *mr;

	unit_needs(os_goes(OS_ATTACH));
	p = os_open(OS_ATTACH, LEN);
	mr = os_reg(p.b, other, sizeof(other), OS_ALL, SECOND);
	EP_OK(fi_inject_write(p.a->ep, "x", 1, p.ab, 0, SECOND));
	ep_settle();
	/* a sees the revocation in its next step */
	assert_int_equal(fi_close(&mr->fid), 0);
	EP_OK(fi_inject_write(p.a->ep, "kept", 4, p.ab, 200, p.key));
	assert_int_equal(fi_close(&p.a->ep->fid), 0);
	p.a->ep = NULL;
	ep_settle();
	assert_memory_equal(p.mem + 200, "kept", 4);
	EP_CLOSE(&p.mr->fid, &p.wr->fid, &p.rd->fid);
	free(p.mem);
}

/* ---- A closing endpoint ------------------------------------------------ */

static void *close_it(void *arg)
{
	assert_int_equal(fi_close(arg), 0);
	return NULL;
}

static bool is_closing(struct unm_ep *ep)
{
	bool closing;

	unm_lock(ep->domain);
	closing = ep->closing;
	unm_unlock(ep->domain);
	return closing;
}

/* While fi_close() waits for an initiator that is inside, no remote key is
 * sent. */
static void test_no_remote_keys_while_closing(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct ep *v = ep_open(&want);
	struct unm_ep *ep = (struct unm_ep *)v->ep;
	struct raw *r[2] = { raw_open(), raw_open() };
	uint64_t w[UNM_WIRE_WORDS_MAX], put[2] = { SECOND, 0 };
	const uint64_t get[4] = { SECOND, 0, 1, 9 };
	uint64_t head = hal_head(UNM_WIRE_PUT, 1 | UNM_WIRE_ASK_RKEY);
	uint64_t end = ep_deadline();
	uint8_t mem[64];
	pthread_t closer;
	struct fid_mr *mr = os_reg(v, mem, sizeof(mem), OS_ALL, SECOND);

	for (int i = 0; i < 2; i++) {
		raw_insert(v, r[i]);
		raw_connect(r[i], v);
		assert_true(raw_hello(r[i]));
		assert_true(raw_send_words(r[i], UNM_WIRE_GET, get, 4));
		raw_expect(r[i], UNM_WIRE_HELLO, w);
		raw_expect(r[i], UNM_WIRE_RESULT, w);
	}
	assert_true(raw_send(r[0], head, put, 2, "x", 1));
	raw_expect(r[0], UNM_WIRE_RKEY, w);
	assert_int_equal(hal_rx_back_sync(r[0]->peer, UNM_PEER_BACK_GUARD, 1),
			 0);
	ep_settle();
	closer = unit_thread(close_it, &v->ep->fid);
	while (!is_closing(ep))
		ep_in_time(end, "closing");
	assert_true(raw_send(r[1], head, put, 2, "y", 1));
	while (hal_tx_back(r[1]->peer, UNM_PEER_BACK_APPLIED) != 1) {
		raw_step();
		ep_in_time(end, "the request");
	}
	assert_int_equal(hal_rx_back_sync(r[0]->peer, UNM_PEER_BACK_GUARD, 2),
			 0);
	assert_int_equal(pthread_join(closer, NULL), 0);
	v->ep = NULL;
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(mem[0], 'y');
	assert_null(hal_rx_peek(r[1]->peer, &head));	/* no remote key */
}

/* A peer that ends the connection after an error, and lives, has not closed its
 * endpoint: receives that name it end on both sides. */
static void test_disconnected_after_an_error(void **state)
{
	struct ep *a = ep_open(NULL), *b = ep_open(NULL);
	fi_addr_t ab = ep_insert(a, b), ba = ep_insert(b, a);
	struct unm_ep *ep = (struct unm_ep *)b->ep;
	char x[8] = "", y[8], z[8];

	EP_OK(fi_trecv(a->ep, x, 8, NULL, ab, 1, 0, x));
	EP_OK(fi_tinject(b->ep, z, 8, ba, 1));
	ep_wait(a, x);
	EP_OK(fi_trecv(b->ep, y, 8, NULL, ba, 1, 0, y));
	EP_OK(fi_tinject(a->ep, z, 8, ab, 1));
	ep_wait(b, y);
	EP_OK(fi_trecv(a->ep, x, 8, NULL, ab, 9, 0, x));
	EP_OK(fi_trecv(b->ep, y, 8, NULL, ba, 9, 0, y));
	unm_peer_fail(unm_container(ep->peers.next, struct unm_peer, all),
		      "a test", 0);
	assert_int_equal(ep_wait(b, y).err, FI_ECONNABORTED);
	assert_int_equal(ep_wait(a, x).err, FI_ECONNRESET);
	assert_int_equal(fi_trecv(a->ep, x, 8, NULL, ab, 9, 0, x),
			 -FI_ECONNRESET);
	assert_int_equal(fi_trecv(b->ep, y, 8, NULL, ba, 9, 0, y),
			 -FI_ECONNRESET);
}

EP_THREADS_MAIN(
	RAW_TEST(test_refused_range_brings_no_data),
	RAW_TEST(test_every_region_counts),
	RAW_TEST(test_lengths_beyond_all),
	RAW_TEST(test_holes),
	RAW_TEST_INSIDE(test_memory_without_the_rights),
	RAW_TEST(test_mappings),
	RAW_TEST(test_direct_beside_requests),
	RAW_TEST(test_many_regions),
	RAW_TEST(test_injected_steps_are_not_lost),
	RAW_TEST_INSIDE(test_no_remote_keys_while_closing),
	RAW_TEST_INSIDE(test_disconnected_after_an_error),
)
