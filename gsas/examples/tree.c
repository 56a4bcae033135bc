/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * tree.c - an example of atomic.h: a tree of processes, as section 2.3.5 of the
 * paper (ExaNoDe D3.6) describes it. Each process starts two processes on the
 * next boards, down to some depth, and writes on which board it ran.
 *
 *	tree [DEPTH]		(3: 15 processes)
 *
 * The argument of a process is the address of its word in a page of the root.
 * Its number in the tree follows from the place of that word. The example uses
 * the published calls only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "atomic.h"

#define PAGE_BYTES	4096
#define DEPTH_MAX	7		/* the page has words for no more */
#define PATIENCE	60		/* seconds in which no process ends */
#define NAP		1000		/* microseconds */

/* Words of the page; from NODES on one for each process: 1 + its board. */
enum { COUNT, ENDED, NODES };

/* Number of processes of the tree below and including process n. */
static uint64_t subtree(uint64_t n, uint64_t count)
{
	if (n >= count)
		return 0;
	return 1 + subtree(2 * n + 1, count) + subtree(2 * n + 2, count);
}

/* Start process n. If that fails, count its whole subtree as ended. */
static void start(uint64_t *page, uint64_t n, uint64_t count)
{
	char self[_MAX_FORK_PATH_FILENAME_] = "";
	uint64_t board = n % getNumberBoards();

	if (n >= count)
		return;
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) > 0 &&
	    remoteFork(self, (uint64_t)(page + NODES + n), board) != 0)
		return;
	fprintf(stderr, "tree: no process on board %llu\n",
		(unsigned long long)board);
	FAD64((int64_t *)(page + ENDED), (int64_t)subtree(n, count));
}

static void visit(uint64_t *page, uint64_t n)
{
	uint64_t count = READ64(page + COUNT);

	WRITE64(page + NODES + n, 1 + getBoardPid());
	start(page, 2 * n + 1, count);
	start(page, 2 * n + 2, count);
	FAD64((int64_t *)(page + ENDED), 1);
}

/* Wait until all processes have ended, or none ends for PATIENCE. */
static void await(uint64_t *page, uint64_t count)
{
	uint64_t before = 0, ended;
	long naps = 0;

	while ((ended = READ64(page + ENDED)) != count) {
		naps = ended == before ? naps + 1 : 0;
		before = ended;
		if (naps > PATIENCE * 1000000L / NAP) {
			fprintf(stderr, "tree: a process is lost\n");
			return;
		}
		usleep(NAP);
	}
}

/* Print the board of each process. Returns whether all are right. */
static int check_boards(uint64_t *page, uint64_t count)
{
	uint64_t boards = getNumberBoards();
	int right = 1;

	for (uint64_t n = 0; n < count; n++) {
		uint64_t word = READ64(page + NODES + n);
		uint64_t board = n == 0 ? getBoardPid() : n % boards;

		if (word == 0)
			printf("process %llu: was not there\n",
			       (unsigned long long)n);
		else
			printf("process %llu: board %llu\n",
			       (unsigned long long)n,
			       (unsigned long long)(word - 1));
		right = right && word == 1 + board;
	}
	return right;
}

int main(int argc, char *argv[])
{
	uint64_t argument = readThreadArgument();
	char *end = "";
	unsigned long depth = argc > 1 ? strtoul(argv[1], &end, 0) : 3;
	uint64_t count, *page;
	int right;

	if (argument != _EMPTY_THREAD_ARGUMENT_) {
		page = (uint64_t *)(argument / PAGE_BYTES * PAGE_BYTES);
		visit(page, (uint64_t *)argument - page - NODES);
		return EXIT_SUCCESS;
	}
	if (argc > 2 || *end != '\0' || depth > DEPTH_MAX) {
		fprintf(stderr, "usage: tree [DEPTH], which is 0 to %d\n",
			DEPTH_MAX);
		return EXIT_FAILURE;
	}
	page = allocSharedPage(1, getBoardPid());
	if (page == NULL) {
		fprintf(stderr, "tree: no memory\n");
		return EXIT_FAILURE;
	}
	count = (UINT64_C(1) << (depth + 1)) - 1;
	WRITE64(page + COUNT, count);
	visit(page, 0);
	await(page, count);
	right = check_boards(page, count);
	freeSharedPage(page);
	return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
