/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_cache.c - the bounds of the cache of a peer's remote keys and imported
 * memory, and its statistics: more regions and more memory than the cache
 * holds, used in turn, and entries that are in use when the cache is full.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "lib/ep_mem.h"
#include "lib/os_pair.h"
#include "rma/unm_cache.h"
#include "rma/unm_rkey.h"
#include "unm_env.h"

#define REGIONS		10
#define ENTRIES		3	/* the bound */
#define PIECE		(4 * MIB)	/* memory of a region */
#define LEN		40000	/* bytes of an access or a message */
#define KEY		100
#define ROUNDS		6

/* Initiator a, which has the cache, and target b with regions. */
struct scene {
	struct os_pair p;
	struct unm_peer *peer;		/* b, as a sees it */
	struct unm_stats *stats;	/* of a */
	uint8_t *mem[REGIONS];
	struct fid_mr *mr[REGIONS];
	int n;
};

static uint8_t g_out[LEN], g_in[LEN];

static int restore(void **state)
{
	g_unm_env.rkey_max = 1024;
	g_unm_env.rkey_bytes = SIZE_MAX / 2;
	return ep_teardown(state);
}

/* n regions, each in memory of its own. */
static void open_scene(struct scene *s, enum os_way way, int n)
{
	memset(s, 0, sizeof(*s));
	s->p = os_open(way, 64);
	s->peer = ((struct unm_ep *)s->p.a->ep)->peer_of[s->p.ab];
	s->stats = ((struct unm_ep *)s->p.a->ep)->stats;
	s->n = n;
	for (int i = 0; i < n; i++) {
		s->mem[i] = os_alloc(s->p.b, way, PIECE);
		s->mr[i] = os_reg(s->p.b, s->mem[i], PIECE, OS_ALL, KEY + i);
	}
}

static void close_scene(struct scene *s)
{
	for (int i = 0; i < s->n; i++) {
		assert_int_equal(fi_close(&s->mr[i]->fid), 0);
		os_free(s->p.b, s->p.way, s->mem[i]);
	}
	os_close(&s->p);
}

static void bounds_hold(const struct scene *s)
{
	assert_in_range(s->peer->ncached, 0, g_unm_env.rkey_max);
	assert_in_range(s->peer->cached_bytes, 0, g_unm_env.rkey_bytes);
}

/* Writes region i, reads it back, and compares every byte at both sides. */
static void use(struct scene *s, int i, uint64_t value)
{
	uint64_t rng = value * REGIONS + (uint64_t)i;
	struct os_pair *p = &s->p;

	for (int k = 0; k < LEN; k++)
		g_out[k] = (uint8_t)unit_random(&rng);
	EP_OK(fi_write(p->a->ep, g_out, LEN, NULL, p->ab, 7, KEY + i, g_out));
	assert_int_equal(ep_wait(p->a, g_out).err, 0);
	p->nwr++;
	bounds_hold(s);
	assert_memory_equal(s->mem[i] + 7, g_out, LEN);
	memset(g_in, 0, LEN);
	EP_OK(fi_read(p->a->ep, g_in, LEN, NULL, p->ab, 7, KEY + i, g_in));
	assert_int_equal(ep_wait(p->a, g_in).err, 0);
	p->nrd++;
	bounds_hold(s);
	assert_memory_equal(g_in, g_out, LEN);
	ep_settle();			/* RKEY arrives */
	bounds_hold(s);
}

/* Uses region i until it is accessed directly. */
static void learn(struct scene *s, int i)
{
	uint64_t end = ep_deadline(), was;

	do {
		was = os_direct(&s->p);
		use(s, i, 1);
		ep_in_time(end, "a direct access");
	} while (os_direct(&s->p) == was);
}

static struct unm_cached *entry(const struct scene *s, int i)
{
	return unm_cache_find(s->peer, (uint64_t)(KEY + i), 0,
			      UNM_CACHED_REGION);
}

/* ---- Entries ------------------------------------------------------------- */

static void in_turn(enum os_way way)
{
	struct scene s;

	open_scene(&s, way, REGIONS);
	g_unm_env.rkey_max = ENTRIES;
	for (int round = 1; round <= ROUNDS; round++)
		for (int i = 0; i < REGIONS; i++)
			use(&s, i, (uint64_t)round);
	assert_true(s.stats->rkey_evicted >= REGIONS);
	learn(&s, 4);			/* the keys used last are cached */
	assert_true(s.stats->rkey_hits > 0);
	close_scene(&s);
}

static void test_more_regions_than_entries(void **state)
{
	for (enum os_way way = OS_ATTACH; way < OS_WAYS; way++)
		if (os_runs(way)) {
			in_turn(way);
			restore(NULL);
		}
}

/* The key that was not used for the longest time is evicted. */
static void test_used_least_recently(void **state)
{
	struct scene s;

	unit_needs(os_goes(OS_ATTACH));
	open_scene(&s, OS_ATTACH, 4);
	g_unm_env.rkey_max = ENTRIES;
	for (int i = 0; i < 3; i++)
		learn(&s, i);
	use(&s, 0, 2);			/* 1 is the oldest now */
	learn(&s, 3);
	assert_non_null(entry(&s, 0));
	assert_null(entry(&s, 1));
	assert_non_null(entry(&s, 2));
	assert_non_null(entry(&s, 3));
	close_scene(&s);
}

/* ---- In use -------------------------------------------------------------- */

/* A region that an operation uses stays, with its memory, while all others are
 * used in turn. The test takes the reference of the operation. */
static void test_entry_in_use_stays(void **state)
{
	struct unm_cached *r, *mem;
	struct scene s;

	unit_needs(os_goes(OS_DMABLE));
	open_scene(&s, OS_DMABLE, REGIONS);
	learn(&s, 0);
	r = unm_rkey_find(s.peer, KEY);
	assert_non_null(r);
	r->refs++;
	mem = r->mem;
	g_unm_env.rkey_max = ENTRIES;
	for (int round = 1; round <= ROUNDS; round++)
		for (int i = 1; i < REGIONS; i++) {
			use(&s, i, (uint64_t)round);
			assert_ptr_equal(entry(&s, 0), r);
			assert_false(r->stale || mem->stale);
			assert_non_null(mem->rmem);
		}
	unm_cached_put(r);
	close_scene(&s);
}

/* Where each entry is in use, accesses are requests, and nothing is evicted. */
static void test_all_entries_in_use(void **state)
{
	struct unm_cached *r[ENTRIES];
	uint64_t evicted, direct;
	struct scene s;

	unit_needs(os_goes(OS_ATTACH));
	open_scene(&s, OS_ATTACH, REGIONS);
	g_unm_env.rkey_max = ENTRIES;
	for (int i = 0; i < ENTRIES; i++) {
		learn(&s, i);
		r[i] = unm_rkey_find(s.peer, KEY + i);
		r[i]->refs++;
	}
	evicted = s.stats->rkey_evicted;
	direct = os_direct(&s.p);
	for (int i = ENTRIES; i < REGIONS; i++)
		use(&s, i, 5);
	assert_int_equal(os_direct(&s.p), direct);
	assert_int_equal(s.stats->rkey_evicted, evicted);
	assert_int_equal(s.peer->ncached, ENTRIES);
	for (int i = 0; i < ENTRIES; i++) {
		use(&s, i, 6);
		unm_cached_put(r[i]);
	}
	assert_true(os_direct(&s.p) > direct);
	learn(&s, REGIONS - 1);
	close_scene(&s);
}

/* ---- Bytes --------------------------------------------------------------- */

static void bytes_in_turn(enum os_way way)
{
	uint64_t most = 0;
	struct scene s;

	open_scene(&s, way, REGIONS);
	g_unm_env.rkey_bytes = 3 * PIECE + 1;
	/* the first memory is in the cache since os_open() */
	assert_in_range(s.peer->cached_bytes, 0, 3 * PIECE);
	for (int round = 1; round <= ROUNDS; round++)
		for (int i = 0; i < REGIONS; i++) {
			use(&s, i, (uint64_t)round);
			use(&s, i, (uint64_t)round + 100);
			if (s.peer->cached_bytes > most)
				most = s.peer->cached_bytes;
		}
	assert_true(most >= PIECE);
	assert_true(s.stats->rkey_evicted > 0);
	unm_cache_evict_all(s.peer);
	assert_int_equal(s.peer->cached_bytes, 0);
	g_unm_env.rkey_bytes = 0;	/* nothing is mapped any more */
	for (int i = 0; i < REGIONS; i++) {
		use(&s, i, 9);
		use(&s, i, 10);
	}
	g_unm_env.rkey_bytes = SIZE_MAX / 2;
	close_scene(&s);
}

static void test_more_bytes_than_the_bound(void **state)
{
	for (enum os_way way = OS_DMABLE; way < OS_WAYS; way++)
		if (os_runs(way)) {
			bytes_in_turn(way);
			restore(NULL);
		}
}

/* ---- Messages ------------------------------------------------------------ */

/* From memory of region i to in, which is dmable, too: some engines access no
 * other memory. */
static void message(struct scene *s, uint8_t *in, int i, uint64_t value)
{
	uint64_t rng = value;
	struct os_pair *p = &s->p;
	uint8_t *out = s->mem[i] + 100;

	for (int k = 0; k < LEN; k++)
		out[k] = (uint8_t)unit_random(&rng);
	memset(in, 0, LEN);
	EP_OK(fi_recv(p->a->ep, in, LEN, NULL, p->ab, in));
	EP_OK(fi_send(p->b->ep, out, LEN, NULL, p->ba, out));
	ep_received(p->a, in);
	assert_memory_equal(in, out, LEN);
	ep_sent(p->b, out);
	bounds_hold(s);
}

/* Messages and accesses of the same memory share the bounds. */
static void test_messages_under_the_same_bounds(void **state)
{
	uint64_t read;
	struct scene s;
	uint8_t *in;

	unit_needs(os_goes(OS_DMABLE));
	open_scene(&s, OS_DMABLE, REGIONS);
	in = os_alloc(s.p.a, OS_DMABLE, LEN);
	g_unm_env.rkey_max = ENTRIES;
	g_unm_env.rkey_bytes = 5 * PIECE;
	for (int round = 1; round <= ROUNDS; round++)
		for (int i = 0; i < REGIONS; i++) {
			/* the first requests the import */
			for (int k = 0; k < 3; k++) {
				message(&s, in, i, (uint64_t)(round * 100 + k));
				ep_settle();
			}
			use(&s, (i + 5) % REGIONS, (uint64_t)round);
		}
	assert_true(s.stats->rx_dmable > 0);
	assert_true(s.stats->rkey_evicted > 0);
	/* nothing fits: messages are streamed */
	unm_cache_evict_all(s.peer);
	g_unm_env.rkey_bytes = 0;
	read = s.stats->rx_dmable;
	for (int i = 0; i < REGIONS; i++)
		message(&s, in, i, (uint64_t)i);
	assert_int_equal(s.stats->rx_dmable, read);
	os_free(s.p.a, OS_DMABLE, in);
	g_unm_env.rkey_bytes = SIZE_MAX / 2;
	close_scene(&s);
}

/* ---- Statistics ---------------------------------------------------------- */

static void test_statistics(void **state)
{
	struct unm_stats was;
	struct scene s;

	unit_needs(os_goes(OS_DMABLE));
	open_scene(&s, OS_DMABLE, 1);
	was = *s.stats;
	learn(&s, 0);
	/* the region; the memory may be that of another region */
	assert_in_range(s.stats->rkey_misses - was.rkey_misses, 1, 2);
	was = *s.stats;
	for (int i = 0; i < 5; i++)
		use(&s, 0, 3);
	assert_int_equal(s.stats->rkey_hits, was.rkey_hits + 10);
	assert_int_equal(s.stats->rkey_misses, was.rkey_misses);
	EP_UNTIL(s.stats->rkey_entries == s.peer->ncached &&
		 s.stats->rkey_bytes == s.peer->cached_bytes);
	assert_true(s.stats->rkey_entries >= 2);
	assert_true(s.stats->rkey_bytes >= PIECE);
	was = *s.stats;
	assert_int_equal(fi_close(&s.mr[0]->fid), 0);
	s.mr[0] = os_reg(s.p.b, s.mem[0], PIECE, OS_ALL, KEY);
	learn(&s, 0);
	assert_int_equal(s.stats->rkey_stale, was.rkey_stale + 1);
	assert_int_equal(s.stats->rkey_misses, was.rkey_misses + 1);
	assert_int_equal(s.stats->rkey_evicted, was.rkey_evicted);
	close_scene(&s);
}

#define CACHE_TEST(f)							\
	{ #f, ep_test_inside, NULL, restore, (void *)f }

UNIT_MAIN(
	CACHE_TEST(test_more_regions_than_entries),
	CACHE_TEST(test_used_least_recently),
	CACHE_TEST(test_entry_in_use_stays),
	CACHE_TEST(test_all_entries_in_use),
	CACHE_TEST(test_more_bytes_than_the_bound),
	CACHE_TEST(test_messages_under_the_same_bounds),
	CACHE_TEST(test_statistics),
)
