/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_engine.h - the tables of functions of the two modules for other
 * hosts: one checks proofs, the other carries frames.
 *
 * libunimem-net-auth.so is the only code that links libsodium. hal_net_load.c
 * loads it when the first connection to or from another host begins.
 * libunimem-net.so is the only code that links UCX. It is loaded after the
 * first proof that was good, so that a process without the secret causes
 * nothing of UCX to run. The functions of the engine are called by the thread
 * that uses the interface, and not by a forked child.
 */
#ifndef HAL_NET_ENGINE_H
#define HAL_NET_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hal/net/hal_net_auth.h"

#define NET_ENGINE_ABI		7	/* raise when this file changes */
#define NET_ENGINE_SYMBOL	"hal_net_engine"
#define NET_CRYPTO_SYMBOL	"hal_net_crypto"
#define NET_WORKER_MAX		1024	/* bytes of a worker's address */

struct net_worker;			/* the engine's part of an interface */
struct net_link;			/* and that of a peer */

/* Start of what the caller sends. It lasts until the message is sent. All of it
 * is the engine's, from send() on. */
struct net_message {
	struct net_link *link;
	struct net_message *next;	/* waits until the link is open */
	const void *data;
	size_t len;
};

/* Calls from the engine, inside progress(), arm(), send() and disconnect(), and
 * of sent() inside close(). */
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
	bool ipv6;			/* by its IPv6 address, even if it has
					 * one of IPv4 */
	unsigned dead_ms;		/* FI_UNIMEM_NET_DEAD_MS */
	int epfd;			/* the worker adds its descriptors */
	void *event;			/* epoll_data.ptr of these */
	void *owner;			/* for upcalls */
	const struct net_upcalls *up;
};

/* The table of libunimem-net-auth.so. Any thread. */
struct net_crypto {
	uint32_t abi;			/* NET_ENGINE_ABI */
	net_mac_fn mac;
	net_equal_fn equal;
};

/* The table of libunimem-net.so. */
struct net_engine {
	uint32_t abi;			/* NET_ENGINE_ABI */
	const char *name;		/* "ucx" */
	/* 0; -FI_EIO, -FI_EMFILE, -FI_ENOMEM */
	int (*open)(const struct net_worker_conf *conf,
		    struct net_worker **worker);
	/* 0; -FI_EBUSY: a link does not end, so the worker and its descriptors
	 * stay until the process ends. */
	int (*close)(struct net_worker *worker);
	/* Copy the address of the worker, up to *len bytes; sets *len.
	 * -FI_EMFILE: there are no descriptors for a link, of which the address
	 * is a part. -FI_ENOMEM. */
	int (*address)(struct net_worker *worker, void *buf, size_t *len);
	/* Carry messages. Not 0: there was something. */
	unsigned (*progress)(struct net_worker *worker);
	/* Call it after a progress() that returned 0, with nothing sent since.
	 * 0: epfd becomes readable by the next message; -FI_EAGAIN: progress
	 * first. */
	int (*arm)(struct net_worker *worker);
	/* Open a link to the worker with an address of so many bytes, which a
	 * peer has sent. peer: not NULL. 0; -FI_EINVAL: no such address;
	 * -FI_EMFILE, -FI_ENOMEM, -FI_EIO. */
	int (*connect)(struct net_worker *worker, const void *address,
		       size_t len, void *peer, struct net_link **link);
	/* Send a message. 0: the bytes may be reused; 1: not before
	 * up->sent(message); negative: not sent, and the link is of no use. */
	int (*send)(struct net_link *link, struct net_message *message,
		    const void *data, size_t len);
	/* End a link. It returns at once: progress() does what is left to do,
	 * and carries the messages as far as that is possible, with sent() for
	 * each that waits. Those that wait for the link to open are dropped if
	 * silent is set. No upcall with this peer follows. silent: the IP
	 * address of its host, which does not answer; NULL: it may answer. */
	void (*disconnect)(struct net_link *link, const uint8_t *silent);
};

#endif /* HAL_NET_ENGINE_H */
