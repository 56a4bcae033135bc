/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_published.c - atomic.h: programs as the paper prints them [D 2.3,
 * 2.4.2] compile and do what the paper says; an invalid call ends the program
 * with one line. Each case that ends runs in a process of its own.
 */
#include <spawn.h>

#include "atomic.h"
#include "lib/gsas_services.h"

static uint64_t *page_new(uint16_t quantity)
{
	uint64_t *p = allocSharedPage(quantity, (uint64_t)g_first + 1);

	assert_non_null(p);
	return p;
}

static void test_prototypes(void **state)
{
	/* the exact prototypes of the paper */
	uint64_t (*boards)(void) = getNumberBoards;
	uint64_t (*own)(void) = getBoardPid;
	void *(*alloc)(uint16_t quantity, uint64_t bid) = allocSharedPage;
	uint64_t (*release)(void *addr) = freeSharedPage;
	char (*read8)(char *addr) = READ8;
	uint32_t (*read32)(uint64_t *addr) = READ32;
	uint64_t (*read64)(uint64_t *addr) = READ64;
	uint64_t (*read4k)(void *addr, char *buffer) = READ4K;
	void (*write8)(char *addr, char val) = WRITE8;
	void (*write32)(uint32_t *addr, uint32_t val) = WRITE32;
	void (*write64)(uint64_t *addr, uint64_t val) = WRITE64;
	void (*write128)(uint64_t *addr, uint64_t val[2]) = WRITE128;
	uint64_t (*cas)(uint64_t *addr, uint64_t old_val,
			uint64_t new_val) = CAS64;
	int64_t (*fad)(int64_t *addr, int64_t val) = FAD64;
	uint64_t (*swap)(uint64_t *addr, uint64_t val) = SWAP64;
	uint64_t (*remote)(char *filename, uint64_t arg,
			   uint64_t bid) = remoteFork;
	uint64_t (*argument)(void) = readThreadArgument;

	assert_true(boards && own && alloc && release && read8 && read32 &&
		    read64 && read4k && write8 && write32 && write64 &&
		    write128 && cas && fad && swap && remote && argument);
	assert_int_equal(_MAX_FORK_PATH_FILENAME_, GSAS_PATH);
	assert_true(_EMPTY_THREAD_ARGUMENT_ == 0xCAFEBEBEDEADBEEF);
}

static void every_operation(bool mapped)
{
	uint64_t *p = page_new(2), two[2] = { 5, 6 };
	static char buffer[4096];

	WRITE64(p, 10);
	assert_int_equal(READ64(p), 10);
	assert_int_equal(FAD64((int64_t *)p, -4), 10);
	assert_int_equal(CAS64(p, 6, 7), 1);
	assert_int_equal(CAS64(p, 6, 8), 0);
	assert_int_equal(SWAP64(p, 9), 7);
	WRITE8((char *)p + 9, -1);
	/* a char has no sign on aarch64 */
	assert_int_equal(READ8((char *)p + 9), (char)-1);
	assert_int_equal(READ64(p + 1), 0xff00);
	WRITE32((uint32_t *)p + 3, 0x80000000);
	assert_true(READ32((uint64_t *)((uint32_t *)p + 3)) == 0x80000000);
	WRITE128(p + 4, two);
	assert_int_equal(READ64(p + 5), 6);
	if (!mapped) {
		assert_int_equal(READ4K((char *)p + 77, buffer), 4096);
		assert_int_equal(((uint64_t *)(void *)buffer)[0], 9);
		assert_int_equal(((uint64_t *)(void *)buffer)[5], 6);
	}
	assert_int_equal(freeSharedPage(p), 0);
}

static void test_every_operation(void **state)
{
	every_operation(false);
	setenv("GSAS_PAGES", "mapped", 1);
	every_operation(true);
	unsetenv("GSAS_PAGES");
}

static void test_boards(void **state)
{
	assert_int_equal(getNumberBoards(), gsas_boards());
	assert_int_equal(getBoardPid(), g_first);
	assert_null(allocSharedPage(0, (uint64_t)g_first));
	assert_null(allocSharedPage(1, getNumberBoards()));
	assert_null(allocSharedPage(1, UINT64_MAX));
	assert_null(allocSharedPage(1, UINT64_C(1) << 32));
}

/* [D 2.4.2]: tmp = *(*(array + 3) + 5), on shared arrays */
static void test_double_pointers(void **state)
{
	uint64_t *array = page_new(1), *row = page_new(1);

	WRITE64(row + 5, 42);
	WRITE64(array + 3, (uint64_t)row);
	{
		uint64_t *ptr = (uint64_t *)READ64(array + 3);
		uint64_t tmp = READ64(ptr + 5);

		assert_int_equal(tmp, 42);
	}
	freeSharedPage(row);
	freeSharedPage(array);
}

static void test_remote_fork(void **state)
{
	char path[_MAX_FORK_PATH_FILENAME_ + 8];

	assert_int_equal(remoteFork("/bin/true", 40, (uint64_t)g_first), 49);
	assert_int_equal(remoteFork("/missing", 40, (uint64_t)g_first), 0);
	assert_int_equal(remoteFork("/bin/true", 1, getNumberBoards()), 0);
	assert_int_equal(remoteFork("/bin/true", 1, UINT64_MAX), 0);
	/* the program could not distinguish this value from no argument */
	assert_int_equal(remoteFork("/bin/true", _EMPTY_THREAD_ARGUMENT_,
				    (uint64_t)g_first), 0);
	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(remoteFork(path, 1, (uint64_t)g_first), 0);
	assert_true(readThreadArgument() == _EMPTY_THREAD_ARGUMENT_);
	setenv("GSAS_ARGUMENT", "1f", 1);
	assert_int_equal(readThreadArgument(), 0x1f);
	unsetenv("GSAS_ARGUMENT");
}

/* ---- Calls that end the program ------------------------------------------ */

struct bad {
	const char *name;		/* also the first word of its log
					 * line */
	const char *says;
	void (*call)(uint64_t *freed, uint64_t *mapped);
};

#define BAD(name)	\
	static void bad_##name(uint64_t *freed, uint64_t *mapped)

BAD(READ8) { (void)mapped; READ8((char *)freed); }
BAD(READ32) { (void)mapped; READ32(freed); }
BAD(READ64) { (void)mapped; READ64(freed); }
BAD(READ4K) { char page[4096]; (void)freed; READ4K(mapped, page); }
BAD(WRITE8) { (void)mapped; WRITE8((char *)freed, 1); }
BAD(WRITE32) { (void)mapped; WRITE32((uint32_t *)freed, 1); }
BAD(WRITE64) { (void)mapped; (void)freed; WRITE64(NULL, 1); }
BAD(WRITE128) { uint64_t v[2] = { 0 }; (void)freed; WRITE128(mapped + 1, v); }
BAD(CAS64) { (void)mapped; CAS64(freed, 0, 1); }
BAD(FAD64) { (void)mapped; (void)freed; FAD64((int64_t *)UINTPTR_MAX, 1); }
BAD(SWAP64) { (void)mapped; SWAP64(freed, 1); }
BAD(freeSharedPage) { (void)mapped; freeSharedPage(freed); }

static const struct bad bad[] = {
	{ "READ8", "freed", bad_READ8 },
	{ "READ32", "freed", bad_READ32 },
	{ "READ64", "freed", bad_READ64 },
	{ "READ4K", "not on a page that may be mapped", bad_READ4K },
	{ "WRITE8", "freed", bad_WRITE8 },
	{ "WRITE32", "freed", bad_WRITE32 },
	{ "WRITE64", "nothing was ever allocated there", bad_WRITE64 },
	{ "WRITE128", "not on a page that may be mapped", bad_WRITE128 },
	{ "CAS64", "freed", bad_CAS64 },
	{ "FAD64", "nothing was ever allocated there", bad_FAD64 },
	{ "SWAP64", "freed", bad_SWAP64 },
	{ "freeSharedPage", "freed", bad_freeSharedPage },
};
#define NBAD	((int)(sizeof(bad) / sizeof(bad[0])))

/* The misuse, in the process that it ends: does not return. */
static int misbehave(int i)
{
	uint64_t *freed, *mapped;

	g_first = atoi(getenv("FI_UNIMEM_BOARD"));
	freed = allocSharedPage(1, (uint64_t)g_first);
	setenv("GSAS_PAGES", "mapped", 1);
	mapped = allocSharedPage(1, (uint64_t)g_first);
	HOLDS(freed != NULL && mapped != NULL);
	freeSharedPage(freed);
	printf("buffered");
	bad[i].call(freed, mapped);
	return 0;
}

static void one_that_ends(int i)
{
	char number[16], text[512], out[64] = "", line[256];
	char *argv[] = { "test_gsas_published", number, NULL };
	posix_spawn_file_actions_t actions;
	int code, lines, fds[2];
	struct unit_capture ear;
	pid_t pid;

	snprintf(number, sizeof(number), "%d", i);
	assert_int_equal(pipe(fds), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
	ear = unit_capture_begin();
	assert_int_equal(posix_spawn(&pid, "/proc/self/exe", &actions, NULL,
				     argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	assert_true(read(fds[0], out, sizeof(out) - 1) >= 0);
	close(fds[0]);
	code = unit_exit_code(pid);
	lines = unit_capture_end(&ear, text, sizeof(text));
	assert_int_equal(code, EXIT_FAILURE);
	assert_int_equal(lines, 1);
	snprintf(line, sizeof(line), "%s: 0x", bad[i].name);
	assert_ptr_equal(strstr(text, line), text);
	assert_non_null(strstr(text, bad[i].says));
	/* by exit(), which writes stdio's buffers */
	assert_string_equal(out, "buffered");
}

static void test_invalid_ends_the_program(void **state)
{
	for (int i = 0; i < NBAD; i++)
		one_that_ends(i);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prototypes),
		cmocka_unit_test(test_every_operation),
		cmocka_unit_test(test_boards),
		cmocka_unit_test(test_double_pointers),
		cmocka_unit_test(test_remote_fork),
		cmocka_unit_test(test_invalid_ends_the_program),
	};

	if (argc == 2)
		return misbehave(atoi(argv[1]));
	host_boards();
	return unit_run_with(tests, host_setup, host_teardown);
}
