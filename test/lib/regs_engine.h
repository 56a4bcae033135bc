/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * regs_engine.h - the cDMA engine of a register model, for test_regs_dma.c and
 * test_regs_bus.c
 */
#ifndef REGS_ENGINE_H
#define REGS_ENGINE_H

#include "lib/regs_fixture.h"

#define KIB	1024u

/* The engine of board 0, which this program has claimed, from engine() to
 * engine_close(). */
struct engine {
	struct hal_mmio *mm;		/* open file of the driver */
	struct hal_mmio_map regs;
	struct memory s, d;		/* 64 KiB of board 0, 64 KiB of board
					 * 1 */
};

static inline uint32_t reg(const struct engine *e, uint32_t off)
{
	uint32_t val = io->read32(&e->regs, off);

	io->status_before_memory(e->mm);
	return val;
}

static inline void set(const struct engine *e, uint32_t off, uint32_t val)
{
	io->memory_before_start(e->mm);
	io->write32(&e->regs, off, val);
}

static inline void set_addr(const struct engine *e, uint32_t off,
			    uint64_t addr)
{
	set(e, off, (uint32_t)addr);
	set(e, off + 4, (uint32_t)(addr >> 32));
}

static inline void reset(const struct engine *e)
{
	set(e, HAL_CDMA_CR, HAL_CDMA_CR_RESET);
	while (reg(e, HAL_CDMA_CR) & HAL_CDMA_CR_RESET)
		;
}

static inline struct engine engine(const char *sim)
{
	struct engine e = { .mm = device(sim, 0) };
	struct hal_kdev_engine k;

	assert_int_equal(kdev(e.mm, HAL_KDEV_IO_ENGINE, &k), 0);
	assert_int_equal(io->map(e.mm, hal_kdev_off(HAL_KDEV_CDMA, 0),
				 HAL_CDMA_BYTES, &e.regs), 0);
	reset(&e);
	e.s = memory(e.mm, 0, 64 * KIB);
	e.d = memory(e.mm, 1, 64 * KIB);
	fill(e.s.map.base, 64 * KIB, 3);
	return e;
}

static inline void engine_close(struct engine *e)
{
	memory_free(&e->s);
	memory_free(&e->d);
	io->unmap(&e->regs);
	io->close(e->mm);
}

/* Wait until the engine is idle; returns the status register. */
static inline uint32_t idle(const struct engine *e)
{
	uint32_t sr;

	while (!((sr = reg(e, HAL_CDMA_SR)) & HAL_CDMA_SR_IDLE))
		;
	return sr;
}

/* Execute a transfer; returns the status register after it. */
static inline uint32_t simple(const struct engine *e, uint64_t src,
			      uint64_t dst, uint32_t n)
{
	set_addr(e, HAL_CDMA_SA, src);
	set_addr(e, HAL_CDMA_DA, dst);
	set(e, HAL_CDMA_BTT, n);
	return idle(e);
}

#define CHAIN	8u

/* Descriptors at the end of the source's memory: pieces of 100 bytes. */
static inline struct hal_cdma_desc *chain(struct engine *e, uint64_t *base)
{
	struct hal_cdma_desc *d = (void *)((char *)e->s.map.base + 60 * KIB);

	*base = e->s.gaddr + 60 * KIB;
	memset(d, 0, CHAIN * sizeof(*d));
	for (uint64_t i = 0; i < CHAIN; i++) {
		uint64_t next = *base + (i + 1) * sizeof(*d);
		uint64_t src = e->s.gaddr + i * 333, dst = e->d.gaddr + i * 100;

		d[i].next = (uint32_t)next;
		d[i].next_msb = (uint32_t)(next >> 32);
		d[i].src = (uint32_t)src;
		d[i].src_msb = (uint32_t)(src >> 32);
		d[i].dst = (uint32_t)dst;
		d[i].dst_msb = (uint32_t)(dst >> 32);
		d[i].control = 100;
	}
	memset(e->d.map.base, 0, 64 * KIB);
	return d;
}

/* Execute the chain up to this descriptor; returns the status register. */
static inline uint32_t run(struct engine *e, uint64_t base, uint32_t last)
{
	set(e, HAL_CDMA_CR, HAL_CDMA_CR_SGMODE);
	set_addr(e, HAL_CDMA_CURDESC, base);
	set_addr(e, HAL_CDMA_TAILDESC,
		 base + last * sizeof(struct hal_cdma_desc));
	return idle(e);
}

#endif /* REGS_ENGINE_H */
