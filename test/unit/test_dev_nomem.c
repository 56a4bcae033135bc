/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_nomem.c - the device backend without memory: each of its allocations
 * fails in turn, and the backend works afterwards.
 */
#include "lib/dev_shim.h"
#include "lib/proc_files.h"

static int countdown;			/* allocations until one fails; 0:
					 * none */

#if !UNIT_SLOW				/* sanitizers replace malloc
					 * themselves */
/* glibc's functions behind the ones below */
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);

static bool starve(void)
{
	if (countdown == 0 || --countdown != 0)
		return false;
	errno = ENOMEM;
	return true;
}

void *calloc(size_t n, size_t size)
{
	return starve() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
	return starve() ? NULL : __libc_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
	return starve() ? NULL : __libc_memalign(align, size);
}
#endif

/* Retries where the call allows that, with a step of the other side each
 * time. */
static int connect_pair(struct pair *p)
{
	double end = now() + 5;
	int ret;

	while ((ret = hal_connect(p->a, &p->b->addr, &p->ab)) == -FI_EAGAIN &&
	       now() < end)
		step(p);
	return ret;
}

enum { ENGINE = 1, BOTH = 2 };		/* engine by registers; both connect */

/* Connects, imports and sends. Returns true if every step succeeded. */
static bool life(struct pair *p, bool both)
{
	struct hal_rmem *rmem = NULL;
	struct hal_mem *mem = NULL, *opened = NULL;
	struct hal_key key;
	void *addr;
	bool good;

	if (open_hal() != 0 || hal_if_open(hal, 0, &p->a) != 0 ||
	    hal_if_open(hal, 1, &p->b) != 0 || connect_pair(p) != 0)
		return false;
	if (both && hal_connect(p->b, &p->a->addr, &p->ba) != 0)
		return false;
	until(p, p->b->ninbound != 0 || p->dead_a != 0 ||
		 p->dead_b != 0);
	if (p->dead_a != 0 || p->dead_b != 0 || p->ba == NULL ||
	    hal_mem_alloc(hal, 0, 4096, &mem, &addr) != 0)
		return false;
	hal_mem_key(hal, mem, &key);
	good = until(p, hal_mem_import(p->ab, &key, &rmem) == 0) &&
	       send_word(p->ab, 5) == 0 && until(p, next_is(p->ba, 5)) &&
	       hal_mem_open(hal, &key, &opened, &addr) == 0;
	if (opened != NULL)
		hal_mem_free(hal, opened);
	hal_mem_free(hal, mem);
	return good;
}

static bool run_out(int after, int how)
{
	struct pair p = { 0 };
	bool good, failed;

	be_honest();
	lie.engine = how & ENGINE ? HAL_ENGINE_SIMPLE : HAL_ENGINE_KERNEL;
	countdown = after;
	good = life(&p, how & BOTH);
	failed = after != 0 && countdown == 0;
	countdown = 0;
	/* the caller gets an error whenever something failed */
	assert_true(good || failed);
	unpair(&p);
	if (hal != NULL)
		hal->ops->close(hal);
	hal = NULL;
	return failed;
}

static void every_allocation_fails_once(void **state)
{
	int fds;

	unit_needs(!UNIT_SLOW);
	run_out(0, 0);
	fds = proc_self_fds();
	for (int how = 0; how <= (ENGINE | BOTH); how++) {
		int n = 1;

		while (run_out(n, how))
			n++;
		print_message("%d allocations\n", n - 1);
		assert_true(n > 10);
		assert_int_equal(proc_self_fds(), fds);
	}
	assert_false(run_out(0, 0));
}

UNIT_MAIN(
	DEV_TEST(every_allocation_fails_once),
)
