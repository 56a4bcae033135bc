/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_span.c - allocates blocks from a range, by boundary tags that are kept
 * outside of the range.
 *
 * The range is a sequence of extents, free or in use. The first and the last
 * unit of an extent have a tag that holds the extent's length; all other tags
 * are 0. A tag with TAG_FIRST therefore marks the begin of an extent, and the
 * tag before it gives the length of the preceding extent. Free extents are in
 * lists by size. Boundary tags: D. Knuth, The Art of Computer Programming,
 * volume 1, section 2.5.
 */
#include <stdlib.h>

#include "util/unm_span.h"

#define TAG_FIRST	(UINT32_C(1) << 31)
#define TAG_USED	(UINT32_C(1) << 30)
#define TAG_LEN		(TAG_USED - 1)

/* Bookkeeping of one unit, in private memory. */
struct unm_span_unit {
	uint32_t tag;			/* first or last unit of an extent: its
					 * length and TAG_*; else 0 */
	uint32_t next, prev;		/* first unit of a free extent: first
					 * units of the extents after and before
					 * it in the list, plus 1; 0: none */
};

_Static_assert(UNM_SPAN_MAX / UNM_SPAN_UNIT == 1u << (UNM_SPAN_BINS - 1) &&
	       UNM_SPAN_MAX / UNM_SPAN_UNIT <= TAG_LEN, "lengths fit");

/* ---- Lists of free extents ------------------------------------------- */

static unsigned bin_of(uint32_t len)
{
	return 31u - (unsigned)__builtin_clz(len);
}

static void list_add(struct unm_span *s, uint32_t first, uint32_t len)
{
	uint32_t *head = &s->head[bin_of(len)];

	s->unit[first].prev = 0;
	s->unit[first].next = *head;
	if (*head != 0)
		s->unit[*head - 1].prev = first + 1;
	*head = first + 1;
	s->bins |= 1u << bin_of(len);
}

static void list_remove(struct unm_span *s, uint32_t first, uint32_t len)
{
	uint32_t *head = &s->head[bin_of(len)];
	uint32_t next = s->unit[first].next, prev = s->unit[first].prev;

	if (next != 0)
		s->unit[next - 1].prev = prev;
	if (prev != 0)
		s->unit[prev - 1].next = next;
	else
		*head = next;
	if (*head == 0)
		s->bins &= ~(1u << bin_of(len));
}

/* ---- Extents --------------------------------------------------------- */

static void extent_make(struct unm_span *s, uint32_t first, uint32_t len,
			uint32_t used)
{
	if (len == 0)
		return;
	s->unit[first + len - 1].tag = len | used;
	s->unit[first].tag = len | used | TAG_FIRST;
	if (!used)
		list_add(s, first, len);
}

static void extent_unmake(struct unm_span *s, uint32_t first)
{
	uint32_t tag = s->unit[first].tag, len = tag & TAG_LEN;

	if (!(tag & TAG_USED))
		list_remove(s, first, len);
	s->unit[first].tag = 0;
	s->unit[first + len - 1].tag = 0;
}

/* ---- API ------------------------------------------------------------- */

bool unm_span_construct(struct unm_span *s, uintptr_t base, size_t bytes)
{
	*s = (struct unm_span){
		.base = base, .units = (uint32_t)(bytes / UNM_SPAN_UNIT),
	};
	/* most entries are never touched, so the kernel allocates no pages
	 * for them */
	s->unit = calloc(s->units, sizeof(*s->unit));
	if (s->unit == NULL)
		return false;
	extent_make(s, 0, s->units, 0);
	return true;
}

void unm_span_destruct(struct unm_span *s)
{
	free(s->unit);
	s->unit = NULL;
}

/* Units to leave free at the start of an extent, for the block's alignment. */
static size_t lead_in(const struct unm_span *s, uint32_t first, size_t align)
{
	uintptr_t at = s->base + first * UNM_SPAN_UNIT;

	return ((align - (at & (align - 1))) & (align - 1)) / UNM_SPAN_UNIT;
}

/* First unit of a free extent that holds an aligned block of len units, or
 * s->units if there is none. */
static uint32_t find_room(const struct unm_span *s, size_t len, size_t align)
{
	uint32_t bins = s->bins & ~((1u << bin_of((uint32_t)len)) - 1);

	for (; bins != 0; bins &= bins - 1) {
		uint32_t at = s->head[__builtin_ctz(bins)];

		for (; at != 0; at = s->unit[at - 1].next) {
			size_t room = s->unit[at - 1].tag & TAG_LEN;

			if (lead_in(s, at - 1, align) + len <= room)
				return at - 1;
		}
	}
	return s->units;
}

uintptr_t unm_span_alloc(struct unm_span *s, size_t bytes, size_t align)
{
	size_t len = bytes / UNM_SPAN_UNIT + (bytes % UNM_SPAN_UNIT != 0);
	uint32_t first, lead, room;

	if (len > s->units - s->used)
		return 0;
	first = find_room(s, len, align);
	if (first == s->units)
		return 0;
	room = s->unit[first].tag & TAG_LEN;
	lead = (uint32_t)lead_in(s, first, align);
	extent_unmake(s, first);
	extent_make(s, first, lead, 0);
	first += lead;
	extent_make(s, first, (uint32_t)len, TAG_USED);
	extent_make(s, first + (uint32_t)len, room - lead - (uint32_t)len, 0);
	s->used += (uint32_t)len;
	return s->base + first * UNM_SPAN_UNIT;
}

size_t unm_span_free(struct unm_span *s, uintptr_t addr)
{
	uintptr_t off = addr - s->base;
	uint32_t first, len, total, tag;

	if (off % UNM_SPAN_UNIT != 0 || off / UNM_SPAN_UNIT >= s->units)
		return 0;
	first = (uint32_t)(off / UNM_SPAN_UNIT);
	tag = s->unit[first].tag;
	if (!(tag & TAG_FIRST) || !(tag & TAG_USED))
		return 0;
	len = total = tag & TAG_LEN;
	extent_unmake(s, first);
	s->used -= len;
	if (first + len < s->units) {
		tag = s->unit[first + len].tag;
		if (!(tag & TAG_USED)) {
			extent_unmake(s, first + len);
			total += tag & TAG_LEN;
		}
	}
	if (first > 0) {
		tag = s->unit[first - 1].tag;
		if (!(tag & TAG_USED)) {
			first -= tag & TAG_LEN;
			extent_unmake(s, first);
			total += tag & TAG_LEN;
		}
	}
	extent_make(s, first, total, 0);
	return len * UNM_SPAN_UNIT;
}

uintptr_t unm_span_find(const struct unm_span *s, uintptr_t addr,
			size_t *bytes)
{
	uintptr_t off = addr - s->base;
	uint32_t at;

	if (off / UNM_SPAN_UNIT >= s->units)
		return 0;
	at = (uint32_t)(off / UNM_SPAN_UNIT);
	while (!(s->unit[at].tag & TAG_FIRST))
		at--;
	if (!(s->unit[at].tag & TAG_USED))
		return 0;
	*bytes = (s->unit[at].tag & TAG_LEN) * UNM_SPAN_UNIT;
	return s->base + at * UNM_SPAN_UNIT;
}

uintptr_t unm_span_next(const struct unm_span *s, uintptr_t addr,
			size_t *bytes)
{
	size_t at = addr == 0 ? 0 : (addr - s->base) / UNM_SPAN_UNIT;

	for (; at < s->units; at += s->unit[at].tag & TAG_LEN) {
		if (!(s->unit[at].tag & TAG_USED))
			continue;
		*bytes = (s->unit[at].tag & TAG_LEN) * UNM_SPAN_UNIT;
		return s->base + at * UNM_SPAN_UNIT;
	}
	return 0;
}
