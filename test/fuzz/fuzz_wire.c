/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_wire.c - fuzz target: arbitrary bytes as a packet
 *
 * unm_wire_decode() must accept only messages that lie within the packet and
 * the receive space, and must not read beyond the words that unm_wire_words()
 * returned.
 */
#include "core/unm_wire.h"

#include "fuzz.h"

static void check_extent(const struct unm_wire_msg *m,
			 const struct unm_wire_limits *lim)
{
	MUST((uint64_t)m->extent.off + m->extent.len <= lim->space_bytes);
}

static void check(uint64_t head, const struct unm_wire_msg *m, int words,
		  const struct unm_wire_limits *lim)
{
	MUST(words >= 0 && words <= UNM_WIRE_WORDS_MAX);
	MUST(m->type == head >> 56 ||
	     (m->check && m->type == (head >> 56 == UNM_WIRE_PUT_CHECK ?
				      UNM_WIRE_PUT : UNM_WIRE_GET)));
	switch (m->type) {
	case UNM_WIRE_INLINE:
	case UNM_WIRE_INLINE_TAGGED:
		MUST(m->inline_word == words);
		MUST(8u * m->inline_word + m->inline_len <= lim->pkt_payload);
		break;
	case UNM_WIRE_WIDE:
	case UNM_WIRE_WIDE_TAGGED:
		MUST(m->inline_word == words);
		MUST(8u * m->inline_word + m->inline_len > lim->pkt_payload);
		MUST(8u * m->inline_word + m->inline_len <= lim->pkt_wide);
		break;
	case UNM_WIRE_CARRIED:
		MUST(m->extent.off % 8 == 0);
		check_extent(m, lim);
		break;
	case UNM_WIRE_EAGER:
	case UNM_WIRE_EAGER_TAGGED:
	case UNM_WIRE_DATA:
	case UNM_WIRE_NEXT:
		check_extent(m, lim);
		break;
	case UNM_WIRE_LONG:
	case UNM_WIRE_LONG_TAGGED:
		MUST(m->extent.len != 0 && m->extent.len < m->len &&
		     m->len <= UNM_WIRE_LONG_LIMIT);
		check_extent(m, lim);
		break;
	default:
		break;
	}
	if (m->type >= UNM_WIRE_INLINE && m->type <= UNM_WIRE_LONG_TAGGED &&
	    !(m->type & UNM_WIRE_TAGGED))
		MUST(m->tag == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct unm_wire_limits lims[] = {
		{ 56, 65536, 112 }, { 24, 16384, 0 }, { 24, 8, 0 },
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
