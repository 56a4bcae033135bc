/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_msg.c - the handshake and the other messages of connections.
 *
 * Entry points: emu_connect(), emu_take_message(), emu_hello_check(),
 * emu_conn_todo(). hal_emu_wire.h defines the messages.
 *
 * The sender of a link connects and sends HELLO with its pidfd and the link.
 * The receiver maps the link and answers with WELCOME and its own pidfd. If the
 * receiver sends packets too, the reverse link follows over the same
 * connection, with LINK and LINK_OK.
 *
 * Another process has written each message, so versions, lengths, descriptors
 * and fields are checked here, once, also in release builds.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/emu/hal_emu_attach.h"
#include "hal/emu/hal_emu_conn.h"
#include "hal/emu/hal_emu_connect.h"
#include "hal/emu/hal_emu_dma.h"
#include "hal/emu/hal_emu_event.h"
#include "hal/emu/hal_emu_link.h"
#include "hal/emu/hal_emu_msg.h"
#include "hal/emu/hal_emu_proof.h"
#include "hal/hal_peer.h"

/* ---- Answers ----------------------------------------------------------- */

static void hello_fill(struct emu_if *eif, struct emu_peer *peer,
		       struct emu_hello *m)
{
	struct hal_emu *emu = eif->emu;

	memset(m, 0, sizeof(*m));
	m->from = eif->i.addr;
	m->to = peer->p.addr;
	m->geo = emu->geo;
	m->flags = emu->membarrier ? EMU_F_BARRIER : 0;
	m->first = peer->p.tx.next;
	m->probe_addr = (uint64_t)(uintptr_t)emu->word;
	m->probe_word = emu->word_value;
}

/* Send conn->answer, which accepts a HELLO or a LINK. If that is not possible
 * now, the next service calls this again. */
static void send_answer(struct emu_conn *conn)
{
	struct emu_if *eif = conn->eif;
	union emu_msg msg;
	int ret;

	if (conn->answer == EMU_WELCOME) {
		hello_fill(eif, conn->peer, &msg.hello);
		if (conn->peer->out != NULL)
			msg.hello.flags |= EMU_F_CROSSED;
		ret = emu_conn_send(conn, &msg, sizeof(msg.hello), EMU_WELCOME,
				    0, &eif->emu->pidfd, 1);
	} else {
		ret = emu_conn_send(conn, &msg, sizeof(msg.head), EMU_LINK_OK,
				    0, NULL, 0);
	}
	if (ret == -FI_EAGAIN)
		emu_todo_set(conn, EMU_TODO_ANSWER);
	else
		emu_todo_clear(conn, EMU_TODO_ANSWER);
}

/* Reply to imports, in the order of the requests. If that is not possible now,
 * the next service calls this again. */
static void send_replies(struct emu_conn *conn)
{
	union emu_msg msg;
	int fd, ret;

	if (conn->todo & EMU_TODO_ANSWER) {	/* must be sent first */
		emu_todo_set(conn, EMU_TODO_REPLY);
		return;
	}
	while (conn->nreqs != 0) {
		memset(&msg.mem, 0, sizeof(msg.mem));
		msg.mem.key = conn->reqs[0];
		ret = emu_mem_lookup(conn->eif->emu, &conn->reqs[0], &fd,
				     &msg.mem);
		if (ret == 0) {
			ret = emu_conn_send(conn, &msg, sizeof(msg.mem),
					    EMU_MEM_REP, 0, &fd, 1);
			close(fd);
		} else {
			ret = emu_conn_send(conn, &msg, sizeof(msg.mem),
					    EMU_MEM_REP, ret, NULL, 0);
		}
		if (ret == -FI_EAGAIN) {
			emu_todo_set(conn, EMU_TODO_REPLY);
			return;
		}
		conn->nreqs--;
		memmove(&conn->reqs[0], &conn->reqs[1],
			conn->nreqs * sizeof(conn->reqs[0]));
	}
	emu_todo_clear(conn, EMU_TODO_REPLY);
}

void emu_conn_todo(struct emu_conn *conn)
{
	if (conn->todo & EMU_TODO_ANSWER)
		send_answer(conn);
	if (conn->todo & EMU_TODO_REPLY)
		send_replies(conn);
	if (conn->todo & EMU_TODO_WAKE) {
		emu_todo_clear(conn, EMU_TODO_WAKE);
		emu_wake(&conn->peer->p);
	}
}

/* ---- Connecting -------------------------------------------------------- */

static int no_descriptors(struct emu_if *eif, const struct hal_addr *peer)
{
	hal_log(emu_said(eif, EMU_SAID_STARVED),
		"interface %u:%u has no descriptors left for peer %u:%u "
		"(RLIMIT_NOFILE): raise it with ulimit -n", eif->i.addr.board,
		eif->i.addr.iface, peer->board, peer->iface);
	return -FI_EMFILE;
}

/* Send the link to the peer. -FI_ECONNREFUSED: the connection has ended. */
static int send_hello(struct emu_peer *peer, int link)
{
	struct emu_if *eif = emu_if(peer->p.hif);
	int fds[EMU_FDS_MAX] = { eif->emu->pidfd, link, eif->proof_fd };
	union emu_msg msg;
	int ret;

	hello_fill(eif, peer, &msg.hello);
	ret = emu_conn_send(peer->out, &msg, sizeof(msg.hello), EMU_HELLO, 0,
			    fds, EMU_FDS_MAX);
	HAL_FAULT_POINT(HAL_FAULT_POINT_HELLO_SENT);
	return ret == -FI_ECONNRESET ? -FI_ECONNREFUSED : ret;
}

/* Watch the process that listens, until WELCOME brings the pidfd of the peer.
 */
static int watch_listener(struct emu_peer *peer)
{
	int fd = emu_peer_pidfd(peer->out->src.fd, peer->out->pid);
	int ret;

	if (fd == -ESRCH || fd == -EINVAL)
		/* ended; a forked child still has its socket */
		return -FI_ECONNREFUSED;
	if (fd == -EMFILE || fd == -ENFILE)
		return no_descriptors(emu_if(peer->p.hif), &peer->p.addr);
	if (fd < 0)
		return 0;		/* no pidfd: only the end of the
					 * connection shows its end */
	ret = emu_pidfd_dead(fd) ? -FI_ECONNREFUSED :
	      emu_peer_watch(peer, fd, false);
	if (ret != 0)
		close(fd);
	return ret;
}

static int connect_new(struct emu_if *eif, const struct hal_addr *to,
		       struct emu_peer **out)
{
	struct emu_conn *conn;
	struct emu_peer *peer;
	int link, ret;

	ret = emu_sock_connect(eif, to, &conn);
	if (ret != 0)
		return ret;
	ret = emu_peer_new(eif, to, &peer);
	if (ret != 0) {
		emu_conn_close(conn);
		return ret;
	}
	peer->out = conn;
	conn->peer = peer;
	peer->pid = conn->pid;
	ret = watch_listener(peer);
	if (ret != 0)
		goto err_peer;
	ret = emu_watch(eif, &conn->src);
	if (ret != 0)
		goto err_peer;
	ret = emu_link_make(peer, &link);
	if (ret != 0)
		goto err_peer;
	ret = send_hello(peer, link);
	close(link);			/* the mapping keeps the memory */
	if (ret != 0)
		goto err_peer;
	*out = peer;
	return 0;

err_peer:
	emu_peer_drop(peer);
	return ret;
}

/* The peer has connected first: send the reverse link over its connection. */
static int connect_back(struct emu_peer *peer)
{
	struct emu_conn *conn = peer->in != NULL ? peer->in : peer->out;
	union emu_msg msg;
	int link, ret;

	if (conn->todo & EMU_TODO_ANSWER)
		return -FI_EAGAIN;	/* the answer must be sent first */
	ret = emu_link_make(peer, &link);
	if (ret != 0)
		return ret;
	memset(&msg.link, 0, sizeof(msg.link));
	msg.link.geo = emu_if(peer->p.hif)->emu->geo;
	msg.link.first = peer->p.tx.next;
	ret = emu_conn_send(conn, &msg, sizeof(msg.link), EMU_LINK, 0, &link,
			    1);
	close(link);
	if (ret != 0)
		emu_link_unmake(peer);
	return ret == -FI_ECONNRESET ? hal_connect_ending(&peer->p) : ret;
}

static bool addr_valid(const struct emu_if *eif, const struct hal_addr *a)
{
	return a->version == HAL_ADDR_VERSION && a->reserved == 0 &&
	       a->iface <= eif->i.caps->ifs_per_board;
}

static bool same_boards(struct emu_if *eif, const struct hal_addr *a)
{
	if (a->board < eif->i.caps->boards)
		return true;
	hal_log(emu_said(eif, EMU_SAID_BOARD),
		"interface %u:%u is on board %u, this process knows of %u: "
		"set the same FI_UNIMEM_BOARDS for all processes", a->board,
		a->iface, a->board, eif->i.caps->boards);
	return false;
}

int emu_connect(struct hal_if *hif, const struct hal_addr *to,
		struct hal_peer **hp)
{
	struct emu_if *eif = emu_if(hif);
	struct emu_peer *peer;
	int ret = 0;

	if (!addr_valid(eif, to) || !same_boards(eif, to))
		return -FI_EINVAL;
	peer = emu_peer_find(eif, to);
	if (peer != NULL && (peer->p.dead || peer->dying != 0) &&
	    to->nonce == HAL_ADDR_ANY)
		peer = NULL;		/* may have another holder now */
	if (peer == NULL)
		ret = connect_new(eif, to, &peer);
	else if (peer->p.dead || peer->dying != 0)
		return hal_connect_ending(&peer->p);
	else if (peer->p.addr.nonce != to->nonce &&
		 to->nonce != HAL_ADDR_ANY)
		return -FI_EAGAIN;	/* WELCOME brings the nonce */
	else if (!peer->p.tx.open)
		ret = connect_back(peer);
	if (ret != 0)
		return ret;
	*hp = &peer->p;
	return 0;
}

/* ---- Messages from peers --------------------------------------------- */

static bool geo_equal(const struct emu_geo *a, const struct emu_geo *b)
{
	return a->depth == b->depth && a->payload == b->payload &&
	       a->space_off == b->space_off &&
	       a->space_bytes == b->space_bytes && a->bytes == b->bytes;
}

/* Check the wire version of a message. -EPROTONOSUPPORT, after a log line that
 * names its sender with who and from (NULL: not known). */
static int check_version(struct emu_if *eif, const struct emu_head *head,
			 const char *who, const struct hal_addr *from)
{
	char name[32] = "";

	if (from != NULL)
		snprintf(name, sizeof(name), " %u:%u", from->board,
			 from->iface);
	if (head->version == EMU_WIRE)
		return 0;
	hal_log(emu_said(eif, EMU_SAID_VERSION),
		"interface %u:%u: the %s%s speaks version %u of the "
		"emulation, this process version %d: use one unimem build for "
		"all processes of a job", eif->i.addr.board, eif->i.addr.iface,
		who, name, head->version, EMU_WIRE);
	return -EPROTONOSUPPORT;
}

int emu_hello_check(struct emu_conn *conn, const struct emu_hello *m,
		    size_t len, const struct emu_fds *fds)
{
	struct emu_if *eif = conn->eif;
	const struct hal_addr *own = &eif->i.addr;
	const struct emu_geo *geo = &eif->emu->geo;
	int ret;

	if (check_version(eif, &m->head, "process that connects", NULL) != 0)
		return -EPROTONOSUPPORT;
	if (m->head.type != EMU_HELLO || len != sizeof(*m))
		return -FI_EINVAL;
	if (fds->lost)
		return no_descriptors(eif, &m->from);
	if (m->to.board != own->board || m->to.iface != own->iface ||
	    (m->to.nonce != own->nonce && m->to.nonce != HAL_ADDR_ANY))
		return -FI_ECONNREFUSED;	/* meant for a former holder */
	if (!geo_equal(&m->geo, geo)) {
		hal_log(emu_said(eif, EMU_SAID_GEO),
			"interface %u:%u uses %u packets of %u bytes, this "
			"process %u of %u: set the same FI_UNIMEM_PROFILE and "
			"FI_UNIMEM_MODEL for all processes", m->from.board,
			m->from.iface, m->geo.depth, m->geo.payload,
			geo->depth, geo->payload);
		return -EPROTONOSUPPORT;
	}
	if (!same_boards(eif, &m->from))
		return -EPROTONOSUPPORT;
	if (!addr_valid(eif, &m->from) || m->from.nonce == HAL_ADDR_ANY ||
	    fds->n != EMU_FDS_MAX)
		return -FI_EINVAL;
	ret = emu_proof_check(conn, &m->from, fds->fd[2]);
	if (ret == -FI_EACCES)
		hal_log(1, "a process that claims to be interface %u:%u is not",
			m->from.board, m->from.iface);
	if (ret == 0)
		ret = emu_pidfd_check(conn, fds->fd[0]);
	return ret == -FI_EMFILE ? no_descriptors(eif, &m->from) : ret;
}

/* The peer object for a HELLO: of a peer that this interface is connecting to,
 * or a new one (*fresh). -FI_ECONNREFUSED: the address has an object that this
 * HELLO cannot belong to; -FI_EACCES: another process is known by it. */
static int hello_peer(struct emu_conn *conn, const struct hal_addr *from,
		      struct emu_peer **out, bool *fresh)
{
	struct emu_peer *peer = emu_peer_find(conn->eif, from);

	*fresh = peer == NULL;
	if (peer == NULL)
		return emu_peer_new(conn->eif, from, out);
	if (peer->p.dead || peer->p.rx.cells != NULL || peer->in != NULL)
		return -FI_ECONNREFUSED;
	if (peer->pid != conn->pid)
		return -FI_EACCES;
	/* if the nonce was not known, WELCOME must have the same */
	peer->p.addr.nonce = from->nonce;
	*out = peer;
	return 0;
}

/* Note what a HELLO or WELCOME says about the process of the peer. */
static void peer_facts(struct emu_peer *peer, const struct emu_hello *m)
{
	peer->probe_addr = m->probe_addr;
	peer->probe_word = m->probe_word;
	if (!(m->flags & EMU_F_BARRIER) && !peer->ticks) {
		peer->ticks = true;
		emu_if(peer->p.hif)->nticks++;
	}
	emu_attach_probe(peer);
}

static int take_hello(struct emu_conn *conn, const struct emu_hello *m,
		      size_t len, struct emu_fds *fds)
{
	struct emu_peer *peer;
	bool fresh;
	int ret;

	HAL_FAULT_POINT(HAL_FAULT_POINT_ACCEPTED);
	ret = emu_hello_check(conn, m, len, fds);
	if (ret == 0)
		ret = hello_peer(conn, &m->from, &peer, &fresh);
	if (ret != 0)
		return ret;
	if (!peer->welcomed) {
		ret = emu_peer_watch(peer, fds->fd[0], true);
		if (ret != 0)
			goto err_peer;
		fds->fd[0] = -1;
	}
	peer->pid = conn->pid;
	peer_facts(peer, m);
	/* Nothing can fail after this: the peer has an inbound half, and the
	 * event must follow. */
	ret = emu_link_take(peer, fds->fd[1], m->first);
	if (ret != 0)
		goto err_peer;
	HAL_FAULT_POINT(HAL_FAULT_POINT_MAPPED);
	peer->in = conn;
	conn->peer = peer;
	emu_conn_spoke(conn);
	emu_event(peer, HAL_EV_INBOUND, 0);
	conn->answer = EMU_WELCOME;
	send_answer(conn);
	return 0;

err_peer:
	if (fresh)
		emu_peer_drop(peer);
	return ret;
}

/* Is this interface connecting, or connected, to the sender of this HELLO? */
static bool is_connecting(struct emu_if *eif, const struct emu_hello *m)
{
	struct emu_peer *peer;

	if (m->head.version != EMU_WIRE)
		return false;		/* fields may have other offsets */
	peer = emu_peer_find(eif, &m->from);
	return peer != NULL && peer->dying == 0 && peer->out != NULL;
}

static const char *refusal(int status)
{
	if (status == -EPROTONOSUPPORT)
		return "it runs with another FI_UNIMEM_PROFILE, "
			"FI_UNIMEM_MODEL or FI_UNIMEM_BOARDS";
	if (status == -FI_EMFILE)
		return "it has no descriptors left (RLIMIT_NOFILE)";
	if (status == -FI_ECONNREFUSED)
		return "the address is of a process that is gone";
	return "it could not accept it";
}

static int take_welcome(struct emu_conn *conn, const struct emu_hello *m,
			size_t len, struct emu_fds *fds)
{
	struct emu_peer *peer = conn->peer;
	struct hal_addr *addr = &peer->p.addr;
	int ret;

	if (check_version(conn->eif, &m->head, "process at", addr) != 0)
		return -FI_ECONNREFUSED;
	if (m->head.type != EMU_WELCOME)
		return -FI_EIO;
	/* a refusal that is the head alone has no flags: they are read as 0 */
	peer->met_first = !(m->flags & EMU_F_CROSSED);
	if (m->head.status != 0) {
		peer->refused = true;
		if (m->head.status == -FI_ECONNREFUSED)
			emu_not_there(conn->eif, addr);
		/* an old address is usual: level 1; a process with another
		 * configuration is an error */
		hal_log(m->head.status != -EPROTONOSUPPORT ||
			emu_said(conn->eif, EMU_SAID_REFUSED),
			"interface %u:%u refuses the connection: %s",
			addr->board, addr->iface, refusal(m->head.status));
		return -FI_ECONNREFUSED;
	}
	if (len != sizeof(*m) || fds->n != 1 || fds->lost ||
	    m->from.board != addr->board || m->from.iface != addr->iface ||
	    m->from.nonce == HAL_ADDR_ANY ||
	    (addr->nonce != HAL_ADDR_ANY && m->from.nonce != addr->nonce))
		return fds->lost ? no_descriptors(conn->eif, addr) : -FI_EIO;
	ret = emu_pidfd_check(conn, fds->fd[0]);
	if (ret != 0)
		return ret == -FI_EMFILE ? no_descriptors(conn->eif, addr) :
		       -FI_EIO;
	addr->nonce = m->from.nonce;
	if (!peer->welcomed) {
		ret = emu_peer_watch(peer, fds->fd[0], true);
		if (ret != 0)
			return ret;
		fds->fd[0] = -1;
		peer_facts(peer, m);
	}
	peer->connected = true;
	emu_event(peer, HAL_EV_CONNECTED, 0);
	/* the peer may have fallen asleep before it had the link */
	emu_wake(&peer->p);
	return 0;
}

static int take_link(struct emu_conn *conn, const struct emu_link_msg *m,
		     size_t len, struct emu_fds *fds)
{
	struct emu_peer *peer = conn->peer;
	int ret;

	if (len != sizeof(*m) || peer->p.rx.cells != NULL ||
	    !geo_equal(&m->geo, &conn->eif->emu->geo))
		return -FI_EIO;
	if (fds->n != 1)
		ret = fds->lost ? -FI_EMFILE : -FI_EIO;
	else
		ret = emu_link_take(peer, fds->fd[0], m->first);
	if (ret != 0) {
		emu_refuse(conn, EMU_LINK_OK, ret);
		return ret;
	}
	HAL_FAULT_POINT(HAL_FAULT_POINT_MAPPED);
	emu_event(peer, HAL_EV_INBOUND, 0);
	conn->answer = EMU_LINK_OK;
	send_answer(conn);
	return 0;
}

static int take_link_ok(struct emu_conn *conn, const struct emu_head *m)
{
	struct emu_peer *peer = conn->peer;

	if (!peer->p.tx.open || peer->connected)
		return -FI_EIO;
	if (m->status != 0) {
		peer->refused = true;
		return -FI_ECONNREFUSED;
	}
	peer->connected = true;
	emu_event(peer, HAL_EV_CONNECTED, 0);
	emu_wake(&peer->p);
	return 0;
}

static int take_mem_req(struct emu_conn *conn, const struct emu_mem_msg *m,
			size_t len)
{
	if (len != sizeof(*m) || conn->nreqs == EMU_REQS_MAX)
		return -FI_EIO;
	if (conn->reqs == NULL) {
		conn->reqs = calloc(EMU_REQS_MAX, sizeof(*conn->reqs));
		if (conn->reqs == NULL)
			return -FI_ENOMEM;
	}
	conn->reqs[conn->nreqs++] = m->key;
	send_replies(conn);
	return 0;
}

int emu_take_message(struct emu_conn *conn, const union emu_msg *m,
			size_t len, struct emu_fds *fds)
{
	struct emu_peer *peer = conn->peer;
	int ret;

	if (len < sizeof(m->head) || m->head.magic != EMU_MAGIC ||
	    m->head.bytes != len)
		return -FI_EIO;
	if (peer == NULL) {
		ret = take_hello(conn, &m->hello, len, fds);
		conn->crossed = ret != 0 &&
			is_connecting(conn->eif, &m->hello);
		return ret;
	}
	if (conn == peer->out && !peer->connected)
		return take_welcome(conn, &m->hello, len, fds);
	if (m->head.version != EMU_WIRE)
		return -FI_EIO;
	switch (m->head.type) {
	case EMU_WAKE:
		conn->eif->check_ns = 0;
		return 0;
	case EMU_LINK:
		return take_link(conn, &m->link, len, fds);
	case EMU_LINK_OK:
		return take_link_ok(conn, &m->head);
	case EMU_MEM_REQ:
		return take_mem_req(conn, &m->mem, len);
	case EMU_MEM_REP:
		if (len != sizeof(m->mem))
			return -FI_EIO;
		emu_mem_reply(peer, &m->mem, fds);
		return 0;
	case EMU_BYE:
		conn->bye = true;
		return 0;
	default:
		return -FI_EIO;
	}
}

