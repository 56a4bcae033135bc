/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regs_fixture.h - a register model and one interface of it, for test_regs*.c
 *
 * The tests use the operations of the model (hal/sim/hal_sim.h) without the
 * device backend. Each test program has a model of its own, which it shares
 * with the children that it forks.
 */
#ifndef REGS_FIXTURE_H
#define REGS_FIXTURE_H

#include "hal/hal_types.h"
#include "hal/sim/hal_sim.h"
#include "hal/sim/hal_sim_join.h"
#include "hal/sim/hal_sim_kdev.h"
#include "lib/unit.h"

#define BOARDS	2

/* An interface that was claimed, and its mapped register pages. The test holds
 * it by value, from iface() to iface_close(). */
struct iface {
	struct hal_mmio *mm;		/* open file of the driver */
	struct hal_kdev_claim c;	/* number and identity */
	struct hal_mmio_map mif, pif, tif;	/* mailbox, packetizer, trusted
						 * page */
};

static const struct hal_mmio_ops *const io = &hal_sim_mmio_ops;
static const char *regs_figures;	/* file of the timing model's figures;
					 * NULL: no timing model */

/* The number of this test program's model, for FI_UNIMEM_SIM. It is the process
 * id of the first caller; children that are forked later inherit it. */
static inline int regs_model(void)
{
	static int world;

	if (world == 0)
		world = (int)getpid();
	return world;
}

/* UNIT_MAIN() that calls regs_model() first. */
#define REGS_MAIN(...)							\
	int main(void)							\
	{								\
		const struct CMUnitTest tests[] = { __VA_ARGS__ };	\
									\
		regs_model();						\
		return unit_run(tests);					\
	}

/* Describe the model. more: further options in the format of FI_UNIMEM_SIM. */
static inline struct hal_platform model(const char *more)
{
	struct hal_params params = { .boards = BOARDS, .board = 0 };
	struct hal_platform pf;

	snprintf(params.sim, sizeof(params.sim), "world=%d,mem=16,%s",
		 regs_model(), more);
	if (regs_figures != NULL)
		snprintf(params.model, sizeof(params.model), "%s",
			 regs_figures);
	assert_int_equal(io->probe(&params, &pf), 0);
	return pf;
}

/* Open the driver's file of a board. */
static inline struct hal_mmio *device(const char *more, uint32_t board)
{
	struct hal_platform pf = model(more);
	struct hal_mmio *mm = NULL;

	assert_int_equal(io->open(&pf, board, &mm), 0);
	return mm;
}

static inline int kdev(struct hal_mmio *mm, unsigned long cmd, void *arg)
{
	return io->ioctl(mm, cmd, arg);
}

/* Claim an interface by this ioctl, and map its pages; iface() claims one of
 * any number. */
static inline struct iface iface_by(unsigned long cmd, const char *more,
				    uint32_t board)
{
	struct iface b = { .mm = device(more, board),
			 .c = { .hint = cmd == HAL_KDEV_IO_CLAIM } };

	assert_int_equal(kdev(b.mm, cmd, &b.c), 0);
	assert_int_equal(io->map(b.mm, hal_kdev_off(HAL_KDEV_MIF,
			 HAL_MIF_PAGE(b.c.iface)), HAL_REG_PAGE, &b.mif), 0);
	assert_int_equal(io->map(b.mm, hal_kdev_off(HAL_KDEV_PIF,
			 HAL_PIF_PAGE(b.c.iface)), HAL_REG_PAGE, &b.pif), 0);
	hal_sim_trusted(b.mm, &b.tif);
	return b;
}

static inline struct iface iface(const char *more, uint32_t board)
{
	return iface_by(HAL_KDEV_IO_CLAIM, more, board);
}

static inline void iface_close(struct iface *b)
{
	io->unmap(&b->mif);
	io->unmap(&b->pif);
	io->close(b->mm);
}

/* The destination of packets to an interface. */
static inline uint64_t dest_of(const struct iface *to)
{
	return hal_dest(hal_id_board(to->c.identity), to->c.iface,
			SIM_VMBOX_BASE);
}

/* Start a packet with three register writes; its contents derive from word. The
 * model reports an error if the barrier before the start is missing, or the one
 * after reading a packet (take_word()). */
static inline void put_packet(const struct iface *b, uint64_t dest,
			      uint64_t word)
{
	const uint64_t p0[2] = { hal_head(1, 2) | HAL_ID_MASK, word };
	const uint64_t p1[2] = { ~word, word * 3 };
	const uint64_t da[2] = { dest, 0 };

	io->write128(&b->pif, HAL_PIF_PAYLOAD0, p0);
	io->write128(&b->pif, HAL_PIF_PAYLOAD1, p1);
	io->memory_before_start(b->mm);
	io->write128(&b->pif, HAL_PIF_DEST, da);
}

/* The status register of the packetizer. */
static inline uint32_t status_of(const struct iface *b)
{
	uint64_t w[2];

	io->read128(&b->pif, HAL_PIF_STATUS, w);
	assert_true((w[0] & ~(uint64_t)HAL_PIF_STATUS_MASK) == 0 && w[1] == 0);
	return (uint32_t)w[0];
}

/* Wait until the packet is not pending any more; returns the status. */
static inline uint32_t settled(const struct iface *b)
{
	uint32_t status;

	while ((status = status_of(b)) & HAL_PIF_PEND)
		;
	return status;
}

/* Send a packet; returns the status. */
static inline uint32_t send_packet(const struct iface *b,
				   const struct iface *to, uint64_t word)
{
	put_packet(b, dest_of(to), word);
	return settled(b);
}

/* Read 16 bytes of the mailbox. Returns false if the mailbox is empty. */
static inline bool take_word(const struct iface *b, uint64_t w[2])
{
	io->read128(&b->mif, HAL_MIF_DATA, w);
	io->status_before_memory(b->mm);
	return w[0] != HAL_MIF_EMPTY || w[1] != HAL_MIF_EMPTY;
}

/* Read a packet from the mailbox. Returns whether it is the packet that
 * put_packet(from, ..., word) sent. */
static inline bool take_packet(const struct iface *b, const struct iface *from,
			       uint64_t word)
{
	uint64_t w[4];

	return take_word(b, &w[0]) && take_word(b, &w[2]) &&
	       w[0] == (hal_head(1, 2) | from->c.identity) && w[1] == word &&
	       w[2] == ~word && w[3] == word * 3;
}

/* ---- Memory ------------------------------------------------------------ */

/* Memory of a board, from memory() to memory_free(). */
struct memory {
	struct hal_kdev_alloc a;	/* the driver's answer */
	struct hal_mmio_map map;	/* mapping of all bytes */
	uint64_t gaddr;			/* global address */
};

/* Allocate and map memory of a board. */
static inline struct memory memory(struct hal_mmio *mm, uint32_t board,
				   uint64_t bytes)
{
	struct memory m = { .a = { .bytes = bytes, .secret = 7,
				   .board = board } };

	assert_int_equal(kdev(mm, HAL_KDEV_IO_ALLOC, &m.a), 0);
	assert_int_equal(io->map(mm, m.a.map_off, m.a.bytes, &m.map), 0);
	m.gaddr = m.a.ref & HAL_GADDR_MASK;
	return m;
}

static inline void memory_free(struct memory *m)
{
	struct hal_kdev_hold h = { .hold = m->a.hold };
	struct hal_mmio *mm = m->map.mm;

	io->unmap(&m->map);
	assert_int_equal(kdev(mm, HAL_KDEV_IO_DROP, &h), 0);
}

/* Fill n bytes with the pattern of a seed, or return whether they hold it. */
static inline void fill(void *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		((uint8_t *)p)[i] = (uint8_t)(unit_random(&seed) >> 56);
}

static inline bool filled(const void *p, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++)
		if (((const uint8_t *)p)[i] !=
		    (uint8_t)(unit_random(&seed) >> 56))
			return false;
	return true;
}

/* ---- Resources of processes that were killed ---------------------------- */

/* Drop every hold of an interface: those that killed processes gave it. */
static inline void drop_gifts(const struct iface *heir)
{
	struct sim_file *f = sim_mm(heir->mm)->f;

	for (uint32_t i = 0; i < atomic_load(&f->nholds); i++) {
		struct hal_kdev_hold h = { .hold = i + 1 };

		if (atomic_load(&f->hold[i].ref) != 0)
			assert_int_equal(kdev(heir->mm, HAL_KDEV_IO_DROP, &h),
					 0);
	}
}

/* Reap the killed processes as the driver does, and check that no page, region
 * or interface is in use any more but the interface heir, and that the model's
 * lock is free. */
static inline void expect_nothing_left(const struct iface *heir)
{
	struct sim_world *w = sim_mm(heir->mm)->w;

	for (uint32_t b = 0; b < BOARDS; b++) {
		for (uint32_t i = 0; i < SIM_FILES; i++) {
			uint64_t owner = atomic_load(
				&w->board[b]->file[i].owner);

			if (owner == 0 || sim_alive(w, owner))
				continue;
			sim_lock(w);
			sim_reap(w, owner);
			sim_unlock(w);
		}
	}
	drop_gifts(heir);
	for (uint32_t b = 0; b < BOARDS; b++) {
		struct sim_board *board = w->board[b];

		for (uint32_t i = 0; i < board->nregions; i++)
			assert_int_equal(board->region[i].state,
					 SIM_REGION_FREE);
		for (uint64_t i = 0; i < w->mem_bytes / SIM_PAGE / 64; i++)
			assert_true(atomic_load(&board->used[i]) == 0);
		for (uint32_t n = 0; n < HAL_REG_IFS; n++)
			assert_true((board->iface[n].file != 0) ==
				    (b == 1 && n == heir->c.iface));
	}
}

#endif /* REGS_FIXTURE_H */
