/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_connect.c - connects to interfaces: by an address with a host, as
 * launchers carry it, or by board and interface alone, as users type it and as
 * services publish it.
 *
 * hal_net_connect.h declares the entry points. For the second kind the
 * directory of the job's hosts (hal_net_dir.c) says where a board is, the
 * numbers of board and interface determine the port, and the key file takes the
 * place of the secret that an address with a host has.
 */
#include <string.h>

#include "hal/hal_board.h"
#include "hal/hal_log.h"
#include "hal/hal_peer.h"
#include "hal/net/hal_net_conn.h"
#include "hal/net/hal_net_connect.h"
#include "hal/net/hal_net_hosts.h"
#include "hal/net/hal_net_load.h"
#include "hal/net/hal_net_peer.h"
#include "hal/net/hal_net_state.h"
#include "util/unm_clock.h"

/* ---- Board and interface ------------------------------------------------ */

/* The port of an interface, of the board of this number on its host; 0: it has
 * none. The last interface of a board, which is the mailbox's, has the last of
 * the board's ports. */
static uint16_t port_of(const struct hal_if *hif, uint32_t board,
			uint32_t iface)
{
	uint32_t place = iface;

	if (iface == hif->caps->ifs_per_board)
		place = NET_DIR_IFS - 1;
	else if (iface == NET_DIR_IFS - 1)
		place = NET_DIR_IFS;
	return net_dir_port(hif->hal->params.net_port, board, place);
}

uint16_t net_known_port(const struct net_if *nif)
{
	const struct hal_if *hif = nif->hif;

	return nif->net->dir == NULL ? 0 :
		port_of(hif, hif->addr.board - hif->hal->first_board,
			hif->addr.iface);
}

/* Log a refusal, once for each interface. */
static int refuse(struct net_if *nif, const struct hal_addr *to, int ret,
		  const char *why)
{
	hal_log(nif->refused, "interface %u:%u is on another host, and %s",
		to->board, to->iface, why);
	nif->refused = true;
	return ret;
}

/* The IP address of a host of the directory, as net_hosts_ip(). */
static int find_ip(const struct net_if *nif, int k, uint8_t ip[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	bool v4 = memcmp(nif->host.ip, mapped, sizeof(mapped)) == 0;

	return net_hosts_ip(nif->net->dir, (uint32_t)k, v4, ip);
}

/* Where an interface of another host listens. */
static int find_host(struct net_if *nif, const struct hal_addr *to,
		     struct hal_host *host)
{
	struct net_dir *dir = nif->net->dir;
	int k = dir == NULL ? -1 : net_dir_of_board(dir, to->board);

	if (k < 0)
		return -FI_EINVAL;
	memset(host, 0, sizeof(*host));
	host->port = port_of(nif->hif, to->board - dir->host[k].first,
			     to->iface);
	if (host->port == 0)
		return refuse(nif, to, -FI_EINVAL, "only interfaces 0 to "
			      "62, and the last one, of its first boards have "
			      "a known port");
	if (nif->net->key.len == 0)
		return refuse(nif, to, -FI_EACCES, "connections by board and "
			      "interface need a key file (FI_UNIMEM_NET_KEY), "
			      "the same on all hosts");
	return find_ip(nif, k, host->ip) == 0 ? 0 : -FI_ECONNREFUSED;
}

static int dial_number(struct net_if *nif, const struct hal_addr *to)
{
	struct net_peer *peer;
	struct hal_host host;
	int ret;

	if (to->version != HAL_ADDR_VERSION || to->reserved != 0)
		return -FI_EINVAL;
	ret = find_host(nif, to, &host);
	if (ret != 0)
		return ret;
	if (nif->crypto == NULL)
		nif->crypto = net_crypto_get();
	if (nif->crypto == NULL)
		return -FI_ECONNREFUSED;
	ret = net_peer_new(nif, to, &host, &peer);
	if (ret != 0)
		return ret;
	peer->by_key = true;
	net_dial(peer);
	return -FI_EAGAIN;
}

/* The status of an attempt that has failed; its object is freed, so that the
 * next call dials again. 0: there is none, or a holder was found and has ended
 * since, and there may be another one. */
static int take_failed(struct net_if *nif, const struct hal_addr *to)
{
	unm_list_for_each(pos, &nif->peers) {
		struct net_peer *peer = unm_container(pos, struct net_peer,
						      link);
		int status = peer->dying;

		if (status == 0 || !net_peer_hidden(peer) ||
		    peer->p.addr.board != to->board ||
		    peer->p.addr.iface != to->iface)
			continue;
		net_peer_drop(peer, false);
		return status == -FI_ECONNRESET || status == -FI_ESHUTDOWN ?
			0 : status;
	}
	return 0;
}

/*
 * Is this peer at the host that has its board by the directory? Slurm's list
 * does not bind peers that were connected by address: a job of another
 * allocation numbers its boards by another list.
 */
static bool at_its_board(const struct net_peer *peer)
{
	const struct net_if *nif = peer->nif;
	const struct net_dir *dir = nif->net->dir;
	uint8_t ip[16];
	int k;

	if (dir == NULL || dir->asked || peer->by_key)
		return true;
	k = net_dir_of_board(dir, peer->p.addr.board);
	return k >= 0 && find_ip(nif, k, ip) == 0 &&
		memcmp(peer->host.ip, ip, sizeof(ip)) == 0;
}

/* The live peer at a board and interface by the directory; NULL: none. */
static struct net_peer *find_number(struct net_if *nif,
				    const struct hal_addr *to)
{
	unm_list_for_each(pos, &nif->peers) {
		struct net_peer *peer = unm_container(pos, struct net_peer,
						      link);

		if (net_peer_is_at(peer, to) && at_its_board(peer))
			return peer;
	}
	return NULL;
}

/* Connect to an interface of another host. As in the backends, the caller gets
 * the peer or the error once it is known whether the interface has a holder. */
static int connect_far(struct net_if *nif, const struct hal_addr *to,
		       struct net_peer **out)
{
	uint64_t now = unm_now_ns();
	struct net_peer *peer;
	int ret;

	net_conns_input(nif, 0);	/* for callers that only try again */
	net_conns_tick(nif, now);
	net_peers_tick(nif, now);
	peer = find_number(nif, to);
	if (peer == NULL) {
		ret = take_failed(nif, to);
		return ret != 0 ? ret : dial_number(nif, to);
	}
	if (peer->p.addr.nonce == HAL_ADDR_ANY)
		return -FI_EAGAIN;	/* ANSWER brings it */
	*out = peer;
	return 0;
}

int net_connect(struct hal_if *hif, const struct hal_addr *to,
		struct hal_peer **out)
{
	struct net_if *nif = net_if(hif);
	struct net_peer *peer = NULL;
	int ret;

	/* peers without the directory may number their boards as this host */
	if (to->nonce != HAL_ADDR_ANY)
		peer = net_peer_at(nif, to);
	if (peer == NULL && hal_board_here(hif->hal, to->board))
		return nif->base->connect(hif, to, out);
	if (net_forked(nif))
		return -FI_ECONNREFUSED;
	if (peer == NULL || peer->p.addr.nonce == HAL_ADDR_ANY) {
		ret = connect_far(nif, to, &peer);
		if (ret != 0)
			return ret;
	}
	net_peer_open(peer);
	*out = &peer->p;
	return 0;
}

/* ---- Address with a host ----------------------------------------------- */

int net_connect_host(struct hal_if *hif, const struct hal_addr *to,
		     const struct hal_host *host, struct hal_peer **out)
{
	struct net_if *nif = net_if(hif);
	struct net_peer *peer, *unnamed;
	int ret;

	if (host->port == 0)
		return net_connect(hif, to, out);
	if (memcmp(host->id, nif->host.id, sizeof(host->id)) == 0)
		return nif->base->connect(hif, to, out);
	if (to->version != HAL_ADDR_VERSION || to->reserved != 0 ||
	    to->nonce == HAL_ADDR_ANY ||
	    to->iface > hif->caps->ifs_per_board)
		return -FI_EINVAL;
	if (net_forked(nif))
		return -FI_ECONNREFUSED;
	if (nif->crypto == NULL)
		nif->crypto = net_crypto_get();
	if (nif->crypto == NULL)
		return -FI_ECONNREFUSED;
	peer = net_peer_find(nif, to);
	if (peer != NULL && (peer->p.dead || peer->dying != 0))
		return hal_connect_ending(&peer->p);
	unnamed = peer == NULL ? net_peer_at(nif, to) : NULL;
	if (unnamed != NULL && net_peer_may_be_on(unnamed, host))
		return -FI_EAGAIN;	/* ANSWER brings its nonce */
	if (peer == NULL) {
		ret = net_peer_new(nif, to, host, &peer);
		if (ret != 0)
			return ret;
		peer->secret_known = true;
		net_dial(peer);
	} else if (!peer->by_key) {
		/* it may have dialled, and have to be dialled after all */
		memcpy(peer->secret, host->secret, NET_SECRET);
		peer->secret_known = true;
	}
	net_peer_open(peer);
	*out = &peer->p;
	return 0;
}
