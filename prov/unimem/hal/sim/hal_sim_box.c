/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_box.c - packetizer and mailboxes [D 5.1, 5.2].
 *
 * A packet is an operation on a FIFO that any process may continue: a process
 * that finds an operation in progress (fifo->cur) finishes it before it begins
 * its own. The steps: decide where its words go and how many of them fit
 * (op->at), write them to cells that know their lap, move the tail, and store
 * the result into the sender's status. A step that is done a second time
 * changes nothing, however late it is.
 */
#define _GNU_SOURCE
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "hal/sim/hal_sim_box.h"
#include "hal/sim/hal_sim_check.h"
#include "hal/sim/hal_sim_join.h"
#include "hal/sim/hal_sim_store.h"

#define STATE_SHIFT	8		/* of the number in sim_op.state */
#define NUMBER_MASK	((UINT64_C(1) << 28) - 1)

/* The code of a decision: 1 + number of words that fit, or one of these. */
#define AT_NOT_YET	0u
#define AT_DROPPED	15u

#define PORT_MIF	HAL_REG_IFS	/* ports from here on: words that the
					 * holder of an interface wrote to a
					 * mailbox page, */
#define PORT_ENGINE	(2 * HAL_REG_IFS)	/* and that the engine wrote */

/* ---- Names of operations ----------------------------------------------- */

/* A reference names an operation: board, port and number of the operation at
 * that port. It stays valid when the port has begun another one. */

static struct sim_op *op_of(struct sim_world *w, uint64_t ref)
{
	struct sim_board *b = w->board[ref >> 48 & (HAL_REG_BOARDS_MAX - 1)];
	uint32_t port = ref >> 40 & 0xff;

	return port < PORT_MIF ? &b->pif[port].op : &b->mif[port - PORT_MIF];
}

static uint64_t op_ref(uint32_t board, uint32_t port, uint64_t number)
{
	return UINT64_C(1) << 63 | (uint64_t)board << 48 |
	       (uint64_t)port << 40 | number;
}

static uint64_t op_number(uint64_t state)
{
	return state >> STATE_SHIFT;
}

/* Is the operation that ref names still under way? *state is the port's. */
static bool op_pending(const struct sim_op *op, uint64_t ref, uint64_t *state)
{
	*state = atomic_load(&op->state);
	return op_number(*state) == (ref & NUMBER_MASK) &&
	       (*state & HAL_PIF_PEND) != 0;
}

static uint64_t make_at(uint64_t number, uint32_t code, uint64_t tail)
{
	return number << 36 | (uint64_t)code << 32 | (uint32_t)tail;
}

static uint32_t at_code(uint64_t at)
{
	return at >> 32 & 0xf;
}

static struct sim_fifo *fifo_of(struct sim_world *w, const struct sim_op *op)
{
	uint32_t where = atomic_load(&op->fifo);

	return &w->board[where >> 8 & (HAL_REG_BOARDS_MAX - 1)]->
		fifo[where & (HAL_REG_IFS - 1)];
}

/* ---- Steps ------------------------------------------------------------- */

/*
 * Decide how many words fit now. The answer depends on the first word: a FIFO
 * of packets must accept or refuse a packet as a whole (docs/hal.md, section
 * 13). With par.pairs the writers therefore see freed words in pairs only;
 * otherwise a reader between its two reads would free space for half a packet.
 */
static void decide(struct sim_world *w, struct sim_fifo *fifo,
		   struct sim_op *op, uint64_t ref)
{
	uint64_t number = ref & NUMBER_MASK;
	uint64_t none = make_at(number, AT_NOT_YET, 0);
	uint64_t tail = atomic_load(&fifo->tail);
	uint64_t head = atomic_load(&fifo->head) & ~(uint64_t)w->par.pairs;
	uint64_t room = (uint64_t)w->par.fifo - (tail - head);
	uint32_t words = atomic_load(&op->words);

	if (atomic_load(&fifo->cur) != ref)
		return;			/* tail may be of a later operation */
	if (room > (uint64_t)w->par.fifo)
		room = 0;		/* head was read after tail had moved */
	if (words > room)
		words = (uint32_t)room;
	atomic_compare_exchange_strong(&op->at, &none,
				       make_at(number, 1 + words, tail));
}

/* Write a cell, unless it has this lap or a later one already. */
static void put_cell(_Atomic uint64_t *cell, uint32_t lap, uint32_t data)
{
	uint64_t old = atomic_load(cell);

	while ((int32_t)((uint32_t)(old >> 32) - lap) < 0 &&
	       !atomic_compare_exchange_weak(cell, &old,
					     (uint64_t)lap << 32 | data))
		;
}

/* Write a value to two cells. */
static void put_cells(_Atomic uint64_t *cell, uint32_t lap, uint64_t val)
{
	put_cell(&cell[0], lap, (uint32_t)val);
	put_cell(&cell[1], lap, (uint32_t)(val >> 32));
}

/* Write word i of an operation to its place. */
static void put_word(struct sim_world *w, struct sim_fifo *fifo, uint64_t pos,
		     const struct sim_op *op, uint32_t i)
{
	uint64_t depth = (uint64_t)w->par.fifo, at = pos % depth;
	uint32_t lap = (uint32_t)(pos / depth) + 1;
	_Atomic uint64_t *cell = &fifo->cell[at * SIM_CELLS];

	put_cells(&cell[0], lap, atomic_load(&op->w[2 * i]));
	put_cells(&cell[2], lap, atomic_load(&op->w[2 * i + 1]));
	if (w->par.timed)
		put_cells(&fifo->due[at * SIM_DUE_CELLS], lap,
			  atomic_load(&op->due));
}

/* Write the words, move the tail, and free the FIFO for the next operation. */
static void carry_out(struct sim_world *w, struct sim_fifo *fifo,
		      struct sim_op *op, uint64_t ref, uint64_t at)
{
	uint32_t code = at_code(at), n = code == AT_DROPPED ? 0 : code - 1;
	uint64_t now = atomic_load(&fifo->tail);
	uint64_t tail = now - (uint32_t)((uint32_t)now - (uint32_t)at);

	for (uint32_t i = 0; i < n; i++)
		put_word(w, fifo, tail + i, op, i);
	if (n != 0) {
		now = tail;
		atomic_compare_exchange_strong(&fifo->tail, &now, tail + n);
	}
	HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_MOVED);
	atomic_compare_exchange_strong(&fifo->cur, &ref, 0);
	if (n != 0)
		sim_signal(w, fifo);
}

/* Store the result into the status of the sender. */
static void answer(struct sim_world *w, struct sim_op *op, uint64_t ref,
		   uint32_t code)
{
	uint64_t result = code == AT_DROPPED ? 0 :
			  code == 1 ? HAL_PIF_NACK : HAL_PIF_ACK;
	uint64_t state;

	if (w->par.mutant == SIM_MUTANT_NONACK && code == 1)
		result = HAL_PIF_ACK;
	HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_UNANSWERED);
	while (op_pending(op, ref, &state) &&
	       !atomic_compare_exchange_weak(&op->state, &state,
					     (state & ~(uint64_t)HAL_PIF_PEND) |
					     result))
		;
}

/* When the steps of an operation are due. */
enum {
	RUN_BY_CLOCK,	/* as params.delay and params.ack say, or the timing
			 * model */
	RUN_FIFO,	/* reach the FIFO now, the answer by the clock */
	RUN_NOW,
};
static bool op_step(struct sim_world *w, struct sim_fifo *fifo, uint64_t ref,
		    int how);

/*
 * Finish the operation that was found in fifo->cur. A late process may have put
 * it there after it was over: then only remove it.
 */
static void help(struct sim_world *w, struct sim_fifo *fifo, uint64_t cur)
{
	uint64_t state;

	if (op_pending(op_of(w, cur), cur, &state))
		op_step(w, fifo, cur, RUN_FIFO);
	else
		atomic_compare_exchange_strong(&fifo->cur, &cur, 0);
}

/* Make it the current operation of the FIFO, and decide it. */
static void op_enter(struct sim_world *w, struct sim_fifo *fifo,
		     struct sim_op *op, uint64_t ref)
{
	uint64_t state;

	while (op_pending(op, ref, &state) &&
	       at_code(atomic_load(&op->at)) == AT_NOT_YET) {
		uint64_t cur = 0;

		if (atomic_compare_exchange_strong(&fifo->cur, &cur, ref) ||
		    cur == ref) {
			HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_ENTERED);
			decide(w, fifo, op, ref);
			HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_DECIDED);
		} else {
			help(w, fifo, cur);
		}
	}
}

/* Is it a packet to another board that is dead and does not answer? */
static bool never_arrives(struct sim_world *w, const struct sim_op *op,
			  uint64_t ref)
{
	uint32_t to = atomic_load(&op->fifo) >> 8 & (HAL_REG_BOARDS_MAX - 1);
	uint32_t from = ref >> 48 & (HAL_REG_BOARDS_MAX - 1);

	return to != from && to < w->boards &&
	       sim_death(w, to) == SIM_DEAD_SILENT;
}

/* Continue an operation as far as it is due. Returns true if it is over. fifo
 * must be that of ref, even if the port has begun another operation. */
static bool op_step(struct sim_world *w, struct sim_fifo *fifo, uint64_t ref,
		    int how)
{
	struct sim_op *op = op_of(w, ref);
	uint64_t at = atomic_load(&op->at), cur = ref;

	if (at_code(at) == AT_NOT_YET && how != RUN_NOW &&
	    never_arrives(w, op, ref))
		return false;
	if (at_code(at) == AT_NOT_YET && how == RUN_BY_CLOCK &&
	    w->par.delay != 0 && sim_now(w) < atomic_load(&op->due))
		return false;
	op_enter(w, fifo, op, ref);
	at = atomic_load(&op->at);
	if (at >> 36 != (ref & NUMBER_MASK) || at_code(at) == AT_NOT_YET) {
		atomic_compare_exchange_strong(&fifo->cur, &cur, 0);
		return true;
	}
	carry_out(w, fifo, op, ref, at);
	if (how != RUN_NOW && (w->par.ack != 0 || w->par.timed) &&
	    sim_now(w) < atomic_load(&op->ack_due))
		return false;
	answer(w, op, ref, at_code(at));
	return true;
}

static bool op_run(struct sim_world *w, uint64_t ref, int how)
{
	struct sim_op *op = op_of(w, ref);
	/* Read before op_pending() checks that it belongs to ref. */
	struct sim_fifo *fifo = fifo_of(w, op);
	uint64_t state;

	return !op_pending(op, ref, &state) || op_step(w, fifo, ref, how);
}

/* ---- Sending ----------------------------------------------------------- */

/* Set the times of an operation that starts now; under the timing model a
 * packet starts when the first register of the packetizer is written. The
 * mailbox acknowledges a packet, so no answer is earlier than the packet
 * [D 5.1.1]. */
static void op_times(struct sim_mm *mm, struct sim_op *op, bool packetizer)
{
	const struct sim_params *par = &mm->w->par;
	uint64_t due;

	if (par->timed) {
		due = hal_time_packet(&par->figures, &mm->path, packetizer ?
				      mm->begun : sim_now(mm->w));
		atomic_store(&op->due, due);
		if (mm->path.packet_free < due)
			mm->path.packet_free = due;
		atomic_store(&op->ack_due, mm->path.packet_free);
	} else if (par->delay != 0 || par->ack != 0) {
		due = sim_now(mm->w) + sim_below(mm, par->delay);
		atomic_store(&op->due, due);
		atomic_store(&op->ack_due, due + sim_below(mm, par->ack));
	}
}

/* Publish an operation of this port, whose words are set. */
static void op_start(struct sim_mm *mm, uint32_t board, uint32_t port,
		     struct sim_op *op, uint32_t fifo, uint32_t words)
{
	struct sim_world *w = mm->w;
	uint64_t number = (op_number(atomic_load(&op->state)) + 1) &
			  NUMBER_MASK;
	uint64_t ref = op_ref(board, port, number);

	op_times(mm, op, port < PORT_MIF);
	atomic_store(&op->fifo, fifo);
	atomic_store(&op->words, words);
	atomic_store(&op->at, make_at(number, AT_NOT_YET, 0));
	atomic_store(&op->state, number << STATE_SHIFT | HAL_PIF_PEND);
	if (!op_run(w, ref, RUN_BY_CLOCK) &&
	    at_code(atomic_load(&op->at)) == AT_NOT_YET)
		/* Its reader must search the ports of this board for it. */
		atomic_fetch_or(&fifo_of(w, op)->expect,
				UINT64_C(1) << board);
}

/*
 * End a request without an answer of a mailbox. keep: status bits that stay as
 * they were. Without a transmission these are ACK and NACK: they belong to the
 * last packet that was transmitted, and only the next transmission clears them
 * [D table 5].
 */
static void pif_end(struct sim_op *op, uint64_t keep, uint64_t status)
{
	uint64_t old = atomic_load(&op->state);
	uint64_t number = (op_number(old) + 1) & NUMBER_MASK;

	atomic_store(&op->state, number << STATE_SHIFT | (old & keep) |
		     status);
}

/* Status bits that a request leaves unchanged if it is not transmitted. The
 * paper does not say how long ILLEGAL stays; par.illegal does. */
static uint64_t untransmitted_keeps(const struct sim_world *w)
{
	return HAL_PIF_ACK | HAL_PIF_NACK |
	       (w->par.illegal ? HAL_PIF_ILLEGAL : 0);
}

/* The identity that is stamped: the sender cannot choose it [D 2.2.3, figure
 * 8]. */
static uint64_t stamp(struct sim_mm *mm, struct sim_board *b, uint32_t n)
{
	uint64_t id = atomic_load(&b->pid[n]);

	if (mm->w->par.mutant == SIM_MUTANT_FORGED &&
	    sim_below(mm, 16) == 0) {
		uint64_t other = atomic_load(&b->pid[(n + 1) % HAL_REG_IFS]);

		/* If the neighbour has no identity, take a possible one: the
		 * backend takes a word without a possible identity for no
		 * packet. */
		id = other != 0 ? other : id ^ 1;
	}
	return id & HAL_ID_MASK;
}

/* The third register was written: send [D 5.2.3]. */
static void pif_send(struct sim_mm *mm, struct sim_board *b, uint32_t n)
{
	struct sim_pif *pif = &b->pif[n];
	struct sim_world *w = mm->w;
	uint64_t dest = atomic_load(&pif->reg[4]) & HAL_GADDR_MASK;
	uint32_t board = hal_gaddr_board(dest);

	sim_start(mm, "a packet");
	atomic_store(&pif->written, 0);
	if (!(atomic_load(&b->pid_conf) >> n & 1)) {
		pif_end(&pif->op, untransmitted_keeps(w), 0);
		return;
	}
	if ((dest ^ atomic_load(&b->base_dest)) & HAL_DEST_BASE_MASK) {
		pif_end(&pif->op, untransmitted_keeps(w), HAL_PIF_ILLEGAL);
		return;
	}
	if (board >= w->boards || (dest & HAL_DEST_OFF_MASK) != HAL_MIF_DATA) {
		/* It is transmitted, to where no mailbox is. */
		pif_end(&pif->op, 0, HAL_PIF_NACK);
		return;
	}
	if (board != mm->m.board && sim_death(w, board) == SIM_DEAD_ABORTS) {
		pif_end(&pif->op, 0, HAL_PIF_NACK);
		return;
	}
	atomic_store(&pif->op.w[0], stamp(mm, b, n) |
		     (atomic_load(&pif->reg[0]) & ~HAL_ID_MASK));
	for (uint32_t i = 1; i < HAL_PKT_WORDS; i++)
		atomic_store(&pif->op.w[i], atomic_load(&pif->reg[i]));
	op_start(mm, mm->m.board, n, &pif->op,
		 board << 8 | hal_dest_if(dest), HAL_MIF_PKT_WORDS);
}

/* Continue the packet of a PIF, and return its status. */
static uint64_t pif_poll(struct sim_world *w, uint32_t board, uint32_t n,
			 int how)
{
	struct sim_op *op = &w->board[board]->pif[n].op;
	uint64_t state = atomic_load(&op->state);

	if (state & HAL_PIF_PEND) {
		op_run(w, op_ref(board, n, op_number(state)), how);
		state = atomic_load(&op->state);
	}
	return state & HAL_PIF_STATUS_MASK;
}

/*
 * The updated packetizer [D 5.2.4]: the bus holds a write back until the packet
 * in the buffer has its answer, and the processor waits. Its clock goes on.
 */
static void pif_stall(struct sim_mm *mm, uint32_t n)
{
	struct sim_op *op = &mm->b->pif[n].op;
	struct sim_world *w = mm->w;

	while (pif_poll(w, mm->m.board, n, RUN_BY_CLOCK) & HAL_PIF_PEND) {
		if (at_code(atomic_load(&op->at)) == AT_NOT_YET &&
		    never_arrives(w, op, op_ref(mm->m.board, n, 0)))
			sim_misuse("write to a packetizer page behind a packet "
				   "to a board that does not answer: with "
				   "back-pressure the processor waits for ever "
				   "[D 5.2.4]");
		/* Relaxed: a clock, which orders nothing. */
		atomic_fetch_add_explicit(&w->board[0]->common.clock,
					  (uint64_t)w->par.tick,
					  memory_order_relaxed);
	}
}

void sim_pif_write(struct sim_mm *mm, uint32_t n, uint32_t off,
		   const uint64_t w[2])
{
	struct sim_pif *pif = &mm->b->pif[n];
	uint32_t reg = off / HAL_MIF_WORD;

	if (off >= HAL_PIF_STATUS || off % HAL_MIF_WORD != 0)
		sim_misuse("write to offset 0x%x of a packetizer page, where "
			   "no register is to be written [D table 5]", off);
	if (mm->w->par.press)
		pif_stall(mm, n);
	if (pif_poll(mm->w, mm->m.board, n, RUN_BY_CLOCK) & HAL_PIF_PEND) {
		/* There is one buffer: the write is lost [D 5.2.4]. */
		atomic_fetch_or(&pif->op.state, HAL_PIF_OVERWR);
		return;
	}
	if (mm->w->par.timed && atomic_load(&pif->written) == 0)
		mm->begun = sim_now(mm->w);
	atomic_store(&pif->reg[2 * reg], w[0]);
	atomic_store(&pif->reg[2 * reg + 1], w[1]);
	if ((atomic_fetch_or(&pif->written, 1u << reg) | 1u << reg) ==
	    (1u << HAL_PIF_WRITES) - 1)
		pif_send(mm, mm->b, n);
}

void sim_pif_read(struct sim_mm *mm, uint32_t n, uint32_t off, uint64_t w[2])
{
	struct sim_pif *pif = &mm->b->pif[n];
	uint32_t reg = off / HAL_MIF_WORD;

	if (off > HAL_PIF_STATUS || off % HAL_MIF_WORD != 0)
		sim_misuse("read of offset 0x%x of a packetizer page, where "
			   "there is no register [D table 5]", off);
	if (off == HAL_PIF_STATUS) {
		w[0] = pif_poll(mm->w, mm->m.board, n, RUN_BY_CLOCK);
		if (mm->w->par.prep && atomic_load(&pif->written) != 0)
			w[0] |= HAL_PIF_PEND;
		w[1] = 0;
	} else {
		w[0] = atomic_load(&pif->reg[2 * reg]);
		w[1] = atomic_load(&pif->reg[2 * reg + 1]);
	}
}

void sim_pif_settle(struct sim_world *w, uint32_t board, uint32_t n)
{
	while (pif_poll(w, board, n, RUN_NOW) & HAL_PIF_PEND)
		;
	/* Only this process starts packets there, or its holder is dead. */
	if (w->par.timed)
		sim_stall(w, atomic_load(&w->board[board]->pif[n].op.due));
}

/* ---- Receiving --------------------------------------------------------- */

/* Continue all operations of a board that are on the way to this FIFO. */
static void collect(struct sim_world *w, struct sim_fifo *fifo,
		    uint32_t board)
{
	for (uint32_t n = 0; n <= PORT_ENGINE; n++) {
		uint64_t ref = op_ref(board, n, 0), state;
		struct sim_op *op = op_of(w, ref);

		state = atomic_load(&op->state);
		if ((state & HAL_PIF_PEND) && fifo_of(w, op) == fifo &&
		    !op_run(w, ref | op_number(state), RUN_BY_CLOCK) &&
		    at_code(atomic_load(&op->at)) == AT_NOT_YET)
			atomic_fetch_or(&fifo->expect, UINT64_C(1) << board);
	}
}

/* Let operations that are due reach the FIFO. False: there were none, which
 * takes little time. */
static bool collect_due(struct sim_world *w, struct sim_fifo *fifo)
{
	uint64_t boards, cur;

	cur = atomic_load_explicit(&fifo->cur, memory_order_relaxed);
	if (cur != 0)
		help(w, fifo, cur);
	if (atomic_load_explicit(&fifo->expect, memory_order_relaxed) == 0)
		return cur != 0;
	boards = atomic_exchange(&fifo->expect, 0);
	for (; boards != 0; boards &= boards - 1)
		collect(w, fifo, (uint32_t)__builtin_ctzll(boards));
	return true;
}

/* The value of two cells. */
static uint64_t get_cells(const _Atomic uint64_t *cell)
{
	/* Relaxed: ordered by the acquire of the tail before. */
	return (uint32_t)atomic_load_explicit(&cell[0], memory_order_relaxed) |
	       atomic_load_explicit(&cell[1], memory_order_relaxed) << 32;
}

/* Has a word arrived? The clock is read only if the last reading does not
 * answer it: the words of a packet arrive together. */
static bool arrived(struct sim_mm *mm, uint64_t due)
{
	if (due > mm->seen)
		mm->seen = sim_now(mm->w);
	return due <= mm->seen;
}

/* Dequeue a word. False: the FIFO is empty, or under the timing model the word
 * has not arrived yet. */
static bool dequeue(struct sim_mm *mm, struct sim_fifo *fifo,
		    uint64_t data[2])
{
	const struct sim_world *w = mm->w;
	uint64_t head = atomic_load_explicit(&fifo->head,
					     memory_order_relaxed);

	do {
		uint64_t at = head % (uint64_t)w->par.fifo;

		/* Pairs with the compare-and-swap of the tail in
		 * carry_out(). */
		if (head == atomic_load_explicit(&fifo->tail,
						 memory_order_acquire))
			return false;
		if (w->par.timed &&
		    !arrived(mm, get_cells(&fifo->due[at * SIM_DUE_CELLS])))
			return false;
		data[0] = get_cells(&fifo->cell[at * SIM_CELLS]);
		data[1] = get_cells(&fifo->cell[at * SIM_CELLS + 2]);
	} while (!atomic_compare_exchange_weak(&fifo->head, &head, head + 1));
	return true;
}

bool sim_mif_read(struct sim_mm *mm, struct sim_box box, uint64_t w[2])
{
	struct sim_fifo *fifo = &mm->w->board[box.board]->fifo[box.n];
	uint64_t before = mm->seen;
	bool any = dequeue(mm, fifo, w);

	if (!any && collect_due(mm->w, fifo))
		any = dequeue(mm, fifo, w);
	mm->half = any ? (mm->half + 1) % HAL_MIF_PKT_WORDS : 0;
	mm->unseen = any && mm->half == 0;
	if (any)
		return true;
	w[0] = mm->w->par.empty == SIM_EMPTY_BEEF ? HAL_MIF_EMPTY_BEEF :
						    HAL_MIF_EMPTY;
	w[1] = w[0];
	if (++mm->idle % 64 == 0) {
		sim_sweep(mm);
	} else if (mm->w->par.timed) {
		if (mm->seen == before)
			mm->seen = sim_now(mm->w);
		sim_store_sweep(mm, mm->seen);
	}
	return false;
}

/* Start the burst of a port of the board of mm. Returns its reference. */
static uint64_t mif_start(struct sim_mm *mm, uint32_t port, struct sim_box box,
			  const uint64_t *w, uint32_t words)
{
	uint32_t own = mm->m.board;
	struct sim_op *op = &mm->b->mif[port - PORT_MIF];
	uint64_t state = atomic_load(&op->state);

	if (state & HAL_PIF_PEND)	/* writes are done one by one */
		op_run(mm->w, op_ref(own, port, op_number(state)), RUN_NOW);
	for (uint32_t i = 0; i < 2 * words; i++)
		atomic_store(&op->w[i], w[i]);
	op_start(mm, own, port, op, box.board << 8 | box.n, words);
	return op_ref(own, port, op_number(atomic_load(&op->state)));
}

void sim_mif_write(struct sim_mm *mm, struct sim_box box, const uint64_t *w,
		   uint32_t words)
{
	if (mm->f->claimed == 0)
		sim_misuse("write to a mailbox page after the interface was "
			   "given back: its mapping is revoked [hal_kdev.h]");
	/* A store to a dead board is lost. */
	if (box.board == mm->m.board ||
	    sim_death(mm->w, box.board) == SIM_LIVES)
		mif_start(mm, PORT_MIF + mm->f->claimed - 1, box, w, words);
}

bool sim_mif_burst(struct sim_mm *mm, struct sim_box box, const uint64_t *w,
		   uint32_t words)
{
	struct sim_op *op = &mm->b->mif[PORT_ENGINE - PORT_MIF];

	if (box.board != mm->m.board &&
	    sim_death(mm->w, box.board) != SIM_LIVES)
		return false;
	op_run(mm->w, mif_start(mm, PORT_ENGINE, box, w, words), RUN_NOW);
	return (atomic_load(&op->state) & HAL_PIF_ACK) != 0;
}

bool sim_fifo_quiet(struct sim_world *w, uint32_t board, uint32_t n)
{
	struct sim_fifo *fifo = &w->board[board]->fifo[n];

	collect_due(w, fifo);
	return atomic_load(&fifo->head) == atomic_load(&fifo->tail) &&
	       atomic_load(&fifo->expect) == 0;
}

void sim_if_reset(struct sim_world *w, uint32_t board, uint32_t n)
{
	struct sim_fifo *fifo = &w->board[board]->fifo[n];
	uint64_t head = atomic_load(&fifo->head);

	sim_pif_settle(w, board, n);
	atomic_store(&w->board[board]->pif[n].written, 0);
	while (!atomic_compare_exchange_weak(&fifo->head, &head,
					     atomic_load(&fifo->tail)))
		;
}

/* ---- Signals ----------------------------------------------------------- */

/*
 * Signal first, then disarm: if the process dies in between, there is a signal
 * too many, not one too few. Armings are numbered across all holders, so that a
 * late process does not disarm a later arming.
 */
void sim_signal(struct sim_world *w, struct sim_fifo *fifo)
{
	static const uint64_t one = 1;
	uint32_t armed = atomic_load(&fifo->armed);
	struct sockaddr_un sun;
	socklen_t len;

	if (armed == 0)
		return;
	len = sim_name(&sun, "event", w->hash, atomic_load(&fifo->event));
	/* If the socket is full, it has signals that are not read yet. */
	sendto(w->send_fd, &one, sizeof(one), MSG_DONTWAIT | MSG_NOSIGNAL,
	       (struct sockaddr *)&sun, len);
	atomic_compare_exchange_strong(&fifo->armed, &armed, 0);
}

/* ---- Trusted page [D table 4] ------------------------------------------ */

uint64_t sim_tif_read(struct sim_mm *mm, uint32_t off)
{
	struct sim_board *b = mm->b;

	if (off < HAL_TIF_BASE_DEST && off % 8 == 0)
		return atomic_load(&b->pid[off / 8]);
	switch (off) {
	case HAL_TIF_BASE_DEST:
		return atomic_load(&b->base_dest);
	case HAL_TIF_PID_CONF:
		return atomic_load(&b->pid_conf);
	}
	sim_misuse("read of offset 0x%x of the trusted page, where nothing is "
		   "to be read [D table 4]", off);
}

/* CLR_REQ for PIF n. A packet that is decided cannot be dropped any more. */
static void drop_request(struct sim_mm *mm, uint32_t n)
{
	struct sim_pif *pif = &mm->b->pif[n];
	uint64_t state = atomic_load(&pif->op.state), number, none;

	atomic_store(&pif->written, 0);
	number = op_number(state);
	none = make_at(number, AT_NOT_YET, 0);
	if (state & HAL_PIF_PEND) {
		atomic_compare_exchange_strong(&pif->op.at, &none,
				make_at(number, AT_DROPPED, 0));
		op_run(mm->w, op_ref(mm->m.board, n, number), RUN_NOW);
	}
}

void sim_tif_write(struct sim_mm *mm, uint32_t off, uint64_t val)
{
	struct sim_board *b = mm->b;

	if (off < HAL_TIF_BASE_DEST && off % 8 == 0) {
		atomic_store(&b->pid[off / 8], val & HAL_ID_MASK);
		return;
	}
	switch (off) {
	case HAL_TIF_BASE_DEST:
		atomic_store(&b->base_dest, val & HAL_DEST_BASE_MASK);
		break;
	case HAL_TIF_PID_CONF:
		atomic_store(&b->pid_conf, val);
		break;
	case HAL_TIF_CLR_REQ:
		for (uint32_t n = 0; n < HAL_REG_IFS; n++)
			if (val >> n & 1)
				drop_request(mm, n);
		break;
	default:
		sim_misuse("write to offset 0x%x of the trusted page, where "
			   "there is no register [D table 4]", off);
	}
}
