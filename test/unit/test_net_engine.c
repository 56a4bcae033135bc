/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * test_net_engine.c - the module of UCX refuses addresses that were cut off.
 *
 * An address comes from a peer that has proven its knowledge of the secret, so
 * this is about faults, not about attacks.
 */
#include <dlfcn.h>
#include <sys/epoll.h>

#include <rdma/fi_errno.h>

#include "hal/net/hal_net_engine.h"
#include "lib/unit.h"

#ifdef __SANITIZE_ADDRESS__
/* The search for leaks crashes in processes that have loaded UCX. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
	return 1;
}
#endif

static const struct net_engine *engine;

static void received(void *owner, const void *data, size_t len)
{
	(void)owner;
	(void)data;
	(void)len;
}

static void sent(struct net_message *message)
{
	(void)message;
}

static void failed(void *peer)
{
	(void)peer;
}

static int load(void **state)
{
	const char *dir = getenv("FI_PROVIDER_PATH");
	char path[512];
	void *lib;

	(void)state;
	snprintf(path, sizeof(path), "%s/libunimem-net.so",
		 dir != NULL ? dir : ".libs");
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	engine = lib != NULL ? dlsym(lib, NET_ENGINE_SYMBOL) : NULL;
	return 0;
}

static void test_addresses_cut_off(void **state)
{
	static const struct net_upcalls up = { received, sent, failed };
	struct net_worker_conf conf = {
		.device = "lo", .dead_ms = 3000, .up = &up,
		.epfd = epoll_create1(EPOLL_CLOEXEC),
	};
	uint8_t address[NET_WORKER_MAX + 1];
	size_t len = NET_WORKER_MAX;
	struct net_worker *w;
	struct net_link *link;

	(void)state;
	unit_needs(engine != NULL && engine->abi == NET_ENGINE_ABI);
	assert_int_equal(engine->open(&conf, &w), 0);
	assert_int_equal(engine->address(w, address, &len), 0);
	assert_in_range(len, 9, NET_WORKER_MAX);
	for (size_t n = 0; n <= len; n++) {
		/* of its own allocation, so that ASan sees its end */
		uint8_t *part = malloc(n + 1);
		int ret;

		assert_non_null(part);
		memcpy(part, address, n);
		ret = engine->connect(w, part, n, NULL, &link);
		free(part);
		assert_int_equal(ret, n == len ? 0 : -FI_EINVAL);
		if (ret == 0)
			engine->disconnect(link, NULL);
	}
	assert_int_equal(engine->connect(w, address, len + 1, NULL, &link),
			 -FI_EINVAL);
	assert_int_equal(engine->close(w), 0);
	close(conf.epfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_addresses_cut_off),
	};

	return unit_run_with(tests, load, NULL);
}
