/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_growth.c - how much receive space an endpoint uses at its peers: little
 * at first, all of it after 2 MiB, as far as FI_UNIMEM_SPACE_MAX allows.
 */
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_space.h"
#include "lib/ep_pair.h"
#include "unm_env.h"
#include "unm_offer.h"

#define FIRST	32768u			/* bytes of space at first */
#define WORN	(2u << 20)		/* bytes after which a space grows */

static struct unm_ep *inside(const struct ep *e)
{
	return (struct unm_ep *)e->ep;
}

static struct unm_peer *peer_at(const struct ep *e, fi_addr_t to)
{
	return inside(e)->peer_of[to];
}

/* Send bytes in injected messages, one by one. They always go through receive
 * space. */
static void carry(struct ep *from, fi_addr_t to, struct ep *e, fi_addr_t src,
		  size_t bytes)
{
	static char out[UNM_INJECT_MAX], in[UNM_INJECT_MAX];

	for (size_t sent = 0; sent < bytes; sent += sizeof(out)) {
		EP_OK(fi_recv(e->ep, in, sizeof(in), NULL, src, in));
		EP_OK(fi_inject(from->ep, out, sizeof(out), to));
		ep_received(e, in);
	}
}

/* Two messages, or pieces, of the greatest length fit the space that a peer
 * uses first. */
static void test_little_at_first(void **state)
{
	size_t was = g_unm_env.eager_max;
	struct ep_pair p = ep_pair(NULL);
	uint32_t all = inside(p.a)->hif->caps->space_bytes;
	uint32_t bytes;

	carry(p.a, p.ab, p.b, p.ba, 1);
	bytes = peer_at(p.a, p.ab)->space->bytes;
	assert_in_range(bytes, 1, all < FIRST ? all : FIRST);
	assert_true(2 * inside(p.a)->eager_max <= bytes);
	assert_true(2 * inside(p.a)->piece_max <= bytes);
	ep_pair_close(&p);
	/* pieces do not become longer where no message is eager */
	g_unm_env.eager_max = 0;
	p = ep_pair(NULL);
	assert_in_range(inside(p.a)->piece_max, 1, bytes / 2);
	g_unm_env.eager_max = was;
	ep_pair_close(&p);
}

static void test_all_when_worn(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint32_t all = inside(p.a)->hif->caps->space_bytes;

	carry(p.a, p.ab, p.b, p.ba, WORN / 2);
	assert_true(peer_at(p.a, p.ab)->space->bytes <= FIRST);
	carry(p.a, p.ab, p.b, p.ba, WORN);
	assert_int_equal(peer_at(p.a, p.ab)->space->bytes,
			 unm_space_pow2(all));
	ep_pair_close(&p);
}

/* All peers are busy, and there is memory for the space of one: two use little,
 * until that peer ends. */
static void test_memory_for_one(void **state)
{
	size_t was = g_unm_env.space_max;
	struct ep *hub = ep_open(NULL), *leaf[3];
	uint32_t all = unm_space_pow2(inside(hub)->hif->caps->space_bytes);
	uint32_t least = all < FIRST ? all : FIRST;
	fi_addr_t to[3], from[3];

	g_unm_env.space_max = all + all / 2;
	for (int i = 0; i < 3; i++) {
		leaf[i] = ep_open(NULL);
		to[i] = ep_insert(hub, leaf[i]);
		from[i] = ep_insert(leaf[i], hub);
	}
	for (int i = 0; i < 3; i++)
		carry(hub, to[i], leaf[i], from[i], 2 * WORN);
	assert_int_equal(peer_at(hub, to[0])->space->bytes, all);
	assert_int_equal(peer_at(hub, to[1])->space->bytes, least);
	assert_int_equal(peer_at(hub, to[2])->space->bytes, least);
	ep_close(leaf[0]);
	EP_UNTIL(peer_at(hub, to[0]) == NULL ||
		 peer_at(hub, to[0])->hp == NULL);
	for (int i = 1; i < 3; i++)
		carry(hub, to[i], leaf[i], from[i], WORN / 4);
	assert_int_equal(peer_at(hub, to[1])->space->bytes, all);
	assert_int_equal(peer_at(hub, to[2])->space->bytes, least);
	g_unm_env.space_max = was;
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_little_at_first),
	EP_TEST_INSIDE(test_all_when_worn),
	EP_TEST_INSIDE(test_memory_for_one),
)
