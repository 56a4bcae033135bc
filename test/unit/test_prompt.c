/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_prompt.c - puts and gets of ordinary memory: they are sent as requests
 * to a target that makes progress, and executed by cross-memory attach if the
 * target does not make progress within a bound.
 *
 * No test fails because the machine is slow: a bound is longer than the test,
 * or it has passed when a pause of the test ends.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_space.h"
#include "core/unm_way.h"
#include "lib/os_pair.h"
#include "unm_env.h"
#include "util/unm_clock.h"

#define LEN	((size_t)64 << 10)
/* A bound longer than the machine's clock value: as nanoseconds in 64 unsigned
 * bits it is 500 years. The clock counts from the start of the machine, and
 * with such a bound a comparison with a time that was never set would go
 * unnoticed. */
#define LONG_US	(-1)
#define BOUND_US 1000000000	/* longer than any test; a test shifts times by
				 * more than this */
#define OPS	100
#define LAP	8		/* requests of 8 KiB, more than a new ring
				 * holds */
/* Measurements of requests and of attach, and no trial soon. */
#define COSTS(requests, attach)						\
	((struct unm_way){ .cost = { requests, attach },		\
			   .gap = UNM_WAY_GAP_MAX,			\
			   .wait = UINT64_MAX })

static struct unm_peer *b_of(const struct os_pair *p)
{
	return ((struct unm_ep *)p->a->ep)->peer_of[p->ab];
}

static struct hal_peer *peer_of(const struct os_pair *p)
{
	return b_of(p)->hp;
}

/* Another bound from now on: the last sample, taken with another one, does not
 * serve any more. */
static void set_bound(const struct os_pair *p, int prompt_us)
{
	g_unm_env.prompt_us = prompt_us;
	b_of(p)->sample_uses_left = 0;
}

/* A pair with this bound, in microseconds. */
static struct os_pair open_pair(int prompt_us)
{
	struct os_pair p = os_open(OS_ATTACH, LEN);

	ep_settle();
	g_unm_env.prompt_us = prompt_us;
	return p;
}

static void close_pair(struct os_pair *p)
{
	g_unm_env.prompt_us = 0;
	os_close(p);
}

#define NEEDS_ATTACH()	do {						\
		if (!ep_inside() || !os_goes(OS_ATTACH))		\
			skip();						\
	} while (0)

/* Does the target poll while the initiator waits? */
enum { IDLE, POLLS };

/* b makes progress only if polls is set. */
static void put(struct os_pair *p, size_t at, const void *from, size_t len,
		bool polls)
{
	uint64_t end = ep_deadline();
	struct ep_comp c;

	EP_OK(fi_write(p->a->ep, from, len, NULL, p->ab, p->base + at, p->key,
		       p));
	while (!ep_take(p->a, p, &c)) {
		ep_poll(p->a);
		if (polls)
			ep_poll(p->b);
		ep_in_time(end, "a put");
	}
	assert_int_equal(c.err, 0);
	p->nwr++;
}

static void get(struct os_pair *p, size_t at, void *to, size_t len)
{
	EP_OK(fi_read(p->a->ep, to, len, NULL, p->ab, p->base + at, p->key,
		      p));
	assert_int_equal(ep_wait(p->a, p).err, 0);
	p->nrd++;
}

/* A target that polls: the answer to the first operation's probe comes back,
 * and from then on all operations are requests, except long ones. */
static void test_target_that_polls(void **state)
{
	uint64_t direct, requests;
	size_t kept;
	struct os_pair p;
	uint64_t value;

	NEEDS_ATTACH();
	p = open_pair(LONG_US);
	for (value = 0; value < 3; value++) {
		put(&p, 0, &value, 8, POLLS);
		ep_settle();
	}
	direct = os_direct(&p);
	requests = os_requests(&p);
	for (value = 0; value < OPS; value++) {
		uint64_t back = 0;

		put(&p, 8 * value, &value, 8, POLLS);
		get(&p, 8 * value, &back, 8);
		assert_int_equal(back, value);
	}
	assert_int_equal(os_direct(&p), direct);
	assert_int_equal(os_requests(&p), requests + 2 * OPS);
	kept = g_unm_env.prompt_max;
	g_unm_env.prompt_max = 4096;
	for (size_t len = 4096; len <= 4097; len++) {
		static uint8_t buf[4097];

		put(&p, 0, buf, len, POLLS);
	}
	g_unm_env.prompt_max = kept;
	assert_int_equal(os_direct(&p), direct + 1);
	close_pair(&p);
}

/* Bytes that an endpoint has used of the receive space at its only peer. */
static uint32_t touched(struct ep *e)
{
	struct unm_ep *ep = (struct unm_ep *)e->ep;
	struct unm_peer *peer = unm_container(ep->peers.next, struct unm_peer,
					      all);

	return peer->space != NULL ? peer->space->touched : 0;
}

/* Put len bytes. Returns for how many bytes the time counts: for none if they
 * use receive space for the first time. */
static size_t counted_put(struct os_pair *p, const void *from, size_t len)
{
	uint32_t before = touched(p->a);

	put(p, 0, from, len, POLLS);
	return touched(p->a) == before ? len : 0;
}

/* A long put is sent as a request only while requests of its length take less
 * time than attach; a short one always. Each is measured. */
static void test_the_faster_way_is_taken(void **state)
{
	static uint8_t buf[8193];
	struct unm_way *way;
	struct os_pair p;
	uint64_t direct;
	size_t counted;

	NEEDS_ATTACH();
	p = open_pair(LONG_US);
	for (int i = 0; i < 3; i++) {
		put(&p, 0, buf, 8, POLLS);
		ep_settle();
	}
	way = unm_peer_ways(b_of(&p))->os[0];
	direct = os_direct(&p);
	for (int i = 0; i < 8; i++) {
		for (int k = 0; k < UNM_WAY_OS_CLASSES; k++)
			way[k] = COSTS(2000, 1000);
		put(&p, 0, buf, 1024, POLLS);
		assert_int_equal(way[0].bytes, 0);
		put(&p, 0, buf, 1025, POLLS);
		assert_int_equal(way[0].bytes, 1025);
		put(&p, 0, buf, 8192, POLLS);
		assert_int_equal(way[1].bytes, 8192);
		put(&p, 0, buf, 8193, POLLS);
		assert_int_equal(way[2].bytes, 8193);
		direct += 3;
		assert_int_equal(os_direct(&p), direct);
		way[1] = COSTS(1000, 2000);
		counted = counted_put(&p, buf, 8192);
		assert_int_equal(way[1].bytes, counted);
		assert_int_equal(os_direct(&p), direct);
	}
	assert_int_equal(counted, 8192);
	close_pair(&p);
}

/* A request that uses receive space for the first time is slow for this reason,
 * and so is one whose result does. Both are noticed, so that their times do not
 * count. */
static void test_first_use_is_noticed(void **state)
{
	static uint8_t buf[8192];
	struct unm_way *to, *from;
	uint64_t direct;
	struct os_pair p;
	int first = 0;

	NEEDS_ATTACH();
	p = open_pair(LONG_US);
	for (int i = 0; i < 3; i++) {
		put(&p, 0, buf, 8, POLLS);
		ep_settle();
	}
	to = &unm_peer_ways(b_of(&p))->os[0][1];
	from = &unm_peer_ways(b_of(&p))->os[1][1];
	direct = os_direct(&p);
	for (int i = 0; i < 2 * LAP; i++) {
		uint32_t a = touched(p.a), b = touched(p.b);

		*to = COSTS(1000, 2000);
		put(&p, 0, buf, sizeof(buf), POLLS);
		assert_int_equal(to->first_use, touched(p.a) != a);
		*from = COSTS(1000, 2000);
		get(&p, 0, buf, sizeof(buf));
		assert_int_equal(from->first_use, touched(p.b) != b);
		first += to->first_use + from->first_use;
		/* their times count if not, and they were not attached */
		assert_int_equal(to->bytes, to->first_use ? 0 : sizeof(buf));
		assert_int_equal(from->bytes,
				 from->first_use ? 0 : sizeof(buf));
	}
	assert_in_range(first, 4, 2 * LAP);
	assert_int_equal(os_direct(&p), direct);
	close_pair(&p);
}

/* A page of receive space that the result of a short get has used, which is not
 * measured, is no new memory for the result of a longer one. */
static void test_first_use_by_short_gets(void **state)
{
	static uint8_t buf[1025];
	struct unm_way *from;
	struct os_pair p;
	uint32_t used;

	NEEDS_ATTACH();
	p = open_pair(LONG_US);
	for (int i = 0; i < 3; i++) {
		put(&p, 0, buf, 8, POLLS);
		ep_settle();
	}
	/* the result uses the first page, but not all of it */
	get(&p, 0, buf, 1000);
	from = &unm_peer_ways(b_of(&p))->os[1][0];
	used = touched(p.b);
	*from = COSTS(1000, 2000);
	get(&p, 0, buf, sizeof(buf));
	assert_int_equal(touched(p.b), used);
	assert_int_equal(from->bytes, sizeof(buf));
	assert_false(from->first_use);
	close_pair(&p);
}

/* A target that does not poll: no operation waits for it, and it gets one
 * probe. */
static void test_target_that_does_not_poll(void **state)
{
	uint64_t direct, requests, sent;
	struct os_pair p;
	uint64_t value;

	NEEDS_ATTACH();
	p = open_pair(LONG_US);
	direct = os_direct(&p);
	requests = os_requests(&p);
	sent = hal_tx_sent(peer_of(&p));
	for (value = 0; value < OPS; value++) {
		put(&p, 16, &value, 8, IDLE);
		assert_memory_equal(p.mem + 16, &value, 8);
	}
	assert_int_equal(os_direct(&p), direct + OPS);
	assert_int_equal(os_requests(&p), requests);
	assert_int_equal(hal_tx_sent(peer_of(&p)), sent + 1);
	close_pair(&p);
}

/* Progress that was seen longer ago than the bound does not count. */
static void test_target_that_polled(void **state)
{
	uint64_t value = 1, requests;
	struct os_pair p;

	NEEDS_ATTACH();
	p = open_pair(1);
	for (int i = 0; i < 10; i++) {
		put(&p, 0, &value, 8, POLLS);
		ep_settle();
		usleep(100);
		requests = os_requests(&p);
		put(&p, 0, &value, 8, IDLE);
		assert_int_equal(os_requests(&p), requests);
		ep_settle();
	}
	close_pair(&p);
}

/* The target stops polling just when a request was sent: the request waits, is
 * executed once, and does not delay later operations. */
static void test_target_that_stops(void **state)
{
	uint64_t value[] = { 7, 8 }, direct;
	struct fi_context2 ctx;
	struct ep_comp c;
	struct os_pair p;

	NEEDS_ATTACH();
	p = open_pair(LONG_US);
	for (int i = 0; i < 3; i++) {
		put(&p, 0, &value[0], 8, POLLS);
		ep_settle();
	}
	direct = os_direct(&p);
	EP_OK(fi_write(p.a->ep, &value[1], 8, NULL, p.ab, p.base, p.key,
		       &ctx));
	p.nwr++;
	assert_int_equal(os_direct(&p), direct);
	usleep(100);
	set_bound(&p, 1);
	for (int i = 0; i < OPS; i++) {
		put(&p, 64, &value[0], 8, IDLE);
		assert_false(ep_take(p.a, &ctx, &c));
	}
	assert_int_equal(os_direct(&p), direct + OPS);
	assert_memory_equal(p.mem, &value[0], 8);
	assert_int_equal(ep_wait(p.a, &ctx).err, 0);
	assert_memory_equal(p.mem, &value[1], 8);
	/* it is not executed a second time */
	memset(p.mem, 0, 8);
	ep_settle();
	assert_int_equal(p.mem[0], 0);
	os_all_done(&p);
	ep_quiet(p.a);
	close_pair(&p);
}

/* As if the last sample had been taken so many ns earlier. */
static void age_sample(const struct os_pair *p, uint64_t ns)
{
	struct unm_peer *peer = b_of(p);

	peer->sampled_ns -= ns;
	peer->sample_ticks -= (uint64_t)((double)ns * peer->ep->rate.per_ns);
}

/* A target that was seen to make progress, and then stops polling, with an
 * endless bound. */
static struct os_pair open_stopped(void)
{
	struct os_pair p = open_pair(LONG_US);
	uint64_t value = 0;

	for (int i = 0; i < 3; i++) {
		put(&p, 0, &value, 8, POLLS);
		ep_settle();
	}
	return p;
}

/* Short operations to a target that makes progress take a sample only if the
 * last one is old or has served many, and see then what the target did since; a
 * longer operation takes one always. */
static void test_few_samples(void **state)
{
	static uint8_t buf[1025];
	struct unm_peer *peer;
	uint64_t sampled;
	struct os_pair p;

	NEEDS_ATTACH();
	p = open_stopped();
	set_bound(&p, BOUND_US);
	peer = b_of(&p);
	usleep(1000);			/* for the rate of the counter */
	put(&p, 0, buf, sizeof(buf), POLLS);
	for (int i = 0; i < 3; i++) {
		sampled = peer->sampled_ns;
		for (int k = 0; k < OPS; k++)
			put(&p, 0, buf, 1024, POLLS);
		assert_int_equal(peer->sampled_ns, sampled);
		age_sample(&p, BOUND_US * UINT64_C(1000) / 6);
		sampled = peer->sampled_ns;
		put(&p, 0, buf, 8, POLLS);
		assert_int_not_equal(peer->sampled_ns, sampled);
		assert_int_equal(peer->prompt_ns, sampled);
		sampled = peer->sampled_ns;
		put(&p, 0, buf, 1025, POLLS);
		assert_int_not_equal(peer->sampled_ns, sampled);
	}
	sampled = peer->sampled_ns;
	for (int k = 0; k < 10 * OPS; k++)
		put(&p, 0, buf, 8, POLLS);
	assert_int_not_equal(peer->sampled_ns, sampled);
	/* the counter went back */
	sampled = peer->sampled_ns;
	peer->sample_ticks = unm_ticks() + (UINT64_C(1) << 60);
	put(&p, 0, buf, 8, POLLS);
	assert_int_not_equal(peer->sampled_ns, sampled);
	close_pair(&p);
}

/* The rate of the counter: it is never taken for faster than it is. */
static void test_rate_of_the_counter(void **state)
{
	const uint64_t start = UINT64_C(1) << 62, ns = UNM_TICK_RATE_NS;
	struct unm_tick_rate rate = { 0 };

	assert_true(unm_tick_rate_due(&rate, 1));
	unm_tick_rate_measure(&rate, start - 1, 1, start);
	assert_true(rate.per_ns == 0);
	assert_false(unm_tick_rate_due(&rate, ns));
	assert_true(unm_tick_rate_due(&rate, 1 + ns));
	/* two ticks a nanosecond; interrupted after the clock is read */
	unm_tick_rate_measure(&rate, start + 2 * ns, 1 + ns, start + 20 * ns);
	assert_true(rate.per_ns == 2);
	unm_tick_rate_measure(&rate, start + 22 * ns, 1 + 2 * ns,
			      start + 22 * ns);
	assert_true(rate.per_ns == 2);
	/* interrupted before the clock is read */
	unm_tick_rate_measure(&rate, start + 24 * ns, 1 + 4 * ns,
			      start + 26 * ns);
	assert_true(rate.per_ns == 1);
	/* a jump back, a jump forward, and no more jump */
	unm_tick_rate_measure(&rate, 7, 1 + 5 * ns, 7);
	assert_true(rate.per_ns == 0);
	unm_tick_rate_measure(&rate, start, 1 + 6 * ns, start);
	assert_true(rate.per_ns == 0);
	unm_tick_rate_measure(&rate, start + ns, 1 + 7 * ns, start + ns);
	assert_true(rate.per_ns == 1);
}

/* A sample that is taken just before the bound ends serves until then only. */
static void test_sample_serves_within_the_bound(void **state)
{
	const uint64_t left = 20 * UINT64_C(1000000);	/* ns */
	uint64_t value = 1, direct, end = ep_deadline();
	struct unm_peer *peer;
	struct os_pair p;

	NEEDS_ATTACH();
	p = open_stopped();
	set_bound(&p, BOUND_US);
	peer = b_of(&p);
	usleep(1000);			/* for the rate of the counter */
	/* until this thread keeps the processor long enough, so that a sample
	 * is taken within the bound */
	do {
		put(&p, 0, &value, 8, POLLS);
		peer->sample_uses_left = 0;
		peer->sampled_done = hal_tx_done(peer->hp);
		peer->prompt_ns = unm_now_ns() - BOUND_US * UINT64_C(1000) +
			left;
		put(&p, 0, &value, 8, POLLS);
		ep_in_time(end, "a sample within the bound");
	} while (peer->sample_uses_left == 0 || peer->sample_ticks_max == 0);
	usleep(2 * left / 1000);
	peer->sampled_done = hal_tx_done(peer->hp);
	direct = os_direct(&p);
	put(&p, 0, &value, 8, IDLE);
	assert_int_equal(os_direct(&p), direct + 1);
	close_pair(&p);
}

/* A sample of a longer operation finds that the bound has passed: the sample
 * before it serves no short operation any more, even if the counter stands
 * still. */
static void test_sample_without_progress(void **state)
{
	static uint8_t buf[1025];
	struct unm_peer *peer;
	struct os_pair p;
	uint64_t direct;

	NEEDS_ATTACH();
	p = open_stopped();
	set_bound(&p, BOUND_US);
	peer = b_of(&p);
	put(&p, 0, buf, 8, POLLS);
	ep_settle();
	assert_int_not_equal(peer->sample_uses_left, 0);
	peer->sample_ticks_max = UINT64_MAX;
	peer->prompt_ns -= 2 * BOUND_US * UINT64_C(1000);
	peer->sampled_done = hal_tx_done(peer->hp);
	direct = os_direct(&p);
	put(&p, 0, buf, sizeof(buf), IDLE);
	assert_int_equal(os_direct(&p), direct + 1);
	put(&p, 0, buf, 8, IDLE);
	assert_int_equal(os_direct(&p), direct + 2);
	close_pair(&p);
}

/* Progress counts up to the bound, although the last sample, which saw none, is
 * recent, and although no call of progress came in between. */
static void test_progress_has_a_bound(void **state)
{
	uint64_t value = 1, direct;
	struct unm_peer *peer;
	struct os_pair p;

	NEEDS_ATTACH();
	p = open_stopped();
	set_bound(&p, BOUND_US);
	peer = b_of(&p);
	EP_OK(fi_write(p.a->ep, &value, 8, NULL, p.ab, p.base, p.key, &p));
	/* the target computes; as if the bound had passed */
	peer->prompt_ns -= 2 * BOUND_US * UINT64_C(1000);
	peer->sampled_ns = unm_now_ns();
	peer->sampled_done = hal_tx_done(peer->hp);
	peer->sample_uses_left = 0;
	direct = os_direct(&p);
	EP_OK(fi_write(p.a->ep, &value, 8, NULL, p.ab, p.base + 64, p.key,
		       &p));
	EP_UNTIL(os_direct(&p) == direct + 1);
	p.nwr += 2;
	for (int i = 0; i < 2; i++)
		assert_int_equal(ep_wait(p.a, &p).err, 0);
	close_pair(&p);
}

/* A long operation whose requests wait for the target does not hold up an
 * operation that can be executed by attach. (The long one has remote CQ data,
 * so it can not.) */
static void test_put_past_unsent_requests(void **state)
{
	static uint8_t buf[LEN];
	uint64_t value = 5, direct, n = 0, end = ep_deadline();
	struct fi_context2 ctx;
	struct ep_comp c;
	struct os_pair p;

	NEEDS_ATTACH();
	p = open_stopped();
	while (fi_writedata(p.a->ep, buf, LEN - 8, NULL, 1, p.ab, p.base,
			    p.key, &ctx) == 0) {
		n++;
		ep_poll(p.a);
		ep_in_time(end, "requests that wait");
	}
	assert_true(n != 0);
	direct = os_direct(&p);
	for (int i = 0; i < OPS; i++, value++) {
		assert_int_equal(fi_write(p.a->ep, &value, 8, NULL, p.ab,
					  p.base + LEN - 8, p.key, &p), 0);
		while (!ep_take(p.a, &p, &c)) {
			ep_poll(p.a);
			ep_in_time(end, "a put");
		}
		assert_int_equal(c.err, 0);
		assert_memory_equal(p.mem + LEN - 8, &value, 8);
	}
	assert_int_equal(os_direct(&p), direct + OPS);
	p.nwr += n + OPS;
	for (; n != 0; n--)
		assert_int_equal(ep_wait(p.a, &ctx).err, 0);
	os_all_done(&p);
	close_pair(&p);
}

/* A target that sleeps is not woken. */
static void test_target_that_sleeps(void **state)
{
	const struct ep_want any = { 0 }, sleeps = { .wait = FI_WAIT_FD };
	struct fid *fids[1];
	uint64_t value = 3, sent;
	struct os_pair p;

	NEEDS_ATTACH();
	p = os_open_as(OS_ATTACH, LEN, &any, &sleeps);
	g_unm_env.prompt_us = LONG_US;
	fids[0] = &p.b->cq->fid;
	ep_settle();
	EP_UNTIL(fi_trywait(p.b->fabric, fids, 1) == 0);
	sent = hal_tx_sent(peer_of(&p));
	for (int i = 0; i < OPS; i++)
		put(&p, 0, &value, 8, IDLE);
	assert_int_equal(hal_tx_sent(peer_of(&p)), sent);
	close_pair(&p);
}

UNIT_MAIN(
	EP_TEST(test_target_that_polls),
	EP_TEST(test_the_faster_way_is_taken),
	EP_TEST(test_first_use_is_noticed),
	EP_TEST(test_first_use_by_short_gets),
	EP_TEST(test_target_that_does_not_poll),
	EP_TEST(test_target_that_polled),
	EP_TEST(test_target_that_stops),
	EP_TEST(test_few_samples),
	EP_TEST(test_rate_of_the_counter),
	EP_TEST(test_sample_serves_within_the_bound),
	EP_TEST(test_sample_without_progress),
	EP_TEST(test_progress_has_a_bound),
	EP_TEST(test_put_past_unsent_requests),
	EP_TEST(test_target_that_sleeps),
)
