/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_growth.c - how much receive space an endpoint uses at its peers: 4 KiB
 * for one short message after the other, 32 KiB for several, for long ones and
 * after 256 KiB at most, more after 2 MiB, all of it after 16 MiB and for long
 * messages only, as far as FI_UNIMEM_SPACE_MAX allows.
 */
#define _GNU_SOURCE
#include <sys/mman.h>
#include <unistd.h>

#include "api/unm_ep_limits.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_space.h"
#include "hal/hal_backend.h"
#include "lib/ep_pair.h"
#include "unm_env.h"
#include "unm_offer.h"

#define ONE	4096u			/* bytes of space for one message */
#define FIRST	32768u			/* bytes of space for several */
#define WORN	(2u << 20)		/* bytes after which a space grows */
#define SHORT	262144u			/* bytes of space for short messages */
#define LONG	8192u			/* bytes of the first longer one */

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

/* Send bytes in eager messages of LONG bytes, one by one. */
static void carry_long(struct ep_pair *p, size_t bytes)
{
	static char out[LONG], in[LONG];

	for (size_t sent = 0; sent < bytes; sent += sizeof(out)) {
		EP_OK(fi_recv(p->b->ep, in, sizeof(in), NULL, p->ba, in));
		EP_OK(fi_send(p->a->ep, out, sizeof(out), NULL, p->ab, out));
		ep_sent(p->a, out);
		ep_received(p->b, in);
	}
}

/* Inject messages of 1 KiB, all of which are under way before the first one is
 * received. None of them may be refused. */
static void burst(struct ep_pair *p, int messages)
{
	static char out[1024], in[32][1024];

	assert_in_range(messages, 1, 32);
	for (int i = 0; i < messages; i++) {
		EP_OK(fi_recv(p->b->ep, in[i], sizeof(in[i]), NULL, p->ba,
			      in[i]));
		memset(out, 1 + i, sizeof(out));
		assert_int_equal(fi_inject(p->a->ep, out, sizeof(out), p->ab),
				 0);
	}
	for (int i = 0; i < messages; i++) {
		ep_received(p->b, in[i]);
		memset(out, 1 + i, sizeof(out));
		assert_memory_equal(in[i], out, sizeof(out));
	}
}

/* A pair of which the sender sees at once what the receiver has released, and
 * is refused nothing by a decorator. */
static struct ep_pair plain_pair(void)
{
	struct ep_pair p = ep_pair(NULL);

	carry(p.a, p.ab, p.b, p.ba, 1);
	unit_needs(peer_at(p.a, p.ab)->hp->ops == &hal_emu_ops);
	ep_pair_close(&p);
	return ep_pair(NULL);
}

/* Bytes of the space at b that have memory, of so many if there is more. */
static uint32_t ready(const struct ep_pair *p, uint32_t expected)
{
	const struct unm_space *space = peer_at(p->a, p->ab)->space;

	return space->ready == space->bytes && space->bytes < expected ?
		expected : space->ready;
}

/* One short message after the other needs a page, up to 256 KiB of them. */
static void test_one_short_message(void **state)
{
	struct ep_pair p = plain_pair();

	for (int i = 0; i < 200; i++) {
		burst(&p, 1);
		assert_int_equal(ready(&p, ONE), ONE);
	}
	for (int i = 0; i < 200; i++)
		burst(&p, 1);
	assert_int_equal(ready(&p, FIRST), FIRST);
	assert_int_equal(peer_at(p.a, p.ab)->ep->grown_bytes, 0);
	/* the ring is not worn yet */
	carry(p.a, p.ab, p.b, p.ba, WORN / 2);
	assert_int_equal(ready(&p, FIRST), FIRST);
}

/* Several get more at once, wherever in the page they are. */
static void test_several_short_messages(void **state)
{
	for (int before = 0; before < 9; before++) {
		struct ep_pair p = plain_pair();

		for (int i = 0; i < before; i++)
			burst(&p, 1);
		assert_true(before == 0 || ready(&p, ONE) == ONE);
		burst(&p, 5);
		assert_int_equal(ready(&p, FIRST), FIRST);
		assert_int_equal(inside(p.a)->grown_bytes, 0);
		burst(&p, 8);
		ep_pair_close(&p);
	}
}

/* The ring is as little worn then as a new one. */
static void test_several_after_many(void **state)
{
	struct ep_pair p = plain_pair();

	for (int i = 0; i < 250; i++)
		burst(&p, 1);
	burst(&p, 5);
	carry(p.a, p.ab, p.b, p.ba, WORN / 2);
	assert_int_equal(ready(&p, FIRST), FIRST);
	assert_int_equal(inside(p.a)->grown_bytes, 0);
}

/* A long message gets more, too. */
static void test_long_after_short(void **state)
{
	struct ep_pair p = plain_pair();

	unit_needs(inside(p.a)->eager_max >= LONG);
	burst(&p, 1);
	carry_long(&p, 1);
	assert_int_equal(ready(&p, FIRST), FIRST);
}

/* Two messages, or pieces, of the greatest length fit a new ring. */
static void test_little_at_first(void **state)
{
	struct ep_pair p = ep_pair(NULL);	/* reads the environment */
	size_t was = g_unm_env.eager_max;
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

/* Bytes of a space that has grown for short messages. Skips the test where the
 * first part is all of it. */
static uint32_t grown(const struct ep *e)
{
	uint32_t all = inside(e)->space_most;

	unit_needs(all > FIRST);
	return all < SHORT ? all : SHORT;
}

static void test_more_when_worn(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	uint32_t more = grown(p.a);

	carry(p.a, p.ab, p.b, p.ba, WORN / 2);
	assert_int_equal(peer_at(p.a, p.ab)->space->bytes, FIRST);
	carry(p.a, p.ab, p.b, p.ba, WORN);
	assert_int_equal(peer_at(p.a, p.ab)->space->bytes, more);
	assert_int_equal(inside(p.a)->grown_bytes, more);
}

/* A pair of which the sender uses as much space as short messages get. Skips
 * the test where longer ones get no more. */
static struct ep_pair pair_grown(uint32_t *all)
{
	struct ep_pair p = ep_pair(NULL);

	*all = inside(p.a)->space_most;
	unit_needs(*all > SHORT && inside(p.a)->eager_max >= LONG);
	carry(p.a, p.ab, p.b, p.ba, 2 * WORN);
	assert_int_equal(peer_at(p.a, p.ab)->space->bytes, SHORT);
	return p;
}

/* Long messages get all of the space, short ones do not, also after that. */
static void test_all_for_long_messages(void **state)
{
	uint32_t all;
	struct ep_pair p = pair_grown(&all);

	carry(p.a, p.ab, p.b, p.ba, 2 * 64 * SHORT);
	assert_int_equal(peer_at(p.a, p.ab)->space->bytes, SHORT);
	assert_int_equal(inside(p.a)->grown_bytes, SHORT);
	carry_long(&p, 2 * 64 * SHORT);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(peer_at(p.a, p.ab)->space->bytes, all);
		assert_int_equal(inside(p.a)->grown_bytes, all);
		carry(p.a, p.ab, p.b, p.ba, 2 * all);
		assert_int_equal(peer_at(p.a, p.ab)->space->bytes, SHORT);
		assert_int_equal(inside(p.a)->grown_bytes, all);
		carry_long(&p, 2 * SHORT);
	}
}

/* As much space as the cache of level 2 has, if it is known. */
static void test_most(void **state)
{
	struct ep *e = ep_open(NULL);
	uint32_t all = unm_space_pow2(inside(e)->hif->caps->space_bytes);
	long cache = sysconf(_SC_LEVEL2_CACHE_SIZE);

	assert_int_equal(inside(e)->space_most, unm_ep_space_most(all, cache));
	assert_int_equal(unm_ep_space_most(8 * SHORT, 1), SHORT);
	assert_int_equal(unm_ep_space_most(8 * SHORT, SHORT), SHORT);
	assert_int_equal(unm_ep_space_most(8 * SHORT, SHORT + 1), 2 * SHORT);
	assert_int_equal(unm_ep_space_most(8 * SHORT, 100L << 20), 8 * SHORT);
	assert_int_equal(unm_ep_space_most(SHORT / 2, SHORT), SHORT / 2);
	for (long unknown = -1; unknown <= 0; unknown++)
		assert_int_equal(unm_ep_space_most(8 * SHORT, unknown),
				 2 * SHORT);
}

/* The memory is enough for the first step only: the peer keeps what it has. */
static void test_memory_for_a_step(void **state)
{
	uint32_t all;
	struct ep_pair p = pair_grown(&all);
	size_t was = g_unm_env.space_max;

	g_unm_env.space_max = all - 1;
	for (int i = 0; i < 3; i++) {
		carry_long(&p, 2 * 64 * SHORT);
		assert_int_equal(peer_at(p.a, p.ab)->space->bytes, SHORT);
		assert_int_equal(inside(p.a)->grown_bytes, SHORT);
	}
	g_unm_env.space_max = all;
	carry_long(&p, 2 * 64 * SHORT);
	assert_int_equal(peer_at(p.a, p.ab)->space->bytes, all);
	g_unm_env.space_max = was;
}

/* An endpoint and three peers, and memory for the space of limit of them. */
struct star {
	struct ep *hub, *leaf[3];
	fi_addr_t to[3], from[3];
	uint32_t more;			/* bytes of a space that has grown */
	size_t was;			/* FI_UNIMEM_SPACE_MAX */
};

static struct star star(size_t limit)
{
	struct star s = { .hub = ep_open(NULL), .was = g_unm_env.space_max };

	s.more = grown(s.hub);
	g_unm_env.space_max = limit * s.more + s.more / 2;
	for (int i = 0; i < 3; i++) {
		s.leaf[i] = ep_open(NULL);
		s.to[i] = ep_insert(s.hub, s.leaf[i]);
		s.from[i] = ep_insert(s.leaf[i], s.hub);
		carry(s.hub, s.to[i], s.leaf[i], s.from[i], 1);
	}
	return s;
}

static struct unm_peer *star_peer(const struct star *s, int i)
{
	return peer_at(s->hub, s->to[i]);
}

/* Has the space at this peer grown? */
static bool star_grown(const struct star *s, int i)
{
	return star_peer(s, i)->space->bytes == s->more;
}

/* Send bytes to peer i. */
static void star_carry(const struct star *s, int i, size_t bytes)
{
	carry(s->hub, s->to[i], s->leaf[i], s->from[i], bytes);
}

/* All peers are busy, and there is memory for the space of one: two use little,
 * until that peer ends. */
static void test_memory_for_one(void **state)
{
	struct star s = star(1);

	star_carry(&s, 0, 2 * WORN);
	for (int n = 0; n < 64; n++) {
		for (int i = 0; i < 3; i++) {
			/* peer 0 is busy whenever another claims its memory,
			 * however slow the machine is */
			star_carry(&s, 0, WORN / 16);
			star_carry(&s, i, WORN / 16);
		}
		assert_true(star_grown(&s, 0));
		assert_int_equal(star_peer(&s, 1)->space->bytes, FIRST);
		assert_int_equal(star_peer(&s, 2)->space->bytes, FIRST);
	}
	ep_close(s.leaf[0]);
	EP_UNTIL(star_peer(&s, 0) == NULL || star_peer(&s, 0)->hp == NULL);
	star_carry(&s, 1, 2 * WORN);
	assert_true(star_grown(&s, 1));
	assert_int_equal(star_peer(&s, 2)->space->bytes, FIRST);
	g_unm_env.space_max = s.was;
}

/* Pages of a peer's receive space beyond the first part that have memory; 0:
 * the backend does not say, or that part is not a number of whole pages. */
static uint32_t pages_beyond(const struct unm_peer *peer, uint32_t all)
{
	unsigned char in[1024];
	uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE), n = 0;

	if (peer->hp->tx.space == NULL ||
	    (uintptr_t)(peer->hp->tx.space + FIRST) % page != 0)
		return 0;
	assert_true(all / page < sizeof(in));
	assert_int_equal(mincore(peer->hp->tx.space + FIRST, all - FIRST, in),
			 0);
	for (uint32_t i = 0; i < (all - FIRST) / page; i++)
		n += in[i] & 1;
	return n;
}

/* Peer idle was not used for long. Send to peer busy, until it has the memory
 * of that peer. */
static void star_take(const struct star *s, int busy, int idle)
{
	for (int i = 0; i < 16 && !star_grown(s, busy); i++) {
		star_peer(s, idle)->grown_us = 0;
		star_carry(s, busy, WORN / 2);
	}
	assert_true(star_grown(s, busy));
	assert_int_equal(star_peer(s, idle)->space->bytes, FIRST);
	/* its memory will be new again */
	assert_int_equal(star_peer(s, idle)->space->touched, FIRST);
}

/* A busy peer gets the memory of a peer to which nothing was sent for long. */
static void test_memory_of_an_idle_peer(void **state)
{
	struct star s = star(1);
	uint32_t pages = pages_beyond(star_peer(&s, 0), s.more);

	star_carry(&s, 0, 2 * WORN);
	assert_true(star_grown(&s, 0));
	star_take(&s, 1, 0);
	assert_int_equal(pages_beyond(star_peer(&s, 0), s.more), pages);
	star_take(&s, 0, 1);
	g_unm_env.space_max = s.was;
}

/* Less memory than for one peer. */
static void test_memory_for_none(void **state)
{
	struct star s = star(0);

	for (int i = 0; i < 3; i++) {
		star_carry(&s, i, 2 * WORN);
		assert_int_equal(star_peer(&s, i)->space->bytes, FIRST);
	}
	g_unm_env.space_max = s.was;
}

/* The space at a peer of another host takes no memory of this host. */
static void test_other_hosts_do_not_count(void **state)
{
	static const struct hal_host host;
	struct star s = star(0);

	star_peer(&s, 1)->hp->host = &host;
	for (int i = 0; i < 3; i++)
		star_carry(&s, i, 2 * WORN);
	star_peer(&s, 1)->hp->host = NULL;
	assert_false(star_grown(&s, 0));
	assert_true(star_grown(&s, 1));
	assert_false(star_grown(&s, 2));
	g_unm_env.space_max = s.was;
}

/* It is used at once: the sender has nothing to save. */
static void test_other_hosts_at_once(void **state)
{
	static const struct hal_host host;
	struct ep_pair p = plain_pair();
	struct unm_peer *peer;
	char in[1];

	EP_OK(fi_recv(p.b->ep, in, sizeof(in), NULL, p.ba, in));
	EP_OK(fi_inject(p.a->ep, "", 1, p.ab));
	ep_received(p.b, in);
	peer = peer_at(p.a, p.ab);
	unit_needs(peer->space == NULL);
	peer->hp->host = &host;
	burst(&p, 1);
	peer->hp->host = NULL;
	assert_int_equal(ready(&p, FIRST), FIRST);
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_one_short_message),
	EP_TEST_INSIDE(test_several_short_messages),
	EP_TEST_INSIDE(test_several_after_many),
	EP_TEST_INSIDE(test_long_after_short),
	EP_TEST_INSIDE(test_little_at_first),
	EP_TEST_INSIDE(test_more_when_worn),
	EP_TEST_INSIDE(test_all_for_long_messages),
	EP_TEST_INSIDE(test_most),
	EP_TEST_INSIDE(test_memory_for_a_step),
	EP_TEST_INSIDE(test_memory_for_one),
	EP_TEST_INSIDE(test_memory_of_an_idle_peer),
	EP_TEST_INSIDE(test_memory_for_none),
	EP_TEST_INSIDE(test_other_hosts_do_not_count),
	EP_TEST_INSIDE(test_other_hosts_at_once),
)
