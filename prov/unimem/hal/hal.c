/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal.c - the one HAL of the process: it selects the backend and counts the
 * references.
 *
 * Entry points: hal_get(), hal_put(), hal_backend(), hal_host_boards(),
 * hal_board_host(). hal.h declares them.
 */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "hal/dev/hal_dev_conf.h"
#include "hal/hal.h"
#include "hal/hal_backend.h"
#include "hal/hal_board.h"
#include "hal/hal_fault.h"
#include "hal/hal_lock.h"
#include "hal/net/hal_net.h"
#include "hal/net/hal_net_hosts.h"

static const struct {
	const char *name;
	const struct hal_ops *ops;
} backends[] = {
	{ "emu", &hal_emu_ops },
	{ "sim", &hal_sim_ops },
	{ "dev", &hal_dev_ops },
};
#define NBACKENDS	(sizeof(backends) / sizeof(backends[0]))

static struct {
	struct hal_lock lock;
	struct hal *hal;
	pid_t pid;			/* process that opened it */
} g_hal;

const char *hal_backend(const struct hal_params *params)
{
	const char *name = params->hal;

	if (*name == '\0' || strcmp(name, "auto") == 0)
		name = hal_dev_present(params) ? "dev" : "emu";
	return name;
}

/* Find the directory of the job's hosts; *dir is NULL if there is none. The
 * boards of a device have numbers already, so only those of the emulation are
 * numbered through. May change params->boards. */
static int find_hosts(struct hal_params *params, struct net_dir **dir)
{
	const char *asked = params->net_hosts;

	*dir = NULL;
	if (params->net[0] == '\0' && asked[0] != '\0') {
		hal_log(0, "FI_UNIMEM_NET_HOSTS=%s: set FI_UNIMEM_NET too, to "
			"the network interface by which these hosts reach each "
			"other", asked);
		return -FI_EINVAL;
	}
	if (params->net[0] == '\0')
		return 0;
	if (strcmp(hal_backend(params), "emu") == 0)
		return net_hosts_open(params, dir);
	if (asked[0] == '\0')
		return 0;
	hal_log(0, "FI_UNIMEM_NET_HOSTS=%s: for boards of FI_UNIMEM_HAL=emu, "
		"not %s", asked, hal_backend(params));
	return -FI_EINVAL;
}

static int open_with(unsigned i, const struct hal_params *asked,
		     struct hal **hal)
{
	struct hal_params params = *asked;
	struct net_dir *dir;
	int ret;

	ret = find_hosts(&params, &dir);
	if (ret != 0)
		return ret;
	ret = backends[i].ops->open(&params, hal);
	if (ret != 0) {
		net_dir_free(dir);
		return ret;
	}
	if (params.net[0] != '\0')
		ret = hal_net_wrap(*hal, dir);
	if (ret == 0 && params.fault[0] != '\0')
		ret = hal_fault_wrap(*hal, params.fault);
	if (ret != 0)
		(*hal)->ops->close(*hal);
	return ret;
}

static int open_backend(const struct hal_params *params, struct hal **hal)
{
	const char *name = hal_backend(params);
	unsigned i;

	for (i = 0; i < NBACKENDS; i++)
		if (strcmp(name, backends[i].name) == 0)
			break;
	if (i == NBACKENDS) {
		hal_log(0, "no backend is called %s: use FI_UNIMEM_HAL=auto",
			name);
		return -FI_EINVAL;
	}
	if (params->model[0] != '\0' && strcmp(name, "dev") == 0) {
		hal_log(0, "FI_UNIMEM_MODEL=%s: the timing model is for "
			"FI_UNIMEM_HAL=emu or sim, not %s", params->model,
			name);
		return -FI_EINVAL;
	}
	return open_with(i, params, hal);
}

int hal_host_boards(const struct hal_params *params, const char *host,
		    uint32_t *first, uint32_t *count)
{
	struct hal_params copy = *params;
	struct net_dir *dir;
	int k, ret;

	ret = find_hosts(&copy, &dir);
	if (ret != 0)
		return ret;
	if (dir == NULL) {
		*first = 0;
		*count = strcmp(hal_backend(&copy), "emu") == 0 ?
			hal_board_count(&copy) : UINT16_MAX + 1;
		return host == NULL ? 0 : -FI_ENODATA;
	}
	k = host == NULL ? (int)dir->self : net_hosts_find(dir, host);
	if (k >= 0) {
		*first = dir->host[k].first;
		*count = dir->host[k].boards;
	}
	net_dir_free(dir);
	return k >= 0 ? 0 : -FI_ENODATA;
}

const char *hal_board_host(const struct hal *hal, uint32_t board)
{
	return hal->net != NULL ? hal_net_board_host(hal, board) : NULL;
}

int hal_get(const struct hal_params *params, struct hal **hal)
{
	struct hal_params loaded;
	int ret = 0;

	hal_lock(&g_hal.lock);
	/* A forked child cannot use the HAL of its parent and opens another.
	 * The copy of the parent's object stays allocated. */
	if (g_hal.hal != NULL && g_hal.pid != getpid())
		g_hal.hal = NULL;
	if (g_hal.hal != NULL)
		goto found;
	if (params == NULL) {
		ret = hal_params_load(&loaded);
		if (ret != 0)
			goto out;
		params = &loaded;
	}
	ret = open_backend(params, &g_hal.hal);
	if (ret != 0) {
		g_hal.hal = NULL;
		goto out;
	}
	g_hal.pid = getpid();
	g_hal.hal->refs = 0;
found:
	g_hal.hal->refs++;
	*hal = g_hal.hal;
out:
	hal_unlock(&g_hal.lock);
	return ret;
}

void hal_put(struct hal *hal)
{
	hal_lock(&g_hal.lock);
	if (--hal->refs == 0) {
		if (g_hal.hal == hal)
			g_hal.hal = NULL;
		hal->ops->close(hal);
	}
	hal_unlock(&g_hal.lock);
}
