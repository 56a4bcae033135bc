/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_gsas_wrong.c - wrong arguments to every call of gsas.h: the call returns
 * the errno that gsas.h names and does nothing.
 */
#include "client/gsas_conn.h"
#include "client/gsas_connect.h"
#include "client/gsas_wait.h"
#include "lib/gsas_services.h"
#include "op/gsas_op.h"

static void misuse_of_memory(void)
{
	gsas_addr a;

	assert_int_equal(gsas_alloc(0, GSAS_HERE, 0, NULL, &a), -EINVAL);
	assert_int_equal(gsas_alloc(1, GSAS_HERE, 3, NULL, &a), -EINVAL);
	assert_int_equal(gsas_alloc(1, GSAS_HERE, 1 << 9, NULL, &a), -EINVAL);
	assert_int_equal(gsas_alloc(1, GSAS_HERE, GSAS_GROUP_ONLY, NULL, &a),
			 -EINVAL);
	assert_int_equal(gsas_alloc(1, GSAS_HERE, 0, "group", &a), -EINVAL);
	assert_int_equal(gsas_alloc(1, GSAS_HERE, 0, NULL, NULL), -EINVAL);
	assert_int_equal(gsas_alloc(1, gsas_boards(), 0, NULL, &a), -ENXIO);
	assert_int_equal(gsas_alloc(1, -3, 0, NULL, &a), -ENXIO);
	assert_int_equal(gsas_alloc(200001, GSAS_HERE, 0, NULL, &a), -ENOMEM);
	assert_int_equal(gsas_alloc(UINT64_MAX, GSAS_HERE, 0, NULL, &a),
			 -EINVAL);
	assert_int_equal(gsas_join(NULL), -EINVAL);
	assert_int_equal(gsas_join(""), -EINVAL);
	assert_int_equal(gsas_join("seventeen letters"), -EINVAL);
	assert_int_equal(gsas_join("sixteen letters!"), 0);
}

/* never: a board with a service on which nothing was ever allocated */
static void misuse_of_address(gsas_addr a, bool never)
{
	static uint8_t page[GSAS_PAGE];
	struct gsas_queue_handle *q;
	uint64_t value, two[2] = { 0 };
	struct gsas_req req;

	value = 7;
	assert_int_equal(gsas_read8(a, page), -EFAULT);
	assert_int_equal(gsas_read64(a, &value), -EFAULT);
	assert_int_equal(value, 7);
	assert_int_equal(gsas_write32(a, 0), -EFAULT);
	assert_int_equal(gsas_write128(a, two), -EFAULT);
	assert_int_equal(gsas_read4k(a, page), -EFAULT);
	assert_int_equal(gsas_cas64(a, 0, 0, NULL), -EFAULT);
	assert_int_equal(gsas_get(page, a, 8), -EFAULT);
	assert_int_equal(gsas_put(a, page, 8), -EFAULT);
	assert_int_equal(gsas_free(a), -EFAULT);
	assert_int_equal(gsas_atomic(a, GSAS_OP_SUM, GSAS_TYPE_INT8, 0,
				     1, page, NULL, NULL), -EFAULT);
	assert_int_equal(gsas_queue_open(a, &q), -EFAULT);
	if (never) {
		assert_int_equal(gsas_read64_start(a, &value, &req),
				 0);
		assert_int_equal(gsas_write64_post(a, 1), 0);
		assert_int_equal(gsas_fence(-1), -EFAULT);
	} else {
		assert_int_equal(gsas_read64_start(a, &value, &req),
				 -EFAULT);
		assert_int_equal(gsas_write64_post(a, 1), -EFAULT);
	}
	assert_int_equal(gsas_wait(&req), -EFAULT);
}

static void test_misuse(void **state)
{
	const gsas_addr never = gsas_base((uint32_t)g_first) + (1ull << 46);
	const gsas_addr nowhere[] = { 0, 8, never, UINT64_MAX - 7,
		gsas_base((uint32_t)gsas_boards()) };
	struct gsas_queue_handle *q;
	struct gsas_req req;
	gsas_addr a;
	int done;

	misuse_of_memory();
	for (unsigned i = 0; i < 5; i++)
		misuse_of_address(nowhere[i], nowhere[i] == never);
	assert_int_equal(gsas_cas64_start(never, 0, 0, NULL, NULL, &req),
			 -EINVAL);
	assert_int_equal(gsas_cas64_start(never, 0, 0, NULL, &done, &req), 0);
	assert_int_equal(gsas_wait(&req), -EFAULT);
	assert_int_equal(gsas_queue_create(0, 8, GSAS_HERE, 0, NULL, &a),
			 -EINVAL);
	assert_int_equal(gsas_queue_create(1ull << 32 | 8, 8, GSAS_HERE, 0,
					   NULL, &a), -EINVAL);
	assert_int_equal(gsas_queue_create(8, 9, GSAS_HERE, 0, NULL, &a),
			 -EINVAL);
	assert_int_equal(gsas_queue_create(8, 8, GSAS_HERE, GSAS_MAPPED, NULL,
					   &a), -EINVAL);
	a = host_alloc(1, 0, 0);
	assert_int_equal(gsas_queue_open(a, &q), -EINVAL);
	assert_int_equal(gsas_free(a), 0);
	assert_int_equal(gsas_queue_open(a, &q), -ESTALE);
	gsas_queue_close(NULL);
}

/* A service that does not know the operation returns -ENOSYS and still
 * serves. */
static void test_no_such_operation(void **state)
{
	struct gsas_msg msg = { .opcode = GSAS_SWAP64 + 1 };
	gsas_addr a = host_alloc(1, 0, 0);
	struct gsas_thread *t;
	struct gsas_conn *conn;
	struct gsas_request request;

	assert_int_equal(gsas_thread_get(&t), 0);
	assert_int_equal(gsas_conn_get(t, g_first, &conn), 0);
	assert_int_equal(gsas_request_do(conn, &msg, &request), -ENOSYS);
	assert_int_equal(gsas_write64(a, 1), 0);
	assert_int_equal(gsas_free(a), 0);
}

HOST_MAIN(
	cmocka_unit_test(test_misuse),
	cmocka_unit_test(test_no_such_operation),
)
