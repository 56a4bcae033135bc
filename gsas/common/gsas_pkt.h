/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_pkt.h - what threads and the atomic service of a board say to each
 * other: requests and responses as published [D 2.2.3, figures 8 and 9], and
 * the numbers the paper leaves open. Pure. Its text is docs/gsas.md, section 3.
 *
 * A request is a packet of the HAL: its head (identity stamped by the trusted
 * side, the tag in the reserved byte, the opcode), then three words. A response
 * is a packet whose first two words are the published 128 bits; its head
 * repeats tag and opcode, its third word is ours.
 */
#ifndef GSAS_PKT_H
#define GSAS_PKT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bits 0-47 identity, 48-55 tag, 56-63 opcode. */
struct gsas_wire_request {
	uint64_t head;
	uint64_t address;		/* "instruction address" */
	uint64_t arg1, arg2;
};
_Static_assert(sizeof(struct gsas_wire_request) == 32, "256 bits");
_Static_assert(offsetof(struct gsas_wire_request, address) == 8, "bits 64-127");
_Static_assert(offsetof(struct gsas_wire_request, arg1) == 16, "bits 128-191");
_Static_assert(offsetof(struct gsas_wire_request, arg2) == 24, "bits 192-255");

struct gsas_response {
	uint64_t error;			/* enum gsas_error */
	uint64_t result;
};
_Static_assert(sizeof(struct gsas_response) == 16, "128 bits");
_Static_assert(offsetof(struct gsas_response, result) == 8, "bits 64-127");

/* Words of a packet's payload that both sides use: the device has no more. */
#define GSAS_WORDS	3

/*
 * Opcodes. 0 is none, so that a packet of zeroes does nothing; up to 63 those
 * of the paper, from 64 up ours, below HAL_PKT_RESERVED. Fixed for ever.
 */
enum gsas_opcode {
	GSAS_ALLOC	= 1,	/* arg1 pages; arg2 attributes, 0: as published;
				 * result: address */
	GSAS_FREE	= 2,	/* arg1 address */
	GSAS_FORK	= 3,	/* arg1 address of the page that holds the path;
				 * arg2 argument; result: process id */
	GSAS_READ8	= 4,	/* result: the value, here and below */
	GSAS_READ32	= 5,
	GSAS_READ64	= 6,
	GSAS_READ4K	= 7,	/* arg1 where in the reader's receive space;
				 * result: bytes read, 4096 */
	GSAS_WRITE8	= 8,	/* arg1 value, here and below */
	GSAS_WRITE32	= 9,
	GSAS_WRITE64	= 10,
	GSAS_WRITE128	= 11,	/* arg1 lower, arg2 upper word */
	GSAS_CAS64	= 12,	/* arg1 expected, arg2 new; result: 1 done, 0
				 * not; third word: the value before */
	GSAS_FAD64	= 13,	/* arg1 summand; result: the value before */
	GSAS_SWAP64	= 14,	/* arg1 new; result: the value before */

	GSAS_JOIN	= 64,	/* address, arg1: the job's key; the first
				 * request of an interface; result: job number*/
	GSAS_GROUP	= 65,	/* address, arg1: the group's name, filled up
				 * with zeroes; result: its number here */
	GSAS_FENCE	= 66,	/* answered when all before it is done; result:
				 * posted requests that failed since the last
				 * one; third word: error of the first */
	GSAS_UPDATE	= 67,	/* arg1: op 0-7, type 8-15 (gsas_op.h), of up to
				 * 8 bytes; arg2 operand; result: before */
	GSAS_ATOMIC	= 68,	/* arg1: op 0-7, type 8-15, form 16-23, count
				 * 32-63; arg2: operands, then compares, in the
				 * service's receive space 0-31, where results
				 * go in the caller's 32-63 */
	GSAS_GET	= 69,	/* address, arg1, arg2: struct gsas_part, where
				 * to in the caller's receive space; result:
				 * bytes */
	GSAS_PUT	= 70,	/* the same, where from in the service's */
	GSAS_MAP	= 71,	/* arg2 where a struct gsas_map_info goes, key
				 * 0 if it is not to be mapped; result:
				 * attributes */
	GSAS_QUEUE_NEW	= 72,	/* arg1 quota in words 0-31, words of a buffer
				 * 32-63; arg2 attributes; result: address */
	GSAS_QUEUE_OPEN	= 73,	/* address; result: words that may be sent */
	GSAS_QUEUE_CLOSE = 74,	/* address: the window goes back, waits end */
	GSAS_ENQUEUE	= 75,	/* address; arg1 word. Posted. Acknowledged now
				 * and then: address in the third word, result:
				 * words that may be sent since the open;
				 * GSAS_E_AGAIN: all of them were sent, and the
				 * queue is full; GSAS_E_MEMORY: all were sent,
				 * and the service has no memory for more;
				 * GSAS_E_FREED: the queue is gone */
	GSAS_DEQUEUE	= 76,	/* address; arg1 words at most 0-31, where in
				 * the caller's space 32-63; result: words. 0
				 * at most: only tells that some were taken */
	GSAS_STAT	= 77,	/* arg2 where a struct gsas_stat goes */
	GSAS_LIST	= 78,	/* address: regions from here on; arg1 how many
				 * at most; arg2 where struct gsas_list_entry
				 * go; result: how many; third word: address
				 * to go on from, 0: that was all */
	GSAS_RECLAIM	= 79,	/* address of an orphan's region; or 0: all,
				 * arg1: from here on; result: pages freed;
				 * third word: as GSAS_LIST */
	GSAS_QUEUE_WAIT	= 80,	/* address; answered when a word is inside, or
				 * the queue was freed, or GSAS_E_AGAIN: the
				 * caller has closed it */
};

/* Of a request nobody answers, but by the next fence. All others: 1 .. 255. */
#define GSAS_TAG_POSTED	0
#define GSAS_TAGS	255

/* Numbers on the wire, fixed for ever; none is the empty pattern. */
enum gsas_error {
	GSAS_OK		= 0,
	GSAS_E_OPCODE	= 1,	/* no such operation, type or form */
	GSAS_E_ADDRESS	= 2,	/* never allocated, or of another board */
	GSAS_E_FREED	= 3,	/* was allocated once */
	GSAS_E_ACCESS	= 4,	/* somebody else's */
	GSAS_E_ARGUMENT	= 5,	/* zero or too many pages, bad range ... */
	GSAS_E_MEMORY	= 6,	/* the board has no more */
	GSAS_E_QUOTA	= 7,	/* the user has its share, or a table is full */
	GSAS_E_MAPPED	= 8,	/* has one executor, and the page is mapped;
				 * or the reverse: cannot be mapped */
	GSAS_E_PATH	= 9,	/* no end within the page, or no such file */
	GSAS_E_EXEC	= 10,	/* not below a directory that is allowed */
	GSAS_E_JOIN	= 11,	/* no job yet, or a second one */
	GSAS_E_AGAIN	= 12,	/* not now */
	GSAS_E_STATE	= 13,	/* not open, open already, not a queue */
};
#define GSAS_ERRORS	14

/* ---- Addresses [D 2.2.2] ------------------------------------------------ */

#define GSAS_PAGE_SHIFT		12
#define GSAS_PAGE_BYTES		(UINT64_C(1) << GSAS_PAGE_SHIFT)
#define GSAS_PART_SHIFT		48
#define GSAS_OFFSET_MASK	((UINT64_C(1) << GSAS_PART_SHIFT) - 1)

/* The partition of a board is its number plus 1: no valid address is NULL. */
static inline uint64_t gsas_base(uint32_t board)
{
	return (uint64_t)(board + 1) << GSAS_PART_SHIFT;
}

/* -1 for what belongs to none */
static inline int gsas_board_of(uint64_t address)
{
	return (int)(address >> GSAS_PART_SHIFT) - 1;
}

/* ---- Attributes of an allocation ---------------------------------------- */

enum gsas_mode {			/* bits 0-7: who else may access */
	GSAS_MODE_JOB	= 0,		/* nobody */
	GSAS_MODE_GROUP	= 1,		/* members of the group, bits 32-63 */
	GSAS_MODE_WORLD	= 2,
};
#define GSAS_ATTR_MAPPED	(UINT64_C(1) << 8)	/* may be mapped */
#define GSAS_ATTR_MODE(a)	((a) & 0xff)
#define GSAS_ATTR_GROUP(a)	((uint32_t)((a) >> 32))

/* ---- What travels through receive spaces -------------------------------- */

/*
 * A segment: memory with pages of one owner and mode, as it can be mapped. Its
 * first bytes are a word for each page, 0 unless the page is allocated, then
 * the number in the segment of its allocation's first page: who has it mapped
 * looks there before each access, and sees how far an allocation goes. The
 * words of a segment that is gone are 0 for ever, so a segment that has its
 * addresses later is not mistaken for it.
 */
struct gsas_map_info {
	uint64_t key[2];		/* struct hal_key */
	uint64_t base;			/* address of its first byte */
	uint64_t bytes;			/* a multiple of GSAS_SEGMENT */
};

#define GSAS_SEGMENT_SHIFT	20	/* segments are so aligned: 1 MiB */
#define GSAS_SEGMENT		(UINT64_C(1) << GSAS_SEGMENT_SHIFT)

/* The word of a page, at the start of its segment. */
static inline uint64_t gsas_page_word(uint64_t base, uint64_t address)
{
	return (address - base) / GSAS_PAGE_BYTES * sizeof(uint32_t);
}

/*
 * A part of what is copied by GET or PUT. Each names the whole, which must lie
 * in one allocation, so that either all are refused or none.
 *	arg1	bytes of the part 0-19, of the whole 20-63, 0: the part is all
 *	arg2	where it is in the receive space 0-31, and 32-63 where in the
 *		whole: the first, 0, begins with it, others at a multiple of 64
 */
struct gsas_part {
	uint64_t bytes, whole, begin;
	uint32_t off;
};
#define GSAS_PART_ALIGN		64
/* Bytes: less than 2^32 times 64, as the whole may begin in between. */
#define GSAS_WHOLE_MAX		((UINT64_C(1) << 38) - GSAS_PART_ALIGN)

static inline void gsas_part_encode(const struct gsas_part *part,
				    uint64_t address, uint64_t arg[2])
{
	uint64_t at = part->begin == 0 ? 0 :
		(part->begin + address % GSAS_PART_ALIGN) / GSAS_PART_ALIGN;

	arg[0] = part->whole << 20 | part->bytes;
	arg[1] = at << 32 | part->off;
}

/* false: it is not in the whole */
static inline bool gsas_part_decode(struct gsas_part *part, uint64_t address,
				    const uint64_t arg[2])
{
	uint64_t at = arg[1] >> 32;

	part->bytes = arg[0] & ((1 << 20) - 1);
	part->whole = arg[0] >> 20 != 0 ? arg[0] >> 20 : part->bytes;
	part->off = (uint32_t)arg[1];
	part->begin = at == 0 ? 0 :
		at * GSAS_PART_ALIGN - address % GSAS_PART_ALIGN;
	return part->begin <= part->whole &&
		part->bytes <= part->whole - part->begin;
}

struct gsas_list_entry {
	uint64_t address, pages;
	uint64_t attr;			/* with GSAS_ATTR_* of this list, too */
	uint32_t job, clients;		/* its owner; its living interfaces */
};
#define GSAS_ATTR_QUEUE		(UINT64_C(1) << 9)
_Static_assert(sizeof(struct gsas_list_entry) == 32, "wire format");

struct gsas_stat {
	uint64_t pages, pages_max;	/* allocated; the board's limit */
	uint64_t regions, segments;
	uint64_t clients, jobs, orphans;	/* orphans: regions */
	uint64_t requests, refused;	/* so far; those answered by an error */
	uint64_t sleeps, wakes;		/* of the service */
	uint64_t forks;			/* processes started so far */
	uint64_t words;			/* in queues */
	uint64_t op[128];		/* requests by opcode */
	uint64_t error[16];		/* answers by error */
};
_Static_assert(sizeof(struct gsas_stat) == 13 * 8 + 128 * 8 + 16 * 8, "wire");

#endif /* GSAS_PKT_H */
