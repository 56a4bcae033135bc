/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_safe.c - FI_THREAD_SAFE: eight threads run every operation at once on
 * two endpoints.
 *
 * Each thread takes at random: messages, tagged messages, writes, reads and
 * atomics, by every kind of call; it cancels receives, also of other threads,
 * opens and closes regions, endpoints and addresses, reads queues and counters
 * and sleeps on them. Any thread may read any completion; but each operation
 * has exactly one, every byte is right, and every counter too.
 *
 * UNM_TEST_OPS: operations of each thread in each case (2,000).
 */
#include <poll.h>

#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "unit/safe.h"
#include "unm_env.h"

static const uint64_t cntr_flags[] = { FI_SEND, FI_RECV, FI_WRITE, FI_READ };

/* ---- Completions --------------------------------------------------------- */

/* Expect one more completion. */
void safe_arm(struct hand *h, struct half *half)
{
	CHECK(h->s, half->state == IDLE);
	half->state = POSTED;
	h->s->posted++;
}

static void half_ends(struct stage *s, struct half *half,
		      const struct fi_cq_tagged_entry *c, int err)
{
	enum half_state posted = POSTED;

	if (half == NULL ||
	    !atomic_compare_exchange_strong(&half->state, &posted, ENDING)) {
		CHECK(s, !"a completion that nobody awaits");
		return;
	}
	half->err = err;
	half->flags = c->flags;
	half->len = c->len;
	half->data = c->data;
	half->state = ENDED;
}

static void good_entry(struct stage *s, const struct fi_cq_tagged_entry *c)
{
	s->entries++;
	if (c->flags == (FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA)) {
		CHECK(s, c->op_context == NULL);
		safe_arrived(s, c->data);
		s->remote++;
		return;
	}
	half_ends(s, c->op_context, c, 0);
}

static void read_error(struct stage *s, struct side *d)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry c = { 0 };
	ssize_t n = fi_cq_readerr(d->e->cq, &err, 0);

	if (n == -FI_EAGAIN)		/* another thread was faster */
		return;
	CHECK(s, n == 1);
	if (err.err == FI_ECANCELED) {
		s->canceled++;
		d->failed[RCV]++;
	} else {
		CHECK(s, err.err == FI_EKEYREJECTED);
		d->failed[RD]++;
	}
	c.flags = err.flags;
	s->entries++;
	half_ends(s, err.op_context, &c, err.err);
}

static void read_queue(struct hand *h, struct side *d, bool sleep)
{
	size_t most = 1 + below(h, 4);
	struct fi_cq_tagged_entry c[4];
	fi_addr_t src[4];
	ssize_t n;

	if (sleep)
		n = fi_cq_sread(d->e->cq, c, most, NULL, 1);
	else
		n = fi_cq_readfrom(d->e->cq, c, most, src);
	CHECK(h->s, n > 0 || n == -FI_EAGAIN || n == -FI_EAVAIL);
	if (n == -FI_EAVAIL)
		read_error(h->s, d);
	for (ssize_t i = 0; i < n; i++)
		good_entry(h->s, &c[i]);
}

static void sleep_on_fd(struct hand *h, struct side *d)
{
	struct fid *fids[] = { &d->e->cq->fid };
	struct pollfd pfd = { .events = POLLIN };

	CHECK(h->s, fi_control(fids[0], FI_GETWAIT, &pfd.fd) == 0);
	if (fi_trywait(d->e->fabric, fids, 1) == 0)
		poll(&pfd, 1, 1);
}

/* Read a queue or counter, or sleep on one: this makes progress. */
void safe_progress(struct hand *h)
{
	struct side *d = &h->s->side[below(h, 2)];
	struct fid_cntr *cntr = d->cntr[below(h, CNTRS)];
	int ret;

	switch (below(h, 24)) {
	case 0:
		read_queue(h, d, true);
		break;
	case 1:
		sleep_on_fd(h, d);
		break;
	case 2:
		ret = fi_cntr_wait(cntr, fi_cntr_read(cntr) + 1, 1);
		CHECK(h->s, ret == 0 || ret == -FI_ETIMEDOUT ||
			    ret == -FI_EAVAIL);
		break;
	case 3:
		fi_cntr_readerr(cntr);
		break;
	case 4:
		read_error(h->s, d);
		break;
	default:
		read_queue(h, d, false);
		break;
	}
}

/* True if no completion is expected or it has come, which must be a success. */
bool safe_over(struct hand *h, struct half *half, uint64_t flags)
{
	if (half->state == IDLE)
		return true;
	if (half->state != ENDED)
		return false;
	CHECK(h->s, half->err == 0 && half->flags == flags);
	half->state = IDLE;
	return true;
}

void safe_arrived(struct stage *s, uint64_t id)
{
	uint64_t thread = id >> 32;
	uint32_t n = (uint32_t)id;

	CHECK(s, thread < THREADS && n < 2 * s->ops);
	if (thread < THREADS && n < 2 * s->ops)
		CHECK(s, atomic_fetch_add(&s->hand[thread].arrived[n], 1) == 0);
}

/* ---- Threads ------------------------------------------------------------- */

#define WEIGHTS	129			/* sum of the weights in safe_acts */

static enum kind some_kind(struct hand *h)
{
	int pick = (int)below(h, WEIGHTS), kind = 0;

	while (pick >= safe_acts[kind].weight)
		pick -= safe_acts[kind++].weight;
	return kind == REGION && h->own_busy ? STRANGE : kind;
}

static void begin(struct hand *h, struct shot *x)
{
	x->kind = some_kind(h);
	x->busy = true;
	x->step = 0;
	x->form = (int)below(h, 3);
	x->from = (int)below(h, 2);
	x->to = side_from(h, x)->to;
	x->id = fresh_id(h);
	x->tag = x->id;
	x->slot = SLOTS + (size_t)(h->index * SHOTS + (x - h->shot)) * LEN_MAX;
	safe_acts[x->kind].begin(h, x);
}

static bool end(struct hand *h, struct shot *x)
{
	if (x->busy && safe_acts[x->kind].end(h, x))
		x->busy = false;
	return !x->busy;
}

/* Cancels a receive of any thread, posted or not, complete or not. */
static void cancel_some(struct hand *h)
{
	struct hand *whose = &h->s->hand[below(h, THREADS)];
	struct side *d = &h->s->side[below(h, 2)];

	safe_cancel(h->s, d, below(h, 2) ? &whose->shot[below(h, SHOTS)].rx :
	       &whose->catch[below(h, RECVS)].rx);
}

static bool all_caught(struct stage *s)
{
	return s->working == 0 && s->side[0].got == s->side[0].sent &&
		s->side[1].got == s->side[1].sent;
}

static void *hand_main(void *arg)
{
	struct hand *h = arg;
	struct stage *s = h->s;

	for (uint32_t i = 0; i < s->ops && goes_on(s); ) {
		struct shot *x = &h->shot[below(h, SHOTS)];

		if (end(h, x)) {
			begin(h, x);
			i++;
		}
		safe_progress(h);
		safe_post_catches(h);
		if (below(h, 16) == 0)
			cancel_some(h);
	}
	for (int i = 0; i < SHOTS; i++)
		while (!end(h, &h->shot[i]) && goes_on(s)) {
			safe_progress(h);
			safe_post_catches(h);
		}
	s->working--;
	while (!all_caught(s) && goes_on(s)) {
		safe_progress(h);
		safe_post_catches(h);
	}
	safe_close_catches(h);
	s->alive--;
	UNTIL(h, s->alive == 0);
	return NULL;
}

/* ---- Cases --------------------------------------------------------------- */

static size_t side_len(const struct stage *s)
{
	return injected_at() + (size_t)8 * THREADS * s->ops;
}

static void side_open(struct stage *s, int i, enum os_way way, bool one)
{
	struct ep_want want = {
		.threading = FI_THREAD_SAFE, .wait = FI_WAIT_FD,
		.disabled = true, .with = one && i ? s->side[0].e : NULL,
	};
	struct fi_cntr_attr attr = { .wait_obj = FI_WAIT_UNSPEC };
	struct side *d = &s->side[i];

	d->e = ep_open(&want);
	for (int k = 0; k < CNTRS; k++) {
		assert_int_equal(fi_cntr_open(d->e->domain, &attr, &d->cntr[k],
					      NULL), 0);
		assert_int_equal(fi_ep_bind(d->e->ep, &d->cntr[k]->fid,
					    cntr_flags[k]), 0);
	}
	assert_int_equal(fi_enable(d->e->ep), 0);
	d->e->want.disabled = false;
	d->mem = os_alloc(d->e, way, side_len(s));
	memset(d->mem, 0, side_len(s));
	d->mr = os_reg(d->e, d->mem, side_len(s), OS_ALL, KEY + i);
	d->injected = calloc((size_t)THREADS * s->ops, 8);
	d->taken = calloc((size_t)THREADS * s->ops, 1);
	assert_true(d->injected != NULL && d->taken != NULL);
}

static void side_close(struct stage *s, int i, enum os_way way)
{
	struct side *d = &s->side[i];

	assert_int_equal(fi_close(&d->mr->fid), 0);
	os_free(d->e, way, d->mem);
	for (int k = 0; k < THREADS; k++)
		os_free(d->e, way, s->hand[k].own[i]);
	assert_int_equal(fi_close(&d->e->ep->fid), 0);
	d->e->ep = NULL;
	for (int k = 0; k < CNTRS; k++)
		assert_int_equal(fi_close(&d->cntr[k]->fid), 0);
	ep_close(d->e);
	free(d->injected);
	free((void *)d->taken);
}

static void hands_open(struct stage *s, enum os_way way)
{
	s->hand = calloc(THREADS, sizeof(*s->hand));
	assert_non_null(s->hand);
	for (int i = 0; i < THREADS; i++) {
		struct hand *h = &s->hand[i];

		h->s = s;
		h->index = i;
		h->rng = 77 + i;
		h->due = calloc(2 * s->ops, 1);
		h->arrived = calloc(2 * s->ops, 1);
		assert_true(h->due != NULL && h->arrived != NULL);
		for (int k = 0; k < 2; k++) {
			h->own[k] = os_alloc(s->side[k].e, way, OWN_LEN);
			memset(h->own[k], CLOSED, OWN_LEN);
		}
	}
}

/* After the end: checks all counters and words of a side. */
static void side_check(struct stage *s, struct side *d)
{
	uint64_t word[3];

	for (int k = 0; k < CNTRS; k++) {
		uint64_t good = d->begun[k] - d->failed[k];

		EP_UNTIL(fi_cntr_read(d->cntr[k]) >= good);
		assert_int_equal(fi_cntr_read(d->cntr[k]), good);
		assert_int_equal(fi_cntr_readerr(d->cntr[k]), d->failed[k]);
	}
	memcpy(&word[0], d->mem + SUM_AT, 8);
	memcpy(&word[1], d->mem + TICKET_AT, 8);
	memcpy(&word[2], d->mem + SWAP_AT, 8);
	assert_int_equal(word[0], d->sum);
	assert_int_equal(word[1], d->tickets);
	assert_int_equal(word[2], d->swaps);
	for (uint64_t i = 0; i < (uint64_t)THREADS * s->ops; i++)
		assert_int_equal(d->taken[i], i < d->tickets);
	assert_memory_equal(d->mem + injected_at(), d->injected,
			    (size_t)8 * THREADS * s->ops);
}

static void stage_check(struct stage *s, enum os_way way)
{
	if (s->wrong != NULL)
		unit_fail("a thread failed: %s", s->wrong);
	for (int i = 0; i < 2; i++)
		side_check(s, &s->side[i]);
	for (int i = 0; i < THREADS; i++)
		for (uint32_t k = 0; k < 2 * s->ops; k++)
			assert_int_equal(s->hand[i].arrived[k],
					 s->hand[i].due[k]);
	for (int i = 0; i < 2; i++) {
		const struct unm_ep *ep = (void *)s->side[i].e->ep;

		ep_quiet(s->side[i].e);
		assert_true(way == OS_REQUESTS ? ep->stats->tx_direct == 0 :
			    ep->stats->tx_direct > 0);
	}
	assert_int_equal(s->entries, s->posted + s->remote);
	assert_int_equal(s->canceled, s->cancels);
	assert_true(s->canceled > 0);
}

static void all_at_once(enum os_way way, bool one)
{
	struct stage s = {
		.ops = (uint32_t)unit_number("UNM_TEST_OPS",
					     UNIT_SLOW ? 1000 : 2000),
		.working = THREADS, .alive = THREADS,
	};

	unit_needs(os_goes(way));
	for (int i = 0; i < 2; i++)
		side_open(&s, i, way, one);
	g_unm_env.direct = way != OS_REQUESTS;
	s.side[0].to = ep_insert(s.side[0].e, s.side[1].e);
	s.side[1].to = ep_insert(s.side[1].e, s.side[0].e);
	hands_open(&s, way);
	s.end = ep_now() + HANG_US + s.ops * HANG_US / 2000;
	for (int i = 0; i < THREADS; i++)
		s.hand[i].thread = unit_thread(hand_main, &s.hand[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(s.hand[i].thread, NULL);
	stage_check(&s, way);
	for (int i = 1; i >= 0; i--)
		side_close(&s, i, way);
	for (int i = 0; i < THREADS; i++) {
		free(s.hand[i].due);
		free((void *)s.hand[i].arrived);
	}
	free(s.hand);
	g_unm_env.direct = true;
}

#define CASE(name, way, one)						\
	static void test_##name(void **state)				\
	{								\
		EP_NEEDS_INSIDE();					\
		all_at_once(way, one);					\
	}

CASE(two_domains_by_requests, OS_REQUESTS, false)
CASE(two_domains_by_attach, OS_ATTACH, false)
CASE(two_domains_through_windows, OS_DMABLE, false)
CASE(one_domain_by_requests, OS_REQUESTS, true)
CASE(one_domain_by_attach, OS_ATTACH, true)
CASE(one_domain_through_windows, OS_DMABLE, true)

EP_THREADS_MAIN(
	EP_TEST(test_two_domains_by_requests),
	EP_TEST(test_two_domains_by_attach),
	EP_TEST(test_two_domains_through_windows),
	EP_TEST(test_one_domain_by_requests),
	EP_TEST(test_one_domain_by_attach),
	EP_TEST(test_one_domain_through_windows),
)
