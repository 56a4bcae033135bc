/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_wire.c - encoding and decoding of packets, byte by byte. The bytes are
 * those of docs/protocol.md and do not change while the version is 6.
 *
 * test_golden.c compares the bytes that endpoints send.
 */
#include "lib/unit.h"
#include "core/unm_wire.h"

static const struct unm_wire_limits host = { 56, 65536, 112 };
static const struct unm_wire_limits exanode = { 24, 16384, 0 };

#define TAG_BYTES	0xf0, 0xde, 0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12
#define TAG		UINT64_C(0x123456789abcdef0)
#define DATA_BYTES	0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x88
#define DATA		UINT64_C(0x8807060504030201)
#define TOKEN_BYTES	0x11, 0x00, 0x00, 0x00, 0x03, 0x00, 0x00, 0x00
#define TOKEN		UINT64_C(0x0000000300000011)
/* offset 0x1040, length 0x2001 */
#define EXTENT_BYTES	0x40, 0x10, 0x00, 0x00, 0x01, 0x20, 0x00, 0x00
/* identity of board 2, interface 7: ignored by the decoder */
#define ID		0x07, 0x00, 0x00, 0x00, 0x02, 0x00

/* Decodes the bytes of a packet as they lie in memory: head, words. */
static int decode(struct unm_wire_msg *m, const uint8_t *bytes, size_t len,
		  const struct unm_wire_limits *lim)
{
	uint64_t head, word[UNM_WIRE_WORDS_MAX] = { 0 };

	assert_true(len >= 8 && len <= 8 + sizeof(word));
	memcpy(&head, bytes, 8);
	memcpy(word, bytes + 8, len - 8);
	memset(m, 0xA5, sizeof(*m));
	return unm_wire_decode(m, head, word, lim);
}

#define DECODE(m, lim, ...) decode(m, (const uint8_t[]){ __VA_ARGS__ }, \
		sizeof((const uint8_t[]){ __VA_ARGS__ }), lim)

/* ---- Numbers --------------------------------------------------------- */

static void test_numbers_are_fixed(void **state)
{
	assert_int_equal(UNM_WIRE_VERSION, 6);
	assert_int_equal(UNM_WIRE_HELLO, 0x01);
	assert_int_equal(UNM_WIRE_CARRIED, 0x02);
	assert_int_equal(UNM_WIRE_INLINE, 0x10);
	assert_int_equal(UNM_WIRE_INLINE_TAGGED, 0x11);
	assert_int_equal(UNM_WIRE_EAGER, 0x12);
	assert_int_equal(UNM_WIRE_EAGER_TAGGED, 0x13);
	assert_int_equal(UNM_WIRE_RTS, 0x14);
	assert_int_equal(UNM_WIRE_RTS_TAGGED, 0x15);
	assert_int_equal(UNM_WIRE_WIDE, 0x16);
	assert_int_equal(UNM_WIRE_WIDE_TAGGED, 0x17);
	assert_int_equal(UNM_WIRE_LONG, 0x18);
	assert_int_equal(UNM_WIRE_LONG_TAGGED, 0x19);
	assert_int_equal(UNM_WIRE_CTS, 0x20);
	assert_int_equal(UNM_WIRE_DATA, 0x21);
	assert_int_equal(UNM_WIRE_FIN, 0x22);
	assert_int_equal(UNM_WIRE_NEXT, 0x23);
	assert_int_equal(UNM_WIRE_PUT, 0x30);
	assert_int_equal(UNM_WIRE_PUT_DATA, 0x31);
	assert_int_equal(UNM_WIRE_ATOMIC, 0x32);
	assert_int_equal(UNM_WIRE_GET, 0x33);
	assert_int_equal(UNM_WIRE_FETCH, 0x34);
	assert_int_equal(UNM_WIRE_COMPARE, 0x35);
	assert_int_equal(UNM_WIRE_PUT_CHECK, 0x36);
	assert_int_equal(UNM_WIRE_GET_CHECK, 0x37);
	assert_int_equal(UNM_WIRE_RESULT, 0x38);
	assert_int_equal(UNM_WIRE_REFUSED, 0x39);
	assert_int_equal(UNM_WIRE_RKEY, 0x3a);
	assert_int_equal(UNM_WIRE_PROBE, 0x3b);
	assert_int_equal(UNM_WIRE_FAULT, 0x01);
	assert_int_equal(UNM_WIRE_ASK_RKEY, 0x40);
	assert_int_equal(UNM_WIRE_MORE, 0x80);
	assert_int_equal(UNM_WIRE_EARLIER, 0x80);
	assert_int_equal(UNM_WIRE_LEN_MASK, 0x3f);
	assert_int_equal(UNM_WIRE_LEN_64, 0x80);
	assert_int_equal(UNM_WIRE_HAS_DATA, 0x40);
	assert_int_equal(UNM_WIRE_TAGGED, 1);
}

static void test_sizes_and_offsets(void **state)
{
	assert_int_equal(sizeof(struct unm_wire_hello), 8);
	assert_int_equal(offsetof(struct unm_wire_hello, version), 0);
	assert_int_equal(offsetof(struct unm_wire_hello, version_min), 2);
	assert_int_equal(offsetof(struct unm_wire_hello, features), 4);
	assert_int_equal(sizeof(struct unm_wire_extent), 8);
	assert_int_equal(offsetof(struct unm_wire_extent, off), 0);
	assert_int_equal(offsetof(struct unm_wire_extent, len), 4);
	assert_int_equal(unm_wire_extent_word(0x1040, 0x2001),
			 UINT64_C(0x0000200100001040));
	assert_int_equal(unm_wire_extent_word(UINT32_MAX, UINT32_MAX),
			 UINT64_MAX);
}

static void test_inline_limits(void **state)
{
	assert_int_equal(unm_wire_inline_max(56, false, false), 56);
	assert_int_equal(unm_wire_inline_max(56, true, false), 48);
	assert_int_equal(unm_wire_inline_max(56, true, true), 40);
	assert_int_equal(unm_wire_inline_max(24, false, false), 24);
	assert_int_equal(unm_wire_inline_max(24, true, true), 8);
	/* at most what the six bits of the length hold */
	assert_int_equal(unm_wire_inline_max(120, false, false), 63);
}

static void test_words_of_each_type(void **state)
{
	static const struct { uint8_t type; int words; } t[] = {
		{ 0x01, 1 }, { 0x02, 2 }, { 0x10, 0 }, { 0x11, 1 },
		{ 0x12, 1 }, { 0x13, 2 }, { 0x14, 3 }, { 0x15, 4 },
		{ 0x16, 0 }, { 0x17, 1 }, { 0x18, 2 }, { 0x19, 3 },
		{ 0x20, 3 }, { 0x21, 2 }, { 0x22, 2 }, { 0x23, 1 },
		{ 0x30, 2 }, { 0x31, 3 }, { 0x32, 3 }, { 0x33, 4 },
		{ 0x34, 4 }, { 0x35, 4 }, { 0x36, 2 }, { 0x37, 4 },
		{ 0x38, 2 }, { 0x39, 2 }, { 0x3a, 8 },
		{ 0x3b, 0 },
	};
	int known = 0;

	for (int type = 0; type < 256; type++) {
		int want = -1;

		for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
			if (t[i].type == type)
				want = t[i].words;
		assert_int_equal(unm_wire_words(type, 0), want);
		known += want >= 0;
		if (type >= 0x10 && type <= 0x19) {
			assert_int_equal(unm_wire_words(type, 0x40), want + 1);
			assert_int_equal(unm_wire_words(type, 0x3e), want);
			assert_int_equal(unm_wire_words(type, 0x01), want +
					 (type / 2 == 0x14 / 2 ? 2 : 0));
		}
		if (type >= 0x30 && type <= 0x37)
			assert_int_equal(unm_wire_words(type, 0x80), want + 1);
		assert_true(unm_wire_words(type, 0xff) <= UNM_WIRE_WORDS_MAX);
	}
	assert_int_equal(known, 28);
	assert_int_equal(unm_wire_words(0x15, 0x40), 5);
	assert_int_equal(unm_wire_words(0x3a, 0), UNM_WIRE_WORDS_MAX);
}

static void test_names(void **state)
{
	for (int type = 0; type < 256; type++) {
		assert_non_null(unm_wire_name(type));
		if (unm_wire_words(type, 0) < 0)
			assert_string_equal(unm_wire_name(type), "unknown");
		else
			assert_string_not_equal(unm_wire_name(type),
						"unknown");
	}
	assert_string_equal(unm_wire_name(0xCA), "unknown");
	assert_string_equal(unm_wire_name(UNM_WIRE_RTS_TAGGED), "rts tagged");
}

/* ---- Golden bytes ---------------------------------------------------- */

static void test_golden_hello(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &exanode, ID, 0x00, 0x01,
				0x02, 0x00, 0x01, 0x00,
				0x78, 0x56, 0x34, 0x12), 0);
	assert_int_equal(m.type, UNM_WIRE_HELLO);
	assert_int_equal(m.hello.version, 2);
	assert_int_equal(m.hello.version_min, 1);
	assert_int_equal(m.hello.features, 0x12345678);
}

static void test_golden_carried(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &exanode, ID, 0x00, 0x02,
				0x40, 0x10, 0x00, 0x00, 0x28, 0x00, 0x00, 0x00,
				0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x40,
				0x15), 0);
	assert_int_equal(m.type, UNM_WIRE_CARRIED);
	assert_int_equal(m.extent.off, 0x1040);
	assert_int_equal(m.extent.len, 40);
	assert_int_equal(m.token, UINT64_C(0x1540000000000000));
}

static void test_golden_inline(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &host, ID, 0x38, 0x10), 0);
	assert_int_equal(m.type, UNM_WIRE_INLINE);
	assert_false(m.has_data);
	assert_int_equal(m.inline_len, 56);
	assert_int_equal(m.inline_word, 0);
	assert_int_equal(m.tag, 0);
	assert_int_equal(m.data, 0);

	assert_int_equal(DECODE(&m, &host, ID, 0x47, 0x10, DATA_BYTES), 0);
	assert_true(m.has_data);
	assert_int_equal(m.inline_len, 7);
	assert_int_equal(m.inline_word, 1);
	assert_int_equal(m.data, DATA);

	assert_int_equal(DECODE(&m, &host, ID, 0x30, 0x11, TAG_BYTES), 0);
	assert_int_equal(m.type, UNM_WIRE_INLINE_TAGGED);
	assert_int_equal(m.inline_len, 48);
	assert_int_equal(m.inline_word, 1);
	assert_int_equal(m.tag, TAG);
	assert_int_equal(m.data, 0);

	assert_int_equal(DECODE(&m, &host, ID, 0x68, 0x11, TAG_BYTES,
				DATA_BYTES), 0);
	assert_int_equal(m.inline_len, 40);
	assert_int_equal(m.inline_word, 2);
	assert_int_equal(m.tag, TAG);
	assert_int_equal(m.data, DATA);
}

static void test_golden_wide(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &host, ID, 0xb0, 0x16), 0);
	assert_int_equal(m.type, UNM_WIRE_WIDE);
	assert_int_equal(m.inline_len, 112);
	assert_int_equal(m.inline_word, 0);

	assert_int_equal(DECODE(&m, &host, ID, 0x69, 0x17, TAG_BYTES,
				DATA_BYTES), 0);
	assert_int_equal(m.type, UNM_WIRE_WIDE_TAGGED);
	assert_int_equal(m.inline_len, 41);
	assert_int_equal(m.inline_word, 2);
	assert_int_equal(m.tag, TAG);
	assert_int_equal(m.data, DATA);
}

/* A wide packet holds what is too long for one slot, and no more than fits two.
 * Without wide packets there is none. */
static void test_wide_lengths_are_checked(void **state)
{
	const uint64_t word[UNM_WIRE_WORDS_MAX] = { 0 };
	struct unm_wire_msg m;

	for (uint64_t type = 0x16; type < 0x18; type++) {
		for (uint64_t flags = 0; flags < 0x100; flags++) {
			uint64_t head = type << 56 | flags << 48;
			unsigned lead = 8 * (type & 1) + (flags & 0x40) / 8;
			unsigned len = unm_wire_wide_len(flags);
			bool ok = len + lead > 56 && len + lead <= 112;

			assert_int_equal(unm_wire_decode(&m, head, word,
							 &host) == 0, ok);
			assert_int_not_equal(unm_wire_decode(&m, head, word,
							     &exanode), 0);
			assert_int_equal(unm_wire_wide_flags(len),
					 flags & ~0x40u);
		}
	}
}

static void test_golden_eager(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x12, EXTENT_BYTES), 0);
	assert_int_equal(m.type, UNM_WIRE_EAGER);
	assert_int_equal(m.extent.off, 0x1040);
	assert_int_equal(m.extent.len, 0x2001);
	assert_int_equal(m.tag, 0);
	assert_false(m.has_data);

	assert_int_equal(DECODE(&m, &host, ID, 0x40, 0x13, TAG_BYTES,
				DATA_BYTES, EXTENT_BYTES), 0);
	assert_int_equal(m.type, UNM_WIRE_EAGER_TAGGED);
	assert_int_equal(m.tag, TAG);
	assert_true(m.has_data);
	assert_int_equal(m.data, DATA);
	assert_int_equal(m.extent.off, 0x1040);
	assert_int_equal(m.extent.len, 0x2001);
}

static void test_golden_long(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x18, 0x02, 0x20, 0, 0, 0,
				0, 0, 0, EXTENT_BYTES), 0);
	assert_int_equal(m.type, UNM_WIRE_LONG);
	assert_int_equal(m.len, 0x2002);
	assert_int_equal(m.extent.off, 0x1040);
	assert_int_equal(m.extent.len, 0x2001);
	assert_int_equal(m.tag, 0);
	assert_false(m.has_data);
	assert_int_equal(DECODE(&m, &host, ID, 0x40, 0x19, TAG_BYTES,
				DATA_BYTES, 0, 0, 1, 0, 0, 0, 0, 0,
				EXTENT_BYTES), 0);
	assert_int_equal(m.type, UNM_WIRE_LONG_TAGGED);
	assert_int_equal(m.tag, TAG);
	assert_int_equal(m.data, DATA);
	assert_int_equal(m.len, 0x10000);
	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x23, EXTENT_BYTES), 0);
	assert_int_equal(m.type, UNM_WIRE_NEXT);
	assert_int_equal(m.extent.off, 0x1040);
	assert_int_equal(m.extent.len, 0x2001);
	/* an empty first piece; no longer than its first piece; longer than a
	 * LONG message */
	assert_int_not_equal(DECODE(&m, &host, ID, 0x00, 0x18, 0x02, 0x20, 0, 0,
				    0, 0, 0, 0, 0x40, 0x10, 0, 0, 0, 0, 0, 0),
			     0);
	assert_int_not_equal(DECODE(&m, &host, ID, 0x00, 0x18, 0x01, 0x20, 0, 0,
				    0, 0, 0, 0, EXTENT_BYTES), 0);
	assert_int_not_equal(DECODE(&m, &host, ID, 0x00, 0x18, 0x01, 0, 1, 0, 0,
				    0, 0, 0, EXTENT_BYTES), 0);
}

static void test_golden_rts(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x14,
				0x01, 0, 0, 0, 0x01, 0, 0, 0, TOKEN_BYTES,
				0x00, 0xf0, 0xff, 0xff, 0xff, 0x7f, 0, 0), 0);
	assert_int_equal(m.type, UNM_WIRE_RTS);
	assert_int_equal(m.len, UINT64_C(0x100000001));
	assert_int_equal(m.token, TOKEN);
	assert_int_equal(m.addr, UINT64_C(0x7ffffffff000));

	assert_int_equal(DECODE(&m, &host, ID, 0x40, 0x15, TAG_BYTES,
				DATA_BYTES, 0, 0, 1, 0, 0, 0, 0, 0,
				TOKEN_BYTES, 0, 0, 0, 0, 0, 0, 0, 0), 0);
	assert_int_equal(m.type, UNM_WIRE_RTS_TAGGED);
	assert_int_equal(m.tag, TAG);
	assert_int_equal(m.data, DATA);
	assert_int_equal(m.len, 65536);
	assert_int_equal(m.token, TOKEN);
	assert_int_equal(m.addr, 0);
	assert_false(m.dmable);

	/* dmable: the address is an offset, and two words of the key follow */
	assert_int_equal(DECODE(&m, &host, ID, 0x01, 0x15, TAG_BYTES,
				0, 0, 1, 0, 0, 0, 0, 0, TOKEN_BYTES,
				0x40, 0, 0, 0, 0, 0, 0, 0,
				1, 2, 3, 4, 5, 6, 7, 8,
				9, 10, 11, 12, 13, 14, 15, 16), 0);
	assert_true(m.dmable);
	assert_int_equal(m.addr, 0x40);
	assert_int_equal(m.mem_key[0], UINT64_C(0x0807060504030201));
	assert_int_equal(m.mem_key[1], UINT64_C(0x100f0e0d0c0b0a09));
}

static void test_golden_control(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x20, TOKEN_BYTES,
				0x22, 0, 0, 0, 5, 0, 0, 0,
				0xff, 0xff, 0, 0, 0, 0, 0, 0), 0);
	assert_int_equal(m.type, UNM_WIRE_CTS);
	assert_int_equal(m.token, TOKEN);
	assert_int_equal(m.peer_token, UINT64_C(0x0000000500000022));
	assert_int_equal(m.len, 0xffff);
	assert_false(m.check);
	assert_int_equal(DECODE(&m, &host, ID, 0x01, 0x20, TOKEN_BYTES,
				0x22, 0, 0, 0, 5, 0, 0, 0,
				0xff, 0xff, 0, 0, 0, 0, 0, 0), 0);
	assert_true(m.check);

	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x21, TOKEN_BYTES,
				EXTENT_BYTES), 0);
	assert_int_equal(m.type, UNM_WIRE_DATA);
	assert_int_equal(m.token, TOKEN);
	assert_int_equal(m.extent.off, 0x1040);
	assert_int_equal(m.extent.len, 0x2001);

	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x22, TOKEN_BYTES,
				5, 0, 0, 0, 0, 0, 0, 0), 0);
	assert_int_equal(m.type, UNM_WIRE_FIN);
	assert_int_equal(m.token, TOKEN);
	assert_int_equal(m.status, 5);
}

/* ---- Refusals -------------------------------------------------------- */

static void test_unknown_types_are_refused(void **state)
{
	uint64_t word[UNM_WIRE_WORDS_MAX] = { 0 };
	struct unm_wire_msg m;

	for (uint64_t type = 0; type < 256; type++) {
		/* one element */
		bool how = type == 0x32 || type == 0x34 || type == 0x35;
		/* 64 bytes */
		uint64_t flags = type == 0x16 || type == 0x17 ? 0x80 : 0;
		int ret;

		/* a length of two bytes, and an extent of one; a valid
		 * status */
		word[0] = type == 0x18 ? 2 : 0;
		word[1] = type == 0x18 ? UINT64_C(1) << 32 :
			type == 0x19 ? 2 : type == 0x39;
		word[2] = how || type == 0x19 ? UINT64_C(1) << 32 : 0;
		ret = unm_wire_decode(&m, type << 56 | flags << 48, word,
				      &host);
		assert_int_equal(ret == 0, unm_wire_words(type, 0) >= 0);
	}
}

static void test_inline_longer_than_the_packet_is_refused(void **state)
{
	const struct unm_wire_limits *const lims[] = { &host, &exanode };
	const uint64_t word[UNM_WIRE_WORDS_MAX] = { 0 };
	struct unm_wire_msg m;

	for (int i = 0; i < 2; i++)
		for (uint64_t type = 0x10; type < 0x12; type++)
			for (uint64_t flags = 0; flags < 0x80; flags++) {
				uint32_t max = unm_wire_inline_max(
					lims[i]->pkt_payload, type & 1,
					flags & 0x40);
				bool ok = (flags & 0x3f) <= max;

				assert_int_equal(unm_wire_decode(&m,
					type << 56 | flags << 48, word,
					lims[i]) == 0, ok);
			}
}

/* docs/protocol.md, section 3: bit 7 is 0, and so is the length of types
 * without inline data; bit 0 is a flag of RTS. */
static void test_reserved_flags_are_refused(void **state)
{
	const uint64_t word[UNM_WIRE_WORDS_MAX] = { 0 };
	struct unm_wire_msg m;

	for (uint64_t type = 0x10; type < 0x16; type++) {
		assert_int_not_equal(unm_wire_decode(&m, type << 56 |
						     UINT64_C(0x80) << 48,
						     word, &host), 0);
		if (type > 0x11)
			for (uint64_t len = type < 0x14 ? 1 : 2; len < 0x40;
			     len++)
				assert_int_not_equal(unm_wire_decode(&m,
					type << 56 | len << 48, word,
					&host), 0);
	}
}

/* The index of the word with the extent, for each type. */
static int extent_word(uint8_t type, uint8_t flags)
{
	switch (type) {
	case UNM_WIRE_CARRIED:
		return 0;
	case UNM_WIRE_DATA:
		return 1;
	default:
		return (type & 1) + !!(flags & 0x40);
	}
}

static void test_extents_out_of_space_are_refused(void **state)
{
	static const uint8_t types[] = { 0x02, 0x12, 0x13, 0x21 };
	static const struct { uint32_t off, len; bool ok; } t[] = {
		{ 0, 0, true }, { 0, 65536, true }, { 65536, 0, true },
		{ 65528, 8, true }, { 65472, 64, true },
		{ 0, 65537, false }, { 8, 65536, false },
		{ 65536, 1, false }, { 65544, 0, false },
		{ UINT32_MAX - 7, 8, false }, { UINT32_MAX - 7, 0, false },
		{ 8, UINT32_MAX - 7, false }, { 0, UINT32_MAX, false },
		{ 0x80000000, 0x80000000, false },
	};
	struct unm_wire_msg m;

	for (size_t i = 0; i < sizeof(types); i++) {
		for (size_t k = 0; k < sizeof(t) / sizeof(t[0]); k++) {
			uint64_t word[UNM_WIRE_WORDS_MAX] = { 0 };
			/* EAGER has a lower bound */
			bool ok = t[k].ok && ((types[i] & ~1) != 0x12 ||
				t[k].len <= UNM_WIRE_EAGER_LIMIT);

			word[extent_word(types[i], 0)] =
				unm_wire_extent_word(t[k].off, t[k].len);
			if ((unm_wire_decode(&m, (uint64_t)types[i] << 56,
					     word, &host) == 0) != ok)
				unit_fail("type 0x%x extent 0x%x+0x%x",
					  types[i], t[k].off, t[k].len);
		}
	}
}

/* Carried words are read in place, so they must be aligned to 8 bytes. */
static void test_crooked_carried_is_refused(void **state)
{
	uint64_t word[UNM_WIRE_WORDS_MAX] = { 0 };
	struct unm_wire_msg m;

	for (uint32_t off = 0; off < 64; off++) {
		word[0] = unm_wire_extent_word(off, 40);
		assert_int_equal(unm_wire_decode(&m, UINT64_C(2) << 56, word,
						 &host) == 0, off % 8 == 0);
	}
}

/* ---- One-sided ------------------------------------------------------- */

#define KEY_BYTES	0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x81
#define KEY		UINT64_C(0x8123456789abcdef)
#define ADDR_BYTES	0x08, 0x10, 0, 0, 0x44, 0, 0, 0
#define ADDR		UINT64_C(0x0000004400001008)
/* sum of 3 doubles */
#define HOW_BYTES	0x02, 0x09, 0, 0, 0x03, 0, 0, 0
#define REST_BYTES	0x00, 0x40, 0, 0, 0, 0, 0, 0

static void test_golden_requests(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &host, ID, 0x05, 0x30, KEY_BYTES,
				ADDR_BYTES), 0);
	assert_int_equal(m.type, UNM_WIRE_PUT);
	assert_true(m.key == KEY && m.addr == ADDR && m.rest == 0);
	assert_true(!m.more && !m.ask_rkey && !m.check);
	assert_true(m.data == 0 && m.earlier == 0);
	assert_int_equal(DECODE(&m, &host, ID, 0xc0, 0x30, KEY_BYTES,
				ADDR_BYTES, REST_BYTES), 0);
	assert_true(m.more && m.ask_rkey && !m.check && m.rest == 0x4000);
	assert_int_equal(DECODE(&m, &host, ID, 0x80, 0x31, KEY_BYTES,
				ADDR_BYTES, DATA_BYTES, REST_BYTES), 0);
	/* the last request of an operation, with the bytes of earlier ones */
	assert_true(m.key == KEY && m.addr == ADDR && m.data == DATA &&
		    m.earlier == 0x4000 && m.rest == 0 && !m.more && !m.check);
	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x31, KEY_BYTES,
				ADDR_BYTES, DATA_BYTES), 0);
	assert_true(m.data == DATA && m.earlier == 0 && m.rest == 0);
	assert_true(!m.more && !m.check);
	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x33, KEY_BYTES,
				ADDR_BYTES, REST_BYTES, TOKEN_BYTES), 0);
	assert_true(m.key == KEY && m.addr == ADDR && m.len == 0x4000 &&
		    m.token == TOKEN && m.rest == 0 && !m.more && !m.check);
	/* a get of the whole range; other ranges follow */
	assert_int_equal(DECODE(&m, &host, ID, 0x80, 0x33, KEY_BYTES,
				ADDR_BYTES, REST_BYTES, TOKEN_BYTES,
				0, 0, 0, 0, 0, 0, 0, 0), 0);
	assert_true(m.more && m.rest == 0 && m.len == 0x4000 && !m.check);
}

static void test_golden_atomics(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &host, ID, 0x18, 0x32, KEY_BYTES,
				ADDR_BYTES, HOW_BYTES), 0);
	assert_true(m.key == KEY && m.addr == ADDR && m.how.op == 2 &&
		    m.how.type == 9 && m.how.count == 3);
	assert_true(m.rest == 0 && !m.more && !m.check);
	for (int type = 0x34; type <= 0x35; type++) {
		assert_int_equal(DECODE(&m, &host, ID, 0x80, type, KEY_BYTES,
					ADDR_BYTES, HOW_BYTES, TOKEN_BYTES,
					REST_BYTES), 0);
		assert_true(m.how.count == 3 && m.token == TOKEN &&
			    m.rest == 0x4000 && m.more && !m.check);
	}
	/* no elements; reserved bits */
	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x32, KEY_BYTES,
				ADDR_BYTES, 2, 9, 0, 0, 0, 0, 0, 0), -EINVAL);
	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x32, KEY_BYTES,
				ADDR_BYTES, 2, 9, 1, 0, 3, 0, 0, 0), -EINVAL);
}

static void test_golden_answers(void **state)
{
	struct unm_wire_msg m;

	assert_int_equal(DECODE(&m, &host, ID, 0x88, 0x38, TOKEN_BYTES,
				13, 0, 0, 0, 0, 0, 0, 0), 0);
	assert_true(m.token == TOKEN && m.status == 13 && m.more);
	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x39, REST_BYTES,
				22, 0, 0, 0, 0, 0, 0, 0), 0);
	assert_true(m.number == 0x4000 && m.status == 22);
	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x39, REST_BYTES,
				0, 0, 0, 0, 0, 0, 0, 0), -EINVAL);
	/* not an fi_errno */
	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x39, REST_BYTES,
				0, 0, 0, 0, 1, 0, 0, 0), -EINVAL);
	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x38, TOKEN_BYTES,
				0, 0, 0, 0x80, 0, 0, 0, 0), -EINVAL);
	assert_int_equal(DECODE(&m, &host, ID, 0x40, 0x38, TOKEN_BYTES,
				0, 0, 0, 0, 0, 0, 0, 0), -EINVAL);
	assert_int_equal(DECODE(&m, &host, ID, 0x00, 0x3a, KEY_BYTES,
				0x32, 0, 0, 0, 7, 0, 0, 0,
				9, 0, 0, 0, 0, 0, 0, 0, ADDR_BYTES,
				REST_BYTES, 0x10, 0, 0, 0, 0, 0, 0, 0,
				TOKEN_BYTES, DATA_BYTES), 0);
	assert_true(m.key == KEY && m.reach == 0x32 && m.region == 7 &&
		    m.epoch == 9 && m.addr == ADDR && m.len == 0x4000 &&
		    m.base == 0x10 && m.mem_key[0] == TOKEN &&
		    m.mem_key[1] == DATA);
	assert_int_equal(m.reach & UNM_REACH_HOW, UNM_REACH_DMABLE);
	assert_true(m.reach & UNM_REACH_WRITE && m.reach & UNM_REACH_READ);
}

UNIT_MAIN(
	cmocka_unit_test(test_numbers_are_fixed),
	cmocka_unit_test(test_sizes_and_offsets),
	cmocka_unit_test(test_inline_limits),
	cmocka_unit_test(test_words_of_each_type),
	cmocka_unit_test(test_names),
	cmocka_unit_test(test_golden_requests),
	cmocka_unit_test(test_golden_atomics),
	cmocka_unit_test(test_golden_answers),
	cmocka_unit_test(test_golden_hello),
	cmocka_unit_test(test_golden_carried),
	cmocka_unit_test(test_golden_inline),
	cmocka_unit_test(test_golden_wide),
	cmocka_unit_test(test_wide_lengths_are_checked),
	cmocka_unit_test(test_golden_eager),
	cmocka_unit_test(test_golden_long),
	cmocka_unit_test(test_golden_rts),
	cmocka_unit_test(test_golden_control),
	cmocka_unit_test(test_unknown_types_are_refused),
	cmocka_unit_test(test_inline_longer_than_the_packet_is_refused),
	cmocka_unit_test(test_reserved_flags_are_refused),
	cmocka_unit_test(test_extents_out_of_space_are_refused),
	cmocka_unit_test(test_crooked_carried_is_refused),
)
