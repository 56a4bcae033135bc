/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counter.c - an example of atomic.h: one counter on each board, and processes
 * on all boards that add to every counter. The sums must be exact.
 *
 *	counter [PROCESSES [ADDITIONS]]		(8, 10000)
 *
 * The first process starts PROCESSES further ones by remoteFork(). Their
 * argument is the address of a page with the numbers that they need. The
 * example uses the published calls only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "atomic.h"

#define PAGE_WORDS	512
#define PATIENCE	60		/* seconds in which no process adds */
#define NAP		1000		/* microseconds */

/* Words of the common page; from COUNTERS on the addresses of the counters, one
 * for each board. */
enum { ADDITIONS, BOARDS, ENDED, COUNTERS };

static uint64_t *counter(uint64_t *page, uint64_t board)
{
	return (uint64_t *)READ64(page + COUNTERS + board);
}

/* The work of a process that was started by remoteFork(). */
static void work(uint64_t *page)
{
	uint64_t additions = READ64(page + ADDITIONS);
	uint64_t boards = READ64(page + BOARDS);

	for (uint64_t b = 0; b < boards; b++) {
		int64_t *there = (int64_t *)counter(page, b);

		for (uint64_t i = 0; i < additions; i++)
			FAD64(there, 1);
	}
	FAD64((int64_t *)(page + ENDED), 1);
}

/* Allocate the common page and the counters. Allocated memory is zero, so the
 * counters begin at 0. The counter of a board without memory is NULL. */
static uint64_t *set_up(uint64_t boards, uint64_t additions)
{
	uint64_t pages = (COUNTERS + boards) / PAGE_WORDS + 1;
	uint64_t *page = allocSharedPage((uint16_t)pages, getBoardPid());

	if (page == NULL)
		return NULL;
	WRITE64(page + ADDITIONS, additions);
	WRITE64(page + BOARDS, boards);
	for (uint64_t b = 0; b < boards; b++)
		WRITE64(page + COUNTERS + b, (uint64_t)allocSharedPage(1, b));
	return page;
}

static void tear_down(uint64_t *page, uint64_t boards)
{
	for (uint64_t b = 0; b < boards; b++)
		if (counter(page, b) != NULL)
			freeSharedPage(counter(page, b));
	freeSharedPage(page);
}

/* Start processes on the boards in turn. Returns how many were started. */
static uint64_t start(uint64_t *page, uint64_t boards, uint64_t processes)
{
	char self[_MAX_FORK_PATH_FILENAME_] = "";

	for (uint64_t b = 0; b < boards; b++)
		if (counter(page, b) == NULL) {
			fprintf(stderr, "counter: no memory on board %llu\n",
				(unsigned long long)b);
			return 0;
		}
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
		perror("counter: /proc/self/exe");
		return 0;
	}
	for (uint64_t i = 0; i < processes; i++)
		if (remoteFork(self, (uint64_t)page, i % boards) == 0) {
			fprintf(stderr, "counter: no process on board %llu\n",
				(unsigned long long)(i % boards));
			return i;
		}
	return processes;
}

static uint64_t total(uint64_t *page, uint64_t boards)
{
	uint64_t sum = 0;

	for (uint64_t b = 0; b < boards; b++)
		sum += READ64(counter(page, b));
	return sum;
}

/* Wait until all processes have ended, or no counter changes for PATIENCE. */
static void await(uint64_t *page, uint64_t boards, uint64_t started)
{
	uint64_t before = 0, sum;
	long naps = 0;

	while (READ64(page + ENDED) != started) {
		sum = total(page, boards);
		naps = sum == before ? naps + 1 : 0;
		before = sum;
		if (naps > PATIENCE * 1000000L / NAP) {
			fprintf(stderr, "counter: a process is lost\n");
			return;
		}
		usleep(NAP);
	}
}

/* Print the sums. Returns whether they are right. */
static int check_sums(uint64_t *page, uint64_t boards, uint64_t expected)
{
	int right = 1;

	for (uint64_t b = 0; b < boards; b++) {
		uint64_t sum = READ64(counter(page, b));

		printf("board %llu: %llu of %llu\n", (unsigned long long)b,
		       (unsigned long long)sum, (unsigned long long)expected);
		right = right && sum == expected;
	}
	return right;
}

/* The number in a text; 0: it is not a number. */
static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	return *end == '\0' ? n : 0;
}

int main(int argc, char *argv[])
{
	uint64_t argument = readThreadArgument();
	uint64_t processes = argc > 1 ? number(argv[1]) : 8;
	uint64_t additions = argc > 2 ? number(argv[2]) : 10000;
	uint64_t boards, *page, started;
	int right = 0;

	if (argument != _EMPTY_THREAD_ARGUMENT_) {
		work((uint64_t *)argument);
		return EXIT_SUCCESS;
	}
	if (argc > 3 || processes == 0 || additions == 0) {
		fprintf(stderr, "usage: counter [PROCESSES [ADDITIONS]]\n");
		return EXIT_FAILURE;
	}
	boards = getNumberBoards();
	page = set_up(boards, additions);
	if (page == NULL) {
		fprintf(stderr, "counter: no memory\n");
		return EXIT_FAILURE;
	}
	started = start(page, boards, processes);
	if (started > 0) {
		await(page, boards, started);
		right = check_sums(page, boards, processes * additions);
	}
	tear_down(page, boards);
	return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
