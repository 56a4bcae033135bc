/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_guard.c - litmus test of guard and epoch (docs/memory-ordering.md).
 *
 * An initiator that enters a peer's memory stores GUARD and then loads REVOKED.
 * The target stores REVOKED and then loads GUARD. The initiator must not be
 * inside while the target has seen that no initiator is. With less than
 * sequential consistency both loads may pass their stores, also on x86.
 *
 * The initiator's half is unm_guard_enter() itself; the target's half is a copy
 * of what unm_revoke_send() of unm_revoke.c does. Two threads start each round
 * at once, after short delays that differ.
 *
 * UNM_TEST_ROUNDS: least number of rounds (500,000). If the two threads do not
 * run at the same time, the same side comes first in round after round, and no
 * round proves anything. So the test counts the rounds whose first side is
 * another than in the round before, and goes on until they are a tenth of that
 * number. After ten seconds without that it is skipped.
 */
#include "api/unm_ep.h"
#include "core/unm_peer.h"
#include "lib/unit.h"
#include "rma/unm_onesided.h"
#include "rma/unm_rkey.h"

static struct hal_back to_owner, to_initiator;	/* stored by the other side */
static struct hal_peer owner_hp = {		/* the initiator's peer
						 * object */
	.rx.back = &to_owner, .tx.back = &to_initiator,
};
static struct hal_peer initiator_hp = {		/* the owner's peer object */
	.rx.back = &to_initiator, .tx.back = &to_owner,
};

/* Each side counts the rounds that it has begun and ended. */
static struct {
	_Atomic uint64_t begun, ended;
} side[2] __attribute__((aligned(128)));
static _Atomic uint64_t saw;			/* guard as the owner read it */
static _Atomic uint64_t rounds;			/* lowered to end the test */

static void delay(uint64_t *rng)
{
	for (uint32_t n = unit_below(rng, 64); n != 0; n--)
		atomic_signal_fence(memory_order_seq_cst);
}

static void meet(_Atomic uint64_t *mine, _Atomic uint64_t *theirs, uint64_t n)
{
	unsigned spins = 0;

	atomic_store_explicit(mine, n, memory_order_release);
	while (atomic_load_explicit(theirs, memory_order_acquire) < n)
		if (++spins % 4096 == 0)
			sched_yield();
}

/* Move this thread to the n-th of these processors, from 0 on. If both threads
 * share a processor, the test may take seconds for its rounds. */
static void stay_at(const cpu_set_t *cpus, int n)
{
	cpu_set_t one;
	int cpu = -1;

	do
		n -= CPU_ISSET(++cpu, cpus) != 0;
	while (n >= 0);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void *owner(void *arg)
{
	uint64_t rng = 2;

	stay_at(arg, 1);
	for (uint64_t n = 1; n <= rounds; n++) {
		meet(&side[1].begun, &side[0].begun, n);
		delay(&rng);
		hal_rx_back_sync(&initiator_hp, UNM_PEER_BACK_REVOKED,
				 n << 32);
		saw = hal_tx_back_sync(&initiator_hp, UNM_PEER_BACK_GUARD);
		meet(&side[1].ended, &side[0].ended, n);
	}
	return arg;
}

static void test_one_of_two_sees_the_other(void **state)
{
	struct unm_peer peer = { .hp = &owner_hp };
	uint64_t rng = 1, changes = 0, wrong = 0;
	uint64_t least = unit_number("UNM_TEST_ROUNDS",
				     UNIT_SLOW ? 50000 : 500000);
	bool in = false, before;
	time_t end = time(NULL) + 10;
	cpu_set_t cpus;
	pthread_t thread;

	if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0 ||
	    CPU_COUNT(&cpus) < 2)
		skip();			/* one processor: no access passes
					 * another */
	rounds = UINT64_MAX;
	unm_list_init(&peer.cached);
	thread = unit_thread(owner, &cpus);
	stay_at(&cpus, 0);
	for (uint64_t n = 1; n <= rounds; n++) {
		before = in;
		meet(&side[0].begun, &side[1].begun, n);
		delay(&rng);
		in = unm_guard_enter(&peer);
		if (n % 64 == 0 && ((n >= least && changes >= least / 10) ||
				    time(NULL) > end))
			rounds = n;
		meet(&side[0].ended, &side[1].ended, n);
		changes += in != before;
		wrong += in && !(saw & 1);
		if (in)
			unm_guard_leave(&peer);
		unm_rkey_poll_revoked(&peer);
	}
	pthread_join(thread, NULL);
	sched_setaffinity(0, sizeof(cpus), &cpus);
	assert_int_equal(wrong, 0);
	unit_needs(changes >= least / 10);
}

/* ---- A board ------------------------------------------------------------- */

static uint64_t guard_word;			/* stored, not yet there */

static void board_store(struct hal_peer *peer, int word, uint64_t val)
{
	(void)peer;
	assert_int_equal(word, UNM_PEER_BACK_GUARD);
	guard_word = val;
}

/* The word is there. The owner has revoked keys before it, which this side
 * loads from now on. */
static int board_barrier(struct hal_peer *peer)
{
	atomic_store(&peer->tx.back->word[UNM_PEER_BACK_REVOKED],
		     UINT64_C(1) << 32);
	return 0;
}

/*
 * Where the backend stores words: the owner revokes keys until the guard is
 * known to be stored. The load that decides comes after that, so it finds the
 * revocation, each time.
 */
static void test_stored_before_the_load(void **state)
{
	static struct hal_back revoked;
	static const struct hal_ops ops = {
		.back_store = board_store, .back_barrier = board_barrier,
	};
	struct hal_peer hp = { .ops = &ops, .tx.back = &revoked };
	struct unm_peer peer = { .hp = &hp };

	(void)state;
	unm_list_init(&peer.cached);
	assert_false(unm_guard_enter(&peer));
	unm_guard_withdraw(&peer);
	assert_int_equal(guard_word % 2, 0);	/* left again */
	unm_rkey_poll_revoked(&peer);
	assert_true(unm_guard_enter(&peer));
	assert_int_equal(guard_word % 2, 1);
	unm_guard_leave(&peer);
}

/* ---- Peers on other hosts ----------------------------------------------- */

static uint64_t far_word;			/* last value stored */
static unsigned far_words;			/* values stored */
static bool far_asked;			/* whether it has arrived */

static void far_store(struct hal_peer *hp, int word, uint64_t val)
{
	(void)hp;
	(void)word;
	if (val == far_word)
		return;
	far_word = val;
	far_words++;
	far_asked = false;
}

/* Each new value takes a round trip, which has not ended at the first call. */
static int far_barrier(struct hal_peer *hp)
{
	bool arrived = far_asked;

	(void)hp;
	far_asked = true;
	return arrived ? 0 : -FI_EAGAIN;
}

/* A store that takes a round trip is repeated until it has arrived, and not
 * withdrawn meanwhile: else it would never arrive. */
static void test_entered_after_a_round_trip(void **state)
{
	static struct hal_back revoked;
	static const struct hal_ops ops = {
		.back_store = far_store, .back_barrier = far_barrier,
	};
	struct hal_peer hp = { .ops = &ops, .tx.back = &revoked };
	struct unm_peer peer = { .hp = &hp };

	(void)state;
	unm_list_init(&peer.cached);
	assert_false(unm_guard_enter(&peer));
	assert_true(unm_guard_enter(&peer));
	assert_int_equal(far_words, 1);
	unm_guard_withdraw(&peer);		/* inside: nothing to do */
	assert_int_equal(far_word, 1);
	unm_guard_leave(&peer);
	assert_int_equal(far_word, 2);
	assert_false(unm_guard_enter(&peer));
	assert_int_equal(far_word, 3);
	unm_guard_withdraw(&peer);
	assert_int_equal(far_word, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stored_before_the_load),
		cmocka_unit_test(test_one_of_two_sees_the_other),
		cmocka_unit_test(test_entered_after_a_round_trip),
	};

	return unit_run(tests);
}
