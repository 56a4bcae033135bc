/* SPDX-License-Identifier: BSD-2-Clause */
/* gsas_copy.c - to and from memory that others access: part of the service and
 * of the client library. */
#include <string.h>

#include "gsas_copy.h"

typedef uint16_t word16 __attribute__((may_alias));
typedef uint32_t word32 __attribute__((may_alias));
typedef uint64_t word64 __attribute__((may_alias));

/* Bytes of the largest aligned word here. */
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

		if (size == sizeof(uint64_t)) {
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

		if (size == sizeof(uint64_t)) {
			for (; end - to >= 8; from += 8, to += 8)
				store(to, from, 8);
			continue;
		}
		store(to, from, size);
		from += size;
		to += size;
	}
}
