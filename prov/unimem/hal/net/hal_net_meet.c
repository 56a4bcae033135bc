/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_meet.c - the messages of a control connection after the proofs: what
 * both sides need for frames, crossed connections, and orderly ends.
 *
 * hal_net_meet.h declares the entry points; docs/net.md, section 4, defines the
 * messages. Reading and writing the socket is in hal_net_conn.c.
 */
#include <errno.h>
#include <string.h>

#include "hal/hal_board.h"
#include "hal/hal_fault_point.h"
#include "hal/hal_log.h"
#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_load.h"
#include "hal/net/hal_net_meet.h"
#include "hal/net/hal_net_recv.h"
#include "hal/net/hal_net_send.h"
#include "hal/net/hal_net_state.h"
#include "hal/net/hal_net_suspend.h"
#include "util/unm_clock.h"

#define CROSSED_NS	UINT64_C(100000000)	/* wait for the other
						 * connection of both */
#define LINK_NS		UINT64_C(100000000)	/* pause without descriptors for
						 * a link */

/* ---- Output -------------------------------------------------------- */

/* Log at which address the engine has opened its port, if that is not the
 * address of this interface: its network may be another one. */
static void log_other_address(const struct net_if *nif)
{
	const char *device = nif->net->device;
	struct hal_host first = nif->host;
	char text[64], wanted[64];

	if (!net_host_first(device, &first) ||
	    memcmp(first.ip, nif->host.ip, sizeof(first.ip)) == 0)
		return;
	hal_log(1, "FI_UNIMEM_NET=%s: %s opens its port at %s, the first "
		"address of %s without a label, unless UCX_NET_DEVICES names "
		"another interface; to have it at %s, make that the first "
		"address, or give it an interface of its own (ip link add "
		"link %s type ipvlan)", nif->hif->hal->params.net,
		nif->engine->name, net_host_text(&first, text), device,
		net_host_text(&nif->host, wanted), device);
}

static int worker_open(struct net_if *nif)
{
	struct net_worker_conf conf = {
		.device = nif->net->device, .ipv6 = net_host_ipv6(&nif->host),
		.dead_ms = (unsigned)(nif->net->dead_ns / 1000000),
		.epfd = nif->epfd,
		.event = &nif->engine_src, .owner = nif, .up = &net_upcalls,
	};
	int ret;

	if (nif->worker != NULL)
		return 0;
	if (nif->engine == NULL)
		nif->engine = net_engine_get();
	if (nif->engine == NULL)
		return -FI_ENOSYS;	/* was logged */
	ret = nif->engine->open(&conf, &nif->worker);
	if (ret != 0) {
		hal_log(nif->said_start, "cannot start %s on %s for peers on "
			"other hosts: %s%s", nif->engine->name,
			nif->net->device, strerror(-ret),
			hal_log_advice(ret, ""));
		nif->said_start = true;
	} else {
		log_other_address(nif);
	}
	return ret;
}

/* This side's part of what both need for frames. */
struct meet_msg {
	struct net_meet meet;
	uint8_t worker[NET_WORKER_MAX + NET_MAC];
	size_t len;			/* bytes before NET_MAC */
};

/* 0; or why the engine or the address of its worker is not there. */
static int make_meet(const struct net_conn *conn, struct meet_msg *msg)
{
	const struct hal_caps *caps = conn->nif->hif->caps;
	const struct net_peer *peer = conn->peer;
	size_t len = NET_WORKER_MAX;
	int ret;

	memset(msg, 0, sizeof(*msg));
	msg->meet = (struct net_meet){
		.ctl.type = NET_CTL_MEET, .slot = peer->slot,
		.token = peer->token, .depth = caps->pkt_depth,
		.payload = caps->pkt_payload, .space = caps->space_bytes,
	};
	ret = worker_open(conn->nif);
	if (ret == 0)
		ret = conn->nif->engine->address(conn->nif->worker, msg->worker,
						 &len);
	msg->len = sizeof(msg->meet) + len;
	return ret;
}

static void send_meet(struct net_conn *conn, struct meet_msg *msg)
{
	net_conn_send(conn, msg, msg->len);
	conn->met = true;
}

void net_meet_bye(struct net_peer *peer, enum net_ctl_type type)
{
	struct {
		struct net_bye bye;
		uint8_t mac[NET_MAC];
	} msg = {
		.bye = {
			.ctl.type = type,
			.sent = peer->s.sent, .taken = peer->s.taken,
		},
	};

	if (peer->conn != NULL && peer->conn->met)
		net_conn_send(peer->conn, &msg, sizeof(msg.bye));
}

/* ---- Proven -------------------------------------------------------- */

/* The other side shall use the connection that this side has dialled, or dial
 * again. */
static void refuse_crossed(struct net_conn *conn)
{
	struct {
		struct net_ctl ctl;
		uint8_t mac[NET_MAC];
	} msg = { .ctl.type = NET_CTL_CROSSED };

	net_conn_send(conn, &msg, sizeof(msg.ctl));
	net_conn_close(conn);
}

/*
 * There is a connection already. If both sides dial at once, the connection
 * that the side with the lower name has dialled stays, so both decide alike.
 * One by which the peer may be connected stays always: either conn was dialled
 * before the peer knew of it, or the peer has dropped its object, and the end
 * of the old connection has not been read here yet; then the peer dials again.
 * A peer that continues the session while this side waits for its agreement to
 * suspend has agreed. True: conn is not used.
 */
static bool crossed(struct net_conn *conn, struct net_peer *peer)
{
	if (peer->state == NET_SUSPENDING &&
	    conn->auth.kind == NET_KIND_SESSION) {
		peer->resume_asked = false;	/* conn is the connection */
		net_suspend_now(peer);
	}
	if (peer->conn != NULL && (peer->conn->met ||
	    memcmp(conn->auth.self, conn->auth.peer, NET_NAME) < 0)) {
		refuse_crossed(conn);
		return true;
	}
	if (peer->conn != NULL)
		net_conn_close(peer->conn);
	peer->redial = 0;
	return false;
}

/*
 * A name that only a process of this host has. The backend connects such
 * processes, and the kernel vouches for them, so nobody else gets the identity
 * of one.
 */
static bool is_local(const struct net_if *nif, const struct hal_addr *addr,
		     const struct hal_host *host)
{
	const struct hal_if *hif = nif->hif;

	if (memcmp(host->id, nif->host.id, sizeof(host->id)) == 0 ||
	    memcmp(addr, &hif->addr, sizeof(*addr)) == 0)
		return true;
	for (uint32_t i = 0; i < hif->ninbound; i++) {
		const struct hal_peer *peer = hif->inbound[i];

		if (peer->host == NULL &&
		    memcmp(&peer->addr, addr, sizeof(*addr)) == 0)
			return true;
	}
	return false;
}

/*
 * Must the board of the other side be one that the directory has on another
 * host? A user who names a file of hosts gives all hosts the same file.
 * Slurm's list may differ, because jobs of two allocations connect to each
 * other, and this host may take a wrong place in it, because Hydra copies
 * SLURMD_NODENAME. MPI connects by addresses, for which neither matters. A
 * connection by board and interface relies on the numbers.
 */
static bool board_counts(const struct net_conn *conn)
{
	const struct net_dir *dir = conn->nif->net->dir;

	return dir != NULL &&
		(dir->asked || conn->auth.kind == NET_KIND_KEY);
}

/* Why a proven name is refused; NULL: it is not. */
static const char *why_refused(const struct net_conn *conn,
			       const struct hal_addr *addr,
			       const struct hal_host *host)
{
	const struct net_if *nif = conn->nif;
	const struct net_dir *dir = nif->net->dir;

	if (is_local(nif, addr, host))
		return "no process there has this name";
	if (addr->uid != nif->hif->addr.uid)
		return "it belongs to another user";
	if (board_counts(conn) &&
	    (hal_board_here(nif->hif->hal, addr->board) ||
	     addr->board >= dir->boards))
		return dir->asked ? "that host has no such board; do all hosts "
			"have the same FI_UNIMEM_NET_HOSTS?" :
			"that host has no such board by SLURM_JOB_NODELIST; "
			"FI_UNIMEM_NET_HOSTS names another list";
	return NULL;
}

/* Read the proven name of the other side. False: it is refused, which is
 * logged once for each interface. */
static bool take_name(const struct net_conn *conn, struct hal_addr *addr,
		      struct hal_host *host)
{
	struct net_if *nif = conn->nif;
	const char *why;
	char text[64];

	why = !net_host_parse(conn->auth.peer, addr, host) ?
		"no process has this name" : why_refused(conn, addr, host);
	if (why == NULL)
		return true;
	hal_log(nif->said, "interface %u:%u of user %u at %s is refused: %s",
		addr->board, addr->iface, addr->uid,
		net_host_text(host, text), why);
	nif->said = true;
	return false;
}

/*
 * A peer that this side connects to by its number, and whose nonce is not known
 * yet. By another connection it gets its name only if that one was proven by
 * the key file, as its own would be: an address of the same number may be that
 * of any process.
 */
static bool unnamed(const struct net_peer *peer)
{
	return peer != NULL && peer->p.addr.nonce == HAL_ADDR_ANY;
}

/*
 * Has the other side begun anew, although this side has a session with it and
 * no connection? Its object of this side was closed then, and so the local
 * object is of no use. But a connection that was dialled before the session
 * began may be read late: only a second one counts.
 */
static bool begun_anew(const struct net_conn *conn, struct net_peer *peer)
{
	if (conn->auth.kind == NET_KIND_SESSION || !peer->met ||
	    peer->state == NET_UP || peer->state == NET_SUSPENDING)
		return false;
	if (peer->contested)
		net_peer_dying(peer, -FI_ECONNRESET);
	peer->contested = true;
	return true;
}

/* The live object of the peer that dialled; NULL: there is none. False: the
 * connection cannot be used now. */
static bool find_peer(struct net_conn *conn, const struct hal_addr *addr,
		      const struct hal_host *host, struct net_peer **out)
{
	struct net_if *nif = conn->nif;
	struct net_peer *peer = net_peer_find(nif, addr);

	if (peer != NULL && (peer->p.dead || peer->dying != 0))
		peer = NULL;
	if (peer != NULL && begun_anew(conn, peer))
		return false;
	if (peer == NULL && conn->auth.kind == NET_KIND_SESSION)
		return false;		/* closed since its HELLO came */
	if (peer == NULL) {		/* connected to by its number? */
		peer = net_peer_at(nif, addr);
		if (unnamed(peer) && !net_peer_may_be_on(peer, host))
			peer = NULL;
		if (unnamed(peer) && conn->auth.kind != NET_KIND_KEY)
			return false;
		if (peer != NULL && !net_peer_name(peer, addr, host))
			peer = NULL;
	}
	*out = peer;
	return true;
}

/* A peer that dialled has proven its knowledge. */
static void proven_acceptor(struct net_conn *conn)
{
	struct net_if *nif = conn->nif;
	struct net_peer *peer;
	struct hal_addr addr;
	struct hal_host host;
	struct meet_msg msg;
	int ret;

	if (!take_name(conn, &addr, &host)) {
		net_conn_close(conn);
		return;
	}
	if (!find_peer(conn, &addr, &host, &peer)) {
		refuse_crossed(conn);
		return;
	}
	if (peer != NULL && crossed(conn, peer))
		return;
	ret = peer != NULL ? 0 : net_peer_new(nif, &addr, &host, &peer);
	if (ret != 0) {
		hal_log(0, "no memory for a peer on another host");
		net_conn_close(conn);
		return;
	}
	net_conn_whole(conn);
	conn->peer = peer;
	peer->conn = conn;
	net_peer_used(peer);
	peer->state = NET_MEETING;
	ret = make_meet(conn, &msg);
	if (ret == 0)
		send_meet(conn, &msg);
	else
		net_conn_failed(conn, ret);
	HAL_FAULT_POINT(HAL_FAULT_POINT_ACCEPTED);
}

void net_meet_proven(struct net_conn *conn)
{
	struct hal_addr addr;
	struct hal_host host;

	if (!conn->dialled) {
		proven_acceptor(conn);
		return;
	}
	if (!take_name(conn, &addr, &host)) {
		net_conn_failed(conn, -FI_EACCES);
		return;
	}
	if (!net_peer_name(conn->peer, &addr, &host)) {
		net_conn_failed(conn, -FI_ECONNREFUSED);
		return;
	}
	net_conn_whole(conn);
	conn->peer->state = NET_MEETING;
}

/* ---- Input --------------------------------------------------------- */

/* Frames may be sent. The first connection begins the session. */
static void peer_up(struct net_peer *peer)
{
	bool first = !peer->met;

	if (first)
		memcpy(peer->session, peer->conn->auth.next, NET_SECRET);
	peer->met = true;
	peer->contested = false;
	peer->tries = 0;
	peer->silent = false;		/* an earlier dial had no answer */
	net_peer_reached(peer);
	net_suspend_not(peer);
	if (peer->p.tx.open && first)
		net_peer_event(peer, HAL_EV_CONNECTED, 0);
}

/*
 * Open the link to the peer's worker. The side that dialled answers MEET then,
 * not before: until the other side has MEET, which connects it, this one may
 * still close the connection, if another one of both stays (crossed()). The
 * side that accepted has sent MEET. So the peer may have sent frames already,
 * and would take the end of the connection for the end of this process: the
 * connection waits if descriptors or memory are lacking, but no longer than
 * FI_UNIMEM_NET_DIAL_MS.
 */
static int link_open(struct net_conn *conn)
{
	struct net_if *nif = conn->nif;
	struct net_peer *peer = conn->peer;
	uint64_t now = unm_now_ns();
	struct meet_msg msg;
	int ret = 0;

	if (conn->dialled)
		ret = make_meet(conn, &msg);
	if (ret == 0)
		ret = nif->engine->connect(nif->worker, conn->worker,
					   conn->nworker, peer, &peer->out);
	if (ret == -FI_EMFILE || ret == -FI_ENOMEM) {
		if (conn->link_at == 0)
			conn->deadline = now + nif->net->dial_ns;
		conn->link_at = now + LINK_NS;
		conn->link_status = ret;
		return 0;
	}
	if (ret != 0)
		return ret;
	if (conn->dialled)
		send_meet(conn, &msg);
	conn->link_at = 0;
	conn->deadline = 0;
	net_suspend_count(peer);
	peer_up(peer);
	return 0;
}

/* len: bytes of the message; the address of the worker is its last part. */
static int on_meet(struct net_conn *conn, const struct net_meet *meet,
		   size_t len)
{
	const struct hal_caps *caps = conn->nif->hif->caps;
	struct net_peer *peer = conn->peer;

	if (peer->state != NET_MEETING || conn->nworker != 0 ||
	    len <= sizeof(*meet) || len - sizeof(*meet) > NET_WORKER_MAX)
		return -EPROTO;
	if (meet->depth != caps->pkt_depth ||
	    meet->payload != caps->pkt_payload ||
	    meet->space != caps->space_bytes) {
		hal_log(0, "interface %u:%u on another host has another "
			"FI_UNIMEM_PROFILE or version: refused",
			peer->p.addr.board, peer->p.addr.iface);
		return -FI_ECONNREFUSED;
	}
	peer->to_slot = meet->slot;
	peer->to_token = meet->token;
	conn->nworker = len - sizeof(*meet);
	memcpy(conn->worker, meet + 1, conn->nworker);
	return link_open(conn);
}

/* The other side ends, maybe before this side has opened its link. */
static int on_bye(struct net_conn *conn, const struct net_bye *bye, size_t len)
{
	struct net_peer *peer = conn->peer;

	if ((peer->state < NET_UP && conn->nworker == 0) ||
	    len != sizeof(*bye) ||
	    net_stream_ack(&peer->s, bye->taken) != 0)
		return -EPROTO;
	peer->bye = bye->ctl.type == NET_CTL_BYE ? -FI_ESHUTDOWN :
		    -FI_ECONNRESET;
	peer->bye_sent = bye->sent;
	net_peer_dying(peer, -FI_ECONNRESET);
	return 0;
}

static int on_control(struct net_conn *conn, const struct net_ctl *ctl,
		      size_t len)
{
	switch (ctl->type) {
	case NET_CTL_MEET:
		return on_meet(conn, (const struct net_meet *)ctl, len);
	case NET_CTL_BYE:
	case NET_CTL_LEAVE:
		return on_bye(conn, (const struct net_bye *)ctl, len);
	case NET_CTL_SUSPEND:
		return net_suspend_input(conn->peer,
					 (const struct net_bye *)ctl, len);
	case NET_CTL_KEEP:
		return net_keep_input(conn->peer);
	case NET_CTL_CROSSED:
		if (!conn->dialled || conn->peer->state >= NET_UP)
			return -EPROTO;
		conn->peer->state = NET_DIALLING;
		conn->peer->redial = unm_now_ns() + CROSSED_NS;
		net_conn_close(conn);
		return 0;
	default:
		return -EPROTO;
	}
}

int net_meet_input(struct net_conn *conn)
{
	_Alignas(8) uint8_t msg[NET_CTL_MAX];
	struct net_ctl ctl;
	size_t len;
	int ret = 0;

	if (conn->link_at != 0 && conn->link_at <= unm_now_ns())
		ret = link_open(conn);
	/* messages that follow MEET wait for the link */
	while (ret == 0 && conn->src.fd >= 0 && conn->link_at == 0 &&
	       conn->nin >= sizeof(ctl)) {
		memcpy(&ctl, conn->in, sizeof(ctl));
		if (ctl.bytes < sizeof(ctl) || ctl.bytes > NET_CTL_MAX)
			return -EPROTO;
		if (conn->nin < ctl.bytes)
			break;
		memset(msg, 0, sizeof(msg));
		memcpy(msg, conn->in, ctl.bytes);
		ret = net_auth_open(&conn->auth, msg);
		if (ret < 0)
			return ret;
		len = (size_t)ret;
		conn->nin -= ctl.bytes;
		memmove(conn->in, conn->in + ctl.bytes, conn->nin);
		ret = on_control(conn, (const struct net_ctl *)msg, len);
	}
	return ret;
}
