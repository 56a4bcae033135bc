/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_fault.h - the fault decorator.
 */
#ifndef HAL_FAULT_H
#define HAL_FAULT_H

#include "hal/hal.h"

/*
 * Put the decorator around an opened backend, before its first interface is
 * opened. spec is the value of FI_UNIMEM_FAULT, keys separated by commas:
 *
 *	eagain=P	calls that may answer -FI_EAGAIN do so, P in 1000
 *	delay=P:US	P in 1000 packets, and those behind it to the same
 *			peer, are held for US microseconds
 *	dmafail=P	P in 1000 transfers end with -FI_EIO
 *	dmadelay=US	completions are held for up to US microseconds
 *	seed=N		start of the random numbers
 *
 * P is 0 .. 900, US 0 .. 1000000. Returns 0, -FI_ENOMEM, or -FI_EINVAL after a
 * line that names the part it does not understand. Takes itself off when the
 * backend is closed.
 */
HAL_EXPORT int hal_fault_wrap(struct hal *hal, const char *spec);

/* The same for a backend not yet open; params->fault is the spec. */
int hal_fault_open(const struct hal_params *params,
		   const struct hal_ops *inner, struct hal **hal);

#endif /* HAL_FAULT_H */
