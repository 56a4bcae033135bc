/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_open.c - opens mailboxes, and registers opcodes: the calls of
 * <unimem/mailbox.h> that the driver offers as open(2) and write(2).
 *
 * The descriptor of a mailbox is a socket to the daemon of the local node.
 * Messages pass through it without this library.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client/mbox_log.h"
#include "client/mbox_start.h"
#include "common/mbox_name.h"
#include "common/mbox_wire.h"
#include "util/unm_clock.h"

#define ATTEMPTS	8		/* to reach daemons that end, or are
					 * started, at the same time */
#define FULL_NS		UINT64_C(1250000000)	/* per attempt, for a full
						 * queue of connections */
#define FULL_STEP_NS	1000000
#define ANSWER_MS	10000		/* for the daemon to answer */

/* Wait for an answer. 0 or the error that it has; -ETIMEDOUT: none came;
 * -ECONNRESET: the daemon has ended. */
static int wait_answer(int fd)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	struct mbox_answer answer;
	ssize_t n;
	int ret;

	do {
		ret = poll(&pfd, 1, ANSWER_MS);
	} while (ret < 0 && errno == EINTR);
	if (ret <= 0)
		return ret == 0 ? -ETIMEDOUT : -errno;
	n = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	return n == sizeof(answer) ? answer.status : -ECONNRESET;
}

static int say_hello(int fd, int node)
{
	const struct mbox_hello hello = {
		.magic = MBOX_MAGIC, .version = MBOX_VERSION, .node = node,
	};

	if (send(fd, &hello, sizeof(hello), MSG_NOSIGNAL) != sizeof(hello))
		return errno == EPIPE ? -ECONNRESET : -errno;
	return wait_answer(fd);
}

/* Connect to the local daemon. Returns as mbox_name_connect(), -EAGAIN after
 * FULL_NS. */
static int reach(const struct hal *hal)
{
	const struct timespec step = { .tv_nsec = FULL_STEP_NS };
	uint64_t end = unm_now_ns() + FULL_NS;
	int fd;

	while ((fd = mbox_name_connect(hal, hal->own_board)) == -EAGAIN &&
	       unm_now_ns() < end)
		nanosleep(&step, NULL);
	return fd;
}

/* Returns a descriptor, or a negative errno; -EAGAIN: try again. *full: whether
 * a queue of connections was full. */
static int attempt(const struct hal *hal, int node, bool *full)
{
	int fd = reach(hal);
	int ret;

	/* the full queue may be another user's: then there is no daemon */
	*full = fd == -EAGAIN;
	if (fd == -ECONNREFUSED || *full) {
		ret = mbox_start(hal, hal->own_board);
		return ret == 0 ? -EAGAIN : ret;
	}
	if (fd < 0)
		return fd;
	ret = say_hello(fd, node);
	if (ret == 0)
		return fd;
	close(fd);
	if (ret == -ECONNREFUSED)	/* the remote node has no daemon */
		ret = mbox_start(hal, node);
	return ret == 0 || ret == -ECONNRESET ? -EAGAIN : ret;
}

static int open_node(const struct hal *hal, int node)
{
	int ret = -EINVAL;
	bool full = false;

	if (node == MAILBOX_LOCAL)
		node = hal->own_board;
	if (node < 0 || node >= (int)hal->caps.boards)
		return ret;
	for (int i = 0; i < ATTEMPTS; i++) {
		ret = attempt(hal, node, &full);
		if (ret != -EAGAIN)
			return ret;
	}
	mbox_log("the mailbox of node %d cannot be opened: %s", node, full ?
		 "whoever has the name of the local daemon accepts no "
		 "connection" : "the daemons end again and again");
	return full ? -ETIMEDOUT : -ECONNREFUSED;
}

/* Sockets are made close-on-exec and blocking. */
static int set_flags(int fd, int flags)
{
	if (!(flags & O_CLOEXEC) && fcntl(fd, F_SETFD, 0) != 0)
		return -errno;
	if ((flags & O_NONBLOCK) && fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		return -errno;
	return 0;
}

int mailbox_open(int node, int flags)
{
	struct hal *hal;
	int fd, ret;

	if ((flags & ~(O_ACCMODE | O_NONBLOCK | O_CLOEXEC)) != 0)
		return -EINVAL;
	ret = hal_get(NULL, &hal);
	if (ret != 0)
		return ret;
	fd = open_node(hal, node);
	hal_put(hal);
	if (fd < 0)
		return fd;
	ret = set_flags(fd, flags);
	if (ret == 0)
		return fd;
	close(fd);
	return ret;
}

/* Send an action with its descriptors. */
static int send_action(int fd, const struct mailbox_action_t *action,
		       int reply)
{
	const int fds[MBOX_ACTION_FDS] = { reply, action->val };
	size_t bytes = (action->action == 'e' ? 2 : 1) * sizeof(fds[0]);
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(fds))];
	} control;
	struct mailbox_action_t copy = *action;
	struct iovec iov = { .iov_base = &copy, .iov_len = sizeof(copy) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = CMSG_SPACE(bytes),
	};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&msg);

	memset(&control, 0, sizeof(control));
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(bytes);
	memcpy(CMSG_DATA(cm), fds, bytes);
	if (sendmsg(fd, &msg, MSG_NOSIGNAL) == sizeof(copy))
		return 0;
	if (errno == EPIPE)
		return -ECONNRESET;
	return errno == ENOTSOCK ? -EINVAL : -errno;
}

int mailbox_action(int fd, const struct mailbox_action_t *action)
{
	int pair[2], ret;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return -errno;
	ret = send_action(fd, action, pair[1]);
	close(pair[1]);			/* the daemon's end gives the end */
	if (ret == 0)
		ret = wait_answer(pair[0]);
	close(pair[0]);
	return ret;
}

int mailbox_node(void)
{
	struct hal *hal;
	int ret = hal_get(NULL, &hal);

	if (ret != 0)
		return ret;
	ret = hal->own_board;
	hal_put(hal);
	return ret;
}

int mailbox_nodes(void)
{
	struct hal *hal;
	int ret = hal_get(NULL, &hal);

	if (ret != 0)
		return ret;
	ret = (int)hal->caps.boards;
	hal_put(hal);
	return ret;
}
