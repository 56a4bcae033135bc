/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * broken.c - the decorator that applies a mutation, see broken.h
 *
 * Owns the list of peers. It intercepts each send, each event, and the creation
 * and the end of peers and interfaces. The mutations are in broken_*.c.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "broken.h"

const struct hal_ops *broken_base;

static struct hal_ops ops;
static const struct mutation *mutation;
static struct bpeer *peers;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static const struct mutation none = { .name = "none", .test = "*" };

static const struct {
	const struct mutation *row;
	const int *count;
} lists[] = {
	{ broken_pkt, &broken_pkt_count },
	{ broken_dma, &broken_dma_count },
	{ broken_conn, &broken_conn_count },
	{ broken_shared, &broken_shared_count },
	{ broken_iface0, &broken_iface0_count },
	{ broken_alias, &broken_alias_count },
};
#define NLISTS		(sizeof(lists) / sizeof(lists[0]))

static const struct mutation *find(const char *name)
{
	for (size_t n = 0; n < NLISTS; n++) {
		for (int i = 0; i < *lists[n].count; i++) {
			if (strcmp(lists[n].row[i].name, name) == 0)
				return &lists[n].row[i];
		}
	}
	return strcmp(name, none.name) == 0 ? &none : NULL;
}

bool broken_exists(const char *name)
{
	return find(name) != NULL;
}

bool broken_applies(const struct hal *hal, const char *name)
{
	const char *backend = hal->caps.backend;

	/* peers on other hosts have a table of functions of their own */
	return strstr(backend, "+net") == NULL &&
	       (!find(name)->rings || strstr(backend, "emu") != NULL);
}

void broken_list(void)
{
	for (size_t n = 0; n < NLISTS; n++) {
		for (int i = 0; i < *lists[n].count; i++)
			printf("%s %s\n", lists[n].row[i].name,
			       lists[n].row[i].test);
	}
}

/* ---- Peers ----------------------------------------------------------- */

struct bpeer *broken_peer(struct hal_peer *peer)
{
	struct bpeer *bp;

	pthread_mutex_lock(&lock);
	for (bp = peers; bp != NULL && bp->peer != peer; bp = bp->next)
		;
	pthread_mutex_unlock(&lock);
	return bp;
}

void broken_each(struct hal_if *hif, void (*fn)(struct bpeer *bp, void *arg),
		 void *arg)
{
	struct bpeer *bp;

	pthread_mutex_lock(&lock);
	bp = peers;
	pthread_mutex_unlock(&lock);
	/* Other threads insert at the front, or remove their own entries. */
	while (bp != NULL) {
		struct bpeer *next = bp->next;

		if (bp->peer->hif == hif)
			fn(bp, arg);
		bp = next;
	}
}

static void forget(struct bpeer *gone)
{
	struct bpeer **at;

	pthread_mutex_lock(&lock);
	for (at = &peers; *at != gone; at = &(*at)->next)
		;
	*at = gone->next;
	pthread_mutex_unlock(&lock);
	free(gone->late);
	free(gone);
}

/* Start to decorate a peer, or hide fields again that the backend has set. */
static void adopt(struct hal_peer *peer)
{
	struct bpeer *bp = broken_peer(peer);

	if (bp == NULL) {
		bp = calloc(1, sizeof(*bp));
		if (bp == NULL)
			abort();
		bp->peer = peer;
		pthread_mutex_lock(&lock);
		bp->next = peers;
		peers = bp;
		pthread_mutex_unlock(&lock);
	}
	peer->ops = &ops;
	if (peer->tx.cells != NULL) {
		bp->cells = peer->tx.cells;
		peer->tx.cells = NULL;
	}
	if (mutation->veil != NULL)
		mutation->veil(bp);
}

/* ---- Calls that every mutation intercepts ---------------------------- */

int broken_forward(struct bpeer *bp, const struct packet *p)
{
	struct hal_tx *tx = &bp->peer->tx;
	int ret;

	if (bp->cells == NULL)		/* a device: sends are calls */
		return broken_base->pkt_send(bp->peer, p->head, p->w, p->nw,
					     p->data, p->len);
	tx->cells = bp->cells;
	ret = hal_pkt_send(bp->peer, p->head, p->w, p->nw, p->data, p->len);
	tx->cells = NULL;
	return ret;
}

static int broken_send(struct hal_peer *peer, uint64_t head, const uint64_t *w,
		       unsigned nw, const void *data, size_t len)
{
	const struct packet p = { head, w, nw, data, len };
	struct bpeer *bp = broken_peer(peer);

	bp->sends++;
	return mutation->send != NULL ? mutation->send(bp, &p) :
	       broken_forward(bp, &p);
}

static int broken_if_open(struct hal *hal, int board, int number,
			  struct hal_if **hif)
{
	int ret = broken_base->if_open(hal, board, number, hif);

	if (ret == 0)
		(*hif)->ops = &ops;
	return ret;
}

static void drop(struct bpeer *bp, void *arg)
{
	(void)arg;
	bp->peer->tx.cells = bp->cells;
	forget(bp);
}

static void broken_if_close(struct hal_if *hif)
{
	broken_each(hif, drop, NULL);
	broken_base->if_close(hif);
}

static void broken_peer_free(struct hal_peer *peer)
{
	struct bpeer *bp = broken_peer(peer);

	if (bp != NULL)
		drop(bp, NULL);
	broken_base->peer_free(peer);
}

static int broken_service(struct hal_if *hif, struct hal_event *ev, int max)
{
	int n = broken_base->service(hif, ev, max), kept = 0;

	for (int i = 0; i < n; i++) {
		adopt(ev[i].peer);
		if (ev[i].type == HAL_EV_CONNECTED)
			broken_peer(ev[i].peer)->met = true;
		if (mutation->event != NULL)
			mutation->event(&ev[i]);
		if (ev[i].type != 0)
			ev[kept++] = ev[i];
	}
	return kept;
}

static int broken_connect(struct hal_if *hif, const struct hal_addr *to,
			  struct hal_peer **peer)
{
	int ret = broken_base->connect(hif, to, peer);

	if (ret == 0)
		adopt(*peer);
	return ret;
}

static void broken_close(struct hal *hal)
{
	hal->ops = broken_base;
	broken_base->close(hal);
}

void broken_wrap(struct hal *hal, const char *name)
{
	if (hal->ops == &ops)
		return;			/* decorated before: hal_get() counts
					 * references */
	mutation = find(name);
	broken_base = hal->ops;
	ops = *broken_base;
	ops.close = broken_close;
	ops.if_open = broken_if_open;
	ops.if_close = broken_if_close;
	ops.service = broken_service;
	ops.connect = broken_connect;
	ops.peer_free = broken_peer_free;
	ops.pkt_send = broken_send;
	if (mutation->install != NULL)
		mutation->install(&ops);
	hal->ops = &ops;
}
