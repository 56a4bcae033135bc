/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_numbers.c - hal_regs.h compared with the papers. The backend, the model
 * and their tests share its constants, so a wrong value would pass all of them.
 * Here each value is repeated as it is printed in hardware.md (in brackets: the
 * section) or in Xilinx PG034. Macros that pack fields are tested with
 * literals.
 */
#include "hal/dev/hal_regs.h"
#include "lib/unit.h"

#define IS(name, number)	_Static_assert((name) == (number), #name)
#define AT(field, number)						\
	IS(offsetof(struct hal_cdma_desc, field), number)

/* ---- vmbox [2] --------------------------------------------------------- */

IS(HAL_REG_PAGE, 4096);			/* "one 4 KiB page each" */
IS(HAL_REG_IFS, 64);			/* "64 hardware FIFOs per board" */
IS(HAL_REG_IF_SERVICE, 0);		/* "Interface 0 belongs to" it */
IS(HAL_MIF_PAGE(0), 0);			/* "base + n*0x1000" */
IS(HAL_MIF_PAGE(1), 0x1000);
IS(HAL_MIF_PAGE(63), 0x3F000);
IS(HAL_MIF_DATA, 0);			/* "to the page at offset 0" */
IS(HAL_MIF_WORD, 16);			/* "One word is 128 bits" */
IS(HAL_MIF_EMPTY, UINT64_C(0xCAFEBEBEDEADBEAF));
IS(HAL_MIF_EMPTY_BEEF, UINT64_C(0xCAFEBEBEDEADBEEF));
IS(HAL_MIF_PKT_WORDS, 2);		/* "two-word packets" [8] */
IS(HAL_PKT_WORDS, 4);			/* "256 bits" [4] */

/* ---- Packetizer [3] ---------------------------------------------------- */

IS(HAL_PIF_PAGE(0), 0);			/* "base + n*0x1000" */
IS(HAL_PIF_PAGE(1), 0x1000);
IS(HAL_PIF_PAGE(63), 0x3F000);
IS(HAL_PIF_PAYLOAD0, 0x00);
IS(HAL_PIF_PAYLOAD0_MASK, UINT64_C(0xFFFF000000000000)); /* "127:48" */
IS(HAL_PIF_PAYLOAD1, 0x10);
IS(HAL_PIF_DEST, 0x20);
IS(HAL_PIF_STATUS, 0x30);
IS(HAL_PIF_WRITES, 3);			/* "the third triggers" */
IS(HAL_PIF_PEND, 0x01);			/* "bit0 PEND, bit1 ILLEGAL, ..." */
IS(HAL_PIF_ILLEGAL, 0x02);
IS(HAL_PIF_NACK, 0x04);
IS(HAL_PIF_ACK, 0x08);
IS(HAL_PIF_OVERWR, 0x10);
IS(HAL_PIF_STATUS_MASK, 0x1F);

IS(HAL_TIF_OFFSET, 0x40000);		/* "at base + 0x40000" */
IS(HAL_TIF_PID(0), 0x000);		/* "0x000-0x1F8", "entry n at 8n" */
IS(HAL_TIF_PID(1), 0x008);
IS(HAL_TIF_PID(63), 0x1F8);
IS(HAL_TIF_BASE_DEST, 0x200);
IS(HAL_TIF_PID_CONF, 0x208);
IS(HAL_TIF_CLR_REQ, 0x210);

/* ---- Addresses and identities [1, 3] ----------------------------------- */

IS(HAL_GADDR_BITS, 40);			/* "40 bits with the node id inside" */
IS(HAL_GADDR_MASK, UINT64_C(0xFFFFFFFFFF));
IS(HAL_GADDR_BOARD_SHIFT, 34);		/* "39:34 for the board" */
IS(HAL_GADDR_LOCAL_MASK, UINT64_C(0x3FFFFFFFF));
IS(HAL_REG_BOARDS_MAX, 64);		/* "at most 64 boards by packet" */
IS(HAL_DEST_BASE_MASK, UINT64_C(0x3FFFC0000));	/* "bits 33:18 checked" */
IS(HAL_DEST_IF_SHIFT, 12);		/* "17:12 for the interface" */
IS(HAL_DEST_IF_MASK, 0x3F000);
IS(HAL_DEST_OFF_MASK, 0xFFF);
IS(HAL_ID_BITS, 48);			/* "bits 47:0 = identity" */
IS(HAL_ID_MASK, UINT64_C(0xFFFFFFFFFFFF));
IS(HAL_ID_INCARNATION_MASK, 0xFFFFFF);	/* of this project: 23:0 */

/* ---- AXI CDMA [6], PG034 ----------------------------------------------- */

IS(HAL_CDMA_CR, 0x00);			/* PG034, register address map */
IS(HAL_CDMA_SR, 0x04);
IS(HAL_CDMA_CURDESC, 0x08);
IS(HAL_CDMA_CURDESC_MSB, 0x0C);
IS(HAL_CDMA_TAILDESC, 0x10);
IS(HAL_CDMA_TAILDESC_MSB, 0x14);
IS(HAL_CDMA_SA, 0x18);
IS(HAL_CDMA_SA_MSB, 0x1C);
IS(HAL_CDMA_DA, 0x20);
IS(HAL_CDMA_DA_MSB, 0x24);
IS(HAL_CDMA_BTT, 0x28);
IS(HAL_CDMA_BYTES, 0x1000);		/* of this project */

IS(HAL_CDMA_CR_TAIL_EN, 0x0002);	/* PG034 CDMACR */
IS(HAL_CDMA_CR_RESET, 0x0004);
IS(HAL_CDMA_CR_SGMODE, 0x0008);
IS(HAL_CDMA_CR_IOC_EN, 0x1000);
IS(HAL_CDMA_CR_DLY_EN, 0x2000);
IS(HAL_CDMA_CR_ERR_EN, 0x4000);

IS(HAL_CDMA_SR_IDLE, 0x0002);		/* PG034 CDMASR */
IS(HAL_CDMA_SR_SGINCLD, 0x0008);
IS(HAL_CDMA_SR_INTERR, 0x0010);
IS(HAL_CDMA_SR_SLVERR, 0x0020);
IS(HAL_CDMA_SR_DECERR, 0x0040);
IS(HAL_CDMA_SR_SGINTERR, 0x0100);
IS(HAL_CDMA_SR_SGSLVERR, 0x0200);
IS(HAL_CDMA_SR_SGDECERR, 0x0400);
IS(HAL_CDMA_SR_IOC_IRQ, 0x1000);
IS(HAL_CDMA_SR_DLY_IRQ, 0x2000);
IS(HAL_CDMA_SR_ERR_IRQ, 0x4000);
IS(HAL_CDMA_SR_ERRORS, 0x0770);

IS(HAL_CDMA_BTT_BITS_MIN, 8);		/* PG034, build options */
IS(HAL_CDMA_BTT_BITS_MAX, 26);		/* "23 to 26 bits wide" */

AT(next, 0x00);				/* PG034, transfer descriptor */
AT(next_msb, 0x04);
AT(src, 0x08);
AT(src_msb, 0x0C);
AT(dst, 0x10);
AT(dst_msb, 0x14);
AT(control, 0x18);
AT(status, 0x1C);
IS(HAL_CDMA_DESC_NEXT, 0x00);
IS(HAL_CDMA_DESC_SRC, 0x08);
IS(HAL_CDMA_DESC_DST, 0x10);
IS(HAL_CDMA_DESC_CONTROL, 0x18);
IS(HAL_CDMA_DESC_STATUS, 0x1C);
IS(HAL_CDMA_DESC_BYTES, 64);		/* "descriptors 64-byte aligned" */
IS(_Alignof(struct hal_cdma_desc), 64);
IS(HAL_CDMA_DESC_INTERR, 0x10000000);	/* PG034 STATUS */
IS(HAL_CDMA_DESC_SLVERR, 0x20000000);
IS(HAL_CDMA_DESC_DECERR, 0x40000000);
IS(HAL_CDMA_DESC_DONE, 0x80000000);	/* "complete = bit 31" */
IS(HAL_CDMA_DESC_ERRORS, 0x70000000);

/* ---- Macros that pack fields ------------------------------------------- */

/* [3] board 39:34, BASE_DEST 33:18, interface 17:12, offset 0. Bits that
 * BASE_DEST does not check are not taken over. */
static void destinations(void **state)
{
	const uint64_t all = UINT64_C(0x3FFFC0000);

	assert_true(hal_dest(0, 0, 0) == 0);
	assert_true(hal_dest(1, 0, 0) == UINT64_C(0x400000000));
	assert_true(hal_dest(63, 0, 0) == UINT64_C(0xFC00000000));
	assert_true(hal_dest(0, 1, 0) == 0x1000);
	assert_true(hal_dest(0, 63, 0) == 0x3F000);
	assert_true(hal_dest(0, 0, UINT64_MAX) == all);
	assert_true(hal_dest(63, 63, all) == UINT64_C(0xFFFFFFF000));
	assert_int_equal(hal_gaddr_board(UINT64_C(0x400000000)), 1);
	assert_int_equal(hal_gaddr_board(UINT64_MAX), 63);
	assert_int_equal(hal_gaddr_board(UINT64_C(0x3FFFFFFFF)), 0);
	assert_int_equal(hal_dest_if(UINT64_C(0xFFFFFC0FFF)), 0);
	assert_int_equal(hal_dest_if(UINT64_C(0x3F000)), 63);
}

/* Defined by this project: board 47:32, interface 31:24, incarnation 23:0. */
static void identities(void **state)
{
	assert_true(hal_id(0x1234, 0x56, 0x789abc) ==
		    UINT64_C(0x123456789abc));
	assert_true(hal_id(UINT32_MAX, 0, 0) == UINT64_C(0xFFFF00000000));
	assert_true(hal_id(0, UINT32_MAX, 0) == UINT64_C(0xFF000000));
	assert_true(hal_id(0, 0, UINT32_MAX) == UINT64_C(0xFFFFFF));
	assert_int_equal(hal_id_board(UINT64_C(0xFFFF123456789abc)), 0x1234);
	assert_int_equal(hal_id_if(UINT64_C(0xFFFF123456789abc)), 0x56);
}

UNIT_MAIN(
	cmocka_unit_test(destinations),
	cmocka_unit_test(identities),
)
