/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_jobs.c - jobs and groups of the service: which regions belong to
 * them and how many a job may have. Also every allocation of memory that may
 * fail.
 */
#include <fcntl.h>

#include "common/gsas_hold.h"
#include "lib/gsas_pages_fixture.h"
#include "service/gsas_presence.h"

#define PARTITION	(UINT64_C(1) << 36)	/* pages */
#define PROCESSES	200		/* of a job; and jobs */

/* ---- Replacements of system calls --------------------------------------- */

static uint64_t g_allocs, g_fail_at;	/* number of the calloc or mmap that
					 * fails; 0: none */
static int64_t g_live;			/* callocs that were not freed */

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void __real_free(void *at);
void __wrap_free(void *at);
void *__real_mmap(void *at, size_t len, int prot, int flags, int fd,
		  off_t off);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd,
		  off_t off);

void *__wrap_calloc(size_t n, size_t size)
{
	void *at = ++g_allocs == g_fail_at ? NULL : __real_calloc(n, size);

	g_live += at != NULL;
	return at;
}

void __wrap_free(void *at)
{
	g_live -= at != NULL;
	__real_free(at);
}

void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	if (++g_allocs == g_fail_at) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return __real_mmap(at, len, prot, flags, fd, off);
}

/* ---- Shares ------------------------------------------------------------- */

static enum gsas_error plan_only(struct gsas_job *job, uint64_t pages,
				 uint64_t attr)
{
	struct gsas_plan plan;
	enum gsas_error error;

	error = gsas_region_plan(g_p, job, NULL, pages, attr, &plan);
	if (error == GSAS_OK)
		gsas_region_cancel(g_p, &plan);
	return error;
}

static void test_shares_to_the_page(void **state)
{
	struct gsas_pages_attr limits = {
		.max_pages = 1000, .max_user.pages = 600,
	};
	struct gsas_job *other;
	struct gsas_region *r;
	struct gsas_plan plan;

	board(&limits);
	other = job_of(1001, 2);
	assert_int_equal(plan_only(g_job, 0, 0), GSAS_E_ARGUMENT);
	assert_int_equal(plan_only(g_job, PARTITION + 1, 0), GSAS_E_ARGUMENT);
	assert_int_equal(plan_only(g_job, UINT64_MAX, 0), GSAS_E_ARGUMENT);
	assert_int_equal(plan_only(g_job, PARTITION, 0), GSAS_E_QUOTA);
	assert_int_equal(plan_only(g_job, 601, MAPPED), GSAS_E_QUOTA);
	assert_int_equal(plan_only(g_job, 600, MAPPED), GSAS_OK);
	r = alloc(g_job, 599, MAPPED);
	assert_int_equal(plan_only(g_job, 2, 0), GSAS_E_QUOTA);
	/* a plan counts until it is dropped */
	assert_int_equal(gsas_region_plan(g_p, g_job, NULL, 1, 0, &plan),
			 GSAS_OK);
	assert_int_equal(plan_only(g_job, 1, 0), GSAS_E_QUOTA);
	gsas_region_cancel(g_p, &plan);
	alloc(g_job, 1, 0);
	assert_int_equal(plan_only(other, 401, 0), GSAS_E_MEMORY);
	alloc(other, 400, 0);
	assert_int_equal(stat_of().pages, 1000);
	assert_int_equal(stat_of().pages_max, 1000);
	assert_int_equal(g_job->user->has.pages, 600);
	assert_int_equal(other->user->has.pages, 400);
	assert_int_equal(plan_only(other, 1, 0), GSAS_E_MEMORY);
	release(r);
	assert_int_equal(plan_only(other, 201, 0), GSAS_E_QUOTA);
	assert_int_equal(plan_only(other, 200, 0), GSAS_OK);
	assert_int_equal(stat_of().pages, 401);
	board_end();
}

/* All jobs of a user share one account. */
static void test_a_user_has_one_account(void **state)
{
	struct gsas_pages_attr limits = {
		.max_user = { .pages = 600, .regions = 4, .mapped = 2,
			      .jobs = 3 },
	};
	struct gsas_job *second, *third, *other;
	const uint64_t key[2] = { 9, 9 };
	struct gsas_region *r;

	board(&limits);
	second = job_get(2);
	third = job_get(3);
	other = job_of(1001, 1);
	assert_ptr_equal(second->user, g_job->user);
	assert_ptr_not_equal(other->user, g_job->user);
	assert_null(gsas_job_get(g_p, 1000, key));
	gsas_job_put(g_p, job_of(1001, 2));

	r = alloc(g_job, 500, MAPPED);
	assert_int_equal(plan_only(second, 101, 0), GSAS_E_QUOTA);
	alloc(second, 1, MAPPED);
	assert_int_equal(plan_only(third, 1, MAPPED), GSAS_E_QUOTA);
	alloc(third, 99, 0);
	assert_int_equal(plan_only(second, 1, 0), GSAS_E_QUOTA);
	assert_int_equal(plan_only(other, 600, MAPPED), GSAS_OK);
	release(r);
	alloc(third, 1, MAPPED);
	alloc(second, 1, 0);
	/* no more regions allowed, although pages are */
	assert_int_equal(plan_only(g_job, 1, 0), GSAS_E_QUOTA);
	assert_int_equal(plan_only(other, 1, 0), GSAS_OK);
	/* orphans still count for the user */
	gsas_job_put(g_p, second);
	gsas_job_put(g_p, third);
	assert_int_equal(plan_only(g_job, 1, 0), GSAS_E_QUOTA);
	board_end();
}

static void test_groups_of_a_user(void **state)
{
	struct gsas_pages_attr limits = { .max_user.groups = 2 };
	struct gsas_group *group[3];

	board(&limits);
	for (uint64_t i = 0; i < 3; i++)
		group[i] = gsas_group_get(g_p, 1000, (uint64_t[]){ i, 0 });
	assert_non_null(group[1]);
	assert_null(group[2]);
	assert_non_null(gsas_group_get(g_p, 1001, (uint64_t[]){ 2, 0 }));
	gsas_group_put(g_p, group[0]);
	assert_non_null(gsas_group_get(g_p, 1000, (uint64_t[]){ 2, 0 }));
	board_end();
}

static void test_tables_are_bounded(void **state)
{
	struct gsas_pages_attr limits = {
		.max_jobs = 3, .max_groups = 2, .max_regions = 4,
	};
	const uint64_t key[2] = { 9, 9 };
	struct gsas_group *group[2];
	struct gsas_region *r[4];
	struct gsas_job *job;

	board(&limits);
	for (int i = 0; i < 4; i++)
		r[i] = alloc(g_job, 1, 0);
	assert_int_equal(plan_only(g_job, 1, 0), GSAS_E_QUOTA);
	release(r[2]);
	assert_int_equal(plan_only(g_job, 1, 0), GSAS_OK);

	job = job_get(2);
	job_get(3);
	assert_null(gsas_job_get(g_p, 1000, key));
	gsas_job_put(g_p, job);
	assert_non_null(gsas_job_get(g_p, 1000, key));

	for (uint64_t i = 0; i < 2; i++)
		group[i] = gsas_group_get(g_p, 1000, (uint64_t[]){ i, 0 });
	assert_null(gsas_group_get(g_p, 1000, key));
	assert_ptr_equal(gsas_group_get(g_p, 1000, (uint64_t[]){ 1, 0 }),
			 group[1]);
	gsas_group_put(g_p, group[1]);
	gsas_group_put(g_p, group[1]);
	assert_non_null(gsas_group_get(g_p, 1000, key));
	board_end();
}

/* ---- Jobs and groups ---------------------------------------------------- */

static void test_a_job_is_its_key_and_user(void **state)
{
	const uint64_t key[2] = { 7, 8 }, swapped[2] = { 8, 7 };
	struct gsas_job *job, *job2, *job3;
	uint32_t number;

	board(NULL);
	job = gsas_job_get(g_p, 1, key);
	job2 = gsas_job_get(g_p, 2, key);
	job3 = gsas_job_get(g_p, 1, swapped);
	assert_true(job != job2 && job != job3 && job2 != job3);
	assert_true(job->number > g_job->number && job2->number > job->number);
	assert_ptr_equal(gsas_job_get(g_p, 1, key), job);
	assert_int_equal(job->clients, 2);
	assert_int_equal(stat_of().jobs, 4);
	gsas_job_put(g_p, job);
	number = job->number;
	gsas_job_put(g_p, job);
	assert_int_equal(stat_of().jobs, 3);
	/* the same key is a new job now */
	job = gsas_job_get(g_p, 1, key);
	assert_true(job->number > number);
	board_end();
}

#define CROWD	3000			/* some 70 pairs share a bucket */

/* Jobs differ if half of the key or the user differs; they share no memory. */
static void test_a_crowd_of_jobs(void **state)
{
	static struct gsas_job *job[3 * CROWD];
	uint32_t uid;

	board(NULL);
	for (int round = 0; round < 2; round++)
		for (uint64_t i = 0; i < 3 * CROWD; i++) {
			uint64_t key[2] = { 5, 5 }, n = 10 + i / 3;
			struct gsas_job *j;

			uid = i % 3 == 2 ? 10 + (uint32_t)i : 1;
			if (i % 3 < 2)
				key[i % 3] = n;
			j = gsas_job_get(g_p, uid, key);
			assert_non_null(j);
			if (round == 0)
				job[i] = j;
			assert_ptr_equal(j, job[i]);
			assert_int_equal(j->clients, round + 1);
			assert_int_equal(j->number, i + 2);
		}
	for (int i = 0; i < CROWD; i++)
		alloc(job[i], 1, 0);
	assert_int_equal(stat_of().segments, CROWD);
	assert_int_equal(stat_of().jobs, 3 * CROWD + 1);
	board_end();
}

static void test_a_crowd_of_groups(void **state)
{
	static struct gsas_group *group[3 * CROWD];
	struct gsas_plan plan;

	board(NULL);
	for (int round = 0; round < 2; round++)
		for (uint64_t i = 0; i < 3 * CROWD; i++) {
			uint64_t name[2] = { 5, 5 };
			struct gsas_group *g;

			if (i % 3 < 2)
				name[i % 3] = 10 + i;
			g = gsas_group_get(g_p, i % 3 == 2 ? (uint32_t)i : 1,
					   name);
			assert_non_null(g);
			if (round == 0)
				group[i] = g;
			assert_ptr_equal(g, group[i]);
			assert_int_equal(g->refs, round + 1);
			assert_int_equal(g->number, i + 1);
		}
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(gsas_region_plan(g_p, g_job, group[i], 1,
						  GSAS_MODE_GROUP, &plan),
				 GSAS_OK);
		assert_int_equal(gsas_region_fill(g_p, &plan), GSAS_OK);
		assert_int_equal(gsas_region_add(g_p, &plan), GSAS_OK);
	}
	assert_int_equal(stat_of().segments, CROWD);
	board_end();
}

static void test_orphans(void **state)
{
	struct gsas_job *job;
	struct gsas_region *r[3];
	uint32_t number;

	board(NULL);
	job = job_get(5);
	number = job->number;
	for (int i = 0; i < 3; i++)
		r[i] = alloc(job, 10, 0);
	alloc(g_job, 1, 0);
	assert_int_equal(stat_of().orphans, 0);
	gsas_job_put(g_p, job);
	assert_int_equal(stat_of().orphans, 3);
	assert_int_equal(stat_of().jobs, 2);
	release(r[1]);
	assert_int_equal(stat_of().orphans, 2);
	/* the job owns them again when a client joins with its key */
	assert_ptr_equal(job_get(5), job);
	assert_int_equal(stat_of().orphans, 0);
	gsas_job_put(g_p, job);
	release(r[0]);
	assert_int_equal(stat_of().jobs, 2);
	release(r[2]);
	assert_int_equal(stat_of().orphans, 0);
	assert_int_equal(stat_of().jobs, 1);
	assert_true(job_get(5)->number > number);
	board_end();
}

static bool held_by_hand(void *ctx, uint32_t uid, const uint64_t key[2])
{
	return *(bool *)ctx && uid == 1000 && key[0] == 5 && key[1] == ~5ULL;
}

/* No client of the job is connected, but a process says that it belongs to the
 * job: its regions are no orphans. */
static void test_held_is_no_orphan(void **state)
{
	bool held = true;
	struct gsas_pages_attr attr = {
		.held = held_by_hand, .held_ctx = &held,
	};
	struct gsas_job *job, *other;

	board(&attr);
	job = job_get(5);
	other = job_of(1001, 5);
	alloc(job, 1, 0);
	alloc(other, 1, 0);
	gsas_job_put(g_p, job);
	assert_int_equal(stat_of().orphans, 0);
	gsas_job_put(g_p, other);
	assert_int_equal(stat_of().orphans, 1);
	assert_true(gsas_job_lives(gsas_pages_census(g_p), job));
	assert_false(gsas_job_lives(gsas_pages_census(g_p), other));
	held = false;
	gsas_census_begin(gsas_pages_census(g_p));
	assert_false(gsas_job_lives(gsas_pages_census(g_p), job));
	assert_int_equal(stat_of().orphans, 2);
	board_end();
}

/* A request that spends its time on other things than checks of jobs still
 * checks further jobs. */
static void test_only_checks_take_their_time(void **state)
{
	bool held = false;
	struct gsas_pages_attr attr = {
		.held = held_by_hand, .held_ctx = &held,
	};
	struct gsas_job *job;

	board(&attr);
	for (uint64_t key = 5; key <= 6; key++) {
		job = job_get(key);
		alloc(job, 1, 0);
		gsas_job_put(g_p, job);
	}
	gsas_census_begin(gsas_pages_census(g_p));
	for (uint64_t key = 5; key <= 6; key++) {
		job = job_get(key);
		job->clients--;		/* none, but the job remains */
		unit_burn(2000000);
		assert_false(gsas_job_lives(gsas_pages_census(g_p), job));
	}
	assert_int_equal(stat_of().orphans, 2);
	board_end();
}

/* Each process of a job holds the job, and so does a forked child. */
static void test_processes_hold_their_job(void **state)
{
	const uint64_t key[2] = { getpid(), 1 }, near[2] = { getpid(), 2 };
	int fd = gsas_hold_open(), look = gsas_hold_open();
	pid_t pid;

	unit_needs(fd != -ENOENT);	/* no /proc */
	assert_true(fd >= 0 && look >= 0);
	assert_false(gsas_hold_held(look, 7, key));
	assert_int_equal(gsas_hold_take(fd, 7, key), 0);
	assert_true(gsas_hold_held(look, 7, key));
	assert_false(gsas_hold_held(look, 8, key));
	assert_false(gsas_hold_held(look, 7, near));
	/* the descriptor that asks does not count */
	assert_false(gsas_hold_held(fd, 7, key));
	/* a second holder */
	assert_int_equal(gsas_hold_take(look, 7, key), 0);
	close(look);
	look = gsas_hold_open();
	pid = unit_fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	close(fd);
	assert_true(gsas_hold_held(look, 7, key));
	unit_kill(pid);
	assert_false(gsas_hold_held(look, 7, key));
	close(look);
}

/* Descriptors of this process. */
static int descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 4 * PROCESSES; fd++)
		n += fcntl(fd, F_GETFD) != -1;
	return n;
}

/* Add processes from number first on to a job. They end when the descriptor at
 * end is closed. */
static void add_processes(struct gsas_job *job, uint64_t first, int n, int *end)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(gsas_job_process(gsas_pages_census(g_p), job,
						  first + i, dup(fds[0])), 0);
	close(fds[0]);
	*end = fds[1];
}

/* Jobs whose processes have ended keep no descriptors of them, although they
 * have regions: neither many small jobs, nor a large one. */
static void test_ended_processes_keep_no_descriptor(void **state)
{
	int before, end, lives;

	board(NULL);
	add_processes(g_job, 1, 8, &lives);
	before = descriptors();
	for (int i = 0; i < PROCESSES; i++) {
		struct gsas_job *job = job_get(10 + i);

		alloc(job, 1, 0);
		add_processes(job, 1, 8, &end);
		close(end);
		gsas_job_put(g_p, job);
		assert_true(descriptors() <= before + 8);
	}
	add_processes(g_job, 9, PROCESSES, &end);
	assert_true(descriptors() >= before + PROCESSES);
	assert_int_equal(g_job->processes, 8 + PROCESSES);
	alloc(g_job, 1, 0);
	for (int i = 1; i < PROCESSES; i++)
		assert_ptr_equal(job_get(1), g_job);
	close(end);
	for (int i = 0; i < PROCESSES; i++)
		gsas_job_put(g_p, g_job);
	assert_int_equal(descriptors(), before);
	assert_int_equal(g_job->processes, 8);
	close(lives);
	board_end();
}

/* Locks over many places, which any user can set: neither do they hold a job,
 * nor do they hide who holds it. */
static void test_wide_locks_hold_no_job(void **state)
{
	const uint64_t key[2] = { getpid(), 3 }, other[2] = { getpid(), 4 };
	struct flock all = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	int fd = gsas_hold_open(), look = gsas_hold_open();
	int wide = gsas_hold_open();

	unit_needs(fd != -ENOENT);	/* no /proc */
	assert_true(fd >= 0 && look >= 0 && wide >= 0);
	assert_int_equal(fcntl(wide, F_OFD_SETLK, &all), 0);
	assert_false(gsas_hold_held(look, 7, key));
	assert_int_equal(gsas_hold_take(fd, 7, key), 0);
	assert_true(gsas_hold_held(look, 7, key));
	assert_false(gsas_hold_held(look, 7, other));
	close(wide);
	wide = gsas_hold_open();
	assert_int_equal(fcntl(wide, F_OFD_SETLK, &all), 0);
	assert_true(gsas_hold_held(look, 7, key));
	close(fd);
	assert_false(gsas_hold_held(look, 7, key));
	close(wide);
	close(look);
}

/* If the kernel cannot check a lock, a process may hold the job. */
static void test_unknown_is_held(void **state)
{
	const uint64_t key[2] = { getpid(), 5 };
	int fd = gsas_hold_open();

	unit_needs(fd != -ENOENT);	/* no /proc */
	assert_true(fd >= 0);
	assert_false(gsas_hold_held(fd, 7, key));
	close(fd);
	assert_true(gsas_hold_held(fd, 7, key));
}

/* A job and a group to which only a plan belongs. */
static void test_a_plan_holds_its_owner(void **state)
{
	const uint64_t name[2] = { 3, 4 };
	struct gsas_group *group;
	struct gsas_plan plan;
	struct gsas_job *job;

	board(NULL);
	job = job_get(5);
	group = gsas_group_get(g_p, 1000, name);
	assert_int_equal(gsas_region_plan(g_p, job, group, 5, GSAS_MODE_GROUP,
					  &plan), GSAS_OK);
	gsas_job_put(g_p, job);
	gsas_group_put(g_p, group);
	assert_int_equal(stat_of().jobs, 2);
	assert_int_equal(stat_of().orphans, 1);
	assert_int_equal(group->refs, 1);
	assert_int_equal(gsas_region_fill(g_p, &plan), GSAS_OK);
	assert_int_equal(gsas_region_add(g_p, &plan), GSAS_OK);
	assert_ptr_equal(gsas_group_get(g_p, 1000, name), group);
	gsas_group_put(g_p, group);
	release(plan.region);
	assert_int_equal(stat_of().jobs, 1);
	assert_int_equal(stat_of().orphans, 0);
	group = gsas_group_get(g_p, 1000, name);
	assert_int_equal(group->refs, 1);
	assert_int_equal(group->number, 2);
	board_end();
}

/* ---- One allocation fails, for each of them ----------------------------- */

/* The calls of one job. If one of them fails, the rest still run. */
static void life(void)
{
	static const uint64_t pages[] = { 1, 100, 300, 5, 200, 2000 };
	struct gsas_region *r[12] = { NULL };
	const uint64_t key[2] = { 1, 1 };
	struct gsas_plan plan;
	struct gsas_group *group;
	struct gsas_job *job = gsas_job_get(g_p, 1, key);

	if (job == NULL)
		return;
	group = gsas_group_get(g_p, 1, key);
	for (int i = 0; i < 12; i++) {
		if (gsas_region_plan(g_p, job, i % 3 ? group : NULL,
				     pages[i % 6], i % 2 ? MAPPED : 0,
				     &plan) != GSAS_OK)
			continue;
		if (gsas_region_fill(g_p, &plan) != GSAS_OK ||
		    gsas_region_add(g_p, &plan) != GSAS_OK) {
			gsas_region_cancel(g_p, &plan);
			continue;
		}
		r[i] = plan.region;
		memset(at(r[i]->address), 0xee, r[i]->pages * PAGE);
	}
	for (int i = 0; i < 12; i++)
		if (r[i] != NULL)
			release(r[i]);
	if (group != NULL)
		gsas_group_put(g_p, group);
	gsas_job_put(g_p, job);
	assert_int_equal(stat_of().jobs, 0);
	assert_int_equal(stat_of().pages, 0);
	assert_int_equal(stat_of().segments, 0);
	assert_int_equal(g_mem.blocks, 0);
}

static void test_every_allocation_may_fail(void **state)
{
	struct gsas_pages_attr attr = { .memory = gsas_mem(&g_mem) };
	uint64_t n = 0, failed;

	do {
		memset(&g_mem, 0, sizeof(g_mem));
		g_allocs = 0;
		g_fail_at = ++n;
		if (gsas_pages_new(&attr, &g_p) == 0) {
			life();
			gsas_pages_free(g_p);
		}
		failed = g_allocs >= g_fail_at;
		g_fail_at = 0;
		assert_int_equal(g_live, 0);
		assert_int_equal(g_mem.blocks, 0);
	} while (failed);
	assert_true(n > 20);
}

UNIT_MAIN(
	cmocka_unit_test(test_shares_to_the_page),
	cmocka_unit_test(test_a_user_has_one_account),
	cmocka_unit_test(test_groups_of_a_user),
	cmocka_unit_test(test_tables_are_bounded),
	cmocka_unit_test(test_a_job_is_its_key_and_user),
	cmocka_unit_test(test_a_crowd_of_jobs),
	cmocka_unit_test(test_a_crowd_of_groups),
	cmocka_unit_test(test_orphans),
	cmocka_unit_test(test_held_is_no_orphan),
	cmocka_unit_test(test_only_checks_take_their_time),
	cmocka_unit_test(test_processes_hold_their_job),
	cmocka_unit_test(test_ended_processes_keep_no_descriptor),
	cmocka_unit_test(test_wide_locks_hold_no_job),
	cmocka_unit_test(test_unknown_is_held),
	cmocka_unit_test(test_a_plan_holds_its_owner),
	cmocka_unit_test(test_every_allocation_may_fail),
)
