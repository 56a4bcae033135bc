/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_state.h - what the processes of a model share: one sealed segment
 * per board. Private to hal_sim*.c.
 *
 * A process may be killed or stopped at any instruction. Three schemes keep
 * that from blocking or corrupting others:
 *
 *   blocks   packets move by operations that anybody may finish for anybody
 *            (hal_sim_box.c): every step is a compare and swap that fails if it
 *            was done before, so that a helper who comes late does no harm
 *   driver   tables are changed under one lock word that names its holder; who
 *            finds the holder dead takes it over and rebuilds from the holds
 *            of living files what counts and maps are derived from them
 *   stores   a buffered store is carried out by one who writes his name on it,
 *            and again by another if he is dead, or stopped for seconds
 *
 * A name is an owner word: index of a process and its generation. The process
 * lives while it has the lock on its byte of the first board's segment; the
 * kernel drops that at its end, however it ends. A generation is odd while its
 * process takes that place.
 *
 * What this cannot do: a process that is stopped, not killed, while it has the
 * driver's lock holds up who wants it until it goes on, one that is stopped
 * while it joins who wants to join: ten seconds, and then he is told. A real
 * driver runs where nobody can stop it; here nothing tells a stopped process
 * from a slow one, and to take its lock from it would corrupt. One that is
 * stopped for seconds in the very copy of a store, 64 bytes at most, has the
 * rest of it still to do when it goes on: old bytes may then come over newer
 * ones, at that place only.
 */
#ifndef HAL_SIM_STATE_H
#define HAL_SIM_STATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "hal/dev/hal_kdev.h"
#include "hal/dev/hal_regs.h"

#define SIM_MAGIC	UINT32_C(0x4d534e55)	/* "UNSM" */
#define SIM_VERSION	6u		/* raise when a layout below changes */

#define SIM_PARTS	512u		/* processes of a model */
#define SIM_FILES	512u		/* open files of a board's device */
#define SIM_HOLDS	4096u		/* of a file */
#define SIM_REGIONS	8192u		/* of a board */
#define SIM_POSTS	16u		/* stores a file may have buffered */
#define SIM_FIFO_MAX	1024u		/* words */
#define SIM_LINE	64u

/* Where things are in the 34 bits of a board. */
#define SIM_VMBOX_BASE	UINT64_C(0x40000000)	/* BASE_DEST */
#define SIM_MEM_BASE	(UINT64_C(1) << 32)
#define SIM_MEM_MAX	(UINT64_C(12) << 30)
#define SIM_PAGE	4096u
#define SIM_PAGES_MAX	(SIM_MEM_MAX / SIM_PAGE)
_Static_assert(SIM_MEM_BASE + SIM_MEM_MAX <= HAL_GADDR_LOCAL_MASK + 1,
	       "memory has local addresses");
_Static_assert((SIM_VMBOX_BASE & ~HAL_DEST_BASE_MASK) == 0, "33:18");

/* Of FI_UNIMEM_SIM: hal_sim.c has names, ranges and defaults. */
struct sim_params {
	long world;
	long boards;
	long ifs;
	long fifo;			/* words of a FIFO */
	long pairs;			/* freed words are seen by twos */
	long mem;			/* MiB of a board */
	long xfers;			/* outstanding per file */
	long btt;			/* bits of BTT */
	long sg;			/* engine is built with it */
	long seed;
	long tick;			/* ns per access; 0: the host's clock */
	long delay;			/* ns, packet on its way, at most */
	long ack;			/* ns, until acknowledged, at most */
	long prep;			/* PEND is set in preparation, too */
	long illegal;			/* ILLEGAL stays until the next packet
					 * is transmitted */
	long reorder;			/* of 1000 stores, held back */
	long route;			/* ns to set up a route */
	long dma;			/* ns per 4 KiB moved */
	long slverr;			/* of 1000 transfers, fail */
	int engine;			/* enum hal_platform_engine */
	int empty;			/* enum sim_empty */
	int mutant;			/* enum sim_mutant */
	long any;			/* every board's device may be opened */
	long depth;			/* for struct hal_platform */
	long space;
};

/* What an empty FIFO returns. */
enum sim_empty { SIM_EMPTY_BEAF, SIM_EMPTY_BEEF };

/* What real blocks never do; tests must notice. */
enum sim_mutant {
	SIM_MUTANT_NONE = 0,
	SIM_MUTANT_NONACK,		/* a refused packet is acknowledged */
	SIM_MUTANT_TWICE,		/* a transfer's end is told twice */
	SIM_MUTANT_EARLY,		/* it is told before data is there */
	SIM_MUTANT_FORGED,		/* another identity is stamped */
};

/* How the rest of the machine finds a board that is dead. */
enum sim_death {
	SIM_LIVES = 0,
	SIM_DEAD_ABORTS,		/* the network answers in its place: bus
					 * errors, NACK */
	SIM_DEAD_SILENT,		/* nothing answers: packets stay PEND */
};

/* ---- Blocks ------------------------------------------------------------ */

/*
 * A packet, or a word written to a mailbox page, on its way. Its owner fills
 * in w, fifo and words and publishes it by state; from then on until PEND is
 * gone they do not change.
 */
struct sim_op {
	_Atomic uint64_t state;		/* number << 8 | HAL_PIF_* */
	_Atomic uint64_t at;		/* what was decided: sim_at() */
	_Atomic uint64_t due;		/* ns: not in its FIFO before */
	_Atomic uint64_t ack_due;	/* ns: PEND until then */
	_Atomic uint64_t w[HAL_PKT_WORDS];
	_Atomic uint32_t fifo;		/* board << 8 | interface */
	_Atomic uint32_t words;		/* 16 bytes each */
} __attribute__((aligned(SIM_LINE)));

struct sim_pif {
	struct sim_op op;
	_Atomic uint64_t reg[2 * HAL_PIF_WRITES];
	_Atomic uint32_t written;	/* bit per register */
};

/*
 * A cell is the lap of its FIFO in the upper half, data in the lower: a write
 * that comes late finds the lap and does nothing. Four cells are a word.
 */
#define SIM_CELLS	4u
struct sim_fifo {
	_Atomic uint64_t head __attribute__((aligned(SIM_LINE)));
	_Atomic uint64_t tail __attribute__((aligned(SIM_LINE)));
	_Atomic uint64_t cur;		/* operation in progress, or 0 */
	_Atomic uint64_t expect;	/* bit per board: it has sent here */
	_Atomic uint64_t event;		/* name of the socket to signal */
	_Atomic uint32_t armed;
	_Atomic uint32_t arms;		/* number of the last, of any holder */
	_Atomic uint64_t cell[SIM_FIFO_MAX * SIM_CELLS]
		__attribute__((aligned(SIM_LINE)));
};

/* Registers of the engine: whoever has it claimed, or nobody. */
struct sim_cdma {
	uint32_t cr, sr;
	uint64_t cur, tail;		/* descriptors */
	uint64_t sa, da;
	uint32_t btt;
	uint32_t busy;			/* a transfer is under way */
	uint64_t desc;			/* its descriptor, 0: simple mode */
	uint64_t src, dst, left, due;	/* of the transfer under way */
	uint64_t late_src, late_dst, late;	/* SIM_MUTANT_EARLY */
	uint32_t fail;			/* HAL_CDMA_SR_* it will end with */
	uint32_t untold;		/* what it did is over, SR was not
					 * read since */
};

/* ---- Driver ------------------------------------------------------------ */

struct sim_iface {
	_Atomic uint32_t file;		/* 1 + index of the holder's, 0: free */
	uint32_t incarnation;
};

enum sim_region_state { SIM_REGION_FREE, SIM_REGION_BUSY, SIM_REGION_LIVE };

struct sim_region {
	_Atomic uint32_t state;		/* BUSY: being made by its file */
	uint32_t holds;
	_Atomic uint64_t ref;
	uint64_t secret;
	uint64_t pages;
	_Atomic uint64_t maker;		/* owner word of who allocated it */
	uint32_t maker_board, maker_file;
	_Atomic uint32_t kept;		/* its allocator holds it */
	uint32_t uid;
	uint64_t identity, nonce;	/* of its file's interface, or 0 */
};

enum sim_hold_flags {
	SIM_HOLD_MAKER = 1,		/* of who allocated it */
	SIM_HOLD_GIVEN = 2,		/* by who allocated it, for us */
	SIM_HOLD_ROUTING = 4,		/* its route is being set up */
	SIM_HOLD_DROPPED = 8,		/* there are mappings left */
};

struct sim_hold {
	_Atomic uint64_t ref;		/* 0: free entry */
	_Atomic uint64_t bytes;
	uint64_t due;			/* ns, of the route */
	uint32_t region;
	_Atomic uint16_t flags;
	uint16_t maps;
};

/* A store that was accepted and is not visible yet. */
enum { SIM_POST_FREE = 0, SIM_POST_FULL = 1 };	/* else who carries it out */
#define SIM_NAME_BITS	48		/* above his name: which time he does */
struct sim_post {
	_Atomic uint64_t state;
	_Atomic uint64_t born;		/* ns */
	uint64_t gaddr;
	uint32_t len;
	uint32_t pad;
	uint8_t data[SIM_LINE];
};

struct sim_file {
	_Atomic uint64_t owner;		/* owner word of its process, 0: free */
	_Atomic uint32_t xfers;		/* transfers outstanding */
	_Atomic uint32_t nholds;	/* entries ever used */
	uint32_t claimed;		/* 1 + its interface, 0: none */
	struct sim_post post[SIM_POSTS];
	struct sim_hold hold[SIM_HOLDS];
};

/* Of the first board's segment only. */
struct sim_common {
	_Atomic uint64_t lock;		/* owner word of the holder, 0: free */
	_Atomic uint64_t clock;		/* ns, if params.tick */
	_Atomic uint64_t part[SIM_PARTS];	/* generations */
};

struct sim_board {
	_Atomic uint32_t magic;
	uint32_t version;
	struct sim_params params;
	struct sim_common common;
	_Atomic uint32_t death;		/* enum sim_death */
	_Atomic uint64_t died;		/* ns of the host's clock */
	struct hal_kdev_entry table[HAL_REG_IFS]
		__attribute__((aligned(SIM_PAGE)));
	/* TIF */
	_Atomic uint64_t pid[HAL_REG_IFS];
	_Atomic uint64_t base_dest, pid_conf;
	struct sim_pif pif[HAL_REG_IFS];
	struct sim_op mif[HAL_REG_IFS];	/* words written to mailbox pages */
	struct sim_fifo fifo[HAL_REG_IFS];
	struct sim_cdma cdma;
	_Atomic uint32_t engine;	/* 1 + index of the file that has it */
	/* driver */
	struct sim_iface iface[HAL_REG_IFS];
	_Atomic uint64_t posting[SIM_FILES / 64];	/* files with stores */
	uint32_t gen;			/* of the last allocation */
	uint32_t nregions;		/* entries ever used */
	uint64_t next_page;		/* where to look for free ones */
	struct sim_region region[SIM_REGIONS];
	struct sim_file file[SIM_FILES];
	_Atomic uint64_t used[SIM_PAGES_MAX / 64];	/* bit per page */
	uint16_t first[SIM_PAGES_MAX];	/* 1 + region that begins there */
};

/* Memory follows the state. */
#define SIM_ALIGN	((size_t)1 << 21)
#define SIM_STATE_BYTES							\
	((sizeof(struct sim_board) + SIM_ALIGN - 1) & ~(SIM_ALIGN - 1))

#endif /* HAL_SIM_STATE_H */
