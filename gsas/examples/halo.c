/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * halo.c - an example of gsas.h: cells in a ring, of which each member of a
 * team has a part. In each step a cell becomes the sum of itself and its two
 * neighbours. The cells at the ends of a part are passed to the next members,
 * into symmetric memory, by puts with a signal.
 *
 *	halo [MEMBERS [CELLS [STEPS]]]	(4, 1000 in each part, 200)
 *	mpiexec -n 4 halo		the members are the ranks
 *
 * Without a launcher the first process is member 0 and starts the other members
 * by gsas_fork(). Member 0 compares the result with that of one process.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gsas.h"

#define PATIENCE	60000		/* milliseconds to wait for a member */
#define MEMBERS_MAX	1000
#define CELLS_MAX	100000
#define WORD		sizeof(uint64_t)

enum side { LEFT, RIGHT, SIDES };

/* Words of a member's part of the symmetric memory. A step uses one of two
 * places for the cells of a neighbour, because that neighbour may be a step
 * ahead. */
enum {
	SIGNAL = 0,			/* by side: cells received so far */
	EDGE = SIGNAL + SIDES,		/* by step % 2, then by side */
	CELLS = EDGE + 2 * SIDES,	/* the part, at the end */
};

struct part {
	struct gsas_team *team;
	struct gsas_symmetric *mem;
	int me, members;
	uint64_t count, steps;		/* cells of a part, steps */
	uint64_t *cell;			/* count cells, and one on each side */
};

static int report(const char *what, int ret)
{
	if (ret != 0)
		fprintf(stderr, "halo: %s: %s\n", what, gsas_strerror(ret));
	return ret;
}

/* ---- The computation ----------------------------------------------------- */

static uint64_t first_value(uint64_t i)
{
	return i * i + 1;
}

/* One step of count cells, cell[1] to cell[count]. */
static void step(uint64_t *cell, uint64_t count)
{
	uint64_t left = cell[0];

	for (uint64_t i = 1; i <= count; i++) {
		uint64_t self = cell[i];

		cell[i] = left + self + cell[i + 1];
		left = self;
	}
}

static gsas_addr address(const struct part *p, int member, uint64_t word)
{
	return gsas_symmetric_at(p->mem, (member + p->members) % p->members,
				 word * WORD);
}

/* Pass the end of this part to the member on that side, for which it is a cell
 * on the other side. */
static int send_edge(const struct part *p, enum side side, uint64_t n)
{
	int to = side == LEFT ? p->me - 1 : p->me + 1;
	enum side there = side == LEFT ? RIGHT : LEFT;
	const uint64_t *edge = &p->cell[side == LEFT ? 1 : p->count];

	return gsas_put_signal(address(p, to, EDGE + n % 2 * SIDES + there),
			       edge, WORD, address(p, to, SIGNAL + there),
			       GSAS_OP_SUM, 1);
}

/* Wait for the cell of step n of the neighbour on that side. */
static int receive_edge(const struct part *p, enum side side, uint64_t n)
{
	uint64_t *into = &p->cell[side == LEFT ? 0 : p->count + 1];
	int ret = gsas_wait_until(address(p, p->me, SIGNAL + side), GSAS_GT, n,
				  PATIENCE, NULL);

	return ret != 0 ? ret :
		gsas_read64(address(p, p->me, EDGE + n % 2 * SIDES + side),
			    into);
}

static int compute(const struct part *p)
{
	int ret = 0;

	for (uint64_t i = 0; i < p->count; i++)
		p->cell[i + 1] = first_value(p->me * p->count + i);
	for (uint64_t n = 0; n < p->steps && ret == 0; n++) {
		for (int side = LEFT; side < SIDES && ret == 0; side++)
			ret = send_edge(p, (enum side)side, n);
		for (int side = LEFT; side < SIDES && ret == 0; side++)
			ret = receive_edge(p, (enum side)side, n);
		if (ret == 0)
			step(p->cell, p->count);
	}
	if (ret == 0)
		ret = gsas_put(address(p, p->me, CELLS), &p->cell[1],
			       p->count * WORD);
	return report("a step failed", ret);
}

/* ---- The check ----------------------------------------------------------- */

/* Compute all cells here. Returns how many differ from those of the members, or
 * -1. */
static long count_wrong(const struct part *p)
{
	uint64_t total = p->count * p->members;
	uint64_t *cell = calloc(total + 2, WORD);
	long wrong = cell == NULL ? -1 : 0;

	for (uint64_t i = 0; cell != NULL && i < total; i++)
		cell[i + 1] = first_value(i);
	for (uint64_t n = 0; cell != NULL && n < p->steps; n++) {
		cell[0] = cell[total];
		cell[total + 1] = cell[1];
		step(cell, total);
	}
	for (int m = 0; wrong >= 0 && m < p->members; m++) {
		if (report("gsas_get", gsas_get(p->cell, address(p, m, CELLS),
						p->count * WORD)) != 0) {
			wrong = -1;
			break;
		}
		for (uint64_t i = 0; i < p->count; i++)
			wrong += p->cell[i] != cell[m * p->count + i + 1];
	}
	free(cell);
	return wrong;
}

/* The work of a member, from the barrier after the allocation on. Returns
 * whether all is right. */
static int work(struct part *p)
{
	uint64_t pages = (CELLS + p->count) * WORD / GSAS_PAGE + 1;
	int right, ret;
	long wrong = 0;

	ret = gsas_team_alloc(p->team, pages, GSAS_JOB | GSAS_MAPPED, PATIENCE,
			      &p->mem);
	if (report("gsas_team_alloc", ret) != 0)
		return 0;
	right = compute(p) == 0;
	right = report("gsas_team_barrier",
		       gsas_team_barrier(p->team, PATIENCE)) == 0 && right;
	if (right && p->me == 0) {
		wrong = count_wrong(p);
		printf("%d members, %llu cells, %llu steps: %ld wrong\n",
		       p->members, (unsigned long long)p->count * p->members,
		       (unsigned long long)p->steps, wrong);
	}
	ret = gsas_team_free(p->team, p->mem, PATIENCE);
	return right && wrong == 0 && report("gsas_team_free", ret) == 0;
}

/* ---- Members ------------------------------------------------------------- */

/* The argument of a process that gsas_fork() starts */
static uint64_t pack(const struct part *p, int index)
{
	return (uint64_t)index | (uint64_t)p->members << 12 |
		p->count << 24 | p->steps << 44;
}

static void unpack(struct part *p, uint64_t argument)
{
	p->me = argument & 0xfff;
	p->members = argument >> 12 & 0xfff;
	p->count = argument >> 24 & 0xfffff;
	p->steps = argument >> 44;
}

/* Start the other members, on the boards in turn. */
static int start_members(const struct part *p)
{
	char self[GSAS_PATH] = "";
	uint64_t pid;

	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
		perror("halo: /proc/self/exe");
		return -1;
	}
	for (int i = 1; i < p->members; i++) {
		int board = (gsas_board() + i) % gsas_boards();
		int ret = gsas_fork(self, pack(p, i), board, &pid);

		if (ret != 0) {
			fprintf(stderr, "halo: no process on board %d: %s\n",
				board, gsas_strerror(ret));
			return ret;
		}
	}
	return 0;
}

/* Open the team: with the ranks of a launcher, else as this process was
 * started. */
static int open_team(struct part *p)
{
	uint64_t argument;
	int ret = -ENOENT;

	if (gsas_argument(&argument) == 0) {
		unpack(p, argument);
	} else {
		ret = gsas_team_open("halo", 0, -1, -1, PATIENCE, &p->team);
		if (ret == -ENOENT && start_members(p) != 0)
			return -1;
	}
	if (ret == -ENOENT)
		ret = gsas_team_open("halo", 0, p->me, p->members, PATIENCE,
				     &p->team);
	if (report("gsas_team_open", ret) != 0)
		return ret;
	p->me = gsas_team_index(p->team);
	p->members = gsas_team_members(p->team);
	return 0;
}

/* The number in a text; 0: it is no number from 1 to max. */
static uint64_t number(const char *text, uint64_t max)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	return *end == '\0' && n <= max ? n : 0;
}

int main(int argc, char *argv[])
{
	struct part p = { .members = 4, .count = 1000, .steps = 200 };
	int right;

	if (argc > 1)
		p.members = (int)number(argv[1], MEMBERS_MAX);
	if (argc > 2)
		p.count = number(argv[2], CELLS_MAX);
	if (argc > 3)
		p.steps = number(argv[3], CELLS_MAX);
	if (argc > 4 || p.members == 0 || p.count == 0 || p.steps == 0) {
		fprintf(stderr, "usage: halo [MEMBERS [CELLS [STEPS]]]\n");
		return EXIT_FAILURE;
	}
	if (open_team(&p) != 0)
		return EXIT_FAILURE;
	p.cell = calloc(p.count + 2, WORD);
	right = p.cell != NULL && work(&p);
	free(p.cell);
	if (report("gsas_team_close", gsas_team_close(p.team)) != 0)
		right = 0;
	return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
