/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_work.c - the service's worker thread, and memory that it allocates
 * while the thread that asked plans, adds and frees other regions. For
 * ThreadSanitizer, too.
 */
#include <semaphore.h>

#include "lib/gsas_memory_fixture.h"
#include "service/gsas_work.h"

static bool g_no_thread;
static int g_threads;			/* threads started so far */

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg);

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
			  void *(*start)(void *), void *arg)
{
	if (g_no_thread)
		return EAGAIN;
	g_threads++;
	return __real_pthread_create(thread, attr, start, arg);
}

#define PIECES	8

struct piece {
	struct gsas_work work;		/* must be first */
	sem_t *hold;			/* run() waits for it, if not NULL */
	pthread_t by;
	int ran, done;			/* number of calls */
	struct gsas_worker *again;	/* done() gives the piece once more */
};

static int g_order[64], g_norder;	/* numbers of pieces in the order of
					 * done() */
static struct piece g_piece[PIECES];

static void piece_run(struct gsas_work *work)
{
	struct piece *piece = (struct piece *)work;

	if (piece->hold != NULL)
		sem_wait(piece->hold);
	piece->by = pthread_self();
	piece->ran++;
}

static void piece_done(struct gsas_work *work)
{
	struct piece *piece = (struct piece *)work;
	struct gsas_worker *again = piece->again;

	piece->done++;
	g_order[g_norder++] = (int)(piece - g_piece);
	piece->again = NULL;
	if (again != NULL)
		gsas_worker_give(again, work);
}

static void pieces_new(sem_t *hold)
{
	g_norder = 0;
	memset(g_piece, 0, sizeof(g_piece));
	for (int i = 0; i < PIECES; i++) {
		g_piece[i].work.run = piece_run;
		g_piece[i].work.done = piece_done;
		g_piece[i].hold = hold;
	}
}

static void give(struct gsas_worker *worker, int i)
{
	assert_int_equal(gsas_worker_ready(worker), 0);
	gsas_worker_give(worker, &g_piece[i].work);
}

static void all_done_in_order(void)
{
	assert_int_equal(g_norder, PIECES);
	for (int i = 0; i < PIECES; i++) {
		assert_int_equal(g_order[i], i);
		assert_int_equal(g_piece[i].ran, 1);
		assert_int_equal(g_piece[i].done, 1);
	}
}

static void post(void *ctx)
{
	sem_post(ctx);
}

/* ---- Pieces of work ----------------------------------------------------- */

static void test_without_thread(void **state)
{
	struct gsas_worker *worker;
	int before = g_threads;

	pieces_new(NULL);
	assert_int_equal(gsas_worker_new(false, NULL, NULL, &worker), 0);
	assert_false(gsas_worker_collect(worker));
	for (int i = 0; i < PIECES; i++) {
		give(worker, i);
		assert_int_equal(g_piece[i].ran, 1);
		assert_int_equal(g_piece[i].done, 0);
	}
	assert_int_equal(g_threads, before);
	assert_false(gsas_worker_collect(worker));
	all_done_in_order();
	gsas_worker_free(worker);
	gsas_worker_free(NULL);
}

static void test_thread_comes_with_work(void **state)
{
	struct gsas_worker *worker;
	int before = g_threads;

	pieces_new(NULL);
	assert_int_equal(gsas_worker_new(true, NULL, NULL, &worker), 0);
	assert_int_equal(g_threads, before);
	for (int i = 0; i < PIECES; i++)
		give(worker, i);
	assert_int_equal(g_threads, before + 1);
	while (gsas_worker_collect(worker))
		sched_yield();
	all_done_in_order();
	for (int i = 0; i < PIECES; i++)
		assert_false(pthread_equal(g_piece[i].by, pthread_self()));
	gsas_worker_free(worker);
	all_done_in_order();
}

/* A piece that takes long does not delay the thread that gives it. */
static void test_giver_goes_on(void **state)
{
	struct gsas_worker *worker;
	sem_t hold, woken;

	sem_init(&hold, 0, 0);
	sem_init(&woken, 0, 0);
	pieces_new(&hold);
	assert_int_equal(gsas_worker_new(true, post, &woken, &worker), 0);
	for (int i = 0; i < PIECES; i++) {
		give(worker, i);
		assert_true(gsas_worker_collect(worker));
		assert_int_equal(g_norder, 0);
	}
	for (int i = 0; i < PIECES; i++) {
		assert_int_equal(sem_trywait(&woken), -1);
		sem_post(&hold);
		sem_wait(&woken);
		assert_int_equal(gsas_worker_collect(worker), i < PIECES - 1);
		assert_int_equal(g_norder, i + 1);
	}
	all_done_in_order();
	gsas_worker_free(worker);
	sem_destroy(&hold);
	sem_destroy(&woken);
}

static sigset_t g_mask;

static void mask_run(struct gsas_work *work)
{
	(void)work;
	pthread_sigmask(SIG_SETMASK, NULL, &g_mask);
}

static void nothing(struct gsas_work *work)
{
	(void)work;
}

static void test_worker_blocks_signals(void **state)
{
	struct gsas_worker *worker;
	struct gsas_work work = { .run = mask_run, .done = nothing };
	sigset_t before, after;

	pthread_sigmask(SIG_SETMASK, NULL, &before);
	assert_int_equal(gsas_worker_new(true, NULL, NULL, &worker), 0);
	assert_int_equal(gsas_worker_ready(worker), 0);
	gsas_worker_give(worker, &work);
	gsas_worker_free(worker);
	pthread_sigmask(SIG_SETMASK, NULL, &after);
	assert_int_equal(sigismember(&before, SIGTERM), 0);
	for (int i = 1; i < 32; i++)
		assert_int_equal(sigismember(&before, i),
				 sigismember(&after, i));
	assert_int_equal(sigismember(&g_mask, SIGTERM), 1);
	assert_int_equal(sigismember(&g_mask, SIGINT), 1);
	assert_int_equal(sigismember(&g_mask, SIGCHLD), 1);
	assert_int_equal(sigismember(&g_mask, SIGUSR1), 1);
	assert_int_equal(sigismember(&g_mask, SIGALRM), 1);
}

/* gsas_worker_free() returns after all pieces are done, including those that
 * done() gives. */
static void free_all(bool threaded)
{
	struct gsas_worker *worker;
	sem_t hold;

	sem_init(&hold, 0, 0);
	pieces_new(threaded ? &hold : NULL);
	assert_int_equal(gsas_worker_new(threaded, NULL, NULL, &worker), 0);
	g_piece[2].again = worker;
	for (int i = 0; i < PIECES; i++)
		give(worker, i);
	assert_int_equal(g_norder, 0);
	for (int i = 0; i < PIECES + 1; i++)
		sem_post(&hold);
	gsas_worker_free(worker);
	assert_int_equal(g_norder, PIECES + 1);
	assert_int_equal(g_order[PIECES], 2);
	for (int i = 0; i < PIECES; i++) {
		assert_int_equal(g_piece[i].ran, 1 + (i == 2));
		assert_int_equal(g_piece[i].done, 1 + (i == 2));
	}
	sem_destroy(&hold);
}

static void test_free_ends_all(void **state)
{
	free_all(false);
	free_all(true);
}

static void test_no_thread_to_be_had(void **state)
{
	struct gsas_worker *worker;

	pieces_new(NULL);
	assert_int_equal(gsas_worker_new(true, NULL, NULL, &worker), 0);
	g_no_thread = true;
	assert_int_equal(gsas_worker_ready(worker), -FI_EAGAIN);
	assert_false(gsas_worker_collect(worker));
	g_no_thread = false;
	assert_int_equal(g_piece[0].ran, 0);
	for (int i = 0; i < PIECES; i++)
		give(worker, i);
	gsas_worker_free(worker);
	all_done_in_order();
}

/* ---- Memory that the worker allocates ----------------------------------- */

#define ALLOCS	(UNIT_SLOW ? 3000 : 20000)
#define PLANS	16
#define HELD	256

struct alloc {
	struct gsas_work work;		/* must be first */
	struct gsas_pages *pages;
	struct gsas_plan plan;
	enum gsas_error error;
	struct gsas_block trash;	/* or memory to be freed */
	bool busy;
};

static struct gsas_region *g_held[HELD];
static int g_nheld;
static struct gsas_mem g_mem;

static void alloc_run(struct gsas_work *work)
{
	struct alloc *alloc = (struct alloc *)work;

	if (alloc->trash.memory != NULL)
		gsas_mem_free(&g_mem, &alloc->trash);
	else
		alloc->error = gsas_region_fill(alloc->pages, &alloc->plan);
}

static void alloc_add(struct alloc *alloc)
{
	assert_int_equal(alloc->error, GSAS_OK);
	if (g_nheld == HELD) {
		gsas_region_cancel(alloc->pages, &alloc->plan);
		return;
	}
	assert_int_equal(gsas_region_add(alloc->pages, &alloc->plan), GSAS_OK);
	g_held[g_nheld++] = alloc->plan.region;
}

static void alloc_done(struct gsas_work *work)
{
	struct alloc *alloc = (struct alloc *)work;

	alloc->busy = false;
	if (alloc->plan.region != NULL)
		alloc_add(alloc);
}

/* Frees a held region; what takes long is done by the worker. */
static void alloc_free(struct gsas_pages *p, struct gsas_worker *worker,
		       struct alloc *alloc, uint64_t *rng)
{
	int i = (int)unit_below(rng, (uint32_t)g_nheld);
	struct gsas_region *region = g_held[i];

	g_held[i] = g_held[--g_nheld];
	gsas_region_free(p, region, &alloc->trash);
	alloc->plan.region = NULL;
	if (alloc->trash.memory == NULL)
		return;
	alloc->busy = true;
	assert_int_equal(gsas_worker_ready(worker), 0);
	gsas_worker_give(worker, &alloc->work);
}

static void alloc_step(struct gsas_pages *p, struct gsas_worker *worker,
		       struct gsas_job *job, struct alloc *alloc, uint64_t *rng)
{
	uint64_t pages = unit_below(rng, 10) == 0 ? unit_below(rng, 600) + 1 :
		unit_below(rng, 20) + 1;
	uint64_t attr = unit_below(rng, 2) ? GSAS_ATTR_MAPPED : 0;

	alloc->pages = p;
	alloc->work.run = alloc_run;
	alloc->work.done = alloc_done;
	alloc->trash.memory = NULL;
	if (g_nheld > 0 && unit_below(rng, 5) < 2) {
		alloc_free(p, worker, alloc, rng);
		return;
	}
	assert_int_equal(gsas_region_plan(p, job, NULL, pages, attr,
					  &alloc->plan), GSAS_OK);
	if (alloc->plan.fill) {
		alloc->busy = true;
		assert_int_equal(gsas_worker_ready(worker), 0);
		gsas_worker_give(worker, &alloc->work);
		return;
	}
	alloc->error = GSAS_OK;
	alloc_add(alloc);
}

static void test_memory_by_the_worker(void **state)
{
	struct gsas_pages_attr attr = { .memory = gsas_mem(&g_mem) };
	struct alloc alloc[PLANS] = { { .busy = false } };
	const uint64_t key[2] = { 1, 2 };
	struct gsas_worker *worker;
	struct gsas_block trash;
	struct gsas_pages *p;
	struct gsas_stat stat;
	struct gsas_job *job;
	uint64_t rng = 3;

	assert_int_equal(gsas_pages_new(&attr, &p), 0);
	assert_int_equal(gsas_worker_new(true, NULL, NULL, &worker), 0);
	job = gsas_job_get(p, 1, key);
	for (int i = 0; i < ALLOCS; i++) {
		gsas_worker_collect(worker);
		while (alloc[i % PLANS].busy && gsas_worker_collect(worker))
			sched_yield();
		alloc_step(p, worker, job, &alloc[i % PLANS], &rng);
	}
	gsas_worker_free(worker);
	while (g_nheld > 0) {
		gsas_region_free(p, g_held[--g_nheld], &trash);
		if (trash.memory != NULL)
			gsas_mem_free(&g_mem, &trash);
	}
	assert_int_equal(g_mem.blocks, 0);
	assert_true(g_mem.calls > ALLOCS / 50);
	gsas_pages_stat(p, &stat);
	assert_int_equal(stat.pages, 0);
	assert_int_equal(stat.segments, 0);
	gsas_job_put(p, job);
	gsas_pages_free(p);
}

/* Relaxed, so that ThreadSanitizer sees accesses that nothing else orders. */
static _Atomic bool g_inside, g_go;

static int held_alloc(void *ctx, uint64_t bytes, bool mapped,
		      struct gsas_block *block)
{
	atomic_store_explicit(&g_inside, true, memory_order_relaxed);
	while (!atomic_load_explicit(&g_go, memory_order_relaxed))
		sched_yield();
	return gsas_mem_alloc(ctx, bytes, mapped, block);
}

/* While the worker allocates a segment, other regions are planned in it, and
 * one of these plans is dropped. */
static void test_plans_while_it_fills(void **state)
{
	struct gsas_pages_attr attr = { .memory = gsas_mem(&g_mem) };
	struct alloc alloc = { .work = { .run = alloc_run, .done = nothing } };
	const uint64_t key[2] = { 1, 2 };
	struct gsas_plan plan[3];
	struct gsas_worker *worker;
	struct gsas_job *job;

	attr.memory.alloc = held_alloc;
	assert_int_equal(gsas_pages_new(&attr, &alloc.pages), 0);
	assert_int_equal(gsas_worker_new(true, NULL, NULL, &worker), 0);
	job = gsas_job_get(alloc.pages, 1, key);
	assert_int_equal(gsas_region_plan(alloc.pages, job, NULL, 1, 0,
					  &alloc.plan), GSAS_OK);
	assert_int_equal(gsas_worker_ready(worker), 0);
	gsas_worker_give(worker, &alloc.work);
	while (!atomic_load_explicit(&g_inside, memory_order_relaxed))
		sched_yield();
	for (int i = 0; i < 3; i++) {
		assert_int_equal(gsas_region_plan(alloc.pages, job, NULL, 1, 0,
						  &plan[i]), GSAS_OK);
		assert_true(plan[i].fill);
	}
	gsas_region_cancel(alloc.pages, &plan[1]);
	atomic_store_explicit(&g_go, true, memory_order_relaxed);
	gsas_worker_free(worker);
	for (int i = 0; i < 3; i += 2) {
		assert_int_equal(gsas_region_fill(alloc.pages, &plan[i]),
				 GSAS_OK);
		assert_int_equal(gsas_region_add(alloc.pages, &plan[i]),
				 GSAS_OK);
	}
	assert_int_equal(gsas_region_add(alloc.pages, &alloc.plan), GSAS_OK);
	assert_int_equal(g_mem.blocks, 1);
	gsas_pages_free(alloc.pages);
	assert_int_equal(g_mem.blocks, 0);
}

UNIT_MAIN(
	cmocka_unit_test(test_without_thread),
	cmocka_unit_test(test_thread_comes_with_work),
	cmocka_unit_test(test_giver_goes_on),
	cmocka_unit_test(test_worker_blocks_signals),
	cmocka_unit_test(test_free_ends_all),
	cmocka_unit_test(test_no_thread_to_be_had),
	cmocka_unit_test(test_memory_by_the_worker),
	cmocka_unit_test(test_plans_while_it_fills),
)
