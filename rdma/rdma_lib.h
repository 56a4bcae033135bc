/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_lib.h - the library of the process: its lock, its errors, waiting
 * (rdma_lib.c).
 */
#ifndef RDMA_LIB_H
#define RDMA_LIB_H

#include "rdma_state.h"

/* Take the lock. NULL, without the lock: this process has not called
 * unim_dma_init(). */
struct rdma *rdma_enter(void);
/* Release the lock, after the event fd was brought up to date. */
void rdma_leave(struct rdma *r);

/* Keep an error for unim_dma_error(), 0: none. Returns it. */
int rdma_fail(int error);

/* A wait: all zero at first. */
struct rdma_wait {
	unsigned int idle;		/* steps without progress */
	uint64_t end;			/* ns: when it ends; 0: not set yet */
};

/*
 * One step of a wait, without the lock: make progress, and give up the
 * processor if there was none for a while. 0; -ETIMEDOUT: timeout_ms have
 * passed since the first step (-1: no limit); -EINVAL: the library was closed.
 */
int rdma_wait_step(struct rdma_wait *wait, int timeout_ms);

/* Give up the processor after that many steps without progress. */
void rdma_pause(unsigned int idle);

#endif /* RDMA_LIB_H */
