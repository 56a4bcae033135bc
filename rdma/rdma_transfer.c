/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_transfer.c - the calls on transfers: submit, state, waits, event fd.
 * rdma_engine.c executes transfers.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>

#include "rdma_buffer.h"
#include "rdma_engine.h"
#include "rdma_lib.h"
#include "rdma_segment.h"
#include "rdma_thread.h"

#define FULL	1			/* all slots are busy */

/* ---- Ids --------------------------------------------------------------- */

/* Get a block of ids from the service of the board, which gives them to nobody
 * else. */
static int more_ids(struct rdma *r)
{
	struct gsas_msg msg = { .opcode = GSAS_NUMBERS };
	struct gsas_request request;
	struct gsas_conn *conn;
	int ret = gsas_port_conn(r->port, (int)r->node, &conn);

	if (ret == 0)
		ret = gsas_port_ask(conn, &msg, &request);
	if (ret == 0 && (request.result == 0 ||
			 request.result % RDMA_SLOTS != 0))
		ret = -EPROTO;
	if (ret != 0)
		return ret;
	r->next_id = request.result;
	r->ids_left = RDMA_SLOTS;
	return 0;
}

/* The transfer with an id; NULL: it is not known (any more). */
static struct unim_dma_transfer *find(struct rdma *r, uint64_t id)
{
	struct unim_dma_transfer *x = &r->slot[id % RDMA_SLOTS];

	return id != 0 && x->id == id ? x : NULL;
}

static bool has_ended(const struct unim_dma_transfer *x)
{
	return x->state == DMA_COMPLETED || x->state == DMA_FAILED;
}

/* ---- Submission -------------------------------------------------------- */

/* Is the end in its buffer? Fill in *end. */
static int end_init(struct rdma_end *end, struct unim_dma_buffer *buf,
		    void *mem, uint64_t off, uint64_t size)
{
	if (buf == NULL) {
		if ((mem == NULL && size != 0) ||
		    off > UINTPTR_MAX - (uintptr_t)mem ||
		    size > UINTPTR_MAX - (uintptr_t)mem - off)
			return -EINVAL;
		*end = (struct rdma_end){ .mem = (uint8_t *)mem + off };
		return 0;
	}
	if (off > buf->bytes || size > buf->bytes - off)
		return -EINVAL;
	*end = (struct rdma_end){
		.buf = buf, .off = off, .mem = rdma_buffer_at(buf, off),
	};
	return 0;
}

static int check(const struct unim_dma_request *q, struct rdma_end *src,
		 struct rdma_end *dst)
{
	int ret = -EINVAL;

	if (q->src == NULL && q->dst == NULL)
		return ret;
	if (q->notify && (q->dst == NULL || q->notify_off % 8 != 0 ||
			  q->dst->bytes < 8 ||
			  q->notify_off > q->dst->bytes - 8))
		return ret;
	ret = end_init(src, q->src, q->src_mem, q->src_off, q->size);
	if (ret == 0)
		ret = end_init(dst, q->dst, q->dst_mem, q->dst_off, q->size);
	return ret;
}

/* Find the next id whose slot is free; a transfer that does not end keeps its
 * slot only. 0; FULL: all slots are busy; errors of more_ids(). */
static int find_id(struct rdma *r, struct unim_dma_transfer **slot)
{
	int ret;

	if (r->live == RDMA_SLOTS)
		return FULL;
	for (;;) {
		if (r->ids_left == 0) {
			ret = more_ids(r);
			if (ret != 0)
				return ret;
		}
		*slot = &r->slot[r->next_id % RDMA_SLOTS];
		if ((*slot)->id == 0 || has_ended(*slot))
			return 0;
		r->next_id++;
		r->ids_left--;
	}
}

/* Make the call-back of a request; NULL: it has none. */
static int callback_new(struct rdma *r, const struct unim_dma_request *q,
			struct rdma_callback **callback)
{
	int ret;

	*callback = NULL;
	if (q->comp_cb == NULL)
		return 0;
	ret = rdma_thread_begin(r);
	if (ret != 0)
		return ret;
	*callback = malloc(sizeof(**callback));
	if (*callback == NULL)
		return -ENOMEM;
	(*callback)->comp_cb = q->comp_cb;
	(*callback)->cb_arg = q->cb_arg;
	unm_list_init(&(*callback)->list);
	return 0;
}

/* 0; FULL; -errno */
static int submit(struct rdma *r, const struct unim_dma_request *q,
		  uint64_t *id)
{
	struct rdma_callback *callback = NULL;
	struct unim_dma_transfer *x = NULL;
	struct rdma_end src, dst;
	int ret = check(q, &src, &dst);

	if (ret == 0)
		ret = find_id(r, &x);
	if (ret == 0)
		ret = callback_new(r, q, &callback);
	if (ret != 0)
		return ret;
	rdma_engine_recycle(x);
	x->id = r->next_id++;
	r->ids_left--;
	x->src = src;
	x->dst = dst;
	x->size = q->size;
	x->callback = callback;
	x->notify = q->notify != 0;
	x->notify_off = q->notify_off;
	*id = x->id;
	rdma_engine_add(r, x);
	rdma_engine_progress(r);
	return 0;
}

/* As unim_dma_submit(), but FULL if all slots are busy. */
static int try_submit(const struct unim_dma_request *request, uint64_t *id)
{
	struct rdma *r;
	int ret;

	if (request == NULL || id == NULL)
		return -EINVAL;
	r = rdma_enter();
	if (r == NULL)
		return -EINVAL;
	ret = submit(r, request, id);
	if (ret == FULL)
		rdma_engine_progress(r);
	rdma_leave(r);
	return ret;
}

int unim_dma_submit(const struct unim_dma_request *request,
		    unim_dma_transfer_id_t *id)
{
	int ret = try_submit(request, id);

	return ret == FULL ? -EAGAIN : ret;
}

/* The published calls wait for a slot. They make progress meanwhile, also in a
 * call-back, so a slot becomes free. */
static unim_dma_transfer_id_t submit_or_0(const struct unim_dma_request *q)
{
	unim_dma_transfer_id_t id = 0;
	struct rdma_wait wait = { 0 };
	int ret;

	while ((ret = try_submit(q, &id)) == FULL)
		(void)rdma_wait_step(&wait, -1);
	return rdma_fail(ret) == 0 ? id : 0;
}

unim_dma_transfer_id_t
unim_dma_submit_transfer(unim_dma_buffer_t *src, unim_dma_buffer_t *dst,
			 uint64_t src_off, uint64_t dst_off, uint64_t size,
			 unim_comp_cb_t comp_cb, void *cb_arg)
{
	struct unim_dma_request q = {
		.src = src, .dst = dst, .src_off = src_off,
		.dst_off = dst_off, .size = size, .comp_cb = comp_cb,
		.cb_arg = cb_arg,
	};

	if (src != NULL && dst != NULL)
		return submit_or_0(&q);
	rdma_fail(-EINVAL);
	return 0;
}

unim_dma_transfer_id_t
unim_dma_submit_transfer_from_mem(void *src, unim_dma_buffer_t *dst,
				  uint64_t src_off, uint64_t dst_off,
				  uint64_t size, unim_comp_cb_t comp_cb,
				  void *cb_arg)
{
	struct unim_dma_request q = {
		.src_mem = src, .dst = dst, .src_off = src_off,
		.dst_off = dst_off, .size = size, .comp_cb = comp_cb,
		.cb_arg = cb_arg,
	};

	return submit_or_0(&q);
}

unim_dma_transfer_id_t
unim_dma_submit_transfer_to_mem(unim_dma_buffer_t *src, void *dst,
				uint64_t src_off, uint64_t dst_off,
				uint64_t size, unim_comp_cb_t comp_cb,
				void *cb_arg)
{
	struct unim_dma_request q = {
		.src = src, .dst_mem = dst, .src_off = src_off,
		.dst_off = dst_off, .size = size, .comp_cb = comp_cb,
		.cb_arg = cb_arg,
	};

	return submit_or_0(&q);
}

/* ---- State ------------------------------------------------------------- */

/* The state of a transfer; *error: why it failed, else 0. */
static int state_of(uint64_t id, unim_dma_status_t *status, int *error)
{
	struct rdma *r = rdma_enter();
	const struct unim_dma_transfer *x;

	if (r == NULL)
		return -EINVAL;
	x = find(r, id);
	if (x != NULL && !has_ended(x))
		rdma_engine_progress(r);
	if (x != NULL) {
		*status = x->state;
		*error = x->error;
	}
	rdma_leave(r);
	return x != NULL ? 0 : -ENOENT;
}

int unim_dma_test(unim_dma_transfer_id_t id, unim_dma_status_t *status)
{
	int error;

	if (status == NULL)
		return -EINVAL;
	return state_of(id, status, &error);
}

unim_dma_status_t unim_dma_status(unim_dma_transfer_id_t tID)
{
	unim_dma_status_t status = DMA_FAILED;
	int error = 0, ret = state_of(tID, &status, &error);

	rdma_fail(ret != 0 ? ret : error);
	return status;
}

int unim_dma_wait(unim_dma_transfer_id_t id, int timeout_ms)
{
	struct rdma_wait wait = { 0 };
	unim_dma_status_t status;
	int error, over = 0, ret;

	/* the last step of the wait may have ended the transfer */
	for (;;) {
		ret = state_of(id, &status, &error);
		if (ret != 0 || status == DMA_COMPLETED ||
		    status == DMA_FAILED)
			return ret != 0 ? ret : error;
		if (over != 0)
			return over;
		over = rdma_wait_step(&wait, timeout_ms);
	}
}

/* ---- Events ------------------------------------------------------------ */

int unim_dma_event_fd(void)
{
	struct rdma *r = rdma_enter();
	int fd;

	if (r == NULL)
		return -EINVAL;
	if (r->event_fd < 0)
		r->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = r->event_fd >= 0 ? r->event_fd : -errno;
	rdma_leave(r);
	return fd;
}

int unim_dma_poll(unim_dma_transfer_id_t *ids, int max)
{
	struct unm_list *pos;
	struct rdma *r;
	int n = 0;

	if (ids == NULL && max > 0)
		return -EINVAL;
	r = rdma_enter();
	if (r == NULL)
		return -EINVAL;
	rdma_engine_progress(r);
	while (n < max && (pos = unm_list_pop(&r->ended)) != NULL)
		ids[n++] = unm_container(pos, struct unim_dma_transfer,
					 ended)->id;
	rdma_leave(r);
	return n;
}

/* ---- Notification ------------------------------------------------------ */

static int ask_word(struct rdma *r, uint64_t address, uint64_t *word)
{
	struct gsas_msg msg = { .opcode = GSAS_READ64, .address = address };
	struct gsas_request request;
	struct gsas_conn *conn;
	int ret = gsas_port_conn(r->port, gsas_board_of(address), &conn);

	if (ret == 0)
		ret = gsas_port_ask(conn, &msg, &request);
	if (ret == 0)
		*word = request.result;
	return ret;
}

/* The word of a buffer: by the pointer, else from the service. */
static int read_word(struct unim_dma_buffer *buf, uint64_t off, uint64_t *word)
{
	const uint8_t *at = rdma_buffer_at(buf, off);
	struct rdma *r = rdma_enter();
	int ret;

	if (r == NULL)
		return -EINVAL;
	ret = rdma_segment_check(buf->segment, buf->address);
	if (ret == 0 && at == NULL)
		ret = ask_word(r, buf->address + off, word);
	else if (ret == 0)
		/* pairs with the addition by the service (gsas_op.c), which
		 * comes after the data are visible */
		*word = atomic_load_explicit((const _Atomic uint64_t *)at,
					     memory_order_acquire);
	rdma_leave(r);
	return ret;
}

int unim_dma_wait_notify(unim_dma_buffer_t *buf, uint64_t off, uint64_t value,
			 int timeout_ms)
{
	struct rdma_wait wait = { 0 };
	uint64_t word = 0;
	int over = 0, ret;

	if (buf == NULL || off % 8 != 0 || off > buf->bytes - 8)
		return -EINVAL;
	for (;;) {
		ret = read_word(buf, off, &word);
		if (ret != 0)
			return ret;
		if ((int64_t)(word - value) >= 0)
			return 0;
		if (over != 0)
			return over;
		over = rdma_wait_step(&wait, timeout_ms);
	}
}
