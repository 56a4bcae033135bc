/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mailbox_start.c - mailbox daemons that start and end by themselves, and
 * names that another user has taken; on emu and sim
 */
#include <sys/socket.h>
#include <sys/un.h>

#include "lib/mailbox_procs.h"

#define LEFT	250			/* messages of a process that ends */
#define NAME_LEN 200			/* of the socket of a daemon */

/* ---- Daemons that start by themselves ------------------------------------ */

/* Child: keep the name of the daemon that a mailbox is a socket to, without
 * node and form, for the director. All daemons of a case have the same one, and
 * those of other tests that run at the same time have others. */
static void keep_name(int mailbox)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	socklen_t len = sizeof(sun) - 1;	/* the last byte stays 0 */
	char *name = sun.sun_path + 1, *dot;

	CHECK(getpeername(mailbox, (struct sockaddr *)&sun, &len) == 0);
	for (int i = 0; i < 2; i++) {	/* .NODE.FORM */
		dot = strrchr(name, '.');
		CHECK(dot != NULL);
		*dot = '\0';
	}
	memcpy(g_shared->bytes, name, strlen(name) + 1);
}

/* Director: the name of node i's daemon, without the number of its form, and
 * without the @ that it has in /proc/net/unix. */
static void daemon_name(int i, char *name, size_t len)
{
	CHECK(g_shared->bytes[0] != 0);
	CHECK(snprintf(name, len, "%s.%d.", (char *)g_shared->bytes,
		       node_number(i)) < (int)len);
}

static bool is_bound(const char *name)
{
	char line[512];
	FILE *f = fopen("/proc/net/unix", "re");
	bool found = false;

	CHECK(f != NULL);
	while (!found && fgets(line, sizeof(line), f) != NULL)
		found = strstr(line, name) != NULL;
	fclose(f);
	return found;
}

static void await_none(void)
{
	char name[NAME_LEN];

	for (int i = 0; i < NODES; i++) {
		daemon_name(i, name, sizeof(name));
		while (is_bound(name))
			procs_nap(10000);
	}
}

/* Writes before there is a reader, and stays. */
static int early_writer(int fd, void *arg)
{
	int remote = mb_open(node_number(0), 0);

	keep_name(remote);
	mb_write(remote, mb_message(*(const unsigned *)arg, 1));
	procs_exchange(fd, 0);
	return 0;
}

static int late_reader(int fd, void *arg)
{
	int local = mb_open(MAILBOX_LOCAL, 0);
	unsigned opcode = *(const unsigned *)arg;

	(void)fd;
	mb_register(local, opcode);
	CHECK(mb_read(local) == mb_message(opcode, 1));
	return 0;
}

/* Daemons start at first use, those of both nodes, and end when unused. As long
 * as a process has a mailbox open, messages for it are kept. */
static void by_themselves(void *backend)
{
	static const unsigned opcode[2] = { 1, 2 };
	struct proc *p[2], *r;
	char path[4096];

	use_backend(backend);
	program(path, sizeof(path));
	setenv("UNIMEM_MAILBOXD", path, 1);
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 2; i++)	/* two at once */
			p[i] = proc_start(early_writer,
					  (void *)(uintptr_t)&opcode[i],
					  node_env(1));
		for (int i = 0; i < 2; i++)
			procs_recv_word(p[i]->fd);
		procs_nap(1500000);	/* longer than --linger */
		for (int i = 0; i < 2; i++) {
			r = proc_start(late_reader,
				       (void *)(uintptr_t)&opcode[i],
				       node_env(0));
			proc_expect(r, 0);
		}
		for (int i = 0; i < 2; i++)
			proc_finish(p[i]);
		await_none();
	}
}

/* ---- Messages of ended writers ------------------------------------------- */

static int write_and_end(int fd, void *arg)
{
	int remote = mb_open(node_number(0), 0);

	(void)fd;
	(void)arg;
	keep_name(remote);
	for (uint64_t i = 0; i < LEFT; i++)
		mb_write(remote, mb_message(4, i));
	return 0;
}

static int read_left(int fd, void *arg)
{
	int local = mb_open(MAILBOX_LOCAL, 0);

	(void)fd;
	(void)arg;
	mb_register(local, 4);
	for (uint64_t i = 0; i < LEFT; i++) {
		struct pollfd pfd = { .fd = local, .events = POLLIN };

		CHECK_MSG(poll(&pfd, 1, 20000) == 1, "message %d is lost",
			  (int)i);
		CHECK(mb_read(local) == mb_message(4, i));
	}
	return 0;
}

/* Daemons that nobody uses stay while messages wait, more of them than one
 * daemon holds of another. */
static void ended_writer(void *backend)
{
	char path[4096];

	use_backend(backend);
	program(path, sizeof(path));
	setenv("UNIMEM_MAILBOXD", path, 1);
	proc_expect(proc_start(write_and_end, NULL, node_env(1)), 0);
	procs_nap(1500000);		/* longer than --linger, well below
					 * the time that messages wait */
	proc_expect(proc_start(read_left, NULL, node_env(0)), 0);
	await_none();
}

static int cannot_open(int fd, void *arg)
{
	(void)fd;
	mb_quiet_log();			/* one line that says why */
	CHECK(mailbox_open(MAILBOX_LOCAL, 0) == *(const int *)arg);
	return 0;
}

static void no_program(void *backend)
{
	use_backend(backend);
	proc_expect(proc_start(cannot_open, &(int){ -ECONNREFUSED },
			       node_env(0)), 0);
}

/* ---- Another user -------------------------------------------------------- */

/* The names that another user takes. */
struct squat {
	const char *name;		/* without the number of the form */
	int forms;
	bool full;			/* no form accepts a connection */
};

static int squatter(int fd, void *arg)
{
	const struct squat *squat = arg;
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	size_t len = strlen(squat->name);

	CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	memcpy(sun.sun_path + 1, squat->name, len);
	for (int i = 0; i < squat->forms; i++) {
		int s = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		int self = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		socklen_t size = (socklen_t)(sizeof(sun.sun_family) + 1 + len +
					     1);

		sun.sun_path[1 + len] = (char)('0' + i);
		CHECK(bind(s, (struct sockaddr *)&sun, size) == 0);
		CHECK(listen(s, squat->full ? 0 : 1) == 0);
		if (squat->full)
			CHECK(connect(self, (struct sockaddr *)&sun, size) ==
			      0);
	}
	procs_exchange(fd, 0);
	return 0;
}

static int can_open(int fd, void *arg)
{
	int local = mb_open(MAILBOX_LOCAL, 0);

	(void)fd;
	(void)arg;
	keep_name(local);
	close(local);
	return 0;
}

/* Messages pass while another user has three of the four forms. Without a
 * daemon a process starts one. */
static void three_forms(const char *name, bool full)
{
	struct proc *w, *s;
	char path[4096], last[NAME_LEN];

	s = proc_start(squatter, &(struct squat){ name, 3, full }, NULL);
	procs_recv_word(s->fd);
	g_daemon[0] = daemon_start(0, g_daemon[0]);
	CHECK(snprintf(last, sizeof(last), "%s3", name) < (int)sizeof(last));
	CHECK(is_bound(last));		/* the daemon has the last form */
	w = proc_start(early_writer, &(unsigned){ 1 }, node_env(1));
	procs_recv_word(w->fd);
	proc_expect(proc_start(late_reader, &(unsigned){ 1 }, node_env(0)), 0);
	proc_finish(w);
	proc_kill(g_daemon[0]);
	program(path, sizeof(path));
	setenv("UNIMEM_MAILBOXD", path, 1);
	proc_expect(proc_start(can_open, NULL, node_env(0)), 0);
	setenv("UNIMEM_MAILBOXD", "/dev/null", 1);
	while (is_bound(last))		/* --linger */
		procs_nap(10000);
	proc_finish(s);
}

static void squatted(void *backend)
{
	char name[NAME_LEN];
	struct proc *s;

	if (geteuid() != 0)
		procs_skip("needs root, to be another user");
	daemons_start(backend);
	proc_expect(proc_start(can_open, NULL, node_env(0)), 0);
	daemon_name(0, name, sizeof(name));
	proc_kill(g_daemon[0]);
	three_forms(name, /* full */ false);
	three_forms(name, /* full */ true);
	g_daemon[0] = daemon_start(0, g_daemon[0]);
	daemons_stop();
	s = proc_start(squatter, &(struct squat){ name, 4, false }, NULL);
	procs_recv_word(s->fd);
	proc_expect(proc_start(cannot_open, &(int){ -EACCES }, node_env(0)), 0);
	proc_finish(s);
}

PROCS_MAIN(BOTH(by_themselves), BOTH(ended_writer), BOTH(no_program),
	   BOTH(squatted))
