/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_alias.c - fi_ep_alias(): a second handle of an endpoint with other
 * default flags.
 *
 * Aliases with FI_TRIGGER are in test_trigger.c.
 */
#include <rdma/fi_atomic.h>
#include <rdma/fi_rma.h>

#include "lib/ep_pair.h"

#define KEY	0x77

static void test_alias_refusals(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct fid_ep *alias = NULL;

	assert_int_equal(fi_ep_alias(p.a->ep, &alias, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_alias(p.a->ep, &alias, FI_TRANSMIT | FI_RECV),
			 -FI_EINVAL);
	assert_int_equal(fi_ep_alias(p.a->ep, &alias, FI_TRANSMIT | FI_PEEK),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_ep_alias(p.a->ep, &alias, FI_RECV | FI_INJECT),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_ep_alias(p.a->ep, &alias, FI_TRANSMIT), 0);
	assert_int_equal(fi_close(&p.a->ep->fid), -FI_EBUSY);
	assert_int_equal(fi_ep_bind(alias, &p.a->av->fid, 0), -FI_ENOSYS);
	assert_int_equal(fi_enable(alias), -FI_ENOSYS);
	assert_int_equal(fi_close(&alias->fid), 0);
}

/* Every message call through aliases whose default flags ask for no entries. */
static void test_alias_carries_messages(void **state)
{
	struct ep_want want = { .cq_flags = FI_SELECTIVE_COMPLETION,
				.tx_op_flags = FI_COMPLETION,
				.rx_op_flags = FI_COMPLETION, .cntrs = true };
	struct ep_pair p = ep_pair(&want);
	struct fid_ep *tx = NULL, *rx = NULL;
	char out = 4, in = 0, name[64], own[64];
	size_t len = 64, own_len = 64;
	struct iovec o = { &out, 1 }, i = { &in, 1 };

	assert_int_equal(fi_ep_alias(p.a->ep, &tx, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_alias(p.b->ep, &rx, FI_RECV), 0);
	assert_int_equal(fi_getname(&tx->fid, name, &len), 0);
	assert_int_equal(fi_getname(&p.a->ep->fid, own, &own_len), 0);
	assert_int_equal(len, own_len);
	assert_memory_equal(name, own, len);
	EP_OK(fi_recv(rx, &in, 1, NULL, FI_ADDR_UNSPEC, NULL));
	EP_OK(fi_recvv(rx, &i, NULL, 1, FI_ADDR_UNSPEC, NULL));
	for (int n = 0; n < 3; n++)
		EP_OK(fi_recv(rx, &in, 1, NULL, FI_ADDR_UNSPEC, NULL));
	EP_OK(fi_trecv(rx, &in, 1, NULL, p.ba, 1, 0, NULL));
	EP_OK(fi_trecvv(rx, &i, NULL, 1, p.ba, 1, 0, NULL));
	for (int n = 0; n < 3; n++)
		EP_OK(fi_trecv(rx, &in, 1, NULL, p.ba, 1, 0, NULL));
	EP_OK(fi_send(tx, &out, 1, NULL, p.ab, NULL));
	EP_OK(fi_sendv(tx, &o, NULL, 1, p.ab, NULL));
	EP_OK(fi_senddata(tx, &out, 1, NULL, 8, p.ab, NULL));
	EP_OK(fi_inject(tx, &out, 1, p.ab));
	EP_OK(fi_injectdata(tx, &out, 1, 8, p.ab));
	EP_OK(fi_tsend(tx, &out, 1, NULL, p.ab, 1, NULL));
	EP_OK(fi_tsendv(tx, &o, NULL, 1, p.ab, 1, NULL));
	EP_OK(fi_tsenddata(tx, &out, 1, NULL, 8, p.ab, 1, NULL));
	EP_OK(fi_tinject(tx, &out, 1, p.ab, 1));
	EP_OK(fi_tinjectdata(tx, &out, 1, 8, p.ab, 1));
	EP_UNTIL(fi_cntr_read(p.b->rxcntr) == 10);
	ep_pair_quiet(&p);
	assert_int_equal(in, 4);
	EP_OK(fi_recv(rx, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	assert_int_equal(fi_cancel(&rx->fid, &in), 0);
	assert_int_equal(ep_wait(p.b, &in).err, FI_ECANCELED);
	EP_CLOSE(&tx->fid, &rx->fid);
}

/* Calls with flags use these, not the defaults of the alias. */
static void test_alias_carries_flags(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct fid_ep *tx = NULL, *rx = NULL;
	char out = 4, in = 0;
	struct iovec o = { &out, 1 }, i = { &in, 1 };
	struct fi_msg smsg = { .msg_iov = &o, .iov_count = 1, .addr = p.ab,
			       .context = &o, .data = 11 };
	struct fi_msg rmsg = { .msg_iov = &i, .iov_count = 1, .addr = p.ba,
			       .context = &i };
	struct fi_msg_tagged st = { .msg_iov = &o, .iov_count = 1,
				    .addr = p.ab, .tag = 7, .context = &o,
				    .data = 12 };
	struct fi_msg_tagged rt = { .msg_iov = &i, .iov_count = 1,
				    .addr = p.ba, .tag = 3, .ignore = 4,
				    .context = &i };

	assert_int_equal(fi_ep_alias(p.a->ep, &tx, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_alias(p.b->ep, &rx, FI_RECV), 0);
	EP_OK(fi_recvmsg(rx, &rmsg, FI_COMPLETION));
	EP_OK(fi_sendmsg(tx, &smsg, FI_COMPLETION | FI_REMOTE_CQ_DATA));
	ep_sent(p.a, &o);
	assert_int_equal(ep_received(p.b, &i).data, 11);
	EP_OK(fi_trecvmsg(rx, &rt, FI_COMPLETION));
	EP_OK(fi_tsendmsg(tx, &st, FI_COMPLETION | FI_REMOTE_CQ_DATA));
	ep_sent(p.a, &o);
	assert_int_equal(ep_received(p.b, &i).data, 12);
	assert_int_equal(in, 4);
	EP_CLOSE(&tx->fid, &rx->fid);
}

/* ---- One-sided ------------------------------------------------------- */

static struct fid_mr *region(struct ep *e, void *mem, size_t len)
{
	struct fid_mr *mr;

	assert_int_equal(fi_mr_reg(e->domain, mem, len, FI_REMOTE_READ |
				   FI_REMOTE_WRITE, 0, KEY, 0, &mr, NULL), 0);
	return mr;
}

static struct fid_ep *alias_of(struct ep *e, uint64_t flags)
{
	struct fid_ep *alias = NULL;

	assert_int_equal(fi_ep_alias(e->ep, &alias, flags), 0);
	return alias;
}

static struct ep_pair selective_pair(void)
{
	struct ep_want want = { .cq_flags = FI_SELECTIVE_COMPLETION };

	return ep_pair(&want);
}

/* Call, and wait for the completion. */
#define DONE(call)	do {						\
		EP_OK(call);						\
		assert_int_equal(ep_wait(p.a, &p).err, 0);		\
	} while (0)

static void test_alias_writes_and_reads(void **state)
{
	struct ep_pair p = selective_pair();
	struct fid_ep *tx = alias_of(p.a, FI_TRANSMIT | FI_COMPLETION);
	struct fid_ep *quiet = alias_of(p.a, FI_TRANSMIT);
	uint64_t mem[10] = { 0 }, v[9], r[4] = { 0 };
	struct fid_mr *mr = region(p.b, mem, sizeof(mem));
	struct iovec two[2] = { { &v[1], 8 }, { &v[2], 8 } };
	struct iovec into[2] = { { &r[2], 8 }, { &r[1], 8 } };
	struct fi_rma_iov remote = { 32, 8, KEY };
	struct fi_msg_rma msg = {
		.msg_iov = &two[1], .iov_count = 1, .addr = p.ab,
		.rma_iov = &remote, .rma_iov_count = 1, .context = &p,
	};

	for (uint64_t i = 0; i < 9; i++)
		v[i] = 100 + i;
	DONE(fi_write(tx, &v[0], 8, NULL, p.ab, 8, KEY, &p));
	DONE(fi_writev(tx, two, NULL, 2, p.ab, 16, KEY, &p));
	DONE(fi_writemsg(tx, &msg, FI_COMPLETION));
	DONE(fi_writedata(tx, &v[5], 8, NULL, 0xD1, p.ab, 48, KEY, &p));
	assert_int_equal(ep_wait(p.b, NULL).data, 0xD1);
	EP_OK(fi_inject_write(tx, &v[4], 8, p.ab, 40, KEY));
	EP_OK(fi_inject_writedata(tx, &v[6], 8, 0xD2, p.ab, 56, KEY));
	assert_int_equal(ep_wait(p.b, NULL).data, 0xD2);
	EP_OK(fi_write(quiet, &v[7], 8, NULL, p.ab, 64, KEY, &p));
	EP_UNTIL(mem[8] == 107);
	ep_pair_quiet(&p);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(mem[1 + i], i == 3 ? 102 : 100 + i);
	assert_int_equal(mem[0] | mem[9], 0);
	DONE(fi_read(tx, &r[0], 8, NULL, p.ab, 8, KEY, &p));
	DONE(fi_readv(tx, into, NULL, 2, p.ab, 48, KEY, &p));
	msg.msg_iov = &(struct iovec){ &r[3], 8 };
	DONE(fi_readmsg(tx, &msg, FI_COMPLETION));
	assert_int_equal(r[0], 100);
	assert_int_equal(r[2], 105);
	assert_int_equal(r[1], 106);
	assert_int_equal(r[3], 102);
	EP_OK(fi_read(quiet, &r[0], 8, NULL, p.ab, 64, KEY, &p));
	EP_UNTIL(r[0] == 107);
	ep_quiet(p.a);
	EP_CLOSE(&mr->fid, &tx->fid, &quiet->fid);
}

#define U64	FI_UINT64

static void test_alias_updates(void **state)
{
	struct ep_pair p = selective_pair();
	struct fid_ep *tx = alias_of(p.a, FI_TRANSMIT | FI_COMPLETION);
	uint64_t mem[5] = { 1, 2, 3, 4, 5 }, v[3] = { 10, 20, 40 };
	struct fid_mr *mr = region(p.b, mem, sizeof(mem));
	struct fi_ioc two[2] = { { &v[0], 1 }, { &v[2], 1 } };
	struct fi_rma_ioc remote = { 8, 1, KEY };
	struct fi_msg_atomic msg = {
		.msg_iov = &two[1], .iov_count = 1, .addr = p.ab,
		.rma_iov = &remote, .rma_iov_count = 1, .datatype = U64,
		.op = FI_SUM, .context = &p,
	};

	DONE(fi_atomic(tx, &v[1], 2, NULL, p.ab, 0, KEY, U64, FI_SUM, &p));
	DONE(fi_atomicv(tx, two, NULL, 2, p.ab, 16, KEY, U64, FI_PROD, &p));
	DONE(fi_atomicmsg(tx, &msg, FI_COMPLETION));
	EP_OK(fi_inject_atomic(tx, &v[0], 1, p.ab, 32, KEY, U64, FI_SUM));
	EP_UNTIL(mem[4] == 15);
	ep_quiet(p.a);
	assert_int_equal(mem[0], 21);
	assert_int_equal(mem[1], 82);
	assert_int_equal(mem[2], 30);
	assert_int_equal(mem[3], 160);
	EP_CLOSE(&mr->fid, &tx->fid);
}

static void test_alias_fetches(void **state)
{
	struct ep_pair p = selective_pair();
	struct fid_ep *tx = alias_of(p.a, FI_TRANSMIT | FI_COMPLETION);
	uint64_t mem[4] = { 1, 2, 3, 4 }, v[2] = { 10, 20 }, r[2] = { 0 };
	struct fid_mr *mr = region(p.b, mem, sizeof(mem));
	struct fi_ioc two[2] = { { &v[0], 1 }, { &v[1], 1 } };
	struct fi_ioc into[2] = { { &r[1], 1 }, { &r[0], 1 } };
	struct fi_rma_ioc remote = { 24, 1, KEY };
	struct fi_msg_atomic msg = {
		.msg_iov = two, .iov_count = 1, .addr = p.ab,
		.rma_iov = &remote, .rma_iov_count = 1, .datatype = U64,
		.op = FI_SUM, .context = &p,
	};

	DONE(fi_fetch_atomic(tx, v, 1, NULL, r, NULL, p.ab, 8, KEY, U64,
			     FI_SUM, &p));
	assert_int_equal(r[0], 2);
	DONE(fi_fetch_atomicv(tx, two, NULL, 2, into, NULL, 2, p.ab, 0, KEY,
			      U64, FI_SUM, &p));
	assert_int_equal(r[1], 1);
	assert_int_equal(r[0], 12);
	DONE(fi_fetch_atomicmsg(tx, &msg, into, NULL, 1, FI_COMPLETION));
	assert_int_equal(r[1], 4);
	/* a read has no operand */
	DONE(fi_fetch_atomicv(tx, NULL, NULL, 0, into, NULL, 2, p.ab, 8, KEY,
			      U64, FI_ATOMIC_READ, &p));
	assert_int_equal(r[1], 32);
	assert_int_equal(r[0], 3);
	assert_int_equal(mem[0], 11);
	assert_int_equal(mem[3], 14);
	EP_CLOSE(&mr->fid, &tx->fid);
}

static void test_alias_compares(void **state)
{
	struct ep_pair p = selective_pair();
	struct fid_ep *tx = alias_of(p.a, FI_TRANSMIT | FI_COMPLETION);
	uint64_t mem[3] = { 1, 2, 3 }, v[2] = { 10, 20 }, c[2] = { 2, 3 };
	uint64_t r[2] = { 0 };
	struct fid_mr *mr = region(p.b, mem, sizeof(mem));
	struct fi_ioc two[2] = { { &v[0], 1 }, { &v[1], 1 } };
	struct fi_ioc with[2] = { { &c[0], 1 }, { &c[1], 1 } };
	struct fi_ioc into[2] = { { &r[1], 1 }, { &r[0], 1 } };
	struct fi_rma_ioc remote = { 0, 1, KEY };
	struct fi_msg_atomic msg = {
		.msg_iov = two, .iov_count = 1, .addr = p.ab,
		.rma_iov = &remote, .rma_iov_count = 1, .datatype = U64,
		.op = FI_CSWAP, .context = &p,
	};

	DONE(fi_compare_atomic(tx, v, 1, NULL, c, NULL, r, NULL, p.ab, 8, KEY,
			       U64, FI_CSWAP, &p));
	assert_int_equal(r[0], 2);
	assert_int_equal(mem[1], 10);
	c[0] = 10;
	DONE(fi_compare_atomicv(tx, two, NULL, 2, with, NULL, 2, into, NULL, 2,
				p.ab, 8, KEY, U64, FI_CSWAP, &p));
	assert_int_equal(r[1], 10);
	assert_int_equal(r[0], 3);
	assert_int_equal(mem[2], 20);
	DONE(fi_compare_atomicmsg(tx, &msg, with, NULL, 1, into, NULL, 1,
				  FI_COMPLETION));
	assert_int_equal(r[1], 1);
	assert_int_equal(mem[0], 1);	/* no swap: it was not 10 */
	EP_CLOSE(&mr->fid, &tx->fid);
}

/* ---- The handle ------------------------------------------------------ */

typedef int (*valid_fn)(struct fid_ep *ep, enum fi_datatype type,
			enum fi_op op, size_t *count);

static void test_alias_knows_the_operations(void **state)
{
	static const valid_fn valid[] = {
		fi_atomicvalid, fi_fetch_atomicvalid, fi_compare_atomicvalid,
	};
	static const enum fi_op op[] = { FI_ATOMIC_WRITE, FI_ATOMIC_READ,
					 FI_CSWAP };
	struct ep *e = ep_open(NULL);
	struct fid_ep *alias = alias_of(e, FI_TRANSMIT);
	size_t count = 0, own = 1;

	for (int i = 0; i < 3; i++) {
		assert_int_equal(valid[i](alias, FI_UINT32, op[i], &count), 0);
		assert_int_equal(valid[i](e->ep, FI_UINT32, op[i], &own), 0);
		assert_int_equal(count, own);
	}
	assert_int_equal(fi_atomicvalid(alias, U64, FI_ATOMIC_READ, &count),
			 -FI_EOPNOTSUPP);
	assert_int_equal(fi_fetch_atomicvalid(alias, U64, FI_CSWAP, &count),
			 -FI_EOPNOTSUPP);
	assert_int_equal(fi_compare_atomicvalid(alias, U64, FI_SUM, &count),
			 -FI_EOPNOTSUPP);
	assert_int_equal(fi_close(&alias->fid), 0);
}

static void test_alias_has_options(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_ep *alias = alias_of(e, FI_RECV);
	size_t min = 123, got = 0, len = sizeof(got);
	ssize_t rx, tx;

	assert_int_equal(fi_setopt(&alias->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &min, sizeof(min)),
			 0);
	assert_int_equal(fi_getopt(&e->ep->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &got, &len), 0);
	assert_int_equal(got, 123);
	got = 0;
	assert_int_equal(fi_getopt(&alias->fid, FI_OPT_ENDPOINT,
				   FI_OPT_MIN_MULTI_RECV, &got, &len), 0);
	assert_int_equal(got, 123);
	/* these calls are deprecated */
	rx = alias->ops->rx_size_left(alias);
	tx = alias->ops->tx_size_left(alias);
	assert_int_equal(rx, e->ep->ops->rx_size_left(e->ep));
	assert_int_equal(tx, e->ep->ops->tx_size_left(e->ep));
	assert_int_not_equal(rx, tx);
	assert_int_equal(fi_close(&alias->fid), 0);
}

static int op_flags(struct fid_ep *ep, int command, uint64_t flags,
		    uint64_t *out)
{
	int ret = fi_control(&ep->fid, command, &flags);

	*out = flags;
	return ret;
}

/* An alias that was opened before its endpoint was enabled: its calls ask for
 * completions by the rules of the endpoint's binding. */
static void test_alias_is_older_than_enabling(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct fid_ep *ep, *tx = NULL, *rx = NULL;
	char out = 6, in = 0;

	assert_int_equal(fi_endpoint(p.a->domain, p.a->info, &ep, NULL), 0);
	assert_int_equal(fi_ep_alias(ep, &tx, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_alias(ep, &rx, FI_RECV), 0);
	assert_int_equal(fi_ep_bind(ep, &p.a->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &p.a->cq->fid, FI_TRANSMIT | FI_RECV),
			 0);
	assert_int_equal(fi_enable(ep), 0);
	for (int i = 0; i < 2; i++) {
		EP_OK(fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
		EP_OK(fi_send(i == 0 ? tx : rx, &out, 1, NULL, p.ab, &out));
		ep_sent(p.a, &out);
		ep_received(p.b, &in);
	}
	assert_int_equal(fi_close(&tx->fid), 0);
	assert_int_equal(fi_close(&ep->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&rx->fid), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
}

/* The operation flags of aliases and endpoints. An alias has those of its
 * endpoint until its own are set. */
static void test_flags_are_set(void **state)
{
	struct ep_pair p = selective_pair();
	struct fid_ep *alias = alias_of(p.a, FI_TRANSMIT | FI_INJECT);
	struct fid_ep *both[2] = { alias, p.a->ep };
	char out = 1, in;
	uint64_t f;

	for (int i = 0; i < 2; i++) {
		assert_int_equal(op_flags(both[i], FI_GETOPSFLAG, 0, &f),
				 -FI_EINVAL);
		assert_int_equal(op_flags(both[i], FI_SETOPSFLAG,
					  FI_COMPLETION, &f), -FI_EINVAL);
		assert_int_equal(op_flags(both[i], FI_SETOPSFLAG, FI_TRANSMIT |
					  FI_RECV, &f), -FI_EINVAL);
		assert_int_equal(op_flags(both[i], FI_SETOPSFLAG, FI_TRANSMIT |
					  FI_MULTI_RECV, &f), -FI_EBADFLAGS);
		assert_int_equal(fi_control(&both[i]->fid, FI_GETOPSFLAG,
					    NULL), -FI_EINVAL);
	}
	assert_int_equal(fi_control(&alias->fid, FI_GETWAIT, &f), -FI_ENOSYS);
	assert_int_equal(op_flags(alias, FI_GETOPSFLAG, FI_TRANSMIT, &f), 0);
	assert_int_equal(f, FI_INJECT);
	assert_int_equal(op_flags(p.a->ep, FI_SETOPSFLAG, FI_RECV |
				  FI_MULTI_RECV, &f), 0);
	assert_int_equal(op_flags(alias, FI_GETOPSFLAG, FI_RECV, &f), 0);
	assert_int_equal(f, FI_MULTI_RECV);
	assert_int_equal(op_flags(alias, FI_SETOPSFLAG, FI_RECV |
				  FI_COMPLETION, &f), 0);
	assert_int_equal(op_flags(alias, FI_GETOPSFLAG, FI_RECV, &f), 0);
	assert_int_equal(f, FI_COMPLETION);
	assert_int_equal(op_flags(p.a->ep, FI_GETOPSFLAG, FI_RECV, &f), 0);
	assert_int_equal(f, FI_MULTI_RECV);
	/* and calls without flags use them */
	assert_int_equal(op_flags(p.a->ep, FI_SETOPSFLAG, FI_RECV, &f), 0);
	for (int i = 0; i < 2; i++) {
		for (int k = 0; k < 2; k++)
			EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, NULL));
		EP_OK(fi_send(both[i], &out, 1, NULL, p.ab, &out));
		ep_quiet(p.a);
		assert_int_equal(op_flags(both[i], FI_SETOPSFLAG, FI_TRANSMIT |
					  FI_COMPLETION, &f), 0);
		EP_OK(fi_send(both[i], &out, 1, NULL, p.ab, &out));
		ep_sent(p.a, &out);
	}
	EP_OK(fi_recv(alias, &in, 1, NULL, p.ab, &in));
	EP_OK(fi_inject(p.b->ep, &out, 1, p.ba));
	ep_received(p.a, &in);
	assert_int_equal(fi_close(&alias->fid), 0);
}

/* A region that is bound to an alias is bound to its endpoint. */
static void test_region_is_bound(void **state)
{
	struct ep_want want = { .mr_mode = FI_MR_ENDPOINT };
	struct ep_pair p = ep_pair(&want);
	struct fid_ep *alias = alias_of(p.b, FI_RECV);
	struct fid_ep *foreign = alias_of(p.a, FI_RECV);
	uint64_t mem = 0, v = 5;
	struct fid_mr *mr = region(p.b, &mem, sizeof(mem));

	assert_int_equal(fi_mr_bind(mr, &foreign->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_mr_bind(mr, &alias->fid, 0), 0);
	assert_int_equal(fi_mr_enable(mr), 0);
	DONE(fi_write(p.a->ep, &v, 8, NULL, p.ab, 0, KEY, &p));
	assert_int_equal(mem, 5);
	EP_CLOSE(&mr->fid, &foreign->fid, &alias->fid);
}

UNIT_MAIN(
	EP_TEST(test_alias_refusals),
	EP_TEST(test_alias_carries_messages),
	EP_TEST(test_alias_carries_flags),
	EP_TEST(test_alias_writes_and_reads),
	EP_TEST(test_alias_updates),
	EP_TEST(test_alias_fetches),
	EP_TEST(test_alias_compares),
	EP_TEST(test_alias_knows_the_operations),
	EP_TEST(test_alias_has_options),
	EP_TEST(test_alias_is_older_than_enabling),
	EP_TEST(test_flags_are_set),
	EP_TEST(test_region_is_bound),
)
