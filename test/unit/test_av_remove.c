/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_av_remove.c - removal from address vectors: operations that were waiting
 * for the removed address, the source that completions report afterwards, and
 * indices that are used again.
 */
#include "lib/ep_av.h"
#include "lib/ep_work.h"
#include "lib/ep_xfer.h"

/* Many removals at once, and many nonces of one interface one after the other:
 * a removed address costs nothing. */
static void test_removal_is_quick(void **state)
{
	uint32_t n = UNIT_SLOW ? 50000 : 200000;
	struct ep *e = ep_open(NULL);
	struct hal_addr *a = ep_alloc(n * sizeof(*a));
	fi_addr_t *addr = ep_alloc(n * sizeof(*addr)), one;
	double start = unit_cpu_seconds();

	for (uint32_t i = 0; i < n; i++)
		a[i] = made_up(i);
	assert_int_equal(fi_av_insert(e->av, a, n, addr, 0, NULL), n);
	assert_int_equal(fi_av_remove(e->av, addr, n, 0), 0);
	assert_true(unit_cpu_seconds() - start < 8);
	for (uint32_t i = 0; i < n && unit_cpu_seconds() - start < 16; i++) {
		a[0].nonce = i + 1;
		assert_int_equal(fi_av_insert(e->av, a, 1, &one, 0, NULL), 1);
		assert_int_equal(fi_av_remove(e->av, &one, 1, 0), 0);
	}
	assert_true(unit_cpu_seconds() - start < 16);
}

/* unimem://board:interface is removed: peers that it named are named by their
 * full addresses again. */
static void test_removal_of_a_name_for_all(void **state)
{
	struct ep *a = ep_open(NULL), *b = ep_open(NULL);
	struct hal_addr name = name_of(b), other = name;
	fi_addr_t typed, old, exact, from = ep_insert(b, a);
	char node[64], in;

	snprintf(node, sizeof(node), "unimem://%u:%u", name.board, name.iface);
	assert_int_equal(fi_av_insertsvc(a->av, node, NULL, &typed, 0, NULL),
			 1);
	other.nonce ^= 1;
	assert_int_equal(fi_av_insert(a->av, &other, 1, &old, 0, NULL), 1);
	exact = ep_insert(a, b);
	assert_int_equal(source_seen(b, from, a), typed);
	assert_int_equal(fi_av_remove(a->av, &typed, 1, 0), 0);
	assert_int_equal(source_seen(b, from, a), exact);
	EP_OK(fi_recv(a->ep, &in, 1, NULL, old, &old));
	EP_OK(fi_recv(a->ep, &in, 1, NULL, exact, &exact));
	EP_OK(fi_inject(b->ep, &in, 1, from));
	assert_int_equal(ep_received(a, &exact).src, exact);
	ep_quiet(a);
}

/* Receives from a name for all do not match messages of a peer that is named by
 * its full address. Once that is removed they do, and take the messages that
 * are stored: later messages do not overtake these. */
static void test_stored_messages_of_the_next_name(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct hal_addr name = name_of(p.a);
	fi_addr_t typed;
	char node[64], in[7], out;
	size_t min = 1;
	struct iovec iov = { &in[4], 3 };
	struct fi_msg multi = { .msg_iov = &iov, .iov_count = 1,
				.context = &iov };

	snprintf(node, sizeof(node), "unimem://%u:%u", name.board, name.iface);
	assert_int_equal(fi_av_insertsvc(p.b->av, node, NULL, &typed, 0, NULL),
			 1);
	multi.addr = typed;
	EP_OK(fi_setopt(&p.b->ep->fid, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV,
			&min, sizeof(min)));
	for (out = 0; out < 2; out++) {
		EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
		EP_OK(fi_tinject(p.a->ep, &out, 1, p.ab, 7));
	}
	ep_settle();
	EP_OK(fi_trecv(p.b->ep, &in[0], 1, NULL, typed, 7, 0, &in[0]));
	EP_OK(fi_trecv(p.b->ep, &in[1], 1, NULL, typed, 6, 1, &in[1]));
	EP_OK(fi_trecv(p.b->ep, &in[2], 1, NULL, typed, 7, 0, &in[2]));
	EP_OK(fi_recv(p.b->ep, &in[3], 1, NULL, typed, &in[3]));
	EP_OK(fi_recvmsg(p.b->ep, &multi, FI_MULTI_RECV));
	ep_quiet(p.b);
	assert_int_equal(fi_av_remove(p.b->av, &p.ba, 1, 0), 0);
	EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
	EP_OK(fi_tinject(p.a->ep, &out, 1, p.ab, 7));
	for (int i = 0; i < 4; i++)
		assert_int_equal(ep_received(p.b, &in[i]).src, typed);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ep_received(p.b, &iov).src, typed);
	for (int i = 0; i < 3; i++)
		assert_int_equal(in[i], i);
	for (int i = 3; i < 6; i++)
		assert_int_equal(in[i], i - 3);
}

/* A full address (with nonce) reaches that holder of the interface or none,
 * also if another index stands for any holder. */
static void test_exact_beside_a_name_for_all(void **state)
{
	struct ep *a = ep_open(NULL), *b = ep_open(NULL);
	struct hal_addr name = name_of(b), other = name;
	uint64_t end = ep_deadline();
	fi_addr_t typed, old;
	char node[64], c = 0;
	ssize_t ret;

	snprintf(node, sizeof(node), "unimem://%u:%u", name.board, name.iface);
	assert_int_equal(fi_av_insertsvc(a->av, node, NULL, &typed, 0, NULL),
			 1);
	other.nonce ^= 1;
	assert_int_equal(fi_av_insert(a->av, &other, 1, &old, 0, NULL), 1);
	do {
		ret = fi_inject(a->ep, &c, 1, old);
		ep_step();
		ep_in_time(end, "refusal");
	} while (ret == 0 || ret == -FI_EAGAIN);
	ep_insert(b, a);
	ep_settle();
	EP_OK(fi_recv(b->ep, &c, 1, NULL, FI_ADDR_UNSPEC, &c));
	ep_quiet(b);
	assert_int_equal(fi_cancel(&b->ep->fid, &c), 0);
	assert_int_equal(ep_wait(b, &c).err, FI_ECANCELED);
	source_seen(a, typed, b);
}

/* The address of any holder reaches the next holder when the last one is
 * gone. */
static void test_name_for_all_outlives_its_holder(void **state)
{
	struct ep *a = ep_open(NULL), *b = ep_open(NULL), *c;
	struct hal_addr name = name_of(b);
	uint64_t end = ep_deadline();
	fi_addr_t typed, dup;
	char node[64], in, out = 3;
	ssize_t ret;

	snprintf(node, sizeof(node), "unimem://%u:%u", name.board, name.iface);
	assert_int_equal(fi_av_insertsvc(a->av, node, NULL, &typed, 0, NULL),
			 1);
	assert_int_equal(fi_av_insertsvc(a->av, node, NULL, &dup, 0, NULL), 1);
	ep_insert(b, a);
	source_seen(a, typed, b);
	source_seen(a, dup, b);
	/* a message of the first holder is not received yet */
	EP_OK(fi_tinject(b->ep, &out, 1, 0, 7));
	ep_settle();
	ep_close(b);
	do {				/* until a knows of the end */
		ret = fi_inject(a->ep, &in, 1, typed);
		ep_step();
		ep_in_time(end, "death of the first");
	} while (ret == 0 || ret == -FI_EAGAIN);
	for (;;) {
		c = ep_open(NULL);
		if (name_of(c).iface == name.iface)
			break;
		ep_close(c);
		ep_in_time(end, "the same interface");
	}
	ep_insert(c, a);
	source_seen(a, typed, c);
	source_seen(a, dup, c);
	assert_int_equal(source_seen(c, 0, a), typed);
	EP_OK(fi_trecv(a->ep, &in, 1, NULL, typed, 7, 0, &in));
	assert_int_equal(ep_received(a, &in).src, typed);
	assert_int_equal(in, 3);
}

static void test_removed_is_gone(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct hal_addr got;
	size_t len = sizeof(got);
	fi_addr_t again;
	char c = 0;

	assert_int_equal(source_seen(p.a, p.ab, p.b), p.ba);
	assert_int_equal(fi_av_remove(p.a->av, &p.ab, 1, 0), 0);
	assert_int_equal(fi_av_lookup(p.a->av, p.ab, &got, &len), -FI_EINVAL);
	assert_int_equal(fi_send(p.a->ep, &c, 1, NULL, p.ab, &c), -FI_EINVAL);
	assert_int_equal(fi_recv(p.a->ep, &c, 1, NULL, p.ab, &c), -FI_EINVAL);
	assert_int_equal(fi_av_remove(p.a->av, &p.ab, 1, 0), -FI_EINVAL);
	assert_int_equal(fi_av_remove(p.a->av, &(fi_addr_t){ 99 }, 1, 0),
			 -FI_EINVAL);
	/* the sender is not in the address vector any more */
	assert_int_equal(source_seen(p.b, p.ba, p.a), FI_ADDR_NOTAVAIL);
	/* inserted again: the lowest free index, which is the old one */
	again = ep_insert(p.a, p.b);
	assert_int_equal(again, p.ab);
	assert_int_equal(source_seen(p.a, again, p.b), p.ba);
	assert_int_equal(source_seen(p.b, p.ba, p.a), again);
}

/* A removed index is used again, the lowest first: pairs of insertions and
 * removals need no memory. */
static void test_the_lowest_free_index(void **state)
{
	enum { N = 1000 };
	static const fi_addr_t gone[] = { 999, 64, 63, 0, 500, 1 };
	static const fi_addr_t again[] = { 0, 1, 63, 64, 500, 999, 1000 };
	struct ep *e = ep_open(NULL);
	struct hal_addr a[N];
	fi_addr_t addr[N];

	for (uint32_t i = 0; i < N; i++)
		a[i] = made_up(i);
	for (int i = 0; i < 100000; i++) {
		assert_int_equal(fi_av_insert(e->av, a, 1, addr, 0, NULL), 1);
		assert_int_equal(addr[0], 0);
		assert_int_equal(fi_av_remove(e->av, addr, 1, 0), 0);
	}
	assert_int_equal(fi_av_insert(e->av, a, N, addr, 0, NULL), N);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(addr[i], i);
	for (int i = 0; i < 6; i++)
		assert_int_equal(fi_av_remove(e->av, &(fi_addr_t){ gone[i] },
					      1, 0), 0);
	for (int i = 0; i < 7; i++) {
		struct hal_addr got;
		size_t len = sizeof(got);

		a[0] = made_up(N + i);
		assert_int_equal(fi_av_insert(e->av, a, 1, addr, 0, NULL), 1);
		assert_int_equal(addr[0], again[i]);
		assert_int_equal(fi_av_lookup(e->av, again[i], &got, &len), 0);
		assert_memory_equal(&got, a, sizeof(got));
	}
}

/* Of two indices of an address, the one that was inserted first names it, also
 * if the later one is lower, and if the table has grown meanwhile. */
static void test_a_lower_index_is_not_an_earlier_name(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct hal_addr a[300], zero = made_up(1);
	fi_addr_t low, high;

	for (uint32_t i = 0; i < 300; i++)
		a[i] = made_up(i);
	assert_int_equal(fi_av_remove(p.b->av, &p.ba, 1, 0), 0);
	assert_int_equal(fi_av_insert(p.b->av, &zero, 1, &low, 0, NULL), 1);
	high = ep_insert(p.b, p.a);
	assert_int_equal(fi_av_remove(p.b->av, &low, 1, 0), 0);
	assert_true(ep_insert(p.b, p.a) < high);
	assert_int_equal(fi_av_insert(p.b->av, a, 300, NULL, 0, NULL), 300);
	assert_int_equal(source_seen(p.a, p.ab, p.b), high);
	assert_int_equal(fi_av_remove(p.b->av, &high, 1, 0), 0);
	assert_int_equal(source_seen(p.a, p.ab, p.b), low);
}

/* A receive that was posted for, or a completion that came from, a removed
 * address does not become that of the address which has the index now. */
static void test_a_used_index_again(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct ep *c = ep_open(NULL);
	fi_addr_t from_c = ep_insert(c, p.b), src = 0, other;
	struct fi_cq_tagged_entry e;
	char in[4], out = 6;
	uint64_t end = ep_deadline();

	/* an unread completion: fi_cq_read() of 0 entries polls */
	EP_OK(fi_recv(p.b->ep, &in[0], 1, NULL, p.ba, &in[0]));
	EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
	for (int i = 0; i < 2000; i++) {
		fi_cq_read(p.a->cq, NULL, 0);
		fi_cq_read(p.b->cq, NULL, 0);
		ep_in_time(end, "a message");
	}
	EP_OK(fi_trecv(p.b->ep, &in[1], 1, NULL, p.ba, 7, 0, &in[1]));
	EP_OK(fi_trecv(p.b->ep, &in[2], 1, NULL, p.ba, 7, ~0ULL, &in[2]));
	EP_OK(fi_recv(p.b->ep, &in[3], 1, NULL, p.ba, &in[3]));
	assert_int_equal(fi_av_remove(p.b->av, &p.ba, 1, 0), 0);
	assert_int_equal(ep_insert(p.b, c), p.ba);
	/* another removal checks these receives again */
	other = ep_insert(p.b, ep_open(NULL));
	assert_int_equal(fi_av_remove(p.b->av, &other, 1, 0), 0);
	assert_int_equal(fi_cq_readfrom(p.b->cq, &e, 1, &src), 1);
	assert_ptr_equal(e.op_context, &in[0]);
	assert_int_equal(src, FI_ADDR_NOTAVAIL);
	EP_OK(fi_tinject(c->ep, &out, 1, from_c, 7));
	EP_OK(fi_inject(c->ep, &out, 1, from_c));
	ep_quiet(p.b);
	for (int i = 1; i < 4; i++) {
		assert_int_equal(fi_cancel(&p.b->ep->fid, &in[i]), 0);
		assert_int_equal(ep_wait(p.b, &in[i]).err, FI_ECANCELED);
	}
	EP_OK(fi_trecv(p.b->ep, &in[1], 1, NULL, p.ba, 7, 0, &in[1]));
	assert_int_equal(ep_received(p.b, &in[1]).src, p.ba);
	EP_OK(fi_recv(p.b->ep, &in[3], 1, NULL, p.ba, &in[3]));
	assert_int_equal(ep_received(p.b, &in[3]).src, p.ba);
}

/* Opens an endpoint with its own vector, in which a has the same index as in
 * b's. Its completions are written to b's queue. */
static struct fid_ep *second_of_b(const struct ep_pair *p, struct fid_av **av,
				  fi_addr_t *ab)
{
	struct fi_av_attr attr = { .type = FI_AV_TABLE };
	struct hal_addr name = name_of(p->a), other = made_up(1);
	size_t len = sizeof(name);
	struct fid_ep *ep;

	assert_int_equal(fi_av_open(p->b->domain, &attr, av, NULL), 0);
	for (fi_addr_t i = 0; i < p->ba; i++)
		assert_int_equal(fi_av_insert(*av, &other, 1, NULL, 0, NULL),
				 1);
	assert_int_equal(fi_av_insert(*av, &name, 1, NULL, 0, NULL), 1);
	assert_int_equal(fi_endpoint(p->b->domain, p->b->info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &(*av)->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &p->b->cq->fid, FI_TRANSMIT | FI_RECV),
			 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_getname(&ep->fid, &name, &len), 0);
	assert_int_equal(fi_av_insert(p->a->av, &name, 1, ab, 0, NULL), 1);
	return ep;
}

/* A queue has unread completions of two endpoints with different vectors: a
 * removal changes only those of one vector. */
static void test_two_vectors_of_one_queue(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	struct fi_cq_tagged_entry e;
	struct fid_av *av;
	fi_addr_t to, src = 0;
	char in[2], out = 6;
	struct fid_ep *second = second_of_b(&p, &av, &to);

	EP_OK(fi_recv(p.b->ep, &in[0], 1, NULL, p.ba, &in[0]));
	EP_OK(fi_recv(second, &in[1], 1, NULL, p.ba, &in[1]));
	EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
	EP_OK(fi_inject(p.a->ep, &out, 1, to));
	for (int i = 0; i < 2000; i++) {
		fi_cq_read(p.a->cq, NULL, 0);
		fi_cq_read(p.b->cq, NULL, 0);
	}
	assert_int_equal(fi_av_remove(p.b->av, &p.ba, 1, 0), 0);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(fi_cq_readfrom(p.b->cq, &e, 1, &src), 1);
		assert_int_equal(src, e.op_context == &in[0] ?
				 FI_ADDR_NOTAVAIL : p.ba);
	}
	EP_CLOSE(&second->fid, &av->fid);
}

/* The endpoint of an unread completion is closed, and no other endpoint uses
 * its vector: a removal still removes the completion's source. */
static void test_a_completion_outlives_its_endpoint(void **state)
{
	struct ep_want want = { .cntrs = true };
	struct ep_pair p = ep_pair(&want);
	struct fi_cq_tagged_entry e;
	fi_addr_t src[2] = { 0, 0 };
	uint64_t end = ep_deadline();
	char in[2], out = 6;

	for (int i = 0; i < 2; i++) {
		EP_OK(fi_recv(p.b->ep, &in[i], 1, NULL, p.ba, &in[i]));
		EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
	}
	while (fi_cntr_read(p.b->rxcntr) < 2) {	/* both are unread */
		fi_cq_read(p.a->cq, NULL, 0);
		ep_in_time(end, "two messages");
	}
	assert_int_equal(fi_close(&p.b->ep->fid), 0);
	p.b->ep = NULL;
	assert_int_equal(fi_cq_readfrom(p.b->cq, &e, 1, &src[0]), 1);
	assert_int_equal(src[0], p.ba);
	assert_int_equal(fi_av_remove(p.b->av, &p.ba, 1, 0), 0);
	assert_int_equal(fi_cq_readfrom(p.b->cq, &e, 1, &src[1]), 1);
	assert_int_equal(src[1], FI_ADDR_NOTAVAIL);
}

/* The source of an unread completion is the next index of its address as long
 * as there is one. */
static void test_a_completion_of_a_duplicate(void **state)
{
	struct ep_want cntrs = { .cntrs = true };
	struct ep_pair p = ep_pair(&cntrs);
	fi_addr_t dup = ep_insert(p.b, p.a), src[3] = { 0, 0, 0 };
	const fi_addr_t want[3] = { p.ba, dup, FI_ADDR_NOTAVAIL };
	uint64_t end = ep_deadline();
	struct fi_cq_tagged_entry e;
	char in[3], out = 6;

	for (int i = 0; i < 3; i++) {
		EP_OK(fi_recv(p.b->ep, &in[i], 1, NULL, p.ba, &in[i]));
		EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
	}
	while (fi_cntr_read(p.b->rxcntr) < 3) {	/* all three are unread */
		fi_cq_read(p.a->cq, NULL, 0);
		ep_in_time(end, "three messages");
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(fi_cq_readfrom(p.b->cq, &e, 1, &src[i]), 1);
		assert_int_equal(src[i], want[i]);
		if (i < 2)
			EP_OK(fi_av_remove(p.b->av, &src[i], 1, 0));
	}
}

/* The first of two indices is removed, the second still names the peer. */
static void test_removal_of_the_first_duplicate(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	fi_addr_t dup = ep_insert(p.b, p.a), dup2 = ep_insert(p.a, p.b);
	char in, out = 5;

	assert_int_equal(source_seen(p.a, p.ab, p.b), p.ba);
	/* a message is queued while the index of its sender changes */
	EP_OK(fi_tinject(p.a->ep, &out, 1, p.ab, 7));
	ep_settle();
	assert_int_equal(fi_av_remove(p.b->av, &p.ba, 1, 0), 0);
	EP_OK(fi_trecv(p.b->ep, &in, 1, NULL, dup, 7, 0, &in));
	assert_int_equal(ep_received(p.b, &in).src, dup);
	assert_int_equal(source_seen(p.a, p.ab, p.b), dup);
	/* and messages to the peer are sent as before */
	assert_int_equal(fi_av_remove(p.a->av, &p.ab, 1, 0), 0);
	assert_int_equal(source_seen(p.a, dup2, p.b), dup);
	assert_int_equal(source_seen(p.b, dup, p.a), dup2);
}

/* Receives posted with the second index still wait for that peer, and later
 * receives do not overtake them. */
static void test_receives_of_the_second_duplicate(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	fi_addr_t dup = ep_insert(p.b, p.a);
	char in[6], out;

	EP_OK(fi_recv(p.b->ep, &in[0], 1, NULL, dup, &in[0]));
	EP_OK(fi_trecv(p.b->ep, &in[1], 1, NULL, dup, 7, 0, &in[1]));
	EP_OK(fi_trecv(p.b->ep, &in[2], 1, NULL, dup, 7, ~0ULL, &in[2]));
	assert_int_equal(fi_av_remove(p.b->av, &p.ba, 1, 0), 0);
	EP_OK(fi_recv(p.b->ep, &in[3], 1, NULL, dup, &in[3]));
	EP_OK(fi_trecv(p.b->ep, &in[4], 1, NULL, dup, 7, 0, &in[4]));
	EP_OK(fi_trecv(p.b->ep, &in[5], 1, NULL, dup, 7, ~0ULL, &in[5]));
	for (int i = 0; i < 2; i++) {
		out = (char)(10 + i);
		EP_OK(fi_inject(p.a->ep, &out, 1, p.ab));
	}
	for (int i = 0; i < 4; i++) {
		out = (char)(20 + i);
		EP_OK(fi_tinject(p.a->ep, &out, 1, p.ab, 7));
	}
	for (int i = 0; i < 6; i++)
		assert_int_equal(ep_received(p.b, &in[i]).src, dup);
	assert_int_equal(in[0], 10);
	assert_int_equal(in[3], 11);
	assert_int_equal(in[1], 20);
	assert_int_equal(in[2], 21);
	assert_int_equal(in[4], 22);
	assert_int_equal(in[5], 23);
}

/* The second is removed: nothing changes for the first. */
static void test_removal_of_the_second_duplicate(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	fi_addr_t dup = ep_insert(p.b, p.a);

	assert_int_equal(source_seen(p.a, p.ab, p.b), p.ba);
	assert_int_equal(fi_av_remove(p.b->av, &dup, 1, 0), 0);
	assert_int_equal(source_seen(p.a, p.ab, p.b), p.ba);
	assert_int_equal(source_seen(p.b, p.ba, p.a), p.ab);
}

/* Removal while operations are under way: they end. */
static void test_removal_during_a_rendezvous(void **state)
{
	struct ep_pair p = ep_pair(NULL);
	char *out = ep_alloc(100000), *in = ep_alloc(100000);

	for (int i = 0; i < 2; i++) {
		xfer_fill(out, 100000, i, 0);
		EP_OK(fi_tsend(p.a->ep, out, 100000, NULL, p.ab, 7, out));
		EP_OK(fi_trecv(p.b->ep, in, 100000, NULL, FI_ADDR_UNSPEC, 7,
			       0, in));
		if (i == 0)
			ep_poll(p.b);
		assert_int_equal(fi_av_remove(p.a->av, &p.ab, 1, 0), 0);
		assert_int_equal(fi_av_remove(p.b->av, &p.ba, 1, 0), 0);
		ep_sent(p.a, out);
		ep_received(p.b, in);
		assert_true(xfer_filled(in, 100000, i, 0));
		p.ab = ep_insert(p.a, p.b);
		p.ba = ep_insert(p.b, p.a);
	}
}

/* Deferred work that names a removed index fails, also if the index is used
 * again before the work is started. */
static void test_deferred_work_of_a_used_index(void **state)
{
	static const enum fi_op_type type[] = { FI_OP_SEND, FI_OP_TSEND,
		FI_OP_RECV, FI_OP_TRECV };
	struct ep_pair p = trigger_pair();
	struct ep *c = ep_open(NULL);
	struct fid_cntr *go = open_cntr(p.a);
	struct work k[4];
	char byte = 3, in;

	ep_insert(c, p.a);
	for (int i = 0; i < 4; i++) {
		work_msg(&k[i], type[i], p.a, &byte, p.ab, 7, FI_COMPLETION);
		assert_int_equal(queue(p.a, &k[i], go, 1, NULL), 0);
	}
	assert_int_equal(fi_av_remove(p.a->av, &p.ab, 1, 0), 0);
	assert_int_equal(ep_insert(p.a, c), p.ab);
	EP_OK(fi_recv(c->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	assert_int_equal(fi_cntr_add(go, 1), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(ep_wait(p.a, &k[i].w.context).err, FI_EINVAL);
	ep_quiet(c);
	assert_int_equal(fi_close(&go->fid), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EP_TEST(test_removal_is_quick),
		EP_TEST(test_removal_of_a_name_for_all),
		EP_TEST(test_stored_messages_of_the_next_name),
		EP_TEST(test_exact_beside_a_name_for_all),
		EP_TEST(test_name_for_all_outlives_its_holder),
		EP_TEST(test_removed_is_gone),
		EP_TEST(test_the_lowest_free_index),
		EP_TEST(test_a_lower_index_is_not_an_earlier_name),
		EP_TEST(test_a_used_index_again),
		EP_TEST(test_two_vectors_of_one_queue),
		EP_TEST(test_a_completion_outlives_its_endpoint),
		EP_TEST(test_receives_of_the_second_duplicate),
		EP_TEST(test_deferred_work_of_a_used_index),
		EP_TEST(test_a_completion_of_a_duplicate),
		EP_TEST(test_removal_of_the_first_duplicate),
		EP_TEST(test_removal_of_the_second_duplicate),
		EP_TEST(test_removal_during_a_rendezvous),
	};

	/* as one of many ranks: the search for a free interface starts where it
	 * did before */
	setenv("MPI_LOCALRANKID", "0", 1);
	setenv("MPI_LOCALNRANKS", "65535", 1);
	return unit_run(tests);
}
