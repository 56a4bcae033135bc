/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_team.c - teams: how members meet, barriers, symmetric memory, and
 * members that end, close the team or do not come
 *
 * Members are threads of the test, each with an interface of its own, and
 * forked processes where a member is killed.
 */
#include <sys/resource.h>

#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_team.h"
#include "client/gsas_wait.h"
#include "lib/gsas_services.h"
#include "util/unm_clock.h"

#define MEMBERS		4
#define ROUNDS		200
#define LONG_MS		60000
#define FAR_MS		300		/* GSAS_TIMEOUT of a member */

struct member {
	struct gsas_team *team;
	int index;
	bool packets;			/* no mapped memory */
	const char *name;
	void (*run)(struct member *m);
};

static _Atomic int g_count;		/* arrivals, kept beside the team */
static gsas_addr g_bases[MEMBERS];
static bool g_one_host;			/* ended members are noticed */

static void *member_run(void *arg)
{
	struct member *m = arg;

	host_packets(m->packets);
	HOLDS(gsas_team_open(m->name, g_first, m->index, MEMBERS, LONG_MS,
			     &m->team) == 0);
	HOLDS(gsas_team_index(m->team) == m->index);
	HOLDS(gsas_team_members(m->team) == MEMBERS);
	m->run(m);
	HOLDS(gsas_team_close(m->team) == 0);
	host_packets(false);
	return NULL;
}

/* Pages of both boards that are allocated. */
static uint64_t pages_in_use(void)
{
	uint64_t pages = 0;

	for (int i = 0; i < HOSTS; i++) {
		struct gsas_stat stat;
		struct gsas_msg msg = {
			.opcode = GSAS_STAT, .into = &stat, .len = sizeof(stat),
		};
		struct gsas_request request;
		struct gsas_thread *t;
		struct gsas_conn *conn;

		HOLDS(gsas_thread_get(&t) == 0);
		HOLDS(gsas_conn_get(t, g_first + i, &conn) == 0);
		HOLDS(gsas_space_wait(conn, 0, sizeof(stat), &msg, NULL) == 0);
		msg.arg2 = msg.off;
		HOLDS(gsas_request_do(conn, &msg, &request) == 0);
		pages += stat.pages;
	}
	return pages;
}

/* Run all members. */
static void together(void (*run)(struct member *m), const char *name,
		     bool packets)
{
	struct member m[MEMBERS];
	pthread_t thread[MEMBERS];

	atomic_store(&g_count, 0);
	for (int i = MEMBERS - 1; i >= 0; i--) {
		m[i] = (struct member){
			.index = i, .run = run, .name = name,
			.packets = packets,
		};
		thread[i] = unit_thread(member_run, &m[i]);
	}
	for (int i = 0; i < MEMBERS; i++)
		pthread_join(thread[i], NULL);
}

/* ---- Barriers ------------------------------------------------------------ */

/* All have come before any of them goes on. */
static void barriers(struct member *m)
{
	for (int n = 1; n <= ROUNDS; n++) {
		atomic_fetch_add(&g_count, 1);
		HOLDS(gsas_team_barrier(m->team, LONG_MS) == 0);
		HOLDS(atomic_load(&g_count) >= n * MEMBERS);
		HOLDS(atomic_load(&g_count) < (n + 1) * MEMBERS);
	}
}

static void test_barriers(void **state)
{
	together(barriers, "barriers", false);
	assert_int_equal(atomic_load(&g_count), ROUNDS * MEMBERS);
	together(barriers, "barriers", true);
	/* 16 bytes are a name too */
	together(barriers, "0123456789abcdef", false);
}

/* Posted requests are executed at the barrier, and their errors reported. */
static void posted(struct member *m)
{
	uint64_t word;

	if (m->index == 0)
		g_bases[0] = host_alloc(1, 1, 0);
	HOLDS(gsas_team_barrier(m->team, LONG_MS) == 0);
	for (int i = 0; i < 100; i++)
		HOLDS(gsas_update64_post(g_bases[0], GSAS_OP_SUM, 1) == 0);
	HOLDS(gsas_team_barrier(m->team, LONG_MS) == 0);
	HOLDS(gsas_read64(g_bases[0], &word) == 0 && word == 100 * MEMBERS);
	HOLDS(gsas_team_barrier(m->team, LONG_MS) == 0);
	if (m->index == 0)
		HOLDS(gsas_free(g_bases[0]) == 0);
	HOLDS(gsas_team_barrier(m->team, LONG_MS) == 0);
	if (m->index == 2)
		HOLDS(gsas_write64_post(g_bases[0], 1) == 0);
	HOLDS(gsas_team_barrier(m->team, LONG_MS) ==
	      (m->index == 2 ? -ESTALE : 0));
	HOLDS(gsas_team_barrier(m->team, LONG_MS) == 0);
}

static void test_barrier_is_a_fence(void **state)
{
	together(posted, "posted", true);
}

/* ---- Symmetric memory ---------------------------------------------------- */

static void symmetric(struct member *m)
{
	struct gsas_symmetric *mem, *other;
	int next = (m->index + 1) % MEMBERS;
	gsas_addr own;
	uint64_t word;

	for (int n = 0; n < 3; n++) {
		HOLDS(gsas_team_alloc(m->team, 3, n % 2 ? GSAS_MAPPED : 0,
				      LONG_MS, &mem) == 0);
		own = gsas_symmetric_at(mem, m->index, 0);
		HOLDS(gsas_board_of_address(own) == g_first);
		g_bases[m->index] = own;
		HOLDS(gsas_symmetric_at(mem, MEMBERS, 0) == 0);
		HOLDS(gsas_symmetric_at(mem, -1, 0) == 0);
		HOLDS(gsas_symmetric_at(mem, 0, 3 * GSAS_PAGE) == 0);
		/* each writes to the next member, at the same offset */
		HOLDS(gsas_write64(gsas_symmetric_at(mem, next, 8192),
				   m->index + 1) == 0);
		HOLDS(gsas_team_barrier(m->team, LONG_MS) == 0);
		for (int i = 0; i < MEMBERS; i++)
			HOLDS(gsas_symmetric_at(mem, i, 24) ==
			      g_bases[i] + 24);
		HOLDS(gsas_read64(own + 8192, &word) == 0);
		HOLDS((int)word == (m->index + MEMBERS - 1) % MEMBERS + 1);
		/* a second allocation is apart from the first one */
		HOLDS(gsas_team_alloc(m->team, 1, 0, LONG_MS, &other) == 0);
		HOLDS(gsas_symmetric_at(other, m->index, 0) != own);
		HOLDS(gsas_team_free(m->team, other, LONG_MS) == 0);
		HOLDS(gsas_team_free(m->team, mem, LONG_MS) == 0);
		HOLDS(gsas_read64(own, &word) == -ESTALE);
	}
}

/* It fails for all members if it fails for one; the team is still usable. */
static void symmetric_errors(struct member *m)
{
	struct gsas_symmetric *mem = NULL;

	HOLDS(gsas_team_alloc(m->team, m->index == 2 ? 1 << 20 : 1, 0, LONG_MS,
			      &mem) == -ENOMEM);
	HOLDS(gsas_team_alloc(m->team, m->index == 1 ? 2 : 1, 0, LONG_MS,
			      &mem) == -EINVAL);
	HOLDS(gsas_team_alloc(m->team, 0, 0, LONG_MS, &mem) == -EINVAL);
	HOLDS(mem == NULL);
	HOLDS(gsas_team_alloc(m->team, 1, 0, LONG_MS, &mem) == 0);
	HOLDS(gsas_team_free(m->team, mem, LONG_MS) == 0);
}

/* An error of a posted request of one member fails no allocation, not even that
 * of the member. The next barrier returns it. */
static void symmetric_posted(struct member *m)
{
	struct gsas_symmetric *mem;

	if (m->index == 2) {
		gsas_addr gone = host_alloc(1, 1, 0);

		HOLDS(gsas_free(gone) == 0);
		HOLDS(gsas_write64_post(gone, 1) == 0);
	}
	HOLDS(gsas_team_alloc(m->team, 1, 0, LONG_MS, &mem) == 0);
	HOLDS(gsas_team_barrier(m->team, LONG_MS) ==
	      (m->index == 2 ? -ESTALE : 0));
	HOLDS(gsas_team_free(m->team, mem, LONG_MS) == 0);
}

/* A call that fails because of its argument, at one member, is no exchange: the
 * next exchange has the words of all members. */
static void symmetric_argument(struct member *m)
{
	struct gsas_symmetric *mem, *other;

	for (int n = 0; n < 3; n++) {
		if (m->index == n)
			HOLDS(gsas_team_alloc(m->team, 1, 0, -2, &mem) ==
			      -EINVAL);
		HOLDS(gsas_team_alloc(m->team, 1, 0, LONG_MS, &mem) == 0);
		HOLDS(gsas_team_alloc(m->team, 1, 0, LONG_MS, &other) == 0);
		for (int i = 0; i < MEMBERS; i++) {
			gsas_addr at = gsas_symmetric_at(other, i, 0);

			HOLDS(at != 0 && at != gsas_symmetric_at(mem, i, 0));
			HOLDS(gsas_write64(at, 1) == 0);
		}
		HOLDS(gsas_team_free(m->team, other, -2) == -EINVAL);
		HOLDS(gsas_team_free(m->team, other, LONG_MS) == 0);
		HOLDS(gsas_team_free(m->team, mem, LONG_MS) == 0);
	}
}

/* Words that are neither an address nor an error. */
static void symmetric_words(struct member *m)
{
	static const uint64_t words[][EXCHANGE_WORDS] = {
		{ 0, 1 }, { UINT64_C(1) << 40, 1 },
	};
	struct gsas_symmetric *mem;

	for (int n = 0; n < 2; n++) {
		if (m->index == 1)
			HOLDS(gsas_team_exchange(m->team, words[n], LONG_MS,
						 NULL) == 0);
		else
			HOLDS(gsas_team_alloc(m->team, 1, 0, LONG_MS, &mem) ==
			      -EPROTO);
	}
}

static void test_symmetric(void **state)
{
	uint64_t before = pages_in_use();

	together(symmetric, "symmetric", false);
	together(symmetric, "symmetric", true);
	together(symmetric_errors, "errors", false);
	together(symmetric_posted, "posted", true);
	together(symmetric_argument, "argument", false);
	together(symmetric_words, "words", false);
	assert_int_equal(pages_in_use(), before);
}

/* ---- Opening ------------------------------------------------------------- */

static void test_arguments(void **state)
{
	struct gsas_team *team;
	int board = g_first;

	assert_int_equal(gsas_team_open(NULL, board, 0, 1, 0, &team), -EINVAL);
	assert_int_equal(gsas_team_open("", board, 0, 1, 0, &team), -EINVAL);
	assert_int_equal(gsas_team_open("0123456789abcdefg", board, 0, 1, 0,
					&team), -EINVAL);
	assert_int_equal(gsas_team_open("x", -1, 0, 1, 0, &team), -EINVAL);
	assert_int_equal(gsas_team_open("x", board, 1, 1, 0, &team), -EINVAL);
	assert_int_equal(gsas_team_open("x", board, -1, 1, 0, &team), -EINVAL);
	assert_int_equal(gsas_team_open("x", board, 0, GSAS_TEAM_MAX + 1, 0,
					&team), -EINVAL);
	assert_int_equal(gsas_team_open("x", board, 0, 1, -2, &team), -EINVAL);
	assert_int_equal(gsas_team_open("x", 70000, 0, 1, 0, &team), -ENXIO);
	/* numbers of a launcher: a team of one */
	unsetenv("PMI_FD");
	unsetenv("PMIX_NAMESPACE");
	unsetenv("SLURM_PROCID");
	assert_int_equal(gsas_team_open("x", board, -1, -1, 0, &team),
			 -ENOENT);
	setenv("SLURM_STEP_ID", "0", 1);
	setenv("SLURM_PROCID", "0", 1);
	setenv("SLURM_STEP_NUM_TASKS", "1", 1);
	assert_int_equal(gsas_team_open("x", board, -1, -1, 1000, &team), 0);
	unsetenv("SLURM_PROCID");
	assert_int_equal(gsas_team_index(team), 0);
	assert_int_equal(gsas_team_members(team), 1);
	assert_int_equal(gsas_team_barrier(team, -2), -EINVAL);
	assert_int_equal(gsas_team_barrier(team, 0), 0);
	assert_int_equal(gsas_team_close(team), 0);
}

/* Nobody else comes: no page remains, and the name can be used again. */
static void test_nobody_comes(void **state)
{
	struct gsas_team *team;
	uint64_t before = pages_in_use();

	assert_int_equal(gsas_team_open("alone", g_first, 0, 2, 20, &team),
			 -ETIMEDOUT);
	assert_int_equal(pages_in_use(), before);
	assert_int_equal(gsas_team_open("alone", g_first, 1, 2, 20, &team),
			 -ETIMEDOUT);
	together(barriers, "alone", false);
	assert_int_equal(pages_in_use(), before);
}

/* Give the name "slow" to the page at an address. */
static void name_slow(gsas_addr page)
{
	struct gsas_msg msg = { .opcode = GSAS_NAME, .address = page };
	struct gsas_request request;
	struct gsas_conn *conn;
	struct gsas_thread *t;

	memcpy(&msg.arg1, "slow\0\0\0", 8);
	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_conn_get(t, g_first, &conn), 0);
	assert_int_equal(gsas_request_do(conn, &msg, &request), 0);
}

/* A page of a team of two, whose member 0 is the test; *passed: its word of
 * barriers. */
static gsas_addr slow_page(_Atomic uint64_t **passed)
{
	gsas_addr page = host_alloc(1, 0, GSAS_JOB | GSAS_MAPPED);
	size_t bytes;
	void *ptr;

	assert_int_equal(gsas_write64(page + TEAM_MEMBERS * 8, 2), 0);
	assert_int_equal(gsas_map(page, &ptr, &bytes), 0);
	*passed = (_Atomic uint64_t *)ptr + TEAM_PASSED;
	return page;
}

static void *slow_run(void *arg)
{
	HOLDS(gsas_team_open("slow", g_first, 1, 2, LONG_MS, arg) == 0);
	return NULL;
}

/* Member 1 reads in vain that the team has met, and finds by its look-up that
 * the name has moved. In between the team meets. Member 1 must not leave the
 * team: store in *stays whether it did not. */
static void slow_round(bool *stays)
{
	_Atomic uint64_t *passed[2];
	struct gsas_team *team;
	gsas_addr page[2];
	pthread_t thread;

	for (int i = 0; i < 2; i++)
		page[i] = slow_page(&passed[i]);
	name_slow(page[0]);
	thread = unit_thread(slow_run, &team);
	assert_int_equal(gsas_wait_until(page[0] + TEAM_ARRIVED * 8, GSAS_EQ,
					 1, LONG_MS, NULL), 0);
	name_slow(page[1]);
	/* without the service the look-up, after 100 ms, is not answered */
	atomic_store(&g_host[0].stop, true);
	gsas_board_wake(g_host[0].board);
	pthread_join(g_host[0].thread, NULL);
	usleep(250000);
	atomic_store(passed[0], 1);
	atomic_store(passed[1], 1);	/* should it leave */
	atomic_store(&g_host[0].stop, false);
	g_host[0].thread = unit_thread(host_run, &g_host[0]);
	pthread_join(thread, NULL);
	*stays = team->page == page[0];
	assert_int_equal(gsas_team_close(team), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(gsas_unmap((void *)passed[i]), 0);
		assert_int_equal(gsas_free(page[i]), 0);
	}
}

static void test_slow_member_stays(void **state)
{
	bool stays = false;

	/* A round is void if the look-up comes before the service stops. */
	for (int i = 0; i < 5 && !stays; i++)
		slow_round(&stays);
	assert_true(stays);
}

/* A member without a descriptor for its lock does not open the team, and does
 * not keep its place. */
static void no_descriptor(void)
{
	struct gsas_team *team;
	struct rlimit limit, none;

	host_packets(true);		/* no descriptor for mappings */
	(void)gsas_fence(-1);
	HOLDS(gsas_read64(g_bases[0], &(uint64_t){ 0 }) == 0);
	HOLDS(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	none = limit;
	none.rlim_cur = 0;
	HOLDS(setrlimit(RLIMIT_NOFILE, &none) == 0);
	HOLDS(gsas_team_open("fds", g_first, 1, 2, 5000, &team) == -EMFILE);
	HOLDS(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	HOLDS(gsas_team_open("fds", g_first, 1, 2, 5000, &team) == 0);
	HOLDS(gsas_team_barrier(team, LONG_MS) == 0);
	_exit(0);
}

static void test_no_descriptor(void **state)
{
	struct gsas_team *team;
	pid_t pid;

	if (!g_one_host)
		return;			/* there is no lock */
	g_bases[0] = host_alloc(1, 0, 0);
	pid = unit_fork();
	if (pid == 0)
		no_descriptor();
	assert_int_equal(gsas_team_open("fds", g_first, 0, 2, LONG_MS, &team),
			 0);
	assert_int_equal(gsas_team_barrier(team, LONG_MS), 0);
	assert_int_equal(unit_exit_code(pid), 0);
	assert_int_equal(gsas_team_close(team), 0);
	assert_int_equal(gsas_free(g_bases[0]), 0);
}

/* ---- Members that end ---------------------------------------------------- */

struct one {				/* member 1 of 2, in a thread */
	struct gsas_team *team;
	int ms, opened, barrier;
	uint64_t ns;			/* that the barrier took */
};

static void *one_run(void *arg)
{
	struct one *one = arg;

	one->opened = gsas_team_open("two", g_first, 1, 2, LONG_MS,
				     &one->team);
	if (one->opened != 0)
		return NULL;
	one->barrier = gsas_team_barrier(one->team, one->ms);
	HOLDS(gsas_team_close(one->team) == 0);
	return NULL;
}

static void test_timeout_breaks_the_team(void **state)
{
	struct one one = { .ms = 30 };
	struct gsas_team *team;
	gsas_addr gone;
	pthread_t thread = unit_thread(one_run, &one);

	assert_int_equal(gsas_team_open("two", g_first, 0, 2, LONG_MS, &team),
			 0);
	pthread_join(thread, NULL);	/* it gives up its barrier */
	assert_int_equal(one.opened, 0);
	assert_int_equal(one.barrier, -ETIMEDOUT);
	assert_int_equal(gsas_team_barrier(team, -1), -ECONNRESET);
	assert_int_equal(gsas_team_barrier(team, -1), -ECONNRESET);
	/* a barrier that fails returns no error of a posted request: a fence
	 * does */
	gone = host_alloc(1, 1, 0);
	assert_int_equal(gsas_free(gone), 0);
	assert_int_equal(gsas_write64_post(gone, 1), 0);
	assert_int_equal(gsas_team_barrier(team, -1), -ECONNRESET);
	assert_int_equal(gsas_fence(g_first), 0);
	assert_int_equal(gsas_fence(-1), -ESTALE);
	assert_int_equal(gsas_fence(-1), 0);
	assert_int_equal(gsas_team_close(team), 0);
}

/* A forked process opens the team as member index, passes barriers, and is
 * killed. It finds the job of the test. */
static pid_t fork_victim(const char *name, int index, int passes)
{
	struct gsas_team *team;
	pid_t pid = unit_fork();

	if (pid != 0)
		return pid;
	if (gsas_team_open(name, g_first, index, 2, passes < 0 ? 100 : LONG_MS,
			   &team) == 0)
		for (int i = 0; i < passes; i++)
			gsas_team_barrier(team, LONG_MS);
	raise(SIGKILL);
	return 0;
}

static void test_killed_member(void **state)
{
	struct gsas_team *team;
	uint64_t begin;
	pid_t pid;

	for (int index = 0; index < 2; index++) {
		pid = fork_victim("killed", 1 - index, 3);
		assert_int_equal(gsas_team_open("killed", g_first, index, 2,
						LONG_MS, &team), 0);
		for (int i = 0; i < 3; i++)
			assert_int_equal(gsas_team_barrier(team, LONG_MS), 0);
		begin = unm_now_ns();
		assert_int_equal(gsas_team_barrier(team, g_one_host ? -1 : 300),
				 g_one_host ? -ECONNRESET : -ETIMEDOUT);
		assert_true(unm_now_ns() - begin < UINT64_C(30000000000));
		assert_int_equal(gsas_team_close(team), 0);
		assert_int_equal(unit_exit_code(pid), 128 + SIGKILL);
	}
	/* the page of a team whose member 0 was killed keeps its name, but
	 * a new team replaces it */
	together(barriers, "killed", false);
}

/* Member 2 closes the team. Only member 1 checks for that, and all learn it. */
static void one_leaves(struct member *m)
{
	int ret;

	if (m->index == 2)
		return;
	ret = gsas_team_barrier(m->team, g_one_host ? -1 : 300);
	HOLDS(ret == -ECONNRESET || (ret == -ETIMEDOUT && !g_one_host));
}

static void test_member_leaves(void **state)
{
	uint64_t before = pages_in_use();

	together(one_leaves, "leaves", false);
	together(one_leaves, "leaves", true);
	assert_int_equal(pages_in_use(), before);
}

/* A member 0 that was killed while it waited has left a page with a free place.
 * A member of the next team finds it first, and does not mistake it. */
static void test_killed_while_opening(void **state)
{
	struct one one = { .ms = LONG_MS };
	struct gsas_team *team;
	pthread_t thread;
	pid_t pid = unit_fork();

	if (pid == 0) {
		gsas_team_open("two", g_first, 0, 2, LONG_MS, &team);
		_exit(1);
	}
	usleep(100000);
	unit_kill(pid);
	thread = unit_thread(one_run, &one);
	usleep(50000);
	assert_int_equal(gsas_team_open("two", g_first, 0, 2, LONG_MS, &team),
			 0);
	assert_int_equal(gsas_team_barrier(team, LONG_MS), 0);
	pthread_join(thread, NULL);
	assert_int_equal(one.barrier, 0);
	assert_int_equal(gsas_team_close(team), 0);
}

/* Member 1, by requests. */
static void *far_run(void *arg)
{
	struct one *one = arg;
	struct gsas_thread *t;
	uint64_t begin;

	host_packets(true);
	HOLDS(gsas_thread_get(&t) == 0);
	t->timeout = FAR_MS * UINT64_C(1000000);
	one->opened = gsas_team_open("far", g_first, 1, 2, LONG_MS, &one->team);
	HOLDS(one->opened == 0);
	atomic_store(&g_count, 1);
	while (atomic_load(&g_count) == 1)
		usleep(100);
	begin = unm_now_ns();
	one->barrier = gsas_team_barrier(one->team, one->ms);
	one->ns = unm_now_ns() - begin;
	gsas_team_close(one->team);	/* the service may be stopped */
	host_packets(false);
	return NULL;
}

/* Open a team with member 1 in a thread, which waits for g_count to be 2. */
static pthread_t far_open(struct one *one, struct gsas_team **team)
{
	pthread_t thread;

	atomic_store(&g_count, 0);
	thread = unit_thread(far_run, one);
	assert_int_equal(gsas_team_open("far", g_first, 0, 2, LONG_MS, team),
			 0);
	while (atomic_load(&g_count) == 0)
		usleep(100);
	return thread;
}

/* The service of the team's page is stopped, or goes on. */
static void far_service(bool runs)
{
	atomic_store(&g_host[0].stop, !runs);
	if (runs) {
		g_host[0].thread = unit_thread(host_run, &g_host[0]);
	} else {
		gsas_board_wake(g_host[0].board);
		pthread_join(g_host[0].thread, NULL);
	}
}

/* A member's request is not answered within GSAS_TIMEOUT, but executed later.
 * Store in *breaks whether the member has failed and broken the team. */
static void far_round(bool *breaks)
{
	struct one one = { .ms = 20 * FAR_MS };
	struct gsas_team *team;
	pthread_t thread = far_open(&one, &team);
	int ret;

	far_service(false);
	atomic_store(&g_count, 2);
	/* the member tries to break the team for the same time again */
	usleep(FAR_MS * 1500);
	far_service(true);
	pthread_join(thread, NULL);
	ret = gsas_team_barrier(team, 2 * FAR_MS);
	*breaks = one.barrier < 0 && ret == -ECONNRESET &&
		one.ns < one.ms * UINT64_C(1000000);
	assert_int_equal(gsas_team_close(team), 0);
}

static void test_failed_member_breaks_the_team(void **state)
{
	bool breaks = false;

	/* A round is void if the service runs again too early or too late. */
	for (int i = 0; i < 5 && !breaks; i++)
		far_round(&breaks);
	assert_true(breaks);
}

/* The end of the connection is not the end of a slice of the wait. */
static void test_stopped_service_ends_the_wait(void **state)
{
	struct one one = { .ms = -1 };
	struct gsas_team *team;
	pthread_t thread = far_open(&one, &team);

	atomic_store(&g_count, 2);
	assert_int_equal(gsas_wait_until(team->page + TEAM_ARRIVED * 8, GSAS_GE,
					 3, LONG_MS, NULL), 0);
	far_service(false);
	pthread_join(thread, NULL);
	assert_int_equal(one.barrier, -ETIMEDOUT);
	far_service(true);
	assert_int_equal(gsas_team_close(team), 0);
}

static int setup(void **state)
{
	struct gsas_thread *t;

	host_setup(state);
	HOLDS(gsas_thread_get(&t) == 0);
	g_one_host = t->hif->caps->flags & HAL_CAP_ANY_BOARD;
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_barriers),
		cmocka_unit_test(test_barrier_is_a_fence),
		cmocka_unit_test(test_symmetric),
		cmocka_unit_test(test_arguments),
		cmocka_unit_test(test_nobody_comes),
		cmocka_unit_test(test_slow_member_stays),
		cmocka_unit_test(test_no_descriptor),
		cmocka_unit_test(test_timeout_breaks_the_team),
		cmocka_unit_test(test_killed_member),
		cmocka_unit_test(test_member_leaves),
		cmocka_unit_test(test_killed_while_opening),
		cmocka_unit_test(test_failed_member_breaks_the_team),
		cmocka_unit_test(test_stopped_service_ends_the_wait),
	};

	host_boards();
	return unit_run_with(tests, setup, host_teardown);
}
