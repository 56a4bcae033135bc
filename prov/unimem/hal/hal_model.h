/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_model.h - the figures of the timing model, from a file; private to the
 * HAL. docs/model.md describes the model and the file.
 */
#ifndef HAL_MODEL_H
#define HAL_MODEL_H

#include <stdint.h>

#include "hal/hal_export.h"

/* The time that each step of the hardware takes in the model, in ns. Constant
 * once it is loaded. */
struct hal_model {
	char path[192];			/* of the file */
	uint64_t packet_latency;	/* from the sender's call to the
					 * receiver's mailbox */
	uint64_t packet_gap;		/* between packets of an interface */
	uint64_t fifo_depth;		/* unreleased packets per peer, 2^n */
	uint64_t store_latency;		/* of a posted remote store */
	uint64_t store_time;		/* between two stores of at most
					 * HAL_MODEL_SHORT bytes */
	uint64_t line_time;		/* ... of at most HAL_MODEL_LINE */
	uint64_t store_queue;		/* posted stores under way at which the
					 * processor stalls */
	uint64_t load_round_trip;	/* of a remote load */
	uint64_t dma_setup;		/* of one transfer */
	uint64_t dma_bandwidth;		/* bytes per second */
	uint64_t route_registration;	/* of the first import of a region */
};

#define HAL_MODEL_SHORT	32		/* bytes of a short posted store */
#define HAL_MODEL_LINE	64		/* ... and of the longest */

/*
 * Read a file of figures into *model. name: its path, or "exanode" for the
 * file that is installed with the library. 0; -FI_EINVAL after one log line
 * that names file, line and what is allowed. *model is set on success only.
 */
HAL_EXPORT int hal_model_load(const char *name, struct hal_model *model);

#endif /* HAL_MODEL_H */
