/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_data.c - RMA writes with remote CQ data: the fields of the target's
 * entry and the time at which it is written.
 *
 * Also writes and atomics whose buffers may be reused when the call returns, by
 * a flag of the call (FI_INJECT) or of the endpoint.
 */
#include "lib/ep_xfer.h"
#include "lib/os_pair.h"
#include "unm_env.h"

#define ROOM	((size_t)256 << 10)
#define INJECT	4096			/* inject_size */
#define ENTRY	(FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA)

static const struct ep_want any;

/* ---- Entries at the target ----------------------------------------------- */

enum call { WRITEDATA, INJECTDATA, WRITEMSG, WRITEMSG_INJECT, PIECES,
	    PIECES_INJECT, CALLS };

static bool injects(enum call call)
{
	return call == INJECTDATA || call == WRITEMSG_INJECT ||
		call == PIECES_INJECT;
}

static ssize_t issue(struct os_pair *p, enum call call, const void *buf,
		     size_t len, uint64_t data, void *context)
{
	size_t pieces = call == PIECES || call == PIECES_INJECT ? 3 : 1;
	size_t first = pieces == 3 ? len / 5 : len, next = len - first;
	struct iovec iov[3] = {
		{ (void *)buf, first }, { (char *)buf + first, 0 },
		{ (char *)buf + first, next },
	};
	struct fi_rma_iov remote[3] = {
		{ 16, next, p->key }, { 16 + next, 0, p->key },
		{ 16 + next, first, p->key },
	};
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = pieces, .addr = p->ab,
		.rma_iov = remote, .rma_iov_count = pieces,
		.context = context, .data = data,
	};
	uint64_t flags = FI_COMPLETION | FI_REMOTE_CQ_DATA;
	struct fid_ep *ep = p->a->ep;

	if (pieces == 1)
		remote[0].len = len;
	switch (call) {
	case WRITEDATA:
		return fi_writedata(ep, buf, len, NULL, data, p->ab, 16,
				    p->key, context);
	case INJECTDATA:
		return fi_inject_writedata(ep, buf, len, data, p->ab, 16,
					   p->key);
	default:
		return fi_writemsg(ep, &msg, flags |
				   (injects(call) ? FI_INJECT : 0));
	}
}

/* Read the entry as soon as it is in the queue, and check that the bytes came
 * before it. len counts the bytes written by all requests of the operation. buf
 * is valid for multi-receive buffers only (fi_cq(3)), so it is NULL here. A
 * shorter format is a prefix of the longer ones. */
static void entry(struct os_pair *p, size_t len, uint64_t seed, fi_addr_t from)
{
	enum fi_cq_format format = p->b->want.format;
	struct fi_cq_tagged_entry c;
	fi_addr_t src = 99;

	memset(&c, 0xEE, sizeof(c));
	for (uint64_t end = ep_deadline();
	     fi_cq_readfrom(p->b->cq, &c, 1, &src) != 1; ) {
		ep_poll(p->a);
		ep_in_time(end, "an entry");
	}
	assert_true(xfer_filled(p->mem + 16, len, seed, 0));
	assert_null(c.op_context);
	assert_true(src == from);
	if (format != FI_CQ_FORMAT_CONTEXT) {
		assert_int_equal(c.flags, ENTRY);
		assert_int_equal(c.len, len);
	}
	if (format == FI_CQ_FORMAT_DATA || format == FI_CQ_FORMAT_UNSPEC) {
		assert_int_equal(c.data, ~seed);
		assert_null(c.buf);
	}
	if (format == FI_CQ_FORMAT_UNSPEC)	/* ep_open() replaces it by
						 * tagged */
		assert_int_equal(c.tag, 0);
}

static void one(struct os_pair *p, enum call call, size_t len, fi_addr_t from)
{
	uint64_t seed = len * 8 + call;
	uint8_t *buf = malloc(len + 1);
	struct ep_comp c;

	memset(p->mem, 0, p->len);
	xfer_fill(buf, len, seed, 0);
	p->b->want.disabled = true;	/* the test reads before any poll of
					 * b */
	EP_OK(issue(p, call, buf, len, ~seed, buf));
	if (injects(call))
		memset(buf, 0xEE, len);
	entry(p, len, seed, from);
	p->b->want.disabled = false;
	if (call != INJECTDATA) {
		c = ep_wait(p->a, buf);
		assert_int_equal(c.err, 0);
		assert_int_equal(c.flags, FI_RMA | FI_WRITE);
	}
	ep_quiet(p->a);
	ep_quiet(p->b);
	free(buf);
}

static void every_call(struct os_pair *p, fi_addr_t from)
{
	/* up to 70,000 bytes: several requests */
	static const size_t lens[] = { 0, 1, 8, 40, 57, INJECT, 16384, 70000 };

	for (int call = 0; call < CALLS; call++)
		for (int i = 0; i < 8; i++)
			if (!injects(call) || lens[i] <= INJECT)
				one(p, call, lens[i], from);
	os_close(p);
}

/* In every format of the queue, also if sends have another queue, and if
 * entries of local operations are written on request only. */
static void test_entries(void **state)
{
	static const struct ep_want wants[] = {
		{ .format = FI_CQ_FORMAT_UNSPEC },
		{ .format = FI_CQ_FORMAT_CONTEXT },
		{ .format = FI_CQ_FORMAT_MSG },
		{ .format = FI_CQ_FORMAT_DATA },
		{ .two_cqs = true },
		{ .cq_flags = FI_SELECTIVE_COMPLETION },
	};

	for (int way = 0; way < OS_WAYS; way++)
		for (int i = 0; i < 6; i++) {
			struct os_pair p;

			if (!os_runs(way))
				continue;
			p = os_open_as(way, ROOM, &any, &wants[i]);
			every_call(&p, p.ba);
		}
}

/* From a peer that is not in the target's address vector. */
static void test_entries_of_unresolved_peers(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, ROOM);

	assert_int_equal(fi_av_remove(p.b->av, &p.ba, 1, 0), 0);
	every_call(&p, FI_ADDR_NOTAVAIL);
}

/* All 64 bits arrive, and as many entries as there were writes. */
static void test_data_is_passed_whole(void **state)
{
	for (int way = 0; way < OS_WAYS; way++) {
		uint64_t all = 0;
		struct os_pair p;

		if (!os_runs(way))
			continue;
		p = os_open(way, ROOM);
		for (int i = 0; i < 64; i++)
			EP_OK(fi_inject_writedata(p.a->ep, &i, sizeof(i),
						  UINT64_C(1) << i, p.ab,
						  sizeof(i) * i, p.key));
		for (int i = 0; i < 64; i++) {
			struct ep_comp c = ep_next(p.b);
			int bit = __builtin_ctzll(c.data);

			assert_true(c.data == UINT64_C(1) << bit);
			assert_false(all & c.data);
			all |= c.data;
			assert_memory_equal(p.mem + sizeof(i) * bit, &bit,
					    sizeof(i));
		}
		ep_quiet(p.b);
		os_close(&p);
	}
}

/* A refused write reports no remote CQ data to the target. */
static void test_refused_ones_notify_nothing(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, ROOM);
	struct fi_context2 ctx;

	EP_OK(fi_writedata(p.a->ep, "abc", 3, NULL, 7, p.ab, ROOM - 1, p.key,
			   &ctx));
	assert_int_equal(ep_wait(p.a, &ctx).err, FI_EINVAL);
	EP_OK(fi_inject_writedata(p.a->ep, "abc", 3, 7, p.ab, 0, p.key + 1));
	EP_UNTIL(fi_cntr_readerr(p.wr) == 2);
	ep_quiet(p.b);
	os_close(&p);
}

/* Without a queue at the target it is a write like any other. */
static void test_target_without_a_queue(void **state)
{
	const struct ep_want want = { .no_rxcq = true, .cntrs = true };
	struct os_pair p = os_open_as(OS_REQUESTS, ROOM, &any, &want);
	struct fi_context2 ctx;

	EP_OK(fi_writedata(p.a->ep, "abc", 3, NULL, 7, p.ab, 0, p.key, &ctx));
	assert_int_equal(ep_wait(p.a, &ctx).err, 0);
	assert_memory_equal(p.mem, "abc", 3);
	ep_quiet(p.b);
	os_close(&p);
}

/* ---- Buffers that may be reused at once ---------------------------------- */

/* One of several calls whose buffer may be reused when it returns: by a flag of
 * the call or of the endpoint. */
static ssize_t inject(struct os_pair *p, int call, bool flag, void *buf,
		      size_t len, uint64_t at, void *context)
{
	struct iovec iov[2] = {
		{ buf, len / 2 }, { (char *)buf + len / 2, len - len / 2 },
	};
	struct fi_rma_iov remote[2] = {
		{ at, len / 3, p->key },
		{ at + len / 3, len - len / 3, p->key },
	};
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = 2, .addr = p->ab,
		.rma_iov = remote, .rma_iov_count = 2, .context = context,
	};
	struct fi_ioc ioc = { buf, len };
	struct fi_rma_ioc words = { at, len, p->key };
	struct fi_msg_atomic atomic = {
		.msg_iov = &ioc, .iov_count = 1, .addr = p->ab,
		.rma_iov = &words, .rma_iov_count = 1, .context = context,
		.datatype = FI_UINT8, .op = FI_ATOMIC_WRITE,
	};
	struct fid_ep *ep = p->a->ep;

	switch (call) {
	case 0:
		return flag ? fi_writemsg(ep, &msg, FI_INJECT | FI_COMPLETION)
			: fi_writev(ep, iov, NULL, 2, p->ab, at, p->key,
				    context);
	case 1:
		return flag ? fi_writemsg(ep, &msg, FI_INJECT | FI_COMPLETION |
					  FI_REMOTE_CQ_DATA)
			: fi_writedata(ep, buf, len, NULL, 0, p->ab, at,
				       p->key, context);
	case 2:
		return flag ? fi_atomicmsg(ep, &atomic, FI_INJECT |
					   FI_COMPLETION)
			: fi_atomic(ep, buf, len, NULL, p->ab, at, p->key,
				    FI_UINT8, FI_ATOMIC_WRITE, context);
	default:
		return flag ? fi_inject_write(ep, buf, len, p->ab, at, p->key)
			: fi_write(ep, buf, len, NULL, p->ab, at, p->key,
				   context);
	}
}

#define MANY	50

/* More operations than are sent at once, from one buffer that is changed after
 * each call. The target does not poll before a call is refused. */
static void many(struct os_pair *p, int call, bool flag, size_t len)
{
	uint64_t kind = (call == 2 ? FI_ATOMIC : FI_RMA) | FI_WRITE;
	bool reported = call != 3 || !flag;
	struct fi_context2 ctx[MANY];
	uint8_t *buf = malloc(len + 1);

	memset(p->mem, 0, p->len);
	for (int i = 0; i < MANY; i++) {
		xfer_fill(buf, len, i, 0);
		EP_OK(inject(p, call, flag, buf, len, i * (len + 1), &ctx[i]));
		memset(buf, 0xEE, len);
	}
	for (int i = 0; reported && i < MANY; i++) {
		struct ep_comp c = ep_wait(p->a, &ctx[i]);

		assert_int_equal(c.err, 0);
		assert_int_equal(c.flags, kind);
	}
	p->nwr += MANY;
	os_all_done(p);
	for (int i = 0; i < MANY; i++) {
		assert_true(xfer_filled(p->mem + i * (len + 1), len, i, 0));
		assert_int_equal(p->mem[i * (len + 1) + len], 0);
	}
	if (call == 1)
		for (int i = 0; i < MANY; i++)
			assert_int_equal(ep_next(p->b).flags, ENTRY);
	ep_quiet(p->a);
	ep_quiet(p->b);
	free(buf);
}

static void free_at_once(enum os_way way, bool flag)
{
	static const size_t lens[] = { 1, 8, 57, 1000, INJECT };
	const struct ep_want want = { .tx_op_flags = flag ? 0 : FI_INJECT };
	struct os_pair p;
	uint8_t *big;

	if (!os_runs(way))
		return;
	p = os_open_as(way, ROOM, &want, &any);
	for (int call = 0; call < 4; call++)
		for (int i = 0; i < 5; i++)
			many(&p, call, flag, lens[i]);
	/* longer than inject_size: refused, and nothing is sent */
	big = calloc(1, INJECT + 1);
	memset(p.mem, 1, ROOM);
	for (int call = 0; call < 4; call++)
		assert_int_equal(inject(&p, call, flag, big, INJECT + 1, 0,
					NULL), -FI_EMSGSIZE);
	ep_quiet(p.a);
	for (size_t i = 0; i < ROOM; i++)
		assert_int_equal(p.mem[i], 1);
	free(big);
	os_close(&p);
}

static void test_by_the_flag_of_a_call(void **state)
{
	for (int way = 0; way < OS_WAYS; way++)
		free_at_once(way, true);
}

static void test_by_the_flag_of_the_endpoint(void **state)
{
	for (int way = 0; way < OS_WAYS; way++)
		free_at_once(way, false);
}

/* ---- Atomics with operands that may be reused at once -------------------- */

enum fetch { FETCH, FETCH_PIECES, COMPARE, COMPARE_PIECES, FETCHES };

struct operands {
	uint8_t *src, *cmp;		/* may be reused at once */
	uint8_t *result;		/* written on completion */
	size_t len;
};

/*
 * With FI_INJECT of the call, also for several ranges; or without flags, with
 * that of the endpoint. FETCH writes src, COMPARE writes src where memory
 * equals cmp.
 */
static ssize_t fetch(struct os_pair *p, enum fetch call, bool flag,
		     const struct operands *o, uint64_t at, void *context)
{
	size_t half = call & 1 ? o->len / 2 : o->len, rest = o->len - half;
	size_t n = 1 + (call & 1), ranges = 1 + 2 * (call & 1);
	struct fi_ioc src[2] = { { o->src, half }, { o->src + half, rest } };
	struct fi_ioc cmp[2] = { { o->cmp, rest }, { o->cmp + rest, half } };
	struct fi_ioc res[2] = { { o->result, half },
				 { o->result + half, rest } };
	/* three requests, so that credits may end within an operation */
	struct fi_rma_ioc to[3] = { { at, half, p->key },
				    { at + half, 1, p->key },
				    { at + half + 1, rest - 1, p->key } };
	struct fi_msg_atomic msg = {
		.msg_iov = src, .iov_count = n, .addr = p->ab, .rma_iov = to,
		.rma_iov_count = ranges, .datatype = FI_UINT8,
		.op = call < COMPARE ? FI_ATOMIC_WRITE : FI_CSWAP,
		.context = context,
	};
	struct fid_ep *ep = p->a->ep;

	if (n == 1)
		cmp[0].count = o->len;
	if (flag && call < COMPARE)
		return fi_fetch_atomicmsg(ep, &msg, res, NULL, n, FI_INJECT |
					  FI_COMPLETION);
	if (flag)
		return fi_compare_atomicmsg(ep, &msg, cmp, NULL, n, res, NULL,
					    n, FI_INJECT | FI_COMPLETION);
	if (call < COMPARE)
		return fi_fetch_atomicv(ep, src, NULL, n, res, NULL, n, p->ab,
					at, p->key, FI_UINT8, msg.op, context);
	return fi_compare_atomicv(ep, src, NULL, n, cmp, NULL, n, res, NULL, n,
				  p->ab, at, p->key, FI_UINT8, msg.op,
				  context);
}

/* Many operations, most of which are under way when their operands are
 * overwritten. */
static void many_fetches(struct os_pair *p, enum fetch call, bool flag,
			 size_t len)
{
	struct fi_context2 ctx[MANY];
	uint8_t *results = malloc(MANY * len);
	struct operands o = { malloc(len), malloc(len), NULL, len };

	memset(p->mem, 0x55, p->len);
	memset(results, 0xDD, MANY * len);
	for (int i = 0; i < MANY; i++) {
		xfer_fill(o.src, len, i, 0);
		/* a value of its own for each operation */
		memset(p->mem + i * (len + 1), i, len);
		memset(o.cmp, i, len);
		o.result = results + i * len;
		EP_OK(fetch(p, call, flag, &o, i * (len + 1), &ctx[i]));
		memset(o.src, 0xEE, len);
		memset(o.cmp, 0xEE, len);
	}
	for (int i = 0; i < MANY; i++) {
		struct ep_comp c = ep_wait(p->a, &ctx[i]);

		assert_int_equal(c.err, 0);
		assert_int_equal(c.flags, FI_ATOMIC | FI_READ);
		for (size_t k = 0; k < len; k++)
			assert_int_equal(results[i * len + k], i);
		assert_true(xfer_filled(p->mem + i * (len + 1), len, i, 0));
		assert_int_equal(p->mem[i * (len + 1) + len], 0x55);
	}
	ep_quiet(p->a);
	free(results);
	free(o.src);
	free(o.cmp);
}

/* Fetching atomics longer than inject_size are refused and nothing is sent.
 * FI_ATOMIC_READ has no operands, so it has no limit. */
static void longer_fetches(struct os_pair *p, bool flag)
{
	struct operands o = { calloc(1, ROOM), calloc(1, ROOM),
			      calloc(1, ROOM), INJECT + 1 };
	struct fi_ioc res = { o.result, ROOM };
	struct fi_rma_ioc to = { 0, ROOM, p->key };
	struct fi_msg_atomic msg = {
		.addr = p->ab, .rma_iov = &to, .rma_iov_count = 1,
		.datatype = FI_UINT8, .op = FI_ATOMIC_READ, .context = &o,
	};

	memset(p->mem, 1, ROOM);
	memset(o.cmp, 1, ROOM);
	for (int call = 0; call < FETCHES; call++)
		assert_int_equal(fetch(p, call, flag, &o, 0, NULL),
				 -FI_EMSGSIZE);
	ep_quiet(p->a);
	for (size_t i = 0; i < ROOM; i++)
		assert_true(p->mem[i] == 1 && o.result[i] == 0);
	EP_OK(fi_fetch_atomicmsg(p->a->ep, &msg, &res, NULL, 1, FI_INJECT |
				 FI_COMPLETION));
	assert_int_equal(ep_wait(p->a, &o).err, 0);
	assert_memory_equal(o.result, p->mem, ROOM);
	free(o.src);
	free(o.cmp);
	free(o.result);
}

/* Operands and compare values may be overwritten when the call returns; the
 * result buffer is written later. */
static void test_operands_of_fetches_are_free_at_once(void **state)
{
	static const size_t lens[] = { 4, 8, 19, 57, 1000, 2048, INJECT };

	for (int n = 0; n < 2 * OS_WAYS; n++) {
		enum os_way way = n / 2;
		bool flag = n & 1;
		const struct ep_want want = {
			.tx_op_flags = flag ? 0 : FI_INJECT,
		};
		struct os_pair p;
		uint64_t direct;

		if (!os_runs(way))
			continue;
		p = os_open_as(way, ROOM, &want, &any);
		direct = os_direct(&p);
		for (int call = 0; call < FETCHES; call++)
			for (int i = 0; i < 7; i++)
				many_fetches(&p, call, flag, lens[i]);
		assert_int_equal(os_direct(&p) != direct, os_window(way));
		longer_fetches(&p, flag);
		os_close(&p);
	}
}

/* ---- ... and exceptions -------------------------------------------------- */

/* FI_INJECT of the endpoint does not apply to reads, which have no operand, nor
 * to calls with flags. */
static void test_what_the_endpoint_s_flag_is_not_for(void **state)
{
	const struct ep_want want = { .tx_op_flags = FI_INJECT };

	for (int way = 0; way < OS_WAYS; way++) {
		uint8_t *out = malloc(70000), *in = calloc(1, 70000);
		struct iovec iov = { out, 70000 };
		struct fi_rma_iov remote = { 5, 70000, 0 };
		struct fi_msg_rma msg = {
			.msg_iov = &iov, .iov_count = 1, .rma_iov = &remote,
			.rma_iov_count = 1, .context = out,
		};
		uint64_t one = 1, was = 0;
		struct os_pair p;

		if (os_runs(way)) {
			p = os_open_as(way, ROOM, &want, &any);
			msg.addr = p.ab;
			remote.key = p.key;
			xfer_fill(out, 70000, 1, 0);
			EP_OK(fi_writemsg(p.a->ep, &msg, 0));
			assert_int_equal(ep_wait(p.a, out).err, 0);
			assert_memory_equal(p.mem + 5, out, 70000);
			EP_OK(fi_read(p.a->ep, in, 70000, NULL, p.ab, 5, p.key,
				      in));
			assert_int_equal(ep_wait(p.a, in).err, 0);
			assert_memory_equal(in, out, 70000);
			memset(p.mem + 8, 0, 8);
			EP_OK(fi_fetch_atomic(p.a->ep, &one, 1, NULL, &was,
					      NULL, p.ab, 8, p.key, FI_UINT64,
					      FI_SUM, &was));
			assert_int_equal(ep_wait(p.a, &was).err, 0);
			assert_int_equal(was, 0);
			assert_int_equal(p.mem[8], 1);
			os_close(&p);
		}
		free(in);
		free(out);
	}
}

UNIT_MAIN(
	EP_TEST(test_entries),
	EP_TEST(test_entries_of_unresolved_peers),
	EP_TEST(test_data_is_passed_whole),
	EP_TEST(test_refused_ones_notify_nothing),
	EP_TEST(test_target_without_a_queue),
	EP_TEST(test_by_the_flag_of_a_call),
	EP_TEST(test_by_the_flag_of_the_endpoint),
	EP_TEST(test_operands_of_fetches_are_free_at_once),
	EP_TEST(test_what_the_endpoint_s_flag_is_not_for),
)
