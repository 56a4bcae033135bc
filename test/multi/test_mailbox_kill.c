/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mailbox_kill.c - mailboxes whose readers, writers and daemons are killed
 * or stopped, on emu and sim
 */
#include <pthread.h>

#include "lib/mailbox_procs.h"

#define MANY	3000			/* messages of a sender */
#define LOST_MAX 400			/* in the socket of a killed reader:
					 * some 290 messages. The socket of its
					 * writer has as many */
#define HOLD	0			/* word: not 0, a reader stays at its
					 * message MANY / 2 */
#define FIRST	8			/* words of the first messages read */
#define BURN	20			/* kills of a storm, UNM_TEST_KILLS */

/* ---- Children ------------------------------------------------------------ */

/* The number of a message, and the index of its writer. */
static uint32_t number(uint64_t msg)
{
	return (uint32_t)msg;
}

static unsigned from(uint64_t msg)
{
	return (unsigned)(msg >> 32) % PROCS_MAX;
}

/* Write messages 0 to MANY - 1 of the opcode that the director sends. */
static int writer(int fd, void *arg)
{
	int remote = mb_open(node_number(0), 0);
	unsigned opcode = (unsigned)procs_exchange(fd, 0);
	uint64_t self = (uint64_t)proc_index() << 32;

	(void)arg;
	for (uint64_t i = 0; i < MANY; i++)
		mb_write(remote, mb_message(opcode, self | i));
	return 0;
}

static struct proc *start_writer(unsigned opcode)
{
	struct proc *p = proc_start(writer, NULL, node_env(1));

	procs_recv_word(p->fd);
	procs_send_word(p->fd, opcode);
	return p;
}

/* Read messages of an opcode, whose numbers have gaps at the beginning only,
 * up to the last one. Reports once the opcode is registered. */
static int reader(int fd, void *arg)
{
	unsigned opcode = *(const unsigned *)arg;
	int local = mb_open(MAILBOX_LOCAL, 0);
	uint64_t next = 0;

	mb_register_freed(local, opcode);
	procs_send_word(fd, 0);
	while (next < MANY) {
		uint32_t n;

		while (next >= MANY / 2 && atomic_load(&g_shared->word[HOLD]))
			procs_nap(1000);
		n = number(mb_read(local));
		CHECK(n == next || (next == 0 && n < MANY));
		if (next == 0)
			atomic_store(&g_shared->word[FIRST + opcode], n);
		next = n + 1;
		atomic_store(&g_shared->word[opcode], next);
	}
	mb_quiet(local, 20);
	return 0;
}

static struct proc *start_reader(const unsigned *opcode)
{
	struct proc *p = proc_start(reader, (void *)(uintptr_t)opcode,
				    node_env(0));

	procs_recv_word(p->fd);
	return p;
}

static const unsigned one = 1, two = 2;

/* ---- Readers and writers ------------------------------------------------- */

/* A killed reader loses its registration, and the messages that its socket had
 * are lost. The messages behind them reach the next reader, in order. */
static void reader_killed(void *backend)
{
	struct proc *p[2], *w;
	uint64_t read, first;

	daemons_start(backend);
	atomic_store(&g_shared->word[HOLD], 1);
	p[0] = start_reader(&one);
	w = start_writer(1);
	while (atomic_load(&g_shared->word[1]) < MANY / 4)
		procs_nap(100);
	proc_kill(p[0]);
	atomic_store(&g_shared->word[HOLD], 0);
	read = atomic_load(&g_shared->word[1]);
	procs_nap(50000);		/* the writer waits for a reader */
	p[1] = start_reader(&one);
	proc_expect(w, 0);
	proc_expect(p[1], 0);
	first = atomic_load(&g_shared->word[FIRST + 1]);
	CHECK_MSG(first - read <= LOST_MAX, "%d messages are lost",
		  (int)(first - read));
	daemons_stop();
}

/* A stopped reader delays the writers of its opcode, and no other reader. */
static void reader_stopped(void *backend)
{
	struct proc *p[2], *w[2];

	daemons_start(backend);
	p[0] = start_reader(&one);
	p[1] = start_reader(&two);
	proc_stop(p[0]);
	w[0] = start_writer(1);
	w[1] = start_writer(2);
	proc_expect(w[1], 0);
	proc_expect(p[1], 0);
	CHECK_MSG(!proc_ended(w[0], 50), "%d messages without a reader", MANY);
	proc_signal(p[0], SIGCONT);
	proc_expect(w[0], 0);
	proc_expect(p[0], 0);
	daemons_stop();
}

/* Read until the director says otherwise. The messages of each writer have no
 * gap. */
static int count_all(int fd, void *arg)
{
	static uint32_t next[PROCS_MAX];
	int local = mb_open(MAILBOX_LOCAL, O_NONBLOCK);
	struct pollfd pfd[] = {
		{ .fd = local, .events = POLLIN },
		{ .fd = fd, .events = POLLIN },
	};
	uint64_t msg;

	(void)arg;
	mb_register_freed(local, 1);	/* with_child() may have had it */
	procs_send_word(fd, 0);
	while (poll(pfd, 2, -1) > 0) {
		while (read(local, &msg, sizeof(msg)) == sizeof(msg)) {
			CHECK(number(msg) == next[from(msg)]++);
			atomic_store(&g_shared->word[1], number(msg) + 1);
		}
		CHECK(errno == EAGAIN);
		if (pfd[1].revents != 0)
			break;
	}
	procs_recv_word(fd);
	return 0;
}

/* A killed writer has sent a number of its messages, and no part of one. */
static void writer_killed(void *backend)
{
	struct proc *r, *w;

	daemons_start(backend);
	r = proc_start(count_all, NULL, node_env(0));
	procs_recv_word(r->fd);
	for (int i = 0; i < 4; i++) {
		w = start_writer(1);
		procs_nap(500 * (uint64_t)i);
		proc_kill(w);
	}
	w = start_writer(1);
	proc_expect(w, 0);
	while (atomic_load(&g_shared->word[1]) != MANY)
		procs_nap(1000);
	proc_finish(r);
	daemons_stop();
}

static int with_child(int fd, void *arg)
{
	int local = mb_open(MAILBOX_LOCAL, 0);

	(void)arg;
	mb_register(local, 1);
	procs_send_word(fd, 0);
	if (fork() != 0)
		_exit(0);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK(number(mb_read(local)) == i);
	atomic_store(&g_shared->word[0], 1);
	_exit(0);
}

/* A registration lasts until the last process closes the descriptor. */
static void forked_reader(void *backend)
{
	struct proc *p, *w;

	daemons_start(backend);
	p = proc_start(with_child, NULL, node_env(0));
	procs_recv_word(p->fd);
	proc_expect(p, 0);
	w = start_writer(1);
	proc_expect(w, 0);
	while (atomic_load(&g_shared->word[0]) == 0)
		procs_nap(1000);
	p = proc_start(count_all, NULL, node_env(0));	/* it is freed */
	procs_recv_word(p->fd);
	proc_finish(p);
	daemons_stop();
}

/* ---- Daemons ------------------------------------------------------------- */

/* Reads, and writes to the other node, until both fail. Then the daemons are
 * there again. */
static int survivor(int fd, void *arg)
{
	int local = mb_open(MAILBOX_LOCAL, 0);
	int remote = mb_open(node_number(1), 0);
	struct pollfd pfd = { .fd = remote, .events = 0 };
	uint64_t msg = mb_message(1, 0);

	(void)arg;
	mb_register(local, 1);
	procs_send_word(fd, 0);
	if (procs_recv_word(fd) == 0) {	/* the local daemon is killed */
		CHECK(read(local, &msg, sizeof(msg)) == -1);
		CHECK_MSG(errno == ECONNRESET, "read: %s", strerror(errno));
		CHECK(read(local, &msg, sizeof(msg)) == 0);
		CHECK(mb_act(local, 'r', 2, 0) == -ECONNRESET);
		CHECK(write(local, &msg, sizeof(msg)) == -1);
		CHECK(errno == EPIPE);	/* and no SIGPIPE */
	} else {
		mb_quiet(local, 20);
	}
	CHECK(poll(&pfd, 1, -1) == 1);
	CHECK(write(remote, &msg, sizeof(msg)) == -1);
	CHECK_MSG(errno == ECONNRESET, "write: %s", strerror(errno));
	procs_exchange(fd, 0);		/* the daemon is there again */
	close(local);
	close(remote);
	local = mb_open(MAILBOX_LOCAL, 0);
	mb_register_freed(local, 1);
	remote = mb_open(node_number(1), 0);
	procs_send_word(fd, 0);
	CHECK(mb_read(local) == mb_message(1, 7));
	return 0;
}

static int send_seven(int fd, void *arg)
{
	int remote = mb_open(node_number(0), 0);

	(void)fd;
	(void)arg;
	mb_write(remote, mb_message(1, 7));
	return 0;
}

static void kill_daemon(void *backend, int node)
{
	struct proc *p, *w;

	daemons_start(backend);
	p = proc_start(survivor, NULL, node_env(0));
	procs_recv_word(p->fd);
	procs_send_word(p->fd, (uint64_t)node);
	procs_nap(20000);		/* it sleeps in read() */
	proc_kill(g_daemon[node]);
	procs_recv_word(p->fd);
	g_daemon[node] = daemon_start(node, g_daemon[node]);
	procs_send_word(p->fd, 0);
	procs_recv_word(p->fd);
	w = proc_start(send_seven, NULL, node_env(1));
	proc_expect(w, 0);
	proc_expect(p, 0);
	daemons_stop();
}

static void local_daemon_killed(void *backend)
{
	kill_daemon(backend, 0);
}

static void remote_daemon_killed(void *backend)
{
	kill_daemon(backend, 1);
}

/* Opens the mailbox of the stopped daemon. */
static void *send_stopped(void *arg)
{
	int ret = mailbox_send_message(node_number(0), mb_message(3, 0));

	atomic_store((_Atomic int *)arg, ret);
	return NULL;
}

/* Messages pass from a third node, and to it. A thread that waits for the
 * stopped daemon delays no other thread. */
static int beside(int fd, void *arg)
{
	int local = mb_open(MAILBOX_LOCAL, 0);
	_Atomic int ret = 1;
	pthread_t thread;

	(void)arg;
	mb_register(local, 2);
	CHECK(pthread_create(&thread, NULL, send_stopped, &ret) == 0);
	procs_nap(50000);
	for (uint64_t i = 0; i < 100; i++) {
		CHECK(mailbox_send_message(node_number(1),
					   mb_message(1, i)) == 0);
		CHECK(mb_read(local) == mb_message(2, i));
	}
	CHECK(ret == 1);		/* it waits */
	procs_exchange(fd, 0);		/* the daemon works again */
	pthread_join(thread, NULL);
	CHECK_MSG(ret == 0, "%s", strerror(-ret));
	return 0;
}

static int echo(int fd, void *arg)
{
	int local = mb_open(MAILBOX_LOCAL, 0);
	int remote = mb_open(node_number(THIRD), 0);

	(void)arg;
	mb_register(local, 1);
	procs_send_word(fd, 0);
	for (uint64_t i = 0; i < 100; i++) {
		CHECK(mb_read(local) == mb_message(1, i));
		mb_write(remote, mb_message(2, i));
	}
	return 0;
}

/* A stopped daemon is not dead: writers to its node wait, and its peers serve
 * their processes. */
static void daemon_stopped(void *backend)
{
	struct proc *p, *w, *e, *b, *third;

	daemons_start(backend);
	third = daemon_start(THIRD, NULL);
	p = start_reader(&one);
	w = proc_start(writer, NULL, node_env(1));
	procs_recv_word(w->fd);
	proc_stop(g_daemon[0]);
	procs_send_word(w->fd, 1);
	CHECK(!proc_ended(w, 50));
	e = proc_start(echo, NULL, node_env(1));
	procs_recv_word(e->fd);
	b = proc_start(beside, NULL, node_env(THIRD));
	procs_recv_word(b->fd);
	proc_expect(e, 0);
	CHECK(!proc_ended(w, 0));
	proc_signal(g_daemon[0], SIGCONT);
	procs_send_word(b->fd, 0);
	proc_expect(b, 0);
	proc_expect(w, 0);
	proc_expect(p, 0);
	proc_signal(third, SIGTERM);
	proc_expect(third, 0);
	daemons_stop();
}

/* Opens, registers, writes and reads, whatever fails. */
static int restless(int fd, void *arg)
{
	uint64_t seed = (uint64_t)proc_index() + 1;
	int other = *(const int *)arg;

	mb_quiet_log();			/* a line for each attempt to open */
	while (procs_recv(fd, &(uint64_t){ 0 }, 8, 0) < 0) {
		int local = mailbox_open(MAILBOX_LOCAL, O_NONBLOCK);
		int remote = mailbox_open(node_number(other), O_NONBLOCK);
		uint64_t msg = mb_message(procs_random(&seed) % 16, 0);

		if (local >= 0)
			mb_act(local, 'r', procs_random(&seed) % 16, 0);
		for (int i = 0; i < 20; i++) {
			/* the daemon has ended */
			if (remote >= 0 &&
			    write(remote, &msg, sizeof(msg)) < 0 &&
			    errno != EAGAIN)
				break;
			if (local >= 0 && read(local, &msg, sizeof(msg)) < 0)
				procs_nap(100);
		}
		if (local >= 0)
			close(local);
		if (remote >= 0)
			close(remote);
	}
	return 0;
}

/* Daemons are killed at any instruction. In the end messages pass. */
static void storm(void *backend)
{
	long kills = procs_number("UNM_TEST_KILLS", BURN);
	struct proc *p[4], *r, *w;
	uint64_t seed = 1;

	if (kills > BURN)
		kills = BURN;
	daemons_start(backend);
	for (int i = 0; i < 4; i++)
		p[i] = proc_start(restless, &(int){ i % 2 },
				  node_env(1 - i % 2));
	while (kills-- > 0) {
		int node = (int)(procs_random(&seed) % 2);

		procs_nap(procs_random(&seed) % 20000);
		proc_kill(g_daemon[node]);
		g_daemon[node] = daemon_start(node, g_daemon[node]);
	}
	for (int i = 0; i < 4; i++)
		proc_finish(p[i]);
	for (int i = 0; i < 2; i++) {	/* no message of the storm is left */
		proc_kill(g_daemon[i]);
		g_daemon[i] = daemon_start(i, g_daemon[i]);
	}
	r = start_reader(&one);
	w = start_writer(1);
	proc_expect(w, 0);
	proc_expect(r, 0);
	daemons_stop();
}

PROCS_MAIN(BOTH(reader_killed), BOTH(reader_stopped), BOTH(writer_killed),
	   BOTH(forked_reader), BOTH(local_daemon_killed),
	   BOTH(remote_daemon_killed), BOTH(daemon_stopped), BOTH(storm))
