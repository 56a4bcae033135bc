/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_malloc_short.c - the arena of libunimem-malloc.so steps aside while
 * memory is short. The test has the arena's code itself, and says in files of
 * its own how much memory the machine has.
 */
#include <sys/stat.h>

#include "hal/hal_limit.h"
#include "lib/unit.h"
#include "malloc_arena.h"

#define MIB	((size_t)1 << 20)

static char g_root[64];

static void say_available(size_t mib)
{
	char name[128];
	FILE *f;

	snprintf(name, sizeof(name), "%s/proc/meminfo", g_root);
	f = fopen(name, "w");
	assert_non_null(f);
	fprintf(f, "MemTotal: 1024000 kB\nMemFree: 1 kB\n"
		"MemAvailable: %zu kB\nSwapFree: 0 kB\n", mib * 1024);
	fclose(f);
}

static int begin(void **state)
{
	char name[128];

	snprintf(g_root, sizeof(g_root), "/tmp/test_malloc_short.XXXXXX");
	assert_non_null(mkdtemp(g_root));
	snprintf(name, sizeof(name), "%s/proc", g_root);
	assert_int_equal(mkdir(name, 0700), 0);
	say_available(600);
	hal_limit_root(g_root);
	return 0;
}

static int end(void **state)
{
	char name[128];

	snprintf(name, sizeof(name), "%s/proc/meminfo", g_root);
	unlink(name);
	snprintf(name, sizeof(name), "%s/proc", g_root);
	rmdir(name);
	rmdir(g_root);
	hal_limit_root("");
	return 0;
}

static void *block(size_t mib)
{
	return arena_alloc(mib * MIB, mib * MIB, 16, false);
}

static bool any_resident(void)
{
	struct stat st;

	assert_int_equal(fstat(g_arena.fd, &st), 0);
	return st.st_blocks != 0;
}

static void test_steps_aside(void **state)
{
	void *kept = block(20), *p;

	if (kept == NULL)		/* a limit of this process */
		skip();
	memset(kept, 1, 20 * MIB);
	arena_free(kept);
	assert_true(any_resident());	/* kept for the next block ... */
	say_available(150);
	assert_null(block(200));
	assert_false(any_resident());	/* ... until memory is short */
	say_available(600);
	p = block(200);
	assert_non_null(p);
	arena_free(p);
}

/* Half of the machine's memory is all there is. */
static void test_arena_is_full(void **state)
{
	void *p[10];
	int n = 0;

	say_available(100000);
	while (n < 10 && (p[n] = block(100)) != NULL)
		n++;
	assert_int_equal(n, 4);
	while (n > 0)
		arena_free(p[--n]);
	p[0] = block(450);		/* the pieces are one again */
	assert_non_null(p[0]);
	arena_free(p[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_aside),
		cmocka_unit_test(test_arena_is_full),
	};

	return unit_run_with(tests, begin, end);
}
