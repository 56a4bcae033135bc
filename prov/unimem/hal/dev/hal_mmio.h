/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_mmio.h - the seam between the device backend and what it drives.
 *
 * hal_dev*.c touches registers, remote memory and the kernel device through
 * this table only, never by a pointer of its own. There are two
 * implementations: hal_mmio_dev.c is the silicon (volatile accesses, the
 * machine's barriers, system calls), hal_sim*.c a model of it. An indirect call
 * is nothing beside the access.
 *
 * One struct hal_mmio is one open kernel device; one thread at a time uses it
 * and its maps, different ones are independent. No call blocks but as
 * hal_kdev.h says. A forked child may only close (unmap and free what is
 * private), which leaves the parent's untouched; maps are not inherited.
 *
 * What may be reordered (docs/hal.md, section 13):
 *   - Register accesses of one map happen in program order, each once.
 *   - Stores into remote memory are posted: accepted at once, visible later, in
 *     any order, but stores of one map to the same 8 bytes stay in order. An
 *     aligned store of 8 bytes is never torn. All are visible in the end,
 *     without further calls, also if the process ends.
 *   - Nothing orders posted stores against packets or transfers but
 *     stores_before_notify(), nothing orders transfers against packets but
 *     waiting for their completion.
 *   - Memory of the own board is mapped cached and coherent with what arrives:
 *     use it as ordinary shared memory, with acquire loads. Nothing orders it
 *     against registers and store() but the barriers below: the register
 *     access that sends a packet is ordered after the other register accesses
 *     of its page, not after ordinary stores that the packet tells of.
 */
#ifndef HAL_MMIO_H
#define HAL_MMIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "hal/hal.h"
#include "hal/dev/hal_kdev.h"
#include "hal/dev/hal_regs.h"

struct hal_mmio_ops;

/* ---- Platform ---------------------------------------------------------- */

enum hal_platform_engine {
	HAL_ENGINE_KERNEL = 0,	/* write() and read() of the kernel device */
	HAL_ENGINE_SIMPLE,	/* engine registers, one transfer at a time */
	HAL_ENGINE_SG,		/* engine registers, descriptor chains */
};

/* A block that is not mapped through the kernel device. */
struct hal_platform_block {
	char node[64];		/* UIO or memory device; "": kernel device */
	uint64_t base;		/* offset of the block in it */
};

/*
 * What there is and where, from the platform file (docs/porting.md) or made up
 * by the model. Counts of 0: as the kernel device says.
 */
struct hal_platform {
	char node[64];		/* kernel device; "%u": the board's number */
	struct hal_platform_block mif, pif, cdma;
	uint32_t boards, board;	/* board UINT32_MAX: as the device says */
	uint32_t pkt_depth;	/* packets per peer, 2^n; 0: by the FIFO */
	uint32_t space_bytes;	/* receive space per peer */
	enum hal_platform_engine engine;
};

/* ---- Maps -------------------------------------------------------------- */

/* A mapped range: registers, a table, memory of some board. */
struct hal_mmio_map {
	const struct hal_mmio_ops *ops;
	struct hal_mmio *mm;
	void *base;		/* own board's memory: use it; else hands off */
	size_t len;
	uint64_t last;		/* offset of the last word that was stored to:
				 * where a read-back looks */
	void *impl;		/* the implementation's */
};

struct hal_mmio {
	const struct hal_mmio_ops *ops;
	uint32_t board;		/* whose device this is */
};

/* ---- The table --------------------------------------------------------- */

struct hal_mmio_ops {
	const char *backend;	/* caps.backend: "dev", "sim" */
	const char *profile;	/* caps.profile: "board", "model" */

	/* What is there? 0, or -FI_EINVAL after a line that names file, line
	 * and what is allowed. */
	int (*probe)(const struct hal_params *params,
		     struct hal_platform *platform);
	/*
	 * Open the kernel device of a board. Errors are negative errno values;
	 * the caller says what is missing. -ENODEV: another board's cannot be
	 * reached from here.
	 */
	int (*open)(const struct hal_platform *platform, uint32_t board,
		    struct hal_mmio **mm);
	/* All maps must be unmapped. Returns what was claimed and held. */
	void (*close)(struct hal_mmio *mm);

	/* ---- kernel device: as hal_kdev.h; 0 or bytes, or -errno */
	int (*ioctl)(struct hal_mmio *mm, unsigned long cmd, void *arg);
	ssize_t (*write)(struct hal_mmio *mm, const void *buf, size_t len);
	ssize_t (*read)(struct hal_mmio *mm, void *buf, size_t len);
	/*
	 * After CLAIM: a descriptor that becomes readable when a packet comes
	 * after ARM; read() of 8 bytes takes the signal, nothing blocks. It
	 * belongs to mm and is closed with it. Or -errno.
	 */
	int (*event_fd)(struct hal_mmio *mm);
	/* off: hal_kdev_off() or a map_off; len: whole pages. The caller says
	 * what failed. */
	int (*map)(struct hal_mmio *mm, uint64_t off, size_t len,
		   struct hal_mmio_map *map);
	void (*unmap)(struct hal_mmio_map *map);

	/* ---- registers: one access of exactly that width, aligned. w[0] is
	 * the lower half of 16 bytes. */
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

	/* ---- store(): memory of another board (or of the own); any length and
	 * alignment; aligned 8 bytes in one piece. load(): the same, and
	 * tables; loads see own stores only after stores_before_notify(). The
	 * backend loads from tables only, which are in the own board's memory:
	 * a load from a dead board might never end. */
	void (*store)(struct hal_mmio_map *map, uint64_t off, const void *src,
		      size_t len);
	void (*load)(const struct hal_mmio_map *map, uint64_t off, void *dst,
		     size_t len);

	/* ---- barriers, by use */

	/*
	 * Every earlier store() of this open device to the board of map is
	 * visible there when this returns 0: before a packet that names them.
	 * This loads from that board, the only call that does. -EIO: the bus
	 * reported an error, the board does not answer. A load without any
	 * answer is the interconnect's to end (docs/porting.md, section 6).
	 */
	int (*stores_before_notify)(const struct hal_mmio_map *map);
	/*
	 * Earlier ordinary stores to own memory (data to send, descriptors)
	 * are visible to the engine that a following register write or
	 * write() starts, and to whoever is told by a packet that is sent
	 * after this. One is due before each such start: the model ends a
	 * process that forgets it.
	 */
	void (*memory_before_start)(struct hal_mmio *mm);
	/*
	 * Ordinary loads after this see what the engine, or another board, had
	 * written before a status, packet or table entry that was read before
	 * this. One is due after each packet and each end of a transfer: the
	 * model ends a process that goes on without it.
	 */
	void (*status_before_memory)(struct hal_mmio *mm);
	/* Earlier ordinary loads are over before a store() after this tells
	 * that what they read may be overwritten. */
	void (*loads_before_store)(struct hal_mmio *mm);
};

extern const struct hal_mmio_ops hal_mmio_dev_ops;	/* hal_mmio_dev.c */
extern const struct hal_mmio_ops hal_sim_mmio_ops;	/* hal_sim.c */

#endif /* HAL_MMIO_H */
