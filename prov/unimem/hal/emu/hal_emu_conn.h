/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_conn.h - connection objects, sending on them; private to hal/emu.
 */
#ifndef HAL_EMU_CONN_H
#define HAL_EMU_CONN_H

#include "hal/emu/hal_emu_types.h"

/* Make the object of a connected socket, which the interface owns until
 * emu_conn_close(); it is not watched yet. On errors fd stays the caller's:
 * -FI_EACCES after a log line: another user is at the other end; -FI_ENOMEM; a
 * negative errno. */
int emu_conn_new(struct emu_if *eif, int fd, struct emu_conn **conn);

/* Note that the process at the other end has said which peer it is, or that the
 * connection ends: conn does not count as silent any more. */
void emu_conn_spoke(struct emu_conn *conn);

/* End the connection and detach it from its peer. The object itself lasts until
 * emu_conns_free(), because epoll events that were read already may name it. */
void emu_conn_close(struct emu_conn *conn);

/* Free the objects of all closed connections of the interface. */
void emu_conns_free(struct emu_if *eif);

/*
 * Send one message of len bytes with nfds descriptors, 0 to EMU_FDS_MAX; the
 * head is filled in here from type, len and status. 0: sent; -FI_EAGAIN:
 * nothing was sent, try again later (errno says why); -FI_ECONNRESET: the
 * connection has ended.
 */
int emu_conn_send(struct emu_conn *conn, union emu_msg *msg, size_t len,
		  int type, int status, const int *fds, int nfds);

/* Refuse what the process at the other end asked for: send a message of that
 * type with that status, a negative errno. A message that cannot be sent now is
 * lost. */
void emu_refuse(struct emu_conn *conn, int type, int status);

/* Wake the peer if it sleeps, at most once per sleep. */
void emu_wake(struct hal_peer *hp);

/* Note (or clear) work of enum emu_todo that the next service does. */
void emu_todo_set(struct emu_conn *conn, enum emu_todo what);
void emu_todo_clear(struct emu_conn *conn, uint32_t what);

/* Watch the process of pidfd fd in place of the one watched before; handed: the
 * peer itself sent fd. 0: the peer owns fd; else a negative errno after a log
 * line, and fd stays the caller's. */
int emu_peer_watch(struct emu_peer *peer, int fd, bool handed);

/* Close both connections of the peer, and watch its process no more. */
void emu_peer_disconnect(struct emu_peer *peer);

/* Has the process of this pidfd ended? -1 is no process: false. */
bool emu_pidfd_dead(int pidfd);

#endif /* HAL_EMU_CONN_H */
