/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_page_size.c - the emulation on a kernel with pages of 64 KiB, as arm64
 * kernels may have: the receive space of a peer is allocated and given back,
 * although it does not begin at a page.
 *
 * The wrapped system calls refuse what such a kernel refuses.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hal/emu/hal_emu_types.h"
#include "lib/connect_attempts.h"

#define LARGE		65536u		/* bytes of a page, for the HAL */

/* ---- Replacements of system calls ------------------------------------ */

static unsigned g_refused;		/* calls of madvise() that failed */

int __real_madvise(void *at, size_t len, int advice);
int __wrap_madvise(void *at, size_t len, int advice);
void *__real_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off);
long __real_sysconf(int name);
long __wrap_sysconf(int name);

int __wrap_madvise(void *at, size_t len, int advice)
{
	if ((uintptr_t)at % LARGE != 0) {
		g_refused++;
		errno = EINVAL;
		return -1;
	}
	return __real_madvise(at, len, advice);
}

/* The rest of the last large page stays reserved. */
void *__wrap_mmap(void *at, size_t len, int prot, int flags, int fd, off_t off)
{
	uint8_t *room;

	if (at != NULL)
		return __real_mmap(at, len, prot, flags, fd, off);
	room = __real_mmap(NULL, len + LARGE, PROT_NONE, MAP_PRIVATE |
			   MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return room;
	return __real_mmap(room + -(uintptr_t)room % LARGE, len, prot,
			   flags | MAP_FIXED, fd, off);
}

long __wrap_sysconf(int name)
{
	return name == _SC_PAGESIZE ? (long)LARGE : __real_sysconf(name);
}

/* ---- Receive space --------------------------------------------------- */

/* Bytes from offset off of the link on that have memory, up to its end. */
static size_t resident(const struct emu_peer *peer, uint32_t off)
{
	size_t page = (size_t)__real_sysconf(_SC_PAGESIZE), n = 0;
	size_t pages = (peer->tx_map->len - off + page - 1) / page;
	unsigned char in[1024];

	assert_true(off % page == 0 && pages <= sizeof(in));
	assert_int_equal(mincore((uint8_t *)peer->tx_map->addr + off,
				 pages * page, in), 0);
	for (size_t i = 0; i < pages; i++)
		n += (in[i] & 1) * page;
	return n;
}

/* The last bytes of the space arrive, and the first ones are those of the first
 * call. */
static void write_ends(uint8_t first, uint8_t last)
{
	uint32_t end = attempts.v->caps->space_bytes - 1;

	hal_space_write(attempts.vt, 0, &first, 1);
	hal_space_write(attempts.vt, end, &last, 1);
	hal_space_barrier(attempts.vt);
	attempts_exchange();
	assert_int_equal(*(const uint8_t *)hal_space(attempts.tv, 0), first);
	assert_int_equal(*(const uint8_t *)hal_space(attempts.tv, end), last);
}

static void test_receive_space(void **state)
{
	struct emu_peer *peer = emu_peer(attempts.vt);
	const struct emu_geo *geo = &emu_if(attempts.v)->emu->geo;

	unit_needs(emu_if(attempts.v)->emu->populate);
	/* without this the test shows nothing */
	assert_int_not_equal(geo->space_off % LARGE, 0);
	for (uint8_t i = 1; i < 4; i++) {
		assert_int_equal(hal_space_ready(attempts.vt, 100), 0);
		assert_int_equal(hal_space_ready(attempts.vt, UINT32_MAX), 0);
		assert_true(resident(peer, 0) >= geo->bytes);
		write_ends(i, i + 100);
		hal_space_trim(attempts.vt, 100);
		if (geo->bytes > LARGE)
			assert_int_equal(resident(peer, LARGE), 0);
		assert_int_equal(*(const uint8_t *)hal_space(attempts.tv, 0),
				 i);
	}
	assert_int_equal(g_refused, 0);
}

static int exanode_setup(void **state)
{
	setenv("FI_UNIMEM_PROFILE", "exanode", 1);
	return attempts_setup(state);
}

UNIT_MAIN(
	ATTEMPTS_TEST(test_receive_space),
	{ "test_receive_space_exanode", attempts_test, exanode_setup,
	  attempts_teardown, (void *)test_receive_space },
)
