/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_op.c - copies between vectors of memory and contiguous memory. */
#include "core/unm_op.h"

/* The bytes of *iov after the first *off, at most left of them. *off is reduced
 * by the bytes that were skipped. */
static struct iovec unm_iov_part(const struct iovec *iov, size_t *off,
				 size_t left)
{
	struct iovec part = { .iov_len = 0 };

	if (*off >= iov->iov_len) {
		*off -= iov->iov_len;
		return part;
	}
	part.iov_base = (char *)iov->iov_base + *off;
	part.iov_len = iov->iov_len - *off;
	if (part.iov_len > left)
		part.iov_len = left;
	*off = 0;
	return part;
}

size_t unm_iov_fill(const struct iovec *iov, size_t count, size_t off,
		    const void *src, size_t len)
{
	size_t done = 0;

	for (size_t i = 0; i < count && done < len; i++) {
		struct iovec part = unm_iov_part(&iov[i], &off, len - done);

		if (part.iov_len == 0)
			continue;
		memcpy(part.iov_base, (const char *)src + done, part.iov_len);
		done += part.iov_len;
	}
	return done;
}

size_t unm_iov_fetch(const struct iovec *iov, size_t count, size_t off,
		     void *dst, size_t len)
{
	size_t done = 0;

	for (size_t i = 0; i < count && done < len; i++) {
		struct iovec part = unm_iov_part(&iov[i], &off, len - done);

		if (part.iov_len == 0)
			continue;
		memcpy((char *)dst + done, part.iov_base, part.iov_len);
		done += part.iov_len;
	}
	return done;
}
