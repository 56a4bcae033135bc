/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_env.h - every parameter of the provider. The HAL's own (backend, profile,
 * boards) have their rows in hal/hal_param.h; man/fi_unimem.7 documents both.
 */
#ifndef UNM_ENV_H
#define UNM_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "hal/hal.h"

struct unm_env {
	size_t eager_max;	/* longest eager message, bytes */
	int stream_us;		/* longest wait for a piece of a stream */
	bool attach;		/* cross-memory attach allowed */
	bool direct;		/* peers' regions accessed without them */
	bool alias;		/* so, through mappings of the same memory */
	int prompt_us;		/* a peer that made progress is asked to access
				 * its memory, not attached to */
	size_t prompt_max;	/* longest such access, bytes */
	size_t unexpected_max;	/* memory for unexpected messages, bytes */
	int tx_size;		/* sends in flight per endpoint */
	int rx_size;		/* receives posted per endpoint */
	int cq_size;		/* limit of queues opened without one */
	int spin;		/* empty polls before the first yield */
	int close_ms;		/* fi_close() waits for a peer inside */
	int service_us;		/* between looks at connections and deaths */
	char stats[256];	/* "0", "1", or a directory */
	struct hal_params hal;	/* the HAL's, for what is told of it */
};

extern struct unm_env g_unm_env;

/* Tell libfabric about every parameter (fi_info -e). For fi_prov_ini. */
void unm_env_define(void);

/* Read the environment, once; 0 or -FI_EINVAL after a line for each bad value.
 * Thread-safe. */
int unm_env_load(void);

#endif /* UNM_ENV_H */
