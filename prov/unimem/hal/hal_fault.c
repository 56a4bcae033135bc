/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_fault.c - the fault decorator: refused calls, delayed packets, failed and
 * delayed transfers, as far as the laws of docs/hal.md allow them.
 *
 * Entry point: hal_fault_wrap().
 *
 * The backend owns its objects. The ops pointer of an interface leads to a copy
 * of the backend's table, in struct fault, that of a peer to a copy of the
 * peer's table, in struct fault_peer: peers on other hosts have another.
 * override() and override_peer() replace some entries of these copies.
 * struct fault_if and struct fault_peer hold what the decorator adds per
 * interface and per peer. It sets tx.cells of a peer to NULL ("veiled"), so
 * that every send calls fault_pkt_send(). While a function of the backend runs,
 * the values of the backend are in place. The inbound half is not changed.
 *
 * An accepted packet is never lost: a packet is held only while the peer's ring
 * has a free slot for it and for each packet held before it. Held packets count
 * as sent.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hal/hal_fault.h"
#include "hal/hal_log.h"
#include "hal/hal_packet.h"
#include "hal/hal_param.h"
#include "util/unm_clock.h"
#include "util/unm_list.h"
#include "util/unm_random.h"

#define FLUSH_TRIES	100000
#define US		UINT64_C(1000)
#define RATE_MAX	900		/* of 1000 */
#define US_MAX		1000000		/* longest delay */
#define SPEC_MAX	32		/* of a value, with the 0 at its end */

/* The parsed value of FI_UNIMEM_FAULT, constant once the backend is open. */
struct rates {
	long eagain;			/* refused calls, of 1000 */
	char delay_spec[SPEC_MAX];	/* "delay:delay_us" */
	long delay;			/* delayed packets, of 1000 */
	long delay_us;			/* delay of a packet, us */
	long dmafail;			/* failed transfers, of 1000 */
	long dmadelay_us;		/* longest delay of a completion, us */
	long seed;			/* of the random numbers */
};

/* A packet that was accepted and is held. */
struct held {
	uint64_t due;			/* ns, when it may be sent; 0: as soon
					 * as no packet is held before it */
	uint64_t head;
	uint32_t len;			/* bytes of payload */
	uint8_t payload[HAL_PKT_MAX];
};

/* Data of the decorator for a peer: hal_peer.decorator, from adopt() to
 * fault_peer_free() or fault_if_close(). The thread that uses the interface may
 * use it. */
struct fault_peer {
	struct unm_list list;		/* in fault_if.peers */
	struct hal_peer *peer;
	const struct hal_ops *base;	/* table of the peer without the
					 * decorator */
	struct hal_ops ops;		/* copy of *base, see override_peer() */
	struct hal_cell *cells;		/* the backend's tx.cells, if veiled */
	uint64_t sent;			/* the backend's tx.next, if veiled */
	struct held *queue;		/* [pkt_depth]; NULL: never held one */
	uint64_t first, last;		/* held packets are those from first to
					 * last - 1, modulo pkt_depth */
};

enum dma_state { DMA_FREE, DMA_POSTED, DMA_DONE };

/* A transfer. The backend knows it by its index in fault_if.dma[]. */
struct fault_dma {
	enum dma_state state;
	bool fail;			/* to be reported as -FI_EIO */
	int status;			/* DMA_DONE: the one to report */
	uint64_t due;			/* DMA_DONE: ns, when to report it */
	uint64_t token;			/* of the caller */
};

/* Data of the decorator for an interface: hal_if.decorator, from
 * fault_if_open() to fault_if_close(). The thread that uses the interface may
 * use it. */
struct fault_if {
	struct fault *f;		/* the decorator */
	struct hal_if *hif;
	uint64_t rng;			/* state of unm_random_next() */
	struct unm_list peers;		/* struct fault_peer.list */
	uint64_t held;			/* packets held for all peers */
	uint32_t posted, done;		/* transfers in these states */
	struct fault_dma *dma;		/* [dma_depth] */
	uint64_t count_eagain, count_delay, count_dmafail;	/* for dumps */
};

/* The decorator of the open backend, from hal_fault_wrap() to fault_close().
 * Constant. */
struct fault {
	struct hal_ops ops;		/* copy of *base, see override() */
	const struct hal_ops *base;	/* table of the backend */
	const char *base_name;		/* caps.backend without the decorator */
	uint32_t base_flags;		/* caps.flags without it: it sends no
					 * wide packets */
	struct rates rates;
	pid_t pid;			/* process that opened the backend */
	char name[32];			/* "fault(NAME)" */
};

static struct fault *fault_of(const struct hal_ops *ops)
{
	return (struct fault *)((char *)(uintptr_t)ops -
				offsetof(struct fault, ops));
}

static bool chance(struct fault_if *fi, long rate)
{
	return rate != 0 && unm_random_next(&fi->rng) % 1000 < (uint64_t)rate;
}

/* Shall this call return -FI_EAGAIN at random? Counts it. */
static bool refuse(struct fault_if *fi)
{
	if (!chance(fi, fi->f->rates.eagain))
		return false;
	fi->count_eagain++;
	return true;
}

/* ---- Additions to interfaces and peers ------------------------------- */

/* Hide tx.cells, so that hal_pkt_send() calls fault_pkt_send(). Held packets
 * count in tx.next. */
static void veil(struct fault_peer *fp)
{
	struct hal_tx *tx = &fp->peer->tx;

	fp->cells = tx->cells;
	fp->sent = tx->next;
	tx->cells = NULL;
	tx->next += fp->last - fp->first;
}

/* Undo veil(), before a function of the backend is called. */
static void unveil(struct fault_peer *fp)
{
	fp->peer->tx.cells = fp->cells;
	fp->peer->tx.next = fp->sent;
}

static void for_peers(struct fault_if *fi, void (*fn)(struct fault_peer *fp))
{
	unm_list_for_each(pos, &fi->peers)
		fn(unm_container(pos, struct fault_peer, list));
}

static void override_peer(struct hal_ops *ops);

/* Make sure that a peer has a fault_peer. The peer is not veiled, the caller
 * veils it afterwards. Without memory the peer keeps its table: there are no
 * faults with this peer then, which breaks no law. */
static void adopt(struct fault_if *fi, struct hal_peer *peer)
{
	/* a peer of the backend has got the table of its interface */
	const struct hal_ops *base = peer->ops == &fi->f->ops ? fi->f->base :
		peer->ops;
	struct fault_peer *fp = peer->decorator;

	if (fp != NULL)
		return;
	fp = calloc(1, sizeof(*fp));
	if (fp == NULL) {
		peer->ops = base;
		return;
	}
	fp->peer = peer;
	fp->base = base;
	fp->ops = *base;
	override_peer(&fp->ops);
	peer->ops = &fp->ops;
	peer->decorator = fp;
	unm_list_append(&fi->peers, &fp->list);
}

static void peer_delete(struct fault_peer *fp)
{
	free(fp->queue);
	free(fp);
}

/* ---- Packets --------------------------------------------------------- */

/* Send a packet with the backend. Packets held before it must be sent. */
static int forward(struct fault_peer *fp, uint64_t head, const uint64_t *w,
		   unsigned nw, const void *data, size_t len)
{
	struct hal_peer *peer = fp->peer;
	int ret;

	unveil(fp);
	if (peer->tx.cells != NULL)
		ret = hal_pkt_send(peer, head, w, nw, data, len);
	else
		ret = fp->base->pkt_send(peer, head, w, nw, data, len);
	veil(fp);
	return ret;
}

/* Discard the packets held for a peer that cannot receive them any more. They
 * still count as sent. */
static void discard_held(struct fault_if *fi, struct fault_peer *fp)
{
	fi->held -= fp->last - fp->first;
	fp->sent += fp->last - fp->first;
	fp->peer->tx.limit = fp->sent;
	fp->first = fp->last;
}

/* Send the packets held for a peer that are due at time now, in ns. A forked
 * child discards its copies: its parent sends these packets. */
static void release_peer(struct fault_if *fi, struct fault_peer *fp,
			 uint64_t now)
{
	uint32_t depth = fi->hif->caps->pkt_depth;

	if (fp->peer->dead || fi->f->pid != getpid())
		discard_held(fi, fp);
	while (fp->first != fp->last) {
		struct held *h = &fp->queue[fp->first % depth];

		if (h->due > now || forward(fp, h->head, NULL, 0, h->payload,
					    h->len) != 0)
			return;
		/* the backend has counted it in tx.next, and so had hold() */
		fp->first++;
		fp->peer->tx.next--;
		fi->held--;
	}
}

static void release(struct fault_if *fi, uint64_t now)
{
	unm_list_for_each(pos, &fi->peers) {
		if (fi->held == 0)
			return;
		release_peer(fi, unm_container(pos, struct fault_peer, list),
			     now);
	}
}

/* Accept a packet and keep it until due. 0; -FI_EAGAIN: the ring would be full,
 * or there is no memory. */
static int hold(struct fault_if *fi, struct fault_peer *fp, uint64_t due,
		uint64_t head, const uint64_t *w, unsigned nw,
		const void *data, size_t len)
{
	struct hal_peer *peer = fp->peer;
	uint32_t depth = fi->hif->caps->pkt_depth;
	struct held *h;

	if (peer->tx.next - hal_tx_done(peer) >= depth)
		return -FI_EAGAIN;
	if (fp->queue == NULL) {
		fp->queue = calloc(depth, sizeof(*fp->queue));
		if (fp->queue == NULL)
			return -FI_EAGAIN;
	}
	h = &fp->queue[fp->last % depth];
	h->due = due;
	h->head = head;
	h->len = 8 * nw + len;
	if (nw != 0)
		memcpy(h->payload, w, 8 * nw);
	if (len != 0)
		memcpy(h->payload + 8 * nw, data, len);
	fp->last++;
	peer->tx.next++;
	fi->held++;
	return 0;
}

static int fault_pkt_send(struct hal_peer *peer, uint64_t head,
			  const uint64_t *w, unsigned nw,
			  const void *data, size_t len)
{
	struct fault_if *fi = peer->hif->decorator;
	struct fault_peer *fp = peer->decorator;
	uint64_t due = 0;
	int ret;

	if (fi->held != 0)
		release(fi, unm_now_ns());
	if (refuse(fi))
		return -FI_EAGAIN;
	if (peer->tx.back != NULL && chance(fi, fi->f->rates.delay))
		due = unm_now_ns() + (uint64_t)fi->f->rates.delay_us * US;
	if (due == 0 && fp->first == fp->last)
		return forward(fp, head, w, nw, data, len);
	/* release_peer() keeps the order of the packets of a peer */
	ret = hold(fi, fp, due, head, w, nw, data, len);
	if (ret == 0 && due != 0)
		fi->count_delay++;
	return ret;
}

static int fault_space_ready(struct hal_peer *peer, uint32_t bytes)
{
	struct fault_peer *fp = peer->decorator;
	int ret;

	unveil(fp);
	ret = fp->base->space_ready(peer, bytes);
	veil(fp);
	return ret;
}

/* -FI_EAGAIN leaves open whether the word was stored; the caller stores it
 * again. */
static int fault_back_barrier(struct hal_peer *peer)
{
	struct fault_peer *fp = peer->decorator;

	if (refuse(peer->hif->decorator))
		return -FI_EAGAIN;
	return fp->base->back_barrier(peer);
}

static void fault_pump(struct hal_if *hif)
{
	struct fault_if *fi = hif->decorator;

	if (fi->f->base->pump != NULL) {
		for_peers(fi, unveil);
		fi->f->base->pump(hif);
		for_peers(fi, veil);
	}
	if (fi->held != 0)
		release(fi, unm_now_ns());
}

/* Send all held packets before a close. A ring has free slots for them; a
 * backend without a ring may accept them only after some calls of pump(). */
static void flush(struct fault_if *fi)
{
	release(fi, UINT64_MAX);
	for (int i = 0; fi->held != 0 && i < FLUSH_TRIES; i++) {
		fault_pump(fi->hif);
		release(fi, UINT64_MAX);
	}
}

/* ---- Interfaces and peers -------------------------------------------- */

static int fault_if_open(struct hal *hal, int board, int number,
			 struct hal_if **hif)
{
	struct fault *f = fault_of(hal->ops);
	struct fault_if *fi = calloc(1, sizeof(*fi));
	int ret = -FI_ENOMEM;

	if (fi == NULL)
		return ret;
	fi->dma = calloc(hal->caps.dma_depth, sizeof(*fi->dma));
	if (fi->dma == NULL)
		goto free_fi;
	ret = f->base->if_open(hal, board, number, hif);
	if (ret != 0)
		goto free_dma;
	fi->f = f;
	fi->hif = *hif;
	fi->hif->decorator = fi;
	unm_list_init(&fi->peers);
	fi->rng = (uint64_t)f->rates.seed + (*hif)->addr.iface +
		  ((uint64_t)(*hif)->addr.board << 32);
	fi->hif->ops = &f->ops;
	return 0;

free_dma:
	free(fi->dma);
free_fi:
	free(fi);
	return ret;
}

static void fault_if_close(struct hal_if *hif)
{
	struct fault_if *fi = hif->decorator;
	struct unm_list *node;

	flush(fi);
	for_peers(fi, unveil);
	fi->f->base->if_close(hif);
	while ((node = unm_list_pop(&fi->peers)) != NULL)
		peer_delete(unm_container(node, struct fault_peer, list));
	free(fi->dma);
	free(fi);
}

static int fault_service(struct hal_if *hif, struct hal_event *ev, int max)
{
	struct fault_if *fi = hif->decorator;
	int n;

	for_peers(fi, unveil);
	n = fi->f->base->service(hif, ev, max);
	for (int i = 0; i < n; i++)
		adopt(fi, ev[i].peer);
	for_peers(fi, veil);
	if (fi->held != 0)
		release(fi, unm_now_ns());
	return n;
}

/* Nobody calls pump() while the caller sleeps, so held packets must be sent
 * before. */
static int fault_arm(struct hal_if *hif)
{
	struct fault_if *fi = hif->decorator;
	int ret;

	release(fi, UINT64_MAX);
	if (fi->held != 0 || fi->done != 0 || refuse(fi))
		return -FI_EAGAIN;
	for_peers(fi, unveil);
	ret = fi->f->base->arm(hif);
	for_peers(fi, veil);
	return ret;
}

static int fault_connect(struct hal_if *hif, const struct hal_addr *to,
			 struct hal_peer **peer)
{
	struct fault_if *fi = hif->decorator;
	int ret;

	if (refuse(fi))
		return -FI_EAGAIN;
	for_peers(fi, unveil);
	ret = fi->f->base->connect(hif, to, peer);
	if (ret == 0)
		adopt(fi, *peer);
	for_peers(fi, veil);
	return ret;
}

/* The peer may be on this host: then it is one of the backend. */
static int fault_connect_host(struct hal_if *hif, const struct hal_addr *to,
			      const struct hal_host *host,
			      struct hal_peer **peer)
{
	struct fault_if *fi = hif->decorator;
	int ret;

	if (refuse(fi))
		return -FI_EAGAIN;
	for_peers(fi, unveil);
	ret = fi->f->base->connect_host(hif, to, host, peer);
	if (ret == 0)
		adopt(fi, *peer);
	for_peers(fi, veil);
	return ret;
}

static void fault_peer_free(struct hal_peer *peer)
{
	struct fault_if *fi = peer->hif->decorator;
	struct fault_peer *fp = peer->decorator;

	if (fp == NULL) {		/* in inbound[], its event not taken */
		fi->f->base->peer_free(peer);
		return;
	}
	release_peer(fi, fp, UINT64_MAX);
	discard_held(fi, fp);
	unveil(fp);
	unm_list_remove(&fp->list);
	peer->ops = fp->base;
	peer_delete(fp);
	peer->decorator = NULL;		/* in a forked child, peer stays */
	peer->ops->peer_free(peer);
}

static void fault_dump(struct hal_if *hif, FILE *out)
{
	struct fault_if *fi = hif->decorator;

	for_peers(fi, unveil);
	fi->f->base->dump(hif, out);
	for_peers(fi, veil);
	fprintf(out, "fault: refused %llu, packets delayed %llu, held now "
		"%llu, transfers failed %llu\n",
		(unsigned long long)fi->count_eagain,
		(unsigned long long)fi->count_delay,
		(unsigned long long)fi->held,
		(unsigned long long)fi->count_dmafail);
}

/* ---- cDMA ------------------------------------------------------------ */

static int fault_mem_import(struct hal_peer *peer, const struct hal_key *key,
			    struct hal_rmem **rmem)
{
	struct fault_peer *fp = peer->decorator;

	if (refuse(peer->hif->decorator))
		return -FI_EAGAIN;
	return fp->base->mem_import(peer, key, rmem);
}

static int fault_dma_post(struct hal_if *hif, const struct hal_dma *dma,
			  uint64_t token)
{
	struct fault_if *fi = hif->decorator;
	uint32_t slot = 0;
	int ret;

	if (refuse(fi) || fi->posted + fi->done == hif->caps->dma_depth)
		return -FI_EAGAIN;
	while (fi->dma[slot].state != DMA_FREE)
		slot++;
	ret = fi->f->base->dma_post(hif, dma, slot);
	if (ret != 0)
		return ret;
	fi->dma[slot].state = DMA_POSTED;
	fi->dma[slot].token = token;
	fi->dma[slot].fail = chance(fi, fi->f->rates.dmafail);
	fi->posted++;
	return 0;
}

/* The backend has completed a transfer: choose the status to report, and the
 * time at which to report it. */
static void dma_done(struct fault_if *fi, uint64_t now,
		     const struct hal_dma_comp *comp)
{
	struct fault_dma *d = &fi->dma[comp->token];

	d->state = DMA_DONE;
	d->due = now;
	d->status = comp->status;
	if (fi->f->rates.dmadelay_us != 0)
		d->due += unm_random_next(&fi->rng) %
			  ((uint64_t)fi->f->rates.dmadelay_us * US + 1);
	if (d->fail && d->status == 0) {
		d->status = -FI_EIO;
		fi->count_dmafail++;
	}
	fi->posted--;
	fi->done++;
}

static int fault_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp,
			  int max)
{
	struct fault_if *fi = hif->decorator;
	uint32_t depth = hif->caps->dma_depth;
	struct hal_dma_comp got[16];
	uint64_t now;
	int n, out = 0;

	if (fi->posted + fi->done == 0)
		return fi->f->base->dma_poll(hif, comp, max);
	n = fi->f->base->dma_poll(hif, got, 16);
	now = unm_now_ns();
	for (int i = 0; i < n; i++)
		dma_done(fi, now, &got[i]);
	for (uint32_t i = 0; i < depth && out < max && fi->done != 0; i++) {
		struct fault_dma *d = &fi->dma[i];

		if (d->state != DMA_DONE || d->due > now)
			continue;
		comp[out].token = d->token;
		comp[out++].status = d->status;
		d->state = DMA_FREE;
		fi->done--;
	}
	return out;
}

/* ---- Set-up ---------------------------------------------------------- */

#define ROW(row_name, row_type, field, high, text)			\
	{ .name = row_name, .type = row_type,				\
	  .offset = offsetof(struct rates, field), .max = high, .def = text }

/* Parameters of FI_UNIMEM_FAULT. */
static const struct hal_param rows[] = {
	ROW("eagain", HAL_PARAM_LONG, eagain, RATE_MAX, "0"),
	ROW("delay", HAL_PARAM_STRING, delay_spec, SPEC_MAX, "0:0"),
	ROW("dmafail", HAL_PARAM_LONG, dmafail, RATE_MAX, "0"),
	ROW("dmadelay", HAL_PARAM_LONG, dmadelay_us, US_MAX, "0"),
	ROW("seed", HAL_PARAM_LONG, seed, LONG_MAX, "0"),
};

static int parse(const char *spec, struct rates *r)
{
	char more;
	int ret;

	ret = hal_param_parse("FI_UNIMEM_FAULT", spec, rows,
			      sizeof(rows) / sizeof(rows[0]), r);
	if (ret != 0)
		return ret;
	if (sscanf(r->delay_spec, "%ld:%ld%c", &r->delay, &r->delay_us,
		   &more) == 2 && r->delay >= 0 && r->delay <= RATE_MAX &&
	    r->delay_us >= 0 && r->delay_us <= US_MAX)
		return 0;
	hal_log(0, "FI_UNIMEM_FAULT: delay=%s: use P:US with numbers from 0 to "
		"%d and from 0 to %d", r->delay_spec, RATE_MAX, US_MAX);
	return -FI_EINVAL;
}

/* Replace the entries that take a peer which adopt() has seen. */
static void override_peer(struct hal_ops *ops)
{
	ops->peer_free = fault_peer_free;
	ops->pkt_send = fault_pkt_send;
	ops->space_ready = fault_space_ready;
	ops->back_barrier = fault_back_barrier;
	ops->mem_import = fault_mem_import;
}

static void fault_close(struct hal *hal)
{
	struct fault *f = fault_of(hal->ops);

	hal->ops = f->base;
	hal->caps.backend = f->base_name;
	hal->caps.flags = f->base_flags;
	free(f);
	hal->ops->close(hal);
}

static void override(struct hal_ops *ops)
{
	ops->close = fault_close;
	ops->if_open = fault_if_open;
	ops->if_close = fault_if_close;
	ops->service = fault_service;
	ops->arm = fault_arm;
	ops->connect = fault_connect;
	if (ops->connect_host != NULL)
		ops->connect_host = fault_connect_host;
	ops->peer_free = fault_peer_free;	/* for peers without events */
	ops->pump = fault_pump;
	ops->dma_post = fault_dma_post;
	ops->dma_poll = fault_dma_poll;
	ops->dump = fault_dump;
}

int hal_fault_wrap(struct hal *hal, const char *spec)
{
	struct fault *f;
	struct rates rates;
	int ret;

	ret = parse(spec, &rates);
	if (ret != 0)
		return ret;
	f = calloc(1, sizeof(*f));
	if (f == NULL)
		return -FI_ENOMEM;
	f->rates = rates;
	f->base = hal->ops;
	f->base_name = hal->caps.backend;
	f->base_flags = hal->caps.flags;
	f->ops = *f->base;
	override(&f->ops);
	snprintf(f->name, sizeof(f->name), "fault(%s)", f->base->name);
	f->ops.name = f->name;
	f->pid = getpid();
	hal->ops = &f->ops;
	hal->caps.backend = f->name;
	hal->caps.flags &= ~HAL_CAP_WIDE;
	return 0;
}
