/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_published.c - the calls of atomic.h, the interface as published [D 2.3],
 * by calls of gsas.h.
 *
 * "In case that addr is an invalid pointer, application exits abnormally": by
 * exit(EXIT_FAILURE), after one line on stderr, so that buffered output of the
 * program is still written.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_errno.h>

#define GSAS_ATOMIC_FUNCTIONS
#include "atomic.h"
#include "gsas.h"

static const char *reason(int ret)
{
	switch (ret) {
	case -FI_EFAULT:
		return "nothing was ever allocated there";
	case -ESTALE:
		return "freed";
	case -FI_EACCES:
		return "belongs to another job";
	case -FI_EPERM:
		return "not on a page that may be mapped";
	case -FI_ECONNRESET:
		return "the atomic service of its board ended";
	case -FI_ECONNREFUSED:
		return "its board has no atomic service";
	default:
		return strerror(-ret);
	}
}

static void check(int ret, const char *name, const volatile void *addr)
{
	if (__builtin_expect(ret >= 0, 1))
		return;
	fprintf(stderr, "%s: 0x%016" PRIxPTR ": %s\n", name, (uintptr_t)addr,
		reason(ret));
	exit(EXIT_FAILURE);
}

static gsas_addr number(const volatile void *addr)
{
	return (uintptr_t)addr;
}

uint64_t getNumberBoards(void)
{
	int boards = gsas_boards();

	check(boards, "getNumberBoards", NULL);
	return (uint64_t)boards;
}

uint64_t getBoardPid(void)
{
	int board = gsas_board();

	check(board, "getBoardPid", NULL);
	return (uint64_t)board;
}

void *allocSharedPage(uint16_t quantity, uint64_t bid)
{
	const char *pages = getenv("GSAS_PAGES");
	bool mapped = pages != NULL && strcmp(pages, "mapped") == 0;
	gsas_addr addr;

	if (bid > INT_MAX ||
	    gsas_alloc(quantity, (int)bid, mapped ? GSAS_MAPPED : GSAS_JOB,
		       NULL, &addr) != 0)
		return NULL;
	return (void *)(uintptr_t)addr;
}

uint64_t freeSharedPage(void *addr)
{
	check(gsas_free(number(addr)), "freeSharedPage", addr);
	return 0;
}

char READ8(char *addr)
{
	uint8_t value = 0;

	check(gsas_read8(number(addr), &value), "READ8", addr);
	return (char)value;
}

uint32_t READ32(uint64_t *addr)
{
	uint32_t value = 0;

	check(gsas_read32(number(addr), &value), "READ32", addr);
	return value;
}

uint64_t READ64(uint64_t *addr)
{
	uint64_t value = 0;

	check(gsas_read64(number(addr), &value), "READ64", addr);
	return value;
}

uint64_t READ4K(void *addr, char *buffer)
{
	check(gsas_read4k(number(addr), buffer), "READ4K", addr);
	return GSAS_PAGE;
}

void WRITE8(char *addr, char val)
{
	check(gsas_write8(number(addr), (uint8_t)val), "WRITE8", addr);
}

void WRITE32(uint32_t *addr, uint32_t val)
{
	check(gsas_write32(number(addr), val), "WRITE32", addr);
}

void WRITE64(uint64_t *addr, uint64_t val)
{
	check(gsas_write64(number(addr), val), "WRITE64", addr);
}

void WRITE128(uint64_t *addr, uint64_t val[2])
{
	check(gsas_write128(number(addr), val), "WRITE128", addr);
}

uint64_t CAS64(uint64_t *addr, uint64_t old_val, uint64_t new_val)
{
	int done = gsas_cas64(number(addr), old_val, new_val, NULL);

	check(done, "CAS64", addr);
	return (uint64_t)done;
}

int64_t FAD64(int64_t *addr, int64_t val)
{
	int64_t was = 0;

	check(gsas_fad64(number(addr), val, &was), "FAD64", addr);
	return was;
}

uint64_t SWAP64(uint64_t *addr, uint64_t val)
{
	uint64_t was = 0;

	check(gsas_swap64(number(addr), val, &was), "SWAP64", addr);
	return was;
}

uint64_t remoteFork(char *filename, uint64_t arg, uint64_t bid)
{
	uint64_t pid = 0;

	/* readThreadArgument() returns this value if there is no argument */
	if (arg == _EMPTY_THREAD_ARGUMENT_)
		return 0;
	if (bid > INT_MAX || gsas_fork(filename, arg, (int)bid, &pid) != 0)
		return 0;
	return pid;
}

uint64_t readThreadArgument(void)
{
	uint64_t arg;

	return gsas_argument(&arg) == 0 ? arg : _EMPTY_THREAD_ARGUMENT_;
}
