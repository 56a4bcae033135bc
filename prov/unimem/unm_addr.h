/* SPDX-License-Identifier: BSD-2-Clause */
/* unm_addr.h - addresses as people type them, see unm_addr.c. */
#ifndef UNM_ADDR_H
#define UNM_ADDR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rdma/fabric.h>

#include "hal/hal.h"

#define UNM_ADDR_IFACE_MAX UINT16_MAX	/* of any profile */

/*
 * A value of hal_addr.reserved: iface is a service number, 1 to UINT32_MAX, of
 * a host's name, and the board is that of whoever uses the address. Only
 * addresses of fi_getinfo(3) have it; unm_addr_settle() makes addresses of them
 * that the HAL takes.
 */
#define UNM_ADDR_SERVICE	UINT32_C(0x43565253)	/* "SRVC" */

/* Does a node begin as the provider's own form does? */
bool unm_addr_typed(const char *node);

/*
 * The address that a node and a service name, each of which may be NULL, for
 * the use that flags say: FI_SOURCE, an interface to take; else a peer's.
 * FI_NUMERICHOST: look no names up.
 *
 * unimem://board:interface	whoever holds that interface; a service means
 *				nothing here
 * unimem://board, interface	the same, the interface as service
 * this host or NULL, number	the interface of that number on the own board;
 *				numbers beyond the board's range begin again
 *				at 1, and 0 or no service names none (iface 0)
 * and what unm_addr_print() gives, for a peer only:
 * unimem://board:interface[/nonce][?uid=user], where the nonce names one
 *				incarnation and uid its owner
 *
 * Where boards are hosts (FI_UNIMEM_HAL=dev), another host is accepted as a
 * peer and names no interface. 0, or -FI_EINVAL, not logged.
 */
int unm_addr_parse(const char *node, const char *service, uint64_t flags,
		   struct hal_addr *addr);

/* May an endpoint be opened at this address (iface 0: anywhere)? */
bool unm_addr_takes(const struct hal_addr *addr);

/* Turn a service number into the board and interface it stands for. Any other
 * address stays as it is. */
void unm_addr_settle(const struct hal *hal, struct hal_addr *addr);

/* The provider's own form, for unm_addr_parse(); returns as snprintf() does. */
int unm_addr_print(const struct hal_addr *addr, char *buf, size_t len);

#endif /* UNM_ADDR_H */
