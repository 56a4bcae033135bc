/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_mem.c - the heap of dmable memory of a domain, fi_unimem_mem(3).
 *
 * unm_mem.h describes segments, blocks and the lookup without a lock. The HAL
 * allocates segments; util/unm_span.c divides them into blocks. All bookkeeping
 * is in private memory of the process, because peers can write all bytes of a
 * segment.
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
#include "util/unm_arena.h"
#include "util/unm_list.h"
#include "util/unm_span.h"

#define PAGE		((size_t)4096)	/* least alignment of a segment */
#define SEG_MIN		((size_t)4 << 20)	/* bytes of a shared segment */
#define SEG_MAX		((size_t)64 << 20)
#define BYTES_MAX	((size_t)1 << 46)	/* most bytes of a block */

/* ---- Log lines of the HAL -------------------------------------------- */

/*
 * The last line that the HAL logged while a thread allocated a segment. One
 * thread of the process at a time. The line is not in thread-local memory,
 * because a library that is loaded by dlopen() gets such memory from malloc(),
 * which may fail. The lock holds a process ID, as the HAL's locks do: a child
 * that was forked while another thread held the lock takes it over.
 */
static struct {
	_Atomic int holder;		/* lock: process ID of the holder, 0:
					 * free */
	_Atomic uintptr_t thread;	/* pthread_self() of the thread whose
					 * lines are kept, 0: none */
	char line[UNM_MEM_WHY];
} g_heard;

/* Keep what the HAL logs in this thread, until heard_end(). */
static void heard_begin(void)
{
	int self = (int)getpid(), seen = 0;

	/* pairs with the release in heard_end() */
	while (!atomic_compare_exchange_weak_explicit(&g_heard.holder, &seen,
			self, memory_order_acquire, memory_order_relaxed)) {
		if (seen != self)	/* free, or held by an ancestor */
			continue;
		sched_yield();
		seen = 0;
	}
	g_heard.line[0] = '\0';
	/* orders nothing: this thread reads its own store, and any other
	 * thread finds a value that is not its own */
	atomic_store_explicit(&g_heard.thread, (uintptr_t)pthread_self(),
			      memory_order_relaxed);
}

/* Copy the line to line, of UNM_MEM_WHY bytes; empty if there was none. */
static void heard_end(char *line)
{
	atomic_store_explicit(&g_heard.thread, 0, memory_order_relaxed);
	memcpy(line, g_heard.line, sizeof(g_heard.line));
	/* pairs with the acquire in heard_begin() */
	atomic_store_explicit(&g_heard.holder, 0, memory_order_release);
}

/* region_alloc() retries with a smaller segment, so one failure is no log line
 * of its own. */
bool unm_mem_hears(const char *line)
{
	/* orders nothing, see heard_begin() */
	if (atomic_load_explicit(&g_heard.thread, memory_order_relaxed) !=
	    (uintptr_t)pthread_self())
		return false;
	snprintf(g_heard.line, sizeof(g_heard.line), "%s", line);
	return true;
}

/* ---- The table of segments ------------------------------------------- */

/* These releases pair with the acquires in unm_mem_view_find(): a reader that
 * sees one of the stores also sees the store of turn before them. */
static void row_set(struct unm_mem_row *row, uintptr_t base, size_t bytes,
		    struct unm_mem_seg *seg)
{
	atomic_store_explicit(&row->base, base, memory_order_release);
	atomic_store_explicit(&row->bytes, bytes, memory_order_release);
	atomic_store_explicit(&row->seg, seg, memory_order_release);
}

static void row_copy(struct unm_mem_row *to, const struct unm_mem_row *from)
{
	/* only holders of the lock write rows, so these loads need no order */
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

/* Change the view that is not valid, make it the valid one by turn, then change
 * the other view. A reader that was still in the other view finds that turn has
 * changed, and repeats its lookup. */
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
	/* first of all: the kernel may give the address to anybody as soon as
	 * the HAL has freed the segment */
	unm_heap_remove(heap, seg);
	hal_mem_free(heap->hal, seg->mem);
	if (!seg->adopted)
		heap->bytes -= seg->bytes;
	if (seg->shared) {
		unm_list_remove(&seg->link);
		unm_span_destruct(&seg->span);
	}
	unm_list_append(&heap->spare, &seg->link);
}

/* Return the empty segment to the HAL, if there is one. */
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
 * Bytes of a new segment for a block that needs this many of them. Shared
 * segments grow with the heap, so that a large heap has few segments and a
 * small heap no large empty one.
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

/* Allocate a region of size bytes from the HAL. If there is not so much memory,
 * release the empty segment, then try smaller sizes down to need bytes. */
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

/* Create a segment for a block; a large block gets a segment of its own. */
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

/* Allocate a block from a shared segment; 0: none has free space. The empty
 * segment is the last choice, so that it can return to the HAL. */
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

/* Free the block that begins at addr. Returns its bytes; 0: no block does. */
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
		/* keep this segment instead: its memory was used last */
		empty_delete(heap);
		heap->empty = seg;
	}
	return bytes;
}

/* ---- fi_unimem_mem(3) ------------------------------------------------ */

static bool forked(const struct unm_heap *heap)
{
	/* pthread_atfork() is not used, because its handler would remain when
	 * the library is unloaded */
	return heap->pid != getpid();
}

static struct unm_heap *heap_of(struct fid_domain *fid)
{
	/* pairs with the release in unm_mem_open(), from which the caller has
	 * its table of functions */
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

	if (forked(heap))		/* the child has neither the memory nor
					 * a usable lock */
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
	/* most bytes are tables of segments, of which few pages are touched */
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

/* The segment holds no block of the heap: block_free() and unm_mem_query() find
 * none in it. */
static int segment_adopt(struct unm_heap *heap, const struct unm_arena *arena)
{
	struct unm_mem_seg *seg = calloc(1, sizeof(*seg));
	int ret;

	if (seg == NULL)
		return -FI_ENOMEM;
	unm_list_init(&seg->link);
	seg->base = (uintptr_t)arena->addr;
	seg->bytes = arena->bytes;
	ret = hal_mem_adopt(heap->hal, arena->fd, arena->addr, arena->bytes,
			    &seg->mem);
	if (ret != 0) {
		free(seg);
		return ret;
	}
	ret = hal_mem_key(heap->hal, seg->mem, &seg->key);
	if (ret != 0) {
		hal_mem_free(heap->hal, seg->mem);
		free(seg);
		return ret;
	}
	seg->adopted = true;
	unm_heap_insert(heap, seg);
	return 0;
}

void unm_mem_adopt(struct unm_domain *domain)
{
	struct unm_arena arena;
	void *ops;
	int ret;

	if (unimem_malloc_arena == NULL || unimem_malloc_arena(&arena) != 0)
		return;
	ret = unm_mem_open(domain, 0, &ops);
	if (ret == 0)
		ret = segment_adopt(atomic_load_explicit(&domain->heap,
				    memory_order_relaxed), &arena);
	if (ret == 0)
		UNM_INFO(DOMAIN, "large blocks of the program's heap are "
			 "dmable: libunimem-malloc.so has %zu bytes\n",
			 arena.bytes);
	else
		UNM_INFO(DOMAIN, "libunimem-malloc.so is of no use here: %s\n",
			 strerror(-ret));
}

void *unm_mem_take(struct unm_domain *domain, size_t bytes)
{
	struct unm_heap *heap;
	uintptr_t at = 0;
	void *ops;

	if (unm_mem_open(domain, 0, &ops) != 0)
		return NULL;
	/* pairs with the release in unm_mem_open() */
	heap = atomic_load_explicit(&domain->heap, memory_order_acquire);
	if (forked(heap))
		return NULL;
	pthread_mutex_lock(&heap->lock);
	if (block_alloc(heap, bytes, UNM_SPAN_UNIT, &at) != 0)
		at = 0;
	pthread_mutex_unlock(&heap->lock);
	return (void *)at;
}

void unm_mem_give(struct unm_domain *domain, void *block)
{
	/* relaxed: unm_mem_take() has loaded it for this caller */
	struct unm_heap *heap = atomic_load_explicit(&domain->heap,
						memory_order_relaxed);

	if (forked(heap))
		return;
	pthread_mutex_lock(&heap->lock);
	heap->used -= block_free(heap, (uintptr_t)block);
	heap->blocks--;
	pthread_mutex_unlock(&heap->lock);
}

/* No other thread uses the domain, so the lock is not taken. In a forked child
 * a thread of the parent may hold the lock for ever, and hal_mem_free()
 * releases only the child's own mappings. */
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
