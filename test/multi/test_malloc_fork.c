/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_malloc_fork.c - forks that libunimem-malloc.so cannot make as usual.
 * test_malloc.c has the other tests of fork(2).
 *
 * If the kernel has no mappings left for the child, the child has its own
 * copies of the large blocks, or no access to them, and never the memory of its
 * parent. A thread whose stack is a large block does not fork at all.
 *
 * The program's mmap(2) is the one that the library calls.
 */
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "lib/unit.h"
#include "util/unm_arena.h"

#define BLOCKS		3
#define BYTES		((size_t)2 << 20)	/* of a block */
#define MAPPINGS_MOST	((size_t)1 << 18)	/* that a test makes */
#define ENDS		127		/* exit code of a child that gives up */

static struct unm_arena g_mem;
static uint8_t *g_block[BLOCKS];
static bool g_limited;			/* mmap() with MAP_FIXED fails */
static int g_left;			/* calls of it that succeed before */
static bool g_none;			/* it fails at free addresses, too */

static bool in_arena(const void *p)
{
	return (uintptr_t)p - (uintptr_t)g_mem.addr < g_mem.bytes;
}

static bool arena_mapped(void)
{
	unsigned char in_memory;

	return mincore(g_mem.addr, 1, &in_memory) == 0;
}

/* In the place of the C library's. The kernel refuses new mappings while a
 * process has too many, so one at the arena's addresses fails until the arena
 * has been unmapped. */
void *mmap(void *at, size_t bytes, int prot, int flags, int fd, off_t off)
{
	if (g_limited && (flags & MAP_FIXED) && g_left-- <= 0 &&
	    (g_none || arena_mapped())) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, bytes, prot, flags, fd, off);
}

static bool filled(const uint8_t *block, int with)
{
	for (size_t i = 0; i < BYTES; i++)
		if (block[i] != with)
			return false;
	return true;
}

/* ---- Too many mappings ------------------------------------------------- */

/* Blocks with free memory between them. */
static void make_blocks(void)
{
	void *between[BLOCKS];

	for (int i = 0; i < BLOCKS; i++) {
		g_block[i] = malloc(BYTES);
		between[i] = malloc(BYTES);
		assert_true(in_arena(g_block[i]));
		memset(g_block[i], i + 1, BYTES);
	}
	for (int i = 0; i < BLOCKS; i++)
		free(between[i]);
}

static void free_blocks(void)
{
	for (int i = 0; i < BLOCKS; i++)
		free(g_block[i]);
}

/* Fork, and let the child write to a block. Returns the child's exit code: 0 if
 * it had its contents. The parent has them in any case, and a child without
 * access writes a line. */
static int child_writes(int i)
{
	struct unit_capture cap = unit_capture_begin();
	char text[500];
	pid_t pid = fork();
	int code, lines;

	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		if (!filled(g_block[i], i + 1))
			_exit(1);
		memset(g_block[i], 0xee, BYTES);
		_exit(0);
	}
	code = unit_exit_code(pid);
	lines = unit_capture_end(&cap, text, sizeof(text));
	for (int k = 0; k < BLOCKS; k++)
		if (!filled(g_block[k], k + 1))
			unit_fail("%d mappings: child %d changed block %d",
				  g_left, i, k);
	assert_int_equal(lines, code != 0);
	return code;
}

/* How many children of one for each block have no access? */
static int without_access(void)
{
	int n = 0, code;

	for (int i = 0; i < BLOCKS; i++) {
		code = child_writes(i);
		if (code != 0)
			assert_int_equal(code, 128 + SIGSEGV);
		n += code != 0;
	}
	return n;
}

/* A child can make from none to all of the mappings that it needs. */
static void test_few_mappings(void **state)
{
	int most = 0;

	make_blocks();
	g_limited = true;
	for (g_left = 0; without_access() != 0; g_left++) {
		assert_true(g_left < 100);
		most = g_left + 1;
	}
	/* for each block and for what lies behind it */
	assert_int_equal(most, 2 * BLOCKS);
	g_limited = false;
	assert_int_equal(without_access(), 0);
	free_blocks();
}

/* A child that can not even replace the whole arena does not go on. */
static void test_no_mapping(void **state)
{
	make_blocks();
	g_limited = g_none = true;
	g_left = 0;
	assert_int_equal(child_writes(0), ENDS);
	g_limited = g_none = false;
	free_blocks();
}

/* The same by the kernel's limit. The child that was refused access gives the
 * whole arena up although no mapping can be made. */
static void test_kernel_refuses(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), most = 0, n = 0;
	FILE *f = fopen("/proc/sys/vm/max_map_count", "re");
	uint8_t *pages;

	unit_needs(f != NULL && fscanf(f, "%zu", &most) == 1 &&
		   most <= MAPPINGS_MOST);
	fclose(f);
	pages = mmap(NULL, 2 * most * page, PROT_NONE, MAP_PRIVATE |
		     MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(pages != MAP_FAILED);
	make_blocks();
	while (n < most && mprotect(pages + 2 * n * page, page, PROT_READ) == 0)
		n++;
	assert_true(n < most);
	assert_int_equal(without_access(), BLOCKS);
	munmap(pages, 2 * most * page);
	assert_int_equal(without_access(), 0);
	free_blocks();
}

/* ---- A stack in a large block ------------------------------------------ */

extern char **environ;

/* posix_spawn() works, because it calls no handlers of forks; fork() aborts. */
static void *on_stack(void *arg)
{
	char name[] = "true", *argv[] = { name, NULL };
	pid_t pid;

	if (in_arena(&pid) != *(bool *)arg)
		_exit(2);
	if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) != 0 ||
	    unit_exit_code(pid) != 0)
		_exit(3);
	pid = fork();
	if (pid == 0)
		_exit(0);
	if (pid < 0 || unit_exit_code(pid) != 0)
		_exit(4);
	return NULL;
}

/* A thread that forks; its stack has so many bytes. Returns an exit code. */
static int stack_main(size_t bytes)
{
	const struct rlimit none = { 0, 0 };
	pthread_attr_t attr;
	pthread_t thread;
	void *stack;
	bool block;

	setrlimit(RLIMIT_CORE, &none);
	if (posix_memalign(&stack, 4096, bytes) != 0)
		return 5;
	block = in_arena(stack);
	pthread_attr_init(&attr);
	if (pthread_attr_setstack(&attr, stack, bytes) != 0 ||
	    pthread_create(&thread, &attr, on_stack, &block) != 0 ||
	    pthread_join(thread, NULL) != 0)
		return 6;
	return 0;
}

/* Run the program again, with a thread on a stack of so many bytes. text: what
 * it writes to standard error. Returns the exit code. */
static int stack_of(const char *bytes, char text[500])
{
	struct unit_capture cap = unit_capture_begin();
	pid_t pid = unit_fork();
	int code;

	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		execl("/proc/self/exe", "test_malloc_fork", bytes, NULL);
		_exit(9);
	}
	code = unit_exit_code(pid);
	unit_capture_end(&cap, text, 500);
	return code;
}

static void test_stack(void **state)
{
	char text[500];

	assert_int_equal(stack_of("2097152", text), 128 + SIGABRT);
	assert_non_null(strstr(text, "stack"));
	assert_int_equal(unit_lines(text), 1);
	assert_int_equal(stack_of("524288", text), 0);
	assert_string_equal(text, "");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_few_mappings),
		cmocka_unit_test(test_no_mapping),
		cmocka_unit_test(test_kernel_refuses),
		cmocka_unit_test(test_stack),
	};
	void *probe = malloc(300 << 20);

	if (unimem_malloc_arena(&g_mem) != 0 || !in_arena(probe)) {
		printf("SKIP: limits of memory, or too little of it is free\n");
		return 77;
	}
	free(probe);
	if (argc == 2)
		return stack_main((size_t)atol(argv[1]));
	return unit_run(tests);
}
