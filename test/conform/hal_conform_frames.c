/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_frames.c - conformance tests of peers on other hosts whose engine
 * is broken: what arrives are the first packets, each once and in order. A
 * frame that is lost or comes twice ends the peer; frames that overtake each
 * other do not.
 */
#include "conform/hal_conform.h"

#define WORDS		400		/* packets of a test, at most */
#define DEAD_MS		1200		/* less than users may set */

/* A pair, and what its second end has received. */
struct line {
	struct ct_pair p;
	uint64_t sent, got;
	struct hal_event a_end, b_end;	/* HAL_EV_DEAD, once reported */
};

/* Reopen the HAL, so that a missing frame is noticed earlier. */
static void hurry(void)
{
	ct_hal_close();
	ct_opt.dead_ms = DEAD_MS;
	assert_int_equal(ct_hal_open(), 0);
	ct_opt.dead_ms = 0;
}

static void take(struct line *l)
{
	const struct hal_cell *cell;
	uint64_t head;

	while ((cell = ct_peek(l->p.ba, &head)) != NULL) {
		assert_true(hal_cell_word(cell, 0) == l->got);
		assert_true(l->got < l->sent);
		l->got++;
		hal_rx_release(l->p.ba);
	}
	hal_rx_flush(l->p.ba);
}

/* Send up to n packets, and receive, until all have come or both ends know of
 * the end. */
static void run(struct line *l, uint64_t n)
{
	uint64_t end = ct_deadline();

	while (l->a_end.type == 0 || l->b_end.type == 0) {
		if (l->sent < n && l->a_end.type == 0 &&
		    hal_pkt_send(l->p.ab, hal_head(CT_TYPE_PING, 0), &l->sent,
				 1, NULL, 0) == 0)
			l->sent++;
		ct_step_all();
		take(l);
		ct_take_event(l->p.a, HAL_EV_DEAD, l->p.ab, &l->a_end);
		ct_take_event(l->p.b, HAL_EV_DEAD, l->p.ba, &l->b_end);
		if (l->got == n && l->a_end.type == 0 && l->b_end.type == 0)
			return;
		if (ct_now() > end)
			ct_fail("%llu of %llu packets came, and no end",
				(unsigned long long)l->got,
				(unsigned long long)l->sent);
	}
	assert_true(l->a_end.status < 0 && l->b_end.status < 0);
	/* nothing comes after the end */
	for (int i = 0; i < 50; i++)
		ct_step_all();
	assert_int_equal(ct_drain(l->p.ba), 0);
}

/* One fault at frame number `after` from now, n packets: the peer ends. */
static void ends(enum ct_frame_fault fault, long after, uint64_t n)
{
	struct line l = { .p = ct_pair(0, 0) };

	ct_frame_fault(fault, after);
	run(&l, n);
	ct_frame_fault(CT_FRAME_GOOD, 0);
	if (l.a_end.type == 0)
		ct_fail("the fault at frame %ld was not noticed", after);
	ct_close(l.p.a);
	ct_close(l.p.b);
}

/* Many frames overtake others, also those with stores and released slots. */
static void frames_overtake(void **state)
{
	long was = ct_opt.late;
	struct line l;

	unit_needs(ct_net());
	ct_opt.late = 300;
	l = (struct line){ .p = ct_pair(0, 0) };
	run(&l, 20 * WORDS);
	assert_int_equal(l.a_end.type, 0);
	assert_true(l.got == 20 * WORDS);
	ct_opt.late = was;
}

static void frames_twice(void **state)
{
	unit_needs(ct_net());
	for (long at = 1; at < 60; at += 19)
		ends(CT_FRAME_TWICE, at, WORDS);
}

/* The window of frames that come too early is bounded. */
static void frames_far_ahead(void **state)
{
	unit_needs(ct_net());
	for (long at = 1; at < 60; at += 19)
		ends(CT_FRAME_FAR, at, WORDS);
}

/* A frame in the middle is lost: those behind it are never received. */
static void frames_lost(void **state)
{
	unit_needs(ct_net());
	hurry();
	for (long at = 1; at < 60; at += 29)
		ends(CT_FRAME_LOST, at, WORDS);
}

/* The last frame is lost, after which nothing is sent. */
static void frames_last_lost(void **state)
{
	unit_needs(ct_net());
	hurry();
	ends(CT_FRAME_LOST, 1, 1);
}

static void frames_link_ends(void **state)
{
	unit_needs(ct_net());
	for (long at = 1; at < 60; at += 19)
		ends(CT_FRAME_CUT, at, WORDS);
}

/* Transfers: each completes once, with its data or an error. */
static void frames_lost_in_a_transfer(void **state)
{
	struct ct_region r, l;
	struct hal_dma d;
	struct ct_pair p;
	int ret;

	unit_needs(ct_net());
	hurry();
	for (long at = 1; at < 30; at += 13) {
		p = ct_pair(0, 0);
		r = ct_region(4 << 20);
		l = ct_region(4 << 20);
		ct_fill(r.addr, 4 << 20, (uint64_t)at);
		d = (struct hal_dma){ .op = HAL_DMA_GET, .peer = p.ab,
				      .local = l.addr, .len = 4 << 20 };
		assert_int_equal(ct_import(p.ab, &r.key, &d.rmem), 0);
		ct_frame_fault(CT_FRAME_LOST, at);
		ret = ct_dma_run(p.a, &d);
		ct_frame_fault(CT_FRAME_GOOD, 0);
		assert_int_equal(ret, -FI_ECANCELED);
		hal_mem_release(p.ab, d.rmem);
		ct_close(p.a);
		ct_close(p.b);
		hal_mem_free(ct_hal, r.mem);
		hal_mem_free(ct_hal, l.mem);
	}
}

const struct CMUnitTest ct_frames_tests[] = {
	CT_TEST(frames_overtake),
	CT_TEST(frames_twice),
	CT_TEST(frames_far_ahead),
	CT_TEST(frames_lost),
	CT_TEST(frames_last_lost),
	CT_TEST(frames_link_ends),
	CT_TEST(frames_lost_in_a_transfer),
};
const size_t ct_frames_count = CT_COUNT(ct_frames_tests);
