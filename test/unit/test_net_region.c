/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_region.c - keys of dmable memory that a peer on another host keeps
 * for longer than the process has the memory.
 */
#include <sys/wait.h>

#include "lib/net_pair.h"

static struct net_side *const a = &net_pair.a, *const b = &net_pair.b;

/* Memory of this process with its key, which nobody frees. */
static struct hal_key leave_memory(void)
{
	struct hal_mem *mem;
	struct hal_key key;
	void *addr;

	assert_int_equal(hal_mem_alloc(net_pair.hal, -1, 65536, &mem, &addr),
			 0);
	assert_int_equal(hal_mem_key(net_pair.hal, mem, &key), 0);
	return key;
}

/* Import memory of b. */
static int import(const struct hal_key *key)
{
	struct hal_rmem *rmem;
	int ret = -FI_EAGAIN;

	NET_PAIR_UNTIL((ret = hal_mem_import(a->peer, key, &rmem)) !=
		       -FI_EAGAIN);
	return ret;
}

/* The close of the HAL frees memory that is left. */
static void test_closed(void **state)
{
	struct hal_key key = leave_memory();

	net_pair_dial(a, b);
	assert_int_equal(import(&key), 0);
	net_pair_teardown(NULL);
	assert_int_equal(net_pair_setup(NULL), 0);
	net_pair_dial(a, b);
	assert_int_equal(import(&key), -FI_EKEYREJECTED);
}

/* In a child that opens a HAL of its own. 0, or the step that failed. */
static int child_steps(const struct hal_key *old)
{
	struct hal *parent = net_pair.hal;
	struct hal_key key;

	if (net_pair_setup(NULL) != 0 || net_pair.hal == parent)
		return 1;
	net_pair_dial(a, b);
	if (import(old) != -FI_EKEYREJECTED)
		return 2;
	/* the child may close its copy of the parent's HAL */
	key = leave_memory();
	hal_put(parent);
	return import(&key) == 0 ? 0 : 3;
}

/* Memory of the parent is not mapped in a forked child. */
static void test_forked_child(void **state)
{
	struct hal_key key = leave_memory();
	int status;
	pid_t pid;

	pid = fork();
	if (pid == 0)
		_exit(child_steps(&key));
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	net_pair_dial(a, b);
	assert_int_equal(import(&key), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		NET_PAIR_TEST(test_closed),
		NET_PAIR_TEST(test_forked_child),
	};

	return unit_run(tests);
}
