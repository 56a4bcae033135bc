/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_daemon.h - what the programs of this project that serve others have in
 * common (unm_daemon.c): log lines, the report to the process that started
 * them, numbers of options, descriptors, going to the background.
 *
 * A process is one daemon, so the state is one structure. Only the thread that
 * started the program uses it; any thread may log.
 */
#ifndef UNM_DAEMON_H
#define UNM_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

/* The daemon that this process is. The program sets the fields. */
struct unm_daemon {
	const char *name;		/* of the program, in its lines */
	bool background;		/* --auto: lines go to syslog(3), else
					 * to the standard error output */
	int ready_fd;			/* --ready-fd; -1: not given, or used */
};
extern struct unm_daemon unm_daemon;

/* Log a line, which has no newline. */
void unm_daemon_log(const char *line);

/* Report to the process that started this one, once: "ready", "busy", or an
 * error. Nothing happens if no process waits for it. */
void unm_daemon_notify(const char *line);

/* Log and report an error of up to 511 bytes, and end the process. */
void unm_daemon_fail(const char *fmt, ...)
	__attribute__((format(printf, 1, 2), noreturn));

/* The value of option --name: a number of this base (as of strtoull(3)) from 0
 * to max. Ends the process if text is none. */
uint64_t unm_daemon_number(const char *name, const char *text, int base,
			   uint64_t max);

/*
 * Make sure that descriptors 0 to 2 are open, so that no later one gets these
 * numbers, and that programs which are started inherit these three only. Raise
 * the limit of descriptors as far as is allowed. Returns a spare descriptor,
 * which the caller may close; -1: there is none.
 */
int unm_daemon_descriptors(void);

/* Continue in the background, in a child with a session of its own and
 * /dev/null as descriptors 0 to 2. Called before any thread is started; what
 * was opened with a process id in it is not valid any more. */
void unm_daemon_fork(void);

#endif /* UNM_DAEMON_H */
