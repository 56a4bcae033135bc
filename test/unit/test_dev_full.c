/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_full.c - full mailboxes [D 5.1.1, 5.1.2; docs/hal.md, 13]: sixteen
 * senders to one interface whose mailbox holds four packets.
 *
 * A refused packet must not be lost, duplicated, or overtaken by a later packet
 * of its sender.
 */
#include <sys/prctl.h>

#include "hal/dev/hal_dev.h"
#include "hal/hal.h"
#include "hal/hal_backend.h"
#include "lib/unit.h"

#define SENDERS		16
#define REFUSALS	(UNIT_SLOW ? 10000u : 100000u)
#define PATIENCE	60.0		/* seconds without progress */

struct sender {
	struct hal_if *hif;
	struct hal_peer *peer;		/* the receiver, as the sender's peer */
	struct hal_peer *seen;		/* the sender, as the receiver's peer */
	uint64_t sent, got;
};

static struct hal *hal;
static struct hal_if *to;
static struct sender senders[SENDERS];
static double last;			/* time of the last progress, s */

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* Services the receiver once, which moves packets from its mailbox. */
static void receive(void)
{
	struct hal_event ev[SENDERS];
	int n;

	hal_if_pump(to);
	n = hal_if_service(to, ev, SENDERS);
	for (int i = 0; i < n; i++) {
		assert_int_not_equal(ev[i].type, HAL_EV_DEAD);
		for (int s = 0; s < SENDERS; s++)
			if (ev[i].type == HAL_EV_INBOUND &&
			    senders[s].hif != NULL &&
			    ev[i].peer->addr.nonce ==
			    senders[s].hif->addr.nonce)
				senders[s].seen = ev[i].peer;
	}
}

static void take(struct sender *s)
{
	const struct hal_cell *cell;
	uint64_t head;

	while (s->seen != NULL && s->seen->rx.cells != NULL &&
	       (cell = hal_rx_peek(s->seen, &head)) != NULL) {
		if (hal_cell_word(cell, 0) != s->got ||
		    hal_cell_word(cell, 2) != ~s->got)
			unit_fail("packet %llu came where %llu was due",
				  (unsigned long long)hal_cell_word(cell, 0),
				  (unsigned long long)s->got);
		s->got++;
		last = now();
		hal_rx_release(s->seen);
		hal_rx_flush(s->seen);
	}
}

/* Sends until packets are refused, at most 4. */
static void push(struct sender *s)
{
	for (int i = 0; i < 4; i++) {
		uint64_t w[3] = { s->sent, 0, ~s->sent };

		if (hal_pkt_send(s->peer, hal_head(1, 0), w, 3, NULL, 0) != 0)
			break;
		s->sent++;
	}
}

static void pump(struct sender *s)
{
	struct hal_event ev[4];
	int n;

	hal_if_pump(s->hif);
	n = hal_if_service(s->hif, ev, 4);
	for (int i = 0; i < n; i++)
		assert_int_not_equal(ev[i].type, HAL_EV_DEAD);
}

static uint64_t refusals(void)
{
	uint64_t sum = 0;

	for (int s = 0; s < SENDERS; s++)
		sum += dev_if(senders[s].hif)->stats.nacks;
	return sum;
}

static void open_all(const char *model)
{
	struct hal_params params;
	int ret = 0;

	assert_int_equal(hal_params_load(&params), 0);
	snprintf(params.hal, sizeof(params.hal), "sim");
	snprintf(params.sim, sizeof(params.sim), "%s", model);
	params.boards = 4;
	memset(senders, 0, sizeof(senders));
	assert_int_equal(hal_sim_ops.open(&params, &hal), 0);
	assert_int_equal(hal_if_open(hal, 0, &to), 0);
	for (int s = 0; s < SENDERS; s++) {
		assert_int_equal(hal_if_open(hal, s % 4, &senders[s].hif), 0);
		last = now();
		do {
			ret = hal_connect(senders[s].hif, &to->addr,
					  &senders[s].peer);
			receive();
			assert_true(now() - last < PATIENCE);
		} while (ret == -FI_EAGAIN);
		assert_int_equal(ret, 0);
	}
}

static void close_all(void)
{
	for (int s = 0; s < SENDERS; s++)
		hal_if_close(senders[s].hif);
	hal_if_close(to);
	hal->ops->close(hal);
}

/* All packets that were sent arrive once the senders stop. */
static void run(const char *model, uint64_t wanted)
{
	uint64_t turn = 0, sent = 0, got = 0;

	open_all(model);
	for (last = now(); refusals() < wanted; turn++) {
		for (int s = 0; s < SENDERS; s++)
			push(&senders[s]);
		/* the receiver polls rarely: the mailbox stays full */
		if (turn % 4 != 0)
			continue;
		receive();
		for (int s = 0; s < SENDERS; s++) {
			pump(&senders[s]);
			take(&senders[s]);
		}
		assert_true(now() - last < PATIENCE);
	}
	for (int s = 0; s < SENDERS; s++) {
		while (senders[s].got != senders[s].sent) {
			for (int k = 0; k < SENDERS; k++) {
				pump(&senders[k]);
				take(&senders[k]);
			}
			receive();
			assert_true(now() - last < PATIENCE);
		}
		sent += senders[s].sent;
		got += senders[s].got;
	}
	print_message("%llu packets, %llu refused\n", (unsigned long long)sent,
		      (unsigned long long)refusals());
	assert_true(sent == got);
	close_all();
}

static void full_mailbox(void **state)
{
	run("fifo=8,depth=16,world=81", REFUSALS);
}

/* The same with slow answers, so that packets wait for their answers, too. */
static void full_mailbox_slow_answers(void **state)
{
	run("fifo=8,depth=16,ack=3000,delay=2000,world=82", REFUSALS / 20);
}

/* An interface whose mailbox is never read does not delay the senders: the
 * packets to every other interface arrive. */
static void full_mailbox_of_another(void **state)
{
	struct hal_if *other;
	struct hal_peer *peer = NULL, *seen = NULL;
	struct hal_event ev[4];
	uint64_t head, word = 0;
	int ret;

	open_all("fifo=8,depth=16,world=83");
	assert_int_equal(hal_if_open(hal, 1, &other), 0);
	for (last = now(); now() - last < 0.2;)
		for (int s = 0; s < SENDERS; s++) {
			push(&senders[s]);
			pump(&senders[s]);
		}
	while ((ret = hal_connect(senders[0].hif, &other->addr, &peer)) ==
	       -FI_EAGAIN)
		assert_true(now() - last < PATIENCE);
	assert_int_equal(ret, 0);
	for (last = now(); word < 1000;) {
		uint64_t w = word;

		ret = hal_pkt_send(peer, hal_head(1, 0), &w, 1, NULL, 0);
		word += ret == 0;
		hal_if_pump(other);
		if (hal_if_service(other, ev, 4) > 0 &&
		    ev[0].type == HAL_EV_INBOUND)
			seen = ev[0].peer;
		while (seen != NULL && seen->rx.cells != NULL &&
		       hal_rx_peek(seen, &head) != NULL) {
			hal_rx_release(seen);
			hal_rx_flush(seen);
		}
		assert_true(now() - last < PATIENCE);
	}
	hal_if_close(other);
	close_all();
}

/* ---- Senders that are processes ---------------------------------------- */

#define EACH		(UNIT_SLOW ? 300u : 1000u)
#define BUSY		"fifo=8,depth=16,world=84"

static _Atomic uint64_t *refused;	/* by all senders, shared */

static bool sender_step(struct hal_if *hif)
{
	static uint64_t counted;
	uint64_t nacks = dev_if(hif)->stats.nacks;
	struct hal_event ev[4];
	int n;

	atomic_fetch_add(refused, nacks - counted);
	counted = nacks;
	hal_if_pump(hif);
	n = hal_if_service(hif, ev, 4);
	for (int i = 0; i < n; i++)
		if (ev[i].type == HAL_EV_DEAD)
			return false;
	sched_yield();
	return now() - last < PATIENCE;
}

/* Sends packets with the sender's number and their own, as fast as they are
 * taken, then closes. */
static int sender_main(uint64_t number, const struct hal_addr *addr)
{
	struct hal_params params;
	struct hal_peer *peer;
	struct hal_if *hif;
	int ret;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	last = now();
	if (hal_params_load(&params) != 0)
		return 1;
	snprintf(params.hal, sizeof(params.hal), "sim");
	snprintf(params.sim, sizeof(params.sim), BUSY);
	params.boards = 4;
	if (hal_sim_ops.open(&params, &hal) != 0 ||
	    hal_if_open(hal, (int)(number % 4), &hif) != 0)
		return 2;
	while ((ret = hal_connect(hif, addr, &peer)) == -FI_EAGAIN)
		if (!sender_step(hif))
			return 3;
	for (uint64_t i = 0; ret == 0 && i < EACH; ) {
		uint64_t w[3] = { i, number, ~i };

		if (hal_pkt_send(peer, hal_head(1, 0), w, 3, NULL, 0) == 0) {
			i++;
			last = now();
		} else if (!sender_step(hif)) {
			return 4;
		}
	}
	hal_if_close(hif);
	hal->ops->close(hal);
	return ret == 0 ? 0 : 5;
}

/* Takes all packets of a peer; those of each sender must be in order. */
static void take_all(struct hal_peer *peer, uint64_t *got)
{
	const struct hal_cell *cell;
	uint64_t head;

	while (peer->rx.cells != NULL &&
	       (cell = hal_rx_peek(peer, &head)) != NULL) {
		uint64_t number = hal_cell_word(cell, 1);
		uint64_t i = hal_cell_word(cell, 0);

		assert_true(number < SENDERS && hal_cell_word(cell, 2) == ~i);
		if (got[number] != i)
			unit_fail("packet %llu of %llu came where %llu was due",
				  (unsigned long long)i,
				  (unsigned long long)number,
				  (unsigned long long)got[number]);
		got[number]++;
		last = now();
		hal_rx_release(peer);
		hal_rx_flush(peer);
	}
}

/* Takes all packets, until every sender has ended. */
static void take_of_processes(uint64_t *got)
{
	unsigned dead = 0;

	for (last = now(); dead != SENDERS; ) {
		struct hal_event ev[SENDERS];
		int n;

		hal_if_pump(to);
		n = hal_if_service(to, ev, SENDERS);
		for (uint32_t i = 0; i < to->ninbound; i++)
			take_all(to->inbound[i], got);
		for (int i = 0; i < n; i++) {
			if (ev[i].type != HAL_EV_DEAD)
				continue;
			hal_peer_free(ev[i].peer);
			dead++;
		}
		assert_true(now() - last < PATIENCE);
		sched_yield();
	}
}

/* Sixteen processes send to one interface as fast as it takes packets. */
static void full_mailbox_of_processes(void **state)
{
	uint64_t got[SENDERS] = { 0 };
	struct hal_params params;
	pid_t pid[SENDERS];

	assert_int_equal(hal_params_load(&params), 0);
	snprintf(params.hal, sizeof(params.hal), "sim");
	snprintf(params.sim, sizeof(params.sim), BUSY);
	params.boards = 4;
	refused = mmap(NULL, sizeof(*refused), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(refused != MAP_FAILED);
	assert_int_equal(hal_sim_ops.open(&params, &hal), 0);
	assert_int_equal(hal_if_open(hal, 0, &to), 0);
	fflush(NULL);
	for (int s = 0; s < SENDERS; s++) {
		pid[s] = unit_fork();
		if (pid[s] == 0)
			_exit(sender_main((uint64_t)s, &to->addr));
	}
	/* the mailbox is full before the receiver first polls it */
	for (last = now(); atomic_load(refused) == 0; sched_yield())
		assert_true(now() - last < PATIENCE);
	take_of_processes(got);
	for (int s = 0; s < SENDERS; s++) {
		assert_int_equal(unit_exit_code(pid[s]), 0);
		assert_true(got[s] == EACH);
	}
	print_message("%u packets, %llu refused\n", SENDERS * EACH,
		      (unsigned long long)atomic_load(refused));
	munmap(refused, sizeof(*refused));
	hal_if_close(to);
	hal->ops->close(hal);
}

/* The event of a sender, which may have closed. Returns true at its end. */
static bool one_event(const struct hal_event *ev, const uint64_t *nonce)
{
	int s = 0;

	while (s < SENDERS && nonce[s] != ev->peer->addr.nonce)
		s++;
	assert_true(s < SENDERS);
	senders[s].seen = ev->peer;
	if (ev->type != HAL_EV_DEAD)
		return false;
	take(&senders[s]);
	assert_true(senders[s].got == senders[s].sent);
	senders[s].seen = NULL;
	hal_peer_free(ev->peer);
	return true;
}

/* Senders close while their packets wait for the mailbox: all packets
 * arrive. */
static void full_mailbox_of_the_closed(void **state)
{
	uint64_t nonce[SENDERS];
	struct hal_event ev[4];
	int ended = 0;

	open_all("fifo=8,depth=16,world=85");
	for (last = now(); now() - last < 0.2;)
		for (int s = 0; s < SENDERS; s++) {
			push(&senders[s]);
			pump(&senders[s]);
		}
	for (int s = 0; s < SENDERS; s++) {
		assert_true(senders[s].sent == 16);
		nonce[s] = senders[s].hif->addr.nonce;
		hal_if_close(senders[s].hif);
	}
	for (last = now(); ended < SENDERS;) {
		int n;

		hal_if_pump(to);
		n = hal_if_service(to, ev, 4);
		for (int i = 0; i < n; i++)
			ended += one_event(&ev[i], nonce);
		for (int s = 0; s < SENDERS; s++)
			take(&senders[s]);
		assert_true(now() - last < PATIENCE);
	}
	hal_if_close(to);
	hal->ops->close(hal);
}

UNIT_MAIN(
	cmocka_unit_test(full_mailbox),
	cmocka_unit_test(full_mailbox_slow_answers),
	cmocka_unit_test(full_mailbox_of_another),
	cmocka_unit_test(full_mailbox_of_processes),
	cmocka_unit_test(full_mailbox_of_the_closed),
)
