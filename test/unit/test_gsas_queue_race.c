/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_queue_race.c - several threads take words out of a queue while
 * words are put in, or while another thread writes anything into its memory.
 * Others take words while one call of gsas_queue_take() is before its load of
 * the word, or before its store of the head.
 *
 * UNM_TEST_WORDS: words through the queue in each test (300,000; under a
 * sanitizer 30,000).
 */
#include <semaphore.h>

#include "lib/gsas_queue_fixture.h"

#define PRODUCERS	8
#define TAKERS	4

/* ---- Many at the same time ----------------------------------------------- */

struct crowd {
	struct tq tq;
	uint64_t words;			/* words of each producer */
	_Atomic uint8_t *taken;
	sem_t notified;
	_Atomic bool over;		/* no more words are put in */
	_Atomic uint64_t wrong, notices, errors;
};

static uint64_t words_number(void)
{
	return unit_number("UNM_TEST_WORDS", UNIT_SLOW ? 30000 : 300000);
}

/* Each taker gets the words of one producer in order. */
static void *taker_main(void *arg)
{
	struct crowd *c = arg;
	uint64_t next[PRODUCERS] = { 0 };

	for (;;) {
		bool over = c->over, tell;
		uint64_t word, from, n;
		int ret = gsas_queue_take(&c->tq.view, &word, &tell);

		if (ret == -FI_EAGAIN) {
			if (over)
				return NULL;
			sched_yield();
			continue;
		}
		if (ret != 0) {
			c->errors++;
			return NULL;
		}
		from = word % PRODUCERS;
		n = word / PRODUCERS;
		if (n >= c->words || n < next[from])
			c->wrong++;
		else if (c->taken[word]++ != 0)
			c->wrong++;
		next[from] = n + 1;
		if (tell) {
			c->notices++;
			sem_post(&c->notified);
		}
	}
}

/* The service and the producers: put words as granted; sleep without a timeout
 * when no producer can. */
static void crowd_put(struct crowd *c)
{
	struct user user[PRODUCERS] = { 0 };
	uint64_t rng = 11, left = c->words * PRODUCERS;

	for (int i = 0; i < PRODUCERS; i++)
		user[i].p = tq_open(&c->tq, &user[i]);
	while (left > 0) {
		uint64_t put = 0;
		bool waits;

		for (int i = 0; i < PRODUCERS; i++) {
			struct user *u = &user[i];
			uint32_t burst = unit_below(&rng, 20);

			while (burst-- > 0 && u->used < c->words &&
			       gsas_queue_put(u->p, u->used * PRODUCERS +
					      (uint64_t)i) == GSAS_OK) {
				u->used++;
				put++;
			}
		}
		left -= put;
		while (gsas_queue_grant(c->tq.queue, &waits) != NULL)
			put++;
		if (left == 0 || put != 0)
			continue;
		for (int i = 0; i < PRODUCERS; i++)
			put += user[i].used < c->words ? unused(&user[i]) : 0;
		if (put == 0) {
			if (!waits)
				c->errors++;
			sem_wait(&c->notified);
		}
	}
	c->over = true;
}

static void crowd_run(uint32_t quota, uint32_t buffer)
{
	struct crowd c = { .tq = tq_new(quota, buffer, NULL) };
	uint64_t all;
	pthread_t taker[TAKERS];

	c.words = words_number() / PRODUCERS;
	all = c.words * PRODUCERS;
	c.taken = calloc(1, all);
	sem_init(&c.notified, 0, 0);
	for (int i = 0; i < TAKERS; i++)
		taker[i] = unit_thread(taker_main, &c);
	crowd_put(&c);
	for (int i = 0; i < TAKERS; i++)
		pthread_join(taker[i], NULL);
	assert_int_equal(c.errors, 0);
	assert_int_equal(c.wrong, 0);
	for (uint64_t i = 0; i < all; i++)
		assert_int_equal(c.taken[i], 1);
	assert_int_equal(c.tq.head->head, all);
	/* most words need no notification */
	assert_true(quota < 100 || c.notices < all / 8);
	sem_destroy(&c.notified);
	free((void *)c.taken);
	tq_free(&c.tq);
}

static void test_many_takers(void **state)
{
	crowd_run(2 * PRODUCERS, 8);
	crowd_run(100, 8);
	crowd_run(5000, 64);
}

/* ---- Other takers are faster --------------------------------------------- */

/*
 * A call of gsas_queue_take() loads the head, then loads the word, then moves
 * the head if the head still has the loaded value. Other takers and the service
 * change the queue in between. The test forbids an access of the call, so the
 * call gets SIGSEGV, and the handler does the work of the other takers and of
 * the service. Then the call repeats the access and continues. There are two
 * places:
 * - AT_WORD: the load of the word. The pages of the words may not be accessed.
 * - AT_HEAD: the store that moves the head. The pages of the head may not be
 *   written. Whatever the call compared before this access, the comparison has
 *   been made when the head changes.
 * The interleaving does not depend on the scheduler.
 */
enum place { AT_WORD, AT_HEAD };

static struct {
	struct tq *tq;
	struct gsas_producer *p;
	enum place place;		/* where the handler runs */
	uint64_t out, in;		/* next word to be taken, to be put */
	uint64_t takes, puts;		/* words that the handler takes, then
					 * puts */
	bool done;			/* the handler ran */
} g_others;

/* Forbid the access at this place, or allow it again. */
static void forbid(const struct tq *b, enum place place, bool on)
{
	const struct gsas_queue_shape *shape = &b->view.shape;
	char *words = (char *)b->head + shape->words;
	uint64_t head = tq_pages(shape->words);
	int ret;

	if (place == AT_WORD)
		ret = mprotect(words, shape->bytes - shape->words,
			       on ? PROT_NONE : PROT_READ | PROT_WRITE);
	else
		ret = mprotect(words - head, head,
			       on ? PROT_READ : PROT_READ | PROT_WRITE);
	assert_int_equal(ret, 0);
}

static void others_act(int sig)
{
	bool tell;

	forbid(g_others.tq, g_others.place, false);
	for (uint64_t i = 0; i < g_others.takes; i++)
		assert_int_equal(tq_take(g_others.tq, &tell), g_others.out++);
	assert_int_equal(tq_fill(g_others.tq, g_others.p, &g_others.in,
				 g_others.puts), g_others.puts);
	g_others.done = true;
}

/* Take the next word of a full queue. At this place other takers take as many
 * words as takes says, and then the service puts as many as puts says. */
static void overtaken_take(enum place place, uint64_t takes, uint64_t puts)
{
	/* once: a further fault is an error */
	const struct sigaction act = {
		.sa_handler = others_act,
		.sa_flags = (int)SA_RESETHAND | SA_NODEFER,
	};
	struct sigaction old;
	uint64_t word = 77;
	bool tell = true;
	int ret;

	g_others.place = place;
	g_others.takes = takes;
	g_others.puts = puts;
	g_others.done = false;
	forbid(g_others.tq, place, true);
	sigaction(SIGSEGV, &act, &old);
	ret = gsas_queue_take(&g_others.tq->view, &word, &tell);
	sigaction(SIGSEGV, &old, NULL);
	assert_true(g_others.done);
	if (g_others.out < g_others.in) {
		assert_int_equal(ret, 0);
		assert_int_equal(word, g_others.out++);
	} else {
		assert_int_equal(ret, -FI_EAGAIN);
		assert_true(word == 77 && tell);
	}
}

/* The next word is in each place of a buffer in turn, three times. With puts
 * the service also reuses the buffer. */
static void overtaken_run(enum place place, uint32_t quota, uint64_t takes,
			  uint64_t puts)
{
	struct tq b = tq_new(quota, GSAS_QUEUE_BUFFER_MIN, NULL);
	bool tell;

	g_others.tq = &b;
	g_others.p = tq_open(&b, NULL);
	g_others.in = g_others.out = 0;
	for (uint64_t lap = 0; lap < 3 * GSAS_QUEUE_BUFFER_MIN; lap++) {
		/* the next word: the first one of the full queue */
		while (g_others.in % GSAS_QUEUE_BUFFER_MIN !=
		       lap % GSAS_QUEUE_BUFFER_MIN) {
			assert_int_equal(tq_fill(&b, g_others.p, &g_others.in,
						 1), 1);
			assert_int_equal(tq_take(&b, &tell), g_others.out++);
		}
		assert_int_equal(tq_fill(&b, g_others.p, &g_others.in, quota),
				 quota);
		overtaken_take(place, takes, puts);
		while (g_others.out < g_others.in)
			assert_int_equal(tq_take(&b, &tell), g_others.out++);
		tq_empty(&b);
	}
	tq_free(&b);
}

static void others_are_faster(enum place place)
{
	static const uint32_t quotas[] = { 1, 9, 40 };

	for (size_t i = 0; i < sizeof(quotas) / sizeof(*quotas); i++)
		for (uint64_t takes = 1; takes <= quotas[i]; takes++) {
			overtaken_run(place, quotas[i], takes, 0);
			overtaken_run(place, quotas[i], takes, takes);
		}
}

/* Others take words before a call loads the word. */
static void test_others_before_the_word(void **state)
{
	others_are_faster(AT_WORD);
}

/* Others take words before a call moves the head. ThreadSanitizer makes that
 * access itself, under a lock that it would need in the handler too. */
static void test_others_before_the_head(void **state)
{
#ifdef __SANITIZE_THREAD__
	skip();
#endif
	others_are_faster(AT_HEAD);
}

/* ---- Any values in the memory -------------------------------------------- */

/* Writes random values into the queue's memory at the same time. */
static void *vandal_main(void *arg)
{
	struct crowd *c = arg;
	uint64_t rng = 13;

	for (int i = 0; i < (UNIT_SLOW ? 30000 : 300000); i++) {
		_Atomic uint64_t *at = (_Atomic uint64_t *)c->tq.head + 8 +
			unit_below(&rng, unit_below(&rng, 2) ? 16 : 64);

		atomic_store_explicit(at, unit_below(&rng, 2) ?
				      unit_random(&rng) : *at + 1,
				      memory_order_relaxed);
	}
	c->over = true;
	return NULL;
}

static void *victim_main(void *arg)
{
	struct crowd *c = arg;
	uint64_t word;
	bool tell;

	while (!c->over)
		gsas_queue_take(&c->tq.view, &word, &tell);
	return NULL;
}

static void test_vandals(void **state)
{
	struct crowd c = { .tq = tq_new(60, 8, NULL) };
	struct gsas_producer *p = tq_open(&c.tq, NULL);
	pthread_t thread[3];
	bool waits;

	for (int i = 0; i < 3; i++)
		thread[i] = unit_thread(i == 0 ? vandal_main : victim_main, &c);
	while (!c.over) {
		if (gsas_queue_put(p, 1) == GSAS_E_STATE &&
		    gsas_queue_words(c.tq.queue) > 60)
			break;
		gsas_queue_grant(c.tq.queue, &waits);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	tq_grant(&c.tq);
	assert_int_equal(gsas_queue_put(p, 1), GSAS_E_STATE);
	tq_free(&c.tq);
}

UNIT_MAIN(
	cmocka_unit_test(test_many_takers),
	cmocka_unit_test(test_others_before_the_word),
	cmocka_unit_test(test_others_before_the_head),
	cmocka_unit_test(test_vandals),
)
