/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_kdev.h - ABI of the kernel character device of a board.
 *
 * The papers describe what the kernel does (atomicity driver [D 2.2.4], DMA
 * buffers module [D 3.1.4], remote allocator [D 3.1.6, 3.3]) and leave layouts
 * open; this one is ours. Published shapes are kept where there are any: mmap
 * maps memory, write() of {source, destination, size, id} starts transfers,
 * read() returns a buffer of their statuses, a mailbox wakes by eventfd.
 *
 * Sizes are fixed, integers little-endian, unused and reserved fields 0.
 * Calls return 0 or -errno; none sleeps longer than a page fault would, except
 * as said. Whatever a process got, interfaces, holds on memory, transfers,
 * belongs to the open file it was asked for by, and goes back when that is
 * closed or when the process that opened it ends, whichever is first:
 * descriptors in forked children keep nothing alive (flush() of the file sees
 * every exit). In a forked child every call gives -EPERM.
 */
#ifndef HAL_KDEV_H
#define HAL_KDEV_H

#include <stdint.h>
#include <sys/ioctl.h>

#define HAL_KDEV_VERSION	2	/* raise it when a layout or a meaning
					 * changes */
#define HAL_KDEV_MAGIC		UINT32_C(0x564b4e55)	/* "UNKV" */
#define HAL_KDEV_NODE		"/dev/Unimem/hal"	/* of the own board */

/* ---- mmap offsets ------------------------------------------------------ */

/* What is mapped: 47:40 the block, below it the offset in it. */
#define HAL_KDEV_OFF_SHIFT	40
enum hal_kdev_block {
	HAL_KDEV_MEM = 0,	/* memory: map_off of an alloc or import */
	HAL_KDEV_MIF = 1,	/* + HAL_MIF_PAGE(n); the claimant's only */
	HAL_KDEV_PIF = 2,	/* + HAL_PIF_PAGE(n); the claimant's only */
	HAL_KDEV_TIF = 3,	/* trusted page: the driver's, nobody's else */
	HAL_KDEV_CDMA = 4,	/* engine registers, after HAL_KDEV_ENGINE */
	HAL_KDEV_TABLE = 5,	/* + 4096 * board: its table, read only */
};

static inline uint64_t hal_kdev_off(enum hal_kdev_block block, uint64_t off)
{
	return (uint64_t)block << HAL_KDEV_OFF_SHIFT | off;
}

/* ---- Who holds which interface: a page per board ----------------------- */

/*
 * A page per board, in the memory of the own board: reading one never leaves
 * the board. The page of another board is a copy, which that board's driver
 * keeps by remote stores into the memory of every other board, never by loads.
 * nonce is written last on claim and cleared first on release; an entry is
 * consistent if nonce is the same before and after. When it is cleared, every
 * packet of the holder is either in the FIFO it was sent to or will never be.
 *
 * Dead boards: each driver stores a sign of life to every other one in each
 * HAL_KDEV_BEAT_MS. A driver that has seen none of a board for HAL_KDEV_DEAD_MS
 * clears all nonces in its copy of that board's page. A nonce that was cleared
 * is never shown again: a board that comes back has new holders.
 */
#define HAL_KDEV_BEAT_MS	50
#define HAL_KDEV_DEAD_MS	200
struct hal_kdev_entry {
	uint64_t nonce;		/* 0: free, else random, one per holder */
	uint64_t identity;	/* as stamped, hal_id() */
	uint32_t uid;		/* effective user id of the holder */
	uint32_t reserved0;
	uint64_t reserved[5];
};
_Static_assert(sizeof(struct hal_kdev_entry) == 64, "64 of them are a page");

/* ---- ioctl ------------------------------------------------------------- */

/*
 * INFO: first call after open(). magic and version are in, the rest out;
 * -EPROTO with the driver's own magic and version filled in if they differ.
 */
struct hal_kdev_info {
	uint32_t magic, version;
	uint32_t board, boards;	/* own number, number in the system */
	uint32_t ifs;		/* interfaces 1 .. ifs can be claimed, and 0
				 * by SERVICE */
	uint32_t fifo_words;	/* depth of a FIFO, 16-byte words, even */
	uint32_t xfer_depth;	/* transfers outstanding per open file */
	uint32_t flags;		/* enum hal_kdev_info_flags */
	uint64_t xfer_max;	/* bytes of one transfer (the BTT limit) */
	uint64_t base_dest;	/* BASE_DEST of every board's vmbox */
	uint64_t reserved[3];
};
_Static_assert(sizeof(struct hal_kdev_info) == 72, "ABI");

enum hal_kdev_info_flags {
	HAL_KDEV_HAS_ENGINE = 1,	/* HAL_KDEV_ENGINE may work */
	HAL_KDEV_ANY_BOARD = 2,		/* other boards' devices may be opened
					 * by this process (the model) */
};

/*
 * CLAIM: an interface (its mailbox and packetizer pages, HAL_KDEV_MIF and _PIF
 * to be mapped) of this board, from hint on. At most one per open file.
 * Identity and PID_CONF are set, what was left in the FIFO is thrown away and
 * so is a half-written packet (CLR_REQ). -EBUSY: all are taken, or this file
 * has one.
 */
struct hal_kdev_claim {
	uint32_t hint;		/* in: 1 .. ifs, where to begin to look */
	uint32_t iface;		/* out */
	uint64_t identity;	/* out, hal_id(), never 0 */
	uint64_t nonce;		/* out, never 0 */
	uint64_t reserved;
};
_Static_assert(sizeof(struct hal_kdev_claim) == 32, "ABI");

/*
 * SERVICE: interface 0 of this board, its atomic service's [D 2.2.3], as CLAIM
 * hands out the others and in the same structure; hint is 0. Who may ask is for
 * the driver to say: -EACCES for others, as whoever has it reads what all ask
 * of the service. -EBUSY: the board has its service, or this file has an
 * interface. A driver that does not hand it out knows no such call: -ENOTTY.
 */

/*
 * RELEASE (no argument): give it back, whichever it is. What the packetizer has
 * pending is sent or refused before the table's entry is cleared (bounded:
 * microseconds); a packet of which only some registers are written is cleared
 * (CLR_REQ), as it may read as PEND for ever. Mappings of both pages are
 * revoked before anybody can claim them: the next access is a SIGBUS, of a
 * forked child too. Closing the file does the same.
 */

/*
 * CLEAR (no argument): drop what the packetizer of the file's interface has
 * pending (CLR_REQ). Afterwards PEND is 0; ACK and NACK may be anything. It is
 * not known whether the packet was taken. For a packet to a board that does not
 * answer, which would keep the one buffer of the packetizer for ever. -EINVAL:
 * the file has no interface.
 */

/*
 * EVENT: an eventfd that is signalled when packets come, -1: none any more.
 * ARM (no argument): signal it once, at the next enqueue, or now if the FIFO is
 * not empty. Signals that nobody armed do not come.
 */
struct hal_kdev_event {
	int32_t fd;
	uint32_t reserved;
};
_Static_assert(sizeof(struct hal_kdev_event) == 8, "ABI");

/*
 * Memory is named by a reference: global address of its first byte in bits
 * 39:0, generation of the allocation at that address in 63:40, so that no
 * reference is ever that of another region.
 */
#define HAL_KDEV_REF_GEN_SHIFT	40

/*
 * ALLOC: contiguous, non-swappable, zeroed memory of a board, whole pages
 * [D 3.3]. The caller holds it, and if to is not 0, that interface too: it may
 * find it by IMPORT and drop it by DROP, and its end drops it. Memory goes when
 * its last hold and last mapping are gone; until then it is nobody else's.
 * -ENOMEM: none left there; -EINVAL: no such board, or 0 bytes; -ESRCH: nobody
 * with the identity to; -EHOSTDOWN: the board does not answer, which the driver
 * says after HAL_KDEV_DEAD_MS at the latest. Mapped, memory of the own board is
 * ordinary cached memory, that of another one Device memory: for store() and
 * load() only.
 */
struct hal_kdev_alloc {
	uint64_t bytes;		/* in; out: rounded up */
	uint64_t secret;	/* in: an import must know it */
	uint64_t to;		/* in: identity of a second holder, or 0 */
	uint32_t board;		/* in */
	uint32_t hold;		/* out: for DROP, never 0 */
	uint64_t ref;		/* out */
	uint64_t map_off;	/* out: mmap offset, HAL_KDEV_MEM */
};
_Static_assert(sizeof(struct hal_kdev_alloc) == 48, "ABI");

/*
 * IMPORT: hold a region of anyone of the same user, by reference and secret,
 * and register its route with the local engine (more than 10 us, [O 2.1]):
 * -EAGAIN while that goes on: ask again with the hold that is out then too, or
 * DROP it. With hold 0 an import begins: the first one of an allocation for
 * this interface takes the hold it was given, each further one has a hold of
 * its own, whether others are finished or not: to every hold its DROP. What
 * fails leaves hold as it was, and the caller's. -ESTALE: no such reference,
 * wrong secret, or its allocator has dropped it and the caller held nothing;
 * -EINVAL: hold is not 0, nor that of an import of this reference which goes
 * on; -EACCES: another user's; -ENOSPC: no more routes; -EHOSTDOWN: as ALLOC.
 */
struct hal_kdev_import {
	uint64_t ref, secret;	/* in */
	uint64_t reserved;
	uint64_t bytes;		/* out */
	uint64_t map_off;	/* out: mmap offset, HAL_KDEV_MEM */
	uint64_t owner;		/* out: identity of the allocating file's
				 * interface, 0: it has none */
	uint64_t owner_nonce;	/* out: and its nonce */
	uint32_t owner_uid;	/* out */
	uint32_t hold;		/* in: 0, or of the import that goes on; out */
};
_Static_assert(sizeof(struct hal_kdev_import) == 64, "ABI");

/*
 * CHECK: is it still held by its allocator? 0, or -ESTALE. DROP: give up a
 * hold; transfers that use it must be over.
 */
struct hal_kdev_hold {
	uint32_t hold;
	uint32_t reserved;
};
_Static_assert(sizeof(struct hal_kdev_hold) == 8, "ABI");

/*
 * CANCEL: a transfer of this file, or with id 0 all. Back at once or after the
 * time of one transfer (at most 100 ms: then the engine is reset); afterwards
 * it moves nothing any more and its status can be read. 0 also if there is no
 * such transfer.
 */
struct hal_kdev_cancel {
	uint64_t id;
};

/*
 * ENGINE: the cDMA engine for this process alone, its registers to be mapped as
 * HAL_KDEV_CDMA. The kernel path is then closed to everybody (-EBUSY of write).
 * -EBUSY: somebody has it, or the kernel path has work; -ENODEV: not offered.
 */
struct hal_kdev_engine {
	uint32_t btt_bits;	/* out: a transfer has less than 2^this bytes */
	uint32_t flags;		/* reserved */
};
_Static_assert(sizeof(struct hal_kdev_engine) == 8, "ABI");

#define HAL_KDEV_IO_INFO	_IOWR('U', 0x80, struct hal_kdev_info)
#define HAL_KDEV_IO_CLAIM	_IOWR('U', 0x81, struct hal_kdev_claim)
#define HAL_KDEV_IO_RELEASE	_IO('U', 0x82)
#define HAL_KDEV_IO_EVENT	_IOW('U', 0x83, struct hal_kdev_event)
#define HAL_KDEV_IO_ARM		_IO('U', 0x84)
#define HAL_KDEV_IO_ALLOC	_IOWR('U', 0x85, struct hal_kdev_alloc)
#define HAL_KDEV_IO_IMPORT	_IOWR('U', 0x86, struct hal_kdev_import)
#define HAL_KDEV_IO_CHECK	_IOW('U', 0x87, struct hal_kdev_hold)
#define HAL_KDEV_IO_DROP	_IOW('U', 0x88, struct hal_kdev_hold)
#define HAL_KDEV_IO_CANCEL	_IOW('U', 0x89, struct hal_kdev_cancel)
#define HAL_KDEV_IO_ENGINE	_IOWR('U', 0x8a, struct hal_kdev_engine)
#define HAL_KDEV_IO_SERVICE	_IOWR('U', 0x8b, struct hal_kdev_claim)
#define HAL_KDEV_IO_CLEAR	_IO('U', 0x8c)

/* ---- Transfers: write() and read() ------------------------------------- */

/*
 * write() of an array of these starts transfers in that order [D 3.1.4]; it
 * returns the bytes of those it took, or -EAGAIN if it took none because
 * xfer_depth are outstanding. src and dst are global addresses, both inside
 * memory this process holds, on any boards: -EFAULT otherwise; size is 1 to
 * xfer_max: -EINVAL. Any alignment is good. A transfer from or to a board that
 * does not answer ends as HAL_KDEV_FAILED within HAL_KDEV_DEAD_MS, by a reset
 * of the engine if need be; the others go on.
 */
struct hal_kdev_xfer {
	uint64_t src, dst;
	uint64_t size;
	uint64_t id;		/* the caller's, not 0 */
};
_Static_assert(sizeof(struct hal_kdev_xfer) == 32, "ABI");

/* The states of [D 3.4.1]; read() tells the last two, and cancelled. */
enum hal_kdev_state {
	HAL_KDEV_PENDING = 0,
	HAL_KDEV_STARTED = 1,
	HAL_KDEV_COMPLETED = 2,
	HAL_KDEV_FAILED = 3,
	HAL_KDEV_CANCELLED = 4,	/* ours */
};

/*
 * read() returns as many of these as have ended and fit, each once, in the
 * order they ended; -EAGAIN if there is none. Never blocks. A completed one's
 * data is visible at its destination.
 */
struct hal_kdev_status {
	uint64_t id;
	uint32_t state;		/* enum hal_kdev_state */
	uint32_t error;		/* HAL_CDMA_SR_ERRORS of a failed one */
};
_Static_assert(sizeof(struct hal_kdev_status) == 16, "ABI");

#endif /* HAL_KDEV_H */
