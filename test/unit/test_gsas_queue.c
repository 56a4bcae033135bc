/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_queue.c - the memory of a queue: its words and buffers, grants to
 * producers, and clients that overwrite the shared memory with anything.
 */
#include "lib/gsas_queue_fixture.h"

#define PRODUCERS	8

/* ---- Layout of the memory ------------------------------------------------ */

static void test_shape(void **state)
{
	struct gsas_queue_shape s;
	struct gsas_queue *q;
	uint64_t page = GSAS_PAGE_BYTES;

	assert_int_equal(gsas_queue_bytes(0, 64), 0);
	assert_int_equal(gsas_queue_bytes(GSAS_QUEUE_QUOTA_MAX + 1, 64), 0);
	assert_int_equal(gsas_queue_bytes(64, 0), 0);
	assert_int_equal(gsas_queue_bytes(64, 4), 0);
	assert_int_equal(gsas_queue_bytes(64, 12), 0);
	assert_int_equal(gsas_queue_bytes(64, 8192), 0);
	assert_int_equal(gsas_queue_new(NULL, 64, 12, NULL, &q), -FI_EINVAL);
	assert_int_equal(gsas_queue_bytes(1, 8), 2 * page);
	assert_int_equal(gsas_queue_bytes(1024, 512), 5 * page);
	for (uint32_t buffer = 8; buffer <= 4096; buffer *= 2) {
		for (uint32_t quota = 1; quota <= GSAS_QUEUE_QUOTA_MAX;
		     quota = quota * 5 / 4 + 1) {
			assert_true(gsas_queue_shape(quota, buffer, &s));
			assert_true(s.buffers >= quota / buffer + 2);
			assert_true(s.entries >= s.buffers);
			assert_int_equal(s.entries & (s.entries - 1), 0);
			assert_true(s.words >= sizeof(struct gsas_queue_head) +
				    s.entries * UINT64_C(4));
			assert_int_equal(s.words % page, 0);
			assert_int_equal(s.bytes % page, 0);
			assert_int_equal(s.bytes, s.words + s.buffers *
					 (buffer * UINT64_C(8)));
			assert_true(s.bytes < quota * UINT64_C(12) +
				    (2 * buffer * UINT64_C(8)) + 3 * page);
		}
	}
}

static void test_view_is_checked(void **state)
{
	struct tq b = tq_new(100, 16, NULL);
	struct gsas_queue_view view;

	for (uint64_t bytes = 0; bytes < b.bytes; bytes++)
		assert_int_equal(gsas_queue_view(b.head, bytes, &view),
				 -FI_EINVAL);
	b.head->quota = 0;
	assert_int_equal(gsas_queue_view(b.head, b.bytes, &view), -FI_EINVAL);
	b.head->quota = 100000;
	assert_int_equal(gsas_queue_view(b.head, b.bytes, &view), -FI_EINVAL);
	b.head->quota = UINT32_MAX;
	assert_int_equal(gsas_queue_view(b.head, b.bytes, &view), -FI_EINVAL);
	b.head->quota = 100;
	b.head->buffer = 17;
	assert_int_equal(gsas_queue_view(b.head, b.bytes, &view), -FI_EINVAL);
	b.head->buffer = 16;
	assert_int_equal(gsas_queue_view(b.head, b.bytes, &view), 0);
	b.head->magic++;
	assert_int_equal(gsas_queue_view(b.head, b.bytes, &view), -FI_EINVAL);
	tq_free(&b);
}

/* Exactly the quota fits, wherever in a buffer it begins, and words come out as
 * they went in. */
static void test_quota_fits(void **state)
{
	static const uint32_t quotas[] = { 1, 2, 3, 7, 8, 9, 64, 100, 1000 };

	for (uint32_t buffer = 8; buffer <= 128; buffer *= 4)
		for (size_t i = 0; i < sizeof(quotas) / sizeof(*quotas); i++) {
			struct tq b = tq_new(quotas[i], buffer, NULL);
			struct gsas_producer *p = tq_open(&b, &b);
			uint64_t in = 0, out = 0;
			bool tell;

			for (uint32_t lap = 0; lap < 3 * buffer; lap++) {
				assert_int_equal(tq_fill(&b, p, &in, 5000),
						 quotas[i]);
				assert_int_equal(gsas_queue_words(b.queue),
						 quotas[i]);
				while (out < in)
					assert_int_equal(tq_take(&b, &tell),
							 out++);
				tq_empty(&b);
				/* begin one entry further each time */
				tq_grant(&b);
				assert_int_equal(tq_fill(&b, p, &in, 1), 1);
				assert_int_equal(tq_take(&b, &tell), out++);
				tq_grant(&b);
			}
			tq_free(&b);
		}
}

/* ---- Grants -------------------------------------------------------------- */

/* One random step; in: words put in, out: words taken. */
static void move(struct tq *b, struct user *u, uint32_t what, uint64_t *in,
		 uint64_t *out)
{
	struct gsas_producer *p;
	bool flag;

	if (what == 0 && u->p != NULL) {
		gsas_producer_close(u->p);
		u->p = NULL;
	} else if (what < 15 && u->p == NULL) {
		u->used = u->full = 0;
		if (gsas_producer_open(b->queue, u, &u->p) == GSAS_OK)
			u->told = unused(u);
	} else if (what < 15 && unused(u) == 0) {
		assert_int_equal(gsas_queue_put(u->p, 0), GSAS_E_AGAIN);
	} else if (what < 15) {
		assert_int_equal(gsas_queue_put(u->p, (*in)++), GSAS_OK);
		u->used++;
	} else if (what < 25) {
		p = gsas_queue_grant(b->queue, &flag);
		if (p == NULL)
			return;
		u = gsas_producer_user(p);
		assert_ptr_equal(u->p, p);
		/* either more words, or once the notice of a full queue */
		if (gsas_producer_full(p)) {
			assert_int_equal(unused(u), 0);
			assert_int_equal(gsas_producer_granted(p), u->told);
			assert_int_not_equal(u->full, u->told);
			u->full = u->told;
			return;
		}
		assert_true(gsas_producer_granted(p) > u->told);
		u->told = gsas_producer_granted(p);
	} else if (*out == *in) {
		tq_empty(b);
	} else {
		assert_int_equal(tq_take(b, &flag), (*out)++);
	}
}

/* The sum of words inside and granted never exceeds the quota, and each
 * producer that gsas_queue_grant() returns was granted more. */
static void test_random_moves(void **state)
{
	static struct user user[PRODUCERS];
	uint64_t rng = 5;

	for (int round = 0; round < 60; round++) {
		uint32_t quota = 1 + unit_below(&rng, 300);
		struct tq b = tq_new(quota, 8u << unit_below(&rng, 4), NULL);
		uint64_t in = 0, out = 0;

		memset(user, 0, sizeof(user));
		for (int step = 0; step < 5000; step++) {
			uint64_t sum = 0;

			move(&b, &user[unit_below(&rng, PRODUCERS)],
			     unit_below(&rng, 40), &in, &out);
			for (int i = 0; i < PRODUCERS; i++)
				sum += user[i].p != NULL ? unused(&user[i]) : 0;
			assert_true(sum + in - out <= quota);
			assert_int_equal(gsas_queue_words(b.queue), in - out);
		}
		tq_free(&b);
	}
}

/* Although open producers use none of their grants, half as many producers as
 * words can be opened, and each is granted one when the queue is empty. */
static void test_idle_ones_starve_nobody(void **state)
{
	static const uint32_t quotas[] = { 1, 2, 3, 5, 16, 100, 128, 500 };
	static struct gsas_producer *p[512];

	for (size_t i = 0; i < sizeof(quotas) / sizeof(*quotas); i++) {
		uint32_t quota = quotas[i], count = 0;
		struct tq b = tq_new(quota, 8, NULL);
		uint64_t n = 0, out = 0;
		bool tell;

		while (gsas_producer_open(b.queue, NULL, &p[count]) ==
		       GSAS_OK) {
			/* each is opened after the last one got all it can
			 * get */
			tq_grant(&b);
			assert_true(++count <= quota);
		}
		assert_true(count >= quota - quota / 2);
		for (uint32_t k = count; k-- > 0; ) {
			assert_true(tq_fill(&b, p[k], &n, 3) > 0);
			for (; out < n; out++)
				assert_int_equal(tq_take(&b, &tell), out);
			assert_true(tq_fill(&b, p[k], &n, 1) == 1);
			assert_int_equal(tq_take(&b, &tell), out++);
		}
		assert_true(count == 1 || gsas_producer_open(b.queue, NULL,
							  &p[count]) != GSAS_OK
			    || count < quota);
		tq_free(&b);
	}
}

/* One producer gets many words per notification; many get about the same
 * each. */
static void test_grants_are_large(void **state)
{
	struct gsas_producer *p[16];
	struct tq b = tq_new(4096, 64, NULL);

	for (int i = 0; i < 16; i++) {
		p[i] = tq_open(&b, NULL);
		assert_int_equal(gsas_producer_granted(p[i]),
				 GSAS_QUEUE_WINDOW);
	}
	for (int i = 0; i < 32; i++)
		assert_int_equal(gsas_queue_put(p[3], 0), GSAS_OK);
	assert_false(tq_grant(&b));
	assert_int_equal(gsas_producer_granted(p[3]), GSAS_QUEUE_WINDOW);
	assert_int_equal(gsas_queue_put(p[3], 0), GSAS_OK);
	assert_false(tq_grant(&b));
	assert_int_equal(gsas_producer_granted(p[3]), GSAS_QUEUE_WINDOW + 33);
	tq_free(&b);
	/* small quota: the first ones leave some for the last */
	b = tq_new(256, 64, NULL);
	for (int i = 0; i < 8; i++) {
		p[i] = tq_open(&b, NULL);
		assert_in_range(gsas_producer_granted(p[i]), 5, 33);
	}
	tq_free(&b);
}

/* Producers without a word are served in turn, and share equally. */
static void test_turns(void **state)
{
	struct gsas_producer *p[PRODUCERS], *order[PRODUCERS], *g;
	struct tq b = tq_new(64, 8, NULL);
	uint64_t n = 0;
	bool tell, waits;

	for (int i = 0; i < PRODUCERS; i++)
		p[i] = tq_open(&b, NULL);
	for (int i = 0; i < PRODUCERS; i++)
		while (gsas_queue_put(p[i], n) == GSAS_OK)
			n++;
	while ((g = gsas_queue_grant(b.queue, &waits)) != NULL)
		while (gsas_queue_put(g, n) == GSAS_OK)
			n++;
	assert_int_equal(n, 64);
	assert_true(waits);
	for (int lap = 0; lap < 4 * PRODUCERS; lap++) {
		tq_take(&b, &tell);
		g = gsas_queue_grant(b.queue, &waits);
		assert_non_null(g);
		/* the first lap determines the order */
		for (int i = 0; i < lap && lap < PRODUCERS; i++)
			assert_ptr_not_equal(g, order[i]);
		if (lap < PRODUCERS)
			order[lap] = g;
		assert_ptr_equal(g, order[lap % PRODUCERS]);
		assert_int_equal(gsas_queue_put(g, n++), GSAS_OK);
		assert_int_equal(gsas_queue_put(g, n), GSAS_E_AGAIN);
	}
	for (int i = 0; i < 16; i++)
		tq_take(&b, &tell);
	for (int i = 0; i < PRODUCERS; i++) {
		uint64_t had = gsas_producer_granted(order[i]);

		g = gsas_queue_grant(b.queue, &waits);
		assert_ptr_equal(g, order[i]);
		assert_int_equal(gsas_producer_granted(g) - had, 2);
	}
	tq_free(&b);
}

/* Unused words of a producer that is closed are granted to other producers. */
static void test_close_returns_grants(void **state)
{
	struct tq b = tq_new(100, 8, NULL);
	struct gsas_producer *idle = tq_open(&b, NULL);
	struct gsas_producer *p = tq_open(&b, NULL);
	uint64_t n = 0, kept = gsas_producer_granted(idle);

	assert_true(kept > 1);
	assert_int_equal(tq_fill(&b, p, &n, 1000), 100 - kept);
	gsas_producer_close(idle);
	assert_int_equal(tq_fill(&b, p, &n, 1000), kept);
	gsas_producer_close(p);		/* it waited for grants */
	assert_false(tq_grant(&b));
	p = tq_open(&b, NULL);
	assert_int_equal(gsas_producer_granted(p), 0);
	assert_true(tq_grant(&b));
	/* their windows together exceed the quota */
	for (int i = 0; i < 200; i++)
		gsas_producer_close(tq_open(&b, NULL));
	tq_free(&b);
}

/* A consumer notifies the service once, when it has taken half of the words or
 * 32 words; and never if no producer waits. */
static void test_notified_when_wanted(void **state)
{
	static const uint32_t quotas[] = { 1, 2, 4, 10, 64, 100, 1000 };

	for (size_t i = 0; i < sizeof(quotas) / sizeof(*quotas); i++) {
		uint32_t quota = quotas[i], at = quota / 2;
		struct tq b = tq_new(quota, 8, NULL);
		struct gsas_producer *p = tq_open(&b, NULL);
		uint64_t n = 0, had;
		bool tell;

		if (at == 0 || at > GSAS_QUEUE_WINDOW / 2)
			at = at == 0 ? 1 : GSAS_QUEUE_WINDOW / 2;
		assert_int_equal(gsas_queue_put(p, n++), GSAS_OK);
		tq_grant(&b);
		assert_int_equal(tq_take(&b, &tell), 0);
		assert_true(!tell || quota == 1);
		n = 0;
		tq_grant(&b);
		assert_int_equal(tq_fill(&b, p, &n, 5000), quota);
		had = gsas_producer_granted(p);
		for (uint32_t k = 1; k <= quota; k++) {
			tq_take(&b, &tell);
			assert_int_equal(tell, k == at);
		}
		tq_grant(&b);
		assert_true(gsas_producer_granted(p) > had);
		tq_free(&b);
	}
}

/* ---- Memory -------------------------------------------------------------- */

static struct {
	struct tq *tq;
	uint8_t *there;			/* by page: written, not given back */
	uint64_t calls, pages;
} g_given;

/* Overwrites the buffers: they are free, so no word may change. */
static void give_back(void *memory, uint64_t bytes)
{
	uint64_t off = (uint64_t)((char *)memory - (char *)g_given.tq->head);

	assert_int_equal(off % GSAS_PAGE_BYTES, 0);
	assert_int_equal(bytes % GSAS_PAGE_BYTES, 0);
	assert_true(off >= g_given.tq->view.shape.words);
	assert_true(bytes > 0 && off + bytes <= g_given.tq->bytes);
	memset(memory, 0xEE, bytes);
	memset(g_given.there + off / GSAS_PAGE_BYTES, 0,
	       bytes / GSAS_PAGE_BYTES);
	g_given.calls++;
	g_given.pages += bytes / GSAS_PAGE_BYTES;
}

/* Marks the page of the last word put in, by the directory. */
static void note_touched(struct tq *b, uint64_t tail)
{
	uint32_t shift = b->view.shape.shift;
	uint64_t buffer = b->head->directory[(tail - 1) >> shift &
					     (b->view.shape.entries - 1)];
	uint64_t off = b->view.shape.words +
		((buffer << shift) + ((tail - 1) & ((1u << shift) - 1))) * 8;

	g_given.there[off / GSAS_PAGE_BYTES] = 1;
}

static uint64_t pages_there(struct tq *b)
{
	uint64_t n = 0;

	for (uint64_t i = 0; i < b->bytes / GSAS_PAGE_BYTES; i++)
		n += g_given.there[i];
	return n;
}

/* Drained, the queue has 64 KiB and the last buffer, however many words it had;
 * and every word comes out as it went in. */
static void test_memory_is_given_back(void **state)
{
	enum { QUOTA = 200000 };

	for (uint32_t buffer = 8; buffer <= 4096; buffer *= 8) {
		struct tq b = tq_new(QUOTA, buffer, give_back);
		struct gsas_producer *p = tq_open(&b, NULL);
		uint64_t in = 0, out = 0, told = 0;

		memset(&g_given, 0, sizeof(g_given));
		g_given.tq = &b;
		g_given.there = calloc(1, b.bytes / GSAS_PAGE_BYTES);
		for (int lap = 0; lap < 3; lap++) {
			uint64_t end = in + (lap == 1 ? 100000 : QUOTA);
			bool tell;

			while (in < end && tq_fill(&b, p, &in, 1) == 1)
				note_touched(&b, in);
			assert_true(pages_there(&b) >= (in - out) * 8 /
				    GSAS_PAGE_BYTES);
			tq_grant(&b);
			/* the service grants after a notification, and by clock
			 * as long as a producer waits */
			while (out < in) {
				assert_int_equal(tq_take(&b, &tell), out++);
				told += tell;
				while (tell && tq_grant(&b))
					;
			}
			assert_true(pages_there(&b) <=
				    16 + 1 + 7 * (buffer / 512 + 1));
			tq_empty(&b);
		}
		assert_true(told > 0 && told < 40);
		assert_true(g_given.calls * 7 < g_given.pages);
		free(g_given.there);
		tq_free(&b);
	}
}

/* A queue that is always short uses the same few pages, and gives none back. */
static void test_short_queue_stays_warm(void **state)
{
	struct tq b = tq_new(100000, 64, give_back);
	struct gsas_producer *p = tq_open(&b, NULL);
	uint64_t in = 0, out = 0;
	bool tell;

	memset(&g_given, 0, sizeof(g_given));
	g_given.tq = &b;
	g_given.there = calloc(1, b.bytes / GSAS_PAGE_BYTES);
	while (in < 1000000) {
		for (int i = 0; i < 1000; i++) {
			assert_int_equal(tq_fill(&b, p, &in, 1), 1);
			note_touched(&b, in);
		}
		while (out < in)
			assert_int_equal(tq_take(&b, &tell), out++);
		assert_false(tq_grant(&b));
	}
	assert_int_equal(g_given.calls, 0);
	assert_true(pages_there(&b) <= 6);
	/* a shorter queue uses two pages */
	memset(g_given.there, 0, b.bytes / GSAS_PAGE_BYTES);
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(tq_fill(&b, p, &in, 1), 1);
		note_touched(&b, in);
		assert_int_equal(tq_take(&b, &tell), out++);
		assert_false(tq_grant(&b));
	}
	assert_true(pages_there(&b) <= 2);
	free(g_given.there);
	tq_free(&b);
}

/* A long queue is drained at once, and filled again as fast as possible: there
 * are buffers although the service takes them back step by step. */
static void test_drained_at_once(void **state)
{
	enum { QUOTA = 40000, MANY = 1000 };
	struct tq b = tq_new(QUOTA, 8, NULL);
	struct gsas_producer **p = calloc(MANY, sizeof(*p));
	uint64_t in = 0, out = 0;
	bool tell, waits;

	for (int i = 0; i < MANY; i++)
		p[i] = tq_open(&b, NULL);
	for (int lap = 0; lap < 4; lap++) {
		for (int i = 0; i < MANY; i++)
			tq_fill(&b, p[i], &in, 1000);
		while (out < in)
			assert_int_equal(tq_take(&b, &tell), out++);
		for (int i = 0; i < MANY; i++)
			gsas_queue_grant(b.queue, &waits);
	}
	assert_true(in > 3 * QUOTA);
	free(p);
	tq_free(&b);
}

static bool populate(void *pages, void *memory, uint64_t bytes)
{
	uint64_t *left = pages;

	(void)memory;
	assert_int_equal(bytes, GSAS_PAGE_BYTES);
	return *left > 0 && (*left)--;
}

/* A queue that is not full, a producer that has used its grants, and no memory
 * for more words. *pages: pages that the test still gives. */
static struct tq tq_starved(uint64_t *pages, struct gsas_producer **p)
{
	const struct gsas_queue_system system = {
		.populate = populate, .ctx = pages,
	};
	struct tq b = tq_new_of(10000, 512, &system);
	uint64_t n = 0;

	*p = tq_open(&b, NULL);
	assert_true(tq_fill(&b, *p, &n, 10000) < 10000);
	assert_int_equal(*pages, 0);
	assert_true(gsas_producer_full(*p) && gsas_queue_starved(b.queue));
	return b;
}

/* The open of one more producer fails with GSAS_E_MEMORY, not as if the queue
 * were full; it is granted words when there is memory. */
static void test_open_says_no_memory(void **state)
{
	uint64_t pages = 4;
	struct gsas_producer *p, *late;
	struct tq b = tq_starved(&pages, &p);

	assert_int_equal(gsas_producer_open(b.queue, NULL, &late),
			 GSAS_E_MEMORY);
	assert_true(tq_grant(&b));
	pages = 4;
	tq_grant(&b);
	assert_false(gsas_producer_full(p));
	late = tq_open(&b, NULL);
	assert_false(gsas_producer_full(late));
	tq_free(&b);
}

#define WAITERS		200

/* A producer and the last notice to it: GSAS_OK, it may send; GSAS_E_AGAIN or
 * GSAS_E_MEMORY, it may not. */
struct waiter {
	struct gsas_producer *p;
	enum gsas_error why;
};

/*
 * Sends all notices. After that every producer without grants has the right
 * reason: the queue is full, or it has no memory. Returns how many reasons were
 * wrong before.
 */
static unsigned long notify_all(struct tq *b, const struct waiter *w)
{
	unsigned long changed = 0;
	struct gsas_producer *p;
	enum gsas_error why;
	bool waits;

	while ((p = gsas_queue_grant(b->queue, &waits)) != NULL) {
		struct waiter *one = gsas_producer_user(p);

		why = !gsas_producer_full(p) ? GSAS_OK :
			gsas_queue_starved(b->queue) ? GSAS_E_MEMORY :
			GSAS_E_AGAIN;
		changed += one->why != GSAS_OK && why != GSAS_OK &&
			one->why != why;
		one->why = why;
	}
	why = gsas_queue_starved(b->queue) ? GSAS_E_MEMORY : GSAS_E_AGAIN;
	for (int i = 0; i < WAITERS; i++)
		if (w[i].p != NULL && gsas_producer_full(w[i].p))
			assert_int_equal(w[i].why, why);
	return changed;
}

static void open_waiter(struct tq *b, struct waiter *w)
{
	if (w->p == NULL &&
	    gsas_producer_open(b->queue, w, &w->p) == GSAS_OK)
		w->why = gsas_producer_full(w->p) ? GSAS_E_AGAIN : GSAS_OK;
}

/* Puts at most max words, by random producers. */
static void put_some(struct tq *b, struct waiter *w, uint32_t max,
		     uint64_t *rng)
{
	while (max-- > 0) {
		struct waiter *one = &w[unit_below(rng, WAITERS)];

		open_waiter(b, one);
		if (one->p != NULL && !gsas_producer_full(one->p))
			assert_int_equal(gsas_queue_put(one->p, 0), GSAS_OK);
	}
}

/* Words and memory come and go at random. */
static void test_reason_is_the_last_one(void **state)
{
	static struct waiter w[WAITERS];
	unsigned long changed = 0;
	uint64_t rng = 7;

	for (int round = 0; round < 10; round++) {
		uint64_t pages = 3;
		const struct gsas_queue_system system = {
			.populate = populate, .ctx = &pages,
		};
		struct tq b = tq_new_of(600 + unit_below(&rng, 3000), 512,
					&system);
		bool tell;

		memset(w, 0, sizeof(w));
		for (int step = 0; step < 1000; step++) {
			put_some(&b, w, unit_below(&rng, 600), &rng);
			changed += notify_all(&b, w);
			for (uint32_t n = unit_below(&rng, 300);
			     n > 0 && gsas_queue_words(b.queue) > 0; n--)
				tq_take(&b, &tell);
			pages = unit_below(&rng, 4) == 0;
			changed += notify_all(&b, w);
		}
		tq_free(&b);
	}
	assert_true(changed > 0);
}

/* A damaged queue grants without memory, because the words will be refused. */
static void test_dead_one_needs_no_memory(void **state)
{
	uint64_t pages = 4, had;
	struct gsas_producer *p;
	struct tq b = tq_starved(&pages, &p);
	bool waits;

	had = gsas_producer_granted(p);
	b.head->head = UINT64_MAX;
	assert_ptr_equal(gsas_queue_grant(b.queue, &waits), p);
	assert_true(gsas_producer_granted(p) > had);
	assert_false(waits || gsas_queue_starved(b.queue));
	assert_int_equal(gsas_queue_put(p, 5), GSAS_E_STATE);
	tq_free(&b);
}

/* ---- Memory that others write -------------------------------------------- */

/* A head that is not between the words ends the queue; no producer waits on. */
static void test_bad_head_ends_it(void **state)
{
	static const int64_t off[] = { -1, -6, INT64_MIN, 101, 5000,
				       INT64_MAX };

	for (size_t i = 0; i < sizeof(off) / sizeof(*off); i++) {
		struct tq b = tq_new(100, 8, NULL);
		struct gsas_producer *p = tq_open(&b, NULL), *waiting, *g;
		uint64_t n = 0, word, had;
		bool tell, waits;

		assert_int_equal(tq_fill(&b, p, &n, 6), 6);
		for (int k = 0; k < 6; k++)
			tq_take(&b, &tell);
		tq_grant(&b);
		assert_int_equal(tq_fill(&b, p, &n, 1000), 100);
		waiting = tq_open(&b, NULL);
		assert_int_equal(gsas_producer_granted(waiting), 0);
		assert_int_equal(b.head->head, 6);
		b.head->head += (uint64_t)off[i];
		had = gsas_producer_granted(p);
		assert_int_equal(gsas_producer_open(b.queue, NULL, &g),
				 GSAS_E_STATE);
		for (int k = 0; k < 2; k++) {
			g = gsas_queue_grant(b.queue, &waits);
			assert_ptr_equal(g, k == 0 ? p : waiting);
		}
		assert_null(gsas_queue_grant(b.queue, &waits));
		assert_false(waits);
		assert_true(gsas_producer_granted(p) > had);
		b.head->head = 6;		/* stays ended */
		for (int k = 0; k < 1000; k++) {
			assert_int_equal(gsas_queue_put(p, 5), GSAS_E_STATE);
			tq_grant(&b);
		}
		assert_int_equal(gsas_queue_put(waiting, 5), GSAS_E_STATE);
		for (int k = 0; k < 100; k++)
			assert_int_equal(gsas_queue_take(&b.view, &word, &tell),
					 0);
		assert_int_equal(gsas_queue_take(&b.view, &word, &tell),
				 -FI_EAGAIN);
		gsas_producer_close(waiting);
		tq_free(&b);
	}
}

static void test_bad_memory_is_reported(void **state)
{
	struct tq b = tq_new(100, 8, NULL);
	struct gsas_producer *p = tq_open(&b, NULL);
	uint64_t n = 0, word = 5;
	uint32_t entry;
	bool tell = true;

	assert_int_equal(tq_fill(&b, p, &n, 20), 20);
	tq_take(&b, &tell);
	tell = true;
	b.head->head = 0;
	b.head->head = 21;			/* beyond the tail */
	assert_int_equal(gsas_queue_take(&b.view, &word, &tell), -FI_EIO);
	b.head->head = 1;
	b.head->tail = 102;
	assert_int_equal(gsas_queue_take(&b.view, &word, &tell), -FI_EIO);
	b.head->tail = 20;
	entry = b.head->directory[0];
	b.head->directory[0] = b.view.shape.buffers;
	assert_int_equal(gsas_queue_take(&b.view, &word, &tell), -FI_EIO);
	b.head->directory[0] = UINT32_MAX;
	assert_int_equal(gsas_queue_take(&b.view, &word, &tell), -FI_EIO);
	assert_true(word == 5 && tell);
	b.head->directory[0] = entry;
	assert_int_equal(tq_take(&b, &tell), 1);
	tq_free(&b);
}

/* Random values anywhere: no access outside of the memory, no endless loop, and
 * the service's own counts stay right. */
static void test_scribbled_memory(void **state)
{
	uint64_t rng = 9;

	for (int round = 0; round < 300; round++) {
		uint32_t quota = 1 + unit_below(&rng, 500);
		struct tq b = tq_new(quota, 8u << unit_below(&rng, 8), NULL);
		struct gsas_producer *p[3];
		uint64_t put = 0, used[3] = { 0 }, word;
		int count = 0;
		bool flag;

		while (count < 3 && gsas_producer_open(b.queue, NULL, &p[count])
		       == GSAS_OK)
			count++;
		for (int step = 0; step < 2000; step++) {
			uint32_t i = unit_below(&rng, (uint32_t)count);
			_Atomic uint64_t *at = (_Atomic uint64_t *)b.head +
				unit_below(&rng, unit_below(&rng, 2) ? 32 :
					   (uint32_t)(b.bytes / 8));

			if (unit_below(&rng, 4) == 0)
				*at = unit_below(&rng, 2) ? unit_random(&rng) :
				      *at + unit_below(&rng, 5) - 2;
			if (gsas_queue_put(p[i], 1) != GSAS_E_AGAIN) {
				put++;
				used[i]++;
			}
			gsas_queue_take(&b.view, &word, &flag);
			gsas_queue_grant(b.queue, &flag);
			assert_true(used[i] <= gsas_producer_granted(p[i]));
			assert_true(gsas_queue_words(b.queue) <= quota);
		}
		/* it still accepts words, or every producer gets an error */
		for (int k = 0; k < 200; k++)
			if (gsas_queue_put(p[0], 1) == GSAS_E_STATE)
				tq_grant(&b);
		assert_true(put > 0);
		tq_free(&b);
	}
}

UNIT_MAIN(
	cmocka_unit_test(test_shape),
	cmocka_unit_test(test_view_is_checked),
	cmocka_unit_test(test_quota_fits),
	cmocka_unit_test(test_random_moves),
	cmocka_unit_test(test_idle_ones_starve_nobody),
	cmocka_unit_test(test_grants_are_large),
	cmocka_unit_test(test_turns),
	cmocka_unit_test(test_close_returns_grants),
	cmocka_unit_test(test_notified_when_wanted),
	cmocka_unit_test(test_memory_is_given_back),
	cmocka_unit_test(test_short_queue_stays_warm),
	cmocka_unit_test(test_drained_at_once),
	cmocka_unit_test(test_open_says_no_memory),
	cmocka_unit_test(test_reason_is_the_last_one),
	cmocka_unit_test(test_dead_one_needs_no_memory),
	cmocka_unit_test(test_bad_head_ends_it),
	cmocka_unit_test(test_bad_memory_is_reported),
	cmocka_unit_test(test_scribbled_memory),
)
