/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_atomic.c - fi_atomic(3): every operation on every type in every form and
 * on every data path, and the refused calls.
 *
 * The table of operations is the reference here: these tests check that
 * operands, results and errors are delivered. test_op.c checks that the
 * operations compute the right values.
 */
#include "op/gsas_op.h"
#include "lib/os_pair.h"

#define ROOM	65536
#define TYPES	(FI_UINT128 + 1)
#define OPS	FI_ATOMIC_OP_LAST

/* Random values of the type, without signalling NaN. */
static void fill(uint8_t *buf, enum fi_datatype type, size_t count, int seed)
{
	size_t size = gsas_type_size((enum gsas_type)type);

	memset(buf, 0, size * count);
	for (size_t i = 0; i < count; i++) {
		uint8_t *at = buf + i * size;
		long v = (long)(i * 7 + (size_t)seed * 3) % 100;
		float f[2] = { (float)v, 2 };
		double d[2] = { (double)v, 3 };
		long double l[2] = { 0 };

		l[0] = v;
		l[1] = 4;
		switch (type) {
		case FI_FLOAT:
		case FI_FLOAT_COMPLEX:
			memcpy(at, f, size);
			break;
		case FI_DOUBLE:
		case FI_DOUBLE_COMPLEX:
			memcpy(at, d, size);
			break;
		case FI_LONG_DOUBLE:
			memcpy(at, l, 10);
			break;
		case FI_LONG_DOUBLE_COMPLEX:
			memcpy(at, l, 10);
			memcpy(at + size / 2, &l[1], 10);
			break;
		default:
			memcpy(at, &v, size < 8 ? size : 8);
			break;
		}
	}
}

struct shot {
	enum fi_op op;
	enum fi_datatype type;
	enum gsas_form form;
	size_t count, at;
};

static ssize_t issue(struct os_pair *p, const struct shot *s, const void *src,
		     const void *cmp, void *dst, void *context)
{
	struct fid_ep *ep = p->a->ep;

	switch (s->form) {
	case GSAS_FORM_UPDATE:
		return fi_atomic(ep, src, s->count, NULL, p->ab, s->at, p->key,
				 s->type, s->op, context);
	case GSAS_FORM_FETCH:
		return fi_fetch_atomic(ep, src, s->count, NULL, dst, NULL,
				       p->ab, s->at, p->key, s->type, s->op,
				       context);
	default:
		return fi_compare_atomic(ep, src, s->count, NULL, cmp, NULL,
					 dst, NULL, p->ab, s->at, p->key,
					 s->type, s->op, context);
	}
}

static void one(struct os_pair *p, const struct shot *s)
{
	static uint8_t src[ROOM], cmp[ROOM], dst[ROOM], want[ROOM], old[ROOM];
	size_t len = gsas_type_size((enum gsas_type)s->type) * s->count;
	bool fetches = s->form != GSAS_FORM_UPDATE;
	struct ep_comp c;

	fill(src, s->type, s->count, 1);
	fill(cmp, s->type, s->count, s->at % 3 ? 2 : 5);
	memset(p->mem, 0x5A, p->len);
	fill(p->mem + s->at, s->type, s->count, 2);
	memcpy(want, p->mem, p->len);
	memset(dst, 0x77, len);
	memset(old, 0x77, len);
	gsas_op_apply((enum gsas_op)s->op, (enum gsas_type)s->type, s->count,
		      want + s->at, src, s->form == GSAS_FORM_COMPARE ? cmp :
		      NULL, fetches ? old : NULL);
	EP_OK(issue(p, s, src, cmp, dst, dst));
	*(fetches ? &p->nrd : &p->nwr) += 1;
	c = ep_wait(p->a, dst);
	assert_int_equal(c.err, 0);
	assert_int_equal(c.flags, FI_ATOMIC | (fetches ? FI_READ : FI_WRITE));
	assert_memory_equal(p->mem, want, p->len);
	assert_memory_equal(dst, old, len);
}

static void every_operation(enum os_way way)
{
	static const size_t counts[] = { 1, 3, 1000 };
	static const size_t at[] = { 64, 65, 72 };
	struct os_pair p;
	size_t max;

	unit_needs(os_goes(way));
	p = os_open(way, ROOM);
	for (int op = 0; op < OPS; op++)
		for (int type = 0; type < TYPES; type++)
			for (int form = 0; form < 3; form++)
				for (int i = 0; i < 9; i++) {
					struct shot s = {
						op, type, form, counts[i % 3],
						at[i / 3],
					};

					if (gsas_op_valid(op, type, form))
						one(&p, &s);
				}
	os_all_done(&p);
	ep_quiet(p.a);
	/* the operations and counts that MPICH needs */
	assert_int_equal(fi_atomicvalid(p.a->ep, FI_DOUBLE, FI_LAND, &max), 0);
	assert_true(max >= 65536);
	if (os_window(way))
		assert_true(os_direct(&p) > 500);
	else
		assert_int_equal(os_direct(&p), way == OS_REQUESTS ? 0 :
				 os_direct(&p));
	os_close(&p);
}

static void test_every_operation_by_requests(void **state)
{
	every_operation(OS_REQUESTS);
}

static void test_every_operation_beside_attach(void **state)
{
	every_operation(OS_ATTACH);
}

static void test_every_operation_on_dmable_memory(void **state)
{
	every_operation(OS_DMABLE);
}

static void test_every_operation_on_shared_memory(void **state)
{
	unit_needs(os_goes(OS_SHARED));
	every_operation(OS_SHARED);
}

/* ---- Vectors, messages, inject --------------------------------------- */

static void test_vectors(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, ROOM);
	uint64_t src[10], cmp[10], dst[10], *mem = (uint64_t *)p.mem;
	struct fi_ioc srcv[3] = { { src, 1 }, { src + 1, 4 }, { src + 5, 5 } };
	struct fi_ioc cmpv[2] = { { cmp, 7 }, { cmp + 7, 3 } };
	struct fi_ioc dstv[3] = { { dst, 2 }, { dst + 2, 6 }, { dst + 8, 2 } };
	struct fi_rma_ioc remote[2] = { { 0, 3, p.key }, { 800, 7, p.key } };
	struct fi_msg_atomic msg = {
		.msg_iov = srcv, .iov_count = 3, .addr = p.ab,
		.rma_iov = remote, .rma_iov_count = 2, .datatype = FI_UINT64,
		.op = FI_SUM, .context = src,
	};

	for (int i = 0; i < 10; i++) {
		src[i] = i + 1;
		mem[i < 3 ? i : 97 + i] = 100 * i;
	}
	EP_OK(fi_fetch_atomicmsg(p.a->ep, &msg, dstv, NULL, 3,
				 FI_COMPLETION));
	assert_int_equal(ep_wait(p.a, src).err, 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(dst[i], 100 * i);
		assert_int_equal(mem[i < 3 ? i : 97 + i], 101 * i + 1);
		cmp[i] = i & 1 ? 101 * i + 1 : 0;
	}
	msg.op = FI_CSWAP;
	EP_OK(fi_compare_atomicmsg(p.a->ep, &msg, cmpv, NULL, 2, dstv, NULL,
				   3, FI_COMPLETION));
	assert_int_equal(ep_wait(p.a, src).err, 0);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(dst[i], 101 * i + 1);
		assert_int_equal(mem[i < 3 ? i : 97 + i],
				 i & 1 ? i + 1 : 101 * i + 1);
	}
	EP_OK(fi_inject_atomic(p.a->ep, src, 10, p.ab, 0, p.key, FI_UINT64,
			       FI_ATOMIC_WRITE));
	memset(src, 0, sizeof(src));
	p.nwr++;
	p.nrd += 2;
	os_all_done(&p);
	for (int i = 0; i < 10; i++)
		assert_int_equal(mem[i], i + 1);
	os_close(&p);
}

/* ---- Refusals -------------------------------------------------------- */

static void test_bad_calls(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, ROOM);
	struct fid_ep *ep = p.a->ep;
	uint64_t v[2] = { 0 };
	struct fi_atomic_attr attr;
	size_t n;

	assert_int_equal(fi_atomic(ep, v, 1, NULL, p.ab, 0, p.key, FI_DOUBLE,
				   FI_BOR, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_atomic(ep, v, 1, NULL, p.ab, 0, p.key, FI_UINT64,
				   FI_CSWAP, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_atomic(ep, v, 1, NULL, p.ab, 0, p.key, 77,
				   FI_SUM, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_atomic(ep, v, 1, NULL, p.ab, 0, p.key, FI_UINT64,
				   -1, NULL), -FI_EOPNOTSUPP);
	assert_int_equal(fi_atomic(ep, v, 0, NULL, p.ab, 0, p.key, FI_UINT64,
				   FI_SUM, NULL), -FI_EINVAL);
	assert_int_equal(fi_atomic(ep, v, (1 << 24) + 1, NULL, p.ab, 0, p.key,
				   FI_UINT8, FI_SUM, NULL), -FI_EMSGSIZE);
	assert_int_equal(fi_atomicvalid(ep, FI_DOUBLE, FI_BXOR, &n),
			 -FI_EOPNOTSUPP);
	assert_int_equal(fi_fetch_atomicvalid(ep, FI_INT8, FI_ATOMIC_READ,
					      &n), 0);
	assert_int_equal(fi_compare_atomicvalid(ep, FI_INT8, FI_SUM, &n),
			 -FI_EOPNOTSUPP);
	assert_int_equal(fi_query_atomic(p.a->domain, FI_UINT64, FI_CSWAP,
					 &attr, FI_COMPARE_ATOMIC), 0);
	assert_int_equal(attr.size, 8);
	assert_int_equal(fi_query_atomic(p.a->domain, FI_UINT64, FI_CSWAP,
					 &attr, 0), -FI_EOPNOTSUPP);
	assert_int_equal(fi_query_atomic(p.a->domain, FI_UINT64, FI_SUM,
					 &attr, FI_SEND), -FI_EBADFLAGS);
	ep_quiet(p.a);
	os_close(&p);
}

/* Rights and bounds: an error and no byte is changed, also for long
 * operations. */
static void test_bad_accesses(void **state)
{
	const struct {
		uint64_t access;
		enum gsas_form form;
		enum fi_op op;
		size_t at, count;
		int err;
	} t[] = {
		{ FI_REMOTE_READ, GSAS_FORM_UPDATE, FI_SUM, 0, 1, FI_EACCES },
		{ FI_REMOTE_READ, GSAS_FORM_FETCH, FI_SUM, 0, 1, FI_EACCES },
		{ FI_REMOTE_WRITE, GSAS_FORM_FETCH, FI_SUM, 0, 1, FI_EACCES },
		{ FI_REMOTE_WRITE, GSAS_FORM_FETCH, FI_ATOMIC_READ, 0, 1,
		  FI_EACCES },
		{ FI_REMOTE_READ, GSAS_FORM_COMPARE, FI_CSWAP, 0, 1,
		  FI_EACCES },
		{ OS_ALL, GSAS_FORM_UPDATE, FI_SUM, ROOM - 7, 1, FI_EINVAL },
		{ OS_ALL, GSAS_FORM_FETCH, FI_SUM, ROOM, 1, FI_EINVAL },
		{ OS_ALL, GSAS_FORM_UPDATE, FI_SUM, 8, ROOM / 8, FI_EINVAL },
		{ OS_ALL, GSAS_FORM_FETCH, FI_SUM, 8, ROOM / 8, FI_EINVAL },
		{ OS_ALL, GSAS_FORM_COMPARE, FI_CSWAP, 8, ROOM / 8,
		  FI_EINVAL },
	};
	static uint8_t buf[3 * ROOM];

	for (int way = 0; way < OS_WAYS; way++)
		for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
			struct shot s = { t[i].op, FI_UINT64, t[i].form,
					  t[i].count, t[i].at };
			struct os_pair p;

			if (!os_runs(way))
				continue;
			p = os_open(way, ROOM);
			assert_int_equal(fi_close(&p.mr->fid), 0);
			p.mr = os_reg(p.b, p.mem, ROOM, t[i].access, p.key);
			memset(p.mem, 0x11, ROOM);
			for (int k = 0; k < 3; k++) {
				EP_OK(issue(&p, &s, buf, buf + ROOM,
					    buf + 2 * ROOM, &p));
				assert_int_equal(ep_wait(p.a, &p).err,
						 t[i].err);
				ep_settle();
			}
			for (int k = 0; k < ROOM; k++)
				assert_int_equal(p.mem[k], 0x11);
			os_close(&p);
		}
}

/* ---- Order ----------------------------------------------------------- */

/* Atomics of one initiator on one word are executed in order, also if the
 * remote key arrives in between. */
static void test_atomics_stay_in_order(void **state)
{
	for (int way = 0; way < OS_WAYS; way++) {
		struct os_pair p;
		uint64_t v, was[200];

		if (!os_runs(way))
			continue;
		p = os_open(way, ROOM);
		for (int round = 0; round < 20; round++) {
			/* a region whose remote key is not cached yet */
			struct fid_mr *mr = os_reg(p.b, p.mem, ROOM, OS_ALL,
						   1000 + round);

			memset(p.mem, 0, 64);
			for (v = 0; v < 200; v++)
				EP_OK(fi_fetch_atomic(p.a->ep, &v, 1, NULL,
						      &was[v], NULL, p.ab, 0,
						      1000 + round, FI_UINT64,
						      FI_ATOMIC_WRITE, &v));
			p.nrd += 200;
			os_all_done(&p);
			for (v = 1; v < 200; v++)
				assert_int_equal(was[v], v - 1);
			assert_int_equal(fi_close(&mr->fid), 0);
		}
		os_close(&p);
	}
}

/* ---- Counters of the target ------------------------------------------ */

struct target {
	struct ep *a, *b;
	fi_addr_t ab;
	struct fid_cntr *wr, *rd, *of_mr;
	struct fid_mr *mr;
	uint64_t mem[ROOM / 8];
};

static struct fid_cntr *remote_cntr(struct ep *e)
{
	struct fid_cntr *cntr;

	assert_int_equal(fi_cntr_open(e->domain, NULL, &cntr, NULL), 0);
	return cntr;
}

/* An endpoint with counters of remote accesses: two, or one for both. */
static void target_open(struct target *t, bool both)
{
	struct ep_want want = { .disabled = true };

	memset(t, 0, sizeof(*t));
	t->a = ep_open(NULL);
	t->b = ep_open(&want);
	t->wr = remote_cntr(t->b);
	t->rd = both ? t->wr : remote_cntr(t->b);
	t->of_mr = remote_cntr(t->b);
	assert_int_equal(fi_ep_bind(t->b->ep, &t->wr->fid, FI_REMOTE_WRITE |
				    (both ? FI_REMOTE_READ : 0)), 0);
	if (!both)
		assert_int_equal(fi_ep_bind(t->b->ep, &t->rd->fid,
					    FI_REMOTE_READ), 0);
	assert_int_equal(fi_enable(t->b->ep), 0);
	t->b->want.disabled = false;
	t->ab = ep_insert(t->a, t->b);
	t->mr = os_reg(t->b, t->mem, ROOM, OS_ALL, 1);
	assert_int_equal(fi_mr_bind(t->mr, &t->of_mr->fid, FI_REMOTE_WRITE),
			 0);
}

static void target_close(struct target *t)
{
	EP_CLOSE(&t->mr->fid, &t->b->ep->fid);
	t->b->ep = NULL;
	assert_int_equal(fi_close(&t->wr->fid), 0);
	if (t->rd != t->wr)
		assert_int_equal(fi_close(&t->rd->fid), 0);
	assert_int_equal(fi_close(&t->of_mr->fid), 0);
	ep_close(t->a);
	ep_close(t->b);
}

static const struct counted {
	struct shot s;
	bool writes, reads;
} counted[] = {
	{ { FI_SUM, FI_UINT64, GSAS_FORM_UPDATE, 1, 0 }, true, false },
	{ { FI_SUM, FI_UINT64, GSAS_FORM_FETCH, 1, 0 }, true, true },
	{ { FI_ATOMIC_WRITE, FI_UINT64, GSAS_FORM_FETCH, 1, 0 }, true, true },
	{ { FI_ATOMIC_READ, FI_UINT64, GSAS_FORM_FETCH, 1, 0 }, false, true },
	/* counts although it compares as unequal and changes nothing */
	{ { FI_CSWAP, FI_UINT64, GSAS_FORM_COMPARE, 1, 8 }, true, true },
	{ { FI_CSWAP_NE, FI_UINT64, GSAS_FORM_COMPARE, 1, 8 }, true, true },
	/* operations of several requests */
	{ { FI_SUM, FI_UINT8, GSAS_FORM_UPDATE, ROOM, 0 }, true, false },
	{ { FI_SUM, FI_UINT8, GSAS_FORM_FETCH, ROOM, 0 }, true, true },
	{ { FI_ATOMIC_READ, FI_UINT8, GSAS_FORM_FETCH, ROOM, 0 }, false,
	  true },
	{ { FI_CSWAP, FI_UINT8, GSAS_FORM_COMPARE, ROOM, 0 }, true, true },
};

/*
 * FI_REMOTE_WRITE counts every atomic that can change memory, FI_REMOTE_READ
 * every atomic that returns the old value. Each counts once, however many
 * requests it takes, and once in a counter that is bound for both.
 */
static void test_remote_counters(void **state)
{
	static uint8_t src[ROOM], cmp[ROOM], dst[ROOM];
	static struct target t;

	memset(cmp, 3, sizeof(cmp));
	for (int both = 0; both < 2; both++) {
		uint64_t nwr = 0, nrd = 0, nmr = 0;

		target_open(&t, both);
		for (int n = 0; n < 30; n++) {
			const struct counted *c = &counted[n % 10];
			struct os_pair p = { .a = t.a, .b = t.b, .ab = t.ab,
					     .key = 1 };

			EP_OK(issue(&p, &c->s, src, cmp, dst, dst));
			assert_int_equal(ep_wait(t.a, dst).err, 0);
			ep_settle();
			nmr += c->writes;
			nwr += c->writes || both;
			nrd += c->reads;
			assert_int_equal(fi_cntr_read(t.wr), nwr);
			assert_int_equal(fi_cntr_read(t.rd), both ? nwr : nrd);
			assert_int_equal(fi_cntr_read(t.of_mr), nmr);
		}
		target_close(&t);
	}
}

UNIT_MAIN(
	EP_TEST(test_every_operation_by_requests),
	EP_TEST(test_every_operation_beside_attach),
	EP_TEST(test_every_operation_on_dmable_memory),
	EP_TEST(test_every_operation_on_shared_memory),
	EP_TEST(test_vectors),
	EP_TEST(test_bad_calls),
	EP_TEST(test_bad_accesses),
	EP_TEST(test_atomics_stay_in_order),
	EP_TEST(test_remote_counters),
)
