/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_copy.h - copying the payload of a packet: part of hal.h, which includes
 * this file. */
#ifndef HAL_COPY_H
#define HAL_COPY_H

#include <stddef.h>

/* Copy len bytes, 0 to HAL_PKT_WIDE, without calling memcpy(). The ranges do
 * not overlap. Some bytes may be stored twice. */
static inline __attribute__((always_inline))
void hal_copy_small(void *dst, const void *src, size_t len)
{
	char *d = dst;
	const char *s = src;

	if (len >= 8) {
		for (size_t i = 0; i + 8 < len; i += 8)
			__builtin_memcpy(d + i, s + i, 8);
		__builtin_memcpy(d + len - 8, s + len - 8, 8);
	} else if (len >= 4) {
		__builtin_memcpy(d, s, 4);
		__builtin_memcpy(d + len - 4, s + len - 4, 4);
	} else if (len != 0) {
		d[0] = s[0];
		d[len >> 1] = s[len >> 1];
		d[len - 1] = s[len - 1];
	}
}

#endif /* HAL_COPY_H */
