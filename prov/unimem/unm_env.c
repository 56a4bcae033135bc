/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_env.c - the table of the provider's parameters, from which the
 * environment is read and checked, and fi_info -e lists them. Reading and
 * checking one value is done by hal/hal_param.c, which also has the table of
 * the HAL's parameters.
 */
#include <limits.h>
#include <pthread.h>

#include <rdma/fi_errno.h>

#include "hal/hal.h"
#include "hal/hal_param.h"
#include "unm_env.h"
#include "unm_log.h"

struct unm_env g_unm_env;

#define ROW(name, type, field, min, max, def, help) \
	{ name, type, offsetof(struct unm_env, field), min, max, def, help, \
	  NULL }

static const struct hal_param unm_params[] = {
	ROW("INLINE", HAL_PARAM_BOOL, inline_on, 0, 1, "1",
	    "send short messages in a packet"),
	ROW("EAGER_MAX", HAL_PARAM_SIZE, eager_max, 0, 16384, "16K",
	    "longest message sent eagerly through receive space, bytes; 0: "
	    "none"),
	ROW("LONG_MAX", HAL_PARAM_SIZE, long_max, 0, 65536, "64K",
	    "longest message sent eagerly in several pieces, bytes; 0: none"),
	ROW("SPACE_MAX", HAL_PARAM_SIZE, space_max, 0, LONG_MAX, "8M",
	    "memory that an endpoint takes for receive space at busy peers of "
	    "its host, bytes; the first 32 KiB of each peer are not counted"),
	ROW("ATTACH", HAL_PARAM_BOOL, attach, 0, 1, "1",
	    "read ordinary memory of a peer by cross-memory attach"),
	ROW("BOUNCE", HAL_PARAM_SIZE, bounce, 0, 1L << 34, "0",
	    "bounce buffers of an endpoint, for sends and for receives each, "
	    "bytes: dmable memory for long messages from and to ordinary "
	    "memory; 0: these messages are streamed"),
	ROW("STREAM_US", HAL_PARAM_INT, stream_us, 0, 1000000, "20",
	    "microseconds that a receiver waits at most for the next piece of "
	    "a long message before it reads the rest by cross-memory attach; "
	    "0: reads all of it so"),
	ROW("DIRECT", HAL_PARAM_BOOL, direct, 0, 1, "1",
	    "access memory regions of a peer without its help"),
	ROW("ALIAS", HAL_PARAM_BOOL, alias, 0, 1, "1",
	    "access memory regions of a peer through an own mapping of the "
	    "same shared memory"),
	ROW("RKEY_MAX", HAL_PARAM_INT, rkey_max, 2, 1 << 20, "2048",
	    "remote keys and imported memory cached per peer, entries; those "
	    "used least recently are evicted"),
	ROW("RKEY_BYTES", HAL_PARAM_SIZE, rkey_bytes, 0, LONG_MAX, "64G",
	    "memory of a peer that the same entries map, bytes; beyond it "
	    "accesses are sent as requests and messages are streamed"),
	ROW("RKEY_KEEP", HAL_PARAM_BOOL, rkey_keep, 0, 1, "1",
	    "keep memory of a peer imported after a message was read from it; "
	    "0: import it for each message, and wait for that"),
	ROW("PROMPT_US", HAL_PARAM_INT, prompt_us, 0, 1000000000, "30",
	    "microseconds for which a peer that was seen to make progress is "
	    "asked to access its ordinary memory itself; 0: attach always"),
	ROW("PROMPT_MAX", HAL_PARAM_SIZE, prompt_max, 0, LONG_MAX, "64K",
	    "longest access that such a peer is asked for, bytes"),
	ROW("UNEXPECTED_MAX", HAL_PARAM_SIZE, unexpected_max, 4096, LONG_MAX,
	    "1G", "memory for unexpected messages of an endpoint, bytes; "
	    "beyond it senders get -FI_EAGAIN"),
	ROW("TX_SIZE", HAL_PARAM_INT, tx_size, 64, 1 << 20, "4096",
	    "sends in flight per endpoint; beyond it -FI_EAGAIN"),
	ROW("RX_SIZE", HAL_PARAM_INT, rx_size, 64, 1 << 24, "1048576",
	    "receives posted per endpoint; beyond it -FI_EAGAIN"),
	ROW("CQ_SIZE", HAL_PARAM_INT, cq_size, 1, 1 << 24, "1024",
	    "entries of a completion queue opened without a size; when "
	    "it is full, sends, receives and credits are refused"),
	ROW("SPIN", HAL_PARAM_INT, spin, 0, 1 << 30, "2000",
	    "empty polls before the processor is given away, when nobody "
	    "else wants it"),
	ROW("SERVICE_US", HAL_PARAM_INT, service_us, 1, 1000000000, "50",
	    "microseconds between checks of connections and dead peers"),
	ROW("CLOSE_MS", HAL_PARAM_INT, close_ms, 1, 3600000, "5000",
	    "milliseconds that fi_close() of a memory region or an endpoint "
	    "waits for peers that access its memory; then -FI_EBUSY"),
	ROW("STATS", HAL_PARAM_STRING, stats, 0, sizeof(g_unm_env.stats), "0",
	    "1: print each endpoint's counters when it is closed; a "
	    "directory: write them to a file there"),
};

#define UNM_NPARAMS	(int)(sizeof(unm_params) / sizeof(unm_params[0]))

static enum fi_param_type unm_param_type(enum hal_param_type type)
{
	switch (type) {
	case HAL_PARAM_BOOL:
		return FI_PARAM_BOOL;
	case HAL_PARAM_INT:
	case HAL_PARAM_LONG:
		return FI_PARAM_INT;
	default:			/* sizes may have a suffix */
		return FI_PARAM_STRING;
	}
}

static void unm_env_define_table(const struct hal_param *tab, int n)
{
	for (int i = 0; i < n; i++)
		fi_param_define(&g_unm_prov, tab[i].name,
				unm_param_type(tab[i].type),
				"%s (default: %s)", tab[i].help,
				tab[i].def != NULL ? tab[i].def : "none");
}

void unm_env_define(void)
{
	unm_env_define_table(hal_param_table, hal_param_count);
	unm_env_define_table(unm_params, UNM_NPARAMS);
}

static pthread_once_t unm_env_once = PTHREAD_ONCE_INIT;
static int unm_env_status;

static void unm_env_read(void)
{
	const struct hal_param *const tabs[] = { hal_param_table, unm_params };
	const int counts[] = { hal_param_count, UNM_NPARAMS };
	int ret = hal_params_load(&g_unm_env.hal);

	unm_env_status = hal_param_load(unm_params, UNM_NPARAMS, &g_unm_env);
	if (unm_env_status == 0)
		unm_env_status = ret;
	hal_param_check_unknown(tabs, counts, 2);
}

int unm_env_load(void)
{
	pthread_once(&unm_env_once, unm_env_read);
	return unm_env_status;
}
