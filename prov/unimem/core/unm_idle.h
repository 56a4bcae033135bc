/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_idle.h - polling in vain: when to give the processor away.
 *
 * Each object that an application polls (queue, counter) counts for itself.
 * Spin a little, then sched_yield(): more ranks than cores is the normal case
 * and needs no setting. The yield comes after the domain's lock is released,
 * hence atomics; they order nothing.
 */
#ifndef UNM_IDLE_H
#define UNM_IDLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct unm_idle {
	_Atomic uint32_t polls;		/* empty ones in a row */
	_Atomic uint32_t spin;		/* of these before a yield */
	_Atomic uint32_t quick;		/* yields that gave nothing to anyone */
};

static inline uint32_t unm_idle_get(const _Atomic uint32_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static inline void unm_idle_set(_Atomic uint32_t *word, uint32_t val)
{
	atomic_store_explicit(word, val, memory_order_relaxed);
}

/* Polled in vain long enough that a yield, or a sleep, is worth its price? */
static inline bool unm_idle_long(const struct unm_idle *idle)
{
	return unm_idle_get(&idle->polls) > unm_idle_get(&idle->spin);
}

/* Give the processor away. No lock is held. */
void unm_yield(struct unm_idle *idle);

#endif /* UNM_IDLE_H */
