/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_service.c - the service and its clients, without a HAL: access
 * rights of jobs, groups and modes, the order and time of answers, answers that
 * a client does not take, fences, and ends of clients.
 */
#include <semaphore.h>

#include "lib/unit.h"
#include "lib/gsas_service_fixture.h"

static struct gsas_stat *stat_of(struct fixture *w)
{
	return gsas_service_stat(w->service);
}

/* ---- Access rights ------------------------------------------------------- */

enum { OWNER, SIBLING, MEMBER, OTHER, OTHER_USER, WHO };

struct people {
	struct fixture *w;
	struct fixture_client *who[WHO];
	uint64_t group;			/* of owner and member */
};

static struct people people_new(void)
{
	struct people p = { .w = fixture_new(NULL) };
	uint64_t name = 0x70756f7267;

	p.who[OWNER] = fixture_client(p.w, 1, 1);
	p.who[SIBLING] = fixture_client(p.w, 1, 1);
	p.who[MEMBER] = fixture_client(p.w, 1, 2);
	p.who[OTHER] = fixture_client(p.w, 1, 3);
	p.who[OTHER_USER] = fixture_client(p.w, 2, 1);	/* the same job key */
	p.group = fixture_result(p.who[OWNER], GSAS_GROUP, name, 0, 0);
	assert_int_equal(fixture_result(p.who[MEMBER], GSAS_GROUP, name, 0, 0),
			 p.group);
	/* another user's group of this name is another group */
	assert_int_not_equal(fixture_result(p.who[OTHER_USER], GSAS_GROUP, name,
					    0, 0), p.group);
	assert_int_not_equal(fixture_result(p.who[OTHER], GSAS_GROUP, name + 1,
					    0, 0), p.group);
	return p;
}

/* Did the last GSAS_MAP answer bring a key? */
static bool mapped_by(struct fixture_client *c)
{
	struct gsas_map_info info;

	memcpy(&info, c->out, sizeof(info));
	return info.key[0] != 0;
}

static void test_modes(void **state)
{
	static const struct {
		uint64_t mode;
		bool may[WHO];
	} modes[] = {
		{ GSAS_MODE_JOB, { [OWNER] = true, [SIBLING] = true } },
		{ GSAS_MODE_GROUP, { [OWNER] = true, [SIBLING] = true,
				     [MEMBER] = true } },
		{ GSAS_MODE_WORLD, { true, true, true, true, true } },
	};
	struct people p = people_new();

	for (int m = 0; m < 6; m++) {
		uint64_t mode = modes[m / 2].mode, sum = 0;
		uint64_t attr = mode | (m % 2 ? GSAS_ATTR_MAPPED : 0);
		uint64_t addr;

		if (mode == GSAS_MODE_GROUP)
			attr |= p.group << 32;
		addr = fixture_alloc(p.who[OWNER], 1, attr);
		for (int i = 0; i < WHO; i++) {
			bool may = modes[m / 2].may[i];
			struct fixture_client *c = p.who[i];
			uint64_t error = may ? GSAS_OK : GSAS_E_ACCESS;

			sum += may;
			assert_int_equal(error, fixture_error(c, GSAS_FAD64,
							      addr, 1, 0));
			assert_int_equal(error, fixture_error(c, GSAS_GET, addr,
							      8, 0));
			memset(c->out, 0, 64);
			assert_int_equal(error, fixture_error(c, GSAS_MAP, addr,
							      0, 0));
			assert_int_equal(may && m % 2, mapped_by(c));
		}
		assert_int_equal(fixture_result(p.who[OWNER], GSAS_READ64, addr,
						0, 0), sum);
		for (int i = WHO - 1; i > SIBLING; i--)
			assert_int_equal(fixture_error(p.who[i], GSAS_FREE, 0,
						       addr, 0), GSAS_E_ACCESS);
		fixture_result(p.who[SIBLING], GSAS_FREE, 0, addr, 0);
		assert_int_equal(fixture_error(p.who[OWNER], GSAS_READ64, addr,
					       0, 0), GSAS_E_FREED);
	}
	fixture_free(p.w);
}

/* One line for each client and kind of refusal, which names the client. */
static void test_log(void **state)
{
	struct people p = people_new();
	uint64_t addr = fixture_alloc(p.who[OWNER], 1, 0);
	char want[64];

	assert_int_equal(p.w->lines, 0);
	fixture_error(p.who[OTHER], GSAS_READ64, addr, 0, 0);
	assert_int_equal(p.w->lines, 1);
	snprintf(want, sizeof(want), "READ64 at 0x%016llx",
		 (unsigned long long)addr);
	assert_non_null(strstr(p.w->line, want));
	assert_non_null(strstr(p.w->line, "identity 1:0x3"));
	assert_non_null(strstr(p.w->line, "user 1, job 3"));
	for (int i = 0; i < 100; i++) {
		fixture_error(p.who[OTHER], GSAS_WRITE64, addr, 0, 0);
		fixture_error(p.who[OTHER], GSAS_READ64, addr + 4096, 0, 0);
		fixture_error(p.who[OWNER], GSAS_READ64, addr + 4096, 0, 0);
	}
	assert_int_equal(p.w->lines, 1);
	fixture_error(p.who[OTHER], GSAS_JOIN, 1, 1, 0);
	assert_int_equal(p.w->lines, 2);
	fixture_error(p.who[OTHER_USER], GSAS_READ64, addr, 0, 0);
	assert_int_equal(p.w->lines, 3);
	fixture_free(p.w);
}

static void test_groups(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t number[64];

	for (uint64_t i = 0; i < 64; i++) {
		number[i] = fixture_result(c, GSAS_GROUP, i + 1, 0, 0);
		assert_true(number[i] != 0);
		assert_true(i == 0 || number[i] != number[i - 1]);
	}
	assert_int_equal(fixture_error(c, GSAS_GROUP, 99, 0, 0), GSAS_E_QUOTA);
	/* joining again adds none */
	assert_int_equal(fixture_result(c, GSAS_GROUP, 64, 0, 0), number[63]);
	fixture_alloc(c, 1, GSAS_MODE_GROUP | number[63] << 32);
	fixture_free(w);
}

/* ---- Allocations --------------------------------------------------------- */

static void test_alloc(void **state)
{
	struct gsas_service_attr attr = { .pages.max_pages = 2000,
					  .pages.max_user.pages = 1500 };
	struct fixture *w = fixture_new(&attr);
	struct fixture_client *c = fixture_client(w, 1, 1);
	struct fixture_client *d = fixture_client(w, 2, 2);
	uint64_t last = 0, addr, zero[64] = { 0 };

	for (int i = 0; i < 600; i++) {
		addr = fixture_alloc(c, 1 + (uint64_t)i % 3, i % 2 ? 0 :
				     GSAS_ATTR_MAPPED);
		assert_true(gsas_board_of(addr) == FIXTURE_BOARD);
		assert_true(i < 2 || addr != last);
		fixture_result(c, GSAS_GET, addr, sizeof(zero), 0);
		assert_memory_equal(c->out, zero, sizeof(zero));
		fixture_result(c, GSAS_WRITE64, addr, UINT64_MAX, 0);
		fixture_result(c, GSAS_FREE, 0, addr + 4095, 0);
		assert_int_equal(fixture_error(c, GSAS_READ8, addr, 0, 0),
				 GSAS_E_FREED);
		last = addr;
	}
	assert_int_equal(stat_of(w)->pages, 0);
	addr = fixture_alloc(c, 1500, 0);
	assert_int_equal(fixture_error(c, GSAS_ALLOC, 0, 1, 0), GSAS_E_QUOTA);
	/* all jobs of a user share one quota, other users have their own */
	assert_int_equal(fixture_error(fixture_client(w, 1, 3), GSAS_ALLOC, 0,
				       1, 0),
			 GSAS_E_QUOTA);
	fixture_alloc(d, 499, 0);
	assert_int_equal(fixture_error(d, GSAS_ALLOC, 0, 2, 0), GSAS_E_MEMORY);
	fixture_result(c, GSAS_FREE, 0, addr, 0);
	fixture_alloc(d, 2, 0);
	fixture_end(d);
	assert_int_equal(stat_of(w)->orphans, 2);
	fixture_free(w);
}

/* Without memory there is an answer, and nothing is left allocated. */
static void test_no_memory(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);

	w->fail_alloc = 2;
	assert_int_equal(fixture_error(c, GSAS_ALLOC, 0, 1, 0), GSAS_E_MEMORY);
	assert_int_equal(fixture_error(c, GSAS_QUEUE_NEW, 0, 64 | 8ULL << 32,
				       0),
			 GSAS_E_MEMORY);
	assert_int_equal(stat_of(w)->pages, 0);
	assert_int_equal(stat_of(w)->regions, 0);
	assert_int_equal(w->blocks, 0);
	fixture_alloc(c, 1, 0);
	fixture_free(w);
}

/*
 * A client ends before it gets the answer of an allocation, so no client knows
 * the address: the memory is freed. When it ends: before the deferred request
 * is done; when it is done, but the answer was not taken; the same for a
 * request that was not deferred.
 */
static void test_end_before_the_answer(void **state)
{
	for (int when = 0; when < 3; when++) {
		struct fixture *w = fixture_new(NULL);
		struct fixture_client *other = fixture_client(w, 1, 1);
		struct fixture_client *c = fixture_client(w, 1, 1);

		if (when == 2)	/* a segment has free pages */
			fixture_alloc(c, 1, 0);
		fixture_forget(c);
		c->refuse = when > 0 ? 100 : 0;
		assert_true(fixture_send(c, GSAS_ALLOC, 7, 0, 1, 0));
		if (when < 2) {
			assert_true(fixture_send(c, GSAS_QUEUE_NEW, 8, 0,
						 64 | 8ULL << 32, 0));
			assert_true(fixture_send(c, GSAS_ALLOC, 9, 0, 9,
						 GSAS_MODE_WORLD));
		}
		assert_false(gsas_service_empty(w->service));
		if (when == 1)
			fixture_settle(w);
		assert_int_equal(c->answers, 0);
		fixture_end(c);
		fixture_settle(w);
		assert_int_equal(stat_of(w)->regions, when == 2 ? 1 : 0);
		assert_int_equal(w->blocks, when == 2 ? 1 : 0);
		fixture_end(other);
		assert_int_equal(stat_of(w)->jobs, when == 2 ? 1 : 0);
		assert_int_equal(gsas_service_empty(w->service), when < 2);
		fixture_free(w);
	}
}

/* ---- Answers ------------------------------------------------------------- */

static void test_fence(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	struct fixture_client *d = fixture_client(w, 1, 1);
	uint64_t addr;
	struct gsas_answer a;

	/* a fence waits for deferred requests of its client only */
	assert_true(fixture_send(c, GSAS_ALLOC, 1, 0, 1, 0));
	assert_false(fixture_send(c, GSAS_FENCE, 2, 0, 0, 0));
	assert_true(fixture_send(d, GSAS_FENCE, 2, 0, 0, 0));
	assert_int_equal(d->answers, 1);
	c->refuse = 1;
	gsas_service_progress(w->service);
	assert_false(fixture_send(c, GSAS_FENCE, 2, 0, 0, 0));
	gsas_service_progress(w->service);
	assert_true(fixture_send(c, GSAS_FENCE, 2, 0, 0, 0));
	assert_int_equal(c->answers, 2);
	assert_int_equal(c->answer[0].opcode, GSAS_ALLOC);
	assert_int_equal(c->answer[1].opcode, GSAS_FENCE);
	addr = c->answer[0].response.result;
	fixture_forget(c);

	/* only the fence reports posted requests, and the first error */
	fixture_send(c, GSAS_WRITE64, 0, addr, 5, 0);
	fixture_send(c, GSAS_FAD64, 0, addr, 2, 0);
	fixture_send(c, GSAS_FREE, 0, 0, addr + 4096, 0);
	fixture_send(c, 99, 0, 0, 0, 0);
	fixture_send(c, GSAS_ALLOC, 0, 0, 1, 0); /* has no effect */
	fixture_send(c, GSAS_FENCE, 0, 0, 0, 0);
	assert_int_equal(c->answers, 0);
	a = fixture_ask(c, GSAS_FENCE, 0, 0, 0);
	assert_int_equal(a.response.error, GSAS_OK);
	assert_int_equal(a.response.result, 3);
	assert_int_equal(a.more, GSAS_E_ADDRESS);
	assert_int_equal(stat_of(w)->pages, 1);
	a = fixture_ask(c, GSAS_FENCE, 0, 0, 0);
	assert_int_equal(a.response.result, 0);
	assert_int_equal(a.more, 0);
	assert_int_equal(fixture_result(c, GSAS_READ64, addr, 0, 0), 7);
	/* also for posted requests that are deferred */
	w->spawn_error = GSAS_E_PATH;
	fixture_result(c, GSAS_WRITE8, addr, 'x', 0);
	fixture_send(c, GSAS_FORK, 0, 0, addr, 0);
	a = fixture_ask(c, GSAS_FENCE, 0, 0, 0);
	assert_int_equal(a.response.result, 1);
	assert_int_equal(a.more, GSAS_E_PATH);
	fixture_free(w);
}

/* A client that takes no answers is not served until it takes them; other
 * clients are. */
static void test_no_answers_taken(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	struct fixture_client *d = fixture_client(w, 1, 1);
	uint64_t addr = fixture_alloc(d, 1, 0);

	c->refuse = UINT32_MAX;
	assert_true(fixture_send(c, GSAS_ALLOC, 1, 0, 1, GSAS_MODE_WORLD));
	assert_true(fixture_send(c, GSAS_FAD64, 2, addr, 1, 0));
	assert_false(fixture_send(c, GSAS_FAD64, 3, addr, 1, 0));
	for (int i = 0; i < 100; i++) {
		gsas_service_progress(w->service);
		assert_false(fixture_send(c, GSAS_FAD64, 3, addr, 1, 0));
		assert_false(fixture_send(c, GSAS_FAD64, 0, addr, 1, 0));
		assert_int_equal(fixture_result(d, GSAS_READ64, addr, 0, 0), 1);
	}
	c->refuse = 0;
	gsas_service_progress(w->service);
	assert_true(fixture_send(c, GSAS_FAD64, 3, addr, 1, 0));
	assert_int_equal(c->answers, 3);
	for (uint8_t tag = 1; tag <= 3; tag++)
		assert_int_equal(fixture_answer(c, tag)->response.error,
				 GSAS_OK);
	assert_int_equal(fixture_answer(c, 3)->response.result, 1);
	assert_false(gsas_service_progress(w->service));
	assert_int_equal(stat_of(w)->op[GSAS_FAD64], 2);
	fixture_free(w);
}

static void test_deferred_are_bounded(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	struct fixture_client *d = fixture_client(w, 1, 1);
	uint64_t addr = fixture_alloc(c, 1, 0);

	fixture_forget(c);
	fixture_result(c, GSAS_WRITE64, addr, 0x78, 0);
	fixture_forget(c);
	for (unsigned int tag = 1; tag <= 255; tag++)
		assert_true(
			fixture_send(c, GSAS_FORK, (uint8_t)tag, 0, addr, 0));
	assert_int_equal(c->answers, 0);
	assert_true(fixture_send(c, GSAS_FORK, 0, 0, addr, 0));
	assert_true(fixture_send(c, GSAS_ALLOC, 1, 0, 2, GSAS_MODE_WORLD));
	assert_int_equal(c->answers, 1);
	assert_int_equal(c->answer[0].response.error, GSAS_E_AGAIN);
	assert_true(fixture_send(d, GSAS_FORK, 1, 0, addr, 0));
	fixture_settle(w);
	assert_int_equal(c->answers, 256);
	assert_int_equal(d->answers, 1);
	assert_int_equal(stat_of(w)->forks, 256);
	fixture_forget(c);
	assert_int_equal(fixture_result(c, GSAS_FENCE, 0, 0, 0), 1);
	fixture_free(w);
}

/* A client with many deferred requests does not delay another client's. */
static void test_deferred_in_turn(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	struct fixture_client *d = fixture_client(w, 1, 2);
	struct gsas_stat stat;

	for (unsigned int tag = 1; tag <= 200; tag++)
		assert_true(
			fixture_send(c, GSAS_ALLOC, (uint8_t)tag, 0, 300, 0));
	assert_true(fixture_send(d, GSAS_ALLOC, 1, 0, 300, 0));
	gsas_service_progress(w->service);
	assert_int_equal(d->answers, 1);
	assert_in_range(c->answers, 1, 20);
	for (unsigned int i = 0; i < c->answers; i++)
		assert_int_equal(c->answer[i].tag, i + 1);
	/* the client ends: requests that were not begun are dropped */
	fixture_end(c);
	fixture_settle(w);
	stat = *stat_of(w);
	assert_int_equal(stat.pages, 300 * (1 + c->answers));
	assert_int_equal(stat.segments, 1 + c->answers);
	fixture_free(w);
}

/* ---- Processes ----------------------------------------------------------- */

static uint64_t fork_path(struct fixture_client *c, uint64_t addr,
			  const char *path, size_t len)
{
	for (size_t at = 0; at < len; at += GSAS_BULK_MAX) {
		size_t n = len - at < GSAS_BULK_MAX ? len - at : GSAS_BULK_MAX;

		memcpy(c->in, path + at, n);
		fixture_result(c, GSAS_PUT, addr + at, n, 0);
	}
	return fixture_error(c, GSAS_FORK, 0, addr, 42);
}

static void test_fork(void **state)
{
	static char path[8192];
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 5, 7);
	uint64_t addr = fixture_alloc(c, 3, 0);

	assert_int_equal(fixture_error(c, GSAS_FORK, 0, addr, 0), GSAS_E_PATH);
	memset(path, 'p', sizeof(path));
	path[GSAS_PATH_MAX - 1] = '\0';
	assert_int_equal(fork_path(c, addr, path, GSAS_PATH_MAX), GSAS_OK);
	assert_string_equal(w->spawned.path, path);
	assert_int_equal(w->spawned.argument, 42);
	assert_int_equal(w->spawned.uid, 5);
	assert_int_equal(w->spawned.job[0], 7);
	assert_int_equal(w->spawned.job[1], ~UINT64_C(7));
	assert_int_equal(fixture_result(c, GSAS_FORK, 0, addr, 1), 4711);
	assert_int_equal(stat_of(w)->forks, 2);
	/* one character too long */
	path[GSAS_PATH_MAX - 1] = 'p';
	path[GSAS_PATH_MAX] = '\0';
	assert_int_equal(fork_path(c, addr, path, GSAS_PATH_MAX + 1),
			 GSAS_E_PATH);
	/* longer than the rest of the region */
	assert_int_equal(fork_path(c, addr + 2 * 4096 + 4090, path, 6),
			 GSAS_E_PATH);
	w->spawn_error = GSAS_E_EXEC;
	assert_int_equal(fork_path(c, addr, "x", 2), GSAS_E_EXEC);
	assert_int_equal(w->lines, 1);
	assert_int_equal(stat_of(w)->forks, 2);
	fixture_free(w);
}

static void test_no_fork(void **state)
{
	struct gsas_service_attr attr = { .spawn = NULL };
	struct fixture *w = fixture_new(&attr);
	struct fixture_client *c = fixture_client(w, 1, 1);
	uint64_t addr = fixture_alloc(c, 1, 0);

	assert_int_equal(fork_path(c, addr, "x", 2), GSAS_E_EXEC);
	fixture_free(w);
}

/* ---- Lists and statistics ------------------------------------------------ */

static uint64_t list_all(struct fixture_client *c, uint64_t max,
			 struct gsas_list_entry *entry)
{
	uint64_t from = 0, n = 0;

	do {
		struct gsas_answer a = fixture_ask(c, GSAS_LIST, from, max, 8);

		assert_int_equal(a.response.error, GSAS_OK);
		assert_true(a.response.result <= max);
		memcpy(entry + n, c->out + 8, a.response.result *
		       sizeof(*entry));
		n += a.response.result;
		assert_true(a.more == 0 || a.more > from);
		from = a.more;
	} while (from != 0);
	return n;
}

static void test_list(void **state)
{
	static struct gsas_list_entry entry[1024];
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *a = fixture_client(w, 1, 1);
	struct fixture_client *b = fixture_client(w, 1, 2);
	struct fixture_client *x = fixture_client(w, 2, 1);
	struct gsas_answer answer;
	uint64_t n, pages = 0;

	for (uint64_t i = 0; i < 300; i++) {
		fixture_alloc(a, 1 + i % 2, 0);
		fixture_alloc(x, 1, 0);
		fixture_alloc(b, 3, GSAS_ATTR_MAPPED);
	}
	for (uint64_t max = 1; max < 700; max = max * 3 + 1) {
		n = list_all(b, max, entry);
		assert_int_equal(n, 600);
	}
	for (uint64_t i = 0; i < n; i++) {
		bool of_b = entry[i].attr == GSAS_ATTR_MAPPED;

		assert_int_equal(entry[i].pages > 2, of_b);
		assert_int_equal(entry[i].job, of_b ? 2 : 1);
		assert_int_equal(entry[i].clients, 1);
		assert_int_equal(fixture_error(of_b ? b : a, GSAS_READ8,
					       entry[i].address, 0, 0),
				 GSAS_OK);
	}
	assert_int_equal(list_all(x, 100, entry), 300);
	/* RECLAIM: of a living job, of another user, one region, all */
	assert_int_equal(fixture_error(b, GSAS_RECLAIM, entry[0].address, 0, 0),
			 GSAS_E_ACCESS);
	assert_int_equal(fixture_result(b, GSAS_RECLAIM, 0, 0, 0), 0);
	list_all(a, 100, entry);
	assert_int_equal(fixture_error(b, GSAS_RECLAIM, entry[0].address, 0, 0),
			 GSAS_E_STATE);
	fixture_end(a);
	fixture_end(x);
	assert_int_equal(stat_of(w)->orphans, 600);
	for (n = 0; entry[n].job != 1; n++)
		;
	assert_int_equal(fixture_result(b, GSAS_RECLAIM, entry[n].address, 0,
					0),
			 entry[n].pages);
	assert_int_equal(fixture_error(b, GSAS_RECLAIM, entry[n].address, 0, 0),
			 GSAS_E_FREED);
	answer.more = 0;
	do {
		answer = fixture_ask(b, GSAS_RECLAIM, 0, answer.more, 0);
		assert_int_equal(answer.response.error, GSAS_OK);
		pages += answer.response.result;
	} while (answer.more != 0);
	assert_int_equal(pages, 450 - entry[n].pages);
	assert_int_equal(stat_of(w)->orphans, 300);
	assert_int_equal(stat_of(w)->pages, 300 + 900);
	fixture_free(w);
}

/* Whether processes hold jobs that nobody has joined: none does, but to find
 * that out takes a millisecond. */
static bool held_slowly(void *ctx, uint32_t uid, const uint64_t key[2])
{
	(void)uid;
	(void)key;
	++*(int *)ctx;
	unit_burn(1000000);
	return false;
}

/* A request checks each job once only, and not all of many jobs: one, if that
 * takes a millisecond. A job that it does not check counts as a living one. */
static void test_few_checks(void **state)
{
	static struct gsas_list_entry entry[512];
	int calls = 0;
	struct gsas_service_attr attr = {
		.pages.held = held_slowly, .pages.held_ctx = &calls,
	};
	struct fixture *w = fixture_new(&attr);
	struct fixture_client *a = fixture_client(w, 1, 1);
	struct fixture_client *b = fixture_client(w, 1, 2);
	uint64_t n, orphans = 0;

	for (int i = 0; i < 250; i++)
		fixture_alloc(a, 1, 0);
	fixture_end(a);
	n = fixture_result(b, GSAS_LIST, 0, 250, 8);
	assert_int_equal(n, 250);
	assert_int_equal(calls, 1);
	memcpy(entry, b->out + 8, n * sizeof(*entry));
	for (uint64_t i = 0; i < n; i++)
		assert_int_equal(entry[i].clients, 0);
	assert_int_equal(fixture_result(b, GSAS_RECLAIM, 0, 0, 0), 32);
	assert_int_equal(calls, 2);
	assert_int_equal(stat_of(w)->orphans, 218);
	assert_int_equal(calls, 3);
	for (uint64_t job = 3; job < 50; job++) {
		a = fixture_client(w, 1, job);
		fixture_alloc(a, 1, 0);
		fixture_end(a);
	}
	calls = 0;
	n = stat_of(w)->orphans;
	assert_int_equal(calls, 1);
	assert_true(n == 1 || n == 218);
	calls = 0;
	n = list_all(b, 512, entry);
	assert_int_equal(n, 218 + 47);
	assert_int_equal(calls, 2);	/* of two requests */
	for (uint64_t i = 0; i < n; i++)
		orphans += entry[i].clients == 0;
	assert_in_range(orphans, 218, 218 + 1);
	fixture_free(w);
}

static void test_stat(void **state)
{
	struct fixture *w = fixture_new(NULL);
	struct fixture_client *c = fixture_client(w, 1, 1);
	struct gsas_stat *now = stat_of(w);
	uint64_t addr = fixture_alloc(c, 5, 0);
	struct gsas_stat s;

	now->sleeps = 12;
	fixture_error(c, GSAS_READ64, 8, 0, 0);
	fixture_error(c, 200, 0, 0, 0);
	fixture_result(c, GSAS_STAT, 0, 0, 16);
	memcpy(&s, c->out + 16, sizeof(s));
	assert_int_equal(s.pages, 5);
	assert_int_equal(s.regions, 1);
	assert_int_equal(s.clients, 1);
	assert_int_equal(s.jobs, 1);
	assert_int_equal(s.sleeps, 12);
	assert_int_equal(s.requests, 5);
	assert_int_equal(s.refused, 2);
	assert_int_equal(s.op[GSAS_ALLOC], 1);
	assert_int_equal(s.op[GSAS_STAT], 1);
	assert_int_equal(s.op[0], 1);
	assert_int_equal(s.error[GSAS_OK], 2);
	assert_int_equal(s.error[GSAS_E_ADDRESS], 1);
	assert_int_equal(s.error[GSAS_E_OPCODE], 1);
	fixture_result(c, GSAS_FREE, 0, addr, 0);
	fixture_free(w);
}

/* ---- With a worker thread ------------------------------------------------ */

static void test_threaded(void **state)
{
	struct gsas_service_attr attr = { .threaded = true };
	struct fixture *w = fixture_new(&attr);
	struct fixture_client *c[4];
	uint64_t rng = 9, addr;

	for (uint64_t i = 0; i < 4; i++)
		c[i] = fixture_client(w, 1, i);
	for (uint64_t i = 0; i < (UNIT_SLOW ? 200 : 1000); i++) {
		struct fixture_client *me = c[i % 4];

		addr = fixture_alloc(me, 1 + unit_below(&rng, 600),
				     i % 2 ? GSAS_ATTR_MAPPED : 0);
		fixture_result(me, GSAS_WRITE64, addr, 1, 0);
		/* started, and nobody waits for it */
		fixture_forget(me);
		me->tag = 0;
		fixture_send(me, GSAS_ALLOC, 255, 0, 300, 0);
		fixture_result(me, GSAS_FENCE, 0, 0, 0);
		fixture_forget(me);
		if (i % 3 != 0)
			fixture_result(me, GSAS_FREE, 0, addr, 0);
		if (i % 50 != 0)
			continue;
		fixture_send(me, GSAS_QUEUE_NEW, 9, 0, 5000 | 64ULL << 32, 0);
		fixture_end(me);
		c[i % 4] = fixture_client(w, 1, i + 4);
	}
	fixture_send(c[0], GSAS_ALLOC, 9, 0, 1000, 0);
	assert_true(w->wakes > 0);
	fixture_free(w);
}

static sem_t g_hung;

static enum gsas_error spawn_hangs(void *ctx, const struct gsas_spawn *spawn,
				   uint64_t *pid)
{
	(void)ctx;
	(void)spawn;
	sem_wait(&g_hung);
	*pid = 1;
	return GSAS_OK;
}

/* Programs on a file system that does not answer: memory is allocated and freed
 * nevertheless, for other clients and for the one that starts them. */
static void test_hung_fork(void **state)
{
	struct gsas_service_attr attr = {
		.threaded = true, .spawn = spawn_hangs,
	};
	struct fixture *w = fixture_new(&attr);
	struct fixture_client *c = fixture_client(w, 1, 1);
	struct fixture_client *d = fixture_client(w, 1, 2);
	uint64_t addr = fixture_alloc(c, 1, 0), large;

	sem_init(&g_hung, 0, 0);
	fixture_result(c, GSAS_WRITE64, addr, 0x78, 0);
	fixture_forget(c);
	for (uint8_t tag = 70; tag <= 77; tag++)
		assert_true(fixture_send(c, GSAS_FORK, tag, 0, addr, 0));
	large = fixture_alloc(d, 1000, 0);
	fixture_result(d, GSAS_FREE, 0, large, 0);
	fixture_result(c, GSAS_FREE, 0, fixture_alloc(c, 1000, 0), 0);
	for (uint8_t tag = 70; tag <= 77; tag++) {
		assert_null(fixture_answer(c, tag));
		sem_post(&g_hung);
	}
	while (fixture_answer(c, 77) == NULL)
		fixture_settle(w);
	fixture_free(w);
	sem_destroy(&g_hung);
}

UNIT_MAIN(
	cmocka_unit_test(test_modes),
	cmocka_unit_test(test_log),
	cmocka_unit_test(test_groups),
	cmocka_unit_test(test_alloc),
	cmocka_unit_test(test_no_memory),
	cmocka_unit_test(test_end_before_the_answer),
	cmocka_unit_test(test_fence),
	cmocka_unit_test(test_no_answers_taken),
	cmocka_unit_test(test_deferred_are_bounded),
	cmocka_unit_test(test_deferred_in_turn),
	cmocka_unit_test(test_hung_fork),
	cmocka_unit_test(test_fork),
	cmocka_unit_test(test_no_fork),
	cmocka_unit_test(test_list),
	cmocka_unit_test(test_few_checks),
	cmocka_unit_test(test_stat),
	cmocka_unit_test(test_threaded),
)
