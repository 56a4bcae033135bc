/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_cdma.c - the registers of the AXI CDMA engine [PG034].
 *
 * The engine belongs to one process at a time, and moves bytes when that
 * process accesses one of its registers. An access that the guide forbids ends
 * the process (sim_misuse()).
 */
#define _GNU_SOURCE
#include <string.h>

#include "hal/sim/hal_sim_cdma.h"
#include "hal/sim/hal_sim_box.h"
#include "hal/sim/hal_sim_check.h"
#include "hal/sim/hal_sim_join.h"
#include "hal/sim/hal_sim_mem.h"

#define STEP		65536u		/* bytes moved by an access */
#define BEAT		HAL_MIF_WORD	/* bytes that the bus is wide */
#define RESET_CR	UINT32_C(0x00010000)	/* threshold 1 */
#define CR_HOLES	(HAL_CDMA_CR_HOLE_RD | HAL_CDMA_CR_HOLE_WR)
#define CR_WRITABLE	(HAL_CDMA_CR_SGMODE | CR_HOLES | HAL_CDMA_CR_IOC_EN | \
			 HAL_CDMA_CR_DLY_EN | HAL_CDMA_CR_ERR_EN |	\
			 UINT32_C(0xFFFF0000))
#define SR_IRQS		(HAL_CDMA_SR_IOC_IRQ | HAL_CDMA_SR_DLY_IRQ |	\
			 HAL_CDMA_SR_ERR_IRQ)
#define ADDR_LOW	UINT64_C(0xFFFFFFFF)
#define UPPER_HALF	4u		/* bit in the offset of a register that
					 * holds half of an address */

void sim_cdma_reset(struct sim_world *w, struct sim_board *b)
{
	struct sim_cdma *c = &b->cdma;

	memset(c, 0, sizeof(*c));
	c->cr = RESET_CR | HAL_CDMA_CR_TAIL_EN;
	c->sr = UINT32_C(0x00010000) | HAL_CDMA_SR_IDLE |
		(w->par.sg ? HAL_CDMA_SR_SGINCLD : 0);
}

static uint32_t btt_mask(const struct sim_world *w)
{
	return (UINT32_C(1) << w->par.btt) - 1;
}

/* ---- Ends -------------------------------------------------------------- */

static struct hal_cdma_desc *desc_at(struct sim_world *w, uint64_t addr)
{
	if (addr % HAL_CDMA_DESC_BYTES != 0 ||
	    !sim_mem_decodes(w, addr, HAL_CDMA_DESC_BYTES))
		return NULL;
	return sim_memory(w, addr, HAL_CDMA_DESC_BYTES);
}

/* Stop with an error; only a reset leads out of it. */
static void halt(struct sim_cdma *c, uint32_t error)
{
	c->busy = 0;
	c->sr |= error | HAL_CDMA_SR_ERR_IRQ | HAL_CDMA_SR_IDLE;
}

static void put32(uint32_t *to, uint32_t val)
{
	__atomic_store_n(to, val, __ATOMIC_RELEASE);
}

/* Pairs with put32(), and with what the process wrote before it started. */
static uint32_t get32(const uint32_t *from)
{
	return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

static uint64_t get_addr(const uint32_t *low)
{
	return get32(&low[0]) | (uint64_t)get32(&low[1]) << 32;
}

/* Load the counter of ends, which is in SR, from the threshold in CR. */
static void count_reload(struct sim_cdma *c)
{
	c->sr = (c->sr & ~HAL_CDMA_CR_COUNT) | (c->cr & HAL_CDMA_CR_COUNT);
}

/* A descriptor has ended: IOC_Irq is set at each IRQThreshold-th [PG034 SG
 * Interrupt Threshold and Interrupt Coalescing]. The threshold is not 0. */
static void count_end(struct sim_cdma *c)
{
	c->sr -= 1u << HAL_CDMA_COUNT_SHIFT;
	if ((c->sr & HAL_CDMA_CR_COUNT) != 0)
		return;
	c->sr |= HAL_CDMA_SR_IOC_IRQ;
	count_reload(c);
}

static void fetch(struct sim_mm *mm, struct sim_cdma *c);

/* The transfer of a descriptor is over: mark it, and continue with the next. */
static void desc_over(struct sim_mm *mm, struct sim_cdma *c)
{
	struct hal_cdma_desc *d = desc_at(mm->w, c->desc);
	uint64_t at = c->desc;

	if (d == NULL) {
		halt(c, HAL_CDMA_SR_SGDECERR);
		return;
	}
	/* Bits 28 to 30 have the meaning of bits 4 to 6 of SR. */
	put32(&d->status, HAL_CDMA_DESC_DONE | c->fail << 24);
	c->cur = get_addr(&d->next);
	count_end(c);
	if (c->fail != 0) {
		halt(c, c->fail);
	} else if (at == c->tail) {
		c->busy = 0;
		c->unreported = 1;
		c->sr |= HAL_CDMA_SR_IDLE;
	} else {
		fetch(mm, c);
	}
}

static void over(struct sim_mm *mm, struct sim_cdma *c)
{
	if (mm->w->par.timed)
		hal_time_over(&mm->queue, &mm->run, sim_now(mm->w));
	if (c->desc != 0) {
		desc_over(mm, c);
	} else if (c->fail != 0) {
		halt(c, c->fail);
	} else {
		c->busy = 0;
		c->unreported = 1;
		c->sr |= HAL_CDMA_SR_IOC_IRQ | HAL_CDMA_SR_IDLE;
	}
}

/* ---- Keyhole ----------------------------------------------------------- */

/*
 * With KeyHoleRead or KeyHoleWrite the engine uses bursts to one address (AXI
 * FIXED) on that side, so that it can read or write a FIFO. The bus is as wide
 * as a word of a mailbox. Memory accepts such bursts too: the same 16 bytes
 * again and again.
 */

/* Is addr the page of a mailbox? */
static bool box_at(struct sim_world *w, uint64_t addr, struct sim_box *box)
{
	box->board = hal_gaddr_board(addr);
	box->n = hal_dest_if(addr);
	return box->board < w->boards &&
	       (addr & HAL_DEST_BASE_MASK) == SIM_VMBOX_BASE &&
	       (addr & HAL_DEST_OFF_MASK) == HAL_MIF_DATA;
}

/* Does a side of a transfer reach what its addresses name? */
static bool decodes(struct sim_world *w, uint64_t addr, uint64_t len,
		    bool hole)
{
	struct sim_box box;

	return hole ? box_at(w, addr, &box) || sim_mem_decodes(w, addr, BEAT) :
		      sim_mem_decodes(w, addr, len);
}

static void read_beat(struct sim_mm *mm, struct sim_cdma *c, uint64_t w[2])
{
	struct sim_box box;

	if (c->cr & HAL_CDMA_CR_HOLE_RD && box_at(mm->w, c->src, &box)) {
		sim_mif_read(mm, box, w);
		/* The engine read it: no barrier of the processor is due. */
		mm->half = 0;
		mm->unseen = false;
	} else {
		memcpy(w, sim_memory(mm->w, c->src, BEAT), BEAT);
	}
	if (!(c->cr & HAL_CDMA_CR_HOLE_RD))
		c->src += BEAT;
}

/* Write the beats of a burst. False: a negative acknowledgement. */
static bool write_beats(struct sim_mm *mm, struct sim_cdma *c,
			const uint64_t *w, uint32_t beats)
{
	struct sim_box box;

	if (c->cr & HAL_CDMA_CR_HOLE_WR && box_at(mm->w, c->dst, &box))
		return sim_mif_burst(mm, box, w, beats);
	for (uint32_t i = 0; i < beats; i++) {
		memcpy(sim_memory(mm->w, c->dst, BEAT), &w[2 * i], BEAT);
		if (!(c->cr & HAL_CDMA_CR_HOLE_WR))
			c->dst += BEAT;
	}
	return true;
}

/* Move the bytes of a transfer with a keyhole, by bursts. */
static void move_beats(struct sim_mm *mm, struct sim_cdma *c)
{
	uint64_t w[2 * SIM_BURST_MAX];

	while (c->left != 0) {
		uint32_t n = 0;

		for (; n < SIM_BURST_MAX && c->left != 0; c->left -= BEAT)
			read_beat(mm, c, &w[2 * n++]);
		if (!write_beats(mm, c, w, n)) {
			c->fail = HAL_CDMA_SR_SLVERR;
			return;
		}
	}
}

/* ---- Beginnings -------------------------------------------------------- */

/* A keyhole takes whole beats: the engine does not realign such bursts. */
static void check_hole(const struct sim_cdma *c)
{
	if (c->cr & CR_HOLES && (c->src | c->dst | c->left) % BEAT != 0)
		sim_misuse("transfer with a keyhole that is not of aligned "
			   "blocks of %u bytes [PG034]", BEAT);
}

/* When will the transfer be over? 0: as soon as its bytes are moved. */
static uint64_t due(struct sim_mm *mm, uint64_t bytes)
{
	struct sim_world *w = mm->w;

	if (w->par.timed) {
		hal_time_begin(&w->par.figures, &mm->queue, &mm->run,
				sim_now(w), bytes);
		return mm->run.due;
	}
	return w->par.dma == 0 ? 0 : sim_now(w) + (uint64_t)w->par.dma *
	       ((bytes + SIM_PAGE - 1) / SIM_PAGE);
}

static void begin(struct sim_mm *mm, struct sim_cdma *c, uint64_t src,
		  uint64_t dst, uint32_t bytes)
{
	struct sim_world *w = mm->w;

	c->busy = 1;
	c->sr &= ~HAL_CDMA_SR_IDLE;
	c->src = src & HAL_GADDR_MASK;
	c->dst = dst & HAL_GADDR_MASK;
	c->left = bytes & btt_mask(w);
	check_hole(c);
	c->due = due(mm, c->left);
	c->fail = 0;
	if (c->left == 0)
		c->fail = HAL_CDMA_SR_INTERR;
	else if (!decodes(w, c->src, c->left, c->cr & HAL_CDMA_CR_HOLE_RD) ||
		 !decodes(w, c->dst, c->left, c->cr & HAL_CDMA_CR_HOLE_WR))
		c->fail = HAL_CDMA_SR_DECERR;
	else if (sim_below(mm, 1000) < (uint64_t)w->par.slverr)
		c->fail = HAL_CDMA_SR_SLVERR;
}

static void fetch(struct sim_mm *mm, struct sim_cdma *c)
{
	struct hal_cdma_desc *d = desc_at(mm->w, c->cur);

	c->desc = c->cur;
	if (d == NULL)
		halt(c, HAL_CDMA_SR_SGDECERR);
	else if (get32(&d->status) & HAL_CDMA_DESC_DONE)
		halt(c, HAL_CDMA_SR_SGINTERR);
	else
		begin(mm, c, get_addr(&d->src), get_addr(&d->dst),
		      get32(&d->control));
}

/* ---- In between -------------------------------------------------------- */

static void move(struct sim_mm *mm, struct sim_cdma *c, uint64_t n)
{
	sim_mem_move(mm->w, c->dst, c->src, n);
	c->src += n;
	c->dst += n;
	c->left -= n;
}

/* SIM_MUTANT_EARLY: move the bytes whose transfer was reported before. */
static void move_late(struct sim_mm *mm, struct sim_cdma *c)
{
	if (sim_below(mm, 256) != 0)
		return;
	sim_mem_move(mm->w, c->late_dst, c->late_src, c->late);
	c->late = 0;
}

/* Is addr on a dead board? The interconnect answers for it with an error. */
static bool dead(const struct sim_mm *mm, uint64_t addr)
{
	uint32_t board = hal_gaddr_board(addr);

	return board != mm->m.board && sim_death(mm->w, board) != SIM_LIVES;
}

static void run(struct sim_mm *mm, struct sim_cdma *c)
{
	uint64_t n = c->left < STEP ? c->left : STEP;

	if (c->late != 0)
		move_late(mm, c);
	if (!c->busy)
		return;
	if (c->fail == 0 && n != 0 && (dead(mm, c->src) || dead(mm, c->dst)))
		c->fail = HAL_CDMA_SR_DECERR;
	if (c->fail == 0 && n != 0 && n == c->left && c->late == 0 &&
	    mm->w->par.mutant == SIM_MUTANT_EARLY) {
		c->late_src = c->src;
		c->late_dst = c->dst;
		c->late = n;
		c->left = 0;
	} else if (c->fail == 0 && n != 0 && c->cr & CR_HOLES) {
		move_beats(mm, c);
	} else if (c->fail == 0 && n != 0) {
		move(mm, c, n);
	}
	if ((c->fail != 0 || c->left == 0) &&
	    (c->due == 0 || sim_now(mm->w) >= c->due))
		over(mm, c);
}

/* ---- Registers --------------------------------------------------------- */

/* The address of which the register at off holds a half; NULL: none. */
static uint64_t *address(struct sim_cdma *c, uint32_t off)
{
	switch (off & ~UPPER_HALF) {
	case HAL_CDMA_CURDESC:
		return &c->cur;
	case HAL_CDMA_TAILDESC:
		return &c->tail;
	case HAL_CDMA_SA:
		return &c->sa;
	case HAL_CDMA_DA:
		return &c->da;
	}
	return NULL;
}

static void set_half(struct sim_cdma *c, uint32_t off, uint32_t val)
{
	uint64_t *addr = address(c, off);

	if (off & UPPER_HALF)
		*addr = (*addr & ADDR_LOW) | (uint64_t)val << 32;
	else
		*addr = (*addr & ~ADDR_LOW) | val;
}

static void must_be_idle(const struct sim_cdma *c, uint32_t off)
{
	if (c->busy)
		sim_misuse("write to offset 0x%x of the cDMA engine while it "
			   "is busy [PG034]", off);
}

static void write_cr(struct sim_mm *mm, struct sim_cdma *c, uint32_t val)
{
	if (val & HAL_CDMA_CR_RESET) {
		if (c->busy && mm->w->par.timed)
			hal_time_over(&mm->queue, &mm->run, sim_now(mm->w));
		sim_cdma_reset(mm->w, mm->b);
		c->cr |= HAL_CDMA_CR_RESET;	/* until read_cr() clears it */
		return;
	}
	if ((val ^ c->cr) & (HAL_CDMA_CR_SGMODE | CR_HOLES))
		must_be_idle(c, HAL_CDMA_CR);
	if (!mm->w->par.sg)
		val &= ~HAL_CDMA_CR_SGMODE;
	if ((val & HAL_CDMA_CR_COUNT) == 0)	/* has no effect */
		val |= c->cr & HAL_CDMA_CR_COUNT;
	c->cr = (val & CR_WRITABLE) | HAL_CDMA_CR_TAIL_EN;
	count_reload(c);
	if (!(val & HAL_CDMA_CR_SGMODE)) {
		c->cur = 0;
		c->tail = 0;
	}
}

static bool can_start(const struct sim_cdma *c, bool sg)
{
	return ((c->cr & HAL_CDMA_CR_SGMODE) != 0) == sg &&
	       !(c->sr & HAL_CDMA_SR_ERRORS);
}

/* With addresses of more than 32 bits this write starts or continues a
 * chain. */
static void write_tail(struct sim_mm *mm, struct sim_cdma *c, uint32_t val)
{
	if (!can_start(c, true))
		return;
	sim_start(mm, "a chain of descriptors");
	set_half(c, HAL_CDMA_TAILDESC_MSB, val);
	if (c->busy)
		return;
	count_reload(c);
	fetch(mm, c);
}

static void write_btt(struct sim_mm *mm, struct sim_cdma *c, uint32_t val)
{
	if (!can_start(c, false))
		return;
	must_be_idle(c, HAL_CDMA_BTT);
	sim_start(mm, "a transfer");
	c->btt = val & btt_mask(mm->w);
	c->desc = 0;
	begin(mm, c, c->sa, c->da, c->btt);
}

static void write_addr(struct sim_cdma *c, uint32_t off, uint32_t val)
{
	must_be_idle(c, off);
	set_half(c, off, val);
}

static void write_desc(struct sim_cdma *c, uint32_t off, uint32_t val)
{
	if (!(c->cr & HAL_CDMA_CR_SGMODE))
		return;
	if (c->busy && off != HAL_CDMA_TAILDESC)
		return;			/* ignored while busy */
	val &= off & UPPER_HALF ? ~0u : ~(HAL_CDMA_DESC_BYTES - 1);
	set_half(c, off, val);
}

void sim_cdma_write(struct sim_mm *mm, uint32_t off, uint32_t val)
{
	struct sim_cdma *c = &mm->b->cdma;

	run(mm, c);
	switch (off) {
	case HAL_CDMA_CR:
		write_cr(mm, c, val);
		break;
	case HAL_CDMA_SR:
		c->sr &= ~(val & SR_IRQS);
		break;
	case HAL_CDMA_CURDESC:
	case HAL_CDMA_CURDESC_MSB:
	case HAL_CDMA_TAILDESC:
		write_desc(c, off, val);
		break;
	case HAL_CDMA_TAILDESC_MSB:
		write_tail(mm, c, val);
		break;
	case HAL_CDMA_SA:
	case HAL_CDMA_SA_MSB:
	case HAL_CDMA_DA:
	case HAL_CDMA_DA_MSB:
		write_addr(c, off, val);
		break;
	case HAL_CDMA_BTT:
		write_btt(mm, c, val);
		break;
	default:
		sim_misuse("write to offset 0x%x of the cDMA engine, where "
			   "there is no register [PG034]", off);
	}
}

bool sim_cdma_interrupt(struct sim_mm *mm)
{
	struct sim_cdma *c = &mm->b->cdma;

	run(mm, c);
	/* An enable has the same bit in CR as its interrupt in SR. */
	return (c->sr & c->cr & SR_IRQS) != 0;
}

static uint32_t read_cr(struct sim_mm *mm, struct sim_cdma *c)
{
	uint32_t cr = c->cr;

	if (sim_below(mm, 4) == 0)
		c->cr &= ~HAL_CDMA_CR_RESET;
	return cr;
}

static uint32_t read_sr(struct sim_mm *mm, struct sim_cdma *c)
{
	mm->unseen = c->unreported != 0;
	c->unreported = 0;
	return c->sr;
}

uint32_t sim_cdma_read(struct sim_mm *mm, uint32_t off)
{
	struct sim_cdma *c = &mm->b->cdma;
	const uint64_t *addr = address(c, off);

	run(mm, c);
	if (addr != NULL)
		return (uint32_t)(off & UPPER_HALF ? *addr >> 32 : *addr);
	switch (off) {
	case HAL_CDMA_CR:
		return read_cr(mm, c);
	case HAL_CDMA_SR:
		return read_sr(mm, c);
	case HAL_CDMA_BTT:
		return c->btt;
	}
	sim_misuse("read of offset 0x%x of the cDMA engine, where there is no "
		   "register [PG034]", off);
}
