/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_time.c - when packets, stores, loads and transfers end under the
 * timing model.
 *
 * The emulation (emu/hal_emu_stamp.c, emu/hal_emu_model.c) and the register
 * model (sim/hal_sim_box.c, sim/hal_sim_store.c, sim/hal_sim_xfer.c,
 * sim/hal_sim_cdma.c) carry the times to their receivers, each in its own way.
 * hal_model.c reads the figures. docs/model.md describes the model.
 */
#include <stdatomic.h>

#include "hal/hal_time.h"

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- Packets, stores, loads --------------------------------------------- */

/* An interface has one packetizer: its packets follow each other, whatever
 * their destinations. */
uint64_t hal_time_packet(const struct hal_model *m,
			 struct hal_time_path *path, uint64_t now)
{
	uint64_t start = later(now, path->packet_free);

	path->packet_free = start + m->packet_gap;
	return start + m->packet_latency;
}

uint64_t hal_time_store(const struct hal_model *m,
			struct hal_time_path *path, uint64_t now, size_t len,
			uint64_t *stall)
{
	uint64_t ahead = m->store_queue * m->store_time, last = m->line_time;
	size_t tail = len % HAL_MODEL_LINE;

	path->store_free = later(now, path->store_free) +
			   len / HAL_MODEL_LINE * m->line_time;
	if (tail != 0) {
		if (tail <= HAL_MODEL_SHORT)
			last = m->store_time;
		path->store_free += last;
	}
	*stall = path->store_free > ahead ? path->store_free - ahead : 0;
	return path->store_free - last + m->store_latency;
}

uint64_t hal_time_load(const struct hal_model *m,
		       const struct hal_time_path *path, uint64_t now)
{
	return later(now, path->store_free) + m->load_round_trip;
}

/* ---- Transfers ---------------------------------------------------------- */

void hal_time_queue_init(struct hal_time_queue *q,
			 struct hal_time_engine *engine)
{
	q->engine = engine;
	unm_list_init(&q->runs);
}

void hal_time_begin(const struct hal_model *m, struct hal_time_queue *q,
		    struct hal_time_run *run, uint64_t now, uint64_t bytes)
{
	uint64_t duration = m->dma_setup + (uint64_t)
		((double)bytes * 1e9 / (double)m->dma_bandwidth);
	/* relaxed here and below: the word is a time, and orders nothing */
	uint64_t idle_at = atomic_load_explicit(&q->engine->free,
						memory_order_relaxed);

	do {
		run->start = later(now, idle_at);
		run->due = run->start + duration;
	} while (!atomic_compare_exchange_weak_explicit(&q->engine->free,
			&idle_at, run->due, memory_order_relaxed,
			memory_order_relaxed));
	unm_list_append(&q->runs, &run->list);
}

void hal_time_over(struct hal_time_queue *q, struct hal_time_run *run,
		    uint64_t now)
{
	uint64_t end = run->due, from = later(now, run->start), left;
	struct unm_list *next = run->list.next;

	unm_list_remove(&run->list);
	if (from >= end)
		return;
	left = end - from;
	for (; next != &q->runs; next = next->next) {
		struct hal_time_run *r = unm_container(next,
						struct hal_time_run, list);

		if (r->start != end)
			break;		/* another user's is in between */
		end = r->due;
		r->start -= left;
		r->due -= left;
	}
	atomic_compare_exchange_strong_explicit(&q->engine->free, &end,
						end - left,
						memory_order_relaxed,
						memory_order_relaxed);
}
