/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_engine.h - starts, advances and ends transfers (rdma_engine.c). Nothing
 * here waits.
 */
#ifndef RDMA_ENGINE_H
#define RDMA_ENGINE_H

#include "rdma_state.h"

/* Append a transfer, which is filled in, to those that are to be started. */
void rdma_engine_add(struct rdma *r, struct unim_dma_transfer *x);

/* Poll the services, start transfers in their order, advance and end transfers.
 * A bounded amount of work. Returns whether anything was done. */
bool rdma_engine_progress(struct rdma *r);

/* Make the event fd readable or not, as unim_dma_event_fd() says. Call it
 * before the lock is released if transfers may have changed. */
void rdma_engine_signal(struct rdma *r);

/* Give the slot of a transfer that has ended to another one. */
void rdma_engine_recycle(struct unim_dma_transfer *x);

#endif /* RDMA_ENGINE_H */
