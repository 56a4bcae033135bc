/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_emu_name.h - names of interfaces; private to hal/emu.
 */
#ifndef HAL_EMU_NAME_H
#define HAL_EMU_NAME_H

#include <sys/socket.h>
#include <sys/un.h>

#include "hal/emu/hal_emu_types.h"

#define EMU_NAMES	4		/* forms of each name */

/* Which user has a socket of a name? */
enum emu_owner {
	EMU_OWNER_OURS,			/* this process's user, or nobody, or
					 * the kernel does not show the owner */
	EMU_OWNER_OTHER,		/* another user */
};

/* Write form k, 0 to EMU_NAMES - 1, of a name of interface addr to *sun. The
 * kind is "unimem" (the socket that listens) or "unimem.held" (the socket that
 * proves which process holds the interface). Returns the length of the address
 * for bind(). */
socklen_t emu_sock_name(struct sockaddr_un *sun, const char *kind,
			const struct hal_addr *addr, int k);

/* Make eif->proof_fd, a datagram socket without a name: emu_take_number() or
 * emu_take_any() gives it the name "unimem.held". 0, or a negative errno. */
int emu_name_socket(struct emu_if *eif);

/* Hold interface number (HAL_IF_SERVICE: the service's) of eif's board, and
 * listen on its socket. Returns as hal_if_open_number() and
 * hal_if_open_service(), after a log line. */
int emu_take_number(struct emu_if *eif, uint32_t number);

/* The same for the first free number, 1 to caps.ifs_per_board. Returns as
 * hal_if_open(), after a log line. */
int emu_take_any(struct emu_if *eif);

/* Which user has form k of a name of interface addr? type is SOCK_SEQPACKET for
 * "unimem", SOCK_DGRAM for "unimem.held". *uid is set for EMU_OWNER_OTHER. Asks
 * the kernel for all sockets: slow where there are many. */
enum emu_owner emu_name_owner(int type, const struct hal_addr *addr, int k,
			      uid_t *uid);

/* Does the socket that fd is connected to belong to this process's user? 0;
 * -FI_EACCES: no; a negative errno. *uid is set unless getsockopt() failed. */
int emu_name_listener(int fd, uid_t *uid);

/* Does this process's user hold a form of "unimem.held" of interface addr below
 * form k? Connects eif->proof_fd, to find out. */
bool emu_name_earlier(struct emu_if *eif, const struct hal_addr *addr, int k);

#endif /* HAL_EMU_NAME_H */
