/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mailbox_cuse.c - devices of mailboxes: reads, writes, polls, actions,
 * and writers that write nonsense
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "lib/cuse_fixture.h"
#include "cuse/cuse_file.h"

#define FUZZ	2000			/* writes of random bytes */
#define CLOSERS_MAX 8			/* of mbox_notify.c */
#define IN	((unsigned)(POLLIN | POLLRDNORM))
#define OUT	((unsigned)(POLLOUT | POLLWRNORM))

static uint64_t message(unsigned opcode, uint64_t rest)
{
	return (uint64_t)opcode << 60 | rest;
}

/* ---- Reads --------------------------------------------------------------- */

static void test_read(void **state)
{
	struct open_file file = open_node(OWN);
	uint64_t blocked;

	expect_error(ask_read(&file, 7, BLOCK), EINVAL);
	expect_error(ask_read(&file, 8, O_NONBLOCK), EAGAIN);
	blocked = ask_read(&file, 8, BLOCK);
	assert_false(answered(blocked));
	deliver(&file, message(3, 1));
	deliver(&file, message(4, 2));
	deliver(&file, message(3, 3));
	expect_message(blocked, message(3, 1));
	expect_message(ask_read(&file, 4096, BLOCK), message(4, 2));
	expect_message(ask_read(&file, 8, O_NONBLOCK), message(3, 3));
	expect_error(ask_read(&file, 8, O_NONBLOCK), EAGAIN);
	release(&file);
}

/* The other reader goes on waiting: it does not return 0. */
static void test_two_readers(void **state)
{
	struct open_file file = open_node(OWN);
	uint64_t first = ask_read(&file, 8, BLOCK);
	uint64_t second = ask_read(&file, 8, BLOCK), third;

	assert_false(answered(first));	/* both wait now */
	assert_false(answered(second));
	deliver(&file, message(1, 1));
	expect_message(first, message(1, 1));
	assert_false(answered(second));
	/* a reader that comes later does not overtake it */
	third = ask_read(&file, 8, BLOCK);
	assert_false(answered(third));
	deliver(&file, message(1, 2));
	expect_message(second, message(1, 2));
	assert_false(answered(third));
	deliver(&file, message(1, 3));
	expect_message(third, message(1, 3));
	release(&file);
}

static void test_interrupted_read(void **state)
{
	struct open_file file = open_node(OWN);
	uint64_t first = ask_read(&file, 8, BLOCK);
	uint64_t second = ask_read(&file, 8, BLOCK);

	idle();
	interrupt_request(OWN, first);
	expect_error(first, EINTR);
	assert_false(answered(second));
	deliver(&file, message(1, 1));
	expect_message(second, message(1, 1));
	/* an interrupt of a request that has its answer changes nothing */
	interrupt_request(OWN, second);
	deliver(&file, message(1, 2));
	expect_message(ask_read(&file, 8, BLOCK), message(1, 2));
	release(&file);
}

/* A file keeps CUSE_KEPT messages, and leaves further ones to the daemon. */
static void test_slow_reader(void **state)
{
	struct open_file file = open_node(OWN);
	unsigned n = 0;

	for (;;) {
		uint64_t msg = message(2, n);

		if (send(file.conn, &msg, sizeof(msg), 0) != sizeof(msg))
			break;
		n++;
		idle();
	}
	assert_int_equal(errno, EAGAIN);
	assert_true(n > CUSE_KEPT);
	for (unsigned i = 0; i < n; i++)
		expect_message(ask_read(&file, 8, O_NONBLOCK), message(2, i));
	expect_error(ask_read(&file, 8, O_NONBLOCK), EAGAIN);
	deliver(&file, message(2, n));
	expect_message(ask_read(&file, 8, BLOCK), message(2, n));
	release(&file);
}

/* ---- Writes -------------------------------------------------------------- */

static void expect_sent(const struct open_file *file, uint64_t want)
{
	uint64_t got;

	idle();
	assert_int_equal(recv(file->conn, &got, sizeof(got), 0), sizeof(got));
	assert_int_equal(got, want);
}

static void test_write(void **state)
{
	struct open_file file = open_node(OTHER);
	char bytes[64] = { 0 };

	for (size_t size = 0; size < sizeof(bytes); size++)
		if (size != sizeof(uint64_t))
			expect_error(ask_write(&file, bytes, size, BLOCK),
				     EINVAL);
	assert_true(no_action(&file));
	expect_error(ask_send(&file, message(15, 9), BLOCK), 0);
	expect_sent(&file, message(15, 9));
	/* nothing can be read */
	expect_error(ask_read(&file, 8, BLOCK), 0);
	release(&file);
}

/* Returns the number of the first message that does not fit. */
static unsigned fill(const struct open_file *file)
{
	unsigned n = 0;
	uint64_t unique;

	for (;;) {
		unique = ask_send(file, message(5, n), O_NONBLOCK);
		assert_true(answered(unique));
		if (g_answer[unique].error != 0)
			break;
		n++;
	}
	assert_int_equal(g_answer[unique].error, -EAGAIN);
	assert_true(n > 16);
	return n;
}

static void test_full(void **state)
{
	struct open_file file = open_node(OTHER);
	unsigned n = fill(&file);
	uint64_t first = ask_send(&file, message(5, n), BLOCK);
	uint64_t second = ask_send(&file, message(5, n + 1), BLOCK);
	uint64_t third = ask_send(&file, message(5, n + 2), BLOCK);

	assert_false(answered(first));
	assert_int_equal(poll_file(&file, 1, POLLOUT) & OUT, 0);
	assert_int_equal(g_notified[1], 0);
	interrupt_request(OTHER, second);
	expect_error(second, EINTR);
	for (unsigned i = 0; i < n; i++)
		expect_sent(&file, message(5, i));
	expect_error(first, 0);
	expect_error(third, 0);
	expect_sent(&file, message(5, n));
	expect_sent(&file, message(5, n + 2));	/* not the interrupted one */
	assert_true(no_action(&file));
	assert_true(g_notified[1] > 0);
	assert_int_equal(poll_file(&file, 1, POLLOUT) & OUT, OUT);
	release(&file);
}

/* EAGAIN after a poll that had found free space: the next space is notified. */
static void test_full_after_poll(void **state)
{
	struct open_file file = open_node(OTHER);
	unsigned n;

	assert_int_equal(poll_file(&file, 2, POLLOUT) & OUT, OUT);
	n = fill(&file);
	assert_int_equal(g_notified[2], 0);
	for (unsigned i = 0; i < n; i++)
		expect_sent(&file, message(5, i));
	idle();
	assert_int_equal(g_notified[2], 1);
	release(&file);
}

/* ---- Poll ---------------------------------------------------------------- */

/* Whatever is asked for, POLLRDNORM alone too, is answered. */
static void test_poll(void **state)
{
	static const uint32_t asks[] = { POLLIN, POLLRDNORM, POLLIN | POLLPRI,
					 0 };
	struct open_file file = open_node(OWN);

	for (int i = 0; i < 4; i++) {
		unsigned before = g_notified[i];

		assert_int_equal(poll_file(&file, i, asks[i]), OUT);
		idle();
		assert_int_equal(g_notified[i], before);
		deliver(&file, message(1, 1));
		idle();
		assert_int_equal(g_notified[i], before + 1);
		assert_int_equal(poll_file(&file, -1, asks[i]), IN | OUT);
		expect_message(ask_read(&file, 8, BLOCK), message(1, 1));
		assert_int_equal(poll_file(&file, -1, asks[i]), OUT);
	}
	release(&file);
}

/* A poll that wants no notification does not remove the one that is wanted; a
 * message behind a kept one notifies, too (EPOLLET). */
static void test_poll_again(void **state)
{
	struct open_file file = open_node(OWN);

	poll_file(&file, 1, POLLIN);
	poll_file(&file, -1, POLLIN);
	deliver(&file, message(1, 1));
	idle();
	assert_int_equal(g_notified[1], 1);
	deliver(&file, message(1, 2));	/* one notification for each poll */
	idle();
	assert_int_equal(g_notified[1], 1);
	assert_int_equal(poll_file(&file, 1, POLLIN), IN | OUT);
	deliver(&file, message(1, 3));
	idle();
	assert_int_equal(g_notified[1], 2);
	poll_file(&file, 1, POLLIN);	/* and released with the file */
	release(&file);
}

/* ---- Actions ------------------------------------------------------------- */

static void test_actions(void **state)
{
	static const int results[] = { 0, -EBUSY, -EINVAL, -EMFILE };
	struct open_file file = open_node(OWN), other = open_node(OWN);
	struct mailbox_action_t got;
	uint64_t unique;
	int answer;

	for (unsigned i = 0; i < 4; i++) {
		unique = ask_act(&file, 'r', i, 7);
		answer = get_action(&file, &got);
		assert_int_equal(got.action, 'r');
		assert_int_equal(got.opcode, i);
		assert_false(answered(unique));
		/* the loop does not wait for the daemon */
		expect_error(ask_read(&other, 8, O_NONBLOCK), EAGAIN);
		answer_action(answer, results[i]);
		expect_error(unique, -results[i]);
		if (results[i] == 0)
			assert_int_equal(g_answer[unique].size,
					 sizeof(struct fuse_write_out));
	}
	/* this file has opcode 0 only */
	expect_error(ask_act(&file, 'r', 0, 0), EBUSY);
	expect_error(ask_act(&file, 'u', 1, 0), ENOENT);
	unique = ask_act(&file, 'u', 0, 0);
	answer = get_action(&file, &got);
	assert_int_equal(got.action, 'u');
	answer_action(answer, 0);
	expect_error(unique, 0);
	expect_error(ask_act(&file, 'u', 0, 0), ENOENT);
	release(&file);
	release(&other);
}

/* Actions of one file are done one after another. */
static void test_actions_in_order(void **state)
{
	struct open_file file = open_node(OWN);
	uint64_t first = ask_act(&file, 'r', 1, 0);
	uint64_t second = ask_act(&file, 'r', 1, 0);
	uint64_t third = ask_act(&file, 'u', 1, 0);
	uint64_t fourth = ask_act(&file, 'r', 2, 0);
	struct mailbox_action_t got;
	int answer = get_action(&file, &got);

	assert_true(no_action(&file));
	interrupt_request(OWN, fourth);	/* was not sent: nothing to undo */
	expect_error(fourth, EINTR);
	answer_action(answer, 0);
	expect_error(first, 0);
	expect_error(second, EBUSY);
	answer_action(get_action(&file, &got), 0);
	assert_int_equal(got.action, 'u');
	expect_error(third, 0);
	assert_true(no_action(&file));
	release(&file);
}

/* A registration whose writer was interrupted is undone. */
static void test_interrupted_action(void **state)
{
	struct open_file file = open_node(OWN);
	uint64_t unique = ask_act(&file, 'r', 1, 0);
	struct mailbox_action_t got;
	int answer = get_action(&file, &got);

	interrupt_request(OWN, unique);
	expect_error(unique, EINTR);
	unique = ask_act(&file, 'r', 1, 0);
	answer_action(answer, 0);
	answer = get_action(&file, &got);
	assert_int_equal(got.action, 'u');
	assert_int_equal(got.opcode, 1);
	answer_action(answer, 0);
	answer_action(get_action(&file, &got), 0);
	assert_int_equal(got.action, 'r');
	expect_error(unique, 0);
	/* one that failed needs no undoing */
	unique = ask_act(&file, 'r', 2, 0);
	answer = get_action(&file, &got);
	interrupt_request(OWN, unique);
	answer_action(answer, -EBUSY);
	assert_true(no_action(&file));
	release(&file);
}

/* Without descriptors it cannot be undone: the file ends, and the registration
 * with it. */
static void test_interrupted_action_not_undone(void **state)
{
	struct open_file file = open_node(OWN);
	uint64_t unique = ask_act(&file, 'r', 1, 0);
	struct mailbox_action_t got;
	int answer = get_action(&file, &got);
	struct rlimit before, none;
	char byte;

	interrupt_request(OWN, unique);
	expect_error(unique, EINTR);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	answer_action(answer, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(recv(file.conn, &byte, 1, 0), 0);
	expect_error(ask_read(&file, 8, BLOCK), EIO);
	expect_error(ask_act(&file, 'r', 2, 0), EIO);
	release(&file);
}

/* The kernel names the thread that writes, the signal is the process's. */
static void *act_signal(void *arg)
{
	g_pid = (pid_t)syscall(SYS_gettid);
	act(arg, 's', 6, SIGUSR2);
	return NULL;
}

static void test_signal(void **state)
{
	struct open_file file = open_node(OWN);
	sigset_t set;
	int got;

	expect_error(ask_act(&file, 's', 6, 0), EINVAL);
	expect_error(ask_act(&file, 's', 6, SIGRTMAX + 1), EINVAL);
	g_pid = 0;			/* of a PID namespace not seen here */
	expect_error(ask_act(&file, 's', 6, SIGUSR2), ESRCH);
	pthread_join(unit_thread(act_signal, &file), NULL);
	deliver(&file, message(7, 1));	/* of another opcode */
	idle();
	sigpending(&set);
	assert_false(sigismember(&set, SIGUSR2));
	deliver(&file, message(6, 1));
	idle();
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	assert_int_equal(sigwait(&set, &got), 0);
	g_pid = getpid();
	act(&file, 'u', 6, 0);
	deliver(&file, message(6, 2));
	idle();
	sigpending(&set);
	assert_false(sigismember(&set, SIGUSR2));
	release(&file);
}

static bool pending(int signal)
{
	sigset_t set;

	sigpending(&set);
	return sigismember(&set, signal) == 1;
}

/* A process that has become another user's gets no signal, although the daemon
 * could send it; root's actions send it in any case. */
static void test_signal_of_other_user(void **state)
{
	struct open_file file = open_node(OWN);
	sigset_t set;
	int got;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	g_uid = getuid() + 1;
	act(&file, 's', 6, SIGUSR2);
	deliver(&file, message(6, 1));
	expect_message(ask_read(&file, 8, BLOCK), message(6, 1));
	assert_false(pending(SIGUSR2));
	act(&file, 'u', 6, 0);
	for (int i = 0; i < 2; i++) {
		g_uid = i == 0 ? getuid() : 0;
		act(&file, 's', 6, SIGUSR2);
		deliver(&file, message(6, 2));
		idle();
		assert_true(pending(SIGUSR2));
		assert_int_equal(sigwait(&set, &got), 0);
		act(&file, 'u', 6, 0);
	}
	release(&file);
}

/* Some containers let no process copy a descriptor, not even its own. */
static bool may_copy(void)
{
	int process = (int)syscall(SYS_pidfd_open, getpid(), 0);
	int fd = (int)syscall(SYS_pidfd_getfd, process, g_watch, 0);

	close(process);
	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

static void test_event_fd(void **state)
{
	struct open_file file = open_node(OWN);
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	int blocks = eventfd(0, EFD_CLOEXEC);
	uint64_t unique, n;
	struct mailbox_action_t got;
	int answer;

	if (!may_copy())
		skip();
	expect_error(ask_act(&file, 'e', 5, blocks), EINVAL);
	expect_error(ask_act(&file, 'e', 5, g_watch), EINVAL);
	expect_error(ask_act(&file, 'e', 5, -1), EBADF);
	unique = ask_act(&file, 'e', 5, event);
	answer = get_action(&file, &got);
	assert_int_equal(got.action, 'r');	/* the daemon needs no more */
	deliver(&file, message(5, 0));	/* at once, before the answer */
	answer_action(answer, 0);
	expect_error(unique, 0);
	deliver(&file, message(5, 1));
	deliver(&file, message(6, 2));
	idle();
	assert_int_equal(read(event, &n, sizeof(n)), sizeof(n));
	assert_int_equal(n, 2);
	unique = ask_act(&file, 'e', 7, event);
	answer_action(get_action(&file, &got), -EBUSY);
	expect_error(unique, EBUSY);
	deliver(&file, message(7, 3));	/* the refused one notifies nobody */
	idle();
	assert_int_equal(read(event, &n, sizeof(n)), -1);
	close(event);
	close(blocks);
	release(&file);
}

/* Forbid io_setup(2) from now on. */
static bool forbid_aio(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_setup, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = filter };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* The first test: a process that has signalled an event fd needs no io_setup(2)
 * any more. */
static void test_no_aio(void **state)
{
	const struct mailbox_action_t action = { .action = 'e', .opcode = 5 };
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), status;
	pid_t child = fork();

	if (child == 0) {
		struct mbox_notify notify;

		mbox_notify_init(&notify);
		if (!forbid_aio())
			_exit(77);
		_exit(mbox_notify_set(&notify, &action, getpid(), event) ==
		      -EOPNOTSUPP ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	close(event);
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* An event fd that its process makes blocking, and fills, whenever the daemon
 * polls it; -1: none. */
static int g_spoil = -1;
static unsigned g_spoiled;

/* In the place of the C library's. */
int poll(struct pollfd *fds, nfds_t n, int ms)
{
	struct timespec time = {
		.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L,
	};
	int ret = ppoll(fds, n, ms < 0 ? NULL : &time, NULL);
	uint64_t most = UINT64_MAX - 1;

	if (g_spoil >= 0 && write(g_spoil, &most, sizeof(most)) > 0) {
		fcntl(g_spoil, F_SETFL, 0);
		g_spoiled++;
	}
	return ret;
}

/* A process cannot stop the daemon by its event fd. */
static void test_full_event_fd(void **state)
{
	struct open_file file = open_node(OWN);
	int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	uint64_t n;

	if (!may_copy())
		skip();
	act(&file, 'e', 5, event);
	g_spoil = event;
	deliver(&file, message(5, 0));
	idle();
	g_spoil = -1;
	assert_int_equal(g_spoiled, 1);
	deliver(&file, message(5, 1));
	expect_message(ask_read(&file, 8, O_NONBLOCK), message(5, 0));
	expect_message(ask_read(&file, 8, O_NONBLOCK), message(5, 1));
	assert_int_equal(read(event, &n, sizeof(n)), sizeof(n));
	assert_true(n >= UINT64_MAX - 1);
	/* it counts on, although it blocks now */
	deliver(&file, message(5, 2));
	idle();
	assert_int_equal(read(event, &n, sizeof(n)), sizeof(n));
	assert_int_equal(n, 1);
	close(event);
	release(&file);
}

/* ---- Files whose close(2) waits ------------------------------------------ */

/* A file, of which no descriptor may be closed by the thread of the loop: as a
 * FUSE server that does not answer, it would stop the daemon for all users. */
static struct {
	ino_t file;			/* 0: there is none */
	pthread_t loop;
	unsigned in_loop;		/* calls of close(2) there */
	_Atomic unsigned apart;		/* ... in other threads */
	sem_t answered;			/* those calls go on */
	int exchange;			/* a descriptor that becomes this file
					 * when its link has been read; -1 */
	int by;				/* a descriptor of the file */
} g_slow = { .exchange = -1 };

/* In the place of the C library's. */
int close(int fd)
{
	struct stat st;

	if (g_slow.file != 0 && fstat(fd, &st) == 0 &&
	    st.st_ino == g_slow.file) {
		if (pthread_equal(pthread_self(), g_slow.loop)) {
			g_slow.in_loop++;
		} else {
			g_slow.apart++;
			sem_wait(&g_slow.answered);
		}
	}
	return (int)syscall(SYS_close, fd);
}

/* In the place of the C library's. */
ssize_t readlink(const char *path, char *target, size_t size)
{
	ssize_t len = syscall(SYS_readlinkat, AT_FDCWD, path, target, size);

	if (g_slow.exchange >= 0) {
		dup2(g_slow.by, g_slow.exchange);
		g_slow.exchange = -1;
	}
	return len;
}

static void slow_begin(int pair[2])
{
	struct stat st;

	make_pair(pair);
	assert_int_equal(fstat(pair[0], &st), 0);
	sem_init(&g_slow.answered, 0, 0);
	g_slow.loop = pthread_self();
	g_slow.by = pair[0];
	g_slow.in_loop = 0;
	g_slow.apart = 0;
	g_slow.file = st.st_ino;
}

static void slow_end(int pair[2])
{
	g_slow.file = 0;
	close(pair[0]);
	close(pair[1]);
}

/* The descriptors of the file; a close(2) that waits leaves one open. */
static int slow_count(void)
{
	struct stat st;
	int n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fstat(fd, &st) == 0 && st.st_ino == g_slow.file;
	return n;
}

static void test_slow_file(void **state)
{
	struct open_file file = open_node(OWN);
	int pair[2];

	if (!may_copy())
		skip();
	slow_begin(pair);
	expect_error(ask_act(&file, 'e', 5, pair[0]), EINVAL);
	assert_int_equal(g_slow.in_loop, 0);
	assert_int_equal(slow_count(), 1);	/* it has not been copied */
	slow_end(pair);
	release(&file);
}

/* The process has an event fd, and exchanges it when the daemon has seen it,
 * again and again. Threads wait, but only so many, and the loop goes on. */
static void test_exchanged_slow_file(void **state)
{
	struct open_file file = open_node(OWN);
	int good = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), pair[2];
	int event = dup(good);
	struct mailbox_action_t got;
	uint64_t unique;

	if (!may_copy())
		skip();
	slow_begin(pair);
	for (unsigned i = 1; i <= CLOSERS_MAX; i++) {
		dup2(good, event);
		g_slow.exchange = event;
		expect_error(ask_act(&file, 'e', 5, event), EINVAL);
		while (g_slow.in_loop == 0 && g_slow.apart != i)
			sched_yield();
	}
	assert_int_equal(g_slow.in_loop, 0);
	act(&file, 'r', 5, 0);
	deliver(&file, message(5, 1));
	expect_message(ask_read(&file, 8, O_NONBLOCK), message(5, 1));
	expect_error(ask_act(&file, 'e', 6, good), EAGAIN);
	sem_post(&g_slow.answered);
	do {				/* until one thread has ended */
		usleep(1000);
		unique = ask_act(&file, 'e', 6, good);
	} while (answered(unique) && g_answer[unique].error == -EAGAIN);
	answer_action(get_action(&file, &got), 0);
	expect_error(unique, 0);
	for (unsigned i = 1; i < CLOSERS_MAX; i++)
		sem_post(&g_slow.answered);
	slow_end(pair);
	close(event);
	close(good);
	release(&file);
}

/* ---- Nonsense ------------------------------------------------------------ */

/* Random bytes of random sizes to both kinds of mailbox: the daemon gets well
 * formed actions and messages only, each request has an answer, and the file
 * works afterwards (the fixture checks the answers). */
static void test_random_writes(void **state)
{
	struct open_file local = open_node(OWN), remote = open_node(OTHER);
	uint64_t rng = 17, unique, got;
	struct mailbox_action_t action;
	unsigned sent = 0;

	for (int i = 0; i < FUZZ; i++) {
		struct open_file *file = unit_below(&rng, 2) ? &local : &remote;
		size_t size = unit_below(&rng, 4) ? 12 - 4 * (file != &local) :
			      unit_below(&rng, 65);
		char bytes[64];

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)unit_random(&rng);
		if (unit_below(&rng, 2))
			bytes[0] = "rseu"[unit_below(&rng, 4)];
		if (unit_below(&rng, 2))
			memset(bytes + 4, (int)unit_below(&rng, 20), 1);
		if (unit_below(&rng, 2))
			memset(bytes + 5, 0, 7);
		unique = ask_write(file, bytes, size, BLOCK);
		if (!no_action(&local)) {
			answer_action(get_action(&local, &action), 0);
			assert_true(action.action == 'r' ||
				    action.action == 'u');
			assert_true(action.opcode < MAILBOX_OPCODES);
			sent++;
		}
		if (recv(remote.conn, &got, sizeof(got), MSG_TRUNC) > 0)
			assert_memory_equal(&got, bytes, size);
		assert_true(answered(unique));
	}
	assert_true(sent > 16);
	deliver(&local, message(1, 1));
	expect_message(ask_read(&local, 8, O_NONBLOCK), message(1, 1));
	expect_error(ask_send(&remote, message(1, 2), BLOCK), 0);
	expect_sent(&remote, message(1, 2));
	release(&local);
	release(&remote);
}

#define T(f)	cmocka_unit_test_setup_teardown(test_##f, setup, teardown)

int main(int argc, char *argv[])
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_aio),
		T(read), T(two_readers), T(interrupted_read), T(slow_reader),
		T(write), T(full), T(full_after_poll), T(poll),
		T(poll_again), T(actions), T(actions_in_order),
		T(interrupted_action), T(interrupted_action_not_undone),
		T(signal), T(signal_of_other_user), T(event_fd),
		T(full_event_fd), T(slow_file), T(exchanged_slow_file),
		T(random_writes),
	};
	sigset_t set;

	/* before any thread begins: the signal of a process goes to a thread
	 * that does not block it, and would end this process */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	return unit_run(tests);
}
