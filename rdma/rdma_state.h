/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_state.h - the objects of libunimem-rdma: the library of a process, its
 * segments, buffers and transfers. Structures only; docs/rdma.md explains them.
 *
 * One lock protects all of them. A function that takes a struct rdma is called
 * with the lock held, unless its comment says otherwise.
 */
#ifndef RDMA_STATE_H
#define RDMA_STATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "client/gsas_port.h"
#include "hal/hal.h"
#include "unimem/unim_dma.h"
#include "util/unm_list.h"

/* Transfers whose state is known: a transfer has the slot id % RDMA_SLOTS. A
 * block of ids has as many, so that ids in a row have slots in a row. */
#define RDMA_SLOTS	GSAS_NUMBERS_GIVEN

#define RDMA_CELLS	4		/* cells of the bounce buffer */
#define RDMA_CELL	(UINT64_C(256) << 10)	/* bytes of a cell */

struct unim_dma_node {
	unim_node_id_t id;
};

/* An imported segment of a board's memory. It lasts as long as a buffer is in
 * it; the import lasts no longer than the connection through which it was
 * made. */
struct rdma_segment {
	struct unm_list list;		/* in rdma.segments */
	uint64_t base, bytes;		/* global address and size */
	struct gsas_conn *conn;
	uint32_t epoch;			/* conn->epoch of the import */
	struct hal_rmem *rmem;		/* valid: rdma_segment_alive() */
	uint8_t *ptr;			/* where this process has mapped it, for
					 * programs; NULL: it has not */
	struct hal_mem *mem;		/* ptr is of hal_mem_open(); NULL: ptr
					 * is a second mapping of the window */
	uint32_t refs;			/* buffers */
};

struct unim_dma_buffer {
	struct unm_list list;		/* in rdma.buffers */
	struct rdma_segment *segment;
	uint64_t address, bytes;	/* global address and size */
	bool own;			/* this process allocated it */
	uint32_t transfers;		/* that have not ended */
};

/* One end of a transfer: bytes of a buffer, or memory of the process. */
struct rdma_end {
	struct unim_dma_buffer *buf;	/* NULL: memory */
	uint64_t off;			/* in the buffer */
	uint8_t *mem;			/* the first byte, where the process has
					 * a pointer to it; else NULL */
};

/* The next step of a transfer, or the present one while an operation of the HAL
 * is under way */
enum rdma_step {
	RDMA_BEGIN,			/* choose a way */
	RDMA_DIRECT,			/* one transfer of the HAL */
	RDMA_FILL,			/* next bytes to the cell */
	RDMA_DRAIN,			/* from the cell to the destination */
	RDMA_NOTIFY,			/* add 1 to a word of the destination */
};

/* A call-back. It belongs to its transfer until the transfer ends, then to
 * rdma.callbacks until the submitter thread takes it. */
struct rdma_callback {
	struct unm_list list;		/* in rdma.callbacks, or in none */
	unim_comp_cb_t comp_cb;
	void *cb_arg;
};

/* A slot of rdma.slot. The slot is busy until the transfer has ended. */
struct unim_dma_transfer {
	struct unm_list list;		/* in rdma.pending, blocked or
					 * notifying, or in none */
	struct unm_list ended;		/* in rdma.ended, or in none */
	uint64_t id;			/* 0: never used */
	unim_dma_status_t state;
	int error;			/* of DMA_FAILED, negative errno */
	enum rdma_step step;
	bool notify;
	int cell;			/* bounce cell; -1: none */
	struct rdma_end src, dst;
	uint64_t size, done, chunk;	/* bytes: all, moved by cells so far,
					 * in the cell */
	uint64_t notify_off;		/* in the destination */
	struct rdma_callback *callback;	/* NULL: none, or it has ended */
	struct gsas_request request;	/* of RDMA_NOTIFY */
};

/* The library of a process, from unim_dma_init() to unim_dma_cleanup(). */
struct rdma {
	pthread_mutex_t *lock;
	bool ready;
	int pid;			/* process that called init */
	struct hal *hal;
	struct gsas_thread *port;	/* its interface is that of all
					 * transfers */
	uint32_t node, boards;		/* board of the port; all boards */
	struct unim_dma_node *nodes;	/* by board */
	struct unm_list buffers, segments;
	uint32_t turn;			/* of UNIM_DMA_INTERLEAVE */

	struct unim_dma_transfer *slot;	/* RDMA_SLOTS */
	uint64_t next_id, ids_left;	/* of the block of ids */
	uint32_t live;			/* transfers that have not ended, so
					 * busy slots */
	struct unm_list pending;	/* not started, in order */
	struct unm_list blocked;	/* to be continued when the HAL takes
					 * more */
	struct unm_list notifying;	/* wait for the answer of the service */
	struct unm_list callbacks;	/* of ended transfers, to be called */
	struct hal_mem *bounce;		/* NULL: not allocated yet */
	uint8_t *cells;
	uint32_t cells_used;		/* a bit each */
	uint64_t direct, by_cells;	/* transfers that began without a copy,
					 * and by cells; for tests */

	int event_fd;			/* -1: nobody asked for it */
	bool event_on;			/* it is readable */
	struct unm_list ended;		/* for unim_dma_poll(), if event_fd is
					 * not -1 */

	bool threaded, stop;		/* the submitter thread runs; it shall
					 * end */
	pthread_t thread;
	pthread_cond_t wake;		/* there is work for it */
};

#endif /* RDMA_STATE_H */
