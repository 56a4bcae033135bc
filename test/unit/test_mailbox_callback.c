/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mailbox_callback.c - processes that fork while they register their first
 * callback: their children do not keep the registration alive
 *
 * The test is the daemon: the process that registers connects to it in the
 * place of mailbox_open(), and forks there.
 */
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/unit.h"
#include "unimem/mailbox.h"

#define OPCODE	5
#define CONNS	16

static int g_listener;
static struct sockaddr_un g_name;
static socklen_t g_name_len;
static int g_stop[2];			/* children end when it is closed */
static int g_forks;			/* opens that fork */
static int g_opens;

/* A child that goes on without exec(). */
static void fork_child(void)
{
	pid_t pid = fork();
	char byte;

	if (pid == 0) {
		close(g_stop[1]);
		_exit(read(g_stop[0], &byte, 1) != 0);
	}
	if (pid < 0)
		_exit(9);
}

/* ---- In the place of mbox_open.c ---------------------------------------- */

int mailbox_open(int node, int flags)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *)&g_name, g_name_len) != 0)
		return -errno;
	if (g_opens++ < g_forks)
		fork_child();
	return fd;
}

int mailbox_action(int fd, const struct mailbox_action_t *action)
{
	return send(fd, action, sizeof(*action), 0) < 0 ? -errno : 0;
}

int mailbox_node(void)
{
	return 0;
}

int mailbox_nodes(void)
{
	return 1;
}

/* ---- The process --------------------------------------------------------- */

static int ignore(long long unsigned message)
{
	return 0;
}

/* Register a callback, and wait to be killed. */
static void registers(void)
{
	char text[] = "test";

	if (mailbox_register_callback(OPCODE, ignore, text) != 0)
		_exit(1);
	for (;;)
		pause();
}

/* Accept the connections of a process until it registers. Returns the
 * connection by which it does. */
static int take_registered(int fds[CONNS], int *count)
{
	struct mailbox_action_t action;

	for (*count = 0; *count < CONNS;) {
		int fd = accept4(g_listener, NULL, NULL, SOCK_CLOEXEC);

		assert_true(fd >= 0);
		fds[(*count)++] = fd;
		/* the action, or the end of a connection that is not used */
		if (recv(fd, &action, sizeof(action), 0) == sizeof(action)) {
			assert_int_equal(action.action, 'r');
			assert_int_equal(action.opcode, OPCODE);
			return fd;
		}
	}
	unit_fail("no action");
	return -1;
}

/* The first opens of a process fork. When it is killed, its registration ends,
 * although all its children live. */
static void killed_after(int forks)
{
	int fds[CONNS], count, registered;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(g_stop), 0);
	g_forks = forks;
	pid = unit_fork();
	if (pid == 0)
		registers();
	registered = take_registered(fds, &count);
	unit_kill(pid);
	assert_int_equal(recv(registered, &byte, 1, MSG_DONTWAIT), 0);
	assert_int_equal(count, forks + 1);
	for (int i = 0; i < count; i++)
		close(fds[i]);
	close(g_stop[0]);
	close(g_stop[1]);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static void test_no_fork(void **state)
{
	killed_after(0);
}

static void test_forks(void **state)
{
	for (int n = 1; n < 8; n++)
		killed_after(n);
}

static int setup(void **state)
{
	g_listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	g_name.sun_family = AF_UNIX;
	/* the kernel chooses a name */
	assert_int_equal(bind(g_listener, (struct sockaddr *)&g_name,
			      sizeof(sa_family_t)), 0);
	g_name_len = sizeof(g_name);
	assert_int_equal(getsockname(g_listener, (struct sockaddr *)&g_name,
				     &g_name_len), 0);
	assert_int_equal(listen(g_listener, CONNS), 0);
	/* children of killed processes become this process's, to be awaited;
	 * qemu-user refuses it */
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_fork),
		cmocka_unit_test(test_forks),
	};

	return unit_run_with(tests, setup, NULL);
}
