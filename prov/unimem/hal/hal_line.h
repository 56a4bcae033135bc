/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_line.h - hints that move cache lines between two processors before they
 * are needed (hal_line.c). Part of hal.h.
 *
 * The sender writes a line of receive space, and has to take it from the cache
 * of the receiver; the receiver reads it, and has to take it from the cache of
 * the sender. Where these processors are far apart, either takes longer than
 * the copy itself. Hints change no data and order nothing: they may be left out
 * anywhere. Any thread may call them.
 */
#ifndef HAL_LINE_H
#define HAL_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/hal_types.h"

/* Does this processor have the instruction for hal_line_claim()? Slow: call it
 * once. */
bool hal_line_can_claim(void);

/* Begin to fetch the lines of len bytes for writing. p: the first byte of a
 * line. Addresses that are not mapped are ignored. Call it only if
 * hal_line_can_claim(). */
static inline void hal_line_claim(void *p, size_t len)
{
	uint8_t *at = p;

	for (size_t i = 0; i < len; i += HAL_LINE)
#if defined(__x86_64__)
		/* without -mprfchw compilers use another instruction */
		__asm__ volatile("prefetchw %0" : : "m"(at[i]));
#else
		__builtin_prefetch(at + i, 1);
#endif
}

/* Does this processor have an instruction for hal_line_demote()? Slow: call it
 * once. */
bool hal_line_can_demote(void);

/* Move lines that were written from the caches of this processor to the cache
 * that the processors of a package share. p: the first byte of a line. Call it
 * only if hal_line_can_demote(). */
static inline void hal_line_demote(void *p, size_t len)
{
#if defined(__x86_64__)
	uint8_t *at = p;

	/* cldemote (%rax), also for assemblers that do not know it; the
	 * operand, a whole line, keeps it behind the stores */
	for (size_t i = 0; i < len; i += HAL_LINE)
		__asm__ volatile(".byte 0x0f, 0x1c, 0x00" :
				 "+m"(*(uint8_t (*)[HAL_LINE])(at + i)) :
				 "a"(at + i));
#else
	(void)p;
	(void)len;
#endif
}

#endif /* HAL_LINE_H */
