/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_budget.c - the budget that the services of a host share: two
 * services that are asked at once do not get the same part of it, and locks
 * that any user can set change little
 *
 * The services are this test and its children: processes of one program.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "hal/hal_limit.h"
#include "lib/unit.h"
#include "service/gsas_memory.h"

#define BUDGET		256		/* pages */

static bool g_hurry;			/* poll() returns at once, and counts */
static unsigned g_polls, g_lines;
static int g_other = -1;		/* descriptor that tries to get a turn
					 * while poll() waits; -1: none */
static unsigned g_turns;		/* turns that it got */

int __real_poll(struct pollfd *fds, nfds_t n, int ms);
int __wrap_poll(struct pollfd *fds, nfds_t n, int ms);

int __wrap_poll(struct pollfd *fds, nfds_t n, int ms)
{
	g_polls++;
	if (g_other >= 0 && flock(g_other, LOCK_EX | LOCK_NB) == 0) {
		g_turns++;
		flock(g_other, LOCK_UN);
	}
	return g_hurry ? 0 : __real_poll(fds, n, ms);
}

/* Skip the test without /proc, or if so many pages and the largest reserve of a
 * service (256 MiB, see gsas_memory.c) are not free. */
static void needs_memory(uint64_t pages)
{
	uint64_t bytes = (pages << GSAS_PAGE_SHIFT) + (UINT64_C(258) << 20);

	unit_needs(access("/proc/self/exe", R_OK) == 0 &&
		   hal_memory_left(bytes) >= bytes);
}

static void count_line(const char *line)
{
	g_lines += strstr(line, "lslocks") != NULL;
}

/* Lock pages of the program's file as a service shows them. Returns the
 * descriptor, which holds the lock. */
static int lock_pages(off_t start, off_t pages)
{
	struct flock lock = {
		.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = start,
		.l_len = pages,
	};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	return fd;
}

/* Allocate pages of a new service that has none yet. */
static int alloc(uint64_t pages)
{
	struct gsas_source *source;
	struct gsas_memory memory;
	struct gsas_block block;
	int ret;

	assert_int_equal(gsas_source_new(NULL, 0, BUDGET << GSAS_PAGE_SHIFT,
					 NULL, &source), 0);
	memory = gsas_source_memory(source);
	ret = memory.alloc(memory.ctx, pages << GSAS_PAGE_SHIFT, false, &block);
	if (ret == 0)
		memory.free(memory.ctx, &block);
	gsas_source_free(source);
	return ret;
}

/* How many descriptors of a process are of this file? */
static int count_files(pid_t pid, const struct stat *own)
{
	char path[320];
	struct stat file;
	struct dirent *entry;
	int count = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	dir = opendir(path);
	assert_non_null(dir);
	while ((entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%d/fd/%s", pid,
			 entry->d_name);
		count += stat(path, &file) == 0 &&
			 file.st_dev == own->st_dev &&
			 file.st_ino == own->st_ino;
	}
	closedir(dir);
	return count;
}

/* A service waits for its turn while another one takes 5/8 of the budget. It
 * then gets no 5/8. */
static void test_two_at_once(void **state)
{
	int turn = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), fd;
	struct stat own;
	pid_t pid;

	needs_memory(BUDGET);
	assert_true(turn >= 0);
	assert_int_equal(fstat(turn, &own), 0);
	assert_int_equal(flock(turn, LOCK_EX), 0);
	pid = unit_fork();
	if (pid == 0) {
		close(turn);
		_exit(alloc(BUDGET * 5 / 8) == -ENOMEM ? 0 : 1);
	}
	/* its own descriptor of the file, and that of its turn */
	while (count_files(pid, &own) < 2 && waitpid(pid, NULL, WNOHANG) == 0)
		sched_yield();
	fd = lock_pages((off_t)getpid() << 40, BUDGET * 5 / 8);
	close(turn);
	assert_int_equal(unit_exit_code(pid), 0);
	close(fd);
	assert_int_equal(alloc(BUDGET * 5 / 8), 0);
}

/* ---- Locks of other users ------------------------------------------------ */

/* A lock that no service sets. It takes nothing from the budget, and what a
 * service shows still counts. */
static void stray(off_t start, off_t len)
{
	off_t own = (off_t)getpid() << 40;
	int bad, fd;

	bad = lock_pages(start, len);
	assert_int_equal(alloc(BUDGET), 0);
	close(bad);
	fd = lock_pages(own, BUDGET * 5 / 8);
	bad = lock_pages(start, len);
	assert_int_equal(alloc(BUDGET * 2 / 8), 0);
	assert_int_equal(alloc(BUDGET * 5 / 8), -ENOMEM);
	close(fd);
	close(bad);
}

static void test_stray_locks(void **state)
{
	const off_t page = 1;
	pid_t ended;

	needs_memory(BUDGET);
	stray(page << 40, (page << 50) - (page << 40));
	stray(0, 0);
	stray(((off_t)getpid() << 40) + BUDGET, BUDGET);
	stray(0, BUDGET);
	stray((off_t)1 << 62, BUDGET);	/* no process has such an id */
	ended = unit_fork();
	if (ended == 0)
		_exit(0);
	assert_int_equal(unit_exit_code(ended), 0);
	stray((off_t)ended << 40, BUDGET);
}

/* A lock without an end hides no service before it. */
static void test_lock_without_end(void **state)
{
	int bad, fd;

	needs_memory(BUDGET);
	/* above the offsets of all processes: their ids have 22 bits at most */
	bad = lock_pages((off_t)1 << 62, 0);
	fd = lock_pages((off_t)getpid() << 40, BUDGET * 5 / 8);
	assert_int_equal(alloc(BUDGET * 5 / 8), -ENOMEM);
	close(fd);
	close(bad);
}

/* A turn that never ends is awaited once, not by each step of each request. */
static void test_turn_for_ever(void **state)
{
	int turn = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct gsas_source *source;
	struct gsas_memory memory;
	struct gsas_block block;
	unsigned waited;

	needs_memory(BUDGET);
	assert_true(turn >= 0);
	assert_int_equal(flock(turn, LOCK_EX), 0);
	assert_int_equal(gsas_source_new(NULL, 0, 0, count_line, &source), 0);
	memory = gsas_source_memory(source);
	g_hurry = true;
	g_polls = 0;
	assert_int_equal(memory.alloc(memory.ctx, 1 << 20, false, &block), 0);
	memory.free(memory.ctx, &block);
	waited = g_polls;
	assert_true(waited > 0);
	assert_int_equal(g_lines, 1);
	assert_int_equal(memory.alloc(memory.ctx, 1 << 20, false, &block), 0);
	memory.free(memory.ctx, &block);
	assert_int_equal(g_polls, waited);
	assert_int_equal(g_lines, 1);
	g_hurry = false;
	gsas_source_free(source);
	close(turn);
}

/* A service that populates much memory lets other services have turns. */
static void test_turns_between_steps(void **state)
{
	const uint64_t pages = UINT64_C(3) * 16 << 20 >> GSAS_PAGE_SHIFT;
	struct gsas_source *source;
	struct gsas_memory memory;
	struct gsas_block block;

	needs_memory(pages);
	g_other = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_true(g_other >= 0);
	g_turns = 0;
	assert_int_equal(gsas_source_new(NULL, 0, 0, NULL, &source), 0);
	memory = gsas_source_memory(source);
	assert_int_equal(memory.alloc(memory.ctx, pages << GSAS_PAGE_SHIFT,
				      false, &block), 0);
	assert_int_equal(g_turns, 2);
	memory.free(memory.ctx, &block);
	gsas_source_free(source);
	close(g_other);
	g_other = -1;
}

/* Write /proc/meminfo below the folder of hal_limit_root(). */
static void say_free(const char *root, unsigned mib)
{
	char name[128];
	FILE *f;

	snprintf(name, sizeof(name), "%s/proc/meminfo", root);
	f = fopen(name, "w");
	assert_non_null(f);
	fprintf(f, "MemTotal: 1024000 kB\nMemAvailable: %u kB\n", mib * 1024);
	fclose(f);
}

/* A queue gets no memory by a check that is older than 10 ms. */
static void test_old_check(void **state)
{
	static uint8_t bytes[3 * GSAS_PAGE_BYTES];
	uint8_t *page = (uint8_t *)(((uintptr_t)bytes + GSAS_PAGE_BYTES) &
				    ~(uintptr_t)(GSAS_PAGE_BYTES - 1));
	char root[] = "/tmp/test_gsas_budget.XXXXXX", name[128];
	struct gsas_source *source;
	struct gsas_memory memory;

	assert_non_null(mkdtemp(root));
	snprintf(name, sizeof(name), "%s/proc", root);
	assert_int_equal(mkdir(name, 0700), 0);
	say_free(root, 500);
	hal_limit_root(root);
	assert_int_equal(gsas_source_new(NULL, 0, 0, NULL, &source), 0);
	memory = gsas_source_memory(source);
	assert_true(memory.refill(memory.ctx, page, GSAS_PAGE_BYTES));
	say_free(root, 1);
	usleep(11000);
	assert_false(memory.refill(memory.ctx, page, GSAS_PAGE_BYTES));
	gsas_source_free(source);
	hal_limit_root("");
	snprintf(name, sizeof(name), "rm -rf %s", root);
	assert_int_equal(system(name), 0);
}

UNIT_MAIN(
	cmocka_unit_test(test_old_check),
	cmocka_unit_test(test_two_at_once),
	cmocka_unit_test(test_stray_locks),
	cmocka_unit_test(test_lock_without_end),
	cmocka_unit_test(test_turn_for_ever),
	cmocka_unit_test(test_turns_between_steps),
)
