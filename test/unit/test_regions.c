/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_regions.c - both peers as threads of one process: one-sided operations
 * on every data path, while the regions that they access are closed and opened
 * again all the time. For ThreadSanitizer: cached remote keys, guards and
 * revocations.
 *
 * The target reads a region's memory only after fi_close() has returned, when
 * no initiator may access it any more.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "lib/os_pair.h"
#include "unm_env.h"

#define ROUNDS	(UNIT_SLOW ? 100 : 400)
#define REGIONS	2
#define LEN	65536
#define KEY	40
#define CLOSED	0xA5			/* a byte that no initiator writes */
#define HANG_US	(UINT64_C(100000000) * (UNIT_SLOW ? 5 : 1))

/* Threads do not assert: they note the line of the first failed check. */
#define CHECK(s, cond)	do {						\
		int fine = 0;						\
		if (!(cond))						\
			atomic_compare_exchange_strong(&(s)->line,	\
						       &fine, __LINE__); \
	} while (0)

struct stage {
	struct ep *a, *b;		/* a accesses memory of b */
	fi_addr_t ab;
	uint8_t *mem[REGIONS];
	bool atomics;			/* are executed without b */
	uint64_t end;
	_Atomic uint64_t done;		/* operations that ended, also with an
					 * error */
	_Atomic uint64_t good;
	_Atomic int closers;		/* threads that still close regions */
	_Atomic int line;
};

struct hand {
	struct stage *s;
	int index;
	pthread_t thread;
};

static bool goes_on(struct stage *s)
{
	CHECK(s, ep_now() < s->end);
	return s->line == 0;
}

/* ---- The target's threads ------------------------------------------------ */

static void owner_read(struct stage *s)
{
	ssize_t n = fi_cq_read(s->b->cq, NULL, 0);

	CHECK(s, n == 0 || n == -FI_EAGAIN);
}

/* Waits until this many more operations have ended. */
static void await_more(struct stage *s, uint64_t more)
{
	uint64_t was = s->done;

	while (s->done < was + more && goes_on(s))
		owner_read(s);
}

static void *closer(void *arg)
{
	struct hand *h = arg;
	struct stage *s = h->s;
	uint8_t *mem = s->mem[h->index];
	struct fid_mr *mr;

	for (int i = 0; i < ROUNDS && goes_on(s); i++) {
		memset(mem, 0, LEN);
		CHECK(s, fi_mr_reg(s->b->domain, mem, LEN, OS_ALL, 0,
				   KEY + h->index, 0, &mr, NULL) == 0);
		await_more(s, 3 + i % 30);
		CHECK(s, fi_close(&mr->fid) == 0);
		memset(mem, CLOSED, LEN);
		await_more(s, 3);
		for (int k = 0; k < LEN; k++)
			CHECK(s, mem[k] == CLOSED);
	}
	atomic_fetch_sub(&s->closers, 1);
	/* answers the remaining requests */
	while (s->closers >= 0 && goes_on(s))
		owner_read(s);
	return NULL;
}

/* ---- The initiator's threads --------------------------------------------- */

struct shot {
	struct fi_context2 context;
	_Atomic int state;		/* 0: under way, 1: success, 2:
					 * refused */
};

static void initiator_read(struct stage *s)
{
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry c;
	ssize_t n = fi_cq_read(s->a->cq, &c, 1);

	if (n == 1) {
		((struct shot *)c.op_context)->state = 1;
	} else if (n == -FI_EAVAIL) {
		/* another thread may have read it */
		if (fi_cq_readerr(s->a->cq, &err, 0) != 1)
			return;
		CHECK(s, err.err == FI_EKEYREJECTED);
		((struct shot *)err.op_context)->state = 2;
	} else {
		CHECK(s, n == -FI_EAGAIN);
	}
}

/* Starts operation i of a thread, in the thread's own half of a region, because
 * stores of two threads are not ordered. Returns 0, or why it was not
 * started. */
static ssize_t shoot(const struct hand *h, uint32_t i, uint8_t *buf,
		     uint64_t *was, void *context)
{
	static const size_t lens[] = { 8, 64, 5000, 8, LEN / 2 };
	uint64_t at = (uint64_t)h->index * (LEN / 2);
	struct stage *s = h->s;
	uint64_t key = KEY + i / 3 % REGIONS;
	struct fid_ep *ep = s->a->ep;
	size_t len = lens[i % 5];

	switch (i % (s->atomics ? 3 : 2)) {
	case 0:
		memset(buf, i % CLOSED, len);
		return fi_write(ep, buf, len, NULL, s->ab, at, key, context);
	case 1:
		return fi_read(ep, buf, len, NULL, s->ab, at, key, context);
	default:
		return fi_fetch_atomic(ep, buf, 1, NULL, was, NULL, s->ab,
				       at + 8, key, FI_UINT64, FI_SUM, context);
	}
}

static void *initiator(void *arg)
{
	struct hand *h = arg;
	struct stage *s = h->s;
	uint8_t *buf = calloc(1, LEN);
	struct shot shot;
	uint64_t was;

	for (uint32_t i = h->index; s->closers > 0 && goes_on(s); i++) {
		shot.state = 0;
		while (shoot(h, i, buf, &was, &shot) != 0 && goes_on(s))
			initiator_read(s);
		while (shot.state == 0 && goes_on(s))
			initiator_read(s);
		/* a read must not return bytes written after fi_close() */
		if (shot.state == 1 && i % (s->atomics ? 3 : 2) == 1)
			CHECK(s, buf[0] != CLOSED && buf[7] != CLOSED);
		atomic_fetch_add(&s->good, shot.state == 1);
		atomic_fetch_add(&s->done, 1);
	}
	free(buf);
	return NULL;
}

/* ---- Tests --------------------------------------------------------------- */

/* Without a lock a domain has one thread, which does the work of both. */
static void play(struct stage *s, enum os_way way, int each)
{
	struct hand in[2], out[2];
	uint64_t direct;

	s->ab = ep_insert(s->a, s->b);
	s->atomics = way != OS_ATTACH;
	s->end = ep_now() + HANG_US;
	s->closers = each;
	g_unm_env.direct = way != OS_REQUESTS;
	for (int i = 0; i < REGIONS; i++)
		s->mem[i] = os_alloc(s->b, way, LEN);
	for (int i = 0; i < each; i++) {
		in[i] = (struct hand){ .s = s, .index = i };
		out[i] = in[i];
		out[i].thread = unit_thread(closer, &out[i]);
		in[i].thread = unit_thread(initiator, &in[i]);
	}
	for (int i = 0; i < each; i++)
		pthread_join(in[i].thread, NULL);
	s->closers = -1;		/* no more requests will come */
	for (int i = 0; i < each; i++)
		pthread_join(out[i].thread, NULL);
	if (s->line != 0)
		unit_fail("a thread failed in line %d", s->line);
	direct = ((struct unm_ep *)s->a->ep)->stats->tx_direct;
	assert_true(s->good > 0);
	assert_true(way == OS_REQUESTS ? direct == 0 : direct > 0);
	for (int i = 0; i < REGIONS; i++)
		os_free(s->b, way, s->mem[i]);
	g_unm_env.direct = true;
}

/* Two domains with a thread each, and no lock. */
static void apart(enum os_way way)
{
	struct stage s = { 0 };

	unit_needs(os_goes(way));
	s.a = ep_open(NULL);
	s.b = ep_open(NULL);
	play(&s, way, 1);
}

/* One domain or two, with locks, and four threads. */
static void locked(enum os_way way, bool one)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct stage s = { 0 };

	unit_needs(os_goes(way));
	s.a = ep_open(&want);
	want.with = one ? s.a : NULL;
	s.b = ep_open(&want);
	play(&s, way, 2);
}

#define APART(name, way)						\
	static void test_##name(void **state)				\
	{								\
		EP_NEEDS_INSIDE();					\
		apart(way);						\
	}
#define LOCKED(name, way, one)						\
	static void test_##name(void **state)				\
	{								\
		EP_NEEDS_INSIDE();					\
		locked(way, one);					\
	}

APART(apart_by_requests, OS_REQUESTS)
APART(apart_by_attach, OS_ATTACH)
APART(apart_through_windows, OS_DMABLE)
APART(apart_in_shared_memory, OS_SHARED)
LOCKED(locked_by_requests, OS_REQUESTS, false)
LOCKED(locked_by_attach, OS_ATTACH, false)
LOCKED(locked_through_windows, OS_DMABLE, false)
LOCKED(one_domain_by_requests, OS_REQUESTS, true)
LOCKED(one_domain_by_attach, OS_ATTACH, true)
LOCKED(one_domain_through_windows, OS_DMABLE, true)

EP_THREADS_MAIN(
	EP_TEST(test_apart_by_requests),
	EP_TEST(test_apart_by_attach),
	EP_TEST(test_apart_through_windows),
	EP_TEST(test_apart_in_shared_memory),
	EP_TEST(test_locked_by_requests),
	EP_TEST(test_locked_by_attach),
	EP_TEST(test_locked_through_windows),
	EP_TEST(test_one_domain_by_requests),
	EP_TEST(test_one_domain_by_attach),
	EP_TEST(test_one_domain_through_windows),
)
