/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_leak.c - what is closed is gone, and the decorator of hal_fault.c
 * really does what it is there for.
 */
#include <malloc.h>
#include <sys/resource.h>

#include "conform/hal_conform.h"
#include "lib/proc_files.h"

#define CYCLES	(ct_net() ? 20 : 70)

/* Everything an interface can be used for, once. */
static void cycle(bool early)
{
	struct ct_pair p = ct_pair(0, (int)ct_caps->boards - 1);
	struct hal_peer *self = ct_connect(p.a, &p.a->hif->addr);
	struct hal_mem *mem;
	struct hal_rmem *rmem;
	struct hal_key key;
	struct hal_dma d;
	void *addr;

	assert_int_equal(ct_mem_alloc(0, 10000, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(ct_hal, mem, &key), 0);
	assert_int_equal(ct_import(p.ab, &key, &rmem), 0);
	d = (struct hal_dma){ .op = HAL_DMA_PUT, .peer = p.ab, .rmem = rmem,
			      .local = addr, .len = 100, .raddr = 1000 };
	assert_int_equal(ct_dma_run(p.a, &d), 0);
	assert_int_equal(hal_space_ready(p.ab, UINT32_MAX), 0);
	assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, 1), 0);
	assert_int_equal(ct_send(p.a, self, CT_TYPE_PING, 1), 0);
	if (!early) {
		ct_recv(p.ba, CT_TYPE_PING);
		ct_recv(self, CT_TYPE_PING);
		hal_mem_release(p.ab, rmem);
		ct_peer_free(self);
	}
	ct_close(early ? p.b : p.a);
	ct_step_all();
	ct_close(early ? p.a : p.b);
	hal_mem_free(ct_hal, mem);
}

static size_t heap_growth(size_t *since)
{
	size_t was = *since;

	*since = mallinfo2().uordblks;
	return *since > was ? *since - was : 0;
}

/* Interfaces come and go, some in disorder: nothing grows. */
static void leak_nothing_over_cycles(void **state)
{
	size_t heap = 0, grown, later;
	int fds = 0, maps = 0;

	for (int i = 0; i < 20; i++)
		cycle(i & 1);
	heap_growth(&heap);
	fds = proc_self_fds();
	maps = proc_self_mappings("");
	for (int i = 0; i < CYCLES; i++)
		cycle(i & 1);
	grown = heap_growth(&heap);
	for (int i = 0; i < CYCLES; i++)
		cycle(i & 1);
	later = heap_growth(&heap);
	assert_int_equal(proc_self_fds(), fds);
	/* the kernel may split or join some that have nothing to do with it */
	assert_in_range(proc_self_mappings(""), 0, maps + 4);
	/* less than a smallest block per cycle; a table may grow once. An
	 * engine has threads, which keep blocks that were freed. */
	assert_in_range(grown < later ? grown : later, 0,
			CYCLES * (ct_net() ? 256 : 16) - 1);
}

/* And so when the whole HAL is closed in between. */
static void leak_nothing_over_opens(void **state)
{
	int fds = 0;

	for (int i = 0; i < 20; i++) {
		ct_hal_close();
		if (i == 2)
			fds = proc_self_fds();
		if (i > 2)
			assert_int_equal(proc_self_fds(), fds);
		assert_int_equal(ct_hal_open(), 0);
		cycle(i & 1);
	}
}

static void log_ignore(int level, const char *line)
{
	(void)level;
	(void)line;
}

/* As much of a cycle as there is room for; errors, but nothing worse. */
static void starved_cycle(void)
{
	struct hal_if *a = NULL, *b = NULL;
	struct hal_peer *ab = NULL, *ba = NULL;
	struct hal_mem *mem = NULL;
	struct hal_event ev[8];
	void *addr;
	int ret = ct_mem_alloc(0, 4096, &mem, &addr);

	assert_true(ret <= 0 && (ret == 0) == (mem != NULL));
	ret = hal_if_open(ct_hal, 0, &a);
	assert_true(ret <= 0 && (ret == 0) == (a != NULL));
	ret = hal_if_open(ct_hal, 0, &b);
	assert_true(ret <= 0 && (ret == 0) == (b != NULL));
	if (a != NULL)
		ct_host_join(a);
	if (b != NULL)
		ct_host_join(b);
	for (int i = 0; a != NULL && b != NULL && i < 20; i++) {
		if (ab == NULL)
			ret = ct_hal_connect(a, &b->addr, &ab);
		if (ba == NULL)
			ret |= ct_hal_connect(b, &a->addr, &ba);
		assert_true(ret <= 0);
		if (hal_if_service(a, ev, 8) != 0 ||
		    hal_if_service(b, ev, 8) != 0)
			break;		/* done, or one was refused */
	}
	if (mem != NULL)
		hal_mem_free(ct_hal, mem);
	if (a != NULL)
		hal_if_close(a);
	if (b != NULL)
		hal_if_close(b);
}

/* Short of descriptors every call fails by its return value, and cleanly. */
static void leak_nothing_when_starved(void **state)
{
	struct rlimit kept, lim;
	int fds = proc_self_fds();

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &kept), 0);
	hal_log_set(log_ignore);
	/* over the network the fate of a connection takes a while */
	for (int n = -2; n < 30; n += ct_net() ? 4 : 1) {
		lim = kept;
		lim.rlim_cur = fds + n;
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
		starved_cycle();
		assert_int_equal(setrlimit(RLIMIT_NOFILE, &kept), 0);
		assert_int_equal(proc_self_fds(), fds);
	}
	hal_log_set(NULL);
	/* and with room again all is well */
	cycle(false);
}

/* ---- The decorator --------------------------------------------------- */

static void fault_refuses_and_delays(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	unsigned refused = 0, late = 0;
	uint64_t word = 0, head;

	unit_needs(ct_faulty());
	while (word < 5000) {
		int ret = hal_pkt_send(p.ab, hal_head(CT_TYPE_PING, 0), &word,
				       1, NULL, 0);

		if (ret == -FI_EAGAIN) {
			refused++;
			continue;
		}
		assert_int_equal(ret, 0);
		late += ct_peek(p.ba, &head) == NULL;
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == word);
		word++;
	}
	print_message("%u refused, %u late of 5000\n", refused, late);
	assert_true(strstr(ct_opt.fault, "eagain=") == NULL || refused > 0);
	assert_true(strstr(ct_opt.fault, "delay=") == NULL || late > 0);
}

static void fault_fails_transfers(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	unsigned failed = 0;
	struct hal_mem *mem;
	struct hal_dma d = { .op = HAL_DMA_GET, .peer = p.ab, .len = 8 };
	struct hal_key key;
	void *addr;

	unit_needs(ct_faulty());
	assert_int_equal(ct_mem_alloc(0, 4096, &mem, &addr), 0);
	assert_int_equal(hal_mem_key(ct_hal, mem, &key), 0);
	assert_int_equal(ct_import(p.ab, &key, &d.rmem), 0);
	d.local = addr;
	for (int i = 0; i < 1000; i++) {
		struct hal_dma_comp comp;
		uint64_t end = ct_deadline();

		assert_int_equal(ct_dma_post(p.a, &d, i), 0);
		while (hal_dma_poll(p.a->hif, &comp, 1) == 0) {
			assert_true(ct_now() < end);
			ct_step_both(p.a);
		}
		assert_true(comp.status == 0 || comp.status == -FI_EIO);
		failed += comp.status != 0;
	}
	print_message("%u failed of 1000\n", failed);
	assert_true(strstr(ct_opt.fault, "dmafail=") == NULL || failed > 0);
	hal_mem_release(p.ab, d.rmem);
	hal_mem_free(ct_hal, mem);
}

/* A specification nobody understands is an error, not a default. */
static void fault_spec_is_checked(void **state)
{
	static const char *const bad[] = { "eagain", "eagain=", "eagain=x",
		"eagain=901", "eagain=5x", "delay=5", "delay=5:", "delay=5:x",
		"delay=5:2000000", "dmafail=-1", "dmadelay=1:1", "sed=1",
		"eagain=1,,x=2", " eagain=1" };
	const char *kept = ct_opt.fault;

	hal_log_set(log_ignore);
	for (unsigned i = 0; i < CT_COUNT(bad); i++) {
		int ret;

		ct_hal_close();
		ct_opt.fault = bad[i];
		ret = ct_hal_open();
		ct_opt.fault = kept;
		if (ret != -FI_EINVAL)
			ct_fail("FI_UNIMEM_FAULT=%s: %d", bad[i], ret);
		assert_int_equal(ct_hal_open(), 0);
	}
	hal_log_set(NULL);
}

const struct CMUnitTest ct_leak_tests[] = {
	CT_TEST(leak_nothing_over_cycles),
	CT_TEST(leak_nothing_over_opens),
	CT_TEST(leak_nothing_when_starved),
	CT_TEST(fault_refuses_and_delays),
	CT_TEST(fault_fails_transfers),
	CT_TEST(fault_spec_is_checked),
};
const size_t ct_leak_count = CT_COUNT(ct_leak_tests);
