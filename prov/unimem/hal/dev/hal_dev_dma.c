/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_dev_dma.c - transfers of an interface.
 *
 * A transfer is cut into pieces that the engine can count and that end soon;
 * one piece of it is under way at a time. The driver of the board or, where the
 * process has the engine's registers, hal_dev_engine.c executes the pieces.
 * Only dev_dma_poll() completes a transfer: after the status of its last piece,
 * or, if it was cancelled, after it is certain that no byte moves any more.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "hal/dev/hal_dev_dma.h"
#include "hal/dev/hal_dev_engine.h"
#include "hal/dev/hal_dev_mem.h"
#include "hal/dev/hal_dev_region.h"
#include "util/unm_clock.h"

#define PIECE_BYTES	(UINT64_C(1) << 20)
#define STATUS_BURST	16
#define BUSY_NS		UINT64_C(1000000000)	/* wait for an engine that
						 * another process has */
#define CANCEL_READS	1000		/* reads of statuses, until that of a
					 * cancelled transfer has come */

/* ---- Pieces ------------------------------------------------------------ */

/* Id of a transfer at the driver: generation and slot, never 0. */
static uint64_t xfer_id(const struct dev_if *dif, const struct dev_xfer *x)
{
	return (uint64_t)x->gen << 16 | (uint64_t)(x - dif->dma + 1);
}

/* The transfer with an id; NULL: it has no piece under way. */
static struct dev_xfer *xfer_of(struct dev_if *dif, uint64_t id)
{
	uint64_t slot = (id & 0xFFFF) - 1;
	struct dev_xfer *x = &dif->dma[slot % DEV_DMA_DEPTH];

	return slot < DEV_DMA_DEPTH && x->busy && x->chunk != 0 &&
	       xfer_id(dif, x) == id ? x : NULL;
}

static int kernel_start(struct dev_if *dif, struct dev_xfer *x, uint64_t src,
			uint64_t dst)
{
	uint64_t max = dif->info.xfer_max < PIECE_BYTES ? dif->info.xfer_max :
		       PIECE_BYTES;
	uint64_t left = x->d.len - x->moved;
	struct hal_kdev_xfer k = {
		.src = src, .dst = dst, .size = left < max ? left : max,
		.id = xfer_id(dif, x),
	};
	ssize_t ret;

	dif->io->memory_before_start(dif->mm);
	ret = dif->io->write(dif->mm, &k, sizeof(k));
	if (ret != (ssize_t)sizeof(k))
		return ret < 0 ? (int)ret : -EAGAIN;
	x->chunk = k.size;
	return 0;
}

/* Another process has the engine (-EBUSY). Is it worth to wait for it? */
static bool busy_passes(struct dev_if *dif, struct dev_xfer *x)
{
	uint64_t now = unm_now_ns();

	if (x->busy_since == 0)
		x->busy_since = now;
	if (!dif->busy_logged) {
		dif->busy_logged = true;
		hal_log(0, "interface %u:%u: another process has the cDMA "
			"engine of board %u: end it, or set engine = kernel "
			"in its platform file", dif->i.addr.board,
			dif->i.addr.iface, dif->i.addr.board);
	}
	return now - x->busy_since < BUSY_NS;
}

/* Start the next piece, if the engine can take one. */
static void start(struct dev_if *dif, struct dev_xfer *x)
{
	bool get = x->d.op == HAL_DMA_GET;
	uint64_t src = (get ? x->raddr : x->laddr) + x->moved;
	uint64_t dst = (get ? x->laddr : x->raddr) + x->moved;
	int ret;

	/* Relaxed: no other thread knows the piece before it is started. */
	atomic_store_explicit(&x->result, 0, memory_order_relaxed);
	if (dif->dev->engine != NULL)
		ret = dev_engine_start(dif->dev, x, src, dst, PIECE_BYTES);
	else
		ret = kernel_start(dif, x, src, dst);
	if (ret != -EBUSY)
		x->busy_since = 0;
	if (ret == 0 || ret == -EAGAIN ||
	    (ret == -EBUSY && busy_passes(dif, x)))
		return;
	hal_log(0, "interface %u:%u: a transfer of %llu bytes is not accepted: "
		"%s", dif->i.addr.board, dif->i.addr.iface,
		(unsigned long long)x->d.len, strerror(-ret));
	x->status = ret == -EFAULT ? -FI_EACCES : -FI_EIO;
}

/* A piece has ended; result is 1 or a negative fi_errno. */
static void piece_over(struct dev_xfer *x, int result)
{
	x->moved += x->chunk;
	x->chunk = 0;
	if (result < 0)
		x->status = result;
	else if (x->moved == x->d.len)
		x->status = 0;
	if (x->status != 0)
		HAL_FAULT_POINT(HAL_FAULT_POINT_DMA_HALF);
}

/* Act upon a status of the driver. */
static void take_status(struct dev_if *dif, const struct hal_kdev_status *st)
{
	struct dev_xfer *x = xfer_of(dif, st->id);

	if (x == NULL || st->state < HAL_KDEV_COMPLETED)
		return;
	if (st->state == HAL_KDEV_FAILED)
		hal_log(0, "interface %u:%u: a transfer failed, engine error "
			"0x%x", dif->i.addr.board, dif->i.addr.iface,
			st->error);
	piece_over(x, st->state == HAL_KDEV_COMPLETED ? 1 :
		   st->state == HAL_KDEV_CANCELLED ? -FI_ECANCELED : -FI_EIO);
}

/* Read the statuses that are ready, a bounded number. Returns their number. */
static int read_statuses(struct dev_if *dif)
{
	struct hal_kdev_status st[STATUS_BURST];
	ssize_t n;

	n = dif->io->read(dif->mm, st, sizeof(st));
	if (n <= 0)
		return 0;
	/* The caller reads the transferred data after the status. */
	dif->io->status_before_memory(dif->mm);
	n /= (ssize_t)sizeof(st[0]);
	for (ssize_t i = 0; i < n; i++)
		take_status(dif, &st[i]);
	return (int)n;
}

/* Act upon results of the engine, whichever thread has stored them. */
static void engine_results(struct dev_if *dif)
{
	dev_engine_poll(dif->dev);
	for (int i = 0; i < DEV_DMA_DEPTH; i++) {
		struct dev_xfer *x = &dif->dma[i];
		int result;

		if (!x->busy || x->chunk == 0)
			continue;
		/* Pairs with the release in finish() of hal_dev_engine.c. */
		result = atomic_load_explicit(&x->result,
					      memory_order_acquire);
		if (result != 0)
			piece_over(x, result);
	}
}

/* ---- Posting and polling ----------------------------------------------- */

static int check_post(struct dev_if *dif, const struct hal_dma *d)
{
	uint64_t limit = d->rmem != NULL ? d->rmem->bytes : 0;

	if (d->peer == NULL || d->peer->hif != &dif->i ||
	    (d->op != HAL_DMA_GET && d->op != HAL_DMA_PUT) ||
	    (d->local == NULL && d->len != 0))
		return -FI_EINVAL;
	if (d->rmem == NULL)		/* the engine reaches imports only */
		return -FI_EACCES;
	if (d->rmem->peer != dev_peer(d->peer) || d->raddr > limit ||
	    d->len > limit - d->raddr)
		return -FI_EINVAL;
	return 0;
}

int dev_dma_post(struct hal_if *hif, const struct hal_dma *d, uint64_t token)
{
	struct dev_if *dif = dev_if(hif);
	struct dev_xfer *x = dif->dma;
	uint64_t laddr = 0;
	int ret;

	ret = check_post(dif, d);
	if (ret == 0 && d->len != 0)
		ret = dev_mem_gaddr(dif->dev, d->local, d->len, &laddr);
	if (ret != 0)
		return ret;
	if (dif->dma_busy == DEV_DMA_DEPTH)
		return -FI_EAGAIN;
	while (x->busy)
		x++;
	x->d = *d;
	x->token = token;
	x->laddr = laddr;
	x->raddr = dev_ref_gaddr(d->rmem->key.word[0]) + d->raddr;
	x->moved = 0;
	x->chunk = 0;
	x->busy_since = 0;
	x->gen++;
	x->busy = true;
	x->status = d->peer->dead ? -FI_ECANCELED :
		    d->len == 0 ? 0 : -FI_EINPROGRESS;
	d->rmem->refs++;
	dif->dma_busy++;
	if (x->status == -FI_EINPROGRESS)
		start(dif, x);
	return 0;
}

static void slot_free(struct dev_if *dif, struct dev_xfer *x)
{
	x->busy = false;
	dif->dma_busy--;
	if (x->d.rmem != NULL)
		dev_mem_release(x->d.rmem);
}

int dev_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp, int max)
{
	struct dev_if *dif = dev_if(hif);
	int n = 0;

	if (dif->dma_busy == 0)
		return 0;
	if (dif->dev->engine != NULL)
		engine_results(dif);
	else
		read_statuses(dif);
	for (int i = 0; i < DEV_DMA_DEPTH && n < max; i++) {
		struct dev_xfer *x = &dif->dma[dif->dma_at];

		dif->dma_at = (dif->dma_at + 1) % DEV_DMA_DEPTH;
		if (!x->busy)
			continue;
		if (x->status == -FI_EINPROGRESS && x->chunk == 0)
			start(dif, x);
		if (x->status == -FI_EINPROGRESS)
			continue;
		comp[n].token = x->token;
		comp[n].status = x->status;
		n++;
		slot_free(dif, x);
	}
	return n;
}

/* ---- Cancelling -------------------------------------------------------- */

/* Stop the piece of a transfer that is under way, if there is one. */
static void stop(struct dev_if *dif, struct dev_xfer *x)
{
	struct hal_kdev_cancel c = { .id = xfer_id(dif, x) };

	if (x->chunk == 0)
		return;
	if (dif->dev->engine != NULL) {
		dev_engine_cancel(dif->dev, x);
		engine_results(dif);
		return;
	}
	dif->io->ioctl(dif->mm, HAL_KDEV_IO_CANCEL, &c);
	for (int i = 0; i < CANCEL_READS && x->chunk != 0; i++)
		read_statuses(dif);
}

void dev_dma_cancel(struct dev_if *dif, struct dev_peer *peer)
{
	for (int i = 0; i < DEV_DMA_DEPTH && dif->dma_busy != 0; i++) {
		struct dev_xfer *x = &dif->dma[i];

		if (!x->busy || (peer != NULL && x->d.peer != &peer->p))
			continue;
		stop(dif, x);
		x->chunk = 0;
		if (x->status == -FI_EINPROGRESS)
			x->status = -FI_ECANCELED;
		if (x->d.rmem != NULL)
			dev_mem_release(x->d.rmem);
		x->d.rmem = NULL;
		x->d.peer = NULL;
	}
}
