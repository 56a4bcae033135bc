/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_mr.c - memory regions as far as they are offered: for local use, of any
 * memory, with 64-bit keys of the application's choice.
 */
#include <stdlib.h>
#include <string.h>

#include "ep_xfer.h"

#define LOCAL	(FI_SEND | FI_RECV)
#define MANY	2000

static int reg(struct ep *e, const void *buf, size_t len, uint64_t key,
	       struct fid_mr **mr)
{
	*mr = NULL;
	return fi_mr_reg(e->domain, buf, len, LOCAL, 0, key, 0, mr, NULL);
}

/* Trap 1: what MPICH and others register. */
static void test_trap1_any_memory_any_key(void **state)
{
	static char fixed[100];
	char *heap = malloc(1);
	const struct {
		const void *buf;
		size_t len;
		uint64_t key;
	} t[] = {
		{ NULL, UINTPTR_MAX, UINT64_C(1) << 63 },
		{ NULL, SIZE_MAX, 0 },
		{ NULL, 0, 1 },
		{ fixed, 0, 5 | UINT64_C(1) << 63 },
		{ fixed, sizeof(fixed), UINT64_MAX },
		{ fixed + 1, sizeof(fixed) - 1, UINT64_C(1) << 32 },
		{ heap, 1, UINT32_MAX },
	};
	struct ep *e = ep_open(NULL);
	struct fid_mr *mr[7];

	(void)state;
	for (int i = 0; i < 7; i++) {
		assert_int_equal(reg(e, t[i].buf, t[i].len, t[i].key, &mr[i]),
				 0);
		assert_true(fi_mr_key(mr[i]) == t[i].key);
	}
	for (int i = 0; i < 7; i++)
		assert_int_equal(fi_close(&mr[i]->fid), 0);
	ep_close(e);
	free(heap);
}

static void test_a_key_in_use_is_refused(void **state)
{
	const uint64_t key = 7 | UINT64_C(1) << 63;
	struct ep *e = ep_open(NULL), *other = ep_open(NULL);
	struct fid_mr *mr, *twin, *third;
	static char buf[8];

	(void)state;
	assert_int_equal(reg(e, buf, 8, key, &mr), 0);
	assert_int_equal(reg(e, buf, 8, key, &twin), -FI_ENOKEY);
	assert_null(twin);
	/* bits 63 and 31 are bits like others; other domains, other keys */
	assert_int_equal(reg(e, buf, 8, 7, &twin), 0);
	assert_int_equal(reg(other, buf, 8, key, &third), 0);
	assert_int_equal(fi_close(&third->fid), 0);
	assert_int_equal(reg(e, buf, 8, key, &third), -FI_ENOKEY);
	/* the one refused took nothing of the one that is open */
	assert_true(fi_mr_key(mr) == key);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(reg(e, buf, 8, key, &mr), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	assert_int_equal(fi_close(&twin->fid), 0);
	ep_close(other);
	ep_close(e);
}

static void test_many_sparse_keys(void **state)
{
	struct ep_want want = { .threading = FI_THREAD_SAFE };
	struct ep *e = ep_open(&want);
	static struct fid_mr *mr[MANY];
	uint64_t rng = 1;

	(void)state;
	for (int i = 0; i < MANY; i++)
		assert_int_equal(reg(e, mr, sizeof(mr), unit_random(&rng),
				     &mr[i]), 0);
	for (int i = 0; i < MANY; i++) {
		uint32_t k = unit_below(&rng, MANY);
		uint64_t key = fi_mr_key(mr[k]);
		struct fid_mr *twin;

		assert_int_equal(reg(e, mr, 1, key, &twin), -FI_ENOKEY);
		assert_int_equal(fi_close(&mr[k]->fid), 0);
		assert_int_equal(reg(e, mr, 1, key, &mr[k]), 0);
	}
	for (int i = 0; i < MANY; i++)
		assert_int_equal(fi_close(&mr[i]->fid), 0);
	ep_close(e);
}

/* Not offered: no FI_RMA, no flags, no empty vector. */
static void test_what_is_not_offered_fails(void **state)
{
	static const uint64_t remote[] = {
		FI_REMOTE_READ, FI_REMOTE_WRITE, FI_READ, FI_WRITE,
		FI_REMOTE_READ | FI_REMOTE_WRITE | FI_SEND,
	};
	struct ep *e = ep_open(NULL);
	struct fid_mr *mr = NULL;
	struct iovec iov = { e, 1 };

	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(fi_mr_reg(e->domain, NULL, UINTPTR_MAX,
					   remote[i], 0, 3, 0, &mr, NULL),
				 -FI_ENOSYS);
	assert_int_equal(fi_mr_reg(e->domain, e, 1, LOCAL, 0, 3, FI_RMA_EVENT,
				   &mr, NULL), -FI_EBADFLAGS);
	assert_int_equal(fi_mr_regv(e->domain, &iov, 0, LOCAL, 0, 3, 0, &mr,
				    NULL), -FI_EINVAL);
	assert_null(mr);
	/* nor did one of them leave its key behind */
	assert_int_equal(reg(e, e, 1, 3, &mr), 0);
	assert_int_equal(fi_close(&mr->fid), 0);
	ep_close(e);
}

static void test_a_region_keeps_its_domain(void **state)
{
	static char out[100] = "registered", in[100];
	struct ep_pair p = ep_pair(NULL);
	struct fid_mr *mr, *to;
	struct fi_context2 tx, rx;

	(void)state;
	assert_int_equal(reg(p.a, out, sizeof(out), 1, &mr), 0);
	assert_int_equal(reg(p.b, in, sizeof(in), 1, &to), 0);
	EP_OK(fi_recv(p.b->ep, in, sizeof(in), fi_mr_desc(to), p.ba, &rx));
	EP_OK(fi_send(p.a->ep, out, sizeof(out), fi_mr_desc(mr), p.ab, &tx));
	ep_sent(p.a, &tx);
	ep_received(p.b, &rx);
	assert_string_equal(in, "registered");
	assert_int_equal(fi_close(&to->fid), 0);
	ep_close(p.b);

	assert_int_equal(fi_close(&p.a->ep->fid), 0);
	assert_int_equal(fi_close(&p.a->cq->fid), 0);
	assert_int_equal(fi_close(&p.a->av->fid), 0);
	p.a->ep = NULL;
	p.a->cq = NULL;
	p.a->av = NULL;
	assert_int_equal(fi_close(&p.a->domain->fid), -FI_EBUSY);
	assert_int_equal(fi_close(&mr->fid), 0);
	ep_close(p.a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		EP_TEST(test_trap1_any_memory_any_key),
		EP_TEST(test_a_key_in_use_is_refused),
		EP_TEST(test_many_sparse_keys),
		EP_TEST(test_what_is_not_offered_fails),
		EP_TEST(test_a_region_keeps_its_domain),
	};

	return unit_run(tests);
}
