/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_model.c - the timing model: transfers and sleeping.
 *
 * Entry point: emu_model_open(). It is a layer around the table of the
 * emulation: what it does not replace is as without a model, and without a
 * model nothing of it runs. hal_emu_stamp.c has packets and stores;
 * docs/model.md describes the model.
 *
 * A transfer moves its bytes when the emulation does; its completion is kept
 * until the engine would have ended it. An armed interface has a timer for the
 * first packet that is under way. (A peer is not declared dead while packets of
 * it are under way: finish_dying() in hal_emu.c.)
 */
#include <stdlib.h>
#include <string.h>

#include "hal/emu/hal_emu_engine.h"
#include "hal/emu/hal_emu_model.h"
#include "hal/emu/hal_emu_sleep.h"
#include "hal/emu/hal_emu_stamp.h"
#include "util/unm_clock.h"

#define POLL_BURST	16		/* completions taken per poll */
#define HANG_UP_EVERY	1024u		/* services between two calls of
					 * emu_engine_hang_up() */

enum dma_state { DMA_FREE, DMA_POSTED, DMA_DONE };

/* A transfer. The emulation knows it by its index in model_if.dma[]. */
struct model_dma {
	enum dma_state state;
	int status;			/* DMA_DONE: to be reported */
	struct hal_time_run run;	/* when the engine executes it */
	uint64_t token;			/* of the caller */
};

/* State of an interface under the model, from model_if_open() to
 * model_if_close(). The thread that uses the interface may use it. */
struct model_if {
	struct emu_times times;		/* emu_if.times */
	uint32_t posted, done;		/* transfers in these states */
	struct emu_engine *engine;	/* the cDMA engine of its board */
	uint32_t services;		/* calls of model_service() */
	struct hal_time_queue queue;	/* transfers whose completion is not
					 * reported yet */
	struct model_dma dma[EMU_DMA_DEPTH];
};

static struct model_if *model_if(struct hal_if *hif)
{
	return unm_container(emu_if(hif)->times, struct model_if, times);
}

static const struct hal_ops *base_of(struct hal_if *hif)
{
	return emu_if(hif)->emu->model->base;
}

/* ---- Interfaces -------------------------------------------------------- */

static int model_if_open(struct hal *hal, int board, int number,
			 struct hal_if **hif)
{
	struct hal_emu *emu = (struct hal_emu *)hal;
	struct model_if *mif = calloc(1, sizeof(*mif));
	struct hal_if *opened;
	int ret;

	if (mif == NULL)
		return -FI_ENOMEM;
	unm_list_init(&mif->times.peers);
	ret = emu->model->base->if_open(hal, board, number, &opened);
	if (ret != 0)
		goto err_free;
	ret = emu_engine_open(emu->model, opened->addr.board, &mif->engine);
	if (ret != 0)
		goto err_close;
	hal_time_queue_init(&mif->queue, mif->engine->times);
	emu_if(opened)->times = &mif->times;
	*hif = opened;
	return 0;

err_close:
	emu->model->base->if_close(opened);
err_free:
	free(mif);
	return ret;
}

static void model_if_close(struct hal_if *hif)
{
	struct emu_model *model = emu_if(hif)->emu->model;
	struct model_if *mif = model_if(hif);

	model->base->if_close(hif);
	emu_engine_close(model, mif->engine);
	free(mif);
}

static int model_service(struct hal_if *hif, struct hal_event *ev, int max)
{
	struct model_if *mif = model_if(hif);
	int n = base_of(hif)->service(hif, ev, max);

	if (++mif->services % HANG_UP_EVERY == 0)
		emu_engine_hang_up(mif->engine);
	emu_stamp_pump(hif);
	return n;
}

/* ---- Sleeping ---------------------------------------------------------- */

/*
 * A packet that is under way does not keep the caller from sleeping: the timer
 * ends the sleep when the packet arrives. emu_arm() has marked the caller as
 * asleep before emu_stamp_next() reads the rings, so a packet that is not seen
 * there wakes the caller, which arms once more and then sets the timer. While
 * finish_dying() waits for the last arrival of a peer, nobody sleeps.
 */
static int model_arm(struct hal_if *hif)
{
	uint64_t next;
	int ret;

	if (emu_if(hif)->ndying != 0)
		return -FI_EAGAIN;
	emu_stamp_pump(hif);
	ret = base_of(hif)->arm(hif);
	if (ret != 0)
		return ret;
	next = emu_stamp_next(hif);
	if (next == 0) {
		base_of(hif)->disarm(hif);
		return -FI_EAGAIN;
	}
	if (next != UINT64_MAX)
		emu_sleep_until(emu_if(hif), next);
	return 0;
}

/* ---- cDMA -------------------------------------------------------------- */

static int model_dma_post(struct hal_if *hif, const struct hal_dma *dma,
			  uint64_t token)
{
	const struct hal_model *m = &emu_if(hif)->emu->model->figures;
	struct model_if *mif = model_if(hif);
	uint64_t now = unm_now_ns();
	struct model_dma *d = mif->dma;
	int ret;

	if (mif->posted + mif->done == EMU_DMA_DEPTH)
		return -FI_EAGAIN;
	while (d->state != DMA_FREE)
		d++;
	ret = base_of(hif)->dma_post(hif, dma, (uint64_t)(d - mif->dma));
	if (ret != 0)
		return ret;
	hal_time_begin(m, &mif->queue, &d->run, now, dma->len);
	d->state = DMA_POSTED;
	d->token = token;
	mif->posted++;
	return 0;
}

/* Take the completions of the emulation. A transfer that failed is over at
 * once. */
static void take_completions(struct hal_if *hif)
{
	struct model_if *mif = model_if(hif);
	struct hal_dma_comp got[POLL_BURST];
	int n = base_of(hif)->dma_poll(hif, got, POLL_BURST);

	for (int i = 0; i < n; i++) {
		struct model_dma *d = &mif->dma[got[i].token];

		d->state = DMA_DONE;
		d->status = got[i].status;
		if (d->status != 0)
			hal_time_over(&mif->queue, &d->run, unm_now_ns());
		mif->posted--;
		mif->done++;
	}
}

static int model_dma_poll(struct hal_if *hif, struct hal_dma_comp *comp,
			  int max)
{
	struct model_if *mif = model_if(hif);
	uint64_t now;
	int n = 0;

	if (mif->posted != 0)
		take_completions(hif);
	if (mif->done == 0)
		return 0;
	now = unm_now_ns();
	for (uint32_t i = 0; i < EMU_DMA_DEPTH && n < max; i++) {
		struct model_dma *d = &mif->dma[i];

		if (d->state != DMA_DONE ||
		    (d->status == 0 && d->run.due > now))
			continue;
		if (d->status == 0)
			hal_time_over(&mif->queue, &d->run, now);
		comp[n].token = d->token;
		comp[n++].status = d->status;
		d->state = DMA_FREE;
		mif->done--;
	}
	return n;
}

/* ---- Set-up ------------------------------------------------------------ */

static void model_dump(struct hal_if *hif, FILE *out)
{
	struct model_if *mif = model_if(hif);

	base_of(hif)->dump(hif, out);
	fprintf(out, "timing model: figures of %s, transfers %u moving and %u "
		"not due\n", emu_if(hif)->emu->model->figures.path,
		mif->posted, mif->done);
}

void emu_model_open(struct hal_emu *emu, const struct hal_ops *base)
{
	struct hal_ops *ops = &emu->model->ops;

	emu->model->base = base;
	unm_list_init(&emu->model->engines);
	*ops = *base;
	ops->if_open = model_if_open;
	ops->if_close = model_if_close;
	ops->service = model_service;
	ops->arm = model_arm;
	ops->pkt_send = emu_stamp_send;
	ops->space_write = emu_stamp_space_write;
	ops->space_barrier = emu_stamp_space_barrier;
	ops->back_store = emu_stamp_back_store;
	ops->back_barrier = emu_stamp_back_barrier;
	ops->pump = emu_stamp_pump;
	ops->dma_post = model_dma_post;
	ops->dma_poll = model_dma_poll;
	ops->dump = model_dump;
	emu->hal.ops = ops;
}
