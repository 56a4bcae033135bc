/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_thread.h - the submitter thread, which exists once a transfer has a
 * call-back (rdma_thread.c).
 */
#ifndef RDMA_THREAD_H
#define RDMA_THREAD_H

#include "rdma_state.h"

/* Start the thread if it does not run. 0; -ENOMEM: no thread can be made. */
int rdma_thread_begin(struct rdma *r);

/* End the thread if it runs. The lock is released while the thread ends. */
void rdma_thread_end(struct rdma *r);

#endif /* RDMA_THREAD_H */
