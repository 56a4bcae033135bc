/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_rkey.h - what is known about peers' regions, and the guard of direct
 * accesses.
 */
#ifndef UNM_RKEY_H
#define UNM_RKEY_H

#include <stdbool.h>
#include <stdint.h>

#include "hal/hal.h"
#include "util/unm_list.h"

struct unm_peer;
struct unm_wire_msg;

/* A peer's region as its owner described it. */
struct unm_route {
	struct unm_list link;		/* peer's routes, last used first */
	struct unm_route *chain;	/* next one of its bucket */
	uint64_t key;
	uint64_t start, len;		/* addresses of the region */
	uint64_t base;			/* memory of start */
	uint32_t region;		/* its number */
	uint32_t refs;			/* operations that use it */
	uint8_t reach;			/* enum unm_wire_reach and for what */
	bool told;			/* else it was asked for */
	bool stale;			/* not to be used any more */
	struct hal_key mem_key;
	struct unm_import *mem;		/* DMABLE, once imported */
	struct hal *alias;		/* SHARED: win is an alias of its;
					 * NULL: of mem */
	struct hal_window win;
};

/* The route to a region, or NULL: by requests. */
struct unm_route *unm_route_find(struct unm_peer *peer, uint64_t key);

/* Shall a request ask for one? It did. */
bool unm_route_wanted(const struct unm_peer *peer, uint64_t key);
void unm_route_asked(struct unm_peer *peer, uint64_t key);
void unm_route_unasked(struct unm_peer *peer, uint64_t key);
int unm_route_told(struct unm_peer *peer, const struct unm_wire_msg *m);
void unm_route_put(struct unm_route *route);
void unm_route_forget(struct unm_peer *peer);
void unm_route_look(struct unm_peer *peer);

/* The peer's object goes; the HAL knows it no more. */
void unm_route_clear(struct unm_peer *peer);

/* Peers' memory is accessed between these two only; false: not now. */
bool unm_guard_enter(struct unm_peer *peer);
void unm_guard_leave(struct unm_peer *peer);

#endif /* UNM_RKEY_H */
