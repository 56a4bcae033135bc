/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gsas_batch.c - operations on many addresses by one call: gather, scatter,
 * strided copies, updates.
 *
 * The elements are executed in blocks. For each block the places of all
 * elements are found first, by the short path or in the table of segments, and
 * fetched into the cache; then the elements are executed, while later loads are
 * under way. Elements that are not mapped are sent as requests, all of a block
 * before the first is waited for.
 *
 * A place is valid until the thread makes progress (gsas_window.h). So a block
 * is either executed directly as a whole, without a call that makes progress in
 * between, or element by element.
 */
#include <errno.h>
#include <string.h>

#include "client/gsas_direct.h"
#include "client/gsas_request.h"
#include "client/gsas_thread.h"
#include "common/gsas_copy.h"
#include "op/gsas_op.h"

#define BLOCK	32			/* elements whose cache lines are
					 * fetched at a time */

/* ---- Places -------------------------------------------------------------- */

/* As gsas_direct(), for an address that is not in the table of the short path,
 * which is too small for more than 1 GiB. NULL: the segment is not mapped, or
 * the address is not valid. Makes no progress. */
static __attribute__((noinline)) void *find_known(gsas_addr addr)
{
	struct gsas_thread *t;

	if (gsas_thread_get(&t) != 0 ||
	    !gsas_maps_board(t, gsas_board_of(addr)))
		return NULL;
	return gsas_segments_place(&t->segments, addr);
}

static void *place_of(gsas_addr addr)
{
	void *at = gsas_direct(addr);

	return at != NULL ? at : find_known(addr);
}

/* ---- Updates ------------------------------------------------------------- */

/* Where n words are mapped, which are fetched to be written. false: not all of
 * them are mapped yet. */
static bool find_words(const gsas_addr *addr, size_t n, void **at)
{
	for (size_t i = 0; i < n; i++) {
		at[i] = place_of(addr[i] & -(uint64_t)8);
		if (at[i] == NULL)
			return false;
		__builtin_prefetch(at[i], 1);
	}
	return true;
}

/* The common operations without a call for each word, and without the value
 * before: one instruction of the processor. */
static void update_words(enum gsas_op op, void *const *at,
			 const uint64_t *operand, size_t n)
{
	_Atomic uint64_t *const *word = (_Atomic uint64_t *const *)at;

	switch (op) {
	case GSAS_OP_SUM:
		for (size_t i = 0; i < n; i++)
			atomic_fetch_add(word[i], operand[i]);
		break;
	case GSAS_OP_BXOR:
		for (size_t i = 0; i < n; i++)
			atomic_fetch_xor(word[i], operand[i]);
		break;
	case GSAS_OP_BOR:
		for (size_t i = 0; i < n; i++)
			atomic_fetch_or(word[i], operand[i]);
		break;
	case GSAS_OP_BAND:
		for (size_t i = 0; i < n; i++)
			atomic_fetch_and(word[i], operand[i]);
		break;
	default:
		for (size_t i = 0; i < n; i++)
			gsas_op_apply(op, GSAS_TYPE_UINT64, 1, at[i],
				      &operand[i], NULL, NULL);
		break;
	}
}

int gsas_update64_batch(const gsas_addr *addr, enum gsas_op op,
			const uint64_t *operand, size_t count)
{
	void *at[BLOCK];
	int ret = 0;

	if ((unsigned)op >= GSAS_OPS ||
	    !gsas_op_valid(op, GSAS_TYPE_UINT64, GSAS_FORM_UPDATE))
		return -ENOSYS;
	while (count > 0 && ret == 0) {
		size_t n = count < BLOCK ? count : BLOCK;

		if (find_words(addr, n, at))
			update_words(op, at, operand, n);
		else
			for (size_t i = 0; i < n && ret == 0; i++)
				ret = gsas_update64_post(addr[i], op,
							 operand[i]);
		addr += n;
		operand += n;
		count -= n;
	}
	return ret;
}

/* ---- Copies -------------------------------------------------------------- */

/* Elements of len bytes, in GSAS and in memory of the program. */
struct copy {
	const gsas_addr *list;		/* address of each, or NULL: */
	gsas_addr base;			/* address of the first */
	size_t stride;			/* bytes to the next */
	uint8_t *local;			/* the first in the program's memory;
					 * only a GET writes to it */
	size_t local_stride;
	size_t len;
	bool put;
};

static gsas_addr address_of(const struct copy *c, size_t i)
{
	return c->list != NULL ? c->list[i] : c->base + i * c->stride;
}

static uint8_t *local_of(const struct copy *c, size_t i)
{
	return c->local + i * c->local_stride;
}

/* As find_words(), for elements first to first + n - 1. An element that is not
 * in one page may be in two allocations, and is not copied directly here. */
static bool find_elements(const struct copy *c, size_t first, size_t n,
			  void **at)
{
	for (size_t i = 0; i < n; i++) {
		gsas_addr addr = address_of(c, first + i);

		if (c->len > GSAS_PAGE - addr % GSAS_PAGE)
			return false;
		at[i] = place_of(addr);
		if (at[i] == NULL)
			return false;
		if (c->put)
			__builtin_prefetch(at[i], 1);
		else
			__builtin_prefetch(at[i], 0);
	}
	return true;
}

static void copy_elements(const struct copy *c, size_t first, size_t n,
			  void *const *at)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t *local = local_of(c, first + i);

		if (c->put)
			gsas_copy_to_shared(at[i], local, c->len);
		else
			gsas_copy_from_shared(local, at[i], c->len);
	}
}

/* Start a request for each element, and wait for all. The first error. */
static int request_elements(const struct copy *c, size_t first, size_t n)
{
	struct gsas_req req[BLOCK];
	size_t started = 0;
	int ret = 0, waited;

	while (started < n && ret == 0) {
		size_t i = first + started;

		ret = c->put ?
			gsas_put_start(address_of(c, i), local_of(c, i),
				       c->len, &req[started]) :
			gsas_get_start(local_of(c, i), address_of(c, i),
				       c->len, &req[started]);
		started += ret == 0;
	}
	waited = gsas_wait_all(req, started);
	return waited != 0 ? waited : ret;
}

static int copy(const struct copy *c, size_t count)
{
	void *at[BLOCK];
	int ret = 0;

	if (c->len == 0)
		return 0;
	for (size_t i = 0; i < count && ret == 0; i += BLOCK) {
		size_t n = count - i < BLOCK ? count - i : BLOCK;

		if (find_elements(c, i, n, at))
			copy_elements(c, i, n, at);
		else
			ret = request_elements(c, i, n);
	}
	return ret;
}

int gsas_gather(void *dst, const gsas_addr *src, size_t len, size_t count)
{
	const struct copy c = {
		.list = src, .local = dst, .local_stride = len, .len = len,
	};

	return copy(&c, count);
}

int gsas_scatter(const gsas_addr *dst, const void *src, size_t len,
		 size_t count)
{
	const struct copy c = {
		.list = dst, .local = (uint8_t *)src, .local_stride = len,
		.len = len, .put = true,
	};

	return copy(&c, count);
}

int gsas_get_strided(void *dst, size_t dst_stride, gsas_addr src,
		     size_t src_stride, size_t len, size_t count)
{
	const struct copy c = {
		.base = src, .stride = src_stride, .local = dst,
		.local_stride = dst_stride, .len = len,
	};

	return copy(&c, count);
}

int gsas_put_strided(gsas_addr dst, size_t dst_stride, const void *src,
		     size_t src_stride, size_t len, size_t count)
{
	const struct copy c = {
		.base = dst, .stride = dst_stride, .local = (uint8_t *)src,
		.local_stride = src_stride, .len = len, .put = true,
	};

	return copy(&c, count);
}
