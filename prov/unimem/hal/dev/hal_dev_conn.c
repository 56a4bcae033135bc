/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_conn.c - connecting and accepting, receive space, words stored back.
 *
 * The table of holders (hal_dev_table.c) says who holds an interface, with
 * which identity and nonce, so that a stale address is refused before a packet
 * is sent. The sender of a HELLO is not trusted: the packetizer says from which
 * interface the packet is, and the driver says which interface allocated the
 * pages that the packet names. Both must agree. hal_dev_wire.h defines pages
 * and packets; hal_dev_life.c polls the pages later.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hal/dev/hal_dev_conn.h"
#include "hal/dev/hal_dev_mem.h"
#include "hal/dev/hal_dev_peer.h"
#include "hal/dev/hal_dev_pif.h"
#include "hal/dev/hal_dev_region.h"
#include "hal/dev/hal_dev_ring.h"
#include "hal/dev/hal_dev_table.h"
#include "hal/hal_peer.h"
#include "util/unm_clock.h"
#include "util/unm_random.h"

#define IMPORT_TRIES	1000	/* of an import that is waited for */
#define RETRY_NS	1000000u	/* ns: first wait between imports of a
					 * back page, or of receive space;
					 * doubled each time */
#define RETRY_NS_MAX	64000000u	/* ns: longest wait */

/* ---- Connecting -------------------------------------------------------- */

static bool addr_valid(const struct dev_if *dif, const struct hal_addr *a)
{
	return a->version == HAL_ADDR_VERSION && a->reserved == 0 &&
	       a->iface <= dif->i.caps->ifs_per_board &&
	       a->board < dif->i.caps->boards;
}

/* Fill in the link page. It does not name this interface, because the receiver
 * learns from the driver whose page it is. Returns dev_stored(). */
static int link_init(struct dev_peer *peer, uint64_t first)
{
	struct dev_if *dif = dev_if(peer->p.hif);
	struct dev_link link = {
		.magic = DEV_LINK_MAGIC,
		.wire = DEV_WIRE,
		.first = first,
		.space_bytes = dif->i.caps->space_bytes,
		.session = peer->session,
	};

	dif->io->store(&peer->link.map, 0, &link,
		       offsetof(struct dev_link, words));
	return dev_stored(peer, &peer->link.map);
}

/* Open the outbound half: allocate queue and pages. The HELLO is not sent
 * yet. */
static int open_out(struct dev_peer *peer)
{
	struct dev_if *dif = dev_if(peer->p.hif);
	uint64_t first = (uint64_t)dif->dev->hal.params.seq_start;
	uint64_t nonce = peer->p.addr.nonce;
	struct hal_tx *tx = &peer->p.tx;
	int ret;

	peer->queue = calloc(dif->i.caps->pkt_depth, sizeof(*peer->queue));
	if (peer->queue == NULL)
		return -FI_ENOMEM;
	ret = dev_region_alloc(dif->mm, dif->i.addr.board, DEV_PAGE, nonce, 0,
			       &peer->back);
	if (ret != 0)
		goto err_queue;
	ret = dev_region_alloc(dif->mm, peer->p.addr.board, DEV_PAGE, nonce,
			       peer->identity, &peer->link);
	if (ret != 0)
		goto err_back;
	tx->back = &dev_back(peer)->back;
	tx->sleep = &peer->sleep;
	tx->mask = dif->i.caps->pkt_depth - 1;
	tx->next = first;
	tx->limit = first;
	/* Relaxed: the HELLO that follows orders it. */
	atomic_store_explicit(&tx->back->done, first, memory_order_relaxed);
	ret = link_init(peer, first);
	if (ret != 0)
		goto err_link;
	peer->hello = DEV_HELLO_UNSENT;
	return 0;

err_link:
	tx->back = NULL;
	dev_region_drop(&peer->link);
err_back:
	dev_region_drop(&peer->back);
err_queue:
	free(peer->queue);
	peer->queue = NULL;
	return ret == -ESRCH || ret == -EHOSTDOWN || ret == -FI_ECONNRESET ?
	       -FI_ECONNREFUSED : ret;
}

/* The peer has connected first. */
static int open_back(struct dev_peer *peer)
{
	int ret = open_out(peer);

	return ret == -FI_ECONNREFUSED ? hal_connect_ending(&peer->p) : ret;
}

static int connect_new(struct dev_if *dif, const struct hal_addr *to,
		       struct dev_peer **out)
{
	struct hal_kdev_entry e;
	struct hal_addr addr = *to;
	struct dev_peer *peer;
	int ret;

	ret = dev_holder(dif, to->board, to->iface, &e);
	if (ret != 0)
		return ret;
	if (to->nonce != HAL_ADDR_ANY && to->nonce != e.nonce)
		return -FI_ECONNREFUSED;
	if (to->uid != e.uid || e.uid != dif->i.addr.uid)
		return -FI_EACCES;
	addr.nonce = e.nonce;
	ret = dev_peer_new(dif, &addr, e.identity, &peer);
	if (ret != 0)
		return ret;
	ret = open_out(peer);
	if (ret != 0) {
		dev_peer_drop(peer);
		return ret;
	}
	*out = peer;
	return 0;
}

int dev_connect(struct hal_if *hif, const struct hal_addr *to,
		struct hal_peer **hp)
{
	struct dev_if *dif = dev_if(hif);
	struct dev_peer *peer;
	int ret = 0;

	if (!addr_valid(dif, to))
		return -FI_EINVAL;
	peer = dev_peer_find(dif, to);
	if (peer != NULL && !dev_lives(peer)) {
		if (to->nonce != HAL_ADDR_ANY)
			return hal_connect_ending(&peer->p);
		peer = NULL;		/* another process may hold it now */
	}
	if (peer == NULL)
		ret = connect_new(dif, to, &peer);
	else if (peer->hello == DEV_HELLO_NONE)
		ret = open_back(peer);
	if (ret != 0)
		return ret;
	if (!dev_hello_send(peer))
		return dev_lives(peer) ? -FI_EAGAIN :
			hal_connect_ending(&peer->p);
	peer->p.tx.open = true;
	peer->known = true;
	*hp = &peer->p;
	return 0;
}

/* ---- Accepting --------------------------------------------------------- */

/* Import a region, and wait while the driver prepares it, for a bounded number
 * of calls. Returns 0, or -errno: the region may then have a hold, as after
 * dev_region_import(). */
static int import_soon(struct dev_if *dif, uint64_t ref, uint64_t secret,
		       struct dev_region *region, struct hal_kdev_import *imp)
{
	int ret = -EAGAIN;

	for (int i = 0; i < IMPORT_TRIES && ret == -EAGAIN; i++)
		ret = dev_region_import(dif->mm, ref, secret, region, imp);
	return ret;
}

/* Does the interface that allocated the region live, as the table of its board
 * says? It is on the board of the region, as a back page is. */
static bool owner_lives(struct dev_if *dif, uint64_t ref,
			const struct hal_kdev_import *imp)
{
	uint32_t board = hal_gaddr_board(ref), iface = hal_id_if(imp->owner);
	struct hal_kdev_entry e;

	return board == hal_id_board(imp->owner) &&
	       board < dif->i.caps->boards && iface < HAL_REG_IFS &&
	       dev_holder(dif, board, iface, &e) == 0 &&
	       e.nonce == imp->owner_nonce;
}

/* Answer the sender of a HELLO that it is refused. Errors are ignored: the
 * sender then waits until it notices the end of this interface. */
static void answer_no(struct dev_if *dif, uint64_t back, uint64_t answer)
{
	struct dev_region region = { 0 };
	struct hal_kdev_import imp;

	if (import_soon(dif, back, dif->i.addr.nonce, &region, &imp) != 0) {
		dev_region_abandon(dif->mm, &region);
		return;
	}
	if (imp.bytes >= DEV_PAGE && owner_lives(dif, back, &imp)) {
		dif->io->store(&region.map, offsetof(struct dev_back, answer),
			       &answer, sizeof(answer));
		/* There is no peer object that an error could end. */
		(void)dif->io->stores_before_notify(&region.map);
	}
	dev_region_drop(&region);
}

/* Map the link page that a HELLO names: it must be on the local board and have
 * been allocated by the interface that sent the HELLO. Returns 0 or -errno. */
static int map_link(struct dev_if *dif, const uint64_t w[HAL_PKT_WORDS],
		    struct dev_region *link, struct hal_kdev_import *imp)
{
	uint64_t ref = w[3];
	int ret;

	ret = import_soon(dif, ref, dif->i.addr.nonce, link, imp);
	if (ret != 0) {
		dev_region_abandon(dif->mm, link);
		return ret;
	}
	if (imp->bytes >= DEV_PAGE && link->map.base != NULL &&
	    hal_gaddr_board(ref) == dif->i.addr.board &&
	    imp->owner == (w[0] & HAL_HEAD_ID_MASK) &&
	    imp->owner_uid == dif->i.addr.uid)
		return 0;
	dev_region_drop(link);
	return -EPERM;
}

/* Do the parameters of the sender match? DEV_ANSWER_NONE if so, else the answer
 * to the HELLO. */
static enum dev_answer check_link(struct dev_if *dif,
				  const struct dev_link *link, uint64_t head)
{
	uint8_t flags = hal_head_flags(head);
	uint32_t depth = 1u << (flags & 0xF);

	if (flags >> 4 == DEV_WIRE && link->magic == DEV_LINK_MAGIC &&
	    link->wire == DEV_WIRE && depth == dif->i.caps->pkt_depth &&
	    link->space_bytes == dif->i.caps->space_bytes)
		return DEV_ANSWER_NONE;
	hal_log(0, "interface %u:%u speaks version %u of the device protocol "
		"with %u packets and %llu bytes of space, this process version "
		"%u with %u and %u: use one unimem build and one platform file "
		"for all processes of a job",
		hal_id_board(head & HAL_HEAD_ID_MASK),
		hal_id_if(head & HAL_HEAD_ID_MASK), flags >> 4, depth,
		(unsigned long long)link->space_bytes, DEV_WIRE,
		dif->i.caps->pkt_depth, dif->i.caps->space_bytes);
	return DEV_ANSWER_VERSION;
}

/* Is it an error of an import that may pass, so that a later try succeeds? */
static bool passes(int err)
{
	return err == -EAGAIN || err == -ENOSPC || err == -ENOMEM ||
	       err == -EMFILE;
}

/* Import the back page of a sender. Returns 0 or -errno. */
static int import_back(struct dev_peer *peer)
{
	struct dev_if *dif = dev_if(peer->p.hif);
	struct hal_kdev_import *imp = &peer->rback_imp;
	int ret;

	/* dev_stored() needs the table of the peer's board for each read-back
	 * of this page: map the table first. */
	if (dev_holds(peer) < 0)
		return -ENOMEM;
	ret = dev_region_import(dif->mm, peer->hello_back, dif->i.addr.nonce,
				&peer->rback, imp);
	if (ret == -ENOSPC) {
		dev_imports_trim(dif);
		ret = dev_region_import(dif->mm, peer->hello_back,
					dif->i.addr.nonce, &peer->rback, imp);
	}
	if (ret == 0 &&
	    (imp->owner != peer->identity || imp->bytes < DEV_PAGE)) {
		dev_region_drop(&peer->rback);
		ret = -EPERM;
	}
	return ret;
}

/* Set the time of the next import of memory of the peer, after the error err.
 * The first of them is logged; what says in words what has failed. */
static void retry_later(const struct dev_peer *peer, struct dev_retry *retry,
			const char *what, int err)
{
	if (retry->wait == 0)
		hal_log(0, "waiting to %s of interface %u:%u: %s", what,
			peer->p.addr.board, peer->p.addr.iface, strerror(-err));
	retry->wait = retry->wait == 0 ? RETRY_NS :
		      retry->wait < RETRY_NS_MAX / 2 ? retry->wait * 2 :
		      RETRY_NS_MAX;
	retry->at = unm_now_ns() + retry->wait;
}

/* Is it too early for the next import? */
static bool retry_waits(const struct dev_retry *retry)
{
	return retry->at != 0 && unm_now_ns() < retry->at;
}

void dev_accept_back(struct dev_peer *peer)
{
	static const uint64_t welcome = DEV_ANSWER_WELCOME;
	struct dev_if *dif = dev_if(peer->p.hif);
	bool last = dev_silent(peer) || (peer->dying != 0 && dev_overdue(peer));
	int ret;

	if (!last && retry_waits(&peer->back_retry))
		return;
	peer->back_retry.at = 0;
	ret = import_back(peer);
	if (passes(ret) && !last) {
		/* -EAGAIN: the driver prepares it, and the next call asks. */
		if (ret != -EAGAIN)
			retry_later(peer, &peer->back_retry, "reach the page",
				    ret);
		return;
	}
	if (ret != 0 && ret != -ESTALE && !last) {
		hal_log(0, "cannot reach the page of interface %u:%u: %s",
			peer->p.addr.board, peer->p.addr.iface,
			strerror(-ret));
		dev_disconnect(peer);
	}
	/* -ESTALE: the sender has ended. The packets that it sent before are
	 * delivered all the same. */
	HAL_FAULT_POINT(HAL_FAULT_POINT_MAPPED);
	peer->accept = DEV_ACCEPT_DONE;
	peer->p.rx.cells = peer->cells;
	dif->naccepting--;
	if (peer->rback.mm != NULL)
		dif->io->store(&peer->rback.map,
			       offsetof(struct dev_back, answer), &welcome,
			       sizeof(welcome));
	dev_event(peer, HAL_EV_INBOUND, 0);
	/* The sender may sleep until it is answered. */
	dev_wake(&peer->p);
}

/*
 * A HELLO of that session has arrived from an interface that already is a peer.
 * Did the remote object that this peer was connected with end before?
 */
static bool remote_ended(struct dev_peer *peer, uint64_t session)
{
	uint64_t closed;

	if (peer->accept != DEV_ACCEPT_NONE)
		/* Pairs with the release of end by dev_link_end(). */
		return atomic_load_explicit(&dev_rlink(peer)->end,
					    memory_order_acquire) != 0;
	if (dev_back(peer) == NULL)
		return false;
	/* Relaxed: no other memory is read because of it. */
	closed = atomic_load_explicit(&dev_back(peer)->back.closed,
				      memory_order_relaxed);
	return closed != 0 && closed != session;
}

/*
 * The peer object for a HELLO: that of a peer whose outbound half is open and
 * whose inbound half is not, else a new one. NULL: the HELLO is not valid, or
 * there is no memory.
 */
static struct dev_peer *hello_peer(struct dev_if *dif, uint64_t identity,
				   uint64_t session)
{
	struct hal_addr addr = {
		.version = HAL_ADDR_VERSION,
		.board = (uint16_t)hal_id_board(identity),
		.iface = hal_id_if(identity),
		.uid = dif->i.addr.uid,
	};
	struct dev_peer *peer = dev_peer_of(dif, identity);

	if (peer != NULL && !peer->p.dead && !peer->disconnected) {
		if (remote_ended(peer, session))
			dev_mark_dying(peer, -FI_ECONNRESET);
		else if (peer->accept == DEV_ACCEPT_NONE)
			return peer;
		else
			return NULL;	/* second HELLO: protocol error */
	}
	/* Other numbers have no entry in the tables of holders. */
	if (addr.board >= dif->i.caps->boards || addr.iface >= HAL_REG_IFS ||
	    dev_peer_new(dif, &addr, identity, &peer) != 0)
		return NULL;
	return peer;
}

/* Open the inbound half over the link page. Returns DEV_ANSWER_NONE, or the
 * answer to a HELLO that is refused; the caller then keeps rlink. */
static enum dev_answer open_in(struct dev_if *dif,
			       const uint64_t w[HAL_PKT_WORDS],
			       struct dev_region *rlink,
			       const struct hal_kdev_import *imp)
{
	const struct dev_link *link = rlink->map.base;
	uint32_t depth = 1u << (hal_head_flags(w[0]) & 0xF);
	struct dev_peer *peer;
	enum dev_answer no;

	no = check_link(dif, link, w[0]);
	if (no != DEV_ANSWER_NONE)
		return no;
	peer = hello_peer(dif, w[0] & HAL_HEAD_ID_MASK, link->session);
	if (peer == NULL)
		return DEV_ANSWER_FAILED;
	if (hal_inbound_reserve(&dif->i, dif->npeers) != 0 ||
	    dev_ring_new(peer, link->first, depth) != 0) {
		if (peer->hello == DEV_HELLO_NONE)
			dev_peer_drop(peer);
		return DEV_ANSWER_FAILED;
	}
	peer->rlink = *rlink;
	peer->p.addr.nonce = imp->owner_nonce;
	peer->hello_back = w[2];
	peer->accept = DEV_ACCEPT_BACK;
	dif->naccepting++;
	dev_accept_back(peer);
	return DEV_ANSWER_NONE;
}

bool dev_hello_received(struct dev_if *dif, const uint64_t w[HAL_PKT_WORDS])
{
	struct dev_region link = { 0 };
	struct hal_kdev_import imp;
	enum dev_answer no = DEV_ANSWER_FAILED;

	if (w[1] != dif->i.addr.nonce) {
		dif->stats.unknown++;	/* for a previous holder */
		return false;
	}
	HAL_FAULT_POINT(HAL_FAULT_POINT_ACCEPTED);
	if (map_link(dif, w, &link, &imp) == 0) {
		no = open_in(dif, w, &link, &imp);
		if (no != DEV_ANSWER_NONE)
			dev_region_drop(&link);
	}
	if (no != DEV_ANSWER_NONE)
		answer_no(dif, w[2], no);
	return no == DEV_ANSWER_NONE;
}

/* ---- Receive space ----------------------------------------------------- */

/* Import the receive space that the peer has announced with this reference.
 * Returns 0 or -errno; rspace may then have a hold. */
static int import_space(struct dev_peer *peer, uint64_t ref)
{
	struct dev_if *dif = dev_if(peer->p.hif);
	struct dev_link *link = dev_rlink(peer);
	struct hal_kdev_import *imp = &peer->rspace_imp;
	int ret;

	ret = import_soon(dif, ref, link->space_secret, &peer->rspace, imp);
	if (ret == -ENOSPC) {
		dev_imports_trim(dif);
		ret = import_soon(dif, ref, link->space_secret, &peer->rspace,
				  imp);
	}
	if (ret == 0 && (imp->owner != peer->identity ||
			 imp->bytes < dif->i.caps->space_bytes ||
			 hal_gaddr_board(peer->rspace.ref) !=
			 dif->i.addr.board ||
			 peer->rspace.map.base == NULL)) {
		dev_region_drop(&peer->rspace);
		ret = -EPERM;
	}
	return ret;
}

bool dev_space_map(struct dev_peer *peer)
{
	bool last = peer->disconnected ||
		    (peer->dying != 0 && dev_overdue(peer));
	uint64_t ref;
	int ret;

	/* dev_space_ready() makes space_secret visible before space_ref, and
	 * both before the packet that names data in the space. */
	ref = atomic_load_explicit(&dev_rlink(peer)->space_ref,
				   memory_order_acquire);
	if (ref == 0 && peer->space_retry.at == 0)
		return true;
	if (!last && retry_waits(&peer->space_retry))
		return false;
	/* A reference that was announced does not become 0 again. */
	ret = ref == 0 ? -EPROTO : import_space(peer, ref);
	if (passes(ret) && !last) {
		retry_later(peer, &peer->space_retry, "map the receive space",
			    ret);
		return false;
	}
	peer->space_retry.at = 0;
	if (ret != 0) {
		hal_log(0, "cannot map the receive space of interface %u:%u: "
			"%s", peer->p.addr.board, peer->p.addr.iface,
			strerror(-ret));
		dev_disconnect_lossy(peer);
		return false;
	}
	peer->p.rx.space = peer->rspace.map.base;
	dev_ring_show(peer);
	return true;
}

void dev_space_take(struct dev_peer *peer)
{
	/* pairs with dev_space_ready(), as in dev_space_map() */
	uint64_t ref = atomic_load_explicit(&dev_rlink(peer)->space_ref,
					    memory_order_acquire);

	/* dev_peer_forget() drops the hold, mapped or not */
	if (ref != 0)
		import_space(peer, ref);
}

int dev_space_ready(struct hal_peer *hp, uint32_t bytes)
{
	struct dev_peer *peer = dev_peer(hp);
	struct dev_if *dif = dev_if(hp->hif);
	uint64_t secret = unm_random();
	int ret;

	if (peer->space.mm != NULL || bytes == 0 || !dev_lives(peer))
		return 0;
	ret = dev_region_alloc(dif->mm, hp->addr.board,
			       dif->i.caps->space_bytes, secret,
			       peer->identity, &peer->space);
	if (ret == -ESRCH || ret == -EHOSTDOWN)
		return 0;		/* the peer has ended */
	if (ret != 0) {
		hal_log(peer->nomem_logged ? 1 : 0, "no memory for %u bytes of "
			"receive space at interface %u:%u: %s",
			dif->i.caps->space_bytes, hp->addr.board,
			hp->addr.iface, strerror(-ret));
		peer->nomem_logged = true;
		return -FI_ENOMEM;
	}
	peer->nomem_logged = false;
	dif->io->store(&peer->link.map,
		       offsetof(struct dev_link, space_secret), &secret,
		       sizeof(secret));
	if (dev_stored(peer, &peer->link.map) != 0)
		return 0;
	dif->io->store(&peer->link.map, offsetof(struct dev_link, space_ref),
		       &peer->space.ref, sizeof(peer->space.ref));
	dev_stored(peer, &peer->link.map);
	return 0;
}

void dev_space_write(struct hal_peer *hp, uint32_t off, const void *src,
		     size_t len)
{
	struct dev_peer *peer = dev_peer(hp);

	if (peer->space.mm != NULL && !hp->dead && !peer->gone)
		dev_if(hp->hif)->io->store(&peer->space.map, off, src, len);
}

void dev_space_barrier(struct hal_peer *hp)
{
	struct dev_peer *peer = dev_peer(hp);

	if (peer->space.mm != NULL && !hp->dead)
		dev_stored(peer, &peer->space.map);
}

/* ---- Words stored back ------------------------------------------------- */

void dev_back_store(struct hal_peer *hp, int word, uint64_t val)
{
	struct dev_peer *peer = dev_peer(hp);
	struct dev_if *dif = dev_if(hp->hif);
	uint64_t off = offsetof(struct dev_back, back.done);

	if (peer->rback.mm == NULL || hp->dead || peer->gone)
		return;
	if (word >= 0)
		off = offsetof(struct dev_back, back.word) +
		      (uint64_t)word * sizeof(val);
	/* The stored count allows the peer to overwrite packets and data that
	 * this process has read. Only a word may announce stores to a window of
	 * the peer's memory as well. */
	if (word >= 0)
		dif->io->memory_before_start(dif->mm);
	dif->io->loads_before_store(dif->mm);
	dif->io->store(&peer->rback.map, off, &val, sizeof(val));
}

int dev_back_barrier(struct hal_peer *hp)
{
	struct dev_peer *peer = dev_peer(hp);

	if (peer->rback.mm == NULL || hp->dead)
		return -FI_EAGAIN;
	return dev_stored(peer, &peer->rback.map) == 0 ? 0 : -FI_EAGAIN;
}
