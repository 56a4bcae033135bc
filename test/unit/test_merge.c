/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_merge.c - injected puts that share an operation, because only a counter
 * reports them, and the count of executed requests that completes them.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "hal/hal_backend.h"
#include "lib/os_pair.h"

#define PUTS	64			/* more than one burst of packets */

/* The only peer of an endpoint */
static struct unm_peer *peer_of(struct ep *e)
{
	struct unm_ep *ep = (struct unm_ep *)e->ep;

	assert_false(unm_list_empty(&ep->peers));
	return unm_container(ep->peers.next, struct unm_peer, all);
}

/* Inject PUTS numbers; the target polls only where the library makes it. bad:
 * the fourth of so many is outside of the region; 0: none is. Returns how many
 * are. */
static uint64_t inject_puts(struct os_pair *p, unsigned bad)
{
	struct unm_ep *ep = (struct unm_ep *)p->a->ep;
	uint64_t nbad = 0;

	ep_settle();
	for (uint64_t v = 0; v < PUTS; v++) {
		bool out = bad != 0 && v % bad == 3;

		assert_int_equal(fi_inject_write(p->a->ep, &v, 8, p->ab, out ?
						 4090 : 8 * v, p->key), 0);
		nbad += out;
	}
	assert_int_equal(ep->os_pool.used, 1);
	return nbad;
}

/* Injected puts share an object. The counters show each of them. */
static void test_merged_puts(void **state)
{
	for (unsigned bad = 0; bad <= 7; bad += 7) {
		struct os_pair p = os_open(OS_REQUESTS, 4096);
		uint64_t nbad;

		for (int i = 1; i < 4; i++) {
			memset(p.mem, 0xEE, 4096);
			nbad = inject_puts(&p, bad);
			EP_UNTIL(fi_cntr_read(p.wr) + fi_cntr_readerr(p.wr) ==
				 p.nwr + i * PUTS);
			assert_int_equal(fi_cntr_readerr(p.wr), i * nbad);
			for (uint64_t v = 0; v < PUTS; v++)
				if (bad == 0 || v % 7 != 3)
					assert_memory_equal(p.mem + 8 * v, &v,
							    8);
		}
		ep_quiet(p.a);
		os_close(&p);
	}
}

/* Puts that were executed count before the last of them is executed, and when
 * the target closes only the rest of the puts count as errors. */
static void test_merged_puts_count_early(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, 4096);
	uint64_t end = ep_deadline(), some, executed = 0, v;

	memset(p.mem, 0xEE, 4096);
	inject_puts(&p, 0);
	while ((some = fi_cntr_read(p.wr) - p.nwr) == 0) {
		ep_poll(p.b);
		ep_poll(p.a);
		ep_in_time(end, "some puts");
	}
	assert_in_range(some, 1, PUTS - 1);
	assert_int_equal(fi_close(&p.mr->fid), 0);
	p.mr = NULL;
	assert_int_equal(fi_close(&p.b->ep->fid), 0);
	p.b->ep = NULL;
	EP_UNTIL(fi_cntr_read(p.wr) + fi_cntr_readerr(p.wr) == p.nwr + PUTS);
	for (v = 0; v < PUTS; v++)
		executed += memcmp(p.mem + 8 * v, &v, 8) == 0;
	assert_in_range(fi_cntr_read(p.wr) - p.nwr, some, executed);
	os_close(&p);
}

/* A put that is refused leaves the puts before it executed: they count at once,
 * and only the later puts are errors when the target is disconnected. */
static void test_merged_put_refused(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, 4096);
	uint64_t end = ep_deadline(), done;
	struct unm_peer *peer;

	/* the first refusal also makes b connect to a */
	inject_puts(&p, PUTS);
	done = p.nwr + PUTS - 1;
	EP_UNTIL(fi_cntr_read(p.wr) == done && fi_cntr_readerr(p.wr) == 1);
	inject_puts(&p, PUTS);
	peer = peer_of(p.b);
	for (; peer->refused_packet == 0; ep_in_time(end, "a refusal"))
		ep_poll(p.b);
	for (; fi_cntr_read(p.wr) == done; ep_in_time(end, "puts"))
		ep_poll(p.a);
	for (int i = 0; i < 100; i++)
		ep_poll(p.a);
	assert_int_equal(fi_cntr_read(p.wr), done + 3);
	assert_int_equal(fi_cntr_readerr(p.wr), 1);
	unm_peer_fail(peer_of(p.a), "a test", 0);
	for (; fi_cntr_readerr(p.wr) == 1; ep_in_time(end, "errors"))
		ep_poll(p.a);
	assert_int_equal(fi_cntr_readerr(p.wr), 1 + PUTS - 3);
	assert_int_equal(fi_cntr_read(p.wr), done + 3);
	os_close(&p);
}

static uint64_t count_at_wake;		/* UINT64_MAX: no wake-up so far */

static void wake(struct hal_peer *hp)
{
	if (count_at_wake == UINT64_MAX)
		count_at_wake = hp->rx.back->word[UNM_PEER_BACK_APPLIED];
}

/* An initiator that sleeps is woken when the count of its puts is stored. */
static void test_woken_by_the_count(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, 4096);
	struct hal_ops ops = hal_emu_ops;
	uint64_t end = ep_deadline(), before;
	struct hal_peer *from;
	struct unm_peer *to;

	inject_puts(&p, 0);
	from = peer_of(p.b)->hp;
	to = peer_of(p.a);
	unit_needs(from->ops == &hal_emu_ops);
	ops.wake = wake;
	from->ops = &ops;
	before = from->rx.back->word[UNM_PEER_BACK_APPLIED];
	hal_tx_sleep(to->hp, true);
	for (count_at_wake = UINT64_MAX; count_at_wake == UINT64_MAX;
	     ep_in_time(end, "a wake-up"))
		ep_poll(p.b);
	hal_tx_sleep(to->hp, false);
	from->ops = &hal_emu_ops;
	assert_in_range(count_at_wake, before + 1, to->posted_sent);
	os_close(&p);
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_merged_puts),
	EP_TEST_INSIDE(test_merged_puts_count_early),
	EP_TEST_INSIDE(test_merged_put_refused),
	EP_TEST_INSIDE(test_woken_by_the_count),
)
