/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_callback.c - the calls that the driver offers to kernel modules:
 * callbacks for opcodes, and messages to a node by its number.
 *
 * One descriptor of the local mailbox gets the messages of all callbacks of the
 * process, and one thread reads it, as long as there is a callback. One
 * descriptor for each node that was sent to stays open until the process ends.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/mbox_log.h"
#include "common/mbox_wire.h"

#define OPENS	8			/* attempts to open without a fork */

/* The callbacks. lock is recursive, and held while a callback runs, so a
 * callback may register and unregister. */
static struct {
	pthread_mutex_t lock;
	mailbox_callback cb[MAILBOX_OPCODES];	/* NULL: none */
	unsigned count;			/* callbacks that are not NULL */
	int fd;				/* -1: no registration. The thread
					 * closes it */
} g_calls = {
	.lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP, .fd = -1,
};

/* The descriptors of remote mailboxes, by node. lock is not held while one is
 * opened. It is held during a fork, and calls_set() stores a new
 * g_calls.fd under it; -1 is stored without it. */
static struct {
	pthread_mutex_t lock;
	unsigned forks;			/* forks of this process */
	int *fds;			/* NULL until one was opened; -1: not
					 * open */
	int count;			/* nodes */
} g_sends = { .lock = PTHREAD_MUTEX_INITIALIZER };

static pthread_once_t g_once = PTHREAD_ONCE_INIT;

/* A child finds the descriptors complete. A callback may run for any time, so
 * g_calls.lock is not taken. */
static void before_fork(void)
{
	pthread_mutex_lock(&g_sends.lock);
}

static void in_parent(void)
{
	g_sends.forks++;
	pthread_mutex_unlock(&g_sends.lock);
}

/* A forked child has no thread, and must not keep registrations alive. The
 * locks may be held by threads that the child does not have. */
static void in_child(void)
{
	static const pthread_mutex_t recursive =
		PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
	static const pthread_mutex_t plain = PTHREAD_MUTEX_INITIALIZER;

	g_calls.lock = recursive;
	g_sends.lock = plain;
	memset(g_calls.cb, 0, sizeof(g_calls.cb));
	g_calls.count = 0;
	if (g_calls.fd >= 0)
		close(g_calls.fd);
	g_calls.fd = -1;
	for (int i = 0; i < g_sends.count; i++) {
		if (g_sends.fds[i] >= 0)
			close(g_sends.fds[i]);
		g_sends.fds[i] = -1;
	}
}

static void watch_forks(void)
{
	(void)pthread_atfork(before_fork, in_parent, in_child);
}

/* ---- Callbacks ----------------------------------------------------------- */

/* Call the callback, unless the thread is to end or it was unregistered. */
static void call(int fd, uint64_t message)
{
	mailbox_callback cb;

	pthread_mutex_lock(&g_calls.lock);
	cb = g_calls.cb[MAILBOX_OPCODE(message)];
	if (g_calls.fd == fd && cb != NULL)
		(void)cb(message);
	pthread_mutex_unlock(&g_calls.lock);
}

static void *run(void *arg)
{
	int fd = (int)(intptr_t)arg;
	pid_t pid = getpid();
	uint64_t message;
	ssize_t n;

	while ((n = read(fd, &message, sizeof(message))) == sizeof(message) ||
	       (n < 0 && errno == EINTR)) {
		if (n > 0)
			call(fd, message);
		/* a child that the callback forked: in_child() closed fd */
		if (getpid() != pid)
			return NULL;
	}
	pthread_mutex_lock(&g_calls.lock);
	if (g_calls.fd == fd) {		/* not calls_end() */
		mbox_log("the mailbox daemon has ended: %u callbacks are no "
			 "longer registered", g_calls.count);
		memset(g_calls.cb, 0, sizeof(g_calls.cb));
		g_calls.count = 0;
		g_calls.fd = -1;
	}
	close(fd);
	pthread_mutex_unlock(&g_calls.lock);
	return NULL;
}

/* Start a detached thread with all signals blocked. 0, -errno. */
static int start_thread(int fd)
{
	sigset_t all, old;
	pthread_t thread;
	int ret;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	ret = pthread_create(&thread, NULL, run, (void *)(intptr_t)fd);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (ret == 0)
		pthread_detach(thread);
	return -ret;
}

/* Let the thread end: its read() returns 0. */
static void calls_end(void)
{
	shutdown(g_calls.fd, SHUT_RDWR);
	g_calls.fd = -1;
}

static int act(int fd, char action, unsigned opcode)
{
	const struct mailbox_action_t act = {
		.action = action, .opcode = opcode,
	};

	return mailbox_action(fd, &act);
}

static unsigned forks(void)
{
	unsigned n;

	pthread_mutex_lock(&g_sends.lock);
	n = g_sends.forks;
	pthread_mutex_unlock(&g_sends.lock);
	return n;
}

/* Make a new descriptor known to in_child(). False: the process has forked more
 * than n times, and the last child may have a copy. */
static bool calls_set(int fd, unsigned n)
{
	bool same;

	pthread_mutex_lock(&g_sends.lock);
	same = n == g_sends.forks;
	if (same)
		g_calls.fd = fd;
	pthread_mutex_unlock(&g_sends.lock);
	return same;
}

/* End a connection, whoever has copies of its descriptor. */
static void hang_up(int fd)
{
	shutdown(fd, SHUT_RDWR);
	close(fd);
}

/* Open the local mailbox for callbacks. A child that is forked meanwhile may
 * have a copy of a descriptor that in_child() does not know, and would keep
 * registrations alive: then the descriptor is not used. If the program forks
 * all the time, forks and sends wait for the last attempt. Returns g_calls.fd,
 * or a negative errno. */
static int calls_open(void)
{
	unsigned n;
	int fd;

	for (int i = 1; i < OPENS; i++) {
		n = forks();
		fd = mailbox_open(MAILBOX_LOCAL, O_CLOEXEC);
		if (fd < 0 || calls_set(fd, n))
			return fd;
		hang_up(fd);
	}
	pthread_mutex_lock(&g_sends.lock);
	fd = mailbox_open(MAILBOX_LOCAL, O_CLOEXEC);
	if (fd >= 0)
		g_calls.fd = fd;
	pthread_mutex_unlock(&g_sends.lock);
	return fd;
}

/* Register an opcode with a new descriptor, and start the thread that reads
 * it. */
static int calls_begin(unsigned opcode)
{
	int fd = calls_open();
	int ret;

	if (fd < 0)
		return fd;
	ret = act(fd, 'r', opcode);
	if (ret == 0)
		ret = start_thread(fd);
	if (ret != 0) {
		g_calls.fd = -1;
		hang_up(fd);
	}
	return ret;
}

int mailbox_register_callback(unsigned opcode, mailbox_callback cb,
			      char *description)
{
	int ret;

	(void)description;
	if (opcode >= MAILBOX_OPCODES || cb == NULL)
		return -EINVAL;
	pthread_once(&g_once, watch_forks);
	pthread_mutex_lock(&g_calls.lock);
	if (g_calls.fd < 0)
		ret = calls_begin(opcode);
	else
		ret = act(g_calls.fd, 'r', opcode);
	if (ret == 0) {
		g_calls.cb[opcode] = cb;
		g_calls.count++;
	}
	pthread_mutex_unlock(&g_calls.lock);
	return ret;
}

int mailbox_unregister_callback(unsigned opcode)
{
	int ret = -EINVAL;

	if (opcode >= MAILBOX_OPCODES)
		return ret;
	pthread_mutex_lock(&g_calls.lock);
	if (g_calls.cb[opcode] != NULL) {
		g_calls.cb[opcode] = NULL;
		g_calls.count--;
		/* an error: the daemon has ended, and nothing is registered */
		(void)act(g_calls.fd, 'u', opcode);
		if (g_calls.count == 0)
			calls_end();
		ret = 0;
	}
	pthread_mutex_unlock(&g_calls.lock);
	return ret;
}

/* ---- Messages ------------------------------------------------------------ */

/* Make g_sends.fds. 0, -ENOMEM. */
static int make_fds(int nodes)
{
	int *fds = calloc((size_t)nodes, sizeof(fds[0]));

	if (fds == NULL)
		return -ENOMEM;
	for (int i = 0; i < nodes; i++)
		fds[i] = -1;
	g_sends.count = nodes;
	g_sends.fds = fds;
	return 0;
}

/* Open a remote mailbox, unless another thread is faster. 0 or a negative
 * errno. */
static int remote_open(int node)
{
	int nodes = mailbox_nodes(), fd, ret = 0;

	if (nodes < 0)
		return nodes;
	if (node < 0 || node >= nodes || node == mailbox_node())
		return -EINVAL;
	fd = mailbox_open(node, O_CLOEXEC);
	if (fd < 0)
		return fd;
	pthread_mutex_lock(&g_sends.lock);
	if (g_sends.fds == NULL)
		ret = make_fds(nodes);
	if (ret == 0 && g_sends.fds[node] < 0) {
		g_sends.fds[node] = fd;
		fd = -1;
	}
	pthread_mutex_unlock(&g_sends.lock);
	if (fd >= 0)
		close(fd);
	return ret;
}

/* Send to a mailbox that is open. -ENOTCONN: it is not. */
static int send_open(int node, uint64_t message)
{
	int *fd, ret = 0;

	pthread_mutex_lock(&g_sends.lock);
	fd = node >= 0 && node < g_sends.count ? &g_sends.fds[node] : NULL;
	if (fd == NULL || *fd < 0) {
		ret = -ENOTCONN;
	} else if (send(*fd, &message, sizeof(message),
			MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(message)) {
		ret = 0;
	} else if (errno == EAGAIN || errno == EINTR || errno == ENOBUFS) {
		ret = -EAGAIN;
	} else {
		close(*fd);
		*fd = -1;
		ret = -ECONNRESET;
	}
	pthread_mutex_unlock(&g_sends.lock);
	return ret;
}

int mailbox_send_message(int rnode, long long unsigned val)
{
	int ret;

	pthread_once(&g_once, watch_forks);
	/* another thread may find that it was closed before this one sends */
	while ((ret = send_open(rnode, val)) == -ENOTCONN) {
		ret = remote_open(rnode);
		if (ret != 0)
			return ret;
	}
	return ret;
}
