/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_idle.h - decides when a thread that polls without success yields its
 * processor (unm_idle.c).
 *
 * Each object that an application polls (queue, counter) counts its own empty
 * polls. After a few of them the thread calls sched_yield(), because more ranks
 * than cores are a normal case that must work without a setting. The yield
 * takes place after the domain's lock was released; the fields are therefore
 * atomic, but order nothing.
 */
#ifndef UNM_IDLE_H
#define UNM_IDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Empty polls of one object. */
struct unm_idle {
	_Atomic uint32_t polls;		/* empty polls in a row */
	_Atomic uint32_t spin;		/* empty polls before a yield */
	_Atomic uint32_t quick;		/* yields in a row for which no other
					 * thread was waiting */
};

static inline uint32_t unm_idle_get(const _Atomic uint32_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void unm_idle_set(_Atomic uint32_t *word, uint32_t val)
{
	atomic_store_explicit(word, val, memory_order_relaxed);
}

/* True after so many empty polls that a yield or a sleep is worth its cost. */
static inline bool unm_idle_long(const struct unm_idle *idle)
{
	return unm_idle_get(&idle->polls) > unm_idle_get(&idle->spin);
}

/* True if other threads wait for the processor: yields took long lately. */
static inline bool unm_idle_shared(const struct unm_idle *idle)
{
	return unm_idle_get(&idle->spin) == 0;
}

/* Yield the processor, and adapt idle->spin to whether a thread waited for it.
 * The caller holds no lock. */
void unm_idle_yield(struct unm_idle *idle);

#endif /* UNM_IDLE_H */
