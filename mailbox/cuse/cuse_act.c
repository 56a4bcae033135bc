/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cuse_act.c - actions that processes write to a file of the local mailbox.
 *
 * The daemon gets each action as 'r' or 'u', with a socket for its answer, as
 * mailbox_action() sends it. Signals and event fds are those of the writing
 * process, which the daemon does not know, so they are got ready and sent here.
 * One action of a file is under way at a time, and the loop does not wait for
 * its answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mbox_wire.h"
#include "cuse/cuse_act.h"
#include "cuse/cuse_wait.h"

#define STATUS_MAX	1024		/* bytes of /proc/PID/status that have
					 * the lines Tgid and Uid */

static void start(struct cuse_acts *acts);

/* ---- The processes that write -------------------------------------------- */

/* Open /proc/PID/status. Returns a descriptor, which stays that of the process
 * when its number is used again; or a negative errno. */
static int status_open(pid_t pid)
{
	char path[40];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Read the numbers of a line, as they are now. name: "Uid:". Returns how many
 * there are, up to three; 0: no such process any more. */
static int status_read(int fd, const char *name, unsigned n[3])
{
	char text[STATUS_MAX];
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
	const char *at;

	if (len < 0)
		return 0;
	text[len] = '\0';
	at = strstr(text, name);
	return at == NULL ? 0 :
	       sscanf(at + strlen(name), "%u %u %u", &n[0], &n[1], &n[2]);
}

/* The kernel names the thread that writes; signals and descriptors are those of
 * its process. 0: not seen here; or a negative errno. */
static pid_t process_of(pid_t thread)
{
	unsigned n[3] = { 0 };
	int fd;

	if (thread == 0)
		return 0;
	fd = status_open(thread);
	if (fd < 0)
		return fd == -EMFILE || fd == -ENFILE ? fd : 0;
	if (status_read(fd, "\nTgid:", n) < 1)
		n[0] = 0;
	close(fd);
	return (pid_t)n[0];
}

/* May the user that wrote the action send a signal to the process as it is now?
 * The rule of kill(2); the daemon itself may have more rights. */
static bool may_signal(const struct cuse_writer *writer)
{
	unsigned n[3];			/* real, effective, saved */

	return writer->uid == 0 ||
	       (status_read(writer->status, "\nUid:", n) == 3 &&
		(writer->uid == n[0] || writer->uid == n[2]));
}

static void clear_notify(struct cuse_acts *acts, unsigned opcode)
{
	struct cuse_writer *writer = &acts->writer[opcode];

	mbox_notify_clear(&acts->notify[opcode]);
	if (writer->status >= 0)
		close(writer->status);
	writer->status = -1;
}

/* Get the notification of an action ready. 0 or a negative errno. */
static int set_notify(struct cuse_acts *acts, const struct cuse_wait *wait)
{
	const struct mailbox_action_t *action = &wait->u.action;
	const struct fuse_ctx *context = fuse_req_ctx(wait->req);
	struct cuse_writer *writer = &acts->writer[action->opcode];
	pid_t pid = 0;
	int ret;

	if (action->action != 'r')
		pid = process_of(context->pid);
	if (pid < 0)
		return pid;
	ret = mbox_notify_set(&acts->notify[action->opcode], action, pid, -1);
	if (ret != 0 || action->action != 's')
		return ret;
	writer->uid = context->uid;
	writer->status = status_open(pid);
	if (writer->status >= 0)
		return 0;
	ret = writer->status == -ENOENT ? -ESRCH : writer->status;
	clear_notify(acts, action->opcode);
	return ret;
}

/* ---- The action that is under way ---------------------------------------- */

static void close_answer(struct cuse_acts *acts)
{
	int fd = acts->answer.fd;

	if (fd < 0)
		return;
	cuse_loop_remove(acts->epoll, &acts->answer);
	close(fd);
}

/* Keep what the action has changed, or restore what was before. */
static void settle(struct cuse_acts *acts,
		   const struct mailbox_action_t *action, int status)
{
	uint16_t bit = (uint16_t)(1U << action->opcode);
	bool remove = action->action == 'u';

	if (status == 0 && !remove)
		acts->registered |= bit;
	if (status == 0 && remove)
		acts->registered &= (uint16_t)~bit;
	if (remove == (status == 0))
		clear_notify(acts, action->opcode);
}

/* The daemon has answered. A registration whose writer was interrupted is
 * undone: the writer does not know of it. */
static void answered(struct cuse_acts *acts, int status)
{
	struct cuse_wait *wait = cuse_wait_first(&acts->waiting);
	struct mailbox_action_t *action = &wait->u.action;
	fuse_req_t req;

	close_answer(acts);
	settle(acts, action, status);
	if (wait->req == NULL && status == 0 && action->action != 'u') {
		action->action = 'u';
		wait->sent = false;
	} else if (status == 0) {
		req = cuse_wait_take(wait);
		if (req != NULL)
			(void)fuse_reply_write(req, sizeof(*action));
	} else {
		cuse_wait_err(wait, -status);
	}
	start(acts);
}

static void on_answer(struct cuse_source *src, uint32_t events)
{
	struct cuse_acts *acts = unm_container(src, struct cuse_acts, answer);
	struct mbox_answer answer;
	ssize_t n = recv(src->fd, &answer, sizeof(answer), MSG_DONTWAIT);

	(void)events;
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	answered(acts, n == sizeof(answer) ? answer.status : -EIO);
}

/* Send an action with one descriptor. 0 or a negative errno. */
static int send_action(int fd, const struct mailbox_action_t *action,
		       int reply)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(reply))];
	} control = { .space = { 0 } };
	struct mailbox_action_t copy = *action;
	struct iovec iov = { .iov_base = &copy, .iov_len = sizeof(copy) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);

	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(reply));
	memcpy(CMSG_DATA(cm), &reply, sizeof(reply));
	if (sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(copy))
		return 0;
	return errno == EPIPE || errno == ECONNRESET ? -EIO : -errno;
}

/* Send what the daemon has to do, and add the socket for its answer to the
 * loop. */
static int submit(struct cuse_acts *acts, const struct mailbox_action_t *action)
{
	const struct mailbox_action_t plain = {
		.action = action->action == 'u' ? 'u' : 'r',
		.opcode = action->opcode,
	};
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	ret = cuse_loop_add(acts->epoll, &acts->answer, pair[0], EPOLLIN);
	if (ret == 0) {
		ret = send_action(acts->fd, &plain, pair[1]);
		if (ret != 0)
			cuse_loop_remove(acts->epoll, &acts->answer);
	}
	close(pair[1]);
	if (ret != 0)
		close(pair[0]);
	return ret;
}

/* Begin an action: what can be refused here needs no daemon. The notification
 * is ready before the first message can come. */
static int begin(struct cuse_acts *acts, const struct cuse_wait *wait)
{
	const struct mailbox_action_t *action = &wait->u.action;
	bool ours = (acts->registered >> action->opcode & 1) != 0;
	bool remove = action->action == 'u';
	int ret = 0;

	if (acts->ended)
		return -EIO;
	if (ours != remove)
		return ours ? -EBUSY : -ENOENT;
	if (!remove)
		ret = set_notify(acts, wait);
	if (ret != 0)
		return ret;
	ret = submit(acts, action);
	if (ret != 0 && !remove)
		clear_notify(acts, action->opcode);
	return ret;
}

/* Begin the next action, unless one is under way. An interrupted registration
 * that cannot be undone would stay, and no writer knows of it: the connection
 * ends, and the registration with it. */
static void start(struct cuse_acts *acts)
{
	struct cuse_wait *wait;
	int ret;

	while (acts->answer.fd < 0 &&
	       (wait = cuse_wait_first(&acts->waiting)) != NULL) {
		ret = begin(acts, wait);
		if (ret == 0) {
			wait->sent = true;
			continue;
		}
		if (wait->req == NULL)
			(void)shutdown(acts->fd, SHUT_RDWR);
		cuse_wait_err(wait, -ret);
	}
}

/* ---- Entry points -------------------------------------------------------- */

void cuse_acts_write(struct cuse_acts *acts, fuse_req_t req,
		     const struct mailbox_action_t *action)
{
	if (action->opcode >= MAILBOX_OPCODES || action->action == '\0' ||
	    strchr("rseu", action->action) == NULL) {
		(void)fuse_reply_err(req, EINVAL);
		return;
	}
	cuse_wait_add(&acts->waiting, req, action, NULL);
	start(acts);
}

void cuse_acts_notify(const struct cuse_acts *acts, uint64_t message)
{
	unsigned opcode = MAILBOX_OPCODE(message);
	const struct mbox_notify *notify = &acts->notify[opcode];

	if (notify->process < 0 || may_signal(&acts->writer[opcode]))
		mbox_notify_send(notify);
}

void cuse_acts_init(struct cuse_acts *acts, int epoll, int fd)
{
	memset(acts, 0, sizeof(*acts));
	acts->epoll = epoll;
	acts->fd = fd;
	acts->answer.fd = -1;
	acts->answer.handle = on_answer;
	unm_list_init(&acts->waiting);
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++) {
		mbox_notify_init(&acts->notify[op]);
		acts->writer[op].status = -1;
	}
}

void cuse_acts_end(struct cuse_acts *acts)
{
	acts->ended = true;
	close_answer(acts);
	cuse_wait_err_all(&acts->waiting, EIO);
}

void cuse_acts_fini(struct cuse_acts *acts)
{
	cuse_acts_end(acts);
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		clear_notify(acts, op);
}
