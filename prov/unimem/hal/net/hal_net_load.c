/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_load.c - loads the module of the engine, and gives back the signals
 * that it takes.
 *
 * Entry point: net_engine_get(). The module is in the folder of
 * libunimem-hal.so or in its folder of modules, so that a build tree and a tree
 * that was moved work too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "hal/hal_lock.h"
#include "hal/hal_log.h"
#include "hal/net/hal_net_load.h"

#define MODULE		"libunimem-net.so"

static struct {
	struct hal_lock lock;
	const struct net_engine *engine;
	bool tried;
} g_load;

/* Load MODULE from a subfolder of the folder of this library. */
static void *load_beside(const char *sub, char *why, size_t len)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info info;
	void *lib;

	if (dladdr((void *)&g_load, &info) == 0)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	if (slash == NULL)
		return NULL;
	snprintf(path, sizeof(path), "%.*s/%s" MODULE,
		 (int)(slash - info.dli_fname), info.dli_fname, sub);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL)
		snprintf(why, len, "%s", dlerror());
	return lib;
}

/* UCX sets handlers of some signals when it is loaded. */
static void *load_quietly(char *why, size_t len)
{
	static const char *const subs[] = { "unimem/", "" };
	struct sigaction before[NSIG];
	void *lib = NULL;

	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &before[i]);
	for (int i = 0; i < 2 && lib == NULL; i++)
		lib = load_beside(subs[i], why, len);
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &before[i], NULL);
	return lib;
}

static const struct net_engine *load(void)
{
	char why[256] = "not found";
	const struct net_engine *engine;
	void *lib = load_quietly(why, sizeof(why));

	if (lib == NULL) {
		hal_log(0, "cannot reach other hosts: " MODULE ": %s (build "
			"with UCX and libsodium; Debian: libucx-dev, "
			"libsodium-dev)", why);
		return NULL;
	}
	engine = dlsym(lib, NET_ENGINE_SYMBOL);
	if (engine != NULL && engine->abi == NET_ENGINE_ABI)
		return engine;
	hal_log(0, "cannot reach other hosts: " MODULE " is of another "
		"version than libunimem-hal.so");
	return NULL;
}

const struct net_engine *net_engine_get(void)
{
	hal_lock(&g_load.lock);
	if (!g_load.tried)
		g_load.engine = load();
	g_load.tried = true;
	hal_unlock(&g_load.lock);
	return g_load.engine;
}
