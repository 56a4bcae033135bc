/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rma.c - fi_rma(3): every call, length and data path; completions,
 * counters and refusals. The results are the same by requests, by cross-memory
 * attach and through dmable memory.
 */
#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_stats.h"
#include "lib/ep_xfer.h"
#include "lib/os_pair.h"
#include "unm_env.h"

#define ROOM	((size_t)6 << 20)

static const size_t lengths[] = {
	0, 1, 7, 8, 9, 39, 40, 41, 56, 57, 255, 4096, 16319, 16320, 16321,
	16384, 65536, (256 << 10) - 1, 256 << 10, (256 << 10) + 1, 1 << 20,
	(5 << 20) + 3,
};
#define NLENGTHS	(sizeof(lengths) / sizeof(lengths[0]))

enum call { WRITE, WRITEV, WRITEMSG, INJECT, WRITEDATA, INJECTDATA,
	    WRITEMSG_DATA, READ, READV, READMSG, CALLS };

static bool injects(enum call call)
{
	return call == INJECT || call == INJECTDATA;
}

static bool reads(enum call call)
{
	return call >= READ;
}

static bool has_data(enum call call)
{
	return call >= WRITEDATA && call <= WRITEMSG_DATA;
}

#define DATA	UINT64_C(0x1122334455667788)

/* Cuts len bytes into pieces: 3, half of the rest, the rest. */
static size_t cut(struct iovec *iov, uint8_t *buf, size_t len)
{
	size_t first = len < 3 ? len : 3, second = (len - first) / 2;

	iov[0] = (struct iovec){ buf, first };
	iov[1] = (struct iovec){ buf + first, second };
	iov[2] = (struct iovec){ buf + first + second, len - first - second };
	return 3;
}

static ssize_t issue(struct os_pair *p, enum call call, uint8_t *buf,
		     size_t len, uint64_t addr, void *context)
{
	struct iovec iov[3];
	struct fi_rma_iov remote[2] = {
		{ addr, len / 3, p->key },
		{ addr + len / 3, len - len / 3, p->key },
	};
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = cut(iov, buf, len),
		.addr = p->ab, .rma_iov = remote, .rma_iov_count = 2,
		.context = context, .data = DATA,
	};
	struct fid_ep *ep = p->a->ep;

	switch (call) {
	case WRITE:
		return fi_write(ep, buf, len, NULL, p->ab, addr, p->key,
				context);
	case WRITEV:
		return fi_writev(ep, iov, NULL, 3, p->ab, addr, p->key,
				 context);
	case WRITEMSG:
		return fi_writemsg(ep, &msg, FI_COMPLETION |
				   FI_DELIVERY_COMPLETE);
	case INJECT:
		return fi_inject_write(ep, buf, len, p->ab, addr, p->key);
	case WRITEDATA:
		return fi_writedata(ep, buf, len, NULL, DATA, p->ab, addr,
				    p->key, context);
	case INJECTDATA:
		return fi_inject_writedata(ep, buf, len, DATA, p->ab, addr,
					   p->key);
	case WRITEMSG_DATA:
		return fi_writemsg(ep, &msg, FI_COMPLETION |
				   FI_REMOTE_CQ_DATA);
	case READ:
		return fi_read(ep, buf, len, NULL, p->ab, addr, p->key,
			       context);
	case READV:
		return fi_readv(ep, iov, NULL, 3, p->ab, addr, p->key,
				context);
	default:
		return fi_readmsg(ep, &msg, FI_COMPLETION);
	}
}

/* One operation; checks every byte around its buffers. */
static void one(struct os_pair *p, enum call call, size_t len, size_t at)
{
	uint8_t *buf = malloc(len + 64);
	uint8_t *in = reads(call) ? buf + 32 : p->mem + at;
	uint8_t *out = reads(call) ? p->mem + at : buf + 32;
	uint64_t seed = len * 31 + call;
	struct ep_comp c;

	memset(buf, 0xEE, len + 64);
	memset(p->mem, 0xEE, p->len);
	xfer_fill(out, len, seed, 0);
	EP_OK(issue(p, call, buf + 32, len, at, buf));
	if (injects(call))
		memset(buf + 32, 0xEE, len);
	*(reads(call) ? &p->nrd : &p->nwr) += 1;
	if (!injects(call)) {
		c = ep_wait(p->a, buf);
		assert_int_equal(c.err, 0);
		assert_int_equal(c.flags, FI_RMA | (reads(call) ? FI_READ :
						    FI_WRITE));
	}
	if (has_data(call)) {
		c = ep_next(p->b);
		assert_int_equal(c.err, 0);
		assert_int_equal(c.flags, FI_RMA | FI_REMOTE_WRITE |
				 FI_REMOTE_CQ_DATA);
		assert_int_equal(c.data, DATA);
		assert_int_equal(c.src, p->ba);
	}
	os_all_done(p);
	assert_true(xfer_filled(in, len, seed, 0));
	assert_true(in[-1] == 0xEE && in[len] == 0xEE);
	free(buf);
}

static void every_call(enum os_way way)
{
	struct os_pair p;

	unit_needs(os_goes(way));
	p = os_open(way, ROOM);
	for (int call = 0; call < CALLS; call++)
		for (size_t i = 0; i < NLENGTHS; i++)
			if (!injects(call) || lengths[i] <= 4096)
				one(&p, call, lengths[i], 64 + i);
	ep_quiet(p.a);
	ep_quiet(p.b);
	if (way == OS_REQUESTS)
		assert_int_equal(os_direct(&p), 0);
	else
		assert_true(os_direct(&p) >= 2 * (NLENGTHS - 1));
	os_close(&p);
}

static void test_every_call_by_requests(void **state)
{
	every_call(OS_REQUESTS);
}

static void test_every_call_by_attach(void **state)
{
	every_call(OS_ATTACH);
}

static void test_every_call_through_dmable_memory(void **state)
{
	every_call(OS_DMABLE);
}

static void test_every_call_through_shared_memory(void **state)
{
	every_call(OS_SHARED);
}

/* Also from dmable memory, for engines that access no other memory. */
static void test_from_dmable_to_dmable_memory(void **state)
{
	struct os_pair p = os_open(OS_DMABLE, ROOM);
	uint64_t direct;
	uint8_t *buf = os_alloc(p.a, OS_DMABLE, ROOM);

	direct = os_direct(&p);
	for (size_t i = 0; i < NLENGTHS; i++) {
		size_t len = lengths[i];

		xfer_fill(buf, len, i, 0);
		EP_OK(fi_write(p.a->ep, buf, len, NULL, p.ab, i, p.key, buf));
		assert_int_equal(ep_wait(p.a, buf).err, 0);
		assert_true(xfer_filled(p.mem + i, len, i, 0));
		memset(buf, 0, len);
		EP_OK(fi_read(p.a->ep, buf, len, NULL, p.ab, i, p.key, buf));
		assert_int_equal(ep_wait(p.a, buf).err, 0);
		assert_true(xfer_filled(buf, len, i, 0));
	}
	assert_true(os_direct(&p) >= direct + 2 * (NLENGTHS - 1));
	os_free(p.a, OS_DMABLE, buf);
	os_close(&p);
}

/* ---- Refusals -------------------------------------------------------- */

struct bad {
	uint64_t addr;
	size_t len;
	bool read;
	uint64_t access;		/* rights of the region */
	uint64_t key;			/* difference from the right key */
	int err;
};

static void refused(enum os_way way, size_t len, const struct bad *t)
{
	struct os_pair p = os_open(way, len);
	uint8_t *buf = calloc(1, t->len + 1);

	assert_int_equal(fi_close(&p.mr->fid), 0);
	p.mr = os_reg(p.b, p.mem, len, t->access, p.key);
	memset(p.mem, 0x11, len);
	memset(buf, 0x22, t->len + 1);
	for (int i = 0; i < 3; i++) {	/* with and without a cached remote
					 * key */
		struct ep_comp c;

		if (t->read)
			EP_OK(fi_read(p.a->ep, buf, t->len, NULL, p.ab,
				      t->addr, p.key + t->key, buf));
		else
			EP_OK(fi_write(p.a->ep, buf, t->len, NULL, p.ab,
				       t->addr, p.key + t->key, buf));
		c = ep_wait(p.a, buf);
		assert_int_equal(c.err, t->err);
		assert_int_equal(c.flags, FI_RMA | (t->read ? FI_READ :
						    FI_WRITE));
		ep_settle();
	}
	for (size_t i = 0; i < len; i++)
		assert_int_equal(p.mem[i], 0x11);
	for (size_t i = 0; i <= t->len; i++)
		assert_int_equal(buf[i], 0x22);
	assert_int_equal(fi_cntr_readerr(t->read ? p.rd : p.wr), 3);
	free(buf);
	os_close(&p);
}

/* Wrong rights and bounds: no byte is changed, however long the operation. */
static void test_bad_accesses(void **state)
{
	const uint64_t all = FI_REMOTE_READ | FI_REMOTE_WRITE;
	const struct bad t[] = {
		{ 0, 8, false, FI_REMOTE_READ, 0, FI_EACCES },
		{ 0, 8, true, FI_REMOTE_WRITE, 0, FI_EACCES },
		{ 0, 100000, false, FI_REMOTE_READ, 0, FI_EACCES },
		{ 0, 100001, false, all, 0, FI_EINVAL },
		{ 0, 100001, true, all, 0, FI_EINVAL },
		{ 99993, 8, false, all, 0, FI_EINVAL },
		{ 99993, 8, true, all, 0, FI_EINVAL },
		{ 100001, 0, false, all, 0, FI_EINVAL },
		{ UINT64_MAX, 8, false, all, 0, FI_EINVAL },
		{ UINT64_MAX - 3, 8, true, all, 0, FI_EINVAL },
		{ 0, 8, false, all, 1, FI_EKEYREJECTED },
		{ 0, 8, true, all, 1, FI_EKEYREJECTED },
	};

	for (int way = 0; way < OS_WAYS; way++)
		for (size_t i = 0; i < sizeof(t) / sizeof(t[0]); i++)
			if (os_runs(way))
				refused(way, 100000, &t[i]);
}

/* A valid operation between wrong ones: each gets its own result, in order. */
static void test_answers_are_not_mixed_up(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, 4096);
	uint64_t v[300];
	struct fi_context2 ctx[300];

	for (int i = 0; i < 300; i++) {
		bool bad = i % 7 == 3;

		v[i] = i;
		EP_OK(fi_write(p.a->ep, &v[i], 8, NULL, p.ab,
			       bad ? 4090 : 8 * i, p.key, &ctx[i]));
	}
	for (int i = 0; i < 300; i++) {
		struct ep_comp c = ep_next(p.a);

		assert_ptr_equal(c.context, &ctx[i]);
		assert_int_equal(c.err, i % 7 == 3 ? FI_EINVAL : 0);
		if (c.err == 0)
			assert_memory_equal(p.mem + 8 * i, &v[i], 8);
	}
	os_close(&p);
}

/* ---- Wrong arguments ------------------------------------------------- */

static void test_bad_calls(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, 4096);
	uint8_t buf[64] = { 0 };
	struct iovec iov[9] = { { buf, 64 } };
	struct fi_rma_iov remote[9] = { { 0, 64, 0 } };
	struct fi_msg_rma msg = {
		.msg_iov = iov, .iov_count = 1, .addr = p.ab,
		.rma_iov = remote, .rma_iov_count = 1,
	};
	struct fid_ep *ep = p.a->ep;
	static char big[5000];

	remote[0].key = p.key;
	assert_int_equal(fi_writemsg(ep, &msg, FI_PEEK), -FI_EBADFLAGS);
	assert_int_equal(fi_readmsg(ep, &msg, FI_REMOTE_CQ_DATA),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_readmsg(ep, &msg, FI_INJECT), -FI_EBADFLAGS);
	msg.iov_count = 9;
	assert_int_equal(fi_writemsg(ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_writev(ep, iov, NULL, 9, p.ab, 0, p.key, NULL),
			 -FI_EINVAL);
	msg.iov_count = 1;
	msg.rma_iov_count = 9;
	assert_int_equal(fi_writemsg(ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 0;
	assert_int_equal(fi_writemsg(ep, &msg, 0), -FI_EINVAL);
	msg.rma_iov_count = 1;
	remote[0].len = 63;		/* shorter than the local buffer */
	assert_int_equal(fi_writemsg(ep, &msg, 0), -FI_EINVAL);
	assert_int_equal(fi_inject_write(ep, big, 4097, p.ab, 0, p.key),
			 -FI_EMSGSIZE);
	assert_int_equal(fi_write(ep, buf, 8, NULL, 77, 0, p.key, NULL),
			 -FI_EINVAL);
	ep_quiet(p.a);
	os_close(&p);
}

/* ---- Regions --------------------------------------------------------- */

/* A region of several pieces is addressed as one. */
static void test_region_of_pieces(void **state)
{
	struct os_pair p = os_open(OS_ATTACH, 65536);
	struct iovec iov[3] = {
		{ p.mem + 40000, 1000 }, { p.mem + 10, 1 },
		{ p.mem + 20000, 15000 },
	};
	struct fi_mr_attr attr = {
		.mr_iov = iov, .iov_count = 3, .access = OS_ALL,
		.requested_key = 99,
	};
	uint8_t out[16001], in[16001];
	struct fid_mr *mr;

	xfer_fill(out, sizeof(out), 5, 0);
	assert_int_equal(fi_mr_regattr(p.b->domain, &attr, 0, &mr), 0);
	for (int i = 0; i < 2; i++) {
		EP_OK(fi_write(p.a->ep, out, sizeof(out), NULL, p.ab, 0, 99,
			       out));
		assert_int_equal(ep_wait(p.a, out).err, 0);
		assert_true(xfer_filled(p.mem + 40000, 1000, 5, 0));
		assert_true(xfer_filled(p.mem + 10, 1, 5, 1000));
		assert_true(xfer_filled(p.mem + 20000, 15000, 5, 1001));
		memset(in, 0, sizeof(in));
		EP_OK(fi_read(p.a->ep, in, sizeof(in), NULL, p.ab, 0, 99, in));
		assert_int_equal(ep_wait(p.a, in).err, 0);
		assert_memory_equal(in, out, sizeof(in));
		ep_settle();
	}
	assert_int_equal(fi_close(&mr->fid), 0);
	os_close(&p);
}

/* A closed region can not be accessed, although its remote key is cached. The
 * key can be used again for other memory. */
static void closed(enum os_way way)
{
	struct os_pair p = os_open(way, 4096);
	uint8_t *other = os_alloc(p.b, way, 4096);
	uint64_t v = 7;

	for (int i = 0; i < 20; i++) {
		assert_int_equal(fi_close(&p.mr->fid), 0);
		memset(p.mem, 0x33, 4096);
		EP_OK(fi_write(p.a->ep, &v, 8, NULL, p.ab, 0, p.key, &v));
		assert_int_equal(ep_wait(p.a, &v).err, FI_EKEYREJECTED);
		for (int k = 0; k < 4096; k++)
			assert_int_equal(p.mem[k], 0x33);
		p.mr = os_reg(p.b, i & 1 ? p.mem : other, 4096, OS_ALL, p.key);
		for (int k = 0; k < 4; k++) {	/* until it is executed
						 * directly */
			v = 100 * i + k;
			EP_OK(fi_write(p.a->ep, &v, 8, NULL, p.ab, 8, p.key,
				       &v));
			assert_int_equal(ep_wait(p.a, &v).err, 0);
			assert_memory_equal((i & 1 ? p.mem : other) + 8, &v,
					    8);
			ep_settle();
		}
	}
	if (way != OS_REQUESTS)
		assert_true(os_direct(&p) >= 20);
	assert_int_equal(fi_close(&p.mr->fid), 0);
	p.mr = NULL;
	os_free(p.b, way, other);
	os_close(&p);
}

static void test_closed_regions_are_gone(void **state)
{
	for (int way = 0; way < OS_WAYS; way++)
		if (os_runs(way))
			closed(way);
}

/* A read whose data are being sent from a region when it is closed ends in an
 * error. */
static void test_close_ends_reads(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, ROOM);
	uint8_t *in = ep_alloc(ROOM);
	const struct unm_stats *stats = ((struct unm_ep *)p.b->ep)->stats;
	uint64_t end = ep_deadline(), before = stats->rx_requests;

	EP_OK(fi_read(p.a->ep, in, ROOM, NULL, p.ab, 0, p.key, in));
	while (stats->rx_requests == before) {
		ep_poll(p.a);		/* a decorator may hold the packet */
		ep_poll(p.b);
		ep_in_time(end, "the request");
	}
	assert_int_equal(fi_close(&p.mr->fid), 0);
	p.mr = NULL;
	assert_int_equal(ep_wait(p.a, in).err, FI_EKEYREJECTED);
	os_close(&p);
}

/* Operations in steps whose remote keys are revoked continue as requests. */
static void test_close_of_others_stops_nobody(void **state)
{
	for (int way = OS_ATTACH; way < OS_WAYS; way++) {
		uint8_t *in[3], other[2][64];
		uint64_t before;
		struct fid_mr *mr[2];
		struct os_pair p;

		if (!os_runs(way))
			continue;
		/* with a slow engine fi_close() waits for a, which nobody polls
		 * meanwhile */
		if (way == OS_ATTACH && getenv("FI_UNIMEM_FAULT") != NULL) {
			print_message("skip way_%s_attach\n", __func__);
			continue;
		}
		p = os_open(way, ROOM);
		xfer_fill(p.mem, ROOM, 11, 0);
		for (int i = 0; i < 2; i++) {	/* two more cached remote
						 * keys */
			mr[i] = os_reg(p.b, other[i], 64, OS_ALL, 70 + i);
			EP_OK(fi_inject_write(p.a->ep, "x", 1, p.ab, 0,
					      70 + i));
			p.nwr++;
			ep_settle();
		}
		before = os_requests(&p);
		for (int i = 0; i < 3; i++) {
			in[i] = calloc(1, ROOM);
			EP_OK(fi_read(p.a->ep, in[i], ROOM, NULL, p.ab, 0,
				      p.key, in[i]));
			p.nrd++;
		}
		/* after two revocations at once a drops all cached keys, as it
		 * does not know which they are */
		for (int i = 0; i < 2; i++)
			assert_int_equal(fi_close(&mr[i]->fid), 0);
		os_all_done(&p);
		for (int i = 0; i < 3; i++) {
			assert_int_equal(ep_wait(p.a, in[i]).err, 0);
			assert_memory_equal(in[i], p.mem, ROOM);
			free(in[i]);
		}
		assert_int_equal(os_requests(&p), before + 3);
		os_close(&p);
	}
}

/* An endpoint that is closed while it answers a read does not keep the region
 * in use. */
static void test_endpoint_goes_before_its_region(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, ROOM);
	struct ep_want want = { .with = p.b };
	struct ep *other = ep_open(&want);
	uint8_t *in = ep_alloc(ROOM);
	uint64_t end = ep_deadline();
	fi_addr_t ao = ep_insert(p.a, other);

	EP_OK(fi_read(p.a->ep, in, ROOM, NULL, ao, 0, p.key, in));
	while (((struct unm_ep *)other->ep)->stats->rx_requests == 0) {
		ep_poll(p.a);		/* a decorator may hold the packet */
		ep_poll(other);
		ep_in_time(end, "the request");
	}
	ep_close(other);		/* a has not got all bytes */
	assert_int_equal(ep_wait(p.a, in).err, FI_ECONNRESET);
	assert_int_equal(fi_close(&p.mr->fid), 0);
	p.mr = NULL;
	os_close(&p);
}

/* ---- Targets that do not poll ---------------------------------------- */

static void asleep(enum os_way way, size_t len)
{
	struct ep_comp c;
	struct os_pair p;
	uint8_t *out = malloc(len), *in = calloc(1, len);

	p = os_open(way, len);
	xfer_fill(out, len, 3, 0);
	EP_OK(fi_write(p.a->ep, out, len, NULL, p.ab, 0, p.key, out));
	for (uint64_t end = ep_deadline(); !ep_take(p.a, out, &c);) {
		ep_poll(p.a);		/* b is never polled */
		ep_in_time(end, "a direct write");
	}
	assert_true(xfer_filled(p.mem, len, 3, 0));
	EP_OK(fi_read(p.a->ep, in, len, NULL, p.ab, 0, p.key, in));
	for (uint64_t end = ep_deadline(); !ep_take(p.a, in, &c);) {
		ep_poll(p.a);
		ep_in_time(end, "a direct read");
	}
	assert_memory_equal(in, out, len);
	free(in);
	free(out);
	os_close(&p);
}

/* Polls a alone until its operations are done. */
static void alone(struct os_pair *p)
{
	uint64_t end = ep_deadline();

	while (fi_cntr_read(p->wr) < p->nwr || fi_cntr_read(p->rd) < p->nrd)
		ep_in_time(end, "direct operations");
	assert_int_equal(fi_cntr_readerr(p->wr), 0);
	assert_int_equal(fi_cntr_readerr(p->rd), 0);
}

/* Every call with a single range: vectors, injected ones, no bytes. */
static void every_call_asleep(enum os_way way)
{
	struct os_pair p = os_open(way, 8192);
	uint8_t out[4096], in[4096] = { 0 };
	struct iovec iov[3];

	xfer_fill(out, sizeof(out), 9, 0);
	cut(iov, out, sizeof(out));
	EP_OK(fi_writev(p.a->ep, iov, NULL, 3, p.ab, 5, p.key, NULL));
	p.nwr++;
	alone(&p);
	assert_true(xfer_filled(p.mem + 5, sizeof(out), 9, 0));
	cut(iov, in, sizeof(in));
	EP_OK(fi_readv(p.a->ep, iov, NULL, 3, p.ab, 5, p.key, NULL));
	p.nrd++;
	alone(&p);
	assert_memory_equal(in, out, sizeof(in));
	for (size_t len = 0; len <= sizeof(out); len = len ? len * 4 : 1) {
		xfer_fill(out, sizeof(out), len, 0);
		EP_OK(fi_inject_write(p.a->ep, out, len, p.ab, 100, p.key));
		memset(out, 0, sizeof(out));
		p.nwr++;
		alone(&p);
		assert_true(xfer_filled(p.mem + 100, len, len, 0));
	}
	os_close(&p);
}

static void test_direct_ways_need_no_target(void **state)
{
	for (int way = OS_ATTACH; way < OS_WAYS; way++) {
		if (!os_runs(way))
			continue;
		asleep(way, 8);
		asleep(way, 3 << 20);
		every_call_asleep(way);
	}
}

/* ---- Remote counters ------------------------------------------------- */

/* Each operation counts once, however many requests it takes. */
static void test_remote_counters(void **state)
{
	struct ep_want want = { .disabled = true };
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct ep *a = ep_open(NULL), *b = ep_open(&want);
	struct fid_cntr *wr, *rd;
	struct fid_mr *mr;
	uint8_t *mem = ep_alloc(100000), *buf = ep_alloc(100000);
	struct iovec iov = { buf, 60000 };
	struct fi_rma_iov remote[3] = {
		{ 0, 20000, 1 }, { 7, 1, 1 }, { 50000, 39999, 1 },
	};
	struct fi_msg_rma msg = {
		.msg_iov = &iov, .iov_count = 1, .rma_iov = remote,
		.rma_iov_count = 3, .context = buf,
	};
	fi_addr_t ab;

	assert_int_equal(fi_cntr_open(b->domain, &attr, &wr, NULL), 0);
	assert_int_equal(fi_cntr_open(b->domain, &attr, &rd, NULL), 0);
	assert_int_equal(fi_ep_bind(b->ep, &wr->fid, FI_REMOTE_WRITE), 0);
	assert_int_equal(fi_ep_bind(b->ep, &rd->fid, FI_REMOTE_READ), 0);
	assert_int_equal(fi_enable(b->ep), 0);
	b->want.disabled = false;
	msg.addr = ab = ep_insert(a, b);
	mr = os_reg(b, mem, 100000, OS_ALL, 1);
	for (int i = 1; i <= 5; i++) {
		EP_OK(fi_write(a->ep, buf, 100000, NULL, ab, 0, 1, buf));
		assert_int_equal(ep_wait(a, buf).err, 0);
		EP_OK(fi_read(a->ep, buf, 100000, NULL, ab, 0, 1, buf));
		assert_int_equal(ep_wait(a, buf).err, 0);
		EP_OK(fi_writemsg(a->ep, &msg, FI_COMPLETION));
		assert_int_equal(ep_wait(a, buf).err, 0);
		EP_OK(fi_readmsg(a->ep, &msg, FI_COMPLETION));
		assert_int_equal(ep_wait(a, buf).err, 0);
		ep_settle();
		assert_int_equal(fi_cntr_read(wr), 2 * i);
		assert_int_equal(fi_cntr_read(rd), 2 * i);
	}
	EP_CLOSE(&mr->fid, &b->ep->fid);
	b->ep = NULL;
	EP_CLOSE(&wr->fid, &rd->fid);
	ep_close(a);
	ep_close(b);
}

/* ---- The target closes ----------------------------------------------- */

/* When the target closes, operations under way end in an error. */
static void test_target_closes(void **state)
{
	struct os_pair p = os_open(OS_REQUESTS, ROOM);
	uint8_t *buf = ep_alloc(ROOM);
	struct fi_context2 ctx[3];

	EP_OK(fi_write(p.a->ep, buf, ROOM, NULL, p.ab, 0, p.key, &ctx[0]));
	assert_int_equal(fi_close(&p.mr->fid), 0);
	p.mr = NULL;
	assert_int_equal(fi_close(&p.b->ep->fid), 0);
	p.b->ep = NULL;
	assert_int_equal(ep_wait(p.a, &ctx[0]).err, FI_ECONNRESET);
	EP_UNTIL(fi_write(p.a->ep, buf, 8, NULL, p.ab, 0, p.key, &ctx[1]) ==
		 -FI_ECONNRESET);
	os_close(&p);
}

UNIT_MAIN(
	EP_TEST(test_every_call_by_requests),
	EP_TEST(test_every_call_by_attach),
	EP_TEST(test_every_call_through_dmable_memory),
	EP_TEST(test_every_call_through_shared_memory),
	EP_TEST_INSIDE(test_from_dmable_to_dmable_memory),
	EP_TEST(test_bad_accesses),
	EP_TEST(test_answers_are_not_mixed_up),
	EP_TEST(test_bad_calls),
	EP_TEST(test_region_of_pieces),
	EP_TEST(test_closed_regions_are_gone),
	EP_TEST(test_close_ends_reads),
	EP_TEST(test_close_of_others_stops_nobody),
	EP_TEST(test_endpoint_goes_before_its_region),
	EP_TEST(test_direct_ways_need_no_target),
	EP_TEST(test_remote_counters),
	EP_TEST(test_target_closes),
)
