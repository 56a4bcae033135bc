/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_conn.c - control connections: one TCP connection per pair of
 * interfaces on different hosts.
 *
 * A connection proves that both sides know the secret (hal_net_auth.c), swaps
 * what frames need (hal_net_meet.c), and then only shows that the peer lives:
 * the kernel answers its probes while the process computes or is stopped. Its
 * end is the end of the peer, unless both sides have agreed to suspend it
 * (hal_net_suspend.c). hal_net_conn.h declares the entry points.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hal/hal_fault_point.h"
#include "hal/hal_log.h"
#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_load.h"
#include "hal/net/hal_net_loss.h"
#include "hal/net/hal_net_redial.h"
#include "hal/net/hal_net_silence.h"
#include "hal/net/hal_net_state.h"
#include "util/unm_clock.h"

#define EVENTS_BURST	64
#define ACCEPT_NS	UINT64_C(100000000)	/* pause without descriptors */

/* ---- Sockets ------------------------------------------------------- */

static void set_option(int fd, int level, int name, int value)
{
	setsockopt(fd, level, name, &value, sizeof(value));
}

/* For how long a host may be silent. (Tests set less than a question takes.) */
static uint32_t dead_ms(const struct net_if *nif)
{
	uint64_t ms = nif->net->dead_ns / 1000000;

	return ms > NET_PROBE_MS ? (uint32_t)ms : NET_PROBE_MS;
}

/* A socket bound to the address of this host: of a listener, at a port if it is
 * not 0, or one that dials. */
static int sock_open(const struct net_if *nif, uint16_t port, bool dials)
{
	struct sockaddr_storage sa;
	socklen_t len = net_host_sockaddr(nif->host.ip, port, &sa);
	int fd, ret;

	fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
		    0);
	if (fd < 0)
		return -errno;
	if (port != 0)		/* despite connections of a former listener */
		set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (dials)		/* connect() chooses a port: connections to
				 * different hosts may have the same one */
		set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
	if (bind(fd, (struct sockaddr *)&sa, len) == 0)
		return fd;
	/* a dial binds no port: this host does not have its address any more */
	ret = dials && errno == EADDRNOTAVAIL ? -ENETDOWN : -errno;
	close(fd);
	return ret;
}

static int listener_open(const struct net_if *nif, uint16_t port)
{
	int fd = sock_open(nif, port, false), ret;

	if (fd < 0 || listen(fd, SOMAXCONN) == 0)
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static int watch(struct net_if *nif, struct net_src *src, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	if (epoll_ctl(nif->epfd, EPOLL_CTL_MOD, src->fd, &ev) == 0 ||
	    epoll_ctl(nif->epfd, EPOLL_CTL_ADD, src->fd, &ev) == 0)
		return 0;
	return -errno;
}

/* Accept connections only while there is a place, and a descriptor, for one
 * more. */
static void listen_again(struct net_if *nif)
{
	bool on = nif->nhalf < NET_HALF_MAX && nif->accept_at == 0;

	if (on == nif->listening)
		return;
	if (!on)
		epoll_ctl(nif->epfd, EPOLL_CTL_DEL, nif->listen.fd, NULL);
	else if (watch(nif, &nif->listen, EPOLLIN) != 0) {
		nif->accept_at = unm_now_ns() + ACCEPT_NS;
		return;
	}
	nif->listening = on;
}

int net_listen(struct net_if *nif)
{
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	char text[64];
	int fd, ret;

	fd = listener_open(nif, nif->host.port);
	if (fd < 0 && nif->host.port != 0) {
		hal_log(1, "port %u at %s: %s; other hosts do not reach "
			"interface %u:%u by its number", nif->host.port,
			net_host_text(&nif->host, text), strerror(-fd),
			nif->hif->addr.board, nif->hif->addr.iface);
		fd = listener_open(nif, 0);
	}
	ret = fd < 0 ? fd : 0;
	if (ret == 0 && getsockname(fd, (struct sockaddr *)&sa, &len) != 0)
		ret = -errno;
	if (ret != 0) {
		hal_log(0, "cannot listen at %s for other hosts: %s%s",
			net_host_text(&nif->host, text), strerror(-ret),
			hal_log_advice(ret, ""));
		if (fd >= 0)
			close(fd);
		return ret;
	}
	/* the port is at the same place in both kinds of address */
	nif->host.port = ntohs(((struct sockaddr_in *)&sa)->sin_port);
	nif->listen.fd = fd;
	listen_again(nif);
	return 0;
}

/* ---- Connections --------------------------------------------------- */

/* The secret of the session with a peer that dials again. */
static bool session_of(void *owner, const uint8_t name[NET_NAME],
		       uint8_t secret[NET_SECRET])
{
	uint8_t known[NET_NAME];
	struct net_peer *peer;
	struct hal_addr addr;
	struct hal_host host;

	if (!net_host_parse(name, &addr, &host))
		return false;
	peer = net_peer_find(owner, &addr);
	if (peer == NULL || peer->p.dead || peer->dying != 0 || !peer->met)
		return false;
	net_host_name(&peer->p.addr, &peer->host, known);
	memcpy(secret, peer->session, NET_SECRET);
	return memcmp(known, name, NET_NAME) == 0;
}

static struct net_conn *conn_new(struct net_if *nif, int fd)
{
	struct net_conn *conn = calloc(1, sizeof(*conn));

	if (conn == NULL)
		return NULL;
	conn->src.kind = NET_SRC_CONN;
	conn->src.fd = fd;
	conn->nif = nif;
	conn->auth.mac = nif->crypto->mac;
	conn->auth.equal = nif->crypto->equal;
	conn->auth.session = session_of;
	conn->auth.owner = nif;
	if (getrandom(conn->auth.nonce, NET_NONCE, 0) != NET_NONCE) {
		free(conn);
		return NULL;
	}
	set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	net_watch(fd, dead_ms(nif));
	if (unm_list_empty(&nif->conns))
		nif->check = unm_now_ns() + nif->net->dead_ns;
	unm_list_append(&nif->conns, &conn->link);
	return conn;
}

void net_conn_whole(struct net_conn *conn)
{
	conn->nif->nhalf -= conn->half;
	conn->half = false;
	conn->deadline = 0;
}

/* The object lives until the events of this round have been handled. */
static void conn_end(struct net_conn *conn, bool shut)
{
	struct net_if *nif = conn->nif;

	if (conn->src.fd < 0)
		return;
	net_conn_whole(conn);
	/* a forked child has the epoll object and the socket of its parent */
	if (shut) {
		epoll_ctl(nif->epfd, EPOLL_CTL_DEL, conn->src.fd, NULL);
		shutdown(conn->src.fd, SHUT_RDWR);
	}
	close(conn->src.fd);
	if (nif->accept_at != 0)	/* its descriptor is free: the next */
		nif->accept_at = 1;	/* tick, for which the timer wakes */
	conn->src.fd = -1;
	if (conn->peer != NULL)
		conn->peer->conn = NULL;
	conn->peer = NULL;
	unm_list_remove(&conn->link);
	unm_list_append(&nif->ended, &conn->link);
}

void net_conn_close(struct net_conn *conn)
{
	conn_end(conn, true);
}

void net_peer_unlink(struct net_peer *peer)
{
	struct net_link *link = peer->out;

	if (peer->conn != NULL)
		net_conn_close(peer->conn);
	if (peer->counted)
		/* relaxed: a number, which orders nothing */
		atomic_fetch_sub_explicit(&peer->nif->net->nlinks, 1,
					  memory_order_relaxed);
	peer->counted = false;
	net_peer_reached(peer);
	peer->out = NULL;
	if (link != NULL)
		peer->nif->engine->disconnect(link, peer->silent ?
					      peer->host.ip : NULL);
}

static void free_ended(struct net_if *nif)
{
	struct unm_list *node;

	while ((node = unm_list_pop(&nif->ended)) != NULL) {
		struct net_conn *conn = unm_container(node, struct net_conn,
						      link);

		explicit_bzero(&conn->auth, sizeof(conn->auth));
		free(conn);
	}
}

void net_conns_close(struct net_if *nif, bool shut)
{
	while (!unm_list_empty(&nif->conns))
		conn_end(unm_container(nif->conns.next, struct net_conn, link),
			 shut);
	free_ended(nif);
	if (nif->listen.fd < 0)
		return;
	if (shut)	/* the copy of a forked child would go on listening */
		shutdown(nif->listen.fd, SHUT_RDWR);
	close(nif->listen.fd);
	nif->listen.fd = -1;
}

/* Log that a host is lost, once for each interface. */
static void log_silence(struct net_peer *peer)
{
	struct net_if *nif = peer->nif;
	char text[64];

	hal_log(nif->said_silent, "%s does not answer for more than %llu ms: "
		"its interface %u:%u counts as ended",
		net_host_text(&peer->host, text),
		(unsigned long long)nif->net->dead_ns / 1000000,
		peer->p.addr.board, peer->p.addr.iface);
	nif->said_silent = true;
}

void net_conn_failed(struct net_conn *conn, int status)
{
	struct net_peer *peer = conn->peer;
	bool dialled = conn->dialled;

	net_conn_close(conn);
	if (peer == NULL)
		return;
	peer->silent = status == -FI_ETIMEDOUT;
	if (peer->silent && peer->state >= NET_UP)
		log_silence(peer);
	if (dialled && peer->state < NET_UP && peer->dying == 0)
		net_dial_failed(peer, status);
	else if (peer->state != NET_MEETING ||
		 !net_accept_failed(peer, status))
		net_peer_lost(peer, "control connection", status);
}

/* ---- Output -------------------------------------------------------- */

static void conn_output(struct net_conn *conn)
{
	ssize_t n;

	while (conn->nout != 0) {
		n = send(conn->src.fd, conn->out, conn->nout,
			 MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n <= 0)
			break;		/* an end is seen by the input */
		conn->nout -= (size_t)n;
		memmove(conn->out, conn->out + n, conn->nout);
	}
	watch(conn->nif, &conn->src, EPOLLIN |
	      (conn->nout != 0 ? EPOLLOUT : 0));
}

void net_conn_queue(struct net_conn *conn, const void *data, size_t len)
{
	if (len > sizeof(conn->out) - conn->nout)
		return;			/* never: messages are few and short */
	memcpy(conn->out + conn->nout, data, len);
	conn->nout += len;
	if (!conn->waiting)
		conn_output(conn);
}

void net_conn_send(struct net_conn *conn, void *msg, size_t len)
{
	net_conn_queue(conn, msg, net_auth_seal(&conn->auth, msg, len));
}

/* ---- Input --------------------------------------------------------- */

static void log_refusal(int ret)
{
	hal_log(1, "a connection from another host is refused: %s",
		ret == -FI_EACCES ? "wrong secret" :
		ret == -EPROTO ? "no message of unimem" :
		ret == -EPROTONOSUPPORT ? "another version" :
		"it asks for another interface");
}

/* Read proofs. Returns how many bytes were taken, or a negative errno. */
static ssize_t prove(struct net_conn *conn, const uint8_t *data, size_t len)
{
	size_t used;
	int ret;

	ret = net_auth_input(&conn->auth, data, len, &used);
	if (conn->auth.nout != 0)
		net_conn_queue(conn, conn->auth.out, conn->auth.nout);
	conn->auth.nout = 0;
	if (ret != 0) {
		if (!conn->dialled)
			log_refusal(ret);
		return ret;
	}
	if (conn->auth.state == NET_AUTH_DONE)
		conn->nif->proven(conn);
	return (ssize_t)used;
}

static int conn_bytes(struct net_conn *conn, const uint8_t *data, size_t len)
{
	ssize_t n;
	int ret = 0;

	while (ret == 0 && len != 0 && conn->src.fd >= 0) {
		if (conn->auth.state != NET_AUTH_DONE) {
			n = prove(conn, data, len);
			if (n < 0)
				return (int)n;
		} else {
			n = (ssize_t)(sizeof(conn->in) - conn->nin);
			if ((size_t)n > len)
				n = (ssize_t)len;
			if (n == 0)
				return -EPROTO;	/* too much before its link */
			memcpy(conn->in + conn->nin, data, (size_t)n);
			conn->nin += (size_t)n;
			ret = conn->nif->control(conn);
		}
		data += n;
		len -= (size_t)n;
	}
	return ret;
}

/* The status of a connection from which recv() has returned n <= 0. Attempts to
 * connect treat a reset as an orderly end: net_dial_failed(). */
static int conn_ended(const struct net_conn *conn, ssize_t n)
{
	if (n < 0 && errno != ECONNRESET)
		return -FI_ETIMEDOUT;
	if (n == 0 || (conn->dialled && conn->peer->state < NET_UP))
		return 0;
	return -FI_ECONNRESET;
}

/* The connection has ended while its link waits. Execute the messages that wait
 * for the link: the peer may have notified this side that it ends. */
static void read_waiting(struct net_conn *conn)
{
	if (conn->link_at == 0)
		return;
	conn->link_at = 0;
	(void)conn->nif->control(conn);
}

static void conn_input(struct net_conn *conn)
{
	uint8_t data[2048];
	ssize_t n;
	int ret;

	while (conn->src.fd >= 0) {
		n = recv(conn->src.fd, data, sizeof(data), MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			ret = conn_ended(conn, n);
			read_waiting(conn);
			net_conn_failed(conn, ret);
			return;
		}
		ret = conn_bytes(conn, data, (size_t)n);
		if (ret != 0 && conn->src.fd >= 0)
			net_conn_failed(conn, ret);
	}
}

/* ---- Dialling and accepting ---------------------------------------- */

void net_dial(struct net_peer *peer)
{
	struct net_if *nif = peer->nif;
	uint8_t self[NET_NAME], name[NET_NAME], key[NET_SECRET];
	bool by_key = net_peer_by_key_file(peer);
	struct sockaddr_storage sa;
	struct net_conn *conn;
	socklen_t len;
	int fd;

	peer->redial = 0;
	/* anyone could compute the proofs of an empty key */
	fd = by_key && nif->net->key.len == 0 ? -FI_EACCES :
		sock_open(nif, 0, true);
	conn = fd < 0 ? NULL : conn_new(nif, fd);
	if (conn == NULL) {
		if (fd >= 0)
			close(fd);
		net_dial_failed(peer, fd < 0 ? fd : -FI_ENOMEM);
		return;
	}
	conn->dialled = true;
	conn->waiting = true;
	/* the kernel needs longer to find that a host is not there */
	conn->deadline = unm_now_ns() + nif->net->dead_ns +
		(peer->reaching ? nif->net->dial_ns : 0);
	conn->peer = peer;
	peer->conn = conn;
	net_host_name(&nif->hif->addr, &nif->host, self);
	net_host_name(&peer->p.addr, &peer->host, name);
	if (by_key)
		net_key_secret(&nif->net->key, conn->auth.mac, key);
	net_auth_dial(&conn->auth, self, name, peer->met ? NET_KIND_SESSION :
		      by_key ? NET_KIND_KEY : NET_KIND_ADDRESS,
		      peer->met ? peer->session : by_key ? key : peer->secret);
	explicit_bzero(key, sizeof(key));
	net_conn_queue(conn, conn->auth.out, conn->auth.nout);
	conn->auth.nout = 0;
	len = net_host_sockaddr(peer->host.ip, peer->host.port, &sa);
	if ((connect(fd, (struct sockaddr *)&sa, len) != 0 &&
	     errno != EINPROGRESS) || watch(nif, &conn->src, EPOLLOUT) != 0)
		net_conn_failed(conn, -errno);
	HAL_FAULT_POINT(HAL_FAULT_POINT_HELLO_SENT);
}

/*
 * The TCP connection is there, or it failed. The caller of net_connect() waits
 * for an interface that it names by its number, so that its answer has a time;
 * a peer with a whole address may compute as long as it wants.
 */
static void conn_ready(struct net_conn *conn)
{
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(conn->src.fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err != 0) {
		net_conn_failed(conn, -err);
		return;
	}
	conn->waiting = false;
	net_watch_ready(conn->src.fd);
	conn->deadline = !conn->peer->by_key || conn->peer->met ? 0 :
		unm_now_ns() + conn->nif->net->dial_ns;
	conn_output(conn);
}

/*
 * accept4() has failed. Without a descriptor or memory the connection stays in
 * the backlog, and would wake a sleeper again and again: accept nothing for a
 * while, or until a connection ends.
 */
static void accept_failed(struct net_if *nif, int err)
{
	if (err != EMFILE && err != ENFILE && err != ENOMEM && err != ENOBUFS)
		return;
	hal_log(nif->said_full, "interface %u:%u cannot accept connections of "
		"other hosts, which wait: %s%s", nif->hif->addr.board,
		nif->hif->addr.iface, strerror(err), hal_log_advice(-err, ""));
	nif->said_full = true;
	nif->accept_at = unm_now_ns() + ACCEPT_NS;
}

static void accept_some(struct net_if *nif)
{
	bool has_key = nif->net->key.len != 0;
	uint8_t self[NET_NAME], key[NET_SECRET];
	struct net_conn *conn;
	uint64_t now;
	int fd;

	if (nif->crypto == NULL)
		nif->crypto = net_crypto_get();
	while (nif->nhalf < NET_HALF_MAX) {
		fd = accept4(nif->listen.fd, NULL, NULL,
			     SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			accept_failed(nif, errno);
			break;
		}
		conn = nif->crypto == NULL ? NULL : conn_new(nif, fd);
		if (conn == NULL) {
			close(fd);
			continue;
		}
		net_watch_ready(fd);
		conn->half = true;
		nif->nhalf++;
		now = unm_now_ns();
		conn->crowded = now + nif->net->half_ns;
		conn->deadline = now + nif->net->dial_ns;
		net_host_name(&nif->hif->addr, &nif->host, self);
		if (has_key)
			net_key_secret(&nif->net->key, conn->auth.mac, key);
		net_auth_accept(&conn->auth, self, nif->host.secret,
				has_key ? key : NULL);
		explicit_bzero(key, sizeof(key));
		if (watch(nif, &conn->src, EPOLLIN) != 0)
			net_conn_close(conn);
	}
	listen_again(nif);
}

static void handle(struct net_if *nif, struct net_src *src, uint32_t events)
{
	struct net_conn *conn = (struct net_conn *)src;
	uint64_t ticks;

	if (src->kind == NET_SRC_LISTEN)
		accept_some(nif);
	if (src->kind == NET_SRC_TIMER &&
	    read(src->fd, &ticks, sizeof(ticks)) < 0)
		return;			/* set anew meanwhile */
	if (src->kind != NET_SRC_CONN || conn->src.fd < 0)
		return;
	if (conn->waiting)
		conn_ready(conn);
	else if (events & EPOLLOUT)
		conn_output(conn);
	if (conn->src.fd >= 0 && !conn->waiting && (events & ~EPOLLOUT))
		conn_input(conn);
}

void net_conns_input(struct net_if *nif, int ms)
{
	/* each connection has its turn before net_conns_tick() ends what is
	 * overdue: after this process has computed for seconds, many are up at
	 * once. Connections without a proof are few, so that they cannot keep
	 * this loop busy. */
	uint32_t rounds = 2 + 2 * (nif->npeers + nif->nhalf) / EVENTS_BURST;
	struct epoll_event evs[EVENTS_BURST];
	int n;

	do {
		n = epoll_wait(nif->epfd, evs, EVENTS_BURST, ms);
		for (int i = 0; i < n; i++)
			handle(nif, evs[i].data.ptr, evs[i].events);
		free_ended(nif);
		ms = 0;
	} while (n == EVENTS_BURST && --rounds != 0);
}

/* ---- Time ---------------------------------------------------------- */

/* When a connection is given up or its link tried; UINT64_MAX: never. */
static uint64_t due(const struct net_conn *conn)
{
	if (conn->link_at != 0)
		return conn->link_at;
	if (conn->half && conn->nif->nhalf >= NET_HALF_MAX &&
	    conn->crowded < conn->deadline)
		return conn->crowded;
	return conn->deadline != 0 ? conn->deadline : UINT64_MAX;
}

/* Open a link again that lacked descriptors or memory. If these are lacking for
 * too long, the peer ends, unless it is connected for a receive alone. */
static void retry_link(struct net_conn *conn, uint64_t now)
{
	struct net_peer *peer = conn->peer;
	int ret;

	if (peer->reaching)
		conn->deadline = now + conn->nif->net->dial_ns;
	ret = conn->nif->control(conn);
	if (ret == 0 && conn->link_at != 0 && conn->deadline <= now) {
		net_conn_close(conn);
		net_log_unreached(peer, conn->link_status);
		net_peer_dying(peer, conn->link_status);
	} else if (ret != 0 && conn->src.fd >= 0) {
		net_conn_failed(conn, ret);
	}
}

/* End connections whose host is silent. The kernel does that too, but later,
 * and may not where its questions do not leave this host. */
static void check_hosts(struct net_if *nif, uint64_t now)
{
	uint64_t next;

	nif->check = now + nif->net->dead_ns;
	unm_list_for_each_safe(pos, tmp, &nif->conns) {
		struct net_conn *conn = unm_container(pos, struct net_conn,
						      link);

		if (conn->waiting)
			continue;
		if (net_silent(&conn->silence, conn->src.fd, dead_ms(nif), now,
			       &next))
			net_conn_failed(conn, -FI_ETIMEDOUT);
		else if (next < nif->check)
			nif->check = next;
	}
}

void net_conns_tick(struct net_if *nif, uint64_t now)
{
	if (nif->check <= now && !unm_list_empty(&nif->conns))
		check_hosts(nif, now);
	unm_list_for_each_safe(pos, tmp, &nif->conns) {
		struct net_conn *conn = unm_container(pos, struct net_conn,
						      link);

		if (due(conn) <= now && conn->link_at != 0)
			retry_link(conn, now);
		else if (due(conn) <= now)
			net_conn_failed(conn, conn->dialled ?
					-FI_ETIMEDOUT : 0);
	}
	free_ended(nif);
	if (nif->accept_at <= now)
		nif->accept_at = 0;
	listen_again(nif);
}

uint64_t net_deadline(const struct net_if *nif)
{
	uint64_t first = unm_list_empty(&nif->conns) ? UINT64_MAX : nif->check;

	if (nif->accept_at != 0 && nif->accept_at < first)
		first = nif->accept_at;
	unm_list_for_each(pos, &nif->conns) {
		struct net_conn *conn = unm_container(pos, struct net_conn,
						      link);

		if (due(conn) < first)
			first = due(conn);
	}
	unm_list_for_each(pos, &nif->active) {
		struct net_peer *peer = unm_container(pos, struct net_peer,
						      active);

		if (peer->redial != 0 && peer->redial < first)
			first = peer->redial;
		if (peer->dying != 0 && !peer->p.dead && peer->dead_by < first)
			first = peer->dead_by;
		if (peer->dying == 0 && !peer->p.dead &&
		    net_loss_deadline(peer) < first)
			first = net_loss_deadline(peer);
	}
	return first;
}
