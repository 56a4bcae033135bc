/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mbox_client.c - the clients of the daemon: hello, actions, and messages to
 * other nodes. mbox_reg.c has the registrations, mbox_link.c sends messages.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/mbox_client.h"

#define BURST	16			/* packets of one client in a row */
#define WAIT_TIMES 10			/* --linger, so many times as long
					 * while messages wait */
#define PACKET	64			/* longer packets are wrong anyway */
#define LEFT_MAX 256			/* clients whose process has gone, and
					 * whose messages wait */

enum state {
	HELLO,				/* has not said which mailbox */
	OPENING,			/* waits for the remote daemon */
	REMOTE,				/* sends messages */
	LOCAL,				/* registers opcodes, gets messages */
};

/* A client, from mbox_client_new() to client_close(). */
struct mbox_client {
	struct unm_list node;		/* in mbox_clients.all */
	struct unm_list active;		/* in mbox_clients.active */
	struct mbox_clients *all;
	int fd;
	enum state state;
	int mailbox;			/* node; valid after HELLO */
	pid_t pid;			/* that connected, for log lines */
	struct mbox_link *link;		/* NULL: none */
	ssize_t kept;			/* bytes of the handled packet that is
					 * still in the queue; -1: none */
	bool hung_up;			/* no process has the other end */
	bool left;			/* mbox_link_close() was called */
	bool discard;			/* close it, whatever waits */
	bool retry;			/* hal_connect(), or a packet, is to be
					 * tried again */
};

/* A packet that was read, and is still in the queue. */
struct packet {
	ssize_t len;
	union {
		uint64_t message;
		struct mailbox_action_t action;
		struct mbox_hello hello;
		char bytes[PACKET];
	} u;
	pid_t pid;			/* of the writer; 0: not known */
	int fds[MBOX_ACTION_FDS];	/* -1: none */
	bool cut;			/* the daemon has no descriptor left
					 * for one of them */
};

enum verdict {
	DONE,
	WAIT,				/* try the same packet again later */
	CLOSE,				/* close the client */
};

void mbox_clients_init(struct mbox_clients *all, struct mbox_hal *mh,
		       int epoll, void (*log)(const char *line))
{
	memset(all, 0, sizeof(*all));
	all->mh = mh;
	all->epoll = epoll;
	all->log = log;
	mbox_regs_init(&all->regs);
	unm_list_init(&all->all);
	unm_list_init(&all->active);
}

static void client_activate(struct mbox_client *c)
{
	unm_list_remove(&c->active);
	unm_list_append(&c->all->active, &c->active);
}

/* The other end has been closed. Messages that it wrote are still sent on. */
static void client_hang_up(struct mbox_client *c)
{
	if (c->hung_up)
		return;
	c->hung_up = true;
	c->all->living--;
}

/* Count and remove the messages that were not handled. */
static uint64_t client_drain(const struct mbox_client *c)
{
	char bytes[PACKET];
	uint64_t n = 0;

	if (c->kept >= 0 && recv(c->fd, bytes, 1, MSG_DONTWAIT) < 0)
		return 0;
	while (recv(c->fd, bytes, sizeof(bytes), MSG_DONTWAIT | MSG_TRUNC) ==
	       MBOX_MESSAGE)
		n++;
	return n;
}

static void client_close(struct mbox_client *c)
{
	/* a process that lives learns it by ECONNRESET */
	if (c->state == REMOTE && c->hung_up)
		c->all->discarded += client_drain(c);
	client_hang_up(c);
	mbox_regs_remove(&c->all->regs, c);
	if (c->link != NULL) {
		if (!c->left)
			mbox_link_close(c->link);
		mbox_link_put(c->link);
	}
	unm_list_remove(&c->node);
	unm_list_remove(&c->active);
	close(c->fd);
	free(c);
}

void mbox_clients_fini(struct mbox_clients *all)
{
	unm_list_for_each_safe(pos, tmp, &all->all)
		client_close(unm_container(pos, struct mbox_client, node));
}

void mbox_client_new(struct mbox_clients *all, int fd)
{
	struct ucred peer = { .uid = (uid_t)-1 };
	struct epoll_event ev = { .events = EPOLLIN | EPOLLOUT | EPOLLRDHUP |
					    EPOLLET };
	socklen_t len = sizeof(peer);
	struct mbox_client *c;
	int on = 1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0 ||
	    peer.uid != geteuid() ||
	    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0)
		goto err_close;
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		goto err_close;
	c->all = all;
	c->fd = fd;
	c->pid = peer.pid;
	c->kept = -1;
	unm_list_init(&c->active);
	ev.data.ptr = c;
	if (epoll_ctl(all->epoll, EPOLL_CTL_ADD, fd, &ev) != 0) {
		free(c);
		goto err_close;
	}
	unm_list_append(&all->all, &c->node);
	all->living++;
	return;

err_close:
	close(fd);
}

void mbox_client_event(struct mbox_client *c, uint32_t events)
{
	if (events & EPOLLOUT)
		mbox_regs_writable(&c->all->regs, c);
	if (events & (EPOLLHUP | EPOLLERR | EPOLLRDHUP))
		client_hang_up(c);
	client_activate(c);
}

/* ---- Packets ------------------------------------------------------------- */

/* Keep the first descriptors, close any more. */
static void take_fds(struct packet *pkt, const struct cmsghdr *cm)
{
	size_t n = (cm->cmsg_len - CMSG_LEN(0)) / sizeof(int);

	for (size_t i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(cm) + i * sizeof(fd), sizeof(fd));
		if (i < MBOX_ACTION_FDS)
			pkt->fds[i] = fd;
		else
			close(fd);
	}
}

static void take_control(struct packet *pkt, struct msghdr *msg)
{
	for (struct cmsghdr *cm = CMSG_FIRSTHDR(msg); cm != NULL;
	     cm = CMSG_NXTHDR(msg, cm)) {
		struct ucred cred;

		if (cm->cmsg_level != SOL_SOCKET)
			continue;
		if (cm->cmsg_type == SCM_CREDENTIALS) {
			memcpy(&cred, CMSG_DATA(cm), sizeof(cred));
			pkt->pid = cred.pid;
		} else if (cm->cmsg_type == SCM_RIGHTS) {
			take_fds(pkt, cm);
		}
	}
}

/* Read the first packet of the queue, and leave it there. */
static void packet_peek(const struct mbox_client *c, struct packet *pkt)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct ucred)) +
			   CMSG_SPACE(sizeof(pkt->fds))];
	} control;
	struct iovec iov = { .iov_base = &pkt->u, .iov_len = sizeof(pkt->u) };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
		.msg_controllen = sizeof(control),
	};

	pkt->pid = 0;
	pkt->fds[0] = pkt->fds[1] = -1;
	pkt->len = recvmsg(c->fd, &msg, MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT |
			   MSG_CMSG_CLOEXEC);
	if (pkt->len >= 0)
		take_control(pkt, &msg);
	/* with both, there were too many */
	pkt->cut = pkt->len >= 0 && (msg.msg_flags & MSG_CTRUNC) &&
		   pkt->fds[MBOX_ACTION_FDS - 1] < 0;
}

static void packet_close(const struct packet *pkt)
{
	for (unsigned i = 0; i < MBOX_ACTION_FDS; i++)
		if (pkt->fds[i] >= 0)
			close(pkt->fds[i]);
}

/* A process that has closed the other end needs no answer. */
static void answer(int fd, int status)
{
	struct mbox_answer answer = { .status = status };

	(void)send(fd, &answer, sizeof(answer), MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The library reads the answer, so its next call must not fail: no packet is
 * left in the queue. */
static enum verdict answer_hello(const struct mbox_client *c, int error)
{
	char byte;

	answer(c->fd, error);
	(void)recv(c->fd, &byte, 1, MSG_DONTWAIT);
	return CLOSE;
}

/* The packet is left in the queue: the next call on the descriptor fails. */
static enum verdict refuse(const struct mbox_client *c,
			   const struct packet *pkt, int error)
{
	char line[200];

	snprintf(line, sizeof(line), "process %d: a write of %zd bytes to the "
		 "mailbox of node %d is refused: %s%s",
		 pkt->pid != 0 ? pkt->pid : c->pid, pkt->len, c->mailbox,
		 strerror(-error), error == -EPERM ?
		 "; mailbox_action() needs no permission" : "");
	c->all->log(line);
	return CLOSE;
}

static enum verdict on_hello(struct mbox_client *c, const struct packet *pkt)
{
	const struct mbox_hello *hello = &pkt->u.hello;

	if (pkt->len != sizeof(*hello) || hello->magic != MBOX_MAGIC)
		return CLOSE;
	if (hello->version != MBOX_VERSION)
		return answer_hello(c, -EPROTO);
	if (hello->node < 0 ||
	    hello->node >= (int)c->all->mh->hal->caps.boards)
		return answer_hello(c, -EINVAL);
	c->mailbox = hello->node;
	if (c->mailbox == c->all->mh->hif->addr.board) {
		c->state = LOCAL;
		answer(c->fd, 0);
	} else {
		c->state = OPENING;
	}
	return DONE;
}

/* The library waits for an answer, a plain write() cannot. */
static enum verdict on_local(struct mbox_client *c, const struct packet *pkt)
{
	struct mbox_origin origin = {
		.owner = c, .fd = c->fd, .event_fd = pkt->fds[1],
		.pid = pkt->pid,
	};
	int ret = -EINVAL;

	if (pkt->len == sizeof(pkt->u.action))
		ret = mbox_regs_act(&c->all->regs, &pkt->u.action, &origin);
	if (pkt->fds[0] >= 0)
		answer(pkt->fds[0], ret);
	else if (ret != 0)
		return refuse(c, pkt, ret);
	return DONE;
}

static enum verdict on_remote(struct mbox_client *c, const struct packet *pkt)
{
	int ret;

	if (pkt->len != MBOX_MESSAGE && pkt->fds[0] >= 0) {
		answer(pkt->fds[0], -EINVAL);
		return DONE;
	}
	if (pkt->len != MBOX_MESSAGE)
		return refuse(c, pkt, -EINVAL);
	ret = mbox_link_send(c->link, pkt->u.message);
	if (ret == -FI_EAGAIN)
		return WAIT;
	return ret == 0 ? DONE : CLOSE;
}

/* ---- Progress ------------------------------------------------------------ */

/* Connect to the remote daemon, and wait until it knows of the client. */
static enum verdict client_open(struct mbox_client *c)
{
	int ret = 0;

	if (c->link == NULL)
		ret = mbox_link_get(c->all->mh, c->mailbox, &c->link);
	c->retry = ret == -FI_EAGAIN;
	if (ret == 0)
		ret = mbox_link_opened(c->link);
	if (ret == -FI_EAGAIN)
		return c->hung_up ? CLOSE : WAIT;
	if (ret == 0) {
		/* nothing can be read: let a read return at once */
		answer(c->fd, 0);
		shutdown(c->fd, SHUT_WR);
		c->state = REMOTE;
		return DONE;
	}
	return answer_hello(c, ret);
}

unsigned mbox_clients_left(const struct mbox_clients *all)
{
	unsigned left = 0;

	unm_list_for_each(pos, &all->all)
		left += unm_container(pos, struct mbox_client, node)->left;
	return left;
}

/* A process that writes to a full mailbox and ends leaves a client behind until
 * the mailbox has free space. Their number is bounded: the oldest one goes. */
static void client_leave(struct mbox_client *c)
{
	struct mbox_clients *all = c->all;

	c->left = true;
	mbox_link_close(c->link);
	if (mbox_clients_left(all) <= LEFT_MAX)
		return;
	all->log("messages of a process that has ended are discarded: the "
		 "mailbox that it wrote to stays full");
	unm_list_for_each(pos, &all->all) {
		struct mbox_client *oldest =
			unm_container(pos, struct mbox_client, node);

		if (!oldest->left)
			continue;
		oldest->discard = true;
		return;
	}
}

/* Is there a packet that was not handled? Then remove the handled one. */
static bool next_packet(struct mbox_client *c)
{
	char byte;
	int bytes;

	if (c->kept < 0)
		return true;
	if (ioctl(c->fd, FIONREAD, &bytes) != 0 || bytes <= c->kept)
		return false;
	if (recv(c->fd, &byte, 1, MSG_DONTWAIT) < 0)
		return false;
	c->kept = -1;
	return true;
}

/* Handle one packet. WAIT: there is none, or it has to wait. */
static enum verdict client_packet(struct mbox_client *c)
{
	enum verdict verdict = CLOSE;	/* the end, or a packet of 0 bytes */
	struct packet pkt;

	c->retry = false;
	if (!next_packet(c))
		return c->hung_up ? CLOSE : WAIT;
	packet_peek(c, &pkt);
	if (pkt.cut) {			/* the socket for the answer is lost */
		packet_close(&pkt);
		c->retry = true;
		return c->hung_up ? CLOSE : WAIT;
	}
	if (pkt.len < 0 && (errno == EAGAIN || errno == EINTR))
		return c->hung_up ? CLOSE : WAIT;
	if (pkt.len > 0 && c->state == HELLO)
		verdict = on_hello(c, &pkt);
	else if (pkt.len > 0 && c->state == LOCAL)
		verdict = on_local(c, &pkt);
	else if (pkt.len > 0)
		verdict = on_remote(c, &pkt);
	if (pkt.len >= 0)
		packet_close(&pkt);
	if (verdict == DONE)
		c->kept = pkt.len;
	return verdict;
}

/* Does the client stay in the list of the active ones when it waits? */
static bool stays_active(const struct mbox_client *c)
{
	return c->state == OPENING || (c->state == REMOTE && c->kept < 0) ||
	       c->retry;
}

static bool client_progress(struct mbox_client *c)
{
	enum verdict verdict = DONE;
	unsigned n = 0;

	/* registrations end with the last process that has the descriptor */
	if (c->discard || (c->hung_up && c->state == LOCAL))
		verdict = CLOSE;
	while (verdict == DONE && n < BURST) {
		verdict = c->state == OPENING ? client_open(c) :
			  client_packet(c);
		n += verdict == DONE;
	}
	if (verdict == CLOSE) {
		client_close(c);
		return true;
	}
	if (c->hung_up && c->link != NULL && !c->left)
		client_leave(c);
	if (verdict == WAIT && !stays_active(c))
		unm_list_remove(&c->active);
	return n != 0;
}

/* Close the clients of links that have become dead. */
static void close_dead(struct mbox_clients *all)
{
	if (all->ends == all->mh->ends)
		return;
	all->ends = all->mh->ends;
	unm_list_for_each_safe(pos, tmp, &all->all) {
		struct mbox_client *c =
			unm_container(pos, struct mbox_client, node);

		if (c->state == REMOTE && c->link->peer == NULL)
			client_close(c);
	}
}

bool mbox_clients_progress(struct mbox_clients *all)
{
	bool some = false;

	close_dead(all);
	unm_list_for_each_safe(pos, tmp, &all->active)
		some |= client_progress(unm_container(pos, struct mbox_client,
						      active));
	some |= mbox_regs_deliver(&all->regs, all->mh);
	if (some)
		all->unused_since = 0;
	return some;
}

/* The daemon does not wait for ever: the peer may be a daemon that waits for
 * this one. But as long as messages of an ended process are sent on, a reader
 * takes them, however slowly. */
int mbox_clients_life_ms(struct mbox_clients *all, uint64_t now, int linger_ms)
{
	uint64_t end, linger = (uint64_t)linger_ms * 1000000;

	if (all->living != 0 || mbox_hal_used(all->mh)) {
		all->unused_since = 0;
		return -1;
	}
	if (all->unused_since == 0)
		all->unused_since = now;
	if (mbox_clients_left(all) != 0 || mbox_hal_holds(all->mh))
		linger *= WAIT_TIMES;
	end = all->unused_since + linger;
	return now >= end ? 0 : (int)((end - now) / 1000000) + 1;
}

bool mbox_clients_retry(const struct mbox_clients *all)
{
	if (all->regs.retry)
		return true;
	unm_list_for_each(pos, &all->active)
		if (unm_container(pos, struct mbox_client, active)->retry)
			return true;
	return false;
}
