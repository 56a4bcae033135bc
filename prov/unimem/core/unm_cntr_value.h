/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_cntr_value.h - completion counters: the values that operations increment.
 * api/unm_cntr.c has the calls of fi_cntr(3), which read them.
 */
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

/* A counter, from fi_cntr_open() to fi_close(). Fields are protected by the
 * domain's lock; value and errors may be read without it. */
struct unm_cntr {
	struct fid_cntr fid;
	struct unm_domain *domain;
	struct unm_ref ref;		/* endpoints, regions, deferred work */
	_Atomic uint64_t value;		/* successful operations */
	_Atomic uint64_t errors;	/* failed operations */
	uint32_t nworks;		/* deferred operations that wait for
					 * the counter */
	void (*changed)(struct unm_cntr *cntr);	/* called when the value
						 * changes, if nworks is not 0:
						 * unm_trigger_cntr_changed() */
	bool of_all;			/* any endpoint of the domain may
					 * increment it: for deferred work, or
					 * for accesses to a region */
	struct unm_wait wait;		/* wait object of fi_cntr_wait() and
					 * fi_trywait() */
	struct unm_list in_domain;	/* of_all: in domain->cntrs */
	pid_t owner;			/* process that opened it, not a forked
					 * child */
	uint64_t seen, seen_errors;	/* value, errors when the application
					 * last read them, for fi_trywait() */
	struct unm_list works;		/* deferred operations by threshold,
					 * owned by trigger/unm_trigger.c */
	struct unm_list eps;		/* endpoints bound to the counter */
	struct unm_idle idle;		/* empty polls */
};

/* Slow path of unm_cntr_tick(): wake the sleepers, and start deferred work
 * whose threshold is reached. */
void unm_cntr_moved(struct unm_cntr *cntr);

/* Add n to the value or the errors. The domain is locked. Relaxed: a reader
 * must not conclude anything about other memory. */
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

/* True if the counter has changed since the application last read it. The
 * domain is locked. */
static inline bool unm_cntr_changed(const struct unm_cntr *cntr)
{
	return unm_cntr_get(&cntr->value) != cntr->seen ||
		unm_cntr_get(&cntr->errors) != cntr->seen_errors;
}

/* The endpoints whose progress may increment the counter. */
static inline struct unm_list *unm_cntr_eps(struct unm_cntr *cntr)
{
	return cntr->of_all ? &cntr->domain->eps : &cntr->eps;
}

static inline struct unm_cntr *unm_cntr(struct fid_cntr *fid)
{
	return (struct unm_cntr *)fid;
}

/* True if cntr is a counter of this domain. cntr may be NULL or another object.
 */
static inline bool unm_cntr_of(struct unm_domain *domain, struct fid_cntr *cntr)
{
	return cntr != NULL && cntr->fid.fclass == FI_CLASS_CNTR &&
		unm_cntr(cntr)->domain == domain;
}

#endif /* UNM_CNTR_VALUE_H */
