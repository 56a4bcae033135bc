/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_engine.h - the cDMA engine, where its registers belong to this
 * process (hal_dev_engine.c). Any thread may call these functions; a lock of
 * the engine serializes them.
 */
#ifndef HAL_DEV_ENGINE_H
#define HAL_DEV_ENGINE_H

#include "hal/dev/hal_dev_types.h"

/* Claim the engine of the local board and set dev->engine. Returns 0, or
 * -FI_ENODEV, -FI_ENOMEM or -FI_EMFILE after a log line. */
int dev_engine_open(struct hal_dev *dev);

/* Give the engine back. No transfer may be under way. A forked child's copy
 * touches no register. */
void dev_engine_close(struct hal_dev *dev);

/*
 * Start a piece of transfer x from global address src to dst: as many of its
 * remaining bytes as the engine can count, at most max. x->chunk receives the
 * number of bytes. Returns 0; -EAGAIN: the engine has another piece; -EIO: the
 * engine is broken.
 */
int dev_engine_start(struct hal_dev *dev, struct dev_xfer *x, uint64_t src,
		     uint64_t dst, uint64_t max);

/* Check whether the piece in the engine is over, and store its result (a
 * release), whichever interface it belongs to. */
void dev_engine_poll(struct hal_dev *dev);

/* Stop the piece of x, if the engine has it: its result is -FI_ECANCELED,
 * unless it was over. The engine moves none of its bytes after the return. */
void dev_engine_cancel(struct hal_dev *dev, struct dev_xfer *x);

#endif /* HAL_DEV_ENGINE_H */
