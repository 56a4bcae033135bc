/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_due.c - fetches that are refused because too many bytes of results are
 * under way: the results announce that the call can be repeated.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_wire.h"
#include "hal/hal.h"
#include "lib/os_pair.h"

#define DUE_BYTES	(4 << 20)	/* most at a time, docs/protocol.md */
#define LONG		8192		/* bytes of a fetch in one request */
#define PATIENCE_MS	10000		/* a wait that takes longer hangs */

/* a fetches from b. Only rd counts the fetches; nothing of them appears in the
 * queue of the wait set, in which a waits. */
struct fetcher {
	struct ep *a, *b;
	fi_addr_t ab;
	struct unm_peer *peer;		/* b, as a sees it */
	struct fid_wait *set;
	struct fid_cq *cq;		/* transmit queue of a, in set */
	struct fid_cntr *rd;
	struct fid_mr *mr;
	uint64_t started;		/* fetches */
	uint8_t mem[LONG], dst[LONG];
};

static ssize_t fetch(struct fetcher *f, size_t len)
{
	ssize_t ret = fi_fetch_atomic(f->a->ep, NULL, len, NULL, f->dst, NULL,
				      f->ab, 0, 1, FI_UINT8, FI_ATOMIC_READ,
				      NULL);

	f->started += ret == 0;
	return ret;
}

static void fetcher_open(struct fetcher *f)
{
	struct ep_want want = { .disabled = true, .no_txcq = true };
	struct fi_cq_attr cq = { .wait_obj = FI_WAIT_SET };

	f->a = ep_open(&want);
	f->b = ep_open(NULL);
	f->ab = ep_insert(f->a, f->b);
	EP_OK(fi_wait_open(f->a->fabric, NULL, &f->set));
	cq.wait_set = f->set;
	EP_OK(fi_cq_open(f->a->domain, &cq, &f->cq, NULL));
	EP_OK(fi_cntr_open(f->a->domain, NULL, &f->rd, NULL));
	EP_OK(fi_ep_bind(f->a->ep, &f->cq->fid, FI_TRANSMIT |
			 FI_SELECTIVE_COMPLETION));
	EP_OK(fi_ep_bind(f->a->ep, &f->rd->fid, FI_READ));
	EP_OK(fi_enable(f->a->ep));
	f->a->want.disabled = false;
	f->mr = os_reg(f->b, f->mem, LONG, OS_ALL, 1);
	EP_OK(fetch(f, LONG));
	EP_UNTIL(fi_cntr_read(f->rd) == 1);
	f->peer = ((struct unm_ep *)f->a->ep)->peer_of[f->ab];
}

static void fetcher_close(struct fetcher *f)
{
	EP_CLOSE(&f->mr->fid, &f->a->ep->fid);
	f->a->ep = NULL;
	EP_CLOSE(&f->cq->fid, &f->rd->fid, &f->set->fid);
	ep_close(f->a);
	ep_close(f->b);
}

/* Start a fetch. Only b makes progress: its results stay in the ring of a. */
static void start(struct fetcher *f, size_t len)
{
	uint64_t end = ep_deadline();
	ssize_t ret;

	while ((ret = fetch(f, len)) == -FI_EAGAIN) {
		ep_poll(f->b);
		ep_in_time(end, "a fetch");
	}
	assert_int_equal(ret, 0);
}

/* A call was refused because too many bytes are being fetched, after b had
 * released the last packet. The results alone end the wait for a retry. */
static void test_results_announce_a_retry(void **state)
{
	static struct fetcher f;
	uint64_t end = ep_deadline();
	uint32_t depth;

	fetcher_open(&f);
	if (f.peer->ep->piece_max < LONG + 8 * UNM_WIRE_WORDS_MAX) {
		/* a fetch takes several requests, which progress sends */
		fetcher_close(&f);
		skip();
	}
	/* short results fill the ring of a, so that the long ones stay at b */
	depth = f.peer->hp->hif->caps->pkt_depth;
	for (uint32_t i = 0; i < depth + 8; i++)
		start(&f, 1);
	while (f.peer->due_bytes != DUE_BYTES)
		start(&f, DUE_BYTES - f.peer->due_bytes < LONG ?
		      DUE_BYTES - f.peer->due_bytes : LONG);
	while (hal_tx_done(f.peer->hp) != hal_tx_sent(f.peer->hp)) {
		ep_poll(f.b);
		ep_in_time(end, "requests to be executed");
	}
	do {
		assert_int_equal(fetch(&f, LONG), -FI_EAGAIN);
		ep_in_time(end, "a moment without a signal");
	} while (fi_wait(f.set, 0) == 0);
	for (int i = 0; i < 200; i++)
		ep_poll(f.b);		/* sends results */
	do {
		assert_int_equal(fi_wait(f.set, PATIENCE_MS), 0);
	} while (fetch(&f, LONG) == -FI_EAGAIN);
	EP_UNTIL(fi_cntr_read(f.rd) == f.started);
	assert_int_equal(fi_cntr_readerr(f.rd), 0);
	fetcher_close(&f);
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_results_announce_a_retry),
)
