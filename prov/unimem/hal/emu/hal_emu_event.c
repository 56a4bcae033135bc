/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_event.c - the epoll set of an interface, and its queue of events.
 *
 * Entry points: emu_watch(), emu_unwatch(), emu_event(), emu_events_take(),
 * emu_mark_dying().
 */
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "hal/emu/hal_emu_event.h"
#include "hal/hal_peer.h"

/* ---- Epoll set --------------------------------------------------------- */

int emu_watch(struct emu_if *eif, struct emu_src *src)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.ptr = src };
	int ret;

	if (epoll_ctl(eif->epfd, EPOLL_CTL_ADD, src->fd, &ev) == 0)
		return 0;
	ret = -errno;
	hal_log(0, "cannot watch a peer: %s", strerror(-ret));
	return ret;
}

void emu_unwatch(struct emu_if *eif, struct emu_src *src)
{
	epoll_ctl(eif->epfd, EPOLL_CTL_DEL, src->fd, NULL);
}

/* ---- Events ---------------------------------------------------------- */

void emu_event(struct emu_peer *peer, enum hal_event_type type, int status)
{
	if (peer->ev_pending == 0)
		unm_list_append(&emu_if(peer->p.hif)->events, &peer->event);
	peer->ev_pending |= (uint8_t)(1u << type);
	if (type == HAL_EV_DEAD)
		peer->ev_status = status;
}

int emu_events_take(struct emu_if *eif, struct hal_event *ev, int max)
{
	int n = 0;

	while (n < max && !unm_list_empty(&eif->events)) {
		struct emu_peer *peer = unm_container(eif->events.next,
						      struct emu_peer, event);

		peer->ev_pending = hal_peer_event(&peer->p, peer->ev_pending,
						  peer->ev_status, &ev[n++]);
		if (peer->ev_pending == 0)
			unm_list_remove(&peer->event);
	}
	return n;
}

void emu_mark_dying(struct emu_peer *peer, int status)
{
	if (peer->dying != 0)
		return;
	peer->dying = status;
	emu_if(peer->p.hif)->ndying++;
}
