/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_mmio.h - the interface between the device backend and the hardware that
 * it drives: registers, remote memory, the kernel device of a board.
 *
 * hal_dev*.c reaches all of these through struct hal_mmio_ops only, never by a
 * pointer of its own. There are two implementations: hal_mmio_dev.c is the
 * silicon (volatile accesses, barriers of the processor, system calls), and
 * hal_sim*.c is a register model of it. The time of an indirect call is small
 * beside that of an access to the hardware.
 *
 * A struct hal_mmio is an open kernel device. One thread at a time uses it and
 * its maps; different open devices are independent. No call blocks, except as
 * hal_kdev.h says. A forked child does not inherit maps. It may only close the
 * device, which frees the child's private memory and leaves the parent's device
 * open.
 *
 * Order of accesses (docs/hal.md, section 13):
 *   - Register accesses through one map happen in program order, each once.
 *   - Stores into remote memory are posted: they are accepted at once and
 *     become visible later, in any order. Only stores through one map to the
 *     same 8 bytes stay in order. An aligned store of 8 bytes is never torn.
 *     All stores become visible in the end, without further calls, even if the
 *     process ends.
 *   - Only stores_before_notify() orders posted stores before packets and
 *     transfers. Only the wait for its completion orders a transfer before a
 *     packet.
 *   - Memory of the local board is mapped cached, and coherent with the data
 *     that arrives: use it as ordinary shared memory, with acquire loads. Only
 *     the barriers below order it with registers and store(). The register
 *     access that sends a packet is ordered after other register accesses of
 *     its page, but not after ordinary stores that the packet announces.
 */
#ifndef HAL_MMIO_H
#define HAL_MMIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hal/hal_param.h"
#include "hal/dev/hal_kdev.h"
#include "hal/dev/hal_regs.h"

struct hal_mmio_ops;

/* ---- Platform ---------------------------------------------------------- */

enum hal_platform_engine {
	HAL_ENGINE_KERNEL = 0,	/* the driver: write() and read() */
	HAL_ENGINE_SIMPLE,	/* engine registers, one transfer at a time */
	HAL_ENGINE_SG,		/* engine registers, descriptor chains */
};

/* Where a register block is mapped from. */
struct hal_platform_block {
	char node[64];		/* UIO or memory device; "": the kernel
				 * device */
	uint64_t base;		/* offset of the block in node, bytes */
};

/*
 * The hardware and where it is, from the platform file (docs/porting.md) or
 * from the register model. Numbers of 0 mean: as the kernel device says.
 */
struct hal_platform {
	char node[64];		/* kernel device; "%u" stands for the number
				 * of the board */
	struct hal_platform_block mif, pif, cdma;
	uint32_t boards;	/* number of boards to use */
	uint32_t board;		/* number of the local board; UINT32_MAX: as
				 * the kernel device says */
	uint32_t pkt_depth;	/* packets per peer, a power of two; 0: by the
				 * depth of the FIFO */
	uint32_t space_bytes;	/* receive space per peer */
	enum hal_platform_engine engine;
	bool timed;		/* register model: under the timing model */
};

/* ---- Maps -------------------------------------------------------------- */

/* A mapped range: registers, a table of holders, or memory of a board. The
 * caller owns the structure; map() fills it in, unmap() clears it. */
struct hal_mmio_map {
	const struct hal_mmio_ops *ops;
	struct hal_mmio *mm;	/* device it was mapped through; NULL: none */
	void *base;		/* memory of the local board may be accessed
				 * here; other ranges only by the calls below */
	size_t len;		/* bytes */
	uint64_t last;		/* offset of the 8 bytes that were stored to
				 * last: stores_before_notify() reads them */
	void *impl;		/* private to the implementation */
};

/* An open kernel device; the first member of the implementation's object. */
struct hal_mmio {
	const struct hal_mmio_ops *ops;
	uint32_t board;		/* number of its board */
};

/* ---- The table --------------------------------------------------------- */

struct hal_mmio_ops {
	const char *backend;	/* caps.backend: "dev", "sim" */
	const char *profile;	/* caps.profile: "board", "model" */

	/* Find out what hardware there is. Returns 0, or -FI_EINVAL after a
	 * log line that names file, line and what is allowed. */
	int (*probe)(const struct hal_params *params,
		     struct hal_platform *platform);
	/*
	 * Open the kernel device of a board. Returns 0 or a negative errno
	 * value, which the caller logs. -ENODEV: the device of that board
	 * cannot be opened on this board.
	 */
	int (*open)(const struct hal_platform *platform, uint32_t board,
		    struct hal_mmio **mm);
	/* Close the device. All maps must be unmapped. The driver takes back
	 * the interface and the holds of the device. */
	void (*close)(struct hal_mmio *mm);

	/* ---- Kernel device: calls of hal_kdev.h. They return 0, or the number
	 * of bytes, or -errno. */
	int (*ioctl)(struct hal_mmio *mm, unsigned long cmd, void *arg);
	ssize_t (*write)(struct hal_mmio *mm, const void *buf, size_t len);
	ssize_t (*read)(struct hal_mmio *mm, void *buf, size_t len);
	/*
	 * After CLAIM: an event fd that becomes readable when a packet arrives
	 * after ARM. read() of 8 bytes clears it and does not block. It belongs
	 * to mm, and close() closes it. Returns -errno on failure.
	 */
	int (*event_fd)(struct hal_mmio *mm);
	/* Map a range. off is hal_kdev_off() or a map_off of the driver, len a
	 * number of whole pages. The caller logs a failure. */
	int (*map)(struct hal_mmio *mm, uint64_t off, size_t len,
		   struct hal_mmio_map *map);
	void (*unmap)(struct hal_mmio_map *map);

	/* ---- Registers: one aligned access of exactly that width. off is in
	 * bytes; w[0] is the lower half of 16 bytes. */
	uint32_t (*read32)(const struct hal_mmio_map *map, uint32_t off);
	void (*write32)(const struct hal_mmio_map *map, uint32_t off,
			uint32_t val);
	uint64_t (*read64)(const struct hal_mmio_map *map, uint32_t off);
	void (*write64)(const struct hal_mmio_map *map, uint32_t off,
			uint64_t val);
	void (*read128)(const struct hal_mmio_map *map, uint32_t off,
			uint64_t w[2]);
	void (*write128)(const struct hal_mmio_map *map, uint32_t off,
			 const uint64_t w[2]);

	/* ---- Memory of any board: any length and alignment; 8 aligned bytes
	 * are one access. load() also reads tables of holders. It sees earlier
	 * stores of this device only after stores_before_notify(). The backend
	 * loads from tables only, which are in the memory of the local board:
	 * a load from a dead board might never end. */
	void (*store)(struct hal_mmio_map *map, uint64_t off, const void *src,
		      size_t len);
	void (*load)(const struct hal_mmio_map *map, uint64_t off, void *dst,
		     size_t len);

	/* ---- Barriers, named after their use */

	/*
	 * Wait until every earlier store() of this device to the board of map
	 * is visible there; due before a packet that announces the data. It
	 * loads from that board, as no other call does. Returns 0, or -EIO if
	 * the bus reported an error because the board does not answer. The
	 * interconnect must end a load that gets no answer at all
	 * (docs/porting.md, section 6).
	 */
	int (*stores_before_notify)(const struct hal_mmio_map *map);
	/*
	 * Make earlier ordinary stores to local memory (data to send,
	 * descriptors, stores through a window) visible to the engine that a
	 * following register write or write() starts, and to the receiver of a
	 * packet that is sent, or of a back word that is stored, afterwards. A
	 * call is due before each such start: the register model ends a process
	 * that omits it.
	 */
	void (*memory_before_start)(struct hal_mmio *mm);
	/*
	 * Let following ordinary loads see the data that the engine, or another
	 * board, had written before the status, packet or table entry that was
	 * read before this call. A call is due after each packet and each end
	 * of a transfer: the register model ends a process that omits it.
	 */
	void (*status_before_memory)(struct hal_mmio *mm);
	/* Complete earlier ordinary loads before a following store() announces
	 * that the memory that they read may be overwritten. */
	void (*loads_before_store)(struct hal_mmio *mm);
};

extern const struct hal_mmio_ops hal_mmio_dev_ops;	/* hal_mmio_dev.c */
extern const struct hal_mmio_ops hal_sim_mmio_ops;	/* hal_sim.c */

#endif /* HAL_MMIO_H */
