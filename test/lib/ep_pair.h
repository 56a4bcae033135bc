/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ep_pair.h - endpoints of one process, for tests: each has a fabric, a domain,
 * an address vector and a completion queue of its own and shares nothing with
 * the others but the HAL, as if they were in different processes.
 *
 * The provider linked into the test is used, so that a test may look inside.
 * With UNM_TEST_LIBFABRIC=1 it is the one libfabric finds (FI_PROVIDER_PATH);
 * tests that need the inside then skip (EP_NEEDS_INSIDE).
 *
 * Nothing moves unless somebody polls: the helpers below poll all endpoints. As
 * one thread plays all parts, giving the processor away would only let others
 * have it; a test with threads takes that back, see ep_threads().
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
#define EP_VERSION	FI_VERSION(1, 17)

/* A completion as it was read, errors included. */
struct ep_comp {
	void *context;
	uint64_t flags, len, data, tag;
	void *buf;
	fi_addr_t src;
	int err;			/* positive, 0: a good one */
	int prov_errno;
	size_t olen;
};

/* What an endpoint shall be like; all zero: as most tests want it. */
struct ep_want {
	uint64_t caps;			/* 0: all that is offered */
	uint64_t tx_op_flags, rx_op_flags;
	uint64_t cq_flags;		/* FI_SELECTIVE_COMPLETION */
	enum fi_threading threading;	/* 0: FI_THREAD_DOMAIN */
	enum fi_progress progress;	/* of data; 0: any */
	enum fi_cq_format format;	/* 0: FI_CQ_FORMAT_TAGGED */
	enum fi_wait_obj wait;
	enum fi_av_type av_type;	/* 0: FI_AV_TABLE */
	int mr_mode;
	size_t cq_size, av_count;
	bool two_cqs;			/* txcq for sends */
	bool no_txcq, no_rxcq;		/* not bound */
	bool cntrs;			/* txcntr and rxcntr bound */
	bool disabled;			/* fi_enable() is left to the test */
	const char *service;		/* interface to take, by number */
	struct ep *with;		/* use its fabric, domain and vector */
};

struct ep {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;		/* receives; sends too unless two_cqs */
	struct fid_cq *txcq;
	struct fid_cntr *txcntr, *rxcntr;
	struct fid_ep *ep;
	struct ep_want want;
	struct ep_comp *comp;		/* read and not yet asked for */
	size_t ncomp, comp_max;
	bool open;
};

/* Before anything is opened: endpoints yield as they do by default. */
void ep_threads(void);

/* Is the provider linked in (true), or libfabric's? */
bool ep_inside(void);
#define EP_NEEDS_INSIDE()	do { if (!ep_inside()) skip(); } while (0)

/* Opening and closing; a failure fails the test. */
struct ep *ep_open(const struct ep_want *want);
void ep_close(struct ep *e);
/* Its parts, for tests of opening itself: 0 or a negative fi_errno. */
int ep_getinfo(const struct fi_info *hints, struct fi_info **info);
int ep_getinfo_at(const char *node, const char *service, uint64_t flags,
		  const struct fi_info *hints, struct fi_info **info);
int ep_fabric(struct fi_info *info, struct fid_fabric **fabric);
struct fi_info *ep_hints(const struct ep_want *want);
/* cmocka teardown: close what a test left open. */
int ep_teardown(void **state);
#define EP_TEST(f)	cmocka_unit_test_teardown(f, ep_teardown)

/* Put the address of one into the vector of another. */
fi_addr_t ep_insert(struct ep *into, struct ep *whose);

struct ep_pair {
	struct ep *a, *b;
	fi_addr_t ab, ba;		/* b in a's vector, a in b's */
};
/* Two, each in the other's vector at different indices. */
struct ep_pair ep_pair(const struct ep_want *want);

/* ---- Time ------------------------------------------------------------ */

uint64_t ep_now(void);			/* us */
uint64_t ep_deadline(void);		/* now and a generous while */
/* The test fails if the deadline has passed. */
void ep_in_time(uint64_t deadline, const char *what);
/* For so long, and often enough even if another process takes the core. */
#define EP_FOR_US(us)							\
	for (uint64_t for_n = 0, for_end = ep_now() + (us);		\
	     for_n < 200 || ep_now() < for_end; for_n++)

/* ---- Completions ----------------------------------------------------- */

/* Read what its queues hold; returns completions read. */
int ep_poll(struct ep *e);
/* The same for every endpoint. */
void ep_step(void);
/* Poll all until nothing can be on its way any more. */
void ep_settle(void);
/* Oldest completion of a context that was read: taken out. */
bool ep_take(struct ep *e, const void *context, struct ep_comp *c);
/* Poll all until it comes. */
struct ep_comp ep_wait(struct ep *e, const void *context);
/* Poll all until any comes: the oldest. */
struct ep_comp ep_next(struct ep *e);
/* Poll all, then the test fails if a completion is left. */
void ep_quiet(struct ep *e);
/* A good completion of that context, of a send or of a receive. */
void ep_sent(struct ep *e, const void *context);
struct ep_comp ep_received(struct ep *e, const void *context);

/* Call until it is not refused for the moment, polling all. */
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

/* Poll all until it is so. */
#define EP_UNTIL(cond)	do {						\
		uint64_t until_end = ep_deadline();			\
		while (!(cond)) {					\
			ep_step();					\
			ep_in_time(until_end, #cond);			\
		}							\
	} while (0)

#endif /* EP_PAIR_H */
