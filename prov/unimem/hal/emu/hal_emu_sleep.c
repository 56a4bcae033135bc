/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_sleep.c - sleeping until a packet comes: arming an interface.
 *
 * Entry points: emu_sleep_open(), emu_arm(), emu_disarm(), emu_sleep_tick().
 * docs/memory-ordering.md shows why no wake-up is lost; emu_wake() in
 * hal_emu_conn.c is the sender's part.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "hal/emu/hal_emu_event.h"
#include "hal/emu/hal_emu_sleep.h"
#include "hal/hal_peer.h"
#include "util/unm_clock.h"

#define CHECK_MIN_NS	1000000		/* first sleep until the timer; later
					 * ones are twice as long each */
#define CHECK_NEAR_NS	100000		/* a store made before arming is seen
					 * long before this time is over */

static int membarrier(int cmd)
{
	return (int)syscall(SYS_membarrier, cmd, 0, 0);
}

void emu_sleep_open(struct hal_emu *emu)
{
	emu->membarrier = membarrier(
		MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED) == 0;
}

static void set_asleep(struct emu_if *eif, uint32_t sleep)
{
	for (uint32_t i = 0; i < eif->i.ninbound; i++) {
		struct hal_rx *rx = &eif->i.inbound[i]->rx;

		/* ordered by the barrier in emu_arm() */
		atomic_store_explicit(&rx->sleep->asleep, rx->held ? 0 : sleep,
				      memory_order_relaxed);
	}
}

/* ---- Checking again ---------------------------------------------------- */

int emu_sleep_if_open(struct emu_if *eif)
{
	int ret;

	eif->timer.fd = timerfd_create(CLOCK_MONOTONIC,
				       TFD_CLOEXEC | TFD_NONBLOCK);
	if (eif->timer.fd < 0) {
		ret = -errno;
		hal_log(0, "cannot open the timer of an interface: %s%s",
			strerror(-ret), hal_log_advice(ret, ""));
		return ret;
	}
	ret = emu_watch(eif, &eif->timer);
	if (ret != 0)
		close(eif->timer.fd);
	return ret;
}

void emu_sleep_if_close(struct emu_if *eif)
{
	emu_unwatch(eif, &eif->timer);
	close(eif->timer.fd);
}

static uint64_t packets_taken(const struct emu_if *eif)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < eif->i.ninbound; i++)
		sum += eif->i.inbound[i]->rx.next;
	return sum;
}

static void set_timer(struct emu_if *eif, uint64_t ns)
{
	struct itimerspec at = { { 0, 0 }, { 0, 0 } };

	eif->check_at = ns;
	at.it_value.tv_sec = (time_t)(ns / 1000000000);
	at.it_value.tv_nsec = (long)(ns % 1000000000);
	timerfd_settime(eif->timer.fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/*
 * Let the timer end this sleep, so that a packet which no wake-up follows is
 * found. It runs on when the sleep ends earlier, so that it is not set for each
 * of many short sleeps. barrier: all senders have passed one; without, packets
 * without a wake-up are frequent.
 */
static void check_later(struct emu_if *eif, bool barrier)
{
	uint64_t max = (uint64_t)eif->emu->hal.params.sleep_ms * 1000000;
	uint64_t now = unm_now_ns(), taken = packets_taken(eif);

	if (barrier && max == 0)
		return;
	if (eif->check_at != 0 && eif->check_at <= now)
		eif->check_ns *= 2;
	if (!barrier || taken != eif->check_taken || eif->check_ns == 0)
		eif->check_ns = CHECK_MIN_NS;
	else if (eif->check_ns > max)
		eif->check_ns = max;
	eif->check_taken = taken;
	if (eif->check_at > now + CHECK_NEAR_NS &&
	    eif->check_at <= now + eif->check_ns)
		return;
	set_timer(eif, now + eif->check_ns);
}

void emu_sleep_until(struct emu_if *eif, uint64_t at)
{
	if (eif->check_at > unm_now_ns() && eif->check_at <= at)
		return;
	set_timer(eif, at);
}

void emu_sleep_tick(struct emu_if *eif)
{
	uint64_t ticks;

	if (read(eif->timer.fd, &ticks, sizeof(ticks)) < 0)
		return;			/* set anew since it expired */
}

/* ---- Arming ----------------------------------------------------------- */

void emu_disarm(struct hal_if *hif)
{
	struct emu_if *eif = emu_if(hif);

	if (!eif->armed)
		return;
	eif->armed = false;
	set_asleep(eif, 0);
}

/*
 * A sender stores its packet and then loads asleep, with no fence between. The
 * receiver stores asleep, has the kernel issue a barrier on the processor of
 * each sender, and then checks the rings: either it finds the packet, or the
 * sender finds that the receiver sleeps. The timer is for kernels whose barrier
 * leaves out a processor (docs/memory-ordering.md).
 */
int emu_arm(struct hal_if *hif)
{
	struct emu_if *eif = emu_if(hif);
	bool barrier;

	if (!unm_list_empty(&eif->events) || eif->ntodo != 0 || eif->place_free)
		return -FI_EAGAIN;
	if (++eif->sleeps == 0)
		eif->sleeps = 1;
	set_asleep(eif, eif->sleeps);
	eif->armed = true;
	barrier = eif->nticks == 0 &&
		  membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED) == 0;
	check_later(eif, barrier);
	if (hal_inbound_pending(hif)) {
		emu_disarm(hif);
		return -FI_EAGAIN;
	}
	return 0;
}
