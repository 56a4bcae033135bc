/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_mmu.c - the map from page to memory and region: a hash table with open
 * addressing and linear probing. The slots hold the entries themselves, so a
 * look-up reads one or two cache lines.
 *
 * To grow or shrink, the map allocates a new table, and each later change moves
 * some entries from the old table. Removal of an entry closes the gap, so no
 * marks of deleted entries pile up. Entries are moved by removal at a cursor:
 * all slots before the cursor stay empty. The service chooses page numbers, not
 * the clients, so no client can provoke collisions.
 *
 * Like the MMU of a processor it has pages of several sizes, so a large run of
 * pages takes few entries and is inserted and removed fast.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include <rdma/fi_errno.h>

#include "service/gsas_mmu.h"

#define SIZE_MIN	64
#define SIZE_MAX_LOG	40		/* no machine has memory for 2^40 */

/*
 * Slots of the old table that are processed for each entry inserted or removed.
 * A table of S slots is replaced when it has 3/4 S entries or less than 1/16 S.
 * To empty it takes at most 7/4 S steps. They are done before the new table is
 * full, after 3/4 S insertions, and before it has to shrink, after 1/32 S
 * removals.
 */
#define STEPS_INSERT	8
#define STEPS_REMOVE	48

/* When the cursor has passed so many slots, their memory is returned to the
 * system. They are whole pages, of up to 64 KiB. */
#define CHUNK		8192
_Static_assert(CHUNK * sizeof(struct gsas_page) % (64 << 10) == 0, "pages");

struct gsas_table {
	struct gsas_page *slot;		/* slot[i].memory NULL: empty */
	uint64_t mask, count;		/* slots - 1; entries */
	unsigned shift;			/* 64 - log2(slots) */
};

struct gsas_mmu {
	uint64_t count[GSAS_PAGE_SIZES];	/* entries by size */
	struct gsas_table cur;		/* entries are inserted here */
	struct gsas_table old;		/* slot NULL: nothing to move */
	uint64_t cursor;		/* slots of old before it are empty */
	uint64_t size_min;		/* fewest slots of a table */
};

/* ---- Sizes of pages ------------------------------------------------------ */

/* Number of smallest pages in a page of a size. */
static uint64_t gsas_page_count(unsigned size)
{
	return UINT64_C(1) << gsas_page_shift[size];
}

/* The key of an entry: the number of its page, in pages of its size, and the
 * size. */
static uint64_t gsas_page_key(uint64_t number, unsigned size)
{
	return number >> gsas_page_shift[size] |
		(uint64_t)size << GSAS_PAGE_SIZE_SHIFT;
}

/* The size of the first page of a run: the largest that is aligned and fits. */
static unsigned gsas_page_first(uint64_t number, uint64_t count)
{
	unsigned size = GSAS_PAGE_SIZES - 1;

	while (count < gsas_page_count(size) ||
	       number % gsas_page_count(size) != 0)
		size--;
	return size;
}

/* Number of entries of a run. */
static uint64_t gsas_page_entries(uint64_t number, uint64_t count)
{
	uint64_t n = 0, step;

	for (; count > 0; count -= step, number += step) {
		step = gsas_page_count(gsas_page_first(number, count));
		n++;
	}
	return n;
}

/* ---- One table ---------------------------------------------------------- */

static int gsas_table_new(struct gsas_table *t, uint64_t size)
{
	void *at;

	/* mmap() returns zeroed memory that is populated at first use, so this
	 * takes O(1). Huge pages would halve the time of look-ups in millions
	 * of pages, but an insertion would take milliseconds while the kernel
	 * clears a huge page. */
	at = mmap(NULL, size * sizeof(*t->slot), PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return -FI_ENOMEM;
	t->slot = at;
	t->mask = size - 1;
	t->count = 0;
	t->shift = 64 - (unsigned)__builtin_ctzll(size);
	return 0;
}

static void gsas_table_free(struct gsas_table *t)
{
	if (t->slot != NULL)
		munmap(t->slot, (t->mask + 1) * sizeof(*t->slot));
	t->slot = NULL;
	t->count = 0;
}

static uint64_t gsas_table_home(const struct gsas_table *t, uint64_t key)
{
	uint64_t h = key * UINT64_C(0x9E3779B97F4A7C15);

	h = (h ^ h >> 32) * UINT64_C(0xBF58476D1CE4E5B9);
	return h >> t->shift;
}

static struct gsas_page *gsas_table_find(const struct gsas_table *t,
					 uint64_t i, uint64_t key)
{
	for (; t->slot[i].memory != NULL; i = (i + 1) & t->mask)
		if (t->slot[i].key == key)
			return &t->slot[i];
	return NULL;
}

static void gsas_table_put(struct gsas_table *t, const struct gsas_page *page)
{
	uint64_t i = gsas_table_home(t, page->key);

	while (t->slot[i].memory != NULL)
		i = (i + 1) & t->mask;
	t->slot[i] = *page;
	t->count++;
}

/* Remove an entry, and move entries behind it up to their home or closer to
 * it, so that linear probing still finds them. */
static void gsas_table_take(struct gsas_table *t, struct gsas_page *page)
{
	uint64_t hole = (uint64_t)(page - t->slot), i = hole, home;

	for (;;) {
		i = (i + 1) & t->mask;
		if (t->slot[i].memory == NULL)
			break;
		home = gsas_table_home(t, t->slot[i].key);
		if (((i - home) & t->mask) < ((i - hole) & t->mask))
			continue;
		t->slot[hole] = t->slot[i];
		hole = i;
	}
	t->slot[hole].memory = NULL;
	t->count--;
}

/* ---- Two tables --------------------------------------------------------- */

/* Process so many slots of the old table: move their entries to the new one. */
static void gsas_mmu_move(struct gsas_mmu *mmu, uint64_t steps)
{
	struct gsas_table *old = &mmu->old;
	struct gsas_page *page;

	for (; old->slot != NULL && steps > 0; steps--) {
		page = &old->slot[mmu->cursor];
		if (page->memory != NULL) {
			gsas_table_put(&mmu->cur, page);
			gsas_table_take(old, page);
			continue;
		}
		if (++mmu->cursor > old->mask)
			gsas_table_free(old);
		else if (mmu->cursor % CHUNK == 0)
			madvise(&old->slot[mmu->cursor - CHUNK],
				CHUNK * sizeof(*page), MADV_DONTNEED);
	}
}

static int gsas_mmu_resize(struct gsas_mmu *mmu, uint64_t size)
{
	struct gsas_table table;

	if (gsas_table_new(&table, size))
		return -FI_ENOMEM;
	mmu->old = mmu->cur;
	mmu->cur = table;
	mmu->cursor = 0;
	return 0;
}

/* The number of slots, from size on, that count entries fill to three quarters
 * at most. 0: too many entries. */
static uint64_t gsas_mmu_size(uint64_t count, uint64_t size)
{
	if (count >= UINT64_C(1) << (SIZE_MAX_LOG - 1))
		return 0;
	while (size / 4 * 3 < count)
		size *= 2;
	return size;
}

/* Make room for count more entries in the current table. */
static int gsas_mmu_reserve(struct gsas_mmu *mmu, uint64_t count)
{
	uint64_t there = gsas_mmu_count(mmu);
	uint64_t size = mmu->cur.mask + 1;

	if (count <= size / 4 * 3 - there)
		return 0;
	size = gsas_mmu_size(there + count, size * 2);
	if (size == 0)
		return -FI_ENOMEM;
	/* The old table is empty by now unless count is large (see STEPS_...),
	 * so moving the rest takes no longer than inserting count entries. */
	gsas_mmu_move(mmu, UINT64_MAX);
	return gsas_mmu_resize(mmu, size);
}

int gsas_mmu_new(uint64_t entries, struct gsas_mmu **mmu)
{
	struct gsas_mmu *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return -FI_ENOMEM;
	m->size_min = gsas_mmu_size(entries, SIZE_MIN);
	if (m->size_min == 0 || gsas_table_new(&m->cur, m->size_min)) {
		free(m);
		return -FI_ENOMEM;
	}
	*mmu = m;
	return 0;
}

void gsas_mmu_free(struct gsas_mmu *mmu)
{
	if (mmu == NULL)
		return;
	gsas_table_free(&mmu->old);
	gsas_table_free(&mmu->cur);
	free(mmu);
}

int gsas_mmu_insert(struct gsas_mmu *mmu, uint64_t number, uint64_t count,
		    uint8_t *memory, struct gsas_region *region)
{
	struct gsas_page page = { .memory = memory, .region = region };
	uint64_t step;
	unsigned size;

	if (count > GSAS_PAGES_MAX ||
	    gsas_mmu_reserve(mmu, gsas_page_entries(number, count)))
		return -FI_ENOMEM;
	for (; count > 0; count -= step, number += step) {
		size = gsas_page_first(number, count);
		step = gsas_page_count(size);
		page.key = gsas_page_key(number, size);
		gsas_mmu_move(mmu, STEPS_INSERT);
		gsas_table_put(&mmu->cur, &page);
		mmu->count[size]++;
		page.memory += step * GSAS_PAGE_BYTES;
	}
	return 0;
}

static const struct gsas_page *gsas_mmu_look(const struct gsas_mmu *mmu,
					     uint64_t key)
{
	const struct gsas_table *t = &mmu->cur;
	struct gsas_page *page;
	uint64_t home;

	page = gsas_table_find(t, gsas_table_home(t, key), key);
	t = &mmu->old;
	if (page != NULL || t->slot == NULL)
		return page;
	/* an entry with a home before the cursor is not in the old table */
	home = gsas_table_home(t, key);
	return home < mmu->cursor ? NULL : gsas_table_find(t, home, key);
}

const struct gsas_page *gsas_mmu_find(const struct gsas_mmu *mmu,
				      uint64_t number)
{
	const struct gsas_page *page = NULL;

	for (unsigned i = 0; page == NULL && i < GSAS_PAGE_SIZES; i++)
		if (mmu->count[i] != 0)
			page = gsas_mmu_look(mmu, gsas_page_key(number, i));
	return page;
}

static void gsas_mmu_take(struct gsas_mmu *mmu, uint64_t key)
{
	struct gsas_table *t = &mmu->cur;
	struct gsas_page *page;

	page = gsas_table_find(t, gsas_table_home(t, key), key);
	if (page == NULL) {
		t = &mmu->old;
		page = gsas_table_find(t, gsas_table_home(t, key), key);
	}
	gsas_table_take(t, page);
}

void gsas_mmu_remove(struct gsas_mmu *mmu, uint64_t number, uint64_t count)
{
	uint64_t table, step;
	unsigned size;

	for (; count > 0; count -= step, number += step) {
		size = gsas_page_first(number, count);
		step = gsas_page_count(size);
		gsas_mmu_move(mmu, STEPS_REMOVE);
		gsas_mmu_take(mmu, gsas_page_key(number, size));
		mmu->count[size]--;
		table = mmu->cur.mask + 1;
		/* if there is no memory for a smaller table, keep this one */
		if (mmu->old.slot == NULL && table > mmu->size_min &&
		    mmu->cur.count < table / 16)
			(void)gsas_mmu_resize(mmu, table / 2);
	}
}

uint64_t gsas_mmu_count(const struct gsas_mmu *mmu)
{
	return mmu->cur.count + mmu->old.count;
}
