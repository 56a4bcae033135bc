/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_op_wide.h - atomic access to 16 aligned bytes, where the machine has it.
 *
 * The accesses are assembler code, not builtins of the compiler. The builtins
 * depend on compiler flags, and may call a library that uses a lock, which
 * other processes do not see. But all processes must agree on which operations
 * are executed directly.
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
	GSAS_WIDE_LOAD	= 2,		/* gsas_wide_load() does not store */
	GSAS_WIDE_ASKED	= 4,		/* in g_gsas_op_wide: it is set */
};

/* The accesses that this machine has: GSAS_WIDE_CAS, GSAS_WIDE_LOAD or 0.
 * Thread-safe. */
int gsas_op_wide(void);

/* The result of gsas_op_wide() and GSAS_WIDE_ASKED; 0: not known yet. A test
 * stores here the value of another machine. */
extern atomic_int g_gsas_op_wide;

#if defined(__SANITIZE_THREAD__)
#define GSAS_WIDE_TSAN	1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define GSAS_WIDE_TSAN	1
#endif
#endif

/* ThreadSanitizer does not see accesses by assembler code. */
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
 * MOVDQA is atomic on every processor that has AVX (manuals of Intel and AMD),
 * in this encoding as well. It does not pass earlier stores of operations,
 * because these are locked instructions.
 */
static inline void gsas_wide_pair(const gsas_w128 *p, uint64_t value[2])
{
	__asm__ volatile("movdqa (%1), %%xmm0\n\tmovdqu %%xmm0, (%0)"
			 : : "r"(value), "r"(p) : "xmm0", "memory");
}

#elif defined(__aarch64__)

/* A load of a pair was atomic only if the store after it succeeds, so the value
 * is stored back if it is not the expected one. CASP would be simpler, but only
 * newer processors have it. */
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

/* Strong compare-and-swap. *old: the expected value; afterwards the value
 * before, also on success. */
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
	/* stores the same value back */
	gsas_wide_cas(p, &value, value);
	return value;
}

#else	/* never called, because gsas_op_wide() is 0 */

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
