/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * os_pair.h - one-sided operations between two endpoints of a test, each way
 * there is: by requests the target executes, by cross-memory attach, through
 * dmable memory, through a second mapping of shared memory. What comes out is
 * the same.
 */
#ifndef OS_PAIR_H
#define OS_PAIR_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "lib/ep_pair.h"

enum os_way { OS_REQUESTS, OS_ATTACH, OS_DMABLE, OS_SHARED, OS_WAYS };

/* Does a processor access the memory itself, atomics too? */
static inline bool os_window(enum os_way way)
{
	return way == OS_DMABLE || way == OS_SHARED;
}

struct os_pair {
	struct ep *a, *b;		/* a accesses memory of b */
	fi_addr_t ab, ba;
	struct fid_cntr *wr, *rd;	/* a's own writes and reads */
	uint64_t nwr, nrd;		/* that it began */
	uint8_t *mem;			/* b's region ... */
	size_t len;
	struct fid_mr *mr;
	uint64_t base, key;		/* of its first byte, for a */
	enum os_way way;
};

/* Both endpoints and a region of len bytes of all rights, zeroed; the route to
 * it is known where there is one. */
struct os_pair os_open(enum os_way way, size_t len);
/* The same with endpoints as they are wanted, of one mr_mode. */
struct os_pair os_open_as(enum os_way way, size_t len,
			  const struct ep_want *a, const struct ep_want *b);
void os_close(struct os_pair *p);

/* Memory of b's domain for that way; goes with os_free(). */
void *os_alloc(struct ep *e, enum os_way way, size_t len);
void os_free(struct ep *e, enum os_way way, void *mem);

/* Ready for use; with FI_MR_PROV_KEY its key is another one. */
struct fid_mr *os_reg(struct ep *e, void *buf, size_t len, uint64_t access,
		      uint64_t key);

/* What a did without b since os_open(), and how many requests it sent. */
uint64_t os_direct(const struct os_pair *p);
uint64_t os_requests(const struct os_pair *p);
/* Can this way be gone here? Attach may be forbidden; of dmable memory that is
 * not seen through windows ordinary memory is no other end. */
bool os_goes(enum os_way way);
/*
 * The same for a test of several ways, which goes on with the others: a way
 * that cannot be gone is a skip named "way_" test "_" way, once each, which
 * scripts/check.sh counts and test/skips.txt has to explain.
 */
bool os_runs_in(enum os_way way, const char *test);
#define os_runs(way)	os_runs_in(way, __func__)

/* Every operation begun is done, without an error. */
void os_all_done(struct os_pair *p);

#define OS_ALL	(FI_REMOTE_READ | FI_REMOTE_WRITE | FI_READ | FI_WRITE)

#endif /* OS_PAIR_H */
