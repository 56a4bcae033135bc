/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "unm_wire.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the wire is little-endian and so are Unimem boards"
#endif

int unm_wire_words(uint8_t type, uint8_t flags)
{
	int lead = (type & UNM_WIRE_TAGGED) + !!(flags & UNM_WIRE_HAS_DATA);

	switch (type) {
	case UNM_WIRE_HELLO:
		return 1;
	case UNM_WIRE_CARRIED:
		return 2;
	case UNM_WIRE_INLINE:
	case UNM_WIRE_INLINE_TAGGED:
		return lead;
	case UNM_WIRE_EAGER:
	case UNM_WIRE_EAGER_TAGGED:
		return lead + 1;
	case UNM_WIRE_RTS:
	case UNM_WIRE_RTS_TAGGED:
		return lead + UNM_WIRE_RTS_WORDS;
	case UNM_WIRE_CTS:
		return 3;
	case UNM_WIRE_DATA:
	case UNM_WIRE_FIN:
		return 2;
	default:
		return -1;
	}
}

static int unm_wire_extent(struct unm_wire_msg *msg, uint64_t word,
			   const struct unm_wire_limits *lim)
{
	msg->extent.off = (uint32_t)word;
	msg->extent.len = word >> 32;
	if (msg->extent.off > lim->space_bytes ||
	    msg->extent.len > lim->space_bytes - msg->extent.off)
		return -EINVAL;
	return 0;
}

static int unm_wire_decode_control(struct unm_wire_msg *msg,
				   const uint64_t *word,
				   const struct unm_wire_limits *lim)
{
	switch (msg->type) {
	case UNM_WIRE_HELLO:
		memcpy(&msg->hello, word, sizeof(msg->hello));
		return 0;
	case UNM_WIRE_CARRIED:
		msg->token = word[1];
		if (word[0] % 8 != 0)
			return -EINVAL;
		return unm_wire_extent(msg, word[0], lim);
	case UNM_WIRE_CTS:
		msg->token = word[0];
		msg->peer_token = word[1];
		msg->len = word[2];
		return 0;
	case UNM_WIRE_DATA:
		msg->token = word[0];
		return unm_wire_extent(msg, word[1], lim);
	default:			/* FIN */
		msg->token = word[0];
		msg->status = word[1];
		return 0;
	}
}

int unm_wire_decode(struct unm_wire_msg *msg, uint64_t head,
		    const uint64_t *word, const struct unm_wire_limits *lim)
{
	uint8_t flags = head >> 48;
	unsigned lead = 0;

	msg->type = head >> 56;
	if (unm_wire_words(msg->type, flags) < 0)
		return -EINVAL;
	if ((msg->type & 0xF0) != 0x10)
		return unm_wire_decode_control(msg, word, lim);
	if ((flags & UNM_WIRE_RESERVED) ||
	    ((msg->type & ~UNM_WIRE_TAGGED) != UNM_WIRE_INLINE &&
	     (flags & UNM_WIRE_LEN_MASK)))
		return -EINVAL;

	msg->tag = msg->type & UNM_WIRE_TAGGED ? word[lead++] : 0;
	msg->has_data = flags & UNM_WIRE_HAS_DATA;
	msg->data = msg->has_data ? word[lead++] : 0;
	switch (msg->type & ~UNM_WIRE_TAGGED) {
	case UNM_WIRE_INLINE:
		msg->inline_len = flags & UNM_WIRE_LEN_MASK;
		msg->inline_word = lead;
		return msg->inline_len + 8 * lead > lim->pkt_payload ?
			-EINVAL : 0;
	case UNM_WIRE_EAGER:
		if (word[lead] >> 32 > UNM_WIRE_EAGER_LIMIT)
			return -EINVAL;
		return unm_wire_extent(msg, word[lead], lim);
	default:			/* RTS */
		msg->len = word[lead];
		msg->token = word[lead + 1];
		msg->addr = word[lead + 2];
		return 0;
	}
}

const char *unm_wire_name(uint8_t type)
{
	static const char *const names[] = {
		[UNM_WIRE_HELLO] = "hello",
		[UNM_WIRE_CARRIED] = "carried",
		[UNM_WIRE_INLINE] = "inline",
		[UNM_WIRE_INLINE_TAGGED] = "inline tagged",
		[UNM_WIRE_EAGER] = "eager",
		[UNM_WIRE_EAGER_TAGGED] = "eager tagged",
		[UNM_WIRE_RTS] = "rts",
		[UNM_WIRE_RTS_TAGGED] = "rts tagged",
		[UNM_WIRE_CTS] = "cts",
		[UNM_WIRE_DATA] = "data",
		[UNM_WIRE_FIN] = "fin",
	};
	const char *name = NULL;

	if (type < sizeof(names) / sizeof(names[0]))
		name = names[type];
	return name != NULL ? name : "unknown";
}
