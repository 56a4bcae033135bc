/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_rdma_fail.c - transfers of <unimem/unim_dma.h> that the engine fails:
 * each ends once, as DMA_FAILED with -EIO, and disturbs no other transfer.
 */
#include "lib/rdma_nodes.h"

#define N	400
#define PIECE	3000

static _Atomic int g_calls[N];

static void count(void *arg)
{
	atomic_fetch_add((_Atomic int *)arg, 1);
}

static void test_failed_transfers(void **state)
{
	unim_dma_buffer_t *buf = buffer_on(1, N * PIECE);
	unim_dma_transfer_id_t id[N];
	uint8_t *from = malloc(N * PIECE), *back = malloc(PIECE);
	int failed = 0, calls = 0;

	(void)state;
	fill(from, N * PIECE, 3);
	for (int i = 0; i < N; i++) {
		id[i] = unim_dma_submit_transfer_from_mem(from, buf,
			(uint64_t)i * PIECE, (uint64_t)i * PIECE, PIECE,
			i % 2 ? count : NULL, &g_calls[i]);
		assert_true(id[i] != 0);
	}
	for (int i = 0; i < N; i++) {
		int ret = unim_dma_wait(id[i], LONG_MS);

		assert_int_equal(unim_dma_status(id[i]),
				 ret == 0 ? DMA_COMPLETED : DMA_FAILED);
		assert_int_equal(unim_dma_error(), ret);
		assert_true(ret == 0 || ret == -EIO);
		failed += ret != 0;
		/* a get may fail too */
		while (ret == 0) {
			id[i] = unim_dma_submit_transfer_to_mem(buf, back,
				(uint64_t)i * PIECE, 0, PIECE, NULL, NULL);
			if (unim_dma_wait(id[i], LONG_MS) == 0)
				break;
		}
		assert_true(ret != 0 ||
			    memcmp(back, from + i * PIECE, PIECE) == 0);
	}
	assert_true(failed > N / 20 && failed < N - N / 20);
	for (int ms = 0; calls < N / 2 && ms < LONG_MS; ms++) {
		usleep(1000);
		calls = 0;
		for (int i = 0; i < N; i++)
			calls += atomic_load(&g_calls[i]);
	}
	for (int i = 0; i < N; i++)
		assert_int_equal(atomic_load(&g_calls[i]), i % 2);
	unim_free_buf(buf);
	free(from);
	free(back);
}

__attribute__((constructor))
static void make_engine_fail(void)
{
	setenv("FI_UNIMEM_FAULT", "dmafail=250,dmadelay=50,seed=5", 1);
}

HOST_MAIN(
	RDMA_TEST(test_failed_transfers),
)
