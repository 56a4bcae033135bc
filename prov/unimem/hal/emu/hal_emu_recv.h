/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_recv.h - accepting connections, reading messages; private to
 * hal/emu.
 */
#ifndef HAL_EMU_RECV_H
#define HAL_EMU_RECV_H

#include "hal/emu/hal_emu_types.h"

/* Accept a bounded number of connections and read what was sent on them. true:
 * more wait. */
bool emu_accept(struct emu_if *eif);

/* Read and act on a bounded number of messages. At the end of the connection,
 * or after a wrong message, the peer is marked as dying; a connection without a
 * peer is closed. true: there are more messages. */
bool emu_conn_input(struct emu_conn *conn);

/* Read all messages that wait, of a connection whose peer is about to be
 * declared dead. NULL: does nothing. */
void emu_conn_drain(struct emu_conn *conn);

/* A peer object was freed: read the HELLOs that waited for that, in the order
 * in which their connections were accepted. */
void emu_unhold(struct emu_if *eif);

#endif /* HAL_EMU_RECV_H */
