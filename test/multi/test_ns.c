/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_ns.c - processes in namespaces of their own. With a shared network
 * namespace they work together (memory a peer may not read is streamed), or one
 * line says why not; in another network namespace they cannot meet, and one
 * line says so.
 *
 * As an ordinary user each case makes a user namespace first; where even that
 * is not permitted it is skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/procs.h"

static const size_t mixed[] = { 8, 0, 4096, 40, 70000, 1000, 16384, 300000 };

struct place {
	int flags;			/* for unshare() */
	bool map;			/* user namespace: we are root in it */
	bool alike;			/* both in namespaces like that */
};

/* ---- Getting there ------------------------------------------------------ */

static bool write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = -1;

	if (fd >= 0) {
		n = write(fd, text, strlen(text));
		close(fd);
	}
	return n == (ssize_t)strlen(text);
}

static bool enter(const struct place *p)
{
	unsigned uid = geteuid(), gid = getegid();
	int flags = p->flags;
	char map[64];

	if (uid != 0)
		flags |= CLONE_NEWUSER;
	if (unshare(flags) != 0)
		return false;
	if (!(flags & CLONE_NEWUSER) || (uid == 0 && !p->map))
		return true;
	/* an ordinary user stays who it is, or addresses would not match */
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", p->map ? 0 : uid, uid);
	if (!write_file("/proc/self/uid_map", map))
		return false;
	snprintf(map, sizeof(map), "%u %u 1", p->map ? 0 : gid, gid);
	return write_file("/proc/self/gid_map", map);
}

/* Runs fn in there; a pid namespace is for children. */
static int in_place(const struct place *p, int (*fn)(int), int fd)
{
	int status;
	pid_t pid;

	if (!enter(p))
		return 77;
	if (!(p->flags & CLONE_NEWPID))
		return fn(fd);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(fn(fd));
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	/* no exit handlers here: leak checkers need threads, and those no
	 * longer come about in this process */
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* ---- Together ----------------------------------------------------------- */

static int talk(int fd)
{
	struct traffic_opt opt = { .count = 300, .lens = mixed, .nlens = 8 };

	traffic_session(fd, &opt);
	return 0;
}

static int outside(int fd, void *arg)
{
	const struct place *p = arg;

	return p->alike ? in_place(p, talk, fd) : talk(fd);
}

static int inside(int fd, void *arg)
{
	return in_place(arg, talk, fd);
}

/* Skips the case if the child ends because it may not enter the place; it may
 * take ms milliseconds to send its word. */
static void is_permitted(struct proc *p, const struct place *place, int ms)
{
	uint64_t word;

	if (procs_recv(p->fd, &word, sizeof(word), ms) != 0)
		return;
	while (!proc_ended(p, 1000))
		;
	if (WEXITSTATUS(p->status) == 77)
		procs_skip("unshare(0x%x) is not permitted", place->flags);
	proc_expect(p, 0);
}

static void together(void *arg)
{
	const struct place *place = arg;
	struct proc *p[2] = { proc_start(inside, arg, NULL),
			      proc_start(outside, arg, NULL) };

	procs_join(p, 2);
	is_permitted(p[0], place, -1);
	procs_recv_word(p[1]->fd);
	for (int i = 0; i < 2; i++)
		proc_finish(p[i]);
}

/* ---- Dead in there ------------------------------------------------------ */

static int linger(int fd)
{
	struct node n;

	node_start(&n, fd, 0);
	node_idle(&n, fd);
	return 1;
}

static int mortal_inside(int fd, void *arg)
{
	return in_place(arg, linger, fd);
}

/* Sends until it learns of the end; when. */
static int mourner(int fd, void *arg)
{
	uint64_t told = 0;
	uint8_t buf[8];
	struct node n;
	ssize_t ret;

	(void)arg;
	node_start(&n, fd, 0);
	while ((ret = fi_tinject(n.ep, buf, 8, n.peer[0], 1)) == 0 ||
	       ret == -FI_EAGAIN) {
		fi_cq_read(n.cq, NULL, 0);
		if (ret == 0 && told++ == 100)
			procs_send_word(fd, 0);
	}
	CHECK_MSG(ret == -FI_ECONNRESET, "%s", fi_strerror((int)-ret));
	procs_send_word(fd, procs_now());
	node_close(&n);
	return 0;
}

static uint64_t death_attempt(void *arg)
{
	struct place *place = arg;
	struct proc *p[2] = { proc_start(mortal_inside, place, NULL),
			      proc_start(mourner, NULL, NULL) };
	uint64_t since, heard;

	procs_join(p, 2);
	is_permitted(p[0], place, 0);
	procs_recv_word(p[1]->fd);
	since = proc_kill(p[0]);	/* takes its child with it */
	heard = procs_recv_word(p[1]->fd);
	proc_expect(p[1], 0);
	return heard > since ? heard - since : 0;
}

static void ns_death(void)
{
	struct place place = { CLONE_NEWUSER | CLONE_NEWPID, true, false };

	procs_within_a_second(death_attempt, &place);
}

/* ---- Apart -------------------------------------------------------------- */

/* Its only send is refused, with one line. */
static int lonely(int fd)
{
	uint64_t end = procs_now() + 60 * PROCS_SECOND;
	char lines[4096];
	struct node n;
	ssize_t ret, len;
	int out[2], old;

	node_start(&n, fd, 0);
	CHECK(pipe2(out, O_CLOEXEC | O_NONBLOCK) == 0);
	old = dup(STDERR_FILENO);
	dup2(out[1], STDERR_FILENO);
	while ((ret = fi_tinject(n.ep, lines, 8, n.peer[!n.self], 1)) >= 0 ||
	       (ret == -FI_EAGAIN && procs_now() < end))
		fi_cq_read(n.cq, NULL, 0);
	/* asked again, it does not say it again */
	CHECK(fi_tinject(n.ep, lines, 8, n.peer[!n.self], 1) == ret);
	dup2(old, STDERR_FILENO);
	CHECK_MSG(ret == -FI_ECONNREFUSED || ret == -FI_ECONNRESET, "%s",
		  fi_strerror((int)-ret));
	len = read(out[0], lines, sizeof(lines) - 1);
	CHECK_MSG(len > 0, "not a word about it");
	lines[len] = '\0';
	CHECK_MSG(strstr(lines, "network namespace") != NULL &&
		  strchr(lines, '\n') == lines + len - 1, "%s", lines);
	node_close(&n);
	return 0;
}

static int lonely_inside(int fd, void *arg)
{
	return in_place(arg, lonely, fd);
}

static int lonely_outside(int fd, void *arg)
{
	(void)arg;
	return lonely(fd);
}

static void ns_net(void)
{
	struct place place = { CLONE_NEWNET, true, false };
	struct proc *p[2] = { proc_start(lonely_inside, &place, NULL),
			      proc_start(lonely_outside, NULL, NULL) };

	procs_join(p, 2);
	while (!proc_ended(p[0], 1000))
		;
	if (WEXITSTATUS(p[0]->status) == 77)
		procs_skip("unshare(CLONE_NEWNET) is not permitted");
	proc_expect(p[0], 0);
	proc_expect(p[1], 0);
}

static const struct procs_case cases[] = {
	PROCS_WITH(ns_ipc, 0, together,
		   &(struct place){ CLONE_NEWIPC, false, false }),
	PROCS_WITH(ns_mount, 0, together,
		   &(struct place){ CLONE_NEWNS, false, false }),
	PROCS_WITH(ns_pid, 0, together,
		   &(struct place){ CLONE_NEWPID, false, false }),
	PROCS_WITH(ns_pid_both, 0, together,
		   &(struct place){ CLONE_NEWPID, false, true }),
	PROCS_WITH(ns_user, 0, together,
		   &(struct place){ CLONE_NEWUSER, false, false }),
	PROCS_WITH(ns_user_root, 0, together,
		   &(struct place){ CLONE_NEWUSER, true, false }),
	PROCS_WITH(ns_user_root_both, 0, together,
		   &(struct place){ CLONE_NEWUSER, true, true }),
	PROCS_WITH(ns_all, 0, together, &(struct place){ CLONE_NEWUSER |
		CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNS | CLONE_NEWUTS,
		true, false }),
	PROCS_CASE(ns_death, 0),
	PROCS_CASE(ns_net, 0),
};

int main(int argc, char **argv)
{
	setenv("FI_LOG_LEVEL", "warn", 0);
	return procs_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
