/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_space.h - sender's allocator of the receive space that a peer provides
 * (unm_space.c).
 *
 * The receive space is a byte ring. A sender allocates extents at the tail,
 * and names each in a packet; an extent is free again, in order, when the peer
 * has released this packet. Only the first part of a new ring may have memory:
 * the ring is not used beyond it. Once it is empty, and has no space for the
 * next extent, the caller lets it begin at 0 again. The code touches neither
 * packets nor the space itself. An instance belongs to a peer, under the lock
 * of its endpoint's domain.
 */
#ifndef UNM_SPACE_H
#define UNM_SPACE_H

#include <stdbool.h>
#include <stdint.h>

#define UNM_SPACE_ALIGN	64	/* bytes; extents are multiples */
#define UNM_SPACE_PAGE	4096	/* bytes; the smallest page of a kernel: if
				 * pages are larger, some first uses are none */
#define UNM_SPACE_LAPS	64	/* after so many times its size, a ring
				 * should become larger */
#define UNM_SPACE_NONE	UINT32_MAX	/* offset: no free space */

/* An extent in use. */
struct unm_space_mark {
	uint64_t packet;		/* number of the packet that names it */
	uint64_t end;			/* byte after it, counted as head is */
};

/* head and tail count bytes from the ring's start and never wrap. */
struct unm_space {
	uint64_t head;			/* oldest byte in use */
	uint64_t tail;			/* next byte to allocate */
	uint32_t bytes;			/* size of the ring, 2^n */
	uint32_t ready;			/* bytes of it that have memory */
	uint32_t touched;		/* end of the last page that an extent
					 * has used, as an offset */
	uint32_t mark_head;		/* oldest mark in use */
	uint32_t mark_tail;		/* next mark to use */
	uint32_t mark_mask;		/* marks minus 1; one mark for each
					 * packet that can be unreleased */
	struct unm_space_mark mark[];	/* extents in use, a ring */
};

/* Make an allocator. bytes: size of the ring, of which the largest power of two
 * is used, all of it with memory; depth: packets that can be unreleased, 2^n.
 * NULL without memory. The caller frees it by free(). */
struct unm_space *unm_space_new(uint32_t bytes, uint32_t depth);

/* The largest power of two up to bytes, so that an offset in the ring is found
 * without a division. */
static inline uint32_t unm_space_pow2(uint32_t bytes)
{
	while ((bytes & (bytes - 1)) != 0)
		bytes &= bytes - 1;
	return bytes;
}

/* True if an empty ring has carried so many bytes that a larger ring pays. */
static inline bool unm_space_should_grow(const struct unm_space *s)
{
	return s->head == s->tail && s->tail >= UNM_SPACE_LAPS *
		(uint64_t)s->bytes;
}

/* Let an empty ring begin at its first byte again, because only there an extent
 * of the whole ring's size fits. */
static inline void unm_space_restart(struct unm_space *s)
{
	if (s->mark_head != s->mark_tail)
		return;
	s->tail = (s->tail + s->bytes - 1) & ~(uint64_t)(s->bytes - 1);
	s->head = s->tail;
}

/* All of the ring has memory from now on. It is as little worn as a new one;
 * extents in use stay where they are. */
void unm_space_complete(struct unm_space *s);

/* Use a ring of another size, all with memory, from now on. The ring is empty.
 */
static inline void unm_space_resize(struct unm_space *s, uint32_t bytes)
{
	s->head = 0;
	s->tail = 0;
	s->bytes = unm_space_pow2(bytes);
	s->ready = s->bytes;
}

/* As unm_space_resize(), to a smaller size; the memory after it is given back,
 * so its next use is a first one again. */
static inline void unm_space_trim(struct unm_space *s, uint32_t bytes)
{
	unm_space_resize(s, bytes);
	if (s->touched > s->bytes)
		s->touched = s->bytes;
}

/* Bytes that an extent of len bytes occupies. */
static inline uint32_t unm_space_round(uint32_t len)
{
	return (len + UNM_SPACE_ALIGN - 1) & ~(uint32_t)(UNM_SPACE_ALIGN - 1);
}

/* An address or offset, rounded up to the beginning of a page. */
static inline uintptr_t unm_space_page(uintptr_t at)
{
	return (at + UNM_SPACE_PAGE - 1) & ~(uintptr_t)(UNM_SPACE_PAGE - 1);
}

/*
 * The offset of free space for a contiguous extent of len bytes, or
 * UNM_SPACE_NONE. Nothing is allocated: the caller calls unm_space_take() with
 * the offset when the packet that names the extent was sent.
 */
static inline uint32_t unm_space_find(const struct unm_space *s, uint32_t len)
{
	uint32_t off = s->tail & (s->bytes - 1);
	uint32_t skip = 0;

	len = unm_space_round(len);
	if (off + len > s->ready) {
		if (s->ready != s->bytes)
			return UNM_SPACE_NONE;
		skip = s->bytes - off;
	}
	if (s->tail + skip + len - s->head > s->bytes ||
	    s->mark_tail - s->mark_head > s->mark_mask)
		return UNM_SPACE_NONE;
	return skip ? 0 : off;
}

/* Allocate the extent that unm_space_find() found. packet: number of the packet
 * that names it, larger than that of any extent before. */
static inline void unm_space_take(struct unm_space *s, uint32_t off,
				  uint32_t len, uint64_t packet)
{
	uint32_t at = s->tail & (s->bytes - 1);
	struct unm_space_mark *m = &s->mark[s->mark_tail++ & s->mark_mask];

	if (off != at)
		s->tail += s->bytes - at;
	s->tail += unm_space_round(len);
	if (off + len > s->touched)
		s->touched = (uint32_t)unm_space_page(off + len);
	m->packet = packet;
	m->end = s->tail;
}

/* Free the extents of all packets below done, which the peer has released. */
static inline void unm_space_reclaim(struct unm_space *s, uint64_t done)
{
	while (s->mark_head != s->mark_tail &&
	       s->mark[s->mark_head & s->mark_mask].packet < done)
		s->head = s->mark[s->mark_head++ & s->mark_mask].end;
}

#endif /* UNM_SPACE_H */
