/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_fault.h - the fault decorator: a layer around a backend that refuses,
 * delays and fails calls at random, as far as the laws of docs/hal.md allow.
 */
#ifndef HAL_FAULT_H
#define HAL_FAULT_H

#include "hal/hal_types.h"

/*
 * Put the decorator around an opened backend, before its first interface is
 * opened. spec is the value of FI_UNIMEM_FAULT, at most 255 characters, keys
 * separated by commas:
 *
 *	eagain=P	P in 1000 calls that may return -FI_EAGAIN do so
 *	delay=P:US	P in 1000 packets are delayed by US microseconds, and
 *			with each the packets after it to the same peer
 *	dmafail=P	P in 1000 transfers end with -FI_EIO
 *	dmadelay=US	completions are delayed by up to US microseconds
 *	seed=N		start of the random numbers
 *
 * P is 0 .. 900, US 0 .. 1000000, N 0 .. LONG_MAX. 0; -FI_ENOMEM; -FI_EINVAL
 * after a log line. hal_ops.close removes the decorator.
 */
HAL_EXPORT int hal_fault_wrap(struct hal *hal, const char *spec);

#endif /* HAL_FAULT_H */
