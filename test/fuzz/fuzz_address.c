/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fuzz_address.c - fuzz target: addresses as users type them. The input is a
 * node, a zero byte, and a service (none without the zero byte). A name is
 * refused, or gives an address within its ranges; the output is untouched by
 * a refusal.
 */
#include <stdbool.h>

#include <rdma/fabric.h>

#include "hal/hal.h"
#include "unm_addr.h"

#include "fuzz.h"

#define TEXT_MAX	96

/* No name of a host is looked up: that takes the network, not the parser. */
static int parse(const char *node, const char *service, struct hal_addr *a)
{
	return unm_addr_parse(node, service, FI_NUMERICHOST, a);
}

static void check(const char *node, const struct hal_addr *a)
{
	MUST(a->version == HAL_ADDR_VERSION);
	if (unm_addr_typed(node)) {
		MUST(a->reserved == 0);
		MUST(a->iface >= 1 && a->iface <= UINT16_MAX);
	} else {
		MUST(a->board == 0 && a->nonce == HAL_ADDR_ANY);
		MUST((a->reserved != 0) == (a->iface != 0));
	}
}

/* The parser accepts whole texts only: none is valid with a "#" behind it. A
 * service is ignored behind a typed interface. */
static void check_whole(const char *node, const char *service)
{
	char longer[2 * TEXT_MAX + 2];
	struct hal_addr a;

	if (service != NULL && unm_addr_typed(node) &&
	    parse(node, NULL, &a) == 0)
		return;
	snprintf(longer, sizeof(longer), "%s#", service ? service : node);
	MUST(parse(service ? node : longer, service ? longer : NULL, &a) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	char node[TEXT_MAX + 1] = "", service[TEXT_MAX + 1] = "";
	size_t n = strnlen((const char *)bytes, len), rest;
	bool has_service = n < len;
	struct hal_addr a, was;
	int ret;

	rest = has_service ? len - n - 1 : 0;
	memcpy(node, bytes, n < TEXT_MAX ? n : TEXT_MAX);
	if (has_service)
		memcpy(service, bytes + n + 1, rest < TEXT_MAX ? rest :
		       TEXT_MAX);
	memset(&a, 0x5a, sizeof(a));
	was = a;
	ret = parse(node, has_service ? service : NULL, &a);
	if (ret != 0) {
		MUST(memcmp(&a, &was, sizeof(a)) == 0);
		return 0;
	}
	check(node, &a);
	check_whole(node, has_service ? service : NULL);
	return 0;
}
