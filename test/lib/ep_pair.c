/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ep_pair.c - endpoints of one process, for tests; see ep_pair.h.
 *
 * Owns the table of all open endpoints, which every wait polls, and the memory
 * of ep_alloc(). Closes the endpoints that a test left open. Messages are in
 * ep_xfer.c, one-sided operations in os_pair.c.
 */
#include <rdma/providers/fi_prov.h>

#include "lib/ep_pair.h"
#include "unm_env.h"

#define PATIENCE_US	(UINT64_C(60000000) * (UNIT_SLOW ? 5 : 1))
#define SETTLE_US	1000		/* some rounds of house-keeping */
#define SETTLE_ROUNDS	200

extern struct fi_provider *fi_prov_ini(void);

static struct ep eps[EP_MAX];
static void *mems[EP_ALLOCS];		/* of ep_alloc() */

/* ---- Time ------------------------------------------------------------ */

uint64_t ep_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

uint64_t ep_deadline(void)
{
	return ep_now() + PATIENCE_US;
}

void ep_in_time(uint64_t deadline, const char *what)
{
	if (ep_now() > deadline)
		unit_fail("it hangs: %s", what);
}

/* ---- Opening --------------------------------------------------------- */

__attribute__((constructor))
static void never_yield(void)
{
	setenv("FI_UNIMEM_SPIN", "1000000000", 0);
}

void ep_threads(void)
{
	unsetenv("FI_UNIMEM_SPIN");
}

bool ep_inside(void)
{
	return getenv("UNM_TEST_LIBFABRIC") == NULL;
}

void ep_test_inside(void **state)
{
	EP_NEEDS_INSIDE();
	((CMUnitTestFunction)*state)(NULL);
}

static struct fi_provider *provider(void)
{
	static struct fi_provider *prov;

	if (prov == NULL)
		prov = fi_prov_ini();
	return prov;
}

int ep_getinfo_at(const char *node, const char *service, uint64_t flags,
		  const struct fi_info *hints, struct fi_info **info)
{
	if (!ep_inside())
		return fi_getinfo(EP_VERSION, node, service, flags, hints,
				  info);
	return provider()->getinfo(EP_VERSION, node, service, flags, hints,
				   info);
}

int ep_getinfo(const struct fi_info *hints, struct fi_info **info)
{
	return ep_getinfo_at(NULL, NULL, 0, hints, info);
}

int ep_fabric(struct fi_info *info, struct fid_fabric **fabric)
{
	if (!ep_inside())
		return fi_fabric(info->fabric_attr, fabric, NULL);
	return provider()->fabric(info->fabric_attr, fabric, NULL);
}

struct fi_info *ep_hints(const struct ep_want *want)
{
	struct fi_info *hints = fi_allocinfo();

	assert_non_null(hints);
	if (!ep_inside())
		hints->fabric_attr->prov_name = strdup("unimem");
	hints->caps = want->caps;
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->op_flags = want->tx_op_flags;
	hints->rx_attr->op_flags = want->rx_op_flags;
	hints->domain_attr->threading = want->threading != FI_THREAD_UNSPEC ?
		want->threading : FI_THREAD_DOMAIN;
	hints->domain_attr->av_type = want->av_type != FI_AV_UNSPEC ?
		want->av_type : FI_AV_TABLE;
	hints->domain_attr->mr_mode = want->mr_mode;
	hints->domain_attr->data_progress = want->progress;
	return hints;
}

static void open_domain(struct ep *e)
{
	struct fi_av_attr av = {
		.type = e->info->domain_attr->av_type,
		.count = e->want.av_count,
	};

	if (e->want.with != NULL) {
		e->fabric = e->want.with->fabric;
		e->domain = e->want.with->domain;
		e->av = e->want.with->av;
		return;
	}
	assert_int_equal(ep_fabric(e->info, &e->fabric), 0);
	assert_int_equal(fi_domain(e->fabric, e->info, &e->domain, NULL), 0);
	assert_int_equal(fi_av_open(e->domain, &av, &e->av, NULL), 0);
}

static void open_queues(struct ep *e)
{
	const struct ep_want *w = &e->want;
	struct fi_cntr_attr cntr = { .events = FI_CNTR_EVENTS_COMP };
	struct fi_cq_attr cq = {
		.size = w->cq_size,
		.format = w->format != FI_CQ_FORMAT_UNSPEC ? w->format :
			FI_CQ_FORMAT_TAGGED,
		.wait_obj = w->wait,
	};

	assert_int_equal(fi_cq_open(e->domain, &cq, &e->cq, NULL), 0);
	if (w->two_cqs)
		assert_int_equal(fi_cq_open(e->domain, &cq, &e->txcq, NULL),
				 0);
	if (!w->cntrs)
		return;
	assert_int_equal(fi_cntr_open(e->domain, &cntr, &e->txcntr, NULL), 0);
	assert_int_equal(fi_cntr_open(e->domain, &cntr, &e->rxcntr, NULL), 0);
}

static void bind_all(struct ep *e)
{
	const struct ep_want *w = &e->want;

	assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), 0);
	if (!w->no_rxcq && !w->no_txcq && !w->two_cqs)
		assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_TRANSMIT |
					    FI_RECV | w->cq_flags), 0);
	else if (!w->no_rxcq)
		assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_RECV |
					    w->cq_flags), 0);
	if (w->two_cqs || (w->no_rxcq && !w->no_txcq))
		assert_int_equal(fi_ep_bind(e->ep, w->two_cqs ?
					    &e->txcq->fid : &e->cq->fid,
					    FI_TRANSMIT | w->cq_flags), 0);
	if (!w->cntrs)
		return;
	assert_int_equal(fi_ep_bind(e->ep, &e->txcntr->fid, FI_SEND), 0);
	assert_int_equal(fi_ep_bind(e->ep, &e->rxcntr->fid, FI_RECV), 0);
}

struct ep *ep_open(const struct ep_want *want)
{
	static const struct ep_want none;
	struct fi_info *hints;
	struct ep *e = eps;

	while (e->open)
		assert_true(++e < eps + EP_MAX);
	memset(e, 0, sizeof(*e));
	e->open = true;
	e->want = want != NULL ? *want : none;
	hints = ep_hints(&e->want);
	assert_int_equal(ep_getinfo_at(NULL, e->want.service,
				       e->want.service != NULL ? FI_SOURCE : 0,
				       hints, &e->info), 0);
	fi_freeinfo(hints);
	/* a domain takes modes that fi_getinfo() does not ask for */
	e->info->domain_attr->mr_mode = e->want.mr_mode;
	open_domain(e);
	open_queues(e);
	assert_int_equal(fi_endpoint(e->domain, e->info, &e->ep, NULL), 0);
	bind_all(e);
	if (!e->want.disabled)
		assert_int_equal(fi_enable(e->ep), 0);
	return e;
}

static int close_fid(struct fid *fid)
{
	return fid != NULL ? fi_close(fid) : 0;
}

/* Close in the order MPICH does; the sum of what went wrong. */
static int close_all(struct ep *e)
{
	bool shared = e->want.with != NULL;
	int ret = 0;

	for (int i = 0; i < EP_MAX; i++)	/* guests first */
		if (eps[i].open && eps[i].want.with == e)
			ret += close_all(&eps[i]);
	ret += close_fid(e->ep != NULL ? &e->ep->fid : NULL);
	ret += close_fid(e->cq != NULL ? &e->cq->fid : NULL);
	ret += close_fid(e->txcq != NULL ? &e->txcq->fid : NULL);
	if (!shared)
		ret += close_fid(e->av != NULL ? &e->av->fid : NULL);
	ret += close_fid(e->txcntr != NULL ? &e->txcntr->fid : NULL);
	ret += close_fid(e->rxcntr != NULL ? &e->rxcntr->fid : NULL);
	if (!shared) {
		ret += close_fid(e->domain != NULL ? &e->domain->fid : NULL);
		ret += close_fid(e->fabric != NULL ? &e->fabric->fid : NULL);
	}
	fi_freeinfo(e->info);
	free(e->comp);
	e->open = false;
	return ret;
}

void ep_close(struct ep *e)
{
	assert_int_equal(close_all(e), 0);
}

int ep_teardown(void **state)
{
	int ret = 0;

	for (int i = EP_MAX - 1; i >= 0; i--)
		if (eps[i].open)
			ret += close_all(&eps[i]);
	for (int i = 0; i < EP_ALLOCS; i++) {
		free(mems[i]);
		mems[i] = NULL;
	}
	return ret;
}

void *ep_alloc(size_t bytes)
{
	int i = 0;

	while (mems[i] != NULL)
		assert_true(++i < EP_ALLOCS);
	mems[i] = calloc(1, bytes);
	assert_non_null(mems[i]);
	return mems[i];
}

fi_addr_t ep_insert(struct ep *into, struct ep *whose)
{
	char name[64];
	size_t len = sizeof(name);
	fi_addr_t addr = FI_ADDR_NOTAVAIL;

	assert_int_equal(fi_getname(&whose->ep->fid, name, &len), 0);
	assert_int_equal(fi_av_insert(into->av, name, 1, &addr, 0, NULL), 1);
	return addr;
}

struct ep_pair ep_pair(const struct ep_want *want)
{
	struct ep_pair p;

	p.a = ep_open(want);
	p.b = ep_open(want);
	ep_insert(p.a, p.a);
	p.ab = ep_insert(p.a, p.b);
	p.ba = ep_insert(p.b, p.a);
	ep_insert(p.b, p.b);
	return p;
}

void ep_pair_close(struct ep_pair *p)
{
	ep_close(p->a);
	ep_close(p->b);
}

bool ep_rendezvous(size_t len)
{
	assert_int_equal(unm_env_load(), 0);
	if (g_unm_env.inline_on && len <= 8)
		return false;
	return len > g_unm_env.eager_max || g_unm_env.eager_max == 0;
}

/* ---- Completions ----------------------------------------------------- */

static const size_t entry_bytes[] = {
	[FI_CQ_FORMAT_UNSPEC] = sizeof(struct fi_cq_tagged_entry),
	[FI_CQ_FORMAT_CONTEXT] = sizeof(struct fi_cq_entry),
	[FI_CQ_FORMAT_MSG] = sizeof(struct fi_cq_msg_entry),
	[FI_CQ_FORMAT_DATA] = sizeof(struct fi_cq_data_entry),
	[FI_CQ_FORMAT_TAGGED] = sizeof(struct fi_cq_tagged_entry),
};

static void keep(struct ep *e, const struct ep_comp *c)
{
	if (e->ncomp == e->comp_max) {
		e->comp_max = e->comp_max ? 2 * e->comp_max : 64;
		e->comp = realloc(e->comp, e->comp_max * sizeof(*e->comp));
		assert_non_null(e->comp);
	}
	e->comp[e->ncomp++] = *c;
}

static int poll_error(struct ep *e, struct fid_cq *cq)
{
	struct fi_cq_err_entry err = { 0 };

	assert_int_equal(fi_cq_readerr(cq, &err, 0), 1);
	keep(e, &(struct ep_comp){
		.context = err.op_context, .flags = err.flags, .len = err.len,
		.data = err.data, .tag = err.tag, .buf = err.buf,
		.src = FI_ADDR_NOTAVAIL, .err = err.err,
		.prov_errno = err.prov_errno, .olen = err.olen,
	});
	assert_int_not_equal(err.err, 0);
	if (!(err.flags & FI_RECV))	/* bytes that no buffer had room for */
		assert_int_equal(err.olen, 0);
	return 1;
}

static int poll_cq(struct ep *e, struct fid_cq *cq)
{
	union {				/* formats are prefixes */
		struct fi_cq_tagged_entry all;
		char bytes[8 * sizeof(struct fi_cq_tagged_entry)];
	} u;
	size_t size = entry_bytes[e->want.format];
	fi_addr_t src[8];
	ssize_t n = fi_cq_readfrom(cq, &u, 8, src);

	if (n == -FI_EAVAIL)
		return poll_error(e, cq);
	if (n == -FI_EAGAIN)
		return 0;
	assert_in_range(n, 1, 8);
	for (ssize_t i = 0; i < n; i++) {
		struct fi_cq_tagged_entry t = { 0 };

		memcpy(&t, u.bytes + (size_t)i * size, size);
		keep(e, &(struct ep_comp){
			.context = t.op_context, .flags = t.flags,
			.len = t.len, .buf = t.buf, .data = t.data,
			.tag = t.tag, .src = src[i],
		});
	}
	return (int)n;
}

int ep_poll(struct ep *e)
{
	int n = poll_cq(e, e->cq);

	if (e->txcq != NULL)
		n += poll_cq(e, e->txcq);
	if (e->want.no_rxcq && e->want.no_txcq) {	/* counters only */
		fi_cntr_read(e->txcntr);
		fi_cntr_read(e->rxcntr);
	}
	return n;
}

void ep_step(void)
{
	for (int i = 0; i < EP_MAX; i++)
		if (eps[i].open && !eps[i].want.disabled)
			ep_poll(&eps[i]);
}

void ep_settle(void)
{
	uint64_t end = ep_now() + SETTLE_US;

	for (int i = 0; i < SETTLE_ROUNDS || ep_now() < end; i++)
		ep_step();
}

bool ep_take(struct ep *e, const void *context, struct ep_comp *c)
{
	for (size_t i = 0; i < e->ncomp; i++) {
		if (e->comp[i].context != context)
			continue;
		*c = e->comp[i];
		memmove(&e->comp[i], &e->comp[i + 1],
			(--e->ncomp - i) * sizeof(*c));
		return true;
	}
	return false;
}

static void print_left(const struct ep *e)
{
	for (size_t i = 0; i < e->ncomp; i++)
		print_error("left: context %p flags 0x%llx len %llu tag "
			    "0x%llx err %d\n", e->comp[i].context,
			    (unsigned long long)e->comp[i].flags,
			    (unsigned long long)e->comp[i].len,
			    (unsigned long long)e->comp[i].tag,
			    e->comp[i].err);
}

struct ep_comp ep_wait(struct ep *e, const void *context)
{
	uint64_t end = ep_deadline();
	struct ep_comp c = { 0 };

	while (!ep_take(e, context, &c)) {
		ep_step();
		if (ep_now() > end)
			print_left(e);
		ep_in_time(end, "waiting for a completion");
	}
	return c;
}

struct ep_comp ep_next(struct ep *e)
{
	struct ep_comp c = { 0 };

	EP_UNTIL(e->ncomp != 0);
	ep_take(e, e->comp[0].context, &c);
	return c;
}

void ep_quiet(struct ep *e)
{
	ep_settle();
	print_left(e);
	assert_int_equal(e->ncomp, 0);
}

void ep_pair_quiet(struct ep_pair *p)
{
	ep_quiet(p->a);
	ep_quiet(p->b);
}

void ep_sent(struct ep *e, const void *context)
{
	struct ep_comp c = ep_wait(e, context);

	if (c.err != 0)
		unit_fail("send failed: %s", fi_strerror(c.err));
	if (e->want.format != FI_CQ_FORMAT_CONTEXT)
		assert_true(c.flags & FI_SEND);
}

struct ep_comp ep_received(struct ep *e, const void *context)
{
	struct ep_comp c = ep_wait(e, context);

	if (c.err != 0)
		unit_fail("receive failed: %s", fi_strerror(c.err));
	if (e->want.format != FI_CQ_FORMAT_CONTEXT)
		assert_true(c.flags & FI_RECV);
	return c;
}
