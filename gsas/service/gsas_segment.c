/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_segment.c - segments: memory that regions of one job, mode and group
 * share, its page words, and the tree of a board's segments by address.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "service/gsas_segment.h"

#define SEGMENT_PAGES	(GSAS_SEGMENT / GSAS_PAGE_BYTES)
#define PAGE_WORDS	(GSAS_PAGE_BYTES / sizeof(uint32_t))

/*
 * Number of pages of words: they have a word for each page of the segment,
 * including themselves. So n pages of words are enough for (PAGE_WORDS - 1) * n
 * further pages. The pages that rounding adds need no more words, because
 * PAGE_WORDS * n pages are a multiple of GSAS_SEGMENT.
 */
_Static_assert(PAGE_WORDS % SEGMENT_PAGES == 0, "rounding needs no more");

static uint64_t gsas_segment_first(uint64_t pages, bool mapped)
{
	return mapped ? (pages + PAGE_WORDS - 2) / (PAGE_WORDS - 1) : 0;
}

uint64_t gsas_segment_bytes(uint64_t pages, bool mapped)
{
	uint64_t n = gsas_segment_first(pages, mapped) + pages;

	n = (n + SEGMENT_PAGES - 1) / SEGMENT_PAGES;
	return n * GSAS_SEGMENT;
}

struct gsas_segment *gsas_segment_new(const struct gsas_share *share,
				      uint64_t pages)
{
	bool mapped = share->attr & GSAS_ATTR_MAPPED;
	struct gsas_segment *segment = calloc(1, sizeof(*segment));

	if (segment == NULL)
		return NULL;
	if (pthread_mutex_init(&segment->lock, NULL)) {
		free(segment);
		return NULL;
	}
	segment->share = *share;
	segment->bytes = gsas_segment_bytes(pages, mapped);
	segment->pages = segment->bytes / GSAS_PAGE_BYTES;
	segment->first = gsas_segment_first(pages, mapped);
	segment->used = segment->first;
	return segment;
}

void gsas_segment_free(struct gsas_segment *segment)
{
	pthread_mutex_destroy(&segment->lock);
	free(segment);
}

void gsas_segment_put(struct gsas_segment *segment, struct gsas_node *node)
{
	node->region.segment = segment;
	node->region.address = segment->base + segment->used * GSAS_PAGE_BYTES;
	segment->used += node->region.pages;
	node->prev = segment->tail;
	node->next = NULL;
	if (segment->tail != NULL)
		segment->tail->next = node;
	else
		segment->head = node;
	segment->tail = node;
}

void gsas_segment_take(struct gsas_segment *segment, struct gsas_node *node)
{
	if (node->prev != NULL)
		node->prev->next = node->next;
	else
		segment->head = node->next;
	if (node->next != NULL)
		node->next->prev = node->prev;
	else
		segment->tail = node->prev;
}

/* ---- Memory ------------------------------------------------------------- */

enum gsas_error gsas_segment_fill(struct gsas_segment *segment,
				  const struct gsas_memory *memory)
{
	bool mapped = segment->share.attr & GSAS_ATTR_MAPPED;
	struct gsas_block block = { .memory = NULL };
	enum gsas_error error = GSAS_OK;

	/* the lock is held for long, but only plans of this segment wait */
	pthread_mutex_lock(&segment->lock);
	if (segment->block.memory == NULL) {
		if (memory->alloc(memory->ctx, segment->bytes, mapped, &block))
			error = GSAS_E_MEMORY;
		else
			segment->block = block;
	}
	pthread_mutex_unlock(&segment->lock);
	return error;
}

bool gsas_segment_place(struct gsas_segment *segment, uint64_t base)
{
	struct gsas_node *node;
	bool filled;

	/* If another plan calls gsas_segment_fill() now, it finds the memory
	 * and holds the lock only briefly. */
	pthread_mutex_lock(&segment->lock);
	filled = segment->block.memory != NULL;
	pthread_mutex_unlock(&segment->lock);
	if (!filled)
		return false;
	segment->base = base;
	for (node = segment->head; node != NULL; node = node->next)
		node->region.address += base;
	return true;
}

uint8_t *gsas_segment_memory(const struct gsas_segment *segment,
			     const struct gsas_region *region)
{
	return segment->block.memory + (region->address - segment->base);
}

void gsas_segment_publish(struct gsas_segment *segment,
			  const struct gsas_region *region, uint32_t word)
{
	_Atomic uint32_t *words;

	if (!(segment->share.attr & GSAS_ATTR_MAPPED))
		return;
	words = (_Atomic uint32_t *)(segment->block.memory +
		gsas_page_word(segment->base, region->address));
	/* release: pairs with the acquire in gsas_direct_load() of a client,
	 * which then accesses the page */
	for (uint64_t i = 0; i < region->pages; i++)
		atomic_store_explicit(&words[i], word, memory_order_release);
}

void gsas_segment_punch(struct gsas_segment *segment,
			const struct gsas_region *region)
{
	uint8_t *at = gsas_segment_memory(segment, region);
	uint8_t *end = at + region->pages * GSAS_PAGE_BYTES;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	/* the system's pages may be larger: only those in the region */
	uint8_t *from = at + -(uintptr_t)at % page;
	uint8_t *to = end - (uintptr_t)end % page;

	if (from < to) {
		size_t len = (size_t)(to - from);

		/* shared memory, private memory, or neither is possible */
		if (madvise(from, len, MADV_REMOVE) &&
		    (segment->share.attr & GSAS_ATTR_MAPPED ||
		     madvise(from, len, MADV_DONTNEED)))
			memset(from, 0, len);
	} else {
		from = to = end;
	}
	memset(at, 0, (size_t)(from - at));
	memset(to, 0, (size_t)(end - to));
}

/* ---- By address: a treap ------------------------------------------------ */

void gsas_segment_insert(struct gsas_segment **root,
			 struct gsas_segment *segment)
{
	/* a hash of the address serves as the random weight of the treap */
	uint64_t h = segment->base * UINT64_C(0x9E3779B97F4A7C15);
	struct gsas_segment *rest, **left = &segment->left;
	struct gsas_segment **right = &segment->right;

	h = (h ^ h >> 32) * UINT64_C(0xBF58476D1CE4E5B9);
	segment->weight = h ^ h >> 29;
	while (*root != NULL && (*root)->weight >= segment->weight)
		root = segment->base < (*root)->base ? &(*root)->left :
			&(*root)->right;
	/* split the subtree below: lower addresses left, higher ones right */
	for (rest = *root; rest != NULL;) {
		if (rest->base < segment->base) {
			*left = rest;
			left = &rest->right;
			rest = *left;
		} else {
			*right = rest;
			right = &rest->left;
			rest = *right;
		}
	}
	*left = *right = NULL;
	*root = segment;
}

void gsas_segment_remove(struct gsas_segment **root,
			 struct gsas_segment *segment)
{
	struct gsas_segment *left = segment->left, *right = segment->right;

	while (*root != segment)
		root = segment->base < (*root)->base ? &(*root)->left :
			&(*root)->right;
	while (left != NULL && right != NULL) {
		if (left->weight >= right->weight) {
			*root = left;
			root = &left->right;
			left = *root;
		} else {
			*root = right;
			root = &right->left;
			right = *root;
		}
	}
	*root = left != NULL ? left : right;
}

struct gsas_segment *gsas_segment_from(struct gsas_segment *root,
				       uint64_t address)
{
	struct gsas_segment *found = NULL;

	while (root != NULL) {
		if (root->base + (root->bytes - 1) < address) {
			root = root->right;
		} else {
			found = root;
			root = root->left;
		}
	}
	return found;
}
