/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_forked.h - layout of the page that test_gsas_fork.c and the processes
 * gsas_forked.c, which it starts through gsasd, share. Indices count words of
 * 64 bits.
 */
#ifndef GSAS_FORKED_H
#define GSAS_FORKED_H

enum {
	FORKED_WHAT,			/* written by the test: what to do */
	FORKED_COUNT,			/* processes that have started */
	FORKED_TOLD,			/* processes that have written their
					 * report */
	FORKED_TELLS = 8,		/* first report: one for each process */
};

enum {					/* words of a report */
	FORKED_BOARD,			/* board number */
	FORKED_PID,
	FORKED_PAGES,			/* address of 3 allocated pages */
	FORKED_FILES,			/* descriptors open at the start */
	FORKED_RANK,			/* 1: variables of a launcher are set */
	FORKED_WORDS,			/* length of a report */
};

enum {					/* values of FORKED_WHAT */
	FORKED_TELL,			/* report and exit */
	FORKED_DIE,			/* allocate, report, be killed */
	FORKED_STAY,			/* report, run until this changes */
};

#endif /* GSAS_FORKED_H */
