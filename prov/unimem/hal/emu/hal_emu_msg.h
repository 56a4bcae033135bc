/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_msg.h - the handshake and the other messages; private to hal/emu.
 */
#ifndef HAL_EMU_MSG_H
#define HAL_EMU_MSG_H

#include "hal/emu/hal_emu_types.h"

/* As hal_connect(). */
int emu_connect(struct hal_if *hif, const struct hal_addr *to,
		struct hal_peer **hp);

/*
 * Check a received message of len bytes and act on it. A descriptor that is
 * kept is replaced by -1 in *fds; the caller closes those that are not -1. 0,
 * or a negative errno: the message is wrong or cannot be taken, and the
 * connection is to be closed.
 */
int emu_take_message(struct emu_conn *conn, const union emu_msg *m,
		     size_t len, struct emu_fds *fds);

/*
 * Is a received HELLO valid, and does its sender hold the address in it? 0;
 * -EPROTONOSUPPORT, after a log line: another version, profile or number of
 * boards; -FI_ECONNREFUSED: meant for an earlier holder of this interface;
 * -FI_EACCES: not the holder; -FI_EMFILE, after a log line; -FI_EINVAL.
 */
int emu_hello_check(struct emu_conn *conn, const struct emu_hello *m,
		    size_t len, const struct emu_fds *fds);

/* Send the messages of conn->todo, which could not be sent before. */
void emu_conn_todo(struct emu_conn *conn);

#endif /* HAL_EMU_MSG_H */
