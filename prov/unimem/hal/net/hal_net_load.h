/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_load.h - loads the modules for other hosts; private to hal/net. */
#ifndef HAL_NET_LOAD_H
#define HAL_NET_LOAD_H

#include "hal/net/hal_net_engine.h"

/* The tables of the modules; the first call loads the module, which stays until
 * the process ends. NULL after one log line. Any thread. */
const struct net_crypto *net_crypto_get(void);
const struct net_engine *net_engine_get(void);

#endif /* HAL_NET_LOAD_H */
