/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_memory.c - services in a control group with little memory: who asks
 * for more than there is gets -ENOMEM, and nobody loses what he has.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/gsas_processes.h"
#include "lib/memory_group.h"

#define MIB		(UINT64_C(1) << 20)
#define GROUP		(256 * MIB)
#define PIECE		512			/* pages: 2 MiB */
#define PIECES		256

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED	1
#else
#define SANITIZED	0
#endif

struct ask {
	int boards;			/* to take memory of */
	uint64_t least, most;		/* bytes, of all together; a piece that
					 * can be mapped takes a MiB more */
};

static gsas_addr held[PIECES];
static int nheld;

/* Until the board has no more. */
static void take_all(int board)
{
	int ret = 0;

	while (ret == 0) {
		CHECK(nheld < PIECES);
		ret = gsas_alloc(PIECE, board_number(board), nheld % 2 != 0 ?
				 GSAS_MAPPED : 0, NULL, &held[nheld]);
		nheld += ret == 0;
	}
	GSAS_IS(-ENOMEM, ret);
}

static void check_all(void)
{
	uint64_t value;

	for (int i = 0; i < nheld; i++)
		for (uint64_t page = 0; page < PIECE; page++) {
			gsas_addr at = held[i] + page * GSAS_PAGE;

			GSAS(gsas_read64(at, &value));
			CHECK(value == at);
		}
}

static int eater(int fd, void *arg)
{
	const struct ask *ask = arg;
	gsas_addr big;
	uint64_t got;

	(void)fd;
	for (int round = 0; round < 2; round++) {
		for (int b = 0; b < ask->boards; b++)
			take_all(b);
		got = (uint64_t)nheld * PIECE * GSAS_PAGE;
		procs_note("%llu MiB", (unsigned long long)(got / MIB));
		CHECK_MSG(got >= ask->least && got <= ask->most,
			  "%llu bytes", (unsigned long long)got);
		/* much too much, of both kinds */
		GSAS_IS(-ENOMEM, gsas_alloc(GROUP / GSAS_PAGE, board_number(0),
					    0, NULL, &big));
		GSAS_IS(-ENOMEM, gsas_alloc(GROUP / GSAS_PAGE, board_number(0),
					    GSAS_MAPPED, NULL, &big));
		for (int i = 0; i < nheld; i++)
			for (uint64_t p = 0; p < PIECE; p++)
				GSAS(gsas_write64(held[i] + p * GSAS_PAGE,
						  held[i] + p * GSAS_PAGE));
		check_all();
		/* what is given back can be had again */
		while (nheld > 0)
			GSAS(gsas_free(held[--nheld]));
	}
	return 0;
}

/* A queue gets memory when words come. There is none: that is the error of who
 * puts words in, and neither the service nor a word is lost. */
static int queuer(int fd, void *arg)
{
	const uint64_t quota = UINT64_C(1) << 23;	/* 64 MiB of words */
	struct gsas_queue_handle *q;
	uint64_t n = 0, word;
	gsas_addr addr;
	int ret = 0;

	(void)fd;
	(void)arg;
	GSAS(gsas_queue_create(quota, 512, board_number(0), 0, NULL, &addr));
	GSAS(gsas_queue_open(addr, &q));
	take_all(0);
	while (n < quota && (ret = gsas_enqueue(q, n)) == 0)
		n++;
	GSAS_IS(-ENOMEM, ret);
	procs_note("%llu words", (unsigned long long)n);
	GSAS_IS(-ENOMEM, gsas_enqueue(q, n));
	gsas_queue_close(q);
	GSAS(gsas_queue_open(addr, &q));
	GSAS_IS(-ENOMEM, gsas_enqueue(q, n));
	/* the pieces are not touched by that, and some give way */
	GSAS(gsas_write64(held[0], 1));
	for (int i = 0; i < 8; i++)
		GSAS(gsas_free(held[--nheld]));
	while ((ret = gsas_enqueue(q, n)) == -ENOMEM)
		procs_nap(1000);
	GSAS(ret);
	for (n++; n < 200000; n++)
		GSAS(gsas_enqueue(q, n));
	GSAS(gsas_fence(-1));
	for (uint64_t i = 0; i < n; i++) {
		GSAS(gsas_dequeue(q, &word));
		CHECK(word == i);
	}
	gsas_queue_close(q);
	GSAS(gsas_free(addr));
	while (nheld > 0)
		GSAS(gsas_free(held[--nheld]));
	return 0;
}

enum moved {
	MOVED_BEFORE,			/* services start in the group */
	MOVED_LATER,			/* services that run are moved there */
};

/* Two services in a group, and clients one after the other. */
static void in_group(enum moved moved, const char *const *options, proc_fn fn,
		     const struct ask *asks, int n)
{
	struct proc *service[2];
	char dir[256], parent[256];

	if (SANITIZED)
		procs_skip("it takes memory of its own");
	if (!group_make(dir, sizeof(dir), GROUP))
		procs_skip("no memory cgroup can be made here");
	snprintf(parent, sizeof(parent), "%s", dir);
	*strrchr(parent, '/') = '\0';
	CHECK(group_enter(moved == MOVED_LATER ? parent : dir, getpid()));
	gsasd_copy();
	for (int i = 0; i < 2; i++)
		service[i] = gsasd_start(i, options);
	gsasd_copy_remove();
	CHECK(group_enter(parent, getpid()));
	for (int i = 0; i < 2 && moved == MOVED_LATER; i++)
		CHECK(group_enter(dir, service[i]->pid));
	for (int i = 0; i < n; i++)
		proc_expect(proc_start(fn, (void *)&asks[i], board_env(0)), 0);
	for (int i = 0; i < 2; i++)
		gsasd_stop(service[i]);
	procs_forget();
	group_end(dir);
}

/* Half of the group for both together, whoever comes first. */
static void budget(void)
{
	static const struct ask asks[] = {
		{ 1, GROUP * 3 / 8, GROUP / 2 },
		{ 2, GROUP * 3 / 8, GROUP / 2 },
	};

	in_group(MOVED_BEFORE, NULL, eater, asks, 2);
}

/* With no limit but that of the group. */
static void group(void)
{
	static const char *const options[] = { "--pages", "0", NULL };
	static const struct ask ask = { 2, GROUP / 2, GROUP };

	in_group(MOVED_BEFORE, options, eater, &ask, 1);
}

/* The same for a group that the services did not start in. */
static void later(void)
{
	static const char *const options[] = { "--pages", "0", NULL };
	static const struct ask ask = { 2, GROUP / 2, GROUP };

	in_group(MOVED_LATER, options, eater, &ask, 1);
}

static void queue(void)
{
	static const char *const options[] = { "--pages", "0", NULL };
	static const struct ask none;

	in_group(MOVED_BEFORE, options, queuer, &none, 1);
}

PROCS_MAIN(
	PROCS_CASE(budget, 120),
	PROCS_CASE(group, 120),
	PROCS_CASE(later, 120),
	PROCS_CASE(queue, 120),
)
