/* SPDX-License-Identifier: BSD-2-Clause */
/* hal_net_region.h - local dmable memory, for peers on other hosts; private to
 * hal/net. */
#ifndef HAL_NET_REGION_H
#define HAL_NET_REGION_H

#include "hal/net/hal_net_types.h"

#define NET_PIECE	61440		/* bytes of a request: one segment of
					 * TCP, of 64 KiB, with all heads */

/* The bytes that a request names. */
struct net_access {
	struct hal_key key;
	uint64_t off, len;
};

/* Start of an answer; the bytes of a GET follow. */
struct net_reply {
	int64_t status;			/* 0, or a negative fi_errno */
	uint64_t off;			/* NET_IMPORTED: bytes of the region;
					 * else not read */
};

/* Set the table of the backend, which has the memory. */
void net_regions_use(const struct hal_ops *base);
/* The HAL is being closed: its keys open nothing from now on. Call it before
 * the backend frees the memory that is left. */
void net_regions_close(const struct net_hal *net);

/* Entries of the table of functions: these note where the memory is. */
int net_mem_alloc(struct hal *hal, int board, size_t bytes,
		  struct hal_mem **mem, void **addr);
int net_mem_adopt(struct hal *hal, int fd, void *addr, size_t bytes,
		  struct hal_mem **mem);
void net_mem_free(struct hal_mem *mem);

/* Execute a request of a peer. -EPROTO: malformed. */
int net_region_record(struct net_peer *peer, const struct net_rec *rec,
		      const uint8_t *data);

#endif /* HAL_NET_REGION_H */
