/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_state.h - the memory that the processes of a register model share: a
 * sealed segment per board. Private to hal_sim*.c.
 *
 * A process may be killed or stopped at any instruction. Three schemes keep it
 * from blocking other processes or corrupting their data:
 *
 *   blocks   A packet moves by an operation that any process may finish for any
 *            other (hal_sim_box.c). Each step is a compare-and-swap that fails
 *            if the step was done before, so that a late helper does no harm.
 *   driver   Its tables are changed under one lock word that names the holder.
 *            A process that finds the holder dead takes the lock over, and
 *            derives counts and maps anew from the holds of living files.
 *   stores   A process that carries out a buffered store writes its name on it
 *            first. If that process is dead, or stopped for seconds, another
 *            one carries out the store again.
 *
 * One robust mutex would do for the driver only. The kernel passes such a mutex
 * on when its holder ends, but not while its holder is stopped, and a stopped
 * process must delay neither packets nor stores of other processes
 * (docs/hal.md, 4.6; hal_mmio.h). So these two are under no lock. A step of a
 * packet may be done by several processes, because cells and FIFOs know their
 * lap: any process helps at once. The copy of a store may not, because done
 * late it overwrites newer bytes: so one process has it, and is replaced only
 * if it is dead, or stopped for seconds. The driver changes tables of many
 * words at once, which no helper can finish: these need a lock. Its word is an
 * owner word, not a robust mutex, because files, interfaces and regions need
 * the check whether an owner is alive as well (sim_alive()). Transfers and the
 * engine need no scheme: they belong to one process and end with it.
 *
 * A name is an owner word: the index of a process and its generation. A process
 * is alive while it has the file lock on its byte of the first board's segment;
 * the kernel releases the lock at its end, in whichever way it ends. A
 * generation is odd while its process joins.
 *
 * Limits: a process that is stopped (not killed) while it has the driver's lock
 * blocks processes that need the lock until it continues. A process that is
 * stopped while it joins makes others fail to join after ten seconds. A real
 * driver runs where no process can stop it; here a stopped process cannot be
 * distinguished from a slow one, and to take its lock would corrupt the tables.
 * A process that is stopped for seconds in the copy of a buffered store (at
 * most 64 bytes) continues that copy later: old bytes may then overwrite newer
 * ones in these 64 bytes.
 */
#ifndef HAL_SIM_STATE_H
#define HAL_SIM_STATE_H

#include <stdatomic.h>
#include <stdint.h>

#include "hal/dev/hal_kdev.h"
#include "hal/dev/hal_regs.h"
#include "hal/hal_time.h"

#define SIM_MAGIC	UINT32_C(0x4d534e55)	/* "UNSM" */
#define SIM_VERSION	9u		/* of the layouts below: raise it when
					 * one changes */

#define SIM_PARTS	512u		/* processes of a model */
#define SIM_FILES	512u		/* open files of a board's device */
#define SIM_HOLDS	4096u		/* holds of an open file */
#define SIM_REGIONS	8192u		/* allocations of a board */
#define SIM_POSTS	24u		/* buffered stores of an open file */
#define SIM_FIFO_MAX	1024u		/* words of a FIFO */
#define SIM_BURST_MAX	8u		/* words of a burst */
#define SIM_LINE	64u

/* Layout of the 34-bit address space of a board. */
#define SIM_VMBOX_BASE	UINT64_C(0x40000000)	/* BASE_DEST */
#define SIM_MEM_BASE	(UINT64_C(1) << 32)
#define SIM_MEM_MAX	(UINT64_C(12) << 30)
#define SIM_PAGE	4096u
#define SIM_PAGES_MAX	(SIM_MEM_MAX / SIM_PAGE)
_Static_assert(SIM_MEM_BASE + SIM_MEM_MAX <= HAL_GADDR_LOCAL_MASK + 1,
	       "memory has local addresses");
_Static_assert((SIM_VMBOX_BASE & ~HAL_DEST_BASE_MASK) == 0, "33:18");

/* Parameters of a model (FI_UNIMEM_SIM); hal_sim.c has names, ranges and
 * defaults. Processes share a model if all are equal. */
struct sim_params {
	long world;			/* any number; other worlds are other
					 * models */
	long boards;
	long ifs;			/* interfaces of a board */
	long fifo;			/* words of a FIFO */
	long pairs;			/* 1: writers of a FIFO see words freed
					 * in pairs only */
	long mem;			/* MiB of a board */
	long xfers;			/* transfers outstanding per file */
	long btt;			/* bits of BTT */
	long sg;			/* 1: the engine has scatter-gather */
	long seed;			/* of the random numbers */
	long tick;			/* ns per access; 0: the host's clock */
	long delay;			/* ns: longest way of a packet */
	long ack;			/* ns: longest time from there to its
					 * answer */
	long prep;			/* 1: PEND is also set while a packet is
					 * written */
	long press;			/* 1: a write to a PIF that is pending
					 * waits (back-pressure) */
	long illegal;			/* 1: ILLEGAL stays until a packet
					 * is transmitted */
	long reorder;			/* of 1000 stores, how many are held
					 * back */
	long route;			/* ns to prepare an import */
	long dma;			/* ns per 4 KiB moved */
	long slverr;			/* of 1000 transfers, how many fail */
	int engine;			/* enum hal_platform_engine */
	int empty;			/* enum sim_empty */
	int mutant;			/* enum sim_mutant */
	long any;			/* 1: the devices of other boards may be
					 * opened */
	long depth;			/* hal_platform.pkt_depth */
	long space;			/* hal_platform.space_bytes */
	long timed;			/* 1: the timing model applies */
	struct hal_model figures;	/* its figures; path is empty */
};

/* The word that an empty FIFO returns: HAL_MIF_EMPTY or HAL_MIF_EMPTY_BEEF. */
enum sim_empty { SIM_EMPTY_BEAF, SIM_EMPTY_BEEF };

/* Faults that real blocks do not have; a test must find each. */
enum sim_mutant {
	SIM_MUTANT_NONE = 0,
	SIM_MUTANT_NONACK,		/* a refused packet is acknowledged */
	SIM_MUTANT_TWICE,		/* the end of a transfer is reported
					 * twice */
	SIM_MUTANT_EARLY,		/* the end of a transfer is reported
					 * before its data has arrived */
	SIM_MUTANT_FORGED,		/* another identity is stamped */
};

/* How other boards experience a board that is dead. */
enum sim_death {
	SIM_LIVES = 0,
	SIM_DEAD_ABORTS,		/* the network answers for it by bus
					 * errors and NACK */
	SIM_DEAD_SILENT,		/* no answer: packets to it stay PEND */
};

/* ---- Blocks ------------------------------------------------------------ */

/*
 * An operation: a packet, or a burst written to a mailbox page, on its way. The
 * process that sends fills in w, fifo and words and publishes them by state;
 * they do not change until PEND is cleared. Any process may carry out the
 * steps.
 */
struct sim_op {
	_Atomic uint64_t state;		/* number << 8 | HAL_PIF_* */
	_Atomic uint64_t at;		/* decision about it: make_at() of
					 * hal_sim_box.c */
	_Atomic uint64_t due;		/* ns: does not reach its FIFO before;
					 * under the timing model it reaches
					 * the FIFO at once, and is not read
					 * before */
	_Atomic uint64_t ack_due;	/* ns: PEND is not cleared before */
	_Atomic uint64_t w[2 * SIM_BURST_MAX];
	_Atomic uint32_t fifo;		/* board << 8 | interface */
	_Atomic uint32_t words;		/* of 16 bytes each */
} __attribute__((aligned(SIM_LINE)));

/* A packetizer interface. */
struct sim_pif {
	struct sim_op op;		/* the packet in its buffer */
	_Atomic uint64_t reg[2 * HAL_PIF_WRITES];	/* as written */
	_Atomic uint32_t written;	/* bit per register of the next packet
					 * that is written */
};

/*
 * A FIFO of 16-byte words; four cells are a word. The upper half of a cell is
 * the lap of the FIFO, the lower half data: a helper that writes a cell too
 * late finds its lap there already, and writes nothing. Under the timing model
 * each word has a time of arrival too, in two cells of the same kind; without
 * the model no process touches these pages.
 */
#define SIM_CELLS	4u
#define SIM_DUE_CELLS	2u
struct sim_fifo {
	/* words read, words written; free-running */
	_Atomic uint64_t head __attribute__((aligned(SIM_LINE)));
	_Atomic uint64_t tail __attribute__((aligned(SIM_LINE)));
	_Atomic uint64_t cur;		/* operation in progress, or 0 */
	_Atomic uint64_t expect;	/* bit per board that may have sent a
					 * packet which is not here yet */
	_Atomic uint64_t event;		/* name of the socket to signal */
	_Atomic uint32_t armed;		/* number of the arming; 0: not armed */
	_Atomic uint32_t arms;		/* number of the last arming, counted
					 * over all holders */
	_Atomic uint64_t cell[SIM_FIFO_MAX * SIM_CELLS]
		__attribute__((aligned(SIM_LINE)));
	_Atomic uint64_t due[SIM_FIFO_MAX * SIM_DUE_CELLS]
		__attribute__((aligned(SIM_LINE)));	/* ns: a word is not
							 * read before */
};

/* The engine. Only the process that has claimed it accesses these. */
struct sim_cdma {
	uint32_t cr, sr;
	uint64_t cur, tail;		/* CURDESC, TAILDESC */
	uint64_t sa, da;
	uint32_t btt;
	uint32_t busy;			/* 1: a transfer is under way */
	uint64_t desc;			/* its descriptor; 0: simple mode */
	uint64_t src, dst, left, due;	/* of the transfer under way */
	uint64_t late_src, late_dst, late;	/* SIM_MUTANT_EARLY */
	uint32_t fail;			/* HAL_CDMA_SR_* at its end, or 0 */
	uint32_t unreported;		/* 1: it is over, and SR was not read
					 * since */
};

/* ---- Driver ------------------------------------------------------------ */

/* An interface at the driver. The driver's lock protects it. */
struct sim_iface {
	_Atomic uint32_t file;		/* 1 + index of the holder's open file;
					 * 0: free */
	uint32_t incarnation;		/* of the last holder, hal_id() */
};

enum sim_region_state { SIM_REGION_FREE, SIM_REGION_BUSY, SIM_REGION_LIVE };

/* Allocated memory of a board. The driver's lock protects it. */
struct sim_region {
	_Atomic uint32_t state;		/* enum sim_region_state; BUSY: its
					 * allocation is not finished */
	uint32_t holds;			/* number of holds */
	_Atomic uint64_t ref;
	uint64_t secret;
	uint64_t pages;
	_Atomic uint64_t maker;		/* owner word of the process that
					 * allocated it */
	uint32_t maker_board, maker_file;	/* and its open file */
	_Atomic uint32_t kept;		/* 1: that file still holds it */
	uint32_t uid;
	uint64_t identity, nonce;	/* of that file's interface, or 0 */
};

enum sim_hold_flags {
	SIM_HOLD_MAKER = 1,		/* of the file that allocated it */
	SIM_HOLD_GIVEN = 2,		/* given by ALLOC to a second holder */
	SIM_HOLD_ROUTING = 4,		/* the import is being prepared */
	SIM_HOLD_DROPPED = 8,		/* dropped; mappings are left */
};

/* A hold of an open file on a region. */
struct sim_hold {
	_Atomic uint64_t ref;		/* 0: free entry */
	_Atomic uint64_t bytes;
	uint64_t due;			/* ns: the import is prepared then */
	uint32_t region;		/* index at its board */
	_Atomic uint16_t flags;		/* enum sim_hold_flags */
	uint16_t maps;			/* mappings through this hold */
};

/*
 * A store that was accepted and is not visible yet. state is one of these two,
 * or the name of the process that carries it out: owner word in the lower bits,
 * above them a number that is new each time.
 */
enum { SIM_POST_FREE = 0, SIM_POST_FULL = 1 };
#define SIM_NAME_BITS	48
struct sim_post {
	_Atomic uint64_t state;
	_Atomic uint64_t born;		/* ns: when it was accepted; not under
					 * the timing model */
	_Atomic uint64_t due;		/* timing model: when it arrives, ns;
					 * different for each store of a file.
					 * Else 0 */
	uint64_t gaddr;
	uint32_t len;
	uint32_t pad;
	uint8_t data[SIM_LINE];
};

/*
 * An open file of a board's device. Its process writes it, and under the
 * driver's lock, once the process is dead, the one that takes back its entries.
 */
struct sim_file {
	_Atomic uint64_t owner;		/* owner word of its process; 0: free */
	_Atomic uint32_t xfers;		/* transfers outstanding */
	_Atomic uint32_t nholds;	/* entries ever used */
	uint32_t claimed;		/* 1 + its interface, 0: none */
	struct sim_post post[SIM_POSTS];
	struct sim_hold hold[SIM_HOLDS];
};

/* State of the whole model; in the first board's segment only. */
struct sim_common {
	_Atomic uint64_t lock;		/* of the driver: owner word of the
					 * holder; 0: free */
	_Atomic uint64_t clock;		/* ns, if params.tick */
	_Atomic uint64_t part[SIM_PARTS];	/* generation of each process */
};

/* The state of a board, at the start of its segment. */
struct sim_board {
	_Atomic uint32_t magic;		/* SIM_MAGIC, written last */
	uint32_t version;
	struct sim_params params;
	struct sim_common common;
	_Atomic uint32_t death;		/* enum sim_death */
	_Atomic uint64_t died;		/* when, ns of the host's clock */
	struct hal_kdev_entry table[HAL_REG_IFS]
		__attribute__((aligned(SIM_PAGE)));
	/* trusted page: registers PID, BASE_DEST, PID_CONF */
	_Atomic uint64_t pid[HAL_REG_IFS];
	_Atomic uint64_t base_dest, pid_conf;
	struct sim_pif pif[HAL_REG_IFS];
	struct sim_op mif[HAL_REG_IFS + 1];	/* words that the holder of an
						 * interface, or last the
						 * engine, wrote to a mailbox
						 * page */
	struct sim_fifo fifo[HAL_REG_IFS];
	struct sim_cdma cdma;
	struct hal_time_engine times;	/* of the engine, under the timing
					 * model */
	_Atomic uint32_t engine;	/* 1 + index of the open file that has
					 * it; 0: free */
	/* driver */
	struct sim_iface iface[HAL_REG_IFS];
	_Atomic uint64_t posting[SIM_FILES / 64];	/* bit per open file
							 * with buffered
							 * stores */
	uint32_t gen;			/* generation of the last allocation */
	uint32_t nregions;		/* entries of region ever used */
	uint64_t next_page;		/* where the search for free pages
					 * begins */
	struct sim_region region[SIM_REGIONS];
	struct sim_file file[SIM_FILES];
	_Atomic uint64_t used[SIM_PAGES_MAX / 64];	/* bit per page */
	uint16_t first[SIM_PAGES_MAX];	/* 1 + index of the region that begins
					 * at the page */
};

/* The memory of the board follows the state in its segment. */
#define SIM_ALIGN	((size_t)1 << 21)
#define SIM_STATE_BYTES							\
	((sizeof(struct sim_board) + SIM_ALIGN - 1) & ~(SIM_ALIGN - 1))

#endif /* HAL_SIM_STATE_H */
