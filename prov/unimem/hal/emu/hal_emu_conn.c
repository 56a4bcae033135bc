/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_conn.c - connections between interfaces: their objects, and sending
 * messages.
 *
 * A connection is a SOCK_SEQPACKET socket. The handshake on it exchanges the
 * descriptors of both peers; later it carries wake-ups and imports. The end of
 * a connection means that the peer has closed its interface; a readable pidfd,
 * which came in the handshake, that its process has ended. hal_emu_msg.c and
 * hal_emu_recv.c have the messages and reading them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hal/emu/hal_emu_conn.h"
#include "hal/emu/hal_emu_event.h"

/* ---- Sending --------------------------------------------------------- */

/* The kernel limits the descriptors of a user in unread messages; a HELLO has
 * three. */
static void too_many_in_flight(struct emu_if *eif)
{
	hal_log(emu_said(eif, EMU_SAID_FLIGHT), "interface %u:%u has to wait: "
		"too many descriptors of this user are in messages that busy "
		"or stopped processes have not read (RLIMIT_NOFILE): raise it "
		"with ulimit -n", eif->i.addr.board, eif->i.addr.iface);
}

int emu_conn_send(struct emu_conn *conn, union emu_msg *msg, size_t len,
		  int type, int status, const int *fds, int nfds)
{
	union {
		char buf[CMSG_SPACE(EMU_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} ctl;
	struct iovec iov = { .iov_base = msg, .iov_len = len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	msg->head.magic = EMU_MAGIC;
	msg->head.version = EMU_WIRE;
	msg->head.type = (uint16_t)type;
	msg->head.bytes = (uint32_t)len;
	msg->head.status = status;
	if (nfds != 0) {
		struct cmsghdr *c;

		memset(&ctl, 0, sizeof(ctl));
		mh.msg_control = ctl.buf;
		mh.msg_controllen = CMSG_SPACE((size_t)nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN((size_t)nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, (size_t)nfds * sizeof(int));
	}
	while (sendmsg(conn->src.fd, &mh, MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
		switch (errno) {
		case EINTR:
			continue;
		case EAGAIN:
		case ENOBUFS:
		case ENOMEM:
			return -FI_EAGAIN;
		case ETOOMANYREFS:
			too_many_in_flight(conn->eif);
			return -FI_EAGAIN;
		default:		/* the epoll set reports the end */
			return -FI_ECONNRESET;
		}
	}
	return 0;
}

void emu_refuse(struct emu_conn *conn, int type, int status)
{
	union emu_msg msg;
	size_t len = sizeof(msg.head);

	if (conn->crossed) {
		memset(&msg.hello, 0, sizeof(msg.hello));
		msg.hello.flags = EMU_F_CROSSED;
		len = sizeof(msg.hello);
	}
	emu_conn_send(conn, &msg, len, type, status, NULL, 0);
}

/* One EMU_WAKE is enough for a sleep, however many packets follow before the
 * peer wakes up. asleep holds the number of the sleep. */
void emu_wake(struct hal_peer *hp)
{
	struct emu_peer *peer = emu_peer(hp);
	struct emu_conn *conn = peer->out != NULL ? peer->out : peer->in;
	uint32_t sleep = 0;
	union emu_msg msg;

	/* the answer that is not sent yet must come first, and wakes too */
	if (conn == NULL || (conn->todo & EMU_TODO_ANSWER))
		return;
	if (hp->tx.sleep != NULL)
		/* after the packet: the sleeper's barrier orders both */
		sleep = atomic_load_explicit(&hp->tx.sleep->asleep,
					     memory_order_relaxed);
	if (sleep != 0 && sleep == peer->woken)
		return;
	if (emu_conn_send(conn, &msg, sizeof(msg.head), EMU_WAKE, 0, NULL,
			  0) == 0)
		peer->woken = sleep;
	else if (errno == ENOBUFS || errno == ENOMEM)
		emu_todo_set(conn, EMU_TODO_WAKE);
	/* else the connection has ended, or it is full of messages that wake
	 * the peer too */
}

void emu_todo_set(struct emu_conn *conn, enum emu_todo what)
{
	if (conn->todo == 0)
		conn->eif->ntodo++;
	conn->todo |= what;
}

void emu_todo_clear(struct emu_conn *conn, uint32_t what)
{
	if (conn->todo != 0 && (conn->todo &= ~what) == 0)
		conn->eif->ntodo--;
}

/* ---- Connections ----------------------------------------------------- */

int emu_conn_new(struct emu_if *eif, int fd, struct emu_conn **out)
{
	struct emu_conn *conn;
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return -errno;
	if (cred.uid != geteuid()) {
		hal_log(1, "a process of user %u is at the other end of an "
			"interface: refused", (unsigned)cred.uid);
		return -FI_EACCES;
	}
	conn = calloc(1, sizeof(*conn));
	if (conn == NULL)
		return -FI_ENOMEM;
	conn->src.kind = EMU_SRC_CONN;
	conn->src.fd = fd;
	conn->eif = eif;
	conn->pid = cred.pid;
	conn->pprev = eif->conns_tail;
	*eif->conns_tail = conn;
	eif->conns_tail = &conn->next;
	*out = conn;
	return 0;
}

void emu_conn_spoke(struct emu_conn *conn)
{
	conn->eif->nmute -= conn->mute;
	conn->mute = false;
}

void emu_conn_close(struct emu_conn *conn)
{
	struct emu_if *eif = conn->eif;

	emu_todo_clear(conn, ~0u);
	emu_conn_spoke(conn);
	emu_unwatch(eif, &conn->src);
	/* a forked child may have the socket too: then close() alone does not
	 * end the connection */
	shutdown(conn->src.fd, SHUT_RDWR);
	close(conn->src.fd);
	conn->src.fd = -1;
	if (conn->peer != NULL && conn->peer->out == conn)
		conn->peer->out = NULL;
	if (conn->peer != NULL && conn->peer->in == conn)
		conn->peer->in = NULL;
	conn->peer = NULL;
	*conn->pprev = conn->next;
	if (conn->next != NULL)
		conn->next->pprev = conn->pprev;
	else
		eif->conns_tail = conn->pprev;
	conn->next = eif->closed_conns;
	eif->closed_conns = conn;
}

void emu_conns_free(struct emu_if *eif)
{
	while (eif->closed_conns != NULL) {
		struct emu_conn *conn = eif->closed_conns;

		eif->closed_conns = conn->next;
		free(conn->reqs);
		free(conn);
	}
}

void emu_peer_disconnect(struct emu_peer *peer)
{
	if (peer->in != NULL)
		emu_conn_close(peer->in);
	if (peer->out != NULL)
		emu_conn_close(peer->out);
	if (peer->pidsrc.fd < 0)
		return;
	emu_unwatch(emu_if(peer->p.hif), &peer->pidsrc);
	close(peer->pidsrc.fd);
	peer->pidsrc.fd = -1;
}

/* A pidfd is readable once all threads of the process have ended; its memory
 * may still exist. */
bool emu_pidfd_dead(int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&pfd, 1, 0) > 0;
}

int emu_peer_watch(struct emu_peer *peer, int fd, bool handed)
{
	struct emu_if *eif = emu_if(peer->p.hif);
	struct emu_src old = peer->pidsrc;
	int ret;

	peer->pidsrc.fd = fd;
	ret = emu_watch(eif, &peer->pidsrc);
	if (ret != 0) {
		peer->pidsrc.fd = old.fd;
		return ret;
	}
	if (old.fd >= 0) {
		emu_unwatch(eif, &old);
		close(old.fd);
	}
	peer->welcomed = handed;
	return 0;
}
