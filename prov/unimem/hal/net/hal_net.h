/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net.h - peers on other hosts, around a backend that has those of this
 * host. docs/net.md is the design.
 */
#ifndef HAL_NET_H
#define HAL_NET_H

#include "hal/hal_types.h"

struct net_dir;

/*
 * Put peers on other hosts around an opened backend, before its first interface
 * is opened and before a fault decorator. params->net is the value of
 * FI_UNIMEM_NET. dir: the job's hosts, by which the boards of the backend are
 * numbered; it is freed with the decorator, or on an error; NULL: not known.
 * Loads no engine. 0; -FI_ENOMEM; -FI_EINVAL after a log line. hal_ops.close
 * removes it.
 */
int hal_net_wrap(struct hal *hal, struct net_dir *dir);

/* The host of a board, as the directory names it; NULL: there is none. */
const char *hal_net_board_host(const struct hal *hal, uint32_t board);

#endif /* HAL_NET_H */
