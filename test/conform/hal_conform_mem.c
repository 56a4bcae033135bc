/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_mem.c - conformance tests of dmable memory: keys, generations and
 * imports
 */
#include <fcntl.h>
#include <sys/mman.h>

#include "conform/hal_conform.h"
#include "lib/proc_files.h"

int ct_import(struct hal_peer *peer, const struct hal_key *key,
	      struct hal_rmem **rmem)
{
	uint64_t end = ct_deadline();
	int ret;

	while ((ret = hal_mem_import(peer, key, rmem)) == -FI_EAGAIN) {
		if (ct_now() > end)
			return -FI_ETIMEDOUT;
		ct_step_all();
	}
	return ret;
}

static bool all_zero(const uint8_t *p, size_t n)
{
	while (n > 0 && p[n - 1] == 0)
		n--;
	return n == 0;
}

/* New memory is zero, writable and disjoint, on each board. */
static void mem_alloc_gives_clean_memory(void **state)
{
	static const size_t sizes[] = { 1, 4095, 4096, 4097, 1 << 20,
		(5 << 20) + 3 };
	enum { N = 6 };
	struct hal_mem *mem[N];
	void *addr[N];

	for (int round = 0; round < 6; round++) {
		for (int i = 0; i < N; i++) {
			int board = (i + round) % (int)ct_caps->boards;

			assert_int_equal(ct_mem_alloc(board, sizes[i], &mem[i],
						      &addr[i]), 0);
			assert_true(all_zero(addr[i], sizes[i]));
			ct_fill(addr[i], sizes[i], i);
		}
		for (int i = 0; i < N; i++)
			assert_true(ct_filled(addr[i], sizes[i], i));
		for (int i = 0; i < N; i++)
			hal_mem_free(ct_hal, mem[i]);
	}
}

static void mem_alloc_refuses_nonsense(void **state)
{
	struct hal_mem *mem = NULL;
	void *addr = NULL;

	assert_int_equal(hal_mem_alloc(ct_hal, (int)ct_caps->boards, 4096,
				       &mem, &addr), -FI_EINVAL);
	assert_int_equal(hal_mem_alloc(ct_hal, 0, 0, &mem, &addr),
			 -FI_EINVAL);
	assert_true(hal_mem_alloc(ct_hal, 0, SIZE_MAX / 2, &mem, &addr) < 0);
	assert_null(mem);
	assert_null(addr);
}

/* ---- Too much -------------------------------------------------------- */

#define TOO_MUCH	((size_t)1 << 45)

static unsigned complaints;

static void count_complaints(int level, const char *line)
{
	(void)line;
	complaints += level == 0;
}

/* Returns whether TOO_MUCH is far beyond the memory of this machine; otherwise
 * the allocation would succeed. */
static bool too_much(void)
{
	FILE *f = fopen("/proc/meminfo", "r");
	unsigned long long kb, sum = 0;
	char line[256];
	int known = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		if (sscanf(line, "MemAvailable: %llu", &kb) == 1)
			known = 1;
		else if (sscanf(line, "SwapFree: %llu", &kb) != 1)
			continue;
		sum += kb;
	}
	if (f != NULL)
		fclose(f);
	return known && sum < TOO_MUCH / 1024 / 8;
}

/* An allocation beyond the machine's memory fails at once, with one log line,
 * and disturbs nothing else. */
static void mem_too_much(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct hal_mem *mem = NULL, *little;
	void *addr = NULL, *at;

	unit_needs(too_much());
	for (uint64_t i = 0; i < 10; i++) {
		int ret;

		complaints = 0;
		hal_log_set(count_complaints);
		ret = ct_mem_alloc(0, i == 0 ? SIZE_MAX / 2 : TOO_MUCH,
				   &mem, &addr);
		hal_log_set(NULL);
		assert_int_equal(ret, -FI_ENOMEM);
		assert_int_equal(complaints, 1);
		assert_true(mem == NULL && addr == NULL);
		assert_int_equal(ct_mem_alloc(0, 1 << 20, &little, &at), 0);
		assert_true(all_zero(at, 1 << 20));
		hal_mem_free(ct_hal, little);
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, i), 0);
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == i);
	}
}

/* ---- Keys and imports ------------------------------------------------ */

static int put_byte(struct ct_if *ci, struct hal_peer *peer,
		    struct hal_rmem *rmem, uint8_t *local, uint64_t at)
{
	struct hal_dma d = { .op = HAL_DMA_PUT, .peer = peer, .rmem = rmem,
			     .raddr = at, .local = local, .len = 1 };

	return ct_dma_run(ci, &d);
}

/* Imports of a region are counted: each release ends one of them. */
static void mem_imports_are_counted(void **state)
{
	struct ct_pair p = ct_pair(0, (int)ct_caps->boards - 1);
	struct ct_region r = ct_region(10000), l = ct_region(1);
	struct hal_rmem *rmem[3];

	for (int i = 0; i < 3; i++)
		assert_int_equal(ct_import(p.ab, &r.key, &rmem[i]), 0);
	for (int i = 0; i < 3; i++) {
		l.addr[0] = i + 1;
		assert_int_equal(put_byte(p.a, p.ab, rmem[i], l.addr, 100 + i),
				 0);
		assert_int_equal(r.addr[100 + i], i + 1);
		hal_mem_release(p.ab, rmem[i]);
	}
	/* Import once more, after all releases. */
	assert_int_equal(ct_import(p.ab, &r.key, &rmem[0]), 0);
	assert_int_equal(put_byte(p.a, p.ab, rmem[0], l.addr, 9999), 0);
	hal_mem_release(p.ab, rmem[0]);
	hal_mem_free(ct_hal, l.mem);
	hal_mem_free(ct_hal, r.mem);
}

/* The key of a freed region is refused for ever. */
static void mem_stale_key_is_refused(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct hal_rmem *rmem = NULL;

	for (int i = 0; i < 40; i++) {
		struct ct_region old = ct_region(4096), next;

		if (i & 1) {
			/* in some rounds the importer has used the key */
			assert_int_equal(ct_import(p.ab, &old.key, &rmem), 0);
			hal_mem_release(p.ab, rmem);
		}
		hal_mem_free(ct_hal, old.mem);
		rmem = NULL;
		assert_int_equal(ct_import(p.ab, &old.key, &rmem),
				 -FI_EKEYREJECTED);
		/* most likely at the same address */
		next = ct_region(4096);
		assert_int_equal(ct_import(p.ab, &old.key, &rmem),
				 -FI_EKEYREJECTED);
		assert_null(rmem);
		assert_int_equal(ct_import(p.ab, &next.key, &rmem), 0);
		hal_mem_release(p.ab, rmem);
		hal_mem_free(ct_hal, next.mem);
	}
}

/* A key with one wrong bit, or a random key, is refused. */
static void mem_wrong_key_is_refused(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct ct_region r = ct_region(4096);
	struct hal_rmem *rmem = NULL;
	uint64_t rng = 11;

	for (int i = 0; i < 328; i++) {
		struct hal_key key = r.key;

		if (i < 128)
			key.word[i / 64] ^= UINT64_C(1) << i % 64;
		else if (i < 228)
			key.word[i & 1] = ct_random(&rng);
		else
			ct_fill(&key, sizeof(key), i);
		assert_int_equal(ct_import(p.ab, &key, &rmem),
				 -FI_EKEYREJECTED);
		assert_null(rmem);
	}
	assert_int_equal(ct_import(p.ab, &r.key, &rmem), 0);
	hal_mem_release(p.ab, rmem);
	hal_mem_free(ct_hal, r.mem);
}

/* A region is freed while a peer has imported it: each transfer completes once,
 * with success or an error. */
static void mem_freed_while_imported(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct ct_region l = ct_region(64);

	for (int i = 0; i < 20; i++) {
		struct ct_region r = ct_region(4096), other;
		struct hal_rmem *rmem, *again;
		int ret;

		assert_int_equal(ct_import(p.ab, &r.key, &rmem), 0);
		hal_mem_free(ct_hal, r.mem);
		other = ct_region(4096);
		/* The key may still be accepted while an import exists. */
		ret = ct_import(p.ab, &r.key, &again);
		assert_true(ret == 0 || ret == -FI_EKEYREJECTED);
		if (ret == 0) {
			put_byte(p.a, p.ab, again, l.addr, 6);
			hal_mem_release(p.ab, again);
		}
		memset(other.addr, 0x77, 4096);
		l.addr[0] = 0x11;
		assert_true(put_byte(p.a, p.ab, rmem, l.addr, 5) <= 0);
		/* The transfer must not have written into the new region. */
		assert_true(other.addr[5] == 0x77 && other.addr[6] == 0x77);
		hal_mem_release(p.ab, rmem);
		assert_int_equal(ct_import(p.ab, &r.key, &again),
				 -FI_EKEYREJECTED);
		hal_mem_free(ct_hal, other.mem);
	}
	hal_mem_free(ct_hal, l.mem);
}

/* Many imports at the same time are all answered. */
static void mem_many_imports(void **state)
{
	enum { N = 200 };
	struct ct_pair p = ct_pair(0, 0);
	struct ct_region r[N];
	struct hal_rmem *rmem[N] = { NULL };
	uint64_t end = ct_deadline();
	int left = N;

	for (int i = 0; i < N; i++)
		r[i] = ct_region(100 + i);
	while (left > 0) {
		assert_true(ct_now() < end);
		for (int i = 0; i < N; i++) {
			int ret;

			if (rmem[i] != NULL)
				continue;
			ret = hal_mem_import(p.ab, &r[i].key, &rmem[i]);
			assert_true(ret == 0 || ret == -FI_EAGAIN);
			assert_true((rmem[i] != NULL) == (ret == 0));
			left -= ret == 0;
		}
		ct_step_all();
	}
	for (int i = 0; i < N; i++) {
		hal_mem_release(p.ab, rmem[i]);
		hal_mem_free(ct_hal, r[i].mem);
	}
}

/* Imports that were started and never finished use no memory after their region
 * was freed. */
static void mem_imports_abandoned(void **state)
{
	struct ct_pair p = ct_pair(0, 0);

	for (int i = 0; i < 400; i++) {
		struct ct_region r = ct_region(4096);
		struct hal_rmem *rmem;

		if (hal_mem_import(p.ab, &r.key, &rmem) == 0)
			hal_mem_release(p.ab, rmem);
		for (int k = 0; k < 5; k++)
			ct_step_all();
		hal_mem_free(ct_hal, r.mem);
	}
	assert_in_range(proc_self_mappings("/memfd:unimem-mem"), 0, 100);
}

/* An import from a peer that has ended fails at once. */
static void mem_import_from_the_dead(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct ct_region r = ct_region(4096);
	struct hal_rmem *rmem = NULL;
	int ret;

	ct_close(p.b);
	ret = hal_mem_import(p.ab, &r.key, &rmem);
	assert_true(ret < 0);
	ct_wait_event(p.a, HAL_EV_DEAD, p.ab);
	ret = ct_import(p.ab, &r.key, &rmem);
	assert_true(ret < 0 && ret != -FI_ETIMEDOUT);
	assert_null(rmem);
	hal_peer_free(p.ab);
	hal_mem_free(ct_hal, r.mem);
}

/* Where memory of other boards is not coherent, a process opens memory of the
 * own board by its key; elsewhere there is no such call. It is the same memory,
 * and local memory for transfers, also after the first owner has freed it. */
static void mem_open_on_the_own_board(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct ct_region from, to = ct_region(70000);
	struct hal_dma put = { .op = HAL_DMA_PUT, .peer = p.ab, .len = 60000 };
	struct hal_key bad;
	struct hal_mem *mem;
	void *addr, *at = NULL;

	assert_int_equal(hal_mem_alloc(ct_hal, -1, 70000, &from.mem, &addr), 0);
	assert_int_equal(hal_mem_key(ct_hal, from.mem, &from.key), 0);
	bad = from.key;
	bad.word[1] ^= 1;
	if (ct_caps->flags & HAL_CAP_COHERENT) {
		assert_int_equal(hal_mem_open(ct_hal, &from.key, &mem, &at),
				 -FI_ENOSYS);
		hal_mem_free(ct_hal, from.mem);
		hal_mem_free(ct_hal, to.mem);
		return;
	}
	assert_int_equal(hal_mem_open(ct_hal, &bad, &mem, &at),
			 -FI_EKEYREJECTED);
	assert_null(at);
	assert_int_equal(hal_mem_open(ct_hal, &from.key, &mem, &at), 0);
	ct_fill(addr, 70000, 5);
	assert_true(ct_filled(at, 70000, 5));
	hal_mem_free(ct_hal, from.mem);
	assert_true(ct_filled(at, 70000, 5));
	assert_int_equal(ct_import(p.ab, &to.key, &put.rmem), 0);
	put.local = at;
	assert_int_equal(ct_dma_run(p.a, &put), 0);
	assert_memory_equal(to.addr, at, 60000);
	hal_mem_free(ct_hal, mem);
	assert_int_equal(hal_mem_open(ct_hal, &from.key, &mem, &at),
			 -FI_EKEYREJECTED);
	hal_mem_free(ct_hal, to.mem);
}

/* A memfd of the caller, or none that a peer would take. */
static int adopt_file(size_t bytes, bool sealed)
{
	int fd = memfd_create("adopted", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	if (sealed)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK |
				       F_SEAL_GROW), 0);
	return fd;
}

/* Memory of the caller becomes dmable, also with pages that nobody has touched
 * yet, and while the caller has no descriptor; it stays the caller's after. */
static void mem_adopted(void **state)
{
	const size_t bytes = 1 << 20;
	struct ct_pair p = ct_pair(0, 0);
	struct ct_region to = ct_region(70000);
	struct hal_dma get = { .op = HAL_DMA_GET, .peer = p.ab, .len = 60000,
			       .raddr = 5000, .local = to.addr };
	int fd = adopt_file(bytes, true), open = adopt_file(bytes, false);
	uint8_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			   0);
	struct hal_mem *mem;
	struct hal_key key;
	int ret;

	assert_true(at != MAP_FAILED);
	ret = hal_mem_adopt(ct_hal, fd, at, bytes, &mem);
	if (ret == 0) {
		close(fd);
		assert_int_equal(hal_mem_key(ct_hal, mem, &key), 0);
		assert_int_equal(hal_mem_adopt(ct_hal, open, at, bytes, &mem),
				 -FI_EINVAL);
		ct_fill(at + 5000, 60000, 3);
		assert_int_equal(ct_import(p.ab, &key, &get.rmem), 0);
		assert_int_equal(ct_dma_run(p.a, &get), 0);
		assert_memory_equal(to.addr, at + 5000, 60000);
		hal_mem_release(p.ab, get.rmem);
		hal_mem_free(ct_hal, mem);
		assert_true(ct_filled(at + 5000, 60000, 3));
		assert_int_equal(ct_import(p.ab, &key, &get.rmem),
				 -FI_EKEYREJECTED);
	} else {
		assert_int_equal(ret, -FI_ENOSYS);
		assert_null(ct_hal->ops->mem_adopt);
		close(fd);
	}
	close(open);
	munmap(at, bytes);
	hal_mem_free(ct_hal, to.mem);
}

/* Closing the HAL frees memory that was not freed; the teardown checks for
 * leaks. The keys open nothing when the HAL is opened again. */
static void mem_left_is_freed(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct ct_region r[5];
	struct hal_rmem *rmem;

	for (int i = 0; i < 5; i++) {
		r[i] = ct_region(1 << 16);
		assert_int_equal(ct_import(p.ab, &r[i].key, &rmem), 0);
	}
	ct_close(p.a);
	ct_close(p.b);
	ct_hal_close();
	assert_int_equal(ct_hal_open(), 0);
	p = ct_pair(0, 0);
	for (int i = 0; i < 5; i++)
		assert_int_equal(ct_import(p.ab, &r[i].key, &rmem),
				 -FI_EKEYREJECTED);
}

const struct CMUnitTest ct_mem_tests[] = {
	CT_TEST(mem_alloc_gives_clean_memory),
	CT_TEST(mem_alloc_refuses_nonsense),
	CT_TEST(mem_too_much),
	CT_TEST(mem_imports_are_counted),
	CT_TEST(mem_stale_key_is_refused),
	CT_TEST(mem_wrong_key_is_refused),
	CT_TEST(mem_freed_while_imported),
	CT_TEST(mem_many_imports),
	CT_TEST(mem_imports_abandoned),
	CT_TEST(mem_import_from_the_dead),
	CT_TEST(mem_open_on_the_own_board),
	CT_TEST(mem_adopted),
	CT_TEST(mem_left_is_freed),
};
const size_t ct_mem_count = CT_COUNT(ct_mem_tests);
