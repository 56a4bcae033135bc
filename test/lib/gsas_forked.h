/* SPDX-License-Identifier: BSD-2-Clause */
/* gsas_forked.h - the page that gsas_forked.c and its test share, in words. */
#ifndef GSAS_FORKED_H
#define GSAS_FORKED_H

enum {
	FORKED_WHAT,			/* what to do */
	FORKED_COUNT,			/* processes that began */
	FORKED_TOLD,			/* ... that have told */
	FORKED_TELLS = 8,		/* from here on a piece for each */
};

enum {					/* of a piece */
	FORKED_BOARD,
	FORKED_PID,
	FORKED_PAGES,			/* an allocation of 3 pages */
	FORKED_FILES,			/* descriptors it began with */
	FORKED_WORDS = 4,
};

enum {
	FORKED_TELL,			/* tell, and end */
	FORKED_DIE,			/* be killed, with pages */
	FORKED_STAY,			/* until it is told otherwise */
};

#endif /* GSAS_FORKED_H */
