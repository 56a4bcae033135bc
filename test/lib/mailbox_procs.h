/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mailbox_procs.h - two nodes with a mailbox daemon each, for multi-process
 * tests of <unimem/mailbox.h>; extends procs.h
 *
 * The daemons are children of the director, so that they end with the case, and
 * the library starts none. A case runs on the backend that its argument names.
 */
#ifndef MAILBOX_PROCS_H
#define MAILBOX_PROCS_H

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procs.h"
#include "unimem/mailbox.h"

#define NODES	2
#define THIRD	2			/* a node without a daemon at first */

/* A case on both backends. */
#define BOTH(f)								\
	PROCS_WITH(emu_##f, 0, f, (void *)(uintptr_t)"emu"),		\
	PROCS_WITH(sim_##f, 0, f, (void *)(uintptr_t)"sim")

static bool g_sim;			/* of the case that runs */

/* The number of node i, 0 to THIRD. */
static inline int node_number(int i)
{
	int board = procs_board();

	if (g_sim)
		return i;
	return board < i ? board + 1 : board - i;
}

/* The environment of a process on node i. */
static inline const char *const *node_env(int i)
{
	static char text[NODES + 1][32];
	static const char *env[NODES + 1][2];

	snprintf(text[i], sizeof(text[i]), "FI_UNIMEM_BOARD=%d",
		 node_number(i));
	env[i][0] = text[i];
	return env[i];
}

static inline void program(char *path, size_t len)
{
	char exe[4000];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	CHECK(n > 0);
	exe[n] = '\0';
	CHECK(snprintf(path, len, "%s/../../unimem-mailboxd", dirname(exe)) <
	      (int)len);
}

/* Director: the backend of the case, and no daemon yet. */
static inline void use_backend(void *backend)
{
	char world[32];

	g_sim = strcmp(backend, "sim") == 0;
	setenv("UNIMEM_MAILBOXD", "/dev/null", 1);
	if (!g_sim)
		return;
	snprintf(world, sizeof(world), "world=%d", (int)getpid());
	setenv("FI_UNIMEM_HAL", "sim", 1);
	setenv("FI_UNIMEM_SIM", world, 1);
	setenv("FI_UNIMEM_BOARDS", "3", 1);
}

static inline int run_daemon(int fd, void *arg)
{
	const char *exec = getenv("UNM_EXEC");
	char path[4096], ready[16];
	char *args[] = { (char *)(uintptr_t)exec, path,
			 (char *)(uintptr_t)"--ready-fd", ready, NULL };
	char **first = exec != NULL && *exec != '\0' ? args : args + 1;

	(void)fd;
	program(path, sizeof(path));
	snprintf(ready, sizeof(ready), "%d", *(const int *)arg);
	execvp(first[0], first);
	FAIL("%s: %s", first[0], strerror(errno));
}

/* Director: start the daemon of node i, or start it again in the place of p,
 * and wait until it serves. */
static inline struct proc *daemon_start(int i, struct proc *p)
{
	char line[200] = "";
	int fds[2];

	CHECK(pipe(fds) == 0);
	p = p != NULL ? proc_restart(p, run_daemon, &fds[1], node_env(i)) :
	    proc_start(run_daemon, &fds[1], node_env(i));
	close(fds[1]);
	CHECK(read(fds[0], line, sizeof(line) - 1) > 0);
	CHECK_MSG(strcmp(line, "ready\n") == 0, "daemon: %s", line);
	close(fds[0]);
	return p;
}

/* Director: the daemons of both nodes, on the case's backend. */
static struct proc *g_daemon[NODES];
static inline void daemons_start(void *backend)
{
	use_backend(backend);
	for (int i = 0; i < NODES; i++)
		g_daemon[i] = daemon_start(i, NULL);
}

static inline void daemons_stop(void)
{
	for (int i = 0; i < NODES; i++) {
		CHECK_MSG(!proc_ended(g_daemon[i], 0), "daemon %d ended", i);
		proc_signal(g_daemon[i], SIGTERM);
		proc_expect(g_daemon[i], 0);
	}
}

/* ---- Mailboxes, in children ---------------------------------------------- */

static inline int mb_open(int node, int flags)
{
	int fd = mailbox_open(node, flags);

	CHECK_MSG(fd >= 0, "mailbox_open(%d): %s", node, strerror(-fd));
	return fd;
}

static inline int mb_act(int fd, char action, unsigned opcode, int val)
{
	const struct mailbox_action_t act = {
		.action = action, .opcode = opcode, .val = val,
	};

	return mailbox_action(fd, &act);
}

static inline void mb_register(int fd, unsigned opcode)
{
	int ret = mb_act(fd, 'r', opcode, 0);

	CHECK_MSG(ret == 0, "register %u: %s", opcode, strerror(-ret));
}

/* Register an opcode that another process has had: the daemon frees it some
 * time after the last descriptor was closed. */
static inline void mb_register_freed(int fd, unsigned opcode)
{
	int ret;

	while ((ret = mb_act(fd, 'r', opcode, 0)) == -EBUSY)
		procs_nap(1000);
	CHECK_MSG(ret == 0, "register %u: %s", opcode, strerror(-ret));
}

static inline uint64_t mb_message(unsigned opcode, uint64_t rest)
{
	return (uint64_t)opcode << 60 | rest;
}

static inline void mb_write(int fd, uint64_t msg)
{
	CHECK_MSG(write(fd, &msg, sizeof(msg)) == sizeof(msg), "write: %s",
		  strerror(errno));
}

static inline uint64_t mb_read(int fd)
{
	uint64_t msg;

	CHECK_MSG(read(fd, &msg, sizeof(msg)) == sizeof(msg), "read: %s",
		  strerror(errno));
	return msg;
}

/* Write messages first, first + 1 ... of an opcode until the mailbox has been
 * full for ms milliseconds. Returns the number behind the last one. */
static inline uint64_t mb_fill(int fd, unsigned opcode, uint64_t first, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLOUT };
	uint64_t msg;

	for (;;) {
		msg = mb_message(opcode, first);
		if (write(fd, &msg, sizeof(msg)) == sizeof(msg)) {
			first++;
			continue;
		}
		CHECK_MSG(errno == EAGAIN, "write: %s", strerror(errno));
		if (poll(&pfd, 1, ms) == 0)
			return first;
	}
}

/* Nothing can be read within ms milliseconds. */
static inline void mb_quiet(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };

	CHECK(poll(&pfd, 1, ms) == 0);
}

/* Discard the log lines of the library. */
static inline void mb_quiet_log(void)
{
	int null = open("/dev/null", O_RDWR);

	g_fail_fd = dup(STDERR_FILENO);
	CHECK(null >= 0 && dup2(null, STDERR_FILENO) == STDERR_FILENO);
	close(null);
}

#endif /* MAILBOX_PROCS_H */
