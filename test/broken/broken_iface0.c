/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broken_iface0.c - mutations of interface 0, see broken.h
 */
#include "broken.h"

static int (*good_open)(struct hal *hal, int board, int number,
			struct hal_if **hif);
static int (*good_connect)(struct hal_if *hif, const struct hal_addr *to,
			   struct hal_peer **peer);

/* If interface 0 is in use, open another interface instead of failing. */
static int open_twice(struct hal *hal, int board, int number,
		      struct hal_if **hif)
{
	int ret = good_open(hal, board, number, hif);

	return ret == -FI_EBUSY && number == HAL_IF_SERVICE ?
	       good_open(hal, board, HAL_IF_ANY, hif) : ret;
}

static void install_twice(struct hal_ops *ops)
{
	good_open = ops->if_open;
	ops->if_open = open_twice;
}

/* Open interface 0 once only. */
static int open_once(struct hal *hal, int board, int number,
		     struct hal_if **hif)
{
	static atomic_bool spent;
	int ret = spent && number == HAL_IF_SERVICE ? -FI_EBUSY :
		  good_open(hal, board, number, hif);

	if (ret == 0 && number == HAL_IF_SERVICE)
		spent = true;
	return ret;
}

static void install_once(struct hal_ops *ops)
{
	good_open = ops->if_open;
	ops->if_open = open_once;
}

/* Refuse interface 0 if all other interfaces are in use. */
static int open_with_room(struct hal *hal, int board, int number,
			  struct hal_if **hif)
{
	struct hal_if *room;

	if (number == HAL_IF_SERVICE) {
		int ret = good_open(hal, board, HAL_IF_ANY, &room);

		if (ret != 0)
			return ret;
		hal_if_close(room);
	}
	return good_open(hal, board, number, hif);
}

static void install_needs_room(struct hal_ops *ops)
{
	good_open = ops->if_open;
	ops->if_open = open_with_room;
}

/* If all other interfaces are in use, open interface 0 instead of failing. */
static int open_last(struct hal *hal, int board, int number,
		     struct hal_if **hif)
{
	int ret = good_open(hal, board, number, hif);

	return ret == -FI_EBUSY && number == HAL_IF_ANY ?
	       good_open(hal, board, HAL_IF_SERVICE, hif) : ret;
}

static void install_last_of_all(struct hal_ops *ops)
{
	good_open = ops->if_open;
	ops->if_open = open_last;
}

/* Refuse to connect to interface 0. */
static int connect_from_1(struct hal_if *hif, const struct hal_addr *to,
			  struct hal_peer **peer)
{
	return to->iface == HAL_IF_SERVICE ? -FI_EINVAL :
	       good_connect(hif, to, peer);
}

static void install_from_1(struct hal_ops *ops)
{
	good_connect = ops->connect;
	ops->connect = connect_from_1;
}

/* Ignore the nonce: connect to any holder of interface 0. */
static int connect_any(struct hal_if *hif, const struct hal_addr *to,
		       struct hal_peer **peer)
{
	struct hal_addr any = *to;

	if (to->iface == HAL_IF_SERVICE)
		any.nonce = HAL_ADDR_ANY;
	return good_connect(hif, &any, peer);
}

static void install_any(struct hal_ops *ops)
{
	good_connect = ops->connect;
	ops->connect = connect_any;
}

static void anonymous(struct hal_event *ev)
{
	if (ev->peer->addr.iface == HAL_IF_SERVICE)
		ev->peer->rx.identity = ev->peer->hif->addr.nonce &
					HAL_HEAD_ID_MASK;
}

static void no_death(struct hal_event *ev)
{
	if (ev->type == HAL_EV_DEAD && ev->peer->addr.iface == HAL_IF_SERVICE)
		ev->type = 0;
}

const struct mutation broken_iface0[] = {
	{ "two-services", "service_is_one_per_board",
	  .install = install_twice },
	{ "two-services-of-processes", "proc_service_is_one",
	  .install = install_twice },
	{ "service-once-for-ever", "service_is_one_per_board",
	  .install = install_once },
	{ "service-needs-room", "service_beside_a_full_board",
	  .install = install_needs_room },
	{ "service-is-the-last", "service_beside_a_full_board",
	  .install = install_last_of_all },
	{ "service-out-of-reach", "service_is_reached",
	  .install = install_from_1 },
	{ "old-service-is-the-next", "service_is_reached",
	  .install = install_any },
	{ "old-service-is-the-next-process", "proc_service_is_followed",
	  .install = install_any },
	{ "service-without-identity", "service_has_an_identity",
	  .event = anonymous },
	{ "no-death-of-the-service", "proc_service_is_followed",
	  .event = no_death },
};
const int broken_iface0_count = sizeof(broken_iface0) /
				 sizeof(broken_iface0[0]);
