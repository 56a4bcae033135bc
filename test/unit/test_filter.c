/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_filter.c - system calls that fail, as under the seccomp filters of
 * containers or without memory: everything that does not need them still works.
 *
 * A filter can not be removed from a thread, so each runs in a thread of its
 * own.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "lib/connect_attempts.h"

struct filtered {
	int call, err;			/* call fails with errno err */
	int (*run)(void);
	int ret;
	bool none;			/* filters are not permitted */
};

static void *filtered_main(void *arg)
{
	struct filtered *f = arg;
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)f->call, 0, 1),
		BPF_STMT(BPF_RET | BPF_K,
			 SECCOMP_RET_ERRNO | (unsigned)f->err),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { sizeof(code) / sizeof(code[0]), code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) != 0)
		f->none = true;
	else
		f->ret = f->run();
	return NULL;
}

/* run() must not assert: it is in another thread. */
static int run_filtered(int call, int err, int (*run)(void))
{
	struct filtered f = { call, err, run, 0, false };
	pthread_t thread = unit_thread(filtered_main, &f);

	pthread_join(thread, NULL);
	unit_needs(!f.none);
	return f.ret;
}

/* ---- A wake-up for which the kernel has no memory ---------------------- */

static bool readable(struct hal_if *hif)
{
	struct pollfd pfd = { .fd = hal_if_fd(hif), .events = POLLIN };

	return poll(&pfd, 1, 0) > 0;
}

/* An event from before the call may still make the descriptor readable. */
static bool asleep(void)
{
	if (hal_if_arm(attempts.v) != 0)
		return false;
	if (!readable(attempts.v))
		return true;
	hal_if_disarm(attempts.v);
	return false;
}

static int send_one(void)
{
	uint64_t word = 1;

	return hal_pkt_send(attempts.tv, hal_head(1, 0), &word, 1, NULL, 0);
}

static int service_friend(void)
{
	struct hal_event ev;

	return hal_if_service(attempts.t, &ev, 1);
}

static void test_wake_up_is_sent_later(void **state)
{
	uint64_t head;
	int ret;

	unit_needs(attempts.hal != NULL);
	ATTEMPTS_UNTIL(asleep());
	ret = run_filtered(SYS_sendmsg, ENOBUFS, send_one);
	assert_int_equal(ret, 0);
	/* the receiver still sleeps, and the sender may not sleep before it has
	 * tried again */
	assert_false(readable(attempts.v));
	assert_int_equal(hal_if_arm(attempts.t), -FI_EAGAIN);
	run_filtered(SYS_sendmsg, ENOMEM, service_friend);
	assert_false(readable(attempts.v));
	assert_int_equal(hal_if_arm(attempts.t), -FI_EAGAIN);
	assert_int_equal(service_friend(), 0);
	assert_true(readable(attempts.v));
	hal_if_disarm(attempts.v);
	assert_non_null(hal_rx_peek(attempts.vt, &head));
	hal_rx_release(attempts.vt);
	hal_rx_flush(attempts.vt);
	attempts_exchange();
	/* afterwards the sender may sleep */
	ATTEMPTS_UNTIL(hal_if_arm(attempts.t) == 0);
	hal_if_disarm(attempts.t);
}

/* ---- Ordinary memory, where signals may not be sent --------------------- */

static char from[300000], to[300000];

static int move(enum hal_dma_op op)
{
	struct hal_dma d = {
		.op = op, .peer = attempts.vt, .local = to,
		.raddr = (uint64_t)(uintptr_t)from, .len = sizeof(from),
	};
	struct hal_dma_comp comp;
	int ret = hal_dma_post(attempts.v, &d, 1);

	while (ret == 0 && hal_dma_poll(attempts.v, &comp, 1) == 0)
		;
	return ret != 0 ? ret : comp.status;
}

static int get(void)
{
	return move(HAL_DMA_GET);
}

static int put(void)
{
	return move(HAL_DMA_PUT);
}

static void test_a_peer_lives_though_no_signal_may_be_sent(void **state)
{
	unit_needs(attempts.hal != NULL && attempts.vt->dma_any);
	memset(from, 0x5a, sizeof(from));
	assert_int_equal(run_filtered(SYS_pidfd_send_signal, EPERM, get), 0);
	assert_memory_equal(from, to, sizeof(from));
	memset(to, 0x33, sizeof(to));
	assert_int_equal(run_filtered(SYS_pidfd_send_signal, ENOSYS, put), 0);
	assert_memory_equal(from, to, sizeof(from));
	assert_true(attempts.vt->dma_any);
}

#define FILTER_TEST(f)	cmocka_unit_test_setup_teardown(f, attempts_setup, \
				attempts_teardown)

UNIT_MAIN(
	FILTER_TEST(test_wake_up_is_sent_later),
	FILTER_TEST(test_a_peer_lives_though_no_signal_may_be_sent),
)
