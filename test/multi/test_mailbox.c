/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mailbox.c - mailboxes between processes of two nodes: order, full
 * mailboxes, notification, refused writes, callbacks, on emu and sim
 *
 * test_mailbox_kill.c has processes that are killed and stopped.
 */
#include "lib/mailbox_procs.h"

#define SENDERS	3
#define MANY	2000			/* messages of a sender */
#define FULL_MS	200			/* for which a mailbox stays full */

/* ---- Order, and blocking calls ------------------------------------------- */

static int send_many(int fd, void *arg)
{
	unsigned opcode = *(const unsigned *)arg;
	uint64_t self = (uint64_t)proc_index() << 32;
	int remote = mb_open(node_number(0), 0);

	(void)fd;
	for (uint64_t i = 0; i < MANY; i++)
		mb_write(remote, mb_message(opcode, self | i));
	return 0;			/* what was written still arrives */
}

static int receive_many(int fd, void *arg)
{
	static uint64_t next[PROCS_MAX];
	int local = mb_open(MAILBOX_LOCAL, 0);

	(void)arg;
	mb_register(local, 5);
	mb_register(local, 15);
	procs_send_word(fd, 0);
	for (int i = 0; i < SENDERS * MANY; i++) {
		uint64_t msg = mb_read(local);
		unsigned from = (unsigned)(msg >> 32) & 0xff;

		CHECK(MAILBOX_OPCODE(msg) == (from % 2 == 0 ? 5 : 15));
		CHECK_MSG((msg & UINT32_MAX) == next[from],
			  "sender %u: %llu, not %llu", from,
			  (unsigned long long)(msg & UINT32_MAX),
			  (unsigned long long)next[from]);
		next[from]++;
	}
	mb_quiet(local, 50);
	return 0;
}

/* Every message arrives once, those of a sender in their order, although the
 * senders write faster than the reader reads. */
static void order(void *backend)
{
	struct proc *reader, *sender[SENDERS];

	/* no timer hides a wake-up that is lost */
	setenv("FI_UNIMEM_SLEEP_MS", "0", 1);
	daemons_start(backend);
	reader = proc_start(receive_many, NULL, node_env(0));
	procs_recv_word(reader->fd);
	for (unsigned i = 0; i < SENDERS; i++)
		/* its index is 3 + i, after the daemons and the reader */
		sender[i] = proc_start(send_many,
				       &(unsigned){ i % 2 == 0 ? 15 : 5 },
				       node_env(1));
	for (int i = 0; i < SENDERS; i++)
		proc_expect(sender[i], 0);
	proc_expect(reader, 0);
	daemons_stop();
}

static int alternate(int fd, void *arg)
{
	int remote = mb_open(node_number(0), 0);

	(void)fd;
	(void)arg;
	for (uint64_t i = 0; i < MANY; i++)
		mb_write(remote, mb_message(i % 2 == 0 ? 5 : 1, i));
	return 0;
}

static int read_both(int fd, void *arg)
{
	int local = mb_open(MAILBOX_LOCAL, 0);

	(void)arg;
	mb_register(local, 5);
	mb_register(local, 1);
	procs_send_word(fd, 0);
	procs_nap(FULL_MS * 1000);	/* the socket fills meanwhile */
	for (uint64_t i = 0; i < MANY; i++)
		CHECK(mb_read(local) == mb_message(i % 2 == 0 ? 5 : 1, i));
	return 0;
}

/* Messages of two opcodes do not overtake each other. */
static void two_opcodes(void *backend)
{
	struct proc *reader, *writer;

	daemons_start(backend);
	reader = proc_start(read_both, NULL, node_env(0));
	procs_recv_word(reader->fd);
	writer = proc_start(alternate, NULL, node_env(1));
	proc_expect(writer, 0);
	proc_expect(reader, 0);
	daemons_stop();
}

/* ---- A full mailbox ------------------------------------------------------ */

static int late_reader(int fd, void *arg)
{
	int other = mb_open(MAILBOX_LOCAL, 0);
	int local = mb_open(MAILBOX_LOCAL, O_NONBLOCK);
	uint64_t msg, n;

	(void)arg;
	mb_register(other, 2);
	procs_exchange(fd, 0);		/* opcode 1 is full */
	for (uint64_t i = 0; i < MANY; i++)
		CHECK(mb_read(other) == mb_message(2, i));
	n = procs_exchange(fd, 0);
	CHECK(read(local, &msg, sizeof(msg)) == -1 && errno == EAGAIN);
	mb_register(local, 1);
	CHECK(fcntl(local, F_SETFL, 0) == 0);
	for (uint64_t i = 0; i < n; i++)
		CHECK(mb_read(local) == mb_message(1, i));
	mb_quiet(local, 50);
	procs_exchange(fd, 0);
	CHECK(mb_read(local) == mb_message(1, n));
	return 0;
}

static int fast_writer(int fd, void *arg)
{
	int full = mb_open(node_number(0), O_NONBLOCK);
	int other = mb_open(node_number(0), 0);
	struct pollfd pfd = { .fd = full, .events = POLLOUT };
	uint64_t n = mb_fill(full, 1, 0, FULL_MS);

	(void)arg;
	procs_exchange(fd, n);
	for (uint64_t i = 0; i < MANY; i++)
		mb_write(other, mb_message(2, i));
	procs_exchange(fd, 0);
	CHECK(poll(&pfd, 1, -1) == 1 && (pfd.revents & POLLOUT));
	mb_write(full, mb_message(1, n));
	procs_exchange(fd, 0);		/* the reader reads it before we end */
	return 0;
}

/* Nobody reads opcode 1, so writes of it fail with EAGAIN, and nothing is lost.
 * Messages of another descriptor and opcode are not delayed. */
static void full(void *backend)
{
	struct proc *reader, *writer;
	uint64_t n;

	daemons_start(backend);
	reader = proc_start(late_reader, NULL, node_env(0));
	procs_recv_word(reader->fd);
	writer = proc_start(fast_writer, NULL, node_env(1));
	n = procs_recv_word(writer->fd);
	CHECK_MSG(n > 8 && n < 5000, "%llu messages", (unsigned long long)n);
	procs_send_word(reader->fd, 0);
	procs_exchange(writer->fd, 0);
	procs_recv_word(reader->fd);	/* has all of opcode 2 */
	procs_exchange(reader->fd, n);	/* has all of opcode 1 */
	procs_exchange(writer->fd, 0);
	procs_send_word(reader->fd, 0);
	proc_expect(reader, 0);
	procs_send_word(writer->fd, 0);
	proc_expect(writer, 0);
	daemons_stop();
}

/* ---- Signals and event fds ----------------------------------------------- */

static volatile sig_atomic_t g_signals;

static void count_signal(int sig)
{
	(void)sig;
	g_signals++;
}

static void expect_events(int efd, int local, unsigned opcode, uint64_t n)
{
	struct pollfd pfd = { .fd = efd, .events = POLLIN };
	uint64_t sum = 0, count;

	while (sum < n) {
		CHECK(poll(&pfd, 1, -1) == 1);
		CHECK(read(efd, &count, sizeof(count)) == sizeof(count));
		for (uint64_t i = 0; i < count; i++)
			CHECK(mb_read(local) == mb_message(opcode, sum + i));
		sum += count;
	}
	CHECK(sum == n);
}

static int notified(int fd, void *arg)
{
	struct sigaction act = { .sa_handler = count_signal };
	int local = mb_open(MAILBOX_LOCAL, 0);
	int events = mb_open(MAILBOX_LOCAL, 0);
	int efd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	int plain = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct mailbox_action_t e = {
		.action = 'e', .opcode = 9, .val = plain,
	};

	(void)arg;
	CHECK(sigaction(SIGRTMIN + 3, &act, NULL) == 0);
	CHECK(mb_act(local, 's', 7, SIGRTMIN + 3) == 0);
	CHECK(mb_act(events, 'e', 8, efd) == 0);
	/* the daemon takes the event fd out of this process by its number */
	CHECK(write(events, &e, sizeof(e)) == sizeof(e));
	procs_send_word(fd, 0);
	for (uint64_t i = 0; i < 20; i++) {
		uint64_t msg;
		ssize_t n;

		do {
			n = read(local, &msg, sizeof(msg));
		} while (n < 0 && errno == EINTR);
		CHECK(n == sizeof(msg) && msg == mb_message(7, i));
	}
	while (g_signals < 20)		/* each message sends one, which */
		procs_nap(1000);	/* the kernel queues */
	expect_events(efd, events, 8, 20);
	expect_events(plain, events, 9, 20);
	procs_nap(20000);
	CHECK(g_signals == 20);
	return 0;
}

static int notify(int fd, void *arg)
{
	int remote = mb_open(node_number(0), 0);

	(void)fd;
	(void)arg;
	for (unsigned opcode = 7; opcode <= 9; opcode++)
		for (uint64_t i = 0; i < 20; i++)
			mb_write(remote, mb_message(opcode, i));
	return 0;
}

static void notification(void *backend)
{
	struct proc *reader, *writer;

	daemons_start(backend);
	reader = proc_start(notified, NULL, node_env(0));
	procs_recv_word(reader->fd);
	writer = proc_start(notify, NULL, node_env(1));
	proc_expect(writer, 0);
	proc_expect(reader, 0);
	daemons_stop();
}

/* ---- What is refused ----------------------------------------------------- */

/* A plain write that is refused ends the descriptor, visibly: ECONNRESET, and
 * no signal. */
static void refused(int node, const void *buf, size_t len)
{
	int fd = mb_open(node, 0);
	uint64_t msg = 0;
	struct pollfd pfd = { .fd = fd, .events = 0 };

	CHECK(write(fd, buf, len) == (ssize_t)len);
	CHECK(poll(&pfd, 1, -1) == 1);	/* POLLERR or POLLHUP */
	if (node == MAILBOX_LOCAL)
		CHECK(read(fd, &msg, sizeof(msg)) == -1);
	else
		CHECK(write(fd, &msg, sizeof(msg)) == -1);
	CHECK_MSG(errno == ECONNRESET, "%s", strerror(errno));
	close(fd);
}

static void refused_calls(int held)
{
	int fd = mb_open(MAILBOX_LOCAL, 0);
	int file = open("/dev/null", O_RDWR | O_NONBLOCK);
	int remote = mb_open(node_number(1), 0), blocks = eventfd(0, 0);
	uint64_t msg;

	CHECK(mb_act(fd, 'e', 1, blocks) == -EINVAL);
	close(blocks);
	CHECK(mailbox_open(-2, 0) == -EINVAL);
	CHECK(mailbox_open(mailbox_nodes(), 0) == -EINVAL);
	CHECK(mailbox_open(0, O_APPEND) == -EINVAL);
	CHECK(mb_act(fd, 'r', 16, 0) == -EINVAL);
	CHECK(mb_act(fd, 'x', 1, 0) == -EINVAL);
	CHECK(mb_act(fd, 's', 1, 0) == -EINVAL);
	CHECK(mb_act(fd, 's', 1, SIGRTMAX + 1) == -EINVAL);
	CHECK(mb_act(fd, 'e', 1, file) == -EINVAL);
	CHECK(mb_act(fd, 'e', 1, -1) == -EBADF);
	CHECK(mb_act(fd, 'u', 1, 0) == -ENOENT);
	CHECK(mb_act(fd, 'r', 3, 0) == -EBUSY);
	CHECK(mb_act(fd, 'u', 3, 0) == -ENOENT);	/* of another one */
	CHECK(mb_act(file, 'r', 1, 0) == -EINVAL);
	CHECK(mb_act(remote, 'r', 1, 0) == -EINVAL);
	/* nothing can be read from a remote mailbox */
	CHECK(read(remote, &msg, sizeof(msg)) == 0);
	mb_register(fd, 1);		/* the descriptor is as it was */
	CHECK(mb_act(held, 'u', 3, 0) == 0);
	mb_register(fd, 3);
	CHECK(mb_act(fd, 'u', 1, 0) == 0 && mb_act(fd, 'u', 3, 0) == 0);
	mb_register(held, 3);
	close(fd);
	close(file);
	close(remote);
}

static int misuse(int fd, void *arg)
{
	struct mailbox_action_t act = { .action = 'r', .opcode = 3 };
	int held = mb_open(MAILBOX_LOCAL, 0);
	uint64_t bytes[64] = { 0 };

	(void)arg;
	(void)fd;
	CHECK(mailbox_node() == node_number(0));
	mb_register(held, 3);
	refused_calls(held);
	refused(MAILBOX_LOCAL, &act, sizeof(act));	/* taken */
	act.opcode = 16;
	refused(MAILBOX_LOCAL, &act, sizeof(act));
	act = (struct mailbox_action_t){ .action = 'u', .opcode = 5 };
	refused(MAILBOX_LOCAL, &act, sizeof(act));
	act = (struct mailbox_action_t){ .action = 'e', .val = 1 << 20 };
	refused(MAILBOX_LOCAL, &act, sizeof(act));	/* no descriptor */
	act = (struct mailbox_action_t){ .action = 'e', .val = held };
	refused(MAILBOX_LOCAL, &act, sizeof(act));	/* no event fd */
	refused(MAILBOX_LOCAL, bytes, 8);
	refused(MAILBOX_LOCAL, bytes, 1);
	refused(node_number(1), bytes, 4);
	refused(node_number(1), bytes, 16);
	refused(node_number(1), bytes, sizeof(bytes));
	refused(node_number(1), &act, sizeof(act));
	mb_quiet(held, 50);		/* it was not affected */
	CHECK(mb_act(held, 'u', 3, 0) == 0);
	return 0;
}

static void wrong(void *backend)
{
	struct proc *p;

	daemons_start(backend);
	p = proc_start(misuse, NULL, node_env(0));
	proc_expect(p, 0);
	daemons_stop();
}

/* ---- Callbacks ----------------------------------------------------------- */

static _Atomic uint64_t g_called;
static _Atomic uint64_t g_wrong;

static int g_pipe[2];
static _Atomic pid_t g_child;

/* In the child: read would block on any free descriptor that it tries. */
static void fork_here(void)
{
	pid_t pid = fork();

	for (int i = 0; pid == 0 && i < 8; i++)
		(void)dup(g_pipe[0]);
	if (pid != 0)
		atomic_store(&g_child, pid);
}

static int on_message(long long unsigned msg)
{
	uint64_t n = atomic_fetch_add(&g_called, 1);

	if (n == MANY / 2)
		fork_here();

	if (msg != mb_message(11, n))
		atomic_fetch_add(&g_wrong, 1);
	if (n == MANY - 1)		/* a callback may unregister */
		mailbox_unregister_callback(11);
	return 0;
}

static int called(int fd, void *arg)
{
	char name[] = "test";
	int local = mb_open(MAILBOX_LOCAL, 0), status;
	pid_t pid;

	(void)arg;
	CHECK(pipe(g_pipe) == 0);
	CHECK(mailbox_register_callback(16, on_message, name) == -EINVAL);
	CHECK(mailbox_register_callback(1, NULL, name) == -EINVAL);
	CHECK(mailbox_unregister_callback(11) == -EINVAL);
	mb_register(local, 12);
	CHECK(procs_threads(getpid()) == 1);
	CHECK(mailbox_register_callback(12, on_message, name) == -EBUSY);
	CHECK(procs_threads(getpid()) == 1);	/* not for a refused one */
	CHECK(mailbox_register_callback(11, on_message, name) == 0);
	CHECK(mailbox_register_callback(11, on_message, name) == -EBUSY);
	CHECK(mb_act(local, 'r', 11, 0) == -EBUSY);
	CHECK(procs_threads(getpid()) == 2);
	pid = fork();			/* the child has no registrations */
	if (pid == 0)
		_exit(mailbox_unregister_callback(11) != -EINVAL ||
		      mailbox_register_callback(11, on_message, name) !=
		      -EBUSY ||
		      mailbox_register_callback(13, on_message, name) != 0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	procs_send_word(fd, 0);
	while (atomic_load(&g_called) < MANY)
		procs_nap(1000);
	while (mb_act(local, 'r', 11, 0) == -EBUSY)
		procs_nap(1000);
	while (procs_threads(getpid()) != 1)
		procs_nap(1000);
	CHECK(atomic_load(&g_wrong) == 0);
	/* the child ends with the callback that forked it */
	CHECK(waitpid(g_child, &status, 0) == g_child && status == 0);
	return 0;
}

static int caller(int fd, void *arg)
{
	int ret;

	(void)fd;
	(void)arg;
	CHECK(mailbox_send_message(node_number(1), 0) == -EINVAL);
	CHECK(mailbox_send_message(-1, 0) == -EINVAL);
	CHECK(mailbox_send_message(1 << 30, 0) == -EINVAL);
	for (uint64_t i = 0; i < MANY; i++)
		while ((ret = mailbox_send_message(node_number(0),
						   mb_message(11, i))) != 0)
			CHECK_MSG(ret == -EAGAIN, "%s", strerror(-ret));
	return 0;
}

static void callbacks(void *backend)
{
	struct proc *reader, *writer;

	daemons_start(backend);
	reader = proc_start(called, NULL, node_env(0));
	procs_recv_word(reader->fd);
	writer = proc_start(caller, NULL, node_env(1));
	proc_expect(writer, 0);
	proc_expect(reader, 0);
	daemons_stop();
}

PROCS_MAIN(BOTH(order), BOTH(two_opcodes), BOTH(full), BOTH(notification),
	   BOTH(wrong), BOTH(callbacks))
