/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_serve_queue.c - queues in the service: access rights, notifications
 * of grants, and the end of clients and queues.
 *
 * test_gsas_queue.c tests the memory of a queue.
 */
#include "lib/unit.h"
#include "service/gsas_queue.h"
#include "lib/gsas_service_fixture.h"

/* ---- Replacements of system calls --------------------------------------- */

static size_t g_page;			/* page size; 0: the system's */

int __real_madvise(void *at, size_t len, int advice);
int __wrap_madvise(void *at, size_t len, int advice);
long __real_sysconf(int name);
long __wrap_sysconf(int name);

/* As a system with such pages does it: each page of which len has a part is
 * removed. */
int __wrap_madvise(void *at, size_t len, int advice)
{
	if (g_page != 0 && (uintptr_t)at % g_page != 0) {
		errno = EINVAL;
		return -1;
	}
	if (g_page != 0)
		len += -len % g_page;
	return __real_madvise(at, len, advice);
}

long __wrap_sysconf(int name)
{
	return name == _SC_PAGESIZE && g_page != 0 ? (long)g_page :
		__real_sysconf(name);
}

/* ---- Queues -------------------------------------------------------------- */

static uint64_t queue_new(struct fixture_client *c, uint32_t quota,
			  uint64_t attr)
{
	return fixture_result(c, GSAS_QUEUE_NEW, 0, quota | UINT64_C(8) << 32,
			      attr);
}

/* A program that enqueues: what it was granted, and what it used. */
struct producer {
	struct fixture_client *c;
	uint64_t queue, granted, used;
	unsigned int notices;		/* notifications of grants */
	unsigned int full;		/* notifications that the queue is
					 * full */
};

static struct producer producer_open(struct fixture_client *c, uint64_t queue)
{
	struct producer p = { .c = c, .queue = queue };

	p.granted = fixture_result(c, GSAS_QUEUE_OPEN, queue, 0, 0);
	fixture_forget(c);
	return p;
}

/* Receive the notifications that have arrived. */
static void producer_hear(struct producer *p)
{
	for (unsigned int i = 0; i < p->c->answers; i++) {
		const struct gsas_answer *a = &p->c->answer[i];

		if (a->opcode != GSAS_ENQUEUE || a->more != p->queue)
			continue;
		assert_int_equal(a->tag, 0);
		if (a->response.error == GSAS_E_AGAIN) {
			assert_int_equal(a->response.result, p->used);
			assert_true(p->used >= p->granted);
			p->granted = p->used;
			p->full++;
			continue;
		}
		assert_int_equal(a->response.error, GSAS_OK);
		assert_true(a->response.result > p->granted);
		p->granted = a->response.result;
		p->notices++;
	}
}

static bool producer_put(struct producer *p, uint64_t word)
{
	if (p->used == p->granted)
		return false;
	if (!fixture_send(p->c, GSAS_ENQUEUE, 0, p->queue, word, 0))
		return false;
	p->used++;
	return true;
}

static uint64_t take(struct fixture_client *c, uint64_t queue, uint32_t max,
		     uint64_t *words)
{
	uint64_t n = fixture_result(c, GSAS_DEQUEUE, queue, max |
				    UINT64_C(24) << 32, 0);

	assert_true(n <= max);
	memcpy(words, c->out + 24, n * sizeof(*words));
	return n;
}

static void no_posted_errors(struct fixture_client *c)
{
	assert_int_equal(fixture_result(c, GSAS_FENCE, 0, 0, 0), 0);
}

/* By packets only, from several producers: no word is lost, and those of each
 * producer are in order. */
static void test_through(void **state)
{
	enum { PRODUCERS = 5, EACH = 3000 };
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *owner = fixture_client(w, 1, 1);
	uint64_t queue = queue_new(owner, 100, GSAS_MODE_WORLD), rng = 1;
	uint64_t next[PRODUCERS] = { 0 }, sent[PRODUCERS] = { 0 }, words[64];
	struct producer p[PRODUCERS];
	uint64_t out = 0;

	for (uint64_t i = 0; i < PRODUCERS; i++)
		p[i] = producer_open(fixture_client(w, 2, 2 + i), queue);
	while (out < PRODUCERS * EACH) {
		uint32_t i = unit_below(&rng, PRODUCERS);
		uint64_t n = 0;

		producer_hear(&p[i]);
		fixture_forget(p[i].c);
		for (int k = 0; k < 20 && sent[i] < EACH; k++)
			sent[i] += producer_put(&p[i], sent[i] |
						(uint64_t)i << 32);
		if (unit_below(&rng, 3) == 0)
			n = take(owner, queue, 1 + unit_below(&rng, 60),
				 words);
		for (uint64_t k = 0; k < n; k++) {
			i = (uint32_t)(words[k] >> 32);
			assert_true(i < PRODUCERS);
			assert_int_equal((uint32_t)words[k], next[i]++);
		}
		out += n;
		assert_true(gsas_service_stat(w->service)->words <= 100);
		gsas_service_progress(w->service);
	}
	assert_int_equal(gsas_service_stat(w->service)->words, 0);
	for (int i = 0; i < PRODUCERS; i++) {
		no_posted_errors(p[i].c);
		assert_true(p[i].notices > 0);
	}
	fixture_free(w);
}

/* The memory of drained buffers is given back in whole pages of the system.
 * These are larger than the pages of GSAS: the words beside stay. */
static void test_large_pages(void **state)
{
	enum { QUOTA = 40000, ROUNDS = 12 };
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *owner = fixture_client(w, 1, 1);
	uint64_t queue = queue_new(owner, QUOTA, 0), rng = 7;
	struct producer p = producer_open(owner, queue);
	uint64_t next = 0, words[64];

	g_page = 16384;
	for (int i = 0; i < ROUNDS; i++) {
		uint64_t full = p.used + QUOTA / 2 + unit_below(&rng, 5000);
		uint64_t left = unit_below(&rng, 5000);

		while (p.used < full) {
			if (!producer_put(&p, p.used))
				gsas_service_progress(w->service);
			producer_hear(&p);
			fixture_forget(owner);
		}
		while (p.used - next > left) {
			uint64_t n = take(owner, queue, 64, words);

			for (uint64_t k = 0; k < n; k++)
				assert_int_equal(words[k], next++);
			gsas_service_progress(w->service);
			producer_hear(&p);
			fixture_forget(owner);
		}
	}
	g_page = 0;
	no_posted_errors(owner);
	fixture_free(w);
}

/* By mapping, as programs of the owning job use it. */
static void test_mapped(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *owner = fixture_client(w, 1, 1);
	uint64_t queue = queue_new(owner, 1000, 0), word;
	struct producer p = producer_open(owner, queue);
	struct gsas_queue_view view;
	struct gsas_map_info info;
	bool tell;

	fixture_result(owner, GSAS_MAP, queue, 0, 0);
	memcpy(&info, owner->out, sizeof(info));
	assert_int_equal(gsas_queue_view((void *)(uintptr_t)(info.key[0] +
			 (queue - info.base)), gsas_queue_bytes(1000, 8),
			 &view), 0);
	assert_true(producer_put(&p, 0xabc));
	assert_int_equal(gsas_queue_take(&view, &word, &tell), 0);
	assert_int_equal(word, 0xabc);
	assert_int_not_equal(gsas_queue_take(&view, &word, &tell), 0);
	fixture_free(w);
}

/* Each grant is notified once, and there is no notification without a
 * change. */
static void test_grants(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *owner = fixture_client(w, 1, 1);
	uint64_t queue = queue_new(owner, 4, 0), words[8], used;
	struct producer p = producer_open(owner, queue);

	assert_true(p.granted > 0);
	while (p.used < 4) {
		gsas_service_progress(w->service);
		producer_hear(&p);
		fixture_forget(owner);
		gsas_service_progress(w->service);
		assert_int_equal(owner->answers, 0);
		assert_true(producer_put(&p, p.used));
	}
	/* full: the service checks at intervals until a word was taken */
	assert_int_equal(p.used, p.granted);
	assert_int_equal(gsas_service_stat(w->service)->words, 4);
	fixture_settle(w);
	assert_true(gsas_service_progress(w->service));
	/* the producer is notified of that once */
	producer_hear(&p);
	assert_int_equal(p.full, 1);
	assert_int_equal(owner->answers, 1);
	assert_int_equal(p.granted, 4);
	fixture_forget(owner);
	used = p.used;
	assert_false(producer_put(&p, 0));
	/* a word without a grant is refused */
	assert_true(fixture_send(owner, GSAS_ENQUEUE, 0, queue, 99, 0));
	assert_int_equal(fixture_result(owner, GSAS_FENCE, 0, 0, 0), 1);
	assert_int_equal(gsas_service_stat(w->service)->words, 4);
	fixture_forget(owner);
	assert_int_equal(take(owner, queue, 8, words), 4);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(words[i], i);
	gsas_service_progress(w->service);
	producer_hear(&p);
	assert_true(p.granted > used);
	assert_false(gsas_service_progress(w->service));
	fixture_free(w);
}

/* Words taken by a consumer that is killed before it notifies the service are
 * found by a timer. */
static void test_found_by_timer(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *owner = fixture_client(w, 1, 1);
	uint64_t queue[8], word;
	struct producer p[8];
	bool tell;

	for (int i = 0; i < 8; i++) {
		queue[i] = queue_new(owner, 2, 0);
		p[i] = producer_open(fixture_client(w, 1, 1), queue[i]);
		while (producer_put(&p[i], 1)) {
			gsas_service_progress(w->service);
			producer_hear(&p[i]);
			fixture_forget(p[i].c);
		}
		assert_int_equal(p[i].used, 2);
	}
	for (int i = 0; i < 8; i++) {
		struct gsas_queue_view view;
		struct gsas_map_info info;

		fixture_result(owner, GSAS_MAP, queue[i], 0, 0);
		memcpy(&info, owner->out, sizeof(info));
		gsas_queue_view((void *)(uintptr_t)(info.key[0] +
				(queue[i] - info.base)),
				gsas_queue_bytes(2, 8), &view);
		assert_int_equal(gsas_queue_take(&view, &word, &tell), 0);
		if (i % 2 == 0)		/* this consumer notifies the service */
			fixture_result(owner, GSAS_DEQUEUE, queue[i], 0, 0);
	}
	assert_true(gsas_service_progress(w->service));
	for (int i = 0; i < 8; i += 2) {
		producer_hear(&p[i]);
		assert_int_equal(p[i].granted, 3);
	}
	for (int i = 0; i < 8; i++)
		gsas_service_progress(w->service);
	for (int i = 1; i < 8; i += 2) {
		producer_hear(&p[i]);
		assert_int_equal(p[i].granted, 3);
	}
	fixture_free(w);
}

/* Grants that a client cannot receive now are added up and notified later; the
 * client's requests are not refused meanwhile. */
static void test_not_now(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *owner = fixture_client(w, 1, 1);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t queue = queue_new(owner, 4, 0), words[8];
	struct producer p = producer_open(c, queue);

	c->refuse = UINT32_MAX;
	for (int i = 0; i < 10; i++) {
		while (fixture_send(c, GSAS_ENQUEUE, 0, queue, p.used, 0) &&
		       ++p.used < 20)
			gsas_service_progress(w->service);
		take(owner, queue, 8, words);
		gsas_service_progress(w->service);
	}
	assert_int_equal(c->answers, 0);
	c->refuse = 0;
	gsas_service_progress(w->service);
	assert_true(c->answers > 0);
	for (unsigned int i = 0; i < c->answers; i++)
		assert_int_equal(c->answer[i].opcode, GSAS_ENQUEUE);
	producer_hear(&p);
	fixture_forget(c);
	assert_int_equal(p.notices, 1);
	assert_true(p.granted > 2);
	fixture_free(w);
}

/* The unused grants of a producer that ends are granted to other producers. */
static void test_ends(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *owner = fixture_client(w, 1, 1);
	uint64_t queue = queue_new(owner, 64, GSAS_MODE_WORLD), words[64];
	struct producer p = producer_open(owner, queue);

	for (int i = 0; i < 500; i++) {
		struct fixture_client *c = fixture_client(w, 2, 2);
		struct producer q = producer_open(c, queue);

		gsas_service_progress(w->service);
		producer_hear(&q);
		assert_true(q.granted > 0);
		assert_true(producer_put(&q, 1));
		if (i % 2)
			fixture_result(c, GSAS_QUEUE_CLOSE, queue, 0, 0);
		else
			fixture_end(c);
		if (i % 2) {
			assert_int_equal(fixture_error(c, GSAS_ENQUEUE, queue,
						       1, 0),
					 GSAS_E_STATE);
			fixture_end(c);
		}
		assert_int_equal(take(owner, queue, 64, words), 1);
		free(w->client[--w->clients]);
	}
	producer_hear(&p);
	fixture_forget(owner);
	for (uint64_t i = 0; i < 64; i++) {
		gsas_service_progress(w->service);
		producer_hear(&p);
		fixture_forget(owner);
		assert_true(producer_put(&p, i));
	}
	assert_int_equal(take(owner, queue, 64, words), 64);
	fixture_free(w);
}

/* When a producer ends, the producers that wait for its grants are notified, in
 * each queue. */
static void test_handed_on(void **state)
{
	enum { QUEUES = 8 };
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *owner = fixture_client(w, 1, 1);

	for (int by_end = 0; by_end < 2; by_end++) {
		struct fixture_client *c = fixture_client(w, 1, 1);
		struct producer waiting[QUEUES];
		uint64_t queue[QUEUES];

		for (int i = 0; i < QUEUES; i++) {
			queue[i] = queue_new(owner, 2, 0);
			fixture_result(c, GSAS_QUEUE_OPEN, queue[i], 0, 0);
			waiting[i] = producer_open(fixture_client(w, 1, 1),
						   queue[i]);
			assert_true(producer_put(&waiting[i], 1));
		}
		fixture_settle(w);
		for (int i = 0; i < QUEUES; i++) {
			producer_hear(&waiting[i]);
			assert_int_equal(waiting[i].notices, 0);
			assert_int_equal(waiting[i].full, 1);
			fixture_forget(waiting[i].c);
		}
		for (int i = 0; i < QUEUES && !by_end; i++)
			fixture_result(c, GSAS_QUEUE_CLOSE, queue[i], 0, 0);
		if (by_end)
			fixture_end(c);
		gsas_service_progress(w->service);
		for (int i = 0; i < QUEUES; i++) {
			producer_hear(&waiting[i]);
			assert_int_equal(waiting[i].notices, 1);
		}
	}
	fixture_free(w);
}

/* The queue is freed while clients have it open. */
static void test_freed(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *owner = fixture_client(w, 1, 1);
	struct fixture_client *c = fixture_client(w, 2, 2);
	struct gsas_answer a;

	for (int i = 0; i < 4; i++) {
		uint64_t queue = queue_new(owner, 64, GSAS_MODE_WORLD);
		uint64_t other = queue_new(owner, 64, GSAS_MODE_WORLD);
		struct producer p = producer_open(c, queue);
		struct producer q = producer_open(c, other);

		assert_true(producer_put(&p, 1));
		assert_true(producer_put(&q, 1));
		c->refuse = i % 2 ? 1 : 0;	/* a grant waits to be
						 * notified */
		gsas_service_progress(w->service);
		fixture_result(owner, GSAS_FREE, 0, queue, 0);
		assert_true(fixture_send(c, GSAS_ENQUEUE, 0, queue, 2, 0));
		a = fixture_ask(c, GSAS_FENCE, 0, 0, 0);
		assert_int_equal(a.response.result, 1);
		assert_int_equal(a.more, GSAS_E_FREED);
		assert_int_equal(fixture_error(c, GSAS_QUEUE_CLOSE, queue, 0,
					       0),
				 GSAS_E_FREED);
		assert_int_equal(fixture_error(owner, GSAS_DEQUEUE, queue, 1,
					       0),
				 GSAS_E_FREED);
		assert_true(producer_put(&q, 1));
		no_posted_errors(c);
		assert_int_equal(gsas_service_stat(w->service)->words, 2);
		if (i < 2)
			fixture_result(owner, GSAS_FREE, 0, other, 0);
		else
			fixture_result(c, GSAS_QUEUE_CLOSE, other, 0, 0);
		fixture_forget(c);
		if (i >= 2)
			fixture_result(owner, GSAS_FREE, 0, other, 0);
	}
	fixture_settle(w);
	assert_int_equal(w->blocks, 0);
	fixture_free(w);
}

/* A client of the owning job overwrites the memory: all clients get an error,
 * and the service is not harmed. */
static void test_overwritten(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *owner = fixture_client(w, 1, 1);
	struct fixture_client *c = fixture_client(w, 2, 2);
	uint64_t rng = 3;

	for (int i = 0; i < 200; i++) {
		uint64_t queue = queue_new(owner, 64, GSAS_MODE_WORLD);
		struct producer p = producer_open(c, queue);
		struct gsas_map_info info;
		uint8_t *memory;

		fixture_result(owner, GSAS_MAP, queue, 0, 0);
		memcpy(&info, owner->out, sizeof(info));
		memory = (void *)(uintptr_t)(info.key[0] + (queue -
							    info.base));
		for (int k = 0; k < 50; k++) {
			fixture_send(c, GSAS_ENQUEUE, 0, queue, 1, 0);
			for (int n = 0; n < 8; n++)
				memory[unit_below(&rng, 8192)] =
					(uint8_t)unit_random(&rng);
			fixture_ask(owner, GSAS_DEQUEUE, queue, 4, 0);
			gsas_service_progress(w->service);
		}
		fixture_forget(c);
		(void)p;
		fixture_result(owner, GSAS_FREE, 0, queue, 0);
	}
	fixture_free(w);
}

/* Many queues, each found by its address. */
static void test_many(void **state)
{
	enum { QUEUES = 1025 };
	static uint64_t queue[QUEUES];
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t words[2];

	for (int i = 0; i < QUEUES; i++)
		queue[i] = queue_new(c, 4, 0);
	for (int i = 0; i < QUEUES - 1; i++)
		assert_true(fixture_result(c, GSAS_QUEUE_OPEN, queue[i], 0, 0)
			    > 0);
	assert_int_equal(fixture_error(c, GSAS_QUEUE_OPEN, queue[QUEUES - 1], 0,
				       0), GSAS_E_QUOTA);
	for (int i = 0; i < QUEUES - 1; i++)
		fixture_send(c, GSAS_ENQUEUE, 0, queue[i], (uint64_t)i, 0);
	assert_int_equal(gsas_service_stat(w->service)->words, QUEUES - 1);
	for (int i = 0; i < QUEUES - 1; i++) {
		assert_int_equal(take(c, queue[i], 2, words), 1);
		assert_int_equal(words[0], i);
		if (i % 2)
			fixture_result(c, GSAS_QUEUE_CLOSE, queue[i], 0, 0);
	}
	fixture_result(c, GSAS_QUEUE_OPEN, queue[QUEUES - 1], 0, 0);
	fixture_settle(w);
	for (int i = 0; i < QUEUES; i++)
		assert_int_equal(fixture_error(c, GSAS_ENQUEUE, queue[i], 0, 0),
				 i % 2 ? GSAS_E_STATE : GSAS_OK);
	fixture_free(w);
}

UNIT_MAIN(
	cmocka_unit_test(test_through),
	cmocka_unit_test(test_large_pages),
	cmocka_unit_test(test_mapped),
	cmocka_unit_test(test_grants),
	cmocka_unit_test(test_found_by_timer),
	cmocka_unit_test(test_not_now),
	cmocka_unit_test(test_ends),
	cmocka_unit_test(test_handed_on),
	cmocka_unit_test(test_freed),
	cmocka_unit_test(test_overwritten),
	cmocka_unit_test(test_many),
)
