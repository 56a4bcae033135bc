/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_engine.h - the table of functions of the module that carries frames
 * to other hosts.
 *
 * The module (libunimem-net.so) is the only code that links UCX and libsodium.
 * hal_net_load.c loads it when the first connection to or from another host
 * begins. The functions are called by the thread that uses the interface, and
 * not by a forked child.
 */
#ifndef HAL_NET_ENGINE_H
#define HAL_NET_ENGINE_H

#include <stddef.h>
#include <stdint.h>

#include "hal/net/hal_net_auth.h"

#define NET_ENGINE_ABI		2	/* raise when this file changes */
#define NET_ENGINE_SYMBOL	"hal_net_engine"
#define NET_WORKER_MAX		1024	/* bytes of a worker's address */

struct net_worker;			/* the engine's part of an interface */
struct net_link;			/* and that of a peer */

/* Start of what the caller sends. It lasts until the message is sent. */
struct net_message {
	struct net_link *link;		/* the engine's, from send() on */
};

/* Calls from the engine, inside progress(), send() and disconnect(). */
struct net_upcalls {
	/* a message; the bytes are valid during the call */
	void (*received)(void *owner, const void *data, size_t len);
	/* a message for which send() returned 1 needs its bytes no longer */
	void (*sent)(struct net_message *message);
	/* the link carries nothing any more; peer is that of connect() */
	void (*failed)(void *peer);
};

struct net_worker_conf {
	const char *device;		/* network interface to be used */
	int epfd;			/* the worker adds its descriptors */
	void *event;			/* epoll_data.ptr of these */
	void *owner;			/* for upcalls */
	const struct net_upcalls *up;
};

struct net_engine {
	uint32_t abi;			/* NET_ENGINE_ABI */
	const char *name;		/* "ucx 1.13.1" */
	net_mac_fn mac;
	net_equal_fn equal;
	/* 0; -FI_EIO, -FI_EMFILE, -FI_ENOMEM */
	int (*open)(const struct net_worker_conf *conf,
		    struct net_worker **worker);
	void (*close)(struct net_worker *worker);
	/* Copy the address of the worker, up to *len bytes; sets *len. */
	int (*address)(struct net_worker *worker, void *buf, size_t *len);
	/* Carry messages. Not 0: there was something. */
	unsigned (*progress)(struct net_worker *worker);
	/* 0: epfd becomes readable by the next message; -FI_EAGAIN: progress
	 * first. */
	int (*arm)(struct net_worker *worker);
	int (*connect)(struct net_worker *worker, const void *address,
		       void *peer, struct net_link **link);
	/* Send a message. 0: the bytes may be reused; 1: not before
	 * up->sent(message); negative: not sent, and the link is of no use. */
	int (*send)(struct net_link *link, struct net_message *message,
		    const void *data, size_t len);
	/* End a link at once; messages under way may be lost. No upcall with
	 * this peer follows. */
	void (*disconnect)(struct net_link *link);
};

#endif /* HAL_NET_ENGINE_H */
