/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_exec.c - conformance tests of transfers to ordinary memory of a
 * process that executes another program, see docs/hal.md 7.15
 *
 * The child has memory at the address of exec_heir's area[], and executes
 * exec_heir during transfers to or from that memory. In some rounds a forked
 * process keeps the child's sockets open, so that no connection ends.
 */
#include <inttypes.h>
#include <libgen.h>
#include <poll.h>

#include "conform/hal_conform.h"

#define ROUNDS		24
#define HOLD_MS		30		/* milliseconds for which exec_heir
					 * checks */
#define OLD_MARK	0x3C		/* contents of the memory before exec(),
					 * see cmd_become() of the child */
#define PUT_MARK	0xC3		/* contents that transfers write */

struct heir {
	char path[200];
	uint64_t addr, bytes;
};

static struct heir find_heir(void)
{
	char self[160] = "", cmd[256];
	struct heir h = { "", 0, 0 };
	FILE *in;
	int n;

	assert_true(readlink("/proc/self/exe", self, sizeof(self) - 1) > 0);
	assert_true(snprintf(h.path, sizeof(h.path), "%s/exec_heir",
			     dirname(self)) < (int)sizeof(h.path));
	snprintf(cmd, sizeof(cmd), "'%s' where", h.path);
	in = popen(cmd, "r");
	assert_non_null(in);
	n = fscanf(in, "%" SCNx64 " %" SCNu64, &h.addr, &h.bytes);
	pclose(in);
	assert_int_equal(n, 2);
	return h;
}

static bool said(const struct ct_child *c)
{
	struct pollfd pfd = { .fd = c->out, .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

/* Run one transfer. Returns false if it was refused or failed. */
static bool transfer_goes(struct ct_if *ci, const struct hal_dma *d)
{
	const uint8_t *local = d->local;
	struct hal_dma_comp comp;

	if (hal_dma_post(ci->hif, d, 1) != 0)
		return false;
	while (hal_dma_poll(ci->hif, &comp, 1) == 0)
		ct_nap(0);
	for (uint64_t k = 0; d->op == HAL_DMA_GET && comp.status == 0 &&
	     k < d->len; k++)
		if (local[k] != OLD_MARK)
			ct_fail("byte %" PRIu64 " of %" PRIu64 " is 0x%02x: "
				"of another program", k, d->len, local[k]);
	return comp.status == 0;
}

/* Run transfers until the new program has answered, and one more. Their lengths
 * differ, so that exec() happens at different stages. Returns the number of
 * transfers that succeeded before. */
static unsigned run_transfers(struct ct_if *ci, const struct ct_child *c,
			      struct hal_dma *d, uint64_t max, bool serviced)
{
	unsigned good = 0;

	for (unsigned i = 0; !said(c); i++) {
		d->len = i % 3 == 0 ? 8 : i % 3 == 1 ? 4096 : max;
		if (serviced && i % 16 == 0)
			ct_step(ci);
		good += transfer_goes(ci, d);
	}
	assert_false(transfer_goes(ci, d));
	return good;
}

static void exec_round(const struct heir *h, enum hal_dma_op op, int round)
{
	struct ct_if *ci = ct_open(0);
	struct ct_child *c = ct_spawn();
	struct hal_peer *peer = ct_join_child(ci, c);
	struct hal_dma d = { .op = op, .peer = peer, .raddr = h->addr };
	struct ct_heir holder = { 0 };
	uint64_t since;
	char line[256] = "";
	unsigned good;

	d.local = test_malloc(h->bytes);
	memset(d.local, PUT_MARK, h->bytes);
	ct_ask(c, NULL, 0, "become %" PRIx64 " %" PRIu64, h->addr, h->bytes);
	if (round & 1)
		holder = ct_heir_leave(c);
	/* Run one transfer first: its path is set up when exec() begins. */
	d.len = 8;
	assert_int_equal(ct_dma_run(ci, &d), 0);
	ct_tell(c, "exec %d %s", HOLD_MS, h->path);
	good = run_transfers(ci, c, &d, h->bytes, round & 2);
	since = ct_now();
	assert_true(ct_hear(c, line, sizeof(line)));
	if (strcmp(line, "ok") != 0)
		ct_fail("round %d, after %u transfers: the new program says "
			"\"%s\"", round, good, line);
	ct_expect_death(ci, peer, since);
	hal_peer_free(peer);
	ct_finish(c);
	if (round & 1)
		ct_heir_end(&holder);
	test_free(d.local);
	ct_close(ci);
}

static void exec_rounds(enum hal_dma_op op)
{
	struct ct_pair p = ct_pair(0, 0);
	bool any = p.ab->dma_any;
	struct heir h;

	ct_close(p.a);
	ct_close(p.b);
	/* Under qemu-user the kernel sees the emulator's memory. */
	unit_needs(any && ct_opt.via == NULL);
	h = find_heir();
	for (int round = 0; round < ROUNDS; round++)
		exec_round(&h, op, round);
}

static void proc_exec_put(void **state)
{
	exec_rounds(HAL_DMA_PUT);
}

static void proc_exec_get(void **state)
{
	exec_rounds(HAL_DMA_GET);
}

const struct CMUnitTest ct_exec_tests[] = {
	CT_TEST(proc_exec_put),
	CT_TEST(proc_exec_get),
};
const size_t ct_exec_count = CT_COUNT(ct_exec_tests);
