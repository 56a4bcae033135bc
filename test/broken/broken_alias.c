/* SPDX-License-Identifier: BSD-2-Clause */
/* broken_alias.c - mutations of second mappings of shared memory, see
 * broken.h */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>

#include "broken.h"

#define PAGE	((uintptr_t)4096)

/* Map eight bytes after those that the key names. */
static int open_beside(const struct hal_key *key, uint64_t len,
		       uint32_t access, struct hal_window *win)
{
	struct hal_key beside = *key;

	beside.word[1] ^= 8;
	return broken_base->alias_open(&beside, len, access, win);
}

static void install_beside(struct hal_ops *ops)
{
	ops->alias_open = open_beside;
}

/* Map with write access although the key permits reading only. */
static int open_any(const struct hal_key *key, uint64_t len, uint32_t access,
		    struct hal_window *win)
{
	return broken_base->alias_open(key, len, access & HAL_ALIAS_READ, win);
}

static void install_any(struct hal_ops *ops)
{
	ops->alias_open = open_any;
}

static int key_any(const void *addr, uint64_t len, uint32_t access,
		   struct hal_key *key)
{
	return broken_base->alias_key(addr, len, access & HAL_ALIAS_READ, key);
}

static void install_key_any(struct hal_ops *ops)
{
	ops->alias_key = key_any;
}

static void *pages_of(const struct hal_window *win, size_t *bytes)
{
	uintptr_t at = (uintptr_t)win->addr;

	*bytes = ((at & (PAGE - 1)) + win->bytes + PAGE - 1) & ~(PAGE - 1);
	return (void *)(at & ~(PAGE - 1));
}

static int open_inherited(const struct hal_key *key, uint64_t len,
			  uint32_t access, struct hal_window *win)
{
	int ret = broken_base->alias_open(key, len, access, win);
	size_t bytes;
	void *at;

	if (ret == 0) {
		at = pages_of(win, &bytes);
		madvise(at, bytes, MADV_DOFORK);
	}
	return ret;
}

static void install_inherited(struct hal_ops *ops)
{
	ops->alias_open = open_inherited;
}

/* Map a copy instead of the pages. */
static int open_copy(const struct hal_key *key, uint64_t len, uint32_t access,
		     struct hal_window *win)
{
	int ret = broken_base->alias_open(key, len, access, win);
	static uint8_t copy[16 * PAGE];
	size_t bytes;
	void *at;

	if (ret != 0)
		return ret;
	at = pages_of(win, &bytes);
	memcpy(copy, at, bytes);
	at = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE |
		  MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	memcpy(at, copy, bytes);
	return 0;
}

static void install_copy(struct hal_ops *ops)
{
	ops->alias_open = open_copy;
}

const struct mutation broken_alias[] = {
	{ "alias-beside", "alias_is_the_same_memory",
	  .install = install_beside },
	{ "alias-of-a-copy", "alias_atomics", .install = install_copy },
	{ "alias-writes-what-it-reads", "alias_opens_what_is_mapped_only",
	  .install = install_any },
	{ "alias-key-of-what-is-read", "alias_key_of_shared_memory_only",
	  .install = install_key_any },
	{ "alias-inherited", "alias_is_not_inherited",
	  .install = install_inherited },
};
const int broken_alias_count = sizeof(broken_alias) / sizeof(broken_alias[0]);
