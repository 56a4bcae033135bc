/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_named.c - how many posted receives name each source. unm_named.h
 * declares the entry points and says what the numbers are for.
 */
#include <stdlib.h>
#include <string.h>

#include "core/unm_named.h"

#define UNM_NAMED_MIN	64		/* entries at first */

/* Make an entry for a source. False: there is no memory, or was none, when a
 * receive of the source may have been posted that was not counted. */
static bool unm_named_room(struct unm_named *named, uint64_t src)
{
	uint64_t slots = named->slots ? named->slots : UNM_NAMED_MIN;
	struct unm_named_entry *entry;

	if (src < named->slots)
		return true;
	if (src >= UINT32_MAX / 2 || named->all)
		return false;
	while (slots <= src)
		slots *= 2;
	entry = realloc(named->entry, slots * sizeof(*entry));
	if (entry == NULL)
		return false;
	memset(entry + named->slots, 0,
	       (slots - named->slots) * sizeof(*entry));
	named->entry = entry;
	named->slots = (uint32_t)slots;
	return true;
}

/* UNM_MATCH_ANY and UNM_MATCH_NONE are the largest numbers, and an address
 * vector has fewer than 2^32 entries. */
static bool unm_named_source(uint64_t src)
{
	return src < UINT32_MAX;
}

void unm_named_more(struct unm_named *named, uint64_t src)
{
	if (!unm_named_source(src))
		return;
	if (!unm_named_room(named, src)) {
		named->all = true;
		named->fresh = true;
		return;
	}
	if (named->entry[src].recvs++ == 0) {
		named->sources++;
		named->fresh |= !named->entry[src].reached;
	}
}

void unm_named_less(struct unm_named *named, uint64_t src)
{
	if (!unm_named_source(src) || src >= named->slots)
		return;
	named->sources -= --named->entry[src].recvs == 0;
}

bool unm_named_find(const struct unm_named *named, uint64_t src)
{
	return src < named->slots ? named->entry[src].recvs != 0 : named->all;
}

void unm_named_clear(struct unm_named *named)
{
	free(named->entry);
	memset(named, 0, sizeof(*named));
}
