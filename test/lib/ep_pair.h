/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ep_pair.h - open and poll several endpoints in one process, for tests
 *
 * Each endpoint has a fabric, a domain, an address vector and a completion
 * queue of its own. Endpoints share only the HAL, as if they were in different
 * processes.
 *
 * A test uses the provider that is linked into the test program, so that it may
 * read the provider's structures. With UNM_TEST_LIBFABRIC=1 a test uses the
 * provider that libfabric loads (FI_PROVIDER_PATH); tests that read structures
 * are then skipped (EP_TEST_INSIDE).
 *
 * Endpoints progress manually, so the functions below poll all open endpoints.
 * They never yield the processor, because one thread polls every endpoint: a
 * test with several threads calls ep_threads() first.
 */
#ifndef EP_PAIR_H
#define EP_PAIR_H

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>

#include "lib/unit.h"

#define EP_MAX		16
#define EP_ALLOCS	16		/* calls of ep_alloc() in a test */
#define EP_VERSION	FI_VERSION(1, 17)

/* A completion, or an error completion, as read from a queue of any format. */
struct ep_comp {
	void *context;
	uint64_t flags, len, data, tag;
	void *buf;
	fi_addr_t src;			/* source; FI_ADDR_NOTAVAIL: an error */
	int err;			/* positive fi_errno; 0: success */
	int prov_errno;			/* valid if err is not 0 */
	size_t olen;			/* bytes truncated; valid likewise */
};

/* The attributes of an endpoint for ep_open(); a field that is 0 selects the
 * default in its comment. */
struct ep_want {
	uint64_t caps;			/* 0: all that the provider offers */
	uint64_t tx_op_flags, rx_op_flags;
	uint64_t cq_flags;		/* FI_SELECTIVE_COMPLETION */
	enum fi_threading threading;	/* 0: FI_THREAD_DOMAIN */
	enum fi_progress progress;	/* data progress; 0: any */
	enum fi_cq_format format;	/* 0: FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj wait;
	enum fi_av_type av_type;	/* 0: FI_AV_TABLE */
	int mr_mode;
	size_t cq_size, av_count;
	bool two_cqs;			/* bind txcq for sends */
	bool no_txcq, no_rxcq;		/* bind no queue for sends, receives */
	bool cntrs;			/* bind txcntr and rxcntr */
	bool disabled;			/* the test calls fi_enable() */
	const char *service;		/* number of the interface to use */
	struct ep *with;		/* endpoint whose fabric, domain and
					 * address vector are used */
};

/*
 * An endpoint and the objects that it needs. ep_open() takes an instance from a
 * table of EP_MAX; it is valid until ep_close() or the test's teardown. The
 * main thread of the test uses it.
 */
struct ep {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;		/* receives; sends too unless two_cqs */
	struct fid_cq *txcq;		/* sends, if want.two_cqs */
	struct fid_cntr *txcntr, *rxcntr;	/* if want.cntrs */
	struct fid_ep *ep;
	struct ep_want want;		/* attributes given to ep_open() */
	struct ep_comp *comp;		/* completions read from the queues and
					 * not yet taken by the test, oldest
					 * first */
	size_t ncomp, comp_max;		/* completions in comp; its size */
	bool open;			/* this entry of the table is in use */
};

/* Let endpoints yield the processor, as they do by default. Call before the
 * first endpoint is opened. */
void ep_threads(void);
/* UNIT_MAIN() that calls ep_threads() first. */
#define EP_THREADS_MAIN(...)						\
	int main(void)							\
	{								\
		const struct CMUnitTest tests[] = { __VA_ARGS__ };	\
									\
		ep_threads();						\
		return unit_run(tests);					\
	}

/* Returns whether the test uses the provider that is linked in (true) or the
 * one that libfabric loads. */
bool ep_inside(void);
#define EP_NEEDS_INSIDE()	unit_needs(ep_inside())
/* Calls the test *state, or skips it unless ep_inside(). */
void ep_test_inside(void **state);

/* Open an endpoint with these attributes (NULL: all defaults). The test fails
 * if that fails. */
struct ep *ep_open(const struct ep_want *want);
/* Close an endpoint, after those that use its domain (ep_want.with). The test
 * fails if an object cannot be closed. */
void ep_close(struct ep *e);
/* The calls that ep_open() starts with, for tests of these calls: fi_getinfo()
 * and fi_fabric() of the provider under test. Return 0 or a negative
 * fi_errno. */
int ep_getinfo(const struct fi_info *hints, struct fi_info **info);
int ep_getinfo_at(const char *node, const char *service, uint64_t flags,
		  const struct fi_info *hints, struct fi_info **info);
int ep_fabric(struct fi_info *info, struct fid_fabric **fabric);
/* The hints for an endpoint with these attributes; the caller frees them. */
struct fi_info *ep_hints(const struct ep_want *want);
/* cmocka teardown: close the endpoints that a test left open, then free the
 * memory of ep_alloc(). */
int ep_teardown(void **state);
/* Allocate zeroed memory, which ep_teardown() frees. */
void *ep_alloc(size_t bytes);
#define EP_TEST(f)	cmocka_unit_test_teardown(f, ep_teardown)
/* As EP_TEST(), for a test that reads the provider's structures. */
#define EP_TEST_INSIDE(f)						\
	{ #f, ep_test_inside, NULL, ep_teardown, (void *)f }

/* Insert the address of one endpoint into the address vector of another. */
fi_addr_t ep_insert(struct ep *into, struct ep *whose);

/* Two endpoints. The caller holds it by value, and closes a and b or leaves
 * that to ep_teardown(). */
struct ep_pair {
	struct ep *a, *b;
	fi_addr_t ab, ba;		/* b in a's vector, a in b's */
};
/* Open two endpoints with these attributes (NULL: all defaults), each in the
 * other's address vector, at different indices. */
struct ep_pair ep_pair(const struct ep_want *want);
/* Close both, a first. */
void ep_pair_close(struct ep_pair *p);

/* Is a message that is not injected sent by rendezvous, so that its sender
 * needs the receiver? By the environment, for 8 bytes, for 256 to 4096, and for
 * more than 16384. */
bool ep_rendezvous(size_t len);
/* Close objects, each a struct fid *, in this order. The test fails if one is
 * still in use. */
#define EP_CLOSE(...)	do {						\
		struct fid *const close_fid[] = { __VA_ARGS__ };	\
		for (size_t close_i = 0; close_i < sizeof(close_fid) /	\
		     sizeof(close_fid[0]); close_i++)			\
			assert_int_equal(fi_close(close_fid[close_i]), 0); \
	} while (0)

/* ---- Time ------------------------------------------------------------ */

uint64_t ep_now(void);			/* monotonic clock, microseconds */
uint64_t ep_deadline(void);		/* the time at which a wait that starts
					 * now counts as a hang */
/* Fail the test, naming what it waits for, if the deadline has passed. */
void ep_in_time(uint64_t deadline, const char *what);
/* Loop for a time in microseconds, and at least 200 times: another process may
 * occupy the processor meanwhile. */
#define EP_FOR_US(us)							\
	for (uint64_t for_n = 0, for_end = ep_now() + (us);		\
	     for_n < 200 || ep_now() < for_end; for_n++)

/* ---- Completions ----------------------------------------------------- */

/* Read each queue of an endpoint once, at most 8 entries, into e->comp. Returns
 * the number of completions read. */
int ep_poll(struct ep *e);
/* ep_poll() for each enabled endpoint. */
void ep_step(void);
/* Poll all endpoints long enough for every packet in flight to be handled. */
void ep_settle(void);
/* Remove the oldest completion of a context from e->comp. Returns false if
 * there is none. */
bool ep_take(struct ep *e, const void *context, struct ep_comp *c);
/* Poll all endpoints until the completion of a context was read; remove it. */
struct ep_comp ep_wait(struct ep *e, const void *context);
/* Poll all endpoints until any completion was read; remove the oldest. */
struct ep_comp ep_next(struct ep *e);
/* Poll all endpoints as ep_settle() does, then fail if a completion is left. */
void ep_quiet(struct ep *e);
void ep_pair_quiet(struct ep_pair *p);
/* ep_wait() for the completion of a send or of a receive, which must not be an
 * error. */
void ep_sent(struct ep *e, const void *context);
struct ep_comp ep_received(struct ep *e, const void *context);

/* Repeat a call while it returns -FI_EAGAIN, polling all endpoints; the value
 * is what the call returned last. */
#define EP_TRY(call)	__extension__ ({				\
		uint64_t try_end = ep_deadline();			\
		ssize_t try_ret;					\
		while ((try_ret = (call)) == -FI_EAGAIN) {		\
			ep_step();					\
			ep_in_time(try_end, #call);			\
		}							\
		try_ret;						\
	})
#define EP_OK(call)	assert_int_equal(EP_TRY(call), 0)

/* Poll all endpoints until a condition holds. */
#define EP_UNTIL(cond)	do {						\
		uint64_t until_end = ep_deadline();			\
		while (!(cond)) {					\
			ep_step();					\
			ep_in_time(until_end, #cond);			\
		}							\
	} while (0)

#endif /* EP_PAIR_H */
