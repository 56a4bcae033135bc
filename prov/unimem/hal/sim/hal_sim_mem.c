/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_sim_mem.c - the memory that the kernel device allocates: regions, their
 * holders and their mappings.
 *
 * The hold entries of the open files define which memory exists. Counts of
 * holds and the map of used pages are derived from them, and are derived anew
 * when the driver's lock is taken over from a process that died. Pages are
 * marked as used after their region is entered, and unmarked before it is
 * removed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "hal/hal_limit.h"
#include "hal/sim/hal_sim_check.h"
#include "hal/sim/hal_sim_join.h"
#include "hal/sim/hal_sim_mem.h"
#include "hal/sim/hal_sim_store.h"

#define LIMIT_WORTH	(1u << 18)	/* bytes; smaller allocations do not
					 * check the limit of memory */
#define REF_GEN_MASK	0xFFFFFFu

static uint64_t ref_gaddr(uint64_t ref)
{
	return ref & HAL_GADDR_MASK;
}

static uint64_t ref_page(uint64_t ref)
{
	return ((ref & HAL_GADDR_LOCAL_MASK) - SIM_MEM_BASE) / SIM_PAGE;
}

/* ---- Pages ------------------------------------------------------------- */

/* Mark n pages as used, or as free. */
static void mark(struct sim_board *b, uint64_t page, uint64_t n, bool use)
{
	while (n != 0) {
		unsigned at = page % 64;
		uint64_t here = n < 64 - at ? n : 64 - at;
		uint64_t bits = (here == 64 ? ~UINT64_C(0) :
				 (UINT64_C(1) << here) - 1) << at;

		if (use)
			atomic_fetch_or(&b->used[page / 64], bits);
		else
			atomic_fetch_and(&b->used[page / 64], ~bits);
		page += here;
		n -= here;
	}
}

/* First page of the first n free pages in a row in [from, to); to: there are
 * none. */
static uint64_t find_run(struct sim_board *b, uint64_t from, uint64_t to,
			 uint64_t n)
{
	uint64_t run = 0;

	for (uint64_t page = from; page < to; ) {
		uint64_t word = atomic_load(&b->used[page / 64]);

		if (page % 64 == 0 && word == ~UINT64_C(0)) {
			run = 0;
			page += 64;
			continue;
		}
		if (page % 64 == 0 && word == 0 && to - page >= 64 &&
		    run + 64 < n) {
			run += 64;
			page += 64;
			continue;
		}
		run = word >> page % 64 & 1 ? 0 : run + 1;
		page++;
		if (run == n)
			return page - n;
	}
	return to;
}

/* Find free pages, next fit: an address is not reused soon. */
static uint64_t find_pages(struct sim_world *w, struct sim_board *b,
			   uint64_t n)
{
	uint64_t total = w->mem_bytes / SIM_PAGE, page;

	page = find_run(b, b->next_page, total, n);
	if (page == total)
		page = find_run(b, 0, total, n);
	if (page != total)
		b->next_page = page + n;
	return page;
}

bool sim_mem_decodes(struct sim_world *w, uint64_t gaddr, uint64_t len)
{
	uint64_t page, last;
	struct sim_board *b;

	if (len == 0 || sim_memory(w, gaddr, len) == NULL)
		return false;
	b = w->board[hal_gaddr_board(gaddr)];
	last = ref_page(gaddr + len - 1);
	for (page = ref_page(gaddr); page <= last; page++)
		if (!(atomic_load(&b->used[page / 64]) >> page % 64 & 1))
			return false;
	return true;
}

void sim_mem_move(struct sim_world *w, uint64_t dst, uint64_t src, uint64_t n)
{
	void *to = sim_memory(w, dst, n);
	const void *from = sim_memory(w, src, n);

	if (to != NULL && from != NULL)
		memmove(to, from, n);
}

/* ---- Regions: lock held ------------------------------------------------ */

static struct sim_region *region_make(struct sim_mm *mm, uint32_t board,
				      uint64_t pages)
{
	struct sim_board *b = mm->w->board[board];
	uint64_t page = find_pages(mm->w, b, pages);
	struct sim_region *r;
	uint32_t i = 0;

	while (i < b->nregions &&
	       atomic_load(&b->region[i].state) != SIM_REGION_FREE)
		i++;
	if (page == mm->w->mem_bytes / SIM_PAGE || i == SIM_REGIONS)
		return NULL;
	if (i == b->nregions)
		b->nregions++;
	b->gen = (b->gen + 1) & REF_GEN_MASK;
	r = &b->region[i];
	atomic_store(&r->ref, (uint64_t)b->gen << HAL_KDEV_REF_GEN_SHIFT |
		     (uint64_t)board << HAL_GADDR_BOARD_SHIFT |
		     (SIM_MEM_BASE + page * SIM_PAGE));
	r->pages = pages;
	r->holds = 0;
	atomic_store(&r->kept, 0);
	atomic_store(&r->maker, mm->w->me);
	r->maker_board = mm->m.board;
	r->maker_file = mm->file;
	atomic_store(&r->state, SIM_REGION_BUSY);
	mark(b, page, pages, true);
	HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_MAKING);
	b->first[page] = (uint16_t)(i + 1);
	return r;
}

/* Free a region; its memory is zeroed for the next one. */
static void region_free(struct sim_world *w, uint32_t board,
			struct sim_region *r)
{
	struct sim_board *b = w->board[board];
	uint64_t page = ref_page(atomic_load(&r->ref));

	atomic_store(&r->kept, 0);
	while (fallocate(w->fd[board], FALLOC_FL_PUNCH_HOLE |
			 FALLOC_FL_KEEP_SIZE,
			 (off_t)(SIM_STATE_BYTES + page * SIM_PAGE),
			 (off_t)(r->pages * SIM_PAGE)) != 0 && errno == EINTR)
		;
	mark(b, page, r->pages, false);
	HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_FREEING);
	b->first[page] = 0;
	atomic_store(&r->state, SIM_REGION_FREE);
}

static struct sim_region *region_of(struct sim_world *w, uint64_t ref)
{
	struct sim_board *b;
	uint32_t i;

	if (sim_memory(w, ref_gaddr(ref), 1) == NULL)
		return NULL;
	b = w->board[hal_gaddr_board(ref)];
	i = b->first[ref_page(ref)];
	if (i == 0 || atomic_load(&b->region[i - 1].ref) != ref ||
	    atomic_load(&b->region[i - 1].state) != SIM_REGION_LIVE)
		return NULL;
	return &b->region[i - 1];
}

/* ---- Holds: lock held -------------------------------------------------- */

static struct sim_hold *hold_room(struct sim_file *f)
{
	uint32_t n = atomic_load(&f->nholds);

	for (uint32_t i = 0; i < n; i++)
		if (atomic_load(&f->hold[i].ref) == 0)
			return &f->hold[i];
	if (n == SIM_HOLDS)
		return NULL;
	/* the entry is free whether it counts or not */
	atomic_store(&f->nholds, n + 1);
	return &f->hold[n];
}

static void hold_set(struct sim_world *w, struct sim_hold *h,
		     struct sim_region *r, uint16_t flags, uint64_t due)
{
	uint64_t ref = atomic_load(&r->ref);
	struct sim_board *b = w->board[hal_gaddr_board(ref)];

	atomic_store(&h->bytes, r->pages * SIM_PAGE);
	atomic_store(&h->flags, flags);
	h->due = due;
	h->region = (uint32_t)(r - b->region);
	h->maps = 0;
	atomic_store(&h->ref, ref);
	HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_HOLDING);
	r->holds++;
	if (flags & SIM_HOLD_MAKER)
		atomic_store(&r->kept, 1);
}

static void hold_free(struct sim_world *w, struct sim_hold *h)
{
	uint64_t ref = atomic_load(&h->ref);
	uint32_t board = hal_gaddr_board(ref);
	struct sim_region *r = &w->board[board]->region[h->region];

	atomic_store(&h->ref, 0);
	HAL_FAULT_POINT(HAL_FAULT_POINT_SIM_LETTING);
	if (atomic_load(&h->flags) & SIM_HOLD_MAKER)
		atomic_store(&r->kept, 0);
	if (--r->holds == 0)
		region_free(w, board, r);
}

static uint32_t hold_number(const struct sim_mm *mm, const struct sim_hold *h)
{
	return (uint32_t)(h - mm->f->hold) + 1;
}

static struct sim_hold *hold_at(struct sim_mm *mm, uint32_t hold)
{
	if (hold == 0 || hold > atomic_load(&mm->f->nholds) ||
	    atomic_load(&mm->f->hold[hold - 1].ref) == 0)
		return NULL;
	return &mm->f->hold[hold - 1];
}

/* ---- ALLOC ------------------------------------------------------------- */

/* The open file whose interface has an identity; NULL: no live one has. */
static struct sim_file *file_of(struct sim_world *w, uint64_t identity)
{
	uint32_t board = hal_id_board(identity), n = hal_id_if(identity);
	struct sim_board *b;
	struct sim_file *f;
	uint32_t file;

	if (board >= w->boards || n >= HAL_REG_IFS)
		return NULL;
	b = w->board[board];
	file = atomic_load(&b->iface[n].file);
	if (file == 0 || b->table[n].identity != identity)
		return NULL;
	f = &b->file[file - 1];
	return sim_alive(w, atomic_load(&f->owner)) ? f : NULL;
}

static int alloc_commit(struct sim_mm *mm, struct hal_kdev_alloc *a,
			struct sim_region *r)
{
	struct sim_hold *own = hold_room(mm->f), *other = NULL;
	const struct hal_kdev_entry *e = mm->f->claimed == 0 ? NULL :
		&mm->b->table[mm->f->claimed - 1];

	if (own == NULL)
		return -ENOMEM;
	if (a->to != 0) {
		struct sim_file *f = file_of(mm->w, a->to);

		if (f == NULL)
			return -ESRCH;
		other = hold_room(f);
		if (other == NULL)
			return -ENOMEM;
		if (other == own)	/* both holders are this file */
			other = NULL;
	}
	r->secret = a->secret;
	r->uid = geteuid();
	r->identity = e != NULL ? e->identity : 0;
	r->nonce = e != NULL ? e->nonce : 0;
	atomic_store(&r->state, SIM_REGION_LIVE);
	hold_set(mm->w, own, r, SIM_HOLD_MAKER, 0);
	if (a->to != 0 && other == NULL)
		other = hold_room(mm->f);
	if (other != NULL)
		hold_set(mm->w, other, r, SIM_HOLD_GIVEN, 0);
	a->ref = atomic_load(&r->ref);
	a->map_off = ref_gaddr(a->ref);
	a->hold = hold_number(mm, own);
	a->bytes = r->pages * SIM_PAGE;
	return 0;
}

static struct sim_region *reserve(struct sim_mm *mm, uint32_t board,
				  uint64_t pages)
{
	struct sim_region *r;
	uint64_t at;
	int ret;

	sim_lock(mm->w);
	r = region_make(mm, board, pages);
	sim_unlock(mm->w);
	if (r == NULL)
		return NULL;
	at = SIM_STATE_BYTES + ref_page(atomic_load(&r->ref)) * SIM_PAGE;
	ret = hal_seg_reserve(mm->w->fd[board], at, at + pages * SIM_PAGE);
	if (ret == 0)
		return r;
	sim_lock(mm->w);
	region_free(mm->w, board, r);
	sim_unlock(mm->w);
	return NULL;
}

int sim_mem_alloc(struct sim_mm *mm, struct hal_kdev_alloc *a)
{
	uint64_t pages = a->bytes / SIM_PAGE + (a->bytes % SIM_PAGE != 0);
	struct sim_region *r;
	int ret;

	if (a->board >= mm->w->boards || a->bytes == 0)
		return -EINVAL;
	if (a->board != mm->m.board && sim_death(mm->w, a->board) != SIM_LIVES)
		return -EHOSTDOWN;
	if (a->bytes > mm->w->mem_bytes || (a->bytes >= LIMIT_WORTH &&
	    hal_limit_check("dmable memory", a->bytes) != 0))
		return -ENOMEM;
	r = reserve(mm, a->board, pages);
	if (r == NULL)
		return -ENOMEM;
	sim_lock(mm->w);
	ret = alloc_commit(mm, a, r);
	if (ret != 0)
		region_free(mm->w, a->board, r);
	sim_unlock(mm->w);
	return ret;
}

/* ---- IMPORT ------------------------------------------------------------ */

/* The hold on a region that ALLOC gave to this file and no import has taken
 * yet, or NULL. *any: the file has a hold on the region. */
static struct sim_hold *hold_given(struct sim_mm *mm, uint64_t ref, bool *any)
{
	uint32_t n = atomic_load(&mm->f->nholds);

	*any = false;
	for (uint32_t i = 0; i < n; i++) {
		struct sim_hold *h = &mm->f->hold[i];

		if (atomic_load(&h->ref) != ref)
			continue;
		*any = true;
		if (atomic_load(&h->flags) & SIM_HOLD_GIVEN)
			return h;
	}
	return NULL;
}

static void import_tell(const struct sim_region *r,
			struct hal_kdev_import *imp)
{
	imp->bytes = r->pages * SIM_PAGE;
	imp->map_off = ref_gaddr(imp->ref);
	imp->owner = r->identity;
	imp->owner_nonce = r->nonce;
	imp->owner_uid = r->uid;
}

/* Finish the import of a hold, or return -EAGAIN while it is being prepared.
 * The hold then belongs to this import; the next import gets another hold. */
static int route(struct sim_mm *mm, struct sim_hold *h)
{
	if ((atomic_load(&h->flags) & SIM_HOLD_ROUTING) &&
	    sim_now(mm->w) < h->due)
		return -EAGAIN;
	atomic_store(&h->flags, 0);
	return 0;
}

/* The hold of an unfinished import, by its number: a file may have several
 * unfinished imports of a region. */
static struct sim_hold *hold_routing(struct sim_mm *mm,
				     const struct hal_kdev_import *imp)
{
	struct sim_hold *h = hold_at(mm, imp->hold);

	return h != NULL && atomic_load(&h->ref) == imp->ref &&
	       (atomic_load(&h->flags) & SIM_HOLD_ROUTING) ? h : NULL;
}

/* Begin an import: find or make a hold for it. */
static int import_begin(struct sim_mm *mm, struct sim_region *r, uint64_t ref,
			struct sim_hold **out)
{
	bool slow = mm->w->par.route != 0 &&
		    hal_gaddr_board(ref) != mm->m.board, any;
	struct sim_hold *h = hold_given(mm, ref, &any);

	if (!any) {
		uint64_t maker = atomic_load(&r->maker);

		if (!sim_alive(mm->w, maker)) {
			mm->w->reap(mm->w, maker);
			return -ESTALE;
		}
		if (!atomic_load(&r->kept) || atomic_load(&r->ref) != ref)
			return -ESTALE;
	}
	if (h == NULL) {
		h = hold_room(mm->f);
		if (h == NULL)
			return -ENOSPC;
		hold_set(mm->w, h, r, slow ? SIM_HOLD_ROUTING : 0,
			 slow ? sim_now(mm->w) + (uint64_t)mm->w->par.route :
			 0);
	}
	*out = h;
	return 0;
}

static int import(struct sim_mm *mm, struct hal_kdev_import *imp)
{
	struct sim_region *r = region_of(mm->w, imp->ref);
	struct sim_hold *h = NULL;
	int ret = 0;

	if (r == NULL || r->secret != imp->secret)
		return -ESTALE;
	if (imp->hold == 0)
		ret = import_begin(mm, r, imp->ref, &h);
	else if ((h = hold_routing(mm, imp)) == NULL)
		ret = -EINVAL;
	if (ret != 0)
		return ret;
	ret = route(mm, h);
	if (ret == 0)
		import_tell(r, imp);
	imp->hold = hold_number(mm, h);
	return ret;
}

int sim_mem_import(struct sim_mm *mm, struct hal_kdev_import *imp)
{
	uint32_t board = hal_gaddr_board(imp->ref);
	int ret;

	if (board != mm->m.board && board < mm->w->boards &&
	    sim_death(mm->w, board) != SIM_LIVES)
		return -EHOSTDOWN;
	sim_lock(mm->w);
	ret = import(mm, imp);
	sim_unlock(mm->w);
	return ret;
}

/* ---- CHECK, DROP ------------------------------------------------------- */

int sim_mem_check(struct sim_mm *mm, uint32_t hold)
{
	struct sim_hold *h = hold_at(mm, hold);
	struct sim_region *r;
	uint64_t ref;

	if (h == NULL)
		return -ESTALE;
	/* The hold keeps the region in existence. */
	ref = atomic_load(&h->ref);
	r = &mm->w->board[hal_gaddr_board(ref)]->region[h->region];
	return atomic_load(&r->kept) &&
	       sim_alive(mm->w, atomic_load(&r->maker)) ? 0 : -ESTALE;
}

int sim_mem_drop(struct sim_mm *mm, uint32_t hold)
{
	struct sim_hold *h = hold_at(mm, hold);

	if (h == NULL)
		return -EINVAL;
	sim_store_flush(mm, hal_gaddr_board(atomic_load(&h->ref)));
	if (h->maps != 0) {
		struct sim_board *b =
			mm->w->board[hal_gaddr_board(atomic_load(&h->ref))];

		if (atomic_fetch_or(&h->flags, SIM_HOLD_DROPPED) &
		    SIM_HOLD_MAKER)
			atomic_store(&b->region[h->region].kept, 0);
		return 0;
	}
	sim_lock(mm->w);
	hold_free(mm->w, h);
	sim_unlock(mm->w);
	return 0;
}

/* ---- Maps -------------------------------------------------------------- */

static bool covers(const struct sim_hold *h, uint64_t gaddr, uint64_t len)
{
	uint64_t ref = atomic_load(&h->ref);
	uint64_t off = gaddr - ref_gaddr(ref), bytes = atomic_load(&h->bytes);

	return ref != 0 && off < bytes && len <= bytes - off;
}

int sim_mem_map(struct sim_mm *mm, uint64_t gaddr, size_t len,
		struct hal_mmio_map *map)
{
	uint32_t n = atomic_load(&mm->f->nholds);

	for (uint32_t i = 0; i < n; i++) {
		struct sim_hold *h = &mm->f->hold[i];
		uint16_t flags = atomic_load(&h->flags);

		if (!covers(h, gaddr, len) || (flags & (SIM_HOLD_DROPPED |
		    SIM_HOLD_ROUTING)) != 0)
			continue;
		h->maps++;
		/* Memory of another board is reached by store() and load(). */
		map->base = hal_gaddr_board(gaddr) == mm->m.board ||
			    (flags & SIM_HOLD_MAKER) ?
			    sim_memory(mm->w, gaddr, len) : NULL;
		map->impl = sim_impl(HAL_KDEV_MEM, gaddr);
		return 0;
	}
	return -EACCES;
}

void sim_mem_unmap(struct sim_mm *mm, uint64_t gaddr)
{
	uint32_t n = atomic_load(&mm->f->nholds);
	struct sim_hold *h = NULL;

	sim_store_flush(mm, hal_gaddr_board(gaddr));
	for (uint32_t i = 0; i < n; i++) {
		struct sim_hold *at = &mm->f->hold[i];

		if (covers(at, gaddr, 1) && at->maps != 0 &&
		    (h == NULL || atomic_load(&at->flags) & SIM_HOLD_DROPPED))
			h = at;
	}
	if (h == NULL)
		sim_misuse("what is unmapped was not mapped");
	if (--h->maps != 0 || !(atomic_load(&h->flags) & SIM_HOLD_DROPPED))
		return;
	sim_lock(mm->w);
	hold_free(mm->w, h);
	sim_unlock(mm->w);
}

bool sim_mem_held(struct sim_world *w, uint64_t gaddr, uint64_t len)
{
	bool held = false;

	hal_lock(&w->mms_lock);
	unm_list_for_each(pos, &w->mms) {
		struct sim_mm *mm = unm_container(pos, struct sim_mm, list);
		uint32_t n = atomic_load(&mm->f->nholds);

		for (uint32_t i = 0; i < n && !held; i++)
			held = covers(&mm->f->hold[i], gaddr, len) &&
			       !(atomic_load(&mm->f->hold[i].flags) &
				 (SIM_HOLD_DROPPED | SIM_HOLD_ROUTING));
	}
	hal_unlock(&w->mms_lock);
	return held;
}

/* ---- Ends: lock held --------------------------------------------------- */

void sim_mem_file_over(struct sim_world *w, uint32_t board, uint32_t file)
{
	struct sim_file *f = &w->board[board]->file[file];
	uint32_t n = atomic_load(&f->nholds);

	for (uint32_t i = 0; i < n; i++)
		if (atomic_load(&f->hold[i].ref) != 0)
			hold_free(w, &f->hold[i]);
	atomic_store(&f->nholds, 0);
	for (uint32_t b = 0; b < w->boards; b++) {
		for (uint32_t i = 0; i < w->board[b]->nregions; i++) {
			struct sim_region *r = &w->board[b]->region[i];

			if (atomic_load(&r->state) == SIM_REGION_BUSY &&
			    r->maker_board == board && r->maker_file == file)
				region_free(w, b, r);
		}
	}
}

static void count_holds(struct sim_world *w, struct sim_file *f)
{
	uint32_t n = atomic_load(&f->nholds);

	for (uint32_t i = 0; i < n; i++) {
		struct sim_hold *h = &f->hold[i];
		uint64_t ref = atomic_load(&h->ref);
		struct sim_region *r;

		if (ref == 0)
			continue;
		r = &w->board[hal_gaddr_board(ref)]->region[h->region];
		r->holds++;
		if ((atomic_load(&h->flags) &
		     (SIM_HOLD_MAKER | SIM_HOLD_DROPPED)) == SIM_HOLD_MAKER)
			atomic_store(&r->kept, 1);
	}
}

/* Changes that the dead holder of the lock had begun are finished or undone. */
void sim_mem_rebuild(struct sim_world *w)
{
	for (uint32_t b = 0; b < w->boards; b++) {
		for (uint32_t i = 0; i < w->board[b]->nregions; i++) {
			w->board[b]->region[i].holds = 0;
			atomic_store(&w->board[b]->region[i].kept, 0);
		}
	}
	for (uint32_t b = 0; b < w->boards; b++)
		for (uint32_t i = 0; i < SIM_FILES; i++)
			if (atomic_load(&w->board[b]->file[i].owner) != 0)
				count_holds(w, &w->board[b]->file[i]);
	for (uint32_t b = 0; b < w->boards; b++) {
		struct sim_board *board = w->board[b];

		for (uint32_t i = 0; i < board->nregions; i++) {
			struct sim_region *r = &board->region[i];
			uint32_t state = atomic_load(&r->state);
			uint64_t page = ref_page(atomic_load(&r->ref));

			if (state == SIM_REGION_FREE)
				continue;
			mark(board, page, r->pages, true);
			board->first[page] = (uint16_t)(i + 1);
			if (r->holds == 0 && (state == SIM_REGION_LIVE ||
			    !sim_alive(w, atomic_load(&r->maker))))
				region_free(w, b, r);
		}
	}
}
