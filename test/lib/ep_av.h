/* SPDX-License-Identifier: BSD-2-Clause */
/* ep_av.h - endpoint addresses, and the source address of a completion, for
 * tests of the address vector; uses ep_pair.h */
#ifndef EP_AV_H
#define EP_AV_H

#include "lib/ep_pair.h"
#include "hal/hal.h"

/* The address of an endpoint. */
static inline struct hal_addr name_of(struct ep *e)
{
	struct hal_addr a;
	size_t len = sizeof(a);

	assert_int_equal(fi_getname(&e->ep->fid, &a, &len), 0);
	assert_int_equal(len, sizeof(a));
	return a;
}

/* A valid address that no endpoint has, a different one for each i. */
static inline struct hal_addr made_up(uint32_t i)
{
	return (struct hal_addr){ .version = HAL_ADDR_VERSION, .board = i % 7,
				  .iface = 1 + i % 60000, .uid = 1,
				  .nonce = i + 1 };
}

/* Send one message from one endpoint to another. Returns the source address in
 * the receiver's completion. */
static inline fi_addr_t source_seen(struct ep *from, fi_addr_t to,
				    struct ep *at)
{
	char out = 1, in;

	EP_OK(fi_recv(at->ep, &in, 1, NULL, FI_ADDR_UNSPEC, &in));
	EP_OK(fi_inject(from->ep, &out, 1, to));
	return ep_received(at, &in).src;
}

#endif /* EP_AV_H */
