/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_model_engine.c - processes of a board share its cDMA engine under the
 * timing model: together they get the bandwidth of one engine, and a process
 * that is killed leaves the engine usable.
 *
 * Each process writes down when it posted its first transfer and saw its last
 * end. From the first of these times to the last, the engine had time for all
 * transfers: a lower limit, so that no machine is too slow for the test.
 */
#include "lib/model_fixture.h"

#define TRANSFERS	4u
#define BYTES		20000u		/* 20 ms at 1 MB/s */
#define EACH		(30 * MS)	/* with the set-up */
#define OPENED		9000		/* a queue has 4,096 places */

/* When a process used the engine. */
struct span {
	uint64_t first, last;		/* ns */
};

static struct hal_mem *mem[2];
static struct hal_dma dma;

/* Make a transfer between memory of the own board ready. */
static void get_ready(const char *backend)
{
	uint64_t end = unm_now_ns() + PATIENCE;
	struct hal_rmem *rmem = NULL;
	struct hal_key key;
	void *local, *remote;
	int ret;

	begin_with_file(backend);
	assert_int_equal(hal_mem_alloc(hal, -1, BYTES, &mem[0], &local), 0);
	assert_int_equal(hal_mem_alloc(hal, -1, BYTES, &mem[1], &remote), 0);
	memset(local, 1, BYTES);
	assert_int_equal(hal_mem_key(hal, mem[1], &key), 0);
	while ((ret = hal_mem_import(out, &key, &rmem)) == -FI_EAGAIN) {
		assert_true(unm_now_ns() < end);
		step(to);
		step(from);
	}
	assert_int_equal(ret, 0);
	dma = (struct hal_dma){ .op = HAL_DMA_PUT, .peer = out, .rmem = rmem,
				.local = local, .len = BYTES };
}

static void finish(void)
{
	hal_mem_release(out, dma.rmem);
	hal_mem_free(hal, mem[0]);
	hal_mem_free(hal, mem[1]);
	end_all();
}

static void post(unsigned n)
{
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(hal_dma_post(from, &dma, i), 0);
}

static void await(unsigned n)
{
	uint64_t end = unm_now_ns() + PATIENCE;
	struct hal_dma_comp comp[4];

	for (unsigned done = 0; done < n; ) {
		int got = hal_dma_poll(from, comp, 4);

		for (int i = 0; i < got; i++, done++)
			assert_int_equal(comp[i].status, 0);
		assert_true(unm_now_ns() < end);
	}
}

static struct span work(void)
{
	struct span s = { .first = unm_now_ns() };

	post(TRANSFERS);
	await(TRANSFERS);
	s.last = unm_now_ns();
	return s;
}

static void write_figures(void)
{
	struct figures f = swift;

	f.setup = "10 ms";
	write_file(&f);
}

/* Two processes work at the same time. */
static void shared_by(const char *backend)
{
	struct span own, other;
	int ready[2], done[2];
	char c = 0;
	pid_t pid;

	write_figures();
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(done), 0);
	fflush(NULL);
	pid = unit_fork();
	if (pid == 0) {
		get_ready(backend);
		assert_int_equal(write(ready[1], &c, 1), 1);
		own = work();
		assert_int_equal(write(done[1], &own, sizeof(own)),
				 sizeof(own));
		finish();
		_exit(0);
	}
	get_ready(backend);
	assert_int_equal(read(ready[0], &c, 1), 1);
	own = work();
	assert_int_equal(read(done[0], &other, sizeof(other)), sizeof(other));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	if (other.first < own.first)
		own.first = other.first;
	if (other.last > own.last)
		own.last = other.last;
	assert_true(own.last - own.first >= 2 * TRANSFERS * EACH);
	finish();
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(done[i]);
	}
}

static void processes_share_the_emulations(void **state)
{
	shared_by("emu");
}

static void processes_share_the_register_models(void **state)
{
	shared_by("sim");
}

/* A process that is killed with transfers under way keeps the engine for these,
 * and no longer. */
static void killed_by(const char *backend)
{
	uint64_t posted;
	int ready[2];
	pid_t pid;

	write_figures();
	assert_int_equal(pipe(ready), 0);
	fflush(NULL);
	pid = unit_fork();
	if (pid == 0) {
		get_ready(backend);
		posted = unm_now_ns();
		post(TRANSFERS);
		assert_int_equal(write(ready[1], &posted, sizeof(posted)),
				 sizeof(posted));
		for (;;)
			pause();
	}
	get_ready(backend);
	assert_int_equal(read(ready[0], &posted, sizeof(posted)),
			 sizeof(posted));
	unit_kill(pid);
	post(1);
	await(1);
	/* the register model executes the process's transfers one by one */
	assert_true(unm_now_ns() >= posted + (TRANSFERS + 1) * EACH);
	post(1);
	await(1);
	finish();
	close(ready[0]);
	close(ready[1]);
}

static void killed_processes_free_it(void **state)
{
	killed_by("emu");
	killed_by("sim");
}

/* A process opens more interfaces than the queues of its first two would hold
 * questions, without a call that empties them. */
static void many_opened(const char *backend)
{
	struct hal_if *hif;

	write_figures();
	begin_with_file(backend);
	for (int i = 0; i < OPENED; i++) {
		assert_int_equal(hal_if_open(hal, -1, &hif), 0);
		hal_if_close(hif);
	}
	end_all();
}

static void opening_asks_others_once(void **state)
{
	many_opened("emu");
	many_opened("sim");
}

UNIT_MAIN(CASE(processes_share_the_emulations),
	  CASE(processes_share_the_register_models),
	  CASE(killed_processes_free_it),
	  CASE(opening_asks_others_once))
