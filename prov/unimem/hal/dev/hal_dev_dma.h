/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_dma.h - transfers of an interface (hal_dev_dma.c). All calls belong
 * to the thread that uses the interface.
 */
#ifndef HAL_DEV_DMA_H
#define HAL_DEV_DMA_H

#include "hal/dev/hal_dev_types.h"

/*
 * hal_ops.dma_post: start a transfer; dev_dma_poll() reports its end with
 * token. Returns 0; -FI_EAGAIN: DEV_DMA_DEPTH transfers are posted; -FI_EINVAL:
 * a bad argument, or memory that is not dmable; -FI_EACCES: no imported memory.
 */
int dev_dma_post(struct hal_if *hif, const struct hal_dma *dma,
		 uint64_t token);

/* hal_ops.dma_poll: start further pieces, and report up to max transfers that
 * are over. Returns their number. */
int dev_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp, int max);

/*
 * Cancel the transfers of a peer, NULL: of all peers. They no longer move bytes
 * after the return. dev_dma_poll() still reports them: with status 0 if they
 * were over, else with -FI_ECANCELED.
 */
void dev_dma_cancel(struct dev_if *dif, struct dev_peer *peer);

#endif /* HAL_DEV_DMA_H */
