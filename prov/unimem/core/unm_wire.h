/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_wire.h - the messages that the provider sends in packets, as
 * docs/protocol.md defines them.
 *
 * A message is the 8-byte packet head (hal.h) and up to 8 little-endian words;
 * inline and one-sided messages have bytes behind the words. The number of a
 * type never changes and is not used again.
 */
#ifndef UNM_WIRE_H
#define UNM_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#define UNM_WIRE_VERSION	6
#define UNM_WIRE_VERSION_MIN	6	/* oldest version that is accepted */

enum unm_wire_type {
	UNM_WIRE_HELLO		= 0x01,	/* first packet of every link */
	UNM_WIRE_CARRIED	= 0x02,	/* long message in receive space */
	/* messages; an odd type is tagged */
	UNM_WIRE_INLINE		= 0x10,
	UNM_WIRE_INLINE_TAGGED	= 0x11,
	UNM_WIRE_EAGER		= 0x12,
	UNM_WIRE_EAGER_TAGGED	= 0x13,
	UNM_WIRE_RTS		= 0x14,
	UNM_WIRE_RTS_TAGGED	= 0x15,
	UNM_WIRE_WIDE		= 0x16,	/* inline, in a wide packet */
	UNM_WIRE_WIDE_TAGGED	= 0x17,
	UNM_WIRE_LONG		= 0x18,	/* eager, its first piece */
	UNM_WIRE_LONG_TAGGED	= 0x19,
	/* rendezvous control */
	UNM_WIRE_CTS		= 0x20,
	UNM_WIRE_DATA		= 0x21,
	UNM_WIRE_FIN		= 0x22,
	UNM_WIRE_NEXT		= 0x23,	/* a further piece of a LONG message */
	/* one-sided: requests ... */
	UNM_WIRE_PUT		= 0x30,
	UNM_WIRE_PUT_DATA	= 0x31,	/* with remote CQ data: a message */
	UNM_WIRE_ATOMIC		= 0x32,
	UNM_WIRE_GET		= 0x33,
	UNM_WIRE_FETCH		= 0x34,
	UNM_WIRE_COMPARE	= 0x35,
	/* PUT, GET after a failed transfer: the target checks its memory */
	UNM_WIRE_PUT_CHECK	= 0x36,
	UNM_WIRE_GET_CHECK	= 0x37,
	/* ... and answers */
	UNM_WIRE_RESULT		= 0x38,
	UNM_WIRE_REFUSED	= 0x39,
	UNM_WIRE_RKEY		= 0x3A,
	/* no operation: the target releases it when it makes progress */
	UNM_WIRE_PROBE		= 0x3B,
	/* 0xCA is the empty pattern of the hardware and never a type */
};

#define UNM_WIRE_TAGGED		0x01	/* bit of the message types */

/* flags byte of messages and rendezvous control */
#define UNM_WIRE_LEN_MASK	0x3F	/* INLINE: bytes of data */
#define UNM_WIRE_FAULT		0x01	/* CTS: a transfer from the sender's
					 * buffer failed: check the buffer */
#define UNM_WIRE_DMABLE		0x01	/* RTS: the buffer is dmable memory; the
					 * two words of its key follow */
#define UNM_WIRE_HAS_DATA	0x40	/* a word of remote CQ data follows */
#define UNM_WIRE_LEN_64		0x80	/* WIDE: 64 bytes more than bits 0-5
					 * say; other types: 0 */

/* flags byte of one-sided types: bits 0-5 are the number of bytes that follow
 * the words in a packet (UNM_WIRE_LEN_MASK) */
#define UNM_WIRE_ASK_RKEY	0x40	/* requests: send the remote key of the
					 * region too, with RKEY */
#define UNM_WIRE_MORE		0x80	/* requests: not the operation's last;
					 * the last word is the number of bytes
					 * of this range that follow; RESULT:
					 * not the request's last */
#define UNM_WIRE_EARLIER	0x80	/* PUT_DATA, always an operation's last
					 * request: a word holds the bytes that
					 * its earlier requests carried */

/* HELLO: word 0 */
struct unm_wire_hello {
	uint16_t version;
	uint16_t version_min;
	uint32_t features;		/* none defined */
};
_Static_assert(sizeof(struct unm_wire_hello) == 8, "one word");

/* EAGER, LONG, NEXT, DATA, CARRIED: the place of the bytes in the receive
 * space */
struct unm_wire_extent {
	uint32_t off;			/* bytes */
	uint32_t len;			/* bytes */
};
_Static_assert(sizeof(struct unm_wire_extent) == 8, "one word");

#define UNM_WIRE_EAGER_LIMIT	16384	/* bytes of the longest eager message of
					 * any endpoint */
#define UNM_WIRE_LONG_LIMIT	65536	/* ... in several pieces */
#define UNM_WIRE_INLINE_MAX	112	/* bytes of the longest inline or wide
					 * message */
#define UNM_WIRE_WORDS_MAX	8	/* words of a message, at most */

/* ATOMIC, FETCH, COMPARE: operation and elements */
struct unm_wire_how {
	uint8_t op;			/* enum gsas_op */
	uint8_t type;			/* enum gsas_type */
	uint16_t reserved;		/* 0 */
	uint32_t count;			/* elements */
};
_Static_assert(sizeof(struct unm_wire_how) == 8, "one word");

/* RKEY: how an initiator may access the region */
enum unm_wire_reach {
	UNM_REACH_REQUEST = 0,		/* by requests only */
	UNM_REACH_ATTACH  = 1,		/* base is an address in the process */
	UNM_REACH_DMABLE  = 2,		/* base is an offset in the dmable
					 * region of mem_key */
	UNM_REACH_SHARED  = 3,		/* as ATTACH; and mem_key is the key of
					 * hal_alias_key() for the region */
};
#define UNM_REACH_HOW		0x0F	/* mask of enum unm_wire_reach */
#define UNM_REACH_READ		0x10	/* flag: may be read */
#define UNM_REACH_WRITE		0x20	/* flag: may be written */

/* A message with its words as fields, in host order. Comments name the types
 * for which unm_wire_decode() sets a field, and the value for those of them
 * that do not carry it; it does not set the field for other types. Requests are
 * PUT, PUT_DATA, ATOMIC, GET, FETCH and COMPARE; one-sided types are requests,
 * RESULT, REFUSED, RKEY and PROBE. */
struct unm_wire_msg {
	uint8_t type;
	bool has_data;
	bool dmable;			/* RTS */
	bool check;			/* CTS, one-sided types: an access to
					 * this memory failed before; false
					 * except for CTS, PUT, GET */
	uint8_t inline_len;		/* INLINE, WIDE */
	uint8_t inline_word;		/* INLINE, WIDE: words before the
					 * bytes */
	uint64_t tag;			/* 0 if untagged */
	uint64_t data;			/* messages, PUT, PUT_DATA: remote CQ
					 * data, 0 if none */
	struct unm_wire_extent extent;	/* EAGER, LONG, NEXT, DATA,
					 * CARRIED */
	uint64_t len;			/* bytes; RTS, LONG: of the message;
					 * CTS, GET: requested; RKEY: of the
					 * region */
	uint64_t addr;			/* RTS: address of the sender's buffer,
					 * 0: stream it only; with dmable: its
					 * offset in the region of mem_key;
					 * requests, RKEY: in the region */
	uint64_t token;			/* RTS, CTS, FIN: sender's operation;
					 * DATA: receiver's; CARRIED: head of
					 * the message in receive space; GET,
					 * FETCH, COMPARE, RESULT: initiator's
					 * operation */
	uint64_t peer_token;		/* CTS: receiver's operation */
	uint64_t status;		/* FIN, RESULT, REFUSED: 0 or a
					 * positive fi_errno */
	struct unm_wire_hello hello;
	/* one-sided */
	bool ask_rkey;			/* one-sided types; false except for
					 * requests */
	bool more;			/* one-sided types: UNM_WIRE_MORE; false
					 * except for requests other than
					 * PUT_DATA, and RESULT */
	uint64_t key;			/* requests, RKEY: of the region */
	uint64_t rest;			/* requests: bytes of the range that
					 * follow; 0 without more */
	uint64_t earlier;		/* PUT_DATA: bytes of the operation
					 * that earlier requests carried; PUT:
					 * 0 */
	uint64_t number;		/* REFUSED: number of the request */
	struct unm_wire_how how;	/* ATOMIC, FETCH, COMPARE */
	uint32_t reach;			/* RKEY: enum unm_wire_reach, flags */
	uint32_t region;		/* RKEY: number of the region */
	uint64_t epoch;			/* RKEY: revocations so far */
	uint64_t base;			/* RKEY: place of addr, see reach */
	uint64_t mem_key[2];		/* RTS, RKEY: struct hal_key */
	const void *bytes;		/* one-sided: bytes behind the words */
	uint32_t nbytes;		/* their number */
};

/* Sizes of the backend, from struct hal_caps. */
struct unm_wire_limits {
	uint32_t pkt_payload;		/* bytes of a packet */
	uint32_t space_bytes;		/* bytes of receive space */
	uint32_t pkt_wide;		/* bytes of a wide packet, or 0 */
};

/* An extent as a word of a message. */
static inline uint64_t unm_wire_extent_word(uint32_t off, uint32_t len)
{
	return (uint64_t)len << 32 | off;
}

/* The longest message that is sent inline, in bytes. */
static inline uint32_t unm_wire_inline_max(uint32_t pkt_payload, bool tagged,
					   bool has_data)
{
	uint32_t max = pkt_payload - 8 * tagged - 8 * has_data;

	return max < UNM_WIRE_LEN_MASK ? max : UNM_WIRE_LEN_MASK;
}

/* Does a wide packet have this many bytes? A message that fits one slot is sent
 * in one. */
static inline bool unm_wire_wide_ok(uint32_t bytes,
				    const struct unm_wire_limits *lim)
{
	return bytes > lim->pkt_payload && bytes <= lim->pkt_wide;
}

/* The length of a WIDE message as flags, and back. */
static inline uint8_t unm_wire_wide_flags(uint32_t len)
{
	return (len & UNM_WIRE_LEN_MASK) |
		(len > UNM_WIRE_LEN_MASK ? UNM_WIRE_LEN_64 : 0);
}

static inline uint32_t unm_wire_wide_len(uint8_t flags)
{
	return (flags & UNM_WIRE_LEN_MASK) +
		(flags & UNM_WIRE_LEN_64 ? 64 : 0);
}

/* Words of a message of this type and flags, without the bytes behind them; -1:
 * there is no such type. */
int unm_wire_words(uint8_t type, uint8_t flags);

/* Words before the bytes of an INLINE or WIDE message, or before the extent of
 * an EAGER one. */
static inline unsigned unm_wire_lead(uint8_t type, uint8_t flags)
{
	return (type & UNM_WIRE_TAGGED) + !!(flags & UNM_WIRE_HAS_DATA);
}

/* Read an extent. False: it is not in the receive space. */
static inline bool unm_wire_read_extent(struct unm_wire_extent *extent,
					uint64_t word,
					const struct unm_wire_limits *lim)
{
	extent->off = (uint32_t)word;
	extent->len = word >> 32;
	return extent->off <= lim->space_bytes &&
		extent->len <= lim->space_bytes - extent->off;
}

/* The same for the extent of an EAGER message. False: it is too long, too. */
static inline bool unm_wire_read_eager(struct unm_wire_extent *extent,
				       uint64_t word,
				       const struct unm_wire_limits *lim)
{
	return unm_wire_read_extent(extent, word, lim) &&
		extent->len <= UNM_WIRE_EAGER_LIMIT;
}

/* Is this a type of a one-sided message? */
static inline bool unm_wire_onesided(uint8_t type)
{
	return (type & 0xF0) == 0x30;
}

/*
 * Read and check a message. word[] are at least unm_wire_words() words, which
 * the caller has read once from the packet or from receive space. 0; -EINVAL:
 * unknown type, or a length or extent is out of bounds. For a one-sided message
 * the caller sets bytes and nbytes.
 */
int unm_wire_decode(struct unm_wire_msg *msg, uint64_t head,
		    const uint64_t *word, const struct unm_wire_limits *lim);

/* Name of a type, for log lines; "unknown" if there is no such type. */
const char *unm_wire_name(uint8_t type);

#endif /* UNM_WIRE_H */
