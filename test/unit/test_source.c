/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_source.c - FI_SOURCE_ERR: a message of a sender that is not in the
 * address vector completes with the sender's address, on every data path.
 */
#include <malloc.h>

#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "hal/hal.h"
#include "lib/ep_pair.h"

#define BIG	200000			/* bytes: rendezvous */

/* a asks for FI_SOURCE_ERR and does not have b in its address vector; b has
 * a. */
struct meeting {
	struct ep *a, *b;
	struct hal_addr b_name;
	fi_addr_t ba;
};

static struct meeting meeting(const struct ep_want *like)
{
	struct ep_want want = like != NULL ? *like : (struct ep_want){ 0 };
	struct fi_info *info;
	struct meeting m;
	size_t len = sizeof(m.b_name);

	assert_int_equal(ep_getinfo(NULL, &info), 0);
	assert_false(info->caps & FI_SOURCE_ERR);
	want.caps = info->caps | FI_SOURCE_ERR;
	fi_freeinfo(info);
	m.a = ep_open(&want);
	m.b = ep_open(NULL);
	assert_true(m.a->info->caps & FI_SOURCE_ERR);
	m.ba = ep_insert(m.b, m.a);
	assert_int_equal(fi_getname(&m.b->ep->fid, &m.b_name, &len), 0);
	return m;
}

/* Repeats the call until it is accepted, without reading a's queue. */
#define GOES(m, call)	do {						\
		uint64_t goes_end = ep_deadline();			\
		ssize_t goes_ret;					\
		while ((goes_ret = (call)) == -FI_EAGAIN) {		\
			ep_poll((m)->b);				\
			fi_cq_read((m)->a->cq, NULL, 0);		\
			ep_in_time(goes_end, #call);			\
		}							\
		assert_int_equal(goes_ret, 0);				\
	} while (0)

/* Reads the next entry of a, which must be an error. */
static struct fi_cq_err_entry next_error(struct meeting *m, void *data,
					 size_t size)
{
	struct fi_cq_err_entry err = {
		.err_data = data, .err_data_size = size,
	};
	struct fi_cq_tagged_entry e;
	uint64_t end = ep_deadline();
	ssize_t n;

	while ((n = fi_cq_read(m->a->cq, &e, 1)) == -FI_EAGAIN) {
		ep_poll(m->b);
		ep_in_time(end, "error entry");
	}
	assert_int_equal(n, -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(m->a->cq, &err, 0), 1);
	return err;
}

/* The next entry reports a message that was received in full, by its error. */
static void check_error(struct meeting *m, void *context, uint64_t flags,
			size_t len, uint64_t tag, uint64_t data)
{
	struct hal_addr from[2];
	struct fi_cq_err_entry err;

	memset(from, 0x55, sizeof(from));
	err = next_error(m, from, sizeof(from));
	assert_int_equal(err.err, FI_EADDRNOTAVAIL);
	assert_ptr_equal(err.op_context, context);
	assert_int_equal(err.flags, flags);
	assert_int_equal(err.len, len);
	assert_int_equal(err.olen, 0);
	assert_int_equal(err.tag, tag);
	assert_int_equal(err.data, data);
	assert_ptr_equal(err.err_data, from);
	assert_int_equal(err.err_data_size, sizeof(m->b_name));
	assert_memory_equal(from, &m->b_name, sizeof(m->b_name));
	assert_int_equal(((uint8_t *)from)[sizeof(m->b_name)], 0x55);
}

/* ---- Every data path ------------------------------------------------- */

static void test_unresolved_by_every_protocol(void **state)
{
	static const size_t lens[] = { 0, 8, 60, 4000, 16384, BIG };
	struct meeting m = meeting(NULL);
	char *out = ep_alloc(BIG), *in = ep_alloc(BIG);

	for (int late = 0; late < 2; late++)
		for (size_t i = 0; i < 6; i++) {
			memset(out, (int)i + 1, BIG);
			memset(in, 0, BIG);
			if (!late)
				GOES(&m, fi_trecv(m.a->ep, in, BIG, NULL,
						  FI_ADDR_UNSPEC, 7, 0, in));
			GOES(&m, fi_tsenddata(m.b->ep, out, lens[i], NULL, 99,
					      m.ba, 7, out));
			for (int k = 0; late && k < 50; k++)
				fi_cq_read(m.a->cq, NULL, 0);
			if (late)
				GOES(&m, fi_trecv(m.a->ep, in, BIG, NULL,
						  FI_ADDR_UNSPEC, 7, 0, in));
			check_error(&m, in, FI_RECV | FI_TAGGED |
				    FI_REMOTE_CQ_DATA, lens[i], 7, 99);
			assert_memory_equal(in, out, lens[i]);
			ep_sent(m.b, out);
		}
}

static void test_unresolved_and_multi_receive(void **state)
{
	struct meeting m = meeting(NULL);
	char buf[200], out[60] = "";
	struct iovec iov = { buf, sizeof(buf) };
	struct fi_msg msg = { .msg_iov = &iov, .iov_count = 1,
			      .addr = FI_ADDR_UNSPEC, .context = buf };

	GOES(&m, fi_recvmsg(m.a->ep, &msg, FI_MULTI_RECV | FI_COMPLETION));
	for (int i = 0; i < 3; i++) {
		struct hal_addr from;
		struct fi_cq_err_entry err;

		GOES(&m, fi_inject(m.b->ep, out, sizeof(out), m.ba));
		err = next_error(&m, &from, sizeof(from));
		assert_int_equal(err.err, FI_EADDRNOTAVAIL);
		assert_ptr_equal(err.buf, buf + i * sizeof(out));
		/* 20 bytes are left: the third message releases the buffer */
		assert_int_equal(err.flags, FI_RECV | FI_MSG |
				 (i == 2 ? FI_MULTI_RECV : 0));
		assert_memory_equal(&from, &m.b_name, sizeof(from));
	}
}

/* A message is peeked at, its sender inserted, then claimed: its completion has
 * the sender's fi_addr_t. */
static void test_peek_then_insert_then_claim(void **state)
{
	struct meeting m = meeting(NULL);
	struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = 7,
				     .context = &m };
	char in = 0, out = 5;
	struct iovec iov = { &in, 1 };
	struct hal_addr from;
	struct fi_cq_err_entry err;
	fi_addr_t ab;

	GOES(&m, fi_tinject(m.b->ep, &out, 1, m.ba, 7));
	do {
		GOES(&m, fi_trecvmsg(m.a->ep, &msg, FI_PEEK | FI_CLAIM |
				     FI_COMPLETION));
		err = next_error(&m, &from, sizeof(from));
	} while (err.err == FI_ENOMSG);
	assert_int_equal(err.err, FI_EADDRNOTAVAIL);
	assert_int_equal(err.len, 1);
	assert_memory_equal(&from, &m.b_name, sizeof(from));
	assert_int_equal(fi_av_insert(m.a->av, &from, 1, &ab, 0, NULL), 1);
	msg.msg_iov = &iov;
	msg.iov_count = 1;
	EP_OK(fi_trecvmsg(m.a->ep, &msg, FI_CLAIM | FI_COMPLETION));
	assert_int_equal(ep_received(m.a, &m).src, ab);
	assert_int_equal(in, 5);
}

/* A peer that was reported and inserted is resolved until it is removed. */
static void test_inserted_from_the_error(void **state)
{
	struct meeting m = meeting(NULL);
	char in, out = 5;

	for (int i = 0; i < 3; i++) {
		struct hal_addr from;
		struct fi_cq_err_entry err;
		fi_addr_t ab;

		EP_OK(fi_recv(m.a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
		GOES(&m, fi_inject(m.b->ep, &out, 1, m.ba));
		err = next_error(&m, &from, sizeof(from));
		assert_int_equal(err.err, FI_EADDRNOTAVAIL);
		assert_int_equal(fi_av_insert(m.a->av, &from, 1, &ab, 0, NULL),
				 1);
		EP_OK(fi_recv(m.a->ep, &in, 1, NULL, ab, &in));
		EP_OK(fi_inject(m.b->ep, &out, 1, m.ba));
		assert_int_equal(ep_received(m.a, &in).src, ab);
		assert_int_equal(fi_av_remove(m.a->av, &ab, 1, 0), 0);
	}
}

/* The sender of a stored message is gone: the message is all that refers to its
 * object, and a discard of the message frees the object. */
static void test_discard_of_the_last_message_of_a_dead_sender(void **state)
{
	/* freed memory is overwritten, also without AddressSanitizer */
	mallopt(M_PERTURB, 0x5a);
	for (int claimed = 0; claimed < 2; claimed++) {
		struct meeting m = meeting(NULL);
		struct fi_msg_tagged msg = { .addr = FI_ADDR_UNSPEC, .tag = 7,
					     .context = &m };
		struct unm_stats *stats = ((struct unm_ep *)m.a->ep)->stats;

		GOES(&m, fi_tinject(m.b->ep, "12345", 5, m.ba, 7));
		do {
			GOES(&m, fi_trecvmsg(m.a->ep, &msg, FI_PEEK));
		} while (next_error(&m, NULL, 0).err == FI_ENOMSG);
		ep_close(m.b);
		EP_UNTIL(stats->deaths == 1);
		EP_OK(fi_trecvmsg(m.a->ep, &msg, FI_COMPLETION | FI_PEEK |
				  (claimed ? FI_CLAIM : FI_DISCARD)));
		check_error(&m, &m, FI_RECV | FI_TAGGED, 5, 7, 0);
		if (claimed) {
			EP_OK(fi_trecvmsg(m.a->ep, &msg, FI_COMPLETION |
					  FI_CLAIM | FI_DISCARD));
			check_error(&m, &m, FI_RECV | FI_TAGGED, 5, 7, 0);
		}
		ep_quiet(m.a);
		ep_close(m.a);
	}
}

/* ---- Entries --------------------------------------------------------- */

/* A caller's buffer of any size; the provider's, if there is none. */
static void test_trap5_room_for_the_address(void **state)
{
	struct meeting m = meeting(NULL);
	char in, out = 5;

	for (size_t room = 0; room <= sizeof(m.b_name) + 8; room++) {
		uint8_t data[64];
		struct fi_cq_err_entry err;
		size_t n = room < sizeof(m.b_name) ? room : sizeof(m.b_name);

		memset(data, 0x55, sizeof(data));
		EP_OK(fi_recv(m.a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
		GOES(&m, fi_inject(m.b->ep, &out, 1, m.ba));
		err = next_error(&m, data, room);
		assert_int_equal(err.err_data_size, n);
		for (size_t i = n; i < sizeof(data); i++)
			assert_int_equal(data[i], 0x55);
		if (room != 0) {
			assert_ptr_equal(err.err_data, data);
			assert_memory_equal(data, &m.b_name, n);
		} else {
			assert_ptr_not_equal(err.err_data, data);
			assert_memory_equal(err.err_data, &m.b_name,
					    sizeof(m.b_name));
		}
	}
}

static void test_address_for_an_older_caller(void **state)
{
	struct meeting m = meeting(NULL);
	struct fi_cq_err_entry err;
	char in, out = 5, data[64];

	m.a->fabric->api_version = FI_VERSION(1, 4);
	EP_OK(fi_recv(m.a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	GOES(&m, fi_inject(m.b->ep, &out, 1, m.ba));
	err = next_error(&m, data, SIZE_MAX);
	assert_ptr_not_equal(err.err_data, data);
	assert_memory_equal(err.err_data, &m.b_name, sizeof(m.b_name));
	assert_int_equal(err.err_data_size, SIZE_MAX);	/* this API version has
							 * no such field */
}

/* Completions, entries of unresolved peers and cancelled receives keep their
 * order, also if the queue must grow. */
static void test_order_among_the_others(void **state)
{
	enum { N = 600 };
	struct ep_want want = { .cq_size = 4096, .cntrs = true };
	struct meeting m = meeting(&want);
	struct ep *c = ep_open(NULL);
	fi_addr_t ca = ep_insert(c, m.a), ac = ep_insert(m.a, c);
	static char in[N], out;
	uint64_t got = 0;

	for (int i = 0; i < N; i++) {
		struct ep *from = i % 3 == 0 ? c : m.b;
		uint64_t end = ep_deadline();
		ssize_t ret;

		/* the queue is not read meanwhile */
		assert_int_equal(fi_trecv(m.a->ep, &in[i], 1, NULL,
					  FI_ADDR_UNSPEC, i, 0, &in[i]), 0);
		if (i % 3 == 2) {
			assert_int_equal(fi_cancel(&m.a->ep->fid, &in[i]), 0);
			continue;
		}
		do {
			ret = fi_tinject(from->ep, &out, 1, i % 3 == 0 ? ca :
					 m.ba, i);
			fi_cq_read(from->cq, NULL, 0);
			fi_cq_read(m.a->cq, NULL, 0);
			ep_in_time(end, "message");
		} while (ret == -FI_EAGAIN);
		assert_int_equal(ret, 0);
		for (got++; fi_cntr_read(m.a->rxcntr) != got; )
			ep_in_time(end, "message");
	}
	for (int i = 0; i < N; i++) {
		struct fi_cq_tagged_entry e;
		fi_addr_t src;

		if (i % 3 == 0) {
			assert_int_equal(fi_cq_readfrom(m.a->cq, &e, 1, &src),
					 1);
			assert_ptr_equal(e.op_context, &in[i]);
			assert_int_equal(src, ac);
		} else if (i % 3 == 1) {
			check_error(&m, &in[i], FI_RECV | FI_TAGGED, 1, i, 0);
		} else {
			struct hal_addr from = { .nonce = 5 };
			struct fi_cq_err_entry err = next_error(&m, &from,
								sizeof(from));

			assert_int_equal(err.err, FI_ECANCELED);
			assert_ptr_equal(err.op_context, &in[i]);
			assert_int_equal(err.err_data_size, 0);
			assert_int_equal(from.nonce, 5);
		}
	}
	ep_quiet(m.a);
}

/* ---- Other entries --------------------------------------------------- */

/* Such a message counts as received. A truncated message has an error of its
 * own. */
static void test_counters_and_truncation(void **state)
{
	struct ep_want want = { .cntrs = true };
	struct meeting m = meeting(&want);
	struct fi_cq_err_entry err;
	char in, out[8] = "";

	EP_OK(fi_recv(m.a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	GOES(&m, fi_inject(m.b->ep, out, 1, m.ba));
	check_error(&m, &in, FI_RECV | FI_MSG, 1, 0, 0);
	assert_int_equal(fi_cntr_read(m.a->rxcntr), 1);
	assert_int_equal(fi_cntr_readerr(m.a->rxcntr), 0);
	EP_OK(fi_recv(m.a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	GOES(&m, fi_inject(m.b->ep, out, 8, m.ba));
	err = next_error(&m, NULL, 0);
	assert_int_equal(err.err, FI_ETRUNC);
	assert_int_equal(err.olen, 7);
	assert_int_equal(fi_cntr_read(m.a->rxcntr), 1);
	assert_int_equal(fi_cntr_readerr(m.a->rxcntr), 1);
}

/* A receive without FI_COMPLETION reports nothing for an unresolved peer
 * either. */
static void test_no_entry_where_none_is_wanted(void **state)
{
	struct ep_want want = { .cq_flags = FI_SELECTIVE_COMPLETION,
				.cntrs = true };
	struct meeting m = meeting(&want);
	char in, out = 1;

	EP_OK(fi_recv(m.a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	GOES(&m, fi_inject(m.b->ep, &out, 1, m.ba));
	EP_UNTIL(fi_cntr_read(m.a->rxcntr) == 1);
	ep_quiet(m.a);
}

/* Without the capability it completes like any other message. */
static void test_unresolved_without_the_capability(void **state)
{
	struct ep *a = ep_open(NULL), *b = ep_open(NULL);
	fi_addr_t ba = ep_insert(b, a);
	char in, out = 5;

	EP_OK(fi_recv(a->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	EP_OK(fi_inject(b->ep, &out, 1, ba));
	assert_int_equal(ep_received(a, &in).src, FI_ADDR_NOTAVAIL);
}

UNIT_MAIN(
	EP_TEST(test_unresolved_by_every_protocol),
	EP_TEST(test_unresolved_and_multi_receive),
	EP_TEST(test_peek_then_insert_then_claim),
	EP_TEST(test_inserted_from_the_error),
	EP_TEST_INSIDE(test_discard_of_the_last_message_of_a_dead_sender),
	EP_TEST(test_trap5_room_for_the_address),
	EP_TEST_INSIDE(test_address_for_an_older_caller),
	EP_TEST(test_order_among_the_others),
	EP_TEST(test_counters_and_truncation),
	EP_TEST(test_no_entry_where_none_is_wanted),
	EP_TEST(test_unresolved_without_the_capability),
)
