/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_regs.h - registers of the Unimem blocks: vmbox, packetizer, AXI CDMA.
 *
 * Offsets, bits and packing only; hal_mmio.h has the rules of access. Sources:
 * [D x.y] ExaNoDe deliverable D3.6, section or table; [PG034] Xilinx AXI CDMA
 * product guide, checked against Linux's drivers/dma/xilinx/xilinx_dma.c;
 * "ours": chosen by this project, because the papers leave it open
 * (docs/hal.md, section 13). Everything is little-endian.
 */
#ifndef HAL_REGS_H
#define HAL_REGS_H

#include <stdint.h>

#define HAL_REG_PAGE		0x1000u	/* bytes per interface [D 2.2.3] */
#define HAL_REG_IFS		64u	/* interfaces of a board [D 2.2.3,
					 * 5.1] */
#define HAL_REG_IF_SERVICE	0u	/* interface of the atomic service
					 * [D 2.2.3] */
#define HAL_REG_BOARDS_MAX	64u	/* bits 39:34 of a destination; ours */

/* ---- vmbox: mailbox interface pages (MIF) ------------------------------ */

/* Offset of FIFO n from the base of the vmbox [D 5.1.1, figure 13]. */
#define HAL_MIF_PAGE(n)		((uint32_t)(n) * HAL_REG_PAGE)
/* A write enqueues, a read dequeues. One access of 16 bytes is one word, and
 * every read dequeues one [D 5.1; the width is inferred: docs/hal.md, 13]. */
#define HAL_MIF_DATA		0x00u
#define HAL_MIF_WORD		16u	/* bytes */
/* Each half of the word that an empty FIFO returns. The paper spells it in two
 * ways, [D 5.1.1] and [D 2.3.3, 2.3.5]; software must learn which is true. */
#define HAL_MIF_EMPTY		UINT64_C(0xCAFEBEBEDEADBEAF)
#define HAL_MIF_EMPTY_BEEF	UINT64_C(0xCAFEBEBEDEADBEEF)
#define HAL_MIF_PKT_WORDS	2u	/* a packet: 256 bits [D 2.2.3] */

/* ---- Packetizer: interface pages (PIF) [D 5.2.3, table 5] -------------- */

/* Offset of PIF n from the base of the packetizer [D 5.2, figure 7]. */
#define HAL_PIF_PAGE(n)		((uint32_t)(n) * HAL_REG_PAGE)
#define HAL_PIF_PAYLOAD0	0x00u	/* 16 bytes; bits 127:48 are sent */
/* Bits of its lower 8 bytes that are sent; TIF stamps the other bits. */
#define HAL_PIF_PAYLOAD0_MASK	(UINT64_C(0xFFFF) << 48)
#define HAL_PIF_PAYLOAD1	0x10u	/* 16 bytes; bits 127:0 are sent */
#define HAL_PIF_DEST		0x20u	/* 16 bytes; bits 39:0 count */
#define HAL_PIF_STATUS		0x30u	/* 16 bytes, read only; bits 4:0 */
/* The first three registers are written in any order; the third write sends. */
#define HAL_PIF_WRITES		3u

/*
 * NACK and ACK belong to the last packet that was transmitted, and become 0
 * "upon the next packet transmission" [D table 5]. A request that is ILLEGAL,
 * or of a PIF whose bit of PID_CONF is 0, transmits nothing: the old ACK or
 * NACK stays. The paper does not say when ILLEGAL becomes 0.
 */
#define HAL_PIF_PEND		(1u << 0) /* in preparation or transmission */
#define HAL_PIF_ILLEGAL		(1u << 1) /* destination failed BASE_DEST */
#define HAL_PIF_NACK		(1u << 2) /* refused; until the next packet */
#define HAL_PIF_ACK		(1u << 3) /* delivered; until the next packet */
#define HAL_PIF_OVERWR		(1u << 4) /* written to while PEND; debug */
#define HAL_PIF_STATUS_MASK	0x1Fu

/* ---- Packetizer: trusted page (TIF) [D 5.2.2, table 4] ----------------- */

#define HAL_TIF_OFFSET		0x40000u /* of the page from the base */
#define HAL_TIF_PID(n)		((uint32_t)(n) * 8) /* bits 47:0: identity that
						     * PIF n stamps */
#define HAL_TIF_BASE_DEST	0x200u	/* bits 33:18 of every legal
					 * destination */
#define HAL_TIF_PID_CONF	0x208u	/* bit n: PIF n may send */
#define HAL_TIF_CLR_REQ		0x210u	/* bit n: drop PIF n's request; debug */

_Static_assert(HAL_TIF_OFFSET == HAL_REG_IFS * HAL_REG_PAGE,
	       "the trusted page follows those of the interfaces");
_Static_assert(HAL_TIF_PID(HAL_REG_IFS - 1) == 0x1F8, "table 4");
_Static_assert(HAL_TIF_PID(HAL_REG_IFS) == HAL_TIF_BASE_DEST, "table 4");
_Static_assert(HAL_PIF_PAYLOAD1 == HAL_PIF_PAYLOAD0 + HAL_MIF_WORD, "table 5");
_Static_assert(HAL_PIF_DEST == HAL_PIF_PAYLOAD1 + HAL_MIF_WORD, "table 5");
_Static_assert(HAL_PIF_STATUS == HAL_PIF_DEST + HAL_MIF_WORD, "table 5");
_Static_assert((HAL_PIF_PEND | HAL_PIF_ILLEGAL | HAL_PIF_NACK | HAL_PIF_ACK |
		HAL_PIF_OVERWR) == HAL_PIF_STATUS_MASK, "5 bits");

/* ---- Addresses --------------------------------------------------------- */

/*
 * Global physical addresses have 40 bits with the board inside [D 3.1.6]; the
 * check of 33:18 against BASE_DEST [D table 5] leaves 17:12 for the interface
 * and 39:34 for the board (inferred: docs/hal.md, section 13). Memory of a
 * board has the same 39:34.
 */
#define HAL_GADDR_BITS		40
#define HAL_GADDR_MASK		((UINT64_C(1) << HAL_GADDR_BITS) - 1)
#define HAL_GADDR_BOARD_SHIFT	34
#define HAL_GADDR_LOCAL_MASK	((UINT64_C(1) << HAL_GADDR_BOARD_SHIFT) - 1)
#define HAL_DEST_BASE_MASK	(UINT64_C(0xFFFF) << 18)
#define HAL_DEST_IF_SHIFT	12
#define HAL_DEST_IF_MASK	(UINT64_C(0x3F) << HAL_DEST_IF_SHIFT)
#define HAL_DEST_OFF_MASK	UINT64_C(0xFFF)	/* HAL_MIF_DATA */

_Static_assert((HAL_DEST_BASE_MASK | HAL_DEST_IF_MASK | HAL_DEST_OFF_MASK) ==
	       HAL_GADDR_LOCAL_MASK, "a destination is all of 33:0");
_Static_assert(HAL_DEST_IF_MASK >> HAL_DEST_IF_SHIFT == HAL_REG_IFS - 1,
	       "6 bits for 64 interfaces");

/* Destination of packets to an interface; base: BASE_DEST, its bits 33:18. */
static inline uint64_t hal_dest(uint32_t board, uint32_t iface, uint64_t base)
{
	return (uint64_t)board << HAL_GADDR_BOARD_SHIFT |
	       (base & HAL_DEST_BASE_MASK) |
	       (uint64_t)iface << HAL_DEST_IF_SHIFT | HAL_MIF_DATA;
}

static inline uint32_t hal_gaddr_board(uint64_t gaddr)
{
	return (gaddr & HAL_GADDR_MASK) >> HAL_GADDR_BOARD_SHIFT;
}

static inline uint32_t hal_dest_if(uint64_t dest)
{
	return (dest & HAL_DEST_IF_MASK) >> HAL_DEST_IF_SHIFT;
}

/*
 * The 48 bits of identity that TIF stamps into packets [D 2.2.3, figure 8:
 * "thread and node id"]. Ours: board 47:32, interface 31:24, incarnation 23:0;
 * the driver counts incarnations, one per holder of the interface.
 */
#define HAL_ID_BITS		48
#define HAL_ID_MASK		((UINT64_C(1) << HAL_ID_BITS) - 1)
#define HAL_ID_INCARNATION_MASK	0xFFFFFFu

_Static_assert((HAL_ID_MASK ^ HAL_PIF_PAYLOAD0_MASK) == UINT64_MAX,
	       "a packet's first word is stamped or sent");

static inline uint64_t hal_id(uint32_t board, uint32_t iface,
			      uint32_t incarnation)
{
	return (uint64_t)(board & 0xFFFF) << 32 |
	       (uint64_t)(iface & 0xFF) << 24 |
	       (incarnation & HAL_ID_INCARNATION_MASK);
}

_Static_assert((HAL_MIF_EMPTY >> 32 & 0xFFFF) >= HAL_REG_BOARDS_MAX &&
	       (HAL_MIF_EMPTY_BEEF >> 32 & 0xFFFF) >= HAL_REG_BOARDS_MAX,
	       "what an empty FIFO returns has the identity of no board");

static inline uint32_t hal_id_board(uint64_t id)
{
	return id >> 32 & 0xFFFF;
}

static inline uint32_t hal_id_if(uint64_t id)
{
	return id >> 24 & 0xFF;
}

/* Can a packet have this identity? It must name a board, and not be 0, because
 * incarnations are counted from 1. */
static inline int hal_id_possible(uint64_t id)
{
	return hal_id_board(id) < HAL_REG_BOARDS_MAX && id != 0;
}

/* ---- Packets ----------------------------------------------------------- */

/*
 * The 256 bits of a packet as four 64-bit words: word 0 is identity 47:0,
 * flags 55:48, type 63:56; words 1 to 3 the payload [D figures 8 and 17]. Words
 * 0 and 1 are written to PAYLOAD0 (47:0 of it are not sent), 2 and 3 to
 * PAYLOAD1; a FIFO yields words 0 and 1, then 2 and 3.
 */
#define HAL_PKT_WORDS		4u

/* ---- AXI CDMA ---------------------------------------------------------- */

/*
 * [PG034 NAME] is the section of the register or word of that name; of the
 * offsets, bits and descriptor fields hardware.md section 6 has the same.
 */

#define HAL_CDMA_CR		0x00u	/* [PG034 CDMACR] */
#define HAL_CDMA_SR		0x04u	/* [PG034 CDMASR] */
#define HAL_CDMA_CURDESC	0x08u	/* [PG034 CURDESC_PNTR] */
#define HAL_CDMA_CURDESC_MSB	0x0Cu	/* [PG034 CURDESC_PNTR_MSB] 63:32 */
#define HAL_CDMA_TAILDESC	0x10u	/* [PG034 TAILDESC_PNTR] */
/* [PG034 TAILDESC_PNTR_MSB] addresses are longer than 32 bits: this write
 * starts SG */
#define HAL_CDMA_TAILDESC_MSB	0x14u
#define HAL_CDMA_SA		0x18u	/* [PG034 SA] */
#define HAL_CDMA_SA_MSB		0x1Cu	/* [PG034 SA_MSB] */
#define HAL_CDMA_DA		0x20u	/* [PG034 DA] */
#define HAL_CDMA_DA_MSB		0x24u	/* [PG034 DA_MSB] */
/* [PG034 BTT] bytes; the write starts, 0 is an error (internal) */
#define HAL_CDMA_BTT		0x28u
#define HAL_CDMA_BYTES		0x1000u	/* ours: the page that is mapped */

/* [PG034 CDMACR], by bit */
#define HAL_CDMA_CR_TAIL_EN	(1u << 1)  /* TailPntrEn, read only 1 */
#define HAL_CDMA_CR_RESET	(1u << 2)  /* Reset, reads 1 until done */
#define HAL_CDMA_CR_SGMODE	(1u << 3)  /* SGMode, change only when idle */
#define HAL_CDMA_CR_HOLE_RD	(1u << 4)  /* KeyHoleRead: the source is one
					    * address */
#define HAL_CDMA_CR_HOLE_WR	(1u << 5)  /* KeyHoleWrite: the destination */
#define HAL_CDMA_CR_IOC_EN	(1u << 12) /* IOC_IrqEn, on completion */
#define HAL_CDMA_CR_DLY_EN	(1u << 13) /* Dly_IrqEn */
#define HAL_CDMA_CR_ERR_EN	(1u << 14) /* Err_IrqEn */
#define HAL_CDMA_CR_COUNT	0xFF0000u  /* IRQThreshold: ends of descriptors
					    * that make an IOC_Irq; in SR: that
					    * are left */
#define HAL_CDMA_COUNT_SHIFT	16

/* [PG034 CDMASR], by bit */
#define HAL_CDMA_SR_IDLE	(1u << 1)  /* Idle */
#define HAL_CDMA_SR_SGINCLD	(1u << 3)  /* SGIncld: built with SG */
#define HAL_CDMA_SR_INTERR	(1u << 4)  /* DMAIntErr, internal */
#define HAL_CDMA_SR_SLVERR	(1u << 5)  /* DMASlvErr, slave */
#define HAL_CDMA_SR_DECERR	(1u << 6)  /* DMADecErr, decode */
#define HAL_CDMA_SR_SGINTERR	(1u << 8)  /* SGIntErr: descriptor was done */
#define HAL_CDMA_SR_SGSLVERR	(1u << 9)  /* SGSlvErr */
#define HAL_CDMA_SR_SGDECERR	(1u << 10) /* SGDecErr */
#define HAL_CDMA_SR_IOC_IRQ	(1u << 12) /* IOC_Irq, write 1 to clear, as */
#define HAL_CDMA_SR_DLY_IRQ	(1u << 13) /* Dly_Irq and */
#define HAL_CDMA_SR_ERR_IRQ	(1u << 14) /* Err_Irq */
#define HAL_CDMA_SR_ERRORS	0x770u	/* after one only a reset helps */

_Static_assert(HAL_CDMA_SR_ERRORS ==
	       (HAL_CDMA_SR_INTERR | HAL_CDMA_SR_SLVERR | HAL_CDMA_SR_DECERR |
		HAL_CDMA_SR_SGINTERR | HAL_CDMA_SR_SGSLVERR |
		HAL_CDMA_SR_SGDECERR), "bits 4-6 and 8-10");

/* Bits of BTT, a build option of the engine: [PG034 BTT] has 25:0, the option
 * goes down to 8, hardware.md section 6 expects 23 to 26. */
#define HAL_CDMA_BTT_BITS_MIN	8
#define HAL_CDMA_BTT_BITS_MAX	26

/* [PG034 Scatter Gather Transfer Descriptor Definition]: aligned to 16 words,
 * of which 8 are used. */
struct hal_cdma_desc {
	uint32_t next, next_msb;	/* NXTDESC_PNTR, _MSB */
	uint32_t src, src_msb;		/* SA, SA_MSB */
	uint32_t dst, dst_msb;		/* DA, DA_MSB */
	uint32_t control;		/* CONTROL: bytes to transfer */
	uint32_t status;		/* STATUS, written by the engine */
	uint32_t reserved[8];
} __attribute__((aligned(64)));

#define HAL_CDMA_DESC_NEXT	0x00u	/* [PG034 NXTDESC_PNTR] */
#define HAL_CDMA_DESC_SRC	0x08u	/* [PG034 SA, of a descriptor] */
#define HAL_CDMA_DESC_DST	0x10u	/* [PG034 DA, of a descriptor] */
#define HAL_CDMA_DESC_CONTROL	0x18u	/* [PG034 CONTROL] */
#define HAL_CDMA_DESC_STATUS	0x1Cu	/* [PG034 STATUS] */
#define HAL_CDMA_DESC_BYTES	64u	/* hardware.md section 6 */
_Static_assert(sizeof(struct hal_cdma_desc) == HAL_CDMA_DESC_BYTES, "PG034");
_Static_assert(__builtin_offsetof(struct hal_cdma_desc, next) ==
	       HAL_CDMA_DESC_NEXT, "PG034");
_Static_assert(__builtin_offsetof(struct hal_cdma_desc, src) ==
	       HAL_CDMA_DESC_SRC, "PG034");
_Static_assert(__builtin_offsetof(struct hal_cdma_desc, dst) ==
	       HAL_CDMA_DESC_DST, "PG034");
_Static_assert(__builtin_offsetof(struct hal_cdma_desc, control) ==
	       HAL_CDMA_DESC_CONTROL, "PG034");
_Static_assert(__builtin_offsetof(struct hal_cdma_desc, status) ==
	       HAL_CDMA_DESC_STATUS, "PG034");

/* [PG034 STATUS], by bit */
#define HAL_CDMA_DESC_INTERR	(1u << 28) /* DMAIntErr */
#define HAL_CDMA_DESC_SLVERR	(1u << 29) /* DMASlvErr */
#define HAL_CDMA_DESC_DECERR	(1u << 30) /* DMADecErr */
#define HAL_CDMA_DESC_DONE	(1u << 31) /* Cmplt */
#define HAL_CDMA_DESC_ERRORS	(7u << 28)

#endif /* HAL_REGS_H */
