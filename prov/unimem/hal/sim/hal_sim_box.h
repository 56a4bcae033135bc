/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_box.h - packetizer and mailboxes of the register model
 * (hal_sim_box.c).
 */
#ifndef HAL_SIM_BOX_H
#define HAL_SIM_BOX_H

#include "hal/sim/hal_sim_types.h"

/* A mailbox. */
struct sim_box {
	uint32_t board, n;
};

/* Dequeue a word. Returns false, and the pattern, if the mailbox is empty. */
bool sim_mif_read(struct sim_mm *mm, struct sim_box box, uint64_t w[2]);

/*
 * Enqueue up to SIM_BURST_MAX words of 16 bytes by one burst. sim_mif_write()
 * is a store of a processor with an interface: words that do not fit are lost,
 * and no response reaches the program. sim_mif_burst() is a burst of a master
 * that waits for the response: it returns false for a negative acknowledgement,
 * which no word that was taken has [D 5.1.2].
 */
void sim_mif_write(struct sim_mm *mm, struct sim_box box, const uint64_t *w,
		   uint32_t words);
bool sim_mif_burst(struct sim_mm *mm, struct sim_box box, const uint64_t *w,
		   uint32_t words);

/* Accesses of 16 bytes to page n of the board of mm; off is in bytes. */
void sim_pif_read(struct sim_mm *mm, uint32_t n, uint32_t off, uint64_t w[2]);
void sim_pif_write(struct sim_mm *mm, uint32_t n, uint32_t off,
		   const uint64_t w[2]);

/* Accesses of 8 bytes to the trusted page. */
uint64_t sim_tif_read(struct sim_mm *mm, uint32_t off);
void sim_tif_write(struct sim_mm *mm, uint32_t off, uint64_t val);

/* Finish the packet that is pending in PIF n, whatever the clock says. */
void sim_pif_settle(struct sim_world *w, uint32_t board, uint32_t n);

/* Discard a half-written packet and the content of the mailbox. */
void sim_if_reset(struct sim_world *w, uint32_t board, uint32_t n);

/* Is the FIFO empty, with nothing on the way to it? */
bool sim_fifo_quiet(struct sim_world *w, uint32_t board, uint32_t n);

/* Signal the event fd of a FIFO that is armed, and disarm it. */
void sim_signal(struct sim_world *w, struct sim_fifo *fifo);

#endif /* HAL_SIM_BOX_H */
