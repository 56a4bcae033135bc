/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_addr.h - addresses as text: reading and printing them. unm_addr.c
 * describes the two forms. */
#ifndef UNM_ADDR_H
#define UNM_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

#include "hal/hal.h"

#define UNM_ADDR_IFACE_MAX UINT16_MAX	/* largest interface number of any
					 * profile */

/*
 * A value of hal_addr.reserved. The address was given as a host and a service:
 * iface is the service number, 1 to UINT32_MAX, and the board is the local one.
 * Only addresses that fi_getinfo(3) returns have this value; unm_addr_settle()
 * turns them into addresses that the HAL accepts.
 */
#define UNM_ADDR_SERVICE	UINT32_C(0x43565253)	/* "SRVC" */

/* True: the node begins with unimem://. */
bool unm_addr_typed(const char *node);

/*
 * Convert a node and a service, each of which may be NULL, to an address.
 * flags: FI_SOURCE: the interface that an endpoint is to have; else the address
 * of a peer. FI_NUMERICHOST: do not resolve names.
 *
 * unimem://board:interface	the current owner of that interface; the
 * 				service is ignored
 * unimem://board, interface	the same, with the interface as service
 * unimem://host/board:interface, unimem://host/board, interface
 *				the same, with the board as that host counts its
 *				boards, from 0; host: this one, or one of the
 *				job's directory (docs/net.md), an IPv6 address
 *				in brackets
 * this host or NULL, number	the interface of that number on the local
 * 				board; numbers beyond the board's range begin
 * 				again at 1; 0 or no service: any interface
 * 				(iface 0)
 * host of the directory, number
 *				the interface of that number on the first board
 *				of that host, for a peer only
 * and the text that unm_addr_print() writes, for a peer only:
 * unimem://board:interface[/nonce][?uid=user], where the nonce names one
 * 				incarnation of the interface, and uid is the
 * 				user id of its owner
 *
 * Where boards are hosts (FI_UNIMEM_HAL=dev), the name of another host is
 * accepted for a peer, with iface 0. Returns 0, or -FI_EINVAL without a line in
 * the log.
 */
int unm_addr_parse(const char *node, const char *service, uint64_t flags,
		   struct hal_addr *addr);

/* True: an endpoint may be opened at this address (iface 0: at any free
 * interface). It must be this user's and name no incarnation. */
bool unm_addr_takes(const struct hal_addr *addr);

/* Replace the service number of an address (UNM_ADDR_SERVICE) by the board and
 * the interface that it stands for. Other addresses are not changed. */
void unm_addr_settle(const struct hal *hal, struct hal_addr *addr);

/* Bytes of an address as programs exchange it: struct hal_addr, or struct
 * hal_addr_host if FI_UNIMEM_NET is set. */
size_t unm_addr_bytes(void);

/* Write an address in that form, for a program. host NULL: the local host. */
void unm_addr_export(const struct hal_addr *addr, const struct hal_host *host,
		     void *out);

/* Read an address that a program passes. *host is 0 for the local host. If the
 * address has the other form, the version of *addr is not HAL_ADDR_VERSION. */
void unm_addr_import(const void *in, struct hal_addr *addr,
		     struct hal_host *host);

/* Write an address in the form that unm_addr_parse() reads. Returns what
 * snprintf() returns. */
int unm_addr_print(const struct hal_addr *addr, char *buf, size_t len);

#endif /* UNM_ADDR_H */
