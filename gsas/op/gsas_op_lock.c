/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op_lock.c - operations that no instruction of the processor can do
 * atomically. Only one process, the owner of the memory, executes them, and
 * locks exclude its threads from each other.
 *
 * The locks are private to the process, so they end with it. Each lock is for
 * every STRIPES-th line of 64 bytes. An element is in one line or in two
 * adjacent ones, so one or two locks are taken, in the order of their index.
 * Elements that overlap share at least one lock.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "op/gsas_op_lock.h"

#define LINE	64			/* bytes */
#define STRIPES	16

static struct {
	_Alignas(LINE) pthread_mutex_t mutex;
} stripe[STRIPES] = {
	[0 ... STRIPES - 1] = { PTHREAD_MUTEX_INITIALIZER },
};

_Static_assert(GSAS_STEP_MAX <= LINE, "an element is in at most two lines");

struct span {
	size_t low, high;		/* indices in stripe[], may be equal */
};

static struct span span_lock(const void *target, size_t size)
{
	size_t first = (uintptr_t)target / LINE % STRIPES;
	size_t last = ((uintptr_t)target + size - 1) / LINE % STRIPES;
	struct span span = {
		.low = first < last ? first : last,
		.high = first < last ? last : first,
	};

	pthread_mutex_lock(&stripe[span.low].mutex);
	if (span.high != span.low)
		pthread_mutex_lock(&stripe[span.high].mutex);
	return span;
}

static void span_unlock(struct span span)
{
	if (span.high != span.low)
		pthread_mutex_unlock(&stripe[span.high].mutex);
	pthread_mutex_unlock(&stripe[span.low].mutex);
}

void gsas_op_locked(const struct gsas_step *step, size_t count, void *target,
		    const void *operand, const void *compare, void *result)
{
	unsigned char old[GSAS_STEP_MAX];
	size_t size = step->size;

	for (size_t i = 0; i < count; i++) {
		void *at = (unsigned char *)target + i * size;
		struct span span = span_lock(at, size);

		/* result may be operand, so it is written last */
		memcpy(old, at, size);
		step->fn(at, operand, compare, i);
		span_unlock(span);
		if (result != NULL)
			memcpy((unsigned char *)result + i * size, old, size);
	}
}
