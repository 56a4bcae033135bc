/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_complete.c - completions: which operations report one, when, and the
 * fields of its entry. Formats, selective completion, completion levels,
 * counters, and errors between successful entries.
 */
#include "api/unm_cntr.h"
#include "api/unm_cq.h"
#include "api/unm_ep.h"
#include "core/unm_cntr_value.h"
#include "core/unm_cq_ring.h"
#include "lib/ep_xfer.h"
#include "unm_env.h"

static const size_t kinds[] = { 8, 4000, 100000 };
#define NKINDS	3
#define BIG	100000

/* ---- Formats --------------------------------------------------------- */

static void test_formats(void **state)
{
	static const enum fi_cq_format formats[] = {
		FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA,
		FI_CQ_FORMAT_TAGGED,
	};

	for (int f = 0; f < 4; f++) {
		struct ep_want want = { .format = formats[f] };
		struct ep_pair p = ep_pair(&want);
		char in[8], out[8] = "1234567";

		for (int i = 0; i < 3; i++) {	/* entries side by side */
			struct ep_comp c;

			EP_OK(fi_trecv(p.b->ep, in, 8, NULL, p.ba, 77, 0,
				       in));
			EP_OK(fi_tsenddata(p.a->ep, out, 8, NULL, 0x55, p.ab,
					   77, out));
			c = ep_wait(p.b, in);
			assert_int_equal(c.err, 0);
			assert_int_equal(c.flags, f < 1 ? 0 : FI_RECV |
					 FI_TAGGED | FI_REMOTE_CQ_DATA);
			assert_int_equal(c.len, f < 1 ? 0 : 8);
			assert_int_equal(c.data, f < 2 ? 0 : 0x55);
			assert_int_equal(c.tag, f < 3 ? 0 : 77);
			assert_int_equal(c.src, p.ba);
			c = ep_wait(p.a, out);
			assert_int_equal(c.err, 0);
			assert_int_equal(c.flags, f < 1 ? 0 : FI_SEND |
					 FI_TAGGED);
		}
		ep_pair_close(&p);
	}
}

/* A reader with a short format gets only that many bytes per entry, and a
 * reader of n entries at most n. */
static void test_read_writes_what_was_asked(void **state)
{
	struct ep_want want = { .format = FI_CQ_FORMAT_MSG };
	struct ep_pair p = ep_pair(&want);
	struct fi_cq_msg_entry e[4];
	fi_addr_t src[4];
	char in[3], out = 1;

	for (int i = 0; i < 3; i++) {
		EP_OK(fi_recv(p.b->ep, &in[i], 1, NULL, p.ba, &in[i]));
		EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
	}
	EP_FOR_US(20000) {
		ep_poll(p.a);
		fi_cq_read(p.b->cq, NULL, 0);
	}
	memset(e, 0xAB, sizeof(e));
	memset(src, 0xAB, sizeof(src));
	assert_int_equal(fi_cq_readfrom(p.b->cq, e, 2, src), 2);
	assert_ptr_equal(e[0].op_context, &in[0]);
	assert_ptr_equal(e[1].op_context, &in[1]);
	assert_int_equal(src[1], p.ba);
	assert_int_equal(e[2].len, UINT64_C(0xABABABABABABABAB));
	assert_int_equal(src[2], UINT64_C(0xABABABABABABABAB));
	assert_int_equal(fi_cq_read(p.b->cq, e, 4), 1);
	assert_ptr_equal(e[0].op_context, &in[2]);
	assert_int_equal(fi_cq_read(p.b->cq, e, 4), -FI_EAGAIN);
}

/* ---- Selective completion -------------------------------------------- */

/* A send call: takes it flags, is it an inject call? */
static const struct {
	enum xfer_tx tx;
	bool flags, never;
} calls[] = {
	{ XFER_SEND, false, false }, { XFER_SENDV, false, false },
	{ XFER_SENDDATA, false, false }, { XFER_SENDMSG, true, false },
	{ XFER_INJECT, false, true }, { XFER_INJECTDATA, false, true },
};

/* The call that posts an operation */
enum { UNTAGGED, TAGGED };
enum { WITHOUT_FLAGS, WITH_FLAGS };

static ssize_t send_flags(struct ep *e, fi_addr_t to, void *buf, size_t len,
			  bool tagged, uint64_t flags, void *ctx)
{
	struct iovec iov = { buf, len };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to,
			      .context = ctx };
	struct fi_msg_tagged tmsg = { .msg_iov = &iov, .iov_count = 1,
				      .addr = to, .tag = 7, .context = ctx };

	return tagged ? fi_tsendmsg(e->ep, &tmsg, flags) :
		fi_sendmsg(e->ep, &msg, flags);
}

static ssize_t recv_flags(struct ep *e, fi_addr_t from, void *buf, size_t len,
			  bool tagged, uint64_t flags, void *ctx)
{
	struct iovec iov = { buf, len };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = from,
			      .context = ctx };
	struct fi_msg_tagged tmsg = { .msg_iov = &iov, .iov_count = 1,
				      .addr = from, .tag = 7, .context = ctx };

	return tagged ? fi_trecvmsg(e->ep, &tmsg, flags) :
		fi_recvmsg(e->ep, &msg, flags);
}

/* Sends one message; a counter of the receiver shows when it has arrived. */
static void selective_tx(struct ep_pair *p, int call, bool tagged, size_t len,
			 bool wanted, bool expect)
{
	struct xfer x = { .tagged = tagged, .tx = calls[call].tx, .len = len,
			  .tag = 7, .seed = 1 };
	struct ep_comp c;

	xfer_make(&x);
	EP_OK(recv_flags(p->b, p->ba, x.in_iov[0].iov_base, len, tagged,
			 FI_COMPLETION, &x.rxc));
	if (calls[call].flags)
		EP_OK(send_flags(p->a, p->ab, x.out_iov[0].iov_base, len,
				 tagged, wanted ? FI_COMPLETION : 0, &x.txc));
	else
		EP_OK(xfer_send(p->a, p->ab, &x));
	ep_received(p->b, &x.rxc);
	if (expect)
		ep_sent(p->a, &x.txc);
	ep_quiet(p->a);
	assert_false(ep_take(p->a, &x.txc, &c));
	xfer_free(&x);
}

static void selective_rx(struct ep_pair *p, bool with_flags, bool tagged,
			 size_t len, bool wanted, bool expect)
{
	struct xfer x = { .tagged = tagged, .len = len, .tag = 7, .seed = 2 };

	xfer_make(&x);
	if (with_flags)
		EP_OK(recv_flags(p->b, p->ba, x.in_iov[0].iov_base, len,
				 tagged, wanted ? FI_COMPLETION : 0, &x.rxc));
	else
		EP_OK(xfer_recv(p->b, p->ba, &x));
	EP_OK(send_flags(p->a, p->ab, x.out_iov[0].iov_base, len, tagged,
			 FI_COMPLETION, &x.txc));
	ep_sent(p->a, &x.txc);
	ep_settle();
	if (expect)
		ep_received(p->b, &x.rxc);
	xfer_check_bytes(&x, len);
	ep_quiet(p->b);
	xfer_free(&x);
}

/* fi_cq(3), fi_endpoint(3): if bound selectively, an operation completes if its
 * flags have FI_COMPLETION. Calls without flags use op_flags. */
static void matrix(uint64_t selective, uint64_t op_flags, size_t len)
{
	struct ep_want want = {
		.cq_flags = selective, .tx_op_flags = op_flags,
		.rx_op_flags = op_flags,
	};
	struct ep_pair p = ep_pair(&want);

	for (int tagged = 0; tagged < 2; tagged++)
		for (int wanted = 0; wanted < 2; wanted++) {
			for (int i = 0; i < 6; i++) {
				bool asks = calls[i].flags ? wanted :
					!!op_flags;

				if (calls[i].never && len > 4096)
					continue;
				selective_tx(&p, i, tagged, len, wanted,
					     !calls[i].never &&
					     (!selective || asks));
			}
			selective_rx(&p, WITH_FLAGS, tagged, len, wanted,
				     !selective || wanted);
			selective_rx(&p, WITHOUT_FLAGS, tagged, len, wanted,
				     !selective || op_flags);
		}
	ep_pair_close(&p);
}

static void test_trap2_selective_completion_matrix(void **state)
{
	for (int k = 0; k < NKINDS; k++) {
		matrix(0, 0, kinds[k]);
		matrix(0, FI_COMPLETION, kinds[k]);
		matrix(FI_SELECTIVE_COMPLETION, 0, kinds[k]);
		matrix(FI_SELECTIVE_COMPLETION, FI_COMPLETION, kinds[k]);
	}
}

/* Errors are reported, also without FI_COMPLETION. */
static void test_errors_are_reported_without_completions(void **state)
{
	struct ep_want want = { .cq_flags = FI_SELECTIVE_COMPLETION };
	struct ep_pair p = ep_pair(&want);
	char *out = ep_alloc(BIG), in;

	for (int k = 0; k < NKINDS; k++) {
		EP_OK(recv_flags(p.b, p.ba, &in, 1, TAGGED, 0, &in));
		EP_OK(send_flags(p.a, p.ab, out, kinds[k], TAGGED, 0, out));
		assert_int_equal(ep_wait(p.b, &in).err, FI_ETRUNC);
	}
	ep_quiet(p.a);
}

/* ---- Levels ---------------------------------------------------------- */

static const uint64_t levels[] = {
	FI_INJECT_COMPLETE, FI_TRANSMIT_COMPLETE, FI_DELIVERY_COMPLETE,
};

/* Does the operation complete while only the sender polls? */
static bool completes_alone(struct ep *e, void *ctx)
{
	struct ep_comp c;

	EP_FOR_US(3000) {
		ep_poll(e);
		if (ep_take(e, ctx, &c)) {
			assert_int_equal(c.err, 0);
			return true;
		}
	}
	return false;
}

/* A short message completes without the receiver, except with
 * FI_DELIVERY_COMPLETE: then the receiver must have it, whether a receive is
 * posted or not. A rendezvous completes when the receiver has the bytes. */
static void test_levels(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(BIG), *in = ep_alloc(BIG);

	EP_OK(fi_inject(p.a->ep, out, 1, p.ab));
	EP_OK(fi_recv(p.b->ep, in, 1, NULL, p.ba, in));
	ep_received(p.b, in);
	for (int k = 0; k < NKINDS; k++)
		for (int l = 0; l < 3; l++)
			for (int posted = 0; posted < 2; posted++) {
				bool rdv = ep_rendezvous(kinds[k]);
				bool local = !rdv && l < 2;

				if (posted)
					EP_OK(fi_recv(p.b->ep, in, BIG, NULL,
						      p.ba, in));
				EP_OK(send_flags(p.a, p.ab, out, kinds[k],
						 UNTAGGED, FI_COMPLETION |
						 levels[l], out));
				assert_int_equal(completes_alone(p.a, out),
						 local);
				if (rdv && !posted) {
					/* no receive is posted yet */
					ep_settle();
					assert_int_equal(p.a->ncomp, 0);
				} else if (!local) {
					ep_sent(p.a, out);
				}
				if (!posted)
					EP_OK(fi_recv(p.b->ep, in, BIG, NULL,
						      p.ba, in));
				ep_received(p.b, in);
				if (rdv && !posted)
					ep_sent(p.a, out);
			}
	ep_quiet(p.a);
}

/* Completion levels set by op_flags, for calls without flags. */
static void test_delivery_by_op_flags(void **state)
{
	struct ep_want want = { .tx_op_flags = FI_DELIVERY_COMPLETE };
	struct ep_pair p = ep_pair(&want);
	char out[4000] = "", in[4000];

	for (int k = 0; k < 2; k++) {
		EP_OK(fi_tsend(p.a->ep, out, kinds[k], NULL, p.ab, 7, out));
		assert_false(completes_alone(p.a, out));
		if (!ep_rendezvous(kinds[k]))
			ep_sent(p.a, out);
		EP_OK(fi_trecv(p.b->ep, in, sizeof(in), NULL, p.ba, 7, 0, in));
		ep_received(p.b, in);
		if (ep_rendezvous(kinds[k]))
			ep_sent(p.a, out);
	}
}

/* FI_INJECT with FI_DELIVERY_COMPLETE: the buffer is free at once, the entry
 * comes later. */
static void test_injected_delivery(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char out[4000], in[4000];
	int ctx;

	for (int k = 0; k < 2; k++) {
		xfer_fill(out, kinds[k], k, 0);
		EP_OK(send_flags(p.a, p.ab, out, kinds[k], TAGGED, FI_INJECT |
				 FI_COMPLETION | FI_DELIVERY_COMPLETE, &ctx));
		memset(out, 0xDD, sizeof(out));
		assert_false(completes_alone(p.a, &ctx));
		ep_sent(p.a, &ctx);
		EP_OK(fi_trecv(p.b->ep, in, sizeof(in), NULL, p.ba, 7, 0, in));
		ep_received(p.b, in);
		assert_true(xfer_filled(in, kinds[k], k, 0));
	}
}

/* ---- Counters -------------------------------------------------------- */

static void test_trap7_one_tick_per_operation(void **state)
{
	struct ep_want want = { .cntrs = true,
				.cq_flags = FI_SELECTIVE_COMPLETION };
	static const size_t lens[] = { 0, 8, 56, 4000, 16385, BIG, 300000 };
	struct ep_pair p = ep_pair(&want);
	uint64_t n = 0;

	for (int call = 0; call < XFER_TX_CALLS; call++)
		for (size_t i = 0; i < 7; i++) {
			struct xfer x = { .tagged = i & 1, .tx = call,
					  .len = lens[i], .tx_iov = 1 + i % 3,
					  .rx_iov = 1 + i % 8,
					  .rx = XFER_RECVV };

			if (xfer_inject(&x) && x.len > 4096)
				continue;
			if (call != XFER_SENDV && call != XFER_SENDMSG)
				x.tx_iov = 1;
			xfer_make(&x);
			EP_OK(xfer_recv(p.b, p.ba, &x));
			EP_OK(xfer_send(p.a, p.ab, &x));
			n++;
			EP_UNTIL(fi_cntr_read(p.a->txcntr) >= n &&
				 fi_cntr_read(p.b->rxcntr) >= n);
			xfer_check_bytes(&x, x.len);
			ep_settle();
			assert_int_equal(fi_cntr_read(p.a->txcntr), n);
			assert_int_equal(fi_cntr_read(p.b->rxcntr), n);
			p.a->ncomp = 0;	/* the entry of
					 * fi_sendmsg(FI_COMPLETION) */
			xfer_free(&x);
		}
	assert_int_equal(fi_cntr_read(p.b->txcntr), 0);
	assert_int_equal(fi_cntr_read(p.a->rxcntr), 0);
	assert_int_equal(fi_cntr_readerr(p.a->txcntr), 0);
	assert_int_equal(fi_cntr_readerr(p.b->rxcntr), 0);
}

static void test_counters_of_errors(void **state)
{
	struct ep_want want = { .cntrs = true };
	struct ep_pair p = ep_pair(&want);
	char in, out[8] = "";

	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, &in));
	EP_OK(fi_inject(p.a->ep, out, 8, p.ab));
	EP_UNTIL(fi_cntr_readerr(p.b->rxcntr) == 1);
	assert_int_equal(fi_cntr_read(p.b->rxcntr), 0);
	assert_int_equal(fi_cntr_read(p.a->txcntr), 1);
	assert_int_equal(ep_wait(p.b, &in).err, FI_ETRUNC);
	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, &in));
	assert_int_equal(fi_cancel(&p.b->ep->fid, &in), 0);
	assert_int_equal(fi_cntr_readerr(p.b->rxcntr), 2);
}

static void test_counter_set_add_and_wait(void **state)
{
	struct ep_want want = { .cntrs = true };
	struct ep_pair p = ep_pair(&want);
	struct fid_cntr *c = p.a->txcntr;
	uint64_t start = ep_now();
	char out = 0;

	assert_int_equal(fi_cntr_set(c, 10), 0);
	assert_int_equal(fi_cntr_add(c, 5), 0);
	assert_int_equal(fi_cntr_read(c), 15);
	assert_int_equal(fi_cntr_wait(c, 15, 0), 0);
	assert_int_equal(fi_cntr_wait(c, 16, 20), -FI_ETIMEDOUT);
	assert_true(ep_now() - start >= 20000);
	EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
	assert_int_equal(fi_cntr_wait(c, 16, -1), 0);
	assert_int_equal(fi_cntr_seterr(c, 3), 0);
	assert_int_equal(fi_cntr_adderr(c, 1), 0);
	assert_int_equal(fi_cntr_readerr(c), 4);
	assert_int_equal(fi_cntr_set(c, 0), 0);
	assert_int_equal(fi_cntr_read(c), 0);
}

/* FI_UNIMEM_SPIN is applied from the first read on, as with queues. */
static void test_counter_spins_as_configured(void **state)
{
	struct ep_want want = { .cntrs = true };
	struct ep *e = ep_open(&want);

	assert_int_equal(((struct unm_cntr *)e->txcntr)->idle.spin,
			 g_unm_env.spin);
	assert_int_equal(((struct unm_cq *)e->cq)->idle.spin, g_unm_env.spin);
}

/* fi_cntr(3): an operation that fails ends the wait. */
static void test_counter_wait_ends_at_an_error(void **state)
{
	struct ep_want want = { .cntrs = true };
	struct ep_pair p = ep_pair(&want);
	char in, out[8] = "";

	EP_OK(fi_inject(p.a->ep, out, 8, p.ab));
	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, &in));
	if (fi_cntr_readerr(p.b->rxcntr) == 0)
		assert_int_equal(fi_cntr_wait(p.b->rxcntr, 1, 20000),
				 -FI_EAVAIL);
	assert_int_equal(fi_cntr_readerr(p.b->rxcntr), 1);
}

/* An endpoint with counters only: no entry may be pushed into a queue. */
static void test_endpoint_without_queues(void **state)
{
	struct ep_want want = {
		.cntrs = true, .no_txcq = true, .no_rxcq = true,
	};
	struct ep_pair p = ep_pair(&want);
	char *buf = ep_alloc(1000), *out = ep_alloc(BIG), *in = ep_alloc(BIG);
	struct iovec iov = { buf, 1000 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC };
	uint64_t n = 0;

	for (int k = 0; k < NKINDS; k++)
		for (int l = 0; l < 3; l++) {
			EP_OK(recv_flags(p.b, p.ba, in, BIG, l & 1,
					 FI_COMPLETION, in));
			EP_OK(send_flags(p.a, p.ab, out, kinds[k], l & 1,
					 FI_COMPLETION | levels[l], out));
			n++;
			EP_UNTIL(fi_cntr_read(p.b->rxcntr) == n &&
				 fi_cntr_read(p.a->txcntr) == n);
		}
	/* the release of a multi-receive buffer, a truncation, a cancel */
	EP_OK(fi_recvmsg(p.b->ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
	EP_OK(fi_inject(p.a->ep, out, 1000, p.ab));
	EP_UNTIL(fi_cntr_read(p.b->rxcntr) == n + 1);
	EP_OK(fi_recv(p.b->ep, in, 1, NULL, p.ba, in));
	EP_OK(fi_inject(p.a->ep, out, 1000, p.ab));
	EP_UNTIL(fi_cntr_readerr(p.b->rxcntr) == 1);
	EP_OK(fi_recv(p.b->ep, in, 1, NULL, p.ba, in));
	assert_int_equal(fi_cancel(&p.b->ep->fid, in), 0);
	assert_int_equal(fi_cntr_readerr(p.b->rxcntr), 2);
}

/* ---- Errors ---------------------------------------------------------- */

/* Error entries keep their place in the queue, and hold back later entries. */
static void test_errors_keep_their_place(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct fi_cq_err_entry err = { 0 };
	struct fi_cq_tagged_entry e[4];
	char in[3][8], out[8] = "";
	ssize_t ret;

	for (int i = 0; i < 3; i++) {
		EP_OK(fi_recv(p.b->ep, in[i], i == 1 ? 1 : 8, NULL, p.ba,
			      in[i]));
		EP_OK(fi_inject(p.a->ep, out, 8, p.ab));
	}
	EP_FOR_US(20000) {
		ep_poll(p.a);
		fi_cq_read(p.b->cq, NULL, 0);
	}
	ret = fi_cq_readerr(p.b->cq, &err, 0);
	assert_int_equal(ret, -FI_EAGAIN);	/* a successful entry comes
						 * first */
	assert_int_equal(fi_cq_read(p.b->cq, e, 4), 1);
	assert_ptr_equal(e[0].op_context, in[0]);
	assert_int_equal(fi_cq_read(p.b->cq, e, 4), -FI_EAVAIL);
	assert_int_equal(fi_cq_read(p.b->cq, e, 4), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(p.b->cq, &err, 0), 1);
	assert_ptr_equal(err.op_context, in[1]);
	assert_int_equal(fi_cq_readerr(p.b->cq, &err, 0), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(p.b->cq, e, 4), 1);
	assert_ptr_equal(e[0].op_context, in[2]);
	assert_int_equal(fi_cq_read(p.b->cq, e, 4), -FI_EAGAIN);
}

/* The caller may have the error entry of libfabric 1.0, which ends with
 * prov_errno and err_data: no byte behind it is written. */
static void test_trap5_error_entry_of_an_old_caller(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct {
		struct fi_cq_err_entry e;
		char beyond[64];
	} s;
	char in, out[8] = "", data[16] = "keep", text[40];

	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, &in));
	EP_OK(fi_inject(p.a->ep, out, 8, p.ab));
	ep_settle();
	assert_int_equal(p.b->ncomp, 1);
	p.b->ncomp = 0;
	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, &in));
	assert_int_equal(fi_cancel(&p.b->ep->fid, &in), 0);
	memset(&s, 0xC7, sizeof(s));
	s.e.err_data = data;
	s.e.err_data_size = sizeof(data);
	assert_int_equal(fi_cq_readerr(p.b->cq, &s.e, 0), 1);
	assert_int_equal(s.e.err, FI_ECANCELED);
	assert_ptr_equal(s.e.err_data, data);
	assert_int_equal(s.e.err_data_size, 0);
	assert_string_equal(data, "keep");
	for (size_t i = 0; i < sizeof(s.beyond); i++)
		assert_int_equal((uint8_t)s.beyond[i], 0xC7);
	assert_non_null(fi_cq_strerror(p.b->cq, s.e.prov_errno, s.e.err_data,
				       text, sizeof(text)));
	assert_int_not_equal(strlen(text), 0);
	memset(text, 'x', sizeof(text));
	fi_cq_strerror(p.b->cq, s.e.prov_errno, NULL, text, 4);
	assert_int_equal(strnlen(text, 4), 3);
	assert_int_equal(text[4], 'x');
}

/* Before 1.5 the structure ended with err_data, which pointed to memory of the
 * provider. */
static void test_error_entry_of_an_older_caller(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct fi_cq_err_entry e;
	char in;

	p.b->fabric->api_version = FI_VERSION(1, 4);
	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, &in));
	assert_int_equal(fi_cancel(&p.b->ep->fid, &in), 0);
	memset(&e, 0xC7, sizeof(e));
	assert_int_equal(fi_cq_readerr(p.b->cq, &e, 0), 1);
	assert_int_equal(e.err, FI_ECANCELED);
	assert_null(e.err_data);
	for (size_t i = offsetof(struct fi_cq_err_entry, err_data_size);
	     i < sizeof(e); i++)
		assert_int_equal(((uint8_t *)&e)[i], 0xC7);
}

/* ---- Delivered before the receiver ends ------------------------------ */

/* Receives one message and closes at once. */
static void *receive_and_close(void *arg)
{
	struct ep *b = arg;
	struct fi_cq_tagged_entry e;
	uint64_t end = ep_deadline();

	usleep(2000);			/* the sender sleeps by now */
	while (fi_cq_read(b->cq, &e, 1) != 1 && ep_now() < end)
		;
	ep_close(b);
	return NULL;
}

/* A message that the receiver has released is delivered, also if the sender
 * learns of the receiver's death first. */
static void test_delivered_before_the_end(void **state)
{
	struct ep_want want = { .wait = FI_WAIT_UNSPEC };

	for (int i = 0; i < 30; i++) {
		struct ep_pair p = ep_pair(&want);
		static char out[3000], in[3000];
		struct iovec iov = { out, sizeof(out) };
		struct fi_msg msg = {
			.msg_iov = &iov, .iov_count = 1, .addr = p.ab,
			.context = out,
		};
		struct fi_cq_tagged_entry e;
		pthread_t thread;

		EP_OK(fi_recv(p.b->ep, in, sizeof(in), NULL, p.ba, in));
		EP_OK(fi_sendmsg(p.a->ep, &msg,
				 FI_DELIVERY_COMPLETE | FI_COMPLETION));
		thread = unit_thread(receive_and_close, p.b);
		assert_int_equal(fi_cq_sread(p.a->cq, &e, 1, NULL, 20000), 1);
		assert_ptr_equal(e.op_context, out);
		pthread_join(thread, NULL);
		ep_close(p.a);
	}
}

/* ---- Full queues ----------------------------------------------------- */

enum { QUEUE = 64, CREDITS = 256, FLOOD = 20000 };

/* Sends until sends are refused for good; returns the number accepted. */
static uint32_t flood(struct ep_pair *p, uint32_t from, bool completing)
{
	uint32_t i = from, refused = 0;

	while (i < FLOOD && refused < 1000) {
		ssize_t ret = completing ?
			fi_send(p->a->ep, &i, 4, NULL, p->ab,
				(void *)(uintptr_t)i) :
			fi_inject(p->a->ep, &i, 4, p->ab);

		if (ret != 0)
			assert_int_equal(ret, -FI_EAGAIN);
		refused = ret == 0 ? 0 : refused + 1;
		i += ret == 0;
		/* makes progress, reads nothing */
		fi_cq_read(p->a->cq, NULL, 0);
		fi_cq_read(p->b->cq, NULL, 0);
	}
	return i - from;
}

/* The receiver does not read: its senders are refused, nothing is lost. */
static void test_trap8_full_receive_queue_pushes_back(void **state)
{
	struct ep_want want = { .cq_size = QUEUE };
	struct ep_pair p = ep_pair(&want);
	uint32_t *in = ep_alloc(FLOOD * sizeof(*in)), sent = 0, got = 0;
	uint64_t end = ep_deadline();

	for (uint32_t i = 0; i < FLOOD; i++)
		EP_OK(fi_recv(p.b->ep, &in[i], 4, NULL, p.ba, &in[i]));
	while (got < FLOOD && ep_now() < end) {
		struct fi_cq_tagged_entry e[8];
		ssize_t n;

		sent += flood(&p, sent, false);
		assert_in_range(sent, QUEUE, got + QUEUE + 2 * CREDITS +
				p.a->info->tx_attr->size);
		if (got == 0)		/* full: receives are refused, too */
			assert_int_equal(fi_recv(p.b->ep, in, 4, NULL, p.ba,
						 in), -FI_EAGAIN);
		while ((n = fi_cq_read(p.b->cq, e, 8)) > 0)
			for (int i = 0; i < n; i++, got++) {
				assert_ptr_equal(e[i].op_context, &in[got]);
				assert_int_equal(in[got], got);
			}
		/* a decorator that holds packets releases them at its polls */
		fi_cq_read(p.a->cq, NULL, 0);
	}
	assert_int_equal(got, FLOOD);
}

/* The sender does not read: it may have as many unread entries as fit. */
static void test_trap8_full_send_queue_refuses(void **state)
{
	struct ep_want want = { .cq_size = QUEUE };
	struct ep_pair p = ep_pair(&want);
	struct fi_cq_tagged_entry e;
	uint32_t out = 0;

	assert_int_equal(flood(&p, 0, true), QUEUE);
	/* operations without an entry are not refused */
	EP_OK(fi_inject(p.a->ep, &out, 4, p.ab));
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(fi_cq_read(p.a->cq, &e, 1), 1);
		assert_int_equal((uintptr_t)e.op_context, i);
		assert_int_equal(flood(&p, QUEUE + i, true), 1);
	}
}

/* A reader that reads no more entries than it causes still gets all others. */
static void test_one_by_one_reader_gets_others(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char in[4], out = 1;
	bool received = false;

	EP_OK(fi_recv(p.a->ep, in, 4, NULL, p.ab, in));
	for (int i = 0; i < 20000 && !received; i++) {
		struct fi_cq_tagged_entry e;

		/* long after the connections were set up */
		if (i == 10000)
			EP_OK(fi_inject(p.b->ep, &out, 1, p.ba));
		if (fi_send(p.a->ep, &out, 1, NULL, p.ab, NULL) == 0 &&
		    fi_cq_read(p.a->cq, &e, 1) == 1)
			received = e.op_context == in;
		/* the peer takes the messages: never refused */
		fi_cq_read(p.b->cq, NULL, 0);
	}
	assert_true(received);
}

UNIT_MAIN(
	EP_TEST(test_formats),
	EP_TEST(test_read_writes_what_was_asked),
	EP_TEST(test_trap2_selective_completion_matrix),
	EP_TEST(test_errors_are_reported_without_completions),
	EP_TEST(test_levels),
	EP_TEST(test_delivery_by_op_flags),
	EP_TEST(test_injected_delivery),
	EP_TEST(test_trap7_one_tick_per_operation),
	EP_TEST(test_counters_of_errors),
	EP_TEST(test_counter_set_add_and_wait),
	EP_TEST_INSIDE(test_counter_spins_as_configured),
	EP_TEST(test_counter_wait_ends_at_an_error),
	EP_TEST(test_endpoint_without_queues),
	EP_TEST(test_errors_keep_their_place),
	EP_TEST(test_trap5_error_entry_of_an_old_caller),
	EP_TEST(test_error_entry_of_an_older_caller),
	EP_TEST(test_delivered_before_the_end),
	EP_TEST(test_trap8_full_receive_queue_pushes_back),
	EP_TEST(test_trap8_full_send_queue_refuses),
	EP_TEST(test_one_by_one_reader_gets_others),
)
