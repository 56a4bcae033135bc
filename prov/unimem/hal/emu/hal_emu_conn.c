/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_conn.c - connections between interfaces: their objects, and sending.
 *
 * A connection carries the descriptors of two peers to each other, later
 * wake-ups and imports; its end tells a closed interface, the pidfd that came
 * over it tells a process that died.
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

/* Each hello that is not read yet has three of them, of all of this user's. */
static void too_many_in_flight(struct emu_if *eif)
{
	hal_log(emu_said(eif, EMU_SAID_FLIGHT), "interface %u:%u has to wait: "
		"too many descriptors of this user are on their way to "
		"processes that are busy or stopped (RLIMIT_NOFILE): raise it "
		"with ulimit -n", eif->i.addr.board, eif->i.addr.iface);
}

/* All or nothing; -FI_EAGAIN: not now. Fills the head. */
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
		default:		/* its end is told by the epoll set */
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

/*
 * One message ends one sleep, however many packets follow before the sleeper is
 * back: its word holds the number of the sleep.
 */
void emu_wake(struct hal_peer *hp)
{
	struct emu_peer *peer = emu_peer(hp);
	struct emu_conn *conn = peer->out != NULL ? peer->out : peer->in;
	uint32_t sleep = 0;
	union emu_msg msg;

	/* an answer that is owed must come first, and wakes too */
	if (conn == NULL || (conn->todo & EMU_TODO_ANSWER))
		return;
	if (hp->tx.sleep != NULL)
		/* the packet before it is ordered by the sleeper's barrier */
		sleep = atomic_load_explicit(&hp->tx.sleep->asleep,
					     memory_order_relaxed);
	if (sleep != 0 && sleep == peer->woken)
		return;
	if (emu_conn_send(conn, &msg, sizeof(msg.head), EMU_WAKE, 0, NULL,
			  0) == 0)
		peer->woken = sleep;
	else if (errno == ENOBUFS || errno == ENOMEM)
		emu_todo_set(conn, EMU_TODO_WAKE);
	/* else it is gone, or full: of wake-ups that wait there already */
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

/* It said who it is, or need not any more. */
void emu_conn_spoke(struct emu_conn *conn)
{
	conn->eif->nmute -= conn->mute;
	conn->mute = false;
}

/* The object lives on until the events at hand are handled. */
void emu_conn_close(struct emu_conn *conn)
{
	struct emu_if *eif = conn->eif;

	emu_todo_clear(conn, ~0u);
	emu_conn_spoke(conn);
	emu_unwatch(eif, &conn->src);
	/* a forked child may hold the socket too: close() alone tells nobody */
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

/* A process that ended; its memory may still be there, its threads are not. */
bool emu_pidfd_dead(int pidfd)
{
	struct pollfd pfd = { .fd = pidfd, .events = POLLIN };

	return pidfd >= 0 && poll(&pfd, 1, 0) > 0;
}

/* Watch this process; fd becomes the peer's. */
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
