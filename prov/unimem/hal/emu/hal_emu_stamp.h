/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_stamp.h - times of arrival, in links of the timing model; private to
 * hal/emu.
 *
 * Only where emu->model is set. Otherwise no peer has a struct emu_timed and
 * nobody calls these functions.
 */
#ifndef HAL_EMU_STAMP_H
#define HAL_EMU_STAMP_H

#include "hal/emu/hal_emu_types.h"
#include "hal/hal_time.h"

#define EMU_STAMPS	32	/* snapshots in a link */
#define EMU_STAMP_BYTES	4096	/* of a link, below its receive space */

/* The back words as they are from time due on. The receiver of packets writes
 * it: due = UINT64_MAX, the words, due. */
struct emu_stamp {
	_Atomic uint64_t due;		/* ns of the monotonic clock; 0: never
					 * written */
	_Atomic uint64_t word[1 + HAL_BACK_WORDS];	/* done, then word[] */
};
_Static_assert(sizeof(struct emu_stamp) == HAL_LINE, "a snapshot is a line");

/* The last snapshots of a link, in shared memory. */
struct emu_stamps {
	_Atomic uint64_t count;		/* snapshots written so far */
	struct emu_stamp at[EMU_STAMPS] __attribute__((aligned(HAL_LINE)));
};
_Static_assert(sizeof(struct emu_stamps) <= EMU_STAMP_BYTES, "one page");

/*
 * State of a peer under the model, beside its hal_peer. tx.cells, tx.space and
 * rx.back are NULL, so that the calls of hal.h come to this file; rx.cells is a
 * private ring, which holds what has arrived. From the peer's first half until
 * emu_stamp_drop(). The thread that uses the interface may use it.
 */
struct emu_timed {
	struct unm_list list;		/* in emu_times.peers */
	struct emu_peer *peer;
	/* outbound half */
	struct hal_cell *tx_cells;	/* ring in the link; NULL: not open */
	uint8_t *tx_space;		/* receive space of the peer */
	const struct emu_stamps *tx_stamps;	/* the peer writes them */
	uint64_t words_due;		/* due of the snapshot in tx.back */
	uint64_t nseen;			/* snapshots, as tx_stamps said last */
	bool stored;			/* to receive space, since the last
					 * barrier */
	/* inbound half */
	struct hal_cell *rx_cells;	/* ring in the link; NULL: not open */
	struct hal_cell *rx_arrived;	/* private ring: rx.cells */
	struct hal_back *rx_back;	/* back words in the link */
	struct emu_stamps *rx_stamps;
	uint64_t rx_next;		/* next slot of the link's ring to take
					 * into the private ring */
	uint64_t nstamps;		/* snapshots written */
	uint64_t due[EMU_STAMPS];	/* of the snapshots in rx_stamps */
	uint64_t word[1 + HAL_BACK_WORDS];	/* as stored last */
	/* both halves */
	uint64_t limit;			/* ns, when all that the peer sent has
					 * arrived at the latest; UINT64_MAX:
					 * its end was not noticed */
};

/* The parts of an interface that take time. In emu_if.times. */
struct emu_times {
	struct unm_list peers;		/* emu_timed.list */
	struct hal_time_path path;	/* packetizer, posted stores */
};

/* Hide an outbound or inbound half that was just opened. 0, -FI_ENOMEM. The
 * undo function is for an outbound half that is closed again. */
int emu_stamp_tx(struct emu_peer *peer);
void emu_stamp_tx_undo(struct emu_peer *peer);
int emu_stamp_rx(struct emu_peer *peer);

/* Free peer->timed, if there is one. */
void emu_stamp_drop(struct emu_peer *peer);

/* Entries of the backend table, see hal.h. The barriers wait for a remote
 * load. */
int emu_stamp_send(struct hal_peer *peer, uint64_t head, const uint64_t *w,
		   unsigned nw, const void *data, size_t len);
void emu_stamp_space_write(struct hal_peer *peer, uint32_t off,
			   const void *src, size_t len);
void emu_stamp_space_barrier(struct hal_peer *peer);
void emu_stamp_back_store(struct hal_peer *peer, int word, uint64_t val);
int emu_stamp_back_barrier(struct hal_peer *peer);
void emu_stamp_pump(struct hal_if *hif);

/* Is a packet or a back word of this peer under way? For a peer whose end was
 * noticed: it is declared dead when none is, half a second after the first call
 * at the latest. */
bool emu_stamp_under_way(struct emu_peer *peer);

/*
 * For an armed interface: when does it have to wake? 0: there is a packet of a
 * peer that is not throttled; else the time, in ns, at which the first packet
 * arrives, or the first back word for a sleeping sender; UINT64_MAX: nothing is
 * under way.
 */
uint64_t emu_stamp_next(struct hal_if *hif);

#endif /* HAL_EMU_STAMP_H */
