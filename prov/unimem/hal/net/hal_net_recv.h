/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_recv.h - frames that come; private to hal/net. */
#ifndef HAL_NET_RECV_H
#define HAL_NET_RECV_H

#include "hal/net/hal_net_types.h"

/* The engine's calls into hal/net. */
extern const struct net_upcalls net_upcalls;

#endif /* HAL_NET_RECV_H */
