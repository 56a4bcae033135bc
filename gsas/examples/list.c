/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * list.c - an example of atomic.h: pointers to shared memory that are stored in
 * shared memory. An array of arrays, one on each board, as in section 2.4.2 of
 * the paper (ExaNoDe D3.6), and a list through all boards to which several
 * processes add nodes at the same time.
 *
 *	list [PROCESSES [NODES]]	(4, 200 each)
 *
 * The example uses the published calls only.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "atomic.h"

#define PAGE_WORDS	512
#define PATIENCE	60		/* seconds in which nothing is added */
#define NAP		1000		/* microseconds */

/* Words of the common page; from ARRAYS on the addresses of the arrays, one for
 * each board. */
enum { HEAD, NODES, BOARDS, NUMBER, ENDED, ARRAYS };
/* A node of the list: two words of an array. */
enum { NEXT, VALUE, NODE_WORDS };

/*
 * Take the next free node of a board's array. The first word of the array
 * counts the nodes taken. In local memory, array would be *(arrays + board).
 */
static uint64_t *new_node(uint64_t **arrays, uint64_t board)
{
	uint64_t *array = (uint64_t *)READ64((uint64_t *)(arrays + board));
	uint64_t nodes = (uint64_t)FAD64((int64_t *)array, 1);

	return array + (nodes + 1) * NODE_WORDS;
}

/* Push a node onto the head of the list, by compare-and-swap. */
static void push(uint64_t *page, uint64_t *node, uint64_t value)
{
	uint64_t first;

	WRITE64(node + VALUE, value);
	do {
		first = READ64(page + HEAD);
		WRITE64(node + NEXT, first);
	} while (!CAS64(page + HEAD, first, (uint64_t)node));
}

/* The work of a process that was started by remoteFork(). Its number decides
 * its values, so no two processes add the same value. */
static void work(uint64_t *page)
{
	uint64_t nodes = READ64(page + NODES), boards = READ64(page + BOARDS);
	uint64_t me = (uint64_t)FAD64((int64_t *)(page + NUMBER), 1);
	uint64_t **arrays = (uint64_t **)(page + ARRAYS);

	for (uint64_t i = 0; i < nodes; i++)
		push(page, new_node(arrays, (me + i) % boards), me * nodes + i);
	FAD64((int64_t *)(page + ENDED), 1);
}

/* Allocate the common page and the arrays. Allocated memory is zero. The array
 * of a board without memory is NULL. */
static uint64_t *set_up(uint64_t boards, uint64_t processes, uint64_t nodes)
{
	/* a process takes at most nodes / boards + 1 nodes of each array; the
	 * first node's place holds the count */
	uint64_t most = processes * (nodes / boards + 1) + 1;
	uint64_t pages = (most * NODE_WORDS - 1) / PAGE_WORDS + 1;
	uint64_t *page;

	if (pages > UINT16_MAX)
		return NULL;
	page = allocSharedPage((uint16_t)((ARRAYS + boards) / PAGE_WORDS + 1),
			       getBoardPid());
	if (page == NULL)
		return NULL;
	WRITE64(page + NODES, nodes);
	WRITE64(page + BOARDS, boards);
	for (uint64_t b = 0; b < boards; b++)
		WRITE64(page + ARRAYS + b,
			(uint64_t)allocSharedPage((uint16_t)pages, b));
	return page;
}

static void tear_down(uint64_t *page, uint64_t boards)
{
	for (uint64_t b = 0; b < boards; b++) {
		void *array = (void *)READ64(page + ARRAYS + b);

		if (array != NULL)
			freeSharedPage(array);
	}
	freeSharedPage(page);
}

/* Start processes on the boards in turn. Returns how many were started. */
static uint64_t start(uint64_t *page, uint64_t boards, uint64_t processes)
{
	char self[_MAX_FORK_PATH_FILENAME_] = "";

	for (uint64_t b = 0; b < boards; b++)
		if (READ64(page + ARRAYS + b) == 0) {
			fprintf(stderr, "list: no memory on board %llu\n",
				(unsigned long long)b);
			return 0;
		}
	if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) {
		perror("list: /proc/self/exe");
		return 0;
	}
	for (uint64_t i = 0; i < processes; i++)
		if (remoteFork(self, (uint64_t)page, i % boards) == 0) {
			fprintf(stderr, "list: no process on board %llu\n",
				(unsigned long long)(i % boards));
			return i;
		}
	return processes;
}

/* Wait until all processes have ended, or no node is added for PATIENCE. */
static void await(uint64_t *page, uint64_t started)
{
	uint64_t before = 0, head;
	long naps = 0;

	while (READ64(page + ENDED) != started) {
		head = READ64(page + HEAD);
		naps = head == before ? naps + 1 : 0;
		before = head;
		if (naps > PATIENCE * 1000000L / NAP) {
			fprintf(stderr, "list: a process is lost\n");
			return;
		}
		usleep(NAP);
	}
}

/* Walk the list. Returns whether each value is in it once. */
static int check_list(uint64_t *page, uint64_t count)
{
	char *seen = calloc(count, 1);
	uint64_t found = 0, wrong = 0;
	uint64_t *node = (uint64_t *)READ64(page + HEAD);

	if (seen == NULL)
		return 0;
	/* a circular list has values twice, so the loop ends there too */
	for (; node != NULL && wrong == 0;
	     node = (uint64_t *)READ64(node + NEXT)) {
		uint64_t value = READ64(node + VALUE);

		if (value >= count || seen[value]++)
			wrong++;
		else
			found++;
	}
	free(seen);
	printf("%llu of %llu nodes found, %llu wrong\n",
	       (unsigned long long)found, (unsigned long long)count,
	       (unsigned long long)wrong);
	return found == count && wrong == 0;
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
	uint64_t processes = argc > 1 ? number(argv[1]) : 4;
	uint64_t nodes = argc > 2 ? number(argv[2]) : 200;
	uint64_t boards, *page, started;
	int right = 0;

	if (argument != _EMPTY_THREAD_ARGUMENT_) {
		work((uint64_t *)argument);
		return EXIT_SUCCESS;
	}
	if (argc > 3 || processes == 0 || nodes == 0) {
		fprintf(stderr, "usage: list [PROCESSES [NODES]]\n");
		return EXIT_FAILURE;
	}
	boards = getNumberBoards();
	page = set_up(boards, processes, nodes);
	if (page == NULL) {
		fprintf(stderr, "list: no memory\n");
		return EXIT_FAILURE;
	}
	started = start(page, boards, processes);
	if (started > 0) {
		await(page, started);
		right = check_list(page, processes * nodes);
	}
	tear_down(page, boards);
	return right ? EXIT_SUCCESS : EXIT_FAILURE;
}
