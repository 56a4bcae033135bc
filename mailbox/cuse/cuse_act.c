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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/mbox_wire.h"
#include "cuse/cuse_act.h"
#include "cuse/cuse_wait.h"

static void start(struct cuse_acts *acts);

/* The kernel names the thread that writes; signals and descriptors are those of
 * its process. 0: not seen here. */
static pid_t process_of(pid_t thread)
{
	char path[40], line[128];
	int pid = 0;
	FILE *in;

	if (thread == 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
	in = fopen(path, "re");
	if (in == NULL)
		return 0;
	while (pid == 0 && fgets(line, sizeof(line), in) != NULL)
		if (strncmp(line, "Tgid:", 5) == 0)
			pid = (int)strtol(line + 5, NULL, 10);
	fclose(in);
	return pid;
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
		mbox_notify_clear(&acts->notify[action->opcode]);
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
		ret = mbox_notify_set(&acts->notify[action->opcode], action,
				      process_of(fuse_req_ctx(wait->req)->pid),
				      -1);
	if (ret != 0)
		return ret;
	ret = submit(acts, action);
	if (ret != 0 && !remove)
		mbox_notify_clear(&acts->notify[action->opcode]);
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
	mbox_notify_send(&acts->notify[MAILBOX_OPCODE(message)]);
}

void cuse_acts_init(struct cuse_acts *acts, int epoll, int fd)
{
	memset(acts, 0, sizeof(*acts));
	acts->epoll = epoll;
	acts->fd = fd;
	acts->answer.fd = -1;
	acts->answer.handle = on_answer;
	unm_list_init(&acts->waiting);
	for (unsigned op = 0; op < MAILBOX_OPCODES; op++)
		mbox_notify_init(&acts->notify[op]);
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
		mbox_notify_clear(&acts->notify[op]);
}
