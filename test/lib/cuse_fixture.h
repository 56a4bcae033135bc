/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_fixture.h - devices of unimem-mailbox-cuse between a kernel and a
 * mailbox daemon that the test plays; extends unit.h
 *
 * Both are sockets: the test sends FUSE requests as the kernel does, and holds
 * the daemon's ends of connections. Nothing waits for time: idle() handles all
 * that is there, answer_of() handles events until the answer has come.
 */
#ifndef CUSE_FIXTURE_H
#define CUSE_FIXTURE_H

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "lib/unit.h"
#include "common/mbox_wire.h"
#include "cuse/cuse_device.h"

#define OWN		0		/* nodes */
#define OTHER		1
#define NODES		2
#define ANSWERS		4096		/* requests of a test */
#define DATA		256		/* bytes of an answer that are kept */
#define BLOCK		0		/* flags of requests */
#define HANDLES		8

/* The answer of the devices to a request. */
struct answer {
	bool needed;			/* not of an interrupt */
	bool there;
	int error;			/* 0 or a negative errno */
	size_t size;			/* bytes behind the header */
	char data[DATA];
};

/* The kernel. */
static int g_kernel[NODES];		/* of /dev/cuse */
static struct answer g_answer[ANSWERS];	/* by number of the request */
static uint64_t g_unique;		/* of the last request */
static pid_t g_pid;			/* writes the requests */
static uid_t g_uid;			/* ... of this user */
static unsigned g_notified[HANDLES];	/* notifications, by poll handle */

/* The daemon. */
static pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
static int g_conn;			/* its end of the last connection */
static int g_watch;			/* ... of the watch */
static int g_refuse;			/* opens fail with it; 0: none */
static int g_gate[2];			/* opens read a byte of it; -1: they do
					 * not */
static unsigned g_opens;		/* that have begun */

static struct cuse_devices g_all;
static unsigned g_lines;		/* log lines */
static char g_line[256];		/* the last one */

static inline void fixture_log(const char *line)
{
	g_lines++;
	snprintf(g_line, sizeof(g_line), "%s", line);
}

static inline void make_pair(int fds[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC |
				    SOCK_NONBLOCK, 0, fds), 0);
}

/* In the place of mailbox_open(). In any thread. */
static inline int fixture_open(int node)
{
	int pair[2];
	char byte;

	(void)node;
	pthread_mutex_lock(&g_lock);
	g_opens++;
	pthread_mutex_unlock(&g_lock);
	if (g_gate[0] >= 0 && read(g_gate[0], &byte, 1) < 0)
		return -errno;
	if (g_refuse != 0)
		return g_refuse;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       0, pair) != 0)
		return -errno;
	pthread_mutex_lock(&g_lock);
	g_conn = pair[1];
	pthread_mutex_unlock(&g_lock);
	return pair[0];
}

/* ---- Kernel -------------------------------------------------------------- */

static inline void take_answer(const char *bytes, size_t n)
{
	struct fuse_out_header head;
	struct answer *a;

	assert_true(n >= sizeof(head));
	memcpy(&head, bytes, sizeof(head));
	assert_int_equal(head.len, n);
	if (head.unique == 0) {
		struct fuse_notify_poll_wakeup_out poll_out;

		assert_int_equal(head.error, FUSE_NOTIFY_POLL);
		memcpy(&poll_out, bytes + sizeof(head), sizeof(poll_out));
		assert_true(poll_out.kh < HANDLES);
		g_notified[poll_out.kh]++;
		return;
	}
	assert_true(head.unique <= g_unique);
	a = &g_answer[head.unique];
	assert_false(a->there);		/* each request has one answer */
	a->there = true;
	a->error = head.error;
	a->size = n - sizeof(head);
	memcpy(a->data, bytes + sizeof(head), a->size < DATA ? a->size : DATA);
}

static inline void take_answers(void)
{
	static char bytes[4096];
	ssize_t n;

	for (int i = 0; i < NODES; i++)
		while ((n = recv(g_kernel[i], bytes, sizeof(bytes), 0)) > 0)
			take_answer(bytes, (size_t)n);
}

/* The devices handle everything that is there. */
static inline void idle(void)
{
	while (cuse_devices_step(&g_all, 0) > 0)
		;
	take_answers();
}

/* Send a request: a structure of its kind, then data. Returns its number. */
static inline uint64_t request_to(int node, uint32_t opcode, const void *in,
				  size_t size, const void *data, size_t len)
{
	struct fuse_in_header head = {
		.len = (uint32_t)(sizeof(head) + size + len), .opcode = opcode,
		.unique = ++g_unique, .pid = (uint32_t)g_pid,
		.uid = g_uid,
	};
	struct iovec iov[] = {
		{ .iov_base = &head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)(uintptr_t)in, .iov_len = size },
		{ .iov_base = (void *)(uintptr_t)data, .iov_len = len },
	};

	assert_true(g_unique < ANSWERS);
	assert_int_equal(writev(g_kernel[node], iov, 3), head.len);
	g_answer[head.unique].needed = opcode != FUSE_INTERRUPT;
	return head.unique;
}

static inline bool answered(uint64_t unique)
{
	idle();
	return g_answer[unique].there;
}

static inline const struct answer *answer_of(uint64_t unique)
{
	while (!answered(unique))
		assert_true(cuse_devices_step(&g_all, -1) >= 0);
	return &g_answer[unique];
}

static inline void expect_error(uint64_t unique, int error)
{
	assert_true(answered(unique));
	assert_int_equal(g_answer[unique].error, -error);
}

/* ---- Files --------------------------------------------------------------- */

/* An open file, as the kernel and the daemon see it. */
struct open_file {
	int node;
	uint64_t fh;
	int conn;			/* the daemon's end */
};

static inline uint64_t ask_open(int node)
{
	struct fuse_open_in in = { .flags = O_RDWR };

	return request_to(node, FUSE_OPEN, &in, sizeof(in), NULL, 0);
}

static inline struct open_file opened(int node, uint64_t unique)
{
	const struct answer *a = answer_of(unique);
	struct open_file file = { .node = node };
	struct fuse_open_out out;

	assert_int_equal(a->error, 0);
	memcpy(&out, a->data, sizeof(out));
	file.fh = out.fh;
	pthread_mutex_lock(&g_lock);
	file.conn = g_conn;
	pthread_mutex_unlock(&g_lock);
	return file;
}

static inline struct open_file open_node(int node)
{
	return opened(node, ask_open(node));
}

static inline uint64_t ask_read(const struct open_file *file, size_t size,
				uint32_t flags)
{
	struct fuse_read_in in = {
		.fh = file->fh, .size = (uint32_t)size, .flags = flags,
	};

	return request_to(file->node, FUSE_READ, &in, sizeof(in), NULL, 0);
}

static inline uint64_t ask_write(const struct open_file *file,
				 const void *data, size_t size, uint32_t flags)
{
	struct fuse_write_in in = {
		.fh = file->fh, .size = (uint32_t)size, .flags = flags,
	};

	return request_to(file->node, FUSE_WRITE, &in, sizeof(in), data, size);
}

static inline uint64_t ask_send(const struct open_file *file, uint64_t message,
				uint32_t flags)
{
	return ask_write(file, &message, sizeof(message), flags);
}

static inline uint64_t ask_act(const struct open_file *file, char action,
			       unsigned opcode, int val)
{
	struct mailbox_action_t act = {
		.action = action, .opcode = opcode, .val = val,
	};

	return ask_write(file, &act, sizeof(act), BLOCK);
}

/* handle: to be notified; -1: none */
static inline unsigned poll_file(const struct open_file *file, int handle,
				 uint32_t events)
{
	struct fuse_poll_in in = {
		.fh = file->fh, .kh = (uint64_t)(handle < 0 ? 0 : handle),
		.flags = handle < 0 ? 0 : FUSE_POLL_SCHEDULE_NOTIFY,
		.events = events,
	};
	const struct answer *a = answer_of(request_to(file->node, FUSE_POLL,
						      &in, sizeof(in), NULL,
						      0));
	struct fuse_poll_out out;

	assert_int_equal(a->error, 0);
	memcpy(&out, a->data, sizeof(out));
	return out.revents;
}

static inline void interrupt_request(int node, uint64_t unique)
{
	struct fuse_interrupt_in in = { .unique = unique };

	request_to(node, FUSE_INTERRUPT, &in, sizeof(in), NULL, 0);
	idle();
}

static inline void release(const struct open_file *file)
{
	struct fuse_release_in in = { .fh = file->fh };

	expect_error(request_to(file->node, FUSE_RELEASE, &in, sizeof(in),
				NULL, 0), 0);
}

static inline void expect_message(uint64_t unique, uint64_t message)
{
	assert_true(answered(unique));
	assert_int_equal(g_answer[unique].error, 0);
	assert_int_equal(g_answer[unique].size, sizeof(message));
	assert_memory_equal(g_answer[unique].data, &message, sizeof(message));
}

/* ---- Daemon -------------------------------------------------------------- */

/* The daemon delivers a message. */
static inline void deliver(const struct open_file *file, uint64_t message)
{
	assert_int_equal(send(file->conn, &message, sizeof(message), 0),
			 sizeof(message));
}

/* The daemon gets an action. Returns the socket for its answer. */
static inline int get_action(const struct open_file *file,
			     struct mailbox_action_t *action)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec iov = { .iov_base = action, .iov_len = sizeof(*action) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	int fd;

	idle();
	assert_int_equal(recvmsg(file->conn, &msg, MSG_CMSG_CLOEXEC),
			 sizeof(*action));
	assert_non_null(CMSG_FIRSTHDR(&msg));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));
	return fd;
}

static inline void answer_action(int fd, int status)
{
	struct mbox_answer answer = { .status = status };

	assert_int_equal(send(fd, &answer, sizeof(answer), 0), sizeof(answer));
	close(fd);
	idle();
}

static inline bool no_action(const struct open_file *file)
{
	char byte;

	idle();
	return recv(file->conn, &byte, 1, MSG_PEEK) < 0 && errno == EAGAIN;
}

/* A process registers an opcode, and the daemon agrees. */
static inline void act(const struct open_file *file, char action,
		       unsigned opcode, int val)
{
	uint64_t unique = ask_act(file, action, opcode, val);
	struct mailbox_action_t got;

	answer_action(get_action(file, &got), 0);
	expect_error(unique, 0);
}

/* ---- Setup --------------------------------------------------------------- */

static inline void add_device(int node)
{
	struct cuse_init_in in = {
		.major = FUSE_KERNEL_VERSION, .minor = 36,
	};
	char name[CUSE_NAME_MAX], want[CUSE_NAME_MAX + 8];
	const struct answer *a;
	int pair[2];

	make_pair(pair);
	g_kernel[node] = pair[1];
	cuse_device_name(name, "Unimem", node);
	assert_int_equal(cuse_devices_add(&g_all, node, name, pair[0]), 0);
	a = answer_of(request_to(node, CUSE_INIT, &in, sizeof(in), NULL, 0));
	snprintf(want, sizeof(want), "DEVNAME=%s", name);
	assert_int_equal(a->error, 0);
	assert_int_equal(a->size, sizeof(struct cuse_init_out) + strlen(want) +
			 1);
	assert_string_equal(a->data + sizeof(struct cuse_init_out), want);
}

static inline int setup(void **state)
{
	int pair[2];

	memset(g_answer, 0, sizeof(g_answer));
	memset(g_notified, 0, sizeof(g_notified));
	g_unique = g_lines = g_opens = 0;
	g_refuse = 0;
	g_gate[0] = g_gate[1] = -1;
	g_pid = getpid();
	g_uid = getuid();
	for (int i = 0; i < NODES; i++)
		g_kernel[i] = -1;
	assert_int_equal(cuse_devices_init(&g_all, OWN, fixture_open,
					   fixture_log), 0);
	make_pair(pair);
	cuse_devices_watch(&g_all, pair[0]);
	g_watch = pair[1];
	for (int node = 0; node < NODES; node++)
		add_device(node);
	assert_int_equal(g_all.waiting, 0);
	return 0;
}

static inline int teardown(void **state)
{
	assert_true(cuse_devices_fini(&g_all));
	take_answers();
	/* a request without an answer would block its process for ever */
	for (uint64_t i = 1; i <= g_unique; i++)
		assert_true(g_answer[i].there || !g_answer[i].needed);
	for (int i = 0; i < NODES; i++)
		close(g_kernel[i]);
	close(g_watch);
	return 0;
}

#endif /* CUSE_FIXTURE_H */
