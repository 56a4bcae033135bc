/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_connect.h - connecting to the name of an interface; private to
 * hal/emu.
 */
#ifndef HAL_EMU_CONNECT_H
#define HAL_EMU_CONNECT_H

#include "hal/emu/hal_emu_types.h"

/*
 * Connect to the socket of interface to, and make the connection's object. 0;
 * -FI_EAGAIN: its queue of connection requests is full; -FI_ECONNREFUSED:
 * nobody listens, as emu_not_there() logs; -FI_EACCES: other users hold all of
 * its names, or the system permits no connection; a negative errno.
 */
int emu_sock_connect(struct emu_if *eif, const struct hal_addr *to,
		     struct emu_conn **conn);

/* Log that the process of interface to cannot be found; at level 1 for an
 * interface that was a peer before, and from the second time on. */
void emu_not_there(struct emu_if *eif, const struct hal_addr *to);

#endif /* HAL_EMU_CONNECT_H */
