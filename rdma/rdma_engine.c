/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_engine.c - executes transfers on the HAL.
 *
 * A transfer of the HAL is between local memory and an imported region. If the
 * process has a pointer to one end of a transfer, and the engine can reach
 * that memory, the transfer is one transfer of the HAL. Otherwise it moves
 * through cells of a dmable bounce buffer: from the source to a cell
 * (RDMA_FILL), from the cell to the destination (RDMA_DRAIN), where memory of
 * the process is copied by the processor.
 *
 * A transfer has at most one operation of the HAL under way, whose token is
 * the id of the transfer. One that the HAL does not take now waits in
 * r->blocked.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "rdma_engine.h"
#include "rdma_segment.h"

#define COMPS		32		/* completions polled at once */
#define TRIES		32		/* blocked transfers tried at once */

/* ---- Ends of transfers ------------------------------------------------- */

static void cell_put(struct rdma *r, struct unim_dma_transfer *x)
{
	if (x->cell >= 0)
		r->cells_used &= ~(1u << x->cell);
	x->cell = -1;
}

/* End a transfer. error: 0 or -errno. */
static void finish(struct rdma *r, struct unim_dma_transfer *x, int error)
{
	cell_put(r, x);
	x->error = error;
	x->state = error == 0 ? DMA_COMPLETED : DMA_FAILED;
	if (x->src.buf != NULL)
		x->src.buf->transfers--;
	if (x->dst.buf != NULL)
		x->dst.buf->transfers--;
	x->src.buf = x->dst.buf = NULL;
	r->live--;
	unm_list_remove(&x->list);
	if (r->event_fd >= 0)
		unm_list_append(&r->ended, &x->ended);
	if (x->callback == NULL)
		return;
	unm_list_append(&r->callbacks, &x->callback->list);
	x->callback = NULL;
	pthread_cond_signal(&r->wake);
}

void rdma_engine_recycle(struct unim_dma_transfer *x)
{
	if (x->id == 0)
		unm_list_init(&x->ended);
	unm_list_remove(&x->ended);
	*x = (struct unim_dma_transfer){ .cell = -1 };
	unm_list_init(&x->list);
	unm_list_init(&x->ended);
}

/* ---- Operations of the HAL --------------------------------------------- */

static int check_buffer(const struct unim_dma_buffer *buf)
{
	return buf == NULL ? 0 : rdma_segment_check(buf->segment,
						    buf->address);
}

/* Are both buffers allocated? The service of a board clears the words of a
 * buffer's pages before it takes away their memory. So a buffer that is still
 * allocated after an operation of the HAL was so during the operation. */
static int check_ends(const struct unim_dma_transfer *x)
{
	int ret = check_buffer(x->src.buf);

	return ret != 0 ? ret : check_buffer(x->dst.buf);
}

static int post(struct rdma *r, struct unim_dma_transfer *x,
		enum hal_dma_op op, void *local, uint64_t len)
{
	const struct rdma_end *remote = op == HAL_DMA_PUT ? &x->dst : &x->src;
	const struct rdma_segment *s = remote->buf->segment;
	struct hal_dma dma = {
		.op = op, .rmem = s->rmem, .local = local, .len = len,
		.raddr = remote->buf->address - s->base + remote->off +
			 x->done,
	};

	if (!rdma_segment_alive(s))
		return -ECONNRESET;
	dma.peer = s->conn->peer;
	return hal_dma_post(r->port->hif, &dma, x->id);
}

/* The whole transfer by one of the HAL. -EINVAL: the engine does not reach the
 * memory of either end as local memory. */
static int post_direct(struct rdma *r, struct unim_dma_transfer *x)
{
	int ret = -EINVAL;

	if (x->src.mem != NULL && x->dst.buf != NULL)
		ret = post(r, x, HAL_DMA_PUT, x->src.mem, x->size);
	if (ret == -EINVAL && x->dst.mem != NULL && x->src.buf != NULL)
		ret = post(r, x, HAL_DMA_GET, x->dst.mem, x->size);
	return ret;
}

/* ---- Cells ------------------------------------------------------------- */

/* Take a cell. 0; -EAGAIN: all are in use; -ENOMEM. */
static int cell_take(struct rdma *r, struct unim_dma_transfer *x)
{
	void *at;
	int ret;

	if (r->bounce == NULL) {
		ret = hal_mem_alloc(r->hal, (int)r->node,
				    RDMA_CELLS * RDMA_CELL, &r->bounce, &at);
		if (ret != 0)
			return ret;
		r->cells = at;
	}
	for (int i = 0; i < RDMA_CELLS; i++)
		if (!(r->cells_used & 1u << i)) {
			r->cells_used |= 1u << i;
			x->cell = i;
			return 0;
		}
	return -EAGAIN;
}

static uint8_t *cell_of(const struct rdma *r, const struct unim_dma_transfer *x)
{
	return r->cells + (uint64_t)x->cell * RDMA_CELL;
}

/* Is this end memory of the program, and of no buffer? */
static bool is_memory(const struct rdma_end *end)
{
	return end->buf == NULL;
}

/* The bytes of the cell are at the destination. */
static void chunk_done(struct unim_dma_transfer *x)
{
	x->done += x->chunk;
	x->step = x->done < x->size ? RDMA_FILL : RDMA_NOTIFY;
}

/* ---- Steps ------------------------------------------------------------- */

static int step_begin(struct rdma *r, struct unim_dma_transfer *x)
{
	int ret;

	if (x->size == 0) {
		x->step = RDMA_NOTIFY;
		return 0;
	}
	ret = post_direct(r, x);
	if (ret == 0) {
		x->step = RDMA_DIRECT;
		r->direct++;
	}
	if (ret != -EINVAL)
		return ret;
	ret = cell_take(r, x);
	if (ret == 0) {
		x->step = RDMA_FILL;
		r->by_cells++;
	}
	return ret;
}

static int step_fill(struct rdma *r, struct unim_dma_transfer *x, bool *posted)
{
	uint64_t left = x->size - x->done;
	int ret = 0;

	x->chunk = left < RDMA_CELL ? left : RDMA_CELL;
	if (is_memory(&x->src)) {
		memcpy(cell_of(r, x), x->src.mem + x->done, (size_t)x->chunk);
		x->step = RDMA_DRAIN;
	} else {
		ret = post(r, x, HAL_DMA_GET, cell_of(r, x), x->chunk);
		*posted = ret == 0;
	}
	return ret;
}

static int step_drain(struct rdma *r, struct unim_dma_transfer *x,
		      bool *posted)
{
	int ret = 0;

	if (is_memory(&x->dst)) {
		memcpy(x->dst.mem + x->done, cell_of(r, x), (size_t)x->chunk);
		chunk_done(x);
	} else {
		ret = post(r, x, HAL_DMA_PUT, cell_of(r, x), x->chunk);
		*posted = ret == 0;
	}
	return ret;
}

/* The data are visible: the service of the destination adds 1 to the word. Its
 * processors, and whoever asks it, see the data if they see the sum. */
static int step_notify(struct rdma *r, struct unim_dma_transfer *x,
		       bool *posted)
{
	const struct unim_dma_buffer *buf = x->dst.buf;
	struct gsas_msg msg = { .opcode = GSAS_FAD64, .arg1 = 1 };
	int ret;

	cell_put(r, x);
	if (!x->notify) {
		finish(r, x, 0);
		*posted = true;
		return 0;
	}
	msg.address = buf->address + x->notify_off;
	ret = gsas_port_begin(buf->segment->conn, &msg, &x->request);
	if (ret == 0) {
		unm_list_append(&r->notifying, &x->list);
		*posted = true;
	}
	return ret;
}

/*
 * Continue a transfer, which is in no list, until an operation is under way or
 * the transfer has ended. Both buffers are checked before each step, so also
 * after each operation. Returns false if the transfer waits in r->blocked
 * instead, or, if it is not started yet, in no list.
 */
static bool advance(struct rdma *r, struct unim_dma_transfer *x)
{
	bool posted = false;
	int ret = 0;

	while (ret == 0 && !posted) {
		ret = check_ends(x);
		if (ret != 0)
			break;
		switch (x->step) {
		case RDMA_BEGIN:
			ret = step_begin(r, x);
			posted = x->step == RDMA_DIRECT;
			break;
		case RDMA_FILL:
			ret = step_fill(r, x, &posted);
			break;
		case RDMA_DRAIN:
			ret = step_drain(r, x, &posted);
			break;
		default:
			ret = step_notify(r, x, &posted);
			break;
		}
	}
	if (ret == -EAGAIN && x->state == DMA_PENDING &&
	    x->step == RDMA_BEGIN)
		return false;
	if (x->state == DMA_PENDING)
		x->state = DMA_STARTED;
	if (ret == -EAGAIN)
		unm_list_append(&r->blocked, &x->list);
	else if (ret != 0)
		finish(r, x, ret);
	return ret != -EAGAIN;
}

/* An operation of the HAL has ended. */
static void completed(struct rdma *r, const struct hal_dma_comp *comp)
{
	struct unim_dma_transfer *x = &r->slot[comp->token % RDMA_SLOTS];

	if (comp->status != 0) {
		finish(r, x, comp->status == -FI_ECANCELED ? -ECONNRESET :
		       comp->status);
		return;
	}
	if (x->step == RDMA_DIRECT)
		x->step = RDMA_NOTIFY;
	else if (x->step == RDMA_FILL)
		x->step = RDMA_DRAIN;
	else
		chunk_done(x);
	advance(r, x);
}

/* ---- Progress ---------------------------------------------------------- */

void rdma_engine_add(struct rdma *r, struct unim_dma_transfer *x)
{
	if (x->src.buf != NULL)
		x->src.buf->transfers++;
	if (x->dst.buf != NULL)
		x->dst.buf->transfers++;
	r->live++;
	unm_list_append(&r->pending, &x->list);
	if (r->threaded)
		pthread_cond_signal(&r->wake);
}

static struct unim_dma_transfer *first_of(struct unm_list *list)
{
	return unm_container(list->next, struct unim_dma_transfer, list);
}

/* Try to continue some of the blocked transfers, in turn: one that waits for a
 * stopped service does not delay transfers of other boards. */
static bool unblock(struct rdma *r)
{
	const struct unim_dma_transfer *first = NULL;
	bool some = false;

	for (int i = 0; i < TRIES && !unm_list_empty(&r->blocked); i++) {
		struct unim_dma_transfer *x = first_of(&r->blocked);

		if (x == first)
			break;
		unm_list_remove(&x->list);
		if (advance(r, x))
			some = true;
		else if (first == NULL)
			first = x;	/* now the last one in the list */
	}
	return some;
}

static bool start_pending(struct rdma *r)
{
	bool some = false;

	while (!unm_list_empty(&r->pending)) {
		struct unim_dma_transfer *x = first_of(&r->pending);

		unm_list_remove(&x->list);
		if (!advance(r, x)) {
			if (x->state == DMA_PENDING)
				unm_list_append(r->pending.next, &x->list);
			break;
		}
		some = true;
	}
	return some;
}

static bool poll_notified(struct rdma *r)
{
	bool some = false;

	unm_list_for_each_safe(pos, tmp, &r->notifying) {
		struct unim_dma_transfer *x =
			unm_container(pos, struct unim_dma_transfer, list);

		if (x->request.status == -FI_EINPROGRESS)
			continue;
		finish(r, x, x->request.status);
		some = true;
	}
	return some;
}

bool rdma_engine_progress(struct rdma *r)
{
	struct hal_dma_comp comp[COMPS];
	bool some = gsas_port_progress(r->port);
	int n;

	if (r->live == 0)
		return some;
	some |= unblock(r);
	some |= start_pending(r);
	n = hal_dma_poll(r->port->hif, comp, COMPS);
	for (int i = 0; i < n; i++)
		completed(r, &comp[i]);
	return poll_notified(r) || some || n > 0;
}

void rdma_engine_signal(struct rdma *r)
{
	bool on = !unm_list_empty(&r->ended) || (r->live > 0 && !r->threaded);
	uint64_t count = 1;
	ssize_t n;

	if (r->event_fd < 0 || on == r->event_on)
		return;
	r->event_on = on;
	/* neither call can fail: this is the only writer and reader */
	n = on ? write(r->event_fd, &count, sizeof(count)) :
		read(r->event_fd, &count, sizeof(count));
	(void)n;
}
