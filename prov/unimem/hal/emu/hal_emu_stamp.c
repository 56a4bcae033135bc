/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_stamp.c - packets and stores of the timing model: each carries the
 * time at which it arrives.
 *
 * The sender computes that time and writes it beside the data; the receiver
 * does not show the data before. So the time that a receiver takes to poll runs
 * while the data are under way, and is not added to it. Sender and receiver
 * read one clock (CLOCK_MONOTONIC).
 *
 * A packet's time is in its slot, behind the 24 bytes of payload. pump() copies
 * packets that have arrived to a private ring, which hal_rx_peek() reads. Back
 * words are stored as snapshots of all words of a link, the last EMU_STAMPS of
 * them; pump() copies the newest that has arrived to struct hal_back, and so
 * does the barrier after a word. Stores to receive space have no
 * time of their own: the barrier after them waits until they have arrived, and
 * the packet that names them is sent after the barrier.
 *
 * hal_emu_stamp.h declares the functions. Transfers and sleeping are in
 * hal_emu_model.c. docs/model.md describes the model.
 */
#include <stdlib.h>
#include <string.h>

#include "hal/emu/hal_emu_stamp.h"
#include "hal/hal_packet.h"
#include "util/unm_clock.h"

#define STAMP_AT	(HAL_PKT_MAX - 8)	/* of a packet, in its slot */
#define LAST_NS		UINT64_C(500000000)	/* from the end of a peer to its
						 * last arrival, at most: it is
						 * dead within a second, see
						 * docs/hal.md 6.3 */

static struct emu_times *times_of(const struct emu_peer *peer)
{
	return emu_if(peer->p.hif)->times;
}

static const struct hal_model *figures_of(const struct emu_peer *peer)
{
	return &emu_if(peer->p.hif)->emu->model->figures;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Let the processor stall, as a load or a full store queue lets it. */
static void stall_until(uint64_t at)
{
	while (unm_now_ns() < at)
		;
}

/* Has this time come? The clock takes tens of ns, so one reading serves a whole
 * poll: *now, 0: none yet. An old one makes things late, never early. */
static bool has_come(uint64_t at, uint64_t *now)
{
	if (*now == 0)
		*now = unm_now_ns();
	return at <= *now;
}

/* ---- Halves of a peer -------------------------------------------------- */

/* Start of the stamps in a link whose receive space is this. */
static struct emu_stamps *stamps_of(const uint8_t *space)
{
	return (struct emu_stamps *)(uintptr_t)(space - EMU_STAMP_BYTES);
}

static struct emu_timed *timed_get(struct emu_peer *peer)
{
	struct emu_timed *t = peer->timed;

	if (t != NULL)
		return t;
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return NULL;
	t->peer = peer;
	t->limit = UINT64_MAX;
	unm_list_append(&times_of(peer)->peers, &t->list);
	peer->timed = t;
	return t;
}

int emu_stamp_tx(struct emu_peer *peer)
{
	struct emu_timed *t = timed_get(peer);
	struct hal_tx *tx = &peer->p.tx;

	if (t == NULL)
		return -FI_ENOMEM;
	t->tx_cells = tx->cells;
	t->tx_space = tx->space;
	t->tx_stamps = stamps_of(tx->space);
	t->words_due = 0;
	t->stored = false;
	tx->cells = NULL;
	tx->space = NULL;
	tx->claims = false;
	tx->demotes = false;
	return 0;
}

void emu_stamp_tx_undo(struct emu_peer *peer)
{
	if (peer->timed != NULL)
		peer->timed->tx_cells = NULL;
}

int emu_stamp_rx(struct emu_peer *peer)
{
	struct emu_timed *t = timed_get(peer);
	struct hal_rx *rx = &peer->p.rx;
	uint32_t depth = rx->mask + 1;

	if (t == NULL)
		return -FI_ENOMEM;
	t->rx_arrived = aligned_alloc(HAL_LINE,
				      depth * sizeof(struct hal_cell));
	if (t->rx_arrived == NULL)
		return -FI_ENOMEM;
	/* the head of a packet in slot i is i + 1, modulo depth: so i + 2 is
	 * that of none */
	for (uint32_t i = 0; i < depth; i++)
		/* relaxed: private memory */
		atomic_store_explicit(&t->rx_arrived[i].head, i + 2,
				      memory_order_relaxed);
	t->rx_cells = rx->cells;
	t->rx_back = rx->back;
	t->rx_stamps = stamps_of(rx->space);
	t->rx_next = rx->next;
	t->word[0] = rx->next;
	rx->cells = t->rx_arrived;
	rx->back = NULL;
	return 0;
}

void emu_stamp_drop(struct emu_peer *peer)
{
	struct emu_timed *t = peer->timed;

	if (t == NULL)
		return;
	unm_list_remove(&t->list);
	free(t->rx_arrived);
	free(t);
	peer->timed = NULL;
}

/* ---- Packets ----------------------------------------------------------- */

static uint64_t take_words(struct emu_timed *t, uint64_t *now);

int emu_stamp_send(struct hal_peer *hp, uint64_t head, const uint64_t *w,
		   unsigned nw, const void *data, size_t len)
{
	struct emu_peer *peer = emu_peer(hp);
	struct emu_timed *t = peer->timed;
	struct hal_tx *tx = &hp->tx;
	uint64_t due, now = 0;
	int ret;

	if (tx->next == tx->limit) {
		take_words(t, &now);
		if (hal_tx_refresh(tx) == 0)
			return -FI_EAGAIN;
	}
	due = hal_time_packet(figures_of(peer), &times_of(peer)->path,
			       unm_now_ns());
	memcpy(t->tx_cells[tx->next & tx->mask].payload + STAMP_AT, &due,
	       sizeof(due));
	tx->cells = t->tx_cells;
	ret = hal_pkt_send(hp, head, w, nw, data, len);
	tx->cells = NULL;
	return ret;
}

/* Show the packets of a peer that are due. now: as for has_come(). Returns when
 * the next one is due, in ns; UINT64_MAX: none has been sent. */
static uint64_t take_packets(struct emu_timed *t, uint64_t *now)
{
	struct hal_rx *rx = &t->peer->p.rx;

	while (t->rx_cells != NULL) {
		uint32_t slot = t->rx_next & rx->mask;
		const struct hal_cell *from = &t->rx_cells[slot];
		struct hal_cell *to = &rx->cells[slot];
		/* pairs with the release of head in hal_pkt_publish() */
		uint64_t head = atomic_load_explicit(&from->head,
						     memory_order_acquire);
		uint64_t due;

		if ((head & HAL_HEAD_ID_MASK) !=
		    ((t->rx_next + 1) & HAL_HEAD_ID_MASK))
			break;
		due = earlier(hal_cell_word(from, STAMP_AT / 8), t->limit);
		if (!has_come(due, now))
			return due;
		if (t->rx_next - rx->next > rx->mask)
			break;		/* the peer overwrote its packets */
		memcpy(to->payload, from->payload, STAMP_AT);
		/* relaxed: private memory */
		atomic_store_explicit(&to->head, head, memory_order_relaxed);
		t->rx_next++;
	}
	return UINT64_MAX;
}

/* ---- Stores ------------------------------------------------------------ */

/* Post stores of len bytes in all, at the time now. Returns the time at which
 * the last one arrives. Stalls if more than store_queue of them are under
 * way. */
static uint64_t post_stores(const struct emu_peer *peer, size_t len,
			    uint64_t now)
{
	uint64_t stall, due;

	due = hal_time_store(figures_of(peer), &times_of(peer)->path, now, len,
			      &stall);
	if (stall > now)
		stall_until(stall);
	return due;
}

/* A load returns behind the stores before it. */
static void load_back(const struct emu_peer *peer)
{
	stall_until(hal_time_load(figures_of(peer), &times_of(peer)->path,
				   unm_now_ns()));
}

void emu_stamp_space_write(struct hal_peer *hp, uint32_t off, const void *src,
			   size_t len)
{
	struct emu_timed *t = emu_peer(hp)->timed;

	if (len == 0)
		return;
	memcpy(t->tx_space + off, src, len);
	post_stores(t->peer, len, unm_now_ns());
	t->stored = true;
}

void emu_stamp_space_barrier(struct hal_peer *hp)
{
	struct emu_timed *t = emu_peer(hp)->timed;

	if (t->stored)
		load_back(t->peer);
	t->stored = false;
}

/* ---- Back words -------------------------------------------------------- */

/*
 * Write a snapshot over the oldest. If the oldest has not arrived yet, replace
 * the newest, so that a sender which polls sees progress, however fast the
 * words change. Each snapshot is due later than the one before, because a store
 * takes the path for 1 ns at least. No line of the link is read here: it may be
 * with another core.
 */
void emu_stamp_back_store(struct hal_peer *hp, int word, uint64_t val)
{
	struct emu_timed *t = emu_peer(hp)->timed;
	uint64_t now = unm_now_ns(), slot = t->nstamps % EMU_STAMPS;
	uint64_t due = post_stores(t->peer, 8, now);
	struct emu_stamp *s;

	t->word[word + 1] = val;
	if (t->due[slot] > now)
		slot = (t->nstamps - 1) % EMU_STAMPS;
	else
		t->nstamps++;
	t->due[slot] = due;
	s = &t->rx_stamps->at[slot];
	/* a snapshot is valid if due is the same before and after its words
	 * were loaded; pairs with the acquires in show_newest() and
	 * show_words() */
	atomic_store_explicit(&s->due, UINT64_MAX, memory_order_relaxed);
	for (int i = 0; i < 1 + HAL_BACK_WORDS; i++)
		atomic_store_explicit(&s->word[i], t->word[i],
				      memory_order_release);
	atomic_store_explicit(&s->due, due, memory_order_release);
	/* pairs with the load in show_newest(), which finds the snapshot.
	 * seq_cst would wait here for the cache lines of all these stores */
	atomic_store_explicit(&t->rx_stamps->count, t->nstamps,
			      memory_order_release);
}

static void store_word(_Atomic uint64_t *to, uint64_t val)
{
	/* seq_cst: in one total order with the load in hal_tx_back_sync(), with
	 * the stores of the other process to this word, and with
	 * emu_stamps.count; mostly one word changes */
	if (atomic_load_explicit(to, memory_order_seq_cst) != val)
		atomic_store_explicit(to, val, memory_order_seq_cst);
}

/* Let words be what hal_tx_done() and hal_tx_back() return. */
static void store_words(struct hal_back *back, const uint64_t *word)
{
	store_word(&back->done, word[0]);
	for (int i = 0; i < HAL_BACK_WORDS; i++)
		store_word(&back->word[i], word[i + 1]);
}

/* Show a snapshot, unless its writer has changed it meanwhile. */
static bool show_words(struct emu_timed *t, const struct emu_stamp *s,
		       uint64_t due)
{
	uint64_t word[1 + HAL_BACK_WORDS];

	/* acquires pair with the releases in emu_stamp_back_store() */
	for (int i = 0; i < 1 + HAL_BACK_WORDS; i++)
		word[i] = atomic_load_explicit(&s->word[i],
					       memory_order_acquire);
	if (atomic_load_explicit(&s->due, memory_order_relaxed) != due)
		return false;
	t->words_due = due;
	store_words(t->peer->p.tx.back, word);
	return true;
}

/* Show the newest snapshot that has arrived, unless it is shown already.
 * now: as for has_come(). Returns whether there was one. If not, *later is when
 * the next one will arrive, in ns; UINT64_MAX: none is under way. */
static bool show_newest(struct emu_timed *t, uint64_t *now, uint64_t *later)
{
	uint64_t count, due, at;

	*later = UINT64_MAX;
	/* pairs with the store in emu_stamp_back_store(), as does due;
	 * seq_cst: after the stores of words that were shown */
	count = atomic_load_explicit(&t->tx_stamps->count,
				     memory_order_seq_cst);
	t->nseen = count;
	for (uint64_t i = 1; i <= EMU_STAMPS; i++) {
		const struct emu_stamp *s =
			&t->tx_stamps->at[(count - i) % EMU_STAMPS];

		due = atomic_load_explicit(&s->due, memory_order_acquire);
		if (due <= t->words_due)
			break;
		if (due == UINT64_MAX)
			continue;	/* it is being written */
		at = earlier(due, t->limit);
		if (!has_come(at, now))
			*later = earlier(at, *later);
		else if (show_words(t, s, due))
			return true;
	}
	return false;
}

/*
 * Show the words that have arrived. now: as for has_come(). Returns as *later
 * of show_newest(). The peer itself stores the words of a barrier too, once
 * they are due. So read snapshots and clock once more after words were shown:
 * if newer words are due they are shown instead, else the peer stores them
 * after this. (If the load of count sees none of the peer's stores of it, then
 * our stores of words are before that of its barrier, and so before the peer's
 * words, in the one order of sequential consistency.) A peer that writes
 * snapshots for ever must not hold this process here: after EMU_STAMPS rounds
 * the next call goes on. Until then an older word may be shown; docs/roadmap.md
 * has it among the known mistakes.
 */
static uint64_t take_words(struct emu_timed *t, uint64_t *now)
{
	uint64_t later = UINT64_MAX;

	if (t->tx_cells == NULL)
		return later;
	for (int i = 0; i < EMU_STAMPS && show_newest(t, now, &later); i++)
		*now = 0;
	return later;
}

/* All words have arrived when the load returns: store them where the peer reads
 * them, because hal_tx_back_sync() does not call the backend. */
int emu_stamp_back_barrier(struct hal_peer *hp)
{
	struct emu_timed *t = emu_peer(hp)->timed;

	load_back(t->peer);
	/* once more and seq_cst: before the stores of words that follow, see
	 * take_words() */
	atomic_store_explicit(&t->rx_stamps->count, t->nstamps,
			      memory_order_seq_cst);
	store_words(t->rx_back, t->word);
	return 0;
}

/* ---- All peers --------------------------------------------------------- */

/* The cache lines of a new snapshot come from another core: let them come
 * together with that of a new packet, not one after the other. */
static void prefetch_words(const struct emu_timed *t)
{
	const struct emu_stamps *stamps = t->tx_stamps;

	if (t->tx_cells == NULL)
		return;
	__builtin_prefetch(&stamps->count);
	__builtin_prefetch(&stamps->at[t->nseen % EMU_STAMPS]);
}

void emu_stamp_pump(struct hal_if *hif)
{
	unm_list_for_each(pos, &emu_if(hif)->times->peers) {
		struct emu_timed *t = unm_container(pos, struct emu_timed,
						    list);
		uint64_t now = 0;

		prefetch_words(t);
		take_packets(t, &now);
		take_words(t, &now);
	}
}

bool emu_stamp_under_way(struct emu_peer *peer)
{
	struct emu_timed *t = peer->timed;
	uint64_t now = 0;

	if (t == NULL)
		return false;
	if (t->limit == UINT64_MAX)
		t->limit = unm_now_ns() + LAST_NS;
	return take_packets(t, &now) != UINT64_MAX ||
		take_words(t, &now) != UINT64_MAX;
}

static uint64_t next_of_peer(struct emu_timed *t)
{
	const struct hal_peer *hp = &t->peer->p;
	uint64_t next = UINT64_MAX, now = 0;

	if (t->rx_cells != NULL && !hp->rx.held) {
		next = take_packets(t, &now);
		if (t->rx_next != hp->rx.next)
			return 0;
	}
	/* relaxed: this thread has set it */
	if (t->tx_cells != NULL &&
	    atomic_load_explicit(&hp->tx.sleep->tx_asleep,
				 memory_order_relaxed) != 0)
		next = earlier(next, take_words(t, &now));
	return next;
}

uint64_t emu_stamp_next(struct hal_if *hif)
{
	uint64_t next = UINT64_MAX;

	unm_list_for_each(pos, &emu_if(hif)->times->peers) {
		struct emu_timed *t = unm_container(pos, struct emu_timed,
						    list);

		next = earlier(next, next_of_peer(t));
	}
	return next;
}
