/* SPDX-License-Identifier: BSD-2-Clause */
/* test_node.c - how fi_getinfo() resolves nodes and services. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <rdma/providers/fi_prov.h>

#include "lib/ep_pair.h"
#include "unm_addr.h"

extern struct fi_provider *fi_prov_ini(void);
static struct fi_provider *prov;

/* The name of this host, which no resolver knows. Overrides libc's. */
static const char own_name[] = "0wn-n4me.invalid";

int gethostname(char *name, size_t len)
{
	snprintf(name, len, "%s", own_name);
	return 0;
}

/* Addresses of this host: of an interface without one, 192.0.2.7 and
 * 2001:db8::7. Overrides libc's. */
int getifaddrs(struct ifaddrs **list)
{
	static struct sockaddr_in v4 = { .sin_family = AF_INET };
	static struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	static struct ifaddrs all[] = {
		{ .ifa_next = &all[1] },
		{ .ifa_next = &all[2], .ifa_addr = (struct sockaddr *)&v4 },
		{ .ifa_addr = (struct sockaddr *)&v6 },
	};

	inet_pton(AF_INET, "192.0.2.7", &v4.sin_addr);
	inet_pton(AF_INET6, "2001:db8::7", &v6.sin6_addr);
	*list = all;
	return 0;
}

void freeifaddrs(struct ifaddrs *list)
{
	(void)list;
}

static void test_nodes(void **state)
{
	static const char *const strange[] = {
		"g00n13s.invalid", "192.0.2.1", "unimem://", "unimem://0:",
		"224.0.0.1", "255.255.255.255", "ff02::1", "unimem://0:0",
		"::ffff:192.0.2.1", "::7f00:1", "2001:db8::1",
	};
	static const char *const here[] = { "localhost", "127.0.0.1",
		"127.0.1.1", "0.0.0.0", "::ffff:127.0.0.1", "::ffff:0.0.0.0",
		"192.0.2.7", "::ffff:192.0.2.7", "2001:db8::7", own_name };
	struct fi_info *info = NULL;

	assert_int_equal(prov->getinfo(EP_VERSION, "unimem://0:7", NULL, 0,
				       NULL, &info), 0);
	assert_non_null(info->dest_addr);
	assert_int_equal(info->dest_addrlen, sizeof(struct hal_addr));
	assert_int_equal(((struct hal_addr *)info->dest_addr)->iface, 7);
	fi_freeinfo(info);
	for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++)
		assert_int_equal(prov->getinfo(EP_VERSION, strange[i], "1", 0,
					       NULL, &info), -FI_ENODATA);
	for (size_t i = 0; i < 2 * sizeof(here) / sizeof(here[0]); i++) {
		uint64_t flags = i & 1 ? FI_SOURCE : 0;

		assert_int_equal(prov->getinfo(EP_VERSION, here[i / 2], "1",
					       flags, NULL, &info), 0);
		assert_non_null(info->src_addr);
		assert_int_equal(info->dest_addr == NULL, flags != 0);
		fi_freeinfo(info);
	}
	assert_int_equal(prov->getinfo(EP_VERSION, "unimem://0", NULL, 0,
				       NULL, &info), -FI_ENODATA);
	/* an address with a nonce cannot be chosen */
	assert_int_equal(prov->getinfo(EP_VERSION,
				       "unimem://0:7/00000000000000ab", NULL,
				       FI_SOURCE, NULL, &info), -FI_ENODATA);
	/* names are not resolved */
	for (int i = 0; i < 2; i++)
		assert_int_equal(prov->getinfo(EP_VERSION, i == 0 ?
					       "localhost" : own_name, NULL,
					       FI_NUMERICHOST, NULL, &info),
				 -FI_ENODATA);
}

/* The address to which fi_getinfo() resolves a node and a service, as
 * destination or as source. */
static struct hal_addr named(const char *node, const char *service,
			     uint64_t flags)
{
	struct fi_info *info = NULL;
	struct hal_addr a;
	int ret = prov->getinfo(EP_VERSION, node, service, flags, NULL, &info);

	if (ret != 0)
		unit_fail("node %s service %s: %d", node, service, ret);
	if (flags & FI_SOURCE) {
		assert_null(info->dest_addr);
		memcpy(&a, info->src_addr, sizeof(a));
	} else {
		assert_int_equal(info->dest_addrlen, sizeof(a));
		memcpy(&a, info->dest_addr, sizeof(a));
		/* nothing is known of the local address yet */
		assert_int_equal(((struct hal_addr *)info->src_addr)->iface,
				 0);
	}
	assert_int_equal(info->src_addrlen, sizeof(a));
	fi_freeinfo(info);
	return a;
}

/* A board as node and an interface as service make the address. A node that
 * names an interface accepts any service. */
static void test_node_and_service(void **state)
{
	static const uint64_t flags[] = { 0, FI_NUMERICHOST, FI_SOURCE };

	for (int i = 0; i < 3; i++) {
		struct hal_addr one = named("unimem://3:7", NULL, flags[i]);
		struct hal_addr two = named("unimem://3", "7", flags[i]);
		struct hal_addr three = named("unimem://3:7", "9228",
					      flags[i]);

		assert_memory_equal(&one, &two, sizeof(one));
		assert_memory_equal(&one, &three, sizeof(one));
		assert_int_equal(one.board, 3);
		assert_int_equal(one.iface, 7);
		assert_int_equal(one.reserved, 0);
	}
}

/* A host before the board: this one. Without a directory there is no other. */
static void test_host_and_board(void **state)
{
	static const char *const here[] = {
		"unimem://localhost/0:7", "unimem://127.0.0.1/0:7",
		"unimem://[127.0.0.1]/0:7",
	};
	static const char *const bad[] = {
		"unimem://192.0.2.1/0:7", "unimem://g00n13s.invalid/0:7",
		"unimem:///0:7", "unimem://[]/0:7", "unimem://localhost/0:0",
		"unimem://localhost/", "unimem://localhost/1:7",
		"unimem://localhost/70000:7", "unimem://localhost/0:7/x",
	};
	struct hal_addr want = named("unimem://0:7", NULL, 0), a;
	struct fi_info *info = NULL;

	for (size_t i = 0; i < sizeof(here) / sizeof(here[0]); i++) {
		a = named(here[i], NULL, 0);
		assert_memory_equal(&a, &want, sizeof(a));
	}
	a = named("unimem://localhost/0", "7", 0);
	assert_memory_equal(&a, &want, sizeof(a));
	a = named("unimem://localhost/0:7/00000000000000ab", NULL, 0);
	assert_int_equal(a.nonce, 0xab);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(prov->getinfo(EP_VERSION, bad[i], NULL, 0,
					       NULL, &info), -FI_ENODATA);
}

/* A name of this host, or no node, with a number as service: an interface of
 * the local board, which is known only when there is a board. */
static void test_host_and_number(void **state)
{
	static const char *const here[] = { NULL, "localhost", "127.0.0.1",
		"127.1.2.3" };
	static const char *const odd[] = { "ssh", "-1", "+1", "", "1x",
		"4294967296", " 1" };
	const struct hal big = { .own_board = 2, .caps.ifs_per_board = 65535 };
	const struct hal small = { .own_board = 1, .caps.ifs_per_board = 63 };
	struct fi_info *info = NULL;

	for (int i = 0; i < 8; i++) {
		uint64_t flags = i & 1 ? FI_SOURCE : 0;
		struct hal_addr a = named(here[i / 2], "9228", flags), b = a;

		assert_int_equal(a.nonce, HAL_ADDR_ANY);
		unm_addr_settle(&big, &a);
		assert_int_equal(a.board, 2);
		assert_int_equal(a.iface, 9228);
		assert_int_equal(a.reserved, 0);
		/* numbers beyond the last interface start again at the first */
		unm_addr_settle(&small, &b);
		assert_int_equal(b.board, 1);
		assert_int_equal(b.iface, 9228 - 146 * 63);
		a = named(here[i / 2], "63", flags);
		unm_addr_settle(&small, &a);
		assert_int_equal(a.iface, 63);
		a = named(here[i / 2], "64", flags);
		unm_addr_settle(&small, &a);
		assert_int_equal(a.iface, 1);
		for (int k = 0; k < 7; k++)
			assert_int_equal(prov->getinfo(EP_VERSION,
					here[i / 2], odd[k], flags, NULL,
					&info), -FI_ENODATA);
	}
	/* names neither an interface nor a peer */
	assert_int_equal(named(NULL, "0", FI_SOURCE).iface, 0);
	assert_int_equal(prov->getinfo(EP_VERSION, NULL, "0", 0, NULL, &info),
			 0);
	assert_null(info->dest_addr);
	fi_freeinfo(info);
}

/* Hints with an address that is refused as source: it names one incarnation of
 * an interface. len is its given length. */
static struct fi_info *hints_of(bool src, size_t len)
{
	struct fi_info *h = fi_allocinfo();
	struct hal_addr a;

	assert_non_null(h);
	a = named("unimem://3:9/00000000000000ab", NULL, 0);
	if (src) {
		h->src_addr = malloc(sizeof(a));
		assert_non_null(h->src_addr);
		memcpy(h->src_addr, &a, sizeof(a));
		h->src_addrlen = len;
	} else {
		h->dest_addr = malloc(sizeof(a));
		assert_non_null(h->dest_addr);
		memcpy(h->dest_addr, &a, sizeof(a));
		h->dest_addrlen = len;
	}
	return h;
}

/* With FI_SOURCE, node and service alone name the local address. */
static void test_source_of_hints_ignored(void **state)
{
	for (int i = 0; i < 2; i++) {
		struct fi_info *h = hints_of(true, i == 0 ?
					     sizeof(struct hal_addr) : 3);
		struct fi_info *info = NULL;

		assert_int_equal(prov->getinfo(EP_VERSION, NULL, "7", 0, h,
					       &info), -FI_ENODATA);
		assert_int_equal(prov->getinfo(EP_VERSION, NULL, "7",
					       FI_SOURCE, h, &info), 0);
		assert_int_equal(((struct hal_addr *)info->src_addr)->iface,
				 7);
		assert_null(info->dest_addr);
		fi_freeinfo(info);
		fi_freeinfo(h);
	}
}

/* The destination of the hints is returned if node and service are NULL or name
 * the local address. */
static void test_destination_of_hints_ignored(void **state)
{
	static const struct {
		const char *service;
		uint64_t flags;
		unsigned iface;		/* of dest_addr; 0: no dest_addr */
	} calls[] = {
		{ NULL, 0, 9 }, { "7", FI_SOURCE, 9 }, { "0", FI_SOURCE, 9 },
		{ "7", 0, 7 }, { "0", 0, 0 },
	};
	struct fi_info *h = hints_of(false, sizeof(struct hal_addr));
	struct fi_info *info = NULL;

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_int_equal(prov->getinfo(EP_VERSION, NULL,
					       calls[i].service,
					       calls[i].flags, h, &info), 0);
		assert_int_equal(info->dest_addr == NULL, calls[i].iface == 0);
		if (info->dest_addr != NULL)
			assert_int_equal(((struct hal_addr *)info->dest_addr)->
					 iface, calls[i].iface);
		fi_freeinfo(info);
	}
	/* not even the length is checked of an ignored address */
	h->dest_addrlen = 3;
	assert_int_equal(prov->getinfo(EP_VERSION, NULL, "0", 0, h, &info), 0);
	fi_freeinfo(info);
	assert_int_equal(prov->getinfo(EP_VERSION, NULL, NULL, 0, h, &info),
			 -FI_ENODATA);
	fi_freeinfo(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes),
		cmocka_unit_test(test_node_and_service),
		cmocka_unit_test(test_host_and_board),
		cmocka_unit_test(test_host_and_number),
		cmocka_unit_test(test_source_of_hints_ignored),
		cmocka_unit_test(test_destination_of_hints_ignored),
	};

	prov = fi_prov_ini();
	return unit_run(tests);
}
