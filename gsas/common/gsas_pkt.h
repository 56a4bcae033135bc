/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_pkt.h - the packets between threads and the service of a board: requests
 * and responses as published [D 2.2.3, figures 8 and 9], and the numbers that
 * the paper leaves open. Pure. docs/gsas.md, section 3, defines the protocol.
 *
 * A request is a packet of the HAL: its head (the identity, which the hardware
 * or the kernel vouches for; the tag in the reserved byte; the opcode), then
 * three words. A response is a packet whose head repeats tag and opcode, and
 * whose first two words are the published 128 bits. The third word is an
 * extension of this project.
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

/* Words of payload in each packet; the device has no more. */
#define GSAS_WORDS	3

/*
 * Opcodes: 1 to 63 for operations of the paper, from 64 up to HAL_PKT_RESERVED
 * for those of this project. 0 is no opcode, so that a packet of zeroes has no
 * effect. The numbers never change. The comments name the words of the request
 * and of its response; "where" is an offset in bytes in a receive space.
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
	GSAS_READ4K	= 7,	/* arg1: where in the reader's receive space;
				 * result: bytes read, 4096 */
	GSAS_WRITE8	= 8,	/* arg1 value, here and below */
	GSAS_WRITE32	= 9,
	GSAS_WRITE64	= 10,
	GSAS_WRITE128	= 11,	/* arg1 lower, arg2 upper word */
	GSAS_CAS64	= 12,	/* arg1 expected, arg2 new; result: 1: replaced,
				 * or 0; third word: the value before */
	GSAS_FAD64	= 13,	/* arg1 summand; result: the value before */
	GSAS_SWAP64	= 14,	/* arg1 new; result: the value before */

	GSAS_JOIN	= 64,	/* address, arg1: the job's key; the first
				 * request of an interface; result: job number*/
	GSAS_GROUP	= 65,	/* address, arg1: the group's name, filled up
				 * with zeroes; result: its number here */
	GSAS_FENCE	= 66,	/* answered when all requests before it are
				 * done; result: posted requests that failed
				 * since the last FENCE; third word: error of
				 * the first of these */
	GSAS_UPDATE	= 67,	/* arg1: op 0-7, type 8-15 (gsas_op.h), of up to
				 * 8 bytes; arg2 operand; result: before */
	GSAS_ATOMIC	= 68,	/* arg1: op 0-7, type 8-15, form 16-23, count
				 * 32-63; arg2: 0-31 where operands, then
				 * compares are in the service's receive space,
				 * 32-63 where in the caller's the results are
				 * written */
	GSAS_GET	= 69,	/* address; arg1, arg2: struct gsas_part, off
				 * in the caller's receive space; result: bytes
				 */
	GSAS_PUT	= 70,	/* as GSAS_GET, but off in the service's */
	GSAS_MAP	= 71,	/* arg2: where in the caller's receive space a
				 * struct gsas_map_info is written, with key 0
				 * if the segment cannot be mapped; result:
				 * attributes */
	GSAS_QUEUE_NEW	= 72,	/* arg1 quota in words 0-31, words of a buffer
				 * 32-63; arg2 attributes; result: address */
	GSAS_QUEUE_OPEN	= 73,	/* address; result: words that may be sent */
	GSAS_QUEUE_CLOSE = 74,	/* address; releases the caller's window and
				 * ends its waits */
	GSAS_ENQUEUE	= 75,	/* address; arg1 word. Posted. Acknowledgements
				 * cover many words: address in the third word,
				 * result: words that may be sent since the
				 * open; GSAS_E_AGAIN: all of them were sent,
				 * and the queue is full; GSAS_E_MEMORY: all
				 * were sent, and the service has no memory for
				 * more; GSAS_E_FREED: the queue was freed */
	GSAS_DEQUEUE	= 76,	/* address; arg1: 0-31 words at most, 32-63
				 * where in the caller's receive space; result:
				 * words. 0 at most: only notifies the service
				 * that words were taken out */
	GSAS_STAT	= 77,	/* arg2: where a struct gsas_stat is written */
	GSAS_LIST	= 78,	/* address: list regions from here on; arg1:
				 * entries at most; arg2: where the struct
				 * gsas_list_entry are written; result: entries;
				 * third word: address to continue from, 0: end
				 * of the list */
	GSAS_RECLAIM	= 79,	/* address: orphaned region to free; 0: all,
				 * arg1: from this address on; result: pages
				 * freed; third word: as GSAS_LIST */
	GSAS_QUEUE_WAIT	= 80,	/* address; answered when a word is inside or
				 * the queue is freed; GSAS_E_AGAIN: the caller
				 * has closed the queue */
	GSAS_NAME	= 81,	/* arg1, arg2: a name of the caller's job,
				 * filled up with zeroes; address: region of the
				 * job that gets the name, 0: none; result:
				 * address of the region that has it, 0: none */
	GSAS_NUMBERS	= 82,	/* result: the first of GSAS_NUMBERS_GIVEN
				 * numbers, a multiple of it, which this
				 * service gives nobody else; bits 48-63 are
				 * those of the board's addresses */
};

#define GSAS_NUMBERS_GIVEN	(UINT64_C(1) << 14)

/* The tag of posted requests, whose result only the next FENCE reports. All
 * other requests have a tag from 1 to GSAS_TAGS and are answered. */
#define GSAS_TAG_POSTED	0
#define GSAS_TAGS	255

/* Errors of responses. The numbers never change; none is the empty pattern of
 * the hardware (docs/hal.md). */
enum gsas_error {
	GSAS_OK		= 0,
	GSAS_E_OPCODE	= 1,	/* no such operation, type or form */
	GSAS_E_ADDRESS	= 2,	/* never allocated, or of another board */
	GSAS_E_FREED	= 3,	/* was allocated, and was freed */
	GSAS_E_ACCESS	= 4,	/* the owner does not allow the access */
	GSAS_E_ARGUMENT	= 5,	/* zero or too many pages, bad range ... */
	GSAS_E_MEMORY	= 6,	/* the board has no more memory */
	GSAS_E_QUOTA	= 7,	/* the user's share is used up, or a table is
				 * full */
	GSAS_E_MAPPED	= 8,	/* only the service can do the operation, and
				 * the page may be mapped; or the reverse */
	GSAS_E_PATH	= 9,	/* no 0 byte within the page, or no such file */
	GSAS_E_EXEC	= 10,	/* not below a directory that is allowed */
	GSAS_E_JOIN	= 11,	/* no JOIN yet, or a second JOIN */
	GSAS_E_AGAIN	= 12,	/* not possible now, may be later */
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

/* The board of an address; -1: the address belongs to no board */
static inline int gsas_board_of(uint64_t address)
{
	return (int)(address >> GSAS_PART_SHIFT) - 1;
}

/* ---- Attributes of an allocation ---------------------------------------- */

enum gsas_mode {			/* bits 0-7: who may access, apart from
					 * the job that owns the memory */
	GSAS_MODE_JOB	= 0,		/* no process */
	GSAS_MODE_GROUP	= 1,		/* members of the group, bits 32-63 */
	GSAS_MODE_WORLD	= 2,		/* every process */
};
#define GSAS_ATTR_MAPPED	(UINT64_C(1) << 8)	/* may be mapped */
#define GSAS_ATTR_MODE(a)	((a) & 0xff)
#define GSAS_ATTR_GROUP(a)	((uint32_t)((a) >> 32))
/* Freed when the client that allocated it ends. GSAS_MODE_JOB only; bits 32-63
 * are the client's process id as the client states it, for people to read. */
#define GSAS_ATTR_OWNED	(UINT64_C(1) << 10)
#define GSAS_ATTR_OWNER(a)	((uint32_t)((a) >> 32))

/* ---- Data in receive spaces --------------------------------------------- */

/*
 * A segment, as a client can map it: the pages of one owner with one mode. The
 * segment begins with one word for each page: 0 if the page is free, else the
 * number of the first page of its allocation in the segment. A client that has
 * mapped the segment reads the word before each access, and finds from the
 * words where an allocation ends. The words of a removed segment stay 0, so a
 * client does not mistake it for a later segment at the same addresses.
 */
struct gsas_map_info {
	uint64_t key[2];		/* struct hal_key */
	uint64_t base;			/* address of its first byte */
	uint64_t bytes;			/* a multiple of GSAS_SEGMENT */
};

#define GSAS_SEGMENT_SHIFT	20	/* alignment of segments: 1 MiB */
#define GSAS_SEGMENT		(UINT64_C(1) << GSAS_SEGMENT_SHIFT)

/* Is this description possible for a segment that contains the address:
 * aligned, around the address, inside the partition of the address's board? */
static inline bool gsas_map_info_valid(const struct gsas_map_info *info,
				       uint64_t address)
{
	uint64_t board = gsas_base((uint32_t)gsas_board_of(address));

	return info->base % GSAS_SEGMENT == 0 &&
	       info->bytes % GSAS_SEGMENT == 0 &&
	       info->base >= board && info->base <= address &&
	       info->bytes > address - info->base &&
	       info->bytes <= GSAS_OFFSET_MASK + 1 - (info->base - board);
}

/* Offset in the segment at base, in bytes, of the word of an address's page */
static inline uint64_t gsas_page_word(uint64_t base, uint64_t address)
{
	return (address - base) / GSAS_PAGE_BYTES * sizeof(uint32_t);
}

/*
 * A part of the bytes that GET or PUT copies, one request for each part. Each
 * request also names the whole, which must lie in one allocation, so that the
 * service refuses either all parts or none.
 *	arg1	0-19	bytes of the part
 *		20-63	bytes of the whole; 0: as many as the part
 *	arg2	0-31	offset of the part in the receive space
 *		32-63	where the part begins in the whole: 0 for the first
 *			part; others begin at an address that is a multiple of
 *			64, and the unit of this field is 64 bytes
 */
struct gsas_part {
	uint64_t bytes, whole;		/* size of the part and of the whole */
	uint64_t begin;			/* offset of the part in the whole */
	uint32_t off;			/* offset in the receive space */
};
#define GSAS_PART_ALIGN		64
/* Most bytes of a whole: 32 bits count units of 64 bytes, and the first unit
 * may be only partly in the whole. */
#define GSAS_WHOLE_MAX		((UINT64_C(1) << 38) - GSAS_PART_ALIGN)

static inline void gsas_part_encode(const struct gsas_part *part,
				    uint64_t address, uint64_t arg[2])
{
	uint64_t at = part->begin == 0 ? 0 :
		(part->begin + address % GSAS_PART_ALIGN) / GSAS_PART_ALIGN;

	arg[0] = part->whole << 20 | part->bytes;
	arg[1] = at << 32 | part->off;
}

/* Decode the arguments of GET or PUT. false: the part is not in the whole. */
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
	uint64_t attr;			/* of ALLOC, and GSAS_ATTR_QUEUE */
	uint32_t job;			/* number of the job that owns it */
	uint32_t clients;		/* interfaces of the job, else processes
					 * that joined it, else 1 if another
					 * process lives; 0: an orphan */
};
#define GSAS_ATTR_QUEUE		(UINT64_C(1) << 9)	/* it is a queue */
_Static_assert(sizeof(struct gsas_list_entry) == 32, "wire format");

struct gsas_stat {
	uint64_t pages, pages_max;	/* allocated; the board's limit */
	uint64_t regions, segments;
	uint64_t clients, jobs, orphans;	/* orphans: regions */
	uint64_t requests, refused;	/* so far; answered by an error */
	uint64_t sleeps, wakes;		/* of the service, so far */
	uint64_t forks;			/* processes started so far */
	uint64_t words;			/* in queues */
	uint64_t op[128];		/* requests by opcode */
	uint64_t error[16];		/* answers by error */
};
_Static_assert(sizeof(struct gsas_stat) == 13 * 8 + 128 * 8 + 16 * 8, "wire");

#endif /* GSAS_PKT_H */
