/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_load.c - loads the modules for other hosts, and gives back the
 * signals that they take.
 *
 * Entry points: net_crypto_get(), net_engine_get(). The modules are in the
 * folder of libunimem-hal.so or in its folder of modules, so that a build tree
 * and a tree that was moved work too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hal/hal_lock.h"
#include "hal/hal_log.h"
#include "hal/net/hal_net_load.h"

/* A module. The table of each begins with its abi. */
struct module {
	const char *file, *symbol;
	const char *needs, *package;	/* for the log line */
	const uint32_t *table;
	bool tried;
	pid_t pid;			/* that has tried */
};

static struct hal_lock g_lock;
static struct module g_crypto = {
	"libunimem-net-auth.so", NET_CRYPTO_SYMBOL, "libsodium",
	"libsodium-dev", NULL, false, 0
};
static struct module g_engine = {
	"libunimem-net.so", NET_ENGINE_SYMBOL, "UCX",
	"libucx-dev", NULL, false, 0
};

/* Load a module from a subfolder of the folder of this library. */
static void *load_beside(const struct module *m, const char *sub, char *why,
			 size_t len)
{
	char path[PATH_MAX];
	const char *slash;
	Dl_info info;
	void *lib;

	if (dladdr((void *)&g_engine, &info) == 0)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	if (slash == NULL)
		return NULL;
	snprintf(path, sizeof(path), "%.*s/%s%s",
		 (int)(slash - info.dli_fname), info.dli_fname, sub, m->file);
	lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib == NULL)
		snprintf(why, len, "%s", dlerror());
	return lib;
}

/* UCX sets handlers of some signals when it is loaded. */
static void *load_quietly(const struct module *m, char *why, size_t len)
{
	static const char *const subs[] = { "unimem/", "" };
	struct sigaction before[NSIG];
	void *lib = NULL;

	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &before[i]);
	for (int i = 0; i < 2 && lib == NULL; i++)
		lib = load_beside(m, subs[i], why, len);
	for (int i = 1; i < NSIG; i++)
		sigaction(i, &before[i], NULL);
	return lib;
}

static const uint32_t *load(const struct module *m)
{
	char why[256] = "not found";
	const uint32_t *table;
	void *lib = load_quietly(m, why, sizeof(why));

	if (lib == NULL) {
		hal_log(0, "cannot reach other hosts: %s: %s (build with %s; "
			"Debian: %s)", m->file, why, m->needs, m->package);
		return NULL;
	}
	table = dlsym(lib, m->symbol);
	if (table != NULL && *table == NET_ENGINE_ABI)
		return table;
	hal_log(0, "cannot reach other hosts: %s is of another version than "
		"libunimem-hal.so", m->file);
	return NULL;
}

static const void *module_get(struct module *m)
{
	hal_lock(&g_lock);
	if (!m->tried) {
		m->pid = getpid();
		m->table = load(m);
	}
	m->tried = true;
	hal_unlock(&g_lock);
	return m->table;
}

const struct net_crypto *net_crypto_get(void)
{
	return module_get(&g_crypto);
}

/* UCX that a parent has loaded has lost its thread in a forked child, and its
 * locks may be held for ever. */
const struct net_engine *net_engine_get(void)
{
	static bool said;

	if (module_get(&g_engine) == NULL || g_engine.pid == getpid())
		return (const void *)g_engine.table;
	hal_log(said, "cannot reach other hosts: the parent of this process "
		"has loaded UCX before fork(2); let the child run another "
		"program");
	said = true;
	return NULL;
}
