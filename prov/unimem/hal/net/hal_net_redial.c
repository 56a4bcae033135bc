/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_redial.c - connections to peers on other hosts that fail before
 * frames can be sent: which are dialled again, when, and for how long.
 *
 * hal_net_redial.h declares the entry points; docs/net.md, section 4, defines
 * the limits. Sockets and the dials themselves are in hal_net_conn.c.
 */
#include <errno.h>
#include <string.h>

#include "hal/hal_log.h"
#include "hal/net/hal_net_host.h"
#include "hal/net/hal_net_redial.h"
#include "hal/net/hal_net_state.h"
#include "util/unm_clock.h"

#define DIALS_MIN	4		/* repetitions, however long the
					 * attempts take */
#define REDIAL_NS	UINT64_C(10000000)	/* pause after the first */
#define REDIAL_SHIFT	6		/* doubles up to 640 ms */

void net_log_unreached(struct net_peer *peer, int status)
{
	struct net_if *nif = peer->nif;
	bool nobody = peer->by_key && status == -FI_ECONNREFUSED;
	/* callers connect to a service or a mailbox to find out if it runs */
	bool quiet = nobody &&
		(peer->p.addr.iface == HAL_IF_SERVICE ||
		 peer->p.addr.iface == nif->hif->caps->ifs_per_board);
	char text[64];

	hal_log(nif->said || quiet, "interface %u:%u at %s port %u: %s%s",
		peer->p.addr.board, peer->p.addr.iface,
		net_host_text(&peer->host, text), peer->host.port,
		nobody ? "no process has this interface" :
		net_peer_by_key_file(peer) && status == -FI_EACCES ?
		nif->net->key.len == 0 ? "connections by board and interface "
		"need a key file (FI_UNIMEM_NET_KEY), and this process has "
		"none" :
		"has another key file, or none" :
		status == -FI_EACCES ? "does not know the secret of its "
		"address" : status == -EPROTONOSUPPORT ?
		"is of another version of unimem" :
		status == -EPROTO ? "is no interface of unimem" :
		status == -FI_ECONNREFUSED ? "its process has ended" :
		status == 0 ? "it ended all connections without an answer" :
		strerror(-status), hal_log_advice(status, ""));
	nif->said |= !quiet;
}

/*
 * May a repeated dial succeed? A process that computes lets its kernel accept
 * connections until the backlog is full, and closes connections whose proof
 * comes late while others wait: 0, and the first two. The network may be out
 * for a moment, which ends no connection that exists: the next three. Ports,
 * descriptors and memory of this process may become free: the rest.
 */
static bool is_passing(int status)
{
	static const int errors[] = {
		ETIMEDOUT, ECONNRESET,
		ENETUNREACH, EHOSTUNREACH, ENETDOWN,
		EADDRINUSE, EADDRNOTAVAIL, EMFILE, ENFILE, ENOMEM, ENOBUFS,
		ENOSPC,			/* fs.epoll.max_user_watches */
	};

	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (status == -errors[i])
			return true;
	return status == 0;
}

/* Is the host of the peer, as far as the kernel knows, not there? */
static bool is_outage(int status)
{
	return status == -ENETUNREACH || status == -EHOSTUNREACH ||
		status == -ENETDOWN;
}

/*
 * If the reason may pass, the peer is dialled again for a while. The number of
 * attempts counts too: this process may compute between them. For a receive
 * alone it is tried for as long as the receive waits, because many receivers
 * may fill the backlog of one sender that computes: only an outage ends the
 * peer. But if it gave its place to another peer, it has to wait for one.
 */
void net_dial_failed(struct net_peer *peer, int status)
{
	int shift = peer->tries < REDIAL_SHIFT ? peer->tries : REDIAL_SHIFT;
	bool endless = peer->reaching && !is_outage(status);
	uint64_t now = unm_now_ns();

	peer->state = NET_DIALLING;
	if (peer->reaching && peer->reach_by == 0 && is_passing(status)) {
		net_peer_pause(peer);
		return;
	}
	if (endless)
		peer->dial_by = 0;	/* an outage begins its time */
	else if (peer->tries == 0 || peer->dial_by == 0)
		peer->dial_by = now + peer->nif->net->dial_ns;
	if (is_passing(status) &&
	    (endless || now < peer->dial_by || peer->tries < DIALS_MIN)) {
		peer->tries++;
		peer->redial = now + (REDIAL_NS << shift);
		return;
	}
	net_log_unreached(peer, status);
	net_peer_dying(peer, status != 0 ? status : -FI_ECONNREFUSED);
}

bool net_accept_failed(struct net_peer *peer, int status)
{
	if (peer->dying != 0 || peer->silent || !is_passing(status) ||
	    (!peer->met && !peer->p.tx.open && !peer->by_key))
		return false;
	/* frames of a session that this side does not know: it cannot go on,
	 * and those of the next one have the same numbers */
	if (!peer->met && (peer->s.taken != 0 || peer->s.kept != 0))
		return false;
	if (!peer->met || peer->reaching || net_peer_unsent(peer)) {
		net_dial_failed(peer, status);
	} else {
		peer->state = NET_SUSPENDED;
		unm_list_remove(&peer->active);
	}
	return true;
}
