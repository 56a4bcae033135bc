/* SPDX-License-Identifier: BSD-2-Clause */
/* test_match.c - matching of tags and sources, without endpoints. */
#include "lib/unit.h"
#include "core/unm_match.h"

#define TOP	(UINT64_C(1) << 63)
/* quadratic code takes hours */
#define PATIENCE	(UNIT_SLOW ? 900 : 60)	/* seconds */

static struct unm_match m;

static int setup(void **state)
{
	return unm_match_construct(&m);
}

static int teardown(void **state)
{
	unm_match_destruct(&m);
	return 0;
}

static void post(struct unm_match_recv *r, uint64_t tag, uint64_t ignore,
		 uint64_t src)
{
	r->tag = tag;
	r->ignore = ignore;
	r->src = src;
	r->context = r;
	unm_match_post(&m, r);
}

static void store(struct unm_match_msg *g, uint64_t tag, const uint64_t *src)
{
	g->tag = tag;
	g->src = src;
	unm_match_store(&m, g);
}

/* ---- Order ----------------------------------------------------------- */

static void test_oldest_of_equal_receives(void **state)
{
	struct unm_match_recv r[3];

	for (int i = 0; i < 3; i++)
		post(&r[i], 7, 0, UNM_MATCH_ANY);
	for (int i = 0; i < 3; i++) {
		assert_ptr_equal(unm_match_find_recv(&m, 7, 1), &r[i]);
		/* found, but not removed */
		assert_ptr_equal(unm_match_find_recv(&m, 7, 1), &r[i]);
		unm_match_unpost(&m, &r[i]);
	}
	assert_null(unm_match_find_recv(&m, 7, 1));
	assert_int_equal(m.nrecv, 0);
}

static void test_oldest_across_exact_and_wild_receives(void **state)
{
	struct unm_match_recv r[4];

	post(&r[0], 7, 0, UNM_MATCH_ANY);
	post(&r[1], 0, UINT64_MAX, UNM_MATCH_ANY);
	post(&r[2], 7, 0, UNM_MATCH_ANY);
	post(&r[3], 0, UINT64_MAX, UNM_MATCH_ANY);
	for (int i = 0; i < 4; i++) {
		assert_ptr_equal(unm_match_find_recv(&m, 7, 1), &r[i]);
		unm_match_unpost(&m, &r[i]);
	}
}

static void test_wild_receive_passed_by_other_tags(void **state)
{
	struct unm_match_recv exact, wild;

	post(&wild, 0x100, 0xff, UNM_MATCH_ANY);
	post(&exact, 0x200, 0, UNM_MATCH_ANY);
	assert_ptr_equal(unm_match_find_recv(&m, 0x200, 0), &exact);
	assert_ptr_equal(unm_match_find_recv(&m, 0x1ff, 0), &wild);
	assert_null(unm_match_find_recv(&m, 0x2ff, 0));
}

static void test_oldest_of_messages(void **state)
{
	static const uint64_t tags[] = { 5, 6, 5, 7, 6 };
	const uint64_t src = 3;
	struct unm_match_msg g[5];

	for (int i = 0; i < 5; i++)
		store(&g[i], tags[i], &src);
	assert_ptr_equal(unm_match_find_msg(&m, 5, 0, UNM_MATCH_ANY), &g[0]);
	assert_ptr_equal(unm_match_find_msg(&m, 6, 0, 3), &g[1]);
	assert_ptr_equal(unm_match_find_msg(&m, 0, UINT64_MAX, 3), &g[0]);
	unm_match_unstore(&m, &g[0]);
	assert_ptr_equal(unm_match_find_msg(&m, 5, 0, 3), &g[2]);
	assert_ptr_equal(unm_match_find_msg(&m, 0, UINT64_MAX, 3), &g[1]);
	assert_int_equal(m.nmsg, 4);
}

/* ---- Masks ----------------------------------------------------------- */

/* Bits 48 to 63 are not hashed: a receive that ignores some of them is not
 * searched for like one with other masks, but must match all the same. */
static void test_ignore_of_high_bits_only(void **state)
{
	const uint64_t high = UINT64_C(0xffff) << 48;
	const uint64_t src = 0;
	struct unm_match_recv r[2];
	struct unm_match_msg g;

	post(&r[0], 5, high, UNM_MATCH_ANY);
	post(&r[1], TOP | 5, 0, UNM_MATCH_ANY);
	assert_true(unm_list_empty(&m.wild));
	assert_ptr_equal(unm_match_find_recv(&m, TOP | 5, 0), &r[0]);
	assert_ptr_equal(unm_match_find_recv(&m, high | 5, 0), &r[0]);
	unm_match_unpost(&m, &r[0]);
	assert_ptr_equal(unm_match_find_recv(&m, TOP | 5, 0), &r[1]);
	assert_null(unm_match_find_recv(&m, 5, 0));
	assert_null(unm_match_find_recv(&m, high | 5, 0));

	store(&g, TOP | 9, &src);
	assert_null(unm_match_find_msg(&m, 9, 0, UNM_MATCH_ANY));
	assert_ptr_equal(unm_match_find_msg(&m, 9, high, UNM_MATCH_ANY), &g);
	assert_null(unm_match_find_msg(&m, 8, high, UNM_MATCH_ANY));
}

static void test_every_bit_of_tag_and_mask_counts(void **state)
{
	const uint64_t tag = UINT64_C(0x123456789abcdef0);
	const uint64_t src = 0;

	for (int bit = 0; bit < 64; bit++) {
		uint64_t other = tag ^ UINT64_C(1) << bit;
		struct unm_match_recv r;
		struct unm_match_msg g;

		post(&r, tag, 0, UNM_MATCH_ANY);
		assert_null(unm_match_find_recv(&m, other, 0));
		assert_ptr_equal(unm_match_find_recv(&m, tag, 0), &r);
		unm_match_unpost(&m, &r);
		post(&r, tag, UINT64_C(1) << bit, UNM_MATCH_ANY);
		assert_ptr_equal(unm_match_find_recv(&m, other, 0), &r);
		unm_match_unpost(&m, &r);
		store(&g, other, &src);
		assert_null(unm_match_find_msg(&m, tag, 0, 0));
		assert_ptr_equal(unm_match_find_msg(&m, tag,
						    UINT64_C(1) << bit, 0),
				 &g);
		unm_match_unstore(&m, &g);
	}
}

/* ---- Sources --------------------------------------------------------- */

static void test_directed_receives(void **state)
{
	struct unm_match_recv from1, from2, any;

	post(&from1, 7, 0, 1);
	post(&from2, 7, 0, 2);
	post(&any, 7, 0, UNM_MATCH_ANY);
	assert_ptr_equal(unm_match_find_recv(&m, 7, 2), &from2);
	assert_ptr_equal(unm_match_find_recv(&m, 7, 1), &from1);
	assert_ptr_equal(unm_match_find_recv(&m, 7, 3), &any);
	/* an unresolved sender (FI_ADDR_NOTAVAIL) matches the undirected one
	 * only */
	assert_ptr_equal(unm_match_find_recv(&m, 7, UINT64_MAX), &any);
	unm_match_unpost(&m, &any);
	assert_null(unm_match_find_recv(&m, 7, 3));
	assert_null(unm_match_find_recv(&m, 7, UINT64_MAX));
}

/* A sender is resolved after its messages came. */
static void test_late_name_of_a_source(void **state)
{
	uint64_t late = UINT64_MAX;
	const uint64_t other = 4;
	struct unm_match_msg g[3];

	store(&g[0], 7, &late);
	store(&g[1], 7, &other);
	store(&g[2], 7, &late);
	assert_null(unm_match_find_msg(&m, 7, 0, 9));
	assert_null(unm_match_find_msg(&m, 0, UINT64_MAX, 9));
	assert_ptr_equal(unm_match_find_msg(&m, 7, 0, UNM_MATCH_ANY), &g[0]);
	late = 9;
	unm_match_source_changed(&m, &g[2]);
	unm_match_source_changed(&m, &g[0]);
	assert_ptr_equal(unm_match_find_msg(&m, 7, 0, 9), &g[0]);
	assert_ptr_equal(unm_match_find_msg(&m, 0, UINT64_MAX, 9), &g[0]);
	assert_ptr_equal(unm_match_find_msg(&m, 7, 0, 4), &g[1]);
	unm_match_unstore(&m, &g[0]);
	assert_ptr_equal(unm_match_find_msg(&m, 7, 0, 9), &g[2]);
	/* the index of another sender: messages match in order of arrival */
	late = 4;
	unm_match_source_changed(&m, &g[2]);
	assert_null(unm_match_find_msg(&m, 7, 0, 9));
	assert_ptr_equal(unm_match_find_msg(&m, 7, 0, 4), &g[1]);
	unm_match_unstore(&m, &g[1]);
	assert_ptr_equal(unm_match_find_msg(&m, 7, 0, 4), &g[2]);
	late = UINT64_MAX;
	unm_match_source_changed(&m, &g[2]);
	assert_null(unm_match_find_msg(&m, 7, 0, 4));
	assert_ptr_equal(unm_match_find_msg(&m, 7, 0, UNM_MATCH_ANY), &g[2]);
}

/* ---- Contexts -------------------------------------------------------- */

/* Sources 1 and 3 become 2, source 4 is removed. */
static uint64_t merged(const struct unm_match_recv *recv, const void *arg)
{
	(void)arg;
	assert_int_not_equal(recv->src, UNM_MATCH_ANY);
	return recv->src == 4 ? UNM_MATCH_NONE : 2;
}

/* It is reported whether a receive names a source that it did not name. */
static void test_renaming_is_reported(void **state)
{
	static struct unm_match_recv none[2], r[2];

	post(&none[0], 1, 0, 4);
	post(&none[1], 1, 1, 4);
	assert_false(unm_match_rename_recvs(&m, merged, NULL));
	for (uint64_t ignore = 0; ignore < 2; ignore++) {
		post(&r[ignore], 1, ignore, 3);
		assert_true(unm_match_rename_recvs(&m, merged, NULL));
		assert_false(unm_match_rename_recvs(&m, merged, NULL));
	}
	for (int i = 0; i < 2; i++) {
		assert_true(r[i].src == 2 && none[i].src == UNM_MATCH_NONE);
		unm_match_unpost(&m, &r[i]);
		unm_match_unpost(&m, &none[i]);
	}
}

/* When the source of receives changes, they match in the order of posting, not
 * of the changes, with and without hashed tags. */
static void test_renamed_receives_keep_their_order(void **state)
{
	enum { N = 400 };
	static struct unm_match_recv r[N];

	for (uint32_t i = 0; i < N; i++)
		post(&r[i], i % 3, i % 7 == 0 ? 1 : 0, i % 11 == 0 ?
		     UNM_MATCH_ANY : 1 + (i * 5) % 4);
	assert_true(unm_match_rename_recvs(&m, merged, NULL));
	assert_false(unm_match_rename_recvs(&m, merged, NULL));
	for (uint64_t tag = 0; tag < 3; tag++) {
		struct unm_match_recv *got;
		uint32_t next = 0;

		while ((got = unm_match_find_recv(&m, tag, 2)) != NULL) {
			uint32_t i = (uint32_t)(got - r);

			for (; next < i; next++)
				if (r[next].context != NULL &&
				    r[next].src != UNM_MATCH_NONE &&
				    ((r[next].tag ^ tag) &
				     ~r[next].ignore) == 0)
					unit_fail("%u before %u", i, next);
			unm_match_unpost(&m, got);
			got->context = NULL;
		}
		assert_null(unm_match_find_recv(&m, tag, 4));
	}
	for (uint32_t i = 0; i < N; i++)
		if (r[i].context != NULL)
			assert_true(r[i].src == UNM_MATCH_NONE);
}

static struct unm_named named;

static void is_counted(const uint32_t *times, uint64_t n)
{
	uint32_t sources = 0;

	for (uint64_t src = 0; src < n; src++) {
		assert_int_equal(unm_named_find(&named, src), times[src] != 0);
		sources += times[src] != 0;
	}
	assert_int_equal(named.sources, sources);
}

/* The receives that name each source are counted, also when they are renamed or
 * removed. */
static void test_receives_are_counted(void **state)
{
	enum { N = 600, SOURCES = 300 };
	static struct unm_match_recv r[N];
	static uint32_t times[SOURCES];
	struct unm_list taken;

	m.named = &named;
	for (uint32_t i = 0; i < N; i++) {
		post(&r[i], i, i % 7 == 0 ? 1 : 0, i % 11 == 0 ?
		     UNM_MATCH_ANY : (i * 5) % SOURCES);
		if (i % 11 != 0)
			times[(i * 5) % SOURCES]++;
	}
	is_counted(times, SOURCES);
	assert_false(unm_named_find(&named, UNM_MATCH_ANY));
	unm_list_init(&taken);
	unm_match_take_source(&m, 10, &taken);
	times[10] = 0;
	is_counted(times, SOURCES);
	memset(times, 0, sizeof(times));
	assert_true(unm_match_rename_recvs(&m, merged, NULL));
	for (uint32_t i = 0; i < N; i++)
		if (r[i].src < SOURCES && r[i].src != 10)
			times[r[i].src]++;
	is_counted(times, SOURCES);
	for (uint32_t i = 0; i < N; i++)
		if (r[i].src != 10)
			unm_match_unpost(&m, &r[i]);
	memset(times, 0, sizeof(times));
	is_counted(times, SOURCES);
	unm_named_more(&named, UINT32_MAX / 2);	/* too many entries */
	assert_true(unm_named_find(&named, UINT32_MAX / 2));
	unm_named_clear(&named);
	assert_false(unm_named_find(&named, UINT32_MAX / 2));
}

/* The receives of a source, exact and with masks, are removed; all others stay
 * where they were. */
static void test_receives_of_a_source(void **state)
{
	struct unm_match_recv r[400];
	struct unm_list taken, *node;
	unsigned n = 0;

	for (unsigned i = 0; i < 400; i++)
		post(&r[i], i / 8, i % 4 == 3 ? UINT64_MAX : 0,
		     i % 2 == 0 ? 5 : i % 8 < 4 ? 6 : UNM_MATCH_ANY);
	assert_int_equal(unm_match_count_any(&m), 100);
	assert_ptr_equal(unm_match_find_context(&m, &r[4]), &r[4]);
	unm_list_init(&taken);
	unm_match_take_source(&m, 7, &taken);
	assert_true(unm_list_empty(&taken));
	unm_match_take_source(&m, 5, &taken);
	assert_int_equal(m.nrecv, 200);
	while ((node = unm_list_pop(&taken)) != NULL) {
		struct unm_match_recv *got =
			unm_container(node, struct unm_match_recv, link);

		assert_int_equal((got - r) % 2, 0);
		n++;
	}
	assert_int_equal(n, 200);
	assert_null(unm_match_find_context(&m, &r[4]));
	assert_int_equal(unm_match_count_any(&m), 100);
	unm_match_take_source(&m, UNM_MATCH_ANY, &taken);
	assert_int_equal(unm_match_count_any(&m), 0);
	assert_ptr_equal(unm_match_find_recv(&m, 0, 6), &r[1]);
}

static void test_oldest_of_a_context(void **state)
{
	struct unm_match_recv r[6];
	int ctx = 0;

	assert_null(unm_match_find_context(&m, &ctx));
	/* with and without mask, in different buckets */
	for (int i = 0; i < 6; i++) {
		r[i] = (struct unm_match_recv){
			.tag = 6 - i, .ignore = i % 3 == 0 ? UINT64_MAX : 0,
			.src = i % 2 ? 1 : UNM_MATCH_ANY,
			.context = i == 2 ? NULL : &ctx,
		};
		unm_match_post(&m, &r[i]);
	}
	assert_ptr_equal(unm_match_find_context(&m, NULL), &r[2]);
	unm_match_unpost(&m, &r[1]);
	for (int i = 0; i < 6; i += i == 0 ? 3 : 1) {
		assert_ptr_equal(unm_match_find_context(&m, &ctx), &r[i]);
		unm_match_unpost(&m, &r[i]);
	}
	assert_null(unm_match_find_context(&m, &ctx));
	assert_null(unm_match_find_context(&m, &r));
}

/* ---- Size ------------------------------------------------------------ */

static uint32_t buckets(void)
{
	return UINT32_C(1) << (64 - m.shift);
}

/* Equal tags, and tags that fall into one bucket, stay in order while the
 * tables grow under them. */
static void test_growth_keeps_order(void **state)
{
	enum { N = 20000, TAGS = 37 };
	struct unm_match_recv *r = calloc(N, sizeof(*r));
	struct unm_match_msg *g = calloc(N, sizeof(*g));
	const uint64_t src = 0;
	uint32_t before = buckets();

	for (int i = 0; i < N; i++) {
		post(&r[i], i % TAGS, 0, UNM_MATCH_ANY);
		store(&g[i], 1000 + i % TAGS, &src);
	}
	assert_true(buckets() > before);
	for (int i = 0; i < N; i++) {
		assert_ptr_equal(unm_match_find_recv(&m, i % TAGS, 0), &r[i]);
		unm_match_unpost(&m, &r[i]);
		assert_ptr_equal(unm_match_find_msg(&m, 1000 + i % TAGS, 0, 0),
				 &g[i]);
		/* a search with a mask finds the same order */
		assert_ptr_equal(unm_match_find_msg(&m, 0, UINT64_MAX, 0),
				 &g[i]);
		unm_match_unstore(&m, &g[i]);
	}
	assert_int_equal(m.nrecv, 0);
	assert_int_equal(m.nmsg, 0);
	free(r);
	free(g);
}

/* MPI programs do this: all messages are sent first, then received in
 * reverse. */
static void test_a_million_messages_in_reverse(void **state)
{
	enum { N = 1000000 };
	struct unm_match_msg *g = calloc(N, sizeof(*g));
	const uint64_t src = 5;
	double start = unit_cpu_seconds();

	for (int i = 0; i < N; i++)
		store(&g[i], (uint64_t)i, &src);
	for (int i = N - 1; i >= 0; i--) {
		assert_ptr_equal(unm_match_find_msg(&m, i, 0, 5), &g[i]);
		unm_match_unstore(&m, &g[i]);
	}
	assert_int_equal(m.nmsg, 0);
	assert_true(unit_cpu_seconds() - start < PATIENCE);
	free(g);
}

static void test_a_million_receives_in_reverse(void **state)
{
	enum { N = 1000000 };
	struct unm_match_recv *r = calloc(N, sizeof(*r));
	double start = unit_cpu_seconds();

	for (int i = 0; i < N; i++)
		post(&r[i], (uint64_t)i << 16, 0, 5);
	for (int i = N - 1; i >= 0; i--) {
		assert_ptr_equal(unm_match_find_recv(&m, (uint64_t)i << 16, 5),
				 &r[i]);
		unm_match_unpost(&m, &r[i]);
	}
	assert_int_equal(m.nrecv, 0);
	assert_true(unit_cpu_seconds() - start < PATIENCE);
	free(r);
}

/* Gather and all-to-all do this: one tag, and a receive or message of each
 * rank, in reverse. */
static void test_one_tag_of_a_million_sources(void **state)
{
	enum { N = 1000000 };
	struct unm_match_recv *r = calloc(N, sizeof(*r));
	struct unm_match_msg *g = calloc(N, sizeof(*g));
	uint64_t *src = calloc(N, sizeof(*src));
	double start = unit_cpu_seconds();

	for (int i = 0; i < N; i++) {
		src[i] = (uint64_t)i;
		post(&r[i], 7, 0, src[i]);
		store(&g[i], 8, &src[i]);
	}
	for (int i = N - 1; i >= 0; i--) {
		assert_ptr_equal(unm_match_find_recv(&m, 7, src[i]), &r[i]);
		unm_match_unpost(&m, &r[i]);
		assert_ptr_equal(unm_match_find_msg(&m, 8, 0, src[i]), &g[i]);
		unm_match_unstore(&m, &g[i]);
	}
	assert_true(unit_cpu_seconds() - start < PATIENCE);
	free(r);
	free(g);
	free(src);
}

/* Cancelled in the worst order for a search from the oldest on: receives posted
 * before the first cancel, and as many after it. */
static void test_a_million_contexts_in_reverse(void **state)
{
	enum { N = 500000 };
	struct unm_match_recv *r = calloc(2 * N, sizeof(*r));
	double start = unit_cpu_seconds();

	for (int i = 0; i < N; i++)
		post(&r[i], 7, i % 2 ? UINT64_MAX : 0, 5);
	assert_ptr_equal(unm_match_find_context(&m, &r[1]), &r[1]);
	for (int i = N; i < 2 * N; i++)
		post(&r[i], i, 0, 5);
	for (int i = 2 * N - 1; i >= 0; i--) {
		assert_ptr_equal(unm_match_find_context(&m, &r[i]), &r[i]);
		unm_match_unpost(&m, &r[i]);
	}
	assert_int_equal(m.nrecv, 0);
	assert_true(unit_cpu_seconds() - start < PATIENCE);
	free(r);
}

/* ---- Against a model ------------------------------------------------- */

#define M_MAX	300

struct model {
	struct unm_match_recv recv[M_MAX];
	struct unm_match_msg msg[M_MAX];
	uint64_t rborn[M_MAX], gborn[M_MAX];	/* time of posting or arrival;
						 * 0: not queued */
	uint64_t src[8];			/* sources */
	uint64_t clock, rng;
};

static const uint64_t masks[] = {
	0, 0, 0, 0xff, UINT64_MAX, UINT64_C(0xffff) << 48, TOP, 1,
};

static uint64_t model_tag(struct model *mo)
{
	uint64_t tag = unit_below(&mo->rng, 6);

	if (unit_below(&mo->rng, 4) == 0)
		tag |= TOP;
	return tag | (uint64_t)unit_below(&mo->rng, 3) << 8;
}

static bool fits(const struct unm_match_recv *r, uint64_t tag, uint64_t src)
{
	return ((r->tag ^ tag) & ~r->ignore) == 0 &&
		(r->src == UNM_MATCH_ANY || r->src == src);
}

/* A message arrives: it must match what a linear search finds. */
static void model_arrive(struct model *mo, int i)
{
	uint64_t tag = model_tag(mo);
	uint64_t *src = &mo->src[unit_below(&mo->rng, 8)];
	int best = -1;

	for (int k = 0; k < M_MAX; k++)
		if (mo->rborn[k] != 0 && fits(&mo->recv[k], tag, *src) &&
		    (best < 0 || mo->rborn[k] < mo->rborn[best]))
			best = k;
	if (best >= 0) {
		assert_ptr_equal(unm_match_find_recv(&m, tag, *src),
				 &mo->recv[best]);
		unm_match_unpost(&m, &mo->recv[best]);
		mo->rborn[best] = 0;
		return;
	}
	assert_null(unm_match_find_recv(&m, tag, *src));
	store(&mo->msg[i], tag, src);
	mo->gborn[i] = ++mo->clock;
}

static void model_post(struct model *mo, int i)
{
	struct unm_match_recv *r = &mo->recv[i];
	struct unm_match_msg *found;
	int best = -1;

	r->tag = model_tag(mo);
	r->ignore = masks[unit_below(&mo->rng, 8)];
	r->src = unit_below(&mo->rng, 2) ? UNM_MATCH_ANY :
		unit_below(&mo->rng, 8);
	r->context = &mo->src[unit_below(&mo->rng, 8)];
	for (int k = 0; k < M_MAX; k++)
		if (mo->gborn[k] != 0 &&
		    fits(r, mo->msg[k].tag, *mo->msg[k].src) &&
		    (best < 0 || mo->gborn[k] < mo->gborn[best]))
			best = k;
	found = unm_match_find_msg(&m, r->tag, r->ignore, r->src);
	if (best >= 0) {
		assert_ptr_equal(found, &mo->msg[best]);
		unm_match_unstore(&m, found);
		mo->gborn[best] = 0;
		return;
	}
	assert_null(found);
	unm_match_post(&m, r);
	mo->rborn[i] = ++mo->clock;
}

static void model_cancel(struct model *mo)
{
	void *ctx = &mo->src[unit_below(&mo->rng, 8)];
	int best = -1;

	for (int k = 0; k < M_MAX; k++)
		if (mo->rborn[k] != 0 && mo->recv[k].context == ctx &&
		    (best < 0 || mo->rborn[k] < mo->rborn[best]))
			best = k;
	assert_ptr_equal(unm_match_find_context(&m, ctx),
			 best < 0 ? NULL : &mo->recv[best]);
	if (best >= 0) {
		unm_match_unpost(&m, &mo->recv[best]);
		mo->rborn[best] = 0;
	}
}

/* A source is resolved, removed or changed, maybe to that of another sender. */
static void model_rename(struct model *mo, int i)
{
	uint64_t *src = &mo->src[4 + i % 4];

	*src = i & 4 ? (uint64_t)i % 8 : UINT64_MAX;
	/* in any order */
	for (int k = 0; k < M_MAX; k++) {
		int g = i & 8 ? k : M_MAX - 1 - k;

		if (mo->gborn[g] != 0 && mo->msg[g].src == src)
			unm_match_source_changed(&m, &mo->msg[g]);
	}
}

/* Posts, arrivals, cancels, and changes of sources at random. */
static void test_random_model(void **state)
{
	struct model *mo = calloc(1, sizeof(*mo));
	uint32_t nrecv, nmsg;

	mo->rng = 42;
	for (int i = 0; i < 8; i++)
		mo->src[i] = i < 4 ? (uint64_t)i : UINT64_MAX;
	for (int step = 0; step < 60000; step++) {
		int i = unit_below(&mo->rng, M_MAX);

		switch (unit_below(&mo->rng, 20)) {
		case 0:
			if (step > 20000)
				model_cancel(mo);
			break;
		case 1:
			model_rename(mo, i);
			break;
		case 2 ... 10:
			if (mo->gborn[i] == 0)
				model_arrive(mo, i);
			break;
		default:
			if (mo->rborn[i] == 0)
				model_post(mo, i);
		}
		nrecv = nmsg = 0;
		for (int k = 0; k < M_MAX; k++) {
			nrecv += mo->rborn[k] != 0;
			nmsg += mo->gborn[k] != 0;
		}
		assert_int_equal(m.nrecv, nrecv);
		assert_int_equal(m.nmsg, nmsg);
	}
	free(mo);
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

UNIT_MAIN(
	TEST(test_oldest_of_equal_receives),
	TEST(test_oldest_across_exact_and_wild_receives),
	TEST(test_wild_receive_passed_by_other_tags),
	TEST(test_oldest_of_messages),
	TEST(test_ignore_of_high_bits_only),
	TEST(test_every_bit_of_tag_and_mask_counts),
	TEST(test_directed_receives),
	TEST(test_late_name_of_a_source),
	TEST(test_renaming_is_reported),
	TEST(test_renamed_receives_keep_their_order),
	TEST(test_receives_are_counted),
	TEST(test_receives_of_a_source),
	TEST(test_oldest_of_a_context),
	TEST(test_growth_keeps_order),
	TEST(test_a_million_messages_in_reverse),
	TEST(test_a_million_receives_in_reverse),
	TEST(test_one_tag_of_a_million_sources),
	TEST(test_a_million_contexts_in_reverse),
	TEST(test_random_model),
)
