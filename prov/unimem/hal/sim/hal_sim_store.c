/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_store.c - remote stores and loads [D 2.1; docs/hal.md, 13].
 *
 * A store is cut at cache lines. Some pieces are held back in the buffer of the
 * open file, so that later pieces overtake them. Accesses of the file carry
 * them out one by one, in random order; a barrier carries out all. The buffer
 * is in the shared state: if a process makes no access for long, or has died,
 * other processes carry out its stores.
 *
 * Under the timing model each piece is held back until it arrives, and the
 * pieces of a file are carried out in the order of their arrival: by the file's
 * accesses, or by the reads of any process that finds its mailbox empty. A
 * piece is begun only when those before it are over, because two processes
 * might else exchange stores to one place.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <time.h>

#include "hal/sim/hal_sim_check.h"
#include "hal/sim/hal_sim_join.h"
#include "hal/sim/hal_sim_store.h"
#include "util/unm_clock.h"

#define SWEEP_NS	500000		/* between two sim_sweep() */
#define STALE_NS	2000000		/* age from which other processes carry
					 * out a store */
#define WAIT_SPINS	64		/* waits between checks whether the
					 * process that carries out a store is
					 * alive */
#define STOPPED_S	2		/* seconds until such a process is taken
					 * to be stopped */
#define BUS_LIMIT_NS	1000000		/* of a load that gets no answer */

/* ---- Memory ------------------------------------------------------------ */

/*
 * Store 8 aligned bytes in one piece, visible to a load with acquire. The order
 * is sequentially consistent with hal_tx_back_sync(), like that of a store that
 * was read back on a board: if no store is held back, stores_before_notify()
 * has nothing to do.
 */
static void put(uint8_t *to, const uint8_t *from, size_t len)
{
	while (len != 0) {
		uint64_t word;

		if (((uintptr_t)to & 7) != 0 || len < 8) {
			__atomic_store_n(to++, *from++, __ATOMIC_RELEASE);
			len--;
			continue;
		}
		memcpy(&word, from, 8);
		__atomic_store_n((uint64_t *)(void *)to, word,
				 __ATOMIC_SEQ_CST);
		to += 8;
		from += 8;
		len -= 8;
	}
}

/* Pairs with the releases of put(), and of put64() of hal_sim_kdev.c. */
static void get(uint8_t *to, const uint8_t *from, size_t len)
{
	while (len != 0) {
		uint64_t word;

		if (((uintptr_t)from & 7) != 0 || len < 8) {
			*to++ = __atomic_load_n(from++, __ATOMIC_ACQUIRE);
			len--;
			continue;
		}
		word = __atomic_load_n((const uint64_t *)(const void *)from,
				       __ATOMIC_ACQUIRE);
		memcpy(to, &word, 8);
		to += 8;
		from += 8;
		len -= 8;
	}
}

/* ---- The buffer -------------------------------------------------------- */

static uint64_t line_bit(uint64_t gaddr)
{
	uint64_t line = gaddr / SIM_LINE;

	return UINT64_C(1) << ((line ^ line >> 6) & 63);
}

/*
 * Write the name of this process on a store, to carry it out. The threads of a
 * process have the same name, and each may be stopped: a number distinguishes
 * this attempt from others.
 */
static bool take(struct sim_world *w, struct sim_post *p, uint64_t state,
		 uint64_t *name)
{
	static _Atomic uint64_t takes;

	*name = w->me | atomic_fetch_add(&takes, 1) << SIM_NAME_BITS;
	return atomic_compare_exchange_strong(&p->state, &state, *name);
}

/*
 * Carry out a store that has this name. If this process was stopped meanwhile,
 * another one may have carried it out, and the entry may hold a new store. The
 * copied data is therefore used only if the name is still there after the copy,
 * and the entry is not read again later.
 */
static void carry_out(struct sim_world *w, struct sim_post *p, uint64_t name)
{
	/* Acquire: read before the name is checked. Pairs with hold_back(). */
	uint64_t gaddr = __atomic_load_n(&p->gaddr, __ATOMIC_ACQUIRE);
	uint32_t len = __atomic_load_n(&p->len, __ATOMIC_ACQUIRE);
	uint8_t data[SIM_LINE], *to;

	HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_STORING);
	get(data, p->data, sizeof(data));
	if (atomic_load(&p->state) == name) {
		to = sim_memory(w, gaddr, len);
		if (to != NULL)
			put(to, data, len);
	}
	atomic_compare_exchange_strong(&p->state, &name, SIM_POST_FREE);
}

/* The store of a file that arrives first, and when; NULL: none is held back.
 * Under the timing model times are different, and a later store has a later
 * one: so once this store is found, all before it are over. */
static struct sim_post *first_post(struct sim_file *f, uint64_t *due)
{
	struct sim_post *first = NULL;

	*due = UINT64_MAX;
	for (unsigned i = 0; i < SIM_POSTS; i++) {
		struct sim_post *p = &f->post[i];
		uint64_t at;

		if (atomic_load(&p->state) == SIM_POST_FREE)
			continue;
		at = atomic_load(&p->due);
		if (at < *due) {
			*due = at;
			first = p;
		}
	}
	return first;
}

static uint64_t seconds(void)
{
	return unm_now_ns() / 1000000000;
}

/* Is the process whose name is on it dead, or stopped for too long? */
static bool carrier_lost(struct sim_world *w, uint64_t name, uint64_t *since)
{
	if (*since == 0)
		*since = seconds();
	return !sim_alive(w, name & ((UINT64_C(1) << SIM_NAME_BITS) - 1)) ||
	       seconds() - *since > STOPPED_S;
}

/* Carry out a store for its owner, or wait until another process has done
 * so; before, wait until it arrives. */
static void finish_post(struct sim_world *w, struct sim_post *p)
{
	uint64_t since = 0, name;

	if (w->par.timed && atomic_load(&p->state) != SIM_POST_FREE)
		sim_stall(w, atomic_load(&p->due));
	for (int spins = 1; ; spins++) {
		uint64_t state = atomic_load(&p->state);

		if (state == SIM_POST_FREE)
			return;
		if ((state == SIM_POST_FULL ||
		     (spins % WAIT_SPINS == 0 &&
		      carrier_lost(w, state, &since))) &&
		    take(w, p, state, &name)) {
			carry_out(w, p, name);
			return;
		}
		sched_yield();
	}
}

static void none_held(struct sim_mm *mm)
{
	mm->lines = 0;
	atomic_fetch_and(&mm->b->posting[mm->file / 64],
			 ~(UINT64_C(1) << mm->file % 64));
}

static void finish_entry(struct sim_mm *mm, unsigned i)
{
	finish_post(mm->w, &mm->f->post[i]);
	mm->held &= ~(1u << i);
	if (mm->held == 0)
		none_held(mm);
}

/* The n-th of the marked entries. */
static unsigned nth(uint32_t marked, uint64_t n)
{
	while (n-- != 0)
		marked &= marked - 1;
	return (unsigned)__builtin_ctz(marked);
}

/* The marked entry that arrives first. */
static unsigned first_held(const struct sim_mm *mm, uint32_t among)
{
	const struct sim_post *post = mm->f->post;
	unsigned first = (unsigned)__builtin_ctz(among);

	for (; among != 0; among &= among - 1) {
		unsigned i = (unsigned)__builtin_ctz(among);

		/* Only this thread writes them. */
		if (atomic_load(&post[i].due) < atomic_load(&post[first].due))
			first = i;
	}
	return first;
}

/* Carry out one of the marked entries: under the timing model the first, else
 * any, chosen at random. */
static void finish_one(struct sim_mm *mm, uint32_t among)
{
	finish_entry(mm, mm->w->par.timed ? first_held(mm, among) :
		     nth(among, sim_below(mm, __builtin_popcount(among))));
}

/* due: when it arrives, under the timing model. */
static void hold_back(struct sim_mm *mm, uint64_t gaddr, const void *src,
		      size_t len, uint64_t due)
{
	struct sim_post *p;
	unsigned i;

	if (mm->held == (1u << SIM_POSTS) - 1)
		finish_one(mm, mm->held);
	i = (unsigned)__builtin_ctz(~mm->held);
	p = &mm->f->post[i];
	/* Release: a process that reads these values for the entry's previous
	 * store finds in carry_out() that its name is gone. */
	__atomic_store_n(&p->gaddr, gaddr, __ATOMIC_RELEASE);
	__atomic_store_n(&p->len, (uint32_t)len, __ATOMIC_RELEASE);
	put(p->data, src, len);
	if (due == 0)
		atomic_store(&p->born, sim_now(mm->w));
	else
		atomic_store(&p->due, due);
	atomic_store(&p->state, SIM_POST_FULL);
	if (mm->held == 0)
		atomic_fetch_or(&mm->b->posting[mm->file / 64],
				UINT64_C(1) << mm->file % 64);
	mm->held |= 1u << i;
	mm->lines |= line_bit(gaddr);
}

/* Post a piece of a store under the timing model. */
static void post_timed(struct sim_mm *mm, uint64_t gaddr, const void *src,
		       size_t len)
{
	uint64_t now = sim_now(mm->w), stall, due;

	due = hal_time_store(&mm->w->par.figures, &mm->path, now, len, &stall);
	hold_back(mm, gaddr, src, len, due);
	if (stall > now)
		sim_stall(mm->w, stall);
}

void sim_store_wait(struct sim_mm *mm)
{
	if (mm->w->par.timed)
		sim_stall(mm->w, hal_time_load(&mm->w->par.figures,
						&mm->path, sim_now(mm->w)));
}

/* Carry out earlier stores to the same line: they must stay in order. */
static void finish_line(struct sim_mm *mm, uint64_t gaddr)
{
	for (uint32_t held = mm->held; held != 0; held &= held - 1) {
		unsigned i = (unsigned)__builtin_ctz(held);

		if (mm->f->post[i].gaddr / SIM_LINE == gaddr / SIM_LINE)
			finish_entry(mm, i);
	}
}

/* ---- Stores and loads -------------------------------------------------- */

static void check_range(const struct hal_mmio_map *map, uint64_t off,
			size_t len)
{
	if (off > map->len || len > map->len - off)
		sim_misuse("an access of %zu bytes at 0x%llx of a map of %zu",
			   len, (unsigned long long)off, map->len);
}

/* Store up to a line. */
static void store_piece(struct sim_mm *mm, uint64_t gaddr, const void *src,
			size_t len)
{
	if (mm->w->par.timed) {
		post_timed(mm, gaddr, src, len);
		return;
	}
	if (mm->held != 0 && (mm->lines & line_bit(gaddr)))
		finish_line(mm, gaddr);
	if (mm->w->par.reorder != 0 &&
	    sim_below(mm, 1000) < (uint64_t)mm->w->par.reorder)
		hold_back(mm, gaddr, src, len, 0);
	else
		put(sim_memory(mm->w, gaddr, len), src, len);
}

void sim_store(struct hal_mmio_map *map, uint64_t off, const void *src,
	       size_t len)
{
	struct sim_mm *mm = sim_mm(map->mm);
	uint64_t gaddr = sim_what(map) + off;
	const uint8_t *from = src;

	sim_access(mm);
	if (sim_block(map) != HAL_KDEV_MEM)
		sim_misuse("a store of %zu bytes into registers", len);
	check_range(map, off, len);
	if (hal_gaddr_board(gaddr) != mm->m.board &&
	    sim_death(mm->w, hal_gaddr_board(gaddr)) != SIM_LIVES)
		return;			/* accepted, and lost */
	while (len != 0) {
		size_t n = SIM_LINE - gaddr % SIM_LINE;

		if (n > len)
			n = len;
		store_piece(mm, gaddr, from, n);
		gaddr += n;
		from += n;
		len -= n;
	}
}

/*
 * A load from a dead board ends in a bus error: at once if the network answers
 * for the board, else after the time limit of the interconnect. Once the driver
 * of this board knows of the death, no process may load from that board: a
 * process that does so ends here.
 */
bool sim_load_answered(struct sim_mm *mm, uint32_t board)
{
	const struct timespec limit = { 0, BUS_LIMIT_NS };
	enum sim_death death = sim_death(mm->w, board);

	if (board == mm->m.board || death == SIM_LIVES)
		return true;
	if (sim_known_dead(mm->w, board))
		sim_misuse("a load from board %u, which the driver knows to be "
			   "dead", board);
	if (death == SIM_DEAD_SILENT)
		nanosleep(&limit, NULL);
	return false;
}

/* Take back interface n if the process that holds it is dead. */
static void check_entry(struct sim_world *w, uint32_t board, uint32_t n)
{
	struct sim_board *b = w->board[board];
	uint64_t owner = 0;
	uint32_t file;

	/* other processes write the table meanwhile */
	if (__atomic_load_n(&b->table[n].nonce, __ATOMIC_SEQ_CST) == 0)
		return;
	file = atomic_load(&b->iface[n].file);
	if (file != 0)
		owner = atomic_load(&b->file[file - 1].owner);
	if (owner == 0 || sim_alive(w, owner))
		return;
	sim_lock(w);
	/* An owner word is never used again, so its process still is dead. */
	w->reap(w, owner);
	sim_unlock(w);
}

/* Take back interfaces of dead processes before their entries are loaded. */
static void check_table(const struct hal_mmio_map *map, uint64_t off,
			size_t len)
{
	uint64_t size = sizeof(struct hal_kdev_entry);

	for (uint64_t n = off / size; n * size < off + len; n++)
		check_entry(sim_mm(map->mm)->w, (uint32_t)sim_what(map),
			    (uint32_t)n);
}

void sim_load(const struct hal_mmio_map *map, uint64_t off, void *dst,
	      size_t len)
{
	struct sim_world *w = sim_mm(map->mm)->w;

	sim_access(sim_mm(map->mm));
	check_range(map, off, len);
	sim_mm(map->mm)->loads += (len + 7) / 8;
	switch (sim_block(map)) {
	case HAL_KDEV_MEM:
		if (!sim_load_answered(sim_mm(map->mm),
				       hal_gaddr_board(sim_what(map))))
			sim_misuse("a load of %zu bytes from a dead board: a "
				   "bus error", len);
		if (hal_gaddr_board(sim_what(map)) != map->mm->board)
			sim_store_wait(sim_mm(map->mm));
		get(dst, sim_memory(w, sim_what(map) + off, len), len);
		break;
	case HAL_KDEV_TABLE:
		check_table(map, off, len);
		if (sim_known_dead(w, (uint32_t)sim_what(map)))
			memset(dst, 0, len);
		else
			get(dst, (uint8_t *)w->board[sim_what(map)]->table +
			    off, len);
		break;
	default:
		sim_misuse("a load of %zu bytes from registers", len);
	}
}

/* ---- Carrying out ------------------------------------------------------ */

void sim_store_flush(struct sim_mm *mm, uint32_t board)
{
	uint32_t mine = 0;

	for (uint32_t held = mm->held; held != 0; held &= held - 1) {
		unsigned i = (unsigned)__builtin_ctz(held);

		if (hal_gaddr_board(mm->f->post[i].gaddr) == board)
			mine |= 1u << i;
	}
	for (; mine != 0; mine &= mm->held)
		finish_one(mm, mine);
}

/* Carry out the stores of mm that have arrived. */
static void finish_arrived(struct sim_mm *mm)
{
	uint64_t now = sim_now(mm->w);

	while (mm->held != 0) {
		unsigned i = first_held(mm, mm->held);

		if (atomic_load(&mm->f->post[i].due) > now)
			return;
		finish_entry(mm, i);
	}
}

void sim_store_some(struct sim_mm *mm)
{
	if (mm->w->par.timed)
		finish_arrived(mm);
	else if (sim_below(mm, 4) == 0)
		finish_one(mm, mm->held);
}

/*
 * Carry out the first store of a file under the timing model, if it has arrived
 * and no living process is at it. Returns whether it did. The entry may have
 * been used for a later store until the name is on it: then it is left.
 */
static bool sweep_first(struct sim_world *w, struct sim_file *f, uint64_t now)
{
	const uint64_t owner = (UINT64_C(1) << SIM_NAME_BITS) - 1;
	uint64_t due, state, name;
	struct sim_post *p = first_post(f, &due);

	if (p == NULL || due > now)
		return false;
	state = atomic_load(&p->state);
	if (state == SIM_POST_FREE ||
	    (state != SIM_POST_FULL &&
	     (now - due < STALE_NS || sim_alive(w, state & owner))) ||
	    !take(w, p, state, &name))
		return false;
	if (atomic_load(&p->due) != due) {
		atomic_compare_exchange_strong(&p->state, &name,
					       SIM_POST_FULL);
		return false;
	}
	carry_out(w, p, name);
	return true;
}

/* Carry out the stores of a file that are older than STALE_NS, or under the
 * timing model have arrived. */
static void sweep_file(struct sim_mm *mm, struct sim_file *f, uint64_t now)
{
	while (mm->w->par.timed && sweep_first(mm->w, f, now))
		;
	for (unsigned i = 0; i < SIM_POSTS && !mm->w->par.timed; i++) {
		struct sim_post *p = &f->post[i];
		uint64_t name;

		if (atomic_load(&p->state) == SIM_POST_FULL &&
		    now - atomic_load(&p->born) >= STALE_NS &&
		    take(mm->w, p, SIM_POST_FULL, &name))
			carry_out(mm->w, p, name);
	}
}

void sim_store_sweep(struct sim_mm *mm, uint64_t now)
{
	for (uint32_t b = 0; b < mm->w->boards; b++) {
		struct sim_board *board = mm->w->board[b];

		for (uint32_t i = 0; i < SIM_FILES / 64; i++) {
			uint64_t bits = atomic_load(&board->posting[i]);

			for (; bits != 0; bits &= bits - 1)
				sweep_file(mm, &board->file[64 * i +
					   (uint32_t)__builtin_ctzll(bits)],
					   now);
		}
	}
}

void sim_store_file_over(struct sim_world *w, uint32_t board, uint32_t file)
{
	struct sim_board *b = w->board[board];
	struct sim_post *p;
	uint64_t due;

	while ((p = first_post(&b->file[file], &due)) != NULL)
		finish_post(w, p);
	atomic_fetch_and(&b->posting[file / 64],
			 ~(UINT64_C(1) << file % 64));
}

/* ---- By the clock ------------------------------------------------------ */

void sim_sweep(struct sim_mm *mm)
{
	uint64_t now = sim_now(mm->w);

	if (now - mm->swept < SWEEP_NS)
		return;
	mm->swept = now;
	sim_part_hang_up(mm->w);
	sim_store_sweep(mm, now);
}
