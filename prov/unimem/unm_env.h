/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * unm_env.h - the parameters of the provider, environment variables that begin
 * with FI_UNIMEM_. The HAL's own (backend, profile, boards) are defined in
 * hal/hal_param.h. man/fi_unimem.7 documents all of them.
 */
#ifndef UNM_ENV_H
#define UNM_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include "hal/hal.h"

/* One instance, g_unm_env; constant once unm_env_load() has returned. */
struct unm_env {
	bool inline_on;		/* short messages are sent in a packet */
	size_t eager_max;	/* longest eager message, bytes; 0: none */
	size_t long_max;	/* longest eager message in several pieces,
				 * bytes; 0: none */
	size_t space_max;	/* bytes of receive space at peers that use all
				 * of theirs, for an endpoint */
	size_t bounce;		/* bytes of bounce buffers of an endpoint, for
				 * sends and for receives each; 0: none */
	bool rkey_keep;		/* memory of peers that messages are read from
				 * stays imported */
	int stream_us;		/* longest wait of a receiver for the next piece
				 * of a long message, microseconds */
	bool attach;		/* cross-memory attach may be used */
	bool direct;		/* memory regions of peers are accessed directly
				 * where that is possible */
	bool alias;		/* ... also through a local mapping of the same
				 * shared memory */
	int rkey_max;		/* entries of the cache of a peer's remote keys
				 * and imported memory, at most */
	size_t rkey_bytes;	/* bytes that they map, at most */
	int prompt_us;		/* for so long after a peer made progress,
				 * accesses to its ordinary memory are sent as
				 * requests, microseconds; 0: never */
	size_t prompt_max;	/* longest such access, bytes */
	size_t unexpected_max;	/* memory for unexpected messages, bytes */
	int tx_size;		/* sends in flight per endpoint, at most */
	int rx_size;		/* receives posted per endpoint, at most */
	int cq_size;		/* entries of a completion queue that is opened
				 * without a size */
	int spin;		/* empty polls before the first yield */
	int close_ms;		/* longest wait of fi_close() for peers that
				 * access the memory, milliseconds */
	int service_us;		/* between checks of connections and dead peers,
				 * microseconds */
	char stats[256];	/* "0": no statistics; "1": to stderr; else the
				 * directory for them */
	struct hal_params hal;	/* parameters of the HAL: fi_getinfo() reports
				 * some of them (unm_nic.c) */
};

extern struct unm_env g_unm_env;

/* Register all parameters with libfabric, so that fi_info -e lists them. Called
 * by fi_prov_ini() only. */
void unm_env_define(void);

/* Read the environment; later calls return the result of the first. Returns 0,
 * or -FI_EINVAL after one line in the log for each bad value. Thread-safe. */
int unm_env_load(void);

#endif /* UNM_ENV_H */
