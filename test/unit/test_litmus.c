/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_litmus.c - the orders of atomics that fi_info offers, two operations of
 * one initiator after the other: on every data path, and of lengths around
 * every threshold where the data path changes. Operations are random, and their
 * outcome is known exactly.
 *
 * A pair of operations overlaps at a place that no other pair uses. Each
 * operation changes an element from one value to the next (or only reads it)
 * and returns the value before; values are chosen so that the other order has
 * another outcome. The target polls the memory meanwhile, where values only
 * rise. Between the operations of a pair there are operations of other pairs,
 * or nothing, or a cached remote key arrives or is revoked.
 */
#include "core/unm_ep_state.h"
#include "core/unm_stats.h"
#include "core/unm_wire.h"
#include "lib/litmus.h"
#include "lib/os_pair.h"
#include "op/gsas_op.h"
#include "unm_offer.h"

enum turns { READS = 1, WRITES };	/* READS: fetch or compare; WRITES:
					 * update */

static struct order {
	uint64_t bit;
	const char *name;
	enum turns turn[2];
	uint64_t done;			/* pairs checked */
} orders[] = {
	{ FI_ORDER_ATOMIC_RAR, "atomic read after read", { READS, READS }, 0 },
	{ FI_ORDER_ATOMIC_RAW, "atomic read after write", { WRITES, READS },
	  0 },
	{ FI_ORDER_ATOMIC_WAR, "atomic write after read", { READS, WRITES },
	  0 },
	{ FI_ORDER_ATOMIC_WAW, "atomic write after write", { WRITES, WRITES },
	  0 },
	/* messages: test_litmus_msg.c */
	{ FI_ORDER_SAS, "send after send", { 0 }, 0 },
};

#define ORDERS	(sizeof(orders) / sizeof(orders[0]))
#define ATOMICS	(ORDERS - 1)

/* ---- Pairs of atomics -------------------------------------------------- */

enum way {
	REQUESTS,			/* FI_UNIMEM_DIRECT=0 */
	ATTACHED,			/* with puts and gets by attach
					 * beside */
	WINDOW,				/* executed directly where possible */
	LEARNED,			/* the remote key arrives in the
					 * middle */
	REVOKED,			/* it is revoked and arrives again */
};

static const char *const ways[] = {
	"requests", "attached", "window", "learned", "revoked",
};

#define ARENA	((size_t)2 << 20)	/* bytes for pairs */
#define TRAFFIC	((size_t)320 << 10)	/* bytes behind them for puts and
					 * gets */
#define FIRST	64			/* bytes of the first piece */
#define PAIRS	256			/* pairs of a batch, at most */
#define DIRECT_MAX ((size_t)256 << 10)	/* longest atomic that is executed
					 * directly, bytes */
#define BURST	16			/* requests that are sent at a time */
#define PIECES	77			/* key of the same memory in two pieces:
					 * requests only */

struct turn {
	enum gsas_form form;
	enum gsas_op op;
	bool writes, inject;
	bool pieces;			/* uses the key PIECES */
	bool split;			/* two remote ranges */
	uint32_t from, n;		/* first element, and number */
	int err;			/* error if its region was closed */
};

struct pair {
	struct turn turn[2];
	uint64_t at;			/* offset in the region */
	uint32_t n;			/* elements of the pair */
	uint64_t base;			/* value of the first element */
	bool bumped;			/* the target adds to it during the
					 * batch */
	bool watched;			/* the target polls this element */
	uint32_t element;
	uint64_t seen, bumps;		/* value seen and additions made by
					 * target */
};

struct litmus {
	struct os_pair p;
	enum way way;
	bool threads;
	struct order *order;
	uint64_t rng, rng_b;
	/* the current batch */
	enum gsas_type type;
	size_t unit;
	struct pair pair[PAIRS];
	uint32_t pairs, next;		/* next: pair that the target polls
					 * next */
	uint32_t lag;			/* pairs issued between the two
					 * operations */
	uint32_t pace;			/* polls once in so many operations */
	bool mixed;			/* some operations can only be sent as
					 * requests */
	bool plain;			/* no pair writes */
	uint64_t batch, refused;
	uint8_t *src[2], *cmp[2], *dst[2], *traffic;
	struct fid_mr *pieces, *whole;
	/* for the target's thread */
	pthread_t thread;
	void (*_Atomic work)(struct litmus *l);
	bool running;			/* the target polls */
	atomic_bool stop;
};

/* Value v of element j: each byte of it shows v. */
static void put_value(const struct litmus *l, const struct pair *p, uint8_t *to,
		      uint32_t j, uint64_t v)
{
	uint64_t x[2] = { p->base + 3 * (uint64_t)j + v, 0 };

	memcpy(to, x, l->unit);
}

static bool is_value(const struct litmus *l, const struct pair *p,
		     const uint8_t *from, uint32_t j, uint64_t v)
{
	uint8_t want[16];

	put_value(l, p, want, j, v);
	return memcmp(want, from, l->unit) == 0;
}

static bool covers(const struct turn *t, uint32_t j)
{
	return j - t->from < t->n;
}

/* The number of the value that this operation finds in element j. */
static uint64_t found(const struct pair *p, int turn, uint32_t j)
{
	return turn == 1 && p->turn[0].writes && covers(&p->turn[0], j);
}

/* ---- Batches ----------------------------------------------------------- */

static const struct turn reads[] = {
	{ .form = GSAS_FORM_FETCH, .op = GSAS_OP_READ },
	{ .form = GSAS_FORM_FETCH, .op = GSAS_OP_SUM, .writes = true },
	{ .form = GSAS_FORM_FETCH, .op = GSAS_OP_WRITE, .writes = true },
	{ .form = GSAS_FORM_FETCH, .op = GSAS_OP_BXOR, .writes = true },
	{ .form = GSAS_FORM_COMPARE, .op = GSAS_OP_CSWAP, .writes = true },
	{ .form = GSAS_FORM_COMPARE, .op = GSAS_OP_MSWAP, .writes = true },
};
static const struct turn writes[] = {
	{ .form = GSAS_FORM_UPDATE, .op = GSAS_OP_WRITE, .writes = true },
	{ .form = GSAS_FORM_UPDATE, .op = GSAS_OP_SUM, .writes = true },
	{ .form = GSAS_FORM_UPDATE, .op = GSAS_OP_BXOR, .writes = true },
};

/* Numbers of elements: few; around what fits a packet; around a request; around
 * a burst of requests and the longest atomic that is executed directly. */
static uint32_t any_count(struct litmus *l, int class)
{
	size_t part = ((struct unm_ep *)l->p.a->ep)->piece_max -
		8 * UNM_WIRE_WORDS_MAX;
	size_t few[] = { part, part / 2, 2 * part, part + part / 2 };
	size_t many[] = { BURST * part, (BURST + 1) * part, DIRECT_MAX };
	size_t bytes, n;

	switch (class) {
	case 0:
		return 1 + unit_below(&l->rng, 3);
	case 1:
		bytes = 8 * unit_below(&l->rng, 10);
		break;
	case 2:
		bytes = few[unit_below(&l->rng, 4)];
		break;
	default:
		bytes = many[unit_below(&l->rng, 3)];
		break;
	}
	n = bytes / l->unit + unit_below(&l->rng, 3);
	return n > 1 ? (uint32_t)n - 1 : 1;
}

/* May an operation find its region closed? With one thread the region is opened
 * again before the operation is executed. */
static bool refusable(const struct litmus *l)
{
	return l->way == REVOKED && l->threads;
}

static struct turn any_turn(struct litmus *l, enum turns what, int class)
{
	uint64_t *rng = &l->rng;
	struct turn t = what == WRITES ? writes[unit_below(rng, 3)] :
		reads[l->plain ? 0 : unit_below(rng, 6)];

	t.n = any_count(l, one_in(rng, 3) ? 0 : class);
	/* an injected operation reports no result */
	t.inject = what == WRITES && one_in(rng, 3) &&
		t.n * l->unit <= UNM_INJECT_MAX && !refusable(l);
	t.pieces = l->mixed && one_in(rng, 4);
	t.split = l->mixed && t.n > 1 && !t.inject && one_in(rng, 8);
	return t;
}

/* Two random operations that overlap, in bytes that no other pair uses. */
static struct pair any_pair(struct litmus *l, int class)
{
	struct turn a = any_turn(l, l->order->turn[0], class);
	struct turn b = any_turn(l, l->order->turn[1], class);
	struct pair p = { .n = a.n + b.n };
	uint32_t low;

	p.base = unit_random(&l->rng) >> 2;
	a.from = unit_below(&l->rng, b.n + 1);
	low = a.from + 1 > b.n ? a.from + 1 - b.n : 0;
	b.from = low + unit_below(&l->rng, (a.from + a.n < p.n - b.n + 1 ?
				a.from + a.n : p.n - b.n + 1) - low);
	/* the two orders must differ, also if the first one may be refused */
	if ((l->order->turn[0] == WRITES && a.op == b.op) ||
	    (refusable(l) && b.op == GSAS_OP_BXOR))
		b.op = GSAS_OP_WRITE;
	if (a.op == GSAS_OP_READ && b.op == GSAS_OP_READ) {
		p.bumped = l->unit == 8;
		b.op = p.bumped ? b.op : GSAS_OP_SUM;
		b.writes = !p.bumped;
	}
	if (p.bumped) {
		a.n = b.n = p.n = 1;
		a.from = b.from = 0;
		a.split = b.split = false;
	}
	p.element = a.from > b.from ? a.from : b.from;
	p.turn[0] = a;
	p.turn[1] = b;
	return p;
}

static const enum gsas_type types[] = {
	GSAS_TYPE_UINT64, GSAS_TYPE_UINT8, GSAS_TYPE_INT16, GSAS_TYPE_UINT64,
	GSAS_TYPE_UINT32, GSAS_TYPE_INT64, GSAS_TYPE_UINT128,
};

static void any_batch(struct litmus *l, uint64_t most)
{
	static const uint32_t lens[] = { PAIRS, 64, 8, 1 };
	uint64_t *rng = &l->rng, i = l->batch++, at = FIRST;
	int class = i % 1024 == 3 ? 3 : i % 64 == 2 ? 2 : i % 4 == 1;

	l->plain = l->order->bit == FI_ORDER_ATOMIC_RAR && one_in(rng, 4);
	l->type = l->plain ? GSAS_TYPE_UINT64 : types[unit_below(rng, 7)];
	l->unit = gsas_type_size(l->type);
	l->pairs = 1 + unit_below(rng, l->plain ? 4 : lens[class]);
	if (l->pairs > most)
		l->pairs = most;
	l->lag = one_in(rng, 2) ? 0 : unit_below(rng, l->pairs);
	l->pace = 1 + unit_below(rng, 40);
	l->mixed = l->plain || one_in(rng, 2);
	for (uint32_t k = 0; k < l->pairs; k++) {
		struct pair *p = &l->pair[k];

		*p = any_pair(l, class);
		/* misalign some, which the owner then executes; not bumped
		 * ones */
		p->at = at;
		if (l->mixed && !p->bumped && one_in(rng, 8))
			p->at += unit_below(rng, 16);
		p->watched = l->unit == 8 && p->at % 8 == 0;
		at = (p->at + p->n * l->unit + 127) / 64 * 64;
	}
	assert_true(at <= ARENA);
}

/* ---- The target's part, in its thread ----------------------------------- */

static void poll_b(struct litmus *l)
{
	ssize_t n = fi_cq_read(l->p.b->cq, NULL, 0);

	CHECK(n == 0 || n == -FI_EAGAIN, "target: %s", fi_strerror((int)-n));
}

static void renew(struct litmus *l)
{
	CHECK(fi_close(&l->p.mr->fid) == 0, "close");
	CHECK(fi_mr_reg(l->p.b->domain, l->p.mem, l->p.len, OS_ALL, 0,
			l->p.key, 0, &l->p.mr, NULL) == 0, "no region");
}

/* Target, before a batch: nothing is under way. */
static void prepare(struct litmus *l)
{
	if (l->way == LEARNED) {
		l->p.key++;
		renew(l);
	}
	for (uint32_t k = 0; k < l->pairs; k++) {
		struct pair *p = &l->pair[k];

		for (uint32_t j = 0; j < p->n; j++)
			put_value(l, p, l->p.mem + p->at + j * l->unit, j, 0);
	}
	l->next = 0;
	l->running = true;
}

static void bump(struct litmus *l, struct pair *p)
{
	__atomic_fetch_add((uint64_t *)(l->p.mem + p->at), 1,
			   __ATOMIC_SEQ_CST);
	p->bumps++;
}

/* Target, during a batch: checks that values only rise. For pairs that only
 * read, the target itself makes them rise. */
static void look(struct litmus *l)
{
	struct pair *p = &l->pair[l->next];

	for (uint32_t i = 0; i < l->pairs && l->plain; i++)
		bump(l, &l->pair[i]);
	if (p->bumped) {
		bump(l, p);
	} else if (p->watched) {
		uint64_t v = __atomic_load_n((uint64_t *)(l->p.mem + p->at) +
					     p->element, __ATOMIC_ACQUIRE);

		v -= p->base + 3 * (uint64_t)p->element;
		CHECK(v <= 2 && v >= p->seen, "%s: value %" PRIu64 " after %"
		      PRIu64, l->order->name, v, p->seen);
		p->seen = v;
	}
	if (one_in(&l->rng_b, 16))
		l->next = unit_below(&l->rng_b, l->pairs);
	if (l->way == REVOKED && one_in(&l->rng_b, l->threads ? 400 : 60))
		renew(l);
}

static void check_result(struct litmus *l, const struct pair *p, int turn)
{
	const struct turn *t = &p->turn[turn];
	const uint8_t *dst = l->dst[turn] + p->at + t->from * l->unit;

	if (t->form == GSAS_FORM_UPDATE || p->bumped)
		return;
	for (uint32_t j = 0; j < t->n; j++)
		CHECK(is_value(l, p, dst + j * l->unit, t->from + j,
			       found(p, turn, t->from + j)),
		      "%s, %s: operation %d on %u elements of %zu bytes did "
		      "not find what it should in %u", l->order->name,
		      ways[l->way], t->op, t->n, l->unit, j);
}

static void check_memory(struct litmus *l, const struct pair *p)
{
	const uint8_t *mem = l->p.mem + p->at;

	for (uint32_t j = 0; j < p->n; j++) {
		uint64_t v = found(p, 1, j) + (p->turn[1].writes &&
					       covers(&p->turn[1], j));

		CHECK(is_value(l, p, mem + j * l->unit, j, v + p->bumps),
		      "%s, %s: %d on %u and %d on %u elements of %zu bytes: "
		      "%u of %u is wrong", l->order->name, ways[l->way],
		      p->turn[0].op, p->turn[0].n, p->turn[1].op,
		      p->turn[1].n, l->unit, j, p->n);
	}
}

static void check_bumped(struct litmus *l, const struct pair *p)
{
	uint64_t first, second;

	memcpy(&first, l->dst[0] + p->at, 8);
	memcpy(&second, l->dst[1] + p->at, 8);
	CHECK(first - p->base <= second - p->base &&
	      second - p->base <= p->bumps, "%s, %s: read %" PRIu64
	      ", then %" PRIu64 " of %" PRIu64, l->order->name, ways[l->way],
	      first - p->base, second - p->base, p->bumps);
}

/* Checks the batch after its end. A pair that met a closed region may have been
 * executed or not, so it is not counted. */
static void check(struct litmus *l)
{
	l->running = false;
	for (uint32_t k = 0; k < l->pairs; k++) {
		struct pair *p = &l->pair[k];

		if (p->turn[0].err != 0 || p->turn[1].err != 0) {
			l->refused++;
			continue;
		}
		check_result(l, p, 0);
		check_result(l, p, 1);
		check_memory(l, p);
		if (p->bumped)
			check_bumped(l, p);
		l->order->done++;
	}
}

static void *target(void *arg)
{
	struct litmus *l = arg;
	void (*work)(struct litmus *l);

	while (!atomic_load(&l->stop)) {
		work = atomic_load(&l->work);
		if (work != NULL) {
			work(l);
			atomic_store(&l->work, NULL);
		}
		poll_b(l);
		if (l->running)
			look(l);
		else
			sched_yield();
	}
	return NULL;
}

/* ---- The initiator ------------------------------------------------------- */

static bool poll_a(struct litmus *l)
{
	struct fi_cq_tagged_entry entry[32];
	struct fi_cq_err_entry err = { 0 };
	ssize_t n = fi_cq_read(l->p.a->cq, entry, 32);

	if (n != -FI_EAVAIL) {
		CHECK(n > 0 || n == -FI_EAGAIN, "initiator: %zd", n);
		return n > 0;
	}
	CHECK(fi_cq_readerr(l->p.a->cq, &err, 0) == 1, "no error");
	CHECK(err.err == FI_EKEYREJECTED && refusable(l), "%s, %s: %s",
	      l->order->name, ways[l->way], fi_strerror(err.err));
	if (err.op_context != NULL)
		((struct turn *)err.op_context)->err = err.err;
	return true;
}

static void pump(struct litmus *l)
{
	poll_a(l);
	if (!l->threads) {
		look(l);
		poll_b(l);
	}
}

static void let(struct litmus *l, void (*work)(struct litmus *l))
{
	if (!l->threads) {
		work(l);
		return;
	}
	atomic_store(&l->work, work);
	while (atomic_load(&l->work) != NULL)
		sched_yield();
}

static void operands(struct litmus *l, const struct pair *p, int turn)
{
	const struct turn *t = &p->turn[turn];
	size_t at = p->at + t->from * l->unit;
	uint8_t *src = l->src[turn] + at, *cmp = l->cmp[turn] + at;
	uint64_t one[2] = { 1, 0 };

	for (uint32_t j = t->from; j < t->from + t->n; j++) {
		uint64_t v = found(p, turn, j);

		put_value(l, p, src, j, v + 1);
		put_value(l, p, cmp, j, v);
		if (t->op == GSAS_OP_SUM)
			memcpy(src, one, l->unit);
		for (size_t i = 0; i < l->unit && t->op == GSAS_OP_BXOR; i++)
			src[i] ^= cmp[i];
		if (t->op == GSAS_OP_MSWAP)
			memset(cmp, 0xFF, l->unit);
		src += l->unit;
		cmp += l->unit;
	}
	if (t->form != GSAS_FORM_UPDATE)
		memset(l->dst[turn] + at, 0x77, t->n * l->unit);
}

/* By a call with several remote ranges. */
static ssize_t post_split(struct fid_ep *ep, const struct turn *t,
			  struct fi_msg_atomic *msg, size_t unit,
			  const struct fi_ioc *cmp, struct fi_ioc *dst)
{
	const struct fi_rma_ioc *to = msg->rma_iov;
	struct fi_rma_ioc two[2] = {
		{ to->addr, t->n / 2, to->key },
		{ to->addr + t->n / 2 * unit, t->n - t->n / 2, to->key },
	};

	msg->rma_iov = two;
	msg->rma_iov_count = 2;
	switch (t->form) {
	case GSAS_FORM_UPDATE:
		return fi_atomicmsg(ep, msg, FI_COMPLETION);
	case GSAS_FORM_FETCH:
		return fi_fetch_atomicmsg(ep, msg, dst, NULL, 1,
					  FI_COMPLETION);
	default:
		return fi_compare_atomicmsg(ep, msg, cmp, NULL, 1, dst, NULL,
					    1, FI_COMPLETION);
	}
}

static ssize_t post(struct litmus *l, struct pair *p, int turn)
{
	struct turn *t = &p->turn[turn];
	size_t at = p->at + t->from * l->unit;
	struct fid_ep *ep = l->p.a->ep;
	struct fi_ioc src = { l->src[turn] + at, t->n };
	struct fi_ioc cmp = { l->cmp[turn] + at, t->n };
	struct fi_ioc dst = { l->dst[turn] + at, t->n };
	struct fi_rma_ioc to = { at, t->n, t->pieces ? PIECES : l->p.key };
	struct fi_msg_atomic msg = {
		.msg_iov = &src, .iov_count = 1, .addr = l->p.ab,
		.rma_iov = &to, .datatype = (enum fi_datatype)l->type,
		.op = (enum fi_op)t->op, .context = t,
	};

	if (t->split)
		return post_split(ep, t, &msg, l->unit, &cmp, &dst);
	if (t->inject)
		return fi_inject_atomic(ep, src.addr, t->n, l->p.ab, at,
					to.key, msg.datatype, msg.op);
	if (t->form == GSAS_FORM_UPDATE)
		return fi_atomic(ep, src.addr, t->n, NULL, l->p.ab, at, to.key,
				 msg.datatype, msg.op, t);
	if (t->form == GSAS_FORM_FETCH)
		return fi_fetch_atomic(ep, src.addr, t->n, NULL, dst.addr,
				       NULL, l->p.ab, at, to.key,
				       msg.datatype, msg.op, t);
	return fi_compare_atomic(ep, src.addr, t->n, NULL, cmp.addr, NULL,
				 dst.addr, NULL, l->p.ab, at, to.key,
				 msg.datatype, msg.op, t);
}

static void issue(struct litmus *l, struct pair *p, int turn)
{
	struct turn *t = &p->turn[turn];
	uint64_t end = ep_now() + HANG_US;
	ssize_t ret;

	operands(l, p, turn);
	for (uint32_t i = 0; (ret = post(l, p, turn)) == -FI_EAGAIN &&
	     goes_on(i, end); i++)
		pump(l);
	CHECK(ret == 0, "begin: %s", fi_strerror((int)-ret));
	*(t->form == GSAS_FORM_UPDATE ? &l->p.nwr : &l->p.nrd) += ret == 0;
	if (t->inject)			/* the buffer may be reused */
		memset(l->src[turn] + p->at + t->from * l->unit, 0xDD,
		       t->n * l->unit);
}

/* A long put or get elsewhere in the region, in steps if executed directly. */
static void traffic(struct litmus *l)
{
	bool put = one_in(&l->rng, 2);
	ssize_t ret = put ?
		fi_write(l->p.a->ep, l->traffic, TRAFFIC, NULL, l->p.ab, ARENA,
			 PIECES + 1, NULL) :
		fi_read(l->p.a->ep, l->traffic, TRAFFIC, NULL, l->p.ab, ARENA,
			PIECES + 1, NULL);

	if (ret == 0)
		*(put ? &l->p.nwr : &l->p.nrd) += 1;
}

static void await_all(struct litmus *l)
{
	uint64_t end = ep_now() + HANG_US;
	struct os_pair *p = &l->p;

	for (uint32_t i = 0; (fi_cntr_read(p->wr) + fi_cntr_readerr(p->wr) <
	     p->nwr || fi_cntr_read(p->rd) + fi_cntr_readerr(p->rd) <
	     p->nrd) && goes_on(i, end); i++)
		pump(l);
	while (g_line == 0 && poll_a(l))
		;
}

static void run_batch(struct litmus *l)
{
	bool busy = l->way == ATTACHED ? one_in(&l->rng, 8) :
		l->way != REVOKED && one_in(&l->rng, 256);

	for (uint32_t i = 0; i < l->pairs + l->lag && g_line == 0; i++) {
		if (busy && (i == 0 || one_in(&l->rng, 64)))
			traffic(l);
		if (i < l->pairs)
			issue(l, &l->pair[i], 0);
		if (one_in(&l->rng, l->pace))
			pump(l);
		if (i >= l->lag)
			issue(l, &l->pair[i - l->lag], 1);
		if (one_in(&l->rng, l->pace))
			poll_a(l);
		if (!l->threads && one_in(&l->rng, l->pace))
			poll_b(l);
		if (one_in(&l->rng, 32)) {
			await_all(l);
			/* and the remote key, if one is to arrive */
			for (int k = 0; k < 16; k++)
				pump(l);
		}
	}
	await_all(l);
}

static void open_litmus(struct litmus *l)
{
	static const enum os_way os[] = {
		OS_REQUESTS, OS_ATTACH, OS_DMABLE, OS_DMABLE, OS_DMABLE,
	};
	struct iovec iov[2];

	l->p = os_open(os[l->way], ARENA + TRAFFIC);
	iov[0] = (struct iovec){ l->p.mem, FIRST };
	iov[1] = (struct iovec){ l->p.mem + FIRST, l->p.len - FIRST };
	assert_int_equal(fi_mr_regv(l->p.b->domain, iov, 2, OS_ALL, 0, PIECES,
				    0, &l->pieces, NULL), 0);
	l->whole = os_reg(l->p.b, l->p.mem, l->p.len, OS_ALL, PIECES + 1);
	for (int i = 0; i < 2; i++) {
		l->src[i] = malloc(ARENA);
		l->cmp[i] = malloc(ARENA);
		l->dst[i] = malloc(ARENA);
	}
	l->traffic = calloc(1, TRAFFIC);
}

static void close_litmus(struct litmus *l)
{
	EP_CLOSE(&l->pieces->fid, &l->whole->fid);
	for (int i = 0; i < 2; i++) {
		free(l->src[i]);
		free(l->cmp[i]);
		free(l->dst[i]);
	}
	free(l->traffic);
	os_close(&l->p);
	g_unm_env.direct = true;
	free(l);
}

static void all_pairs(struct litmus *l)
{
	for (size_t i = 0; i < ATOMICS && g_line == 0; i++) {
		uint64_t end = orders[i].done + count();

		l->order = &orders[i];
		while (orders[i].done < end && g_line == 0) {
			any_batch(l, end - orders[i].done);
			let(l, prepare);
			run_batch(l);
			let(l, check);
		}
	}
}

/* Were operations executed on the intended data path, and by requests, too? */
static void check_ways(const struct litmus *l, uint64_t direct,
		       uint64_t requests)
{
	const struct unm_ep *a = (struct unm_ep *)l->p.a->ep;
	const struct unm_ep *b = (struct unm_ep *)l->p.b->ep;

	direct = os_direct(&l->p) - direct;
	requests = os_requests(&l->p) - requests;
	printf("%" PRIu64 " directly, %" PRIu64 " requests, %" PRIu64
	       " remote keys, %" PRIu64 " revoked, %" PRIu64 " pairs refused\n",
	       direct, requests, a->stats->rkeys, b->stats->revokes,
	       l->refused);
	assert_true(requests > 0);
	if (l->way == REQUESTS)
		assert_int_equal(direct, 0);
	if (count() < 2000)
		return;
	if (l->way == ATTACHED || (l->way != REQUESTS &&
	    (a->hif->caps->flags & HAL_CAP_COHERENT)))
		assert_true(direct > 0);
	if (l->way == LEARNED || l->way == REVOKED)
		assert_true(a->stats->rkeys > 2 && b->stats->revokes > 2);
}

static void litmus(enum way way, bool threads)
{
	struct litmus *l = calloc(1, sizeof(*l));
	uint64_t direct, requests;

	assert_non_null(l);
	g_line = 0;
	l->way = way;
	l->threads = threads;
	l->rng = way * 2 + threads + 1;
	l->rng_b = ~l->rng;
	open_litmus(l);
	direct = os_direct(&l->p);
	requests = os_requests(&l->p);
	if (threads)
		l->thread = unit_thread(target, l);
	all_pairs(l);
	atomic_store(&l->stop, true);
	if (threads)
		pthread_join(l->thread, NULL);
	all_well();
	check_ways(l, direct, requests);
	close_litmus(l);
}

/* ---- Tests -------------------------------------------------------------- */

/* The orders that fi_getinfo() offers are exactly the tested ones. */
static void test_claims_are_the_table(void **state)
{
	struct ep *e = ep_open(NULL);
	uint64_t all = 0;

	for (size_t i = 0; i < ORDERS; i++)
		all |= orders[i].bit;
	assert_int_equal(e->info->tx_attr->msg_order, all);
	assert_int_equal(e->info->rx_attr->msg_order, all);
	assert_int_equal(e->info->tx_attr->comp_order, FI_ORDER_NONE);
	assert_int_equal(e->info->rx_attr->comp_order, FI_ORDER_NONE);
	ep_close(e);
}

LITMUS(requests, true, litmus, REQUESTS)
LITMUS(attached, os_goes(OS_ATTACH), litmus, ATTACHED)
LITMUS(window, true, litmus, WINDOW)
LITMUS(learned, true, litmus, LEARNED)
LITMUS(revoked, true, litmus, REVOKED)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EP_TEST(test_claims_are_the_table),
		BOTH(requests),
		BOTH(attached),
		BOTH(window),
		BOTH(learned),
		BOTH(revoked),
	};
	int failed;

	ep_threads();
	failed = unit_run(tests);
	for (size_t i = 0; i < ATOMICS; i++)
		printf("%s: %" PRIu64 " pairs in order\n", orders[i].name,
		       orders[i].done);
	return failed;
}
