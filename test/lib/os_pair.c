/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * os_pair.c - one-sided operations between two endpoints, each way there is;
 * see os_pair.h.
 *
 * Owns the memory of each way, its registration, the counters of operations,
 * and os_goes(), which decides whether this machine offers a way.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_stats.h"
#include "fi_ext_unimem.h"
#include "lib/os_pair.h"
#include "unm_env.h"

#define KEY	(UINT64_C(1) << 63 | 0x1234)

static const struct fi_unimem_mem_ops *mem_ops(struct ep *e)
{
	struct fi_unimem_mem_ops *ops;

	assert_int_equal(fi_open_ops(&e->domain->fid, FI_UNIMEM_MEM, 0,
				     (void **)&ops, NULL), 0);
	return ops;
}

/* Shared memory of a memfd whose descriptor is closed. The address is aligned
 * to a cache line only, so that the provider cannot rely on page alignment. The
 * page before holds the length of the mapping. */
#define PAGE	((size_t)4096)
#define HEAD	(PAGE + 64)

static void *shared_alloc(size_t len)
{
	int fd = memfd_create("os-shared", MFD_CLOEXEC);
	size_t bytes = HEAD + len;
	void *map;

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(map != MAP_FAILED);
	close(fd);
	memcpy(map, &bytes, sizeof(bytes));
	return (char *)map + HEAD;
}

static void shared_free(void *mem)
{
	char *map = (char *)mem - HEAD;
	size_t bytes;

	memcpy(&bytes, map, sizeof(bytes));
	assert_int_equal(munmap(map, bytes), 0);
}

void *os_alloc(struct ep *e, enum os_way way, size_t len)
{
	void *mem = NULL;

	if (len == 0)
		len = 1;
	if (way == OS_DMABLE)
		assert_int_equal(mem_ops(e)->alloc(e->domain, len, 0, 0, &mem),
				 0);
	else
		mem = way == OS_SHARED ? shared_alloc(len) : calloc(1, len);
	assert_non_null(mem);
	return mem;
}

void os_free(struct ep *e, enum os_way way, void *mem)
{
	if (way == OS_DMABLE)
		assert_int_equal(mem_ops(e)->free(e->domain, mem), 0);
	else if (way == OS_SHARED)
		shared_free(mem);
	else
		free(mem);
}

struct fid_mr *os_reg(struct ep *e, void *buf, size_t len, uint64_t access,
		      uint64_t key)
{
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(e->domain, buf, len, access, 0, key, 0, &mr,
				   NULL), 0);
	if (e->want.mr_mode & FI_MR_ENDPOINT) {
		assert_int_equal(fi_mr_bind(mr, &e->ep->fid, 0), 0);
		assert_int_equal(fi_mr_enable(mr), 0);
	}
	return mr;
}

static struct fid_cntr *cntr(struct ep *e, uint64_t flags)
{
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *c;

	assert_int_equal(fi_cntr_open(e->domain, &attr, &c, NULL), 0);
	assert_int_equal(fi_ep_bind(e->ep, &c->fid, flags), 0);
	return c;
}

static struct unm_stats *stats(const struct ep *e)
{
	return ((struct unm_ep *)e->ep)->stats;
}

uint64_t os_direct(const struct os_pair *p)
{
	return stats(p->a)->tx_direct;
}

uint64_t os_requests(const struct os_pair *p)
{
	return stats(p->a)->tx_requests;
}

/* Returns whether a shared mapping can be mapped again, as the emulation does
 * it for OS_SHARED. qemu-user cannot. */
static bool maps_again(void)
{
	const size_t len = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, len, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	void *again;

	if (page == MAP_FAILED)
		return false;
	again = mremap(page, 0, len, MREMAP_MAYMOVE);
	munmap(page, len);
	if (again == MAP_FAILED)
		return false;
	munmap(again, len);
	return true;
}

bool os_goes(enum os_way way)
{
	struct hal_peer *hp;
	struct ep_pair p;
	bool goes;
	char byte;

	if (way == OS_REQUESTS)
		return true;
	if (!ep_inside() || (way == OS_SHARED && !maps_again()))
		return false;
	p = ep_pair(NULL);
	ep_settle();
	EP_OK(fi_recv(p.b->ep, &byte, 1, NULL, p.ba, &byte));
	EP_OK(fi_send(p.a->ep, "", 1, NULL, p.ab, &p));
	ep_wait(p.a, &p);
	ep_settle();
	hp = ((struct unm_ep *)p.a->ep)->peer_of[p.ab]->hp;
	/* on a busy machine the proof of who the peer is comes late */
	for (int i = 0; i < 10 && g_unm_env.attach && !hp->dma_any &&
	     (hp->hif->caps->flags & HAL_CAP_DMA_ANY); i++)
		ep_settle();
	goes = way == OS_ATTACH ? g_unm_env.attach && hp->dma_any :
		way == OS_DMABLE ? true :	/* of the own board */
		g_unm_env.alias && (hp->hif->caps->flags & HAL_CAP_ALIAS);
	ep_close(p.a);
	ep_close(p.b);
	return goes;
}

bool os_runs_in(enum os_way way, const char *test)
{
	static const char *const names[OS_WAYS] = {
		"requests", "attach", "dmable", "shared",
	};
	static const char *last;	/* test that called last: it may call
					 * in a loop */
	static unsigned told;		/* bit per way: line was printed */

	if (os_goes(way))
		return true;
	if (last != test)
		told = 0;
	last = test;
	if (!(told & 1u << way))
		print_message("skip way_%s_%s\n", test, names[way]);
	told |= 1u << way;
	return false;
}

/* Write until the provider executes a write directly: the first request makes b
 * send a remote key. Give up after five requests. */
static void learn_rkey(struct os_pair *p)
{
	uint64_t end = ep_deadline();
	uint8_t byte = 0;

	do {
		EP_OK(fi_inject_write(p->a->ep, &byte, 1, p->ab, p->base,
				      p->key));
		p->nwr++;
		/* not later, when the caller has written there */
		EP_UNTIL(fi_cntr_read(p->wr) == p->nwr);
		ep_settle();
		ep_in_time(end, "a remote key");
	} while (p->way != OS_REQUESTS && os_direct(p) == 0 &&
		 stats(p->a)->tx_requests < 5);
}

struct os_pair os_open_as(enum os_way way, size_t len,
			  const struct ep_want *a, const struct ep_want *b)
{
	struct os_pair p = { .way = way, .len = len };
	struct ep_want want = *a;

	want.disabled = true;
	p.a = ep_open(&want);
	p.wr = cntr(p.a, FI_WRITE);
	p.rd = cntr(p.a, FI_READ);
	assert_int_equal(fi_enable(p.a->ep), 0);
	p.a->want.disabled = false;
	p.b = ep_open(b);
	g_unm_env.direct = way != OS_REQUESTS;
	g_unm_env.prompt_us = 0;	/* small writes: attach, no requests */
	ep_insert(p.a, p.a);
	p.ab = ep_insert(p.a, p.b);
	p.ba = ep_insert(p.b, p.a);
	p.mem = os_alloc(p.b, way, len);
	p.mr = os_reg(p.b, p.mem, len, OS_ALL, KEY);
	p.key = fi_mr_key(p.mr);
	if (b->mr_mode & FI_MR_VIRT_ADDR)
		p.base = (uintptr_t)p.mem;
	if (len != 0)
		learn_rkey(&p);
	return p;
}

struct os_pair os_open(enum os_way way, size_t len)
{
	static const struct ep_want any;

	return os_open_as(way, len, &any, &any);
}

void os_all_done(struct os_pair *p)
{
	EP_UNTIL(fi_cntr_read(p->wr) >= p->nwr && fi_cntr_read(p->rd) >=
		 p->nrd);
	assert_int_equal(fi_cntr_read(p->wr), p->nwr);
	assert_int_equal(fi_cntr_read(p->rd), p->nrd);
	assert_int_equal(fi_cntr_readerr(p->wr), 0);
	assert_int_equal(fi_cntr_readerr(p->rd), 0);
}

void os_close(struct os_pair *p)
{
	if (p->mr != NULL)
		assert_int_equal(fi_close(&p->mr->fid), 0);
	os_free(p->b, p->way, p->mem);
	assert_int_equal(fi_close(&p->a->ep->fid), 0);
	p->a->ep = NULL;
	assert_int_equal(fi_close(&p->wr->fid), 0);
	assert_int_equal(fi_close(&p->rd->fid), 0);
	ep_close(p->a);
	ep_close(p->b);
}
