/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_dma.c - dmable memory of peers on other hosts, and transfers to and
 * from it.
 *
 * hal_net_dma.h declares the entry points. A transfer is a number of pieces.
 * Each piece is a request, which the HAL of the owner executes
 * (hal_net_region.c), and one answer. A peer has a bounded number of pieces
 * without answer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hal/hal_fault_point.h"
#include "hal/net/hal_net_dma.h"
#include "hal/net/hal_net_region.h"
#include "hal/net/hal_net_send.h"

#define PIECES_MAX	32		/* of a peer, not answered */
#define ASKS_MAX	16		/* imports of a peer, not answered */
#define ANSWERS_MAX	64		/* answered imports that nobody has
					 * fetched */

/* A transfer. */
struct net_dma {
	bool busy;
	uint32_t gen;			/* counts the uses of the entry */
	struct hal_dma d;
	uint64_t token;
	uint64_t asked;			/* bytes in requests that were sent */
	uint64_t done;			/* bytes of answers */
	uint32_t pieces;		/* requests without answer */
	int status;			/* first error, or 0 */
};

/* Memory of a peer, from its import to its last release. */
struct hal_rmem {
	struct hal_rmem *next;		/* in net_peer.rmems, newest first */
	struct net_peer *peer;
	struct hal_key key;
	uint32_t refs;			/* imports and transfers */
	int status;			/* -FI_EAGAIN: not answered */
	uint64_t bytes;
};

/* ---- Imports ------------------------------------------------------- */

static void rmem_drop(struct hal_rmem *rmem)
{
	struct hal_rmem **at = &rmem->peer->rmems;

	while (*at != rmem)
		at = &(*at)->next;
	*at = rmem->next;
	free(rmem);
}

void net_rmems_free(struct net_peer *peer)
{
	while (peer->rmems != NULL)
		rmem_drop(peer->rmems);
}

/* Ask for a region. The oldest answer that nobody has fetched makes place. */
static int import_ask(struct net_peer *peer, const struct hal_key *key)
{
	struct hal_rmem *rmem, *oldest = NULL;
	uint32_t asks = 0, answers = 0;
	uint8_t *at;

	for (rmem = peer->rmems; rmem != NULL; rmem = rmem->next) {
		asks += rmem->status == -FI_EAGAIN;
		if (rmem->refs != 0 || rmem->status == -FI_EAGAIN)
			continue;
		answers++;
		oldest = rmem;
	}
	if (asks >= ASKS_MAX)
		return -FI_EAGAIN;
	if (answers >= ANSWERS_MAX)
		rmem_drop(oldest);
	rmem = calloc(1, sizeof(*rmem));
	if (rmem == NULL)
		return -FI_ENOMEM;
	at = net_rec_add(peer, NET_IMPORT, 0, key->word[0], sizeof(*key));
	if (at == NULL) {
		free(rmem);
		return -FI_ECONNRESET;
	}
	memcpy(at, key, sizeof(*key));
	net_flush(peer, 0);
	rmem->peer = peer;
	rmem->key = *key;
	rmem->status = -FI_EAGAIN;
	rmem->next = peer->rmems;
	peer->rmems = rmem;
	return -FI_EAGAIN;
}

int net_mem_import(struct hal_peer *hp, const struct hal_key *key,
		   struct hal_rmem **out)
{
	struct net_peer *peer = net_peer(hp);
	struct hal_rmem *rmem = peer->rmems;
	int ret;

	if (hp->dead || peer->dying != 0)
		return -FI_ECONNRESET;
	net_progress(peer->nif);
	while (rmem != NULL && (rmem->key.word[0] != key->word[0] ||
				rmem->key.word[1] != key->word[1]))
		rmem = rmem->next;
	if (rmem == NULL)
		return import_ask(peer, key);
	ret = rmem->status;
	if (ret == 0) {
		rmem->refs++;
		*out = rmem;
	} else if (ret != -FI_EAGAIN) {
		rmem_drop(rmem);
	}
	return ret;
}

void net_mem_release(struct hal_rmem *rmem)
{
	if (--rmem->refs == 0)
		rmem_drop(rmem);
}

uint64_t net_mem_bytes(const struct hal_rmem *rmem)
{
	return rmem->bytes;
}

/* The oldest request with this word is answered: answers keep the order. */
static int on_imported(struct net_peer *peer, const struct net_rec *rec,
		       const uint8_t *data)
{
	struct hal_rmem *found = NULL;
	struct net_reply reply;

	if (rec->len != sizeof(reply))
		return -EPROTO;
	memcpy(&reply, data, sizeof(reply));
	for (struct hal_rmem *r = peer->rmems; r != NULL; r = r->next)
		if (r->status == -FI_EAGAIN && r->key.word[0] == rec->arg)
			found = r;
	if (found == NULL)
		return -EPROTO;
	found->bytes = reply.off;
	found->status = reply.status == 0 ? 0 : -FI_EKEYREJECTED;
	return 0;
}

/* ---- Transfers ----------------------------------------------------- */

int net_dma_open(struct net_if *nif)
{
	nif->dma = calloc(nif->hif->caps->dma_depth, sizeof(*nif->dma));
	return nif->dma != NULL ? 0 : -FI_ENOMEM;
}

void net_dma_close(struct net_if *nif)
{
	free(nif->dma);
}

static int check_post(struct net_if *nif, const struct hal_dma *d)
{
	uint64_t limit = d->rmem != NULL ? d->rmem->bytes : UINT64_MAX;

	if (d->peer->hif != nif->hif ||
	    (d->op != HAL_DMA_GET && d->op != HAL_DMA_PUT) ||
	    (d->local == NULL && d->len != 0) ||
	    (d->rmem != NULL && &d->rmem->peer->p != d->peer) ||
	    d->raddr > limit || d->len > limit - d->raddr)
		return -FI_EINVAL;
	if (!(nif->hif->caps->flags & HAL_CAP_DMA_ANY) && d->len != 0 &&
	    !nif->base->mem_covers(nif->hif->hal, d->local, d->len))
		return -FI_EINVAL;
	return d->rmem == NULL && !d->peer->dead ? -FI_EACCES : 0;
}

/* Request the next piece of a transfer. False: not now. */
static bool next_piece(struct net_if *nif, struct net_dma *dma)
{
	struct net_peer *peer = net_peer(dma->d.peer);
	bool get = dma->d.op == HAL_DMA_GET;
	struct net_access a = {
		.key = dma->d.rmem->key, .off = dma->d.raddr + dma->asked,
		.len = dma->d.len - dma->asked,
	};
	uint64_t arg = (uint64_t)dma->gen << 32 | (uint64_t)(dma - nif->dma);
	uint8_t *at;

	if (a.len > NET_PIECE)
		a.len = NET_PIECE;
	if (peer->pieces >= PIECES_MAX)
		return false;
	at = net_rec_add(peer, get ? NET_GET : NET_PUT, 0, arg,
			 (uint32_t)(sizeof(a) + (get ? 0 : a.len)));
	if (at == NULL)
		return false;
	memcpy(at, &a, sizeof(a));
	if (!get)
		memcpy(at + sizeof(a), (uint8_t *)dma->d.local + dma->asked,
		       a.len);
	net_later(peer);
	HAL_FAULT_POINT(HAL_FAULT_POINT_DMA_HALF);
	dma->asked += a.len;
	dma->pieces++;
	peer->pieces++;
	return true;
}

static bool ended(const struct net_dma *dma)
{
	return dma->pieces == 0 && (dma->status != 0 ||
				    dma->done == dma->d.len);
}

static void push(struct net_if *nif)
{
	uint32_t left = nif->ndma;

	for (uint32_t i = 0; left != 0; i++) {
		struct net_dma *dma = &nif->dma[i];

		if (!dma->busy)
			continue;
		left--;
		while (dma->status == 0 && dma->asked < dma->d.len &&
		       next_piece(nif, dma))
			;
	}
	net_flush_later(nif);
}

int net_dma_post(struct hal_if *hif, const struct hal_dma *d, uint64_t token)
{
	struct net_if *nif = net_if(hif);
	struct net_dma *dma = nif->dma;
	int ret;

	if (d->peer == NULL || d->peer->host == NULL) {
		if (nif->base_dma + nif->ndma == hif->caps->dma_depth)
			return -FI_EAGAIN;
		ret = nif->base->dma_post(hif, d, token);
		nif->base_dma += ret == 0;
		return ret;
	}
	ret = check_post(nif, d);
	if (ret != 0)
		return ret;
	if (nif->base_dma + nif->ndma == hif->caps->dma_depth)
		return -FI_EAGAIN;
	while (dma->busy)
		dma++;
	dma->busy = true;
	dma->gen++;
	dma->d = *d;
	dma->token = token;
	dma->asked = 0;
	dma->done = 0;
	dma->pieces = 0;
	dma->status = d->peer->dead ? -FI_ECANCELED : 0;
	if (d->rmem != NULL)
		d->rmem->refs++;
	nif->ndma++;
	push(nif);
	return 0;
}

/* An answer: the transfer of a piece, or NULL if it was cancelled. */
static int piece_of(struct net_peer *peer, uint64_t arg, struct net_dma **out)
{
	struct net_if *nif = peer->nif;
	uint32_t i = (uint32_t)arg;
	struct net_dma *dma;

	*out = NULL;
	if (i >= nif->hif->caps->dma_depth || peer->pieces == 0)
		return -EPROTO;
	peer->pieces--;
	dma = &nif->dma[i];
	if (!dma->busy || dma->gen != arg >> 32 || dma->d.peer != &peer->p)
		return 0;
	if (dma->pieces == 0)
		return -EPROTO;
	dma->pieces--;
	*out = dma;
	return 0;
}

/*
 * Answers of a peer come in the order of the requests, so those of a transfer
 * are at dma->done. A piece is NET_PIECE bytes long, and the last one shorter.
 */
static int on_piece(struct net_peer *peer, const struct net_rec *rec,
		    const uint8_t *data)
{
	struct net_reply reply;
	struct net_dma *dma;
	uint64_t len;
	int ret;

	if (rec->len < sizeof(reply))
		return -EPROTO;
	memcpy(&reply, data, sizeof(reply));
	ret = piece_of(peer, rec->arg, &dma);
	if (ret != 0 || dma == NULL)
		return ret;
	len = dma->asked - dma->done;
	if (len > NET_PIECE)
		len = NET_PIECE;
	if (rec->type == NET_GOT) {
		if (dma->d.op != HAL_DMA_GET || rec->len != sizeof(reply) + len)
			return -EPROTO;
		memcpy((uint8_t *)dma->d.local + dma->done,
		       data + sizeof(reply), len);
	}
	dma->done += len;
	if (reply.status != 0 && dma->status == 0)
		dma->status = -FI_EIO;
	return 0;
}

int net_dma_record(struct net_peer *peer, const struct net_rec *rec,
		   const uint8_t *data)
{
	switch (rec->type) {
	case NET_IMPORTED:
		return on_imported(peer, rec, data);
	case NET_GOT:
	case NET_DONE:
		return on_piece(peer, rec, data);
	default:
		return net_region_record(peer, rec, data);
	}
}

int net_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	struct net_if *nif = net_if(hif);
	uint32_t left;
	int n = 0;

	if (nif->ndma != 0) {
		push(nif);
		net_progress(nif);
	}
	left = nif->ndma;
	for (uint32_t i = 0; left != 0 && n < max; i++) {
		struct net_dma *dma = &nif->dma[i];

		if (!dma->busy)
			continue;
		left--;
		if (!ended(dma))
			continue;
		comp[n].token = dma->token;
		comp[n++].status = dma->status;
		if (dma->d.rmem != NULL)
			net_mem_release(dma->d.rmem);
		dma->busy = false;
		nif->ndma--;
	}
	if (nif->base_dma != 0 && n < max) {
		int got = nif->base->dma_poll(hif, comp + n, max - n);

		nif->base_dma -= (uint32_t)got;
		n += got;
	}
	return n;
}

bool net_dma_busy(const struct net_peer *peer)
{
	const struct hal_rmem *rmem = peer->rmems;

	while (rmem != NULL && rmem->status != -FI_EAGAIN)
		rmem = rmem->next;
	return peer->pieces != 0 || rmem != NULL;
}

void net_dma_cancel(struct net_peer *peer)
{
	struct net_if *nif = peer->nif;

	peer->pieces = 0;
	for (uint32_t i = 0; i < nif->hif->caps->dma_depth; i++) {
		struct net_dma *dma = &nif->dma[i];

		if (!dma->busy || dma->d.peer != &peer->p)
			continue;
		if (!ended(dma))
			dma->status = -FI_ECANCELED;
		dma->pieces = 0;
		dma->gen++;		/* late answers are not for it */
		if (dma->d.rmem != NULL)
			net_mem_release(dma->d.rmem);
		dma->d.rmem = NULL;
		dma->d.peer = NULL;
	}
}
