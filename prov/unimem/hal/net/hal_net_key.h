/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_key.h - the key file: how processes on different hosts that connect
 * by board and interface know that they belong together; private to hal/net.
 */
#ifndef HAL_NET_KEY_H
#define HAL_NET_KEY_H

#include "hal/net/hal_net_auth.h"

#define NET_KEY_MIN	32		/* hex digits of a key file, at least */
#define NET_KEY_MAX	256		/* and at most */

/* A key. Constant once it is loaded. */
struct net_key {
	size_t len;			/* bytes; 0: there is no key */
	uint8_t bytes[NET_KEY_MAX / 2];
};

/* Read a key of len characters: hex digits, then blanks and ends of lines. 0,
 * or -FI_EINVAL. Pure. */
int net_key_parse(const char *text, size_t len, struct net_key *key);

/*
 * Read the key file. path "": ~/.unimem/key, if it exists. The file must be a
 * regular file of this user that nobody else may read or write; if not, there
 * is a log line and no key, and a path that was given is -FI_EINVAL. Else 0.
 */
int net_key_load(const char *path, struct net_key *key);

/* The secret of all handshakes with the key (enum net_kind). */
void net_key_secret(const struct net_key *key, net_mac_fn mac,
		    uint8_t secret[NET_SECRET]);

#endif /* HAL_NET_KEY_H */
