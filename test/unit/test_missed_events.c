/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_missed_events.c - events that happen between two polls are not missed:
 * before a sleep, during a transfer. Each case is a fault that was found by or
 * while writing test/model.
 */
#include <poll.h>

#include "api/unm_ep.h"
#include "core/unm_ep_state.h"
#include "core/unm_peer.h"
#include "core/unm_peer_tx.h"
#include "core/unm_space.h"
#include "lib/ep_xfer.h"
#include "unm_env.h"

enum { LEN = 2048, BIG = 2 << 20 };

static const struct ep_want with_fd = { .wait = FI_WAIT_FD };

static int trywait(struct ep *e)
{
	struct fid *fid = &e->cq->fid;

	return fi_trywait(e->fabric, &fid, 1);
}

static struct unm_peer *peer_of(struct ep *e, fi_addr_t to)
{
	return unm_ep(e->ep)->peer_of[to];
}

/* Two endpoints that have exchanged a message. */
static struct ep_pair acquainted(const struct ep_want *want)
{
	struct ep_pair p = ep_pair(want);
	static char in[8], ctx;

	EP_OK(fi_recv(p.b->ep, in, sizeof(in), NULL, FI_ADDR_UNSPEC, in));
	EP_OK(fi_send(p.a->ep, "x", 1, NULL, p.ab, &ctx));
	ep_sent(p.a, &ctx);
	ep_received(p.b, in);
	ep_settle();
	return p;
}

static void read_all(struct ep *e)
{
	struct fi_cq_tagged_entry c[8];

	while (fi_cq_read(e->cq, c, 8) > 0)
		;
}

/* The peer releases all packets after a send was refused, and before the
 * refusal is noted. */
static void test_room_comes_as_a_send_is_refused(void **state)
{
	static char out[LEN], in[LEN];
	struct unm_peer *peer;
	struct ep_pair p = acquainted(&with_fd);

	peer = peer_of(p.a, p.ab);
	for (int i = 0; i < 200; i++)
		EP_OK(fi_recv(p.b->ep, in, LEN, NULL, FI_ADDR_UNSPEC, in));
	while (unm_peer_find_space(peer, LEN) != UNM_SPACE_NONE &&
	       fi_inject(p.a->ep, out, LEN, p.ab) == 0)
		;
	/* fi_inject() finds no free space, ... */
	for (int i = 0; i < 1000; i++)
		read_all(p.b);
	unm_peer_note_refusal(peer);		/* ... and then notes that */
	read_all(p.a);
	assert_int_equal(trywait(p.a), -FI_EAGAIN);
	EP_OK(fi_inject(p.a->ep, out, LEN, p.ab));
}

/* A peer is disconnected after a protocol error just before the sleep. */
static void test_errors_come_as_one_falls_asleep(void **state)
{
	struct fi_cq_tagged_entry c;
	struct unm_peer *peer;
	struct ep_pair p = acquainted(&with_fd);
	char *out;

	peer = peer_of(p.a, p.ab);
	out = calloc(1, 1 << 20);
	EP_OK(fi_send(p.a->ep, out, 1 << 20, NULL, p.ab, out));
	read_all(p.a);
	unm_peer_fail(peer, "(not: a test)", 0);
	assert_int_equal(trywait(p.a), -FI_EAGAIN);
	assert_int_equal(fi_cq_read(p.a->cq, &c, 1), -FI_EAVAIL);
	free(out);
}

/* A peer from which no event is awaited does not wake this endpoint for
 * ever. */
static void test_no_wake_ups_without_an_event(void **state)
{
	static char in[8], ctx;
	struct iovec iov = { "y", 1 };
	struct fi_msg msg = {
		.msg_iov = &iov, .iov_count = 1, .context = &ctx,
	};
	struct unm_peer *peer;
	struct ep_pair p;

	p = acquainted(&with_fd);
	peer = peer_of(p.a, p.ab);
	if (peer->hp->tx.sleep == NULL)
		skip();			/* this backend has no such flag */
	msg.addr = p.ab;
	EP_OK(fi_recv(p.b->ep, in, 8, NULL, FI_ADDR_UNSPEC, in));
	EP_OK(fi_sendmsg(p.a->ep, &msg, FI_DELIVERY_COMPLETE | FI_COMPLETION));
	for (int i = 0; i < 1000; i++)
		read_all(p.b);
	/* asks for a wake-up, and then finds the message delivered */
	trywait(p.a);
	for (int i = 0; i < 100; i++)
		read_all(p.a);
	assert_int_equal(atomic_load(&peer->hp->tx.sleep->tx_asleep), 0);
}

/* The sender closes in the middle of a transfer. Its process still runs and
 * reuses the buffer: a half message must not complete successfully. */
static void closed_while_it_is_read(char *out, char *in)
{
	struct fi_cq_tagged_entry c;
	struct fi_cq_err_entry err = { 0 };
	struct ep_pair p = acquainted(NULL);
	ssize_t ret;

	memset(out, 1, BIG);
	EP_OK(fi_recv(p.b->ep, in, BIG, NULL, FI_ADDR_UNSPEC, in));
	EP_OK(fi_send(p.a->ep, out, BIG, NULL, p.ab, out));
	ret = fi_cq_read(p.b->cq, &c, 1);
	ep_close(p.a);
	memset(out, 2, BIG);
	while (ret == -FI_EAGAIN)
		ret = fi_cq_read(p.b->cq, &c, 1);
	if (ret == 1) {
		for (size_t i = 0; i < BIG; i += 4096)
			assert_int_equal(in[i], 1);
	} else {
		assert_int_equal(ret, -FI_EAVAIL);
		assert_int_equal(fi_cq_readerr(p.b->cq, &err, 0), 1);
		assert_int_equal(err.err, FI_ECONNRESET);
	}
	ep_close(p.b);
}

static void test_closed_while_it_is_read(void **state)
{
	static char out[BIG], in[BIG];

	for (int i = 0; i < 20; i++)
		closed_while_it_is_read(out, in);
}

UNIT_MAIN(
	EP_TEST_INSIDE(test_room_comes_as_a_send_is_refused),
	EP_TEST_INSIDE(test_errors_come_as_one_falls_asleep),
	EP_TEST_INSIDE(test_no_wake_ups_without_an_event),
	EP_TEST(test_closed_while_it_is_read),
)
