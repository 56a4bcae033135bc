/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_team.h - the page that the members of a team share, and the exchange of
 * words between them. Private to libgsas; gsas.h has the calls for programs.
 */
#ifndef GSAS_TEAM_H
#define GSAS_TEAM_H

#include <stdbool.h>
#include <stdint.h>

#include "gsas.h"

/* Words of the page, from its beginning. The words that change often and those
 * of each member have cache lines of their own. */
enum {
	TEAM_MEMBERS	= 0,		/* their number */
	TEAM_LEFT	= 1,		/* members that have closed the team */
	TEAM_ARRIVED	= 8,		/* arrivals at all barriers so far */
	TEAM_PASSED	= 16,		/* barriers passed so far, and
					 * TEAM_BROKEN */
	TEAM_SLOTS	= 24,		/* a slot for each member */
};
#define TEAM_BROKEN	(UINT64_C(1) << 63)	/* a member has ended, or gave
						 * up a barrier */

enum {					/* words of a slot */
	SLOT_JOINED	= 0,		/* the board of the member plus 1; 0: it
					 * has not come */
	SLOT_EXCHANGE	= 2,		/* twice EXCHANGE_WORDS, used in turn */
	SLOT_WORDS	= 8,
};
#define EXCHANGE_WORDS	2

/* A member's view of a team, from gsas_team_open() to gsas_team_close(). The
 * program uses it by one thread at a time. */
struct gsas_team {
	gsas_addr page;			/* the first shared page */
	uint32_t index, members;
	uint64_t barriers;		/* begun so far, with that of the
					 * opening */
	uint64_t exchanges;		/* begun so far */
	bool broken;			/* no barrier can be passed any more */
	int held;			/* descriptor of the member's lock
					 * (gsas_hold.h), -1: none */
	uint32_t next;			/* member that this one checks, if
					 * next_known; itself: none */
	bool next_known;
};

/*
 * Pass words to all members: a barrier, after which all[i] has the words of
 * member i. all has team->members entries; NULL: this member does not want
 * them. Errors of gsas_team_barrier().
 */
int gsas_team_exchange(struct gsas_team *team,
		       const uint64_t words[EXCHANGE_WORDS], int ms,
		       uint64_t (*all)[EXCHANGE_WORDS]);

#endif /* GSAS_TEAM_H */
