/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * os_pair.h - two endpoints of one process and a memory region, for tests of
 * one-sided operations; uses ep_pair.h
 *
 * The provider has four data paths for one-sided operations (enum os_way). All
 * must have the same results, so most tests run once for each path.
 */
#ifndef OS_PAIR_H
#define OS_PAIR_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "lib/ep_pair.h"

enum os_way {
	OS_REQUESTS,			/* requests that the target executes */
	OS_ATTACH,			/* cross-memory attach */
	OS_DMABLE,			/* window of dmable memory */
	OS_SHARED,			/* second mapping of shared memory */
	OS_WAYS
};

/* Returns whether the initiator's CPU loads and stores the memory, also for
 * atomic operations. */
static inline bool os_window(enum os_way way)
{
	return way == OS_DMABLE || way == OS_SHARED;
}

/* Endpoint a, the initiator, and endpoint b with a memory region, the target.
 * The test holds it by value, from os_open() to os_close(). */
struct os_pair {
	struct ep *a, *b;		/* initiator, target */
	fi_addr_t ab, ba;		/* b in a's vector, a in b's */
	struct fid_cntr *wr, *rd;	/* count a's completed writes, reads */
	uint64_t nwr, nrd;		/* writes, reads that a has started;
					 * the test increments them */
	uint8_t *mem;			/* b's memory, registered as mr ... */
	size_t len;			/* ... and its length, bytes */
	struct fid_mr *mr;
	uint64_t base, key;		/* remote address of mem, and its key,
					 * as a uses them */
	enum os_way way;
};

/*
 * Open both endpoints and register len zeroed bytes with all access rights.
 * Except for OS_REQUESTS, a has received the remote key when the function
 * returns, if the provider sends one for this memory.
 */
struct os_pair os_open(enum os_way way, size_t len);
/* os_open() with endpoints of these attributes; both have one mr_mode. */
struct os_pair os_open_as(enum os_way way, size_t len,
			  const struct ep_want *a, const struct ep_want *b);
void os_close(struct os_pair *p);

/* Allocate memory of the kind that a way needs from an endpoint's domain; free
 * it with os_free(). */
void *os_alloc(struct ep *e, enum os_way way, size_t len);
void os_free(struct ep *e, enum os_way way, void *mem);

/* Register memory, with FI_MR_ENDPOINT also bind and enable the region. With
 * FI_MR_PROV_KEY the provider chooses another key. */
struct fid_mr *os_reg(struct ep *e, void *buf, size_t len, uint64_t access,
		      uint64_t key);

/* The number of operations that a has executed directly since os_open(), and
 * the number of requests that it has sent. */
uint64_t os_direct(const struct os_pair *p);
uint64_t os_requests(const struct os_pair *p);
/* Returns whether this machine and the backend offer a way. Cross-memory attach
 * may be forbidden; a backend may have no windows or no second mappings. */
bool os_goes(enum os_way way);
/*
 * os_goes() for a test that runs over several ways and continues with the next.
 * For a way that is not available it prints "skip way_TEST_WAY", once for each
 * test: scripts/check.sh counts these lines, and test/skips.txt must give the
 * reason.
 */
bool os_runs_in(enum os_way way, const char *test);
#define os_runs(way)	os_runs_in(way, __func__)

/* Poll until nwr writes and nrd reads have completed; none may have failed. */
void os_all_done(struct os_pair *p);

#define OS_ALL	(FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE)

#endif /* OS_PAIR_H */
