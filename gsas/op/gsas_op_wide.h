/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op_wide.h - atomic access to 16 aligned bytes, where the machine has it.
 *
 * By instruction, not by the compiler's builtins: those call a library that may
 * decide for a lock of its own, unseen by other processes, and what they become
 * depends on flags. Who may execute directly has to be agreed by all.
 */
#ifndef GSAS_OP_WIDE_H
#define GSAS_OP_WIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef unsigned __int128 gsas_w128 __attribute__((may_alias));

enum {
	GSAS_WIDE_CAS	= 1,		/* gsas_wide_cas() works */
	GSAS_WIDE_LOAD	= 2,		/* and a load needs no store */
	GSAS_WIDE_ASKED	= 4,		/* the answer is known */
};

/* What this machine has: the processor is asked once. Thread-safe. */
int gsas_op_wide(void);

/* What gsas_op_wide() found, and GSAS_WIDE_ASKED; 0: not asked yet. A test
 * stores here what another machine has. */
extern atomic_int g_gsas_op_wide;

#if defined(__SANITIZE_THREAD__)
#define GSAS_WIDE_TSAN	1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GSAS_WIDE_TSAN	1
#endif
#endif

/* ThreadSanitizer does not see what instructions of ours do. */
#ifdef GSAS_WIDE_TSAN
#include <sanitizer/tsan_interface.h>
#define gsas_wide_before(p)	__tsan_release(p)
#define gsas_wide_after(p)	__tsan_acquire(p)
#else
#define gsas_wide_before(p)	((void)(p))
#define gsas_wide_after(p)	((void)(p))
#endif

#if defined(__x86_64__)

static inline bool gsas_wide_swap(gsas_w128 *p, uint64_t old[2],
				  const uint64_t want[2])
{
	bool done;

	__asm__ volatile("lock cmpxchg16b %1"
			 : "=@ccz"(done), "+m"(*p), "+a"(old[0]), "+d"(old[1])
			 : "b"(want[0]), "c"(want[1]) : "memory");
	return done;
}

/*
 * Atomic on every processor that has AVX (the manuals of Intel and AMD say so),
 * in this encoding as well. No store passes it: ours are locked.
 */
static inline void gsas_wide_pair(const gsas_w128 *p, uint64_t value[2])
{
	__asm__ volatile("movdqa (%1), %%xmm0\n\tmovdqu %%xmm0, (%0)"
			 : : "r"(value), "r"(p) : "xmm0", "memory");
}

#elif defined(__aarch64__)

/* A pair that was loaded was there at once only if the store succeeds: so what
 * differs is stored back. Old processors have this, new ones CASP beside it. */
static inline bool gsas_wide_swap(gsas_w128 *p, uint64_t old[2],
				  const uint64_t want[2])
{
	uint64_t low, high, to_low, to_high;
	uint32_t failed;
	bool done;

	__asm__ volatile("1:	ldaxp	%0, %1, [%5]\n"
			 "	cmp	%0, %6\n"
			 "	ccmp	%1, %7, #0, eq\n"
			 "	csel	%2, %8, %0, eq\n"
			 "	csel	%3, %9, %1, eq\n"
			 "	stlxp	%w4, %2, %3, [%5]\n"
			 "	cbnz	%w4, 1b\n"
			 : "=&r"(low), "=&r"(high), "=&r"(to_low),
			   "=&r"(to_high), "=&r"(failed)
			 : "r"(p), "r"(old[0]), "r"(old[1]), "r"(want[0]),
			   "r"(want[1])
			 : "cc", "memory");
	done = low == old[0] && high == old[1];
	old[0] = low;
	old[1] = high;
	return done;
}

#endif

#if defined(__x86_64__) || defined(__aarch64__)

/* Strong. old: what was there, also if it is what was expected. */
static inline bool gsas_wide_cas(gsas_w128 *p, gsas_w128 *old, gsas_w128 want)
{
	uint64_t was[2], to[2];
	bool done;

	memcpy(was, old, sizeof(was));
	memcpy(to, &want, sizeof(to));
	gsas_wide_before(p);
	done = gsas_wide_swap(p, was, to);
	gsas_wide_after(p);
	memcpy(old, was, sizeof(was));
	return done;
}

static inline gsas_w128 gsas_wide_load(gsas_w128 *p)
{
	gsas_w128 value = 0;

#if defined(__x86_64__)
	if (gsas_op_wide() & GSAS_WIDE_LOAD) {
		uint64_t pair[2];

		gsas_wide_pair(p, pair);
		gsas_wide_after(p);
		memcpy(&value, pair, sizeof(value));
		return value;
	}
#endif
	/* stores what is there */
	gsas_wide_cas(p, &value, value);
	return value;
}

#else	/* never called: gsas_op_wide() is 0 */

static inline bool gsas_wide_cas(gsas_w128 *p, gsas_w128 *old, gsas_w128 want)
{
	*old = *p;
	*p = want;
	return true;
}

static inline gsas_w128 gsas_wide_load(gsas_w128 *p)
{
	return *p;
}

#endif

#endif /* GSAS_OP_WIDE_H */
