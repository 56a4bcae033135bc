/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_prov.c - fi_prov_ini(), the only symbol of the provider that libfabric
 * loads. It fills g_unm_prov (unm_log.c) with the provider's calls. */
#include "hal/hal.h"
#include "api/unm_domain.h"
#include "unm_env.h"
#include "unm_info.h"
#include "unm_log.h"
#include "unm_nic.h"

/* libfabric calls this at exit, before it unloads the provider. The HAL may
 * stay loaded for another user in the process, so it must not call our log any
 * more. */
static void unm_cleanup(void)
{
	unm_nic_fini();
	hal_log_set(NULL);
}

struct fi_provider *fi_prov_ini(void);

__attribute__((visibility("default")))
struct fi_provider *fi_prov_ini(void)
{
	/* The version of the libfabric that loads us may be newer than that of
	 * the headers; libfabric skips providers whose version is older than
	 * the one that the application asks for. */
	g_unm_prov.fi_version = fi_version();
	g_unm_prov.getinfo = unm_getinfo;
	g_unm_prov.fabric = unm_fabric_open;
	g_unm_prov.cleanup = unm_cleanup;
	unm_env_define();
	return &g_unm_prov;
}
