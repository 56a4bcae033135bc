/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broken_conn.c - mutations of connections, the death of peers, sleeping and
 * closing, see broken.h
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "broken.h"

/* ---- Addresses ------------------------------------------------------- */

static int (*good_connect)(struct hal_if *hif, const struct hal_addr *to,
			   struct hal_peer **peer);

/* Ignore the nonce: connect to any holder of the interface. */
static int connect_any(struct hal_if *hif, const struct hal_addr *to,
		       struct hal_peer **peer)
{
	struct hal_addr any = *to;

	any.nonce = HAL_ADDR_ANY;
	return good_connect(hif, &any, peer);
}

static void install_connect_any(struct hal_ops *ops)
{
	good_connect = ops->connect;
	ops->connect = connect_any;
}

static int connect_to_nobody_waits(struct hal_if *hif,
				   const struct hal_addr *to,
				   struct hal_peer **peer)
{
	int ret = good_connect(hif, to, peer);

	return ret == -FI_ECONNREFUSED ? -FI_EAGAIN : ret;
}

static void install_nobody_waits(struct hal_ops *ops)
{
	good_connect = ops->connect;
	ops->connect = connect_to_nobody_waits;
}

static void unresolved(struct hal_event *ev)
{
	if (ev->type == HAL_EV_CONNECTED)
		ev->peer->addr.nonce = HAL_ADDR_ANY;
}

static void never_connected(struct hal_event *ev)
{
	if (ev->type == HAL_EV_CONNECTED)
		ev->type = 0;
}

/* ---- Death of a peer ------------------------------------------------- */

static void no_death(struct hal_event *ev)
{
	if (ev->type == HAL_EV_DEAD)
		ev->type = 0;
}

/* Discard the unread packets of a peer with its HAL_EV_DEAD. */
static void undrained(struct hal_event *ev)
{
	uint64_t head;

	if (ev->type != HAL_EV_DEAD || ev->peer->rx.cells == NULL)
		return;
	while (hal_rx_peek(ev->peer, &head) != NULL)
		hal_rx_release(ev->peer);
}

static int (*good_service)(struct hal_if *hif, struct hal_event *ev, int max);

static uint32_t twice;			/* type of the event to repeat */

/* Report an event a second time in a later call. */
static int service_twice(struct hal_if *hif, struct hal_event *ev, int max)
{
	static _Thread_local struct hal_event again;
	int n = good_service(hif, ev, max);

	for (int i = 0; i < n; i++) {
		if (ev[i].type == twice) {
			again = ev[i];
			return n;
		}
	}
	if (n < max && again.type != 0 && again.peer->hif == hif) {
		ev[n++] = again;
		again.type = 0;
	}
	return n;
}

static void install_dead_twice(struct hal_ops *ops)
{
	twice = HAL_EV_DEAD;
	good_service = ops->service;
	ops->service = service_twice;
}

static void install_connected_twice(struct hal_ops *ops)
{
	twice = HAL_EV_CONNECTED;
	good_service = ops->service;
	ops->service = service_twice;
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

struct verdict {
	struct hal_event *ev;
	int n, max;
};

static void judge(struct bpeer *bp, void *arg)
{
	struct verdict *v = arg;
	struct hal_peer *peer = bp->peer;
	uint64_t done;

	if (!peer->tx.open || peer->dead || v->n == v->max)
		return;
	done = hal_tx_done(peer);
	if (done != bp->last_done || done == peer->tx.next) {
		bp->last_done = done;
		bp->since = now_ms();
	} else if (now_ms() - bp->since > 300) {
		peer->dead = true;
		v->ev[v->n++] = (struct hal_event){ HAL_EV_DEAD,
						    -FI_ETIMEDOUT, peer };
	}
}

/* Report a peer dead that releases nothing for 300 ms. */
static int service_impatient(struct hal_if *hif, struct hal_event *ev, int max)
{
	struct verdict v = { ev, good_service(hif, ev, max), max };

	broken_each(hif, judge, &v);
	return v.n;
}

static void install_impatient(struct hal_ops *ops)
{
	good_service = ops->service;
	ops->service = service_impatient;
}

/* ---- Sleeping -------------------------------------------------------- */

/* Drop every second wake-up: how often a peer sleeps depends on the machine,
 * and the test must fail after a few sleeps. */
static void wake_sometimes(struct hal_peer *peer)
{
	static atomic_ulong wakes;

	if (atomic_fetch_add(&wakes, 1) % 2 == 0)
		broken_base->wake(peer);
}

static void install_lost_wakeup(struct hal_ops *ops)
{
	ops->wake = wake_sometimes;
}

/* Arm although packets have arrived. */
static int arm_blindly(struct hal_if *hif)
{
	int ret = broken_base->arm(hif);

	return ret == -FI_EAGAIN ? 0 : ret;
}

/* Refuse to arm because of packets of a throttled peer. */
static int arm_despite_hold(struct hal_if *hif)
{
	uint64_t head;

	for (uint32_t i = 0; i < hif->ninbound; i++)
		if (hif->inbound[i]->rx.held &&
		    hal_rx_peek(hif->inbound[i], &head) != NULL)
			return -FI_EAGAIN;
	return broken_base->arm(hif);
}

static void install_arm_despite_hold(struct hal_ops *ops)
{
	ops->arm = arm_despite_hold;
}

static void install_blind_arm(struct hal_ops *ops)
{
	ops->arm = arm_blindly;
}

static int noisy_fd(struct hal_if *hif)
{
	static int fd = -1;

	(void)hif;
	if (fd < 0)
		fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
	return fd;
}

static void install_noisy_fd(struct hal_ops *ops)
{
	ops->fd = noisy_fd;
}

static int deaf_fd(struct hal_if *hif)
{
	static int fd = -1;

	(void)hif;
	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return fd;
}

static void install_deaf_fd(struct hal_ops *ops)
{
	ops->fd = deaf_fd;
}

/* ---- Closing --------------------------------------------------------- */

static void (*good_if_close)(struct hal_if *hif);

static void empty_ring(struct bpeer *bp, void *arg)
{
	(void)arg;
	if (bp->cells != NULL)
		memset(bp->cells, 0, (bp->peer->tx.mask + 1) *
		       sizeof(*bp->cells));
}

/* Remove the unread packets of the closing interface from the peers' rings. */
static void close_drops(struct hal_if *hif)
{
	broken_each(hif, empty_ring, NULL);
	good_if_close(hif);
}

static void install_close_drops(struct hal_ops *ops)
{
	good_if_close = ops->if_close;
	ops->if_close = close_drops;
}

static void close_leaks_fd(struct hal_if *hif)
{
	good_if_close(hif);
	if (dup(STDERR_FILENO) < 0)
		abort();
}

static void install_leak_fd(struct hal_ops *ops)
{
	good_if_close = ops->if_close;
	ops->if_close = close_leaks_fd;
}

static void *volatile lost;

static void close_leaks_memory(struct hal_if *hif)
{
	good_if_close(hif);
	lost = malloc(100);
}

static void install_leak_memory(struct hal_ops *ops)
{
	good_if_close = ops->if_close;
	ops->if_close = close_leaks_memory;
}

static int open_any_board(struct hal *hal, int board, int number,
			  struct hal_if **hif)
{
	int ret = broken_base->if_open(hal, board % (int)hal->caps.boards,
				       number, hif);

	if (ret == 0)
		(*hif)->ops = hal->ops;
	return ret;
}

/* Open any interface instead of the one with this number. */
static int open_any_number(struct hal *hal, int board, int number,
			   struct hal_if **hif)
{
	int ret = broken_base->if_open(hal, board, number, hif);

	if (ret == -FI_EADDRINUSE)
		ret = broken_base->if_open(hal, board, HAL_IF_ANY, hif);
	if (ret == 0)
		(*hif)->ops = hal->ops;
	return ret;
}

static void install_any_number(struct hal_ops *ops)
{
	ops->if_open = open_any_number;
}

static void install_any_board(struct hal_ops *ops)
{
	ops->if_open = open_any_board;
}

const struct mutation broken_conn[] = {
	{ "any-number-will-do", "if_of_a_number",
	  .install = install_any_number },
	{ "old-address-reaches-the-next", "conn_stale_nonce",
	  .install = install_connect_any },
	{ "nobody-is-waited-for", "conn_nobody",
	  .install = install_nobody_waits },
	{ "unresolved", "conn_any_nonce", .event = unresolved },
	{ "never-connected", "conn_simultaneous", .event = never_connected },
	{ "connected-twice", "conn_one_object",
	  .install = install_connected_twice },
	{ "no-death", "close_is_drained", .event = no_death },
	{ "no-death-of-a-process", "proc_dead_is_no_matter",
	  .event = no_death },
	{ "no-death-of-the-killed", "kill_at_random", .event = no_death },
	{ "dead-twice", "close_is_drained", .install = install_dead_twice },
	{ "undrained", "close_is_drained", .event = undrained },
	{ "stopped-is-dead", "proc_stopped_is_no_matter",
	  .install = install_impatient },
	/* Not on a device, whose mailbox wakes the receiver by itself. */
	{ "lost-wakeup", "sleep_loses_no_wakeup", .rings = true,
	  .install = install_lost_wakeup },
	{ "lost-wakeup-between-processes", "proc_sleep", .rings = true,
	  .install = install_lost_wakeup },
	{ "sleeps-blindly", "sleep_refused_with_packets",
	  .install = install_blind_arm },
	{ "kept-awake-by-the-held", "sleep_beside_the_held",
	  .install = install_arm_despite_hold },
	{ "noisy-descriptor", "sleep_is_quiet", .install = install_noisy_fd },
	{ "deaf-descriptor", "sleep_ends_for_all_reasons",
	  .install = install_deaf_fd },
	{ "close-drops", "close_before_the_first_step", .rings = true,
	  .install = install_close_drops },
	{ "leaks-descriptors", "leak_nothing_over_cycles",
	  .install = install_leak_fd },
	{ "leaks-memory", "leak_nothing_over_cycles",
	  .install = install_leak_memory },
	{ "any-board", "if_boards_and_addresses",
	  .install = install_any_board },
};
const int broken_conn_count = sizeof(broken_conn) / sizeof(broken_conn[0]);
