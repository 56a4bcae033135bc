/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rdma_segment.c - imports segments of the boards' memory, one import for all
 * buffers of a segment, and maps them for programs.
 *
 * A pointer of a program is valid until its buffer is freed, also if the
 * service of the board ends. Where boards are not coherent, memory of the own
 * board is opened (hal_mem_open()): it is then local memory of transfers too,
 * which the window of an import is not. Else the window is mapped a second
 * time, because it lasts no longer than its import. A segment without a window,
 * which is that of another board there, has no pointer.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "rdma_segment.h"
#include "util/unm_clock.h"
#include "util/unm_map_again.h"

#define IMPORT_NS	UINT64_C(10000000000)	/* time limit of an import */

/* ---- Mapping ----------------------------------------------------------- */

static int map_window(struct rdma_segment *s, const struct hal_window *win)
{
	if (win->bytes < s->bytes)
		return -EPROTO;
	s->ptr = unm_map_again(win->addr, (size_t)s->bytes);
	return s->ptr != NULL ? 0 : -ENOMEM;
}

static int map_segment(struct rdma *r, struct rdma_segment *s,
		       const struct hal_key *key)
{
	struct hal_window win;
	void *at = NULL;
	int ret = -FI_ENOSYS;

	if (!(r->hal->caps.flags & HAL_CAP_COHERENT) &&
	    s->conn->board == r->node)
		ret = hal_mem_open(r->hal, key, &s->mem, &at);
	if (ret != -FI_ENOSYS) {
		s->ptr = at;
		return ret;
	}
	hal_mem_window(s->conn->peer, s->rmem, &win);
	return win.addr != NULL ? map_window(s, &win) : 0;
}

/* ---- Importing --------------------------------------------------------- */

static int import(struct rdma *r, struct rdma_segment *s,
		  const struct hal_key *key)
{
	uint64_t end = unm_now_ns() + IMPORT_NS;
	int ret;

	while ((ret = hal_mem_import(s->conn->peer, key, &s->rmem)) ==
	       -FI_EAGAIN) {
		if (unm_now_ns() > end)
			return -ETIMEDOUT;
		if (!gsas_port_progress(r->port))
			sched_yield();
		if (s->conn->peer == NULL)
			return s->conn->closed_error;
	}
	if (ret == 0)
		s->epoch = s->conn->epoch;
	return ret;
}

static int ask_map(struct gsas_conn *conn, uint64_t address,
		   struct gsas_map_info *info)
{
	struct gsas_msg msg = {
		.opcode = GSAS_MAP, .address = address,
		.into = info, .len = sizeof(*info),
	};
	struct gsas_request request;
	int ret = gsas_port_ask(conn, &msg, &request);

	if (ret == 0 && !gsas_map_info_valid(info, address))
		ret = -EPROTO;
	if (ret == 0 && conn->peer == NULL)
		ret = conn->closed_error;
	if (ret == 0 && (!(request.result & GSAS_ATTR_MAPPED) ||
			 request.result & GSAS_ATTR_QUEUE))
		ret = -EPERM;
	return ret;
}

static int segment_new(struct rdma *r, uint64_t address,
		       struct rdma_segment **out)
{
	struct rdma_segment *s = calloc(1, sizeof(*s));
	struct gsas_map_info info;
	struct hal_key key;
	int ret;

	if (s == NULL)
		return -ENOMEM;
	unm_list_init(&s->list);
	ret = gsas_port_conn(r->port, gsas_board_of(address), &s->conn);
	if (ret == 0)
		ret = ask_map(s->conn, address, &info);
	if (ret != 0)
		goto err;
	s->base = info.base;
	s->bytes = info.bytes;
	key = (struct hal_key){ { info.key[0], info.key[1] } };
	ret = import(r, s, &key);
	if (ret != 0)
		goto err;
	ret = map_segment(r, s, &key);
	if (ret != 0) {
		hal_mem_release(s->conn->peer, s->rmem);
		goto err;
	}
	unm_list_append(&r->segments, &s->list);
	*out = s;
	return 0;

err:
	free(s);
	if (ret == -FI_EKEYREJECTED)
		return -ESTALE;
	return ret == -ENXIO ? -EFAULT : ret;
}

int rdma_segment_get(struct rdma *r, uint64_t address,
		     struct rdma_segment **segment)
{
	struct rdma_segment *found = NULL;
	int ret = 0;

	unm_list_for_each(pos, &r->segments) {
		struct rdma_segment *s =
			unm_container(pos, struct rdma_segment, list);

		if (address >= s->base && address - s->base < s->bytes &&
		    rdma_segment_alive(s))
			found = s;
	}
	if (found == NULL)
		ret = segment_new(r, address, &found);
	if (ret != 0)
		return ret;
	found->refs++;
	*segment = found;
	return 0;
}

int rdma_segment_check(const struct rdma_segment *s, uint64_t address)
{
	const _Atomic uint32_t *word;

	if (!rdma_segment_alive(s))
		return -ECONNRESET;
	if (s->ptr == NULL)
		return 0;
	word = (const _Atomic uint32_t *)(s->ptr +
					  gsas_page_word(s->base, address));
	/* pairs with the release in gsas_segment_publish() */
	return atomic_load_explicit(word, memory_order_acquire) != 0 ? 0 :
	       -ESTALE;
}

void rdma_segment_free(struct rdma *r, struct rdma_segment *s, bool child)
{
	unm_list_remove(&s->list);
	if (s->mem != NULL)
		hal_mem_free(r->hal, s->mem);
	else if (s->ptr != NULL && !child)
		munmap(s->ptr, (size_t)s->bytes);
	free(s);
}

void rdma_segment_put(struct rdma *r, struct rdma_segment *s)
{
	if (--s->refs > 0)
		return;
	if (rdma_segment_alive(s))
		hal_mem_release(s->conn->peer, s->rmem);
	rdma_segment_free(r, s, false);
}
