/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_cntr_value.h - completion counters: the values that operations count up.
 * api/unm_cntr.c reads them. */
#ifndef UNM_CNTR_VALUE_H
#define UNM_CNTR_VALUE_H

#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/fi_eq.h>

#include "core/unm_domain_state.h"
#include "core/unm_idle.h"
#include "core/unm_obj.h"
#include "core/unm_wake.h"
#include "util/unm_list.h"

struct unm_cntr {
	struct fid_cntr fid;
	struct unm_domain *domain;
	struct unm_ref ref;
	_Atomic uint64_t value;		/* changed under the domain's lock */
	_Atomic uint64_t errors;
	uint32_t nworks;		/* works that wait for it */
	void (*moved)(struct unm_cntr *cntr);	/* set with the first of them:
						 * unm_trigger_moved() */
	bool of_all;			/* moved by any endpoint: by work, or
					 * accesses to a region */
	struct unm_wait wait;
	struct unm_list in_domain;	/* of_all: domain->cntrs */
	pid_t owner;			/* who opened it, not a child */
	uint64_t seen, seen_errors;	/* by who reads, whichever thread:
					 * fi_trywait() */
	struct unm_list works;		/* by threshold: unm_trigger.c */
	struct unm_list eps;		/* endpoints to progress */
	struct unm_idle idle;
};

/* Somebody sleeps on it, or work waits for it. */
void unm_cntr_moved(struct unm_cntr *cntr);

/* Count; the domain is locked. Orders nothing. */
static inline void unm_cntr_tick(struct unm_cntr *cntr, _Atomic uint64_t *word,
				 uint64_t n)
{
	uint64_t was = atomic_load_explicit(word, memory_order_relaxed);

	atomic_store_explicit(word, was + n, memory_order_relaxed);
	if (__builtin_expect((cntr->nworks | cntr->wait.wanted) != 0, 0))
		unm_cntr_moved(cntr);
}

static inline void unm_cntr_add(struct unm_cntr *cntr, uint64_t n)
{
	unm_cntr_tick(cntr, &cntr->value, n);
}

static inline void unm_cntr_add_err(struct unm_cntr *cntr, uint64_t n)
{
	unm_cntr_tick(cntr, &cntr->errors, n);
}

static inline uint64_t unm_cntr_get(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

/* Has it moved since it was read? The domain is locked. */
static inline bool unm_cntr_news(const struct unm_cntr *cntr)
{
	return unm_cntr_get(&cntr->value) != cntr->seen ||
		unm_cntr_get(&cntr->errors) != cntr->seen_errors;
}

/* What moves it: its endpoints, or any, if work or a region does. */
static inline struct unm_list *unm_cntr_eps(struct unm_cntr *cntr)
{
	return cntr->of_all ? &cntr->domain->eps : &cntr->eps;
}

static inline struct unm_cntr *unm_cntr(struct fid_cntr *fid)
{
	return (struct unm_cntr *)fid;
}

/* Is it a counter of that domain? */
static inline bool unm_cntr_of(struct unm_domain *domain, struct fid_cntr *cntr)
{
	return cntr != NULL && cntr->fid.fclass == FI_CLASS_CNTR &&
		unm_cntr(cntr)->domain == domain;
}

#endif /* UNM_CNTR_VALUE_H */
