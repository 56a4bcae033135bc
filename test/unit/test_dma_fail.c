/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dma_fail.c - transfers of the HAL that fail: each rendezvous with a
 * failed transfer ends in one FI_EIO on both sides, all other messages arrive
 * whole.
 */
#include "lib/ep_xfer.h"

#define BATCH		12		/* messages each way at a time */
#define ROUNDS		(UNIT_SLOW ? 10 : 40)

static const size_t lens[] = { 8, 70000, 4096, 20000, 0, 300000 };
#define NLENS	(sizeof(lens) / sizeof(lens[0]))
#define EAGER	16384		/* bytes: the longest eager message */

struct count {
	int whole, failed;
};

static void post(struct ep_pair *p, struct xfer *x, int i)
{
	struct ep *from = i % 2 ? p->b : p->a, *to = i % 2 ? p->a : p->b;
	fi_addr_t dest = i % 2 ? p->ba : p->ab, src = i % 2 ? p->ab : p->ba;
	bool unexpected = i / 2 % 3 == 2;

	if (!unexpected)
		EP_OK(xfer_recv(to, src, x));
	EP_OK(xfer_send(from, dest, x));
	if (unexpected) {
		ep_settle();
		EP_OK(xfer_recv(to, src, x));
	}
}

static void judge(struct ep_pair *p, struct xfer *x, int i, struct count *n)
{
	struct ep_comp rx = ep_wait(i % 2 ? p->a : p->b, &x->rxc);
	struct ep_comp tx = ep_wait(i % 2 ? p->b : p->a, &x->txc);

	assert_true((rx.flags & FI_RECV) && (tx.flags & FI_SEND));
	assert_int_equal(rx.tag, x->tag);
	assert_int_equal(rx.err, tx.err);
	if (rx.err == 0) {
		assert_int_equal(rx.len, x->len);
		xfer_check_bytes(x, x->len);
		n->whole++;
		return;
	}
	assert_int_equal(rx.err, FI_EIO);
	if (x->len <= EAGER)
		unit_fail("%zu bytes have failed", x->len);
	n->failed++;
}

static void rounds(bool tagged)
{
	struct ep_pair p = ep_pair(NULL);
	struct count n = { 0, 0 };
	uint64_t seed = 0;

	for (int r = 0; r < ROUNDS; r++) {
		struct xfer x[2 * BATCH] = { { 0 } };

		for (int i = 0; i < 2 * BATCH; i++) {
			x[i].tagged = tagged;
			x[i].tx = XFER_SENDMSG;
			x[i].rx = XFER_RECVMSG;
			x[i].len = lens[seed % NLENS];
			x[i].tx_iov = 1 + seed % 3 / 2;
			x[i].rx_iov = 1 + seed % 4;
			x[i].tag = tagged ? seed : 0;
			x[i].seed = ++seed;
			xfer_make(&x[i]);
			post(&p, &x[i], i);
		}
		for (int i = 0; i < 2 * BATCH; i++)
			judge(&p, &x[i], i, &n);
		ep_quiet(p.a);		/* one completion each, no more */
		ep_quiet(p.b);
		for (int i = 0; i < 2 * BATCH; i++)
			xfer_free(&x[i]);
	}
	print_message("%d whole, %d failed\n", n.whole, n.failed);
	assert_true(n.failed > 0 && n.whole > n.failed);
	ep_pair_close(&p);
}

static void test_failed_reads_tagged(void **state)
{
	unit_needs(unit_attach());	/* no transfers by attach here */
	rounds(true);
}

static void test_failed_reads_msg(void **state)
{
	unit_needs(unit_attach());
	rounds(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EP_TEST(test_failed_reads_tagged),
		EP_TEST(test_failed_reads_msg),
	};

	setenv("FI_UNIMEM_FAULT", "dmafail=200,dmadelay=100,seed=7", 1);
	setenv("FI_UNIMEM_ATTACH", "1", 1);
	return unit_run(tests);
}
