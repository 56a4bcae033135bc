/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_space.h - who holds which bytes of the receive space a peer keeps for us.
 *
 * A byte ring: extents are taken at the tail and come free in order, when the
 * peer has released the packet that named them. Pure.
 */
#ifndef UNM_SPACE_H
#define UNM_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#define UNM_SPACE_ALIGN	64
#define UNM_SPACE_LAPS	32	/* laps that make a peer a busy one */
#define UNM_SPACE_NONE	UINT32_MAX

struct unm_space_mark {
	uint64_t packet;		/* number of the packet ... */
	uint64_t end;			/* ... and what it ends, free-running */
};

struct unm_space {
	uint64_t head;			/* oldest byte in use, free-running */
	uint64_t tail;			/* next byte to take */
	uint32_t bytes;			/* ring size, 2^n */
	uint32_t mark_head;
	uint32_t mark_tail;
	uint32_t mark_mask;		/* as many marks as packets in flight */
	struct unm_space_mark mark[];
};

/* bytes of the ring (what is beyond a power of two stays unused), packets that
 * can be unreleased (2^n). NULL: no memory. */
struct unm_space *unm_space_new(uint32_t bytes, uint32_t depth);

/* Largest power of two in it: to find a place in the ring takes no division. */
static inline uint32_t unm_space_pow2(uint32_t bytes)
{
	while ((bytes & (bytes - 1)) != 0)
		bytes &= bytes - 1;
	return bytes;
}

/* Has an empty ring seen so much traffic that a larger one pays? */
static inline bool unm_space_worn(const struct unm_space *s)
{
	return s->head == s->tail && s->tail >= UNM_SPACE_LAPS *
		(uint64_t)s->bytes;
}

/* An empty ring begins at its first byte again: there, and only there, is room
 * for whatever it can hold. */
static inline void unm_space_restart(struct unm_space *s)
{
	if (s->mark_head != s->mark_tail)
		return;
	s->tail = (s->tail + s->bytes - 1) & ~(uint64_t)(s->bytes - 1);
	s->head = s->tail;
}

/* Begin anew with another size; the ring is empty. */
static inline void unm_space_resize(struct unm_space *s, uint32_t bytes)
{
	s->head = 0;
	s->tail = 0;
	s->bytes = unm_space_pow2(bytes);
}

static inline uint32_t unm_space_round(uint32_t len)
{
	return (len + UNM_SPACE_ALIGN - 1) & ~(uint32_t)(UNM_SPACE_ALIGN - 1);
}

/*
 * Room for one contiguous extent: its offset, or UNM_SPACE_NONE. Takes nothing:
 * unm_space_take() does, once the packet that names it is sent.
 */
static inline uint32_t unm_space_find(const struct unm_space *s, uint32_t len)
{
	uint32_t off = s->tail & (s->bytes - 1);
	uint32_t skip;

	len = unm_space_round(len);
	skip = off + len > s->bytes ? s->bytes - off : 0;
	if (s->tail + skip + len - s->head > s->bytes ||
	    s->mark_tail - s->mark_head > s->mark_mask)
		return UNM_SPACE_NONE;
	return skip ? 0 : off;
}

static inline void unm_space_take(struct unm_space *s, uint32_t off,
				  uint32_t len, uint64_t packet)
{
	uint32_t at = s->tail & (s->bytes - 1);
	struct unm_space_mark *m = &s->mark[s->mark_tail++ & s->mark_mask];

	if (off != at)
		s->tail += s->bytes - at;
	s->tail += unm_space_round(len);
	m->packet = packet;
	m->end = s->tail;
}

/* The peer has released every packet below done. */
static inline void unm_space_reclaim(struct unm_space *s, uint64_t done)
{
	while (s->mark_head != s->mark_tail &&
	       s->mark[s->mark_head & s->mark_mask].packet < done)
		s->head = s->mark[s->mark_head++ & s->mark_mask].end;
}

#endif /* UNM_SPACE_H */
