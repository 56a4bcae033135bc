/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_complete.h - a fence for calls of the library (gsas_complete.c). Private
 * to libgsas.
 */
#ifndef GSAS_COMPLETE_H
#define GSAS_COMPLETE_H

struct gsas_thread;

/* Wait as gsas_fence() of all boards, but without a request to the boards at
 * which this thread has nothing under way. The errors are kept for
 * gsas_fence_take() and for later fences. */
void gsas_fence_wait(struct gsas_thread *t);

/* The first error that is kept, or 0. No error is kept any more. */
int gsas_fence_take(struct gsas_thread *t);

#endif /* GSAS_COMPLETE_H */
