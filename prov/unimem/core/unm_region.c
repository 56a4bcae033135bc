/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_region.c - the table of memory regions of a domain, and the memory that
 * an access to a region means. api/unm_mr.c registers and closes regions.
 */
#include <errno.h>
#include <linux/futex.h>
#include <search.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/unm_domain_state.h"
#include "core/unm_region.h"
#include "unm_log.h"
#include "util/unm_list.h"

#ifndef MADV_POPULATE_READ	/* from Linux 5.14 on */
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

/* ---- Keys ------------------------------------------------------------ */

static int unm_mr_by_key(const void *left, const void *right)
{
	const uint64_t *a = left, *b = right;

	return (*a > *b) - (*a < *b);
}

int unm_mr_lookup(struct unm_domain *domain, uint64_t key, struct unm_mr **out)
{
	uint64_t **found = tfind(&key, &domain->regions, unm_mr_by_key);
	struct unm_mr *mr;

	if (found == NULL)
		return -FI_EKEYREJECTED;
	mr = unm_container(*found, struct unm_mr, key);
	if (!mr->enabled)
		return -FI_EKEYREJECTED;
	domain->region_hit = mr;
	*out = mr;
	return 0;
}

/* Draw a random key. 0, or -FI_EIO after a log line. */
static int unm_mr_draw(uint64_t *key)
{
	do {
		if (getrandom(key, sizeof(*key), 0) !=
		    (ssize_t)sizeof(*key)) {
			UNM_WARN(MR, "no key for a memory region: getrandom: "
				 "%s: use keys of your own, without "
				 "FI_MR_PROV_KEY", strerror(errno));
			return -FI_EIO;
		}
	} while (*key == FI_KEY_NOTAVAIL);
	return 0;
}

int unm_mr_enter(struct unm_mr *mr, bool draw)
{
	uint64_t **found;
	int ret;

	unm_lock(mr->domain);
	mr->number = ++mr->domain->region_number;
	do {
		ret = draw ? unm_mr_draw(&mr->key) : 0;
		if (ret != 0)
			break;
		found = tsearch(&mr->key, &mr->domain->regions, unm_mr_by_key);
		if (found == NULL)
			ret = -FI_ENOMEM;
		else if (*found != &mr->key)
			ret = -FI_ENOKEY;
	} while (draw && ret == -FI_ENOKEY);
	unm_unlock(mr->domain);
	return ret;
}

void unm_mr_leave(struct unm_mr *mr)
{
	tdelete(&mr->key, &mr->domain->regions, unm_mr_by_key);
	if (mr->domain->region_hit == mr)
		mr->domain->region_hit = NULL;
}

/* ---- Reaching -------------------------------------------------------- */

void unm_mr_pieces(const struct unm_mr *mr, uint64_t off, uint64_t len,
		   struct iovec *pieces, size_t *count)
{
	size_t i = 0, n = 0;

	while (i + 1 < mr->count && off >= mr->iov[i].iov_len)
		off -= mr->iov[i++].iov_len;
	do {
		uint64_t here = mr->iov[i].iov_len - off;

		if (here > len)
			here = len;
		if (here != 0 || len == 0) {
			pieces[n].iov_base = (void *)
				((uintptr_t)mr->iov[i].iov_base + off);
			pieces[n++].iov_len = here;
		}
		len -= here;
		off = 0;
		i++;
	} while (len != 0);
	*count = n;
}

/*
 * True if the processor can access the aligned 32-bit word around an address.
 * Two operations of futex(2) find that without waking a thread or changing a
 * byte: FUTEX_CMP_REQUEUE compares the word, FUTEX_WAKE_OP adds 0 to it. The
 * kernel does so by an ordinary access, which also works for memory that it
 * does not pin.
 */
static bool unm_mr_word(uintptr_t at, bool write)
{
	uint32_t *word = (uint32_t *)(at & ~(uintptr_t)3), other = 0;
	long ret;

	if (write)
		ret = syscall(SYS_futex, &other, FUTEX_WAKE_OP |
			      FUTEX_PRIVATE_FLAG, 0, NULL, word,
			      FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_LT, 0));
	else
		ret = syscall(SYS_futex, word, FUTEX_CMP_REQUEUE |
			      FUTEX_PRIVATE_FLAG, 0, NULL, &other, 0);
	return ret >= 0 || errno != EFAULT;
}

/* True if unm_mr_word() is true for each page of a piece. */
static bool unm_mr_pages(const struct iovec *piece, uintptr_t page, bool write)
{
	uintptr_t at = (uintptr_t)piece->iov_base;
	uintptr_t last = at + (piece->iov_len - 1);

	for (;;) {
		if (!unm_mr_word(at, write))
			return false;
		at &= ~(page - 1);
		if (last - at < page)
			return true;
		at += page;
	}
}

int unm_mr_present(const struct iovec *pieces, size_t count, uint64_t access)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	bool write = access & FI_REMOTE_WRITE;
	int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	for (size_t i = 0; i < count; i++) {
		uintptr_t at = (uintptr_t)pieces[i].iov_base & ~(page - 1);
		size_t len = (uintptr_t)pieces[i].iov_base - at +
			pieces[i].iov_len;

		/* madvise() fails on memory that the kernel does not pin:
		 * check such memory page by page */
		if (pieces[i].iov_len != 0 &&
		    madvise((void *)at, len, advice) != 0 &&
		    !unm_mr_pages(&pieces[i], page, write))
			return -FI_EFAULT;
	}
	return 0;
}
