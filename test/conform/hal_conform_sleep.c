/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_sleep.c - conformance tests of sleeping: an event after
 * hal_if_arm() has returned 0 wakes the sleeper
 */
#include <poll.h>

#include "conform/hal_conform.h"

#define MAX_SENDERS	3

static int wait_fd(struct ct_if *ci, int ms)
{
	struct pollfd pfd = { .fd = hal_if_fd(ci->hif), .events = POLLIN };

	return poll(&pfd, 1, ms);
}

/* Called when a packet is there although the descriptor is silent. Returns
 * whether the wake-up is lost: the sender may have published the packet and not
 * yet woken this process, so wait for it. No other event will. */
static bool no_wakeup(struct ct_if *ci)
{
	return wait_fd(ci, (int)(ct_opt.patience * 1000)) == 0;
}

static bool any_packet(struct ct_if *ci, struct hal_peer *only)
{
	struct hal_peer *peer;
	uint64_t head;

	return only != NULL ? ct_peek(only, &head) != NULL :
	       ct_next_packet(ci, &peer, &head) != NULL;
}

/* Sleep until any_packet() is true. Returns NULL or an error text. */
static const char *sleep_until(struct ct_if *ci, struct hal_peer *only)
{
	uint64_t end = ct_deadline();
	int ret, ms = ct_opt.patience < 2 ? 1000 : 2000;

	while (!any_packet(ci, only)) {
		if (ct_now() > end)
			return "no packet came";
		ret = hal_if_arm(ci->hif);
		if (ret == -FI_EAGAIN) {
			ct_step(ci);
			continue;
		}
		if (ret != 0)
			return "hal_if_arm failed";
		ret = wait_fd(ci, ms);
		/* The packet is there and no wake-up has come. */
		if (ret == 0 && any_packet(ci, only) && no_wakeup(ci))
			return "a packet came without a wake-up";
		hal_if_disarm(ci->hif);
		ct_step(ci);
	}
	return NULL;
}

const char *ct_sleep(struct ct_if *ci, struct hal_peer *peer)
{
	return sleep_until(ci, peer);
}

/* Spin for a random time, so that the threads meet at every stage. */
static void jitter(uint64_t *rng)
{
	uint64_t r = ct_random(rng);

	if (r % 16 == 0)
		ct_nap((r >> 8) % 100);
	for (uint64_t i = (r >> 32) % 2000; i > 0; i--)
		__asm__ volatile("" ::: "memory");
}

struct sleeper {
	struct ct_if *ci;
	struct hal_peer *peer;
	uint64_t rounds, rng;
	bool first;
	const char *error;
	uint64_t at;
};

/* One of two threads that answer each other and sleep in between. */
static void *ping_pong(void *arg)
{
	struct sleeper *s = arg;
	uint64_t head;

	for (s->at = 0; s->at < s->rounds && s->error == NULL; s->at++) {
		jitter(&s->rng);
		if (s->first && ct_send(s->ci, s->peer, CT_TYPE_PING, 0) != 0)
			s->error = "cannot send";
		if (s->error == NULL)
			s->error = sleep_until(s->ci, s->peer);
		if (s->error != NULL || ct_peek(s->peer, &head) == NULL)
			break;
		hal_rx_release(s->peer);
		hal_rx_flush(s->peer);
		jitter(&s->rng);
		if (!s->first && ct_send(s->ci, s->peer, CT_TYPE_PONG, 0) != 0)
			s->error = "cannot send";
	}
	/* A decorator may delay the last packet until it is stepped. */
	for (uint64_t end = ct_now() + CT_SECOND / 5; ct_now() < end;) {
		ct_step(s->ci);
		ct_nap(1000);
	}
	return NULL;
}

static void sleep_loses_no_wakeup(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct sleeper s[2] = {
		{ .ci = p.a, .peer = p.ab, .rng = 1, .first = true },
		{ .ci = p.b, .peer = p.ba, .rng = 2 },
	};
	pthread_t thread;

	s[0].rounds = s[1].rounds = (uint64_t)ct_opt.packets / 50;
	ct_mend_barriers();
	thread = unit_thread(ping_pong, &s[1]);
	ping_pong(&s[0]);
	pthread_join(thread, NULL);
	for (int i = 0; i < 2; i++) {
		if (s[i].error != NULL)
			ct_fail("round %llu: %s",
				(unsigned long long)s[i].at, s[i].error);
	}
}

struct sender {
	struct ct_if *ci;
	struct hal_peer *peer;
	uint64_t total, rng;
	int error;
};

static _Atomic int sending;		/* senders that have not finished */

/* Ends when all others have finished: see ct_mend_barriers(). */
static void *send_now_and_then(void *arg)
{
	struct sender *s = arg;
	uint64_t end;

	for (uint64_t i = 0; i < s->total && s->error == 0; i++) {
		jitter(&s->rng);
		s->error = ct_send(s->ci, s->peer, CT_TYPE_PING, i);
	}
	end = ct_deadline();
	while (hal_tx_done(s->peer) != hal_tx_sent(s->peer) && ct_now() < end) {
		ct_step(s->ci);
		sched_yield();
	}
	atomic_fetch_sub(&sending, 1);
	while (atomic_load(&sending) != 0)
		sched_yield();
	return NULL;
}

/* One sleeper and several senders: each packet wakes the sleeper. */
static void sleep_with_many_senders(void **state)
{
	struct ct_if *ci = ct_open(0);
	struct sender s[MAX_SENDERS] = { { 0 } };
	pthread_t thread[MAX_SENDERS];
	const char *error = NULL;
	struct hal_peer *peer;
	uint64_t head, left = 0;

	for (int i = 0; i < MAX_SENDERS; i++) {
		s[i].ci = ct_open(0);
		s[i].peer = ct_connect(s[i].ci, &ci->hif->addr);
		s[i].total = (uint64_t)ct_opt.packets / 100;
		s[i].rng = 10 + i;
		left += s[i].total;
		ct_inbound_from(ci, &s[i].ci->hif->addr);
	}
	ct_mend_barriers();
	atomic_store(&sending, MAX_SENDERS);
	for (int i = 0; i < MAX_SENDERS; i++)
		thread[i] = unit_thread(send_now_and_then, &s[i]);
	while (left != 0 && error == NULL) {
		error = sleep_until(ci, NULL);
		while (ct_next_packet(ci, &peer, &head) != NULL) {
			hal_rx_release(peer);
			hal_rx_flush(peer);
			left--;
		}
	}
	/* the last releases may be sent by a later step only */
	while (atomic_load(&sending) != 0)
		ct_step(ci);
	for (int i = 0; i < MAX_SENDERS; i++)
		pthread_join(thread[i], NULL);
	if (error != NULL)
		ct_fail("%llu packets to come: %s", (unsigned long long)left,
			error);
	for (int i = 0; i < MAX_SENDERS; i++)
		assert_int_equal(s[i].error, 0);
}

static void spin(uint64_t *rng, unsigned max)
{
	for (uint64_t i = ct_random(rng) % max; i > 0; i--)
		__asm__ volatile("" ::: "memory");
}

static atomic_bool enough;

/* Send one packet at a time, a random time after the last one was released. */
static void *send_after_release(void *arg)
{
	struct sender *s = arg;
	uint64_t end;

	for (uint64_t i = 0; i < s->total && s->error == 0; i++) {
		spin(&s->rng, 8000);
		s->error = ct_send(s->ci, s->peer, CT_TYPE_PING, i);
		end = ct_deadline();
		/* the last release may not come: the receiver has stopped */
		for (unsigned k = 1; s->error == 0 && !atomic_load(&enough) &&
		     hal_tx_done(s->peer) != hal_tx_sent(s->peer); k++) {
			/* Step rarely: otherwise the two threads would run in
			 * lockstep. */
			if (k % 30000 != 0)
				continue;
			sched_yield();
			/* The peer's stores may arrive only if this interface
			 * is stepped. */
			if (ct_faulty() || ct_net() ||
			    !(ct_caps->flags & HAL_CAP_COHERENT))
				ct_step(s->ci);
			if (ct_now() > end)
				s->error = -FI_ETIMEDOUT;
		}
		if (atomic_load(&enough))
			break;
	}
	return NULL;
}

/* Sleep once. Returns NULL or an error text. */
static const char *nap_once(struct ct_if *ci, struct hal_peer *peer)
{
	const char *error = NULL;
	uint64_t head;
	int ret = hal_if_arm(ci->hif);

	if (ret != 0)
		return ret == -FI_EAGAIN ? NULL : "hal_if_arm failed";
	for (int i = 0; i < 3000 && ct_peek(peer, &head) == NULL; i++)
		;
	if (ct_peek(peer, &head) != NULL && no_wakeup(ci))
		error = "a packet came without a wake-up";
	hal_if_disarm(ci->hif);
	return error;
}

/*
 * A packet arrives at every stage of falling asleep. There is one sender, so
 * that no later packet hides a lost wake-up.
 */
static void sleep_meets_a_packet(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	struct sender s = { .ci = p.a, .peer = p.ab, .rng = 77,
			    .total = (uint64_t)ct_opt.packets / 5 };
	uint64_t rng = 78, head, got = 0, end = ct_deadline();
	uint64_t stop = ct_now() + 4 * CT_SECOND, idle = 0;
	const char *error = NULL;
	pthread_t thread;

	atomic_store(&enough, false);
	ct_mend_barriers();
	thread = unit_thread(send_after_release, &s);
	while (error == NULL) {
		spin(&rng, 2000);
		error = nap_once(p.b, p.ba);
		ct_step(p.b);
		if (ct_peek(p.ba, &head) != NULL) {
			/* On a busy machine the time limit ends the test. */
			if (++got == s.total || ct_now() > stop)
				atomic_store(&enough, true);
			end = ct_deadline();
			hal_rx_release(p.ba);
			hal_rx_flush(p.ba);
			if (atomic_load(&enough))
				break;
		} else if (ct_now() > end) {
			error = "no packet came";
		} else if (++idle % 32 == 0) {
			sched_yield();
		}
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	if (error != NULL)
		ct_fail("packet %llu: %s", (unsigned long long)got, error);
	assert_int_equal(s.error, 0);
}

/* ---- Asleep until a packet is released or a back word is stored ---------- */

struct releaser {
	struct ct_if *ci;
	struct hal_peer *peer;
	bool words;			/* store a back word, instead of
					 * releasing and flushing */
	uint64_t rng;
	const char *error;
};

/* Receive one packet after the other, and notify its sender a random time
 * later. */
static void *release_late(void *arg)
{
	struct releaser *r = arg;
	uint64_t head, got = 0, end = ct_deadline();

	for (unsigned k = 1; !atomic_load(&enough); k++) {
		if (ct_peek(r->peer, &head) == NULL) {
			if (k % 30000 != 0)
				continue;
			sched_yield();
			ct_step(r->ci);
			if (ct_now() > end) {
				r->error = "no packet came";
				break;
			}
			continue;
		}
		end = ct_deadline();
		hal_rx_release(r->peer);
		spin(&r->rng, 8000);
		if (++got % (ct_caps->pkt_depth / 2) == 0 || !r->words)
			hal_rx_flush(r->peer);
		if (r->words)
			hal_rx_back(r->peer, 3, got);
	}
	hal_rx_flush(r->peer);
	return NULL;
}

/* Returns whether the receiver has notified the sender of packet number n,
 * counted from 1. */
static bool told(const struct releaser *r, struct hal_peer *peer,
		 uint64_t base, uint64_t n)
{
	return r->words ? hal_tx_back(peer, 3) == n :
	       hal_tx_done(peer) == base + n;
}

/* Sleep once until the notification. Returns NULL or an error text. */
static const char *nap_until_told(struct ct_if *ci, struct hal_peer *peer,
				  const struct releaser *r, uint64_t base,
				  uint64_t n)
{
	const char *error = NULL;

	hal_tx_sleep(peer, true);
	if (hal_if_arm(ci->hif) == 0) {
		if (!told(r, peer, base, n)) {
			for (int i = 0; i < 300000 && !told(r, peer, base, n);
			     i++)
				;
			if (told(r, peer, base, n) && no_wakeup(ci))
				error = "a release came without a wake-up";
		}
		hal_if_disarm(ci->hif);
	}
	hal_tx_sleep(peer, false);
	return error;
}

static void meet_a_release(bool words)
{
	struct ct_if *a = ct_open(0), *b = ct_open(0);
	struct hal_peer *ab = ct_connect(a, &b->hif->addr);
	struct releaser r = { .ci = b, .words = words, .rng = 79 };
	uint64_t rng = 80, n = 0, base = hal_tx_sent(ab);
	uint64_t stop = ct_now() + 2 * CT_SECOND, end;
	const char *error = NULL;
	pthread_t thread;

	r.peer = ct_inbound_from(b, &a->hif->addr);
	ct_wait_event(a, HAL_EV_CONNECTED, ab);
	atomic_store(&enough, false);
	ct_mend_barriers();
	thread = unit_thread(release_late, &r);
	while (n < (uint64_t)ct_opt.packets / 5 && ct_now() < stop &&
	       error == NULL) {
		if (ct_send(a, ab, CT_TYPE_PING, n) != 0)
			error = "cannot send";
		n++;
		spin(&rng, 4000);
		if (error == NULL)
			error = nap_until_told(a, ab, &r, base, n);
		end = ct_deadline();
		for (unsigned k = 1; error == NULL && !told(&r, ab, base, n);
		     k++) {
			if (k % 5000 == 0)
				ct_step(a);
			if (k % 30000 == 0)
				sched_yield();
			if (ct_now() > end)
				error = "a release was never told";
		}
	}
	atomic_store(&enough, true);
	pthread_join(thread, NULL);
	if (error != NULL || r.error != NULL)
		ct_fail("packet %llu: %s", (unsigned long long)n,
			error != NULL ? error : r.error);
}

/* A sender sleeps: a release wakes it if it has called hal_tx_sleep(). */
static void sleep_meets_a_release(void **state)
{
	meet_a_release(false);
}

static void sleep_meets_a_back_word(void **state)
{
	meet_a_release(true);
}

/* ---- Each reason to wake up ---------------------------------------------- */

/* Arm the interface; a backend that injects faults may refuse at first. */
static void arm(struct ct_if *ci)
{
	uint64_t end = ct_deadline();
	int ret;

	while ((ret = hal_if_arm(ci->hif)) == -FI_EAGAIN) {
		assert_true(ct_now() < end);
		ct_step(ci);
	}
	assert_int_equal(ret, 0);
}

/* hal_if_arm() fails if a packet is there already. */
static void sleep_refused_with_packets(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint64_t head;

	for (uint64_t i = 0; i < 200; i++) {
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, i), 0);
		ct_await(p.ba, &head);
		for (int k = 0; k < 5; k++)
			assert_int_equal(hal_if_arm(p.b->hif), -FI_EAGAIN);
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == i);
		arm(p.b);
		hal_if_disarm(p.b->hif);
	}
}

/* Packets of a throttled peer stay in the ring and do not wake the sleeper;
 * packets of other peers do. */
static void sleep_beside_the_held(void **state)
{
	struct ct_if *a = ct_open(0), *b = ct_open(0), *c = ct_open(0);
	struct hal_peer *ac = ct_connect(a, &c->hif->addr);
	struct hal_peer *bc = ct_connect(b, &c->hif->addr);
	struct hal_peer *ca = ct_inbound_from(c, &a->hif->addr);
	struct hal_peer *cb = ct_inbound_from(c, &b->hif->addr);
	uint64_t head;

	for (uint64_t i = 0; i < 100; i++) {
		assert_int_equal(ct_send(a, ac, CT_TYPE_PING, 2 * i), 0);
		ct_await(ca, &head);
		hal_rx_hold(ca, true);
		arm(c);
		assert_int_equal(ct_send(a, ac, CT_TYPE_PING, 2 * i + 1), 0);
		assert_int_equal(ct_send(b, bc, CT_TYPE_PING, i), 0);
		for (uint64_t end = ct_deadline(); wait_fd(c, 1) == 0;) {
			assert_true(ct_now() < end);
			ct_step(b);	/* a decorator may delay it */
		}
		hal_if_disarm(c->hif);
		assert_true(ct_recv(cb, CT_TYPE_PING) == i);
		arm(c);
		hal_if_disarm(c->hif);
		hal_rx_hold(ca, false);
		assert_int_equal(hal_if_arm(c->hif), -FI_EAGAIN);
		assert_true(ct_recv(ca, CT_TYPE_PING) == 2 * i);
		assert_true(ct_recv(ca, CT_TYPE_PING) == 2 * i + 1);
	}
}

/* A packet, hal_peer_wake(), a new peer and a peer's end wake a sleeper. */
static void sleep_ends_for_all_reasons(void **state)
{
	int ms = (int)(ct_opt.patience * 1000);
	struct ct_if *b = ct_open(0);
	struct ct_ending closing;
	uint64_t end;

	for (int i = 0; i < 20; i++) {
		struct ct_if *a = ct_open(0);
		struct hal_peer *ab, *ba;
		struct hal_event ev;

		arm(b);
		ab = ct_connect(a, &b->hif->addr);
		assert_int_equal(wait_fd(b, ms), 1);
		hal_if_disarm(b->hif);
		ba = ct_inbound_from(b, &a->hif->addr);
		ct_wait_event(a, HAL_EV_CONNECTED, ab);
		arm(b);
		assert_int_equal(ct_send(a, ab, CT_TYPE_PING, 1), 0);
		for (end = ct_deadline(); wait_fd(b, 1) == 0;) {
			assert_true(ct_now() < end);
			ct_step(a);	/* a decorator may delay it */
		}
		hal_if_disarm(b->hif);
		assert_true(ct_recv(ba, CT_TYPE_PING) == 1);
		arm(b);
		hal_peer_wake(ab);
		assert_int_equal(wait_fd(b, ms), 1);
		hal_if_disarm(b->hif);
		arm(b);
		ct_close_begin(a, &closing);
		assert_int_equal(wait_fd(b, ms), 1);
		hal_if_disarm(b->hif);
		ct_end_wait(&closing);
		ev = ct_wait_event(b, HAL_EV_DEAD, ba);
		hal_peer_free(ev.peer);
	}
}

/* Arm the interface when no earlier event is left that would end the sleep. */
static void arm_quiet(struct ct_if *ci)
{
	uint64_t end = ct_deadline();

	for (arm(ci); wait_fd(ci, 0) != 0; arm(ci)) {
		hal_if_disarm(ci->hif);
		assert_true(ct_now() < end);
		ct_step(ci);
	}
}

/* A release, or a word that is stored back, ends the sleep of a sender that has
 * called hal_tx_sleep(). Nothing else happens meanwhile. */
static void sleep_ends_at_a_release(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint64_t head, end;

	for (uint64_t i = 0; i < 20; i++) {
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, i), 0);
		ct_await(p.ba, &head);
		hal_tx_sleep(p.ab, true);
		arm_quiet(p.a);
		hal_rx_release(p.ba);
		if (i % 2 == 0)
			hal_rx_flush(p.ba);
		else
			hal_rx_back(p.ba, 3, i);
		for (end = ct_deadline(); wait_fd(p.a, 1) == 0;) {
			assert_true(ct_now() < end);
			ct_step(p.b);	/* a decorator may delay it */
		}
		hal_if_disarm(p.a->hif);
		hal_tx_sleep(p.ab, false);
		hal_rx_flush(p.ba);
		while (hal_tx_done(p.ab) != hal_tx_sent(p.ab)) {
			assert_true(ct_now() < end);
			ct_step_all();
		}
	}
}

/* The descriptor becomes silent when there is nothing to do, so that a sleeper
 * does not loop. */
static void sleep_is_quiet(void **state)
{
	struct ct_pair p = ct_pair(0, 0);
	uint64_t end = ct_deadline();

	for (int i = 0; i < 20; i++) {
		arm(p.b);
		assert_int_equal(ct_send(p.a, p.ab, CT_TYPE_PING, 1), 0);
		hal_if_disarm(p.b->hif);
		assert_true(ct_recv(p.ba, CT_TYPE_PING) == 1);
		do {
			assert_true(ct_now() < end);
			ct_step_all();
		} while (wait_fd(p.b, 0) != 0);
	}
}

const struct CMUnitTest ct_sleep_tests[] = {
	CT_TEST(sleep_loses_no_wakeup),
	CT_TEST(sleep_with_many_senders),
	CT_TEST(sleep_meets_a_packet),
	CT_TEST(sleep_meets_a_release),
	CT_TEST(sleep_meets_a_back_word),
	CT_TEST(sleep_beside_the_held),
	CT_TEST(sleep_refused_with_packets),
	CT_TEST(sleep_ends_for_all_reasons),
	CT_TEST(sleep_ends_at_a_release),
	CT_TEST(sleep_is_quiet),
};
const size_t ct_sleep_count = CT_COUNT(ct_sleep_tests);
