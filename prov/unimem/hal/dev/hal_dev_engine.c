/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_engine.c - the AXI CDMA engine, where its registers belong to this
 * process.
 *
 * There is one engine for the process, and one piece of a transfer in it at a
 * time: in simple mode as many bytes as BTT can count, in scatter-gather mode a
 * chain of such parts. The thread that finds a piece finished stores its result
 * into the transfer, whichever interface that belongs to, so that a thread that
 * does not poll delays no other thread. An error stops the engine until it is
 * reset [PG034, CDMASR].
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hal/dev/hal_dev_engine.h"
#include "hal/dev/hal_dev_conf.h"
#include "hal/dev/hal_dev_region.h"
#include "util/unm_clock.h"
#include "util/unm_random.h"

#define CHAIN_MAX	16u		/* descriptors of a chain */
#define RESET_POLLS	100000		/* reads until a reset has failed */
#define STUCK_NS	UINT64_C(5000000000)	/* ns a piece may take */

/* The engine: dev->engine, from dev_engine_open() to dev_engine_close(). */
struct dev_engine {
	struct hal_lock lock;		/* protects all fields below */
	struct hal_mmio *mm;		/* its own open kernel device, because
					 * another lock protects dev->mm */
	struct hal_mmio_map regs;
	struct dev_region chain;	/* descriptors; scatter-gather only */
	struct dev_xfer *current;	/* its piece is under way; NULL: none */
	uint64_t started;		/* ns: when current was started */
	uint64_t btt_max;		/* bytes that BTT can count, in whole
					 * cache lines */
	uint32_t used;			/* descriptors of the current chain */
	bool sg;			/* scatter-gather mode */
	bool broken;			/* a reset did not end */
};

/* ---- Registers --------------------------------------------------------- */

static uint32_t reg_read(struct dev_engine *e, uint32_t off)
{
	return e->regs.ops->read32(&e->regs, off);
}

static void reg_write(struct dev_engine *e, uint32_t off, uint32_t val)
{
	e->regs.ops->write32(&e->regs, off, val);
}

static void reg_write_addr(struct dev_engine *e, uint32_t off, uint64_t addr)
{
	reg_write(e, off, (uint32_t)addr);
	reg_write(e, off + 4, (uint32_t)(addr >> 32));
}

/* Reset the engine, which stops a transfer that is under way. */
static void engine_reset(struct dev_engine *e)
{
	reg_write(e, HAL_CDMA_CR, HAL_CDMA_CR_RESET);
	for (int i = 0; i < RESET_POLLS; i++)
		if (!(reg_read(e, HAL_CDMA_CR) & HAL_CDMA_CR_RESET))
			return;
	e->broken = true;
	hal_log(0, "the cDMA engine does not come out of its reset: reload "
		"the board's driver, or set engine = kernel in the platform "
		"file");
}

/* ---- Starting ---------------------------------------------------------- */

static void start_simple(struct dev_engine *e, uint64_t src, uint64_t dst,
			 uint64_t n)
{
	reg_write_addr(e, HAL_CDMA_SA, src);
	reg_write_addr(e, HAL_CDMA_DA, dst);
	e->regs.ops->memory_before_start(e->mm);
	reg_write(e, HAL_CDMA_BTT, (uint32_t)n);
}

static void put_addr(uint32_t *low, uint64_t addr)
{
	low[0] = (uint32_t)addr;
	low[1] = (uint32_t)(addr >> 32);
}

static void start_chain(struct dev_engine *e, uint64_t src, uint64_t dst,
			uint64_t n)
{
	struct hal_cdma_desc *desc = e->chain.map.base;
	uint64_t base = dev_ref_gaddr(e->chain.ref);
	uint32_t i;

	for (i = 0; n != 0; i++) {
		uint64_t part = n < e->btt_max ? n : e->btt_max;

		memset(&desc[i], 0, sizeof(desc[i]));
		put_addr(&desc[i].next, base + (i + 1) * sizeof(desc[i]));
		put_addr(&desc[i].src, src);
		put_addr(&desc[i].dst, dst);
		desc[i].control = (uint32_t)part;
		src += part;
		dst += part;
		n -= part;
	}
	e->used = i;
	e->regs.ops->memory_before_start(e->mm);
	/* SGMODE 0 makes the engine discard CURDESC of the last chain. */
	reg_write(e, HAL_CDMA_CR, 0);
	reg_write(e, HAL_CDMA_CR, HAL_CDMA_CR_SGMODE);
	reg_write_addr(e, HAL_CDMA_CURDESC, base);
	reg_write_addr(e, HAL_CDMA_TAILDESC, base + (i - 1) * sizeof(*desc));
}

/* ---- Ending ------------------------------------------------------------ */

/* Store the result of the piece that was under way. */
static void finish(struct dev_engine *e, int result)
{
	/* Pairs with the acquire in engine_results() of hal_dev_dma.c. */
	atomic_store_explicit(&e->current->result, result,
			      memory_order_release);
	e->current = NULL;
}

/* Are all descriptors of the chain marked as done? 1, 0, or -FI_EIO. */
static int chain_done(struct dev_engine *e)
{
	volatile struct hal_cdma_desc *desc = e->chain.map.base;

	for (uint32_t i = 0; i < e->used; i++) {
		uint32_t status = desc[i].status;

		if (status & HAL_CDMA_DESC_ERRORS)
			return -FI_EIO;
		if (!(status & HAL_CDMA_DESC_DONE))
			return 0;
	}
	return 1;
}

/* Check whether the piece is over. The lock is held. */
static void check_piece(struct dev_engine *e)
{
	uint32_t status;
	int done = 0;

	if (e->current == NULL)
		return;
	status = reg_read(e, HAL_CDMA_SR);
	/* Descriptors are read after the status, and so is the transferred
	 * data by the thread that acquires the result. */
	if (status & HAL_CDMA_SR_IDLE)
		e->regs.ops->status_before_memory(e->mm);
	if (status & HAL_CDMA_SR_ERRORS)
		done = -FI_EIO;
	else if (status & HAL_CDMA_SR_IDLE)
		done = e->sg ? chain_done(e) : 1;
	if (done == 0 && unm_now_ns() - e->started > STUCK_NS)
		done = -FI_EIO;
	if (done < 0) {
		hal_log(0, "a transfer of %llu bytes failed, cDMA status 0x%x",
			(unsigned long long)e->current->chunk, status);
		engine_reset(e);
	}
	if (done != 0)
		finish(e, done);
}

/* ---- For hal_dev_dma.c ------------------------------------------------- */

int dev_engine_start(struct hal_dev *dev, struct dev_xfer *x, uint64_t src,
		     uint64_t dst, uint64_t max)
{
	struct dev_engine *e = dev->engine;
	uint64_t n = x->d.len - x->moved;
	uint64_t limit = e->sg ? CHAIN_MAX * e->btt_max : e->btt_max;
	int ret = -EAGAIN;

	if (limit > max)
		limit = max;
	if (n > limit)
		n = limit;
	hal_lock(&e->lock);
	check_piece(e);
	if (e->broken) {
		ret = -EIO;
	} else if (e->current == NULL) {
		e->current = x;
		e->started = unm_now_ns();
		x->chunk = n;
		if (e->sg)
			start_chain(e, src, dst, n);
		else
			start_simple(e, src, dst, n);
		ret = 0;
	}
	hal_unlock(&e->lock);
	return ret;
}

void dev_engine_poll(struct hal_dev *dev)
{
	hal_lock(&dev->engine->lock);
	check_piece(dev->engine);
	hal_unlock(&dev->engine->lock);
}

void dev_engine_cancel(struct hal_dev *dev, struct dev_xfer *x)
{
	struct dev_engine *e = dev->engine;

	hal_lock(&e->lock);
	check_piece(e);
	if (e->current == x) {
		engine_reset(e);
		finish(e, -FI_ECANCELED);
	}
	hal_unlock(&e->lock);
}

/* ---- Opening ----------------------------------------------------------- */

static int claim_engine(struct hal_dev *dev, struct dev_engine *e)
{
	struct hal_kdev_engine k = { 0 };
	int ret;

	ret = dev->io->ioctl(e->mm, HAL_KDEV_IO_ENGINE, &k);
	if (ret == 0 && (k.btt_bits < HAL_CDMA_BTT_BITS_MIN ||
			 k.btt_bits > HAL_CDMA_BTT_BITS_MAX))
		ret = -ENODEV;
	if (ret != 0) {
		hal_log(0, "cannot have the cDMA engine of board %u: %s: set "
			"engine = kernel in the platform file",
			dev->info.board, ret == -EBUSY ?
			"another process has it" : ret == -ENODEV ?
			"the driver does not offer it" : strerror(-ret));
		return -FI_ENODEV;
	}
	ret = dev->io->map(e->mm, hal_kdev_off(HAL_KDEV_CDMA, 0),
			   HAL_CDMA_BYTES, &e->regs);
	if (ret != 0) {
		dev_explain_map(dev, HAL_KDEV_CDMA, ret);
		return -FI_ENODEV;
	}
	/* Whole lines, so that later pieces are aligned like the first. */
	e->btt_max = (UINT64_C(1) << k.btt_bits) - HAL_LINE;
	return 0;
}

int dev_engine_open(struct hal_dev *dev)
{
	struct dev_engine *e = calloc(1, sizeof(*e));
	int ret;

	if (e == NULL) {
		hal_log(0, "no memory for the cDMA engine");
		return -FI_ENOMEM;
	}
	e->sg = dev->platform.engine == HAL_ENGINE_SG;
	ret = dev->io->open(&dev->platform, dev->platform.board, &e->mm);
	if (ret != 0) {
		ret = dev_explain_open(dev, dev->platform.board, ret);
		goto err_free;
	}
	ret = claim_engine(dev, e);
	if (ret != 0)
		goto err_close;
	engine_reset(e);
	if (e->broken || (e->sg && !(reg_read(e, HAL_CDMA_SR) &
				     HAL_CDMA_SR_SGINCLD))) {
		if (!e->broken)
			hal_log(0, "the cDMA engine of board %u was built "
				"without scatter-gather: set engine = simple "
				"in the platform file", dev->info.board);
		ret = -FI_ENODEV;
		goto err_unmap;
	}
	if (e->sg)
		ret = dev_region_alloc(e->mm, dev->info.board, DEV_PAGE,
				       unm_random(), 0, &e->chain);
	if (ret != 0) {
		hal_log(0, "no memory for the cDMA engine's descriptors on "
			"board %u: %s", dev->info.board, strerror(-ret));
		goto err_unmap;
	}
	dev->engine = e;
	return 0;

err_unmap:
	dev->io->unmap(&e->regs);
err_close:
	dev->io->close(e->mm);
err_free:
	free(e);
	return ret;
}

void dev_engine_close(struct hal_dev *dev)
{
	struct dev_engine *e = dev->engine;

	dev_region_drop(&e->chain);
	dev->io->unmap(&e->regs);
	dev->io->close(e->mm);
	free(e);
}
