/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_wire.c - any bytes as a packet: what is accepted must lie within packet
 * and receive space, and nothing beyond the words promised may be read.
 *
 * For libFuzzer: clang -fsanitize=fuzzer,address -DUNM_LIBFUZZER. In make check
 * it runs over random inputs, the same in every run; FUZZ_RUNS says how many.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "unm_wire.h"

#define MUST(cond) do {							\
		if (!(cond)) {						\
			fprintf(stderr, "head %016llx: %s\n",		\
				(unsigned long long)head, #cond);	\
			abort();					\
		}							\
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void check_extent(uint64_t head, const struct unm_wire_msg *m,
			 const struct unm_wire_limits *lim)
{
	MUST((uint64_t)m->extent.off + m->extent.len <= lim->space_bytes);
}

static void check(uint64_t head, const struct unm_wire_msg *m, int words,
		  const struct unm_wire_limits *lim)
{
	MUST(words >= 0 && words <= UNM_WIRE_WORDS_MAX);
	MUST(m->type == head >> 56);
	switch (m->type) {
	case UNM_WIRE_INLINE:
	case UNM_WIRE_INLINE_TAGGED:
		MUST(m->inline_word == words);
		MUST(8u * m->inline_word + m->inline_len <= lim->pkt_payload);
		break;
	case UNM_WIRE_CARRIED:
		MUST(m->extent.off % 8 == 0);
		check_extent(head, m, lim);
		break;
	case UNM_WIRE_EAGER:
	case UNM_WIRE_EAGER_TAGGED:
	case UNM_WIRE_DATA:
		check_extent(head, m, lim);
		break;
	default:
		break;
	}
	if (m->type >= UNM_WIRE_INLINE && m->type <= UNM_WIRE_RTS_TAGGED &&
	    !(m->type & UNM_WIRE_TAGGED))
		MUST(m->tag == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct unm_wire_limits lims[] = {
		{ 56, 65536 }, { 24, 16384 }, { 24, 8 },
	};
	uint64_t all[1 + UNM_WIRE_WORDS_MAX] = { 0 }, head, *word;

	memcpy(all, bytes, len < sizeof(all) ? len : sizeof(all));
	head = all[0];
	for (int i = 0; i < 3; i++) {
		int n = unm_wire_words(head >> 56, (uint8_t)(head >> 48));
		struct unm_wire_msg m;

		/* exactly the words promised: one more is caught by ASan */
		word = malloc(n > 0 ? 8 * (size_t)n : 1);
		if (word == NULL)
			abort();
		if (n > 0)
			memcpy(word, all + 1, 8 * (size_t)n);
		if (unm_wire_decode(&m, head, word, &lims[i]) == 0)
			check(head, &m, n, &lims[i]);
		unm_wire_name(head >> 56);
		free(word);
	}
	return 0;
}

#ifndef UNM_LIBFUZZER
/* Mostly of known types, and with numbers near what is allowed. */
static void invent(uint64_t *in, uint64_t *rng)
{
	static const uint8_t types[] = {
		0x01, 0x02, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x20, 0x21,
		0x22, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x38, 0x39, 0x3a,
		0xCA,
	};
	static const uint32_t edges[] = {
		0, 1, 7, 8, 24, 56, 63, 64, 16383, 16384, 16385, 65535, 65536,
		65537, 0x7fffffff, 0x80000000, 0xffffffff,
	};

	for (int i = 0; i < 1 + UNM_WIRE_WORDS_MAX; i++)
		in[i] = unit_random(rng);
	if (unit_below(rng, 8) != 0)
		in[0] = (in[0] & ~(UINT64_C(0xff) << 56)) |
			(uint64_t)types[unit_below(rng, sizeof(types))] << 56;
	for (int i = 1; i < 1 + UNM_WIRE_WORDS_MAX; i++)
		if (unit_below(rng, 4) != 0)
			in[i] = (uint64_t)edges[unit_below(rng, 17)] << 32 |
				edges[unit_below(rng, 17)];
}

int main(void)
{
	const char *env = getenv("FUZZ_RUNS");
	long runs = env != NULL ? strtol(env, NULL, 0) :
		UNIT_SLOW ? 300000 : 3000000;
	uint64_t in[1 + UNM_WIRE_WORDS_MAX], rng = 7;

	for (long i = 0; i < runs; i++) {
		invent(in, &rng);
		LLVMFuzzerTestOneInput((const uint8_t *)in,
				       unit_below(&rng, sizeof(in) + 1));
		LLVMFuzzerTestOneInput((const uint8_t *)in, sizeof(in));
	}
	return 0;
}
#endif
