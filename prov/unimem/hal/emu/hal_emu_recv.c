/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_recv.c - accepting connections and reading messages.
 *
 * Entry points: emu_accept(), emu_conn_input(), emu_conn_drain(), emu_unhold().
 * An interface listens on an abstract local socket, whose name hal_emu_name.c
 * takes. hal_emu_msg.c checks the messages and acts on them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hal/emu/hal_emu_conn.h"
#include "hal/emu/hal_emu_event.h"
#include "hal/emu/hal_emu_link.h"
#include "hal/emu/hal_emu_msg.h"
#include "hal/emu/hal_emu_recv.h"

#define ACCEPT_BURST	64		/* connections per emu_accept() */
#define INPUT_BURST	256		/* messages per emu_conn_input() */
#define DRAIN_ROUNDS	64		/* calls of it in emu_conn_drain() */

/* ---- Receiving ------------------------------------------------------- */

static void fds_close(struct emu_fds *fds)
{
	for (int i = 0; i < EMU_FDS_MAX; i++) {
		if (fds->fd[i] >= 0)
			close(fds->fd[i]);
		fds->fd[i] = -1;
	}
}

static void fds_collect(struct msghdr *mh, struct emu_fds *fds)
{
	fds->n = 0;
	for (int i = 0; i < EMU_FDS_MAX; i++)
		fds->fd[i] = -1;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c != NULL;
	     c = CMSG_NXTHDR(mh, c)) {
		size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < n; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int),
			       sizeof(fd));
			if (fds->n < EMU_FDS_MAX)
				fds->fd[fds->n] = fd;
			else
				close(fd);
			fds->n++;
		}
	}
	/* truncated: this process has no free descriptors, or, with EMU_FDS_MAX
	 * received, the message had too many */
	fds->lost = (mh->msg_flags & MSG_CTRUNC) && fds->n < EMU_FDS_MAX;
}

/* Receive one message with its descriptors, which the caller closes; there are
 * none if this fails. A message without data may have descriptors. Returns as
 * recvmsg(); SSIZE_MAX: the message is too long. */
static ssize_t conn_recv(struct emu_conn *conn, union emu_msg *msg,
			 struct emu_fds *fds, int flags)
{
	union {
		char buf[CMSG_SPACE(EMU_FDS_MAX * sizeof(int))];
		struct cmsghdr align;
	} ctl;
	struct iovec iov = { .iov_base = msg, .iov_len = sizeof(*msg) };
	struct msghdr mh = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = ctl.buf, .msg_controllen = sizeof(ctl.buf),
	};
	ssize_t n;

	memset(msg, 0, sizeof(*msg));
	n = recvmsg(conn->src.fd, &mh, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		mh.msg_controllen = 0;	/* recvmsg() has left it as it was */
	fds_collect(&mh, fds);
	return n > 0 && (mh.msg_flags & MSG_TRUNC) ? SSIZE_MAX : n;
}

/*
 * Must this HELLO wait until the peer object with its address is freed? True
 * for an object that is dead, or whose end was noticed, if the HELLO is of a
 * later peer object of the same process. But if both processes have connected
 * to each other at the same time, the HELLO belongs to the object that exists,
 * and must be read before that object is declared dead.
 */
static bool hello_hold(struct emu_conn *conn, const struct emu_hello *m)
{
	struct emu_peer *peer;

	if (m->head.magic != EMU_MAGIC || m->head.version != EMU_WIRE ||
	    m->head.type != EMU_HELLO)
		return false;
	peer = emu_peer_find(conn->eif, &m->from);
	if (peer == NULL)
		return false;
	if (peer->p.dead)
		return true;
	emu_conn_drain(peer->in);
	emu_conn_drain(peer->out);
	return peer->dying != 0 && (peer->in != NULL || peer->met_first ||
				    peer->p.rx.cells != NULL);
}

/*
 * An address has one peer object. A process that has freed its object of this
 * interface may connect again before the object here is freed: then its HELLO
 * stays unread until that. Only a process that proves that it holds the address
 * may wait. true: do not read the message now.
 */
static bool conn_hold(struct emu_conn *conn)
{
	struct emu_fds fds;
	union emu_msg m;
	ssize_t n;
	bool good;

	n = recv(conn->src.fd, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return true;		/* the HELLO must not arrive between
					 * this check and the read */
	if (n != (ssize_t)sizeof(m.hello) || !hello_hold(conn, &m.hello))
		return false;
	n = conn_recv(conn, &m, &fds, MSG_PEEK);
	good = n > 0 &&
	       emu_hello_check(conn, &m.hello, (size_t)n, &fds) == 0;
	fds_close(&fds);
	if (!good)
		return false;
	emu_unwatch(conn->eif, &conn->src);
	conn->held = true;
	return true;
}

void emu_unhold(struct emu_if *eif)
{
	struct emu_conn *conn, *next;

	eif->place_free = false;
	for (conn = eif->conns; conn != NULL; conn = next) {
		next = conn->next;
		if (!conn->held)
			continue;
		conn->held = false;
		if (emu_watch(eif, &conn->src) != 0)
			emu_conn_close(conn);
		else
			emu_conn_input(conn);
	}
}

/* Read one message and act on it. 1: done; 0: there is none now;
 * -FI_ECONNRESET: the connection has ended; another negative errno: the message
 * is wrong. */
static int conn_read(struct emu_conn *conn)
{
	union emu_msg msg;
	struct emu_fds fds;
	ssize_t n;
	int ret;

	if (conn->peer == NULL && conn_hold(conn))
		return 0;
	n = conn_recv(conn, &msg, &fds, 0);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		/* ECONNRESET is reported once, before the queued messages */
		return errno == EINTR || errno == ECONNRESET ? 1 :
		       -FI_ECONNRESET;
	if (n == 0)		/* the end, or a message without data */
		ret = -FI_ECONNRESET;
	else if (n == SSIZE_MAX)
		ret = -FI_EIO;
	else
		ret = emu_take_message(conn, &msg, (size_t)n, &fds);
	fds_close(&fds);
	return ret != 0 ? ret : 1;
}

/* The status for emu_mark_dying(), if conn_read() returned why. */
static int end_status(const struct emu_conn *conn, int why)
{
	if (why != -FI_ECONNRESET)
		return why;
	if (conn == conn->peer->out && !conn->peer->connected)
		return -FI_ECONNREFUSED;
	return conn->bye ? -FI_ESHUTDOWN : -FI_ECONNRESET;
}

bool emu_conn_input(struct emu_conn *conn)
{
	int ret = 1;

	for (int i = 0; i < INPUT_BURST && ret == 1; i++)
		ret = conn_read(conn);
	if (ret >= 0)
		return ret == 1;
	if (conn->peer != NULL) {
		emu_mark_dying(conn->peer, end_status(conn, ret));
		return false;
	}
	if (ret != -FI_ECONNRESET)
		emu_refuse(conn, EMU_WELCOME, ret);
	emu_conn_close(conn);
	return false;
}

void emu_conn_drain(struct emu_conn *conn)
{
	for (int i = 0; conn != NULL && i < DRAIN_ROUNDS; i++)
		if (!emu_conn_input(conn))
			break;
}

/* A connection without a HELLO costs a descriptor. There are too many: close
 * the oldest, unless its HELLO has come by now. Connections with held set are
 * closed only if there are no others. */
static void close_mute(struct emu_if *eif, const struct emu_conn *fresh)
{
	struct emu_conn *conn, *oldest = NULL;

	for (conn = eif->conns; conn != NULL; conn = conn->next) {
		if (!conn->mute || conn == fresh)
			continue;
		if (oldest == NULL || !conn->held)
			oldest = conn;
		if (!conn->held)
			break;
	}
	if (oldest == NULL)
		return;
	if (!oldest->held)
		emu_conn_input(oldest);
	if (!oldest->mute)
		return;
	hal_log(emu_said(eif, EMU_SAID_MUTE), "interface %u:%u: %u connections "
		"without a message: the oldest is closed",
		eif->i.addr.board, eif->i.addr.iface, eif->nmute);
	emu_conn_close(oldest);
}

/* Make the object of an accepted connection and read its messages. NULL: there
 * is none; fd is closed. The connection may have ended already: then its object
 * is freed after this service. */
static struct emu_conn *take_in(struct emu_if *eif, int fd)
{
	struct emu_conn *conn;

	if (emu_conn_new(eif, fd, &conn) != 0) {
		close(fd);
		return NULL;
	}
	conn->mute = true;
	if (++eif->nmute > eif->mute_max)
		close_mute(eif, conn);
	if (emu_watch(eif, &conn->src) != 0)
		emu_conn_close(conn);
	else
		emu_conn_input(conn);
	return conn;
}

/*
 * No descriptor is free to accept a connection with. Close the spare one,
 * accept one connection, refuse it with -FI_EMFILE, so that the process at the
 * other end can log why, and close it. false: stop accepting.
 */
static bool accept_starved(struct emu_if *eif)
{
	struct emu_conn *conn;
	int fd;

	hal_log(emu_said(eif, EMU_SAID_STARVED), "interface %u:%u cannot take "
		"a connection: no descriptors left (RLIMIT_NOFILE): raise it "
		"with ulimit -n", eif->i.addr.board, eif->i.addr.iface);
	if (eif->spare_fd < 0) {	/* another thread took it last time */
		eif->spare_fd = fcntl(eif->listen.fd, F_DUPFD_CLOEXEC, 0);
		return eif->spare_fd >= 0;
	}
	close(eif->spare_fd);
	fd = accept4(eif->listen.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	conn = fd >= 0 ? take_in(eif, fd) : NULL;
	if (conn != NULL && conn->mute && !conn->held) {
		emu_refuse(conn, EMU_WELCOME, -FI_EMFILE);
		emu_conn_close(conn);
	}
	eif->spare_fd = fcntl(eif->listen.fd, F_DUPFD_CLOEXEC, 0);
	return fd >= 0;
}

bool emu_accept(struct emu_if *eif)
{
	for (int i = 0; i < ACCEPT_BURST; i++) {
		int fd = accept4(eif->listen.fd, NULL, NULL,
				 SOCK_CLOEXEC | SOCK_NONBLOCK);

		if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
			if (!accept_starved(eif))
				return false;
			continue;
		}
		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return false;
		take_in(eif, fd);
	}
	return true;
}
