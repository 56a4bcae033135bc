/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_object.c - opening, binding, enabling and closing objects, and calls on
 * objects that are not ready for them.
 */
#include "api/unm_cq.h"
#include "api/unm_ep.h"
#include "core/unm_cq_ring.h"
#include "lib/ep_xfer.h"
#include "lib/proc_files.h"
#include "unm_info.h"
#include "unm_offer.h"

/* Every call that moves data. */
static void all_calls(struct ep *e, fi_addr_t to, int want_send, int want_recv)
{
	char buf[8] = "";
	struct iovec iov = { buf, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = to };
	struct fi_msg_tagged tmsg = { .msg_iov = &iov, .iov_count = 1,
				      .addr = to };
	fi_addr_t any = FI_ADDR_UNSPEC;
	const ssize_t sends[] = {
		fi_send(e->ep, buf, 8, NULL, to, NULL),
		fi_sendv(e->ep, &iov, NULL, 1, to, NULL),
		fi_sendmsg(e->ep, &msg, 0),
		fi_inject(e->ep, buf, 8, to),
		fi_senddata(e->ep, buf, 8, NULL, 1, to, NULL),
		fi_injectdata(e->ep, buf, 8, 1, to),
		fi_tsend(e->ep, buf, 8, NULL, to, 1, NULL),
		fi_tsendv(e->ep, &iov, NULL, 1, to, 1, NULL),
		fi_tsendmsg(e->ep, &tmsg, 0),
		fi_tinject(e->ep, buf, 8, to, 1),
		fi_tsenddata(e->ep, buf, 8, NULL, 1, to, 1, NULL),
		fi_tinjectdata(e->ep, buf, 8, 1, to, 1),
	};
	const ssize_t recvs[] = {
		fi_recv(e->ep, buf, 8, NULL, any, NULL),
		fi_recvv(e->ep, &iov, NULL, 1, any, NULL),
		fi_recvmsg(e->ep, &msg, 0),
		fi_trecv(e->ep, buf, 8, NULL, any, 1, 0, NULL),
		fi_trecvv(e->ep, &iov, NULL, 1, any, 1, 0, NULL),
		fi_trecvmsg(e->ep, &tmsg, 0),
		fi_trecvmsg(e->ep, &tmsg, FI_PEEK),
		fi_trecvmsg(e->ep, &tmsg, FI_CLAIM),
	};

	for (size_t i = 0; i < sizeof(sends) / sizeof(sends[0]); i++)
		assert_int_equal(sends[i], want_send);
	for (size_t i = 0; i < sizeof(recvs) / sizeof(recvs[0]); i++)
		assert_int_equal(recvs[i], want_recv);
}

/* ---- Objects that are not ready -------------------------------------- */

static void test_calls_before_enable(void **state)
{
	struct ep_want want = { .disabled = true };
	struct ep *e = ep_open(&want);
	char name[64];
	size_t len = sizeof(name);

	all_calls(e, 0, -FI_EOPBADSTATE, -FI_EOPBADSTATE);
	assert_int_equal(fi_getname(&e->ep->fid, name, &len),
			 -FI_EOPBADSTATE);
	assert_int_equal(fi_cancel(&e->ep->fid, NULL), -FI_ENOENT);
}

/* A queue of an endpoint that is not enabled yet: completions of another
 * endpoint are read from it, or it is only polled. */
static void test_queue_of_an_endpoint_not_enabled(void **state)
{
	struct ep_want want = { .disabled = true, .cntrs = true,
				.wait = FI_WAIT_FD };
	struct ep *e = ep_open(&want);
	struct fi_cq_tagged_entry c;
	struct fid *fids[] = { &e->cq->fid };

	for (int i = 0; i < 100; i++)
		assert_int_equal(fi_cq_read(e->cq, &c, 1), -FI_EAGAIN);
	assert_int_equal(fi_cq_sread(e->cq, &c, 1, NULL, 20), -FI_EAGAIN);
	assert_int_equal(fi_trywait(e->fabric, fids, 1), 0);
	assert_int_equal(fi_cntr_read(e->txcntr), 0);
	assert_int_equal(fi_cntr_wait(e->rxcntr, 1, 5), -FI_ETIMEDOUT);
	/* and the endpoint can still be enabled */
	assert_int_equal(fi_enable(e->ep), 0);
	assert_int_equal(fi_cq_sread(e->cq, &c, 1, NULL, 20), -FI_EAGAIN);
}

static void test_enable_needs_vector_and_queue(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(e->domain, e->info, &ep, NULL), 0);
	assert_int_equal(fi_enable(ep), -FI_ENOAV);
	assert_int_equal(fi_ep_bind(ep, &e->av->fid, 0), 0);
	assert_int_equal(fi_enable(ep), -FI_ENOCQ);
	assert_int_equal(fi_ep_bind(ep, &e->cq->fid, FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_enable(ep), -FI_EOPBADSTATE);
	assert_int_equal(fi_close(&ep->fid), 0);
}

static void test_bind_mistakes(void **state)
{
	const struct ep_want want = { .cntrs = true };
	struct ep *e = ep_open(&want), *other = ep_open(NULL);
	struct fid_ep *ep;

	/* too late after enabling */
	assert_int_equal(fi_ep_bind(e->ep, &e->cq->fid, FI_RECV),
			 -FI_EOPBADSTATE);
	assert_int_equal(fi_ep_bind(e->ep, &e->av->fid, 0), -FI_EOPBADSTATE);

	assert_int_equal(fi_endpoint(e->domain, e->info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &e->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &e->av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &e->cq->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &e->cq->fid, FI_SELECTIVE_COMPLETION),
			 -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &e->cq->fid, FI_RECV), 0);
	assert_int_equal(fi_ep_bind(ep, &e->cq->fid, FI_RECV), -FI_EINVAL);
	/* each event has at most one counter */
	assert_int_equal(fi_ep_bind(ep, &e->txcntr->fid, FI_SEND), 0);
	assert_int_equal(fi_ep_bind(ep, &e->rxcntr->fid, FI_SEND | FI_RECV),
			 -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &e->rxcntr->fid, FI_RECV), 0);
	assert_int_equal(fi_ep_bind(ep, &e->txcntr->fid, FI_RECV), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &e->cq->fid, FI_TRANSMIT | FI_RECV),
			 -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &e->cq->fid, FI_TRANSMIT | FI_WRITE),
			 -FI_EBADFLAGS);
	assert_int_equal(fi_ep_bind(ep, &e->cq->fid, FI_TRANSMIT), 0);
	assert_int_equal(fi_ep_bind(ep, &e->domain->fid, 0), -FI_EINVAL);
	/* objects of another domain */
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_endpoint(e->domain, e->info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &other->av->fid, 0), -FI_EINVAL);
	assert_int_equal(fi_ep_bind(ep, &other->cq->fid, FI_RECV),
			 -FI_EINVAL);
	assert_int_equal(fi_close(&ep->fid), 0);
}

/* A counter whose binding failed is not used: each event has at most one. */
static void test_bind_of_too_many_counters(void **state)
{
	const struct ep_want want = { .cntrs = true };
	struct ep *e = ep_open(&want);
	struct fi_cntr_attr attr = { .events = FI_CNTR_EVENTS_COMP };
	struct fid_cntr *c[7];
	struct fid_ep *ep;

	assert_int_equal(fi_endpoint(e->domain, e->info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &e->txcntr->fid, FI_READ), 0);
	assert_int_equal(fi_ep_bind(ep, &e->rxcntr->fid, FI_READ), -FI_EINVAL);
	assert_int_equal(fi_close(&ep->fid), 0);

	assert_int_equal(fi_endpoint(e->domain, e->info, &ep, NULL), 0);
	for (int i = 0; i < 7; i++)
		assert_int_equal(fi_cntr_open(e->domain, &attr, &c[i], NULL),
				 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(fi_ep_bind(ep, &c[i]->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &c[6]->fid, FI_SEND), -FI_EINVAL);
	assert_int_equal(fi_close(&c[6]->fid), 0);
	assert_int_equal(fi_ep_bind(ep, &c[0]->fid, FI_SEND), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	for (int i = 0; i < 6; i++)
		assert_int_equal(fi_close(&c[i]->fid), 0);
}

/* An endpoint with a queue for one direction only: calls of the other direction
 * fail, and nothing crashes. */
static void test_endpoint_with_one_queue(void **state)
{
	struct ep_want tx = { .no_rxcq = true }, rx = { .no_txcq = true };
	struct ep *s = ep_open(&tx), *r = ep_open(&rx);
	fi_addr_t to = ep_insert(s, r), from = ep_insert(r, s);
	char out[8] = "", in[8];
	struct iovec iov = { out, 8 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = from };

	for (int i = 0; i < 10; i++) {
		EP_OK(fi_recv(r->ep, in, 8, NULL, from, in));
		EP_OK(fi_send(s->ep, out, 8, NULL, to, out));
		ep_received(r, in);
		ep_sent(s, out);
	}
	assert_int_equal(fi_recv(s->ep, in, 8, NULL, to, in),
			 -FI_EOPBADSTATE);
	/* sends without a queue: refused, or executed and not reported */
	EP_TRY(fi_sendmsg(r->ep, &msg, FI_COMPLETION | FI_DELIVERY_COMPLETE));
	EP_TRY(fi_send(r->ep, out, 8, NULL, from, NULL));
	EP_TRY(fi_inject(r->ep, out, 8, from));
	ep_quiet(r);
	ep_quiet(s);
}

/* ---- Closing --------------------------------------------------------- */

static void test_close_in_use_is_busy(void **state)
{
	struct ep_want want = { .cntrs = true };
	struct ep *e = ep_open(&want);
	struct fid_eq *eq;

	assert_int_equal(fi_close(&e->av->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e->cq->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e->txcntr->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e->rxcntr->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e->domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e->fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e->ep->fid), 0);
	e->ep = NULL;
	assert_int_equal(fi_close(&e->domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e->cq->fid), 0);
	e->cq = NULL;
	assert_int_equal(fi_close(&e->domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e->av->fid), 0);
	e->av = NULL;
	assert_int_equal(fi_close(&e->txcntr->fid), 0);
	e->txcntr = NULL;
	assert_int_equal(fi_close(&e->domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&e->rxcntr->fid), 0);
	e->rxcntr = NULL;
	assert_int_equal(fi_close(&e->domain->fid), 0);
	e->domain = NULL;
	assert_int_equal(fi_eq_open(e->fabric, NULL, &eq, NULL), 0);
	assert_int_equal(fi_close(&e->fabric->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&eq->fid), 0);
}

/* An endpoint with posted receives and rendezvous under way can be closed. */
static void test_close_with_operations_under_way(void **state)
{
	static char out[200000], in[200000];

	for (int polls = 0; polls < 30; polls++) {
		struct ep_pair p = ep_pair(NULL);

		for (int i = 0; i < 20; i++) {
			EP_OK(fi_trecv(p.b->ep, in, sizeof(in), NULL, p.ba, i,
				       i & 1 ? UINT64_MAX : 0, in));
			EP_OK(fi_tsend(p.a->ep, out, i % 3 ? 100 :
				       sizeof(out), NULL, p.ab, i / 2, out));
		}
		for (int i = 0; i < polls; i++)
			ep_poll(i & 1 ? p.a : p.b);
		ep_close(polls & 2 ? p.a : p.b);
		for (int i = 0; i < polls % 7; i++)
			ep_step();
		ep_teardown(NULL);
	}
}

/* Trap 10: injected messages arrive after their sender was closed, also if the
 * receiver had not polled before. */
static void test_trap10_injected_data_survives_close(void **state)
{
	enum { N = 60 };

	for (int looked = 0; looked < 2; looked++)
		for (size_t len = 8; len <= 4000; len += 1996) {
			struct ep *s = ep_open(NULL), *r = ep_open(NULL);
			fi_addr_t to = ep_insert(s, r);
			char buf[4096];
			uint64_t sent = 0;

			if (looked)
				ep_settle();
			while (sent < N) {
				memset(buf, (int)sent, len);
				if (fi_injectdata(s->ep, buf, len, sent,
						  to) != 0)
					break;
				sent++;
			}
			assert_true(sent >= 3);
			ep_close(s);
			for (uint64_t i = 0; i < sent; i++) {
				struct ep_comp c;

				EP_OK(fi_recv(r->ep, buf, len, NULL,
					      FI_ADDR_UNSPEC, buf));
				c = ep_received(r, buf);
				assert_int_equal(c.data, i);
				assert_int_equal(buf[len - 1], (char)i);
			}
			ep_close(r);
		}
}

/* Closing waits until messages that peers need are sent. It does not wait for
 * sends that were refused, or for a peer that makes no progress. */
static void test_close_waits_for_no_refused_send(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct iovec iov = { .iov_base = &p, .iov_len = 4 };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1, .addr = p.ab };
	uint64_t start;
	ssize_t ret;

	EP_OK(fi_inject(p.a->ep, &p, 4, p.ab));
	EP_OK(fi_sendmsg(p.a->ep, &msg, FI_DELIVERY_COMPLETE));
	do
		ret = fi_inject(p.a->ep, &p, 4, p.ab);
	while (ret == 0);
	assert_int_equal(ret, -FI_EAGAIN);
	start = ep_now();
	ep_close(p.a);
	assert_true(ep_now() - start < 1000000);
}

/* With 63 interfaces per board, the same interfaces are used several times. */
static void test_peers_come_and_go(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char out = 3, in;

	for (int rounds = 0; rounds < 150; rounds++) {
		struct ep *s = ep_open(NULL);

		EP_OK(fi_inject(s->ep, &out, 1, ep_insert(s, p.b)));
		ep_close(s);
		EP_OK(fi_recv(p.b->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
		ep_received(p.b, &in);
	}
	ep_quiet(p.b);
}

/* The number of descriptors in the epoll set of a queue. */
static int watched(struct fid_cq *cq)
{
	return proc_self_watched(((struct unm_cq *)cq)->wait.epfd);
}

/* A closed endpoint's descriptor is removed from the set, also if a forked
 * child has a copy of it. */
static void test_closed_endpoint_leaves_its_queue(void **state)
{
	const struct ep_want want = { .wait = FI_WAIT_FD };
	struct ep *e = ep_open(&want);
	struct fid_ep *second;
	int before, after;
	pid_t child;

	before = watched(e->cq);
	assert_int_equal(fi_endpoint(e->domain, e->info, &second, NULL), 0);
	assert_int_equal(fi_ep_bind(second, &e->av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(second, &e->cq->fid, FI_TRANSMIT |
				    FI_RECV), 0);
	assert_int_equal(fi_enable(second), 0);
	if (watched(e->cq) != before + 1)
		skip();			/* /proc of an emulator */
	child = unit_fork();
	if (child == 0) {
		sleep(60);
		_exit(0);
	}
	assert_int_equal(fi_close(&second->fid), 0);
	after = watched(e->cq);
	unit_kill(child);
	assert_int_equal(after, before);
}

/* ---- A peer that closed ---------------------------------------------- */

static void test_sends_to_a_closed_peer_fail(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(100000), in;
	struct ep_comp c;
	ssize_t ret;

	EP_OK(fi_recv(p.b->ep, &in, 1, NULL, p.ba, &in));
	EP_OK(fi_inject(p.a->ep, out, 1, p.ab));
	ep_received(p.b, &in);
	/* a rendezvous without a receive ends in one error entry */
	EP_OK(fi_tsend(p.a->ep, out, 100000, NULL, p.ab, 5, out));
	ep_settle();
	ep_close(p.b);
	c = ep_wait(p.a, out);
	assert_int_equal(c.err, FI_ECONNRESET);
	assert_int_equal(c.flags, FI_SEND | FI_TAGGED);
	/* later sends fail at once */
	ret = EP_TRY(fi_send(p.a->ep, out, 8, NULL, p.ab, out));
	assert_int_equal(ret, -FI_ECONNRESET);
	assert_int_equal(fi_tinject(p.a->ep, out, 4000, p.ab, 1),
			 -FI_ECONNRESET);
	assert_int_equal(fi_tsend(p.a->ep, out, 100000, NULL, p.ab, 1, out),
			 -FI_ECONNRESET);
	ep_quiet(p.a);
}

/* A stale address must not reach the next owner of the interface. */
static void test_stale_address_meets_nobody(void **state)
{
	struct ep *a = ep_open(NULL), *b = ep_open(NULL);
	char name[64], name2[64], c = 0;
	uint64_t end = ep_deadline();
	size_t len = sizeof(name);
	fi_addr_t to;
	ssize_t ret;

	assert_int_equal(fi_getname(&b->ep->fid, name, &len), 0);
	ep_close(b);
	for (int i = 0; i < 9; i++) {
		b = ep_open(NULL);
		assert_int_equal(fi_getname(&b->ep->fid, name2, &len), 0);
		assert_memory_not_equal(name, name2, len);
	}
	assert_int_equal(fi_av_insert(a->av, name, 1, &to, 0, NULL), 1);
	/* sends are accepted until the refusal is known */
	do {
		ret = fi_inject(a->ep, &c, 1, to);
		ep_step();
		ep_in_time(end, "refusal");
	} while (ret == 0 || ret == -FI_EAGAIN);
	EP_OK(fi_recv(b->ep, &c, 1, NULL, FI_ADDR_UNSPEC, &c));
	ep_quiet(b);
}

/* ---- Attributes ------------------------------------------------------ */

static void test_attributes_that_are_not_offered(void **state)
{
	struct ep *e = ep_open(NULL);
	struct fi_cq_attr cq = { .wait_obj = FI_WAIT_SET };
	struct fi_cntr_attr cntr = { .wait_obj = FI_WAIT_SET };
	struct fid_cq *q;
	struct fid_cntr *c;
	struct fi_info *bad;
	struct fid_ep *ep;

	/* without a wait set */
	assert_int_equal(fi_cq_open(e->domain, &cq, &q, NULL), -FI_EINVAL);
	cq = (struct fi_cq_attr){ .format = 99 };
	assert_int_equal(fi_cq_open(e->domain, &cq, &q, NULL), -FI_ENOSYS);
	cq = (struct fi_cq_attr){ .size = SIZE_MAX };
	assert_true(fi_cq_open(e->domain, &cq, &q, NULL) < 0);
	assert_int_equal(fi_cntr_open(e->domain, &cntr, &c, NULL),
			 -FI_EINVAL);
	cntr = (struct fi_cntr_attr){ .wait_obj = 99 };
	assert_int_equal(fi_cntr_open(e->domain, &cntr, &c, NULL),
			 -FI_ENOSYS);
	cntr = (struct fi_cntr_attr){ .events = 99 };
	assert_int_equal(fi_cntr_open(e->domain, &cntr, &c, NULL),
			 -FI_ENOSYS);
	bad = fi_dupinfo(e->info);
	bad->ep_attr->type = FI_EP_MSG;
	assert_true(fi_endpoint(e->domain, bad, &ep, NULL) < 0);
	fi_freeinfo(bad);
	/* valid attributes: size 0 is the default, as are no attributes */
	cq = (struct fi_cq_attr){ .size = 0 };
	assert_int_equal(fi_cq_open(e->domain, &cq, &q, NULL), 0);
	assert_true(cq.size > 0);
	assert_int_equal(cq.format, FI_CQ_FORMAT_CONTEXT);
	assert_int_equal(fi_close(&q->fid), 0);
	assert_int_equal(fi_cntr_open(e->domain, NULL, &c, NULL), 0);
	assert_int_equal(fi_close(&c->fid), 0);
}

/* A changed offer is refused by fi_endpoint(): an endpoint that promises more
 * than was offered would be disconnected by its peers later. */
static void test_endpoint_asks_for_more_than_was_offered(void **state)
{
	struct ep *e = ep_open(NULL);
	const struct fi_tx_attr tx = *e->info->tx_attr;
	const struct fi_rx_attr rx = *e->info->rx_attr;
	struct fi_info *info = fi_dupinfo(e->info);
	struct fid_ep *ep;

	for (int i = 0; i < 7; i++) {
		*info->tx_attr = tx;
		*info->rx_attr = rx;
		info->ep_attr->tx_ctx_cnt = i == 6 ? FI_SHARED_CONTEXT : 1;
		if (i == 0)
			info->tx_attr->inject_size = UNM_INJECT_MAX + 1;
		else if (i == 1)
			info->tx_attr->size = UINT64_C(1) << 32;
		else if (i == 2)
			info->tx_attr->iov_limit = UNM_IOV_MAX + 1;
		else if (i == 3)
			info->tx_attr->op_flags = FI_MULTI_RECV;
		else if (i == 4)
			info->rx_attr->size = SIZE_MAX;
		else if (i == 5)
			info->rx_attr->comp_order = FI_ORDER_STRICT;
		assert_int_equal(fi_endpoint(e->domain, info, &ep, NULL),
				 -FI_EINVAL);
	}
	/* less than offered is valid */
	info->ep_attr->tx_ctx_cnt = 1;
	*info->rx_attr = rx;
	info->tx_attr->inject_size = 0;
	info->tx_attr->size = 1;
	assert_int_equal(fi_endpoint(e->domain, info, &ep, NULL), 0);
	assert_int_equal(fi_close(&ep->fid), 0);
	fi_freeinfo(info);
}

static void test_what_is_not_there_says_so(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	size_t size = 1;
	struct fid_pep *pep;
	struct fid_ep *sep;

	assert_int_equal(fi_passive_ep(p.a->fabric, p.a->info, &pep, NULL),
			 -FI_ENOSYS);
	assert_int_equal(fi_scalable_ep(p.a->domain, p.a->info, &sep, NULL),
			 -FI_ENOSYS);
	assert_int_equal(fi_getpeer(p.a->ep, &size, &size), -FI_ENOSYS);
	assert_int_equal(fi_shutdown(p.a->ep, 0), -FI_ENOSYS);
}

static void test_getname(void **state)
{
	struct ep *e = ep_open(NULL);
	char name[64], part[3];
	size_t len = 3;

	memset(name, 7, sizeof(name));
	assert_int_equal(fi_getname(&e->ep->fid, name, &len), -FI_ETOOSMALL);
	assert_true(len > 3 && len <= 64);	/* trap 9: names have at most 64
						 * bytes */
	assert_int_equal(name[3], 7);		/* filled as far as it fits */
	memcpy(part, name, 3);
	assert_int_equal(fi_getname(&e->ep->fid, name, &len), 0);
	assert_memory_equal(part, name, 3);
	assert_int_equal(name[len], 7);
	len = 0;
	assert_int_equal(fi_getname(&e->ep->fid, NULL, &len), -FI_ETOOSMALL);
}

/* ---- Several endpoints in one domain --------------------------------- */

static void test_endpoints_of_one_domain(void **state)
{
	struct ep *host = ep_open(NULL);
	struct ep_want want = { .with = host };
	struct ep *e[4] = { host };
	fi_addr_t addr[4];
	uint32_t in[4][4];

	for (int i = 1; i < 4; i++)
		e[i] = ep_open(&want);
	for (int i = 0; i < 4; i++)
		addr[i] = ep_insert(host, e[i]);
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t k = 0; k < 4; k++) {
			uint32_t out = 10 * i + k;

			EP_OK(fi_trecv(e[k]->ep, &in[i][k], 4, NULL, addr[i],
				       i, 0, &in[i][k]));
			EP_OK(fi_tinject(e[i]->ep, &out, 4, addr[k], i));
		}
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t k = 0; k < 4; k++) {
			assert_int_equal(ep_received(e[k], &in[i][k]).src,
					 addr[i]);
			assert_int_equal(in[i][k], 10 * i + k);
		}
	for (int i = 0; i < 4; i++)
		ep_quiet(e[i]);
}

UNIT_MAIN(
	EP_TEST(test_calls_before_enable),
	EP_TEST(test_queue_of_an_endpoint_not_enabled),
	EP_TEST(test_enable_needs_vector_and_queue),
	EP_TEST(test_bind_mistakes),
	EP_TEST(test_bind_of_too_many_counters),
	EP_TEST(test_endpoint_with_one_queue),
	EP_TEST(test_close_in_use_is_busy),
	EP_TEST(test_close_with_operations_under_way),
	EP_TEST(test_trap10_injected_data_survives_close),
	EP_TEST(test_close_waits_for_no_refused_send),
	EP_TEST(test_peers_come_and_go),
	EP_TEST_INSIDE(test_closed_endpoint_leaves_its_queue),
	EP_TEST(test_sends_to_a_closed_peer_fail),
	EP_TEST(test_stale_address_meets_nobody),
	EP_TEST(test_attributes_that_are_not_offered),
	EP_TEST(test_endpoint_asks_for_more_than_was_offered),
	EP_TEST(test_what_is_not_there_says_so),
	EP_TEST(test_getname),
	EP_TEST(test_endpoints_of_one_domain),
)
