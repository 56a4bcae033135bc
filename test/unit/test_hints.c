/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_hints.c - whose lines of receive space are moved to the cache of the
 * package: those of messages, requests and results for which the peer waits,
 * and not those of a window, where that was measured to be faster.
 *
 * The tests count decisions. They let endpoints take each processor for one
 * that has the instruction and is faster with it. All processors of x86-64
 * ignore an unknown one, and for others nothing is compiled.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "lib/os_pair.h"

#define LEN	500			/* bytes: too many for a packet */
#define WINDOW	8
#define WARM	600			/* turns after which the ring of such
					 * messages has its final size */
#define LONG	4000			/* bytes: a burst of such results does
					 * not fit into the receive space */
#define PARTS	20000			/* bytes of a fetch in two requests */

#define DEMOTED(e) (((struct unm_ep *)(e)->ep)->stats->tx_demoted)

static char out[LEN], in[LONG];

/* Let an endpoint take its processor for one that has these hints, or not.
 * Returns the measurements of its only peer. */
static struct unm_hint_ways *enable_hints(struct ep *e, bool claims,
					  bool demotes)
{
	struct unm_ep *ep = (struct unm_ep *)e->ep;
	struct unm_peer *peer;

	assert_false(unm_list_empty(&ep->peers));
	peer = unm_container(ep->peers.next, struct unm_peer, all);
	unit_needs(peer->hp->tx.space != NULL);
	peer->hp->tx.claims = claims;
	peer->hp->tx.demotes = demotes;
	if (peer->hints == NULL)
		peer->hints = calloc(1, sizeof(*peer->hints));
	assert_non_null(peer->hints);
	return peer->hints;
}

/* Set the measurements of all kinds. */
static void set_all(struct unm_hint_ways *ways, struct unm_hint_way way)
{
	for (int i = 0; i < UNM_HINT_CLASSES; i++) {
		ways->kind[false][i] = way;
		ways->kind[true][i] = way;
	}
}

/* The lines of messages to the only peer of an endpoint are moved from now on,
 * if it waits. */
static void can_demote(struct ep *e)
{
	struct unm_hint_ways *ways = enable_hints(e, true, true);

	set_all(ways, (struct unm_hint_way){ .held = UNM_HINT_HOLD });
	for (int i = 0; i < UNM_HINT_CLASSES; i++)
		ways->kind[true][i].way = UNM_HINT_DEMOTE;
}

/* Send n messages of LEN bytes from x to y, and receive them then. */
static void window(struct ep *x, struct ep *y, fi_addr_t xy, int n)
{
	for (int i = 0; i < n; i++)
		EP_OK(fi_send(x->ep, out, LEN, NULL, xy, out));
	for (int i = 0; i < n; i++) {
		EP_OK(fi_recv(y->ep, in, LEN, NULL, FI_ADDR_UNSPEC, in));
		ep_received(y, in);
		ep_sent(x, out);
	}
}

static void test_messages(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint64_t a, b;

	window(p.a, p.b, p.ab, 1);
	window(p.b, p.a, p.ba, 1);
	can_demote(p.a);
	can_demote(p.b);
	/* a turn of each side */
	for (int i = 1; i <= 3; i++) {
		a = DEMOTED(p.a);
		b = DEMOTED(p.b);
		window(p.a, p.b, p.ab, 1);
		assert_int_equal(DEMOTED(p.a), a + 1);
		window(p.b, p.a, p.ba, 1);
		assert_int_equal(DEMOTED(p.b), b + 1);
	}
	/* the first message of a window */
	window(p.a, p.b, p.ab, WINDOW);
	assert_int_equal(DEMOTED(p.a), a + 2);
	window(p.a, p.b, p.ab, WINDOW);
	assert_int_equal(DEMOTED(p.a), a + 2);
}

/* A turn of each side, n times: each waits for the other's message. */
static void turns(struct ep_pair *p, int n)
{
	for (int i = 0; i < n; i++) {
		window(p->a, p->b, p->ab, 1);
		window(p->b, p->a, p->ba, 1);
	}
}

/* The measurements of the first endpoint, warm, when nothing was measured. */
static struct unm_hint_ways *unmeasured(struct ep_pair *p, bool claims,
					bool demotes)
{
	struct unm_hint_ways *hints;

	turns(p, WARM);
	hints = enable_hints(p->a, claims, demotes);
	set_all(hints, (struct unm_hint_way){ .held = 0 });
	return hints;
}

/* So many ways are measured, of which moved ones move the lines. */
static void measure(bool claims, bool demotes, int ways, int moved)
{
	const int each = UNM_HINT_ROUNDS *
		(UNM_HINT_SKIP + UNM_HINT_ROUND + 1);
	struct ep_pair p = ep_pair(NULL);
	struct unm_hint_ways *hints = unmeasured(&p, claims, demotes);
	uint64_t before = DEMOTED(p.a);

	turns(&p, ways * each - 1);
	assert_int_equal(hints->kind[true][0].held, 0);
	turns(&p, 1);
	assert_int_equal(hints->kind[true][0].held,
			 ways != 0 ? UNM_HINT_HOLD : 0);
	assert_int_equal(DEMOTED(p.a), before + (uint64_t)(moved * each));
	/* no message of another kind was sent */
	for (int i = 0; i < UNM_HINT_CLASSES; i++) {
		assert_int_equal(hints->kind[false][i].count, 0);
		if (i != 0 || ways == 0)
			assert_int_equal(hints->kind[true][i].count, 0);
	}
}

static void test_ways_are_measured(void **state)
{
	measure(true, true, 3, 1);
	measure(true, false, 2, 0);
	measure(false, false, 0, 0);
}

/* A window is measured apart, and without moves. */
static void test_windows_are_measured_apart(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct unm_hint_ways *hints = unmeasured(&p, true, true);
	uint64_t before = DEMOTED(p.a);

	for (int i = 0; hints->kind[false][0].held == 0; i++) {
		assert_true(i < 1000);
		window(p.a, p.b, p.ab, WINDOW);
	}
	assert_int_equal(DEMOTED(p.a), before);
	assert_int_equal(hints->kind[true][0].held, 0);
}

/* A measurement is not true for a larger ring. */
static void test_larger_ring(void **state)
{
	const struct unm_hint_way old = { .held = UNM_HINT_HOLD };
	struct ep_pair p = ep_pair(NULL);
	struct unm_hint_ways *hints;
	static char big[8000];

	turns(&p, 1);
	hints = enable_hints(p.a, true, true);
	/* the whole ring that is used at first, and then more of the space */
	for (int ring = 0; ring < 2; ring++) {
		set_all(hints, old);
		for (int i = 0; hints->kind[0][0].held == old.held; i++) {
			assert_true(i < 1000);
			EP_OK(fi_send(p.a->ep, big, sizeof(big), NULL, p.ab,
				      big));
			EP_OK(fi_recv(p.b->ep, big, sizeof(big), NULL,
				      FI_ADDR_UNSPEC, big));
			ep_received(p.b, big);
			ep_sent(p.a, big);
		}
		assert_int_equal(hints->kind[0][0].held, UNM_HINT_FIRST);
		assert_int_equal(hints->kind[1][0].held, UNM_HINT_FIRST);
	}
}

static void put(struct os_pair *p, int n)
{
	for (int i = 0; i < n; i++)
		EP_OK(fi_write(p->a->ep, out, LEN, NULL, p->ab, p->base, p->key,
			       out));
	p->nwr += n;
	os_all_done(p);
}

static void get(struct os_pair *p, size_t len, int n)
{
	for (int i = 0; i < n; i++)
		EP_OK(fi_read(p->a->ep, in, len, NULL, p->ab, p->base, p->key,
			      in));
	p->nrd += n;
	os_all_done(p);
}

static struct os_pair pair_of_requests(void)
{
	struct os_pair p = os_open(OS_REQUESTS, 4096);

	put(&p, 1);
	get(&p, LEN, 4 * WINDOW);	/* their ring has its final size */
	can_demote(p.a);
	can_demote(p.b);
	return p;
}

static void test_requests(void **state)
{
	struct os_pair p = pair_of_requests();
	uint64_t before = DEMOTED(p.a);

	for (int i = 1; i <= 3; i++) {
		put(&p, 1);
		assert_int_equal(DEMOTED(p.a), before + i);
	}
	put(&p, WINDOW);
	assert_int_equal(DEMOTED(p.a), before + 4);
	os_close(&p);
}

static void test_results(void **state)
{
	struct os_pair p = pair_of_requests();
	uint64_t before = DEMOTED(p.b);

	for (int i = 1; i <= 3; i++) {
		get(&p, LEN, 1);
		assert_int_equal(DEMOTED(p.b), before + i);
	}
	/* b answers the last request of a window when no other one is there */
	get(&p, LEN, WINDOW);
	assert_int_equal(DEMOTED(p.b), before + 4);
	os_close(&p);
}

/* Results that wait for space are sent one after the other: a is not idle. */
static void test_results_that_waited(void **state)
{
	struct os_pair p = pair_of_requests();
	uint64_t before = DEMOTED(p.b);

	get(&p, LONG, 4 * WINDOW);
	assert_in_range(DEMOTED(p.b), before, before + 1);
	os_close(&p);
}

/* Only the first request of an operation finds an idle peer. */
static void test_fetch_in_parts(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, PARTS);
	uint8_t *one = ep_alloc(PARTS), *was = ep_alloc(PARTS);
	uint64_t before = 0;

	memset(one, 1, PARTS);
	for (int i = 0; i < 3; i++) {
		EP_OK(fi_fetch_atomic(p.a->ep, one, PARTS, NULL, was, NULL,
				      p.ab, p.base, p.key, FI_UINT8, FI_SUM,
				      was));
		p.nrd++;
		os_all_done(&p);
		assert_int_equal(was[PARTS - 1], i);
		if (i == 0) {
			can_demote(p.a);
			before = DEMOTED(p.a);
		}
	}
	assert_int_equal(DEMOTED(p.a), before + 2);
	os_close(&p);
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_ways_are_measured),
	EP_TEST_INSIDE(test_windows_are_measured_apart),
	EP_TEST_INSIDE(test_larger_ring),
	EP_TEST_INSIDE(test_messages),
	EP_TEST_INSIDE(test_requests),
	EP_TEST_INSIDE(test_results),
	EP_TEST_INSIDE(test_results_that_waited),
	EP_TEST_INSIDE(test_fetch_in_parts),
)
