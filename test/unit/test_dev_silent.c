/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_dev_silent.c - hardware that loses packets silently. ACK and NACK keep
 * their value until the next packet is transmitted [D table 5], so if a packet
 * is not transmitted they describe the packet before it. Also mailboxes that
 * return wrong values. No packet may be lost without an event.
 */
#include "hal/dev/hal_dev_echo.h"
#include "hal/dev/hal_dev_pif.h"
#include "hal/dev/hal_dev_table.h"
#include "lib/dev_shim.h"
#include "lib/proc_files.h"
#include "hal/sim/hal_sim.h"

static struct hal_mmio_map trusted(struct hal_if *hif)
{
	struct hal_mmio_map tif;

	hal_sim_trusted(dev_if(hif)->mm, &tif);
	return tif;
}

/* Makes the driver's registers of the interface's board wrong. */
static void base_dest_is_wrong(struct hal_if *hif)
{
	struct hal_mmio_map tif = trusted(hif);
	uint64_t base = hal_sim_mmio_ops.read64(&tif, HAL_TIF_BASE_DEST);

	hal_sim_mmio_ops.write64(&tif, HAL_TIF_BASE_DEST,
				 base ^ UINT64_C(1) << 20);
}

static void bit_is_off(struct hal_if *hif, bool off)
{
	struct hal_mmio_map tif = trusted(hif);
	uint64_t bit = UINT64_C(1) << hif->addr.iface;
	uint64_t conf = hal_sim_mmio_ops.read64(&tif, HAL_TIF_PID_CONF);

	hal_sim_mmio_ops.write64(&tif, HAL_TIF_PID_CONF,
				 off ? conf & ~bit : conf | bit);
}

/* A pair whose last packet was taken: ACK is set. */
static struct pair pair_with_ack(const char *sim)
{
	struct pair p;

	lie.sim = sim;
	p = pair();
	assert_true(until(&p, dev_peer(p.ab)->connected_reported));
	for (uint64_t i = 0; i < 3; i++) {
		assert_int_equal(send_word(p.ab, i), 0);
		assert_true(until(&p, next_is(p.ba, i)));
	}
	assert_true(until(&p, dev_if(p.a)->pif_holds == DEV_PIF_FREE));
	assert_true(dev_if(p.a)->pif_answer == HAL_PIF_ACK);
	lines = 0;
	return p;
}

/* An illegal packet is not transmitted, whatever ACK and NACK say. */
static void illegal(const char *sim)
{
	struct pair p = pair_with_ack(sim);

	base_dest_is_wrong(p.a);
	assert_int_equal(send_word(p.ab, 3), 0);
	assert_int_equal(send_word(p.ab, 4), 0);
	assert_true(until(&p, p.dead_a != 0));
	assert_int_equal(p.dead_a, -FI_EIO);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "ILLEGAL"));
	assert_false(next_is(p.ba, 3));
	unpair(&p);
	close_hal();
}

static void illegal_beside_an_old_ack(void **state)
{
	illegal("world=100,fifo=64");
	illegal("world=101,fifo=64,illegal=0");
	illegal("world=102,fifo=64,prep=1");
}

/* A HELLO that is illegal: the connection ends at once. */
static void illegal_hello(void **state)
{
	int ret = 0;
	struct pair p;

	lie.sim = "world=117";
	p = pair_open();
	lines = 0;
	base_dest_is_wrong(p.a);
	assert_true(until(&p, (ret = hal_connect(p.a, &p.b->addr, &p.ab)) !=
			      -FI_EAGAIN));
	assert_int_equal(ret, -FI_ECONNREFUSED);
	assert_null(p.ab);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "ILLEGAL"));
	unpair(&p);
}

/* With two peers: both end, as neither can be reached. */
static void not_configured_beside_an_old_ack(void **state)
{
	struct pair p = pair_with_ack("world=103,fifo=64");
	struct pair q = { .a = p.a };

	assert_int_equal(hal_if_open(hal, 1, &q.b), 0);
	assert_true(until(&q, hal_connect(p.a, &q.b->addr, &q.ab) == 0));
	assert_true(until(&q, q.ba != NULL &&
			  dev_peer(q.ab)->connected_reported));
	lines = 0;
	bit_is_off(p.a, true);
	assert_int_equal(send_word(p.ab, 3), 0);
	assert_int_equal(send_word(p.ab, 4), 0);
	assert_true(until(&p, dev_peer(p.ab)->p.dead &&
			      dev_peer(q.ab)->p.dead));
	assert_int_equal(dev_peer(p.ab)->ev_status, -FI_EIO);
	assert_int_equal(dev_peer(q.ab)->ev_status, -FI_EIO);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "PID_CONF"));
	assert_false(next_is(p.ba, 3));
	hal_if_close(q.b);
	unpair(&p);
}

/* An old NACK is not taken for a refusal: the mailbox had room. */
static void not_configured_beside_an_old_nack(void **state)
{
	struct pair p = pair_with_ack("world=104,fifo=8,depth=16");
	struct dev_if *dif = dev_if(p.a);
	struct hal_event ev[4];

	for (uint64_t i = 3; i < 8; i++)
		assert_int_equal(send_word(p.ab, i), 0);
	while (dif->pif_holds != DEV_PIF_FREE || dif->stats.nacks == 0)
		hal_if_pump(p.a);
	assert_true(dif->pif_answer == HAL_PIF_NACK);
	bit_is_off(p.a, true);
	for (uint64_t i = 3; i < 7; i++)
		assert_true(until(&p, next_is(p.ba, i)));
	for (double end = now() + 5; p.dead_a == 0 && now() < end;)
		if (hal_if_service(p.a, ev, 1) == 1)
			p.dead_a = ev[0].type == HAL_EV_DEAD ?
				   ev[0].status : 0;
	assert_int_equal(p.dead_a, -FI_EIO);
	assert_non_null(strstr(said, "PID_CONF"));
	unpair(&p);
}

/* The next connection ends, too; but the log says so once. */
static void not_configured_is_logged_once(void **state)
{
	struct pair p = pair_with_ack("world=118,fifo=64");

	errors = 0;
	bit_is_off(p.a, true);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(send_word(p.ab, 3), 0);
		assert_true(until(&p, p.ab->dead));
		assert_int_equal(dev_peer(p.ab)->ev_status, -FI_EIO);
		assert_int_equal(errors, 1);
		assert_non_null(strstr(said, "PID_CONF"));
		hal_peer_free(p.ab);
		assert_true(until(&p, hal_connect(p.a, &p.b->addr, &p.ab) ==
				      0));
	}
	unpair(&p);
}

/* The papers do not say that CLR_REQ clears ACK: an ACK after it is not taken
 * for an answer to the next packet. */
static void ack_outlives_a_clear(void **state)
{
	struct pair p = pair_with_ack("world=115,fifo=64");
	struct dev_if *dif = dev_if(p.a);
	struct pair q = { .a = p.a };

	assert_int_equal(hal_if_open(hal, 1, &q.b), 0);
	assert_true(until(&q, hal_connect(p.a, &q.b->addr, &q.ab) == 0));
	assert_true(until(&q, q.ba != NULL &&
			  dev_peer(q.ab)->connected_reported));
	/* no echo is due that would prove more than one packet */
	assert_true(until(&p, !dif->unproven && dif->echo == DEV_ECHO_NONE &&
			      dif->pif_holds == DEV_PIF_FREE));
	lie.pending = true;
	lie.pif_or = HAL_PIF_ACK;
	assert_int_equal(send_word(p.ab, 3), 0);
	assert_true(until(&p, dev_peer(p.ab)->p.dead));
	assert_non_null(strstr(said, "no answer to a packet"));
	lie.pending = false;
	bit_is_off(p.a, true);
	assert_int_equal(send_word(q.ab, 4), 0);
	assert_true(until(&p, dev_peer(q.ab)->p.dead));
	assert_int_equal(dev_peer(q.ab)->ev_status, -FI_EIO);
	assert_non_null(strstr(said, "PID_CONF"));
	hal_if_close(q.b);
	unpair(&p);
}

/* The status that the last holder's packet left is not taken for an answer to
 * the next holder. */
static void status_of_the_last_holder(void **state)
{
	struct pair p = pair_with_ack("world=105,fifo=64,ifs=1");
	struct hal_peer *ab;

	hal_if_close(p.a);
	p.a = NULL;
	assert_true(until(&p, p.dead_b != 0));
	assert_int_equal(hal_if_open(hal, 0, &p.a), 0);
	assert_true(dev_if(p.a)->pif_answer == HAL_PIF_ACK);
	p.dead_b = 0;
	bit_is_off(p.a, true);
	/* the HELLO seems to be taken, but is not */
	assert_int_equal(hal_connect(p.a, &p.b->addr, &ab), 0);
	assert_true(until(&p, p.dead_a != 0));
	assert_int_equal(p.dead_a, -FI_EIO);
	unpair(&p);
}

/* With correct hardware no peer ends: neither with packets that are taken or
 * refused, nor when the sender's own mailbox is full. */
static void echoes_prove(void **state)
{
	struct pair p = pair_with_ack("world=106,fifo=8,depth=16");
	struct dev_if *dif = dev_if(p.a);
	struct hal_peer *ba;
	uint64_t sent = 0, echoes;

	assert_true(until(&p, !dif->unproven && dif->echo == DEV_ECHO_NONE));
	assert_true(until(&p, hal_connect(p.b, &p.a->addr, &ba) == 0));
	assert_true(until(&p, dev_peer(ba)->connected_reported));
	for (double end = now() + 0.2; now() < end; sent++) {
		assert_int_equal(send_word(p.ab, sent), 0);
		assert_int_equal(send_word(ba, sent), 0);
		assert_true(until(&p, next_is(p.ba, sent)));
		assert_true(until(&p, next_is(p.ab, sent)));
	}
	echoes = dif->echo_number;
	assert_in_range(echoes, 2, 30);
	/* b does not poll: packets of a are refused, its echoes are taken */
	for (int i = 0; i < 5; i++)
		assert_int_equal(send_word(p.ab, sent + (uint64_t)i), 0);
	for (double end = now() + 0.1; now() < end;) {
		struct hal_event ev[4];

		hal_if_pump(p.a);
		assert_int_equal(hal_if_service(p.a, ev, 4), 0);
	}
	assert_true(dif->stats.nacks != 0);
	for (int i = 0; i < 5; i++)
		assert_true(until(&p, next_is(p.ba, sent + (uint64_t)i)));
	/* nothing is sent, so there is no echo */
	assert_true(until(&p, !dif->unproven && dif->echo == DEV_ECHO_NONE));
	echoes = dif->echo_number;
	for (double end = now() + 0.05; now() < end;)
		step(&p);
	assert_int_equal(dif->echo_number, echoes);
	assert_int_equal(p.dead_a, 0);
	assert_int_equal(p.dead_b, 0);
	unpair(&p);
}

/* An echo that was read before its answer is the proof: the answer does not
 * make the interface wait for the echo again. */
static void echo_before_its_answer(void **state)
{
	struct pair p = pair_with_ack("world=116,fifo=64");
	struct dev_if *dif = dev_if(p.a);
	uint64_t echoes;

	assert_true(until(&p, !dif->unproven && dif->echo == DEV_ECHO_NONE &&
			      dif->pif_holds == DEV_PIF_FREE));
	echoes = dif->echo_number;
	assert_int_equal(send_word(p.ab, 3), 0);
	assert_true(until(&p, dif->pif_holds == DEV_PIF_FREE));
	assert_int_equal(dif->echo_number, echoes);
	lie.pending = true;
	assert_true(until(&p, dif->echo_number != echoes &&
			      dif->echo == DEV_ECHO_NONE));
	lie.pending = false;
	assert_true(until(&p, dif->pif_holds == DEV_PIF_FREE));
	/* an interface that waits does so for 10 ms */
	for (double end = now() + 0.03; now() < end;)
		step(&p);
	assert_true(dif->echo == DEV_ECHO_NONE);
	assert_int_equal(lines, 0);
	assert_int_equal(p.dead_a, 0);
	unpair(&p);
}

/* ---- When an echo is sent, and what it proves -------------------------- */

/* An interface that must send an echo: its last packets were acknowledged like
 * those before, and the echo has been due for long. */
static struct pair pair_with_echo_due(const char *sim)
{
	struct pair p = pair_with_ack(sim);
	struct dev_if *dif = dev_if(p.a);

	assert_true(until(&p, !dif->unproven && dif->echo == DEV_ECHO_NONE &&
			      dif->pif_holds == DEV_PIF_FREE));
	assert_int_equal(send_word(p.ab, 3), 0);
	while (!dev_pif_idle(dif, 1))
		;
	assert_true(dif->unproven);
	dif->echo_at = 1;
	return p;
}

/* A mailbox that is never empty: packets of unknown interfaces. */
static void never_empty_from_now(void)
{
	lie.empty[0] = lie.empty[1] = hal_head(1, 0) | hal_id(1, 63, 9);
}

/* No echo is sent while the mailbox has packets or while the packetizer has
 * one; nor when the answer to that packet is the proof: here, NACK after
 * ACK. */
static void echo_is_not_sent_yet(void **state)
{
	struct pair p = pair_with_echo_due("world=125,fifo=8,depth=16");
	struct dev_if *dif = dev_if(p.a);
	uint64_t echoes = dif->echo_number;

	never_empty_from_now();
	dev_echo_run(dif);
	lie.empty[0] = 0;
	assert_true(dif->echo == DEV_ECHO_NONE && dif->unproven);
	for (uint64_t i = 4; i < 8; i++) {	/* one too many for b */
		while (!dev_pif_idle(dif, 1))
			;
		assert_int_equal(send_word(p.ab, i), 0);
	}
	assert_true(dif->pif_answer == HAL_PIF_ACK && dif->unproven);
	lie.pending = true;
	dev_echo_run(dif);
	lie.pending = false;
	assert_true(dif->echo == DEV_ECHO_NONE && dif->unproven);
	while (dif->echo_at != 0)
		dev_echo_run(dif);
	assert_true(dif->pif_answer == HAL_PIF_NACK && !dif->unproven);
	assert_int_equal(dif->echo_number, echoes);
	for (uint64_t i = 3; i < 8; i++)
		assert_true(until(&p, next_is(p.ba, i)));
	unpair(&p);
}

static struct hal_peer *filler;		/* its packets fill the mailbox */

static void fill(void)
{
	struct dev_if *dif = dev_if(filler->hif);

	for (uint64_t i = 0; i < 4; i++) {
		assert_int_equal(send_word(filler, i), 0);
		while (!dev_pif_idle(dif, 1))
			;
	}
	assert_true(dif->pif_answer == HAL_PIF_ACK);
}

static void fill_for_ever(void)
{
	fill();
	never_empty_from_now();
}

/* An echo that the sender's own mailbox refuses, because packets have filled it
 * after it was emptied, proves nothing: neither that packets are transmitted,
 * nor that they are not. The next echo does. The same if more packets keep
 * arriving. */
static void echo_is_refused(void (*meanwhile)(void))
{
	struct pair p = pair_with_ack("world=126,fifo=8,depth=16");
	struct dev_if *dif = dev_if(p.a);
	uint64_t echoes;

	errors = 0;
	assert_true(until(&p, hal_connect(p.b, &p.a->addr, &filler) == 0));
	assert_true(until(&p, dev_peer(filler)->connected_reported));
	assert_true(until(&p, !dif->unproven && dif->echo == DEV_ECHO_NONE &&
			      dif->pif_holds == DEV_PIF_FREE));
	/* b's mailbox is full, and refuses the last packet again and again */
	for (uint64_t i = 3; i < 8; i++)
		assert_int_equal(send_word(p.ab, i), 0);
	while (dif->pif_holds != DEV_PIF_FREE || dif->stats.nacks == 0)
		hal_if_pump(p.a);
	lie.pending = true;
	while (dif->pif_holds == DEV_PIF_FREE)
		hal_if_pump(p.a);
	lie.pending = false;
	echoes = dif->echo_number;
	dif->echo_at = 1;
	lie.answered = meanwhile;
	dev_echo_run(dif);
	assert_null(lie.answered);
	lie.empty[0] = 0;
	assert_int_equal(dif->echo_number, echoes + 1);
	assert_true(dif->echo == DEV_ECHO_NONE && dif->unproven);
	for (uint64_t i = 3; i < 8; i++)
		assert_true(until(&p, next_is(p.ba, i)));
	assert_true(until(&p, !dif->unproven && dif->echo == DEV_ECHO_NONE));
	for (uint64_t i = 0; i < 4; i++)
		assert_true(until(&p, next_is(p.ab, i)));
	assert_int_equal(p.dead_a, 0);
	assert_int_equal(errors, 0);
	unpair(&p);
	close_hal();
}

static void echo_is_refused_by_a_full_mailbox(void **state)
{
	echo_is_refused(fill);
	echo_is_refused(fill_for_ever);
}

/* An echo seems to be taken but does not arrive. While the mailbox has packets,
 * it may still arrive; afterwards the peers end. */
static void echo_may_still_arrive(void **state)
{
	struct pair p = pair_with_echo_due("world=127,fifo=64");
	struct dev_if *dif = dev_if(p.a);

	errors = 0;
	bit_is_off(p.a, true);
	lie.answered = never_empty_from_now;
	while (dif->echo != DEV_ECHO_TAKEN)
		dev_echo_run(dif);
	dif->echo_at = 1;
	dev_echo_run(dif);
	assert_true(dif->echo == DEV_ECHO_TAKEN);
	assert_int_equal(errors, 0);
	lie.empty[0] = 0;
	dev_echo_run(dif);
	assert_true(dif->echo == DEV_ECHO_NONE);
	assert_int_equal(errors, 1);
	assert_true(until(&p, p.dead_a == -FI_EIO));
	unpair(&p);
}

/* An illegal echo is not transmitted, so that it proves nothing. The line names
 * the register that is wrong. */
static void echo_is_illegal(void **state)
{
	static const char *const sims[] = {
		"world=128,fifo=64", "world=135,fifo=64,illegal=0",
	};

	for (int i = 0; i < 2; i++) {
		struct pair p = pair_with_echo_due(sims[i]);
		uint64_t echoes = dev_if(p.a)->echo_number;

		base_dest_is_wrong(p.a);
		assert_true(until(&p, p.dead_a == -FI_EIO));
		assert_int_equal(dev_if(p.a)->echo_number, echoes + 1);
		assert_non_null(strstr(said, "transmits nothing"));
		assert_non_null(strstr(said, "BASE_DEST"));
		assert_null(strstr(said, "PID_CONF"));
		unpair(&p);
		close_hal();
	}
}

/* An echo without an answer: the packetizer is cleared, and no peer is to
 * blame. If the echo has not arrived either, another one is sent, because the
 * packets that it was to prove may be lost. */
static void echo_without_an_answer(void **state)
{
	for (int off = 0; off < 2; off++) {
		struct pair p = pair_with_echo_due("world=129,fifo=64");
		struct dev_if *dif = dev_if(p.a);
		uint64_t echoes = dif->echo_number;

		bit_is_off(p.a, off);
		lie.pending = true;
		errors = 0;
		assert_true(until(&p, errors != 0));
		lie.pending = false;
		assert_int_equal(errors, 1);
		assert_non_null(strstr(said, "no answer to a packet to 0:"));
		assert_int_equal(dif->echo_number, echoes + 1);
		assert_true(dif->echo == DEV_ECHO_NONE);
		assert_int_equal(dif->unproven, off);
		assert_int_equal(p.dead_a, 0);
		if (off)
			assert_true(until(&p, p.dead_a == -FI_EIO));
		assert_int_equal(errors, off + 1);
		unpair(&p);
		close_hal();
	}
	assert_non_null(strstr(said, "PID_CONF"));
}

static void stopped_for_long(void)
{
	lie.pending = false;
	usleep(60 * 1000);
}

/* A process is stopped after it has read the status of a packet and before it
 * reads the clock. The answer has come meanwhile, so the packet is not late. */
static void answer_while_stopped(void **state)
{
	struct pair p = pair_with_ack("world=131,fifo=64");
	struct dev_if *dif = dev_if(p.a);

	lie.pending = true;
	assert_int_equal(send_word(p.ab, 3), 0);
	assert_false(dev_pif_idle(dif, 1));
	lie.pended = stopped_for_long;
	assert_true(dev_pif_idle(dif, 1));
	assert_null(lie.pended);
	assert_false(dev_peer(p.ab)->p.dead);
	assert_true(until(&p, next_is(p.ba, 3)));
	assert_int_equal(lines, 0);
	unpair(&p);
}

/* No echo has an answer or arrives: after a few, the peers end, and the log
 * has one line about the first echo and one about the end. */
static void echoes_without_an_answer(void **state)
{
	struct pair p = pair_with_echo_due("world=130,fifo=64");
	struct dev_if *dif = dev_if(p.a);
	uint64_t echoes = dif->echo_number;

	bit_is_off(p.a, true);
	lie.pending = true;
	errors = 0;
	assert_true(until(&p, p.dead_a == -FI_EIO));
	assert_int_equal(dif->echo_number, echoes + 3);
	assert_int_equal(errors, 2);
	assert_non_null(strstr(said, "all connections end"));
	assert_false(dif->unproven);
	for (int i = 0; i < 100; i++)
		step(&p);
	assert_int_equal(dif->echo_number, echoes + 3);
	lie.pending = false;
	unpair(&p);
}

/* ---- Mailboxes that return wrong values -------------------------------- */

/* The backend learns the pattern of an empty mailbox [D 5.1.1, 2.3.3]. Packets
 * arrive, also those whose payload equals the pattern. */
static void empty_by(const char *sim, uint64_t pattern, uint64_t is)
{
	struct pair p;

	lie.sim = sim;
	lie.empty[0] = lie.empty[1] = pattern;
	p = pair();
	assert_true(dev_if(p.a)->empty == is && dev_if(p.b)->empty == is);
	for (int i = 0; i < 20; i++)
		step(&p);
	lines = 0;
	assert_int_equal(send_word(p.ab, is), 0);
	assert_true(until(&p, next_is(p.ba, is)));
	assert_int_equal(dev_if(p.b)->stats.unknown, 0);
	assert_int_equal(lines, 0);
	assert_int_equal(p.dead_a, 0);
	unpair(&p);
	close_hal();
}

static void empty_pattern_is_learnt(void **state)
{
	empty_by("world=107", 0, HAL_MIF_EMPTY);
	empty_by("world=107,empty=beef", 0, HAL_MIF_EMPTY_BEEF);
	empty_by("world=107", UINT64_MAX, UINT64_MAX);
}

/* A peer that connects as soon as the address can be known is not lost. */
static struct hal_if *early;
static struct hal_peer *early_peer;

static void connect_early(void)
{
	struct hal_addr to = early->addr;

	to.board = 1;
	to.iface = 1;
	to.nonce = HAL_ADDR_ANY;
	assert_int_equal(hal_connect(early, &to, &early_peer), 0);
}

static void packets_while_it_is_learnt(void **state)
{
	struct pair p = { 0 };

	lie.sim = "world=108,ifs=1";
	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 0, &p.a), 0);
	early = p.a;
	lie.first_read = connect_early;
	assert_int_equal(hal_if_open(hal, 1, &p.b), 0);
	assert_null(lie.first_read);
	assert_true(until(&p, p.ba != NULL));
	assert_int_equal(send_word(early_peer, 5), 0);
	assert_true(until(&p, next_is(p.ba, 5)));
	unpair(&p);
}

/* A mailbox that never reads as empty: opening fails, one line is logged, and
 * nothing is left open. */
static void never_empty(void **state)
{
	struct hal_if *hif = NULL, *other;
	int fds;

	lie.sim = "world=109";
	assert_int_equal(open_hal(), 0);
	assert_int_equal(hal_if_open(hal, 0, &other), 0);
	fds = proc_self_fds();
	lines = 0;
	lie.empty[0] = HAL_MIF_EMPTY;
	lie.empty[1] = HAL_MIF_EMPTY_BEEF;
	assert_int_equal(hal_if_open(hal, 0, &hif), -FI_EIO);
	assert_null(hif);
	assert_int_equal(lines, 1);
	assert_non_null(strstr(said, "does not read as empty"));
	assert_int_equal(proc_self_fds(), fds);
	lie.empty[0] = 0;
	assert_int_equal(hal_if_open(hal, 0, &hif), 0);
	hal_if_close(hif);
	hal_if_close(other);
}

/* A mailbox that stops reading as empty: every call returns, one line is
 * logged, the peers end. If that lasts for a short time only, no peer ends. */
static void empty_no_more(void **state)
{
	struct pair p;

	lie.sim = "world=110,fifo=64";
	p = pair();
	lines = 0;
	lie.empty[0] = lie.empty[1] = HAL_MIF_EMPTY_BEEF;
	lie.empty_for = 60;
	for (int i = 0; i < 20; i++)
		step(&p);
	assert_int_equal(lie.empty[0], 0);
	assert_int_equal(send_word(p.ab, 1), 0);
	assert_true(until(&p, next_is(p.ba, 1)));
	assert_int_equal(lines, 0);
	lie.empty[0] = lie.empty[1] = HAL_MIF_EMPTY_BEEF;
	assert_true(until(&p, p.dead_a != 0 && p.dead_b != 0));
	assert_int_equal(p.dead_a, -FI_EIO);
	for (int i = 0; i < 20; i++)
		step(&p);
	assert_int_equal(lines, 2);	/* one for each interface */
	assert_non_null(strstr(said, "without end"));
	be_honest();
	unpair(&p);
}

#define ECHO	7			/* number of the last echo of a */

/* A read that does not dequeue returns the same first half of a packet for
 * ever: one line for each interface, and nothing ends. */
static void packet_without_end(uint64_t head, uint64_t second)
{
	struct pair p;

	lie.sim = "world=111";
	p = pair();
	lines = 0;
	dev_if(p.a)->echo_number = ECHO;
	lie.empty[0] = lie.empty[1] = head == 0 ?
		hal_head(DEV_PKT_ECHO, 0) | dev_if(p.a)->identity : head;
	lie.empty_second = second == HAL_ADDR_ANY ? p.a->addr.nonce : second;
	assert_true(until(&p, lines == 2));
	assert_non_null(strstr(said, "does a read dequeue"));
	for (int i = 0; i < 20000; i++)
		step(&p);
	assert_int_equal(lines, 2);
	assert_int_equal(p.dead_a, 0);
	be_honest();
	/* few packets that change nothing are no error */
	assert_int_equal(send_word(p.ab, 1), 0);
	assert_true(until(&p, next_is(p.ba, 1)));
	assert_int_equal(dev_if(p.a)->idle_run, 0);
	unpair(&p);
	close_hal();
}

static void same_packet_without_end(void **state)
{
	uint64_t id = hal_id(1, 63, 9);

	packet_without_end(hal_head(1, 0) | id, 0);
	packet_without_end(hal_head(DEV_PKT_HELLO, 0) | id, 1);
	packet_without_end(hal_head(DEV_PKT_HELLO, 0) | id, HAL_ADDR_ANY);
	packet_without_end(hal_head(DEV_PKT_WAKE, 0) | id, 0);
	packet_without_end(0, ECHO);		/* came before, at a */
	packet_without_end(0, ECHO + 1);
	packet_without_end(hal_head(HAL_PKT_RESERVED + 5, 0) | id, 0);
}

UNIT_MAIN(
	DEV_TEST(illegal_beside_an_old_ack),
	DEV_TEST(illegal_hello),
	DEV_TEST(not_configured_beside_an_old_ack),
	DEV_TEST(not_configured_beside_an_old_nack),
	DEV_TEST(not_configured_is_logged_once),
	DEV_TEST(ack_outlives_a_clear),
	DEV_TEST(status_of_the_last_holder),
	DEV_TEST(echoes_prove),
	DEV_TEST(echo_before_its_answer),
	DEV_TEST(echo_is_not_sent_yet),
	DEV_TEST(echo_is_refused_by_a_full_mailbox),
	DEV_TEST(echo_may_still_arrive),
	DEV_TEST(echo_is_illegal),
	DEV_TEST(echo_without_an_answer),
	DEV_TEST(echoes_without_an_answer),
	DEV_TEST(answer_while_stopped),
	DEV_TEST(empty_pattern_is_learnt),
	DEV_TEST(packets_while_it_is_learnt),
	DEV_TEST(never_empty),
	DEV_TEST(empty_no_more),
	DEV_TEST(same_packet_without_end),
)
