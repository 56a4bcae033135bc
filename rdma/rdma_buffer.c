/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_buffer.c - buffers: allocate, find by id, free, translate addresses.
 *
 * The service of a board is its remote allocator [D 3.3]. A buffer is memory of
 * the global address space, and its id is its address there. The service knows
 * the process that owns a buffer, and frees it when that process ends.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "rdma_buffer.h"
#include "rdma_lib.h"
#include "rdma_near.h"
#include "rdma_segment.h"

/* ---- Requests to the service ------------------------------------------- */

static int ask_alloc(struct rdma *r, uint32_t board, uint64_t bytes,
		     uint64_t *address)
{
	struct gsas_msg msg = {
		.opcode = GSAS_ALLOC,
		.arg1 = bytes / GSAS_PAGE_BYTES,
		.arg2 = GSAS_MODE_JOB | GSAS_ATTR_MAPPED | GSAS_ATTR_OWNED |
			(uint64_t)r->pid << 32,
	};
	struct gsas_request request;
	struct gsas_conn *conn;
	int ret = gsas_port_conn(r->port, (int)board, &conn);

	if (ret == 0)
		ret = gsas_port_ask(conn, &msg, &request);
	if (ret == 0)
		*address = request.result;
	return ret;
}

/* Why there is no region: the error of any request with the address. */
static int ask_why(struct gsas_conn *conn, uint64_t address)
{
	struct gsas_msg msg = { .opcode = GSAS_READ8, .address = address };
	struct gsas_request request;
	int ret = gsas_port_ask(conn, &msg, &request);

	return ret != 0 ? ret : -EFAULT;
}

/* The number of pages of the region that begins at an address. */
static int ask_pages(struct gsas_conn *conn, uint64_t address, uint64_t *pages)
{
	struct gsas_list_entry entry;
	struct gsas_msg msg = {
		.opcode = GSAS_LIST, .address = address, .arg1 = 1,
		.into = &entry, .len = sizeof(entry),
	};
	struct gsas_request request;
	int ret = gsas_port_ask(conn, &msg, &request);

	if (ret != 0)
		return ret;
	if (request.result != 1 || entry.address != address)
		return ask_why(conn, address);
	*pages = entry.pages;
	return 0;
}

/* Free memory of the service; if it has ended, the memory is gone already. */
static void ask_free(struct rdma *r, uint64_t address)
{
	struct gsas_msg msg = { .opcode = GSAS_FREE, .arg1 = address };
	struct gsas_request request;
	struct gsas_conn *conn;

	if (gsas_port_conn(r->port, gsas_board_of(address), &conn) == 0)
		(void)gsas_port_ask(conn, &msg, &request);
}

/* ---- Buffers ----------------------------------------------------------- */

static struct unim_dma_buffer *buffer_new(struct rdma *r,
					  struct rdma_segment *segment,
					  uint64_t address, uint64_t bytes)
{
	struct unim_dma_buffer *buf = calloc(1, sizeof(*buf));

	if (buf == NULL)
		return NULL;
	buf->segment = segment;
	buf->address = address;
	buf->bytes = bytes;
	unm_list_append(&r->buffers, &buf->list);
	return buf;
}

static int buffer_alloc(struct rdma *r, uint32_t board, uint64_t bytes,
			struct unim_dma_buffer **buf)
{
	struct rdma_segment *segment;
	uint64_t address;
	int ret;

	if (board >= r->boards)
		return -ENXIO;
	ret = ask_alloc(r, board, bytes, &address);
	if (ret != 0)
		return ret;
	ret = rdma_segment_get(r, address, &segment);
	if (ret != 0)
		goto err_free;
	*buf = buffer_new(r, segment, address, bytes);
	if (*buf == NULL) {
		ret = -ENOMEM;
		goto err_segment;
	}
	(*buf)->own = true;
	return 0;

err_segment:
	rdma_segment_put(r, segment);
err_free:
	ask_free(r, address);
	return ret;
}

static int buffer_get(struct rdma *r, uint64_t address,
		      struct unim_dma_buffer **buf)
{
	struct rdma_segment *segment;
	uint64_t pages = 0;
	int board = gsas_board_of(address), ret;

	if (board < 0 || (uint32_t)board >= r->boards ||
	    address % GSAS_PAGE_BYTES != 0)
		return -EFAULT;
	ret = rdma_segment_get(r, address, &segment);
	if (ret != 0)
		return ret;
	ret = ask_pages(segment->conn, address, &pages);
	if (ret == 0 && (pages > segment->bytes / GSAS_PAGE_BYTES ||
			 pages * GSAS_PAGE_BYTES > segment->bytes -
			 (address - segment->base)))
		ret = -EPROTO;
	if (ret == 0) {
		*buf = buffer_new(r, segment, address,
				  pages * GSAS_PAGE_BYTES);
		ret = *buf != NULL ? 0 : -ENOMEM;
	}
	if (ret != 0)
		rdma_segment_put(r, segment);
	return ret;
}

/* ---- Policies ---------------------------------------------------------- */

/* The node of the process, then the nearest other nodes, until one has the
 * memory. Each error of a node but -EINVAL, which is that of the arguments,
 * leads on to the next node, except that a host that does not answer is the
 * last one asked: each may take FI_UNIMEM_NET_DIAL_MS. A request starts the
 * service of an emulated board of this host, so only RDMA_NEAR nodes are asked.
 * Returns the error of the node of the process. */
static int alloc_nearest(struct rdma *r, uint64_t bytes,
			 struct unim_dma_buffer **buf)
{
	int own = buffer_alloc(r, r->node, bytes, buf), ret = own;
	uint32_t order[RDMA_NEAR], n;

	if (ret == 0 || ret == -EINVAL)
		return ret;
	n = rdma_near(r, order);
	for (uint32_t i = 0; i < n && ret != 0 && ret != -EINVAL &&
	     ret != -EHOSTUNREACH; i++)
		ret = buffer_alloc(r, order[i], bytes, buf);
	return ret == 0 ? 0 : own;
}

static int alloc_by_policy(struct rdma *r, uint64_t bytes,
			   enum unim_dma_policy policy, unim_node_id_t node,
			   struct unim_dma_buffer **buf)
{
	switch (policy) {
	case UNIM_DMA_LOCAL:
		return buffer_alloc(r, r->node, bytes, buf);
	case UNIM_DMA_NODE:
		return buffer_alloc(r, node, bytes, buf);
	case UNIM_DMA_INTERLEAVE:
		return buffer_alloc(r, r->turn++ % r->boards, bytes, buf);
	case UNIM_DMA_NEAREST:
		return alloc_nearest(r, bytes, buf);
	}
	return -EINVAL;
}

/* ---- The calls --------------------------------------------------------- */

int unim_dma_alloc(uint64_t size, enum unim_dma_policy policy,
		   unim_node_id_t node, unim_dma_buffer_t **buf)
{
	uint64_t bytes = (size + GSAS_PAGE_BYTES - 1) & ~(GSAS_PAGE_BYTES - 1);
	struct unim_dma_buffer *made;
	struct rdma *r = rdma_enter();
	int ret = -EINVAL;

	if (r == NULL)
		return ret;
	if (bytes >= size && bytes != 0 && buf != NULL)
		ret = alloc_by_policy(r, bytes, policy, node, &made);
	if (ret == 0)
		*buf = made;
	rdma_leave(r);
	return ret;
}

static unim_dma_buffer_t *alloc_or_null(uint32_t size,
					enum unim_dma_policy policy,
					unim_node_id_t node)
{
	unim_dma_buffer_t *buf = NULL;
	int ret = unim_dma_alloc(size, policy, node, &buf);

	return rdma_fail(ret) == 0 ? buf : NULL;
}

unim_dma_buffer_t *unim_alloc_buf_l(uint32_t size)
{
	return alloc_or_null(size, UNIM_DMA_LOCAL, 0);
}

unim_dma_buffer_t *unim_alloc_buf_r(uint32_t size, unim_dma_node_t node)
{
	if (node != NULL)
		return alloc_or_null(size, UNIM_DMA_NODE, node->id);
	rdma_fail(-ENXIO);
	return NULL;
}

int unim_dma_get(unim_dma_buf_id_t id, unim_dma_buffer_t **buf)
{
	struct unim_dma_buffer *found;
	struct rdma *r = rdma_enter();
	int ret = -EINVAL;

	if (r == NULL)
		return ret;
	if (buf != NULL)
		ret = buffer_get(r, id, &found);
	if (ret == 0)
		*buf = found;
	rdma_leave(r);
	return ret;
}

unim_dma_buffer_t *unim_get_buf(unim_dma_buf_id_t id)
{
	unim_dma_buffer_t *buf = NULL;
	int ret = unim_dma_get(id, &buf);

	return rdma_fail(ret) == 0 ? buf : NULL;
}

/* Wait until no transfer uses the buffer. */
static struct rdma *enter_when_unused(const struct unim_dma_buffer *buf)
{
	struct rdma_wait wait = { 0 };
	struct rdma *r;

	while ((r = rdma_enter()) != NULL && buf->transfers > 0) {
		rdma_leave(r);
		(void)rdma_wait_step(&wait, -1);
	}
	return r;
}

int unim_dma_free(unim_dma_buffer_t *buf)
{
	struct rdma *r;

	if (buf == NULL)
		return 0;
	r = enter_when_unused(buf);
	if (r == NULL)
		return -EINVAL;
	unm_list_remove(&buf->list);
	if (buf->own && rdma_segment_alive(buf->segment))
		ask_free(r, buf->address);
	rdma_segment_put(r, buf->segment);
	free(buf);
	rdma_leave(r);
	return 0;
}

void unim_free_buf(unim_dma_buffer_t *buf)
{
	rdma_fail(unim_dma_free(buf));
}

unim_dma_buf_id_t unim_get_buf_id(unim_dma_buffer_t *buf)
{
	rdma_fail(buf != NULL ? 0 : -EINVAL);
	return buf != NULL ? buf->address : 0;
}

/* Fields of a buffer that never change, so these calls need no lock. */
void *unim_buf_get_memory(unim_dma_buffer_t *buf)
{
	void *at = buf != NULL ? rdma_buffer_at(buf, 0) : NULL;

	rdma_fail(at != NULL ? 0 : buf != NULL ? -EOPNOTSUPP : -EINVAL);
	return at;
}

uint64_t unim_dma_buf_size(const unim_dma_buffer_t *buf)
{
	return buf != NULL ? buf->bytes : 0;
}

unim_node_id_t unim_dma_buf_node(const unim_dma_buffer_t *buf)
{
	return buf != NULL ? (unim_node_id_t)gsas_board_of(buf->address) :
		UINT32_MAX;
}

int unim_dma_translate(const void *addr, uint64_t *global)
{
	struct rdma *r;
	int ret = -EFAULT;

	if (global == NULL)
		return -EINVAL;
	r = rdma_enter();
	if (r == NULL)
		return -EINVAL;
	unm_list_for_each(pos, &r->buffers) {
		const struct unim_dma_buffer *buf =
			unm_container(pos, struct unim_dma_buffer, list);
		uintptr_t at = (uintptr_t)rdma_buffer_at(buf, 0);

		if (at == 0 || (uintptr_t)addr - at >= buf->bytes)
			continue;
		*global = buf->address + ((uintptr_t)addr - at);
		ret = 0;
		break;
	}
	rdma_leave(r);
	return ret;
}
