/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal.c - the one HAL of the process: it selects the backend and counts the
 * references.
 *
 * Entry points: hal_get(), hal_put(), hal_backend(). hal.h declares them.
 */
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "hal/dev/hal_dev_conf.h"
#include "hal/hal.h"
#include "hal/hal_backend.h"
#include "hal/hal_fault.h"
#include "hal/hal_lock.h"
#include "hal/net/hal_net.h"

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

static int open_backend(const struct hal_params *params, struct hal **hal)
{
	const char *name = hal_backend(params);
	unsigned i;
	int ret;

	for (i = 0; i < NBACKENDS; i++)
		if (strcmp(name, backends[i].name) == 0)
			break;
	if (i == NBACKENDS) {
		hal_log(0, "no backend is called %s: use FI_UNIMEM_HAL=auto",
			name);
		return -FI_EINVAL;
	}
	if (params->model[0] != '\0' && strcmp(name, "emu") != 0) {
		hal_log(0, "FI_UNIMEM_MODEL=%s: the timing model is for "
			"FI_UNIMEM_HAL=emu, not %s", params->model, name);
		return -FI_EINVAL;
	}
	ret = backends[i].ops->open(params, hal);
	if (ret != 0)
		return ret;
	if (params->net[0] != '\0')
		ret = hal_net_wrap(*hal);
	if (ret == 0 && params->fault[0] != '\0')
		ret = hal_fault_wrap(*hal, params->fault);
	if (ret != 0)
		(*hal)->ops->close(*hal);
	return ret;
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
