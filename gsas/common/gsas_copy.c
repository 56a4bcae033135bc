/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_copy.c - copies to and from memory that other threads or processes
 * access at the same time. Part of gsasd and of libgsas.
 *
 * Each aligned word of up to 8 bytes is read or written at once. Moves of 16
 * bytes keep this rule: x86 processors do not split an aligned MOVDQA inside
 * one of its halves of 8 bytes, and LDP and STP are two accesses of 8 bytes.
 */
#include <string.h>

#include "common/gsas_copy.h"

typedef uint16_t word16 __attribute__((may_alias));
typedef uint32_t word32 __attribute__((may_alias));
typedef uint64_t word64 __attribute__((may_alias));

/* Sanitizers do not see accesses by assembler code, so builds for them use the
 * loop over words. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define PAIRS	0
#elif defined(__x86_64__)
#define PAIRS	1

typedef uint64_t pair64 __attribute__((vector_size(16), may_alias));

static inline void load_pair(void *dst, const void *shared)
{
	pair64 pair;

	__asm__ volatile("movdqa %1, %0" : "=x"(pair)
			 : "m"(*(const pair64 *)shared));
	memcpy(dst, &pair, sizeof(pair));
}

static inline void store_pair(void *shared, const void *src)
{
	pair64 pair;

	memcpy(&pair, src, sizeof(pair));
	__asm__ volatile("movdqa %1, %0" : "=m"(*(pair64 *)shared)
			 : "x"(pair));
}
#elif defined(__aarch64__)
#define PAIRS	1

struct pair64 {
	uint64_t low, high;
} __attribute__((may_alias));

static inline void load_pair(void *dst, const void *shared)
{
	struct pair64 pair;

	__asm__ volatile("ldp %0, %1, %2" : "=&r"(pair.low), "=r"(pair.high)
			 : "Q"(*(const struct pair64 *)shared));
	memcpy(dst, &pair, sizeof(pair));
}

static inline void store_pair(void *shared, const void *src)
{
	struct pair64 pair;

	memcpy(&pair, src, sizeof(pair));
	__asm__ volatile("stp %1, %2, %0" : "=Q"(*(struct pair64 *)shared)
			 : "r"(pair.low), "r"(pair.high));
}
#else
#define PAIRS	0
#endif

#if !PAIRS				/* defined, but never called */
static inline void load_pair(void *dst, const void *shared)
{
	(void)dst;
	(void)shared;
}

static inline void store_pair(void *shared, const void *src)
{
	(void)shared;
	(void)src;
}
#endif

#define PAIR	(2 * sizeof(uint64_t))

/* True: the address is aligned to 16 bytes and at least 16 bytes follow, so
 * pairs of words can be moved. */
static inline int is_pair(const void *shared, uint64_t len)
{
	return PAIRS && (uintptr_t)shared % PAIR == 0 && len >= PAIR;
}

/* Size in bytes of the largest aligned word that begins here, len at most. */
static inline uint64_t word_at(const void *shared, uint64_t len)
{
	uint64_t size = sizeof(uint64_t);

	while ((uintptr_t)shared % size != 0 || size > len)
		size /= 2;
	return size;
}

#define LOAD(T)	do {							\
		T word = __atomic_load_n((const T *)shared,		\
					 __ATOMIC_RELAXED);		\
		memcpy(dst, &word, sizeof(word));			\
	} while (0)

static inline void load(void *dst, const void *shared, uint64_t size)
{
	switch (size) {
	case 8:
		LOAD(word64);
		break;
	case 4:
		LOAD(word32);
		break;
	case 2:
		LOAD(word16);
		break;
	default:
		LOAD(uint8_t);
		break;
	}
}

#define STORE(T) do {							\
		T word;							\
		memcpy(&word, src, sizeof(word));			\
		__atomic_store_n((T *)shared, word, __ATOMIC_RELAXED);	\
	} while (0)

static inline void store(void *shared, const void *src, uint64_t size)
{
	switch (size) {
	case 8:
		STORE(word64);
		break;
	case 4:
		STORE(word32);
		break;
	case 2:
		STORE(word16);
		break;
	default:
		STORE(uint8_t);
		break;
	}
}

void gsas_copy_from_shared(void *dst, const void *shared, uint64_t len)
{
	const uint8_t *from = shared, *end = from + len;
	uint8_t *to = dst;

	while (from < end) {
		uint64_t size = word_at(from, (uint64_t)(end - from));

		if (is_pair(from, (uint64_t)(end - from))) {
			for (; end - from >= 16; from += 16, to += 16)
				load_pair(to, from);
			continue;
		}
		if (!PAIRS && size == sizeof(uint64_t)) {
			for (; end - from >= 8; from += 8, to += 8)
				load(to, from, 8);
			continue;
		}
		load(to, from, size);
		from += size;
		to += size;
	}
}

void gsas_copy_to_shared(void *shared, const void *src, uint64_t len)
{
	uint8_t *to = shared, *end = to + len;
	const uint8_t *from = src;

	while (to < end) {
		uint64_t size = word_at(to, (uint64_t)(end - to));

		if (is_pair(to, (uint64_t)(end - to))) {
			for (; end - to >= 16; from += 16, to += 16)
				store_pair(to, from);
			continue;
		}
		if (!PAIRS && size == sizeof(uint64_t)) {
			for (; end - to >= 8; from += 8, to += 8)
				store(to, from, 8);
			continue;
		}
		store(to, from, size);
		from += size;
		to += size;
	}
}
