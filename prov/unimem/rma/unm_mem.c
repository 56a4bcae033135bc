/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_mem.c - the domain's heap of dmable memory (unm_mem.h). What is kept of
 * it lies in the process's private memory: peers can write all of a segment.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/unm_domain_state.h"
#include "fi_ext_unimem.h"
#include "hal/hal.h"
#include "rma/unm_mem.h"
#include "unm_log.h"
#include "util/unm_list.h"
#include "util/unm_span.h"

#define PAGE		((size_t)4096)	/* least alignment of a region */
#define SEG_MIN		((size_t)4 << 20)	/* of shared segments */
#define SEG_MAX		((size_t)64 << 20)
#define BYTES_MAX	((size_t)1 << 46)	/* more cannot be addressed */

/* ---- What the HAL says ----------------------------------------------- */

/*
 * One thread at a time asks the HAL for a region and keeps what that says. No
 * thread-local memory: a library that is loaded late gets it from the heap,
 * which may have none. The lock names the process, as the HAL's do: a child
 * forked while another thread had it takes it over.
 */
static struct {
	_Atomic int holder;		/* pid, 0: free */
	_Atomic uintptr_t thread;	/* who listens, 0: nobody */
	char line[UNM_MEM_WHY];
} g_heard;

static void heard_begin(void)
{
	int self = (int)getpid(), seen = 0;

	/* pairs with the release in heard_end() */
	while (!atomic_compare_exchange_weak_explicit(&g_heard.holder, &seen,
			self, memory_order_acquire, memory_order_relaxed)) {
		if (seen != self)	/* free, or of a process before us */
			continue;
		sched_yield();
		seen = 0;
	}
	g_heard.line[0] = '\0';
	/* our own look; another thread's shows one that is not its own */
	atomic_store_explicit(&g_heard.thread, (uintptr_t)pthread_self(),
			      memory_order_relaxed);
}

static void heard_end(char *line)
{
	atomic_store_explicit(&g_heard.thread, 0, memory_order_relaxed);
	memcpy(line, g_heard.line, sizeof(g_heard.line));
	/* pairs with the acquire in heard_begin() */
	atomic_store_explicit(&g_heard.holder, 0, memory_order_release);
}

/* A refusal is not the last word: less may be had. */
bool unm_mem_hears(const char *line)
{
	/* our own store, or one that is not ours: orders nothing */
	if (atomic_load_explicit(&g_heard.thread, memory_order_relaxed) !=
	    (uintptr_t)pthread_self())
		return false;
	snprintf(g_heard.line, sizeof(g_heard.line), "%s", line);
	return true;
}

/* ---- The table of segments ------------------------------------------- */

/* A reader that sees one of these stores sees that of turn before it, too:
 * pairs with the acquires in unm_mem_view_find(). */
static void row_set(struct unm_mem_row *row, uintptr_t base, size_t bytes,
		    struct unm_mem_seg *seg)
{
	atomic_store_explicit(&row->base, base, memory_order_release);
	atomic_store_explicit(&row->bytes, bytes, memory_order_release);
	atomic_store_explicit(&row->seg, seg, memory_order_release);
}

static void row_copy(struct unm_mem_row *to, const struct unm_mem_row *from)
{
	/* ours alone to write: the lock is held */
	row_set(to, atomic_load_explicit(&from->base, memory_order_relaxed),
		atomic_load_explicit(&from->bytes, memory_order_relaxed),
		atomic_load_explicit(&from->seg, memory_order_relaxed));
}

static void view_insert(struct unm_mem_view *view, struct unm_mem_seg *seg)
{
	uint32_t n = atomic_load_explicit(&view->count, memory_order_relaxed);
	uint32_t at = n;

	for (; at > 0 && atomic_load_explicit(&view->row[at - 1].base,
				memory_order_relaxed) > seg->base; at--)
		row_copy(&view->row[at], &view->row[at - 1]);
	row_set(&view->row[at], seg->base, seg->bytes, seg);
	/* as row_set() */
	atomic_store_explicit(&view->count, n + 1, memory_order_release);
}

static void view_remove(struct unm_mem_view *view, struct unm_mem_seg *seg)
{
	uint32_t n = atomic_load_explicit(&view->count, memory_order_relaxed);
	uint32_t at = 0;

	while (atomic_load_explicit(&view->row[at].seg,
				    memory_order_relaxed) != seg)
		at++;
	for (; at + 1 < n; at++)
		row_copy(&view->row[at], &view->row[at + 1]);
	/* as row_set() */
	atomic_store_explicit(&view->count, n - 1, memory_order_release);
}

/* Change both views, and tell in between: the first before, as nobody looks at
 * it, the second after, as nobody who looks at it believes it. */
static void publish(struct unm_heap *heap, struct unm_mem_seg *seg,
		    void (*change)(struct unm_mem_view *,
				   struct unm_mem_seg *))
{
	uint64_t turn = atomic_load_explicit(&heap->turn,
					     memory_order_relaxed) + 1;

	change(&heap->view[turn & 1], seg);
	/* pairs with the acquire in unm_heap_find() */
	atomic_store_explicit(&heap->turn, turn, memory_order_release);
	change(&heap->view[(turn + 1) & 1], seg);
}

void unm_heap_insert(struct unm_heap *heap, struct unm_mem_seg *seg)
{
	publish(heap, seg, view_insert);
}

void unm_heap_remove(struct unm_heap *heap, struct unm_mem_seg *seg)
{
	publish(heap, seg, view_remove);
}

static uint32_t seg_count(const struct unm_heap *heap)
{
	return atomic_load_explicit(&heap->view[0].count,
				    memory_order_relaxed);
}

/* ---- Segments: lock held --------------------------------------------- */

static void seg_delete(struct unm_heap *heap, struct unm_mem_seg *seg)
{
	/* first: the address may be anybody's as soon as the HAL has it back */
	unm_heap_remove(heap, seg);
	hal_mem_free(heap->hal, seg->mem);
	heap->bytes -= seg->bytes;
	if (seg->shared) {
		unm_list_remove(&seg->link);
		unm_span_destruct(&seg->span);
	}
	unm_list_append(&heap->spare, &seg->link);
}

static void empty_delete(struct unm_heap *heap)
{
	struct unm_mem_seg *seg = heap->empty;

	heap->empty = NULL;
	if (seg != NULL)
		seg_delete(heap, seg);
}

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

/*
 * How large a segment for a block that needs so much of it? Shared ones grow
 * with what there is, so that they are few and yet not half empty.
 */
static size_t seg_size(const struct unm_heap *heap, size_t need)
{
	size_t size = SEG_MIN;

	if (need > SEG_MAX / 2)
		return need;
	while (size < SEG_MAX && (size < need || 2 * size <= heap->bytes))
		size *= 2;
	return size;
}

/* A region of that size; less, down to need, where so much is not to be had. */
static int region_alloc(struct unm_heap *heap, struct unm_mem_seg *seg,
			size_t size, size_t need)
{
	void *addr;
	int ret;

	for (;;) {
		heard_begin();
		ret = hal_mem_alloc(heap->hal, -1, size, &seg->mem, &addr);
		heard_end(heap->why);
		if (ret == 0)
			break;
		if (heap->empty != NULL)
			empty_delete(heap);
		else if (size > need)
			size = size / 4 > need ? whole_pages(size / 4) : need;
		else
			return ret;
	}
	seg->base = (uintptr_t)addr;
	seg->bytes = size;
	ret = hal_mem_key(heap->hal, seg->mem, &seg->key);
	if (ret != 0)
		hal_mem_free(heap->hal, seg->mem);
	return ret;
}

/* A segment with room for such a block: of its own if that is large. */
static int seg_new(struct unm_heap *heap, size_t bytes, size_t align,
		   struct unm_mem_seg **out)
{
	size_t need = whole_pages(bytes + (align > PAGE ? align - PAGE : 0));
	struct unm_list *node;
	struct unm_mem_seg *seg;
	int ret;

	if (seg_count(heap) == UNM_MEM_SEGS)
		empty_delete(heap);
	if (seg_count(heap) == UNM_MEM_SEGS)
		return -FI_ENOMEM;
	node = unm_list_pop(&heap->spare);
	seg = node != NULL ? unm_container(node, struct unm_mem_seg, link) :
		calloc(1, sizeof(*seg));
	if (seg == NULL)
		return -FI_ENOMEM;
	unm_list_init(&seg->link);
	seg->shared = need <= SEG_MAX / 2;
	ret = region_alloc(heap, seg, seg_size(heap, need), need);
	if (ret != 0)
		goto spare;
	if (seg->shared &&
	    !unm_span_construct(&seg->span, seg->base, seg->bytes)) {
		ret = -FI_ENOMEM;
		goto free_region;
	}
	if (seg->shared)
		unm_list_append(&heap->shared, &seg->link);
	heap->bytes += seg->bytes;
	unm_heap_insert(heap, seg);
	*out = seg;
	return 0;
free_region:
	hal_mem_free(heap->hal, seg->mem);
spare:
	unm_list_append(&heap->spare, &seg->link);
	return ret;
}

/* ---- Blocks: lock held ----------------------------------------------- */

/* The empty segment comes last: it shall go if it can. */
static uintptr_t block_find(struct unm_heap *heap, size_t bytes, size_t align)
{
	uintptr_t at;

	unm_list_for_each(node, &heap->shared) {
		struct unm_mem_seg *seg = unm_container(node,
						struct unm_mem_seg, link);

		at = seg != heap->empty ?
			unm_span_alloc(&seg->span, bytes, align) : 0;
		if (at != 0)
			return at;
	}
	if (heap->empty == NULL)
		return 0;
	at = unm_span_alloc(&heap->empty->span, bytes, align);
	if (at != 0)
		heap->empty = NULL;
	return at;
}

static int block_alloc(struct unm_heap *heap, size_t bytes, size_t align,
		       uintptr_t *out)
{
	struct unm_mem_seg *seg = NULL;
	int ret;

	*out = block_find(heap, bytes, align);
	if (*out == 0) {
		ret = seg_new(heap, bytes, align, &seg);
		if (ret != 0)
			return ret;
		if (seg->shared) {
			*out = unm_span_alloc(&seg->span, bytes, align);
		} else {
			*out = (seg->base + align - 1) & ~(align - 1);
			seg->block = *out;
			seg->block_bytes = bytes;
		}
	}
	heap->blocks++;
	heap->used += bytes;
	return 0;
}

/* Bytes of the block that begins there and is one no more; 0: none does. */
static size_t block_free(struct unm_heap *heap, uintptr_t addr)
{
	struct unm_mem_seg *seg = unm_heap_find(heap, (void *)addr, 1);
	size_t bytes;

	if (seg == NULL)
		return 0;
	if (!seg->shared) {
		if (seg->block != addr)
			return 0;
		bytes = seg->block_bytes;
		seg_delete(heap, seg);
	} else {
		bytes = unm_span_free(&seg->span, addr);
		if (bytes == 0 || !unm_span_empty(&seg->span))
			return bytes;
		/* this one it is that the next block may want */
		empty_delete(heap);
		heap->empty = seg;
	}
	return bytes;
}

/* ---- fi_unimem_mem(3) ------------------------------------------------ */

static bool forked(const struct unm_heap *heap)
{
	/* not remembered: a handler of fork would outlive a library that may
	 * be unloaded */
	return heap->pid != getpid();
}

static struct unm_heap *heap_of(struct fid_domain *fid)
{
	/* whoever has the table has it from unm_mem_open() */
	return atomic_load_explicit(&unm_domain(fid)->heap,
				    memory_order_acquire);
}

static int check_args(const struct unm_heap *heap, size_t bytes, size_t align,
		      uint64_t flags)
{
	if (flags != 0) {
		UNM_WARN(DOMAIN, FI_UNIMEM_MEM " alloc of %zu bytes: flags "
			 "0x%llx asked, there are none: use 0", bytes,
			 (unsigned long long)flags);
		return -FI_EBADFLAGS;
	}
	if (bytes == 0) {
		UNM_WARN(DOMAIN, FI_UNIMEM_MEM " alloc of 0 bytes: ask for 1 "
			 "or more");
		return -FI_EINVAL;
	}
	if ((align & (align - 1)) != 0 || align > FI_UNIMEM_MEM_ALIGN_MAX) {
		UNM_WARN(DOMAIN, FI_UNIMEM_MEM " alloc of %zu bytes: alignment "
			 "%zu is no power of two up to %zu", bytes, align,
			 FI_UNIMEM_MEM_ALIGN_MAX);
		return -FI_EINVAL;
	}
	if (forked(heap)) {
		UNM_WARN(DOMAIN, FI_UNIMEM_MEM " alloc of %zu bytes in a "
			 "forked child: the domain is its parent's, open one "
			 "of its own", bytes);
		return -FI_EPERM;
	}
	return 0;
}

static int unm_mem_alloc(struct fid_domain *fid, size_t bytes, size_t align,
			 uint64_t flags, void **addr)
{
	struct unm_heap *heap = heap_of(fid);
	char why[UNM_MEM_WHY] = "more than can be addressed";
	size_t whole = (bytes + UNM_SPAN_UNIT - 1) & ~(UNM_SPAN_UNIT - 1);
	uintptr_t at;
	int ret;

	ret = check_args(heap, bytes, align, flags);
	if (ret != 0)
		return ret;
	if (align < UNM_SPAN_UNIT)
		align = UNM_SPAN_UNIT;
	ret = -FI_ENOMEM;
	if (bytes <= BYTES_MAX) {
		pthread_mutex_lock(&heap->lock);
		heap->why[0] = '\0';
		ret = block_alloc(heap, whole, align, &at);
		if (ret != 0)
			snprintf(why, sizeof(why), "%s", heap->why[0] != '\0' ?
				 heap->why : strerror(-ret));
		pthread_mutex_unlock(&heap->lock);
	}
	if (ret != 0) {
		UNM_WARN(DOMAIN, FI_UNIMEM_MEM " alloc of %zu bytes of dmable "
			 "memory failed: %s", bytes, why);
		return -FI_ENOMEM;
	}
	*addr = (void *)at;
	return 0;
}

static int unm_mem_free(struct fid_domain *fid, void *addr)
{
	struct unm_heap *heap = heap_of(fid);
	size_t bytes;

	if (forked(heap))		/* it is not there, nor is the lock */
		return 0;
	pthread_mutex_lock(&heap->lock);
	bytes = block_free(heap, (uintptr_t)addr);
	if (bytes != 0) {
		heap->blocks--;
		heap->used -= bytes;
	}
	pthread_mutex_unlock(&heap->lock);
	if (bytes != 0)
		return 0;
	UNM_WARN(DOMAIN, FI_UNIMEM_MEM " free of %p: no block in use begins "
		 "there; was it freed before, or is it another domain's?",
		 addr);
	return -FI_EINVAL;
}

static int unm_mem_query(struct fid_domain *fid, const void *addr,
			 struct fi_unimem_mem_attr *attr)
{
	struct unm_heap *heap = heap_of(fid);
	struct unm_mem_seg *seg;
	struct fi_unimem_mem_attr found = { 0 };
	uintptr_t at = 0;

	if (forked(heap))
		return -FI_ENOENT;
	pthread_mutex_lock(&heap->lock);
	seg = unm_heap_find(heap, addr, 1);
	if (seg != NULL && seg->shared) {
		at = unm_span_find(&seg->span, (uintptr_t)addr, &found.bytes);
	} else if (seg != NULL &&
		   (uintptr_t)addr - seg->block < seg->block_bytes) {
		at = seg->block;
		found.bytes = seg->block_bytes;
	}
	if (at != 0) {
		found.addr = (void *)at;
		found.segment = (void *)seg->base;
		found.segment_bytes = seg->bytes;
	}
	pthread_mutex_unlock(&heap->lock);
	if (at == 0)
		return -FI_ENOENT;
	*attr = found;
	return 0;
}

static struct fi_unimem_mem_ops unm_ops_mem = {
	.size = sizeof(struct fi_unimem_mem_ops),
	.alloc = unm_mem_alloc,
	.free = unm_mem_free,
	.query = unm_mem_query,
};

/* ---- The heap -------------------------------------------------------- */

static struct unm_heap *heap_new(struct hal *hal)
{
	/* most of it is a table that is not touched */
	struct unm_heap *heap = calloc(1, sizeof(*heap));

	if (heap == NULL)
		return NULL;
	heap->hal = hal;
	heap->pid = getpid();
	pthread_mutex_init(&heap->lock, NULL);
	unm_list_init(&heap->shared);
	unm_list_init(&heap->spare);
	return heap;
}

int unm_mem_open(struct unm_domain *domain, uint64_t flags, void **ops)
{
	struct unm_heap *heap, *none = NULL;

	if (flags != 0)
		return -FI_EBADFLAGS;
	heap = atomic_load_explicit(&domain->heap, memory_order_relaxed);
	if (heap == NULL) {
		heap = heap_new(domain->hal);
		if (heap == NULL)
			return -FI_ENOMEM;
		/* pairs with the acquires in unm_mem_find() and heap_of() */
		if (!atomic_compare_exchange_strong_explicit(&domain->heap,
				&none, heap, memory_order_release,
				memory_order_relaxed)) {
			pthread_mutex_destroy(&heap->lock);
			free(heap);	/* another thread was first */
		}
	}
	*ops = &unm_ops_mem;
	return 0;
}

/* Nobody else uses the domain. In a forked child the HAL lets go of the copies
 * only, and the lock may be held by a thread that is not there. */
void unm_mem_close(struct unm_domain *domain)
{
	struct unm_heap *heap = atomic_load_explicit(&domain->heap,
						     memory_order_acquire);
	struct unm_list *node;

	if (heap == NULL)
		return;
	if (heap->blocks != 0 && !forked(heap))
		UNM_INFO(DOMAIN, "closed with %zu bytes of dmable memory in "
			 "%zu blocks that were not freed\n", heap->used,
			 heap->blocks);
	while (seg_count(heap) != 0)
		seg_delete(heap, atomic_load_explicit(
				&heap->view[0].row[0].seg,
				memory_order_relaxed));
	while ((node = unm_list_pop(&heap->spare)) != NULL)
		free(unm_container(node, struct unm_mem_seg, link));
	pthread_mutex_destroy(&heap->lock);
	free(heap);
}
