/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hal_net_sodium.c - HMAC-SHA256 of libsodium, for the proofs and the messages
 * of control connections. A module of its own, libunimem-net-auth.so.
 *
 * Its only entry point is the table hal_net_crypto. The engine is another
 * module, because it is not loaded before a proof was good.
 */
#include <sodium.h>

#include "hal/hal_export.h"
#include "hal/net/hal_net_engine.h"

static void mac(uint8_t out[NET_MAC], const uint8_t *key, size_t nkey,
		const void *data, size_t len)
{
	crypto_auth_hmacsha256_state st;

	crypto_auth_hmacsha256_init(&st, key, nkey);
	crypto_auth_hmacsha256_update(&st, data, len);
	crypto_auth_hmacsha256_final(&st, out);
}

static bool equal(const uint8_t a[NET_MAC], const uint8_t b[NET_MAC])
{
	return crypto_verify_32(a, b) == 0;
}

HAL_EXPORT struct net_crypto hal_net_crypto = {
	.abi = NET_ENGINE_ABI,
	.mac = mac,
	.equal = equal,
};

static __attribute__((constructor)) void ready(void)
{
	if (sodium_init() < 0)
		hal_net_crypto.abi = 0;	/* is refused as another version */
}
