/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_each.h - gsasd --all: a service for each board of this host, in a
 * process each.
 */
#ifndef GSAS_EACH_H
#define GSAS_EACH_H

/*
 * Fork a process for each of the boards first to first + boards - 1. Returns in
 * these processes only, with the number of the board; each then reports "ready"
 * by unm_daemon_notify(). The calling process stays in the foreground until all
 * of them have ended, passes SIGTERM, SIGINT and SIGHUP on as SIGTERM, and ends
 * with exit code 0 if all of them did, else 1. Its own end ends them too. Call
 * it while the process has one thread, and the default handlers of signals.
 * ready: called in it once, when all of them serve. log: for errors, and for
 * the end of a service.
 */
unsigned gsas_each_board(unsigned first, unsigned boards, void (*ready)(void),
			 void (*log)(const char *line));

#endif /* GSAS_EACH_H */
