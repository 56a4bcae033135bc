/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_kdev.h - ABI of the kernel character device of a board.
 *
 * The papers describe what the kernel does (atomicity driver [D 2.2.4], DMA
 * buffers module [D 3.1.4], remote allocator [D 3.1.6, 3.3]) and leave the
 * layouts open; this file defines them. Where the papers give a shape, it is
 * kept: mmap() maps memory, write() of {source, destination, size, id} starts
 * transfers, read() returns an array of their statuses, and a mailbox signals
 * an event fd.
 *
 * Sizes are fixed, integers are little-endian, unused and reserved fields are
 * 0. Calls return 0 or -errno; none sleeps longer than a page fault would,
 * unless its comment says so. Interfaces, holds on memory and transfers belong
 * to the open file that they were requested through. The driver takes them back
 * when the file is closed or when the process that opened it ends, whichever is
 * first: copies of the descriptor in forked children keep nothing alive,
 * because flush() of the file sees every exit. In a forked child every call
 * fails with -EPERM.
 */
#ifndef HAL_KDEV_H
#define HAL_KDEV_H

#include <stdint.h>
#include <sys/ioctl.h>

#define HAL_KDEV_VERSION	3	/* of this file: raise it when a layout
					 * or a meaning changes */
#define HAL_KDEV_MAGIC		UINT32_C(0x564b4e55)	/* "UNKV" */
#define HAL_KDEV_NODE		"/dev/Unimem/hal"	/* the local board */

/* ---- mmap offsets ------------------------------------------------------ */

/* Bits 47:40 are the block that is mapped, 39:0 the offset in it. */
#define HAL_KDEV_OFF_SHIFT	40
enum hal_kdev_block {
	HAL_KDEV_MEM = 0,	/* memory: map_off of ALLOC or IMPORT */
	HAL_KDEV_MIF = 1,	/* + HAL_MIF_PAGE(n); for the holder of n */
	HAL_KDEV_PIF = 2,	/* + HAL_PIF_PAGE(n); for the holder of n */
	HAL_KDEV_TIF = 3,	/* trusted page; the driver maps it for no
				 * process */
	HAL_KDEV_CDMA = 4,	/* engine registers, after ENGINE */
	HAL_KDEV_TABLE = 5,	/* + 4096 * board: table of its holders,
				 * read only */
};

static inline uint64_t hal_kdev_off(enum hal_kdev_block block, uint64_t off)
{
	return (uint64_t)block << HAL_KDEV_OFF_SHIFT | off;
}

/* ---- Tables of holders: a page per board ------------------------------- */

/*
 * The table of a board has an entry for each of its interfaces. All tables that
 * a process maps are in the memory of the local board, so that a load from them
 * never leaves it. The table of another board is a copy, which the driver of
 * that board updates by remote stores. The nonce is written last on a claim and
 * cleared first on a release: an entry is consistent if its nonce is equal
 * before and after the entry is read. Once the nonce is cleared, each packet of
 * the holder is either in the FIFO that it was sent to, or lost.
 *
 * Dead boards: each driver stores a sign of life to every other driver once per
 * HAL_KDEV_BEAT_MS. A driver that has received none from a board for
 * HAL_KDEV_DEAD_MS clears all nonces in its copy of the table of that board. A
 * cleared nonce never appears again: a board that restarts has new holders.
 */
#define HAL_KDEV_BEAT_MS	50
#define HAL_KDEV_DEAD_MS	200
struct hal_kdev_entry {
	uint64_t nonce;		/* 0: free, else random, one per holder */
	uint64_t identity;	/* stamped into its packets, hal_id() */
	uint32_t uid;		/* effective user id of the holder */
	uint32_t pid;		/* process (thread group) that holds the
				 * interface, as the processes of pid_ns see
				 * it; 0: not known */
	uint64_t pid_ns;	/* inode of its pid namespace */
	uint64_t pid_start;	/* its start time, field 22 of proc(5)'s
				 * /proc/PID/stat */
	uint64_t reserved[3];
};
_Static_assert(sizeof(struct hal_kdev_entry) == 64, "64 of them are a page");

/* ---- ioctl ------------------------------------------------------------- */

/*
 * INFO: the first call after open(). magic and version are in, the rest is out.
 * -EPROTO: they differ from those of the driver, which are then filled in.
 */
struct hal_kdev_info {
	uint32_t magic, version;
	uint32_t board, boards;	/* number of this board; of boards in all */
	uint32_t ifs;		/* CLAIM gives interfaces 1 to ifs, SERVICE
				 * interface 0 */
	uint32_t fifo_words;	/* depth of a FIFO, 16-byte words, even */
	uint32_t xfer_depth;	/* transfers outstanding per open file */
	uint32_t flags;		/* enum hal_kdev_info_flags */
	uint64_t xfer_max;	/* bytes of one transfer (the BTT limit) */
	uint64_t base_dest;	/* BASE_DEST of the vmbox of every board */
	uint64_t reserved[3];
};
_Static_assert(sizeof(struct hal_kdev_info) == 72, "ABI");

enum hal_kdev_info_flags {
	HAL_KDEV_HAS_ENGINE = 1,	/* ENGINE may succeed */
	HAL_KDEV_ANY_BOARD = 2,		/* this process may open the devices of
					 * other boards (register model) */
	HAL_KDEV_BACK_PRESSURE = 4,	/* a write to a packetizer page waits
					 * while a packet is pending, and is not
					 * lost [D 5.2.4, the updated version].
					 * The library does not use it
					 * (docs/fidelity.md) */
};

/*
 * CLAIM: get a free interface of this board, the first one from hint on. Its
 * mailbox and packetizer pages can then be mapped (HAL_KDEV_MIF, _PIF). An open
 * file has at most one interface. The driver sets identity and PID_CONF, and
 * discards what a previous holder left in the FIFO and, by CLR_REQ, in the
 * packetizer. -EBUSY: no interface is free, or this file has one.
 */
struct hal_kdev_claim {
	uint32_t hint;		/* in: 1 to ifs, where the search begins */
	uint32_t iface;		/* out: number of the interface */
	uint64_t identity;	/* out, hal_id(), never 0 */
	uint64_t nonce;		/* out, never 0 */
	uint64_t reserved;
};
_Static_assert(sizeof(struct hal_kdev_claim) == 32, "ABI");

/*
 * SERVICE: get interface 0 of this board, that of its atomic service [D 2.2.3].
 * It works like CLAIM and uses the same structure; hint is 0. The driver
 * decides which users may have it, because its holder reads the requests of all
 * processes: -EACCES for other users. -EBUSY: the board has its service, or
 * this file has an interface. -ENOTTY: the driver keeps interface 0 to itself.
 */

/*
 * RELEASE (no argument): give back the interface of this file. The driver
 * clears the entry in the table after the pending packet of the packetizer was
 * sent or refused, which takes microseconds. A packet of which only some
 * registers are written is cleared (CLR_REQ), because it may read as PEND for
 * ever. Mappings of both pages are revoked before another process can claim
 * them: the next access raises SIGBUS, also in a forked child. Closing the file
 * does the same.
 */

/*
 * CLEAR (no argument): discard the pending packet of the packetizer of this
 * file's interface (CLR_REQ). Afterwards PEND is 0, and ACK and NACK mean
 * nothing. The packet may have been delivered. Without this call a packet to a
 * board that does not answer would occupy the one buffer of the packetizer for
 * ever. -EINVAL: the file has no interface.
 */

/*
 * EVENT: set the event fd that the driver signals when packets arrive; -1
 * removes it. ARM (no argument): signal it once, at the next packet, or now if
 * the FIFO is not empty. Without ARM there is no signal.
 */
struct hal_kdev_event {
	int32_t fd;
	uint32_t reserved;
};
_Static_assert(sizeof(struct hal_kdev_event) == 8, "ABI");

/*
 * A reference names memory. Bits 39:0 are the global address of its first byte,
 * bits 63:40 the generation of the allocation at that address, so that no two
 * regions ever have the same reference.
 */
#define HAL_KDEV_REF_GEN_SHIFT	40

/*
 * ALLOC: get contiguous, non-swappable, zeroed memory of a board, in whole
 * pages [D 3.3]. The caller holds it. If to is not 0, the interface with that
 * identity is a second holder: it finds the memory by IMPORT and drops it by
 * DROP, and its release drops it too. Memory is freed when its last hold and
 * its last mapping are gone, and is not reused before. A mapping of local
 * memory is ordinary cached memory; a mapping of another board's is Device
 * memory, for store() and load() of hal_mmio.h only. -ENOMEM: none left there;
 * -EINVAL: no such board, or 0 bytes; -ESRCH: no interface has the identity to;
 * -EHOSTDOWN: the board does not answer, reported after HAL_KDEV_DEAD_MS at the
 * latest.
 */
struct hal_kdev_alloc {
	uint64_t bytes;		/* in; out: rounded up */
	uint64_t secret;	/* in: IMPORT must give the same */
	uint64_t to;		/* in: identity of a second holder, or 0 */
	uint32_t board;		/* in: number of the board */
	uint32_t hold;		/* out: the caller's hold, for DROP, never 0 */
	uint64_t ref;		/* out: reference */
	uint64_t map_off;	/* out: mmap offset, HAL_KDEV_MEM */
};
_Static_assert(sizeof(struct hal_kdev_alloc) == 48, "ABI");

/*
 * IMPORT: hold memory that a process of the same user has allocated, named by
 * reference and secret, and make it reachable for the local engine. The latter
 * takes more than 10 us [O 2.1]; meanwhile the result is -EAGAIN, with hold
 * set: call again with that hold, or DROP it.
 *
 * A call with hold 0 begins an import. The first import of memory that was
 * allocated for this interface takes over the hold that ALLOC gave it; each
 * further import has a hold of its own, even while others are unfinished. Each
 * hold needs one DROP. A call that fails does not change hold, which stays the
 * caller's.
 *
 * -ESTALE: no such reference, wrong secret, or the allocator has dropped the
 * memory and the caller has no hold; -EINVAL: hold is neither 0 nor that of an
 * unfinished import of this reference; -EACCES: another user's memory; -ENOSPC:
 * the engine can reach no more imports; -EHOSTDOWN: as for ALLOC.
 */
struct hal_kdev_import {
	uint64_t ref, secret;	/* in */
	uint64_t reserved;
	uint64_t bytes;		/* out: size of the memory */
	uint64_t map_off;	/* out: mmap offset, HAL_KDEV_MEM */
	uint64_t owner;		/* out: identity of the interface that
				 * allocated it; 0: the file had none */
	uint64_t owner_nonce;	/* out: nonce of that interface */
	uint32_t owner_uid;	/* out: its effective user id */
	uint32_t hold;		/* in: 0, or that of an unfinished import;
				 * out: the hold */
};
_Static_assert(sizeof(struct hal_kdev_import) == 64, "ABI");

/*
 * CHECK: does the allocator still hold the memory of this hold? 0, or -ESTALE.
 * DROP: give up a hold; transfers that use the memory must be over.
 */
struct hal_kdev_hold {
	uint32_t hold;
	uint32_t reserved;
};
_Static_assert(sizeof(struct hal_kdev_hold) == 8, "ABI");

/*
 * CANCEL: end a transfer of this file, or with id 0 all of them. The call
 * returns at once or after the time of one transfer; after 100 ms the driver
 * resets the engine. Then the transfer moves no more bytes and read() returns
 * its status. The result is 0 also if there is no such transfer.
 */
struct hal_kdev_cancel {
	uint64_t id;
};

/*
 * ENGINE: get the cDMA engine of the board for this process alone; its
 * registers can then be mapped (HAL_KDEV_CDMA). Meanwhile write() fails with
 * -EBUSY for all processes. -EBUSY: another process has the engine, or
 * transfers of write() are under way; -ENODEV: the driver does not offer the
 * engine.
 */
struct hal_kdev_engine {
	uint32_t btt_bits;	/* out: a transfer has less than 2^btt_bits
				 * bytes */
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
 * write() of an array of these structures starts transfers in that order [D
 * 3.1.4]. It returns the number of bytes of the structures that it accepted, or
 * -EAGAIN if it accepted none because xfer_depth transfers are outstanding. src
 * and dst are global addresses of any alignment, in memory of any boards that
 * this process holds, else -EFAULT. size is 1 to xfer_max, else -EINVAL. A
 * transfer from or to a board that does not answer ends as HAL_KDEV_FAILED
 * within HAL_KDEV_DEAD_MS, by a reset of the engine if needed; other transfers
 * continue.
 */
struct hal_kdev_xfer {
	uint64_t src, dst;
	uint64_t size;
	uint64_t id;		/* chosen by the caller, not 0 */
};
_Static_assert(sizeof(struct hal_kdev_xfer) == 32, "ABI");

/* States of a transfer [D 3.4.1]; read() returns the last three only. */
enum hal_kdev_state {
	HAL_KDEV_PENDING = 0,
	HAL_KDEV_STARTED = 1,
	HAL_KDEV_COMPLETED = 2,
	HAL_KDEV_FAILED = 3,
	HAL_KDEV_CANCELLED = 4,	/* not in the paper */
};

/*
 * read() returns the statuses of transfers that have ended, each once, in the
 * order of their ends, as many as fit; -EAGAIN if there is none. It never
 * blocks. The data of a completed transfer is visible at its destination.
 */
struct hal_kdev_status {
	uint64_t id;
	uint32_t state;		/* enum hal_kdev_state */
	uint32_t error;		/* HAL_CDMA_SR_ERRORS if state is FAILED */
};
_Static_assert(sizeof(struct hal_kdev_status) == 16, "ABI");

#endif /* HAL_KDEV_H */
