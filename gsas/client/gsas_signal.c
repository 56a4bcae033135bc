/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_signal.c - gsas_wait_until(): waits for a word to change; and
 * gsas_put_signal(): puts data, then changes a word.
 *
 * A service does not notify clients of changed words. So a wait reads the word
 * again and again, by the short path or by requests: first without a pause,
 * then giving up the processor, then with sleeps that grow with the time
 * waited. In between, requests of the thread make progress.
 */
#include <errno.h>
#include <time.h>

#include "client/gsas_progress.h"
#include "client/gsas_signal.h"
#include "client/gsas_thread.h"
#include "common/gsas_pkt.h"
#include "op/gsas_op.h"
#include "util/unm_clock.h"
#include "util/unm_yield.h"

#define YIELDS		256		/* reads with a yield before a sleep */
#define SLEEP_MIN_NS	20000		/* first sleep */
#define SLEEP_MAX_NS	1000000		/* longest sleep */

/* ---- Waiting ------------------------------------------------------------- */

static bool holds(enum gsas_compare compare, uint64_t word, uint64_t value)
{
	switch (compare) {
	case GSAS_EQ:
		return word == value;
	case GSAS_NE:
		return word != value;
	case GSAS_LT:
		return word < value;
	case GSAS_LE:
		return word <= value;
	case GSAS_GT:
		return word > value;
	default:
		return word >= value;
	}
}

void gsas_sleep_step(uint32_t sleeps, uint64_t now, uint64_t deadline)
{
	uint64_t ns = sleeps < 6 ? (uint64_t)SLEEP_MIN_NS << sleeps :
		SLEEP_MAX_NS;
	struct timespec ts;

	if (deadline != 0 && deadline < now + ns)
		ns = deadline > now ? deadline - now : 0;
	ts = (struct timespec){ .tv_nsec = (long)ns };
	nanosleep(&ts, NULL);
}

/* After so many reads in vain. */
static void pause_step(struct gsas_thread *t, uint32_t reads, uint64_t now,
		       uint64_t deadline)
{
	if (reads < t->yield.spin)
		return;
	gsas_thread_progress(t);
	if (now >= t->next_events)
		gsas_thread_events(t);
	if (reads < t->yield.spin + YIELDS)
		gsas_yielded(&t->yield, unm_yield());
	else
		gsas_sleep_step(reads - t->yield.spin - YIELDS, now, deadline);
}

int gsas_wait_word(gsas_addr addr, enum gsas_compare compare, uint64_t value,
		   uint64_t deadline, uint64_t *seen)
{
	struct gsas_thread *t;
	uint64_t word, now;
	int ret = gsas_thread_get(&t);

	for (uint32_t reads = 0; ret == 0; reads++) {
		ret = gsas_read64(addr, &word);
		if (ret != 0)
			break;
		if (holds(compare, word, value)) {
			if (seen != NULL)
				*seen = word;
			return 0;
		}
		now = unm_now_ns();
		if (deadline != 0 && now >= deadline)
			ret = -FI_EAGAIN;
		else
			pause_step(t, reads, now, deadline);
	}
	return ret;
}

int gsas_wait_until(gsas_addr addr, enum gsas_compare compare, uint64_t value,
		    int ms, uint64_t *seen)
{
	uint64_t end = ms < 0 ? 0 : unm_now_ns() + (uint64_t)ms * 1000000;
	int ret;

	if (ms < -1 || (unsigned)compare > GSAS_GE)
		return -FI_EINVAL;
	ret = gsas_wait_word(addr, compare, value, end, seen);
	return ret == -FI_EAGAIN ? -FI_ETIMEDOUT : ret;
}

/* ---- Data, then a signal ------------------------------------------------- */

int gsas_put_signal(gsas_addr dst, const void *src, size_t len,
		    gsas_addr signal, enum gsas_op op, uint64_t value)
{
	int ret;

	if ((unsigned)op >= GSAS_OPS ||
	    !gsas_op_valid(op, GSAS_TYPE_UINT64, GSAS_FORM_UPDATE))
		return -FI_ENOSYS;
	if (gsas_board_of(dst) != gsas_board_of(signal))
		return -FI_EINVAL;
	/* The put has been executed when the call returns, so the update needs
	 * no other order: also not if only one of both pages is mapped. */
	ret = gsas_put(dst, src, len);
	if (ret != 0)
		return ret;
	/* The update releases the bytes of the put: see gsas_op_apply in
	 * docs/memory-ordering.md. */
	return gsas_atomic(signal & -(uint64_t)sizeof(value), op,
			   GSAS_TYPE_UINT64, GSAS_FORM_UPDATE, 1, &value, NULL,
			   NULL);
}
