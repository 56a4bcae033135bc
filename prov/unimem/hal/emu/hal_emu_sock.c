/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_sock.c - connections between interfaces.
 *
 * An interface listens on an abstract local socket, whose name hal_emu_name.c
 * takes. A connection carries the descriptors of two peers to
 * each other, later wake-ups and imports; its end tells a closed interface, the
 * pidfd that came over it tells a process that died.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "hal/emu/hal_emu.h"

#define ACCEPT_BURST	64		/* connections taken per service */
#define INPUT_BURST	256		/* messages read per connection */
#define DRAIN_ROUNDS	64		/* of these, at the end of a peer */
#define FULL_ROUND	64		/* calls, see full_of_others() */

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

static int conn_new(struct emu_if *eif, int fd, struct emu_conn **out)
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
	conn->next = eif->buried;
	eif->buried = conn;
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

/* ---- Connecting ------------------------------------------------------ */

/* Was it a peer of ours, not long ago? */
static bool was_met(const struct emu_if *eif, const struct hal_addr *addr)
{
	for (uint32_t i = 0; i < EMU_MET_MAX && i < eif->nmet; i++)
		if (eif->met[i] == addr->nonce)
			return true;
	return false;
}

/*
 * Of one that was here its end is nothing unusual. Of others it may be that we
 * shall never meet: said once.
 */
void emu_not_there(struct emu_if *eif, const struct hal_addr *to)
{
	/* of a service that may be there, nobody has said that it is */
	bool quiet = (to->iface == HAL_IF_SERVICE &&
		      to->nonce == HAL_ADDR_ANY) ||
		     was_met(eif, to) || emu_said(eif, EMU_SAID_GONE);

	hal_log(quiet, "interface %u:%u is not "
		"where it was: its process has ended, or is in another network "
		"namespace (all of a job must share one)", to->board,
		to->iface);
}

/* A socket to connect with; negative errno, and one line that says why. */
static int caller_open(const struct hal_addr *to)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
			0);
	int ret;

	if (fd >= 0)
		return fd;
	ret = -errno;
	hal_log(0, "cannot connect to interface %u:%u: %s%s",
		to->board, to->iface, strerror(-ret),
		ret == -FI_EMFILE ? " (RLIMIT_NOFILE): raise it with "
		"ulimit -n" : "");
	return ret;
}

/*
 * Connect to form k of the name of an interface. -FI_EACCES: another user
 * listens there, *uid; or, then *uid is ours, the system does not permit it.
 */
static int connect_form(int fd, const struct hal_addr *to, int k, uid_t *uid)
{
	struct sockaddr_un sun;
	socklen_t len = emu_sock_name(&sun, "unimem", to, k);

	if (connect(fd, (struct sockaddr *)&sun, len) == 0)
		return emu_name_listener(fd, uid);
	*uid = geteuid();
	return errno == EINTR ? -FI_EAGAIN :
	       errno == EPERM ? -FI_EACCES : -errno;
}

/*
 * Connect to the first form of the name that another user does not hold.
 * -FI_EACCES: other users hold all of them. -FI_EAGAIN: the queues of the forms
 * in *full are full, bit k for form k. *uid is the last other user found.
 */
static int connect_forms(const struct hal_addr *to, int *fd, unsigned *full,
			 uid_t *uid)
{
	int ret = -FI_ECONNREFUSED, others = 0;
	uid_t who;

	for (int k = 0; k < EMU_NAMES; k++) {
		ret = connect_form(*fd, to, k, &who);
		if (ret == -FI_EAGAIN)
			*full |= 1u << k;
		if (ret == -FI_EAGAIN || ret == -FI_ECONNREFUSED)
			continue;
		if (ret != -FI_EACCES || who == geteuid())
			return ret;
		*uid = who;
		others++;
		close(*fd);
		*fd = caller_open(to);
		if (*fd < 0)
			return *fd;
	}
	if (others == EMU_NAMES)
		return -FI_EACCES;
	return *full != 0 ? -FI_EAGAIN : -FI_ECONNREFUSED;
}

/* Are all queues that are full those of other users, who may never accept? To
 * ask takes long where there are many sockets: do so now and then. */
static bool full_of_others(struct emu_if *eif, const struct hal_addr *to,
			   unsigned full, uid_t *uid)
{
	if (eif->nfull++ % FULL_ROUND != 0)
		return false;
	for (int k = 0; k < EMU_NAMES; k++)
		if ((full & 1u << k) &&
		    emu_name_owner(SOCK_SEQPACKET, to, k, uid) !=
		    EMU_OWNER_OTHER)
			return false;
	return true;
}

static void say_skipped(struct emu_if *eif, const struct hal_addr *to, int ret,
			uid_t uid)
{
	if (ret == -FI_EACCES)
		hal_log(emu_said(eif, EMU_SAID_BLOCKED), "user %u holds all "
			"names of interface %u:%u: it cannot be reached",
			(unsigned)uid, to->board, to->iface);
	else
		hal_log(emu_said(eif, EMU_SAID_SKIPPED) ? 2 : 1, "user %u "
			"holds a name of interface %u:%u, which is skipped",
			(unsigned)uid, to->board, to->iface);
}

int emu_sock_connect(struct emu_if *eif, const struct hal_addr *to,
		     struct emu_conn **conn)
{
	int fd = caller_open(to), ret;
	uid_t self = geteuid(), uid = self;
	unsigned full = 0;

	if (fd < 0)
		return fd;
	ret = connect_forms(to, &fd, &full, &uid);
	if (ret == -FI_EAGAIN && full_of_others(eif, to, full, &uid))
		ret = -FI_ECONNREFUSED;
	if (uid != self)
		say_skipped(eif, to, ret, uid);
	if (ret == 0)
		ret = conn_new(eif, fd, conn);
	else if (ret == -FI_ECONNREFUSED)
		emu_not_there(eif, to);
	if (ret != 0 && fd >= 0)
		close(fd);
	return ret;
}

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
	/* more than the process may have, not than a message has */
	fds->lost = (mh->msg_flags & MSG_CTRUNC) && fds->n < EMU_FDS_MAX;
}

/* One message with its descriptors, which are to be closed; as recvmsg(). */
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
	if (n > 0)
		fds_collect(&mh, fds);
	/* longer than any message: of no length that is right */
	return n > 0 && (mh.msg_flags & MSG_TRUNC) ? SSIZE_MAX : n;
}

/*
 * A peer that was given up may connect anew before its old self is freed here.
 * One object per address: its hello stays unread until then. true: it waits.
 * Only who shows that it holds the address is let wait.
 */
static bool conn_hold(struct emu_conn *conn)
{
	struct emu_fds fds;
	union emu_msg m;
	ssize_t n;
	bool good;

	n = recv(conn->src.fd, &m, sizeof(m), MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return true;		/* it must not come in between */
	if (n != (ssize_t)sizeof(m.hello) || !emu_hello_hold(conn, &m.hello))
		return false;
	n = conn_recv(conn, &m, &fds, MSG_PEEK);
	if (n <= 0)
		return false;
	good = emu_hello_check(conn, &m.hello, (size_t)n, &fds) == 0;
	fds_close(&fds);
	if (!good)
		return false;
	emu_unwatch(conn->eif, &conn->src);
	conn->held = true;
	return true;
}

/* A place became free: hear those who waited, who came first first. */
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

/* One message. 1: taken; 0: none now; -FI_ECONNRESET: end; else: bad. */
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
	if (n < 0)			/* told once, before what is queued */
		return errno == EINTR || errno == ECONNRESET ? 1 :
		       -FI_ECONNRESET;
	if (n == 0)
		return -FI_ECONNRESET;
	ret = n == SSIZE_MAX ? -FI_EIO :
	      emu_take_message(conn, &msg, (size_t)n, &fds);
	fds_close(&fds);
	return ret != 0 ? ret : 1;
}

/* What the end of a connection means for its peer. */
static int end_status(const struct emu_conn *conn, int why)
{
	if (why != -FI_ECONNRESET)
		return why;
	if (conn == conn->peer->out && !conn->peer->told_out)
		return -FI_ECONNREFUSED;
	return conn->bye ? -FI_ESHUTDOWN : -FI_ECONNRESET;
}

/* Read a connection until nothing is left or it ends; true: there is more. */
bool emu_conn_input(struct emu_conn *conn)
{
	int ret = 1;

	for (int i = 0; i < INPUT_BURST && ret == 1; i++)
		ret = conn_read(conn);
	if (ret >= 0)
		return ret == 1;
	if (conn->peer != NULL) {
		emu_doom(conn->peer, end_status(conn, ret));
		return false;
	}
	if (ret != -FI_ECONNRESET)
		emu_refuse(conn, EMU_WELCOME, ret);
	emu_conn_close(conn);
	return false;
}

/* Read all that is there, of a connection that may be at its end. */
void emu_conn_drain(struct emu_conn *conn)
{
	for (int i = 0; conn != NULL && i < DRAIN_ROUNDS; i++)
		if (!emu_conn_input(conn))
			break;
}

/* Who connects and says nothing costs a descriptor: of too many the oldest
 * goes, unless its hello came by now; if all of them wait, one that waits. */
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
		"on which nothing is said: the oldest is closed",
		eif->i.addr.board, eif->i.addr.iface, eif->nmute);
	emu_conn_close(oldest);
}

/* Hear a new connection. NULL: there is none. */
static struct emu_conn *take_in(struct emu_if *eif, int fd)
{
	struct emu_conn *conn;

	if (conn_new(eif, fd, &conn) != 0) {
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
 * No descriptor left to accept with: turn one caller away, in one line here and
 * in words there, as what comes with its hello does not fit.
 */
static bool accept_starved(struct emu_if *eif)
{
	struct emu_conn *conn;
	int fd;

	hal_log(emu_said(eif, EMU_SAID_STARVED), "interface %u:%u cannot take "
		"a connection: no descriptors left (RLIMIT_NOFILE): raise it "
		"with ulimit -n", eif->i.addr.board, eif->i.addr.iface);
	if (eif->spare_fd < 0) {	/* somebody else took the last one */
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

/* Take new connections and hear what they say; true: there are more. */
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
