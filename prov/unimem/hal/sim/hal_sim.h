/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim.h - what tests do to the register model beside hal_mmio.h
 * (hal_sim.c).
 */
#ifndef HAL_SIM_H
#define HAL_SIM_H

#include "hal/sim/hal_sim_types.h"

/* Let a board die in the given way, or live again (SIM_LIVES). */
void hal_sim_death(struct hal_mmio *mm, uint32_t board, enum sim_death death);

/*
 * Map the mailbox at a destination, as the atomic service reaches the mailbox
 * of a requester [D 2.2.6], and as any thread could by the mechanisms that [D
 * 2.2.3] mentions in a footnote. The driver of hal_kdev.h maps no process the
 * mailbox of another. Stores of 4 and 8 bytes are words too. A file that has no
 * interface cannot store.
 */
void hal_sim_mailbox(struct hal_mmio *mm, uint64_t dest,
		     struct hal_mmio_map *map);

/*
 * Write words of 16 bytes (1 to SIM_BURST_MAX) to a mailbox by one burst, or
 * read them: accesses that a processor does not make and another bus master may
 * [D 5.1]. A write waits for its response, and returns whether that is a
 * positive acknowledgement. It uses the port of the board's engine, so no
 * process may have claimed it.
 */
bool hal_sim_burst_write(const struct hal_mmio_map *map, const uint64_t *w,
			 uint32_t words);
void hal_sim_burst_read(const struct hal_mmio_map *map, uint64_t *w,
			uint32_t words);

/* The level of the interrupt line of the engine of a board, which mm has
 * claimed [PG034 Interrupts]. */
bool hal_sim_interrupt(struct hal_mmio *mm);

/* Map the trusted page, which the driver maps for no process. */
void hal_sim_trusted(struct hal_mmio *mm, struct hal_mmio_map *map);

#endif /* HAL_SIM_H */
