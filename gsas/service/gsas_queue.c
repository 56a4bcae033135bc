/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_queue.c - the service's side of a queue: puts words in, manages buffers,
 * grants words to producers. common/gsas_queue_take.c takes words out.
 *
 * Processes of the job can write to the shared memory. This file reads nothing
 * but the head there, and checks that it is between its last value and the
 * tail. The service keeps the other values in private memory, so a process that
 * overwrites them in the shared memory harms its own job only.
 */
#include <stdlib.h>

#include <rdma/fi_errno.h>

#include "service/gsas_queue.h"
#include "util/unm_list.h"

/* Bytes of free buffers that keep their memory. When there are more than twice
 * as many, the memory of the oldest is returned to the system, of many buffers
 * at once. */
#define KEEP		(UINT32_C(32) << 10)
/* Most drained buffers that one update_taken() frees, so that it takes not
 * long. They have places for more words than are granted after it, so grants
 * never lack buffers. */
#define RECLAIM		512
_Static_assert(RECLAIM * GSAS_QUEUE_BUFFER_MIN > GSAS_QUEUE_WINDOW, "");

/*
 * The buffers in a page, or one buffer that is a page or larger: the unit in
 * which memory is returned to the system. A free buffer is allocated from a
 * warm slab, some of whose buffers are in use, else from an idle one, which has
 * memory and is not in use. A slab without memory is cold, or was never used.
 */
struct slab {
	struct unm_list list;		/* in queue->warm, idle or cold; or in
					 * none: all buffers are in use */
	uint64_t free;			/* free buffers, a bit each */
	bool idle;			/* in queue->idle */
};

/* A queue; only the thread of the service uses it. */
struct gsas_queue {
	struct gsas_queue_head *head;	/* shared memory */
	_Atomic uint64_t *words;	/* shared memory: first buffer */
	struct gsas_queue_shape shape;
	bool dead;			/* a process overwrote the head */

	/* numbers of words: taken out, when the head was last read; put in;
	 * the value of head->wanted */
	uint64_t taken, tail, wanted;
	_Atomic uint64_t *into;		/* buffer of the tail */

	/* Buffers that were ever entered (the first word was put in), and those
	 * of these that were left (drained and freed). The buffers in use are
	 * a list from first to last. */
	uint64_t entered, left;
	uint32_t first, last;
	uint32_t *next;			/* of the list, by buffer */

	struct gsas_queue_system system;
	bool starved;			/* the last give() found no memory */
	uint32_t stock;			/* free buffers that have memory */
	uint32_t per_slab, slab_bytes;
	uint64_t slab_free;		/* slab.free if all are free */
	struct slab *slab;
	uint32_t made, idle_count;	/* slabs that were ever used; in idle */
	struct unm_list warm, idle, cold;	/* idle: oldest first */

	uint32_t producers;
	uint32_t reserved;		/* words of all windows */
	uint32_t unused;		/* words that all producers may send */
	struct unm_list all;		/* producers */
	struct unm_list none;		/* producers that may send no word */
	struct unm_list few;		/* producers that may send less than
					 * half of their window */
	uint32_t none_count;
	struct unm_list to_notify;	/* producers in none to be notified why
					 * they may send no word */
	bool why;			/* starved, as the other producers in
					 * none were last notified of it */
};

/* A producer; gsas_producer_open() makes it, gsas_producer_close() frees it. */
struct gsas_producer {
	struct gsas_queue *queue;
	void *user;
	uint64_t granted;		/* words that may be sent since the
					 * open */
	uint32_t unused;		/* of these, not put in yet */
	uint32_t window;		/* largest value of unused */
	struct unm_list all;		/* in queue->all */
	struct unm_list wants;		/* in queue->none or few, or neither */
	struct unm_list to_notify;	/* in queue->to_notify, or in no list */
};

/* ---- Buffers ------------------------------------------------------------- */

static struct slab *slab_of_list(struct unm_list *list)
{
	return unm_container(list, struct slab, list);
}

/* Number of idle slabs that keep their memory: KEEP, and enough for the words
 * that producers may send. */
static uint32_t kept(const struct gsas_queue *q)
{
	uint32_t need = (q->unused >> q->shape.shift) + 2;

	return KEEP / q->slab_bytes + need / q->per_slab + 1;
}

/* Return the memory of the oldest idle slab to the system, and of as many
 * adjacent idle slabs as kept() allows. */
static void give_back_oldest(struct gsas_queue *q)
{
	struct slab *oldest = slab_of_list(q->idle.next);
	struct slab *lo = oldest, *hi = oldest + 1;
	uint32_t max = q->idle_count - kept(q);

	while (lo > q->slab && lo[-1].idle && hi - lo < max)
		lo--;
	while (hi < q->slab + q->made && hi->idle && hi - lo < max)
		hi++;
	for (struct slab *s = lo; s < hi; s++) {
		unm_list_remove(&s->list);
		unm_list_append(&q->cold, &s->list);
		s->idle = false;
		q->idle_count--;
		q->stock -= q->per_slab;
	}
	q->system.give_back((char *)q->words + (uint64_t)(lo - q->slab) *
		     q->slab_bytes, (uint64_t)(hi - lo) * q->slab_bytes);
}

static void buffer_free(struct gsas_queue *q, uint32_t buffer)
{
	struct slab *s = &q->slab[buffer / q->per_slab];

	if (s->free == 0)
		unm_list_append(&q->warm, &s->list);
	s->free |= UINT64_C(1) << buffer % q->per_slab;
	q->stock++;
	if (s->free != q->slab_free)
		return;
	unm_list_remove(&s->list);
	unm_list_append(&q->idle, &s->list);
	s->idle = true;
	q->idle_count++;
	if (q->system.give_back == NULL || q->idle_count <= 2 * kept(q))
		return;
	while (q->idle_count > kept(q))
		give_back_oldest(q);
}

/* Is there a slab without memory? */
static bool has_cold(const struct gsas_queue *q)
{
	return !unm_list_empty(&q->cold) ||
	       q->made < q->shape.buffers / q->per_slab;
}

/* Get memory for one more slab. false: the system has none. */
static bool slab_ready(struct gsas_queue *q)
{
	struct unm_list *list = q->cold.next;
	struct slab *s;

	s = unm_list_empty(&q->cold) ? &q->slab[q->made] : slab_of_list(list);
	if (q->system.populate != NULL &&
	    !q->system.populate(q->system.ctx, (char *)q->words +
				(uint64_t)(s - q->slab) * q->slab_bytes,
				q->slab_bytes))
		return false;
	if (s == &q->slab[q->made]) {
		q->made++;
		s->free = q->slab_free;
		unm_list_init(&s->list);
	}
	unm_list_remove(&s->list);
	unm_list_append(&q->idle, &s->list);
	s->idle = true;
	q->idle_count++;
	q->stock += q->per_slab;
	return true;
}

/* Allocate a buffer. There is a free one with memory, because stock() was
 * called before the word was granted. */
static uint32_t buffer_alloc(struct gsas_queue *q)
{
	struct slab *s;
	uint32_t bit;

	if (!unm_list_empty(&q->warm)) {
		s = slab_of_list(q->warm.prev);
	} else {
		s = slab_of_list(q->idle.prev);
		unm_list_remove(&s->list);
		s->idle = false;
		q->idle_count--;
		unm_list_append(&q->warm, &s->list);
	}
	bit = (uint32_t)__builtin_ctzll(s->free);
	s->free &= ~(UINT64_C(1) << bit);
	q->stock--;
	if (s->free == 0)
		unm_list_remove(&s->list);
	return (uint32_t)(s - q->slab) * q->per_slab + bit;
}

/* Free drained buffers, which the head has passed. */
static void reclaim(struct gsas_queue *q)
{
	uint64_t behind = q->taken >> q->shape.shift;

	for (int n = 0; q->left < behind && n < RECLAIM; q->left++, n++) {
		uint32_t buffer = q->first;

		q->first = q->next[buffer];
		buffer_free(q, buffer);
	}
}

/* Allocate a buffer, because the next word is the first of a buffer. */
static void enter_buffer(struct gsas_queue *q)
{
	uint32_t buffer = buffer_alloc(q);

	if (q->left == q->entered)
		q->first = buffer;
	else
		q->next[q->last] = buffer;
	q->last = buffer;
	q->into = q->words + ((uint64_t)buffer << q->shape.shift);
	/* relaxed: takers acquire the tail, which is released later */
	atomic_store_explicit(&q->head->directory[
		q->entered++ & (q->shape.entries - 1)], buffer,
		memory_order_relaxed);
}

/* ---- The head ------------------------------------------------------------ */

static uint64_t inside(const struct gsas_queue *q)
{
	return q->tail - q->taken;
}

/* Check and store a head that was loaded. The load is an acquire that pairs
 * with the release in gsas_queue_take(): takers have read the words before the
 * service reuses their buffer. */
static void accept_head(struct gsas_queue *q, uint64_t head)
{
	if (head - q->taken > inside(q))
		q->dead = true;
	else
		q->taken = head;
}

static void update_taken(struct gsas_queue *q)
{
	if (q->dead)
		return;
	accept_head(q, atomic_load_explicit(&q->head->head,
					    memory_order_acquire));
	if (!q->dead)
		reclaim(q);
}

/*
 * Request a notification when so many more words were taken out. A taker stores
 * the head, then loads wanted; the service stores wanted, then loads the head.
 * All are sequentially consistent, so the service reads the new head or the
 * taker reads wanted.
 */
static void want(struct gsas_queue *q, uint64_t words)
{
	q->wanted = q->taken + words;
	atomic_store(&q->head->wanted, q->wanted);
	accept_head(q, atomic_load(&q->head->head));
}

/* ---- Windows -------------------------------------------------------------
 *
 * A producer has a window, fixed when it opens the queue: the number of words
 * that it may have sent and that were not acknowledged. An acknowledgement is
 * the number of words that the producer may send since the open. It is sent
 * when less than half of the window is left. Words in the queue and words that
 * producers may send are at most the quota, so each accepted word has a place.
 * All windows together are at most the quota, so each producer gets its whole
 * window again when all words were taken out, even if other producers do not
 * use theirs.
 *
 * Producers that may send no word are served first, in turn. If there is no
 * place or no memory for one more word, a producer is notified once, and again
 * when the other reason applies.
 */

/* Places that are neither taken by words nor granted. */
static uint32_t available(const struct gsas_queue *q)
{
	return q->shape.quota - (uint32_t)inside(q) - q->unused;
}

/*
 * The window of one more producer; 0: there are too many producers. Each window
 * has one word. The words beyond the first are at most half of the quota in
 * all. A new window takes at most a quarter of what is left of that half, so
 * that later producers get more than one word too.
 */
static uint32_t window_of(const struct gsas_queue *q)
{
	uint32_t left = q->shape.quota - q->reserved, most;
	uint32_t beyond = q->reserved - q->producers;

	most = q->shape.quota / 2 > beyond ?
		(q->shape.quota / 2 - beyond) / 4 : 0;
	most = 1 + (most < GSAS_QUEUE_WINDOW ? most : GSAS_QUEUE_WINDOW - 1);
	return most < left ? most : left;
}

/* Get memory for so many more words, before they are granted, so that each
 * granted word has memory. false: the system has none. */
static bool stock(struct gsas_queue *q, uint32_t words)
{
	uint32_t need = ((q->unused + words) >> q->shape.shift) + 2;

	while (q->stock < need && has_cold(q))
		if (!slab_ready(q))
			return false;
	return true;
}

static void unlist(struct gsas_producer *p)
{
	if (p->unused == 0 && !unm_list_empty(&p->wants))
		p->queue->none_count--;
	unm_list_remove(&p->wants);
	unm_list_remove(&p->to_notify);
}

/* Grant words to a producer. false: there is no memory for them. Words for a
 * dead queue need no memory, because they will be refused. */
static bool give(struct gsas_producer *p, uint32_t words)
{
	struct gsas_queue *q = p->queue;

	q->starved = !q->dead && !stock(q, words);
	if (q->starved)
		return false;
	unlist(p);
	q->unused += words;
	p->unused += words;
	p->granted += words;
	return true;
}

static void list_none(struct gsas_producer *p)
{
	unm_list_remove(&p->wants);
	unm_list_append(&p->queue->none, &p->wants);
	p->queue->none_count++;
}

/* A producer has sent a word. */
static void use(struct gsas_producer *p)
{
	struct gsas_queue *q = p->queue;

	p->unused--;
	q->unused--;
	if (p->unused == 0) {
		list_none(p);
		unm_list_append(&q->to_notify, &p->to_notify);
	} else if (2 * p->unused < p->window && unm_list_empty(&p->wants)) {
		unm_list_append(&q->few, &p->wants);
	}
}

static struct gsas_producer *of_wants(struct unm_list *list)
{
	return unm_container(list, struct gsas_producer, wants);
}

static struct gsas_producer *grant_none(struct gsas_queue *q)
{
	struct gsas_producer *p = of_wants(q->none.next);
	uint32_t words = available(q);

	if (words == 0) {
		q->starved = false;	/* the reason is the quota */
		return NULL;
	}
	words = words < q->none_count ? 1 : words / q->none_count;
	return give(p, words < p->window ? words : p->window) ? p : NULL;
}

static struct gsas_producer *grant_few(struct gsas_queue *q)
{
	struct gsas_producer *p;

	if (unm_list_empty(&q->few))
		return NULL;
	p = of_wants(q->few.next);
	return available(q) >= p->window - p->unused &&
		give(p, p->window - p->unused) ? p : NULL;
}

/* Grant words of a dead queue. They will be refused, so that no producer waits
 * for ever. */
static struct gsas_producer *grant_dead(struct gsas_queue *q)
{
	struct unm_list *list = unm_list_empty(&q->none) ? &q->few : &q->none;
	struct gsas_producer *p;

	if (unm_list_empty(list))
		return NULL;
	p = of_wants(list->next);
	return give(p, p->window - p->unused) ? p : NULL;
}

static struct gsas_producer *grant(struct gsas_queue *q)
{
	if (q->dead)
		return grant_dead(q);
	return unm_list_empty(&q->none) ? grant_few(q) : grant_none(q);
}

/* If the reason has changed between "full" and "no memory", notify all
 * producers that may send no word again. */
static void update_why(struct gsas_queue *q)
{
	if (q->why == q->starved)
		return;
	q->why = q->starved;
	unm_list_for_each(pos, &q->none) {
		struct gsas_producer *p = of_wants(pos);

		unm_list_remove(&p->to_notify);
		unm_list_append(&q->to_notify, &p->to_notify);
	}
}

/* The next producer to be notified that it may send no word. */
static struct gsas_producer *full(struct gsas_queue *q)
{
	struct unm_list *list;

	update_why(q);
	list = unm_list_pop(&q->to_notify);

	return list == NULL ? NULL :
		unm_container(list, struct gsas_producer, to_notify);
}

/*
 * Request a notification of takers. If producers wait, after several words if
 * so many are in the queue, because a message for each word would cost more
 * than the word. If none waits, but the queue has much memory, after all words:
 * then the memory can be returned to the system.
 */
static void want_more(struct gsas_queue *q)
{
	uint64_t words = inside(q) / 2;

	if (!unm_list_empty(&q->none)) {
		if (words > GSAS_QUEUE_WINDOW / 2)
			words = GSAS_QUEUE_WINDOW / 2;
		/* A notification that is still to come is not requested
		 * again: the taker that clears wanted has moved the head to
		 * it or beyond. */
		if (q->wanted <= q->taken ||
		    q->wanted - q->taken > GSAS_QUEUE_WINDOW / 2)
			want(q, words > 0 ? words : 1);
	} else if (q->system.give_back != NULL && q->wanted <= q->taken &&
		   (q->entered - q->left) << q->shape.shift >
		   2 * KEEP / sizeof(uint64_t)) {
		want(q, inside(q));
	}
}

struct gsas_producer *gsas_queue_grant(struct gsas_queue *queue, bool *waits)
{
	struct gsas_producer *p;

	update_taken(queue);
	p = grant(queue);
	if (p == NULL && !queue->dead) {
		want_more(queue);
		p = grant(queue);
	}
	if (p == NULL)
		p = full(queue);
	*waits = !queue->dead &&
		 (!unm_list_empty(&queue->none) ||
		  queue->left < queue->taken >> queue->shape.shift);
	return p;
}

/* ---- Producers ----------------------------------------------------------- */

enum gsas_error gsas_producer_open(struct gsas_queue *queue, void *user,
				struct gsas_producer **producer)
{
	struct gsas_producer *p;
	uint32_t window;

	update_taken(queue);
	if (queue->dead)
		return GSAS_E_STATE;
	window = window_of(queue);
	if (window == 0)
		return GSAS_E_QUOTA;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return GSAS_E_MEMORY;
	p->queue = queue;
	p->user = user;
	p->window = window;
	queue->producers++;
	queue->reserved += window;
	unm_list_append(&queue->all, &p->all);
	unm_list_init(&p->wants);
	unm_list_init(&p->to_notify);
	list_none(p);
	if (queue->none_count == 1)
		(void)grant_none(queue);
	/* the producer, or producers before it, wait for memory */
	if (p->unused == 0 && queue->starved) {
		gsas_producer_close(p);
		return GSAS_E_MEMORY;
	}
	update_why(queue);	/* a new producer assumes that it is full */
	*producer = p;
	return GSAS_OK;
}

void gsas_producer_close(struct gsas_producer *producer)
{
	struct gsas_queue *q = producer->queue;

	unlist(producer);
	q->unused -= producer->unused;
	q->reserved -= producer->window;
	q->producers--;
	unm_list_remove(&producer->all);
	free(producer);
}

uint64_t gsas_producer_granted(const struct gsas_producer *producer)
{
	return producer->granted;
}

bool gsas_producer_full(const struct gsas_producer *producer)
{
	return producer->unused == 0;
}

bool gsas_queue_starved(const struct gsas_queue *queue)
{
	return queue->starved;
}

void *gsas_producer_user(const struct gsas_producer *producer)
{
	return producer->user;
}

enum gsas_error gsas_queue_put(struct gsas_producer *producer, uint64_t word)
{
	struct gsas_queue *q = producer->queue;
	uint64_t in = q->tail & ((UINT64_C(1) << q->shape.shift) - 1);

	if (producer->unused == 0)
		return GSAS_E_AGAIN;
	use(producer);
	if (q->dead)
		return GSAS_E_STATE;
	if (in == 0)
		enter_buffer(q);
	atomic_store_explicit(&q->into[in], word, memory_order_relaxed);
	q->tail++;
	/* pairs with the acquire in gsas_queue_take() */
	atomic_store_explicit(&q->head->tail, q->tail, memory_order_release);
	return GSAS_OK;
}

/* ---- Queues -------------------------------------------------------------- */

int gsas_queue_new(void *memory, uint32_t quota, uint32_t buffer,
		   const struct gsas_queue_system *system,
		   struct gsas_queue **queue)
{
	struct gsas_queue *q;
	uint32_t size;

	q = calloc(1, sizeof(*q));
	if (q == NULL)
		return -FI_ENOMEM;
	if (!gsas_queue_shape(quota, buffer, &q->shape)) {
		free(q);
		return -FI_EINVAL;
	}
	size = buffer * (uint32_t)sizeof(uint64_t);
	q->per_slab = size < GSAS_PAGE_BYTES ? GSAS_PAGE_BYTES / size : 1;
	q->slab_bytes = q->per_slab * size;
	q->slab_free = UINT64_MAX >> (64 - q->per_slab);
	/* large arrays get memory from the system at first use only */
	q->next = calloc(q->shape.buffers, sizeof(*q->next));
	q->slab = calloc(q->shape.buffers / q->per_slab, sizeof(*q->slab));
	if (q->next == NULL || q->slab == NULL) {
		free(q->next);
		free(q->slab);
		free(q);
		return -FI_ENOMEM;
	}
	if (system != NULL)
		q->system = *system;
	unm_list_init(&q->warm);
	unm_list_init(&q->idle);
	unm_list_init(&q->cold);
	unm_list_init(&q->all);
	unm_list_init(&q->none);
	unm_list_init(&q->few);
	unm_list_init(&q->to_notify);
	q->head = memory;
	q->words = (void *)((char *)memory + q->shape.words);
	q->head->quota = quota;
	q->head->buffer = buffer;
	q->head->magic = GSAS_QUEUE_MAGIC;
	*queue = q;
	return 0;
}

void gsas_queue_free(struct gsas_queue *queue)
{
	while (!unm_list_empty(&queue->all))
		gsas_producer_close(unm_container(queue->all.next,
					       struct gsas_producer, all));
	free(queue->next);
	free(queue->slab);
	free(queue);
}

uint64_t gsas_queue_words(const struct gsas_queue *queue)
{
	uint64_t head = atomic_load_explicit(&queue->head->head,
					     memory_order_relaxed);

	return head - queue->taken <= inside(queue) ? queue->tail - head : 0;
}
