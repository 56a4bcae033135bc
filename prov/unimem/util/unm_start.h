/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_start.h - start a daemon in the process that first needs it
 * (unm_start.c).
 *
 * The daemon takes the option --ready-fd, and with --auto forks and ends, so
 * that it is no child of the process that started it. unm_daemon.h is its side.
 * Thread-safe.
 */
#ifndef UNM_START_H
#define UNM_START_H

#include <stdbool.h>
#include <stddef.h>

/* The descriptor of --ready-fd in a daemon, and the value of this option. */
#define UNM_START_FD		3
#define UNM_START_TEXT(fd)	#fd
#define UNM_START_VALUE(fd)	UNM_START_TEXT(fd)
#define UNM_START_READY_FD	UNM_START_VALUE(UNM_START_FD)

/* Where a daemon is found. The program has it as a constant. */
struct unm_start {
	const char *name;		/* argv[0], and in PATH */
	const char *installed;		/* path of the installed program */
	const char *variable;		/* environment variable that may hold
					 * another path */
};

/*
 * Run a daemon and wait until it has written a line to its descriptor
 * UNM_START_FD, has closed it, or has been silent for 10 seconds. Then the
 * process that was started has to end. It is killed if it wrote no line, or has
 * not ended a second after the line; so a daemon without --auto is killed. The
 * process that a daemon with --auto forked is not. The daemon has no other
 * descriptor of this process, no blocked or ignored signals, and /dev/null as
 * its descriptors 0 to 2.
 *
 * The program is that of the environment variable, if it is set, else the
 * installed program, else the first one in PATH. A set-id process runs the
 * installed program only, with the parameters of the HAL as its environment.
 *
 * argv: arguments with the name, NULL at the end. line: max bytes, for the line
 * of the daemon without its newline; "": it wrote none. Returns 0 if the daemon
 * ran; an errno value if the program cannot be started; -errno if this process
 * has no descriptors for it.
 */
int unm_start(const struct unm_start *prog, char *const argv[], char *line,
	      size_t max);

/* Is this a set-id process (AT_SECURE)? */
bool unm_start_secure(void);

#endif /* UNM_START_H */
