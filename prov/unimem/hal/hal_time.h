/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_time.h - when packets, stores, loads and transfers end under the
 * timing model; private to the HAL. The emulation and the register model both
 * use it. docs/model.md describes the model.
 *
 * Arithmetic only: no function reads a clock or waits. now is the time of the
 * call, in ns of the caller's clock, which all processes of a job share.
 */
#ifndef HAL_TIME_H
#define HAL_TIME_H

#include <stddef.h>
#include <stdint.h>

#include "hal/hal_model.h"
#include "util/unm_list.h"

/* ---- Packets, stores, loads --------------------------------------------- */

/* When the parts of an interface are free again, in ns. Belongs to the thread
 * that uses the interface. All 0 at first. */
struct hal_time_path {
	uint64_t packet_free;		/* the packetizer */
	uint64_t store_free;		/* the path of posted stores */
};

/* Start a packet; returns when it arrives. The packetizer is free again at
 * path->packet_free. */
uint64_t hal_time_packet(const struct hal_model *m,
			 struct hal_time_path *path, uint64_t now);

/* Post stores of len bytes in all, at least 1. Returns when the last of them
 * arrives; later than at any call before. The processor stalls until *stall,
 * because more than store_queue of them are under way; *stall <= now: it does
 * not. */
uint64_t hal_time_store(const struct hal_model *m,
			struct hal_time_path *path, uint64_t now, size_t len,
			uint64_t *stall);

/* When does a remote load return that is issued now? Behind the stores before
 * it: these have arrived then. */
uint64_t hal_time_load(const struct hal_model *m,
		       const struct hal_time_path *path, uint64_t now);

/* ---- Transfers ---------------------------------------------------------- */

/*
 * The cDMA engine of a board, in memory that all its users share: processes of
 * the board, and interfaces of a process. It executes transfers one after the
 * other, in the order of their starts. It is one word, which changes by
 * compare-and-swap: a process that ends at any instruction leaves it valid. The
 * transfers of a process that was killed keep the engine busy until they would
 * have ended.
 */
struct hal_time_engine {
	_Atomic uint64_t free;		/* ns: when it is free again */
};

/* A transfer, in the memory of its process, from hal_time_begin() to
 * hal_time_over(). */
struct hal_time_run {
	struct unm_list list;		/* in hal_time_queue.runs */
	uint64_t start, due;		/* ns: when the engine begins and ends
					 * it */
};

/* The transfers of one user of an engine. One thread at a time uses it. */
struct hal_time_queue {
	struct hal_time_engine *engine;
	struct unm_list runs;		/* oldest first */
};

void hal_time_queue_init(struct hal_time_queue *q,
			 struct hal_time_engine *engine);

/* Start a transfer of some bytes: sets run->due. */
void hal_time_begin(const struct hal_model *m, struct hal_time_queue *q,
		    struct hal_time_run *run, uint64_t now, uint64_t bytes);

/*
 * A transfer is over. If it is before its time (it failed or was cancelled),
 * the engine does not execute what is left of it: transfers of the same user
 * that follow it without a gap end earlier. The engine is free earlier too, if
 * no other user's transfer is behind these.
 */
void hal_time_over(struct hal_time_queue *q, struct hal_time_run *run,
		    uint64_t now);

#endif /* HAL_TIME_H */
