/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_wire.c - reads and checks received messages: lengths of the types, words
 * to fields, names for log lines.
 *
 * unm_wire.h declares the entry points; docs/protocol.md defines the messages.
 * The code calls neither the HAL nor the endpoint: test/fuzz feeds it any
 * bytes.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "core/unm_wire.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "words of messages are little-endian, and so are Unimem boards"
#endif

int unm_wire_words(uint8_t type, uint8_t flags)
{
	int lead = unm_wire_lead(type, flags);
	int more = !!(flags & UNM_WIRE_MORE);

	switch (type) {
	case UNM_WIRE_PROBE:
		return 0;
	case UNM_WIRE_HELLO:
	case UNM_WIRE_NEXT:
		return 1;
	case UNM_WIRE_CARRIED:
		return 2;
	case UNM_WIRE_INLINE:
	case UNM_WIRE_INLINE_TAGGED:
	case UNM_WIRE_WIDE:
	case UNM_WIRE_WIDE_TAGGED:
		return lead;
	case UNM_WIRE_EAGER:
	case UNM_WIRE_EAGER_TAGGED:
		return lead + 1;
	case UNM_WIRE_LONG:
	case UNM_WIRE_LONG_TAGGED:
		return lead + 2;
	case UNM_WIRE_RTS:
	case UNM_WIRE_RTS_TAGGED:
		return lead + (flags & UNM_WIRE_DMABLE ? 5 : 3);
	case UNM_WIRE_CTS:
		return 3;
	case UNM_WIRE_DATA:
	case UNM_WIRE_FIN:
	case UNM_WIRE_RESULT:
	case UNM_WIRE_REFUSED:
		return 2;
	case UNM_WIRE_PUT:
	case UNM_WIRE_PUT_CHECK:
		return 2 + more;
	case UNM_WIRE_PUT_DATA:
	case UNM_WIRE_ATOMIC:
		return 3 + more;
	case UNM_WIRE_GET:
	case UNM_WIRE_GET_CHECK:
	case UNM_WIRE_FETCH:
	case UNM_WIRE_COMPARE:
		return 4 + more;
	case UNM_WIRE_RKEY:
		return 8;
	default:
		return -1;
	}
}

static int unm_wire_extent(struct unm_wire_msg *msg, uint64_t word,
			   const struct unm_wire_limits *lim)
{
	return unm_wire_read_extent(&msg->extent, word, lim) ? 0 : -EINVAL;
}

static int unm_wire_decode_control(struct unm_wire_msg *msg, uint8_t flags,
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
		msg->check = flags & UNM_WIRE_FAULT;
		msg->token = word[0];
		msg->peer_token = word[1];
		msg->len = word[2];
		return 0;
	case UNM_WIRE_DATA:
		msg->token = word[0];
		return unm_wire_extent(msg, word[1], lim);
	case UNM_WIRE_NEXT:
		return unm_wire_extent(msg, word[0], lim);
	default:			/* FIN */
		msg->token = word[0];
		msg->status = word[1];
		return 0;
	}
}

static int unm_wire_decode_how(struct unm_wire_msg *msg, uint64_t word)
{
	memcpy(&msg->how, &word, sizeof(msg->how));
	return msg->how.reserved != 0 || msg->how.count == 0 ? -EINVAL : 0;
}

/* Requests begin with key and address. If further requests belong to the same
 * operation, the last word is the number of bytes in them. */
static int unm_wire_decode_request(struct unm_wire_msg *msg,
				   const uint64_t *word)
{
	int ret = 0;

	msg->key = *word++;
	msg->addr = *word++;
	switch (msg->type) {
	case UNM_WIRE_PUT:
		msg->data = 0;
		msg->earlier = 0;
		break;
	case UNM_WIRE_PUT_DATA:
		msg->data = *word++;
		msg->earlier = msg->more ? *word : 0;
		msg->more = false;	/* the flag is UNM_WIRE_EARLIER here */
		break;
	case UNM_WIRE_GET:
		msg->len = *word++;
		msg->token = *word++;
		break;
	default:			/* ATOMIC, FETCH, COMPARE */
		ret = unm_wire_decode_how(msg, *word++);
		if (msg->type != UNM_WIRE_ATOMIC)
			msg->token = *word++;
		break;
	}
	msg->rest = msg->more ? *word : 0;
	return ret;
}

static int unm_wire_decode_onesided(struct unm_wire_msg *msg, uint8_t flags,
				    const uint64_t *word)
{
	msg->ask_rkey = flags & UNM_WIRE_ASK_RKEY;
	msg->more = flags & UNM_WIRE_MORE;
	msg->check = msg->type == UNM_WIRE_PUT_CHECK ||
		msg->type == UNM_WIRE_GET_CHECK;
	if (msg->check)
		msg->type = msg->type == UNM_WIRE_PUT_CHECK ? UNM_WIRE_PUT :
			UNM_WIRE_GET;
	if (msg->type < UNM_WIRE_RESULT)
		return unm_wire_decode_request(msg, word);
	if (msg->ask_rkey || (msg->more && msg->type != UNM_WIRE_RESULT))
		return -EINVAL;
	switch (msg->type) {
	case UNM_WIRE_RESULT:
		msg->token = word[0];
		msg->status = word[1];
		return msg->status > INT32_MAX ? -EINVAL : 0;
	case UNM_WIRE_REFUSED:
		msg->number = word[0];
		msg->status = word[1];
		return msg->status == 0 || msg->status > INT32_MAX ?
			-EINVAL : 0;
	case UNM_WIRE_PROBE:
		return 0;
	default:			/* RKEY */
		msg->key = word[0];
		msg->reach = (uint32_t)word[1];
		msg->region = word[1] >> 32;
		msg->epoch = word[2];
		msg->addr = word[3];
		msg->len = word[4];
		msg->base = word[5];
		msg->mem_key[0] = word[6];
		msg->mem_key[1] = word[7];
		return 0;
	}
}

static int unm_wire_decode_message(struct unm_wire_msg *msg, uint8_t flags,
				   const uint64_t *word,
				   const struct unm_wire_limits *lim)
{
	uint8_t type = msg->type & ~UNM_WIRE_TAGGED, lens;
	unsigned lead = 0;

	lens = type == UNM_WIRE_INLINE ? UNM_WIRE_LEN_MASK :
		type == UNM_WIRE_WIDE ? UNM_WIRE_LEN_MASK | UNM_WIRE_LEN_64 :
		type == UNM_WIRE_RTS ? UNM_WIRE_DMABLE : 0;
	if (flags & ~(lens | UNM_WIRE_HAS_DATA))
		return -EINVAL;
	msg->tag = msg->type & UNM_WIRE_TAGGED ? word[lead++] : 0;
	msg->has_data = flags & UNM_WIRE_HAS_DATA;
	msg->data = msg->has_data ? word[lead++] : 0;
	switch (type) {
	case UNM_WIRE_INLINE:
		msg->inline_len = flags & UNM_WIRE_LEN_MASK;
		msg->inline_word = lead;
		return msg->inline_len + 8 * lead > lim->pkt_payload ?
			-EINVAL : 0;
	case UNM_WIRE_WIDE:
		msg->inline_len = unm_wire_wide_len(flags);
		msg->inline_word = lead;
		return unm_wire_wide_ok(msg->inline_len + 8 * lead, lim) ?
			0 : -EINVAL;
	case UNM_WIRE_EAGER:
		return unm_wire_read_eager(&msg->extent, word[lead], lim) ?
			0 : -EINVAL;
	case UNM_WIRE_LONG:
		msg->len = word[lead];
		return unm_wire_read_eager(&msg->extent, word[lead + 1], lim) &&
			msg->extent.len != 0 && msg->extent.len < msg->len &&
			msg->len <= UNM_WIRE_LONG_LIMIT ? 0 : -EINVAL;
	default:			/* RTS */
		msg->len = word[lead];
		msg->token = word[lead + 1];
		msg->addr = word[lead + 2];
		msg->dmable = flags & UNM_WIRE_DMABLE;
		if (msg->dmable)
			memcpy(msg->mem_key, &word[lead + 3],
			       sizeof(msg->mem_key));
		return 0;
	}
}

int unm_wire_decode(struct unm_wire_msg *msg, uint64_t head,
		    const uint64_t *word, const struct unm_wire_limits *lim)
{
	uint8_t flags = head >> 48;

	msg->type = head >> 56;
	if (unm_wire_words(msg->type, flags) < 0)
		return -EINVAL;
	if (unm_wire_onesided(msg->type))
		return unm_wire_decode_onesided(msg, flags, word);
	if ((msg->type & 0xF0) == 0x10)
		return unm_wire_decode_message(msg, flags, word, lim);
	return unm_wire_decode_control(msg, flags, word, lim);
}

const char *unm_wire_name(uint8_t type)
{
	static const char *const names[] = {
		[UNM_WIRE_HELLO] = "hello",
		[UNM_WIRE_CARRIED] = "carried",
		[UNM_WIRE_INLINE] = "inline",
		[UNM_WIRE_INLINE_TAGGED] = "inline tagged",
		[UNM_WIRE_WIDE] = "wide",
		[UNM_WIRE_WIDE_TAGGED] = "wide tagged",
		[UNM_WIRE_EAGER] = "eager",
		[UNM_WIRE_EAGER_TAGGED] = "eager tagged",
		[UNM_WIRE_RTS] = "rts",
		[UNM_WIRE_RTS_TAGGED] = "rts tagged",
		[UNM_WIRE_LONG] = "long",
		[UNM_WIRE_LONG_TAGGED] = "long tagged",
		[UNM_WIRE_CTS] = "cts",
		[UNM_WIRE_DATA] = "data",
		[UNM_WIRE_FIN] = "fin",
		[UNM_WIRE_NEXT] = "next",
		[UNM_WIRE_PUT] = "put",
		[UNM_WIRE_PUT_DATA] = "put with data",
		[UNM_WIRE_ATOMIC] = "atomic",
		[UNM_WIRE_GET] = "get",
		[UNM_WIRE_FETCH] = "fetch",
		[UNM_WIRE_COMPARE] = "compare",
		[UNM_WIRE_PUT_CHECK] = "put with check",
		[UNM_WIRE_GET_CHECK] = "get with check",
		[UNM_WIRE_RESULT] = "result",
		[UNM_WIRE_REFUSED] = "refused",
		[UNM_WIRE_RKEY] = "rkey",
		[UNM_WIRE_PROBE] = "probe",
	};
	const char *name = NULL;

	if (type < sizeof(names) / sizeof(names[0]))
		name = names[type];
	return name != NULL ? name : "unknown";
}
