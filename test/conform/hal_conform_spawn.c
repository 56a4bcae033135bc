/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_conform_spawn.c - start child processes of the conformance test, send
 * them commands, and end them; the main function of a child is in
 * hal_conform_child.c
 */
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>

#include "conform/hal_conform.h"

static struct ct_child children[CT_CHILDREN];

/* Execute this program again as a child. Does not return. */
static void become_child(const char *point)
{
	char patience[32], seq[32], late[32];
	const char *argv[] = { ct_opt.via, ct_opt.self, "--child",
		"--hal", ct_opt.hal, "--profile", ct_opt.profile,
		"--fault", ct_opt.fault, "--patience", patience,
		"--seq-start", seq, "--late", late, NULL, NULL, NULL };
	const char **cmd = ct_opt.via != NULL ? argv : argv + 1;

	snprintf(patience, sizeof(patience), "%g", ct_opt.patience);
	snprintf(seq, sizeof(seq), "%ld", ct_opt.seq_start);
	snprintf(late, sizeof(late), "%ld", ct_opt.late);
	if (ct_opt.broken != NULL) {
		argv[15] = "--broken";
		argv[16] = ct_opt.broken;
	}
	if (point != NULL)
		setenv("FI_UNIMEM_POINT", point, 1);
	else
		unsetenv("FI_UNIMEM_POINT");
	execvp(cmd[0], (char *const *)cmd);
	_exit(127);
}

static struct ct_child *start(const char *point, ct_stop_fn on_stop)
{
	struct ct_child *c = children;
	int in[2], out[2];

	while (c < children + CT_CHILDREN && c->pid != 0)
		c++;
	assert_true(c < children + CT_CHILDREN);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	fflush(NULL);
	c->pid = unit_fork();
	if (c->pid == 0) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		become_child(point);
	}
	close(in[0]);
	close(out[1]);
	c->on_stop = on_stop;
	c->in = in[1];
	c->out = out[0];
	return c;
}

struct ct_child *ct_spawn_try(const char *point, ct_stop_fn on_stop,
			      int *status)
{
	struct ct_child *c = start(point, on_stop);
	char line[CT_ADDR_TEXT * 2];

	if (ct_hear(c, line, sizeof(line))) {
		if (!ct_addr_parse(line, &c->addr))
			ct_fail("a child said: %s", line);
		return c;
	}
	*status = ct_reap(c);
	return NULL;
}

struct ct_child *ct_spawn(void)
{
	int status = 0;
	struct ct_child *c = ct_spawn_try(NULL, NULL, &status);

	if (c == NULL)
		ct_fail("a child ended with wait status %x", status);
	return c;
}

/* Send a command line. Nothing happens if the child has ended. */
__attribute__((format(printf, 2, 0)))
static void tell(struct ct_child *c, const char *fmt, va_list ap)
{
	char line[256];
	int n = vsnprintf(line, sizeof(line) - 1, fmt, ap);

	assert_true(n > 0 && n < (int)sizeof(line) - 1);
	line[n++] = '\n';
	if (write(c->in, line, n) != n)
		assert_int_equal(errno, EPIPE);
}

void ct_tell(struct ct_child *c, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	tell(c, fmt, ap);
	va_end(ap);
}

/* Tests end children by SIGKILL only. test/broken/run searches for this line: a
 * crash is not how a test may notice a mistake. May run in a signal handler. */
static void say_crash(int status)
{
	static const char line[] = "a child crashed\n";

	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL &&
	    write(STDERR_FILENO, line, sizeof(line) - 1) < 0)
		return;
}

/* Look whether it ended or stopped; true once it ended. */
bool ct_ended(struct ct_child *c)
{
	int status;

	if (c->ended)
		return true;
	if (waitpid(c->pid, &status, WNOHANG | WUNTRACED) != c->pid)
		return false;
	if (WIFSTOPPED(status)) {
		/* The child stopped at a fault point: call the test, then
		 * continue it. */
		if (c->on_stop != NULL)
			c->on_stop(c);
		return false;
	}
	say_crash(status);
	c->ended = true;
	c->status = status;
	return true;
}

static uint64_t long_deadline(void)
{
	return ct_now() + (uint64_t)(3 * ct_opt.patience * CT_SECOND);
}

bool ct_hear(struct ct_child *c, char *line, size_t size)
{
	struct pollfd pfd = { .fd = c->out, .events = POLLIN };
	uint64_t end = long_deadline();
	size_t n = 0;

	for (;;) {
		if (poll(&pfd, 1, 0) <= 0) {
			if (ct_now() > end)
				ct_fail("a child says nothing");
			ct_ended(c);
			ct_step_all();
			ct_nap(20);
			continue;
		}
		if (read(c->out, line + n, 1) != 1)
			return false;
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
		assert_true(++n < size);
	}
}

void ct_ask(struct ct_child *c, char *rest, size_t size, const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	tell(c, fmt, ap);
	va_end(ap);
	if (!ct_hear(c, line, sizeof(line)))
		ct_fail("a child ended when told: %s", fmt);
	if (strncmp(line, "ok", 2) != 0)
		ct_fail("a child told '%s' says: %s", fmt, line);
	if (rest != NULL)
		snprintf(rest, size, "%s", line + 2);
}

void ct_serve(struct ct_child *c)
{
	uint64_t end = ct_deadline();
	char line[CT_ADDR_TEXT * 2];
	int ret;

	for (;;) {
		ret = 0;
		ct_tell(c, "serve");
		assert_true(ct_hear(c, line, sizeof(line)));
		sscanf(line, "error serve %d", &ret);
		if (ret != -FI_EBUSY || ct_now() > end)
			break;
		ct_nap(1000);
	}
	ct_service_taken(ret);
	if (strncmp(line, "ok ", 3) != 0 || !ct_addr_parse(line + 3, &c->addr))
		ct_fail("a child told to serve says: %s", line);
}

struct hal_peer *ct_join_child(struct ct_if *ci, struct ct_child *c)
{
	struct hal_peer *peer = ct_connect(ci, &c->addr);
	char text[CT_ADDR_TEXT];

	ct_addr_format(&ci->hif->addr, text);
	ct_ask(c, NULL, 0, "connect %s", text);
	ct_wait_event(ci, HAL_EV_CONNECTED, peer);
	ct_wait_event(ci, HAL_EV_INBOUND, peer);
	return peer;
}

void ct_stop(struct ct_child *c)
{
	unit_stop(c->pid);
}

static void forget(struct ct_child *c)
{
	close(c->in);
	close(c->out);
	memset(c, 0, sizeof(*c));
}

void ct_await_end(struct ct_child *c, bool stepping)
{
	uint64_t end = long_deadline();

	while (!ct_ended(c)) {
		if (ct_now() > end)
			ct_fail("a child does not end");
		if (stepping)
			ct_step_all();
		ct_nap(20);
	}
}

int ct_reap(struct ct_child *c)
{
	int status;

	ct_await_end(c, true);
	status = c->status;
	forget(c);
	return status;
}

void ct_hear_ok(struct ct_child *c)
{
	char line[256] = "";

	assert_true(ct_hear(c, line, sizeof(line)));
	assert_string_equal(line, "ok");
}

void ct_finish(struct ct_child *c)
{
	int status;

	close(c->in);
	c->in = open("/dev/null", O_WRONLY | O_CLOEXEC);
	status = ct_reap(c);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		ct_fail("a child ended with wait status %x", status);
}

void ct_kill(struct ct_child *c)
{
	int status = 0;

	if (!c->ended) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, &status, 0);
		say_crash(status);
	}
	forget(c);
}

static pid_t heir_pid;		/* forked process to kill if the test fails */

void ct_children_end(void)
{
	if (heir_pid > 0)
		kill(heir_pid, SIGKILL);
	heir_pid = 0;
	for (int i = 0; i < CT_CHILDREN; i++) {
		if (children[i].pid != 0)
			ct_kill(&children[i]);
	}
}

struct ct_heir ct_heir_leave(struct ct_child *c)
{
	/* qemu-user 7.2 does not support the call; then init adopts the
	 * process, and this process cannot reap it. */
	struct ct_heir heir = { prctl(PR_SET_CHILD_SUBREAPER, 1) == 0, 0 };
	char rest[64];

	ct_ask(c, rest, sizeof(rest), "fork");
	heir.pid = atoi(rest);
	assert_true(heir.pid > 1);
	heir_pid = heir.pid;
	return heir;
}

void ct_heir_end(const struct ct_heir *heir)
{
	kill(heir->pid, SIGKILL);
	heir_pid = 0;
	assert_true(!heir->reaper ||
		    waitpid(heir->pid, NULL, 0) == heir->pid);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}
