/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_event.h - epoll set and event queue of an interface; private to
 * hal/emu.
 */
#ifndef HAL_EMU_EVENT_H
#define HAL_EMU_EVENT_H

#include "hal/emu/hal_emu_types.h"

/* Add src->fd to the epoll set of the interface; emu_service() then handles src
 * when the descriptor is readable. 0, or a negative errno after a log line. */
int emu_watch(struct emu_if *eif, struct emu_src *src);

/* Remove src->fd from the epoll set. Call this before close(): if a forked
 * child has the descriptor too, close() does not remove it. */
void emu_unwatch(struct emu_if *eif, struct emu_src *src);

/* Queue an event of the peer. Each type is queued once at most. status is the
 * reason of HAL_EV_DEAD; other types ignore it. */
void emu_event(struct emu_peer *peer, enum hal_event_type type, int status);

/* Store up to max queued events at ev, INBOUND before CONNECTED before DEAD for
 * each peer, and list peers with INBOUND in inbound[]. Returns their number. */
int emu_events_take(struct emu_if *eif, struct hal_event *ev, int max);

/* Note that the peer has ended or broke the protocol; status is the reason, a
 * negative errno. The next service reads what the peer sent before, and then
 * declares the peer dead. The first call for a peer decides. */
void emu_mark_dying(struct emu_peer *peer, int status);

#endif /* HAL_EMU_EVENT_H */
