/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_malloc.c - libunimem-malloc.so is the allocator of this program, which
 * is linked with it: large blocks of all calls, threads that allocate and free
 * while others do, and while the program forks; memory is given back; a child
 * has the contents as of the fork, whatever the parent does then; limits.
 *
 * UNM_TEST_MALLOC: calls of each thread in the stress test.
 */
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "lib/unit.h"
#include "util/unm_arena.h"

#define MIB		((size_t)1 << 20)
#define THREADS		4
#define SLOTS		12
#define CALLS		400
#define FORKS		6
#define KEPT_MAX	(64 * MIB)	/* UNIMEM_MALLOC_KEEP */

static struct unm_arena g_mem;


static bool in_arena(const void *p)
{
	return (uintptr_t)p - (uintptr_t)g_mem.addr < g_mem.bytes;
}

/* Bytes of the arena that have memory. */
static size_t resident(void)
{
	struct stat st;

	assert_int_equal(fstat(g_mem.fd, &st), 0);
	return (size_t)st.st_blocks * 512;
}

/* One byte each 512 bytes depends on seed. */
static void paint(void *p, size_t bytes, uint64_t seed)
{
	uint8_t *b = p;

	for (size_t i = 0; i < bytes; i += 512)
		b[i] = (uint8_t)(seed + i / 512);
	b[bytes - 1] = (uint8_t)seed;
}

static bool painted(const void *p, size_t bytes, uint64_t seed)
{
	const uint8_t *b = p;

	for (size_t i = 0; i < bytes && i != bytes - 1; i += 512)
		if (b[i] != (uint8_t)(seed + i / 512))
			return false;
	return b[bytes - 1] == (uint8_t)seed;
}

static bool is_zero(const uint8_t *b, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (b[i] != 0)
			return false;
	return true;
}

/* ---- Calls ------------------------------------------------------------- */

static void check_block(void *p, size_t bytes, size_t align)
{
	assert_non_null(p);
	assert_true(in_arena(p));
	assert_int_equal((uintptr_t)p % align, 0);
	assert_true(malloc_usable_size(p) >= bytes);
	errno = 77;
	paint(p, bytes, 3);
	free(p);
	assert_int_equal(errno, 77);
}

static void test_each_call(void **state)
{
	void *p = NULL;

	check_block(malloc(MIB), MIB, 16);
	check_block(calloc(3, MIB), 3 * MIB, 16);
	check_block(memalign(MIB, 5 * MIB), 5 * MIB, MIB);
	check_block(aligned_alloc(64, 2 * MIB), 2 * MIB, 64);
	check_block(valloc(MIB + 1), MIB + 1, 4096);
	check_block(pvalloc(MIB + 1), MIB + 1, 4096);
	assert_int_equal(posix_memalign(&p, 2 * MIB, 7 * MIB), 0);
	check_block(p, 7 * MIB, 2 * MIB);
	check_block(realloc(NULL, 9 * MIB), 9 * MIB, 16);
	p = malloc(3 * MIB);
	assert_null(realloc(p, 0));
	assert_int_equal(posix_memalign(&p, 24, 7 * MIB), EINVAL);
}

static void test_others_go_on(void **state)
{
	volatile size_t huge = g_mem.bytes + MIB, overflow = SIZE_MAX / 2;
	void *p[4] = { malloc(100), malloc(MIB - 1), memalign(4 * MIB, MIB) };

	for (int i = 0; i < 3; i++) {
		assert_non_null(p[i]);
		assert_false(in_arena(p[i]));
		memset(p[i], 1, 100);
		free(p[i]);
	}
	p[0] = malloc(huge);		/* may fail, but is not ours */
	assert_false(in_arena(p[0]));
	free(p[0]);
	errno = 0;
	assert_null(calloc(overflow, 3));
	assert_int_equal(errno, ENOMEM);
}

static void test_calloc_is_zero(void **state)
{
	for (int i = 0; i < 6; i++) {
		uint8_t *p = calloc(1, 2 * MIB);

		assert_true(in_arena(p));
		assert_true(is_zero(p, 2 * MIB));
		memset(p, 0xAA, 2 * MIB);
		free(p);
	}
}

/* madvise(2) does not free the pages of locked memory. The block is too large
 * to be kept, and the next block of its size has its addresses. */
static void test_locked_memory(void **state)
{
	size_t bytes = 40 * MIB;
	uint8_t *p = malloc(bytes), *q;

	memset(p, 0xAA, bytes);
	if (mlock(p, 4096) != 0) {
		free(p);
		skip();
	}
	free(p);
	q = calloc(1, bytes);
	assert_ptr_equal(q, p);
	assert_true(is_zero(q, bytes));
	munlock(q, 4096);
	free(q);
}

static void test_resize(void **state)
{
	size_t bytes = 1000;
	uint8_t *p = malloc(bytes);
	uintptr_t was;
	int moves = 0;

	paint(p, bytes, 9);
	for (int i = 0; i < 2000; i++) {	/* to 9 MB by 4,500 bytes */
		was = in_arena(p) ? (uintptr_t)p : 0;
		p = realloc(p, bytes + 4500);
		assert_non_null(p);
		moves += was != 0 && was != (uintptr_t)p;
		assert_true(painted(p, 1000, 9));
		bytes += 4500;
	}
	assert_true(in_arena(p));
	assert_true(moves <= 5);
	paint(p, bytes, 5);
	while (bytes > 2000) {
		bytes /= 2;
		p = realloc(p, bytes);
		paint(p + bytes - 1, 1, 5);
		assert_true(painted(p, bytes, 5));
	}
	assert_false(in_arena(p));
	free(p);
}

/* A block that shrinks gives memory back, and so does one that is freed, but
 * for what is kept for the next blocks. */
static void test_memory_is_given_back(void **state)
{
	void *p[40], *one;
	size_t was;

	for (int i = 0; i < 40; i++) {
		p[i] = malloc(4 * MIB);
		memset(p[i], 1, 4 * MIB);
	}
	was = resident();
	assert_true(was >= 160 * MIB);
	for (int i = 0; i < 40; i++)
		free(p[i]);
	assert_true(resident() <= was - 160 * MIB + KEPT_MAX);
	one = malloc(50 * MIB);
	memset(one, 1, 50 * MIB);
	was = resident();
	one = realloc(one, 2 * MIB);
	assert_true(resident() <= was - 47 * MIB);
	free(one);
}

static void test_descriptor_is_sealed(void **state)
{
	assert_true(fcntl(g_mem.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_not_equal(ftruncate(g_mem.fd, 4096), 0);
}

/* A program that has closed descriptor 0 gets this number for its next file. */
static void test_descriptor_is_high(void **state)
{
	assert_true(g_mem.fd >= 100);
}

/* A thread with the smallest stack gets a large block, and the machine's free
 * memory is read for it. */
static void *small_stack(void *arg)
{
	return malloc(g_mem.bytes - 64 * MIB);
}

static void test_small_stack(void **state)
{
	pthread_attr_t attr;
	pthread_t thread;
	void *p;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	assert_int_equal(pthread_create(&thread, &attr, small_stack, NULL), 0);
	assert_int_equal(pthread_join(thread, &p), 0);
	free(p);
	pthread_attr_destroy(&attr);
}

/* ---- Stress ------------------------------------------------------------ */

struct slot {
	uint8_t *p;
	size_t bytes;
	uint64_t seed;
};

static size_t any_size(uint64_t *rng)
{
	uint32_t kind = unit_below(rng, 10);

	return kind < 4 ? 1 + unit_below(rng, 3000) :
		kind < 9 ? MIB / 2 + unit_below(rng, 3 * (uint32_t)MIB) :
		MIB + unit_below(rng, 20 * (uint32_t)MIB);
}

/* Give a slot a block of another size, with the contents of the block that it
 * has. */
static void slot_resize(struct slot *s, size_t bytes, bool zero)
{
	size_t same = s->bytes < bytes ? s->bytes - 1 : bytes;
	bool fresh = s->p == NULL;

	s->p = !fresh ? realloc(s->p, bytes) : zero ? calloc(bytes, 1) :
		malloc(bytes);
	assert_non_null(s->p);
	if (fresh && zero)
		assert_true(is_zero(s->p, bytes));
	for (size_t i = 0; !fresh && i < same; i += 512)
		assert_int_equal(s->p[i], (uint8_t)(s->seed + i / 512));
}

static void *stress(void *arg)
{
	struct slot slots[SLOTS] = { { 0 } };
	uint64_t rng = (uintptr_t)arg, calls = unit_number("UNM_TEST_MALLOC",
							   CALLS);

	for (uint64_t i = 0; i < calls; i++) {
		struct slot *s = &slots[unit_below(&rng, SLOTS)];
		size_t bytes;

		if (s->p != NULL)
			assert_true(painted(s->p, s->bytes, s->seed));
		if (s->p != NULL && i % 4 != 0) {
			free(s->p);
			s->p = NULL;
			continue;
		}
		bytes = any_size(&rng);
		slot_resize(s, bytes, i % 3 == 0);
		s->bytes = bytes;
		s->seed = unit_random(&rng);
		paint(s->p, bytes, s->seed);
	}
	for (int i = 0; i < SLOTS; i++)
		free(slots[i].p);
	return NULL;
}

/* ---- Cancellation ------------------------------------------------------ */

static _Atomic bool g_go;

/* The thread is canceled already. Neither malloc() nor fork() is the place
 * where it ends: it would keep a lock. The block is larger than what may be
 * allocated before the machine's free memory is read again. */
static void *canceled(void *arg)
{
	void *p;
	pid_t pid;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	while (!g_go)
		sched_yield();
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	p = malloc(g_mem.bytes - 64 * MIB);
	free(p);
	pid = fork();
	if (pid == 0)
		_exit(0);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	assert_int_equal(unit_exit_code(pid), 0);
	*(bool *)arg = true;
	return NULL;
}

static void test_cancel(void **state)
{
	bool done = false;
	pthread_t thread = unit_thread(canceled, &done);
	void *p = malloc(MIB);

	pthread_cancel(thread);
	g_go = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(done);
	free(p);
}

/* ---- fork() ------------------------------------------------------------ */

/* The checks of a child. It has the block as it was at the fork, although the
 * parent has changed it, and its changes are its own. */
static void child(struct slot *s, int changed)
{
	char c;
	uint8_t *more;

	if (read(changed, &c, 1) != 1 || !painted(s->p, s->bytes, s->seed))
		_exit(1);
	paint(s->p, s->bytes, s->seed + 1);
	s->p = realloc(s->p, 2 * s->bytes);
	if (s->p == NULL || in_arena(s->p))
		_exit(2);
	free(s->p);
	more = malloc(3 * MIB);
	if (more == NULL || in_arena(more))
		_exit(3);
	memset(more, 1, 3 * MIB);
	free(more);
	_exit(0);
}

static void fork_once(struct slot *s)
{
	int changed[2];
	pid_t pid;

	assert_int_equal(pipe2(changed, O_CLOEXEC), 0);
	paint(s->p, s->bytes, s->seed);
	pid = unit_fork();
	if (pid == 0)
		child(s, changed[0]);
	paint(s->p, s->bytes, s->seed + 2);
	assert_int_equal(write(changed[1], "", 1), 1);
	assert_int_equal(unit_exit_code(pid), 0);
	assert_true(painted(s->p, s->bytes, s->seed + 2));
	close(changed[0]);
	close(changed[1]);
	s->seed += 7;
}

static struct slot fork_block(void)
{
	struct slot s = { .p = malloc(6 * MIB), .bytes = 6 * MIB, .seed = 5 };

	assert_true(in_arena(s.p));
	return s;
}

static void test_fork(void **state)
{
	struct slot s = fork_block();
	uint8_t *holes = malloc(250 * MIB);
	size_t was = resident();

	for (int i = 0; i < FORKS; i++)
		fork_once(&s);
	assert_true(resident() <= was + 8 * MIB);	/* no hole was filled */
	free(holes);
	free(s.p);
}

/* A program that denies access to a page of its block, or keeps the block from
 * children as ibv_fork_init(3) does, can fork, and the child has the block's
 * contents. When the block is freed, its next owner has access. */
static void test_fork_with_guard_pages(void **state)
{
	struct slot s = { .bytes = 40 * MIB, .seed = 4 };
	uint8_t *p;
	pid_t pid;

	s.p = aligned_alloc(4096, s.bytes);
	paint(s.p, s.bytes, s.seed);
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			mprotect(s.p + MIB, 4096, PROT_NONE);
		else
			madvise(s.p, s.bytes, MADV_DONTFORK);
		pid = unit_fork();
		if (pid == 0)
			_exit(!painted(s.p, s.bytes, s.seed));
		assert_int_equal(unit_exit_code(pid), 0);
	}
	madvise(s.p, s.bytes, MADV_DOFORK);
	mprotect(s.p + MIB, 4096, PROT_NONE);
	free(s.p);
	for (int i = 0; i < 2; i++) {	/* not kept and kept */
		p = calloc(1, (size_t)(40 - 38 * i) * MIB);
		assert_true(in_arena(p) && is_zero(p, 2 * MIB));
		mprotect(p + MIB, 4096, PROT_READ);
		free(p);
	}
	p = calloc(1, 2 * MIB);
	memset(p, 1, 2 * MIB);
	free(p);
}

static void test_stress_with_forks(void **state)
{
	struct slot s = fork_block();
	pthread_t thread[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		thread[i] = unit_thread(stress, (void *)(i + 1));
	for (int i = 0; i < FORKS; i++)
		fork_once(&s);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	free(s.p);
}

/* A program that has closed all descriptors it does not know, and has another
 * file in the place of the arena's. */
static void test_descriptor_lost(void **state)
{
	struct slot s = fork_block();
	struct unm_arena none;
	int spare = dup(g_mem.fd);

	assert_true(spare >= 0);
	assert_int_equal(dup2(STDERR_FILENO, g_mem.fd), g_mem.fd);
	fork_once(&s);
	fork_once(&s);
	assert_int_equal(fcntl(g_mem.fd, F_GETFD), 0);
	assert_int_not_equal(unimem_malloc_arena(&none), 0);
	assert_int_equal(dup3(spare, g_mem.fd, O_CLOEXEC), g_mem.fd);
	close(spare);
	free(s.p);
}

/* Without a descriptor for the pipe there are no copies. A child that touches a
 * block ends; others go on. */
static void test_fork_without_descriptors(void **state)
{
	struct slot s = fork_block();
	struct rlimit was, none;
	char text[500];
	struct unit_capture cap = unit_capture_begin();
	pid_t pid;

	paint(s.p, s.bytes, s.seed);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 3;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		s.p[0]++;
		_exit(0);
	}
	assert_int_equal(unit_exit_code(pid), 128 + SIGSEGV);
	pid = fork();
	if (pid == 0) {
		free(s.p);
		setrlimit(RLIMIT_NOFILE, &was);
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	assert_int_equal(unit_exit_code(pid), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_true(painted(s.p, s.bytes, s.seed));
	assert_int_equal(unit_capture_end(&cap, text, sizeof(text)), 2);
	free(s.p);
}

/* A child that is killed before it has its copies does not block its parent,
 * and a child of a child has its own memory. */
static void test_fork_of_fork(void **state)
{
	struct slot s = fork_block();
	pid_t pid;

	paint(s.p, s.bytes, s.seed);
	pid = unit_fork();
	if (pid == 0) {
		pid = fork();
		if (pid == 0) {
			paint(s.p, s.bytes, 1);
			_exit(0);
		}
		_exit(unit_exit_code(pid) != 0 ||
		      !painted(s.p, s.bytes, s.seed));
	}
	assert_int_equal(unit_exit_code(pid), 0);
	assert_true(painted(s.p, s.bytes, s.seed));
	free(s.p);
}

/* Fork and await the child, in a signal handler. */
static void fork_and_await(void)
{
	int saved = errno;
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	if (pid < 0 || unit_exit_code(pid) != 0)
		abort();
	errno = saved;
}

static volatile int g_signals_left;

/* A signal handler that forks in the middle of malloc(), as it can without the
 * library. The next signal comes a while after it has returned, however slow
 * the machine is. */
static void fork_in_handler(int sig)
{
	struct itimerval later = { { 0, 0 }, { 0, 1500 } };

	fork_and_await();
	if (g_signals_left-- > 0)
		setitimer(ITIMER_REAL, &later, NULL);
}

static void test_fork_by_a_signal(void **state)
{
	struct unit_capture cap;
	char text[64];
	void *p[4];

	cap = unit_capture_begin();
	signal(SIGALRM, fork_in_handler);
	g_signals_left = 150;
	raise(SIGALRM);
	while (g_signals_left >= 0) {
		for (int k = 0; k < 4; k++)
			p[k] = malloc((1 + (size_t)k * 15) * MIB);
		for (int k = 0; k < 4; k++)
			free(p[k]);
	}
	signal(SIGALRM, SIG_DFL);
	unit_capture_end(&cap, text, sizeof(text));
}

static _Atomic int g_fork_signals;

static void count_fork_in_handler(int sig)
{
	fork_and_await();
	g_fork_signals++;
}

/* Allocates, while the main thread forks and signals come. */
static void *churn(void *arg)
{
	while (!*(_Atomic bool *)arg)
		free(malloc(40 * MIB));
	return NULL;
}

/* A fork by the signal handler of a thread that is in malloc() does not change
 * the fork of another thread. */
static void test_fork_beside_a_signal(void **state)
{
	struct slot s = fork_block();
	struct unit_capture cap;
	_Atomic bool stop = false;
	pthread_t thread;
	char text[64];
	int seen = 0;

	cap = unit_capture_begin();
	signal(SIGUSR1, count_fork_in_handler);
	thread = unit_thread(churn, &stop);
	for (int i = 0; i < 60; i++) {
		if (g_fork_signals == seen)
			pthread_kill(thread, SIGUSR1);
		fork_once(&s);
		if (g_fork_signals != seen)
			seen = g_fork_signals;
	}
	stop = true;
	assert_int_equal(pthread_join(thread, NULL), 0);
	signal(SIGUSR1, SIG_DFL);
	unit_capture_end(&cap, text, sizeof(text));
	free(s.p);
}

/* ---- Limits ------------------------------------------------------------ */

/* With a limit of the address space there is no arena, and malloc() fails as it
 * does without the library. */
static void limited(int resource)
{
	struct rlimit lim = { 600 * MIB, 600 * MIB };
	pid_t pid = unit_fork();

	if (pid == 0) {
		setrlimit(resource, &lim);
		execl("/proc/self/exe", "test_malloc", "limited", NULL);
		_exit(9);
	}
	assert_int_equal(unit_exit_code(pid), 0);
}

static int limited_main(void)
{
	void *p[200] = { NULL };
	int n = 0;

	if (unimem_malloc_arena(&g_mem) == 0)
		return 1;
	while (n < 200 && (p[n] = malloc(10 * MIB)) != NULL)
		memset(p[n++], 1, 100);
	if (n < 10 || n == 200)
		return 2;
	while (n-- > 0)
		free(p[n]);
	return 0;
}

static void test_limits(void **state)
{
	limited(RLIMIT_AS);
	limited(RLIMIT_DATA);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each_call),
		cmocka_unit_test(test_others_go_on),
		cmocka_unit_test(test_calloc_is_zero),
		cmocka_unit_test(test_locked_memory),
		cmocka_unit_test(test_resize),
		cmocka_unit_test(test_memory_is_given_back),
		cmocka_unit_test(test_descriptor_is_sealed),
		cmocka_unit_test(test_descriptor_is_high),
		cmocka_unit_test(test_small_stack),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_fork_with_guard_pages),
		cmocka_unit_test(test_stress_with_forks),
		cmocka_unit_test(test_descriptor_lost),
		cmocka_unit_test(test_fork_without_descriptors),
		cmocka_unit_test(test_fork_of_fork),
		cmocka_unit_test(test_fork_by_a_signal),
		cmocka_unit_test(test_fork_beside_a_signal),
		cmocka_unit_test(test_limits),
	};
	void *probe;

	if (argc == 2 && strcmp(argv[1], "limited") == 0)
		return limited_main();
	probe = malloc(300 * MIB);
	if (unimem_malloc_arena(&g_mem) != 0 || !in_arena(probe)) {
		printf("SKIP: limits of memory, or too little of it is free\n");
		return 77;
	}
	free(probe);
	return unit_run(tests);
}
