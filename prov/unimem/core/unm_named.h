/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_named.h - how many posted receives name each source (unm_named.c).
 *
 * An endpoint counts them only if it may have peers on other hosts: the end of
 * such a peer is noticed only while this process has a connection to it, which
 * a peer that sends nothing does not need otherwise (docs/net.md, section 10).
 *
 * Protected by the lock of the endpoint's domain.
 */
#ifndef UNM_NAMED_H
#define UNM_NAMED_H

#include <stdbool.h>
#include <stdint.h>

struct unm_named_entry {
	uint32_t recvs : 30;		/* receives that name the source */
	uint32_t known : 1;		/* for the use of unm_reach.c */
	uint32_t reached : 1;		/* unm_reach.c has examined the source
					 * since its connection may have been
					 * closed last */
};

/* Part of an endpoint, zeroed at first. Its matching queues count in it. */
struct unm_named {
	struct unm_named_entry *entry;	/* by source */
	uint32_t slots;			/* entries */
	uint32_t sources;		/* entries with receives */
	bool fresh;			/* a source that is not reached was
					 * added to them; cleared by
					 * unm_reach.c */
	bool all;			/* there was no memory for an entry: any
					 * source without one may be named, for
					 * good */
};

/* Count one more receive that names a source, or one less. Sources that no
 * message has (UNM_MATCH_ANY, UNM_MATCH_NONE) are not counted. */
void unm_named_more(struct unm_named *named, uint64_t src);
void unm_named_less(struct unm_named *named, uint64_t src);

/* May posted receives name any source? */
static inline bool unm_named_any(const struct unm_named *named)
{
	return named->sources != 0 || named->all;
}

/* May a posted receive name this source? */
bool unm_named_find(const struct unm_named *named, uint64_t src);

/* The source may have no connection any more, or its number is given to another
 * one: unm_reach.c has to examine it when a receive names it again. Without an
 * entry nothing happens. */
static inline void unm_named_lapse(struct unm_named *named, uint64_t src)
{
	if (src < named->slots)
		named->entry[src].reached = false;
}

/* Free the entries. */
void unm_named_clear(struct unm_named *named);

#endif /* UNM_NAMED_H */
